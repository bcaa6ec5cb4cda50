// Cross-validation with the covariance held and the mean estimated anew.
//
// Method: leave-one-out from one factorization (Dubrule, "Cross validation of kriging in a unique
// neighborhood", Mathematical Geology 15, 1983). With Q = Σ⁻¹ − Σ⁻¹X(XᵀΣ⁻¹X)⁻¹XᵀΣ⁻¹, or Q = Σ⁻¹ for
// a known mean, the error of the prediction of z_i from the others is [Qr]_i / Q_ii and its
// variance 1 / Q_ii. With L⁻¹X = U·R, U orthonormal, Q = L⁻ᵀ(I − UUᵀ)L⁻¹: its diagonal is that of
// Σ⁻¹, the squared lengths of the columns of L⁻¹, less the squares of the rows of L⁻ᵀU. The sample
// mean of the others differs from that of all by r_i/(n − 1), which is added.
//
// Folds: every fold is predicted from the others. Random folds tell how well gaps between
// observations are filled; blocks, each a compact part of the plane, how well what lies outside
// them is reached (Roberts et al., "Cross-validation strategies for data with temporal, spatial,
// hierarchical, or phylogenetic structure", Ecography 40, 2017). Blocks are cut by halving the
// longer side of the bounding box of the points, in proportion to the folds on each side.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "base/random.hpp"
#include "geostat/checks.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/kriging.hpp"
#include "geostat/likelihood_rounding.hpp"
#include "geostat/mean_basis.hpp"
#include "geostat/point_sets.hpp"
#include "geostat/prediction_rounding.hpp"
#include "geostat/refined_solver.hpp"
#include "geostat/units.hpp"

namespace strata {
namespace {

constexpr const char* kCrossValidationWhere = "cross_validate";

using Rows = std::vector<std::int64_t>;

void check_data(const Points& points, std::span<const double> values,
                const MaternParameters& parameters, Mean mean) {
  check_points(points, "points", kCrossValidationWhere);
  check_values(points, values, kCrossValidationWhere);
  check_mean(mean, points, kCrossValidationWhere);
  check_parameters(parameters, kCrossValidationWhere);
  check_separation(parameters.separation, points, kCrossValidationWhere);
  if (parameters.nugget == 0)
    check_distinct(points, parameters.separation.distance, kCrossValidationWhere);
}

// ---- folds

std::vector<int> random_folds(std::int64_t n, int folds, std::uint64_t seed) {
  Rows order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [seed](std::int64_t a, std::int64_t b) {
    const auto p = random_bits(seed, static_cast<std::uint64_t>(a));
    const auto q = random_bits(seed, static_cast<std::uint64_t>(b));
    return p != q ? p < q : a < b;
  });
  std::vector<int> fold(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    fold[static_cast<std::size_t>(order[k])] =
        static_cast<int>(k % static_cast<std::size_t>(folds));
  return fold;
}

/// Gives the rows first … last the folds first_fold … first_fold + folds − 1.
void cut_blocks(const Points& points, Rows::iterator first, Rows::iterator last, int first_fold,
                int folds, std::vector<int>& fold) {
  if (folds == 1) {
    for (auto row = first; row != last; ++row) fold[static_cast<std::size_t>(*row)] = first_fold;
    return;
  }
  const auto width = [&](const std::vector<double>& c) {
    double low = c[static_cast<std::size_t>(*first)];
    double high = low;
    for (auto row = first; row != last; ++row) {
      low = std::min(low, c[static_cast<std::size_t>(*row)]);
      high = std::max(high, c[static_cast<std::size_t>(*row)]);
    }
    return high - low;
  };
  const std::vector<double>& along = width(points.x) >= width(points.y) ? points.x : points.y;
  const int left = folds / 2;
  const auto middle = first + (last - first) * left / folds;
  std::nth_element(first, middle, last, [&along](std::int64_t a, std::int64_t b) {
    const double p = along[static_cast<std::size_t>(a)];
    const double q = along[static_cast<std::size_t>(b)];
    return p != q ? p < q : a < b;
  });
  cut_blocks(points, first, middle, first_fold, left, fold);
  cut_blocks(points, middle, last, first_fold + left, folds - left, fold);
}

std::vector<int> make_folds(const Points& points, const CrossValidationOptions& options) {
  if (!options.blocks) return random_folds(points.size(), options.folds, options.seed);
  Rows rows(static_cast<std::size_t>(points.size()));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<int> fold(rows.size());
  cut_blocks(points, rows.begin(), rows.end(), 0, options.folds, fold);
  return fold;
}

std::vector<double> values_at(std::span<const double> values, const Rows& rows) {
  std::vector<double> out;
  for (const std::int64_t row : rows) out.push_back(values[static_cast<std::size_t>(row)]);
  return out;
}

// ---- leave one out

/// What one factorization says of all points.
struct Inverse {
  std::vector<double> diagonal;  ///< of Q
  std::vector<double> weighted;  ///< Q·r
  std::vector<double> ones;      ///< Σ⁻¹·1, for the sample mean
  /// Rows without which the mean would hardly be known, a stray point with a linear mean: of
  /// [Σ⁻¹]_ii too little is left in Q_ii. They are few, what is taken off is p in all.
  Rows alone;
};
constexpr double kLeftOver = 0.1;

/// From U = Σ⁻¹[X | r] by refined solves, what L⁻ᵀ gives otherwise: on return w is that.
void invert_refined(CovarianceSolver& solver, MatrixView<double> w, CrossValidation& out) {
  std::vector<double> solutions(static_cast<std::size_t>(w.rows * w.cols));
  const MatrixView<double> u{solutions.data(), w.rows, w.cols, w.rows};
  const Refinement refinement = RefinedSolver(solver).solve(w, u);
  const Regression regression = regress_by_solutions(w, u, kCrossValidationWhere);
  divide_by_triangle(regression, u.block(0, 0, u.rows, u.cols - 1));
  std::copy(solutions.begin(), solutions.end(), w.data);
  out.certificate = {.backward_error = refinement.backward_error,
                     .refinement_steps = refinement.steps,
                     .variance_error = relative_error_of_squares(refinement)};
}

/// Rounding changes Q_ii by aᵀΔa, a = Σ⁻¹e_i, and the error of a prediction, [Qr]_i / Q_ii, by
/// aᵀΔx / Q_ii, x = Σ⁻¹r. Some points tell: by their variances, from the largest to the smallest.
void note_rounding(CovarianceSolver& solver, const CovarianceParameters& parameters,
                   const std::vector<double>& diagonal, const double* solution,
                   PredictionCertificate& certificate) {
  constexpr std::int64_t kPoints = 8;
  const auto n = std::ssize(diagonal);
  Rows rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  std::sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
    const double p = diagonal[static_cast<std::size_t>(a)];
    const double q = diagonal[static_cast<std::size_t>(b)];
    return p != q ? p < q : a < b;
  });
  const std::int64_t count = std::min(kPoints, n);
  DenseBlock columns(n, count);
  const auto row_of = [&](std::int64_t j) {
    return rows[static_cast<std::size_t>(count > 1 ? j * (n - 1) / (count - 1) : 0)];
  };
  for (std::int64_t j = 0; j < count; ++j) columns.column(j)[row_of(j)] = 1;
  (void)solver.solve(columns.view());
  const double entry = kRoundingDeviations * entry_rounding(n, parameters);
  const double length = std::sqrt(dot(n, solution, solution));
  double of_diagonal = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const double q = diagonal[static_cast<std::size_t>(row_of(j))];
    const double square = dot(n, columns.column(j), columns.column(j));
    of_diagonal = std::max(of_diagonal, entry * square / q);
    certificate.mean_error =
        std::max(certificate.mean_error, entry * std::sqrt(square) / q * length);
  }
  certificate.variance_error += of_diagonal;
}

/// What FP64 does to each point, with a = Q·e_i: of [Qr]_i / Q_ii the weights are a / Q_ii, and
/// Q_ii itself changes by aᵀΔa. With random signs s the mean square of [Qs]_i is ‖a‖² (Hutchinson
/// 1990): that tells which points to look at. `w` is L⁻ᵀ[U | (I − UUᵀ)L⁻¹r]; rows of `alone`,
/// ascending, are left out. `of_known_mean`: [Σ⁻¹]_ii, of which Q_ii is what is left.
PredictionRounding estimate_rounding(CovarianceSolver& solver, const Regression& regression,
                                     FactoredProblem problem,
                                     const CovarianceParameters& parameters,
                                     const std::vector<double>& diagonal,
                                     const std::vector<double>& of_known_mean, const Rows& alone,
                                     MatrixView<const double> w) {
  const std::int64_t n = w.rows;
  const std::int64_t p = w.cols - 1;
  const double* solution = w.column(p);
  InverseProbes probes = probe_inverse(solver);
  problem.entry = entry_rounding(n, parameters);
  problem.diagonal = parameters.variance + parameters.nugget;
  problem.amplification = rounding_amplification(probes, parameters);
  for (std::int64_t k = 0; k < probes.signs.cols(); ++k) {
    for (std::int64_t j = 0; j < p; ++j)
      add_scaled(n, -dot(n, w.column(j), probes.signs.column(k)), w.column(j),
                 probes.solutions.column(k));
  }
  const double length_of_solution = std::sqrt(dot(n, solution, solution));
  const auto rounding_of = [&](std::int64_t i, double square) {
    if (std::binary_search(alone.begin(), alone.end(), i)) return PredictionRounding{0, 0, 0, 0};
    const double q = diagonal[static_cast<std::size_t>(i)];
    const double length = std::sqrt(square) / q;
    problem.solution_length = length_of_solution + std::abs(solution[i]) * length;
    std::vector<double> of_mean;
    for (std::int64_t j = 0; j < p; ++j) of_mean.push_back(w(i, j) / q);
    PointErrors errors = rounding_at(problem, length, regression.length_of_solution(of_mean));
    const double cancelled = std::sqrt(static_cast<double>(n + 16)) * kUnitRoundoff *
                             of_known_mean[static_cast<std::size_t>(i)] / q;
    errors.mean += cancelled * std::abs(solution[i]) / q;
    errors.variance += cancelled / q;
    PredictionRounding out;
    note_errors(out, errors, 1 / std::sqrt(q), 1 / std::sqrt(q), true);
    return out;
  };
  std::vector<PredictionRounding> all;
  for (std::int64_t i = 0; i < n; ++i) {
    double square = 0;
    for (std::int64_t k = 0; k < probes.signs.cols(); ++k)
      square += probes.solutions.column(k)[i] * probes.solutions.column(k)[i];
    all.push_back(rounding_of(i, square / static_cast<double>(probes.signs.cols())));
  }
  const Rows some = worst_rows(all);
  DenseBlock columns(n, std::ssize(some));
  for (std::int64_t k = 0; k < columns.cols(); ++k)
    columns.column(k)[some[static_cast<std::size_t>(k)]] = 1;
  (void)solver.solve(columns.view());
  PredictionRounding out;
  for (std::int64_t k = 0; k < columns.cols(); ++k) {
    const std::int64_t i = some[static_cast<std::size_t>(k)];
    double* a = columns.column(k);
    for (std::int64_t j = 0; j < p; ++j) add_scaled(n, -w(i, j), w.column(j), a);
    out = worst_of(out, rounding_of(i, dot(n, a, a)));
  }
  return out;
}

Inverse invert(const OrderedPoints& ordered, std::span<const double> given,
               const MaternParameters& parameters, Mean mean, const CovarianceOptions& options,
               CrossValidation& out) {
  const Points& points = ordered.points();
  const std::vector<double> values = ordered.ordered(given);
  const std::int64_t n = points.size();
  CovarianceSolver solver = covariance_solver(ordered, options);
  solver.reserve_for_targets(n, 0);
  factor_or_fail(solver, parameters, kCrossValidationWhere);
  out.run = solver.report();
  const MeanBasis basis(mean, points, parameters.separation.distance);
  const std::int64_t p = basis.columns();
  const double shift = mean == Mean::zero ? 0 : sample_mean(values);
  std::vector<double> data(static_cast<std::size_t>(n * (p + 1)));
  const MatrixView<double> w{data.data(), n, p + 1, n};
  basis.fill(points, w);
  std::transform(values.begin(), values.end(), w.column(p), [&](double z) { return z - shift; });
  const bool refined = has_few_digits(solver);
  Regression regression;
  FactoredProblem problem;
  problem.column_rounding = basis.roundings() * kUnitRoundoff;
  problem.largest_residual = norm_inf(n, w.column(p));
  problem.largest_value = norm_inf(n, values.data());
  if (refined) {
    invert_refined(solver, w, out);
  } else {
    solver.solve_lower(w);
    regression = regress(w, kCrossValidationWhere);  // leaves U and (I − UUᵀ)L⁻¹r
    solver.solve_lower_transposed(w);
  }
  Inverse inverse;
  inverse.diagonal.resize(static_cast<std::size_t>(n));
  out.inverse = solver.inverse_diagonal(inverse.diagonal);
  inverse.weighted.assign(w.column(p), w.column(p) + n);
  const std::vector<double> of_known_mean = inverse.diagonal;
  double most_taken = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    double& q = inverse.diagonal[static_cast<std::size_t>(i)];
    const double known = q;
    for (std::int64_t j = 0; j < p; ++j) q -= w(i, j) * w(i, j);
    if (q > kLeftOver * known) {
      most_taken = std::max(most_taken, known / q);
      continue;
    }
    inverse.alone.push_back(i);
    q = known;
  }
  // What is known of [Σ⁻¹]_ii beside itself is less beside what is left of it.
  if (refined) out.certificate->variance_error *= most_taken;
  if (refined)
    note_rounding(solver, covariance_of(parameters), inverse.diagonal, w.column(p),
                  *out.certificate);
  else
    out.rounding = estimate_rounding(solver, regression, problem, covariance_of(parameters),
                                     inverse.diagonal, of_known_mean, inverse.alone, w);
  for (std::int64_t& row : inverse.alone) row = ordered.row(row);
  if (mean == Mean::sample) {
    inverse.ones.assign(static_cast<std::size_t>(n), 1.0);
    const MatrixView<double> ones{inverse.ones.data(), n, 1, n};
    if (refined) {
      const std::vector<double> right = inverse.ones;
      (void)RefinedSolver(solver).solve({right.data(), n, 1, n}, ones);
    } else {
      solver.solve(ones);
    }
  }
  for (std::vector<double>* v : {&inverse.diagonal, &inverse.weighted, &inverse.ones})
    if (!v->empty()) ordered.restore({v->data(), n, 1, n});
  return inverse;
}

PredictionCertificate worst_of(const std::optional<PredictionCertificate>& a,
                               const PredictionCertificate& b) {
  if (!a) return b;
  return {std::max(a->backward_error, b.backward_error),
          std::max(a->refinement_steps, b.refinement_steps),
          std::max(a->variance_error, b.variance_error), std::max(a->mean_error, b.mean_error)};
}

/// A row from all others, by a factorization of its own.
void predict_alone(const Points& points, std::span<const double> values,
                   const MaternParameters& parameters, Mean mean, const CovarianceOptions& options,
                   std::int64_t row, CrossValidation& out) {
  Rows others(values.size());
  std::iota(others.begin(), others.end(), 0);
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(row));
  const Model model{parameters, mean, {}, rows_of(points, others), values_at(values, others)};
  try {
    const Prediction found = predict(model, rows_of(points, Rows{row}), options);
    const double deviation = found.standard_error[0];
    out.mean[static_cast<std::size_t>(row)] = found.mean[0];
    out.standard_error[static_cast<std::size_t>(row)] = deviation;
    out.rounding = worst_of(out.rounding, found.rounding);
    if (found.certificate) {
      PredictionCertificate relative = *found.certificate;
      relative.variance_error /= deviation * deviation;
      out.certificate = worst_of(out.certificate, relative);
    }
  } catch (const Error& error) {
    fail(error.kind(), kCrossValidationWhere, "without row {} (counting from 0): {}", row,
         error.what());
  }
}

}  // namespace

CrossValidation leave_one_out(const Points& points, std::span<const double> values,
                              const MaternParameters& parameters, Mean mean,
                              const CovarianceOptions& options) {
  check_data(points, values, parameters, mean);
  const std::int64_t n = points.size();
  require(n >= 2, ErrorKind::misuse, kCrossValidationWhere,
          "{} points are too few to leave one out", n);
  const Units units(points, parameters, kCrossValidationWhere);
  const MaternParameters used = units.of(parameters);
  const std::vector<double> data = units.of(values);
  CrossValidation out;
  const Inverse inverse =
      invert(OrderedPoints(units.of(points), options, &used), data, used, mean, options, out);
  const double centre = mean == Mean::sample ? sample_mean(data) : 0;
  double largest = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const double q = inverse.diagonal[i];
    double error = inverse.weighted[i] / q;
    if (mean == Mean::sample)
      error += (data[i] - centre) / static_cast<double>(n - 1) * inverse.ones[i] / q;
    out.mean.push_back(data[i] - error);
    out.standard_error.push_back(1 / std::sqrt(q));
    largest = std::max(largest, std::abs(error));
  }
  units.restore(out.rounding);
  units.restore(out.mean);
  units.restore(out.standard_error);
  // An error that was divided by Q_ii is off by as much of itself, to first order and a bit.
  if (out.certificate)
    out.certificate->mean_error =
        units.value(out.certificate->mean_error + 1.1 * out.certificate->variance_error * largest);
  for (const std::int64_t row : inverse.alone)
    predict_alone(points, values, parameters, mean, options, row, out);
  out.scores = scores(values, out.mean, out.standard_error);
  return out;
}

CrossValidation cross_validate(const Points& points, std::span<const double> values,
                               const MaternParameters& parameters, Mean mean,
                               const CrossValidationOptions& options) {
  check_data(points, values, parameters, mean);
  const std::int64_t n = points.size();
  require(options.folds >= 2 && options.folds <= n, ErrorKind::misuse, kCrossValidationWhere,
          "folds is {}, but must be from 2 to the {} points", options.folds, n);
  CrossValidation out;
  out.fold = make_folds(points, options);
  out.mean.resize(values.size());
  out.standard_error.resize(values.size());
  for (int f = 0; f < options.folds; ++f) {
    Rows left;
    Rows kept;
    for (std::int64_t i = 0; i < n; ++i)
      (out.fold[static_cast<std::size_t>(i)] == f ? left : kept).push_back(i);
    const Model model{parameters, mean, {}, rows_of(points, kept), values_at(values, kept)};
    const Points targets = rows_of(points, left);
    Kriging kriging(model, targets.size(), 0, options, kCrossValidationWhere);
    out.run = kriging.report();
    const Prediction part = kriging.predict(targets, 0);
    out.rounding = worst_of(out.rounding, part.rounding);
    if (part.certificate) out.certificate = worst_of(out.certificate, *part.certificate);
    for (std::size_t k = 0; k < left.size(); ++k) {
      out.mean[static_cast<std::size_t>(left[k])] = part.mean[k];
      out.standard_error[static_cast<std::size_t>(left[k])] = part.standard_error[k];
    }
  }
  out.scores = scores(values, out.mean, out.standard_error);
  return out;
}

}  // namespace strata
