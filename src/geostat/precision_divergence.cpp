// How far a covariance in several precisions is from itself in FP64: by both factors
// (cholesky/divergence.hpp), or by probes (cholesky/log_determinant.hpp). FP64 is factored first
// and its columns are kept, so that there is one solver at a time; if a covariance is in FP64
// anyway, because nothing else held, its divergence is 0.

#include <limits>
#include <vector>

#include "base/check.hpp"
#include "cholesky/divergence.hpp"
#include "geostat/checks.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/refined_solver.hpp"
#include "geostat/units.hpp"

namespace strata {
namespace {

constexpr const char* kPrecisionDivergenceWhere = "precision_divergence";
constexpr std::int64_t kExactOrderMax = 4096;

/// L of FP64, n × n; empty if there is none.
std::vector<double> exact_factor(const Points& points, const MaternParameters& parameters,
                                 CovarianceOptions options, FactorInfo& info) {
  options.mixed = {};
  CovarianceSolver solver = covariance_solver(points, options);
  info = solver.factor(covariance_of(parameters));
  if (!info.ok) return {};
  const std::int64_t n = points.size();
  std::vector<double> l(static_cast<std::size_t>(n * n));
  solver.copy_lower(0, {l.data(), n, n, n});
  return l;
}

void compare(CovarianceSolver& solver, const std::vector<double>& l, PrecisionDivergence& out) {
  const std::int64_t n = solver.n();
  const Divergence found = kullback_leibler(
      n,
      [&](std::int64_t first, MatrixView<double> columns) {
        std::copy_n(l.begin() + first * n, columns.cols * n, columns.data);
      },
      [&](std::int64_t first, MatrixView<double> columns) { solver.copy_lower(first, columns); },
      [&](MatrixView<double> b) { (void)solver.solve_lower(b); });
  out.exact = true;
  out.divergence = found.divergence;
  out.log_determinant_difference = found.log_determinant_difference;
}

void estimate(CovarianceSolver& solver, const Probing& probing, PrecisionDivergence& out) {
  if (!has_few_digits(solver)) return;
  const LogDeterminantCorrection found = RefinedSolver(solver).log_determinant(probing);
  out.divergence = found.divergence;
  out.divergence_error = found.divergence_standard_error;
  out.log_determinant_difference = found.correction;
  out.log_determinant_error = found.statistical_bound_applied();
  out.probes = found.probes;
  out.lanczos_steps = found.steps;
}

}  // namespace

PrecisionDivergence precision_divergence(const Points& points, const MaternParameters& given,
                                         const CovarianceOptions& options,
                                         DivergenceMethod method) {
  check_points(points, "points", kPrecisionDivergenceWhere);
  check_parameters(given, kPrecisionDivergenceWhere);
  check_separation(given.separation, points, kPrecisionDivergenceWhere);
  if (given.nugget == 0)
    check_distinct(points, given.separation.distance, kPrecisionDivergenceWhere);
  require(options.mixed.on(), ErrorKind::misuse, kPrecisionDivergenceWhere,
          "the accuracy is {}, but a divergence from FP64 is one of lower precisions",
          options.mixed.accuracy);
  check_mixed_precision(options.mixed);
  if (method == DivergenceMethod::automatic) {
    method = points.size() <= kExactOrderMax ? DivergenceMethod::exact : DivergenceMethod::estimate;
  }
  const Units units(points, given, kPrecisionDivergenceWhere);
  const MaternParameters parameters = units.of(given);
  const OrderedPoints ordered(units.of(points), options, &parameters);
  PrecisionDivergence out;
  out.divergence = out.log_determinant_difference = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> l;
  if (method == DivergenceMethod::exact) {
    l = exact_factor(ordered.points(), parameters, options, out.factor);
    units.restore(out.factor, points.size());
    if (!out.factor.ok) return out;
  }
  CovarianceSolver solver = covariance_solver(ordered, options);
  out.factor = solver.factor(covariance_of(parameters));
  units.restore(out.factor, points.size());
  out.run = solver.report();
  if (!out.factor.ok) return out;
  out.divergence = out.log_determinant_difference = 0;
  if (method == DivergenceMethod::exact) {
    compare(solver, l, out);
  } else {
    estimate(solver, options.probing, out);
  }
  return out;
}

}  // namespace strata
