// Plans of three levels, storage, host memory and devices: proven by the checker for any schedule;
// with as few reads as can be; refused where host memory does not suffice.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "strata/error.hpp"
#include "tests/schedule/plan_totals.hpp"
#include "tests/schedule/scramble.hpp"
#include "tests/schedule/small_plans.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

/// Bytes of the families in storage.
std::int64_t bytes_in_storage(const BlockTable& blocks) {
  std::int64_t bytes = 0;
  for (int f = 0; f < blocks.families(); ++f)
    if (blocks.family(f).in_storage) bytes += blocks.total_bytes(f);
  return bytes;
}

TEST(StoragePlan, IsProvenForAnyScheduleAndSoIsThePlanThatGoesOn) {
  std::int64_t reads = 0;
  std::int64_t written_early = 0;
  std::int64_t without_host = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(2000, 1000, 400); ++seed) {
    ScramblePair pair = scramble_pair(seed);
    Dice dice(seed + 31'000'000);
    const Machine machine = storage_machine(dice, pair);
    const PlanOptions options = random_plan_options(dice);
    const Plan first = plan_of(pair.first, machine, options);
    ASSERT_EQ(check_plan(first), "") << "seed " << seed;
    expect_totals(first);
    ASSERT_EQ(text_of(first), text_of(first)) << "equal inputs must give equal plans";
    const bool by_host = machine.storage->host_bytes > 0 && bytes_in_storage(pair.first.blocks) > 0;
    ASSERT_EQ(first.layout().host, by_host ? pair.first.devices : -1) << seed;
    if (by_host) {
      ASSERT_LE(first.layout().device(pair.first.devices).arena_bytes, machine.storage->host_bytes);
    }
    if (only_here(first.end())) continue;  // which may have to be brought home first
    const Plan second = plan_of(pair.second, machine, random_plan_options(dice), first.end());
    ASSERT_EQ(check_plan(second), "") << "seed " << seed << ", going on";
    expect_totals(second);
    reads += first.totals().reads + second.totals().reads;
    without_host += by_host ? 0 : 1;
    const Trace trace = simulate(first);
    ASSERT_EQ(trace.traffic, first.totals().traffic) << seed;
    ASSERT_EQ(trace.spans_added, first.totals().steps) << seed;
    const auto last = [&](SpanKind kind) {
      double end = 0;
      for (const Span& span : trace.spans)
        if (span.kind == kind) end = std::max(end, span.end);
      return end;
    };
    written_early += last(SpanKind::write) < last(SpanKind::compute) ? 1 : 0;
  }
  EXPECT_GT(reads, test::kSanitized ? 500 : 5000);
  EXPECT_GT(written_early, 10) << "what leaves host memory does so during the run";
  EXPECT_GT(without_host, test::kSanitized ? 5 : 50);
}

TEST(StoragePlan, EveryDroppedWaitAndStepIsNoticed) {
  std::int64_t waits = 0;
  std::int64_t steps_dropped = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(300, 120, 30); ++seed) {
    ScramblePair pair = scramble_pair(seed);
    if (tasks_of(pair.first).size() > 25 || pair.first.devices > 4) continue;
    Dice dice(seed);
    const Plan plan = plan_of(pair.first, storage_machine(dice, pair));
    if (plan.layout().host < 0) continue;
    const std::vector<FlatStep> steps = flatten(plan);
    SCOPED_TRACE("seed " + std::to_string(seed));
    waits += expect_every_needed_wait_noticed(plan).dropped;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const StepKind kind = steps[s].step.kind;
      const BlockId id = steps[s].operands[0];
      const BlockFamily& family = plan.schedule().blocks.family(id.family());
      // A value that goes home again, stays on a device, or is temporary may be spared the first
      // way; one that is stored on host memory is written from there, or loaded again.
      const bool again = std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(s) + 1,
                                     steps.end(), [&](const FlatStep& other) {
                                       return other.step.kind == kind && other.operands[0] == id;
                                     });
      const bool goes_home = kind == StepKind::store || kind == StepKind::write;
      if (goes_home && (again || family.origin == Origin::temporary || family.stays)) continue;
      std::vector<FlatStep> mutant = steps;
      mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(s));
      EXPECT_NE(PlanChecker(plan.schedule(), plan.layout()).check(mutant), "") << "step " << s;
      ++steps_dropped;
    }
  }
  EXPECT_GT(waits, test::kSanitized ? 100 : 500);
  EXPECT_GT(steps_dropped, test::kSanitized ? 100 : 500);
}

/// Reads blocks of "A" of 256 bytes in this order, one after the other.
Schedule readings(std::int64_t count, const std::vector<std::int64_t>& order) {
  BlockTable blocks;
  blocks.add({.name = "A",
              .rows = 32 * count,
              .cols = 1,
              .tile_rows = 32,
              .tile_cols = 1,
              .in_storage = true});
  blocks.add({.name = "x", .rows = 32, .cols = 1, .tile_rows = 32, .tile_cols = 1});
  std::vector<std::vector<FlatTask>> steps(1);
  for (const std::int64_t row : order)
    steps[0].push_back(flat_task(scramble_wr, {BlockId(1, 0, 0), BlockId(0, row, 0)}));
  return schedule_of(std::move(blocks), 1, {1, 1}, std::move(steps));
}

/// Misses of Belady's rule in a memory of so many blocks, counted by looking ahead.
std::int64_t fewest_misses(const std::vector<std::int64_t>& order, std::size_t room) {
  std::set<std::int64_t> here;
  std::int64_t misses = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (here.contains(order[i])) continue;
    ++misses;
    const auto next_use = [&](std::int64_t block) {
      return std::find(order.begin() + static_cast<std::ptrdiff_t>(i), order.end(), block) -
             order.begin();
    };
    if (here.size() == room) {
      here.erase(*std::max_element(here.begin(), here.end(), [&](std::int64_t a, std::int64_t b) {
        return next_use(a) < next_use(b);
      }));
    }
    here.insert(order[i]);
  }
  return misses;
}

TEST(StoragePlan, ReadsAsSeldomAsCanBe) {
  // A device with room for one block at a time: each use is a load from host memory.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    const std::int64_t count = 3 + dice.roll(20);
    const auto room = static_cast<std::size_t>(1 + dice.roll(count));
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < 40 + dice.roll(60); ++i) order.push_back(dice.roll(count));
    const Schedule schedule = readings(count, order);
    Machine machine = Machine::emulated(1, smallest_budget_bytes(schedule));
    machine.storage = {{1e9, 0}, {1e9, 0}, static_cast<std::int64_t>(room) * 256};
    const Plan plan = plan_of(schedule, machine, {.keep = Keep::nothing});
    ASSERT_EQ(check_plan(plan), "") << seed;
    EXPECT_EQ(plan.totals().reads, fewest_misses(order, room)) << seed;
    machine.storage->host_bytes = count * 256;
    const std::set<std::int64_t> used(order.begin(), order.end());
    EXPECT_EQ(plan_of(schedule, machine).totals().reads, std::ssize(used)) << "once, with room";
  }
}

TEST(StoragePlan, WritesEachResultOnceWhereHostMemoryHoldsAll) {
  for (int devices = 1; devices <= 3; ++devices) {
    Schedule schedule = cholesky_of(9, devices);
    schedule.blocks.keep_in_storage(kMatrixFamily);
    Machine machine = machine_of(devices, 12 * 256, 2);
    machine.storage = {{1e9, 0}, {1e9, 0}, schedule.blocks.count(kMatrixFamily) * 256};
    const Plan plan = plan_of(schedule, machine);
    EXPECT_EQ(check_plan(plan), "");
    EXPECT_EQ(plan.totals().reads, schedule.blocks.count(kMatrixFamily));
    EXPECT_EQ(plan.totals().writes, schedule.blocks.count(kMatrixFamily));
    EXPECT_GT(plan.totals().loads, plan.totals().reads) << "the devices hold few";
    // With a quarter of it there is more to read, and each tile is still written.
    machine.storage->host_bytes /= 4;
    const Plan small = plan_of(schedule, machine);
    EXPECT_EQ(check_plan(small), "");
    EXPECT_GT(small.totals().reads, plan.totals().reads);
    EXPECT_GE(small.totals().writes, plan.totals().writes);
  }
}

TEST(StoragePlan, NamesTheSmallestHostMemoryThatWorks) {
  Schedule schedule = readings(5, {0, 1, 2, 3, 4});
  Machine machine = Machine::emulated(1, 1 << 20);
  machine.storage = {{1e9, 0}, {1e9, 0}, 255};
  EXPECT_EQ(smallest_host_bytes(schedule, 1 << 20), 256);
  try {
    (void)plan_of(schedule, machine);
    FAIL() << "there is no room for a block";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("256 bytes"), std::string::npos) << error.what();
  }
  machine.storage->host_bytes = 256;
  EXPECT_EQ(check_plan(plan_of(schedule, machine)), "");
  schedule.own_places = true;
  EXPECT_THROW((void)plan_of(schedule, machine), Error);
}

TEST(StoragePlan, TakesTheTimeOfTheSlowestLink) {
  // Ten blocks of 256 bytes at 256 B/s from storage; the first load follows its read, and so on.
  const Schedule schedule = readings(10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  Machine machine = Machine::emulated(1, smallest_budget_bytes(schedule));
  machine.devices[0].host_to_device = machine.devices[0].device_to_host = {2560, 0};
  machine.storage = {{256, 0}, {512, 0}, 3 * 256};
  const Trace trace = simulate(plan_of(schedule, machine));
  std::vector<double> ends;
  for (const Span& span : trace.spans)
    if (span.kind == SpanKind::read) ends.push_back(span.end);
  ASSERT_EQ(ends.size(), 10U);
  for (std::size_t i = 0; i < ends.size(); ++i)
    EXPECT_NEAR(ends[i], static_cast<double>(i + 1), 1e-6) << "reads run ahead";
  EXPECT_NEAR(trace.seconds, 10.2, 0.01) << "and the last block is loaded, its result stored";
}

}  // namespace
}  // namespace strata::test
