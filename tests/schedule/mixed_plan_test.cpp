// Plans of mixed factorizations, and of solves that go on from the tiles that stayed: proven by the
// checker, which notices every wait that is dropped.

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "cholesky/cholesky_candidates.hpp"
#include "cholesky/mixed_tiles.hpp"
#include "cholesky/planning.hpp"
#include "cholesky/triangular_solve.hpp"
#include "kernels/dense/convert.hpp"
#include "schedule/plan_layout.hpp"
#include "strata/error.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_plans.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kTile = 16;  // in fp8 the 256 bytes that a slot has at least
constexpr std::uint64_t kIdentity = 4711;

/// Tiles in precisions at random; of a factor that stays, or that goes home.
CholeskyProblem problem_of(std::int64_t tiles, int devices, std::uint64_t seed, Element single,
                           bool stays) {
  TileNorms norms;
  norms.tiles = tiles;
  norms.tile = kTile;
  norms.frobenius = static_cast<double>(tiles);
  for (std::int64_t j = 0; j < tiles; ++j) {
    for (std::int64_t i = j; i < tiles; ++i) {
      const std::size_t at = norms.at(i, j);
      norms.matrix.push_back(1);
      norms.factor.push_back(i == j ? 1 : std::exp2(-22 + 30 * random_uniform(seed, at)));
      norms.largest.push_back(1);
    }
  }
  CholeskyProblem problem;
  problem.n = tiles * kTile - 3;
  problem.tile = kTile;
  problem.devices = devices;
  problem.point_dimensions = 2;
  problem.factor_identity = stays ? kIdentity : 0;
  problem.formats = {
      std::make_shared<const PrecisionMap>(norms, MixedPrecision{.accuracy = 0x1p-20}), single};
  return problem;
}

Schedule solve_of(const CholeskyProblem& problem, std::int64_t rhs,
                  std::int64_t products_at_once = 0) {
  SolveProblem solve;
  solve.n = problem.n;
  solve.tile = problem.tile;
  solve.rhs = rhs;
  solve.rhs_tile = rhs;
  solve.formats = problem.formats;
  solve.devices = problem.devices;
  solve.factor_identity = problem.factor_identity;
  solve.point_dimensions = problem.point_dimensions;
  solve.products_at_once = products_at_once;
  return triangular_solve(solve, Sweep::both);
}

Machine machine_for(const Schedule& schedule, std::int64_t extra) {
  Machine machine = machine_of(schedule.devices, smallest_budget_bytes(schedule) + extra, 2);
  if (extra % 512 != 0) machine.device_to_device = {1e15, 0};
  return machine;
}

TEST(MixedPlan, IsProvenWhateverTheMapTheBudgetAndTheOptions) {
  std::int64_t conversions = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Dice dice(seed);
    const CholeskyProblem problem =
        problem_of(1 + dice.roll(7), static_cast<int>(1 + dice.roll(3)), seed,
                   dice.roll(2) == 0 ? Element::fp32 : Element::fp16x2, dice.roll(2) == 0);
    const Order order{
        .super_tile = dice.roll(3), .balanced = false, .brings_home = dice.roll(3) == 0};
    const Schedule schedule = tile_cholesky(problem, order);
    const Plan plan =
        plan_of(schedule, machine_for(schedule, dice.roll(40) * 256), random_plan_options(dice));
    ASSERT_EQ(check_plan(plan), "") << seed;
    for (const FlatTask& flat : tasks_of(schedule)) {
      conversions += flat.task.operation == &convert ? 1 : 0;
      // A temporary is written before it is read, and none is touched after its end.
      for (std::size_t i = 0; i < flat.operands.size(); ++i)
        ASSERT_GT(schedule.blocks.bytes(flat.operands[i].id), 0) << "a tile that is left out";
    }
  }
  EXPECT_GT(conversions, 500);
}

TEST(MixedPlan, EveryDroppedWaitIsNoticed) {
  std::int64_t needed = 0;
  for (const int devices : {1, 2}) {
    for (const Element single : {Element::fp32, Element::fp16x2}) {
      for (const bool stays : {false, true}) {
        const Schedule schedule = tile_cholesky(problem_of(4, devices, 5, single, stays), {});
        const Plan plan = plan_of(schedule, machine_for(schedule, 768));
        needed += expect_every_needed_wait_noticed(plan).needed;
      }
    }
  }
  EXPECT_GT(needed, 200);
}

TEST(MixedPlan, EveryDroppedWaitOfASweepIsNoticed) {
  std::int64_t needed = 0;
  for (const int devices : {1, 2}) {
    for (const std::int64_t products_at_once : {0, 2, 64}) {
      const CholeskyProblem problem = problem_of(4, devices, 5, Element::fp16x2, false);
      const Schedule schedule = solve_of(problem, 3, products_at_once);
      needed +=
          expect_every_needed_wait_noticed(plan_of(schedule, machine_for(schedule, 768))).needed;
    }
  }
  EXPECT_GT(needed, 100);
}

TEST(MixedPlan, TilesThatStayGoHomeOnlyIfTheyHaveToLeave) {
  for (const int devices : {1, 2, 3}) {
    const CholeskyProblem problem = problem_of(6, devices, 9, Element::fp32, true);
    const Schedule schedule = tile_cholesky(problem, {});
    const Plan roomy = plan_of(schedule, machine_for(schedule, 1 << 20));
    ASSERT_EQ(check_plan(roomy), "");
    std::int64_t only_here = 0;
    for (const Residency::Node& node : roomy.end().devices) {
      for (const ResidentBlock& block : node.blocks) only_here += block.only_here ? 1 : 0;
    }
    // On several devices what crosses goes by the host, so some are at home, too.
    const auto tiles = problem.formats.map->tile_counts();
    const std::int64_t all = tiles[0] + tiles[1] + tiles[2] + tiles[3] + 6;
    if (devices == 1) {
      EXPECT_EQ(only_here, all);
    }
    EXPECT_GT(only_here, 0);
    EXPECT_LE(only_here, all);
  }
}

/// Bytes of tiles of the factor that a plan brings home.
std::int64_t factor_bytes_home(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Span& span : simulate(plan).spans) {
    if (span.kind == SpanKind::store && span.family == kMatrixFamily) bytes += span.bytes;
  }
  return bytes;
}

TEST(MixedPlan, AFactorThatDoesNotFitGoesHomeTileByTile) {
  // Where finished tiles stayed until they had to leave, those that products read had to share the
  // few slots that were left: six times the bytes, seen at n = 102,400 in 8 GiB.
  CholeskyProblem problem = problem_of(24, 1, 3, Element::fp16x2, true);
  TileNorms norms = problem.formats.map->norms();
  for (double& norm : norms.factor) norm = 1;
  problem.formats.map =
      std::make_shared<const PrecisionMap>(norms, MixedPrecision{.accuracy = 0x1p-20});
  const BlockTable blocks = tile_cholesky(problem, {}).blocks;
  const std::int64_t factor = blocks.total_bytes(kMatrixFamily);

  const Machine small = machine_of(1, factor / 3, 4);
  EXPECT_FALSE(factor_stays(problem, small));
  const CholeskyCandidates candidates(problem, small, Policy::opt);
  const std::vector<std::int64_t> orders = candidates.orders(problem.tile);
  ASSERT_GE(orders.size(), 4U);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const Plan plan =
        plan_of(candidates.schedule(problem.tile, orders[i]), small, candidates.options());
    ASSERT_EQ(check_plan(plan), "") << candidates.order_name(orders[i]);
    if (i < orders.size() / 2) {
      EXPECT_GE(factor_bytes_home(plan), 0);
      EXPECT_TRUE(plan.end().only_here(kIdentity));
      continue;
    }
    EXPECT_EQ(factor_bytes_home(plan), factor) << "each tile once";
    EXPECT_FALSE(plan.end().only_here(kIdentity));
    const Plan staying = plan_of(candidates.schedule(problem.tile, orders[i - orders.size() / 2]),
                                 small, candidates.options());
    EXPECT_LT(5 * plan.totals().traffic.total(), 4 * staying.totals().traffic.total());
  }
  PlannedRun chosen = plan_cholesky(problem, small, Policy::opt);
  EXPECT_NE(chosen.policy.find(" home"), std::string::npos) << chosen.policy;
  EXPECT_EQ(factor_bytes_home(*chosen.plan), factor);

  const Machine large = machine_of(1, 8 * factor, 4);
  EXPECT_TRUE(factor_stays(problem, large));
  chosen = plan_cholesky(problem, large, Policy::opt);
  EXPECT_EQ(chosen.policy.find(" home"), std::string::npos) << chosen.policy;
  const CholeskyCandidates roomy(problem, large, Policy::opt);
  const Plan plan = plan_of(roomy.schedule(problem.tile, 0), large, roomy.options());
  EXPECT_EQ(factor_bytes_home(plan), 0);
  EXPECT_TRUE(plan.end().only_here(kIdentity));
  problem.formats.map = nullptr;
  EXPECT_FALSE(factor_stays(problem, large));
}

TEST(MixedPlan, ASolveGoesOnFromTilesThatAreOnlyOnTheDevices) {
  std::int64_t went_on = 0;
  std::int64_t without_room = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Dice dice(seed + 99);
    const CholeskyProblem problem =
        problem_of(2 + dice.roll(6), static_cast<int>(1 + dice.roll(3)), seed,
                   dice.roll(2) == 0 ? Element::fp32 : Element::fp16x2, true);
    const Schedule schedule = tile_cholesky(problem, {});
    const std::int64_t products_at_once = seed % 2 == 0 ? 0 : 1 + static_cast<int>(seed % 5);
    const Schedule solve = solve_of(problem, 1 + dice.roll(16), products_at_once);
    Machine machine = machine_for(schedule, dice.roll(30) * 512 + 256 * dice.roll(2));
    for (DeviceModel& device : machine.devices)
      device.memory_bytes = std::max(device.memory_bytes, smallest_budget_bytes(solve));
    const Plan first = plan_of(schedule, machine);
    ASSERT_EQ(check_plan(first), "") << seed;
    const bool at_stake = first.end().only_here(kIdentity);
    try {
      const Plan second = plan_of(solve, machine, random_plan_options(dice), first.end());
      ASSERT_EQ(check_plan(second), "") << seed;
      went_on += at_stake ? 1 : 0;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
      EXPECT_TRUE(at_stake);
      ++without_room;
    }
  }
  EXPECT_GT(went_on, 30);
  EXPECT_GT(without_room, 5);
}

}  // namespace
}  // namespace strata::test
