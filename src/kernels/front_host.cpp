// Fronts on the CPU, by BLAS and LAPACK.

#include "kernels/blas_host.hpp"
#include "kernels/front_steps.hpp"
#include "kernels/potrf_one.hpp"

namespace strata {
namespace {

template <class T>
PivotStatus factor_panel(MatrixView<T> p, MatrixView<T> u) {
  const std::int64_t w = p.cols;
  const std::int64_t r = u.rows;
  const MatrixView<T> l11 = p.block(0, 0, w, w);
  const PivotStatus status = factor_host(l11);
  if (status.bad_column >= 0 || r == 0) return status;
  const MatrixView<T> l21 = p.block(w, 0, r, w);
  blas::trsm_by_halves<T>(CblasRight, CblasTrans, l11, l21);
  blas::syrk_minus<T>(l21, u);
  return status;
}

}  // namespace

template <class T>
FrontKernels front_host() {
  return front_kernels<T, factor_panel<T>>();
}

template FrontKernels front_host<double>();
template FrontKernels front_host<float>();

}  // namespace strata
