// TSQR: triangles up a tree, orthogonal factors down it.
//
// Method: V is not written on the way up, and what goes down factors its block again: V passes
// twice and is written once, reflections are nowhere. A step is a group of blocks and the nodes
// that they complete, level by level, so that a device with room for a group has many panels at a
// time; the way down is the same backwards. No bit depends on the groups.

#include "qr/tsqr_passes.hpp"

#include <algorithm>
#include <map>
#include <memory>

namespace strata {
namespace {

using Node = TriangleTree::Node;

int device_of(const RowProblem& problem, std::int64_t blocks, std::int64_t b) {
  if (problem.parts.empty()) return static_cast<int>(b * problem.devices / blocks);
  std::int64_t end = 0;
  for (std::size_t p = 0; p < problem.parts.size(); ++p) {
    end += problem.parts[p];
    if (b * tsqr_block_rows(problem.n) < end) return static_cast<int>(p) * problem.queues_of_part;
  }
  return problem.devices - problem.queues_of_part;
}

/// Nodes of one group of blocks, of one level and one device: the calls of a task.
using NodesOfTasks = std::map<std::pair<int, int>, std::vector<std::int64_t>>;

struct Pass {
  RowProblem problem;
  TriangleTree tree;
  std::vector<std::int64_t> first_node;  ///< of each block: in tree.nodes()

  [[nodiscard]] std::int64_t groups() const {
    return (tree.blocks() + problem.group - 1) / problem.group;
  }
  [[nodiscard]] std::int64_t end_of(std::int64_t group) const {
    return std::min((group + 1) * problem.group, tree.blocks());
  }
  [[nodiscard]] int device(std::int64_t b) const { return device_of(problem, tree.blocks(), b); }
  [[nodiscard]] const Node& node(std::int64_t i) const {
    return tree.nodes()[static_cast<std::size_t>(i)];
  }

  /// What the blocks of a group complete.
  [[nodiscard]] NodesOfTasks nodes_of(std::int64_t group) const {
    NodesOfTasks tasks;
    const auto begin = static_cast<std::size_t>(group * problem.group);
    const auto end = static_cast<std::size_t>(end_of(group));
    for (std::int64_t i = first_node[begin]; i < first_node[end]; ++i)
      tasks[{node(i).level, device(node(i).block)}].push_back(i);
    return tasks;
  }
  [[nodiscard]] std::map<int, std::vector<std::int64_t>> blocks_of(std::int64_t group) const {
    std::map<int, std::vector<std::int64_t>> of_device;
    for (std::int64_t b = group * problem.group; b < end_of(group); ++b)
      of_device[device(b)].push_back(b);
    return of_device;
  }

  [[nodiscard]] TaskOperand sum(std::int64_t number) const {
    return {BlockId(rows::kSum, number, 0), Hint::last_write};
  }
  void emit_up(std::int64_t group, TaskList& tasks) const;
  void emit_down(std::int64_t group, TaskList& tasks) const;
};

void Pass::emit_up(std::int64_t group, TaskList& tasks) const {
  for (const auto& [on, blocks] : blocks_of(group)) {
    std::vector<TaskOperand> operands;
    for (const std::int64_t b : blocks)
      operands.insert(operands.end(), {sum(b), BlockId(rows::kMatrix, b, 0)});
    tasks.add_calls(householder_r, on, operands);
  }
  for (const auto& [key, nodes] : nodes_of(group)) {
    std::vector<TaskOperand> operands;
    for (const std::int64_t i : nodes) {
      operands.insert(operands.end(), {sum(tree.blocks() + i), BlockId(rows::kSum, node(i).left, 0),
                                       BlockId(rows::kSum, node(i).right, 0)});
    }
    tasks.add_calls(stacked_r, key.second, operands);
  }
}

void Pass::emit_down(std::int64_t group, TaskList& tasks) const {
  const std::int64_t last = tree.count() - 1;
  // What a node is multiplied by: its parent wrote it, or it is the whole's.
  const auto above = [&](std::int64_t number) {
    return number == last ? TaskOperand(BlockId(rows::kFactor, 0, tree.count()))
                          : TaskOperand(BlockId(rows::kParts, number, 0), Hint::last_use);
  };
  const auto triangle = [](std::int64_t number) { return BlockId(rows::kFactor, 0, number); };
  const NodesOfTasks all = nodes_of(group);
  for (auto task = all.rbegin(); task != all.rend(); ++task) {
    std::vector<TaskOperand> operands;
    for (const std::int64_t i : task->second) {
      const Node& n = node(i);
      operands.insert(operands.end(),
                      {BlockId(rows::kParts, n.left, 0), BlockId(rows::kParts, n.right, 0),
                       triangle(n.left), triangle(n.right), above(tree.blocks() + i)});
    }
    tasks.add_calls(stacked_q, task->first.second, operands);
  }
  for (const auto& [on, blocks] : blocks_of(group)) {
    std::vector<TaskOperand> operands;
    for (const std::int64_t b : blocks)
      operands.insert(operands.end(), {{BlockId(rows::kMatrix, b, 0), Hint::last_write}, above(b)});
    tasks.add_calls(householder_q, on, operands);
  }
}

void add_blocks(const RowProblem& problem, const TriangleTree& tree, Schedule& schedule) {
  const std::int64_t n = problem.n;
  const bool up = problem.pass == RowPass::triangles;
  const std::int64_t nodes = tree.count();
  const auto family = [n](const char* name, std::int64_t down, std::int64_t across, Origin origin) {
    return BlockFamily{.name = name,
                       .rows = down * n,
                       .cols = across * n,
                       .tile_rows = n,
                       .tile_cols = n,
                       .element = Element::fp64,
                       .origin = origin};
  };
  schedule.blocks.add({.name = "V",
                       .rows = problem.m,
                       .cols = n,
                       .tile_rows = tsqr_block_rows(n),
                       .tile_cols = n,
                       .element = problem.element,
                       .identity = problem.identity,
                       .stays = problem.stays});
  schedule.blocks.add(family("d", 0, 0, Origin::stored));
  schedule.blocks.add(family("R", up ? 0 : 1, up ? 0 : nodes + 1, Origin::stored));
  schedule.blocks.add(family("C", up ? 0 : nodes, up ? 0 : 1, Origin::temporary));
  schedule.blocks.add(family("B", up ? nodes : 0, up ? 1 : 0, Origin::generated));
  schedule.blocks.add(family("M", 0, 0, Origin::generated));
  const auto group = static_cast<int>(std::min(problem.group, tree.blocks()));
  // A task of nodes has those that a group completes on a level: half of it, and one more.
  const int joined = nodes > tree.blocks() ? group / 2 + 1 : 0;
  schedule.operands = {group,
                       0,
                       up ? 0 : 2 * joined + 1,
                       up ? 0 : std::max(3 * joined, nodes > 1 ? group : 0),
                       up ? std::max(3 * joined, group) : 0,
                       0};
}

}  // namespace

TriangleTree::TriangleTree(std::int64_t blocks, TreeShape shape) : blocks_(blocks) {
  struct Whole {
    std::int64_t number;
    int level;
  };
  std::vector<Whole> waiting;
  const auto join = [&](std::int64_t b) {
    const Whole right = waiting.back();
    waiting.pop_back();
    const Whole left = waiting.back();
    waiting.pop_back();
    const int level = std::max(left.level, right.level) + 1;
    waiting.push_back({count(), level});
    nodes_.push_back({left.number, right.number, level, b});
  };
  for (std::int64_t b = 0; b < blocks; ++b) {
    waiting.push_back({b, 0});
    const auto joins = [&] {
      if (waiting.size() < 2) return false;
      if (shape == TreeShape::flat || b == blocks - 1) return true;
      return waiting.back().level == waiting[waiting.size() - 2].level;
    };
    while (joins()) join(b);
  }
}

std::int64_t triangles_of(std::int64_t m, std::int64_t n) {
  const std::int64_t height = tsqr_block_rows(n);
  return 2 * ((m + height - 1) / height) - 1;
}

Schedule tsqr_pass(const RowProblem& problem) {
  const std::int64_t height = tsqr_block_rows(problem.n);
  auto pass = std::make_shared<Pass>(
      Pass{problem, TriangleTree((problem.m + height - 1) / height, problem.shape), {}});
  std::size_t next = 0;
  for (std::int64_t b = 0; b < pass->tree.blocks(); ++b) {
    pass->first_node.push_back(static_cast<std::int64_t>(next));
    while (next < pass->tree.nodes().size() && pass->tree.nodes()[next].block == b) ++next;
  }
  pass->first_node.push_back(static_cast<std::int64_t>(next));
  Schedule schedule;
  schedule.devices = problem.devices;
  add_blocks(problem, pass->tree, schedule);
  schedule.steps = pass->groups();
  schedule.emit = [pass = std::shared_ptr<const Pass>(std::move(pass))](std::int64_t step,
                                                                        TaskList& tasks) {
    if (pass->problem.pass == RowPass::triangles) return pass->emit_up(step, tasks);
    pass->emit_down(pass->groups() - 1 - step, tasks);
  };
  return schedule;
}

}  // namespace strata
