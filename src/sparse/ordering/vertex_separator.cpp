// A separator of a large graph by several threads: multilevel, as METIS does it (Karypis, Kumar,
// 1998).
//
// Method: the graph is coarsened in parallel to some ten thousand vertices, of which METIS finds
// separators, from several seeds; the lightest is carried back level by level and refined on each.
// METIS would take the whole graph on one thread, and its time for the first graph is what many
// threads wait for. Its separators of smaller graphs are refined as well, which METIS gives up
// earlier (separator_refinement.cpp).

#include "sparse/ordering/vertex_separator.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/random.hpp"
#include "sparse/ordering/graph_coarsening.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

/// Smaller graphs are METIS's as they are: it takes less than 0.1 s for them, and by then there are
/// parts for many threads. 60,000 in its place: 3 to 14 % more work for orders as good.
constexpr std::int32_t kLargeVertices = 120000;
/// Where coarsening ends. With 5,000 separators of 7-point grids were up to 2 % heavier, with
/// 40,000 up to 2 % lighter, and METIS took twice as long.
constexpr std::int32_t kCoarseVertices = 20000;
constexpr std::int64_t kTrials = 4;
/// Where a level keeps more of its vertices, coarsening does not get on.
constexpr double kLeft = 0.85;

std::int64_t total_weight(const WeightedGraph& graph) {
  std::int64_t sum = 0;
  for (const std::int32_t w : graph.weight) sum += w;
  return sum;
}

/// The lightest of several, of those the one whose parts are most alike, of those the first.
std::vector<std::int32_t> best_of_trials(const MetisLibrary& metis, const WeightedGraph& graph,
                                         std::uint64_t seed, WorkCrew& crew) {
  std::vector<std::vector<std::int32_t>> trial(at(kTrials));
  std::vector<std::pair<std::int64_t, std::int64_t>> cost(at(kTrials));
  crew.share(kTrials, [&](std::int64_t t) {
    trial[at(t)] = metis.separate(graph, metis_seed(seed, static_cast<std::uint64_t>(t)));
    std::array<std::int64_t, 3> weight{};
    for (std::size_t v = 0; v < trial[at(t)].size(); ++v)
      weight[at(trial[at(t)][v])] += graph.weight[v];
    cost[at(t)] = {weight[2], std::abs(weight[0] - weight[1])};
  });
  return std::move(trial[at(std::min_element(cost.begin(), cost.end()) - cost.begin())]);
}

/// Ever coarser graphs, the last one with kCoarseVertices or as few as matchings lead to.
std::vector<CoarseGraph> coarse_levels(const WeightedGraph& graph, std::uint64_t seed,
                                       WorkCrew& crew) {
  const std::vector<std::int32_t> ones;
  const std::int64_t weight_max = 2 * total_weight(graph) / kCoarseVertices;
  std::vector<CoarseGraph> levels;
  for (;;) {
    const WeightedGraph& fine = levels.empty() ? graph : levels.back().graph;
    if (fine.size() <= kCoarseVertices) return levels;
    CoarseGraph next = coarsen(fine, levels.empty() ? ones : levels.back().edge_weight, weight_max,
                               random_bits(seed, levels.size()), crew);
    if (static_cast<double>(next.graph.size()) > kLeft * static_cast<double>(fine.size()))
      return levels;
    levels.push_back(std::move(next));
  }
}

}  // namespace

std::vector<std::int32_t> vertex_separator(const MetisLibrary& metis, const WeightedGraph& graph,
                                           std::uint64_t seed, WorkCrew& crew) {
  std::vector<CoarseGraph> levels;
  if (graph.size() >= kLargeVertices) levels = coarse_levels(graph, seed, crew);
  std::vector<std::int32_t> side = levels.empty()
                                       ? metis.separate(graph, metis_seed(seed, 0))
                                       : best_of_trials(metis, levels.back().graph, seed, crew);
  while (!levels.empty()) {
    const std::vector<std::int32_t> coarse = std::move(levels.back().coarse);
    levels.pop_back();
    std::vector<std::int32_t> finer(coarse.size());
    for_blocks(crew, std::ssize(coarse), [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t v = begin; v < end; ++v) finer[at(v)] = side[at(coarse[at(v)])];
    });
    side = std::move(finer);
    if (!levels.empty()) refine_separator(levels.back().graph, side);
  }
  refine_separator(graph, side);
  return side;
}

}  // namespace strata
