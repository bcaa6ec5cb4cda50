// Copies between devices: when a plan takes them, that they are safe, and what they save.

#include <gtest/gtest.h>

#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_plans.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

constexpr LinkRate kFast{400e9, 1e-6};  // the host's: 50 GB/s, 5 µs

Plan linked_plan_of(const Schedule& schedule, std::int64_t budget, LinkRate link,
                    PlanOptions options = {}, int compute_queues = 1) {
  return {std::make_shared<const Schedule>(schedule),
          machine_of(schedule.devices, budget, compute_queues, link), options};
}

// Rows 0 and 2 on device 0, row 1 on device 1, as in plan_test.cpp. By hand: the three loads of
// what the other device made are copies that wait for the computation, not for its store: A(0,0) on
// device 1, A(1,0) and A(1,1) on device 0. Slots and the order of everything else are the same;
// A(2,1) takes the slot of A(0,0) only after device 1 has copied it (1:peer #1).
TEST(PeerGoldenPlan, ThreeTilesOnTwoDevices) {
  EXPECT_EQ(text_of(linked_plan_of(dealt_in_turn(cholesky_of(3, 2)), 3 * 256, kFast)),
            R"(0:in #1 load A(0,0)@0
0:c0 #1 potrf A(0,0)@0 after 0:in #1
0:out #1 store A(0,0)@0 after 0:c0 #1, 0:in #1
1:peer #1 copy A(0,0)@0 from 0@0 after 0:c0 #1
1:in #1 load A(1,0)@1
1:c0 #1 trsm A(1,0)@1 A(0,0)@0 after 1:in #1, 1:peer #1
1:out #1 store A(1,0)@1 after 1:c0 #1, 1:in #1
0:in #2 load A(2,0)@1
0:c0 #2 trsm A(2,0)@1 A(0,0)@0 after 0:in #2
0:out #2 store A(2,0)@1 after 0:c0 #2, 0:in #2
1:in #2 load A(1,1)@2
1:c0 #2 syrk A(1,1)@2 A(1,0)@1 after 1:in #2
1:c0 #3 potrf A(1,1)@2
1:out #2 store A(1,1)@2 after 1:c0 #3, 1:in #2
0:peer #1 copy A(1,0)@2 from 1@1 after 1:c0 #1
0:in #3 load A(2,1)@0 after 0:c0 #2, 0:out #1, 1:peer #1
0:c0 #3 gemm A(2,1)@0 A(2,0)@1 A(1,0)@2 after 0:in #3, 0:peer #1
0:peer #2 copy A(1,1)@2 from 1@2 after 0:c0 #3, 1:c0 #3
0:c0 #4 trsm A(2,1)@0 A(1,1)@2 after 0:peer #2
0:out #3 store A(2,1)@0 after 0:c0 #4, 0:in #3
0:in #4 load A(2,2)@2 after 0:peer #2, 0:c0 #4
0:c0 #5 syrk A(2,2)@2 A(2,0)@1 after 0:in #4
0:c0 #6 syrk A(2,2)@2 A(2,1)@0
0:c0 #7 potrf A(2,2)@2
0:out #4 store A(2,2)@2 after 0:c0 #7, 0:in #4
)");
}

TEST(PeerPlan, IsProvenForCholesky) {
  std::int64_t copies = 0;
  for (const int devices : {1, 2, 3, 4}) {
    for (const bool generated : {false, true}) {
      for (const std::int64_t tiles : {1, 2, 3, 5, 9}) {
        const Schedule schedule = cholesky_of(tiles, devices, generated);
        for (const int extra : {0, 1, 4, 50}) {
          const std::int64_t budget = smallest_budget_bytes(schedule) + extra * 256;
          const Plan plan = linked_plan_of(schedule, budget, kFast, {}, 2);
          ASSERT_EQ(check_plan(plan), "") << devices << ' ' << tiles << ' ' << extra;
          EXPECT_LE(plan.layout().arena_bytes(), budget);
          copies += plan.totals().peer_copies;
          EXPECT_TRUE(devices > 1 || plan.totals().peer_copies == 0);
        }
      }
    }
  }
  EXPECT_GT(copies, 1000);
}

TEST(PeerPlan, IsProvenForRandomSchedulesAndAddsUp) {
  std::int64_t copies = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(1000, 1000, 150); ++seed) {
    const Schedule schedule = random_schedule(seed);
    Dice dice(seed + 3'000'000);
    const PlanOptions options = random_plan_options(dice);
    const std::int64_t budget = smallest_budget_bytes(schedule) + dice.roll(20) * 256;
    const Plan plan =
        linked_plan_of(schedule, budget, kFast, options, static_cast<int>(1 + dice.roll(3)));
    ASSERT_EQ(check_plan(plan), "") << "seed " << seed;
    PlanTotals sums;
    for (const FlatStep& flat : flatten(plan)) {
      const std::int64_t bytes = flat.step.bytes;
      if (flat.step.kind == StepKind::load) sums.traffic.host_to_device_bytes += bytes;
      if (flat.step.kind == StepKind::store) sums.traffic.device_to_host_bytes += bytes;
      if (flat.step.kind == StepKind::peer) sums.traffic.device_to_device_bytes += bytes;
      if (flat.step.kind == StepKind::peer) ++sums.peer_copies;
    }
    ASSERT_EQ(sums.traffic, plan.totals().traffic);
    ASSERT_EQ(sums.peer_copies, plan.totals().peer_copies);
    ASSERT_EQ(simulate(plan).traffic, plan.totals().traffic);
    ASSERT_EQ(text_of(plan), text_of(plan)) << "equal inputs must give equal plans";
    ASSERT_TRUE(sums.peer_copies == 0 || !options.copies_in_stream);
    copies += sums.peer_copies;
  }
  EXPECT_GT(copies, test::kSanitized ? 100 : 1000);
}

TEST(PeerPlan, EveryWaitAndEveryPartOfACopyMatters) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const Schedule schedule = seed == 0 ? cholesky_of(4, 3) : random_schedule(seed);
    if (schedule.devices < 2 || tasks_of(schedule).size() > 60) continue;
    const Plan plan = linked_plan_of(schedule, smallest_budget_bytes(schedule) + 256, kFast, {}, 2);
    const std::vector<FlatStep> steps = flatten(plan);
    SCOPED_TRACE("seed " + std::to_string(seed));
    (void)expect_every_needed_wait_noticed(plan);
    const auto complaint = [&](const std::vector<FlatStep>& mutant) {
      return PlanChecker(plan.schedule(), plan.layout()).check(mutant);
    };
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].step.kind != StepKind::peer) continue;
      std::vector<FlatStep> mutant = steps;
      mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(s));
      EXPECT_NE(complaint(mutant), "") << "step " << s;
      for (const int part : {0, 1, 2}) {
        mutant = steps;
        if (part < 2) mutant[s].slots[static_cast<std::size_t>(part)] += 1;
        if (part == 2) mutant[s].step.source = mutant[s].step.device;
        EXPECT_NE(complaint(mutant), "") << "step " << s << " part " << part;
      }
    }
  }
}

TEST(PeerPlan, TakesTheFasterLink) {
  const Schedule schedule = cholesky_of(6, 3);
  const std::int64_t budget = 6 * 256;
  const std::string by_host = text_of(linked_plan_of(schedule, budget, {}));
  EXPECT_EQ(by_host.find("copy"), std::string::npos);
  EXPECT_EQ(text_of(linked_plan_of(schedule, budget, {50e9, 5e-6})), by_host)
      << "as fast is not faster";
  EXPECT_EQ(text_of(linked_plan_of(schedule, budget, {400e9, 1e-3})), by_host) << "latency counts";
  EXPECT_GT(linked_plan_of(schedule, budget, {51e9, 5e-6}).totals().peer_copies, 0);
  const PlanTotals host = linked_plan_of(schedule, budget, {}).totals();
  const PlanTotals peer = linked_plan_of(schedule, budget, kFast).totals();
  EXPECT_EQ(peer.loads + peer.peer_copies, host.loads) << "each copy is instead of a load";
  EXPECT_EQ(peer.stores, host.stores) << "the host needs the result all the same";
  EXPECT_EQ(peer.traffic.total(), host.traffic.total());
}

/// Device 0 writes A(0,0) from A(1,0), device 1 adds it to A(2,0), which it then has to itself.
Schedule handed_over(bool final) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 12, .cols = 4, .tile_rows = 4, .tile_cols = 4});
  const Hint hint = final ? Hint::last_write : Hint::none;
  return schedule_of(
      std::move(blocks), 2, {2},
      {{flat_task(syrk, {{BlockId(0, 0, 0), hint}, BlockId(0, 1, 0)}),
        flat_task(syrk, {{BlockId(0, 2, 0), Hint::last_write}, BlockId(0, 0, 0)}, 1)}});
}

TEST(PeerPlan, SimulatesByHand) {
  // A tile takes 1 s each way and 0.25 s between devices, a syrk 4 s.
  Machine machine = machine_of(2, 2 * 256, 1, {4 * 128.0, 0});
  for (DeviceModel& device : machine.devices) {
    device.host_to_device = device.device_to_host = {128, 0};
    device.rate(Element::fp64) = 80 / 4.0;
  }
  for (const bool final : {true, false}) {
    const auto schedule = std::make_shared<const Schedule>(handed_over(final));
    // Loads 0–2, syrk 2–6, copy 6–6.25, syrk 6.25–10.25, store 10.25–11.25.
    const Trace peer = simulate(Plan(schedule, machine, {}));
    EXPECT_NEAR(peer.seconds, 11.25, 1e-9);
    EXPECT_EQ(peer.traffic.device_to_device_bytes, 128);
    EXPECT_EQ(peer.queues[3].name, "peer in");
    // Home and back instead, 6–7 and 7–8; behind it in the queue the other load, 8–9; syrk 9–13,
    // store 13–14.
    Machine alone = machine;
    alone.device_to_device = {};
    const Trace host = simulate(Plan(schedule, alone, {}));
    EXPECT_NEAR(host.seconds, 14, 1e-9);
    EXPECT_EQ(host.traffic.device_to_device_bytes, 0);
  }
}

TEST(PeerPlan, AValueThatIsOnlyOnADeviceNeedNotGoHomeToTravel) {
  const Schedule schedule = handed_over(false);
  // The link is slower than one way to or from the host, but faster than both.
  const Plan peer = linked_plan_of(schedule, 2 * 256, {50e9, 8e-6});
  EXPECT_EQ(peer.totals().peer_copies, 1);
  EXPECT_EQ(check_plan(peer), "");
  const Plan stored = linked_plan_of(handed_over(true), 2 * 256, {50e9, 8e-6});
  EXPECT_EQ(stored.totals().peer_copies, 0);
}

TEST(PeerPlan, ASourceThatIsOverwrittenWaitsForItsCopies) {
  // Two slots on device 0: the third task takes the slot of A(0,0), which device 1 is copying.
  Schedule schedule = handed_over(true);
  std::vector<FlatTask> tasks = tasks_of(schedule);
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 16, .cols = 4, .tile_rows = 4, .tile_cols = 4});
  tasks.push_back(flat_task(syrk, {{BlockId(0, 1, 0), Hint::last_write}, BlockId(0, 3, 0)}));
  const Plan plan = linked_plan_of(schedule_of(std::move(blocks), 2, {2}, {tasks}), 2 * 256, kFast);
  EXPECT_EQ(check_plan(plan), "");
  const std::string text = text_of(plan);
  const std::size_t load = text.find("load A(3,0)");
  ASSERT_NE(load, std::string::npos) << text;
  EXPECT_NE(text.substr(load, text.find('\n', load) - load).find("1:peer #1"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace strata::test
