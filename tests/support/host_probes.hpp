#pragma once
// The vectors of Lanczos in host memory, and operators on blocks of columns that stand for
// G = L̃⁻¹·Σ·L̃⁻ᵀ: what DeviceProbes is compared with, and what feeds the estimate in tests.
//
// Contract: as ProbeVectors. Sums are in long double.

#include <cmath>
#include <utility>
#include <vector>

#include "cholesky/log_determinant.hpp"
#include "dense/dense_block.hpp"

namespace strata::test {

/// What stands for G.
struct WhitenedOperators {
  BlockOperator product;  ///< Y ← Σ·V
  BlockSolver forward;    ///< B ← L̃⁻¹·B
  BlockSolver backward;   ///< B ← L̃⁻ᵀ·B
};

class HostProbes final : public ProbeVectors {
 public:
  HostProbes(std::int64_t n, WhitenedOperators operators, const ProbeOptions& options)
      : n_(n), operators_(std::move(operators)), options_(options), work_(n, options.probes) {}

  [[nodiscard]] std::int64_t n() const override { return n_; }
  [[nodiscard]] ProbeSums step(std::span<const double> norms) override {
    basis_.push_back(newest(norms));
    work_ = basis_.back();
    operators_.backward(work_.view());
    DenseBlock product(n_, options_.probes);
    operators_.product(work_.view(), product.view());
    work_ = product;
    operators_.forward(work_.view());
    for (std::int64_t j = 0; j < options_.probes; ++j) {
      for (std::int64_t i = 0; i < n_; ++i) work_.column(j)[i] -= basis_.back().column(j)[i];
    }
    ProbeSums sums;
    for (std::int64_t j = 0; basis_.size() == 1 && j + 1 < options_.probes; ++j) {
      sums.above.push_back(dot(basis_[0].column(j + 1), work_.column(j)));
      sums.below.push_back(dot(basis_[0].column(j), work_.column(j + 1)));
    }
    for (std::int64_t j = 0; j < options_.probes; ++j) {
      sums.shares.push_back(orthogonalize(work_.column(j), j));
      sums.squares.push_back(dot(work_.column(j), work_.column(j)));
    }
    return sums;
  }

 private:
  [[nodiscard]] DenseBlock newest(std::span<const double> norms) const {
    DenseBlock v(n_, options_.probes);
    const double size = 1 / std::sqrt(static_cast<double>(n_));
    for (std::int64_t j = 0; j < options_.probes; ++j) {
      for (std::int64_t i = 0; i < n_; ++i) {
        v.column(j)[i] = norms.empty() ? size * sign_of(options_.seed, n_, i, j)
                                       : work_.column(j)[i] / norms[static_cast<std::size_t>(j)];
      }
    }
    return v;
  }
  [[nodiscard]] double dot(const double* x, const double* y) const {
    long double sum = 0;
    for (std::int64_t i = 0; i < n_; ++i) sum += static_cast<long double>(x[i]) * y[i];
    return static_cast<double>(sum);
  }
  [[nodiscard]] double orthogonalize(double* w, std::int64_t j) const {
    double diagonal = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t b = basis_.size(); b-- > 0;) {
        const double share = dot(basis_[b].column(j), w);
        add_scaled(n_, -share, basis_[b].column(j), w);
        if (b + 1 == basis_.size()) diagonal += share;
      }
    }
    return diagonal;
  }

  std::int64_t n_;
  WhitenedOperators operators_;
  ProbeOptions options_;
  DenseBlock work_;
  std::vector<DenseBlock> basis_;
};

/// The estimate for these operators.
[[nodiscard]] inline LogDeterminantCorrection estimate_log_determinant(
    std::int64_t n, const WhitenedOperators& operators, const ProbeOptions& options = {}) {
  HostProbes probes(std::max<std::int64_t>(n, 0), operators, options);
  return strata::estimate_log_determinant(probes, options);
}

}  // namespace strata::test
