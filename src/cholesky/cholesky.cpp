// The public calls: see strata/cholesky.hpp.

#include "strata/cholesky.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"
#include "cholesky/dense_factor.hpp"
#include "dense/dense_system.hpp"
#include "matrix/array_columns.hpp"
#include "scalar/complex.hpp"
#include "scalar/safe_range.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"

namespace strata {

CholeskyFactor::CholeskyFactor(std::unique_ptr<State> state) : state_(std::move(state)) {}
CholeskyFactor::CholeskyFactor(CholeskyFactor&&) noexcept = default;
CholeskyFactor& CholeskyFactor::operator=(CholeskyFactor&&) noexcept = default;
CholeskyFactor::~CholeskyFactor() = default;

std::int64_t CholeskyFactor::n() const noexcept { return state_->tiles.problem().n; }
const FactorInfo& CholeskyFactor::info() const noexcept { return state_->info; }
const RunReport& CholeskyFactor::report() const noexcept { return state_->tiles.report(); }
Element CholeskyFactor::precision() const noexcept { return state_->tiles.problem().precision; }
double CholeskyFactor::scaled_condition() const noexcept { return state_->scaled_condition; }
double CholeskyFactor::log_determinant_error() const noexcept {
  return state_->log_determinant_error;
}
StoredParts CholeskyFactor::stored() const { return state_->tiles.stored_count(); }

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

/// Tiles of 2^(−exponent)·A in T.
template <class T, class A>
BlockSource source_of_lower(MatrixView<const A> a, int exponent) {
  if constexpr (std::is_same_v<T, A>) {
    if (exponent == 0) return source_of_view<T>(a.data, a.ld, true);
  }
  return [=](const BlockExtent& extent, std::byte* to) {
    auto* packed = reinterpret_cast<T*>(to);
    for (std::int64_t j = 0; j < extent.cols; ++j) {
      T* column = packed + j * extent.rows;
      const std::int64_t above =
          std::clamp<std::int64_t>(extent.col + j - extent.row, 0, extent.rows);
      std::fill(column, column + above, T(0));
      for (std::int64_t i = above; i < extent.rows; ++i)
        column[i] = static_cast<T>(times_power(a(extent.row + i, extent.col + j), -exponent));
    }
  };
}

template <class T>
void multiply_by_power(int exponent, MatrixView<T> b) {
  for (std::int64_t j = 0; exponent != 0 && j < b.cols; ++j)
    for (std::int64_t i = 0; i < b.rows; ++i) b(i, j) = times_power(b(i, j), exponent);
}

/// In the middle of the range, as its factor is, and back again.
template <class T>
RunReport solve_as_given(CholeskyFactor& factor, MatrixView<T> b) {
  const auto column_of = [&](std::int64_t j) { return b.block(0, j, b.rows, 1); };
  std::vector<int> exponent;
  for (std::int64_t j = 0; j < b.cols; ++j) {
    exponent.push_back(exponent_of_column(b.rows, b.column(j), element_of<T>));
    multiply_by_power(-exponent.back(), column_of(j));
  }
  RunReport report = solve_scaled(factor, b);
  for (std::int64_t j = 0; j < b.cols; ++j)
    multiply_by_power(exponent[at(j)] - factor.state().matrix.exponent, column_of(j));
  return report;
}

template <class T>
void copy_as_given(CholeskyFactor::State& state, MatrixView<T> out) {
  state.tiles.copy_lower(out);
  multiply_by_power(state.matrix.exponent / 2, out);
}

}  // namespace

template <class T, class A>
std::uint64_t hash_of_lower(MatrixView<const A> a) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const std::array<std::int64_t, 2> shape{a.rows, static_cast<std::int64_t>(element_of<T>)};
  XXH3_64bits_update(&state, shape.data(), sizeof shape);
  for (std::int64_t j = 0; j < a.cols; ++j)
    XXH3_64bits_update(&state, a.column(j) + j, static_cast<std::size_t>(a.rows - j) * sizeof(A));
  return std::max<std::uint64_t>(XXH3_64bits_digest(&state), 1);
}

template <class T, class A>
CholeskyFactor factor_lower(MatrixView<const A> a, const CholeskyOptions& asked,
                            StoredUntil until) {
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
  const bool durable = asked.run.storage.used() && until == StoredUntil::removed;
  CholeskyOptions options = asked;
  options.run = durable ? asked.run : within_host_memory(asked.run, problem.n, problem.precision);
  const StoredMatrix matrix{durable ? hash_of_lower<T>(a) : 0,
                            exponent_out_of_range(largest_diagonal(a), element_of<T>)};
  auto state = std::make_unique<CholeskyFactor::State>(
      CholeskyFactor::State{.tiles = TileFactor(problem, options, matrix),
                            .matrix = matrix,
                            .directories = options.run.storage.directories});
  (void)state->tiles.factor_stored(source_of_lower<T>(a, matrix.exponent));
  state->note_info();
  return CholeskyFactor(std::move(state));
}

void CholeskyFactor::State::note_info() {
  info = tiles.info();
  const int exponent = matrix.exponent;
  if (exponent == 0) return;
  info.bad_pivot = std::scalbn(info.bad_pivot, exponent);
  info.log_determinant +=
      static_cast<double>(exponent) * static_cast<double>(tiles.problem().n) * std::log(2.0);
}

namespace {
using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;
}  // namespace

template std::uint64_t hash_of_lower<double>(MatrixView<const double>);
template std::uint64_t hash_of_lower<double>(MatrixView<const float>);
template std::uint64_t hash_of_lower<float>(MatrixView<const double>);
template std::uint64_t hash_of_lower<float>(MatrixView<const float>);
template std::uint64_t hash_of_lower<Complex128>(MatrixView<const Complex128>);
template std::uint64_t hash_of_lower<Complex128>(MatrixView<const Complex64>);
template std::uint64_t hash_of_lower<Complex64>(MatrixView<const Complex128>);
template std::uint64_t hash_of_lower<Complex64>(MatrixView<const Complex64>);

RunReport CholeskyFactor::solve(ArrayRef b) {
  return with_filled(b, "solve", [&](auto columns) { return solve_as_given(*this, columns); });
}
RunReport CholeskyFactor::solve_lower(ArrayRef b) {
  return with_filled(b, "solve", [&](auto columns) {
    RunReport report = state_->tiles.sweep(Sweep::forward, columns);
    multiply_by_power(-state_->matrix.exponent / 2, columns);
    return report;
  });
}
void CholeskyFactor::copy_lower(ArrayRef out) const {
  with_filled(out, "cholesky", [&](auto columns) { copy_as_given(*state_, columns); });
}

CholeskyFactor cholesky(ConstArrayRef a, const CholeskyOptions& options) {
  return cholesky(a, a.element, options);
}
CholeskyFactor cholesky(ConstArrayRef a, Element precision, const CholeskyOptions& options) {
  const Element parts = element_of_parts(precision);
  require(is_native(parts), ErrorKind::misuse, "cholesky", "a factor cannot be in {}",
          to_string(precision));
  return with_columns(a, "cholesky", [&]<class A>(MatrixView<const A> columns) {
    return parts == Element::fp64
               ? factor_lower<WideOf<A>>(columns, options, StoredUntil::removed)
               : factor_lower<NarrowOf<A>>(columns, options, StoredUntil::removed);
  });
}

RunReport simulate_cholesky(std::int64_t n, const Machine& machine, const CholeskyOptions& options,
                            Element precision, bool generated) {
  require(n >= 0, ErrorKind::misuse, "cholesky", "a matrix cannot be of order {}", n);
  require(!generated || !is_complex(precision), ErrorKind::misuse, "cholesky",
          "a covariance that is generated is not of {}", to_string(precision));
  CholeskyProblem problem;
  problem.n = n;
  problem.precision = precision;
  problem.point_dimensions = generated ? 2 : 0;
  problem.formats.in_storage = machine.storage.has_value();
  problem.durable = problem.formats.in_storage && !generated;
  PlannedRun planned = plan_path(problem, machine, options);
  if (!problem.formats.in_storage) check_host_memory(planned, options.run, "cholesky");
  return make_simulated_report(std::move(planned));
}

}  // namespace strata
