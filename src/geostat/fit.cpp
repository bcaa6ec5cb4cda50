// Maximum likelihood, by a search for the largest profile likelihood (fit_objective.cpp) in log
// range, log smoothness, the log of the noise ratio and what else is estimated (fit_space.hpp).
//
// An evaluation costs n³/3 operations, so the search arrives at the full data near the end: it goes
// through nested random samples, a factor of four in points and of 64 in work apart, each from
// where the last one ended, or from the best of a coarse grid, while that costs next to nothing.
// There the expected information (information.hpp) on at most kCurvatureOrderMax of the points says
// how far the next optimum may be and which changes of the parameters compensate each other: it is
// taken to grow with the points, and the next search goes in coordinates u, x = x₀ + C·u with C·Cᵀ
// the covariance expected of x, in which the objective is about |u|²/2. A quadratic model of it is
// right after 2k + 1 evaluations. Near a bound of range, smoothness or ratio the search stays in x,
// so that the bound is one of the search, with the same radii; parameters of time and the
// anisotropy, which have narrow domains and are often at their ends, may lie there in any search.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"
#include "geostat/checks.hpp"
#include "geostat/fit_checks.hpp"
#include "geostat/fit_objective.hpp"
#include "geostat/information.hpp"
#include "geostat/minimize.hpp"
#include "geostat/point_sets.hpp"
#include "geostat/small_matrix.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "fit";
constexpr std::int64_t kSampleFactor = 4;
constexpr std::int64_t kSmallestMax = 400;  ///< the smallest sample is smaller
constexpr std::int64_t kSampleMin = 500;    ///< evaluations of fewer cost next to nothing
constexpr std::int64_t kCurvatureOrderMax = 500;
/// Of a log-likelihood whose quadratic form is refined, relative to n·ε: as much was seen with
/// exponential covariances of 300 to 1500 random points of the unit square, ranges 0.026 to 0.21
/// and ε from 1e-5 to 1e-3.
constexpr double kRoundingOfLikelihood = 0.02;
constexpr double kRoughGain = 0.2;  ///< of log-likelihood: a good part of a standard error

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Rows of a sample of `count`, drawn at random and in row order: of one seed, a smaller sample is
/// part of a larger one.
std::vector<std::int64_t> sample_rows(std::int64_t n, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  if (n <= count) return rows;
  std::nth_element(rows.begin(), rows.begin() + count, rows.end(),
                   [seed](std::int64_t a, std::int64_t b) {
                     const auto p = random_bits(seed, static_cast<std::uint64_t>(a));
                     const auto q = random_bits(seed, static_cast<std::uint64_t>(b));
                     return p != q ? p < q : a < b;
                   });
  rows.resize(static_cast<std::size_t>(count));
  std::sort(rows.begin(), rows.end());
  return rows;
}

struct Sample {
  Points points;
  std::vector<double> values;
};

Sample make_sample(const Points& points, std::span<const double> values, std::int64_t count,
                   std::uint64_t seed) {
  const auto rows = sample_rows(points.size(), count, seed);
  Sample out{rows_of(points, rows), {}};
  for (const std::int64_t row : rows) out.values.push_back(values[static_cast<std::size_t>(row)]);
  return out;
}

/// Drops the covariates whose coefficients a sample does not determine: one that marks few of the
/// points may be the same on all of the sample.
void drop_undetermined(Sample& sample, Mean mean) {
  auto given = std::exchange(sample.points.covariates, {});
  const std::int64_t n = sample.points.size();
  for (std::vector<double>& covariate : given) {
    sample.points.covariates.push_back(std::move(covariate));
    const MeanBasis basis(mean, sample.points);
    std::vector<double> data(static_cast<std::size_t>(n * (basis.columns() + 1)));
    const MatrixView<double> w{data.data(), n, basis.columns() + 1, n};
    basis.fill(sample.points, w);
    try {
      if (n >= basis.columns() + 4) {
        (void)regress(w, kWhere);
        continue;
      }
    } catch (const Error&) {  // dependent columns
    }
    sample.points.covariates.pop_back();
  }
}

Options in_fp64(Options options) {
  options.mixed = {};
  return options;
}

/// When a search ends.
struct Ending {
  double tolerance = 0;  ///< radius, in the coordinates of the search
  double gain = 0;       ///< of log-likelihood
  int evaluations = 0;
};

class Fit {
 public:
  Fit(const Points& points, std::span<const double> values, const FitOptions& options)
      : points_(points),
        values_(values),
        options_(options),
        space_(make_fit_space(points, options)),
        run_options_(options.options) {
    if (!options.journal.empty()) journal_.emplace(options.journal, points, values, options);
    run_options_.progress = [this](const Progress& p) {
      return report(on_all_points_ && p.total > 0 ? std::min(p.done / p.total, 1.0) : 0);
    };
  }
  Fit(const Fit&) = delete;  // run_options_ refers to it
  Fit& operator=(const Fit&) = delete;

  FitResult run();

 private:
  using Values = FitSpace::Values;
  using Call = std::function<double(const Values&)>;

  [[nodiscard]] bool report(double fraction) const {
    return !options_.options.progress ||
           options_.options.progress({static_cast<double>(done_) + fraction,
                                      static_cast<double>(options_.max_evaluations),
                                      seconds_since(begin_), kWhere});
  }
  void tell() const {
    if (!report(0)) fail(ErrorKind::cancelled, kWhere, "cancelled after {} evaluations", done_);
  }

  /// Coordinates in which the objective is about |u|²/2.
  struct Scale {
    FitSpace space;
    ScaledStart start;
    std::vector<double> steps;  ///< of each coordinate by itself
    bool inside = true;  ///< range, smoothness and ratio are two of them away from their bounds
  };

  void search_samples();
  [[nodiscard]] std::optional<Scale> scale_of(const FitObjective& objective) const;
  void try_grid(const Call& call);
  [[nodiscard]] std::vector<Values> begins_in_time() const;
  void search_all(FitObjective& objective);
  bool search(const Call& call, FitObjective& objective, const Ending& ending);
  void learn(const FitObjective& objective);
  [[nodiscard]] std::optional<std::vector<double>> expected_covariance(
      const FitSpace& space, std::int64_t n, const std::vector<std::size_t>& variables) const;
  void evaluate_at_the_end(FitObjective& objective);
  [[nodiscard]] std::vector<double> scale_with_room(FitSpace space,
                                                    std::vector<std::size_t>& variables) const;
  /// What lower precisions may change in an evaluation.
  [[nodiscard]] double rounding_of_likelihood() const {
    return kRoundingOfLikelihood * run_options_.mixed.accuracy *
           static_cast<double>(points_.size());
  }
  [[nodiscard]] bool better_without_nugget(FitObjective& objective, const Call& call) const;
  [[nodiscard]] StandardErrors standard_errors(FitObjective& objective);
  [[nodiscard]] StandardErrors standard_errors(FitObjective& objective, StandardErrorMethod method);

  const Points& points_;
  std::span<const double> values_;
  const FitOptions& options_;
  FitSpace space_;
  Options run_options_;
  std::optional<FitJournal> journal_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int done_ = 0;
  bool on_all_points_ = false;

  Values at_{};                             ///< the best so far
  MaternParameters parameters_;             ///< there
  std::optional<Information> information_;  ///< about there, of …
  std::int64_t information_points_ = 0;     ///< … so many points
  FitResult out_;
};

/// Begins at the best of a coarse grid, if that is better than where it has come to: of range,
/// smoothness and ratio, for each of some ranges in time if none is known; then of anisotropies.
void Fit::try_grid(const Call& call) {
  const double length = extent_of(points_, options_.separation.distance);
  double best = std::numeric_limits<double>::infinity();
  if (information_) best = call(at_);
  const auto try_at = [&](const Values& wanted) {
    const Values v = space_.values(space_.coordinates(wanted));
    const double value = call(v);
    if (value >= best) return;
    best = value;
    at_ = v;
    information_.reset();
  };
  std::vector<Values> begins{at_};
  if (at_[FitSpace::range] == 0) begins = begins_in_time();
  for (Values v : begins) {
    for (const double range : {0.02, 0.06, 0.2}) {
      for (const double smoothness : {0.5, 1.2}) {
        for (const double ratio : {1e-3, 0.2}) {
          v[FitSpace::range] = range * length;
          v[FitSpace::smoothness] = smoothness;
          v[FitSpace::ratio] = ratio;
          try_at(v);
        }
      }
    }
  }
  const bool ratio = space_.is_free(FitSpace::anisotropy_ratio);
  const bool angle = space_.is_free(FitSpace::anisotropy_angle);
  Values turned = at_;
  if (ratio) {
    turned[FitSpace::range] *= std::sqrt(2.0);  // the area of the ellipse stays
    turned[FitSpace::anisotropy_ratio] = 0.5;
  }
  for (int quarter = 0; quarter < (angle ? 4 : ratio ? 1 : 0); ++quarter) {
    if (angle) turned[FitSpace::anisotropy_angle] = 45.0 * quarter;
    try_at(turned);
  }
}

/// Values with what is held, and ranges in time from a hundredth of the times' extent to all of it;
/// other parameters of time in the middle of their domain.
std::vector<Fit::Values> Fit::begins_in_time() const {
  Values v = space_.held;
  if (space_.is_free(FitSpace::time_smoothness)) v[FitSpace::time_smoothness] = 0.5;
  if (space_.is_free(FitSpace::interaction)) {
    const Bounds& bounds = space_.bounds[FitSpace::interaction];
    v[FitSpace::interaction] = 0.5 * (bounds.lower + bounds.upper);
  }
  if (!space_.is_free(FitSpace::time_scale)) return {v};
  std::vector<Values> out;
  for (const double range : {0.01, 0.1, 1.0}) {
    v[FitSpace::time_scale] =
        time_scale_of(range * time_extent_of(points_), v[FitSpace::time_smoothness]);
    out.push_back(v);
  }
  return out;
}

/// What the points of an objective, or a sample of them, say of the parameters at its best step.
void Fit::learn(const FitObjective& objective) {
  information_.reset();
  const auto best = objective.best();
  if (!best) return;
  parameters_ = FitObjective::parameters_of(objective.path()[*best]);
  at_ = values_of(parameters_);
  const Sample some =
      make_sample(objective.points(), std::vector<double>(objective.points().x.size()),
                  kCurvatureOrderMax, options_.seed);
  try {
    information_ =
        expected_information(some.points, parameters_, run_options_, kWhere, space_.free);
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

/// The coordinates and the scale of a search from `at_`; none if nothing is known of it.
std::optional<Fit::Scale> Fit::scale_of(const FitObjective& objective) const {
  if (!information_) return std::nullopt;
  Scale out{space_, {}, {}, true};
  FitSpace& space = out.space;
  // The ratio that can just be told from 0, at the number of points of this search.
  const double root = std::sqrt((*information_)[3][3] * static_cast<double>(objective.n()) /
                                static_cast<double>(information_points_));
  space.ratio_offset = std::clamp(1 / (root * parameters_.variance), 1e-7, 1.0);
  const std::size_t k = space.free.size();
  const auto covariance = expected_covariance(space, objective.n(), space.free);
  auto factor = covariance ? factor_of_spd(*covariance, k) : std::nullopt;
  if (!factor) return std::nullopt;
  out.start = {space.coordinates(at_), std::move(*factor), {}};
  for (const auto& [v, value] : objective.seen())
    out.start.known.emplace_back(space.coordinates(v), value);
  const Box box = space.box();
  for (std::size_t i = 0; i < k; ++i) {
    const double deviation = std::sqrt((*covariance)[i + i * k]);
    const double x = out.start.x0[i];
    out.inside =
        out.inside && (space.free[i] > FitSpace::ratio ||
                       (x - 2 * deviation > box.lower[i] && x + 2 * deviation < box.upper[i]));
    out.steps.push_back(std::clamp(deviation, 1e-3, 0.5));
  }
  return out;
}

/// Searches from `at_`; whether it ended by itself. The result is in the objective's path.
bool Fit::search(const Call& call, FitObjective& objective, const Ending& ending) {
  const auto first = std::ssize(objective.path());
  const auto left = [&] {
    return ending.evaluations - static_cast<int>(std::ssize(objective.path()) - first);
  };
  std::optional<Scale> scale = scale_of(objective);
  // Roughly, in the scale of where it begins; then in that of where it has come to.
  for (const double gain : {std::max(kRoughGain, ending.gain), ending.gain}) {
    if (!scale || !scale->inside || left() <= 0) break;
    const Minimum minimum =
        minimize_scaled([&](const std::vector<double>& x) { return call(scale->space.values(x)); },
                        scale->start, scale->space.box(), {1, {}, ending.tolerance, gain, left()});
    if (minimum.converged && gain == ending.gain) return true;
    learn(objective);
    scale = scale_of(objective);
    if (minimum.converged || !scale) continue;
    for (double& step : scale->steps) step = std::max(0.3 * step, 1e-3);
    break;  // at the edge of the box, or it did not get on
  }
  if (left() <= 0) return false;
  const FitSpace& space = scale ? scale->space : space_;
  const double relative = ending.gain / static_cast<double>(objective.n());
  return minimize([&](const std::vector<double>& x) { return call(space.values(x)); },
                  space.coordinates(at_), space.box(),
                  {0.2, scale ? scale->steps : std::vector<double>{}, ending.tolerance, relative,
                   left()})
      .converged;
}

/// The searches on samples; on return `at_` is where to begin on all points.
void Fit::search_samples() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = points_.size(); size >= kSmallestMax;) {
    size = size > kSampleMin ? std::max(size / kSampleFactor, kSampleMin) : size / kSampleFactor;
    sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(points_.size());  // the grid alone
  std::reverse(sizes.begin(), sizes.end());
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const auto begin = std::chrono::steady_clock::now();
    Sample some = make_sample(points_, values_, sizes[s], options_.seed);
    drop_undetermined(some, options_.mean);
    FitObjective objective(some.points, some.values, options_.mean, space_, in_fp64(run_options_),
                           journal_ ? &*journal_ : nullptr, static_cast<int>(s));
    const Call call = [&](const Values& v) {
      tell();
      return objective(v);
    };
    if (sizes[s] <= kSampleMin) try_grid(call);
    if (sizes[s] < points_.size()) {
      (void)search(call, objective, {1e-3, 1e-4, 150});
      learn(objective);
      out_.stages.push_back(
          {sizes[s], static_cast<int>(std::ssize(objective.path())), seconds_since(begin)});
    }
  }
}

/// A ratio at its lower bound usually means no nugget at all: then say 0.
bool Fit::better_without_nugget(FitObjective& objective, const Call& call) const {
  const FitStep best = objective.path()[*objective.best()];
  const double lower = space_.bounds[FitSpace::ratio].lower;
  if (options_.nugget || best.nugget / best.variance >= 1.5 * lower ||
      find_coincident_points(points_, options_.separation.distance)) {
    return false;
  }
  const double slack = options_.relative_tolerance * std::fabs(best.log_likelihood);
  Values without = values_of(FitObjective::parameters_of(best));
  without[FitSpace::ratio] = 0;
  return call(without) <= -best.log_likelihood + slack;
}

void Fit::search_all(FitObjective& objective) {
  const Call call = [&](const Values& v) {
    tell();
    const double value = objective(v);
    ++done_;
    return value;
  };
  // Gains are relative to a log-likelihood of the size of n; what is less than lower precisions
  // change in it is none.
  const double gain =
      std::max(1e-3 * options_.relative_tolerance * static_cast<double>(points_.size()),
               rounding_of_likelihood());
  const bool converged =
      search(call, objective, {options_.relative_tolerance, gain, options_.max_evaluations});
  require(objective.best().has_value(), ErrorKind::numerical, kWhere,
          "none of {} covariance matrices was positive definite; a nugget may help",
          objective.path().size());
  std::size_t k = *objective.best();
  if (better_without_nugget(objective, call)) k = objective.path().size() - 1;
  const FitStep& step = objective.path()[k];
  out_.path = objective.path();
  out_.evaluations = static_cast<int>(out_.path.size());
  out_.converged = converged;
  out_.parameters = FitObjective::parameters_of(step);
  out_.likelihood = objective.likelihood(k);
}

/// After a search in lower precisions: the likelihood at its end in FP64, with the variance that is
/// best there; if there is no room for that, in lower precisions with what is known of it.
void Fit::evaluate_at_the_end(FitObjective& objective) {
  out_.mixed = out_.likelihood.run.mixed;
  objective.let_go();
  const Values values = values_of(out_.parameters);
  const auto evaluate = [&](const Options& options) {
    FitObjective last(points_, values_, options_.mean, space_, options, nullptr, 0);
    (void)last(values);
    if (!last.best()) return false;
    out_.parameters = FitObjective::parameters_of(last.path().front());
    out_.likelihood = last.likelihood(0);
    return true;
  };
  try {
    if (evaluate(in_fp64(run_options_))) return;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
  }
  (void)evaluate(run_options_);
}

StandardErrors Fit::standard_errors(FitObjective& objective) {
  StandardErrorMethod method = options_.standard_errors;
  if (method == StandardErrorMethod::automatic) {
    method = points_.size() <= kInformationOrderMax ? StandardErrorMethod::expected
                                                    : StandardErrorMethod::observed;
  }
  StandardErrors none;
  none.method = method;
  if (method == StandardErrorMethod::none || !out_.converged) return none;
  try {
    return standard_errors(objective, method);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numerical) throw;
    return none;  // on the edge of what is positive definite
  }
}

/// The covariance expected of the coordinates of `variables`, from which those are taken out that
/// are too near to a bound for differences.
std::vector<double> Fit::scale_with_room(FitSpace space,
                                         std::vector<std::size_t>& variables) const {
  while (true) {
    const auto scale = expected_covariance(space, points_.size(), variables);
    if (!scale) fail(ErrorKind::numerical, kWhere, "the information is singular");
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
        expected_information(points_, parameters_, run_options_, kWhere, space_.free), space_,
        parameters_);
  }
  const Values values = values_of(parameters_);
  std::vector<std::size_t> variables;
  for (const std::size_t v : space_.free)
    if (space_.inside(v, values)) variables.push_back(v);
  FitSpace space = space_;
  space.ratio_offset = 0;  // it is inside: its logarithm
  const Sample some = make_sample(points_, values_, kCurvatureOrderMax, options_.seed);
  information_ = expected_information(some.points, parameters_, run_options_, kWhere, space_.free);
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
  Options unprobed = run_options_;
  unprobed.probing.probes = 0;
  FitObjective objective(points_, values_, options_.mean, space_, unprobed, journal, kStageOfAll);
  search_all(objective);
  if (run_options_.mixed.on()) evaluate_at_the_end(objective);
  out_.standard_errors = standard_errors(objective);
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
  check_fit(points, values, options);
  return Fit(points, values, options).run();
}

}  // namespace strata
