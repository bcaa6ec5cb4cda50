// householder.hpp on a GPU.
//
// Method: a warp for each panel of up to 24 columns (householder_warp_cuda.hpp), a few warps for
// each of up to 64 (householder_group_cuda.hpp), both in registers, a thread block with shared or
// scratch memory for each of more (householder_block_cuda.hpp). All panels of a level of the tree,
// of all calls of a task, are one launch. What goes back down the tree factors its panel again:
// that costs less than to keep the reflections.

#include <algorithm>
#include <vector>

#include "device/device_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/tall/householder_block_cuda.hpp"
#include "kernels/tall/householder_cuda.hpp"
#include "kernels/tall/householder_group_cuda.hpp"
#include "kernels/tall/householder_warp_cuda.hpp"

namespace strata {
namespace {

using householder_cuda::Batch;
using householder_cuda::kBatch;
using householder_cuda::kColumnsMax;
using householder_cuda::Level;
using householder_cuda::Rows;

constexpr std::int64_t kSharedBytesMax = 192 << 10;
/// Columns of a panel that a few warps hold.
constexpr std::int64_t kGroupMost = 64;
static_assert(householder_panel_rows(kHouseholderNarrow + 1) == 256 &&
              householder_panel_rows(kGroupMost) == 256);
/// What the trees of a launch may take beside the budget, if it is not one alone.
constexpr std::int64_t kScratchBytesMax = std::int64_t{256} << 20;

std::int64_t panels_of(std::int64_t rows, std::int64_t height) {
  return std::max<std::int64_t>((rows + height - 1) / height, 1);
}
std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// One level of one launch.
struct Launch {
  Batch batch;
  dim3 grid;
  int height = 0;
  int n = 0;
  bool product = false;
  double* spill = nullptr;  ///< of panels in thread blocks that shared memory does not hold
  std::int64_t bytes = 0;   ///< of a panel in a thread block

  template <class T, int K, int N>
  void in_warps(cudaStream_t stream) const {
    namespace of = householder_cuda;
    static_assert(K * of::kWarpSize == householder_panel_rows(N));
    if (product) {
      constexpr auto kBytes = static_cast<int>(sizeof(of::WarpMemory<K, N>));
      static_assert(kBytes <= 48 << 10);
      require_cuda(cudaFuncSetAttribute(of::warp_products<T, K, N>,
                                        cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared),
                   "householder");
      of::warp_products<T, K, N><<<grid, of::kWarpSize, kBytes, stream>>>(batch, height, n);
    } else {
      of::warp_triangles<T, K, N><<<grid, of::kWarpSize, 0, stream>>>(batch, height, n);
    }
  }
  template <class T, int K, int kWarpsMost>
  void in_groups(cudaStream_t stream) const {
    namespace of = householder_cuda;
    const auto kernel =
        product ? of::group_products<T, K, kWarpsMost> : of::group_triangles<T, K, kWarpsMost>;
    const std::int64_t shared = of::GroupMemory<K>::bytes(n, product);
    // The same for any n: threads of other devices' queues set it too.
    const std::int64_t most = of::GroupMemory<K>::bytes(kWarpsMost * of::kGroupColumns, product);
    require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(most)),
                 "householder");
    const int warps = (n + of::kGroupColumns - 1) / of::kGroupColumns;
    kernel<<<grid, warps * of::kWarpSize, static_cast<std::size_t>(shared), stream>>>(batch, height,
                                                                                      n);
  }
  template <class T>
  void in_blocks(cudaStream_t stream) const {
    namespace of = householder_cuda;
    const auto kernel = product ? of::block_products<T> : of::block_triangles<T>;
    require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(kSharedBytesMax)),
                 "householder");
    const auto shared = static_cast<std::size_t>(spill == nullptr ? bytes : 0);
    kernel<<<grid, of::kThreads, shared, stream>>>(batch, height, n, spill, bytes);
  }
  template <class T>
  void run(cudaStream_t stream) const {
    if (n > kGroupMost) {
      in_blocks<T>(stream);
    } else if (n > 32) {
      in_groups<T, 8, 8>(stream);
    } else if (n > kHouseholderNarrow) {
      in_groups<T, 8, 4>(stream);
    } else if (n > 20) {
      in_warps<T, 4, 24>(stream);
    } else if (n > 16) {
      in_warps<T, 4, 20>(stream);
    } else if (n > 12) {
      in_warps<T, 4, 16>(stream);
    } else if (n > 8) {
      in_warps<T, 8, 12>(stream);
    } else if (n > 6) {
      in_warps<T, 8, 8>(stream);
    } else {
      in_warps<T, 16, 6>(stream);
    }
    require_cuda(cudaGetLastError(), "householder");
  }
};

/// One call: what its panels are cut from, and the n × n result of going up, or start of going
/// down, as its level 0 would have them if it had one panel.
struct Call {
  Level whole;
  Element element = Element::fp64;
};

/// The levels of the tree of a number of calls of so many rows, and where in the scratch memory of
/// a queue their triangles are.
class Levels {
 public:
  Levels(std::int64_t calls, std::int64_t rows, std::int64_t n, bool product)
      : n_(n), product_(product) {
    std::int64_t height = householder_panel_rows(n);
    std::int64_t spill = 0;
    for (;;) {
      heights.push_back(height);
      counts.push_back(panels_of(rows, height));
      if (!fits(height)) spill = std::max(spill, aligned(calls * counts.back() * panel(height)));
      if (counts.back() == 1) break;
      rows = counts.back() * n;
      stacks.push_back(spill_at);
      spill_at += aligned(calls * rows * n * std::int64_t{sizeof(double)});
      height = householder_stack(n) * n;
    }
    bytes = spill_at + spill;
  }
  /// Whether no scratch memory is needed for a panel itself.
  [[nodiscard]] bool fits(std::int64_t height) const {
    return n_ <= kGroupMost || panel(height) <= kSharedBytesMax;
  }

  std::vector<std::int64_t> heights;
  std::vector<std::int64_t> counts;  ///< of panels of a call
  std::vector<std::int64_t> stacks;  ///< of level l + 1
  std::int64_t spill_at = 0;         ///< of panels that do not fit
  std::int64_t bytes = 0;

 private:
  [[nodiscard]] std::int64_t panel(std::int64_t height) const {
    return householder_cuda::panel_bytes(height, n_, product_);
  }

  std::int64_t n_;
  bool product_;
};

std::int64_t longest(const std::vector<Call>& calls) {
  std::int64_t rows = 0;
  for (const Call& call : calls) rows = std::max(rows, call.whole.rows);
  return rows;
}

/// Up to kBatch calls with the same columns: their triangles, or their products.
class Tree {
 public:
  Tree(CudaQueue& queue, std::vector<Call> calls, std::int64_t n, bool product)
      : queue_(queue),
        calls_(std::move(calls)),
        n_(n),
        product_(product),
        levels_(std::ssize(calls_), longest(calls_), n, product),
        memory_(static_cast<std::byte*>(queue.scratch(levels_.bytes))) {}

  /// From level 0 up to the triangle of all, and where the product is wanted from that of the
  /// panels of the level before the last back down.
  void run() {
    const std::size_t levels = levels_.heights.size();
    for (std::size_t l = 0; l < levels - (product_ ? 1 : 0); ++l) launch(l, false);
    for (std::size_t l = levels; product_ && l-- > 0;) launch(l, true);
  }

 private:
  /// The stack of triangles of call c above level l.
  [[nodiscard]] Rows stack(std::size_t l, std::size_t c) const {
    auto* first = reinterpret_cast<double*>(memory_ + levels_.stacks[l]);
    const std::int64_t rows = levels_.counts[l] * n_;
    return {first + static_cast<std::int64_t>(c) * rows * n_, rows};
  }

  /// Calls of fewer panels than the longest have levels of one panel at the end, which hand a
  /// triangle on as it is: rows beyond theirs are not there.
  [[nodiscard]] Level level(std::size_t l, std::size_t c) const {
    Level level = calls_[c].whole;
    for (std::size_t below = 0; below < l; ++below)
      level.rows = panels_of(level.rows, levels_.heights[below]) * n_;
    if (l > 0) {
      level.from[0] = level.to[0] = stack(l - 1, c);
      level.split = level.rows;
    }
    if (l + 1 < levels_.heights.size()) level.small = stack(l, c);
    return level;
  }

  void launch(std::size_t l, bool product) {
    Launch launch;
    for (std::size_t c = 0; c < calls_.size(); ++c) launch.batch.of[c] = level(l, c);
    launch.grid = {static_cast<unsigned>(levels_.counts[l]), static_cast<unsigned>(calls_.size())};
    launch.height = static_cast<int>(levels_.heights[l]);
    launch.n = static_cast<int>(n_);
    launch.product = product;
    if (!levels_.fits(launch.height))
      launch.spill = reinterpret_cast<double*>(memory_ + levels_.spill_at);
    launch.bytes = householder_cuda::panel_bytes(launch.height, n_, product);
    const bool single = l == 0 && calls_[0].element == Element::fp32;
    single ? launch.run<float>(queue_.stream()) : launch.run<double>(queue_.stream());
  }

  CudaQueue& queue_;
  std::vector<Call> calls_;
  std::int64_t n_;
  bool product_;
  Levels levels_;  ///< of the longest call
  std::byte* memory_;
};

Rows rows_of(const BlockView& x) { return {x.data, x.ld}; }

/// The call for X, with R or C.
Call call_of(const BlockView& x, const BlockView& small) {
  Level whole;
  whole.from[0] = whole.to[0] = rows_of(x);
  whole.small = rows_of(small);
  whole.rows = whole.split = x.rows;
  return {whole, x.element};
}
/// The call for [A; B], which go to [C; D], with R or E.
Call call_of(const BlockView* from, const BlockView* to, const BlockView& small) {
  Level whole;
  for (int i = 0; i < 2; ++i) {
    whole.from[i] = rows_of(from[i]);
    whole.to[i] = rows_of(to[i]);
  }
  whole.small = rows_of(small);
  whole.rows = 2 * small.rows;
  whole.split = small.rows;
  return {whole, Element::fp64};
}

/// Runs trees of calls of the same columns; call_of_operands makes a call of its operands.
template <class F>
void run_trees(Queue& queue, const KernelCalls& calls, bool product, F&& call_of_operands) {
  for (std::int64_t first = 0; first < calls.count();) {
    const std::int64_t n = calls[first][0].cols;
    if (n > kColumnsMax)
      throw Error(ErrorKind::device, "householder",
                  std::to_string(n) + " columns are more than the " + std::to_string(kColumnsMax) +
                      " that a GPU factors at a time");
    std::vector<Call> of;
    std::int64_t rows = 0;
    std::int64_t bytes = 0;  // of a call of so many rows
    for (; first < calls.count() && calls[first][0].cols == n; ++first) {
      const Call call = call_of_operands(calls[first]);
      if (n > 0 && call.whole.rows > rows) {
        rows = call.whole.rows;
        bytes = Levels(1, rows, n, product).bytes;
      }
      const std::int64_t count = std::ssize(of) + 1;
      if (count > 1 && (count > kBatch || count * bytes > kScratchBytesMax)) break;
      of.push_back(call);
    }
    if (n > 0) Tree(static_cast<CudaQueue&>(queue), std::move(of), n, product).run();
  }
}

}  // namespace

void householder_r_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(householder_r, parameters.variant, 0);
  run_trees(queue, calls, false, [](const BlockView* x) { return call_of(x[1], x[0]); });
}

void householder_q_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(householder_q, parameters.variant, 0);
  run_trees(queue, calls, true, [](const BlockView* x) { return call_of(x[0], x[1]); });
}

void stacked_r_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(stacked_r, parameters.variant, 0);
  run_trees(queue, calls, false, [](const BlockView* x) { return call_of(x + 1, x + 1, x[0]); });
}

void stacked_q_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(stacked_q, parameters.variant, 0);
  run_trees(queue, calls, true, [](const BlockView* x) { return call_of(x + 2, x, x[4]); });
}

}  // namespace strata
