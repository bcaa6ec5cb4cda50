// Reference potrf. Column j: the pivot a_jj − Σ_k<j l_jk², then l_ij = (a_ij − Σ_k<j l_ik·l_jk) /
// l_jj. This order (Golub, Van Loan, "Matrix Computations", §4.2: gaxpy-rich Cholesky) because each
// element is finished in one place, which is easy to check by hand.

#include <cmath>

#include "kernels/operand.hpp"
#include "kernels/potrf.hpp"
#include "kernels/potrf_one.hpp"

namespace strata {

template <class T>
PivotStatus factor_reference(MatrixView<T> a) {
  PivotStatus status;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    T pivot = a(j, j);
    for (std::int64_t k = 0; k < j; ++k) pivot -= a(j, k) * a(j, k);
    if (!(pivot > 0) || std::isinf(pivot)) {
      return {.bad_column = static_cast<double>(j),
              .bad_pivot = static_cast<double>(pivot),
              .log_determinant = 0};
    }
    a(j, j) = std::sqrt(pivot);
    status.log_determinant += 2 * std::log(static_cast<double>(a(j, j)));
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      T sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= a(i, k) * a(j, k);
      a(i, j) = sum / a(j, j);
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
template void potrf_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
