// GMRES and communication-avoiding GMRES.
//
// Method: a cycle builds a basis of up to `restart` vectors behind the residual (arnoldi.hpp),
// vector by vector or in blocks of s, solves the projected problem on the host and adds Q·y to x.
// The residual is then computed with A, and begins the next cycle. So what is reported is never the
// estimate of the recurrence. With vectors in fp32 x, b and the residual lie beside them in fp64, a
// cycle solves for the correction of x, and A and M⁻¹ are scaled by powers of two so that floats
// hold them. A and b as given, and what is solved, are multiplied by powers of two where squares
// might leave the range of doubles, and nothing is compared with the norm of A before it was tried.
// The first cycle of a basis that needs Ritz values goes vector by vector, as in Yamazaki, Tomov
// and Dongarra (2015): its H has them. Columns of V behind the basis are x and b, so that a
// residual is one more product.

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "dense/small_eigen.hpp"
#include "device/device_host.hpp"
#include "krylov/arnoldi.hpp"
#include "krylov/given_system.hpp"
#include "krylov/gmres_blocks.hpp"
#include "krylov/hessenberg_solver.hpp"
#include "krylov/linear_system.hpp"
#include "krylov/orthogonalization.hpp"
#include "session/report.hpp"
#include "strata/krylov.hpp"

namespace strata {
namespace {

struct NamedPreconditioner {
  Preconditioner preconditioner;
  std::string_view name;
};
constexpr std::array kPreconditioners{
    NamedPreconditioner{Preconditioner::none, "none"},
    NamedPreconditioner{Preconditioner::jacobi, "jacobi"},
    NamedPreconditioner{Preconditioner::block_jacobi, "block-jacobi"},
    NamedPreconditioner{Preconditioner::custom, "custom"}};

/// Least share of the residual at the beginning of a cycle that a cycle with vectors in fp32 aims
/// at: beyond that only the estimate would fall.
constexpr double kSingleGain = 1e-6;
/// The residual has to fall by this in so many cycles.
constexpr std::int64_t kPatience = 20;
constexpr double kProgress = 0.99;

void check_block(const GmresOptions& options) {
  const BlockOrthogonalization block = options.block_orthogonalization;
  const QrMethod m = options.orthogonalization;
  const bool two = block == BlockOrthogonalization::two_stage;
  require(options.panel == 0 || two, ErrorKind::misuse, "gmres",
          "a panel of {} vectors is of two-stage orthogonalization, not of {}", options.panel,
          to_string(block));
  require(options.panel == 0 || (options.panel >= options.s && options.panel <= options.restart),
          ErrorKind::misuse, "gmres", "a panel of {} vectors is not between s = {} and {}",
          options.panel, options.s, options.restart);
  if (block == BlockOrthogonalization::classical) return;
  require(options.s > 1, ErrorKind::misuse, "gmres",
          "{} orthogonalization is of blocks, not of s = 1", to_string(block));
  require(goes_with(block, m), ErrorKind::misuse, "gmres",
          "{} orthogonalization does not go with {}: {} do", to_string(block), to_string(m),
          krylov_method_names(block, options.s));
}

void check_options(const GmresOptions& options) {
  require(
      options.basis != KrylovBasis::lanczos, ErrorKind::misuse, "gmres",
      "the lanczos basis is one of symmetric matrices, for eigs: monomial, newton or chebyshev");
  require(options.restart >= 1 && options.restart <= kKrylovBasisMax, ErrorKind::misuse, "gmres",
          "a restart of {} is not between 1 and {}", options.restart, kKrylovBasisMax);
  require(options.s >= 1 && options.s <= options.restart, ErrorKind::misuse, "gmres",
          "blocks of s = {} vectors do not fit a restart of {}", options.s, options.restart);
  require(options.tolerance >= 0 && options.absolute_tolerance >= 0 && options.restarts_max >= 0 &&
              std::isfinite(options.tolerance) && std::isfinite(options.absolute_tolerance),
          ErrorKind::misuse, "gmres", "tolerances of {} and {} in {} restarts are none",
          options.tolerance, options.absolute_tolerance, options.restarts_max);
  require_krylov_method(options.orthogonalization, options.s, "gmres");
  require(options.precision == Element::fp64 || options.precision == Element::fp32,
          ErrorKind::misuse, "gmres", "vectors in {} are none: fp64 or fp32",
          to_string(options.precision));
  check_block(options);
}

double power_near_inverse(double x) {
  constexpr int kMost = 1000;  // beyond it the power would be infinite
  return x > 0 && std::isfinite(x) ? std::ldexp(1.0, std::min(-std::ilogb(x), kMost)) : 1.0;
}

/// How the vectors are kept, with scales by which elements of A and of A·M⁻¹ are near 1.
VectorFormat format_of(const LinearSystem& system, Element element) {
  VectorFormat format;
  format.element = element;
  if (element == Element::fp64) return format;
  format.wide_columns = 3 + (system.preconditioned() ? 1 : 0);
  double largest = 0;
  for (const double x : system.matrix().value) largest = std::max(largest, std::abs(x));
  format.scale = power_near_inverse(largest);
  if (system.preconditioned())
    format.inverse_scale = power_near_inverse(format.scale * system.norm());
  return format;
}

/// Vectors that are made orthonormal together.
std::int64_t widest_block(const GmresOptions& options, std::int64_t restart) {
  const bool two = options.block_orthogonalization == BlockOrthogonalization::two_stage;
  const std::int64_t panel = options.panel > 0 ? options.panel : restart;
  return std::min(restart, two ? panel : options.s);
}

RightInverse inverse_of(const LinearSystem& system) {
  RightInverse inverse{system.inverse(), {}};
  if (system.preconditioned() && inverse.matrix == nullptr)
    inverse.apply = [&system](std::span<const double> x, std::span<double> y) {
      system.precondition(x, y);
    };
  return inverse;
}

class Gmres {
  /// The columns of W.
  static constexpr std::int64_t kX = 0, kB = 1, kResidual = 2;

 public:
  /// `rhs_norm`: what residuals are told relative to.
  Gmres(const LinearSystem& system, std::vector<double> b, std::vector<double> u, double rhs_norm,
        const GmresOptions& options, const BlockObserver& observer)
      : options_(options),
        observer_(observer),
        restart_(std::min(options.restart, system.matrix().rows)),
        format_(format_of(system, options.precision)),
        scale_(format_.scale * format_.inverse_scale),
        norm_(system.norm() * scale_),
        b_(std::move(b)),
        u_(std::move(u)),
        rhs_norm_(rhs_norm),
        runner_(system.matrix(), restart_ + (single() ? 1 : 3) + (system.preconditioned() ? 1 : 0),
                widest_block(options, restart_),
                {{single() ? kX : restart_ + 1, u_}, {single() ? kB : restart_ + 2, b_}},
                options.run, "gmres", 0, inverse_of(system),
                options.ghost_zones ? std::min(options.s, restart_) : 0, format_),
        arnoldi_(runner_, {.s = std::min(options.s, restart_),
                           .method = options.orthogonalization,
                           .element = options.precision,
                           .block = options.block_orthogonalization,
                           .panel = widest_block(options, restart_)}) {
    arnoldi_.set_recurrence(make_recurrence(KrylovBasis::monomial, options.s, {}, norm_));
  }

  /// Cycles until the residual of this system is at most `target`·‖b‖, or nothing helps.
  void run(double target, GmresInfo& info) {
    if (!begun_) {
      residual_ = finish_cycle({});
      begun_ = true;
    }
    while (residual_ > target * rhs_norm_ && info.restarts < options_.restarts_max) {
      cycle(target * rhs_norm_, info);
      if (info.breakdown || has_stagnated(info)) break;
    }
    info.iterations = arnoldi_.products;
    info.factorizations = arnoldi_.factorizations;
    info.failed_cholesky = arnoldi_.failed_cholesky;
    info.condition_max = arnoldi_.condition_max;
    info.reductions = arnoldi_.reductions;
    info.decisions = arnoldi_.decisions;
    info.halo = runner_.halo();
  }

  /// Whether the space ended with a residual that it does not lower.
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  void take_solution(std::span<double> u) {
    (void)runner_.run_and_take(BasisScript(), single() ? kX : restart_ + 1, u, single());
  }
  [[nodiscard]] RunReport take_report() { return runner_.take_report(); }
  [[nodiscard]] const KrylovSeconds& seconds() const noexcept { return runner_.seconds(); }

 private:
  [[nodiscard]] bool single() const noexcept { return format_.element == Element::fp32; }

  /// x ← x + Q·y; q_0 ← r/‖r‖ with r = b − A·x. Returns ‖r‖.
  double finish_cycle(const std::vector<double>& y) {
    BasisScript& script = arnoldi_.pending();
    PanelFactor minus{std::ssize(y), 1, Element::fp64, {}, {}};
    for (const double value : y) minus.values.emplace_back(-value * scale_);
    int norm = 0;
    if (single()) {
      if (!y.empty()) script.correct(0, kX, std::move(minus));
      script.multiply(kX, kResidual, kB, 0, 1, -1, true);
      norm = script.inner(kResidual, 1, kResidual, 1, Element::fp64, true);
      script.narrow(kResidual, 0, norm);
    } else {
      if (!y.empty()) script.update_by(0, restart_ + 1, std::move(minus));
      script.multiply(restart_ + 1, 0, restart_ + 2, 0, 1, -1);
      norm = script.inner(0, 1, 0, 1);
      script.normalize(0, norm);
    }
    const std::vector<PanelSum> sums = arnoldi_.flush();
    return std::sqrt(sums[static_cast<std::size_t>(norm)](0, 0).hi);
  }

  /// What a cycle adds to x. Where A is singular on the space beside its norm, columns are left
  /// out; but the norm may be that of a few large rows, and the residual lie in the others. So what
  /// the columns themselves allow is tried first, and taken back where it does not help.
  void take_update(const HessenbergSolver& projected) {
    const double before = residual_;
    const std::vector<double> careful = projected.solve(norm_);
    const std::vector<double> whole = projected.solve(projected.longest_column());
    if (whole.size() > careful.size()) {
      std::vector<double> u(static_cast<std::size_t>(runner_.rows()));
      take_solution(u);
      residual_ = finish_cycle(whole);
      if (residual_ <= kProgress * before) return;
      arnoldi_.pending().put(single() ? kX : restart_ + 1, std::move(u), single());
      residual_ = finish_cycle({});
      if (careful.empty()) return;
    }
    residual_ = finish_cycle(careful);
  }

  [[nodiscard]] bool by_vectors(std::int64_t cycle) const {
    return options_.s == 1 || (cycle == 0 && options_.basis != KrylovBasis::monomial);
  }

  void cycle(double target, GmresInfo& info) {
    KrylovCycle record;
    const double before = residual_;
    if (single()) target = std::max(target, kSingleGain * before);
    const std::int64_t failed = arnoldi_.failed_cholesky;
    const std::size_t decided = arnoldi_.decisions.size();
    HessenbergSolver projected(residual_);
    arnoldi_.begin(info.restarts);
    while (arnoldi_.size() < restart_ && projected.residual() > target && !arnoldi_.ended() &&
           !arnoldi_.not_finite()) {
      const std::int64_t left = restart_ - arnoldi_.size();
      if (by_vectors(info.restarts)) {
        arnoldi_.add_vectors(std::min(left, kStepsOfScript));
      } else {
        const std::int64_t column = arnoldi_.size();
        arnoldi_.add_block(left);
        if (observer_) observe(info.restarts, column);
      }
      while (projected.size() < arnoldi_.size() && projected.residual() > target)
        projected.add(arnoldi_.h()[static_cast<std::size_t>(projected.size())]);
    }
    if (info.restarts == 0 && options_.s > 1 && options_.basis != KrylovBasis::monomial)
      take_ritz_values();
    record.vectors = projected.size();
    record.estimated_residual = projected.residual() / rhs_norm_;
    take_update(projected);
    record.relative_residual = residual_ / rhs_norm_;
    record.blocks = std::ssize(arnoldi_.decisions) - static_cast<std::int64_t>(decided);
    record.failed_cholesky = arnoldi_.failed_cholesky - failed;
    info.history.push_back(record);
    ++info.restarts;
    const bool useless = arnoldi_.ended() && residual_ > kProgress * before;
    if (!std::isfinite(residual_) || useless || (arnoldi_.not_finite() && record.vectors == 0)) {
      info.breakdown = true;
      info.why = useless ? fmt::format("the Krylov space ended after {} vector{}", record.vectors,
                                       record.vectors == 1 ? "" : "s")
                         : fmt::format("numbers are no longer finite in cycle {}", info.restarts);
      ended_ = useless;
    }
  }

  /// Shows the block behind a column, whose solve is pending.
  void observe(std::int64_t cycle, std::int64_t column) {
    const std::int64_t n = runner_.rows();
    const std::int64_t count = arnoldi_.size() - column;
    std::vector<double> block(static_cast<std::size_t>(n * count));
    const MatrixView<double> to{block.data(), n, count, n};
    (void)runner_.run_and_take(BasisScript(), column + 1, to);
    observer_(cycle, column, to);
  }

  void take_ritz_values() {
    const std::int64_t n = arnoldi_.size();
    SquareMatrix<double> h(n);
    for (std::int64_t j = 0; j < n; ++j) {
      const std::vector<double>& column = arnoldi_.h()[static_cast<std::size_t>(j)];
      for (std::int64_t i = 0; i < std::min(n, std::ssize(column)); ++i)
        h(i, j) = column[static_cast<std::size_t>(i)];
    }
    arnoldi_.set_recurrence(
        make_recurrence(options_.basis, options_.s, hessenberg_eigenvalues(std::move(h)), norm_));
  }

  [[nodiscard]] bool has_stagnated(GmresInfo& info) const {
    const std::int64_t cycles = std::ssize(info.history);
    if (cycles <= kPatience) return false;
    const auto residual = [&](std::int64_t i) {
      return info.history[static_cast<std::size_t>(i)].relative_residual;
    };
    if (residual(cycles - 1) <= kProgress * residual(cycles - 1 - kPatience)) return false;
    info.stagnated = true;
    info.why = fmt::format("the residual fell by less than {:.0f} % in {} cycles of {} vectors",
                           100 * (1 - kProgress), kPatience, restart_);
    return true;
  }

  GmresOptions options_;
  const BlockObserver& observer_;
  std::int64_t restart_;
  VectorFormat format_;
  double scale_;  ///< of what the basis is multiplied by; 1 in fp64
  double norm_;   ///< of that
  std::vector<double> b_, u_;
  double rhs_norm_;
  BasisRunner runner_;
  Arnoldi arnoldi_;
  double residual_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

/// What is solved for, of the system as it was given, and back.
class Solution {
 public:
  Solution(const LinearSystem& system, const GivenSystem& given, std::span<const double> start,
           WorkCrew& crew)
      : system_(system), given_(given), rhs_(system.rhs(given.rhs())), start_(start) {
    const int more = scaling_exponent(rhs_, crew);
    for (double& x : rhs_) x = more != 0 ? std::ldexp(x, more) : x;
    rhs_exponent_ = given.exponent() + more;
  }

  /// What is solved for with the initial guess of the caller. With a preconditioner it is a
  /// correction, since M itself is not known.
  [[nodiscard]] std::vector<double> first() const {
    return system_.preconditioned() ? std::vector<double>(rhs_.size())
                                    : system_.unknowns(start_, rhs_exponent_ - system_.exponent());
  }
  [[nodiscard]] std::vector<double> rhs() const {
    if (!system_.preconditioned()) return rhs_;
    std::vector<double> r = system_.rhs(given_.residual(start_));
    const int more = rhs_exponent_ - given_.exponent();
    for (double& x : r) x = more != 0 ? std::ldexp(x, more) : x;
    return r;
  }
  [[nodiscard]] double rhs_norm() const { return norm_of(rhs_); }
  [[nodiscard]] std::vector<double> from(std::span<const double> u) const {
    const int shift = system_.exponent() - rhs_exponent_;
    std::vector<double> x(u.size());
    if (!system_.preconditioned()) {
      system_.solution(u, x, shift);
      return x;
    }
    std::vector<double> inverted(u.size());
    system_.precondition(u, inverted);
    system_.solution(inverted, x, shift);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += start_[i];
    return x;
  }

 private:
  const LinearSystem& system_;
  const GivenSystem& given_;
  std::vector<double> rhs_;  ///< of b, times 2^rhs_exponent_
  std::span<const double> start_;
  int rhs_exponent_ = 0;
};

LinearSystem system_of(const SparseMatrix& a, bool balance, const GmresOptions& options,
                       WorkCrew& crew) {
  return {a, {balance, options.preconditioner, options.reorder, "gmres"}, crew};
}

/// In the units of `given`.
double goal_of(const GivenSystem& given, const GmresOptions& options) {
  return std::max(options.tolerance * given.length(),
                  std::ldexp(options.absolute_tolerance, given.exponent()));
}

/// What is known of b where vectors of the space lower the residual no further. If Aᵀy is 0, yᵀ(b −
/// A·z) = yᵀb for every z. If nothing is known, a solution may lie outside of the space, as with a
/// nilpotent A.
std::string about_range(const GivenSystem& given, bool ended) {
  constexpr double kRounding = 1e-13;
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const RangeEvidence evidence = given.evidence_of_range();
  if (evidence.left <= kRounding)
    return fmt::format(
        ": b does not lie in the range of A, as a vector shows that is orthogonal to that (to "
        "{:.0e}) and not to b; the residual of x is orthogonal to {:.0e}",
        std::max(evidence.left, kEpsilon), std::max(evidence.residual, kEpsilon));
  if (!ended) return "";
  return fmt::format(
      ": A is singular or nearly so, and no vector of the space solves the system; b may not lie "
      "in the range of A, to which the residual is orthogonal to {:.0e}, or a solution outside of "
      "the "
      "space",
      evidence.residual);
}

/// With the residual of the system as it was given; the scaled one is solved further until it is
/// within the tolerance, or two attempts do not bring it there.
void solve(const LinearSystem& system, GivenSystem& given, std::span<const double> start,
           const GmresOptions& options, const BlockObserver& observer, WorkCrew& crew,
           GmresInfo& info) {
  const double goal = goal_of(given, options);
  const Solution solution(system, given, start, crew);
  Gmres method(system, solution.rhs(), solution.first(), solution.rhs_norm(), options, observer);
  double target = goal / given.length();
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    method.run(target, info);
    std::vector<double> u(start.size());
    method.take_solution(u);
    const double residual = given.offer(solution.from(u));
    if (!std::isfinite(residual) && info.why.empty()) {
      info.breakdown = true;
      info.why = "an element of x is beyond the largest double";
    }
    if (residual <= goal || info.breakdown || info.stagnated ||
        info.restarts >= options.restarts_max)
      break;
    target *= std::min(0.5, 0.5 * goal / residual);
  }
  info.ok = given.best_residual() <= goal;
  if (info.ok) {  // as given; the scaled system ended short of its own target
    info.breakdown = info.stagnated = false;
    info.why.clear();
  } else if (method.ended() || info.stagnated) {
    info.why += about_range(given, method.ended());
  }
  info.seconds = method.seconds();
  info.report = method.take_report();
}

/// A balance that did not do is no reason to be worse than without: the same again, unbalanced.
void solve_unbalanced(const SparseMatrix& a, GivenSystem& given, std::span<const double> start,
                      const GmresOptions& options, const BlockObserver& observer, WorkCrew& crew,
                      GmresInfo& info) {
  KrylovDecision decision;
  decision.restart = info.restarts;
  decision.what = fmt::format("unbalanced: the residual of A and b as given is {:.1e} of |b|",
                              given.best_residual() / given.length());
  GmresInfo plain;
  solve(system_of(a, false, options, crew), given, start, options, observer, crew, plain);
  info.decisions.push_back(std::move(decision));
  info.decisions.insert(info.decisions.end(), plain.decisions.begin(), plain.decisions.end());
  info.history.insert(info.history.end(), plain.history.begin(), plain.history.end());
  info.ok = plain.ok;
  info.stagnated = plain.stagnated;
  info.breakdown = plain.breakdown;
  info.why = plain.why;
  info.restarts += plain.restarts;
  info.iterations += plain.iterations;
  info.factorizations += plain.factorizations;
  info.failed_cholesky += plain.failed_cholesky;
  info.condition_max = std::max(info.condition_max, plain.condition_max);
  info.reductions += plain.reductions;
  info.halo = plain.halo;
  info.seconds += plain.seconds;
  accumulate_with_trace(info.report, plain.report);
}

/// Looks at the rows that are short beside others: the residual as given does not show whether x
/// solves them.
void check_short_rows(const GivenSystem& given, const GmresOptions& options, GmresInfo& info) {
  info.scaled_residual = ratio_of(given.best_with_scaled_rows(), given.rhs_with_scaled_rows());
  const double goal = kRowsFarApart * goal_of(given, options) / given.length();
  if (!info.ok || info.rows_apart < kRowsFarApart || info.scaled_residual <= goal) return;
  info.ok = false;
  info.why = fmt::format(
      "rows of A are {:.0e} apart in length, and x does not solve the short ones: with rows of one "
      "length the residual is {:.1e} of |b|",
      info.rows_apart, info.scaled_residual);
}

}  // namespace

std::string_view to_string(Preconditioner preconditioner) noexcept {
  for (const NamedPreconditioner& named : kPreconditioners) {
    if (named.preconditioner == preconditioner) return named.name;
  }
  return "?";
}

Preconditioner parse_preconditioner(const std::string& name) {
  std::string names;
  for (const NamedPreconditioner& named : kPreconditioners) {
    if (named.preconditioner == Preconditioner::custom) continue;
    if (named.name == name) return named.preconditioner;
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  fail(ErrorKind::misuse, "krylov", "there is no preconditioner '{}': {}", name, names);
}

GmresInfo gmres(const SparseMatrix& a, std::span<const double> b, std::span<double> x,
                const GmresOptions& options) {
  return gmres_observed(a, b, x, options, nullptr);
}

GmresInfo gmres_observed(const SparseMatrix& a, std::span<const double> b, std::span<double> x,
                         const GmresOptions& options, const BlockObserver& observer) {
  check_options(options);
  require(!observer || options.orthogonalization == QrMethod::cholqr ||
              options.orthogonalization == QrMethod::cholqr_wide,
          ErrorKind::misuse, "gmres", "blocks of {} are not to be seen: they are solved at once",
          to_string(options.orthogonalization));
  require(!observer || options.block_orthogonalization == BlockOrthogonalization::classical,
          ErrorKind::misuse, "gmres", "blocks of {} are not to be seen: they are projected later",
          to_string(options.block_orthogonalization));
  require(std::ssize(b) == a.rows && std::ssize(x) == a.rows, ErrorKind::misuse, "gmres",
          "a right-hand side of {} and a solution of {} do not fit a matrix of {} by {}", b.size(),
          x.size(), a.rows, a.cols);
  require_finite(b, "gmres", "b");
  require_finite(x, "gmres", "the initial guess");
  GmresInfo info;
  WorkCrew crew(describe_host().compute_queues - 1);
  const auto begin = std::chrono::steady_clock::now();
  check_matrix(a, "gmres", crew);
  if (std::ranges::all_of(b, [](double value) { return value == 0; })) {
    // For what is wrong with A.
    (void)LinearSystem(a, {.preconditioner = options.preconditioner}, crew);
    std::fill(x.begin(), x.end(), 0.0);
    info.ok = true;
    return info;
  }
  info.rows_apart = rows_apart(a, crew);
  const bool balanced = options.balance.value_or(info.rows_apart >= kRowsFarApart);
  const LinearSystem system = system_of(a, balanced, options, crew);
  GivenSystem given(a, b, crew);
  if (balanced) given.also_scale_rows(system.row_scale());
  std::vector<double> start(x.begin(), x.end());
  const bool guessed = std::ranges::any_of(x, [](double value) { return value != 0; });
  if (guessed && !std::isfinite(given.offer(x))) std::ranges::fill(start, 0.0);
  solve(system, given, start, options, observer, crew, info);
  // Without a tolerance so many cycles are asked for, and no solution.
  if (!info.ok && balanced && options.tolerance > 0)
    solve_unbalanced(a, given, start, options, observer, crew, info);
  std::ranges::copy(given.best(), x.begin());
  // Sums of n squares, of elements in double-double, round relatively: never below the truth. That
  // of zeros is the length of b.
  const double up =
      given.best_residual() < given.length() ? 1 + static_cast<double>(a.rows + 16) * 0x1p-52 : 1;
  const double residual = given.best_residual() * up;
  info.residual_norm = rounded_away({residual, -given.exponent()});
  info.relative_residual = info.scaled_residual = ratio_of({residual, 0}, {given.length(), 0});
  if (balanced) check_short_rows(given, options, info);
  info.seconds.host =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() -
      info.seconds.total();
  if (!info.ok && info.why.empty()) {
    // It ended before its last cycle where its own residual is small enough, again and again, and
    // that of A and b as given is not.
    const bool limited = info.restarts >= options.restarts_max;
    info.why = fmt::format("{} cycle{} {}", info.restarts, info.restarts == 1 ? "" : "s",
                           limited ? "did not reach the tolerance"
                                   : "brought the residual to where rounding keeps it: more cannot "
                                     "help, a larger tolerance can");
  }
  return info;
}

}  // namespace strata
