// Sums of units in double-double on a GPU.
//
// Method: a thread block has a few units at once and goes through their tiles of 128 rows. Each
// column of a tile is copied to shared memory as a whole, by the copy engine of the multiprocessor,
// while the tile before it is worked on. A thread has kEdge × kEdge pairs of columns of one lane of
// one unit in registers, so 2·kEdge numbers are read for kEdge² products. Its columns are as far
// apart as there are such squares, and those of neighbouring threads side by side, so that reads
// have no bank conflicts. Pairs of a square with itself are in warps of their own, which leave out
// half of them. Where the squares of all columns would be too many threads, columns are taken in
// panels, two at a time. Edge and number of units are those that choose() counts as fastest.
// Exponents for extraction are taken from the high words in shared memory, a warp a column; scales
// that are not 1 are applied there too.

#include <string>

#include "kernels/backend/tile_copy_cuda.hpp"
#include "kernels/tall/gram_shape.hpp"
#include "kernels/tall/gram_units_cuda.hpp"
#include "strata/error.hpp"

namespace strata::gram_gpu {
namespace {

using namespace gram_shape;

/// The columns of a thread block: those of one panel, or of two different ones.
struct Panels {
  int first, second;
  [[nodiscard]] __device__ bool same() const { return first == second; }
};
__device__ Panels panels_of(unsigned which) {
  int j = 0;
  while ((j + 1) * (j + 2) / 2 <= static_cast<int>(which)) ++j;
  return {static_cast<int>(which) - j * (j + 1) / 2, j};
}

/// Squares (ti, tj) of columns, and whether they are the same one.
struct Square {
  int ti, tj, unit, lane;
  bool diagonal, active;
};
__device__ Square square_of(const Stage& s, const Panels& panels) {
  const int t = static_cast<int>(threadIdx.x);
  Square q{};
  q.lane = t % kGramLanes;
  if (!panels.same()) {
    const int p = t / kGramLanes;
    const int of_unit = s.squares * s.squares;
    q.unit = p / of_unit;
    q.ti = p % of_unit % s.squares;
    q.tj = p % of_unit / s.squares;
  } else if (t < s.off_threads) {
    const int of_unit = s.squares * (s.squares - 1) / 2;
    const int p = t / kGramLanes;
    q.unit = of_unit > 0 ? p / of_unit : s.units;
    int rest = of_unit > 0 ? p % of_unit : 0;
    q.tj = 1;
    while (rest >= q.tj) rest -= q.tj++;
    q.ti = rest;
  } else {
    const int p = (t - s.off_threads) / kGramLanes;
    q.diagonal = true;
    q.unit = p / s.squares;
    q.ti = q.tj = p % s.squares;
  }
  q.active = q.unit < s.units;
  if (!q.active) q.unit = q.ti = q.tj = 0;
  return q;
}

/// The column of V that column c of a unit in shared memory is.
__device__ std::int64_t of_matrix(const Stage& s, const Panels& panels, int c) {
  return c < s.width ? std::int64_t{panels.first} * s.width + c
                     : std::int64_t{panels.second} * s.width + c - s.width;
}
/// How many columns of a unit are copied.
__device__ int copied(const Stage& s, const Panels& panels) {
  const int second = panels.same() ? 0 : s.width;
  const std::int64_t last =
      std::int64_t{panels.second} * s.width + s.width;  // panels.second >= first
  return s.width + second - static_cast<int>(last > s.n ? last - s.n : 0);
}

/// The column that a thread has the copy engine copy.
struct Copy {
  const double* column;
  int unit;
  int to;  ///< in a stage
  bool mine;
};
/// Columns are dealt to the warps in turn: a copy takes a while of a warp's time.
__device__ Copy copy_of(const Stage& s, const Panels& panels, const Columns<double>& x) {
  const int columns = copied(s, panels);
  const int which =
      ::strata::tile::warp() + ::strata::tile::lane() * (static_cast<int>(blockDim.x) / kWarpSize);
  Copy copy{x.data, which / columns, 0, which < s.units * columns};
  if (!copy.mine) return copy;
  copy.column += of_matrix(s, panels, which % columns) * x.ld;
  copy.to = (copy.unit * s.columns + which % columns) * kColumn;
  return copy;
}

/// Starts the copies of a tile of each unit. What the copy engine does not take, the rows of the
/// last tile and columns that are not aligned, the threads copy. `full` counts the bytes.
template <bool kAligned>
__device__ void copy_tiles(const Stage& s, const Panels& panels, const Columns<double>& x,
                           const Copy& copy, std::int64_t first_row, double* to,
                           unsigned long long* full) {
  constexpr int kBytes = kGramTileRows * 8;
  const std::int64_t unit_rows = std::int64_t{s.tiles} * kGramTileRows;
  // Units whose tile is whole: the first ones.
  const std::int64_t rest = x.rows - first_row - kGramTileRows;
  const int whole = !kAligned || rest < 0               ? 0
                    : rest >= (s.units - 1) * unit_rows ? s.units
                                                        : static_cast<int>(rest / unit_rows) + 1;
  if (kAligned) {
    if (threadIdx.x == 0)
      ::strata::tile::arrive_expecting(full, whole * copied(s, panels) * kBytes);
    if (copy.mine && copy.unit < whole)
      ::strata::tile::copy_bulk(to + copy.to, copy.column + first_row + copy.unit * unit_rows,
                                kBytes, full);
  }
  if (whole == s.units) return;
  const int columns = copied(s, panels);
  for (int unit = whole; unit < s.units; ++unit) {
    const std::int64_t row = first_row + unit * unit_rows;
    for (int c = ::strata::tile::warp(); c < columns;
         c += static_cast<int>(blockDim.x) / kWarpSize) {
      const double* column = x.data + of_matrix(s, panels, c) * x.ld + row;
#pragma unroll
      for (int r = ::strata::tile::lane(); r < kGramTileRows; r += kWarpSize) {
        const bool inside = row + r < x.rows;
        ::strata::tile::copy_async<8>(to + (unit * s.columns + c) * kColumn + r,
                                      inside ? column + r : x.data, inside ? 8 : 0);
      }
    }
  }
  ::strata::tile::commit_copies();
}

/// Scales the columns of a stage, and finds the biased exponents of their largest magnitudes.
__device__ void prepare(const Stage& s, const Panels& panels, const Columns<double>& x, bool scaled,
                        double* stage, int* fields) {
  const int columns = copied(s, panels);
  for (int unit = 0; unit < s.units; ++unit) {
#pragma unroll 2
    for (int c = ::strata::tile::warp(); c < columns;
         c += static_cast<int>(blockDim.x) / kWarpSize) {
      auto* column = reinterpret_cast<double2*>(stage + (unit * s.columns + c) * kColumn) +
                     ::strata::tile::lane();
      double2 two[2] = {column[0], column[kWarpSize]};
      unsigned largest = 0;
      const double d = scaled ? x.d[of_matrix(s, panels, c)] : 1.0;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        double2& v = two[half];
        if (scaled) {
          v = make_double2(rounded_product(v.x, d), rounded_product(v.y, d));
          column[half * kWarpSize] = v;
        }
        largest = max(largest, static_cast<unsigned>(__double2hiint(v.x)) & 0x7fffffffU);
        largest = max(largest, static_cast<unsigned>(__double2hiint(v.y)) & 0x7fffffffU);
      }
      largest = __reduce_max_sync(0xffffffffU, largest);
      if (::strata::tile::lane() == 0)
        fields[unit * s.columns + c] = static_cast<int>(largest >> 20);
    }
  }
}

/// The sums of a thread's pairs, of the unit so far.
template <int kEdge>
struct Sums {
  DoubleDouble unit[kEdge][kEdge];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = 0; j < kEdge; ++j) unit[i][j] = DoubleDouble{};
    }
  }
  /// Each operation of all products before the next one, so that none waits for the one before it.
  template <bool kDiagonal>
  __device__ void add(const double* xi, const double* xj, int apart, const int* fields_i,
                      const int* fields_j) {
    double a[kEdge][kEdge], low[kEdge][kEdge];
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = kDiagonal ? i : 0; j < kEdge; ++j) {
        a[i][j] = extraction_start(fields_i[i * apart], fields_j[j * apart]);
        low[i][j] = 0;
      }
    }
#pragma unroll 2
    for (int k = 0; k < kGramLaneRows; ++k) {
      double x[kEdge], y[kEdge];
#pragma unroll
      for (int i = 0; i < kEdge; ++i) x[i] = xi[i * apart * kColumn + k * kGramLanes];
#pragma unroll
      for (int j = 0; j < kEdge; ++j)
        y[j] = kDiagonal ? x[j] : xj[j * apart * kColumn + k * kGramLanes];
      double t[kEdge][kEdge], q[kEdge][kEdge];
      const auto each = [&](auto&& operation) {
#pragma unroll
        for (int i = 0; i < kEdge; ++i) {
#pragma unroll
          for (int j = kDiagonal ? i : 0; j < kEdge; ++j) operation(i, j);
        }
      };
      each([&](int i, int j) { t[i][j] = fused(x[i], y[j], a[i][j]); });
      each([&](int i, int j) { q[i][j] = rounded_sum(t[i][j], -a[i][j]); });
      each([&](int i, int j) { q[i][j] = fused(x[i], y[j], -q[i][j]); });
      each([&](int i, int j) {
        low[i][j] = rounded_sum(low[i][j], q[i][j]);
        a[i][j] = t[i][j];
      });
    }
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = kDiagonal ? i : 0; j < kEdge; ++j) {
        const double start = extraction_start(fields_i[i * apart], fields_j[j * apart]);
        unit[i][j] = add_cray(unit[i][j], DoubleDouble{rounded_sum(a[i][j], -start), low[i][j]});
      }
    }
  }
};

__device__ DoubleDouble from_lane(const DoubleDouble& x, int mask) {
  return {__shfl_xor_sync(0xffffffffU, x.hi, mask), __shfl_xor_sync(0xffffffffU, x.lo, mask)};
}

/// The sums of the four lanes of a unit, by the thread of the first.
template <int kEdge>
__device__ void put_unit(const Stage& s, const Panels& panels, const Square& q,
                         const Sums<kEdge>& sums, std::int64_t unit, std::int64_t units,
                         DoubleDouble* to) {
  const Pairs pairs{s.n, s.n, true};
  const bool writes = q.active && q.lane == 0 && unit < units;
  const std::int64_t i0 = std::int64_t{panels.first} * s.width + q.ti;
  const std::int64_t j0 = std::int64_t{panels.second} * s.width + q.tj;
#pragma unroll
  for (int i = 0; i < kEdge; ++i) {
#pragma unroll
    for (int j = 0; j < kEdge; ++j) {
      if (q.diagonal && j < i) continue;  // the same for all of a warp
      DoubleDouble sum = sums.unit[i][j];
      DoubleDouble other = from_lane(sum, 1);
      sum = q.lane % 2 == 0 ? sum_of(sum, other) : sum_of(other, sum);
      other = from_lane(sum, 2);
      sum = q.lane < 2 ? sum_of(sum, other) : sum_of(other, sum);
      const std::int64_t ci = i0 + i * s.squares;
      const std::int64_t cj = j0 + j * s.squares;
      if (writes && ci < s.n && cj < s.n)
        to[unit * pairs.count() + pairs.number(min(ci, cj), max(ci, cj))] = sum;
    }
  }
}

template <int kEdge, bool kAligned>
__global__ void __launch_bounds__(kThreadsMax, resident_blocks(kEdge))
    sum_units(Stage s, Columns<double> x, std::int64_t units, DoubleDouble* to) {
  extern __shared__ __align__(16) double memory[];
  __shared__ unsigned long long full[2];
  auto* fields = reinterpret_cast<int*>(memory + 2 * s.doubles);
  const Panels panels = panels_of(blockIdx.y);
  const Square q = square_of(s, panels);
  bool scaled = false;
  for (std::int64_t j = 0; x.d != nullptr && j < s.n; ++j) scaled = scaled || x.d[j] != 1.0;
  for (int k = static_cast<int>(threadIdx.x); k < 2 * s.doubles; k += static_cast<int>(blockDim.x))
    memory[k] = 0;  // columns that a last square or a last panel lacks
  for (int k = static_cast<int>(threadIdx.x); k < s.units * s.columns;
       k += static_cast<int>(blockDim.x))
    fields[k] = 0;
  if (threadIdx.x == 0) {
    ::strata::tile::init_barrier(&full[0], 1);
    ::strata::tile::init_barrier(&full[1], 1);
  }
  ::strata::tile::fence_async_proxy();
  __syncthreads();
  const int tiles = s.tiles;
  const std::int64_t groups = (units + s.units - 1) / s.units;
  const std::int64_t steps =
      groups > blockIdx.x ? (groups - blockIdx.x + gridDim.x - 1) / gridDim.x * tiles : 0;
  const auto first_unit = [&](std::int64_t step) {
    return (blockIdx.x + step / tiles * gridDim.x) * s.units;
  };
  const Copy copy = copy_of(s, panels, x);
  const auto start = [&](std::int64_t step) {
    if (step >= steps) return;
    copy_tiles<kAligned>(s, panels, x, copy,
                         first_unit(step) * (tiles * kGramTileRows) + step % tiles * kGramTileRows,
                         memory + (step % 2) * s.doubles, &full[step % 2]);
  };
  Sums<kEdge> sums;
  start(0);
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step % tiles == 0) sums.clear();
    if (kAligned) ::strata::tile::wait_phase(&full[step % 2], static_cast<int>(step / 2 % 2));
    ::strata::tile::wait_copies<0>();
    if (scaled) ::strata::tile::fence_async_proxy();  // of what was scaled in the other stage
    __syncthreads();
    start(step + 1);
    double* stage = memory + (step % 2) * s.doubles;
    prepare(s, panels, x, scaled, stage, fields);
    __syncthreads();
    const int ci = q.unit * s.columns + q.ti;
    const int cj = q.unit * s.columns + q.tj + (panels.same() ? 0 : s.width);
    const double* xi = stage + ci * kColumn + q.lane;
    const double* xj = stage + cj * kColumn + q.lane;
    if (q.diagonal) {
      sums.template add<true>(xi, xj, s.squares, fields + ci, fields + cj);
    } else {
      sums.template add<false>(xi, xj, s.squares, fields + ci, fields + cj);
    }
    if (step % tiles == tiles - 1)
      put_unit<kEdge>(s, panels, q, sums, first_unit(step) + q.unit, units, to);
  }
}

template <int kEdge, bool kAligned>
void launch(cudaStream_t stream, const Stage& s, const Columns<double>& x, DoubleDouble* to) {
  const auto kernel = sum_units<kEdge, kAligned>;
  const int bytes =
      static_cast<int>(2 * std::int64_t{8} * s.doubles + aligned(4 * s.units * s.columns));
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kSharedMost + 4096)),
               "shared memory of sums");
  int resident = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, s.threads,
                                                             static_cast<std::size_t>(bytes)),
               "sums");
  const std::int64_t units = units_of(x.rows, s.tiles);
  const std::int64_t groups = (units + s.units - 1) / s.units;
  const int panels = s.panels * (s.panels + 1) / 2;
  const std::int64_t across =
      std::max<std::int64_t>(1, std::int64_t{multiprocessors()} * std::max(resident, 1) / panels);
  const dim3 grid(static_cast<unsigned>(std::min(groups, across)), static_cast<unsigned>(panels));
  kernel<<<grid, static_cast<unsigned>(s.threads), static_cast<std::size_t>(bytes), stream>>>(
      s, x, units, to);
  require_cuda(cudaGetLastError(), "sums of units");
}

template <int kEdge>
void launch_aligned(cudaStream_t stream, const Stage& s, const Columns<double>& x,
                    DoubleDouble* to) {
  ::strata::tile::columns_aligned(x.data, x.ld) ? launch<kEdge, true>(stream, s, x, to)
                                                : launch<kEdge, false>(stream, s, x, to);
}

}  // namespace

void wide_unit_sums(cudaStream_t stream, const Columns<double>& x, int tiles_of_unit,
                    DoubleDouble* units, std::uint32_t variant) {
  const SumShape asked = shape_of_variant(variant);
  Choice c = asked.edge == 0 ? choose(x.cols) : shape_of(x.cols, asked.edge, asked.units);
  if (c.edge == 0)
    throw Error(ErrorKind::device, "gram",
                "sums of " + std::to_string(x.cols) +
                    " columns do not fit a thread block in squares of " +
                    std::to_string(asked.edge) + " with " + std::to_string(asked.units) + " units");
  c.stage.tiles = tiles_of_unit;
  if (c.edge == 2) return launch_aligned<2>(stream, c.stage, x, units);
  if (c.edge == 3) return launch_aligned<3>(stream, c.stage, x, units);
  launch_aligned<4>(stream, c.stage, x, units);
}

}  // namespace strata::gram_gpu
