// QR of a tall matrix through its Gram matrix.
//
// Method: a pass multiplies V by the inverse of a triangular matrix that a small factorization of
// VᵀV gives, and adds up the Gram matrix of what it stores, so that the next pass need not read V
// for it. The fixed methods are lists of such passes. `automatic` looks at each Gram matrix:
//
// * Columns are scaled by powers of two to lengths near 1: exact, so grading costs nothing.
//   Squares that could overflow or underflow are scaled by the largest elements first.
// * The Gram matrix is wide (double-double for doubles: Yamazaki, Tomov, Dongarra, "Mixed-precision
//   Cholesky QR factorization", SIAM J. Sci. Comput. 37, 2015), so with u² its error, R is good for
//   columns of a condition κ up to 1/u. Up to κ = 9.5e7 one wide solve leaves an error of κ²·u² < u
//   and is all; beyond, the next pass sees a condition near 1.
// * Where a pivot fails, or κ is beyond 0.1/u, 8·n·ε²·tr(B) is added to the diagonal (the shift of
//   Fukaya, Kannan, Nakatsukasa, Yamamoto, Yanagisawa, "Shifted Cholesky QR", 2020, with the error
//   of the wide sum in the place of that of the sum in doubles, so that it does not grow with m).
//   What was below the root of the shift is then up to 1e14 times as large beside the rest, and is
//   seen by the pass behind it.
// * The solve with the shifted R is wide, so a column that depends on others exactly comes out as
//   zero but for the rounding of what is stored, 1e-16, while one at a distance of 1e-20 comes out
//   at 1e-7: the rank is told by what lies between. Dependent columns are zeros from there on.
//
// Why not Householder: its tall panels run at the speed of matrix-vector products, and its result
// says nothing about the condition.

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "base/random.hpp"
#include "qr/pass_runner.hpp"
#include "strata/qr.hpp"

namespace strata {
namespace {

/// What the arithmetic of T and of its wide sums can tell apart.
template <class T>
struct Limits;
template <>
struct Limits<double> {
  using Wide = DoubleDouble;
  static constexpr double kUnit = 0x1p-53;
  static constexpr double kWideEpsilon = 0x1p-104;  ///< 2^-52 squared
  static constexpr double kOneSolve = 9.5e7;        ///< κ for which one wide solve is enough
  static constexpr double kUnshifted = 9e14;        ///< κ that a wide sum bears
  /// Below it, beside 1, what a shifted pass leaves of a column is rounding.
  static constexpr double kDependent = 1e-11;
  static constexpr double kPromise = 1e-14;  ///< ‖I − QᵀQ‖ / √n
  /// Between these lie the squared lengths of columns of which no product over- or underflows.
  static constexpr double kSquareMin = 0x1p-600;
  static constexpr double kSquareMax = 0x1p1000;
};
template <>
struct Limits<float> {
  using Wide = double;
  static constexpr double kUnit = 0x1p-24;
  static constexpr double kWideEpsilon = 0x1p-52;
  static constexpr double kOneSolve = 2.3e4;
  static constexpr double kUnshifted = 9e6;
  static constexpr double kDependent = 2e-5;
  static constexpr double kPromise = 1e-5;
  static constexpr double kSquareMin = 0x1p-240;  // of products in float, which some methods form
  static constexpr double kSquareMax = 0x1p120;
};

/// Columns up to this condition are solved for in T.
constexpr double kNearlyOrthonormal = 8;
constexpr int kPassesMax = 12;

/// The power of two next to 1/√square.
double unit_scale(double square) {
  return square > 0 ? std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(square) / 2))) : 1.0;
}

template <class W>
SquareMatrix<DoubleDouble> widened(const SquareMatrix<W>& a) {
  SquareMatrix<DoubleDouble> wide(a.n);
  std::transform(a.values.begin(), a.values.end(), wide.values.begin(),
                 [](const W& x) { return strata::widened(x); });
  return wide;
}
template <class F>
SquareMatrix<F> rounded_to(const SquareMatrix<DoubleDouble>& a) {
  SquareMatrix<F> narrow(a.n);
  std::transform(a.values.begin(), a.values.end(), narrow.values.begin(),
                 [](const DoubleDouble& x) { return narrowed<F>(x); });
  return narrow;
}

/// One pass of a fixed method.
struct FixedPass {
  bool wide_sum = false;
  bool wide_solve = false;
  enum class Small : std::uint8_t { cholesky, shifted, eigenvalues } small = Small::cholesky;
};

std::vector<FixedPass> passes_of(QrMethod method) {
  constexpr FixedPass kPlain{};
  constexpr FixedPass kWide{.wide_sum = true};
  switch (method) {
    case QrMethod::cholqr: return {kPlain};
    case QrMethod::cholqr2: return {kPlain, kPlain};
    case QrMethod::shifted_cholqr3: return {{.small = FixedPass::Small::shifted}, kPlain, kPlain};
    case QrMethod::svqr: return {{.small = FixedPass::Small::eigenvalues}};
    case QrMethod::cholqr_wide: return {kWide};
    case QrMethod::cholqr_wide_solve: return {{.wide_sum = true, .wide_solve = true}};
    case QrMethod::cholqr_wide2: return {kWide, kPlain};
    case QrMethod::svqr_wide: return {{.wide_sum = true, .small = FixedPass::Small::eigenvalues}};
    case QrMethod::cgs:
    case QrMethod::cgs2:
    case QrMethod::mgs:
    case QrMethod::tsqr:
    case QrMethod::tsqr_flat:
    case QrMethod::automatic: break;
  }
  return {};
}

/// The steps of a method of Gram and Schmidt's (Golub and Van Loan, Matrix Computations, 5.2).
std::vector<std::uint32_t> column_steps(QrMethod method, std::int64_t n) {
  std::vector<std::uint32_t> steps;
  for (std::int64_t j = 0; j < n; ++j) {
    if (method == QrMethod::mgs) {
      for (std::int64_t i = 0; i < j; ++i) steps.push_back(column_variant(j, i, 1));
    } else {
      for (int k = 0; k < (method == QrMethod::cgs2 ? 2 : 1) && j > 0; ++k)
        steps.push_back(column_variant(j, 0, j));
    }
    steps.push_back(column_variant(j, j, 1) | kNormalize);
  }
  return steps;
}

template <class T>
class Orthogonalization {
 public:
  using Wide = typename Limits<T>::Wide;
  using Gram = SquareMatrix<DoubleDouble>;

  Orthogonalization(MatrixView<T> v, const QrOptions& options)
      : v_(v),
        options_(options),
        runner_({.from = v, .to = v}, options.run),
        scale_(static_cast<std::size_t>(v.cols), 1.0),
        zero_(static_cast<std::size_t>(v.cols)),
        r_(Gram::identity(v.cols)) {
    info_.method = options.method;
  }

  QrInfo run() {
    if (options_.method == QrMethod::automatic) {
      run_automatic();
    } else if (options_.method == QrMethod::tsqr || options_.method == QrMethod::tsqr_flat) {
      run_tsqr();
    } else if (passes_of(options_.method).empty()) {
      run_columns();
    } else {
      run_fixed();
    }
    for (std::int64_t j = 0; j < n(); ++j) {
      if (is_zero(j)) info_.dependent_columns.push_back(j);
    }
    info_.rank = n() - std::ssize(info_.dependent_columns);
    info_.condition = condition_of(r_, columns_of_nothing()).estimate;
    info_.passes = runner_.passes();
    info_.report = runner_.take_report();
    return std::move(info_);
  }

  /// Rows of dependent columns are zeros.
  [[nodiscard]] const Gram& r() const { return r_; }

 private:
  [[nodiscard]] std::int64_t n() const { return v_.cols; }
  [[nodiscard]] bool is_zero(std::int64_t j) const { return zero_[static_cast<std::size_t>(j)]; }
  double& scale(std::int64_t j) { return scale_[static_cast<std::size_t>(j)]; }

  // ---- Gram matrices

  /// Of V as it is, times the scales.
  Gram first_gram(bool wide) {
    const auto sum = [&] {
      return wide ? widened(runner_.template gram<Wide>(scale_))
                  : widened(runner_.template gram<T>(scale_));
    };
    Gram b = sum();
    if (is_in_range(b)) return b;
    rescale();
    b = sum();
    require_representable(b);
    return b;
  }

  [[nodiscard]] bool is_in_range(const Gram& b) const {
    for (std::int64_t j = 0; j < n(); ++j) {
      const double square = b(j, j).hi;
      if (!(square >= Limits<T>::kSquareMin && square <= Limits<T>::kSquareMax)) return false;
    }
    return true;
  }

  /// Scales by the largest elements; a column of zeros is found here. Throws where an element is
  /// not finite.
  void rescale() {
    const std::vector<double> largest = runner_.maxima();
    bool scaled = false;
    for (std::int64_t j = 0; j < n(); ++j) {
      const double x = largest[static_cast<std::size_t>(j)];
      if (!std::isfinite(x)) complain_of_elements();
      zero_[static_cast<std::size_t>(j)] = x == 0;
      int exponent = 0;
      std::frexp(x, &exponent);
      // 2^1074 is no double: what is that small is scaled into the range, if not to 1.
      if (x > 0) scale(j) = std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
      scaled = scaled || x > 0;
    }
    info_.rescaled = scaled;
  }

  [[noreturn]] void complain_of_elements() const {
    for (std::int64_t i = 0; i < v_.rows; ++i) {
      for (std::int64_t j = 0; j < n(); ++j)
        require(std::isfinite(v_(i, j)), ErrorKind::input, "qr", "element ({}, {}) of V is {}", i,
                j, v_(i, j));
    }
    fail(ErrorKind::input, "qr", "V changed while it was read");
  }

  [[noreturn]] void complain_of_elements_or_length(std::int64_t j) const {
    for (std::int64_t i = 0; i < v_.rows; ++i) {
      for (std::int64_t k = 0; k < n(); ++k) {
        if (!std::isfinite(v_(i, k))) complain_of_elements();
      }
    }
    complain_of_length(j);
  }
  [[noreturn]] static void complain_of_length(std::int64_t j) {
    fail(ErrorKind::input, "qr",
         "column {} of V is longer than the largest number of its precision: scale it", j);
  }

  /// R has the lengths of the columns, which may be beyond what T can hold.
  void require_representable(const Gram& b) const {
    for (std::int64_t j = 0; j < n(); ++j) {
      const double length = std::sqrt(b(j, j).hi) / scale_[static_cast<std::size_t>(j)];
      if (!(length <= static_cast<double>(std::numeric_limits<T>::max()))) complain_of_length(j);
    }
  }

  /// B with its columns at lengths near 1; the scales take the powers of two.
  Gram unit_gram(const Gram& b) {
    std::vector<double> powers;
    for (std::int64_t j = 0; j < n(); ++j)  // 2^1024 is no double
      powers.push_back(std::min(unit_scale(b(j, j).hi), 0x1p1023 / scale(j)));
    Gram unit(n());
    for (std::int64_t j = 0; j < n(); ++j) {
      for (std::int64_t i = 0; i < n(); ++i)
        unit(i, j) = scaled(scaled(b(i, j), powers[static_cast<std::size_t>(i)]),
                            powers[static_cast<std::size_t>(j)]);
      scale(j) *= powers[static_cast<std::size_t>(j)];
    }
    return unit;
  }

  // ---- solves

  /// R with unit columns in place of those that are zeros.
  [[nodiscard]] Gram solvable(const Gram& r) const {
    Gram factor = r;
    for (std::int64_t j = 0; j < n(); ++j) {
      if (!is_zero(j)) continue;
      for (std::int64_t i = 0; i < j; ++i) factor(i, j) = DoubleDouble();
      for (std::int64_t k = j; k < n(); ++k) factor(j, k) = DoubleDouble(j == k ? 1.0 : 0.0);
    }
    return factor;
  }

  /// V·diag(d) = Q·R, so what V was before all passes is Q times R·diag(d)⁻¹·(R of those before).
  void accumulate_factor(const Gram& r) {
    Gram unscaled = r;
    for (std::int64_t j = 0; j < n(); ++j) {
      for (std::int64_t i = 0; i <= j; ++i) unscaled(i, j) = scaled(r(i, j), 1 / scale(j));
      for (std::int64_t i = j + 1; i < n(); ++i) unscaled(i, j) = DoubleDouble();
    }
    r_ = first_ ? unscaled : upper_product(unscaled, r_);
    first_ = false;
  }

  /// V ← V·diag(d)·R⁻¹. `sum`: whether its Gram matrix is wanted, and wide.
  template <class F>
  Gram solve_in(const Gram& factor, bool sum, bool wide_sum, bool last) {
    const SquareMatrix<F> r = rounded_to<F>(factor);
    if (!sum) {
      runner_.solve(r, scale_);
      return {};
    }
    return wide_sum ? widened(runner_.template solve_gram<Wide>(r, scale_, last))
                    : widened(runner_.template solve_gram<T>(r, scale_, last));
  }

  Gram solve(const Gram& r, bool wide, bool sum, bool wide_sum, bool last) {
    for (std::int64_t j = 0; j < n(); ++j) {
      if (is_zero(j)) scale(j) = 0;
    }
    const Gram factor = solvable(r);
    Gram b = wide ? solve_in<Wide>(factor, sum, wide_sum, last)
                  : solve_in<T>(factor, sum, wide_sum, last);
    for (std::int64_t j = 0; j < n(); ++j) {
      if (is_zero(j)) scale(j) = 1;
    }
    accumulate_factor(r);
    std::fill(scale_.begin(), scale_.end(), 1.0);
    return b;
  }

  [[nodiscard]] std::vector<std::int64_t> zero_columns() const {
    std::vector<std::int64_t> columns;
    for (std::int64_t j = 0; j < n(); ++j) {
      if (is_zero(j)) columns.push_back(j);
    }
    return columns;
  }

  /// Those, and what is zero in R: columns without a direction.
  [[nodiscard]] std::vector<std::int64_t> columns_of_nothing() const {
    std::vector<std::int64_t> columns;
    for (std::int64_t j = 0; j < n(); ++j) {
      bool nothing = true;
      for (std::int64_t i = 0; i <= j; ++i) nothing = nothing && r_(i, j).hi == 0;
      if (is_zero(j) || nothing) columns.push_back(j);
    }
    return columns;
  }

  // ---- automatic

  using Small = SmallCholesky<Wide>;

  Small factor(const Gram& b, BadPivot rule, double tolerance) {
    return small_cholesky(rounded_to<Wide>(b), rule, tolerance, zero_);
  }

  /// B + s·I factored, s growing until that works, as it does the first time.
  Small shifted(const Gram& b) {
    double trace = 0;
    for (std::int64_t j = 0; j < n(); ++j) trace += is_zero(j) ? 0 : b(j, j).hi;
    double shift = 8 * static_cast<double>(n()) * Limits<T>::kWideEpsilon * trace;
    for (; shift < 1; shift *= 16) {
      Gram larger = b;
      for (std::int64_t j = 0; j < n(); ++j) larger(j, j) = larger(j, j) + DoubleDouble(shift);
      Small small = factor(larger, BadPivot::stop, 0);
      if (small.failed_column < 0) return small;
    }
    fail(ErrorKind::numerical, "qr", "the Gram matrix is not one, whatever is added to it");
  }

  /// Columns of which a shifted pass left rounding alone: zeros from now on. Their coefficients
  /// stay in R.
  Small drop_dependent(const Gram& b) {
    const double tolerance = Limits<T>::kDependent * Limits<T>::kDependent;
    Small small = factor(b, BadPivot::drop, tolerance);
    for (const std::int64_t j : small.dependent) zero_[static_cast<std::size_t>(j)] = true;
    return small;
  }

  void run_automatic() {
    Gram b = first_gram(true);
    bool was_shifted = false;
    for (int pass = 0; pass < kPassesMax; ++pass) {
      if (was_shifted) {
        // The pivots are beside lengths of 1 that the shift left; then they are forgotten.
        const Small small = drop_dependent(b);
        if (!small.dependent.empty()) coefficients_of(small);
        was_shifted = false;
      }
      const Gram unit = unit_gram(b);
      Small small = factor(unit, BadPivot::stop, 0);
      const bool failed = small.failed_column >= 0;
      const Condition condition =
          failed ? Condition{} : condition_of(widened(small.r), zero_columns());
      if (pass + 1 < kPassesMax && (failed || !(condition.estimate <= Limits<T>::kUnshifted))) {
        info_.failed_cholesky += failed ? 1 : 0;
        ++info_.shifts;
        b = solve(widened(shifted(unit).r), true, true, true, false);
        was_shifted = true;
        continue;
      }
      const bool nearly = condition.estimate <= kNearlyOrthonormal;
      const bool last = condition.estimate <= Limits<T>::kOneSolve || pass + 1 == kPassesMax;
      b = solve(widened(small.r), !nearly, !last || options_.verify, true, last);
      if (!last) continue;
      conclude(b, nearly, condition.estimate);
      if (info_.ok) return;
    }
  }

  /// What was zero in Q takes its coefficients with it into R: they were computed with the R of the
  /// pivots, of which only their columns are kept.
  void coefficients_of(const Small& small) {
    Gram step = Gram::identity(n());
    const Gram r = widened(small.r);
    for (const std::int64_t j : small.dependent) {
      step(j, j) = DoubleDouble();
      // q_j = Σ_{i<j} q_i·c_i, c from R_(0..j-1)·c = r_j by back substitution.
      for (std::int64_t i = j - 1; i >= 0; --i) {
        if (is_zero(i)) continue;
        DoubleDouble c = r(i, j);
        for (std::int64_t k = i + 1; k < j; ++k) c = subtract_product(c, r(i, k), step(k, j));
        step(i, j) = c / r(i, i);
      }
    }
    r_ = upper_product(step, r_);
  }

  void conclude(const Gram& b, bool nearly, double condition) {
    const auto columns = static_cast<double>(n());
    const double promise = Limits<T>::kPromise * std::sqrt(columns);
    info_.measured = options_.verify;
    if (options_.verify) {
      info_.orthogonality = distance_from_identity(b, zero_columns());
      info_.ok = info_.orthogonality <= promise;
      return;
    }
    // Rounding of what is stored; of the sums, twice the estimate being above the condition; of a
    // solve in T.
    const double unit = Limits<T>::kUnit;
    info_.orthogonality =
        2.1 * std::sqrt(columns) * unit + 32 * columns * unit * unit * 4 * condition * condition;
    if (nearly) info_.orthogonality += 2 * columns * std::sqrt(columns) * unit * condition;
    info_.ok = true;
  }

  // ---- fixed methods

  template <class W>
  SquareMatrix<W> small_factor(const Gram& b, FixedPass::Small kind, bool& failed) {
    SquareMatrix<W> narrow = rounded_to<W>(b);
    if (kind == FixedPass::Small::eigenvalues) {
      failed = false;
      const double floor = std::is_same_v<W, T> ? 2 * Limits<T>::kUnit : Limits<T>::kWideEpsilon;
      SquareMatrix<W> r = factor_by_eigenvalues(narrow, floor);
      for (std::int64_t j = 0; j < n(); ++j) {
        for (std::int64_t i = 0; is_zero(j) && i < n(); ++i) r(i, j) = r(j, i) = W(0.0F);
      }
      return r;
    }
    if (kind == FixedPass::Small::shifted) {
      const auto rows = static_cast<double>(v_.rows);
      const auto columns = static_cast<double>(n());
      const double shift = 11 * (rows * columns + columns * (columns + 1)) * Limits<T>::kUnit *
                           largest_eigenvalue(rounded_to<double>(b));
      for (std::int64_t j = 0; j < n(); ++j)
        narrow(j, j) = narrow(j, j) + narrowed<W>(DoubleDouble(shift));
    }
    SmallCholesky<W> small = small_cholesky(std::move(narrow), BadPivot::stop, 0, zero_);
    failed = small.failed_column >= 0;
    return std::move(small.r);
  }

  void run_fixed() {
    const std::vector<FixedPass> passes = passes_of(options_.method);
    Gram b = first_gram(passes[0].wide_sum);
    bool failed = false;
    for (std::size_t p = 0; p < passes.size(); ++p) {
      const FixedPass& pass = passes[p];
      const Gram r = pass.wide_sum ? widened(small_factor<Wide>(b, pass.small, failed))
                                   : widened(small_factor<T>(b, pass.small, failed));
      info_.failed_cholesky += failed ? 1 : 0;
      info_.shifts += pass.small == FixedPass::Small::shifted ? 1 : 0;
      const bool last = p + 1 == passes.size();
      b = solve(pass.wide_solve ? r : rounded_factor(r), pass.wide_solve, true,
                last || passes[p + 1].wide_sum, last);
    }
    info_.measured = true;
    info_.orthogonality = distance_from_identity(b, zero_columns());
    info_.ok = !failed && std::isfinite(info_.orthogonality);
  }

  void run_columns() {
    (void)first_gram(true);  // for what cannot be squared, and what is not finite
    if (info_.rescaled) (void)solve(Gram::identity(n()), false, false, false, true);
    const std::vector<std::uint32_t> steps = column_steps(options_.method, n());
    const std::vector<T> coefficients = runner_.columns(steps);
    Gram r(n());
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const ColumnRange range = column_range(steps[s]);
      const T* c = coefficients.data() + static_cast<std::int64_t>(s) * n();
      for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
        const bool length = (steps[s] & kNormalize) != 0;
        const T value = length ? std::sqrt(c[i]) : c[i];
        r(i, range.j) = r(i, range.j) + DoubleDouble(static_cast<double>(value));
      }
    }
    accumulate_factor(r);
    const Gram b = widened(runner_.template gram<Wide>(scale_));
    info_.measured = true;
    info_.orthogonality = distance_from_identity(b, zero_columns());
    info_.ok = std::isfinite(info_.orthogonality);
  }

  /// Q has all of its columns whatever V is; what is not finite in V is not in R either.
  void run_tsqr() {
    const TreeShape shape =
        options_.method == QrMethod::tsqr ? TreeShape::binary : TreeShape::flat;
    std::vector<double> nodes = runner_.triangles(shape);
    const std::size_t root = nodes.size() - static_cast<std::size_t>(n() * n());
    Gram r(n());
    Gram signs = Gram::identity(n());
    for (std::int64_t j = 0; j < n(); ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const double x = nodes[root + static_cast<std::size_t>(i + j * n())];
        if (!std::isfinite(x)) complain_of_elements_or_length(j);
        r(i, j) = DoubleDouble(x);
      }
      if (r(j, j).hi < 0) signs(j, j) = DoubleDouble(-1.0);
    }
    for (const DoubleDouble& sign : signs.values) nodes.push_back(sign.hi);
    runner_.orthogonal(nodes, shape, !options_.verify);
    accumulate_factor(upper_product(signs, r));
    conclude_tsqr();
  }

  void conclude_tsqr() {
    const auto columns = static_cast<double>(n());
    info_.measured = options_.verify;
    // Unmeasured: n reflections of a few roundings each, once for every level of the tree, which
    // has log₂ of as many blocks as there are (Higham, Accuracy and Stability, 19.3).
    const double levels = 2 + std::log2(static_cast<double>(v_.rows) / columns);
    info_.orthogonality =
        options_.verify
            ? distance_from_identity(widened(runner_.template gram<Wide>(scale_)), {})
            : 8 * columns * levels * Limits<double>::kUnit + 2.1 * columns * Limits<T>::kUnit;
    info_.ok = !options_.verify ||
               info_.orthogonality <= Limits<T>::kPromise * std::sqrt(columns);
  }

  [[nodiscard]] static Gram rounded_factor(const Gram& r) { return widened(rounded_to<T>(r)); }

  MatrixView<T> v_;
  QrOptions options_;
  PassRunner<T> runner_;
  std::vector<double> scale_;
  std::vector<bool> zero_;  ///< columns that are zeros, or are from the next solve on
  Gram r_;
  bool first_ = true;  ///< no pass has written V yet
  QrInfo info_;
};

// ---- what becomes of dependent columns

/// Moves the columns that are kept to the front, in their order, and rows of R with them.
template <class T>
void drop_columns(MatrixView<T> v, MatrixView<T> r, const std::vector<std::int64_t>& dependent) {
  std::int64_t kept = 0;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    if (std::binary_search(dependent.begin(), dependent.end(), j)) continue;
    if (kept < j) {
      std::copy_n(v.column(j), v.rows, v.column(kept));
      for (std::int64_t k = 0; k < r.cols; ++k) r(kept, k) = r(j, k);
    }
    ++kept;
  }
  for (std::int64_t j = kept; j < v.cols; ++j) {
    std::fill_n(v.column(j), v.rows, T(0));
    for (std::int64_t k = 0; k < r.cols; ++k) r(j, k) = T(0);
  }
}

/// Random columns behind those that are kept are orthonormalized with them, which are so already
/// and change by rounding alone; then each goes to its place.
template <class T>
void fill_columns(MatrixView<T> v, QrInfo& info, const QrOptions& options) {
  const std::vector<std::int64_t>& dependent = info.dependent_columns;
  std::vector<std::int64_t> order;  // of columns in v
  for (std::int64_t j = 0; j < v.cols; ++j) {
    if (!std::binary_search(dependent.begin(), dependent.end(), j)) order.push_back(j);
  }
  std::vector<T> gathered;
  gathered.reserve(static_cast<std::size_t>(v.size()));
  for (const std::int64_t j : order)
    gathered.insert(gathered.end(), v.column(j), v.column(j) + v.rows);
  order.insert(order.end(), dependent.begin(), dependent.end());
  for (std::int64_t i = std::ssize(gathered); i < v.size(); ++i)
    gathered.push_back(static_cast<T>(random_uniform(16, static_cast<std::uint64_t>(i)) - 0.5));
  const MatrixView<T> all{gathered.data(), v.rows, v.cols, v.rows};
  Orthogonalization<T> completion(all, options);
  const QrInfo completed = completion.run();
  info.ok = info.ok && completed.ok && completed.rank == v.cols;
  info.orthogonality = completed.orthogonality;
  info.passes += completed.passes;
  for (std::int64_t k = 0; k < v.cols; ++k)
    std::copy_n(all.column(k), v.rows, v.column(order[static_cast<std::size_t>(k)]));
}

template <class T>
void check_shapes(MatrixView<T> v, MatrixView<T> r) {
  require(v.rows >= v.cols, ErrorKind::misuse, "qr",
          "a {} by {} matrix has more columns than rows: factor its transpose, or fewer columns",
          v.rows, v.cols);
  require(v.cols <= kQrColumnsMax, ErrorKind::misuse, "qr",
          "{} columns are more than the {} that are orthogonalized at a time", v.cols,
          kQrColumnsMax);
  require(r.rows == v.cols && r.cols == v.cols, ErrorKind::misuse, "qr",
          "R of {} by {} does not fit {} columns", r.rows, r.cols, v.cols);
  require(v.size() == 0 || v.data != nullptr, ErrorKind::misuse, "qr", "V has no data");
}

template <class T>
QrInfo factor(MatrixView<T> v, MatrixView<T> r, const QrOptions& options) {
  check_shapes(v, r);
  if (v.cols == 0) {
    QrInfo info;
    info.ok = info.measured = true;
    info.condition = 1;
    info.method = options.method;
    return info;
  }
  Orthogonalization<T> work(v, options);
  QrInfo info = work.run();
  for (std::int64_t j = 0; j < r.cols; ++j) {
    for (std::int64_t i = 0; i < r.rows; ++i)
      r(i, j) = i <= j ? static_cast<T>(work.r()(i, j).hi) : T(0);
  }
  if (info.dependent_columns.empty()) return info;
  if (options.dependent == DependentColumns::drop) {
    drop_columns(v, r, info.dependent_columns);
  } else {
    fill_columns(v, info, options);
  }
  return info;
}

}  // namespace

QrInfo qr(MatrixView<double> v, MatrixView<double> r, const QrOptions& options) {
  return factor(v, r, options);
}
QrInfo qr(MatrixView<float> v, MatrixView<float> r, const QrOptions& options) {
  return factor(v, r, options);
}

}  // namespace strata
