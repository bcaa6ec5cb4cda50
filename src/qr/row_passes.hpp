#pragma once
// The tasks of one pass over the rows of a tall and skinny matrix.
//
// Contract: emits tasks only. V is cut into blocks of block_rows() rows, contiguous ranges of which
// belong to the devices. What is summed up over blocks is summed in the order of SumTree, so the
// result depends on m and n alone; of a sketch on the blocks, too.

#include <memory>
#include <vector>

#include "kernels/tall/gram.hpp"
#include "qr/row_parts.hpp"
#include "qr/sum_tree.hpp"
#include "schedule/task.hpp"

namespace strata {

/// Elements of a block where nothing asks for larger ones: 2 MiB of doubles.
inline constexpr std::int64_t kPassBlockElements = std::int64_t{1} << 18;

enum class RowPass : std::uint8_t {
  gram,           ///< B ← XᵀX, X = V·diag(d)
  apply_gram,     ///< B ← the Gram matrix of X·R⁻¹, which is not stored
  solve_gram,     ///< V ← X·R⁻¹, B ← VᵀV
  solve,          ///< V ← X·R⁻¹
  maxima,         ///< M(b) ← the largest magnitude in each column of block b
  columns,        ///< the steps of a method of Gram and Schmidt's: B(s) their coefficients, n × 1
  triangles,      ///< B(i) ← the triangles of Householder QR, node i of a tree (tsqr_passes.hpp)
  orthogonal,     ///< V ← Q·C of the same
  inner_columns,  ///< B ← LᵀX of two blocks of columns (column_passes.hpp)
  subtract_columns,  ///< X ← X − L·R of the same
  sketch,            ///< B ← Ω·X, 2n × n (kernels/tall/sketch.hpp)
  count_sketch,  ///< C ← Ω·X of few rows by CountSketch, B ← Ω₂·C by a Gaussian Ω₂, 2n × n
  count_gram,  ///< the same C, B ← CᵀC
  // With a Q that triangles make of V, which stays as it is (implicit_passes.hpp):
  apply,             ///< Y ← 0 − Q·C
  apply_transposed,  ///< B ← QᵀY
  form,              ///< Y ← Q
  form_gram,         ///< Y ← Q, B ← QᵀQ
};

/// How the triangles of TSQR are joined: two of the same size at a time, or one block after the
/// other.
enum class TreeShape : std::uint8_t { binary, flat };

struct RowProblem {
  RowPass pass = RowPass::gram;
  std::int64_t m = 0;
  std::int64_t n = 0;
  int devices = 1;
  std::int64_t block_elements = kPassBlockElements;
  Element element = Element::fp64;  ///< of V
  Element sum = Element::dd;        ///< of B
  Element factor = Element::dd;     ///< of R
  std::uint64_t identity = 0;       ///< of V, from pass to pass
  bool stays = false;               ///< a V that is written need not go home yet
  /// The variants of column_dots and column_update, for RowPass::columns.
  std::vector<std::uint32_t> steps{};
  TreeShape shape = TreeShape::binary;  ///< of TSQR, …
  std::int64_t group = 1;               ///< … and how many blocks are one task
  std::uint32_t variant = 0;            ///< of passes with sketches
  /// How sums of products of doubles are formed in dd: the variant of gram, which the executor
  /// chooses (wide_sums_of()).
  std::uint32_t wide_sums = kExtraction;
  std::int64_t left = 0;  ///< columns of L, of passes over two blocks of columns
  /// For apply_gram and passes with an implicit Q: the elements of the triangles by which X is
  /// solved before R, each with its scales; they are the first of families d and R. For solve and
  /// solve_gram one or none, in the element of V; behind their scales lie n ones, for the sum.
  std::vector<Element> stages{};
  std::int64_t beside = 0;  ///< columns of Y, of passes with an implicit Q
  /// Where V lies in parts (row_parts.hpp), the rows of each, of a device each; empty: devices have
  /// ranges of equal blocks. Not of passes with an implicit Q.
  std::vector<std::int64_t> parts{};
  int queues_of_part = 1;  ///< of its device, each a device of the tasks
  /// Sums of several devices' blocks are no tasks: the executor adds them up, who then has B
  /// (PartTree::late_joins); of passes by CountSketch C, and what is made of it is no task either.
  bool late_sums_elsewhere = false;

  bool operator==(const RowProblem&) const = default;
};

/// The families of the schedule.
namespace rows {
inline constexpr int kMatrix = 0;  ///< V
inline constexpr int kScales = 1;  ///< d, n × 1 in fp64; ones behind it where C has none
inline constexpr int kFactor = 2;  ///< R, n × n; C, which is not stored
inline constexpr int kParts = 3;   ///< sums of the tree that exist at once; temporary
inline constexpr int kSum = 4;     ///< B, n × n, or one n × 1 for each step
inline constexpr int kMaxima = 5;  ///< M, a block of n × 1 in fp64 for each block of V
// For implicit_passes.hpp alone:
inline constexpr int kWork = 6;          ///< W, blocks of rows on their way to Q; temporary
inline constexpr int kBeside = 7;        ///< Y
inline constexpr int kCoefficients = 8;  ///< C, n × the columns of Y, in fp64
}  // namespace rows

[[nodiscard]] constexpr bool adds_up(RowPass pass) noexcept {
  return pass == RowPass::gram || pass == RowPass::apply_gram || pass == RowPass::solve_gram ||
         pass == RowPass::sketch;
}
/// By CountSketch (count_passes.hpp).
[[nodiscard]] constexpr bool counts_rows(RowPass pass) noexcept {
  return pass == RowPass::count_sketch || pass == RowPass::count_gram;
}
[[nodiscard]] constexpr bool solves(RowPass pass) noexcept {
  return pass == RowPass::apply_gram || pass == RowPass::solve_gram || pass == RowPass::solve;
}
[[nodiscard]] constexpr bool writes_matrix(RowPass pass) noexcept {
  return pass == RowPass::solve_gram || pass == RowPass::solve || pass == RowPass::columns ||
         pass == RowPass::orthogonal || pass == RowPass::subtract_columns;
}

/// Q goes into another matrix than that of which triangles make it.
[[nodiscard]] constexpr bool forms_matrix(RowPass pass) noexcept {
  return pass == RowPass::form || pass == RowPass::form_gram;
}

/// A family of `count` blocks of height × width, one below the other: what lies beside V.
[[nodiscard]] BlockFamily small_blocks(const char* name, std::int64_t count, std::int64_t height,
                                       std::int64_t width, Element element, Origin origin);

/// The variant of gram and its relatives in a pass.
[[nodiscard]] constexpr std::uint32_t sums_of(const RowProblem& problem) noexcept {
  return problem.element == Element::fp64 && problem.sum == Element::dd ? problem.wide_sums
                                                                        : kExtraction;
}

/// Rows of a block of V.
[[nodiscard]] std::int64_t block_rows(const RowProblem& problem);

/// Whether the bits of a pass depend on the blocks, which are then those of gram_block_rows().
[[nodiscard]] constexpr bool has_blocks_of_its_own(RowPass pass) noexcept {
  return pass == RowPass::sketch || pass == RowPass::triangles || pass == RowPass::orthogonal;
}

/// The blocks of rows of a pass.
class RowBlocks {
 public:
  explicit RowBlocks(const RowProblem& problem);

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// V in these blocks, of `cols` columns each.
  [[nodiscard]] BlockFamily family(const RowProblem& problem, std::int64_t cols) const;
  /// The tree of sums over all blocks.
  [[nodiscard]] SumTree tree(const RowProblem& problem) const;
  /// The block whose tasks come k-th.
  [[nodiscard]] std::int64_t at(std::int64_t k) const {
    return of_parts_ != nullptr ? of_parts_->order()[static_cast<std::size_t>(k)] : k;
  }
  [[nodiscard]] bool in_parts() const noexcept { return of_parts_ != nullptr; }
  [[nodiscard]] const PartTree& parts() const noexcept { return *of_parts_; }

 private:
  std::int64_t height_;
  std::int64_t count_;
  bool equal_;  ///< all but the last are as high as each other
  std::shared_ptr<const PartTree> of_parts_;
};

[[nodiscard]] Schedule row_pass(const RowProblem& problem);

}  // namespace strata
