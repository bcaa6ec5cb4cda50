// Ghost zones: the rows that are within so many steps of a slab, and products that use them: the
// same bits as with an exchange each, in fewer exchanges.

#include "krylov/ghost_zones.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.hpp"
#include "krylov/basis_runner.hpp"
#include "strata/krylov.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/backends.hpp"

namespace strata {
namespace {

/// A band whose entries reach up to four rows away, and not symmetric; some rows are empty but for
/// the diagonal.
SparseMatrix band(std::int64_t n) {
  test::Entries a;
  for (std::int64_t i = 0; i < n; ++i) {
    a.add(i, i, 2 + std::sin(static_cast<double>(i)));
    if (i % 7 == 3) continue;
    if (i + 1 < n) a.add(i, i + 1, -0.5);
    if (i >= 4) a.add(i, i - 4, 0.25);
    if (i >= 2 && i % 3 == 0) a.add(i, i - 2, -0.75);
  }
  return a.matrix(n);
}

/// Rows that are not the slab's and can be reached from it in `depth` steps, by the definition.
std::vector<std::int64_t> reached(const SparseMatrix& a, const RowSlab& slab, std::int64_t depth) {
  std::vector<bool> there(static_cast<std::size_t>(a.rows));
  for (std::int64_t i = 0; i < slab.rows; ++i)
    there[static_cast<std::size_t>(slab.first + i)] = true;
  for (std::int64_t d = 0; d < depth; ++d) {
    const std::vector<bool> before = there;
    for (std::size_t i = 0; i < before.size(); ++i) {
      for (std::int64_t k = a.start[i]; before[i] && k < a.start[i + 1]; ++k)
        there[static_cast<std::size_t>(a.column[static_cast<std::size_t>(k)])] = true;
    }
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const bool own = i >= slab.first && i < slab.first + slab.rows;
    if (!own && there[static_cast<std::size_t>(i)]) rows.push_back(i);
  }
  return rows;
}

TEST(GhostZones, HaveTheRowsThatCanBeReached) {
  WorkCrew crew(2);
  for (const SparseMatrix& a : {band(1500), test::grid(31, 6, 7), test::grid(1, 1, 1), band(129)}) {
    for (const int devices : {1, 2, 3, 5}) {
      const RowSlabs cut = cut_into_slabs(a, devices, 1, crew);
      for (const std::int64_t depth : {1, 2, 3, 8}) {
        const GhostZones made = make_ghost_zones(a, cut, depth);
        ASSERT_EQ(made.zones.size(), cut.slabs.size());
        for (std::size_t s = 0; s < cut.slabs.size(); ++s) {
          const std::vector<std::int64_t> expected = reached(a, cut.slabs[s], depth);
          std::vector<std::int64_t> got(expected.size(), -1);
          ASSERT_EQ(made.zones[s].rows, std::ssize(expected));
          for (const HaloLink& link : made.links) {
            if (link.to != static_cast<int>(s)) continue;
            const std::int64_t first = cut.slabs[static_cast<std::size_t>(link.from)].first;
            for (std::size_t i = 0; i < link.index.size(); ++i)
              got[static_cast<std::size_t>(link.offset) + i] = first + link.index[i];
          }
          EXPECT_EQ(got, expected) << devices << " devices, depth " << depth;
          ASSERT_EQ(std::ssize(made.zones[s].halo), cut.slabs[s].halo);
        }
      }
    }
  }
}

struct Powers {
  std::vector<std::vector<double>> columns;
  HaloReport halo;
  bool as_planned = false;
};

constexpr std::int64_t kDepth = 6;

/// Products of a given vector behind another one: first `kDepth`, then three by themselves.
Powers powers_of(const SparseMatrix& a, const std::string& devices, bool ghosts, bool before) {
  const auto n = static_cast<std::size_t>(a.rows);
  std::vector<double> first(n);
  std::vector<double> second(n);
  for (std::size_t i = 0; i < n; ++i) {
    first[i] = random_normal(5, i);
    second[i] = random_normal(6, i);
  }
  RunOptions options;
  options.devices = devices;
  options.device_memory_bytes = 64 << 20;
  BasisRunner runner(a, 2 + kDepth + 3, kDepth, {{0, first}, {1, second}}, options, "test", 0, {},
                     ghosts ? kDepth : 0);
  std::vector<BasisScript::Step> steps;
  for (std::int64_t i = 0; i < kDepth; ++i)
    steps.push_back({0.3 * static_cast<double>(i), i > 0 || before ? 0.7 : 0.0, 0.5});
  BasisScript script;
  script.powers(1, 0, steps);
  steps.resize(3);
  script.powers(1 + kDepth, kDepth, steps);
  (void)runner.run(script);
  Powers result;
  result.halo = runner.halo();
  for (std::int64_t j = 0; j < 2 + kDepth + 3; ++j)
    (void)runner.run_and_take({}, j, result.columns.emplace_back(n));
  const RunReport report = runner.take_report();
  result.as_planned = report.traffic == static_cast<const Traffic&>(report.planned_traffic);
  return result;
}

class GhostProducts : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, GhostProducts, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(GhostProducts, HaveTheBitsOfPlainOnesInOneExchange) {
  for (const SparseMatrix& a : {band(1500), test::grid(90, 4, 5, 0.25)}) {
    for (const bool before : {false, true}) {
      const Powers expected = powers_of(a, "host:1", false, before);
      EXPECT_EQ(expected.halo.exchanges, 0);
      // Against A itself.
      std::vector<double> y(expected.columns[1].size());
      multiply(a, expected.columns[1], y);
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(expected.columns[2][i],
                    0.5 * (y[i] - (before ? 0.7 : 0.0) * expected.columns[0][i]), 1e-14);
      for (const int count : {1, 2, 3}) {
        const std::string devices = test::devices_text(GetParam(), count);
        if (devices.empty()) continue;
        for (const bool ghosts : {false, true}) {
          const Powers got = powers_of(a, devices, ghosts, before);
          EXPECT_EQ(got.columns, expected.columns) << devices << ", " << ghosts;
          EXPECT_TRUE(got.as_planned);
          EXPECT_EQ(got.halo.ghost_zones, ghosts && count > 1) << got.halo.why;
          EXPECT_EQ(got.halo.exchanges, count == 1 ? 0 : ghosts ? 2 : kDepth + 3);
          if (count == 1) continue;
          WorkCrew crew(0);
          const RowSlabs cut = cut_into_slabs(a, count, 1, crew);
          const GhostZones zones = make_ghost_zones(a, cut, kDepth);
          std::int64_t elements = 0;
          for (const HaloLink& link : ghosts ? zones.links : cut.links)
            elements += std::ssize(link.index);
          // With ghost zones w, and the vector before it where that is read; then both.
          EXPECT_EQ(got.halo.bytes,
                    8 * elements * (ghosts ? (before ? 2 : 1) + (before ? 2 : 1) : kDepth + 3));
        }
      }
    }
  }
}

TEST(GhostZones, LeaveVectorsInSinglePrecisionAsTheyAre) {
  const SparseMatrix a = test::grid(80, 5, 5);
  const std::vector<double> b = test::row_sums(a);
  std::vector<double> x[2];
  GmresInfo info[2];
  for (const bool ghosts : {false, true}) {
    GmresOptions options;
    options.s = 4;
    options.restart = 20;
    options.precision = Element::fp32;
    options.tolerance = 1e-11;
    options.ghost_zones = ghosts;
    options.run.devices = "host:3";
    options.run.device_memory_bytes = 64 << 20;
    x[ghosts ? 1 : 0].resize(b.size());
    info[ghosts ? 1 : 0] = gmres(a, b, x[ghosts ? 1 : 0], options);
    EXPECT_TRUE(info[ghosts ? 1 : 0].ok);
  }
  EXPECT_EQ(x[0], x[1]);
  EXPECT_TRUE(info[1].halo.ghost_zones) << info[1].halo.why;
  EXPECT_LT(info[1].halo.exchanges, info[0].halo.exchanges);
  EXPECT_EQ(info[1].report.traffic, static_cast<const Traffic&>(info[1].report.planned_traffic));
}

TEST(GhostZones, LeaveGmresAndEigsAsTheyAre) {
  const SparseMatrix a = test::grid(80, 5, 5);
  std::vector<double> x[2];
  GmresInfo solved[2];
  std::vector<double> vectors[2];
  EigsInfo found[2];
  for (const bool ghosts : {false, true}) {
    GmresOptions gmres_options;
    gmres_options.s = 4;
    gmres_options.basis = KrylovBasis::monomial;  // no cycle of single vectors
    gmres_options.tolerance = 1e-10;
    gmres_options.restart = 24;
    gmres_options.ghost_zones = ghosts;
    gmres_options.run.devices = ghosts ? "host:3" : "host:1";
    gmres_options.run.device_memory_bytes = 64 << 20;
    x[ghosts].resize(static_cast<std::size_t>(a.rows));
    solved[ghosts] = gmres(a, test::row_sums(a), x[ghosts], gmres_options);
    EXPECT_TRUE(solved[ghosts].ok) << solved[ghosts].why;
    EigsOptions eigs_options;
    eigs_options.k = 4;
    eigs_options.which = EigenEnd::smallest;
    eigs_options.basis_size = 24;
    eigs_options.s = 6;
    eigs_options.filter = false;  // which goes vector by vector
    eigs_options.ghost_zones = ghosts;
    eigs_options.run = gmres_options.run;
    vectors[ghosts].resize(static_cast<std::size_t>(a.rows * 4));
    found[ghosts] = eigs(a, {vectors[ghosts].data(), a.rows, 4, a.rows}, eigs_options);
    EXPECT_TRUE(found[ghosts].ok) << found[ghosts].why;
  }
  EXPECT_EQ(x[0], x[1]);
  EXPECT_EQ(vectors[0], vectors[1]);
  for (const HaloReport& halo : {solved[1].halo, found[1].halo}) {
    EXPECT_TRUE(halo.ghost_zones) << halo.why;
    EXPECT_GT(halo.ghost_share, 0);
    EXPECT_LT(halo.ghost_share, kGhostShareMax);
  }
  EXPECT_LT(2 * solved[1].halo.exchanges, solved[1].iterations);
  EXPECT_LT(2 * found[1].halo.exchanges, found[1].products);
  for (const RunReport& report : {solved[1].report, found[1].report})
    EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
}

/// On a cube every slab is near every other: what is asked for would be more work than it saves.
TEST(GhostZones, AreNotMadeWhereTheyWouldBeLarge) {
  const SparseMatrix a = test::laplacian(10);
  std::vector<double> x(static_cast<std::size_t>(a.rows));
  GmresOptions options;
  options.s = 8;
  options.restart = 24;
  options.ghost_zones = true;
  options.run.devices = "host:2";
  options.run.device_memory_bytes = 64 << 20;
  const GmresInfo info = gmres(a, test::row_sums(a), x, options);
  EXPECT_TRUE(info.ok);
  EXPECT_TRUE(info.halo.asked_for_ghost_zones);
  EXPECT_FALSE(info.halo.ghost_zones);
  EXPECT_GT(info.halo.ghost_share, kGhostShareMax);
  EXPECT_NE(info.halo.why.find("more than 0.5"), std::string::npos) << info.halo.why;
}

TEST(GhostZones, AreNotMadeForProductsWithAPreconditioner) {
  const SparseMatrix a = band(900);
  std::vector<double> x(static_cast<std::size_t>(a.rows));
  GmresOptions options;
  options.s = 6;
  options.restart = 24;
  options.ghost_zones = true;
  options.preconditioner = {.kind = Preconditioner::block_jacobi, .block_size = 8, .apply = {}};
  options.run.devices = "host:2";
  options.run.device_memory_bytes = 64 << 20;
  const GmresInfo info = gmres(a, test::row_sums(a), x, options);
  EXPECT_TRUE(info.ok);
  EXPECT_FALSE(info.halo.ghost_zones);
  EXPECT_NE(info.halo.why.find("preconditioner"), std::string::npos) << info.halo.why;
  EXPECT_GE(info.halo.exchanges, info.iterations);
}

}  // namespace
}  // namespace strata
