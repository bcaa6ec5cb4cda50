// Generated sparse matrices, against what is known of them.

#include "bench/sparse_matrices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "strata/error.hpp"

namespace strata::bench {
namespace {

using std::numbers::pi;

double at(const SparseMatrix& a, std::int64_t i, std::int64_t j) {
  for (std::int64_t k = a.start[static_cast<std::size_t>(i)];
       k < a.start[static_cast<std::size_t>(i + 1)]; ++k) {
    if (a.column[static_cast<std::size_t>(k)] == j) return a.value[static_cast<std::size_t>(k)];
  }
  return 0;
}

std::vector<double> product(const SparseMatrix& a, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  multiply(a, x, y);
  return y;
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double value : x) most = std::max(most, std::abs(value));
  return most;
}

TEST(SparseMatrices, TheLaplacianHasItsEigenvectors) {
  constexpr std::int64_t kSide = 5;
  const SparseMatrix a = laplacian_matrix(kSide);
  ASSERT_EQ(a.rows, 125);
  EXPECT_EQ(a.entries(), 7 * 125 - 6 * 25);
  const auto wave = [](std::int64_t k, std::int64_t i) {
    return std::sin(pi * static_cast<double>(k * (i + 1)) / (kSide + 1));
  };
  const auto value = [](std::int64_t k) {
    return 2 - 2 * std::cos(pi * static_cast<double>(k) / (kSide + 1));
  };
  std::vector<double> x(125);
  for (std::int64_t i = 0; i < 125; ++i)
    x[static_cast<std::size_t>(i)] = wave(1, i % 5) * wave(3, i / 5 % 5) * wave(4, i / 25);
  const std::vector<double> y = product(a, x);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(y[i], (value(1) + value(3) + value(4)) * x[i], 1e-14);
}

/// Displacements of all nodes by a function of their place and the axis.
template <class F>
std::vector<double> displaced(std::int64_t p, std::int64_t q, std::int64_t r, F&& along) {
  std::vector<double> u;
  for (std::int64_t node = 0; node < p * q * r; ++node) {
    const auto x = static_cast<double>(node % p);
    const auto y = static_cast<double>(node / p % q);
    const auto z = static_cast<double>(node / (p * q));
    for (int axis = 0; axis < 3; ++axis) u.push_back(along(x, y, z, axis));
  }
  return u;
}

TEST(SparseMatrices, AFreeBarResistsNoRigidMotion) {
  const std::int64_t p = 3;
  const std::int64_t q = 2;
  const std::int64_t r = 4;
  const SparseMatrix k = bar_matrix(p, q, r, false);
  ASSERT_EQ(k.rows, 3 * p * q * r);
  for (std::int64_t i = 0; i < k.rows; ++i) {
    for (std::int64_t j = 0; j < i; ++j) EXPECT_NEAR(at(k, i, j), at(k, j, i), 1e-16);
  }
  for (int c = 0; c < 3; ++c) {  // along each axis, and about it
    EXPECT_LE(largest(product(k, displaced(p, q, r,
                                           [c](double, double, double, int axis) {
                                             return axis == c ? 1.0 : 0.0;
                                           }))),
              1e-14);
    EXPECT_LE(largest(product(k, displaced(p, q, r,
                                           [c](double x, double y, double z, int axis) {
                                             const double place[3] = {x, y, z};
                                             if (axis == (c + 1) % 3) return -place[(c + 2) % 3];
                                             if (axis == (c + 2) % 3) return place[(c + 1) % 3];
                                             return 0.0;
                                           }))),
              1e-13);
  }
}

TEST(SparseMatrices, ABarThatIsPulledAnswersByYoungAndPoisson) {
  // u_z = z, u_x = −ν·x, u_y = −ν·y is uniaxial stress of 1: forces act on the ends alone, and add
  // up to the area of the cross section.
  const std::int64_t p = 3;
  const std::int64_t q = 4;
  const std::int64_t r = 3;
  const SparseMatrix k = bar_matrix(p, q, r, false);
  const std::vector<double> u = displaced(p, q, r, [](double x, double y, double z, int axis) {
    return axis == 0 ? -0.3 * x : axis == 1 ? -0.3 * y : z;
  });
  const std::vector<double> force = product(k, u);
  double pull = 0;
  for (std::int64_t node = 0; node < p * q * r; ++node) {
    const std::int64_t z = node / (p * q);
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      const double f = force[static_cast<std::size_t>(3 * node + axis)];
      if (axis != 2 || (z > 0 && z + 1 < r)) {
        EXPECT_NEAR(f, 0, 1e-14) << node << " " << axis;
      }
      if (axis == 2 && z + 1 == r) pull += f;
    }
  }
  EXPECT_NEAR(pull, static_cast<double>((p - 1) * (q - 1)), 1e-13);
}

TEST(SparseMatrices, TheFixedEndOfACantileverStays) {
  const SparseMatrix a = cantilever_matrix(2);
  ASSERT_EQ(a.rows, 3 * 2 * 2 * 33);
  const SparseMatrix free = bar_matrix(2, 2, 33, false);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.rows; ++j) {
      const double expected = i < 12 || j < 12 ? (i == j ? 1.0 : 0.0) : at(free, i, j);
      ASSERT_EQ(at(a, i, j), expected) << i << " " << j;
    }
  }
  EXPECT_THROW((void)bar_matrix(1, 2, 2), Error);
  EXPECT_THROW((void)laplacian_matrix(0), Error);
}

}  // namespace
}  // namespace strata::bench
