// Method: a matrix of doubles is BLAS's affair. One of floats is widened a block at a time, into a
// block that stays in the cache, so that it needs no copy of a matrix that may be larger than
// memory.

#include "kernels/host_residual.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "base/work_crew.hpp"
#include "kernels/blas_host.hpp"
#include "kernels/blas_table.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr std::int64_t kBlock = 256;

/// Y ← Y + |A_s|·X, A_s the blocks of every kStrips-th column of blocks from s on, with what
/// mirrors them.
constexpr std::int64_t kStrips = 8;
template <class T>
void add_magnitudes(MatrixView<const T> a, std::int64_t s, MatrixView<const double> x,
                    MatrixView<double> y) {
  std::vector<double> block(static_cast<std::size_t>(kBlock * kBlock));
  for (std::int64_t j = s * kBlock; j < a.cols; j += kStrips * kBlock) {
    const std::int64_t cols = std::min(kBlock, a.cols - j);
    for (std::int64_t i = j; i < a.rows; i += kBlock) {
      const std::int64_t rows = std::min(kBlock, a.rows - i);
      for (std::int64_t c = 0; c < cols; ++c) {
        double* to = block.data() + c * rows;
        for (std::int64_t k = i == j ? c : 0; k < rows; ++k) {
          to[k] = -std::abs(static_cast<double>(a(i + k, j + c)));
          if (i == j) block[static_cast<std::size_t>(c + k * rows)] = to[k];
        }
      }
      const MatrixView<const double> b{block.data(), rows, cols, rows};
      blas::gemm_minus<double>(CblasNoTrans, CblasNoTrans, cols, b, x.block(j, 0, cols, x.cols),
                               y.block(i, 0, rows, y.cols));
      if (i == j) continue;
      blas::gemm_minus<double>(CblasTrans, CblasNoTrans, rows, b, x.block(i, 0, rows, x.cols),
                               y.block(j, 0, cols, y.cols));
    }
  }
}

template <class T>
void magnitudes(MatrixView<const T> a, MatrixView<const double> x, MatrixView<double> y) {
  constexpr std::int64_t kColumns = 16;  // at once, of each strip's own sums
  const std::int64_t strips = std::clamp<std::int64_t>((a.cols + kBlock - 1) / kBlock, 1, kStrips);
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkCrew crew(static_cast<int>(std::min(strips, cores) - 1));
  for (std::int64_t first = 0; first < x.cols; first += kColumns) {
    const std::int64_t cols = std::min(kColumns, x.cols - first);
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(strips));
    crew.share(strips, [&](std::int64_t s) {
      std::vector<double>& sum = sums[static_cast<std::size_t>(s)];
      sum.assign(static_cast<std::size_t>(a.rows * cols), 0.0);
      add_magnitudes(a, s, x.block(0, first, x.rows, cols), {sum.data(), a.rows, cols, a.rows});
    });
    for (std::int64_t c = 0; c < cols; ++c) {
      for (std::int64_t i = 0; i < a.rows; ++i) {
        double& total = y(i, first + c);
        total = 0;
        for (const std::vector<double>& sum : sums)
          total += sum[static_cast<std::size_t>(i + c * a.rows)];
      }
    }
  }
}

/// The largest magnitude in a column; NaN if there is one.
double largest_in(MatrixView<const double> a, std::int64_t j) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const double value = std::abs(a(i, j));
    if (std::isnan(value)) return value;
    largest = std::max(largest, value);
  }
  return largest;
}

/// The products of every kStrips-th column of blocks from s on, with what mirrors them, are taken
/// off `sum`.
template <class T>
void subtract_products(MatrixView<const T> a, std::int64_t s, const double* x,
                       std::vector<DoubleDouble>& sum) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t first = s * kBlock; first < a.cols; first += kStrips * kBlock) {
    for (std::int64_t j = first; j < std::min(first + kBlock, a.cols); ++j) {
      DoubleDouble of_column = sum[at(j)] - two_product(static_cast<double>(a(j, j)), x[j]);
      for (std::int64_t i = j + 1; i < a.rows; ++i) {
        const auto value = static_cast<double>(a(i, j));
        sum[at(i)] = sum[at(i)] - two_product(value, x[j]);
        of_column = of_column - two_product(value, x[i]);
      }
      sum[at(j)] = of_column;
    }
  }
}

template <class T>
void residual_dd(MatrixView<const T> a, MatrixView<const double> b, MatrixView<const double> x,
                 MatrixView<double> r) {
  const std::int64_t strips = std::clamp<std::int64_t>((a.cols + kBlock - 1) / kBlock, 1, kStrips);
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkCrew crew(static_cast<int>(std::min(strips, cores) - 1));
  for (std::int64_t c = 0; c < x.cols; ++c) {
    std::vector<std::vector<DoubleDouble>> sums(static_cast<std::size_t>(strips));
    crew.share(strips, [&](std::int64_t s) {
      std::vector<DoubleDouble>& sum = sums[static_cast<std::size_t>(s)];
      sum.assign(static_cast<std::size_t>(a.rows), DoubleDouble());
      subtract_products(a, s, x.column(c), sum);
    });
    for (std::int64_t i = 0; i < a.rows; ++i) {
      DoubleDouble total(b(i, c));
      for (const std::vector<DoubleDouble>& sum : sums)
        total = total + sum[static_cast<std::size_t>(i)];
      r(i, c) = total.hi;
    }
  }
}

/// Calls visit(i, j, difference) for elements above the diagonal that are not those below it, in
/// blocks of which both sides stay in the cache.
template <class T, class Visit>
void for_differences(MatrixView<const T> a, const Visit& visit) {
  constexpr std::int64_t kSide = 64;
  for (std::int64_t jb = 0; jb < a.cols; jb += kSide)
    for (std::int64_t ib = 0; ib <= jb; ib += kSide)
      for (std::int64_t j = jb; j < std::min(jb + kSide, a.cols); ++j)
        for (std::int64_t i = ib; i < std::min(ib + kSide, j); ++i)
          if (a(i, j) != a(j, i))
            visit(i, j, static_cast<double>(a(i, j)) - static_cast<double>(a(j, i)));
}

template <class T>
void subtract_differences(MatrixView<const T> a, MatrixView<const double> x, MatrixView<double> r) {
  for_differences(a, [&](std::int64_t i, std::int64_t j, double difference) {
    for (std::int64_t c = 0; c < x.cols; ++c) r(i, c) -= difference * x(j, c);
  });
}

template <class T>
double norm_of_differences(MatrixView<const T> a, std::span<const double> scale) {
  std::vector<double> rows(scale.size());
  std::vector<double> columns(scale.size());
  for_differences(a, [&](std::int64_t i, std::int64_t j, double difference) {
    const auto row = static_cast<std::size_t>(i);
    const auto column = static_cast<std::size_t>(j);
    const double scaled = std::abs(difference) * scale[row] * scale[column];
    rows[row] += scaled;
    columns[column] += scaled;
  });
  double norm = 0;
  for (const double sum : rows) norm = std::max(norm, sum);
  for (const double sum : columns) norm = std::max(norm, sum);
  return norm;
}

}  // namespace

void symmetric_residual(MatrixView<const double> a, MatrixView<const double> x,
                        MatrixView<double> r) {
  if (r.rows == 0 || r.cols == 0) return;
  blas_table().dsymm(CblasColMajor, CblasLeft, CblasLower, static_cast<int>(r.rows),
                     static_cast<int>(r.cols), -1.0, a.data, static_cast<int>(a.ld), x.data,
                     static_cast<int>(x.ld), 1.0, r.data, static_cast<int>(r.ld));
}

void symmetric_residual(MatrixView<const float> a, MatrixView<const double> x,
                        MatrixView<double> r) {
  if (r.rows == 0 || r.cols == 0) return;
  std::vector<double> block(static_cast<std::size_t>(kBlock * kBlock));
  for (std::int64_t j = 0; j < a.cols; j += kBlock) {
    const std::int64_t cols = std::min(kBlock, a.cols - j);
    for (std::int64_t i = j; i < a.rows; i += kBlock) {
      const std::int64_t rows = std::min(kBlock, a.rows - i);
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t first = i == j ? c : 0;  // above the diagonal there may be anything
        std::copy(a.column(j + c) + i + first, a.column(j + c) + i + rows,
                  block.data() + c * rows + first);
      }
      const MatrixView<const double> b{block.data(), rows, cols, rows};
      const MatrixView<double> r_i = r.block(i, 0, rows, r.cols);
      const MatrixView<const double> x_j = x.block(j, 0, cols, x.cols);
      if (i == j) {
        symmetric_residual(b, x_j, r_i);
        continue;
      }
      blas::gemm_minus(CblasNoTrans, CblasNoTrans, cols, b, x_j, r_i);
      blas::gemm_minus<double>(CblasTrans, CblasNoTrans, rows, b, x.block(i, 0, rows, x.cols),
                               r.block(j, 0, cols, r.cols));
    }
  }
}

void symmetric_residual_dd(MatrixView<const double> a, MatrixView<const double> b,
                           MatrixView<const double> x, MatrixView<double> r) {
  residual_dd(a, b, x, r);
}
void symmetric_residual_dd(MatrixView<const float> a, MatrixView<const double> b,
                           MatrixView<const double> x, MatrixView<double> r) {
  residual_dd(a, b, x, r);
}

void symmetric_magnitudes(MatrixView<const double> a, MatrixView<const double> x,
                          MatrixView<double> y) {
  if (a.rows > 0) magnitudes(a, x, y);
}
void symmetric_magnitudes(MatrixView<const float> a, MatrixView<const double> x,
                          MatrixView<double> y) {
  if (a.rows > 0) magnitudes(a, x, y);
}

double componentwise_backward_error(MatrixView<const double> r, MatrixView<const double> terms) {
  double worst = 0;
  for (std::int64_t j = 0; j < r.cols; ++j) {
    for (std::int64_t i = 0; i < r.rows; ++i) {
      if (r(i, j) == 0 && terms(i, j) == 0) continue;
      const double error = std::abs(r(i, j)) / terms(i, j);
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
  }
  return worst;
}

double backward_error(double norm_a, MatrixView<const double> b, MatrixView<const double> x,
                      MatrixView<const double> r) {
  double worst = 0;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const double residual = largest_in(r, j);
    const double scale = norm_a * largest_in(x, j) + largest_in(b, j);
    const double error = residual == 0 && scale == 0 ? 0 : residual / scale;
    if (std::isnan(error)) return error;
    worst = std::max(worst, error);
  }
  return worst;
}

void subtract_asymmetry(MatrixView<const double> a, MatrixView<const double> x,
                        MatrixView<double> r) {
  subtract_differences(a, x, r);
}
void subtract_asymmetry(MatrixView<const float> a, MatrixView<const double> x,
                        MatrixView<double> r) {
  subtract_differences(a, x, r);
}

double scaled_asymmetry(MatrixView<const double> a, std::span<const double> scale) {
  return norm_of_differences(a, scale);
}
double scaled_asymmetry(MatrixView<const float> a, std::span<const double> scale) {
  return norm_of_differences(a, scale);
}

}  // namespace strata
