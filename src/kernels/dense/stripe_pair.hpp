#pragma once
// stripe_pair_factor, stripe_pair_row and stripe_pair_update: a stripe J is eliminated by a stripe
// I above it, with pivots searched in the rows of both.
//
// Contract: D (b × b) is the diagonal block of stripe I, U on and above its diagonal; what is below
// is left alone. X (r × b) is the block of stripe J under it. Columns are eliminated w at a time, w
// the rows of W (w × b). For columns q … q + w − 1 the rows q … q + w − 1 of U and all rows of X
// are one panel of w + r rows, with zeros below the diagonal of U. It is factored with partial
// pivoting. Its U stays in D, the rows of L that belong to X stay in X, and those that exchanges
// brought into the upper rows go to columns q … of W, strictly below the diagonal, zeros elsewhere.
// Pivot j of these columns says which row of the panel was exchanged with row j − q of it, counted
// from 0.
// * stripe_pair_factor: operands D, its status (PanelStatus), X, W, the pivots (b integers) and X's
//   status; the last three are overwritten. The status of D is that of U as it is left; its largest
//   element counts what was met before. X's has the largest multiplier.
// * stripe_pair_row: operands Y (b × c, of stripe I), Z (r × c, of stripe J), Y's status, W, X and
//   the pivots. Both take exchanges and multipliers; Y's status takes note of what is in Y.
// * stripe_pair_update: the same without a status, of right-hand sides. With kAdjointFactor
//   (lu_update.hpp) the adjoint of that.
// T is double or float, or std::complex of one of them. Source: Buttari, Langou, Kurzak, Dongarra,
// "A class of parallel tiled linear algebra algorithms for multicore architectures", Parallel
// Computing 35, 2009, whose DTSTRF and DSSSSM these are; Sorensen, "Analysis of pairwise pivoting
// in Gaussian elimination", IEEE Trans. Computers C-34, 1985.

#include "kernels/dense/getrf.hpp"

namespace strata {

inline constexpr Operation stripe_pair_factor{
    .name = "stripe_pair_factor",
    .operands = 6,
    .access = {Access::read_write, Access::read_write, Access::read_write, Access::write,
               Access::write, Access::write},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      const auto b = static_cast<double>(x[2].cols);
      // Quotients and products of X, and the triangles of W upon the columns behind them.
      return b * b * (static_cast<double>(x[2].rows) + static_cast<double>(x[3].rows - 1) / 2);
    }};

/// 2·r·b·c of products, and b·(w − 1)·c of the triangles.
inline double work_of_pair(double c, const BlockExtent& w, const BlockExtent& x) {
  return c * static_cast<double>(x.cols) *
         (2 * static_cast<double>(x.rows) + static_cast<double>(w.rows - 1));
}

inline constexpr Operation stripe_pair_row{
    .name = "stripe_pair_row",
    .operands = 6,
    .access = {Access::read_write, Access::read_write, Access::read_write, Access::read,
               Access::read, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      return work_of_pair(static_cast<double>(x[0].cols), x[3], x[4]);
    }};

inline constexpr Operation stripe_pair_update{
    .name = "stripe_pair_update",
    .operands = 5,
    .access = {Access::read_write, Access::read_write, Access::read, Access::read, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      return work_of_pair(static_cast<double>(x[0].cols), x[2], x[3]);
    }};

template <class T>
inline constexpr Elements kPairFactorElements{element_of<T>, Element::fp64,  element_of<T>,
                                              element_of<T>, Element::int64, Element::fp64};
template <class T>
inline constexpr Elements kPairRowElements{element_of<T>, element_of<T>, Element::fp64,
                                           element_of<T>, element_of<T>, Element::int64};
template <class T>
inline constexpr Elements kPairUpdateElements{element_of<T>, element_of<T>, element_of<T>,
                                              element_of<T>, Element::int64};

template <class T>
void stripe_pair_factor_reference(Queue& queue, const KernelCalls& calls,
                                  const KernelParameters& parameters);
template <class T>
void stripe_pair_factor_host(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
template <class T>
void stripe_pair_factor_cuda(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
template <class T>
void stripe_pair_row_reference(Queue& queue, const KernelCalls& calls,
                               const KernelParameters& parameters);
template <class T>
void stripe_pair_row_host(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);
template <class T>
void stripe_pair_row_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);
template <class T>
void stripe_pair_update_reference(Queue& queue, const KernelCalls& calls,
                                  const KernelParameters& parameters);
template <class T>
void stripe_pair_update_host(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
template <class T>
void stripe_pair_update_cuda(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);

}  // namespace strata
