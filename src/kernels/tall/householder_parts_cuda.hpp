#pragma once
// What the kernels of householder.hpp on a GPU share: operands of a launch, sums in lanes, one
// reflection's numbers. Included by .cu files only.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/tall/householder.hpp"
#include "scalar/double_double.hpp"

namespace strata::householder_cuda {

inline constexpr int kWarpSize = 32;
static_assert(kHouseholderLanes == kWarpSize);

/// Column-major.
struct Rows {
  void* data = nullptr;
  std::int64_t ld = 0;
};

/// A level of the tree of one call: `rows` rows are cut into panels, whose triangles go to, or
/// whose rows of [C; 0] come from, rows p·n … of `small`. From row `split` on they lie in the
/// second of two places, as those of stacked triangles do. Q·C goes to `to`, in two places as well.
struct Level {
  Rows from[2];
  Rows to[2];
  Rows small;
  std::int64_t rows = 0;
  std::int64_t split = 0;

  template <class T>
  __device__ const T* element(std::int64_t r) const {
    return r < split ? static_cast<const T*>(from[0].data) + r
                     : static_cast<const T*>(from[1].data) + (r - split);
  }
  template <class T>
  __device__ T* result(std::int64_t r) const {
    return r < split ? static_cast<T*>(to[0].data) + r : static_cast<T*>(to[1].data) + (r - split);
  }
  __device__ std::int64_t from_ld(std::int64_t r) const { return from[r < split ? 0 : 1].ld; }
  __device__ std::int64_t to_ld(std::int64_t r) const { return to[r < split ? 0 : 1].ld; }
  __device__ double* triangle(std::int64_t panel, std::int64_t n) const {
    return static_cast<double*>(small.data) + panel * n;
  }
};

/// The calls of a launch, which are its parameters: 32764 bytes of them are allowed.
inline constexpr int kBatch = 256;
struct Batch {
  Level of[kBatch];
};
static_assert(sizeof(Batch) <= 32000);

/// Whether this thread block has a panel: calls with fewer than others have none in the last ones.
__device__ inline bool is_panel(const Level& level, int height) {
  return blockIdx.x == 0 || static_cast<std::int64_t>(blockIdx.x) * height < level.rows;
}

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarpSize; }

/// The lanes of a warp added by halves; every thread has the sum.
__device__ inline double sum_of_lanes(double x) {
#pragma unroll
  for (int half = kWarpSize / 2; half > 0; half /= 2)
    x = rounded_sum(x, __shfl_xor_sync(0xffffffffU, x, half));
  return x;
}

/// 2^-e of the contract, and 2^e, for the exponent field of the largest element.
struct Scaling {
  double down;
  double up;
};
__device__ inline Scaling scaling_of(int field) {
  const int of_power = max(2046 - field, 1);
  // 2^-1023 is subnormal.
  const long long inverse =
      of_power < 2046 ? static_cast<long long>(2046 - of_power) << 52 : 1LL << 51;
  return {__longlong_as_double(static_cast<long long>(of_power) << 52),
          __longlong_as_double(inverse)};
}
/// The high word of |x|, which orders magnitudes by their exponents.
__device__ inline unsigned high_word(double x) {
  return static_cast<unsigned>(__double2hiint(x)) & 0x7fffffffU;
}
/// The exponent field of the largest magnitude in a warp; each lane has the high word of its own.
__device__ inline int largest_field(unsigned high) {
  return static_cast<int>(__reduce_max_sync(0xffffffffU, high) >> 20);
}

/// τ, the factor s of y below row j, and R_jj; x, y: x_j and y_j.
struct Reflection {
  double tau;
  double scale;
  double diagonal;
};
__device__ inline Reflection reflection_of(double x, double y, double sigma, double up) {
  const double length = __dsqrt_rn(fused(y, y, sigma));
  const double beta = y >= 0 ? -length : length;
  const double divisor = rounded_sum(y, -beta);
  const bool none = sigma == 0;
  return {none ? 0 : rounded_quotient(-divisor, beta), none ? 0 : __drcp_rn(divisor),
          none ? x : rounded_product(beta, up)};
}

}  // namespace strata::householder_cuda
