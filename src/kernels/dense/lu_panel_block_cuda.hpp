#pragma once
// What a thread block does with its rows of a panel of LU, together with the blocks of its group.
//
// Contract: as lu_panel_cuda.hpp. Only for *_cuda.cu that launch it.
//
// Method: thread blocks hold the rows of the panel in registers, kWide columns at a time, and go
// through these groups of columns from left to right.
// * A group is first brought up to date with all columns on its left, whose rows of U are finished:
//   in fp64 and complex128 on the tensor cores, from where each thread gets its rows.
// * Its columns are eliminated one after another. A thread that has changed its
//   elements of the next column keeps the largest. A warp finds the best of these, a block that of
//   its warps, and sends it with all elements of its row to all other blocks. They find the pivot
//   among what blocks sent. So a
//   column takes one message from each block to each, and one barrier within blocks. Rows stay
//   where they are meanwhile; each thread keeps account of the places that exchanges give to its
//   rows, and they are written there at last. Eight columns are unrolled, then the elements of a
//   row turn by eight places, so that the code of eight columns is the same for all.
// * The rows are exchanged in the columns on the left and on the right, and in those on the right
//   the rows of U are found, a warp a column (as Crout's method has it): products with all columns
//   on the left, and substitution.
//
// Blocks send messages either in a cluster, through each other's shared memory, up to 16 blocks, or
// through global memory, if the panel is too tall for that.
//
// Sources: LU by rows held in registers, and a panel in one launch: Haidar, Abdelfattah, Tomov,
// Dongarra, "High-performance Cholesky factorization for GPU-only execution" (2017), of Cholesky's
// panel; partial pivoting as LAPACK's getf2; quotients from reciprocals: Markstein, "Computation of
// elementary functions on the IBM RISC System/6000 processor" (1990).

#include <utility>

#include "kernels/dense/lu_memory_cuda.hpp"
#include "kernels/dense/lu_messages_cuda.hpp"
#include "kernels/dense/lu_numbers_cuda.hpp"
#include "kernels/dense/lu_rows_cuda.hpp"

namespace strata::lu_cuda {

/// Columns that are unrolled.
inline constexpr int kTurn = 8;

template <class T, int kWide, int kRows, class Group>
class PanelBlock : PanelRows<T, kWide, kRows, Group> {
  using Rows = PanelRows<T, kWide, kRows, Group>;

 public:
  __device__ PanelBlock(const Panel<T>& panel, unsigned char* memory, int columns)
      : Rows(panel, memory, columns) {}

  __device__ void run() {
    group.start();
    for (int c0 = 0; c0 < p.cols; c0 += kWide) {
      const int width = min(kWide, p.cols - c0);
      load(c0, width);
      eliminate(c0, width);
      store(c0, width);
      exchange_left(c0, width);
      if (c0 + width == p.cols) break;
      group.barrier();
      find_u(c0, width);
      group.barrier();
    }
    __syncthreads();  // of the last pivot
    if (rank == 0)
      for (int j = thread(); j < p.cols; j += kThreads) p.pivots[j] = p.base + shared.pivots[j];
    // No block ends before what others send it.
    if constexpr (Group::kShared && !kIsSolo<Group>) group.barrier();
  }

 private:
  using Key = PivotKey<T>;
  static constexpr int kMessage = kMessageBytes<T, kWide>;
  static constexpr int kHeader = kHeaderBytes<T>;

  using Rows::a;
  using Rows::at;
  using Rows::group;
  using Rows::kNone;
  using Rows::kThreads;
  using Rows::kWarps;
  using Rows::lane;
  using Rows::load;
  using Rows::p;
  using Rows::place;
  using Rows::rank;
  using Rows::row_of;
  using Rows::shared;
  using Rows::thread;
  using Rows::warp;

  // ---- elimination ------------------------------------------------------------------------------

  /// Elements turn: the first is that of column 8·n after n turns.
  __device__ __forceinline__ void eliminate(int c0, int width) {
    top = kNoRow;
    far = c0 + lane();
    offer<0>(c0);
#pragma unroll 1
    for (int q = 0; q < kWide; q += kTurn) {
      eliminate_columns(c0, q, width, std::make_integer_sequence<int, kTurn>());
      if constexpr (kWide > kTurn) turn();
    }
  }
  template <int... kI>
  __device__ __forceinline__ void eliminate_columns(int c0, int q, int width,
                                                    std::integer_sequence<int, kI...>) {
    ((q + kI < width ? eliminate_column<kI>(c0, q, width) : void()), ...);
  }
  __device__ __forceinline__ void turn() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      T first[kTurn];
#pragma unroll
      for (int c = 0; c < kTurn; ++c) first[c] = a[r][c];
#pragma unroll
      for (int c = 0; c + kTurn < kWide; ++c) a[r][c] = a[r][c + kTurn];
#pragma unroll
      for (int c = 0; c < kTurn; ++c) a[r][kWide - kTurn + c] = first[c];
    }
  }

  /// The best of the warp's rows from place `diagonal` on, by element i, goes where the block finds
  /// it.
  template <int i>
  __device__ __forceinline__ void offer(int diagonal) {
    Key key = 0;
    int best = kNoRow;
    int row = kNoRow;
    best_rows = 0;
    T value{1};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (place[r] < diagonal) continue;
      Key mine = key_of(a[r][i]);
      // As LAPACK's search, which begins with the diagonal's: nothing is larger than a NaN.
      if (place[r] == diagonal && isnan(size_of(a[r][i]))) mine = ~Key{0};
      if (best == kNoRow || mine > key || (mine == key && place[r] < best)) {
        key = mine;
        best = place[r];
        row = row_of(r);
        best_rows = 1U << r;
        value = a[r][i];
      }
    }
    is_best = lane() == best_lane(key, best);
    if (is_best) {
      offered = {key, best, row};
      shared.found[i % 2 * kWarps + warp()] = offered;
    }
    if constexpr (std::is_same_v<T, double>) reciprocal = reciprocal_of(value);
  }

  /// By the thread that has the best row of the block: that row, from element `first` on.
  template <int first>
  __device__ __forceinline__ void stage_row(int live) {
    *reinterpret_cast<Candidate*>(shared.stage) = offered;
    if constexpr (std::is_same_v<T, double>)
      *reinterpret_cast<double*>(shared.stage + sizeof(Candidate)) = reciprocal;
    T* values = reinterpret_cast<T*>(shared.stage + kHeader);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if ((best_rows & 1U << r) == 0) continue;
#pragma unroll
      for (int g = 0; g < kWide; g += kTurn) {
        if (g >= live) continue;
#pragma unroll
        for (int c = g; c < g + kTurn; c += kChunk<T>)
          if (first < c + kChunk<T>) store_chunk(values + c, &a[r][c]);
      }
    }
  }

  /// Column q + i of the group, element i of each row; elements from kWide − q on are finished.
  template <int i>
  __device__ __forceinline__ void eliminate_column(int c0, int q, int width) {
    const int diagonal = c0 + q + i;
    const int live = kWide - q;
    __syncthreads();
    Candidate mine{0, kNoRow, kNoRow};
    if (lane() < kWarps) mine = shared.found[i % 2 * kWarps + lane()];
    if (warp() == best_lane(static_cast<Key>(mine.key), mine.place)) {
      if (is_best) stage_row<i>(live);
      __syncwarp();
      constexpr int kFirst = kHeader / kMessageChunk;
      group.template send<kMessage>(i % 2, rank, shared.stage, kFirst, kFirst + i / kChunk<T>,
                                    kFirst + live / kChunk<T>);
    }
    // All groups but the last have a multiple of eight columns, so i tells barrier and phase.
    const int chunks = live / kChunk<T> - i / kChunk<T>;
    group.receive(i % 2, i / 2 % 2, kHeader + chunks * kMessageChunk);
    const unsigned char* message = winner(i % 2);
    const auto* header = reinterpret_cast<const Candidate*>(message);
    const T* u = reinterpret_cast<const T*>(message + kHeader);
    const int pivot = header->place;
    if (lane() == q + i) top = header->row;
    if (thread() == 0) shared.pivots[diagonal] = pivot;
    double inverse = 0;
    if constexpr (std::is_same_v<T, double>)
      inverse = *reinterpret_cast<const double*>(message + sizeof(Candidate));
    far = far == diagonal ? pivot : far == pivot ? diagonal : far;
    const T value = u[i];
    const bool divides = !(value == T{});
    T factor[kRows];
    bool below[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      place[r] = place[r] == diagonal ? pivot : place[r] == pivot ? diagonal : place[r];
      below[r] = place[r] > diagonal && divides;
    }
    divide<i>(value, inverse, below, factor);
    if constexpr (i + 1 < kWide) {
      if (q + i + 1 < width) {
        const T second = u[i + 1];
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          if (below[r]) subtract_product(a[r][i + 1], factor[r], second);
        offer<i + 1>(diagonal + 1);
      }
    }
    take_off<i>(live, factor, below, u);
  }

  /// The elements i of the rows below the diagonal become those of L.
  template <int i>
  __device__ __forceinline__ void divide(const T& pivot, double inverse, const bool (&below)[kRows],
                                         T (&factor)[kRows]) {
    if constexpr (std::is_same_v<T, double>) {
      bool all_are_sure = true;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        factor[r] = quotient_by(a[r][i], pivot, inverse);
        all_are_sure = all_are_sure && (!below[r] || has_sure_quotient(a[r][i]));
      }
      if (__builtin_expect(!(all_are_sure && has_sure_reciprocal(pivot)), 0)) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) factor[r] = a[r][i] / pivot;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (below[r]) a[r][i] = factor[r];
    } else {
      const Quotient<T> quotient(pivot);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        factor[r] = T{};
        if (below[r]) a[r][i] = factor[r] = quotient(a[r][i]);
      }
    }
  }

  /// The elements from i + 2 on. Finished rows stay as they are, also where a product is a NaN.
  template <int i>
  __device__ __forceinline__ void take_off(int live, const T (&factor)[kRows],
                                           const bool (&below)[kRows], const T* u) {
#pragma unroll
    for (int g = 0; g < kWide; g += kTurn) {
      if (g >= live) continue;
#pragma unroll
      for (int c = g; c < g + kTurn; c += kChunk<T>) {
        if (c + kChunk<T> <= i + 2) continue;
        T v[kChunk<T>];
        load_chunk(v, u + c);
#pragma unroll
        for (int m = 0; m < kChunk<T>; ++m) {
          if (c + m < i + 2) continue;
#pragma unroll
          for (int r = 0; r < kRows; ++r)
            if (below[r]) subtract_product(a[r][c + m], factor[r], v[m]);
        }
      }
    }
  }

  /// The best of the messages of all blocks.
  __device__ __forceinline__ const unsigned char* winner(int parity) {
    if constexpr (kIsSolo<Group>) {
      return shared.stage;
    } else if constexpr (Group::kShared) {
      const unsigned char* all = group.messages + parity * kClusterMost * kMessage;
      Candidate mine{0, kNoRow, kNoRow};
      if (lane() < group.size())
        mine = *reinterpret_cast<const Candidate*>(all + lane() * kMessage);
      return all + best_lane(static_cast<Key>(mine.key), mine.place) * kMessage;
    } else {
      unsigned char* here = shared.messages + parity * kMessage;
      if (warp() == 0) {
        const unsigned char* all = group.messages + parity * group.size() * kMessage;
        Key key = 0;
        int place_of_best = kNoRow;
        int block = 0;
        for (int b = lane(); b < group.size(); b += 32) {
          const auto* candidate = reinterpret_cast<const Candidate*>(all + b * kMessage);
          const auto theirs = static_cast<Key>(__ldcg(&candidate->key));
          const int their_place = __ldcg(&candidate->place);
          if (place_of_best == kNoRow || theirs > key ||
              (theirs == key && their_place < place_of_best)) {
            key = theirs;
            place_of_best = their_place;
            block = b;
          }
        }
        block = __shfl_sync(0xffffffffU, block, best_lane(key, place_of_best));
        for (int c = lane(); c < kMessage / kMessageChunk; c += 32)
          reinterpret_cast<uint4*>(here)[c] =
              __ldcg(reinterpret_cast<const uint4*>(all + block * kMessage) + c);
      }
      __syncthreads();
      return here;
    }
  }

  // ---- the other columns ------------------------------------------------------------------------

  __device__ __forceinline__ void store(int c0, int width) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (place[r] == kNone) continue;
      T* to = at(place[r], c0);
#pragma unroll
      for (int c = 0; c < kWide; ++c) {
        if (c < width) *to = a[r][c];
        to += p.ld;
      }
    }
  }

  /// Row c0 + lane becomes what row `top` was; that row itself went to `far`. Both are rows of a
  /// column that this warp alone has.
  __device__ __forceinline__ void exchange_left(int c0, int width) {
    const bool mine = lane() < width;
    const bool leaves = mine && far >= c0 + width;
#pragma unroll 2
    for (int col = rank * kWarps + warp(); col < c0; col += group.size() * kWarps) {
      T for_top{};
      T for_far{};
      if (mine) for_top = load_global(at(top, col));
      if (leaves) for_far = load_global(at(c0 + lane(), col));
      __syncwarp();
      if (mine) *at(c0 + lane(), col) = for_top;
      if (leaves) *at(far, col) = for_far;
    }
  }

  /// The columns on the right: exchanges, and rows c0 … c0 + width − 1 of U.
  __device__ __forceinline__ void find_u(int c0, int width) {
    const int inner = c0 + width;
    const bool mine = lane() < width;
    const bool leaves = mine && far >= c0 + width;
    const int step = group.size() * kWarps;
    const T* l = shared.strip + lane();
    T x[kAtOnce];
    T away[kAtOnce];
    const auto fetch = [&](int col) {
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        const int here = col + n * step;
        const bool there = here < p.cols;
        x[n] = mine && there ? load_global(at(top, here)) : T{};
        away[n] = leaves && there ? load_global(at(c0 + lane(), here)) : T{};
#pragma unroll 8
        for (int k = lane(); k < c0; k += 32)
          shared.columns[k * kAtOnce + n] = there ? load_global(at(k, here)) : T{};
      }
    };
    int col = inner + rank * kWarps + warp();
    fetch(col);
#pragma unroll 16
    for (int k = warp(); k < inner; k += kWarps)
      shared.strip[k * kWarpRows + lane()] = mine ? load_global(at(c0 + lane(), k)) : T{};
    __syncthreads();
    for (; col < p.cols; col += kAtOnce * step) {
      __syncwarp();
      // Products in the order of the columns of L.
#pragma unroll 8
      for (int k = 0; k < c0; ++k) {
        const T factor = l[k * kWarpRows];
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n)
          subtract_product(x[n], factor, shared.columns[k * kAtOnce + n]);
      }
#pragma unroll 8
      for (int k = 0; k < kWide; ++k) {
        const T factor = k < width ? l[(c0 + k) * kWarpRows] : T{};
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n) {
          const T above = from_lane(x[n], k);
          if (lane() > k) subtract_product(x[n], factor, above);
        }
      }
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        const int here = col + n * step;
        if (here >= p.cols) continue;
        if (mine) *at(c0 + lane(), here) = x[n];
        if (leaves) *at(far, here) = away[n];
      }
      __syncwarp();
      fetch(col + kAtOnce * step);
    }
  }

  Candidate offered;   // if it is the best of the warp
  unsigned best_rows;  // bit r for the row of r
  bool is_best;
  double reciprocal;
  int top;  // row whose elements become those of row c0 + lane
  int far;  // where those of row c0 + lane are now
};

}  // namespace strata::lu_cuda
