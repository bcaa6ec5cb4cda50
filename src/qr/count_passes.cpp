// Sketches of blocks of rows, their sums, and what is made of the last.
//
// Method: a step is a block: it begins the sums of a span, or goes on with them; blocks of more
// than a span are summed by the kernel. C is a temporary block: where V is long, its Gram matrix or
// second sketch costs nothing beside it, and a few numbers go to the host in the place of many.

#include "qr/count_passes.hpp"

#include <algorithm>

#include "kernels/tall/sketch.hpp"

namespace strata {
namespace {

struct Spans {
  std::int64_t blocks;   ///< of V
  std::int64_t of_span;  ///< blocks, or 1 where a block has more rows than a span
  std::int64_t count;
};

/// Blocks of parts are whole spans, the last one aside.
Spans spans_of(const RowProblem& problem, const RowBlocks& blocks) {
  const std::int64_t height = block_rows(problem);
  if (blocks.in_parts()) return {blocks.count(), 1, blocks.count()};
  Spans spans{blocks.count(), 1, 0};
  spans.of_span = std::max<std::int64_t>(sketch_span(sketch_buckets(problem.n)) / height, 1);
  spans.count = (spans.blocks + spans.of_span - 1) / spans.of_span;
  return spans;
}

void emit_block(const RowProblem& problem, const Spans& spans, const SumTree& tree, std::int64_t b,
                bool last, TaskList& tasks) {
  const std::int64_t span = b / spans.of_span;
  const int device = tree.device_of(span);
  const bool ends = b + 1 == spans.blocks || (b + 1) % spans.of_span == 0;
  const BlockId sum(rows::kFactor, 0, 0);
  tasks.add(b % spans.of_span == 0 ? sketch : continue_sketch, device,
            {tree.part(span, sum), BlockId(rows::kMatrix, b, 0), BlockId(rows::kScales, 0, 0)},
            sketch_variant(SketchKind::count, sketch_seed_of(problem.variant)));
  if (ends) tree.add(span, sum, tasks);
  if (!last || problem.late_sums_elsewhere) return;
  const TaskOperand result(BlockId(rows::kSum, 0, 0), Hint::last_write);
  const TaskOperand sketched(sum, Hint::last_use);
  const BlockId ones(rows::kScales, 1, 0);
  const int there = tree.device_of_sum();
  if (problem.pass == RowPass::count_gram) {
    tasks.add(gram, there, {result, sketched, ones}, sums_of(problem));
  } else {
    tasks.add(sketch, there, {result, sketched, ones},
              sketch_variant(SketchKind::gaussian, sketch_seed_of(problem.variant)));
  }
}

}  // namespace

Schedule count_pass(const RowProblem& problem) {
  const RowBlocks blocks(problem);
  const Spans spans = spans_of(problem, blocks);
  const SumTree tree = blocks.in_parts() ? blocks.tree(problem)
                                         : SumTree(spans.count, problem.devices, rows::kParts);
  const std::int64_t n = problem.n;
  const std::int64_t buckets = sketch_buckets(n);
  const std::int64_t of_result = problem.pass == RowPass::count_gram ? n : 2 * n;
  const std::int64_t parts = tree.count();
  Schedule schedule;
  schedule.devices = problem.devices;
  schedule.blocks.add(blocks.family(problem, n));
  schedule.blocks.add(small_blocks("d", 2, n, 1, Element::fp64, Origin::stored));
  schedule.blocks.add(small_blocks("C", 1, buckets, n, Element::fp64, Origin::temporary));
  schedule.blocks.add(small_blocks("P", parts, buckets, n, Element::fp64, Origin::temporary));
  schedule.blocks.add(small_blocks("B", 1, of_result, n, problem.sum, Origin::generated));
  schedule.blocks.add(small_blocks("M", 0, n, 1, Element::fp64, Origin::generated));
  schedule.operands = {1, 2, 1, parts > 0 ? 3 : 0, 1, 0};
  schedule.steps = spans.blocks;
  schedule.emit = [problem, blocks, spans, tree](std::int64_t step, TaskList& tasks) {
    emit_block(problem, spans, tree, blocks.at(step), step + 1 == spans.blocks, tasks);
  };
  return schedule;
}

}  // namespace strata
