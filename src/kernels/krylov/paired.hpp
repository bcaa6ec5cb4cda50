#pragma once
// Steps of recurrences that each column has for itself: column j of a block meets column j of
// others, and no other column but its neighbours in paired_dots.
//
//   paired_quotient  x_j ← y_j/d_j                              operands X, Y, D
//   paired_start     W ← X, Y ← 0                               operands W, Y, X
//   paired_gather    G ← the rows of W, W' … that it has        operands G, W, more: W' …
//   paired_excess    Y ← −Y − X                                 operands Y, X
//   paired_dots      P_j ← x_jᵀ·y_j, in two numbers             operands P, X, Y
//   paired_sum       s_j ← the sum of P_j, P'_j …, rounded once operands S, P, more: P' …
//   paired_subtract  y_j ← y_j − s_j·x_j                        operands Y, X, S
//
// All are fp64. X, Y and W are h × c, P is 2 × c, D and S are 1 × c. G is of another height:
// paired_gather takes the rows of each W that lie in G's range, by the places of the blocks in the
// whole matrix (BlockView::row), and the blocks W together have them all.
//
// Contract. An element of what is not a sum is one operation, rounded once, −s·x + y a fused one:
// so all backends give the same bits. A dot product is the sum of the rounded products, first row
// of P, and the sum of all that was lost in it, second row (Ogita, Rump, Oishi, "Accurate sum and
// dot product", SIAM J. Sci. Comput. 26, 2005, algorithm 5.3); paired_sum adds the parts likewise,
// in the order of its operands. So |error of s_j| <= u·|s_j| + γ²·Σ|x_ij·y_ij|, u = 2⁻⁵³, γ = m·u
// for m rows in all. In which order a part is added up is the backend's affair, and the same for
// every width of a block: the last bits of P may differ among backends, those of s seldom do. What
// is not finite gives a dot product that is not finite.

#include <cstdint>

#include "kernels/backend/kernel_table.hpp"

namespace strata {

/// Variants of paired_dots: x_{j+1}ᵀ·y_j, 0 for the last j; x_{j−1}ᵀ·y_j, 0 for the first.
inline constexpr std::uint32_t kPairedWithNext = 1;
inline constexpr std::uint32_t kPairedWithLast = 2;

namespace paired_work {
inline double first(std::span<const BlockExtent> x, std::uint32_t) {
  return static_cast<double>(x[0].rows) * static_cast<double>(x[0].cols);
}
inline double second(std::span<const BlockExtent> x, std::uint32_t) {
  return static_cast<double>(x[1].rows) * static_cast<double>(x[1].cols);
}
}  // namespace paired_work

inline constexpr Operation paired_quotient{.name = "paired_quotient",
                                           .operands = 3,
                                           .access = {Access::write, Access::read, Access::read},
                                           .work = paired_work::first,
                                           .nominal_cost = 25};
inline constexpr Operation paired_start{.name = "paired_start",
                                        .operands = 3,
                                        .access = {Access::write, Access::write, Access::read},
                                        .work = paired_work::first,
                                        .flops_per_work = 0,
                                        .nominal_cost = 25};
inline constexpr Operation paired_gather{.name = "paired_gather",
                                         .operands = 2,
                                         .access = {Access::write, Access::read},
                                         .work = paired_work::first,
                                         .flops_per_work = 0,
                                         .nominal_cost = 25};
inline constexpr Operation paired_excess{.name = "paired_excess",
                                         .operands = 2,
                                         .access = {Access::read_write, Access::read},
                                         .work = paired_work::first,
                                         .nominal_cost = 25};
inline constexpr Operation paired_dots{.name = "paired_dots",
                                       .operands = 3,
                                       .access = {Access::write, Access::read, Access::read},
                                       .work = paired_work::second,
                                       .flops_per_work = 2,
                                       .nominal_cost = 25};
inline constexpr Operation paired_sum{.name = "paired_sum",
                                      .operands = 2,
                                      .access = {Access::write, Access::read},
                                      .work = paired_work::second,
                                      .nominal_cost = 50};
inline constexpr Operation paired_subtract{
    .name = "paired_subtract",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::read},
    .work = paired_work::first,
    .flops_per_work = 2,
    .nominal_cost = 25};

/// The kernels of a backend.
struct PairedKernels {
  KernelFunction quotient;
  KernelFunction start;
  KernelFunction gather;
  KernelFunction excess;
  KernelFunction dots;
  KernelFunction sum;
  KernelFunction subtract;
};
inline void add_kernels(KernelTable& table, const PairedKernels& kernels) {
  const auto add = [&table](const Operation& operation, KernelFunction kernel) {
    table.set(operation, Elements(operation.operands, Element::fp64), kernel);
  };
  add(paired_quotient, kernels.quotient);
  add(paired_start, kernels.start);
  add(paired_gather, kernels.gather);
  add(paired_excess, kernels.excess);
  add(paired_dots, kernels.dots);
  add(paired_sum, kernels.sum);
  add(paired_subtract, kernels.subtract);
}

/// The rows that block `w` has of block `g`: the first in each, and how many.
struct SharedRows {
  std::int64_t in_g = 0;
  std::int64_t in_w = 0;
  std::int64_t count = 0;
};
[[nodiscard]] inline SharedRows shared_rows(const BlockView& g, const BlockView& w) noexcept {
  const std::int64_t first = g.row > w.row ? g.row : w.row;
  const std::int64_t g_end = g.row + g.rows;
  const std::int64_t w_end = w.row + w.rows;
  const std::int64_t end = g_end < w_end ? g_end : w_end;
  return {first - g.row, first - w.row, end > first ? end - first : 0};
}

/// The column of X that meets column j of Y; −1: none.
[[nodiscard]] constexpr std::int64_t paired_column(std::int64_t j, std::int64_t cols,
                                                   std::uint32_t variant) noexcept {
  if (variant == kPairedWithNext) return j + 1 < cols ? j + 1 : -1;
  if (variant == kPairedWithLast) return j - 1;
  return j;
}

/// In plain loops.
[[nodiscard]] PairedKernels paired_reference();
/// For the CPU, see paired_host.cpp.
[[nodiscard]] PairedKernels paired_host();

}  // namespace strata
