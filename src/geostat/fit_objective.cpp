// With Σ = σ²(R + g·I), g = nugget/variance, the likelihood is largest in σ² at
// σ̂² = rᵀ(R + gI)⁻¹r / n, which leaves −½(n log 2πσ̂² + log|R + gI| + n) (profile likelihood; e.g.
// Stein, "Interpolation of Spatial Data", 1999, section 6.4). A nugget held at τ² > 0 turns this
// round: σ² = τ²/g.

#include "geostat/fit_objective.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/constants.hpp"
#include "geostat/small_matrix.hpp"

namespace strata {

FitObjective::FitObjective(const Points& points, std::span<const double> values, Mean mean,
                           const FitSpace& space, const CovarianceOptions& options,
                           FitJournal* journal, int stage)
    : points_(points),
      values_(values),
      mean_(mean),
      space_(space),
      options_(options),
      journal_(journal),
      stage_(stage) {}

GaussianProcess& FitObjective::process() {
  if (!process_) process_.emplace(points_, values_, mean_, space_.separation.distance, options_);
  return *process_;
}

FitStep FitObjective::step_of(const FitSpace::Values& v,
                              const GaussianProcess::Evaluation& evaluation) const {
  FitStep step{v[FitSpace::range],     v[FitSpace::smoothness], kNaN, kNaN, -kInfinity, 0,
               space_.separation_of(v)};
  if (!evaluation.factor.ok) return step;
  const auto count = static_cast<double>(n());
  const double variance =
      space_.nugget ? *space_.nugget / v[FitSpace::ratio] : evaluation.quadratic_form / count;
  const double likelihood =
      gaussian_log_likelihood(n(), evaluation.factor.log_determinant + count * std::log(variance),
                              evaluation.quadratic_form / variance);
  if (!std::isfinite(likelihood)) return step;
  step.log_likelihood = likelihood;
  step.variance = variance;
  step.nugget = space_.nugget.value_or(v[FitSpace::ratio] * variance);
  return step;
}

GaussianProcess::Evaluation FitObjective::evaluate(const FitSpace::Values& v) {
  return process().evaluate(at_unit_variance(v), kFitWhere);
}

/// Rounding changes a log-likelihood by about u·n/g at most for a noise ratio g, which no
/// eigenvalue of R + g·I is below; it is measured (Moré and Wild, "Estimating computational noise",
/// SIAM J. Sci. Comput. 33, 2011) where that may be more than 1e-3.
double FitObjective::noise_at(const FitSpace::Values& v, double log_likelihood) {
  if (v[FitSpace::ratio] > 1e-10 * static_cast<double>(n())) return 0;
  FitSpace::Values beside = v;
  beside[FitSpace::range] *= 1 + 0x1p-30;
  const FitStep step = step_of(beside, evaluate(beside));
  return std::fabs(step.log_likelihood - log_likelihood);
}

double FitObjective::noise_of(std::size_t k) {
  return noise_at(seen_[k].first, path_[k].log_likelihood);
}

/// An evaluation on few points that would be the best, but for rounding, counts as one that failed.
void FitObjective::check_noise(JournalEntry& entry) {
  constexpr std::int64_t kFew = 500;
  if (n() > kFew || options_.mixed.on() || !entry.evaluation.factor.ok) return;
  const double found = step_of(entry.at, entry.evaluation).log_likelihood;
  const auto at = best();
  if (at && found < path_[*at].log_likelihood) return;
  if (noise_at(entry.at, found) > kNoiseMost) entry.evaluation.factor.ok = false;
}

/// What is minimized; remembers the worst.
double FitObjective::value_of(const FitStep& step) {
  if (step.log_likelihood == -kInfinity) {
    // Clearly worse than anything seen, yet not so far off that it spoils the quadratic model.
    return any_ ? worst_ + std::max(10.0, 0.1 * std::fabs(worst_)) : 1e10;
  }
  worst_ = any_ ? std::max(worst_, -step.log_likelihood) : -step.log_likelihood;
  any_ = true;
  return -step.log_likelihood;
}

std::optional<std::size_t> FitObjective::step_at(const FitSpace::Values& v) const {
  constexpr double kRounding = 0x1p-48;  // of coordinates and back
  const auto same = [](double a, double b) {
    return a == b || std::fabs(a - b) <= kRounding * std::fabs(a);
  };
  const auto found = std::find_if(seen_.begin(), seen_.end(), [&](const auto& s) {
    return std::equal(v.begin(), v.end(), s.first.begin(), same);
  });
  if (found == seen_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - seen_.begin());
}

double FitObjective::operator()(const FitSpace::Values& v) {
  if (const auto step = step_at(v)) return seen_[*step].second;
  const auto begin = std::chrono::steady_clock::now();
  JournalEntry entry{stage_, v, {}, 0};
  if (journal_ == nullptr || !journal_->replay(entry)) {
    entry.evaluation = evaluate(v);
    const auto& mixed = process().report().mixed;
    entry.lower_failed = options_.mixed.on() && mixed && mixed->accuracy == 0;
    check_noise(entry);
    entry.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (journal_ != nullptr) journal_->add(entry);
  }
  path_.push_back(step_of(v, entry.evaluation));
  path_.back().seconds = entry.seconds;
  evaluations_.push_back(std::move(entry.evaluation));
  if (entry.lower_failed) give_up_lower_precisions();
  seen_.emplace_back(v, value_of(path_.back()));
  return seen_.back().second;
}

void FitObjective::give_up_lower_precisions() {
  failed_mixed_.emplace();
  failed_mixed_->accuracy_asked = options_.mixed.accuracy;
  failed_mixed_->note = "lower precisions failed: the search went on in FP64";
  options_.mixed = {};
  process_.reset();
}

std::optional<std::size_t> FitObjective::best() const {
  if (!any_) return std::nullopt;
  const auto found = std::max_element(
      path_.begin(), path_.end(),
      [](const FitStep& a, const FitStep& b) { return a.log_likelihood < b.log_likelihood; });
  return static_cast<std::size_t>(found - path_.begin());
}

std::size_t FitObjective::best_of_search(std::size_t begin, std::size_t first) const {
  std::size_t best = begin;
  for (std::size_t k = first; k < path_.size(); ++k)
    if (path_[k].log_likelihood > path_[best].log_likelihood) best = k;
  return best;
}

std::vector<std::pair<std::vector<double>, double>> FitObjective::known_around(
    const FitSpace::Values& at, const FitSpace& space, const std::vector<double>& factor) const {
  const auto here = step_at(at);
  const std::vector<double> x0 = space.coordinates(at);
  std::vector<std::pair<std::vector<double>, double>> out;
  for (const auto& [v, value] : seen_) {
    if (!space.holds(v)) continue;
    std::vector<double> x = space.coordinates(v);
    std::vector<double> d(x.size());
    std::transform(x.begin(), x.end(), x0.begin(), d.begin(), std::minus<>());
    const std::vector<double> scaled = solve_spd(factor, d);
    const double away = std::inner_product(d.begin(), d.end(), scaled.begin(), 0.0);
    if (!here || value >= seen_[*here].second || away <= 1) out.emplace_back(std::move(x), value);
  }
  return out;
}

Likelihood FitObjective::likelihood(std::size_t k) {
  const FitStep& step = path_[k];
  const GaussianProcess::Evaluation& made = evaluations_[k];
  if (!process_) (void)evaluate(seen_[k].first);
  Likelihood out{step.log_likelihood, made.quadratic_form / step.variance,
                 made.factor,         made.mean_coefficients,
                 process_->report(),  made.certificate};
  if (out.certificate) {
    out.certificate->quadratic_form_remainder /= step.variance;
  }
  out.factor.log_determinant += static_cast<double>(n()) * std::log(step.variance);
  return out;
}

LikelihoodError FitObjective::rounding(std::size_t k) {
  const FitSpace::Values& v = seen_[k].first;
  const GaussianProcess::Evaluation evaluation = evaluate(v);
  if (!evaluation.factor.ok) return {};
  LikelihoodError error = process().rounding(at_unit_variance(v), evaluation);
  error.quadratic_form /= path_[k].variance;
  return error;
}

}  // namespace strata
