// What solve() says of dense systems: errors row by row, condition, a bound of the error of x, and
// systems near the ends of the range; beside Cholesky in long doubles and in 320 bits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "strata/cholesky.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/exact_symmetric.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata {
namespace {

using test::DenseOracle;
using test::Matrix;

template <class T>
struct LinearSystem {
  Matrix<T> a;
  Matrix<T> b;
};

CholeskyOptions host_options() {
  CholeskyOptions options;
  options.run.devices = "host";
  options.run.device_memory_bytes = 4 << 20;
  options.tile = 16;
  return options;
}

/// Symmetric positive definite with eigenvalues from 1 to 10^−digits, its rows in units of up to
/// 10^±units: random reflections of a graded diagonal.
template <class T>
LinearSystem<T> random_problem(std::int64_t n, double digits, double units, std::uint64_t seed) {
  std::vector<double> full(at(n * n));
  for (std::int64_t i = 0; i < n; ++i)
    full[at(i + i * n)] =
        std::pow(10.0, n > 1 ? -digits * static_cast<double>(i) / static_cast<double>(n - 1) : 0);
  for (std::uint64_t k = 0; k < 3; ++k) {
    std::vector<double> v(at(n));
    double square = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      v[at(i)] = random_normal(seed + k, at(i));
      square += v[at(i)] * v[at(i)];
    }
    for (const bool rows : {true, false}) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        const auto element = [&](std::int64_t i) -> double& {
          return rows ? full[at(i + j * n)] : full[at(j + i * n)];
        };
        for (std::int64_t i = 0; i < n; ++i) sum += v[at(i)] * element(i);
        for (std::int64_t i = 0; i < n; ++i) element(i) -= 2 * sum / square * v[at(i)];
      }
    }
  }
  const auto unit = [&](std::int64_t i) {
    return std::pow(10.0, units * (2 * random_uniform(seed + 9, at(i)) - 1) / 2);
  };
  LinearSystem<T> p{test::make_matrix<T>(n, n,
                                         [&](auto i, auto j) {
                                           return full[at(std::max(i, j) + std::min(i, j) * n)] *
                                                  unit(i) * unit(j);
                                         }),
                    test::make_matrix<T>(n, 2, [&](auto i, auto j) {
                      return random_normal(seed + 11, at(i + j * n)) / unit(i);
                    })};
  return p;
}

/// What is true of x, by an oracle for the same numbers.
struct SolutionTruth {
  bool definite = false;
  double componentwise = 0;
  double forward = 0;
  double condition = 0;
};

template <class T>
SolutionTruth truth_of(const LinearSystem<T>& p, const Matrix<T>& x) {
  const std::int64_t n = p.a.rows;
  const DenseOracle oracle({p.a.data.begin(), p.a.data.end()}, n);
  SolutionTruth t;
  t.definite = oracle.bad_column < 0;
  if (!t.definite) return t;
  for (std::int64_t c = 0; c < x.cols; ++c) {
    std::vector<long double> r(at(n));
    for (std::int64_t i = 0; i < n; ++i) {
      long double terms = std::abs(static_cast<long double>(p.b(i, c)));
      r[at(i)] = p.b(i, c);
      for (std::int64_t j = 0; j < n; ++j) {
        const long double term = static_cast<long double>(p.a(i, j)) * x(j, c);
        r[at(i)] -= term;
        terms += std::abs(term);
      }
      if (r[at(i)] != 0)
        t.componentwise =
            std::max(t.componentwise, static_cast<double>(std::abs(r[at(i)]) / terms));
    }
    const std::vector<long double> error = oracle.solve(r);
    long double largest = 0;
    long double size = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      largest = std::max(largest, std::abs(error[at(i)]));
      size = std::max(size, std::abs(static_cast<long double>(x(i, c))));
    }
    if (largest > 0) t.forward = std::max(t.forward, static_cast<double>(largest / size));
  }
  long double norm = 0;
  long double inverse = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const std::vector<long double> column = oracle.inverse_column(j);
    long double sum = 0;
    long double inverse_sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const long double scale = std::sqrt(static_cast<long double>(p.a(i, i)) * p.a(j, j));
      sum += std::abs(p.a(i, j)) / scale;
      inverse_sum += std::abs(column[at(i)]) * scale;
    }
    norm = std::max(norm, sum);
    inverse = std::max(inverse, inverse_sum);
  }
  t.condition = static_cast<double>(norm * inverse);
  return t;
}

template <class T>
class SolveCertificate : public testing::Test {};
using Precisions = testing::Types<double, float>;
TYPED_TEST_SUITE(SolveCertificate, Precisions);

TYPED_TEST(SolveCertificate, IsNeverBetterThanTheTruth) {
  using T = TypeParam;
  const double digits = std::is_same_v<T, double> ? 13 : 5;
  std::uint64_t told = 0;
  const std::uint64_t cases = test::campaign(500, 150, 12);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const auto n = static_cast<std::int64_t>(1 + random_bits(3, seed) % 40);
    const LinearSystem<T> p = random_problem<T>(n, digits * random_uniform(5, seed),
                                                seed % 3 == 0 ? 8.0 : 0.0, 100 * seed);
    Matrix<T> x(n, 2);
    const Certificate c = solve(p.a.view(), p.b.view(), x.view(), host_options()).certificate;
    const SolutionTruth t = truth_of(p, x);
    if (!c.factor.ok || !t.definite) continue;
    // An error of the residual is at most n + 2 roundings of fp64 of the terms.
    const double resolution = static_cast<double>(n + 2) * 0x1p-53;
    EXPECT_NEAR(c.componentwise_backward_error, t.componentwise, resolution) << seed;
    // Long doubles do not tell the error of a refined x.
    const test::Symmetric exact_a(n, [&](auto i, auto j) { return double{p.a(i, j)}; });
    const test::ExactCholesky exact(exact_a);
    for (const std::int64_t column : {0, 1}) {
      const std::vector<double> of_b(p.b.data.begin() + column * n,
                                     p.b.data.begin() + (column + 1) * n);
      const std::vector<double> of_x(x.data.begin() + column * n,
                                     x.data.begin() + (column + 1) * n);
      EXPECT_GE(c.forward_error,
                test::solution_errors(exact_a, exact, of_b.data(), of_x.data()).forward)
          << seed << ": n = " << n;
    }
    const double nearby = 8 * c.scaled_condition * std::numeric_limits<T>::epsilon();
    EXPECT_LE(c.scaled_condition, t.condition * (1 + nearby)) << seed;
    EXPECT_GE(c.scaled_condition, t.condition * (1 - nearby) / 3) << seed;
    told += c.forward_error < 1e-2 ? 1 : 0;
  }
  EXPECT_GT(told, cases * 2 / 3) << "bounds that say something";
}

/// Status 0 of `strata solve`: what it takes beside a factor.
template <class T>
bool is_solved(const Certificate& c, std::int64_t n) {
  const double promised =
      4 * std::sqrt(static_cast<double>(n)) * double{std::numeric_limits<T>::epsilon()};
  return c.factor.ok && !numerically_singular(c.scaled_condition, c.precision) &&
         c.backward_error <= promised;
}

/// One matrix with elements of T, two right-hand sides.
template <class T>
bool expect_true_of_structure(std::uint64_t seed) {
  test::Symmetric a = test::symmetric_matrix(seed, 40, element_of<T>);
  const std::int64_t n = a.n;
  const auto rounded = [](double x) { return static_cast<double>(static_cast<T>(x)); };
  std::transform(a.full.begin(), a.full.end(), a.full.begin(), rounded);
  std::vector<double> b;
  for (const std::uint64_t column : {0, 1}) {
    const std::vector<double> x = test::right_hand_side(a, 2 * seed + column);
    std::transform(x.begin(), x.end(), std::back_inserter(b), rounded);
  }
  if (!std::all_of(b.begin(), b.end(), [](double x) { return std::isfinite(x); })) return false;
  const auto of_a = test::make_matrix<T>(n, n, [&](auto i, auto j) { return a(i, j); });
  const auto of_b = test::make_matrix<T>(n, 2, [&](auto i, auto j) { return b[at(i + j * n)]; });
  Matrix<T> x(n, 2);
  const Certificate c = solve(of_a.view(), of_b.view(), x.view(), host_options()).certificate;
  if (!c.factor.ok) return false;
  const std::vector<double> wide(x.data.begin(), x.data.end());
  if (!std::all_of(wide.begin(), wide.end(), [](double e) { return std::isfinite(e); })) {
    EXPECT_TRUE(std::isnan(c.backward_error)) << c.backward_error;
    EXPECT_FALSE(std::isfinite(c.forward_error)) << c.forward_error;
    return false;
  }
  const bool solved = is_solved<T>(c, n);
  const test::ExactCholesky exact(a);
  EXPECT_TRUE(exact.definite() || !solved) << c.scaled_condition;
  if (!exact.definite()) return false;
  // An error of the residual is at most n + 2 roundings of fp64 of the terms.
  const double resolution = static_cast<double>(n + 2) * 0x1p-53;
  for (const std::int64_t column : {0, 1}) {
    const test::SolutionErrors errors =
        test::solution_errors(a, exact, &b[at(column * n)], &wide[at(column * n)]);
    EXPECT_LE(errors.normwise, c.backward_error + resolution);
    EXPECT_LE(errors.componentwise, c.componentwise_backward_error + resolution);
    EXPECT_LE(errors.forward, c.forward_error) << c.scaled_condition;
  }
  return solved;
}

TYPED_TEST(SolveCertificate, IsTrueOfStructures) {
  const std::uint64_t cases = test::campaign(2000, 96, 32);
  std::uint64_t solved = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(test::symmetric_matrix(seed, 40, element_of<TypeParam>).kind);
    solved += expect_true_of_structure<TypeParam>(seed) ? 1 : 0;
  }
  EXPECT_GT(solved, cases / 4);
}

/// A and b in doubles, x in T, and what is true of it beside what is said.
template <class T>
void expect_true_of_doubles(const test::Symmetric& a, const std::vector<double>& b, double wanted) {
  const std::int64_t n = a.n;
  const auto of_a = test::make_matrix<double>(n, n, [&](auto i, auto j) { return a(i, j); });
  const auto of_b = test::make_matrix<double>(n, 1, [&](auto i, auto) { return b[at(i)]; });
  Matrix<T> x(n, 1);
  const Certificate c = solve(of_a.view(), of_b.view(), x.view(), host_options()).certificate;
  if (!c.factor.ok) return;
  const std::vector<double> wide(x.data.begin(), x.data.end());
  if (!std::all_of(wide.begin(), wide.end(), [](double e) { return std::isfinite(e); })) {
    EXPECT_TRUE(std::isnan(c.backward_error)) << c.backward_error;
    EXPECT_FALSE(std::isfinite(c.forward_error)) << c.forward_error;
    return;
  }
  const test::SolutionErrors errors =
      test::solution_errors(a, test::ExactCholesky(a), b.data(), wide.data());
  const double resolution = static_cast<double>(n + 2) * 0x1p-53;
  EXPECT_EQ(c.precision, element_of<T>);
  EXPECT_LE(errors.normwise, c.backward_error + resolution);
  EXPECT_LE(errors.componentwise, c.componentwise_backward_error + resolution);
  EXPECT_LE(errors.forward, c.forward_error);
  EXPECT_LE(c.forward_error, wanted) << c.scaled_condition;
}

/// An x in floats is one of the A and b that are given, not of floats near them.
TEST(SolveCertificate, InFloatsIsOneOfTheDoublesThatAreGiven) {
  const double none = std::numeric_limits<double>::infinity();
  const auto expect_close = [](const std::vector<double>& full, const std::vector<double>& b) {
    const auto n = std::ssize(b);
    expect_true_of_doubles<float>({n, [&](auto i, auto j) { return full[at(i + j * n)]; }}, b,
                                  1e-2);
  };
  expect_close({1, 0, 0, 1}, {0.1, 0.3});
  expect_close({1.1, 0.1, 0.1, 1.3}, {0.7, 0.9});
  expect_close({1.1, 1.0999, 1.0999, 1.1}, {0.7, 0.9});
  expect_close({1e10, 0.1, 0.2, 0.1, 1, 0, 0.2, 0, 1}, {1.1, 0.7, 0.3});
  for (std::uint64_t seed = 0; seed < test::campaign(2000, 96, 32); ++seed) {
    const test::Symmetric a = test::symmetric_matrix(seed, 30, Element::fp32);
    const std::vector<double> b = test::right_hand_side(a, seed);
    const bool finite =
        std::all_of(b.begin(), b.end(), [](double x) { return std::abs(x) < 1e30; });
    if (finite && test::ExactCholesky(a).definite()) expect_true_of_doubles<float>(a, b, none);
  }
}

/// Elements that mirror each other and differ by rounding: with both triangles x and what is said
/// of it are those of A as it is given.
TEST(SolveCertificate, IsThatOfBothTriangles) {
  std::uint64_t told_apart = 0;
  const std::uint64_t cases = test::campaign(500, 60, 20);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    const auto n = static_cast<std::int64_t>(2 + random_bits(64, seed) % 30);
    const auto [a, b] = random_problem<double>(n, 9 * random_uniform(62, seed), 0, seed);
    std::vector<double> symmetric(at(n * n));
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i)
        symmetric[at(i + j * n)] = a.view()(std::max(i, j), std::min(i, j));
    const std::vector<double> full = test::nearly_symmetric(symmetric, n, 9e-13, seed);
    const std::vector<double> right(b.view().column(0), b.view().column(0) + n);
    std::vector<double> x(at(n));
    const MatrixView<const double> of_a{full.data(), n, n, n};
    const Certificate c =
        solve(of_a, MatrixView<const double>{right.data(), n, 1, n},
              MatrixView<double>{x.data(), n, 1, n}, host_options(), GivenTriangles::both)
            .certificate;
    ASSERT_TRUE(c.factor.ok);
    const test::WideErrors truth = test::wide_errors(full, right, x);
    EXPECT_LE(truth.forward, c.forward_error * (1 + 1e-6));
    EXPECT_NEAR(c.componentwise_backward_error, truth.componentwise,
                static_cast<double>(n + 2) * 0x1p-53);
    EXPECT_LE(c.componentwise_backward_error, static_cast<double>(n + 2) * 0x1p-53);
    told_apart += test::wide_errors(symmetric, right, x).componentwise > 1e-14 ? 1 : 0;
  }
  EXPECT_GT(told_apart, cases / 2) << "the other matrix has another solution";
}

/// Where the range of A takes digits of its small elements, bounds say so.
TEST(SolveCertificate, OfDigitsThatTheRangeTakes) {
  const double none = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& diagonal : {std::vector<double>{1e300, 1e-20},
                                              {1e280, 1e-40},
                                              {1e308, 1e-10},
                                              {1e290, 1e-29, 1, 1},
                                              {3e285, 1e-30, 7, 1},
                                              {1e300, 1e290, 3e280},
                                              {1e300, 1e-300}}) {
    const test::Symmetric a(std::ssize(diagonal),
                            [&](auto i, auto j) { return i == j ? diagonal[at(i)] : 0.0; });
    expect_true_of_doubles<double>(a, diagonal, none);
  }
}

/// Up to conditions that no factor tells.
TEST(SolveCertificate, NothingIsSaidBeyondTheFactor) {
  const double none = std::numeric_limits<double>::infinity();
  for (std::int64_t n = 8; n <= 48; n += test::kSanitized ? 5 : 1) {
    SCOPED_TRACE(n);
    const test::Symmetric a = test::moler(n);
    expect_true_of_doubles<double>(a, test::row_sums(a), none);
    expect_true_of_doubles<float>(a, test::row_sums(a), none);
  }
}

/// A backward error of a few ulps leaves no digit of such an x: it is refined on.
TEST(SolveCertificate, SolutionsInWideUnitsAreRefined) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const test::Symmetric wide = test::in_wide_units(seed, 8, 18);
    expect_true_of_doubles<double>(wide, test::row_sums(wide),
                                   solution_error_wanted(Element::fp64));
    const test::Symmetric narrow = test::in_wide_units(seed, 8, 8);
    expect_true_of_doubles<float>(narrow, test::row_sums(narrow),
                                  solution_error_wanted(Element::fp32));
  }
}

/// Singular matrices that rounding lets pass.
TYPED_TEST(SolveCertificate, TellsSingularMatrices) {
  using T = TypeParam;
  int passed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto n = static_cast<std::int64_t>(3 + random_bits(7, seed) % 40);
    // A graph without a grounded node; the same in other units.
    Matrix<T> a(n, n);
    std::vector<double> sum(at(n));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j + 1; i < n; ++i) {
        if (i != j + 1 && random_uniform(seed, at(i + j * n)) > 0.2) continue;
        a(i, j) = a(j, i) = static_cast<T>(-random_uniform(seed + 1000, at(i + j * n)));
        sum[at(i)] -= a(i, j);
        sum[at(j)] -= a(i, j);
      }
    }
    for (std::int64_t i = 0; i < n; ++i) a(i, i) = static_cast<T>(sum[at(i)]);
    if (seed % 2 == 0) {
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i)
          a(i, j) = std::ldexp(a(i, j), static_cast<int>(i % 20 + j % 20));
    }
    const auto b = test::make_matrix<T>(n, 1, [](auto i, auto) { return std::sin(1.0 + 3.0 * i); });
    Matrix<T> x(n, 1);
    const Certificate c =
        solve(std::as_const(a).view(), b.view(), x.view(), host_options()).certificate;
    if (!c.factor.ok) continue;
    ++passed;
    EXPECT_TRUE(numerically_singular(c.scaled_condition, c.precision)) << c.scaled_condition;
  }
  EXPECT_GT(passed, 5);
}

/// Bad units alone are nothing singular.
TEST(SolveCertificate, UnitsDoNotRaiseTheCondition) {
  Matrix<double> a = test::make_matrix<double>(30, 30, [](auto i, auto j) {
    return (i == j                     ? 2.0
            : i - j == 1 || j - i == 1 ? -0.5
                                       : 0) *
           std::ldexp(1.0, static_cast<int>(20 * (i % 7) + 20 * (j % 7)));
  });
  const auto b = test::make_matrix<double>(30, 1, [](auto i, auto) { return 1.0 + i; });
  Matrix<double> x(30, 1);
  const Certificate c =
      solve(std::as_const(a).view(), b.view(), x.view(), host_options()).certificate;
  EXPECT_LT(c.scaled_condition, 10);
}

/// Powers of two change nothing, wherever in the range the numbers are.
TYPED_TEST(SolveCertificate, AtTheEndsOfTheRange) {
  using T = TypeParam;
  const int most = std::numeric_limits<T>::max_exponent;
  const LinearSystem<T> p = random_problem<T>(37, 2, 0, 5);
  Matrix<T> x(37, 2);
  const Certificate plain = solve(p.a.view(), p.b.view(), x.view(), host_options()).certificate;
  for (const auto& [of_a, of_b] : std::vector<std::pair<int, int>>{{most - 10, most - 10},
                                                                   {-most + 30, -most + 30},
                                                                   {most - 10, 0},
                                                                   {-most / 2, most / 4},
                                                                   {most - 20, most - 12},
                                                                   {-most + 40, -most + 10}}) {
    SCOPED_TRACE(testing::Message() << of_a << ' ' << of_b);
    LinearSystem<T> scaled = p;
    for (T& value : scaled.a.data) value = std::ldexp(value, of_a);
    for (T& value : scaled.b.data) value = std::ldexp(value, of_b);
    for (const T value : scaled.a.data) ASSERT_TRUE(std::isfinite(value));
    Matrix<T> y(37, 2);
    const Certificate c =
        solve(scaled.a.view(), scaled.b.view(), y.view(), host_options()).certificate;
    ASSERT_TRUE(c.factor.ok);
    EXPECT_LE(c.backward_error, plain.backward_error * 1.01);
    EXPECT_NEAR(c.factor.log_determinant, plain.factor.log_determinant + 37 * of_a * std::log(2.0),
                1e-9 * 37 * most);
    for (std::size_t k = 0; k < x.data.size(); ++k)
      EXPECT_EQ(y.data[k], std::ldexp(x.data[k], of_b - of_a)) << k;
  }
}

/// Numbers of few digits: A and b are what they are, and x is as good as ever.
TYPED_TEST(SolveCertificate, OfSubnormalNumbers) {
  using T = TypeParam;
  LinearSystem<T> p = random_problem<T>(30, 1, 0, 6);
  const int down = std::numeric_limits<T>::min_exponent - 12;
  for (T& value : p.a.data) value = std::ldexp(value, down);
  for (T& value : p.b.data) value = std::ldexp(value, down);
  Matrix<T> x(30, 2);
  const Certificate c = solve(p.a.view(), p.b.view(), x.view(), host_options()).certificate;
  ASSERT_TRUE(c.factor.ok);
  EXPECT_LE(c.backward_error, 4 * std::numeric_limits<T>::epsilon());
  // The oracle, too, in the middle of the range: powers of two change no digit.
  for (T& value : p.a.data) value = std::ldexp(value, -down);
  for (T& value : p.b.data) value = std::ldexp(value, -down);
  EXPECT_LE(truth_of(p, x).forward, c.forward_error);
  EXPECT_LE(c.forward_error, 1e4 * std::numeric_limits<T>::epsilon());
}

/// x itself leaves the range, or loses digits at its lower end: that is certified.
TYPED_TEST(SolveCertificate, OfSolutionsThatLeaveTheRange) {
  using T = TypeParam;
  const int most = std::numeric_limits<T>::max_exponent;
  const LinearSystem<T> p = random_problem<T>(20, 1, 0, 8);
  const auto solved = [&](int of_a, int of_b) {
    LinearSystem<T> scaled = p;
    for (T& value : scaled.a.data) value = std::ldexp(value, of_a);
    for (T& value : scaled.b.data) value = std::ldexp(value, of_b);
    Matrix<T> x(20, 2);
    return solve(scaled.a.view(), scaled.b.view(), x.view(), host_options()).certificate;
  };
  const Certificate over = solved(-most / 2, most / 2 + 20);
  EXPECT_TRUE(std::isnan(over.backward_error));
  EXPECT_FALSE(std::isfinite(over.forward_error));
  const Certificate under = solved(most / 2, -most / 2 - 8);  // about 2^−8 of normal numbers
  EXPECT_GT(under.backward_error, 10 * std::numeric_limits<T>::epsilon());
  EXPECT_LT(under.backward_error, 1e4 * std::numeric_limits<T>::epsilon() * 256);
  const Certificate none = solved(most - 10, -most + 30);
  EXPECT_NEAR(none.backward_error, 1, 1e-6) << "x is zero";
}

}  // namespace
}  // namespace strata
