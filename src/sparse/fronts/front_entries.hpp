#pragma once
// Where the entries of a matrix lie in the order of elimination, what blocks hold of them, and the
// rows of an update.

#include <cstdint>
#include <vector>

#include "base/work_crew.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "store/memory_store.hpp"

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

/// A shift as it is added, and the exponent of the power of two by which it, and A, were divided.
struct ScaledShift {
  double shift = 0;
  int exponent = 0;
};
/// Fills blocks of family kValues of a layout with what they hold of A + shift·I, in `element`:
/// throws Error{input} for an element that this cannot hold. The finite matrix, the layout and the
/// crew outlive it.
[[nodiscard]] BlockSource values_of(const FrontLayout& layout, const SparseMatrix& a,
                                    ScaledShift shift, Element element, WorkCrew& crew);

/// Appends the places of the rows of supernode s in the front of its parent. Throws Error{misuse}
/// where a row is none of the parent's.
void append_places(const SparseAnalysis& a, std::int32_t s, std::vector<std::int32_t>& to);

}  // namespace strata
