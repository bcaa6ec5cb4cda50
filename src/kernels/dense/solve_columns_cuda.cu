// Triangular solves with few columns: substitution by blocks of 64 rows in one launch.
//
// Method: op(L) is L or its transpose, and L a lower or an upper triangle. Thread blocks draw
// tickets in the order of the substitution; ticket s has the s-th block of 64 rows of up to eight
// columns, from the first row down where op(L) is a lower triangle, else from the last row up. It
// subtracts the products of its blocks of op(L) with the blocks of X that are solved before it, in
// that order, solves with its block on the diagonal, and sends its rows of X to the others as
// messages (messages_cuda.hpp), eight at a time. It waits for lower tickets only, which are in the
// hands of blocks that run: nothing can wait in a circle, whatever part of the grid the GPU has
// room for.
//
// What takes time is the chain from one block on the diagonal to the next. L is loaded two blocks
// ahead, and each warp waits for just the sixteen rows of X that it multiplies with, so that there
// is no barrier of a thread block between the first product and the last. A warp then solves a
// column with the block on the diagonal, eight rows at a time: every lane finds all eight in its
// registers and subtracts their products from the rows that it has. Pivots enter as reciprocals;
// where one of those is not a normal number, a block is solved row by row with divisions.
//
// Sums: the products with each sixteen columns of a block of 64 of op(L) in two sums,
// even and odd, over all blocks; these eight as a tree. The order is that of the block and column,
// whatever the number of columns: equal inputs give equal bits.

#include "kernels/dense/solve_columns_cuda.hpp"

#include <limits>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/backend/messages_cuda.hpp"
#include "kernels/backend/tile_copy_cuda.hpp"

namespace strata::few_columns {
namespace {

using namespace tile;

constexpr int kRows = 64;  // of a block
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kHalves = kRows / kWarp;
constexpr int kGroups = kWarps / kHalves;
constexpr int kDepth = kRows / kGroups;  // of the slice of a block of L that a warp multiplies with
constexpr int kEight = 8;
constexpr int kMostAtOnce = 8;  // columns
constexpr int kSlots = 3;
constexpr int kHead = 128;  // bytes of the scratch memory before the messages

static_assert(kMostAtOnce <= kWarps);  // a warp solves a column

template <class T>
struct Arguments {
  const T* l;
  std::int64_t ldl;
  T* x;
  std::int64_t ldx;
  int rows;
  int cols;
  int blocks;   ///< of 64 rows
  int groups;   ///< of columns
  bool unit;    ///< the diagonal of L is taken to be ones
  int* ticket;  ///< the last one drawn; −1 before the launch
  T* messages;  ///< X by groups of columns, and in each row by row
};

/// Shared memory of a thread block.
template <class T, int kColumns>
struct Memory {
  static constexpr int kLd = kRows + 1;  // neither rows nor columns have bank conflicts

  T diagonal[kRows * kLd];
  T pivots[kRows];
  T reciprocals[kRows];
  T slices[kWarps][kSlots][kWarp * (kDepth + 1)];
  alignas(16) T x[kWarps][2][kDepth * kColumns];  ///< what a slice is multiplied with, and the next
  T sums[kGroups][kColumns][kRows];
  int ticket;
};

/// How an op(L) is found: whether it is a lower triangle, and whether L is transposed for it.
template <bool kLowerOp, bool kTransposedL>
struct Triangle {
  static constexpr bool kForward = kLowerOp;
  static constexpr bool kTransposed = kTransposedL;
  static constexpr bool kUpper = kLowerOp == kTransposedL;  ///< of L itself
};

/// What a thread block does for its ticket. Warp w has the outputs of half w % 2 of the block, one
/// a lane, and the products of sixteen inner indices, group w / 2; then column w.
template <class T, int kColumns, class Shape>
class BlockSolve {
 public:
  using SharedMemory = Memory<T, kColumns>;

  __device__ BlockSolve(const Arguments<T>& arguments, SharedMemory& memory, int ticket)
      : arguments_(arguments),
        memory_(memory),
        step_(ticket / arguments.groups),
        first_column_(ticket % arguments.groups * kColumns),
        begin_(begin_of(step_)),
        rows_(rows_of(step_)),
        messages_(arguments.messages + std::int64_t{first_column_} * arguments.rows) {}

  __device__ void run() const {
    copy_diagonal();
    copy_slice(0);
    copy_slice(1);
    const bool regular = load_pivots();
    T b[kHalves] = {};
    load_column(b);
    T sum[2][kColumns] = {};
    multiply(sum);
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      memory_.sums[group()][c][half() * kWarp + lane()] = sum[0][c] + sum[1][c];
    wait_copies<0>();
    const bool all_regular = __syncthreads_and(static_cast<int>(regular)) != 0;
    if (warp() >= kColumns) return;
    subtract_sums(b);
    all_regular ? solve(b) : solve_by_division(b);
    store_column(b);
  }

 private:
  using Bits = typename Messages<T>::Bits;
  static constexpr bool kForward = Shape::kForward;
  static constexpr bool kTransposed = Shape::kTransposed;
  static constexpr int kLd = SharedMemory::kLd;
  static constexpr int kNumbers = kDepth * kColumns;            ///< of X for a slice
  static constexpr int kEach = (kNumbers + kWarp - 1) / kWarp;  ///< of them, a lane's
  static constexpr unsigned kAllLanes = 0xffffffffU;

  [[nodiscard]] __device__ static int half() { return warp() % kHalves; }
  [[nodiscard]] __device__ static int group() { return warp() / kHalves; }
  /// First row of the block of X that is solved in this step.
  [[nodiscard]] __device__ int begin_of(int step) const {
    return (kForward ? step : arguments_.blocks - 1 - step) * kRows;
  }
  [[nodiscard]] __device__ int rows_of(int step) const {
    return min(kRows, arguments_.rows - begin_of(step));
  }
  [[nodiscard]] __device__ const T* of_l(int row, int column) const {
    return arguments_.l + row + column * arguments_.ldl;
  }

  // ---- what comes to shared memory ------------------------------------------------------------

  /// The triangle of L; zeros beside it and below the last row.
  __device__ void copy_diagonal() const {
    const int row = static_cast<int>(threadIdx.x) % kRows;
    for (int c = static_cast<int>(threadIdx.x) / kRows; c < kRows; c += kThreads / kRows) {
      const bool inside = Shape::kUpper ? c < rows_ && row <= c : row < rows_ && c <= row;
      copy_async<sizeof(T)>(memory_.diagonal + row + c * kLd,
                            inside ? of_l(begin_ + row, begin_ + c) : arguments_.l,
                            inside ? int{sizeof(T)} : 0);
    }
  }

  /// Place of op(L)(output, inner) in a slice. A warp reads a column of it at a time; columns of L
  /// are rows of Lᵀ.
  [[nodiscard]] __device__ static int place_of(int output, int inner) {
    return !kTransposed ? output + inner * kWarp : inner + output * (kDepth + 1);
  }
  /// Begins to bring this warp's slice of the block of L that is multiplied in this step, if there
  /// is one.
  __device__ void copy_slice(int step) const {
    if (step < step_) {
      T* to = memory_.slices[warp()][step % kSlots];
      const int output = begin_ + half() * kWarp;
      const int inner = begin_of(step) + group() * kDepth;
#pragma unroll
      for (int n = 0; n < kDepth; ++n) {
        // The lanes have neighbours in a column of L.
        const int i = kTransposed ? lane() / kDepth + n * (kWarp / kDepth) : lane();
        const int k = kTransposed ? lane() % kDepth : n;
        const int row = kTransposed ? inner + k : output + i;
        const int column = kTransposed ? output + i : inner + k;
        const bool inside = row < arguments_.rows && column < arguments_.rows;
        copy_async<sizeof(T)>(to + place_of(i, k), inside ? of_l(row, column) : arguments_.l,
                              inside ? int{sizeof(T)} : 0);
      }
    }
    commit_copies();
  }

  /// The diagonal, continued by ones; false if this thread's reciprocal may not take the place of a
  /// division.
  [[nodiscard]] __device__ bool load_pivots() const {
    const int n = static_cast<int>(threadIdx.x);
    if (n >= kRows) return true;
    const T pivot = n < rows_ && !arguments_.unit ? __ldg(of_l(begin_ + n, begin_ + n)) : T{1};
    const T reciprocal = T{1} / pivot;
    memory_.pivots[n] = pivot;
    memory_.reciprocals[n] = reciprocal;
    return is_normal(pivot) && is_normal(reciprocal);
  }
  [[nodiscard]] __device__ static bool is_normal(T value) {
    return fabs(value) >= std::numeric_limits<T>::min() &&
           fabs(value) <= std::numeric_limits<T>::max();
  }

  // ---- the columns of X -----------------------------------------------------------------------

  [[nodiscard]] __device__ bool has_column() const {
    return warp() < kColumns && first_column_ + warp() < arguments_.cols;
  }
  [[nodiscard]] __device__ T* column() const {
    return arguments_.x + begin_ + (first_column_ + warp()) * arguments_.ldx;
  }
  /// By warp w, column w; columns that do not exist are zero.
  __device__ void load_column(T (&b)[kHalves]) const {
    if (!has_column()) return;
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
      const int row = lane() + h * kWarp;
      if (row < rows_) b[h] = column()[row];
    }
  }
  __device__ void store_column(const T (&b)[kHalves]) const {
    if (!has_column()) return;
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
      const int row = lane() + h * kWarp;
      if (row < rows_) column()[row] = b[h];
    }
  }

  // ---- products with what is solved -----------------------------------------------------------

  /// Where number n is that this warp multiplies with in this step; null if that is zero.
  [[nodiscard]] __device__ const T* place_of_number(int step, int n) const {
    const int row = group() * kDepth + n / kColumns;
    if (step >= step_ || n >= kNumbers || row >= rows_of(step)) return nullptr;
    return messages_ + std::int64_t{begin_of(step) + group() * kDepth} * kColumns + n;
  }
  __device__ void peek(int step, Bits (&bits)[kEach]) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const T* place = place_of_number(step, lane() + e * kWarp);
      bits[e] = place != nullptr ? Messages<T>::read(place) : Bits{0};
    }
  }
  /// Waits until all are there.
  __device__ void receive(int step, Bits (&bits)[kEach], T* x) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int n = lane() + e * kWarp;
      while (bits[e] == Messages<T>::kNothing) {
        __nanosleep(20);
        bits[e] = Messages<T>::read(place_of_number(step, n));
      }
      if (n < kNumbers) x[n] = Messages<T>::number(bits[e]);
    }
  }

  /// The first two slices are on their way.
  __device__ void multiply(T (&sum)[2][kColumns]) const {
    Bits next[kEach];
    peek(0, next);
    for (int step = 0; step < step_; ++step) {
      T* x = memory_.x[warp()][step % 2];
      receive(step, next, x);
      wait_copies<1>();
      __syncwarp();  // … and the slice before has been used
      copy_slice(step + 2);
      peek(step + 1, next);
      const T* l = memory_.slices[warp()][step % kSlots];
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        const T factor = l[place_of(lane(), k)];
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
          sum[k % 2][c] = fma(factor, x[k * kColumns + c], sum[k % 2][c]);
      }
    }
  }

  __device__ void subtract_sums(T (&b)[kHalves]) const {
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
      const auto of = [&](int g) { return memory_.sums[g][warp()][lane() + h * kWarp]; };
      static_assert(kGroups == 4);
      b[h] -= (of(0) + of(1)) + (of(2) + of(3));
    }
  }

  // ---- the block on the diagonal --------------------------------------------------------------

  /// Element of op(L).
  [[nodiscard]] __device__ T element(int i, int k) const {
    return memory_.diagonal[kTransposed ? k + i * kLd : i + k * kLd];
  }

  /// By a warp, for its column; rows past the last are zero, and change nothing.
  __device__ void solve(T (&b)[kHalves]) const {
    const int eights = (rows_ + kEight - 1) / kEight;
#pragma unroll 1
    for (int n = 0; n < eights; ++n) {
      const int first = kEight * (kForward ? n : eights - 1 - n);
      const auto row_of = [&](int k) { return kForward ? first + k : first + kEight - 1 - k; };
      T x[kEight];
      solve_eight(row_of, first < kWarp ? b[0] : b[1], x);
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        const int row = lane() + h * kWarp;
        if (row >= first && row < first + kEight) {
#pragma unroll
          for (int k = 0; k < kEight; ++k) b[h] = row == row_of(k) ? x[k] : b[h];
          tell(row, b[h]);
        }
        if (kForward ? h == 0 && first >= kWarp : h == 1 && first < kWarp) continue;  // done before
        T sum[2] = {};
#pragma unroll
        for (int k = 0; k < kEight; ++k)
          sum[k % 2] = fma(element(row, row_of(k)), x[k], sum[k % 2]);
        const bool waits = kForward ? row >= first + kEight : row < first;
        b[h] = waits ? b[h] - (sum[0] + sum[1]) : b[h];
      }
    }
  }

  /// x ← the rows row_of(0), …, which lie in the lanes of `own`; each lane finds all of them.
  template <class RowOf>
  __device__ void solve_eight(const RowOf& row_of, T own, T (&x)[kEight]) const {
#pragma unroll
    for (int k = 0; k < kEight; ++k) x[k] = __shfl_sync(kAllLanes, own, row_of(k) % kWarp);
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const int row = row_of(k);
      x[k] *= memory_.reciprocals[row];
#pragma unroll
      for (int j = k + 1; j < kEight; ++j) x[j] = fma(-element(row_of(j), row), x[k], x[j]);
    }
  }

  /// The same, row by row.
  __device__ void solve_by_division(T (&b)[kHalves]) const {
#pragma unroll 1
    for (int n = 0; n < rows_; ++n) {
      const int k = kForward ? n : rows_ - 1 - n;
      const T x = __shfl_sync(kAllLanes, k < kWarp ? b[0] : b[1], k % kWarp) / memory_.pivots[k];
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        const int row = lane() + h * kWarp;
        const bool waits = kForward ? row > k : row < k;
        b[h] = waits ? fma(-element(row, k), x, b[h]) : row == k ? x : b[h];
        if (row == k) tell(row, x);
      }
    }
  }

  /// The other blocks: this row of this warp's column is x.
  __device__ void tell(int row, T x) const {
    if (row < rows_) send(messages_ + std::int64_t{begin_ + row} * kColumns + warp(), x);
  }

  const Arguments<T>& arguments_;
  SharedMemory& memory_;
  int step_;
  int first_column_;
  int begin_;
  int rows_;
  T* messages_;  ///< of this group of columns
};

template <class T, int kColumns, class Shape>
__global__ void __launch_bounds__(kThreads, 1)
    solve_blocks(const __grid_constant__ Arguments<T> arguments) {
  extern __shared__ __align__(16) unsigned char bytes[];
  auto& memory = *reinterpret_cast<Memory<T, kColumns>*>(bytes);
  if (threadIdx.x == 0) memory.ticket = atomicAdd(arguments.ticket, 1) + 1;
  __syncthreads();
  BlockSolve<T, kColumns, Shape>(arguments, memory, memory.ticket).run();
}

// ---- launches ---------------------------------------------------------------------------------

int columns_at_once(std::int64_t cols) { return cols == 1 ? 1 : cols <= 4 ? 4 : kMostAtOnce; }
std::int64_t groups_of(std::int64_t cols) {
  const int at_once = columns_at_once(cols);
  return (cols + at_once - 1) / at_once;
}

template <class T, int kColumns, class Shape>
void launch(cudaStream_t stream, const Arguments<T>& arguments) {
  const auto kernel = solve_blocks<T, kColumns, Shape>;
  constexpr int kBytes = sizeof(Memory<T, kColumns>);
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
               "shared memory of a solve with few columns");
  const auto blocks =
      static_cast<unsigned>(arguments.blocks) * static_cast<unsigned>(arguments.groups);
  kernel<<<blocks, kThreads, kBytes, stream>>>(arguments);
  blas::require_launched("a solve with few columns");
}

template <class T, class Shape>
void launch_columns(cudaStream_t stream, const Arguments<T>& arguments) {
  switch (columns_at_once(arguments.cols)) {
    case 1: return launch<T, 1, Shape>(stream, arguments);
    case 4: return launch<T, 4, Shape>(stream, arguments);
    default: return launch<T, kMostAtOnce, Shape>(stream, arguments);
  }
}

}  // namespace

std::int64_t scratch_bytes(std::int64_t rows, std::int64_t cols) {
  return kHead + rows * groups_of(cols) * columns_at_once(cols) * std::int64_t{sizeof(double)};
}

template <class T>
void solve(cudaStream_t stream, MatrixView<const T> l, MatrixView<T> x, const TriangleOf& of,
           void* scratch) {
  if (x.rows == 0 || x.cols == 0) return;
  const Arguments<T> arguments{
      .l = l.data,
      .ldl = l.ld,
      .x = x.data,
      .ldx = x.ld,
      .rows = static_cast<int>(x.rows),
      .cols = static_cast<int>(x.cols),
      .blocks = static_cast<int>((x.rows + kRows - 1) / kRows),
      .groups = static_cast<int>(groups_of(x.cols)),
      .unit = of.unit,
      .ticket = static_cast<int*>(scratch),
      .messages = reinterpret_cast<T*>(static_cast<std::byte*>(scratch) + kHead)};
  // No ticket is drawn, and nothing is sent.
  require_cuda(cudaMemsetAsync(scratch, 0xff,
                               static_cast<std::size_t>(scratch_bytes(x.rows, x.cols)), stream),
               "cudaMemsetAsync");
  if (of.upper)
    of.transposed ? launch_columns<T, Triangle<true, true>>(stream, arguments)
                  : launch_columns<T, Triangle<false, false>>(stream, arguments);
  else
    of.transposed ? launch_columns<T, Triangle<false, true>>(stream, arguments)
                  : launch_columns<T, Triangle<true, false>>(stream, arguments);
}

template void solve<double>(cudaStream_t, MatrixView<const double>, MatrixView<double>,
                            const TriangleOf&, void*);
template void solve<float>(cudaStream_t, MatrixView<const float>, MatrixView<float>,
                           const TriangleOf&, void*);

}  // namespace strata::few_columns
