// Least squares from the Gram matrix of [A b].
//
// Method: with G = [A b]ᵀ[A b] in double-double and RᵀR its Cholesky factorization, A's columns
// scaled to lengths near 1 by powers of two, R·x = z for the part of A and that of b, and the
// length of the residual is what is left of bᵀb. These are the normal equations, whose error grows
// like κ²; in double-double that is κ²·2^-106, below the rounding of x to doubles for κ up to 1e7
// and below 1e-6 for κ up to 1e12 or so, from one reading of the data and without a Q. A column
// whose pivot is beneath the rounding of the sums depends on those before it and gets a
// coefficient of 0.
// Where that is not good for six digits, x is refined: with T = [I x; 0 I] in double-double the
// matrix [A b]·T⁻¹ is [A r], r the residuals, computed in double-double row by row and rounded
// once, and its Gram matrix has Aᵀr; RᵀR·δ = Aᵀr is added to x. The error of R makes an iteration
// that converges like κ²·2^-100; what is left is the rounding of r, κ·2^-53 of it (Björck,
// Numerical Methods for Least Squares Problems, 1996, 6.6).

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "qr/pass_runner.hpp"
#include "strata/qr.hpp"

namespace strata {
namespace {

using Gram = SquareMatrix<DoubleDouble>;

constexpr double kWideUnit = 0x1p-104;
constexpr double kWanted = 1e-6;  ///< of the error bound
constexpr int kRefinementsMax = 3;

class NormalEquations {
 public:
  NormalEquations(const TallInput<double>& a, const TallInput<double>& b, const Options& options)
      : a_(a),
        b_(b),
        runner_({.from = a, .beside = b}, options),
        scale_(static_cast<std::size_t>(a.cols() + b.cols()), 1.0) {}

  LeastSquaresInfo solve(MatrixView<double> x) {
    Gram g = gram();
    const std::int64_t n = a_.cols();
    const double tolerance = 64 * static_cast<double>(n + 1) * kWideUnit;
    // The columns of b come last; none of them may end the factorization.
    const SmallCholesky<DoubleDouble> small = small_cholesky(g, BadPivot::drop, tolerance);
    LeastSquaresInfo info;
    for (const std::int64_t j : small.dependent) {
      if (j < n) info.dependent_columns.push_back(j);
    }
    info.rank = n - std::ssize(info.dependent_columns);
    Gram of_a(n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i <= j; ++i) of_a(i, j) = small.r(i, j);
    info.condition = condition_of(of_a, info.dependent_columns).estimate;
    write_triangle(small.r, info);
    double worst = 0;
    wide_x_.assign(static_cast<std::size_t>(n * b_.cols()), DoubleDouble());
    for (std::int64_t k = 0; k < b_.cols(); ++k)
      worst = std::max(worst, solve_column(g, small.r, k, info));
    const double sums = 32 * static_cast<double>(n + 1) * kWideUnit * info.condition;
    info.error_bound = 0x1p-52 + sums * info.condition * (1 + worst);
    if (info.error_bound > kWanted) refine(small.r, sums * info.condition, worst, info);
    write(x);
    info.ok = info.error_bound <= kWanted;
    info.report = runner_.take_report();
    return info;
  }

 private:
  /// R of A, and Qᵀb, of columns as they were given.
  void write_triangle(const Gram& r, LeastSquaresInfo& info) const {
    const std::int64_t n = a_.cols();
    const auto given = [&](std::int64_t i, std::int64_t j) {
      return is_zero(info, i) ? 0.0 : r(i, j).hi / scale_[static_cast<std::size_t>(j)];
    };
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) info.r.push_back(i <= j ? given(i, j) : 0.0);
    for (std::int64_t k = 0; k < b_.cols(); ++k)
      for (std::int64_t i = 0; i < n; ++i) info.qtb.push_back(given(i, n + k));
  }

  /// Of [A b] with columns of lengths near 1, which the scales give them.
  Gram gram() {
    Gram g = runner_.gram<DoubleDouble>(scale_);
    std::vector<bool> zero(scale_.size());
    const auto in_range = [&] {
      for (std::int64_t j = 0; j < g.n; ++j) {
        if (zero[static_cast<std::size_t>(j)]) continue;
        if (!(g(j, j).hi >= 0x1p-600 && g(j, j).hi <= 0x1p1000)) return false;
      }
      return true;
    };
    if (!in_range()) {
      const std::vector<double> largest = runner_.maxima();
      for (std::size_t j = 0; j < scale_.size(); ++j) {
        if (!std::isfinite(largest[j])) complain();
        zero[j] = largest[j] == 0;
      }
      if (!in_range()) {  // columns of zeros alone leave the sums as they have to be
        for (std::size_t j = 0; j < scale_.size(); ++j) {
          int exponent = 0;
          std::frexp(largest[j], &exponent);
          if (!zero[j]) scale_[j] = std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
        }
        g = runner_.gram<DoubleDouble>(scale_);
      }
    }
    std::vector<double> powers;
    for (std::int64_t j = 0; j < g.n; ++j) {
      const double square = g(j, j).hi;
      powers.push_back(
          square > 0 ? std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(square) / 2))) : 1);
      scale_[static_cast<std::size_t>(j)] *= powers.back();
    }
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.n; ++i)
        g(i, j) = scaled(scaled(g(i, j), powers[static_cast<std::size_t>(i)]),
                         powers[static_cast<std::size_t>(j)]);
    return g;
  }

  [[noreturn]] void complain() const {
    for (std::int64_t i = 0; i < a_.rows(); ++i) {
      for (std::int64_t j = 0; j < a_.cols(); ++j)
        require(std::isfinite(a_(i, j)), ErrorKind::input, "lstsq", "element ({}, {}) of A is {}",
                i, j, a_(i, j));
      for (std::int64_t k = 0; k < b_.cols(); ++k)
        require(std::isfinite(b_(i, k)), ErrorKind::input, "lstsq", "element ({}, {}) of b is {}",
                i, k, b_(i, k));
    }
    fail(ErrorKind::input, "lstsq", "A or b changed while it was read");
  }

  /// Element of x of columns of A and b that are scaled; zero where dependent.
  DoubleDouble& wide_x(std::int64_t i, std::int64_t k) {
    return wide_x_[static_cast<std::size_t>(i + k * a_.cols())];
  }
  [[nodiscard]] static bool is_zero(const LeastSquaresInfo& info, std::int64_t j) {
    return std::binary_search(info.dependent_columns.begin(), info.dependent_columns.end(), j);
  }

  /// z ← R⁻¹·z without the rows of dependent columns.
  void substitute_back(const Gram& r, const LeastSquaresInfo& info,
                       std::vector<DoubleDouble>& z) const {
    for (std::int64_t i = a_.cols() - 1; i >= 0; --i) {
      if (is_zero(info, i)) continue;
      DoubleDouble& value = z[static_cast<std::size_t>(i)];
      for (std::int64_t j = i + 1; j < a_.cols(); ++j)
        value = subtract_product(value, r(i, j), z[static_cast<std::size_t>(j)]);
      value = value / r(i, i);
    }
  }

  /// Column k of x; returns how long the residual is beside A·x.
  double solve_column(const Gram& g, const Gram& r, std::int64_t k, LeastSquaresInfo& info) {
    const std::int64_t n = a_.cols();
    // z = R⁻ᵀ·Aᵀb; what the factorization has in its columns behind n leaves out none of A's rows.
    std::vector<DoubleDouble> z(static_cast<std::size_t>(n));
    DoubleDouble rest = g(n + k, n + k);
    DoubleDouble fitted;
    for (std::int64_t i = 0; i < n; ++i) {
      if (is_zero(info, i)) continue;
      DoubleDouble& value = z[static_cast<std::size_t>(i)];
      value = r(i, n + k);
      rest = subtract_product(rest, value, value);
      fitted = fitted + value * value;
    }
    const double residual = rest.hi > 0 ? std::sqrt(rest.hi) : 0.0;
    info.residual_norm.push_back(residual / scale_[static_cast<std::size_t>(n + k)]);
    substitute_back(r, info, z);
    for (std::int64_t i = 0; i < n; ++i) wide_x(i, k) = z[static_cast<std::size_t>(i)];
    const double length = std::sqrt(std::max(fitted.hi, 0.0));
    return length > 0 ? residual / length : 0;
  }

  /// contraction: what one refinement leaves of the error, at most. `worst`: residuals beside A·x.
  void refine(const Gram& r, double contraction, double worst, LeastSquaresInfo& info) {
    if (!(contraction < 0.1)) return;
    double error = info.error_bound;
    for (int step = 0; step < kRefinementsMax && error > kWanted; ++step) {
      const std::vector<DoubleDouble> before = wide_x_;
      const Gram g = gram_of_residuals();
      ++info.refinements;
      double change = 0;
      for (std::int64_t k = 0; k < b_.cols(); ++k)
        change = std::max(change, correct(r, g, k, info));
      // What the rounding of the residuals leaves, of their products with A, and of the change.
      const double rounding = 0x1p-52 + 4 * info.condition * 0x1p-53 * worst;
      const double refined = rounding + contraction * (worst + 2 * change);
      if (!(refined < info.error_bound)) {
        wide_x_ = before;
        return;
      }
      error = info.error_bound = refined;
    }
  }

  /// Of [A r], columns scaled as before.
  Gram gram_of_residuals() {
    const std::int64_t n = a_.cols();
    Gram t = Gram::identity(n + b_.cols());
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      for (std::int64_t i = 0; i < n; ++i) t(i, n + k) = wide_x(i, k);
    }
    return runner_.apply_gram<DoubleDouble>(t, scale_);
  }

  /// Adds the correction of column k; returns how long it is beside x.
  double correct(const Gram& r, const Gram& g, std::int64_t k, LeastSquaresInfo& info) {
    const std::int64_t n = a_.cols();
    std::vector<DoubleDouble> z(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {  // R⁻ᵀ·Aᵀr
      if (is_zero(info, i)) continue;
      DoubleDouble value = g(i, n + k);
      for (std::int64_t j = 0; j < i; ++j) {
        if (!is_zero(info, j))
          value = subtract_product(value, r(j, i), z[static_cast<std::size_t>(j)]);
      }
      z[static_cast<std::size_t>(i)] = value / r(i, i);
    }
    substitute_back(r, info, z);
    double changed = 0;
    double length = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const DoubleDouble& change = z[static_cast<std::size_t>(i)];
      wide_x(i, k) = wide_x(i, k) + change;
      changed += change.hi * change.hi;
      length += wide_x(i, k).hi * wide_x(i, k).hi;
    }
    // The residual is known better than from what was left of bᵀb.
    info.residual_norm[static_cast<std::size_t>(k)] =
        std::sqrt(std::max(g(n + k, n + k).hi, 0.0)) / scale_[static_cast<std::size_t>(n + k)];
    return length > 0 ? std::sqrt(changed / length) : 0;
  }

  void write(MatrixView<double> x) {
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      const double scale = scale_[static_cast<std::size_t>(a_.cols() + k)];
      for (std::int64_t i = 0; i < a_.cols(); ++i)
        x(i, k) = wide_x(i, k).hi * (scale_[static_cast<std::size_t>(i)] / scale);
    }
  }

  TallInput<double> a_;
  TallInput<double> b_;
  PassRunner<double> runner_;
  std::vector<double> scale_;
  std::vector<DoubleDouble> wide_x_;  ///< n × k
};

}  // namespace

LeastSquaresInfo least_squares(const TallInput<double>& a, const TallInput<double>& b,
                               MatrixView<double> x, const Options& options) {
  require(a.rows() >= a.cols(), ErrorKind::misuse, "lstsq",
          "{} unknowns are more than {} equations: there is no unique solution", a.cols(),
          a.rows());
  require(b.rows() == a.rows(), ErrorKind::misuse, "lstsq",
          "a right-hand side of {} rows does not fit a matrix of {} by {}", b.rows(), a.rows(),
          a.cols());
  require(x.rows == a.cols() && x.cols == b.cols(), ErrorKind::misuse, "lstsq",
          "a solution of {} by {} does not fit {} unknowns and {} right-hand sides", x.rows, x.cols,
          a.cols(), b.cols());
  require(a.cols() + b.cols() <= kQrColumnsMax, ErrorKind::misuse, "lstsq",
          "{} columns with {} right-hand sides are more than the {} that are held at a time: fewer "
          "right-hand sides, or qr() of A, which takes more columns, and R·x = Qᵀb",
          a.cols(), b.cols(), kQrColumnsMax);
  require(a.cols() > 0 && b.cols() > 0, ErrorKind::misuse, "lstsq",
          "{} unknowns and {} right-hand sides: there is nothing to solve", a.cols(), b.cols());
  return NormalEquations(a, b, options).solve(x);
}

LeastSquaresInfo least_squares(MatrixView<const double> a, MatrixView<const double> b,
                               MatrixView<double> x, const Options& options) {
  return least_squares(TallInput<double>{a}, TallInput<double>{b}, x, options);
}

}  // namespace strata
