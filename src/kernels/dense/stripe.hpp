#pragma once
// stripe_factor, stripe_row and stripe_column: elimination by stripes of rows, whose pivots are
// searched within the stripe.
//
// Contract: the block D (b × b) is on the diagonal of a square matrix that is cut into stripes of b
// rows.
// * stripe_factor: operands D, its pivots (b integers) and its status (PanelStatus); the latter two
//   are overwritten. P·D = L·U, L with a unit diagonal that is not stored. Its variant s is the
//   number of rows of a substripe, within which rows are exchanged. The pivot of column j is the
//   first of the largest elements of that column in rows j … e − 1, e the end of the substripe that
//   holds row j. 0: rows stay as they are. Pivot j says that rows j and pivot j of the block were
//   exchanged, in this order of j, counted from 0.
// * stripe_row: operands X (b × c), its status, D as stripe_factor leaves it, and its pivots.
//   X ← L⁻¹·P·X, rows of U beside D.
// * stripe_column: operands X (r × b), its status and D. X ← X·U⁻¹, the multipliers of rows below.
// A pivot of zero is noted, and what else becomes of the numbers is not defined then. The status of
// a row of U has the largest element that came in or was left, that of multipliers the largest
// multiplier. T is double or float, or std::complex of one of them. Source: Carcenac, "From tile
// algorithm to stripe algorithm", 2013, where these are the eliminations <II>, <IK> and <JI>; <JK>
// is gemm.

#include "kernels/dense/getrf.hpp"

namespace strata {

inline constexpr Operation stripe_factor{
    .name = "stripe_factor",
    .operands = 3,
    .access = {Access::read_write, Access::write, Access::write},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      // Σ_j (b − j − 1)·(1 + 2·(b − j − 1))
      const auto b = static_cast<double>(x[0].cols);
      return b * b * b * 2 / 3 - b * b / 2 - b / 6;
    }};

inline constexpr Operation stripe_row{
    .name = "stripe_row",
    .operands = 4,
    .access = {Access::read_write, Access::write, Access::read, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      const auto b = static_cast<double>(x[2].cols);
      return static_cast<double>(x[0].cols) * b * (b - 1);
    }};

inline constexpr Operation stripe_column{
    .name = "stripe_column",
    .operands = 3,
    .access = {Access::read_write, Access::write, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      const auto b = static_cast<double>(x[2].cols);
      return static_cast<double>(x[0].rows) * b * b;
    }};

template <class T>
inline constexpr Elements kStripeRowElements{element_of<T>, Element::fp64, element_of<T>,
                                             Element::int64};
template <class T>
inline constexpr Elements kStripeColumnElements{element_of<T>, Element::fp64, element_of<T>};

template <class T>
void stripe_factor_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
template <class T>
void stripe_factor_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void stripe_factor_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void stripe_row_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);
template <class T>
void stripe_row_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void stripe_row_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void stripe_column_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
template <class T>
void stripe_column_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void stripe_column_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
