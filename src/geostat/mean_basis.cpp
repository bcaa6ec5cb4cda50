// Method: variables are differences from a centre, which are exact in double-double. On the sphere
// the unit vector is seen from the plane that touches it at one of the points: what it has along
// the parallel, along the meridian and below the plane,
//   cos φ·sin Δλ,  sin Δφ + 2·sin φ₀·cos φ·sin²(Δλ/2),  2·(sin²(Δφ/2) + cos φ·cos φ₀·sin²(Δλ/2)),
// are its coordinates turned, and small beside each other as they are. They are orthogonalized in
// double-double by the modified method of Gram and Schmidt: however nearly they depend on each
// other, what is left of a variable has all digits of a double.

#include "geostat/mean_basis.hpp"

#include <algorithm>
#include <cmath>

#include "geostat/point_sets.hpp"

namespace strata {
namespace {

constexpr double kUnit = 0x1p-53;
constexpr long double kRadian = 3.14159265358979323846264338327950288L / 180;

DoubleDouble wide(long double value) {
  const auto high = static_cast<double>(value);
  return {high, static_cast<double>(value - static_cast<long double>(high))};
}
long double narrow(const DoubleDouble& value) {
  return static_cast<long double>(value.hi) + static_cast<long double>(value.lo);
}
DoubleDouble scaled_by(const DoubleDouble& value, int exponent) {
  return {std::scalbn(value.hi, exponent), std::scalbn(value.lo, exponent)};
}

long double square(long double x) { return x * x; }

/// A coordinate of the unit vector that points to a place of the sphere, where longitudes that
/// differ by 360 are the same: 0 to 2 for cos φ·cos λ, cos φ·sin λ and sin φ.
long double on_unit_sphere(std::array<double, 2> place, std::size_t coordinate) {
  const long double longitude = place[0] * kRadian;
  const long double latitude = place[1] * kRadian;
  if (coordinate == 2) return std::sin(latitude);
  return std::cos(latitude) * (coordinate == 0 ? std::cos(longitude) : std::sin(longitude));
}

std::array<double, 2> sphere_place(const Points& points, std::size_t i) {
  const auto place = place_of(points, static_cast<std::int64_t>(i), Distance::great_circle);
  return {place[0], place[1]};
}

/// What is coefficient k > 0 of `count` multiplied with: before the covariates there is 1 alone, or
/// 1 with x and y, or 1 with the coordinates on the unit sphere.
DoubleDouble variable(const Points& points, std::size_t i, std::size_t count, std::size_t k) {
  const std::size_t first = count - points.covariates.size();  // 1, 3 or 4
  if (k >= first) return DoubleDouble(points.covariates[k - first][i]);
  if (first == 4) return wide(on_unit_sphere(sphere_place(points, i), k - 1));
  return DoubleDouble((k == 1 ? points.x : points.y)[i]);
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
    : p_(static_cast<std::size_t>(estimated_count(mean, std::ssize(points.covariates), distance))),
      first_(p_ - std::min(p_, points.covariates.size())),
      centres_(p_),
      exponents_(p_),
      triangle_(p_ * p_) {
  if (p_ == 0) return;
  t(0, 0) = DoubleDouble(1.0);
  if (p_ == 1 || points.x.empty()) return;
  set_centres(points);
  orthogonalize(points);
}

void MeanBasis::set_centres(const Points& points) {
  if (on_sphere()) touches_ = sphere_place(points, 0);
  for (std::size_t k = on_sphere() ? first_ : 1; k < p_; ++k) {
    double largest = 0;
    for (std::size_t i = 0; i < points.x.size(); ++i)
      largest = std::max(largest, std::abs(variable(points, i, p_, k).hi));
    if (!(largest > 0) || !std::isfinite(largest)) continue;
    exponents_[k] = std::ilogb(largest) + 1;
    std::vector<double> values;
    for (std::size_t i = 0; i < points.x.size(); ++i)
      values.push_back(std::scalbn(variable(points, i, p_, k).hi, -exponents_[k]));
    centres_[k] = sample_mean(values);
  }
}

std::vector<DoubleDouble> MeanBasis::variables(const Points& points, std::size_t i) const {
  std::vector<DoubleDouble> v(p_, DoubleDouble(1.0));
  if (on_sphere()) {
    const auto [longitude, latitude] = sphere_place(points, i);
    const long double east = std::remainder(
        static_cast<long double>(longitude) - static_cast<long double>(touches_[0]), 360.0L);
    const long double north =
        (static_cast<long double>(latitude) - static_cast<long double>(touches_[1])) * kRadian;
    const long double turn = square(std::sin(east * kRadian / 2));
    const long double here = std::cos(latitude * kRadian);
    const long double there = touches_[1] * kRadian;
    v[1] = wide(here * std::sin(east * kRadian));
    v[2] = wide(std::sin(north) + 2 * std::sin(there) * here * turn);
    v[3] = wide(2 * (square(std::sin(north / 2)) + here * std::cos(there) * turn));
  }
  for (std::size_t k = on_sphere() ? first_ : 1; k < p_; ++k)
    v[k] = two_sum(std::scalbn(variable(points, i, p_, k).hi, -exponents_[k]), -centres_[k]);
  return v;
}

void MeanBasis::orthogonalize(const Points& points) {
  const std::size_t n = points.x.size();
  const DoubleDouble count(static_cast<double>(n));
  std::vector<std::vector<DoubleDouble>> columns(p_);
  for (std::size_t i = 0; i < n; ++i) {
    const std::vector<DoubleDouble> v = variables(points, i);
    for (std::size_t k = 0; k < p_; ++k) columns[k].push_back(v[k]);
  }
  const auto mean_product = [&](std::size_t k, std::size_t j) {
    DoubleDouble sum;
    for (std::size_t i = 0; i < n; ++i) sum = sum + columns[k][i] * columns[j][i];
    return sum / count;
  };
  // What the rounding of coordinates, in degrees or in units of their size, is of each column.
  std::vector<double> noise(p_, 4 * kUnit);
  std::vector<double> size(p_, 1);
  for (std::size_t j = 1; j < p_; ++j) {
    if (on_sphere() && j < first_) noise[j] = 8 * kUnit * (j == 3 ? size[1] + size[2] : 1);
    for (std::size_t k = 0; k < j; ++k) {
      if (t(k, k).hi == 0) continue;
      t(k, j) = mean_product(k, j);
      for (std::size_t i = 0; i < n; ++i) columns[j][i] = columns[j][i] - columns[k][i] * t(k, j);
      if (k == 0) size[j] = square_root(mean_product(j, j)).hi;
      if (k > 0) noise[j] += std::abs(t(k, j).hi) / t(k, k).hi * noise[k];
    }
    t(j, j) = square_root(mean_product(j, j));
    if (!(t(j, j).hi > 2 * noise[j])) {
      t(j, j) = DoubleDouble();
      continue;
    }
    // Sines have 64 bits.
    if (on_sphere()) roundings_ = std::max(roundings_, size[j] / t(j, j).hi * 0x1p-8);
    for (DoubleDouble& value : columns[j]) value = value / t(j, j);
  }
}

std::vector<double> MeanBasis::row(const Points& points, std::size_t i) const {
  std::vector<double> out(p_, 1.0);
  if (p_ <= 1) return out;
  std::vector<DoubleDouble> q = variables(points, i);
  for (std::size_t j = 1; j < p_; ++j) {
    for (std::size_t k = 0; k < j; ++k) q[j] = q[j] - q[k] * t(k, j);
    q[j] = t(j, j).hi > 0 ? q[j] / t(j, j) : DoubleDouble();
    out[j] = q[j].hi;
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

std::vector<double> MeanBasis::in_original_units(std::span<const double> c) const {
  // Columns times c are variables times T⁻¹·c.
  std::vector<DoubleDouble> b;
  for (const double value : c) b.emplace_back(value);
  for (std::size_t j = p_; j-- > 0;) {
    for (std::size_t k = j + 1; k < p_; ++k) b[j] = b[j] - t(j, k) * b[k];
    b[j] = t(j, j).hi > 0 ? b[j] / t(j, j) : DoubleDouble();
  }
  for (std::size_t k = 1; k < p_; ++k) {
    b[0] = b[0] - DoubleDouble(centres_[k]) * b[k];
    b[k] = scaled_by(b[k], -exponents_[k]);
  }
  if (on_sphere()) {
    const std::array<double, 2> pole{touches_[0], touches_[1]};
    const long double longitude = pole[0] * kRadian;
    const long double latitude = pole[1] * kRadian;
    const std::array east{-std::sin(longitude), std::cos(longitude), 0.0L};
    const std::array north{-std::sin(latitude) * std::cos(longitude),
                           -std::sin(latitude) * std::sin(longitude), std::cos(latitude)};
    const std::array turned{b[1], b[2], b[3]};
    b[0] = b[0] + turned[2];
    for (std::size_t k = 0; k < 3; ++k)
      b[k + 1] = wide(narrow(turned[0]) * east[k] + narrow(turned[1]) * north[k] -
                      narrow(turned[2]) * on_unit_sphere(pole, k));
  }
  std::vector<double> out;
  for (const DoubleDouble& value : b) out.push_back(value.hi);
  return out;
}

double mean_at(std::span<const double> c, const Points& points, std::size_t i) {
  if (c.empty()) return 0;
  DoubleDouble mean(c[0]);
  for (std::size_t k = 1; k < c.size(); ++k)
    mean = mean + DoubleDouble(c[k]) * variable(points, i, c.size(), k);
  return mean.hi;
}

double mean_terms_at(std::span<const double> c, const Points& points, std::size_t i) {
  if (c.empty()) return 0;
  double sum = std::abs(c[0]);
  for (std::size_t k = 1; k < c.size(); ++k)
    sum += std::abs(c[k] * variable(points, i, c.size(), k).hi);
  return sum;
}

double sample_mean(std::span<const double> values) {
  long double sum = 0;
  for (const double v : values) sum += v;
  return static_cast<double>(sum / static_cast<long double>(values.size()));
}

}  // namespace strata
