// Substitution and products with the rows of tall matrices, in fp64 on the tensor cores.
//
// Method: mma.m16n8k8 of doubles is, bit for bit, a chain of fused multiply-adds in ascending depth
// (gram_tensor_cuda.cu). A warp has 16 rows; of eight columns thread g·4 + q has the rows 2g and
// 2g + 1 of the columns q and q + 4. That is how the instruction has an operand on the left; the
// columns of the operand on the right are taken in such an order that results lie so too, and
// quotients can become operands where they are. Memory is read and written in whole lines.
// Substitution is left-looking: eight columns lose those before them in ascending order; then a
// thread takes a whole row of the eight, so that it needs no other thread for its quotients. Rows
// and their negative quotients, the operands on the left, lie in shared memory, where asynchronous
// copies have put them. Columns are a loop that is not unrolled, since its code would not fit into
// the instruction cache. R, or S, lies in shared memory as operands, so a thread reads 16 bytes for
// each instruction.

#include "kernels/quotient_cuda.hpp"
#include "kernels/row_products_cuda.hpp"
#include "kernels/tile_product_cuda.hpp"

namespace strata::gram_gpu {
namespace {

constexpr int kEight = 8;
constexpr int kRows = 16;  // of a warp
constexpr int kRowThreads = 256;
constexpr int kRowWarps = kRowThreads / kWarpSize;

/// Of eight columns of a result, the one that tile::multiply_add() has at `place`, so that a thread
/// has q and q + 4 of what it gives, as of its operand on the left.
__device__ int column_at(int place) { return place % 2 == 0 ? place / 2 : place / 2 + 4; }

/// Sixteen rows of a tall matrix, from `row` on, as one thread sees them.
struct Strip {
  std::int64_t row;  ///< of this thread: the first of two
  std::int64_t rows;
  int q;
  bool pairs;  ///< both can be read at once

  /// (row, q), (row, q + 4), (row + 1, q), (row + 1, q + 4) of the eight columns from `first` on,
  /// of which `cols` there are; zeros elsewhere.
  __device__ void read(const double* data, std::int64_t ld, std::int64_t first, std::int64_t cols,
                       double (&to)[4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t col = first + q + 4 * half;
      to[half] = to[2 + half] = 0;
      if (col >= cols || row >= rows) continue;
      const double* from = data + row + col * ld;
      if (pairs && row + 1 < rows) {
        const double2 both = *reinterpret_cast<const double2*>(from);
        to[half] = both.x;
        to[2 + half] = both.y;
      } else {
        to[half] = from[0];
        if (row + 1 < rows) to[2 + half] = from[1];
      }
    }
  }
  __device__ void write(double* data, std::int64_t ld, std::int64_t first, std::int64_t cols,
                        const double (&from)[4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t col = first + q + 4 * half;
      if (col >= cols || row >= rows) continue;
      double* to = data + row + col * ld;
      if (pairs && row + 1 < rows) {
        *reinterpret_cast<double2*>(to) = make_double2(from[half], from[2 + half]);
      } else {
        to[0] = from[half];
        if (row + 1 < rows) to[1] = from[2 + half];
      }
    }
  }
};

/// −x, by its bits: that takes no arithmetic unit.
__device__ double negative(double x) {
  return __hiloint2double(__double2hiint(x) ^ static_cast<int>(0x80000000U), __double2loint(x));
}

__device__ Strip strip_of(std::int64_t number, std::int64_t rows, bool pairs) {
  return {number * kRows + 2 * (tile::lane() / 4), rows, tile::lane() % 4, pairs};
}

/// R in shared memory: its eights of rows and columns above the diagonal as operands, those on it
/// row by row, and the elements of the diagonal with their reciprocals.
struct Factor {
  const double2* right;     ///< 32 of them for each (i, j), i < j, column by column
  const double2* diagonal;  ///< of each eight, row by row
  const double2* pivots;    ///< an element of the diagonal, and its reciprocal
  const double* scales;     ///< null: all are 1
};

constexpr int products_before(int j) { return j * (j - 1) / 2; }

constexpr int factor_elements(int blocks) {
  return (products_before(blocks) + blocks) * kWarpSize + blocks * (kEight + kEight / 2);
}

/// Called by all threads, which meet in it.
__device__ Factor load_factor(const double* r, std::int64_t ld, const Columns<double>& x,
                              double2* memory) {
  const std::int64_t n = x.cols;
  const int blocks = static_cast<int>((n + kEight - 1) / kEight);
  const int threads = static_cast<int>(blockDim.x);
  double2* diagonal = memory + products_before(blocks) * kWarpSize;
  double2* pivots = diagonal + blocks * kWarpSize;
  const auto element = [&](std::int64_t i, std::int64_t j) {
    return i < j && j < n ? r[i + j * ld] : 0.0;
  };
  for (int j = 0; j < blocks; ++j) {
    for (int k = static_cast<int>(threadIdx.x); k < j * kWarpSize; k += threads) {
      const int g = k % kWarpSize / 4;
      const int row = k / kWarpSize * kEight + k % 4;
      const int col = j * kEight + column_at(g);
      memory[products_before(j) * kWarpSize + k] =
          make_double2(element(row, col), element(row + 4, col));
    }
  }
  for (int k = static_cast<int>(threadIdx.x); k < blocks * kWarpSize; k += threads) {
    const int row = k / 4;
    const int col = row / kEight * kEight + k % 4 * 2;
    diagonal[k] = make_double2(element(row, col), element(row, col + 1));
  }
  auto* scales = reinterpret_cast<double*>(pivots + blocks * kEight);
  bool differs = false;
  for (int k = static_cast<int>(threadIdx.x); k < blocks * kEight; k += threads) {
    const double pivot = k < n ? r[k + k * ld] : 1.0;
    pivots[k] = make_double2(pivot, reciprocal(pivot));
    scales[k] = k < n && x.d != nullptr ? x.d[k] : 1.0;
    differs = differs || scales[k] != 1.0;
  }
  const bool scaled = __syncthreads_or(differs ? 1 : 0) != 0;
  return {memory, diagonal, pivots, scaled ? scales : nullptr};
}

/// The rows of a warp in shared memory. Of each eight columns thread g·4 + q has (2g, q), (2g + 1,
/// q) and (2g, q + 4), (2g + 1, q + 4); where they are changes with g, so that neither these nor
/// whole rows have bank conflicts.
class WarpRows {
 public:
  __device__ explicit WarpRows(double2* of_warp)
      : all_(of_warp), own_(of_warp + place(tile::lane() / 4, tile::lane() % 4)) {}

  /// Starts copies of the columns of x; zeros for what there is not.
  __device__ void start(const Strip& strip, const Columns<double>& x) const {
    const int halves = static_cast<int>((x.cols + kEight - 1) / kEight) * 2;
    if (strip.pairs && strip.row + 1 < x.rows) {
      const double* from = x.data + strip.row + strip.q * x.ld;
      for (int half = 0; half < halves; ++half, from += 4 * x.ld) {
        const bool inside = strip.q + 4 * half < x.cols;
        tile::copy_async<16>(own_ + half * kWarpSize, inside ? from : x.data, inside ? 16 : 0);
      }
      return tile::commit_copies();
    }
    const std::int64_t there = strip.row < x.rows ? min(x.rows - strip.row, std::int64_t{2}) : 0;
    for (int half = 0; half < halves; ++half) {
      const std::int64_t col = strip.q + 4 * half;
      const int count = col < x.cols ? static_cast<int>(there) : 0;
      const double* from = count > 0 ? x.data + strip.row + col * x.ld : x.data;
      double2* to = own_ + half * kWarpSize;
      tile::copy_async<8>(to, from, count > 0 ? 8 : 0);
      tile::copy_async<8>(&to->y, count > 1 ? from + 1 : x.data, count > 1 ? 8 : 0);
    }
    tile::commit_copies();
  }
  __device__ void read(int block, double (&x)[4]) const {
    const double2 near = own_[2 * block * kWarpSize];
    const double2 far = own_[(2 * block + 1) * kWarpSize];
    x[0] = near.x;
    x[1] = far.x;
    x[2] = near.y;
    x[3] = far.y;
  }
  __device__ void put(int block, const double (&x)[4]) const {
    own_[2 * block * kWarpSize] = make_double2(x[0], x[2]);
    own_[(2 * block + 1) * kWarpSize] = make_double2(x[1], x[3]);
  }
  /// The eight columns of a row of the warp, 0 … 15.
  __device__ void read_row(int block, int row, double (&x)[kEight]) const {
    const double* half = row_of(block, row);
#pragma unroll
    for (int c = 0; c < kEight; ++c) x[c] = half[c / 4 * 2 * kWarpSize + shifted(row, c % 4)];
  }
  __device__ void put_row(int block, int row, const double (&x)[kEight]) const {
    double* half = row_of(block, row);
#pragma unroll
    for (int c = 0; c < kEight; ++c) half[c / 4 * 2 * kWarpSize + shifted(row, c % 4)] = x[c];
  }

 private:
  static __device__ int place(int g, int q) { return g * 4 + (q ^ (g / 2 & 3)); }
  [[nodiscard]] __device__ double* row_of(int block, int row) const {
    return reinterpret_cast<double*>(all_ + 2 * block * kWarpSize + row / 2 * 4) + row % 2;
  }
  static __device__ int shifted(int row, int q) { return 2 * (q ^ (row / 4 & 3)); }

  double2* all_;
  double2* own_;
};

/// Eight columns of a row by the rows of R on its diagonal; x becomes the negative quotients. False
/// where one of them needs a division.
template <bool kDivide>
__device__ bool solve_row(const double2* r, const double2* pivots, double (&x)[kEight]) {
  bool failed = false;
#pragma unroll
  for (int c = 0; c < kEight; ++c) {
    const double2 pivot = pivots[c];
    x[c] = negative(kDivide ? rounded_quotient(x[c], pivot.x)
                            : quotient_unless(x[c], pivot.x, pivot.y, failed));
#pragma unroll
    for (int k = c + 1; k < kEight; ++k) {
      const double2 both = r[c * 4 + k / 2];
      x[k] = fused(x[c], k % 2 == 0 ? both.x : both.y, x[k]);
    }
  }
  return !failed;
}

/// A block of eight columns; a thread has a row.
__device__ void solve_eight(const WarpRows& rows, int block, const Factor& factor) {
  const int row = tile::lane() % kRows;
  const double2* r = factor.diagonal + block * kWarpSize;
  const double2* pivots = factor.pivots + block * kEight;
  double x[kEight];
  rows.read_row(block, row, x);
  if (!solve_row<false>(r, pivots, x)) {
    rows.read_row(block, row, x);
    solve_row<true>(r, pivots, x);
  }
  __syncwarp();
  if (tile::lane() < kRows) rows.put_row(block, row, x);
}

constexpr int kSolveThreads = 512;  // at most; more would have too few registers

__global__ void __launch_bounds__(kSolveThreads, 1)
    solve_strips(Columns<double> x, const double* r, std::int64_t r_ld, double* to,
                 std::int64_t to_ld, int buffers, bool pairs) {
  extern __shared__ __align__(16) double2 shared[];
  const int blocks = static_cast<int>((x.cols + kEight - 1) / kEight);
  const int warps = static_cast<int>(blockDim.x) / kWarpSize;
  const Factor factor = load_factor(r, r_ld, x, shared);
  const int of_strip = 2 * blocks * kWarpSize;
  double2* memory = shared + factor_elements(blocks) + tile::warp() * buffers * of_strip;
  const std::int64_t strips = (x.rows + kRows - 1) / kRows;
  const std::int64_t step = std::int64_t{gridDim.x} * warps;
  std::int64_t s = blockIdx.x * std::int64_t{warps} + tile::warp();
  if (s < strips) WarpRows(memory).start(strip_of(s, x.rows, pairs), x);
  for (int turn = 0; s < strips; s += step, turn ^= 1) {
    const Strip strip = strip_of(s, x.rows, pairs);
    const WarpRows rows(memory + (buffers > 1 ? turn : 0) * of_strip);
    const bool ahead = buffers > 1 && s + step < strips;
    if (ahead) WarpRows(memory + (turn ^ 1) * of_strip).start(strip_of(s + step, x.rows, pairs), x);
    if (ahead) {
      tile::wait_copies<1>();
    } else {
      tile::wait_copies<0>();
    }
    const bool whole = pairs && strip.row + 1 < x.rows;
    double* out = to + strip.row + strip.q * to_ld;
#pragma unroll 1
    for (int j = 0; j < blocks; ++j) {
      double value[4];
      rows.read(j, value);
      if (factor.scales != nullptr) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const double d = factor.scales[j * kEight + strip.q + 4 * half];
          value[half] = rounded_product(value[half], d);
          value[2 + half] = rounded_product(value[2 + half], d);
        }
      }
      const bool last = (j + 1) * kEight > x.cols;
      if (last) {  // columns that there are not: ones, whose quotients need no division
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (j * kEight + strip.q + 4 * half >= x.cols) value[half] = value[2 + half] = 1;
        }
      }
      const double2* right = factor.right + products_before(j) * kWarpSize + tile::lane();
#pragma unroll 4
      for (int i = 0; i < j; ++i) {
        double left[4];
        rows.read(i, left);
        tile::multiply_add(value, value, left, right[i * kWarpSize]);
      }
      rows.put(j, value);
      __syncwarp();
      solve_eight(rows, j, factor);
      __syncwarp();
      rows.read(j, value);
#pragma unroll
      for (double& v : value) v = negative(v);
      if (whole && !last) {
        *reinterpret_cast<double2*>(out) = make_double2(value[0], value[2]);
        *reinterpret_cast<double2*>(out + 4 * to_ld) = make_double2(value[1], value[3]);
      } else {
        strip.write(to, to_ld, j * kEight, x.cols, value);
      }
      out += kEight * to_ld;
    }
    if (buffers == 1 && s + step < strips) rows.start(strip_of(s + step, x.rows, pairs), x);
  }
}

/// Thread blocks that fill the multiprocessors, at most one a strip of each warp.
unsigned blocks_of(const void* kernel, std::int64_t rows, std::size_t bytes) {
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "shared memory of rows");
  int resident = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kRowThreads, bytes),
               "rows");
  const std::int64_t most = std::int64_t{multiprocessors()} * std::max(resident, 1);
  return static_cast<unsigned>(
      std::min(most, std::int64_t{blocks_for(rows, std::int64_t{kRows} * kRowWarps)}));
}

constexpr int kSharedMost = 225 << 10;

/// As many warps as have room; with two strips each where there is room for them.
void launch_solve(cudaStream_t stream, const Columns<double>& x, const double* r, std::int64_t r_ld,
                  double* to, std::int64_t to_ld) {
  const int blocks = static_cast<int>((x.cols + kEight - 1) / kEight);
  const int of_factor = factor_elements(blocks) * static_cast<int>(sizeof(double2));
  const int of_strip = 2 * blocks * kWarpSize * static_cast<int>(sizeof(double2));
  const int strips = (kSharedMost - of_factor) / of_strip;
  const int buffers = strips >= 2 * kSolveThreads / kWarpSize ? 2 : 1;
  const int warps = std::min(strips / buffers, kSolveThreads / kWarpSize);
  const int bytes = of_factor + warps * buffers * of_strip;
  require_cuda(
      cudaFuncSetAttribute(solve_strips, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
      "shared memory of rows");
  const auto grid = static_cast<unsigned>(
      std::min<std::int64_t>(multiprocessors(), blocks_for(x.rows, std::int64_t{kRows} * warps)));
  const bool pairs = tile::columns_aligned(x.data, x.ld) && tile::columns_aligned(to, to_ld);
  solve_strips<<<grid, static_cast<unsigned>(warps * kWarpSize), static_cast<std::size_t>(bytes),
                 stream>>>(x, r, r_ld, to, to_ld, buffers, pairs);
  require_cuda(cudaGetLastError(), "solve_right");
}

constexpr std::int64_t kUpdateDepth = 256;  // columns of x of a launch

/// Operands of kEights eights of columns, depth by depth; element(i, j) is −0 where there is none,
/// which changes no sum. Called by all threads.
template <int kEights, class Element>
__device__ void load_right(int depth, Element&& element, double2* to) {
  for (int k = static_cast<int>(threadIdx.x); k < depth * kEights * kWarpSize;
       k += static_cast<int>(blockDim.x)) {
    const int lane = k % kWarpSize;
    const int row = k / kWarpSize / kEights * kEight + lane % 4;
    const int col = k / kWarpSize % kEights * kEight + column_at(lane / 4);
    to[k] = make_double2(element(row, col), element(row + 4, col));
  }
}

/// kBlocks eights of columns of y.
template <int kBlocks>
__global__ void __launch_bounds__(kRowThreads, 2)
    update_strips(Columns<double> x, const double* s, std::int64_t s_ld, double* y,
                  std::int64_t y_ld, std::int64_t cols, bool pairs) {
  extern __shared__ __align__(16) double2 shared[];
  const int depth = static_cast<int>((x.cols + kEight - 1) / kEight);
  load_right<kBlocks>(
      depth,
      [&](std::int64_t i, std::int64_t j) {
        return i < x.cols && j < cols ? -s[i + j * s_ld] : -0.0;
      },
      shared);
  __syncthreads();
  const std::int64_t strips = (x.rows + kRows - 1) / kRows;
  for (std::int64_t number = blockIdx.x * std::int64_t{kRowWarps} + tile::warp(); number < strips;
       number += gridDim.x * std::int64_t{kRowWarps}) {
    const Strip strip = strip_of(number, x.rows, pairs);
    double value[kBlocks][4];
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) strip.read(y, y_ld, j * kEight, cols, value[j]);
#pragma unroll 4
    for (int i = 0; i < depth; ++i) {
      double left[4];
      strip.read(x.data, x.ld, i * kEight, x.cols, left);
#pragma unroll
      for (int j = 0; j < kBlocks; ++j)
        tile::multiply_add(value[j], value[j], left,
                           shared[(i * kBlocks + j) * kWarpSize + tile::lane()]);
    }
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) strip.write(y, y_ld, j * kEight, cols, value[j]);
  }
}

template <int kBlocks>
void launch_update(cudaStream_t stream, const Columns<double>& x, const double* s,
                   std::int64_t s_ld, double* y, std::int64_t y_ld, std::int64_t cols) {
  if constexpr (kBlocks < 4) {
    if (cols > kBlocks * kEight)
      return launch_update<2 * kBlocks>(stream, x, s, s_ld, y, y_ld, cols);
  }
  const auto kernel = update_strips<kBlocks>;
  const auto bytes = static_cast<std::size_t>((x.cols + kEight - 1) / kEight * kBlocks) *
                     kWarpSize * sizeof(double2);
  const unsigned blocks = blocks_of(reinterpret_cast<const void*>(kernel), x.rows, bytes);
  const bool pairs = tile::columns_aligned(x.data, x.ld) && tile::columns_aligned(y, y_ld);
  kernel<<<blocks, kRowThreads, bytes, stream>>>(x, s, s_ld, y, y_ld, cols, pairs);
  require_cuda(cudaGetLastError(), "products with rows");
}

constexpr int kRotateEach = 2;  // eights of columns that a warp has at once

/// The rows of kStrips strips lie in shared memory while their places take what they are multiplied
/// to; kGroups warps of each strip share the columns of S that are there.
template <int kStrips, int kGroups>
__global__ void __launch_bounds__(kStrips* kGroups* kWarpSize)
    rotate_strips(Columns<double> x, const double* s, std::int64_t s_ld, std::int64_t cols,
                  bool pairs) {
  extern __shared__ __align__(16) double2 shared[];
  constexpr int kEights = kGroups * kRotateEach;
  const int depth = static_cast<int>((x.cols + kEight - 1) / kEight);
  const int of_strip = 2 * depth * kWarpSize;
  const int group = tile::warp() / kStrips;
  const int number = tile::warp() % kStrips;
  const Strip strip = strip_of(blockIdx.x * std::int64_t{kStrips} + number, x.rows, pairs);
  const WarpRows rows(shared + number * of_strip);
  double2* right = shared + kStrips * of_strip;
  if (group == 0) rows.start(strip, x);
  for (std::int64_t first = 0; first < cols; first += kEights * kEight) {
    load_right<kEights>(
        depth,
        [&](std::int64_t i, std::int64_t j) {
          return i < x.cols && first + j < cols ? s[i + (first + j) * s_ld] : -0.0;
        },
        right);
    if (first == 0) tile::wait_copies<0>();
    __syncthreads();
    const double2* mine = right + group * kRotateEach * kWarpSize + tile::lane();
    double value[kRotateEach][4] = {};
#pragma unroll 4
    for (int i = 0; i < depth; ++i) {
      double left[4];
      rows.read(i, left);
#pragma unroll
      for (int j = 0; j < kRotateEach; ++j)
        tile::multiply_add(value[j], value[j], left, mine[(i * kEights + j) * kWarpSize]);
    }
#pragma unroll
    for (int j = 0; j < kRotateEach; ++j)
      strip.write(const_cast<double*>(x.data), x.ld, first + (group * kRotateEach + j) * kEight,
                  cols, value[j]);
    __syncthreads();
  }
}

/// False where the rows do not find room.
template <int kStrips, int kGroups>
bool launch_rotate(cudaStream_t stream, const Columns<double>& x, const double* s,
                   std::int64_t s_ld, std::int64_t cols) {
  const std::int64_t depth = (x.cols + kEight - 1) / kEight;
  const std::int64_t bytes = depth * (2 * kStrips + kGroups * kRotateEach) * kWarpSize *
                             static_cast<std::int64_t>(sizeof(double2));
  if (bytes > kSharedMost) return false;
  const auto kernel = rotate_strips<kStrips, kGroups>;
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "shared memory of rows");
  kernel<<<blocks_for(x.rows, std::int64_t{kRows} * kStrips), kStrips * kGroups * kWarpSize,
           static_cast<std::size_t>(bytes), stream>>>(x, s, s_ld, cols,
                                                      tile::columns_aligned(x.data, x.ld));
  require_cuda(cudaGetLastError(), "rotated columns");
  return true;
}

}  // namespace

void tensor_solve(cudaStream_t stream, const Columns<double>& x, const double* r, std::int64_t r_ld,
                  double* to, std::int64_t to_ld) {
  if (x.rows == 0 || x.cols == 0) return;
  launch_solve(stream, x, r, r_ld, to, to_ld);
}

void tensor_update(cudaStream_t stream, const Columns<double>& x, const double* s,
                   std::int64_t s_ld, double* y, std::int64_t y_ld, std::int64_t cols) {
  constexpr std::int64_t kWidth = 4 * kEight;
  if (x.rows == 0) return;
  for (std::int64_t j = 0; j < cols; j += kWidth) {
    for (std::int64_t i = 0; i < x.cols; i += kUpdateDepth) {
      const Columns<double> part{x.data + i * x.ld, x.rows, std::min(kUpdateDepth, x.cols - i),
                                 x.ld, nullptr};
      launch_update<1>(stream, part, s + i + j * s_ld, s_ld, y + j * y_ld, y_ld,
                       std::min(kWidth, cols - j));
    }
  }
}

void tensor_rotate(cudaStream_t stream, double* v, std::int64_t ld, std::int64_t rows,
                   const double* s, std::int64_t s_ld, std::int64_t p, std::int64_t q) {
  if (rows == 0 || q == 0) return;
  const Columns<double> x{v, rows, p, ld, nullptr};
  if (p > kTensorRotateColumns)
    throw Error(ErrorKind::misuse, "panel_rotate",
                std::to_string(p) + " columns are more than the " +
                    std::to_string(kTensorRotateColumns) + " that a GPU rotates");
  (void)(launch_rotate<4, 2>(stream, x, s, s_ld, q) || launch_rotate<2, 1>(stream, x, s, s_ld, q) ||
         launch_rotate<1, 1>(stream, x, s, s_ld, q));
}

}  // namespace strata::gram_gpu
