// Maximum likelihood. With Σ = σ²(R + g·I), g = nugget/variance, the likelihood is largest in σ² at
// σ̂² = rᵀ(R + gI)⁻¹r / n, which leaves −½(n log 2πσ̂² + log|R + gI| + n) to be maximized over
// log range, log smoothness and log g (profile likelihood; e.g. Stein, "Interpolation of Spatial
// Data", 1999, section 6.4). A nugget held at τ² > 0 turns this round: σ² = τ²/g.
//
// An evaluation costs n³/3 operations, so the search starts near the end: a coarse grid and a first
// search run on a random sample of the points, where evaluations cost next to nothing.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "base/random.hpp"
#include "geostat/checks.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/minimize.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "fit";
constexpr std::int64_t kSample = 500;  ///< points of the first search; 2 to 15 ms an evaluation
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Range, smoothness and noise ratio: which of them are free, and between what.
struct Space {
  enum Variable : std::size_t { range, smoothness, ratio };
  std::vector<std::size_t> free;
  std::array<double, 3> held{1, 0.5, 0};
  std::array<Bounds, 3> bounds;
  std::optional<double> nugget;  ///< held above 0
  double smoothness_most = kInfinity;

  [[nodiscard]] std::array<double, 3> values(const std::vector<double>& x) const {
    std::array<double, 3> out = held;
    for (std::size_t k = 0; k < free.size(); ++k) out[free[k]] = std::exp(x[k]);
    // The exponential of the logarithm of a bound may lie beyond it.
    out[smoothness] = std::min(out[smoothness], smoothness_most);
    return out;
  }
  [[nodiscard]] std::vector<double> coordinates(const std::array<double, 3>& values) const {
    std::vector<double> x;
    for (const std::size_t v : free) {
      x.push_back(std::log(std::clamp(values[v], bounds[v].lower, bounds[v].upper)));
    }
    return x;
  }
  [[nodiscard]] Box box() const {
    Box out;
    for (const std::size_t v : free) {
      out.lower.push_back(std::log(bounds[v].lower));
      out.upper.push_back(std::log(bounds[v].upper));
    }
    return out;
  }
};

double width(std::span<const double> coordinate) {
  const auto [low, high] = std::minmax_element(coordinate.begin(), coordinate.end());
  return *high - *low;
}

/// Length of the diagonal of the points' bounding box; on the sphere about that, in kilometres.
double extent(const Points& points, Distance distance) {
  double dx = width(points.x);
  double dy = width(points.y);
  if (distance == Distance::great_circle) {
    constexpr double pi = 3.14159265358979323846;
    constexpr double degree = kEarthRadiusKm * pi / 180;
    const double middle = *std::min_element(points.y.begin(), points.y.end()) + 0.5 * dy;
    dx *= degree * std::cos(middle * pi / 180);
    dy *= degree;
    return std::min(std::hypot(dx, dy), kEarthRadiusKm * pi);
  }
  return points.z.empty() ? std::hypot(dx, dy) : std::hypot(dx, dy, width(points.z));
}

Bounds chosen(const std::optional<Bounds>& given, Bounds automatic, std::optional<double> start,
              const char* name) {
  if (given) {
    require(given->lower > 0 && given->lower < given->upper && std::isfinite(given->upper),
            ErrorKind::misuse, kWhere, "bounds of {} are {} and {}, but must be 0 < lower < upper",
            name, given->lower, given->upper);
    return *given;
  }
  if (start) {
    automatic.lower = std::min(automatic.lower, *start);
    automatic.upper = std::max(automatic.upper, *start);
  }
  return automatic;
}

Space make_space(const Points& points, const FitOptions& options) {
  const Distance distance = options.separation.distance;
  const double length = extent(points, distance);
  require(length > 0, ErrorKind::numerical, kWhere, "all {} points coincide{}", points.size(),
          points.t.empty() ? "" : " in space");
  const auto& start = options.start;
  const bool sphere = distance == Distance::great_circle;
  const double smoothness_most = sphere ? 0.5 : 50;
  Space space;
  if (sphere) space.smoothness_most = smoothness_most;
  const double spacing = length / std::sqrt(static_cast<double>(points.size()));
  space.bounds[Space::range] = chosen(options.range_bounds, {0.02 * spacing, 10 * length},
                                      start ? std::optional(start->range) : std::nullopt, "range");
  space.bounds[Space::smoothness] =
      chosen(options.smoothness_bounds, {0.05, sphere ? smoothness_most : 5},
             start ? std::optional(start->smoothness) : std::nullopt, "smoothness");
  require(space.bounds[Space::smoothness].upper <= smoothness_most, ErrorKind::misuse, kWhere,
          "upper bound of smoothness is {}, but must be at most {}{}",
          space.bounds[Space::smoothness].upper, smoothness_most,
          sphere ? " with great-circle distance" : "");
  space.bounds[Space::ratio] =
      chosen(options.noise_ratio_bounds, {1e-8, 100}, std::nullopt, "noise ratio");
  space.free = {Space::range};
  if (options.smoothness) {
    space.held[Space::smoothness] = *options.smoothness;
  } else {
    space.free.push_back(Space::smoothness);
  }
  if (!options.nugget || *options.nugget > 0) space.free.push_back(Space::ratio);
  if (options.nugget && *options.nugget > 0) space.nugget = options.nugget;
  return space;
}

/// The function to be minimized, −log-likelihood, with its record.
class Objective {
 public:
  Objective(const Points& points, std::span<const double> values, const FitOptions& options,
            const Space& space, Options run_options)
      : process_(points, values, options.mean, run_options),
        separation_(options.separation),
        space_(space) {}

  double operator()(const std::array<double, 3>& v) {
    const auto begin = std::chrono::steady_clock::now();
    const auto evaluation = process_.evaluate(
        {1, v[Space::range], v[Space::smoothness], v[Space::ratio], separation_}, kWhere);
    FitStep step{v[Space::range], v[Space::smoothness], kNaN, kNaN, -kInfinity, 0};
    if (evaluation.factor.ok) {
      const auto n = static_cast<double>(process_.n());
      const double variance =
          space_.nugget ? *space_.nugget / v[Space::ratio] : evaluation.quadratic_form / n;
      const double likelihood = gaussian_log_likelihood(
          process_.n(), evaluation.factor.log_determinant + n * std::log(variance),
          evaluation.quadratic_form / variance);
      if (std::isfinite(likelihood)) {
        step.log_likelihood = likelihood;
        step.variance = variance;
        step.nugget = space_.nugget.value_or(v[Space::ratio] * variance);
      }
    }
    step.seconds = seconds_since(begin);
    path_.push_back(step);
    evaluations_.push_back(evaluation);
    if (step.log_likelihood == -kInfinity) {
      // Clearly worse than anything seen, yet not so far off that it spoils the quadratic model.
      return any_ ? worst_ + std::max(10.0, 0.1 * std::fabs(worst_)) : 1e10;
    }
    worst_ = any_ ? std::max(worst_, -step.log_likelihood) : -step.log_likelihood;
    any_ = true;
    return -step.log_likelihood;
  }

  [[nodiscard]] const std::vector<FitStep>& path() const noexcept { return path_; }

  /// What log_likelihood says at step k, from the evaluation that was made there: the covariance is
  /// the one that was factored times the variance.
  [[nodiscard]] Likelihood likelihood(std::size_t k) const {
    const FitStep& step = path_[k];
    const auto& [factor, quadratic_form, coefficients] = evaluations_[k];
    Likelihood out{step.log_likelihood, quadratic_form / step.variance, factor, coefficients,
                   process_.report()};
    out.factor.log_determinant += static_cast<double>(process_.n()) * std::log(step.variance);
    return out;
  }

 private:
  GaussianProcess process_;
  Separation separation_;
  const Space& space_;
  std::vector<FitStep> path_;
  std::vector<GaussianProcess::Evaluation> evaluations_;  ///< of the steps
  double worst_ = 0;
  bool any_ = false;
};

/// Rows of a sample of at most `count`, drawn at random and in row order; the same for equal n.
std::vector<std::size_t> sample_rows(std::size_t n, std::size_t count) {
  std::vector<std::size_t> rows(n);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (n <= count) return rows;
  std::nth_element(
      rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count), rows.end(),
      [](std::size_t a, std::size_t b) { return random_bits(1, a) < random_bits(1, b); });
  rows.resize(count);
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// A good starting point: the best of a coarse grid on a sample, then a search there if the sample
/// is not everything.
std::vector<double> find_start(const Points& points, std::span<const double> values,
                               const FitOptions& options, const Space& space,
                               const Options& run_options) {
  Points some;
  std::vector<double> some_values;
  for (const std::size_t row : sample_rows(points.x.size(), kSample)) {
    some.x.push_back(points.x[row]);
    some.y.push_back(points.y[row]);
    if (!points.z.empty()) some.z.push_back(points.z[row]);
    if (!points.t.empty()) some.t.push_back(points.t[row]);
    some_values.push_back(values[row]);
  }
  Objective objective(some, some_values, options, space, run_options);
  const double length = extent(points, options.separation.distance);
  std::vector<double> best;
  double best_value = kInfinity;
  for (const double range : {0.02, 0.06, 0.2}) {
    for (const double smoothness : {0.5, 1.2}) {
      for (const double ratio : {1e-3, 0.2}) {
        const auto x = space.coordinates({range * length, smoothness, ratio});
        const double value = objective(space.values(x));
        if (best.empty() || value < best_value) {
          best = x;
          best_value = value;
        }
      }
    }
  }
  if (some.size() == points.size()) return best;
  return minimize([&](const std::vector<double>& x) { return objective(space.values(x)); }, best,
                  space.box(), {0.5, 1e-3, 1e-6, 100})
      .x;
}

void check_options(const Points& points, std::span<const double> values,
                   const FitOptions& options) {
  check_points(points, "points", kWhere);
  check_values(points, values, kWhere);
  MaternParameters held = options.start.value_or(MaternParameters{});
  held.separation = options.separation;
  check_parameters(held, kWhere);
  held.smoothness = options.smoothness.value_or(held.smoothness);
  held.nugget = options.nugget.value_or(held.nugget);
  check_parameters(held, kWhere);
  require(options.max_evaluations >= 1, ErrorKind::misuse, kWhere,
          "max_evaluations is {}, but must be at least 1", options.max_evaluations);
  require(options.relative_tolerance > 0 && options.relative_tolerance < 1, ErrorKind::misuse,
          kWhere, "relative_tolerance is {}, but must be in (0, 1)", options.relative_tolerance);
  check_separation(options.separation, points, kWhere);
  if (options.nugget && *options.nugget == 0)
    check_distinct(points, options.separation.distance, kWhere);
}

/// Refuses data whose residuals are zero up to rounding: the variance would be, too.
void check_variation(const Points& points, std::span<const double> values, Mean mean) {
  const MeanBasis basis(mean, points);
  const std::int64_t n = points.size();
  require(n >= basis.columns() + 4, ErrorKind::misuse, kWhere,
          "{} points are too few to fit {} coefficients and a covariance (at least {})", n,
          basis.columns(), basis.columns() + 4);
  std::vector<double> data(static_cast<std::size_t>(n * (basis.columns() + 1)));
  const MatrixView<double> w{data.data(), n, basis.columns() + 1, n};
  basis.fill(points, w);
  const double centre = mean == Mean::sample ? sample_mean(values) : 0;
  double square = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double z = values[static_cast<std::size_t>(i)];
    w(i, basis.columns()) = z - centre;
    square += z * z;
  }
  const double residual = regress(w, kWhere).residual_square;
  require(residual > 1e-26 * square, ErrorKind::numerical, kWhere,
          "the {} values do not vary about their mean", n);
}

}  // namespace

FitResult fit(const Points& points, std::span<const double> values, const FitOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  check_options(points, values, options);
  check_variation(points, values, options.mean);
  const Space space = make_space(points, options);

  std::size_t done = 0;
  const auto report = [&](double fraction) {
    return !options.options.progress ||
           options.options.progress({static_cast<double>(done) + fraction,
                                     static_cast<double>(options.max_evaluations),
                                     seconds_since(begin), "fit"});
  };
  const auto tell = [&] {
    if (!report(0)) fail(ErrorKind::cancelled, kWhere, "cancelled after {} evaluations", done);
  };
  Options run_options = options.options;
  run_options.progress = [&report](const Progress&) { return report(0); };
  tell();
  const auto x0 = options.start
                      ? space.coordinates({options.start->range, options.start->smoothness,
                                           options.start->nugget / options.start->variance})
                      : find_start(points, values, options, space, run_options);

  run_options.progress = [&report](const Progress& p) {
    return report(p.total > 0 ? std::min(p.done / p.total, 1.0) : 0);
  };
  Objective objective(points, values, options, space, run_options);
  const auto negative_log_likelihood = [&](const std::array<double, 3>& v) {
    tell();
    const double value = objective(v);
    ++done;
    return value;
  };
  const Minimum minimum = minimize(
      [&](const std::vector<double>& x) { return negative_log_likelihood(space.values(x)); }, x0,
      space.box(),
      {0.2, options.relative_tolerance, 1e-3 * options.relative_tolerance,
       options.max_evaluations});
  const std::array<double, 3> best = space.values(minimum.x);
  const auto& path = objective.path();
  auto k = static_cast<std::size_t>(
      std::find_if(path.begin(), path.end(),
                   [&](const FitStep& step) { return -step.log_likelihood == minimum.value; }) -
      path.begin());
  require(k < path.size(), ErrorKind::numerical, kWhere,
          "none of {} covariance matrices was positive definite; a nugget may help", path.size());
  // A ratio at its lower bound usually means no nugget at all: then say 0.
  if (!options.nugget && best[Space::ratio] < 1.5 * space.bounds[Space::ratio].lower &&
      !find_coincident_points(points, options.separation.distance)) {
    std::array<double, 3> without = best;
    without[Space::ratio] = 0;
    const double slack = options.relative_tolerance * std::fabs(minimum.value);
    if (negative_log_likelihood(without) <= minimum.value + slack) k = path.size() - 1;
  }
  FitResult out;
  out.path = path;
  out.evaluations = static_cast<int>(path.size());
  out.converged = minimum.converged;
  out.parameters = {path[k].variance, path[k].range, path[k].smoothness, path[k].nugget,
                    options.separation};
  out.likelihood = objective.likelihood(k);
  out.seconds = seconds_since(begin);
  return out;
}

}  // namespace strata
