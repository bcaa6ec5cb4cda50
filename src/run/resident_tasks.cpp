#include "run/resident_tasks.hpp"

namespace strata {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

ResidentTasks::ResidentTasks(const BlockTable& blocks, int queues) : blocks_(blocks) {
  if (queues == 1) return;
  issued_.assign(at(queues), 0);
  recorded_.resize(at(queues));
  seen_.assign(at(queues), std::vector<std::int64_t>(at(queues), 0));
  uses_.resize(at(blocks.count()));
}

void ResidentTasks::add(int queue, const Task& task, std::span<const TaskOperand> operands,
                        KernelFunction kernel, std::span<const BlockView> views) {
  const auto first_wait = static_cast<std::uint32_t>(waits_.size());
  if (!issued_.empty()) wait_for_operands(queue, task, operands);
  entries_.push_back({.operation = task.operation,
                      .kernel = kernel,
                      .variant = task.variant,
                      .queue = queue,
                      .first = operands.front().id,
                      .work = work_of(blocks_, task, operands),
                      .first_wait = first_wait,
                      .waits = static_cast<std::uint32_t>(waits_.size()) - first_wait,
                      .first_view = views_.size(),
                      .views = views.size(),
                      .operands = operands_of_call(*task.operation, task.calls, views.size())});
  views_.insert(views_.end(), views.begin(), views.end());
}

void ResidentTasks::finish() {
  issued_ = {};
  recorded_ = {};
  uses_ = {};
  readers_ = {};
  seen_ = {};
}

void ResidentTasks::wait_for_operands(int queue, const Task& task,
                                      std::span<const TaskOperand> operands) {
  const Turn turn{queue, ++issued_[at(queue)]};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Uses& uses = uses_[at(blocks_.index(operands[i].id))];
    wait_for(queue, uses.writer);
    if (task.access_of(i) == Access::read) {
      readers_.push_back({turn, uses.reader});
      uses.reader = std::ssize(readers_) - 1;
      continue;
    }
    for (std::int64_t r = uses.reader; r >= 0; r = readers_[at(r)].next)
      wait_for(queue, readers_[at(r)].turn);
    uses = {turn, -1};
  }
}

void ResidentTasks::wait_for(int queue, const Turn& turn) {
  if (turn.number == 0 || turn.queue == queue) return;
  std::int64_t& seen = seen_[at(queue)][at(turn.queue)];
  if (seen >= turn.number) return;
  Recorded& last = recorded_[at(turn.queue)];
  const bool records = last.number < turn.number;
  if (records) last = {events_++, issued_[at(turn.queue)]};
  waits_.push_back({last.event, turn.queue, records});
  seen = last.number;
}

}  // namespace strata
