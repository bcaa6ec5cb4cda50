#pragma once
// PassRunner: runs passes over the rows of one tall matrix, one after the other, on the devices.
//
// Contract: each pass is planned, simulated and run by the engine; V stays on the devices between
// passes where there is room (Residency), and goes home when a pass is told that it is the last.
// The reports of all passes are added up. Throws as run() does.

#include <cstddef>
#include <utility>
#include <vector>

#include "qr/row_passes.hpp"
#include "qr/row_store.hpp"
#include "qr/square_matrix.hpp"
#include "run/device_set.hpp"
#include "session/planned_run.hpp"
#include "strata/options.hpp"

namespace strata {

template <class T>
class PassRunner {
 public:
  /// Throws Error{memory} if a device cannot hold what a pass needs at least.
  PassRunner(TallColumns<T> matrix, const Options& options);

  /// B, in W. d: one scale a column. R, of solving passes, is in F.
  template <class W>
  [[nodiscard]] SquareMatrix<W> gram(const std::vector<double>& d);
  /// Of what a solve with R would make, without storing it.
  template <class W, class F>
  [[nodiscard]] SquareMatrix<W> apply_gram(const SquareMatrix<F>& r, const std::vector<double>& d);
  template <class W, class F>
  [[nodiscard]] SquareMatrix<W> solve_gram(const SquareMatrix<F>& r, const std::vector<double>& d,
                                           bool last);
  template <class F>
  void solve(const SquareMatrix<F>& r, const std::vector<double>& d);
  /// V ← the orthonormal columns that the steps of column_update make; their coefficients, n for
  /// each step.
  [[nodiscard]] std::vector<T> columns(std::vector<std::uint32_t> steps);
  /// Ω·V·diag(d), 2n × n, of a kind and a seed (sketch_variant).
  [[nodiscard]] std::vector<double> sketch(std::uint32_t variant, const std::vector<double>& d);
  /// LᵀX of the first `left` columns and those behind them, left × right; and X ← X − L·s.
  [[nodiscard]] std::vector<double> inner_columns(std::int64_t left);
  void subtract_columns(const std::vector<double>& s, std::int64_t left);
  /// The triangles of TSQR, all nodes of its tree, n × n each, the last that of V
  /// (tsqr_passes.hpp); V is not written.
  [[nodiscard]] std::vector<double> triangles(TreeShape shape);
  /// V ← Q·C, of the same; `nodes`: the triangles, behind them C.
  void orthogonal(const std::vector<double>& nodes, TreeShape shape, bool last);
  /// The largest magnitude in each column; NaN where one is.
  [[nodiscard]] std::vector<double> maxima();

  [[nodiscard]] int passes() const noexcept { return passes_; }
  [[nodiscard]] RunReport take_report() { return std::move(report_); }

 private:
  [[nodiscard]] RowProblem problem_of(RowPass pass, Element sum, Element factor) const;
  [[nodiscard]] RowProblem tsqr_problem(RowPass pass, TreeShape shape) const;
  [[nodiscard]] PlannedRun plan_of(const RowProblem& problem);
  void run_pass(const RowProblem& problem, const std::vector<double>& d, const std::byte* factor,
                std::byte* sum, std::vector<double>* maxima);

  TallColumns<T> matrix_;
  Options options_;
  DeviceSet devices_;
  std::uint64_t identity_;
  std::uint64_t tsqr_identity_;  ///< of V in other blocks, where those of TSQR are
  RunReport report_;
  RowProblem last_;  ///< the pass that was run last
  int passes_ = 0;
};

}  // namespace strata
