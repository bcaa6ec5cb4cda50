// Preconditioned conjugate gradients for several right-hand sides.
//
// Method: the textbook's recurrence (Hestenes, Stiefel 1952; Golub, Van Loan, section 11.5), each
// column for itself, on the correction e of x: A·e = b − A·x, so that x gets a few large additions
// instead of many small ones. The residual of the recurrence drifts away from the true one by about
// u·(N·‖A‖·‖x‖ + ‖r‖) a step; when the sum of that passes √u·‖r‖, the residual is computed anew and
// e is added to x, while the direction stays (van der Vorst, Ye, "Residual replacement strategies
// for Krylov subspace iterative methods for the convergence of true residuals", SIAM J. Sci.
// Comput. 22, 2000, algorithm 3; N, the elements of a row, stands for a worst case, √n for what is
// seen). A column that seems to be done waits for the others, so that one product measures them
// all; one that is not done after all starts again from its computed residual. That is iterative
// refinement, with conjugate gradients for its solver.

#include "cholesky/refinement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "cholesky/refined_columns.hpp"
#include "dense/tridiagonal.hpp"

namespace strata {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ConjugateGradients {
 public:
  explicit ConjugateGradients(RefinedColumns& columns)
      : columns_(columns),
        lanes_(static_cast<std::size_t>(columns.count())),
        r_(columns.n(), columns.count()),
        z_(columns.n(), columns.count()),
        p_(columns.n(), columns.count()),
        q_(columns.n(), columns.count()),
        e_(columns.n(), columns.count()) {}

  /// False: something was not positive definite.
  bool run() {
    for_each(&Lane::idle, [&](std::int64_t j) {
      if (columns_.goes_on(j)) start(j);
    });
    while (any_runs() || settle()) {
      turn();
      if (any_runs()) step();
      replace();
    }
    for (std::int64_t j = 0; j < columns_.count(); ++j) note_spectrum(j);
    return definite_;
  }

 private:
  struct Lane {
    bool idle = true;     // has stopped, or never began
    bool waits = false;   // to be measured
    bool drifts = false;  // its residual is to be replaced
    bool fresh = true;    // has no direction yet
    double rho = 0;       // rᵀz of the last direction
    double best = std::numeric_limits<double>::infinity();
    int since_best = 0;
    double drift = 0;        // estimated distance of r from the true residual, …
    double drift_begin = 0;  // … when it was computed
    double norm_r = 0;
    bool spectrum_open = true;  // of its first unbroken run
    std::vector<double> alphas{};
    std::vector<double> betas{};

    [[nodiscard]] bool runs() const { return !idle && !waits; }
  };

  Lane& lane(std::int64_t j) { return lanes_[static_cast<std::size_t>(j)]; }
  template <class F>
  void for_each(bool Lane::*which, F&& visit) {
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      if (lane(j).*which) visit(j);
    }
  }
  template <class F>
  void for_each_running(F&& visit) {
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      if (lane(j).runs()) visit(j);
    }
  }
  [[nodiscard]] bool any_runs() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.runs(); });
  }

  /// u·(√n·‖A‖·‖x + e‖ + ‖r‖), what a step adds to the drift.
  [[nodiscard]] double rounding_of(double norm_x, double norm_r) const {
    const double rows = std::sqrt(static_cast<double>(columns_.n()));
    return kUnitRoundoff * (rows * columns_.options().norm * norm_x + norm_r);
  }

  /// From the computed residual.
  void take_residual(std::int64_t j) {
    Lane& l = lane(j);
    std::copy_n(columns_.residual(j), columns_.n(), r_.column(j));
    e_.clear_column(j);
    l.norm_r = norm_inf(columns_.n(), r_.column(j));
    l.drift = l.drift_begin = rounding_of(norm_inf(columns_.n(), columns_.x(j)), l.norm_r);
  }

  void start(std::int64_t j) {
    Lane& l = lane(j);
    l.idle = l.waits = false;
    l.fresh = true;
    l.best = std::numeric_limits<double>::infinity();
    l.since_best = 0;
    if (!l.alphas.empty()) l.spectrum_open = false;
    take_residual(j);
  }

  void stop(std::int64_t j, RefinementStop why) {
    lane(j).idle = true;
    if (why == RefinementStop::indefinite) definite_ = false;
    columns_.stop(j, why);
  }

  /// The next direction of each column that runs.
  void turn() {
    const std::int64_t n = columns_.n();
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      z_.clear_column(j);
      if (lane(j).runs()) std::copy_n(r_.column(j), n, z_.column(j));
    }
    columns_.precondition(z_);
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      Lane& l = lane(j);
      if (l.runs()) {
        const double rho = dot(n, r_.column(j), z_.column(j));
        if (l.norm_r == 0) {
          l.waits = true;
        } else if (!std::isfinite(rho)) {
          stop(j, RefinementStop::failed);
        } else if (!(rho > 0)) {
          stop(j, RefinementStop::indefinite);
        } else {
          const double beta = l.fresh ? 0 : rho / l.rho;
          if (l.spectrum_open && !l.fresh) l.betas.push_back(beta);
          double* p = p_.column(j);
          const double* z = z_.column(j);
          for (std::int64_t i = 0; i < n; ++i) p[i] = l.fresh ? z[i] : std::fma(beta, p[i], z[i]);
          l.rho = rho;
          l.fresh = false;
        }
      }
      if (!l.runs()) p_.clear_column(j);
    }
  }

  void step() {
    columns_.apply(p_, q_);
    for_each_running([&](std::int64_t j) {
      Lane& l = lane(j);
      const std::int64_t n = columns_.n();
      const double curvature = dot(n, p_.column(j), q_.column(j));
      if (!std::isfinite(curvature)) return stop(j, RefinementStop::failed);
      if (!(curvature > 0)) return stop(j, RefinementStop::indefinite);
      const double alpha = l.rho / curvature;
      if (l.spectrum_open) l.alphas.push_back(alpha);
      add_scaled(n, alpha, p_.column(j), e_.column(j));
      add_scaled(n, -alpha, q_.column(j), r_.column(j));
      ++columns_[j].steps;
      judge(j);
    });
  }

  void judge(std::int64_t j) {
    Lane& l = lane(j);
    const RefinementOptions& options = columns_.options();
    double norm_x = 0;
    for (std::int64_t i = 0; i < columns_.n(); ++i)
      norm_x = std::max(norm_x, std::abs(columns_.x(j)[i] + e_.column(j)[i]));
    const double norm_r = norm_inf(columns_.n(), r_.column(j));
    const double error = norm_r / columns_.scale(j, norm_x);
    if (error < 0.9 * l.best) {
      l.best = error;
      l.since_best = 0;
    } else {
      ++l.since_best;
    }
    const double drift = l.drift + rounding_of(norm_x, norm_r);
    const double share = std::sqrt(kUnitRoundoff);
    l.drifts = l.drift <= share * l.norm_r && drift > share * norm_r && drift > 1.1 * l.drift_begin;
    l.drift = drift;
    l.norm_r = norm_r;
    // Half the tolerance, so that the drift has the other half.
    l.waits = error <= 0.5 * options.tolerance || l.since_best >= options.stagnation_steps ||
              columns_[j].steps >= options.steps_max || std::isnan(error);
  }

  /// Computes the residuals of those that drift.
  void replace() {
    std::vector<bool> which;
    for (const Lane& l : lanes_) which.push_back(l.runs() && l.drifts);
    if (std::find(which.begin(), which.end(), true) == which.end()) return;
    const std::vector<bool> taken = columns_.measure(which, e_, false);
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      lane(j).drifts = false;
      if (!which[static_cast<std::size_t>(j)]) continue;
      if (!columns_.goes_on(j)) {
        lane(j).idle = true;
      } else if (taken[static_cast<std::size_t>(j)]) {
        take_residual(j);
        ++columns_[j].replacements;
      }
    }
  }

  /// Measures the lanes that wait, since none runs any more; false if they are all done.
  bool settle() {
    std::vector<bool> which;
    for (const Lane& l : lanes_) which.push_back(l.waits && !l.idle);
    if (std::find(which.begin(), which.end(), true) == which.end()) return false;
    (void)columns_.measure(which, e_, true);
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      if (!which[static_cast<std::size_t>(j)]) continue;
      lane(j).idle = true;
      if (columns_.goes_on(j)) start(j);
    }
    return any_runs();
  }

  /// The coefficients are those of a Lanczos tridiagonal matrix (Golub, Van Loan, section 11.3.7).
  void note_spectrum(std::int64_t j) {
    const Lane& l = lane(j);
    if (l.alphas.empty()) return;
    std::vector<double> diagonal;
    std::vector<double> off;
    for (std::size_t k = 0; k < l.alphas.size(); ++k) {
      diagonal.push_back(1 / l.alphas[k]);
      if (k > 0) {
        diagonal.back() += l.betas[k - 1] / l.alphas[k - 1];
        off.push_back(std::sqrt(l.betas[k - 1]) / l.alphas[k - 1]);
      }
    }
    const TridiagonalSpectrum spectrum = spectrum_of(std::move(diagonal), std::move(off));
    const auto [low, high] = std::minmax_element(spectrum.values.begin(), spectrum.values.end());
    columns_[j].ritz_min = *low;
    columns_[j].ritz_max = *high;
  }

  RefinedColumns& columns_;
  std::vector<Lane> lanes_;
  DenseBlock r_;
  DenseBlock z_;
  DenseBlock p_;
  DenseBlock q_;
  DenseBlock e_;
  bool definite_ = true;
};

void check(MatrixView<const double> b, MatrixView<const double> x,
           const RefinementOptions& options) {
  require(b.rows == x.rows && b.cols == x.cols, ErrorKind::misuse, "refine",
          "a solution of {} by {} does not fit right-hand sides of {} by {}", x.rows, x.cols,
          b.rows, b.cols);
  require(options.norm > 0 && std::isfinite(options.norm), ErrorKind::misuse, "refine",
          "a norm of {} is none of a positive definite matrix", options.norm);
  require(options.tolerance >= 0 && std::isfinite(options.tolerance), ErrorKind::misuse, "refine",
          "a backward error of {} cannot be asked for", options.tolerance);
  require(options.steps_max >= 0 && options.stagnation_steps >= 1 && options.restart >= 1,
          ErrorKind::misuse, "refine",
          "{} steps, {} without a gain and {} to a restart make no run", options.steps_max,
          options.stagnation_steps, options.restart);
}

void sum_up(Refinement& out) {
  for (const RefinedColumn& column : out.columns) {
    out.converged = out.converged && column.stop == RefinementStop::reached;
    out.steps = std::max(out.steps, column.steps);
    if (!std::isnan(out.backward_error) && !(column.backward_error <= out.backward_error))
      out.backward_error = column.backward_error;
    if (column.ritz_max == 0) continue;
    out.ritz_min = out.ritz_min == 0 ? column.ritz_min : std::min(out.ritz_min, column.ritz_min);
    out.ritz_max = std::max(out.ritz_max, column.ritz_max);
  }
}

}  // namespace

RefinedColumns::RefinedColumns(const BlockOperator& apply, const BlockSolver& precondition,
                               MatrixView<const double> b, MatrixView<double> x,
                               const RefinementOptions& options, Refinement& out)
    : apply_(apply),
      precondition_(precondition),
      b_(b),
      x_(x),
      options_(options),
      out_(out),
      goes_on_(static_cast<std::size_t>(b.cols), true) {
  out_.columns.resize(static_cast<std::size_t>(b.cols));
  for (RefinedColumn& column : out_.columns)
    column.backward_error = std::numeric_limits<double>::infinity();  // not measured yet
  out_.residuals = DenseBlock(b.rows, b.cols);
  for (std::int64_t j = 0; j < b.cols; ++j) norm_b_.push_back(norm_inf(b.rows, b.column(j)));
}

void RefinedColumns::stop(std::int64_t j, RefinementStop why) {
  goes_on_[static_cast<std::size_t>(j)] = false;
  (*this)[j].stop = why;
}

double RefinedColumns::scale(std::int64_t j, double norm_x) const {
  return options_.norm * norm_x + norm_b_[static_cast<std::size_t>(j)];
}

void RefinedColumns::apply(const DenseBlock& v, DenseBlock& y) {
  apply_(v.view(), y.view());
  ++out_.products;
}

void RefinedColumns::precondition(DenseBlock& v) {
  precondition_(v.view());
  ++out_.solves;
}

std::vector<bool> RefinedColumns::measure(const std::vector<bool>& which, const DenseBlock& change,
                                          bool final) {
  DenseBlock x(n(), count());
  DenseBlock product(n(), count());
  bool zero = true;
  for (std::int64_t j = 0; j < count(); ++j) {
    if (!which[static_cast<std::size_t>(j)]) continue;
    for (std::int64_t i = 0; i < n(); ++i) x.column(j)[i] = x_(i, j) + change.column(j)[i];
    zero = zero && norm_inf(n(), x.column(j)) == 0;
  }
  if (!zero) apply(x, product);
  std::vector<bool> taken(which.size());
  for (std::int64_t j = 0; j < count(); ++j) {
    if (!which[static_cast<std::size_t>(j)]) continue;
    double* r = product.column(j);
    for (std::int64_t i = 0; i < n(); ++i) r[i] = b_(i, j) - r[i];
    const double norm_r = norm_inf(n(), r);
    const double error = norm_r == 0 ? 0 : norm_r / scale(j, norm_inf(n(), x.column(j)));
    const double before = (*this)[j].backward_error;
    if (error < before || std::isinf(before)) {
      taken[static_cast<std::size_t>(j)] = true;
      std::copy_n(x.column(j), n(), x_.column(j));
      std::copy_n(r, n(), out_.residuals.column(j));
      (*this)[j].backward_error = error;
    }
    judge(j, error, before, final);
  }
  return taken;
}

void RefinedColumns::judge(std::int64_t j, double error, double before, bool final) {
  if (!std::isfinite(error)) {
    stop(j, RefinementStop::failed);
  } else if (error <= options_.tolerance) {
    stop(j, RefinementStop::reached);
  } else if (final && (*this)[j].steps >= options_.steps_max) {
    stop(j, RefinementStop::limit);
  } else if (final && error > 0.5 * before) {
    stop(j, RefinementStop::stagnated);
  }
}

void refine_by_conjugate_gradients(RefinedColumns& columns, Refinement& out) {
  out.definite = ConjugateGradients(columns).run();
}

double attainable_backward_error(std::int64_t n) {
  return std::max(4.0, std::sqrt(static_cast<double>(n))) * kUnitRoundoff;
}

double nonnegative_norm(const BlockOperator& apply, std::int64_t n) {
  DenseBlock ones(n, 1);
  std::fill_n(ones.column(0), n, 1.0);
  DenseBlock sums(n, 1);
  if (n > 0) apply(ones.view(), sums.view());
  return norm_inf(n, sums.column(0));
}

Refinement refine(const BlockOperator& apply, const BlockSolver& precondition,
                  MatrixView<const double> b, MatrixView<double> x,
                  const RefinementOptions& options) {
  check(b, x, options);
  RefinementOptions asked = options;
  if (asked.tolerance == 0) asked.tolerance = attainable_backward_error(b.rows);
  Refinement out;
  out.tolerance = asked.tolerance;
  RefinedColumns columns(apply, precondition, b, x, asked, out);
  if (b.cols == 0) return out;
  const std::vector<bool> all(static_cast<std::size_t>(b.cols), true);
  (void)columns.measure(all, DenseBlock(b.rows, b.cols), asked.steps_max == 0);
  if (asked.method == RefinementMethod::conjugate_gradients) {
    refine_by_conjugate_gradients(columns, out);
    for (std::int64_t j = 0; asked.fall_back && j < b.cols; ++j) {
      if (columns[j].stop == RefinementStop::indefinite) columns.revive(j);
    }
    refine_by_gmres(columns, false);
  } else {
    refine_by_gmres(columns, asked.method == RefinementMethod::gmres_left);
  }
  sum_up(out);
  return out;
}

std::vector<QuadraticForm> quadratic_forms(MatrixView<const double> b, MatrixView<const double> x,
                                           MatrixView<const double> residuals,
                                           const BlockSolver& precondition, double lambda,
                                           double norm) {
  require(
      b.rows == x.rows && b.cols == x.cols && residuals.rows == b.rows && residuals.cols == b.cols,
      ErrorKind::misuse, "quadratic_forms",
      "{} by {} right-hand sides, {} by {} solutions and {} by {} residuals do not fit", b.rows,
      b.cols, x.rows, x.cols, residuals.rows, residuals.cols);
  require(lambda > 0, ErrorKind::misuse, "quadratic_forms",
          "{} is no smallest eigenvalue of positive definite matrices", lambda);
  const std::int64_t n = b.rows;
  DenseBlock whitened(n, b.cols);
  for (std::int64_t j = 0; j < b.cols; ++j) std::copy_n(residuals.column(j), n, whitened.column(j));
  if (b.cols > 0) precondition(whitened.view());
  const double roundings = static_cast<double>(n + 2) * kUnitRoundoff;
  const double gamma = roundings < 1 ? roundings / (1 - roundings) : kNan;
  std::vector<QuadraticForm> forms;
  for (std::int64_t j = 0; j < b.cols; ++j) {
    double sum_x = 0;
    for (std::int64_t i = 0; i < n; ++i) sum_x += std::abs(x(i, j));
    const double scale = norm * norm_inf(n, x.column(j)) + norm_inf(n, b.column(j));
    QuadraticForm form;
    form.value = accurate_dot(n, b.column(j), x.column(j)) +
                 accurate_dot(n, residuals.column(j), x.column(j));
    form.remainder = dot(n, residuals.column(j), whitened.column(j)) / lambda;
    form.rounding = gamma * scale * sum_x;
    forms.push_back(form);
  }
  return forms;
}

}  // namespace strata
