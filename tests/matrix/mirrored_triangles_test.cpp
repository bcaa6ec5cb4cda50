// compare_triangles() against a search pair by pair, with one thread and with several.

#include "matrix/mirrored_triangles.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/random.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Matrix;

template <class T>
class MirroredTrianglesOf : public ::testing::Test {};
using Types = ::testing::Types<double, float, std::complex<double>, std::complex<float>>;
TYPED_TEST_SUITE(MirroredTrianglesOf, Types);

template <class T>
Matrix<T> mirrored(std::int64_t n) {
  Matrix<T> a(n, n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      const auto k = static_cast<std::uint64_t>(2 * (i * 4096 + j));
      T value{static_cast<RealOf<T>>(random_uniform(1, k) - 0.5)};
      if constexpr (is_complex_v<T>)
        if (i != j) value += T(0, static_cast<RealOf<T>>(random_uniform(1, k + 1)));
      a(i, j) = value;
      a(j, i) = conjugate<T>(value);
    }
  }
  return a;
}

constexpr double kTolerance = 1e-4;

TYPED_TEST(MirroredTrianglesOf, AreThoseOfASymmetricMatrix) {
  for (const int helpers : {0, 3}) {
    WorkCrew crew(helpers);
    for (const std::int64_t n : {0, 1, 2, 63, 64, 65, 200}) {
      Matrix<TypeParam> a = mirrored<TypeParam>(n);
      MirroredTriangles found = compare_triangles<TypeParam>(a.view(), kTolerance, crew);
      EXPECT_FALSE(found.differ) << n;
      EXPECT_EQ(found.row, -1);
      if (n < 2) continue;
      a(n - 1, n - 2) *= static_cast<RealOf<TypeParam>>(1 + 1e-6);  // rounding
      found = compare_triangles<TypeParam>(a.view(), kTolerance, crew);
      EXPECT_TRUE(found.differ) << n;
      EXPECT_EQ(found.row, -1);
    }
  }
}

TYPED_TEST(MirroredTrianglesOf, NameTheFirstPairThatDiffers) {
  const std::int64_t n = 200;
  // Pairs in the order of the search, each to be found behind those that are further on.
  const std::pair<std::int64_t, std::int64_t> places[] = {{63, 0},   {2, 1},   {130, 0},
                                                          {199, 63}, {65, 64}, {199, 198}};
  const std::pair<std::int64_t, std::int64_t> first[] = {{63, 0},   {2, 1},   {130, 0},
                                                         {199, 63}, {65, 64}, {199, 198}};
  for (const int helpers : {0, 3}) {
    WorkCrew crew(helpers);
    Matrix<TypeParam> a = mirrored<TypeParam>(n);
    for (std::size_t k = std::size(places); k-- > 0;) {
      a(places[k].second, places[k].first) += TypeParam{3};
      for (int repeat = 0; repeat < 20; ++repeat) {
        const MirroredTriangles found = compare_triangles<TypeParam>(a.view(), kTolerance, crew);
        ASSERT_TRUE(found.differ);
        ASSERT_EQ(found.row, first[k].first) << helpers;
        ASSERT_EQ(found.column, first[k].second);
      }
    }
  }
}

TEST(MirroredTriangles, NanDiffersAndWhatIsThrownBetweenIsThrown) {
  WorkCrew crew(2);
  Matrix<double> a = mirrored<double>(100);
  a(90, 3) = a(3, 90) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(compare_triangles<double>(a.view(), kTolerance, crew).row, 90);
  EXPECT_THROW((void)compare_triangles<double>(a.view(), kTolerance, crew,
                                               [] { throw std::runtime_error("stop"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace strata
