// Dense systems, solved and certified: solve() of strata/cholesky.hpp.
//
// Method: Cholesky, one step of refinement where it is worth it, and then the certificate, all of
// it from the residual r of the x that is handed back, in fp64, and t = |A|·|x| + |b|. Rounding in
// r is at most γ·t, γ = (n + 2)·2⁻⁵³ or three times that (kRoundings), so with D = diag(A)^(−1/2),
// S = D·A·D and f = |r| + γ·t
//   |x − A⁻¹·b|_i <= D_i·‖S⁻¹‖∞·‖D·f‖∞.
// That says too little of x where elements of x are small in units of their rows. There r in
// double-double gives a correction d, and with η, a bound of what corrections shrink by,
//   |x − A⁻¹·b|_i <= |d_i| + D_i·η/(1 − η)·max_j |d_j|/D_j + D_i·‖S⁻¹‖∞·‖D·γ₂·t‖∞,
// γ₂ = (n + 2)·2⁻¹⁰³; d is then added to x as long as that is halved (as of sparse systems:
// sparse_refinement.cpp). A whose elements are near the ends of the range is solved as 2^(−k)·A, k
// even, and a column of B likewise; what is certified is x as it was rounded on its way back.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "cholesky/dense_determinant.hpp"
#include "cholesky/dense_factor.hpp"
#include "dense/certified_solution.hpp"
#include "dense/dense_system.hpp"
#include "kernels/dense/host_residual.hpp"
#include "matrix/array_columns.hpp"
#include "scalar/complex.hpp"
#include "scalar/safe_range.hpp"
#include "session/report.hpp"
#include "strata/cholesky.hpp"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

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

  /// R ← B − A·X with twice the digits.
  void long_residual(MatrixView<const Wide> of, MatrixView<const Wide> x,
                     MatrixView<Wide> r) const {
    symmetric_residual_dd(a, of, x, r);
    subtract_differences(x, r);
  }
  /// R ← R − E·X of elements that mirror each other and differ.
  void subtract_differences(MatrixView<const Wide> x, MatrixView<Wide> r) const {
    if (given == GivenTriangles::both) subtract_asymmetry(a, x, r);
  }
};

/// What is known of a solution, and of S on the way.
template <class W>
struct Measured : MeasuredColumns<W> {
  using MeasuredColumns<W>::MeasuredColumns;
  double condition_norm = 0;  ///< ‖S‖∞
  double norm_a = 0;          ///< ‖A‖∞

  [[nodiscard]] double most_normwise() const { return largest_of(this->normwise); }
  [[nodiscard]] double most_componentwise() const { return largest_of(this->componentwise); }
};

template <class A>
Measured<WideOf<A>> measure(const System<A>& system, MatrixView<const WideOf<A>> x,
                            const std::vector<double>& scale) {
  const std::int64_t n = x.rows;
  Measured<WideOf<A>> m(n, x.cols);
  copy_columns<WideOf<A>, WideOf<A>>(system.b, m.r.view());
  symmetric_residual(system.a, x, m.r.view());
  system.subtract_differences(x, m.r.view());
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
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      m.terms.column(j)[i] = sums.column(j)[i] + std::abs(system.b(i, j));
  m.norm_a = norm_inf(n, sums.column(x.cols));
  m.find_errors(m.norm_a, system.b, x);
  return m;
}

/// A⁻¹·B as the factor has it.
template <class W>
using Inverse = std::function<DenseBlockOf<W>(MatrixView<const W> b)>;

/// One step of refinement, kept where it is better. Returns the steps that were kept.
template <class A>
int refine(Element precision, const Inverse<WideOf<A>>& inverse, const System<A>& system,
           MatrixView<WideOf<A>> x, const std::vector<double>& scale, Measured<WideOf<A>>& now) {
  using W = WideOf<A>;
  DenseBlockOf<W> better = inverse(std::as_const(now.r).view());
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i) better.column(j)[i] += x(i, j);
  round_to_range(precision, system.back, better.view());
  Measured<W> next = measure(system, std::as_const(better).view(), scale);
  const double enough = 4 * epsilon_of(precision);
  const double normwise = next.most_normwise();
  const bool sooner = normwise < now.most_normwise() && normwise > enough;
  const bool finer = normwise <= std::max(now.most_normwise(), enough) &&
                     next.most_componentwise() < now.most_componentwise();
  if (!sooner && !finer) return 0;
  copy_columns<W, W>(std::as_const(better).view(), x);
  now = std::move(next);
  return 1;
}

template <class A>
void certify(CholeskyFactor& factor, const Inverse<WideOf<A>>& inverse, const System<A>& system,
             MatrixView<WideOf<A>> x, SolveResult& result) {
  using W = WideOf<A>;
  Certificate& c = result.certificate;
  const std::vector<double> scale = unit_scale(system.a);
  round_to_range(c.precision, system.back, x);
  Measured<W> m = measure<A>(system, x, scale);
  // A Cholesky solve is backward stable in the norm; what is left to gain is worth a step only
  // above a few ulps, row by row above what sums of n terms have.
  const double ulp = epsilon_of(c.precision);
  if (m.most_normwise() > 4 * ulp ||
      m.most_componentwise() >
          std::sqrt(static_cast<double>(std::max<std::int64_t>(x.rows, 16))) * ulp)
    c.refinement_steps = refine<A>(c.precision, inverse, system, x, scale, m);
  const double inverse_norm = scaled_inverse_norm<W>(factor, scale, result.solve);
  c.scaled_condition = x.rows == 0 ? 1 : m.condition_norm * inverse_norm;
  // The factor's S⁻¹ is that of a matrix nearby.
  const double asymmetry =
      system.given == GivenTriangles::both ? scaled_asymmetry(system.a, scale) : 0;
  result.log_determinant_error =
      determinant_error(c.precision, system.a, inverse_norm, system.loss.scaled_norm + asymmetry,
                        factor.info().log_determinant, factor.state().matrix.exponent);
  const double nearby = 2 * c.scaled_condition * (kRoundings<W> * ulp + asymmetry);
  const double inflated = nearby < 1 ? inverse_norm / (1 - nearby) : kErrorUnknown;
  std::vector<double> bounds = forward_bounds<W>(m, x, scale, scale, inflated);
  const auto correction = [&](std::int64_t j, MatrixView<const W> y) {
    DenseBlockOf<W> r(y.rows, 1);
    system.long_residual(system.b.block(0, j, y.rows, 1), y, r.view());
    return inverse(std::as_const(r).view());
  };
  const NearerSolution<W> nearer(c.precision, correction, scale, system.back, nearby);
  if (solve_nearer(nearer, m.normwise, x, bounds, c)) m = measure<A>(system, x, scale);
  if (worth_long_residuals(x.rows, x.cols)) {
    system.long_residual(system.b, x, m.r.view());
    m.hidden = 0;
    m.find_errors(m.norm_a, system.b, x);
  }
  add_rounding<W>(m, x, scale, scale, inflated, bounds);
  add_loss<W>(system.loss, x, scale, inflated, bounds);
  set_errors(m, system.loss, bounds, c);
}

/// What is solved, in a range where that can be done, and the memory of what had to be copied.
template <class A>
struct Scaled {
  using W = WideOf<A>;

  OwnedColumns<A> near_a;
  OwnedColumns<W> near_b;
  System<A> system;

  /// 2^(−exponent)·A is what is factored.
  Scaled(Element precision, MatrixView<const A> a, MatrixView<const W> b, int exponent,
         GivenTriangles given)
      : system{a, {}, std::vector<int>(at(b.cols), -exponent), {}, given} {
    if (exponent != 0) {
      near_a = divided(a, exponent, given);
      system.a = std::as_const(near_a).view();
      system.loss = loss_of(a, system.a, exponent);
    }
    near_b = {b.rows, b.cols};
    copy_columns<W, W>(b, near_b.view());
    system.b = near_b.view();
    for (std::int64_t j = 0; j < b.cols; ++j) {
      const int of_column = exponent_of_column(b.rows, near_b.view().column(j), precision);
      if (of_column == 0) continue;
      system.back[at(j)] += of_column;
      for (std::int64_t i = 0; i < b.rows; ++i)
        near_b.view()(i, j) = times_power(near_b.view()(i, j), -of_column);
    }
  }
};

/// By a factor of A.
template <class T, class A>
SolveResult solve_by(CholeskyFactor& factor, MatrixView<const A> a, MatrixView<const WideOf<A>> b,
                     MatrixView<T> x, GivenTriangles given, Clock::time_point start) {
  using W = WideOf<A>;
  SolveResult result;
  result.factor = factor.report();
  Certificate& c = result.certificate;
  c.factor = factor.info();
  c.precision = element_of<T>;
  if (c.factor.ok) {
    Scaled<A> scaled(c.precision, a, b, factor.state().matrix.exponent, given);
    const System<A>& system = scaled.system;
    const Inverse<W> inverse = [&](MatrixView<const W> v) {
      return solved_in_range<T>(
          [&](MatrixView<T> of) { accumulate(result.solve, solve_scaled(factor, of)); }, v);
    };
    DenseBlockOf<W> y = inverse(system.b);
    certify<A>(factor, inverse, system, y.view(), result);
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t i = 0; i < b.rows; ++i)
        x(i, j) = static_cast<T>(times_power(y.column(j)[i], system.back[at(j)]));
    factor.state().scaled_condition = c.scaled_condition;
    factor.state().log_determinant_error = result.log_determinant_error;
  }
  c.bytes_moved = result.factor.traffic.total() + result.solve.traffic.total();
  c.seconds = seconds_since(start);
  return result;
}

template <class T, class A>
SolveResult solve_system(MatrixView<const A> a, MatrixView<const WideOf<A>> b, MatrixView<T> x,
                         const CholeskyOptions& options, GivenTriangles given) {
  const Clock::time_point start = Clock::now();
  check_solve_shapes(a, b, x);
  CholeskyFactor factor = factor_lower<T>(a, options, StoredUntil::released);
  return solve_by(factor, a, b, x, given, start);
}

template <class T, class A>
SolveResult solve_saved(CholeskyFactor& factor, MatrixView<const A> a,
                        MatrixView<const WideOf<A>> b, MatrixView<T> x, GivenTriangles given) {
  const Clock::time_point start = Clock::now();
  require(factor.info().ok, ErrorKind::misuse, "solve", "there is no factor: {} is no pivot",
          factor.info().bad_pivot);
  require(factor.precision() == element_of<T>, ErrorKind::misuse, "solve",
          "a factor in {} does not solve in {}", to_string(factor.precision()),
          to_string(element_of<T>));
  const std::uint64_t matrix = factor.state().matrix.hash;
  require(matrix != 0, ErrorKind::misuse, "solve",
          "a factor that is not durable in storage does not tell its matrix from others");
  require(a.rows == a.cols && a.rows == factor.n(), ErrorKind::misuse, "solve",
          "a matrix of {} by {} is not that of a factor of order {}", a.rows, a.cols, factor.n());
  check_solve_shapes(a, b, x);
  require(hash_of_lower<T>(a) == matrix, ErrorKind::numerical, "solve",
          "the matrix is not the one that was factored");
  return solve_by(factor, a, b, x, given, start);
}

}  // namespace

SolveResult solve(ConstArrayRef a, ConstArrayRef b, ArrayRef x, const CholeskyOptions& options,
                  GivenTriangles given) {
  return with_system(a, b, x, [&](auto of, auto right, auto out) {
    return solve_system(of, right, out, options, given);
  });
}

SolveResult solve(CholeskyFactor& factor, ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                  GivenTriangles given) {
  return with_system(a, b, x, [&](auto of, auto right, auto out) {
    return solve_saved(factor, of, right, out, given);
  });
}

template <class T>
SolveResult certify_factor(CholeskyFactor& factor, MatrixView<const T> a, GivenTriangles given) {
  const OwnedColumns<WideOf<T>> none{a.rows, 0};
  OwnedColumns<T> no_x{a.rows, 0};
  return solve_by<T>(factor, a, none.view(), no_x.view(), given, Clock::now());
}
template SolveResult certify_factor(CholeskyFactor&, MatrixView<const double>, GivenTriangles);
template SolveResult certify_factor(CholeskyFactor&, MatrixView<const float>, GivenTriangles);
template SolveResult certify_factor(CholeskyFactor&, MatrixView<const std::complex<double>>,
                                    GivenTriangles);
template SolveResult certify_factor(CholeskyFactor&, MatrixView<const std::complex<float>>,
                                    GivenTriangles);

}  // namespace strata
