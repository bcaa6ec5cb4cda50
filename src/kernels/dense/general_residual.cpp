// Method: strips of rows, each with its sums in the order of columns, so that threads change no
// bit; a matrix of doubles times vectors is BLAS's affair, one of floats is widened a block at a
// time.

#include "kernels/dense/general_residual.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/index.hpp"
#include "base/work_crew.hpp"
#include "kernels/backend/blas_host.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr std::int64_t kStripRows = 256;
constexpr std::int64_t kWidened = 256;  // order of a block

void for_strips(std::int64_t rows, const std::function<void(std::int64_t, std::int64_t)>& strip) {
  const std::int64_t strips = (rows + kStripRows - 1) / kStripRows;
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkCrew crew(static_cast<int>(std::max<std::int64_t>(std::min(strips, cores) - 1, 0)));
  crew.share(strips, [&](std::int64_t s) {
    strip(s * kStripRows, std::min(kStripRows, rows - s * kStripRows));
  });
}

}  // namespace

template <class T>
void general_residual(MatrixView<const T> a, bool transposed, MatrixView<const double> x,
                      MatrixView<double> r) {
  if (r.rows == 0 || r.cols == 0) return;
  const CBLAS_TRANSPOSE op = transposed ? CblasTrans : CblasNoTrans;
  if constexpr (std::is_same_v<T, double>) {
    blas::gemm_minus<double>(op, CblasNoTrans, x.rows, a, x, r);
  } else {
    std::vector<double> block(at(kWidened * kWidened));
    for (std::int64_t j = 0; j < a.cols; j += kWidened) {
      const std::int64_t cols = std::min(kWidened, a.cols - j);
      for (std::int64_t i = 0; i < a.rows; i += kWidened) {
        const std::int64_t rows = std::min(kWidened, a.rows - i);
        for (std::int64_t c = 0; c < cols; ++c)
          std::copy_n(a.column(j + c) + i, rows, block.data() + c * rows);
        const MatrixView<const double> wide{block.data(), rows, cols, rows};
        if (transposed) {
          blas::gemm_minus<double>(op, CblasNoTrans, rows, wide, x.block(i, 0, rows, x.cols),
                                   r.block(j, 0, cols, r.cols));
        } else {
          blas::gemm_minus<double>(op, CblasNoTrans, cols, wide, x.block(j, 0, cols, x.cols),
                                   r.block(i, 0, rows, r.cols));
        }
      }
    }
  }
}

template <class T>
void general_residual_dd(MatrixView<const T> a, MatrixView<const double> b,
                         MatrixView<const double> x, MatrixView<double> r) {
  for_strips(r.rows, [&](std::int64_t first, std::int64_t rows) {
    std::vector<DoubleDouble> sum(at(rows));
    for (std::int64_t c = 0; c < x.cols; ++c) {
      for (std::int64_t i = 0; i < rows; ++i) sum[at(i)] = DoubleDouble(b(first + i, c));
      for (std::int64_t j = 0; j < a.cols; ++j) {
        const T* column = a.column(j) + first;
        const double factor = x(j, c);
        for (std::int64_t i = 0; i < rows; ++i)
          sum[at(i)] = sum[at(i)] - two_product(static_cast<double>(column[i]), factor);
      }
      for (std::int64_t i = 0; i < rows; ++i) r(first + i, c) = sum[at(i)].hi;
    }
  });
}

template <class T>
void general_magnitudes(MatrixView<const T> a, MatrixView<const double> x, MatrixView<double> y) {
  for_strips(y.rows, [&](std::int64_t first, std::int64_t rows) {
    for (std::int64_t c = 0; c < x.cols; ++c) std::fill_n(y.column(c) + first, rows, 0.0);
    for (std::int64_t j = 0; j < a.cols; ++j) {
      const T* column = a.column(j) + first;
      for (std::int64_t c = 0; c < x.cols; ++c) {
        const double factor = x(j, c);
        double* out = y.column(c) + first;
        for (std::int64_t i = 0; i < rows; ++i)
          out[i] += std::abs(static_cast<double>(column[i])) * factor;
      }
    }
  });
}

template void general_residual(MatrixView<const double>, bool, MatrixView<const double>,
                               MatrixView<double>);
template void general_residual(MatrixView<const float>, bool, MatrixView<const double>,
                               MatrixView<double>);
template void general_residual_dd(MatrixView<const double>, MatrixView<const double>,
                                  MatrixView<const double>, MatrixView<double>);
template void general_residual_dd(MatrixView<const float>, MatrixView<const double>,
                                  MatrixView<const double>, MatrixView<double>);
template void general_magnitudes(MatrixView<const double>, MatrixView<const double>,
                                 MatrixView<double>);
template void general_magnitudes(MatrixView<const float>, MatrixView<const double>,
                                 MatrixView<double>);

}  // namespace strata
