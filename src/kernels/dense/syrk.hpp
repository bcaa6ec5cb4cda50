#pragma once
// syrk: C ← C − A·Aᴴ, of real numbers A·Aᵀ, the update of a diagonal block.
//
// Contract: operands C (n × n; only its lower triangle is read and written) and A (n × k). T is
// double or float, or std::complex of one of them. C is then Hermitian, as
// in BLAS's herk: the imaginary part of its diagonal is not read, and is zero afterwards. A product
// A·Aᵀ of complex numbers does not exist: no algorithm asks for one.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr Operation syrk{.name = "syrk",
                                .operands = 2,
                                .access = {Access::read_write, Access::read},
                                .work = [](std::span<const BlockExtent> x, std::uint32_t) {
                                  const auto n = static_cast<double>(x[0].cols);
                                  return n * (n + 1) * static_cast<double>(x[1].cols);
                                }};

template <class T>
void syrk_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void syrk_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void syrk_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
