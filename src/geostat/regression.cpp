// Least squares by modified Gram-Schmidt on the augmented matrix [X | z]: with the right-hand side
// carried along, coefficients and residual are as backward stable as by Householder's method
// (Björck, "Numerical Methods for Least Squares Problems", 1996, section 2.4.4), and X has few
// columns. After whitening by L⁻¹ this is generalized least squares, and the normal equations
// XᵀΣ⁻¹X with their squared condition are formed only where there is no factor of all digits.

#include "geostat/regression.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "geostat/point_sets.hpp"
#include "geostat/units.hpp"

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

double deviation(std::span<const double> values, double centre) {
  std::vector<double> from_centre;
  for (const double v : values) from_centre.push_back(v - centre);
  return root_mean_square(from_centre);
}

/// A coordinate of the unit vector that points to a place of the sphere, where longitudes that
/// differ by 360 are the same: 0 to 2 for cos φ·cos λ, cos φ·sin λ and sin φ.
double on_unit_sphere(const Points& points, std::size_t i, std::size_t coordinate) {
  constexpr double radian = 3.14159265358979323846 / 180;
  const auto place = place_of(points, static_cast<std::int64_t>(i), Distance::great_circle);
  const double longitude = place[0] * radian;
  const double latitude = place[1] * radian;
  if (coordinate == 2) return std::sin(latitude);
  return std::cos(latitude) * (coordinate == 0 ? std::cos(longitude) : std::sin(longitude));
}

/// What the column k > 0 of `columns` has at a point: before the covariates there is 1 alone, or 1
/// with x and y, or 1 with the coordinates on the unit sphere.
double variable(const Points& points, std::size_t i, std::size_t columns, std::size_t k) {
  const std::size_t first = columns - points.covariates.size();  // 1, 3 or 4
  if (k >= first) return points.covariates[k - first][i];
  if (first == 4) return on_unit_sphere(points, i, k - 1);
  return (k == 1 ? points.x : points.y)[i];
}

}  // namespace

std::int64_t coefficient_count(Mean mean, std::int64_t covariates, Distance distance) noexcept {
  switch (mean) {
    case Mean::sample: return 1;
    case Mean::zero: return 0;
    case Mean::constant: return 1 + covariates;
    case Mean::linear: return (distance == Distance::great_circle ? 4 : 3) + covariates;
  }
  return 0;
}

std::int64_t estimated_count(Mean mean, std::int64_t covariates, Distance distance) noexcept {
  return mean == Mean::sample ? 0 : coefficient_count(mean, covariates, distance);
}

MeanBasis::MeanBasis(Mean mean, const Points& points, Distance distance)
    : scales_(static_cast<std::size_t>(
          estimated_count(mean, std::ssize(points.covariates), distance))) {
  std::vector<double> values(points.x.size());
  for (std::size_t k = 1; k < scales_.size(); ++k) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = variable(points, i, scales_.size(), k);
    scales_[k].centre = sample_mean(values);
    // What does not vary keeps the scale 1; regress() will find its column dependent.
    if (const double s = deviation(values, scales_[k].centre); s > 0) scales_[k].scale = s;
  }
}

std::vector<double> MeanBasis::row(const Points& points, std::size_t i) const {
  std::vector<double> out(scales_.size(), 1.0);
  for (std::size_t k = 1; k < out.size(); ++k) {
    out[k] = (variable(points, i, out.size(), k) - scales_[k].centre) / scales_[k].scale;
  }
  return out;
}

void MeanBasis::fill(const Points& points, MatrixView<double> design) const {
  for (std::int64_t i = 0; i < points.size(); ++i) {
    const std::vector<double> values = row(points, static_cast<std::size_t>(i));
    for (std::int64_t j = 0; j < columns(); ++j) {
      design(i, j) = values[static_cast<std::size_t>(j)];
    }
  }
}

std::vector<double> MeanBasis::in_original_units(std::span<const double> scaled) const {
  std::vector<double> out(scaled.begin(), scaled.end());
  for (std::size_t k = 1; k < out.size(); ++k) {
    out[k] = scaled[k] / scales_[k].scale;
    out[0] -= out[k] * scales_[k].centre;
  }
  return out;
}

double mean_at(std::span<const double> c, const Points& points, std::size_t i) {
  if (c.empty()) return 0;
  double mean = c[0];
  for (std::size_t k = 1; k < c.size(); ++k) mean += c[k] * variable(points, i, c.size(), k);
  return mean;
}

double mean_terms_at(std::span<const double> c, const Points& points, std::size_t i) {
  if (c.empty()) return 0;
  double sum = std::abs(c[0]);
  for (std::size_t k = 1; k < c.size(); ++k)
    sum += std::abs(c[k] * variable(points, i, c.size(), k));
  return sum;
}

double sample_mean(std::span<const double> values) {
  long double sum = 0;
  for (const double v : values) sum += v;
  return static_cast<double>(sum / static_cast<long double>(values.size()));
}

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
