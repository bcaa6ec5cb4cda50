#pragma once
// Where the entries of a matrix lie in the order of elimination, and the rows of an update.

#include <cstdint>
#include <vector>

#include "sparse/fronts/front_layout.hpp"

namespace strata {

/// Where the entries of A lie: by column of L, their rows of L, and their codes.
struct PermutedEntries {
  std::vector<std::int64_t> start;  ///< by column of L
  std::vector<std::int32_t> row;    ///< of L
  std::vector<EntryCode> code;
};
/// `a` has the pattern that was analyzed.
[[nodiscard]] PermutedEntries permuted_entries(const SparseAnalysis& analysis,
                                               const SparseMatrix& a);

/// Appends the places of the rows of supernode s in the front of its parent. Throws Error{misuse}
/// where a row is none of the parent's.
void append_places(const SparseAnalysis& a, std::int32_t s, std::vector<std::int32_t>& to);

}  // namespace strata
