#pragma once
// The steps of a plan and the tasks of a schedule, one by one: what proofs and mutations of plans
// work on.

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/plan.hpp"

namespace strata::test {

struct FlatStep {
  Step step;
  std::vector<BlockId> operands;
  std::vector<std::int32_t> slots;
  std::vector<Wait> waits;
};

inline std::vector<FlatStep> flatten(const Plan& plan) {
  std::vector<FlatStep> steps;
  PlanReader reader(plan);
  PlanWindow window;
  while (reader.next(window)) {
    for (const Step& step : window.steps) {
      const auto operands = window.operands_of(step);
      const auto waits = window.waits_of(step);
      steps.push_back({step,
                       {operands.begin(), operands.end()},
                       {window.slots_of(step), window.slots_of(step) + operands.size()},
                       {waits.begin(), waits.end()}});
    }
  }
  return steps;
}

/// A task with its operands.
struct FlatTask {
  Task task;
  std::vector<TaskOperand> operands;

  [[nodiscard]] bool touches(BlockId id) const {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const TaskOperand& operand) { return operand.id == id; });
  }
};

/// The tasks of a schedule from a step on.
inline std::vector<FlatTask> tasks_of(const Schedule& schedule, std::int64_t first_step = 0) {
  std::vector<FlatTask> all;
  for (std::int64_t s = first_step; s < schedule.steps; ++s) {
    TaskList list;
    schedule.emit(s, list);
    for (const Task& task : std::as_const(list).tasks()) {
      const auto operands = std::as_const(list).operands(task);
      all.push_back({task, {operands.begin(), operands.end()}});
    }
  }
  return all;
}

}  // namespace strata::test
