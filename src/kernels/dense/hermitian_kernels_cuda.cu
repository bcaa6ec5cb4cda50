// Cholesky's factorization of Hermitian matrices on the GPU: see hermitian_kernels_cuda.hpp.
//
// Method: right-looking by panels with look-ahead. A panel is factored (hermitian_cuda.cu) on the
// urgent stream, while the main one takes the panel before off the rest, the next panel first.
// Products by cuBLAS, large ones of complex128 as products of real numbers (gemm_complex_cuda.hpp);
// squares on the diagonal by herk, so that nothing is computed above it.

#include "kernels/dense/hermitian_kernels_cuda.hpp"

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_complex_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/hermitian_cuda.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trmm.hpp"
#include "kernels/dense/trsm.hpp"

namespace strata::hermitian {
namespace {

template <class T>
class Panels {
 public:
  Panels(CudaQueue& queue, MatrixView<T> a, std::byte* scratch)
      : queue_(queue),
        a_(a),
        verdict_(reinterpret_cast<fused_kernel::Verdict*>(scratch)),
        scratch_(scratch + kVerdictBytes) {}

  static std::int64_t scratch_bytes() { return kVerdictBytes + panel_scratch_bytes(); }

  /// The verdict is zero at first.
  void run() {
    const std::int64_t n = a_.cols;
    if (n <= kPanelMost) return factor(queue_.main(), 0, n);
    queue_.order(queue_.main(), queue_.urgent());
    factor(queue_.urgent(), 0, kPanelMost);
    for (std::int64_t c0 = 0; c0 + kPanelMost < n; c0 += kPanelMost) {
      const std::int64_t c1 = c0 + kPanelMost;
      const std::int64_t c2 = std::min(c1 + kPanelMost, n);
      queue_.order(queue_.urgent(), queue_.main());
      update(c0, c1, c1, c2);
      queue_.order(queue_.main(), queue_.urgent());
      factor(queue_.urgent(), c1, c2);
      for (std::int64_t c = c2; c < n; c += kColumns) update(c0, c1, c, std::min(c + kColumns, n));
    }
    queue_.order(queue_.urgent(), queue_.main());
  }
  void report_to(PivotStatus* status) {
    report(queue_.main(), MatrixView<const T>(a_), verdict_, status);
  }

 private:
  static constexpr std::int64_t kVerdictBytes = 128;
  static_assert(sizeof(fused_kernel::Verdict) <= kVerdictBytes);
  static constexpr std::int64_t kColumns = 1024;  // of the rest, updated at once

  /// Columns c0 … c1 − 1, to the last row.
  void factor(CudaStream& stream, std::int64_t c0, std::int64_t c1) {
    factor_panel(stream, a_.block(c0, c0, a_.rows - c0, c1 - c0), c0, verdict_, scratch_);
  }

  /// Columns first … last − 1, to the last row, by columns c0 … c1 − 1.
  void update(std::int64_t c0, std::int64_t c1, std::int64_t first, std::int64_t last) {
    const std::int64_t width = last - first;
    const MatrixView<const T> on_diagonal(a_.block(first, c0, width, c1 - c0));
    update_triangle(queue_.main(), on_diagonal, a_.block(first, first, width, width));
    blas::gemm_minus_adjoint(queue_.main(),
                             MatrixView<const T>(a_.block(last, c0, a_.rows - last, c1 - c0)),
                             on_diagonal, a_.block(last, first, a_.rows - last, width));
  }

  CudaQueue& queue_;
  MatrixView<T> a_;
  fused_kernel::Verdict* verdict_;
  std::byte* scratch_;
};

template <class T>
void factor(CudaQueue& cuda, MatrixView<T> a, PivotStatus* status) {
  const std::int64_t bytes = Panels<T>::scratch_bytes();
  auto* scratch = static_cast<std::byte*>(cuda.scratch(bytes));
  require_cuda(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(bytes), cuda.stream()),
               "cudaMemsetAsync");
  Panels<T> panels(cuda, a, scratch);
  panels.run();
  panels.report_to(status);
}

CudaStream& stream_of(Queue& queue) { return static_cast<CudaQueue&>(queue).main(); }

}  // namespace

template <class T>
void potrf_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(potrf, parameters.variant, 0);
  for (std::int64_t i = 0; i < calls.count(); ++i)
    factor(static_cast<CudaQueue&>(queue), matrix_of<T>(calls[i][0]), status_of(calls[i][1]));
}

template <class T>
void potrf_batched_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(potrf_batched, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const auto* entries = static_cast<const BatchEntry*>(calls[i][1].data);
    PivotStatus* statuses = status_of(calls[i][2]);
    const std::int64_t count = calls[i][1].cols;
    if (std::any_of(entries, entries + count, [](const auto& a) { return a.n <= kBlockMost; }))
      factor_small<T>(cuda.main(), entries, statuses, count);
    for (std::int64_t m = 0; m < count; ++m) {
      const BatchEntry& a = entries[m];
      if (a.n > kBlockMost)
        factor(cuda, MatrixView<T>{static_cast<T*>(a.data), a.n, a.n, a.ld}, statuses + m);
    }
  }
}

template <class T>
void trsm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trsm, parameters.variant, kTransposeL | kRightSide);
  const bool adjoint = (parameters.variant & kTransposeL) != 0;
  const bool right = (parameters.variant & kRightSide) != 0;
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const auto x = matrix_of<T>(calls[i][0]);
    const auto l = matrix_of<const T>(calls[i][1]);
    if (x.rows == 0 || x.cols == 0) continue;
    if (!right)
      blas::solve_lower(stream_of(queue), adjoint ? CUBLAS_OP_C : CUBLAS_OP_N, l, x);
    else if (adjoint)
      solve_right(stream_of(queue), l, x);
    else
      blas::solve_lower_on_the_right(stream_of(queue), l, x);
  }
}

template <class T>
void trmm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trmm, parameters.variant, kTransposeL);
  const bool adjoint = (parameters.variant & kTransposeL) != 0;
  for (std::int64_t i = 0; i < calls.count(); ++i)
    blas::multiply_lower_minus(stream_of(queue), adjoint ? CUBLAS_OP_C : CUBLAS_OP_N,
                               matrix_of<const T>(calls[i][1]), matrix_of<T>(calls[i][0]));
}

template <class T>
void syrk_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(syrk, parameters.variant, 0);
  constexpr std::int64_t kColumns = 1024;
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const auto c = matrix_of<T>(calls[i][0]);
    const auto a = matrix_of<const T>(calls[i][1]);
    for (std::int64_t j = 0; j < c.cols; j += kColumns) {
      const std::int64_t end = std::min(j + kColumns, c.cols);
      const auto rows = a.block(j, 0, end - j, a.cols);
      update_triangle(stream_of(queue), rows, c.block(j, j, end - j, end - j));
      blas::gemm_minus_adjoint(stream_of(queue), a.block(end, 0, c.rows - end, a.cols), rows,
                               c.block(end, j, c.rows - end, end - j));
    }
  }
}

template <class T>
void gemm_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gemm, parameters.variant, kTransposeA | kTransposeB);
  const bool adjoint_a = (parameters.variant & kTransposeA) != 0;
  const bool adjoint_b = (parameters.variant & kTransposeB) != 0;
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const auto c = matrix_of<T>(calls[i][0]);
    const auto a = matrix_of<const T>(calls[i][1]);
    const auto b = matrix_of<const T>(calls[i][2]);
    if (adjoint_b && !adjoint_a)
      blas::gemm_minus_adjoint(stream_of(queue), a, b, c);
    else
      blas::gemm_minus(stream_of(queue), adjoint_a ? CUBLAS_OP_C : CUBLAS_OP_N,
                       adjoint_b ? CUBLAS_OP_C : CUBLAS_OP_N, adjoint_a ? a.rows : a.cols, a, b, c);
  }
}

#define STRATA_INSTANTIATE(T)                                                               \
  template void potrf_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);         \
  template void potrf_batched_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&); \
  template void trsm_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);          \
  template void trmm_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);          \
  template void syrk_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);          \
  template void gemm_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::hermitian
