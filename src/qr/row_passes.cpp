// One pass over blocks of rows.
//
// Method: a step is a block: its task, and then the sums of the tree that it completes. In the
// methods of Gram and Schmidt a step is one of theirs: the products of a column with others, their
// sums, and what is subtracted then, each for all blocks.

#include "qr/row_passes.hpp"

#include <algorithm>

#include "kernels/tall/sketch.hpp"
#include "qr/column_passes.hpp"
#include "qr/count_passes.hpp"
#include "qr/implicit_passes.hpp"
#include "qr/tsqr_passes.hpp"

namespace strata {
namespace {

/// A solve of two triangles.
bool joins_solves(const RowProblem& problem) {
  return !problem.stages.empty() && writes_matrix(problem.pass);
}

void emit_block(const RowProblem& problem, const SumTree& tree, std::int64_t b, TaskList& tasks) {
  const int device = tree.device_of(b);
  const BlockId v(rows::kMatrix, b, 0);
  const BlockId r(rows::kFactor, 0, 0);
  const BlockId d(rows::kScales, 0, 0);
  const TaskOperand result(BlockId(rows::kSum, 0, 0), Hint::last_write);
  const TaskOperand written(v, Hint::last_write);
  const std::uint32_t sums = sums_of(problem);
  const auto solve_twice = [&] {
    tasks.add(solve_right_twice, device,
              {written, r, d, BlockId(rows::kFactor, 1, 0), BlockId(rows::kScales, 1, 0)});
  };
  switch (problem.pass) {
    case RowPass::gram: tasks.add(gram, device, {tree.part(b, result), v, d}, sums); break;
    case RowPass::apply_gram:
      tasks.add(apply_gram, device, {tree.part(b, result), v, r, d}, sums);
      break;
    case RowPass::solve_gram:
      if (joins_solves(problem)) {
        solve_twice();
        tasks.add(gram, device, {tree.part(b, result), v, BlockId(rows::kScales, 2, 0)}, sums);
      } else {
        tasks.add(solve_right_gram, device, {tree.part(b, result), written, r, d}, sums);
      }
      break;
    case RowPass::solve:
      if (joins_solves(problem))
        solve_twice();
      else
        tasks.add(solve_right, device, {written, r, d});
      break;
    case RowPass::maxima:
      tasks.add(column_max, device, {{BlockId(rows::kMaxima, b, 0), Hint::last_write}, v});
      break;
    case RowPass::sketch:
      tasks.add(sketch, device, {tree.part(b, result), v, d}, problem.variant);
      break;
    case RowPass::columns:
    case RowPass::inner_columns:
    case RowPass::subtract_columns:
    case RowPass::triangles:
    case RowPass::orthogonal:
    case RowPass::apply:
    case RowPass::apply_transposed:
    case RowPass::form:
    case RowPass::form_gram:
    case RowPass::count_sketch:
    case RowPass::count_gram: break;
  }
  if (adds_up(problem.pass)) tree.add(b, result, tasks);
}

void emit_column_step(const RowProblem& problem, const RowBlocks& blocks, const SumTree& tree,
                      std::int64_t step, TaskList& tasks) {
  const std::uint32_t variant = problem.steps[static_cast<std::size_t>(step)];
  const TaskOperand result(BlockId(rows::kSum, step, 0), Hint::last_write);
  for (std::int64_t k = 0; k < blocks.count(); ++k) {
    const std::int64_t b = blocks.at(k);
    tasks.add(column_dots, tree.device_of(b), {tree.part(b, result), BlockId(rows::kMatrix, b, 0)},
              variant & ~kNormalize);
    tree.add(b, result, tasks);
  }
  const bool last = step + 1 == std::ssize(problem.steps);
  for (std::int64_t k = 0; k < blocks.count(); ++k) {
    const std::int64_t b = blocks.at(k);
    tasks.add(column_update, tree.device_of(b),
              {{BlockId(rows::kMatrix, b, 0), last ? Hint::last_write : Hint::none}, result},
              variant);
  }
}

void add_blocks(const RowProblem& problem, const RowBlocks& blocks, const SumTree& tree,
                Schedule& schedule) {
  const std::int64_t n = problem.n;
  const bool by_columns = problem.pass == RowPass::columns;
  const bool sums = adds_up(problem.pass) || by_columns;
  const bool maxima = problem.pass == RowPass::maxima;
  const std::int64_t height = problem.pass == RowPass::sketch ? 2 * n : n;  // of a sum
  const auto family = [n, height](const char* name, std::int64_t count, std::int64_t cols,
                                  Element element, Origin origin) {
    const bool summed = name[0] == 'P' || name[0] == 'B';
    return small_blocks(name, count, summed ? height : n, cols, element, origin);
  };
  const std::int64_t width = by_columns ? 1 : n;  // of a sum
  const std::int64_t parts = sums ? tree.count() : 0;
  schedule.blocks.add(blocks.family(problem, n));
  const bool joined = joins_solves(problem);
  const bool ones = joined && adds_up(problem.pass);
  const std::int64_t scales = maxima || by_columns ? 0 : joined ? (ones ? 3 : 2) : 1;
  const std::int64_t factors = solves(problem.pass) ? (joined ? 2 : 1) : 0;
  schedule.blocks.add(family("d", scales, 1, Element::fp64, Origin::stored));
  schedule.blocks.add(family("R", factors, n, problem.factor, Origin::stored));
  schedule.blocks.add(family("P", parts, width, problem.sum, Origin::temporary));
  schedule.blocks.add(family("B",
                             by_columns ? std::ssize(problem.steps)
                             : sums     ? 1
                                        : 0,
                             width, problem.sum, Origin::generated));
  schedule.blocks.add(
      family("M", maxima ? blocks.count() : 0, 1, Element::fp64, Origin::generated));
  schedule.operands = {1,
                       static_cast<int>(std::min<std::int64_t>(scales, 2)),
                       static_cast<int>(factors),
                       parts > 0 ? 3 : 0,
                       sums ? 1 : 0,
                       maxima ? 1 : 0};
}

}  // namespace

BlockFamily small_blocks(const char* name, std::int64_t count, std::int64_t height,
                         std::int64_t width, Element element, Origin origin) {
  return {.name = name,
          .rows = count * height,
          .cols = count > 0 ? width : 0,
          .tile_rows = height,
          .tile_cols = width,
          .element = element,
          .origin = origin};
}

RowBlocks::RowBlocks(const RowProblem& problem)
    : height_(block_rows(problem)),
      count_((problem.m + height_ - 1) / height_),
      equal_(problem.parts.empty() || has_blocks_of_its_own(problem.pass) ||
             is_of_columns(problem.pass)) {
  if (problem.parts.empty()) return;
  // A part has whole spans of rows that are one chain of sums.
  if (counts_rows(problem.pass))
    height_ = std::max(height_, sketch_span(sketch_buckets(problem.n)));
  if (is_of_columns(problem.pass)) height_ = common_height(problem.parts, height_);
  of_parts_ = std::make_shared<const PartTree>(blocks_of_parts(problem.parts, height_, equal_),
                                               problem.queues_of_part);
  count_ = std::ssize(of_parts_->blocks());
}

BlockFamily RowBlocks::family(const RowProblem& problem, std::int64_t cols) const {
  BlockFamily family{.name = "V",
                     .rows = problem.m,
                     .cols = problem.n,
                     .tile_rows = height_,
                     .tile_cols = cols,
                     .element = problem.element,
                     .identity = problem.identity,
                     .stays = problem.stays};
  if (equal_) return family;
  for (const RowBlock& block : of_parts_->blocks())
    family.listed.push_back({block.row, 0, block.rows, cols});
  return family;
}

SumTree RowBlocks::tree(const RowProblem& problem) const {
  return of_parts_ != nullptr ? SumTree(of_parts_, rows::kParts, !problem.late_sums_elsewhere)
                              : SumTree(count_, problem.devices, rows::kParts);
}

std::int64_t block_rows(const RowProblem& problem) {
  return is_tsqr(problem.pass)
             ? tsqr_block_rows(problem.n)
             : gram_block_rows(std::max(problem.n, problem.beside), problem.block_elements);
}

Schedule row_pass(const RowProblem& problem) {
  if (is_tsqr(problem.pass)) return tsqr_pass(problem);
  if (is_of_columns(problem.pass)) return column_pass(problem);
  if (is_implicit(problem)) return implicit_pass(problem);
  if (counts_rows(problem.pass)) return count_pass(problem);
  Schedule schedule;
  schedule.devices = problem.devices;
  const RowBlocks blocks(problem);
  const SumTree tree = blocks.tree(problem);
  add_blocks(problem, blocks, tree, schedule);
  const bool by_columns = problem.pass == RowPass::columns;
  schedule.steps = by_columns ? std::ssize(problem.steps) : blocks.count();
  schedule.emit = [problem, blocks, tree, by_columns](std::int64_t step, TaskList& tasks) {
    by_columns ? emit_column_step(problem, blocks, tree, step, tasks)
               : emit_block(problem, tree, blocks.at(step), tasks);
  };
  return schedule;
}

}  // namespace strata
