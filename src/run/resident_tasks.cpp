#include "run/resident_tasks.hpp"

#include "base/index.hpp"

namespace strata {

ResidentTasks::ResidentTasks(const BlockTable& blocks, int queues, int devices) : blocks_(blocks) {
  const int all = queues * devices;
  if (all == 1) return;
  issued_.assign(at(all), 0);
  recorded_.resize(at(all));
  seen_.assign(at(all), std::vector<std::int64_t>(at(all), 0));
  uses_.resize(at(blocks.count() * devices));
  if (devices == 1) return;
  writer_.assign(at(blocks.count()), -1);
  copied_.assign(uses_.size(), 0);
}

std::size_t ResidentTasks::index_of(BlockId id, int device) const {
  return at(blocks_.count() * device + blocks_.index(id));
}

int ResidentTasks::source_of(BlockId id, int device) const {
  if (writer_.empty()) return -1;
  const int writer = writer_[at(blocks_.index(id))];
  return writer == device || copied_[index_of(id, device)] != 0 ? -1 : writer;
}

void ResidentTasks::add(int queue, const Task& task, std::span<const TaskOperand> operands,
                        KernelFunction kernel, std::span<const BlockView> views) {
  const auto first_wait = static_cast<std::uint32_t>(waits_.size());
  if (!issued_.empty()) wait_for_operands(queue, task.device, task, operands);
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

void ResidentTasks::meet(std::span<const Sharer> sharers) {
  // All of these come before what any of them does next, so that no event is behind that.
  std::vector<Turn> turns;
  for (const Sharer& sharer : sharers) turns.push_back({sharer.queue, issued_[at(sharer.queue)]});
  for (const Sharer& sharer : sharers) {
    const auto first_wait = static_cast<std::uint32_t>(waits_.size());
    for (const Turn& turn : turns) wait_for(sharer.queue, turn);
    entries_.push_back({.operation = nullptr,
                        .kernel = nullptr,
                        .variant = 0,
                        .queue = sharer.queue,
                        .first = {},
                        .work = 0,
                        .first_wait = first_wait,
                        .waits = static_cast<std::uint32_t>(waits_.size()) - first_wait,
                        .first_view = views_.size(),
                        .views = 0,
                        .operands = 0});
  }
}

void ResidentTasks::add_shared(std::span<const Sharer> sharers, const Task& task,
                               std::span<const TaskOperand> operands, KernelFunction kernel) {
  has_shared_ = true;
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (task.access_of(i) != Access::read) written.push_back(i);
  const auto count = static_cast<int>(sharers.size());
  for (const SharePhase phase : {SharePhase::prepare, SharePhase::work, SharePhase::conclude}) {
    if (phase != SharePhase::prepare) meet(sharers);
    for (int rank = 0; rank < count; ++rank) {
      const Sharer& mine = sharers[at(rank)];
      const auto first_wait = static_cast<std::uint32_t>(waits_.size());
      // So those who come afterwards wait for the last phase.
      wait_for_operands(mine.queue, mine.device, task, operands);
      const std::size_t first_view = views_.size();
      views_.insert(views_.end(), mine.views.begin(), mine.views.end());
      for (int other = 0; other < count; ++other)
        for (const std::size_t i : written)
          if (other != rank) views_.push_back(sharers[at(other)].views[i]);
      const SharedCall call{phase, rank, count, static_cast<int>(written.size())};
      const bool works = phase == SharePhase::work && rank == 0;
      entries_.push_back({.operation = task.operation,
                          .kernel = kernel,
                          .variant = call.variant(),
                          .queue = mine.queue,
                          .first = operands.front().id,
                          .work = works ? work_of(blocks_, task, operands) : 0,
                          .first_wait = first_wait,
                          .waits = static_cast<std::uint32_t>(waits_.size()) - first_wait,
                          .first_view = first_view,
                          .views = views_.size() - first_view,
                          .operands = static_cast<int>(views_.size() - first_view)});
    }
  }
  for (const std::size_t i : written) {
    writer_[at(blocks_.index(operands[i].id))] = sharers.front().device;
    for (const Sharer& sharer : sharers) copied_[index_of(operands[i].id, sharer.device)] = 1;
  }
}

void ResidentTasks::add_copy(int queue, BlockId id, int from_device, const BlockView& from,
                             int to_device, const BlockView& to) {
  const auto first_wait = static_cast<std::uint32_t>(waits_.size());
  const Turn turn{queue, ++issued_[at(queue)]};
  wait_to_read(turn, uses_[index_of(id, from_device)]);
  wait_to_write(turn, uses_[index_of(id, to_device)]);
  copied_[index_of(id, to_device)] = 1;
  entries_.push_back({.operation = nullptr,
                      .kernel = nullptr,
                      .variant = 0,
                      .queue = queue,
                      .first = id,
                      .work = 0,
                      .first_wait = first_wait,
                      .waits = static_cast<std::uint32_t>(waits_.size()) - first_wait,
                      .first_view = views_.size(),
                      .views = 2,
                      .operands = 2});
  views_.insert(views_.end(), {to, from});
}

void ResidentTasks::finish() {
  issued_ = {};
  recorded_ = {};
  uses_ = {};
  readers_ = {};
  seen_ = {};
  copied_ = {};
}

void ResidentTasks::wait_for_operands(int queue, int device, const Task& task,
                                      std::span<const TaskOperand> operands) {
  const Turn turn{queue, ++issued_[at(queue)]};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Uses& uses = uses_[index_of(operands[i].id, device)];
    if (task.access_of(i) == Access::read) {
      wait_to_read(turn, uses);
      continue;
    }
    wait_to_write(turn, uses);
    if (writer_.empty()) continue;
    const std::int64_t block = blocks_.index(operands[i].id);
    writer_[at(block)] = device;
    for (std::size_t here = at(block); here < copied_.size(); here += at(blocks_.count()))
      copied_[here] = 0;
  }
}

void ResidentTasks::wait_to_read(const Turn& turn, Uses& uses) {
  wait_for(turn.queue, uses.writer);
  readers_.push_back({turn, uses.reader});
  uses.reader = std::ssize(readers_) - 1;
}

void ResidentTasks::wait_to_write(const Turn& turn, Uses& uses) {
  wait_for(turn.queue, uses.writer);
  for (std::int64_t r = uses.reader; r >= 0; r = readers_[at(r)].next)
    wait_for(turn.queue, readers_[at(r)].turn);
  uses = {turn, -1};
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
