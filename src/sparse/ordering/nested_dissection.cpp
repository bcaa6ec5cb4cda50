// Nested dissection (George 1973): a separator is ordered last, and what it separates before it, by
// the same method.
//
// Method: the top of the recursion is ours, so that the parts, which have nothing to do with each
// other, are ordered by several threads, which also share the search for the separators of large
// parts (vertex_separator.cpp). Where a part is small METIS goes on by itself, with separators of
// its own and minimum degree at the bottom. Each part has a seed of its own, by the path to it.
// Rows with very many neighbours would be in all separators; they go last, as in AMD, beyond 10·√n
// neighbours (Amestoy, Davis, Duff 1996).

#include "sparse/ordering/nested_dissection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "base/random.hpp"
#include "sparse/ordering/vertex_separator.hpp"

namespace strata {
namespace {

/// Parts of fewer vertices are ordered by one call. METIS takes about 0.1 s for them, so that a
/// thousand-fold larger graph has work for many threads.
constexpr std::int32_t kPartVertices = 10000;
constexpr double kDenseFactor = 10;
constexpr std::int64_t kDenseLeast = 64;

/// A part of the graph, and which vertices of the whole its vertices are.
struct Part {
  WeightedGraph graph;
  std::vector<std::int32_t> vertex;
};

/// The vertices of `part` whose `side` is `which`, with the edges between them.
Part extract(const Part& part, const std::vector<std::int32_t>& side, std::int32_t which,
             std::vector<std::int32_t>& number) {
  Part sub;
  const std::int32_t n = part.graph.size();
  for (std::int32_t v = 0; v < n; ++v) {
    if (side[at(v)] != which) continue;
    number[at(v)] = static_cast<std::int32_t>(sub.vertex.size());
    sub.vertex.push_back(part.vertex[at(v)]);
    sub.graph.weight.push_back(part.graph.weight[at(v)]);
  }
  sub.graph.start.reserve(sub.vertex.size() + 1);
  for (std::int32_t v = 0; v < n; ++v) {
    if (side[at(v)] != which) continue;
    for (std::int32_t k = part.graph.start[at(v)]; k < part.graph.start[at(v + 1)]; ++k) {
      const std::int32_t w = part.graph.neighbor[at(k)];
      if (side[at(w)] == which) sub.graph.neighbor.push_back(number[at(w)]);
    }
    sub.graph.start.push_back(static_cast<std::int32_t>(sub.graph.neighbor.size()));
  }
  return sub;
}

class Dissection {
 public:
  Dissection(const MetisLibrary& metis, std::uint64_t seed, WorkCrew& crew)
      : metis_(metis), seed_(seed), crew_(crew) {}

  /// Writes the vertices of a part in their order; `path` is 1 for the whole, 2·p and 2·p + 1 for
  /// the parts of p.
  void order(Part part, std::span<std::int32_t> out, std::uint64_t path) const {
    if (part.vertex.empty()) return;
    const std::int32_t seed = metis_seed(seed_, path);
    // A part that separators leave large, again and again, is no longer cut by us.
    if (part.graph.size() < kPartVertices || path >> 40 != 0) {
      const std::vector<std::int32_t> k = metis_.node_nd(part.graph, seed);
      for (std::size_t i = 0; i < k.size(); ++i) out[i] = part.vertex[at(k[i])];
      return;
    }
    const std::vector<std::int32_t> side =
        vertex_separator(metis_, part.graph, random_bits(seed_, path), crew_);
    std::vector<std::int32_t> number(side.size());
    std::array<Part, 2> half;
    crew_.share(2, [&](std::int64_t i) {
      half[at(i)] = extract(part, side, static_cast<std::int32_t>(i), number);
    });
    std::size_t last = half[0].vertex.size() + half[1].vertex.size();
    for (std::size_t v = 0; v < side.size(); ++v)
      if (side[v] == 2) out[last++] = part.vertex[v];
    part = {};
    const std::size_t cut = half[0].vertex.size();
    const std::array<std::span<std::int32_t>, 2> place{out.first(cut),
                                                       out.subspan(cut, half[1].vertex.size())};
    crew_.share(2, [&](std::int64_t i) {
      order(std::move(half[at(i)]), place[at(i)], 2 * path + static_cast<std::uint64_t>(i));
    });
  }

 private:
  const MetisLibrary& metis_;
  std::uint64_t seed_;
  WorkCrew& crew_;
};

/// For each row of the graph the first one that is indistinguishable from it, −1 for other rows.
/// Candidates have the same sum of random numbers over the row and its neighbours; whether they are
/// is then looked at. The first is a neighbour of all others, so each row finds it by itself.
std::vector<std::int32_t> representatives(const SymmetricPattern& p,
                                          const std::vector<char>& in_graph, WorkCrew& crew) {
  const std::int32_t n = p.size();
  std::vector<std::uint64_t> key(at(n));  // 0 for rows that do not count
  std::vector<std::uint64_t> sum(at(n));
  std::vector<std::int32_t> first(at(n), -1);
  const auto same = [&](std::int32_t v, std::int32_t w) {
    const auto a = p.neighbors(v);
    const auto b = p.neighbors(w);
    std::size_t i = 0;
    std::size_t j = 0;
    const auto skips = [&](std::int32_t u) { return u == v || u == w || in_graph[at(u)] == 0; };
    for (;;) {
      while (i < a.size() && skips(a[i])) ++i;
      while (j < b.size() && skips(b[j])) ++j;
      if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
      if (a[i++] != b[j++]) return false;
    }
  };
  const auto first_of = [&](std::int32_t v) {
    for (const std::int32_t w : p.neighbors(v)) {
      if (w >= v) break;
      if (sum[at(w)] == sum[at(v)] && in_graph[at(w)] != 0 && same(v, w)) return w;
    }
    return v;
  };
  const auto for_rows = [&](const auto& visit) {
    for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (auto v = static_cast<std::int32_t>(begin); v < end; ++v)
        if (in_graph[at(v)] != 0) visit(v);
    });
  };
  for_rows([&](std::int32_t v) { key[at(v)] = random_bits(0, static_cast<std::uint64_t>(v)); });
  for_rows([&](std::int32_t v) {
    std::uint64_t all = key[at(v)];
    for (const std::int32_t w : p.neighbors(v)) all += key[at(w)];
    sum[at(v)] = all;
  });
  for_rows([&](std::int32_t v) { first[at(v)] = first_of(v); });
  return first;
}

/// Which rows are in the graph; the others are listed.
std::vector<char> choose_rows(const SymmetricPattern& p, CompressedGraph& result, WorkCrew& crew) {
  const std::int32_t n = p.size();
  const auto limit = std::max(
      kDenseLeast, static_cast<std::int64_t>(kDenseFactor * std::sqrt(static_cast<double>(n))));
  std::vector<char> kept(at(n), 0);
  for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t v = begin; v < end; ++v) {
      const auto list = p.neighbors(v);
      kept[at(v)] =
          p.degree(v) <= limit && std::any_of(list.begin(), list.end(),
                                              [&](std::int32_t w) { return p.degree(w) <= limit; });
    }
  });
  for (std::int32_t v = 0; v < n; ++v)
    if (kept[at(v)] == 0) (p.degree(v) > limit ? result.dense : result.isolated).push_back(v);
  std::stable_sort(result.dense.begin(), result.dense.end(),
                   [&](std::int32_t v, std::int32_t w) { return p.degree(v) < p.degree(w); });
  return kept;
}

/// The number of each block's first vertex, or the place of its first edge; the last entry: of all.
using FirstOfBlock = std::vector<std::int64_t>;

/// Numbers the rows that stand for a vertex, −1 for others, and counts edges.
std::vector<std::int32_t> number_vertices(const SymmetricPattern& p,
                                          const std::vector<std::int32_t>& first,
                                          FirstOfBlock& vertices, FirstOfBlock& edges,
                                          WorkCrew& crew) {
  const std::int32_t n = p.size();
  vertices.assign(at(blocks_of(n)) + 1, 0);
  edges = vertices;
  for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    std::int64_t edges_here = 0;
    for (auto v = static_cast<std::int32_t>(begin); v < end; ++v) {
      if (first[at(v)] != v) continue;
      ++vertices[at(block) + 1];
      for (const std::int32_t w : p.neighbors(v)) edges_here += first[at(w)] == w ? 1 : 0;
    }
    edges[at(block) + 1] = edges_here;
  });
  std::partial_sum(vertices.begin(), vertices.end(), vertices.begin());
  std::partial_sum(edges.begin(), edges.end(), edges.begin());
  std::vector<std::int32_t> vertex(at(n), -1);
  for_blocks(crew, n, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    auto next = static_cast<std::int32_t>(vertices[at(block)]);
    for (auto v = static_cast<std::int32_t>(begin); v < end; ++v)
      if (first[at(v)] == v) vertex[at(v)] = next++;
  });
  return vertex;
}

/// Lists the rows of each vertex.
void list_members(const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& vertex,
                  CompressedGraph& c) {
  for (const std::int32_t v : first)
    if (v >= 0) ++c.graph.weight[at(vertex[at(v)])];
  c.first.resize(c.graph.weight.size() + 1);
  std::partial_sum(c.graph.weight.begin(), c.graph.weight.end(), c.first.begin() + 1);
  c.member.resize(at(c.first.back()));
  std::vector<std::int32_t> next(c.first.begin(), c.first.end() - 1);
  for (std::size_t v = 0; v < first.size(); ++v)
    if (first[v] >= 0)
      c.member[at(next[at(vertex[at(first[v])])]++)] = static_cast<std::int32_t>(v);
}

}  // namespace

CompressedGraph compress(const SymmetricPattern& p, WorkCrew& crew) {
  CompressedGraph c;
  const std::vector<std::int32_t> first = representatives(p, choose_rows(p, c, crew), crew);
  FirstOfBlock vertices;
  FirstOfBlock edges;
  const std::vector<std::int32_t> vertex = number_vertices(p, first, vertices, edges, crew);
  require(edges.back() <= std::numeric_limits<std::int32_t>::max(), ErrorKind::misuse, "metis",
          "a graph of {} edges, each counted twice, is beyond METIS, which takes {}: order it by "
          "amd",
          edges.back(), std::numeric_limits<std::int32_t>::max());
  c.graph.weight.assign(at(vertices.back()), 0);
  c.graph.start.resize(c.graph.weight.size() + 1);
  c.graph.neighbor.resize(at(edges.back()));
  for_blocks(crew, p.size(), [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    std::int64_t next = edges[at(block)];
    for (std::int64_t v = begin; v < end; ++v) {
      if (vertex[at(v)] < 0) continue;
      for (const std::int32_t w : p.neighbors(v))
        if (vertex[at(w)] >= 0) c.graph.neighbor[at(next++)] = vertex[at(w)];
      c.graph.start[at(vertex[at(v)]) + 1] = static_cast<std::int32_t>(next);
    }
  });
  list_members(first, vertex, c);
  return c;
}

std::vector<std::int32_t> nested_dissection(const SymmetricPattern& pattern, std::uint64_t seed,
                                            WorkCrew& crew) {
  CompressedGraph c = compress(pattern, crew);
  std::vector<std::int32_t> vertices(c.graph.weight.size());
  if (!vertices.empty()) {
    Part whole{std::move(c.graph), std::vector<std::int32_t>(vertices.size())};
    std::iota(whole.vertex.begin(), whole.vertex.end(), 0);
    Dissection(MetisLibrary::get(), seed, crew).order(std::move(whole), vertices, 1);
  }
  std::vector<std::int32_t> order = std::move(c.isolated);
  order.reserve(at(pattern.size()));
  for (const std::int32_t v : vertices)
    order.insert(order.end(), c.member.begin() + c.first[at(v)],
                 c.member.begin() + c.first[at(v + 1)]);
  order.insert(order.end(), c.dense.begin(), c.dense.end());
  return order;
}

}  // namespace strata
