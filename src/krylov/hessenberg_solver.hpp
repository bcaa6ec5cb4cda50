#pragma once
// The projected problem of GMRES: y that minimizes ‖β·e₁ − H·y‖₂, H growing by columns.
//
// Contract: H is (k + 1) × k upper Hessenberg; each new column is rotated by the rotations of those
// before it (Saad, Schultz 1986), so the residual's length is known after each.

#include <cmath>
#include <cstdint>
#include <vector>

namespace strata {

class HessenbergSolver {
 public:
  explicit HessenbergSolver(double beta) : rhs_{beta} {}

  /// Column k of H, k + 2 elements.
  void add(std::vector<double> column) {
    const std::size_t k = columns_.size();
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

  /// With all columns; one whose pivot is zero gets 0.
  [[nodiscard]] std::vector<double> solve() const {
    std::vector<double> y(columns_.size());
    for (std::size_t i = columns_.size(); i-- > 0;) {
      double sum = rhs_[i];
      for (std::size_t j = i + 1; j < columns_.size(); ++j) sum -= columns_[j][i] * y[j];
      y[i] = columns_[i][i] != 0 ? sum / columns_[i][i] : 0.0;
    }
    return y;
  }

 private:
  std::vector<std::vector<double>> columns_;  ///< of R
  std::vector<double> cosine_, sine_;
  std::vector<double> rhs_;
};

}  // namespace strata
