#pragma once
// What a fit minimizes, −log-likelihood at the best variance, with its record.
//
// Contract: an evaluation that a journal has is taken from there, and one that it has not goes
// there; so a fit that is run again takes the same way, evaluation by evaluation.

#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "geostat/fit_journal.hpp"
#include "geostat/fit_space.hpp"
#include "geostat/gaussian_process.hpp"

namespace strata {

class FitObjective {
 public:
  /// `stage` numbers the objectives of a fit; the arguments outlive the object. `journal` may be
  /// null.
  FitObjective(const Points& points, std::span<const double> values, Mean mean,
               const FitSpace& space, const CovarianceOptions& options, FitJournal* journal,
               int stage);

  /// −log-likelihood; where the covariance is not positive definite, or rounding changes a
  /// log-likelihood of few points by more than kNoiseMost, something clearly worse than all that
  /// was seen.
  double operator()(const FitSpace::Values& v);

  /// The step that was made at v, to rounding; operator() makes none twice.
  [[nodiscard]] std::optional<std::size_t> step_at(const FitSpace::Values& v) const;

  /// Largest noise accepted in a log-likelihood, in which a standard error is 1/2.
  static constexpr double kNoiseMost = 0.1;
  /// How much the log-likelihood of a step that did not fail changes by rounding: by how much it
  /// differs from one at a range that is the same to nine digits. Less than 1e-3, and 0 here, where
  /// the nugget keeps the covariance away from singular ones.
  [[nodiscard]] double noise_of(std::size_t k);

  [[nodiscard]] std::int64_t n() const noexcept { return points_.size(); }
  [[nodiscard]] const Points& points() const noexcept { return points_; }
  [[nodiscard]] const std::vector<FitStep>& path() const noexcept { return path_; }
  /// Parameters of a step that did not fail.
  [[nodiscard]] static MaternParameters parameters_of(const FitStep& step) {
    return {step.variance, step.range, step.smoothness, step.nugget, step.separation};
  }
  /// Where every step was made, and what operator() said.
  [[nodiscard]] const std::vector<std::pair<FitSpace::Values, double>>& seen() const noexcept {
    return seen_;
  }
  /// The step with the largest likelihood, the first of several; none if all failed.
  [[nodiscard]] std::optional<std::size_t> best() const;
  /// The best of step `begin` and those from step `first` on.
  [[nodiscard]] std::size_t best_of_search(std::size_t begin, std::size_t first) const;
  /// What is known to a search from `at`: coordinates in `space` and values. What is better than
  /// there and, by the factor of a covariance of coordinates, further away than a deviation is
  /// another mode, and is left out.
  [[nodiscard]] std::vector<std::pair<std::vector<double>, double>> known_around(
      const FitSpace::Values& at, const FitSpace& space, const std::vector<double>& factor) const;
  /// What log_likelihood() says at step k, from the evaluation that was made there. If none was
  /// made by this object (all came from the journal), its report is of one that is made now.
  [[nodiscard]] Likelihood likelihood(std::size_t k);
  /// What rounding in FP64 does to the log-likelihood of step k, at its variance: evaluates once
  /// more. NaN if that fails.
  [[nodiscard]] LikelihoodError rounding(std::size_t k);
  /// What was asked of lower precisions, if they failed: from then on evaluations are made in FP64,
  /// since tries that fail cost more, and evaluations that follow are of covariances much alike.
  [[nodiscard]] const std::optional<MixedReport>& failed_mixed() const noexcept {
    return failed_mixed_;
  }
  /// Lets go of the memory of its factor; what needs one makes it anew.
  void let_go() { process_.reset(); }
  /// Logarithm of the best variance of the last step.
  [[nodiscard]] double log_variance() const { return std::log(path_.back().variance); }

 private:
  [[nodiscard]] double value_of(const FitStep& step);
  void give_up_lower_precisions();
  void check_noise(JournalEntry& entry);
  [[nodiscard]] double noise_at(const FitSpace::Values& v, double log_likelihood);
  [[nodiscard]] FitStep step_of(const FitSpace::Values& v,
                                const GaussianProcess::Evaluation& evaluation) const;
  GaussianProcess& process();
  [[nodiscard]] MaternParameters at_unit_variance(const FitSpace::Values& v) const {
    return {1, v[FitSpace::range], v[FitSpace::smoothness], v[FitSpace::ratio],
            space_.separation_of(v)};
  }
  /// At variance 1.
  [[nodiscard]] GaussianProcess::Evaluation evaluate(const FitSpace::Values& v);

  const Points& points_;
  std::span<const double> values_;
  Mean mean_;
  const FitSpace& space_;
  CovarianceOptions options_;
  FitJournal* journal_;
  int stage_;
  std::optional<GaussianProcess> process_;  ///< made when the first evaluation needs it
  std::vector<FitStep> path_;
  std::vector<GaussianProcess::Evaluation> evaluations_;  ///< of the steps
  std::vector<std::pair<FitSpace::Values, double>> seen_;
  double worst_ = 0;
  bool any_ = false;
  std::optional<MixedReport> failed_mixed_;
};

}  // namespace strata
