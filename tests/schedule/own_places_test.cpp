// Plans of schedules whose blocks have places of their own, proven by the checker.

#include "schedule/own_places.hpp"

#include <gtest/gtest.h>

#include "strata/error.hpp"
#include "tests/schedule/scramble.hpp"
#include "tests/schedule/small_plans.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

constexpr Operation kMix{.name = "mix",
                         .operands = 2,
                         .access = {Access::read_write, Access::read},
                         .work = [](std::span<const BlockExtent>, std::uint32_t) { return 1.0; }};

/// Blocks of 1 to 40,000 elements, tasks of up to eight of them, on one or two devices.
Schedule scattered(std::uint64_t seed) {
  Dice dice(seed);
  BlockTable blocks;
  std::vector<BlockExtent> stored;
  std::vector<BlockExtent> temporary;
  const std::int64_t count = 4 + dice.roll(30);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t most = dice.roll(4) == 0 ? 200 : 20;
    stored.push_back({i, 0, 1 + dice.roll(most), 1 + dice.roll(most)});
    temporary.push_back({i, 0, 1 + dice.roll(most), 1 + dice.roll(most)});
  }
  blocks.add({.name = "S", .listed = stored});
  blocks.add({.name = "T", .origin = Origin::temporary, .listed = temporary});
  const int devices = static_cast<int>(1 + dice.roll(2));
  std::vector<std::vector<FlatTask>> steps;
  std::vector<std::int64_t> made;  // temporaries that hold something
  for (int t = 0; t < 80; ++t) {
    std::vector<TaskOperand> operands{BlockId(0, dice.roll(count), 0),
                                      BlockId(0, dice.roll(count), 0)};
    std::vector<std::int64_t> written;
    for (std::int64_t k = dice.roll(3); k > 0; --k) {
      const std::int64_t id = dice.roll(count);
      if (std::find(written.begin(), written.end(), id) == written.end()) written.push_back(id);
    }
    for (const std::int64_t id : written) operands.emplace_back(BlockId(1, id, 0));
    std::int64_t read = 0;
    for (std::int64_t k = dice.roll(4); k > 0 && !made.empty(); --k) {
      const auto which = static_cast<std::size_t>(dice.roll(std::ssize(made)));
      if (std::find(written.begin(), written.end(), made[which]) != written.end()) continue;
      operands.emplace_back(BlockId(1, made[which], 0));
      ++read;
    }
    made.insert(made.end(), written.begin(), written.end());
    FlatTask flat;
    flat.task.operation = &kMix;
    flat.task.calls = 1;
    flat.task.device = static_cast<std::uint16_t>(dice.roll(devices));
    flat.task.more_written = static_cast<std::uint16_t>(written.size());
    flat.task.more_read = static_cast<std::uint16_t>(read);
    flat.operands = std::move(operands);
    if (steps.empty() || dice.roll(2) == 0) steps.emplace_back();
    steps.back().push_back(std::move(flat));
  }
  Schedule schedule = schedule_of(std::move(blocks), devices, {2, 8}, std::move(steps));
  schedule.own_places = true;
  return schedule;
}

Plan plan_within(const Schedule& schedule, std::int64_t budget, const PlanOptions& options = {}) {
  Machine machine = Machine::emulated(schedule.devices, budget);
  for (DeviceModel& device : machine.devices) device.compute_queues = 2;
  return {std::make_shared<const Schedule>(schedule), machine, options};
}

/// How many, without a sanitizer and with one.
std::uint64_t seeds(std::uint64_t plain, std::uint64_t sanitized) {
  return test::campaign(plain, plain, sanitized);
}

TEST(OwnPlaces, PlansAreProvenInAnyBudget) {
  for (std::uint64_t seed = 0; seed < test::campaign(60, 60, 2); ++seed) {
    const Schedule schedule = scattered(seed);
    Dice dice(seed + 1'000'000);
    const std::int64_t least = smallest_budget_bytes(schedule);
    for (const std::int64_t budget :
         {least, least + dice.roll(least), 3 * least, std::int64_t{1} << 26}) {
      const Plan plan = plan_within(schedule, budget, random_plan_options(dice));
      ASSERT_EQ(check_plan(plan), "") << "seed " << seed << " budget " << budget;
      ASSERT_LE(plan.layout().arena_bytes(), budget);
      ASSERT_EQ(text_of(plan), text_of(plan));
      ASSERT_TRUE(plan.end().devices.empty() || plan.end().devices[0].blocks.empty());
    }
    EXPECT_THROW((void)plan_within(schedule, least - 256), Error);
  }
}

TEST(OwnPlaces, ScrambledSchedulesAreProven) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Schedule schedule = scramble_pair(seed).first;
    schedule.own_places = true;
    Dice dice(seed + 31);
    const std::int64_t least = smallest_budget_bytes(schedule);
    Machine machine = scramble_machine(dice, schedule);
    for (DeviceModel& device : machine.devices) device.memory_bytes = least + dice.roll(3 * least);
    const Plan plan(std::make_shared<const Schedule>(schedule), machine, random_plan_options(dice));
    ASSERT_EQ(check_plan(plan), "") << "seed " << seed;
  }
}

TEST(OwnPlaces, EveryWaitIsNeededOrImplied) {
  std::int64_t needed = 0;
  for (std::uint64_t seed = 0; seed < seeds(12, 1); ++seed) {
    const Schedule schedule = scattered(seed);
    const Plan plan = plan_within(schedule, smallest_budget_bytes(schedule) + 4096);
    needed += expect_every_needed_wait_noticed(plan).needed;
  }
  EXPECT_GT(needed, static_cast<std::int64_t>(seeds(100, 3)));
}

/// With room for all, everything is loaded once; nothing moves that is used again.
TEST(OwnPlaces, ALargeBudgetLoadsEachBlockOnce) {
  std::uint64_t planned = 0;
  for (std::uint64_t seed = 0; seed < 50 && planned < seeds(50, 2); ++seed) {
    Schedule schedule = scattered(seed);
    if (schedule.devices > 1) continue;
    ++planned;
    const Plan plan = plan_within(schedule, std::int64_t{1} << 28);
    EXPECT_LE(plan.totals().loads, schedule.blocks.count(0));
    // A quarter of what that took suffices, with more copies.
    const std::int64_t least = smallest_budget_bytes(schedule);
    EXPECT_GE(plan_within(schedule, least).totals().loads, plan.totals().loads);
  }
  EXPECT_GT(planned, 1);
}

/// A block that has to leave does so behind its last use before, not when its place is needed; one
/// for which there is room stays.
TEST(OwnPlaces, WhatLeavesDoesSoAtOnce) {
  constexpr std::int64_t kMiB = 1 << 20;
  BlockTable blocks;
  blocks.add(
      {.name = "T",
       .origin = Origin::temporary,
       .listed = {{0, 0, 131072, 1}, {0, 0, 131072, 1}, {0, 0, 262144, 1}, {0, 0, 131072, 1}}});
  std::vector<FlatTask> tasks;
  static constexpr Operation kWrite{
      .name = "write",
      .operands = 1,
      .access = {Access::write},
      .work = [](std::span<const BlockExtent>, std::uint32_t) { return 1.0; }};
  const auto write = [&](std::int64_t block, Hint hint) {
    FlatTask& flat = tasks.emplace_back();
    flat.task.operation = &kWrite;
    flat.task.calls = 1;
    flat.operands = {{BlockId(0, block, 0), hint}};
  };
  write(0, Hint::none);
  write(1, Hint::last_use);
  write(2, Hint::last_use);
  write(3, Hint::last_use);
  tasks.back().task.more_read = 1;
  tasks.back().operands.push_back({BlockId(0, 0, 0), Hint::last_use});
  Schedule crowded = schedule_of(std::move(blocks), 1, {2}, {tasks});
  crowded.own_places = true;
  EXPECT_EQ(plan_within(crowded, 3 * kMiB).totals().stores, 0);
  const Plan plan = plan_within(crowded, 2 * kMiB);
  EXPECT_EQ(check_plan(plan), "");
  PlanReader reader(plan);
  PlanWindow window;
  ASSERT_TRUE(reader.next(window));
  std::vector<StepKind> kinds;
  for (const Step& step : window.steps) kinds.push_back(step.kind);
  const std::vector<StepKind> expected{StepKind::compute, StepKind::store, StepKind::compute,
                                       StepKind::compute, StepKind::load,  StepKind::compute};
  EXPECT_EQ(kinds, expected);
}

}  // namespace
}  // namespace strata::test
