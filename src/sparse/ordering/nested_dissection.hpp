#pragma once
// Nested dissection with separators by METIS, parts in parallel.
//
// Contract: element k of the result is the row that is eliminated k-th. It follows from pattern and
// seed, on any number of threads. Throws Error{memory, device, misuse}.

#include <cstdint>
#include <vector>

#include "base/work_crew.hpp"
#include "sparse/ordering/metis_library.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {

[[nodiscard]] std::vector<std::int32_t> nested_dissection(const SymmetricPattern& pattern,
                                                          std::uint64_t seed, WorkCrew& crew);

/// Rows that have the same neighbours and are each other's may be eliminated together (Ashcraft,
/// "Compressed graphs and the minimum degree algorithm", 1995): one vertex stands for them.
struct CompressedGraph {
  WeightedGraph graph;
  /// Rows of vertex v: member[first[v]] … member[first[v + 1] − 1].
  std::vector<std::int32_t> first{0};
  std::vector<std::int32_t> member;
  std::vector<std::int32_t> isolated;  ///< rows without neighbours that are in the graph …
  std::vector<std::int32_t> dense;     ///< … and those that are neighbours of too many others
};
[[nodiscard]] CompressedGraph compress(const SymmetricPattern& pattern, WorkCrew& crew);

}  // namespace strata
