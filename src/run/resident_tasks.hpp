#pragma once
// ResidentTasks: the tasks of a schedule whose blocks have places for good, with all that is needed
// to issue them again and again.
//
// Contract: tasks are added in program order, each for a queue; each waits for those on other
// queues that it depends on: whoever wrote its operands last, and, of what it writes, whoever read
// it since. Waits are events that are recorded behind all that their queue has been given so far,
// so that one serves for many; they point backwards. A block has a place on each device that uses
// it: what another device has written last is copied there. A task that several devices carry out
// together leaves what it writes on all of them.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "kernels/shared_call.hpp"
#include "schedule/task.hpp"

namespace strata {

class ResidentTasks {
 public:
  struct Entry {
    const Operation* operation;  ///< null: a copy, of the second view to the first, or just waits
    KernelFunction kernel;
    std::uint32_t variant;
    int queue;
    BlockId first;  ///< of its operands
    double work;    ///< in the operation's unit
    std::uint32_t first_wait, waits;
    std::size_t first_view, views;
    int operands;  ///< of a call
  };
  struct Wait {
    std::size_t event;  ///< its number
    int queue;          ///< whose it is
    bool records;       ///< it is recorded now
  };

  /// Queues are numbered device by device, `queues` of each.
  ResidentTasks(const BlockTable& blocks, int queues, int devices = 1);
  /// For a queue of the task's device.
  void add(int queue, const Task& task, std::span<const TaskOperand> operands,
           KernelFunction kernel, std::span<const BlockView> views);
  /// The device whose value of a block has to be copied to `device` before it is used there; −1:
  /// its own is the latest.
  [[nodiscard]] int source_of(BlockId id, int device) const;
  /// The device that has written a block last; −1: none has, or there is but one.
  [[nodiscard]] int writer_of(BlockId id) const {
    return writer_.empty() ? -1 : writer_[static_cast<std::size_t>(blocks_.index(id))];
  }
  /// A device of those that carry out a task together.
  struct Sharer {
    int device;
    int queue;
    std::vector<BlockView> views;  ///< of its own operands
  };
  /// One task of all of these (kernels/shared_call.hpp): for each phase an entry of each; between
  /// phases their queues wait for each other. Afterwards all have what is written.
  void add_shared(std::span<const Sharer> sharers, const Task& task,
                  std::span<const TaskOperand> operands, KernelFunction kernel);
  void add_copy(int queue, BlockId id, int from_device, const BlockView& from, int to_device,
                const BlockView& to);

  /// No more tasks: lets go of what only adding needs.
  void finish();

  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }
  /// Whether devices wait for each other within kernels.
  [[nodiscard]] bool has_shared() const noexcept { return has_shared_; }
  [[nodiscard]] std::size_t events() const noexcept { return events_; }
  [[nodiscard]] std::span<const Wait> waits(const Entry& entry) const {
    return std::span(waits_).subspan(entry.first_wait, entry.waits);
  }
  [[nodiscard]] KernelCalls calls(const Entry& entry) const {
    return {std::span(views_).subspan(entry.first_view, entry.views), entry.operands};
  }

 private:
  /// Task number `number`, from 1 on, of a queue; 0: none.
  struct Turn {
    int queue = 0;
    std::int64_t number = 0;
  };
  /// The last task that wrote a block, and the last one that has read it since: a list.
  struct Uses {
    Turn writer;
    std::int64_t reader = -1;
  };
  struct Reader {
    Turn turn;
    std::int64_t next;
  };
  /// The latest event of a queue, and the last task before it.
  struct Recorded {
    std::size_t event = 0;
    std::int64_t number = 0;
  };

  void wait_for_operands(int queue, int device, const Task& task,
                         std::span<const TaskOperand> operands);
  /// Behind all that the queues of these have been given.
  void meet(std::span<const Sharer> sharers);
  void wait_to_read(const Turn& turn, Uses& uses);
  void wait_to_write(const Turn& turn, Uses& uses);
  void wait_for(int queue, const Turn& turn);
  [[nodiscard]] std::size_t index_of(BlockId id, int device) const;

  const BlockTable& blocks_;
  std::vector<Entry> entries_;
  std::vector<Wait> waits_;
  std::vector<BlockView> views_;
  std::size_t events_ = 0;
  bool has_shared_ = false;
  // While tasks are added, with several queues:
  std::vector<std::int64_t> issued_;  // tasks, by queue
  std::vector<Recorded> recorded_;
  std::vector<Uses> uses_;    // by block, of each device
  std::vector<int> writer_;   // by block, with several devices: who has written it last; −1: none
  std::vector<char> copied_;  // as uses_: also who has got it from there
  std::vector<Reader> readers_;
  std::vector<std::vector<std::int64_t>> seen_;  // what a queue has waited for of each other
};

}  // namespace strata
