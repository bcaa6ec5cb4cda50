#pragma once
// What certificates of dense solutions share, of positive definite and of general systems: what is
// measured of a solution, bounds of its error, and columns that are solved nearer.
//
// Contract: W is double or std::complex<double>, what solutions and residuals are in; `precision`
// is that of X as the caller has it. With R and C scales of rows and columns, S = R·A·C; of a
// positive definite matrix both are D = diag(A)^(−1/2). The bounds are those at the head of
// src/cholesky/solve.cpp.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/index.hpp"
#include "dense/dense_block.hpp"
#include "kernels/dense/host_residual.hpp"
#include "scalar/complex.hpp"
#include "scalar/safe_range.hpp"
#include "strata/certificate.hpp"

namespace strata {

/// What elements lost that became subnormal numbers by a power of two; of all others nothing.
struct Loss {
  double relative = 0;     ///< the most that an element did, beside itself
  double scaled_norm = 0;  ///< ‖R·lost·C‖∞
};

/// How many times the rounding of a real multiplication and addition that of complex ones is, at
/// most: sums of 2·n products in each part, two parts, so 2·√2.
template <class T>
inline constexpr double kRoundings = is_complex_v<T> ? 3 : 1;

inline constexpr double kErrorUnknown = std::numeric_limits<double>::infinity();

/// The distance from 1 to the next number of a precision, fp64 or fp32, or that of its parts.
[[nodiscard]] constexpr double epsilon_of(Element precision) noexcept {
  return element_of_parts(precision) == Element::fp32 ? 0x1p-23 : 0x1p-52;
}

template <class T, class A, class B>
void check_solve_shapes(MatrixView<const A> a, MatrixView<const B> b, MatrixView<T> x) {
  require(b.rows == a.rows, ErrorKind::misuse, "solve",
          "a right-hand side of {} rows does not fit a {} by {} matrix", b.rows, a.rows, a.cols);
  require(x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse, "solve",
          "a solution of {} by {} does not fit a right-hand side of {} by {}", x.rows, x.cols,
          b.rows, b.cols);
}

/// exponent_out_of_range() of n numbers.
template <class W>
[[nodiscard]] int exponent_of_column(std::int64_t n, const W* x, Element precision) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, largest_part(x[i]));
  return exponent_out_of_range(largest, precision);
}

/// What `solve`, B ← M⁻¹·B in T, makes of columns that are brought into the middle of its range.
template <class T>
[[nodiscard]] DenseBlockOf<WideOf<T>> solved_in_range(const BlockSolverOf<T>& solve,
                                                      MatrixView<const WideOf<T>> b) {
  DenseBlockOf<T> narrow(b.rows, b.cols);
  std::vector<int> exponent;
  for (std::int64_t j = 0; j < b.cols; ++j) {
    exponent.push_back(exponent_of_column(b.rows, b.column(j), element_of<T>));
    for (std::int64_t i = 0; i < b.rows; ++i)
      narrow.column(j)[i] = static_cast<T>(times_power(b(i, j), -exponent.back()));
  }
  solve(narrow.view());
  DenseBlockOf<WideOf<T>> x(b.rows, b.cols);
  for (std::int64_t j = 0; j < b.cols; ++j)
    for (std::int64_t i = 0; i < b.rows; ++i)
      x.column(j)[i] = times_power(static_cast<WideOf<T>>(narrow.column(j)[i]), exponent[at(j)]);
  return x;
}

/// x as the caller will have it: 2^back·x in `precision` may have fewer digits, or be no number.
template <class W>
void round_column_to_range(Element precision, int back, std::int64_t n, W* x) {
  const bool narrows = element_of_parts(precision) == Element::fp32;
  if (back == 0 && !narrows) return;
  for (std::int64_t i = 0; i < n; ++i) {
    const W there = times_power(x[i], back);
    x[i] = times_power(narrows ? static_cast<W>(static_cast<NarrowOf<W>>(there)) : there, -back);
  }
}
template <class W>
void round_to_range(Element precision, const std::vector<int>& back, MatrixView<W> x) {
  for (std::int64_t j = 0; j < x.cols; ++j)
    round_column_to_range(precision, back[at(j)], x.rows, x.column(j));
}

/// What is known of a solution, by column.
template <class W>
struct MeasuredColumns {
  DenseBlockOf<W> r;  ///< b − A·x
  DenseBlock terms;   ///< |A|·|x| + |b|
  std::vector<double> normwise{};
  std::vector<double> componentwise{};
  /// What rounding in r, summed up in fp64, hides beside the terms: n roundings of either sign add
  /// up to √n of them with high probability (Higham, Mary, "A new approach to probabilistic
  /// rounding error analysis", SIAM J. Sci. Comput. 41, 2019).
  double hidden;

  MeasuredColumns(std::int64_t n, std::int64_t columns)
      : r(n, columns),
        terms(n, columns),
        hidden(kRoundings<W> * std::sqrt(static_cast<double>(n + 2)) * 0x1p-53) {}

  /// Errors from r and terms, which are set.
  void find_errors(double norm_a, MatrixView<const W> b, MatrixView<const W> x) {
    normwise.clear();
    componentwise.clear();
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const MatrixView<const W> of_column = std::as_const(r).view().block(0, j, x.rows, 1);
      normwise.push_back(
          backward_error(norm_a, b.block(0, j, x.rows, 1), x.block(0, j, x.rows, 1), of_column));
      componentwise.push_back(componentwise_backward_error(
          of_column, std::as_const(terms).view().block(0, j, x.rows, 1)));
    }
  }
};

/// Whether backward errors are taken of residuals with twice the digits in the end: those of FP64
/// may miss as much as they find. It is a reading of A and some 20 operations for each element and
/// column, which little is beside a factorization where columns are few or the system is small.
[[nodiscard]] inline bool worth_long_residuals(std::int64_t n, std::int64_t columns) {
  constexpr double kSmall = 0x1p26;  // products, of which a core does 10⁹ a second
  return columns <= std::max<std::int64_t>(1, n / 4096) ||
         static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(columns) <= kSmall;
}

/// NaN if one is.
[[nodiscard]] inline double largest_of(const std::vector<double>& errors) {
  return norm_inf(std::ssize(errors), errors.data());
}

/// By column a bound of ‖x − A⁻¹·b‖∞ relative to ‖x‖∞ from ‖S⁻¹‖∞ and the residual.
template <class W>
[[nodiscard]] std::vector<double> forward_bounds(const MeasuredColumns<W>& m, MatrixView<const W> x,
                                                 const std::vector<double>& row_scale,
                                                 const std::vector<double>& column_scale,
                                                 double inverse_norm) {
  const std::int64_t n = x.rows;
  const double roundings = kRoundings<W> * static_cast<double>(n + 2);
  const double gamma = roundings * 0x1p-53;
  const double lost = roundings * std::numeric_limits<double>::denorm_min();
  const double largest_scale = norm_inf(n, column_scale.data());
  std::vector<double> bounds;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double residual = 0;
    for (std::int64_t i = 0; i < n; ++i)
      residual = std::max(residual, row_scale[at(i)] * (std::abs(m.r.column(j)[i]) +
                                                        gamma * m.terms.column(j)[i] + lost));
    const bool zero = norm_inf(n, m.terms.column(j)) == 0;
    const double bound = zero ? 0 : largest_scale * inverse_norm * residual;
    bounds.push_back(bound > 0 ? bound / norm_inf(n, x.column(j)) : 0);
  }
  return bounds;
}

/// max |v_i|/C_i.
template <class W>
[[nodiscard]] double scaled_size(const W* v, const std::vector<double>& column_scale) {
  double most = 0;
  for (std::size_t i = 0; i < column_scale.size(); ++i)
    most = std::max(most, std::abs(v[i]) / column_scale[i]);
  return most;
}

/// What rounding in residuals in double-double adds to bounds: C_i·‖S⁻¹‖∞·‖R·γ·t‖∞ with
/// γ = 2·(n + 2)·2⁻¹⁰⁴ (of complex numbers three times that). It shows where a column of A is so
/// small that noise in its element of x is large beside the others.
template <class W>
void add_rounding(const MeasuredColumns<W>& m, MatrixView<const W> x,
                  const std::vector<double>& row_scale, const std::vector<double>& column_scale,
                  double inverse_norm, std::vector<double>& bounds) {
  const std::int64_t n = x.rows;
  const double gamma = kRoundings<W> * static_cast<double>(n + 2) * 0x1p-103;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double residual = 0;
    for (std::int64_t i = 0; i < n; ++i)
      residual = std::max(residual, row_scale[at(i)] * gamma * m.terms.column(j)[i]);
    if (residual > 0)
      bounds[at(j)] +=
          norm_inf(n, column_scale.data()) * inverse_norm * residual / norm_inf(n, x.column(j));
  }
}

/// What the bounds of the columns leave out: C_i·‖S⁻¹‖∞·‖R·lost·C‖∞·max_j |x_j|/C_j.
template <class W>
void add_loss(const Loss& loss, MatrixView<const W> x, const std::vector<double>& column_scale,
              double inverse_norm, std::vector<double>& bounds) {
  if (loss.scaled_norm == 0) return;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const double size = scaled_size(x.column(j), column_scale);
    if (size > 0)
      bounds[at(j)] += norm_inf(x.rows, column_scale.data()) * inverse_norm * loss.scaled_norm *
                       (size / norm_inf(x.rows, x.column(j)));
  }
}

/// Columns of which too little is known, with residuals of twice the digits.
template <class W>
class NearerSolution {
 public:
  using Block = DenseBlockOf<W>;
  /// M⁻¹·(b − A·x) for column j of B, its residual in double-double.
  using Correction = std::function<Block(std::int64_t j, MatrixView<const W> x)>;

  /// `contraction`: a bound of what corrections shrink by.
  NearerSolution(Element precision, Correction correction, const std::vector<double>& column_scale,
                 const std::vector<int>& back, double contraction)
      : precision_(precision),
        correction_(std::move(correction)),
        scale_(column_scale),
        back_(back),
        contraction_(contraction) {}

  [[nodiscard]] Element precision() const noexcept { return precision_; }
  /// Column j and its x; the bound of its error, which was `bound`. Counts the steps.
  double column(std::int64_t j, MatrixView<W> x, double bound, int& steps) const {
    constexpr int kStepsMost = 20;
    const double ulp = epsilon_of(precision_);
    Block d = correction_(j, x);
    double shrinks = contraction_;
    bound = std::min(bound, bound_of(d, x, shrinks));
    while (bound > solution_error_wanted(precision_) && std::isfinite(bound) &&
           steps < kStepsMost) {
      Block next(x.rows, 1);
      for (std::int64_t i = 0; i < x.rows; ++i) next.column(0)[i] = x(i, 0) + d.column(0)[i];
      round_column_to_range(precision_, back_[at(j)], x.rows, next.column(0));
      Block left = correction_(j, std::as_const(next).view());
      if (size_of(d) > 8 * ulp * size_of(next))
        shrinks = std::max(shrinks, 2 * size_of(left) / size_of(d));
      const double nearer = bound_of(left, std::as_const(next).view(), shrinks);
      if (!(nearer < bound / 2)) break;
      std::copy_n(next.column(0), x.rows, x.column(0));
      d = std::move(left);
      bound = nearer;
      ++steps;
    }
    return bound;
  }

 private:
  [[nodiscard]] double size_of(const Block& v) const { return scaled_size(v.column(0), scale_); }
  [[nodiscard]] double bound_of(const Block& d, MatrixView<const W> x, double shrinks) const {
    // A maximum passes over NaNs.
    if (!(shrinks < 0.9) || !std::isfinite(norm_inf(x.rows, d.column(0)))) return kErrorUnknown;
    const double spread = shrinks / (1 - shrinks) * size_of(d);
    double error = 0;
    for (std::size_t i = 0; i < scale_.size(); ++i)
      error = std::max(error, std::abs(d.column(0)[i]) * (1 + 0x1p-52) + spread * scale_[i]);
    const double forward = error == 0 ? 0 : error / norm_inf(x.rows, x.data);
    return std::isnan(forward) ? kErrorUnknown : forward;
  }

  Element precision_;
  Correction correction_;
  const std::vector<double>& scale_;
  const std::vector<int>& back_;
  double contraction_;
};

/// Takes `nearer` where too little is known of a column; `bounds` become those of the new columns.
/// Whether X changed.
template <class W>
bool solve_nearer(const NearerSolution<W>& nearer, const std::vector<double>& normwise,
                  MatrixView<W> x, std::vector<double>& bounds, Certificate& c) {
  bool changed = false;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double& bound = bounds[at(j)];
    if (bound <= solution_error_wanted(nearer.precision()) || std::isnan(normwise[at(j)]) ||
        numerically_singular(c.scaled_condition, nearer.precision()))
      continue;
    int steps = 0;
    bound = nearer.column(j, x.block(0, j, x.rows, 1), bound, steps);
    changed = changed || steps > 0;
    c.refinement_steps = std::max(c.refinement_steps, steps);
  }
  return changed;
}

/// The backward errors of a certificate, of the last measurement. Terms and norms are sums of
/// positive numbers, which round relatively.
template <class W>
void set_backward_errors(const MeasuredColumns<W>& m, const Loss& loss, Certificate& c) {
  const double up = 1 + kRoundings<W> * static_cast<double>(m.r.rows() + 8) * 0x1p-52;
  c.backward_error = up * largest_of(m.normwise) + m.hidden + loss.relative;
  c.componentwise_backward_error = up * largest_of(m.componentwise) + m.hidden + loss.relative;
}

/// All errors, with those of the bounds.
template <class W>
void set_errors(const MeasuredColumns<W>& m, const Loss& loss, const std::vector<double>& bounds,
                Certificate& c) {
  set_backward_errors(m, loss, c);
  c.forward_error = largest_of(bounds);
  if (std::isnan(c.backward_error) || std::isnan(c.forward_error)) c.forward_error = kErrorUnknown;
}

}  // namespace strata
