// sweep_branch on the GPU.
//
// Method: as a factorization, by the jobs of a program. Blocks of one warp solve with the tiny and
// the small fronts, a row or two a lane. Larger fronts go by rows of tiles forward, and by columns
// of tiles backward, each by one block. It takes the tiles to the left, or below, as soon as what
// they are multiplied with is there, and solves with the tile on the diagonal by the inverses of
// its blocks of 8 × 8. One right-hand side: front_sweep_one_cuda.hpp. Children are pulled in their
// order: equal inputs give equal bits. Calls with one structure that lie evenly are carried out
// together, as by front_branch_cuda.cu.

#include <algorithm>
#include <type_traits>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/even_calls.hpp"
#include "kernels/backend/operand.hpp"
#include "kernels/fronts/front_cuda.hpp"
#include "kernels/fronts/front_sweep_cuda.hpp"
#include "kernels/fronts/front_sweep_one_cuda.hpp"
#include "strata/error.hpp"

namespace strata {
namespace front {
namespace {

constexpr int kTile = kFrontTile;
constexpr int kPlainThreads = 256;

template <class T, int m>
__global__ void __launch_bounds__(kPlainThreads) clear_sweep(Branch<T> branch) {
  const int first = static_cast<int>(blockIdx.x * kPlainThreads + threadIdx.x);
  const int step = static_cast<int>(gridDim.x) * kPlainThreads;
  const int count = branch.program().fronts * static_cast<int>(kSolveFlags);
  int* flags = branch.sweep_flags(static_cast<int>(blockIdx.y));
  for (int n = first; n < count; n += step) flags[n] = 0;
  if constexpr (m == 1) {
    T* messages = branch.messages(static_cast<int>(blockIdx.y));
    for (int n = first; n < branch.program().columns; n += step)
      messages[n] = Messages<T>::number(Messages<T>::kNothing);
  }
  if (first < 3) branch.progress(static_cast<int>(blockIdx.y))->tickets[first] = 0;
}

/// The first two parts of the list, or backward their jobs and fronts from the last to the first.
template <class T, int m, bool kForward, bool kMany>
__global__ void __launch_bounds__(kWarp) sweep_small(const __grid_constant__ Sweep<T, m> sweep) {
  __shared__ T buffer[kSmallFront * m];
  const BranchProgram& program = sweep.branch.program();
  const FrontJob* jobs = sweep.branch.jobs();
  const int calls = sweep.branch.calls;
  const int jobs_each = program.tiny_jobs + program.small_jobs;
  const int count = jobs_each * calls;
  Fronts<T, m> fronts(sweep);
  const SmallSweep<T, m> small{fronts, buffer};
  for (;;) {
    int drawn = 0;
    if (lane() == 0) drawn = atomicAdd(sweep.branch.progress()->tickets, 1);
    drawn = __shfl_sync(0xffffffffU, drawn, 0);
    if (drawn >= count) return;
    const int number = kMany ? drawn / calls : drawn;
    if constexpr (kMany) fronts = Fronts<T, m>(sweep, drawn % calls);
    const FrontJob job = jobs[kForward ? number : jobs_each - 1 - number];
    if constexpr (kForward) {
      const int expected = fronts.records[job.front].expected_rows;
      if (expected > 0) (void)await(fronts.signals(job.front), expected);
      for (int f = job.front; f <= job.j; ++f) {
        const FrontRecord front = fronts.records[f];
        small.go_forward(front);
        if (front.parent > job.j && lane() == 0) signal(fronts.signals(front.parent));
        __syncwarp();
      }
    } else {
      for (int f = job.j; f >= job.front; --f) {
        const FrontRecord front = fronts.records[f];
        if (front.parent > job.j) {
          const FrontRecord& parent = fronts.records[front.parent];
          (void)await(fronts.backward(front.parent), fronts.all_backward(parent));
        }
        small.go_backward(front);
        if (lane() == 0) publish(fronts.backward(f), 1);
        __syncwarp();
      }
    }
  }
}

/// Tiles of larger fronts with m right-hand sides: thread t has row t % 64 of a tile.
template <class T, int m>
class TileSweep {
 public:
  static constexpr int kThreads = 128;
  static constexpr int kBlocks = 2;  ///< on a multiprocessor
  /// In shared memory.
  struct Memory {
    T tile[kTile * (kTile + 1)];      ///< on its way through
    T diagonal[kTile * (kTile + 1)];  ///< L(j, j), and its inverses
    T inverses[kInverses];
    T x[kTile * m];  ///< what a tile is multiplied with
    T b[kTile * m];  ///< the right-hand side
    T half[kTile * m];
  };

  __device__ TileSweep(const Fronts<T, m>& fronts, Memory& memory)
      : fronts_(fronts), memory_(memory) {}

  /// Row i of tiles.
  __device__ void go_forward(int f, const FrontRecord& front, int i) {
    const FrontTiles tiles{front.width, front.rows};
    const int begin = tiles.begin(i);
    const int rows = tiles.begin(i + 1) - begin;
    const bool in_columns = i < tiles.across();
    if (in_columns) load_diagonal(front, i, rows);
    if (front.expected_rows > 0 && warp() == 0)
      (void)await(fronts_.signals(f), front.expected_rows);
    __syncthreads();
    start_forward(front, i, begin, rows);
    const int row = thread() % kTile;
    T b[m];  // of those who make the first half of the sums
#pragma unroll
    for (int r = 0; r < m; ++r) b[r] = memory_.b[row * m + r];
    T sum[m] = {};
    int ready = 0;
    const int first = thread() / kTile * kHalf;  // of this thread's columns
    const int count = in_columns ? i : tiles.across();
    for (int k = 0; k < count; ++k) {
      const int columns = min(kTile, front.width - k * kTile);
      const T* from = fronts_.panels + front.panel + begin + row +
                      static_cast<std::int64_t>(k * kTile + first) * front.ld;
      T l[kHalf];
#pragma unroll
      for (int c = 0; c < kHalf; ++c)
        l[c] = row < rows && first + c < columns ? __ldcg(from + std::int64_t{c} * front.ld) : T{0};
      if (ready <= k) ready = await(fronts_.forward(f), k + 1);
      __syncthreads();  // the last tile's x has been used
      if (k > 0) subtract_halves(b, sum, row);
      const T* x = fronts_.x + static_cast<std::int64_t>(front.column + k * kTile) * m;
      for (int n = thread(); n < kTile * m; n += kThreads)
        memory_.x[n] = n < columns * m ? __ldcg(x + n) : T{0};
      __syncthreads();
#pragma unroll
      for (int c = 0; c < kHalf; ++c) {
#pragma unroll
        for (int r = 0; r < m; ++r) sum[r] += l[c] * memory_.x[(first + c) * m + r];
      }
      tell_half(sum, row);
    }
    __syncthreads();
    if (count > 0) {
      subtract_halves(b, sum, row);
      if (thread() < kTile) {
#pragma unroll
        for (int r = 0; r < m; ++r) memory_.b[row * m + r] = b[r];
      }
      __syncthreads();
    }
    if (in_columns) {
      solve_forward(rows);
      put(fronts_.x + static_cast<std::int64_t>(front.column + begin) * m, rows);
      if (thread() == 0) publish(fronts_.forward(f), i + 1);
    } else {
      put(fronts_.below + (front.rows_before + begin - front.width) * m, rows);
      if (front.parent >= 0 && thread() == 0) signal(fronts_.signals(front.parent));
    }
  }

  /// Column j of tiles.
  __device__ void go_backward(int f, const FrontRecord& front, int j) {
    const FrontTiles tiles{front.width, front.rows, front.later};
    const int across = tiles.across();
    const int columns = tiles.begin(j + 1) - tiles.begin(j);
    load_diagonal(front, j, columns);
    for (int n = thread(); n < kTile * m; n += kThreads)
      memory_.b[n] =
          n < columns * m
              ? __ldcg(fronts_.x + static_cast<std::int64_t>(front.column + j * kTile) * m + n)
              : T{0};
    if (j == across - 1) gather_below(f, front);
    T sum[kSums] = {};
    int ready = 0;
    const T* panel = fronts_.panels + front.panel + static_cast<std::int64_t>(j * kTile) * front.ld;
    T next[kHalf];
    const int count = tiles.count() - 1 - j;
    if (count > 0) fetch(next, panel, front.ld, tiles, tiles.count() - 1, columns);
    for (int k = 0; k < count; ++k) {
      const int i = tiles.count() - 1 - k;
      const int needed = i < across ? 1 + across - i : 1;
      if (ready < needed) ready = await(fronts_.backward(f), needed);
      __syncthreads();  // the last tile has been used
#pragma unroll
      for (int c = 0; c < kHalf; ++c)
        memory_.tile[thread() % kTile + (thread() / kTile + 2 * c) * (kTile + 1)] = next[c];
      const int begin = tiles.begin(i);
      const int rows = tiles.begin(i + 1) - begin;
      const T* x = fronts_.row_of(front, begin);
      for (int n = thread(); n < kTile * m; n += kThreads)
        memory_.x[n] = n < rows * m ? __ldcg(x + n) : T{0};
      if (k + 1 < count) fetch(next, panel, front.ld, tiles, i - 1, columns);
      __syncthreads();
      multiply_transposed(sum);
    }
    subtract_transposed(sum);
    solve_backward(columns);
    put(fronts_.x + static_cast<std::int64_t>(front.column + j * kTile) * m, columns);
    if (thread() == 0) publish(fronts_.backward(f), 1 + across - j);
  }

 private:
  static constexpr int kHalf = kTile * kTile / kThreads;  // elements of a tile a thread brings
  static constexpr int kSums = m / 2;

  [[nodiscard]] __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  /// L(j, j), the unit matrix outside, and its inverses; behind the next barrier.
  __device__ void load_diagonal(const FrontRecord& front, int j, int rows) {
    const T* from =
        fronts_.panels + front.panel + static_cast<std::int64_t>(j * kTile) * (front.ld + 1);
    for (int n = thread(); n < kTile * kTile; n += kThreads) {
      const int row = n % kTile;
      const int col = n / kTile;
      const bool inside = row < rows && col <= row;
      memory_.diagonal[row + col * (kTile + 1)] =
          inside ? __ldcg(from + row + static_cast<std::int64_t>(col) * front.ld)
                 : (row == col ? T{1} : T{0});
    }
    const T* made = fronts_.inverses + (front.inverses + j) * kDiagonalInverses;
    for (int n = thread(); n < kInverses; n += kThreads)
      memory_.inverses[n] = n / 64 * 8 < rows ? __ldcg(made + n) : T{0};
  }

  /// b ← those of these rows that the front begins with, else zero, and what children give.
  __device__ void start_forward(const FrontRecord& front, int i, int begin, int rows) {
    const T* x = fronts_.x + static_cast<std::int64_t>(front.column + begin) * m;
    const int own = min(rows, front.own - begin) * m;
    for (int n = thread(); n < kTile * m; n += kThreads)
      memory_.b[n] = n < own ? __ldcg(x + n) : T{0};
    __syncthreads();
    for (int c = 0; c < front.child_count; ++c) {
      const ChildRecord& child = fronts_.child(front, c);
      if (!child.gives_rows()) continue;
      const std::int32_t* cuts = fronts_.structure + child.cuts + i;
      const int from = cuts[0] * m;
      const int end = cuts[1] * m;
      if (from == end) continue;
      const T* given = fronts_.below + child.rows_before * m;
      const std::int32_t* places = fronts_.structure + child.places;
      for (int n = from + thread(); n < end; n += kThreads)
        memory_.b[(places[n / m] - begin) * m + n % m] += __ldcg(given + n);
      __syncthreads();
    }
  }

  /// The sum over half of a tile's columns, from those who made the second one.
  __device__ void tell_half(T (&sum)[m], int row) {
    if (thread() < kTile) return;
#pragma unroll
    for (int r = 0; r < m; ++r) {
      memory_.half[r * kTile + row] = sum[r];
      sum[r] = T{0};
    }
  }
  /// b ← b − the sums over both halves of a tile's columns: tile by tile, so that a front that was
  /// split has the sums of a whole one.
  __device__ void subtract_halves(T (&b)[m], T (&sum)[m], int row) const {
    if (thread() >= kTile) return;
#pragma unroll
    for (int r = 0; r < m; ++r) {
      b[r] -= sum[r] + memory_.half[r * kTile + row];
      sum[r] = T{0};
    }
  }

  __device__ void put(T* to, int rows) const {
    for (int n = thread(); n < rows * m; n += kThreads) to[n] = memory_.b[n];
    __syncthreads();
  }

  /// What is below, from the parent; the others wait for it.
  __device__ void gather_below(int f, const FrontRecord& front) const {
    if (front.rows > 0) {
      if (front.parent >= 0 && warp() == 0)
        (void)await(fronts_.backward(front.parent),
                    fronts_.all_backward(fronts_.records[front.parent]));
      __syncthreads();
      T* to = fronts_.below + front.rows_before * m;
      for (int n = thread(); n < front.rows * m; n += kThreads)
        to[n] = fronts_.from_above(front, n);
    }
    __syncthreads();
    if (thread() == 0) publish(fronts_.backward(f), 1);
    __syncthreads();
  }

  /// This thread's part of tile row i: a row of every other column.
  __device__ void fetch(T (&to)[kHalf], const T* panel, int ld, const FrontTiles& tiles, int i,
                        int columns) const {
    const int begin = tiles.begin(i);
    const int row = thread() % kTile;
    const int first = thread() / kTile;
    const bool inside = row < tiles.begin(i + 1) - begin;
    const T* from = panel + begin + row + static_cast<std::int64_t>(first) * ld;
#pragma unroll
    for (int c = 0; c < kHalf; ++c)
      to[c] = inside && first + 2 * c < columns ? __ldcg(from + std::int64_t{2 * c} * ld) : T{0};
  }

  /// Thread t has column t % 64, of half of the right-hand sides.
  __device__ void multiply_transposed(T (&sum)[kSums]) const {
    const T* column = memory_.tile + thread() % kTile * (kTile + 1);
    const int group = thread() / kTile;
#pragma unroll 8
    for (int k = 0; k < kTile; ++k) {
#pragma unroll
      for (int r = 0; r < kSums; ++r) sum[r] += column[k] * memory_.x[k * m + group * kSums + r];
    }
  }
  __device__ void subtract_transposed(const T (&sum)[kSums]) {
    const int column = thread() % kTile;
    const int group = thread() / kTile;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kSums; ++r) memory_.b[column * m + group * kSums + r] -= sum[r];
    __syncthreads();
  }

  /// b ← L(j, j)⁻¹·b, eight rows at a time.
  __device__ void solve_forward(int rows) {
    for (int first = 0; first < rows; first += 8) {
      for (int n = thread(); n < 8 * m; n += kThreads) {
        T sum = 0;
#pragma unroll
        for (int c = 0; c < 8; ++c)
          sum += memory_.inverses[first * 8 + place_in_inverse(n / m, c)] *
                 memory_.b[(first + c) * m + n % m];
        memory_.half[n] = sum;
      }
      __syncthreads();
      for (int n = thread(); n < (kTile - first) * m; n += kThreads) {
        const int row = first + n / m;
        if (row < first + 8) {
          memory_.b[first * m + n] = memory_.half[n];
          continue;
        }
        T sum = 0;
#pragma unroll
        for (int c = 0; c < 8; ++c)
          sum += memory_.diagonal[row + (first + c) * (kTile + 1)] * memory_.half[c * m + n % m];
        memory_.b[row * m + n % m] -= sum;
      }
      __syncthreads();
    }
  }
  /// b ← L(j, j)⁻ᵀ·b.
  __device__ void solve_backward(int rows) {
    for (int first = (rows - 1) / 8 * 8; first >= 0; first -= 8) {
      for (int n = thread(); n < 8 * m; n += kThreads) {
        T sum = 0;
#pragma unroll
        for (int c = 0; c < 8; ++c)
          sum += memory_.inverses[first * 8 + place_in_inverse(c, n / m)] *
                 memory_.b[(first + c) * m + n % m];
        memory_.half[n] = sum;
      }
      __syncthreads();
      for (int n = thread(); n < (first + 8) * m; n += kThreads) {
        const int row = n / m;
        if (row >= first) {
          memory_.b[n] = memory_.half[n - first * m];
          continue;
        }
        T sum = 0;
#pragma unroll
        for (int c = 0; c < 8; ++c)
          sum += memory_.diagonal[first + c + row * (kTile + 1)] * memory_.half[c * m + n % m];
        memory_.b[n] -= sum;
      }
      __syncthreads();
    }
  }

  const Fronts<T, m>& fronts_;
  Memory& memory_;
};

template <class T, int m, bool kForward>
using TilesOf = std::conditional_t<m == 1, OneSweep<T, kForward>, TileSweep<T, m>>;

/// The third part.
template <class T, int m, bool kForward, bool kMany>
__global__ void __launch_bounds__(TilesOf<T, m, kForward>::kThreads,
                                  TilesOf<T, m, kForward>::kBlocks)
    sweep_tiles(const __grid_constant__ Sweep<T, m> sweep) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int drawn;
  auto& shared = *reinterpret_cast<typename TilesOf<T, m, kForward>::Memory*>(memory);
  const BranchProgram& program = sweep.branch.program();
  const auto* jobs = reinterpret_cast<const FrontJob*>(
      sweep.branch.structure + (kForward ? program.forward_jobs : program.backward_jobs));
  const int calls = sweep.branch.calls;
  const int count = (kForward ? program.forward_count : program.backward_count) * calls;
  Fronts<T, m> fronts(sweep);
  TilesOf<T, m, kForward> tiles(fronts, shared);
  const SmallSweep<T, m> small{fronts, shared.b};
  for (;;) {
    if (threadIdx.x == 0) drawn = atomicAdd(sweep.branch.progress()->tickets + 1, 1);
    __syncthreads();
    const int mine = drawn;
    if (mine >= count) return;
    const FrontJob job = jobs[kMany ? mine / calls : mine];
    if constexpr (kMany) fronts = Fronts<T, m>(sweep, mine % calls);
    const FrontRecord front = fronts.records[job.front];
    if (job.i < 0) {
      if (warp() == 0) {
        if constexpr (kForward) {
          if (front.expected_rows > 0) (void)await(fronts.signals(job.front), front.expected_rows);
          small.go_forward(front);
          if (front.parent >= 0 && lane() == 0) signal(fronts.signals(front.parent));
        } else {
          if (front.parent >= 0)
            (void)await(fronts.backward(front.parent),
                        fronts.all_backward(fronts.records[front.parent]));
          small.go_backward(front);
          if (lane() == 0) publish(fronts.backward(job.front), 1);
        }
      }
    } else if constexpr (kForward) {
      tiles.go_forward(job.front, front, job.i);
    } else {
      tiles.go_backward(job.front, front, job.j);
    }
    __syncthreads();
  }
}

template <class T, int m, bool kForward, bool kMany>
void launch_sweep(cudaStream_t stream, const Sweep<T, m>& sweep) {
  const dim3 grid(kMany ? 8U : static_cast<unsigned>(2 * multiprocessors()),
                  static_cast<unsigned>(sweep.branch.calls));
  clear_sweep<T, m><<<grid, kPlainThreads, 0, stream>>>(sweep.branch);
  blas::require_launched("clear_sweep");
  const auto launch = [&](auto kernel, int threads, int bytes) {
    require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "shared memory of a sweep");
    int each = 0;
    require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads,
                                                               static_cast<std::size_t>(bytes)),
                 "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    kernel<<<static_cast<unsigned>(multiprocessors() * std::max(each, 1)),
             static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), stream>>>(sweep);
    blas::require_launched("sweep_branch");
  };
  constexpr int kBytes = sizeof(typename TilesOf<T, m, kForward>::Memory);
  if (kForward) launch(sweep_small<T, m, kForward, kMany>, kWarp, 0);
  launch(sweep_tiles<T, m, kForward, kMany>, TilesOf<T, m, kForward>::kThreads, kBytes);
  if (!kForward) launch(sweep_small<T, m, kForward, kMany>, kWarp, 0);
}

template <class T, int m, bool kMany>
void sweep(cudaStream_t stream, const BlockView* x, const EvenCalls& even, bool forward) {
  Sweep<T, m> arguments{};
  constexpr std::int64_t kSize = sizeof(T);
  arguments.x = static_cast<T*>(x[0].data);
  arguments.below = static_cast<T*>(x[3].data);
  arguments.to_x = even.stride[0] / kSize;
  arguments.branch.panels = static_cast<T*>(x[1].data);
  arguments.branch.structure = static_cast<const std::int32_t*>(x[2].data);
  arguments.branch.work = arguments.below;
  arguments.branch.calls = static_cast<int>(even.count);
  arguments.branch.to_panels = even.stride[1] / kSize;
  arguments.branch.to_work = even.stride[3] / kSize;
  forward ? launch_sweep<T, m, true, kMany>(stream, arguments)
          : launch_sweep<T, m, false, kMany>(stream, arguments);
}

/// Rows of right-hand sides between branches: operands behind those of the operation.
template <class T>
class RowsOfCall {
 public:
  RowsOfCall(cudaStream_t stream, const KernelCalls& calls, std::uint32_t variant)
      : stream_(stream),
        forward_((variant & kSweepForward) != 0),
        end_of_given_(4 + static_cast<int>(variant / kSweepGiven)),
        operands_(calls.operands) {}
  [[nodiscard]] bool forward() const { return forward_; }
  /// To their places in the work memory, and from there.
  void take(const BlockView* x) const {
    for (int k = end_of_given_; k < operands_ && forward_; ++k)
      copy(place(x, x[k].col), x[k].data, x[k]);
  }
  void give(const BlockView* x) const {
    for (int k = 4; k < end_of_given_; ++k) copy(x[k].data, place(x, x[k].row), x[k]);
  }

 private:
  [[nodiscard]] static T* place(const BlockView* x, std::int64_t row) {
    return static_cast<T*>(x[3].data) + row * x[0].rows;
  }
  void copy(void* to, const void* from, const BlockView& rows) const {
    require_cuda(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(rows.rows * rows.cols) * sizeof(T),
                        cudaMemcpyDeviceToDevice, stream_),
        "rows of a sweep");
  }

  cudaStream_t stream_;
  bool forward_;
  int end_of_given_;
  int operands_;
};

template <class T, int m>
void sweep_range(cudaStream_t stream, const BlockView* x, bool forward) {
  Sweep<T, m> arguments{};
  arguments.x = static_cast<T*>(x[0].data);
  arguments.below = static_cast<T*>(x[3].data);
  arguments.branch.panels = static_cast<T*>(x[1].data);
  arguments.branch.structure = static_cast<const std::int32_t*>(x[2].data);
  arguments.branch.work = arguments.below;
  arguments.branch.sweep_columns = m;
  forward ? launch_sweep<T, m, true, false>(stream, arguments)
          : launch_sweep<T, m, false, false>(stream, arguments);
}

template <class T, int m>
void sweep(cudaStream_t stream, const BlockView* x, const EvenCalls& even, bool forward) {
  even.count > 1 ? sweep<T, m, true>(stream, x, even, forward)
                 : sweep<T, m, false>(stream, x, even, forward);
}

/// As many calls as their structure allows: its size bounds that of the list.
std::int64_t most_calls(const BlockView* x) {
  constexpr std::int64_t kRows = 32768;  // of a grid
  return std::clamp<std::int64_t>((std::int64_t{1} << 30) / x[2].rows, 1, kRows);
}

}  // namespace
}  // namespace front

template <class T>
void sweep_branch_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(sweep_branch, p.variant % kSweepGiven, kSweepForward | kSweepBackward);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  const front::RowsOfCall<T> rows(stream, calls, p.variant);
  for (std::int64_t c = 0; c < calls.count();) {
    const BlockView* x = calls[c];
    EvenCalls even = even_calls(calls, c, front::most_calls(x));
    if (even.stride[2] != 0) even = {.first = c, .count = 1};  // other structures
    c += even.count;
    rows.take(x);
    if (x[0].rows == 1) {
      front::sweep<T, 1>(stream, x, even, rows.forward());
    } else if (x[0].rows == kSweepColumns) {
      front::sweep<T, kSweepColumns>(stream, x, even, rows.forward());
    } else {
      throw Error(ErrorKind::misuse, "sweep_branch", "one or kSweepColumns right-hand sides");
    }
    rows.give(x);
  }
}

template <class T>
void sweep_range_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
  require_variant(sweep_range, p.variant % kSweepGiven, kSweepForward | kSweepBackward);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  const front::RowsOfCall<T> rows(stream, calls, p.variant);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    rows.take(x);
    if (x[0].rows == 1) {
      front::sweep_range<T, 1>(stream, x, rows.forward());
    } else if (x[0].rows == kSweepColumns) {
      front::sweep_range<T, kSweepColumns>(stream, x, rows.forward());
    } else {
      throw Error(ErrorKind::misuse, "sweep_range", "one or kSweepColumns right-hand sides");
    }
    rows.give(x);
  }
}

template void sweep_range_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void sweep_range_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void sweep_branch_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void sweep_branch_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
