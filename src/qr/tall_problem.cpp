// What every method does with a tall matrix: Gram matrices, scales, solves.
//
// Method: scales are powers of two, so nothing is rounded by them. R and the scales of each solve
// are multiplied into one R in double-double, whose leading parts are given to the caller. The
// condition is that of R from above, times what R may be away from the triangle of V: R knows no
// pivot of V that is below its own rounding.

#include "qr/tall_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace strata {
namespace {

KeepMatrix kept_for(Wanted wanted, bool joins_solves) {
  if (wanted == Wanted::q) return joins_solves ? KeepMatrix::pairs : KeepMatrix::no;
  return wanted == Wanted::q_apart ? KeepMatrix::until_last : KeepMatrix::yes;
}

/// Whether Q has as many columns as V, none of which is named as dependent.
bool keeps_all_columns(QrMethod method) {
  return method == QrMethod::tsqr || method == QrMethod::tsqr_flat;
}

[[noreturn]] void complain_of_length(std::int64_t j) {
  fail(ErrorKind::input, "qr",
       "column {} of V is longer than the largest number of its precision: scale it", j);
}

}  // namespace

double unit_scale(double square) {
  return square > 0 ? std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(square) / 2))) : 1.0;
}

template <class T>
TallProblem<T>::TallProblem(std::unique_ptr<PassExecutor<T>> executor, const QrOptions& options,
                            std::int64_t first_column, Wanted wanted)
    : m_(executor->rows()),
      n_(executor->cols()),
      options_(options),
      wanted_(wanted),
      keep_(kept_for(wanted, executor->joins_solves())),
      runner_(std::move(executor), options.run.progress, keep_),
      scale_(static_cast<std::size_t>(n_), 1.0),
      zero_(static_cast<std::size_t>(n_)),
      r_(Gram::identity(n_)),
      underflows_(n_),
      first_column_(first_column),
      error_(n_, Limits<T>::kUnit, Limits<T>::kWideUnit, Limits<T>::kLengthMin,
             std::numeric_limits<T>::denorm_min()) {
  info_.method = options.method;
}

template <class T>
QrInfo TallProblem<T>::take_info() {
  info_.dependent_columns = zero_columns();
  info_.rank = n() - std::ssize(info_.dependent_columns);
  info_.numerical_rank = of_r().numerical_rank;
  const double lost = lost_at_the_end_of_the_range();
  info_.condition = condition(lost);
  if (keeps_all_columns(options_.method)) {
    const std::int64_t zeros = std::ssize(columns_of_nothing());
    info_.rank -= zeros;
    if (zeros > 0) info_.condition = std::numeric_limits<double>::infinity();
  }
  info_.passes = runner_.passes();
  info_.report = runner_.take_report();
  info_.residual += lost;
  // Other methods promise no residual; but what the range takes is no rounding of theirs.
  const double judged = options_.method == QrMethod::automatic ? info_.residual : lost;
  if (lost > Limits<T>::kUnit) info_.ok = info_.ok && !(judged > residual_promise());
  return std::move(info_);
}

/// Whether a product that underflows may change column j of R.
template <class T>
bool TallProblem<T>::is_short(const Gram& r, std::int64_t j) {
  double largest = 0;
  for (std::int64_t i = 0; i <= j; ++i) largest = std::max(largest, std::abs(r(i, j).hi));
  return largest < Limits<double>::kLengthMin;
}

/// R becomes r·diag(scales)⁻¹, of which `unscaled` is what doubles hold.
template <class T>
void TallProblem<T>::note_first_underflows(const Gram& r, const Gram& unscaled,
                                           const std::vector<double>& scales) {
  for (std::int64_t j = 0; j < n(); ++j) {
    if (!is_short(unscaled, j)) continue;
    const double d = scales[static_cast<std::size_t>(j)];
    for (std::int64_t i = 0; i <= j; ++i) {
      const DoubleDouble back = scaled(unscaled(i, j), d);
      underflows_(i, j) = std::abs((r(i, j).hi - back.hi) + (r(i, j).lo - back.lo)) /
                          (d * std::numeric_limits<double>::denorm_min());
    }
  }
}

/// R becomes step·R: products round a unit at most, and what was lost before is multiplied.
template <class T>
void TallProblem<T>::note_underflows(const Gram& step) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  for (std::int64_t j = 0; j < n(); ++j) {
    if (!is_short(r_, j)) continue;
    for (std::int64_t i = 0; i <= j; ++i) {  // rows below are still those before
      double units = 0;
      for (std::int64_t k = i; k <= j; ++k) {
        const double by = std::abs(step(i, k).hi);
        units += by * underflows_(k, j) + std::min(1.0, by * (std::abs(r_(k, j).hi) / kLeast));
      }
      underflows_(i, j) = units;
    }
  }
}

/// What columns of R whose elements are subnormal numbers of T, or 0, have lost by that: half a
/// unit each, twice, since powers of two may have made them so before; and what products lost.
template <class T>
double TallProblem<T>::lost_at_the_end_of_the_range() const {
  double most = 0;
  for (std::int64_t j = 0; j < n(); ++j) {
    double length = 0;
    double units = 0;
    for (std::int64_t i = 0; i <= j; ++i) {
      length = std::hypot(length, r_(i, j).hi);
      units = std::hypot(units, underflows_(i, j));
    }
    if (length > 0)
      most = std::max(most, std::sqrt(static_cast<double>(j + 1)) *
                                    (double{std::numeric_limits<T>::denorm_min()} / length) +
                                units * std::numeric_limits<double>::denorm_min() / length);
  }
  return most;
}

template <class T>
auto TallProblem<T>::of_r() -> const OfR& {
  if (!of_r_) {
    const std::vector<std::int64_t> without = columns_of_nothing();
    of_r_ = OfR{.numerical_rank = numerical_rank_of(
                    r_, static_cast<double>(n()) * 2 * Limits<T>::kUnit + rounding_of_pivots_),
                .condition = condition_bound(r_, without)};
    of_r_->inverse = of_r_->condition;  // ‖R‖₂ is 1 at least
    if (wide_factor_) of_r_->of_wide_factor = condition_by_wide_factor();
  }
  return *of_r_;
}

/// κ of the triangle of a wide Gram matrix, with what that may be off by.
template <class T>
double TallProblem<T>::condition_by_wide_factor() const {
  const double condition = condition_bound(*wide_factor_, zero_columns());
  const double left = 1 - rounding_of_wide_gram<T>(n()) * condition * condition;
  return left > 0 ? condition / std::sqrt(left) : std::numeric_limits<double>::infinity();
}

/// V = (Q + F)·R = Q·R + E with bounds of F, E and I − QᵀQ: the smallest singular value of V is
/// that of R times one of Q + F at least, the largest that of R with what is beside it. Lengths of
/// columns of R are those of V to a factor that Q tells, too. Where nothing is known of E, or of a
/// Q that is stored, R bounds nothing. lost: beside the length of each column of R.
template <class T>
double TallProblem<T>::condition(double lost) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const OfR& of = of_r();
  const bool measured = !std::isnan(info_.orthogonality);
  if (std::isnan(info_.residual) || (!measured && wanted_ != Wanted::r)) return kUnknown;
  const double away = measured ? info_.orthogonality : promise();
  const double residual = info_.residual + lost;
  const double of_columns = residual * std::sqrt(static_cast<double>(n()));
  const double longest = std::sqrt(1 + away);
  const double shortest = std::sqrt(std::max(1 - away, 0.0));
  const double of_range = lost * std::sqrt(static_cast<double>(n())) * of.inverse;
  const double least = shortest - longest * (spread_ + of_range);
  const double of_lengths = longest / shortest * (1 + residual) / (1 - residual);
  const double by_r = least > 0 && residual < 1
                          ? of.condition * of_lengths * (longest + of_columns) / least
                          : kUnknown;
  return wide_factor_ ? std::min(by_r, of.of_wide_factor) : by_r;
}

template <class T>
void TallProblem<T>::tell_residual(double residual) {
  tell_residual(residual, residual * std::sqrt(static_cast<double>(n())) * of_r().inverse);
}

template <class T>
auto TallProblem<T>::gram(bool wide) -> Gram {
  return wide ? widened(runner_.template gram<Wide>(scale_))
              : widened(runner_.template gram<T>(scale_));
}

// ---- Gram matrices

/// What `sum` gives, again with other scales where its squares overflow or underflow. A square of 0
/// may have done so or be that of a column of zeros, which only its largest element tells.
template <class T>
template <class Sum>
auto TallProblem<T>::in_range(Sum&& sum) -> Gram {
  Gram b = sum();
  if (is_in_range(b)) return b;
  const std::vector<double> largest = find_zeros();
  if (is_in_range(b)) return b;
  scale_by(largest);
  b = sum();
  require_representable(b);
  return b;
}

template <class T>
auto TallProblem<T>::first_gram(bool wide) -> Gram {
  return in_range([&] { return gram(wide); });
}

template <class T>
auto TallProblem<T>::first_sketch_gram() -> Gram {
  return in_range([&] { return runner_.sketch_gram(options_.seed, scale_); });
}

template <class T>
bool TallProblem<T>::is_in_range(const Gram& b) const {
  for (std::int64_t j = 0; j < n(); ++j) {
    if (is_zero(j)) continue;
    const double square = b(j, j).hi;
    if (!(square >= Limits<T>::kSquareMin && square <= Limits<T>::kSquareMax)) return false;
  }
  return true;
}

template <class T>
void TallProblem<T>::rescale() {
  scale_by(find_zeros());
  require_representable(gram(true));
}

/// Marks columns of zeros; returns the largest element of each, beside its sign. Throws where one
/// is not finite.
template <class T>
std::vector<double> TallProblem<T>::find_zeros() {
  std::vector<double> largest = runner_.maxima();
  for (std::int64_t j = 0; j < n(); ++j) {
    const double x = largest[static_cast<std::size_t>(j)];
    if (!std::isfinite(x)) complain_of_elements();
    zero_[static_cast<std::size_t>(j)] = x == 0;
  }
  of_r_.reset();
  return largest;
}

/// Scales take the largest elements to lengths near 1.
template <class T>
void TallProblem<T>::scale_by(const std::vector<double>& largest) {
  for (std::int64_t j = 0; j < n(); ++j) {
    if (!is_zero(j)) scale_to_unit(j, largest[static_cast<std::size_t>(j)]);
  }
}

template <class T>
void TallProblem<T>::scale_to_unit(std::int64_t j, double largest) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  // 2^1074 is no double: what is that small is scaled into the range, if not to 1.
  scale(j) = std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
  info_.rescaled = true;
}

template <class T>
std::vector<double> TallProblem<T>::lengthen_short_columns(const std::vector<double>& lengths,
                                                           double least) {
  const auto is_short = [&](std::int64_t j) {
    return lengths[static_cast<std::size_t>(j)] < least;
  };
  std::vector<double> powers(static_cast<std::size_t>(n()), 1.0);
  std::vector<double> largest;
  for (std::int64_t j = 0; j < n(); ++j) {
    if (!is_short(j)) continue;
    if (largest.empty()) largest = runner_.maxima();
    const double x = largest[static_cast<std::size_t>(j)];
    if (!(x > 0)) continue;
    scale_to_unit(j, x);
    powers[static_cast<std::size_t>(j)] = scale(j);
  }
  if (std::ranges::all_of(powers, [](double power) { return power == 1; })) return powers;
  const std::vector<std::int64_t> zeros = zero_columns();
  set_zeros({});
  (void)solve(Gram::identity(n()), false, false, false, true);
  set_zeros(zeros);
  return powers;
}

/// Throws where there is an element that is not finite: the first, row by row.
template <class T>
void TallProblem<T>::complain_of_first_element() {
  constexpr std::int64_t kPiece = 4096;
  std::vector<T> rows(static_cast<std::size_t>(std::min(m(), kPiece) * n()));
  for (std::int64_t first = 0; first < m(); first += kPiece) {
    const std::int64_t count = std::min(kPiece, m() - first);
    runner_.read(first, count, rows.data());
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < n(); ++j) {
        const T x = rows[static_cast<std::size_t>(i + j * count)];
        require(std::isfinite(x), ErrorKind::input, "qr", "element ({}, {}) of V is {}", first + i,
                first_column_ + j, x);
      }
    }
  }
}

template <class T>
void TallProblem<T>::complain_of_elements() {
  complain_of_first_element();
  fail(ErrorKind::input, "qr", "V changed while it was read");
}

template <class T>
void TallProblem<T>::complain_of_elements_or_length(std::int64_t j) {
  complain_of_first_element();
  complain_of_length(first_column_ + j);
}

/// R has the lengths of the columns, which may be beyond what T can hold.
template <class T>
void TallProblem<T>::require_representable(const Gram& b) const {
  for (std::int64_t j = 0; j < n(); ++j) {
    const double length = std::sqrt(b(j, j).hi) / scale_[static_cast<std::size_t>(j)];
    if (!(length <= static_cast<double>(std::numeric_limits<T>::max())))
      complain_of_length(first_column_ + j);
  }
}

template <class T>
auto TallProblem<T>::unit_gram(const Gram& b) -> Gram {
  std::vector<double> powers;
  for (std::int64_t j = 0; j < n(); ++j)  // 2^1024 is no double, nor a scale whose inverse that is
    powers.push_back(
        std::clamp(unit_scale(b(j, j).hi), 0x1p-1022 / scale(j) / 2, 0x1p1023 / scale(j)));
  Gram unit(n());
  for (std::int64_t j = 0; j < n(); ++j) {
    for (std::int64_t i = 0; i < n(); ++i)
      unit(i, j) = scaled(scaled(b(i, j), powers[static_cast<std::size_t>(i)]),
                          powers[static_cast<std::size_t>(j)]);
    scale(j) *= powers[static_cast<std::size_t>(j)];
  }
  return unit;
}

// ---- solves

/// R with unit columns in place of those that are zeros.
template <class T>
auto TallProblem<T>::solvable(const Gram& r) const -> Gram {
  Gram factor = r;
  for (std::int64_t j = 0; j < n(); ++j) {
    if (!is_zero(j)) continue;
    for (std::int64_t i = 0; i < j; ++i) factor(i, j) = DoubleDouble();
    for (std::int64_t k = j; k < n(); ++k) factor(j, k) = DoubleDouble(j == k ? 1.0 : 0.0);
  }
  return factor;
}

/// V·diag(d) = Q·R, so what V was before all passes is Q times R·diag(d)⁻¹·(R of those before).
template <class T>
void TallProblem<T>::accumulate_factor(const Gram& r, const std::vector<double>& scales) {
  Gram unscaled(n());
  for (std::int64_t j = 0; j < n(); ++j) {
    const double power = 1 / scales[static_cast<std::size_t>(j)];
    for (std::int64_t i = 0; i <= j; ++i) unscaled(i, j) = scaled(r(i, j), power);
  }
  if (first_) {
    note_first_underflows(r, unscaled, scales);
  } else {
    note_underflows(unscaled);
  }
  r_ = first_ ? std::move(unscaled) : upper_product(unscaled, r_);
  first_ = false;
  of_r_.reset();
}

/// V ← V·diag(d)·R⁻¹. `sum`: whether its Gram matrix is wanted, and wide.
template <class T>
template <class F>
auto TallProblem<T>::solve_in(const Gram& factor, bool sum, bool wide_sum, bool last) -> Gram {
  const SquareMatrix<F> r = rounded_to<F>(factor);
  if (!sum) {
    runner_.solve(r, scale_, last);
    return {};
  }
  return wide_sum ? widened(runner_.template solve_gram<Wide>(r, scale_, last))
                  : widened(runner_.template solve_gram<T>(r, scale_, last));
}

template <class T>
auto TallProblem<T>::look_behind(const Gram& r) -> Gram {
  std::vector<double> scales = scale_;
  for (std::int64_t j = 0; j < n(); ++j) {
    if (is_zero(j)) scales[static_cast<std::size_t>(j)] = 0;
  }
  return widened(runner_.template apply_gram<Wide>(rounded_to<Wide>(solvable(r)), scales));
}

template <class T>
void TallProblem<T>::restart() {
  r_ = Gram::identity(n_);
  underflows_ = SquareMatrix<double>(n_);
  first_ = true;
  of_r_.reset();
  wide_factor_.reset();
  std::fill(scale_.begin(), scale_.end(), 1.0);
}

template <class T>
void TallProblem<T>::set_zeros(const std::vector<std::int64_t>& columns) {
  std::fill(zero_.begin(), zero_.end(), false);
  for (const std::int64_t j : columns) mark_zero(j);
}

/// sum: the Gram matrix of what the solve made; empty where it is not known, but that it is
/// orthonormal.
template <class T>
void TallProblem<T>::note_error(const Gram& factor, const Gram& before,
                                const std::vector<double>& scales, bool wide, const Gram& sum,
                                const KnownOfSolve& known) {
  SolveStep step{.r = factor,
                 .before = before,
                 .after = r_,
                 .scales = scales,
                 .zero = zero_,
                 .lengths = std::vector<double>(static_cast<std::size_t>(n()), 1.01),
                 .norm = 1.01,
                 .wide = wide,
                 .inverse = known.inverse};
  if (sum.n > 0) {
    double row_most = 0;
    for (std::int64_t j = 0; j < n(); ++j) {
      step.lengths[static_cast<std::size_t>(j)] = 1.01 * std::sqrt(std::max(sum(j, j).hi, 0.0));
      double row = 0;
      for (std::int64_t i = 0; i < n(); ++i) row += std::abs(sum(i, j).hi);
      row_most = std::max(row_most, row);
    }
    step.norm = 1.01 * std::sqrt(row_most);
  }
  if (known.dropped != nullptr) {
    for (const std::int64_t j : *known.dropped) step.lengths[static_cast<std::size_t>(j)] = 0;
  }
  error_.solved(step);
}

template <class T>
auto TallProblem<T>::solve(const Gram& r, bool wide, bool sum, bool wide_sum, bool last,
                           const KnownOfSolve* known) -> Gram {
  Gram before;
  if (known != nullptr) before = r_;
  std::vector<double> scales = scale_;
  for (std::int64_t j = 0; j < n(); ++j) {
    if (is_zero(j)) scales[static_cast<std::size_t>(j)] = 1;
    if (is_zero(j)) scale(j) = 0;
  }
  bool accumulated = false;
  const auto meanwhile = [&, work = std::exchange(meanwhile_, {})] {
    accumulated = true;
    accumulate_factor(r, scales);
    if (last) (void)of_r();
    if (work) work();
  };
  const Gram factor = solvable(r);
  runner_.during_next_pass(meanwhile);
  Gram b =
      wide ? solve_in<Wide>(factor, sum, wide_sum, last) : solve_in<T>(factor, sum, wide_sum, last);
  runner_.during_next_pass({});
  if (!accumulated) meanwhile();  // the solve was noted
  if (known != nullptr)
    note_error(factor, before, scales, wide, known->behind != nullptr ? *known->behind : b, *known);
  std::fill(scale_.begin(), scale_.end(), 1.0);
  return b;
}

template <class T>
void TallProblem<T>::note_step(QrStep step, const Gram& b) {
  if (b.n > 0) step.orthogonality = distance_from_identity(b, zero_columns());
  info_.steps.push_back(std::move(step));
}

template <class T>
void TallProblem<T>::tell_orthogonality(const Gram& b) {
  info_.measured = b.n > 0;
  info_.orthogonality = info_.measured ? distance_from_identity(b, zero_columns())
                                       : std::numeric_limits<double>::quiet_NaN();
  info_.ok = !info_.measured || info_.orthogonality <= promise();
}

template <class T>
std::vector<std::int64_t> TallProblem<T>::zero_columns() const {
  std::vector<std::int64_t> columns;
  for (std::int64_t j = 0; j < n(); ++j) {
    if (is_zero(j)) columns.push_back(j);
  }
  return columns;
}

/// Those, and what is zero in R: columns without a direction.
template <class T>
std::vector<std::int64_t> TallProblem<T>::columns_of_nothing() const {
  std::vector<std::int64_t> columns;
  for (std::int64_t j = 0; j < n(); ++j) {
    bool nothing = true;
    for (std::int64_t i = 0; i <= j; ++i) nothing = nothing && r_(i, j).hi == 0;
    if (is_zero(j) || nothing) columns.push_back(j);
  }
  return columns;
}

template class TallProblem<double>;
template class TallProblem<float>;

}  // namespace strata
