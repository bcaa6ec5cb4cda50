#include "bench/sparse_bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"
#include "bench/compensated_sum.hpp"
#include "bench/numbers_there.hpp"
#include "bench/sparse_matrices.hpp"

namespace strata::bench {
namespace {

/// In words, where two log-determinants differ; empty: they do not.
std::string determinant_disagreement(double ours, double other, const std::string& name) {
  constexpr double kTolerance = 1e-10;
  // Negated, so that what is not a number does not pass.
  if (!(std::abs(ours - other) <= kTolerance * std::max(1.0, std::abs(other))))
    return fmt::format("log-determinants {:.15g} and {:.15g} ({})", ours, other, name);
  return {};
}

struct SolverRuns {
  Runs analysis, factor, refactor, solve, solve_many;
  Runs refactor_there, solve_there, solve_many_there;

  void put(SparseSolver& row) const {
    row.analysis = analysis.timing();
    row.factor = factor.timing();
    row.refactor = refactor.timing();
    row.solve = solve.timing();
    row.solve_many = solve_many.timing();
    row.refactor_there = refactor_there.timing();
    row.solve_there = solve_there.timing();
    row.solve_many_there = solve_many_there.timing();
  }
};

class SparseRunner {
 public:
  SparseRunner(SparseMatrix lower, const SparseBench& bench, const CholmodLibrary* peer,
               const CudssPeer* cudss)
      : lower_(std::move(lower)), bench_(bench) {
    b_.resize(static_cast<std::size_t>(lower_.rows * bench.nrhs));
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = random_uniform(7, i) - 0.5;
    one_.assign(b_.begin(), b_.begin() + lower_.rows);
    if (peer != nullptr) problem_.emplace(*peer, lower_);
    if (cudss != nullptr) cudss_.emplace(*cudss, lower_, bench.nrhs);
  }

  void run(SparseRow& row) {
    if (problem_) row.peer.emplace();
    if (cudss_) row.cudss.emplace();
    for (int r = 0; r < bench_.repeats; ++r) {
      values_ = rescaled(lower_, static_cast<std::uint64_t>(r) + 1);
      const bool definite = run_ours(row);
      if (problem_) run_peer(*row.peer);
      if (cudss_) run_cudss(*row.cudss);
      if (!definite) break;
    }
    ours_.put(row.ours);
    if (bench_.methods && row.ours.bad_row < 0) compare(row);
    if (cudss_) {
      cudss_runs_.put(*row.cudss);
      if (row.disagreement.empty()) row.disagreement = solution_disagreement(row.ours, *row.cudss);
    }
    if (!problem_) return;
    peers_.put(*row.peer);
    row.peer->analysis_given = given_.timing();
    if (row.disagreement.empty()) row.disagreement = disagreement(row.ours, *row.peer);
  }

 private:
  /// False if the matrix is not positive definite.
  bool run_ours(SparseRow& row) {
    const bool rested = problem_.has_value();
    if (!factor_ || !bench_.once) begin(row, rested);
    std::optional<SparseCholesky>& factor = factor_;
    if (factor->info().ok) ours_.refactor.time(rested, [&] { factor->refactor(values_); });
    row.report = factor->report();
    if (!factor->info().ok) {
      row.ours.bad_row = factor->info().first_bad_pivot;
      return false;
    }
    row.ours.log_determinant = factor->info().log_determinant;
    const std::int64_t n = lower_.rows;
    std::vector<double> x = b_;
    ours_.solve_many.time(rested, [&] { factor->solve({x.data(), n, bench_.nrhs, n}); });
    x = one_;
    ours_.solve.time(rested, [&] { factor->solve({x.data(), n, 1, n}); });
    row.ours.backward_error = backward_error(values_, one_, x);
    if (row.report.path == "resident" && !bench_.options.batches) run_there(*factor);
    if (!bench_.once) factor_.reset();  // its memory is the peer's now
    return true;
  }

  /// From the matrix to a first factor.
  void begin(SparseRow& row, bool rested) {
    factor_.reset();
    SparseAnalysis analysis;
    ours_.analysis.time(rested, [&] { analysis = analyze(lower_, bench_.options.analysis); });
    if (order_.empty()) {
      describe(analysis, row);
      order_.assign(analysis.order.begin(), analysis.order.end());
    }
    ours_.factor.time(rested,
                      [&] { factor_.emplace(std::move(analysis), lower_, bench_.options); });
  }

  /// The ways of sparse_methods.hpp, with the memory that ours had.
  void compare(SparseRow& row) {
    factor_.reset();
    const SparseAnalysis analysis = analyze(lower_, bench_.options.analysis);
    row.methods = compare_methods(lower_, analysis, bench_.options, bench_.levels, bench_.repeats);
    for (const SparseMethod& method : row.methods)
      if (row.disagreement.empty())
        row.disagreement =
            determinant_disagreement(row.ours.log_determinant, method.log_determinant, method.name);
  }

  void run_there(SparseCholesky& factor) {
    if (factor.precision() != Element::fp64) return;
    const std::int64_t n = lower_.rows;
    NumbersThere there(bench_.options.run, std::max(std::ssize(values_.value), std::ssize(b_)));
    const double* values = there.put(values_.value);
    ours_.refactor_there.time(false, [&] {
      factor.refactor_values({values, values_.value.size()});
    });
    double* x = there.put(b_);
    ours_.solve_many_there.time(false, [&] { factor.solve({x, n, bench_.nrhs, n}); });
    x = there.put(one_);
    ours_.solve_there.time(false, [&] { factor.solve({x, n, 1, n}); });
  }

  void run_peer(CholmodRow& row) {
    peers_.analysis.time(true, [&] { row.own_flops = problem_->analyze().flops; });
    given_.time(true, [&] {
      const CholmodCounts counts = problem_->analyze(order_);
      row.flops = counts.flops;
      row.factor_entries = counts.factor_entries;
      row.supernodes = counts.supernodes;
      row.panel_bytes = counts.panel_bytes;
    });
    peers_.factor.time(true, [&] { row.bad_row = problem_->factor(lower_.value); });
    if (row.bad_row < 0)
      peers_.refactor.time(true, [&] { row.bad_row = problem_->factor(values_.value); });
    if (row.bad_row >= 0) return;
    row.log_determinant = problem_->log_determinant();
    peers_.solve_many.time(true, [&] { (void)problem_->solve(b_, bench_.nrhs); });
    std::span<const double> x;
    peers_.solve.time(true, [&] { x = problem_->solve(one_, 1); });
    row.backward_error = backward_error(values_, one_, x);
  }

  void run_cudss(SparseSolver& row) {
    if (row.factor_entries == 0 || !bench_.once) {
      cudss_runs_.analysis.time(
          true, [&] { row.factor_entries = static_cast<double>(cudss_->analyze()); });
      cudss_runs_.factor.time(true, [&] { row.bad_row = cudss_->factor(lower_.value.data()); });
    }
    if (row.bad_row < 0)
      cudss_runs_.refactor.time(true, [&] { row.bad_row = cudss_->factor(values_.value.data()); });
    if (row.bad_row >= 0) return;
    std::vector<double> x(b_.size());
    cudss_runs_.solve_many.time(true, [&] { cudss_->solve(b_.data(), bench_.nrhs, x.data()); });
    cudss_runs_.solve.time(true, [&] { cudss_->solve(one_.data(), 1, x.data()); });
    row.backward_error = backward_error(values_, one_, std::span(x).first(one_.size()));
    run_cudss_there(row);
  }

  void run_cudss_there(SparseSolver& row) {
    const RunOptions& run = bench_.options.run;
    NumbersThere numbers(run, std::max(std::ssize(values_.value), std::ssize(b_)));
    NumbersThere solution(run, std::ssize(b_));
    double* x = solution.put(b_);
    const double* given = numbers.put(values_.value);
    cudss_runs_.refactor_there.time(false, [&] { row.bad_row = cudss_->factor(given); });
    given = numbers.put(b_);
    cudss_runs_.solve_many_there.time(false, [&] { cudss_->solve(given, bench_.nrhs, x); });
    cudss_runs_.solve_there.time(false, [&] { cudss_->solve(given, 1, x); });
  }

  static void describe(const SparseAnalysis& analysis, SparseRow& row) {
    row.ordering = analysis.ordering;
    row.ours.flops = analysis.counts.flops;
    row.ours.factor_entries = static_cast<double>(analysis.counts.factor_entries);
    row.ours.supernodes = analysis.supernodes();
    row.ours.panel_bytes = analysis.counts.panel_bytes;
    row.stored_flops = analysis.counts.stored_flops;
    row.widths = width_histogram(analysis);
    row.levels = tree_levels(analysis);
  }

  SparseMatrix lower_;
  const SparseBench& bench_;
  std::vector<double> b_;
  std::vector<double> one_;  // its first column
  std::optional<CholmodProblem> problem_;
  std::optional<CudssProblem> cudss_;
  std::vector<std::int64_t> order_;
  SparseMatrix values_;  // of the repeat
  std::optional<SparseCholesky> factor_;
  SolverRuns ours_;
  SolverRuns peers_;
  SolverRuns cudss_runs_;
  Runs given_;
};

}  // namespace

std::string disagreement(const SparseSolver& ours, const SparseSolver& peer) {
  const bool definite = ours.bad_row < 0 && peer.bad_row < 0;
  std::string found =
      definite ? determinant_disagreement(ours.log_determinant, peer.log_determinant, "peer") : "";
  if (!found.empty()) return found;
  return solution_disagreement(ours, peer);
}

std::string solution_disagreement(const SparseSolver& ours, const SparseSolver& peer) {
  constexpr double kErrorFloor = 1e-13;
  constexpr double kErrorRatio = 100;
  if ((ours.bad_row < 0) != (peer.bad_row < 0))
    return fmt::format("one of the two found it positive definite: bad rows {} and {} (peer)",
                       ours.bad_row, peer.bad_row);
  if (ours.bad_row >= 0) return {};
  if (!(ours.backward_error <= std::max(kErrorFloor, kErrorRatio * peer.backward_error)))
    return fmt::format("backward errors {:.1e} and {:.1e} (peer)", ours.backward_error,
                       peer.backward_error);
  return {};
}

double backward_error(const SparseMatrix& lower, const std::vector<double>& b,
                      std::span<const double> x) {
  const auto n = static_cast<std::size_t>(lower.rows);
  std::vector<CompensatedSum> residual(n);
  std::vector<double> magnitudes(n);
  for (std::size_t i = 0; i < n; ++i) residual[i].add(b[i]);
  for (std::size_t i = 0; i < n; ++i) {
    for (auto e = static_cast<std::size_t>(lower.start[i]);
         e < static_cast<std::size_t>(lower.start[i + 1]); ++e) {
      const auto j = static_cast<std::size_t>(lower.column[e]);
      const double value = lower.value[e];
      residual[i].add_product(-value, x[j]);
      magnitudes[i] += std::abs(value);
      if (i == j) continue;
      residual[j].add_product(-value, x[i]);
      magnitudes[j] += std::abs(value);
    }
  }
  double most = 0;
  double norm = 0;
  double of_x = 0;
  double of_b = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = std::abs(residual[i].value());
    if (std::isnan(value)) return value;
    most = std::max(most, value);
    norm = std::max(norm, magnitudes[i]);
    of_x = std::max(of_x, std::abs(x[i]));
    of_b = std::max(of_b, std::abs(b[i]));
  }
  return most == 0 ? 0 : most / (norm * of_x + of_b);
}

SparseRow run_sparse_bench(const std::string& name, const SparseMatrix& a, const SparseBench& bench,
                           const CholmodLibrary* peer, const CudssPeer* cudss) {
  require(bench.repeats >= 1 && bench.nrhs >= 1, ErrorKind::misuse, "bench",
          "{} repeats, {} right-hand sides", bench.repeats, bench.nrhs);
  SparseRow row;
  row.name = name;
  SparseMatrix lower = lower_triangle(a);
  row.n = lower.rows;
  row.entries = lower.entries();
  SparseRunner runner(std::move(lower), bench, peer, cudss);
  runner.run(row);
  return row;
}

}  // namespace strata::bench
