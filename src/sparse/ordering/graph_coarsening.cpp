// Coarsening by a matching of heavy edges (Karypis, Kumar, "A fast and high quality multilevel
// scheme for partitioning irregular graphs", 1998): two matched neighbours become one vertex.
//
// Method: in each round every vertex without a partner chooses its heaviest edge to another such
// vertex, and two that choose each other are partners (Manne, Bisseling, "A parallel approximation
// algorithm for the weighted maximum matching problem", 2008). Among edges of one weight the one
// with the largest random number goes first, a number that both ends know. What a vertex does
// follows from the round before alone, so threads may take vertices as they like. A few rounds
// match nearly all that can be; what is left is matched at the next level.

#include "sparse/ordering/graph_coarsening.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/random.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

constexpr int kRounds = 5;

using Vertices = std::vector<std::int32_t>;

std::uint64_t edge_key(std::uint64_t seed, std::int32_t v, std::int32_t w) {
  const auto low = static_cast<std::uint64_t>(std::min(v, w));
  const auto high = static_cast<std::uint64_t>(std::max(v, w));
  return random_bits(seed, high << 32 | low);
}

/// Partners, itself for a vertex without one.
class Matching {
 public:
  Matching(const WeightedGraph& graph, const Vertices& edge_weight, std::int64_t weight_max,
           std::uint64_t seed)
      : graph_(graph), edge_weight_(edge_weight), weight_max_(weight_max), seed_(seed) {}

  Vertices find(WorkCrew& crew) {
    const std::int64_t n = graph_.size();
    partner_.assign(at(n), -1);
    choice_.assign(at(n), -1);
    for (int round = 0; round < kRounds; ++round) {
      for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for (auto v = static_cast<std::int32_t>(begin); v < end; ++v)
          if (partner_[at(v)] < 0) choice_[at(v)] = choose(v);
      });
      for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for (auto v = static_cast<std::int32_t>(begin); v < end; ++v) {
          const std::int32_t w = choice_[at(v)];
          if (partner_[at(v)] < 0 && w >= 0 && choice_[at(w)] == v) partner_[at(v)] = w;
        }
      });
    }
    for (std::int32_t v = 0; v < n; ++v)
      if (partner_[at(v)] < 0) partner_[at(v)] = v;
    return std::move(partner_);
  }

 private:
  std::int32_t choose(std::int32_t v) const {
    std::int32_t best = -1;
    std::int32_t best_weight = 0;
    std::uint64_t best_key = 0;
    for (std::int32_t k = graph_.start[at(v)]; k < graph_.start[at(v) + 1]; ++k) {
      const std::int32_t w = graph_.neighbor[at(k)];
      const std::int32_t weight = edge_weight_.empty() ? 1 : edge_weight_[at(k)];
      if (partner_[at(w)] >= 0 || weight < best_weight ||
          std::int64_t{graph_.weight[at(v)]} + graph_.weight[at(w)] > weight_max_)
        continue;
      const std::uint64_t key = edge_key(seed_, v, w);
      if (weight == best_weight && key <= best_key) continue;
      best = w;
      best_weight = weight;
      best_key = key;
    }
    return best;
  }

  const WeightedGraph& graph_;
  const Vertices& edge_weight_;
  std::int64_t weight_max_;
  std::uint64_t seed_;
  Vertices partner_;
  Vertices choice_;
};

/// Sums of edge weights by neighbour, for one vertex after the other.
class NeighborSums {
 public:
  void add(std::int32_t neighbor, std::int32_t weight, std::int32_t up_to) {
    if (std::ssize(slot_) < 2 * std::int64_t{up_to})
      slot_.assign(std::bit_ceil(2 * static_cast<std::size_t>(up_to)), -1);
    std::size_t s = place(neighbor);
    while (slot_[s] >= 0 && neighbors[at(slot_[s])] != neighbor) s = (s + 1) & (slot_.size() - 1);
    if (slot_[s] < 0) {
      slot_[s] = static_cast<std::int32_t>(neighbors.size());
      used_.push_back(s);
      neighbors.push_back(neighbor);
      weights.push_back(0);
    }
    weights[at(slot_[s])] += weight;
  }
  /// The next vertex: neighbours and weights stay behind.
  void close() {
    for (const std::size_t s : used_) slot_[s] = -1;
    used_.clear();
    end.push_back(static_cast<std::int32_t>(neighbors.size()));
  }

  Vertices neighbors;
  Vertices weights;
  Vertices end;
  Vertices vertex_weight;

 private:
  [[nodiscard]] std::size_t place(std::int32_t neighbor) const {
    return static_cast<std::size_t>(static_cast<std::uint32_t>(neighbor) * 0x9e3779b1U >> 7) &
           (slot_.size() - 1);
  }
  Vertices slot_;
  std::vector<std::size_t> used_;
};

/// Numbers those that stand for a pair in the order of the first of it.
Vertices number_pairs(const Vertices& partner, std::vector<std::int32_t>& first_of_block,
                      WorkCrew& crew) {
  const std::int64_t n = std::ssize(partner);
  Vertices coarse(partner.size());
  first_of_block.assign(at(blocks_of(n)) + 1, 0);
  for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    for (std::int64_t v = begin; v < end; ++v) first_of_block[at(block) + 1] += partner[at(v)] >= v;
  });
  std::partial_sum(first_of_block.begin(), first_of_block.end(), first_of_block.begin());
  for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    std::int32_t next = first_of_block[at(block)];
    for (std::int64_t v = begin; v < end; ++v)
      if (partner[at(v)] >= v) coarse[at(v)] = next++;
  });
  for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t v = begin; v < end; ++v)
      if (partner[at(v)] < v) coarse[at(v)] = coarse[at(partner[at(v)])];
  });
  return coarse;
}

/// What the pairs of one block have for neighbours.
NeighborSums contract_block(const WeightedGraph& graph, const Vertices& edge_weight,
                            const Vertices& partner, const Vertices& coarse, std::int64_t begin,
                            std::int64_t end) {
  NeighborSums sums;
  for (auto v = static_cast<std::int32_t>(begin); v < end; ++v) {
    const std::int32_t w = partner[at(v)];
    if (w < v) continue;
    const auto degree = [&](std::int32_t u) { return graph.start[at(u) + 1] - graph.start[at(u)]; };
    const std::int32_t up_to = std::min(degree(v) + degree(w), graph.size());
    for (const std::int32_t u : {v, w}) {
      for (std::int32_t k = graph.start[at(u)]; k < graph.start[at(u) + 1]; ++k) {
        const std::int32_t c = coarse[at(graph.neighbor[at(k)])];
        if (c != coarse[at(v)]) sums.add(c, edge_weight.empty() ? 1 : edge_weight[at(k)], up_to);
      }
      if (v == w) break;
    }
    sums.vertex_weight.push_back(graph.weight[at(v)] + (v == w ? 0 : graph.weight[at(w)]));
    sums.close();
  }
  return sums;
}

}  // namespace

CoarseGraph coarsen(const WeightedGraph& graph, const Vertices& edge_weight,
                    std::int64_t weight_max, std::uint64_t seed, WorkCrew& crew) {
  const Vertices partner = Matching(graph, edge_weight, weight_max, seed).find(crew);
  std::vector<std::int32_t> first;
  CoarseGraph result;
  result.coarse = number_pairs(partner, first, crew);
  std::vector<NeighborSums> sums(at(blocks_of(graph.size())));
  for_blocks(crew, graph.size(), [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    sums[at(block)] = contract_block(graph, edge_weight, partner, result.coarse, begin, end);
  });
  std::vector<std::int32_t> edges(sums.size() + 1);
  for (std::size_t b = 0; b < sums.size(); ++b)
    edges[b + 1] = edges[b] + static_cast<std::int32_t>(sums[b].neighbors.size());
  WeightedGraph& g = result.graph;
  g.weight.resize(at(first.back()));
  g.start.resize(at(first.back()) + 1);
  g.neighbor.resize(at(edges.back()));
  result.edge_weight.resize(at(edges.back()));
  crew.share(std::ssize(sums), [&](std::int64_t b) {
    NeighborSums& s = sums[at(b)];
    std::copy(s.neighbors.begin(), s.neighbors.end(), g.neighbor.begin() + edges[at(b)]);
    std::copy(s.weights.begin(), s.weights.end(), result.edge_weight.begin() + edges[at(b)]);
    std::copy(s.vertex_weight.begin(), s.vertex_weight.end(), g.weight.begin() + first[at(b)]);
    for (std::size_t v = 0; v < s.end.size(); ++v)
      g.start[at(first[at(b)]) + v + 1] = edges[at(b)] + s.end[v];
    s = {};
  });
  return result;
}

}  // namespace strata
