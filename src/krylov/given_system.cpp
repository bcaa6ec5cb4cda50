#include "krylov/given_system.hpp"

#include <algorithm>
#include <limits>

#include "device/device_host.hpp"
#include "krylov/linear_system.hpp"
#include "krylov/twofold.hpp"

namespace strata {
namespace {

std::vector<double> scaled(std::span<const double> values, int exponent) {
  std::vector<double> result(values.begin(), values.end());
  for (double& x : result) x = std::ldexp(x, exponent);
  return result;
}

SparseMatrix scaled_copy(const SparseMatrix& a, int exponent) {
  if (exponent == 0) return {};
  SparseMatrix copy = a;
  copy.value = scaled(a.value, exponent);
  return copy;
}

}  // namespace

GivenSystem::GivenSystem(const SparseMatrix& a, std::span<const double> b)
    : crew_(describe_host().compute_queues - 1),
      scaled_(scaled_copy(a, scaling_exponent(a.value))),
      a_(scaled_.entries() > 0 ? scaled_ : a),
      matrix_exponent_(scaling_exponent(a.value)),
      rhs_exponent_(scaling_exponent(b)),
      scaled_rhs_(rhs_exponent_ != 0 ? scaled(b, rhs_exponent_) : std::vector<double>()),
      b_(rhs_exponent_ != 0 ? std::span<const double>(scaled_rhs_) : b),
      length_(norm_of(b_)),
      best_(b.size()),
      best_residual_(length_) {}

std::vector<double> GivenSystem::residual(std::span<const double> x) {
  const int shift = rhs_exponent_ - matrix_exponent_;
  if (shift == 0) return subtracted_from(b_, multiply_twofold(a_, x, crew_));
  return subtracted_from(b_, multiply_twofold(a_, scaled(x, shift), crew_));
}

double GivenSystem::offer(std::span<const double> x) {
  if (!std::ranges::all_of(x, [](double value) { return std::isfinite(value); }))
    return std::numeric_limits<double>::quiet_NaN();
  const double length = norm_of(residual(x));
  if (length <= best_residual_) {
    best_.assign(x.begin(), x.end());
    best_residual_ = length;
  }
  return length;
}

}  // namespace strata
