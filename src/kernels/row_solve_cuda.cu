// Substitution with the rows of tall matrices, in fp64 on the tensor cores (row_strip_cuda.hpp).
//
// Method: eight_solve.hpp, with the rows of a strip in registers: eight columns are multiplied by
// the inverse of their triangle, corrected, and taken off those behind them, which do not wait for
// each other. So a thread reads 16 bytes of shared memory for each instruction, and nothing else.
// Where the inverse of an eight is not good, which is rare, a kernel of its own gives each thread a
// row. One thread block prepares R for all. Up to 128 columns are solved for at once, and of more a
// panel is taken off all columns behind it.

#include "kernels/eight_solve.hpp"
#include "kernels/row_products_cuda.hpp"
#include "kernels/row_strip_cuda.hpp"

namespace strata::gram_gpu {
namespace {

constexpr int kSolveEights = 16;  // at most, of a panel
constexpr int kSolveColumns = kSolveEights * kEight;
constexpr int kSolveWarps = 4;

/// Thread blocks of a multiprocessor: as many as registers hold the rows of.
constexpr int solve_blocks(int eights) { return eights > 8 ? 2 : eights > 4 ? 3 : 4; }

/// Operands of the eights before j: of each those of −R above its diagonal block, −U and T.
constexpr int operands_before(int j) { return j * (j - 1) / 2 + 2 * j; }
/// The same for each eight: what the four threads of two rows multiply its quotients by, those of
/// the columns q and q + 4.
constexpr int kReciprocals = kEight / 2;

/// A panel of up to kSolveColumns columns of R, as its solve reads it. Where there are no columns,
/// U and D are those of the identity.
struct PanelFactor {
  double2 reciprocals[kSolveEights * kReciprocals];
  double2 operands[operands_before(kSolveEights) * kWarpSize];
  /// The triangles of eights of columns on the diagonal of R = D·U, as eight_solve.hpp has them.
  double unit[kSolveEights][kEight][kEight];     ///< U, zeros below its diagonal
  double inverse[kSolveEights][kEight][kEight];  ///< T
  double diagonal[kSolveEights][kEight];         ///< D
  double reciprocal[kSolveEights][kEight];       ///< of D
  unsigned bad;                                  ///< a bit for each eight whose T is not good
};

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

/// y becomes the quotients of eight j of a row.
__device__ void solve_row(const PanelFactor& factor, int j, double (&y)[kEight]) {
  const auto& u = factor.unit[j];
  const auto& t = factor.inverse[j];
  double q[kEight] = {};
#pragma unroll
  for (int col = 0; col < kEight; ++col) {
#pragma unroll
    for (int k = 0; k <= col; ++k) q[col] = fused(y[k], t[k][col], q[col]);
  }
#pragma unroll
  for (int col = 0; col < kEight; ++col) {
#pragma unroll
    for (int k = 0; k <= col; ++k) y[col] = fused(-q[k], u[k][col], y[col]);
  }
#pragma unroll
  for (int col = kEight - 1; col >= 0; --col) {
#pragma unroll
    for (int k = 0; k <= col; ++k) q[col] = fused(y[k], t[k][col], q[col]);
    y[col] = rounded_product(q[col], factor.reciprocal[j][col]);
  }
}

/// What solve_strips() leaves undone: all of a panel x where an inverse is not good, which is rare.
/// A thread has a row.
__global__ void __launch_bounds__(kRowThreads)
    solve_bad_rows(Columns<double> x, const PanelFactor* factor, const double* r, std::int64_t r_ld,
                   double* to, std::int64_t to_ld) {
  if (factor->bad == 0) return;
  for (std::int64_t row = blockIdx.x * std::int64_t{kRowThreads} + threadIdx.x; row < x.rows;
       row += gridDim.x * std::int64_t{kRowThreads}) {
    for (std::int64_t first = 0; first < x.cols; first += kEight) {
      const int j = static_cast<int>(first / kEight);
      double y[kEight];
#pragma unroll
      for (int c = 0; c < kEight; ++c)
        y[c] = first + c < x.cols ? x.at<double>(row, first + c) : 0.0;
      for (std::int64_t i = 0; i < first; ++i) {
        const double q = to[row + i * to_ld];
#pragma unroll
        for (int c = 0; c < kEight; ++c) {
          if (first + c < x.cols) y[c] = fused(-q, r[i + (first + c) * r_ld], y[c]);
        }
      }
      if ((factor->bad >> j & 1U) == 0) {
        solve_row(*factor, j, y);
      } else {
#pragma unroll
        for (int c = 0; c < kEight; ++c) {
          if (first + c >= x.cols) continue;
          y[c] = rounded_quotient(y[c], factor->diagonal[j][c]);
#pragma unroll
          for (int k = c + 1; k < kEight; ++k) {
            if (first + k < x.cols) y[k] = fused(-y[c], r[first + c + (first + k) * r_ld], y[k]);
          }
        }
      }
#pragma unroll
      for (int c = 0; c < kEight; ++c) {
        if (first + c < x.cols) to[row + (first + c) * to_ld] = y[c];
      }
    }
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
  if (x.d == nullptr) return;
#pragma unroll
  for (int j = 0; j < kEights; ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const double d = strip.has(j, half, x.cols) ? x.d[j * kEight + strip.q + 4 * half] : 1.0;
      value[j][half] = rounded_product(value[j][half], d);
      value[j][2 + half] = rounded_product(value[j][2 + half], d);
    }
  }
}

/// A panel x of kEights eights of columns; nothing where an inverse is not good. kWhole: all strips
/// are, and aligned.
template <int kEights, bool kWhole>
__global__ void __launch_bounds__(kSolveWarps* kWarpSize, solve_blocks(kEights))
    solve_strips(Columns<double> x, const PanelFactor* factor, double* to, std::int64_t to_ld) {
  extern __shared__ __align__(16) double2 shared[];
  if (factor->bad != 0) return;
  constexpr int kOperands = operands_before(kEights) * kWarpSize;
  constexpr int kBeside = kEights * kReciprocals;
  for (int k = static_cast<int>(threadIdx.x); k < kOperands + kBeside;
       k += static_cast<int>(blockDim.x))
    tile::copy_async<16>(
        shared + k, k < kOperands ? factor->operands + k : factor->reciprocals + (k - kOperands),
        16);
  tile::commit_copies();
  tile::wait_copies<0>();
  __syncthreads();
  const double2* right = shared + tile::lane();
  const double2* reciprocals = shared + kOperands + tile::lane() % kReciprocals;
  const std::int64_t strips = (x.rows + kRows - 1) / kRows;
  for (std::int64_t number = blockIdx.x * std::int64_t{kSolveWarps} + tile::warp(); number < strips;
       number += gridDim.x * std::int64_t{kSolveWarps}) {
    const Strip strip = strip_of(number, x.rows, kWhole);
    double value[kEights][4];
    read_strip<kEights, kWhole>(strip, x, value);
    StripColumns out(to, to_ld, strip);
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
      const double2 unit = right[(operands_before(j) + j) * kWarpSize];
      const double2 inverse = right[(operands_before(j) + j + 1) * kWarpSize];
      const double2 reciprocal = reciprocals[j * kReciprocals];
      double q[4] = {0, 0, 0, 0};
      tile::multiply_add(q, q, value[j], inverse);
      tile::multiply_add(value[j], value[j], q, unit);
      tile::multiply_add(value[j], q, value[j], inverse);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        value[j][k] = rounded_product(value[j][k], k % 2 == 0 ? reciprocal.x : reciprocal.y);
      if constexpr (kWhole) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          double2& here = out.next();
          if (strip.has(j, half, x.cols)) here = make_double2(value[j][half], value[j][2 + half]);
        }
      } else {
        strip.write(to, to_ld, j * kEight, x.cols, value[j]);
      }
#pragma unroll
      for (int k = j + 1; k < kEights; ++k)
        tile::multiply_add(value[k], value[k], value[j],
                           right[(operands_before(k) + j) * kWarpSize]);
    }
  }
}

template <int kEights, bool kWhole>
void launch_strips(cudaStream_t stream, const Columns<double>& x, const PanelFactor* factor,
                   double* to, std::int64_t to_ld) {
  constexpr std::size_t kBytes =
      (operands_before(kEights) * kWarpSize + kEights * kReciprocals) * sizeof(double2);
  if (x.rows == 0) return;
  const auto kernel = solve_strips<kEights, kWhole>;
  const unsigned blocks =
      blocks_of(reinterpret_cast<const void*>(kernel), kSolveWarps * kWarpSize, x.rows, kBytes);
  kernel<<<blocks, kSolveWarps * kWarpSize, kBytes, stream>>>(x, factor, to, to_ld);
  require_cuda(cudaGetLastError(), "solve_right");
}

/// A panel of up to kSolveColumns columns: whole strips apart from the last rows.
template <int kEights>
void launch_panel(cudaStream_t stream, const Columns<double>& x, const PanelFactor* factor,
                  double* to, std::int64_t to_ld) {
  if constexpr (kEights < kSolveEights) {
    constexpr int kMore = kEights < 8 ? 1 : 2;  // a compiler takes a second for each
    if (x.cols > kEights * kEight)
      return launch_panel<kEights + kMore>(stream, x, factor, to, to_ld);
  }
  const bool aligned = tile::columns_aligned(x.data, x.ld) && tile::columns_aligned(to, to_ld);
  const std::int64_t whole = aligned ? x.rows / kRows * kRows : 0;
  const Columns<double> rest{x.data + whole, x.rows - whole, x.cols, x.ld, x.d};
  launch_strips<kEights, true>(stream, {x.data, whole, x.cols, x.ld, x.d}, factor, to, to_ld);
  launch_strips<kEights, false>(stream, rest, factor, to + whole, to_ld);
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

}  // namespace

std::int64_t tensor_solve_bytes(std::int64_t cols) {
  return cols == 0 ? 0 : panels_of(cols).count * std::int64_t{sizeof(PanelFactor)};
}

void tensor_solve(cudaStream_t stream, const Columns<double>& x, const double* r, std::int64_t r_ld,
                  double* to, std::int64_t to_ld, void* memory) {
  if (x.rows == 0 || x.cols == 0) return;
  const SolvePanels panels = panels_of(x.cols);
  auto* factors = static_cast<PanelFactor*>(memory);
  factor_panels<<<static_cast<unsigned>(panels.count), kRowThreads, 0, stream>>>(
      r, r_ld, x.cols, panels.width, factors);
  require_cuda(cudaGetLastError(), "solve_right");
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
    const double* diagonal = r + j + j * r_ld;
    double* here = to + j * to_ld;
    const Columns<double> panel{from.data + j * from.ld, x.rows, behind - j, from.ld, from.d};
    launch_panel<1>(stream, panel, factors + p, here, to_ld);
    const unsigned blocks =
        std::min(blocks_for(x.rows, kRowThreads), 4U * static_cast<unsigned>(multiprocessors()));
    solve_bad_rows<<<blocks, kRowThreads, 0, stream>>>(panel, factors + p, diagonal, r_ld, here,
                                                       to_ld);
    require_cuda(cudaGetLastError(), "solve_right");
    tensor_update(stream, {here, x.rows, behind - j, to_ld, nullptr}, r + j + behind * r_ld, r_ld,
                  to + behind * to_ld, to_ld, x.cols - behind);
  }
}

}  // namespace strata::gram_gpu
