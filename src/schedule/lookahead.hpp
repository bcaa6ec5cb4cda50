#pragma once
// Lookahead: the tasks of a schedule in program order, each operand with the position of its next
// use.
//
// Contract: positions count tasks from 0. The next use of a block is the next task *on the same
// device* that touches it, as far as it is within the window of the next
// `window` tasks (at least 1; whole steps are read, so it may be more); `kNever` otherwise. When a
// use comes into the window of a block whose last use has already been taken, `on_next_use(device,
// block index, position)` tells. Method: one pass. Each access remembers nothing; the last position
// of every block does, and fills in the entry of the earlier access when the later one arrives, so
// an access costs O(1).

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <vector>

#include "schedule/task.hpp"

namespace strata {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// A task's operands: out first, then the inputs; an operand that is named twice counts once.
struct Operands {
  std::array<BlockId, 3> ids{};
  int count = 0;

  explicit Operands(const Task& task) {
    add(task.out);
    for (int i = 0; i < task.input_count; ++i) add(task.inputs[static_cast<std::size_t>(i)]);
  }
  /// Which operand a block is.
  [[nodiscard]] int find(BlockId id) const noexcept {
    for (int i = 0; i < count; ++i) {
      if (ids[static_cast<std::size_t>(i)] == id) return i;
    }
    return -1;
  }

 private:
  void add(BlockId id) {
    if (find(id) < 0) ids[static_cast<std::size_t>(count++)] = id;
  }
};

class Lookahead {
 public:
  struct Entry {
    Task task;
    std::array<std::int64_t, 3> next_use{kNever, kNever, kNever};  ///< by operand
  };
  using OnNextUse = std::function<void(int device, std::int64_t block, std::int64_t position)>;

  Lookahead(const Schedule& schedule, std::int64_t window, OnNextUse on_next_use)
      : schedule_(schedule),
        window_(std::max<std::int64_t>(window, 1)),
        on_next_use_(std::move(on_next_use)),
        last_use_(static_cast<std::size_t>(schedule.blocks.count() * schedule.devices), -1) {}

  /// Takes the next task; false at the end of the schedule.
  bool take(Entry& entry) {
    while (step_ < schedule_.steps && static_cast<std::int64_t>(entries_.size()) < window_)
      read_step();
    if (entries_.empty()) return false;
    entry = entries_.front();
    entries_.pop_front();
    ++position_;
    return true;
  }
  /// The position of the task that was taken last.
  [[nodiscard]] std::int64_t position() const noexcept { return position_ - 1; }

 private:
  void read_step() {
    batch_.clear();
    schedule_.emit(step_++, batch_);
    for (const Task& task : batch_) {
      const std::int64_t position = position_ + static_cast<std::int64_t>(entries_.size());
      const Operands operands(task);
      for (int i = 0; i < operands.count; ++i) {
        note_use(task.device, operands.ids[static_cast<std::size_t>(i)], position);
      }
      entries_.push_back({task});
    }
  }

  void note_use(int device, BlockId id, std::int64_t position) {
    const std::int64_t block = schedule_.blocks.index(id);
    std::int64_t& last = last_use_[static_cast<std::size_t>(block * schedule_.devices + device)];
    if (last >= position_) {
      Entry& earlier = entries_[static_cast<std::size_t>(last - position_)];
      earlier.next_use[static_cast<std::size_t>(Operands(earlier.task).find(id))] = position;
    } else if (last >= 0) {
      on_next_use_(device, block, position);
    }
    last = position;
  }

  const Schedule& schedule_;
  std::int64_t window_;
  OnNextUse on_next_use_;
  std::vector<std::int64_t> last_use_;  // by block and device
  std::deque<Entry> entries_;
  std::vector<Task> batch_;
  std::int64_t step_ = 0;
  std::int64_t position_ = 0;  // of the first entry
};

}  // namespace strata
