// potrf by LAPACK, and then the diagonal is read.
//
// Method: ?potrf stops at a pivot ≤ 0 and leaves the pivot's value in its place on the diagonal,
// but some builds (OpenBLAS up to 0.3.21 at least) go on past a NaN and all past +∞, because "≤ 0"
// does not hold for them. Both stay visible: √NaN = NaN and √∞ = ∞ on the diagonal are exactly the
// pivots that were bad. So the first diagonal element before info that is not positive and finite
// names the column and the value; no copy of the block is needed.

#include <cmath>

#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/potrf_one.hpp"
#include "scalar/complex.hpp"

namespace strata {

template <class T>
PivotStatus factor_host(MatrixView<T> a) {
  const std::int64_t info = blas::potrf(a);
  const std::int64_t end = info > 0 ? info : a.cols;  // with the column where LAPACK stopped
  PivotStatus status;
  for (std::int64_t j = 0; j < end; ++j) {
    const RealOf<T> diagonal = real_part(a(j, j));
    if (j + 1 == info || !(diagonal > 0) || std::isinf(diagonal)) {
      return {.bad_column = static_cast<double>(j),
              .bad_pivot = static_cast<double>(diagonal),
              .log_determinant = 0};
    }
    status.log_determinant += 2 * std::log(static_cast<double>(diagonal));
  }
  return status;
}

template <class T>
void potrf_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(potrf, parameters.variant, 0);
  submit_each(queue, calls,
              [](const BlockView* x) { *status_of(x[1]) = factor_host(matrix_of<T>(x[0])); });
}

template PivotStatus factor_host(MatrixView<double>);
template PivotStatus factor_host(MatrixView<float>);
template PivotStatus factor_host(MatrixView<std::complex<double>>);
template PivotStatus factor_host(MatrixView<std::complex<float>>);
template void potrf_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_host<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_host<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
