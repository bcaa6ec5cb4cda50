// The public calls: see strata/lu.hpp. Certified solves are in solve.cpp.

#include "strata/lu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/index.hpp"
#include "base/work_crew.hpp"
#include "device/device_host.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_status.hpp"
#include "lu/lu_panels.hpp"
#include "matrix/array_columns.hpp"
#include "scalar/complex.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

int exponent_in_range(std::int64_t exponent) {
  constexpr std::int64_t kFar = 4096;  // beyond any exponent of a double
  return static_cast<int>(std::clamp(exponent, -kFar, kFar));
}

}  // namespace

double Determinant::log() const noexcept {
  if (sign == 0) return -std::numeric_limits<double>::infinity();
  return std::log(mantissa) + static_cast<double>(exponent) * std::log(2.0);
}

double Determinant::value() const noexcept {
  return sign * std::ldexp(mantissa, exponent_in_range(exponent));
}

std::complex<double> Determinant::complex_value() const noexcept {
  return times_power(phase * mantissa, exponent_in_range(exponent));
}

struct LuFactor::State {
  LuPanels panels;
};

LuFactor::LuFactor(std::unique_ptr<State> state) : state_(std::move(state)) {}
LuFactor::LuFactor(LuFactor&&) noexcept = default;
LuFactor& LuFactor::operator=(LuFactor&&) noexcept = default;
LuFactor::~LuFactor() = default;

std::int64_t LuFactor::n() const noexcept { return state_->panels.problem().n; }
const LuInfo& LuFactor::info() const noexcept { return state_->panels.info(); }
const RunReport& LuFactor::report() const noexcept { return state_->panels.report(); }
std::vector<std::int64_t> LuFactor::pivots() const { return state_->panels.pivots(); }

RunReport LuFactor::solve(ArrayRef b) {
  return with_filled(b, "solve", [&](auto columns) { return state_->panels.solve(columns, 0); });
}
RunReport LuFactor::solve_transposed(ArrayRef b) {
  return with_filled(
      b, "solve", [&](auto columns) { return state_->panels.solve(columns, kTransposedFactor); });
}
RunReport LuFactor::solve_adjoint(ArrayRef b) {
  return with_filled(b, "solve",
                     [&](auto columns) { return state_->panels.solve(columns, kAdjointFactor); });
}
void LuFactor::copy_factors(ArrayRef out) const {
  with_filled(out, "lu", [&](auto columns) { state_->panels.copy_factors(columns); });
}

namespace {

/// largest_to_factor() of a whole matrix, by several threads.
template <class T>
double largest_of(MatrixView<const T> a) {
  constexpr std::int64_t kStrip = 64;    // columns
  constexpr std::int64_t kSmall = 1024;  // order, of which one thread makes short work
  const std::int64_t strips = (a.cols + kStrip - 1) / kStrip;
  std::vector<double> largest(at(strips));
  WorkCrew crew(a.rows < kSmall ? 0 : describe_host().compute_queues - 1);
  crew.share(strips, [&](std::int64_t s) {
    largest[at(s)] =
        largest_to_factor(a.block(0, s * kStrip, a.rows, std::min(kStrip, a.cols - s * kStrip)), 0);
  });
  return largest.empty() ? 0.0 : *std::ranges::max_element(largest);
}

template <class T>
void check_matrix(MatrixView<const T> a, const LuOptions& options) {
  require(a.rows == a.cols, ErrorKind::misuse, "lu", "a {} by {} matrix is not square", a.rows,
          a.cols);
  require(a.rows >= 0 && a.ld >= std::max<std::int64_t>(a.rows, 1), ErrorKind::misuse, "lu",
          "a leading dimension of {} is too small for {} rows", a.ld, a.rows);
  require(a.data != nullptr || a.rows == 0, ErrorKind::misuse, "lu",
          "the matrix of order {} has no data", a.rows);
  require(!options.run.storage.used(), ErrorKind::misuse, "lu",
          "a factor in storage is made by factor_general()");
}

template <class T>
LuProblem problem_of(MatrixView<const T> a) {
  LuProblem problem;
  problem.n = a.rows;
  problem.precision = element_of<T>;
  return problem;
}

template <class T>
LuFactor factor_view(MatrixView<const T> a, const LuOptions& options) {
  check_matrix(a, options);
  auto state = std::make_unique<LuFactor::State>(LuFactor::State{LuPanels(problem_of(a), options)});
  (void)state->panels.factor(source_of_view<T>(a.data, a.ld, false), largest_of(a));
  return LuFactor(std::move(state));
}

template <class T>
LuFactor factor_there(MatrixView<T> a, const LuOptions& options) {
  const MatrixView<const T> read = a;
  check_matrix(read, options);
  require(a.rows <= 1 || a.ld == a.rows, ErrorKind::misuse, "lu",
          "columns of {} numbers that are {} apart cannot be overwritten: lu() takes them", a.rows,
          a.ld);
  auto state = std::make_unique<LuFactor::State>(
      LuFactor::State{LuPanels(problem_of(read), options, reinterpret_cast<std::byte*>(a.data))});
  (void)state->panels.factor(nullptr, largest_of(read));
  return LuFactor(std::move(state));
}

}  // namespace

LuFactor lu(ConstArrayRef a, const LuOptions& options) {
  return with_columns(a, "lu", [&](auto columns) { return factor_view(columns, options); });
}

LuFactor lu_overwriting(ArrayRef a, const LuOptions& options) {
  check_array(a, "lu");
  return dispatch_blas(a.element, [&]<class T>(std::type_identity<T>) {
    require(lies_by_columns<T>(a), ErrorKind::misuse, "lu",
            "an array that does not lie by columns cannot be overwritten: lu() takes it");
    return factor_there(MatrixView<T>{static_cast<T*>(a.data), a.rows, a.cols, a.col_stride},
                        options);
  });
}

RunReport simulate_lu(std::int64_t n, const Machine& machine, const LuOptions& options,
                      Element precision) {
  require(n >= 0, ErrorKind::misuse, "lu", "a matrix cannot be of order {}", n);
  LuProblem problem;
  problem.n = n;
  problem.precision = precision;
  problem.in_storage = machine.storage.has_value();
  PlannedRun planned = plan_lu(problem, machine, options);
  if (!problem.in_storage) check_host_memory(planned, options.run, "lu");
  return make_simulated_report(std::move(planned));
}

}  // namespace strata
