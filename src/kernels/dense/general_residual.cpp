// Method: strips of what is summed up, each with its sums in one order, so that threads change no
// bit; a strip of a matrix of doubles times vectors is BLAS's affair, one of floats is widened a
// block at a time.

#include "kernels/dense/general_residual.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/index.hpp"
#include "base/work_crew.hpp"
#include "kernels/backend/blas_host.hpp"

namespace strata {
namespace {

constexpr std::int64_t kStripRows = 256;
constexpr std::int64_t kWidened = 256;                // order of a block
constexpr std::int64_t kFew = std::int64_t{1} << 18;  // elements: no work for several threads

/// Strips of 0 … rows − 1, of a matrix of so many elements.
void for_strips(std::int64_t rows, std::int64_t elements,
                const std::function<void(std::int64_t, std::int64_t)>& strip) {
  const std::int64_t strips = (rows + kStripRows - 1) / kStripRows;
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int64_t threads =
      elements < kFew ? 1 : std::max<std::int64_t>(1, std::min(strips, cores));
  WorkCrew crew(static_cast<int>(threads - 1));
  crew.share(strips, [&](std::int64_t s) {
    strip(s * kStripRows, std::min(kStripRows, rows - s * kStripRows));
  });
}

/// R ← R − op(A)·X by one thread.
template <class T, class W>
void subtract_product(MatrixView<const T> a, bool adjoint, MatrixView<const W> x, MatrixView<W> r) {
  const CBLAS_TRANSPOSE op = adjoint ? blas::kAdjoint<W> : CblasNoTrans;
  if constexpr (std::is_same_v<T, W>) {
    blas::gemm_minus<W>(op, CblasNoTrans, x.rows, a, x, r);
  } else {
    std::vector<W> block(at(kWidened * kWidened));
    for (std::int64_t j = 0; j < a.cols; j += kWidened) {
      const std::int64_t cols = std::min(kWidened, a.cols - j);
      for (std::int64_t i = 0; i < a.rows; i += kWidened) {
        const std::int64_t rows = std::min(kWidened, a.rows - i);
        for (std::int64_t c = 0; c < cols; ++c)
          std::copy_n(a.column(j + c) + i, rows, block.data() + c * rows);
        const MatrixView<const W> wide{block.data(), rows, cols, rows};
        if (adjoint) {
          blas::gemm_minus<W>(op, CblasNoTrans, rows, wide, x.block(i, 0, rows, x.cols),
                              r.block(j, 0, cols, r.cols));
        } else {
          blas::gemm_minus<W>(op, CblasNoTrans, cols, wide, x.block(j, 0, cols, x.cols),
                              r.block(i, 0, rows, r.cols));
        }
      }
    }
  }
}

}  // namespace

template <class T>
void general_residual(MatrixView<const T> a, bool adjoint, MatrixView<const WideOf<T>> x,
                      MatrixView<WideOf<T>> r) {
  if (r.rows == 0 || r.cols == 0) return;
  for_strips(r.rows, a.rows * a.cols, [&](std::int64_t first, std::int64_t count) {
    const MatrixView<const T> strip =
        adjoint ? a.block(0, first, a.rows, count) : a.block(first, 0, count, a.cols);
    subtract_product(strip, adjoint, x, r.block(first, 0, count, r.cols));
  });
}

template <class T>
void subtract_dd(MatrixView<const T> a, MatrixView<const WideOf<T>> x,
                 std::span<LongSums<WideOf<T>>> sums) {
  for_strips(a.rows, a.rows * a.cols * x.cols, [&](std::int64_t first, std::int64_t rows) {
    SplitColumn<WideOf<T>> column;
    for (std::int64_t j = 0; j < a.cols; ++j) {
      column.split(a.column(j) + first, rows);
      for (std::int64_t c = 0; c < x.cols; ++c)
        sums[at(c)].subtract_multiple(column, x(j, c), first, rows);
    }
  });
}

template <class T>
void subtract_transposed_dd(MatrixView<const T> a, MatrixView<const WideOf<T>> x,
                            std::int64_t first, std::span<LongSums<WideOf<T>>> sums) {
  std::vector<SplitColumn<WideOf<T>>> factors(at(x.cols));
  for (std::int64_t c = 0; c < x.cols; ++c) factors[at(c)].split(x.column(c), x.rows);
  for_strips(a.cols, a.rows * a.cols * x.cols, [&](std::int64_t begin, std::int64_t cols) {
    SplitColumn<WideOf<T>> column;
    for (std::int64_t j = begin; j < begin + cols; ++j) {
      column.split(a.column(j), a.rows);
      for (std::int64_t c = 0; c < x.cols; ++c)
        sums[at(c)].subtract_dot(first + j, column, false, factors[at(c)], 0, a.rows);
    }
  });
}

template <class T>
void add_magnitudes(MatrixView<const T> a, MatrixView<const double> x, MatrixView<double> y) {
  for_strips(y.rows, a.rows * a.cols, [&](std::int64_t first, std::int64_t rows) {
    std::vector<double> size(at(rows));
    for (std::int64_t j = 0; j < a.cols; ++j) {
      const T* column = a.column(j) + first;
      for (std::int64_t i = 0; i < rows; ++i)
        size[at(i)] = std::abs(static_cast<WideOf<T>>(column[i]));
      for (std::int64_t c = 0; c < x.cols; ++c) {
        const double factor = x(j, c);
        double* out = y.column(c) + first;
        for (std::int64_t i = 0; i < rows; ++i) out[i] += size[at(i)] * factor;
      }
    }
  });
}

template <class T>
void add_magnitudes_transposed(MatrixView<const T> a, MatrixView<const double> x,
                               MatrixView<double> y) {
  for_strips(a.cols, a.rows * a.cols, [&](std::int64_t first, std::int64_t cols) {
    std::vector<double> size(at(a.rows));
    for (std::int64_t j = first; j < first + cols; ++j) {
      const T* column = a.column(j);
      for (std::int64_t i = 0; i < a.rows; ++i)
        size[at(i)] = std::abs(static_cast<WideOf<T>>(column[i]));
      for (std::int64_t c = 0; c < x.cols; ++c) {
        double sum = 0;
        for (std::int64_t i = 0; i < a.rows; ++i) sum += size[at(i)] * x(i, c);
        y(j, c) += sum;
      }
    }
  });
}

using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;
#define STRATA_GENERAL_RESIDUAL(T, W)                                                              \
  template void general_residual(MatrixView<const T>, bool, MatrixView<const W>, MatrixView<W>);   \
  template void subtract_dd(MatrixView<const T>, MatrixView<const W>, std::span<LongSums<W>>);     \
  template void subtract_transposed_dd(MatrixView<const T>, MatrixView<const W>, std::int64_t,     \
                                       std::span<LongSums<W>>);                                    \
  template void add_magnitudes(MatrixView<const T>, MatrixView<const double>, MatrixView<double>); \
  template void add_magnitudes_transposed(MatrixView<const T>, MatrixView<const double>,           \
                                          MatrixView<double>);
STRATA_GENERAL_RESIDUAL(double, double)
STRATA_GENERAL_RESIDUAL(float, double)
STRATA_GENERAL_RESIDUAL(Complex128, Complex128)
STRATA_GENERAL_RESIDUAL(Complex64, Complex128)
#undef STRATA_GENERAL_RESIDUAL

}  // namespace strata
