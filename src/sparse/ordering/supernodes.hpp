#pragma once
// Supernodes: which columns of L are stored as one panel, in which order, and in which rows.
//
// Contract: built from an elimination tree in postorder and the entries of its columns. The result
// numbers columns anew: an equivalent order of elimination, with the same factor up to that
// numbering.

#include <cstdint>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "sparse/ordering/elimination_tree.hpp"
#include "sparse/ordering/pattern.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {

/// Entries of the lower triangle of a panel of w columns with r rows below them.
[[nodiscard]] constexpr double panel_entries(double w, double r) { return w * (w + 1) / 2 + w * r; }
/// Σ (r + k)² over k = 1 … w: operations of its columns and of what they add to others.
[[nodiscard]] constexpr double panel_flops(double w, double r) {
  return w * r * r + r * w * (w + 1) + w * (w + 1) * (2 * w + 1) / 6;
}

/// A forest of supernodes in postorder, as far as numbers go.
struct SupernodeForest {
  std::vector<std::int32_t> width;
  std::vector<std::int32_t> rows;    ///< below the columns
  std::vector<std::int32_t> parent;  ///< −1: a root
  std::vector<std::int32_t> first;   ///< column of L of each supernode, one more than supernodes

  [[nodiscard]] std::int32_t size() const noexcept {
    return static_cast<std::int32_t>(width.size());
  }
};

/// Fundamental supernodes: a column belongs to the supernode of the one before it if that is its
/// only child and has the same rows but for itself.
[[nodiscard]] SupernodeForest fundamental_supernodes(std::span<const std::int32_t> parent,
                                                     std::span<const std::int32_t> counts);

/// Joined supernodes: of each of `forest` the one into which it went, which is its last part.
[[nodiscard]] std::vector<std::int32_t> amalgamate(const SupernodeForest& forest,
                                                   const AnalysisOptions& options);

/// The supernodes that `into` leaves, in a postorder in which a multifrontal factorization stacks
/// the least (Liu, "On the storage requirement in the out-of-core multifrontal method", 1986); and
/// `old_column`, the columns of `forest` in the order in which they are eliminated now.
struct FinalForest {
  SupernodeForest forest;
  std::vector<std::int32_t> old_column;
  std::int64_t stack_bytes = 0;
};
[[nodiscard]] FinalForest final_forest(const SupernodeForest& forest,
                                       std::span<const std::int32_t> into);

/// Sets what follows from the supernodes, their rows and parents: branches, levels, counts.
void measure_supernodes(SparseAnalysis& analysis);

/// Rows of all supernodes, ascending: row_start and row as in SparseAnalysis.
struct RowStructure {
  std::vector<std::int64_t> row_start{0};
  std::vector<std::int32_t> row;
};
[[nodiscard]] RowStructure row_structure(const SymmetricPattern& pattern,
                                         const SupernodeForest& forest,
                                         std::span<const std::int32_t> order, WorkCrew& crew);

}  // namespace strata
