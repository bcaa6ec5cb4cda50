#pragma once
// The projected problem of GMRES: y that minimizes ‖β·e₁ − H·y‖₂, H growing by columns.
//
// Contract: H is (k + 1) × k upper Hessenberg; each new column is rotated by the rotations of those
// before it (Saad, Schultz 1986), so the residual's length is known after each.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace strata {

class HessenbergSolver {
 public:
  explicit HessenbergSolver(double beta) : beta_(beta), rhs_{beta} {}

  /// Column k of H, k + 2 elements.
  void add(std::vector<double> column) {
    const std::size_t k = columns_.size();
    double square = 0;
    for (const double value : column) square += value * value;
    longest_ = std::max(longest_, std::sqrt(square));
    for (std::size_t i = 0; i < k; ++i) {
      const double above = column[i];
      column[i] = cosine_[i] * above + sine_[i] * column[i + 1];
      column[i + 1] = cosine_[i] * column[i + 1] - sine_[i] * above;
    }
    const double length = std::hypot(column[k], column[k + 1]);
    cosine_.push_back(length > 0 ? column[k] / length : 1.0);
    sine_.push_back(length > 0 ? column[k + 1] / length : 0.0);
    column[k] = length;
    rhs_.push_back(-sine_[k] * rhs_[k]);
    rhs_[k] *= cosine_[k];
    columns_.push_back(std::move(column));
  }

  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(columns_); }
  /// ‖β·e₁ − H·y‖₂ with all columns.
  [[nodiscard]] double residual() const { return std::abs(rhs_.back()); }

  /// The length of the longest column of H: at least this is the norm of A.
  [[nodiscard]] double longest_column() const noexcept { return longest_; }

  /// With as many columns as make sense: where A is singular on the space, or nearly, the last of
  /// them would be for rounding of A, whose norm is about `norm`, to add more than is left.
  [[nodiscard]] std::vector<double> solve(double norm) const {
    constexpr double kRounding = 1e-13;
    for (std::size_t k = columns_.size(); k > 0; --k) {
      std::vector<double> y = with_columns(k);
      double square = 0;
      for (const double value : y) square += value * value;
      if (kRounding * norm * std::sqrt(square) <= beta_) return y;
    }
    return {};
  }

 private:
  [[nodiscard]] std::vector<double> with_columns(std::size_t count) const {
    std::vector<double> y(count);
    for (std::size_t i = count; i-- > 0;) {
      double sum = rhs_[i];
      for (std::size_t j = i + 1; j < count; ++j) sum -= columns_[j][i] * y[j];
      y[i] = sum / columns_[i][i];
    }
    return y;
  }

  double beta_;
  double longest_ = 0;
  std::vector<std::vector<double>> columns_;  ///< of R
  std::vector<double> cosine_, sine_;
  std::vector<double> rhs_;
};

}  // namespace strata
