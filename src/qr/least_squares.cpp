// Least squares from the Gram matrix of [A b], and where that is not enough from the R of qr(), or
// its Q.
//
// Method: with G = [A b]ᵀ[A b] in double-double and RᵀR its Cholesky factorization, A's columns
// scaled to lengths near 1 by powers of two, R·x = z for the part of A and that of b. These are the
// normal equations, whose error grows like κ². In double-double that is κ²·2^-106, below the
// rounding of x to doubles for κ up to 1e7 and below 1e-6 for κ up to 1e12 or so, from one reading
// of the data and without a Q. Where that is not good for six digits, x is refined: g = Aᵀ(b −
// A·x), summed in double-double with nothing rounded to doubles between, and RᵀR·δ = g is added to
// x. If ‖I − R⁻ᵀAᵀA·R⁻¹‖ is c a step leaves c of the error, and the length of R·δ says how much
// that was; what stays is the rounding of g, κ²·2^-100 of the residual (Björck, Numerical Methods
// for Least Squares Problems, 1996, 6.6). R of the normal equations has a c of κ²·2^-100. Where
// that is no contraction, or where columns seem to depend on others, R is that of qr_r(), in
// double-double, whose columns are orthonormal to rounding far beyond κ = 1e16, and which knows the
// rank that qr() tells. Where that has too few digits R is made once more of the Gram matrix of
// A·R⁻¹. Where its R is not good enough either, and for more columns than a kernel holds, a copy of
// A becomes Q, and x = R⁻¹·Qᵀb, which is backward stable, is refined as far as that goes. If
// nothing is known of its error then, an x of fewer columns that leaves less takes its place
// (truncated_solution.hpp). Where x comes out as zeros an exact Aᵀb says whether it is. The
// residual is that of x as it is written, from G where G tells it, else summed once more.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "qr/exact_products.hpp"
#include "qr/least_squares_factor.hpp"
#include "qr/methods.hpp"
#include "qr/pass_runner.hpp"
#include "qr/residual_products.hpp"
#include "qr/truncated_solution.hpp"
#include "scalar/scaled_number.hpp"
#include "session/report.hpp"
#include "strata/qr.hpp"

namespace strata {
namespace {

using Gram = SquareMatrix<DoubleDouble>;
using Column = std::vector<DoubleDouble>;
using Factor = LeastSquaresFactor;

constexpr double kWideUnit = 0x1p-104;
constexpr double kRounding = 0x1p-52;  ///< of x to doubles, element by element
constexpr double kWanted = 1e-6;       ///< of the error bound
constexpr double kContraction = 0.25;
constexpr double kSettled = 0x1p-40;  ///< of a contraction: what stays is not the factor's
constexpr int kRefinementsMax = 12;
constexpr int kLift = 100;  ///< the least double times 2 to this is far from the end of the range

double length_of(const Column& x) {
  double square = 0;
  for (const DoubleDouble& value : x) square += value.hi * value.hi;
  return std::sqrt(square);
}

class LeastSquares {
 public:
  LeastSquares(const TallInput<double>& a, const TallInput<double>& b,
               const LeastSquaresOptions& options)
      : a_(a),
        b_(b),
        options_{.wide_sums = options.wide_sums, .run = options.run},
        scale_(static_cast<std::size_t>(a.cols() + b.cols()), 1.0),
        lift_(scale_.size()),
        x_(static_cast<std::size_t>(b.cols())) {}

  LeastSquaresInfo solve(MatrixView<double> x) {
    info_.residual_norm.assign(x_.size(), 0.0);
    if (n() + b_.cols() > kQrColumnsMax) {
      scale_to_unit();
      solve_with_q();
    } else if (!solve_normal_equations() && !solve_with_r()) {
      solve_with_q();
    }
    info_.rank = n() - std::ssize(info_.dependent_columns);
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      for (std::int64_t i = 0; i < n(); ++i) {
        x(i, k) = std::scalbn(column(k)[static_cast<std::size_t>(i)].hi, exponent_of(i, k));
        if (!std::isfinite(x(i, k))) info_.residual_norm[static_cast<std::size_t>(k)] = kInfinity;
      }
    }
    write_triangle();
    info_.ok = info_.error_bound <= kWanted && info_.dependent_columns.empty();
    return std::move(info_);
  }

 private:
  [[nodiscard]] std::int64_t n() const { return a_.cols(); }
  [[nodiscard]] double scale(std::int64_t j) const { return scale_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] Column& column(std::int64_t k) { return x_[static_cast<std::size_t>(k)]; }
  /// Element i of column k of x is 2 to this times what is computed.
  [[nodiscard]] int exponent_of(std::int64_t i, std::int64_t k) const {
    return std::ilogb(scale(i)) + lift(i) - std::ilogb(scale(n() + k)) - lift(n() + k);
  }
  [[nodiscard]] int lift(std::int64_t j) const { return lift_[static_cast<std::size_t>(j)]; }

  /// Columns so small that no power of two that is a double makes them 1 are replaced, in copies of
  /// A and b, by ones that are larger by a power of two; whether there are any.
  bool lift_small_columns(const std::vector<double>& largest) {
    bool any = false;
    for (std::size_t j = 0; j < largest.size(); ++j) {
      if (!(largest[j] > 0 && largest[j] < 0x1p-1000)) continue;
      lift_[j] = kLift;
      any = true;
    }
    if (!any) return false;
    a_ = lifted(a_, 0, near_a_);
    b_ = lifted(b_, n(), near_b_);
    return true;
  }
  [[nodiscard]] TallInput<double> lifted(const TallInput<double>& from, std::int64_t first,
                                         std::vector<double>& to) const {
    const std::int64_t rows = from.rows();
    to.resize(static_cast<std::size_t>(rows * from.cols()));
    for (std::int64_t j = 0; j < from.cols(); ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        to[static_cast<std::size_t>(i + j * rows)] = std::scalbn(from(i, j), lift(first + j));
    return {MatrixView<const double>{to.data(), rows, from.cols(), rows}};
  }

  // ---- normal equations

  /// Whether they are good enough.
  bool solve_normal_equations() {
    const auto make_runner = [&] {
      return std::make_unique<PassRunner<double>>(TallColumns<double>{.from = a_, .beside = b_},
                                                  options_);
    };
    auto runner = make_runner();
    Gram g = gram(*runner);
    if (g.n == 0) {  // the columns are others now
      add_report(runner->take_report());
      runner = make_runner();
      g = gram(*runner);
    }
    const double tolerance = 64 * static_cast<double>(n() + 1) * kWideUnit;
    // The columns of b come last; none of them may end the factorization.
    const SmallCholesky<DoubleDouble> small = small_cholesky(g, BadPivot::drop, tolerance);
    const bool drops = !small.dependent.empty() && small.dependent[0] < n();
    bool good = false;
    if (!drops) {
      Factor factor = leading_factor(small.r);
      for (std::int64_t k = 0; k < b_.cols(); ++k) {
        const double residual = substitute(factor, g, small.r, k);
        const double off = factor.contraction * (1 + residual) + 0x1p-100 * factor.condition;
        info_.error_bound = std::max(info_.error_bound, as_written(k, off));
      }
      good = info_.error_bound <= kWanted;
      if (good) {
        tell(factor);
        residuals_by(g, *runner);
      } else if (factor.contraction < kContraction) {
        good = refine(factor) || factor.contraction < kSettled;
      }
    }
    add_report(runner->take_report());
    return good;
  }

  /// The factor of A, with what the rounding of its Gram matrix means for it.
  [[nodiscard]] Factor leading_factor(const Gram& r) const {
    Factor factor{Gram(n()), {}, 1, 0};
    for (std::int64_t j = 0; j < n(); ++j)
      for (std::int64_t i = 0; i <= j; ++i) factor.r(i, j) = r(i, j);
    factor.condition = condition_bound(factor.r, {});
    factor.contraction =
        32 * static_cast<double>(n() + 1) * kWideUnit * factor.condition * factor.condition;
    factor.condition *= 1 + std::min(factor.contraction, 1.0);
    return factor;
  }

  /// The Gram matrix of [A b] with columns of lengths near 1, which the scales give them; empty
  /// where columns were lifted.
  Gram gram(PassRunner<double>& runner) {
    Gram g = runner.gram<DoubleDouble>(scale_);
    std::vector<bool> zero(scale_.size());
    const auto in_range = [&] {
      for (std::int64_t j = 0; j < g.n; ++j) {
        if (zero[static_cast<std::size_t>(j)]) continue;
        if (!(g(j, j).hi >= 0x1p-600 && g(j, j).hi <= 0x1p1000)) return false;
      }
      return true;
    };
    if (!in_range()) {
      const std::vector<double> largest = runner.maxima();
      for (std::size_t j = 0; j < scale_.size(); ++j) {
        if (!std::isfinite(largest[j])) complain();
        zero[j] = largest[j] == 0;
      }
      if (lift_small_columns(largest)) return {};
      if (!in_range()) {  // columns of zeros alone leave the sums as they have to be
        for (std::size_t j = 0; j < scale_.size(); ++j) {
          int exponent = 0;
          std::frexp(largest[j], &exponent);
          if (!zero[j]) scale_[j] = std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
        }
        g = runner.gram<DoubleDouble>(scale_);
      }
    }
    std::vector<double> powers;
    for (std::int64_t j = 0; j < g.n; ++j) {
      const double square = g(j, j).hi;
      powers.push_back(
          square > 0 ? std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(square) / 2))) : 1);
      scale_[static_cast<std::size_t>(j)] *= powers.back();
    }
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.n; ++i)
        g(i, j) = scaled(scaled(g(i, j), powers[static_cast<std::size_t>(i)]),
                         powers[static_cast<std::size_t>(j)]);
    return g;
  }

  /// Column k of x; returns how long the residual is beside A·x.
  double substitute(const Factor& factor, const Gram& g, const Gram& r, std::int64_t k) {
    // z = R⁻ᵀ·Aᵀb; what the factorization has in its columns behind n leaves out none of A's rows.
    Column z(static_cast<std::size_t>(n()));
    DoubleDouble rest = g(n() + k, n() + k);
    for (std::int64_t i = 0; i < n(); ++i) {
      z[static_cast<std::size_t>(i)] = r(i, n() + k);
      rest = subtract_product(rest, r(i, n() + k), r(i, n() + k));
    }
    const double fitted = length_of(z);
    factor.substitute_back(z);
    column(k) = std::move(z);
    if (fitted > 0) return std::sqrt(std::max(rest.hi, 0.0)) / fitted;
    return is_truly_zero(k) ? 0 : kInfinity;
  }
  /// Whether an x of zeros is the solution, and not what sums have lost of it.
  [[nodiscard]] bool is_truly_zero(std::int64_t k) const {
    return is_orthogonal(a_, b_, k, info_.dependent_columns);
  }

  /// ‖b − A·x‖² = (x; −1)ᵀG(x; −1) for x as it is written, where that is far above the rounding of
  /// G; else from one more reading.
  void residuals_by(const Gram& g, PassRunner<double>& runner) {
    bool told = true;
    double lost = 0;
    for (std::int64_t k = 0; k < b_.cols(); ++k) lost = std::max(lost, round_to_range(k));
    info_.error_bound += lost;
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      const auto element = [&](std::int64_t i) {
        return i < n() ? column(k)[static_cast<std::size_t>(i)].hi : -1.0;
      };
      const auto index = [&](std::int64_t i) { return i < n() ? i : n() + k; };
      DoubleDouble square;
      double sizes = 0;
      for (std::int64_t j = 0; j <= n(); ++j) {
        sizes += std::abs(element(j)) * std::sqrt(g(index(j), index(j)).hi);
        DoubleDouble sum;
        for (std::int64_t i = 0; i <= n(); ++i)
          sum = subtract_product(sum, g(index(i), index(j)), DoubleDouble(-element(i)));
        square = subtract_product(square, sum, DoubleDouble(-element(j)));
      }
      const double noise = 128 * static_cast<double>(n() + 1) * kWideUnit * sizes * sizes;
      told = told && (square.hi >= 1e4 * noise || sizes == 0);
      set_residual(k, std::sqrt(std::max(square.hi, 0.0)));
    }
    if (told) return;
    Gram t = Gram::identity(n() + b_.cols());
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      for (std::int64_t i = 0; i < n(); ++i)
        t(i, n() + k) = DoubleDouble(column(k)[static_cast<std::size_t>(i)].hi);
    }
    const Gram of_residuals = runner.apply_gram<DoubleDouble>(t, scale_);
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      const double length = std::sqrt(std::max(of_residuals(n() + k, n() + k).hi, 0.0));
      set_residual(k, length < kLeastLength ? measured_length(k) : length);
    }
  }
  /// ‖b − A·x‖ of x as it is written, from the data.
  [[nodiscard]] double measured_length(std::int64_t k) {
    Column written;
    for (const DoubleDouble& value : column(k)) written.emplace_back(value.hi);
    return residual_products(a_, b_, k, scale_, scale(n() + k), written).length;
  }
  void set_residual(std::int64_t k, double scaled_length) {
    info_.residual_norm[static_cast<std::size_t>(k)] =
        rounded_away({scaled_length, -std::ilogb(scale(n() + k)) - lift(n() + k)});
  }

  /// Column k becomes what can be written of it: an element near the lower end of the range loses
  /// digits. Bounds how much that is beside its length; infinite where one exceeds the range.
  double round_to_range(std::int64_t k) {
    Column lost(column(k).size());
    const double length = length_of(column(k));
    for (std::int64_t i = 0; i < n(); ++i) {
      DoubleDouble& value = column(k)[static_cast<std::size_t>(i)];
      const double written = std::scalbn(value.hi, exponent_of(i, k));
      if (!std::isfinite(written)) return kInfinity;
      const double back = std::scalbn(written, -exponent_of(i, k));
      if (back == value.hi) continue;
      lost[static_cast<std::size_t>(i)] = DoubleDouble(value.hi - back);
      value = DoubleDouble(back);
    }
    const double change = length_of(lost);
    return change > 0 ? 2 * change / length : 0;  // columns have lengths of 1 to a factor of √2
  }

  /// The error of column k of x beside it, of which `off` is known beside its length with columns
  /// of A scaled, but for rounding to doubles, which elements have beside themselves. It is that
  /// beside the largest element as it is written where that is more: the column of that element may
  /// be as much smaller than others as units differ.
  [[nodiscard]] double as_written(std::int64_t k, double off) {
    const Column& x = column(k);
    const double length = length_of(x);
    if (length == 0 || off == 0) return kRounding + off;
    int top = std::numeric_limits<int>::min();
    const auto kept = [&](std::int64_t i) {
      return !std::binary_search(info_.dependent_columns.begin(), info_.dependent_columns.end(), i);
    };
    for (std::int64_t i = 0; i < n(); ++i)
      if (kept(i)) top = std::max(top, exponent_of(i, k));
    double largest = 0;
    for (std::int64_t i = 0; i < n(); ++i)
      if (kept(i))
        largest = std::max(largest, std::scalbn(std::abs(x[static_cast<std::size_t>(i)].hi),
                                                exponent_of(i, k) - top));
    return kRounding + off * std::max(1.0, length / largest);
  }

  // ---- by the R and Q of qr()

  /// Whether R alone is enough.
  bool solve_with_r() {
    TallProblem<double> problem(std::make_unique<PlannedPasses<double>>(
                                    TallColumns<double>{.from = a_}, options_,
                                    std::vector<RowProblem>{{.pass = RowPass::apply_gram}}),
                                options_, 0, Wanted::r);
    run_automatic(problem);
    const double spread = problem.spread();
    Gram r = problem.r();
    const QrInfo found = problem.take_info();
    add_report(found.report);
    // Where V needed no shift R is rounded to doubles.
    const bool wide = std::any_of(r.values.begin(), r.values.end(),
                                  [](const DoubleDouble& value) { return value.lo != 0; });
    const double away = spread + 2 * static_cast<double>(n()) * found.condition *
                                     (wide ? kWideUnit : kUnitRoundoff);
    Factor factor = scaled_factor(std::move(r), found, 2 * away + away * away);
    if (!(factor.contraction < kContraction)) orthonormalize_again(factor);
    if (!(factor.contraction < kContraction)) return false;
    for (Column& x : x_) x.assign(static_cast<std::size_t>(n()), DoubleDouble());
    return refine(factor) || std::isfinite(info_.error_bound);
  }

  /// R ← S·R with SᵀS the Gram matrix of A·R⁻¹, both in double-double, where R was rounded to
  /// doubles or its own Gram matrix had more rounding than its condition bears. What is left is
  /// the rounding of A·R⁻¹ and of that Gram matrix, whose condition is near 1.
  void orthonormalize_again(Factor& factor) {
    if (!factor.dependent.empty()) return;
    PassRunner<double> runner(TallColumns<double>{.from = a_, .beside = b_}, options_);
    Gram t = Gram::identity(n() + b_.cols());
    for (std::int64_t j = 0; j < n(); ++j)
      for (std::int64_t i = 0; i <= j; ++i) t(i, j) = factor.r(i, j);
    const Gram whole = runner.apply_gram<DoubleDouble>(t, scale_);
    add_report(runner.take_report());
    Gram g(n());
    for (std::int64_t j = 0; j < n(); ++j)
      for (std::int64_t i = 0; i < n(); ++i) g(i, j) = whole(i, j);
    const SmallCholesky<DoubleDouble> small = small_cholesky(g, BadPivot::stop, 0.0);
    if (small.failed_column >= 0) return;
    const double left = condition_bound(small.r, {});
    const double rounding = 32 * static_cast<double>(n() + 1) * kWideUnit;
    const double solve = 2 * static_cast<double>(n()) * condition_bound(factor.r, {});
    factor.r = upper_product(small.r, factor.r);
    factor.contraction = rounding * left * left * (1 + solve);
    factor.condition = condition_bound(factor.r, {}) * (1 + std::min(factor.contraction, 1.0));
  }

  /// x = R⁻¹·Qᵀb, refined as long as that helps.
  void solve_with_q() {
    std::vector<double> copy(static_cast<std::size_t>(a_.rows() * n()));
    const MatrixView<double> q{copy.data(), a_.rows(), n(), a_.rows()};
    const TallColumns<double> columns{.from = a_};
    for (std::int64_t j = 0; j < n(); ++j) columns.read(0, q.rows, j, 1, q.column(j));
    TallPlace<double> place(q);
    Orthonormalized found = orthonormalized(place, options_);
    add_report(found.info.report);
    const double away = found.info.residual * std::sqrt(static_cast<double>(n()));
    const double spread = away * found.info.condition + found.info.orthogonality;
    const Factor factor =
        scaled_factor(std::move(found.r), found.info, 2 * spread + spread * spread);
    const TallInput<double> of_q{MatrixView<const double>{q.data, q.rows, q.cols, q.ld}};
    const std::vector<double> ones(static_cast<std::size_t>(n()), 1.0);
    const Column zeros(static_cast<std::size_t>(n()));
    std::vector<Column> projected;  // Qᵀb
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      column(k) = residual_products(of_q, b_, k, ones, scale(n() + k), zeros).products;
      projected.push_back(column(k));
      factor.substitute_back(column(k));
    }
    refine(factor);
    if (!(info_.error_bound < kInfinity)) truncate(factor, projected);
  }

  /// Where the columns that count as independent are still combinations of others to rounding, R⁻¹
  /// makes an x of any size, whose rounding is more than what the last columns explain. The x of
  /// fewer columns whose residual is the least is taken in its place, if that is less.
  void truncate(const Factor& factor, const std::vector<Column>& projected) {
    const PivotedTriangle t(factor.r, factor.dependent);
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      const auto measured = [&](const std::vector<double>& x) {
        column(k).clear();
        for (const double value : x) column(k).emplace_back(value);
        if (!std::isfinite(round_to_range(k))) return ResidualProducts{{}, kInfinity};
        return residual_products(a_, b_, k, scale_, scale(n() + k), column(k));
      };
      std::vector<double> best;
      for (const DoubleDouble& value : column(k)) best.push_back(value.hi);
      improve(best, t, projected[static_cast<std::size_t>(k)], measured);
      set_residual(k, measured(best).length);
    }
  }

  /// R of columns as they are scaled here.
  [[nodiscard]] Factor scaled_factor(Gram r, const QrInfo& info, double contraction) const {
    Factor factor{std::move(r), info.dependent_columns, info.condition, 0};
    factor.contraction = std::isfinite(contraction) ? contraction : kInfinity;
    for (std::int64_t j = 0; j < n(); ++j)
      for (std::int64_t i = 0; i <= j; ++i) factor.r(i, j) = scaled(factor.r(i, j), scale(j));
    return factor;
  }

  /// Element (i, j) of [A b].
  [[nodiscard]] double element(std::int64_t i, std::int64_t j) const {
    return j < n() ? a_(i, j) : b_(i, j - n());
  }

  /// Scales as gram() has them, from the data.
  void scale_to_unit() {
    std::vector<double> largest(scale_.size());
    for (std::int64_t j = 0; j < n() + b_.cols(); ++j) {
      for (std::int64_t i = 0; i < a_.rows(); ++i) {
        const double x = element(i, j);
        if (!std::isfinite(x)) complain();
        double& most = largest[static_cast<std::size_t>(j)];
        most = std::max(most, std::abs(x));
      }
    }
    lift_small_columns(largest);
    for (std::int64_t j = 0; j < n() + b_.cols(); ++j) {
      const double most = std::scalbn(largest[static_cast<std::size_t>(j)], lift(j));
      int exponent = 0;
      if (most > 0) std::frexp(most, &exponent);
      const double power = std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
      double square = 0;
      for (std::int64_t i = 0; i < a_.rows(); ++i) {
        const double x = element(i, j) * power;
        square += x * x;
      }
      scale_[static_cast<std::size_t>(j)] = power * unit_scale(square);
    }
  }

  // ---- refinement

  /// Steps until the bound of the error does not fall; whether that is good enough. x before is
  /// where they begin, and stays if they do not help.
  bool refine(const Factor& factor) {
    tell(factor);
    info_.error_bound = 0;
    for (std::int64_t k = 0; k < b_.cols(); ++k)
      info_.error_bound = std::max(info_.error_bound, refine_column(factor, k));
    return info_.error_bound <= kWanted;
  }

  double refine_column(const Factor& factor, std::int64_t k) {
    Column best = column(k);
    double bound = kInfinity;
    double residual = kInfinity;
    for (int step = 0; step < kRefinementsMax; ++step) {
      const ResidualProducts of = residual_products(a_, b_, k, scale_, scale(n() + k), column(k));
      // Without a contraction nothing is known but the residual.
      if (!(factor.contraction < kContraction) && !(of.length < residual)) break;
      residual = of.length;
      if (!(factor.contraction < kContraction)) best = column(k);
      Column z = of.products;
      factor.substitute_forward(z);
      const double change = length_of(z);
      factor.substitute_back(z);
      for (std::size_t i = 0; i < z.size(); ++i) column(k)[i] = column(k)[i] + z[i];
      info_.refinements = std::max(info_.refinements, step + 1);
      const double now = as_written(k, error_behind(factor, change, of.length, k));
      if (factor.contraction < kContraction) {
        if (!(now < 0.5 * bound)) break;
        bound = now;
        best = column(k);
      }
    }
    column(k) = std::move(best);
    const double lost = round_to_range(k);
    set_residual(k, measured_length(k));
    // So far beside x itself, which says nothing of the size of the solution from 1 on.
    return bound < 1 ? bound / (1 - bound) + lost : kInfinity;
  }

  /// The error of x beside its length, but for rounding to doubles, behind a step whose R·δ had the
  /// length `change`.
  [[nodiscard]] double error_behind(const Factor& factor, double change, double residual,
                                    std::int64_t k) const {
    const auto columns = static_cast<double>(n());
    const double length = length_of(x_[static_cast<std::size_t>(k)]);
    if (length == 0) return is_truly_zero(k) ? 0 : kInfinity;
    const double solves = columns * 0x1p-100 * factor.condition;
    const double c = factor.contraction + solves;
    if (!(c < 2 * kContraction)) return kInfinity;
    const double of_products =
        kProductsUnit * (columns * (1 + length) + factor.condition * residual) * std::sqrt(columns);
    return factor.condition * (c / (1 - c) * change + 2 * of_products) / length;
  }

  // ---- what is told

  /// R of A and Qᵀb = R·x, of columns as they were given.
  void tell(const Factor& factor) {
    info_.dependent_columns = factor.dependent;
    info_.condition = factor.condition;
    r_ = factor.r;
  }
  void write_triangle() {
    for (std::int64_t j = 0; j < n(); ++j)
      for (std::int64_t i = 0; i < n(); ++i)
        info_.r.push_back(i <= j ? std::scalbn(r_(i, j).hi / scale(j), -lift(j)) : 0.0);
    for (std::int64_t k = 0; k < b_.cols(); ++k) {
      for (std::int64_t i = 0; i < n(); ++i) {
        DoubleDouble sum;
        for (std::int64_t j = i; j < n(); ++j)
          sum = subtract_product(sum, -r_(i, j), column(k)[static_cast<std::size_t>(j)]);
        info_.qtb.push_back(std::scalbn(sum.hi / scale(n() + k), -lift(n() + k)));
      }
    }
  }

  void add_report(RunReport report) { accumulate_with_trace(info_.report, std::move(report)); }

  [[noreturn]] void complain() const {
    for (std::int64_t i = 0; i < a_.rows(); ++i) {
      for (std::int64_t j = 0; j < a_.cols(); ++j)
        require(std::isfinite(a_(i, j)), ErrorKind::input, "lstsq", "element ({}, {}) of A is {}",
                i, j, a_(i, j));
      for (std::int64_t k = 0; k < b_.cols(); ++k)
        require(std::isfinite(b_(i, k)), ErrorKind::input, "lstsq", "element ({}, {}) of b is {}",
                i, k, b_(i, k));
    }
    fail(ErrorKind::input, "lstsq", "A or b changed while it was read");
  }

  TallInput<double> a_;
  TallInput<double> b_;
  QrOptions options_;
  std::vector<double> near_a_, near_b_;  ///< copies where columns were lifted
  std::vector<double> scale_;            ///< powers of two, of the columns of [A b]
  std::vector<int> lift_;                ///< and 2 to these, by which they are larger than given
  std::vector<Column> x_;                ///< of columns as they are scaled; zeros where dependent
  Gram r_;                               ///< the R that is told, of the same
  LeastSquaresInfo info_;
};

}  // namespace

LeastSquaresInfo least_squares(const TallInput<double>& a, const TallInput<double>& b,
                               MatrixView<double> x, const LeastSquaresOptions& options) {
  require(a.rows() >= a.cols(), ErrorKind::misuse, "lstsq",
          "{} unknowns are more than {} equations: there is no unique solution", a.cols(),
          a.rows());
  require(b.rows() == a.rows(), ErrorKind::misuse, "lstsq",
          "a right-hand side of {} rows does not fit a matrix of {} by {}", b.rows(), a.rows(),
          a.cols());
  require(x.rows == a.cols() && x.cols == b.cols(), ErrorKind::misuse, "lstsq",
          "a solution of {} by {} does not fit {} unknowns and {} right-hand sides", x.rows, x.cols,
          a.cols(), b.cols());
  require(a.cols() > 0 && b.cols() > 0, ErrorKind::misuse, "lstsq",
          "{} unknowns and {} right-hand sides: there is nothing to solve", a.cols(), b.cols());
  return LeastSquares(a, b, options).solve(x);
}

LeastSquaresInfo least_squares(MatrixView<const double> a, MatrixView<const double> b,
                               MatrixView<double> x, const LeastSquaresOptions& options) {
  return least_squares(TallInput<double>{a}, TallInput<double>{b}, x, options);
}

}  // namespace strata
