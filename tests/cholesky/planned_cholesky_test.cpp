// Planned Cholesky against the definition of correct: the Schedule in order on one thread.

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "cholesky/planning.hpp"
#include "kernels/covariance/covariance.hpp"
#include "run/run.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Matrix;

/// Every byte of the lower triangle of tiles.
std::vector<double> lower_of(MemoryStore& store) {
  const BlockTable& blocks = store.blocks();
  std::vector<double> all;
  for (std::int64_t c = 0; c < blocks.block_cols(kMatrixFamily); ++c) {
    for (std::int64_t r = c; r < blocks.block_rows(kMatrixFamily); ++r) {
      const BlockExtent x = blocks.extent({kMatrixFamily, r, c});
      const auto* data = reinterpret_cast<const double*>(store.lend({kMatrixFamily, r, c}));
      for (std::int64_t j = 0; j < x.cols; ++j) {
        for (std::int64_t i = r == c ? j : 0; i < x.rows; ++i) all.push_back(data[i + j * x.rows]);
      }
    }
  }
  return all;
}

struct PlannedCholeskyCase {
  Matrix<double> matrix;
  Matrix<double> points;
  CholeskyProblem problem;
  CovarianceParameters parameters{2.0, 0.3, 0.5, 0.1, true};

  PlannedCholeskyCase(std::int64_t n, std::int64_t tile, int devices, bool generated)
      : matrix(test::random_spd_matrix<double>(n, 7)),
        points(test::make_matrix<double>(n, 2, [](auto i, auto j) {
          return random_uniform(11, static_cast<std::uint64_t>(2 * i + j));
        })) {
    problem.n = n;
    problem.tile = tile;
    problem.devices = devices;
    problem.point_dimensions = generated ? 2 : 0;
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = tile_cholesky(problem, {}).blocks;
    const bool generated = problem.point_dimensions > 0;
    std::vector<std::shared_ptr<FamilyMemory>> families{std::make_shared<FamilyMemory>(
        blocks, kMatrixFamily,
        generated ? BlockSource() : source_of_view(matrix.data.data(), matrix.ld(), true))};
    families.push_back(std::make_shared<FamilyMemory>(blocks, kStatusFamily));
    if (generated) {
      families.push_back(std::make_shared<FamilyMemory>(
          blocks, kPointsFamily, source_of_view(points.data.data(), points.ld(), false)));
    }
    return std::make_unique<MemoryStore>(blocks, families);
  }

  [[nodiscard]] std::vector<double> oracle(const std::string& backend) const {
    const auto store = make_store();
    IssueOptions options;
    options.values = {{covariance.name, &parameters}};
    run_in_order(tile_cholesky(problem, {}), test::backend_of(backend), *store, options);
    return lower_of(*store);
  }
};

/// Runs a case under a budget and checks everything that must hold of any run.
void expect_same(const std::string& backend, const PlannedCholeskyCase& c,
                 const std::vector<double>& expected, std::int64_t budget, Policy policy,
                 bool linked = false) {
  RunOptions options;
  options.devices = test::devices_text(backend, c.problem.devices);
  options.device_memory_bytes = budget;
  options.compute_queues = 2;
  DeviceSet devices(options);
  const auto store = c.make_store();
  Machine machine = devices.machine();
  machine.device_to_device = linked ? LinkRate{1e15, 0} : LinkRate{};
  const PlannedRun planned = plan_cholesky(c.problem, machine, policy);
  EXPECT_EQ(planned.plan->totals().peer_copies > 0,
            linked && c.problem.devices > 1 && c.problem.n > c.problem.tile);
  ASSERT_LE(planned.plan->layout().arena_bytes(), budget);
  IssueOptions run_options;
  run_options.values = {{covariance.name, &c.parameters}};
  const RunOutcome outcome = run(*planned.plan, devices, *store, run_options);
  EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
  EXPECT_EQ(fold_traffic(outcome.trace.spans), planned.plan->totals().traffic);
  EXPECT_EQ(static_cast<std::int64_t>(outcome.trace.spans.size()), planned.plan->totals().steps);
  const std::vector<double> actual = lower_of(*store);
  ASSERT_EQ(actual.size(), expected.size());
  EXPECT_TRUE(test::same_bits(actual, expected))
      << "n " << c.problem.n << " budget " << budget << ' ' << planned.policy;
}

class PlannedCholesky : public ::testing::TestWithParam<std::tuple<std::string, int, int, bool>> {};

TEST_P(PlannedCholesky, IsBitIdenticalToTheScheduleInOrderForEveryBudgetAndPolicy) {
  const auto [backend, n, devices, generated] = GetParam();
  if (test::devices_text(backend, devices).empty()) GTEST_SKIP() << "too few GPUs";
  constexpr std::int64_t kTile = 24;
  const PlannedCholeskyCase c(n, kTile, devices, generated);
  const std::vector<double> expected = c.oracle(backend);
  const Schedule schedule = tile_cholesky(c.problem, {});
  const std::int64_t smallest = smallest_budget_bytes(schedule);
  const std::int64_t slot = 2 * 256 + kTile * kTile * 8;
  test::Thinned thinned(13);
  for (std::int64_t budget = smallest; budget <= smallest + 9 * slot; budget += slot) {
    for (const Policy policy : {Policy::v3, Policy::opt}) {
      if (thinned.skips()) continue;
      expect_same(backend, c, expected, budget, policy);
      expect_same(backend, c, expected, budget, policy, true);
    }
  }
  for (const Policy policy : {Policy::sync, Policy::async, Policy::v1, Policy::v2}) {
    for (const std::int64_t budget : {smallest, smallest + 4 * slot}) {
      if (thinned.skips()) continue;
      expect_same(backend, c, expected, budget, policy);
    }
  }
  expect_same(backend, c, expected, std::int64_t{1} << 24, Policy::opt);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PlannedCholesky,
                         ::testing::Combine(::testing::ValuesIn(test::available_backends()),
                                            ::testing::Values(0, 1, 2, 23, 24, 25, 3 * 24 + 7,
                                                              8 * 24 + 1),
                                            ::testing::Values(1, 2, 4), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_n" +
                                  std::to_string(std::get<1>(info.param)) + "_devices" +
                                  std::to_string(std::get<2>(info.param)) +
                                  (std::get<3>(info.param) ? "_generated" : "_stored");
                         });

TEST(PlannedCholesky, RefusesABudgetBelowTheSmallestAndNamesIt) {
  const PlannedCholeskyCase c(100, 24, 1, false);
  const std::int64_t smallest = smallest_budget_bytes(tile_cholesky(c.problem, {}));
  try {
    (void)plan_cholesky(c.problem, Machine::emulated(1, smallest - 1), Policy::opt);
    FAIL() << "planned below the smallest budget";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find(std::to_string(smallest)), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW((void)plan_cholesky(c.problem, Machine::emulated(1, smallest), Policy::opt));
}

// ---- what cannot fit

/// Whether a problem is planned in tiles of `tile` with devices of `budget` bytes.
bool can_plan(CholeskyProblem problem, std::int64_t tile, std::int64_t budget) {
  const Machine machine = Machine::emulated(problem.devices, budget);
  problem.tile = tile;
  try {
    return plan_cholesky(problem, machine, Policy::v3).plan != nullptr;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
    return false;
  }
}

TEST(MemoryNeeds, AreWhatWorksAndNoByteLess) {
  int none = 0;
  int whole = 0;
  const std::uint64_t seeds = test::campaign(150, 150, 15);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto roll = [&](std::uint64_t i, std::int64_t sides) {
      return static_cast<std::int64_t>(random_bits(seed, i) % static_cast<std::uint64_t>(sides));
    };
    CholeskyProblem problem;
    problem.n = 1 + roll(0, 60);
    problem.tile = 1 + roll(1, problem.n + 5);
    problem.devices = static_cast<int>(1 + roll(2, 3));
    problem.point_dimensions = roll(3, 4) == 0 ? 1 + roll(4, 3) : 0;
    problem.precision = roll(5, 2) == 0 ? Element::fp64 : Element::fp32;
    const std::int64_t budget = roll(6, 3 * problem.n * problem.n * 8 + 2000);
    const MemoryNeeds needs = cholesky_needs(problem, budget);
    EXPECT_TRUE(can_plan(problem, problem.tile, needs.device_bytes)) << seed;
    EXPECT_FALSE(can_plan(problem, problem.tile, needs.device_bytes - 1)) << seed;
    std::int64_t largest = 0;
    for (std::int64_t tile = 1; tile <= problem.n; ++tile) {
      if (can_plan(problem, tile, budget)) largest = tile;
    }
    EXPECT_EQ(needs.tile_max, largest) << "seed " << seed << ", n " << problem.n;
    none += largest == 0 ? 1 : 0;
    whole += largest == problem.n ? 1 : 0;
    // The host holds what the blocks of the store add up to.
    std::int64_t host = problem.n * problem.point_dimensions * bytes_of(problem.precision);
    for (std::int64_t c = 0; c < problem.n; c += problem.tile) {
      host += 4 * 8;  // the status of a diagonal tile
      for (std::int64_t r = c; r < problem.n; r += problem.tile) {
        host += std::min(problem.tile, problem.n - r) * std::min(problem.tile, problem.n - c) *
                bytes_of(problem.precision);
      }
    }
    EXPECT_EQ(needs.host_bytes, host) << seed;
  }
  EXPECT_GT(none, 0);
  EXPECT_GT(whole, static_cast<int>(seeds / 15));
  EXPECT_LT(whole, static_cast<int>(seeds - seeds / 15));
}

TEST(MemoryNeeds, AreSaidBeforeAnythingIsPlanned) {
  for (const std::int64_t n : {100, 1'000'000, 100'000'000}) {
    if (test::kSanitized && n == 100'000'000) continue;
    for (const std::int64_t tile : {0, 64}) {
      CholeskyProblem problem;
      problem.n = n;
      CholeskyOptions options;
      options.tile = tile;
      try {
        (void)plan_path(problem, Machine::emulated(2, 1300), options);
        FAIL() << n;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::memory);
        const std::string what = error.what();
        EXPECT_NE(what.find("largest tile for it is 5;"), std::string::npos) << what;
        EXPECT_NE(what.find(tile == 0 ? "24832 bytes" : "98560 bytes"), std::string::npos) << what;
        EXPECT_LT(what.size(), 380u);
      }
    }
  }
}

}  // namespace
}  // namespace strata
