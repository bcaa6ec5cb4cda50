// whitened_sums: against sums in long double, bit by bit against the schedule in order under every
// budget and policy, and what it moves.

#include <gtest/gtest.h>

#include <cmath>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "cholesky/covariance_solver.hpp"
#include "cholesky/planning.hpp"
#include "run/run.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/policies.hpp"
#include "tests/cholesky/random_matrices.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::kPolicies;
using test::Matrix;
using test::uniform_matrix;

/// L, points, targets and R of a problem, in host memory.
struct WhitenedSumsCase {
  WhitenedProblem problem;
  Matrix<double> l;
  Matrix<double> points;
  Matrix<double> targets;
  Matrix<double> right;
  CovarianceParameters parameters{2.0, 0.3, 0.5, 0.1, false};

  WhitenedSumsCase(std::int64_t n, std::int64_t tile, std::int64_t count, std::int64_t target_tile,
                   std::int64_t columns, int devices)
      : l(uniform_matrix(n, n, 1)),
        points(uniform_matrix(n, 2, 2)),
        targets(uniform_matrix(count, 2, 3)),
        right(uniform_matrix(n, columns, 4)) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) l(i, j) = i == j ? 4 + l(i, j) : i > j ? l(i, j) / 8 : 0;
    }
    problem.n = n;
    problem.tile = tile;
    problem.targets = count;
    problem.target_tile = target_tile;
    problem.columns = columns;
    problem.point_dimensions = 2;
    problem.devices = devices;
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = whitened_sums(problem).blocks;
    const auto of = [&](int family, const Matrix<double>& m, bool lower = false) {
      return std::make_shared<FamilyMemory>(
          blocks, family, source_of_view(m.data.data(), std::max<std::int64_t>(m.rows, 1), lower));
    };
    const auto zeros = [&](int family) {
      return std::make_shared<FamilyMemory>(
          blocks, family, [](const BlockExtent& x, std::byte* to) {
            std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 0.0);
          });
    };
    return std::make_unique<MemoryStore>(
        blocks,
        std::vector<std::shared_ptr<FamilyMemory>>{
            of(whitened::kFactor, l, true),
            std::make_shared<FamilyMemory>(blocks, whitened::kWhitened),
            of(whitened::kPoints, points), of(whitened::kTargets, targets),
            of(whitened::kRight, right), zeros(whitened::kProducts), zeros(whitened::kSquares)});
  }

  [[nodiscard]] IssueOptions run_options() const {
    IssueOptions options;
    options.values = {{covariance.name, &parameters}};
    return options;
  }
};

/// The sums of a store: −WᵀR, then the squares.
std::vector<double> sums_of(MemoryStore& store) {
  std::vector<double> all;
  for (const int f : {whitened::kProducts, whitened::kSquares}) {
    store.blocks().for_each(f, [&](BlockId id) {
      std::vector<double> block(static_cast<std::size_t>(store.blocks().bytes(id) / 8));
      store.read(id, reinterpret_cast<std::byte*>(block.data()));
      all.insert(all.end(), block.begin(), block.end());
    });
  }
  return all;
}

TEST(WhitenedSums, AreThoseOfSubstitutionInLongDouble) {
  for (const std::int64_t n : {1, 15, 16, 17, 50}) {
    for (const std::int64_t columns : {0, 1, 3}) {
      const WhitenedSumsCase c(n, 16, 11, 4, columns, 1);
      const auto store = c.make_store();
      run_in_order(whitened_sums(c.problem), host_backend(), *store, c.run_options());
      for (std::int64_t t = 0; t < 11; ++t) {
        std::vector<long double> w;
        long double square = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const long double h =
              std::hypot(c.points(i, 0) - c.targets(t, 0), c.points(i, 1) - c.targets(t, 1));
          long double value = 2 * std::exp(-h / 0.3L);  // smoothness 1/2
          for (std::int64_t k = 0; k < i; ++k)
            value -= static_cast<long double>(c.l(i, k)) * w[static_cast<std::size_t>(k)];
          w.push_back(value / static_cast<long double>(c.l(i, i)));
          square += w.back() * w.back();
        }
        const auto at = [&](int family, std::int64_t j) {
          const BlockId id(family, t / 4, 0);
          const auto* block = reinterpret_cast<const double*>(store->lend(id));
          return block[t % 4 + j * store->blocks().extent(id).rows];
        };
        const double bound = 1e-14 * static_cast<double>(n);
        EXPECT_NEAR(at(whitened::kSquares, 0), static_cast<double>(square), bound);
        for (std::int64_t j = 0; j < columns; ++j) {
          long double product = 0;
          for (std::int64_t i = 0; i < n; ++i)
            product += w[static_cast<std::size_t>(i)] * static_cast<long double>(c.right(i, j));
          EXPECT_NEAR(at(whitened::kProducts, j), -static_cast<double>(product), bound);
        }
      }
    }
  }
}

class WhitenedSumsRun : public ::testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(WhitenedSumsRun, HaveTheBitsOfTheScheduleInOrderForEveryBudgetAndPolicy) {
  const auto& [backend, devices, linked] = GetParam();
  const std::string text = test::devices_text(backend, devices);
  if (text.empty()) GTEST_SKIP() << "too few GPUs";
  const WhitenedSumsCase c(100, 16, 41, 8, 3, devices);
  const auto expected_store = c.make_store();
  run_in_order(whitened_sums(c.problem), test::backend_of(backend), *expected_store,
               c.run_options());
  const std::vector<double> expected = sums_of(*expected_store);
  const std::int64_t least = smallest_budget_bytes(whitened_sums(c.problem));
  test::Thinned thinned(5);
  for (const std::int64_t budget : {least, least + 5000, 3 * least, 1_MiB}) {
    for (const Policy policy : kPolicies) {
      if (thinned.skips()) continue;
      RunOptions options;
      options.devices = text;
      options.device_memory_bytes = budget;
      options.compute_queues = 2;
      DeviceSet set(options);
      Machine machine = set.machine();
      machine.device_to_device = linked ? LinkRate{1e15, 0} : LinkRate{};
      const PlannedRun planned = make_planned_run(
          std::make_shared<const Schedule>(whitened_sums(c.problem)), machine, policy);
      const auto store = c.make_store();
      const RunOutcome outcome = run(*planned.plan, set, *store, c.run_options());
      EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
      EXPECT_TRUE(test::same_bits(sums_of(*store), expected)) << budget << ' ' << planned.policy;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, WhitenedSumsRun,
                         ::testing::Combine(::testing::ValuesIn(test::available_backends()),
                                            ::testing::Values(1, 2, 3), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "_linked" : "");
                         });

TEST(WhitenedSums, KeepsWOnADeviceWithRoomForItAndTheSumsAloneGoHome) {
  const WhitenedSumsCase c(100, 16, 41, 8, 3, 1);
  const Schedule schedule = whitened_sums(c.problem);
  for (const Policy policy : {Policy::v1, Policy::v2, Policy::v3, Policy::opt}) {
    const PlannedRun planned =
        make_planned_run(std::make_shared<const Schedule>(whitened_sums(c.problem)),
                         Machine::emulated(1, 1_MiB), policy);
    EXPECT_EQ(planned.plan->totals().traffic.device_to_host_bytes, 41 * 4 * 8) << planned.policy;
    if (policy == Policy::v1) continue;  // where inputs leave, they come again
    EXPECT_EQ(planned.plan->totals().traffic.total(),
              floor_of(c.problem, planned.plan->schedule().blocks))
        << planned.policy;
  }
}

WhitenedProblem all_targets(std::int64_t n, std::int64_t tile, std::int64_t targets, int devices) {
  WhitenedProblem problem;
  problem.n = n;
  problem.tile = tile;
  problem.targets = targets;
  problem.columns = 4;
  problem.point_dimensions = 2;
  problem.devices = devices;
  return problem;
}

TEST(TargetChunks, ABlockFitsWhereverTheFactorizationDoes) {
  for (const std::int64_t tile : {8, 16, 17, 32, 100, 512}) {
    for (const std::int64_t rows : {2, 3, 9}) {
      CholeskyProblem factor;
      factor.n = rows * tile - 1;
      factor.tile = tile;
      factor.point_dimensions = 2;
      const std::int64_t budget = smallest_budget_bytes(tile_cholesky(factor, {}));
      WhitenedProblem problem = all_targets(factor.n, tile, 10000, 1);
      const auto tight = choose_target_chunks(problem, Machine::emulated(1, budget), 0);
      const auto wide = choose_target_chunks(problem, Machine::emulated(1, 1_GiB), 0);
      EXPECT_EQ(tight.tile, wide.tile) << tile << " in " << rows;
      problem.target_tile = tight.tile;
      EXPECT_LE(smallest_budget_bytes(whitened_sums(problem)), budget) << tile << " in " << rows;
    }
  }
}

TEST(TargetChunks, AreWholeBlocksAsManyAsFit) {
  const WhitenedProblem problem = all_targets(105569, 2048, 42740, 1);
  const auto roomy = choose_target_chunks(problem, Machine::emulated(1, 139_GiB), 0);
  EXPECT_EQ(roomy.tile, 1024);
  EXPECT_EQ(roomy.targets, 8192);
  // 42 GiB of L, 0.8 GiB of W for a block.
  const auto beside = choose_target_chunks(problem, Machine::emulated(1, 46_GiB), 0);
  EXPECT_EQ(beside.tile, 1024);
  EXPECT_GT(beside.targets, 0);
  EXPECT_LT(beside.targets, roomy.targets);
  EXPECT_EQ(beside.targets % 1024, 0);
  EXPECT_LE(beside.device_bytes, 46_GiB);
  // L comes anew for each schedule: as many targets as are wanted, while half of it holds W.
  EXPECT_EQ(choose_target_chunks(problem, Machine::emulated(1, 20_GiB), 0).targets, 8192);
  // Few targets, or few at a time.
  EXPECT_EQ(choose_target_chunks(all_targets(105569, 2048, 5, 1), Machine::emulated(1, 139_GiB), 0)
                .targets,
            1024);
  EXPECT_EQ(choose_target_chunks(problem, Machine::emulated(1, 139_GiB), 3000).targets, 2048);
  EXPECT_EQ(choose_target_chunks(problem, Machine::emulated(1, 139_GiB), 7).targets, 7);
}

TEST(TargetChunks, ALaterChunkFindsTheFactorOnTheDevice) {
  const std::int64_t n = 200;
  const Matrix<double> points = uniform_matrix(n, 2, 5);
  const Matrix<double> targets = uniform_matrix(100, 2, 6);
  const Matrix<double> right = uniform_matrix(n, 3, 7);
  CovarianceOptions options;
  options.run.devices = "host:1";
  options.tile = 32;
  CovarianceSolver solver(points.view(), options);
  solver.reserve_for_targets(100, 3);
  ASSERT_TRUE(solver.factor({1.0, 0.3, 0.5, 0.1, true}).ok);
  Matrix<double> products(100, 3);
  std::vector<double> squares(100);
  const RunReport report =
      solver.whitened_sums(targets.view(), right.view(), products.view(), squares, 16);
  // Seven chunks of 16 targets: R for each, the targets, and the sums there and back; L never.
  const std::int64_t sums = 100 * 4 * 8;
  EXPECT_EQ(report.traffic.host_to_device_bytes, 7 * n * 3 * 8 + 100 * 2 * 8 + sums);
  EXPECT_EQ(report.traffic.device_to_host_bytes, sums);
  EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
}

TEST(TargetChunks, MisuseIsNamed) {
  const Matrix<double> points = uniform_matrix(9, 2, 5);
  const Matrix<double> right = uniform_matrix(8, 1, 7);
  Matrix<double> products(3, 1);
  std::vector<double> squares(3);
  CovarianceOptions options;
  options.run.devices = "host:1";
  CovarianceSolver solver(points.view(), options);
  ASSERT_TRUE(solver.factor({1.0, 0.3, 0.5, 0.1, true}).ok);
  const Matrix<double> targets = uniform_matrix(3, 2, 6);
  EXPECT_THROW((void)solver.whitened_sums(targets.view(), right.view(), products.view(), squares),
               Error);
}

}  // namespace
}  // namespace strata
