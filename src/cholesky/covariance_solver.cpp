#include "cholesky/covariance_solver.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "cholesky/device_probes.hpp"
#include "cholesky/mixed_factor.hpp"
#include "cholesky/tile_factor.hpp"
#include "session/report.hpp"
#include "strata/detect.hpp"

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

/// The sign of such a sweep is that of gemm.
RunReport multiplied(TileFactor& factor, Sweep sweep, MatrixView<double> b) {
  RunReport report = factor.sweep(sweep, b);
  for (std::int64_t j = 0; j < b.cols; ++j)
    std::transform(b.column(j), b.column(j) + b.rows, b.column(j), std::negate<>());
  return report;
}

}  // namespace

struct CovarianceSolver::State {
  State(MatrixView<const double> p, const CovarianceOptions& given,
        std::shared_ptr<const Scout> scout)
      : points(packed(p)), dimensions(p.cols), n(p.rows), progress(given.run.progress) {
    CovarianceOptions options = given;
    options.run = within_host_memory(given.run, n, Element::fp64);
    const CholeskyProblem problem = problem_of(p);
    if (options.mixed.on()) {
      mixed.emplace(MatrixView<const double>{points.data(), p.rows, p.cols,
                                             std::max<std::int64_t>(p.rows, 1)},
                    options, std::move(scout));
    } else {
      uniform.emplace(problem, options);
    }
  }

  TileFactor& factor() { return mixed ? mixed->tiles() : *uniform; }

  std::vector<double> points;
  std::int64_t dimensions;
  std::int64_t n;
  ProgressCallback progress;
  std::optional<TileFactor> uniform;
  std::optional<MixedFactor> mixed;  // one of the two
  RunReport report;                  // of the last factorization, if it was mixed
  CovarianceParameters parameters;
  bool has_parameters = false;
};

CovarianceSolver::CovarianceSolver(MatrixView<const double> points,
                                   const CovarianceOptions& options,
                                   std::shared_ptr<const Scout> scout)
    : state_(std::make_unique<State>(points, options, std::move(scout))) {}
CovarianceSolver::~CovarianceSolver() = default;

std::int64_t CovarianceSolver::n() const noexcept { return state_->n; }

const FactorInfo& CovarianceSolver::factor(const CovarianceParameters& parameters) {
  state_->parameters = parameters;
  state_->has_parameters = true;
  state_->parameters.same_points = true;
  if (!state_->mixed)
    return state_->uniform->factor_covariance(state_->points.data(), state_->parameters);
  const FactorInfo& info = state_->mixed->factor(state_->parameters);
  state_->report = state_->factor().report();
  state_->report.mixed = state_->mixed->report();
  return info;
}

const RunReport& CovarianceSolver::report() const noexcept {
  return state_->mixed ? state_->report : state_->factor().report();
}

double CovarianceSolver::known_norm() const noexcept {
  return state_->mixed ? state_->mixed->norm() : 0;
}

RunReport CovarianceSolver::solve_lower(MatrixView<double> b) {
  return state_->factor().sweep(Sweep::forward, b);
}

RunReport CovarianceSolver::solve_lower_transposed(MatrixView<double> b) {
  return state_->factor().sweep(Sweep::backward, b);
}

RunReport CovarianceSolver::solve(MatrixView<double> b) {
  return state_->factor().sweep(Sweep::both, b);
}

RunReport CovarianceSolver::multiply(MatrixView<const double> v, MatrixView<double> y) {
  require(state_->has_parameters, ErrorKind::misuse, "cholesky",
          "the covariance of {} points has no parameters before it is factored", n());
  return state_->factor().multiply_covariance({state_->points.data(), &state_->parameters, v, y});
}

std::unique_ptr<DeviceProbes> CovarianceSolver::probes(const ProbeOptions& options) {
  require(state_->has_parameters, ErrorKind::misuse, "cholesky",
          "the covariance of {} points has no parameters before it is factored", n());
  return std::make_unique<DeviceProbes>(state_->factor(), state_->points.data(), state_->parameters,
                                        options);
}

RunReport CovarianceSolver::multiply_lower(MatrixView<double> b) {
  return multiplied(state_->factor(), Sweep::multiply, b);
}

RunReport CovarianceSolver::multiply_lower_transposed(MatrixView<double> b) {
  return multiplied(state_->factor(), Sweep::multiply_transposed, b);
}

void CovarianceSolver::copy_lower(std::int64_t first, MatrixView<double> out) {
  state_->factor().copy_columns(first, out);
}

void CovarianceSolver::reserve_for_targets(std::int64_t targets, std::int64_t columns) {
  // Which tiles a mixed factor will have is not known yet.
  if (state_->uniform) state_->uniform->reserve_for_targets(targets, columns);
}

std::int64_t CovarianceSolver::targets_at_a_time(std::int64_t targets, std::int64_t columns,
                                                 std::int64_t chunk) const {
  return state_->factor().target_chunks(targets, columns, chunk).targets;
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
  const TargetChunks chunks = state_->factor().target_chunks(m, r.cols, chunk);
  RunReport total;
  for (std::int64_t done = 0; done < m; done += chunks.targets) {
    require(report_progress(static_cast<double>(done)), ErrorKind::cancelled, "predict",
            "cancelled after {} of {} targets", done, m);
    const std::int64_t count = std::min(chunks.targets, m - done);
    const std::vector<double> some = packed(targets.block(done, 0, count, targets.cols));
    std::vector<double> sums(static_cast<std::size_t>(count * r.cols));
    const MatrixView<double> of_chunk{sums.data(), count, r.cols, count};
    RunReport report = state_->factor().sum_whitened(
        {state_->points.data(), some.data(), right.data(), &cross, chunks.tile, of_chunk,
         squares.data() + done},
        [&](const Progress& p) {
          const double share = p.total > 0 ? p.done / p.total : 0;
          return report_progress(static_cast<double>(done) + share * static_cast<double>(count));
        });
    for (std::int64_t j = 0; j < r.cols; ++j)
      std::copy_n(of_chunk.column(j), count, products.column(j) + done);
    report.trace = {};  // the spans of one chunk would say little of the whole
    accumulate(total, std::move(report));
  }
  return total;
}

RunReport CovarianceSolver::inverse_diagonal(std::span<double> diagonal) {
  require(std::ssize(diagonal) == n(), ErrorKind::misuse, "cholesky",
          "a diagonal of {} values does not fit a factor of order {}", diagonal.size(), n());
  const auto begin = std::chrono::steady_clock::now();
  const TargetChunks chunks = state_->factor().target_chunks(n(), 0, 0);
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
    RunReport report = state_->factor().sum_inverse(
        done, chunks.tile,
        diagonal.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
        report_progress);
    report.trace = {};
    accumulate(total, std::move(report));
  }
  return total;
}

}  // namespace strata
