// Triangular solves with a factor in host memory, supernode by supernode.
//
// Method: rows below a supernode's columns are gathered into a buffer beside them, so that a panel,
// or its tiles, meets packed operands. Columns of X are taken a few at a time, a number that
// follows from nothing but the bound below; so a solution has the same bits on any number of
// threads. A supernode whose rows of X are zero is passed over: a sparse right-hand side meets only
// the ways from its rows to the root.

#include <cblas.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/work_crew.hpp"
#include "kernels/blas_host.hpp"
#include "sparse/front_factor.hpp"
#include "sparse/pattern.hpp"

namespace strata {
namespace {

constexpr std::int64_t kColumnsAtOnce = 16;

/// Columns of L that one column of X meets together, so that it is read, or written, once for them,
/// in sums that do not wait for each other. BLAS is called for more columns of X.
constexpr std::int64_t kTogether = 4;

/// y ← y − A·x.
template <class T>
void subtract_columns(MatrixView<const T> a, const T* x, T* __restrict y) {
  std::int64_t j = 0;
  for (; j + kTogether <= a.cols; j += kTogether) {
    const T* a0 = a.column(j);
    const T* a1 = a.column(j + 1);
    const T* a2 = a.column(j + 2);
    const T* a3 = a.column(j + 3);
    const T x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
    for (std::int64_t i = 0; i < a.rows; ++i)
      y[i] -= (a0[i] * x0 + a1[i] * x1) + (a2[i] * x2 + a3[i] * x3);
  }
  for (; j < a.cols; ++j) {
    const T* column = a.column(j);
    for (std::int64_t i = 0; i < a.rows; ++i) y[i] -= column[i] * x[j];
  }
}

/// xᵀ·y, of `rows` numbers each.
template <class T>
T product(const T* x, const T* y, std::int64_t rows) {
  T sum[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4)
    for (std::int64_t k = 0; k < 4; ++k) sum[k] += x[i + k] * y[i + k];
  for (; i < rows; ++i) sum[0] += x[i] * y[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// y ← y − Aᵀ·x.
template <class T>
void subtract_rows(MatrixView<const T> a, const T* x, T* __restrict y) {
  std::int64_t j = 0;
  for (; j + kTogether <= a.cols; j += kTogether) {
    const T* a0 = a.column(j);
    const T* a1 = a.column(j + 1);
    const T* a2 = a.column(j + 2);
    const T* a3 = a.column(j + 3);
    T sum[kTogether][2] = {};
    std::int64_t i = 0;
    for (; i + 2 <= a.rows; i += 2) {
      for (std::int64_t k = 0; k < 2; ++k) {
        sum[0][k] += a0[i + k] * x[i + k];
        sum[1][k] += a1[i + k] * x[i + k];
        sum[2][k] += a2[i + k] * x[i + k];
        sum[3][k] += a3[i + k] * x[i + k];
      }
    }
    if (i < a.rows) {
      sum[0][0] += a0[i] * x[i];
      sum[1][0] += a1[i] * x[i];
      sum[2][0] += a2[i] * x[i];
      sum[3][0] += a3[i] * x[i];
    }
    for (std::int64_t c = 0; c < kTogether; ++c) y[j + c] -= sum[c][0] + sum[c][1];
  }
  for (; j < a.cols; ++j) y[j] -= product(a.column(j), x, a.rows);
}

/// Y ← Y − A·X, or Y − Aᵀ·X.
template <class T>
void subtract_product(bool transposed, MatrixView<const T> a, MatrixView<const T> x,
                      MatrixView<T> y) {
  if (a.rows == 0 || a.cols == 0) return;
  if (x.cols > 1) {
    blas::gemm_minus<T>(transposed ? CblasTrans : CblasNoTrans, CblasNoTrans,
                        transposed ? a.rows : a.cols, a, x, y);
    return;
  }
  transposed ? subtract_rows(a, x.data, y.data) : subtract_columns(a, x.data, y.data);
}

/// X ← L⁻¹·X, or L⁻ᵀ·X.
template <class T>
void solve_triangle(bool transposed, MatrixView<const T> l, MatrixView<T> x) {
  const std::int64_t n = l.cols;
  if (x.cols > 1) {
    blas::trsm<T>(CblasLeft, transposed ? CblasTrans : CblasNoTrans, l.block(0, 0, n, n), x);
    return;
  }
  T* v = x.data;
  if (!transposed) {
    for (std::int64_t first = 0; first < n; first += kTogether) {
      const std::int64_t end = std::min(first + kTogether, n);
      for (std::int64_t j = first; j < end; ++j) {
        v[j] /= l(j, j);
        for (std::int64_t i = j + 1; i < end; ++i) v[i] -= l(i, j) * v[j];
      }
      subtract_columns(l.block(end, first, n - end, end - first), v + first, v + end);
    }
    return;
  }
  for (std::int64_t end = n; end > 0;) {
    const std::int64_t first = (end - 1) / kTogether * kTogether;
    subtract_rows(l.block(end, first, n - end, end - first), v + end, v + first);
    for (std::int64_t j = end; j-- > first;) {
      for (std::int64_t i = j + 1; i < end; ++i) v[j] -= l(i, j) * v[i];
      v[j] /= l(j, j);
    }
    end = first;
  }
}

/// A few columns of X with room for the rows of any front.
template <class T>
class Sweeper {
 public:
  Sweeper(const FrontFactor& factor, MatrixView<T> x)
      : factor_(factor), analysis_(factor.analysis()), x_(x) {}

  void forward() {
    for (std::int32_t s = 0; s < analysis_.supernodes(); ++s) forward(s);
  }
  void backward() {
    for (std::int32_t s = analysis_.supernodes(); s-- > 0;) backward(s);
  }

 private:
  [[nodiscard]] MatrixView<T> below(std::int32_t s) {
    const std::int64_t r = analysis_.row_count(s);
    below_.resize(std::max(below_.size(), at(r * x_.cols)));
    return {below_.data(), r, x_.cols, std::max<std::int64_t>(r, 1)};
  }
  [[nodiscard]] MatrixView<T> own(std::int32_t s) const {
    return x_.block(analysis_.first[at(s)], 0, analysis_.width(s), x_.cols);
  }
  /// Rows of tile i: of X where it is one of columns, else of `below`.
  [[nodiscard]] static MatrixView<T> part(const FrontUnit& unit, std::int64_t i, MatrixView<T> x1,
                                          MatrixView<T> x2) {
    const std::int64_t begin = unit.cuts[at(i)];
    const std::int64_t count = unit.cuts[at(i + 1)] - begin;
    if (i < unit.column_tiles) return x1.block(begin, 0, count, x1.cols);
    return x2.block(begin - x1.rows, 0, count, x2.cols);
  }

  [[nodiscard]] static bool is_zero(MatrixView<const T> x) {
    for (std::int64_t c = 0; c < x.cols; ++c) {
      const T* column = x.column(c);
      if (!std::all_of(column, column + x.rows, [](T v) { return v == 0; })) return false;
    }
    return true;
  }

  void forward(std::int32_t s) {
    const FrontUnit& unit = factor_.unit_of(s);
    const MatrixView<T> x1 = own(s);
    if (is_zero(x1)) return;
    const MatrixView<T> x2 = below(s);
    std::fill_n(x2.data, x2.rows * x2.cols, T{0});
    if (unit.kind == UnitKind::tiled) {
      for (std::int64_t j = 0; j < unit.column_tiles; ++j) {
        const MatrixView<T> xj = part(unit, j, x1, x2);
        solve_triangle<T>(false, factor_.template tile<T>(unit, j, j), xj);
        for (std::int64_t i = j + 1; i < unit.tiles(); ++i)
          subtract_product<T>(false, factor_.template tile<T>(unit, i, j), xj,
                              part(unit, i, x1, x2));
      }
    } else {
      const MatrixView<const T> p = factor_.template panel<T>(s);
      solve_triangle<T>(false, p, x1);
      subtract_product<T>(false, p.block(p.cols, 0, x2.rows, p.cols), x1, x2);
    }
    const auto rows = analysis_.rows(s);
    for (std::int64_t c = 0; c < x_.cols; ++c) {
      T* to = x_.column(c);
      const T* from = x2.column(c);
      for (std::size_t i = 0; i < rows.size(); ++i) to[rows[i]] += from[i];
    }
  }

  void backward(std::int32_t s) {
    const FrontUnit& unit = factor_.unit_of(s);
    const MatrixView<T> x1 = own(s);
    const MatrixView<T> x2 = below(s);
    const auto rows = analysis_.rows(s);
    for (std::int64_t c = 0; c < x_.cols; ++c) {
      const T* from = x_.column(c);
      T* to = x2.column(c);
      for (std::size_t i = 0; i < rows.size(); ++i) to[i] = from[rows[i]];
    }
    if (unit.kind == UnitKind::tiled) {
      for (std::int64_t j = unit.column_tiles; j-- > 0;) {
        const MatrixView<T> xj = part(unit, j, x1, x2);
        for (std::int64_t i = j + 1; i < unit.tiles(); ++i)
          subtract_product<T>(true, factor_.template tile<T>(unit, i, j), part(unit, i, x1, x2),
                              xj);
        solve_triangle<T>(true, factor_.template tile<T>(unit, j, j), xj);
      }
    } else {
      const MatrixView<const T> p = factor_.template panel<T>(s);
      subtract_product<T>(true, p.block(p.cols, 0, x2.rows, p.cols), x2, x1);
      solve_triangle<T>(true, p, x1);
    }
  }

  const FrontFactor& factor_;
  const SparseAnalysis& analysis_;
  MatrixView<T> x_;
  std::vector<T> below_;
};

template <class T, class Sweep>
void for_columns(MatrixView<T> x, const Sweep& sweep) {
  if (x.rows == 0) return;  // it may have no address
  const std::int64_t pieces = (x.cols + kColumnsAtOnce - 1) / kColumnsAtOnce;
  const auto piece = [&](std::int64_t k) {
    const std::int64_t first = k * kColumnsAtOnce;
    sweep(x.block(0, first, x.rows, std::min(kColumnsAtOnce, x.cols - first)));
  };
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkCrew crew(static_cast<int>(std::clamp<std::int64_t>(pieces - 1, 0, cores - 1)));
  crew.share(pieces, piece);
}

}  // namespace

template <class T>
void sweep_forward(const FrontFactor& factor, MatrixView<T> x) {
  for_columns(x, [&](MatrixView<T> part) { Sweeper<T>(factor, part).forward(); });
}
template <class T>
void sweep_backward(const FrontFactor& factor, MatrixView<T> x) {
  for_columns(x, [&](MatrixView<T> part) { Sweeper<T>(factor, part).backward(); });
}

template void sweep_forward(const FrontFactor&, MatrixView<double>);
template void sweep_forward(const FrontFactor&, MatrixView<float>);
template void sweep_backward(const FrontFactor&, MatrixView<double>);
template void sweep_backward(const FrontFactor&, MatrixView<float>);

}  // namespace strata
