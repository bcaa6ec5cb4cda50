#pragma once
// bench sparse: sparse Cholesky factorization beside CHOLMOD and cuDSS, in one process.
//
// Contract: a repeat is an analysis, a first factorization, a factorization of other values in the
// same pattern and solves, by us and then by CHOLMOD; what is told is the run of median seconds of
// each. CHOLMOD factors in our order of elimination, and analyzes by its own METIS beside. The
// other values are those of D·A·D, D diagonal and within 5 % of the identity, another in each
// repeat: so matrices of interior point methods change. Factors of both, solutions and determinants
// are those of the last repeat. cuDSS has its own order, on the GPU of ours, which holds ours no
// longer then unless SparseBench::once keeps it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/cholmod.hpp"
#include "bench/cudss_problem.hpp"
#include "bench/sparse_figures.hpp"
#include "bench/sparse_methods.hpp"
#include "bench/timed_runs.hpp"
#include "strata/sparse_factor.hpp"

namespace strata::bench {

struct SparseBench {
  SparseCholeskyOptions options;  ///< without a shift
  int repeats = 3;
  std::int64_t nrhs = 16;  ///< of the second solve
  bool methods = false;    ///< also what sparse_methods.hpp has, …
  LevelBatches levels;     ///< … so many fronts and streams at once
  bool once = false;       ///< one analysis and one first factorization, whatever the repeats
};

/// What one of the two did.
struct SparseSolver {
  SparseTiming analysis;  ///< with the order
  SparseTiming factor;    ///< the first, with the memory for it
  SparseTiming refactor;
  SparseTiming solve;       ///< one right-hand side
  SparseTiming solve_many;  ///< SparseBench::nrhs
  /// Where the factor stays on a GPU, of ours: the same with values and vectors that are there.
  SparseTiming refactor_there, solve_there, solve_many_there;
  double flops = 0;  ///< of L, without stored zeros; so are the entries
  double factor_entries = 0;
  std::int64_t supernodes = 0;
  std::int64_t panel_bytes = 0;
  std::int64_t bad_row = -1;  ///< −1: positive definite
  double log_determinant = 0;
  double backward_error = 0;  ///< of one right-hand side: ‖b − A·x‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞)

  /// Rate of the factorization of other values, by the flops of L.
  [[nodiscard]] double flops_per_second() const { return flops / refactor.seconds; }
};

struct CholmodRow : SparseSolver {
  SparseTiming analysis_given;  ///< in our order, to which all but `analysis` belongs
  double own_flops = 0;         ///< of L in the order by its METIS
};

struct SparseRow {
  std::string name;
  std::int64_t n = 0;
  std::int64_t entries = 0;  ///< of the lower triangle
  SparseOrdering ordering = SparseOrdering::metis;
  SparseSolver ours;
  std::optional<CholmodRow> peer;
  /// Times of cuDSS, which reports no operations, supernodes, bytes or determinant; its `bad_row`
  /// is in its own order.
  std::optional<SparseSolver> cudss;
  std::string disagreement;  ///< see disagreement(), of either peer; empty: none
  std::vector<WidthBin> widths;
  std::vector<TreeLevel> levels;
  double stored_flops = 0;
  RunReport report;                   ///< of our last factorization
  std::vector<SparseMethod> methods;  ///< where SparseBench::methods asks for them

  [[nodiscard]] bool fine() const { return ours.bad_row < 0 && disagreement.empty(); }
  /// Seconds of CHOLMOD's factorization of other values over ours.
  [[nodiscard]] double speedup() const { return peer->refactor.seconds / ours.refactor.seconds; }
};

/// What is wrong, in words: one of them found the matrix definite, the other not; log-determinants
/// that differ by more than 1e-10 of them; a backward error of ours above 1e-13 and 100 times that
/// of the peer.
[[nodiscard]] std::string disagreement(const SparseSolver& ours, const SparseSolver& peer);
/// The same without the determinants.
[[nodiscard]] std::string solution_disagreement(const SparseSolver& ours, const SparseSolver& peer);

/// ‖b − A·x‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞), sums compensated; A by its lower triangle.
[[nodiscard]] double backward_error(const SparseMatrix& lower, const std::vector<double>& b,
                                    std::span<const double> x);

/// `a` as analyze() takes it; `peer`, `cudss`: null for none. A matrix that is not positive
/// definite has a bad_row and no times behind it. Throws as lower_triangle() and SparseCholesky do.
[[nodiscard]] SparseRow run_sparse_bench(const std::string& name, const SparseMatrix& a,
                                         const SparseBench& bench, const CholmodLibrary* peer,
                                         const CudssPeer* cudss = nullptr);

}  // namespace strata::bench
