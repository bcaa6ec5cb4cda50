#pragma once
// CertifiedSolution: X of a general system by a solver M⁻¹ near A⁻¹, refined and certified.
//
// Method: as of positive definite systems (src/cholesky/solve.cpp), with a scale of rows R and one
// of columns C in the place of diag(A)^(−1/2). Corrections M⁻¹·r by the factors M, r = b − A·x in
// fp64, until |r| is within a few ulps of t = |A|·|x| + |b| in every row, which partial pivoting
// reaches in a step or two (Skeel, "Iterative refinement implies numerical stability for Gaussian
// elimination", Math. Comp. 35, 1980). Then, with S = R·A·C, γ = (n + 2)·2⁻⁵³ and f = |r| + γ·t,
//   |x − A⁻¹·b|_i <= C_i·‖S⁻¹‖∞·‖R·f‖∞.
// How far M is from A, whatever its growth, is measured: η = ‖C⁻¹·(I − M⁻¹·A)·C‖∞ is what a
// correction leaves of an error, and ‖S⁻¹‖∞ is at most what solves with M say over 1 − η. Where
// the bound says too little of x, r in double-double gives a correction d, and
//   |x − A⁻¹·b|_i <= |d_i| + C_i·η/(1 − η)·max_j |d_j|/C_j + C_i·‖S⁻¹‖∞·‖R·γ₂·t‖∞,
// γ₂ = (n + 2)·2⁻¹⁰³; d is added to x as long as that is halved. Norms are estimates from below,
// mostly exact to a digit; η counts twice. Where elements grew so much that η says nothing, M⁻¹ is
// a solve with one or three steps of refinement, which squares or takes to the fourth I − M⁻¹·A.
//
// With factors in fp32 of a system in fp64 M is their product, and all that stands as it is where
// η is below 1/4. Norms of I − M⁻¹·A may be far above its spectral radius: else a solve is one with
// one, two or three steps, until η is below 0.45. Where plain steps do not get there,
// corrections are solves of the scaled system by GMRES with M as preconditioner, its triangles
// solved with in fp64 (Carson, Higham, "A new analysis of iterative refinement and
// its application to accurate solution of ill-conditioned sparse linear systems", SIAM J. Sci.
// Comput. 39, 2017). ‖S⁻¹‖∞ is then what such solves say over 1 − 2·ρ, ρ the residual that they
// leave beside v, and η is ‖S⁻¹‖∞ times the backward error of d as a solution of S·d = r. What is
// still not known as well as of factors in fp64 is factored in fp64.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "dense/certified_solution.hpp"
#include "dense/dense_system.hpp"
#include "dense/inverse_norm.hpp"
#include "lu/flexible_gmres.hpp"
#include "lu/planning.hpp"
#include "lu/scaled_system.hpp"
#include "scalar/complex.hpp"
#include "strata/lu.hpp"

namespace strata {

constexpr int kStepsMax = 20;
constexpr int kRefinedMost = 3;
constexpr double kContracts = 0.9;      // enough to say what is left (NearerSolution)
constexpr double kContractsWell = 0.5;  // or corrections are by GMRES, where there is a choice
constexpr int kIterationsMost = 40;     // of GMRES, for a correction
constexpr std::int64_t kAtOnce = 4;     // columns that GMRES has bases of

template <class W>
void multiply_rows(const std::vector<double>& scale, MatrixView<W> v) {
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) *= scale[at(i)];
}
template <class W>
void divide_rows(const std::vector<double>& scale, MatrixView<W> v) {
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) /= scale[at(i)];
}

template <class A>
class CertifiedSolution {
 public:
  using W = WideOf<A>;
  using Block = DenseBlockOf<W>;
  using Measured = MeasuredColumns<W>;

  /// M⁻¹·B or, if `adjoint`, M⁻ᴴ·B.
  using Inverse = std::function<Block(MatrixView<const W> b, bool adjoint)>;

  /// `products`: by which residuals are made; null: by the host. `precondition`: the same M⁻¹ for
  /// GMRES; null: M is as near to A as it gets.
  CertifiedSolution(Inverse inverse, const ScaledSystem<A>& system, GeneralSolveResult& result,
                    std::shared_ptr<MatrixProducts<A>> products, Inverse precondition = nullptr)
      : system_(system),
        a_(system.a().with_products(std::move(products))),
        result_(result),
        inverse_(std::move(inverse)),
        precondition_(std::move(precondition)),
        weak_(precondition_ != nullptr),
        ulp_(epsilon_of(system.precision())),
        x_(system.n(), system.b().cols) {}

  /// X, refined and certified, in units of the scaled system.
  const Block& solve() {
    x_ = solved(system_.b(), false);
    round_to_range(system_.precision(), system_.back(), x_.view());
    Measured now = measure(x_);
    refine(now);
    if (weak_ && needs_more(now)) refine_by_gmres(now);
    Certificate& c = result_.certificate;
    if (weak_ && !is_near_in_norm(now)) {
      measure_to_the_end(now);
      set_errors(now, system_.loss(), std::vector<double>(now.normwise.size(), kErrorUnknown), c);
      return x_;
    }
    find_condition();
    first_contraction_ = contraction_;
    // The spectral radius of I − M⁻¹·A may be far below its norm: a power of it contracts then.
    while (weak_ && !gmres_ && !(contraction_ < kContracts) && refined_ < kRefinedMost) {
      ++refined_;
      find_condition();
    }
    if (weak_ && !gmres_ && !(contraction_ < (refined_ > 0 ? kContracts : kContractsWell))) {
      gmres_ = true;
      find_condition();
    }
    // Where elements grew, two or four solves for one are nearer to A⁻¹. What is lost by the
    // condition alone no solve brings back.
    while (!weak_ && contraction_ >= 1 && refined_ < kRefinedMost &&
           !hopeless(c.scaled_condition)) {
      refined_ = 2 * refined_ + 1;
      find_condition();
      if (contraction_ < 1) refine(now = measure(x_));
    }
    result_.log_determinant_error = determinant_error();
    const MatrixView<const W> x = std::as_const(x_).view();
    std::vector<double> bounds =
        forward_bounds<W>(now, x, system_.row_scale(), system_.column_scale(), inflated_norm_);
    const auto correction = [&](std::int64_t j, MatrixView<const W> y) {
      Block r(y.rows, 1);
      a_.residual_dd(system_.b().block(0, j, y.rows, 1), y, r.view());
      return gmres_ ? solved_to_the_end(std::as_const(r).view())
                    : solved(std::as_const(r).view(), false);
    };
    const NearerSolution<W> nearer(system_.precision(), correction, system_.column_scale(),
                                   system_.back(), contraction_);
    if (solve_nearer(nearer, now.normwise, x_.view(), bounds, c)) now = measure(x_);
    reached_ = !needs_more(now);
    add_rounding<W>(now, x, system_.row_scale(), system_.column_scale(), inflated_norm_, bounds);
    add_loss<W>(system_.loss(), x, system_.column_scale(), inflated_norm_, bounds);
    measure_to_the_end(now);
    set_errors(now, system_.loss(), bounds, c);
    const double rows = static_cast<double>(std::max<std::int64_t>(system_.n(), 1));
    result_.hpl_residual = c.backward_error / (ulp_ / 2 * rows);
    return x_;
  }

  /// What a factor in the precision of x cannot be expected to do better; empty, or what it is.
  [[nodiscard]] std::string shortcoming() const {
    const Certificate& c = result_.certificate;
    if (result_.gmres_iterations >= iterations_worth())
      return fmt::format("after {} iterations of GMRES more are not worth it",
                         result_.gmres_iterations);
    // Rows in which x is zero but for rounding have no small error of their own.
    const double as_in_full = 4 * ulp_ * rows_root() * std::max(1.0, c.scaled_condition);
    if (!reached_ && !(c.forward_error <= as_in_full))
      return fmt::format(
          "refinement ends at a backward error of {:.1e} in the norm, {:.1e} row by row",
          c.backward_error, c.componentwise_backward_error);
    if (numerically_singular(c.scaled_condition, system_.precision()))
      return std::isfinite(c.scaled_condition)
                 ? fmt::format("the condition is about {:.1e}", c.scaled_condition)
                 : "the condition is not known";
    if (!(c.forward_error <= solution_error_wanted(system_.precision())))
      return fmt::format("the forward error is known to {:.1e} alone", c.forward_error);
    return {};
  }

 private:
  static constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kCorrection = 1e-6;  // what GMRES leaves of a residual
  static constexpr double kOfNorm = 0.01;  // the same of a vector by which ‖S⁻¹‖∞ is estimated

  [[nodiscard]] Measured measure(const Block& x) const {
    const std::int64_t n = x.rows();
    Measured m(n, x.cols());
    DenseBlock sizes(n, x.cols());
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      std::copy_n(system_.b().column(j), n, m.r.column(j));
      for (std::int64_t i = 0; i < n; ++i) sizes.column(j)[i] = std::abs(x.column(j)[i]);
    }
    a_.residual(false, x.view(), m.r.view());
    a_.add_magnitudes(std::as_const(sizes).view(), m.terms.view());
    for (std::int64_t j = 0; j < x.cols(); ++j)
      for (std::int64_t i = 0; i < n; ++i) m.terms.column(j)[i] += std::abs(system_.b()(i, j));
    m.find_errors(system_.norm_inf(), system_.b(), x.view());
    return m;
  }

  /// The last backward errors; bounds and decisions are of those in fp64.
  void measure_to_the_end(Measured& now) const {
    // Long sums cost devices a reading of A for some columns.
    const bool cheap = a_.has_products() && x_.cols() <= kColumnsBeside;
    if (!cheap && !worth_long_residuals(system_.n(), x_.cols())) return;
    a_.residual_dd(system_.b(), x_.view(), now.r.view());
    now.hidden = 0;
    now.find_errors(system_.norm_inf(), system_.b(), x_.view());
  }

  /// B ← M⁻¹·B or M⁻ᴴ·B in the middle of the range. With `refined_` steps of refinement M is the
  /// matrix for which I − M⁻¹·A is (I − (L·U)⁻¹·P·A)^(1 + refined_): these steps are linear.
  [[nodiscard]] Block solved(MatrixView<const W> b, bool adjoint) const {
    if (gmres_) return solved_by_gmres(b, adjoint, kCorrection);
    Block x = inverse_(b, adjoint);
    for (int step = 0; step < refined_; ++step) {
      Block r(b.rows, b.cols);
      copy_columns<W, W>(b, r.view());
      a_.residual(adjoint, std::as_const(x).view(), r.view());
      const Block d = inverse_(std::as_const(r).view(), adjoint);
      for (std::int64_t j = 0; j < b.cols; ++j)
        for (std::int64_t i = 0; i < b.rows; ++i) x.column(j)[i] += d.column(j)[i];
    }
    return x;
  }

  /// A⁻¹·B or A⁻ᴴ·B by GMRES for S = R·A·C or Sᴴ, to residuals that are `reduction` times what
  /// they are of zeros, or as near as that comes.
  [[nodiscard]] Block solved_by_gmres(MatrixView<const W> b, bool adjoint, double reduction) const {
    const std::vector<double>& left = adjoint ? system_.column_scale() : system_.row_scale();
    const std::vector<double>& right = adjoint ? system_.row_scale() : system_.column_scale();
    const GmresOperators<W> operators{[&](MatrixView<const W> y) {
                                        Block x(y.rows, y.cols);
                                        for (std::int64_t j = 0; j < y.cols; ++j)
                                          for (std::int64_t i = 0; i < y.rows; ++i)
                                            x.column(j)[i] = -right[at(i)] * y(i, j);
                                        Block product(y.rows, y.cols);
                                        a_.residual(adjoint, std::as_const(x).view(),
                                                    product.view());
                                        multiply_rows(left, product.view());
                                        return product;
                                      },
                                      [&](MatrixView<const W> v) {
                                        Block r(v.rows, v.cols);
                                        copy_columns<W, W>(v, r.view());
                                        divide_rows(left, r.view());
                                        Block y = precondition_(std::as_const(r).view(), adjoint);
                                        divide_rows(right, y.view());
                                        return y;
                                      }};
    Block x(b.rows, b.cols);
    for (std::int64_t first = 0; first < b.cols; first += kAtOnce) {
      const std::int64_t columns = std::min(kAtOnce, b.cols - first);
      const MatrixView<W> part = x.view().block(0, first, b.rows, columns);
      if (result_.gmres_iterations >= iterations_worth()) {
        std::fill_n(part.data, part.size(), W{kNoNumber});
        continue;
      }
      Block v(b.rows, columns);
      copy_columns<W, W>(b.block(0, first, b.rows, columns), v.view());
      multiply_rows(left, v.view());
      GmresSolution<W> solution =
          flexible_gmres<W>(operators, std::as_const(v).view(), reduction, kIterationsMost);
      result_.gmres_iterations += solution.iterations;
      for (std::int64_t j = 0; j < columns; ++j) {
        most_left_ = std::max(most_left_, solution.reduction[at(j)]);
        if (!(solution.reduction[at(j)] < 1))  // no gain at all, or not finite
          std::fill_n(solution.y.column(j), b.rows, W{kNoNumber});
      }
      copy_columns<W, W>(std::as_const(solution.y).view(), part);
    }
    multiply_rows(right, x.view());
    return x;
  }

  /// Iterations of all columns together, each a product with A and a solve in fp32: beyond these
  /// factors in fp64 are the quicker way.
  [[nodiscard]] std::int64_t iterations_worth() const { return 500 + system_.n() / 32; }

  /// d near A⁻¹·r of one column with a backward error of S·d = R·r within kDeep(); else NaNs.
  [[nodiscard]] Block solved_to_the_end(MatrixView<const W> r) const {
    constexpr int kRounds = 6;
    Block d(r.rows, 1);
    Block left(r.rows, 1);
    copy_columns<W, W>(r, left.view());
    for (int round = 0; round < kRounds; ++round) {
      const Block more = solved_by_gmres(std::as_const(left).view(), false, kCorrection);
      for (std::int64_t i = 0; i < r.rows; ++i) d.column(0)[i] += more.column(0)[i];
      copy_columns<W, W>(r, left.view());
      a_.residual(false, std::as_const(d).view(), left.view());
      multiply_rows(system_.row_scale(), left.view());
      const double residual = norm_inf(r.rows, left.column(0));
      divide_rows(system_.row_scale(), left.view());
      if (!std::isfinite(residual)) break;
      if (residual <=
          backward_error_to_the_end() * scaled_size(d.column(0), system_.column_scale()))
        return d;
    }
    std::fill_n(d.column(0), r.rows, W{kNoNumber});
    return d;
  }

  /// A few times what rounding in a residual is.
  [[nodiscard]] double backward_error_to_the_end() const {
    return 8 * std::sqrt(static_cast<double>(std::max<std::int64_t>(system_.n(), 16))) * ulp_ / 2;
  }

  /// From where plain steps ended. Where a first correction is not found, no others are.
  void refine_by_gmres(Measured& now) {
    gmres_ = true;
    refine(now);
  }

  /// Whether ‖I − M⁻¹·A‖ may be 1 for rounding alone.
  [[nodiscard]] bool hopeless(double condition) const {
    return !(2 * condition * kRoundings<W> * ulp_ < 1);
  }

  /// det A = det(L·U)·det(I − E), where the eigenvalues of E = I − (L·U)⁻¹·A are at most η: the
  /// logarithm of a factor is at most −log(1 − η). With steps of refinement η is of a power of E,
  /// of which those of E are roots. The same goes for what elements lost on their
  /// way into the range. Beside it there is the rounding of a product of n pivots and of its
  /// logarithm.
  [[nodiscard]] double determinant_error() const {
    const double lost = inflated_norm_ * system_.loss().scaled_norm;
    if (gmres_ || !(contraction_ < 1) || !(lost < 1)) return kErrorUnknown;
    const double n = static_cast<double>(system_.n());
    // Solves with factors in fp32 round, too, and may hide what the factors are off.
    const double hidden = weak_ ? 2 * result_.certificate.scaled_condition * kRoundings<W> *
                                      std::numeric_limits<float>::epsilon()
                                : 0;
    // In a power of E what is hidden of a factor meets the others.
    const double beside = std::pow(std::max(1.0, first_contraction_), refined_);
    const double of_factors =
        std::pow(std::max(contraction_, hidden * beside), 1.0 / (1 + refined_));
    if (!(of_factors < 1)) return kErrorUnknown;
    return -n * (std::log1p(-of_factors) + std::log1p(-lost)) + (kRoundings<W> * n + 4) * 0x1p-52 +
           0x1p-51 * std::abs(result_.info.determinant.log());
  }

  [[nodiscard]] double rows_root() const {
    return std::sqrt(static_cast<double>(std::max<std::int64_t>(system_.n(), 16)));
  }

  [[nodiscard]] bool is_near_in_norm(const Measured& m) const {
    return std::none_of(m.normwise.begin(), m.normwise.end(),
                        [this](double error) { return error > 4 * ulp_; });
  }

  /// A NaN needs no more.
  [[nodiscard]] bool needs_more(const Measured& m, std::int64_t j) const {
    return m.normwise[at(j)] > 4 * ulp_ || m.componentwise[at(j)] > rows_root() * ulp_;
  }

  [[nodiscard]] bool needs_more(const Measured& m) const {
    for (std::int64_t j = 0; j < x_.cols(); ++j)
      if (needs_more(m, j)) return true;
    return false;
  }

  /// Those of all columns, or by GMRES of those that need more.
  [[nodiscard]] Block corrections(const Measured& now) const {
    if (!gmres_) return solved(now.r.view(), false);
    Block r = now.r;
    for (std::int64_t j = 0; j < r.cols(); ++j)
      if (!needs_more(now, j)) r.clear_column(j);
    return solved(std::as_const(r).view(), false);
  }

  /// Columns take a step if it makes them better; as long as one is halved.
  void refine(Measured& now) {
    bool goes_on = true;
    for (int step = 0; step < kStepsMax && goes_on; ++step) {
      goes_on = false;
      if (!needs_more(now)) return;
      Block better = corrections(now);
      for (std::int64_t j = 0; j < x_.cols(); ++j)
        for (std::int64_t i = 0; i < x_.rows(); ++i) better.column(j)[i] += x_.column(j)[i];
      round_to_range(system_.precision(), system_.back(), better.view());
      const Measured next = measure(better);
      bool kept = false;
      for (std::int64_t j = 0; j < x_.cols(); ++j) {
        const std::size_t k = at(j);
        const bool sooner = next.normwise[k] < now.normwise[k] && now.normwise[k] > 4 * ulp_;
        const bool finer = next.normwise[k] <= std::max(now.normwise[k], 4 * ulp_) &&
                           next.componentwise[k] < now.componentwise[k];
        if (!needs_more(now, j) || !(sooner || finer)) continue;
        goes_on = goes_on || next.normwise[k] < now.normwise[k] / 2 ||
                  next.componentwise[k] < now.componentwise[k] / 2;
        kept = true;
        std::copy_n(better.column(j), x_.rows(), x_.column(j));
        std::copy_n(next.r.column(j), x_.rows(), now.r.column(j));
        std::copy_n(next.terms.column(j), x_.rows(), now.terms.column(j));
        now.normwise[k] = next.normwise[k];
        now.componentwise[k] = next.componentwise[k];
      }
      if (kept) ++result_.certificate.refinement_steps;
    }
  }

  /// ‖S⁻¹‖∞ = ‖R⁻¹·A⁻ᴴ·C⁻¹‖₁ and η, both by the factors.
  void find_condition() {
    const std::vector<double>& rows = system_.row_scale();
    const std::vector<double>& columns = system_.column_scale();
    const double reduction = kOfNorm / std::sqrt(static_cast<double>(system_.n()));
    most_left_ = 0;
    const auto replace = [&](MatrixView<W> v, bool adjoint) {
      const Block x = solved_by_gmres(v, adjoint, reduction);
      std::copy_n(x.column(0), v.size(), v.data);
    };
    if (gmres_) {
      const BlockSolverOf<W> inverse = [&](MatrixView<W> v) {
        divide_rows(columns, v);
        replace(v, true);
        divide_rows(rows, v);
      };
      const BlockSolverOf<W> inverse_adjoint = [&](MatrixView<W> v) {
        divide_rows(rows, v);
        replace(v, false);
        divide_rows(columns, v);
      };
      const double inverse_norm = estimate_norm_one(system_.n(), inverse, inverse_adjoint);
      set_condition(inverse_norm);
      // In the 1-norm residuals count √n times at most.
      const double known = most_left_ <= reduction ? 2 * kOfNorm : 1;
      inflated_norm_ = known < 1 ? inverse_norm / (1 - known) : kErrorUnknown;
      // The residual by which it is known has an error of its own.
      const double rounding = kRoundings<W> * static_cast<double>(system_.n() + 2) * ulp_ / 2;
      contraction_ = 2 * inflated_norm_ * (backward_error_to_the_end() + rounding);
      return;
    }
    // Both norms need as many solves, of which one serves for both: factors may be in storage.
    const BlockSolverPair<W> adjoint = [&](MatrixView<W> v, MatrixView<W> w) {
      divide_rows(columns, v);
      divide_rows(columns, w);
      const Block y = solved_together(v, w, true);
      copy_columns<W, W>(y.view().block(0, 0, v.rows, v.cols), v);
      divide_rows(rows, v);
      // C·(I − Aᴴ·M⁻ᴴ)·C⁻¹
      a_.residual(true, y.view().block(0, v.cols, w.rows, w.cols), w);
      multiply_rows(columns, w);
    };
    const BlockSolverPair<W> plain = [&](MatrixView<W> v, MatrixView<W> w) {
      divide_rows(rows, v);
      multiply_rows(columns, w);
      Block product(w.rows, w.cols);
      a_.residual(false, MatrixView<const W>(w), product.view());
      const Block y = solved_together(v, std::as_const(product).view(), false);
      copy_columns<W, W>(y.view().block(0, 0, v.rows, v.cols), v);
      divide_rows(columns, v);
      for (std::int64_t j = 0; j < w.cols; ++j)
        for (std::int64_t i = 0; i < w.rows; ++i) w(i, j) += y.column(v.cols + j)[i];  // −M⁻¹·A·w
      divide_rows(columns, w);
    };
    const auto [inverse_norm, left] = estimate_norms_one<W>(system_.n(), adjoint, plain);
    set_condition(inverse_norm);
    contraction_ = 2 * std::max(left, result_.certificate.scaled_condition * kRoundings<W> * ulp_);
    inflated_norm_ = contraction_ < 1 ? inverse_norm / (1 - contraction_) : kErrorUnknown;
  }

  void set_condition(double inverse_norm) {
    result_.certificate.scaled_condition = system_.n() == 0 ? 1 : inverse_norm;  // ‖S‖∞ = 1
  }

  /// Solutions for the columns of v, then for those of w.
  [[nodiscard]] Block solved_together(MatrixView<const W> v, MatrixView<const W> w,
                                      bool adjoint) const {
    Block both(v.rows, v.cols + w.cols);
    copy_columns<W, W>(v, both.view().block(0, 0, v.rows, v.cols));
    copy_columns<W, W>(w, both.view().block(0, v.cols, w.rows, w.cols));
    return solved(std::as_const(both).view(), adjoint);
  }

  const ScaledSystem<A>& system_;
  SlabbedMatrix<A> a_;  // that of the system
  GeneralSolveResult& result_;
  Inverse inverse_;
  Inverse precondition_;
  bool weak_;
  double ulp_;          // of the precision of x
  bool gmres_ = false;  // solves are by GMRES
  Block x_;
  double inflated_norm_ = 0;  // ‖S⁻¹‖∞ at most; solves with the factors say what it is of M
  double contraction_ = 0;    // 2·η
  double first_contraction_ = 0;  // that of a solve without steps of refinement
  int refined_ = 0;               // steps of refinement in a solve
  bool reached_ = false;          // the backward errors that are wanted
  mutable double most_left_ = 0;  // of a residual by GMRES beside what it began with
};

/// What is told of factors, whether they can solve or not.
inline void set_factor(const LuInfo& info, const RunReport& report, GeneralSolveResult& result) {
  result.factor = report;
  result.info = info;
  FactorInfo& factor = result.certificate.factor;
  factor.ok = info.ok;
  factor.first_bad_pivot = info.not_finite >= 0 ? info.not_finite : info.zero_pivot;
  factor.bad_pivot = info.not_finite >= 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
  factor.log_determinant =
      info.not_finite >= 0 ? std::numeric_limits<double>::quiet_NaN() : info.determinant.log();
  factor.growth = info.growth;
}

template <class A, class T>
void write_back(const DenseBlockOf<WideOf<A>>& y, const ScaledSystem<A>& system, MatrixView<T> x) {
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i)
      x(i, j) = static_cast<T>(times_power(y.column(j)[i], system.back()[at(j)]));
}

}  // namespace strata
