#pragma once
// What one thread block does with tiles, 2: products of operands in shared memory.
//
// Contract: as tile_copy_cuda.hpp. Products of doubles run on the tensor cores (mma.m16n8k4.f64:
// 128 FMAs a clock and multiprocessor, measured on an H200). The instruction's rows are renumbered
// so that every thread reads and holds neighbours: of 16 rows a thread has 2g and 2g + 1, of 8
// columns 2t and 2t + 1, with g = lane / 4 and t = lane % 4. Products of floats are plain FMAs on a
// patch of each thread's own.

#include "kernels/backend/tile_copy_cuda.hpp"

namespace strata::tile {

/// C (16 × 8) += A (16 × 4)·B (4 × 8) on the tensor cores. A thread has the rows 2g and 2g + 1 and
/// the columns 2t and 2t + 1 of C, one column of A and one element of B, column g. Which of the 4
/// it is in A and in the rows of B is free, if it is the same.
__device__ inline void multiply_add(double (&c)[4], double a_even, double a_odd, double b) {
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a_even), "d"(a_odd), "d"(b));
}
/// What follows is for results that become operands: of 8 columns a thread has those with the
/// numbers t = lane % 4 and other_column(t). Taken so, neither has bank conflicts in columns that
/// are padded().
__device__ inline int other_column(int t) { return (t ^ 2) + 4; }
/// Which column of B makes column g of the instruction's result, so that the threads have these.
__device__ inline int column_of(int g) { return g % 2 == 0 ? g / 2 : other_column(g / 2); }

/// D = C + A·B with A (16 × 8), C and D as a thread holds its part of a result: rows 2g and 2g + 1,
/// columns t and u = other_column(t), as (2g, t), (2g, u), (2g + 1, t), (2g + 1, u). b: rows t and
/// u of column column_of(g) of B (8 × 8). One instruction, where two of half the depth would wait
/// for each other. D may be C.
__device__ inline void multiply_add(double (&d)[4], const double (&c)[4], const double (&a)[4],
                                    double2 b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%11,%12,%13};"
      : "=d"(d[0]), "=d"(d[1]), "=d"(d[2]), "=d"(d[3])
      : "d"(a[0]), "d"(a[2]), "d"(a[1]), "d"(a[3]), "d"(b.x), "d"(b.y), "d"(c[0]), "d"(c[1]),
        "d"(c[2]), "d"(c[3]));
}

/// The part of a product that one warp holds: kRows × 32, kRows = 16, 32 or 64.
template <class T, int kRows>
struct Accumulator;

template <int kRows>
struct Accumulator<double, kRows> {
  static constexpr int kBlocks = kRows / 16;
  double value[kBlocks][4][4];  // [16 rows][8 columns][2·(row parity) + column parity]

  /// f(row, col, first, second): the elements (row, col) and (row + 1, col); row is even.
  template <class F>
  __device__ void each_pair(F&& f) {
    const int g = lane() / 4;
    const int t = lane() % 4;
#pragma unroll
    for (int mi = 0; mi < kBlocks; ++mi) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        f(16 * mi + 2 * g, c / 2 * 8 + 2 * t + c % 2, value[mi][c / 2][c % 2],
          value[mi][c / 2][c % 2 + 2]);
      }
    }
  }

  static constexpr int kStep = 4;  // of k, one instruction deep

  /// The operands of one step.
  struct Fragment {
    double a[kBlocks][2];  // rows 2g, 2g + 1 of each 16, at k + t
    double b[4];           // column g of each 8, at k + t
  };

  /// A is kRows × kStep, B 32 × kStep, in shared memory.
  __device__ static void read(Fragment& fragment, const double* a, int lda, const double* b,
                              int ldb) {
    const int g = lane() / 4;
    const int t = lane() % 4;
#pragma unroll
    for (int mi = 0; mi < kBlocks; ++mi) {
      const auto pair = *reinterpret_cast<const double2*>(a + 16 * mi + 2 * g + t * lda);
      fragment.a[mi][0] = pair.x;
      fragment.a[mi][1] = pair.y;
    }
#pragma unroll
    for (int ni = 0; ni < 4; ++ni) fragment.b[ni] = b[8 * ni + g + t * ldb];
  }

  /// += A·Bᵀ.
  __device__ void multiply(const Fragment& fragment) {
#pragma unroll
    for (int mi = 0; mi < kBlocks; ++mi) {
#pragma unroll
      for (int ni = 0; ni < 4; ++ni) {
        multiply_add(value[mi][ni], fragment.a[mi][0], fragment.a[mi][1], fragment.b[ni]);
      }
    }
  }
};

template <int kRows>
struct Accumulator<float, kRows> {
  static constexpr int kVector = kRows >= 32 ? 4 : kRows / 8;  // neighbouring rows of a thread
  static constexpr int kGroups = kRows / (8 * kVector);
  static constexpr int kThreadRows = kVector * kGroups;
  float value[kThreadRows][8];

  template <class F>
  __device__ void each_pair(F&& f) {
    const int tr = lane() % 8;
    const int tc = lane() / 8;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
#pragma unroll
      for (int u = 0; u < kThreadRows; u += 2) {
        f(8 * kVector * (u / kVector) + kVector * tr + u % kVector, 16 * (v / 4) + 4 * tc + v % 4,
          value[u][v], value[u + 1][v]);
      }
    }
  }

  static constexpr int kStep = 1;

  struct Fragment {
    float a[kThreadRows];
    float b[8];
  };

  __device__ static void read(Fragment& fragment, const float* a, int, const float* b, int) {
    a += kVector * (lane() % 8);
    b += 4 * (lane() / 8);
#pragma unroll
    for (int h = 0; h < kGroups; ++h) {
      const float* from = a + 8 * kVector * h;
      if constexpr (kVector == 4) {
        const auto four = *reinterpret_cast<const float4*>(from);
        fragment.a[4 * h] = four.x;
        fragment.a[4 * h + 1] = four.y;
        fragment.a[4 * h + 2] = four.z;
        fragment.a[4 * h + 3] = four.w;
      } else {
        const auto two = *reinterpret_cast<const float2*>(from);
        fragment.a[0] = two.x;
        fragment.a[1] = two.y;
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const auto four = *reinterpret_cast<const float4*>(b + 16 * h);
      fragment.b[4 * h] = four.x;
      fragment.b[4 * h + 1] = four.y;
      fragment.b[4 * h + 2] = four.z;
      fragment.b[4 * h + 3] = four.w;
    }
  }

  __device__ void multiply(const Fragment& fragment) {
#pragma unroll
    for (int u = 0; u < kThreadRows; ++u) {
#pragma unroll
      for (int v = 0; v < 8; ++v) value[u][v] += fragment.a[u] * fragment.b[v];
    }
  }
};

/// sum += A·Bᵀ for kRows × kInner and 32 × kInner in shared memory.
template <int kInner, class T, int kRows>
__device__ inline void multiply(Accumulator<T, kRows>& sum, const T* a, int lda, const T* b,
                                int ldb) {
  using Sum = Accumulator<T, kRows>;
  constexpr int kSteps = kInner / Sum::kStep;
  typename Sum::Fragment fragment[2];  // one is read while the other is used
  Sum::read(fragment[0], a, lda, b, ldb);
#pragma unroll 4
  for (int step = 0; step < kSteps - 1; ++step) {
    a += Sum::kStep * lda;
    b += Sum::kStep * ldb;
    Sum::read(fragment[(step + 1) % 2], a, lda, b, ldb);
    sum.multiply(fragment[step % 2]);
  }
  sum.multiply(fragment[(kSteps - 1) % 2]);
}

template <class T, int kRows>
__device__ inline void set_zero(Accumulator<T, kRows>& sum) {
  sum.each_pair([](int, int, T& first, T& second) { first = second = T{0}; });
}

}  // namespace strata::tile
