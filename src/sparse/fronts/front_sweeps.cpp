// Triangular solves with a factor in host memory, supernode by supernode.
//
// Method: rows below a supernode's columns are gathered into a buffer beside them, so that a panel,
// or its tiles, meets packed operands. Columns of X are taken a few at a time, a number that
// follows from nothing but the bound below; so a solution has the same bits on any number of
// threads. A supernode whose rows of X are zero is passed over: a sparse right-hand side meets only
// the ways from its rows to the root. Panels in another precision than X are widened one by one.

#include <cblas.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/work_crew.hpp"
#include "kernels/backend/blas_host.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

constexpr std::int64_t kSweepColumnsAtOnce = 16;

/// Y ← Y − A·X, or Y − Aᵀ·X; one column by a loop, which BLAS would not do faster.
template <class T>
void subtract_product(bool transposed, MatrixView<const T> a, MatrixView<const T> x,
                      MatrixView<T> y) {
  if (a.rows == 0 || a.cols == 0) return;
  if (x.cols > 1) {
    blas::gemm_minus<T>(transposed ? CblasTrans : CblasNoTrans, CblasNoTrans,
                        transposed ? a.rows : a.cols, a, x, y);
    return;
  }
  for (std::int64_t j = 0; j < a.cols; ++j) {
    const T* column = a.column(j);
    if (transposed) {
      T sum = 0;
      for (std::int64_t i = 0; i < a.rows; ++i) sum += column[i] * x.data[i];
      y.data[j] -= sum;
    } else {
      const T factor = x.data[j];
      for (std::int64_t i = 0; i < a.rows; ++i) y.data[i] -= column[i] * factor;
    }
  }
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
    for (std::int64_t j = 0; j < n; ++j) {
      const T* column = l.column(j);
      v[j] /= column[j];
      const T factor = v[j];
      for (std::int64_t i = j + 1; i < n; ++i) v[i] -= column[i] * factor;
    }
    return;
  }
  for (std::int64_t j = n; j-- > 0;) {
    const T* column = l.column(j);
    T sum = v[j];
    for (std::int64_t i = j + 1; i < n; ++i) sum -= column[i] * v[i];
    v[j] = sum / column[j];
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
  /// In the precision of X; until the next call.
  [[nodiscard]] MatrixView<const T> panel(std::int32_t s) {
    if (factor_.element() == element_of<T>) return factor_.template panel<T>(s);
    return widened(factor_.template panel<float>(s));
  }
  [[nodiscard]] MatrixView<const T> tile(const FrontUnit& unit, std::int64_t i, std::int64_t j) {
    if (factor_.element() == element_of<T>) return factor_.template tile<T>(unit, i, j);
    return widened(factor_.template tile<float>(unit, i, j));
  }
  [[nodiscard]] MatrixView<const T> widened(MatrixView<const float> a) {
    wide_.resize(std::max(wide_.size(), at(a.size())));
    for (std::int64_t j = 0; j < a.cols; ++j)
      std::copy_n(a.column(j), a.rows, wide_.data() + j * a.rows);
    return {wide_.data(), a.rows, a.cols, std::max<std::int64_t>(a.rows, 1)};
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
        solve_triangle<T>(false, tile(unit, j, j), xj);
        for (std::int64_t i = j + 1; i < unit.tiles(); ++i)
          subtract_product<T>(false, tile(unit, i, j), xj, part(unit, i, x1, x2));
      }
    } else {
      const MatrixView<const T> p = panel(s);
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
          subtract_product<T>(true, tile(unit, i, j), part(unit, i, x1, x2), xj);
        solve_triangle<T>(true, tile(unit, j, j), xj);
      }
    } else {
      const MatrixView<const T> p = panel(s);
      subtract_product<T>(true, p.block(p.cols, 0, x2.rows, p.cols), x2, x1);
      solve_triangle<T>(true, p, x1);
    }
  }

  const FrontFactor& factor_;
  const SparseAnalysis& analysis_;
  MatrixView<T> x_;
  std::vector<T> below_;
  std::vector<T> wide_;
};

template <class T, class Sweep>
void for_column_groups(MatrixView<T> x, const Sweep& sweep) {
  if (x.rows == 0) return;  // it may have no address
  const std::int64_t pieces = (x.cols + kSweepColumnsAtOnce - 1) / kSweepColumnsAtOnce;
  const auto piece = [&](std::int64_t k) {
    const std::int64_t first = k * kSweepColumnsAtOnce;
    sweep(x.block(0, first, x.rows, std::min(kSweepColumnsAtOnce, x.cols - first)));
  };
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkCrew crew(static_cast<int>(std::clamp<std::int64_t>(pieces - 1, 0, cores - 1)));
  crew.share(pieces, piece);
}

}  // namespace

template <class T>
void sweep_forward(const FrontFactor& factor, MatrixView<T> x) {
  for_column_groups(x, [&](MatrixView<T> part) { Sweeper<T>(factor, part).forward(); });
}
template <class T>
void sweep_backward(const FrontFactor& factor, MatrixView<T> x) {
  for_column_groups(x, [&](MatrixView<T> part) { Sweeper<T>(factor, part).backward(); });
}

template void sweep_forward(const FrontFactor&, MatrixView<double>);
template void sweep_forward(const FrontFactor&, MatrixView<float>);
template void sweep_backward(const FrontFactor&, MatrixView<double>);
template void sweep_backward(const FrontFactor&, MatrixView<float>);

}  // namespace strata
