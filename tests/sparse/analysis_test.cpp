// Analyses against elimination by the definition, on families and on random patterns.

#include <gtest/gtest.h>

#include <cmath>

#include "strata/error.hpp"
#include "tests/sparse/patterns.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::DenseFactor;

constexpr std::array kOrderings{SparseOrdering::natural, SparseOrdering::given, SparseOrdering::amd,
                                SparseOrdering::metis, SparseOrdering::best};

AnalysisOptions analysis_options_of(SparseOrdering ordering, std::int64_t n, double relax = 0.1,
                                    std::int64_t spare = 64, double rows = 0) {
  AnalysisOptions options;
  options.ordering = ordering;
  if (ordering == SparseOrdering::given) options.order = test::random_order(n, 5);
  options.threads = 1;
  options.relax_bytes = relax;
  options.relax_flops = relax;
  options.relax_entries = spare;
  options.relax_rows = rows;
  return options;
}

/// What the columns of one panel have in L.
struct Exact {
  double entries = 0;
  double flops = 0;
};

/// The columns of s lie in its panel, and its rows are those of its last column.
Exact expect_columns(const SparseAnalysis& a, const DenseFactor& l, std::int32_t s) {
  const std::int64_t end = a.first[at(s + 1)];
  const auto rows = a.rows(s);
  EXPECT_EQ(std::vector<std::int32_t>(rows.begin(), rows.end()), l.rows(end - 1, end))
      << "supernode " << s;
  Exact exact;
  for (std::int64_t j = a.first[at(s)]; j < end; ++j) {
    const std::vector<std::int32_t> own = l.rows(j, j);
    exact.entries += static_cast<double>(own.size());
    exact.flops += static_cast<double>(own.size() * own.size());
    for (const std::int32_t i : own)
      EXPECT_TRUE(i < end || std::binary_search(rows.begin(), rows.end(), i)) << i << ' ' << j;
  }
  return exact;
}

/// The panels hold L, and not more than they may.
void expect_panels(const SparseAnalysis& a, const DenseFactor& l, const AnalysisOptions& options) {
  double stored_flops = 0;
  double stored = 0;
  std::int64_t bytes = 0;
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const double spare = static_cast<double>(options.relax_entries) +
                         options.relax_rows * static_cast<double>(std::min(
                                                  a.row_count(s), AnalysisOptions::kRelaxRowsMax));
    const Exact exact = expect_columns(a, l, s);
    double entries = 0;
    double flops = 0;
    for (std::int64_t k = 0; k < a.width(s); ++k) {
      const auto kept = static_cast<double>(a.width(s) - k + a.row_count(s));
      entries += kept;
      flops += kept * kept;
    }
    EXPECT_NEAR(a.flops(s), flops, 1e-12 * flops);
    EXPECT_LE(entries, (1 + options.relax_bytes) * exact.entries + spare);
    EXPECT_LE(flops, (1 + options.relax_flops) * exact.flops + spare * spare);
    stored += entries;
    stored_flops += flops;
    bytes += 8 * a.width(s) * (a.width(s) + a.row_count(s));
    EXPECT_EQ(a.panel_bytes(s), 8 * a.width(s) * (a.width(s) + a.row_count(s)));
  }
  EXPECT_EQ(static_cast<double>(a.counts.stored_entries), stored);
  EXPECT_NEAR(a.counts.stored_flops, stored_flops, 1e-12 * stored_flops);
  EXPECT_EQ(a.counts.panel_bytes, bytes);
}

/// The most bytes of a multifrontal factorization in this order of supernodes.
std::int64_t simulated_stack(const SparseAnalysis& a, const std::vector<std::int32_t>& order) {
  std::vector<std::int64_t> from_children(at(a.supernodes()));
  std::int64_t held = 0;
  std::int64_t peak = 0;
  for (const std::int32_t s : order) {
    const std::int64_t update = 8 * a.row_count(s) * a.row_count(s);
    peak = std::max(peak, held + a.panel_bytes(s) + update);
    held += update - from_children[at(s)];
    if (a.parent[at(s)] >= 0) from_children[at(a.parent[at(s)])] += update;
  }
  return peak;
}

/// A postorder whose children are in an order of their own.
std::vector<std::int32_t> shuffled_postorder(const SparseAnalysis& a, std::uint64_t seed) {
  std::vector<std::vector<std::int32_t>> children(at(a.supernodes()) + 1);  // the last: roots
  for (const std::int32_t s : test::random_order(a.supernodes(), seed))
    children[a.parent[at(s)] < 0 ? children.size() - 1 : at(a.parent[at(s)])].push_back(s);
  std::vector<std::int32_t> order;
  const std::function<void(std::size_t)> walk = [&](std::size_t node) {
    for (const std::int32_t child : children[node]) {
      walk(at(child));
      order.push_back(child);
    }
  };
  walk(children.size() - 1);
  return order;
}

void expect_tree(const SparseAnalysis& a) {
  std::vector<std::int32_t> own(at(a.supernodes()));
  std::iota(own.begin(), own.end(), 0);
  EXPECT_EQ(a.counts.stack_bytes, simulated_stack(a, own));
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_LE(a.counts.stack_bytes, simulated_stack(a, shuffled_postorder(a, seed)));
  std::int64_t product = 0;
  std::int64_t height = 0;
  double critical = 0;
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    double way = 0;
    std::int64_t length = 0;
    for (std::int32_t t = s; t >= 0; t = a.parent[at(t)], ++length) {
      way += a.flops(t);
      std::int64_t columns = 0;
      std::int64_t rows = 0;
      for (const std::int32_t row : a.rows(s)) {
        columns += row >= a.first[at(t)] && row < a.first[at(t) + 1] ? 1 : 0;
        rows += row >= a.first[at(t)] ? 1 : 0;
      }
      product = std::max(product, 8 * columns * rows);
    }
    height = std::max(height, length);
    critical = std::max(critical, way);
  }
  EXPECT_EQ(a.counts.product_bytes, product);
  EXPECT_EQ(a.counts.height, height);
  EXPECT_NEAR(a.counts.critical_flops, critical, 1e-12 * critical);
}

/// Columns that cannot go on the supernode of the one before: all but only children's parents with
/// the same rows.
std::int64_t fundamental(const DenseFactor& l) {
  std::vector<std::vector<std::int64_t>> children(at(l.n));
  for (std::int64_t j = 0; j < l.n; ++j) {
    const auto below = l.rows(j, j + 1);
    if (!below.empty()) children[at(below[0])].push_back(j);
  }
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < l.n; ++j) {
    const auto& c = children[at(j)];
    count += c.size() == 1 && l.rows(c[0], c[0]).size() == l.rows(j, j).size() + 1 ? 0 : 1;
  }
  return count;
}

void expect_right(const SparseMatrix& matrix, const AnalysisOptions& options) {
  const SparseAnalysis a = analyze(matrix, options);
  require_well_formed(a);
  const DenseFactor l(matrix, a.order);
  EXPECT_EQ(a.counts.factor_entries, l.entries());
  EXPECT_EQ(a.counts.flops, l.flops());
  EXPECT_EQ(a.counts.fundamental_supernodes, fundamental(l));
  if (options.ordering == SparseOrdering::given || options.ordering == SparseOrdering::natural) {
    std::vector<std::int32_t> asked = options.order;
    asked.resize(at(matrix.rows));
    if (options.order.empty()) std::iota(asked.begin(), asked.end(), 0);
    const DenseFactor own(matrix, asked);
    EXPECT_EQ(l.entries(), own.entries());
    EXPECT_EQ(l.flops(), own.flops());
    EXPECT_EQ(a.ordering, options.ordering);
  }
  expect_panels(a, l, options);
  expect_tree(a);
}

TEST(Analysis, OfFamiliesIsThatOfElimination) {
  for (const test::Family& family : test::families()) {
    for (const SparseOrdering ordering : kOrderings) {
      SCOPED_TRACE(family.name + ", " + std::string(to_string(ordering)));
      expect_right(family.matrix, analysis_options_of(ordering, family.matrix.rows));
      expect_right(family.matrix, analysis_options_of(ordering, family.matrix.rows, 0, 0));
      expect_right(family.matrix, analysis_options_of(ordering, family.matrix.rows, 0.5, 7));
      expect_right(family.matrix, analysis_options_of(ordering, family.matrix.rows, 0.1, 16, 3));
    }
  }
}

TEST(Analysis, OfRandomPatternsIsThatOfElimination) {
  const std::uint64_t patterns = test::campaign(20000, 20000, 1000);
  for (std::uint64_t i = 0; i < patterns && !testing::Test::HasFailure(); ++i) {
    const auto n = static_cast<std::int64_t>(1 + random_bits(1, i) % 24);
    const double density = 3 * random_uniform(2, i) * random_uniform(3, i) / std::sqrt(n);
    const SparseMatrix a = test::random_pattern(n, density, i, static_cast<test::Give>(i % 3));
    const auto relax = static_cast<double>(i % 5) / 10;
    AnalysisOptions options =
        analysis_options_of(kOrderings[i % 4], n, relax, static_cast<std::int64_t>(i % 7 * 9));
    if (!options.order.empty()) options.order = test::random_order(n, i);
    SCOPED_TRACE(i);
    expect_right(a, options);
  }
}

TEST(Analysis, WithoutRoomForZerosStoresNone) {
  for (const test::Family& family : test::families()) {
    const SparseAnalysis a =
        analyze(family.matrix, analysis_options_of(SparseOrdering::amd, family.matrix.rows, 0, 0));
    EXPECT_EQ(a.counts.stored_entries, a.counts.factor_entries) << family.name;
    EXPECT_NEAR(a.counts.stored_flops, a.counts.flops, 1e-12 * a.counts.flops) << family.name;
  }
}

TEST(Analysis, MoreRoomLeavesFewerSupernodes) {
  const SparseMatrix a = test::grid(40, 40, 1);
  std::int32_t before = std::numeric_limits<std::int32_t>::max();
  for (const double relax : {0.0, 0.05, 0.3, 1.0}) {
    const SparseAnalysis r = analyze(a, analysis_options_of(SparseOrdering::metis, a.rows, relax,
                                                            static_cast<std::int64_t>(99 * relax)));
    EXPECT_LT(r.supernodes(), before);
    EXPECT_LE(
        static_cast<double>(r.counts.stored_entries),
        (1 + relax) * static_cast<double>(r.counts.factor_entries) + 99 * relax * r.supernodes());
    before = r.supernodes();
  }
}

TEST(Analysis, BestIsTheOneWithFewerOperations) {
  for (const SparseMatrix& a : {test::grid(40, 40, 1), test::grid(12, 12, 12),
                                test::random_pattern(150, 0.01, 3, test::Give::lower)}) {
    const SparseAnalysis metis = analyze(a, analysis_options_of(SparseOrdering::metis, a.rows));
    const SparseAnalysis amd = analyze(a, analysis_options_of(SparseOrdering::amd, a.rows));
    const SparseAnalysis best = analyze(a, analysis_options_of(SparseOrdering::best, a.rows));
    const bool first = metis.counts.flops <= amd.counts.flops;
    EXPECT_EQ(best.ordering, first ? SparseOrdering::metis : SparseOrdering::amd);
    EXPECT_EQ(best.order, (first ? metis : amd).order);
  }
}

TEST(Analysis, IsTheSameForEitherTriangleAndBoth) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<SparseAnalysis> all;
    for (const test::Give give : {test::Give::lower, test::Give::upper, test::Give::both})
      all.push_back(analyze(test::random_pattern(41, 0.06, seed, give),
                            analysis_options_of(SparseOrdering::metis, 41)));
    for (const SparseAnalysis& a : all) {
      EXPECT_EQ(a.fingerprint, all[0].fingerprint);
      EXPECT_EQ(a.order, all[0].order);
      EXPECT_EQ(a.row, all[0].row);
    }
  }
}

TEST(Analysis, IsTheSameOnAnyNumberOfThreads) {
  for (const test::Family& family : test::large_families(test::Give::lower)) {
    for (const SparseOrdering ordering :
         {SparseOrdering::amd, SparseOrdering::metis, SparseOrdering::natural}) {
      // A grid in its own order, let alone a scattered one, has more rows in L than a test needs.
      if (ordering == SparseOrdering::natural && family.name.find("grid") != std::string::npos)
        continue;
      AnalysisOptions options = analysis_options_of(ordering, family.matrix.rows);
      const SparseAnalysis one = analyze(family.matrix, options);
      for (const int threads : {2, 3, 8}) {
        if (test::kSanitized && threads != 3) continue;
        SCOPED_TRACE(family.name + ", " + std::string(to_string(ordering)) + ", threads " +
                     std::to_string(threads));
        options.threads = threads;
        const SparseAnalysis a = analyze(family.matrix, options);
        EXPECT_EQ(a.fingerprint, one.fingerprint);
        EXPECT_EQ(a.order, one.order);
        EXPECT_EQ(a.first, one.first);
        EXPECT_EQ(a.parent, one.parent);
        EXPECT_EQ(a.row_start, one.row_start);
        EXPECT_EQ(a.row, one.row);
        EXPECT_EQ(a.counts.factor_entries, one.counts.factor_entries);
        EXPECT_EQ(a.counts.flops, one.counts.flops);
        EXPECT_EQ(a.counts.critical_flops, one.counts.critical_flops);
        EXPECT_EQ(a.counts.product_bytes, one.counts.product_bytes);
        EXPECT_EQ(a.counts.stack_bytes, one.counts.stack_bytes);
      }
    }
  }
}

/// 2^31 entries of L and more, in numbers of 64 bits: a grid whose factor is not computed here.
TEST(Analysis, CountsBeyond32Bits) {
  constexpr std::int64_t kHub = 50000;
  test::Edges edges(2 * kHub);
  for (std::int64_t i = 0; i < kHub; ++i) edges.add(i, kHub), edges.add(kHub + i, kHub);
  // The hub is eliminated first: everything else becomes dense.
  AnalysisOptions options = analysis_options_of(SparseOrdering::given, 2 * kHub);
  options.order.assign(1, kHub);
  for (std::int32_t i = 0; i < 2 * kHub; ++i)
    if (i != kHub) options.order.push_back(i);
  const SparseAnalysis a = analyze(edges.matrix(), options);
  const double n = 2 * kHub;
  EXPECT_EQ(a.counts.factor_entries, static_cast<std::int64_t>(n * (n + 1) / 2));
  EXPECT_NEAR(a.counts.flops, n * (n + 1) * (2 * n + 1) / 6, 1e-12 * n * n * n);
  EXPECT_EQ(a.counts.panel_bytes, static_cast<std::int64_t>(8 * n * n));
  EXPECT_EQ(a.supernodes(), 1);
}

}  // namespace
}  // namespace strata
