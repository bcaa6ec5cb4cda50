// The benchmark matrices against LAPACK and against the covariance kernel of the reference backend.

#include "bench/test_matrix.hpp"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/bytes.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/covariance/covariance.hpp"

namespace strata::bench {
namespace {

/// All of it, or zeros above the diagonal.
std::vector<double> dense(const TestMatrix& matrix, std::int64_t n, bool lower_only = false) {
  std::vector<double> a;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      a.push_back(lower_only && i < j ? 0 : element(matrix, n, i, j));
    }
  }
  return a;
}

/// Largest over smallest eigenvalue: the squares of the singular values of the Cholesky factor, by
/// one-sided Jacobi rotations of Lᵀ, which find each to nearly all digits however the columns are
/// scaled. (An eigenvalue solver that reduces A to a tridiagonal matrix would lose the small ones.)
double condition_number(const TestMatrix& matrix, std::int64_t n) {
  const auto order = static_cast<lapack_int>(n);
  std::vector<double> l = dense(matrix, n, true);
  EXPECT_EQ(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', order, l.data(), order), 0) << "n " << n;
  std::vector<double> transposed(l.size());
  for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
    for (std::size_t i = j; i < static_cast<std::size_t>(n); ++i) {
      transposed[j + i * static_cast<std::size_t>(n)] = l[i + j * static_cast<std::size_t>(n)];
    }
  }
  std::vector<double> values(static_cast<std::size_t>(n));
  std::vector<double> stat(6);
  EXPECT_EQ(LAPACKE_dgesvj(LAPACK_COL_MAJOR, 'U', 'N', 'N', order, order, transposed.data(), order,
                           values.data(), 0, nullptr, order, stat.data()),
            0);
  const double ratio = values.front() / values.back();
  return ratio * ratio;
}

std::vector<double> eigenvalues(const TestMatrix& matrix, std::int64_t n) {
  const auto order = static_cast<lapack_int>(n);
  std::vector<double> a = dense(matrix, n);
  std::vector<double> values(static_cast<std::size_t>(n));
  EXPECT_EQ(LAPACKE_dsyev(LAPACK_COL_MAJOR, 'N', 'L', order, a.data(), order, values.data()), 0);
  return values;
}

TEST(TestMatrix, IsSymmetricToTheLastBit) {
  for (const MatrixKind kind : {MatrixKind::random, MatrixKind::graded, MatrixKind::matern}) {
    for (const double smoothness : {0.5, 1.5}) {
      const TestMatrix matrix{.kind = kind, .seed = 3, .condition = 1e10, .smoothness = smoothness};
      for (std::int64_t j = 0; j < 37; ++j) {
        for (std::int64_t i = 0; i < j; ++i)
          EXPECT_EQ(element(matrix, 37, i, j), element(matrix, 37, j, i));
      }
    }
  }
}

TEST(TestMatrix, ASeedIsAMatrix) {
  for (const MatrixKind kind : {MatrixKind::random, MatrixKind::graded, MatrixKind::matern}) {
    const TestMatrix matrix{.kind = kind, .seed = 7};
    const TestMatrix next{.kind = kind, .seed = 8};
    EXPECT_NE(element(matrix, 50, 40, 2), element(next, 50, 40, 2));
    EXPECT_EQ(element(of_batch(matrix, 1), 50, 40, 2), element(next, 50, 40, 2));
  }
}

TEST(TestMatrix, GradedHasTheConditionThatWasAsked) {
  for (const std::int64_t n : {2, 3, 17, 64, 150}) {
    TestMatrix matrix{.kind = MatrixKind::graded, .seed = 5, .condition = 1};
    const std::vector<double> r = eigenvalues(matrix, n);  // D = I: R itself
    const double condition_of_r = r.back() / r.front();
    EXPECT_LT(condition_of_r, 2.5) << n;
    EXPECT_GT(condition_of_r, 1.1) << n;
    for (const double condition : {1e2, 1e6, 1e10, 1e14}) {
      matrix.condition = condition;
      const double measured = condition_number(matrix, n);
      EXPECT_LT(measured, condition * condition_of_r * (1 + 1e-9)) << n;
      EXPECT_GT(measured, condition / condition_of_r * (1 - 1e-9)) << n;
    }
  }
}

TEST(TestMatrix, GradedFallsGeometrically) {
  const std::int64_t n = 9;
  const TestMatrix matrix{.kind = MatrixKind::graded, .condition = 1e8};
  for (std::int64_t i = 0; i < n; ++i) {
    EXPECT_NEAR(element(matrix, n, i, i) * std::pow(10.0, static_cast<double>(i)), 1, 1e-13);
  }
  EXPECT_EQ(element(matrix, 1, 0, 0), 1);
}

/// n × n covariances of the points, by the formula with Boost's Bessel function in long double.
std::vector<double> reference_covariance(const TestMatrix& matrix, std::int64_t n) {
  const Backend& backend = reference_backend();
  const std::unique_ptr<Device> device = backend.make_device(0, 16_MiB);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  std::vector<double> points(static_cast<std::size_t>(2 * n));
  for (std::int64_t k = 0; k < n; ++k) {
    const Point p = matern_point(n, matrix.seed, k);
    points[static_cast<std::size_t>(k)] = p.x;
    points[static_cast<std::size_t>(k + n)] = p.y;
  }
  std::vector<double> c(static_cast<std::size_t>(n * n));
  const CovarianceParameters parameters{.variance = 1,
                                        .range = TestMatrix::kRange,
                                        .smoothness = matrix.smoothness,
                                        .nugget = TestMatrix::kNugget};
  const BlockView coordinates{points.data(), n, 2, n, 0, 0};
  const std::array<BlockView, 3> views{BlockView{c.data(), n, n, n, 0, 0}, coordinates,
                                       coordinates};
  backend.kernels().find(covariance.name, Elements(3, Element::fp64))(
      *queue, {views, covariance.operands}, {.values = &parameters});
  queue->synchronize();
  return c;
}

TEST(TestMatrix, MaternIsTheCovarianceOfItsPoints) {
  for (const double smoothness : {0.5, 1.5}) {
    for (const std::int64_t n : {1, 5, 16, 90}) {
      const TestMatrix matrix{.kind = MatrixKind::matern, .seed = 2, .smoothness = smoothness};
      const std::vector<double> expected = reference_covariance(matrix, n);
      const std::vector<double> c = dense(matrix, n);
      for (std::size_t k = 0; k < c.size(); ++k)
        EXPECT_NEAR(c[k], expected[k], 1e-14 * expected[k]) << "n " << n << " element " << k;
      EXPECT_GE(eigenvalues(matrix, n).front(), TestMatrix::kNugget);
    }
  }
}

TEST(TestMatrix, MaternPointsKeepApartInTheUnitSquare) {
  for (const std::int64_t n : {1, 7, 100, 101}) {
    const double side = std::ceil(std::sqrt(static_cast<double>(n)));
    for (std::int64_t i = 0; i < n; ++i) {
      const Point p = matern_point(n, 1, i);
      EXPECT_TRUE(p.x > 0 && p.x < 1 && p.y > 0 && p.y < 1) << n << " " << i;
      for (std::int64_t j = 0; j < i; ++j) {
        const Point q = matern_point(n, 1, j);
        EXPECT_GE(std::hypot(p.x - q.x, p.y - q.y), 0.2 / side * (1 - 1e-12)) << n;
      }
    }
  }
}

}  // namespace
}  // namespace strata::bench
