#pragma once
// Householder QR of blocks of rows, and of two triangles one on the other.
//
//   householder_r   R ← the triangle of X                      operands R, X
//   householder_q   X ← Q·C, Q·R the factorization of X        operands X, C
//   stacked_r       R ← the triangle of [A; B]                 operands R, A, B
//   stacked_q       [C; D] ← Q·E, of the same                  operands C, D, A, B, E
//
// X is h × n in fp64 or fp32, all others are n × n in fp64 and written as a whole; the arithmetic
// is fp64's, rounded to the element of X last. With fewer rows than columns X is taken to have rows
// of zeros below it, so R has rows of zeros and those rows of Q·C are nowhere. Diagonals of R have
// the sign that comes out. What is not finite in X gives an R that is not.
//
// Contract. Nothing depends on the backend, because the order of every sum is fixed:
// * X is cut into panels of householder_panel_rows(n) rows. Their triangles, one below the other,
//   householder_stack(n) at a time, are the next panels, until one is left. Q·C goes the way back:
//   the rows of a panel are its Q times the n rows that the panel above has for it.
// * A panel is factored column by column (Golub and Van Loan, Matrix Computations, 5.1 and 5.2). In
//   column j, x its elements from row j on and 2^e the power of two of the largest: y = x·2^-e,
//   σ = Σ_{r>j} y_r². Then v_r = y_r·s below row j, v_j = 1, and 0 above. If σ = 0 there is no
//   reflection: τ = s = 0 and R_jj = x_j. Else ν = √(y_j² + σ) by a fused multiply-add, β = −ν for
//   y_j >= 0, else ν; τ = (β − y_j)/β, s = 1/(y_j − β), R_jj = β·2^e. Each later column a:
//   t = τ·Σ v_r·a_r, a_r ← fma(−t, v_r, a_r).
// * Q·C = [C; 0] − V·W, V the columns v of the p = min(rows, n) reflections, W the factors t of
//   these one after the other, from the last to the first. They need no sum over the rows of Q·C:
//   they follow from G = VᵀV and b = Vᵀ[C; 0] (Puglisi, "Modification of the Householder method
//   based on the compact WY representation", SIAM J. Sci. Stat. Comput. 13, 1992). b_j is c_j and
//   then b_j ← fma(v_rj, c_r, b_j) for r = j + 1 … p − 1; for k = p − 1 … 0, w_k = τ_k·b_k and
//   b_j ← fma(−G_jk, w_k, b_j) for all j < k. A row of −V·W is a chain of fma(−v_rk, w_k, ·) from 0
//   on for k = 0 … p − 1. That of C is added last, so that most roundings are those of numbers
//   smaller than it: from c_r on, the residual of 140 columns was three times as large.
// * Σ over rows, and those of G, are over all rows of the panel in 32 lanes, row r of the panel in
//   lane r mod 32: a chain of fused multiply-adds from 0 on. Lanes are added by halves, i and
//   i + 16, i + 8, … i + 1.

#include <cstdint>

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr int kHouseholderLanes = 32;

/// Up to so many columns a panel has no more elements than one warp of a GPU holds in registers, …
inline constexpr std::int64_t kHouseholderNarrow = 24;
/// A power of two, at least 4·n and 128: … and from there on, up to n = 64, no more than eight
/// warps do.
[[nodiscard]] constexpr std::int64_t householder_panel_rows(std::int64_t n) noexcept {
  const std::int64_t elements = n <= kHouseholderNarrow ? 128 * kHouseholderNarrow : 1 << 13;
  std::int64_t rows = 128;
  while (rows < 4 * n) rows *= 2;
  while (2 * rows * n <= elements && rows < 512) rows *= 2;
  return rows;
}
/// How many triangles a panel above is made of.
[[nodiscard]] constexpr std::int64_t householder_stack(std::int64_t n) noexcept {
  return householder_panel_rows(n) / n;
}

namespace householder_work {
inline double of_rows(double rows, double columns) { return 2 * rows * columns * columns; }
inline double triangle(std::span<const BlockExtent> x, std::uint32_t) {
  return of_rows(static_cast<double>(x[1].rows), static_cast<double>(x[1].cols));
}
inline double product(std::span<const BlockExtent> x, std::uint32_t) {
  return 2.5 * of_rows(static_cast<double>(x[0].rows), static_cast<double>(x[0].cols));
}
inline double stacked_triangle(std::span<const BlockExtent> x, std::uint32_t) {
  return of_rows(2 * static_cast<double>(x[0].rows), static_cast<double>(x[0].cols));
}
inline double stacked_product(std::span<const BlockExtent> x, std::uint32_t variant) {
  return 2.5 * stacked_triangle(x, variant);
}
}  // namespace householder_work

inline constexpr Operation householder_r{.name = "householder_r",
                                         .operands = 2,
                                         .access = {Access::write, Access::read},
                                         .work = householder_work::triangle,
                                         .nominal_cost = 4};
inline constexpr Operation householder_q{.name = "householder_q",
                                         .operands = 2,
                                         .access = {Access::read_write, Access::read},
                                         .work = householder_work::product,
                                         .nominal_cost = 4};
inline constexpr Operation stacked_r{.name = "stacked_r",
                                     .operands = 3,
                                     .access = {Access::write, Access::read, Access::read},
                                     .work = householder_work::stacked_triangle,
                                     .nominal_cost = 4};
inline constexpr Operation stacked_q{
    .name = "stacked_q",
    .operands = 5,
    .access = {Access::write, Access::write, Access::read, Access::read, Access::read},
    .work = householder_work::stacked_product,
    .nominal_cost = 4};

inline constexpr Elements kHouseholderRElements[] = {{Element::fp64, Element::fp64},
                                                     {Element::fp64, Element::fp32}};
inline constexpr Elements kHouseholderQElements[] = {{Element::fp64, Element::fp64},
                                                     {Element::fp32, Element::fp64}};
inline constexpr Elements kStackedRElements[] = {Elements(3, Element::fp64)};
inline constexpr Elements kStackedQElements[] = {Elements(5, Element::fp64)};

/// The kernels of a backend; each takes all of the elements above.
struct HouseholderKernels {
  KernelFunction householder_r;
  KernelFunction householder_q;
  KernelFunction stacked_r;
  KernelFunction stacked_q;
};
inline void add_kernels(KernelTable& table, const HouseholderKernels& kernels) {
  const auto add = [&table](const Operation& operation, const auto& lists, KernelFunction kernel) {
    for (const Elements& elements : lists) table.set(operation, elements, kernel);
  };
  add(householder_r, kHouseholderRElements, kernels.householder_r);
  add(householder_q, kHouseholderQElements, kernels.householder_q);
  add(stacked_r, kStackedRElements, kernels.stacked_r);
  add(stacked_q, kStackedQElements, kernels.stacked_q);
}

/// In plain loops.
[[nodiscard]] HouseholderKernels householder_reference();
/// For the CPU: the lanes of a sum in vectors.
[[nodiscard]] HouseholderKernels householder_host();

}  // namespace strata
