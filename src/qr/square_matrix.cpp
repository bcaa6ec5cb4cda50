// Small matrices: condition numbers by explicit inversion, eigenvalues by Jacobi's rotations.
//
// Method: for n of a few hundred an inverse of R costs less than a pass over V, and its Frobenius
// norm bounds the 2-norm; a power iteration from a fixed vector estimates it. The inverse of a
// triangular matrix is accurate element by element whatever its condition (Higham, Accuracy and
// Stability of Numerical Algorithms, 14.2), so doubles suffice for conditions of 1e20.

#include "qr/square_matrix.hpp"

#include <algorithm>

#include "kernels/run_fused.hpp"

namespace strata {
namespace {

using Reals = SquareMatrix<double>;

double frobenius(const Reals& a) {
  double sum = 0;
  for (const double x : a.values) sum += x * x;
  return std::sqrt(sum);
}

/// Columns that are kept, scaled to length 1.
Reals unit_columns(const SquareMatrix<DoubleDouble>& r, const std::vector<std::int64_t>& without) {
  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < r.n; ++j) {
    if (!std::binary_search(without.begin(), without.end(), j)) kept.push_back(j);
  }
  Reals unit(std::ssize(kept));
  for (std::int64_t j = 0; j < unit.n; ++j) {
    const std::int64_t column = kept[static_cast<std::size_t>(j)];
    double largest = 0;
    for (std::int64_t i = 0; i <= column; ++i)
      largest = std::max(largest, std::abs(r(i, column).hi));
    double length = 0;
    for (std::int64_t i = 0; i <= j; ++i) {
      const double x = r(kept[static_cast<std::size_t>(i)], column).hi / largest;
      unit(i, j) = x;
      length += x * x;
    }
    length = std::sqrt(length);
    for (std::int64_t i = 0; i <= j; ++i) unit(i, j) /= length;
  }
  return unit;
}

/// Of an upper triangular matrix.
Reals transposed(const Reals& a) {
  Reals rows(a.n);
  for (std::int64_t j = 0; j < a.n; ++j)
    for (std::int64_t i = 0; i <= j; ++i) rows(j, i) = a(i, j);
  return rows;
}

/// Eight columns of the inverse of an upper triangular matrix from `first` on, row by row of `x`,
/// the last row first. Zeros below the diagonal change no sum.
struct InvertColumns {
  static constexpr std::int64_t kWidth = 8;
  [[gnu::always_inline]] static void run(const double* rows, std::int64_t n, std::int64_t first,
                                         double* x) {
    const std::int64_t last = std::min(first + kWidth, n) - 1;
    for (std::int64_t i = last; i >= 0; --i) {
      const double* row = rows + i * n;
      double sum[kWidth] = {};
      for (std::int64_t k = i + 1; k <= last; ++k)
        for (std::int64_t c = 0; c < kWidth; ++c) sum[c] += row[k] * x[k * kWidth + c];
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const double below = i > first + c ? 0.0 : -sum[c] / row[i];
        x[i * kWidth + c] = i == first + c ? 1 / row[i] : below;
      }
    }
  }
};

Reals inverse_of_upper(const Reals& r) {
  Reals inverse(r.n);
  const Reals rows = transposed(r);
  constexpr std::int64_t kWidth = InvertColumns::kWidth;
  std::vector<double> x(static_cast<std::size_t>(r.n * kWidth));
  for (std::int64_t first = 0; first < r.n; first += kWidth) {
    run_fused<InvertColumns>(rows.values.data(), r.n, first, x.data());
    for (std::int64_t j = first; j < std::min(first + kWidth, r.n); ++j)
      for (std::int64_t i = 0; i <= j; ++i)
        inverse(i, j) = x[static_cast<std::size_t>(i * kWidth + j - first)];
  }
  return inverse;
}

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

/// y ← the sum of a's columns times x, of an upper triangular matrix, or of the transpose of one:
/// `rows` has it by columns, of which what is above the diagonal is not looked at.
template <bool kTransposed>
struct MultiplyUpper {
  [[gnu::always_inline]] static void run(const double* a, std::int64_t n, const double* x,
                                         double* __restrict y) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double* column = a + j * n;
      const double factor = x[j];
      for (std::int64_t i = kTransposed ? j : 0; i < (kTransposed ? n : j + 1); ++i)
        y[i] += column[i] * factor;
    }
  }
};

/// The 2-norm of an upper triangular matrix, from below: power iterations with AᵀA.
double norm_estimate(const Reals& a) {
  constexpr int kIterations = 30;
  const Reals rows = transposed(a);  // so that both products go along columns
  double norm = 0;
  std::vector<double> y(static_cast<std::size_t>(a.n));
  power_iterations(a.n, kIterations, [&](const std::vector<double>& x) {
    run_fused<MultiplyUpper<false>>(a.values.data(), a.n, x.data(), y.data());
    norm = std::max(norm, length_of(y));
    std::vector<double> z(x.size());
    run_fused<MultiplyUpper<true>>(rows.values.data(), a.n, y.data(), z.data());
    return z;
  });
  return norm;
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

/// Σ_k r_ik·s_kj, k ascending, for a column of rows at a time.
struct AddUpperProduct {
  [[gnu::always_inline]] static void run(DoubleDouble* product, std::int64_t n,
                                         const DoubleDouble* r, const DoubleDouble* s) {
    for (std::int64_t j = 0; j < n; ++j) {
      DoubleDouble* column = product + j * n;
      for (std::int64_t k = 0; k <= j; ++k) {
        const DoubleDouble by = s[k + j * n];
        for (std::int64_t i = 0; i <= k; ++i) column[i] = column[i] + r[i + k * n] * by;
      }
    }
  }
};

}  // namespace

template <class W>
void subtract_outer_product(SquareMatrix<W>& b, const std::vector<W>& r, std::int64_t first) {
  run_fused<SubtractOuterProduct>(b.values.data(), b.n, r.data(), first);
}

SquareMatrix<DoubleDouble> upper_product(const SquareMatrix<DoubleDouble>& r,
                                         const SquareMatrix<DoubleDouble>& s) {
  SquareMatrix<DoubleDouble> product(r.n);
  run_fused<AddUpperProduct>(product.values.data(), r.n, r.values.data(), s.values.data());
  return product;
}

Condition condition_of(const SquareMatrix<DoubleDouble>& r,
                       const std::vector<std::int64_t>& without) {
  const Reals unit = unit_columns(r, without);
  if (unit.n == 0) return {};
  const Reals inverse = inverse_of_upper(unit);
  return {.estimate = std::max(norm_estimate(unit) * norm_estimate(inverse), 1.0),
          .bound = frobenius(unit) * frobenius(inverse)};
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
SquareMatrix<W> upper_factor(std::vector<W> a, std::int64_t rows, std::int64_t n) {
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
template void subtract_outer_product(SquareMatrix<DoubleDouble>&, const std::vector<DoubleDouble>&,
                                     std::int64_t);
template SquareMatrix<double> factor_by_eigenvalues(const SquareMatrix<double>&, double);
template SquareMatrix<float> factor_by_eigenvalues(const SquareMatrix<float>&, double);
template SquareMatrix<DoubleDouble> factor_by_eigenvalues(const SquareMatrix<DoubleDouble>&,
                                                          double);

template SquareMatrix<double> upper_factor(std::vector<double>, std::int64_t, std::int64_t);

}  // namespace strata
