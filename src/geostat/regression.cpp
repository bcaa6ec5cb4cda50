// Least squares by modified Gram-Schmidt on the augmented matrix [X | z]: with the right-hand side
// carried along, coefficients and residual are as backward stable as by Householder's method
// (Björck, "Numerical Methods for Least Squares Problems", 1996, section 2.4.4), and X has at most
// three columns. After whitening by L⁻¹ this is generalized least squares, and the normal equations
// XᵀΣ⁻¹X with their squared condition are formed only where there is no factor of all digits.

#include "geostat/regression.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

constexpr const char* kDependent =
    "the points do not determine the {} coefficients of the mean (are they all on one line?)";

/// c ← R⁻¹·c.
void back_substitute(MatrixView<const double> r, std::vector<double>& c) {
  const std::int64_t p = r.cols;
  for (std::int64_t j = p - 1; j >= 0; --j) {
    double& value = c[static_cast<std::size_t>(j)];
    for (std::int64_t k = j + 1; k < p; ++k) value -= r(j, k) * c[static_cast<std::size_t>(k)];
    value /= r(j, j);
  }
}

double deviation(std::span<const double> values, double centre) {
  double square = 0;
  for (const double v : values) square += (v - centre) * (v - centre);
  return std::sqrt(square / static_cast<double>(values.size()));
}

}  // namespace

std::int64_t coefficient_count(Mean mean) noexcept {
  return mean == Mean::zero ? 0 : mean == Mean::linear ? 3 : 1;
}

std::int64_t estimated_count(Mean mean) noexcept {
  return mean == Mean::sample ? 0 : coefficient_count(mean);
}

MeanBasis::MeanBasis(Mean mean, const Points& points) : columns_(estimated_count(mean)) {
  if (columns_ < 3) return;
  x_centre_ = sample_mean(points.x);
  y_centre_ = sample_mean(points.y);
  // A coordinate without extent keeps the scale 1; regress() will find its column dependent.
  if (const double s = deviation(points.x, x_centre_); s > 0) x_scale_ = s;
  if (const double s = deviation(points.y, y_centre_); s > 0) y_scale_ = s;
}

std::array<double, 3> MeanBasis::row(double x, double y) const {
  return {1, (x - x_centre_) / x_scale_, (y - y_centre_) / y_scale_};
}

void MeanBasis::fill(const Points& points, MatrixView<double> design) const {
  for (std::int64_t i = 0; i < points.size(); ++i) {
    const auto values = row(points.x[static_cast<std::size_t>(i)],  //
                            points.y[static_cast<std::size_t>(i)]);
    for (std::int64_t j = 0; j < columns_; ++j) {
      design(i, j) = values[static_cast<std::size_t>(j)];
    }
  }
}

std::vector<double> MeanBasis::in_original_coordinates(std::span<const double> scaled) const {
  std::vector<double> out(scaled.begin(), scaled.end());
  if (columns_ < 3) return out;
  out[1] = scaled[1] / x_scale_;
  out[2] = scaled[2] / y_scale_;
  out[0] = scaled[0] - out[1] * x_centre_ - out[2] * y_centre_;
  return out;
}

double mean_at(std::span<const double> c, double x, double y) {
  if (c.empty()) return 0;
  return c.size() == 1 ? c[0] : c[0] + c[1] * x + c[2] * y;
}

double sample_mean(std::span<const double> values) {
  long double sum = 0;
  for (const double v : values) sum += v;
  return static_cast<double>(sum / static_cast<long double>(values.size()));
}

double Regression::leverage(std::span<const double> u) const {
  const std::size_t p = coefficients.size();
  std::array<double, 3> solution{};
  double square = 0;
  for (std::size_t i = 0; i < p; ++i) {
    double value = u[i];
    for (std::size_t k = 0; k < i; ++k) value -= r[k + i * p] * solution[k];
    solution[i] = value / r[i + i * p];
    square += solution[i] * solution[i];
  }
  return square;
}

Regression regress(MatrixView<double> w, const char* where) {
  const std::int64_t n = w.rows;
  const std::int64_t p = w.cols - 1;
  Regression out;
  out.coefficients.resize(static_cast<std::size_t>(p));
  out.r.resize(static_cast<std::size_t>(p * p));
  const MatrixView<double> r{out.r.data(), p, p, std::max<std::int64_t>(p, 1)};
  std::array<double, 3> length{};
  for (std::int64_t j = 0; j < p; ++j) {
    length[static_cast<std::size_t>(j)] = std::sqrt(dot(w.column(j), w.column(j), n));
  }
  double* z = w.column(p);
  for (std::int64_t j = 0; j < p; ++j) {
    double* q = w.column(j);
    r(j, j) = std::sqrt(dot(q, q, n));
    require(r(j, j) > 1e-10 * length[static_cast<std::size_t>(j)], ErrorKind::numerical, where,
            kDependent, p);
    for (std::int64_t i = 0; i < n; ++i) q[i] /= r(j, j);
    for (std::int64_t k = j + 1; k <= p; ++k) {
      const double along = dot(q, w.column(k), n);
      (k < p ? r(j, k) : out.coefficients[static_cast<std::size_t>(j)]) = along;
      for (std::int64_t i = 0; i < n; ++i) w(i, k) -= along * q[i];
    }
  }
  back_substitute(r, out.coefficients);
  out.residual_square = dot(z, z, n);
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
      const double square = dot(w.column(i), u.column(j), n);
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
    double y = dot(w.column(j), u.column(p), n);
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
  out.residual_square = dot(residual.data(), u.column(p), n);
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
