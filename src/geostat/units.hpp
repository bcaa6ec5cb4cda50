#pragma once
// Units of length and of values in which squares neither overflow nor underflow.
//
// Contract: other units are the given ones times a power of two, so that a change of units rounds
// nothing: covariances, and what follows from them, have the bits that they would have in a double
// of any exponent. Ordinary problems stay in the units in which they are given; others are chosen
// where extent, range or values are outside [2⁻²⁰⁰, 2²⁰⁰], or variances outside its square. Times
// and covariates keep theirs, and so do points on the sphere. Messages name what was given.

#include <span>
#include <vector>

#include "strata/geostat.hpp"

namespace strata {

/// The square root of the mean of the squares, none of which overflows.
[[nodiscard]] double root_mean_square(std::span<const double> values);

class Units {
 public:
  /// For a covariance that is given.
  Units(const Points& points, const MaternParameters& parameters, const char* where);
  /// For one that is estimated. Throws Error{numerical} if the square of what the values vary by is
  /// out of the range of doubles, for so is their variance.
  Units(const Points& points, std::span<const double> values, const FitOptions& options,
        const char* where);
  /// The unit of length alone; values stay as they are.
  Units(const Points& points, Distance distance);

  /// Nothing changes.
  [[nodiscard]] bool as_given() const noexcept { return length_ == 0 && value_ == 0; }

  // What was given, in these units. Throw Error{input} where it is then out of the range of
  // doubles.
  [[nodiscard]] Points of(Points points) const;
  [[nodiscard]] std::vector<double> of(std::span<const double> values) const;
  [[nodiscard]] MaternParameters of(MaternParameters parameters) const;
  [[nodiscard]] FitOptions of(FitOptions options) const;
  [[nodiscard]] Model of(Model model) const;

  // Back to the units that were given, n observations.
  [[nodiscard]] double length(double in_units) const;
  [[nodiscard]] double value(double in_units) const;
  void restore(std::span<double> values) const;
  void restore(FactorInfo& factor, std::int64_t n) const;
  void restore(Likelihood& likelihood, std::int64_t n, Mean mean) const;
  void restore(Prediction& prediction) const;
  void restore(PredictionCertificate& certificate) const;
  void restore(PredictionRounding& rounding) const;
  /// Throws Error{numerical} where an estimate is out of the range of doubles.
  void restore(FitResult& result, std::int64_t n, Mean mean) const;

 private:
  [[nodiscard]] double shifted(double given, int exponent, const char* name) const;
  [[nodiscard]] double variance(double in_units) const;
  void restore(MaternParameters& parameters) const;

  const char* where_;
  int length_ = 0;  ///< lengths are multiplied by 2^length_ …
  int value_ = 0;   ///< … and values by 2^value_
};

}  // namespace strata
