// Least squares by modified Gram-Schmidt on the augmented matrix [X | z]: with the right-hand side
// carried along, coefficients and residual are as backward stable as by Householder's method
// (Björck, "Numerical Methods for Least Squares Problems", 1996, section 2.4.4), and X has few
// columns. After whitening by L⁻¹ this is generalized least squares, and the normal equations
// XᵀΣ⁻¹X with their squared condition are formed only where there is no factor of all digits.

#include "geostat/regression.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

double sum_of_products(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

constexpr const char* kDependent =
    "the points do not determine the {} coefficients of the mean (are they all on one line, or is "
    "a covariate constant or a combination of the others?)";

/// c ← R⁻¹·c.
void back_substitute(MatrixView<const double> r, std::vector<double>& c) {
  const std::int64_t p = r.cols;
  for (std::int64_t j = p - 1; j >= 0; --j) {
    double& value = c[static_cast<std::size_t>(j)];
    for (std::int64_t k = j + 1; k < p; ++k) value -= r(j, k) * c[static_cast<std::size_t>(k)];
    value /= r(j, j);
  }
}

}  // namespace

double Regression::leverage(std::span<const double> u) const {
  const std::size_t p = coefficients.size();
  std::vector<double> solution(p);
  double square = 0;
  for (std::size_t i = 0; i < p; ++i) {
    double value = u[i];
    for (std::size_t k = 0; k < i; ++k) value -= r[k + i * p] * solution[k];
    solution[i] = value / r[i + i * p];
    square += solution[i] * solution[i];
  }
  return square;
}

double Regression::length_of_solution(std::span<const double> s) const {
  const std::int64_t p = std::ssize(s);
  std::vector<double> x(s.begin(), s.end());
  back_substitute({r.data(), p, p, std::max<std::int64_t>(p, 1)}, x);
  return std::sqrt(sum_of_products(x.data(), x.data(), p));
}

Regression regress(MatrixView<double> w, const char* where) {
  const std::int64_t n = w.rows;
  const std::int64_t p = w.cols - 1;
  Regression out;
  out.coefficients.resize(static_cast<std::size_t>(p));
  out.r.resize(static_cast<std::size_t>(p * p));
  const MatrixView<double> r{out.r.data(), p, p, std::max<std::int64_t>(p, 1)};
  std::vector<double> length(static_cast<std::size_t>(p));
  for (std::int64_t j = 0; j < p; ++j) {
    length[static_cast<std::size_t>(j)] = std::sqrt(sum_of_products(w.column(j), w.column(j), n));
  }
  double* z = w.column(p);
  for (std::int64_t j = 0; j < p; ++j) {
    double* q = w.column(j);
    r(j, j) = std::sqrt(sum_of_products(q, q, n));
    require(r(j, j) > 1e-10 * length[static_cast<std::size_t>(j)], ErrorKind::numerical, where,
            kDependent, p);
    for (std::int64_t i = 0; i < n; ++i) q[i] /= r(j, j);
    for (std::int64_t k = j + 1; k <= p; ++k) {
      const double along = sum_of_products(q, w.column(k), n);
      (k < p ? r(j, k) : out.coefficients[static_cast<std::size_t>(j)]) = along;
      for (std::int64_t i = 0; i < n; ++i) w(i, k) -= along * q[i];
    }
  }
  back_substitute(r, out.coefficients);
  out.residual_square = sum_of_products(z, z, n);
  return out;
}

Regression regress_by_solutions(MatrixView<const double> w, MatrixView<double> u,
                                const char* where) {
  const std::int64_t n = w.rows;
  const std::int64_t p = w.cols - 1;
  Regression out;
  out.coefficients.resize(static_cast<std::size_t>(p));
  out.r.resize(static_cast<std::size_t>(p * p));
  const MatrixView<double> r{out.r.data(), p, p, std::max<std::int64_t>(p, 1)};
  // XᵀΣ⁻¹X = RᵀR, column by column; y = R⁻ᵀ·XᵀΣ⁻¹z in the place of the coefficients.
  for (std::int64_t j = 0; j < p; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      const double square = sum_of_products(w.column(i), u.column(j), n);
      double rest = square;
      for (std::int64_t k = 0; k < i; ++k) rest -= r(k, i) * r(k, j);
      if (i < j) {
        r(i, j) = rest / r(i, i);
        continue;
      }
      require(rest > 1e-10 * square, ErrorKind::numerical, where, kDependent, p);
      r(j, j) = std::sqrt(rest);
    }
  }
  std::vector<double>& c = out.coefficients;
  for (std::int64_t j = 0; j < p; ++j) {
    double y = sum_of_products(w.column(j), u.column(p), n);
    for (std::int64_t k = 0; k < j; ++k) y -= r(k, j) * c[static_cast<std::size_t>(k)];
    c[static_cast<std::size_t>(j)] = y / r(j, j);
  }
  back_substitute(r, c);
  std::vector<double> residual(w.column(p), w.column(p) + n);
  for (std::int64_t j = 0; j < p; ++j) {
    const double factor = c[static_cast<std::size_t>(j)];
    for (std::int64_t i = 0; i < n; ++i) {
      residual[static_cast<std::size_t>(i)] -= factor * w(i, j);
      u(i, p) -= factor * u(i, j);
    }
  }
  out.residual_square = sum_of_products(residual.data(), u.column(p), n);
  return out;
}

void divide_by_triangle(const Regression& regression, MatrixView<double> m) {
  const std::int64_t p = m.cols;
  const MatrixView<const double> r{regression.r.data(), p, p, std::max<std::int64_t>(p, 1)};
  for (std::int64_t j = 0; j < p; ++j) {
    for (std::int64_t i = 0; i < m.rows; ++i) {
      double value = m(i, j);
      for (std::int64_t k = 0; k < j; ++k) value -= m(i, k) * r(k, j);
      m(i, j) = value / r(j, j);
    }
  }
}

}  // namespace strata
