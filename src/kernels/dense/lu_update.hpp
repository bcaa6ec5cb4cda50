#pragma once
// lu_update: what panel k of P·A = L·U does to other columns, X ← L_k⁻¹·P_k·X.
//
// Contract: operands X (n × c), panel k (as getrf leaves it; its rows from its column c_k on are
// read) and its pivots. Rows above c_k may be missing, of X, of the panel or of both: the row of a
// view is the first that is there; the last rows of both are the same. With X₁ the b rows of X from
// c_k on and X₂ those below, rows above stay:
//   exchange rows as the pivots say;   X₁ ← L₁₁⁻¹·X₁;   X₂ ← X₂ − L₂₁·X₁.
// So it serves columns that are still to be factored and right-hand sides on their way forward.
// Transposed (kTransposedFactor), X ← P_kᵀ·L_k⁻ᵀ·X, the last sweep of Aᵀ·x = b:
//   X₁ ← X₁ − L₂₁ᵀ·X₂;   X₁ ← L₁₁⁻ᵀ·X₁;   exchange rows in reverse.
// kAdjointFactor has conjugate transposed matrices in their place, which of real numbers are the
// same. L₁₁ has a unit diagonal. T is double or float, or std::complex of one of them.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

/// Variants of lu_update and lu_back.
inline constexpr std::uint32_t kTransposedFactor = 1;
inline constexpr std::uint32_t kAdjointFactor = 2;
inline constexpr std::uint32_t kFactorVariants = kTransposedFactor | kAdjointFactor;
/// A variant of lu_update and getrf, for factors in fp32 that precondition: large products on a GPU
/// are made of fp16 parts (kernels/backend/gemm_parts_cuda.hpp), less exact than fp32 by a few
/// bits. Other elements, and CPUs, take it for 0.
inline constexpr std::uint32_t kProductsOfHalves = 4;

/// The row of `block`, which may be the panel itself, on which the diagonal of a panel begins.
template <class Block>
[[nodiscard]] constexpr std::int64_t diagonal_row(const Block& panel, const Block& block) noexcept {
  return panel.col - block.row;
}

inline constexpr Operation lu_update{
    .name = "lu_update",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      const auto c = static_cast<double>(x[0].cols);
      const auto b = static_cast<double>(x[1].cols);
      const auto below = static_cast<double>(x[1].rows - diagonal_row(x[1], x[1])) - b;
      return c * b * (b - 1) + 2 * below * b * c;
    }};

template <class T>
inline constexpr Elements kLuUpdateElements{element_of<T>, element_of<T>, Element::int64};

template <class T>
void lu_update_reference(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters);
template <class T>
void lu_update_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void lu_update_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
