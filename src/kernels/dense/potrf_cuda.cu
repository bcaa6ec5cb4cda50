// potrf on the GPU, for a block of any order in device memory.
//
// Method: three algorithms over the same tile kernel (fused_cuda.cu); up to order 64, the kernel of
// batches, with all such blocks of a task in one launch.
// * fused: one launch makes L, and as everywhere a small one behind it the status. (exclusive: a
// launch for each column of its tiles, the
//   "loop-exclusive" kernel of the paper below, to compare with.)
// * left: for each panel of nb columns, subtract everything to its left (products with a long k,
//   where cuBLAS is fastest), then factor the panel by the fused kernel. While a panel is factored
//   on the urgent stream, of high priority, the next one is updated with what was finished before.
// * right: factor a panel, then subtract it from everything to its right, panel by panel, the next
//   one first, so that it is factored on the urgent stream while the rest is updated.
// Updates are products of full rectangles by cuBLAS, which is slower in syrk (45 TFLOP/s on an H200
// where gemm reaches 58) and far slower for a small diagonal block with a long k. The triangles on
// the diagonal are updated by tiles of the fused kernel. In the words of Haidar, Abdelfattah,
// Tomov, Dongarra (2017): the fused kernel is their fused panel (potf2 and its solve) with
// look-ahead, ib its inner block, recnb its tile, nb the panel.
//
// A bad pivot: its column and all later ones of the diagonal block are multiplied by zero instead
// of 1/√pivot, and what follows computes with whatever it finds. No branch or loop depends on those
// values, so nothing hangs. The verdict stays in device memory until the end, where it is written
// to the status once.

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/fused_cuda.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/potrf_small_cuda.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

constexpr std::int64_t kVerdictBytes = 128;

[[noreturn]] void refuse(const char* name, int value, const char* allowed) {
  throw Error(ErrorKind::misuse, "potrf",
              std::string(name) + " " + std::to_string(value) + " is not one of " + allowed);
}

/// The options with every zero replaced by what was best on an H200 (docs/benchmarks.md).
template <class T>
PotrfOptions resolve(PotrfOptions options, std::int64_t n) {
  constexpr std::int64_t kFusedMax = sizeof(T) == 8 ? 18432 : 22528;
  if (options.variant == PotrfVariant::automatic) {
    options.variant = n <= kFusedMax ? PotrfVariant::fused : PotrfVariant::left;
  }
  if (options.ib == 0) options.ib = 8;
  if (options.recnb == 0) options.recnb = n <= 6144 ? 64 : 128;
  if (options.nb == 0) options.nb = n <= 8192 ? 512 : (n <= 28672 ? 1024 : 1536);
  if (options.ib != 4 && options.ib != 8) refuse("ib", options.ib, "4, 8");
  if (options.recnb != 64 && options.recnb != 128) refuse("recnb", options.recnb, "64, 128");
  if (options.nb < 0 || options.nb % 128 != 0) refuse("nb", options.nb, "the multiples of 128");
  return options;
}

/// One factorization of A by panels: what `left` and `right` share. Panels go to the queue's urgent
/// stream, products to its main one.
template <class T>
class Panels {
 public:
  Panels(CudaQueue& queue, MatrixView<T> a, const PotrfOptions& options, std::byte* scratch)
      : queue_(queue), a_(a), options_(options), scratch_(scratch) {}

  /// The verdict and the bookkeeping of each panel; all zero at first.
  static std::int64_t scratch_bytes(std::int64_t n, const PotrfOptions& options) {
    return kVerdictBytes + (n + options.nb - 1) / options.nb *
                               fused_kernel::scratch_bytes(n, options.nb, options.recnb);
  }

  void run() { options_.variant == PotrfVariant::left ? left() : right(); }

 private:
  void left() {
    const std::int64_t end = end_of_panels();
    for (std::int64_t c0 = 0; c0 < end; c0 += options_.nb) {
      if (c0 > 0) update(c0, std::max<std::int64_t>(c0 - options_.nb, 0), c0);
      factor_panel(c0);
      if (c0 == 0) continue;
      // What comes next, in the meantime, with all that was finished before.
      const std::int64_t next = end_of(c0);
      const std::int64_t next_end = next < end ? end_of(next) : a_.cols;
      for (std::int64_t c = next; c < next_end; c = end_of(c)) update_below(c, 0, c0);
      for (std::int64_t c = next; c < next_end; c = end_of(c)) update_triangle(c, 0, c0);
    }
    for (std::int64_t c = end; c < a_.cols; c = end_of(c)) update(c, end - options_.nb, end);
    queue_.order(queue_.urgent(), queue_.main());
    if (end < a_.cols) factor(queue_.main(), end, a_.cols, 0);
  }

  void right() {
    factor_panel(0);
    for (std::int64_t c0 = 0; end_of(c0) < a_.cols; c0 += options_.nb) {
      const std::int64_t c1 = end_of(c0);
      update(c1, c0, c1);
      factor_panel(c1);
      for (std::int64_t c = end_of(c1); c < a_.cols; c = end_of(c)) update_below(c, c0, c1);
      for (std::int64_t c = end_of(c1); c < a_.cols; c = end_of(c)) update_triangle(c, c0, c1);
    }
    queue_.order(queue_.urgent(), queue_.main());
  }

  [[nodiscard]] std::int64_t end_of(std::int64_t column) const {
    return std::min(column + options_.nb, a_.cols);
  }
  /// The rest, too small to hide panels behind its products, is left to the fused kernel.
  [[nodiscard]] std::int64_t end_of_panels() const {
    const std::int64_t panels = (a_.cols + options_.nb - 1) / options_.nb;
    return panels > 3 * kRestPanels ? (panels - kRestPanels) * options_.nb : a_.cols;
  }

  /// On the urgent stream, after what the main one has been given.
  void factor_panel(std::int64_t c0) {
    // A share of the GPU by which the panel takes about as long as the products beside it, which
    // are 2·c0 / nb times as much work; more than that of its work, because it is less efficient.
    const auto blocks = static_cast<int>(
        std::clamp<std::int64_t>(kProcessors * 3 * options_.nb / (2 * (options_.nb + 2 * c0)),
                                 a_.cols < kLarge ? kPanelBlocks : kPanelBlocks / 2, kProcessors));
    queue_.order(queue_.main(), queue_.urgent());
    factor(queue_.urgent(), c0, end_of(c0), blocks);
  }
  void factor(const CudaStream& stream, std::int64_t c0, std::int64_t c1, int blocks) {
    const std::int64_t bytes = fused_kernel::scratch_bytes(a_.rows, options_.nb, options_.recnb);
    fused_kernel::factor(stream.get(), a_.block(c0, c0, a_.rows - c0, c1 - c0),
                         {.tile = options_.recnb, .ib = options_.ib, .blocks = blocks}, c0,
                         reinterpret_cast<fused_kernel::Verdict*>(scratch_),
                         scratch_ + kVerdictBytes + c0 / options_.nb * bytes);
  }

  /// The panel at column c ← it − L(c:, first:last)·L(c:c + nb, first:last)ᵀ, when all panels that
  /// were put into the urgent stream are factored.
  void update(std::int64_t c, std::int64_t first, std::int64_t last) {
    queue_.order(queue_.urgent(), queue_.main());
    update_triangle(c, first, last);
    update_below(c, first, last);
  }
  /// Its triangle on the diagonal. Urgent, although it is not, in `left`, for the panel after next:
  /// a block of this kernel needs a multiprocessor of its own, and blocks of cuBLAS that share one
  /// leave it one by one.
  void update_triangle(std::int64_t c, std::int64_t first, std::int64_t last) {
    const std::int64_t width = end_of(c) - c;
    fused_kernel::update_triangle(queue_.urgent().get(), a_.block(c, c, width, width), c - first,
                                  last - first);
  }
  void update_below(std::int64_t c, std::int64_t first, std::int64_t last) {
    const std::int64_t width = end_of(c) - c;
    const std::int64_t inner = last - first;
    const std::int64_t below = c + width;
    if (below == a_.rows) return;
    const std::int64_t panels = inner / options_.nb;
    const std::int64_t parts = (panels + kDepthMax - 1) / kDepthMax;
    const std::int64_t depth = (panels + parts - 1) / parts * options_.nb;
    for (std::int64_t k = first; k < last; k += depth) {
      const std::int64_t count = std::min(depth, last - k);
      blas::gemm_minus<T>(queue_.main(), CUBLAS_OP_N, CUBLAS_OP_T, count,
                          a_.block(below, k, a_.rows - below, count), a_.block(c, k, width, count),
                          a_.block(below, c, a_.rows - below, width));
    }
  }

  static constexpr std::int64_t kRestPanels = 6;
  static constexpr int kProcessors = 132;  // about; of an H200
  static constexpr int kPanelBlocks = 24;  // at least; half of it where products last long enough
  static constexpr std::int64_t kLarge = 49152;
  // Panels, of 1,024 columns or more by default, in one product: deeper ones are slower beside a
  // panel (measured). Probably because blocks of cuBLAS that begin at different times stay as far
  // apart, and read operands from memory for themselves where that is more than the second-level
  // cache holds; the next product begins together again.
  static constexpr std::int64_t kDepthMax = 11;

  CudaQueue& queue_;
  MatrixView<T> a_;
  PotrfOptions options_;
  std::byte* scratch_;
};

/// A block with what is known of it.
template <class T>
struct Block {
  MatrixView<T> a;
  PotrfOptions options;
  PivotStatus* status;
};

template <class T>
void factor(CudaQueue& cuda, const Block<T>& block) {
  const auto& [a, options, status] = block;
  const bool exclusive = options.variant == PotrfVariant::exclusive;
  const bool fused = exclusive || options.variant == PotrfVariant::fused || a.cols <= options.nb;
  const std::int64_t bytes =
      fused ? kVerdictBytes + fused_kernel::scratch_bytes(a.rows, a.cols, options.recnb)
            : Panels<T>::scratch_bytes(a.cols, options);
  const std::int64_t zeroed =
      fused ? kVerdictBytes + fused_kernel::zeroed_bytes(a.rows, options.recnb) : bytes;
  auto* scratch = static_cast<std::byte*>(cuda.scratch(bytes));
  auto* verdict = reinterpret_cast<fused_kernel::Verdict*>(scratch);
  require_cuda(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(zeroed), cuda.stream()),
               "cudaMemsetAsync");
  if (fused && a.cols > 0) {
    const fused_kernel::Shape shape{
        .tile = options.recnb, .ib = options.ib, .blocks = 0, .exclusive = exclusive};
    fused_kernel::factor(cuda.stream(), a, shape, 0, verdict, scratch + kVerdictBytes);
  } else if (!fused) {
    Panels<T>(cuda, a, options, scratch).run();
  }
  fused_kernel::report<T>(cuda.stream(), a, verdict, status);
}

}  // namespace

template <class T>
void potrf_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(potrf, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const auto* values = static_cast<const PotrfValues*>(parameters.values);
  std::vector<SmallMatrix> small;
  std::vector<Block<T>> others;
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const auto a = matrix_of<T>(calls[i][0]);
    PivotStatus* status = status_of(calls[i][1]);
    PotrfOptions asked;
    if (values != nullptr && values->blocking) asked = values->blocking(element_of<T>, a.cols);
    if (asked.variant == PotrfVariant::automatic && a.cols > 0 && a.cols <= kSmallOrderMax) {
      small.push_back({{a.data, a.cols, a.ld}, status});
    } else {
      others.push_back({a, resolve<T>(asked, a.cols), status});
    }
  }
  for (const Block<T>& block : others) factor(cuda, block);
  potrf_small<T>(cuda.stream(), small);
}

template void potrf_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void potrf_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
