// The public calls: see strata/sparse_factor.hpp.

#include "strata/sparse_factor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"
#include "cholesky/tridiagonal.hpp"
#include "scalar/double_double.hpp"
#include "session/report.hpp"
#include "sparse/checksum_file.hpp"
#include "sparse/front_factor.hpp"
#include "sparse/pattern.hpp"

namespace strata {

struct SparseCholesky::State {
  FrontFactor factor;
};

namespace {

constexpr const char* kWhere = "factor";
constexpr FileFormat kFactorFormat{.name = "factor", .version = 1, .where = kWhere};

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

void require_factor(const FrontFactor& factor, MatrixView<const double> b) {
  require(factor.info().ok, ErrorKind::misuse, kWhere,
          "there is no factor to solve with: the factorization failed at row {}",
          factor.info().first_bad_pivot);
  require(b.rows == std::ssize(factor.analysis().order) && b.cols >= 0 &&
              b.ld >= std::max<std::int64_t>(b.rows, 1),
          ErrorKind::misuse, kWhere,
          "a right-hand side of {} rows (leading dimension {}) does not fit a factor of order {}",
          b.rows, b.ld, factor.analysis().order.size());
}

/// A copy of B, whose row k is row order[k] of it.
std::vector<double> gathered(std::span<const std::int32_t> order, MatrixView<const double> b) {
  std::vector<double> x(at(b.rows * b.cols));
  for (std::int64_t c = 0; c < b.cols; ++c) {
    const double* from = b.column(c);
    double* to = x.data() + c * b.rows;
    for (std::int64_t k = 0; k < b.rows; ++k) to[k] = from[order[at(k)]];
  }
  return x;
}

void scattered(std::span<const std::int32_t> order, const std::vector<double>& x,
               MatrixView<double> b) {
  for (std::int64_t c = 0; c < b.cols; ++c) {
    const double* from = x.data() + c * b.rows;
    double* to = b.column(c);
    for (std::int64_t k = 0; k < b.rows; ++k) to[order[at(k)]] = from[k];
  }
}

MatrixView<double> view_of(std::vector<double>& x, MatrixView<const double> like) {
  return {x.data(), like.rows, like.cols, std::max<std::int64_t>(like.rows, 1)};
}

/// Calls visit(i, j, value) for the entries of one triangle and the diagonal.
template <class Visit>
void for_triangle(const SparseMatrix& a, const Visit& visit) {
  bool below = false;
  bool above = false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    if (a.start[at(i)] == a.start[at(i + 1)]) continue;
    below = below || a.column[at(a.start[at(i)])] < i;
    above = above || a.column[at(a.start[at(i + 1)] - 1)] > i;
  }
  const bool lower = below || !above;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      if (j == i || (lower ? j < i : j > i)) visit(i, j, a.value[at(k)]);
    }
  }
}

/// Sums of magnitudes in the rows of A + shift·I: their largest is ‖A‖₁ = ‖A‖∞.
double norm_of(const SparseMatrix& a, double shift) {
  std::vector<double> sum(at(a.rows));
  std::vector<double> diagonal(at(a.rows), shift);
  for_triangle(a, [&](std::int64_t i, std::int64_t j, double value) {
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
  for_triangle(a, [&](std::int64_t i, std::int64_t j, double value) {
    sum[at(i)] = sum[at(i)] - two_product(value, x[j]);
    if (i != j) sum[at(j)] = sum[at(j)] - two_product(value, x[i]);
  });
  for (std::int64_t i = 0; i < a.rows; ++i) r[i] = sum[at(i)].hi;
}

double largest(const double* v, std::int64_t n) {
  double most = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::isnan(v[i])) return v[i];
    most = std::max(most, std::abs(v[i]));
  }
  return most;
}

double backward_error(double norm, const double* b, const double* x, const double* r,
                      std::int64_t n) {
  const double top = largest(r, n);
  const double bottom = norm * largest(x, n) + largest(b, n);
  return top == 0 && bottom == 0 ? 0 : top / bottom;
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

const FactorInfo& SparseCholesky::refactor(const SparseMatrix& a, double shift) {
  state_->factor.factor(a, shift);
  return info();
}

void SparseCholesky::solve(MatrixView<double> b) const {
  require_factor(state_->factor, b);
  std::vector<double> x = gathered(analysis().order, b);
  sweep_forward(state_->factor, view_of(x, b));
  sweep_backward(state_->factor, view_of(x, b));
  scattered(analysis().order, x, b);
}

void SparseCholesky::solve_lower(MatrixView<double> b) const {
  require_factor(state_->factor, b);
  std::vector<double> x = gathered(analysis().order, b);
  sweep_forward(state_->factor, view_of(x, b));
  for (std::int64_t c = 0; c < b.cols; ++c) std::copy_n(x.data() + c * b.rows, b.rows, b.column(c));
}

void SparseCholesky::solve_lower_transposed(MatrixView<double> b) const {
  require_factor(state_->factor, b);
  std::vector<double> x;
  x.reserve(at(b.rows * b.cols));
  for (std::int64_t c = 0; c < b.cols; ++c) x.insert(x.end(), b.column(c), b.column(c) + b.rows);
  sweep_backward(state_->factor, view_of(x, b));
  scattered(analysis().order, x, b);
}

std::vector<double> SparseCholesky::inverse_diagonal() const {
  require_factor(state_->factor, {nullptr, n(), 0, std::max<std::int64_t>(n(), 1)});
  const SparseAnalysis& a = analysis();
  const std::vector<double> panels = inverse_panels(state_->factor);
  std::vector<double> diagonal(at(n()));
  const double* panel = panels.data();
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const std::int64_t order = a.width(s) + a.row_count(s);
    for (std::int64_t j = 0; j < a.width(s); ++j)
      diagonal[at(a.order[at(a.first[at(s)] + j)])] = panel[j + j * order];
    panel += order * a.width(s);
  }
  return diagonal;
}

SelectedInverse SparseCholesky::selected_inverse() const {
  require_factor(state_->factor, {nullptr, n(), 0, std::max<std::int64_t>(n(), 1)});
  const SparseAnalysis& a = analysis();
  const std::vector<double> panels = inverse_panels(state_->factor);
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> col;
  std::vector<double> value;
  const double* panel = panels.data();
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const std::int64_t w = a.width(s);
    const std::int64_t order = w + a.row_count(s);
    for (std::int64_t j = 0; j < w; ++j) {
      const std::int64_t c = a.order[at(a.first[at(s)] + j)];
      for (std::int64_t i = j; i < order; ++i) {
        const std::int32_t place =
            i < w ? a.first[at(s)] + static_cast<std::int32_t>(i) : a.rows(s)[at(i - w)];
        const std::int64_t r = a.order[at(place)];
        const auto put = [&](std::int64_t at_row, std::int64_t at_col) {
          row.push_back(at_row);
          col.push_back(at_col);
          value.push_back(panel[i + j * order]);
        };
        put(r, c);
        if (r != c) put(c, r);
      }
    }
    panel += order * w;
  }
  return sparse_from_entries(n(), n(), row, col, value);
}

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

void SparseCholesky::save(const std::string& directory) const {
  require_factor(state_->factor, {nullptr, n(), 0, std::max<std::int64_t>(n(), 1)});
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  require(!error && std::filesystem::is_directory(directory), ErrorKind::storage, kWhere,
          "cannot make the directory '{}': {}", directory, error.message());
  save_analysis(analysis(), directory + "/analysis");
  ChecksumWriter writer(directory + "/factor", kFactorFormat);
  const FrontFactor& factor = state_->factor;
  writer.add(structure_hash(analysis()));
  writer.add(factor.sizes());
  writer.add(shift());
  writer.add(info().log_determinant);
  const std::span<const double> numbers = factor.numbers();
  writer.add(static_cast<std::uint64_t>(numbers.size()));
  writer.add_all(numbers);
  writer.finish();
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
  reader.read(sizes);
  require(sizes.tile >= 1 && sizes.panel_order >= 1 && sizes.branch_entries >= 1, ErrorKind::input,
          kWhere, "'{}' has tiles of {}", path, sizes.tile);
  SparseCholeskyOptions as_saved = options;
  as_saved.tile = sizes.tile;
  as_saved.panel_order = sizes.panel_order;
  as_saved.branch_entries = sizes.branch_entries;
  double shift = 0;
  FactorInfo info;
  reader.read(shift);
  reader.read(info.log_determinant);
  std::uint64_t count = 0;
  reader.read(count);
  auto state = std::make_unique<State>(State{FrontFactor(std::move(analysis), as_saved)});
  const std::span<double> numbers = state->factor.numbers();
  require(count == numbers.size(), ErrorKind::input, kWhere, "'{}' has {} numbers where {} belong",
          path, count, numbers.size());
  reader.read_all(numbers);
  reader.finish();
  state->factor.adopt(info, shift);
  return SparseCholesky(std::move(state));
}

Certificate refine(const SparseCholesky& factor, const SparseMatrix& a, MatrixView<const double> b,
                   MatrixView<double> x) {
  require_same_pattern(factor.analysis(), a);
  require(b.rows == factor.n() && x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse, kWhere,
          "{} by {} and {} by {} do not fit a factor of order {}", b.rows, b.cols, x.rows, x.cols,
          factor.n());
  constexpr int kStepsMax = 5;
  constexpr double kEnough = 4 * std::numeric_limits<double>::epsilon();
  const auto start = std::chrono::steady_clock::now();
  Certificate certificate;
  certificate.factor = factor.info();
  const double norm = norm_of(a, factor.shift());
  std::vector<double> r(at(b.rows));
  std::vector<double> best(at(b.rows));
  for (std::int64_t c = 0; c < b.cols; ++c) {
    double* column = x.column(c);
    const auto error_now = [&] {
      residual(a, factor.shift(), b.column(c), column, r.data());
      return backward_error(norm, b.column(c), column, r.data(), b.rows);
    };
    double error = error_now();
    int steps = 0;
    while (error > kEnough && steps < kStepsMax) {
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
    if (!(error <= certificate.backward_error)) certificate.backward_error = error;
  }
  certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return certificate;
}

SparseSolveResult solve(const SparseMatrix& a, MatrixView<const double> b, MatrixView<double> x,
                        const SparseCholeskyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  require(b.rows == a.rows && x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse, kWhere,
          "right-hand sides of {} by {} and a solution of {} by {} do not fit a matrix of {} rows",
          b.rows, b.cols, x.rows, x.cols, a.rows);
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
  const std::int64_t n = a.rows;
  if (n == 0) return 0;
  // The same matrix times a vector, whichever triangles were given.
  const auto multiply_by = [&](const std::vector<double>& v, std::vector<double>& w) {
    std::fill(w.begin(), w.end(), 0.0);
    for_triangle(a, [&](std::int64_t i, std::int64_t j, double value) {
      w[at(i)] += value * v[at(j)];
      if (i != j) w[at(j)] += value * v[at(i)];
    });
  };
  std::vector<std::vector<double>> basis;
  std::vector<double> v(at(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = random_normal(1, i);
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
    basis.push_back(v);
    multiply_by(v, w);
    diagonal.push_back(std::inner_product(w.begin(), w.end(), v.begin(), 0.0));
    for (int again = 0; again < 2; ++again) {
      for (const std::vector<double>& q : basis) {
        const double h = std::inner_product(w.begin(), w.end(), q.begin(), 0.0);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] -= h * q[i];
      }
    }
    beta = length(w);
    v = w;
    if (k + 1 < most) off.push_back(beta);
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
  const FrontSizes sizes = front_sizes(options);
  auto layout = std::make_shared<const FrontLayout>(lay_out_fronts(analysis, a, sizes));
  PlannedRun planned = plan_fronts(analysis, std::move(layout), machine, options.run);
  planned.tile = sizes.tile;
  return make_simulated_report(std::move(planned));
}

}  // namespace strata
