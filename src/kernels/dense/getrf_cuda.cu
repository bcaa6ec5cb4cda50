// getrf on the GPU, for a panel of any width: all of a matrix, too.
//
// Method: right-looking with look-ahead. kPanelColumns columns are factored in one launch
// (lu_panel_cuda.cu), on the urgent stream, while the main one applies the panel before to the
// rest; the columns that come next first. Wider steps are factored by halves, so that products far
// from the diagonal have a long inner extent. The status is found by two readings of the panel,
// before and afterwards.

#include <algorithm>
#include <climits>
#include <complex>
#include <limits>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_columns_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"

namespace strata {
namespace {

using lu_cuda::kPanelColumns;
using lu_cuda::RowMoves;

/// PanelStatus while threads add to it. Sizes as bits, which order them as numbers.
struct Findings {
  unsigned long long largest;
  unsigned long long smallest_pivot;
  int zero_pivot;
  int not_finite;
};
constexpr std::int64_t kFindingsBytes = 32;
static_assert(sizeof(Findings) <= kFindingsBytes);

constexpr int kThreads = 256;
constexpr int kRowsOfBlock = 16 * kThreads;

__global__ void start_findings(Findings* findings) {
  *findings = {0, static_cast<unsigned long long>(__double_as_longlong(INFINITY)), INT_MAX,
               INT_MAX};
}

template <class T>
__device__ bool finite(const T& x) {
  if constexpr (is_complex_v<T>)
    return isfinite(x.real()) && isfinite(x.imag());
  else
    return isfinite(x);
}

/// Rows blockIdx.x·kRowsOfBlock … of column blockIdx.y, blockIdx.y + gridDim.y … of a panel whose
/// diagonal begins at row `first`: before elimination the largest of the elements from there on,
/// afterwards those of U, its diagonal, and what is not finite.
template <class T>
__global__ void __launch_bounds__(kThreads)
    look_at(const T* a, std::int64_t ld, std::int64_t rows, std::int64_t cols, std::int64_t first,
            bool afterwards, Findings* findings) {
  constexpr double kMost = std::numeric_limits<RealOf<T>>::max();
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock;
  const std::int64_t end = begin + kRowsOfBlock < rows ? begin + kRowsOfBlock : rows;
  double largest = 0;
  for (std::int64_t j = blockIdx.y; j < cols; j += gridDim.y) {
    bool bad = false;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
      if (!afterwards && i < first) continue;
      const T value = a[i + j * ld];
      const bool counts = !afterwards || i <= first + j;
      bad = bad || !finite(value);
      const double size = static_cast<double>(lu_cuda::size_of(value));
      if (counts) largest = fmax(largest, finite(value) ? fmin(size, kMost) : INFINITY);
      if (afterwards && i == first + j) {
        if (size == 0) atomicMin(&findings->zero_pivot, static_cast<int>(j));
        atomicMin(&findings->smallest_pivot,
                  static_cast<unsigned long long>(__double_as_longlong(size)));
      }
    }
    if (afterwards && bad) atomicMin(&findings->not_finite, static_cast<int>(j));
  }
  for (int d = 16; d > 0; d /= 2) largest = fmax(largest, __shfl_xor_sync(0xffffffffU, largest, d));
  if (threadIdx.x % 32 == 0)
    atomicMax(&findings->largest, static_cast<unsigned long long>(__double_as_longlong(largest)));
}

__global__ void put_status(const Findings* findings, PanelStatus* status) {
  const auto column = [](int j) { return j == INT_MAX ? -1.0 : static_cast<double>(j); };
  *status = {column(findings->zero_pivot), column(findings->not_finite),
             __longlong_as_double(static_cast<long long>(findings->largest)),
             __longlong_as_double(static_cast<long long>(findings->smallest_pivot))};
}

std::int64_t panels_of(std::int64_t cols) { return (cols + kPanelColumns - 1) / kPanelColumns; }

template <class T>
class Elimination {
 public:
  Elimination(CudaQueue& queue, MatrixView<T> a, std::int64_t* pivots, std::byte* scratch)
      : queue_(queue),
        a_(a),
        pivots_(pivots),
        panel_scratch_(scratch),
        moves_(reinterpret_cast<RowMoves*>(scratch + lu_cuda::panel_scratch_bytes())) {
    require_cuda(cudaEventCreateWithFlags(&started_, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags");
  }
  Elimination(const Elimination&) = delete;  // owns an event
  Elimination& operator=(const Elimination&) = delete;
  ~Elimination() { (void)cudaEventDestroy(started_); }

  static std::int64_t scratch_bytes(std::int64_t cols) {
    return lu_cuda::panel_scratch_bytes() +
           panels_of(cols) * static_cast<std::int64_t>(sizeof(RowMoves));
  }

  void run() {
    require_cuda(
        cudaMemsetAsync(panel_scratch_, 0, static_cast<std::size_t>(lu_cuda::panel_scratch_bytes()),
                        queue_.stream()),
        "cudaMemsetAsync");
    if (a_.cols <= kPanelColumns) return factor(queue_.main(), 0, a_.cols);
    const std::int64_t step = step_of(a_.cols);
    queue_.order(queue_.main(), queue_.urgent());
    factor(queue_.urgent(), 0, std::min(step, a_.cols));
    for (std::int64_t c0 = 0; c0 < a_.cols; c0 += step) {
      const std::int64_t c1 = std::min(c0 + step, a_.cols);
      const std::int64_t c2 = std::min(c1 + step, a_.cols);
      queue_.order(queue_.urgent(), queue_.main());
      if (c1 < c2) {
        apply(queue_.main(), c0, c1, c1, c2);
        queue_.order(queue_.main(), queue_.urgent());
        factor(queue_.urgent(), c1, c2);
        // The panel's cluster takes its multiprocessors before products are on all of them.
        if (step == kPanelColumns)
          require_cuda(cudaStreamWaitEvent(queue_.stream(), started_), "cudaStreamWaitEvent");
      }
      apply(queue_.main(), c0, c1, c2, a_.cols);
      exchange(queue_.main(), c0, c1, 0, c0);
    }
  }

 private:
  static std::int64_t step_of(std::int64_t cols) { return cols >= 24576 ? 512 : 256; }

  /// Columns c0 … c1 − 1, with all exchanges in them.
  void factor(CudaStream& stream, std::int64_t c0, std::int64_t c1) {
    if (c1 - c0 <= kPanelColumns) {
      lu_cuda::factor_panel(stream, a_.block(c0, c0, a_.rows - c0, c1 - c0), pivots_ + c0, c0,
                            panel_scratch_, count_++, started_);
      lu_cuda::make_moves(stream, pivots_, c0, c1 - c0, moves_of(c0));
      return;
    }
    const std::int64_t middle = c0 + (panels_of(c1 - c0) + 1) / 2 * kPanelColumns;
    factor(stream, c0, middle);
    apply(stream, c0, middle, middle, c1);
    factor(stream, middle, c1);
    exchange(stream, middle, c1, c0, middle);
  }
  /// Columns first … last − 1 by panel columns c0 … c1 − 1.
  void apply(CudaStream& stream, std::int64_t c0, std::int64_t c1, std::int64_t first,
             std::int64_t last) {
    if (first >= last) return;
    lu_cuda::apply_panel(stream, MatrixView<const T>(a_.block(0, 0, a_.rows, c1)), c0, moves_of(c0),
                         a_.block(0, first, a_.rows, last - first));
  }
  void exchange(CudaStream& stream, std::int64_t c0, std::int64_t c1, std::int64_t first,
                std::int64_t last) {
    if (first >= last) return;
    for (std::int64_t c = c0; c < c1; c += kPanelColumns)
      lu_cuda::move_rows(stream, moves_of(c), c, std::min(kPanelColumns, c1 - c),
                         a_.block(0, first, a_.rows, last - first),
                         lu_cuda::MoveDirection::forward);
  }
  [[nodiscard]] RowMoves* moves_of(std::int64_t column) const {
    return moves_ + column / kPanelColumns;
  }

  CudaQueue& queue_;
  MatrixView<T> a_;
  std::int64_t* pivots_;
  void* panel_scratch_;
  RowMoves* moves_;
  int count_ = 0;
  cudaEvent_t started_ = nullptr;  // all blocks of the last panel run
};

template <class T>
void look(cudaStream_t stream, MatrixView<T> a, std::int64_t first, bool afterwards,
          Findings* findings) {
  constexpr std::int64_t kColumnsMost = 4096;
  const dim3 blocks(static_cast<unsigned>((a.rows + kRowsOfBlock - 1) / kRowsOfBlock),
                    static_cast<unsigned>(std::min(a.cols, kColumnsMost)));
  look_at<T>
      <<<blocks, kThreads, 0, stream>>>(a.data, a.ld, a.rows, a.cols, first, afterwards, findings);
  blas::require_launched("status of a panel");
}

}  // namespace

template <class T>
void getrf_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(getrf, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    const auto a = matrix_of<T>(x[0]);
    const std::int64_t first = x[0].col;
    if (a.cols == 0) continue;
    auto* scratch = static_cast<std::byte*>(
        cuda.scratch(kFindingsBytes + Elimination<T>::scratch_bytes(a.cols)));
    auto* findings = reinterpret_cast<Findings*>(scratch);
    start_findings<<<1, 1, 0, cuda.stream()>>>(findings);
    look(cuda.stream(), a, first, false, findings);
    Elimination<T>(cuda, a.block(first, 0, a.rows - first, a.cols),
                   static_cast<std::int64_t*>(x[1].data), scratch + kFindingsBytes)
        .run();
    look(cuda.stream(), a, first, true, findings);
    put_status<<<1, 1, 0, cuda.stream()>>>(findings, static_cast<PanelStatus*>(x[2].data));
    blas::require_launched("getrf");
  }
}

template void getrf_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_cuda<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_cuda<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
