// One pass over blocks of rows.
//
// Method: a step is a block: its task, and then the sums of the tree that it completes, as the
// carries of a binary counter. A sum belongs to the device of its last block; what it needs of
// another device travels as the plan says. Nodes that wait are few, so their names are used again:
// on a device at most one node of a level waits, and names of single blocks are in a ring, so that
// the queues of a device need not wait for each other block by block.

#include "qr/row_passes.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace strata {
namespace {

constexpr std::int64_t kRing = 8;   // names of sums of one block, on each device
constexpr std::int64_t kNames = 2;  // of each level above

/// A node of the tree: its level, its number in it and the device that has computed it.
struct Node {
  std::int64_t level = 0;
  std::int64_t number = 0;
  int device = 0;
};

class Emitter {
 public:
  explicit Emitter(const RowProblem& problem, std::int64_t blocks)
      : problem_(problem), blocks_(blocks), levels_(levels_of(blocks)) {}

  /// One more than the number of the highest level, which is that of the last fold.
  static std::int64_t levels_of(std::int64_t blocks) {
    return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(blocks))) + 1;
  }
  static std::int64_t names_of(std::int64_t blocks) { return kRing + kNames * levels_of(blocks); }

  void block(std::int64_t b, TaskList& tasks) const {
    const int device = device_of(b);
    task_of_block(b, device, tasks);
    if (!adds_up(problem_.pass)) return;
    Node node{0, b, device};
    while (node.number % 2 == 1) {
      const Node left{node.level, node.number - 1,
                      device_of(last_block(node.level, node.number - 1))};
      const Node sum{node.level + 1, node.number / 2, device};
      add(sum, left, node, b == blocks_ - 1 && std::int64_t{1} << sum.level == blocks_, tasks);
      node = sum;
    }
    if (b == blocks_ - 1) fold(node, tasks);
  }

 private:
  [[nodiscard]] int device_of(std::int64_t b) const {
    return static_cast<int>(b * problem_.devices / blocks_);
  }
  [[nodiscard]] static std::int64_t last_block(std::int64_t level, std::int64_t number) {
    return ((number + 1) << level) - 1;
  }

  [[nodiscard]] BlockId name(const Node& node) const {
    const std::int64_t place = node.level == 0
                                   ? node.number % kRing
                                   : kRing + kNames * (node.level - 1) + node.number % kNames;
    return {rows::kParts, node.device * names_of(blocks_) + place, 0};
  }

  void task_of_block(std::int64_t b, int device, TaskList& tasks) const {
    const BlockId v(rows::kMatrix, b, 0);
    const BlockId r(rows::kFactor, 0, 0);
    const BlockId d(rows::kScales, 0, 0);
    const TaskOperand sum = blocks_ == 1 ? TaskOperand(BlockId(rows::kSum, 0, 0), Hint::last_write)
                                         : TaskOperand(name({0, b, device}));
    const TaskOperand written(v, Hint::last_write);
    switch (problem_.pass) {
      case RowPass::gram: tasks.add(gram, device, {sum, v, d}); break;
      case RowPass::apply_gram: tasks.add(apply_gram, device, {sum, v, r, d}); break;
      case RowPass::solve_gram: tasks.add(solve_right_gram, device, {sum, written, r, d}); break;
      case RowPass::solve: tasks.add(solve_right, device, {written, r, d}); break;
      case RowPass::maxima:
        tasks.add(column_max, device, {{BlockId(rows::kMaxima, b, 0), Hint::last_write}, v});
        break;
    }
  }

  void add(const Node& sum, const Node& left, const Node& right, bool last, TaskList& tasks) const {
    const TaskOperand to =
        last ? TaskOperand(BlockId(rows::kSum, 0, 0), Hint::last_write) : TaskOperand(name(sum));
    tasks.add(gram_sum, sum.device,
              {to, {name(left), Hint::last_use}, {name(right), Hint::last_use}});
  }

  /// Behind the last block: what waits, from the smallest to the largest.
  void fold(const Node& newest, TaskList& tasks) const {
    std::vector<Node> waiting;  // the nodes of the binary digits of the number of blocks
    for (std::int64_t level = 0; level < levels_; ++level) {
      if ((blocks_ >> level & 1) == 0) continue;
      const std::int64_t number = (blocks_ >> level) - 1;
      waiting.push_back({level, number, device_of(last_block(level, number))});
    }
    Node sum = newest;
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      // A name of its own: of a level that no node has, by turns.
      const Node next{levels_ - 1, static_cast<std::int64_t>(i), newest.device};
      add(next, waiting[i], sum, i + 1 == waiting.size(), tasks);
      sum = next;
    }
  }

  RowProblem problem_;
  std::int64_t blocks_;
  std::int64_t levels_;
};

void add_blocks(const RowProblem& problem, std::int64_t blocks, Schedule& schedule) {
  const std::int64_t n = problem.n;
  const bool sums = adds_up(problem.pass);
  const auto square = [n](const char* name, std::int64_t count, Element element, Origin origin) {
    return BlockFamily{.name = name,
                       .rows = count * n,
                       .cols = count > 0 ? n : 0,
                       .tile_rows = n,
                       .tile_cols = n,
                       .element = element,
                       .origin = origin};
  };
  schedule.blocks.add({.name = "V",
                       .rows = problem.m,
                       .cols = n,
                       .tile_rows = gram_block_rows(n),
                       .tile_cols = n,
                       .element = problem.element,
                       .identity = problem.identity,
                       .stays = problem.stays});
  schedule.blocks.add({.name = "d", .rows = n, .cols = 1, .tile_rows = n});
  schedule.blocks.add(square("R", solves(problem.pass) ? 1 : 0, problem.factor, Origin::stored));
  schedule.blocks.add(square("P",
                             sums && blocks > 1 ? problem.devices * Emitter::names_of(blocks) : 0,
                             problem.sum, Origin::temporary));
  schedule.blocks.add(square("B", sums ? 1 : 0, problem.sum, Origin::generated));
  const bool maxima = problem.pass == RowPass::maxima;
  schedule.blocks.add({.name = "M",
                       .rows = maxima ? blocks * n : 0,
                       .cols = maxima ? 1 : 0,
                       .tile_rows = n,
                       .origin = Origin::generated});
  schedule.operands = {1,
                       maxima ? 0 : 1,
                       solves(problem.pass) ? 1 : 0,
                       sums && blocks > 1 ? 3 : 0,
                       sums ? 1 : 0,
                       maxima ? 1 : 0};
}

}  // namespace

Schedule row_pass(const RowProblem& problem) {
  Schedule schedule;
  schedule.devices = problem.devices;
  const std::int64_t height = gram_block_rows(problem.n);
  const std::int64_t blocks = (problem.m + height - 1) / height;
  add_blocks(problem, blocks, schedule);
  schedule.steps = blocks;
  const Emitter emitter(problem, blocks);
  schedule.emit = [emitter](std::int64_t b, TaskList& tasks) { emitter.block(b, tasks); };
  return schedule;
}

}  // namespace strata
