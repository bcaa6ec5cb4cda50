#pragma once
// How near the columns of which R is the triangle come to V, in 600 bits.
//
// Contract: nothing of the library's arithmetic. V has at most a few thousand rows and few columns.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <utility>
#include <vector>

#include "tests/qr/tall_matrices.hpp"

namespace strata::test {

using Many = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<600, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;
using ManyMatrix = Matrix<Many>;

/// In four times the bits.
using ManyMore = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<2400, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;

/// The R of a Gram matrix B by Cholesky's method, in place; rows whose pivot is below `zero` are
/// zeros. Returns how many.
template <class Real>
std::int64_t eliminate(Matrix<Real>& r, const Real& zero) {
  const std::int64_t n = r.cols;
  std::int64_t zeros = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const bool none = r(j, j) < zero;
    zeros += none ? 1 : 0;
    const Real root = none ? Real(1) : Real(sqrt(r(j, j)));
    for (std::int64_t k = j; k < n; ++k) r(j, k) = none ? Real(0) : Real(r(j, k) / root);
    for (std::int64_t k = j + 1; k < n; ++k) {
      for (std::int64_t i = j + 1; i <= k; ++i) r(i, k) -= r(j, i) * r(j, k);
    }
  }
  return zeros;
}

template <class Real>
Matrix<Real> gram_of(const ManyMatrix& v) {
  Matrix<Real> b(v.cols, v.cols);
  for (std::int64_t j = 0; j < v.cols; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      for (std::int64_t k = 0; k < v.rows; ++k) b(i, j) += Real(v(k, i)) * Real(v(k, j));
    }
  }
  return b;
}

/// The exact R of V's columns, each over its length; rows of columns that depend on others, to 140
/// digits, are zeros. A triangle with several small pivots loses that many digits: where a column
/// seems dependent all is computed in four times the bits.
inline ManyMatrix exact_triangle(const ManyMatrix& unit) {
  ManyMatrix r = gram_of<Many>(unit);
  if (eliminate(r, Many("1e-140")) == 0) return r;
  Matrix<ManyMore> more = gram_of<ManyMore>(unit);
  eliminate(more, ManyMore("1e-330"));
  return make_matrix<Many>(unit.cols, unit.cols,
                           [&](auto i, auto j) { return static_cast<Many>(more(i, j)); });
}

inline ManyMatrix inverse_of(ManyMatrix a) {
  const std::int64_t n = a.cols;
  auto inverse = make_matrix<Many>(n, n, [](auto i, auto j) { return Many(i == j ? 1 : 0); });
  for (std::int64_t p = 0; p < n; ++p) {
    std::int64_t best = p;
    for (std::int64_t i = p + 1; i < n; ++i) {
      if (abs(a(i, p)) > abs(a(best, p))) best = i;
    }
    for (std::int64_t j = 0; j < n; ++j) {
      std::swap(a(p, j), a(best, j));
      std::swap(inverse(p, j), inverse(best, j));
    }
    const Many pivot = a(p, p);
    for (std::int64_t j = 0; j < n; ++j) {
      a(p, j) /= pivot;
      inverse(p, j) /= pivot;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const Many factor = a(i, p);
      if (i == p || factor == 0) continue;
      for (std::int64_t j = 0; j < n; ++j) {
        a(i, j) -= factor * a(p, j);
        inverse(i, j) -= factor * inverse(p, j);
      }
    }
  }
  return inverse;
}

/// The orthogonal factor of the polar decomposition of X, by Newton's iteration with the scaling of
/// Higham, "Computing the polar decomposition", 1986.
inline ManyMatrix orthogonal_factor(ManyMatrix x) {
  const auto norms = [](const ManyMatrix& a) {
    Many of_rows = 0;
    Many of_columns = 0;
    for (std::int64_t i = 0; i < a.cols; ++i) {
      Many row = 0;
      Many column = 0;
      for (std::int64_t j = 0; j < a.cols; ++j) {
        row += abs(a(i, j));
        column += abs(a(j, i));
      }
      of_rows = std::max(of_rows, row);
      of_columns = std::max(of_columns, column);
    }
    return Many(of_rows * of_columns);
  };
  for (int step = 0; step < 40; ++step) {
    const ManyMatrix inverse = inverse_of(x);
    const Many scale = sqrt(sqrt(Many(norms(inverse) / norms(x))));
    Many change = 0;
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.cols; ++i) {
        const Many next = (scale * x(i, j) + inverse(j, i) / scale) / 2;
        change = std::max(change, Many(abs(Many(next - x(i, j)))));
        x(i, j) = next;
      }
    }
    if (change < Many("1e-30")) break;
  }
  return x;
}

/// max_j ‖v_j − Q·r_j‖ / ‖v_j‖ for the orthonormal Q that comes nearest. With V = Q₀·R₀ and Q =
/// Q₀·Z that is ‖R₀ − Z·R‖, and Z the orthogonal factor of the polar decomposition of R₀·Rᵀ, all
/// columns at unit length (Schönemann, "A generalized solution of the orthogonal Procrustes
/// problem", 1966); rows of dependent columns, which are zeros, are left out.
inline double backward_error(const Tall& v, const Tall& r) {
  const std::int64_t n = v.cols;
  auto unit = make_matrix<Many>(v.rows, n, [&](auto i, auto j) { return Many(v(i, j)); });
  auto mine = make_matrix<Many>(n, n, [&](auto i, auto j) { return Many(r(i, j)); });
  for (std::int64_t j = 0; j < n; ++j) {
    Many square = 0;
    for (std::int64_t i = 0; i < v.rows; ++i) square += unit(i, j) * unit(i, j);
    const Many length = square > 0 ? Many(sqrt(square)) : Many(1);
    for (std::int64_t i = 0; i < v.rows; ++i) unit(i, j) /= length;
    for (std::int64_t i = 0; i < n; ++i) mine(i, j) /= length;
  }
  const ManyMatrix exact = exact_triangle(unit);
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < n; ++i) {
    if (exact(i, i) > 0) kept.push_back(i);
    EXPECT_EQ(exact(i, i) > 0, r(i, i) > 0) << i;
  }
  const auto rank = static_cast<std::int64_t>(kept.size());
  const auto row = [&](const ManyMatrix& a, std::int64_t i, std::int64_t j) {
    return a(kept[static_cast<std::size_t>(i)], j);
  };
  ManyMatrix product(rank, rank);
  for (std::int64_t j = 0; j < rank; ++j) {
    for (std::int64_t i = 0; i < rank; ++i) {
      for (std::int64_t k = 0; k < n; ++k) product(i, j) += row(exact, i, k) * row(mine, j, k);
    }
  }
  const ManyMatrix z = orthogonal_factor(product);
  Many worst = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    Many square = 0;
    for (std::int64_t i = 0; i < rank; ++i) {
      Many rest = row(exact, i, j);
      for (std::int64_t k = 0; k < rank; ++k) rest -= z(i, k) * row(mine, k, j);
      square += rest * rest;
    }
    worst = std::max(worst, square);
  }
  return static_cast<double>(Many(sqrt(worst)));
}

}  // namespace strata::test
