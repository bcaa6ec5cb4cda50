#pragma once
// Sparse matrices in memory, compressed by rows (CSR), and what is done to them before a solve.
//
// Contract: the entries of row i are start[i] … start[i + 1] − 1 of `column` and `value`, with
// columns ascending and no column twice; what is not listed is zero. Indices are 0-based; at most
// 2^31 − 1 rows and columns. Functions throw Error{misuse} for shapes that do not fit and
// Error{input} for entries that are not what they should be.

#include <cstdint>
#include <span>
#include <vector>

namespace strata {

struct SparseMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::int64_t> start{0};  ///< rows + 1
  std::vector<std::int32_t> column;
  std::vector<double> value;

  [[nodiscard]] std::int64_t entries() const noexcept {
    return static_cast<std::int64_t>(value.size());
  }
};

/// Entries that were added to another one at the same place.
struct SummedEntries {
  std::int64_t count = 0;
  std::int64_t row = -1;  ///< the first such place, row by row
  std::int64_t col = -1;
};

/// The matrix with value[k] at (row[k], col[k]), in any order; entries at one place are summed,
/// which rounds about once whatever their order, and counted in `summed`.
[[nodiscard]] SparseMatrix sparse_from_entries(std::int64_t rows, std::int64_t cols,
                                               std::span<const std::int64_t> row,
                                               std::span<const std::int64_t> col,
                                               std::span<const double> value,
                                               SummedEntries* summed = nullptr);

/// How the entries of a compressed matrix are listed.
enum class Compressed : std::uint8_t {
  rows,     ///< row by row (CSR)
  columns,  ///< column by column (CSC)
};

/// The matrix whose row, or column, i has the entries start[i] … start[i + 1] − 1 of `index` (the
/// columns, or the rows) and `value`, 0-based, in any order. Entries at one place are summed as
/// above. Throws Error{misuse} naming the entry for an index out of range, and
/// beyond 2^31 − 1 rows or columns.
[[nodiscard]] SparseMatrix sparse_from_compressed(std::int64_t rows, std::int64_t cols,
                                                  std::span<const std::int32_t> start,
                                                  std::span<const std::int32_t> index,
                                                  std::span<const double> value,
                                                  Compressed by = Compressed::rows,
                                                  SummedEntries* summed = nullptr);
[[nodiscard]] SparseMatrix sparse_from_compressed(std::int64_t rows, std::int64_t cols,
                                                  std::span<const std::int64_t> start,
                                                  std::span<const std::int64_t> index,
                                                  std::span<const double> value,
                                                  Compressed by = Compressed::rows,
                                                  SummedEntries* summed = nullptr);

/// Throws Error{misuse} unless `a` is what the contract says.
void require_well_formed(const SparseMatrix& a);

/// y ← A·x; x has `cols` elements, y has `rows`.
void multiply(const SparseMatrix& a, std::span<const double> x, std::span<double> y);

/// Positive numbers by which rows and columns are multiplied.
struct Balance {
  std::vector<double> row;
  std::vector<double> col;
};

/// A ← diag(row)·A·diag(col): rows to length 1, then columns (Yamazaki, Tomov, Dongarra 2015), and
/// again, up to a hundred times, where that leaves rows off by a factor of 1.5, until they are
/// within 1.2. A row or column of zeros keeps the scale 1.
Balance balance(SparseMatrix& a);

/// The reverse Cuthill–McKee order of the pattern of A + Aᵀ, A square: element i of the result is
/// the row that comes i-th. By Boost.Graph.
[[nodiscard]] std::vector<std::int32_t> reverse_cuthill_mckee(const SparseMatrix& a);

/// P·A·Pᵀ: row and column i are row and column order[i] of A, which is square.
[[nodiscard]] SparseMatrix permuted(const SparseMatrix& a, std::span<const std::int32_t> order);

/// max |i − j| over the entries.
[[nodiscard]] std::int64_t bandwidth(const SparseMatrix& a);

/// Two entries that should be equal in a symmetric matrix and are not.
struct Asymmetry {
  bool found = false;
  std::int64_t row = 0;
  std::int64_t col = 0;
  double value = 0;       ///< at (row, col)
  double transposed = 0;  ///< at (col, row)
};
/// The first pair, row by row, off by more than `tolerance` of √(aᵢᵢ·aⱼⱼ) or the larger; linear
/// time.
[[nodiscard]] Asymmetry find_asymmetry(const SparseMatrix& a, double tolerance);

}  // namespace strata
