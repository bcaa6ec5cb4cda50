// getrf on the GPU, for a panel of any width: all of a matrix, too.
//
// Method: right-looking with look-ahead, on three streams. The columns of a step are factored on
// the urgent one, while the main one takes the products of the step before off the rest; the
// columns that come next first. Exchanges and solves go ahead of the products on the third, a
// stripe of columns at a time. In a step columns are halved until one launch factors them
// (lu_panel_cuda.cu). Rows are exchanged in the columns on the left of all steps at the end. The
// status is found by two readings of the panel, before and afterwards.

#include <algorithm>
#include <array>
#include <complex>
#include <utility>
#include <vector>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_columns_cuda.hpp"
#include "kernels/dense/lu_eliminate_cuda.hpp"
#include "kernels/dense/lu_moves_cuda.hpp"
#include "kernels/dense/lu_panel_cuda.hpp"
#include "kernels/dense/lu_status_cuda.hpp"
#include "kernels/dense/lu_update.hpp"

namespace strata {
namespace {

using lu_cuda::RowMoves;

using lu_cuda::Findings;
using lu_cuda::kFindingsBytes;

constexpr int kThreads = 256;
constexpr int kRowsOfBlock = 16 * kThreads;

__global__ void clear_findings(Findings* findings) { *findings = lu_cuda::no_findings(); }

/// Rows blockIdx.x·kRowsOfBlock … of columns blockIdx.y, blockIdx.y + gridDim.y … of a panel whose
/// diagonal begins at row `first`.
template <class T>
__global__ void __launch_bounds__(kThreads)
    look_at(const T* a, std::int64_t ld, std::int64_t rows, std::int64_t cols, std::int64_t first,
            bool afterwards, Findings* findings) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock;
  const std::int64_t end = begin + kRowsOfBlock < rows ? begin + kRowsOfBlock : rows;
  lu_cuda::note_columns<kThreads>(a, ld, begin, end, first, blockIdx.y, gridDim.y, cols, afterwards,
                                  findings);
}

__global__ void write_status(const Findings* findings, PanelStatus* status) {
  *status = lu_cuda::status_of(*findings);
}

/// Events of the GPU that is current, in the order in which they are asked for.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;  // owns them
  Events& operator=(const Events&) = delete;
  ~Events() {
    for (cudaEvent_t event : all_) (void)cudaEventDestroy(event);
  }
  [[nodiscard]] cudaEvent_t next() {
    if (taken_ == all_.size()) {
      all_.push_back(nullptr);
      require_cuda(cudaEventCreateWithFlags(&all_.back(), cudaEventDisableTiming),
                   "cudaEventCreateWithFlags");
    }
    return all_[taken_++];
  }
  /// All may be taken again: what waits for them was told to before.
  void give_back() noexcept { taken_ = 0; }

 private:
  std::vector<cudaEvent_t> all_;
  std::size_t taken_ = 0;
};

template <class T>
class Elimination {
 public:
  /// `halves`: as of subtract_panel().
  Elimination(CudaQueue& queue, MatrixView<T> a, std::int64_t* pivots, bool halves)
      : queue_(queue), a_(a), pivots_(pivots), halves_(halves) {
    for (std::int64_t c = 0; c < a.cols; c += step_at(c)) steps_.push_back(c);
    steps_.push_back(a.cols);
  }

  [[nodiscard]] std::int64_t scratch_bytes() const {
    std::int64_t bytes = lu_cuda::panel_scratch_bytes() + (1 + steps()) * kMovesBytes;
    if (orders_at_end()) bytes += 2 * order_bytes() + columns_bytes();
    return bytes;
  }

  void run(std::byte* scratch) {
    panel_scratch_ = take(scratch, lu_cuda::panel_scratch_bytes());
    require_cuda(
        cudaMemsetAsync(panel_scratch_, 0, static_cast<std::size_t>(lu_cuda::panel_scratch_bytes()),
                        queue_.stream()),
        "cudaMemsetAsync");
    if (a_.cols <= launch_columns(a_.rows)) return factor(queue_.main(), 0, a_.cols);
    moves_in_panel_ = reinterpret_cast<RowMoves*>(take(scratch, kMovesBytes));
    moves_ = reinterpret_cast<RowMoves*>(take(scratch, steps() * kMovesBytes));
    started_ = further_events_.next();
    queue_.order(queue_.main(), queue_.urgent());
    queue_.order(queue_.main(), queue_.beside());
    factor(queue_.urgent(), 0, steps_[1]);
    for (std::int64_t s = 0; s < steps(); ++s) {
      queue_.order(queue_.urgent(), queue_.beside());
      lu_cuda::make_moves(queue_.beside(), pivots_, at(s), at(s + 1) - at(s), moves_ + s);
      queue_.order(queue_.beside(), queue_.main());
      update(s);
      if (!orders_at_end()) exchange(queue_.main(), at(s), at(s + 1), moves_ + s, 0, at(s));
    }
    if (orders_at_end()) put_in_order(scratch);
  }

 private:
  static constexpr std::int64_t kMovesBytes = sizeof(RowMoves);
  static_assert(kMovesBytes % 16 == 0);

  /// How many columns are factored before the rest is updated with them: products are the faster
  /// the longer they are, and panels have to be done meanwhile. Nothing goes on beside the first.
  [[nodiscard]] std::int64_t step_at(std::int64_t column) const {
    const std::int64_t rest = a_.cols - column;
    if (column == 0) return kStep;
    return rest >= 20480 ? 4 * kStep : rest >= 10240 ? 2 * kStep : kStep;
  }
  static constexpr std::int64_t kStep = 256;
  /// Columns of one launch. More than these are the sooner done by several and products between
  /// them; those of complex128 take registers that the kernel does not have.
  static std::int64_t launch_columns(std::int64_t rows) {
    constexpr std::int64_t kTall = 16384;  // blocks of more rows meet in global memory
    return sizeof(T) == 16 ? 64 : rows <= kTall ? 128 : lu_cuda::kPanelColumnsMost;
  }
  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(steps_.size()) - 1; }
  [[nodiscard]] std::int64_t at(std::int64_t s) const {
    return steps_[static_cast<std::size_t>(s)];
  }
  static std::byte* take(std::byte*& scratch, std::int64_t bytes) {
    std::byte* here = scratch;
    scratch += bytes;
    return here;
  }

  /// Columns c0 … c1 − 1, with all exchanges in them.
  void factor(CudaStream& stream, std::int64_t c0, std::int64_t c1) {
    const std::int64_t most = launch_columns(a_.rows - c0);
    if (c1 - c0 <= most) {
      lu_cuda::factor_panel(stream, a_.block(c0, c0, a_.rows - c0, c1 - c0), pivots_ + c0, c0,
                            panel_scratch_, count_++, marks_start_ ? started_ : nullptr);
      marks_start_ = false;
      return;
    }
    const std::int64_t launches = (c1 - c0 + most - 1) / most;
    const std::int64_t middle = c0 + (launches + 1) / 2 * most;
    factor(stream, c0, middle);
    lu_cuda::make_moves(stream, pivots_, c0, middle - c0, moves_in_panel_);
    lu_cuda::apply_panel(stream, panel(middle), c0, moves_in_panel_, columns(middle, c1));
    factor(stream, middle, c1);
    lu_cuda::make_moves(stream, pivots_, middle, c1 - middle, moves_in_panel_);
    exchange(stream, middle, c1, moves_in_panel_, c0, middle);
  }
  [[nodiscard]] MatrixView<const T> panel(std::int64_t end) const {
    return MatrixView<const T>(a_.block(0, 0, a_.rows, end));
  }
  [[nodiscard]] MatrixView<T> columns(std::int64_t first, std::int64_t last) const {
    return a_.block(0, first, a_.rows, last - first);
  }
  void exchange(CudaStream& stream, std::int64_t c0, std::int64_t c1, const RowMoves* moves,
                std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    lu_cuda::move_rows(stream, moves, c0, c1 - c0, columns(first, last),
                       lu_cuda::MoveDirection::forward);
  }

  /// Applies step s to the columns on its right: those of the next step, which are factored then,
  /// and the rest in stripes, so that exchanges and solves of one go on beside the products of
  /// another, of the step before, too.
  void update(std::int64_t s) {
    const std::int64_t c1 = at(s + 1);
    if (c1 == a_.cols) return;
    std::swap(updated_before_, updated_);
    updated_.clear();
    events_[s % 2].give_back();
    const std::int64_t c2 = at(s + 2);
    update_stripe(s, c1, c2);
    queue_.order(queue_.main(), queue_.urgent());
    marks_start_ = true;
    factor(queue_.urgent(), c1, c2);
    // The panel's cluster takes its multiprocessors before products are on all of them.
    if (!goes_ahead(s))
      require_cuda(cudaStreamWaitEvent(queue_.stream(), started_), "cudaStreamWaitEvent");
    const std::int64_t rest = a_.cols - c2;
    const std::int64_t width =
        goes_ahead(s) ? std::max(kStripeLeast, rest / kStripes / kStep * kStep) : rest;
    for (std::int64_t c = c2; c < a_.cols; c += width)
      update_stripe(s, c, std::min(c + width, a_.cols));
  }
  static constexpr std::int64_t kStripes = 4;
  static constexpr std::int64_t kStripeLeast = 2048;
  /// Panels of the narrowest steps take longer than the products beside them: nothing else should.
  [[nodiscard]] bool goes_ahead(std::int64_t s) const { return at(s + 1) - at(s) > kStep; }
  void update_stripe(std::int64_t s, std::int64_t first, std::int64_t last) {
    const auto l = panel(at(s + 1));
    const auto x = columns(first, last);
    if (goes_ahead(s)) {
      // Stripes of the step before are in the order of the columns, as the products of all are.
      const auto ready = std::find_if(updated_before_.begin(), updated_before_.end(),
                                      [&](const Stripe& stripe) { return stripe.last >= last; });
      if (ready != updated_before_.end())
        require_cuda(cudaStreamWaitEvent(queue_.beside().get(), ready->done),
                     "cudaStreamWaitEvent");
      lu_cuda::solve_by_panel(queue_.beside(), l, at(s), moves_ + s, x);
      queue_.order(queue_.beside(), queue_.main());
    } else {
      lu_cuda::solve_by_panel(queue_.main(), l, at(s), moves_ + s, x);
    }
    lu_cuda::subtract_panel(queue_.main(), l, at(s), x, halves_);
    updated_.push_back({last, events_[s % 2].next()});
    require_cuda(cudaEventRecord(updated_.back().done, queue_.stream()), "cudaEventRecord");
  }

  /// Whether exchanges in the columns on the left are done at the end, all at once. That reads and
  /// writes all rows there, not only those that change places: not for tall panels.
  [[nodiscard]] bool orders_at_end() const { return steps() > 1 && a_.rows <= 4 * a_.cols; }
  [[nodiscard]] std::int64_t order_bytes() const { return (a_.rows * 4 + 15) / 16 * 16; }
  [[nodiscard]] std::int64_t columns_bytes() const {
    constexpr std::int64_t kMost = std::int64_t{32} << 20;  // so that they stay in the L2 cache
    return std::max(kMost, a_.rows * static_cast<std::int64_t>(sizeof(T)));
  }
  void put_in_order(std::byte* scratch) {
    const lu_cuda::RowOrder order{reinterpret_cast<int*>(take(scratch, order_bytes())),
                                  reinterpret_cast<int*>(take(scratch, order_bytes())), a_.rows};
    lu_cuda::start_order(queue_.main(), order);
    for (std::int64_t s = steps() - 1; s > 0; --s) {
      lu_cuda::put_before(queue_.main(), moves_ + s, at(s), at(s + 1) - at(s), order);
      lu_cuda::reorder_rows(queue_.main(), order, at(s), columns(at(s - 1), at(s)), scratch,
                            columns_bytes());
    }
  }

  /// Columns before `last`, from those of the stripe before on, have their products.
  struct Stripe {
    std::int64_t last;
    cudaEvent_t done;
  };

  CudaQueue& queue_;
  MatrixView<T> a_;
  std::int64_t* pivots_;
  bool halves_;
  std::vector<std::int64_t> steps_;  // where they begin, and where the last one ends
  std::byte* panel_scratch_ = nullptr;
  RowMoves* moves_in_panel_ = nullptr;  // on the urgent stream
  RowMoves* moves_ = nullptr;           // of all steps
  int count_ = 0;
  std::vector<Stripe> updated_;         // by this step
  std::vector<Stripe> updated_before_;  // by the step before
  std::array<Events, 2> events_;        // of stripes, of this step and of the one before
  Events further_events_;
  cudaEvent_t started_ = nullptr;  // all blocks of the first launch of a step run
  bool marks_start_ = false;
};

}  // namespace

namespace lu_cuda {

template <class T>
std::int64_t elimination_bytes(CudaQueue& queue, MatrixView<T> a) {
  return Elimination<T>(queue, a, nullptr, false).scratch_bytes();
}

template <class T>
void eliminate(CudaQueue& queue, MatrixView<T> a, std::int64_t* pivots, bool halves,
               std::byte* scratch) {
  Elimination<T>(queue, a, pivots, halves).run(scratch);
}

void start_findings(const CudaStream& stream, Findings* findings) {
  clear_findings<<<1, 1, 0, stream.get()>>>(findings);
  blas::require_launched("status of a panel");
}

void put_status(const CudaStream& stream, const Findings* findings, PanelStatus* status) {
  write_status<<<1, 1, 0, stream.get()>>>(findings, status);
  blas::require_launched("status of a panel");
}

template <class T>
void look(const CudaStream& stream, MatrixView<const T> a, std::int64_t first, bool afterwards,
          Findings* findings) {
  constexpr std::int64_t kColumnsMost = 4096;
  const dim3 blocks(static_cast<unsigned>((a.rows + kRowsOfBlock - 1) / kRowsOfBlock),
                    static_cast<unsigned>(std::min(a.cols, kColumnsMost)));
  look_at<T><<<blocks, kThreads, 0, stream.get()>>>(a.data, a.ld, a.rows, a.cols, first, afterwards,
                                                    findings);
  blas::require_launched("status of a panel");
}

#define STRATA_ELIMINATE(T)                                                               \
  template std::int64_t elimination_bytes<T>(CudaQueue&, MatrixView<T>);                  \
  template void eliminate<T>(CudaQueue&, MatrixView<T>, std::int64_t*, bool, std::byte*); \
  template void look<T>(const CudaStream&, MatrixView<const T>, std::int64_t, bool, Findings*);
STRATA_ELIMINATE(double)
STRATA_ELIMINATE(float)
STRATA_ELIMINATE(std::complex<double>)
STRATA_ELIMINATE(std::complex<float>)
#undef STRATA_ELIMINATE

}  // namespace lu_cuda

template <class T>
void getrf_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(getrf, parameters.variant, kProductsOfHalves);
  auto& cuda = static_cast<CudaQueue&>(queue);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    const auto a = matrix_of<T>(x[0]);
    const std::int64_t first = x[0].col;
    if (a.cols == 0) continue;
    const auto panel = a.block(first, 0, a.rows - first, a.cols);
    auto* scratch = static_cast<std::byte*>(
        cuda.scratch(kFindingsBytes + lu_cuda::elimination_bytes(cuda, panel)));
    auto* findings = reinterpret_cast<Findings*>(scratch);
    lu_cuda::start_findings(cuda.main(), findings);
    lu_cuda::look<T>(cuda.main(), a, first, false, findings);
    lu_cuda::eliminate(cuda, panel, static_cast<std::int64_t*>(x[1].data),
                       (parameters.variant & kProductsOfHalves) != 0, scratch + kFindingsBytes);
    lu_cuda::look<T>(cuda.main(), a, first, true, findings);
    lu_cuda::put_status(cuda.main(), findings, static_cast<PanelStatus*>(x[2].data));
  }
}

template void getrf_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_cuda<std::complex<double>>(Queue&, const KernelCalls&, const KernelParameters&);
template void getrf_cuda<std::complex<float>>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
