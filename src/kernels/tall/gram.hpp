#pragma once
// Sums over the rows of a tall and skinny block, and what is done to those rows on the way.
//
//   gram              B ← XᵀX                           operands B, V, d
//   apply_gram        B ← (X·R⁻¹)ᵀ(X·R⁻¹), V stays      operands B, V, R, d
//   solve_right_gram  V ← X·R⁻¹ and B ← VᵀV             operands B, V, R, d
//   solve_right       V ← X·R⁻¹                         operands V, R, d
//   solve_right_twice V ← (X·R⁻¹)·diag(e)·S⁻¹            operands V, R, d, S, e
//   inner             B ← XᵀY                           operands B, X, Y
//   gram_sum          C ← A + B, element by element     operands C, A, B
//   column_max        M_j ← max_r |v_rj|, NaN if any is operands M, V
//   column_dots       c_i ← v_iᵀ·v_j for a range of i   operands c, V
//   column_update     v_j ← v_j − Σ_i v_i·c_i           operands V, c
//
// X = V·diag(d), d (n × 1, fp64) powers of two or 0; V is h × n, B n × n and written as a whole
// (both triangles), R upper triangular (what lies below is not read), M n × 1 in fp64.
//
// Contract. The order of every sum is part of it, so that all backends give the same bits. With
// T the element of V and W that of B:
// * Row r of the block belongs to unit r div 1024, to tile r div 128 and to lane r mod 4; rows that
//   a last tile lacks are zeros. The lanes of a unit are added as (0 + 1) + (2 + 3), and units in a
//   binary tree: the sum of u > 1 units is that of the first h plus that of the others, h < u the
//   largest power of two. For dd all additions are of IEEE's kind, as in gram_sum. So blocks of 2^k
//   units each that are summed up in such a tree give the sum of the whole, whatever k is.
// * T → fp64 or fp32 (W = T, or fp64 of fp32, where products are exact): within a tile a lane is a
//   sum by fused multiply-adds from the first row to the last, starting at 0. The sums of the tiles
//   of a unit are added in their order.
// * fp64 → dd by extraction (Rump, Ogita, Oishi, "Accurate floating-point summation", 2008, applied
//   to products): within a tile a lane starts at a = 1.5·2^k, k = e_i + e_j + 6, where every |x| of
//   the tile's column j is below 2^e_j. For each row t = fma(x, y, a), q = t − a, l ← l + fma(x, y,
//   −q), a ← t. With 32 rows a lane t stays in the binade of a, so q and their sum s are exact and
//   only l is rounded. Then (hi, lo) ← (hi, lo) + (s, l) by Cray's addition.
// * fp64 → dd by digits (kDigitSums, of gram, apply_gram and solve_right_gram), for the integer
//   tensor cores of a GPU: without lanes. Rows of a unit come 32 at a time; the exponent e_j of
//   column j (gram_digits.hpp) is that of the largest magnitude from the first row of the unit to
//   the last of these. Digits of the rows are multiplied, and the products of each weight w = i + j
//   summed up exactly, over all rows that follow each other with the same e_i and e_j. With S_w
//   these sums: A = S₀·2²⁴ + S₁·2¹⁶ + S₂·2⁸ + S₃, B, C = S₈·2¹⁶ + S₉·2⁸ + S₁₀ and D = S₁₁·2⁸ + S₁₂
//   likewise. Then h = A·2³² + B, rounded, l = (B − (h − A·2³²)) + (C·2^-24 + D·2^-40), each sum
//   rounded, and (hi, lo) ← (hi, lo) + (h, l)·2^(e_i + e_j − 68) by Cray's addition. NaN where a
//   column has a number that is not finite.
// * The variants kCray, kIeee and kDot2 of gram and inner add products of doubles to the (hi, lo)
// of
//   a lane, by the two additions, or by Ogita, Rump and Oishi's Dot2 (2005); for comparison.
// * X·R⁻¹ is by substitution, in the element of R: q_j = (x_j − Σ_{i<j} q_i·R_ij) / R_jj, i
//   ascending, each step fused (in dd: subtract_product); q is rounded to T when it is complete,
//   and the Gram matrix is of what was rounded.
// * Where all is in fp64, columns 8k … 8k + 7 lose those before them in that way, which leaves y.
//   Let R = D·U be the triangle of these columns (that of the identity where there are none), U_ij
//   the rounded R_ij/R_ii and T near the inverse of U (eight_solve.hpp). Then q ← y·T, e ← y − q·U,
//   q ← q + e·T, each a chain of fused multiply-adds, rows of T and U ascending, from 0, y and q
//   on; q_j times the rounded 1/R_jj is the quotient. If T is not good, or an element of D is far
//   from 1, they are solved for by substitution.
// * solve_right_twice is solve_right twice: what is between is rounded to T, if not stored.
// * column_dots is gram's sum in the element of V, c (n × 1) is 0 outside of the range.
//   column_update takes i in ascending order, each product subtracted by a fused multiply-add; with
//   kNormalize it divides v_j by √c_j instead, unless c_j is not positive. Their variant holds j
//   and the range (column_variant): the steps of Gram and Schmidt's methods.
// * inner is the same sum for two matrices of equal rows, without scales; not by digits.

#include <cstdint>

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr int kGramLanes = 4;
inline constexpr int kGramLaneRows = 32;  ///< of a tile
inline constexpr int kGramTileRows = kGramLanes * kGramLaneRows;
inline constexpr int kGramUnitRows = 8 * kGramTileRows;

/// Rows of a block of a matrix of n columns of about so many elements: a power of two of units.
/// No sum depends on it.
[[nodiscard]] constexpr std::int64_t gram_block_rows(std::int64_t n,
                                                     std::int64_t elements = std::int64_t{1}
                                                                             << 18) noexcept {
  std::int64_t rows = elements;
  while (rows > kGramUnitRows && rows * n > elements) rows /= 2;
  return rows;
}

/// Variants of gram in dd; inner has all but the last, apply_gram and solve_right_gram have the
/// first and the last.
inline constexpr std::uint32_t kExtraction = 0;
inline constexpr std::uint32_t kCray = 1;
inline constexpr std::uint32_t kIeee = 2;
inline constexpr std::uint32_t kDot2 = 3;
inline constexpr std::uint32_t kDigitSums = 4;
/// kExtraction of gram on a GPU, for benchmarks: edge × edge pairs a thread and so many units at
/// once (gram_shape.hpp), the same bits whatever they are. CPUs refuse it.
struct SumShape {
  int edge, units;
};
[[nodiscard]] constexpr std::uint32_t shaped_extraction(const SumShape& shape) noexcept {
  return static_cast<std::uint32_t>(shape.edge << 8 | shape.units << 16);
}
[[nodiscard]] constexpr SumShape shape_of_variant(std::uint32_t variant) noexcept {
  return {static_cast<int>(variant >> 8 & 255U), static_cast<int>(variant >> 16 & 255U)};
}

/// The variant, without kDigitSums, whose bits are not those of others: what require_variant() is
/// to be told.
[[nodiscard]] constexpr std::uint32_t other_sums(std::uint32_t variant) noexcept {
  return variant == kDigitSums ? kExtraction : variant;
}

/// Variant of column_dots and column_update: column j and the columns first … first + count − 1,
/// each of fewer than 1024.
inline constexpr std::uint32_t kNormalize = 1U << 30;
[[nodiscard]] constexpr std::uint32_t column_variant(std::int64_t j, std::int64_t first,
                                                     std::int64_t count) noexcept {
  return static_cast<std::uint32_t>(j | first << 10 | count << 20);
}
struct ColumnRange {
  std::int64_t j, first, count;
};
[[nodiscard]] constexpr ColumnRange column_range(std::uint32_t variant) noexcept {
  return {variant & 1023U, variant >> 10 & 1023U, variant >> 20 & 1023U};
}

namespace gram_work {
inline double of_columns(double rows, std::uint32_t variant) {
  return 2 * rows * static_cast<double>(column_range(variant).count);
}
inline double dots(std::span<const BlockExtent> x, std::uint32_t variant) {
  return of_columns(static_cast<double>(x[1].rows), variant);
}
inline double update(std::span<const BlockExtent> x, std::uint32_t variant) {
  return of_columns(static_cast<double>(x[0].rows), variant);
}
inline double rows_by_squares(const BlockExtent& v) {
  return static_cast<double>(v.rows) * static_cast<double>(v.cols) * static_cast<double>(v.cols);
}
inline double first_after_sum(std::span<const BlockExtent> x, std::uint32_t) {
  return rows_by_squares(x[1]);
}
inline double solve_and_sum(std::span<const BlockExtent> x, std::uint32_t) {
  return 2 * rows_by_squares(x[1]);
}
inline double solve(std::span<const BlockExtent> x, std::uint32_t) { return rows_by_squares(x[0]); }
inline double two_solves(std::span<const BlockExtent> x, std::uint32_t) {
  return 2 * rows_by_squares(x[0]);
}
inline double products(std::span<const BlockExtent> x, std::uint32_t) {
  return 2 * static_cast<double>(x[1].rows) * static_cast<double>(x[0].rows) *
         static_cast<double>(x[0].cols);
}
inline double elements(std::span<const BlockExtent> x, std::uint32_t) {
  return static_cast<double>(x[1].rows) * static_cast<double>(x[1].cols);
}
}  // namespace gram_work

inline constexpr Operation gram{.name = "gram",
                                .operands = 3,
                                .access = {Access::write, Access::read, Access::read},
                                .work = gram_work::first_after_sum,
                                .nominal_cost = 2};
inline constexpr Operation apply_gram{
    .name = "apply_gram",
    .operands = 4,
    .access = {Access::write, Access::read, Access::read, Access::read},
    .work = gram_work::solve_and_sum,
    .nominal_cost = 2};
inline constexpr Operation solve_right_gram{
    .name = "solve_right_gram",
    .operands = 4,
    .access = {Access::write, Access::read_write, Access::read, Access::read},
    .work = gram_work::solve_and_sum,
    .nominal_cost = 2};
inline constexpr Operation solve_right{.name = "solve_right",
                                       .operands = 3,
                                       .access = {Access::read_write, Access::read, Access::read},
                                       .work = gram_work::solve,
                                       .nominal_cost = 2};
inline constexpr Operation solve_right_twice{
    .name = "solve_right_twice",
    .operands = 5,
    .access = {Access::read_write, Access::read, Access::read, Access::read, Access::read},
    .work = gram_work::two_solves,
    .nominal_cost = 2};
inline constexpr Operation inner{.name = "inner",
                                 .operands = 3,
                                 .access = {Access::write, Access::read, Access::read},
                                 .work = gram_work::products};
inline constexpr Operation gram_sum{.name = "gram_sum",
                                    .operands = 3,
                                    .access = {Access::write, Access::read, Access::read},
                                    .work = gram_work::elements,
                                    .nominal_cost = 25};
inline constexpr Operation column_max{.name = "column_max",
                                      .operands = 2,
                                      .access = {Access::write, Access::read},
                                      .work = gram_work::elements,
                                      .nominal_cost = 25};

inline constexpr Operation column_dots{.name = "column_dots",
                                       .operands = 2,
                                       .access = {Access::write, Access::read},
                                       .work = gram_work::dots,
                                       .nominal_cost = 25};
inline constexpr Operation column_update{.name = "column_update",
                                         .operands = 2,
                                         .access = {Access::read_write, Access::read},
                                         .work = gram_work::update,
                                         .nominal_cost = 25};

/// The lists of elements for which there are kernels, d and M always fp64: the sums are in the
/// element of V or in the one of twice its bits, and so is R.
inline constexpr Elements kGramElements[] = {{Element::fp64, Element::fp64, Element::fp64},
                                             {Element::dd, Element::fp64, Element::fp64},
                                             {Element::fp64, Element::fp32, Element::fp64},
                                             {Element::fp32, Element::fp32, Element::fp64}};
/// Elements of apply_gram and solve_right_gram: B, V, R, d.
inline constexpr Elements kSolveGramElements[] = {
    {Element::fp64, Element::fp64, Element::fp64, Element::fp64},
    {Element::dd, Element::fp64, Element::fp64, Element::fp64},
    {Element::fp64, Element::fp64, Element::dd, Element::fp64},
    {Element::dd, Element::fp64, Element::dd, Element::fp64},
    {Element::fp64, Element::fp32, Element::fp32, Element::fp64},
    {Element::fp32, Element::fp32, Element::fp32, Element::fp64},
    {Element::fp64, Element::fp32, Element::fp64, Element::fp64},
    {Element::fp32, Element::fp32, Element::fp64, Element::fp64}};
/// V, R, d.
inline constexpr Elements kSolveElements[] = {{Element::fp64, Element::fp64, Element::fp64},
                                              {Element::fp64, Element::dd, Element::fp64},
                                              {Element::fp32, Element::fp32, Element::fp64},
                                              {Element::fp32, Element::fp64, Element::fp64}};
/// V, R, d, S, e.
inline constexpr Elements kSolveTwiceElements[] = {Elements(5, Element::fp64)};
inline constexpr Elements kInnerElements[] = {{Element::fp64, Element::fp64, Element::fp64},
                                              {Element::dd, Element::fp64, Element::fp64},
                                              {Element::fp64, Element::fp32, Element::fp32},
                                              {Element::fp32, Element::fp32, Element::fp32}};
inline constexpr Elements kGramSumElements[] = {
    Elements(3, Element::fp64), Elements(3, Element::dd), Elements(3, Element::fp32)};
inline constexpr Elements kColumnMaxElements[] = {{Element::fp64, Element::fp64},
                                                  {Element::fp64, Element::fp32}};

/// Elements of column_dots and column_update.
inline constexpr Elements kColumnElements[] = {Elements(2, Element::fp64),
                                               Elements(2, Element::fp32)};

/// The kernels of a backend; each takes all of the elements above.
struct GramKernels {
  KernelFunction gram;
  KernelFunction apply_gram;
  KernelFunction solve_right_gram;
  KernelFunction solve_right;
  KernelFunction solve_right_twice;
  KernelFunction inner;
  KernelFunction gram_sum;
  KernelFunction column_max;
  KernelFunction column_dots;
  KernelFunction column_update;
};
inline void add_kernels(KernelTable& table, const GramKernels& kernels) {
  const auto add = [&table](const Operation& operation, const auto& lists, KernelFunction kernel) {
    for (const Elements& elements : lists) table.set(operation, elements, kernel);
  };
  add(gram, kGramElements, kernels.gram);
  add(apply_gram, kSolveGramElements, kernels.apply_gram);
  add(solve_right_gram, kSolveGramElements, kernels.solve_right_gram);
  add(solve_right, kSolveElements, kernels.solve_right);
  add(solve_right_twice, kSolveTwiceElements, kernels.solve_right_twice);
  add(inner, kInnerElements, kernels.inner);
  add(gram_sum, kGramSumElements, kernels.gram_sum);
  add(column_max, kColumnMaxElements, kernels.column_max);
  add(column_dots, kColumnElements, kernels.column_dots);
  add(column_update, kColumnElements, kernels.column_update);
}

/// In plain loops, a pair of columns after the other.
[[nodiscard]] GramKernels gram_reference();
/// For the CPU: a tile of rows at a time, four lanes a vector.
[[nodiscard]] GramKernels gram_host();

}  // namespace strata
