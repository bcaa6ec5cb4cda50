// The public calls: see strata/cholesky.hpp.

#include "strata/cholesky.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/check.hpp"
#include "cholesky/tile_factor.hpp"
#include "kernels/host_residual.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"

namespace strata {

struct CholeskyFactor::State {
  TileFactor tiles;
};

CholeskyFactor::CholeskyFactor(std::unique_ptr<State> state) : state_(std::move(state)) {}
CholeskyFactor::CholeskyFactor(CholeskyFactor&&) noexcept = default;
CholeskyFactor& CholeskyFactor::operator=(CholeskyFactor&&) noexcept = default;
CholeskyFactor::~CholeskyFactor() = default;

std::int64_t CholeskyFactor::n() const noexcept { return state_->tiles.problem().n; }
const FactorInfo& CholeskyFactor::info() const noexcept { return state_->tiles.info(); }
const RunReport& CholeskyFactor::report() const noexcept { return state_->tiles.report(); }

namespace {

template <class T>
std::unique_ptr<CholeskyFactor::State> factor_view(MatrixView<const T> a, const Options& options) {
  require(a.rows == a.cols, ErrorKind::misuse, "cholesky", "a {} by {} matrix is not square",
          a.rows, a.cols);
  require(a.rows >= 0 && a.ld >= std::max<std::int64_t>(a.rows, 1), ErrorKind::misuse, "cholesky",
          "a leading dimension of {} is too small for {} rows", a.ld, a.rows);
  require(a.data != nullptr || a.rows == 0, ErrorKind::misuse, "cholesky",
          "the matrix of order {} has no data", a.rows);
  CholeskyProblem problem;
  problem.n = a.rows;
  problem.precision = element_of<T>;
  auto state =
      std::make_unique<CholeskyFactor::State>(CholeskyFactor::State{TileFactor(problem, options)});
  (void)state->tiles.factor_stored(source_of_view<T>(a.data, a.ld, true));
  return state;
}

/// B − A·X in fp64.
template <class T>
std::vector<double> residual_of(MatrixView<const T> a, MatrixView<const T> b,
                                MatrixView<const T> x) {
  std::vector<double> r;
  r.reserve(static_cast<std::size_t>(b.size()));
  for (std::int64_t j = 0; j < b.cols; ++j) r.insert(r.end(), b.column(j), b.column(j) + b.rows);
  symmetric_residual(a, x, {r.data(), b.rows, b.cols, std::max<std::int64_t>(b.rows, 1)});
  return r;
}

template <class T>
double backward_error_of(double norm_a, MatrixView<const T> b, MatrixView<const T> x,
                         const std::vector<double>& r) {
  return backward_error(norm_a, b, x,
                        {r.data(), b.rows, b.cols, std::max<std::int64_t>(b.rows, 1)});
}

template <class T>
void copy_columns(MatrixView<const T> from, MatrixView<T> to) {
  for (std::int64_t j = 0; j < from.cols; ++j) std::copy_n(from.column(j), from.rows, to.column(j));
}

template <class T>
void check_solve_shapes(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x) {
  require(b.rows == a.rows, ErrorKind::misuse, "solve",
          "a right-hand side of {} rows does not fit a {} by {} matrix", b.rows, a.rows, a.cols);
  require(x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse, "solve",
          "a solution of {} by {} does not fit a right-hand side of {} by {}", x.rows, x.cols,
          b.rows, b.cols);
}

/// A residual, rounded to the precision that its correction is solved in.
template <class T>
std::vector<T> rounded(std::vector<double> r) {
  if constexpr (std::is_same_v<T, double>) return r;
  return {r.begin(), r.end()};
}

/// One step of refinement; keeps the better solution. Returns the steps that were kept.
template <class T>
int refine(CholeskyFactor& factor, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x,
           double norm_a, std::vector<double> residual, SolveResult& result) {
  const std::int64_t ld = std::max<std::int64_t>(b.rows, 1);
  std::vector<T> r = rounded<T>(std::move(residual));
  accumulate(result.solve, factor.solve(MatrixView<T>{r.data(), b.rows, b.cols, ld}));
  for (std::int64_t j = 0; j < x.cols; ++j) {
    for (std::int64_t i = 0; i < x.rows; ++i) r[static_cast<std::size_t>(i + j * ld)] += x(i, j);
  }
  const MatrixView<const T> better{r.data(), b.rows, b.cols, ld};
  const double error = backward_error_of(norm_a, b, better, residual_of(a, b, better));
  if (!(error < result.certificate.backward_error)) return 0;
  result.certificate.backward_error = error;
  copy_columns(better, x);
  return 1;
}

template <class T>
SolveResult solve_system(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x,
                         const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  check_solve_shapes(a, b, x);
  SolveResult result;
  CholeskyFactor factor = cholesky(a, options);
  result.factor = factor.report();
  result.certificate.factor = factor.info();
  result.certificate.precision = element_of<T>;
  if (factor.info().ok) {
    copy_columns(b, x);
    result.solve = factor.solve(x);
    const double norm_a = symmetric_norm_inf(a);
    const MatrixView<const T> solution = x;
    std::vector<double> r = residual_of(a, b, solution);
    result.certificate.backward_error = backward_error_of(norm_a, b, solution, r);
    // A Cholesky solve is backward stable; what is left to gain is worth a step only above a few
    // ulps.
    if (result.certificate.backward_error > 4.0 * std::numeric_limits<T>::epsilon()) {
      result.certificate.refinement_steps = refine(factor, a, b, x, norm_a, std::move(r), result);
    }
  }
  result.certificate.bytes_moved = result.factor.traffic.total() + result.solve.traffic.total();
  result.certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

RunReport CholeskyFactor::solve(MatrixView<double> b) {
  return state_->tiles.sweep(Sweep::both, b);
}
RunReport CholeskyFactor::solve(MatrixView<float> b) { return state_->tiles.sweep(Sweep::both, b); }
RunReport CholeskyFactor::solve_lower(MatrixView<double> b) {
  return state_->tiles.sweep(Sweep::forward, b);
}
void CholeskyFactor::copy_lower(MatrixView<double> out) const { state_->tiles.copy_lower(out); }
void CholeskyFactor::copy_lower(MatrixView<float> out) const { state_->tiles.copy_lower(out); }

CholeskyFactor cholesky(MatrixView<const double> a, const Options& options) {
  return CholeskyFactor(factor_view(a, options));
}
CholeskyFactor cholesky(MatrixView<const float> a, const Options& options) {
  return CholeskyFactor(factor_view(a, options));
}

SolveResult solve(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> x,
                  const Options& options) {
  return solve_system(a, b, x, options);
}
SolveResult solve(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> x,
                  const Options& options) {
  return solve_system(a, b, x, options);
}

RunReport simulate_cholesky(std::int64_t n, const Machine& machine, const Options& options,
                            Element precision, bool generated) {
  require(n >= 0, ErrorKind::misuse, "cholesky", "a matrix cannot be of order {}", n);
  CholeskyProblem problem;
  problem.n = n;
  problem.precision = precision;
  problem.point_dimensions = generated ? 2 : 0;
  PlannedRun planned = plan_path(problem, machine, options);
  check_host_memory(planned, options, "cholesky");
  return make_simulated_report(std::move(planned));
}

}  // namespace strata
