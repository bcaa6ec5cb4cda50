// Coarse graphs and separators: what holds by definition, on graphs of awkward shapes.

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "sparse/ordering/graph_coarsening.hpp"
#include "sparse/ordering/nested_dissection.hpp"
#include "sparse/ordering/vertex_separator.hpp"
#include "tests/sparse/patterns.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::Edges;

WeightedGraph graph_of(const SparseMatrix& a, std::uint64_t seed = 0) {
  WorkCrew crew(0);
  const SymmetricPattern p = symmetric_pattern(a, crew);
  WeightedGraph g;
  g.start.assign(p.start.begin(), p.start.end());
  g.neighbor.assign(p.neighbor.begin(), p.neighbor.end());
  for (std::int32_t v = 0; v < p.size(); ++v)
    g.weight.push_back(seed == 0 ? 1 : 1 + static_cast<std::int32_t>(random_bits(seed, at(v)) % 5));
  return g;
}

std::int64_t total(const std::vector<std::int32_t>& weights) {
  return std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
}

struct Named {
  const char* name;
  WeightedGraph graph;
};

std::vector<Named> awkward_graphs() {
  Edges star(20001);
  for (int i = 1; i < 20001; ++i) star.add(0, i);
  Edges arrow(20000);
  for (int i = 1; i < 20000; ++i) arrow.add(i, i - 1), arrow.add(0, i), arrow.add(1, i);
  Edges apart(9000);
  for (int i = 1; i < 9000; ++i)
    if (i % 100 != 0) apart.add(i, i - 1);
  return {{"nothing", {}},
          {"one vertex", graph_of(Edges(1).matrix())},
          {"no edges", graph_of(Edges(17).matrix())},
          {"a pair", graph_of(test::grid(2, 1, 1))},
          {"star", graph_of(star.matrix())},
          {"arrowhead", graph_of(arrow.matrix(), 3)},
          {"paths apart", graph_of(apart.matrix())},
          {"grid", graph_of(test::grid(31, 29, 23), 5)},
          {"27 points", graph_of(test::grid(21, 20, 23, true))},
          {"random", graph_of(test::random_pattern(900, 0.02, 4, test::Give::lower), 6)}};
}

/// Counts the pairs of matched vertices and adds up edges by the definition.
void expect_coarse(const Named& fine, const CoarseGraph& c, std::int64_t weight_max) {
  std::vector<std::vector<std::int32_t>> members(c.graph.weight.size());
  for (std::size_t v = 0; v < c.coarse.size(); ++v)
    members.at(at(c.coarse[v])).push_back(static_cast<std::int32_t>(v));
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> sum;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> found;
  for (std::size_t v = 0; v < c.coarse.size(); ++v)
    for (std::int32_t k = fine.graph.start[v]; k < fine.graph.start[v + 1]; ++k) {
      const std::int32_t other = c.coarse[at(fine.graph.neighbor[at(k)])];
      if (other != c.coarse[v]) ++sum[{c.coarse[v], other}];
    }
  for (std::int32_t m = 0; m < c.graph.size(); ++m) {
    const auto& of = members[at(m)];
    ASSERT_TRUE(of.size() == 1 || of.size() == 2) << fine.name;
    std::int64_t weight = 0;
    for (const std::int32_t v : of) weight += fine.graph.weight[at(v)];
    EXPECT_EQ(c.graph.weight[at(m)], weight) << fine.name;
    if (of.size() == 2) {
      EXPECT_LE(weight, weight_max) << fine.name;
      const auto begin = fine.graph.neighbor.begin();
      EXPECT_EQ(std::count(begin + fine.graph.start[at(of[0])],
                           begin + fine.graph.start[at(of[0]) + 1], of[1]),
                1)
          << fine.name << ": a pair without an edge";
    }
    for (std::int32_t k = c.graph.start[at(m)]; k < c.graph.start[at(m) + 1]; ++k)
      EXPECT_TRUE(found.insert({{m, c.graph.neighbor[at(k)]}, c.edge_weight[at(k)]}).second)
          << fine.name << ": an edge twice";
  }
  EXPECT_EQ(found, sum) << fine.name;
}

TEST(Separator, CoarseGraphsStandForTheFiner) {
  for (const Named& fine : awkward_graphs()) {
    WorkCrew one(0);
    const CoarseGraph c = coarsen(fine.graph, {}, 8, 11, one);
    ASSERT_EQ(c.coarse.size(), fine.graph.weight.size());
    ASSERT_EQ(c.graph.start.size(), c.graph.weight.size() + 1) << fine.name;
    EXPECT_EQ(total(c.graph.weight), total(fine.graph.weight)) << fine.name;
    expect_coarse(fine, c, 8);
    for (const int helpers : {1, 2, 15}) {
      if (test::kSanitized && helpers == 1) continue;
      WorkCrew crew(helpers);
      const CoarseGraph again = coarsen(fine.graph, {}, 8, 11, crew);
      EXPECT_EQ(again.coarse, c.coarse) << fine.name;
      EXPECT_EQ(again.graph.start, c.graph.start) << fine.name;
      EXPECT_EQ(again.graph.neighbor, c.graph.neighbor) << fine.name;
      EXPECT_EQ(again.edge_weight, c.edge_weight) << fine.name;
    }
  }
}

TEST(Separator, HeavyEdgesAreMatched) {
  // A path whose second edge weighs more: its ends are a pair.
  const WeightedGraph path = graph_of(test::grid(4, 1, 1));
  WorkCrew crew(0);
  const CoarseGraph c = coarsen(path, {1, 1, 9, 9, 1, 1}, 8, 1, crew);
  ASSERT_EQ(c.graph.size(), 3);
  EXPECT_EQ(c.coarse[1], c.coarse[2]);
  EXPECT_EQ(coarsen(path, {1, 1, 9, 9, 1, 1}, 1, 1, crew).graph.size(), 4) << "beyond the weight";
}

std::array<std::int64_t, 3> expect_separated(const WeightedGraph& g,
                                             const std::vector<std::int32_t>& side) {
  std::array<std::int64_t, 3> weight{};
  EXPECT_EQ(side.size(), g.weight.size());
  for (std::size_t v = 0; v < side.size(); ++v) {
    weight.at(at(side[v])) += g.weight[v];
    for (std::int32_t k = g.start[v]; k < g.start[v + 1]; ++k) {
      const std::int32_t other = side[at(g.neighbor[at(k)])];
      EXPECT_TRUE(side[v] == 2 || other == 2 || other == side[v]) << "an edge between the parts";
    }
  }
  return weight;
}

TEST(Separator, RefinementKeepsWhatSeparatesAndMakesItLighter) {
  for (const Named& fine : awkward_graphs()) {
    // One part's boundary: all vertices of the first half that have a neighbour in the second.
    const std::int32_t n = fine.graph.size();
    std::vector<std::int32_t> side(fine.graph.weight.size());
    for (std::int32_t v = 0; v < n; ++v) {
      side[at(v)] = v < n / 2 ? 0 : 1;
      for (std::int32_t k = fine.graph.start[at(v)]; k < fine.graph.start[at(v) + 1] && v < n / 2;
           ++k)
        if (fine.graph.neighbor[at(k)] >= n / 2) side[at(v)] = 2;
    }
    const auto before = expect_separated(fine.graph, side);
    refine_separator(fine.graph, side);
    const auto after = expect_separated(fine.graph, side);
    EXPECT_LE(after[2], before[2]) << fine.name;
    const double limit = 0.6 * static_cast<double>(total(fine.graph.weight));
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_LE(static_cast<double>(after[k]), std::max(limit, static_cast<double>(before[k])))
          << fine.name;
  }
}

TEST(Separator, OfLargeGraphsIsLightAndTheSameOnAnyNumberOfThreads) {
  struct Case {
    const char* name;
    WeightedGraph graph;
    std::int64_t at_most;
  };
  Edges star(130001);
  for (int i = 1; i < 130001; ++i) star.add(0, i);
  Edges apart(130000);
  for (int i = 1; i < 130000; ++i)
    if (i % 65000 != 0) apart.add(i, i - 1);
  const std::vector<Case> cases{{"grid", graph_of(test::grid(51, 50, 49)), 50 * 49 * 105 / 100},
                                {"plane", graph_of(test::grid(400, 310, 1)), 330},
                                {"star", graph_of(star.matrix()), 130001},
                                {"two paths", graph_of(apart.matrix()), 2}};
  for (const Case& c : cases) {
    if (test::kSanitized && c.at_most < 1000) continue;  // the others take the same ways
    WorkCrew one(0);
    const auto side = vertex_separator(MetisLibrary::get(), c.graph, 7, one);
    const auto weight = expect_separated(c.graph, side);
    EXPECT_LE(weight[2], c.at_most) << c.name;
    if (c.at_most < 10000) {
      EXPECT_LE(std::max(weight[0], weight[1]), 0.61 * c.graph.size()) << c.name;
    }
    for (const int threads : {2, 3, 16}) {
      if (test::kSanitized && threads == 2) continue;
      WorkCrew crew(threads - 1);
      EXPECT_EQ(vertex_separator(MetisLibrary::get(), c.graph, 7, crew), side) << c.name;
    }
  }
}

}  // namespace
}  // namespace strata
