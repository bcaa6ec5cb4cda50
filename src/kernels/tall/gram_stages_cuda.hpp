#pragma once
// Units of a tall matrix that come to shared memory in stages, and the sums of warps over them.
//
// Method: mma.m16n8k4 of doubles is, bit for bit, a chain of fused multiply-adds over its depth in
// ascending order (on an H200, of 2 million elements with exponents of −1200 … 500 none differed).
// So where the depth goes through the rows of one lane, it is the sum of gram.hpp. A thread block
// goes through the tiles of 128 rows of a unit. Tiles come to shared memory by the tensor memory
// accelerator, one instruction each, several ahead. Thread g·4 + q of a warp reads rows 4q, 4q + 1
// (+ 2 for the other two lanes) of column g: what it reads is operand on the left and on the right.
// A warp has two lanes, and a few blocks of 16 × 8 pairs of columns for both of them, so each
// element is read from shared memory by few warps. Symmetric sums leave out blocks below the
// diagonal. With twice the depth, putting operands together from more registers would cost more
// than it saves. Warps run freely, a few tiles apart: a barrier in shared memory tells when all
// have read a stage, and each warp in turn fills one again. Floats lie in shared memory as they
// are, and become doubles in registers. Contract: included by *_cuda.cu only.

#include <algorithm>
#include <utility>

#include "kernels/backend/tensor_map_cuda.hpp"
#include "kernels/dense/tile_product_cuda.hpp"
#include "kernels/tall/gram_tensor_cuda.hpp"
#include "kernels/tall/row_strip_cuda.hpp"

namespace strata::gram_gpu {

inline constexpr int kPanel = 64;               // columns of a panel
inline constexpr int kSharedOfAll = 226 << 10;  // bytes of a multiprocessor
inline constexpr int kStagesMost = 4;

/// The columns 8a … 8a + 15 of a stage times 8b … 8b + 7.
struct Product {
  int a, b;
};

/// All products of kBlocks eights of columns on or above the diagonal.
template <int kBlocks>
struct Triangle {
  static constexpr int kEights = kBlocks;
  static constexpr int kRegisters = 72;  // of a thread, beside its sums
  static constexpr int kTiles = kBlocks <= 1 ? 4 : (kBlocks <= 2 ? 2 : 1);  // of a stage
  static constexpr int kFirstRight = 0;
  static constexpr int kCount = [] {
    int count = 0;
    for (int a = 0; a < kBlocks; a += 2) count += kBlocks - a;
    return count;
  }();
  static constexpr int kSets = kCount <= 1 ? 1 : kCount <= 10 ? 2 : 4;  // of warps
  __host__ __device__ static constexpr Product at(int which) {
    int a = 0;
    while (which >= kBlocks - a) {
      which -= kBlocks - a;
      a += 2;
    }
    return {a, a + which};
  }
};

constexpr int sets_of_two(int products) { return products < 8 ? products : products / 2; }

/// All products of kLeft sixteens of columns with kRight eights of others, which lie behind them.
template <int kLeft, int kRight, int kSetsOfWarps = sets_of_two(kLeft* kRight)>
struct Rectangle {
  static constexpr int kSets = kSetsOfWarps;
  static constexpr int kTiles = 1;
  static constexpr int kRegisters = 72;
  static constexpr int kEights = 2 * kLeft + kRight;
  static constexpr int kFirstRight = 2 * kLeft;
  static constexpr int kCount = kLeft * kRight;
  __host__ __device__ static constexpr Product at(int which) {
    return {which / kRight * 2, kFirstRight + which % kRight};
  }
};

/// How the products of a shape are dealt to warps.
template <class S>
struct Deal {
  static constexpr int kSets = S::kSets;
  static constexpr int kEach = (S::kCount + kSets - 1) / kSets;
  static constexpr int kThreads = 2 * kSets * kWarpSize;
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kColumns = kEight * S::kEights;
  static constexpr int kTiles = S::kTiles;  // of a stage
  static constexpr int kLeft = S::kFirstRight > 0 ? kEight* S::kFirstRight : kColumns;
  static constexpr int kRight = kColumns - kLeft;
  static constexpr int kStage = kColumns * kTiles * kGramTileRows;  // elements
  static constexpr int kExchange = kSets * kEach * 4 * kWarpSize;   // doubles
  /// Thread blocks of a multiprocessor, by registers, of which sums take 32 a product.
  static constexpr int kResident = std::max(1, 65536 / (kThreads * (S::kRegisters + 32 * kEach)));

  /// Whether the products of a set read an eight of columns.
  static constexpr bool reads(int set, int eight) {
    for (int p = set * kEach; p < S::kCount && p < (set + 1) * kEach; ++p) {
      const Product x = S::at(p);
      if (eight == x.a || eight == x.a + 1 || eight == x.b) return true;
    }
    return false;
  }
};

template <class F, int... I>
__device__ void each_of(F&& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>{}), ...);
}
template <int kCount, class F>
__device__ void each(F&& f) {
  each_of(f, std::make_integer_sequence<int, kCount>{});
}

/// What a thread block adds up: columns of x with themselves, or with those of y.
template <class T>
struct Job {
  Columns<T> x, y;            ///< y has no columns in a triangle
  std::int64_t i0, j0;        ///< of their first columns in the result, and in what the maps are of
  const void *x_map, *y_map;  ///< null: the columns are not aligned
};

/// Brings the tiles of a job to shared memory: those of x, then those of y.
template <class S, class T>
class Stages {
 public:
  using D = Deal<S>;
  struct Barriers {
    unsigned long long full[kStagesMost], empty[kStagesMost];
  };

  /// `rows` of a stage.
  __device__ Stages(const Job<T>& job, int rows, T* memory, Barriers& barriers)
      : job_(job), rows_(rows), memory_(memory), barriers_(barriers) {}

  /// By one thread, before all meet.
  static __device__ void init(Barriers& barriers) {
    for (auto& barrier : barriers.full) tile::init_barrier(&barrier, kWarpSize);
    for (auto& barrier : barriers.empty) tile::init_barrier(&barrier, D::kWarps);
  }
  /// A warp starts the copies of the rows from `row` on into a stage. What the accelerator does not
  /// take, the last rows and columns that are not aligned, its threads copy.
  __device__ void start(int stage, std::int64_t row) const {
    T* to = memory_ + stage * D::kStage;
    unsigned long long* full = &barriers_.full[stage];
    if (job_.x_map == nullptr || row + rows_ > job_.x.rows) {
      copy<D::kLeft>(job_.x, row, to);
      if constexpr (D::kRight > 0) copy<D::kRight>(job_.y, row, to + D::kLeft * rows_);
      tile::arrive_after_copies(full);
      return;
    }
    if (tile::lane() > 0) return tile::arrive(full);
    tile::arrive_expecting(full, D::kColumns * rows_ * static_cast<int>(sizeof(T)));
    const int group = static_cast<int>(row / kGroupRows);
    tile::copy_groups_by_tma(to, job_.x_map, static_cast<int>(job_.i0), group, full);
    if constexpr (D::kRight > 0)
      tile::copy_groups_by_tma(to + D::kLeft * rows_, job_.y_map, static_cast<int>(job_.j0), group,
                               full);
  }
  /// Waits until a stage is full the phase-th time, or all warps have read it as often.
  __device__ const T* wait_full(int stage, int phase) const {
    tile::wait_phase(&barriers_.full[stage], phase % 2);
    return memory_ + stage * D::kStage;
  }
  __device__ void wait_empty(int stage, int phase) const {
    tile::wait_phase(&barriers_.empty[stage], phase % 2);
  }
  /// A warp has read a stage.
  __device__ void release(int stage) const { tile::arrive_as_warp(&barriers_.empty[stage]); }

 private:
  template <int kCols>
  __device__ void copy(const Columns<T>& x, std::int64_t row, T* to) const {
    for (int c = 0; c < kCols; ++c) {
      for (int r = tile::lane(); r < rows_; r += kWarpSize) {
        const bool inside = c < x.cols && row + r < x.rows;
        constexpr int kBytes = sizeof(T);
        tile::copy_async<kBytes>(to + grouped_place<T>(r, c, kCols),
                                 inside ? x.data + row + r + c * x.ld : x.data,
                                 inside ? kBytes : 0);
      }
    }
  }

  const Job<T>& job_;
  int rows_;
  T* memory_;
  Barriers& barriers_;
};

/// Two neighbours, widened.
__device__ inline double2 pair_at(const double* from) {
  return *reinterpret_cast<const double2*>(from);
}
__device__ inline double2 pair_at(const float* from) {
  const float2 pair = *reinterpret_cast<const float2*>(from);
  return make_double2(static_cast<double>(pair.x), static_cast<double>(pair.y));
}

/// The sums of a warp: of the unit so far, for two lanes.
template <class S>
struct Sums {
  double unit[Deal<S>::kEach][2][4];

  /// Elements of 16 rows.
  template <int kSet, bool kScaled, class T>
  static __device__ void read(const T* left, const T* right, const double* scales,
                              double2 (&to)[S::kEights]) {
    using D = Deal<S>;
    each<S::kEights>([&](auto eight) {
      if constexpr (D::reads(kSet, eight)) {
        constexpr int kColumn = kEight * eight;
        constexpr bool kIsRight = D::kRight > 0 && kColumn >= D::kLeft;
        constexpr int kFirst = (kIsRight ? kColumn - D::kLeft : kColumn) * kGroupRows;
        to[eight] = pair_at((kIsRight ? right : left) + kFirst);
        if constexpr (kScaled) {
          const double d = scales[kColumn];
          to[eight] =
              make_double2(rounded_product(to[eight].x, d), rounded_product(to[eight].y, d));
        }
      }
    });
  }

  __device__ void clear() {
#pragma unroll
    for (auto& product : unit) {
#pragma unroll
      for (auto& lane : product) lane[0] = lane[1] = lane[2] = lane[3] = 0;
    }
  }
  /// Adds a tile of a stage: `left` and `right` are where this thread begins to read, of
  /// x and of y.
  template <int kSet, bool kScaled, class T>
  __device__ void add(const T* left, const T* right, const double* scales) {
    using D = Deal<S>;
    double part[D::kEach][2][4];
#pragma unroll
    for (auto& product : part) {
#pragma unroll
      for (auto& lane : product) lane[0] = lane[1] = lane[2] = lane[3] = 0;
    }
    double2 now[S::kEights];  // of two lanes, one of 16 rows of each eight
    read<kSet, kScaled>(left, right, scales, now);
#pragma unroll 2
    for (int k = kGroupRows; k <= kGramTileRows; k += kGroupRows) {
      double2 next[S::kEights];
      if (k < kGramTileRows)
        read<kSet, kScaled>(left + k * D::kLeft, right + k * D::kRight, scales, next);
      each<D::kEach>([&](auto which) {
        constexpr int kWhich = kSet * D::kEach + which;
        if constexpr (kWhich < S::kCount) {
          constexpr Product kProduct = S::at(kWhich);
          constexpr int kA = kProduct.a;
          constexpr int kBehind = kA + 1 < S::kEights ? kA + 1 : kA;  // rows that are not read
          tile::multiply_add(part[which][0], now[kA].x, now[kBehind].x, now[kProduct.b].x);
          tile::multiply_add(part[which][1], now[kA].y, now[kBehind].y, now[kProduct.b].y);
        }
      });
#pragma unroll
      for (int e = 0; e < S::kEights; ++e) now[e] = next[e];
    }
#pragma unroll
    for (int p = 0; p < D::kEach; ++p) {
#pragma unroll
      for (int lane = 0; lane < 2; ++lane) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          unit[p][lane][e] = rounded_sum(unit[p][lane][e], part[p][lane][e]);
      }
    }
  }
};

/// Where a warp stands: its products, and the lanes 0 and 1 or 2 and 3.
struct Role {
  int set, lanes, g, q;
};

/// The two warps of a set meet.
__device__ inline void meet(int set) {
  asm volatile("bar.sync %0, %1;" ::"r"(set + 1), "n"(2 * kWarpSize) : "memory");
}

/// The sums of lanes 0 and 1 and of 2 and 3 are added by the warp of the former.
template <class S, class T>
__device__ void put_unit(const Role& role, const Job<T>& job, const Pairs& pairs,
                         const Sums<S>& sums, double* exchange, double* to) {
  using D = Deal<S>;
  const bool triangle = job.y.cols == 0;
  const std::int64_t cols = triangle ? job.x.cols : job.y.cols;
  const auto sum = [&](int p, int e) {
    return rounded_sum(sums.unit[p][0][e], sums.unit[p][1][e]);
  };
  double* here = exchange + role.set * D::kEach * 4 * kWarpSize + tile::lane();
  if (role.lanes == 1) {
#pragma unroll
    for (int p = 0; p < D::kEach; ++p) {
#pragma unroll
      for (int e = 0; e < 4; ++e) here[(p * 4 + e) * kWarpSize] = sum(p, e);
    }
  }
  meet(role.set);
  if (role.lanes == 0) {
#pragma unroll
    for (int p = 0; p < D::kEach; ++p) {
      if (role.set * D::kEach + p >= S::kCount) break;
      const Product product = S::at(role.set * D::kEach + p);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const std::int64_t i = kEight * (product.a + e / 2) + role.g;
        const std::int64_t j = kEight * (product.b - S::kFirstRight) + 2 * role.q + e % 2;
        if (i < job.x.cols && j < cols && (!triangle || i <= j))
          to[pairs.number(job.i0 + i, job.j0 + j)] =
              rounded_sum(sum(p, e), here[(p * 4 + e) * kWarpSize]);
      }
    }
  }
  meet(role.set);
}

/// The units of a thread block, in stages of `tiles` tiles.
struct Units {
  std::int64_t first, step, count;
  int tiles_of_unit, tiles, stages;
};

/// A stage among those of the units.
struct Cursor {
  std::int64_t unit;
  int part;

  __device__ void advance(const Units& units) {
    part += units.tiles;
    if (part < units.tiles_of_unit) return;
    part = 0;
    unit += units.step;
  }
  [[nodiscard]] __device__ std::int64_t row(const Units& units) const {
    return (unit * units.tiles_of_unit + part) * kGramTileRows;
  }
};

/// Begins to fill the stages; tells which is next.
template <class S, class T>
__device__ Cursor fill_stages(const Units& units, const Stages<S, T>& stages) {
  Cursor ahead{units.first, 0};
  for (int stage = 0; stage < units.stages && ahead.unit < units.count; ++stage) {
    if (stage % Deal<S>::kWarps == tile::warp()) stages.start(stage, ahead.row(units));
    ahead.advance(units);
  }
  return ahead;
}

/// What the warps of one set do, behind fill_stages(): ready(stage, phase) waits for a stage and
/// tells where it is, add(sums, stage) adds it. The registers of its sums are the same throughout,
/// which they would not be if sets were told apart within the loop.
template <class S, class T, class Ready, class Add>
__device__ void add_units(const Role& role, const Job<T>& job, const Pairs& pairs,
                          const Units& units, const Stages<S, T>& stages, Cursor ahead,
                          double* exchange, double* to, const Ready& ready, const Add& add) {
  using D = Deal<S>;
  int stage = 0;
  int phase = 0;
  int turn = 0;  // the warp that fills a stage again
  bool begun = false;
  Sums<S> sums;
  for (std::int64_t unit = units.first; unit < units.count; unit += units.step) {
    sums.clear();
    for (int part = 0; part < units.tiles_of_unit; part += units.tiles) {
      if (begun && ahead.unit < units.count) {
        if (turn == tile::warp()) {
          const int before = stage == 0 ? units.stages - 1 : stage - 1;
          stages.wait_empty(before, stage == 0 ? phase - 1 : phase);
          stages.start(before, ahead.row(units));
        }
        ahead.advance(units);
        turn = turn + 1 == D::kWarps ? 0 : turn + 1;
      }
      begun = true;
      add(sums, ready(stage, phase));
      stages.release(stage);
      if (++stage == units.stages) {
        stage = 0;
        ++phase;
      }
    }
    put_unit<S>(role, job, pairs, sums, exchange, to + unit * pairs.count());
  }
}

template <class T>
struct Launch {
  using Number = T;
  TensorMap left, right;  ///< of x and y, or both of x; where `mapped`
  bool mapped;
  Columns<T> x, y;  ///< y has no columns where the sums are symmetric
  Pairs pairs;
  std::int64_t units;
  int tiles_of_unit;
  int stages;
  double* to;
};

/// `blocks` thread blocks a unit, of which each has room for two stages or more, and kMore bytes
/// behind them.
template <class S, int kMore = 0, class L>
void launch(cudaStream_t stream, void (*kernel)(L), L l, std::int64_t blocks) {
  using T = typename L::Number;
  using D = Deal<S>;
  constexpr int kStageBytes = static_cast<int>(sizeof(T)) * D::kStage;
  constexpr int kBeside = 8 * D::kExchange + kMore + 1024;  // dynamic: it is aligned to 1024
  constexpr int kStatic = 1024 + 8 * D::kColumns + 8 * 2 * kStagesMost;
  constexpr int kLeast = 2 * kStageBytes + kBeside + kStatic;
  static_assert(kLeast <= kSharedOfAll);
  const int resident = std::min(D::kResident, kSharedOfAll / kLeast);
  const int room = kSharedOfAll / resident - kStatic - kBeside;
  l.stages = std::min(room / kStageBytes, kStagesMost);
  const int bytes = l.stages * kStageBytes + kBeside;
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "shared memory of sums");
  const bool is_aligned = tile::columns_aligned(l.x.data, l.x.ld) &&
                          (l.y.cols == 0 || tile::columns_aligned(l.y.data, l.y.ld));
  l.mapped = is_aligned && l.x.rows >= kGramTileRows;
  if (l.mapped) {
    const int groups = std::min(D::kTiles, l.tiles_of_unit) * (kGramTileRows / kGroupRows);
    const auto map_of = [&](const Columns<T>& x, int cols) {
      return make_group_map(MatrixView<const T>{x.data, x.rows, x.cols, x.ld}, groups, cols);
    };
    l.left = map_of(l.x, D::kLeft);
    if constexpr (D::kRight > 0) l.right = map_of(l.y.cols > 0 ? l.y : l.x, D::kRight);
  }
  const std::int64_t most =
      std::max<std::int64_t>(1, std::int64_t{multiprocessors()} * resident / blocks);
  const dim3 grid(static_cast<unsigned>(blocks),
                  static_cast<unsigned>(std::min(std::min(l.units, most), std::int64_t{65535})));
  kernel<<<grid, D::kThreads, static_cast<std::size_t>(bytes), stream>>>(l);
  require_cuda(cudaGetLastError(), "sums of units");
}

template <class T>
Launch<T> sums_of(const Columns<T>& x, const Columns<T>& y, const Pairs& pairs, int tiles_of_unit,
                  double* units) {
  Launch<T> l{};
  l.x = x;
  l.y = y;
  l.pairs = pairs;
  l.units = units_of(x.rows, tiles_of_unit);
  l.tiles_of_unit = tiles_of_unit;
  l.to = units;
  return l;
}

}  // namespace strata::gram_gpu
