// What is said of solutions, log-determinants and variances of sparse systems, in fp64 and with
// factors in fp32; beside Cholesky in long doubles and in 320 bits.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "strata/error.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/options.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/epsilon.hpp"
#include "tests/support/exact_symmetric.hpp"

namespace strata {
namespace {

using test::DenseOracle;
using test::in_units;
using test::kEpsilon;
using test::options_in;

/// For residuals, which cancel all but the last digits of their terms.
__extension__ using Quad = __float128;

MatrixView<double> columns_of(std::vector<double>& x, std::int64_t n) {
  return {x.data(), n, std::ssize(x) / std::max<std::int64_t>(n, 1), std::max<std::int64_t>(n, 1)};
}
MatrixView<const double> columns_of(const std::vector<double>& x, std::int64_t n) {
  return {x.data(), n, std::ssize(x) / std::max<std::int64_t>(n, 1), std::max<std::int64_t>(n, 1)};
}

/// Diagonally dominant by a margin that makes it as ill-conditioned as it says, in units.
SparseMatrix random_matrix(std::uint64_t seed, double margin, double units) {
  const auto n = static_cast<std::int64_t>(1 + random_bits(61, seed) % 40);
  SparseMatrix a = test::with_values(
      test::random_pattern(n, 0.15, seed, static_cast<test::Give>(seed % 3)), seed, margin);
  in_units(a, [&](std::int64_t i) {
    return std::ldexp(1.0, static_cast<int>(units * (2 * random_uniform(seed + 77, at(i)) - 1)));
  });
  return a;
}

struct Errors {
  double normwise = 0;
  double componentwise = 0;
  double forward = 0;
};

Errors errors_of(const std::vector<double>& full, const DenseOracle& oracle, const double* b,
                 const double* x) {
  const std::int64_t n = oracle.n;
  Errors e;
  std::vector<long double> r(at(n));
  long double norm = 0, of_x = 0, of_b = 0, of_r = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    long double terms = std::abs(static_cast<long double>(b[i]));
    long double row = 0;
    Quad left = b[i];
    for (std::int64_t j = 0; j < n; ++j) {
      const long double value = full[at(i + j * n)];
      left -= static_cast<Quad>(full[at(i + j * n)]) * static_cast<Quad>(x[j]);
      terms += std::abs(value * x[j]);
      row += std::abs(value);
    }
    r[at(i)] = static_cast<long double>(left);
    norm = std::max(norm, row);
    of_x = std::max(of_x, std::abs(static_cast<long double>(x[i])));
    of_b = std::max(of_b, std::abs(static_cast<long double>(b[i])));
    of_r = std::max(of_r, std::abs(r[at(i)]));
    if (r[at(i)] != 0)
      e.componentwise = std::max(e.componentwise, static_cast<double>(std::abs(r[at(i)]) / terms));
  }
  e.normwise = of_r == 0 ? 0 : static_cast<double>(of_r / (norm * of_x + of_b));
  long double off = 0;
  for (const long double d : oracle.solve(r)) off = std::max(off, std::abs(d));
  e.forward = off == 0 ? 0 : static_cast<double>(off / of_x);
  return e;
}

TEST(SparseCertificate, IsNeverBetterThanTheTruth) {
  for (const Element precision : {Element::fp64, Element::fp32}) {
    std::uint64_t refined = 0;
    const std::uint64_t cases = test::campaign(500, 60, 20);
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
      SCOPED_TRACE(testing::Message() << to_string(precision) << ' ' << seed);
      const bool single = precision == Element::fp32;
      const SparseMatrix a = random_matrix(
          seed, std::pow(10.0, -(single ? 4 : 10) * random_uniform(62, seed)), seed % 2 * 9.0);
      const std::int64_t n = a.rows;
      std::vector<double> b(at(2 * n));
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_normal(63 + seed, i);
      std::vector<double> x(b.size());
      const Certificate c =
          solve(a, columns_of(std::as_const(b), n), columns_of(x, n), options_in(precision))
              .certificate;
      const std::vector<double> full = test::dense_of(a);
      const DenseOracle oracle(full, n);
      ASSERT_TRUE(c.factor.ok);
      ASSERT_EQ(oracle.bad_column, -1);
      if (numerically_singular(c.scaled_condition, precision)) continue;
      Errors worst;
      for (std::int64_t k = 0; k < 2; ++k) {
        const Errors e = errors_of(full, oracle, b.data() + k * n, x.data() + k * n);
        worst = {std::max(worst.normwise, e.normwise),
                 std::max(worst.componentwise, e.componentwise),
                 std::max(worst.forward, e.forward)};
      }
      EXPECT_LE(worst.normwise, c.backward_error);
      EXPECT_LE(worst.componentwise, c.componentwise_backward_error);
      EXPECT_NEAR(c.backward_error, worst.normwise, 1e-3 * kEpsilon);
      EXPECT_NEAR(c.componentwise_backward_error, worst.componentwise, 1e-3 * kEpsilon);
      EXPECT_LE(c.componentwise_backward_error, 4 * kEpsilon) << "as far as fp64 goes";
      EXPECT_GE(c.forward_error * (1 + 1e-6), worst.forward);
      EXPECT_LE(c.forward_error, 10 * kEpsilon * c.scaled_condition) << "and says something";
      refined += c.refinement_steps > 0 ? 1 : 0;
    }
    if (precision == Element::fp32) {
      EXPECT_GT(refined, cases * 2 / 3);
    }
  }
}

/// A stiff part beside rows that hold their own value, as finite elements with Dirichlet rows: a
/// norm sees nothing of a solution that has floats' digits there.
TEST(SparseCertificate, SeesRowsThatNormsDoNot) {
  SparseMatrix a = test::with_values(test::grid(12, 10, 1), 4, 1e-3);
  const std::int64_t n = a.rows;
  const auto held = [](std::int64_t i) { return i % 12 == 0; };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      double& value = a.value[at(k)];
      if (held(i) || held(j))
        value = i == j ? 1 : 0;
      else
        value *= 1e9;
    }
  }
  std::vector<double> b(at(n));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_normal(2, i);
  const std::vector<double> full = test::dense_of(a);
  const DenseOracle oracle(full, n);
  const SparseCholesky factor(a, options_in(Element::fp32));
  std::vector<double> x = b;
  factor.solve(columns_of(x, n));
  const Errors rough = errors_of(full, oracle, b.data(), x.data());
  EXPECT_LT(rough.normwise, 4 * kEpsilon) << "a norm is content";
  EXPECT_GT(rough.componentwise, 1e6 * kEpsilon);
  const Certificate c = refine(factor, a, columns_of(std::as_const(b), n), columns_of(x, n));
  EXPECT_GE(c.refinement_steps, 1);
  EXPECT_LE(c.componentwise_backward_error, 4 * kEpsilon);
  EXPECT_LE(errors_of(full, oracle, b.data(), x.data()).componentwise, 4 * kEpsilon);
  EXPECT_TRUE(std::isnan(c.forward_error)) << "nobody asked";
  const std::vector<long double> exact = oracle.solve({b.begin(), b.end()});
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_NEAR(x[at(i)], static_cast<double>(exact[at(i)]), 1e-12 * std::abs(x[at(i)])) << i;
}

TEST(SparseCertificate, ErrorsOfFactorsHoldAndSaySomething) {
  for (const Element precision : {Element::fp64, Element::fp32}) {
    double most_of_logarithm = 0;
    double most_of_inverse = 0;
    const std::uint64_t cases = test::campaign(500, 60, 20);
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
      SCOPED_TRACE(testing::Message() << to_string(precision) << ' ' << seed);
      const bool single = precision == Element::fp32;
      const double margin = std::pow(10.0, -(single ? 3 : 9) * random_uniform(64, seed));
      const SparseMatrix a = random_matrix(seed + 500, margin, seed % 2 * 9.0);
      const SparseCholesky factor(a, options_in(precision));
      ASSERT_TRUE(factor.info().ok);
      const DenseOracle oracle(test::dense_of(a), a.rows);
      const FactorErrors told = factor_errors(factor, a);
      EXPECT_LE(
          std::abs(static_cast<double>(factor.info().log_determinant - oracle.log_determinant)),
          told.log_determinant);
      double worst = 0;
      const std::vector<double> variances = factor.inverse_diagonal();
      for (std::int64_t i = 0; i < a.rows; ++i) {
        const long double exact = oracle.inverse_column(i)[at(i)];
        worst = std::max(worst, static_cast<double>(std::abs(variances[at(i)] - exact) / exact));
      }
      EXPECT_LE(worst, told.inverse);
      const double unit = single ? 0x1p-24 : 0x1p-53;
      const double condition = factor.scaled_condition(a);
      most_of_logarithm = std::max(most_of_logarithm, told.log_determinant / unit / condition);
      most_of_inverse = std::max(most_of_inverse, told.inverse / unit / condition);
    }
    EXPECT_LT(most_of_logarithm, 1000);
    EXPECT_LT(most_of_inverse, 100);
  }
}

SparseMatrix lower_triangle_of(const test::Symmetric& a) {
  std::vector<std::int64_t> row, col;
  std::vector<double> value;
  for (std::int64_t i = 0; i < a.n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      if (a(i, j) == 0 && i != j) continue;
      row.push_back(i);
      col.push_back(j);
      value.push_back(a(i, j));
    }
  }
  return sparse_from_entries(a.n, a.n, row, col, value);
}

bool all_finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

class SparseCertificateOf : public testing::TestWithParam<Element> {};
INSTANTIATE_TEST_SUITE_P(Precisions, SparseCertificateOf,
                         testing::Values(Element::fp64, Element::fp32),
                         [](const auto& info) { return std::string(to_string(info.param)); });

/// Status 0 of `strata solve` with a sparse matrix.
bool is_solved(const Certificate& c, std::int64_t n) {
  const double promised = 4 * std::sqrt(static_cast<double>(n)) * kEpsilon;
  return c.factor.ok && !numerically_singular(c.scaled_condition, c.precision) &&
         c.backward_error <= promised &&
         (c.componentwise_backward_error <= promised || c.forward_error <= promised);
}

/// Whether f refuses numbers that floats do not hold.
template <class F>
bool refused(Element precision, F&& f) {
  if (precision == Element::fp64) {
    f();
    return false;
  }
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::input)) << error.what();
    return true;
  }
  return false;
}

/// None where A is refused or is not positive definite.
std::optional<SparseCholesky> factor_of(const SparseMatrix& a, Element precision) {
  std::optional<SparseCholesky> made;
  if (refused(precision, [&] { made.emplace(a, options_in(precision)); })) return std::nullopt;
  if (!made->info().ok) return std::nullopt;
  return made;
}

bool expect_true_solution(std::uint64_t seed, Element precision) {
  const test::Symmetric full = test::symmetric_matrix(seed);
  const std::int64_t n = full.n;
  const SparseMatrix a = lower_triangle_of(full);
  std::vector<double> b = test::right_hand_side(full, 2 * seed);
  const std::vector<double> more = test::right_hand_side(full, 2 * seed + 1);
  b.insert(b.end(), more.begin(), more.end());
  std::vector<double> x(b.size());
  Certificate c;
  const bool none = refused(precision, [&] {
    c = solve(a, columns_of(std::as_const(b), n), columns_of(x, n), options_in(precision))
            .certificate;
  });
  if (none || !c.factor.ok) return false;
  if (!all_finite(x)) {
    EXPECT_TRUE(std::isnan(c.backward_error)) << c.backward_error;
    EXPECT_FALSE(std::isfinite(c.forward_error)) << c.forward_error;
    return false;
  }
  const bool solved = is_solved(c, n);
  const test::ExactCholesky exact(full);
  EXPECT_TRUE(exact.definite() || !solved) << c.scaled_condition;
  if (!exact.definite()) return false;
  for (const std::int64_t column : {0, 1}) {
    const test::SolutionErrors errors =
        test::solution_errors(full, exact, &b[at(column * n)], &x[at(column * n)]);
    EXPECT_LE(errors.normwise, c.backward_error);
    EXPECT_LE(errors.componentwise, c.componentwise_backward_error);
    EXPECT_LE(errors.forward, c.forward_error * (1 + 1e-6)) << c.scaled_condition;
  }
  return solved;
}

/// One right-hand side, and what is true of x beside what is said.
struct Told {
  Certificate certificate;
  test::SolutionErrors truth;
};
Told told_of(const test::Symmetric& full, const std::vector<double>& b, Element precision) {
  std::vector<double> x(b.size());
  Told told;
  told.certificate = solve(lower_triangle_of(full), columns_of(b, full.n), columns_of(x, full.n),
                           options_in(precision))
                         .certificate;
  if (told.certificate.factor.ok)
    told.truth = test::solution_errors(full, test::ExactCholesky(full), b.data(), x.data());
  return told;
}

/// A backward error of a few ulps row by row leaves no digit of such an x: it is refined on. Floats
/// do not hold such units.
TEST(SparseCertificate, SolutionsInWideUnitsAreRefined) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const test::Symmetric full = test::in_wide_units(seed, 8, 18);
    const Told told = told_of(full, test::row_sums(full), Element::fp64);
    ASSERT_TRUE(told.certificate.factor.ok);
    EXPECT_LT(told.certificate.scaled_condition, 100);
    EXPECT_LE(told.truth.forward, told.certificate.forward_error) << seed;
    EXPECT_LE(told.certificate.forward_error, solution_error_wanted(Element::fp64)) << seed;
  }
}

/// What corrections shrink by says nothing of directions that the factor does not have.
TEST_P(SparseCertificateOf, NothingIsSaidBeyondTheFactor) {
  int unknown = 0;
  // At which order a factor is there and knows nothing depends on how the BLAS sums: all of them.
  for (std::int64_t n = 8; n <= 48; ++n) {
    const test::Symmetric full = test::moler(n);
    const Told told = told_of(full, test::row_sums(full), GetParam());
    if (!told.certificate.factor.ok) continue;
    EXPECT_LE(told.truth.forward, told.certificate.forward_error * (1 + 1e-6)) << n;
    unknown += std::isinf(told.certificate.forward_error) ? 1 : 0;
  }
  EXPECT_GT(unknown, 0);
}

/// Where the range of A takes digits of its small elements, bounds say so.
TEST(SparseCertificate, OfDigitsThatTheRangeTakes) {
  int lost = 0;
  for (const std::vector<double>& diagonal : {std::vector<double>{1e300, 1e-20},
                                              {1e280, 1e-40},
                                              {1e308, 1e-10},
                                              {1e290, 1e-29, 1, 1},
                                              {3e285, 1e-30, 7, 1},
                                              {1e300, 1e290, 3e280}}) {
    const auto n = std::ssize(diagonal);
    const test::Symmetric full(n, [&](auto i, auto j) { return i == j ? diagonal[at(i)] : 0.0; });
    const SparseMatrix a = lower_triangle_of(full);
    const std::optional<SparseCholesky> factor = factor_of(a, Element::fp64);
    if (!factor) continue;
    const test::ExactCholesky exact(full);
    const FactorErrors told = factor_errors(*factor, a);
    const auto off =
        static_cast<double>(std::abs(factor->info().log_determinant - exact.log_determinant()));
    EXPECT_LE(off, told.log_determinant);
    lost += told.log_determinant > 1e-9 ? 1 : 0;
    const Told solution = told_of(full, diagonal, Element::fp64);
    EXPECT_LE(solution.truth.forward, solution.certificate.forward_error);
    EXPECT_LE(solution.truth.componentwise, solution.certificate.componentwise_backward_error);
  }
  EXPECT_GT(lost, 0);
}

TEST_P(SparseCertificateOf, SolutionsAreTrueOfStructures) {
  const std::uint64_t cases = test::campaign(2000, 80, 32);
  std::uint64_t solved = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(test::symmetric_matrix(seed).kind);
    solved += expect_true_solution(seed, GetParam()) ? 1 : 0;
  }
  EXPECT_GT(solved, cases / 4);
}

/// Status 0 of `strata logdet` and `strata variances`: whether what was lost in a factor is known.
bool is_told(const SparseCholesky& factor, const SparseMatrix& a, const FactorErrors& told) {
  if (!std::isfinite(told.inverse)) return false;
  return factor.precision() == Element::fp32 ||
         !numerically_singular(factor.scaled_condition(a), factor.precision());
}

TEST_P(SparseCertificateOf, LogDeterminantsAreTrueOfStructures) {
  const std::uint64_t cases = test::campaign(2000, 96, 32);
  std::uint64_t known = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const test::Symmetric full = test::symmetric_matrix(seed);
    SCOPED_TRACE(full.kind);
    const SparseMatrix a = lower_triangle_of(full);
    const std::optional<SparseCholesky> made = factor_of(a, GetParam());
    if (!made) continue;
    const SparseCholesky& factor = *made;
    const FactorErrors told = factor_errors(factor, a);
    const bool ok = is_told(factor, a, told);
    const test::ExactCholesky exact(full);
    EXPECT_TRUE(exact.definite() || !ok) << told.inverse;
    if (!exact.definite()) continue;
    const long double off = factor.info().log_determinant - exact.log_determinant();
    EXPECT_LE(static_cast<double>(std::abs(off)), told.log_determinant);
    known += ok ? 1 : 0;
  }
  EXPECT_GT(known, cases / 4);
}

TEST_P(SparseCertificateOf, VariancesAreTrueOfStructures) {
  const std::uint64_t cases = test::campaign(2000, 80, 32);
  std::uint64_t known = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const test::Symmetric full = test::symmetric_matrix(seed + 10'000);
    SCOPED_TRACE(full.kind);
    const SparseMatrix a = lower_triangle_of(full);
    const std::optional<SparseCholesky> made = factor_of(a, GetParam());
    if (!made) continue;
    const SparseCholesky& factor = *made;
    const std::vector<double> variances = factor.inverse_diagonal();
    const FactorErrors told = factor_errors(factor, a);
    const bool ok = is_told(factor, a, told) && all_finite(variances);
    const test::ExactCholesky exact(full);
    EXPECT_TRUE(exact.definite() || !ok) << told.inverse;
    if (!exact.definite() || !all_finite(variances)) continue;
    const std::vector<test::Real> truth = exact.variances();
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const test::Real off = abs(test::Real(variances[i]) - truth[i]) / truth[i];
      EXPECT_LE(static_cast<double>(off), told.inverse) << i;
    }
    known += ok ? 1 : 0;
  }
  EXPECT_GT(known, cases / 4);
}

/// A weighted graph without a grounded node has the vector of ones in its kernel, but for rounding.
TEST(SparseCertificate, TellsSingularMatrices) {
  for (const Element precision : {Element::fp64, Element::fp32}) {
    int passed = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      SparseMatrix a =
          test::with_values(test::grid(7, 3 + static_cast<std::int64_t>(seed % 5), 1), seed, 0);
      std::vector<double> sum(at(a.rows));
      for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
          double& value = a.value[at(k)];
          const std::int64_t j = a.column[at(k)];
          if (j == i) continue;
          ASSERT_LT(j, i) << "one triangle";
          value = -std::abs(value);
          sum[at(i)] -= value;
          sum[at(j)] -= value;
        }
      for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
          if (a.column[at(k)] == i) a.value[at(k)] = sum[at(i)];
      if (seed % 2 == 0)
        in_units(a, [](std::int64_t i) { return std::ldexp(1.0, static_cast<int>(i % 30)); });
      const SparseCholesky factor(a, options_in(precision));
      if (!factor.info().ok) continue;
      ++passed;
      EXPECT_TRUE(numerically_singular(factor.scaled_condition(a), precision));
      // Doubles may be eliminated so exactly that what was measured is right all the same.
      if (precision == Element::fp32) {
        EXPECT_GT(factor_errors(factor, a).inverse, 0.5);
      }
    }
    EXPECT_GT(passed, 5);
  }
}

/// Powers of two change nothing, wherever in the range of doubles the numbers are; not of saved
/// factors either.
TEST(SparseCertificate, AtTheEndsOfTheRange) {
  const SparseMatrix plain = test::with_values(test::grid(6, 5, 2), 3, 0.1);
  const std::int64_t n = plain.rows;
  std::vector<double> b(at(n));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_normal(9, i);
  const std::string directory =
      (std::filesystem::temp_directory_path() / "strata_range_test").string();
  for (const Element precision : {Element::fp64, Element::fp32}) {
    const SparseCholesky reference(plain, options_in(precision));
    std::vector<double> x = b;
    const Certificate known =
        solve(plain, columns_of(std::as_const(b), n), columns_of(x, n), options_in(precision))
            .certificate;
    const std::vector<double> variances = reference.inverse_diagonal();
    for (const int exponent : {-1000, -960, -400, 100, 400, 1018}) {
      if (precision == Element::fp32 && exponent == 100) continue;  // as good, with other bits
      SCOPED_TRACE(testing::Message() << to_string(precision) << ' ' << exponent);
      SparseMatrix a = plain;
      for (double& value : a.value) value = std::ldexp(value, exponent);
      std::vector<double> scaled = b;
      for (double& value : scaled) value = std::ldexp(value, exponent);
      std::vector<double> y(at(n));
      const Certificate c =
          solve(a, columns_of(std::as_const(scaled), n), columns_of(y, n), options_in(precision))
              .certificate;
      ASSERT_TRUE(c.factor.ok);
      EXPECT_EQ(c.scaled_condition, known.scaled_condition);
      EXPECT_EQ(c.componentwise_backward_error, known.componentwise_backward_error);
      EXPECT_EQ(c.forward_error, known.forward_error);
      EXPECT_EQ(x, y);
      SparseCholesky factor(a, options_in(precision));
      EXPECT_NEAR(
          factor.info().log_determinant,
          reference.info().log_determinant + static_cast<double>(n) * exponent * std::log(2.0),
          1e-9 * static_cast<double>(n));
      EXPECT_EQ(factor_errors(factor, a).inverse, factor_errors(reference, plain).inverse);
      for (const bool saved : {false, true}) {
        if (saved) {
          factor.save(directory);
          factor = SparseCholesky::open(directory, options_in(precision));
        }
        const std::vector<double> v = factor.inverse_diagonal();
        for (std::size_t i = 0; i < v.size(); ++i)
          EXPECT_EQ(v[i], std::ldexp(variances[i], -exponent));
        // L and its transpose, one after the other.
        std::vector<double> z = scaled;
        factor.solve_lower(columns_of(z, n));
        factor.solve_lower_transposed(columns_of(z, n));
        std::vector<double> whole = scaled;
        factor.solve(columns_of(whole, n));
        for (std::size_t i = 0; i < z.size(); ++i)
          EXPECT_NEAR(z[i], whole[i], 1e-5 * std::abs(whole[i]) + 1e-300);
      }
    }
  }
  std::filesystem::remove_all(directory);
}

TEST(SparseCertificate, NumbersThatLeaveTheRange) {
  SparseMatrix a = test::with_values(test::grid(4, 4, 1), 3, 0.1);
  for (double& value : a.value) value = std::ldexp(value, -700);
  const std::int64_t n = a.rows;
  std::vector<double> b(at(n), std::ldexp(1.0, 700));
  std::vector<double> x(at(n));
  const Certificate c =
      solve(a, columns_of(std::as_const(b), n), columns_of(x, n), options_in(Element::fp64))
          .certificate;
  EXPECT_TRUE(c.factor.ok);
  EXPECT_TRUE(std::isnan(c.backward_error));
  EXPECT_FALSE(std::isfinite(c.forward_error));
}

}  // namespace
}  // namespace strata
