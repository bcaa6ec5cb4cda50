// householder.hpp on a GPU.
//
// Method: a thread block for each panel, which lies in shared memory where it fits and in the
// scratch memory of the queue else; a warp for each column, its threads the 32 lanes of a sum. All
// panels of a level of the tree, of all calls of a task, are one launch. What goes back down the
// tree factors its panel again: that costs less than to keep the reflections.

#include <algorithm>
#include <vector>

#include "device/device_cuda.hpp"
#include "kernels/householder_cuda.hpp"
#include "kernels/operand.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpSize = 32;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kColumnsMax = 512;
constexpr int kBatch = 32;  ///< calls of a launch
constexpr std::int64_t kSharedBytesMax = 160 << 10;

static_assert(kHouseholderLanes == kWarpSize);

/// A level of the tree of one call: x is cut into panels, whose triangles go to, or whose rows of
/// factors come from, rows p·n … of `small`.
struct Level {
  void* x;
  std::int64_t ld, rows;
  double* small;
  std::int64_t small_ld;
};
struct Batch {
  Level of[kBatch];
};

/// The columns of a panel in shared or scratch memory.
struct Panel {
  double* a;
  int ld, rows, n;
  __device__ double* column(int j) const { return a + static_cast<std::int64_t>(j) * ld; }
  __device__ int reflections() const { return rows < n ? rows : n; }
};

__device__ int lane() { return static_cast<int>(threadIdx.x) % kWarpSize; }
__device__ int warp() { return static_cast<int>(threadIdx.x) / kWarpSize; }

/// The lanes of a warp added by halves; every thread has the sum.
__device__ double sum_of_lanes(double x) {
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2)
    x = rounded_sum(x, __shfl_xor_sync(0xffffffffU, x, half));
  return x;
}

/// Σ_{r>j} v_r·x_r.
__device__ double dot_below(const double* v, const double* x, int j, int rows) {
  double sum = 0;
  for (int r = lane(); r < rows; r += kWarpSize) {
    if (r > j) sum = fused(v[r], x[r], sum);
  }
  return sum_of_lanes(sum);
}
/// Rows up to j lose a product with 0, which may turn the sign of a zero.
__device__ void subtract_below(double t, const double* v, double* x, int j, int rows) {
  for (int r = lane(); r < rows; r += kWarpSize) x[r] = fused(-t, r > j ? v[r] : 0.0, x[r]);
}

/// By one warp; returns τ.
__device__ double reflect(const Panel& panel, int j) {
  double* x = panel.column(j);
  double largest = 0;
  for (int r = lane(); r < panel.rows; r += kWarpSize) {
    const double size = fabs(x[r]);
    if (r >= j && size > largest) largest = size;
  }
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2) {
    const double other = __shfl_xor_sync(0xffffffffU, largest, half);
    largest = other > largest ? other : largest;
  }
  const int field = static_cast<int>(__double_as_longlong(largest) >> 52);
  const double power = __longlong_as_double(static_cast<long long>(max(2046 - field, 1)) << 52);
  double sigma = 0;
  for (int r = lane(); r < panel.rows; r += kWarpSize) {
    const double y = rounded_product(x[r], power);
    if (r > j) sigma = fused(y, y, sigma);
  }
  sigma = sum_of_lanes(sigma);
  if (sigma == 0) return 0;
  const double y = rounded_product(x[j], power);
  const double length = __dsqrt_rn(fused(y, y, sigma));
  const double beta = y >= 0 ? -length : length;
  const double divisor = rounded_sum(y, -beta);
  for (int r = lane(); r < panel.rows; r += kWarpSize) {
    if (r > j) x[r] = rounded_quotient(rounded_product(x[r], power), divisor);
  }
  __syncwarp();
  if (lane() == 0) x[j] = rounded_quotient(beta, power);
  return rounded_quotient(rounded_sum(beta, -y), beta);
}

__device__ void factor(const Panel& panel, double* tau) {
  for (int j = 0; j < panel.reflections(); ++j) {
    if (warp() == 0) {
      const double t = reflect(panel, j);
      if (lane() == 0) tau[j] = t;
    }
    __syncthreads();
    const double* v = panel.column(j);
    for (int k = j + 1 + warp(); k < panel.n && tau[j] != 0; k += kWarps) {
      double* x = panel.column(k);
      const double head = x[j];
      const double sum = dot_below(v, x, j, panel.rows);
      __syncwarp();
      const double t = rounded_product(tau[j], rounded_sum(head, sum));
      subtract_below(t, v, x, j, panel.rows);
      __syncwarp();
      if (lane() == 0) x[j] = rounded_sum(x[j], -t);
    }
    __syncthreads();
  }
}

__device__ void form(const Panel& panel, const double* tau) {
  for (int j = panel.reflections() - 1; j >= 0; --j) {
    double* v = panel.column(j);
    for (int k = j + 1 + warp(); k < panel.reflections(); k += kWarps) {
      double* x = panel.column(k);
      double head = 0;
      if (tau[j] != 0) {
        const double t = rounded_product(tau[j], dot_below(v, x, j, panel.rows));
        subtract_below(t, v, x, j, panel.rows);
        head = -t;
      }
      __syncwarp();
      if (lane() == 0) x[j] = head;
    }
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.x); r < panel.rows; r += kThreads) {
      const double below = tau[j] != 0 ? -rounded_product(tau[j], v[r]) : 0;
      v[r] = r > j ? below : r == j ? rounded_sum(1.0, -tau[j]) : 0;
    }
    __syncthreads();
  }
}

extern __shared__ double shared_panel[];

/// The panel of this thread block, loaded; rows = 0 where the call has none.
template <class T>
__device__ Panel load_panel(const Level& level, int height, int n, double* spill) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * height;
  Panel panel{shared_panel, height, 0, n};
  if (spill != nullptr)
    panel.a = spill + (static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * height * n;
  if (first >= level.rows) return panel;
  panel.rows = static_cast<int>(
      min(static_cast<long long>(height), static_cast<long long>(level.rows - first)));
  const T* from = static_cast<const T*>(level.x) + first;
  for (int j = warp(); j < n; j += kWarps) {
    for (int r = lane(); r < panel.rows; r += kWarpSize)
      panel.column(j)[r] = static_cast<double>(from[r + j * level.ld]);
  }
  __syncthreads();
  return panel;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    panel_triangles(Batch batch, int height, int n, double* spill) {
  __shared__ double tau[kColumnsMax];
  const Level& level = batch.of[blockIdx.y];
  const Panel panel = load_panel<T>(level, height, n, spill);
  if (panel.rows == 0) return;
  factor(panel, tau);
  double* r = level.small + static_cast<std::int64_t>(blockIdx.x) * n;
  for (int e = static_cast<int>(threadIdx.x); e < n * n; e += kThreads) {
    const int i = e % n;
    const int j = e / n;
    r[i + j * level.small_ld] = i <= j && i < panel.rows ? panel.column(j)[i] : 0;
  }
}

/// x ← Q·C.
template <class T>
__global__ void __launch_bounds__(kThreads)
    panel_products(Batch batch, int height, int n, double* spill) {
  __shared__ double tau[kColumnsMax];
  const Level& level = batch.of[blockIdx.y];
  const Panel panel = load_panel<T>(level, height, n, spill);
  if (panel.rows == 0) return;
  factor(panel, tau);
  form(panel, tau);
  const double* c = level.small + static_cast<std::int64_t>(blockIdx.x) * n;
  T* to = static_cast<T*>(level.x) + static_cast<std::int64_t>(blockIdx.x) * height;
  for (int j = warp(); j < n; j += kWarps) {
    for (int r = lane(); r < panel.rows; r += kWarpSize) {
      double sum = 0;
      for (int i = 0; i < panel.reflections(); ++i)
        sum = fused(c[i + j * level.small_ld], panel.column(i)[r], sum);
      to[r + j * level.ld] = static_cast<T>(sum);
    }
  }
}

// ---- levels

std::int64_t panels_of(std::int64_t rows, std::int64_t height) {
  return std::max<std::int64_t>((rows + height - 1) / height, 1);
}
std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// One call: what its panels are cut from, and the n × n result of going up, or start of going
/// down.
struct Call {
  void* x;
  std::int64_t ld, rows;
  Element element;
  double* small;
  std::int64_t small_ld;
};

/// Up to kBatch calls with the same columns: their triangles, or their products.
class Tree {
 public:
  /// `offset` bytes of the scratch memory of the queue are taken already.
  Tree(CudaQueue& queue, std::vector<Call> calls, std::int64_t n, std::int64_t offset)
      : queue_(queue), calls_(std::move(calls)), n_(n) {
    std::int64_t rows = 0;
    for (const Call& call : calls_) rows = std::max(rows, call.rows);
    std::int64_t height = householder_panel_rows(n);
    const auto batch = std::ssize(calls_);
    for (;;) {
      heights_.push_back(height);
      counts_.push_back(panels_of(rows, height));
      if (!fits(height))
        spill_ = std::max(spill_, aligned(batch * counts_.back() * height * n * 8));
      if (counts_.back() == 1) break;
      rows = counts_.back() * n;
      stacks_.push_back(offset);
      offset += aligned(batch * rows * n * 8);
      height = householder_stack(n) * n;
    }
    bytes_ = offset + spill_;
    spill_at_ = offset;
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  /// From level 0 up to the triangle of all, or, without `top`, to that of the panels of the level
  /// before the last.
  void up(std::byte* memory, bool top) {
    const std::size_t levels = heights_.size() - (top ? 0 : 1);
    for (std::size_t l = 0; l < levels; ++l) launch(memory, l, false);
  }
  void down(std::byte* memory) {
    for (std::size_t l = heights_.size(); l-- > 0;) launch(memory, l, true);
  }

 private:
  [[nodiscard]] bool fits(std::int64_t height) const {
    return height * n_ * std::int64_t{sizeof(double)} <= kSharedBytesMax;
  }

  /// The stack of triangles of call c above level l.
  [[nodiscard]] double* stack(std::byte* memory, std::size_t l, std::size_t c) const {
    return reinterpret_cast<double*>(memory + stacks_[l]) +
           static_cast<std::int64_t>(c) * counts_[l] * n_ * n_;
  }

  /// Calls of fewer panels than the longest have levels of one panel at the end, which hand a
  /// triangle on as it is: rows beyond theirs are not there.
  [[nodiscard]] Level level(std::byte* memory, std::size_t l, std::size_t c) const {
    const Call& call = calls_[c];
    Level level{call.x, call.ld, call.rows, call.small, call.small_ld};
    std::int64_t rows = call.rows;
    for (std::size_t below = 0; below < l; ++below) rows = panels_of(rows, heights_[below]) * n_;
    if (l > 0) {
      level.x = stack(memory, l - 1, c);
      level.ld = counts_[l - 1] * n_;
      level.rows = rows;
    }
    if (l + 1 < heights_.size()) {
      level.small = stack(memory, l, c);
      level.small_ld = counts_[l] * n_;
    }
    return level;
  }

  void launch(std::byte* memory, std::size_t l, bool product) {
    Batch batch{};
    for (std::size_t c = 0; c < calls_.size(); ++c) batch.of[c] = level(memory, l, c);
    const bool single = l == 0 && calls_[0].element == Element::fp32;
    if (single) {
      launch_kernel(product ? panel_products<float> : panel_triangles<float>, batch, memory, l);
    } else {
      launch_kernel(product ? panel_products<double> : panel_triangles<double>, batch, memory, l);
    }
  }

  template <class Kernel>
  void launch_kernel(Kernel kernel, const Batch& batch, std::byte* memory, std::size_t l) {
    const bool shared = fits(heights_[l]);
    const auto bytes =
        static_cast<std::size_t>(shared ? heights_[l] * n_ * std::int64_t{sizeof(double)} : 0);
    require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(kSharedBytesMax)),
                 "householder");
    const dim3 grid(static_cast<unsigned>(counts_[l]), static_cast<unsigned>(calls_.size()));
    kernel<<<grid, kThreads, bytes, queue_.stream()>>>(
        batch, static_cast<int>(heights_[l]), static_cast<int>(n_),
        shared ? nullptr : reinterpret_cast<double*>(memory + spill_at_));
    require_cuda(cudaGetLastError(), "householder");
  }

  CudaQueue& queue_;
  std::vector<Call> calls_;
  std::int64_t n_;
  std::vector<std::int64_t> heights_;
  std::vector<std::int64_t> counts_;  ///< panels of the longest call
  std::vector<std::int64_t> stacks_;  ///< bytes from the start of the scratch memory
  std::int64_t spill_ = 0;
  std::int64_t spill_at_ = 0;
  std::int64_t bytes_ = 0;
};

void copy_block(cudaStream_t stream, double* to, std::int64_t to_ld, const double* from,
                std::int64_t from_ld, std::int64_t rows, std::int64_t cols) {
  constexpr auto kBytes = std::int64_t{sizeof(double)};
  require_cuda(cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_ld * kBytes), from,
                                 static_cast<std::size_t>(from_ld * kBytes),
                                 static_cast<std::size_t>(rows * kBytes),
                                 static_cast<std::size_t>(cols), cudaMemcpyDeviceToDevice, stream),
               "householder");
}

/// Calls f(first, count) for runs of calls of the same columns, kBatch at most.
template <class F>
void in_batches(const KernelCalls& calls, int of_operand, F&& f) {
  for (std::int64_t first = 0; first < calls.count();) {
    const std::int64_t n = calls[first][of_operand].cols;
    std::int64_t count = 1;
    while (count < kBatch && first + count < calls.count() &&
           calls[first + count][of_operand].cols == n)
      ++count;
    if (n > 0) f(first, count, n);
    first += count;
  }
}

void require_columns(std::int64_t n) {
  if (n > kColumnsMax)
    throw Error(ErrorKind::device, "householder",
                std::to_string(n) + " columns are more than the " + std::to_string(kColumnsMax) +
                    " that a GPU factors at a time");
}

double* doubles(const BlockView& x) { return static_cast<double*>(x.data); }

/// Of R, X or X, C: one tree for a batch.
Tree tree_of(CudaQueue& queue, const KernelCalls& calls, std::int64_t first, std::int64_t count,
             int x, int small) {
  std::vector<Call> of;
  for (std::int64_t c = first; c < first + count; ++c) {
    const BlockView& view = calls[c][x];
    const BlockView& block = calls[c][small];
    of.push_back({view.data, view.ld, view.rows, view.element, doubles(block), block.ld});
  }
  return {queue, std::move(of), calls[first][x].cols, 0};
}

/// Of two triangles that are put one on the other at the start of the scratch memory.
Tree tree_of_stacked(CudaQueue& queue, const KernelCalls& calls, std::int64_t first,
                     std::int64_t count, int small, std::int64_t n, double* stack) {
  std::vector<Call> of;
  for (std::int64_t c = first; c < first + count; ++c) {
    const BlockView& block = calls[c][small];
    of.push_back(
        {stack + (c - first) * 2 * n * n, 2 * n, 2 * n, Element::fp64, doubles(block), block.ld});
  }
  return {queue, std::move(of), n, aligned(count * 2 * n * n * std::int64_t{sizeof(double)})};
}

/// Puts the triangles together, and calls f(tree, stacks, memory).
template <class F>
void with_stacks(CudaQueue& queue, const KernelCalls& calls, std::int64_t first, std::int64_t count,
                 std::int64_t n, int triangles, int small, F&& f) {
  const Tree sized = tree_of_stacked(queue, calls, first, count, small, n, nullptr);
  auto* memory = static_cast<std::byte*>(queue.scratch(sized.bytes()));
  auto* stack = reinterpret_cast<double*>(memory);
  for (std::int64_t c = 0; c < count; ++c) {
    for (int i = 0; i < 2; ++i) {
      const BlockView& r = calls[first + c][triangles + i];
      copy_block(queue.stream(), stack + c * 2 * n * n + i * n, 2 * n, doubles(r), r.ld, n, n);
    }
  }
  Tree tree = tree_of_stacked(queue, calls, first, count, small, n, stack);
  f(tree, stack, memory);
}

}  // namespace

void householder_r_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(householder_r, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  in_batches(calls, 1, [&](std::int64_t first, std::int64_t count, std::int64_t n) {
    require_columns(n);
    Tree tree = tree_of(cuda, calls, first, count, 1, 0);
    tree.up(static_cast<std::byte*>(cuda.scratch(tree.bytes())), true);
  });
}

void householder_q_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(householder_q, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  in_batches(calls, 0, [&](std::int64_t first, std::int64_t count, std::int64_t n) {
    require_columns(n);
    Tree tree = tree_of(cuda, calls, first, count, 0, 1);
    auto* memory = static_cast<std::byte*>(cuda.scratch(tree.bytes()));
    tree.up(memory, false);
    tree.down(memory);
  });
}

void stacked_r_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(stacked_r, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  in_batches(calls, 0, [&](std::int64_t first, std::int64_t count, std::int64_t n) {
    require_columns(n);
    with_stacks(cuda, calls, first, count, n, 1, 0,
                [](Tree& tree, double*, std::byte* memory) { tree.up(memory, true); });
  });
}

void stacked_q_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(stacked_q, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  in_batches(calls, 0, [&](std::int64_t first, std::int64_t count, std::int64_t n) {
    require_columns(n);
    const auto product = [&](Tree& tree, const double* stack, std::byte* memory) {
      tree.up(memory, false);
      tree.down(memory);
      for (std::int64_t c = 0; c < count; ++c) {
        for (int i = 0; i < 2; ++i) {
          const BlockView& to = calls[first + c][i];
          copy_block(cuda.stream(), doubles(to), to.ld, stack + c * 2 * n * n + i * n, 2 * n, n, n);
        }
      }
    };
    with_stacks(cuda, calls, first, count, n, 2, 4, product);
  });
}

}  // namespace strata
