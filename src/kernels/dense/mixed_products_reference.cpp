// Reference gemm and syrk with operands of few bits.

#include "kernels/dense/formats_reference.hpp"
#include "kernels/dense/mixed_products.hpp"

namespace strata {
namespace {

/// Σ_k op(A)_ik·op(B)_kj.
double sum_at(const BlockView* x, const TileScales& scales, std::uint32_t variant, std::int64_t i,
              std::int64_t j) {
  const bool a_transposed = (variant & kTransposeA) != 0;
  const bool b_transposed = (variant & kTransposeB) != 0;
  const std::int64_t inner = a_transposed ? x[1].rows : x[1].cols;
  double sum = 0;
  for (std::int64_t k = 0; k < inner; ++k) {
    const double a = a_transposed ? element_at(x[1], scales, k, i) : element_at(x[1], scales, i, k);
    const double b = b_transposed ? element_at(x[2], scales, j, k) : element_at(x[2], scales, k, j);
    sum += a * b;
  }
  return sum;
}

}  // namespace

void gemm_mixed_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(gemm, parameters.variant, kTransposeA | kTransposeB);
  submit_each(queue, calls,
              [scales = scales_of(parameters), variant = parameters.variant](const BlockView* x) {
                for (std::int64_t j = 0; j < x[0].cols; ++j) {
                  for (std::int64_t i = 0; i < x[0].rows; ++i)
                    set_element(x[0], scales, i, j,
                                element_at(x[0], scales, i, j) - sum_at(x, scales, variant, i, j));
                }
              });
}

void syrk_mixed_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  submit_each(queue, calls, [scales = scales_of(parameters)](const BlockView* x) {
    const BlockView operands[] = {x[0], x[1], x[1]};
    for (std::int64_t j = 0; j < x[0].cols; ++j) {
      for (std::int64_t i = j; i < x[0].rows; ++i)
        set_element(x[0], scales, i, j,
                    element_at(x[0], scales, i, j) - sum_at(operands, scales, kTransposeB, i, j));
    }
  });
}

}  // namespace strata
