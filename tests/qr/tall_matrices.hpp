#pragma once
// Tall matrices whose conditions are known, and what is measured of their factors.
//
// Contract: matrices in closed form or from counters; the measurements are in long double, whose 64
// bits tell errors of 1e-18, and use nothing of the library's arithmetic.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {

using Tall = Matrix<double>;

inline double normal(std::uint64_t seed, std::uint64_t i) {
  const double u = random_uniform(seed, 2 * i);
  const double v = random_uniform(seed, 2 * i + 1);
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586 * v);
}

/// y = A·x, A the 5-point Laplacian of a p × p grid over `unit`.
inline std::vector<double> laplace_times(const std::vector<double>& x, std::int64_t p,
                                         double unit) {
  std::vector<double> y(x.size());
  for (std::int64_t j = 0; j < p; ++j) {
    for (std::int64_t i = 0; i < p; ++i) {
      const auto at = [&](std::int64_t r, std::int64_t c) {
        return r < 0 || c < 0 || r >= p || c >= p ? 0.0 : x[static_cast<std::size_t>(r + c * p)];
      };
      y[static_cast<std::size_t>(i + j * p)] =
          (4 * at(i, j) - at(i - 1, j) - at(i + 1, j) - at(i, j - 1) - at(i, j + 1)) / unit;
    }
  }
  return y;
}

inline void set_column(Tall& v, std::int64_t j, const std::vector<double>& x) {
  std::copy(x.begin(), x.end(), v.view().column(j));
}

inline Tall krylov(std::int64_t n, double unit = 4) {
  constexpr std::int64_t kGrid = 33;
  Tall v(kGrid * kGrid, n);
  std::vector<double> x(static_cast<std::size_t>(kGrid * kGrid), 1.0);
  for (std::int64_t j = 0; j < n; ++j) {
    set_column(v, j, x);
    x = laplace_times(x, kGrid, unit);
  }
  return v;
}

/// The Newton basis with Leja-ordered Chebyshev points of [0, 8], columns of length 1.
inline Tall newton(std::int64_t n) {
  constexpr std::int64_t kGrid = 33;
  std::vector<double> left;
  for (std::int64_t i = 0; i < n; ++i)
    left.push_back(4 + 4 * std::cos(3.141592653589793 * (static_cast<double>(i) + 0.5) /
                                    static_cast<double>(n)));
  std::vector<double> points;
  while (!left.empty()) {
    const auto weight = [&](double t) {
      double sum = points.empty() ? std::abs(t) : 0;
      for (const double p : points) sum += std::log(std::abs(t - p) + 1e-300);
      return sum;
    };
    const auto best = std::max_element(left.begin(), left.end(),
                                       [&](double s, double t) { return weight(s) < weight(t); });
    points.push_back(*best);
    left.erase(best);
  }
  Tall v(kGrid * kGrid, n);
  std::vector<double> x(static_cast<std::size_t>(kGrid * kGrid), 1.0 / kGrid);
  for (std::int64_t j = 0; j < n; ++j) {
    set_column(v, j, x);
    std::vector<double> y = laplace_times(x, kGrid, 1);
    double square = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] -= points[static_cast<std::size_t>(j)] * x[i];
      square += y[i] * y[i];
    }
    for (double& value : y) value /= std::sqrt(square);
    x = std::move(y);
  }
  return v;
}

inline Tall hilbert(std::int64_t m, std::int64_t n) {
  return make_matrix<double>(m, n,
                             [](auto i, auto j) { return 1 / static_cast<double>(i + j + 1); });
}

/// A row of ones above a diagonal.
inline Tall lauchli(std::int64_t n, const std::function<double(std::int64_t)>& diagonal) {
  return make_matrix<double>(n + 1, n, [&](auto i, auto j) {
    return i == 0 ? 1.0 : i == j + 1 ? diagonal(j) : 0.0;
  });
}
inline Tall synthetic() {
  return lauchli(100,
                 [](auto j) { return random_uniform(5, static_cast<std::uint64_t>(j)) * 0x1p-52; });
}

/// Orthonormal columns, by Gram–Schmidt twice in long double.
inline Matrix<long double> random_orthonormal(std::int64_t m, std::int64_t n, std::uint64_t seed) {
  auto q = make_matrix<long double>(
      m, n, [&](auto i, auto j) { return normal(seed, static_cast<std::uint64_t>(i + j * m)); });
  for (std::int64_t j = 0; j < n; ++j) {
    for (int twice = 0; twice < 2; ++twice) {
      for (std::int64_t k = 0; k < j; ++k) {
        long double dot = 0;
        for (std::int64_t i = 0; i < m; ++i) dot += q(i, k) * q(i, j);
        for (std::int64_t i = 0; i < m; ++i) q(i, j) -= dot * q(i, k);
      }
    }
    long double square = 0;
    for (std::int64_t i = 0; i < m; ++i) square += q(i, j) * q(i, j);
    for (std::int64_t i = 0; i < m; ++i) q(i, j) /= std::sqrt(square);
  }
  return q;
}

/// U·diag(σ)·Wᵀ with σ from 1 to 1/κ in equal ratios. `columns` of U are multiplied in place.
inline void shape_columns(Matrix<long double>& u, std::int64_t first, std::int64_t count,
                          double condition, std::uint64_t seed) {
  auto w = random_orthonormal(count, count, seed);
  for (std::int64_t k = 0; k < count; ++k) {
    const double exponent =
        count > 1 ? -static_cast<double>(k) / static_cast<double>(count - 1) : 0;
    for (std::int64_t j = 0; j < count; ++j) w(j, k) *= std::pow(condition, exponent);
  }
  std::vector<long double> row(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < u.rows; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (std::int64_t k = 0; k < count; ++k) {
      const long double x = u(i, first + k);
      const long double* column = w.view().column(k);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] += x * column[j];
    }
    for (std::int64_t j = 0; j < count; ++j) u(i, first + j) = row[static_cast<std::size_t>(j)];
  }
}

inline Tall rounded(const Matrix<long double>& a) {
  return make_matrix<double>(a.rows, a.cols, [&](auto i, auto j) { return a(i, j); });
}
/// The condition is to within a tenth where there are many rows: random columns are orthonormal to
/// √(n/m) then, and making them so takes longer than most that is tested.
inline Tall with_condition(std::int64_t m, std::int64_t n, double condition, std::uint64_t seed) {
  auto u = m < 500 * n ? random_orthonormal(m, n, seed)
                       : make_matrix<long double>(m, n, [&](auto i, auto j) {
                           return normal(seed, static_cast<std::uint64_t>(i + j * m)) /
                                  std::sqrt(static_cast<double>(m));
                         });
  shape_columns(u, 0, n, condition, seed + 1);
  return rounded(u);
}
/// Blocks of condition `inner` in a matrix of about outer·inner (Smoktunowicz et al. 2006).
inline Tall glued(std::int64_t m, std::int64_t blocks, std::int64_t size, double outer,
                  double inner) {
  auto u = random_orthonormal(m, blocks * size, 21);
  shape_columns(u, 0, blocks * size, outer, 22);
  for (std::int64_t b = 0; b < blocks; ++b)
    shape_columns(u, b * size, size, inner, 23 + static_cast<std::uint64_t>(b));
  return rounded(u);
}

inline Tall random_tall(std::int64_t m, std::int64_t n, std::uint64_t seed) {
  return make_matrix<double>(
      m, n, [&](auto i, auto j) { return normal(seed, static_cast<std::uint64_t>(i + j * m)); });
}
inline Tall graded(std::int64_t m, std::int64_t n, double range) {
  Tall v = random_tall(m, n, 6);
  for (std::int64_t j = 0; j < n; ++j) {
    const double factor = std::pow(range, -static_cast<double>(j) / static_cast<double>(n - 1));
    for (std::int64_t i = 0; i < m; ++i) v(i, j) *= factor;
  }
  return v;
}
/// Integers of rank `rank`, exactly.
inline Tall integers_of_rank(std::int64_t m, std::int64_t n, std::int64_t rank,
                             std::uint64_t seed) {
  const auto integer = [&](std::uint64_t which, std::int64_t i) {
    return std::floor(17 * random_uniform(seed + which, static_cast<std::uint64_t>(i))) - 8;
  };
  return make_matrix<double>(m, n, [&](auto i, auto j) {
    double sum = 0;
    for (std::int64_t k = 0; k < rank; ++k) sum += integer(0, i * rank + k) * integer(1, k * n + j);
    return sum;
  });
}

/// The 2-norm of I − QᵀQ, of the first `columns` columns.
template <class T>
double orthogonality_of(const Matrix<T>& q, std::int64_t columns) {
  Matrix<double> e(columns, columns);
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      long double sum = i == j ? -1.0L : 0.0L;
      const T* x = q.view().column(i);
      const T* y = q.view().column(j);
      for (std::int64_t r = 0; r < q.rows; ++r)
        sum += static_cast<long double>(x[r]) * static_cast<long double>(y[r]);
      e(i, j) = e(j, i) = static_cast<double>(sum);
    }
  }
  std::vector<double> x(static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = normal(77, i);
  double norm = 0;
  for (int k = 0; k < 40; ++k) {
    double square = 0;
    for (const double value : x) square += value * value;
    std::vector<double> y(x.size());
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < columns; ++i)
        y[static_cast<std::size_t>(i)] +=
            e(i, j) * (x[static_cast<std::size_t>(j)] / std::sqrt(square));
    }
    double length = 0;
    for (const double value : y) length += value * value;
    if (!(length > 0)) return std::isnan(length) ? length : norm;
    norm = std::max(norm, std::sqrt(length));
    x = std::move(y);
  }
  return norm;
}

/// max_j ‖v_j − Q·r_j‖ / ‖v_j‖, of columns that are not zeros.
template <class T>
double residual_of(const Matrix<T>& v, const Matrix<T>& q, const Matrix<T>& r) {
  double worst = 0;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    double largest = 0;
    for (std::int64_t i = 0; i < v.rows; ++i)
      largest = std::max(largest, std::abs(static_cast<double>(v(i, j))));
    if (largest == 0) continue;
    std::vector<long double> rest(static_cast<std::size_t>(v.rows));
    for (std::int64_t i = 0; i < v.rows; ++i)
      rest[static_cast<std::size_t>(i)] = static_cast<long double>(v(i, j));
    long double length = 0;
    for (const long double x : rest) length += (x / largest) * (x / largest);
    for (std::int64_t k = 0; k < v.cols; ++k) {
      const auto factor = static_cast<long double>(r(k, j));
      if (factor == 0) continue;
      const T* column = q.view().column(k);
      for (std::int64_t i = 0; i < v.rows; ++i)
        rest[static_cast<std::size_t>(i)] -= static_cast<long double>(column[i]) * factor;
    }
    long double left = 0;
    for (const long double x : rest) left += (x / largest) * (x / largest);
    const auto relative = static_cast<double>(std::sqrt(left / length));
    worst = std::isnan(relative) ? relative : std::max(worst, relative);
    if (std::isnan(worst)) return worst;
  }
  return worst;
}

/// 700 × 8; columns 2, 4 and 6 depend on those before them, exactly: numbers have few digits, so
/// that nothing is rounded.
inline Tall with_dependent_columns() {
  Tall v = random_tall(700, 8, 10);
  for (double& x : v.data) x = std::round(std::ldexp(x, 20));
  for (std::int64_t i = 0; i < v.rows; ++i) {
    v(i, 2) = 0;
    v(i, 4) = v(i, 1);
    v(i, 6) = 2 * v(i, 0) - 0.5 * v(i, 3);
  }
  return v;
}

}  // namespace strata::test
