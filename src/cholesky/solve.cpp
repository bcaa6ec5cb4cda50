// Dense systems, solved and certified: solve() of strata/cholesky.hpp.
//
// Method: Cholesky, one step of refinement where it is worth it, and then the certificate, all of
// it from the residual r of the x that is handed back, in fp64, and t = |A|·|x| + |b|. Rounding in
// r is at most γ·t, γ = (n + 2)·2⁻⁵³ or three times that (kRoundings), so with D = diag(A)^(−1/2),
// S = D·A·D and f = |r| + γ·t
//   |x − A⁻¹·b|_i <= D_i·‖S⁻¹‖∞·‖D·f‖∞.
// That says too little of x where elements of x are small in units of their rows. There r in
// double-double gives a correction d, and with η, a bound of what corrections shrink by,
//   |x − A⁻¹·b|_i <= |d_i| + D_i·η/(1 − η)·max_j |d_j|/D_j;
// d is then added to x as long as that is halved (as of sparse systems: sparse_refinement.cpp).
// A whose elements are near the ends of the range is solved as 2^(−k)·A, k even, and a column of B
// likewise; what is certified is x as it was rounded on its way back.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/index.hpp"
#include "cholesky/dense_system.hpp"
#include "kernels/dense/host_residual.hpp"
#include "scalar/complex.hpp"
#include "scalar/safe_range.hpp"
#include "session/report.hpp"
#include "strata/cholesky.hpp"

namespace strata {
namespace {

template <class T, class A, class B>
void check_solve_shapes(MatrixView<const A> a, MatrixView<const B> b, MatrixView<T> x) {
  require(b.rows == a.rows, ErrorKind::misuse, "solve",
          "a right-hand side of {} rows does not fit a {} by {} matrix", b.rows, a.rows, a.cols);
  require(x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse, "solve",
          "a solution of {} by {} does not fit a right-hand side of {} by {}", x.rows, x.cols,
          b.rows, b.cols);
}

/// A system in a range where neither factor nor residuals overflow or lose digits: A as it was
/// given, whatever it is factored in.
template <class A>
struct System {
  using Wide = WideOf<A>;  // of right-hand sides, solutions and residuals

  MatrixView<const A> a;
  MatrixView<const Wide> b;
  std::vector<int> back;  ///< by column: x times 2 to this is the solution of what was given
  Loss loss;
  GivenTriangles given = GivenTriangles::lower;

  /// R ← R − E·X of elements that mirror each other and differ.
  void subtract_differences(MatrixView<const Wide> x, MatrixView<Wide> r) const {
    if (given == GivenTriangles::both) subtract_asymmetry(a, x, r);
  }
};

/// What is known of a solution, which is of W, double or std::complex<double>.
template <class W>
struct Measured {
  std::vector<W> r;           ///< b − A·x: n × nrhs
  std::vector<double> terms;  ///< |A|·|x| + |b|: n × nrhs
  double normwise = 0;
  double componentwise = 0;
  double condition_norm = 0;  ///< ‖S‖∞
};

template <class A>
Measured<WideOf<A>> measure(const System<A>& system, MatrixView<const WideOf<A>> x,
                            const std::vector<double>& scale) {
  const std::int64_t n = x.rows;
  const std::int64_t ld = std::max<std::int64_t>(n, 1);
  Measured<WideOf<A>> m;
  for (std::int64_t j = 0; j < x.cols; ++j)
    m.r.insert(m.r.end(), system.b.column(j), system.b.column(j) + n);
  const MatrixView<WideOf<A>> r{m.r.data(), n, x.cols, ld};
  const MatrixView<const WideOf<A>> residual = r;
  symmetric_residual(system.a, x, r);
  system.subtract_differences(x, r);
  // |A|·[|x|, ones, diag(A)^(−1/2)]
  DenseBlock vectors(n, x.cols + 2);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < n; ++i) vectors.column(j)[i] = std::abs(x(i, j));
  std::fill_n(vectors.column(x.cols), n, 1.0);
  std::copy(scale.begin(), scale.end(), vectors.column(x.cols + 1));
  DenseBlock sums(n, x.cols + 2);
  symmetric_magnitudes(system.a, std::as_const(vectors).view(), sums.view());
  for (std::int64_t i = 0; i < n; ++i)
    m.condition_norm = std::max(m.condition_norm, scale[at(i)] * sums.column(x.cols + 1)[i]);
  m.terms.assign(sums.column(0), sums.column(0) + n * x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < n; ++i) m.terms[at(i + j * n)] += std::abs(system.b(i, j));
  m.normwise = backward_error(norm_inf(n, sums.column(x.cols)), system.b, x, residual);
  m.componentwise = componentwise_backward_error(residual, {m.terms.data(), n, x.cols, ld});
  return m;
}

/// x as the caller will have it: 2^back·x in T may have fewer digits, or be no number.
template <class T>
void round_to_range(const std::vector<int>& back, MatrixView<WideOf<T>> x) {
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const int exponent = back[at(j)];
    if (exponent == 0 && std::is_same_v<T, WideOf<T>>) continue;
    for (std::int64_t i = 0; i < x.rows; ++i)
      x(i, j) = times_power(static_cast<WideOf<T>>(static_cast<T>(times_power(x(i, j), exponent))),
                            -exponent);
  }
}

/// A⁻¹·B by a factor in T, columns of B in the middle of the range of T.
template <class T>
OwnedColumns<WideOf<T>> solved(CholeskyFactor& factor, const std::vector<WideOf<T>>& b,
                               std::int64_t columns, SolveResult& result) {
  const std::int64_t n = factor.n();
  OwnedColumns<T> d{n, columns};
  std::vector<int> exponent(at(columns));
  for (std::int64_t j = 0; j < columns; ++j) {
    exponent[at(j)] = exponent_out_of_range(norm_inf(n, b.data() + j * n), element_of<T>);
    for (std::int64_t i = 0; i < n; ++i)
      d.view()(i, j) = static_cast<T>(times_power(b[at(i + j * n)], -exponent[at(j)]));
  }
  accumulate(result.solve, factor.solve(d.view()));
  OwnedColumns<WideOf<T>> x{n, columns};
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      x.view()(i, j) = times_power(static_cast<WideOf<T>>(d.view()(i, j)), exponent[at(j)]);
  return x;
}

/// One step of refinement, kept where it is better. Returns the steps that were kept.
template <class T, class A>
int refine(CholeskyFactor& factor, const System<A>& system, MatrixView<WideOf<T>> x,
           const std::vector<double>& scale, Measured<WideOf<T>>& now, SolveResult& result) {
  using W = WideOf<T>;
  OwnedColumns<W> better = solved<T>(factor, now.r, x.cols, result);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i) better.view()(i, j) += x(i, j);
  round_to_range<T>(system.back, better.view());
  Measured<W> next = measure(system, std::as_const(better).view(), scale);
  constexpr double kEnough = 4.0 * std::numeric_limits<RealOf<T>>::epsilon();
  const bool sooner = next.normwise < now.normwise && next.normwise > kEnough;
  const bool finer =
      next.normwise <= std::max(now.normwise, kEnough) && next.componentwise < now.componentwise;
  if (!sooner && !finer) return 0;
  copy_columns<W, W>(std::as_const(better).view(), x);
  now = std::move(next);
  return 1;
}

/// The bound of the head of this file by column, relative to ‖x‖∞.
template <class W>
std::vector<double> forward_bounds(const Measured<W>& m, MatrixView<const W> x,
                                   const std::vector<double>& scale, double inverse_norm) {
  const std::int64_t n = x.rows;
  const double roundings = kRoundings<W> * static_cast<double>(n + 2);
  const double gamma = roundings * 0x1p-53;
  const double lost = roundings * std::numeric_limits<double>::denorm_min();
  const double largest_scale = norm_inf(n, scale.data());
  std::vector<double> bounds;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double residual = 0;
    double size = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::size_t k = at(i + j * n);
      residual = std::max(residual, scale[at(i)] * (std::abs(m.r[k]) + gamma * m.terms[k] + lost));
      size = std::max(size, std::abs(x(i, j)));
    }
    const double bound = largest_scale * inverse_norm * residual;
    bounds.push_back(bound > 0 ? bound / size : 0);
  }
  return bounds;
}

/// What the bounds of the columns leave out: D_i·‖S⁻¹‖∞·‖lost, scaled‖∞·max_j |x_j|/D_j.
template <class W>
void add_loss(const Loss& loss, MatrixView<const W> x, const std::vector<double>& scale,
              double inverse_norm, std::vector<double>& bounds) {
  if (loss.scaled_norm == 0) return;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double size = 0;
    for (std::int64_t i = 0; i < x.rows; ++i)
      size = std::max(size, std::abs(x(i, j)) / scale[at(i)]);
    if (size > 0)
      bounds[at(j)] += norm_inf(x.rows, scale.data()) * inverse_norm * loss.scaled_norm *
                       (size / norm_inf(x.rows, x.column(j)));
  }
}

/// Columns of which too little is known, with residuals of twice the digits.
template <class T, class A>
class NearerSolution {
 public:
  using W = WideOf<T>;
  using Columns = OwnedColumns<W>;

  /// `contraction`: a bound of what corrections by the factor shrink by.
  NearerSolution(CholeskyFactor& factor, const System<A>& system, const std::vector<double>& scale,
                 double contraction, SolveResult& result)
      : factor_(factor),
        system_(system),
        scale_(scale),
        contraction_(contraction),
        result_(result) {}

  /// One column of B and its x; the bound of its error, which was `bound`. Counts the steps.
  double column(std::int64_t j, MatrixView<W> x, double bound, int& steps) {
    constexpr int kStepsMax = 20;
    const MatrixView<const W> b = system_.b.block(0, j, x.rows, 1);
    const std::vector<int> back{system_.back[at(j)]};
    Columns d = correction(b, x);
    double shrinks = contraction_;
    bound = std::min(bound, bound_of(d, x, shrinks));
    while (bound > solution_error_wanted(element_of<T>) && std::isfinite(bound) &&
           steps < kStepsMax) {
      Columns next{x.rows, 1};
      for (std::int64_t i = 0; i < x.rows; ++i) next.view()(i, 0) = x(i, 0) + d.view()(i, 0);
      round_to_range<T>(back, next.view());
      Columns left = correction(b, std::as_const(next).view());
      if (size_of(d) > 8 * double{std::numeric_limits<RealOf<T>>::epsilon()} * size_of(next))
        shrinks = std::max(shrinks, 2 * size_of(left) / size_of(d));
      const double nearer = bound_of(left, std::as_const(next).view(), shrinks);
      if (!(nearer < bound / 2)) break;
      copy_columns<W, W>(std::as_const(next).view(), x);
      d = std::move(left);
      bound = nearer;
      ++steps;
    }
    return bound;
  }

 private:
  Columns correction(MatrixView<const W> b, MatrixView<const W> x) {
    std::vector<W> r(at(x.rows));
    const MatrixView<W> residual{r.data(), x.rows, 1, std::max<std::int64_t>(x.rows, 1)};
    symmetric_residual_dd(system_.a, b, x, residual);
    system_.subtract_differences(x, residual);
    return solved<T>(factor_, r, 1, result_);
  }
  /// max |v_i|/D_i.
  [[nodiscard]] double size_of(const Columns& v) const {
    double most = 0;
    for (std::size_t i = 0; i < scale_.size(); ++i)
      most = std::max(most, std::abs(v.values[i]) / scale_[i]);
    return most;
  }
  [[nodiscard]] double bound_of(const Columns& d, MatrixView<const W> x, double shrinks) const {
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    if (!(shrinks < 0.9)) return kUnknown;
    const double spread = shrinks / (1 - shrinks) * size_of(d);
    double error = 0;
    for (std::size_t i = 0; i < scale_.size(); ++i)
      error = std::max(error, std::abs(d.values[i]) * (1 + 0x1p-52) + spread * scale_[i]);
    const double forward = error == 0 ? 0 : error / norm_inf(x.rows, x.data);
    return std::isnan(forward) ? kUnknown : forward;
  }

  CholeskyFactor& factor_;
  const System<A>& system_;
  const std::vector<double>& scale_;
  double contraction_;
  SolveResult& result_;
};

template <class T, class A>
void certify(CholeskyFactor& factor, const System<A>& system, MatrixView<WideOf<T>> x,
             SolveResult& result) {
  using W = WideOf<T>;
  Certificate& c = result.certificate;
  const std::vector<double> scale = unit_scale(system.a);
  round_to_range<T>(system.back, x);
  Measured<W> m = measure<A>(system, x, scale);
  // A Cholesky solve is backward stable in the norm; what is left to gain is worth a step only
  // above a few ulps, row by row above what sums of n terms have.
  const double ulp = std::numeric_limits<RealOf<T>>::epsilon();
  if (m.normwise > 4 * ulp ||
      m.componentwise > std::sqrt(static_cast<double>(std::max<std::int64_t>(x.rows, 16))) * ulp)
    c.refinement_steps = refine<T>(factor, system, x, scale, m, result);
  const double inverse_norm = scaled_inverse_norm<T>(factor, scale, result.solve);
  c.scaled_condition = x.rows == 0 ? 1 : m.condition_norm * inverse_norm;
  // The factor's S⁻¹ is that of a matrix nearby.
  const double asymmetry =
      system.given == GivenTriangles::both ? scaled_asymmetry(system.a, scale) : 0;
  const double nearby = 2 * c.scaled_condition * (kRoundings<T> * ulp + asymmetry);
  const double inflated =
      nearby < 1 ? inverse_norm / (1 - nearby) : std::numeric_limits<double>::infinity();
  std::vector<double> bounds = forward_bounds<W>(m, x, scale, inflated);
  NearerSolution<T, A> nearer(factor, system, scale, nearby, result);
  bool changed = false;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double& bound = bounds[at(j)];
    if (bound <= solution_error_wanted(element_of<T>) || std::isnan(m.normwise) ||
        numerically_singular(c.scaled_condition, element_of<T>))
      continue;
    int steps = 0;
    bound = nearer.column(j, x.block(0, j, x.rows, 1), bound, steps);
    changed = changed || steps > 0;
    c.refinement_steps = std::max(c.refinement_steps, steps);
  }
  if (changed) m = measure<A>(system, x, scale);
  add_loss<W>(system.loss, x, scale, inflated, bounds);
  c.backward_error = m.normwise + system.loss.relative;
  c.componentwise_backward_error = m.componentwise + system.loss.relative;
  c.forward_error = bounds.empty() ? 0 : *std::max_element(bounds.begin(), bounds.end());
  if (std::isnan(c.backward_error)) c.forward_error = std::numeric_limits<double>::infinity();
}

/// What is solved, in a range where that can be done, and the memory of what had to be copied: A in
/// the range of T as it was given, and in T.
template <class T, class A>
struct Scaled {
  using W = WideOf<T>;

  OwnedColumns<A> near_a;
  OwnedColumns<T> narrow_a;
  OwnedColumns<W> near_b;
  int exponent = 0;  ///< A is 2 to this times what is factored
  System<A> system;

  template <class B>
  Scaled(MatrixView<const A> a, MatrixView<const B> b, GivenTriangles given)
      : exponent(exponent_out_of_range(largest_diagonal(a), element_of<T>)),
        system{a, {}, std::vector<int>(at(b.cols), -exponent), {}, given} {
    if (exponent != 0) {
      near_a = divided(a, exponent, given);
      system.a = std::as_const(near_a).view();
      system.loss = loss_of(a, system.a, exponent);
    }
    near_b = {b.rows, b.cols};
    copy_columns<B, W>(b, near_b.view());
    system.b = near_b.view();
    for (std::int64_t j = 0; j < b.cols; ++j) {
      const int of_column =
          exponent_out_of_range(norm_inf(b.rows, near_b.view().column(j)), element_of<T>);
      if (of_column == 0) continue;
      system.back[at(j)] += of_column;
      for (std::int64_t i = 0; i < b.rows; ++i)
        near_b.view()(i, j) = times_power(near_b.view()(i, j), -of_column);
    }
  }

  /// What is factored.
  [[nodiscard]] MatrixView<const T> factored() {
    if constexpr (std::is_same_v<T, A>) {
      return system.a;
    } else {
      narrow_a = {system.a.rows, system.a.cols};
      for (std::int64_t j = 0; j < system.a.cols; ++j)
        for (std::int64_t i = j; i < system.a.rows; ++i)
          narrow_a.view()(i, j) = static_cast<T>(system.a(i, j));
      return std::as_const(narrow_a).view();
    }
  }
};

template <class T, class A, class B>
SolveResult solve_system(MatrixView<const A> a, MatrixView<const B> b, MatrixView<T> x,
                         const Options& options, GivenTriangles given) {
  const auto start = std::chrono::steady_clock::now();
  check_solve_shapes(a, b, x);
  Scaled<T, A> scaled(a, b, given);
  const System<A>& system = scaled.system;
  SolveResult result;
  CholeskyFactor factor = cholesky(scaled.factored(), options);
  result.factor = factor.report();
  FactorInfo& info = result.certificate.factor;
  info = factor.info();
  if (scaled.exponent != 0) {
    info.bad_pivot = std::scalbn(info.bad_pivot, scaled.exponent);
    info.log_determinant +=
        static_cast<double>(scaled.exponent) * static_cast<double>(a.rows) * std::log(2.0);
  }
  result.certificate.precision = element_of<T>;
  if (info.ok) {
    OwnedColumns<WideOf<T>> y = solved<T>(factor, scaled.near_b.values, b.cols, result);
    certify<T>(factor, system, y.view(), result);
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t i = 0; i < b.rows; ++i)
        x(i, j) = static_cast<T>(times_power(y.view()(i, j), system.back[at(j)]));
  }
  result.certificate.bytes_moved = result.factor.traffic.total() + result.solve.traffic.total();
  result.certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

double singular_condition(Element precision) noexcept {
  return element_of_parts(precision) == Element::fp32 ? 0x1p21 : 0x1p50;
}

bool numerically_singular(double condition, Element precision) noexcept {
  return !(condition < singular_condition(precision));
}

double solution_error_wanted(Element precision) noexcept {
  return element_of_parts(precision) == Element::fp32 ? 0.1 : 1e-6;
}

SolveResult solve(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> x,
                  const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}
SolveResult solve(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> x,
                  const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}

SolveResult solve(MatrixView<const double> a, MatrixView<const double> b, MatrixView<float> x,
                  const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}
SolveResult solve(MatrixView<const float> a, MatrixView<const double> b, MatrixView<float> x,
                  const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}

namespace {
using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;
}  // namespace

SolveResult solve(MatrixView<const Complex128> a, MatrixView<const Complex128> b,
                  MatrixView<Complex128> x, const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}
SolveResult solve(MatrixView<const Complex64> a, MatrixView<const Complex64> b,
                  MatrixView<Complex64> x, const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}
SolveResult solve(MatrixView<const Complex128> a, MatrixView<const Complex128> b,
                  MatrixView<Complex64> x, const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}
SolveResult solve(MatrixView<const Complex64> a, MatrixView<const Complex128> b,
                  MatrixView<Complex64> x, const Options& options, GivenTriangles given) {
  return solve_system(a, b, x, options, given);
}

}  // namespace strata
