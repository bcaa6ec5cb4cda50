// Hermitian systems, solved and certified, and their log-determinants, beside elimination of the
// parts in 113 bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "scalar/complex.hpp"
#include "strata/cholesky.hpp"
#include "tests/cholesky/hermitian_systems.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/hermitian_oracle.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Complex64;
using test::complex_waves;
using test::HermitianOracle;
using test::Matrix;
using test::Quad;
using test::random_hermitian;
using test::tiled_options;
using test::turned_hilbert;

template <class T>
class ComplexSystem : public ::testing::Test {};
using ComplexSystemTypes = ::testing::Types<Complex128, Complex64>;
TYPED_TEST_SUITE(ComplexSystem, ComplexSystemTypes);

/// Certificate of a system whose elements are those of A, b and x in W.
template <class T, class A, class B>
void expect_certified(const Matrix<A>& a, const Matrix<B>& b, const CholeskyOptions& options,
                      double wanted) {
  Matrix<T> x(b.rows, b.cols);
  const SolveResult result = solve(a.view(), b.view(), x.view(), options);
  const Certificate& c = result.certificate;
  ASSERT_TRUE(c.factor.ok) << a.rows;
  EXPECT_EQ(c.precision, element_of<T>);
  const HermitianOracle oracle(a);
  const double u = double{std::numeric_limits<RealOf<T>>::epsilon()};
  double forward = 0;
  test::HermitianErrors errors;
  for (std::int64_t j = 0; j < b.cols; ++j) {
    const test::HermitianErrors of_column = test::hermitian_errors(a, b, x, j);
    errors.normwise = std::max(errors.normwise, of_column.normwise);
    errors.componentwise = std::max(errors.componentwise, of_column.componentwise);
    forward = std::max(forward, oracle.forward_error(b, x, j));
  }
  // Never below the truth, and no more above it than sums of magnitudes round.
  const double roundings = 1 + 6 * static_cast<double>(a.rows + 8) * 0x1p-52;
  EXPECT_LE(errors.normwise, c.backward_error) << a.rows;
  EXPECT_LE(errors.componentwise, c.componentwise_backward_error) << a.rows;
  EXPECT_LE(c.backward_error, roundings * errors.normwise) << a.rows;
  EXPECT_LE(c.componentwise_backward_error, roundings * errors.componentwise) << a.rows;
  EXPECT_LE(c.backward_error, 8 * u) << a.rows;
  EXPECT_LE(forward, c.forward_error) << a.rows;
  EXPECT_LE(c.forward_error, wanted) << a.rows;
}

TYPED_TEST(ComplexSystem, SolvesAndItsBoundsHold) {
  const double wanted = solution_error_wanted(element_of<TypeParam>);
  for (const std::int64_t n : {1, 2, 3, 16, 17, 64, 90}) {
    for (const char* devices : {"host:1", "host:3"}) {
      expect_certified<TypeParam>(random_hermitian<TypeParam>(n, 11),
                                  complex_waves<TypeParam>(n, 3), tiled_options(devices, 16, 7),
                                  wanted);
    }
  }
  for (const std::int64_t n : {1, 2, 3, 4}) {
    expect_certified<TypeParam>(turned_hilbert<TypeParam>(n), complex_waves<TypeParam>(n, 2),
                                tiled_options("host:1", 16, 7), wanted);
  }
}

TEST(ComplexSolve, KnowsWhatIllConditionedSystemsLose) {
  for (const std::int64_t n : {5, 6, 7, 8, 9, 10}) {
    const auto a = turned_hilbert<Complex128>(n);
    const auto b = complex_waves<Complex128>(n, 1);
    Matrix<Complex128> x(n, 1);
    const Certificate c =
        solve(a.view(), b.view(), x.view(), tiled_options("host:1", 16, 7)).certificate;
    ASSERT_TRUE(c.factor.ok);
    EXPECT_LE(HermitianOracle(a).forward_error(b, x, 0), c.forward_error) << n;
    // That of Hilbert's matrix with a unit diagonal.
    EXPECT_GT(c.scaled_condition, std::pow(10.0, 1.1 * static_cast<double>(n) - 2)) << n;
    EXPECT_LT(c.scaled_condition, std::pow(10.0, 1.6 * static_cast<double>(n))) << n;
  }
}

/// Eigenvalues from 1 to 10^−digits, mixed by complex reflections; rows in units of up to
/// 10^±units.
template <class T>
Matrix<T> graded_hermitian(std::int64_t n, double digits, double units, std::uint64_t seed) {
  Matrix<Complex128> full(n, n);
  const auto last = static_cast<double>(std::max<std::int64_t>(n - 1, 1));
  for (std::int64_t i = 0; i < n; ++i)
    full(i, i) = std::pow(10.0, -digits * static_cast<double>(i) / last);
  for (std::uint64_t k = 0; k < 3; ++k) {
    std::vector<Complex128> v;
    double square = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::uint64_t>(2 * i);
      v.emplace_back(random_normal(seed + k, at), random_normal(seed + k, at + 1));
      square += std::norm(v.back());
    }
    for (const bool rows : {true, false}) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto of = [&](std::int64_t i) -> Complex128& {
          return rows ? full(i, j) : full(j, i);
        };
        const auto reflector = [&](std::int64_t i) {
          const Complex128 z = v[static_cast<std::size_t>(i)];
          return rows ? z : std::conj(z);
        };
        Complex128 sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += std::conj(reflector(i)) * of(i);
        for (std::int64_t i = 0; i < n; ++i) of(i) -= 2.0 * sum / square * reflector(i);
      }
    }
  }
  const auto unit = [&](std::int64_t i) {
    return std::pow(10.0,
                    units * (2 * random_uniform(seed + 9, static_cast<std::uint64_t>(i)) - 1) / 2);
  };
  return test::make_matrix<T>(n, n, [&](auto i, auto j) {
    const Complex128 z = full(std::max(i, j), std::min(i, j)) * unit(i) * unit(j);
    return i == j ? Complex128(z.real()) : i > j ? z : std::conj(z);
  });
}

TYPED_TEST(ComplexSystem, BoundsHoldWhateverConditionAndUnits) {
  constexpr bool kSingle = std::is_same_v<RealOf<TypeParam>, float>;
  const std::uint64_t seeds = test::campaign(1000, 120, 40);
  int factored = 0;
  int known = 0;
  int refined = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto n = static_cast<std::int64_t>(1 + random_bits(seed, 1) % 20);
    const double digits = (kSingle ? 7 : 15.5) * random_uniform(seed, 2);
    const double units = seed % 3 == 0 ? (kSingle ? 8 : 30) * random_uniform(seed, 3) : 0;
    const auto a = graded_hermitian<TypeParam>(n, digits, units, 50 + 20 * seed);
    auto b = complex_waves<TypeParam>(n, 2);
    if (seed % 2 == 0) {  // a solution of ones, small in some units
      for (std::int64_t i = 0; i < n; ++i) {
        Complex128 sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += Complex128(a(i, j));
        b(i, 0) = static_cast<TypeParam>(sum);
      }
    }
    Matrix<TypeParam> x(n, 2);
    const Certificate c =
        solve(a.view(), std::as_const(b).view(), x.view(), tiled_options("host:1", 16, 7))
            .certificate;
    const HermitianOracle oracle(a);
    if (!c.factor.ok || !oracle.definite()) continue;
    ++factored;
    if (c.refinement_steps > 0) ++refined;
    if (numerically_singular(c.scaled_condition, c.precision)) continue;
    const double error = std::max(oracle.forward_error(b, x, 0), oracle.forward_error(b, x, 1));
    EXPECT_LE(error, c.forward_error) << seed << ": order " << n << ", " << digits << " digits";
    if (c.forward_error <= solution_error_wanted(c.precision)) ++known;
    const LogDeterminant d = log_determinant(a.view(), tiled_options("host:1", 16, 7));
    EXPECT_LE(std::abs(d.factor.log_determinant - oracle.log_determinant()), d.error) << seed;
  }
  EXPECT_GT(factored, static_cast<int>(seeds / 2));
  EXPECT_GT(known, static_cast<int>(seeds / 3));
  EXPECT_GT(refined, 0);
}

TEST(ComplexSolve, MixesPrecisions) {
  const std::int64_t n = 40;
  const auto wide = random_hermitian<Complex128>(n, 13);
  const auto narrow = random_hermitian<Complex64>(n, 13);
  expect_certified<Complex64>(wide, complex_waves<Complex128>(n, 2), tiled_options("host:1", 16, 7),
                              0.1);
  expect_certified<Complex64>(narrow, complex_waves<Complex128>(n, 2),
                              tiled_options("host:1", 16, 7), 0.1);
}

TYPED_TEST(ComplexSystem, IsBitIdenticalForEveryBudgetAndDevicesInSolvesToo) {
  const std::int64_t n = 90;
  const auto a = random_hermitian<TypeParam>(n, 17);
  const auto b = complex_waves<TypeParam>(n, 3);
  Matrix<TypeParam> first(n, 3);
  (void)solve(std::as_const(a).view(), b.view(), first.view(), tiled_options("host:1", 16, 5));
  for (const char* devices : {"host:1", "host:2", "host:5"}) {
    for (const std::int64_t tiles : {5, 6, 20, 400}) {
      Matrix<TypeParam> x(n, 3);
      (void)solve(std::as_const(a).view(), b.view(), x.view(), tiled_options(devices, 16, tiles));
      EXPECT_TRUE(test::same_bits(x.data, first.data)) << devices << " " << tiles;
    }
  }
}

TEST(ComplexSolve, OfRealNumbersIsThatOfTheRealSystem) {
  const std::int64_t n = 50;
  const auto real = test::random_spd_matrix<double>(n, 3);
  const auto a =
      test::make_matrix<Complex128>(n, n, [&](auto i, auto j) { return Complex128(real(i, j)); });
  const auto b = complex_waves<Complex128>(n, 1);
  Matrix<Complex128> x(n, 1);
  const SolveResult result = solve(a.view(), b.view(), x.view(), tiled_options("host:1", 16, 7));
  EXPECT_LE(HermitianOracle(a).forward_error(b, x, 0), 1e-14);
  Matrix<double> parts(n, 2);
  for (std::int64_t i = 0; i < n; ++i) {
    parts(i, 0) = b(i, 0).real();
    parts(i, 1) = b(i, 0).imag();
  }
  Matrix<double> y(n, 2);
  const SolveResult of_real =
      solve(real.view(), std::as_const(parts).view(), y.view(), tiled_options("host:1", 16, 7));
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_LE(std::abs(x(i, 0) - Complex128(y(i, 0), y(i, 1))), 1e-15);
  EXPECT_NEAR(result.certificate.factor.log_determinant, of_real.certificate.factor.log_determinant,
              1e-12);
  EXPECT_NEAR(result.certificate.scaled_condition, of_real.certificate.scaled_condition,
              0.3 * of_real.certificate.scaled_condition);
}

TEST(ComplexSolve, OfBothTrianglesIsThatOfWhatIsGiven) {
  const std::int64_t n = 30;
  auto a = random_hermitian<Complex128>(n, 19);
  a(2, 20) += Complex128(1e-9, -2e-9);  // above the diagonal alone
  const auto b = complex_waves<Complex128>(n, 1);
  Matrix<Complex128> x(n, 1);
  const Certificate of_lower =
      solve(a.view(), b.view(), x.view(), tiled_options("host:1", 16, 7)).certificate;
  EXPECT_LE(of_lower.forward_error, 1e-13);
  EXPECT_GT(test::hermitian_errors(a, b, x, 0).normwise, 1e-13) << "it is of another matrix";
  const Certificate of_both =
      solve(a.view(), b.view(), x.view(), tiled_options("host:1", 16, 7), GivenTriangles::both)
          .certificate;
  const test::HermitianErrors errors = test::hermitian_errors(a, b, x, 0);
  EXPECT_LE(errors.normwise, 1e-15);
  EXPECT_NEAR(of_both.backward_error, errors.normwise, 1e-15);
}

TYPED_TEST(ComplexSystem, ScalesWhatIsNearTheEndsOfTheRange) {
  using R = RealOf<TypeParam>;
  const int far = std::is_same_v<R, float> ? 110 : 1000;
  const std::int64_t n = 33;
  const auto a = random_hermitian<TypeParam>(n, 23);
  const auto b = complex_waves<TypeParam>(n, 2);
  Matrix<TypeParam> x(n, 2);
  const SolveResult plain =
      solve(std::as_const(a).view(), b.view(), x.view(), tiled_options("host:1", 16, 7));
  for (const int exponent : {far, -far}) {
    Matrix<TypeParam> scaled = a;
    for (auto& z : scaled.data) z = times_power(z, exponent);
    auto big = b;
    for (auto& z : big.data) z = times_power(z, exponent);
    Matrix<TypeParam> y(n, 2);
    const SolveResult result = solve(std::as_const(scaled).view(), std::as_const(big).view(),
                                     y.view(), tiled_options("host:1", 16, 7));
    ASSERT_TRUE(result.certificate.factor.ok);
    for (std::size_t k = 0; k < y.data.size(); ++k)
      ASSERT_LE(std::abs(Complex128(y.data[k]) - Complex128(x.data[k])),
                30 * double{std::numeric_limits<R>::epsilon()});
    EXPECT_LE(result.certificate.forward_error, solution_error_wanted(element_of<TypeParam>));
    const LogDeterminant d =
        log_determinant(std::as_const(scaled).view(), tiled_options("host:1", 16, 7));
    EXPECT_NEAR(d.factor.log_determinant,
                plain.certificate.factor.log_determinant +
                    static_cast<double>(exponent) * static_cast<double>(n) * std::log(2.0),
                d.error);
  }
}

// ---- the log-determinant

template <class T>
void expect_determinant(const Matrix<T>& a) {
  const LogDeterminant d = log_determinant(a.view(), tiled_options("host:2", 16, 9));
  ASSERT_TRUE(d.factor.ok) << a.rows;
  EXPECT_EQ(d.precision, element_of<T>);
  const double expected = HermitianOracle(a).log_determinant();
  EXPECT_LE(std::abs(d.factor.log_determinant - expected), d.error) << a.rows;
  EXPECT_GE(d.scaled_condition, 1 - 1e-6);
}

/// Parts of b that are numbers, with a magnitude that is none.
TYPED_TEST(ComplexSystem, SolvesForMagnitudesBeyondTheRange) {
  using R = RealOf<TypeParam>;
  const R most = std::numeric_limits<R>::max();
  const std::int64_t n = 5;
  const auto a =
      test::make_matrix<TypeParam>(n, n, [](auto i, auto j) { return Complex128(i == j ? 4 : 0); });
  const auto b = test::make_matrix<TypeParam>(
      n, 1, [&](auto i, auto) { return Complex128(most, i % 2 == 0 ? -most : most); });
  Matrix<TypeParam> x(n, 1);
  const SolveResult result = solve(a.view(), b.view(), x.view(), tiled_options("host:1", 16, 7));
  for (std::int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(x(i, 0).real(), most / 4);
    EXPECT_EQ(x(i, 0).imag(), i % 2 == 0 ? -most / 4 : most / 4);
  }
  EXPECT_LE(result.certificate.backward_error, double{std::numeric_limits<R>::epsilon()});
  EXPECT_LE(result.certificate.forward_error, solution_error_wanted(element_of<TypeParam>));
}

TYPED_TEST(ComplexSystem, KnowsItsLogDeterminantWithinItsBound) {
  for (const std::int64_t n : {0, 1, 2, 3, 17, 64, 90}) {
    expect_determinant(random_hermitian<TypeParam>(n, 29));
    expect_determinant(turned_hilbert<TypeParam>(n, 1e-2));
  }
  const double u = double{std::numeric_limits<RealOf<TypeParam>>::epsilon()};
  const LogDeterminant d = log_determinant(random_hermitian<TypeParam>(64, 29).view());
  EXPECT_LE(d.error, 64 * 64 * 64 * u) << "no bound at all";
}

TEST(RealLogDeterminant, IsWithinItsBound) {
  for (const std::int64_t n : {0, 1, 2, 40, 90}) {
    for (const auto& a : {test::random_spd_matrix<double>(n, 3), test::hilbert_matrix<double>(n)}) {
      const auto embedded =
          test::make_matrix<Complex128>(n, n, [&](auto i, auto j) { return Complex128(a(i, j)); });
      const LogDeterminant d = log_determinant(a.view(), tiled_options("host:1", 16, 9));
      ASSERT_TRUE(d.factor.ok);
      EXPECT_LE(std::abs(d.factor.log_determinant - HermitianOracle(embedded).log_determinant()),
                d.error)
          << n;
    }
  }
}

/// log|det A| of any complex A near a positive definite one, by elimination in 113 bits of the real
/// matrix [B −C; C B], whose determinant is |det A|².
double log_magnitude_of_determinant(const Matrix<Complex128>& a) {
  const std::int64_t n = a.rows;
  std::vector<Quad> u(static_cast<std::size_t>(4 * n * n));
  const auto at = [&](std::int64_t i, std::int64_t j) -> Quad& {
    return u[static_cast<std::size_t>(i + 2 * n * j)];
  };
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      at(i, j) = at(n + i, n + j) = a(i, j).real();
      at(n + i, j) = a(i, j).imag();
      at(i, n + j) = -a(i, j).imag();
    }
  }
  long double sum = 0;
  for (std::int64_t k = 0; k < 2 * n; ++k) {
    sum += std::log(std::fabs(static_cast<long double>(at(k, k)))) / 2;
    for (std::int64_t i = k + 1; i < 2 * n; ++i) {
      const Quad factor = at(i, k) / at(k, k);
      for (std::int64_t j = k + 1; j < 2 * n; ++j) at(i, j) -= factor * at(k, j);
    }
  }
  return static_cast<double>(sum);
}

TEST(ComplexLogDeterminant, OfTrianglesThatDifferIsThatOfTheMatrixAsItIsGiven) {
  for (const std::int64_t n : {2, 3, 5, 6}) {
    Matrix<Complex128> a = turned_hilbert<Complex128>(n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < j; ++i)
        a(i, j) *= Complex128(1 + 1e-11 * static_cast<double>(i + 1), 3e-11);
    const double truth = log_magnitude_of_determinant(a);
    const LogDeterminant lower = log_determinant(a.view());
    const LogDeterminant both = log_determinant(a.view(), {}, GivenTriangles::both);
    const double off = std::fabs(both.factor.log_determinant - truth);
    EXPECT_EQ(both.factor.log_determinant, lower.factor.log_determinant);
    EXPECT_LE(off, both.error) << n;
    EXPECT_GT(off, lower.error) << n << ": the lower triangle is another matrix";
    EXPECT_TRUE(std::isfinite(both.error)) << n;
  }
}

TEST(ComplexLogDeterminant, IsWithinItsBoundOfIllConditionedMatricesToo) {
  int known = 0;
  for (const std::int64_t n : {4, 5, 6, 7, 8, 9, 10, 11, 12}) {
    const auto a = turned_hilbert<Complex128>(n);
    const LogDeterminant d = log_determinant(a.view());
    if (!d.factor.ok) continue;
    EXPECT_LE(std::abs(d.factor.log_determinant - HermitianOracle(a).log_determinant()), d.error)
        << n;
    EXPECT_EQ(numerically_singular(d.scaled_condition, d.precision), d.scaled_condition > 0x1p50);
    if (d.error < 0.1) ++known;
  }
  EXPECT_GE(known, 6);
  // Nothing is known at a condition of 1e18, if there is a factor at all.
  const LogDeterminant none = log_determinant(turned_hilbert<Complex128>(14).view());
  EXPECT_TRUE(!none.factor.ok || none.error > 0.1) << none.error;
}

}  // namespace
}  // namespace strata
