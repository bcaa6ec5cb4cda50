#pragma once
// scaled_copy: Y ← D·X·C in another element, D and C diagonal matrices of powers of two.
//
// Contract: operands Y and its largest element (written), X and E (read). Y and X have the same
// place in matrices of order n; E has two columns of n integers, the exponents of D and those of C.
// Elements are multiplied in fp64, or complex128, and rounded to Y's element at the end. The
// largest is one fp64 number, as PanelStatus has it: the most |re| + |im| of Y, at most the largest
// number of N; infinity where a part is not finite. N and A are double or float, or std::complex of
// one of them; N is A or narrower. A unit of work is an element.

#include <complex>

#include "kernels/backend/kernel_table.hpp"
#include "scalar/complex.hpp"
#include "scalar/power_of_two.hpp"

namespace strata {

inline constexpr Operation scaled_copy{
    .name = "scaled_copy",
    .operands = 4,
    .access = {Access::write, Access::write, Access::read, Access::read},
    .work =
        [](std::span<const BlockExtent> x, std::uint32_t) {
          return static_cast<double>(x[0].rows) * static_cast<double>(x[0].cols);
        },
    .flops_per_work = 0,
    .nominal_cost = 20};

template <class N, class A>
inline constexpr Elements kScaledCopyElements{element_of<N>, Element::fp64, element_of<A>,
                                              Element::int64};

/// An element of Y. By parts: device code has no conversion of complex numbers.
template <class N, class A>
[[nodiscard]] constexpr N scaled_element(const A& x, std::int64_t exponent) noexcept {
  const auto part = [exponent](auto value) {
    return static_cast<RealOf<N>>(scaled_by_power(static_cast<double>(value), exponent));
  };
  if constexpr (is_complex_v<A>)
    return {part(x.real()), part(x.imag())};
  else
    return part(x);
}

template <class N, class A>
void scaled_copy_reference(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);
template <class N, class A>
void scaled_copy_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class N, class A>
void scaled_copy_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

/// f.operator()<N, A>() for all elements that backends have it for.
template <class F>
void for_scaled_copies(const F& f) {
  using Complex128 = std::complex<double>;
  using Complex64 = std::complex<float>;
  f.template operator()<double, double>();
  f.template operator()<float, double>();
  f.template operator()<float, float>();
  f.template operator()<Complex128, Complex128>();
  f.template operator()<Complex64, Complex128>();
  f.template operator()<Complex64, Complex64>();
}

}  // namespace strata
