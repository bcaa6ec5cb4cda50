#pragma once
// What solutions and log-determinants of dense systems share: columns that are owned, powers of two
// that bring a matrix into the middle of the range, and the norm of a scaled inverse.
//
// Contract: T and A are double or float or std::complex of one of them; D = diag(A)^(−1/2), and
// S = D·A·D has a unit diagonal.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "cholesky/certified_solution.hpp"
#include "cholesky/inverse_norm.hpp"
#include "scalar/complex.hpp"
#include "session/report.hpp"
#include "strata/cholesky.hpp"

namespace strata {

template <class T>
struct OwnedColumns {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<T> values = std::vector<T>(at(rows * cols));

  [[nodiscard]] MatrixView<T> view() {
    return {values.data(), rows, cols, std::max<std::int64_t>(rows, 1)};
  }
  [[nodiscard]] MatrixView<const T> view() const {
    return {values.data(), rows, cols, std::max<std::int64_t>(rows, 1)};
  }
};

template <class From, class To>
void copy_columns(MatrixView<const From> from, MatrixView<To> to) {
  for (std::int64_t j = 0; j < from.cols; ++j)
    std::transform(from.column(j), from.column(j) + from.rows, to.column(j),
                   [](From value) { return static_cast<To>(value); });
}

/// 2^(−exponent)·A, of what is given.
template <class T>
[[nodiscard]] OwnedColumns<T> divided(MatrixView<const T> a, int exponent, GivenTriangles given) {
  OwnedColumns<T> copy{a.rows, a.cols};
  for (std::int64_t j = 0; j < a.cols; ++j)
    for (std::int64_t i = given == GivenTriangles::both ? 0 : j; i < a.rows; ++i)
      copy.view()(i, j) = times_power(a(i, j), -exponent);
  return copy;
}

/// With D for the scales.
template <class T>
[[nodiscard]] Loss loss_of(MatrixView<const T> a, MatrixView<const T> divided, int exponent) {
  Loss loss;
  std::vector<double> sum(at(a.rows));
  const auto root = [&](std::int64_t i) {
    return std::sqrt(static_cast<double>(real_part(a(i, i))));
  };
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = j; i < a.rows; ++i) {
      const auto value = static_cast<WideOf<T>>(a(i, j));
      const double off =
          std::abs(value - static_cast<WideOf<T>>(times_power(divided(i, j), exponent)));
      if (off == 0) continue;
      loss.relative = std::max(loss.relative, off / std::abs(value));
      sum[at(i)] += off / root(i) / root(j);
      if (i != j) sum[at(j)] += off / root(i) / root(j);
    }
  }
  loss.scaled_norm = norm_inf(a.rows, sum.data());
  return loss;
}

/// The largest element of a positive definite matrix.
template <class T>
[[nodiscard]] double largest_diagonal(MatrixView<const T> a) {
  double largest = 0;
  for (std::int64_t i = 0; i < std::min(a.rows, a.cols); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(real_part(a(i, i)))));
  return largest;
}

/// D, as the diagonal of A has it.
template <class A>
[[nodiscard]] std::vector<double> unit_scale(MatrixView<const A> a) {
  std::vector<double> scale;
  for (std::int64_t i = 0; i < a.rows; ++i)
    scale.push_back(1 / std::sqrt(static_cast<double>(real_part(a(i, i)))));
  return scale;
}

/// ‖S⁻¹‖∞ of S = D·A·D, D = diag(scale), by the factor of A; `solves` counts what it takes.
template <class T>
[[nodiscard]] double scaled_inverse_norm(CholeskyFactor& factor, const std::vector<double>& scale,
                                         RunReport& solves) {
  std::vector<double> root;
  for (const double d : scale) root.push_back(1 / d);
  using W = WideOf<T>;
  return estimate_scaled_inverse_norm(root, [&](MatrixView<W> v) {
    if constexpr (std::is_same_v<T, W>) {
      accumulate(solves, factor.solve(v));
    } else {
      OwnedColumns<T> narrow{v.rows, v.cols};
      copy_columns<W, T>(v, narrow.view());
      accumulate(solves, factor.solve(narrow.view()));
      copy_columns<T, W>(narrow.view(), v);
    }
  });
}

}  // namespace strata
