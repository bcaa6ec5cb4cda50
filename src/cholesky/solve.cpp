// Dense systems, solved and certified: solve() of strata/cholesky.hpp.
//
// Method: Cholesky, one step of refinement where it is worth it, and then the certificate, all of
// it from the residual r of the x that is handed back, in fp64, and t = |A|·|x| + |b|. Rounding in
// r is at most γ·t, γ = (n + 2)·2⁻⁵³, so with D = diag(A)^(−1/2), S = D·A·D and f = |r| + γ·t
//   |x − A⁻¹·b|_i <= D_i·‖S⁻¹‖∞·‖D·f‖∞.
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
#include "cholesky/inverse_norm.hpp"
#include "kernels/host_residual.hpp"
#include "scalar/safe_range.hpp"
#include "session/report.hpp"
#include "strata/cholesky.hpp"

namespace strata {
namespace {

template <class T>
struct OwnedColumns {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<T> values = std::vector<T>(at(rows * cols));

  [[nodiscard]] MatrixView<T> view() {
    return {values.data(), rows, cols, std::max<std::int64_t>(rows, 1)};
  }
};

template <class From, class To>
void copy_columns(MatrixView<const From> from, MatrixView<To> to) {
  for (std::int64_t j = 0; j < from.cols; ++j)
    std::transform(from.column(j), from.column(j) + from.rows, to.column(j),
                   [](From value) { return static_cast<To>(value); });
}

/// 2^(−exponent)·A, its lower triangle.
template <class T>
OwnedColumns<T> divided(MatrixView<const T> a, int exponent) {
  OwnedColumns<T> copy{a.rows, a.cols};
  for (std::int64_t j = 0; j < a.cols; ++j)
    for (std::int64_t i = j; i < a.rows; ++i) copy.view()(i, j) = std::scalbn(a(i, j), -exponent);
  return copy;
}

template <class T>
void check_solve_shapes(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x) {
  require(b.rows == a.rows, ErrorKind::misuse, "solve",
          "a right-hand side of {} rows does not fit a {} by {} matrix", b.rows, a.rows, a.cols);
  require(x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse, "solve",
          "a solution of {} by {} does not fit a right-hand side of {} by {}", x.rows, x.cols,
          b.rows, b.cols);
}

/// A system in a range where neither factor nor residuals overflow or lose digits.
template <class T>
struct System {
  MatrixView<const T> a;
  MatrixView<const T> b;
  std::vector<int> back;  ///< by column: x times 2 to this is the solution of what was given
};

/// What is known of a solution.
template <class T>
struct Measured {
  std::vector<double> r, terms;  ///< b − A·x, |A|·|x| + |b|: n × nrhs
  double normwise = 0;
  double componentwise = 0;
  double condition_norm = 0;  ///< ‖S‖∞
};

template <class T>
Measured<T> measure(const System<T>& system, MatrixView<const T> x,
                    const std::vector<double>& scale) {
  const std::int64_t n = x.rows;
  const std::int64_t ld = std::max<std::int64_t>(n, 1);
  Measured<T> m;
  for (std::int64_t j = 0; j < x.cols; ++j)
    m.r.insert(m.r.end(), system.b.column(j), system.b.column(j) + n);
  const MatrixView<double> r{m.r.data(), n, x.cols, ld};
  symmetric_residual(system.a, x, r);
  // |A|·[|x|, ones, diag(A)^(−1/2)]
  DenseBlock vectors(n, x.cols + 2);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      vectors.column(j)[i] = std::abs(static_cast<double>(x(i, j)));
  std::fill_n(vectors.column(x.cols), n, 1.0);
  std::copy(scale.begin(), scale.end(), vectors.column(x.cols + 1));
  DenseBlock sums(n, x.cols + 2);
  symmetric_magnitudes(system.a, std::as_const(vectors).view(), sums.view());
  for (std::int64_t i = 0; i < n; ++i)
    m.condition_norm = std::max(m.condition_norm, scale[at(i)] * sums.column(x.cols + 1)[i]);
  m.terms.assign(sums.column(0), sums.column(0) + n * x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      m.terms[at(i + j * n)] += std::abs(static_cast<double>(system.b(i, j)));
  m.normwise = backward_error(norm_inf(n, sums.column(x.cols)), system.b, x, r);
  m.componentwise = componentwise_backward_error(r, {m.terms.data(), n, x.cols, ld});
  return m;
}

/// x as the caller will have it: 2^back·x may have fewer digits, or be no number.
template <class T>
void round_to_range(const System<T>& system, MatrixView<T> x) {
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const int back = system.back[at(j)];
    if (back == 0) continue;
    for (std::int64_t i = 0; i < x.rows; ++i)
      x(i, j) = std::scalbn(std::scalbn(x(i, j), back), -back);
  }
}

/// One step of refinement, kept where it is better. Returns the steps that were kept.
template <class T>
int refine(CholeskyFactor& factor, const System<T>& system, MatrixView<T> x,
           const std::vector<double>& scale, Measured<T>& now, SolveResult& result) {
  OwnedColumns<T> better{x.rows, x.cols, {now.r.begin(), now.r.end()}};
  accumulate(result.solve, factor.solve(better.view()));
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i) better.view()(i, j) += x(i, j);
  round_to_range(system, better.view());
  Measured<T> next = measure<T>(system, better.view(), scale);
  constexpr double kEnough = 4.0 * std::numeric_limits<T>::epsilon();
  const bool sooner = next.normwise < now.normwise && next.normwise > kEnough;
  const bool finer =
      next.normwise <= std::max(now.normwise, kEnough) && next.componentwise < now.componentwise;
  if (!sooner && !finer) return 0;
  copy_columns<T, T>(better.view(), x);
  now = std::move(next);
  return 1;
}

/// ‖S⁻¹‖∞ by the factor.
template <class T>
double scaled_inverse_norm(CholeskyFactor& factor, const std::vector<double>& scale,
                           SolveResult& result) {
  std::vector<double> root;
  for (const double d : scale) root.push_back(1 / d);
  return estimate_scaled_inverse_norm(root, [&](MatrixView<double> v) {
    if constexpr (std::is_same_v<T, double>) {
      accumulate(result.solve, factor.solve(v));
    } else {
      OwnedColumns<T> narrow{v.rows, v.cols};
      copy_columns<double, T>(v, narrow.view());
      accumulate(result.solve, factor.solve(narrow.view()));
      copy_columns<T, double>(narrow.view(), v);
    }
  });
}

/// The bound of the head of this file, relative to ‖x‖∞.
template <class T>
double forward_bound(const Measured<T>& m, MatrixView<const T> x, const std::vector<double>& scale,
                     double inverse_norm) {
  const std::int64_t n = x.rows;
  const double gamma = static_cast<double>(n + 2) * 0x1p-53;
  const double lost = static_cast<double>(n + 2) * std::numeric_limits<double>::denorm_min();
  const double largest_scale = norm_inf(n, scale.data());
  double worst = 0;
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double residual = 0;
    double size = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::size_t k = at(i + j * n);
      residual = std::max(residual, scale[at(i)] * (std::abs(m.r[k]) + gamma * m.terms[k] + lost));
      size = std::max(size, std::abs(static_cast<double>(x(i, j))));
    }
    const double bound = largest_scale * inverse_norm * residual;
    if (bound > 0) worst = std::max(worst, bound / size);
  }
  return worst;
}

template <class T>
void certify(CholeskyFactor& factor, const System<T>& system, MatrixView<T> x,
             SolveResult& result) {
  Certificate& c = result.certificate;
  std::vector<double> scale;  // diag(A)^(−1/2)
  for (std::int64_t i = 0; i < x.rows; ++i)
    scale.push_back(1 / std::sqrt(static_cast<double>(system.a(i, i))));
  round_to_range(system, x);
  Measured<T> m = measure<T>(system, x, scale);
  // A Cholesky solve is backward stable in the norm; what is left to gain is worth a step only
  // above a few ulps, row by row above what sums of n terms have.
  const double ulp = std::numeric_limits<T>::epsilon();
  if (m.normwise > 4 * ulp ||
      m.componentwise > std::sqrt(static_cast<double>(std::max<std::int64_t>(x.rows, 16))) * ulp)
    c.refinement_steps = refine(factor, system, x, scale, m, result);
  c.backward_error = m.normwise;
  c.componentwise_backward_error = m.componentwise;
  const double inverse_norm = scaled_inverse_norm<T>(factor, scale, result);
  c.scaled_condition = x.rows == 0 ? 1 : m.condition_norm * inverse_norm;
  // The factor's S⁻¹ is that of a matrix nearby.
  const double nearby = 2 * c.scaled_condition * std::numeric_limits<T>::epsilon();
  const double inflated =
      nearby < 1 ? inverse_norm / (1 - nearby) : std::numeric_limits<double>::infinity();
  c.forward_error = forward_bound<T>(m, x, scale, inflated);
  if (std::isnan(c.backward_error)) c.forward_error = std::numeric_limits<double>::infinity();
}

/// The largest element of a positive definite matrix.
template <class T>
double largest_diagonal(MatrixView<const T> a) {
  double largest = 0;
  for (std::int64_t i = 0; i < std::min(a.rows, a.cols); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a(i, i))));
  return largest;
}

/// What is solved, in a range where that can be done, and the memory of what had to be copied.
template <class T>
struct Scaled {
  OwnedColumns<T> near_a, near_b;
  int exponent = 0;  ///< A is 2 to this times what is factored
  System<T> system;

  Scaled(MatrixView<const T> a, MatrixView<const T> b)
      : exponent(exponent_out_of_range(largest_diagonal(a), element_of<T>)),
        system{a, b, std::vector<int>(at(b.cols), -exponent)} {
    if (exponent != 0) {
      near_a = divided(a, exponent);
      system.a = near_a.view();
    }
    for (std::int64_t j = 0; j < b.cols; ++j) {
      const std::vector<double> column(b.column(j), b.column(j) + b.rows);
      const int of_column = exponent_out_of_range(norm_inf(b.rows, column.data()), element_of<T>);
      if (of_column == 0) continue;
      if (near_b.values.empty()) {
        near_b = {b.rows, b.cols};
        copy_columns<T, T>(b, near_b.view());
        system.b = near_b.view();
      }
      system.back[at(j)] += of_column;
      for (std::int64_t i = 0; i < b.rows; ++i)
        near_b.view()(i, j) = std::scalbn(b(i, j), -of_column);
    }
  }
};

template <class T>
SolveResult solve_system(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x,
                         const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  check_solve_shapes(a, b, x);
  const Scaled<T> scaled(a, b);
  const System<T>& system = scaled.system;
  SolveResult result;
  CholeskyFactor factor = cholesky(system.a, options);
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
    OwnedColumns<T> y{b.rows, b.cols};
    copy_columns<T, T>(system.b, y.view());
    result.solve = factor.solve(y.view());
    certify<T>(factor, system, y.view(), result);
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t i = 0; i < b.rows; ++i)
        x(i, j) = std::scalbn(y.view()(i, j), system.back[at(j)]);
  }
  result.certificate.bytes_moved = result.factor.traffic.total() + result.solve.traffic.total();
  result.certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

double singular_condition(Element precision) noexcept {
  return precision == Element::fp32 ? 0x1p21 : 0x1p50;
}

bool numerically_singular(double condition, Element precision) noexcept {
  return !(condition < singular_condition(precision));
}

SolveResult solve(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> x,
                  const Options& options) {
  return solve_system(a, b, x, options);
}
SolveResult solve(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> x,
                  const Options& options) {
  return solve_system(a, b, x, options);
}

}  // namespace strata
