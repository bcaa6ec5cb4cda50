// Lookahead and DeviceSlots: what the planner's choices rest on.

#include "schedule/lookahead.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "schedule/device_slots.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"

namespace strata::test {
namespace {

bool touches(const Task& task, int device, BlockId id) {
  return task.device == device && Operands(task).find(id) >= 0;
}

/// How many tasks have been read when task `k` is taken: whole steps, until `window` are known.
std::size_t known_end(const Schedule& schedule, std::size_t k, std::int64_t window) {
  std::vector<Task> tasks;
  for (std::int64_t s = 0; s < schedule.steps; ++s) {
    if (std::ssize(tasks) >= static_cast<std::int64_t>(k) + window) break;
    schedule.emit(s, tasks);
  }
  return tasks.size();
}

using Notice = std::tuple<int, std::int64_t, std::int64_t>;  // device, block, position

void expect_next_uses(const Schedule& schedule, std::int64_t window) {
  const std::vector<Task> tasks = tasks_of(schedule);
  std::vector<Notice> notices;
  Lookahead ahead(schedule, window, [&](int device, std::int64_t block, std::int64_t position) {
    notices.emplace_back(device, block, position);
  });
  std::size_t known_before = 0;
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    const std::size_t known = known_end(schedule, k, window);
    notices.clear();
    Lookahead::Entry entry;
    ASSERT_TRUE(ahead.take(entry));
    ASSERT_EQ(ahead.position(), static_cast<std::int64_t>(k));
    ASSERT_EQ(entry.task.out, tasks[k].out);
    const Operands operands(tasks[k]);
    for (int i = 0; i < operands.count; ++i) {
      const BlockId id = operands.ids[static_cast<std::size_t>(i)];
      std::int64_t expected = kNever;
      for (std::size_t p = known; p-- > k + 1;) {
        if (touches(tasks[p], tasks[k].device, id)) expected = static_cast<std::int64_t>(p);
      }
      ASSERT_EQ(entry.next_use[static_cast<std::size_t>(i)], expected) << k << ' ' << i;
    }
    // Of what came into sight now: the uses whose block was last used by a task already taken.
    std::vector<Notice> expected;
    for (std::size_t p = known_before; p < known; ++p) {
      const Operands uses(tasks[p]);
      for (int i = 0; i < uses.count; ++i) {
        const BlockId id = uses.ids[static_cast<std::size_t>(i)];
        std::size_t before = p;
        while (before > 0 && !touches(tasks[before - 1], tasks[p].device, id)) --before;
        if (before == 0 || before - 1 >= k) continue;  // never used, or still to be taken
        expected.emplace_back(tasks[p].device, schedule.blocks.index(id), p);
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

TEST(Lookahead, AWindowOfNothingStillSeesEveryTask) {
  const Schedule schedule = random_schedule(3);
  Lookahead ahead(schedule, 0, [](int, std::int64_t, std::int64_t) {});
  Lookahead::Entry entry;
  std::size_t tasks = 0;
  while (ahead.take(entry)) ++tasks;
  EXPECT_EQ(tasks, tasks_of(schedule).size());
}

TEST(Operands, CountABlockThatIsNamedTwiceOnce) {
  Task task;
  task.out = BlockId(0, 1, 1);
  task.inputs = {BlockId(0, 2, 1), BlockId(0, 2, 1)};
  task.input_count = 2;
  EXPECT_EQ(Operands(task).count, 2);
  EXPECT_EQ(Operands(task).find(BlockId(0, 2, 1)), 1);
  EXPECT_EQ(Operands(task).find(BlockId(0, 0, 0)), -1);
}

// ---- DeviceSlots

class SlotsTest : public ::testing::Test {
 protected:
  SlotsTest() {
    blocks.add({.name = "A", .rows = 8, .cols = 1, .tile_rows = 1, .tile_cols = 1});
    layout.slots = {{.offset = 0, .slot_bytes = 256, .count = 5}};
    layout.compute_queues = 1;
  }
  /// Puts block `b` into a free slot.
  static int put(DeviceSlots& slots, std::int64_t b, std::int64_t next_use, std::int64_t last_use,
                 bool dirty = false) {
    const int number = slots.take_free(0);
    slots.place(0, number, BlockId(0, b, 0), b);
    Slot& slot = slots.slot(0, number);
    slot.next_use = next_use;
    slot.last_use = last_use;
    slot.dirty = dirty;
    slots.release(0, number);
    return number;
  }
  /// The blocks in the order in which they leave.
  static std::vector<std::int64_t> evict_all(DeviceSlots& slots) {
    std::vector<std::int64_t> order;
    for (int victim = slots.victim(0); victim >= 0; victim = slots.victim(0)) {
      order.push_back(slots.slot(0, victim).block);
      slots.evict(0, victim);
    }
    return order;
  }

  BlockTable blocks;
  PlanLayout layout;
};

using Order = std::vector<std::int64_t>;

TEST_F(SlotsTest, CleanBlocksLeaveBeforeThePinnedOneBeforeDirtyOnes) {
  for (const Eviction eviction : {Eviction::furthest_next_use, Eviction::least_recently_used}) {
    DeviceSlots slots(layout, blocks, eviction);
    put(slots, 0, kNever, 0, true);
    put(slots, 1, kNever, 1);
    put(slots, 2, 3, 2);
    slots.set_pinned(0, slots.find(1), true);
    EXPECT_EQ(evict_all(slots), (Order{2, 1, 0}));
  }
}

TEST_F(SlotsTest, WithinAClassTheRuleDecidesAndTiesGoToTheOldest) {
  DeviceSlots furthest(layout, blocks, Eviction::furthest_next_use);
  DeviceSlots oldest(layout, blocks, Eviction::least_recently_used);
  for (DeviceSlots* slots : {&furthest, &oldest}) {
    put(*slots, 0, 50, 9);
    put(*slots, 1, kNever, 8);
    put(*slots, 2, 60, 7);
    put(*slots, 3, kNever, 6);
    put(*slots, 4, 10, 5);
  }
  EXPECT_EQ(evict_all(furthest), (Order{3, 1, 2, 0, 4}));
  EXPECT_EQ(evict_all(oldest), (Order{4, 3, 2, 1, 0}));
}

TEST_F(SlotsTest, AHeldBlockIsNeverAVictimEvenIfItsUseChanges) {
  DeviceSlots slots(layout, blocks, Eviction::furthest_next_use);
  const int held = put(slots, 0, kNever, 0);
  put(slots, 1, 5, 1);
  slots.hold(0, held);
  slots.set_next_use(0, 0, kNever - 1);
  slots.set_pinned(0, held, true);
  slots.set_pinned(0, held, false);
  EXPECT_EQ(evict_all(slots), Order{1});
  slots.release(0, held);
  EXPECT_EQ(evict_all(slots), Order{0});
  EXPECT_EQ(slots.victim(0), -1);
}

TEST_F(SlotsTest, ANewNextUseMovesABlockInTheRanking) {
  DeviceSlots slots(layout, blocks, Eviction::furthest_next_use);
  put(slots, 0, kNever, 0);
  put(slots, 1, 70, 1);
  slots.set_next_use(0, 0, 20);
  slots.set_next_use(0, 7, 20);  // not here: nothing happens
  EXPECT_EQ(evict_all(slots), (Order{1, 0}));
}

TEST_F(SlotsTest, GivesOutEverySlotOnceAndGetsItBackByDrop) {
  DeviceSlots slots(layout, blocks, Eviction::furthest_next_use);
  std::vector<int> numbers;
  for (std::int64_t b = 0; b < 5; ++b) numbers.push_back(put(slots, b, kNever, b));
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(slots.take_free(0), -1);
  slots.drop(0, 2);
  EXPECT_EQ(slots.find(2), -1);
  EXPECT_EQ(slots.take_free(0), 2);
  EXPECT_EQ(slots.take_free(0), -1);
  slots.evict(0, 4);
  EXPECT_EQ(slots.find(4), -1);
  EXPECT_EQ(slots.take_free(0), -1) << "an evicted slot belongs to who evicted";
}

}  // namespace
}  // namespace strata::test
