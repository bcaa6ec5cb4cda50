#pragma once
// Lookahead: the tasks of a schedule in program order, each distinct block of a task with the
// position of its next use.
//
// Contract: positions count tasks from 0. The next use of a block is the next task *on the same
// device* that touches it, as far as it is within the window of the next `window` tasks (at least
// 1; whole steps are read, so it may be more); `kNever` otherwise. When a use comes into the window
// of a block whose last use has already been taken, `on_next_use(device, block index, position)`
// tells. If `anywhere`, the next uses on any device are followed, too, as those of one device more.
// What `take` hands out is valid until the next call.
//
// Method: one pass. The last use of every block on every device is remembered, and is filled in
// when the next one arrives, so an access costs O(1). The tasks of a step are a chunk; chunks that
// are done are used again.

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "schedule/task.hpp"

namespace strata {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// A block that a task touches: its operands with that block, taken together.
struct BlockUse {
  BlockId id;
  std::int64_t next_use = kNever;
  std::int64_t next_use_anywhere = kNever;  ///< on any device, where that is followed
  std::int32_t block = 0;                   ///< index in the table
  Access access = Access::read;
  Hint hint = Hint::none;
};

class Lookahead {
 public:
  struct Entry {
    const Task* task = nullptr;
    std::span<const TaskOperand> operands;
    std::span<const BlockUse> uses;         ///< in the order in which they first appear
    const std::uint32_t* use_of = nullptr;  ///< of each operand: which use it is
  };
  using OnNextUse = std::function<void(int device, std::int64_t block, std::int64_t position)>;

  /// From step `first_step` of the schedule on.
  Lookahead(const Schedule& schedule, std::int64_t first_step, std::int64_t window,
            OnNextUse on_next_use, bool anywhere = false);

  /// Takes the next task; false at the end of the schedule.
  bool take(Entry& entry);
  /// The position of the task that was taken last.
  [[nodiscard]] std::int64_t position() const noexcept { return taken_ - 1; }

 private:
  struct Chunk {
    TaskList tasks;
    std::vector<BlockUse> uses;
    std::vector<std::uint32_t> first_use;  // by task, and the end
    std::vector<std::uint32_t> use_of;     // by operand
    std::int64_t position = 0;             // of its first task
  };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  void read_step();
  void add_uses(Chunk& chunk, const Task& task);
  void note_use(int device, std::uint64_t use, std::int64_t position);

  const Schedule& schedule_;
  std::int64_t window_;
  OnNextUse on_next_use_;
  bool anywhere_;
  int places_;                           // devices, and that of all together
  std::vector<std::uint64_t> last_use_;  // by block and device: chunk, and use in it
  std::vector<std::uint32_t> stamp_;     // by block: its use in the task being read, …
  std::vector<std::int64_t> stamped_;    // … if this is the task's position
  std::deque<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::unique_ptr<Chunk>> idle_;
  std::uint64_t first_chunk_ = 0;  // the number of chunks_.front()
  std::size_t next_ = 0;           // the task of it that is taken next
  std::int64_t step_;
  std::int64_t taken_ = 0;
  std::int64_t read_ = 0;
};

}  // namespace strata
