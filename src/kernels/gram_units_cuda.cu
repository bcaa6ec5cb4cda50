// Sums of units on a GPU.
//
// Method: a thread block has a few units at once and goes through their tiles of 128 rows. A tile
// is copied to shared memory while the one before it is worked on. There a lane's rows of all
// columns lie side by side (Stage), so that neither copies nor reads have bank conflicts. A thread
// has kEdge × kEdge pairs of columns of one lane of one unit in registers: 2·kEdge numbers are read
// for kEdge² products. Pairs of a square on the diagonal are in warps of their own, which leave out
// the lower half. Where the squares of all columns would be too many threads, columns are taken in
// panels, two at a time. Edge and number of units are those that choose() counts as fastest.
// Exponents for extraction are taken from the high words in shared memory, a warp a column; scales
// that are not 1 are applied there too.

#include "kernels/gram_units_cuda.hpp"
#include "kernels/tile_copy_cuda.hpp"

namespace strata::gram_gpu {
namespace {

constexpr int kPanel = 32;        // columns of a panel, in squares of four
constexpr int kThreadsMax = 256;  // two warps a scheduler, so that each may have 255 registers
constexpr std::int64_t kSharedMost = 220 << 10;  // bytes of a multiprocessor, less what is reserved

/// How a stage lies in shared memory and what threads do with it.
struct Stage {
  std::int64_t n;   ///< columns of V
  int width;        ///< columns of a panel
  int panels;       ///< of V; of several each has whole squares
  int squares;      ///< in a panel
  int spots;        ///< for columns in shared memory: an odd number, between squares a gap
  int units;        ///< at once
  int off_threads;  ///< of pairs of different squares, whole warps
  int threads;
  int doubles;  ///< of a stage
};

template <int kEdge>
constexpr int kSpots = kEdge % 2 == 0 ? kEdge + 1 : kEdge;  // of a square

/// Where an element is: the four lanes of a row of four lie together.
template <int kEdge>
__device__ int spot_of(int column) {
  return column / kEdge * kSpots<kEdge> + column % kEdge;
}

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
    q.tj = s.squares + p % of_unit / s.squares;
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

/// Starts the copies of a tile of each unit. `kBytes`: of a copy, 16 where columns are aligned.
template <int kEdge, int kBytes>
__device__ void copy_tile(const Stage& s, const Panels& panels, const Columns<double>& x,
                          std::int64_t first_unit, int tile, double* to) {
  constexpr int kEach = kBytes / 8;
  const int columns = panels.same() ? s.width : 2 * s.width;
  for (int w = ::strata::tile::warp(); w < s.units * columns;
       w += static_cast<int>(blockDim.x) / kWarpSize) {
    const int unit = w / columns;
    const int column = w % columns;
    const int panel = column < s.width ? panels.first : panels.second;
    const std::int64_t of_v = std::int64_t{panel} * s.width + column % s.width;
    const std::int64_t row = (first_unit + unit) * kGramUnitRows + tile * kGramTileRows;
    double* base =
        to + (std::int64_t{unit} * kGramLaneRows * s.spots + spot_of<kEdge>(column)) * kGramLanes;
    const std::int64_t rows = of_v < s.n ? x.rows - row : 0;
#pragma unroll
    for (int r = ::strata::tile::lane() * kEach; r < kGramTileRows; r += kWarpSize * kEach) {
      const std::int64_t left = rows - r;
      const int bytes = left <= 0 ? 0 : left >= kEach ? kBytes : 8;
      const double* from = bytes > 0 ? x.data + row + r + of_v * x.ld : x.data;
      ::strata::tile::copy_async<kBytes>(
          base + (r / kGramLanes) * s.spots * kGramLanes + r % kGramLanes, from, bytes);
    }
  }
}

/// Scales the columns of a stage, and finds the biased exponents of their largest magnitudes.
template <int kEdge>
__device__ void prepare(const Stage& s, const Panels& panels, const Columns<double>& x, bool scaled,
                        double* stage, int* fields) {
  const int columns = panels.same() ? s.width : 2 * s.width;
  for (int w = ::strata::tile::warp(); w < s.units * columns;
       w += static_cast<int>(blockDim.x) / kWarpSize) {
    const int unit = w / columns;
    const int column = w % columns;
    const int panel = column < s.width ? panels.first : panels.second;
    const std::int64_t of_v = std::int64_t{panel} * s.width + column % s.width;
    double* row = stage + ((std::int64_t{unit} * kGramLaneRows + ::strata::tile::lane()) * s.spots +
                           spot_of<kEdge>(column)) *
                              kGramLanes;
    const double d = scaled && of_v < s.n ? x.d[of_v] : 1.0;
    unsigned largest = 0;
#pragma unroll
    for (int l = 0; l < kGramLanes; l += 2) {
      double2 two = *reinterpret_cast<const double2*>(row + l);
      if (scaled) {
        two = make_double2(rounded_product(two.x, d), rounded_product(two.y, d));
        *reinterpret_cast<double2*>(row + l) = two;
      }
      largest = max(largest, static_cast<unsigned>(__double2hiint(two.x)) & 0x7fffffffU);
      largest = max(largest, static_cast<unsigned>(__double2hiint(two.y)) & 0x7fffffffU);
    }
    largest = __reduce_max_sync(0xffffffffU, largest);
    if (::strata::tile::lane() == 0) fields[w] = static_cast<int>(largest >> 20);
  }
}

/// The sums of a thread's pairs: of the unit so far, and of a tile.
template <class W, int kEdge>
struct Sums;

template <int kEdge>
struct Sums<double, kEdge> {
  static constexpr bool kWithFields = false;
  double unit[kEdge][kEdge];
  double tile[kEdge][kEdge];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = 0; j < kEdge; ++j) unit[i][j] = 0;
    }
  }
  template <bool kDiagonal>
  __device__ void add(const double* xi, const double* xj, int stride, const int*, const int*) {
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = 0; j < kEdge; ++j) tile[i][j] = 0;
    }
#pragma unroll 4
    for (int k = 0; k < kGramLaneRows; ++k, xi += stride, xj += stride) {
      double a[kEdge], b[kEdge];
#pragma unroll
      for (int i = 0; i < kEdge; ++i) a[i] = xi[i * kGramLanes];
#pragma unroll
      for (int j = 0; j < kEdge; ++j) b[j] = kDiagonal ? a[j] : xj[j * kGramLanes];
#pragma unroll
      for (int i = 0; i < kEdge; ++i) {
#pragma unroll
        for (int j = kDiagonal ? i : 0; j < kEdge; ++j) tile[i][j] = fused(a[i], b[j], tile[i][j]);
      }
    }
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = kDiagonal ? i : 0; j < kEdge; ++j)
        unit[i][j] = rounded_sum(unit[i][j], tile[i][j]);
    }
  }
};

template <int kEdge>
struct Sums<DoubleDouble, kEdge> {
  static constexpr bool kWithFields = true;
  DoubleDouble unit[kEdge][kEdge];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = 0; j < kEdge; ++j) unit[i][j] = DoubleDouble{};
    }
  }
  template <bool kDiagonal>
  __device__ void add(const double* xi, const double* xj, int stride, const int* fields_i,
                      const int* fields_j) {
    double a[kEdge][kEdge], low[kEdge][kEdge];
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = kDiagonal ? i : 0; j < kEdge; ++j) {
        a[i][j] = extraction_start(fields_i[i], fields_j[j]);
        low[i][j] = 0;
      }
    }
#pragma unroll 2
    for (int k = 0; k < kGramLaneRows; ++k, xi += stride, xj += stride) {
      double x[kEdge], y[kEdge];
#pragma unroll
      for (int i = 0; i < kEdge; ++i) x[i] = xi[i * kGramLanes];
#pragma unroll
      for (int j = 0; j < kEdge; ++j) y[j] = kDiagonal ? x[j] : xj[j * kGramLanes];
#pragma unroll
      for (int i = 0; i < kEdge; ++i) {
#pragma unroll
        for (int j = kDiagonal ? i : 0; j < kEdge; ++j) {
          const double t = fused(x[i], y[j], a[i][j]);
          const double q = rounded_sum(t, -a[i][j]);
          low[i][j] = rounded_sum(low[i][j], fused(x[i], y[j], -q));
          a[i][j] = t;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kEdge; ++i) {
#pragma unroll
      for (int j = kDiagonal ? i : 0; j < kEdge; ++j) {
        const double start = extraction_start(fields_i[i], fields_j[j]);
        unit[i][j] = add_cray(unit[i][j], DoubleDouble{rounded_sum(a[i][j], -start), low[i][j]});
      }
    }
  }
};

__device__ double from_lane(double x, int mask) { return __shfl_xor_sync(0xffffffffU, x, mask); }
__device__ DoubleDouble from_lane(const DoubleDouble& x, int mask) {
  return {from_lane(x.hi, mask), from_lane(x.lo, mask)};
}

/// The sums of the four lanes of a unit, by the thread of the first.
template <class W, int kEdge>
__device__ void put_unit(const Stage& s, const Panels& panels, const Square& q,
                         const Sums<W, kEdge>& sums, std::int64_t unit, std::int64_t units, W* to) {
  const Pairs pairs{s.n, s.n, true};
  const bool writes = q.active && q.lane == 0 && unit < units;
  const std::int64_t i0 = std::int64_t{panels.first} * s.width + q.ti * kEdge;
  const std::int64_t j0 =
      std::int64_t{panels.second} * s.width + (q.tj - (panels.same() ? 0 : s.squares)) * kEdge;
#pragma unroll
  for (int i = 0; i < kEdge; ++i) {
#pragma unroll
    for (int j = 0; j < kEdge; ++j) {
      if (q.diagonal && j < i) continue;  // the same for all of a warp
      W sum = sums.unit[i][j];
      W other = from_lane(sum, 1);
      sum = q.lane % 2 == 0 ? sum_of(sum, other) : sum_of(other, sum);
      other = from_lane(sum, 2);
      sum = q.lane < 2 ? sum_of(sum, other) : sum_of(other, sum);
      if (writes && i0 + i < s.n && j0 + j < s.n)
        to[unit * pairs.count() + pairs.number(i0 + i, j0 + j)] = sum;
    }
  }
}

template <class W, int kEdge, int kBytes>
__global__ void __launch_bounds__(kThreadsMax)
    sum_units(Stage s, Columns<double> x, std::int64_t units, W* to) {
  extern __shared__ __align__(16) double memory[];
  auto* fields = reinterpret_cast<int*>(memory + 2 * s.doubles);
  const Panels panels = panels_of(blockIdx.y);
  const Square q = square_of(s, panels);
  const int columns = panels.same() ? s.width : 2 * s.width;
  bool scaled = false;
  for (std::int64_t j = 0; x.d != nullptr && j < s.n; ++j) scaled = scaled || x.d[j] != 1.0;
  const int spots = 2 * s.doubles;
  for (int k = static_cast<int>(threadIdx.x); k < spots; k += static_cast<int>(blockDim.x))
    memory[k] = 0;  // gaps, and columns that a last square lacks
  __syncthreads();
  constexpr int kTiles = kGramUnitRows / kGramTileRows;
  const std::int64_t groups = (units + s.units - 1) / s.units;
  const std::int64_t mine =
      groups > blockIdx.x ? (groups - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  const auto start = [&](std::int64_t step) {
    if (step < mine * kTiles) {
      const std::int64_t group = blockIdx.x + step / kTiles * gridDim.x;
      copy_tile<kEdge, kBytes>(s, panels, x, group * s.units, static_cast<int>(step % kTiles),
                               memory + (step % 2) * s.doubles);
    }
    ::strata::tile::commit_copies();
  };
  Sums<W, kEdge> sums;
  const int of_unit = kGramLaneRows * s.spots * kGramLanes;
  start(0);
  for (std::int64_t step = 0; step < mine * kTiles; ++step) {
    if (step % kTiles == 0) sums.clear();
    ::strata::tile::wait_copies<0>();
    __syncthreads();
    start(step + 1);
    double* stage = memory + (step % 2) * s.doubles;
    if (Sums<W, kEdge>::kWithFields || scaled) {
      prepare<kEdge>(s, panels, x, scaled, stage, fields);
      __syncthreads();
    }
    const double* unit = stage + q.unit * of_unit + q.lane;
    const double* xi = unit + q.ti * kSpots<kEdge> * kGramLanes;
    const double* xj = unit + q.tj * kSpots<kEdge> * kGramLanes;
    const int* fi = fields + q.unit * columns + q.ti * kEdge;
    const int* fj = fields + q.unit * columns + q.tj * kEdge;
    const int stride = s.spots * kGramLanes;
    if (q.diagonal) {
      sums.template add<true>(xi, xj, stride, fi, fj);
    } else {
      sums.template add<false>(xi, xj, stride, fi, fj);
    }
    if (step % kTiles == kTiles - 1) {
      const std::int64_t group = blockIdx.x + step / kTiles * gridDim.x;
      put_unit<W, kEdge>(s, panels, q, sums, group * s.units + q.unit, units, to);
    }
  }
}

/// The shape of a stage, and how long a row takes by it, in arbitrary units; less is better.
struct Choice {
  Stage stage{};
  int edge = 0;
  double cost = 1e300;
};

constexpr int rounded_up(int x, int to) { return (x + to - 1) / to * to; }

/// `units` of n columns at once in squares of `edge`; `wide`: four operations a product.
Choice shape_of(std::int64_t n, int edge, int units, bool wide) {
  Choice c;
  Stage& s = c.stage;
  const auto squares_of = [edge](std::int64_t columns) {
    return static_cast<int>((columns + edge - 1) / edge);
  };
  s.n = n;
  s.units = units;
  s.squares = squares_of(n);
  const auto pairs_of = [](int squares) { return squares * (squares - 1) / 2; };
  s.panels = 1;
  if (rounded_up(kGramLanes * pairs_of(s.squares), kWarpSize) +
          rounded_up(kGramLanes * s.squares, kWarpSize) >
      kThreadsMax) {
    if (edge != 4) return c;
    s.squares = kPanel / edge;
    s.panels = static_cast<int>((n + kPanel - 1) / kPanel);
  }
  s.width = s.panels == 1 ? static_cast<int>(n) : kPanel;
  const int off = kGramLanes * pairs_of(s.squares) * units;
  const int diagonal = kGramLanes * s.squares * units;
  s.off_threads = rounded_up(off, kWarpSize);
  s.threads = rounded_up(s.off_threads + diagonal, kWarpSize);
  if (s.panels > 1) s.threads = std::max(s.threads, kGramLanes * s.squares * s.squares * units);
  s.spots = s.squares * (edge % 2 == 0 ? edge + 1 : edge) * (s.panels > 1 ? 2 : 1);
  if (s.spots % 2 == 0) ++s.spots;
  s.doubles = units * kGramLaneRows * s.spots * kGramLanes;
  const std::int64_t bytes = 2 * std::int64_t{8} * s.doubles;
  if (bytes > kSharedMost || s.threads > kThreadsMax) return c;
  // Products and reads of shared memory of a row, each at the rate of a multiprocessor, by warps
  // that are whole; and as many warps as it takes to keep it busy.
  const double per_row = 1.0 / units;
  const int diagonal_threads = rounded_up(diagonal, kWarpSize);
  const double products =
      per_row * (s.off_threads * edge * edge + diagonal_threads * edge * (edge + 1) / 2.0);
  const double reads = per_row * (s.off_threads * 2 * edge + diagonal_threads * edge);
  const double warps =
      static_cast<double>(std::min<std::int64_t>(kSharedMost / bytes, 4)) * s.threads / kWarpSize;
  const double idle = warps < 8 ? 8 / warps : 1;
  c.edge = edge;
  c.cost = std::max(products * (wide ? 4.5 : 1.1) / 64, reads / 16) * idle;
  return c;
}

Choice choose(std::int64_t n, bool wide) {
  Choice best;
  for (const int edge : {2, 3, 4, 5}) {
    if (wide ? edge > 4 : edge < 4) continue;
    for (int units = 1; units <= 16; ++units) {
      const Choice c = shape_of(n, edge, units, wide);
      if (c.cost < best.cost) best = c;
    }
  }
  return best;
}

template <class W, int kEdge, int kBytes>
void launch(cudaStream_t stream, const Stage& s, const Columns<double>& x, W* to) {
  const auto kernel = sum_units<W, kEdge, kBytes>;
  const std::int64_t columns = std::int64_t{s.width} * (s.panels > 1 ? 2 : 1);
  const int bytes =
      static_cast<int>(2 * std::int64_t{8} * s.doubles + aligned(4 * (s.units * columns + kEdge)));
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kSharedMost + 4096)),
               "shared memory of sums");
  int resident = 0;
  require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, s.threads,
                                                             static_cast<std::size_t>(bytes)),
               "sums");
  const std::int64_t units = units_of(x.rows);
  const std::int64_t groups = (units + s.units - 1) / s.units;
  const int panels = s.panels * (s.panels + 1) / 2;
  const std::int64_t across =
      std::max<std::int64_t>(1, std::int64_t{multiprocessors()} * std::max(resident, 1) / panels);
  const dim3 grid(static_cast<unsigned>(std::min(groups, across)), static_cast<unsigned>(panels));
  kernel<<<grid, static_cast<unsigned>(s.threads), static_cast<std::size_t>(bytes), stream>>>(
      s, x, units, to);
  require_cuda(cudaGetLastError(), "sums of units");
}

template <class W, int kEdge>
void launch_aligned(cudaStream_t stream, const Stage& s, const Columns<double>& x, W* to) {
  ::strata::tile::columns_aligned(x.data, x.ld) ? launch<W, kEdge, 16>(stream, s, x, to)
                                                : launch<W, kEdge, 8>(stream, s, x, to);
}

}  // namespace

void unit_sums(cudaStream_t stream, const Columns<double>& x, double* units) {
  const Choice c = choose(x.cols, false);
  if (c.edge == 5) return launch_aligned<double, 5>(stream, c.stage, x, units);
  launch_aligned<double, 4>(stream, c.stage, x, units);
}

void unit_sums(cudaStream_t stream, const Columns<double>& x, DoubleDouble* units) {
  const Choice c = choose(x.cols, true);
  if (c.edge == 2) return launch_aligned<DoubleDouble, 2>(stream, c.stage, x, units);
  if (c.edge == 3) return launch_aligned<DoubleDouble, 3>(stream, c.stage, x, units);
  launch_aligned<DoubleDouble, 4>(stream, c.stage, x, units);
}

}  // namespace strata::gram_gpu
