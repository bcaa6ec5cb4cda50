// Chebyshev filters: the polynomial and its inverse, the bound of residuals, where the edge comes
// from.

#include "krylov/chebyshev_filter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "base/work_crew.hpp"
#include "dense/small_eigen.hpp"
#include "tests/krylov/matrices.hpp"

namespace strata {
namespace {

/// T_d(t) by its recurrence.
double chebyshev(std::int64_t degree, double t) {
  double before = 1;
  double now = t;
  for (std::int64_t i = 1; i < degree; ++i) before = std::exchange(now, 2 * t * now - before);
  return now;
}

TEST(ChebyshevFilter, IsTheChebyshevPolynomialAndHasItsInverse) {
  for (const double half_width : {3.0, -3.0}) {
    for (const std::int64_t degree : {2, 3, 10, 41}) {
      const ChebyshevFilter filter{degree, 5, half_width};
      EXPECT_EQ(filter.edge(), 5 + half_width);
      for (const double t : {-1.1, -1.0, -0.3, 0.0, 0.5, 1.0, 1.01, 1.2}) {
        const double expected = chebyshev(degree, t);
        EXPECT_NEAR(filter.value(5 + half_width * t), expected, 1e-11 * (1 + std::abs(expected)))
            << degree << ", " << t;
        if (t <= 1) continue;
        EXPECT_NEAR(filter.eigenvalue(expected), 5 + half_width * t, 1e-12);
      }
      EXPECT_EQ(filter.eigenvalue(0.7), filter.edge());
      EXPECT_EQ(filter.eigenvalue(-8), filter.edge());
    }
  }
}

TEST(ChebyshevFilter, HasTheGrowthThatIsAskedFor) {
  for (const auto& [outermost, edge, far_end] :
       {std::tuple(0.0, 1.0, 900.0), std::tuple(700.0, 690.0, -100.0)}) {
    const ChebyshevFilter filter = make_filter(outermost, edge, far_end, 1e4, 2000);
    EXPECT_EQ(filter.edge(), edge);
    EXPECT_NEAR(filter.value(far_end), filter.degree % 2 == 0 ? 1 : -1, 1e-9);
    EXPECT_GE(filter.value(outermost), 1e4 * (1 - 1e-9));
    ChebyshevFilter less = filter;
    --less.degree;
    EXPECT_LT(less.value(outermost), 1e4);
    EXPECT_EQ(make_filter(outermost, edge, far_end, 1e4, 20).degree, 20);
  }
  // Nothing lies beyond the edge.
  EXPECT_EQ(make_filter(3, 3, 9, 1e4, 50).degree, 50);
  EXPECT_EQ(make_filter(4, 3, 9, 1e4, 50).degree, 50);
  EXPECT_EQ(make_filter(-1e9, 3, 9, 10, 50).degree, 2);
}

/// Random vectors near eigenvectors of a diagonal matrix, with what is known of p(A) alone.
TEST(ChebyshevFilter, BoundsResidualsOfTheMatrix) {
  const ChebyshevFilter filter = make_filter(0, 0.2, 10, 1e3, 2000);
  std::vector<double> d;
  for (int i = 0; i < 60; ++i) d.push_back(i < 12 ? 0.018 * i : 0.2 + 0.2 * (i - 11));
  double sharpest = 0;
  for (std::uint64_t trial = 0; trial < 4000; ++trial) {
    const std::size_t at = trial % 11;
    std::vector<double> v(d.size());
    double square = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const bool one = random_uniform(trial, 200 + i) < 0.1;  // now and then but a few others
      v[i] = i == at ? 1 : (one ? 1e-2 : 0.0) * random_normal(trial, i);
      square += v[i] * v[i];
    }
    double quotient = 0;
    for (std::size_t i = 0; i < v.size(); ++i)
      quotient += v[i] * v[i] / square * filter.value(d[i]);
    double of_polynomial = 0;
    double of_matrix = 0;
    const double eigenvalue = filter.eigenvalue(quotient);
    for (std::size_t i = 0; i < v.size(); ++i) {
      of_polynomial += std::pow((filter.value(d[i]) - quotient) * v[i], 2) / square;
      of_matrix += std::pow((d[i] - eigenvalue) * v[i], 2) / square;
    }
    const double bound = filter.residual(quotient, std::sqrt(of_polynomial));
    EXPECT_LE(std::sqrt(of_matrix), bound + 1e-13) << trial;
    sharpest = std::max(sharpest, std::sqrt(of_matrix) / bound);
  }
  EXPECT_GE(sharpest, 0.3);
  EXPECT_EQ(filter.residual(0.5, 0), 10 - 0.2);
}

TEST(ChebyshevFilter, TheEdgeFollowsFromCounts) {
  const std::vector<SpectralNode> nodes{{1, 4}, {3, 2}, {4, 6}};
  EXPECT_EQ(place_of_count(nodes, 1), 1);
  EXPECT_EQ(place_of_count(nodes, 2), 1);
  EXPECT_DOUBLE_EQ(place_of_count(nodes, 3.5), 2);
  EXPECT_EQ(place_of_count(nodes, 5), 3);
  EXPECT_DOUBLE_EQ(place_of_count(nodes, 7), 3.5);
  EXPECT_DOUBLE_EQ(place_of_count(nodes, 18), 1 + 2 * 3);
  EXPECT_DOUBLE_EQ(place_of_count(nodes, 1e9), 1 + 8 * 3);
  const std::vector<SpectralNode> down{{-1, 4}, {-3, 2}};
  EXPECT_DOUBLE_EQ(place_of_count(down, 3.5), -2);
}

TEST(ChebyshevFilter, DiscsHoldTheSpectrum) {
  test::Entries entries;
  constexpr std::int64_t kOrder = 40;
  SquareMatrix<double> dense(kOrder);
  for (std::int64_t i = 0; i < kOrder; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const double x = random_normal(11, static_cast<std::uint64_t>(i * kOrder + j));
      if (i != j && std::abs(x) < 1) continue;
      dense(i, j) = dense(j, i) = x;
      entries.add(i, j, x);
      if (i != j) entries.add(j, i, x);
    }
  }
  const auto [low, high] = spectrum_bounds(entries.matrix(kOrder));
  WorkCrew crew(0);
  const SymmetricEigen eigen = symmetric_eigen(dense, crew);
  EXPECT_LE(low, eigen.values.front());
  EXPECT_GE(high, eigen.values.back());
  double sum = 0;
  for (std::int64_t j = 0; j < kOrder; ++j) sum = std::max(sum, std::abs(dense(j, j)));
  EXPECT_LE(std::max(-low, high), sum + 4.0 * kOrder);
  const auto bounds = spectrum_bounds(test::laplacian(5));
  EXPECT_EQ(bounds, std::pair(0.0, 12.0));
}

}  // namespace
}  // namespace strata
