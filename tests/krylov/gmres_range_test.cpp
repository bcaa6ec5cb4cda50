// gmres at the ends of the range, where products underflow, and on singular systems: what is said
// of a residual is not below it, and what is said of the range of A is so. The oracle is the
// residual in 600 bits, and null spaces that are known.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "strata/krylov.hpp"
#include "tests/krylov/gmres_harness.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::solved;
using test::Solved;
using test::with;
using Wide = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<600, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;

/// ‖b − A·x‖, and beside ‖b‖, as they are stored.
struct TrueResidual {
  Wide norm;
  Wide relative;
};
TrueResidual true_residual_of(const SparseMatrix& a, const std::vector<double>& b,
                              const std::vector<double>& x) {
  Wide square = 0;
  Wide length = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    Wide r = b[i];
    length += r * r;
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      r -= Wide(a.value[e]) * Wide(x[static_cast<std::size_t>(a.column[e])]);
    }
    square += r * r;
  }
  const Wide norm = sqrt(square);
  return {norm, Wide(norm / sqrt(length))};
}

/// Neither number is below the truth, nor far above what a number of that size can be.
void expect_not_below(const SparseMatrix& a, const std::vector<double>& b, const Solved& result) {
  const TrueResidual truth = true_residual_of(a, b, result.x);
  const Wide least = std::numeric_limits<double>::denorm_min();
  const Wide below = 1 - Wide(1e-12);
  EXPECT_GE(Wide(result.info.residual_norm), truth.norm * below);
  EXPECT_GE(Wide(result.info.relative_residual), truth.relative * below);
  const Wide rows = std::sqrt(static_cast<double>(a.rows));
  EXPECT_LE(Wide(result.info.residual_norm), truth.norm * (1 + Wide(1e-9)) + 4 * rows * least);
}

/// The x of the caller, as it is.
Solved looked_at(const SparseMatrix& a, const std::vector<double>& b, std::vector<double> x) {
  GmresOptions options = with(1, 5, QrMethod::automatic);
  options.restarts_max = 0;
  Solved result{std::move(x), {}};
  result.info = gmres(a, b, result.x, options);
  return result;
}

TEST(GmresRange, AResidualIsNotBelowTheTruthWhereProductsUnderflow) {
  const std::uint64_t cases = test::campaign(20000, 1500, 200);
  std::int64_t underflows = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    const auto draw = [&](std::uint64_t k) { return random_uniform(seed, k); };
    const auto size = [&](std::uint64_t k, double from, double to) {
      return std::pow(10.0, from + (to - from) * draw(k)) * (draw(k + 500) < 0.5 ? -1 : 1);
    };
    // The first row is solved exactly; of the others elements and unknowns are small.
    const std::size_t n = 2 + seed % 3;
    test::Entries entries;
    entries.add(0, 0, 1);
    std::vector<double> x(n);
    std::vector<double> b(n);
    x[0] = b[0] = seed % 4 == 0 ? std::ldexp(1.0, -100) : 1;
    const double reach = -330 + 60 * draw(1);
    for (std::size_t i = 1; i < n; ++i) {
      x[i] = size(10 + i, -170, -100);
      Wide sum = 0;
      for (std::size_t j = 1; j <= i; ++j) {
        const double value = std::pow(10.0, reach) / x[j] * (0.5 + draw(20 + 7 * i + j));
        entries.add(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j), value);
        sum += Wide(value) * Wide(x[j]);
      }
      b[i] = static_cast<double>(sum) * (draw(30 + i) < 0.5 ? 1 : 1 + 1e-9);
    }
    const SparseMatrix a = entries.matrix(static_cast<std::int64_t>(n));
    const Solved result = looked_at(a, b, x);
    expect_not_below(a, b, result);
    underflows += true_residual_of(a, b, x).norm < 1e-307 ? 1 : 0;
  }
  EXPECT_GT(underflows, static_cast<std::int64_t>(cases / 4));
}

/// The second row is short in A and long beside the first in units of its own; what it leaves is
/// below the least double.
TEST(GmresRange, ScaledRowsAreSeenBelowTheLeastDouble) {
  const SparseMatrix a = test::diagonal({1e140, 1e-300});
  for (const double off : {0.3, 1e-4, 1e-10, 1e-12, 1e-14}) {
    const std::vector<double> x{1e-160, 1e-12 * (1 + off)};
    const std::vector<double> b{1e-20, 1e-312};
    const Solved result = looked_at(a, b, x);
    const Wide r = Wide(b[1]) - Wide(a.value[1]) * Wide(result.x[1]);
    const double truth = std::abs(static_cast<double>(Wide(r / b[1])));
    EXPECT_NEAR(result.info.scaled_residual, truth, 1e-6 * truth) << off;
    expect_not_below(a, b, result);
  }
}

TEST(GmresRange, AResidualBelowTheLeastDoubleIsNotZero) {
  const SparseMatrix a = test::diagonal({3e-5, 7e-5});
  for (const double b : {1e-305, 1e-310, 1e-320}) {
    const Solved result = solved(a, {b, b}, with(1, 5, QrMethod::automatic));
    expect_not_below(a, {b, b}, result);
  }
}

// ---- singular matrices

/// D − W of a ring with chords; ones are its null space.
SparseMatrix chorded_ring(std::int64_t n) {
  test::Entries entries;
  const auto edge = [&](std::int64_t i, std::int64_t j, double weight) {
    entries.add(i, i, weight);
    entries.add(j, j, weight);
    entries.add(i, j, -weight);
    entries.add(j, i, -weight);
  };
  for (std::int64_t i = 0; i < n; ++i) edge(i, (i + 1) % n, 1);
  for (std::int64_t i = 0; i + 7 < n; i += 5) edge(i, i + 7, 2);
  return entries.matrix(n);
}

/// A·e_i = e_i+1, A·e_n = 0.
SparseMatrix shift_matrix(std::int64_t n) {
  test::Entries entries;
  for (std::int64_t i = 0; i + 1 < n; ++i) entries.add(i + 1, i, 1);
  return entries.matrix(n);
}

std::vector<double> unit_vector(std::int64_t n, std::size_t i) {
  std::vector<double> e(static_cast<std::size_t>(n));
  e[i] = 1;
  return e;
}

constexpr const char* kOutside = "b does not lie in the range of A";
constexpr const char* kUnknown = "b may not lie in the range of A, ";

void expect_told(const SparseMatrix& a, const std::vector<double>& b, const GmresOptions& options,
                 const char* what, double residual) {
  const Solved result = solved(a, b, options);
  EXPECT_FALSE(result.info.ok);
  EXPECT_TRUE(result.info.breakdown || result.info.stagnated);
  EXPECT_NE(result.info.why.find(what), std::string::npos) << result.info.why;
  EXPECT_GE(result.info.relative_residual, residual * (1 - 1e-12));
  EXPECT_LE(result.info.relative_residual, residual * 1.01);  // less is no progress of a cycle
  for (const double x : result.x) ASSERT_TRUE(std::isfinite(x));
}

TEST(GmresRange, ASingularConsistentSystemIsSolved) {
  constexpr std::int64_t kOrder = 60;
  const SparseMatrix a = chorded_ring(kOrder);
  std::vector<double> b(kOrder);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = i % 2 == 0 ? 1.0 + i % 3 : -1.0 - (i - 1) % 3;
  double sum = 0;
  for (const double x : b) sum += x;
  ASSERT_EQ(sum, 0);
  for (const std::int64_t s : {1, 5}) {
    for (const std::int64_t restart : {20, 60}) {
      for (const double tolerance : {1e-6, 1e-12}) {
        GmresOptions options = with(s, restart, QrMethod::automatic);
        options.tolerance = tolerance;
        const Solved result = solved(a, b, options);
        EXPECT_TRUE(result.info.ok) << result.info.why;
        EXPECT_LE(test::residual_of(a, b, result.x), tolerance * (1 + 1e-9));
      }
    }
  }
}

TEST(GmresRange, ASingularInconsistentSystemIsTold) {
  constexpr std::int64_t kOrder = 60;
  const SparseMatrix a = chorded_ring(kOrder);
  std::vector<double> b(kOrder);
  double sum = 0;
  double square = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    b[i] = random_uniform(3, i);
    sum += b[i];
    square += b[i] * b[i];
  }
  // What the null space has of b stays.
  const double left = sum / std::sqrt(static_cast<double>(kOrder)) / std::sqrt(square);
  for (const std::int64_t s : {1, 5}) {
    for (const std::int64_t restart : {20, 60}) {
      for (const double size : {1.0, 1e-200}) {
        SparseMatrix scaled_a = a;
        for (double& x : scaled_a.value) x *= size;
        GmresOptions options = with(s, restart, QrMethod::automatic);
        expect_told(scaled_a, b, options, kOutside, left);
      }
    }
  }
}

TEST(GmresRange, ANilpotentMatrixMayHaveASolutionThatNoKrylovSpaceHolds) {
  for (const std::int64_t n : {2, 12}) {
    const SparseMatrix a = shift_matrix(n);
    for (const std::int64_t s : {1, 2}) {
      const GmresOptions options = with(s, 20, QrMethod::automatic);
      expect_told(a, unit_vector(n, 0), options, kOutside, 1);
      // A·e_0 = e_1, and the space of e_1 has no e_0.
      expect_told(a, unit_vector(n, 1), options, kUnknown, 1);
    }
  }
}

TEST(GmresRange, ZeroMatricesAndZeroRightHandSides) {
  for (const std::int64_t n : {1, 5}) {
    const SparseMatrix zero = test::diagonal(std::vector<double>(static_cast<std::size_t>(n), 0.0));
    test::Entries none;
    for (const SparseMatrix& a : {zero, none.matrix(n)}) {
      for (const Element precision : {Element::fp64, Element::fp32}) {
        GmresOptions options = with(1, 20, QrMethod::automatic);
        options.precision = precision;
        expect_told(a, std::vector<double>(static_cast<std::size_t>(n), 2.0), options, kOutside, 1);
        const Solved null = solved(a, std::vector<double>(static_cast<std::size_t>(n)), options, 3);
        EXPECT_TRUE(null.info.ok);
        EXPECT_TRUE(null.info.why.empty());
        EXPECT_EQ(null.x, std::vector<double>(static_cast<std::size_t>(n)));
        EXPECT_EQ(null.info.residual_norm, 0);
      }
    }
  }
}

/// A is not symmetric, so the residual that is left is not along a null vector of A.
TEST(GmresRange, WhatIsSaidOfTheRangeIsTrueOfRandomSingularMatrices) {
  for (std::uint64_t seed = 0; seed < test::campaign(600, 40, 10); ++seed) {
    SCOPED_TRACE(seed);
    const std::int64_t n = 3 + static_cast<std::int64_t>(seed % 12);
    test::Entries entries;  // columns whose elements add up to 0: ones are orthogonal to the range
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i + 1 < n; ++i) {
        const double x =
            std::floor(17 * random_uniform(seed, static_cast<std::uint64_t>(i + 50 * j))) - 8;
        entries.add(i, j, x);
        sum += x;
      }
      entries.add(n - 1, j, -sum);
    }
    const SparseMatrix a = entries.matrix(n);
    std::vector<double> inside = test::row_sums(a);
    std::vector<double> outside = inside;
    outside[0] += 5;
    const GmresOptions options = with(1, 30, QrMethod::automatic);
    for (const bool in_range : {true, false}) {
      const Solved result = solved(a, in_range ? inside : outside, options);
      if (in_range) {
        EXPECT_EQ(result.info.why.find(kOutside), std::string::npos) << result.info.why;
      } else {
        EXPECT_FALSE(result.info.ok);
        EXPECT_FALSE(result.info.why.empty());
      }
    }
  }
}

}  // namespace
}  // namespace strata
