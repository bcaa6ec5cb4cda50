// Stability of every method on the matrices of the literature and on random ones: orthogonality and
// residuals measured in long double.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "strata/qr.hpp"
#include "tests/qr/factored.hpp"
#include "tests/qr/tall_matrices.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::Factored;
using test::Tall;

Factored<double> factored_by(const Tall& v, QrMethod method, bool verify = true) {
  QrOptions options;
  options.method = method;
  options.verify = verify;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 256 << 20;
  options.run.compute_queues = 1;
  return test::factored(v, options);
}

/// Accuracy of what is measured in long double.
double accuracy(const Tall& v) {
  return 0x1p-62 * static_cast<double>(v.cols) * std::sqrt(static_cast<double>(v.rows));
}

/// A matrix of stability_table_test.cpp.
struct Reference {
  std::string name;
  std::function<Tall()> make;
  double condition;  ///< of unit columns
};

std::vector<Reference> references() {
  return {
      {"K10", [] { return test::krylov(10); }, 6e4},
      {"K20", [] { return test::krylov(20); }, 1e12},
      {"K20 of integers", [] { return test::krylov(20, 1); }, 1e12},
      {"K25", [] { return test::krylov(25); }, 7e15},
      {"K30", [] { return test::krylov(30); }, 2e18},
      {"Newton 30", [] { return test::newton(30); }, 1e6},
      {"Hilbert 1000 x 16", [] { return test::hilbert(1000, 16); }, 4e16},
      {"Hilbert 100 x 100", [] { return test::hilbert(100, 100); }, 1e20},
      {"sigma 1e8", [] { return test::with_condition(1500, 20, 1e8, 3); }, 1e8},
      {"sigma 1e15", [] { return test::with_condition(1500, 20, 1e15, 3); }, 1e15},
      {"glued 1e8 1e8", [] { return test::glued(1500, 4, 5, 1e8, 1e8); }, 7e14},
      {"Lauchli 1e-20", [] { return test::lauchli(20, [](auto) { return 1e-20; }); }, 4e20},
      {"synthetic", [] { return test::synthetic(); }, 3e18},
      {"graded to 1e-100", [] { return test::graded(1500, 20, 1e100); }, 1.3},
  };
}

TEST(QrStability, AutomaticIsOrthonormalToRoundingOnAllOfThem) {
  for (const Reference& reference : references()) {
    const Tall v = reference.make();
    const double promise = 1e-14 * std::sqrt(static_cast<double>(v.cols));
    for (const bool verify : {true, false}) {
      const Factored<double> result = factored_by(v, QrMethod::automatic, verify);
      EXPECT_TRUE(result.info.ok) << reference.name;
      EXPECT_EQ(result.info.rank, v.cols) << reference.name;
      const double error = test::orthogonality_of(result.q, v.cols);
      EXPECT_LE(error, promise) << reference.name;
      EXPECT_GE(result.info.orthogonality, error * (1 - 1e-3) - accuracy(v)) << reference.name;
      EXPECT_LE(test::residual_of(v, result.q, result.r), promise) << reference.name;
      EXPECT_LE(result.info.condition, 3 * reference.condition) << reference.name;
      EXPECT_GE(result.info.condition, reference.condition / 3) << reference.name;
    }
  }
}

TEST(QrStability, GramSchmidtLosesWhatItIsKnownToLose) {
  // MGS like κ·ε (Björck 1967), CGS more; what a second time leaves of it is rounding.
  const std::map<std::string, double> mgs{{"K10", 5e-11},
                                          {"K20", 2e-4},
                                          {"Newton 30", 2e-9},
                                          {"sigma 1e8", 7e-9},
                                          {"synthetic", 4e-15},
                                          {"Lauchli 1e-20", 5e-16},
                                          {"graded to 1e-100", 4e-16}};
  for (const Reference& reference : references()) {
    const Tall v = reference.make();
    const Factored<double> once = factored_by(v, QrMethod::mgs);
    EXPECT_LE(test::residual_of(v, once.q, once.r), 1e-14 * static_cast<double>(v.cols));
    if (const auto known = mgs.find(reference.name); known != mgs.end()) {
      const double error = test::orthogonality_of(once.q, v.cols);
      EXPECT_LE(error, std::max(10 * known->second, 1e-15)) << reference.name;
      if (known->second > 1e-13) {
        EXPECT_GE(error, known->second / 100) << reference.name;  // sums in lanes are more exact
      }
    }
    // The first time leaves a Q of some condition, on which the second depends like MGS does.
    const Factored<double> twice = factored_by(once.q, QrMethod::mgs);
    EXPECT_LE(test::orthogonality_of(twice.q, v.cols),
              std::max(4e-14, 4 * 0x1p-52 * twice.info.condition))
        << reference.name;
    EXPECT_LE(twice.info.condition, 1000) << reference.name;
  }
  const Tall v = test::krylov(10);
  EXPECT_GE(test::orthogonality_of(factored_by(v, QrMethod::cgs).q, 10),
            test::orthogonality_of(factored_by(v, QrMethod::mgs).q, 10));
  EXPECT_LE(test::orthogonality_of(factored_by(v, QrMethod::cgs2).q, 10), 1e-14);
}

TEST(QrStability, CostsWhatTheConditionAsksFor) {
  const auto passes = [](double condition) {
    return factored_by(test::with_condition(1500, 20, condition, 31), QrMethod::automatic)
        .info.passes;
  };
  EXPECT_EQ(passes(1e3), 2);
  EXPECT_EQ(passes(1e7), 2);
  EXPECT_EQ(passes(1e10), 3);
  EXPECT_EQ(passes(1e14), 3);
  EXPECT_LE(passes(1e16), 4);
}

#ifndef STRATA_SANITIZED
/// One column again and again in every other row, and random ones of length ε in the rows between:
/// κ is √n/ε, to within a few n/m, and no rounding of elements bounds it.
Tall nearly_equal_columns(std::int64_t m, std::int64_t n, double condition) {
  const double epsilon = std::sqrt(static_cast<double>(n)) / condition;
  const Tall common = test::random_tall(m, 1, 51);
  const Tall own = test::random_tall(m, n, 52);
  return test::make_matrix<double>(
      m, n, [&](auto i, auto j) { return i % 2 == 0 ? common(i, 0) : epsilon * own(i, j); });
}

TEST(QrStability, TheShiftDoesNotGrowWithTheRows) {
  // The shifted pass leaves of a column that is 1/κ away from the others 1/κ over the root of the
  // shift, and takes it for dependent below 1e-11: at 3e24 if that root were 20 times as large.
  for (const double condition : {1e17, 3e24}) {
    for (const std::int64_t m : {1000, 1000000}) {
      const Tall v = nearly_equal_columns(m, 8, condition);
      const Factored<double> result = factored_by(v, QrMethod::automatic);
      EXPECT_TRUE(result.info.ok) << m;
      EXPECT_EQ(result.info.rank, 8) << m;
      EXPECT_EQ(result.info.shifts, 1) << m;
      EXPECT_NEAR(result.info.condition / condition, 1, 0.5) << m;
      EXPECT_LE(test::orthogonality_of(result.q, 8), 1e-14 * std::sqrt(8.0)) << m;
      EXPECT_LE(test::residual_of(v, result.q, result.r), 1e-14 * std::sqrt(8.0)) << m;
    }
  }
}
#endif

TEST(QrStability, FailedPivotsAreCounted) {
  const auto failed = [](const Tall& v, QrMethod method) {
    return factored_by(v, method).info.failed_cholesky;
  };
  EXPECT_EQ(failed(test::krylov(10), QrMethod::cholqr2), 0);
  EXPECT_EQ(failed(test::krylov(20), QrMethod::cholqr), 1);
  EXPECT_EQ(failed(test::krylov(20), QrMethod::cholqr_wide), 0);
  EXPECT_EQ(failed(test::krylov(30), QrMethod::cholqr_wide), 1);
  EXPECT_EQ(failed(test::krylov(10), QrMethod::automatic), 0);
  EXPECT_FALSE(factored_by(test::krylov(20), QrMethod::cholqr).info.ok);
}

TEST(QrStability, SvqrIsAsGoodAsItsSums) {
  // Errors like κ²·ε and κ·ε: Stathopoulos and Wu 2002; Yamazaki, Tomov, Dongarra 2015.
  for (const double condition : {1e2, 1e4, 1e6}) {
    const Tall v = test::with_condition(600, 12, condition, 41);
    const double plain = test::orthogonality_of(factored_by(v, QrMethod::svqr).q, 12);
    const double wide = test::orthogonality_of(factored_by(v, QrMethod::svqr_wide).q, 12);
    EXPECT_LE(plain, 50 * condition * condition * 0x1p-53) << condition;
    EXPECT_LE(wide, 50 * condition * 0x1p-53) << condition;
    EXPECT_LE(test::residual_of(v, factored_by(v, QrMethod::svqr_wide).q,
                                factored_by(v, QrMethod::svqr_wide).r),
              1e-13);
  }
}

// ---- random matrices

/// The rank of a matrix of integers, by elimination modulo the prime 2^61 - 1: never above the true
/// one, and below it only where that prime divides each of its largest minors that are not zero,
/// which those of small integers do not meet.
std::int64_t rank_of_integers(const Tall& v) {
  __extension__ using Product = unsigned __int128;
  constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
  const auto times = [](std::uint64_t a, std::uint64_t b) {
    const Product product = static_cast<Product>(a) * b;
    const std::uint64_t sum =
        static_cast<std::uint64_t>(product & kPrime) + static_cast<std::uint64_t>(product >> 61);
    return sum >= kPrime ? sum - kPrime : sum;
  };
  const auto inverse = [&](std::uint64_t a) {  // a^(p - 2), by Fermat
    std::uint64_t power = 1;
    for (std::uint64_t left = kPrime - 2; left > 0; left >>= 1) {
      if ((left & 1) != 0) power = times(power, a);
      a = times(a, a);
    }
    return power;
  };
  std::vector<std::vector<std::uint64_t>> basis;  // columns, each with a 1 where the later have 0
  std::vector<std::size_t> pivots;
  std::vector<std::uint64_t> column(static_cast<std::size_t>(v.rows));
  for (std::int64_t j = 0; j < v.cols; ++j) {
    for (std::size_t i = 0; i < column.size(); ++i) {
      const auto x = static_cast<std::int64_t>(v(static_cast<std::int64_t>(i), j));
      column[i] = x < 0 ? kPrime - static_cast<std::uint64_t>(-x) : static_cast<std::uint64_t>(x);
    }
    for (std::size_t k = 0; k < basis.size(); ++k) {
      const std::uint64_t factor = kPrime - column[pivots[k]];
      if (factor == kPrime) continue;
      for (std::size_t i = 0; i < column.size(); ++i) {
        const std::uint64_t sum = column[i] + times(factor, basis[k][i]);
        column[i] = sum >= kPrime ? sum - kPrime : sum;
      }
    }
    const auto pivot = std::find_if(column.begin(), column.end(), [](auto x) { return x != 0; });
    if (pivot == column.end()) continue;
    pivots.push_back(static_cast<std::size_t>(pivot - column.begin()));
    const std::uint64_t factor = inverse(*pivot);
    for (std::uint64_t& x : column) x = times(x, factor);
    basis.push_back(column);
  }
  return std::ssize(basis);
}

/// Rows of a triangle of ones and minus ones again and again, its columns in reverse order: the
/// last is at a distance of about 2^-n from the span of the others, which are independent.
Tall reversed_triangle(std::int64_t m, std::int64_t n) {
  return test::make_matrix<double>(m, n, [n](auto i, auto j) {
    const auto row = i % n;
    const auto column = n - 1 - j;
    return row == column ? 1.0 : row < column ? -1.0 : 0.0;
  });
}

constexpr double kElementsOfMost = 20000;
constexpr double kElementsOfWide = 100000;
constexpr double kElementsOfLong = 400000;

/// Rows and columns of a random case, by its number: n from 1 to 256 and m from n to 100,000, in
/// logarithms uniform over the part of this triangle where m·n is at most kElementsOfMost. Every
/// hundredth case is of more than 100 columns and as many elements as those take, another of more
/// than 20,000 rows, and both are uniform in the same way where they may lie.
struct RandomShape {
  std::int64_t m, n;
};
RandomShape random_shape(std::uint64_t i) {
  const bool wide = i % 100 == 50;
  const bool tall = i % 100 == 99;
  const double most = wide ? kElementsOfWide : tall ? kElementsOfLong : kElementsOfMost;
  for (std::uint64_t draw = 0;; ++draw) {
    const double n = std::floor(std::pow(257.0, random_uniform(900 + draw, 2 * i)));
    const double m = std::floor(std::pow(100001.0, random_uniform(900 + draw, 2 * i + 1)));
    if (m < n || m * n > most || (wide && n <= 100) || (tall && m <= 20000)) continue;
    return {static_cast<std::int64_t>(m), static_cast<std::int64_t>(n)};
  }
}

/// A random matrix of any condition, grading, rank and shape, by its number.
struct RandomCase {
  Tall v{0, 0};
  std::int64_t rank = 0;
  bool integers = false;  ///< times powers of two, one for each column
};
RandomCase random_case(std::uint64_t i) {
  const auto uniform = [&](std::uint64_t which) { return random_uniform(1000 + which, i); };
  const auto [m, n] = random_shape(i);
  const auto below = [&](std::uint64_t which, std::int64_t limit) {
    return static_cast<std::int64_t>(uniform(which) * static_cast<double>(limit));
  };
  const double kind = uniform(0);
  RandomCase result;
  result.integers = kind < 0.3;
  if (kind < 0.12) {
    result.v =
        test::integers_of_rank(m, n, 1 + below(3, std::min<std::int64_t>(n, 24)), 5000 + 2 * i);
  } else if (kind < 0.16 && n <= 60) {
    result.v = reversed_triangle(m, n);
  } else if (kind < 0.3) {  // small square ones are singular often
    result.v = test::make_matrix<double>(m, n, [&, rows = m](auto r, auto c) {
      return std::floor(3 *
                        random_uniform(5000 + 2 * i, static_cast<std::uint64_t>(r + c * rows))) -
             1;
    });
  } else if (kind < 0.62) {
    result.v = test::with_condition(m, n, std::pow(10.0, 20 * uniform(4)), 9000 + 3 * i);
  } else {
    result.v = test::random_tall(m, n, 20000 + i);
  }
  // Columns that are duplicates or zeros; of the others, where they are not integers, none depends
  // on the rest.
  std::vector<std::int64_t> of(static_cast<std::size_t>(n));  // which column each is; -1: zeros
  std::iota(of.begin(), of.end(), std::int64_t{0});
  if (uniform(6) < 0.2) {
    for (std::int64_t k = 0; k <= below(7, 3); ++k) {
      const std::int64_t from = below(8 + 2 * static_cast<std::uint64_t>(k), n);
      const std::int64_t to = below(9 + 2 * static_cast<std::uint64_t>(k), n);
      std::copy_n(result.v.view().column(from), m, result.v.view().column(to));
      of[static_cast<std::size_t>(to)] = of[static_cast<std::size_t>(from)];
    }
  }
  if (uniform(20) < 0.15) {
    for (std::int64_t k = 0; k <= below(21, 2); ++k) {
      const std::int64_t j = below(22 + static_cast<std::uint64_t>(k), n);
      std::fill_n(result.v.view().column(j), m, 0.0);
      of[static_cast<std::size_t>(j)] = -1;
    }
  }
  std::set<std::int64_t> different(of.begin(), of.end());
  different.erase(-1);
  result.rank = result.integers ? rank_of_integers(result.v) : std::ssize(different);
  if (uniform(5) < 0.4) {  // graded, from 1e-140 to 1e140
    for (std::int64_t j = 0; j < n; ++j) {
      const int exponent =
          static_cast<int>(930 * (random_uniform(30000 + i, static_cast<std::uint64_t>(j)) - 0.5));
      for (std::int64_t r = 0; r < m; ++r) result.v(r, j) = std::ldexp(result.v(r, j), exponent);
    }
  }
  return result;
}

TEST(QrStability, AutomaticKeepsItsPromiseOnRandomMatrices) {
  const std::uint64_t cases = test::campaign(10'000, 1000, 100);
  std::uint64_t wide = 0;
  std::uint64_t tall = 0;
  std::uint64_t singular = 0;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const RandomCase c = random_case(i);
    wide += c.v.cols > 100 ? 1 : 0;
    tall += c.v.rows > 20000 ? 1 : 0;
    singular += c.integers && c.rank < c.v.cols ? 1 : 0;
    const double promise = 1e-14 * std::sqrt(static_cast<double>(c.v.cols));
    const Factored<double> result = factored_by(c.v, QrMethod::automatic, i % 2 == 0);
    ASSERT_TRUE(result.info.ok) << i;
    ASSERT_EQ(result.info.rank, c.rank) << i << ": " << c.v.rows << " x " << c.v.cols;
    const double error = test::orthogonality_of(result.q, result.info.rank);
    ASSERT_LE(error, promise) << i << ": " << c.v.rows << " x " << c.v.cols;
    ASSERT_GE(result.info.orthogonality, error * (1 - 1e-3) - accuracy(c.v)) << i;
    ASSERT_LE(test::residual_of(c.v, result.q, result.r), promise) << i;
  }
  EXPECT_GE(wide, cases / 100);
  EXPECT_GE(tall, cases / 100);
  EXPECT_GE(singular, cases / 20);
}

TEST(QrStability, WithoutAPlaceForQRandomMatricesHaveTheSameRankAndTheSameQ) {
  const std::uint64_t cases = test::campaign(250, 250, 40);
  QrOptions options;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 256 << 20;
  options.run.compute_queues = 1;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const Tall v = random_case(i).v;
    const Factored<double> stored = factored_by(v, QrMethod::automatic);
    Tall r(v.cols, v.cols);
    const QrInfo info = qr_r({.view = v.view()}, r.view(), options);
    ASSERT_TRUE(info.ok) << i;
    ASSERT_EQ(info.dependent_columns, stored.info.dependent_columns) << i;
    for (std::int64_t j = 0; j < v.cols; ++j) {  // a rotation keeps lengths
      double of_r = 0;
      double of_stored = 0;
      for (std::int64_t k = 0; k <= j; ++k) {
        of_r = std::hypot(of_r, r(k, j));
        of_stored = std::hypot(of_stored, stored.r(k, j));
      }
      ASSERT_LE(std::abs(of_r - of_stored), 1e-14 * of_stored) << i << ' ' << j;
    }
    if (i % 3 != 0) continue;
    TallQr<double> tall({.view = v.view()}, options);
    ASSERT_EQ(tall.cols(), stored.info.rank) << i;
    Tall q(v.rows, tall.cols());
    (void)tall.write(q.view());
    ASSERT_TRUE(std::equal(q.data.begin(), q.data.end(), stored.q.data.begin())) << i;
  }
}

TEST(QrStability, TheRankOfIntegersIsExact) {
  for (std::int64_t rank = 1; rank <= 20; ++rank) {
    const Tall v = test::integers_of_rank(300 + 40 * rank, 20, rank,
                                          70 + 2 * static_cast<std::uint64_t>(rank));
    const Factored<double> result = factored_by(v, QrMethod::automatic);
    EXPECT_EQ(rank_of_integers(v), rank);
    EXPECT_EQ(result.info.rank, rank);
    EXPECT_EQ(std::ssize(result.info.dependent_columns), 20 - rank);
  }
}

TEST(Stability, WhatIsNotMeasuredIsMadeAlike) {
  const Tall v = test::with_condition(3000, 12, 1e5, 9);
  for (const QrMethod method : qr_methods()) {
    SCOPED_TRACE(to_string(method));
    const Factored<double> measured = factored_by(v, method);
    const Factored<double> bare = factored_by(v, method, false);
    EXPECT_TRUE(test::same_bits(bare.q.data, measured.q.data));
    EXPECT_TRUE(test::same_bits(bare.r.data, measured.r.data));
    EXPECT_TRUE(measured.info.measured);
    EXPECT_FALSE(bare.info.measured);
    EXPECT_TRUE(bare.info.ok);  // nothing that is known speaks against it
    EXPECT_EQ(measured.info.ok,
              test::orthogonality_of(measured.q, v.cols) <= 1e-14 * std::sqrt(12));
    EXPECT_LT(bare.info.report.flops, measured.info.report.flops);
    EXPECT_EQ(bare.info.steps.size(), measured.info.steps.size());
    if (!std::isnan(bare.info.orthogonality)) {  // a bound: of auto and TSQR alone
      EXPECT_GE(bare.info.orthogonality, test::orthogonality_of(bare.q, v.cols) - accuracy(v));
    }
  }
}

}  // namespace
}  // namespace strata
