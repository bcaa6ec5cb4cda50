#include "schedule/lookahead.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr int kUseBits = 32;

Access both(Access a, Access b) {
  if (a == b) return a;
  return Access::read_write;  // a task that writes a block and reads it, too
}

}  // namespace

Lookahead::Lookahead(const Schedule& schedule, std::int64_t first_step, std::int64_t window,
                     OnNextUse on_next_use, bool anywhere)
    : schedule_(schedule),
      window_(std::max<std::int64_t>(window, 1)),
      on_next_use_(std::move(on_next_use)),
      anywhere_(anywhere),
      places_(schedule.devices + (anywhere ? 1 : 0)),
      last_use_(static_cast<std::size_t>(schedule.blocks.count() * places_), kNone),
      stamp_(static_cast<std::size_t>(schedule.blocks.count()), 0),
      stamped_(static_cast<std::size_t>(schedule.blocks.count()), -1),
      step_(first_step) {}

bool Lookahead::take(Entry& entry) {
  while (step_ < schedule_.steps && read_ - taken_ < window_) read_step();
  while (!chunks_.empty() && next_ == chunks_.front()->tasks.tasks().size()) {
    idle_.push_back(std::move(chunks_.front()));
    chunks_.pop_front();
    ++first_chunk_;
    next_ = 0;
  }
  if (chunks_.empty()) return false;
  const Chunk& chunk = *chunks_.front();
  const Task& task = chunk.tasks.tasks()[next_];
  entry.task = &task;
  entry.operands = chunk.tasks.operands(task);
  entry.use_of = chunk.use_of.data() + task.first;
  const std::uint32_t first = chunk.first_use[next_];
  entry.uses = {chunk.uses.data() + first, chunk.first_use[next_ + 1] - first};
  ++next_;
  ++taken_;
  return true;
}

void Lookahead::read_step() {
  std::unique_ptr<Chunk> fresh;
  if (idle_.empty()) {
    fresh = std::make_unique<Chunk>();
  } else {
    fresh = std::move(idle_.back());
    idle_.pop_back();
  }
  Chunk& chunk = *fresh;
  chunk.tasks.clear();
  chunk.uses.clear();
  chunk.first_use.clear();
  chunk.use_of.clear();
  chunk.position = read_;
  chunks_.push_back(std::move(fresh));
  schedule_.emit(step_++, chunk.tasks);
  const std::uint64_t number = first_chunk_ + chunks_.size() - 1;
  for (const Task& task : chunk.tasks.tasks()) {
    require(task.device < schedule_.devices, ErrorKind::misuse, "plan",
            "a task of {} is for device {} of {}", task.operation->name, task.device,
            schedule_.devices);
    const auto first = static_cast<std::uint32_t>(chunk.uses.size());
    chunk.first_use.push_back(first);
    add_uses(chunk, task);
    for (std::uint64_t use = first; use < chunk.uses.size(); ++use) {
      note_use(task.device, number << kUseBits | use, read_);
      if (anywhere_) note_use(schedule_.devices, number << kUseBits | use, read_);
    }
    ++read_;
  }
  chunk.first_use.push_back(static_cast<std::uint32_t>(chunk.uses.size()));
}

void Lookahead::add_uses(Chunk& chunk, const Task& task) {
  const std::span<const TaskOperand> operands = std::as_const(chunk.tasks).operands(task);
  const auto first = static_cast<std::uint32_t>(chunk.uses.size());
  std::size_t which = 0;
  for (const TaskOperand& operand : operands) {
    const auto block = static_cast<std::size_t>(schedule_.blocks.index(operand.id));
    const Access access = task.access_of(which++);
    if (stamped_[block] != read_) {
      stamped_[block] = read_;
      stamp_[block] = static_cast<std::uint32_t>(chunk.uses.size());
      chunk.uses.push_back(
          {operand.id, kNever, kNever, static_cast<std::int32_t>(block), access, operand.hint});
    } else {
      BlockUse& use = chunk.uses[stamp_[block]];
      use.access = both(use.access, access);
      use.hint = use.hint | operand.hint;
    }
    chunk.use_of.push_back(stamp_[block] - first);
  }
}

void Lookahead::note_use(int device, std::uint64_t use, std::int64_t position) {
  const Chunk& now = *chunks_.back();
  const std::int32_t block = now.uses[use & 0xffffffff].block;
  std::uint64_t& last =
      last_use_[static_cast<std::size_t>(block) * static_cast<std::size_t>(places_) +
                static_cast<std::size_t>(device)];
  if (last != kNone) {
    const std::uint64_t number = last >> kUseBits;
    const std::uint64_t index = last & 0xffffffff;
    // Some tasks of the chunk at the front have been taken.
    const bool gone = number < first_chunk_ ||
                      (number == first_chunk_ && index < chunks_.front()->first_use[next_]);
    if (gone) {
      on_next_use_(device, block, position);
    } else {
      BlockUse& before = chunks_[number - first_chunk_]->uses[index];
      (device == schedule_.devices ? before.next_use_anywhere : before.next_use) = position;
    }
  }
  last = use;
}

}  // namespace strata
