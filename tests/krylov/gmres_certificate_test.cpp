// gmres: residuals that are those of the x that is returned, rows and units of any size, balances
// that do not help, and what is returned where nothing does. The oracle is the residual in 200
// bits, and solutions that are known.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "base/random.hpp"
#include "strata/krylov.hpp"
#include "tests/krylov/gmres_harness.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/symmetric_kinds.hpp"

namespace strata {
namespace {

using test::solved;
using test::Solved;
using test::with;

/// diag(row)·A·diag(col).
SparseMatrix scaled(SparseMatrix a, const std::vector<double>& row,
                    const std::vector<double>& col) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) {
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      a.value[e] *= row[i] * col[static_cast<std::size_t>(a.column[e])];
    }
  }
  return a;
}

/// 10 to powers between −exponent and exponent.
std::vector<double> sizes(std::size_t n, double exponent, std::uint64_t seed = 7) {
  std::vector<double> d(n);
  for (std::size_t i = 0; i < n; ++i)
    d[i] = std::pow(10.0, exponent * (2 * random_uniform(seed, i) - 1));
  return d;
}

std::vector<double> inverses(std::vector<double> d) {
  for (double& x : d) x = 1 / x;
  return d;
}

std::vector<double> product(const SparseMatrix& a, const std::vector<double>& x) {
  std::vector<double> b(x.size());
  multiply(a, x, b);
  return b;
}

/// ‖b − A·x‖/‖b‖ in many digits.
double residual_in_many_digits(const SparseMatrix& a, const std::vector<double>& b,
                               const std::vector<double>& x) {
  using Many = boost::multiprecision::number<
      boost::multiprecision::cpp_bin_float<200, boost::multiprecision::digit_base_2>,
      boost::multiprecision::et_off>;
  Many square = 0;
  Many length = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    Many r = b[i];
    length += r * r;
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      r -= Many(a.value[e]) * Many(x[static_cast<std::size_t>(a.column[e])]);
    }
    square += r * r;
  }
  return static_cast<double>(sqrt(Many(square / length)));
}

/// What is told is true, x is finite, and no worse than zeros.
void expect_true(const SparseMatrix& a, const std::vector<double>& b, const Solved& result) {
  for (const double x : result.x) ASSERT_TRUE(std::isfinite(x));
  const double residual = residual_in_many_digits(a, b, result.x);
  EXPECT_NEAR(result.info.relative_residual, residual, 1e-10 * residual + 1e-30);
  EXPECT_LE(residual, 1 + 1e-12);
  EXPECT_EQ(result.info.ok, result.info.why.empty()) << result.info.why;
}

TEST(GmresCertificate, RowsOfAnySizeWithJacobi) {
  const SparseMatrix c = test::grid(12, 12, 1, 0.3);
  const std::vector<double> one(144, 1.0);
  for (const double exponent : {4.0, 8.0}) {
    const SparseMatrix a = scaled(c, sizes(144, exponent), one);
    const std::vector<double> b = test::row_sums(a);
    for (const std::int64_t s : {1, 5}) {
      GmresOptions options = with(s, 60, QrMethod::automatic, KrylovBasis::newton);
      options.preconditioner.kind = Preconditioner::jacobi;
      const Solved result = solved(a, b, options);
      EXPECT_TRUE(result.info.ok) << result.info.why;
      expect_true(a, b, result);
    }
  }
}

TEST(GmresCertificate, ABalanceUndoesAnyScaling) {
  const SparseMatrix c = test::grid(12, 12, 1, 0.3);
  const std::vector<double> one(144, 1.0);
  const std::vector<double> d = sizes(144, 8);
  for (const SparseMatrix& a : {scaled(c, one, d), scaled(c, d, one), scaled(c, d, d)}) {
    const std::vector<double> b = product(a, inverses(d));
    GmresOptions options = with(1, 60, QrMethod::automatic);
    options.balance = true;
    options.tolerance = 1e-8;
    const Solved result = solved(a, b, options);
    EXPECT_TRUE(result.info.ok) << result.info.why;
    EXPECT_LE(residual_in_many_digits(a, b, result.x), 1e-8);
    expect_true(a, b, result);
  }
}

/// x is known here: a residual of |b| alone does not show that rows that are short are unsolved.
TEST(GmresCertificate, RowsThatAreShortAreSolvedToo) {
  const SparseMatrix c = test::grid(12, 12, 1, 0.3);
  const std::vector<double> one(144, 1.0);
  std::vector<double> truth(144);
  for (std::size_t i = 0; i < truth.size(); ++i) truth[i] = random_uniform(3, i) - 0.5;
  std::vector<SparseMatrix> kinds;
  for (const double exponent : {6.0, 8.0, 20.0, 140.0})
    kinds.push_back(scaled(c, sizes(144, exponent), one));
  for (const double stray : {1e8, 1e-8, 1e20, 1e150}) {
    std::vector<double> rows = one;
    rows[77] = stray;
    kinds.push_back(scaled(c, rows, one));
  }
  for (const double penalty : {1e9, 1e30}) {  // on the diagonal, as finite elements hold a value
    SparseMatrix a = c;
    for (const std::size_t i : {5U, 6U, 99U})
      for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k)
        if (a.column[static_cast<std::size_t>(k)] == static_cast<std::int32_t>(i))
          a.value[static_cast<std::size_t>(k)] += penalty;
    kinds.push_back(std::move(a));
  }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const SparseMatrix& a = kinds[kind];
    const std::vector<double> b = product(a, truth);
    for (const Preconditioner preconditioner :
         {Preconditioner::none, Preconditioner::jacobi, Preconditioner::block_jacobi}) {
      GmresOptions options = with(1, 60, QrMethod::automatic);
      options.preconditioner.kind = preconditioner;
      const Solved result = solved(a, b, options);
      EXPECT_TRUE(result.info.ok) << kind << ": " << result.info.why;
      EXPECT_GE(result.info.rows_apart, kRowsFarApart);
      for (std::size_t i = 0; i < truth.size(); ++i)
        ASSERT_NEAR(result.x[i], truth[i], 1e-3) << kind << ", " << i;
      expect_true(a, b, result);
    }
  }
}

/// D·M·D over nearly all of the range of doubles: no power of two for the whole matrix keeps all of
/// its elements, and residuals are those of all of them.
TEST(GmresCertificate, WhatElementsOfAnySizeLeaveIsTold) {
  std::int64_t solved_ones = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const std::int64_t n = 2 + static_cast<std::int64_t>(seed % 4);
    const double reach = seed % 3 == 0 ? 145 : seed % 3 == 1 ? 100 : 60;
    std::vector<double> scale;
    for (std::int64_t i = 0; i < n; ++i)
      scale.push_back(
          std::pow(10.0, reach * (2 * random_uniform(seed, static_cast<std::uint64_t>(i)) - 1)));
    SparseMatrix a;
    a.rows = a.cols = n;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto low = static_cast<std::uint64_t>(std::min(i, j) + 7 * std::max(i, j));
        const double m = (i == j ? 3 : 0) + random_uniform(seed + 1000, low) - 0.5;
        a.column.push_back(static_cast<std::int32_t>(j));
        a.value.push_back(m * scale[static_cast<std::size_t>(i)] *
                          scale[static_cast<std::size_t>(j)]);
      }
      a.start.push_back(static_cast<std::int64_t>(a.value.size()));
    }
    const std::vector<double> b(static_cast<std::size_t>(n), seed % 5 == 0 ? 1e100 : 1.0);
    const Solved result = solved(a, b, with(1, 60, QrMethod::automatic));
    SCOPED_TRACE(seed);
    for (const double x : result.x) ASSERT_TRUE(std::isfinite(x));
    const double residual = residual_in_many_digits(a, b, result.x);
    EXPECT_NEAR(result.info.relative_residual, residual, 1e-10 * residual + 1e-30);
    EXPECT_EQ(result.info.ok, result.info.why.empty()) << result.info.why;
    solved_ones += result.info.ok ? 1 : 0;
  }
  EXPECT_GT(solved_ones, 0);
}

/// One cycle of few vectors, too few for the balanced system, brings the residual of |b| below the
/// tolerance by the long rows alone.
TEST(GmresCertificate, RowsThatAreShortAndNotSolvedAreTold) {
  std::vector<double> rows(144, 1.0);
  rows[3] = rows[70] = 1e12;
  const SparseMatrix a = scaled(test::grid(12, 12, 1, 0.3), rows, std::vector<double>(144, 1.0));
  const std::vector<double> b = test::row_sums(a);
  GmresOptions options = with(1, 3, QrMethod::automatic);
  options.restarts_max = 1;
  const Solved result = solved(a, b, options);
  EXPECT_LE(result.info.relative_residual, options.tolerance);
  EXPECT_GT(result.info.scaled_residual, 1e-2);
  EXPECT_FALSE(result.info.ok);
  EXPECT_NE(result.info.why.find("x does not solve the short ones"), std::string::npos)
      << result.info.why;
  options.balance = false;  // as the caller wants it
  EXPECT_TRUE(solved(a, b, options).info.ok);
}

/// Two systems side by side: a small one with a column that the balance makes as large as others,
/// and few cycles.
TEST(GmresCertificate, ABalanceIsNeverWorseThanNone) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    test::Entries entries;
    constexpr std::int64_t kOrder = 60;
    for (std::int64_t i = 0; i < kOrder; ++i) {
      entries.add(i, i, 1 + static_cast<double>(i % 5));
      for (int k = 0; k < 3; ++k) {
        const std::uint64_t place = static_cast<std::uint64_t>(3 * i + k);
        const auto j = static_cast<std::int64_t>(random_uniform(seed, place) * kOrder);
        entries.add(i, j, std::pow(10.0, 8 * random_uniform(seed + 50, place) - 6));
      }
    }
    const SparseMatrix a = entries.matrix(kOrder);
    const std::vector<double> b = test::row_sums(a);
    GmresOptions options = with(1, 4, QrMethod::automatic);
    options.restarts_max = 6;
    options.tolerance = 1e-12;
    const Solved plain = solved(a, b, options);
    options.balance = true;
    const Solved balanced = solved(a, b, options);
    expect_true(a, b, plain);
    expect_true(a, b, balanced);
    EXPECT_LE(balanced.info.relative_residual, plain.info.relative_residual) << seed;
  }
}

TEST(GmresCertificate, PowersOfTwoChangeNoBit) {
  const SparseMatrix a = test::grid(8, 7, 3, 0.2);
  const std::vector<double> b = test::row_sums(a);
  for (const Preconditioner kind : {Preconditioner::none, Preconditioner::jacobi,
                                    Preconditioner::block_jacobi, Preconditioner::custom}) {
    for (const std::int64_t s : {1, 4}) {
      GmresOptions options = with(s, 15, QrMethod::automatic, KrylovBasis::newton);
      options.preconditioner.kind = kind;
      const auto by_caller = [&](double diagonal) {
        if (kind != Preconditioner::custom) return;
        options.preconditioner.apply = [diagonal](std::span<const double> x, std::span<double> y) {
          for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] / diagonal;
        };
      };
      by_caller(6);
      const Solved expected = solved(a, b, options);
      ASSERT_TRUE(expected.info.ok) << expected.info.why;
      for (const auto& [of_a, of_b] :
           {std::pair(-664, 0), std::pair(-332, 332), std::pair(0, 664), std::pair(664, 0),
            std::pair(700, -300), std::pair(0, -1000)}) {
        SparseMatrix scaled_a = a;
        std::vector<double> scaled_b = b;
        for (double& x : scaled_a.value) x = std::ldexp(x, of_a);
        for (double& x : scaled_b) x = std::ldexp(x, of_b);
        by_caller(std::ldexp(6.0, of_a));
        const Solved result = solved(scaled_a, scaled_b, options);
        EXPECT_TRUE(result.info.ok) << result.info.why << ", " << of_a << ", " << of_b;
        EXPECT_EQ(result.info.relative_residual, expected.info.relative_residual);
        EXPECT_EQ(result.info.residual_norm, std::ldexp(expected.info.residual_norm, of_b));
        ASSERT_EQ(result.info.history.size(), expected.info.history.size());
        for (std::size_t i = 0; i < result.info.history.size(); ++i)
          EXPECT_EQ(result.info.history[i].relative_residual,
                    expected.info.history[i].relative_residual);
        for (std::size_t i = 0; i < result.x.size(); ++i)
          ASSERT_EQ(result.x[i], std::ldexp(expected.x[i], of_b - of_a));
      }
    }
  }
}

TEST(GmresCertificate, AnXBeyondTheLargestDoubleIsNone) {
  const SparseMatrix a = test::diagonal({1e-200, 2e-200, 1e-200});
  const std::vector<double> b{1e200, 1e200, 1e-100};
  const Solved result = solved(a, b, with(1, 3, QrMethod::automatic));
  EXPECT_FALSE(result.info.ok);
  EXPECT_NE(result.info.why.find("largest double"), std::string::npos) << result.info.why;
  expect_true(a, b, result);
  // b itself has no length that is a double.
  const SparseMatrix one = test::diagonal(std::vector<double>(20, 4.0));
  const std::vector<double> large(20, 1.5e308);
  const Solved solvable = solved(one, large, with(1, 3, QrMethod::automatic));
  EXPECT_TRUE(solvable.info.ok) << solvable.info.why;
  for (const double x : solvable.x) EXPECT_NEAR(x, 1.5e308 / 4, 1e294);
}

TEST(GmresCertificate, TheBestXIsReturnedWhereCyclesRunOut) {
  test::Entries line;
  for (std::int64_t i = 0; i < 400; ++i) {
    line.add(i, i, 2);
    if (i > 0) line.add(i, i - 1, -1);
    if (i < 399) line.add(i, i + 1, -1);
  }
  const SparseMatrix a = line.matrix(400);
  const std::vector<double> b(400, 1.0);
  GmresOptions options = with(1, 10, QrMethod::automatic);
  options.tolerance = 1e-12;
  double before = 1;
  for (const std::int64_t cycles : {0, 1, 4}) {
    options.restarts_max = cycles;
    const Solved result = solved(a, b, options);
    EXPECT_FALSE(result.info.ok);
    expect_true(a, b, result);
    EXPECT_LE(result.info.relative_residual, before);
    before = result.info.relative_residual;
  }
  EXPECT_LT(before, 1);
  // A guess that is worse than zeros is not what comes back.
  Solved far{std::vector<double>(400, 1e10), {}};
  options.restarts_max = 0;
  far.info = gmres(a, b, far.x, options);
  EXPECT_EQ(far.x, std::vector<double>(400));
  expect_true(a, b, far);
}

/// Below the rounding of b − A·x: 3·(1/3) is 1 in doubles, and the residual is not zero.
TEST(GmresCertificate, NoResidualIsBetterThanTheTruth) {
  const SparseMatrix three = test::diagonal(std::vector<double>(5, 3.0));
  const std::vector<double> ones(5, 1.0);
  const Solved third = solved(three, ones, with(1, 5, QrMethod::automatic));
  EXPECT_GT(third.info.relative_residual, 1e-18);
  expect_true(three, ones, third);
  const std::uint64_t cases = test::campaign(360, 24, 12);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const std::size_t n = 4 + seed % 40;
    test::Entries entries;
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = static_cast<std::int64_t>(i);
      if (seed % 7 != 3 || i > 0) entries.add(row, row, random_normal(seed, i));
      for (std::uint64_t k = 0; k < 3; ++k) {
        const double where = random_uniform(seed + 100, 3 * i + k);
        const double size = std::pow(10.0, static_cast<double>(seed % 4) * 4 *
                                               (random_uniform(seed + 200, 3 * i + k) - 0.5));
        entries.add(row, static_cast<std::int64_t>(where * static_cast<double>(n)), size);
      }
    }
    const SparseMatrix a = entries.matrix(static_cast<std::int64_t>(n));
    std::vector<double> b(n);
    for (std::size_t i = 0; i < n; ++i) b[i] = random_normal(seed + 300, i);
    GmresOptions options = with(seed % 3 == 0 ? 4 : 1, 25, QrMethod::automatic);
    options.balance = seed % 2 == 0;
    options.tolerance = 1e-13;
    options.restarts_max = 8;
    SCOPED_TRACE(seed);
    const Solved result = solved(a, b, options);
    expect_true(a, b, result);
    const double truth = residual_in_many_digits(a, b, result.x);
    EXPECT_GE(result.info.relative_residual, truth * (1 - 1e-10));
    if (result.info.ok) {
      EXPECT_LE(truth, 1e-13 * (1 + 1e-10));
    }
  }
}

/// Elements of 10 kinds that are not symmetric.
double unsymmetric_element(std::uint64_t kind, std::int64_t i, std::int64_t j, std::int64_t n,
                           const test::Draw& draw) {
  const double convection = i == j ? 2.2 : i == j + 1 ? -1.1 : j == i + 1 ? -0.9 : 0;
  const double scattered = draw.uniform(100 * i + j) * static_cast<double>(n) < 4
                               ? draw.normal(10'000 + 100 * i + j)
                               : 0.0;
  const double dominated =
      scattered + (i == j ? static_cast<double>(1 + draw.integer(200 + i, 3)) : 0.0);
  const auto row = [&](std::int64_t k) { return draw.size(300 + k, -8, 8); };
  switch (kind) {
    case 0: return dominated;
    case 1: return convection * row(i);
    case 2: return convection * row(j);
    case 3: return convection * row(i) * row(j);
    case 4: return i == draw.integer(1, n) && n > 1 ? 0.0 : dominated;  // singular
    case 5: return i == j ? 1 + 3 * draw.integer(400 + i, 3) : 0.0;
    case 6:
      return std::pow(0.1 + 0.9 * static_cast<double>(i) / static_cast<double>(n),
                      static_cast<double>(n - 1 - j));
    case 7: return dominated * draw.size(20'000 + 100 * i + j, -6, 6);
    case 8: return convection + (i == j && draw.uniform(500 + i) < 0.1 ? row(i) * 1e8 : 0.0);
    default: return 1 / (draw.uniform(600 + i) + draw.uniform(700 + j) + 1e-3);
  }
}

/// A matrix of the kinds above, or a symmetric one, times a power of two.
SparseMatrix structured_matrix(std::uint64_t seed) {
  const test::Draw draw{random_bits(95, seed)};
  const test::Symmetric symmetric = test::symmetric_matrix(seed / 2, 40);
  const std::int64_t n = seed % 2 == 0 ? symmetric.n : 1 + draw.integer(0, 40);
  const bool far = seed % 2 == 1 && draw.uniform(2) < 0.3;
  const int exponent = far ? static_cast<int>(draw.integer(3, 1600) - 800) : 0;
  test::Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double x =
          seed % 2 == 0 ? symmetric(i, j) : unsymmetric_element(seed / 2 % 10, i, j, n, draw);
      if (x != 0 || i == j) entries.add(i, j, std::ldexp(x, exponent));
    }
  }
  return entries.matrix(n);
}

/// Whether it was solved.
bool expect_true_of_structure(std::uint64_t seed) {
  const test::Draw draw{random_bits(96, seed)};
  const SparseMatrix a = structured_matrix(seed);
  std::vector<double> b(static_cast<std::size_t>(a.rows));
  if (draw.uniform(0) < 0.4) b = test::row_sums(a);
  const int exponent = draw.uniform(1) < 0.3 ? static_cast<int>(draw.integer(2, 600) - 300) : 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!std::isfinite(b[i]) || b[i] == 0) b[i] = draw.normal(10 + static_cast<std::int64_t>(i));
    const double scaled = std::ldexp(b[i], exponent);
    if (std::isfinite(scaled)) b[i] = scaled;
  }
  GmresOptions options =
      with(draw.uniform(3) < 0.3 ? 4 : 1, 4 + draw.integer(4, 40), QrMethod::automatic);
  options.restarts_max = 8;
  options.tolerance = draw.size(5, -14, -4);
  options.balance = draw.uniform(6) < 0.4;
  if (draw.uniform(7) < 0.2) options.precision = Element::fp32;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Solved result = solved(a, b, options);
  if (std::ranges::all_of(b, [](double x) { return x == 0; })) return result.info.ok;
  expect_true(a, b, result);
  if (!result.info.ok) return false;
  EXPECT_LE(residual_in_many_digits(a, b, result.x), options.tolerance * (1 + 1e-10));
  return true;
}

TEST(GmresCertificate, IsTrueOfStructures) {
  const std::uint64_t cases = test::campaign(2000, 48, 24);
  std::uint64_t solved_cases = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed)
    solved_cases += expect_true_of_structure(seed) ? 1 : 0;
  EXPECT_GT(solved_cases, cases / 4);
}

/// The space of the scaled system ends when that of A and b as given is solved.
TEST(GmresCertificate, WhatIsSolvedHasNoReasonWhyNot) {
  for (const std::uint64_t seed : {264, 322}) EXPECT_TRUE(expect_true_of_structure(seed)) << seed;
}

}  // namespace
}  // namespace strata
