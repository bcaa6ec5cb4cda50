#pragma once
// What one thread block does with tiles, 4: factor 64 columns led by one warp; the choice among the
// ways to factor them.
//
// Contract: as tile_factor_cuda.hpp.

#include "kernels/tile_factor_cuda.hpp"

namespace strata::tile {

/// Where the warps that factor a panel tell each other how far they are. Each barrier is passed
/// once a panel.
struct PanelBarriers {
  static constexpr int kSteps = kSolve / 8;
  static constexpr int kDiagonalWarps = kSolve / kRowsPerWarp;  // which have rows of the diagonal

  unsigned long long inverted[kSteps];                ///< the inverse of that block is there
  unsigned long long solved[kSteps][kDiagonalWarps];  ///< the block's columns in a warp's rows are

  /// By all threads of a block, before a barrier of theirs.
  __device__ void init() {
    constexpr int kAll = kSteps * (1 + kDiagonalWarps);
    if (threadIdx.x < kAll) init_barrier(inverted + threadIdx.x, 1);
  }
};

/// Of lane 0, after what all lanes have written.
__device__ inline void arrive_by_warp(unsigned long long* barrier) {
  __syncwarp();
  if (lane() == 0) arrive(barrier);
}

/// What a warp makes of a diagonal block.
struct InvertedBlock {
  double2 row;  ///< elements t and other_column(t) of row column_of(g) of the inverse
  double root;  ///< L_mm for m = lane % 8
};

/// The inverse of the factor of `block`. Its columns t and other_column(t) are made by each thread while
/// those of the factor come: at the end little is left to wait for. A bad pivot goes to
/// report(column of the block, pivot).
template <class Report>
__device__ __forceinline__ InvertedBlock invert_block(const double* block, Report&& report) {
  const int row = column_of(lane() / 4);
  const int t = lane() % 4;
  InvertedBlock result;
  Diagonal<8> diagonal;
  diagonal.read(block, 8);
  double rest[2][8];  // of the unit vectors, less what the solved elements take
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    rest[0][i] = i == t ? 1.0 : 0.0;
    rest[1][i] = i == other_column(t) ? 1.0 : 0.0;
  }
  const bool safe = diagonal.factor_pairs([&](int j) {
    const double left = rest[0][j] * diagonal.inverse[j];
    const double right = rest[1][j] * diagonal.inverse[j];
    if (row == j) result.row = {left, right};
    if (lane() % 8 == j) result.root = diagonal.value[j][j];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i <= j) continue;  // so the loop is unrolled before j is known
      rest[0][i] -= diagonal.value[i][j] * left;
      rest[1][i] -= diagonal.value[i][j] * right;
    }
  });
  if (safe) return result;
  Diagonal<8> slow;  // of its own: whose address is taken lies in memory
  double pivot = 0;
  const int column = factor_slowly(slow, block, pivot);
  if (column < 8) report(column, pivot);
  result.row = inverse_row(slow);
#pragma unroll
  for (int m = 0; m < 8; ++m) {
    if (lane() % 8 == m) result.root = slow.value[m][m];
  }
  return result;
}

/// As factor_strips, for eight warps, two on each quarter of the multiprocessor, which would take
/// turns at the diagonal blocks (and for four): the warp whose rows they are leads. It factors and
/// inverts the block and needs nothing from the others, who follow in its shadow. `parity`: of the
/// number of panels that have passed these barriers.
template <class T>
struct StripFactor {
  static constexpr int kBlocks = kSolve / 8;

  T* x;
  int ld;
  double* inverses;
  const StripSink<T>& sink;
  PanelBarriers& barriers;
  int parity;
  double value[kBlocks][4];  ///< of block step + n

  [[nodiscard]] __device__ StripBlock<T> own() const {
    return {x + warp() * kRowsPerWarp, ld};
  }
  /// The blocks of this warp's rows that are not above the diagonal.
  [[nodiscard]] __device__ int end() const { return min(2 * warp() + 2, kBlocks); }

  __device__ __forceinline__ void read() {
    read_strip(value, x, ld);
    clear_above_diagonal(value);
  }

  template <class Report>
  __device__ __forceinline__ InvertedBlock lead(int step, Report&& report) {
    double* block = inverses + step * 64;  // the place is free until the inverse is there
    hand_out(block, value[0], step);
    __syncwarp();
    const InvertedBlock inverted =
        invert_block(block, [&](int column, double pivot) { report(8 * step + column, pivot); });
    __syncwarp();
    *reinterpret_cast<double2*>(block + lane() * 2) = inverted.row;
    arrive_by_warp(&barriers.inverted[step]);
    return inverted;
  }

  /// Y ← X·L⁻ᵀ for the columns of a step; and X in shared memory.
  __device__ __forceinline__ void solve(double (&y)[4], int step, double2 inverse) {
    y[0] = y[1] = y[2] = y[3] = 0;
    multiply_add(y, y, value[0], inverse);
    own().write(y, 8 * step * ld);
    if (warp() < PanelBarriers::kDiagonalWarps) {
      arrive_by_warp(&barriers.solved[step][warp()]);
    } else {
      __syncwarp();
    }
  }

  /// What the solved columns take from the others, which move up.
  __device__ __forceinline__ void update(const double (&y)[4], int step) {
    const AcrossBlock<T> across(x, ld);
#pragma unroll
    for (int n = 1; n < kBlocks; ++n) {
      const int block = step + n;
      if (block < end()) {
        if (block / 2 != warp() && (n == 1 || block % 2 == 0)) {
          wait_phase(&barriers.solved[step][block / 2], parity);
        }
        multiply_subtract(value[n], value[n], y, across.read(8 * block + 8 * step * ld));
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) value[n - 1][e] = value[n][e];
    }
  }

  __device__ __forceinline__ void put_step(int step) const {
    double solved[4];
    own().read(solved, 8 * step * ld);
    sink.put_lower(solved, step);
  }

  template <class Report>
  __device__ __forceinline__ void run(Report&& report) {
    read();
    const auto leads = [](int step) { return step < kBlocks && step / 2 == warp(); };
#pragma unroll 1
    for (int step = 0; step < end(); ++step) {
      double y[4];
      if (leads(step)) {
        const InvertedBlock inverted = lead(step, report);
        solve(y, step, inverted.row);
        // The roots themselves: what the inverse makes of them is worse by its condition.
        if (lane() < 8) x[(8 * step + lane()) * (ld + 1)] = static_cast<T>(inverted.root);
      } else {
        wait_phase(&barriers.inverted[step], parity);
        solve(y, step, read_pair(inverses + step * 64 + lane() * 2));
      }
      update(y, step);
      // Nothing is put away on the way to the next pivot.
      if (!leads(step) && !leads(step + 1)) put_step(step);
    }
    if (warp() >= PanelBarriers::kDiagonalWarps) return;
    __syncwarp();
    for (int step = max(2 * warp() - 1, 0); step < end(); ++step) put_step(step);
  }
};

/// Factors 64 columns of 16·kWarps rows, by kIb at a time: 4 from shared memory (factor_columns), 8
/// from registers (factor_strips; kLed: StripFactor). The result is in X and in the sink, a bad
/// pivot went to report(column, pivot); inverses is what invert_blocks makes, for the diagonal
/// block. A warp has seen to its own rows. Ends behind no barrier.
template <int kIb, int kWarps, bool kLed, class T, class Report>
__device__ inline void factor_panel(T* x, int ld, double* scratch, double* inverses,
                                    const StripSink<T>& sink, PanelBarriers& barriers, int parity,
                                    Report&& report) {
  if constexpr (kIb == 8 && kLed) {
    StripFactor<T>{x, ld, inverses, sink, barriers, parity}.run(report);
  } else if constexpr (kIb == 8) {
    factor_strips<kWarps>(x, ld, scratch, inverses, sink, report);
  } else {
    const BadPivot bad = factor_columns<kIb, kWarps>(x, ld, scratch);
    if (warp() == kWarps - 1 && bad.column < kSolve) report(bad.column, bad.pivot);
    if (warp() >= kWarps - 2) invert_blocks(inverses, x, ld, kSolve, kWarps - 2);
    const StripBlock<T> own(x + warp() * kRowsPerWarp, ld);
#pragma unroll 1
    for (int b = 0; b < kSolve / 8; ++b) {
      double value[4];
      own.read(value, 8 * b * ld);
      sink.put_lower(value, b);
    }
  }
}

}  // namespace strata::tile
