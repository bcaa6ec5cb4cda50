// invert_factor and multiply_inverse by BLAS: as a GPU does them, for runs on the host that follow
// the road of one.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/backend/blas_host.hpp"
#include "kernels/dense/formats_host.hpp"
#include "kernels/dense/tile_inverse.hpp"

namespace strata {

void invert_factor_host(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(invert_factor, parameters.variant, 0);
  submit_each(queue, calls, [scales = scales_of(parameters)](const BlockView* x) {
    const std::int64_t n = x[0].cols;
    if (n == 0) return;
    std::vector<double> u(static_cast<std::size_t>(n * n));
    const MatrixView<double> identity{u.data(), n, n, n};
    for (std::int64_t i = 0; i < n; ++i) identity(i, i) = 1;
    blas::trsm_by_halves(CblasRight, CblasTrans, matrix_of<const double>(x[1]), identity);
    round_tile<double>(u.data(), x[0], {.fp16 = scales.inverse});
  });
}

template <class T>
void multiply_inverse_host(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(multiply_inverse, parameters.variant, 0);
  submit_each(queue, calls, [scales = scales_of(parameters)](const BlockView* x) {
    const auto w = matrix_of<T>(x[0]);
    const std::int64_t size = w.rows * w.cols;
    if (size == 0) return;
    thread_local std::vector<T> packed;
    thread_local std::vector<Half> planes;
    thread_local std::vector<float> rounded;
    thread_local std::vector<float> inverse;
    thread_local std::vector<float> product;
    packed.resize(static_cast<std::size_t>(size));
    planes.resize(static_cast<std::size_t>(2 * size));
    rounded.resize(static_cast<std::size_t>(size));
    for (std::int64_t j = 0; j < w.cols; ++j)
      std::copy_n(w.column(j), w.rows, packed.data() + j * w.rows);
    const double scale = std::ldexp(1.0, scales.sum);
    (void)split(packed.data(), scale, planes.data(), planes.data() + size, size);
    join(planes.data(), planes.data() + size, scale, rounded.data(), size);
    const auto u = widened<float>(x[1], {.fp16 = scales.inverse}, inverse);
    product.assign(static_cast<std::size_t>(size), 0.0F);
    const MatrixView<float> minus{product.data(), w.rows, w.cols, w.rows};
    blas::gemm_minus<float>(CblasNoTrans, CblasNoTrans, w.cols,
                            {rounded.data(), w.rows, w.cols, w.rows}, u.view, minus);
    for (std::int64_t j = 0; j < w.cols; ++j) {
      for (std::int64_t i = 0; i < w.rows; ++i) w(i, j) = static_cast<T>(-minus(i, j));
    }
  });
}

template void multiply_inverse_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void multiply_inverse_host<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
