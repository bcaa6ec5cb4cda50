#pragma once
// The n × n matrices beside a tall one, on the host: Gram matrices and triangular factors.
//
// Contract: column-major, n at most a few hundred, elements float, double or DoubleDouble. Every
// function is plain sequential arithmetic, so equal inputs give equal bits. Files that include this
// are compiled with -ffp-contract=off.

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/kept_memory.hpp"
#include "scalar/double_double.hpp"

namespace strata {

/// A matrix of a hundred columns in double-double is 160 KiB, and a pass makes and drops several.
template <class W>
using SquareValues = std::vector<W, KeptAllocator<W>>;

template <class W>
struct SquareMatrix {
  std::int64_t n = 0;
  SquareValues<W> values;

  SquareMatrix() = default;
  explicit SquareMatrix(std::int64_t order)
      : n(order), values(static_cast<std::size_t>(order * order)) {}
  [[nodiscard]] static SquareMatrix identity(std::int64_t order) {
    SquareMatrix one(order);
    const std::size_t step = static_cast<std::size_t>(order) + 1;
    for (std::size_t k = 0; k < one.values.size(); k += step) one.values[k] = W(1.0F);
    return one;
  }
  W& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i + j * n)];
  }
  const W& operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i + j * n)];
  }
};

[[nodiscard]] inline double leading(double x) { return x; }
[[nodiscard]] inline double leading(float x) { return static_cast<double>(x); }
[[nodiscard]] inline double leading(const DoubleDouble& x) { return x.hi; }
[[nodiscard]] inline DoubleDouble widened(double x) { return DoubleDouble(x); }
[[nodiscard]] inline DoubleDouble widened(float x) { return DoubleDouble(static_cast<double>(x)); }
[[nodiscard]] inline DoubleDouble widened(const DoubleDouble& x) { return x; }
/// Rounded to W.
template <class W>
[[nodiscard]] W narrowed(const DoubleDouble& x) {
  return static_cast<W>(x.hi);
}
template <>
[[nodiscard]] inline DoubleDouble narrowed(const DoubleDouble& x) {
  return x;
}
[[nodiscard]] inline double root_of(double x) { return std::sqrt(x); }
[[nodiscard]] inline float root_of(float x) { return std::sqrt(x); }
[[nodiscard]] inline DoubleDouble root_of(const DoubleDouble& x) { return square_root(x); }
/// a − b·c.
[[nodiscard]] inline double minus_product(double a, double b, double c) { return fused(-b, c, a); }
[[nodiscard]] inline float minus_product(float a, float b, float c) { return fused(-b, c, a); }
[[nodiscard]] inline DoubleDouble minus_product(const DoubleDouble& a, const DoubleDouble& b,
                                                const DoubleDouble& c) {
  return subtract_product(a, b, c);
}
[[nodiscard]] inline double times_power(double x, double power) { return x * power; }
[[nodiscard]] inline float times_power(float x, double power) {
  return static_cast<float>(static_cast<double>(x) * power);
}
[[nodiscard]] inline DoubleDouble times_power(const DoubleDouble& x, double power) {
  return scaled(x, power);
}

/// What to do about a pivot that is not positive.
enum class BadPivot : std::uint8_t {
  /// The rows that are done stay, the trailing block of R is the identity (Yamazaki, Tomov and
  /// Dongarra 2015).
  stop,
  /// A column whose pivot is at most `tolerance` depends on those before it: its row of R is zero,
  /// and the elements above its diagonal are its coefficients.
  drop,
};

template <class W>
struct SmallCholesky {
  SquareMatrix<W> r;                    ///< upper triangular, zeros below
  std::int64_t failed_column = -1;      ///< the first whose pivot is not positive; −1: none
  double bad_pivot = 0;                 ///< its value
  std::vector<std::int64_t> dependent;  ///< with BadPivot::drop
};

/// B ← B − rᵀ·r in the upper triangle, rows and columns from `first` on; r has n elements.
template <class W>
void subtract_outer_product(SquareMatrix<W>& b, const std::vector<W>& r, std::int64_t first);

/// RᵀR = B, the upper triangle of B read, row by row of R. A column in `zero` is taken to be zeros:
/// its row and column of R are zero, and no pivot failed.
template <class W>
[[nodiscard]] SmallCholesky<W> small_cholesky(SquareMatrix<W> b, BadPivot rule,
                                              double tolerance = 0,
                                              const std::vector<bool>& zero = {}) {
  const std::int64_t n = b.n;
  std::vector<W> row(static_cast<std::size_t>(n));
  SmallCholesky<W> result;
  result.r = SquareMatrix<W>(n);
  for (std::int64_t j = 0; j < n; ++j) {
    if (!zero.empty() && zero[static_cast<std::size_t>(j)]) continue;
    const double pivot = leading(b(j, j));
    if (rule == BadPivot::drop && !(pivot > tolerance) && !std::isnan(pivot)) {
      result.dependent.push_back(j);
      continue;
    }
    if (!(pivot > 0)) {
      result.failed_column = j;
      result.bad_pivot = pivot;
      for (std::int64_t k = j; k < n; ++k) result.r(k, k) = W(1.0F);
      return result;
    }
    const W root = root_of(b(j, j));
    result.r(j, j) = root;
    for (std::int64_t k = j + 1; k < n; ++k)
      result.r(j, k) = row[static_cast<std::size_t>(k)] = b(j, k) / root;
    subtract_outer_product(b, row, j + 1);
  }
  return result;
}

/// The same with four elements side by side (kernels/tall/dd_triangles.hpp), with the same bits.
template <>
[[nodiscard]] SmallCholesky<DoubleDouble> small_cholesky(SquareMatrix<DoubleDouble> b,
                                                         BadPivot rule, double tolerance,
                                                         const std::vector<bool>& zero);

/// R·S, both upper triangular.
[[nodiscard]] SquareMatrix<DoubleDouble> upper_product(const SquareMatrix<DoubleDouble>& r,
                                                       const SquareMatrix<DoubleDouble>& s);

/// How well R determines its columns.
struct Condition {
  double estimate = 1;  ///< in the 2-norm, by power iterations from below: to a factor of about two
  double bound = 1;     ///< in the Frobenius norm, at most n times the 2-norm's
};

/// Condition of R with its columns scaled to length 1, without those that `without` names.
[[nodiscard]] Condition condition_of(const SquareMatrix<DoubleDouble>& r,
                                     const std::vector<std::int64_t>& without);

/// The same from above: never below the condition of R, and a few percent above it at most;
/// infinite where R in double-double does not tell.
[[nodiscard]] double condition_bound(const SquareMatrix<DoubleDouble>& r,
                                     const std::vector<std::int64_t>& without);

/// Columns of R whose diagonal is more than `tolerance` beside their length.
[[nodiscard]] std::int64_t numerical_rank_of(const SquareMatrix<DoubleDouble>& r, double tolerance);

/// ‖B − I‖_F, without the rows and columns that `without` names.
[[nodiscard]] double distance_from_identity(const SquareMatrix<DoubleDouble>& b,
                                            const std::vector<std::int64_t>& without);

/// The largest eigenvalue of a symmetric matrix that is positive semidefinite, from below, to a
/// percent or so.
[[nodiscard]] double largest_eigenvalue(const SquareMatrix<double>& b);

/// Upper triangular R with RᵀR = S·B'·S, B' the matrix S⁻¹·B·S⁻¹ of unit diagonal with eigenvalues
/// below `floor` of the largest raised to that (Stathopoulos and Wu, "A block orthogonalization
/// procedure with constant synchronization requirements", 2002). By Jacobi's rotations.
template <class W>
[[nodiscard]] SquareMatrix<W> factor_by_eigenvalues(const SquareMatrix<W>& b, double floor);

/// R of the factorization of a rows × n matrix (packed, rows >= n) by Householder's reflections,
/// the diagonal not negative.
template <class W>
[[nodiscard]] SquareMatrix<W> upper_factor(SquareValues<W> a, std::int64_t rows, std::int64_t n);

}  // namespace strata
