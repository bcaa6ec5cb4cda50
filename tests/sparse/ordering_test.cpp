// Orders of elimination: what METIS is given and what it may not disturb, permutations, names.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "sparse/ordering/metis_library.hpp"
#include "sparse/ordering/nested_dissection.hpp"
#include "sparse/ordering/ordering.hpp"
#include "strata/error.hpp"
#include "strata/io.hpp"
#include "tests/sparse/patterns.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::pattern_of;

AnalysisOptions by(SparseOrdering ordering, int threads = 1, std::uint64_t seed = 1) {
  AnalysisOptions options;
  options.ordering = ordering;
  options.threads = threads;
  options.seed = seed;
  return options;
}

CompressedGraph compressed(const SparseMatrix& a, int threads = 1) {
  WorkCrew crew(threads - 1);
  return compress(symmetric_pattern(a, crew), crew);
}

/// Large enough that parts are ordered by themselves, on several levels.
SparseMatrix large_grid() { return test::grid(28, 29, 27); }

TEST(Ordering, IsTheSameOnAnyNumberOfThreads) {
  const SparseMatrix a = large_grid();
  const SparseAnalysis one = analyze(a, by(SparseOrdering::metis));
  for (const int threads : {2, 3, 5}) {
    if (test::kSanitized && threads == 2) continue;
    EXPECT_EQ(analyze(a, by(SparseOrdering::metis, threads)).order, one.order) << threads;
    EXPECT_EQ(analyze(a, by(SparseOrdering::best, threads)).order, one.order) << threads;
  }
  EXPECT_NE(analyze(a, by(SparseOrdering::metis, 1, 2)).order, one.order);
}

TEST(Ordering, OfManyVerticesIsTheSameOnAnyNumberOfThreads) {
  const SparseMatrix a = test::grid(51, 50, 49);  // coarsened by several threads
  const SparseAnalysis one = analyze(a, by(SparseOrdering::metis));
  for (const int threads : {2, 16}) {
    if (test::kSanitized && threads == 2) continue;
    EXPECT_EQ(analyze(a, by(SparseOrdering::metis, threads)).order, one.order) << threads;
  }
}

TEST(Ordering, OfPartsIsAboutAsGoodAsThatOfTheWhole) {
  const SymmetricPattern p = pattern_of(large_grid());
  const std::vector<std::int32_t> whole =
      MetisLibrary::get().node_nd(compressed(large_grid()).graph, 4321);
  WorkCrew crew(0);
  const std::vector<std::int32_t> counts = column_counts(p, ordered_tree(p, whole, crew), crew);
  const SparseAnalysis parts = analyze(large_grid(), by(SparseOrdering::metis));
  EXPECT_LT(parts.counts.flops, 1.15 * flops_of(counts));
}

TEST(Ordering, LeavesRandomNumbersAndSignalsOfTheProcessAlone) {
  const SparseMatrix a = large_grid();
  std::srand(7);
  const int expected = std::rand();
  std::srand(7);
  struct sigaction before {};
  struct sigaction after {};
  ::sigaction(SIGABRT, nullptr, &before);
  const SparseAnalysis first = analyze(a, by(SparseOrdering::metis, 3));
  EXPECT_EQ(std::rand(), expected);
  ::sigaction(SIGABRT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  // And what the process has drawn makes no difference.
  EXPECT_EQ(analyze(a, by(SparseOrdering::metis, 3)).order, first.order);
}

TEST(Ordering, RowsThatAreAlikeAreOneVertex) {
  const CompressedGraph c = compressed(test::grid(5, 4, 3, true, 3));
  ASSERT_EQ(c.graph.size(), 60);
  for (const std::int32_t weight : c.graph.weight) EXPECT_EQ(weight, 3);
  for (std::int32_t v = 0; v < 60; ++v) {
    const auto first = c.member.begin() + c.first[at(v)];
    EXPECT_EQ(std::vector<std::int32_t>(first, first + 3),
              (std::vector<std::int32_t>{3 * v, 3 * v + 1, 3 * v + 2}));
  }
  // The same graph as that of one unknown a node.
  const CompressedGraph plain = compressed(test::grid(5, 4, 3, true));
  EXPECT_EQ(plain.graph.start, c.graph.start);
  EXPECT_EQ(plain.graph.neighbor, c.graph.neighbor);
  // A clique is one vertex, which has no neighbours and is left out.
  test::Edges clique(9);
  for (int i = 0; i < 81; ++i) clique.add(i / 9, i % 9);
  const CompressedGraph one = compressed(clique.matrix());
  EXPECT_EQ(one.graph.weight, std::vector<std::int32_t>{9});
  EXPECT_TRUE(one.graph.neighbor.empty());
}

/// Checks large families against groups of rows with one list of neighbours and themselves.
TEST(Ordering, CompressedGraphsAreTheSameOnAnyNumberOfThreads) {
  for (const test::Family& family : test::large_families(test::Give::lower)) {
    const SymmetricPattern p = pattern_of(family.matrix);
    const CompressedGraph one = compressed(family.matrix);
    std::set<std::int32_t> left_out(one.dense.begin(), one.dense.end());
    std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> groups;
    for (std::int32_t v = 0; v < p.size(); ++v) {
      std::vector<std::int32_t> closed(p.neighbors(v).begin(), p.neighbors(v).end());
      closed.insert(std::lower_bound(closed.begin(), closed.end(), v), v);
      std::erase_if(closed, [&](std::int32_t w) { return left_out.contains(w); });
      if (!left_out.contains(v) && closed.size() > 1) groups[closed].push_back(v);
    }
    ASSERT_EQ(one.graph.size(), std::ssize(groups)) << family.name;
    for (std::int32_t v = 0; v < one.graph.size(); ++v) {
      const std::vector<std::int32_t> own(one.member.begin() + one.first[at(v)],
                                          one.member.begin() + one.first[at(v + 1)]);
      std::vector<std::int32_t> closed = own;
      for (std::int32_t k = one.graph.start[at(v)]; k < one.graph.start[at(v + 1)]; ++k) {
        const std::int32_t w = one.graph.neighbor[at(k)];
        closed.insert(closed.end(), one.member.begin() + one.first[at(w)],
                      one.member.begin() + one.first[at(w + 1)]);
      }
      std::sort(closed.begin(), closed.end());
      ASSERT_EQ(groups[closed], own) << family.name << ", vertex " << v;
    }
    for (const int threads : {2, 3, 8}) {
      if (test::kSanitized && threads != 3) continue;
      SCOPED_TRACE(family.name + ", threads " + std::to_string(threads));
      const CompressedGraph c = compressed(family.matrix, threads);
      EXPECT_EQ(c.graph.start, one.graph.start);
      EXPECT_EQ(c.graph.neighbor, one.graph.neighbor);
      EXPECT_EQ(c.graph.weight, one.graph.weight);
      EXPECT_EQ(c.first, one.first);
      EXPECT_EQ(c.member, one.member);
      EXPECT_EQ(c.isolated, one.isolated);
      EXPECT_EQ(c.dense, one.dense);
    }
  }
}

TEST(Ordering, DenseRowsComeLast) {
  constexpr std::int64_t kOrder = 900;
  test::Edges edges(kOrder);
  for (std::int64_t i = 1; i < kOrder; ++i) edges.add(i, i - 1);
  for (std::int64_t i = 0; i < kOrder; ++i) edges.add(i, 5);
  for (std::int64_t i = 0; i < 800; ++i) edges.add(i, 100);
  const SymmetricPattern p = pattern_of(edges.matrix());
  const CompressedGraph c = compressed(edges.matrix());
  EXPECT_EQ(c.dense, (std::vector<std::int32_t>{100, 5}));
  WorkCrew crew(0);
  const std::vector<std::int32_t> order = nested_dissection(p, 1, crew);
  EXPECT_EQ(order[kOrder - 1], 5);
  EXPECT_EQ(order[kOrder - 2], 100);
  (void)places_of(order, kOrder);
}

TEST(Ordering, OfTheCallerHasToBeAPermutation) {
  const SparseMatrix a = test::grid(3, 2, 1);
  AnalysisOptions options = by(SparseOrdering::given);
  const std::vector<std::pair<std::vector<std::int32_t>, std::string>> wrong{
      {{0, 1, 2, 3, 4}, "5 rows"},
      {{0, 1, 2, 3, 4, 6}, "element 5 of the order is 6"},
      {{0, -1, 2, 3, 4, 5}, "element 1 of the order is -1"},
      {{0, 1, 2, 3, 2, 5}, "elements 2 and 4 of the order are both row 2"}};
  for (const auto& [order, words] : wrong) {
    options.order = order;
    try {
      (void)analyze(a, options);
      ADD_FAILURE() << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
  options.order = {5, 4, 3, 2, 1, 0};
  EXPECT_EQ(analyze(a, options).ordering, SparseOrdering::given);
  options.ordering = SparseOrdering::amd;  // an order, and another asked for
  EXPECT_THROW((void)analyze(a, options), Error);
  options = by(SparseOrdering::amd, -1);
  EXPECT_THROW((void)analyze(a, options), Error);
  options = by(SparseOrdering::amd);
  options.relax_flops = -0.1;
  EXPECT_THROW((void)analyze(a, options), Error);
  options = by(SparseOrdering::amd);
  options.relax_rows = -1;
  EXPECT_THROW((void)analyze(a, options), Error);
}

TEST(Ordering, HasNames) {
  for (const char* name : {"best", "metis", "amd", "natural", "given"})
    EXPECT_EQ(to_string(parse_sparse_ordering(name)), name);
  EXPECT_THROW((void)parse_sparse_ordering("nested"), Error);
}

struct Known {
  const char* file;
  const char* ordering;
  double flops;
  double entries;
};

/// Matrices that others have analyzed too: ../shared/studies/cpu_cholmod.jsonl has what CHOLMOD
/// found, in four digits. Minimum degree is the same algorithm, nested dissection draws other
/// random numbers.
TEST(Ordering, OfKnownMatricesIsThatOfCholmod) {
  const std::string folder = std::string(STRATA_SOURCE_DIR) + "/../shared/data/sparse/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  for (const Known& known : {Known{"bcsstk16", "amd", 1.864e8, 8.122e5},
                             {"bcsstk16", "metis", 1.413e8, 7.287e5},
                             {"torus3D_pose_laplacian", "amd", 1.237e9, 3.127e6},
                             {"torus3D_pose_laplacian", "metis", 1.031e9, 3.099e6},
                             {"pdn_pg2", "amd", 4.886e5, 8.948e4},
                             {"pdn_pg2", "metis", 6.076e5, 9.492e4}}) {
    const SparseMatrix a = read_mtx(folder + known.file + ".mtx.gz").to_sparse();
    const SparseAnalysis r = analyze(a, by(parse_sparse_ordering(known.ordering)));
    const bool same = r.ordering == SparseOrdering::amd;
    EXPECT_NEAR(r.counts.flops, known.flops, (same ? 5e-4 : 0.1) * known.flops) << known.file;
    EXPECT_NEAR(static_cast<double>(r.counts.factor_entries), known.entries,
                (same ? 5e-4 : 0.05) * known.entries)
        << known.file;
  }
}

}  // namespace
}  // namespace strata
