#pragma once
// SumTree: the tasks that add up one block for each block of rows.
//
// Contract: emits gram_sum tasks. Node (l + 1, k) of the tree is the sum of nodes (l, 2k) and
// (l, 2k + 1); what is left behind the last block is added from the smallest to the largest. So the
// order of the sum follows from the number of blocks alone. Blocks belong to the devices in
// contiguous ranges, a sum to the device of its last block. Sums over blocks of several devices are
// emitted behind the last block, so that no device waits for another before. Where V lies in parts
// (row_parts.hpp), blocks and sums are those of a PartTree.

#include <memory>
#include <utility>

#include "kernels/tall/gram.hpp"
#include "qr/row_parts.hpp"
#include "schedule/task.hpp"

namespace strata {

class SumTree {
 public:
  /// Waiting sums are blocks (i, 0) of the family `parts`, i < count_of().
  SumTree(std::int64_t blocks, int devices, int parts)
      : blocks_(blocks), devices_(devices), parts_(parts), levels_(levels_of(blocks)) {}
  /// late: whether sums of several devices are tasks.
  SumTree(std::shared_ptr<const PartTree> of_parts, int parts, bool late)
      : SumTree(std::ssize(of_parts->blocks()), 1, parts) {
    of_parts_ = std::move(of_parts);
    late_ = late;
  }
  /// How many names the family of waiting sums has to have.
  [[nodiscard]] std::int64_t count() const {
    return of_parts_ != nullptr ? of_parts_->count() : count_of(blocks_, devices_);
  }
  [[nodiscard]] static std::int64_t count_of(std::int64_t blocks, int devices) {
    return blocks > 1 ? devices * names_of(blocks) : 0;
  }

  [[nodiscard]] int device_of(std::int64_t b) const {
    if (of_parts_ != nullptr) return of_parts_->device_of(b);
    return static_cast<int>(b * devices_ / blocks_);
  }
  /// That the whole sum is on.
  [[nodiscard]] int device_of_sum() const {
    return of_parts_ != nullptr ? of_parts_->device_of_sum() : device_of(blocks_ - 1);
  }
  /// Where the task of block `b` puts what is to be added: a waiting sum, or `result` itself.
  [[nodiscard]] TaskOperand part(std::int64_t b, const TaskOperand& result) const;
  /// The sums that block `b`, whose task was emitted last, completes; the last goes to `result`,
  /// whose hint is that of the task that writes it last.
  void add(std::int64_t b, const TaskOperand& result, TaskList& tasks) const;

 private:
  /// A node: its level, its number in it and the device that has computed it.
  struct Node {
    std::int64_t level = 0;
    std::int64_t number = 0;
    int device = 0;
  };
  [[nodiscard]] static std::int64_t levels_of(std::int64_t blocks);
  [[nodiscard]] static std::int64_t names_of(std::int64_t blocks);
  [[nodiscard]] bool spans_devices(std::int64_t level, std::int64_t number) const;
  [[nodiscard]] bool waits_for_others(const Node& node) const;
  [[nodiscard]] BlockId name(const Node& node) const;
  [[nodiscard]] Node node(std::int64_t level, std::int64_t number) const;
  /// What is added up elsewhere goes home.
  [[nodiscard]] Hint hint_of(bool late) const { return late && !late_ ? Hint::home : Hint::none; }
  void add_parts(std::int64_t b, const TaskOperand& whole, TaskList& tasks) const;
  void sum(const TaskOperand& to, const Node& left, const Node& right, TaskList& tasks) const;

  std::int64_t blocks_;
  int devices_;
  int parts_;
  std::int64_t levels_;
  std::shared_ptr<const PartTree> of_parts_;
  bool late_ = false;
};

}  // namespace strata
