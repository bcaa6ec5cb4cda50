#pragma once
// A covariance matrix in host memory with a Cholesky factor that is accurate to some digits only,
// for tests of what mends and certifies such factors.
//
// Contract: the factor is computed in long double and then perturbed as the test says, so it is
// always lower triangular with a positive diagonal. Operators are plain loops in double, a column
// at a time, so a column of a block has the bits that it has alone.

#include <cmath>

#include "dense/dense_block.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {

using Extended = Matrix<long double>;

/// Lower triangular L with A = L·Lᵀ, by columns.
template <class A>
Extended extended_cholesky(const A& a) {
  Extended l(a.rows, a.rows);
  for (std::int64_t j = 0; j < a.rows; ++j) {
    for (std::int64_t i = j; i < a.rows; ++i) {
      long double sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= l(i, k) * l(j, k);
      l(i, j) = i == j ? std::sqrt(sum) : sum / l(j, j);
    }
  }
  return l;
}

/// B ← L⁻¹·B.
inline void extended_solve_lower(const Extended& l, Extended& b) {
  for (std::int64_t j = 0; j < b.cols; ++j) {
    for (std::int64_t i = 0; i < b.rows; ++i) {
      for (std::int64_t k = 0; k < i; ++k) b(i, j) -= l(i, k) * b(k, j);
      b(i, j) /= l(i, i);
    }
  }
}

/// X with L·Lᵀ·X = B.
template <class B>
Extended extended_solve(const Extended& l, const B& b) {
  Extended x(b.rows, b.cols);
  for (std::int64_t j = 0; j < b.cols; ++j) {
    for (std::int64_t i = 0; i < b.rows; ++i) x(i, j) = b(i, j);
  }
  extended_solve_lower(l, x);
  for (std::int64_t j = 0; j < b.cols; ++j) {
    for (std::int64_t i = b.rows; i-- > 0;) {
      for (std::int64_t k = i + 1; k < b.rows; ++k) x(i, j) -= l(k, i) * x(k, j);
      x(i, j) /= l(i, i);
    }
  }
  return x;
}

template <class A>
Extended extended(const A& a) {
  return make_matrix<long double>(
      a.rows, a.cols, [&](auto i, auto j) { return static_cast<long double>(a(i, j)); });
}

inline Matrix<double> rounded(const Extended& a) {
  return make_matrix<double>(a.rows, a.cols,
                             [&](auto i, auto j) { return static_cast<double>(a(i, j)); });
}

/// Uniform in [−1, 1).
inline double signed_uniform(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return 2 * random_uniform(seed, static_cast<std::uint64_t>(i * 4096 + j)) - 1;
}

/// exp(−h/range) of n points in the unit square, with a nugget.
inline Matrix<double> exponential_covariance(std::int64_t n, double range, double nugget,
                                             std::uint64_t seed) {
  return make_matrix<double>(n, n, [&](auto i, auto j) {
    const auto at = [&](auto p, int d) {
      return random_uniform(seed, static_cast<std::uint64_t>(2 * p + d));
    };
    const double h = std::hypot(at(i, 0) - at(j, 0), at(i, 1) - at(j, 1));
    return std::exp(-h / range) + (i == j ? nugget : 0.0);
  });
}

/// Σ with a factor near its own.
struct PerturbedFactor {
  Matrix<double> sigma;
  Matrix<double> l;

  [[nodiscard]] BlockOperator product() const {
    return [this](MatrixView<const double> in, MatrixView<double> out) {
      for (std::int64_t j = 0; j < in.cols; ++j) {
        for (std::int64_t i = 0; i < in.rows; ++i) {
          double sum = 0;
          for (std::int64_t k = 0; k < in.rows; ++k) sum += sigma(i, k) * in(k, j);
          out(i, j) = sum;
        }
      }
    };
  }
  [[nodiscard]] BlockSolver forward() const {
    return [this](MatrixView<double> b) {
      for (std::int64_t j = 0; j < b.cols; ++j) {
        for (std::int64_t i = 0; i < b.rows; ++i) {
          double sum = b(i, j);
          for (std::int64_t k = 0; k < i; ++k) sum -= l(i, k) * b(k, j);
          b(i, j) = sum / l(i, i);
        }
      }
    };
  }
  [[nodiscard]] BlockSolver backward() const {
    return [this](MatrixView<double> b) {
      for (std::int64_t j = 0; j < b.cols; ++j) {
        for (std::int64_t i = b.rows; i-- > 0;) {
          double sum = b(i, j);
          for (std::int64_t k = i + 1; k < b.rows; ++k) sum -= l(k, i) * b(k, j);
          b(i, j) = sum / l(i, i);
        }
      }
    };
  }
  [[nodiscard]] BlockSolver solve() const {
    return [forward = forward(), backward = backward()](MatrixView<double> b) {
      forward(b);
      backward(b);
    };
  }
};

/// Its factor with relative errors of up to `size` in every element.
inline PerturbedFactor with_noise(const Matrix<double>& sigma, double size, std::uint64_t seed) {
  const Extended l = extended_cholesky(sigma);
  return {sigma, make_matrix<double>(l.rows, l.cols, [&](auto i, auto j) {
            return l(i, j) * (1 + size * signed_uniform(seed, i, j));
          })};
}

}  // namespace strata::test
