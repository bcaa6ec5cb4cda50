#pragma once
// Operators on blocks of columns, and what Krylov methods do with the columns themselves.
//
// Contract: a block is n × r, column-major; its columns have nothing to do with each other, they
// share the operators. Operators are called from the calling thread; what they throw comes out.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

#include "strata/matrix_view.hpp"

namespace strata {

/// OUT ← A·IN for n × r blocks, which do not overlap.
using BlockOperator = std::function<void(MatrixView<const double> in, MatrixView<double> out)>;
/// B ← M⁻¹·B for an n × r block of T.
template <class T>
using BlockSolverOf = std::function<void(MatrixView<T> b)>;
using BlockSolver = BlockSolverOf<double>;

/// An owned block of T, zero at first, with ld = rows.
template <class T>
class DenseBlockOf {
 public:
  DenseBlockOf(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols), data_(static_cast<std::size_t>(rows * cols)) {}

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t cols() const noexcept { return cols_; }
  [[nodiscard]] T* column(std::int64_t j) noexcept { return data_.data() + j * rows_; }
  [[nodiscard]] const T* column(std::int64_t j) const noexcept { return data_.data() + j * rows_; }
  [[nodiscard]] MatrixView<T> view() noexcept {
    return {data_.data(), rows_, cols_, std::max<std::int64_t>(rows_, 1)};
  }
  [[nodiscard]] MatrixView<const T> view() const noexcept {
    return {data_.data(), rows_, cols_, std::max<std::int64_t>(rows_, 1)};
  }
  void clear_column(std::int64_t j) { std::fill_n(column(j), rows_, T{0}); }

 private:
  std::int64_t rows_;
  std::int64_t cols_;
  std::vector<T> data_;
};
using DenseBlock = DenseBlockOf<double>;

/// xᵀy in one order, by fused multiply-adds.
[[nodiscard]] inline double dot(std::int64_t n, const double* x, const double* y) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum = std::fma(x[i], y[i], sum);
  return sum;
}

/// xᵀy as if summed up with twice the digits and rounded once: |error| <= u·|xᵀy| + γ_n²·|x|ᵀ|y|
/// (Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26, 2005,
/// algorithm 5.3).
[[nodiscard]] inline double accurate_dot(std::int64_t n, const double* x, const double* y) {
  double sum = 0;
  double lost = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double product = x[i] * y[i];
    const double product_lost = std::fma(x[i], y[i], -product);
    const double next = sum + product;
    const double back = next - sum;
    lost += (sum - (next - back)) + (product - back) + product_lost;
    sum = next;
  }
  return sum + lost;
}

/// max |x_i|; NaN if one is.
template <class T>
[[nodiscard]] double norm_inf(std::int64_t n, const T* x) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double size = std::abs(x[i]);
    if (!(size <= largest)) largest = size;
    if (std::isnan(largest)) return largest;
  }
  return largest;
}

/// y ← y + a·x.
inline void add_scaled(std::int64_t n, double a, const double* x, double* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::fma(a, x[i], y[i]);
}

}  // namespace strata
