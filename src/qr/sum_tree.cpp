// A binary tree of sums, as the carries of a binary counter.
//
// Method: nodes that wait are few, so their names are used again. On a device at most one node of a
// level waits, and names of single blocks are in a ring, so that the queues of a device need not
// wait for each other block by block. What has blocks of several devices is added up behind the
// last block: before, it would hold up a device until another one is done with all of its blocks.
// What waits for that long, or comes of it, has names of its own.

#include "qr/sum_tree.hpp"

#include <bit>
#include <vector>

namespace strata {
namespace {

constexpr std::int64_t kRing = 8;   // names of single blocks, on each device
constexpr std::int64_t kNames = 2;  // of each level above, and of what waits for other devices

}  // namespace

/// One more than the number of the highest level, which is that of the sums behind the last block.
std::int64_t SumTree::levels_of(std::int64_t blocks) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(blocks))) + 1;
}
std::int64_t SumTree::names_of(std::int64_t blocks) {
  return kRing + 2 * kNames * (levels_of(blocks) + 1);
}

bool SumTree::spans_devices(std::int64_t level, std::int64_t number) const {
  return device_of(number << level) != device_of(((number + 1) << level) - 1);
}

/// Whether a node of one device has a left neighbour that is not: then it waits until all blocks
/// are done.
bool SumTree::waits_for_others(const Node& node) const {
  return node.number % 2 == 1 && spans_devices(node.level + 1, node.number / 2);
}

BlockId SumTree::name(const Node& node) const {
  const bool late = node.level < levels_ - 1 &&
                    (waits_for_others(node) || spans_devices(node.level, node.number));
  const std::int64_t place =
      late              ? kRing + kNames * (levels_ + 1 + node.level) + node.number % kNames
      : node.level == 0 ? node.number % kRing
                        : kRing + kNames * (node.level - 1) + node.number % kNames;
  return {parts_, node.device * names_of(blocks_) + place, 0};
}

SumTree::Node SumTree::node(std::int64_t level, std::int64_t number) const {
  return {level, number, device_of(((number + 1) << level) - 1)};
}

TaskOperand SumTree::part(std::int64_t b, const TaskOperand& result) const {
  if (blocks_ == 1) return result;
  if (of_parts_ != nullptr)
    return {BlockId(parts_, of_parts_->name(b), 0), hint_of(of_parts_->is_late(b))};
  return {name(node(0, b))};
}

void SumTree::sum(const TaskOperand& to, const Node& left, const Node& right,
                  TaskList& tasks) const {
  tasks.add(gram_sum, right.device,
            {to, {name(left), Hint::last_use}, {name(right), Hint::last_use}});
}

void SumTree::add_parts(std::int64_t b, const TaskOperand& whole, TaskList& tasks) const {
  const auto put = [&](const PartTree::Join& join) {
    const TaskOperand to =
        join.to < 0 ? whole : TaskOperand(BlockId(parts_, join.to, 0), hint_of(join.late));
    tasks.add(gram_sum, join.device,
              {to,
               {BlockId(parts_, join.left, 0), Hint::last_use},
               {BlockId(parts_, join.right, 0), Hint::last_use}});
  };
  for (const PartTree::Join& join : of_parts_->joins(b)) put(join);
  if (!late_ || b != of_parts_->order().back()) return;
  for (const PartTree::Join& join : of_parts_->late_joins()) put(join);
}

void SumTree::add(std::int64_t b, const TaskOperand& whole, TaskList& tasks) const {
  if (of_parts_ != nullptr) return add_parts(b, whole, tasks);
  const auto join = [&](const Node& right) {
    const Node above{right.level + 1, right.number / 2, right.device};
    const bool last = std::int64_t{1} << above.level == blocks_;
    sum(last ? whole : TaskOperand(name(above)), node(right.level, right.number - 1), right, tasks);
    return above;
  };
  for (Node newest = node(0, b); newest.number % 2 == 1 && !waits_for_others(newest);)
    newest = join(newest);
  if (b != blocks_ - 1) return;
  for (std::int64_t level = 0; level < levels_; ++level) {
    for (std::int64_t number = 1; (number + 1) << level <= blocks_; number += 2) {
      if (spans_devices(level + 1, number / 2)) (void)join(node(level, number));
    }
  }
  std::vector<Node> waiting;  // the nodes of the binary digits of the number of blocks
  for (std::int64_t level = 0; level < levels_; ++level) {
    if ((blocks_ >> level & 1) == 1) waiting.push_back(node(level, (blocks_ >> level) - 1));
  }
  Node newest = waiting.front();
  for (std::size_t i = 1; i < waiting.size(); ++i) {
    // A name of its own: of a level that no node has, by turns.
    const Node above{levels_ - 1, static_cast<std::int64_t>(i), newest.device};
    sum(i + 1 == waiting.size() ? whole : TaskOperand(name(above)), waiting[i], newest, tasks);
    newest = above;
  }
}

}  // namespace strata
