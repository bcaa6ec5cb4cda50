#pragma once
// General matrices that elimination finds hard, or that have many zeros or ties, by name.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {

struct GeneralKind {
  std::string name;
  std::function<Matrix<double>(std::int64_t n)> make;
  /// Growth of partial pivoting at that order is huge: 2^(n−1) or so.
  bool grows = false;
};
inline void PrintTo(const GeneralKind& kind, std::ostream* stream) { *stream << kind.name; }

[[nodiscard]] inline double signed_uniform(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return 2 * random_uniform(seed, static_cast<std::uint64_t>(i * 8192 + j)) - 1;
}

[[nodiscard]] inline Matrix<double> random_general(std::int64_t n, std::uint64_t seed = 1) {
  return make_matrix<double>(n, n, [=](auto i, auto j) { return signed_uniform(seed, i, j); });
}

/// Growth 2^(n−1) (Wilkinson, "Error analysis of direct methods of matrix inversion", 1961).
[[nodiscard]] inline Matrix<double> wilkinson_matrix(std::int64_t n) {
  return make_matrix<double>(n, n, [=](auto i, auto j) {
    return i == j || j == n - 1 ? 1.0 : i > j ? -1.0 : 0.0;
  });
}

/// A Volterra integral equation by quadrature (Foster, "Gaussian elimination with partial pivoting
/// can fail in practice", 1994), k·h = 1 and C = 2.
[[nodiscard]] inline Matrix<double> foster_matrix(std::int64_t n) {
  constexpr double kh = 1;
  constexpr double c = 2;
  return make_matrix<double>(n, n, [=](auto i, auto j) {
    const double last = j == n - 1 ? -1 / c : 0;
    if (i == 0) return (j == 0 ? 1.0 : 0.0) + last;
    if (j == 0) return -kh / 2;
    if (j > i) return last;
    return (i == j ? 1 - kh / 2 : -kh) + last;
  });
}

/// Multiple shooting for a boundary value problem (Wright, "A collection of problems for which
/// Gaussian elimination with partial pivoting is unstable", 1993): −e^(M·h) below the diagonal.
[[nodiscard]] inline Matrix<double> wright_matrix(std::int64_t n) {
  n += n % 2;
  const double h = 0.3;
  const double scale = std::exp(-h / 6);
  return make_matrix<double>(n, n, [=](auto i, auto j) {
    if (i == j) return 1.0;
    if (i < 2) return j == n - 2 + i ? 1.0 : 0.0;
    if (j / 2 != i / 2 - 1) return 0.0;
    return -scale * (i % 2 == j % 2 ? std::cosh(h) : std::sinh(h));
  });
}

/// [[0, I], [I, 0]].
[[nodiscard]] inline Matrix<double> swapped_halves(std::int64_t n) {
  n += n % 2;
  return make_matrix<double>(n, n,
                             [=](auto i, auto j) { return (i + n / 2) % n == j ? 1.0 : 0.0; });
}

/// Every diagonal block of order 8 is zero.
[[nodiscard]] inline Matrix<double> singular_diagonal_blocks(std::int64_t n) {
  n = std::max<std::int64_t>(n, 16);
  return make_matrix<double>(
      n, n, [](auto i, auto j) { return i / 8 == j / 8 ? 0.0 : signed_uniform(3, i, j); });
}

/// Rows and columns from 1 down to 10^−60.
[[nodiscard]] inline Matrix<double> graded_matrix(std::int64_t n) {
  return make_matrix<double>(n, n, [=](auto i, auto j) {
    const double power = -30.0 * static_cast<double>(i + j) / static_cast<double>(n);
    return signed_uniform(7, i, j) * std::pow(10.0, power);
  });
}

[[nodiscard]] inline Matrix<double> circulant_matrix(std::int64_t n) {
  return make_matrix<double>(n, n,
                             [=](auto i, auto j) { return signed_uniform(9, (i - j + n) % n, 0); });
}

/// Sylvester's, of the power of two above n: nothing but ties.
[[nodiscard]] inline Matrix<double> hadamard_matrix(std::int64_t n) {
  std::int64_t order = 1;
  while (order < n) order *= 2;
  return make_matrix<double>(order, order, [](auto i, auto j) {
    return __builtin_popcountll(static_cast<unsigned long long>(i & j)) % 2 == 0 ? 1.0 : -1.0;
  });
}

[[nodiscard]] inline Matrix<double> companion_matrix(std::int64_t n) {
  return make_matrix<double>(n, n, [=](auto i, auto j) {
    return i == 0 ? signed_uniform(11, 0, j) + (j == n - 1 ? 2 : 0) : i == j + 1 ? 1.0 : 0.0;
  });
}

[[nodiscard]] inline std::vector<GeneralKind> general_kinds() {
  return {{"random", [](std::int64_t n) { return random_general(n); }},
          {"wilkinson", wilkinson_matrix, true},
          {"foster", foster_matrix, true},
          {"wright", wright_matrix, true},
          {"swapped_halves", swapped_halves},
          {"singular_diagonal_blocks", singular_diagonal_blocks},
          {"graded", graded_matrix},
          {"circulant", circulant_matrix},
          {"hadamard", hadamard_matrix},
          {"companion", companion_matrix}};
}

/// H₁·D·H₂ with random reflections and a diagonal from 1 down to 1/condition: that condition, up to
/// rounding.
[[nodiscard]] inline Matrix<double> matrix_of_condition(std::int64_t n, double condition,
                                                        std::uint64_t seed) {
  Matrix<long double> a(n, n);
  for (std::int64_t i = 0; i < n; ++i)
    a(i, i) = std::pow(static_cast<long double>(condition),
                       -static_cast<long double>(i) / static_cast<long double>(n - 1));
  for (std::int64_t side = 0; side < 2; ++side) {
    std::vector<long double> v;
    long double square = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      v.push_back(signed_uniform(seed, i, side));
      square += v.back() * v.back();
    }
    for (std::int64_t k = 0; k < n; ++k) {
      const auto element = [&](std::int64_t i) -> long double& {
        return side == 0 ? a(i, k) : a(k, i);
      };
      long double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += v[static_cast<std::size_t>(i)] * element(i);
      for (std::int64_t i = 0; i < n; ++i)
        element(i) -= 2 * sum / square * v[static_cast<std::size_t>(i)];
    }
  }
  return make_matrix<double>(n, n, [&](auto i, auto j) { return a(i, j); });
}

}  // namespace strata::test
