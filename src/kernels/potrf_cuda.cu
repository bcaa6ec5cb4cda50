// potrf on the GPU, for a block of any order in device memory.
//
// Method: three algorithms over the same tile kernel (fused_cuda.cu).
// * fused: one launch does it all.
// * left: for each panel of nb columns, subtract everything to its left (a product with a long k,
//   where cuBLAS is fastest), then factor the panel by the fused kernel. While a panel is factored
//   on the side stream, of higher priority, the next one is updated with what was finished before.
// * right: factor a panel, then subtract it from everything to its right, panel by panel, the next
//   one first, so that it is factored on the side stream while the rest is updated.
// All updates are products of full rectangles, because cuBLAS is slower in syrk (45 TFLOP/s on an
// H200 where gemm reaches 58), and far slower for a small diagonal block with a long k. They run
// over the upper triangles of the diagonal blocks, which are not ours: those are put aside before
// and brought back after. In the words of Haidar, Abdelfattah, Tomov, Dongarra (2017): the fused
// kernel is their fused panel (potf2 and its solve) with look-ahead, ib its inner block, recnb its
// tile, nb the panel.
//
// A bad pivot: its column and all later ones of the diagonal block are multiplied by zero instead
// of 1/√pivot, and what follows computes with whatever it finds. No branch or loop depends on those
// values, so nothing hangs. The verdict stays in device memory until the end, where it is written
// to the status once.

#include <algorithm>
#include <string>

#include "kernels/blas_cuda.hpp"
#include "kernels/fused_cuda.hpp"
#include "kernels/operand.hpp"
#include "kernels/potrf.hpp"
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
PotrfOptions resolve(const PotrfOptions* asked, std::int64_t n) {
  constexpr std::int64_t kFusedMax = sizeof(T) == 8 ? 20480 : 24576;
  PotrfOptions options = asked != nullptr ? *asked : PotrfOptions{};
  if (options.variant == PotrfVariant::automatic) {
    options.variant = n <= kFusedMax ? PotrfVariant::fused : PotrfVariant::left;
  }
  if (options.ib == 0) options.ib = 8;
  if (options.recnb == 0) options.recnb = n <= 6144 ? 64 : 128;
  if (options.nb == 0) options.nb = n <= 16384 ? 512 : 1024;
  if (options.ib != 4 && options.ib != 8) refuse("ib", options.ib, "4, 8");
  if (options.recnb != 64 && options.recnb != 128) refuse("recnb", options.recnb, "64, 128");
  if (options.nb < 0 || options.nb % 128 != 0) refuse("nb", options.nb, "the multiples of 128");
  return options;
}

constexpr int kAsideThreads = 256;

/// Of one block.
__host__ __device__ constexpr std::int64_t aside_elements(std::int64_t width) {
  return width * (width - 1) / 2;
}

/// The strict upper triangles of the diagonal blocks of `width` columns, to `aside` or back: one
/// block after the other, column after column, without gaps.
template <class T>
__global__ void __launch_bounds__(kAsideThreads)
    put_aside(T* a, std::int64_t n, std::int64_t ld, std::int64_t width, T* aside, bool back) {
  const std::int64_t j = blockIdx.x;     // a column of the matrix
  const std::int64_t above = j % width;  // elements of it that are put aside
  const std::int64_t first = j - above;  // the block's first row
  T* column = a + first + j * ld;
  T* place = aside + first / width * aside_elements(width) + above * (above - 1) / 2;
  for (std::int64_t i = threadIdx.x; i < above; i += kAsideThreads) {
    if (back) {
      column[i] = place[i];
    } else {
      place[i] = column[i];
    }
  }
}

/// One factorization of A by panels: what `left` and `right` share.
template <class T>
class Panels {
 public:
  Panels(CudaQueue& queue, MatrixView<T> a, const PotrfOptions& options, std::byte* scratch)
      : queue_(queue), a_(a), options_(options), scratch_(scratch), side_(queue.side_stream()) {}

  /// The verdict, the bookkeeping of each panel (both zero at first), and what is put aside.
  static std::int64_t zeroed_bytes(std::int64_t n, const PotrfOptions& options) {
    return kVerdictBytes +
           (n + options.nb - 1) / options.nb * fused::scratch_bytes(n, options.recnb);
  }
  static std::int64_t scratch_bytes(std::int64_t n, const PotrfOptions& options) {
    return zeroed_bytes(n, options) + (n + options.nb - 1) / options.nb *
                                          aside_elements(options.nb) *
                                          static_cast<std::int64_t>(sizeof(T));
  }

  void run() {
    aside(false);
    options_.variant == PotrfVariant::left ? left() : right();
    aside(true);
  }

 private:
  void left() {
    for (std::int64_t c0 = 0; c0 < a_.cols; c0 += options_.nb) {
      const std::int64_t before = std::max<std::int64_t>(c0 - options_.nb, 0);
      if (c0 > 0) {
        queue_.order(side_, queue_.stream());
        update_panel(c0, before, c0);  // with the panel that was just factored
      }
      factor_panel(c0);
      const std::int64_t c1 = end_of(c0);
      if (c1 < a_.cols && c0 > 0) update_panel(c1, 0, c0);  // the next panel, in the meantime
    }
    queue_.order(side_, queue_.stream());
  }

  void right() {
    for (std::int64_t c0 = 0; c0 < a_.cols; c0 += options_.nb) {
      if (c0 == 0) factor_panel(0);
      queue_.order(side_, queue_.stream());
      const std::int64_t c1 = end_of(c0);
      for (std::int64_t c = c1; c < a_.cols; c = end_of(c)) {
        update_panel(c, c0, c1);
        if (c == c1) factor_panel(c1);
      }
    }
  }

  void aside(bool back) {
    auto* place = reinterpret_cast<T*>(scratch_ + zeroed_bytes(a_.cols, options_));
    put_aside<<<static_cast<unsigned>(a_.cols), kAsideThreads, 0, queue_.stream()>>>(
        a_.data, a_.cols, a_.ld, options_.nb, place, back);
    blas::require_launched("potrf: put_aside");
  }

  [[nodiscard]] std::int64_t end_of(std::int64_t column) const {
    return std::min(column + options_.nb, a_.cols);
  }

  /// On the side stream, after what the main stream has been given.
  void factor_panel(std::int64_t c0) {
    const std::int64_t cols = end_of(c0) - c0;
    // A share of the GPU by which the panel takes about as long as the products beside it, which
    // are 2·c0 / nb times as much work; more than that of its work, because it is less efficient.
    const auto blocks = static_cast<int>(std::clamp<std::int64_t>(
        kProcessors * 3 * options_.nb / (2 * (options_.nb + 2 * c0)), kPanelBlocks, kProcessors));
    queue_.order(queue_.stream(), side_);
    const std::int64_t bytes = fused::scratch_bytes(a_.rows, options_.recnb);
    fused::factor(side_, a_.block(c0, c0, a_.rows - c0, cols),
                  {.tile = options_.recnb, .ib = options_.ib, .blocks = blocks}, c0,
                  reinterpret_cast<fused::Verdict*>(scratch_), nullptr,
                  scratch_ + kVerdictBytes + c0 / options_.nb * bytes);
  }

  /// The panel at column c ← it − L(c:, first:last)·L(c:c + nb, first:last)ᵀ.
  void update_panel(std::int64_t c, std::int64_t first, std::int64_t last) {
    const std::int64_t width = end_of(c) - c;
    const std::int64_t rows = a_.rows - c;
    blas::gemm_minus<T>(queue_, CUBLAS_OP_N, CUBLAS_OP_T, last - first,
                        a_.block(c, first, rows, last - first),
                        a_.block(c, first, width, last - first), a_.block(c, c, rows, width));
  }

  static constexpr int kProcessors = 132;  // about; of an H200
  static constexpr int kPanelBlocks = 24;  // at least

  CudaQueue& queue_;
  MatrixView<T> a_;
  PotrfOptions options_;
  std::byte* scratch_;
  cudaStream_t side_;
};

}  // namespace

template <class T>
void potrf_cuda(Queue& queue, const KernelArguments& arguments) {
  auto& cuda = static_cast<CudaQueue&>(queue);
  const auto a = matrix_of<T>(arguments.out);
  const PotrfOptions options = resolve<T>(arguments.potrf, a.cols);
  const bool fused = options.variant == PotrfVariant::fused || a.cols <= options.nb;
  const std::int64_t zeroed = fused ? kVerdictBytes + fused::scratch_bytes(a.rows, options.recnb)
                                    : Panels<T>::zeroed_bytes(a.cols, options);
  auto* scratch = static_cast<std::byte*>(
      cuda.scratch(fused ? zeroed : Panels<T>::scratch_bytes(a.cols, options)));
  auto* verdict = reinterpret_cast<fused::Verdict*>(scratch);
  require_cuda(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(zeroed), cuda.stream()),
               "cudaMemsetAsync");
  if (fused && a.cols > 0) {
    fused::factor(cuda.stream(), a, {.tile = options.recnb, .ib = options.ib, .blocks = 0}, 0,
                  verdict, arguments.status, scratch + kVerdictBytes);
    return;
  }
  if (!fused) Panels<T>(cuda, a, options, scratch).run();
  fused::report<T>(cuda.stream(), a, verdict, arguments.status);
}

template void potrf_cuda<double>(Queue&, const KernelArguments&);
template void potrf_cuda<float>(Queue&, const KernelArguments&);

}  // namespace strata
