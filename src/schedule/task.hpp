#pragma once
// Task and Schedule: what is to be computed, in program order.
//
// Contract: executing the tasks of a Schedule in order, on one thread, is the definition of a
// correct run. A task is one operation on one device with one or many calls, each of which names
// its operand blocks; the calls of a task may run at once, so no block that one of them writes is
// an operand of another. All calls of a task have operands of the same elements. A Schedule is
// generated lazily, step by step (a panel or a super-tile at a time): emitting step s twice gives
// the same tasks, and the n³/6 tasks of a factorization never exist at once.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "schedule/operation.hpp"

namespace strata {

/// What a task knows of the future of an operand. Flags; none changes a result.
enum class Hint : std::uint8_t {
  none = 0,
  last_write = 1,  ///< no later task writes the block: its value may go home (to its store) at once
  retain = 2,  ///< from now on the block should stay on the device as long as others can leave, …
  release = 4,   ///< … until a task says this
  last_use = 8,  ///< no later task uses the block, nor anybody after them: its value is dropped
  home = 16,     ///< the value that the task writes goes home, also if its family stays
};
[[nodiscard]] constexpr Hint operator|(Hint a, Hint b) noexcept {
  return static_cast<Hint>(static_cast<int>(a) | static_cast<int>(b));
}
[[nodiscard]] constexpr bool has(Hint hints, Hint flag) noexcept {
  return (static_cast<int>(hints) & static_cast<int>(flag)) != 0;
}

/// A block as an operand of a call.
struct TaskOperand {
  BlockId id;
  Hint hint = Hint::none;

  TaskOperand() = default;
  TaskOperand(BlockId block, Hint hints = Hint::none) : id(block), hint(hints) {}
  bool operator==(const TaskOperand&) const = default;
};

struct Task {
  const Operation* operation = nullptr;
  std::uint32_t first = 0;  ///< of its operands in the list: those of the first call, of the next …
  std::uint32_t calls = 0;
  std::uint32_t variant = 0;  ///< what the operation's header says of it: transpositions, sides
  std::uint16_t device = 0;
  bool urgent =
      false;  ///< much waits for it: it goes to a queue of high priority, where there is one
  /// Devices that carry it out together, from the first one on, which is its device: each as
  /// schedule/shared_call.hpp has it, and afterwards each has what was written. 1: its device alone
  /// does. Only in resident schedules; its variant is 0, and its `seconds` are what each of them
  /// takes.
  std::uint16_t sharers = 1;
  /// The compute queue of its device that carries it out; −1: the planner chooses.
  std::int16_t queue = -1;
  /// Operands behind those of the operation, of a task of one call: blocks that it writes, then
  /// blocks that it reads.
  std::uint16_t more_written = 0;
  std::uint16_t more_read = 0;
  /// Work of all calls, in the operation's unit, where it does not follow from the extents; 0: it
  /// does.
  double work = 0;
  /// Predicted seconds of the task alone on its device, where they do not follow from its work; at
  /// least the time of the work at the device's full rate. Only predictions read it. 0: they
  /// follow.
  double seconds = 0;
  /// With `seconds`: the share of the device's rate, 0 to 1, that it takes from what runs beside
  /// it, if that is more than its own rate over the device's. Only predictions read it.
  double share = 0;

  bool operator==(const Task&) const = default;
  [[nodiscard]] std::size_t operand_count() const noexcept {
    return static_cast<std::size_t>(calls) * static_cast<std::size_t>(operation->operands) +
           more_written + more_read;
  }
  /// How operand `i` of all is used.
  [[nodiscard]] Access access_of(std::size_t i) const noexcept {
    const auto count = static_cast<std::size_t>(operation->operands);
    if (more_written + more_read == 0 || i < count) return operation->access[i % count];
    return i < count + more_written ? Access::write : Access::read;
  }
};

/// How many operands a kernel's call has, with those behind the operation's own.
[[nodiscard]] constexpr int operands_of_call(const Operation& operation, std::uint32_t calls,
                                             std::size_t all) noexcept {
  return calls == 1 ? static_cast<int>(all) : operation.operands;
}

/// Tasks with their operands, in program order.
class TaskList {
 public:
  void clear() noexcept {
    tasks_.clear();
    operands_.clear();
  }
  /// Appends a task of one call. The operation outlives every list.
  Task& add(const Operation& operation, int device, std::initializer_list<TaskOperand> operands,
            std::uint32_t variant = 0);
  /// One more call of the task that was added last.
  void add_call(std::initializer_list<TaskOperand> operands);
  /// Blocks that the task which was added last, of one call, writes and reads beside its operands.
  void add_more(std::span<const TaskOperand> written, std::span<const TaskOperand> read);
  /// Appends a task with all of its calls.
  Task& add_calls(const Operation& operation, int device, std::span<const TaskOperand> operands,
                  std::uint32_t variant = 0);

  [[nodiscard]] std::span<Task> tasks() noexcept { return tasks_; }
  [[nodiscard]] std::span<const Task> tasks() const noexcept { return tasks_; }
  [[nodiscard]] std::span<const TaskOperand> operands(const Task& task) const noexcept {
    return {operands_.data() + task.first, task.operand_count()};
  }
  [[nodiscard]] std::span<TaskOperand> operands(const Task& task) noexcept {
    return {operands_.data() + task.first, task.operand_count()};
  }
  bool operator==(const TaskList&) const = default;

 private:
  std::vector<Task> tasks_;
  std::vector<TaskOperand> operands_;
};

/// Work of a task, in its operation's unit: the sum over its calls, of complex numbers four times
/// that of real ones.
[[nodiscard]] double work_of(const BlockTable& blocks, const Task& task,
                             std::span<const TaskOperand> operands);

/// The elements of the operands of a task's first call.
[[nodiscard]] Elements elements_of(const BlockTable& blocks, const Task& task,
                                   std::span<const TaskOperand> operands);

/// The device that computes row `row` of tiles, in a serpentine (boustrophedon) cyclic
/// distribution: 0 … D−1, D−1 … 0, and so on. The work of a row grows with its number, so that in
/// the usual cyclic one the last device would get the most of every round (at 48 rows on four
/// devices a tenth more than its share).
[[nodiscard]] constexpr int device_of_row(std::int64_t row, int devices) {
  const auto place = static_cast<int>(row % (2 * devices));
  return place < devices ? place : 2 * devices - 1 - place;
}

struct Schedule {
  BlockTable blocks;
  int devices = 1;
  /// For each family, the most distinct blocks of it that one task touches: a device must hold that
  /// many.
  std::vector<int> operands;
  std::int64_t steps = 0;
  /// Blocks are of many sizes, and none stays from plan to plan (which asks for slots of the same
  /// sizes): where a budget does not suffice for slots of each size, sizes may share slots.
  bool coarse_slots = false;
  /// Devices hold few blocks, which take long to load. A block that is in use until its slot is
  /// needed does not leave then, even if its next use is furthest away: loads run ahead of tasks.
  bool few_slots = false;
  /// Blocks are few, and of sizes so different that slots would waste memory: each lies where there
  /// is room for just it (own_places.hpp). None stays from plan to plan.
  bool own_places = false;
  /// Devices hold all blocks that their tasks use, each at one place for good: nothing is evicted,
  /// and families that stay are not brought home (fixed_places.hpp). Plans of such schedules are
  /// issued again and again (run/program.hpp).
  bool resident = false;
  /// Appends the tasks of one step, 0 <= step < steps.
  std::function<void(std::int64_t step, TaskList& tasks)> emit;
};

/// Whether both have the same blocks and the same tasks, so that a plan of one is a plan of the
/// other. Emits the tasks of both, as far as they agree.
[[nodiscard]] bool same_work(const Schedule& a, const Schedule& b);

}  // namespace strata
