// gemm and syrk with operands of few bits on the CPU. The operands are widened to float, which
// holds all but the last two bits of fp16x2 exactly, and multiplied by BLAS in fp32, which adds up
// in fp32 as the tensor cores of a GPU do. Solves, whose right-hand sides are fp64, widen to
// double.

#include <vector>

#include "kernels/backend/blas_host.hpp"
#include "kernels/dense/formats_host.hpp"
#include "kernels/dense/mixed_products.hpp"

namespace strata {
namespace {

struct MixedScratch {
  std::vector<double> fp64;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> sum;
};

CBLAS_TRANSPOSE op(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

/// C ← C − op(A)·op(B) in the arithmetic of T.
template <class T>
void subtract_product(const WideTile<T>& a, bool a_transposed, const WideTile<T>& b,
                      bool b_transposed, std::int64_t inner, MatrixView<T> c) {
  blas::gemm_minus(op(a_transposed != a.transposed), op(b_transposed != b.transposed), inner,
                   a.view, b.view, c);
}

/// −A·B added up from zero.
MatrixView<float> cleared(std::vector<float>& memory, std::int64_t rows, std::int64_t cols) {
  memory.assign(static_cast<std::size_t>(rows * cols), 0.0F);
  return {memory.data(), rows, cols, std::max<std::int64_t>(rows, 1)};
}

void add_to(MatrixView<double> c, MatrixView<const float> sum, bool lower) {
  for (std::int64_t j = 0; j < c.cols; ++j) {
    for (std::int64_t i = lower ? j : 0; i < c.rows; ++i) c(i, j) += static_cast<double>(sum(i, j));
  }
}

void gemm_one(const BlockView* x, const TileScales& scales, std::uint32_t variant) {
  thread_local MixedScratch scratch;
  const bool a_transposed = (variant & kTransposeA) != 0;
  const bool b_transposed = (variant & kTransposeB) != 0;
  const std::int64_t inner = a_transposed ? x[1].rows : x[1].cols;
  if (x[0].rows == 0 || x[0].cols == 0 || inner == 0) return;
  if (x[2].element == Element::fp64) {
    const auto a = widened(x[1], scales, scratch.fp64);
    return subtract_product<double>(a, a_transposed, {matrix_of<const double>(x[2]), false},
                                    b_transposed, inner, matrix_of<double>(x[0]));
  }
  const auto a = widened(x[1], scales, scratch.a);
  const auto b = widened(x[2], scales, scratch.b);
  if (x[0].element == Element::fp32) {
    return subtract_product<float>(a, a_transposed, b, b_transposed, inner, matrix_of<float>(x[0]));
  }
  const auto sum = cleared(scratch.sum, x[0].rows, x[0].cols);
  subtract_product<float>(a, a_transposed, b, b_transposed, inner, sum);
  add_to(matrix_of<double>(x[0]), sum, false);
}

void syrk_one(const BlockView* x, const TileScales& scales) {
  thread_local MixedScratch scratch;
  if (x[0].rows == 0 || x[1].cols == 0) return;
  const auto a = widened(x[1], scales, scratch.a);
  const auto sum = cleared(scratch.sum, x[0].rows, x[0].cols);
  if (a.transposed) {
    subtract_product<float>(a, false, a, true, x[1].cols, sum);
  } else {
    blas::syrk_minus(a.view, sum);
  }
  add_to(matrix_of<double>(x[0]), sum, true);
}

}  // namespace

void gemm_mixed_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gemm, parameters.variant, kTransposeA | kTransposeB);
  submit_each(queue, calls,
              [scales = scales_of(parameters), variant = parameters.variant](const BlockView* x) {
                gemm_one(x, scales, variant);
              });
}

void syrk_mixed_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  submit_each(queue, calls,
              [scales = scales_of(parameters)](const BlockView* x) { syrk_one(x, scales); });
}

}  // namespace strata
