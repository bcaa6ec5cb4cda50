#pragma once
// Kriging: a model whose covariance is factored, ready to predict many sets of targets.
//
// Contract: checks the model, factors once. `where` names the public function in errors. Not
// thread-safe.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cholesky/covariance_solver.hpp"
#include "cholesky/refinement.hpp"
#include "geostat/mean_basis.hpp"
#include "geostat/ordered_points.hpp"
#include "geostat/prediction_rounding.hpp"
#include "geostat/regression.hpp"
#include "geostat/units.hpp"
#include "strata/geostat.hpp"

namespace strata {

/// What every function of a model asks of it.
void check_model(const Model& model, const char* where);
/// … and of its targets: the coordinates and covariates of its points, at places that there are.
void check_targets(const Model& model, const Points& targets, const char* where);

class Kriging {
 public:
  /// `targets`: about how many there will be, of which `chunk` at a time (0: as many as fit).
  /// Throws as predict().
  Kriging(const Model& model, std::int64_t targets, std::int64_t chunk,
          const CovarianceOptions& options, const char* where);

  /// What the factorization did.
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }
  /// How many targets are computed at a time if there are `targets`: pieces of so many, and one
  /// that is smaller at the end, get the bits of all at once.
  [[nodiscard]] std::int64_t targets_at_a_time(std::int64_t targets, std::int64_t chunk) const;

  /// Where the factor has few digits; of all targets so far.
  [[nodiscard]] std::optional<PredictionCertificate> certificate() const;
  /// The worst of all targets so far.
  [[nodiscard]] PredictionRounding rounding() const;
  /// Mean and standard errors at checked targets; `run` is left empty.
  [[nodiscard]] Prediction predict(const Points& targets, std::int64_t chunk);

  /// The kriging of other values at the same points: for each column of n values the means at the
  /// targets, m × columns. Coefficients of `constant` and `linear` are estimated from each column,
  /// and those of `sample` and `zero` are 0.
  [[nodiscard]] std::vector<double> interpolate(MatrixView<const double> values,
                                                const Points& targets);

 private:
  void whiten();
  void whiten_by_factor(MatrixView<double> w);
  void whiten_refined(MatrixView<const double> w);
  void note(const Refinement& refinement);
  void note_rounding(const Points& targets, const Prediction& part);
  void prepare_rounding();
  void estimate_rounding(const Points& targets, const Prediction& part);
  [[nodiscard]] std::vector<char> at_data(const Points& targets) const;
  [[nodiscard]] std::vector<char> near_data(const std::vector<double>& targets,
                                            std::int64_t m) const;
  void subtract_means(MatrixView<double> values, std::vector<std::vector<double>>& coefficients);
  [[nodiscard]] Prediction predict_in_units(const Points& targets, std::int64_t chunk);
  [[nodiscard]] std::optional<PredictionCertificate> certificate_in_units() const;
  [[nodiscard]] double mean_of(const Points& points, std::size_t i) const;
  [[nodiscard]] double mean_terms_of(const Points& points, std::size_t i) const;
  void predict_one(const Points& targets, std::size_t t, const double* products, double square,
                   Prediction& out) const;

  Units units_;
  std::optional<Model> safe_;  ///< the model in units_, unless these are the given ones
  const Model& model_;         ///< in units_, as all that follows
  const char* where_;
  OrderedPoints points_;
  MeanBasis basis_;
  CovarianceSolver solver_;
  RunReport report_;
  std::vector<double> data_;    ///< [L⁻¹X | L⁻¹(z − Xβ)], n × (p + 1), or …
  std::vector<double> design_;  ///< … with few digits, Lᵀ·Σ⁻¹ for L⁻¹; then X and …
  std::vector<double> solutions_;  ///< … Σ⁻¹X, too
  std::optional<PredictionCertificate> certificate_;
  double relative_error_of_squares_ = 0;  ///< by the refinements so far
  double rounding_of_variance_ = 0;
  double solution_length_ = 0;        ///< with few digits, ‖Σ⁻¹(z − Xβ)‖₂, …
  double residual_length_ = 0;        ///< … ‖·‖₂ of what its solve left over …
  double largest_value_ = 0;          ///< … and max |z|
  std::vector<double> coefficients_;  ///< β of the model or the sample; empty: estimated, as …
  Regression regression_;             ///< … its coefficients of the columns of basis_
  std::optional<FactoredProblem> problem_;  ///< in FP64, once something was predicted, with …
  std::vector<double> solved_;  ///< … [Σ⁻¹X·R⁻¹ | Σ⁻¹(z − Xβ)], R of regression_
  std::vector<std::array<double, 4>> places_;  ///< of the data, sorted
  double largest_residual_ = 0;
  PredictionRounding rounding_;
};

}  // namespace strata
