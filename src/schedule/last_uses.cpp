#include "schedule/last_uses.hpp"

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

namespace strata {

Schedule with_last_uses(Schedule schedule) {
  const BlockTable& blocks = schedule.blocks;
  std::vector<bool> temporary;
  for (int f = 0; f < blocks.families(); ++f)
    temporary.push_back(blocks.family(f).origin == Origin::temporary);
  const auto is_temporary = [temporary](BlockId id) {
    return temporary[static_cast<std::size_t>(id.family())];
  };
  // By block: the last step that touches it.
  auto last = std::make_shared<std::vector<std::int32_t>>(blocks.count(), -1);
  TaskList tasks;
  for (std::int64_t step = 0; step < schedule.steps; ++step) {
    tasks.clear();
    schedule.emit(step, tasks);
    for (const Task& task : std::as_const(tasks).tasks()) {
      for (const TaskOperand& operand : std::as_const(tasks).operands(task)) {
        if (is_temporary(operand.id))
          (*last)[static_cast<std::size_t>(blocks.index(operand.id))] =
              static_cast<std::int32_t>(step);
      }
    }
  }
  schedule.emit = [emit = std::move(schedule.emit), is_temporary, table = blocks,
                   last = std::shared_ptr<const std::vector<std::int32_t>>(std::move(last))](
                      std::int64_t step, TaskList& list) {
    const std::size_t first = list.tasks().size();  // the list may hold other tasks already
    emit(step, list);
    std::unordered_set<std::uint64_t> ended;
    const std::span<Task> emitted = list.tasks().subspan(first);
    // From the last task to the first: of the blocks that end in this step, the first seen.
    for (std::size_t t = emitted.size(); t-- > 0;) {
      for (TaskOperand& operand : list.operands(emitted[t])) {
        if (!is_temporary(operand.id)) continue;
        if ((*last)[static_cast<std::size_t>(table.index(operand.id))] != step) continue;
        if (ended.insert(operand.id.bits).second) operand.hint = operand.hint | Hint::last_use;
      }
    }
  };
  return schedule;
}

}  // namespace strata
