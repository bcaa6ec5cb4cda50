#pragma once
// The rows of a thread block that factors a panel of LU, in registers, and the products that are
// taken off them.
//
// Contract: load() brings a group of columns up to date with all columns on its left. Every element
// has its products taken off in the order of those columns, by tensor cores in fp64 and complex128.
// Only for *_cuda.cu.

#include "kernels/dense/lu_memory_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"
#include "kernels/dense/tile_product_cuda.hpp"

namespace strata::lu_cuda {

/// C (16 × 8) += A (16 × 4)·B (4 × 8) by tile::multiply_add, of complex numbers by their parts:
/// c[0], c[1] are the real and the imaginary part.
template <class T>
struct TensorProduct {
  using Sum = double[4];
  static constexpr int kParts = is_complex_v<T> ? 2 : 1;
  /// a, b: this thread's elements of A and B.
  static __device__ __forceinline__ void add(Sum (&c)[kParts], const T (&a)[2], const T& b) {
    if constexpr (is_complex_v<T>) {
      tile::multiply_add(c[0], a[0].real(), a[1].real(), b.real());
      tile::multiply_add(c[1], a[0].real(), a[1].real(), b.imag());
      tile::multiply_add(c[0], a[0].imag(), a[1].imag(), -b.imag());
      tile::multiply_add(c[1], a[0].imag(), a[1].imag(), b.real());
    } else {
      tile::multiply_add(c[0], a[0], a[1], b);
    }
  }
};

/// Rows of a thread: kThreads apart.
template <class T, int kWide, int kRows, class Group>
class PanelRows {
 protected:
  using Memory = PanelMemory<T, kWide, Group>;
  static constexpr int kThreads = Group::kThreads;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kStride = Memory::kStride;
  static constexpr int kNone = -1;
  // Tensor cores multiply blocks of 16 rows, 8 columns and kStep inner indices. The elements of
  // kStages products are on their way.
  using Tensor = TensorProduct<T>;
  static constexpr int kParts = Tensor::kParts;
  static constexpr int kBlocks = kRows * 2;
  static constexpr int kEights = kWide / 8;
  static constexpr int kStep = 4;
  static constexpr int kStageBytes = kBlocks * 2 * static_cast<int>(sizeof(T));
  static constexpr int kStages = kStageBytes <= 32 ? 8 : kStageBytes <= 128 ? 2 : 1;

  /// `columns`: of the panel, or more, by which the memory is dealt out.
  __device__ PanelRows(const Panel<T>& panel, unsigned char* memory, int columns)
      : p(panel),
        shared(memory, columns),
        group(panel, shared.messages, shared.barriers),
        rank(group.rank()) {}

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static __device__ int warp() { return static_cast<int>(threadIdx.x / 32); }
  __device__ int row_of(int r) const { return rank * p.rows_each + r * kThreads + thread(); }
  __device__ bool has_row(int r) const {
    return r * kThreads + thread() < p.rows_each && row_of(r) < p.rows;
  }
  __device__ T* at(int row, int col) const { return p.a + row + col * p.ld; }

  /// The group's columns, up to date, and where their rows are: none those of earlier groups.
  __device__ __forceinline__ void load(int c0, int width) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool here = has_row(r) && row_of(r) >= c0;
      place[r] = here ? row_of(r) : kNone;
    }
    if (c0 > 0) load_u(c0, width);
    if constexpr (kTensorCores<T>) {
      if (c0 > 0) return multiply(c0, width);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const T* from = at(row_of(r), c0);
#pragma unroll
      for (int c = 0; c < kWide; ++c) {
        a[r][c] = place[r] != kNone && c < width ? load_global(from) : T{};
        from += p.ld;
      }
    }
    if constexpr (!kTensorCores<T>) {
      if (c0 > 0) take_products(c0);
    }
  }

  __device__ __forceinline__ void load_u(int c0, int width) {
    constexpr int kEach = kWide / kWarps;  // columns of a warp
#pragma unroll 4
    for (int row = lane(); row < c0; row += 32) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int col = i * kWarps + warp();
        const T value = col < width ? load_global(at(row, c0 + col)) : T{};
        shared.u[row * kStride + col] = kTensorCores<T> ? -value : value;
      }
    }
    __syncthreads();
  }

  /// The group's columns minus L·U, by the tensor cores: the warp's rows of each r are two blocks
  /// of theirs.
  __device__ __forceinline__ void multiply(int c0, int width) {
    const int g = lane() / 4;
    const int t = lane() % 4;
    if (warp() * kWarpRows >= p.rows_each) return zero();
    const int row0 = rank * p.rows_each + warp() * kWarpRows + g;
    const T* here = at(row0, 0);
    const auto offset = [](int b, int h) { return b / 2 * kThreads + b % 2 * 16 + h * 8; };
    // In the place of rows that are not there the last one is read. They are not stored.
    const int last = p.rows - 1 - row0;
    const auto read = [&](int b, int h, const T* column) {
      return load_global(column + min(offset(b, h), last));
    };
    double c[kBlocks][kEights][kParts][4];
#pragma unroll
    for (int e = 0; e < kEights; ++e) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const T* column = at(row0, c0 + e * 8 + 2 * t + i);
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int col = e * 8 + 2 * t + i;
            const T value = col < width ? read(b, h, column) : T{};
            if constexpr (is_complex_v<T>) {
              c[b][e][0][2 * h + i] = value.real();
              c[b][e][1][2 * h + i] = value.imag();
            } else {
              c[b][e][0][2 * h + i] = value;
            }
          }
        }
      }
    }
    T l[kStages][kBlocks][2];  // elements that are on their way
    const T* next = here + t * p.ld;
    const std::int64_t to_next = kStep * p.ld;
    const auto fetch = [&](int s) {
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
#pragma unroll
        for (int h = 0; h < 2; ++h) l[s][b][h] = read(b, h, next);
      }
      next += to_next;
    };
    const auto step = [&](int s, int k) {
      const T* u = shared.u + (k + t) * kStride + g;
#pragma unroll
      for (int e = 0; e < kEights; ++e) {
        const T b = u[e * 8];
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) Tensor::add(c[i][e], l[s][i], b);
      }
    };
    // c0 is a multiple of eight.
#pragma unroll
    for (int s = 0; s < kStages; ++s)
      if (s * kStep < c0) fetch(s);
    for (int k = 0; k < c0; k += kStages * kStep) {
#pragma unroll
      for (int s = 0; s < kStages; ++s) {
        const int now = k + s * kStep;
        if (now >= c0) continue;
        step(s, now);
        if (now + kStages * kStep < c0) fetch(s);
      }
    }
    give(c);
  }

  /// Results of tensor cores go to the threads that have the rows.
  __device__ __forceinline__ void give(const double (&c)[kBlocks][kEights][kParts][4]) {
    const int g = lane() / 4;
    const int t = lane() % 4;
    constexpr int kColumn = Memory::kResultStride;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      __syncwarp();
#pragma unroll
      for (int b = 0; b < 2; ++b)
#pragma unroll
        for (int e = 0; e < kEights; ++e)
#pragma unroll
          for (int part = 0; part < kParts; ++part)
#pragma unroll
            for (int i = 0; i < 4; ++i)
              shared.result[((e * 8 + 2 * t + i % 2) * kParts + part) * kColumn + b * 16 +
                            i / 2 * 8 + g] = c[r * 2 + b][e][part][i];
      __syncwarp();
#pragma unroll
      for (int col = 0; col < kWide; ++col) {
        const double* from = shared.result + col * kParts * kColumn + lane();
        if constexpr (is_complex_v<T>)
          a[r][col] = T(from[0], from[kColumn]);
        else
          a[r][col] = static_cast<T>(from[0]);
      }
    }
  }

  /// Rows of a warp that has none.
  __device__ __forceinline__ void zero() {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kWide; ++c) a[r][c] = T{};
  }

  /// The same by plain sums, in the threads that have the rows.
  __device__ __forceinline__ void take_products(int c0) {
    const T* l[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) l[r] = at(place[r] != kNone ? row_of(r) : c0, 0);
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

  const Panel<T>& p;
  Memory shared;
  Group group;
  int rank;
  T a[kRows][kWide];
  int place[kRows];  // where these rows are now
};

}  // namespace strata::lu_cuda
