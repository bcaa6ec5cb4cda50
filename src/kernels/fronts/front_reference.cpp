// Fronts in plain loops.

#include "kernels/dense/potrf_one.hpp"
#include "kernels/fronts/front_steps.hpp"

namespace strata {
namespace reference {
namespace {

template <class T>
PivotStatus factor_panel(MatrixView<T> p) {
  const std::int64_t w = p.cols;
  const PivotStatus status = factor_reference(p.block(0, 0, w, w));
  if (status.bad_column >= 0) return status;
  for (std::int64_t j = 0; j < w; ++j) {
    for (std::int64_t i = w; i < p.rows; ++i) {
      for (std::int64_t k = 0; k < j; ++k) p(i, j) -= p(i, k) * p(j, k);
      p(i, j) /= p(j, j);
    }
  }
  return status;
}

template <class T>
void subtract_products(MatrixView<T> below, std::int64_t first, MatrixView<T> u) {
  for (std::int64_t j = 0; j < u.cols; ++j) {
    for (std::int64_t i = first + j; i < u.rows; ++i) {
      for (std::int64_t k = 0; k < below.cols; ++k) u(i, j) -= below(i, k) * below(first + j, k);
    }
  }
}

template <class T>
struct ReferenceFactors {
  static PivotStatus panel(MatrixView<T> p) { return factor_panel(p); }
  static void update(MatrixView<T> below, std::int64_t first, MatrixView<T> u) {
    subtract_products(below, first, u);
  }
};

}  // namespace
}  // namespace reference

template <class T>
FrontKernels front_reference() {
  return front_kernels<T, reference::ReferenceFactors<T>>();
}

template FrontKernels front_reference<double>();
template FrontKernels front_reference<float>();

}  // namespace strata
