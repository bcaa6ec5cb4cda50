// The automatic method: QR through Gram matrices.
//
// Method: a pass multiplies V by the inverse of a triangular matrix that a small factorization of
// VᵀV gives, and adds up the Gram matrix of what it stores, so that the next pass need not read V
// for it. What is done next follows from each Gram matrix:
//
// * Columns are scaled by powers of two to lengths near 1: exact, so grading costs nothing.
//   Squares that could overflow or underflow are scaled by the largest elements first.
// * The first Gram matrix is wide (double-double for doubles: Yamazaki, Tomov, Dongarra,
// "Mixed-precision
//   Cholesky QR factorization", SIAM J. Sci. Comput. 37, 2015), so with u² its error, R is good for
//   columns of a condition κ up to 1/u. Up to κ = 9.5e7 one wide solve leaves an error of κ²·u² < u
//   and is all; beyond, the next pass sees a condition near 1, for which solves and sums in doubles
//   are enough. Those of the columns that are returned tell how orthonormal they are, to a few
//   units of rounding, which are added.
// * Where a pivot fails, or κ is beyond 0.1/u, 8·n·ε²·tr(B) is added to the diagonal (the shift of
//   Fukaya, Kannan, Nakatsukasa, Yamamoto, Yanagisawa, "Shifted Cholesky QR", 2020, with the error
//   of the wide sum in the place of that of the sum in doubles, so that it does not grow with m).
//   What was below the root of the shift is then up to 1e14 times as large beside the rest, and is
//   seen by the pass behind it.
// * The solve with the shifted R is wide, so a column that depends on others exactly comes out as
//   zero but for the rounding of what is stored, 1e-16, while one at a distance of 1e-20 comes out
//   at 1e-7. What lies between tells the rank, and exact arithmetic confirms it. Dependent columns
//   are zeros from there on.
// * Where columns are many, a sum in double-double costs more than all the rest, and V is much
//   longer than a sketch of it. There the first R is that of a sketch (by CountSketch, its Gram
//   matrix in double-double), which makes of V columns of a condition below two with a probability
//   near one. Then sums in doubles suffice, and tell whether they do. The sketch may say that κ is
//   beyond what a solve in doubles can resolve (1.1e12 for 24 columns, 1.3e11 for 128) or that
//   columns are dependent, as it does where it lost some (a V of a few rows that are not zero).
//   Then V is as it was, and its wide Gram matrix follows.
// * R alone has less to ask for. A Cholesky factor whose error is E beside unit columns is the R of
//   columns that are √‖E‖ away at most, √n·u for a wide sum, whatever their condition (the distance
//   of the square roots of two positive semidefinite matrices: Bhatia, Matrix Analysis, 1997, X.1).
//   So it is done where the condition is one that the wide sum bears, and a shift is needed, with
//   one more reading, only to tell which columns are dependent and what the condition is.
//
// Why not Householder: its tall panels run at the speed of matrix-vector products, and its result
// says nothing about the condition.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "kernels/tall/sketch.hpp"
#include "qr/exact_rank.hpp"
#include "qr/methods.hpp"
#include "qr/narrowed_factor.hpp"

namespace strata {
namespace {

/// Columns up to this condition are solved for in T where the Gram matrix was not wide either.
constexpr double kPlainlyOrthonormal = 2;
/// Sums of nearly orthonormal columns are not wide: in doubles, which is wide for floats.
template <class T>
constexpr bool kPlainSums = std::is_same_v<T, double>;
constexpr int kPassesMax = 12;
/// Columns up to this condition have that of R to a percent, whatever solves rounded.
constexpr double kTellsItself = 1e11;

template <class T>
class Automatic {
 public:
  explicit Automatic(TallProblem<T>& problem) : p_(problem) {}

  void run() {
    Gram b = sketched();
    bool wide = b.n == 0;  // b is; then V is as it was
    bool untouched = wide;
    if (wide) b = p_.first_gram(true);
    for (int pass = 0; pass < kPassesMax; ++pass) {
      const Gram unit = p_.unit_gram(b);
      if (pass == 0 && p_.options().rank_tolerance > 0 && !drop_near(unit))
        return run_elsewhere(unit);
      Small small = factor(unit, BadPivot::stop, 0);
      const bool failed = small.failed_column >= 0;
      const Condition condition =
          failed ? Condition{} : condition_of(widened(small.r), p_.zero_columns());
      if (pass + 1 < kPassesMax && (failed || !(condition.estimate <= Limits<T>::kUnshifted))) {
        p_.info().failed_cholesky += failed ? 1 : 0;
        const bool shifted =
            shift(unit, wide, untouched, failed ? kInfinity : condition.estimate, b);
        if (!shifted) return run_elsewhere(unit);
        untouched = false;
        wide = true;
        continue;
      }
      const bool nearly = condition.estimate <= (wide ? kNearlyOrthonormal : kPlainlyOrthonormal);
      const bool enough = !failed && (nearly || (wide && condition.estimate <= condition_max()));
      const bool last = enough || pass + 1 == kPassesMax;
      const bool wide_solve = solves_wide(condition.estimate, nearly, last);
      const Gram r = wide_solve ? widened(small.r) : widened(rounded_to<T>(widened(small.r)));
      if (untouched && (!wide_solve || p_.wanted() == Wanted::r) &&
          condition.estimate > kTellsItself)
        p_.set_wide_factor(widened(small.r));
      const Known known{inverse_of(condition)};
      b = p_.solve(r, wide_solve, !last || verifies(), !kPlainSums<T>, last, &known);
      p_.note_step({"cholesky", wide, wide_solve, failed ? kInfinity : condition.estimate}, b);
      untouched = false;
      combines_far_ = false;
      const bool was_wide = wide;
      wide = !kPlainSums<T>;
      if (!last) continue;
      p_.info().ok = enough && told_;
      conclude(b, nearly, condition, was_wide);
      if (p_.info().ok) return;
      told_ = told_ && p_.info().residual <= p_.residual_promise();
      if (!told_) return;  // which no pass mends
    }
  }

 private:
  using Wide = typename Limits<T>::Wide;
  using Gram = SquareMatrix<DoubleDouble>;
  using Small = SmallCholesky<Wide>;
  using Known = typename TallProblem<T>::KnownOfSolve;

  /// Largest condition of columns from which the last factor is taken off.
  [[nodiscard]] double condition_max() const {
    return p_.wanted() == Wanted::r ? Limits<T>::kUnshifted : Limits<T>::kOneSolve;
  }
  [[nodiscard]] bool verifies() const { return p_.stores_q() && p_.options().verify; }

  /// The Gram matrix, in T, of V·R⁻¹ with the R of a sketch, which is stored; nothing where that is
  /// not the way.
  Gram sketched() {
    if (p_.wanted() == Wanted::r || !begins_with_sketch<T>(p_.m(), p_.n(), p_.options())) return {};
    const Small small = factor(p_.unit_gram(p_.first_sketch_gram()), BadPivot::stop, 0);
    if (small.failed_column >= 0) return {};
    const Gram r = widened(rounded_to<T>(widened(small.r)));
    const Condition condition = condition_of(r, p_.zero_columns());
    if (!(condition.estimate <= sketched_condition_max(p_.n()))) return {};
    const Known known{inverse_of(condition)};
    Gram b = p_.solve(r, false, true, false, false, &known);
    p_.note_step({"sketch", true, false, condition.estimate}, b);
    return b;
  }

  Small factor(const Gram& b, BadPivot rule, double tolerance) {
    return small_cholesky(rounded_to<Wide>(b), rule, tolerance, p_.zeros());
  }

  /// ‖R⁻¹‖_F of a triangle with unit columns.
  [[nodiscard]] double inverse_of(const Condition& condition) const {
    return condition.bound / std::sqrt(static_cast<double>(p_.n()));
  }
  /// How far squares of singular values of unit columns may be off by a wide Gram matrix.
  [[nodiscard]] double of_sums() const { return rounding_of_wide_gram<T>(p_.n()); }
  /// Behind a shift what is rounded has to stay with the columns that are stored, since rows of the
  /// R before are long beside those of what comes.
  [[nodiscard]] bool solves_wide(double condition, bool nearly, bool last) const {
    return shifted_ || combines_far_ || hides_condition<T>(p_.n(), condition) ||
           (!nearly && (last || !kPlainSums<T>));
  }

  /// Columns that depend on those before them by a factorization of a wide Gram matrix, and how far
  /// away from what they are replaced by they are at most.
  struct Drops {
    Small small;
    std::vector<double> distance;  ///< of each of them, …
    std::vector<double> noise;     ///< … how much of that is rounding
    bool certain = true;           ///< whether rounding has no say in which
  };

  /// How far a column may be from its distance to those that were kept before it, which B tells, by
  /// the rounding of B and of what is stored: beside the lengths of all that it is combined of.
  std::vector<double> noise_of(const Small& small, const Gram& b) const {
    const double unit = 10 * std::sqrt(static_cast<double>(p_.n())) * Limits<T>::kUnit;
    std::vector<bool> dropped(p_.zeros());
    for (const std::int64_t j : small.dependent) dropped[static_cast<std::size_t>(j)] = true;
    std::vector<double> noise;
    std::vector<double> c(static_cast<std::size_t>(p_.n()));
    for (std::int64_t j = 0; j < p_.n(); ++j) {
      double square = std::max(b(j, j).hi, 0.0);
      for (std::int64_t i = 0; i < j; ++i) c[static_cast<std::size_t>(i)] = leading(small.r(i, j));
      for (std::int64_t i = j - 1; i >= 0; --i) {
        if (dropped[static_cast<std::size_t>(i)]) continue;
        const double x = c[static_cast<std::size_t>(i)] / leading(small.r(i, i));
        for (std::int64_t k = 0; k < i; ++k)
          c[static_cast<std::size_t>(k)] -= x * leading(small.r(k, i));
        square += x * x * std::max(b(i, i).hi, 0.0);
      }
      noise.push_back(unit * std::sqrt(square));
    }
    return noise;
  }

  /// B factored with its columns weighted by powers of two near `weights`: a column depends on
  /// those before it at a weighted distance of `tolerance` or less.
  Drops drops_of(const Gram& b, const std::vector<double>& weights, double tolerance) {
    std::vector<double> power;
    for (const double w : weights) power.push_back(w > 0 ? std::ldexp(1.0, std::ilogb(w)) : 1.0);
    const auto at = [&](std::int64_t j) { return power[static_cast<std::size_t>(j)]; };
    Gram weighted(p_.n());
    for (std::int64_t j = 0; j < p_.n(); ++j)
      for (std::int64_t i = 0; i < p_.n(); ++i)
        weighted(i, j) = scaled(scaled(b(i, j), at(i)), at(j));
    Drops drops{factor(weighted, BadPivot::drop, tolerance * tolerance), {}, {}};
    for (std::int64_t j = 0; j < p_.n(); ++j)
      for (std::int64_t i = 0; i <= j; ++i)
        drops.small.r(i, j) = times_power(drops.small.r(i, j), 1 / at(j));
    const std::vector<double> noise = noise_of(drops.small, b);
    for (std::int64_t j = 0, next = 0; j < p_.n(); ++j) {
      const double of_column = noise[static_cast<std::size_t>(j)];
      if (next < std::ssize(drops.small.dependent) &&
          drops.small.dependent[static_cast<std::size_t>(next)] == j) {
        ++next;
        DoubleDouble pivot = b(j, j);
        for (std::int64_t i = 0; i < j; ++i) {
          const DoubleDouble x = strata::widened(drops.small.r(i, j));
          pivot = subtract_product(pivot, x, x);
        }
        drops.distance.push_back(std::sqrt(std::max(pivot.hi, 0.0)) + of_column);
        drops.noise.push_back(of_column);
        drops.certain = drops.certain && at(j) * of_column <= tolerance;
      } else if (!p_.is_zero(j)) {
        drops.certain = drops.certain && leading(drops.small.r(j, j)) > 4 * of_column;
      }
    }
    return drops;
  }

  /// Those columns are zeros from the next solve on; their coefficients go into R.
  void drop(const Drops& drops) {
    const std::vector<std::int64_t>& dependent = drops.small.dependent;
    if (dependent.empty()) return;
    for (std::size_t k = 0; k < dependent.size(); ++k)
      p_.note_dropped(dependent[k], drops.distance[k]);
    for (const std::int64_t j : dependent) p_.mark_zero(j);
    coefficients_of(drops.small);
  }

  /// Columns that are near the span of those before them are taken for dependent before anything is
  /// solved. Near is beside the lengths that the problem was given, or their own. False where those
  /// before them are so near each other that a combination of them tells less than is promised:
  /// then V is as it was, and nothing is dropped.
  bool drop_near(const Gram& unit) {
    std::vector<double> weights(static_cast<std::size_t>(p_.n()), 1.0);
    for (std::size_t j = 0; j < p_.lengths().size(); ++j) {
      const auto column = static_cast<std::int64_t>(j);
      const double length = std::sqrt(std::max(unit(column, column).hi, 0.0)) / p_.scale(column);
      if (p_.lengths()[j] > 0) weights[j] = std::max(length / p_.lengths()[j], 0x1p-300);
    }
    const double enough = 1.1 * p_.near() + 0.2 * p_.promise();
    const Drops drops = drops_of(unit, weights, p_.near());
    for (std::size_t d = 0; d < drops.distance.size(); ++d) {
      const double weight = weights[static_cast<std::size_t>(drops.small.dependent[d])];
      if (p_.stores_q() && !(weight * drops.distance[d] <= enough)) return false;
      combines_far_ = combines_far_ || weight * drops.noise[d] > 0.05 * p_.residual_promise();
    }
    drop(drops);
    return true;
  }

  [[nodiscard]] double shift_of(const Gram& b) const {
    double trace = 0;
    for (std::int64_t j = 0; j < p_.n(); ++j) trace += b(j, j).hi;
    return 8 * static_cast<double>(p_.n()) * Limits<T>::kWideEpsilon * trace;
  }
  /// B + s·I factored, s growing until that works, as it does the first time.
  Small shifted(const Gram& b, const std::vector<bool>& zero) {
    for (double shift = shift_of(b); shift < 1; shift *= 16) {
      Gram larger = b;
      for (std::int64_t j = 0; j < p_.n(); ++j) larger(j, j) = larger(j, j) + DoubleDouble(shift);
      Small small = small_cholesky(rounded_to<Wide>(larger), BadPivot::stop, 0, zero);
      if (small.failed_column < 0) return small;
    }
    fail(ErrorKind::numerical, "qr", "the Gram matrix is not one, whatever is added to it");
  }

  /// V ← V·R⁻¹ with a shift, without the columns of which nothing but rounding is left: b becomes
  /// its Gram matrix. False where that does not tell which they are, or what they leave is too far
  /// away: then V is as it was.
  bool shift(const Gram& unit, bool wide, bool untouched, double condition, Gram& b) {
    const Gram r = widened(shifted(unit, p_.zeros()).r);
    Known known{inverse_of(condition_of(r, p_.zero_columns())), untouched ? &b : nullptr};
    b = untouched ? p_.look_behind(r) : p_.solve(r, true, true, true, false, &known);
    // A column of V is r_jj times as far from those before it as that of V·R⁻¹.
    std::vector<double> weights;
    for (std::int64_t j = 0; j < p_.n(); ++j) weights.push_back(p_.is_zero(j) ? 1.0 : r(j, j).hi);
    const Drops drops = drops_of(b, weights, Limits<T>::kDependent);
    if (!tells(drops, r) || (untouched && !is_exact(drops))) {
      if (untouched && p_.wanted() != Wanted::implicit_q) return false;
      told_ = false;
    }
    ++p_.info().shifts;
    shifted_ = true;
    known.dropped = &drops.small.dependent;
    if (untouched) (void)p_.solve(r, true, false, false, false, &known);
    p_.note_step({"shifted cholesky", wide, true, condition}, b);
    drop(drops);
    return true;
  }

  /// Whether what a shift leaves is good: which columns depend on others is certain, those that are
  /// kept can be told apart, and what is lost with the others is little beside each column.
  bool tells(const Drops& drops, const Gram& r) const {
    std::vector<std::int64_t> without = p_.zero_columns();
    without.insert(without.end(), drops.small.dependent.begin(), drops.small.dependent.end());
    std::sort(without.begin(), without.end());
    const double condition = condition_of(widened(drops.small.r), without).estimate;
    if (!drops.certain || !(condition <= Limits<T>::kUnshifted)) return false;
    for (std::int64_t k = 0; k < p_.n(); ++k) {
      double lost = 0;
      for (std::size_t d = 0; d < drops.distance.size(); ++d)
        lost += drops.distance[d] * std::abs(r(drops.small.dependent[d], k).hi);
      if (!(lost <= 0.25 * p_.promise() * std::sqrt(unit_square(r, k)))) return false;
    }
    return true;
  }
  /// What a wide Gram matrix tells is not less than kDependent of a length; one element of 1e30
  /// beside others (in floats 1e15) leaves independent columns as near as that. A column that is a
  /// combination of near ones is farther, by the rounding of a wide solve with small pivots. The
  /// stored numbers tell, unless nearer columns are to be dropped than those.
  [[nodiscard]] bool is_exact(const Drops& drops) {
    if (p_.options().rank_tolerance > 0) return true;
    std::vector<std::int64_t> dropped = p_.zero_columns();
    dropped.insert(dropped.end(), drops.small.dependent.begin(), drops.small.dependent.end());
    std::sort(dropped.begin(), dropped.end());
    return dropped == exactly_dependent();
  }
  [[nodiscard]] static double unit_square(const Gram& r, std::int64_t j) {
    double square = 0;
    for (std::int64_t i = 0; i <= j; ++i) square += r(i, j).hi * r(i, j).hi;
    return square;
  }

  /// Where Gram matrices do not tell. Columns that depend on others are found in exact arithmetic,
  /// or with a tolerance in a triangle, and V by reflections. R alone is from the Gram matrix with
  /// a shift, the R of columns that are the root of the shift away.
  void run_elsewhere(const Gram& unit) {
    const bool near = p_.options().rank_tolerance > 0;
    if (!near) {
      for (const std::int64_t j : exactly_dependent()) p_.mark_zero(j);
    }
    if (p_.wanted() != Wanted::r) return run_reflections(p_);
    std::vector<bool> zero;
    for (std::int64_t j = 0; j < p_.n(); ++j) zero.push_back(!(unit(j, j).hi > 0));
    const Gram r = widened(shifted(unit, zero).r);
    const NarrowedFactor narrowed =
        near ? narrowed_factor(r, p_.lengths(), p_.near()) : narrowed_factor(r, p_.zero_columns());
    p_.set_zeros(narrowed.dropped);
    const std::vector<double> scales = p_.scales();
    p_.restart();
    for (std::int64_t j = 0; j < p_.n(); ++j) p_.scale(j) = scales[static_cast<std::size_t>(j)];
    p_.accumulate_factor(narrowed.r);
    const double away = 1.1 * std::sqrt(shift_of(unit));
    p_.set_rounding_of_pivots(away);
    p_.tell_residual(narrowed.left + away, kInfinity);
    p_.info().ok = p_.info().residual <= p_.residual_promise();
    p_.info().orthogonality = std::numeric_limits<double>::quiet_NaN();
    p_.note_step({"shifted cholesky", true, true, kInfinity}, {});
  }

  [[nodiscard]] std::vector<std::int64_t> exactly_dependent() {
    constexpr std::int64_t kPiece = 4096;
    ExactRank rank(p_.n());
    std::vector<T> rows(static_cast<std::size_t>(std::min(p_.m(), kPiece) * p_.n()));
    for (std::int64_t first = 0; first < p_.m() && !rank.is_full(); first += kPiece) {
      const std::int64_t count = std::min(kPiece, p_.m() - first);
      p_.runner().read(first, count, rows.data());
      rank.add(rows.data(), count);
    }
    return rank.dependent_columns();
  }

  /// What was zero in Q takes its coefficients with it into R: they were computed with the R of the
  /// pivots, of which only their columns are kept.
  void coefficients_of(const Small& small) {
    Gram step = Gram::identity(p_.n());
    const Gram r = widened(small.r);
    for (const std::int64_t j : small.dependent) {
      step(j, j) = DoubleDouble();
      // q_j = Σ_{i<j} q_i·c_i, c from R_(0..j-1)·c = r_j by back substitution.
      for (std::int64_t i = j - 1; i >= 0; --i) {
        if (p_.is_zero(i)) continue;
        DoubleDouble c = r(i, j);
        for (std::int64_t k = i + 1; k < j; ++k) c = subtract_product(c, r(i, k), step(k, j));
        step(i, j) = c / r(i, i);
      }
    }
    for (const std::int64_t j : small.dependent) {  // scales are powers of two
      for (std::int64_t i = 0; i < j; ++i)
        step(i, j) = scaled(scaled(step(i, j), p_.scale(i)), 1 / p_.scale(j));
    }
    p_.multiply_factor(step);
  }

  void conclude(const Gram& b, bool nearly, const Condition& of, bool was_wide) {
    const auto columns = static_cast<double>(p_.n());
    const double condition = of.estimate;
    QrInfo& info = p_.info();
    info.measured = verifies();
    p_.tell_residual();
    if (p_.wanted() == Wanted::r) {
      // V is not orthonormalized: what the sums round may be as far from R as their error says.
      p_.tell_residual(info.residual + std::sqrt(of_sums()), of_sums() * of.bound * of.bound);
      info.orthogonality = std::numeric_limits<double>::quiet_NaN();
    } else if (verifies()) {
      info.orthogonality = distance_from_identity(b, p_.zero_columns()) + p_.rounding_of_sums();
    } else {
      // Rounding of what is stored; of the sums, twice the estimate being above the condition; of a
      // solve in T.
      const double unit = Limits<T>::kUnit;
      info.orthogonality =
          2.1 * std::sqrt(columns) * unit + 32 * columns * unit * unit * 4 * condition * condition;
      if (nearly) info.orthogonality += 2 * columns * std::sqrt(columns) * unit * condition;
      if (!was_wide) info.orthogonality += 4 * condition * condition * p_.rounding_of_sums();
    }
    info.ok = info.ok && info.residual <= p_.residual_promise() &&
              (!verifies() || info.orthogonality <= p_.promise());
  }

  TallProblem<T>& p_;
  bool shifted_ = false;  ///< a pass was
  bool told_ = true;      ///< and told which columns depend on others
  /// Dropped columns are combined of others with coefficients by which those may not be rounded.
  bool combines_far_ = false;
};

}  // namespace

template <class T>
bool begins_with_sketch(std::int64_t m, std::int64_t n, const QrOptions& options) {
  constexpr std::int64_t kLeast = 24;  // columns
  constexpr std::int64_t kMost = 128;  // whose sketch takes a few megabytes
  return std::is_same_v<T, double> && options.method == QrMethod::automatic &&
         options.rank_tolerance == 0 && n >= kLeast && n <= kMost && m >= 16 * sketch_buckets(n);
}

template <class T>
std::vector<RowProblem> widest_passes(std::int64_t m, std::int64_t n, const QrOptions& options) {
  std::vector<RowProblem> passes{{.pass = RowPass::solve_gram}};
  if (options.method == QrMethod::multi_sketch) passes.push_back({.pass = RowPass::count_sketch});
  if (begins_with_sketch<T>(m, n, options)) passes.push_back({.pass = RowPass::count_gram});
  return passes;
}

template bool begins_with_sketch<double>(std::int64_t, std::int64_t, const QrOptions&);
template bool begins_with_sketch<float>(std::int64_t, std::int64_t, const QrOptions&);
template std::vector<RowProblem> widest_passes<double>(std::int64_t, std::int64_t,
                                                       const QrOptions&);
template std::vector<RowProblem> widest_passes<float>(std::int64_t, std::int64_t, const QrOptions&);

template <class T>
void run_automatic(TallProblem<T>& problem) {
  Automatic<T>(problem).run();
}

template void run_automatic(TallProblem<double>&);
template void run_automatic(TallProblem<float>&);

}  // namespace strata
