// Condition numbers of triangular matrices, by explicit inversion.
//
// Method: for n of a few hundred an inverse of R costs less than a pass over V, and its Frobenius
// norm bounds the 2-norm; a power iteration from a fixed vector estimates it. The inverse of a
// triangular matrix is accurate element by element whatever its condition (Higham, Accuracy and
// Stability of Numerical Algorithms, 14.2), so doubles suffice for conditions of 1e20. Devices wait
// while this is done, so loops are of whole lanes: columns are padded, with zeros below the
// diagonal.
//
// The bound of the condition is that of two 2-norms: t·I − AᵀA has a Cholesky factorization in
// doubles only if ‖A‖² is below t·(1 + O(n²·u)) (Higham, 10.1), so t grows from the estimate until
// there is one. Where doubles do not tell the inverse to a percent it is formed in double-double.

#include <algorithm>
#include <limits>

#include "base/constants.hpp"
#include "dense/square_matrix.hpp"
#include "kernels/backend/run_fused.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace {

struct Upper {
  std::int64_t n;
  std::int64_t stride;  ///< of columns
  SquareValues<double> values;

  explicit Upper(std::int64_t order)
      : n(order),
        stride((order + kLanes - 1) / kLanes * kLanes),
        values(static_cast<std::size_t>(n * stride)) {}
  [[nodiscard]] double* column(std::int64_t j) { return values.data() + j * stride; }
};

[[gnu::always_inline]] inline double sum_of(const Lanes& x) {
  return (x.values[0] + x.values[1]) + (x.values[2] + x.values[3]);
}

struct SquareSum {
  [[gnu::always_inline]] static void run(const double* x, std::int64_t count, double* sum) {
    Lanes even;
    Lanes odd;
    std::int64_t i = 0;
    for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
      const Lanes a = Lanes::load(x + i);
      const Lanes b = Lanes::load(x + i + kLanes);
      even = fused(a, a, even);
      odd = fused(b, b, odd);
    }
    if (i < count) even = fused(Lanes::load(x + i), Lanes::load(x + i), even);
    *sum = sum_of(rounded_sum(even, odd));
  }
};

/// ‖x‖₂; count: whole lanes.
double length_of(const double* x, std::int64_t count) {
  double sum = 0;
  run_fused<SquareSum>(x, count, &sum);
  return std::sqrt(sum);
}
double frobenius(const Upper& a) { return length_of(a.values.data(), std::ssize(a.values)); }

std::vector<std::int64_t> kept_columns(std::int64_t n, const std::vector<std::int64_t>& without) {
  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < n; ++j) {
    if (!std::binary_search(without.begin(), without.end(), j)) kept.push_back(j);
  }
  return kept;
}

/// The power of two that takes the largest magnitude of x into 0.5 … 1, in two factors: 2^1074 is
/// no double.
struct PowerOfTwo {
  double half = 1;
  double rest = 1;

  explicit PowerOfTwo(double largest) {
    int exponent = 0;
    std::frexp(largest, &exponent);
    half = std::ldexp(1.0, -exponent / 2);
    rest = std::ldexp(1.0, -exponent - (-exponent / 2));
  }
  [[nodiscard]] double operator()(double x) const { return x * half * rest; }
};

/// Columns that are kept, scaled to length 1: by a power of two first, so that no square over- or
/// underflows.
Upper unit_columns(const SquareMatrix<DoubleDouble>& r, const std::vector<std::int64_t>& without) {
  const std::vector<std::int64_t> kept = kept_columns(r.n, without);
  Upper unit(std::ssize(kept));
  for (std::int64_t j = 0; j < unit.n; ++j) {
    const DoubleDouble* from = r.values.data() + kept[static_cast<std::size_t>(j)] * r.n;
    double* to = unit.column(j);
    double largest = 0;
    for (std::int64_t i = 0; i <= j; ++i) {
      to[i] = from[kept[static_cast<std::size_t>(i)]].hi;
      largest = std::max(largest, std::abs(to[i]));
    }
    const PowerOfTwo scale(largest);
    for (std::int64_t i = 0; i <= j; ++i) to[i] = scale(to[i]);
    const double by = 1 / length_of(to, unit.stride);
    for (std::int64_t i = 0; i <= j; ++i) to[i] *= by;
  }
  return unit;
}

/// Sixteen columns of the inverse of an upper triangular matrix from `first` on, row by row of `x`,
/// the last row first. rows: the matrix row by row.
struct InvertColumns {
  static constexpr std::int64_t kVectors = 4;
  static constexpr std::int64_t kWidth = kVectors * kLanes;
  [[gnu::always_inline]] static void run(const double* rows, std::int64_t n, std::int64_t stride,
                                         std::int64_t first, double* x) {
    const std::int64_t last = std::min(first + kWidth, n) - 1;
    for (std::int64_t i = last; i >= 0; --i) {
      const double* row = rows + i * stride;
      Lanes sum[kVectors];
      for (std::int64_t k = i + 1; k <= last; ++k) {
        const Lanes by(row[k]);
        for (std::int64_t c = 0; c < kVectors; ++c)
          sum[c] = fused(by, Lanes::load(x + k * kWidth + c * kLanes), sum[c]);
      }
      const double reciprocal = 1 / row[i];
      double* of_row = x + i * kWidth;
      for (std::int64_t c = 0; c < kVectors; ++c)
        rounded_product(sum[c], Lanes(-reciprocal)).store(of_row + c * kLanes);
      if (i >= first) of_row[i - first] = reciprocal;  // the sum there is of zeros
    }
  }
};

Upper inverse_of(Upper& r) {
  Upper inverse(r.n);
  Upper rows(r.n);
  for (std::int64_t j = 0; j < r.n; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) rows.column(i)[j] = r.column(j)[i];
  }
  constexpr std::int64_t kWidth = InvertColumns::kWidth;
  std::vector<double> x(static_cast<std::size_t>(r.n * kWidth));
  for (std::int64_t first = 0; first < r.n; first += kWidth) {
    run_fused<InvertColumns>(rows.values.data(), r.n, r.stride, first, x.data());
    for (std::int64_t i = 0; i < std::min(first + kWidth, r.n); ++i) {
      for (std::int64_t j = std::max(i, first); j < std::min(first + kWidth, r.n); ++j)
        inverse.column(j)[i] = x[static_cast<std::size_t>(i * kWidth + j - first)];
    }
  }
  return inverse;
}

/// y ← A·x, then x ← Aᵀ·y.
struct MultiplyBoth {
  [[gnu::always_inline]] static void run(const double* a, std::int64_t n, std::int64_t stride,
                                         double* __restrict x, double* __restrict y) {
    for (std::int64_t i = 0; i < stride; ++i) y[i] = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const Lanes by(x[j]);
      for (std::int64_t i = 0; i <= j; i += kLanes)
        fused(Lanes::load(a + j * stride + i), by, Lanes::load(y + i)).store(y + i);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      Lanes sum;
      for (std::int64_t i = 0; i <= j; i += kLanes)
        sum = fused(Lanes::load(a + j * stride + i), Lanes::load(y + i), sum);
      x[j] = sum_of(sum);
    }
  }
};

/// The 2-norm, from below: power iterations with AᵀA, from a vector that is in no eigenspace of a
/// matrix that anybody would choose.
double norm_estimate(const Upper& a, int iterations) {
  std::vector<double> x(static_cast<std::size_t>(a.stride));
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.n); ++i)
    x[i] = 1 + 1 / static_cast<double>(i + 2);
  double norm = 0;
  for (int k = 0; k < iterations; ++k) {
    const double length = length_of(x.data(), a.stride);
    if (!(length > 0) || !std::isfinite(length)) break;
    for (double& value : x) value /= length;
    run_fused<MultiplyBoth>(a.values.data(), a.n, a.stride, x.data(), y.data());
    norm = std::max(norm, length_of(y.data(), a.stride));
  }
  return norm;
}

/// AᵀA, its upper triangle.
struct MultiplyTransposed {
  [[gnu::always_inline]] static void run(const double* a, std::int64_t n, std::int64_t stride,
                                         double* g) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        Lanes sum;
        for (std::int64_t k = 0; k <= i; k += kLanes)
          sum = fused(Lanes::load(a + i * stride + k), Lanes::load(a + j * stride + k), sum);
        g[i + j * n] = sum_of(sum);
      }
    }
  }
};

/// The 2-norm, from above, a percent or two too large; infinite where A is not finite.
double norm_bound(Upper a) {
  constexpr int kIterations = 60;
  double largest = 0;
  for (const double x : a.values)
    largest = std::max(largest, std::isnan(x) ? kInfinity : std::abs(x));
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  const PowerOfTwo scale(largest);
  for (double& x : a.values) x = scale(x);
  const auto unscaled = [&](double norm) { return norm / scale.half / scale.rest; };
  const double frobenius_norm = frobenius(a) * (1 + 0x1p-40);
  const double estimate = norm_estimate(a, kIterations);
  SquareMatrix<double> g(a.n);
  run_fused<MultiplyTransposed>(a.values.data(), a.n, a.stride, g.values.data());
  const auto columns = static_cast<double>(a.n);
  for (double above = 0x1p-7; above < 1; above *= 2) {
    const double t = estimate * estimate * (1 + above);
    if (t >= frobenius_norm * frobenius_norm) break;
    SquareMatrix<double> rest(a.n);
    for (std::int64_t j = 0; j < a.n; ++j)
      for (std::int64_t i = 0; i <= j; ++i) rest(i, j) = (i == j ? t : 0) - g(i, j);
    if (small_cholesky(std::move(rest), BadPivot::stop).failed_column < 0)
      return unscaled(std::sqrt(t * (1 + 4 * columns * columns * 0x1p-53)));
  }
  return unscaled(frobenius_norm);
}

/// The same in double-double, eight columns: the products of an element are subtracted from the
/// last row up.
struct InvertColumnsWide {
  static constexpr std::int64_t kVectors = 2;
  static constexpr std::int64_t kWidth = kVectors * kLanes;
  [[gnu::always_inline]] static void run(const DoubleDouble* rows, std::int64_t n,
                                         std::int64_t first, double* hi, double* lo) {
    using Wide = DoubleDoubleOf<Lanes>;
    const std::int64_t last = std::min(first + kWidth, n) - 1;
    for (std::int64_t i = last; i >= 0; --i) {
      const DoubleDouble* row = rows + i * n;
      Wide rest[kVectors];
      if (i >= first) {
        double one[kWidth] = {};
        one[i - first] = 1;
        for (std::int64_t c = 0; c < kVectors; ++c) rest[c].hi = Lanes::load(one + c * kLanes);
      }
      for (std::int64_t k = last; k > i; --k) {
        const Wide by{Lanes(row[k].hi), Lanes(row[k].lo)};
        for (std::int64_t c = 0; c < kVectors; ++c) {
          const std::int64_t at = k * kWidth + c * kLanes;
          rest[c] = subtract_product(rest[c], by, Wide{Lanes::load(hi + at), Lanes::load(lo + at)});
        }
      }
      const Wide pivot{Lanes(row[i].hi), Lanes(row[i].lo)};
      for (std::int64_t c = 0; c < kVectors; ++c) {
        const Wide x = rest[c] / pivot;
        x.hi.store(hi + i * kWidth + c * kLanes);
        x.lo.store(lo + i * kWidth + c * kLanes);
      }
    }
  }
};

/// The inverse of R with unit columns, its elements in double-double before they are rounded.
/// Columns have lengths near 1 by powers of two first, which their elements of the inverse have.
Upper wide_inverse_of(const SquareMatrix<DoubleDouble>& r,
                      const std::vector<std::int64_t>& without) {
  const std::vector<std::int64_t> kept = kept_columns(r.n, without);
  const std::int64_t n = std::ssize(kept);
  SquareMatrix<DoubleDouble> near(n);
  std::vector<double> length;
  for (std::int64_t j = 0; j < n; ++j) {
    const DoubleDouble* from = r.values.data() + kept[static_cast<std::size_t>(j)] * r.n;
    double largest = 0;
    for (std::int64_t i = 0; i <= j; ++i)
      largest = std::max(largest, std::abs(from[kept[static_cast<std::size_t>(i)]].hi));
    const PowerOfTwo scale(largest);
    double square = 0;
    for (std::int64_t i = 0; i <= j; ++i) {
      const DoubleDouble& x = from[kept[static_cast<std::size_t>(i)]];
      near(i, j) = {scale(x.hi), scale(x.lo)};
      square += near(i, j).hi * near(i, j).hi;
    }
    length.push_back(std::sqrt(square));
  }
  std::vector<DoubleDouble> rows(near.values.size());
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i <= j; ++i) rows[static_cast<std::size_t>(i * n + j)] = near(i, j);
  Upper inverse(n);
  constexpr std::int64_t kWidth = InvertColumnsWide::kWidth;
  std::vector<double> x(static_cast<std::size_t>(2 * n * kWidth));
  for (std::int64_t first = 0; first < n; first += kWidth) {
    run_fused<InvertColumnsWide>(rows.data(), n, first, x.data(), x.data() + n * kWidth);
    const std::int64_t end = std::min(first + kWidth, n);
    for (std::int64_t j = first; j < end; ++j) {
      for (std::int64_t i = 0; i <= j; ++i)
        inverse.column(j)[i] = x[static_cast<std::size_t>(i * kWidth + j - first)] *
                               length[static_cast<std::size_t>(i)];
    }
  }
  return inverse;
}

}  // namespace

Condition condition_of(const SquareMatrix<DoubleDouble>& r,
                       const std::vector<std::int64_t>& without) {
  Upper unit = unit_columns(r, without);
  if (unit.n == 0) return {};
  const Upper inverse = inverse_of(unit);
  const double bound = frobenius(unit) * frobenius(inverse);
  if (!std::isfinite(bound)) return {kInfinity, kInfinity};
  constexpr int kIterations = 10;
  return {std::max(norm_estimate(unit, kIterations) * norm_estimate(inverse, kIterations), 1.0),
          bound};
}

double condition_bound(const SquareMatrix<DoubleDouble>& r,
                       const std::vector<std::int64_t>& without) {
  constexpr double kTold = 0x1p-7;  // of the inverse, beside its norm
  Upper unit = unit_columns(r, without);
  if (unit.n == 0) return 1;
  Upper inverse = inverse_of(unit);
  // A column x of the computed inverse has R·x = e + f, |f| <= (n + 4)·u·|R|·|x|, with the rounding
  // of R's columns to doubles of length 1.
  const auto columns = static_cast<double>(unit.n);
  const auto error = [&](double u) {
    return (columns + 4) * u * std::sqrt(columns) * frobenius(inverse);
  };
  double left = error(0x1p-53);
  if (!(left <= kTold)) {
    inverse = wide_inverse_of(r, without);
    left = error(0x1p-102);
  }
  if (!(left <= 0.5)) return kInfinity;
  return std::max(norm_bound(std::move(unit)) * norm_bound(std::move(inverse)) / (1 - left), 1.0);
}

}  // namespace strata
