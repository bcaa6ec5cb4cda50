// The shift that makes a matrix positive definite.
//
// Method: −λ_min from inside the spectrum, by Lanczos' method and by the least diagonal element;
// doubled until A + σI has been factored and is not numerically singular, at most to the bound of
// Gershgorin's discs. If the first estimate was too small, Lanczos' method with the inverse of the
// first A + σI that was factored finds λ_min to some digits, and a factorization confirms it, or a
// few that halve what is left in between.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"
#include "dense/tridiagonal.hpp"
#include "sparse/ordering/entry_checks.hpp"
#include "sparse/ordering/pattern.hpp"
#include "sparse/symmetric_system.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {
namespace {

constexpr double kShiftMargin = 1.01;  // over −λ_min

using Vector = std::vector<double>;

struct Ends {
  double low = 0;
  double high = 0;
};

/// The least and the largest Ritz value of a symmetric operator y ← B·x.
Ends ritz_ends(std::int64_t n, int steps,
               const std::function<void(const Vector&, Vector&)>& apply) {
  // Without reorthogonalization: copies of values that have converged do not hurt the ends.
  Vector v(at(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = random_normal(1, i);
  Vector before(at(n));
  Vector w(at(n));
  std::vector<double> diagonal;
  std::vector<double> off;
  const auto length = [](const Vector& u) {
    return std::sqrt(std::inner_product(u.begin(), u.end(), u.begin(), 0.0));
  };
  double beta = length(v);
  const int most = static_cast<int>(std::min<std::int64_t>(steps, n));
  for (int k = 0; k < most && beta > 0; ++k) {
    for (double& element : v) element /= beta;
    apply(v, w);
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
  return {*low, *high};
}

/// The search; A and all shifts in the range of doubles.
class ShiftSearch {
 public:
  /// `system`: 2^(−exponent)·A. `factor`: makes that of A + shift·I, or says null.
  ShiftSearch(const SymmetricSystem& system, int exponent, Element precision,
              const DefiniteShiftOptions& options,
              std::function<const SparseCholesky*(double)> factor)
      : system_(system),
        exponent_(exponent),
        options_(options),
        factor_(std::move(factor)),
        n_(system.n()),
        floor_(least_shift(system.norm(), precision)) {
    find_discs();
  }

  /// `failed`: shifts up to this are known not to do.
  DefiniteShift run(std::optional<double> failed) {
    if (options_.factorizations_max == 0) return proven();
    const std::vector<double>& diagonal = system_.diagonal();
    const double needed = std::max(-*std::min_element(diagonal.begin(), diagonal.end()),
                                   -ritz_ends(n_, options_.steps, by_matrix()).low);
    if (!failed && needed < 0 && succeeds(0)) return found(0);
    double most_failed = std::max(failed.value_or(0), 0.0);
    const SparseCholesky* factor = nullptr;
    double shift = std::max(floor_, kShiftMargin * needed);
    bool first = needed > 0;
    for (double low = floor_; factor == nullptr; low *= 16) {
      if (shift > most_failed) {
        if (result_.factorizations >= options_.factorizations_max) return proven();
        shift = std::min(shift, discs_);
        factor = succeeds(shift);
        if (factor != nullptr) break;
        if (shift == discs_) return proven();
        most_failed = shift;
        first = false;
      }
      shift = std::max(2 * shift, low);
    }
    if (first) return found(shift);
    double sharp = kShiftMargin * needed_by(*factor, shift);
    for (int tries = 0; tries < 4; ++tries) {
      sharp = std::max(floor_, sharp);
      if (sharp <= most_failed) sharp = std::sqrt(most_failed * shift);
      if (sharp >= shift / kShiftMargin) break;
      factor = succeeds(sharp);
      if (factor != nullptr) {
        shift = sharp;
        sharp = kShiftMargin * needed_by(*factor, shift);
      } else {
        most_failed = sharp;
      }
    }
    return found(shift);
  }

 private:
  /// Below this a shift is rounding. A matrix of zeros has no size: any shift does, 1 is taken.
  [[nodiscard]] static double least_shift(double norm, Element precision) {
    return norm > 0 ? (precision == Element::fp32 ? 0x1p-22 : 0x1p-51) * norm : 1;
  }

  [[nodiscard]] std::function<void(const Vector&, Vector&)> by_matrix() const {
    return [this](const Vector& v, Vector& w) {
      const SparseMatrix& a = system_.matrix();
      std::fill(w.begin(), w.end(), 0.0);
      for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
        const double value = a.value[at(k)];
        w[at(i)] += value * v[at(j)];
        if (i != j) w[at(j)] += value * v[at(i)];
      });
    };
  }

  /// −λ_min, by the inverse of A + shift·I.
  [[nodiscard]] double needed_by(const SparseCholesky& factor, double shift) const {
    constexpr int kSteps = 30;
    const Ends ends = ritz_ends(n_, kSteps, [&](const Vector& v, Vector& w) {
      w = v;
      factor.solve_in_range({w.data(), n_, 1, std::max<std::int64_t>(n_, 1)});
    });
    return shift - std::scalbn(1 / ends.high, factor.exponent() - exponent_);
  }

  /// Where the discs of Gershgorin end on the left, and some of what rounding could do.
  void find_discs() {
    const SparseMatrix& a = system_.matrix();
    Vector reach(at(n_));
    for (std::int64_t i = 0; i < n_; ++i) reach[at(i)] = -system_.diagonal()[at(i)];
    for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
      if (i == j) return;
      reach[at(i)] += std::abs(a.value[at(k)]);
      reach[at(j)] += std::abs(a.value[at(k)]);
    });
    discs_ = std::max(*std::max_element(reach.begin(), reach.end()), 0.0);
    discs_ += std::max((kShiftMargin - 1) * discs_, 64 * floor_);
  }

  const SparseCholesky* succeeds(double shift) {
    ++result_.factorizations;
    return factor_(shift);
  }
  DefiniteShift found(double shift) {
    result_.shift = shift;
    result_.factored = true;
    return result_;
  }
  DefiniteShift proven() {
    result_.shift = discs_;
    result_.proven = true;
    return result_;
  }

  const SymmetricSystem& system_;
  int exponent_;
  DefiniteShiftOptions options_;
  std::function<const SparseCholesky*(double)> factor_;
  std::int64_t n_;
  double floor_;  ///< least_shift()
  double discs_ = 0;
  DefiniteShift result_;
};

/// The power of two by which A is divided, so that products of its vectors stay in the range.
int search_exponent(double largest) {
  constexpr int kInRange = 400;
  if (!(largest > 0)) return 0;
  const int exponent = std::ilogb(largest);
  return std::abs(exponent) <= kInRange ? 0 : exponent / 2 * 2;
}

/// 2^exponent·shift or the next double above: a smaller shift may not do. Infinite beyond the
/// range.
double rounded_up(double shift, int exponent) {
  const double near = std::scalbn(shift, exponent);
  return std::scalbn(near, -exponent) < shift
             ? std::nextafter(near, std::numeric_limits<double>::infinity())
             : near;
}

/// `factored`: that of A + shift·I, whatever became of it.
DefiniteShift search(const SparseMatrix& a, Element precision, const DefiniteShiftOptions& options,
                     std::optional<double> failed,
                     const std::function<const SparseCholesky&(double)>& factored) {
  require(options.steps >= 1, ErrorKind::misuse, "shift", "{} steps of Lanczos' method",
          options.steps);
  WorkCrew crew(checking_threads() - 1);
  require_symmetric(a, "shift", crew);
  if (a.rows == 0) return {.factored = true};
  const int exponent = search_exponent(largest_magnitude(a.value, crew));
  const SymmetricSystem system(a, 0, exponent);
  if (failed) failed = std::scalbn(*failed, -exponent);
  ShiftSearch shifts(
      system, exponent, precision, options, [&](double shift) -> const SparseCholesky* {
        const double in_units_of_a = rounded_up(shift, exponent);
        if (!std::isfinite(in_units_of_a)) return nullptr;
        const SparseCholesky& factor = factored(in_units_of_a);
        const bool fine = factor.info().ok &&
                          !numerically_singular(factor.scaled_condition(a), factor.precision());
        return fine ? &factor : nullptr;
      });
  DefiniteShift result = shifts.run(failed);
  result.shift = rounded_up(result.shift, exponent);
  result.proven = result.proven && std::isfinite(result.shift);
  const std::vector<double> diagonal = SymmetricSystem(a, 0, 0).diagonal();
  const auto least = std::min_element(diagonal.begin(), diagonal.end());
  result.least_diagonal = *least;
  result.least_row = least - diagonal.begin();
  return result;
}

}  // namespace

DefiniteShift definite_shift(const SparseMatrix& a, const DefiniteShiftOptions& options,
                             const SparseCholeskyOptions& factoring) {
  std::optional<SparseCholesky> factor;
  return search(a, factoring.precision, options, std::nullopt,
                [&](double shift) -> const SparseCholesky& {
                  if (factor) {
                    (void)factor->refactor(a, shift);
                    return *factor;
                  }
                  SparseCholeskyOptions shifted = factoring;
                  shifted.shift = shift;
                  return factor.emplace(a, shifted);
                });
}

DefiniteShift definite_shift(SparseCholesky& factor, const SparseMatrix& a,
                             const DefiniteShiftOptions& options) {
  std::optional<double> failed;
  if (factor.info().first_bad_pivot >= 0) failed = factor.shift();
  return search(a, factor.precision(), options, failed, [&](double shift) -> const SparseCholesky& {
    (void)factor.refactor(a, shift);
    return factor;
  });
}

}  // namespace strata
