// Devices of several backends in one run, budgets of their own, and more devices than a word has
// bits.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "run/run.hpp"
#include "strata/error.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/own_events.hpp"
#include "tests/support/pinned_backend.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {
namespace {

RunOptions small_options(int compute_queues) {
  RunOptions options;
  options.device_memory_bytes = 1 << 20;
  options.compute_queues = compute_queues;
  return options;
}

// ---- two backends that share no events

class MixedDevices : public ::testing::Test {
 protected:
  /// Devices of the two kinds in turn, beginning with either.
  [[nodiscard]] DeviceSet make_set(int count, bool host_first) const {
    std::vector<DevicePlace> places;
    for (int d = 0; d < count; ++d)
      places.push_back({(d % 2 == 0) == host_first ? &host : &copying, d / 2});
    return {places, small_options(3)};
  }

  FaultBackend faults;
  PinnedBackend pinned{faults};
  OwnEventsBackend host{host_backend()};
  OwnEventsBackend copying{pinned};
  CovarianceParameters parameters{0.2, 0.7, 0.5, 0.1, true};
};

TEST_F(MixedDevices, TheBackendOfThisTestRefusesForeignEvents) {
  DeviceSet devices = make_set(2, true);
  const auto one = devices.device(0).make_queue(QueuePriority::normal);
  const auto two = devices.device(1).make_queue(QueuePriority::normal);
  EXPECT_NO_THROW(one->wait(one->record()));
  EXPECT_THROW(one->wait(two->record()), Error);
  EXPECT_THROW(two->wait(one->record()), Error);
}

TEST_F(MixedDevices, RunRandomSchedulesBitIdenticallyToTheScheduleInOrder) {
  std::map<std::pair<int, bool>, DeviceSet> sets;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const bool host_first : {true, false})
      sets.emplace(std::pair(devices, host_first), make_set(devices, host_first));
  }
  IssueOptions run_options;
  run_options.values = {{covariance.name, &parameters}};
  std::int64_t crossings = 0;
  std::int64_t peer_copies = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(400, 400, 100); ++seed) {
    const Schedule schedule = random_schedule(seed);
    Dice dice(seed + 99);
    DeviceSet& devices = sets.at({schedule.devices, dice.roll(2) == 0});
    const auto expected = make_store(schedule.blocks);
    run_in_order(schedule, host_backend(), *expected, run_options);
    const PlanOptions options = random_plan_options(dice);
    Machine machine = devices.machine();
    for (int d = 0; d < devices.count(); ++d) {
      DeviceModel& device = machine.devices[static_cast<std::size_t>(d)];
      device.memory_bytes = smallest_budget_bytes(schedule) + dice.roll(16) * 512;
      device.compute_queues = static_cast<int>(1 + dice.roll(3));
      device.kind = devices.backend(d).on_host() ? DeviceKind::cpu : DeviceKind::gpu;
    }
    machine.device_to_device = dice.roll(2) == 0 ? LinkRate{1e15, 0} : LinkRate{};
    const Plan plan(std::make_shared<const Schedule>(schedule), machine, options);
    devices.shape_rings({.slot_bytes = 64 + dice.roll(600),
                         .slots = static_cast<int>(1 + dice.roll(4)),
                         .threads = static_cast<int>(1 + dice.roll(3))});
    for (const FlatStep& flat : flatten(plan)) {
      const auto on_host = [&](int d) { return devices.backend(d).on_host(); };
      if (flat.step.kind == StepKind::peer) {
        ASSERT_EQ(on_host(flat.step.device), on_host(flat.step.source)) << "seed " << seed;
      }
      for (const Wait& wait : flat.waits) {
        const int other = plan.layout().queues[wait.queue].device;
        crossings += on_host(other) != on_host(flat.step.device) ? 1 : 0;
      }
    }
    const auto actual = make_store(schedule.blocks);
    const RunOutcome outcome = run(plan, devices, *actual, run_options);
    ASSERT_EQ(outcome.trace.traffic, plan.totals().traffic) << "seed " << seed;
    ASSERT_EQ(outcome.trace.spans_added, plan.totals().steps);
    ASSERT_TRUE(contents_of(*actual) == contents_of(*expected)) << "seed " << seed;
    peer_copies += plan.totals().peer_copies;
  }
  EXPECT_GT(crossings, test::kSanitized ? 200 : 1000)
      << "hardly anything waited for the other backend";
  EXPECT_GT(peer_copies, test::kSanitized ? 10 : 50);
}

TEST_F(MixedDevices, ADeviceThatDiesEndsTheRunOfTheOthersWithItsError) {
  const Schedule schedule = random_schedule(12);
  ASSERT_GE(schedule.devices, 2);
  IssueOptions run_options;
  run_options.values = {{covariance.name, &parameters}};
  const auto expected = make_store(schedule.blocks);
  run_in_order(schedule, host_backend(), *expected, run_options);
  {
    DeviceSet devices = make_set(schedule.devices, true);
    const Plan plan(std::make_shared<const Schedule>(schedule), devices.machine(), {});
    const auto expect_usable = [&] {
      faults.heal();
      const auto store = make_store(schedule.blocks);
      (void)run(plan, devices, *store, run_options);
      EXPECT_TRUE(contents_of(*store) == contents_of(*expected));
    };
    expect_usable();
    const std::int64_t operations = faults.operations(0);
    ASSERT_GT(operations, 5);
    for (std::int64_t k = 1; k <= operations; k += 3) {
      for (const bool throws : {false, true}) {
        faults.set({.dying_device = 0, .dies_at = k, .throws = throws});
        const auto store = make_store(schedule.blocks);
        try {
          (void)run(plan, devices, *store, run_options);
          ADD_FAILURE() << k;
        } catch (const Error& error) {
          EXPECT_EQ(std::string(error.what()),
                    fmt::format("injected: host:0 died at operation {}", k));
        }
        EXPECT_TRUE(devices.residency().empty());
      }
    }
    expect_usable();
  }
  EXPECT_EQ(faults.buffers(), 0) << "released";
}

// ---- budgets of their own

TEST(Budgets, EachDeviceUsesItsOwn) {
  // Each of two devices reads the same eight blocks, twice over: one holds them, the other cannot.
  constexpr std::int64_t kCount = 8;
  constexpr std::int64_t kBytes = 8 * 8 * 8;
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 8 * kCount, .cols = 8, .tile_rows = 8, .tile_cols = 8});
  blocks.add({.name = "C", .rows = 16, .cols = 8, .tile_rows = 8, .tile_cols = 8});
  std::vector<FlatTask> tasks;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kCount; ++i) {
      for (int d = 0; d < 2; ++d) tasks.push_back(flat_task(syrk, {{{1, d, 0}}, {{0, i, 0}}}, d));
    }
  }
  const auto schedule = std::make_shared<const Schedule>(schedule_of(blocks, 2, {1, 1}, {tasks}));
  DeviceSet devices(host_backend(), {0, 1}, small_options(2));
  const auto expected = make_store(blocks);
  run_in_order(*schedule, host_backend(), *expected);
  for (const std::size_t large : {0, 1}) {
    Machine machine = devices.machine();
    machine.devices[large].memory_bytes = (kCount + 1) * kBytes;
    machine.devices[1 - large].memory_bytes = 3 * kBytes;  // C, and two of A
    const Plan plan(schedule, machine, {});
    EXPECT_EQ(check_plan(plan), "");
    EXPECT_EQ(plan.layout().devices[large].arena_bytes, (kCount + 1) * kBytes);
    EXPECT_EQ(plan.layout().devices[1 - large].arena_bytes, 3 * kBytes);
    std::array<std::int64_t, 2> loads{};
    for (const FlatStep& flat : flatten(plan)) {
      if (flat.step.kind == StepKind::load && flat.operands[0].family() == 0)
        ++loads[flat.step.device];
    }
    EXPECT_EQ(loads[large], kCount) << "each once";
    // Furthest next use, two slots, 0 … 7 twice: 0 stays while the others of the first round pass
    // through the other slot, and from then on 7, which was the last of them, until the end.
    EXPECT_EQ(loads[1 - large], 2 * kCount - 2);
    const auto actual = make_store(blocks);
    (void)run(plan, devices, *actual);
    EXPECT_TRUE(contents_of(*actual) == contents_of(*expected));
    EXPECT_EQ(devices.residency().devices.size(), 2U);
  }
}

// ---- many devices

/// Every device adds its own block and its neighbours', twice round: 70 devices, each of which
/// needs what two others have written.
Schedule ring_of(int devices) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 4 * devices, .cols = 4, .tile_rows = 4, .tile_cols = 4});
  blocks.add({.name = "B", .rows = 4, .cols = 4, .tile_rows = 4, .tile_cols = 4});
  std::vector<std::vector<FlatTask>> steps;
  for (int round = 0; round < 2; ++round) {
    std::vector<FlatTask>& tasks = steps.emplace_back();
    for (int d = 0; d < devices; ++d) {
      for (const int other : {(d + devices - 1) % devices, (d + 65) % devices})
        tasks.push_back(flat_task(gemm, {{{0, d, 0}}, {{0, other, 0}}, {{1, 0, 0}}}, d));
    }
  }
  return schedule_of(blocks, devices, {2, 1}, std::move(steps));
}

TEST(ManyDevices, ArePlannedCheckedAndRun) {
  for (const int count : {64, 65, 70, 130}) {
    if (test::kSanitized && count != 65) continue;
    const auto schedule = std::make_shared<const Schedule>(ring_of(count));
    std::vector<int> indices;
    for (int d = 0; d < count; ++d) indices.push_back(d);
    RunOptions options;
    options.device_memory_bytes = 1 << 12;
    options.compute_queues = 1;
    DeviceSet devices(host_backend(), indices, options);
    ASSERT_EQ(devices.count(), count);
    const auto expected = make_store(schedule->blocks);
    run_in_order(*schedule, host_backend(), *expected);
    for (const bool in_stream : {true, false}) {
      for (const LinkRate link : {LinkRate{}, LinkRate{1e15, 0}}) {
        Machine machine = devices.machine();
        machine.device_to_device = link;
        for (int d = 0; d < count; ++d)
          machine.devices[static_cast<std::size_t>(d)].memory_bytes = (3 + d % 5) * 256;
        const Plan plan(schedule, machine, {.copies_in_stream = in_stream});
        ASSERT_EQ(check_plan(plan), "") << count;
        const bool peers = link.bytes_per_second > 0 && !in_stream;
        EXPECT_EQ(plan.totals().peer_copies > count, peers);
        std::set<int> busy;
        std::set<int> sources;
        for (const FlatStep& flat : flatten(plan)) {
          if (flat.step.kind == StepKind::compute) busy.insert(flat.step.device);
          if (flat.step.kind == StepKind::peer) sources.insert(flat.step.source);
        }
        EXPECT_EQ(std::ssize(busy), count);
        EXPECT_EQ(std::ssize(sources), peers ? count : 0);
        const auto actual = make_store(schedule->blocks);
        const RunOutcome outcome = run(plan, devices, *actual);
        EXPECT_EQ(outcome.trace.traffic, plan.totals().traffic);
        EXPECT_TRUE(contents_of(*actual) == contents_of(*expected)) << count;
      }
    }
  }
}

}  // namespace
}  // namespace strata::test
