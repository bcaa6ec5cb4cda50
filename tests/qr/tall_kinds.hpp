#pragma once
// Tall matrices of the kinds that go wrong: near-dependent columns, exact ranks, units, weights,
// twins, and the ends of the range.
//
// Contract: a matrix is a function of its seed; its kind is one of kTallKinds.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "tests/qr/tall_matrices.hpp"

namespace strata::test {

/// Powers of points from a to b, the highest first.
template <class T>
Matrix<T> vandermonde(std::int64_t m, std::int64_t n, double a, double b) {
  return make_matrix<T>(m, n, [=](auto i, auto j) {
    const double x = a + (b - a) * static_cast<double>(i) / static_cast<double>(m - 1);
    return static_cast<T>(std::pow(x, static_cast<double>(n - 1 - j)));
  });
}

/// A diagonal, and integers up to `most` above it.
template <class T>
Matrix<T> integers_above(std::int64_t m, std::int64_t n,
                         const std::function<double(std::int64_t)>& diagonal, std::int64_t most,
                         std::uint64_t seed) {
  return make_matrix<T>(m, n, [&](auto i, auto j) {
    if (i > j) return T(0);
    if (i == j) return static_cast<T>(diagonal(j));
    const double x = random_uniform(seed, static_cast<std::uint64_t>(i + n * j));
    return static_cast<T>(std::floor(static_cast<double>(2 * most + 1) * x) -
                          static_cast<double>(most));
  });
}

/// The same with powers of two on the diagonal, from 1 to 2^−most.
template <class T>
Matrix<T> powers_of_two(std::int64_t m, std::int64_t n, double most, std::uint64_t seed) {
  return integers_above<T>(
      m, n,
      [=](auto j) {
        return std::exp2(
            -std::floor(most * random_uniform(7100 + seed, static_cast<std::uint64_t>(j))));
      },
      3, 7200 + seed);
}

/// The first of these kinds are in the middle of the range.
inline constexpr std::uint64_t kTallKinds = 12;

/// Matrix `seed` of a kind, of 2 … 13 columns and up to 12 rows more.
inline Tall tall_of_kind(std::uint64_t kind, std::uint64_t seed) {
  const auto uniform = [&](std::uint64_t which) { return random_uniform(7000 + which, seed); };
  const auto of = [seed](std::uint64_t which, std::int64_t i) {
    return random_uniform(which + seed, static_cast<std::uint64_t>(i));
  };
  const auto n = static_cast<std::int64_t>(2 + 12 * uniform(0));
  const auto m = n + static_cast<std::int64_t>(12 * uniform(1));
  const auto times = [](Tall a, const std::function<double(std::int64_t, std::int64_t)>& factor) {
    return make_matrix<double>(a.rows, a.cols,
                               [&](auto i, auto j) { return a(i, j) * factor(i, j); });
  };
  switch (kind) {
    case 0: return vandermonde<double>(m + 1, n, -uniform(2), uniform(3) + 0.1);
    case 1: return powers_of_two<double>(m, n, 45, seed);
    case 2:
      return integers_above<double>(
          m, n, [](auto) { return 1.0; }, 1000000, 7200 + seed);
    case 3: return random_tall(m, n, 7900 + seed);
    case 4:  // Cauchy
      return make_matrix<double>(
          m, n, [&](auto i, auto j) { return 1 / (of(7300, i) + of(7400, j) + 1e-3); });
    case 5:  // Krylov vectors of a diagonal matrix
      return make_matrix<double>(
          m, n, [&](auto i, auto j) { return std::pow(of(7500, i), static_cast<double>(j)); });
    case 6:
      return integers_of_rank(m, n,
                              1 + static_cast<std::int64_t>(uniform(4) * static_cast<double>(n)),
                              7600 + 2 * seed);
    case 7: return with_condition(m, n, std::pow(10.0, 18 * uniform(5)), 7700 + 3 * seed);
    case 8:  // columns in units
      return times(with_condition(m, n, std::pow(10.0, 8 * uniform(5)), 7700 + 3 * seed),
                   [&](auto, auto j) { return std::pow(10.0, 16 * of(8000, j) - 8); });
    case 9: {  // rows with weights, some of which are penalties
      const double most = 4 + 12 * uniform(6);
      return times(random_tall(m, n, 7900 + seed), [&](auto i, auto) {
        return std::pow(10.0, of(8100, i) < 0.3 ? most : 4 * of(8200, i) - 2);
      });
    }
    case 10: {  // columns that are twins
      const double apart = std::pow(10.0, -16 * uniform(7));
      const Tall a = random_tall(m, n, 7900 + seed);
      return make_matrix<double>(m, n, [&](auto i, auto j) {
        return j % 2 == 0 ? a(i, j) : a(i, j - 1) + apart * a(i, j);
      });
    }
    default: {  // the ends of the range; some elements are subnormal
      Tall a = tall_of_kind(seed % 11, seed + 1);
      double largest = 0;
      for (const double x : a.data) largest = std::max(largest, std::abs(x));
      const double power = uniform(8) < 0.5 ? 1015 - 500 * uniform(9) : -1070 + 500 * uniform(9);
      const int exponent = static_cast<int>(power) - std::ilogb(largest);
      for (double& x : a.data) x = std::ldexp(x, exponent);
      return a;
    }
  }
}

}  // namespace strata::test
