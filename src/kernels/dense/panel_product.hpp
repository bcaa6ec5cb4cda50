#pragma once
// panel_product: products of a column panel of a square matrix with columns, for checking
// solutions.
//
// Contract: operands Y (read and written), A and X (read), in W, A's element and W. A holds columns
// c … c + b − 1 of a matrix of order n, c the column of its view, and all of their rows; X has n
// rows, and so has Y, with as many columns. By variant:
//   0                   Y ← Y − A·X_c, X_c rows c … c + b − 1 of X;
//   kAdjointPanel       Y_c ← Y_c − Aᴴ·X, rows c … c + b − 1 of Y;
//   kMagnitudesOfPanel  Y ← Y + |A|·X_c, X >= 0; Y and X are double;
//   kLongProduct        as 0 with sums in double-double: Y has twice as many columns as X, the high
//                       parts of all sums and then the low parts (of complex numbers those of both
//                       parts).
// Sums are in fp64 or wider, in an order that the extents say. W is double or std::complex<double>,
// A's element W or the same of float. A unit of work is a multiplication and an addition.

#include "kernels/backend/kernel_table.hpp"
#include "scalar/complex.hpp"

namespace strata {

inline constexpr std::uint32_t kAdjointPanel = 1;
inline constexpr std::uint32_t kMagnitudesOfPanel = 2;
inline constexpr std::uint32_t kLongProduct = 4;

inline constexpr Operation panel_product{.name = "panel_product",
                                         .operands = 3,
                                         .access = {Access::read_write, Access::read, Access::read},
                                         .work =
                                             [](std::span<const BlockExtent> x, std::uint32_t) {
                                               return static_cast<double>(x[1].rows) *
                                                      static_cast<double>(x[1].cols) *
                                                      static_cast<double>(x[2].cols);
                                             },
                                         .flops_per_work = 2,
                                         .nominal_cost = 40};

template <class A>
inline constexpr Elements kPanelProductElements{element_of<WideOf<A>>, element_of<A>,
                                                element_of<WideOf<A>>};
/// Those of magnitudes.
template <class A>
inline constexpr Elements kMagnitudesElements{Element::fp64, element_of<A>, Element::fp64};

template <class A>
void panel_product_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
template <class A>
void panel_product_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class A>
void panel_product_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

/// Sets a kernel of A: of real numbers one entry has all variants.
template <class A>
void add_panel_product(KernelTable& table, KernelFunction kernel) {
  table.set(panel_product, kPanelProductElements<A>, kernel);
  if (is_complex_v<A>) table.set(panel_product, kMagnitudesElements<A>, kernel);
}

}  // namespace strata
