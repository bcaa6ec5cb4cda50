// Generated sparse matrices, against what is known of them.

#include "bench/sparse_matrices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "strata/error.hpp"
#include "strata/sparse_factor.hpp"

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

/// The bar of the benchmarks: as many unknowns as the matrix `cant`, on 9 × 9 × 257 nodes, which
/// the entries show. An unknown has three for each node around its own, but those that do not move.
TEST(SparseMatrices, TheCantileverOfSideNineHasTheOrderOfCant) {
  const SparseMatrix a = cantilever_matrix(9);
  EXPECT_EQ(a.rows, 62'451);
  EXPECT_EQ(a.cols, 62'451);
  require_well_formed(a);
  const auto neighbours = [](std::int64_t at, std::int64_t count) {
    return std::int64_t{1} + (at > 0 ? 1 : 0) + (at + 1 < count ? 1 : 0);
  };
  const auto node = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return x + 9 * (y + 9 * z);
  };
  for (const std::int64_t z : {1, 2, 100, 255, 256}) {
    for (std::int64_t y = 0; y < 9; ++y) {
      for (std::int64_t x = 0; x < 9; ++x) {
        std::set<std::int64_t> nodes;
        for (int axis = 0; axis < 3; ++axis) {
          const auto row = static_cast<std::size_t>(3 * node(x, y, z) + axis);
          for (std::int64_t k = a.start[row]; k < a.start[row + 1]; ++k)
            nodes.insert(a.column[static_cast<std::size_t>(k)] / 3);
        }
        const std::int64_t layers = neighbours(z, 257) - (z == 1 ? 1 : 0);
        EXPECT_EQ(std::ssize(nodes), neighbours(x, 9) * neighbours(y, 9) * layers)
            << x << " " << y << " " << z;
        EXPECT_EQ(*nodes.rbegin(),
                  node(std::min<std::int64_t>(x + 1, 8), std::min<std::int64_t>(y + 1, 8),
                       std::min<std::int64_t>(z + 1, 256)));
      }
    }
  }
}

/// log|A| of a factorization, which A has to be definite for.
double log_determinant(const SparseMatrix& a) {
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  const SparseCholesky factor(a, options);
  EXPECT_TRUE(factor.info().ok);
  return factor.info().log_determinant;
}

TEST(SparseMatrices, StencilsHaveTheirDeterminants) {
  constexpr std::int64_t kSide = 6;
  const auto wave = [](std::int64_t k) {  // of a chain of ones beside each other
    return 2 * std::cos(pi * static_cast<double>(k) / (kSide + 1));
  };
  double of5 = 0;
  double of7 = 0;
  double of27 = 0;
  for (std::int64_t i = 1; i <= kSide; ++i) {
    for (std::int64_t j = 1; j <= kSide; ++j) {
      of5 += std::log(4 - wave(i) - wave(j));
      for (std::int64_t k = 1; k <= kSide; ++k) {
        of7 += std::log(6 - wave(i) - wave(j) - wave(k));
        of27 += std::log(27 - (1 + wave(i)) * (1 + wave(j)) * (1 + wave(k)));
      }
    }
  }
  const SparseMatrix a5 = stencil_matrix(Stencil::points5, kSide);
  const SparseMatrix a7 = stencil_matrix(Stencil::points7, kSide);
  const SparseMatrix a27 = stencil_matrix(Stencil::points27, kSide);
  EXPECT_EQ(a5.rows, 36);
  EXPECT_EQ(a27.rows, 216);
  EXPECT_EQ(a5.entries(), 5 * 36 - 4 * 6);
  EXPECT_EQ(a7.entries(), 7 * 216 - 6 * 36);
  EXPECT_EQ(a27.entries(), 16 * 16 * 16);
  EXPECT_NEAR(log_determinant(a5), of5, 1e-12 * of5);
  EXPECT_NEAR(log_determinant(a7), of7, 1e-12 * of7);
  EXPECT_NEAR(log_determinant(a27), of27, 1e-12 * of27);
}

TEST(SparseMatrices, AnElasticCubeIsAFreeBarWithoutItsFixedUnknowns) {
  constexpr std::int64_t kSide = 3;
  const SparseMatrix cube = elastic_cube_matrix(kSide);
  ASSERT_EQ(cube.rows, 3 * kSide * (kSide + 1) * (kSide + 1));
  const SparseMatrix bar = bar_matrix(kSide + 1, kSide + 1, kSide + 1, false);
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < bar.rows; ++i)
    if (i / 3 % (kSide + 1) != 0) kept.push_back(i);
  ASSERT_EQ(std::ssize(kept), cube.rows);
  std::int64_t entries = 0;
  for (std::int64_t i = 0; i < cube.rows; ++i) {
    for (std::int64_t j = 0; j < cube.rows; ++j) {
      const double expected =
          at(bar, kept[static_cast<std::size_t>(i)], kept[static_cast<std::size_t>(j)]);
      EXPECT_NEAR(at(cube, i, j), expected, 1e-15) << i << " " << j;
      EXPECT_EQ(at(cube, i, j), at(cube, j, i)) << i << " " << j;
    }
    for (std::int64_t k = bar.start[static_cast<std::size_t>(kept[static_cast<std::size_t>(i)])];
         k < bar.start[static_cast<std::size_t>(kept[static_cast<std::size_t>(i)]) + 1]; ++k)
      entries += bar.column[static_cast<std::size_t>(k)] / 3 % (kSide + 1) != 0 ? 1 : 0;
  }
  EXPECT_EQ(cube.entries(), entries);
  require_well_formed(cube);
  EXPECT_TRUE(std::isfinite(log_determinant(cube)));
}

TEST(SparseMatrices, NamesMakeMatrices) {
  EXPECT_EQ(generated_matrix("2d5:9")->rows, 81);
  EXPECT_EQ(generated_matrix("3d7:4")->entries(), laplacian_matrix(4).entries());
  EXPECT_EQ(generated_matrix("3d27:4")->rows, 64);
  EXPECT_EQ(generated_matrix("hex:2")->rows, 54);
  EXPECT_FALSE(generated_matrix("2d5.mtx"));
  EXPECT_FALSE(generated_matrix("hexagon:3"));
  for (const std::string name : {"2d5:", "3d7:0", "3d27:-4", "hex:2x", "hex: 2", "2d5:46341",
                                 "3d7:1291", "hex:895", "2d5:99999999999999999999"})
    EXPECT_THROW((void)generated_matrix(name), Error) << name;
  const std::vector<std::string> names = matrix_collection(40);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 40U);
  EXPECT_EQ(matrix_collection(1), std::vector<std::string>{"2d5:40"});
  EXPECT_EQ(matrix_collection(7).back(), "3d27:24");
  for (const std::string& name : matrix_collection(8)) EXPECT_TRUE(generated_matrix(name)) << name;
}

TEST(SparseMatrices, ALowerTriangleStandsForTheWhole) {
  const std::vector<std::int64_t> row{0, 1, 0, 1, 2, 2};
  const std::vector<std::int64_t> col{0, 1, 1, 0, 2, 0};
  const auto of = [&](const std::vector<std::size_t>& which, double last = 5) {
    const std::vector<double> value{4, 6, last, 5, 7, 3};
    std::vector<std::int64_t> i;
    std::vector<std::int64_t> j;
    std::vector<double> v;
    for (const std::size_t k : which) {
      i.push_back(row[k]);
      j.push_back(col[k]);
      v.push_back(value[k]);
    }
    return sparse_from_entries(3, 3, i, j, v);
  };
  const SparseMatrix lower = lower_triangle(of({0, 1, 3, 4}));
  EXPECT_EQ(lower.entries(), 4);
  EXPECT_EQ(at(lower, 1, 0), 5);
  for (const SparseMatrix& same : {of({0, 1, 2, 4}), of({0, 1, 2, 3, 4})}) {
    const SparseMatrix got = lower_triangle(same);
    EXPECT_EQ(got.start, lower.start);
    EXPECT_EQ(got.column, lower.column);
    EXPECT_EQ(got.value, lower.value);
  }
  EXPECT_EQ(lower_triangle(of({0, 1, 4})).entries(), 3);
  EXPECT_THROW((void)lower_triangle(of({0, 1, 2, 3, 4}, 5.1)), Error);
  EXPECT_THROW((void)lower_triangle(of({0, 1, 2, 4, 5})), Error) << "(0, 1) alone above";
}

}  // namespace
}  // namespace strata::bench
