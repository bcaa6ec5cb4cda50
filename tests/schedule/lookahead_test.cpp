// Lookahead and DeviceSlots: what the planner's choices rest on.

#include "schedule/lookahead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/device_slots.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"

namespace strata::test {
namespace {

bool touches(const FlatTask& flat, int device, BlockId id) {
  return flat.task.device == device && flat.touches(id);
}

/// The distinct blocks of a task, in the order in which they first appear.
std::vector<BlockId> blocks_of(const FlatTask& flat) {
  std::vector<BlockId> ids;
  for (const TaskOperand& operand : flat.operands) {
    if (std::find(ids.begin(), ids.end(), operand.id) == ids.end()) ids.push_back(operand.id);
  }
  return ids;
}

/// How many tasks have been read when task `k` is taken: whole steps, until `window` are known.
std::size_t known_end(const Schedule& schedule, std::size_t k, std::int64_t window) {
  TaskList tasks;
  for (std::int64_t s = 0; s < schedule.steps; ++s) {
    if (std::ssize(tasks.tasks()) >= static_cast<std::int64_t>(k) + window) break;
    schedule.emit(s, tasks);
  }
  return tasks.tasks().size();
}

using Notice = std::tuple<int, std::int64_t, std::int64_t>;  // device, block, position

void expect_next_uses(const Schedule& schedule, std::int64_t window) {
  const std::vector<FlatTask> tasks = tasks_of(schedule);
  std::vector<Notice> notices;
  Lookahead ahead(schedule, 0, window, [&](int device, std::int64_t block, std::int64_t position) {
    notices.emplace_back(device, block, position);
  });
  std::size_t known_before = 0;
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    const std::size_t known = known_end(schedule, k, window);
    notices.clear();
    Lookahead::Entry entry;
    ASSERT_TRUE(ahead.take(entry));
    ASSERT_EQ(ahead.position(), static_cast<std::int64_t>(k));
    const std::vector<BlockId> ids = blocks_of(tasks[k]);
    ASSERT_EQ(entry.uses.size(), ids.size());
    ASSERT_EQ(entry.operands.size(), tasks[k].operands.size());
    for (std::size_t i = 0; i < entry.operands.size(); ++i)
      ASSERT_EQ(entry.uses[entry.use_of[i]].id, tasks[k].operands[i].id);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const BlockId id = ids[i];
      ASSERT_EQ(entry.uses[i].id, id);
      ASSERT_EQ(entry.uses[i].block, schedule.blocks.index(id));
      std::int64_t expected = kNever;
      for (std::size_t p = known; p-- > k + 1;) {
        if (touches(tasks[p], tasks[k].task.device, id)) expected = static_cast<std::int64_t>(p);
      }
      ASSERT_EQ(entry.uses[i].next_use, expected) << k << ' ' << i;
    }
    // Notices of what came into sight now: the uses whose block was last used by a task already
    // taken.
    std::vector<Notice> expected;
    for (std::size_t p = known_before; p < known; ++p) {
      const int device = tasks[p].task.device;
      for (const BlockId id : blocks_of(tasks[p])) {
        std::size_t before = p;
        while (before > 0 && !touches(tasks[before - 1], device, id)) --before;
        if (before == 0 || before - 1 >= k) continue;  // never used, or still to be taken
        expected.emplace_back(device, schedule.blocks.index(id), p);
      }
    }
    ASSERT_EQ(notices, expected) << k;
    known_before = known;
  }
  Lookahead::Entry entry;
  EXPECT_FALSE(ahead.take(entry));
}

TEST(Lookahead, AgreesWithSearchingTheWholeSchedule) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Schedule schedule = random_schedule(seed);
    for (const std::int64_t window : {1, 2, 3, 7, 40, 1 << 18}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " window " << window);
      expect_next_uses(schedule, window);
    }
  }
}

TEST(Lookahead, FollowsTheNextUseOnAnyDeviceWhereAsked) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Schedule schedule = random_schedule(seed);
    for (const std::int64_t window : {1, 3, 40, 1 << 18}) {
      std::map<std::int64_t, std::int64_t> known;  // by block: what was said last
      Lookahead ahead(
          schedule, 0, window,
          [&](int device, std::int64_t block, std::int64_t position) {
            if (device == schedule.devices) known[block] = position;
          },
          true);
      Lookahead::Entry entry;
      for (std::int64_t position = 0; ahead.take(entry); ++position) {
        for (const BlockUse& use : entry.uses) {
          const auto before = known.find(use.block);
          if (before != known.end()) {
            ASSERT_EQ(before->second, position) << "seed " << seed << " window " << window;
          }
          known[use.block] = use.next_use_anywhere;
        }
      }
      for (const auto& [block, position] : known)
        ASSERT_EQ(position, kNever) << "what is not used again, seed " << seed;
    }
  }
}

TEST(Lookahead, AWindowOfNothingStillSeesEveryTask) {
  const Schedule schedule = random_schedule(3);
  Lookahead ahead(schedule, 0, 0, [](int, std::int64_t, std::int64_t) {});
  Lookahead::Entry entry;
  std::size_t tasks = 0;
  while (ahead.take(entry)) ++tasks;
  EXPECT_EQ(tasks, tasks_of(schedule).size());
}

TEST(Lookahead, TakesTheOperandsWithOneBlockTogether) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 9, .cols = 9, .tile_rows = 3, .tile_cols = 3});
  const BlockId c(0, 1, 1);
  const BlockId a(0, 2, 1);
  const FlatTask two_calls = flat_task(
      gemm, {c, a, {a, Hint::release}, {BlockId(0, 0, 0), Hint::last_write}, a, BlockId(0, 0, 1)});
  const FlatTask once = flat_task(syrk, {a, a});
  const Schedule schedule = schedule_of(blocks, 1, {4}, {{two_calls, once}});
  Lookahead ahead(schedule, 0, 10, [](int, std::int64_t, std::int64_t) {});
  Lookahead::Entry entry;
  ASSERT_TRUE(ahead.take(entry));
  ASSERT_EQ(entry.uses.size(), 4U);
  EXPECT_EQ(entry.uses[0].access, Access::read_write);
  EXPECT_EQ(entry.uses[1].access, Access::read);
  EXPECT_EQ(entry.uses[1].hint, Hint::release);
  EXPECT_EQ(entry.uses[1].next_use, 1);
  EXPECT_EQ(entry.uses[2].hint, Hint::last_write);
  EXPECT_EQ(std::vector(entry.use_of, entry.use_of + 6),
            (std::vector<std::uint32_t>{0, 1, 1, 2, 1, 3}));
  ASSERT_TRUE(ahead.take(entry));
  ASSERT_EQ(entry.uses.size(), 1U);
  EXPECT_EQ(entry.uses[0].access, Access::read_write) << "read by one operand, written by another";
}

// ---- DeviceSlots

class SlotsTest : public ::testing::Test {
 protected:
  SlotsTest() {
    blocks.add({.name = "A", .rows = 8, .cols = 1, .tile_rows = 1, .tile_cols = 1});
    layout.class_bytes = {256};
    layout.devices.resize(1);
    for (int s = 0; s < 5; ++s) layout.devices[0].slots.push_back({256 * s, 0});
  }
  /// Puts block `b` into a free slot.
  int put(DeviceSlots& slots, std::int64_t b, std::int64_t next_use, std::int64_t last_use,
          bool owned = false) {
    const int number = slots.take_free(0);
    slots.place(number, BlockId(0, b, 0), b);
    Slot& slot = slots.slot(number);
    slot.next_use = next_use;
    slot.last_use = last_use;
    if (owned)
      directory.set_owner(b, 0);
    else
      directory.set_backed(b, true);
    slots.release(number);
    return number;
  }
  /// The blocks in the order in which they leave.
  static std::vector<std::int64_t> evict_all(DeviceSlots& slots) {
    std::vector<std::int64_t> order;
    for (int victim = slots.victim(0); victim >= 0; victim = slots.victim(0)) {
      order.push_back(slots.slot(victim).block);
      slots.evict(victim);
    }
    return order;
  }

  BlockTable blocks;
  PlanLayout layout;
  BlockDirectory directory{8, 1};
};

using BlockOrder = std::vector<std::int64_t>;

TEST_F(SlotsTest, CleanBlocksLeaveBeforeTheRetainedOneBeforeDirtyOnes) {
  for (const Eviction eviction : {Eviction::furthest_next_use, Eviction::least_recently_used}) {
    DeviceSlots slots(layout, 0, directory, blocks.count(), eviction);
    put(slots, 0, kNever, 0, true);
    put(slots, 1, kNever, 1);
    put(slots, 2, 3, 2);
    slots.set_retained(slots.find(1), true);
    EXPECT_EQ(evict_all(slots), (BlockOrder{2, 1, 0}));
  }
}

TEST_F(SlotsTest, WithinAClassTheRuleDecidesAndTiesGoToTheOldest) {
  DeviceSlots furthest(layout, 0, directory, blocks.count(), Eviction::furthest_next_use);
  DeviceSlots oldest(layout, 0, directory, blocks.count(), Eviction::least_recently_used);
  for (DeviceSlots* slots : {&furthest, &oldest}) {
    put(*slots, 0, 50, 9);
    put(*slots, 1, kNever, 8);
    put(*slots, 2, 60, 7);
    put(*slots, 3, kNever, 6);
    put(*slots, 4, 10, 5);
  }
  EXPECT_EQ(evict_all(furthest), (BlockOrder{3, 1, 2, 0, 4}));
  EXPECT_EQ(evict_all(oldest), (BlockOrder{4, 3, 2, 1, 0}));
}

TEST_F(SlotsTest, AHeldBlockIsNeverAVictimEvenIfItsUseChanges) {
  DeviceSlots slots(layout, 0, directory, blocks.count(), Eviction::furthest_next_use);
  const int held = put(slots, 0, kNever, 0);
  put(slots, 1, 5, 1);
  slots.hold(held);
  slots.set_next_use(0, kNever - 1);
  slots.set_retained(held, true);
  slots.set_retained(held, false);
  EXPECT_EQ(evict_all(slots), BlockOrder{1});
  slots.release(held);
  EXPECT_EQ(evict_all(slots), BlockOrder{0});
  EXPECT_EQ(slots.victim(0), -1);
}

TEST_F(SlotsTest, ANewNextUseMovesABlockInTheRanking) {
  DeviceSlots slots(layout, 0, directory, blocks.count(), Eviction::furthest_next_use);
  put(slots, 0, kNever, 0);
  put(slots, 1, 70, 1);
  slots.set_next_use(0, 20);
  slots.set_next_use(7, 20);  // not here: nothing happens
  EXPECT_EQ(evict_all(slots), (BlockOrder{1, 0}));
}

TEST_F(SlotsTest, GivesOutEverySlotOnceAndGetsItBackByDrop) {
  DeviceSlots slots(layout, 0, directory, blocks.count(), Eviction::furthest_next_use);
  std::vector<int> numbers;
  for (std::int64_t b = 0; b < 5; ++b) numbers.push_back(put(slots, b, kNever, b));
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(slots.take_free(0), -1);
  slots.drop(2);
  EXPECT_EQ(slots.find(2), -1);
  EXPECT_EQ(slots.take_free(0), 2);
  EXPECT_EQ(slots.take_free(0), -1);
  slots.evict(4);
  EXPECT_EQ(slots.find(4), -1);
  EXPECT_EQ(slots.take_free(0), -1) << "an evicted slot belongs to who evicted";
}

}  // namespace
}  // namespace strata::test
