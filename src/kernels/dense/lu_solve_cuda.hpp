#pragma once
// Solves with a panel's unit lower triangle by a thread block, its columns in shared memory.
//
// Contract: X ← L⁻¹·X, L of order at most kSolveMost in global memory. Every element has its
// products taken off in the order of the columns of L, one rounding each (of complex numbers four
// columns at a time, by their parts). Only for lu_columns_cuda.cu.
//
// Method: a warp has kStrip rows of X. It keeps them in registers while it takes the products with
// the rows above off them, by tensor cores in fp64 and complex128, as soon as those are solved; a
// barrier a strip tells that. Then it solves them itself, a lane a column, or half of one. So from
// strip to strip it takes one product of kStrip rows and a substitution of that order. Substitution
// throughout: with inverses of triangles the residual would grow with their condition (Higham,
// "Accuracy and Stability of Numerical Algorithms", 2nd edition, section 14.2).

#include "kernels/dense/lu_memory_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"
#include "kernels/dense/lu_rows_cuda.hpp"

namespace strata::lu_cuda {

inline constexpr int kSolveMost = 256;
inline constexpr int kStrip = 16;
inline constexpr int kSolveWarps = kSolveMost / kStrip;
inline constexpr int kSolveThreads = kSolveWarps * 32;

/// Columns of X that a thread block has in shared memory.
template <class T>
inline constexpr int kSolveColumns = sizeof(T) == 16 ? 16 : 32;
/// From row to row of X there: rows that tensor cores read at once lie in other banks, and each
/// begins at a multiple of 16 bytes.
template <class T>
inline constexpr int kSolveStride = kSolveColumns<T> + 32 / static_cast<int>(sizeof(T));

/// Rows of X that a warp has, by tensor cores. A lane has rows 2g and 2g + 1 and the columns 2t and
/// 2t + 1 of each eight, g = lane / 4, t = lane % 4.
template <class T, bool kTensor>
class StripRows {
 public:
  static constexpr int kOwnElements = 0;  // of shared memory
  __device__ explicit StripRows(T*) {}

  /// kStrip columns of L, from `l` on; rows from `rows` on are zeros, and those from the diagonal
  /// up of a block that it crosses.
  __device__ __forceinline__ void fetch(const T* l, std::int64_t ld, int rows, bool diagonal) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = 2 * g() + h;
        const int col = kStep * s + t();
        const bool here = row < rows && (!diagonal || col < row);
        next_[s][h] = here ? -load_global(l + row + col * ld) : T{};
      }
    }
  }
  /// What was fetched, column by column.
  __device__ __forceinline__ void put_fetched(T* triangle) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int h = 0; h < 2; ++h) triangle[(kStep * s + t()) * kStrip + 2 * g() + h] = -next_[s][h];
  }
  __device__ __forceinline__ void take_fetched() {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      l_[s][0] = next_[s][0];
      l_[s][1] = next_[s][1];
    }
  }
  /// Takes off their products with kStrip rows of X.
  __device__ __forceinline__ void subtract(const T* x) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int e = 0; e < kEights; ++e)
        Tensor::add(sum_[e], l_[s], x[(kStep * s + t()) * kSolveStride<T> + 8 * e + g()]);
    }
  }
  __device__ __forceinline__ void read(const T* x) {
    each(x, [](const T& from, auto&&... parts) { split(from, parts...); });
  }
  __device__ __forceinline__ void write(T* x) {
    each(x, [](T& to, auto&&... parts) { to = T(parts...); });
  }

 private:
  using Tensor = TensorProduct<T>;
  static constexpr int kParts = Tensor::kParts;
  static constexpr int kEights = kSolveColumns<T> / 8;
  static constexpr int kStep = 4;
  static constexpr int kSteps = kStrip / kStep;
  static __device__ int g() { return static_cast<int>(threadIdx.x % 32) / 4; }
  static __device__ int t() { return static_cast<int>(threadIdx.x % 4); }
  static __device__ void split(const T& from, double& real) { real = from; }
  static __device__ void split(const T& from, double& real, double& imaginary) {
    real = from.real();
    imaginary = from.imag();
  }
  template <class X, class F>
  __device__ __forceinline__ void each(X* x, F&& f) {
#pragma unroll
    for (int e = 0; e < kEights; ++e) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        X& element = x[(2 * g() + i / 2) * kSolveStride<T> + 8 * e + 2 * t() + i % 2];
        if constexpr (kParts == 2)
          f(element, sum_[e][0][i], sum_[e][1][i]);
        else
          f(element, sum_[e][0][i]);
      }
    }
  }

  double sum_[kEights][kParts][4];
  T l_[kSteps][2];  // negated
  T next_[kSteps][2];
};

/// By plain sums: a lane has 4 rows and an eighth of the columns.
template <class T>
class StripRows<T, false> {
 public:
  static constexpr int kOwnElements = kStrip * kStrip;
  __device__ explicit StripRows(T* own) : own_(own) {}

  __device__ __forceinline__ void fetch(const T* l, std::int64_t ld, int rows, bool diagonal) {
    const int row = lane() % kStrip;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int col = lane() / kStrip + 2 * i;
      const bool here = row < rows && (!diagonal || col < row);
      next_[i] = here ? load_global(l + row + col * ld) : T{};
    }
  }
  __device__ __forceinline__ void put_fetched(T* triangle) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) triangle[lane() + 32 * i] = next_[i];
  }
  __device__ __forceinline__ void take_fetched() {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kEach; ++i) own_[lane() + 32 * i] = next_[i];
    __syncwarp();
  }
  __device__ __forceinline__ void subtract(const T* x) {
#pragma unroll 4
    for (int k = 0; k < kStrip; ++k) {
      T factor[kRows];
      T above[kColumns];
#pragma unroll
      for (int r = 0; r < kRows; r += kChunk<T>)
        load_chunk(factor + r, own_ + k * kStrip + first_row() + r);
#pragma unroll
      for (int c = 0; c < kColumns; c += kChunk<T>)
        load_chunk(above + c, x + k * kSolveStride<T> + first_column() + c);
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int c = 0; c < kColumns; ++c) subtract_product(sum_[r][c], factor[r], above[c]);
    }
  }
  __device__ __forceinline__ void read(const T* x) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kColumns; c += kChunk<T>)
        load_chunk(&sum_[r][c], x + (first_row() + r) * kSolveStride<T> + first_column() + c);
  }
  __device__ __forceinline__ void write(T* x) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kColumns; c += kChunk<T>)
        store_chunk(x + (first_row() + r) * kSolveStride<T> + first_column() + c, &sum_[r][c]);
  }

 private:
  static constexpr int kRows = 4;
  static constexpr int kColumns = kSolveColumns<T> / 8;
  static constexpr int kEach = kStrip * kStrip / 32;
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static __device__ int first_row() { return lane() / 8 * kRows; }
  static __device__ int first_column() { return lane() % 8 * kColumns; }

  T* own_;  // kStrip columns of L, of this warp
  T sum_[kRows][kColumns];
  T next_[kEach];
};

/// The shared memory of a solve.
template <class T>
struct SolveMemory {
  using Rows = StripRows<T, kTensorCores<T>>;
  static constexpr int kTriangle = kStrip * kStrip;
  static constexpr int kStride = kSolveStride<T>;
  static constexpr int kBarrierBytes = kSolveWarps * 8;

  unsigned barriers;  // a strip each, their address in shared memory
  T* x;               // kSolveStride<T> from row to row
  T* triangle;        // of the strip that is solved, column by column
  T* own;             // of this warp

  static __host__ __device__ int rows_of(int order) {
    return (order + kStrip - 1) / kStrip * kStrip;
  }
  static __host__ int bytes(int order) {
    return kBarrierBytes +
           (rows_of(order) * kStride + kTriangle + kSolveWarps * Rows::kOwnElements) *
               static_cast<int>(sizeof(T));
  }
  __device__ SolveMemory(unsigned char* memory, int order)
      : barriers(static_cast<unsigned>(__cvta_generic_to_shared(memory))),
        x(reinterpret_cast<T*>(memory + kBarrierBytes)),
        triangle(x + rows_of(order) * kStride),
        own(triangle + kTriangle + static_cast<int>(threadIdx.x / 32) * Rows::kOwnElements) {}

  /// Before the barrier with which the solve begins.
  __device__ void start() const {
    if (threadIdx.x >= kSolveWarps) return;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + 8U * threadIdx.x)
                 : "memory");
  }
  /// By one lane, once its warp has written a strip.
  __device__ void tell(int strip) const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barriers +
                                                                  8U * static_cast<unsigned>(strip))
                 : "memory");
  }
  __device__ void wait_for(int strip) const {
    const unsigned barrier = barriers + 8U * static_cast<unsigned>(strip);
    unsigned done = 0;
    do {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
          "selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(barrier)
          : "memory");
    } while (done == 0);
  }
};

/// By a warp: a strip of X by the triangle in shared memory.
template <class T>
__device__ __forceinline__ void substitute(const T* triangle, T* rows) {
  constexpr int kColumns = kSolveColumns<T>;
  constexpr int kParts = 32 / kColumns;  // lanes of a column; each has every kParts-th row
  constexpr int kOwn = kStrip / kParts;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int column = lane % kColumns;
  const int part = lane / kColumns;
  T x[kOwn];
#pragma unroll
  for (int q = 0; q < kOwn; ++q) x[q] = rows[(kParts * q + part) * kSolveStride<T> + column];
  // The next column of the triangle is on its way while one is used.
  T factors[2][kOwn];
  const auto read = [&](int k) {
#pragma unroll
    for (int q = k / kParts; q < kOwn; ++q)
      factors[k % 2][q] = triangle[k * kStrip + kParts * q + part];
  };
  read(0);
#pragma unroll
  for (int k = 0; k + 1 < kStrip; ++k) {
    if (k + 2 < kStrip) read(k + 1);
    T above = x[k / kParts];
    if constexpr (kParts > 1) above = from_lane(above, column + kColumns * (k % kParts));
#pragma unroll
    for (int q = k / kParts; q < kOwn; ++q)
      if (kParts == 1 ? q > k : kParts * q + part > k)
        subtract_product(x[q], factors[k % 2][q], above);
  }
#pragma unroll
  for (int q = 0; q < kOwn; ++q) rows[(kParts * q + part) * kSolveStride<T> + column] = x[q];
}

/// Rows of X from `order` to the next multiple of kStrip are zeros. Begins and ends with a barrier;
/// once a launch.
template <class T>
__device__ __forceinline__ void solve_in_shared(const T* l, std::int64_t ld, int order,
                                                const SolveMemory<T>& memory) {
  constexpr int kStripElements = kStrip * kSolveStride<T>;
  const int warp = static_cast<int>(threadIdx.x / 32);
  memory.start();
  __syncthreads();
  if (warp * kStrip < order) {
    const T* own_l = l + warp * kStrip;
    const int rows = order - warp * kStrip;  // and more than kStrip, most often
    T* own_rows = memory.x + warp * kStripElements;
    typename SolveMemory<T>::Rows sums(memory.own);
    sums.fetch(own_l, ld, rows, warp == 0);
    if (warp > 0) {
      sums.read(own_rows);
      for (int s = 0; s < warp; ++s) {
        sums.take_fetched();
        sums.fetch(own_l + (s + 1) * kStrip * ld, ld, rows, s + 1 == warp);
        memory.wait_for(s);
        sums.subtract(memory.x + s * kStripElements);
      }
      sums.write(own_rows);
    }
    // The strip before was solved: nobody reads its triangle any more.
    sums.put_fetched(memory.triangle);
    __syncwarp();
    substitute(memory.triangle, own_rows);
    __syncwarp();
    if (threadIdx.x % 32 == 0) memory.tell(warp);
  }
  __syncthreads();
}

}  // namespace strata::lu_cuda
