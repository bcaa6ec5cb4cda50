// The public calls: see strata/cholesky.hpp.

#include "strata/cholesky.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "cholesky/tile_factor.hpp"
#include "scalar/complex.hpp"
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

/// The diagonal of a Hermitian matrix is real. That of a complex symmetric one need not be; it is
/// no positive definite matrix, and the lower triangle alone would not show that.
template <class T>
void require_real_diagonal(MatrixView<const T> a) {
  if constexpr (is_complex_v<T>) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      require(
          imaginary_part(a(i, i)) == 0, ErrorKind::input, "cholesky",
          "element ({}, {}), counted from 0, has imaginary part {}: the diagonal of a Hermitian "
          "matrix is real",
          i, i, imaginary_part(a(i, i)));
    }
  }
}

/// On a machine with GPUs `auto` is the CPU for complex numbers: GPUs have no kernels for them.
template <class T>
Options options_for(Options options) {
  if (is_complex_v<T> && (options.devices.empty() || options.devices == "auto"))
    options.devices = "host";
  return options;
}

template <class T>
std::unique_ptr<CholeskyFactor::State> factor_view(MatrixView<const T> a, const Options& options) {
  require(a.rows == a.cols, ErrorKind::misuse, "cholesky", "a {} by {} matrix is not square",
          a.rows, a.cols);
  require(a.rows >= 0 && a.ld >= std::max<std::int64_t>(a.rows, 1), ErrorKind::misuse, "cholesky",
          "a leading dimension of {} is too small for {} rows", a.ld, a.rows);
  require(a.data != nullptr || a.rows == 0, ErrorKind::misuse, "cholesky",
          "the matrix of order {} has no data", a.rows);
  require_real_diagonal(a);
  CholeskyProblem problem;
  problem.n = a.rows;
  problem.precision = element_of<T>;
  auto state = std::make_unique<CholeskyFactor::State>(
      CholeskyFactor::State{TileFactor(problem, options_for<T>(options))});
  (void)state->tiles.factor_stored(source_of_view<T>(a.data, a.ld, true));
  return state;
}

}  // namespace

RunReport CholeskyFactor::solve(MatrixView<double> b) {
  return state_->tiles.sweep(Sweep::both, b);
}
RunReport CholeskyFactor::solve(MatrixView<float> b) { return state_->tiles.sweep(Sweep::both, b); }
RunReport CholeskyFactor::solve(MatrixView<std::complex<double>> b) {
  return state_->tiles.sweep(Sweep::both, b);
}
RunReport CholeskyFactor::solve(MatrixView<std::complex<float>> b) {
  return state_->tiles.sweep(Sweep::both, b);
}
RunReport CholeskyFactor::solve_lower(MatrixView<double> b) {
  return state_->tiles.sweep(Sweep::forward, b);
}
void CholeskyFactor::copy_lower(MatrixView<double> out) const { state_->tiles.copy_lower(out); }
void CholeskyFactor::copy_lower(MatrixView<float> out) const { state_->tiles.copy_lower(out); }
void CholeskyFactor::copy_lower(MatrixView<std::complex<double>> out) const {
  state_->tiles.copy_lower(out);
}
void CholeskyFactor::copy_lower(MatrixView<std::complex<float>> out) const {
  state_->tiles.copy_lower(out);
}

CholeskyFactor cholesky(MatrixView<const double> a, const Options& options) {
  return CholeskyFactor(factor_view(a, options));
}
CholeskyFactor cholesky(MatrixView<const float> a, const Options& options) {
  return CholeskyFactor(factor_view(a, options));
}
CholeskyFactor cholesky(MatrixView<const std::complex<double>> a, const Options& options) {
  return CholeskyFactor(factor_view(a, options));
}
CholeskyFactor cholesky(MatrixView<const std::complex<float>> a, const Options& options) {
  return CholeskyFactor(factor_view(a, options));
}

RunReport simulate_cholesky(std::int64_t n, const Machine& machine, const Options& options,
                            Element precision, bool generated) {
  require(n >= 0, ErrorKind::misuse, "cholesky", "a matrix cannot be of order {}", n);
  require(!generated || !is_complex(precision), ErrorKind::misuse, "cholesky",
          "a covariance that is generated is not of {}", to_string(precision));
  CholeskyProblem problem;
  problem.n = n;
  problem.precision = precision;
  problem.point_dimensions = generated ? 2 : 0;
  PlannedRun planned = plan_path(problem, machine, options);
  check_host_memory(planned, options, "cholesky");
  return make_simulated_report(std::move(planned));
}

}  // namespace strata
