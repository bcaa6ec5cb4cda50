// Fronts on the CPU, by BLAS and LAPACK.

#include "kernels/blas_host.hpp"
#include "kernels/front_steps.hpp"
#include "kernels/potrf_one.hpp"

namespace strata {
namespace {

PivotStatus factor_panel(MatrixView<double> p, MatrixView<double> u) {
  const std::int64_t w = p.cols;
  const std::int64_t r = u.rows;
  const MatrixView<double> l11 = p.block(0, 0, w, w);
  const PivotStatus status = factor_host(l11);
  if (status.bad_column >= 0 || r == 0) return status;
  const MatrixView<double> l21 = p.block(w, 0, r, w);
  blas::trsm_by_halves<double>(CblasRight, CblasTrans, l11, l21);
  blas::syrk_minus<double>(l21, u);
  return status;
}

}  // namespace

FrontKernels front_host() { return front_kernels<factor_panel>(); }

}  // namespace strata
