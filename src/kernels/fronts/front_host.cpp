// Fronts on the CPU, by BLAS and LAPACK.

#include "kernels/backend/blas_host.hpp"
#include "kernels/dense/potrf_one.hpp"
#include "kernels/fronts/front_steps.hpp"

namespace strata {
namespace host {
namespace {

template <class T>
PivotStatus factor_panel(MatrixView<T> p) {
  const std::int64_t w = p.cols;
  const MatrixView<T> l11 = p.block(0, 0, w, w);
  const PivotStatus status = factor_host(l11);
  if (status.bad_column >= 0 || p.rows == w) return status;
  blas::trsm_by_halves<T>(CblasRight, CblasTrans, l11, p.block(w, 0, p.rows - w, w));
  return status;
}

template <class T>
void subtract_products(MatrixView<T> below, std::int64_t first, MatrixView<T> u) {
  const std::int64_t end = first + u.cols;
  const MatrixView<T> rows = below.block(first, 0, u.cols, below.cols);
  blas::syrk_minus<T>(rows, u.block(first, 0, u.cols, u.cols));
  if (end == u.rows) return;
  blas::gemm_minus<T>(CblasNoTrans, CblasTrans, below.cols,
                      below.block(end, 0, u.rows - end, below.cols), rows,
                      u.block(end, 0, u.rows - end, u.cols));
}

template <class T>
struct HostFactors {
  static PivotStatus panel(MatrixView<T> p) { return factor_panel(p); }
  static void update(MatrixView<T> below, std::int64_t first, MatrixView<T> u) {
    subtract_products(below, first, u);
  }
};

}  // namespace
}  // namespace host

template <class T>
FrontKernels front_host() {
  return front_kernels<T, host::HostFactors<T>>();
}

template FrontKernels front_host<double>();
template FrontKernels front_host<float>();

}  // namespace strata
