#include "krylov/given_system.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/index.hpp"
#include "krylov/linear_system.hpp"
#include "krylov/twofold.hpp"
#include "matrix/sparse_passes.hpp"
#include "scalar/double_double.hpp"

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

/// Whether a number times 2^exponent is so small that it, or what it is multiplied with, loses
/// bits.
bool loses(std::span<const double> values, int exponent) {
  constexpr int kSmall = -900;
  return exponent != 0 && std::ranges::any_of(values, [&](double x) {
           return x != 0 && std::isfinite(x) && std::ilogb(x) + exponent < kSmall;
         });
}

/// A number 2^exponent·value.
struct Term {
  DoubleDouble value;
  int exponent = 0;
};

Term term_of(double a, double x) {
  int of_a = 0;
  int of_x = 0;
  const double p = std::frexp(a, &of_a);
  const double q = std::frexp(x, &of_x);
  return {two_product(p, q), of_a + of_x};
}

}  // namespace

GivenSystem::GivenSystem(const SparseMatrix& a, std::span<const double> b, WorkCrew& crew)
    : crew_(crew),
      given_(a),
      given_rhs_(b),
      matrix_exponent_(scaling_exponent(a.value, crew)),
      rhs_exponent_(scaling_exponent(b, crew)),
      scaled_(scaled_copy(a, matrix_exponent_)),
      a_(scaled_.entries() > 0 ? scaled_ : a),
      matrix_loses_(loses(a.value, matrix_exponent_) || loses(b, rhs_exponent_)),
      scaled_rhs_(rhs_exponent_ != 0 ? scaled(b, rhs_exponent_) : std::vector<double>()),
      b_(rhs_exponent_ != 0 ? std::span<const double>(scaled_rhs_) : b),
      length_(norm_of(b_)),
      best_(b.size()),
      best_residual_(length_) {}

template <class Rows>
GivenSystem::Lengths GivenSystem::lengths_of(const Rows& rows) const {
  std::vector<ScaledNumber> plain(at(blocks_of(given_.rows)));
  std::vector<ScaledNumber> scaled(row_scale_.empty() ? 0 : plain.size());
  for_blocks(crew_, given_.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    std::vector<ScaledNumber> part = rows(begin, end);
    plain[at(block)] = norm_of(part);
    if (scaled.empty()) return;
    for (std::size_t i = 0; i < part.size(); ++i) {
      int of_scale = 0;
      int of_row = 0;
      const double scale = std::frexp(row_scale_[at(begin) + i], &of_scale);
      const double row = std::frexp(part[i].value, &of_row);
      part[i] = {scale * row, part[i].exponent + of_scale + of_row};
    }
    scaled[at(block)] = norm_of(part);
  });
  const auto together = [](std::span<const ScaledNumber> parts) {
    return parts.size() == 1 ? parts.front() : norm_of(parts);
  };
  return {together(plain), together(scaled)};
}

void GivenSystem::also_scale_rows(std::span<const double> scale) {
  row_scale_ = scale;
  rhs_scaled_ = best_scaled_ = lengths_of([&](std::int64_t begin, std::int64_t end) {
                                 std::vector<ScaledNumber> part;
                                 part.reserve(at(end - begin));
                                 for (std::int64_t i = begin; i < end; ++i)
                                   part.push_back({given_rhs_[at(i)], 0});
                                 return part;
                               }).scaled;
}

GivenSystem::Unknowns GivenSystem::unknowns_of(std::span<const double> x) const {
  const int shift = rhs_exponent_ - matrix_exponent_;
  const bool apart = matrix_loses_ || loses(x, shift);
  return {x, !apart && shift != 0 ? scaled(x, shift) : std::vector<double>(), apart};
}

std::vector<double> GivenSystem::residual(std::span<const double> x) const {
  const Unknowns unknowns = unknowns_of(x);
  std::vector<double> r(x.size());
  for_blocks(crew_, given_.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    const std::vector<ScaledNumber> rows = rows_of_residual(unknowns, begin, end);
    for (std::size_t i = 0; i < rows.size(); ++i)
      r[at(begin) + i] = rounded_away({rows[i].value, rows[i].exponent + rhs_exponent_});
  });
  return r;
}

std::vector<ScaledNumber> GivenSystem::rows_of_residual(const Unknowns& x, std::int64_t begin,
                                                        std::int64_t end) const {
  std::vector<ScaledNumber> r(at(end - begin));
  if (x.apart) {
    for (std::int64_t i = begin; i < end; ++i) r[at(i - begin)] = row_apart(i, x.given);
    return r;
  }
  const TwofoldVector product =
      multiply_twofold(a_, x.shifted.empty() ? x.given : x.shifted, begin, end);
  for (std::size_t i = 0; i < r.size(); ++i) {
    const std::size_t row = at(begin) + i;
    r[i] =
        product.underflows[i] != 0
            ? row_apart(static_cast<std::int64_t>(row), x.given)
            : ScaledNumber{subtracted_from(b_[row], product.hi[i], product.lo[i]), -rhs_exponent_};
  }
  return r;
}

ScaledNumber GivenSystem::row_apart(std::int64_t i, std::span<const double> x) const {
  std::vector<Term> terms{term_of(given_rhs_[at(i)], 1)};
  for (std::int64_t k = given_.start[at(i)]; k < given_.start[at(i + 1)]; ++k)
    terms.push_back(term_of(-given_.value[at(k)], x[at(given_.column[at(k)])]));
  int most = std::numeric_limits<int>::min();
  for (const Term& term : terms)
    if (term.value.hi != 0) most = std::max(most, term.exponent);
  DoubleDouble sum;
  for (const Term& term : terms) {
    if (term.value.hi == 0) continue;
    const int beside = term.exponent - most;  // what vanishes is nothing beside the largest term
    sum = sum + DoubleDouble{std::ldexp(term.value.hi, beside), std::ldexp(term.value.lo, beside)};
  }
  return {sum.hi, sum.hi == 0 ? 0 : most};
}

namespace {

/// Aᵀ·y, and ‖Aᵀy‖ beside ‖|A|ᵀ|y|‖.
struct TransposedProduct {
  std::vector<double> values;
  double square = 0;
  double share = 0;
};
TransposedProduct multiply_transposed(const SparseMatrix& a, std::span<const double> y) {
  TransposedProduct product{std::vector<double>(at(a.cols))};
  std::vector<double> terms(at(a.cols));
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const double term = a.value[at(k)] * y[at(i)];
      product.values[at(a.column[at(k)])] += term;
      terms[at(a.column[at(k)])] += std::abs(term);
    }
  }
  const double length = norm_of(product.values);
  const double most = norm_of(terms);
  product.square = length * length;
  product.share = most > 0 ? length / most : 0;
  return product;
}

double inner(std::span<const double> x, std::span<const double> y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

}  // namespace

RangeEvidence GivenSystem::evidence_of_range() const {
  constexpr std::int64_t kStepsMax = 200;
  constexpr std::int64_t kWork = 500'000'000;  // elements, a second or two
  constexpr double kOrthogonal = 0x1p-46;
  constexpr double kNotRounding = 1e-12;  // of the square of a length that is 1 at first
  if (matrix_loses_) return {};
  std::vector<double> y = residual(best_);
  for (double& x : y) x /= best_residual_;
  TransposedProduct s = multiply_transposed(a_, y);
  RangeEvidence evidence{s.share, s.share};
  std::vector<double> p = s.values;
  std::vector<double> q(y.size());
  const std::int64_t steps = std::clamp<std::int64_t>(kWork / (a_.entries() + 1), 1, kStepsMax);
  for (std::int64_t step = 0; step < steps && s.share > kOrthogonal; ++step) {
    multiply(a_, p, q);
    const double length = inner(q, q);
    if (!(length > 0) || !std::isfinite(length)) break;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] -= s.square / length * q[i];
    const double before = s.square;
    s = multiply_transposed(a_, y);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = s.values[i] + s.square / before * p[i];
    // The y of a solution is 0, and rounding has no direction. For others bᵀy is ‖y‖², as long as
    // rounding has not changed their difference from b.
    const double square = inner(y, y);
    const double of_b = inner(b_, y) / best_residual_;
    if (square >= kNotRounding && of_b >= 0.5 * square)
      evidence.left = std::min(evidence.left, s.share);
  }
  return evidence;
}

double GivenSystem::offer(std::span<const double> x) {
  const auto not_finite = [&](std::int64_t begin, std::int64_t end) {
    int count = 0;
    for (std::int64_t i = begin; i < end; ++i) count += std::isfinite(x[at(i)]) ? 0 : 1;
    return count;
  };
  if (reduce_blocks(crew_, std::ssize(x), 0, not_finite, std::plus<>()) > 0)
    return std::numeric_limits<double>::quiet_NaN();
  const Unknowns unknowns = unknowns_of(x);
  Lengths lengths = lengths_of(
      [&](std::int64_t begin, std::int64_t end) { return rows_of_residual(unknowns, begin, end); });
  lengths.plain.exponent += rhs_exponent_;
  const double length = rounded_away(lengths.plain);
  if (length <= best_residual_) {
    best_.assign(x.begin(), x.end());
    best_residual_ = length;
    best_scaled_ = lengths.scaled;
  }
  return length;
}

}  // namespace strata
