#pragma once
// The elimination tree of a symmetric matrix in a given order, and the entries of each column of L.
//
// Contract: columns are numbered as they are eliminated; `order[k]` is the row of the matrix that
// is the k-th. The parent of a column is the row of its first entry below the diagonal (Liu, "The
// role of elimination trees in sparse factorization", 1990); −1: it has none.

#include <cstdint>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {

/// The inverse permutation. Throws Error{misuse}, naming the element, unless `order` holds each of
/// 0 … n − 1 once.
[[nodiscard]] std::vector<std::int32_t> places_of(std::span<const std::int32_t> order,
                                                  std::int64_t n);

[[nodiscard]] std::vector<std::int32_t> elimination_tree(const SymmetricPattern& pattern,
                                                         std::span<const std::int32_t> order,
                                                         std::span<const std::int32_t> place,
                                                         WorkCrew& crew);

/// The children of each node of a forest, ascending.
struct Children {
  explicit Children(std::span<const std::int32_t> parent);
  std::vector<std::int32_t> start;  ///< one more than nodes
  std::vector<std::int32_t> child;
  std::vector<std::int32_t> root;

  [[nodiscard]] std::span<std::int32_t> of(std::int64_t node) {
    return std::span(child).subspan(at(start[at(node)]), at(start[at(node + 1)] - start[at(node)]));
  }
};

/// Nodes such that each branch is contiguous and ends with its top; children in their order.
[[nodiscard]] std::vector<std::int32_t> postorder(Children& children);

/// An order of elimination whose columns are numbered in postorder, with its tree.
struct OrderedTree {
  std::vector<std::int32_t> order;   ///< row of the matrix that is eliminated k-th
  std::vector<std::int32_t> place;   ///< of each row of the matrix in it
  std::vector<std::int32_t> parent;  ///< of each column
};
[[nodiscard]] OrderedTree ordered_tree(const SymmetricPattern& pattern,
                                       std::span<const std::int32_t> order, WorkCrew& crew);

/// Nodes first … last of a forest in postorder: `last` with all below it.
struct NodeBranch {
  std::int32_t first = 0;
  std::int32_t last = 0;
};
/// Branches for `threads` threads, ascending, which have nothing to do with each other: a few for
/// each thread, none if they would be small. What is in none of them is the *top*.
[[nodiscard]] std::vector<NodeBranch> branches_for(std::span<const std::int32_t> parent,
                                                   int threads);

/// Entries of each column of L, the diagonal included, by Gilbert, Ng and Peyton ("An efficient
/// algorithm to compute row and column counts for sparse Cholesky factorization", 1994), in nearly
/// linear time.
[[nodiscard]] std::vector<std::int32_t> column_counts(const SymmetricPattern& pattern,
                                                      const OrderedTree& tree, WorkCrew& crew);

/// Operations and entries of a factor with these columns.
[[nodiscard]] double flops_of(std::span<const std::int32_t> counts);

}  // namespace strata
