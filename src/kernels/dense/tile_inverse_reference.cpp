// Reference invert_factor and multiply_inverse.

#include <vector>

#include "kernels/dense/formats_reference.hpp"
#include "kernels/dense/tile_inverse.hpp"

namespace strata {

void invert_factor_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters) {
  require_variant(invert_factor, parameters.variant, 0);
  submit_each(queue, calls, [scales = scales_of(parameters)](const BlockView* x) {
    const std::int64_t n = x[0].cols;
    const TileScales of_inverse{.fp16 = scales.inverse};
    const auto l = matrix_of<const double>(x[1]);
    std::vector<double> column(static_cast<std::size_t>(n));  // of L⁻¹, a row of U
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = i == j ? 1 : 0;
        for (std::int64_t k = j; k < i; ++k) sum -= l(i, k) * column[static_cast<std::size_t>(k)];
        column[static_cast<std::size_t>(i)] = i < j ? 0 : sum / l(i, i);
        set_element(x[0], of_inverse, j, i, column[static_cast<std::size_t>(i)]);
      }
    }
  });
}

template <class T>
void multiply_inverse_reference(Queue& queue, const KernelCalls& calls,
                                const KernelParameters& parameters) {
  require_variant(multiply_inverse, parameters.variant, 0);
  submit_each(queue, calls, [scales = scales_of(parameters)](const BlockView* x) {
    const TileScales of_inverse{.fp16 = scales.inverse};
    const auto w = matrix_of<T>(x[0]);
    std::vector<double> row(static_cast<std::size_t>(w.cols));
    for (std::int64_t i = 0; i < w.rows; ++i) {
      for (std::int64_t k = 0; k < w.cols; ++k) row[static_cast<std::size_t>(k)] = w(i, k);
      for (std::int64_t j = 0; j < w.cols; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < w.cols; ++k)
          sum += row[static_cast<std::size_t>(k)] * element_at(x[1], of_inverse, k, j);
        w(i, j) = static_cast<T>(sum);
      }
    }
  });
}

template void multiply_inverse_reference<double>(Queue&, const KernelCalls&,
                                                 const KernelParameters&);
template void multiply_inverse_reference<float>(Queue&, const KernelCalls&,
                                                const KernelParameters&);

}  // namespace strata
