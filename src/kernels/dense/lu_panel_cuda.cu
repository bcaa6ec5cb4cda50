// Panels of LU in one launch: see lu_panel_cuda.hpp.
//
// Method: thread blocks hold the rows of the panel in registers, kWide columns at a time, and go
// through these groups of columns from left to right. A group is first brought up to date with all
// columns on its left: L is read once for each group, and nothing is written but what is finished.
// The rows of U above it are solved for by each block in its shared memory. Each thread takes their
// products off its rows. Then columns are eliminated one after another. The search for a pivot is a
// maximum over threads, warps and blocks. Each block sends the best row that it has, with all
// elements of the group, to all others: so a column takes one exchange between blocks, after which
// every block knows the pivot, its row, and the row that it changes places with. The elements of a
// thread's row turn by one place from column to column, so that the code of a column is the same
// for all. At last exchanges are done in the other columns of the panel.
//
// Blocks exchange rows either in a cluster, through each other's shared memory, up to 16 blocks, or
// through global memory, if the panel is too tall for that.
//
// Sources: LU by rows held in registers, and a panel in one launch: Haidar, Abdelfattah, Tomov,
// Dongarra, "High-performance Cholesky factorization for GPU-only execution" (2017), of Cholesky's
// panel; partial pivoting as LAPACK's getf2.

#include "kernels/dense/lu_panel_cuda.hpp"

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/dense/lu_exchange_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"
#include "strata/error.hpp"

namespace strata::lu_cuda {
namespace {

/// What all threads of a block share.
template <class T, int kWide>
struct Shared {
  T* u;         // rows of U above the group, row_stride<T>(kWide) from row to row
  T* triangle;  // kSolveRows²
  unsigned char* stage[2];
  unsigned char* slots;
  PivotKey<T>* keys;  // of warps
  int* rows;
  int* pivots;
  T* winner;  // without clusters: the pivot's row, and the one that it changes places with
  T* old;
  int* winner_row;

  static __host__ __device__ constexpr int bytes(int cols) {
    return cols * row_stride<T>(kWide) * static_cast<int>(sizeof(T)) +
           kSolveRows * kSolveRows * static_cast<int>(sizeof(T)) + 2 * kSlotBytes<T, kWide> +
           2 * (kClusterMost + 1) * kSlotBytes<T, kWide> + kWarps * 8 + kWarps * 4 +
           static_cast<int>(kPanelColumns) * 4 + 2 * kWide * static_cast<int>(sizeof(T)) + 16;
  }
  __device__ Shared(unsigned char* memory, int cols) {
    const auto take = [&](int size) {
      unsigned char* here = memory;
      memory += size;
      return here;
    };
    constexpr int kSize = static_cast<int>(sizeof(T));
    u = reinterpret_cast<T*>(take(cols * row_stride<T>(kWide) * kSize));
    triangle = reinterpret_cast<T*>(take(kSolveRows * kSolveRows * kSize));
    stage[0] = take(kSlotBytes<T, kWide>);
    stage[1] = take(kSlotBytes<T, kWide>);
    slots = take(2 * (kClusterMost + 1) * kSlotBytes<T, kWide>);
    winner = reinterpret_cast<T*>(take(kWide * kSize));
    old = reinterpret_cast<T*>(take(kWide * kSize));
    keys = reinterpret_cast<PivotKey<T>*>(take(kWarps * 8));
    rows = reinterpret_cast<int*>(take(kWarps * 4));
    pivots = reinterpret_cast<int*>(take(static_cast<int>(kPanelColumns) * 4));
    winner_row = reinterpret_cast<int*>(take(16));
  }
};

/// Rows of a thread: kThreads apart.
template <class T, int kWide, int kRows, class Group>
class PanelBlock {
 public:
  __device__ PanelBlock(const Panel<T>& panel, unsigned char* memory)
      : p(panel), shared(memory, panel.cols), group(panel, shared.slots), rank(group.rank()) {}

  __device__ void run() {
    if constexpr (Group::kShared) group.barrier();  // all blocks run before one writes to another
    for (int c0 = 0; c0 < p.cols; c0 += kWide) {
      const int width = min(kWide, p.cols - c0);
      load(c0, width);
      if (c0 > 0) update(c0, width);
      for (int j = 0; j < width; ++j) eliminate(c0, j);
      for (int j = width; j < kWide; ++j) turn();
      store(c0, width);
      exchange_others(c0, width);
      if (c0 + width < p.cols) group.barrier();
    }
    if (rank == 0)
      for (int j = thread(); j < p.cols; j += kThreads) p.pivots[j] = p.base + shared.pivots[j];
  }

 private:
  static constexpr int kStride = row_stride<T>(kWide);
  static constexpr int kSlot = kSlotBytes<T, kWide>;

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static __device__ int warp() { return static_cast<int>(threadIdx.x / 32); }
  __device__ int row_of(int r) const { return (rank * kRows + r) * kThreads + thread(); }
  __device__ T* at(int row, int col) const { return p.a + row + col * p.ld; }

  __device__ __forceinline__ void load(int c0, int width) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = row_of(r);
      const bool here = row >= c0 && row < p.rows;
#pragma unroll
      for (int c = 0; c < kWide; ++c)
        a[r][c] = here && c < width ? load_global(at(row, c0 + c)) : T{};
    }
  }

  /// Takes off the products of the columns on the left.
  __device__ __forceinline__ void update(int c0, int width) {
    for (int k = thread(); k < c0 * kWide; k += kThreads) {
      const int row = k % c0;
      const int col = k / c0;
      shared.u[row * kStride + col] = col < width ? load_global(at(row, c0 + col)) : T{};
    }
    solve_in_shared<T, kWide, kThreads>(p.a, p.ld, c0, shared.u, shared.triangle);
    const T* l[kRows];
    bool here[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      here[r] = row_of(r) >= c0 && row_of(r) < p.rows;
      l[r] = at(here[r] ? row_of(r) : c0, 0);
    }
    constexpr int kAhead = 4;  // columns of L that are on their way at once
    T next[kRows][kAhead];
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int i = 0; i < kAhead; ++i) next[r][i] = load_global(l[r] + i * p.ld);
    // c0 is a multiple of kWide, and so of kAhead.
    for (int k = 0; k < c0; k += kAhead) {
      T now[kRows][kAhead];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
          now[r][i] = next[r][i];
          if (k + kAhead < c0) next[r][i] = load_global(l[r] + (k + kAhead + i) * p.ld);
        }
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const T* u = shared.u + (k + i) * kStride;
#pragma unroll
        for (int c = 0; c < kWide; c += kChunk<T>) {
          T v[kChunk<T>];
          load_chunk(v, u + c);
#pragma unroll
          for (int m = 0; m < kChunk<T>; ++m)
#pragma unroll
            for (int r = 0; r < kRows; ++r) subtract_product(a[r][c + m], now[r][i], v[m]);
        }
      }
    }
    // Rows that are not there have taken part, without harm: they are never read.
  }

  /// The elements of the rows move to the left by one place, the first to the end.
  __device__ __forceinline__ void turn() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const T first = a[r][0];
#pragma unroll
      for (int c = 0; c + 1 < kWide; ++c) a[r][c] = a[r][c + 1];
      a[r][kWide - 1] = first;
    }
  }

  /// By the thread of row `row`: all of its elements.
  __device__ __forceinline__ void stage_row(unsigned char* stage, int row, PivotKey<T> key) {
    *reinterpret_cast<Candidate*>(stage) = {key, row};
    T* values = reinterpret_cast<T*>(stage + 16);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row_of(r) != row) continue;
#pragma unroll
      for (int c = 0; c < kWide; c += kChunk<T>) store_chunk(values + c, &a[r][c]);
    }
  }
  __device__ __forceinline__ void take_row(int row, const T* values) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row_of(r) != row) continue;
#pragma unroll
      for (int c = 0; c < kWide; c += kChunk<T>) load_chunk(&a[r][c], values + c);
    }
  }

  /// Column j of the group, which is the first element of each row now.
  __device__ __forceinline__ void eliminate(int c0, int j) {
    const int diagonal = c0 + j;
    // The best row of this block.
    PivotKey<T> key = 0;
    int best = kNoRow;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = row_of(r);
      if (row < diagonal || row >= p.rows) continue;
      PivotKey<T> mine = key_of(a[r][0]);
      // As LAPACK's search, which begins with the diagonal's: nothing is larger than a NaN.
      if (row == diagonal && isnan(size_of(a[r][0]))) mine = ~PivotKey<T>{0};
      if (best == kNoRow || mine > key) {
        key = mine;
        best = row;
      }
    }
    best_of_warp(key, best);
    if (lane() == 0) {
      shared.keys[warp()] = key;
      shared.rows[warp()] = best;
    }
    __syncthreads();
    key = lane() < kWarps ? shared.keys[lane()] : 0;
    best = lane() < kWarps ? shared.rows[lane()] : kNoRow;
    best_of_warp(key, best);
    // To all blocks: the candidate, by the warp that has it; the row on the diagonal, by its own.
    const int parity = (j & 1) * (group.size() + 1);
    const int owner = best == kNoRow ? 0 : best % kThreads;
    if (warp() == owner / 32) {
      if (thread() == owner) stage_row(shared.stage[0], best, key);
      __syncwarp();
      group.template send<kSlot>(parity + rank, shared.stage[0]);
    }
    if (rank == 0 && warp() == diagonal / 32) {
      if (thread() == diagonal) stage_row(shared.stage[1], diagonal, 0);
      __syncwarp();
      group.template send<kSlot>(parity + group.size(), shared.stage[1]);
    }
    group.barrier();
    const T* pivot_row = nullptr;
    const T* old_row = nullptr;
    int pivot = 0;
    if constexpr (Group::kShared) {
      const auto* mine = reinterpret_cast<const Candidate*>(
          group.slots + (parity + (lane() < group.size() ? lane() : 0)) * kSlot);
      key = static_cast<PivotKey<T>>(mine->key);
      pivot = mine->row;
      best_of_warp(key, pivot);
      pivot_row = row_in_slot(parity + pivot / (kThreads * kRows));
      old_row = row_in_slot(parity + group.size());
    } else {
      find_winner(parity);
      pivot = *shared.winner_row;
      pivot_row = shared.winner;
      old_row = shared.old;
    }
    if (thread() == 0) shared.pivots[diagonal] = pivot;
    if (pivot != diagonal) {
      take_row(pivot, old_row);
      take_row(diagonal, pivot_row);
    }
    take_off(diagonal, kWide - j, pivot_row);
  }
  __device__ const T* row_in_slot(int slot) const {
    return reinterpret_cast<const T*>(group.slots + slot * kSlot + 16);
  }

  /// Without clusters: the first warp looks at what the blocks sent.
  __device__ __forceinline__ void find_winner(int parity) {
    if (warp() == 0) {
      PivotKey<T> key = 0;
      int row = kNoRow;
      for (int b = lane(); b < group.size(); b += 32) {
        const auto* slot = reinterpret_cast<const Candidate*>(group.slots + (parity + b) * kSlot);
        const auto theirs = static_cast<PivotKey<T>>(__ldcg(&slot->key));
        const int their_row = __ldcg(&slot->row);
        if (row == kNoRow || theirs > key) {  // rows grow with the blocks
          key = theirs;
          row = their_row;
        }
      }
      best_of_warp(key, row);
      if (lane() == 0) *shared.winner_row = row;
      const T* winner = row_in_slot(parity + row / (kThreads * kRows));
      const T* old = row_in_slot(parity + group.size());
      for (int c = lane(); c < kWide; c += 32) {
        shared.winner[c] = load_global(winner + c);
        shared.old[c] = load_global(old + c);
      }
    }
    __syncthreads();
  }

  /// Rows below the diagonal: their first element becomes that of L, which times the pivot's row is
  /// taken off the `left` − 1 behind it; all move to the left by one place.
  __device__ __forceinline__ void take_off(int diagonal, int left, const T* pivot_row) {
    const T pivot = pivot_row[0];
    const Quotient<T> quotient(pivot);
    const bool divides = !(pivot == T{});
    bool below[kRows];
    T factor[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      below[r] = row_of(r) > diagonal && divides;
      factor[r] = below[r] ? quotient(a[r][0]) : a[r][0];
    }
    constexpr int kGroup = 8;
#pragma unroll
    for (int g = 0; g < kWide; g += kGroup) {
      if (g < left) {
        T u[kGroup];
#pragma unroll
        for (int c = 0; c < kGroup; c += kChunk<T>) load_chunk(u + c, pivot_row + g + c);
#pragma unroll
        for (int c = g == 0 ? 1 : 0; c < kGroup; ++c) {
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            T value = a[r][g + c];
            if (below[r] && g + c < left) subtract_product(value, factor[r], u[c]);
            a[r][g + c - 1] = value;
          }
        }
      } else {
#pragma unroll
        for (int c = 0; c < kGroup; ++c)
#pragma unroll
          for (int r = 0; r < kRows; ++r) a[r][g + c - 1] = a[r][g + c];
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) a[r][kWide - 1] = factor[r];
  }

  __device__ __forceinline__ void store(int c0, int width) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = row_of(r);
      if (row < c0 || row >= p.rows) continue;
#pragma unroll
      for (int c = 0; c < kWide; ++c)
        if (c < width) *at(row, c0 + c) = a[r][c];
    }
    if (rank != 0) return;  // all have read these rows before the first exchange of the group
    for (int k = thread(); k < c0 * width; k += kThreads)
      *at(k % c0, c0 + k / c0) = shared.u[k % c0 * kStride + k / c0];
  }

  /// The exchanges of the group in the other columns of the panel, a warp for each: lane j has the
  /// j-th. Where a row ends up follows from the pivots; then it is read, and then written.
  __device__ __forceinline__ void exchange_others(int c0, int width) {
    constexpr unsigned kAll = 0xffffffffU;
    __syncthreads();  // of the last pivot
    const int mine = lane() < width ? shared.pivots[c0 + lane()] : kNoRow;
    int top = c0 + lane();  // what row c0 + lane ends up with
    int far = -1;           // what row `mine` ends up with, if it is below the group's
    bool last = true;       // of the exchanges with that row
    for (int j = 0; j < width; ++j) {
      const int row = __shfl_sync(kAll, mine, j);
      const int current = __shfl_sync(kAll, top, j);
      if (row < c0 + width) {
        const int other = __shfl_sync(kAll, top, row - c0);
        if (lane() == row - c0) top = current;
        if (lane() == j) top = other;
      } else {
        const unsigned before = __ballot_sync(kAll, mine == row && lane() < j);
        const int previous = 31 - __clz(static_cast<int>(before));
        const int held = __shfl_sync(kAll, far, before == 0 ? 0 : previous);
        if (lane() == j) {
          top = before == 0 ? row : held;
          far = current;
        }
        if (before != 0 && lane() == previous) last = false;
      }
    }
    const bool writes_far = far >= 0 && last && lane() < width;
    const int others = p.cols - width;
    for (int k = rank * kWarps + warp(); k < others; k += group.size() * kWarps) {
      const int col = k < c0 ? k : k + width;
      T for_top{};
      T for_far{};
      if (lane() < width) for_top = load_global(at(top, col));
      if (writes_far) for_far = load_global(at(far, col));
      __syncwarp();
      if (lane() < width) *at(c0 + lane(), col) = for_top;
      if (writes_far) *at(mine, col) = for_far;
    }
  }

  const Panel<T>& p;
  Shared<T, kWide> shared;
  Group group;
  int rank;
  T a[kRows][kWide];
};

template <class T, int kWide, int kRows, class Group>
__global__ void __launch_bounds__(kThreads, 1) run_panel(const __grid_constant__ Panel<T> panel) {
  extern __shared__ __align__(16) unsigned char memory[];
  PanelBlock<T, kWide, kRows, Group>(panel, memory).run();
}

// ---- launches -----------------------------------------------------------------------------------

/// Columns and rows of a thread: kThreadBytes, 128 registers of elements.
constexpr int kThreadBytes = 512;

template <class T>
struct Shapes {
  static constexpr int kSize = static_cast<int>(sizeof(T));
  static constexpr int kWideMost = kSize == 16 ? 16 : 32;
  static constexpr int kRowsLeast = kThreadBytes / kSize / kWideMost;
};

template <class T, int kWide, int kRows, class Group>
void launch(const CudaStream& stream, const Panel<T>& panel, int blocks) {
  const auto kernel = run_panel<T, kWide, kRows, Group>;
  const int bytes = Shared<T, kWide>::bytes(panel.cols);
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    Shared<T, kWide>::bytes(static_cast<int>(kPanelColumns))),
               "cudaFuncSetAttribute");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream.get();
  cudaLaunchAttribute attribute{};
  if constexpr (Group::kShared) {
    require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                 "cudaFuncSetAttribute");
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
  } else {
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  config.attrs = &attribute;
  config.numAttrs = 1;
  require_cuda(cudaLaunchKernelEx(&config, kernel, panel), "the panel's launch");
  blas::require_launched("lu panel");
}

/// The least cluster that holds the rows: a power of two.
int cluster_of(std::int64_t rows, int rows_each) {
  int blocks = 1;
  while (static_cast<std::int64_t>(blocks) * kThreads * rows_each < rows) blocks *= 2;
  return blocks;
}

constexpr std::int64_t kSlotsBytes =
    2 * static_cast<std::int64_t>(kBlocksMost + 1) * kSlotBytesMost;

}  // namespace

std::int64_t panel_scratch_bytes() {
  return kSlotsBytes + kBlocksMost * static_cast<std::int64_t>(sizeof(int));
}

template <class T>
std::int64_t rows_max() {
  constexpr int kRows = kThreadBytes / static_cast<int>(sizeof(T)) / 8;  // eight columns at a time
  return static_cast<std::int64_t>(std::min(multiprocessors(), kBlocksMost)) * kThreads * kRows;
}

template <class T>
void factor_panel(const CudaStream& stream, MatrixView<T> a, std::int64_t* pivots,
                  std::int64_t base, void* scratch, int number) {
  constexpr int kSize = static_cast<int>(sizeof(T));
  constexpr int kWide = Shapes<T>::kWideMost;
  constexpr int kRows = Shapes<T>::kRowsLeast;
  if (a.cols == 0 || a.rows == 0) return;
  auto* slots = static_cast<unsigned char*>(scratch);
  constexpr int kEpochs = 1024;  // more than the barriers of a panel
  const Panel<T> panel{a.data,
                       a.ld,
                       static_cast<int>(a.rows),
                       static_cast<int>(a.cols),
                       pivots,
                       base,
                       slots,
                       reinterpret_cast<int*>(slots + kSlotsBytes),
                       number * kEpochs};
  const int processors = std::min(multiprocessors(), kBlocksMost);
  const auto blocks_of = [&](int rows_each) {
    return static_cast<int>((a.rows + kThreads * rows_each - 1) / (kThreads * rows_each));
  };
  if (a.rows <= std::int64_t{kClusterMost} * kThreads * kRows)
    return launch<T, kWide, kRows, ClusterGroup>(stream, panel, cluster_of(a.rows, kRows));
  if constexpr (kSize == 8 || kSize == 16) {
    if (a.rows <= std::int64_t{kClusterMost} * kThreads * kRows * 2)
      return launch<T, kWide / 2, kRows * 2, ClusterGroup>(stream, panel,
                                                           cluster_of(a.rows, kRows * 2));
  }
  if (constexpr int kHalfRows = kRows * 2; kWide > 8 && blocks_of(kHalfRows) <= processors)
    return launch<T, kWide / 2, kHalfRows, GridGroup>(stream, panel, blocks_of(kHalfRows));
  constexpr int kMostRows = kThreadBytes / kSize / 8;
  if (blocks_of(kMostRows) <= processors)
    return launch<T, 8, kMostRows, GridGroup>(stream, panel, blocks_of(kMostRows));
  throw Error(
      ErrorKind::device, "getrf",
      "a panel of " + std::to_string(a.rows) + " rows is more than this GPU's registers hold");
}

#define STRATA_INSTANTIATE(T)                                                                  \
  template std::int64_t rows_max<T>();                                                         \
  template void factor_panel<T>(const CudaStream&, MatrixView<T>, std::int64_t*, std::int64_t, \
                                void*, int);
STRATA_INSTANTIATE(double)
STRATA_INSTANTIATE(float)
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::lu_cuda
