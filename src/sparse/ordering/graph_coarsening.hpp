#pragma once
// A graph with half as many vertices, and which vertices of it stand for those of the graph.
//
// Contract: the same on any number of threads. Weights of vertices and of edges are sums of what
// they stand for; vertices that stand for one of the result are neighbours or one.

#include <cstdint>
#include <vector>

#include "base/work_crew.hpp"
#include "sparse/ordering/metis_library.hpp"

namespace strata {

struct CoarseGraph {
  WeightedGraph graph;
  std::vector<std::int32_t> edge_weight;  ///< beside graph.neighbor; empty: all are 1
  std::vector<std::int32_t> coarse;       ///< of each vertex of the finer graph
};

/// `edge_weight` may be empty. No vertex of the result is heavier than `weight_max` unless it was.
[[nodiscard]] CoarseGraph coarsen(const WeightedGraph& graph,
                                  const std::vector<std::int32_t>& edge_weight,
                                  std::int64_t weight_max, std::uint64_t seed, WorkCrew& crew);

}  // namespace strata
