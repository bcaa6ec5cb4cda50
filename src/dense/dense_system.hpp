#pragma once
// What solutions and log-determinants of dense systems share: columns that are owned, and powers of
// two that bring a matrix into the middle of the range.
//
// Contract: T and A are double or float or std::complex of one of them; D = diag(A)^(−1/2), and
// S = D·A·D has a unit diagonal.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "dense/certified_solution.hpp"
#include "scalar/complex.hpp"
#include "strata/certificate.hpp"

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

}  // namespace strata
