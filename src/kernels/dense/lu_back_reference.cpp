// Reference lu_back, in plain loops.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_back.hpp"
#include "scalar/complex.hpp"

namespace strata {
namespace {

/// `u`: the panel's rows up to its diagonal block, which begins at row `first`.
template <class T>
void back_substitute(MatrixView<const T> u, std::int64_t first, MatrixView<T> x) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t j = u.cols; j-- > 0;) {
      x(first + j, c) = DivisionBy<T>(u(first + j, j))(x(first + j, c));
      for (std::int64_t i = 0; i < first + j; ++i) x(i, c) -= product_of(u(i, j), x(first + j, c));
    }
  }
}

/// By the conjugate matrix, if `op` conjugates.
template <class T, class F>
void substitute_transposed(MatrixView<const T> u, std::int64_t first, MatrixView<T> x, F op) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t j = 0; j < u.cols; ++j) {
      for (std::int64_t i = 0; i < first + j; ++i)
        x(first + j, c) -= product_of(op(u(i, j)), x(i, c));
      x(first + j, c) = DivisionBy<T>(op(u(first + j, j)))(x(first + j, c));
    }
  }
}

}  // namespace

template <class T>
void lu_back_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(lu_back, parameters.variant, kFactorVariants);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    const auto u = matrix_of<const T>(x[1]);
    const std::int64_t first = diagonal_row(x[1], x[1]);
    const auto all = matrix_of<T>(x[0]);
    const std::int64_t skipped = diagonal_row(x[1], x[0]) - first;
    const auto target = all.block(skipped, 0, all.rows - skipped, all.cols);
    if (variant == 0)
      back_substitute(u, first, target);
    else if ((variant & kAdjointFactor) != 0)
      substitute_transposed(u, first, target, [](const T& value) { return conjugate(value); });
    else
      substitute_transposed(u, first, target, [](const T& value) { return value; });
  });
}

template void lu_back_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_back_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_back_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                      const KernelParameters&);
template void lu_back_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                     const KernelParameters&);

}  // namespace strata
