// Bounds of V − Q·R from the triangles of each solve.
//
// Method: a solve in twice the digits rounds what it stores: X = X° + δ, |δ| <= u·|X|, and what δ
// means for V is δ·(R·P), P the product before. A solve in the digits of V subtracts column by
// column by fused multiply-adds. Each rounds a partial sum, whose length is at most ‖X‖₂ times that
// of what is left of the column of R. Eights of columns (eight_solve.hpp) correct themselves by as
// many more within them. These errors are beside X_k, so they go through P. F is E·(R·P)⁻¹, which a
// wide solve has as u·X, another as its E times the inverse; in one direction, that of the smallest
// singular value, roundings of one column count and not those of all.

#include "qr/backward_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace strata {
namespace {

/// Independent roundings add up to at most this times the root of the sum of their squares; where
/// all with one sign add up to less, that is the bound.
constexpr double kDeviations = 8;

/// Roundings in column i of a solve in the digits of V: of its sum, of the division, and twice of
/// an eight.
double roundings_of_column(std::int64_t i) {
  const auto eight = static_cast<double>(std::min<std::int64_t>(i + 1, 8));
  return static_cast<double>(i) + 2 + 2 * eight * std::sqrt(eight);
}

}  // namespace

double combined_residuals(std::int64_t n) {
  const double root = std::sqrt(static_cast<double>(n));
  return std::max(1.0, std::min(root, kDeviations / root));
}

BackwardError::BackwardError(std::int64_t n, double unit, double wide_unit, double least,
                             double subnormal)
    : n_(n),
      unit_(unit),
      wide_unit_(wide_unit),
      least_(least),
      subnormal_(subnormal),
      sum_(static_cast<std::size_t>(n)),
      square_(sum_),
      other_(sum_) {}

void BackwardError::begin(const std::vector<double>& scales) {
  if (frame_.empty()) frame_ = scales;
}

void BackwardError::add_roundings(std::int64_t j, double count, double size) {
  at(sum_, j) += count * size;
  at(square_, j) += count * size * size;
}

void BackwardError::solved(const SolveStep& step) {
  begin(step.scales);
  const auto columns = static_cast<double>(n_);
  constexpr double kMost = kDeviations * kDeviations;
  double own = 0;  // the most roundings of a column, squared
  double shortest = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < n_; ++i) {
    if (step.zero[static_cast<std::size_t>(i)]) continue;
    double square = 0;
    for (std::int64_t k = 0; k <= i; ++k) square += step.r(k, i).hi * step.r(k, i).hi;
    const double d = step.scales[static_cast<std::size_t>(i)];
    const double x = step.lengths[static_cast<std::size_t>(i)];
    if (x > 0) shortest = std::min(shortest, x);
    const double count = roundings_of_column(i);
    const double size = step.norm * std::sqrt(square);
    own = std::max(own, std::min(count * count, kMost * count));
    for (std::int64_t j = i; j < n_; ++j) {
      const double frame = frame_[static_cast<std::size_t>(j)];
      const double through = std::abs(step.before(i, j).hi) * frame / d;
      at(other_, j) += columns * wide_unit_ * size * through;
      if (step.wide) {
        add_roundings(j, 1, x * std::abs(step.after(i, j).hi) * frame);
      } else {
        add_roundings(j, count, size * through);
      }
    }
  }
  // Columns of F before are beside those of X, which R has the lengths of.
  double through_inverse = std::sqrt(columns) * (spread_ + columns * wide_unit_ * step.norm);
  if (!step.wide) through_inverse += std::sqrt(own) * unit_ * step.norm;
  spread_ = through_inverse * step.inverse / shortest + (step.wide ? unit_ : 0);
}

void BackwardError::dropped(std::int64_t j, double distance,
                            const SquareMatrix<DoubleDouble>& before,
                            const std::vector<double>& scales) {
  begin(scales);
  for (std::int64_t k = j; k < n_; ++k)
    at(other_, k) += distance / scales[static_cast<std::size_t>(j)] * std::abs(before(j, k).hi) *
                     frame_[static_cast<std::size_t>(k)];
}

double BackwardError::residual(const SquareMatrix<DoubleDouble>& r,
                               const std::vector<double>& lengths) const {
  double worst = 0;
  for (std::int64_t j = 0; j < n_; ++j) {
    const double frame = frame_.empty() ? 1 : frame_[static_cast<std::size_t>(j)];
    double square = 0;
    double sum = 0;
    for (std::int64_t i = 0; i <= j; ++i) {
      const double x = std::abs(r(i, j).hi) * frame;
      square += x * x;
      sum += x;
    }
    const auto at = static_cast<std::size_t>(j);
    const double own = lengths.empty() ? std::sqrt(square) : lengths[at] * frame;
    if (!(own > 0)) continue;
    const double rounded = std::min(sum + sum_[at], kDeviations * std::sqrt(square + square_[at]));
    // Elements of R below the normal numbers are multiples of the least one, for the caller.
    const double below = own < least_ * frame ? static_cast<double>(j + 1) * subnormal_ * frame : 0;
    worst = std::max(worst, (unit_ * rounded + other_[at] + below) / own);
  }
  return 1.01 * worst + beside_;
}

}  // namespace strata
