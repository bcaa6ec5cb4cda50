// Reference potrf. Column j: the pivot a_jj − Σ_k<j |l_jk|², then l_ij = (a_ij − Σ_k<j
// l_ik·conj(l_jk)) / l_jj. This order (Golub, Van Loan, "Matrix Computations", §4.2: gaxpy-rich
// Cholesky) because each element is finished in one place, which is easy to check by hand.

#include <cmath>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/potrf_one.hpp"
#include "scalar/complex.hpp"

namespace strata {

template <class T>
PivotStatus factor_reference(MatrixView<T> a) {
  PivotStatus status;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    RealOf<T> pivot = real_part(a(j, j));
    for (std::int64_t k = 0; k < j; ++k) pivot -= square_of(a(j, k));
    if (!(pivot > 0) || std::isinf(pivot)) {
      return {.bad_column = static_cast<double>(j),
              .bad_pivot = static_cast<double>(pivot),
              .log_determinant = 0};
    }
    const RealOf<T> root = std::sqrt(pivot);
    a(j, j) = root;
    status.log_determinant += 2 * std::log(static_cast<double>(root));
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      T sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= a(i, k) * conjugate<T>(a(j, k));
      a(i, j) = sum / root;
    }
  }
  return status;
}

template <class T>
void potrf_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(potrf, parameters.variant, 0);
  submit_each(queue, calls,
              [](const BlockView* x) { *status_of(x[1]) = factor_reference(matrix_of<T>(x[0])); });
}

template PivotStatus factor_reference(MatrixView<double>);
template PivotStatus factor_reference(MatrixView<float>);
template PivotStatus factor_reference(MatrixView<std::complex<double>>);
template PivotStatus factor_reference(MatrixView<std::complex<float>>);
template void potrf_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                    const KernelParameters&);
template void potrf_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);

}  // namespace strata
