// Substitution with the rows of tall matrices, in fp64 on the tensor cores (row_strip_cuda.hpp).
//
// Method: row_factor_cuda.hpp. Where the inverse of an eight is not good, which is rare, a kernel
// of its own gives each thread a row. One thread block prepares R for all. Up to 128 columns are
// solved for at once, and of more a panel is taken off all columns behind it. Up to 64 are solved
// for with two triangles one after the other, without a way to memory between.

#include "kernels/tall/row_factor_cuda.hpp"
#include "kernels/tall/row_products_cuda.hpp"

namespace strata::gram_gpu {
namespace {

constexpr int kSolveWarps = 4;

/// Thread blocks of a multiprocessor: as many as registers hold the rows of.
constexpr int solve_blocks(int eights) { return eights > 8 ? 2 : eights > 4 ? 3 : 4; }

/// U, T and D of a panel, by all threads, which meet in it; cols: of the panel, whose R begins at
/// r.
__device__ void factor_eights(const double* r, std::int64_t ld, std::int64_t cols,
                              PanelFactor& to) {
  __shared__ unsigned bad;
  if (threadIdx.x == 0) bad = 0;
  __syncthreads();
  const int rows = static_cast<int>((cols + kEight - 1) / kEight) * kEight;
  for (int at = static_cast<int>(threadIdx.x); at < rows * kEight;
       at += static_cast<int>(blockDim.x)) {
    const int i = at / kEight % kEight;
    const int col = at % kEight;
    const int j = at / kEight / kEight;
    const std::int64_t first = std::int64_t{kEight} * j;
    const double divisor = first + i < cols ? r[first + i + (first + i) * ld] : 1.0;
    to.unit[j][i][col] = col == i ? 1.0 : 0.0;
    if (col > i && first + col < cols)
      to.unit[j][i][col] = rounded_quotient(r[first + i + (first + col) * ld], divisor);
    if (col > 0) continue;
    to.diagonal[j][i] = divisor;
    to.reciprocal[j][i] = rounded_quotient(1.0, divisor);
    if (!divides_well(divisor)) atomicOr(&bad, 1U << j);
  }
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < rows; at += static_cast<int>(blockDim.x)) {
    const int j = at / kEight;
    const auto unit = [&](int row, int col) { return to.unit[j][row][col]; };
    if (!invert_row(at % kEight, unit, to.inverse[j][at % kEight])) atomicOr(&bad, 1U << j);
  }
  __syncthreads();
  if (threadIdx.x == 0) to.bad = bad;
}

/// Panel blockIdx.x of R.
__global__ void __launch_bounds__(kRowThreads)
    factor_panels(const double* r, std::int64_t ld, std::int64_t cols, std::int64_t width,
                  PanelFactor* panels) {
  const std::int64_t start = blockIdx.x * width;
  r += start + start * ld;
  cols = min(width, cols - start);
  PanelFactor& to = panels[blockIdx.x];
  factor_eights(r, ld, cols, to);
  const int eights = static_cast<int>((cols + kEight - 1) / kEight);
  for (int j = 0; j < eights; ++j) {
    const auto element = [&](int block, int row, int col) {
      if (block > j) return to.inverse[j][row][col];
      if (block == j) return -to.unit[j][row][col];
      const std::int64_t at = kEight * j + col;
      return at < cols ? -r[kEight * block + row + at * ld] : -0.0;
    };
    for (int k = static_cast<int>(threadIdx.x); k < (j + 2) * kWarpSize;
         k += static_cast<int>(blockDim.x)) {
      const int lane = k % kWarpSize;
      const int col = column_at(lane / 4);
      to.operands[operands_before(j) * kWarpSize + k] = make_double2(
          element(k / kWarpSize, lane % 4, col), element(k / kWarpSize, lane % 4 + 4, col));
    }
  }
  for (int k = static_cast<int>(threadIdx.x); k < eights * kReciprocals;
       k += static_cast<int>(blockDim.x)) {
    const double* of_eight = to.reciprocal[k / kReciprocals];
    to.reciprocals[k] = make_double2(of_eight[k % kReciprocals], of_eight[k % kReciprocals + 4]);
  }
}

/// What solve_strips() leaves undone: all of a panel x where an inverse is not good, which is rare.
/// A thread has a row. `then`, with its triangle s and scales, or null: behind that.
__global__ void __launch_bounds__(kRowThreads)
    solve_bad_rows(Columns<double> x, const PanelFactor* factor, const double* r, std::int64_t r_ld,
                   const PanelFactor* then, const double* s, std::int64_t s_ld,
                   const double* scales, double* to, std::int64_t to_ld) {
  if (factor->bad == 0 && (then == nullptr || then->bad == 0)) return;
  for (std::int64_t row = blockIdx.x * std::int64_t{kRowThreads} + threadIdx.x; row < x.rows;
       row += gridDim.x * std::int64_t{kRowThreads}) {
    const auto here = [&](std::int64_t c) -> double& { return to[row + c * to_ld]; };
    solve_row_by_eights(
        *factor, r, r_ld, x.cols, [&](std::int64_t c) { return x.at<double>(row, c); }, here);
    if (then == nullptr) continue;
    solve_row_by_eights(
        *then, s, s_ld, x.cols, [&](std::int64_t c) { return rounded_product(here(c), scales[c]); },
        here);
  }
}

/// Goes through the columns q, q + 4, q + 8 … of a strip that is whole and aligned.
class StripColumns {
 public:
  __device__ StripColumns(double* data, std::int64_t ld, const Strip& strip)
      : at_(data + strip.row + strip.q * ld), step_(4 * ld) {
    // Otherwise the compiler keeps multiples of it for all columns, in registers that there are
    // not.
    asm volatile("" : "+l"(step_));
  }
  __device__ double2& next() {
    double2& here = *reinterpret_cast<double2*>(at_);
    at_ += step_;
    return here;
  }

 private:
  double* at_;
  std::int64_t step_;
};

template <int kEights>
__device__ void scale_strip(const Strip& strip, const double* scales, std::int64_t cols,
                            double (&value)[kEights][4]) {
#pragma unroll
  for (int j = 0; j < kEights; ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const double d = strip.has(j, half, cols) ? scales[j * kEight + strip.q + 4 * half] : 1.0;
      value[j][half] = rounded_product(value[j][half], d);
      value[j][2 + half] = rounded_product(value[j][2 + half], d);
    }
  }
}

/// kWhole: the strip is, and aligned.
template <int kEights, bool kWhole>
__device__ void read_strip(const Strip& strip, const Columns<double>& x,
                           double (&value)[kEights][4]) {
  if constexpr (kWhole) {
    StripColumns columns(const_cast<double*>(x.data), x.ld, strip);
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const double2& from = columns.next();
        double2 both = make_double2(0, 0);
        if (strip.has(j, half, x.cols)) both = from;
        value[j][half] = both.x;
        value[j][2 + half] = both.y;
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < kEights; ++j) strip.read(x.data, x.ld, j * kEight, x.cols, value[j]);
  }
  if (x.d != nullptr) scale_strip(strip, x.d, x.cols, value);
}

/// A panel x of kEights eights of columns; nothing where an inverse is not good. kWhole: all strips
/// are, and aligned. kTwice: with the panel `then` behind it, of what is scaled between.
template <int kEights, bool kWhole, bool kTwice>
__global__ void __launch_bounds__(kSolveWarps* kWarpSize, solve_blocks(kEights))
    solve_strips(Columns<double> x, const PanelFactor* factor, const PanelFactor* then,
                 const double* scales, double* to, std::int64_t to_ld) {
  extern __shared__ __align__(16) double2 shared[];
  if (factor->bad != 0) return;
  fetch_factor<kEights>(*factor, shared);
  double2* of_then = shared + kFactorPairs<kEights>;
  if constexpr (kTwice) {
    if (then->bad != 0) return;
    fetch_factor<kEights>(*then, of_then);
  }
  tile::commit_copies();
  tile::wait_copies<0>();
  __syncthreads();
  const std::int64_t strips = (x.rows + kRows - 1) / kRows;
  for (std::int64_t number = blockIdx.x * std::int64_t{kSolveWarps} + tile::warp(); number < strips;
       number += gridDim.x * std::int64_t{kSolveWarps}) {
    const Strip strip = strip_of(number, x.rows, kWhole);
    double value[kEights][4];
    read_strip<kEights, kWhole>(strip, x, value);
    if constexpr (kTwice) {
      solve_eights<kEights>(SharedFactor<kEights>(shared), value, [](int) {});
      scale_strip(strip, scales, x.cols, value);
    }
    StripColumns out(to, to_ld, strip);
    const SharedFactor<kEights> last(kTwice ? of_then : shared);
    solve_eights<kEights>(last, value, [&](int j) {
      if constexpr (kWhole) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          double2& here = out.next();
          if (strip.has(j, half, x.cols)) here = make_double2(value[j][half], value[j][2 + half]);
        }
      } else {
        strip.write(to, to_ld, j * kEight, x.cols, value[j]);
      }
    });
  }
}

/// A second triangle, prepared, and the scales before it; or none.
struct Then {
  const PanelFactor* factor = nullptr;
  const double* scales = nullptr;
};

template <int kEights, bool kWhole, bool kTwice>
void launch_strips(cudaStream_t stream, const Columns<double>& x, const PanelFactor* factor,
                   const Then& then, double* to, std::int64_t to_ld) {
  constexpr std::size_t kBytes = (kTwice ? 2 : 1) * kFactorPairs<kEights> * sizeof(double2);
  if (x.rows == 0) return;
  const auto kernel = solve_strips<kEights, kWhole, kTwice>;
  const unsigned blocks =
      blocks_of(reinterpret_cast<const void*>(kernel), kSolveWarps * kWarpSize, x.rows, kBytes);
  kernel<<<blocks, kSolveWarps * kWarpSize, kBytes, stream>>>(x, factor, then.factor, then.scales,
                                                              to, to_ld);
  require_cuda(cudaGetLastError(), "solve_right");
}

/// A panel of up to kSolveColumns columns, or kTwiceColumns of two triangles: whole strips apart
/// from the last rows.
template <int kEights, bool kTwice>
void launch_panel(cudaStream_t stream, const Columns<double>& x, const PanelFactor* factor,
                  const Then& then, double* to, std::int64_t to_ld) {
  if constexpr (kEights < (kTwice ? kTwiceColumns / kEight : kSolveEights)) {
    constexpr int kMore = kEights < 8 ? 1 : 2;  // a compiler takes a second for each
    if (x.cols > kEights * kEight)
      return launch_panel<kEights + kMore, kTwice>(stream, x, factor, then, to, to_ld);
  }
  const bool aligned = tile::columns_aligned(x.data, x.ld) && tile::columns_aligned(to, to_ld);
  const std::int64_t whole = aligned ? x.rows / kRows * kRows : 0;
  const Columns<double> rest{x.data + whole, x.rows - whole, x.cols, x.ld, x.d};
  launch_strips<kEights, true, kTwice>(stream, {x.data, whole, x.cols, x.ld, x.d}, factor, then, to,
                                       to_ld);
  launch_strips<kEights, false, kTwice>(stream, rest, factor, then, to + whole, to_ld);
}

/// to ← x·diag(d).
__global__ void __launch_bounds__(kRowThreads)
    copy_columns(Columns<double> x, double* to, std::int64_t to_ld) {
  const std::int64_t row = blockIdx.x * std::int64_t{kRowThreads} + threadIdx.x;
  if (row >= x.rows) return;
  for (std::int64_t j = blockIdx.y; j < x.cols; j += gridDim.y)
    to[row + j * to_ld] = x.at<double>(row, j);
}

struct SolvePanels {
  std::int64_t count, width;
};

/// Panels of as many columns each, but for the last one, in whole eights.
SolvePanels panels_of(std::int64_t cols) {
  const std::int64_t count = (cols + kSolveColumns - 1) / kSolveColumns;
  const std::int64_t eights = (cols + kEight - 1) / kEight;
  const std::int64_t width = (eights + count - 1) / count * kEight;
  return {(cols + width - 1) / width, width};
}

void launch_bad_rows(cudaStream_t stream, const Columns<double>& x, const PanelFactor* factor,
                     const double* r, std::int64_t r_ld, const Then& then, const double* s,
                     std::int64_t s_ld, double* to, std::int64_t to_ld) {
  const unsigned blocks =
      std::min(blocks_for(x.rows, kRowThreads), 4U * static_cast<unsigned>(multiprocessors()));
  solve_bad_rows<<<blocks, kRowThreads, 0, stream>>>(x, factor, r, r_ld, then.factor, s, s_ld,
                                                     then.scales, to, to_ld);
  require_cuda(cudaGetLastError(), "solve_right");
}

}  // namespace

void prepare_panels(cudaStream_t stream, const double* r, std::int64_t ld, std::int64_t cols,
                    std::int64_t width, PanelFactor* panels) {
  const auto count = static_cast<unsigned>((cols + width - 1) / width);
  factor_panels<<<count, kRowThreads, 0, stream>>>(r, ld, cols, width, panels);
  require_cuda(cudaGetLastError(), "solve_right");
}

std::int64_t tensor_solve_bytes(std::int64_t cols) {
  return cols == 0 ? 0 : panels_of(cols).count * std::int64_t{sizeof(PanelFactor)};
}

void tensor_solve(cudaStream_t stream, const Columns<double>& x, const double* r, std::int64_t r_ld,
                  double* to, std::int64_t to_ld, void* memory) {
  if (x.rows == 0 || x.cols == 0) return;
  const SolvePanels panels = panels_of(x.cols);
  auto* factors = static_cast<PanelFactor*>(memory);
  prepare_panels(stream, r, r_ld, x.cols, panels.width, factors);
  Columns<double> from = x;
  if (panels.count > 1 && (x.data != to || x.d != nullptr)) {
    const dim3 grid(blocks_for(x.rows, kRowThreads),
                    static_cast<unsigned>(std::min<std::int64_t>(x.cols, 65535)));
    copy_columns<<<grid, kRowThreads, 0, stream>>>(x, to, to_ld);
    require_cuda(cudaGetLastError(), "solve_right");
    from = {to, x.rows, x.cols, to_ld, nullptr};
  }
  for (std::int64_t p = 0; p < panels.count; ++p) {
    const std::int64_t j = p * panels.width;
    const std::int64_t behind = std::min(j + panels.width, x.cols);
    double* here = to + j * to_ld;
    const Columns<double> panel{from.data + j * from.ld, x.rows, behind - j, from.ld, from.d};
    launch_panel<1, false>(stream, panel, factors + p, {}, here, to_ld);
    launch_bad_rows(stream, panel, factors + p, r + j + j * r_ld, r_ld, {}, nullptr, 0, here,
                    to_ld);
    tensor_update(stream, {here, x.rows, behind - j, to_ld, nullptr}, r + j + behind * r_ld, r_ld,
                  to + behind * to_ld, to_ld, x.cols - behind);
  }
}

void tensor_solve_twice(cudaStream_t stream, const Columns<double>& x, const double* r,
                        std::int64_t r_ld, const double* scales, const double* s, std::int64_t s_ld,
                        double* to, std::int64_t to_ld, void* memory) {
  if (x.rows == 0 || x.cols == 0) return;
  if (x.cols > kTwiceColumns) {
    tensor_solve(stream, x, r, r_ld, to, to_ld, memory);
    return tensor_solve(stream, {to, x.rows, x.cols, to_ld, scales}, s, s_ld, to, to_ld, memory);
  }
  auto* factors = static_cast<PanelFactor*>(memory);
  const Then then{factors + 1, scales};
  prepare_panels(stream, r, r_ld, x.cols, kSolveColumns, factors);
  prepare_panels(stream, s, s_ld, x.cols, kSolveColumns, factors + 1);
  launch_panel<1, true>(stream, x, factors, then, to, to_ld);
  launch_bad_rows(stream, x, factors, r, r_ld, then, s, s_ld, to, to_ld);
}

}  // namespace strata::gram_gpu
