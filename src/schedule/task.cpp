#include "schedule/task.hpp"

#include <tuple>

#include "base/check.hpp"
#include "schedule/complex_work.hpp"

namespace strata {

std::string to_string(const Elements& elements) {
  std::string all;
  bool same = true;
  for (int i = 0; i < elements.size(); ++i) {
    if (i > 0) all += " × ";
    all += to_string(elements[i]);
    same = same && elements[i] == elements[0];
  }
  return same && elements.size() > 0 ? std::string(to_string(elements[0])) : all;
}

Task& TaskList::add_calls(const Operation& operation, int device,
                          std::span<const TaskOperand> operands, std::uint32_t variant) {
  const auto per_call = static_cast<std::size_t>(operation.operands);
  require(!operands.empty() && operands.size() % per_call == 0, ErrorKind::misuse, "schedule",
          "{} takes {} operands, not {}", operation.name, operation.operands, operands.size());
  Task& task = tasks_.emplace_back();
  task.operation = &operation;
  task.first = static_cast<std::uint32_t>(operands_.size());
  task.calls = static_cast<std::uint32_t>(operands.size() / per_call);
  task.variant = variant;
  task.device = static_cast<std::uint16_t>(device);
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  return task;
}

Task& TaskList::add(const Operation& operation, int device,
                    std::initializer_list<TaskOperand> operands, std::uint32_t variant) {
  return add_calls(operation, device, {operands.begin(), operands.size()}, variant);
}

void TaskList::add_call(std::initializer_list<TaskOperand> operands) {
  Task& task = tasks_.back();
  require(
      std::ssize(operands) == task.operation->operands && task.more_written + task.more_read == 0,
      ErrorKind::misuse, "schedule", "{} takes {} operands, not {}", task.operation->name,
      task.operation->operands, operands.size());
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  ++task.calls;
}

void TaskList::add_more(std::span<const TaskOperand> written, std::span<const TaskOperand> read) {
  Task& task = tasks_.back();
  require(task.calls == 1 && task.more_written + task.more_read == 0 &&
              written.size() <= UINT16_MAX && read.size() <= UINT16_MAX,
          ErrorKind::misuse, "schedule", "{} with {} calls, and {} and {} operands more",
          task.operation->name, task.calls, written.size(), read.size());
  operands_.insert(operands_.end(), written.begin(), written.end());
  operands_.insert(operands_.end(), read.begin(), read.end());
  task.more_written = static_cast<std::uint16_t>(written.size());
  task.more_read = static_cast<std::uint16_t>(read.size());
}

double work_of(const BlockTable& blocks, const Task& task, std::span<const TaskOperand> operands) {
  if (task.work > 0) return task.work;
  const auto count = static_cast<std::size_t>(task.operation->operands);
  std::array<BlockExtent, kOperandsMax> extents;
  double work = 0;
  for (std::size_t call = 0; call < task.calls * count; call += count) {
    for (std::size_t i = 0; i < count; ++i) extents[i] = blocks.extent(operands[call + i].id);
    work += task.operation->work({extents.data(), count}, task.variant);
  }
  return work_factor(blocks.element(operands.front().id)) * work;
}

Elements elements_of(const BlockTable& blocks, const Task& task,
                     std::span<const TaskOperand> operands) {
  Elements elements;
  for (int i = 0; i < task.operation->operands; ++i)
    elements.push_back(blocks.element(operands[static_cast<std::size_t>(i)].id));
  return elements;
}

bool same_work(const Schedule& a, const Schedule& b) {
  const auto shape = [](const Schedule& of) {
    return std::tie(of.devices, of.steps, of.coarse_slots, of.few_slots, of.own_places, of.resident,
                    of.operands, of.blocks);
  };
  if (shape(a) != shape(b)) return false;
  TaskList of_a;
  TaskList of_b;
  for (std::int64_t step = 0; step < a.steps; ++step) {
    of_a.clear();
    of_b.clear();
    a.emit(step, of_a);
    b.emit(step, of_b);
    if (of_a != of_b) return false;
  }
  return true;
}

}  // namespace strata
