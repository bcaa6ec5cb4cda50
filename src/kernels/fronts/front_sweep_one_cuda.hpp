#pragma once
// Tiles of larger fronts in a sweep with one right-hand side, each of which is met but once. For
// front_sweep_cuda.cu.
//
// Method: what such a sweep takes time for is reading L, and the chain of the tiles on a diagonal,
// each of which waits for the one before it. So parts of tiles are copied to shared memory two
// ahead of the one that is multiplied; and what a block solves goes to the others as messages: see
// messages_cuda.hpp.
//
// Forward there are many jobs of few tiles, which wait for children and for each other: a part is
// half of the columns of a tile, so that four blocks find room on a multiprocessor. Backward there
// are few jobs of many tiles, one after the other: a part is a whole tile, which takes half as many
// barriers.

#include "kernels/backend/messages_cuda.hpp"
#include "kernels/backend/tile_copy_cuda.hpp"
#include "kernels/fronts/front_sweep_cuda.hpp"

namespace strata::front {

/// Thread t has row t % 64 of a tile, or backward column t % 64, and a quarter of each part of it.
template <class T, bool kForward>
class OneSweep {
  static constexpr int kTile = kFrontTile;
  static constexpr int kSpan = kForward ? kTile / 2 : kTile;  ///< columns, or rows, of a part
  static constexpr int kSlots = 3;

 public:
  static constexpr int kThreads = 256;
  static constexpr int kBlocks = kForward ? 4 : 2;  ///< on a multiprocessor
  /// In shared memory.
  struct Memory {
    T parts[kSlots][kTile * kSpan];
    T inverses[kInverses];      ///< of the blocks of 8 × 8 of the tile on the diagonal
    alignas(16) T x[2][kSpan];  ///< what a part is multiplied with, and the next one
    T b[kTile];                 ///< the right-hand side
    T sums[kThreads / kTile][kTile];
  };

  __device__ OneSweep(const Fronts<T, 1>& fronts, Memory& memory)
      : fronts_(fronts), memory_(memory) {}

  /// Row i of tiles.
  __device__ void go_forward(int f, const FrontRecord& front, int i) const {
    const FrontTiles tiles{front.width, front.rows};
    const int begin = tiles.begin(i);
    const int rows = tiles.begin(i + 1) - begin;
    const bool in_columns = i < tiles.across();
    const int width = in_columns ? kTile * i : front.width;  // of the columns that multiply
    const int all = in_columns ? width + rows : width;       // and of the tile on the diagonal
    const T* panel = fronts_.panels + front.panel + begin;
    const auto copy = [&](int part) {
      const int first = part * kSpan;
      if (first < all)
        copy_part(part, panel + std::int64_t{first} * front.ld, front.ld, rows, all - first);
      commit_copies();
    };
    copy(0);
    copy(1);
    if (in_columns) load_inverses(front, i, rows);
    start_forward(f, front, i, begin, min(rows, front.own - begin));
    const int count = (width + kSpan - 1) / kSpan;
    const auto place = [&](int part) {
      const int column = part * kSpan + thread();
      return column < width ? fronts_.messages + front.column + column : nullptr;
    };
    T sum[kSums] = {};
    multiply(
        count, copy, place, [](int) { return true; }, sum);
    if (count > 1 && count % 2 != 0) __syncthreads();  // the sums of the tile before have been used
    add_up(sum);
    if (warp() != 0) return;
    T b[2] = {rest(lane()), rest(lane() + kWarp)};
    if (in_columns) {
      solve(count, rows, b);
      tell(front.column + begin, rows, b);
      return;
    }
    T* to = fronts_.below + front.rows_before + begin - front.width;
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (lane() + kWarp * h < rows) to[lane() + kWarp * h] = b[h];
    __syncwarp();
    if (front.parent >= 0 && lane() == 0) signal(fronts_.signals(front.parent));
  }

  /// Column j of tiles, from the last tile up.
  __device__ void go_backward(int f, const FrontRecord& front, int j) const {
    const FrontTiles tiles{front.width, front.rows, front.later};
    const int across = tiles.across();
    const int last = tiles.count() - 1;
    const int count = last - j;
    const int columns = tiles.begin(j + 1) - tiles.begin(j);
    const T* panel = fronts_.panels + front.panel + std::int64_t{j} * kTile * front.ld;
    const auto copy = [&](int part) {
      const int begin = tiles.begin(last - part);
      if (part <= count)
        copy_part(part, panel + begin, front.ld, tiles.begin(last - part + 1) - begin, columns);
      commit_copies();
    };
    copy(0);
    copy(1);
    load_inverses(front, j, columns);
    if (thread() < kTile)
      memory_.b[row()] =
          row() < columns ? __ldcg(fronts_.x + front.column + j * kTile + row()) : T{0};
    if (j == across - 1) {
      gather_below(f, front);
    } else {
      if (front.rows > 0 && warp() == 0) (void)await(fronts_.backward(f), 1);
      __syncthreads();
    }
    // Rows below are all there; those of columns come as messages.
    const auto place = [&](int part) -> const T* {
      const int at = tiles.begin(last - part) + thread();
      if (at >= tiles.begin(last - part + 1)) return nullptr;
      return last - part < across ? fronts_.messages + front.column + at
                                  : fronts_.below + front.rows_before + at - front.width;
    };
    T sum[kSums] = {};
    multiply(
        count, copy, place, [&](int part) { return last - part < across; }, sum);
    add_up(sum);
    if (warp() != 0) return;
    T b[2] = {rest(lane()), rest(lane() + kWarp)};
    solve(count, columns, b);
    tell(front.column + j * kTile, columns, b);
    __syncwarp();
    if (lane() == 0) signal(fronts_.backward(f));
  }

 private:
  using Bits = typename Messages<T>::Bits;
  static constexpr int kGroups = kThreads / kTile;
  static constexpr int kEach = kSpan / kGroups;  ///< of a row or column of a part, a thread's
  static constexpr int kSums = 4;                ///< that do not wait for each other

  [[nodiscard]] __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  /// The row of a tile, or backward the column, that this thread makes a part of the sum of.
  [[nodiscard]] __device__ static int row() { return thread() % kTile; }
  [[nodiscard]] __device__ static int group() { return thread() / kTile; }

  /// Place of element (r, c) of a part in its slot. Forward a warp reads a column; backward it
  /// reads a row: columns are rotated, so that it meets all banks.
  [[nodiscard]] __device__ static int place_of(int r, int c) {
    return kForward ? r + c * kTile : (r + c) % kSpan + c * kSpan;
  }
  /// Begins to bring a part to its slot, zero outside of rows × columns.
  __device__ void copy_part(int part, const T* from, int ld, int rows, int columns) const {
    constexpr int kRows = kForward ? kTile : kSpan;
    constexpr int kColumns = kForward ? kSpan : kTile;
    constexpr int kAtOnce = kThreads / kRows;  // columns
    T* to = memory_.parts[part % kSlots];
    const int r = thread() % kRows;
    const int first = thread() / kRows;
    const T* own = from + r + std::int64_t{first} * ld;
    const std::int64_t step = std::int64_t{kAtOnce} * ld;
    if (rows >= kRows && columns >= kColumns) {
#pragma unroll
      for (int n = 0; n < kColumns / kAtOnce; ++n, own += step)
        copy_async<sizeof(T)>(to + place_of(r, first + n * kAtOnce), own, sizeof(T));
      return;
    }
    for (int n = 0; n < kColumns / kAtOnce; ++n, own += step) {
      const int c = first + n * kAtOnce;
      const bool inside = r < rows && c < columns;
      copy_async<sizeof(T)>(to + place_of(r, c), inside ? own : from, inside ? sizeof(T) : 0);
    }
  }

  /// sum ← the products of `count` parts, the first two of which are on their way, with what is in
  /// their places: messages or not. copy(part) begins to bring a part that there is. Forward, those
  /// of a tile are subtracted from b before those of the next one, so that a front that was split
  /// has the sums of a whole one: by the last group, beside its products of the next part. sum ←
  /// those of the last tile.
  template <class Copy, class Place, class IsMessage>
  __device__ void multiply(int count, const Copy& copy, const Place& place,
                           const IsMessage& is_message, T (&sum)[kSums]) const {
    constexpr int kAhead = 2;  // readings on their way
    const auto peek = [&](int part) {
      const T* from = part < count && thread() < kSpan ? place(part) : nullptr;
      return from != nullptr ? Messages<T>::read(from) : Bits{0};
    };
    Bits next[kAhead];
#pragma unroll
    for (int n = 0; n < kAhead; ++n) next[n] = peek(n);
    for (int first = 0; first < count; first += kAhead) {
#pragma unroll
      for (int n = 0; n < kAhead; ++n) {
        const int part = first + n;
        if (part >= count) break;
        if (thread() < kSpan) {
          if (is_message(part)) {
            while (next[n] == Messages<T>::kNothing) {
              __nanosleep(20);
              next[n] = Messages<T>::read(place(part));
            }
          }
          memory_.x[n % 2][thread()] = Messages<T>::number(next[n]);
        }
        wait_copies<1>();
        __syncthreads();  // … and the part before has been used
        copy(part + 2);
        next[n] = peek(part + kAhead);
        const T* l = memory_.parts[part % kSlots];
        const T* x = memory_.x[n % 2] + group() * kEach;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
          const int other = group() * kEach + k;
          sum[k % kSums] = fma(l[kForward ? place_of(row(), other) : place_of(other, row())], x[k],
                               sum[k % kSums]);
        }
        if constexpr (kForward) {
          if (n == 0 && part > 0 && is_last_group()) memory_.b[row()] = rest(row());
          if (n == 1 && part + 1 < count) {
            tell_sum(sum);
#pragma unroll
            for (int k = 0; k < kSums; ++k) sum[k] = T{0};
          }
        }
      }
    }
  }

  __device__ void load_inverses(const FrontRecord& front, int j, int rows) const {
    const T* made = fronts_.inverses + (front.inverses + j) * kDiagonalInverses;
    for (int n = thread(); n < kInverses; n += kThreads)
      memory_.inverses[n] = n / 64 * 8 < rows ? __ldcg(made + n) : T{0};
  }

  /// By a warp: the rows of X from this one on, as messages too.
  __device__ void tell(int first, int rows, const T (&b)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (lane() + kWarp * h < rows) send(fronts_.messages + first + lane() + kWarp * h, b[h]);
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (lane() + kWarp * h < rows) fronts_.x[first + lane() + kWarp * h] = b[h];
  }

  /// b ← these rows of X, or zero, and what children give, in their order. Each group of threads
  /// has a child, and finds its places while it waits.
  __device__ void start_forward(int f, const FrontRecord& front, int i, int begin, int rows) const {
    if (thread() < kTile)
      memory_.b[row()] = row() < rows ? __ldcg(fronts_.x + front.column + begin + row()) : T{0};
    int to = -1;
    const T* from = nullptr;
    const auto find = [&](int c) {
      to = -1;
      if (c >= front.child_count) return;
      const ChildRecord& child = fronts_.child(front, c);
      if (!child.gives_rows()) return;
      const std::int32_t* cuts = fronts_.structure + child.cuts + i;
      const int n = cuts[0] + row();  // no more than the rows of a tile
      if (n >= cuts[1]) return;
      to = fronts_.structure[child.places + n] - begin;
      from = fronts_.below + child.rows_before + n;
    };
    find(group());
    if (front.expected_rows > 0 && warp() == 0)
      (void)await(fronts_.signals(f), front.expected_rows);
    __syncthreads();
    for (int first = 0; first < front.child_count; first += kGroups) {
      if (first > 0) find(first + group());
      const T given = to >= 0 ? __ldcg(from) : T{0};
      for (int c = 0; c < min(kGroups, front.child_count - first); ++c) {
        if (group() == c && to >= 0) memory_.b[to] += given;
        __syncthreads();
      }
    }
  }

  /// What is below, from the parent; the others wait for it.
  __device__ void gather_below(int f, const FrontRecord& front) const {
    if (front.rows > 0) {
      if (front.parent >= 0 && warp() == 0)
        (void)await(fronts_.backward(front.parent),
                    fronts_.all_backward(fronts_.records[front.parent]));
      __syncthreads();
      T* to = fronts_.below + front.rows_before;
      for (int n = thread(); n < front.rows; n += kThreads) to[n] = fronts_.from_above(front, n);
    }
    __syncthreads();
    if (thread() == 0) signal(fronts_.backward(f));
  }

  /// Whether this thread is of the group that subtracts, which has no messages to read.
  [[nodiscard]] __device__ static bool is_last_group() { return group() == kGroups - 1; }
  __device__ void tell_sum(const T (&sum)[kSums]) const {
    memory_.sums[group()][row()] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
  /// Leaves the sums of all groups in memory; the last tile is there then.
  __device__ void add_up(const T (&sum)[kSums]) const {
    tell_sum(sum);
    wait_copies<0>();
    __syncthreads();
  }
  [[nodiscard]] __device__ T rest(int n) const {
    return memory_.b[n] -
           ((memory_.sums[0][n] + memory_.sums[1][n]) + (memory_.sums[2][n] + memory_.sums[3][n]));
  }

  /// b ← L⁻¹·b, or L⁻ᵀ·b, with the tile on the diagonal, whose first part is this one, by a warp: a
  /// lane has rows lane() and lane() + 32. Eight rows at a time, by the inverses of the blocks on
  /// the diagonal. Others wait for it, and one warp takes as long as it has instructions: so there
  /// are few, and they stay where they are.
  __device__ void solve(int part, int rows, T (&b)[2]) const {
    struct alignas(2 * sizeof(T)) Pair {
      T first, second;
    };
    T* const given = memory_.x[0];
    T* const solved = memory_.x[1];
    const int r = lane() % 8;
    const int c = lane() / 8 * 2;  // of the two products with the inverse that this lane makes
    const int blocks = (rows + 7) / 8;
#pragma unroll 1
    for (int n = 0; n < blocks; ++n) {
      const int first = 8 * (kForward ? n : blocks - 1 - n);
      const T* l = memory_.parts[(part + first / kSpan) % kSlots];
      const T* inverse = memory_.inverses + first * 8;
      const int ahead = lane() - first % kWarp;
      if (ahead >= 0 && ahead < 8) given[ahead] = first < kWarp ? b[0] : b[1];
      __syncwarp();
      const Pair pair = *reinterpret_cast<const Pair*>(given + c);
      const int at = kForward ? place_in_inverse(r, c) : place_in_inverse(c, r);
      const int next = kForward ? place_in_inverse(r, c + 1) : place_in_inverse(c + 1, r);
      T y = fma(inverse[next], pair.second, inverse[at] * pair.first);
      y += __shfl_xor_sync(0xffffffffU, y, 8);
      y += __shfl_xor_sync(0xffffffffU, y, 16);
      if (lane() < 8) solved[lane()] = y;
      __syncwarp();
      Pair x[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) x[k] = reinterpret_cast<const Pair*>(solved)[k];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // Rows that are done before, or not solved with: all of this half, or those that the end
        // of this tells.
        if (kForward ? h == 0 && first >= kWarp : h == 1 && first < kWarp) continue;
        const int row = lane() + kWarp * h;
        T sum[2] = {};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int other = first % kSpan + 2 * k;
          sum[0] =
              fma(l[kForward ? place_of(row, other) : place_of(other, row)], x[k].first, sum[0]);
          sum[1] = fma(l[kForward ? place_of(row, other + 1) : place_of(other + 1, row)],
                       x[k].second, sum[1]);
        }
        const T rest = b[h] - (sum[0] + sum[1]);
        const int behind = kForward ? row - first - 7 : first - row;  // > 0: still to be solved
        b[h] = behind > 0 ? rest : (row >= first && row < first + 8 ? y : b[h]);
      }
    }
  }

  const Fronts<T, 1>& fronts_;
  Memory& memory_;
};

}  // namespace strata::front
