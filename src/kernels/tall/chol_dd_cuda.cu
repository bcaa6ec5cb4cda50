// chol_dd on a GPU: one block of threads a call.
//
// Method: as the reference, step by step, the elements of a step side by side. Up to 136 columns
// what is left lies in shared memory, column by column of the triangle; beyond, in A itself. A row
// of R goes to A when it is complete, and with pivoting its columns are exchanged there.

#include <algorithm>

#include "device/device_cuda.hpp"
#include "kernels/tall/chol_dd.hpp"

namespace strata {
namespace {

constexpr int kSide = 16;  // threads: kSide rows by kSide · 2 columns
constexpr int kAcross = 32;
constexpr int kThreads = kSide * kAcross;
constexpr int kWarpSize = 32;
constexpr std::int64_t kInShared = 136;  // columns, in 146 KiB; fewer where a block has less

/// The triangle that is left, packed column by column, or in its matrix.
struct Rest {
  DoubleDouble* data;
  std::int64_t ld;  ///< 0: packed

  __device__ DoubleDouble& operator()(std::int64_t i, std::int64_t k) const {
    return data[ld == 0 ? k * (k + 1) / 2 + i : i + k * ld];
  }
};

struct Candidate {
  DoubleDouble value;
  int column;  ///< −1: none
};

/// The better of two, the first of equals.
__device__ Candidate better(const Candidate& a, const Candidate& b) {
  if (b.column < 0) return a;
  if (a.column < 0) return b;
  if (a.value < b.value) return b;
  if (b.value < a.value) return a;
  return a.column < b.column ? a : b;
}

/// By the first warp; all of its threads get it.
__device__ int find_pivot(const Rest& rest, int j, int n) {
  Candidate best{{}, -1};
  for (int k = j + static_cast<int>(threadIdx.x); k < n; k += kWarpSize) {
    const DoubleDouble x = rest(k, k);
    if (is_better_pivot(best.value, best.column >= 0, x)) best = {x, k};
  }
  for (int half = kWarpSize / 2; half > 0; half /= 2) {
    const Candidate other{{__shfl_xor_sync(0xffffffffU, best.value.hi, half),
                           __shfl_xor_sync(0xffffffffU, best.value.lo, half)},
                          __shfl_xor_sync(0xffffffffU, best.column, half)};
    best = better(best, other);
  }
  return best.column < 0 ? j : best.column;
}

__device__ void swap(DoubleDouble& x, DoubleDouble& y) {
  const DoubleDouble first = x;
  x = y;
  y = first;
}

/// Columns j and k, j < k, of what is left and of the rows of R that are done.
__device__ void exchange(const Rest& rest, DoubleDouble* a, std::int64_t ld, int n, int j, int k) {
  for (int l = static_cast<int>(threadIdx.x); l < n; l += kThreads) {
    if (l < j) {
      swap(a[l + j * ld], a[l + k * ld]);
    } else if (l == j) {
      swap(rest(j, j), rest(k, k));
    } else if (l < k) {
      swap(rest(j, l), rest(l, k));
    } else if (l > k) {
      swap(rest(j, l), rest(k, l));
    }
  }
}

/// Row j of R behind its diagonal, into `row` and A.
__device__ void divide_row(const Rest& rest, const DoubleDouble& root, DoubleDouble* row,
                           DoubleDouble* a, std::int64_t ld, int n, int j) {
  for (int k = j + static_cast<int>(threadIdx.x); k < n; k += kThreads) {
    const DoubleDouble x = k == j ? root : rest(j, k) / root;
    row[k] = x;
    a[j + k * ld] = x;
  }
}

__device__ void subtract_products(const Rest& rest, const DoubleDouble* row, int n, int j) {
  const int across = static_cast<int>(threadIdx.x) / kSide;
  const int down = static_cast<int>(threadIdx.x) % kSide;
  for (int k = j + 1 + across; k < n; k += kAcross) {
    const DoubleDouble by = row[k];
    for (int i = j + 1 + down; i <= k; i += kSide) {
      DoubleDouble& x = rest(i, k);
      x = subtract_product(x, row[i], by);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    chol_dd_kernel(DoubleDouble* a, std::int64_t ld, int n, std::int32_t* order,
                   CholDdStatus* status, bool pivoting, bool in_shared) {
  extern __shared__ double2 packed[];
  __shared__ double2 row_memory[kCholDdColumnsMax];
  __shared__ int best;
  auto* row = reinterpret_cast<DoubleDouble*>(row_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const Rest rest = in_shared ? Rest{reinterpret_cast<DoubleDouble*>(packed), 0} : Rest{a, ld};
  for (int k = thread; k < n; k += kThreads) order[k] = k;
  for (int at = thread; at < n * n; at += kThreads) {
    const int i = at % n;
    const int k = at / n;
    if (in_shared && i <= k) rest(i, k) = a[i + k * ld];
    if (i > k) a[i + k * ld] = DoubleDouble();
  }
  CholDdStatus mine;  // every thread's
  __syncthreads();
  int j = 0;
  for (; j < n; ++j) {
    if (pivoting) {
      if (thread < kWarpSize) {
        const int found = find_pivot(rest, j, n);
        if (thread == 0) best = found;
      }
      __syncthreads();
      const int k = best;
      if (k > j) {
        exchange(rest, a, ld, n, j, k);
        if (thread == 0) {
          const std::int32_t first = order[j];
          order[j] = order[k];
          order[k] = first;
        }
        __syncthreads();
      }
    }
    const DoubleDouble pivot = rest(j, j);
    if (!is_pivot(pivot.hi)) {
      mine.bad_column = j;
      mine.bad_pivot = pivot.hi;
      break;
    }
    add_pivot(mine, pivot.hi, j == 0);
    __syncthreads();  // before the pivot is written over, where it lies in A
    divide_row(rest, square_root(pivot), row, a, ld, n, j);
    __syncthreads();
    subtract_products(rest, row, n, j);
    __syncthreads();
  }
  __syncthreads();
  for (int at = thread; at < (n - j) * (n - j); at += kThreads) {
    const int i = j + at % (n - j);
    const int k = j + at / (n - j);
    if (i <= k) a[i + k * ld] = DoubleDouble(i == k ? 1.0 : 0.0);
  }
  if (thread == 0) *status = mine;
}

/// Dynamic shared memory that a block of the kernel can have on this GPU.
std::int64_t shared_bytes_of_block() {
  int gpu = 0;
  int most = 0;
  cudaFuncAttributes attributes{};
  require_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
  require_cuda(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu),
               "shared memory of a block");
  require_cuda(cudaFuncGetAttributes(&attributes, chol_dd_kernel), "cudaFuncGetAttributes");
  return most - static_cast<std::int64_t>(attributes.sharedSizeBytes);
}

}  // namespace

void chol_dd_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  check_chol_dd(calls, parameters);
  cudaStream_t stream = static_cast<CudaQueue&>(queue).stream();
  const std::int64_t room = shared_bytes_of_block();
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const std::int64_t n = x[0].cols;
    const auto packed = static_cast<std::int64_t>(sizeof(DoubleDouble)) * n * (n + 1) / 2;
    const bool in_shared = n <= kInShared && packed <= room;
    const auto bytes = static_cast<std::size_t>(in_shared ? packed : 0);
    require_cuda(cudaFuncSetAttribute(chol_dd_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(bytes)),
                 "shared memory of chol_dd");
    chol_dd_kernel<<<1, kThreads, bytes, stream>>>(
        static_cast<DoubleDouble*>(x[0].data), x[0].ld, static_cast<int>(n),
        static_cast<std::int32_t*>(x[1].data), static_cast<CholDdStatus*>(x[2].data),
        parameters.variant != 0, in_shared);
    require_cuda(cudaGetLastError(), "chol_dd");
  }
}

}  // namespace strata
