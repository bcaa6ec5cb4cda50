#pragma once
// The matrices of the benchmarks, element by element, on the host and on a GPU.
//
// Contract: symmetric positive definite, to the last bit symmetric. An element is a function of
// (matrix, n, i, j) alone, so that a factor can be compared with its matrix when the factor has
// taken the matrix's place. Indices count from 0. Host and GPU agree but for the last bits of exp
// and exp2.
//
// random:  uniform in [−1, 1) off the diagonal, n on it.
// graded:  A = D·R·D. D = diag(d_0 … d_{n−1}) falls geometrically from 1 to 1/√C, so that D² has
//          the condition number C. R is 1 on the diagonal and uniform in [−1, 1)/(4·√n) off it; its
//          eigenvalues fill 1 ± 1/(2·√3) as n grows (Wigner's semicircle). By Ostrowski's theorem
//          (Horn, Johnson, "Matrix Analysis", 4.5.9) the condition number of A is C up to a factor
//          of at most that of R, about 1.8. Cholesky's method commutes with such a scaling but for
//          rounding (Higham, "Accuracy and Stability of Numerical Algorithms", section 10.1):
//          grading tries the range of the numbers, `matern` tries an R that is itself
//          ill-conditioned.
// matern:  the covariance of n points, row by row of a jittered grid of the unit square: variance
//          1, range 0.1, smoothness 1/2, exp(−x), or 3/2, (1 + x)·exp(−x), with x the distance over
//          the range; and the nugget 1e-4 on the diagonal.

#include <cmath>
#include <cstdint>

#include "base/random.hpp"

#if defined(__CUDACC__)
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif

namespace strata::bench {

enum class MatrixKind : int { random, graded, matern };

struct TestMatrix {
  MatrixKind kind = MatrixKind::random;
  std::uint64_t seed = 1;
  double condition = 1e6;   ///< graded: C >= 1
  double smoothness = 0.5;  ///< matern: 0.5 or 1.5

  static constexpr double kRange = 0.1;
  static constexpr double kNugget = 1e-4;
};

struct Point {
  double x = 0;
  double y = 0;
};

/// Point k of `matern`, in the middle four fifths of its cell of the grid.
STRATA_HOST_DEVICE inline Point matern_point(std::int64_t n, std::uint64_t seed, std::int64_t k) {
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  const auto index = 2 * static_cast<std::uint64_t>(k);
  const double x = static_cast<double>(k % side) + 0.1 + 0.8 * random_uniform(seed, index);
  const double y = static_cast<double>(k / side) + 0.1 + 0.8 * random_uniform(seed, index + 1);
  return {x / static_cast<double>(side), y / static_cast<double>(side)};
}

STRATA_HOST_DEVICE inline double matern_element(const TestMatrix& matrix, std::int64_t n,
                                                std::int64_t i, std::int64_t j) {
  if (i == j) return 1 + TestMatrix::kNugget;
  const Point p = matern_point(n, matrix.seed, i);
  const Point q = matern_point(n, matrix.seed, j);
  const double dx = p.x - q.x;
  const double dy = p.y - q.y;
  const double x = std::sqrt(dx * dx + dy * dy) / TestMatrix::kRange;
  return (matrix.smoothness == 0.5 ? 1 : 1 + x) * std::exp(-x);
}

/// Uniform in [−1, 1), the same for (i, j) and (j, i).
STRATA_HOST_DEVICE inline double symmetric_uniform(std::uint64_t seed, std::int64_t i,
                                                   std::int64_t j) {
  const auto lo = static_cast<std::uint64_t>(i < j ? i : j);
  const auto hi = static_cast<std::uint64_t>(i < j ? j : i);
  return 2 * random_uniform(seed, hi * (hi + 1) / 2 + lo) - 1;
}

STRATA_HOST_DEVICE inline double graded_element(const TestMatrix& matrix, std::int64_t n,
                                                std::int64_t i, std::int64_t j) {
  const double steps = n > 1 ? static_cast<double>(n - 1) : 1;
  const double exponent = -0.5 * std::log2(matrix.condition) * static_cast<double>(i + j) / steps;
  if (i == j) return std::exp2(exponent);
  return std::exp2(exponent) * symmetric_uniform(matrix.seed, i, j) /
         (4 * std::sqrt(static_cast<double>(n)));
}

STRATA_HOST_DEVICE inline double element(const TestMatrix& matrix, std::int64_t n, std::int64_t i,
                                         std::int64_t j) {
  switch (matrix.kind) {
    case MatrixKind::graded: return graded_element(matrix, n, i, j);
    case MatrixKind::matern: return matern_element(matrix, n, i, j);
    case MatrixKind::random: break;
  }
  return i == j ? static_cast<double>(n) : symmetric_uniform(matrix.seed, i, j);
}

/// Matrix b of a batch.
STRATA_HOST_DEVICE inline TestMatrix of_batch(TestMatrix matrix, std::int64_t b) {
  matrix.seed += static_cast<std::uint64_t>(b);
  return matrix;
}

}  // namespace strata::bench

#undef STRATA_HOST_DEVICE
