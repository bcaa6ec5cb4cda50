#pragma once
// Steps of Krylov methods on a tall block V (h × n, fp64 or fp32), whose columns are vectors. A
// kernel touches a range of columns, a *panel*, and leaves the others as they are.
//
//   spmv          v_to ← γ·(A·x − α·v_from − β·v_before)        operands V, P, J, A, H, K
//   halo_pack     g_i ← v_from[I_i]                             operands G, V, I
//   halo_start    h[g's row + i] ← g_i, H begins anew           operands H, G
//   halo_put      the same, H keeps the rest                    operands H, G
//   panel_inner   B ← XᵀY, chunk by chunk of rows               operands B, V
//   panel_start   S ← the sum of the chunks in B                operands S, B
//   panel_add     S ← S + the chunks in B                       operands S, B
//   panel_update  Y ← Y − X·S, or y ← y/√s                      operands V, S
//   panel_solve   Y ← Y·diag(d)·R⁻¹                             operands V, R, d
//   panel_rotate  Z ← X·S, Z in the place of V's columns        operands V, S
//   panel_take    c ← v_from                                    operands C, V
//   panel_put     v_from ← c                                    operands V, C
//   panel_correct w ← w − X·s                                   operands W, V, S
//   panel_narrow  v_to ← w_from/√s, or w_from                   operands V, W, S
//
// A is the part of a sparse matrix in the rows of V, compressed by rows: P (h + 1, int32) says
// where each row begins in J (columns, int32) and A (values). A column below h is a row of V,
// column h + i is element i of the halo H, which holds what other blocks have of x. x is v_from, or
// with kSpmvOfLast the last column of V, where a preconditioner's result lies. K is 3 × n: α, β and
// γ for each column as `to`; where β is 0 v_before is not read, else it may be v_to. I is int32, R
// upper triangular in fp64 or dd, d powers of two in fp64; A, H, G and C are in the element of V, K
// in fp64; B and S are fp64 or dd, of V in fp32 also fp32. W are columns in fp64 beside V in fp32.
//
// Contract. The order of every sum is part of it, so that all backends, and any cut of a matrix
// into blocks of whole chunks, give the same bits:
// * Elements in fp32 are widened as they are read, everything is computed in fp64 as for V in fp64,
//   and what is written is rounded once (sums B in fp32 are those of `inner`).
// * A row of spmv is filled up with zeros to a multiple of four entries; entry k belongs to lane
//   k mod 4, a lane is a sum by fused multiply-adds from 0, lanes are added as (0 + 1) + (2 + 3).
//   Then t ← fma(−α, v_from, t), t ← fma(−β, v_before, t), and γ·t is rounded. Whoever cuts the
//   matrix keeps the order of a row's entries.
// * A chunk is 2^c rows, the last of V may be shorter; B is p × (q·chunks), and its columns from
//   q·k on are `inner` (gram.hpp) of the rows of chunk k.
// * panel_start and panel_add add the chunks in their order, each sum rounded (dd: by the addition
//   of IEEE's kind).
// * panel_update takes the columns of X in ascending order, each product subtracted by a fused
//   multiply-add; with kNormalize it divides y by √s instead, unless s is not positive; so does
//   panel_narrow, and panel_correct is an update. panel_solve is solve_right of gram.hpp.
// * panel_rotate multiplies all of V's first p columns by S (p × q, q <= p) and puts the result
// into
//   the first q: an element is a sum by fused multiply-adds from 0, columns of X ascending.

#include <cstdint>
#include <type_traits>

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr std::int64_t kPanelColumnsMax = 1023;
inline constexpr int kSpmvLanes = 4;

/// Rows of a chunk of a matrix of m rows: a power of two, from m alone, so that there are at most
/// 64 chunks; 128 at least, which is a tile of a sum.
[[nodiscard]] constexpr int panel_chunk_log2(std::int64_t m) noexcept {
  int log2 = 7;
  while ((std::int64_t{64} << log2) < m) ++log2;
  return log2;
}

/// The columns that a call names; each is at most kPanelColumnsMax.
struct PanelColumns {
  std::int64_t first = 0;   ///< of X; `from`
  std::int64_t second = 0;  ///< of Y; `to`
  /// `before`; of panel_inner: c; of panel_update: how many columns of S are left out.
  std::int64_t third = 0;
};
[[nodiscard]] constexpr std::uint32_t panel_variant(const PanelColumns& columns) noexcept {
  return static_cast<std::uint32_t>(columns.first | columns.second << 10 | columns.third << 20);
}
[[nodiscard]] constexpr PanelColumns panel_columns(std::uint32_t variant) noexcept {
  return {variant & 1023U, variant >> 10 & 1023U, variant >> 20 & 1023U};
}
inline constexpr std::uint32_t kPanelVariants = (1U << 30) - 1;
/// Variant of panel_update: y is normalized; X is not read.
inline constexpr std::uint32_t kPanelNormalize = 1U << 30;
/// Variant of spmv: A multiplies the last column of V in the place of v_from.
inline constexpr std::uint32_t kSpmvOfLast = 1U << 30;

namespace panel_work {
inline double elements(const BlockExtent& x) {
  return static_cast<double>(x.rows) * static_cast<double>(x.cols);
}
inline double entries(std::span<const BlockExtent> x, std::uint32_t) {
  return 2 * (elements(x[3]) + 2 * static_cast<double>(x[0].rows));
}
inline double written(std::span<const BlockExtent> x, std::uint32_t) { return elements(x[0]); }
inline double second(std::span<const BlockExtent> x, std::uint32_t) { return elements(x[1]); }
/// B holds a result for each chunk.
inline double inner(std::span<const BlockExtent> x, std::uint32_t variant) {
  const auto chunk = static_cast<double>(std::int64_t{1} << panel_columns(variant).third);
  return 2 * elements(x[0]) * chunk;
}
inline double update(std::span<const BlockExtent> x, std::uint32_t) {
  return 2 * static_cast<double>(x[0].rows) * elements(x[1]);
}
inline double correct(std::span<const BlockExtent> x, std::uint32_t) {
  return 2 * static_cast<double>(x[0].rows) * elements(x[2]);
}
inline double rows(std::span<const BlockExtent> x, std::uint32_t) {
  return static_cast<double>(x[0].rows);
}
}  // namespace panel_work

inline constexpr Operation spmv{.name = "spmv",
                                .operands = 6,
                                .access = {Access::read_write, Access::read, Access::read,
                                           Access::read, Access::read, Access::read},
                                .work = panel_work::entries,
                                .nominal_cost = 50};
inline constexpr Operation halo_pack{.name = "halo_pack",
                                     .operands = 3,
                                     .access = {Access::write, Access::read, Access::read},
                                     .work = panel_work::written,
                                     .flops_per_work = 0,
                                     .nominal_cost = 50};
inline constexpr Operation halo_start{.name = "halo_start",
                                      .operands = 2,
                                      .access = {Access::write, Access::read},
                                      .work = panel_work::second,
                                      .flops_per_work = 0,
                                      .nominal_cost = 50};
inline constexpr Operation halo_put{.name = "halo_put",
                                    .operands = 2,
                                    .access = {Access::read_write, Access::read},
                                    .work = panel_work::second,
                                    .flops_per_work = 0,
                                    .nominal_cost = 50};
inline constexpr Operation panel_inner{.name = "panel_inner",
                                       .operands = 2,
                                       .access = {Access::write, Access::read},
                                       .work = panel_work::inner,
                                       .nominal_cost = 2};
inline constexpr Operation panel_start{.name = "panel_start",
                                       .operands = 2,
                                       .access = {Access::write, Access::read},
                                       .work = panel_work::second,
                                       .nominal_cost = 25};
inline constexpr Operation panel_add{.name = "panel_add",
                                     .operands = 2,
                                     .access = {Access::read_write, Access::read},
                                     .work = panel_work::second,
                                     .nominal_cost = 25};
inline constexpr Operation panel_update{.name = "panel_update",
                                        .operands = 2,
                                        .access = {Access::read_write, Access::read},
                                        .work = panel_work::update,
                                        .nominal_cost = 2};
inline constexpr Operation panel_solve{.name = "panel_solve",
                                       .operands = 3,
                                       .access = {Access::read_write, Access::read, Access::read},
                                       .work = panel_work::update,
                                       .nominal_cost = 2};
inline constexpr Operation panel_rotate{.name = "panel_rotate",
                                        .operands = 2,
                                        .access = {Access::read_write, Access::read},
                                        .work = panel_work::update,
                                        .nominal_cost = 2};
inline constexpr Operation panel_put{.name = "panel_put",
                                     .operands = 2,
                                     .access = {Access::read_write, Access::read},
                                     .work = panel_work::second,
                                     .flops_per_work = 0,
                                     .nominal_cost = 50};
inline constexpr Operation panel_correct{.name = "panel_correct",
                                         .operands = 3,
                                         .access = {Access::read_write, Access::read, Access::read},
                                         .work = panel_work::correct,
                                         .nominal_cost = 2};
inline constexpr Operation panel_narrow{.name = "panel_narrow",
                                        .operands = 3,
                                        .access = {Access::read_write, Access::read, Access::read},
                                        .work = panel_work::rows,
                                        .nominal_cost = 50};
inline constexpr Operation panel_take{.name = "panel_take",
                                      .operands = 2,
                                      .access = {Access::write, Access::read},
                                      .work = panel_work::written,
                                      .flops_per_work = 0,
                                      .nominal_cost = 50};

/// V, P, J, A, H, K.
inline constexpr Elements kSpmvElements[] = {
    {Element::fp64, Element::int32, Element::int32, Element::fp64, Element::fp64, Element::fp64},
    {Element::fp32, Element::int32, Element::int32, Element::fp32, Element::fp32, Element::fp64}};
inline constexpr Elements kHaloPackElements[] = {{Element::fp64, Element::fp64, Element::int32},
                                                 {Element::fp32, Element::fp32, Element::int32}};
/// Elements of the operations that copy.
inline constexpr Elements kPanelCopyElements[] = {Elements(2, Element::fp64),
                                                  Elements(2, Element::fp32)};
inline constexpr Elements kPanelInnerElements[] = {{Element::fp64, Element::fp64},
                                                   {Element::dd, Element::fp64},
                                                   {Element::fp64, Element::fp32},
                                                   {Element::fp32, Element::fp32}};
inline constexpr Elements kPanelSumElements[] = {
    Elements(2, Element::fp64), Elements(2, Element::dd), Elements(2, Element::fp32)};
inline constexpr Elements kPanelUpdateElements[] = {{Element::fp64, Element::fp64},
                                                    {Element::fp32, Element::fp64}};
inline constexpr Elements kPanelSolveElements[] = {{Element::fp64, Element::fp64, Element::fp64},
                                                   {Element::fp64, Element::dd, Element::fp64},
                                                   {Element::fp32, Element::fp64, Element::fp64}};
inline constexpr Elements kPanelCorrectElements{Element::fp64, Element::fp32, Element::fp64};
inline constexpr Elements kPanelNarrowElements{Element::fp32, Element::fp64, Element::fp64};

/// The kernels of a backend; each takes all of the elements above.
struct PanelKernels {
  KernelFunction spmv;
  KernelFunction halo_pack;
  KernelFunction halo_start;
  KernelFunction halo_put;
  KernelFunction inner;
  KernelFunction start;
  KernelFunction add;
  KernelFunction update;
  KernelFunction solve;
  KernelFunction rotate;
  KernelFunction take;
  KernelFunction put;
  KernelFunction correct;
  KernelFunction narrow;
};
inline void add_kernels(KernelTable& table, const PanelKernels& kernels) {
  const auto add = [&table](const Operation& operation, const auto& lists, KernelFunction kernel) {
    for (const Elements& elements : lists) table.set(operation, elements, kernel);
  };
  add(spmv, kSpmvElements, kernels.spmv);
  add(halo_pack, kHaloPackElements, kernels.halo_pack);
  add(halo_start, kPanelCopyElements, kernels.halo_start);
  add(halo_put, kPanelCopyElements, kernels.halo_put);
  add(panel_inner, kPanelInnerElements, kernels.inner);
  add(panel_start, kPanelSumElements, kernels.start);
  add(panel_add, kPanelSumElements, kernels.add);
  add(panel_update, kPanelUpdateElements, kernels.update);
  add(panel_solve, kPanelSolveElements, kernels.solve);
  table.set(panel_rotate, Elements(2, Element::fp64), kernels.rotate);
  add(panel_take, kPanelCopyElements, kernels.take);
  add(panel_put, kPanelCopyElements, kernels.put);
  table.set(panel_correct, kPanelCorrectElements, kernels.correct);
  table.set(panel_narrow, kPanelNarrowElements, kernels.narrow);
}

/// Calls f with the type of the elements of a vector, as std::type_identity.
template <class F>
void with_vectors(Element element, F&& f) {
  if (element == Element::fp32) return f(std::type_identity<float>{});
  f(std::type_identity<double>{});
}

/// The element that is `count` elements behind the first of a block.
[[nodiscard]] inline void* element_at(const BlockView& v, std::int64_t count) {
  return static_cast<std::byte*>(v.data) + count * bytes_of(v.element);
}

/// Columns first … first + count − 1 of V as a block of their own.
[[nodiscard]] inline BlockView panel_of(const BlockView& v, std::int64_t first,
                                        std::int64_t count) {
  BlockView panel = v;
  panel.data = element_at(v, first * v.ld);
  panel.cols = count;
  return panel;
}

/// The calls of `inner` (B, X, Y) that a call of panel_inner stands for, one for each chunk.
[[nodiscard]] inline std::vector<BlockView> chunks_of(const BlockView& b, const BlockView& v,
                                                      std::uint32_t variant) {
  const PanelColumns columns = panel_columns(variant);
  const std::int64_t height = std::int64_t{1} << columns.third;
  const std::int64_t chunks = (v.rows + height - 1) / height;
  std::vector<BlockView> views;
  for (std::int64_t k = 0; k < chunks; ++k) {
    BlockView sum = b;
    sum.cols = b.cols / chunks;
    sum.data = element_at(b, k * sum.cols * b.ld);
    BlockView rows = v;
    rows.data = element_at(v, k * height);
    rows.rows = v.rows - k * height < height ? v.rows - k * height : height;
    views.push_back(sum);
    views.push_back(panel_of(rows, columns.first, b.rows));
    views.push_back(panel_of(rows, columns.second, sum.cols));
  }
  return views;
}

/// In plain loops.
[[nodiscard]] PanelKernels panel_reference();
/// For the CPU, see panel_host.cpp.
[[nodiscard]] PanelKernels panel_host();

}  // namespace strata
