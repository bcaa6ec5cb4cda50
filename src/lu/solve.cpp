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
//   |x − A⁻¹·b|_i <= |d_i| + C_i·η/(1 − η)·max_j |d_j|/C_j;
// d is added to x as long as that is halved. Norms are estimates from below, mostly exact to a
// digit; η counts twice.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "cholesky/inverse_norm.hpp"
#include "kernels/dense/general_residual.hpp"
#include "kernels/dense/host_residual.hpp"
#include "lu/scaled_system.hpp"
#include "scalar/safe_range.hpp"
#include "session/report.hpp"
#include "strata/lu.hpp"

namespace strata {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr int kStepsMax = 20;

void multiply_rows(const std::vector<double>& scale, MatrixView<double> v) {
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) *= scale[at(i)];
}
void divide_rows(const std::vector<double>& scale, MatrixView<double> v) {
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) /= scale[at(i)];
}

/// What is known of a solution, by column.
struct MeasuredColumns {
  DenseBlock r;      ///< b − A·x
  DenseBlock terms;  ///< |A|·|x| + |b|
  std::vector<double> normwise;
  std::vector<double> componentwise;
};

double largest_of(const std::vector<double>& errors) {
  double most = 0;
  for (const double error : errors)
    if (!(error <= most)) most = error;
  return most;
}

template <class T, class A>
class CertifiedSolution {
 public:
  CertifiedSolution(LuFactor& factor, const ScaledSystem<T, A>& system, GeneralSolveResult& result)
      : factor_(factor), system_(system), result_(result), x_(system.n(), system.b().cols) {}

  /// X, refined and certified, in units of the scaled system.
  const DenseBlock& solve() {
    x_ = solved(system_.b(), false);
    round(x_);
    MeasuredColumns now = measure(x_);
    refine(now);
    find_condition();
    Certificate& c = result_.certificate;
    std::vector<double> bounds = bounds_of(now);
    bool changed = false;
    for (std::int64_t j = 0; j < x_.cols(); ++j) {
      double& bound = bounds[at(j)];
      if (bound <= solution_error_wanted(element_of<T>) || std::isnan(now.normwise[at(j)]) ||
          numerically_singular(c.scaled_condition, element_of<T>))
        continue;
      int steps = 0;
      bound = nearer_column(j, bound, steps);
      changed = changed || steps > 0;
      c.refinement_steps = std::max(c.refinement_steps, steps);
    }
    if (changed) now = measure(x_);
    add_loss(bounds);
    c.backward_error = largest_of(now.normwise) + system_.loss().relative;
    c.componentwise_backward_error = largest_of(now.componentwise) + system_.loss().relative;
    c.forward_error = largest_of(bounds);
    if (std::isnan(c.backward_error) || std::isnan(c.forward_error)) c.forward_error = kUnknown;
    const double rows = static_cast<double>(std::max<std::int64_t>(system_.n(), 1));
    result_.hpl_residual = c.backward_error / (kUlp / 2 * rows);
    return x_;
  }

 private:
  static constexpr double kUlp = std::numeric_limits<T>::epsilon();

  /// M⁻¹·B or M⁻ᵀ·B, columns of B in the middle of the range of T.
  DenseBlock solved(MatrixView<const double> b, bool transposed) {
    std::vector<T> d(at(b.rows * b.cols));
    std::vector<int> exponent(at(b.cols));
    for (std::int64_t j = 0; j < b.cols; ++j) {
      exponent[at(j)] = exponent_out_of_range(norm_inf(b.rows, b.column(j)), element_of<T>);
      for (std::int64_t i = 0; i < b.rows; ++i)
        d[at(i + j * b.rows)] = static_cast<T>(std::scalbn(b(i, j), -exponent[at(j)]));
    }
    const MatrixView<T> view{d.data(), b.rows, b.cols, std::max<std::int64_t>(b.rows, 1)};
    accumulate(result_.solve, transposed ? factor_.solve_transposed(view) : factor_.solve(view));
    DenseBlock x(b.rows, b.cols);
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t i = 0; i < b.rows; ++i)
        x.column(j)[i] = std::scalbn(static_cast<double>(view(i, j)), exponent[at(j)]);
    return x;
  }

  /// As the caller will have it: 2^back·x in T may have fewer digits, or be no number.
  void round_column(std::int64_t j, double* x) const {
    const int back = system_.back(j);
    if (back == 0 && std::is_same_v<T, double>) return;
    for (std::int64_t i = 0; i < system_.n(); ++i)
      x[i] = std::scalbn(static_cast<double>(static_cast<T>(std::scalbn(x[i], back))), -back);
  }
  void round(DenseBlock& x) const {
    for (std::int64_t j = 0; j < x.cols(); ++j) round_column(j, x.column(j));
  }

  [[nodiscard]] MeasuredColumns measure(const DenseBlock& x) const {
    const std::int64_t n = x.rows();
    MeasuredColumns m{DenseBlock(n, x.cols()), DenseBlock(n, x.cols()), {}, {}};
    DenseBlock sizes(n, x.cols());
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      std::copy_n(system_.b().column(j), n, m.r.column(j));
      for (std::int64_t i = 0; i < n; ++i) sizes.column(j)[i] = std::abs(x.column(j)[i]);
    }
    general_residual(system_.a(), false, x.view(), m.r.view());
    general_magnitudes(system_.a(), std::as_const(sizes).view(), m.terms.view());
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      for (std::int64_t i = 0; i < n; ++i) m.terms.column(j)[i] += std::abs(system_.b()(i, j));
      const auto one = [&](const DenseBlock& block) { return block.view().block(0, j, n, 1); };
      m.normwise.push_back(
          backward_error(system_.norm_inf(), system_.b().block(0, j, n, 1), one(x), one(m.r)));
      m.componentwise.push_back(componentwise_backward_error(one(m.r), one(m.terms)));
    }
    return m;
  }

  /// A NaN needs no more.
  [[nodiscard]] bool needs_more(const MeasuredColumns& m, std::int64_t j) const {
    const double rows = static_cast<double>(std::max<std::int64_t>(system_.n(), 16));
    return m.normwise[at(j)] > 4 * kUlp || m.componentwise[at(j)] > std::sqrt(rows) * kUlp;
  }

  /// Columns take a step if it makes them better; as long as one is halved.
  void refine(MeasuredColumns& now) {
    bool goes_on = true;
    for (int step = 0; step < kStepsMax && goes_on; ++step) {
      goes_on = false;
      bool any = false;
      for (std::int64_t j = 0; j < x_.cols(); ++j) any = any || needs_more(now, j);
      if (!any) return;
      DenseBlock better = solved(std::as_const(now.r).view(), false);
      for (std::int64_t j = 0; j < x_.cols(); ++j)
        for (std::int64_t i = 0; i < x_.rows(); ++i) better.column(j)[i] += x_.column(j)[i];
      round(better);
      const MeasuredColumns next = measure(better);
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

  /// ‖S⁻¹‖∞ = ‖(R⁻¹·A⁻ᵀ·C⁻¹)‖₁ and η, both by the factors.
  void find_condition() {
    const std::vector<double>& rows = system_.row_scale();
    const std::vector<double>& columns = system_.column_scale();
    const auto replace = [&](MatrixView<double> v, bool transposed) {
      const DenseBlock x = solved(v, transposed);
      std::copy_n(x.column(0), v.size(), v.data);
    };
    inverse_norm_ = estimate_norm_one(
        system_.n(),
        [&](MatrixView<double> v) {
          divide_rows(columns, v);
          replace(v, true);
          divide_rows(rows, v);
        },
        [&](MatrixView<double> v) {
          divide_rows(rows, v);
          replace(v, false);
          divide_rows(columns, v);
        });
    // ‖S‖∞ = 1
    result_.certificate.scaled_condition = system_.n() == 0 ? 1 : inverse_norm_;
    const double left = estimate_norm_one(
        system_.n(),
        [&](MatrixView<double> v) {  // C·(I − Aᵀ·M⁻ᵀ)·C⁻¹
          divide_rows(columns, v);
          const DenseBlock y = solved(v, true);
          general_residual(system_.a(), true, y.view(), v);
          multiply_rows(columns, v);
        },
        [&](MatrixView<double> v) {
          multiply_rows(columns, v);
          DenseBlock product(v.rows, v.cols);
          general_residual(system_.a(), false, MatrixView<const double>(v), product.view());
          const DenseBlock y = solved(std::as_const(product).view(), false);  // −M⁻¹·A·v
          for (std::int64_t j = 0; j < v.cols; ++j)
            for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) += y.column(j)[i];
          divide_rows(columns, v);
        });
    contraction_ = 2 * std::max(left, result_.certificate.scaled_condition * kUlp);
    inflated_norm_ = contraction_ < 1 ? inverse_norm_ / (1 - contraction_) : kUnknown;
  }

  /// The first bound of the head of this file by column, relative to ‖x‖∞.
  [[nodiscard]] std::vector<double> bounds_of(const MeasuredColumns& m) const {
    const std::int64_t n = system_.n();
    const double roundings = static_cast<double>(n + 2);
    const double gamma = roundings * 0x1p-53;
    const double lost = roundings * std::numeric_limits<double>::denorm_min();
    const double largest_scale = norm_inf(n, system_.column_scale().data());
    std::vector<double> bounds;
    for (std::int64_t j = 0; j < x_.cols(); ++j) {
      double residual = 0;
      for (std::int64_t i = 0; i < n; ++i)
        residual =
            std::max(residual, system_.row_scale()[at(i)] * (std::abs(m.r.column(j)[i]) +
                                                             gamma * m.terms.column(j)[i] + lost));
      const bool zero = norm_inf(n, m.terms.column(j)) == 0;
      const double bound = zero ? 0 : largest_scale * inflated_norm_ * residual;
      bounds.push_back(bound > 0 ? bound / norm_inf(n, x_.column(j)) : 0);
    }
    return bounds;
  }

  /// What the bounds of the columns leave out: C_i·‖S⁻¹‖∞·‖R·lost·C‖∞·max_j |x_j|/C_j.
  void add_loss(std::vector<double>& bounds) const {
    if (system_.loss().scaled_norm == 0) return;
    const std::int64_t n = system_.n();
    for (std::int64_t j = 0; j < x_.cols(); ++j) {
      const double size = scaled_size(x_.column(j));
      if (size > 0)
        bounds[at(j)] += norm_inf(n, system_.column_scale().data()) * inflated_norm_ *
                         system_.loss().scaled_norm * (size / norm_inf(n, x_.column(j)));
    }
  }

  /// max |v_i|/C_i.
  [[nodiscard]] double scaled_size(const double* v) const {
    double most = 0;
    for (std::int64_t i = 0; i < system_.n(); ++i)
      most = std::max(most, std::abs(v[i]) / system_.column_scale()[at(i)]);
    return most;
  }

  [[nodiscard]] DenseBlock correction(std::int64_t j, const DenseBlock& x) {
    DenseBlock r(system_.n(), 1);
    general_residual_dd(system_.a(), system_.b().block(0, j, system_.n(), 1), x.view(), r.view());
    return solved(std::as_const(r).view(), false);
  }

  /// The second bound, relative to ‖x‖∞.
  [[nodiscard]] double bound_of(const DenseBlock& d, const DenseBlock& x, double shrinks) const {
    if (!(shrinks < 0.9)) return kUnknown;
    const double spread = shrinks / (1 - shrinks) * scaled_size(d.column(0));
    double error = 0;
    for (std::int64_t i = 0; i < system_.n(); ++i)
      error = std::max(
          error, std::abs(d.column(0)[i]) * (1 + 0x1p-52) + spread * system_.column_scale()[at(i)]);
    const double forward = error == 0 ? 0 : error / norm_inf(system_.n(), x.column(0));
    return std::isnan(forward) ? kUnknown : forward;
  }

  /// A column of which too little is known, with residuals of twice the digits; the bound of its
  /// error, which was `bound`.
  double nearer_column(std::int64_t j, double bound, int& steps) {
    const std::int64_t n = system_.n();
    DenseBlock x(n, 1);
    std::copy_n(x_.column(j), n, x.column(0));
    DenseBlock d = correction(j, x);
    double shrinks = contraction_;
    bound = std::min(bound, bound_of(d, x, shrinks));
    while (bound > solution_error_wanted(element_of<T>) && std::isfinite(bound) &&
           steps < kStepsMax) {
      DenseBlock next = x;
      for (std::int64_t i = 0; i < n; ++i) next.column(0)[i] += d.column(0)[i];
      round_column(j, next.column(0));
      DenseBlock left = correction(j, next);
      if (scaled_size(d.column(0)) > 8 * kUlp * scaled_size(next.column(0)))
        shrinks = std::max(shrinks, 2 * scaled_size(left.column(0)) / scaled_size(d.column(0)));
      const double nearer = bound_of(left, next, shrinks);
      if (!(nearer < bound / 2)) break;
      x = std::move(next);
      d = std::move(left);
      bound = nearer;
      ++steps;
    }
    std::copy_n(x.column(0), n, x_.column(j));
    return bound;
  }

  LuFactor& factor_;
  const ScaledSystem<T, A>& system_;
  GeneralSolveResult& result_;
  DenseBlock x_;
  double inverse_norm_ = 0;   // ‖S⁻¹‖∞ as solves with the factors have it
  double inflated_norm_ = 0;  // at most, of S itself
  double contraction_ = 0;    // 2·η
};

template <class T, class A, class B>
GeneralSolveResult solve_system(MatrixView<const A> a, MatrixView<const B> b, MatrixView<T> x,
                                const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  require(a.rows == a.cols, ErrorKind::misuse, "solve", "a {} by {} matrix is not square", a.rows,
          a.cols);
  require(b.rows == a.rows, ErrorKind::misuse, "solve",
          "a right-hand side of {} rows does not fit a {} by {} matrix", b.rows, a.rows, a.cols);
  require(x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse, "solve",
          "a solution of {} by {} does not fit a right-hand side of {} by {}", x.rows, x.cols,
          b.rows, b.cols);
  DenseBlock wide(b.rows, b.cols);
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
    const DenseBlock& y = solution.solve();
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t i = 0; i < b.rows; ++i)
        x(i, j) = static_cast<T>(std::scalbn(y.column(j)[i], system.back(j)));
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

}  // namespace strata
