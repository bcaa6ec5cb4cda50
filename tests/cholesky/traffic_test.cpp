// What the policies move, on emulated machines: nothing is computed here.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "base/random.hpp"
#include "cholesky/planning.hpp"
#include "kernels/dense/potrf.hpp"
#include "schedule/plan_layout.hpp"
#include "session/policy.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

constexpr std::int64_t kTrafficTile = 32;
constexpr std::int64_t kTileBytes = kTrafficTile * kTrafficTile * 8;

CholeskyProblem tiled_problem_of(std::int64_t tiles, int devices = 1) {
  CholeskyProblem problem;
  problem.n = tiles * kTrafficTile;
  problem.tile = kTrafficTile;
  problem.devices = devices;
  return problem;
}

/// Devices with room for so many tiles, and for the status of every diagonal tile.
Machine machine_with_slots(std::int64_t tiles, std::int64_t slots, int devices = 1) {
  constexpr std::int64_t kStatusSlotBytes = 256;
  return Machine::emulated(devices, slots * kTileBytes + tiles * kStatusSlotBytes);
}

PlannedRun plan_with_slots(std::int64_t tiles, std::int64_t slots, Policy policy, int devices = 1) {
  PlannedRun planned = plan_cholesky(tiled_problem_of(tiles, devices),
                                     machine_with_slots(tiles, slots, devices), policy);
  for (std::size_t d = 0; d < static_cast<std::size_t>(devices); ++d) {
    const std::int64_t most = std::max<std::int64_t>(tiles * (tiles + 1) / 2, 1);
    EXPECT_EQ(slots_of_family(planned.plan->layout(), d, kMatrixFamily), std::min(slots, most));
  }
  return planned;
}

std::int64_t status_bytes(std::int64_t tiles) {
  return tiles * static_cast<std::int64_t>(sizeof(PivotStatus));
}

TEST(Traffic, OptMovesAtMostSixTenthsOfV3With24TilesInRoomFor96) {
  const PlannedRun v3 = plan_with_slots(24, 96, Policy::v3);
  const PlannedRun opt = plan_with_slots(24, 96, Policy::opt);
  EXPECT_LE(static_cast<double>(opt.plan->totals().traffic.host_to_device_bytes),
            0.6 * static_cast<double>(v3.plan->totals().traffic.host_to_device_bytes))
      << "loads: opt " << opt.plan->totals().loads << " (" << opt.policy << "), v3 "
      << v3.plan->totals().loads;
  RecordProperty("opt_loads", static_cast<int>(opt.plan->totals().loads));
  RecordProperty("v3_loads", static_cast<int>(v3.plan->totals().loads));
}

TEST(Traffic, OptNeverMovesMoreThanV3) {
  for (std::uint64_t i = 0; i < test::campaign(300, 300, 30); ++i) {
    const auto tiles = static_cast<std::int64_t>(1 + random_bits(3, 3 * i) % 30);
    const int devices = 1 << random_bits(3, 3 * i + 1) % 3;
    const std::int64_t triangle = tiles * (tiles + 1) / 2;
    const auto slots = static_cast<std::int64_t>(3 + random_bits(3, 3 * i + 2) %
                                                         static_cast<std::uint64_t>(triangle));
    const PlanTotals v3 = plan_with_slots(tiles, slots, Policy::v3, devices).plan->totals();
    const PlannedRun opt = plan_with_slots(tiles, slots, Policy::opt, devices);
    EXPECT_LE(opt.plan->totals().traffic.host_to_device_bytes, v3.traffic.host_to_device_bytes)
        << tiles << " tiles, " << slots << " slots, " << devices << " devices, " << opt.policy;
    EXPECT_LE(opt.plan->totals().traffic.total(), v3.traffic.total());
  }
}

TEST(Traffic, OptStaysNearTheFloorWith64Tiles) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const auto over_floor = [](std::int64_t slots, Policy policy) {
    const PlannedRun planned = plan_with_slots(64, slots, policy);
    return static_cast<double>(planned.plan->totals().traffic.total()) /
           static_cast<double>(planned.floor_bytes);
  };
  constexpr std::int64_t kTriangle = 64 * 65 / 2;
  EXPECT_LE(over_floor(kTriangle / 4, Policy::opt), 1.1);
  EXPECT_LE(over_floor(kTriangle / 16, Policy::opt), 1.4);
  EXPECT_GT(over_floor(kTriangle / 16, Policy::v3), 5);
}

TEST(Traffic, AMatrixThatFitsIsReadAndWrittenOnce) {
  for (const Policy policy : {Policy::v2, Policy::v3, Policy::opt}) {
    const PlannedRun planned = plan_with_slots(12, 12 * 13 / 2, policy);
    EXPECT_EQ(planned.plan->totals().traffic.host_to_device_bytes, 78 * kTileBytes);
    EXPECT_EQ(planned.plan->totals().traffic.device_to_host_bytes,
              78 * kTileBytes + status_bytes(12));
    EXPECT_EQ(planned.floor_bytes, 12 * kTrafficTile * (12 * kTrafficTile + 1) * 8);
  }
}

TEST(Traffic, AGeneratedMatrixIsOnlyWritten) {
  CholeskyProblem problem = tiled_problem_of(12);
  problem.point_dimensions = 2;
  const PlannedRun planned =
      plan_cholesky(problem, Machine::emulated(1, 100 * kTileBytes), Policy::opt);
  EXPECT_EQ(planned.plan->totals().traffic.host_to_device_bytes,
            12 * kTrafficTile * 2 * 8);  // the coordinates
  EXPECT_EQ(planned.plan->totals().traffic.device_to_host_bytes,
            78 * kTileBytes + status_bytes(12));
}

TEST(Traffic, TotalsOfTheAlgorithmAreItsTextbookCounts) {
  const std::int64_t n = 10;
  const PlanTotals totals = plan_with_slots(n, 60, Policy::opt).plan->totals();
  EXPECT_EQ(totals.tasks, n + n * (n - 1) / 2 + n * (n - 1) / 2 + n * (n - 1) * (n - 2) / 6);
  const auto order = static_cast<double>(n * kTrafficTile);
  EXPECT_NEAR(totals.flops, order * order * order / 3, 0.01 * totals.flops);
}

TEST(Traffic, EqualInputsGiveByteEqualPlans) {
  const auto text = [] {
    std::ostringstream out;
    plan_with_slots(9, 20, Policy::opt, 2).plan->write_text(out);
    return out.str();
  };
  EXPECT_GT(text().size(), 1000u);
  EXPECT_EQ(text(), text());
}

TEST(Traffic, PlansPast46341AndPast2To31Elements) {
  CholeskyProblem problem;
  problem.n = 1'000'000;
  problem.tile = 16'384;
  const PlannedRun planned =
      plan_cholesky(problem, Machine::emulated(1, std::int64_t{64} << 30), Policy::opt);
  const std::int64_t triangle_bytes = problem.n * problem.n / 2 * 8;
  EXPECT_GT(planned.plan->totals().traffic.device_to_host_bytes, triangle_bytes);
  EXPECT_LT(planned.plan->totals().traffic.device_to_host_bytes, triangle_bytes * 1.05);
  EXPECT_GT(planned.floor_bytes, 2 * triangle_bytes);
  EXPECT_NEAR(planned.plan->totals().flops, 1e18 / 3, 0.001e18);
}

TEST(Traffic, SimulationMovesWhatThePlanSays) {
  for (const int devices : {1, 2, 4}) {
    const PlannedRun planned = plan_with_slots(16, 30, Policy::opt, devices);
    const Trace trace = simulate(*planned.plan);
    EXPECT_EQ(trace.traffic, planned.plan->totals().traffic);
    EXPECT_EQ(fold_traffic(trace.spans), trace.traffic);
    EXPECT_DOUBLE_EQ(trace.flops, planned.plan->totals().flops);
    EXPECT_GT(trace.seconds, trace.flops / (devices * 50e12));
  }
}

constexpr std::array<Policy, 6> kEvery{Policy::sync, Policy::async, Policy::v1,
                                       Policy::v2,   Policy::v3,    Policy::opt};

TEST(Policies, MoveLessAndLessFromSyncToOpt) {
  for (std::uint64_t i = 0; i < test::campaign(200, 200, 8); ++i) {
    const auto tiles = static_cast<std::int64_t>(2 + random_bits(5, 3 * i) % 28);
    const int devices = static_cast<int>(1 + random_bits(5, 3 * i + 1) % 4);
    const std::int64_t triangle = tiles * (tiles + 1) / 2;
    const auto slots = static_cast<std::int64_t>(3 + random_bits(5, 3 * i + 2) %
                                                         static_cast<std::uint64_t>(triangle));
    std::array<std::int64_t, 6> bytes{};
    for (std::size_t p = 0; p < kEvery.size(); ++p) {
      bytes[p] = plan_with_slots(tiles, slots, kEvery[p], devices).plan->totals().traffic.total();
    }
    const std::string where = fmt::format("{} tiles, {} slots, {} devices", tiles, slots, devices);
    EXPECT_EQ(bytes[0], bytes[1]) << where;  // sync and async differ in time only
    EXPECT_GT(bytes[1], bytes[2]) << where;
    EXPECT_GE(bytes[2], bytes[3]) << where;
    EXPECT_GE(bytes[3], bytes[4]) << where;
    EXPECT_GE(bytes[4], bytes[5]) << where;
  }
}

TEST(Policies, WithoutReuseMoveWhatTheTasksTouch) {
  for (const std::int64_t n : {1, 2, 3, 7, 20}) {
    const std::int64_t pairs = n * (n - 1) / 2;
    const std::int64_t triples = n * (n - 1) * (n - 2) / 6;
    const std::int64_t tiles = n * (n + 1) / 2;
    for (const std::int64_t slots : {3L, 10L, 400L}) {
      // potrf touches one tile, trsm and syrk two, gemm three; each writes one of them.
      for (const Policy policy : {Policy::sync, Policy::async}) {
        const PlanTotals none = plan_with_slots(n, slots, policy).plan->totals();
        EXPECT_EQ(none.loads, n + 2 * 2 * pairs + 3 * triples) << n << ' ' << slots;
        EXPECT_EQ(none.stores, n + 2 * pairs + triples + n) << n << ' ' << slots;
      }
      const PlanTotals v1 = plan_with_slots(n, slots, Policy::v1).plan->totals();
      EXPECT_EQ(v1.loads, tiles + 2 * pairs + 2 * triples) << n << ' ' << slots;
      EXPECT_EQ(v1.stores, tiles + n) << n << ' ' << slots;
    }
  }
}

TEST(Policies, SyncUsesOneQueueAndAsyncAllComputeQueues) {
  const auto queues_of = [](Policy policy) {
    const PlannedRun planned = plan_with_slots(8, 12, policy);
    std::set<int> queues;
    PlanReader reader(*planned.plan);
    PlanWindow window;
    while (reader.next(window)) {
      for (const Step& step : window.steps) queues.insert(step.queue);
    }
    return queues;
  };
  const PlannedRun planned = plan_with_slots(8, 12, Policy::v1);
  const DeviceLayout& device = planned.plan->layout().device(0);
  EXPECT_EQ(queues_of(Policy::sync), (std::set<int>{device.first_compute}));
  EXPECT_EQ(queues_of(Policy::async),
            (std::set<int>{device.first_compute, device.first_compute + 1}));
  EXPECT_TRUE(queues_of(Policy::v1).contains(device.copy_in));
  EXPECT_TRUE(queues_of(Policy::v1).contains(device.copy_out));
}

}  // namespace
}  // namespace strata
