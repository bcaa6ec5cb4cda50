#pragma once
// The exact R of a matrix and its condition, in 600 bits.
//
// Contract: that of procrustes.hpp; singular values of the rounded triangles by LAPACK.

#include <lapacke.h>

#include "tests/qr/procrustes.hpp"

namespace strata::test {

/// The largest singular value of an upper triangle, each element of which is rounded to a double.
inline double norm_of(const ManyMatrix& a) {
  std::vector<double> values(a.data.size());
  std::transform(a.data.begin(), a.data.end(), values.begin(),
                 [](const Many& x) { return static_cast<double>(x); });
  const int n = static_cast<int>(a.cols);
  std::vector<double> singular(static_cast<std::size_t>(n));
  std::vector<double> left(singular.size());
  EXPECT_EQ(LAPACKE_dgesvd(LAPACK_COL_MAJOR, 'N', 'N', n, n, values.data(), n, singular.data(),
                           nullptr, 1, nullptr, 1, left.data()),
            0);
  return singular[0];
}

/// The exact R of V, each column over its length; that of the columns that depend on none before
/// them, and its inverse.
struct ExactTriangle {
  std::vector<Many> lengths;
  ManyMatrix r{0, 0};
  std::vector<std::int64_t> kept;
  ManyMatrix of_kept{0, 0};
  ManyMatrix inverse{0, 0};

  /// Condition of the unit columns, without those that depend on others.
  [[nodiscard]] double condition() const {
    return kept.empty() ? 1 : norm_of(of_kept) * norm_of(inverse);
  }
};
template <class T>
ExactTriangle exact_triangle_of(const Matrix<T>& v) {
  ExactTriangle exact;
  auto unit = make_matrix<Many>(v.rows, v.cols, [&](auto i, auto j) { return v(i, j); });
  for (std::int64_t j = 0; j < v.cols; ++j) {
    Many square = 0;
    for (std::int64_t i = 0; i < v.rows; ++i) square += unit(i, j) * unit(i, j);
    exact.lengths.emplace_back(sqrt(square));
    for (std::int64_t i = 0; i < v.rows && exact.lengths.back() > 0; ++i)
      unit(i, j) /= exact.lengths.back();
  }
  exact.r = exact_triangle(unit);
  for (std::int64_t j = 0; j < v.cols; ++j) {
    if (exact.r(j, j) > 0) exact.kept.push_back(j);
  }
  const std::int64_t rank = std::ssize(exact.kept);
  exact.of_kept = make_matrix<Many>(rank, rank, [&](auto i, auto j) {
    return exact.r(exact.kept[static_cast<std::size_t>(i)],
                   exact.kept[static_cast<std::size_t>(j)]);
  });
  exact.inverse = ManyMatrix(rank, rank);
  for (std::int64_t j = 0; j < rank; ++j) {  // by back substitution
    for (std::int64_t i = j; i >= 0; --i) {
      Many rest = i == j ? 1 : 0;
      for (std::int64_t k = i + 1; k <= j; ++k) rest -= exact.of_kept(i, k) * exact.inverse(k, j);
      exact.inverse(i, j) = rest / exact.of_kept(i, i);
    }
  }
  return exact;
}

}  // namespace strata::test
