#pragma once
// What a sparse Cholesky factorization does to *fronts*.
//
// The front of a supernode of w columns and r rows below them is a dense symmetric matrix of order
// w + r, of which the lower triangle counts. Its first w columns become those columns of L, the
// *panel*. What is left in the other r columns, its *update* (contribution block), is added to the
// front of its parent in the elimination tree (Duff, Reid, "The multifrontal solution of indefinite
// sparse symmetric linear equations", 1983). Fronts exist as blocks: the panel (w + r) × w and the
// update r × r, or tiles of both, each with its place in the front as its extent's row and column.
//
//   scatter_entries  X ← 0, but values[k] at places[k]        operands X, values, places
//   clear_block      X ← 0                                    operand  X
//   add_update       X ← X + U, at its places                 operands X, U, places
//   factor_front     P ← panel of L, U ← U − P₂·P₂ᵀ, status   operands P, U, status
//   factor_branch    the same for all supernodes of a branch  operands P, U, status, values,
//                                                                      structure, work; more
//   factor_shared    the same for one front, by several devices together
//   sweep_branch     X ← L⁻¹·X or L⁻ᵀ·X                       operands X, P, structure, work; more
//   sweep_range      the same where L is not all there        operands X, P, structure, work; more
//   take_rows        X ← rows of B, in an order               operands X, B, order
//   put_rows         the other way                            operands B, X, order
//
// Numbers are of type T, double or float, values k × 1; places are int32, k × 1, i + j·rows for
// element (i, j) of X. The status is always fp64.
//
// * add_update: the third operand, int32, lists the updates of U: how many; where in their front
//   they begin; of each its order r; then of each the r places of its rows in the front to which X
//   belongs, ascending. U holds them one after the other, packed (r × r each). With the variant
//   kTileOfUpdate U is one tile of the only update listed, and its extent says where in its front.
//   What falls outside of X is left alone.
// * factor_front: status as in potrf.hpp, columns counted from the panel's first. P₂ = A₂·L₁₁⁻ᵀ.
// * factor_branch: panels stand one after the other in P; `structure`, which says where, is
//   BranchHeader and so on. Values stand in the order of the supernodes. Updates of supernodes
//   whose parent is in the branch lie in `work`, others in U, each at its offset. A branch with a
//   program is any range of supernodes in postorder: what it gives to others lies in the operands
//   behind these that it writes, what it gets from others in those that it reads. Its values are
//   those of the whole matrix, and the last one is added to each on the diagonal. The variant says
//   how many thread blocks of a GPU are of use to its tiles, so that they leave room for other
//   branches beside it; 0: it is alone. Each front is made as scatter_entries does, then gets the
//   updates of its children in their order, and is factored as by factor_front, on CPUs with the
//   same bits. After a failure the status names the first failing column, counted from the branch's
//   first; P and U hold no meaning then.
// * factor_shared: the branch is one front that is cut into tiles, and has a program with a list of
//   jobs for each sharer. Variant 0, or a SharedCall (shared_call.hpp); what is written are P, U,
//   status and work, and the operands behind the others that it writes. Each has all of the panel,
//   of the update and of the inverses afterwards, with the bits of factor_branch. Where a device
//   waited for another in vain, the status is kSharersLost.
// * sweep_branch: the branch has a program, and was made by factor_branch. X holds m right-hand
//   sides by rows: m × n, its columns in the order of elimination, from the branch's first one on.
//   m is at most sweep_columns(). The variant is one of kSweepForward and kSweepBackward. Updates
//   in `work` are gone afterwards, the inverses that factor_branch left in P are needed. If the
//   branch is not the whole tree: forward, what rows below fronts of other branches give are the
//   operands behind these that it reads, what its own give to others those that it writes, each
//   some columns of m numbers. The extent of such a block says where they lie among the rows of
//   updates: its row of who gives them, its column of who takes them. How many are written is in
//   the variant, times kSweepGiven. Backward, the columns of X that are rows of its fronts are
//   solved already; operands behind these say only that it waits for them.
// * sweep_range: the same, but X has all rows of the matrix, and `work` holds nothing before and
//   afterwards: it has room for m numbers for each row of BranchProgram, and the bookkeeping
//   (range_bookkeeping).
// * take_rows, put_rows: X is m × n, B has n rows or more and k <= m columns, with any leading
//   dimension; or the block of a packed B of n rows has shorter columns, and less than n numbers
//   behind the last one. Column i of X is row order(i) of B, or row i if the list is empty. Rows of
//   X from k on become zero, or are left out.

#include <cstdint>

#include "kernels/backend/kernel_table.hpp"
#include "schedule/shared_call.hpp"

namespace strata {

/// Variant of add_update.
inline constexpr std::uint32_t kTileOfUpdate = 1;
/// The bad_column of factor_shared that tells that devices did not meet: one has failed, or their
/// launches come one after another.
inline constexpr double kSharersLost = -2;
/// Variants of sweep_branch.
inline constexpr std::uint32_t kSweepForward = 1;
inline constexpr std::uint32_t kSweepBackward = 2;
/// From here on a variant of a sweep is a number of operands.
inline constexpr std::uint32_t kSweepGiven = 16;

/// A branch as int32 numbers: BranchHeader; then of each supernode, from the first to the last, a
/// BranchStructure, followed by its `entries` places in the panel, and, where `inside` holds, by
/// the `rows` places of its rows in the front of its parent. A branch with a program has that
/// instead (front_program.hpp).
struct BranchHeader {
  std::int32_t supernodes;
  std::int32_t program;  ///< place of a BranchProgram (front_program.hpp); 0: there is none
};
struct BranchStructure {
  std::int32_t width;
  std::int32_t rows;
  std::int32_t children;  ///< in the branch: the last ones without a parent so far
  std::int32_t entries;   ///< of A
  std::int32_t inside;    ///< 1: its parent is in the branch
  std::int32_t padding;   ///< so that no byte is undefined
  std::int64_t panel;     ///< where that begins
  std::int64_t offset;    ///< of its update, in `work` if inside, else in U
};
inline constexpr std::int64_t kBranchHeader = sizeof(BranchHeader) / sizeof(std::int32_t);
inline constexpr std::int64_t kBranchRecord = sizeof(BranchStructure) / sizeof(std::int32_t);

namespace front_work {
inline double elements(const BlockExtent& x) {
  return static_cast<double>(x.rows) * static_cast<double>(x.cols);
}
inline double of_target(std::span<const BlockExtent> x, std::uint32_t) { return elements(x[0]); }
inline double of_update(std::span<const BlockExtent> x, std::uint32_t) { return elements(x[1]); }
inline double of_front(std::span<const BlockExtent> x, std::uint32_t) {
  const auto w = static_cast<double>(x[0].cols);
  const auto r = static_cast<double>(x[1].cols);
  return w * w * w / 3 + w * w * r + w * r * (r + 1);
}
}  // namespace front_work

inline constexpr Operation scatter_entries{.name = "scatter_entries",
                                           .operands = 3,
                                           .access = {Access::write, Access::read, Access::read},
                                           .work = front_work::of_target,
                                           .flops_per_work = 0,
                                           .nominal_cost = 10};
inline constexpr Operation clear_block{.name = "clear_block",
                                       .operands = 1,
                                       .access = {Access::write},
                                       .work = front_work::of_target,
                                       .flops_per_work = 0,
                                       .nominal_cost = 10};
inline constexpr Operation add_update{
    .name = "add_update",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::read},
    .work = front_work::of_update,
    .flops_per_work = 0.5,  // of a square the lower triangle is added
    .nominal_cost = 20};
inline constexpr Operation factor_front{
    .name = "factor_front",
    .operands = 3,
    .access = {Access::read_write, Access::read_write, Access::write},
    .work = front_work::of_front};
/// Its work is its tasks' to say: extents do not tell it.
inline constexpr Operation factor_branch{.name = "factor_branch",
                                         .operands = 6,
                                         .access = {Access::write, Access::write, Access::write,
                                                    Access::read, Access::read, Access::write},
                                         .work = front_work::of_target,
                                         .nominal_cost = 4};
/// On a device by itself it is factor_branch.
inline constexpr Operation factor_shared{.name = "factor_shared",
                                         .operands = 6,
                                         .access = {Access::write, Access::write, Access::write,
                                                    Access::read, Access::read, Access::write},
                                         .work = front_work::of_target,
                                         .nominal_cost = 4};

inline constexpr Operation sweep_branch{
    .name = "sweep_branch",
    .operands = 4,
    .access = {Access::read_write, Access::read, Access::read, Access::write},
    .work = front_work::of_update};

/// Its work is its tasks' to say, in flops. L is read at the speed of memory, not of arithmetic.
inline constexpr Operation sweep_range{
    .name = "sweep_range",
    .operands = 4,
    .access = {Access::read_write, Access::read, Access::read, Access::write},
    .work = front_work::of_update,
    .nominal_cost = 40};

inline constexpr Operation take_rows{.name = "take_rows",
                                     .operands = 3,
                                     .access = {Access::write, Access::read, Access::read},
                                     .work = front_work::of_target,
                                     .flops_per_work = 0,
                                     .nominal_cost = 40};
inline constexpr Operation put_rows{.name = "put_rows",
                                    .operands = 3,
                                    .access = {Access::write, Access::read, Access::read},
                                    .work = front_work::of_target,
                                    .flops_per_work = 0,
                                    .nominal_cost = 40};

/// Functions of the operations above for one backend.
struct FrontKernels {
  KernelFunction scatter_entries;
  KernelFunction clear_block;
  KernelFunction add_update;
  KernelFunction factor_front;
  KernelFunction factor_branch;
  KernelFunction factor_shared;
  KernelFunction sweep_branch;
  KernelFunction sweep_range;
  KernelFunction take_rows;
  KernelFunction put_rows;
};
/// In plain loops. T: double, float.
template <class T>
[[nodiscard]] FrontKernels front_reference();
/// By BLAS and LAPACK. T: double, float.
template <class T>
[[nodiscard]] FrontKernels front_host();

template <class T>
void add_kernels(KernelTable& table, const FrontKernels& kernels) {
  constexpr Element kNumber = element_of<T>;
  constexpr Element kPlace = Element::int32;
  constexpr Element kStatus = Element::fp64;
  table.set(scatter_entries, {kNumber, kNumber, kPlace}, kernels.scatter_entries);
  table.set(clear_block, {kNumber}, kernels.clear_block);
  table.set(add_update, {kNumber, kNumber, kPlace}, kernels.add_update);
  table.set(factor_front, {kNumber, kNumber, kStatus}, kernels.factor_front);
  table.set(factor_branch, {kNumber, kNumber, kStatus, kNumber, kPlace, kNumber},
            kernels.factor_branch);
  table.set(factor_shared, {kNumber, kNumber, kStatus, kNumber, kPlace, kNumber},
            kernels.factor_shared);
  table.set(sweep_branch, {kNumber, kNumber, kPlace, kNumber}, kernels.sweep_branch);
  table.set(sweep_range, {kNumber, kNumber, kPlace, kNumber}, kernels.sweep_range);
  table.set(take_rows, {kNumber, kNumber, kPlace}, kernels.take_rows);
  table.set(put_rows, {kNumber, kNumber, kPlace}, kernels.put_rows);
}

}  // namespace strata
