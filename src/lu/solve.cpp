// General systems, solved and certified: solve_general() of strata/lu.hpp.
//
// Method: as of positive definite systems (src/cholesky/solve.cpp), with a scale of rows R and one
// of columns C in the place of diag(A)^(−1/2). Corrections M⁻¹·r by the factors M, r = b − A·x in
// fp64, until |r| is within a few ulps of t = |A|·|x| + |b| in every row, which partial pivoting
// reaches in a step or two (Skeel, "Iterative refinement implies numerical stability for Gaussian
// elimination", Math. Comp. 35, 1980). Then, with S = R·A·C, γ = (n + 2)·2⁻⁵³ and f = |r| + γ·t,
//   |x − A⁻¹·b|_i <= C_i·‖S⁻¹‖∞·‖R·f‖∞.
// How far M is from A, whatever its growth, is measured: η = ‖C⁻¹·(I − M⁻¹·A)·C‖∞ is what a
// correction leaves of an error, and ‖S⁻¹‖∞ is at most what solves with M say over 1 − η. Where
// the bound says too little of x, r in double-double gives a correction d, and
//   |x − A⁻¹·b|_i <= |d_i| + C_i·η/(1 − η)·max_j |d_j|/C_j + C_i·‖S⁻¹‖∞·‖R·γ₂·t‖∞,
// γ₂ = (n + 2)·2⁻¹⁰³; d is added to x as long as that is halved. Norms are estimates from below,
// mostly exact to a digit; η counts twice. Where elements grew so much that η says nothing, M⁻¹ is
// a solve with one or three steps of refinement, which squares or takes to the fourth I − M⁻¹·A.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "cholesky/certified_solution.hpp"
#include "cholesky/dense_system.hpp"
#include "cholesky/inverse_norm.hpp"
#include "kernels/dense/general_residual.hpp"
#include "lu/scaled_system.hpp"
#include "scalar/complex.hpp"
#include "session/report.hpp"
#include "strata/lu.hpp"

namespace strata {
namespace {

constexpr int kStepsMax = 20;
constexpr int kRefinedMost = 3;

template <class W>
void multiply_rows(const std::vector<double>& scale, MatrixView<W> v) {
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) *= scale[at(i)];
}
template <class W>
void divide_rows(const std::vector<double>& scale, MatrixView<W> v) {
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) /= scale[at(i)];
}

template <class T, class A>
class CertifiedSolution {
 public:
  using W = WideOf<T>;
  using Block = DenseBlockOf<W>;
  using Measured = MeasuredColumns<W>;

  CertifiedSolution(LuFactor& factor, const ScaledSystem<T, A>& system, GeneralSolveResult& result)
      : system_(system),
        result_(result),
        by_factor_([&](MatrixView<T> v) { accumulate(result.solve, factor.solve(v)); }),
        by_adjoint_([&](MatrixView<T> v) { accumulate(result.solve, factor.solve_adjoint(v)); }),
        x_(system.n(), system.b().cols) {}

  /// X, refined and certified, in units of the scaled system.
  const Block& solve() {
    x_ = solved(system_.b(), false);
    round_to_range<T>(system_.back(), x_.view());
    Measured now = measure(x_);
    refine(now);
    find_condition();
    Certificate& c = result_.certificate;
    result_.log_determinant_error = determinant_error();
    // Where elements grew, two or four solves for one are nearer to A⁻¹. What is lost by the
    // condition alone no solve brings back.
    while (contraction_ >= 1 && refined_ < kRefinedMost && !hopeless(c.scaled_condition)) {
      refined_ = 2 * refined_ + 1;
      find_condition();
      if (contraction_ < 1) refine(now = measure(x_));
    }
    const MatrixView<const W> x = std::as_const(x_).view();
    std::vector<double> bounds =
        forward_bounds<W>(now, x, system_.row_scale(), system_.column_scale(), inflated_norm_);
    const auto correction = [&](std::int64_t j, MatrixView<const W> y) {
      Block r(y.rows, 1);
      general_residual_dd(system_.a(), system_.b().block(0, j, y.rows, 1), y, r.view());
      return solved(std::as_const(r).view(), false);
    };
    const NearerSolution<T> nearer(correction, system_.column_scale(), system_.back(),
                                   contraction_);
    if (solve_nearer(nearer, now.normwise, x_.view(), bounds, c)) now = measure(x_);
    add_rounding<W>(now, x, system_.row_scale(), system_.column_scale(), inflated_norm_, bounds);
    add_loss<W>(system_.loss(), x, system_.column_scale(), inflated_norm_, bounds);
    set_errors(now, system_.loss(), bounds, c);
    const double rows = static_cast<double>(std::max<std::int64_t>(system_.n(), 1));
    result_.hpl_residual = c.backward_error / (kUlp / 2 * rows);
    return x_;
  }

 private:
  static constexpr double kUlp = std::numeric_limits<RealOf<T>>::epsilon();

  [[nodiscard]] Measured measure(const Block& x) const {
    const std::int64_t n = x.rows();
    Measured m(n, x.cols());
    DenseBlock sizes(n, x.cols());
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      std::copy_n(system_.b().column(j), n, m.r.column(j));
      for (std::int64_t i = 0; i < n; ++i) sizes.column(j)[i] = std::abs(x.column(j)[i]);
    }
    general_residual(system_.a(), false, x.view(), m.r.view());
    general_magnitudes(system_.a(), std::as_const(sizes).view(), m.terms.view());
    for (std::int64_t j = 0; j < x.cols(); ++j)
      for (std::int64_t i = 0; i < n; ++i) m.terms.column(j)[i] += std::abs(system_.b()(i, j));
    m.find_errors(system_.norm_inf(), system_.b(), x.view());
    return m;
  }

  /// B ← M⁻¹·B or M⁻ᴴ·B in the middle of the range. With `refined_` steps of refinement M is the
  /// matrix for which I − M⁻¹·A is (I − (L·U)⁻¹·P·A)^(1 + refined_): these steps are linear.
  [[nodiscard]] Block solved(MatrixView<const W> b, bool adjoint) const {
    const BlockSolverOf<T>& solve = adjoint ? by_adjoint_ : by_factor_;
    Block x = solved_in_range<T>(solve, b);
    for (int step = 0; step < refined_; ++step) {
      Block r(b.rows, b.cols);
      copy_columns<W, W>(b, r.view());
      general_residual(system_.a(), adjoint, std::as_const(x).view(), r.view());
      const Block d = solved_in_range<T>(solve, std::as_const(r).view());
      for (std::int64_t j = 0; j < b.cols; ++j)
        for (std::int64_t i = 0; i < b.rows; ++i) x.column(j)[i] += d.column(j)[i];
    }
    return x;
  }

  /// Whether ‖I − M⁻¹·A‖ may be 1 for the rounding of A and T alone.
  [[nodiscard]] static bool hopeless(double condition) {
    return !(2 * condition * kRoundings<T> * kUlp < 1);
  }

  /// det A = det(L·U)·det(I − E), where the eigenvalues of E = I − (L·U)⁻¹·A are at most η: the
  /// logarithm of a factor is at most −log(1 − η). The same goes for what elements lost on their
  /// way into the range. Beside it there is the rounding of a product of n pivots and of its
  /// logarithm.
  [[nodiscard]] double determinant_error() const {
    const double lost = inflated_norm_ * system_.loss().scaled_norm;
    if (!(contraction_ < 1) || !(lost < 1)) return kErrorUnknown;
    const double n = static_cast<double>(system_.n());
    return -n * (std::log1p(-contraction_) + std::log1p(-lost)) +
           (kRoundings<T> * n + 4) * 0x1p-52 + 0x1p-51 * std::abs(result_.info.determinant.log());
  }

  /// A NaN needs no more.
  [[nodiscard]] bool needs_more(const Measured& m, std::int64_t j) const {
    const double rows = static_cast<double>(std::max<std::int64_t>(system_.n(), 16));
    return m.normwise[at(j)] > 4 * kUlp || m.componentwise[at(j)] > std::sqrt(rows) * kUlp;
  }

  /// Columns take a step if it makes them better; as long as one is halved.
  void refine(Measured& now) {
    bool goes_on = true;
    for (int step = 0; step < kStepsMax && goes_on; ++step) {
      goes_on = false;
      bool any = false;
      for (std::int64_t j = 0; j < x_.cols(); ++j) any = any || needs_more(now, j);
      if (!any) return;
      Block better = solved(std::as_const(now.r).view(), false);
      for (std::int64_t j = 0; j < x_.cols(); ++j)
        for (std::int64_t i = 0; i < x_.rows(); ++i) better.column(j)[i] += x_.column(j)[i];
      round_to_range<T>(system_.back(), better.view());
      const Measured next = measure(better);
      bool kept = false;
      for (std::int64_t j = 0; j < x_.cols(); ++j) {
        const std::size_t k = at(j);
        const bool sooner = next.normwise[k] < now.normwise[k] && now.normwise[k] > 4 * kUlp;
        const bool finer = next.normwise[k] <= std::max(now.normwise[k], 4 * kUlp) &&
                           next.componentwise[k] < now.componentwise[k];
        if (!needs_more(now, j) || !(sooner || finer)) continue;
        goes_on = goes_on || next.normwise[k] < now.normwise[k] / 2 ||
                  next.componentwise[k] < now.componentwise[k] / 2;
        kept = true;
        std::copy_n(better.column(j), x_.rows(), x_.column(j));
        std::copy_n(next.r.column(j), x_.rows(), now.r.column(j));
        std::copy_n(next.terms.column(j), x_.rows(), now.terms.column(j));
        now.normwise[k] = next.normwise[k];
        now.componentwise[k] = next.componentwise[k];
      }
      if (kept) ++result_.certificate.refinement_steps;
    }
  }

  /// ‖S⁻¹‖∞ = ‖R⁻¹·A⁻ᴴ·C⁻¹‖₁ and η, both by the factors.
  void find_condition() {
    const std::vector<double>& rows = system_.row_scale();
    const std::vector<double>& columns = system_.column_scale();
    const auto replace = [&](MatrixView<W> v, bool adjoint) {
      const Block x = solved(v, adjoint);
      std::copy_n(x.column(0), v.size(), v.data);
    };
    const BlockSolverOf<W> inverse = [&](MatrixView<W> v) {
      divide_rows(columns, v);
      replace(v, true);
      divide_rows(rows, v);
    };
    const BlockSolverOf<W> inverse_adjoint = [&](MatrixView<W> v) {
      divide_rows(rows, v);
      replace(v, false);
      divide_rows(columns, v);
    };
    const double inverse_norm = estimate_norm_one(system_.n(), inverse, inverse_adjoint);
    // ‖S‖∞ = 1
    result_.certificate.scaled_condition = system_.n() == 0 ? 1 : inverse_norm;
    const BlockSolverOf<W> error_adjoint = [&](MatrixView<W> v) {  // C·(I − Aᴴ·M⁻ᴴ)·C⁻¹
      divide_rows(columns, v);
      const Block y = solved(v, true);
      general_residual(system_.a(), true, y.view(), v);
      multiply_rows(columns, v);
    };
    const BlockSolverOf<W> error = [&](MatrixView<W> v) {
      multiply_rows(columns, v);
      Block product(v.rows, v.cols);
      general_residual(system_.a(), false, MatrixView<const W>(v), product.view());
      const Block y = solved(std::as_const(product).view(), false);  // −M⁻¹·A·v
      for (std::int64_t j = 0; j < v.cols; ++j)
        for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) += y.column(j)[i];
      divide_rows(columns, v);
    };
    const double left = estimate_norm_one(system_.n(), error_adjoint, error);
    contraction_ = 2 * std::max(left, result_.certificate.scaled_condition * kRoundings<T> * kUlp);
    inflated_norm_ = contraction_ < 1 ? inverse_norm / (1 - contraction_) : kErrorUnknown;
  }

  const ScaledSystem<T, A>& system_;
  GeneralSolveResult& result_;
  BlockSolverOf<T> by_factor_;   // B ← M⁻¹·B
  BlockSolverOf<T> by_adjoint_;  // B ← M⁻ᴴ·B
  Block x_;
  double inflated_norm_ = 0;  // ‖S⁻¹‖∞ at most; solves with the factors say what it is of M
  double contraction_ = 0;    // 2·η
  int refined_ = 0;           // steps of refinement in a solve
};

template <class T, class A, class B>
GeneralSolveResult solve_system(MatrixView<const A> a, MatrixView<const B> b, MatrixView<T> x,
                                const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  require(a.rows == a.cols, ErrorKind::misuse, "solve", "a {} by {} matrix is not square", a.rows,
          a.cols);
  check_solve_shapes(a, b, x);
  DenseBlockOf<WideOf<T>> wide(b.rows, b.cols);
  for (std::int64_t j = 0; j < b.cols; ++j) std::copy_n(b.column(j), b.rows, wide.column(j));
  ScaledSystem<T, A> system(a, std::as_const(wide).view());
  GeneralSolveResult result;
  LuFactor factor = lu(system.factored(), options);
  result.factor = factor.report();
  result.info = factor.info();
  LuInfo& info = result.info;
  if (info.determinant.sign != 0)
    info.determinant.exponent += static_cast<std::int64_t>(system.exponent()) * a.rows;
  Certificate& c = result.certificate;
  c.precision = element_of<T>;
  c.factor.ok = info.ok;
  c.factor.first_bad_pivot = info.not_finite >= 0 ? info.not_finite : info.zero_pivot;
  c.factor.bad_pivot = info.not_finite >= 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
  c.factor.log_determinant =
      info.not_finite >= 0 ? std::numeric_limits<double>::quiet_NaN() : info.determinant.log();
  c.factor.growth = info.growth;
  if (info.ok) {
    CertifiedSolution<T, A> solution(factor, system, result);
    const DenseBlockOf<WideOf<T>>& y = solution.solve();
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t i = 0; i < b.rows; ++i)
        x(i, j) = static_cast<T>(times_power(y.column(j)[i], system.back()[at(j)]));
  }
  c.bytes_moved = result.factor.traffic.total() + result.solve.traffic.total();
  c.seconds = seconds_since(start);
  return result;
}

}  // namespace

GeneralSolveResult solve_general(MatrixView<const double> a, MatrixView<const double> b,
                                 MatrixView<double> x, const Options& options) {
  return solve_system(a, b, x, options);
}
GeneralSolveResult solve_general(MatrixView<const float> a, MatrixView<const float> b,
                                 MatrixView<float> x, const Options& options) {
  return solve_system(a, b, x, options);
}
GeneralSolveResult solve_general(MatrixView<const double> a, MatrixView<const double> b,
                                 MatrixView<float> x, const Options& options) {
  return solve_system(a, b, x, options);
}
GeneralSolveResult solve_general(MatrixView<const float> a, MatrixView<const double> b,
                                 MatrixView<float> x, const Options& options) {
  return solve_system(a, b, x, options);
}

namespace {
using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;
}  // namespace

GeneralSolveResult solve_general(MatrixView<const Complex128> a, MatrixView<const Complex128> b,
                                 MatrixView<Complex128> x, const Options& options) {
  return solve_system(a, b, x, options);
}
GeneralSolveResult solve_general(MatrixView<const Complex64> a, MatrixView<const Complex64> b,
                                 MatrixView<Complex64> x, const Options& options) {
  return solve_system(a, b, x, options);
}
GeneralSolveResult solve_general(MatrixView<const Complex128> a, MatrixView<const Complex128> b,
                                 MatrixView<Complex64> x, const Options& options) {
  return solve_system(a, b, x, options);
}
GeneralSolveResult solve_general(MatrixView<const Complex64> a, MatrixView<const Complex128> b,
                                 MatrixView<Complex64> x, const Options& options) {
  return solve_system(a, b, x, options);
}

}  // namespace strata
