// Small matrices: Cholesky and Householder factorizations, products, eigenvalues by Jacobi's
// rotations. Their condition numbers: condition.cpp.

#include "dense/square_matrix.hpp"

#include <algorithm>

#include "kernels/backend/run_fused.hpp"
#include "kernels/tall/dd_triangles.hpp"

namespace strata {
namespace {

double length_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

/// A vector that is in no eigenspace of a matrix that anybody would choose; then `count` times, as
/// long as it is not zero and finite, x ← next(x/‖x‖).
template <class Next>
void power_iterations(std::int64_t n, int count, Next&& next) {
  std::vector<double> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 + 1 / static_cast<double>(i + 2);
  for (int k = 0; k < count; ++k) {
    const double length = length_of(x);
    if (!(length > 0) || !std::isfinite(length)) return;
    for (double& value : x) value /= length;
    x = next(x);
  }
}

/// Rotations that take the off-diagonal elements of a symmetric matrix away; its eigenvectors are
/// the columns of `vectors`. Source: Golub and Van Loan, Matrix Computations, 8.5.
template <class W>
void jacobi(SquareMatrix<W>& a, SquareMatrix<W>& vectors) {
  constexpr int kSweeps = 40;
  const W zero(0.0F);
  const W one(1.0F);
  const W two(2.0F);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double rotated = 0;
    for (std::int64_t p = 0; p < a.n; ++p) {
      for (std::int64_t q = p + 1; q < a.n; ++q) {
        const double size = std::abs(leading(a(p, q)));
        const double beside = std::sqrt(std::abs(leading(a(p, p)) * leading(a(q, q))));
        const double unit = sizeof(W) > sizeof(double) ? 0x1p-106
                            : sizeof(W) > 4            ? 0x1p-53
                                                       : 0x1p-24;
        if (!(size > unit * unit) || size <= unit * beside) continue;
        rotated = std::max(rotated, size);
        const W theta = (a(q, q) - a(p, p)) / (two * a(p, q));
        const W magnitude = leading(theta) < 0 ? zero - theta : theta;
        W t = one / (magnitude + root_of(magnitude * magnitude + one));
        if (leading(theta) < 0) t = zero - t;
        const W c = one / root_of(t * t + one);
        const W s = t * c;
        const auto turn = [&](W& x, W& y) {
          const W first = c * x - s * y;
          y = s * x + c * y;
          x = first;
        };
        for (std::int64_t k = 0; k < a.n; ++k) turn(a(k, p), a(k, q));
        for (std::int64_t k = 0; k < a.n; ++k) turn(a(p, k), a(q, k));
        for (std::int64_t k = 0; k < a.n; ++k) turn(vectors(k, p), vectors(k, q));
      }
    }
    if (rotated == 0) return;
  }
}

/// Loops whose multiply-adds are instructions where the processor has them.
struct SubtractOuterProduct {
  template <class W>
  [[gnu::always_inline]] static void run(W* b, std::int64_t n, const W* r, std::int64_t first) {
    for (std::int64_t k = first; k < n; ++k) {
      W* column = b + k * n;
      const W of_column = r[k];
      for (std::int64_t i = first; i <= k; ++i)
        column[i] = minus_product(column[i], r[i], of_column);
    }
  }
};

}  // namespace

template <class W>
void subtract_outer_product(SquareMatrix<W>& b, const std::vector<W>& r, std::int64_t first) {
  run_fused<SubtractOuterProduct>(b.values.data(), b.n, r.data(), first);
}

template <>
SmallCholesky<DoubleDouble> small_cholesky(SquareMatrix<DoubleDouble> b, BadPivot rule,
                                           double tolerance, const std::vector<bool>& zero) {
  const std::int64_t n = b.n;
  DdTrailing rest(b.values.data(), n, n);
  SmallCholesky<DoubleDouble> result;
  result.r = SquareMatrix<DoubleDouble>(n);
  for (std::int64_t j = 0; j < n; ++j) {
    if (!zero.empty() && zero[static_cast<std::size_t>(j)]) continue;
    const DoubleDouble pivot = rest(j, j);
    if (rule == BadPivot::drop && !(pivot.hi > tolerance) && !std::isnan(pivot.hi)) {
      result.dependent.push_back(j);
      continue;
    }
    if (!(pivot.hi > 0)) {
      result.failed_column = j;
      result.bad_pivot = pivot.hi;
      for (std::int64_t k = j; k < n; ++k) result.r(k, k) = DoubleDouble(1.0);
      return result;
    }
    const DoubleDouble root = square_root(pivot);
    result.r(j, j) = root;
    rest.eliminate(j, root, result.r.values.data(), n);
  }
  return result;
}

SquareMatrix<DoubleDouble> upper_product(const SquareMatrix<DoubleDouble>& r,
                                         const SquareMatrix<DoubleDouble>& s) {
  SquareMatrix<DoubleDouble> product(r.n);
  dd_upper_product(product.values.data(), r.values.data(), s.values.data(), r.n);
  return product;
}

std::int64_t numerical_rank_of(const SquareMatrix<DoubleDouble>& r, double tolerance) {
  std::int64_t rank = 0;
  for (std::int64_t j = 0; j < r.n; ++j) {
    double largest = 0;
    for (std::int64_t i = 0; i <= j; ++i) largest = std::max(largest, std::abs(r(i, j).hi));
    if (!(largest > 0) || !std::isfinite(largest)) continue;
    double square = 0;
    for (std::int64_t i = 0; i <= j; ++i) square += (r(i, j).hi / largest) * (r(i, j).hi / largest);
    if (std::abs(r(j, j).hi) / largest > tolerance * std::sqrt(square)) ++rank;
  }
  return rank;
}

double distance_from_identity(const SquareMatrix<DoubleDouble>& b,
                              const std::vector<std::int64_t>& without) {
  const auto left_out = [&](std::int64_t j) {
    return std::binary_search(without.begin(), without.end(), j);
  };
  double sum = 0;
  for (std::int64_t j = 0; j < b.n; ++j) {
    for (std::int64_t i = 0; i < b.n && !left_out(j); ++i) {
      if (left_out(i)) continue;
      const double x = (i == j ? b(i, j) - DoubleDouble(1.0) : b(i, j)).hi;
      sum += x * x;
    }
  }
  return std::sqrt(sum);
}

double largest_eigenvalue(const SquareMatrix<double>& b) {
  constexpr int kIterations = 60;
  double value = 0;
  power_iterations(b.n, kIterations, [&](const std::vector<double>& x) {
    std::vector<double> y(x.size());
    for (std::int64_t j = 0; j < b.n; ++j) {
      for (std::int64_t i = 0; i < b.n; ++i)
        y[static_cast<std::size_t>(i)] += b(i, j) * x[static_cast<std::size_t>(j)];
    }
    value = std::max(value, length_of(y));
    return y;
  });
  return value;
}

template <class W>
SquareMatrix<W> upper_factor(SquareValues<W> a, std::int64_t rows, std::int64_t n) {
  const W zero(0.0F);
  const auto at = [&](std::int64_t i, std::int64_t j) -> W& {
    return a[static_cast<std::size_t>(i + j * rows)];
  };
  std::vector<W> v(static_cast<std::size_t>(rows));
  for (std::int64_t j = 0; j < n; ++j) {
    W square = zero;
    for (std::int64_t i = j; i < rows; ++i) square = square + at(i, j) * at(i, j);
    if (!(leading(square) > 0)) continue;
    W length = root_of(square);
    if (leading(at(j, j)) > 0) length = zero - length;
    // v = a_j − length·e_j; H = I − 2·v·vᵀ/(vᵀv), vᵀv = −2·length·v_j.
    for (std::int64_t i = j; i < rows; ++i) v[static_cast<std::size_t>(i)] = at(i, j);
    v[static_cast<std::size_t>(j)] = v[static_cast<std::size_t>(j)] - length;
    const W half = (zero - length) * v[static_cast<std::size_t>(j)];
    for (std::int64_t k = j; k < n; ++k) {
      W sum = zero;
      for (std::int64_t i = j; i < rows; ++i) sum = sum + v[static_cast<std::size_t>(i)] * at(i, k);
      const W factor = sum / half;
      for (std::int64_t i = j; i < rows; ++i)
        at(i, k) = minus_product(at(i, k), v[static_cast<std::size_t>(i)], factor);
    }
  }
  SquareMatrix<W> r(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const bool turned = leading(at(i, i)) < 0;
    for (std::int64_t k = i; k < n; ++k) r(i, k) = turned ? zero - at(i, k) : at(i, k);
  }
  return r;
}

template <class W>
SquareMatrix<W> factor_by_eigenvalues(const SquareMatrix<W>& b, double floor) {
  const std::int64_t n = b.n;
  std::vector<W> scale;
  for (std::int64_t j = 0; j < n; ++j)
    scale.push_back(leading(b(j, j)) > 0 ? root_of(b(j, j)) : W(1.0F));
  const auto s = [&](std::int64_t j) { return scale[static_cast<std::size_t>(j)]; };
  SquareMatrix<W> unit(n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) unit(i, j) = b(i, j) / s(i) / s(j);
  }
  SquareMatrix<W> vectors = SquareMatrix<W>::identity(n);
  jacobi(unit, vectors);
  double largest = 0;
  for (std::int64_t j = 0; j < n; ++j) largest = std::max(largest, leading(unit(j, j)));
  const double least = floor * largest;
  SquareMatrix<W> weighted(n);  // Σ^(1/2)·Uᵀ·S
  for (std::int64_t i = 0; i < n; ++i) {
    const W value = leading(unit(i, i)) > least ? unit(i, i) : narrowed<W>(DoubleDouble(least));
    const W root = root_of(value);
    for (std::int64_t j = 0; j < n; ++j) weighted(i, j) = root * vectors(j, i) * s(j);
  }
  return upper_factor(std::move(weighted.values), n, n);
}

template void subtract_outer_product(SquareMatrix<double>&, const std::vector<double>&,
                                     std::int64_t);
template void subtract_outer_product(SquareMatrix<float>&, const std::vector<float>&, std::int64_t);
template SquareMatrix<double> factor_by_eigenvalues(const SquareMatrix<double>&, double);
template SquareMatrix<float> factor_by_eigenvalues(const SquareMatrix<float>&, double);
template SquareMatrix<DoubleDouble> factor_by_eigenvalues(const SquareMatrix<DoubleDouble>&,
                                                          double);

template SquareMatrix<double> upper_factor(SquareValues<double>, std::int64_t, std::int64_t);

}  // namespace strata
