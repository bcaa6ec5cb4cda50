// Reference lu_back, in plain loops.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/lu_back.hpp"

namespace strata {
namespace {

/// `u`: the panel's rows up to its diagonal block, which begins at row `first`.
template <class T>
void back_substitute(MatrixView<const T> u, std::int64_t first, MatrixView<T> x) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t j = u.cols; j-- > 0;) {
      x(first + j, c) /= u(first + j, j);
      for (std::int64_t i = 0; i < first + j; ++i) x(i, c) -= u(i, j) * x(first + j, c);
    }
  }
}

template <class T>
void substitute_transposed(MatrixView<const T> u, std::int64_t first, MatrixView<T> x) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t j = 0; j < u.cols; ++j) {
      for (std::int64_t i = 0; i < first + j; ++i) x(first + j, c) -= u(i, j) * x(i, c);
      x(first + j, c) /= u(first + j, j);
    }
  }
}

}  // namespace

template <class T>
void lu_back_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(lu_back, parameters.variant, kTransposedFactor);
  submit_each(queue, calls, [transposed = parameters.variant != 0](const BlockView* x) {
    const auto panel = matrix_of<const T>(x[1]);
    transposed ? substitute_transposed(panel, x[1].col, matrix_of<T>(x[0]))
               : back_substitute(panel, x[1].col, matrix_of<T>(x[0]));
  });
}

template void lu_back_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void lu_back_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
