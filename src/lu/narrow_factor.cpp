#include "lu/narrow_factor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.hpp"
#include "cholesky/certified_solution.hpp"
#include "cholesky/dense_system.hpp"
#include "kernels/dense/panel_status.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

LuProblem problem_of(std::int64_t n, Element precision) {
  LuProblem problem;
  problem.n = n;
  problem.precision = precision;
  return problem;
}

/// A scale that is no number above 0 is that of a row with elements that are none.
std::vector<int> exponents_of(const std::vector<double>& scale) {
  std::vector<int> exponent;
  for (const double s : scale) exponent.push_back(s > 0 && std::isfinite(s) ? std::ilogb(s) : 0);
  return exponent;
}

template <class W>
void multiply_rows(const std::vector<int>& exponent, DenseBlockOf<W>& v) {
  for (std::int64_t j = 0; j < v.cols(); ++j)
    for (std::int64_t i = 0; i < v.rows(); ++i)
      v.column(j)[i] = times_power(v.column(j)[i], exponent[at(i)]);
}

}  // namespace

template <class W>
NarrowFactor<W>::NarrowFactor(const ScaledSystem<W, W>& system, const Options& options)
    : row_exponent_(exponents_of(system.row_scale())),
      column_exponent_(exponents_of(system.column_scale())),
      panels_(problem_of(system.n(), element_of<N>), options) {
  const MatrixView<const W> a = system.a();
  const auto narrowed = [&](std::int64_t i, std::int64_t j) {
    return static_cast<N>(times_power(a(i, j), row_exponent_[at(i)] + column_exponent_[at(j)]));
  };
  double largest = 0;
  std::vector<N> column(at(a.rows));
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) column[at(i)] = narrowed(i, j);
    largest = std::max(largest, largest_of_column(column.data(), a.rows));
  }
  info_ = panels_.factor(
      [&](const BlockExtent& extent, std::byte* to) {
        auto* packed = reinterpret_cast<N*>(to);
        for (std::int64_t j = 0; j < extent.cols; ++j)
          for (std::int64_t i = 0; i < extent.rows; ++i)
            *packed++ = narrowed(extent.row + i, extent.col + j);
      },
      largest);
  if (info_.determinant.sign != 0) {
    const auto sum = [](const std::vector<int>& e) {
      return std::accumulate(e.begin(), e.end(), std::int64_t{0});
    };
    info_.determinant.exponent -= sum(row_exponent_) + sum(column_exponent_);
  }
}

template <class W>
DenseBlockOf<W> NarrowFactor<W>::scaled(MatrixView<const W> b, bool adjoint) const {
  DenseBlockOf<W> scaled(b.rows, b.cols);
  copy_columns<W, W>(b, scaled.view());
  multiply_rows(adjoint ? column_exponent_ : row_exponent_, scaled);
  return scaled;
}

template <class W>
DenseBlockOf<W> NarrowFactor<W>::solve(MatrixView<const W> b, bool adjoint, RunReport& report) {
  const BlockSolverOf<N> solve = [&](MatrixView<N> v) {
    accumulate(report, panels_.solve(v, adjoint ? kAdjointFactor : 0));
  };
  const DenseBlockOf<W> v = scaled(b, adjoint);
  DenseBlockOf<W> x = solved_in_range<N>(solve, v.view());
  multiply_rows(adjoint ? row_exponent_ : column_exponent_, x);
  return x;
}

template <class W>
DenseBlockOf<W> NarrowFactor<W>::solve_wide(MatrixView<const W> b, bool adjoint) const {
  DenseBlockOf<W> x = scaled(b, adjoint);
  panels_.template solve_wide<N>(x.view(), adjoint);
  multiply_rows(adjoint ? row_exponent_ : column_exponent_, x);
  return x;
}

template class NarrowFactor<double>;
template class NarrowFactor<std::complex<double>>;

}  // namespace strata
