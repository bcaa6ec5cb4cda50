// The choice of the tile and of the queues: against trying all of them, and what may change it.

#include "cholesky/cholesky_candidates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/random.hpp"
#include "cholesky/planning.hpp"
#include "schedule/machine_model.hpp"
#include "session/search.hpp"
#include "strata/cholesky.hpp"
#include "strata/detect.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

CholeskyProblem candidate_problem_of(std::int64_t n, int devices, bool generated = false) {
  CholeskyProblem problem;
  problem.n = n;
  problem.devices = devices;
  problem.point_dimensions = generated ? 2 : 0;
  return problem;
}

std::int64_t roll(std::uint64_t seed, std::uint64_t i, std::int64_t sides) {
  return static_cast<std::int64_t>(random_bits(seed, i) % static_cast<std::uint64_t>(sides));
}

/// One kernel in fp64; a status is in fp64 too.
KernelRate rate_of(const char* name, double flops, double seconds, double share = 0) {
  const bool two = std::string(name) != "gemm";
  return {name, std::vector<Element>(two ? 2 : 3, Element::fp64), flops, seconds, share};
}

/// As plan_path() calls it, from the rule's tile.
PlannedRun search_tiles(CholeskyProblem& problem, const Machine& machine, Policy policy,
                        bool tile_is_free, bool queues_are_free) {
  SearchOptions options;
  options.policy = policy;
  options.n = problem.n;
  options.tile = tile_is_free ? rule_tile(problem, machine) : problem.tile;
  options.tile_is_free = tile_is_free;
  options.queues_are_free = queues_are_free;
  PlannedRun found = search(CholeskyCandidates(problem, machine, policy), machine, options);
  problem.tile = found.tile;
  return found;
}

std::vector<std::int64_t> candidates_of(const CholeskyProblem& problem, const Machine& machine,
                                        std::int64_t first) {
  return candidate_tiles(CholeskyCandidates(problem, machine, Policy::opt), first);
}

/// CPU devices whose GEMM reaches half its rate at tiles of order `half`, so slow that there is
/// time to simulate everything.
Machine slow_machine(int devices, std::int64_t memory, double half, int queues = 2) {
  Machine machine = Machine::emulated(devices, memory);
  for (DeviceModel& device : machine.devices) {
    device.name = "host:0";
    device.kind = DeviceKind::cpu;
    device.compute_queues = queues;
    device.rate(Element::fp64) = 2e7;
    device.host_to_device = device.device_to_host = {1e6, 1e-4};
    for (const double t : {16.0, 64.0, 128.0, 256.0, 512.0, 1024.0}) {
      const double rate = 1e7 * t / (t + half);
      device.kernels.push_back(rate_of("gemm", 2 * t * t * t, 2 * t * t * t / rate));
      device.kernels.push_back(rate_of("syrk", t * t * t, t * t * t / rate));
      device.kernels.push_back(rate_of("trsm", t * t * t, 1.5 * t * t * t / rate));
      device.kernels.push_back(rate_of("potrf", t * t * t / 3, t * t * t / rate));
    }
  }
  return machine;
}

TEST(CholeskyCandidates, TheBoundIsNeverAboveWhatSimulateSays) {
  double closest = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(200, 200, 40); ++seed) {
    const auto dice = [&](std::uint64_t i, std::int64_t sides) { return roll(seed, i, sides); };
    const int devices = static_cast<int>(1 + dice(0, 4));
    CholeskyProblem problem = candidate_problem_of(1 + dice(1, 1500), devices, dice(2, 3) == 0);
    problem.tile = 16 + dice(3, 300);
    const int queues = static_cast<int>(1 + dice(4, 4));
    const std::int64_t memory = smallest_budget_bytes(tile_cholesky(problem, {})) +
                                dice(5, 30) * problem.tile * problem.tile * 8;
    Machine machine = slow_machine(devices, memory, 50.0 * static_cast<double>(dice(6, 10)));
    for (DeviceModel& device : machine.devices) device.compute_queues = queues;
    if (dice(7, 4) == 0) machine = Machine::emulated(devices, memory);
    if (dice(8, 3) == 0) machine.devices[0].rate(Element::fp64) *= 3;
    const double bound = simulated_seconds_min(problem, machine, machine.devices[0].compute_queues);
    const PlannedRun planned =
        plan_cholesky(problem, machine, dice(9, 2) == 0 ? Policy::opt : Policy::v3);
    const double seconds = simulate(*planned.plan).seconds;
    ASSERT_LE(bound, seconds * (1 + 1e-9)) << "seed " << seed;
    closest = std::max(closest, bound / seconds);
  }
  EXPECT_GT(closest, 0.9) << "a bound that says nothing";
}

// One compute queue a device, and kernels that leave most of the device to others: the diagonal
// tiles are done beside all else.
TEST(CholeskyCandidates, TheBoundKnowsOfTheUrgentQueue) {
  CholeskyProblem problem = candidate_problem_of(24, 2, false);
  problem.tile = 2;
  Machine machine = Machine::emulated(2, 1 << 20);
  for (DeviceModel& device : machine.devices) {
    device.compute_queues = 1;
    for (const char* name : {"potrf", "trsm", "syrk", "gemm"}) {
      device.kernels.push_back(rate_of(name, 8.0, 1.0, 0.1));
    }
  }
  const double seconds = simulate(*plan_cholesky(problem, machine, Policy::opt).plan).seconds;
  EXPECT_LE(simulated_seconds_min(problem, machine, 1), seconds * (1 + 1e-9));
}

TEST(CholeskyCandidates, FindsWhatTryingEveryTileFinds) {
  std::set<std::int64_t> chosen;
  int away_from_the_rule = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(24, 24, 8); ++seed) {
    const int devices = static_cast<int>(1 + roll(seed, 0, 3));
    CholeskyProblem problem =
        candidate_problem_of(600 + roll(seed, 1, 1500), devices, roll(seed, 2, 3) == 0);
    const Machine machine = slow_machine(devices, (1 + roll(seed, 3, 16)) << 20,
                                         10.0 * std::pow(4.0, static_cast<double>(seed % 4)));
    const std::int64_t rule = rule_tile(problem, machine);
    double best = std::numeric_limits<double>::infinity();
    for (const std::int64_t tile : candidates_of(problem, machine, rule)) {
      problem.tile = tile;
      best = std::min(best, simulate(*plan_cholesky(problem, machine, Policy::opt).plan).seconds);
    }
    const PlannedRun found = search_tiles(problem, machine, Policy::opt, true, false);
    ASSERT_TRUE(found.predicted_seconds.has_value());
    EXPECT_EQ(*found.predicted_seconds, best) << "seed " << seed << ", tile " << problem.tile;
    EXPECT_EQ(simulate(*found.plan).seconds, found.predicted_seconds);
    EXPECT_EQ(found.plan->schedule().blocks.family(kMatrixFamily).tile_rows, problem.tile);
    chosen.insert(problem.tile);
    away_from_the_rule += problem.tile != rule ? 1 : 0;
  }
  EXPECT_GE(chosen.size(), test::kSanitized ? 2u : 3u) << "the machines differ too little";
  EXPECT_GE(away_from_the_rule, test::kSanitized ? 1 : 5);
}

TEST(CholeskyCandidates, PlanningIsAHundredthOfTheRunOrTheRuleDecides) {
  int searched = 0;
  int ruled = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(120, 120, 30); ++seed) {
    Machine machine = slow_machine(1, std::int64_t{64} << 20, 100);
    // From a rate at which nothing can be simulated in time to one at which everything can.
    const double faster = std::pow(10.0, static_cast<double>(seed % 8));
    for (KernelRate& k : machine.devices[0].kernels) k.seconds /= faster;
    machine.devices[0].rate(Element::fp64) *= faster;
    machine.devices[0].host_to_device.bytes_per_second *= faster;
    machine.devices[0].device_to_host.bytes_per_second *= faster;
    CholeskyProblem problem = candidate_problem_of(200 + roll(seed, 1, 1800), 1);
    const std::int64_t rule = rule_tile(problem, machine);
    const PlannedRun found = search_tiles(problem, machine, Policy::opt, true, true);
    CholeskyProblem at_rule = problem;
    at_rule.tile = rule;
    const CholeskyCandidates space(problem, machine, Policy::opt);
    const double cost =
        planning_seconds(space, problem.tile, std::ssize(space.orders(problem.tile)));
    if (cost > kPlanningShareMax * *found.predicted_seconds) {
      ++ruled;
      EXPECT_EQ(problem.tile, rule);
      EXPECT_GE(found.considered, std::ssize(space.orders(rule)));
    } else {
      ++searched;
      EXPECT_LE(*found.predicted_seconds,
                simulate(*plan_cholesky(at_rule, machine, Policy::opt).plan).seconds);
    }
  }
  EXPECT_GT(searched, test::kSanitized ? 4 : 20);
  EXPECT_GT(ruled, test::kSanitized ? 4 : 20);
}

TEST(CholeskyCandidates, StepsAreThoseOfAPlanWithRoomForAll) {
  for (const std::int64_t n : {1, 100, 101, 950}) {
    for (const bool generated : {false, true}) {
      CholeskyProblem problem = candidate_problem_of(n, 1, generated);
      problem.tile = 100;
      const PlanTotals totals =
          plan_cholesky(problem, Machine::emulated(1, 1 << 30), Policy::opt).plan->totals();
      EXPECT_EQ(planning_steps(problem), totals.steps) << n;
    }
  }
}

TEST(CholeskyCandidates, RatesOfOneSizeSayNothingAboutAnother) {
  Machine machine = slow_machine(1, 64 << 20, 400);
  CholeskyProblem problem = candidate_problem_of(1500, 1);
  const std::int64_t rule = rule_tile(problem, machine);
  (void)plan_path(problem, machine, CholeskyOptions());
  EXPECT_NE(problem.tile, rule);
  std::erase_if(machine.devices[0].kernels, [](const KernelRate& k) { return k.flops > 2 * 4096; });
  const PlannedRun found = plan_path(problem, machine, CholeskyOptions());
  EXPECT_EQ(problem.tile, rule);
  EXPECT_EQ(found.predicted_seconds, simulate(*found.plan).seconds);
}

/// A GPU whose GEMM fills `share` of it.
Machine machine_with_share(double share, int queues) {
  Machine machine = Machine::emulated(1, 64 << 20);
  DeviceModel& device = machine.devices[0];
  device.compute_queues = queues;
  device.rate(Element::fp64) = 1e8;
  const double rate = share * 1e8;
  for (const double t : {64.0, 128.0, 256.0, 512.0}) {
    device.kernels.push_back(rate_of("gemm", 2 * t * t * t, 2 * t * t * t / rate));
    device.kernels.push_back(rate_of("syrk", t * t * t, t * t * t / rate));
    device.kernels.push_back(rate_of("trsm", t * t * t, t * t * t / rate));
    device.kernels.push_back(rate_of("potrf", t * t * t / 3, t * t * t / 3 / rate));
  }
  return machine;
}

int queues_found(double share, int queues, bool free = true) {
  CholeskyProblem problem = candidate_problem_of(3000, 1);
  problem.tile = 150;
  const PlannedRun found =
      search_tiles(problem, machine_with_share(share, queues), Policy::opt, false, free);
  EXPECT_EQ(problem.tile, 150);
  return found.plan->layout().device(0).compute_queues;
}

TEST(CholeskyCandidates, TakesMoreQueuesWhereOneDoesNotFillTheDevice) {
  EXPECT_EQ(queues_found(0.5, 1), 2);
  EXPECT_EQ(queues_found(1.0, 1), 1);
  EXPECT_EQ(queues_found(1.0, 2), 2) << "nothing is gained by fewer";
  EXPECT_EQ(queues_found(0.25, 2), 4);
  EXPECT_EQ(queues_found(0.5, 2), 2);
  EXPECT_EQ(queues_found(0.25, 2, false), 2) << "asked for";
  EXPECT_EQ(queues_found(0.04, 16), 16) << "the most there are";
}

TEST(CholeskyCandidates, WhatIsMeasuredAreCandidatesThatFit) {
  for (const std::int64_t n : {300, 5000, 98'304}) {
    for (const int memory_log : {24, 28, 35}) {
      const Machine machine = Machine::emulated(1, std::int64_t{1} << memory_log);
      const CholeskyProblem problem = candidate_problem_of(n, 1);
      const std::int64_t rule = rule_tile(problem, machine);
      const std::vector<std::int64_t> measured = calibration_tiles(problem, 0, machine);
      EXPECT_TRUE(std::is_sorted(measured.begin(), measured.end()));
      EXPECT_EQ(std::count(measured.begin(), measured.end(), rule), 1) << n << ' ' << memory_log;
      for (const std::int64_t tile : measured) {
        EXPECT_LE(tile, std::max(n, rule));
        EXPECT_TRUE(tile == rule || 4 * tile * tile * 8 * machine.devices[0].compute_queues <=
                                        std::int64_t{1} << memory_log);
      }
      if (n == 98'304 && memory_log == 35) {
        EXPECT_EQ(measured, (std::vector<std::int64_t>{rule / 2, rule, rule + rule / 2, 2 * rule}));
        const std::vector<std::int64_t> all = candidates_of(problem, machine, rule);
        EXPECT_TRUE(std::includes(all.begin(), all.end(), measured.begin(), measured.end()));
      }
    }
  }
  EXPECT_EQ(calibration_tiles(candidate_problem_of(5000, 1), 77, Machine::emulated(1, 1 << 28)),
            std::vector<std::int64_t>{77});
}

TEST(CholeskyCandidates, OfAMachineWithoutDevicesIsMisuse) {
  CholeskyProblem problem = candidate_problem_of(100, 0);
  EXPECT_THROW((void)plan_path(problem, Machine(), CholeskyOptions()), Error);
  CholeskyOptions negative;
  negative.tile = -1;
  EXPECT_THROW((void)plan_path(problem, Machine::emulated(1, 1 << 20), negative), Error);
}

// ---- what the tile may depend on

TEST(ReproducibleTile, DependsOnTheOrderAndTheKindOfDeviceAlone) {
  for (const std::string name : {"host", "cuda"}) {
    for (const std::int64_t n : {0, 1, 100, 513, 3000, 20'000, 600'000}) {
      std::set<std::int64_t> tiles;
      for (std::uint64_t seed = 0; seed < 30; ++seed) {
        const int devices = static_cast<int>(1 + roll(seed, 0, 8));
        const std::int64_t memory = std::int64_t{2048} << (20 + roll(seed, 1, 10));
        Machine machine = slow_machine(devices, memory, 100, static_cast<int>(1 + seed % 5));
        for (DeviceModel& device : machine.devices) {
          device.name = name + ":0";
          device.kind = name == "host" ? DeviceKind::cpu : DeviceKind::gpu;
        }
        if (roll(seed, 2, 2) == 0) machine.devices[0].kernels.clear();
        tiles.insert(
            reproducible_tile(candidate_problem_of(n, devices, roll(seed, 3, 2) == 0), machine));
      }
      EXPECT_EQ(tiles.size(), 1u) << name << ' ' << n;
    }
  }
}

TEST(ReproducibleTile, GivesWayOnlyToABudgetThatCannotHoldIt) {
  CholeskyProblem problem = candidate_problem_of(20'000, 1);
  Machine machine = slow_machine(1, std::int64_t{1} << 30, 100);
  problem.tile = reproducible_tile(problem, machine);
  EXPECT_EQ(problem.tile, 1024);
  const std::int64_t smallest = smallest_budget_bytes(tile_cholesky(problem, {}));
  machine.devices[0].memory_bytes = smallest;
  EXPECT_EQ(reproducible_tile(problem, machine), 1024);
  machine.devices[0].memory_bytes = smallest - 1;
  EXPECT_EQ(reproducible_tile(problem, machine), 512);
}

TEST(ReproducibleTile, SoThePlannedPathHasTheSameBitsUnderEveryBudget) {
  const std::int64_t n = 700;
  const test::Matrix<double> a = test::random_spd_matrix<double>(n, 3);
  std::vector<double> expected;
  std::set<std::int64_t> tiles;
  for (const bool planned : {true, false}) {
    for (const std::int64_t memory : {200'000, 500'000, 2'000'000, 50'000'000}) {
      for (const std::string devices : {"host:1", "host:3"}) {
        CholeskyOptions options;
        options.run.devices = devices;
        options.run.device_memory_bytes = memory;
        if (planned) options.path = CholeskyPath::planned;
        const CholeskyFactor factor = cholesky(a.view(), options);
        tiles.insert(factor.report().tile);
        if (!planned) continue;
        test::Matrix<double> l(n, n);
        factor.copy_lower(l.view());
        if (expected.empty()) expected = l.data;
        EXPECT_TRUE(test::same_bits(l.data, expected)) << devices << ' ' << memory;
      }
    }
    if (planned) {
      EXPECT_EQ(tiles.size(), 1u);
    }
  }
  EXPECT_GT(tiles.size(), 1u) << "left to itself the tile follows the budget";
}

TEST(PlanCholesky, SeveralGpusHaveAQueueForTheDiagonalTiles) {
  CholeskyProblem problem;
  problem.n = 4096;
  problem.tile = 512;
  const auto urgent = [&](const Machine& machine, Policy policy) {
    problem.devices = static_cast<int>(machine.devices.size());
    return plan_cholesky(problem, machine, policy).plan->layout().device(0).urgent >= 0;
  };
  EXPECT_TRUE(urgent(Machine::emulated(2, std::int64_t{1} << 30), Policy::opt));
  EXPECT_FALSE(urgent(Machine::emulated(2, std::int64_t{1} << 30), Policy::v3));
  EXPECT_FALSE(urgent(Machine::emulated(1, std::int64_t{1} << 30), Policy::opt));
  EXPECT_FALSE(urgent(detect_machine("host:2", std::int64_t{1} << 28), Policy::opt));
}

}  // namespace
}  // namespace strata
