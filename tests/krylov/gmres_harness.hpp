#pragma once
// gmres() as tests call it, and its residual by another way.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/krylov.hpp"

namespace strata::test {

/// On one host device.
inline GmresOptions with(std::int64_t s, std::int64_t restart, QrMethod method,
                         KrylovBasis basis = KrylovBasis::monomial) {
  GmresOptions options;
  options.s = s;
  options.restart = restart;
  options.orthogonalization = method;
  options.basis = basis;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 256 << 20;
  return options;
}

struct Solved {
  std::vector<double> x;
  GmresInfo info;
};
/// From x = 0.
inline Solved solved(const SparseMatrix& a, const std::vector<double>& b,
                     const GmresOptions& options) {
  Solved result{std::vector<double>(b.size()), {}};
  result.info = gmres(a, b, result.x, options);
  return result;
}

/// ‖b − A·x‖/‖b‖ in long double, entry by entry.
inline double residual_of(const SparseMatrix& a, const std::vector<double>& b,
                          const std::vector<double>& x) {
  long double square = 0;
  long double length = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    long double r = b[i];
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      r -= static_cast<long double>(a.value[e]) * x[static_cast<std::size_t>(a.column[e])];
    }
    square += r * r;
    length += static_cast<long double>(b[i]) * b[i];
  }
  return static_cast<double>(std::sqrt(square / length));
}

}  // namespace strata::test
