#pragma once
// BlockLanczos: the largest eigenpairs of an operator that is symmetric in an inner product of its
// own, on the host.
//
// Contract: the operator is X ← B·(M·X) with B symmetric positive definite: eigenpairs θ, v with
// B·M·v = θ·v, M-orthonormal. All vectors are orthogonalized against each other, twice. Equal
// inputs give equal bits, whatever the number of threads.
//
// Method: blocks of `block` vectors; when the basis is full, the Ritz vectors of the largest values
// and the block that was to come next begin the next one (thick restart).

#include <cstdint>
#include <functional>
#include <vector>

#include "base/work_crew.hpp"
#include "dense/dense_block.hpp"
#include "dense/square_matrix.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

struct LanczosShape {
  std::int64_t k = 0;      ///< pairs that are wanted
  std::int64_t block = 0;  ///< vectors
  std::int64_t basis = 0;  ///< at most the order, where it is all of the space
};

class BlockLanczos {
 public:
  /// X ← B·X, n × r.
  using Operator = BlockSolver;

  /// `mass` null: M is the unit matrix.
  BlockLanczos(std::int64_t n, const SparseMatrix* mass, Operator apply, const LanczosShape& shape,
               std::uint64_t seed, WorkCrew& crew);

  /// Cycles until the estimated residuals of the k largest pairs are at most `tolerance` times
  /// their values, and at least rounding; false where restarts_max were not enough. `keep_going` is
  /// asked after each block.
  [[nodiscard]] bool run(double tolerance, std::int64_t restarts_max,
                         const std::function<void()>& keep_going);
  /// Begins anew, beside the k pairs that are there, with vectors that are orthogonal to them, and
  /// goes on until the largest of the others is known to some digits. Whether that is one of the
  /// k largest, too: then run() is to be called again.
  [[nodiscard]] bool finds_another(const std::function<void()>& keep_going);

  /// The k pairs, from the largest on: values, and M·v as columns, behind which there may be some
  /// that come next, to fewer digits.
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }
  [[nodiscard]] MatrixView<const double> mass_vectors() const { return mass_of(0, kept_); }
  [[nodiscard]] std::int64_t restarts() const noexcept { return restarts_; }
  [[nodiscard]] std::int64_t solves() const noexcept { return solves_; }
  /// The largest estimated residual of the k pairs, beside its value.
  [[nodiscard]] double residual() const noexcept { return residual_; }

 private:
  [[nodiscard]] MatrixView<double> v(std::int64_t first, std::int64_t count) {
    return v_.view().block(0, first, n_, count);
  }
  [[nodiscard]] MatrixView<double> mv(std::int64_t first, std::int64_t count) {
    return mass_ == nullptr ? v(first, count) : mv_.view().block(0, first, n_, count);
  }
  [[nodiscard]] MatrixView<const double> mass_of(std::int64_t first, std::int64_t count) const {
    return (mass_ == nullptr ? v_ : mv_).view().block(0, first, n_, count);
  }
  /// For a block more. A basis of the whole space is never full before it ends.
  [[nodiscard]] bool has_room() const noexcept {
    return shape_.basis == n_ || done_ + shape_.block <= shape_.basis;
  }
  void multiply_by_mass(std::int64_t first, std::int64_t count);
  /// H ← V(:, 0 … before)ᵀ·M·W for the columns from `first` on, and W ← W − V·H.
  void project(std::int64_t before, std::int64_t first, std::int64_t count, DenseBlock& h);
  [[nodiscard]] double length_with(std::int64_t column, const double* w) const;
  double normalize(std::int64_t column);
  void add_random(std::int64_t first, std::int64_t count);
  [[nodiscard]] bool orthonormalize_at_once(std::int64_t first, std::int64_t count, DenseBlock& r);
  void orthonormalize(std::int64_t first, std::int64_t count, DenseBlock& r);
  void expand();
  void solve_projected();
  void restart(std::int64_t keep, bool with_next);
  void rotate(std::int64_t count);

  std::int64_t n_;
  const SparseMatrix* mass_;
  Operator apply_;
  LanczosShape shape_;
  std::uint64_t seed_;
  WorkCrew& crew_;
  DenseBlock v_, mv_;          // n × (basis + block)
  SquareMatrix<double> t_;     // the projected operator, of the first `done_` vectors
  DenseBlock next_;            // block × block: what the last block gives to the next one
  std::int64_t done_ = 0;      // vectors that the operator was applied to
  std::int64_t there_ = 0;     // vectors that are orthonormal
  std::int64_t last_ = 0;      // vectors of the block that it was last applied to
  std::int64_t kept_ = 0;      // Ritz vectors at the beginning of the basis
  std::vector<double> sizes_;  // of what the operator made of that block
  std::vector<double> ritz_;   // of the first done_, descending
  SquareMatrix<double> s_;     // their vectors
  std::vector<double> estimates_;
  std::vector<double> values_;
  double residual_ = 0;
  std::int64_t restarts_ = 0, solves_ = 0, randoms_ = 0;
};

}  // namespace strata
