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
//   at 1e-7: the rank is told by what lies between. Dependent columns are zeros from there on.
// * Where columns are many, a sum in double-double costs more than all the rest, and V is much
// longer
//   than a sketch of it: there the first R is that of a sketch (by CountSketch, its Gram matrix in
//   double-double), which makes of V columns of a condition below two with a probability near one;
//   sums in doubles do then, and tell whether they do. Where the sketch says that κ is beyond 0.1/u
//   or that columns are dependent, as it does where it lost some (a V of a few rows that are not
//   zero), V is as it was, and its wide Gram matrix follows.
// * R alone has less to ask for. A Cholesky factor whose error is E beside unit columns is the R of
//   columns that are √‖E‖ away at most, √n·u for a wide sum, whatever their condition (the distance
//   of the square roots of two positive semidefinite matrices: Bhatia, Matrix Analysis, 1997, X.1).
//   So it is done where the condition is one that the wide sum bears, and a shift is needed, with
//   one more reading, only to tell which columns are dependent and what the condition is.
//
// Why not Householder: its tall panels run at the speed of matrix-vector products, and its result
// says nothing about the condition.

#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "kernels/sketch.hpp"
#include "qr/methods.hpp"

namespace strata {
namespace {

/// Columns up to this condition are solved for in T.
constexpr double kNearlyOrthonormal = 8;
/// The same where the Gram matrix was not wide either.
constexpr double kPlainlyOrthonormal = 2;
/// Sums of nearly orthonormal columns are not wide: in doubles, which is wide for floats.
template <class T>
constexpr bool kPlainSums = std::is_same_v<T, double>;
constexpr int kPassesMax = 12;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
class Automatic {
 public:
  explicit Automatic(TallProblem<T>& problem) : p_(problem) {}

  void run() {
    Gram b = sketched();
    bool wide = b.n == 0;  // b is
    if (wide) b = p_.first_gram(true);
    bool was_shifted = false;
    for (int pass = 0; pass < kPassesMax; ++pass) {
      if (was_shifted) {
        // The pivots are beside lengths of 1 that the shift left; then they are forgotten.
        const Small small = drop_dependent(b);
        if (!small.dependent.empty()) coefficients_of(small);
        was_shifted = false;
      }
      const Gram unit = p_.unit_gram(b);
      if (pass == 0 && p_.options().rank_tolerance > 0) drop_near(unit);
      Small small = factor(unit, BadPivot::stop, 0);
      const bool failed = small.failed_column >= 0;
      const Condition condition =
          failed ? Condition{} : condition_of(widened(small.r), p_.zero_columns());
      if (pass + 1 < kPassesMax && (failed || !(condition.estimate <= Limits<T>::kUnshifted))) {
        p_.info().failed_cholesky += failed ? 1 : 0;
        ++p_.info().shifts;
        b = p_.solve(widened(shifted(unit).r), true, true, true, false);
        p_.note_step({"shifted cholesky", wide, true, failed ? kInfinity : condition.estimate}, b);
        was_shifted = wide = true;
        continue;
      }
      const bool nearly = condition.estimate <= (wide ? kNearlyOrthonormal : kPlainlyOrthonormal);
      const bool enough = !failed && (nearly || (wide && condition.estimate <= condition_max()));
      const bool last = enough || pass + 1 == kPassesMax;
      const bool wide_solve = !nearly && (last || !kPlainSums<T>);
      const Gram r = wide_solve ? widened(small.r) : widened(rounded_to<T>(widened(small.r)));
      b = p_.solve(r, wide_solve, !last || verifies(), !kPlainSums<T>, last);
      p_.note_step({"cholesky", wide, wide_solve, failed ? kInfinity : condition.estimate}, b);
      const bool was_wide = wide;
      wide = !kPlainSums<T>;
      if (!last) continue;
      p_.info().ok = enough;
      conclude(b, nearly, condition.estimate, was_wide);
      if (p_.info().ok) return;
    }
  }

 private:
  using Wide = typename Limits<T>::Wide;
  using Gram = SquareMatrix<DoubleDouble>;
  using Small = SmallCholesky<Wide>;

  /// Of columns that the last factor is taken off.
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
    if (!(condition.estimate <= Limits<T>::kUnshifted)) return {};
    Gram b = p_.solve(r, false, true, false, false);
    p_.note_step({"sketch", true, false, condition.estimate}, b);
    return b;
  }

  Small factor(const Gram& b, BadPivot rule, double tolerance) {
    return small_cholesky(rounded_to<Wide>(b), rule, tolerance, p_.zeros());
  }

  /// Columns that are near the span of those before them are taken for dependent before anything is
  /// solved; their coefficients, of columns without scales, go into R.
  void drop_near(const Gram& unit) {
    const double tolerance =
        std::max(p_.options().rank_tolerance,
                 std::sqrt(64 * static_cast<double>(p_.n()) * Limits<T>::kWideEpsilon));
    const Small small = factor(unit, BadPivot::drop, tolerance * tolerance);
    if (small.dependent.empty()) return;
    for (const std::int64_t j : small.dependent) p_.mark_zero(j);
    coefficients_of(small);
  }

  /// B + s·I factored, s growing until that works, as it does the first time.
  Small shifted(const Gram& b) {
    double trace = 0;
    for (std::int64_t j = 0; j < p_.n(); ++j) trace += p_.is_zero(j) ? 0 : b(j, j).hi;
    double shift = 8 * static_cast<double>(p_.n()) * Limits<T>::kWideEpsilon * trace;
    for (; shift < 1; shift *= 16) {
      Gram larger = b;
      for (std::int64_t j = 0; j < p_.n(); ++j) larger(j, j) = larger(j, j) + DoubleDouble(shift);
      Small small = factor(larger, BadPivot::stop, 0);
      if (small.failed_column < 0) return small;
    }
    fail(ErrorKind::numerical, "qr", "the Gram matrix is not one, whatever is added to it");
  }

  /// Columns of which a shifted pass left rounding alone: zeros from now on. Their coefficients
  /// stay in R.
  Small drop_dependent(const Gram& b) {
    const double tolerance = Limits<T>::kDependent * Limits<T>::kDependent;
    Small small = factor(b, BadPivot::drop, tolerance);
    for (const std::int64_t j : small.dependent) p_.mark_zero(j);
    return small;
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

  void conclude(const Gram& b, bool nearly, double condition, bool was_wide) {
    const auto columns = static_cast<double>(p_.n());
    p_.info().measured = verifies();
    if (p_.wanted() == Wanted::r) {
      p_.info().orthogonality = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (verifies()) {
      p_.info().orthogonality =
          distance_from_identity(b, p_.zero_columns()) + p_.rounding_of_sums();
      p_.info().ok = p_.info().orthogonality <= p_.promise();
      return;
    }
    // Rounding of what is stored; of the sums, twice the estimate being above the condition; of a
    // solve in T.
    const double unit = Limits<T>::kUnit;
    p_.info().orthogonality =
        2.1 * std::sqrt(columns) * unit + 32 * columns * unit * unit * 4 * condition * condition;
    if (nearly) p_.info().orthogonality += 2 * columns * std::sqrt(columns) * unit * condition;
    if (!was_wide) p_.info().orthogonality += 4 * condition * condition * p_.rounding_of_sums();
  }

  TallProblem<T>& p_;
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
