// Method: strips of columns of blocks, each with sums of its own, which are added in one order, so
// that threads change no bit. A block of doubles, real or complex, is BLAS's affair; one of floats
// is widened first, so that no matrix has to be copied that may be larger than memory.

#include "kernels/dense/host_residual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/work_crew.hpp"
#include "kernels/backend/blas_host.hpp"
#include "kernels/backend/blas_table.hpp"
#include "kernels/dense/long_sums.hpp"
#include "matrix/mirrored_triangles.hpp"

namespace strata {
namespace {

constexpr std::int64_t kBlock = 256;

/// Y ← Y + |A_s|·X, A_s the blocks of every kStrips-th column of blocks from s on, with what
/// mirrors them.
constexpr std::int64_t kStrips = 8;
[[nodiscard]] std::int64_t strips_of(std::int64_t order) {
  return std::clamp<std::int64_t>((order + kBlock - 1) / kBlock, 1, kStrips);
}
/// Threads for so many parts of what is done to a matrix; the caller alone to a small one.
template <class T>
[[nodiscard]] std::unique_ptr<WorkCrew> crew_for(std::int64_t parts, MatrixView<const T> a) {
  constexpr std::int64_t kFew = std::int64_t{1} << 18;  // elements
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int64_t threads = a.rows * a.cols < kFew ? 1 : std::min(parts, cores);
  return std::make_unique<WorkCrew>(static_cast<int>(threads - 1));
}

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
          to[k] = -std::abs(static_cast<WideOf<T>>(i == j && k == c ? T{real_part(a(j + c, j + c))}
                                                                    : a(i + k, j + c)));
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
  const std::int64_t strips = strips_of(a.cols);
  const auto crew = crew_for(strips, a);
  for (std::int64_t first = 0; first < x.cols; first += kColumns) {
    const std::int64_t cols = std::min(kColumns, x.cols - first);
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(strips));
    crew->share(strips, [&](std::int64_t s) {
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
template <class W>
double largest_in(MatrixView<const W> a, std::int64_t j) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const double value = std::abs(a(i, j));
    if (std::isnan(value)) return value;
    largest = std::max(largest, value);
  }
  return largest;
}

/// The products of every kStrips-th column of blocks from s on, with what mirrors them, are taken
/// off `sums`, which are those of each column of x.
template <class T>
void subtract_products(MatrixView<const T> a, std::int64_t s, MatrixView<const WideOf<T>> x,
                       std::span<LongSums<WideOf<T>>> sums) {
  using W = WideOf<T>;
  std::vector<SplitColumn<W>> factors(sums.size());
  for (std::size_t c = 0; c < sums.size(); ++c)
    factors[c].split(x.column(static_cast<std::int64_t>(c)), a.cols);
  SplitColumn<W> diagonal;
  SplitColumn<W> column;
  for (std::int64_t first = s * kBlock; first < a.cols; first += kStrips * kBlock) {
    for (std::int64_t j = first; j < std::min(first + kBlock, a.cols); ++j) {
      const W element = static_cast<W>(real_part(a(j, j)));
      const std::int64_t below = a.rows - j - 1;
      diagonal.split(&element, 1);
      column.split(a.column(j) + j + 1, below);
      for (std::size_t c = 0; c < sums.size(); ++c) {
        const W factor = x(j, static_cast<std::int64_t>(c));
        sums[c].subtract_multiple(diagonal, factor, j, 1);
        sums[c].subtract_multiple(column, factor, j + 1, below);
        sums[c].subtract_dot(j, column, true, factors[c], j + 1, below);
      }
    }
  }
}

template <class T>
void residual_dd(MatrixView<const T> a, MatrixView<const WideOf<T>> b,
                 MatrixView<const WideOf<T>> x, MatrixView<WideOf<T>> r) {
  using Sums = LongSums<WideOf<T>>;
  constexpr std::int64_t kColumns = 4;  // by one reading of A, with sums of each strip's own
  const std::int64_t strips = strips_of(a.cols);
  const auto crew = crew_for(strips, a);
  for (std::int64_t first = 0; first < x.cols; first += kColumns) {
    const std::int64_t columns = std::min(kColumns, x.cols - first);
    std::vector<std::vector<Sums>> sums(
        static_cast<std::size_t>(strips),
        std::vector<Sums>(static_cast<std::size_t>(columns), Sums(a.rows)));
    crew->share(strips, [&](std::int64_t s) {
      subtract_products<T>(a, s, x.block(0, first, x.rows, columns),
                           sums[static_cast<std::size_t>(s)]);
    });
    for (std::int64_t c = 0; c < columns; ++c) {
      Sums total(a.rows);
      for (std::int64_t i = 0; i < a.rows; ++i) total.set(i, b(i, first + c));
      for (const std::vector<Sums>& sum : sums) total.add(sum[static_cast<std::size_t>(c)]);
      for (std::int64_t i = 0; i < a.rows; ++i) r(i, first + c) = total.rounded(i);
    }
  }
}

/// Calls visit(i, j, difference) for elements above the diagonal that are not (conjugates of) those
/// below it, in blocks of which both sides stay in the cache; by one thread, where several have
/// seen that there are any.
template <class T, class Visit>
void for_differences(MatrixView<const T> a, const Visit& visit) {
  using W = WideOf<T>;
  constexpr std::int64_t kSide = 64;
  constexpr double kAny = std::numeric_limits<double>::infinity();  // all but NaN is near enough
  if (!compare_triangles(a, kAny).differ) return;
  for (std::int64_t jb = 0; jb < a.cols; jb += kSide)
    for (std::int64_t ib = 0; ib <= jb; ib += kSide)
      for (std::int64_t j = jb; j < std::min(jb + kSide, a.cols); ++j)
        for (std::int64_t i = ib; i < std::min(ib + kSide, j); ++i)
          if (a(i, j) != conjugate<T>(a(j, i)))
            visit(i, j, static_cast<W>(a(i, j)) - conjugate(static_cast<W>(a(j, i))));
}

/// R ← R − A·X of a matrix that is as wide as sums are.
void residual_of_wide(MatrixView<const double> a, MatrixView<const double> x,
                      MatrixView<double> r) {
  blas_table().dsymm(CblasColMajor, CblasLeft, CblasLower, static_cast<int>(r.rows),
                     static_cast<int>(r.cols), -1.0, a.data, static_cast<int>(a.ld), x.data,
                     static_cast<int>(x.ld), 1.0, r.data, static_cast<int>(r.ld));
}
void residual_of_wide(MatrixView<const std::complex<double>> a,
                      MatrixView<const std::complex<double>> x,
                      MatrixView<std::complex<double>> r) {
  const std::complex<double> minus_one{-1};
  const std::complex<double> one{1};
  blas_table().zhemm(CblasColMajor, CblasLeft, CblasLower, static_cast<int>(r.rows),
                     static_cast<int>(r.cols), &minus_one, a.data, static_cast<int>(a.ld), x.data,
                     static_cast<int>(x.ld), &one, r.data, static_cast<int>(r.ld));
}

/// R ← R − A_s·X, A_s the blocks of every kStrips-th column of blocks from s on, with what mirrors
/// them.
template <class T, class W>
void subtract_strip(MatrixView<const T> a, std::int64_t s, MatrixView<const W> x, MatrixView<W> r) {
  std::vector<W> buffer(std::is_same_v<T, W> ? 0 : static_cast<std::size_t>(kBlock * kBlock));
  const auto widened = [&](std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t cols) {
    if constexpr (std::is_same_v<T, W>) {
      return a.block(i, j, rows, cols);
    } else {
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t first = i == j ? c : 0;  // above the diagonal there may be anything
        std::copy(a.column(j + c) + i + first, a.column(j + c) + i + rows,
                  buffer.data() + c * rows + first);
      }
      return MatrixView<const W>{buffer.data(), rows, cols, rows};
    }
  };
  for (std::int64_t j = s * kBlock; j < a.cols; j += kStrips * kBlock) {
    const std::int64_t cols = std::min(kBlock, a.cols - j);
    for (std::int64_t i = j; i < a.rows; i += kBlock) {
      const std::int64_t rows = std::min(kBlock, a.rows - i);
      const MatrixView<const W> b = widened(i, j, rows, cols);
      const MatrixView<W> r_i = r.block(i, 0, rows, r.cols);
      const MatrixView<const W> x_j = x.block(j, 0, cols, x.cols);
      if (i == j) {
        residual_of_wide(b, x_j, r_i);
        continue;
      }
      blas::gemm_minus(CblasNoTrans, CblasNoTrans, cols, b, x_j, r_i);
      blas::gemm_minus<W>(blas::kAdjoint<W>, CblasNoTrans, rows, b, x.block(i, 0, rows, x.cols),
                          r.block(j, 0, cols, r.cols));
    }
  }
}

template <class W>
double componentwise(MatrixView<const W> r, MatrixView<const double> terms) {
  double worst = 0;
  for (std::int64_t j = 0; j < r.cols; ++j) {
    for (std::int64_t i = 0; i < r.rows; ++i) {
      const double size = std::abs(r(i, j));
      if (size == 0 && terms(i, j) == 0) continue;
      const double error = size / terms(i, j);
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
  }
  return worst;
}

template <class W>
double normwise(double norm_a, MatrixView<const W> b, MatrixView<const W> x,
                MatrixView<const W> r) {
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

}  // namespace

template <class A>
void symmetric_residual(MatrixView<const A> a, MatrixView<const WideOf<A>> x,
                        MatrixView<WideOf<A>> r) {
  using W = WideOf<A>;
  if (r.rows == 0 || r.cols == 0) return;
  if (a.cols <= kBlock) return subtract_strip(a, 0, x, r);
  constexpr std::int64_t kColumns = 64;  // at once, of each strip's own sums
  const std::int64_t strips = strips_of(a.cols);
  const auto crew = crew_for(strips, a);
  for (std::int64_t first = 0; first < x.cols; first += kColumns) {
    const std::int64_t cols = std::min(kColumns, x.cols - first);
    std::vector<std::vector<W>> sums(static_cast<std::size_t>(strips));
    crew->share(strips, [&](std::int64_t s) {
      std::vector<W>& sum = sums[static_cast<std::size_t>(s)];
      sum.assign(static_cast<std::size_t>(a.rows * cols), W{});
      subtract_strip(a, s, x.block(0, first, x.rows, cols),
                     MatrixView<W>{sum.data(), a.rows, cols, a.rows});
    });
    for (std::int64_t c = 0; c < cols; ++c)
      for (const std::vector<W>& sum : sums)
        for (std::int64_t i = 0; i < a.rows; ++i)
          r(i, first + c) += sum[static_cast<std::size_t>(i + c * a.rows)];
  }
}

template <class A>
void symmetric_residual_dd(MatrixView<const A> a, MatrixView<const WideOf<A>> b,
                           MatrixView<const WideOf<A>> x, MatrixView<WideOf<A>> r) {
  residual_dd(a, b, x, r);
}

template <class A>
void symmetric_magnitudes(MatrixView<const A> a, MatrixView<const double> x, MatrixView<double> y) {
  if (a.rows > 0) magnitudes(a, x, y);
}

template <class A>
void subtract_asymmetry(MatrixView<const A> a, MatrixView<const WideOf<A>> x,
                        MatrixView<WideOf<A>> r) {
  for_differences(a, [&](std::int64_t i, std::int64_t j, const WideOf<A>& difference) {
    for (std::int64_t c = 0; c < x.cols; ++c) r(i, c) -= difference * x(j, c);
  });
}

template <class A>
double scaled_asymmetry(MatrixView<const A> a, std::span<const double> scale) {
  std::vector<double> rows(scale.size());
  std::vector<double> columns(scale.size());
  for_differences(a, [&](std::int64_t i, std::int64_t j, const WideOf<A>& difference) {
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

double componentwise_backward_error(MatrixView<const double> r, MatrixView<const double> terms) {
  return componentwise(r, terms);
}
double componentwise_backward_error(MatrixView<const std::complex<double>> r,
                                    MatrixView<const double> terms) {
  return componentwise(r, terms);
}

double backward_error(double norm_a, MatrixView<const double> b, MatrixView<const double> x,
                      MatrixView<const double> r) {
  return normwise(norm_a, b, x, r);
}
double backward_error(double norm_a, MatrixView<const std::complex<double>> b,
                      MatrixView<const std::complex<double>> x,
                      MatrixView<const std::complex<double>> r) {
  return normwise(norm_a, b, x, r);
}

using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;
template void symmetric_residual(MatrixView<const double>, MatrixView<const double>,
                                 MatrixView<double>);
template void symmetric_residual_dd(MatrixView<const double>, MatrixView<const double>,
                                    MatrixView<const double>, MatrixView<double>);
template void subtract_asymmetry(MatrixView<const double>, MatrixView<const double>,
                                 MatrixView<double>);
template double scaled_asymmetry(MatrixView<const double>, std::span<const double>);
template void symmetric_magnitudes(MatrixView<const double>, MatrixView<const double>,
                                   MatrixView<double>);
template void symmetric_residual(MatrixView<const float>, MatrixView<const double>,
                                 MatrixView<double>);
template void symmetric_residual_dd(MatrixView<const float>, MatrixView<const double>,
                                    MatrixView<const double>, MatrixView<double>);
template void subtract_asymmetry(MatrixView<const float>, MatrixView<const double>,
                                 MatrixView<double>);
template double scaled_asymmetry(MatrixView<const float>, std::span<const double>);
template void symmetric_magnitudes(MatrixView<const float>, MatrixView<const double>,
                                   MatrixView<double>);
template void symmetric_residual(MatrixView<const Complex128>, MatrixView<const Complex128>,
                                 MatrixView<Complex128>);
template void symmetric_residual_dd(MatrixView<const Complex128>, MatrixView<const Complex128>,
                                    MatrixView<const Complex128>, MatrixView<Complex128>);
template void subtract_asymmetry(MatrixView<const Complex128>, MatrixView<const Complex128>,
                                 MatrixView<Complex128>);
template double scaled_asymmetry(MatrixView<const Complex128>, std::span<const double>);
template void symmetric_magnitudes(MatrixView<const Complex128>, MatrixView<const double>,
                                   MatrixView<double>);
template void symmetric_residual(MatrixView<const Complex64>, MatrixView<const Complex128>,
                                 MatrixView<Complex128>);
template void symmetric_residual_dd(MatrixView<const Complex64>, MatrixView<const Complex128>,
                                    MatrixView<const Complex128>, MatrixView<Complex128>);
template void subtract_asymmetry(MatrixView<const Complex64>, MatrixView<const Complex128>,
                                 MatrixView<Complex128>);
template double scaled_asymmetry(MatrixView<const Complex64>, std::span<const double>);
template void symmetric_magnitudes(MatrixView<const Complex64>, MatrixView<const double>,
                                   MatrixView<double>);

}  // namespace strata
