#pragma once
// Gaussian fields for tests of factors of few digits, and what such a factor gets wrong.
//
// Contract: dense, by LAPACK in fp64, independent of the library's factorizations.

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "tests/support/problems.hpp"

extern "C" void dpotrf_(const char*, const int*, double*, const int*, int*, std::size_t);

namespace strata::test {

/// The Matérn covariance of smoothness 1/2, 3/2 or 5/2 (closed forms), variance 1.
inline Matrix<double> matern_covariance(const Matrix<double>& points, double range,
                                        double smoothness, double nugget = 0) {
  return make_matrix<double>(points.rows, points.rows, [&](auto i, auto j) {
    const double r = std::hypot(points(i, 0) - points(j, 0), points(i, 1) - points(j, 1)) / range;
    const double factor = smoothness < 1 ? 1 : smoothness < 2 ? 1 + r : 1 + r + r * r / 3;
    return factor * std::exp(-r) + (i == j ? nugget : 0);
  });
}

/// n points, uniform in the unit square, by recursive bisection into tiles of `tile`, so that
/// neighbours are near each other in number.
inline Matrix<double> ordered_points(std::int64_t n, std::int64_t tile, std::uint64_t seed) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  const auto at = [&](std::int64_t i, int c) {
    return random_uniform(seed, static_cast<std::uint64_t>(2 * i + c));
  };
  const auto cut = [&](auto&& self, std::int64_t first, std::int64_t last) -> void {
    const std::int64_t tiles = (last - first + tile - 1) / tile;
    if (tiles <= 1) return;
    double lo[2] = {2, 2};
    double hi[2] = {-1, -1};
    for (std::int64_t i = first; i < last; ++i) {
      for (int c = 0; c < 2; ++c) {
        lo[c] = std::min(lo[c], at(rows[static_cast<std::size_t>(i)], c));
        hi[c] = std::max(hi[c], at(rows[static_cast<std::size_t>(i)], c));
      }
    }
    const int axis = hi[1] - lo[1] > hi[0] - lo[0] ? 1 : 0;
    const std::int64_t middle = first + tiles / 2 * tile;
    std::sort(rows.begin() + first, rows.begin() + last,
              [&](std::int64_t a, std::int64_t b) { return at(a, axis) < at(b, axis); });
    self(self, first, middle);
    self(self, middle, last);
  };
  cut(cut, 0, n);
  return make_matrix<double>(n, 2, [&](auto i, auto c) {
    return at(rows[static_cast<std::size_t>(i)], static_cast<int>(c));
  });
}

/// exp(−h/range), with a nugget.
inline Matrix<double> exponential_covariance(const Matrix<double>& points, double range,
                                             double nugget = 0) {
  return matern_covariance(points, range, 0.5, nugget);
}

/// What a factor M gets wrong where L is right, M·Mᵀ ≈ L·Lᵀ.
struct FactorError {
  double kl = 0;                ///< of N(0, L·Lᵀ) from N(0, M·Mᵀ)
  double half_log_determinant;  ///< ½·(log|M·Mᵀ| − log|L·Lᵀ|)
  double quadratic_form = 0;  ///< ½·(yᵀ(MMᵀ)⁻¹y − yᵀ(LLᵀ)⁻¹y), y = L·z, root mean square of 8
  double log_likelihood = 0;  ///< the same of the log-likelihood
  double inverse_pivots = 0;  ///< Σ 1/L_ii²
};

inline FactorError factor_error(Matrix<double> l, const Matrix<double>& m) {
  const std::int64_t n = l.rows;
  FactorError error{};
  double change = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    change += std::log(m(i, i)) - std::log(l(i, i));
    error.inverse_pivots += 1 / (l(i, i) * l(i, i));
  }
  error.half_log_determinant = change;
  for (std::int64_t j = 0; j < n; ++j) std::fill_n(&l(0, j), j, 0.0);
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, static_cast<int>(n),
              static_cast<int>(n), 1, m.data.data(), static_cast<int>(n), l.data.data(),
              static_cast<int>(n));  // W = M⁻¹·L
  for (std::int64_t j = 0; j < n; ++j) {
    const double d = l(j, j) - 1;
    error.kl += 0.5 * (2 * (d - std::log1p(d)) + d * d);
    for (std::int64_t i = j + 1; i < n; ++i) error.kl += 0.5 * l(i, j) * l(i, j);
  }
  constexpr int kSamples = 8;
  for (int s = 0; s < kSamples; ++s) {
    std::vector<double> z(static_cast<std::size_t>(n));
    std::vector<double> w(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<std::uint64_t>(2 * (i + n * s));
      z[static_cast<std::size_t>(i)] = std::sqrt(-2 * std::log(random_uniform(77, k) + 1e-300)) *
                                       std::cos(2 * M_PI * random_uniform(77, k + 1));
    }
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j; i < n; ++i)
        w[static_cast<std::size_t>(i)] += l(i, j) * z[static_cast<std::size_t>(j)];
    }
    double square = 0;
    for (std::size_t i = 0; i < z.size(); ++i) square += (w[i] - z[i]) * (w[i] + z[i]);
    error.quadratic_form += 0.25 * square * square / kSamples;
    error.log_likelihood += std::pow(change + 0.5 * square, 2) / kSamples;
  }
  error.quadratic_form = std::sqrt(error.quadratic_form);
  error.log_likelihood = std::sqrt(error.log_likelihood);
  return error;
}

/// ‖A − M·Mᵀ‖_F / ‖A‖_F, M lower triangular with zeros above; NaN if M holds one.
inline double relative_residual(Matrix<double> a, const Matrix<double>& m) {
  const int n = static_cast<int>(a.rows);
  double size = 0;
  for (const double x : a.data) size += x * x;
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, n, -1, m.data.data(), n, 1, a.data.data(),
              n);
  double square = 0;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = j; i < a.rows; ++i) square += (i == j ? 1 : 2) * a(i, j) * a(i, j);
  }
  return std::sqrt(square / size);
}

/// L of the lower triangle, zero above.
inline Matrix<double> dense_factor(Matrix<double> a) {
  const int n = static_cast<int>(a.rows);
  int info = 0;
  dpotrf_("L", &n, a.data.data(), &n, &info, 1);
  for (std::int64_t j = 0; j < a.cols; ++j) std::fill_n(&a(0, j), j, 0.0);
  return a;
}

}  // namespace strata::test
