#pragma once
// Orders of elimination by name.

#include <cstdint>
#include <vector>

#include "base/work_crew.hpp"
#include "sparse/ordering/elimination_tree.hpp"
#include "sparse/ordering/pattern.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {

/// The tree of an order with the entries of its columns.
struct CountedTree {
  SparseOrdering ordering = SparseOrdering::natural;
  OrderedTree tree;
  std::vector<std::int32_t> counts;
};

/// Throws Error{misuse} for an order that is no permutation, Error{device, memory}.
[[nodiscard]] CountedTree counted_tree(const SymmetricPattern& pattern,
                                       const AnalysisOptions& options, WorkCrew& crew);

/// Approximate minimum degree: result[k] is the row that is eliminated k-th.
[[nodiscard]] std::vector<std::int32_t> approximate_minimum_degree(const SymmetricPattern& pattern);

}  // namespace strata
