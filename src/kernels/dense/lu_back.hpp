#pragma once
// lu_back: what columns p of U do in the backward sweep of A·x = b.
//
// Contract: operands X (n × c) and panel p (as getrf leaves it; rows up to its diagonal block are
// read). Rows below may be missing, and rows above as with lu_update; the first rows of both are
// the same or X has more. With X₁ the b rows of X from the panel's column on and X₀
// those above:
//   X₁ ← U_pp⁻¹·X₁;   X₀ ← X₀ − U₀p·X₁.
// Transposed (kTransposedFactor), the first sweep of Aᵀ·x = b:
//   X₁ ← X₁ − U₀pᵀ·X₀;   X₁ ← U_pp⁻ᵀ·X₁.
// With kAdjointFactor the same by conjugate transposed matrices. A zero on the diagonal gives what
// a division by it gives. T is double or float, or std::complex of one of them.

#include "kernels/backend/kernel_table.hpp"
#include "kernels/dense/lu_update.hpp"

namespace strata {

inline constexpr Operation lu_back{.name = "lu_back",
                                   .operands = 2,
                                   .access = {Access::read_write, Access::read},
                                   .work = [](std::span<const BlockExtent> x, std::uint32_t) {
                                     const auto c = static_cast<double>(x[0].cols);
                                     const auto b = static_cast<double>(x[1].cols);
                                     const auto above =
                                         static_cast<double>(diagonal_row(x[1], x[1]));
                                     return c * b * b + 2 * above * b * c;
                                   }};

template <class T>
void lu_back_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void lu_back_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void lu_back_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
