// The public calls: see strata/sparse_factor.hpp.

#include "strata/sparse_factor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/pending_path.hpp"
#include "base/random.hpp"
#include "cholesky/tridiagonal.hpp"
#include "kernels/host_residual.hpp"
#include "scalar/double_double.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"
#include "sparse/analysis_file.hpp"
#include "sparse/checksum_file.hpp"
#include "sparse/entry_checks.hpp"
#include "sparse/front_factor.hpp"
#include "sparse/inverse_panels.hpp"
#include "sparse/pattern.hpp"

namespace strata {

struct SparseCholesky::State {
  FrontFactor factor;
};

namespace {

constexpr const char* kWhere = "factor";
constexpr FileFormat kFactorFormat{.name = "factor", .version = 6, .where = kWhere};

/// Of the order of elimination and the rows of supernodes: what the numbers of a factor belong to.
/// A pattern alone has many of them.
std::uint64_t structure_hash(const SparseAnalysis& a) {
  std::uint64_t hash = 0;
  const auto add = [&hash](const auto& list) {
    hash = XXH3_64bits_withSeed(list.data(), list.size() * sizeof list[0], hash);
  };
  add(a.order);
  add(a.first);
  add(a.row);
  return hash;
}

/// L is there.
void require_success(const FrontFactor& factor) {
  if (factor.info().ok) return;
  require(factor.info().first_bad_pivot < 0, ErrorKind::misuse, kWhere,
          "there is no factor to solve with: the factorization failed at row {}",
          factor.info().first_bad_pivot);
  fail(ErrorKind::misuse, kWhere,
       "there is no factor to solve with: the last factorization was not completed");
}

/// And at home.
void require_factor(const FrontFactor& factor) {
  require_success(factor);
  factor.bring_home();
}

void require_columns(MatrixView<const double> b, std::int64_t n) {
  require(b.rows == n && b.cols >= 0 && b.ld >= std::max<std::int64_t>(b.rows, 1),
          ErrorKind::misuse, kWhere,
          "{} by {} numbers with a leading dimension of {} do not fit a factor of order {}", b.rows,
          b.cols, b.ld, n);
}

/// Right-hand sides in the order of elimination and in the type of the factor, each column
/// multiplied by a power of two that makes its largest element about 1: floats hold less than
/// doubles.
template <class T>
struct Ordered {
  std::vector<T> x;
  std::vector<int> exponent;  ///< by column
  std::int64_t rows;

  [[nodiscard]] MatrixView<T> view() {
    return {x.data(), rows, std::ssize(exponent), std::max<std::int64_t>(rows, 1)};
  }
};

/// Element k of a column is element place(k) of that of B.
template <class T, class Place>
Ordered<T> ordered(MatrixView<const double> b, const Place& place) {
  Ordered<T> result{std::vector<T>(at(b.rows * b.cols)), std::vector<int>(at(b.cols)), b.rows};
  for (std::int64_t c = 0; c < b.cols; ++c) {
    const double* from = b.column(c);
    T* to = result.x.data() + c * b.rows;
    int exponent = 0;
    if constexpr (!std::is_same_v<T, double>) {
      double most = 0;
      for (std::int64_t k = 0; k < b.rows; ++k) most = std::max(most, std::abs(from[k]));
      if (most > 0 && std::isfinite(most)) exponent = std::ilogb(most);
    }
    for (std::int64_t k = 0; k < b.rows; ++k)
      to[k] =
          static_cast<T>(exponent == 0 ? from[place(k)] : std::scalbn(from[place(k)], -exponent));
    result.exponent[at(c)] = exponent;
  }
  return result;
}

template <class T, class Place>
void put_back(const Ordered<T>& ordered, MatrixView<double> b, const Place& place) {
  for (std::int64_t c = 0; c < b.cols; ++c) {
    const T* from = ordered.x.data() + c * b.rows;
    const int exponent = ordered.exponent[at(c)];
    double* to = b.column(c);
    for (std::int64_t k = 0; k < b.rows; ++k) {
      const auto value = static_cast<double>(from[k]);
      to[place(k)] = exponent == 0 ? value : std::scalbn(value, exponent);
    }
  }
}

enum class Half : std::uint8_t { forward, backward, both };

template <class T>
void sweep(const FrontFactor& factor, Half half, MatrixView<double> b) {
  const std::vector<std::int32_t>& order = factor.analysis().order;
  const auto as_in_a = [&](std::int64_t k) { return std::int64_t{order[at(k)]}; };
  const auto as_in_l = [](std::int64_t k) { return k; };
  Ordered<T> x = half == Half::backward ? ordered<T>(b, as_in_l) : ordered<T>(b, as_in_a);
  if (half != Half::backward) sweep_forward<T>(factor, x.view());
  if (half != Half::forward) sweep_backward<T>(factor, x.view());
  if (half == Half::forward)
    put_back(x, b, as_in_l);
  else
    put_back(x, b, as_in_a);
}

void sweep(const FrontFactor& factor, Half half, MatrixView<double> b) {
  require_success(factor);
  require_columns(b, std::ssize(factor.analysis().order));
  if (factor.solves_there() && b.rows > 0)
    return factor.solve_there(b, half != Half::backward, half != Half::forward);
  if (b.rows > 0 && factor.solve_streamed(b, half != Half::backward, half != Half::forward)) return;
  factor.bring_home();
  factor.element() == Element::fp64 ? sweep<double>(factor, half, b)
                                    : sweep<float>(factor, half, b);
}

/// Sums of magnitudes in the rows of A + shift·I: their largest is ‖A‖₁ = ‖A‖∞.
double norm_of(const SparseMatrix& a, double shift) {
  std::vector<double> sum(at(a.rows));
  std::vector<double> diagonal(at(a.rows), shift);
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    const double value = a.value[at(k)];
    if (i == j) {
      diagonal[at(i)] += value;
      return;
    }
    sum[at(i)] += std::abs(value);
    sum[at(j)] += std::abs(value);
  });
  double norm = 0;
  for (std::size_t i = 0; i < sum.size(); ++i)
    norm = std::max(norm, sum[i] + std::abs(diagonal[i]));
  return norm;
}

/// r ← b − (A + shift·I)·x, summed in double-double.
void residual(const SparseMatrix& a, double shift, const double* b, const double* x, double* r) {
  std::vector<DoubleDouble> sum(at(a.rows));
  for (std::int64_t i = 0; i < a.rows; ++i)
    sum[at(i)] = DoubleDouble(b[i]) - two_product(shift, x[i]);
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    const double value = a.value[at(k)];
    sum[at(i)] = sum[at(i)] - two_product(value, x[j]);
    if (i != j) sum[at(j)] = sum[at(j)] - two_product(value, x[i]);
  });
  for (std::int64_t i = 0; i < a.rows; ++i) r[i] = sum[at(i)].hi;
}

}  // namespace

SparseCholesky::SparseCholesky(std::unique_ptr<State> state) : state_(std::move(state)) {}
SparseCholesky::SparseCholesky(SparseCholesky&&) noexcept = default;
SparseCholesky& SparseCholesky::operator=(SparseCholesky&&) noexcept = default;
SparseCholesky::~SparseCholesky() = default;

SparseCholesky::SparseCholesky(const SparseMatrix& a, const SparseCholeskyOptions& options)
    : SparseCholesky(analyze(a, options.analysis), a, options) {}

SparseCholesky::SparseCholesky(SparseAnalysis analysis, const SparseMatrix& a,
                               const SparseCholeskyOptions& options)
    : state_(std::make_unique<State>(State{FrontFactor(std::move(analysis), options)})) {
  state_->factor.factor(a, options.shift);
}

std::int64_t SparseCholesky::n() const noexcept { return std::ssize(analysis().order); }
const SparseAnalysis& SparseCholesky::analysis() const noexcept {
  return state_->factor.analysis();
}
const FactorInfo& SparseCholesky::info() const noexcept { return state_->factor.info(); }
const RunReport& SparseCholesky::report() const noexcept { return state_->factor.report(); }
double SparseCholesky::shift() const noexcept { return state_->factor.shift(); }
Element SparseCholesky::precision() const noexcept { return state_->factor.element(); }

const FactorInfo& SparseCholesky::refactor(const SparseMatrix& a, double shift) {
  state_->factor.factor(a, shift);
  return info();
}

const FactorInfo& SparseCholesky::refactor_values(std::span<const double> values, double shift) {
  state_->factor.factor_values(values, shift);
  return info();
}

void SparseCholesky::solve(MatrixView<double> b) const { sweep(state_->factor, Half::both, b); }
void SparseCholesky::solve_lower(MatrixView<double> b) const {
  sweep(state_->factor, Half::forward, b);
}
void SparseCholesky::solve_lower_transposed(MatrixView<double> b) const {
  sweep(state_->factor, Half::backward, b);
}

std::vector<double> SparseCholesky::inverse_diagonal() const {
  require_factor(state_->factor);
  return strata::inverse_diagonal(state_->factor);
}

SelectedInverse SparseCholesky::selected_inverse() const {
  require_factor(state_->factor);
  return strata::selected_inverse(state_->factor);
}

void SparseCholesky::for_selected_inverse(
    const std::function<void(const SelectedPanel&)>& visit) const {
  require_factor(state_->factor);
  strata::for_selected_inverse(state_->factor, visit);
}

std::int64_t SparseCholesky::selected_entries() const { return analysis().counts.stored_entries; }

double SparseCholesky::condition(const SparseMatrix& a) const {
  require_same_pattern(analysis(), a);
  const std::int64_t size = n();
  if (size == 0) return 0;
  // Higham, "FORTRAN codes for estimating the one-norm of a real or complex matrix" (1988), for a
  // symmetric matrix.
  std::vector<double> x(at(size), 1.0 / static_cast<double>(size));
  const MatrixView<double> view{x.data(), size, 1, size};
  const auto length = [&] {
    return std::accumulate(x.begin(), x.end(), 0.0,
                           [](double sum, double v) { return sum + std::abs(v); });
  };
  solve(view);
  double estimate = length();
  std::int64_t last = -1;
  for (int step = 0; step < 5; ++step) {
    for (double& v : x) v = v >= 0 ? 1 : -1;
    solve(view);
    const auto most = std::max_element(
        x.begin(), x.end(), [](double u, double v) { return std::abs(u) < std::abs(v); });
    const std::int64_t j = most - x.begin();
    if (j == last) break;
    last = j;
    std::fill(x.begin(), x.end(), 0.0);
    x[at(j)] = 1;
    solve(view);
    const double next = length();
    if (!(next > estimate)) break;
    estimate = next;
  }
  for (std::int64_t i = 0; i < size; ++i)
    x[at(i)] =
        (i % 2 == 0 ? 1.0 : -1.0) *
        (1 + static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(size - 1, 1)));
  solve(view);
  estimate = std::max(estimate, 2 * length() / (3 * static_cast<double>(size)));
  return estimate * norm_of(a, shift());
}

namespace {

/// Those that say where panels lie, in the order in which files have them.
template <class Each>
void for_saved_sizes(FrontSizes& sizes, const Each& each) {
  for (std::int64_t* size : {&sizes.tile, &sizes.panel_order, &sizes.branch_entries, &sizes.program,
                             &sizes.range_bytes, &sizes.devices, &sizes.shares})
    each(*size);
}

}  // namespace

void SparseCholesky::save(const std::string& directory) const {
  require_factor(state_->factor);
  PendingDirectory place(directory, kWhere);
  require_well_formed(analysis());
  AnalysisFile beside(analysis(), directory + "/analysis");
  ChecksumWriter writer(directory + "/factor", kFactorFormat);
  const FrontFactor& factor = state_->factor;
  writer.add(structure_hash(analysis()));
  FrontSizes sizes = factor.sizes();
  if (sizes.batch > 0) sizes.branch_entries = 1;  // the same panels
  for_saved_sizes(sizes, [&](std::int64_t& size) { writer.add(size); });
  writer.add(shift());
  writer.add(info().log_determinant);
  writer.add(factor.element());
  const std::span<const std::byte> bytes = factor.bytes();
  writer.add(static_cast<std::uint64_t>(bytes.size()));
  writer.add_all(bytes);
  writer.complete();
  beside.publish();
  writer.publish();
  place.keep();
}

SparseCholesky SparseCholesky::open(const std::string& directory,
                                    const SparseCholeskyOptions& options) {
  SparseAnalysis analysis = load_analysis(directory + "/analysis");
  const std::string path = directory + "/factor";
  ChecksumReader reader(path, kFactorFormat);
  std::uint64_t structure = 0;
  reader.read(structure);
  require(structure == structure_hash(analysis), ErrorKind::input, kWhere,
          "'{}' is not a factor by the analysis beside it", path);
  FrontSizes sizes;
  for_saved_sizes(sizes, [&](std::int64_t& size) { reader.read(size); });
  SparseCholeskyOptions as_saved = options;
  double shift = 0;
  FactorInfo info;
  reader.read(shift);
  reader.read(info.log_determinant);
  reader.read(as_saved.precision);
  std::uint64_t count = 0;
  reader.read(count);
  std::unique_ptr<State> state;
  try {
    state = std::make_unique<State>(State{FrontFactor(std::move(analysis), as_saved, sizes)});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::misuse) throw;
    fail(ErrorKind::input, kWhere, "'{}' is no factor: {}", path, error.what());
  }
  state->factor.reserve();
  const std::span<std::byte> bytes = state->factor.bytes();
  require(count == bytes.size(), ErrorKind::input, kWhere, "'{}' has {} bytes where {} belong",
          path, count, bytes.size());
  reader.read_all(bytes);
  reader.finish();
  state->factor.adopt(info, shift);
  return SparseCholesky(std::move(state));
}

Certificate refine(const SparseCholesky& factor, const SparseMatrix& a, MatrixView<const double> b,
                   MatrixView<double> x) {
  require_same_pattern(factor.analysis(), a);
  require_columns(b, factor.n());
  require_columns(x, factor.n());
  require(x.cols == b.cols, ErrorKind::misuse, kWhere, "{} right-hand sides and {} solutions",
          b.cols, x.cols);
  require(factor.info().ok, ErrorKind::misuse, kWhere, "there is no factor to refine with");
  const int steps_max = factor.precision() == Element::fp64 ? 5 : 40;
  constexpr double kEnough = 4 * std::numeric_limits<double>::epsilon();
  const auto start = std::chrono::steady_clock::now();
  Certificate certificate;
  certificate.factor = factor.info();
  certificate.precision = factor.precision();
  if (b.rows == 0) return certificate;
  const double norm = norm_of(a, factor.shift());
  std::vector<double> r(at(b.rows));
  std::vector<double> best(at(b.rows));
  for (std::int64_t c = 0; c < b.cols; ++c) {
    double* column = x.column(c);
    const auto error_now = [&] {
      residual(a, factor.shift(), b.column(c), column, r.data());
      const MatrixView<const double> left{r.data(), b.rows, 1, std::max<std::int64_t>(b.rows, 1)};
      return backward_error(norm, b.block(0, c, b.rows, 1), x.block(0, c, x.rows, 1), left);
    };
    double error = error_now();
    int steps = 0;
    while (error > kEnough && steps < steps_max) {
      std::copy_n(column, b.rows, best.data());
      factor.solve({r.data(), b.rows, 1, std::max<std::int64_t>(b.rows, 1)});
      for (std::int64_t i = 0; i < b.rows; ++i) column[i] += r[at(i)];
      const double next = error_now();
      if (!(next < error)) {
        std::copy_n(best.data(), b.rows, column);
        break;
      }
      ++steps;
      const bool halved = next < error / 2;
      error = next;
      if (!halved) break;
    }
    certificate.refinement_steps = std::max(certificate.refinement_steps, steps);
    if (std::isnan(certificate.backward_error)) continue;  // and so it stays
    if (!(error <= certificate.backward_error)) certificate.backward_error = error;
  }
  certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return certificate;
}

SparseSolveResult solve(const SparseMatrix& a, MatrixView<const double> b, MatrixView<double> x,
                        const SparseCholeskyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  require_columns(b, a.rows);
  require_columns(x, a.rows);
  require(x.cols == b.cols, ErrorKind::misuse, kWhere, "{} right-hand sides and {} solutions",
          b.cols, x.cols);
  const SparseCholesky factor(a, options);
  SparseSolveResult result;
  result.factor = factor.report();
  result.analysis = factor.analysis().seconds;
  result.certificate.factor = factor.info();
  if (factor.info().ok) {
    for (std::int64_t c = 0; c < b.cols; ++c) std::copy_n(b.column(c), b.rows, x.column(c));
    factor.solve(x);
    result.certificate = refine(factor, a, b, x);
  }
  result.certificate.bytes_moved = result.factor.traffic.total();
  result.certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

double definite_shift(const SparseMatrix& a, int steps) {
  require(steps >= 1, ErrorKind::misuse, kWhere, "{} steps of Lanczos' method", steps);
  WorkCrew crew(checking_threads() - 1);
  require_symmetric(a, kWhere, crew);
  const std::int64_t n = a.rows;
  if (n == 0) return 0;
  // The same matrix times a vector, whichever triangles were given.
  const auto multiply_by = [&](const std::vector<double>& v, std::vector<double>& w) {
    std::fill(w.begin(), w.end(), 0.0);
    for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
      const double value = a.value[at(k)];
      w[at(i)] += value * v[at(j)];
      if (i != j) w[at(j)] += value * v[at(i)];
    });
  };
  // Without reorthogonalization: copies of values that have converged do not hurt the smallest.
  std::vector<double> v(at(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = random_normal(1, i);
  std::vector<double> before(at(n));
  std::vector<double> w(at(n));
  std::vector<double> diagonal;
  std::vector<double> off;
  const auto length = [](const std::vector<double>& u) {
    return std::sqrt(std::inner_product(u.begin(), u.end(), u.begin(), 0.0));
  };
  double beta = length(v);
  const int most = static_cast<int>(std::min<std::int64_t>(steps, n));
  for (int k = 0; k < most && beta > 0; ++k) {
    for (double& element : v) element /= beta;
    multiply_by(v, w);
    const double alpha = std::inner_product(w.begin(), w.end(), v.begin(), 0.0);
    for (std::size_t i = 0; i < w.size(); ++i)
      w[i] -= alpha * v[i] + (k > 0 ? beta : 0) * before[i];
    diagonal.push_back(alpha);
    beta = length(w);
    off.push_back(beta);
    std::swap(before, v);
    std::swap(v, w);
  }
  off.resize(diagonal.size() - 1);
  const std::vector<double> values = spectrum_of(diagonal, off).values;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*low > 0) return 0;
  // Ritz values lie inside the spectrum: a margin of a hundredth of it, and of rounding.
  constexpr double kMargin = 0.01;
  return -*low + kMargin * std::max(std::abs(*low), 1e-10 * std::abs(*high));
}

RunReport simulate_sparse_cholesky(const SparseAnalysis& analysis, const SparseMatrix& a,
                                   const Machine& machine, const SparseCholeskyOptions& options) {
  require_same_pattern(analysis, a);
  require_devices(machine);
  require(!options.batches, ErrorKind::misuse, "plan", "level batches have no plan");
  const auto kind = sooner_alone(analysis, a, machine, options);
  return make_simulated_report(
      plan_factorization(analysis, a, kind ? only(machine, *kind) : machine, options));
}

}  // namespace strata
