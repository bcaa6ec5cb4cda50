#include "cholesky/covariance_solver.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
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
      : points(packed(p)),
        dimensions(p.cols),
        progress(options.progress),
        factor(problem_of(p), options) {}

  std::vector<double> points;
  std::int64_t dimensions;
  ProgressCallback progress;
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

RunReport CovarianceSolver::solve_lower_transposed(MatrixView<double> b) {
  return state_->factor.sweep(Sweep::backward, b);
}

RunReport CovarianceSolver::solve(MatrixView<double> b) {
  return state_->factor.sweep(Sweep::both, b);
}

RunReport CovarianceSolver::multiply_lower(MatrixView<double> b) {
  RunReport report = state_->factor.sweep(Sweep::multiply, b);
  for (std::int64_t j = 0; j < b.cols; ++j) {  // the sweep's sign is that of gemm
    std::transform(b.column(j), b.column(j) + b.rows, b.column(j), std::negate<>());
  }
  return report;
}

void CovarianceSolver::reserve_for_targets(std::int64_t targets, std::int64_t columns) {
  state_->factor.reserve_for_targets(targets, columns);
}

std::int64_t CovarianceSolver::targets_at_a_time(std::int64_t targets, std::int64_t columns,
                                                 std::int64_t chunk) const {
  return state_->factor.target_chunks(targets, columns, chunk).targets;
}

RunReport CovarianceSolver::whitened_sums(MatrixView<const double> targets,
                                          MatrixView<const double> r, MatrixView<double> products,
                                          std::span<double> squares, std::int64_t chunk) {
  const std::int64_t m = targets.rows;
  require(targets.cols == state_->dimensions && r.rows == n() && products.rows == m &&
              products.cols == r.cols && std::ssize(squares) == m,
          ErrorKind::misuse, "cholesky",
          "{} by {} targets, R of {} by {}, {} by {} products and {} squares do not fit {} points "
          "with {} coordinates",
          m, targets.cols, r.rows, r.cols, products.rows, products.cols, squares.size(), n(),
          state_->dimensions);
  const auto begin = std::chrono::steady_clock::now();
  const auto report_progress = [&](double done) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    return !state_->progress ||
           state_->progress({done, static_cast<double>(m), elapsed.count(), "predict"});
  };
  CovarianceParameters cross = state_->parameters;
  cross.same_points = false;
  const std::vector<double> right = packed(r);
  const TargetChunks chunks = state_->factor.target_chunks(m, r.cols, chunk);
  RunReport total;
  for (std::int64_t done = 0; done < m; done += chunks.targets) {
    require(report_progress(static_cast<double>(done)), ErrorKind::cancelled, "predict",
            "cancelled after {} of {} targets", done, m);
    const std::int64_t count = std::min(chunks.targets, m - done);
    const std::vector<double> some = packed(targets.block(done, 0, count, targets.cols));
    std::vector<double> sums(static_cast<std::size_t>(count * r.cols));
    const MatrixView<double> of_chunk{sums.data(), count, r.cols, count};
    RunReport report = state_->factor.sum_whitened(
        {state_->points.data(), some.data(), right.data(), &cross, chunks.tile, of_chunk,
         squares.data() + done},
        [&](const Progress& p) {
          const double share = p.total > 0 ? p.done / p.total : 0;
          return report_progress(static_cast<double>(done) + share * static_cast<double>(count));
        });
    for (std::int64_t j = 0; j < r.cols; ++j)
      std::copy_n(of_chunk.column(j), count, products.column(j) + done);
    if (done == 0) {
      total = std::move(report);
      total.trace = {};  // the spans of one chunk would say little of the whole
    } else {
      accumulate(total, report);
    }
  }
  return total;
}

RunReport CovarianceSolver::inverse_diagonal(std::span<double> diagonal) {
  require(std::ssize(diagonal) == n(), ErrorKind::misuse, "cholesky",
          "a diagonal of {} values does not fit a factor of order {}", diagonal.size(), n());
  const auto begin = std::chrono::steady_clock::now();
  const TargetChunks chunks = state_->factor.target_chunks(n(), 0, 0);
  RunReport total;
  for (std::int64_t done = 0; done < n(); done += chunks.targets) {
    const std::int64_t count = std::min(chunks.targets, n() - done);
    const auto report_progress = [&](const Progress& p) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      const double share = p.total > 0 ? p.done / p.total : 0;
      return !state_->progress ||
             state_->progress({static_cast<double>(done) + share * static_cast<double>(count),
                               static_cast<double>(n()), elapsed.count(), "inverse"});
    };
    RunReport report = state_->factor.sum_inverse(
        done, chunks.tile,
        diagonal.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
        report_progress);
    if (done == 0) {
      total = std::move(report);
      total.trace = {};
    } else {
      accumulate(total, report);
    }
  }
  return total;
}

}  // namespace strata
