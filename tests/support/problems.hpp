#pragma once
// Problems and oracles that the tests share.
//
// Contract: matrices in closed form, so that no test needs a file; the oracles use none of the
// library's kernels.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "strata/matrix_view.hpp"

namespace strata::test {

/// The same bits, NaN included. (memcmp itself takes no null pointer, not even for no bytes.)
template <class T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// An owned column-major matrix.
template <class T>
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<T> data;

  Matrix(std::int64_t r, std::int64_t c)
      : rows(r), cols(c), data(static_cast<std::size_t>(r * c)) {}
  T& operator()(std::int64_t i, std::int64_t j) {
    return data[static_cast<std::size_t>(i + j * rows)];
  }
  const T& operator()(std::int64_t i, std::int64_t j) const {
    return data[static_cast<std::size_t>(i + j * rows)];
  }
  [[nodiscard]] std::int64_t ld() const { return rows > 0 ? rows : 1; }
  MatrixView<T> view() { return {data.data(), rows, cols, ld()}; }
  MatrixView<const T> view() const { return {data.data(), rows, cols, ld()}; }
};

template <class T, class F>
Matrix<T> make_matrix(std::int64_t rows, std::int64_t cols, F element) {
  Matrix<T> a(rows, cols);
  for (std::int64_t j = 0; j < cols; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) a(i, j) = static_cast<T>(element(i, j));
  }
  return a;
}

/// min(i, j), counted from 1: integers, and its factor is all ones.
template <class T>
Matrix<T> min_matrix(std::int64_t n) {
  return make_matrix<T>(n, n,
                        [](auto i, auto j) { return static_cast<double>(std::min(i, j) + 1); });
}

/// The Hilbert matrix plus 1e-6 on the diagonal: condition about 2e6. (With 1e-8 two backward
/// stable factorizations may differ in the log-determinant by more than 1e-12 of it.)
template <class T>
Matrix<T> hilbert_matrix(std::int64_t n) {
  return make_matrix<T>(n, n, [](auto i, auto j) {
    return 1.0 / static_cast<double>(i + j + 1) + (i == j ? 1e-6 : 0.0);
  });
}

/// Symmetric, uniform in [−1, 1) off the diagonal, diagonally dominant.
template <class T>
Matrix<T> random_spd_matrix(std::int64_t n, std::uint64_t seed) {
  return make_matrix<T>(n, n, [=](auto i, auto j) {
    const auto lo = static_cast<std::uint64_t>(std::min(i, j));
    const auto hi = static_cast<std::uint64_t>(std::max(i, j));
    return i == j ? static_cast<double>(n) : 2 * random_uniform(seed, hi * (hi + 1) / 2 + lo) - 1;
  });
}

/// ‖b − A·x‖∞ / (w·‖A‖∞·‖x‖∞ + v·‖b‖∞) for each column, in long double, with the whole matrix.
/// A, b and x are anything with rows, cols and an element (i, j): a Matrix or a MatrixView.
template <class A, class B, class X>
std::vector<long double> backward_errors(const A& a, const B& b, const X& x, long double w = 1,
                                         long double v = 1) {
  std::vector<long double> errors;
  for (std::int64_t c = 0; c < x.cols; ++c) {
    long double residual = 0, norm_a = 0, norm_x = 0, norm_b = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      long double r = b(i, c), row = 0;
      for (std::int64_t j = 0; j < a.cols; ++j) {
        r -= static_cast<long double>(a(i, j)) * x(j, c);
        row += std::abs(static_cast<long double>(a(i, j)));
      }
      residual = std::max(residual, std::abs(r));
      norm_a = std::max(norm_a, row);
      norm_x = std::max(norm_x, std::abs(static_cast<long double>(x(i, c))));
      norm_b = std::max(norm_b, std::abs(static_cast<long double>(b(i, c))));
    }
    errors.push_back(residual == 0 ? 0 : residual / (w * norm_a * norm_x + v * norm_b));
  }
  return errors;
}

/// The largest of them; a NaN where one is.
template <class A, class B, class X>
double backward_error(const A& a, const B& b, const X& x) {
  long double worst = 0;
  for (const long double error : backward_errors(a, b, x)) {
    if (!(error <= worst)) worst = error;
  }
  return static_cast<double>(worst);
}

}  // namespace strata::test
