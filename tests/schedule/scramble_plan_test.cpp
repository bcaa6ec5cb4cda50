// Plans of schedules with several outputs, batches, mixed elements and sizes, temporary blocks and
// up to 80 devices, proven by the checker; and plans that go on from what another one left.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "schedule/plan_layout.hpp"
#include "schedule/shared_call.hpp"
#include "strata/error.hpp"
#include "tests/schedule/plan_totals.hpp"
#include "tests/schedule/scramble.hpp"
#include "tests/schedule/small_plans.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

/// The residency from which the second schedule can be planned: `end`, or, where it has no place
/// for what is only on the devices, what is left when that was brought home.
Residency start_of_second(const ScramblePair& pair, const Machine& machine,
                          const PlanOptions& options, const Residency& end,
                          std::int64_t& without_room) {
  try {
    (void)plan_of(pair.second, machine, options, end);
    return end;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
    EXPECT_NE(std::string(error.what()).find("have no place"), std::string::npos) << error.what();
    EXPECT_TRUE(only_here(end)) << "else nothing has to have a place";
  }
  ++without_room;
  const Plan fetch = plan_of(pair.fetch, machine, options, end);
  EXPECT_EQ(check_plan(fetch), "");
  expect_totals(fetch);
  EXPECT_EQ(fetch.totals().loads + fetch.totals().tasks, 0);
  EXPECT_GT(fetch.totals().stores, 0);
  EXPECT_FALSE(only_here(fetch.end()));
  return fetch.end();
}

TEST(ScramblePlan, IsProvenAndSoIsThePlanThatGoesOn) {
  std::int64_t saved = 0;
  std::int64_t many_devices = 0;
  std::int64_t batches = 0;
  std::int64_t stayed = 0;
  std::int64_t stayed_on = 0;
  std::int64_t without_room = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(1000, 1000, 150); ++seed) {
    const ScramblePair pair = scramble_pair(seed);
    Dice dice(seed + 9'000'000);
    const PlanOptions options = random_plan_options(dice);
    const Machine machine = scramble_machine(dice, pair.first);
    const Plan first = plan_of(pair.first, machine, options);
    ASSERT_EQ(check_plan(first), "") << "seed " << seed;
    expect_totals(first);
    ASSERT_EQ(text_of(first), text_of(first)) << "equal inputs must give equal plans";
    const PlanOptions more = random_plan_options(dice);
    Machine roomy = machine;
    for (DeviceModel& device : roomy.devices) {
      device.memory_bytes =
          std::max(device.memory_bytes, smallest_budget_bytes(pair.second)) + dice.roll(3) * 4096;
    }
    const Residency start = start_of_second(pair, roomy, more, first.end(), without_room);
    const Plan second = plan_of(pair.second, roomy, more, start);
    ASSERT_EQ(check_plan(second), "") << "seed " << seed << ", going on";
    stayed += only_here(start) ? 1 : 0;
    stayed_on += only_here(start) && only_here(second.end()) ? 1 : 0;
    expect_totals(second);
    for (std::size_t d = 0; d < second.layout().devices.size(); ++d)
      ASSERT_LE(second.layout().devices[d].arena_bytes, roomy.devices[d].memory_bytes);
    const Plan afresh = plan_of(pair.second, roomy, more);
    saved += afresh.totals().loads - second.totals().loads;
    many_devices += pair.first.devices > 64 ? 1 : 0;
    for (const FlatTask& flat : tasks_of(pair.first)) batches += flat.task.calls > 1 ? 1 : 0;
  }
  EXPECT_GT(saved, test::kSanitized ? 100 : 1000) << "what is there need not be loaded";
  EXPECT_GT(many_devices, test::kSanitized ? 0 : 5);
  EXPECT_GT(batches, test::kSanitized ? 200 : 2000);
  EXPECT_GT(stayed, test::kSanitized ? 20 : 200)
      << "plans that begin with blocks that are only on devices";
  EXPECT_GT(stayed_on, test::kSanitized ? 10 : 100);
  EXPECT_GT(without_room, test::kSanitized ? 0 : 10);
}

TEST(ScramblePlan, ABlockThatIsOnlyOnADeviceIsNotLostUnnoticed) {
  std::int64_t residents = 0;
  std::int64_t stores = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const ScramblePair pair = scramble_pair(seed);
    Dice dice(seed + 4321);
    const Machine machine = scramble_machine(dice, pair.first);
    const Plan first = plan_of(pair.first, machine, {});
    if (!only_here(first.end())) continue;
    const Plan fetch = plan_of(pair.fetch, machine, {}, first.end());
    ASSERT_EQ(check_plan(fetch), "");
    // No step of it may be missing …
    const std::vector<FlatStep> steps = flatten(fetch);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      ASSERT_EQ(steps[s].step.kind, StepKind::store);
      std::vector<FlatStep> mutant = steps;
      mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(s));
      EXPECT_NE(PlanChecker(fetch.schedule(), fetch.layout()).check(mutant), "") << seed;
      ++stores;
    }
    // … and none of what is only there may be missing in a layout, or lie elsewhere.
    for (std::size_t d = 0; d < fetch.layout().devices.size(); ++d) {
      for (std::size_t r = 0; r < fetch.layout().devices[d].resident.size(); ++r) {
        PlanLayout layout = fetch.layout();
        auto& known = layout.devices[d].resident;
        if (!known[r].only_here) continue;
        known[r].offset += 256;
        EXPECT_NE(check_start(first.end(), layout), "");
        known.erase(known.begin() + static_cast<std::ptrdiff_t>(r));
        EXPECT_NE(check_start(first.end(), layout), "");
        EXPECT_FALSE(loses_nothing(first.end(), layout));
        ++residents;
      }
    }
  }
  EXPECT_GT(stores, 100);
  EXPECT_EQ(stores, residents);
}

TEST(ScramblePlan, CanBeginAtAnyStep) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Schedule schedule = scramble_pair(seed, false).first;
    Dice dice(seed + 123);
    PlanOptions options = random_plan_options(dice);
    options.first_step = dice.roll(schedule.steps + 1);
    const Plan plan = plan_of(schedule, scramble_machine(dice, schedule), options);
    ASSERT_EQ(check_plan(plan), "") << "seed " << seed << " step " << options.first_step;
    ASSERT_EQ(plan.totals().tasks, std::ssize(tasks_of(schedule, options.first_step)));
  }
}

TEST(ScramblePlan, EveryDroppedWaitAndStepIsNoticed) {
  std::int64_t waits = 0;
  std::int64_t steps_dropped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const ScramblePair pair = scramble_pair(seed);
    if (tasks_of(pair.first).size() > 25 || pair.first.devices > 4) continue;
    Dice dice(seed);
    const Machine machine = scramble_machine(dice, pair.first);
    const Plan plan = plan_of(pair.first, machine, {});
    const std::vector<FlatStep> steps = flatten(plan);
    SCOPED_TRACE("seed " + std::to_string(seed));
    waits += expect_every_needed_wait_noticed(plan).dropped;
    const auto complaint = [&](const std::vector<FlatStep>& mutant) {
      return PlanChecker(plan.schedule(), plan.layout()).check(mutant);
    };
    for (std::size_t s = 0; s < steps.size(); ++s) {
      // A value that goes home again, or that is temporary, may be spared the first way.
      const bool again = std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(s) + 1,
                                     steps.end(), [&](const FlatStep& other) {
                                       return other.step.kind == StepKind::store &&
                                              other.operands[0] == steps[s].operands[0];
                                     });
      // One that stays may be, if it still lies there at the end.
      const BlockFamily& family = plan.schedule().blocks.family(steps[s].operands[0].family());
      const bool needless = again || family.origin == Origin::temporary || family.stays;
      if (steps[s].step.kind == StepKind::store && needless) continue;
      std::vector<FlatStep> mutant = steps;
      mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(s));
      EXPECT_NE(complaint(mutant), "") << "seed " << seed << " step " << s;
      ++steps_dropped;
    }
  }
  EXPECT_GT(waits, 200);
  EXPECT_GT(steps_dropped, 200);
}

TEST(SizeClasses, WasteAtMostAnEighthBesideAlignment) {
  // Blocks of any sizes above 16 KiB: what alignment takes is nothing beside them.
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Dice dice(seed);
    std::vector<BlockExtent> extents;
    for (int i = 0; i < 60; ++i)
      extents.push_back({i, 0, 64 + dice.roll(200), 32 + dice.roll(100)});
    BlockTable blocks;
    blocks.add({.name = "L", .listed = extents});
    std::vector<FlatTask> tasks;
    for (int i = 0; i < 300; ++i)
      tasks.push_back(flat_task(scramble_u, {BlockId(0, dice.roll(60), 0)}));
    const Schedule schedule = schedule_of(std::move(blocks), 1, {1}, {tasks});
    Machine machine = Machine::emulated(1, smallest_budget_bytes(schedule) + (1 << 20));
    const Plan plan = plan_of(schedule, machine, {});
    EXPECT_GT(plan.totals().wasted_bytes, 0);
    EXPECT_LE(plan.totals().wasted_bytes * 8, plan.layout().arena_bytes()) << "seed " << seed;
  }
}

TEST(SizeClasses, AreCoarserWhereABudgetIsSmallAndTheScheduleAllowsIt) {
  for (std::uint64_t seed = 0; seed < test::campaign(50, 50, 10); ++seed) {
    Dice dice(seed);
    std::vector<BlockExtent> extents;
    std::int64_t largest = 0;
    for (int i = 0; i < 60; ++i) {
      extents.push_back({i, 0, 1 + dice.roll(200), 1 + dice.roll(100)});
      largest = std::max(largest, extents.back().rows * extents.back().cols * 8);
    }
    BlockTable blocks;
    blocks.add({.name = "L", .listed = extents});
    std::vector<FlatTask> tasks;
    for (int i = 0; i < 300; ++i)
      tasks.push_back(flat_task(scramble_u, {BlockId(0, dice.roll(60), 0)}));
    Schedule schedule = schedule_of(std::move(blocks), 1, {1}, {tasks});
    const std::int64_t fine = smallest_budget_bytes(schedule);
    schedule.coarse_slots = true;
    const std::int64_t coarse = smallest_budget_bytes(schedule);
    EXPECT_LE(coarse, largest + 256);  // of one operand, the slot of the largest
    EXPECT_LT(coarse, fine);
    for (const std::int64_t budget : {coarse, coarse + dice.roll(1 << 20), fine - 1, fine}) {
      const Plan plan = plan_of(schedule, Machine::emulated(1, budget), {});
      EXPECT_LE(plan.layout().arena_bytes(), budget);
      EXPECT_LE(plan.totals().wasted_bytes, plan.layout().arena_bytes());
      EXPECT_EQ(PlanChecker(plan.schedule(), plan.layout()).check(flatten(plan)), "");
    }
  }
}

TEST(Residency, ThatDoesNotFitTheScheduleIsRefused) {
  const auto refused = [](Residency::Node node, const std::string& part) {
    BlockTable blocks;
    blocks.add({.name = "A", .rows = 8, .cols = 4, .tile_rows = 4, .tile_cols = 4, .identity = 5});
    const Schedule schedule =
        schedule_of(std::move(blocks), 1, {1}, {{flat_task(scramble_u, {BlockId(0, 0, 0)})}});
    try {
      (void)plan_of(schedule, Machine::emulated(1, 4096), {}, {{std::move(node)}});
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const ResidentBlock good{5, 1, 0, 4, 4, Element::fp64, 0, 256};
  ResidentBlock elsewhere = good;
  elsewhere.row = 2;
  refused({4096, {elsewhere}}, "block (2,0) that A has not");
  ResidentBlock smaller = good;
  smaller.rows = 3;
  refused({4096, {smaller}}, "A(1,0) as 3 by 4 in fp64, the schedule as 4 by 4 in fp64");
  ResidentBlock other = good;
  other.element = Element::fp32;
  refused({4096, {other}}, "in fp32, the schedule as 4 by 4 in fp64");
}

TEST(Residency, OfNoUseIsLeftAside) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 8, .cols = 4, .tile_rows = 4, .tile_cols = 4, .identity = 5});
  const Schedule schedule =
      schedule_of(std::move(blocks), 1, {1}, {{flat_task(scramble_u, {BlockId(0, 1, 0)})}});
  const ResidentBlock stranger{6, 1, 0, 4, 4, Element::fp64, 0, 256};
  const ResidentBlock known{5, 1, 0, 4, 4, Element::fp64, 256, 256};
  const Machine machine = Machine::emulated(1, 4096);
  const Plan plan = plan_of(schedule, machine, {}, {{{512, {stranger, known}}}});
  EXPECT_EQ(plan.totals().loads, 0);
  EXPECT_EQ(check_plan(plan), "");
  ASSERT_EQ(plan.end().devices[0].blocks.size(), 1U) << "the stranger is forgotten";
  Residency forgotten = plan.start();
  forgotten.forget(5);
  EXPECT_EQ(plan_of(schedule, machine, {}, forgotten).totals().loads, 1);
}

/// Options with which a resident schedule is planned.
PlanOptions resident_options(int devices, int queues) {
  PlanOptions options;
  options.copies_in_stream = devices == 1 && queues == 1;
  options.urgent_queue = devices > 1;
  return options;
}

/// A resident schedule, some of whose tasks are of several devices, on one to five; of each three
/// one has blocks that lie with the caller.
std::shared_ptr<const Schedule> random_resident(std::uint64_t seed) {
  std::shared_ptr<const Schedule> schedule =
      resident_on(scramble_pair(seed, false).first, 1 + static_cast<int>(seed % 5), seed % 2 != 0);
  return seed % 3 == 1 ? placed_on(*schedule, seed / 3) : schedule;
}

Machine machine_for(const Schedule& schedule, std::uint64_t seed) {
  Machine machine = Machine::emulated(schedule.devices, smallest_budget_bytes(schedule));
  for (DeviceModel& device : machine.devices)
    device.compute_queues = 1 + static_cast<int>(seed % 4);
  if (seed % 3 == 0) machine.device_to_device = {1e15, 0};
  return machine;
}

/// Blocks never leave, and what stays is not at home; so is the plan that goes on with the blocks
/// that never change.
TEST(ResidentPlan, IsProvenAndSoIsThePlanThatGoesOn) {
  std::int64_t shared = 0;
  std::int64_t peers = 0;
  std::int64_t saved = 0;
  std::int64_t placed = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(1000, 1000, 150); ++seed) {
    const std::shared_ptr<const Schedule> schedule = random_resident(seed);
    const Machine machine = machine_for(*schedule, seed);
    const PlanOptions options =
        resident_options(schedule->devices, machine.devices.front().compute_queues);
    const Plan first(schedule, machine, options);
    ASSERT_EQ(check_plan(first), "") << "seed " << seed;
    expect_totals(first);
    Residency constants = first.end();
    for (Residency::Node& node : constants.devices)
      std::erase_if(node.blocks, [](const ResidentBlock& block) { return block.only_here; });
    const Plan second(schedule, machine, options, constants);
    ASSERT_EQ(check_plan(second), "") << "seed " << seed << ", going on";
    expect_totals(second);
    std::set<BlockId> made;
    for (const FlatStep& flat : flatten(first)) {
      shared += flat.step.shared ? 1 : 0;
      const BlockFamily& family = schedule->blocks.family(flat.operands[0].family());
      const bool there = family.placed && family.identity == 0;
      if (flat.step.kind == StepKind::load) {
        ASSERT_FALSE(made.contains(flat.operands[0])) << "it is on some device";
        ASSERT_FALSE(there) << "the caller has it";
      }
      ASSERT_FALSE(there && flat.step.kind == StepKind::peer) << "it is on one device";
      placed += flat.step.kind == StepKind::compute && there ? 1 : 0;
      if (flat.step.kind != StepKind::compute) continue;
      const Operation& operation = *flat.step.operation;
      for (std::size_t i = 0; i < flat.operands.size(); ++i)
        if (writes(operation.access[i % static_cast<std::size_t>(operation.operands)]))
          made.insert(flat.operands[i]);
    }
    peers += first.totals().peer_copies;
    saved += first.totals().loads - second.totals().loads;
    Machine small = machine;
    small.devices.back().memory_bytes = 0;
    EXPECT_THROW(Plan(schedule, small, options), Error);
  }
  EXPECT_GT(shared, test::kSanitized ? 300 : 3000);
  EXPECT_GT(peers, test::kSanitized ? 200 : 2000);
  EXPECT_GT(saved, test::kSanitized ? 100 : 1000);
  EXPECT_GT(placed, test::kSanitized ? 200 : 2000);
}

TEST(ResidentPlan, WhatTheCallerHasIsOnOneDevice) {
  BlockTable blocks;
  blocks.add({.name = "V", .rows = 8, .cols = 4, .tile_rows = 4, .tile_cols = 4});
  blocks.place(0);
  const BlockId v(0, 1, 0);
  auto schedule = std::make_shared<Schedule>(schedule_of(
      std::move(blocks), 2, {1}, {{flat_task(scramble_u, {v}), flat_task(scramble_u, {v}, 1)}}));
  schedule->resident = true;
  try {
    (void)Plan(schedule, Machine::emulated(2, 4096), {});
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::misuse);
    EXPECT_NE(std::string(error.what()).find("V(1,0) lies where the caller has it, and 2 devices"),
              std::string::npos)
        << error.what();
  }
}

/// A wait, a copy or a step that is missing.
TEST(ResidentPlan, WhatIsMissingIsNoticed) {
  DroppedWaits waits;
  std::int64_t steps_dropped = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(1000, 200, 15); ++seed) {
    const std::shared_ptr<const Schedule> schedule = random_resident(seed);
    if (schedule->devices == 1) continue;
    const Machine machine = machine_for(*schedule, seed);
    const Plan plan(schedule, machine,
                    resident_options(schedule->devices, machine.devices.front().compute_queues));
    const std::vector<FlatStep> steps = flatten(plan);
    if (steps.size() > 150) continue;
    const DroppedWaits some = expect_every_needed_wait_noticed(plan);
    waits.dropped += some.dropped;
    waits.needed += some.needed;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      std::vector<FlatStep> mutant = steps;
      mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(s));
      EXPECT_NE(PlanChecker(plan.schedule(), plan.layout()).check(mutant), "")
          << "seed " << seed << ", step " << s;
      ++steps_dropped;
    }
  }
  EXPECT_GT(waits.needed, test::kSanitized ? 75 : 1000);
  EXPECT_GT(steps_dropped, test::kSanitized ? 200 : 3000);
}

/// Tasks of several devices, and what the caller has.
TEST(ResidentPlan, WhatOnlyResidentSchedulesMayHaveIsRefusedElsewhere) {
  for (const std::uint64_t seed : {3, 7}) {
    auto schedule = std::make_shared<Schedule>(*random_resident(seed));
    ASSERT_GT(schedule->devices, 1);
    schedule->resident = false;
    const Machine machine = Machine::emulated(schedule->devices, std::int64_t{1} << 30);
    EXPECT_THROW(Plan(schedule, machine, {}), Error) << "seed " << seed;
  }
}

}  // namespace
}  // namespace strata::test
