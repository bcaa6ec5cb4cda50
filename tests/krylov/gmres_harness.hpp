#pragma once
// gmres() as tests call it, and its residual by another way.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strata/error.hpp"
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
/// From an x whose elements are `guess`.
inline Solved solved(const SparseMatrix& a, const std::vector<double>& b,
                     const GmresOptions& options, double guess = 0) {
  Solved result{std::vector<double>(b.size(), guess), {}};
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

/// The message of the error, which has to be of this kind.
template <class F>
std::string complaint(ErrorKind kind, F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

}  // namespace strata::test
