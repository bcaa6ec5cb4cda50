// Triangles without directions of dependent columns: what is left of each, and how orthonormal the
// columns that are kept are.

#include "qr/narrowed_factor.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/qr/tall_matrices.hpp"

namespace strata {
namespace {

using Wide = SquareMatrix<DoubleDouble>;

Wide triangle_of(const test::Tall& a) {
  Wide r(a.cols);
  for (std::int64_t j = 0; j < a.cols; ++j)
    for (std::int64_t i = 0; i <= j; ++i) r(i, j) = DoubleDouble(a(i, j));
  return r;
}

/// The largest ‖r_j − C·r'_j‖/‖r_j‖; C and R' are what they are said to be.
double expect_narrowed(const Wide& r, const NarrowedFactor& got) {
  const std::int64_t n = r.n;
  std::vector<bool> dropped(static_cast<std::size_t>(n));
  for (const std::int64_t j : got.dropped) dropped[static_cast<std::size_t>(j)] = true;
  double worst = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    double left = 0;
    double length = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      long double rest = r(i, j).hi;
      for (std::int64_t k = 0; k < n; ++k)
        rest -= static_cast<long double>(got.c(i, k).hi) * got.r(k, j).hi;
      left = std::hypot(left, static_cast<double>(rest));
      length = std::hypot(length, r(i, j).hi);
      if (i > j || dropped[static_cast<std::size_t>(i)]) {
        EXPECT_EQ(got.r(i, j).hi, 0) << i << ' ' << j;
      }
    }
    if (length > 0) worst = std::max(worst, left / length);
    EXPECT_GE(got.r(j, j).hi, 0) << j;
    for (std::int64_t k = 0; k <= j; ++k) {
      double product = 0;
      for (std::int64_t i = 0; i < n; ++i) product += got.c(i, j).hi * got.c(i, k).hi;
      const bool one = j == k && !dropped[static_cast<std::size_t>(j)];
      EXPECT_NEAR(product, one ? 1 : 0, 1e-14) << j << ' ' << k;
    }
  }
  EXPECT_LE(worst, 1.01 * got.left + 1e-15 * std::sqrt(static_cast<double>(n)));
  return worst;
}

/// Columns 1e10·e₀ + 2^-30·e₁, 1e10·e₀ and e₁: rounding leaves one direction of the first two, and
/// the third is a combination of them.
TEST(NarrowedFactor, ADroppedColumnHasTheDirectionThatRoundingLeftOpen) {
  test::Tall a(3, 3);
  a(0, 0) = a(0, 1) = 1e10;
  a(1, 1) = 1e-6;  // rounding
  a(1, 2) = 0.6;
  a(2, 2) = 0.8;
  const Wide r = triangle_of(a);
  const NarrowedFactor got = narrowed_factor(r, {2});
  EXPECT_LE(expect_narrowed(r, got), 1e-15);
  EXPECT_NEAR(std::abs(got.r(1, 2).hi), 1, 1e-15);
}

TEST(NarrowedFactor, LeavesNoMoreThanWhatRanksOfFirstColumnsAllow) {
  for (const std::int64_t n : {4, 17, 60}) {
    // Each second column is its neighbour but for rounding of any direction; what is dropped, each
    // fourth, has such a direction, and others that are in range.
    test::Tall a(n, n);
    const test::Tall random = test::random_tall(n, n, 4 + static_cast<std::uint64_t>(n));
    std::vector<std::int64_t> dropped;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) a(i, j) = random(i, j);
      if (j % 4 == 1) {
        for (std::int64_t i = 0; i < j; ++i) a(i, j) = a(i, j - 1);
        a(j, j) = 1e-17;
      }
      if (j % 4 != 3) continue;
      for (std::int64_t i = 0; i <= j; ++i) a(i, j) = 0.5 * a(i, j - 1) - a(i, j - 3);
      a(j, j) = 0.75;
      dropped.push_back(j);
    }
    const Wide r = triangle_of(a);
    const NarrowedFactor got = narrowed_factor(r, dropped);
    EXPECT_EQ(got.dropped, dropped);
    EXPECT_LE(expect_narrowed(r, got), 2e-15 * std::sqrt(static_cast<double>(n))) << n;
  }
}

TEST(NarrowedFactor, DropsByDistanceBesideLengthsThatAreGiven) {
  test::Tall a = test::random_tall(6, 6, 9);
  a(3, 3) = 1e-9;
  for (std::int64_t i = 0; i < 6; ++i) a(i, 5) *= 1e-200;
  const Wide r = triangle_of(a);
  NarrowedFactor got = narrowed_factor(r, {}, 1e-12);
  EXPECT_TRUE(got.dropped.empty());
  EXPECT_LE(expect_narrowed(r, got), 1e-15);
  got = narrowed_factor(r, {}, 1e-7);
  EXPECT_EQ(got.dropped, (std::vector<std::int64_t>{3}));
  EXPECT_LE(expect_narrowed(r, got), 1e-7);
  got = narrowed_factor(r, {1, 1, 1, 1e-3, 1e9, 1e-200}, 1e-7);
  EXPECT_EQ(got.dropped, (std::vector<std::int64_t>{4}));
}

}  // namespace
}  // namespace strata
