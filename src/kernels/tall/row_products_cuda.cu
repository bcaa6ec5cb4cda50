// Products with the rows of tall matrices, in fp64 on the tensor cores (row_strip_cuda.hpp).
// Memory is read and written in whole lines.

#include "kernels/tall/row_products_cuda.hpp"
#include "kernels/tall/row_strip_cuda.hpp"

namespace strata::gram_gpu {
namespace {

/// The rows of a warp in shared memory, as its threads have them.
class WarpRows {
 public:
  __device__ explicit WarpRows(double2* of_warp) : own_(of_warp + tile::lane()) {}

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

 private:
  double2* own_;
};

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

constexpr int kSharedMost = 225 << 10;

constexpr std::int64_t kUpdateDepth = 256;  // columns of x of a launch

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
  const unsigned blocks =
      blocks_of(reinterpret_cast<const void*>(kernel), kRowThreads, x.rows, bytes);
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
