// with_last_uses: each temporary block ends with the last task that touches it, and nothing else
// changes.

#include "schedule/last_uses.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/schedule/scramble.hpp"

namespace strata::test {
namespace {

/// A scrambled schedule without the hints that temporary blocks have of their own.
Schedule without_last_uses(Schedule schedule) {
  schedule.emit = [emit = std::move(schedule.emit)](std::int64_t step, TaskList& tasks) {
    const std::size_t first = tasks.tasks().size();
    emit(step, tasks);
    for (Task& task : tasks.tasks().subspan(first)) {
      for (TaskOperand& operand : tasks.operands(task)) {
        operand.hint =
            static_cast<Hint>(static_cast<int>(operand.hint) & ~static_cast<int>(Hint::last_use));
      }
    }
  };
  return schedule;
}

bool same_task(const Task& a, const Task& b) {
  return a.operation == b.operation && a.calls == b.calls && a.variant == b.variant &&
         a.device == b.device && a.urgent == b.urgent;
}

/// `hinted` is `plain` but for the hints of last use, of which each temporary block has one.
void expect_only_last_uses(const Schedule& plain, const Schedule& hinted, std::int64_t& ended) {
  ASSERT_EQ(hinted.steps, plain.steps);
  const std::vector<FlatTask> before = tasks_of(plain);
  const std::vector<FlatTask> after = tasks_of(hinted);
  ASSERT_EQ(after.size(), before.size());
  std::map<BlockId, std::size_t> last;
  for (std::size_t t = 0; t < before.size(); ++t) {
    for (const TaskOperand& operand : before[t].operands) last[operand.id] = t;
  }
  std::map<BlockId, int> hints;
  for (std::size_t t = 0; t < before.size(); ++t) {
    ASSERT_TRUE(same_task(after[t].task, before[t].task)) << t;
    ASSERT_EQ(after[t].operands.size(), before[t].operands.size());
    for (std::size_t i = 0; i < before[t].operands.size(); ++i) {
      const TaskOperand& operand = after[t].operands[i];
      ASSERT_EQ(operand.id, before[t].operands[i].id);
      const bool ends = has(operand.hint, Hint::last_use);
      const Hint rest = before[t].operands[i].hint;
      ASSERT_EQ(operand.hint, ends ? rest | Hint::last_use : rest);
      if (!ends) continue;
      ASSERT_EQ(plain.blocks.family(operand.id.family()).origin, Origin::temporary);
      ASSERT_EQ(last[operand.id], t) << plain.blocks.name(operand.id);
      ++hints[operand.id];
    }
  }
  for (const auto& [id, t] : last) {
    if (plain.blocks.family(id.family()).origin != Origin::temporary) continue;
    ASSERT_EQ(hints[id], 1) << plain.blocks.name(id);
    ++ended;
  }
}

TEST(LastUses, AreThoseOfTemporaryBlocksAndOfNoOther) {
  std::int64_t ended = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Schedule plain = without_last_uses(scramble_pair(seed).first);
    expect_only_last_uses(plain, with_last_uses(plain), ended);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(ended, 500);
}

TEST(LastUses, AStepIsTheSameWheneverAndWhereverItIsEmitted) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Schedule hinted = with_last_uses(without_last_uses(scramble_pair(seed).first));
    TaskList whole;  // steps after each other, in one list
    for (std::int64_t s = 0; s < hinted.steps; ++s) hinted.emit(s, whole);
    std::size_t at = 0;
    const std::span<const Task> tasks = std::as_const(whole).tasks();
    for (std::int64_t s = 0; s < hinted.steps; ++s) {
      for (int time = 0; time < 2; ++time) {
        TaskList alone;
        hinted.emit(s, alone);
        std::size_t t = at;
        for (const Task& task : std::as_const(alone).tasks()) {
          ASSERT_TRUE(same_task(task, tasks[t]));
          const auto here = std::as_const(alone).operands(task);
          const auto there = std::as_const(whole).operands(tasks[t]);
          for (std::size_t i = 0; i < here.size(); ++i) {
            ASSERT_EQ(here[i].id, there[i].id);
            ASSERT_EQ(here[i].hint, there[i].hint) << "seed " << seed << " step " << s;
          }
          ++t;
        }
        if (time == 1) at = t;
      }
    }
    ASSERT_EQ(at, tasks.size());
  }
}

TEST(LastUses, OfAPlanFreeSlotsWithoutStoringThem) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Schedule plain = without_last_uses(scramble_pair(seed).first);
    const auto hinted = std::make_shared<const Schedule>(with_last_uses(plain));
    Dice dice(seed);
    const Machine machine = scramble_machine(dice, *hinted);
    const Plan with(hinted, machine, {});
    ASSERT_EQ(check_plan(with), "") << seed;
    for (const ResidentBlock& block : with.end().devices[0].blocks) EXPECT_NE(block.identity, 0U);
  }
}

}  // namespace
}  // namespace strata::test
