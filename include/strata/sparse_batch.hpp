#pragma once
// Many sparse symmetric positive definite matrices of one pattern, factored together.
//
// Contract: as strata/sparse_factor.hpp, for matrices A₀ … A_(B−1) that differ in their values
// alone: one analysis, one description of the factor, and on a GPU one launch for all of them, so
// that matrices which are too small to occupy it share it. Each factor has the bits that it has by
// itself, whatever is beside it; one that is not positive definite spoils no other.
//
// For systems of a few thousand unknowns by the hundred: steps of interior point methods, sites,
// samples of parameters. What fills a GPU by itself gains nothing here.

#include <cstdint>
#include <memory>
#include <span>

#include "strata/matrix_view.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {

class SparseCholeskyBatch {
 public:
  /// For `count` matrices of the pattern of `pattern`, whose values are not read. The options
  /// `analysis` and `shift` are not read. The factors stay on a GPU if one is asked for and holds
  /// all of them; elsewhere they come home, a few at a time in the memory that devices have. Throws
  /// Error{misuse} for an analysis of another pattern, sizes of parts, a precision other than fp64
  /// and what one GPU cannot factor as a whole (fronts of order above 46,340), Error{memory},
  /// Error{device}.
  SparseCholeskyBatch(SparseAnalysis analysis, const SparseMatrix& pattern, std::int64_t count,
                      const SparseCholeskyOptions& options = {});
  SparseCholeskyBatch(SparseCholeskyBatch&&) noexcept;
  SparseCholeskyBatch& operator=(SparseCholeskyBatch&&) noexcept;
  ~SparseCholeskyBatch();

  [[nodiscard]] std::int64_t n() const noexcept;
  [[nodiscard]] std::int64_t count() const noexcept;
  [[nodiscard]] const SparseAnalysis& analysis() const noexcept;

  /// Factors A_k + shift·I for all k: column k of `values` (entries × count) holds the values of
  /// A_k in the order of those of `pattern`. In host memory, or in that of the GPU where the
  /// factors stay, which is not checked: there one triangle is read, and what is no number is no
  /// positive pivot. Returns one outcome a matrix; first_bad_pivot is a row of A_k. Throws
  /// Error{misuse} for other shapes, naming the matrix and its entries Error{input} where they are
  /// not finite and Error{numerical} where not symmetric, after which the factors are gone.
  std::span<const FactorInfo> factor(MatrixView<const double> values, double shift = 0);
  /// Outcomes of the last factorization, one for each matrix; not ok before the first one.
  [[nodiscard]] std::span<const FactorInfo> infos() const noexcept;
  [[nodiscard]] const RunReport& report() const noexcept;
  /// What a GPU has done since then for solves; `path` is empty if nothing.
  [[nodiscard]] const RunReport& solves() const noexcept;

  /// B_k ← A_k⁻¹·B_k for all k whose factorization succeeded, of the others B_k stays as it is. The
  /// columns k·m … (k + 1)·m − 1 of B (n × count·m) are B_k; in host memory or, where the factors
  /// stay on a GPU, in memory of that. Throws Error{misuse} for other shapes, or if the last
  /// factorization was not completed.
  void solve(MatrixView<double> b) const;

  struct State;  ///< private to the library

 private:
  std::unique_ptr<State> state_;
};

}  // namespace strata
