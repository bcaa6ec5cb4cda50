#include "cholesky/covariance_solver.hpp"

#include <vector>

#include "base/check.hpp"
#include "cholesky/tile_factor.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// A copy with ld = rows.
std::vector<double> packed(MatrixView<const double> a) {
  std::vector<double> copy;
  copy.reserve(static_cast<std::size_t>(a.size()));
  for (std::int64_t j = 0; j < a.cols; ++j)
    copy.insert(copy.end(), a.column(j), a.column(j) + a.rows);
  return copy;
}

CholeskyProblem problem_of(MatrixView<const double> points) {
  require(points.cols >= 1, ErrorKind::misuse, "cholesky",
          "points need at least one coordinate, not {}", points.cols);
  CholeskyProblem problem;
  problem.n = points.rows;
  problem.point_dimensions = points.cols;
  return problem;
}

}  // namespace

struct CovarianceSolver::State {
  State(MatrixView<const double> p, const Options& options)
      : points(packed(p)), dimensions(p.cols), factor(problem_of(p), options) {}

  std::vector<double> points;
  std::int64_t dimensions;
  TileFactor factor;
  CovarianceParameters parameters;
};

CovarianceSolver::CovarianceSolver(MatrixView<const double> points, const Options& options)
    : state_(std::make_unique<State>(points, options)) {}
CovarianceSolver::~CovarianceSolver() = default;

std::int64_t CovarianceSolver::n() const noexcept { return state_->factor.problem().n; }

const FactorInfo& CovarianceSolver::factor(const CovarianceParameters& parameters) {
  state_->parameters = parameters;
  state_->parameters.same_points = true;
  return state_->factor.factor_covariance(state_->points.data(), state_->parameters);
}

const RunReport& CovarianceSolver::report() const noexcept { return state_->factor.report(); }

RunReport CovarianceSolver::solve_lower(MatrixView<double> b) {
  return state_->factor.sweep(Sweep::forward, b);
}

RunReport CovarianceSolver::solve(MatrixView<double> b) {
  return state_->factor.sweep(Sweep::both, b);
}

RunReport CovarianceSolver::whitened_cross_covariance(MatrixView<const double> targets,
                                                      MatrixView<double> w) {
  require(targets.cols == state_->dimensions && w.cols == targets.rows, ErrorKind::misuse,
          "cholesky", "{} by {} targets do not fit points with {} coordinates and {} columns of W",
          targets.rows, targets.cols, state_->dimensions, w.cols);
  CovarianceParameters cross = state_->parameters;
  cross.same_points = false;
  return state_->factor.whiten(state_->points.data(), packed(targets).data(), cross, w);
}

}  // namespace strata
