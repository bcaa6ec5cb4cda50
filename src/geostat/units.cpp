// Which units: those in which extent and range lie on both sides of 1, as far as there are both.
// Where they are further apart than 2⁸⁰⁰, those of the extent, with the range at a distance that
// makes every correlation 0 or 1 to rounding. For a unit of values u, z/u has the log-likelihood of
// z and n·log u more.

#include "geostat/units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.hpp"
#include "base/constants.hpp"

namespace strata {
namespace {

constexpr int kSafe = 200;  ///< exponents up to this, of lengths and of values
constexpr double kLogTwo = 0.69314718055994530942;

bool is_safe(int exponent) { return exponent >= -kSafe && exponent <= kSafe; }

/// The exponent of half of the difference between the largest and the least; none if there is none.
std::optional<int> half_spread(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double half = *high / 2 - *low / 2;  // the whole may overflow
  if (half > 0) return std::ilogb(half);
  return *high > *low ? std::optional(std::numeric_limits<double>::min_exponent -
                                      std::numeric_limits<double>::digits)
                      : std::nullopt;
}

/// The exponent of what values vary by about a mean of this kind.
std::optional<int> spread_about_mean(std::span<const double> values, Mean mean) {
  if (mean != Mean::zero) return half_spread(values);
  const double largest =
      std::fabs(*std::max_element(values.begin(), values.end(),
                                  [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
  return largest > 0 ? std::optional(std::ilogb(largest)) : std::nullopt;
}

int length_exponent(const Points& points, std::optional<double> range) {
  std::optional<int> extent;
  int farthest = std::numeric_limits<int>::min();
  for (const std::vector<double>* coordinate : {&points.x, &points.y, &points.z}) {
    extent = std::max(extent, half_spread(*coordinate));
    for (const double c : *coordinate)
      if (c != 0) farthest = std::max(farthest, std::ilogb(c));
  }
  if (!extent && !range) return 0;
  const int of_range = range ? std::ilogb(*range) : *extent;
  const int of_extent = extent.value_or(of_range);
  if (is_safe(of_extent) && is_safe(of_range)) return 0;
  const int middle = (of_extent + of_range) / 2;
  const int most = 2 * kSafe;
  const int exponent = std::abs(of_extent - middle) <= most
                           ? -middle
                           : (of_extent > middle ? most : -most) - of_extent;
  // A coordinate in which all points agree may be far larger than what they differ by.
  constexpr int kFarthest = 1000;
  return farthest > 0 ? std::min(exponent, kFarthest - farthest) : exponent;
}

std::optional<double> range_of(const FitOptions& options) {
  if (options.range) return options.range;
  return options.start ? std::optional(options.start->range) : std::nullopt;
}

}  // namespace

double root_mean_square(std::span<const double> values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::fabs(v));
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  const int exponent = std::ilogb(largest);
  double sum = 0;
  for (const double v : values) {
    const double scaled = std::scalbn(v, -exponent);
    sum += scaled * scaled;
  }
  return std::scalbn(std::sqrt(sum / static_cast<double>(values.size())), exponent);
}

Units::Units(const Points& points, Distance distance)
    : where_("geostat"),
      length_(distance == Distance::great_circle ? 0 : length_exponent(points, std::nullopt)) {}

Units::Units(const Points& points, const MaternParameters& parameters, const char* where)
    : where_(where) {
  if (parameters.separation.distance != Distance::great_circle)
    length_ = length_exponent(points, parameters.range);
  const int sill = std::ilogb(std::max(parameters.variance, parameters.nugget));
  if (!is_safe(sill / 2)) value_ = -sill / 2;
}

Units::Units(const Points& points, std::span<const double> values, const FitOptions& options,
             const char* where)
    : where_(where) {
  if (options.separation.distance != Distance::great_circle)
    length_ = length_exponent(points, range_of(options));
  constexpr int kSquareRepresentable = 500;
  const std::optional<int> spread = spread_about_mean(values, options.mean);
  if (!spread || is_safe(*spread)) return;
  require(std::abs(*spread) <= kSquareRepresentable, ErrorKind::numerical, where,
          "the values vary by about {:.1e}, and the square of that, which their variance is like, "
          "is out of the range of doubles: give them in another unit",
          std::scalbn(1.0, *spread));
  value_ = -*spread;
}

/// 0, or what is left of `given` to all of its digits.
double Units::shifted(double given, int exponent, const char* name) const {
  const double out = std::scalbn(given, exponent);
  require(given == 0 || std::isnormal(out), ErrorKind::input, where_,
          "{} is {}, too far from the extent of the points, the range, the variance or the nugget "
          "beside it: their ratio is out of the range of doubles",
          name, given);
  return out;
}

Points Units::of(Points points) const {
  if (length_ == 0) return points;
  constexpr const char* names[]{"x", "y", "z"};
  std::vector<double>* const coordinates[]{&points.x, &points.y, &points.z};
  for (std::size_t k = 0; k < std::size(coordinates); ++k) {
    for (std::size_t i = 0; i < coordinates[k]->size(); ++i) {
      double& c = (*coordinates[k])[i];
      const double given = c;
      c = std::scalbn(c, length_);
      require(std::isfinite(c), ErrorKind::input, where_,
              "{}[{}] is {}, too far from the points of the model for the distances between those, "
              "or for their range (rows count from 0)",
              names[k], i, given);
    }
  }
  return points;
}

std::vector<double> Units::of(std::span<const double> values) const {
  std::vector<double> out(values.begin(), values.end());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::scalbn(out[i], value_);
    require(std::isfinite(out[i]), ErrorKind::input, where_,
            "values[{}] is {}, too large for the variance and the nugget beside it: its square is "
            "out of the range of doubles (rows count from 0)",
            i, values[i]);
  }
  return out;
}

MaternParameters Units::of(MaternParameters p) const {
  p.range = shifted(p.range, length_, "range");
  p.variance = shifted(p.variance, 2 * value_, "variance");
  p.nugget = shifted(p.nugget, 2 * value_, "nugget");
  return p;
}

FitOptions Units::of(FitOptions options) const {
  if (options.range) options.range = shifted(*options.range, length_, "range");
  if (options.nugget) options.nugget = shifted(*options.nugget, 2 * value_, "nugget");
  if (options.start) options.start = of(*options.start);
  if (options.range_bounds) {
    Bounds& bounds = *options.range_bounds;
    bounds = {shifted(bounds.lower, length_, "lower bound of range"),
              shifted(bounds.upper, length_, "upper bound of range")};
  }
  return options;
}

Model Units::of(Model model) const {
  if (as_given()) return model;
  model.parameters = of(model.parameters);
  // Coefficients of x and y, where there are any, stand before those of the covariates.
  const std::size_t covariates = model.points.covariates.size();
  for (std::size_t k = 0; k < model.mean_coefficients.size(); ++k) {
    const bool slope =
        model.mean == Mean::linear && k > 0 && k < model.mean_coefficients.size() - covariates;
    double& c = model.mean_coefficients[k];
    const double given = c;
    c = std::scalbn(c, value_ - (slope ? length_ : 0));
    require(std::isfinite(c), ErrorKind::input, where_,
            "a coefficient of the mean is {}, too large for the variance and the nugget beside it",
            given);
  }
  model.points = of(std::move(model.points));
  model.values = of(std::span<const double>(model.values));
  return model;
}

double Units::length(double in_units) const { return std::scalbn(in_units, -length_); }
double Units::value(double in_units) const { return std::scalbn(in_units, -value_); }
double Units::variance(double in_units) const { return std::scalbn(in_units, -2 * value_); }

void Units::restore(std::span<double> values) const {
  for (double& v : values) v = value(v);
}

void Units::restore(MaternParameters& p) const {
  p.range = length(p.range);
  p.variance = variance(p.variance);
  p.nugget = variance(p.nugget);
  require(std::isnormal(p.variance) && std::isnormal(p.range) && std::isfinite(p.nugget),
          ErrorKind::numerical, where_,
          "a variance of {:.3g}, a nugget of {:.3g} or a range of {:.3g} is out of the range of "
          "doubles: give the data in other units",
          p.variance, p.nugget, p.range);
}

void Units::restore(FactorInfo& factor, std::int64_t n) const {
  factor.log_determinant -= 2 * (static_cast<double>(n) * value_ * kLogTwo);
  factor.bad_pivot = variance(factor.bad_pivot);
}

void Units::restore(Likelihood& l, std::int64_t n, Mean mean) const {
  const double shift = static_cast<double>(n) * value_ * kLogTwo;
  l.log_likelihood += shift;
  restore(l.factor, n);
  l.rounding.log_determinant += 4 * kUnitRoundoff * std::fabs(shift);
  restore(l.mean_coefficients);
  // b and c, of x and y.
  if (mean == Mean::linear)
    for (std::size_t k = 1; k < 3 && k < l.mean_coefficients.size(); ++k)
      l.mean_coefficients[k] = std::scalbn(l.mean_coefficients[k], length_);
}

void Units::restore(PredictionCertificate& certificate) const {
  certificate.mean_error = value(certificate.mean_error);
  certificate.variance_error = variance(certificate.variance_error);
}

void Units::restore(PredictionRounding& rounding) const {
  rounding.mean_error = value(rounding.mean_error);
  rounding.standard_error_error = value(rounding.standard_error_error);
}

void Units::restore(Prediction& prediction) const {
  for (std::vector<double>* values :
       {&prediction.mean, &prediction.standard_error, &prediction.process_standard_error})
    restore(*values);
  if (prediction.certificate) restore(*prediction.certificate);
  restore(prediction.rounding);
}

void Units::restore(FitResult& result, std::int64_t n, Mean mean) const {
  restore(result.parameters);
  restore(result.likelihood, n, mean);
  const double shift = static_cast<double>(n) * value_ * kLogTwo;
  for (FitStep& step : result.path) {
    step.range = length(step.range);
    step.nugget = variance(step.nugget);
    step.variance = variance(step.variance);
    step.log_likelihood += shift;
  }
  StandardErrors& e = result.standard_errors;
  e.variance = variance(e.variance);
  e.nugget = variance(e.nugget);
  e.range = length(e.range);
  for (FitBound& bound : result.at_bounds) {
    if (bound.parameter == "range") bound.bound = length(bound.bound);
    if (bound.parameter == "variance") bound.bound = variance(bound.bound);
  }
}

}  // namespace strata
