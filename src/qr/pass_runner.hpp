#pragma once
// PassRunner: the passes over the rows of one tall matrix, with matrices for arguments and results.
//
// Contract: an executor carries them out, where V lies. V may stay on the devices between passes,
// and goes home when a pass is told that it is the last. The reports of all passes are added up.
// Where V is kept (KeepMatrix), for good or until the last solve, a solve is noted instead of
// stored: V is then what the noted triangles make of the matrix, and has the bits that it would
// have if it had been stored. Throws as the executor does, and is of no use behind that.

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "dense/square_matrix.hpp"
#include "qr/pass_executor.hpp"
#include "qr/row_store.hpp"

namespace strata {

/// Whether solves leave the matrix as it is; then the passes are gram and maxima, before the first
/// solve, solve, solve_gram, and those that only such a matrix has.
enum class KeepMatrix : std::uint8_t {
  no,
  /// A solve that is not the last, in the element of V, until the next one, which stores what both
  /// make: in the place of V, of an executor that joins_solves(). If that one is of another
  /// element, the first is stored in a pass of its own.
  pairs,
  /// Until the last solve, or kTrianglesNoted of them: that one stores what all of them make.
  until_last,
  yes,
};
inline constexpr int kTrianglesNoted = 3;  ///< of until_last, with that of the last solve

template <class T>
class PassRunner {
 public:
  /// By the engine. Throws Error{memory} if a device cannot hold what a pass needs at least.
  PassRunner(TallColumns<T> matrix, const QrOptions& options);
  /// progress: asked before each pass; may be null.
  PassRunner(std::unique_ptr<PassExecutor<T>> executor, ProgressCallback progress,
             KeepMatrix keep = KeepMatrix::no)
      : executor_(std::move(executor)), progress_(std::move(progress)), keep_(keep) {}

  /// B, in W. d: one scale a column. R, of solving passes, is in F.
  template <class W>
  [[nodiscard]] SquareMatrix<W> gram(const std::vector<double>& d);
  /// The Gram matrix of what a solve with R would make, without storing it.
  template <class W, class F>
  [[nodiscard]] SquareMatrix<W> apply_gram(const SquareMatrix<F>& r, const std::vector<double>& d);
  template <class W, class F>
  [[nodiscard]] SquareMatrix<W> solve_gram(const SquareMatrix<F>& r, const std::vector<double>& d,
                                           bool last);
  /// last: whether V is the result from then on, for KeepMatrix::until_last.
  template <class F>
  void solve(const SquareMatrix<F>& r, const std::vector<double>& d, bool last);
  /// V ← the orthonormal columns that the steps of column_update make; their coefficients, n for
  /// each step.
  [[nodiscard]] std::vector<T> columns(std::vector<std::uint32_t> steps);
  /// Ω·V·diag(d), 2n × n, of a kind and a seed (sketch_variant).
  [[nodiscard]] std::vector<double> sketch(std::uint32_t variant, const std::vector<double>& d);
  /// A Gaussian sketch of the same size of a CountSketch of V·diag(d).
  [[nodiscard]] std::vector<double> multi_sketch(std::uint32_t seed, const std::vector<double>& d);
  /// The Gram matrix of a CountSketch of V·diag(d).
  [[nodiscard]] SquareMatrix<DoubleDouble> sketch_gram(std::uint32_t seed,
                                                       const std::vector<double>& d);
  /// LᵀX of the first `left` columns and those behind them, left × right; and X ← X − L·s.
  [[nodiscard]] std::vector<double> inner_columns(std::int64_t left);
  void subtract_columns(const std::vector<double>& s, std::int64_t left);
  /// The triangle of TSQR, the last of those of its tree (tsqr_passes.hpp), which the executor
  /// keeps; V is not written.
  [[nodiscard]] SquareMatrix<double> triangle(TreeShape shape);
  /// V ← Q·C, of the same.
  void orthogonal(const SquareMatrix<double>& c, TreeShape shape, bool last);
  // Where V is kept, with Q for what the noted triangles make of it:
  /// Y ← Q·C; minus: −C, n × the columns of Y.
  void apply(const std::vector<double>& minus, MatrixView<T> y);
  /// Qᵀ·B, n × the columns of B.
  template <class W>
  [[nodiscard]] std::vector<W> apply_transposed(const TallInput<T>& b);
  /// Column j of Q into column places[j] of `to`, or nowhere if that is −1; its Gram matrix, in
  /// doubles, where `sum`.
  SquareMatrix<double> form(MatrixView<T> to, std::vector<std::int64_t> places, bool sum);

  /// What the host has to do while the next pass runs (PassData).
  void during_next_pass(std::function<void()> work) { meanwhile_ = std::move(work); }

  /// The largest magnitude in each column; NaN where one is.
  [[nodiscard]] std::vector<double> maxima();

  /// As PassExecutor.
  void read(std::int64_t first, std::int64_t count, T* packed) {
    executor_->read(first, count, packed);
  }

  [[nodiscard]] int passes() const noexcept { return passes_; }
  /// What the passes since the last call did.
  [[nodiscard]] RunReport take_report() { return std::exchange(report_, {}); }

 private:
  [[nodiscard]] std::int64_t cols() const { return executor_->cols(); }
  [[nodiscard]] RowProblem problem_of(RowPass pass, Element sum, Element factor) const;
  [[nodiscard]] RowProblem problem_of_noted(RowPass pass, Element sum) const;
  template <class F>
  void note(const SquareMatrix<F>& r, const std::vector<double>& d);
  [[nodiscard]] bool stores_now(bool last) const;
  void store_noted(RowPass pass, Element sum, std::byte* b);
  void store_pair(RowPass pass, Element sum, std::byte* b);
  template <class F>
  [[nodiscard]] bool completes_pair(const SquareMatrix<F>& r, const std::vector<double>& d);
  void forget_noted();
  void run_pass(RowProblem problem, PassData<T> data);
  void run_count_pass(RowPass pass, Element sum, std::uint32_t seed, std::vector<double> d,
                      std::byte* b);

  std::unique_ptr<PassExecutor<T>> executor_;
  ProgressCallback progress_;
  std::function<void()> meanwhile_;
  KeepMatrix keep_ = KeepMatrix::no;
  /// The solves that were noted: the elements of their triangles, the triangles packed, and the
  /// scales.
  std::vector<Element> elements_;
  std::vector<std::byte> factors_;
  std::vector<double> scales_;
  RunReport report_;
  int passes_ = 0;
};

}  // namespace strata
