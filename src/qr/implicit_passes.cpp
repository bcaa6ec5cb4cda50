// Passes over a matrix that is only read, with Q in blocks of rows that are not kept.
//
// Method: a step is a block of rows: W ← V, and then the solves of the passes that would have
// stored Q. A device has few blocks W, which its steps take in turn; the last block of V, which may
// be shorter, has one of its own. Where Q itself is wanted, Y takes the place of W.

#include "qr/implicit_passes.hpp"

#include <algorithm>

#include "kernels/dense/convert.hpp"
#include "kernels/dense/laset.hpp"
#include "kernels/tall/subtract_columns.hpp"
#include "qr/sum_tree.hpp"

namespace strata {
namespace {

/// Blocks W of a device: two compute queues are at one each, and the next are being copied.
constexpr std::int64_t kWorkBlocks = 4;

class ImplicitPass {
 public:
  explicit ImplicitPass(const RowProblem& problem)
      : problem_(problem),
        height_(block_rows(problem)),
        blocks_((problem.m + height_ - 1) / height_),
        stages_(std::ssize(problem.stages)),
        tree_(blocks_, problem.devices, rows::kParts) {}

  [[nodiscard]] std::int64_t blocks() const { return blocks_; }

  void add_families(Schedule& schedule) const {
    const std::int64_t triangles = stages_ + 1;
    const std::int64_t width = transposed() ? problem_.beside : problem_.n;  // of a sum
    const std::int64_t parts = sums() ? SumTree::count_of(blocks_, problem_.devices) : 0;
    std::vector<Element> elements = problem_.stages;
    elements.push_back(problem_.factor);
    schedule.blocks.add({.name = "V",
                         .rows = problem_.m,
                         .cols = problem_.n,
                         .tile_rows = height_,
                         .tile_cols = problem_.n,
                         .element = problem_.element,
                         .identity = problem_.identity});
    const auto add = [&](const char* name, std::int64_t count, std::int64_t cols, Element element,
                         Origin origin) {
      schedule.blocks.add(of_columns(name, count, cols, element, origin));
    };
    add("d", triangles, 1, Element::fp64, Origin::stored);
    BlockFamily factors = of_columns("R", triangles, problem_.n, problem_.factor, Origin::stored);
    factors.elements = std::move(elements);
    schedule.blocks.add(std::move(factors));
    add("P", parts, width, problem_.sum, Origin::temporary);
    add("B", sums() ? 1 : 0, width, problem_.sum, Origin::generated);
    add("M", 0, 1, Element::fp64, Origin::generated);
    schedule.blocks.add(work_family());
    schedule.blocks.add(family_beside());
    add("C", multiplies() ? 1 : 0, problem_.beside, Element::fp64, Origin::stored);
    schedule.operands = {1,
                         1,
                         1,
                         parts > 0 ? 3 : 0,
                         sums() ? 1 : 0,
                         0,
                         forms() ? 0 : 1,
                         problem_.beside > 0 ? 1 : 0,
                         multiplies() ? 1 : 0};
  }

  void emit(std::int64_t b, TaskList& tasks) const {
    const int device = tree_.device_of(b);
    const TaskOperand result(BlockId(rows::kSum, 0, 0), Hint::last_write);
    const BlockId y(rows::kBeside, b, 0);
    const BlockId q = forms() ? y : work(b);
    const TaskOperand last_y(y, Hint::last_write);
    tasks.add(convert, device, {q, BlockId(rows::kMatrix, b, 0)});
    for (std::int64_t k = 0; k < stages_; ++k)
      tasks.add(solve_right, device, {q, factor(k), scales(k)});
    const BlockId r = factor(stages_);
    const BlockId d = scales(stages_);
    const TaskOperand last_q(q, Hint::last_use);
    switch (problem_.pass) {
      case RowPass::apply_gram:
        tasks.add(apply_gram, device, {tree_.part(b, result), last_q, r, d}, sums_of(problem_));
        break;
      case RowPass::form: tasks.add(solve_right, device, {last_y, r, d}); break;
      case RowPass::form_gram:
        tasks.add(solve_right_gram, device, {tree_.part(b, result), last_y, r, d},
                  sums_of(problem_));
        break;
      case RowPass::apply_transposed:
        tasks.add(solve_right, device, {q, r, d});
        tasks.add(inner, device, {tree_.part(b, result), last_q, y});
        break;
      default:
        tasks.add(solve_right, device, {q, r, d});
        tasks.add(laset, device, {y});
        tasks.add(subtract_columns, device, {last_y, last_q, BlockId(rows::kCoefficients, 0, 0)});
    }
    if (sums()) tree_.add(b, result, tasks);
  }

 private:
  [[nodiscard]] bool forms() const { return forms_matrix(problem_.pass); }
  [[nodiscard]] bool transposed() const { return problem_.pass == RowPass::apply_transposed; }
  [[nodiscard]] bool multiplies() const { return problem_.pass == RowPass::apply; }
  [[nodiscard]] bool sums() const { return !multiplies() && problem_.pass != RowPass::form; }

  [[nodiscard]] static BlockId factor(std::int64_t k) { return {rows::kFactor, k, 0}; }
  [[nodiscard]] static BlockId scales(std::int64_t k) { return {rows::kScales, k, 0}; }
  [[nodiscard]] BlockId work(std::int64_t b) const {
    const std::int64_t last = kWorkBlocks * problem_.devices;
    return {rows::kWork,
            b + 1 == blocks_ ? last : tree_.device_of(b) * kWorkBlocks + b % kWorkBlocks, 0};
  }

  /// Blocks of n rows, one below the other.
  [[nodiscard]] BlockFamily of_columns(const char* name, std::int64_t count, std::int64_t cols,
                                       Element element, Origin origin) const {
    return {.name = name,
            .rows = count * problem_.n,
            .cols = count > 0 ? cols : 0,
            .tile_rows = problem_.n,
            .tile_cols = std::max<std::int64_t>(cols, 1),
            .element = element,
            .origin = origin};
  }
  [[nodiscard]] BlockFamily work_family() const {
    BlockFamily family{.name = "W", .element = problem_.element, .origin = Origin::temporary};
    if (forms()) return family;
    const std::int64_t last = (blocks_ - 1) * height_;
    family.listed.assign(static_cast<std::size_t>(kWorkBlocks * problem_.devices),
                         {0, 0, std::min(height_, problem_.m), problem_.n});
    family.listed.push_back({last, 0, problem_.m - last, problem_.n});
    return family;
  }
  /// None of the places is on the diagonal, where laset writes ones.
  [[nodiscard]] BlockFamily family_beside() const {
    BlockFamily family{.name = "Y",
                       .element = problem_.element,
                       .origin = transposed() ? Origin::stored : Origin::generated};
    for (std::int64_t b = 0; problem_.beside > 0 && b < blocks_; ++b)
      family.listed.push_back(
          {b * height_, problem_.m, std::min(height_, problem_.m - b * height_), problem_.beside});
    return family;
  }

  RowProblem problem_;
  std::int64_t height_;
  std::int64_t blocks_;
  std::int64_t stages_;
  SumTree tree_;
};

}  // namespace

Schedule implicit_pass(const RowProblem& problem) {
  const ImplicitPass pass(problem);
  Schedule schedule;
  schedule.devices = problem.devices;
  pass.add_families(schedule);
  schedule.steps = pass.blocks();
  schedule.emit = [pass](std::int64_t b, TaskList& tasks) { pass.emit(b, tasks); };
  return schedule;
}

}  // namespace strata
