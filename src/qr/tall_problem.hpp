#pragma once
// TallProblem: a tall matrix on its way to orthonormal columns, and what every method does with it.
//
// Contract: V is multiplied from the right, pass by pass, by inverses of triangles, whose product R
// is held in double-double. Columns may be scaled by powers of two on the way, and are zeros from
// the next solve on where they are marked so. Each method is a function of its own (methods.hpp).
// Throws as qr() does.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "qr/backward_error.hpp"
#include "qr/pass_runner.hpp"
#include "qr/planned_passes.hpp"
#include "strata/qr.hpp"

namespace strata {

/// What the arithmetic of T and of its wide sums can tell apart.
template <class T>
struct Limits;
template <>
struct Limits<double> {
  using Wide = DoubleDouble;
  static constexpr double kUnit = 0x1p-53;
  static constexpr double kWideEpsilon = 0x1p-104;  ///< 2^-52 squared
  static constexpr double kOneSolve = 9.5e7;        ///< κ for which one wide solve is enough
  static constexpr double kUnshifted = 9e14;        ///< κ that a wide sum bears
  /// Columns at this distance from the span of those before them, beside their length, seem to
  /// depend on them exactly, which exact arithmetic confirms.
  static constexpr double kDependent = 1e-25;
  static constexpr double kPromise = 1e-14;       ///< ‖I − QᵀQ‖ / √n
  static constexpr double kWideUnit = 0x1p-104;   ///< of wide sums and solves
  static constexpr double kLengthMin = 0x1p-960;  ///< R of shorter columns has fewer digits
  /// Between these lie the squared lengths of columns of which no product over- or underflows.
  static constexpr double kSquareMin = 0x1p-600;
  static constexpr double kSquareMax = 0x1p1000;
};
template <>
struct Limits<float> {
  using Wide = double;
  static constexpr double kUnit = 0x1p-24;
  static constexpr double kWideEpsilon = 0x1p-52;
  static constexpr double kOneSolve = 2.3e4;
  static constexpr double kUnshifted = 9e6;
  static constexpr double kDependent = 1e-12;
  static constexpr double kPromise = 1e-5;
  static constexpr double kWideUnit = 0x1p-53;
  static constexpr double kLengthMin = 0x1p-120;
  static constexpr double kSquareMin = 0x1p-240;  // of products in float, which some methods form
  static constexpr double kSquareMax = 0x1p120;
};

/// Columns up to this condition, by a wide Gram matrix, are solved for in T.
inline constexpr double kNearlyOrthonormal = 8;

/// How far squares of singular values of n unit columns may be from those of a wide Gram matrix and
/// its factor: 93 units of the digits that sums have, and what the factorization rounds.
template <class T>
[[nodiscard]] double rounding_of_wide_gram(std::int64_t n) {
  const auto columns = static_cast<double>(n);
  return columns * (24 + 8 * std::sqrt(columns)) * Limits<T>::kWideUnit;
}

/// Whether what a solve in T rounds would hide the condition of n columns: that of the Gram matrix
/// is good to a few percent as long as its σ² are right to a tenth.
template <class T>
[[nodiscard]] bool hides_condition(std::int64_t n, double condition) {
  return rounding_of_wide_gram<T>(n) * condition * condition > 0.1;
}

/// The largest condition of n columns that begin with a sketch: what its solve in doubles rounds
/// (8·√(n + 47) units in each column, BackwardError) has to leave the smallest singular value.
[[nodiscard]] inline double sketched_condition_max(std::int64_t n) {
  const auto columns = static_cast<double>(n);
  return 0.2 / (columns * 8 * std::sqrt(columns + 47) * Limits<double>::kUnit);
}

/// The power of two next to 1/√square.
[[nodiscard]] double unit_scale(double square);

template <class W>
[[nodiscard]] SquareMatrix<DoubleDouble> widened(const SquareMatrix<W>& a) {
  SquareMatrix<DoubleDouble> wide(a.n);
  std::transform(a.values.begin(), a.values.end(), wide.values.begin(),
                 [](const W& x) { return strata::widened(x); });
  return wide;
}
template <class F>
[[nodiscard]] SquareMatrix<F> rounded_to(const SquareMatrix<DoubleDouble>& a) {
  SquareMatrix<F> narrow(a.n);
  std::transform(a.values.begin(), a.values.end(), narrow.values.begin(),
                 [](const DoubleDouble& x) { return narrowed<F>(x); });
  return narrow;
}

/// What a method is to make of V.
enum class Wanted : std::uint8_t {
  q,           ///< V ← Q, and R
  q_apart,     ///< the same, Q being stored once, elsewhere; V is read by every pass
  implicit_q,  ///< R and the triangles that make Q of V, which stays as it is
  r,           ///< R alone: the same, but Q is not asked for
};

template <class T>
class TallProblem {
 public:
  using Wide = typename Limits<T>::Wide;
  using Gram = SquareMatrix<DoubleDouble>;

  /// first_column: the number of the first column in messages.
  TallProblem(MatrixView<T> v, const QrOptions& options, std::int64_t first_column = 0)
      : TallProblem({.view = v}, v, options, first_column) {}
  /// V is read until Q has been written for the first time.
  TallProblem(const TallInput<T>& v, MatrixView<T> q, const QrOptions& options,
              std::int64_t first_column = 0)
      : TallProblem(std::make_unique<PlannedPasses<T>>(TallColumns<T>{.from = v, .to = q}, options),
                    options, first_column) {}
  /// V is where the executor has it.
  TallProblem(std::unique_ptr<PassExecutor<T>> executor, const QrOptions& options,
              std::int64_t first_column = 0, Wanted wanted = Wanted::q);

  [[nodiscard]] std::int64_t n() const { return n_; }
  [[nodiscard]] std::int64_t m() const { return m_; }
  [[nodiscard]] const QrOptions& options() const { return options_; }
  [[nodiscard]] Wanted wanted() const { return wanted_; }
  [[nodiscard]] bool stores_q() const { return wanted_ == Wanted::q || wanted_ == Wanted::q_apart; }
  [[nodiscard]] QrInfo& info() { return info_; }
  [[nodiscard]] PassRunner<T>& runner() { return runner_; }

  /// Columns that are zeros, or are from the next solve on; by number.
  [[nodiscard]] const std::vector<bool>& zeros() const { return zero_; }
  [[nodiscard]] bool is_zero(std::int64_t j) const { return zero_[static_cast<std::size_t>(j)]; }
  void mark_zero(std::int64_t j) {
    zero_[static_cast<std::size_t>(j)] = true;
    of_r_.reset();
  }
  /// These columns and no others.
  void set_zeros(const std::vector<std::int64_t>& columns);
  /// Lengths beside which columns are dropped and errors are told, where they are not those of V.
  void set_lengths(std::vector<double> lengths) { lengths_ = std::move(lengths); }
  [[nodiscard]] const std::vector<double>& lengths() const { return lengths_; }
  [[nodiscard]] std::vector<std::int64_t> zero_columns() const;

  /// One for each column, by which the next pass multiplies it.
  [[nodiscard]] const std::vector<double>& scales() const { return scale_; }
  [[nodiscard]] double& scale(std::int64_t j) { return scale_[static_cast<std::size_t>(j)]; }

  /// Gram matrix of V as it is, times the scales, which are powers of two from here on where
  /// squares of columns that are not zeros could overflow or underflow.
  [[nodiscard]] Gram first_gram(bool wide);
  /// The same of a sketch of V by CountSketch, in double-double; lengths are those of V but for a
  /// quarter or so.
  [[nodiscard]] Gram first_sketch_gram();
  /// Gram matrix of V as it is, times the scales.
  [[nodiscard]] Gram gram(bool wide);
  /// Throws where an element is not finite.
  void mark_columns_of_zeros() { (void)find_zeros(); }
  /// Scales by the largest elements; a column of zeros is found here. Throws where an element or a
  /// length is not finite.
  void rescale();
  /// Multiplies V by powers of two, by which columns that are shorter than `least` and not zeros
  /// have lengths near 1; returns these, one for each column. V is written if one is not 1. Columns
  /// that are marked as zeros are not made so.
  [[nodiscard]] std::vector<double> lengthen_short_columns(const std::vector<double>& lengths,
                                                           double least);
  /// B with its columns at lengths near 1; the scales take the powers of two.
  [[nodiscard]] Gram unit_gram(const Gram& b);
  /// What a wide solve with R would make of V, which stays as it is: its Gram matrix, wide. No pass
  /// has written V, and no solve was noted.
  [[nodiscard]] Gram look_behind(const Gram& r);
  /// What bounds of errors take of a solve: the norm of R⁻¹, R with unit columns; and where it is
  /// known before, the Gram matrix of what the solve makes, and what is done with it.
  struct KnownOfSolve {
    double inverse = 0;
    const Gram* behind = nullptr;
    const std::vector<std::int64_t>* dropped = nullptr;  ///< columns that are zeros behind it
  };
  /// V ← V·diag(scales)·R⁻¹, and its Gram matrix where `sum`; R and the scales go into the product,
  /// while the pass runs where it can be so.
  Gram solve(const Gram& r, bool wide, bool sum, bool wide_sum, bool last,
             const KnownOfSolve* known = nullptr);
  /// R as it was before all solves, and scales of 1: V is as it was.
  void restart();
  /// What else the host may do during the next solve, of which no decision depends.
  void during_next_solve(std::function<void()> work) { meanwhile_ = std::move(work); }
  /// R of the problem ← r·R, where V was multiplied by its inverse by other means.
  void accumulate_factor(const Gram& r) { accumulate_factor(r, scale_); }
  /// The same for any upper triangular matrix, without scales.
  void multiply_factor(const Gram& step) {
    note_underflows(step);
    r_ = upper_product(step, r_);
    first_ = false;
    of_r_.reset();
  }
  /// Column j of V, times its scale, is replaced by a combination of others, `distance` away.
  void note_dropped(std::int64_t j, double distance) { error_.dropped(j, distance, r_, scale_); }
  /// How much of each pivot of R may be rounding, beside the length of its column.
  void set_rounding_of_pivots(double relative) { rounding_of_pivots_ = relative; }
  /// The triangle of a wide Gram matrix of V, unit columns: the condition is also that of it.
  void set_wide_factor(const Gram& r) { wide_factor_ = r; }

  /// Tells of a step behind which the Gram matrix is b; b is empty where it was not formed.
  void note_step(QrStep step, const Gram& b);
  /// Tells the orthogonality of Q, whose Gram matrix is b; b is empty where it was not formed, and
  /// nothing speaks against ok then.
  void tell_orthogonality(const Gram& b);
  /// By the solves that were told what is known of them, or as it was measured.
  void tell_residual() { tell_residual(error_.residual(r_, lengths_), error_.spread()); }
  void tell_residual(double residual);
  [[nodiscard]] double spread() const { return spread_; }
  /// ‖R⁻¹‖₂ of the R so far with unit columns, from above.
  [[nodiscard]] double inverse_of_triangle() { return of_r().inverse; }
  void tell_residual(double residual, double spread) {
    info_.residual = residual;
    spread_ = spread;
  }

  /// Throws Error{input} with the first element that is not finite; or for column j, whose length
  /// is not.
  [[noreturn]] void complain_of_elements();
  [[noreturn]] void complain_of_elements_or_length(std::int64_t j);

  /// Rows of dependent columns are zeros.
  [[nodiscard]] const Gram& r() const { return r_; }
  /// What is known when all passes are done.
  [[nodiscard]] QrInfo take_info();
  /// The bound of the promise, ‖I − QᵀQ‖.
  [[nodiscard]] double promise() const {
    return Limits<T>::kPromise * std::sqrt(static_cast<double>(n_));
  }

  /// The same of ‖v_j − Q·r_j‖/‖v_j‖, where columns may be dropped at a distance.
  [[nodiscard]] double residual_promise() const { return promise() + 2 * options_.rank_tolerance; }

  /// Columns at this distance from those before them, beside their length, depend on them where the
  /// rank tolerance is not 0: what a wide Gram matrix tells of distances at least.
  [[nodiscard]] double near() const {
    return std::max(options_.rank_tolerance,
                    std::sqrt(64 * static_cast<double>(n_) * Limits<T>::kWideEpsilon));
  }

  /// What rounding does to sums in doubles of orthonormal columns, in ‖I − QᵀQ‖: a few units on the
  /// diagonal, where they are 1, and less than one elsewhere, where partial sums are small.
  [[nodiscard]] double rounding_of_sums() const {
    const auto columns = static_cast<double>(n_);
    return (4 * std::sqrt(columns) + columns) * Limits<double>::kUnit;
  }

 private:
  template <class Sum>
  [[nodiscard]] Gram in_range(Sum&& sum);
  [[nodiscard]] bool is_in_range(const Gram& b) const;
  [[nodiscard]] std::vector<double> find_zeros();
  void scale_by(const std::vector<double>& largest);
  void scale_to_unit(std::int64_t j, double largest);
  void require_representable(const Gram& b) const;
  [[nodiscard]] Gram solvable(const Gram& r) const;
  template <class F>
  Gram solve_in(const Gram& factor, bool sum, bool wide_sum, bool last);
  void accumulate_factor(const Gram& r, const std::vector<double>& scales);
  void note_error(const Gram& factor, const Gram& before, const std::vector<double>& scales,
                  bool wide, const Gram& sum, const KnownOfSolve& known);
  [[nodiscard]] static bool is_short(const Gram& r, std::int64_t j);
  void note_first_underflows(const Gram& r, const Gram& unscaled,
                             const std::vector<double>& scales);
  void note_underflows(const Gram& step);
  [[nodiscard]] double lost_at_the_end_of_the_range() const;
  [[nodiscard]] double condition(double lost);
  [[nodiscard]] double condition_by_wide_factor() const;
  [[nodiscard]] std::vector<std::int64_t> columns_of_nothing() const;
  /// What QrInfo has of R, once; until R or what is zero changes.
  struct OfR {
    std::int64_t numerical_rank = 0;
    double condition = 0;
    double inverse = 0;         ///< ‖R⁻¹‖₂ of unit columns, from above
    double of_wide_factor = 0;  ///< the condition of that, with what its rounding may have done
  };
  const OfR& of_r();
  void complain_of_first_element();

  std::int64_t m_;
  std::int64_t n_;
  QrOptions options_;
  Wanted wanted_;
  KeepMatrix keep_;
  PassRunner<T> runner_;
  std::vector<double> scale_;
  std::vector<bool> zero_;
  Gram r_;
  /// What underflows in R may have changed its elements by, in units of the least double.
  SquareMatrix<double> underflows_;
  std::int64_t first_column_ = 0;
  std::optional<OfR> of_r_;
  bool first_ = true;  ///< no pass has written V yet
  std::vector<double> lengths_;
  double rounding_of_pivots_ = 0;
  BackwardError error_;
  std::optional<Gram> wide_factor_;
  double spread_ = 0;  ///< of BackwardError, in the end
  std::function<void()> meanwhile_;
  QrInfo info_;
};

extern template class TallProblem<double>;
extern template class TallProblem<float>;

}  // namespace strata
