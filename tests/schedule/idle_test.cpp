// The policy by which the longest idle leaves: clean or not, unless tasks retain it, on devices and
// in host memory.

#include <gtest/gtest.h>

#include <vector>

#include "session/policy.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/small_plans.hpp"

namespace strata::test {
namespace {

constexpr Operation kChangeIt{
    .name = "change",
    .operands = 1,
    .access = {Access::read_write},
    .work = [](std::span<const BlockExtent>, std::uint32_t) { return 1.0; }};
constexpr Operation kLookAt{
    .name = "look",
    .operands = 1,
    .access = {Access::read},
    .work = [](std::span<const BlockExtent>, std::uint32_t) { return 1.0; }};

struct BlockInTurn {
  std::int64_t block = 0;
  bool changes = false;
  Hint hint = Hint::none;
  int device = 0;
};

/// A task for each use, of blocks of 2 × 2 doubles, each a slot of 256 bytes.
Schedule schedule_of_uses(const std::vector<BlockInTurn>& uses, bool in_storage, int devices = 1) {
  Schedule schedule;
  schedule.devices = devices;
  schedule.blocks.add({.name = "A",
                       .rows = 2,
                       .cols = 12,
                       .tile_rows = 2,
                       .tile_cols = 2,
                       .in_storage = in_storage});
  schedule.operands = {1};
  schedule.steps = std::ssize(uses);
  schedule.emit = [uses](std::int64_t step, TaskList& tasks) {
    const BlockInTurn& use = uses[static_cast<std::size_t>(step)];
    tasks.add(use.changes ? kChangeIt : kLookAt, use.device,
              {{BlockId(0, 0, use.block), use.hint}});
  };
  return schedule;
}

PlanTotals totals_by(const Schedule& schedule, Policy policy, std::int64_t slots,
                     std::int64_t slots_of_host = 0) {
  Machine machine = machine_of(schedule.devices, 256 * slots, 1);
  if (slots_of_host > 0) machine.storage = {{1e9, 0}, {1e9, 0}, 256 * slots_of_host};
  const Plan plan = plan_of(schedule, machine, options_of(policy));
  EXPECT_EQ(check_plan(plan), "");
  return plan.totals();
}

TEST(LongestIdle, LeavesAlsoWhereItHasToBeWrittenBack) {
  const Schedule schedule =
      schedule_of_uses({{.block = 0, .changes = true}, {1}, {2}, {1}, {2}}, false);
  EXPECT_EQ(totals_by(schedule, Policy::idle, 2).loads, 3);
  EXPECT_EQ(totals_by(schedule, Policy::v2, 2).loads, 5) << "there block 0 stays to the end";
}

TEST(LongestIdle, StaysWhereTasksRetainIt) {
  const std::vector<BlockInTurn> uses{{.block = 0, .hint = Hint::retain},
                                      {1},
                                      {2},
                                      {.block = 0, .hint = Hint::release},
                                      {3},
                                      {4},
                                      {0}};
  EXPECT_EQ(totals_by(schedule_of_uses(uses, false), Policy::idle, 2).loads, 6);
  std::vector<BlockInTurn> never = uses;
  never[0].hint = Hint::none;
  EXPECT_EQ(totals_by(schedule_of_uses(never, false), Policy::idle, 2).loads, 7);
}

TEST(LongestIdle, StaysInHostMemoryWhereADeviceRetainsIt) {
  // A device has room for one block.
  const std::vector<BlockInTurn> uses{{.block = 0, .hint = Hint::retain},
                                      {1},
                                      {2},
                                      {.block = 0, .hint = Hint::release},
                                      {3},
                                      {4},
                                      {0}};
  const PlanTotals retained = totals_by(schedule_of_uses(uses, true), Policy::idle, 1, 2);
  EXPECT_EQ(retained.reads, 6);
  EXPECT_EQ(retained.loads, 7);
  std::vector<BlockInTurn> never = uses;
  never[0].hint = Hint::none;
  EXPECT_EQ(totals_by(schedule_of_uses(never, true), Policy::idle, 1, 2).reads, 7);
}

TEST(LongestIdle, StaysInHostMemoryUntilAllDevicesReleaseIt) {
  std::vector<BlockInTurn> uses{{.block = 0, .hint = Hint::retain, .device = 0},
                                {.block = 0, .hint = Hint::retain, .device = 1},
                                {.block = 0, .hint = Hint::release, .device = 0},
                                {.block = 1, .device = 0},
                                {.block = 2, .device = 0},
                                {.block = 0, .device = 0}};
  EXPECT_EQ(totals_by(schedule_of_uses(uses, true, 2), Policy::idle, 1, 2).reads, 3);
  uses[1].hint = Hint::none;
  EXPECT_EQ(totals_by(schedule_of_uses(uses, true, 2), Policy::idle, 1, 2).reads, 4);
}

TEST(LongestIdle, LeavesHostMemoryWhileItIsWritten) {
  // What was written last is wanted first, as by stripes that go forth and back.
  std::vector<BlockInTurn> uses;
  for (int sweep = 0; sweep < 4; ++sweep)
    for (std::int64_t i = 0; i < 6; ++i)
      uses.push_back({.block = sweep % 2 == 0 ? i : 5 - i, .changes = true});
  const PlanTotals totals = totals_by(schedule_of_uses(uses, true), Policy::idle, 1, 3);
  // When a sweep turns back, one block is on the device and two are in host memory, whose third
  // slot is for what comes.
  EXPECT_EQ(totals.reads, 6 + 3 * 3);
}

}  // namespace
}  // namespace strata::test
