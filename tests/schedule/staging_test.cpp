// simulate() of copies that are staged through bounce buffers, against arithmetic done by hand.

#include <gtest/gtest.h>

#include "schedule/plan.hpp"
#include "schedule/staging.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/trace_times.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

/// Tiles of `tile` × `tile` doubles: one takes a second on the link, each way; a product 4 s, and
/// products do not slow each other.
struct Bench {
  explicit Bench(std::int64_t order = 4) : tile(order) {
    const auto rate = static_cast<double>(tile_bytes());
    const auto flops = 2.0 * static_cast<double>(tile * tile * tile);
    machine = Machine::emulated(1, std::int64_t{1} << 40);
    DeviceModel& device = machine.devices[0];
    device.compute_queues = 2;
    device.host_to_device = device.device_to_host = {rate, 0};
    device.rate(Element::fp64) = flops;
    device.kernels = {{"gemm", std::vector(3, Element::fp64), flops, 4}};
    device.bounce_buffer_bytes = tile_bytes();
  }

  [[nodiscard]] std::int64_t tile_bytes() const { return tile * tile * 8; }
  /// To fill or empty bounce buffers with a tile takes so long.
  void stage_tiles_in(double seconds) {
    machine.devices[0].staging = {static_cast<double>(tile_bytes()) / seconds, 0};
  }
  void set_buffers(int count, std::int64_t of_a_tile) {
    machine.devices[0].bounce_buffers = count;
    machine.devices[0].bounce_buffer_bytes = tile_bytes() / of_a_tile;
  }
  [[nodiscard]] BlockFamily family(const char* name, std::int64_t rows, std::int64_t cols) const {
    return {.name = name,
            .rows = tile * rows,
            .cols = tile * cols,
            .tile_rows = tile,
            .tile_cols = tile};
  }
  /// `count` products of three tiles of their own: C_i ← C_i − A_i·B_iᵀ, final. B_i is loaded first
  /// and C_i last.
  [[nodiscard]] Schedule products(std::int64_t count) const {
    BlockTable blocks;
    blocks.add(family("A", count, 3));
    std::vector<FlatTask> tasks;
    for (std::int64_t i = 0; i < count; ++i)
      tasks.push_back(product({0, i, 0}, {0, i, 1}, {0, i, 2}, Hint::last_write));
    return schedule_of(std::move(blocks), 1, {3}, {tasks});
  }
  [[nodiscard]] static FlatTask product(BlockId c, BlockId a, BlockId b, Hint hint,
                                        int device = 0) {
    return flat_task(gemm, {{c, hint}, a, b}, device, kTransposeB);
  }
  [[nodiscard]] Trace simulate(const Schedule& schedule, std::vector<FamilyHome> homes,
                               PlanOptions options = {}) const {
    options.homes.families = std::move(homes);
    return strata::simulate(Plan(std::make_shared<const Schedule>(schedule), machine, options));
  }

  std::int64_t tile;
  Machine machine;
};

constexpr FamilyHome kNeverPinned{.pinning = HostPinning::never};
constexpr FamilyHome kPinnedAhead{.pinning = HostPinning::ahead};

TEST(Staging, ABlockIsCopiedWhenItsBufferIsFilledAndHomeWhenItIsEmpty) {
  Bench bench;
  bench.stage_tiles_in(2);
  const Trace trace = bench.simulate(bench.products(1), {kNeverPinned});
  expect_times(trace, SpanKind::load, {{2, 3}, {4, 5}, {6, 7}});
  expect_times(trace, SpanKind::compute, {{7, 11}});
  expect_times(trace, SpanKind::store, {{11, 12}});
  EXPECT_NEAR(trace.seconds, 14, 1e-9);
}

TEST(Staging, WhatComesFromASourceIsStagedUntilItWasStored) {
  Bench bench;
  bench.stage_tiles_in(2);
  const Trace once = bench.simulate(bench.products(1), {{HostPinning::ahead, true}});
  expect_times(once, SpanKind::load, {{2, 3}, {4, 5}, {6, 7}});
  EXPECT_NEAR(once.seconds, 12, 1e-9) << "its home is page-locked";

  // Everything leaves after each task: C comes again, straight, and A and B from their source.
  BlockTable blocks;
  blocks.add(bench.family("A", 1, 3));
  const FlatTask task = Bench::product({0, 0, 0}, {0, 0, 1}, {0, 0, 2}, Hint::none);
  const Trace twice = bench.simulate(schedule_of(std::move(blocks), 1, {3}, {{task, task}}),
                                     {{HostPinning::ahead, true}}, {.keep = Keep::nothing});
  // Filled by 6, 8 and 10; the slot of the second B is that of C, which is home at 12.
  expect_times(twice, SpanKind::load, {{2, 3}, {4, 5}, {6, 7}, {12, 13}, {13, 14}, {14, 15}});
  EXPECT_NEAR(twice.seconds, 15 + 4 + 1, 1e-9);
}

TEST(Staging, ABlockIsCopiedInPartsAsTheyAreFilled) {
  Bench bench;
  bench.stage_tiles_in(2);
  bench.set_buffers(12, 4);  // a quarter: half a second to fill, a quarter to copy
  const Trace trace = bench.simulate(bench.products(1), {kNeverPinned});
  expect_times(trace, SpanKind::load, {{0.5, 2.25}, {2.5, 4.25}, {4.5, 6.25}});
  expect_times(trace, SpanKind::compute, {{6.25, 10.25}});
  expect_times(trace, SpanKind::store, {{10.25, 11.25}});
  EXPECT_NEAR(trace.seconds, 10.5 + 4 * 0.5, 1e-9) << "emptied behind the first part";
}

TEST(Staging, EachBufferTakesItsLatencyAndEachBlockThatOfTheLink) {
  Bench bench;
  bench.stage_tiles_in(2);
  bench.set_buffers(12, 2);
  DeviceModel& device = bench.machine.devices[0];
  device.staging.latency_seconds = 0.25;
  device.host_to_device.latency_seconds = 0.125;
  // A half: 1.25 s to fill, half a second to copy.
  const Trace trace = bench.simulate(bench.products(1), {{HostPinning::ahead, true}});
  expect_times(trace, SpanKind::load, {{1.25, 3}, {3.75, 5.5}, {6.25, 8}});
}

TEST(Staging, AFullRingHoldsUpTheThreadThatFillsIt) {
  Bench bench;
  bench.stage_tiles_in(0.25);
  bench.set_buffers(1, 1);
  expect_times(bench.simulate(bench.products(1), {kNeverPinned}), SpanKind::load,
               {{0.25, 1.25}, {1.5, 2.5}, {2.75, 3.75}});
  bench.set_buffers(2, 1);
  expect_times(bench.simulate(bench.products(1), {kNeverPinned}), SpanKind::load,
               {{0.25, 1.25}, {1.25, 2.25}, {2.25, 3.25}});
}

TEST(Staging, AFullRingOnTheWayHomeHoldsUpTheLoadsBehindIt) {
  Bench bench;
  bench.stage_tiles_in(2);
  bench.set_buffers(1, 4);
  const Trace trace = bench.simulate(bench.products(2), {kNeverPinned});
  // Each quarter on its way in is filled in 0.5 and copied in 0.25, and only then the next. The
  // store's last quarter gets the buffer at 15.25; the loads behind it are issued from then on.
  expect_times(trace, SpanKind::load,
               {{0.5, 3}, {3.5, 6}, {6.5, 9}, {15.75, 18.25}, {18.75, 21.25}, {21.75, 24.25}});
  expect_times(trace, SpanKind::compute, {{9, 13}, {24.25, 28.25}});
  expect_times(trace, SpanKind::store, {{13, 15.5}, {28.25, 30.75}});
  EXPECT_NEAR(trace.seconds, 31.25, 1e-9);
}

TEST(Staging, AStagedLoadDelaysAComputationBehindItInThePlan) {
  Bench bench;
  BlockTable blocks;
  blocks.add(bench.family("L", 1, 3));  // page-locked
  blocks.add(bench.family("P", 1, 3));
  const FlatTask locked = Bench::product({0, 0, 0}, {0, 0, 1}, {0, 0, 2}, Hint::none);
  const FlatTask staged = Bench::product({1, 0, 0}, {1, 0, 1}, {1, 0, 2}, Hint::none);
  const Schedule schedule = schedule_of(std::move(blocks), 1, {3, 3}, {{locked, staged, locked}});
  expect_times(bench.simulate(schedule, {kPinnedAhead, kNeverPinned}), SpanKind::compute,
               {{3, 7}, {6, 10}, {7, 11}});
  // Filled by 4, 8 and 12. The third product, which has been ready since 7, is issued then.
  bench.stage_tiles_in(4);
  const Trace trace = bench.simulate(schedule, {kPinnedAhead, kNeverPinned});
  expect_times(trace, SpanKind::compute, {{3, 7}, {13, 17}, {12, 16}});
}

TEST(Staging, ALoadWaitsUntilItsBlockIsHome) {
  Bench bench;
  BlockTable blocks;
  blocks.add(bench.family("C", 1, 1));
  blocks.add(bench.family("L", 1, 2));  // page-locked
  const FlatTask task = Bench::product({0, 0, 0}, {1, 0, 0}, {1, 0, 1}, Hint::none);
  bench.stage_tiles_in(2);
  const Trace trace = bench.simulate(schedule_of(std::move(blocks), 1, {1, 2}, {{task, task}}),
                                     {kNeverPinned, kPinnedAhead}, {.keep = Keep::nothing});
  // Stored by 8, home at 10, filled again by 12.
  expect_times(trace, SpanKind::compute, {{3, 7}, {13, 17}});
  expect_times(trace, SpanKind::store, {{7, 8}, {17, 18}});
  EXPECT_NEAR(trace.seconds, 20, 1e-9);
}

TEST(Staging, ADeviceThatStagesNothingWaitsForWhatAnotherBringsHome) {
  Bench bench;
  bench.stage_tiles_in(2);
  bench.machine.devices.push_back(bench.machine.devices[0]);
  bench.machine.devices[1].staging = {};
  BlockTable blocks;
  blocks.add(bench.family("A", 1, 3));
  blocks.add(bench.family("X", 1, 2));
  const Schedule schedule =
      schedule_of(std::move(blocks), 2, {3, 2},
                  {{Bench::product({0, 0, 0}, {0, 0, 1}, {0, 0, 2}, Hint::last_write),
                    Bench::product({1, 0, 0}, {0, 0, 0}, {1, 0, 1}, Hint::last_write, 1)}});
  const Trace trace = bench.simulate(schedule, {kNeverPinned, kNeverPinned});
  // C is home at 14. What the second device reads before that waits for nothing.
  expect_times(trace, SpanKind::load, {{2, 3}, {4, 5}, {6, 7}, {0, 1}, {14, 15}, {15, 16}});
  expect_times(trace, SpanKind::compute, {{7, 11}, {16, 20}});
  EXPECT_NEAR(trace.seconds, 21, 1e-9);
}

// Tiles of half a piece: A is C₀ C₁ | A₀ A₁ | B₀ B₁, a piece each, page-locked by 2.2, 4.4 and 6.6.
TEST(Staging, InTheBackgroundCopiesGoStraightOnceTheirPieceIsPageLocked) {
  Bench bench(4096);
  ASSERT_EQ(2 * bench.tile_bytes(), kPinningPieceBytes);
  bench.stage_tiles_in(2);
  bench.machine.pinning_bytes_per_second = static_cast<double>(kPinningPieceBytes) / 2.2;
  const Schedule schedule = bench.products(2);
  for (const HostPinning how : {HostPinning::background, HostPinning::automatic}) {
    const Trace trace = bench.simulate(schedule, {{how}});
    // B₀ is filled by 2, A₀ by 4, and B₁, which is issued at 4, by 6. C₀ is page-locked when it is
    // issued at 4, and at 6 so are A₁ and C₁.
    expect_times(trace, SpanKind::load, {{2, 3}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {8, 9}});
    expect_times(trace, SpanKind::compute, {{6, 10}, {9, 13}});
    expect_times(trace, SpanKind::store, {{10, 11}, {13, 14}});
    EXPECT_NEAR(trace.seconds, 14, 1e-9) << "both stores go straight";
  }
  // With the first two pieces page-locked in the beginning, B₀ alone is staged: at 2, when the rest
  // is issued, the last piece is not yet (2.2), so B₁ is too.
  const Trace later =
      bench.simulate(schedule, {{HostPinning::background, false, 2 * kPinningPieceBytes}});
  expect_times(later, SpanKind::load, {{2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}});
  bench.machine.pinning_bytes_per_second = 0;  // not measured: in no time
  expect_times(bench.simulate(schedule, {{HostPinning::background}}), SpanKind::load,
               {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}});
}

TEST(Staging, IsOnlyThereWhereItMakesADifference) {
  Bench bench;
  const auto needed = [&](std::vector<FamilyHome> homes) {
    PlanOptions options;
    options.homes.families = std::move(homes);
    return StagingClock::is_needed(
        Plan(std::make_shared<const Schedule>(bench.products(1)), bench.machine, options));
  };
  EXPECT_FALSE(needed({kNeverPinned})) << "no device has a rate";
  bench.stage_tiles_in(1e-9);
  EXPECT_FALSE(needed({}));
  EXPECT_FALSE(needed({kPinnedAhead, kNeverPinned})) << "there is no second family";
  EXPECT_FALSE(needed({{HostPinning::automatic}})) << "it is small";
  EXPECT_FALSE(needed({{HostPinning::background}})) << "page-locking is said to take no time";
  EXPECT_TRUE(needed({kNeverPinned}));
  EXPECT_TRUE(needed({{HostPinning::ahead, true}}));
  bench.machine.pinning_bytes_per_second = 1e15;
  EXPECT_TRUE(needed({{HostPinning::background}}));
  EXPECT_FALSE(needed({{HostPinning::automatic}}));
}

// ---- properties of any plan

/// Few small buffers, and rates that make everything wait for everything now and then.
Machine random_machine(const Schedule& schedule, Dice& dice) {
  Machine machine =
      Machine::emulated(schedule.devices, smallest_budget_bytes(schedule) + dice.roll(8) * 512);
  for (DeviceModel& device : machine.devices) {
    device.compute_queues = static_cast<int>(1 + dice.roll(3));
    device.host_to_device = device.device_to_host = {1e9, 1e-8};
    device.rate(Element::fp64) = device.rate(Element::fp32) = 1e9;
    device.staging = {0.2e9 * static_cast<double>(1 + dice.roll(20)), 1e-8};
    device.bounce_buffers = static_cast<int>(1 + dice.roll(3));
    device.bounce_buffer_bytes = 64 + dice.roll(600);
  }
  if (dice.roll(3) == 0) machine.devices[0].staging = {};  // a CPU among them
  machine.pinning_bytes_per_second = 1e13;                 // a piece takes about as long as a run
  return machine;
}

/// Every step once, in the order of the plan, and none before what it waits for is done.
void expect_follows(const Plan& plan, const Trace& trace) {
  const std::vector<FlatStep> steps = flatten(plan);
  ASSERT_EQ(trace.spans.size(), steps.size());
  std::vector<std::vector<double>> ends(plan.layout().queues.size());
  double last = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Span& span = trace.spans[s];
    ASSERT_EQ(span.queue, steps[s].step.queue);
    auto& own = ends[span.queue];
    ASSERT_LE(own.empty() ? 0 : own.back(), span.begin);
    for (const Wait& wait : steps[s].waits)
      ASSERT_LE(ends[wait.queue][wait.sequence - 1], span.begin);
    ASSERT_LE(span.begin, span.end);
    own.push_back(span.end);
    last = std::max(last, span.end);
  }
  EXPECT_LE(last, trace.seconds) << "the last blocks may be on their way home";
  EXPECT_EQ(trace.traffic, plan.totals().traffic);
}

// Kernels take at most their queue's share of the rate here, so that none slows another: then
// nothing is faster because something else is slower.
TEST(Staging, OfRandomPlansIsTheSlowerTheLessIsPageLocked) {
  int slower = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(300, 300, 60); ++seed) {
    const auto schedule = std::make_shared<const Schedule>(random_schedule(seed));
    Dice dice(seed + 5);
    const Machine machine = random_machine(*schedule, dice);
    PlanOptions options = random_plan_options(dice);
    options.urgent_queue = false;
    const auto families = static_cast<std::size_t>(schedule->blocks.families());
    const auto simulated = [&](std::vector<FamilyHome> homes) {
      options.homes.families = std::move(homes);
      const Plan plan(schedule, machine, options);
      Trace trace = simulate(plan);
      expect_follows(plan, trace);
      return trace.seconds;
    };
    const double locked = simulated({});
    const double background = simulated(std::vector(families, FamilyHome{HostPinning::background}));
    const double pageable = simulated(std::vector(families, kNeverPinned));
    const double sourced = simulated(std::vector(families, FamilyHome{HostPinning::ahead, true}));
    const double both = simulated(std::vector(families, FamilyHome{HostPinning::never, true}));
    const double beyond = 1 + 1e-12;
    EXPECT_LE(locked, background * beyond) << seed;
    EXPECT_LE(background, pageable * beyond) << seed;
    EXPECT_LE(locked, sourced * beyond) << seed;
    EXPECT_LE(sourced, both * beyond) << seed;
    EXPECT_NEAR(both, pageable, 1e-12 * both) << "either way everything is staged: " << seed;
    slower += locked < sourced && sourced < pageable ? 1 : 0;
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(slower, test::kSanitized ? 20 : 100);
}

}  // namespace
}  // namespace strata::test
