// Reference panel_product, element by element, in the order of columns.

#include <cmath>
#include <complex>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/panel_product.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

/// high + low ← high + low − a·b.
void subtract_long(double& high, double& low, double a, double b) {
  const DoubleDouble sum = add_cray(DoubleDouble(high, low), -two_product(a, b));
  high = sum.hi;
  low = sum.lo;
}

template <class W>
void subtract_long(W& high, W& low, const W& a, const W& b) {
  if constexpr (is_complex_v<W>) {
    double part[2][2] = {{high.real(), low.real()}, {high.imag(), low.imag()}};
    subtract_long(part[0][0], part[0][1], a.real(), b.real());
    subtract_long(part[0][0], part[0][1], -a.imag(), b.imag());
    subtract_long(part[1][0], part[1][1], a.real(), b.imag());
    subtract_long(part[1][0], part[1][1], a.imag(), b.real());
    high = W(part[0][0], part[1][0]);
    low = W(part[0][1], part[1][1]);
  }
}

template <class A>
void add_magnitudes_of_panel(const BlockView* x) {
  const auto y = matrix_of<double>(x[0]);
  const auto a = matrix_of<const A>(x[1]);
  const auto v = matrix_of<const double>(x[2]);
  for (std::int64_t c = 0; c < v.cols; ++c)
    for (std::int64_t j = 0; j < a.cols; ++j)
      for (std::int64_t i = 0; i < a.rows; ++i)
        y(i, c) += std::abs(static_cast<WideOf<A>>(a(i, j))) * v(x[1].col + j, c);
}

template <class A>
void subtract_panel(const BlockView* x, std::uint32_t variant) {
  using W = WideOf<A>;
  const auto y = matrix_of<W>(x[0]);
  const auto a = matrix_of<const A>(x[1]);
  const auto v = matrix_of<const W>(x[2]);
  for (std::int64_t c = 0; c < v.cols; ++c) {
    for (std::int64_t j = 0; j < a.cols; ++j) {
      const std::int64_t row = x[1].col + j;
      for (std::int64_t i = 0; i < a.rows; ++i) {
        const auto element = static_cast<W>(a(i, j));
        if (variant == kAdjointPanel)
          y(row, c) -= product_of(conjugate(element), v(i, c));
        else if (variant == kLongProduct)
          subtract_long(y(i, c), y(i, v.cols + c), element, v(row, c));
        else
          y(i, c) -= product_of(element, v(row, c));
      }
    }
  }
}

}  // namespace

template <class A>
void panel_product_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(panel_product, parameters.variant,
                  kAdjointPanel | kMagnitudesOfPanel | kLongProduct);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    variant == kMagnitudesOfPanel ? add_magnitudes_of_panel<A>(x) : subtract_panel<A>(x, variant);
  });
}

template void panel_product_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void panel_product_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void panel_product_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                            const KernelParameters&);
template void panel_product_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                           const KernelParameters&);

}  // namespace strata
