#pragma once
// Sparse matrices with numbers, and what a dense factorization in long doubles says of them.

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "tests/sparse/patterns.hpp"

namespace strata::test {

/// A positive definite matrix of a pattern: entries below the diagonal from −1 to 1, the same in
/// both triangles, and diagonals a little above the sums of their magnitudes.
inline SparseMatrix with_values(SparseMatrix a, std::uint64_t seed, double margin = 0.01) {
  std::vector<double> sum(at(a.rows), margin);
  const auto entry = [&](std::int64_t i, std::int64_t j) {
    const auto place = static_cast<std::uint64_t>(std::max(i, j) * a.rows + std::min(i, j));
    return 2 * random_uniform(seed, place) - 1;
  };
  bool both_below = false;
  bool both_above = false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      both_below = both_below || a.column[at(k)] < i;
      both_above = both_above || a.column[at(k)] > i;
    }
  }
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      if (i == j) continue;
      a.value[at(k)] = entry(i, j);
      sum[at(i)] += std::abs(a.value[at(k)]);
      if (!(both_below && both_above)) sum[at(j)] += std::abs(a.value[at(k)]);
    }
  }
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      if (a.column[at(k)] == i) a.value[at(k)] = sum[at(i)];
  return a;
}

/// All of a symmetric matrix, n × n, whichever triangles were given.
inline std::vector<double> dense_of(const SparseMatrix& a, double shift = 0) {
  std::vector<double> full(at(a.rows * a.rows));
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      full[at(i + j * a.rows)] = full[at(j + i * a.rows)] = a.value[at(k)];
    }
    full[at(i + i * a.rows)] += shift;
  }
  return full;
}

/// Cholesky, inverse and determinant of a dense matrix in long doubles, column by column.
struct DenseOracle {
  std::int64_t n = 0;
  std::vector<long double> l;
  long double log_determinant = 0;
  std::int64_t bad_column = -1;
  double bad_pivot = 0;

  DenseOracle(const std::vector<double>& a, std::int64_t order) : n(order), l(a.begin(), a.end()) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k < j; ++k)
        for (std::int64_t i = j; i < n; ++i)
          l[at(i + j * n)] -= l[at(i + k * n)] * l[at(j + k * n)];
      const long double pivot = l[at(j + j * n)];
      if (!(pivot > 0)) {
        bad_column = j;
        bad_pivot = static_cast<double>(pivot);
        return;
      }
      const long double root = std::sqrt(pivot);
      log_determinant += 2 * std::log(root);
      for (std::int64_t i = j; i < n; ++i) l[at(i + j * n)] /= root;
    }
  }
  [[nodiscard]] std::vector<long double> solve(std::vector<long double> x) const {
    for (std::int64_t j = 0; j < n; ++j) {
      x[at(j)] /= l[at(j + j * n)];
      for (std::int64_t i = j + 1; i < n; ++i) x[at(i)] -= l[at(i + j * n)] * x[at(j)];
    }
    for (std::int64_t j = n; j-- > 0;) {
      for (std::int64_t i = j + 1; i < n; ++i) x[at(j)] -= l[at(i + j * n)] * x[at(i)];
      x[at(j)] /= l[at(j + j * n)];
    }
    return x;
  }
  /// Column j of the inverse.
  [[nodiscard]] std::vector<long double> inverse_column(std::int64_t j) const {
    std::vector<long double> x(at(n));
    x[at(j)] = 1;
    return solve(std::move(x));
  }
};

}  // namespace strata::test
