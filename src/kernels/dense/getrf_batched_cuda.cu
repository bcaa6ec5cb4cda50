// getrf of a batch on the GPU.
//
// Method: up to order 32 a warp takes a matrix, up to 16 two of them, a row a lane, in registers
// from one read to one write. Rows stay with their lanes: each keeps account of the place that
// exchanges give to its row. The lane with the pivot puts its row where all lanes read it. Larger
// matrices have a thread block each, which is what factors panels of large matrices
// (lu_panel_block_cuda.hpp), alone. All matrices of one of these kinds are one launch; each passes
// over the others. Those of more than 256 rows are factored one after another, by getrf.
//
// What bounds a small matrix is the way from one pivot to the next: many warps hide each other's.

#include <algorithm>
#include <array>
#include <complex>
#include <utility>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/dense/getrf_batched.hpp"
#include "kernels/dense/lu_panel_block_cuda.hpp"
#include "kernels/dense/lu_status_cuda.hpp"

namespace strata {
namespace {

using namespace lu_cuda;

// ---- a warp, one matrix or two ------------------------------------------------------------------

constexpr int kSmallWarps = 4;  // of a thread block; each has matrices of its own

template <class T, int kOrder>
class SmallMatrix {
 public:
  static constexpr int kMatrices = 32 / kOrder;  // of a warp

  __device__ SmallMatrix(const LuBatchEntry& entry, T* rows, int warp_order)
      : a_(static_cast<T*>(entry.data)),
        ld_(entry.ld),
        n_(static_cast<int>(entry.n)),
        steps_(warp_order),
        rows_(rows),
        place_(own() < n_ ? own() : kNoRow) {}

  __device__ void run(std::int64_t* pivots, PanelStatus* status) {
    double largest = 0;
#pragma unroll
    for (int c = 0; c < kOrder; ++c) {
      x_[c] = own() < n_ && c < n_ ? a_[own() + c * ld_] : T{};
      largest = fmax(largest, noted_size(x_[c]));
    }
    int pivot_of_own = 0;
#pragma unroll 1
    for (int q = 0; q < kOrder; q += kTurn) {
      eliminate_columns(q, pivot_of_own, std::make_integer_sequence<int, kTurn>());
      if constexpr (kOrder > kTurn) turn();
    }
    write(largest, status);
    if (own() < n_) pivots[own()] = pivot_of_own;
  }

 private:
  using Key = PivotKey<T>;
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static __device__ int own() { return lane() % kOrder; }
  static __device__ unsigned group() {
    return kOrder == 32 ? 0xffffffffU : 0xffffU << lane() / kOrder * kOrder;
  }

  template <int... kI>
  __device__ __forceinline__ void eliminate_columns(int q, int& pivot_of_own,
                                                    std::integer_sequence<int, kI...>) {
    ((q + kI < steps_ ? note(q + kI, eliminate<kI>(q), pivot_of_own) : void()), ...);
  }
  __device__ __forceinline__ void note(int j, int pivot, int& pivot_of_own) const {
    if (own() == j) pivot_of_own = pivot;
  }
  /// As PanelBlock does it, so that the code of eight columns is that of all: what bounds code that
  /// is executed once is that it has to be read.
  __device__ __forceinline__ void turn() {
    T first[kTurn];
#pragma unroll
    for (int c = 0; c < kTurn; ++c) first[c] = x_[c];
#pragma unroll
    for (int c = 0; c + kTurn < kOrder; ++c) x_[c] = x_[c + kTurn];
#pragma unroll
    for (int c = 0; c < kTurn; ++c) x_[kOrder - kTurn + c] = first[c];
  }

  /// Column q + i, element i of each row; elements from kOrder − q on are finished. The place of
  /// the pivot.
  template <int i>
  __device__ __forceinline__ int eliminate(int q) {
    const int j = q + i;
    const int live = kOrder - q;
    const bool candidate = place_ != kNoRow && place_ >= j;
    Key key = candidate ? key_of(x_[i]) : Key{0};
    // As LAPACK's search, which begins with the diagonal's: nothing is larger than a NaN.
    if (place_ == j && isnan(size_of(x_[i]))) key = ~Key{0};
    const int best = best_lane(key, candidate ? place_ : kNoRow, group());
    const int pivot = __shfl_sync(group(), place_, best);
    T* row = rows_ + i % 2 * kOrder;
    if (lane() == best) {
#pragma unroll
      for (int g = 0; g < kOrder; g += kTurn) {
        if (g >= live) continue;
#pragma unroll
        for (int c = g; c < g + kTurn; c += kChunk<T>)
          if (i < c + kChunk<T>) store_chunk(row + c, &x_[c]);
      }
    }
    if (j < n_) {  // else no row is left, and `best` is none
      if (place_ == j)
        place_ = pivot;
      else if (lane() == best)
        place_ = j;
    }
    __syncwarp(group());
    const T value = row[i];
    if (place_ == kNoRow || place_ <= j || value == T{}) return pivot;
    const T factor = quotient(x_[i], value);
    x_[i] = factor;
#pragma unroll
    for (int g = 0; g < kOrder; g += kTurn) {
      if (g >= live) continue;
#pragma unroll
      for (int c = g; c < g + kTurn; c += kChunk<T>) {
        if (c + kChunk<T> <= i + 1) continue;
        T u[kChunk<T>];
        load_chunk(u, row + c);
#pragma unroll
        for (int m = 0; m < kChunk<T>; ++m)
          if (c + m > i) subtract_product(x_[c + m], factor, u[m]);
      }
    }
    return pivot;
  }
  static __device__ __forceinline__ T quotient(const T& x, const T& pivot) {
    if constexpr (std::is_same_v<T, double>) {
      if (has_sure_quotient(x) && has_sure_reciprocal(pivot))
        return quotient_by(x, pivot, reciprocal_of(pivot));
      return x / pivot;
    } else {
      return Quotient<T>(pivot)(x);
    }
  }

  __device__ __forceinline__ void write(double largest, PanelStatus* status) {
    double least = INFINITY;
    int zero = kNoRow;
    int bad = kNoRow;
#pragma unroll
    for (int c = 0; c < kOrder; ++c) {
      if (place_ == kNoRow || c >= n_) continue;
      a_[place_ + c * ld_] = x_[c];
      if (!parts_are_finite(x_[c])) bad = min(bad, c);
      if (c >= place_) largest = fmax(largest, noted_size(x_[c]));
      if (c == place_) {
        least = static_cast<double>(size_of(x_[c]));
        if (least == 0) zero = c;
      }
    }
#pragma unroll
    for (int d = kOrder / 2; d > 0; d /= 2) {
      largest = fmax(largest, __shfl_xor_sync(group(), largest, d));
      // A NaN on the diagonal is no number, and the others are compared.
      least = fmin(least, __shfl_xor_sync(group(), least, d));
      zero = min(zero, __shfl_xor_sync(group(), zero, d));
      bad = min(bad, __shfl_xor_sync(group(), bad, d));
    }
    if (own() == 0 && status != nullptr)
      *status = {zero == kNoRow ? -1.0 : static_cast<double>(zero),
                 bad == kNoRow ? -1.0 : static_cast<double>(bad), largest, least};
    __syncwarp();  // before the next matrix takes the memory
  }

  T* a_;
  std::int64_t ld_;
  int n_;
  int steps_;  // of the larger of the warp's matrices
  T* rows_;    // two, in shared memory
  int place_;  // where this lane's row is now
  T x_[kOrder];
};

template <class T, int kOrder>
__global__ void __launch_bounds__(kSmallWarps * 32)
    factor_small(const LuBatchEntry* entries, PanelStatus* statuses, std::int64_t count) {
  constexpr int kMatrices = SmallMatrix<T, kOrder>::kMatrices;
  constexpr int kAtOnce = kSmallWarps * kMatrices;
  __shared__ __align__(16) unsigned char memory[kAtOnce * 2 * kOrder * sizeof(T)];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int place = static_cast<int>(threadIdx.x / 32) * kMatrices + lane / kOrder;
  T* rows = reinterpret_cast<T*>(memory) + place * 2 * kOrder;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kAtOnce;
  // All lanes of a warp go on together.
  for (std::int64_t m = static_cast<std::int64_t>(blockIdx.x) * kAtOnce + place - lane / kOrder;
       m < count; m += step) {
    const std::int64_t mine = m + lane / kOrder;
    LuBatchEntry entry;
    if (mine < count) entry = entries[mine];
    const bool here = mine < count && entry.n > (kOrder == 16 ? -1 : 16) && entry.n <= kOrder;
    if (!here) entry = {};
    const int most = __reduce_max_sync(0xffffffffU, static_cast<int>(entry.n));
    if (!__any_sync(0xffffffffU, here)) continue;
    SmallMatrix<T, kOrder>(entry, rows, most).run(entry.pivots, here ? statuses + mine : nullptr);
  }
}

// ---- a thread block a matrix --------------------------------------------------------------------

template <class T, int kThreads>
struct BlockShape {
  using Group = SoloGroup<kThreads>;
  static constexpr int kWide = 16;
  using Memory = PanelMemory<T, kWide, Group>;
  /// Registers for the elements of kWide columns and for as many results of products.
  static constexpr int kBlocks = (sizeof(T) == 16 ? 256 : 512) / kThreads;  // of a multiprocessor
};

template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads, (BlockShape<T, kThreads>::kBlocks))
    factor_blocks(const LuBatchEntry* entries, PanelStatus* statuses, std::int64_t count) {
  using Shape = BlockShape<T, kThreads>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Findings findings;
  for (std::int64_t m = blockIdx.x; m < count; m += gridDim.x) {
    const LuBatchEntry entry = entries[m];
    if (entry.n <= kThreads / 2 || entry.n > kThreads) continue;
    const int n = static_cast<int>(entry.n);
    Panel<T> panel{};
    panel.a = static_cast<T*>(entry.data);
    panel.ld = entry.ld;
    panel.rows = n;
    panel.cols = n;
    panel.rows_each = (n + 31) / 32 * 32;
    panel.pivots = entry.pivots;
    if (threadIdx.x == 0) findings = no_findings();
    __syncthreads();
    note_columns<kThreads>(panel.a, panel.ld, 0, n, 0, 0, 1, n, false, &findings);
    PanelBlock<T, Shape::kWide, 1, typename Shape::Group>(panel, memory, kThreads).run();
    __syncthreads();
    note_columns<kThreads>(panel.a, panel.ld, 0, n, 0, 0, 1, n, true, &findings);
    __syncthreads();
    if (threadIdx.x == 0) statuses[m] = status_of(findings);
  }
}

// ---- launches -----------------------------------------------------------------------------------

template <class T, int kOrder>
void launch_small(cudaStream_t stream, const LuBatchEntry* entries, PanelStatus* statuses,
                  std::int64_t count) {
  constexpr std::int64_t kBlocksMost = 1 << 20;
  constexpr std::int64_t kAtOnce = kSmallWarps * SmallMatrix<T, kOrder>::kMatrices;
  const auto blocks = static_cast<unsigned>(std::min((count + kAtOnce - 1) / kAtOnce, kBlocksMost));
  factor_small<T, kOrder><<<blocks, kSmallWarps * 32, 0, stream>>>(entries, statuses, count);
  blas::require_launched("getrf_batched: factor_small");
}

template <class T, int kThreads>
void launch_blocks(cudaStream_t stream, const LuBatchEntry* entries, PanelStatus* statuses,
                   std::int64_t count) {
  const auto kernel = factor_blocks<T, kThreads>;
  constexpr int kBytes = BlockShape<T, kThreads>::Memory::bytes(kThreads);
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
               "cudaFuncSetAttribute");
  int resident = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, kBytes),
               "occupancy of getrf_batched");
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>(count, std::int64_t{multiprocessors()} * std::max(resident, 1)));
  kernel<<<blocks, kThreads, kBytes, stream>>>(entries, statuses, count);
  blas::require_launched("getrf_batched: factor_blocks");
}

/// A matrix that is too large for one thread block.
template <class T>
void factor_large(Queue& queue, const LuBatchEntry& entry, PanelStatus* status) {
  const std::array<BlockView, 3> views{
      BlockView{entry.data, entry.n, entry.n, entry.ld, 0, 0},
      BlockView{entry.pivots, entry.n, 1, entry.n, 0, 0},
      BlockView{status, kPanelStatusRows, 1, kPanelStatusRows, 0, 0}};
  getrf_cuda<T>(queue, {views, getrf.operands}, {});
}

/// How a matrix is factored.
enum class Kind : int { upto_16, upto_32, upto_64, upto_128, upto_256, large };
constexpr int kKinds = 6;
Kind kind_of(std::int64_t n) {
  return n <= 16    ? Kind::upto_16
         : n <= 32  ? Kind::upto_32
         : n <= 64  ? Kind::upto_64
         : n <= 128 ? Kind::upto_128
         : n <= 256 ? Kind::upto_256
                    : Kind::large;
}

template <class T>
void launch_kind(Kind kind, cudaStream_t stream, const LuBatchEntry* entries, PanelStatus* statuses,
                 std::int64_t count) {
  switch (kind) {
    case Kind::upto_16: return launch_small<T, 16>(stream, entries, statuses, count);
    case Kind::upto_32: return launch_small<T, 32>(stream, entries, statuses, count);
    case Kind::upto_64: return launch_blocks<T, 64>(stream, entries, statuses, count);
    case Kind::upto_128: return launch_blocks<T, 128>(stream, entries, statuses, count);
    case Kind::upto_256: return launch_blocks<T, 256>(stream, entries, statuses, count);
    case Kind::large: return;  // one after another
  }
}

template <class T>
void factor_batch(Queue& queue, const LuBatchEntry* entries, PanelStatus* statuses,
                  std::int64_t count) {
  auto& cuda = static_cast<CudaQueue&>(queue);
  // Lists in host memory would be read and written across the bus, an entry at a time.
  const auto entry_bytes = static_cast<std::size_t>(count) * sizeof(LuBatchEntry);
  const auto status_bytes = static_cast<std::size_t>(count) * sizeof(PanelStatus);
  auto* scratch =
      static_cast<std::byte*>(cuda.scratch(static_cast<std::int64_t>(entry_bytes + status_bytes)));
  auto* list = reinterpret_cast<LuBatchEntry*>(scratch);
  auto* found = reinterpret_cast<PanelStatus*>(scratch + entry_bytes);
  require_cuda(cudaMemcpyAsync(list, entries, entry_bytes, cudaMemcpyDefault, cuda.stream()),
               "cudaMemcpyAsync");
  // The GPU works while the host looks through the rest.
  std::array<bool, kKinds> seen{};
  for (std::int64_t m = 0; m < count; ++m) {
    const Kind kind = kind_of(entries[m].n);
    bool& before = seen[static_cast<std::size_t>(kind)];
    if (!before) launch_kind<T>(kind, cuda.stream(), list, found, count);
    before = true;
  }
  require_cuda(cudaMemcpyAsync(statuses, found, status_bytes, cudaMemcpyDefault, cuda.stream()),
               "cudaMemcpyAsync");
  if (!seen[static_cast<std::size_t>(Kind::large)]) return;
  for (std::int64_t m = 0; m < count; ++m)
    if (kind_of(entries[m].n) == Kind::large) factor_large<T>(queue, entries[m], statuses + m);
}

}  // namespace

template <class T>
void getrf_batched_cuda(Queue& queue, const KernelCalls& calls,
                        const KernelParameters& parameters) {
  require_variant(getrf_batched, parameters.variant, 0);
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    const BlockView* x = calls[i];
    factor_batch<T>(queue, static_cast<const LuBatchEntry*>(x[1].data),
                    static_cast<PanelStatus*>(x[2].data), x[1].cols);
  }
}

#define STRATA_INSTANTIATE(T) \
  template void getrf_batched_cuda<T>(Queue&, const KernelCalls&, const KernelParameters&);
STRATA_INSTANTIATE(double)
STRATA_INSTANTIATE(float)
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata
