#pragma once
// What the kernels of sweeps share, and how a warp sweeps over a small front. For
// front_sweep_cuda.cu.
//
// Contract: as sweep_branch in front.hpp. m right-hand sides lie by rows.

#include "kernels/fronts/front_parts_cuda.hpp"

namespace strata::front {

using fused_kernel::await;
using fused_kernel::publish;
using fused_kernel::signal;

template <class T, int m>
struct Sweep {
  T* x;      ///< m × n
  T* below;  ///< m × rows of updates
  Branch<T> branch;
  std::int64_t to_x = 0;  ///< elements from call to call
};

/// What all jobs of a sweep need.
template <class T, int m>
struct Fronts {
  const std::int32_t* structure;
  const FrontRecord* records;
  const T* panels;
  const T* inverses;
  T* x;
  T* below;
  T* messages;  ///< of one right-hand side: a place for each row of X
  int* flags;

  __device__ explicit Fronts(const Sweep<T, m>& sweep, int call = 0)
      : structure(sweep.branch.structure),
        records(sweep.branch.records()),
        panels(sweep.branch.panels + call * sweep.branch.to_panels),
        inverses(sweep.branch.inverses(call)),
        x(sweep.x + call * sweep.to_x +
          (sweep.branch.sweep_columns > 0 ? sweep.branch.program().first_column * std::int64_t{m}
                                          : 0)),
        below(sweep.below + call * sweep.branch.to_work),
        messages(sweep.branch.messages(call)),
        flags(sweep.branch.sweep_flags(call)) {}

  [[nodiscard]] __device__ int* signals(int f) const { return flags + kSolveFlags * f; }
  [[nodiscard]] __device__ int* forward(int f) const { return flags + kSolveFlags * f + 1; }
  [[nodiscard]] __device__ int* backward(int f) const { return flags + kSolveFlags * f + 2; }
  [[nodiscard]] __device__ static bool is_small(const FrontRecord& f) {
    return f.width + f.rows <= kSmallFront;
  }
  /// What backward() of a front says when all of it is there, solved: one for what is below it, and
  /// one for each column of tiles.
  [[nodiscard]] __device__ static int all_backward(const FrontRecord& f) {
    return is_small(f) ? 1 : FrontTiles{f.width, f.rows}.across() + 1;
  }
  [[nodiscard]] __device__ const ChildRecord& child(const FrontRecord& f, int c) const {
    return reinterpret_cast<const ChildRecord*>(structure + f.children)[c];
  }
  /// Row `row` of a front: of X, or of what is below.
  [[nodiscard]] __device__ T* row_of(const FrontRecord& f, int row) const {
    return row < f.width ? x + static_cast<std::int64_t>(f.column + row) * m
                         : below + (f.rows_before + row - f.width) * m;
  }
  /// Number n of what is below a front, from its parent; from X where that is in another branch.
  [[nodiscard]] __device__ T from_above(const FrontRecord& f, int n) const {
    const int place = structure[f.places + n / m];
    const T* from =
        f.parent < 0 ? x + static_cast<std::int64_t>(place) * m : row_of(records[f.parent], place);
    return __ldcg(from + n % m);
  }
};

/// Small fronts, by a warp; a lane has rows lane() and lane() + 32.
template <class T, int m>
struct SmallSweep {
  const Fronts<T, m>& fronts;
  T* buffer;  ///< m × kSmallFront

  struct Rows {
    T value[2][m];
    T inverse[2];  ///< of the diagonal of L
  };

  __device__ void read(const FrontRecord& f, Rows& rows) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = lane() + kWarp * h;
      rows.inverse[h] =
          row < f.width ? T{1} / __ldcg(fronts.panels + f.panel + row * (f.ld + 1)) : T{0};
#pragma unroll
      for (int r = 0; r < m; ++r)
        rows.value[h][r] = row < f.width + f.rows ? buffer[row * m + r] : T{0};
    }
  }
  __device__ void write(const FrontRecord& f, const Rows& rows, int end) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = lane() + kWarp * h;
      if (row >= end) continue;
      T* to = fronts.row_of(f, row);
#pragma unroll
      for (int r = 0; r < m; ++r) to[r] = rows.value[h][r];
    }
  }
  [[nodiscard]] __device__ static T of_row(const T (&value)[2], int row) {
    return __shfl_sync(0xffffffffU, row < kWarp ? value[0] : value[1], row % kWarp);
  }
  [[nodiscard]] __device__ T element(const FrontRecord& f, int h, int column) const {
    const int row = lane() + kWarp * h;
    const bool inside = row > column && row < f.width + f.rows && column < f.width;
    return inside ? __ldcg(fronts.panels + f.panel + row + column * f.ld) : T{0};
  }

  __device__ void go_forward(const FrontRecord& f) const {
    for (int n = lane(); n < (f.width + f.rows) * m; n += kWarp)
      buffer[n] = n < f.width * m ? __ldcg(fronts.x + std::int64_t{f.column} * m + n) : T{0};
    __syncwarp();
    for (int c = 0; c < f.child_count; ++c) {
      const ChildRecord& child = fronts.child(f, c);
      if (!child.gives_rows()) continue;
      const T* from = fronts.below + child.rows_before * m;
      for (int n = lane(); n < child.rows * m; n += kWarp)
        buffer[fronts.structure[child.places + n / m] * m + n % m] += __ldcg(from + n);
      __syncwarp();
    }
    Rows rows;
    read(f, rows);
    constexpr int kColumns = 4;  // on their way at once
    for (int first = 0; first < f.width; first += kColumns) {
      T l[kColumns][2];
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        l[k][0] = element(f, 0, first + k);
        l[k][1] = element(f, 1, first + k);
      }
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        const int column = first + k;
        if (column >= f.width) break;
        const T inverse = of_row(rows.inverse, column);
#pragma unroll
        for (int r = 0; r < m; ++r) {
          const T both[2] = {rows.value[0][r], rows.value[1][r]};
          const T solved = of_row(both, column) * inverse;
#pragma unroll
          for (int h = 0; h < 2; ++h)
            rows.value[h][r] =
                lane() + kWarp * h == column ? solved : rows.value[h][r] - l[k][h] * solved;
        }
      }
    }
    write(f, rows, f.width + f.rows);
    __syncwarp();
  }

  __device__ void go_backward(const FrontRecord& f) const {
    for (int n = lane(); n < f.width * m; n += kWarp)
      buffer[n] = __ldcg(fronts.x + std::int64_t{f.column} * m + n);
    if (f.rows > 0) {
      T* to = fronts.below + f.rows_before * m;
      for (int n = lane(); n < f.rows * m; n += kWarp)
        to[n] = buffer[f.width * m + n] = fronts.from_above(f, n);
    }
    __syncwarp();
    Rows rows;
    read(f, rows);
    constexpr int kColumns = 4;
    for (int last = f.width - 1; last >= 0; last -= kColumns) {
      T l[kColumns][2];
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        l[k][0] = last >= k ? element(f, 0, last - k) : T{0};
        l[k][1] = last >= k ? element(f, 1, last - k) : T{0};
      }
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        const int column = last - k;
        if (column < 0) break;
        const T inverse = of_row(rows.inverse, column);
#pragma unroll
        for (int r = 0; r < m; ++r) {
          T sum = l[k][0] * rows.value[0][r] + l[k][1] * rows.value[1][r];
#pragma unroll
          for (int half = kWarp / 2; half > 0; half /= 2)
            sum += __shfl_xor_sync(0xffffffffU, sum, half);
#pragma unroll
          for (int h = 0; h < 2; ++h)
            if (lane() + kWarp * h == column) rows.value[h][r] = (rows.value[h][r] - sum) * inverse;
        }
      }
    }
    write(f, rows, f.width);
    __syncwarp();
  }
};

}  // namespace strata::front
