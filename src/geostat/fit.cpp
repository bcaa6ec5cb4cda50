// Maximum likelihood, by a search for the largest profile likelihood (fit_objective.cpp) in log
// range, log smoothness, the log of the noise ratio and what else is estimated (fit_space.hpp).
//
// An evaluation costs n³/3 operations, so the search arrives at the full data near the end: it goes
// through nested random samples (fit_samples.hpp), each from where the last one ended. While
// evaluations cost next to nothing it looks for all modes of the likelihood (fit_modes.hpp); what
// is about as good as the best of them is compared again on more points. The nugget may be 0, an
// edge of the domain with maxima of its own: there the search goes on without it, and where it ends
// near the edge, or on it, the other side is tried.
//
// The expected information (information.hpp) on at most kCurvatureOrderMax of the points says how
// far the next optimum may be and which changes of the parameters compensate each other. It is
// taken to grow with the points, and the next search goes in coordinates u, x = x₀ + C·u with C·Cᵀ
// the covariance expected of x, in which the objective is about |u|²/2. A quadratic model of it is
// right after 2k + 1 evaluations. C is triangular, the variable with the least room to its bounds
// the first: that bound is one of u. Where the model does not get on, the search goes on in x.
//
// A search that begins at another mode than the best that is known looks at what lies around it
// alone, and ends as soon as its model says that it will not come below the best (minimize_scaled).

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "geostat/checks.hpp"
#include "geostat/fit_checks.hpp"
#include "geostat/fit_modes.hpp"
#include "geostat/fit_objective.hpp"
#include "geostat/fit_precision.hpp"
#include "geostat/fit_samples.hpp"
#include "geostat/information.hpp"
#include "geostat/minimize.hpp"
#include "geostat/small_matrix.hpp"
#include "geostat/units.hpp"

namespace strata {
namespace {

constexpr std::int64_t kCurvatureOrderMax = 500;
constexpr double kRoughGain = 0.2;  ///< of log-likelihood: a good part of a standard error

/// When a search ends.
struct Ending {
  double tolerance = 0;  ///< radius, in the coordinates of the search
  double gain = 0;       ///< of log-likelihood
  int evaluations = 0;
  double rival = std::numeric_limits<double>::infinity();  ///< as of MinimizeOptions
};

class Fit {
 public:
  Fit(const Points& points, std::span<const double> values, const FitOptions& options)
      : points_(points),
        values_(values),
        options_(options),
        space_(make_fit_space(points, options, values)),
        run_options_(fine_enough(options, points.size())) {
    if (!options.journal.empty()) journal_.emplace(options.journal, points, values, options);
    run_options_.run.progress = [this](const Progress& p) {
      return report(on_all_points_ && p.total > 0 ? std::min(p.done / p.total, 1.0) : 0);
    };
  }
  Fit(const Fit&) = delete;  // run_options_ refers to it
  Fit& operator=(const Fit&) = delete;

  FitResult run();

 private:
  using Values = FitSpace::Values;
  using Call = std::function<double(const Values&)>;

  [[nodiscard]] int evaluations_max() const {
    constexpr int kForEach = 50;  // of the variables, and for the beginning
    return options_.max_evaluations.value_or(kForEach * (static_cast<int>(space_.free.size()) + 1));
  }
  [[nodiscard]] bool report(double fraction) const {
    return !options_.run.progress || options_.run.progress({static_cast<double>(done_) + fraction,
                                                            static_cast<double>(evaluations_max()),
                                                            seconds_since(begin_), kFitWhere});
  }
  void tell() const {
    if (report(0)) return;
    fail(ErrorKind::cancelled, kFitWhere, "cancelled after {} evaluations{}", sampled_ + done_,
         sampled_ == 0 ? "" : fmt::format(", {} of them to find where to begin", sampled_));
  }

  /// Coordinates in which the objective is about |u|²/2.
  struct Scale {
    FitSpace space;
    ScaledStart start;
    std::vector<double> steps;  ///< of each coordinate by itself
  };

  void search_samples();
  void compare_modes(const Call& call, const Points& points, std::size_t searches);
  [[nodiscard]] double told_from_zero(std::int64_t n) const;
  [[nodiscard]] std::optional<Scale> scale_of(const FitObjective& objective,
                                              const FitSpace& from) const;
  void search_all(FitObjective& objective);
  void tell_rounding(FitObjective& objective, std::size_t k);
  bool search(const Call& call, FitObjective& objective, const Ending& ending);
  bool search_in(const FitSpace& from, const Call& call, FitObjective& objective,
                 const Ending& ending);
  [[nodiscard]] bool continue_across(const Call& call, FitObjective& objective, double gain);
  void learn(const FitObjective& objective);
  void learn_at(const FitObjective& objective, std::size_t k);
  void note_starts(const FitObjective& objective);
  [[nodiscard]] std::optional<std::vector<double>> expected_covariance(
      const FitSpace& space, std::int64_t n, const std::vector<std::size_t>& variables) const;
  void evaluate_at_the_end(FitObjective& objective);
  void search_in_fp64(FitObjective& objective);
  [[nodiscard]] std::vector<double> scale_with_room(FitSpace space,
                                                    std::vector<std::size_t>& variables) const;
  [[nodiscard]] double rounding_of_likelihood() const {
    return strata::rounding_of_likelihood(run_options_, points_.size());
  }
  void note_bounds();
  [[nodiscard]] StandardErrors standard_errors(FitObjective& objective);
  [[nodiscard]] StandardErrors standard_errors(FitObjective& objective, StandardErrorMethod method);

  const Points& points_;
  std::span<const double> values_;
  const FitOptions& options_;
  FitSpace space_;
  CovarianceOptions run_options_;
  std::optional<FitJournal> journal_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int sampled_ = 0;  ///< evaluations to find where to begin
  int done_ = 0;     ///< on all points
  bool on_all_points_ = false;
  bool scale_fails_ = false;              ///< a search by the expected information did not get on
  std::optional<std::size_t> preferred_;  ///< the step without nugget, if none is better

  std::vector<Values> modes_;  ///< others that are about as good as the best
  /// Where a search on all points begins, and what is known there.
  struct Start {
    Values at{};
    MaternParameters parameters;
    std::optional<Information> information;
    std::int64_t points = 0;
  };
  std::vector<Start> starts_;
  Values at_{};                             ///< the best so far
  MaternParameters parameters_;             ///< there
  std::optional<Information> information_;  ///< about there, of …
  std::int64_t information_points_ = 0;     ///< … so many points
  FitResult out_;
};

/// What the points of an objective, or a sample of them, say of the parameters at its best step.
void Fit::learn(const FitObjective& objective) {
  information_.reset();
  if (const auto best = objective.best()) learn_at(objective, *best);
}

void Fit::learn_at(const FitObjective& objective, std::size_t k) {
  information_.reset();
  if (!std::isfinite(objective.path()[k].log_likelihood)) return;
  parameters_ = FitObjective::parameters_of(objective.path()[k]);
  at_ = values_of(parameters_);
  const Sample some =
      make_sample(objective.points(), std::vector<double>(objective.points().x.size()),
                  kCurvatureOrderMax, options_.seed);
  try {
    information_ =
        expected_information(some.points, parameters_, run_options_, kFitWhere, space_.free);
    information_points_ = some.points.size();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numerical) throw;  // then there is none
  }
}

std::optional<std::vector<double>> Fit::expected_covariance(
    const FitSpace& space, std::int64_t n, const std::vector<std::size_t>& variables) const {
  if (!information_) return std::nullopt;
  auto covariance = covariance_of_search(*information_, space, parameters_, variables);
  if (!covariance) return std::nullopt;
  for (double& c : *covariance)
    c *= static_cast<double>(information_points_) / static_cast<double>(n);
  return covariance;
}

/// The noise ratio that n points can just tell from 0, as far as that is known.
double Fit::told_from_zero(std::int64_t n) const {
  if (!information_) return 1e-3;
  const double root = std::sqrt((*information_)[3][3] * static_cast<double>(n) /
                                static_cast<double>(information_points_));
  return std::clamp(1 / (root * parameters_.variance), 1e-15, 1.0);
}

/// The coordinates and the scale of a search from `at_`; none if nothing is known of it.
std::optional<Fit::Scale> Fit::scale_of(const FitObjective& objective, const FitSpace& from) const {
  if (!information_) return std::nullopt;
  Scale out{from, {}, {}};
  FitSpace& space = out.space;
  space.ratio_offset = told_from_zero(objective.n());
  const std::size_t k = space.free.size();
  auto covariance = expected_covariance(space, objective.n(), space.free);
  if (!covariance) return std::nullopt;
  sort_by_room(space, at_, *covariance);
  covariance = expected_covariance(space, objective.n(), space.free);
  auto factor = covariance ? factor_of_spd(*covariance, k) : std::nullopt;
  if (!factor) return std::nullopt;
  out.start = {space.coordinates(at_), std::move(*factor), {}};
  out.start.known = objective.known_around(at_, space, out.start.factor);
  for (std::size_t i = 0; i < k; ++i)
    out.steps.push_back(std::clamp(std::sqrt((*covariance)[i + i * k]), 1e-3, 0.5));
  return out;
}

/// Searches from `at_`; whether it ended by itself. The result is in the objective's path.
bool Fit::search(const Call& call, FitObjective& objective, const Ending& ending) {
  const bool edge = space_.is_free(FitSpace::ratio) && at_[FitSpace::ratio] == 0;
  FitSpace from = edge ? without_nugget(space_) : space_;
  from.ratio_offset = std::clamp(0.1 * at_[FitSpace::ratio], 1e-15, from.ratio_offset);
  if (!from.free.empty()) return search_in(from, call, objective, ending);
  (void)call(at_);
  return true;
}

bool Fit::search_in(const FitSpace& from, const Call& call, FitObjective& objective,
                    const Ending& ending) {
  const std::size_t first = objective.path().size();
  const auto left = [&] {
    return ending.evaluations - static_cast<int>(objective.path().size() - first);
  };
  (void)call(at_);
  const std::size_t begin = *objective.step_at(at_);
  std::optional<Scale> scale = scale_of(objective, from);
  const bool scale_failed = scale_fails_;
  // Roughly, in the scale of where it begins; then in that of where it has come to.
  for (const double gain : {std::max(kRoughGain, ending.gain), ending.gain}) {
    if (!scale || left() <= 0 || scale_failed) break;
    const std::size_t before = objective.best_of_search(begin, first);
    const Minimum minimum = minimize_scaled(
        [&](const std::vector<double>& x) { return call(scale->space.values(x)); }, scale->start,
        scale->space.box(), {1, ending.tolerance, gain, left(), ending.rival});
    if (minimum.beaten || (minimum.converged && gain == ending.gain)) return true;
    const std::size_t now = objective.best_of_search(begin, first);
    learn_at(objective, now);
    scale = scale_of(objective, from);
    if (minimum.converged || (gain > ending.gain && now != before) || !scale) continue;
    scale_fails_ = !on_all_points_;  // it did not get on, nor will it with more points
    break;
  }
  if (left() <= 0) return false;
  const FitSpace& space = scale ? scale->space : from;
  const auto value = [&](const std::vector<double>& x) { return call(space.values(x)); };
  if (scale) {
    // Where a search did not get on its scale is wrong by little; where none did with a sample the
    // deviations are far too short. What single steps gain does not end it: see minimize.hpp.
    const double factor = scale_failed ? 3 : 0.3;
    for (double& step : scale->steps) step = std::clamp(factor * step, 1e-3, 0.5);
    const double tolerance = std::clamp(std::sqrt(2 * ending.gain), 1e-3, 0.03);
    return minimize_in_steps(value, space.coordinates(at_), space.box(), scale->steps,
                             {1, tolerance, 0, left()})
        .converged;
  }
  const double relative = ending.gain / static_cast<double>(objective.n());
  return minimize(value, space.coordinates(at_), space.box(),
                  {0.2, ending.tolerance, relative, left()})
      .converged;
}

/// Begins at the best of the modes that a grid and what is known lead to, and keeps those that are
/// as good to within what more points may change.
void Fit::compare_modes(const Call& call, const Points& points, std::size_t searches) {
  constexpr double kAsGood = 3;  // of log-likelihood
  const Distance distance = options_.separation.distance;
  const Scales scales{spacing_of(points, distance), extent_of(points_, distance),
                      time_extent_of(points_)};
  std::vector<Mode> modes;
  const auto look_in = [&](const FitSpace& space) {
    std::vector<Values> begins = coarse_grid(space, scales);
    for (const Values& v : modes_)
      if (space.holds(v)) begins.push_back(v);
    const std::vector<Mode> found = find_modes(call, space, begins, searches);
    modes.insert(modes.end(), found.begin(), found.end());
  };
  // At a nugget of 0 just as if it were held there: what is found is at least as good.
  if (space_.is_free(FitSpace::ratio) && space_.bounds[FitSpace::ratio].lower == 0)
    look_in(without_nugget(space_));
  look_in(space_);
  std::stable_sort(modes.begin(), modes.end(),
                   [](const Mode& a, const Mode& b) { return a.value < b.value; });
  modes_ = {modes.at(0).at};  // even where nothing is finite
  for (std::size_t k = 1; k < modes.size(); ++k)
    if (modes[k].value < modes[0].value + kAsGood) modes_.push_back(modes[k].at);
  at_ = modes_[0];
}

/// The best mode of all points without a nugget, if one is as good as any, and the best with one:
/// both are searched, in this order, so that the first search is that of a nugget held at 0.
void Fit::note_starts(const FitObjective& objective) {
  for (const bool zero : {true, false}) {
    const auto mode = std::find_if(modes_.begin(), modes_.end(), [zero](const Values& v) {
      return (v[FitSpace::ratio] == 0) == zero;
    });
    if (mode == modes_.end()) continue;
    const auto& seen = objective.seen();
    const auto step =
        std::find_if(seen.begin(), seen.end(), [&](const auto& s) { return s.first == *mode; });
    const auto k = static_cast<std::size_t>(step - seen.begin());
    if (step == seen.end() || !std::isfinite(objective.path()[k].log_likelihood)) continue;
    learn_at(objective, k);
    starts_.push_back({at_, parameters_, information_, information_points_});
  }
}

/// The searches on samples; on return `at_` is where to begin on all points.
void Fit::search_samples() {
  const std::vector<std::int64_t> sizes = sample_sizes(points_.size());
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const auto begin = std::chrono::steady_clock::now();
    Sample some = make_sample(points_, values_, sizes[s], options_.seed);
    drop_undetermined(some, options_.mean, options_.separation.distance);
    FitObjective objective(some.points, some.values, options_.mean, space_, in_fp64(run_options_),
                           journal_ ? &*journal_ : nullptr, static_cast<int>(s));
    const Call call = [&](const Values& v) {
      tell();
      const auto before = std::ssize(objective.path());
      const double value = objective(v);
      sampled_ += static_cast<int>(std::ssize(objective.path()) - before);
      return value;
    };
    if (sizes[s] <= kSampleMin) compare_modes(call, some.points, s == 0 ? 6 : 3);
    if (sizes[s] < points_.size()) {
      (void)search(call, objective, {1e-3, 1e-4, 150});
    } else {
      note_starts(objective);
    }
    learn(objective);
    out_.stages.push_back(
        {sizes[s], static_cast<int>(std::ssize(objective.path())), seconds_since(begin)});
  }
}

/// Continues a search that ended at a nugget of 0, or indistinguishably near to it, on the other
/// side if that is better by `gain`; 0 is preferred to what is as good.
bool Fit::continue_across(const Call& call, FitObjective& objective, double gain) {
  learn(objective);
  const FitStep best = objective.path()[*objective.best()];
  const bool zero = at_[FitSpace::ratio] == 0;
  const double least = told_from_zero(points_.size());
  if (!zero && at_[FitSpace::ratio] > least) return false;
  Values other = at_;
  other[FitSpace::ratio] = zero ? std::min(0.3 * least, space_.bounds[FitSpace::ratio].upper) : 0;
  const double gained = -best.log_likelihood - call(other);
  const double slack = options_.relative_tolerance * std::fabs(best.log_likelihood);
  if (!zero && gained >= -slack) preferred_ = objective.path().size() - 1;
  return gained > gain;
}

void Fit::search_all(FitObjective& objective) {
  const Call call = [&](const Values& v) {
    tell();
    const double value = objective(v);
    done_ = static_cast<int>(std::ssize(objective.path()));
    return value;
  };
  // Gains are relative to a log-likelihood of the size of n; what is less than lower precisions
  // change in it is none.
  const double gain =
      std::max(1e-3 * options_.relative_tolerance * static_cast<double>(points_.size()),
               rounding_of_likelihood());
  if (points_.size() > kSampleMin && modes_.size() > 1) {
    for (const Values& v : modes_) (void)call(v);
    learn(objective);
  }
  const auto left = [&] { return std::max(evaluations_max() - done_, 0); };
  const auto ending = [&](bool again = false) {
    Ending out{options_.relative_tolerance, gain, left()};
    if (again && objective.best()) out.rival = -objective.path()[*objective.best()].log_likelihood;
    return out;
  };
  if (starts_.empty()) starts_.push_back({at_, parameters_, information_, information_points_});
  bool converged = true;
  for (const Start& start : starts_) {
    at_ = start.at;
    parameters_ = start.parameters;
    information_ = start.information;
    information_points_ = start.points;
    const auto before = objective.best();
    const bool ended = left() > 0 && search(call, objective, ending(true));
    if (objective.best() != before) converged = ended;
  }
  require(objective.best().has_value(), ErrorKind::numerical, kFitWhere,
          "none of {} covariance matrices was positive definite; a nugget may help",
          objective.path().size());
  if (space_.is_free(FitSpace::ratio) && space_.bounds[FitSpace::ratio].lower == 0) {
    for (int turn = 0; turn < 2 && converged && left() > 0; ++turn) {
      if (!continue_across(call, objective, std::max(1e3 * gain, 1e-4))) break;
      preferred_.reset();
      learn(objective);
      converged = left() > 0 && search(call, objective, ending());
    }
  }
  const std::size_t k = preferred_.value_or(*objective.best());
  out_.noise = objective.noise_of(k);
  const FitStep& step = objective.path()[k];
  out_.path = objective.path();
  out_.evaluations = static_cast<int>(out_.path.size());
  out_.converged = converged;
  out_.parameters = FitObjective::parameters_of(step);
  out_.likelihood = objective.likelihood(k);
  if (!run_options_.mixed.on()) tell_rounding(objective, k);
}

/// With the log-likelihood, and as noise where the measured one is less: a likelihood at a range
/// that is the same to nine digits shares most of the rounding errors.
void Fit::tell_rounding(FitObjective& objective, std::size_t k) {
  out_.likelihood.rounding = objective.rounding(k);
  const double estimated = out_.likelihood.rounding.log_likelihood();
  if (!std::isnan(estimated)) out_.noise = std::max(out_.noise, estimated);
}

/// Which estimates lie on a bound.
void Fit::note_bounds() {
  const Values values = values_of(out_.parameters);
  for (const std::size_t v : space_.free) {
    if (space_.inside(v, values) || v == FitSpace::anisotropy_angle) continue;
    const double value = space_.bounded(v, values);
    const Bounds& b = space_.bounds[v];
    const bool upper = value - b.lower > b.upper - value;
    out_.at_bounds.push_back(space_.at_bound(v, upper));
  }
}

/// After a search in lower precisions: the likelihood at its end in FP64, with the variance that is
/// best there; if there is no room for that, in lower precisions with what is known of it. What the
/// two likelihoods differ by is noise of the search.
void Fit::evaluate_at_the_end(FitObjective& objective) {
  out_.mixed = objective.failed_mixed() ? objective.failed_mixed() : out_.likelihood.run.mixed;
  if (out_.mixed && out_.mixed->accuracy_asked < options_.mixed.accuracy) {
    out_.mixed->accuracy_asked = options_.mixed.accuracy;
    if (out_.mixed->note.empty())
      out_.mixed->note = "a search on so many points bears no coarser accuracy";
  }
  const double searched = out_.likelihood.log_likelihood;
  objective.let_go();
  const Values values = values_of(out_.parameters);
  const auto evaluate = [&](const CovarianceOptions& options) {
    FitObjective last(points_, values_, options_.mean, space_, options, nullptr, 0);
    (void)last(values);
    if (!last.best()) return false;
    out_.parameters = FitObjective::parameters_of(last.path().front());
    out_.likelihood = last.likelihood(0);
    tell_rounding(last, 0);
    if (!options.mixed.on())
      out_.noise = std::max(out_.noise, std::fabs(out_.likelihood.log_likelihood - searched));
    return true;
  };
  try {
    if (evaluate(in_fp64(run_options_))) return;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
  }
  (void)evaluate(run_options_);
}

/// Goes on in FP64 from where a search ended that the noise of lower precisions ended.
void Fit::search_in_fp64(FitObjective& objective) {
  std::vector<FitStep> path = std::move(out_.path);
  const auto mixed = out_.mixed;
  starts_ = {{values_of(out_.parameters), out_.parameters, information_, information_points_}};
  modes_.clear();
  preferred_.reset();
  search_all(objective);
  path.insert(path.end(), out_.path.begin(), out_.path.end());
  out_.path = std::move(path);
  out_.evaluations = static_cast<int>(out_.path.size());
  out_.mixed = mixed;
  out_.mixed->accuracy = 0;
  out_.mixed->note = "rounding hid where the maximum is: the search went on in FP64";
}

StandardErrors Fit::standard_errors(FitObjective& objective) {
  StandardErrorMethod method = options_.standard_errors;
  if (method == StandardErrorMethod::automatic) {
    method = points_.size() <= kInformationOrderMax ? StandardErrorMethod::expected
                                                    : StandardErrorMethod::observed;
  }
  if (method == StandardErrorMethod::none || !out_.converged) return {};
  try {
    StandardErrors found = standard_errors(objective, method);
    if (!found.any()) found.method = StandardErrorMethod::none;
    return found;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numerical) throw;
    return {};  // on the edge of what is positive definite
  }
}

/// The covariance expected of the coordinates of `variables`, from which those are taken out that
/// are too near to a bound for differences.
std::vector<double> Fit::scale_with_room(FitSpace space,
                                         std::vector<std::size_t>& variables) const {
  while (true) {
    const auto scale = expected_covariance(space, points_.size(), variables);
    if (!scale) fail(ErrorKind::numerical, kFitWhere, "the information is singular");
    space.free = variables;
    const std::vector<double> x = space.coordinates(values_of(parameters_));
    const Box box = space.box();
    const std::size_t k = variables.size();
    std::size_t tight = 0;
    while (tight < k && std::min(x[tight] - box.lower[tight], box.upper[tight] - x[tight]) >=
                            room_of_differences(rounding_of_likelihood()) *
                                std::sqrt((*scale)[tight + tight * k]))
      ++tight;
    if (tight == k) return *scale;
    variables.erase(variables.begin() + static_cast<std::ptrdiff_t>(tight));
  }
}

StandardErrors Fit::standard_errors(FitObjective& objective, StandardErrorMethod method) {
  parameters_ = out_.parameters;
  if (method == StandardErrorMethod::expected) {
    return expected_standard_errors(
        expected_information(points_, parameters_, run_options_, kFitWhere, space_.free), space_,
        parameters_);
  }
  const Values values = values_of(parameters_);
  std::vector<std::size_t> variables;
  for (const std::size_t v : space_.free)
    if (space_.inside(v, values)) variables.push_back(v);
  FitSpace space = space_;
  space.ratio_offset = 0;  // it is inside: its logarithm
  const Sample some = make_sample(points_, values_, kCurvatureOrderMax, options_.seed);
  information_ =
      expected_information(some.points, parameters_, run_options_, kFitWhere, space_.free);
  information_points_ = some.points.size();
  const auto scale = scale_with_room(space, variables);
  return observed_standard_errors(
      [&](const Values& v) {
        tell();
        const double value = objective(v);
        return ObjectiveValue{value, objective.log_variance()};
      },
      points_.size(), space, parameters_, variables, scale, rounding_of_likelihood());
}

FitResult Fit::run() {
  tell();
  if (options_.start) {
    at_ = values_of(*options_.start);
  } else {
    search_samples();
  }
  on_all_points_ = true;
  constexpr int kStageOfAll = 100;
  FitJournal* journal = journal_ ? &*journal_ : nullptr;
  CovarianceOptions unprobed = run_options_;
  unprobed.probing.probes = 0;
  FitObjective objective(points_, values_, options_.mean, space_, unprobed, journal, kStageOfAll);
  search_all(objective);
  std::optional<FitObjective> exact;
  if (run_options_.mixed.on()) {
    evaluate_at_the_end(objective);
    const double rounding = out_.likelihood.rounding.log_likelihood();
    if (out_.mixed && !out_.likelihood.run.mixed &&
        hides_the_maximum(out_.noise, rounding, run_options_, points_.size())) {
      run_options_ = unprobed = in_fp64(run_options_);
      exact.emplace(points_, values_, options_.mean, space_, unprobed, journal, kStageOfAll + 1);
      search_in_fp64(*exact);
    }
  }
  note_bounds();
  out_.standard_errors = standard_errors(exact ? *exact : objective);
  if (options_.estimate.anisotropy_angle) {
    double& angle = out_.parameters.separation.anisotropy_angle;
    angle -= 180 * std::floor(angle / 180);
    if (angle == 180) angle = 0;  // it was below 0 by less than a rounding
  }
  out_.seconds = seconds_since(begin_);
  return std::move(out_);
}

}  // namespace

FitResult fit(const Points& points, std::span<const double> values, const FitOptions& options) {
  const Units units = check_fit(points, values, options);
  if (units.as_given()) return Fit(points, values, options).run();
  const Points safe_points = units.of(points);
  const std::vector<double> safe_values = units.of(values);
  const FitOptions safe_options = units.of(options);
  FitResult out = Fit(safe_points, safe_values, safe_options).run();
  units.restore(out, points.size(), options.mean);
  return out;
}

}  // namespace strata
