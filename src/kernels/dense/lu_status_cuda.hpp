#pragma once
// What elimination looks at before and after it factors a matrix, on the GPU.
//
// Contract: PanelStatus (getrf.hpp) from what many threads note. Only for *_cuda.cu.

#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"

namespace strata::lu_cuda {

/// PanelStatus while threads add to it. Sizes as bits, which order them as numbers.
struct Findings {
  unsigned long long largest;
  unsigned long long smallest_pivot;
  int zero_pivot;
  int not_finite;
};
inline constexpr std::int64_t kFindingsBytes = 32;
static_assert(sizeof(Findings) <= kFindingsBytes);

[[nodiscard]] __device__ __forceinline__ Findings no_findings() {
  return {0, static_cast<unsigned long long>(__double_as_longlong(INFINITY)), INT_MAX, INT_MAX};
}
[[nodiscard]] __device__ __forceinline__ PanelStatus status_of(const Findings& findings) {
  const auto column = [](int j) { return j == INT_MAX ? -1.0 : static_cast<double>(j); };
  return {column(findings.zero_pivot), column(findings.not_finite),
          __longlong_as_double(static_cast<long long>(findings.largest)),
          __longlong_as_double(static_cast<long long>(findings.smallest_pivot))};
}

template <class T>
[[nodiscard]] __device__ __forceinline__ bool parts_are_finite(const T& x) {
  if constexpr (is_complex_v<T>)
    return isfinite(x.real()) && isfinite(x.imag());
  else
    return isfinite(x);
}
/// The size of an element, at most the largest number of T; infinity where a part is not finite.
template <class T>
[[nodiscard]] __device__ __forceinline__ double noted_size(const T& x) {
  constexpr double kMost = std::numeric_limits<RealOf<T>>::max();
  return parts_are_finite(x) ? fmin(static_cast<double>(size_of(x)), kMost) : INFINITY;
}

/// By all threads of a warp: the largest of what its lanes met.
__device__ __forceinline__ void note_largest(double largest, Findings* findings) {
  for (int d = 16; d > 0; d /= 2) largest = fmax(largest, __shfl_xor_sync(0xffffffffU, largest, d));
  if (threadIdx.x % 32 == 0)
    atomicMax(&findings->largest, static_cast<unsigned long long>(__double_as_longlong(largest)));
}
/// Element j of the diagonal of U.
template <class T>
__device__ __forceinline__ void note_pivot(const T& pivot, int j, Findings* findings) {
  const auto size = static_cast<double>(size_of(pivot));
  if (size == 0) atomicMin(&findings->zero_pivot, j);
  atomicMin(&findings->smallest_pivot, static_cast<unsigned long long>(__double_as_longlong(size)));
}

/// By all threads of a block of kThreads: rows begin … end − 1 of columns j, j + step … of a panel
/// of `cols` columns whose diagonal begins at row `first`. Before elimination it is the largest of
/// the elements from there on, afterwards those of U, its diagonal, and what is not finite.
template <int kThreads, class T>
__device__ __forceinline__ void note_columns(const T* a, std::int64_t ld, std::int64_t begin,
                                             std::int64_t end, std::int64_t first, std::int64_t j,
                                             std::int64_t step, std::int64_t cols, bool afterwards,
                                             Findings* findings) {
  double largest = 0;
  for (; j < cols; j += step) {
    bool bad = false;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
      if (!afterwards && i < first) continue;
      const T value = a[i + j * ld];
      bad = bad || !parts_are_finite(value);
      if (!afterwards || i <= first + j) largest = fmax(largest, noted_size(value));
      if (afterwards && i == first + j) note_pivot(value, static_cast<int>(j), findings);
    }
    if (afterwards && bad) atomicMin(&findings->not_finite, static_cast<int>(j));
  }
  note_largest(largest, findings);
}

}  // namespace strata::lu_cuda
