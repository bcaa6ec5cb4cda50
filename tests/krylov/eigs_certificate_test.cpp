// eigs: bounds that are true and values that are resolved, or told not to be, on matrices whose
// values differ in size; what a filter may cost; small orders as dense matrices; any scale. The
// oracles: eigenvalues in closed form, Sturm's counts in long double, and inertia in 320 bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.hpp"
#include "dense/jacobi_eigen.hpp"
#include "krylov/twofold.hpp"
#include "strata/krylov.hpp"
#include "tests/krylov/eigs_harness.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/exact_symmetric.hpp"

namespace strata {
namespace {

using test::Pairs;
using test::pairs;

using Long = long double;

EigsOptions eigs_options(std::int64_t k, EigenEnd which,
                         EigsMethod method = EigsMethod::automatic) {
  EigsOptions options;
  options.k = k;
  options.which = which;
  options.method = method;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 256 << 20;
  return options;
}

/// A symmetric tridiagonal matrix; off[i] is T(i + 1, i).
struct Tridiagonal {
  std::vector<double> diagonal, off;

  [[nodiscard]] SparseMatrix matrix() const {
    test::Entries entries;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      // Every other row first, so that nothing is near the diagonal.
      const auto place = [&](std::size_t j) {
        return static_cast<std::int64_t>(j / 2 + (j % 2 == 1 ? (diagonal.size() + 1) / 2 : 0));
      };
      entries.add(place(i), place(i), diagonal[i]);
      if (i + 1 == diagonal.size()) continue;
      entries.add(place(i), place(i + 1), off[i]);
      entries.add(place(i + 1), place(i), off[i]);
    }
    return entries.matrix(static_cast<std::int64_t>(diagonal.size()));
  }
  /// Eigenvalues below x: the negative pivots of T − x.
  [[nodiscard]] std::int64_t count_below(Long x) const {
    std::int64_t count = 0;
    Long pivot = 1;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      const Long e = i > 0 ? Long{off[i - 1]} : Long{0};
      pivot = diagonal[i] - x - (i > 0 ? e * e / pivot : Long{0});
      if (pivot == 0) pivot = -1e-4000L;
      count += pivot < 0 ? 1 : 0;
    }
    return count;
  }
  /// Eigenvalue j, ascending, by bisection.
  [[nodiscard]] Long value(std::int64_t j) const {
    Long radius = 0;
    for (const double x : diagonal) radius = std::max(radius, std::abs(Long{x}));
    for (const double x : off) radius += 2 * std::abs(Long{x});
    Long low = -radius;
    Long high = radius;
    for (int step = 0; step < 400 && high - low > 1e-19L * std::abs(low + high); ++step) {
      const Long middle = (low + high) / 2;
      (count_below(middle) > j ? high : low) = middle;
    }
    return (low + high) / 2;
  }
};

/// The bound of each pair reaches to an eigenvalue, and where it is resolved the value is right.
void expect_certified(const Tridiagonal& t, const Pairs& result, const EigsOptions& options) {
  const auto n = std::ssize(t.diagonal);
  for (std::size_t j = 0; j < result.info.values.size(); ++j) {
    const double value = result.info.values[j];
    // Sturm's counts are in error by rounding of their own.
    const Long bound = Long{result.info.bounds[j]} * (1 + 1e-12L) + 1e-18L * std::abs(value);
    // An eigenvalue lies between value − bound and value + bound.
    EXPECT_LT(t.count_below(value - bound) - t.count_below(value + bound), 0) << j;
    if (!result.info.ok) continue;
    const auto at = static_cast<std::int64_t>(j);
    const Long exact = t.value(options.which == EigenEnd::smallest ? at : n - 1 - at);
    EXPECT_LE(std::abs(value - exact), Long{0.02} * std::abs(exact) + bound) << j;
    EXPECT_LE(std::abs(value - exact), 2 * bound) << j;
  }
}

Tridiagonal path(std::size_t n) {
  return {std::vector<double>(n, 2.0), std::vector<double>(n - 1, -1.0)};
}

TEST(EigsCertificate, PenaltiesLeaveSmallValuesTheirDigits) {
  for (const double penalty : {1e6, 1e10, 1e14}) {
    Tridiagonal t = path(100);
    t.diagonal[0] += penalty;
    t.diagonal[41] += penalty;
    for (const EigenEnd which : {EigenEnd::smallest, EigenEnd::largest}) {
      const EigsOptions options = eigs_options(5, which);
      const Pairs result = pairs(t.matrix(), options);
      EXPECT_TRUE(result.info.ok) << result.info.why;
      expect_certified(t, result, options);
      for (std::int64_t j = 0; j < 5 && which == EigenEnd::smallest; ++j) {
        const auto exact = static_cast<double>(t.value(j));
        EXPECT_NEAR(result.info.values[static_cast<std::size_t>(j)], exact, 1e-10 * exact);
      }
    }
    // Lanczos' tolerance is one beside the penalty.
    const EigsOptions options = eigs_options(5, EigenEnd::smallest, EigsMethod::lanczos);
    const Pairs result = pairs(t.matrix(), options);
    expect_certified(t, result, options);
    if (penalty < 1e10) continue;
    EXPECT_FALSE(result.info.ok);
    EXPECT_NE(result.info.why.find("not resolved"), std::string::npos) << result.info.why;
    EXPECT_EQ(std::ssize(result.info.values), 5);
  }
}

/// Values that are lost beside the largest element, in the range of doubles too, are not resolved;
/// zeros of a matrix that has nothing as small are.
TEST(EigsCertificate, OfDiagonalsAsWideAsTheRange) {
  for (const std::vector<double>& diagonal : {std::vector<double>{1e-20, 1e300},
                                              {1e-40, 1e280},
                                              {1e-10, 1e308},
                                              {1e-300, 1e300},
                                              {1e-30, 1, 7, 3e285},
                                              {0, 1e300},
                                              {0, 0},
                                              {0, 1e-300},
                                              {1e-40, 1},
                                              {-1e-20, 1e-5, 1e280}}) {
    SCOPED_TRACE(testing::PrintToString(diagonal));
    const auto n = diagonal.size();
    test::Entries entries;
    for (std::size_t i = 0; i < n; ++i)
      entries.add(static_cast<std::int64_t>(i), static_cast<std::int64_t>(i), diagonal[i]);
    const Pairs result = pairs(entries.matrix(static_cast<std::int64_t>(n)),
                               eigs_options(static_cast<std::int64_t>(n), EigenEnd::smallest));
    ASSERT_EQ(result.info.values.size(), n);
    bool resolved = true;
    for (std::size_t j = 0; j < n; ++j) {
      const double value = result.info.values[j];
      double off = std::numeric_limits<double>::infinity();
      for (const double exact : diagonal) off = std::min(off, std::abs(value - exact));
      EXPECT_LE(off, result.info.bounds[j]) << j;
      if (result.info.unresolved[j]) {
        resolved = false;
      } else {
        EXPECT_LE(std::abs(value - diagonal[j]), 0.01 * std::abs(diagonal[j])) << j;
      }
    }
    EXPECT_EQ(result.info.ok, resolved) << result.info.why;
    if (diagonal[0] == 0 || diagonal.back() == 1) {
      EXPECT_TRUE(result.info.ok) << result.info.why;
    }
  }
}

TEST(EigsCertificate, GradedMatricesHaveAllTheirValues) {
  Tridiagonal t{std::vector<double>(50), std::vector<double>(49)};
  for (std::size_t i = 0; i < 50; ++i)
    t.diagonal[i] = std::pow(10.0, -8 + 16 * static_cast<double>(i) / 49);
  for (const bool coupled : {false, true}) {
    for (std::size_t i = 0; i < 49 && coupled; ++i)
      t.off[i] = 0.3 * std::sqrt(t.diagonal[i] * t.diagonal[i + 1]);
    for (const std::int64_t k : {5, 50}) {
      for (const EigenEnd which : {EigenEnd::smallest, EigenEnd::largest}) {
        const EigsOptions options = eigs_options(k, which);
        const Pairs result = pairs(t.matrix(), options);
        EXPECT_TRUE(result.info.ok) << result.info.why;
        EXPECT_LE(result.info.orthogonality, 1e-12);
        ASSERT_EQ(std::ssize(result.info.values), k);
        for (std::int64_t j = 0; j < k; ++j) {
          const auto exact = static_cast<double>(t.value(which == EigenEnd::smallest ? j : 49 - j));
          EXPECT_NEAR(result.info.values[static_cast<std::size_t>(j)], exact, 1e-11 * exact);
        }
      }
    }
  }
}

/// Random sizes of rows, twins, signs, and zeros, by either method.
TEST(EigsCertificate, BoundsAreTrueOnMatricesOfAllKinds) {
  const std::uint64_t cases = test::campaign(450, 45, 12);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const std::size_t n = 5 + seed * 3 % 60;
    Tridiagonal t{std::vector<double>(n), std::vector<double>(n - 1)};
    const double spread = static_cast<double>(seed % 5) * 4;
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::pow(10.0, spread * (random_uniform(seed, i) - 0.5));
      t.diagonal[i] = size * (seed % 3 == 0 ? random_normal(seed, 100 + i) : 1.0);
      if (seed % 4 == 1 && i > 0) t.diagonal[i] = t.diagonal[i - 1] * (1 + 1e-13);
      if (i > 0)
        t.off[i - 1] = random_normal(seed, 200 + i) *
                       std::sqrt(std::abs(t.diagonal[i] * t.diagonal[i - 1])) / 3;
    }
    const SparseMatrix a = t.matrix();
    for (const EigsMethod method : {EigsMethod::dense, EigsMethod::lanczos}) {
      EigsOptions options =
          eigs_options(3, seed % 2 == 0 ? EigenEnd::smallest : EigenEnd::largest, method);
      options.restarts_max = 20;
      SCOPED_TRACE(std::to_string(seed) + " " + std::string(to_string(method)));
      expect_certified(t, pairs(a, options), options);
    }
  }
}

/// The matrix of a seed; every third is less a multiple of the identity, of either sign.
test::Symmetric matrix_of(std::uint64_t seed) {
  test::Symmetric a = test::symmetric_matrix(seed, 30);
  const std::int64_t middle = a.n / 2;
  const double shift = a(middle, middle);
  for (std::int64_t i = 0; i < a.n && seed % 3 == 0; ++i) a.add(i, i, -shift);
  return a;
}

SparseMatrix all_elements_of(const test::Symmetric& a) {
  test::Entries entries;
  for (std::int64_t j = 0; j < a.n; ++j)
    for (std::int64_t i = 0; i < a.n; ++i)
      if (i == j || a(i, j) != 0) entries.add(i, j, a(i, j));
  return entries.matrix(a.n);
}

/// There is an eigenvalue within each bound, and each value that is resolved is the one of its
/// place, but that Lanczos' method takes values for equal that are closer than ten tolerances.
void expect_certified(const test::Symmetric& a, const Pairs& result, const EigsOptions& options) {
  using test::Real;
  Real size = 0;
  Real row_sum = 0;
  for (std::int64_t i = 0; i < a.n; ++i) {
    Real sum = 0;
    for (std::int64_t j = 0; j < a.n; ++j) sum += abs(Real(a(i, j)));
    for (std::int64_t j = 0; j < a.n; ++j) size = std::max(size, Real(abs(Real(a(i, j)))));
    row_sum = std::max(row_sum, sum);
  }
  const Real equal = result.info.dense ? Real(0) : Real(10 * options.tolerance * row_sum);
  const Real slack = size * Real("1e-40") + Real("1e-400");  // of the oracle's counts
  for (std::size_t j = 0; j < result.info.values.size(); ++j) {
    ASSERT_TRUE(std::isfinite(result.info.values[j]) || !result.info.ok) << j;
    if (!std::isfinite(result.info.values[j]) || !std::isfinite(result.info.bounds[j])) continue;
    const Real value = result.info.values[j];
    const Real bound = Real(result.info.bounds[j]) * Real(1 + 1e-12) + slack;
    const auto between = [&](const Real& radius) {
      return std::pair(test::eigenvalues_below(a, value - radius),
                       test::eigenvalues_below(a, value + radius));
    };
    const auto [low, high] = between(bound);
    EXPECT_LT(low, high) << j << ": " << result.info.values[j];
    if (!result.info.ok) continue;
    const auto at = static_cast<std::int64_t>(j);
    const std::int64_t place = options.which == EigenEnd::smallest ? at : a.n - 1 - at;
    const auto [below, above] = between(2 * bound + equal);
    EXPECT_LE(below, place) << j << ": " << result.info.values[j];
    EXPECT_GT(above, place) << j << ": " << result.info.values[j];
    EXPECT_TRUE(!result.info.unresolved[j]) << j;
  }
}

TEST(EigsCertificate, IsTrueOfStructures) {
  const std::uint64_t cases = test::campaign(2000, 80, 32);
  std::uint64_t found = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const test::Symmetric a = matrix_of(seed);
    const bool lanczos = a.n > 1 && seed / test::kSymmetricKinds % 3 == 1;
    const auto k = static_cast<std::int64_t>(
        1 + random_bits(93, seed) % static_cast<std::uint64_t>(std::min<std::int64_t>(a.n, 5)));
    const EigenEnd which = random_uniform(94, seed) < 0.6 ? EigenEnd::smallest : EigenEnd::largest;
    EigsOptions options = eigs_options(lanczos ? std::min(k, a.n - 1) : k, which,
                                       lanczos ? EigsMethod::lanczos : EigsMethod::automatic);
    options.restarts_max = 20;
    SCOPED_TRACE(a.kind + (lanczos ? ", Lanczos" : ""));
    const Pairs result = pairs(all_elements_of(a), options);
    for (const double x : result.vectors) ASSERT_TRUE(std::isfinite(x));
    expect_certified(a, result, options);
    found += result.info.ok ? 1 : 0;
  }
  EXPECT_GT(found, cases / 2);
}

/// Components of a graph are zeros of its Laplacian; two of three nodes are alone or in pairs.
SparseMatrix graph_laplacian(std::int64_t n) {
  std::vector<double> degree(static_cast<std::size_t>(n));
  test::Entries entries;
  const auto join = [&](std::int64_t i, std::int64_t j) {
    entries.add(i, j, -1);
    entries.add(j, i, -1);
    degree[static_cast<std::size_t>(i)] += 1;
    degree[static_cast<std::size_t>(j)] += 1;
  };
  for (std::int64_t i = 0; i + 5 < n; i += 6) join(i, i + 1);
  for (std::int64_t i = 3; i + 9 < n; i += 6) {
    join(i, i + 6);
    if (i % 4 == 1) join(i, i + 1);
  }
  for (std::int64_t i = 0; i < n; ++i) entries.add(i, i, degree[static_cast<std::size_t>(i)]);
  return entries.matrix(n);
}

TEST(EigsCertificate, ManyComponentsAreManyZeros) {
  const SparseMatrix a = graph_laplacian(240);
  const Pairs dense = pairs(a, eigs_options(12, EigenEnd::smallest));
  EXPECT_TRUE(dense.info.dense);
  EXPECT_TRUE(dense.info.ok) << dense.info.why;
  EigsOptions options = eigs_options(12, EigenEnd::smallest, EigsMethod::lanczos);
  const Pairs filtered = pairs(a, options);
  EXPECT_TRUE(filtered.info.ok) << filtered.info.why;
  options.filter = false;
  const Pairs plain = pairs(a, options);
  EXPECT_TRUE(plain.info.ok) << plain.info.why;
  for (const Pairs* result : {&dense, &filtered, &plain}) {
    for (std::size_t j = 0; j < 12; ++j) {
      EXPECT_LE(std::abs(result->info.values[j]), result->info.bounds[j] + 1e-18);
      EXPECT_LE(result->info.bounds[j], 1e-9);
    }
  }
}

/// Where values cluster at the end, or the end is too dense for a polynomial, a filter is given up:
/// vectors that are made orthonormal are counted as products that take as long.
TEST(EigsCertificate, AFilterCostsNoMoreThanItMaySave) {
  std::vector<double> graded(300), clustered(300);
  for (std::size_t i = 0; i < graded.size(); ++i) {
    graded[i] = std::pow(10.0, -8 + 16 * static_cast<double>(i) / 299);
    clustered[i] = i < 150 ? 1 + 1e-9 * static_cast<double>(i) : static_cast<double>(i);
  }
  for (const std::vector<double>& d : {graded, clustered}) {
    EigsOptions options = eigs_options(5, EigenEnd::smallest, EigsMethod::lanczos);
    options.restarts_max = test::kSanitized ? 100 : 300;
    const Pairs filtered = pairs(test::diagonal(d), options);
    EXPECT_LE(filtered.info.products, 300'000) << filtered.info.why;
    for (std::size_t j = 0; j < filtered.info.values.size(); ++j) {
      const double value = filtered.info.values[j];
      const auto nearest = std::ranges::min_element(
          d, [&](double x, double y) { return std::abs(x - value) < std::abs(y - value); });
      EXPECT_LE(std::abs(*nearest - value), filtered.info.bounds[j] * (1 + 1e-12));
    }
  }
}

TEST(EigsCertificate, ALimitOfProductsEndsAnyRun) {
  const SparseMatrix a = test::laplacian(12);
  for (const bool filter : {false, true}) {
    EigsOptions options = eigs_options(10, EigenEnd::smallest, EigsMethod::lanczos);
    options.filter = filter;
    options.products_max = 60;
    const Pairs result = pairs(a, options);
    EXPECT_FALSE(result.info.ok);
    EXPECT_LE(result.info.products, 60 + 16 + result.info.filter_degree);
    EXPECT_NE(result.info.why.find("60 products"), std::string::npos) << result.info.why;
    EXPECT_FALSE(result.info.values.empty());
    EXPECT_EQ(result.info.bounds.size(), result.info.values.size());
  }
}

TEST(EigsCertificate, PowersOfTwoChangeNoBit) {
  const SparseMatrix a = test::grid(7, 6, 5);
  for (const EigsMethod method : {EigsMethod::dense, EigsMethod::lanczos}) {
    const EigsOptions options = eigs_options(6, EigenEnd::smallest, method);
    const Pairs expected = pairs(a, options);
    ASSERT_TRUE(expected.info.ok) << expected.info.why;
    for (const int power : {-1000, -664, 664, 1000}) {
      SparseMatrix b = a;
      for (double& x : b.value) x = std::ldexp(x, power);
      const Pairs result = pairs(b, options);
      EXPECT_TRUE(result.info.ok) << result.info.why;
      EXPECT_EQ(result.vectors, expected.vectors);
      for (std::size_t j = 0; j < 6; ++j)
        EXPECT_EQ(result.info.values[j], std::ldexp(expected.info.values[j], power));
    }
  }
}

TEST(EigsCertificate, AllPairsOfSmallMatricesAreFound) {
  const SparseMatrix one = test::diagonal({-3.0});
  const Pairs single = pairs(one, eigs_options(1, EigenEnd::largest));
  EXPECT_TRUE(single.info.ok);
  EXPECT_EQ(single.info.values, std::vector<double>{-3.0});
  EXPECT_EQ(std::abs(single.vectors[0]), 1);
  const Tridiagonal t = path(37);
  for (const EigenEnd which : {EigenEnd::smallest, EigenEnd::largest}) {
    const EigsOptions options = eigs_options(37, which);
    const Pairs all = pairs(t.matrix(), options);
    EXPECT_TRUE(all.info.ok) << all.info.why;
    expect_certified(t, all, options);
  }
  const Pairs zero =
      pairs(test::diagonal(std::vector<double>(4, 0.0)), eigs_options(4, EigenEnd::largest));
  EXPECT_EQ(zero.info.values, std::vector<double>(4, 0.0));
}

TEST(Twofold, HasProductsToTwiceThePrecision) {
  // Rows that cancel but for the last bits.
  test::Entries entries;
  constexpr std::int64_t kOrder = 40;
  for (std::int64_t i = 0; i < kOrder; ++i)
    for (std::int64_t j = 0; j < kOrder; ++j)
      entries.add(i, j, random_normal(3, static_cast<std::uint64_t>(i * kOrder + j)));
  const SparseMatrix a = entries.matrix(kOrder);
  std::vector<double> x(kOrder);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random_normal(4, i);
  const TwofoldVector y = multiply_twofold(a, x);
  const std::vector<double> rest = minus_multiple(y, 0.7, x);
  const TwofoldVector some = multiply_twofold(a, x, 7, 19);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(some.hi[i], y.hi[i + 7]);
    EXPECT_EQ(some.lo[i], y.lo[i + 7]);
  }
  for (std::size_t i = 0; i < kOrder; ++i) {
    Long sum = 0;
    Long terms = 0;
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      const Long term = Long{a.value[e]} * x[static_cast<std::size_t>(a.column[e])];
      sum += term;
      terms += std::abs(term);
    }
    EXPECT_LE(std::abs(sum - y.hi[i] - y.lo[i]), 40 * 0x1p-64L * terms);
    EXPECT_LE(std::abs(sum - Long{0.7} * x[i] - rest[i]),
              60 * 0x1p-64L * terms + 0x1p-53L * std::abs(rest[i]));
    EXPECT_LE(std::abs(y.lo[i]), 0x1p-53 * std::abs(y.hi[i]));
  }
}

TEST(JacobiEigen, EndsWhereItTakesTooLong) {
  SquareMatrix<double> full(30);
  for (std::int64_t j = 0; j < 30; ++j)
    for (std::int64_t i = j; i < 30; ++i)
      full(i, j) = random_normal(9, static_cast<std::uint64_t>(30 * i + j));
  EXPECT_TRUE(jacobi_eigen(full, 500).values.empty());
  EXPECT_EQ(std::ssize(jacobi_eigen(full, 1'000'000).values), 30);
}

}  // namespace
}  // namespace strata
