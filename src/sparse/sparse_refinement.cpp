// Refinement of sparse systems, and what is certified of their solutions.
//
// Method: residuals r in double-double, corrections d = M⁻¹·r with M = L·Lᵀ, until |r| is within a
// few ulps of |A|·|x| + |b| row by row, or neither that nor the corrections are halved any longer.
// Residuals row by row see what norms do not: rows that are small beside others. Corrections of
// x = 0, b and of each later x shrink by what M leaves of an error, so that their ratio, measured,
// or u·κ as it is estimated, is the η of
//   |x − A⁻¹·b|_i <= |d_i| + D_i·η/(1 − η)·max_j |d_j|/D_j,  D = diag(A)^(−1/2)
// (Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 12; Demmel, Hida, Kahan,
// Li, Mukherjee, Riedy, "Error bounds from extra-precise iterative refinement", ACM TOMS 32, 2006).
// A κ that is hardly one that M can tell says too little. There what was lost in L is measured:
// with φ = ‖L⁻¹·A·L⁻ᵀ − I‖₂ (factor_errors), |(A⁻¹)_ii| <= D_i²·κ/(1 − φ) and dᵀ·M·d = dᵀ·r,
//   |x − A⁻¹·b|_i <= |d_i| + D_i·√κ·φ·(1 − φ)^(−3/2)·√(dᵀ·r).
// Where the bound is above what is wanted, d is added to x as long as that halves it: elements of x
// that are small in units of their own rows are not seen by backward errors.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "base/elapsed_time.hpp"
#include "base/work_crew.hpp"
#include "dense/dense_block.hpp"
#include "scalar/safe_range.hpp"
#include "sparse/ordering/error_places.hpp"
#include "sparse/ordering/pattern.hpp"
#include "sparse/symmetric_system.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {
namespace {

constexpr double kEnough = 8 * kUnitRoundoff;
constexpr std::int64_t kRefinedColumnsAtOnce = 16;

/// A column on its way.
struct Column {
  double normwise = 0;
  double componentwise = 0;
  double size = 0;         ///< max |d_i|/D_i of the last correction, at first of x
  double contraction = 0;  ///< the largest ratio of such sizes above rounding
  double forward = std::numeric_limits<double>::quiet_NaN();
  int steps = 0;
  bool goes_on = true;
  int back = 0;  ///< x times 2 to this solves what was given
};

/// What corrections by a factor leave.
struct Corrections {
  double contraction = 0;  ///< what they shrink by, at most: 2·u·κ
  double loss = 0;         ///< φ·√κ·(1 − φ)^(−3/2), where it was measured
};

/// A few right-hand sides.
class Refiner {
 public:
  /// `unseen`: a bound of the scaled error by digits of A that its range took.
  Refiner(const SparseCholesky& factor, const SymmetricSystem& system, double unseen,
          WorkCrew& crew)
      : factor_(factor),
        system_(system),
        crew_(crew),
        unseen_(unseen),
        n_(system.n()),
        norm_(system.norm()),
        roots_(system.roots()),
        steps_max_(factor.precision() == Element::fp64 ? 10 : 40) {}

  /// b and x as they were given; exponents of A and of the columns of b.
  void begin(MatrixView<const double> b, MatrixView<const double> x, int of_matrix) {
    columns_.assign(at(b.cols), {});
    b_.resize(at(n_ * b.cols));
    x_ = r_ = terms_ = b_;
    for (std::int64_t c = 0; c < b.cols; ++c) {
      Column& column = columns_[at(c)];
      const int of_column = exponent_out_of_range(largest_of(b.column(c), n_), Element::fp64);
      column.back = of_column - of_matrix;
      for (std::int64_t i = 0; i < n_; ++i) {
        b_[at(i + c * n_)] = std::scalbn(b(i, c), -of_column);
        x_[at(i + c * n_)] = std::scalbn(x(i, c), -column.back);
      }
      column.size = scaled_size(x_of(c));
    }
    measure();
  }

  void refine() {
    for (Column& column : columns_) column.goes_on = needs_more(column);
    while (step()) {
    }
  }

  /// Fills Column::forward, one solve of all
  /// columns, and further ones, with a step each, of those whose bound is above what is wanted.
  void bound_errors(const Corrections& known) {
    std::vector<double> d = r_;
    solve(d, std::ssize(columns_));
    for (std::int64_t c = 0; c < std::ssize(columns_); ++c) {
      Column& column = columns_[at(c)];
      column.forward = forward_error(c, d.data() + c * n_, known);
      column.goes_on = wants_less(column);
    }
    while (nearer_step(d, known)) {
    }
  }

  void put_back(MatrixView<double> x) const {
    for (std::int64_t c = 0; c < x.cols; ++c)
      for (std::int64_t i = 0; i < n_; ++i)
        x(i, c) = std::scalbn(x_[at(i + c * n_)], columns_[at(c)].back);
  }

  [[nodiscard]] const std::vector<Column>& columns() const noexcept { return columns_; }

 private:
  [[nodiscard]] double* x_of(std::int64_t c) { return x_.data() + c * n_; }

  [[nodiscard]] static double largest_of(const double* v, std::int64_t n) {
    double most = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (std::isnan(v[i])) return v[i];
      most = std::max(most, std::abs(v[i]));
    }
    return most;
  }
  /// max |v_i|/D_i.
  [[nodiscard]] double scaled_size(const double* v) const {
    double most = 0;
    for (std::int64_t i = 0; i < n_; ++i) most = std::max(most, std::abs(v[i]) * roots_[at(i)]);
    return most;
  }
  [[nodiscard]] static bool needs_more(const Column& column) {
    return column.componentwise > kEnough;
  }

  /// Whether its bound is one, and above what is wanted.
  [[nodiscard]] static bool wants_less(const Column& column) {
    return std::isfinite(column.forward) && column.forward > solution_error_wanted(Element::fp64);
  }

  void solve(std::vector<double>& b, std::int64_t count) const {
    factor_.solve_in_range({b.data(), n_, count, std::max<std::int64_t>(n_, 1)});
  }

  /// Residuals and errors of the columns that go on, of x as it will be handed back.
  void measure() {
    crew_.share(std::ssize(columns_), [&](std::int64_t c) {
      Column& column = columns_[at(c)];
      if (!column.goes_on) return;
      double* x = x_of(c);
      if (column.back != 0)
        for (std::int64_t i = 0; i < n_; ++i)
          x[i] = std::scalbn(std::scalbn(x[i], column.back), -column.back);
      double* r = r_.data() + c * n_;
      double* terms = terms_.data() + c * n_;
      system_.residual(b_.data() + c * n_, x, r, terms);
      const auto quotient = [](double error, double of) {
        return error == 0 && of == 0 ? 0.0 : error / of;
      };
      column.normwise = quotient(largest_of(r, n_),
                                 norm_ * largest_of(x, n_) + largest_of(b_.data() + c * n_, n_));
      column.componentwise = 0;
      for (std::int64_t i = 0; i < n_; ++i) {
        const double error = quotient(std::abs(r[i]), terms[i]);
        if (!(error <= column.componentwise)) column.componentwise = error;
        if (std::isnan(error)) break;
      }
    });
  }

  /// The bound of the head of this file, relative to max |x_i|; d is the correction of x.
  [[nodiscard]] double forward_error(std::int64_t c, const double* d, const Corrections& known) {
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    const Column& column = columns_[at(c)];
    const double eta = std::max(2 * column.contraction, known.contraction);
    double spread = eta < 0.9 ? eta / (1 - eta) * scaled_size(d) : kUnknown;
    if (known.loss > 0)
      spread = std::max(spread, known.loss * std::sqrt(std::abs(dot(n_, d, r_.data() + c * n_))));
    spread += unseen_ > 0 ? unseen_ * scaled_size(x_of(c)) : 0;
    double error = 0;
    for (std::int64_t i = 0; i < n_; ++i)
      error = std::max(error, std::abs(d[i]) * (1 + 2 * kUnitRoundoff) +
                                  (spread == 0 ? 0 : spread / roots_[at(i)]));
    const double forward = error == 0 ? 0 : error / largest_of(x_of(c), n_);
    return std::isnan(forward) || std::isnan(column.normwise) ? kUnknown : forward;
  }

  /// Adds its correction d to each column that goes on, where that halves the bound of its error;
  /// d becomes the next corrections. False if none goes on.
  bool nearer_step(std::vector<double>& d, const Corrections& known) {
    std::vector<std::int64_t> active;
    for (std::int64_t c = 0; c < std::ssize(columns_); ++c)
      if (columns_[at(c)].goes_on) active.push_back(c);
    if (active.empty()) return false;
    const std::vector<double> x_before = x_;
    const std::vector<Column> before = columns_;
    for (const std::int64_t c : active)
      for (std::int64_t i = 0; i < n_; ++i) x_of(c)[i] += d[at(i + c * n_)];
    measure();
    std::vector<double> next;
    for (const std::int64_t c : active)
      next.insert(next.end(), r_.begin() + c * n_, r_.begin() + (c + 1) * n_);
    solve(next, std::ssize(active));
    for (std::size_t k = 0; k < active.size(); ++k) {
      const std::int64_t c = active[k];
      Column& now = columns_[at(c)];
      const double* correction = next.data() + k * at(n_);
      now.forward = forward_error(c, correction, known);
      const Column& last = before[at(c)];
      if (!(now.forward < last.forward / 2) || now.normwise > std::max(last.normwise, kEnough) ||
          now.componentwise > std::max(last.componentwise, kEnough)) {
        std::copy_n(x_before.begin() + c * n_, n_, x_.begin() + c * n_);
        now = last;
        now.goes_on = false;
        continue;
      }
      std::copy_n(correction, n_, d.begin() + c * n_);
      ++now.steps;
      now.goes_on = wants_less(now) && now.steps < 2 * steps_max_;
    }
    return true;
  }

  /// A step of those that go on; false if none does.
  bool step() {
    std::vector<double> d;
    std::vector<std::int64_t> active;
    for (std::int64_t c = 0; c < std::ssize(columns_); ++c) {
      if (!columns_[at(c)].goes_on) continue;
      active.push_back(c);
      d.insert(d.end(), r_.begin() + c * n_, r_.begin() + (c + 1) * n_);
    }
    if (active.empty()) return false;
    solve(d, std::ssize(active));
    const std::vector<double> x_before = x_;
    const std::vector<double> r_before = r_;
    const std::vector<Column> before = columns_;
    for (std::size_t k = 0; k < active.size(); ++k) {
      const double* correction = d.data() + k * at(n_);
      double* x = x_of(active[k]);
      for (std::int64_t i = 0; i < n_; ++i) x[i] += correction[i];
    }
    measure();
    for (std::size_t k = 0; k < active.size(); ++k) {
      const std::int64_t c = active[k];
      if (accept(columns_[at(c)], before[at(c)], scaled_size(d.data() + k * at(n_)),
                 scaled_size(x_of(c))))
        continue;
      std::copy_n(x_before.begin() + c * n_, n_, x_.begin() + c * n_);
      std::copy_n(r_before.begin() + c * n_, n_, r_.begin() + c * n_);
    }
    return true;
  }

  /// Whether a column is better for its step; whether it goes on.
  [[nodiscard]] bool accept(Column& now, const Column& before, double size,
                            double size_of_x) const {
    const bool seen = size > 8 * kUnitRoundoff * size_of_x && before.size > 0;
    const double contraction = seen ? size / before.size : 0;
    const bool finer = now.componentwise < before.componentwise;
    const bool nearer =
        size < before.size / 2 && now.normwise <= std::max(before.normwise, kEnough);
    if (!finer && !nearer) {
      now = before;
      now.contraction = std::max(now.contraction, contraction);
      now.goes_on = false;
      return false;
    }
    now.contraction = std::max(before.contraction, contraction);
    now.size = size;
    ++now.steps;
    const bool halved = now.componentwise < before.componentwise / 2 || size < before.size / 2;
    now.goes_on = needs_more(now) && halved && now.steps < steps_max_;
    return true;
  }

  const SparseCholesky& factor_;
  const SymmetricSystem& system_;
  WorkCrew& crew_;
  double unseen_;
  std::int64_t n_;
  double norm_;
  std::vector<double> roots_;
  int steps_max_;
  std::vector<Column> columns_;
  std::vector<double> b_, x_, r_, terms_;
};

/// Elements that mirror each other and differ are a part of A that M has not.
Corrections corrections_of(const SparseCholesky& factor, const SparseMatrix& a, double condition,
                           double asymmetry) {
  constexpr double kTells = 0x1p-4;
  Corrections known;
  known.contraction =
      2 * condition * ((factor.precision() == Element::fp64 ? kUnitRoundoff : 0x1p-24) + asymmetry);
  if (known.contraction <= kTells) return known;
  const double inverse = factor_errors(factor, a).inverse;  // φ/(1 − φ)
  if (std::isinf(inverse)) return {.contraction = 1};
  known.loss = inverse * std::sqrt(condition * (1 + inverse));
  // Beyond that κ the loss alone tells.
  if (numerically_singular(condition, factor.precision())) known.contraction = 0;
  return known;
}

/// The larger, or a NaN.
void raise(double& most, double value) {
  if (std::isnan(most)) return;
  if (!(value <= most)) most = value;
}

void require_shapes(const SparseCholesky& factor, MatrixView<const double> b,
                    MatrixView<const double> x) {
  for (const MatrixView<const double>& view : {b, x})
    require(view.rows == factor.n() && view.cols >= 0 &&
                view.ld >= std::max<std::int64_t>(view.rows, 1),
            ErrorKind::misuse, kFactorWhere,
            "{} by {} numbers with a leading dimension of {} do not fit a factor of order {}",
            view.rows, view.cols, view.ld, factor.n());
  require(x.cols == b.cols, ErrorKind::misuse, kFactorWhere, "{} right-hand sides and {} solutions",
          b.cols, x.cols);
}

}  // namespace

Certificate refine(const SparseCholesky& factor, const SparseMatrix& a, MatrixView<const double> b,
                   MatrixView<double> x, double scaled_condition) {
  require_same_pattern(factor.analysis(), a);
  require_shapes(factor, b, x);
  require(factor.info().ok, ErrorKind::misuse, kFactorWhere, "there is no factor to refine with");
  const auto start = std::chrono::steady_clock::now();
  const bool bounded = !std::isnan(scaled_condition);
  Certificate certificate;
  certificate.factor = factor.info();
  certificate.precision = factor.precision();
  certificate.scaled_condition = scaled_condition;
  if (bounded) certificate.forward_error = 0;
  if (b.rows == 0) return certificate;
  const SymmetricSystem system(a, factor.shift(), factor.exponent());
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  WorkCrew crew(static_cast<int>(std::clamp<std::int64_t>(b.cols - 1, 0, cores - 1)));
  const double lost = system.loss().relative;
  // Residuals have twice the digits; what they are beside are sums of positive numbers.
  const double up = 1 + static_cast<double>(x.rows + 8) * 0x1p-52;
  const double unseen = lost > 0 ? 2 * scaled_condition * system.loss().scaled_norm : 0;
  Refiner refiner(factor, system, unseen, crew);
  const Corrections known =
      bounded ? corrections_of(factor, a, scaled_condition, system.asymmetry()) : Corrections{};
  for (std::int64_t first = 0; first < b.cols; first += kRefinedColumnsAtOnce) {
    const std::int64_t count = std::min(kRefinedColumnsAtOnce, b.cols - first);
    const MatrixView<double> part = x.block(0, first, x.rows, count);
    refiner.begin(b.block(0, first, b.rows, count), part, factor.exponent());
    refiner.refine();
    if (bounded) refiner.bound_errors(known);
    refiner.put_back(part);
    for (const Column& column : refiner.columns()) {
      certificate.refinement_steps = std::max(certificate.refinement_steps, column.steps);
      raise(certificate.backward_error, column.normwise * up + lost);
      raise(certificate.componentwise_backward_error, column.componentwise * up + lost);
      if (bounded) raise(certificate.forward_error, column.forward);
    }
  }
  certificate.seconds = seconds_since(start);
  return certificate;
}

SparseSolveResult solve(const SparseMatrix& a, MatrixView<const double> b, MatrixView<double> x,
                        const SparseCholeskyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const SparseCholesky factor(a, options);
  require_shapes(factor, b, x);
  SparseSolveResult result;
  result.factor = factor.report();
  result.analysis = factor.analysis().seconds;
  result.certificate.factor = factor.info();
  if (factor.info().ok) {
    for (std::int64_t c = 0; c < b.cols; ++c) std::copy_n(b.column(c), b.rows, x.column(c));
    factor.solve(x);
    result.certificate = refine(factor, a, b, x, factor.scaled_condition(a));
  }
  result.certificate.bytes_moved = result.factor.traffic.total() + factor.solves().traffic.total();
  result.certificate.seconds = seconds_since(start);
  return result;
}

}  // namespace strata
