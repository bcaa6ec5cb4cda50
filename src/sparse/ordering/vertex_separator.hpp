#pragma once
// Vertices whose removal leaves two parts of a graph without edges between them.
//
// Contract: 0 or 1 for the vertices of the parts, 2 for those that separate; the same on any number
// of threads. Throws Error{memory, device}.

#include <cstdint>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "sparse/ordering/metis_library.hpp"

namespace strata {

[[nodiscard]] std::vector<std::int32_t> vertex_separator(const MetisLibrary& metis,
                                                         const WeightedGraph& graph,
                                                         std::uint64_t seed, WorkCrew& crew);

/// Moves vertices into and out of a separator as long as that makes it lighter, or as light and the
/// parts more alike. No part becomes heavier than 0.6 of the whole unless it was.
void refine_separator(const WeightedGraph& graph, std::span<std::int32_t> side);

}  // namespace strata
