// Matrices of many columns, block by block.
//
// Method: block Gram–Schmidt. A block of columns loses what lies in each of the blocks before it in
// turn, and is orthonormalized by the automatic method. Both are repeated as often as what is left
// of LᵀX says, which with columns of a condition that the automatic method leaves is twice (Barlow,
// Smoktunowicz, "Reorthogonalized block classical Gram–Schmidt", 2013; Carson, Lund, Rozložník,
// Thomas, "Block Gram–Schmidt algorithms and their stability properties", 2022). A column that is
// no farther from those before it than the rounding of their blocks depends on them, beside the
// length that it had. Lengths are known before anything is written, so that what is not finite
// leaves V as it was.

#include <algorithm>
#include <cmath>
#include <limits>

#include "qr/backward_error.hpp"
#include "qr/methods.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

constexpr std::int64_t kWidth = kColumnsOfBlock;
constexpr int kRoundsMax = 6;

template <class T>
class ColumnBlocks {
 public:
  using Gram = SquareMatrix<DoubleDouble>;

  ColumnBlocks(TallPlace<T>& v, const QrOptions& options)
      : v_(v), options_(options), r_(v.cols()), zero_(static_cast<std::size_t>(v.cols())) {
    options_.verify = true;
    options_.rank_tolerance = std::max(options.rank_tolerance, 0.5 * promise());
    info_.method = options.method;
    info_.measured = true;
  }

  Orthonormalized run() {
    for (std::int64_t k = 0; k < blocks(); ++k) append_lengths(k, before_);
    for (std::int64_t k = 0; k < blocks(); ++k) orthonormalize_block(k);
    info_.orthogonality = std::sqrt(square_);
    // Each of the fused multiply-adds by which a block is projected rounds what is left of a
    // column.
    const double roundings = static_cast<double>(kWidth * blocks() * rounds_);
    info_.residual = residual_ + 8 * std::sqrt(roundings) * Limits<T>::kUnit;
    info_.ok = ok_ && info_.orthogonality <= promise() &&
               info_.residual <= promise() + 2 * options_.rank_tolerance;
    for (std::int64_t j = 0; j < v_.cols(); ++j) {
      if (is_zero(j)) info_.dependent_columns.push_back(j);
    }
    info_.rank = v_.cols() - std::ssize(info_.dependent_columns);
    info_.numerical_rank =
        numerical_rank_of(r_, static_cast<double>(v_.cols()) * 2 * Limits<T>::kUnit);
    info_.condition = condition();
    return {std::move(info_), std::move(r_)};
  }

 private:
  [[nodiscard]] double promise() const {
    return Limits<T>::kPromise * std::sqrt(static_cast<double>(v_.cols()));
  }
  /// A bound of the condition of V: that of R, with the distance of V from Q·R and of Q from
  /// orthonormal columns.
  [[nodiscard]] double condition() const {
    const double of_r = condition_bound(r_, info_.dependent_columns);
    const double away = info_.residual * std::sqrt(static_cast<double>(v_.cols()));
    const double least = std::sqrt(std::max(1 - info_.orthogonality, 0.0)) - away * of_r;
    return least > 0 ? of_r * (std::sqrt(1 + info_.orthogonality) + away) / least
                     : std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] std::vector<double> lengths_of(std::int64_t k) const {
    const auto first = before_.begin() + k * kWidth;
    return {first, first + width(k)};
  }
  [[nodiscard]] std::int64_t blocks() const { return (v_.cols() + kWidth - 1) / kWidth; }
  [[nodiscard]] std::int64_t width(std::int64_t k) const {
    return std::min(kWidth, v_.cols() - k * kWidth);
  }
  [[nodiscard]] ColumnSpan columns(std::int64_t k) const { return {k * kWidth, width(k)}; }
  [[nodiscard]] std::unique_ptr<PassExecutor<T>> passes(std::int64_t k) const {
    return v_.passes(columns(k), options_, widest_passes<T>(v_.rows(), width(k), options_));
  }
  [[nodiscard]] bool is_zero(std::int64_t j) const { return zero_[static_cast<std::size_t>(j)]; }

  void add_report(RunReport report) { accumulate_with_trace(info_.report, std::move(report)); }

  void append_lengths(std::int64_t k, std::vector<double>& lengths) {
    TallProblem<T> problem(passes(k), options_, k * kWidth);
    const Gram b = problem.first_gram(false);
    for (std::int64_t j = 0; j < width(k); ++j)
      lengths.push_back(std::sqrt(std::max(b(j, j).hi, 0.0)) / problem.scale(j));
    const QrInfo info = problem.take_info();
    info_.rescaled = info_.rescaled || info.rescaled;
    info_.passes += info.passes;
    add_report(info.report);
  }

  void orthonormalize_block(std::int64_t k) {
    Gram r = Gram::identity(width(k));
    for (int round = 0; round < kRoundsMax; ++round) {
      const double left = project(k, r, round == 0);
      if (round > 0 && left <= left_max() * std::sqrt(static_cast<double>(k))) {
        const double of_sums = std::sqrt(static_cast<double>(k)) * rounding_of_inner_products();
        square_ += 2 * (left + of_sums) * (left + of_sums);
        break;
      }
      TallProblem<T> problem(passes(k), options_, k * kWidth);
      if (round == 0) problem.set_lengths(lengths_of(k));
      run_automatic(problem);
      const Gram step = problem.r();
      const QrInfo info = problem.take_info();
      note(info, k, round);
      r = upper_product(step, r);
      orthogonality_ = info.orthogonality;
      block_ok_ = info.ok;
      if (k == 0) break;
      if (round + 1 == kRoundsMax) ok_ = false;
    }
    ok_ = ok_ && block_ok_;
    square_ += orthogonality_ * orthogonality_;
    for (std::int64_t j = 0; j < width(k); ++j) {
      for (std::int64_t i = 0; i <= j; ++i) r_(k * kWidth + i, k * kWidth + j) = r(i, j);
    }
  }

  /// ‖LᵀX‖, of one L, that is not worth another round.
  [[nodiscard]] static double left_max() {
    return 0.25 * Limits<T>::kPromise * std::sqrt(static_cast<double>(kWidth));
  }

  /// Rounding in LᵀX, of one L: half a unit of each sum, in the mean, since partial sums are small.
  [[nodiscard]] static double rounding_of_inner_products() {
    return 0.5 * static_cast<double>(kWidth) * Limits<double>::kUnit;
  }

  /// Takes the blocks before out of block k, whose columns are X of V = X·r so far; returns how
  /// much there was: the root of the sum of squares of all LᵀX. Little is left where it is, except
  /// at `first`.
  double project(std::int64_t k, const Gram& r, bool first) {
    double square = 0;
    for (std::int64_t c = 0; c < k; ++c) {
      PassRunner<T> runner(v_.passes(columns(c), columns(k), options_), options_.run.progress);
      const std::vector<double> s = runner.inner_columns(width(c));
      double of_pair = 0;
      for (const double x : s) of_pair += x * x;
      square += of_pair;
      if (first || std::sqrt(of_pair) > left_max()) {
        runner.subtract_columns(s, width(c));
        add_coefficients(c, k, s, r);
      }
      info_.passes += runner.passes();
      add_report(runner.take_report());
    }
    return std::sqrt(square);
  }

  /// R(c, k) ← R(c, k) + s·r.
  void add_coefficients(std::int64_t c, std::int64_t k, const std::vector<double>& s,
                        const Gram& r) {
    for (std::int64_t j = 0; j < width(k); ++j) {
      for (std::int64_t i = 0; i < width(c); ++i) {
        DoubleDouble& sum = r_(c * kWidth + i, k * kWidth + j);
        for (std::int64_t l = 0; l <= j; ++l)
          sum = subtract_product(sum, DoubleDouble(-s[static_cast<std::size_t>(i + l * width(c))]),
                                 r(l, j));
      }
    }
  }

  void note(const QrInfo& info, std::int64_t k, int round) {
    double more = 0;  // columns that depend on others since this round
    for (const std::int64_t j : info.dependent_columns) {
      const auto column = static_cast<std::size_t>(k * kWidth + j);
      if (!zero_[column]) more += 1;
      zero_[column] = true;
    }
    // A later round adds its errors of each column of X, combined, to those of the first:
    // roundings, and those of columns that are dropped, which may have one sign.
    const double together = std::hypot(combined_residuals(width(k)), std::sqrt(more));
    of_block_ = round == 0 ? info.residual : of_block_ + together * info.residual;
    residual_ = std::max(residual_, of_block_);
    rounds_ = std::max(rounds_, round + 1);
    info_.passes += info.passes;
    info_.failed_cholesky += info.failed_cholesky;
    info_.shifts += info.shifts;
    add_report(info.report);
  }

  TallPlace<T>& v_;
  QrOptions options_;
  Gram r_;
  std::vector<bool> zero_;
  std::vector<double> before_;  ///< lengths of the columns of V
  double square_ = 0;           ///< of the orthogonality
  double residual_ = 0;         ///< what the rounds of the worst block add to its columns, …
  double of_block_ = 0;         ///< … and those of the block in hand
  int rounds_ = 1;
  double orthogonality_ = 0;  ///< of the block in hand, …
  bool block_ok_ = false;     ///< … and whether that is as promised
  bool ok_ = true;
  QrInfo info_;
};

}  // namespace

template <class T>
Orthonormalized run_column_blocks(TallPlace<T>& v, const QrOptions& options) {
  return ColumnBlocks<T>(v, options).run();
}
template Orthonormalized run_column_blocks(TallPlace<double>&, const QrOptions&);
template Orthonormalized run_column_blocks(TallPlace<float>&, const QrOptions&);

}  // namespace strata
