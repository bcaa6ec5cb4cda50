// Passes over two blocks of columns.
//
// Method: a step is a block of rows, as in row_passes.cpp.

#include "qr/column_passes.hpp"

#include "kernels/tall/subtract_columns.hpp"

namespace strata {

Schedule column_pass(const RowProblem& problem) {
  const RowBlocks blocks(problem);
  const SumTree tree = blocks.tree(problem);
  const std::int64_t left = problem.left;
  const std::int64_t right = problem.n - left;
  const bool sums = problem.pass == RowPass::inner_columns;
  const std::int64_t parts = sums ? tree.count() : 0;
  Schedule schedule;
  schedule.devices = problem.devices;
  const auto add = [&](const char* name, std::int64_t count, Origin origin) {
    schedule.blocks.add({.name = name,
                         .rows = count * left,
                         .cols = count > 0 ? right : 0,
                         .tile_rows = left,
                         .tile_cols = right,
                         .element = Element::fp64,
                         .origin = origin});
  };
  schedule.blocks.add(blocks.family(problem, left));
  add("d", 0, Origin::stored);
  add("R", sums ? 0 : 1, Origin::stored);
  add("P", parts, Origin::temporary);
  add("B", sums ? 1 : 0, Origin::generated);
  add("M", 0, Origin::generated);
  schedule.operands = {2, 0, sums ? 0 : 1, parts > 0 ? 3 : 0, sums ? 1 : 0, 0};
  schedule.steps = blocks.count();
  schedule.emit = [blocks, tree, sums](std::int64_t step, TaskList& tasks) {
    const std::int64_t b = blocks.at(step);
    const BlockId of_left(rows::kMatrix, b, 0);
    const BlockId of_right(rows::kMatrix, b, 1);
    if (!sums) {
      tasks.add(subtract_columns, tree.device_of(b),
                {{of_right, Hint::last_write}, of_left, BlockId(rows::kFactor, 0, 0)});
      return;
    }
    const TaskOperand result(BlockId(rows::kSum, 0, 0), Hint::last_write);
    tasks.add(inner, tree.device_of(b), {tree.part(b, result), of_left, of_right});
    tree.add(b, result, tasks);
  };
  return schedule;
}

}  // namespace strata
