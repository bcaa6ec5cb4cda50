// Least squares: what the data were made of, R and Qᵀb, dependent unknowns, refinement beside a
// solution in many digits, and what is told of a condition that is too large.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <limits>
#include <optional>

#include "strata/error.hpp"
#include "strata/qr.hpp"
#include "tests/qr/exact_triangle.hpp"
#include "tests/qr/factored.hpp"
#include "tests/qr/tall_kinds.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/nan.hpp"

namespace strata {
namespace {

using test::error_of;
using test::kNan;
using test::Many;
using test::on;
using test::plain;
using test::Tall;
using test::with_dependent_columns;

/// RᵀR = AᵀA and Rᵀ·(Qᵀb) = Aᵀb, to the rounding of R, beside the lengths of the columns.
void expect_triangle_of(const Tall& a, const Tall& b, const LeastSquaresInfo& info) {
  const auto n = static_cast<std::size_t>(a.cols);
  ASSERT_EQ(info.r.size(), n * n);
  ASSERT_EQ(info.qtb.size(), n * static_cast<std::size_t>(b.cols));
  const auto length = [](const Tall& x, std::int64_t j) {
    long double square = 0;
    for (std::int64_t i = 0; i < x.rows; ++i) square += static_cast<long double>(x(i, j)) * x(i, j);
    return std::sqrt(square);
  };
  for (std::size_t j = 0; j < n; ++j) {
    const auto column = static_cast<std::int64_t>(j);
    for (std::size_t i = j + 1; i < n; ++i) EXPECT_EQ(info.r[i + j * n], 0);
    for (std::int64_t k = 0; k < a.cols + b.cols; ++k) {
      const Tall& other = k < a.cols ? a : b;
      const std::int64_t of_other = k < a.cols ? k : k - a.cols;
      const double* right = k < a.cols ? &info.r[static_cast<std::size_t>(k) * n]
                                       : &info.qtb[static_cast<std::size_t>(of_other) * n];
      long double product = 0;
      for (std::size_t i = 0; i <= j; ++i)
        product += static_cast<long double>(info.r[i + j * n]) * right[i];
      long double exact = 0;
      for (std::int64_t i = 0; i < a.rows; ++i)
        exact += static_cast<long double>(a(i, column)) * other(i, of_other);
      EXPECT_LE(std::abs(product - exact), 1e-15L * length(a, column) * length(other, of_other))
          << j << ", " << k;
    }
  }
}

TEST(LeastSquares, FindsWhatTheDataWereMadeOf) {
  for (const double condition : {1e1, 1e5, 1e9}) {
    const Tall a = test::with_condition(5000, 10, condition, 16);
    const Tall truth = test::random_tall(10, 2, 17);
    const Tall noise = test::random_tall(5000, 1, 18);
    Tall b(5000, 2);
    for (std::int64_t i = 0; i < 5000; ++i) {
      long double sum[2] = {0, 0};
      for (std::int64_t j = 0; j < 10; ++j)
        for (int k = 0; k < 2; ++k) sum[k] += static_cast<long double>(a(i, j)) * truth(j, k);
      b(i, 0) = static_cast<double>(sum[0]);
      b(i, 1) = static_cast<double>(sum[1]) + 1e-3 * noise(i, 0);
    }
    Tall x(10, 2);
    const LeastSquaresInfo info =
        least_squares(a.view(), b.view(), x.view(), test::for_least_squares(on("host:2", 1 << 20)));
    EXPECT_TRUE(info.ok) << condition;
    EXPECT_EQ(info.rank, 10);
    double error = 0;
    for (std::int64_t j = 0; j < 10; ++j) error = std::max(error, std::abs(x(j, 0) - truth(j, 0)));
    EXPECT_LE(error, 1e-15 * condition * 10) << condition;  // rounding of b itself
    // The residual is orthogonal to the columns of A.
    for (int k = 0; k < 2; ++k) {
      long double square = 0;
      std::vector<long double> rest(5000);
      for (std::int64_t i = 0; i < 5000; ++i) {
        auto& value = rest[static_cast<std::size_t>(i)];
        value = static_cast<long double>(b(i, k));
        for (std::int64_t j = 0; j < 10; ++j) value -= static_cast<long double>(a(i, j)) * x(j, k);
        square += value * value;
      }
      const auto length = static_cast<double>(std::sqrt(square));
      EXPECT_NEAR(info.residual_norm[static_cast<std::size_t>(k)], length, 1e-9 * length + 1e-12);
    }
    EXPECT_EQ(info.report.traffic, static_cast<const Traffic&>(info.report.planned_traffic));
    EXPECT_LE(info.report.traffic.host_to_device_bytes, 5000 * 12 * 8 + 8 * 12 * 12 * 16);
    expect_triangle_of(a, b, info);
  }
}

TEST(LeastSquares, DependentUnknownsAreZeroAndNamed) {
  const Tall a = with_dependent_columns();
  const Tall b = test::random_tall(700, 1, 19);
  Tall x(8, 1);
  const LeastSquaresInfo info =
      least_squares(a.view(), b.view(), x.view(), test::for_least_squares(plain()));
  EXPECT_EQ(info.dependent_columns, (std::vector<std::int64_t>{2, 4, 6}));
  EXPECT_FALSE(info.ok);  // x is one of many
  EXPECT_LE(info.error_bound, 1e-12);
  for (const std::int64_t j : {2, 4, 6}) EXPECT_EQ(x(j, 0), 0);
  expect_triangle_of(a, b, info);
  for (const std::size_t j : {2U, 4U, 6U}) {
    EXPECT_EQ(info.qtb[j], 0);
    for (std::size_t k = 0; k < 8; ++k) EXPECT_EQ(info.r[j + 8 * k], 0);
  }
  // The normal equations hold.
  for (std::int64_t j = 0; j < 8; ++j) {
    long double sum = 0;
    for (std::int64_t i = 0; i < 700; ++i) {
      long double rest = b(i, 0);
      for (std::int64_t k = 0; k < 8; ++k) rest -= static_cast<long double>(a(i, k)) * x(k, 0);
      sum += rest * a(i, j);
    }
    EXPECT_LE(std::abs(static_cast<double>(sum)), 1e-11 * 0x1p20);
  }
}

/// ‖b − A·x‖ of x as it is written.
double true_residual(const Tall& a, const Tall& b, const Tall& x) {
  Many square = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    Many rest = b(i, 0);
    for (std::int64_t j = 0; j < a.cols; ++j) rest -= Many(a(i, j)) * Many(x(j, 0));
    square += rest * rest;
  }
  return static_cast<double>(Many(sqrt(square)));
}

/// x of min ‖b − A·x‖ by normal equations in 600 bits; none where A is singular, or so near it
/// that these are too few.
std::optional<std::vector<Many>> exact_solution(const Tall& a, const Tall& b) {
  const std::int64_t n = a.cols;
  test::ManyMatrix g(n, n + 1);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t r = 0; r < a.rows; ++r) {
      for (std::int64_t j = 0; j < n; ++j) g(i, j) += Many(a(r, i)) * Many(a(r, j));
      g(i, n) += Many(a(r, i)) * Many(b(r, 0));
    }
  }
  const test::ManyMatrix gram = g;
  const Many least("1e-120");
  for (std::int64_t p = 0; p < n; ++p) {
    if (!(g(p, p) > least * gram(p, p))) return std::nullopt;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == p) continue;
      const Many factor = g(i, p) / g(p, p);
      for (std::int64_t j = p; j <= n; ++j) g(i, j) -= factor * g(p, j);
    }
  }
  std::vector<Many> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(g(i, n) / g(i, i));
  return x;
}

/// The error of x beside the exact solution, of columns of length 1 or as they are.
double true_error(const Tall& a, const std::vector<Many>& exact, const Tall& x) {
  Many wrong = 0;
  Many length = 0;
  Many most_wrong = 0;
  Many largest = 0;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    Many square = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) square += Many(a(i, j)) * Many(a(i, j));
    const Many& e = exact[static_cast<std::size_t>(j)];
    wrong += square * (x(j, 0) - e) * (x(j, 0) - e);
    length += square * e * e;
    most_wrong = std::max(most_wrong, Many(abs(Many(x(j, 0) - e))));
    largest = std::max(largest, Many(abs(e)));
  }
  if (wrong == 0) return 0;
  return static_cast<double>(
      std::max(Many(sqrt(Many(wrong / length))), Many(most_wrong / largest)));
}

/// What is told of x is true of it.
LeastSquaresInfo expect_true(const Tall& a, const Tall& b) {
  Tall x(a.cols, 1);
  const LeastSquaresInfo info =
      least_squares(a.view(), b.view(), x.view(), test::for_least_squares(plain()));
  EXPECT_EQ(info.ok, info.error_bound <= 1e-6 && info.dependent_columns.empty());
  if (!std::all_of(x.data.begin(), x.data.end(), [](double e) { return std::isfinite(e); })) {
    EXPECT_FALSE(info.ok);
    return info;
  }
  const double residual = true_residual(a, b, x);
  if (std::isinf(residual)) {  // it is no double
    EXPECT_EQ(info.residual_norm[0], residual);
  } else {
    EXPECT_NEAR(info.residual_norm[0], residual, 0.01 * residual + 1e-300);
  }
  if (!info.dependent_columns.empty()) return info;
  if (const auto exact = exact_solution(a, b)) {
    EXPECT_GE(info.error_bound, true_error(a, *exact, x));
  } else if (std::ssize(test::exact_triangle_of(a).kept) < a.cols) {
    EXPECT_FALSE(info.ok);
  }
  return info;
}

TEST(LeastSquares, TellsTheResidualOfTheXThatItWrites) {
  const auto vandermonde = [](std::int64_t m, std::int64_t n, double from, double step) {
    return test::make_matrix<double>(m, n, [=](auto i, auto j) {
      return std::pow(from + step * static_cast<double>(i), static_cast<double>(n - 1 - j));
    });
  };
  const auto sums = [](const Tall& a, double noise) {
    Tall b = test::random_tall(a.rows, 1, 23);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      b(i, 0) *= noise;
      for (std::int64_t j = 0; j < a.cols; ++j) b(i, 0) += a(i, j);
    }
    return b;
  };
  for (const std::int64_t n : {6, 12, 18, 26}) {
    const Tall a = vandermonde(80, n, 0, 1.0 / 79);
    for (const double noise : {0.0, 1e-6}) {
      SCOPED_TRACE(n);
      const LeastSquaresInfo info = expect_true(a, sums(a, noise));
      EXPECT_EQ(info.rank, n);
    }
    EXPECT_TRUE(expect_true(a, sums(a, 0)).ok) << n;
  }
  // Years: columns that are near each other, and no one of which depends on others.
  const Tall years = vandermonde(27, 7, 1980, 1);
  const LeastSquaresInfo info = expect_true(years, sums(years, 1e6));
  EXPECT_EQ(info.rank, 7);
  EXPECT_TRUE(info.ok);
  EXPECT_TRUE(info.dependent_columns.empty());
}

/// A·x of random x, with noise of any size or none.
Tall observations(const Tall& a, std::uint64_t seed) {
  const auto uniform = [&](std::uint64_t which) { return random_uniform(8300 + which, seed); };
  const Tall x = test::random_tall(a.cols, 1, 8400 + seed);
  const Tall noise = test::random_tall(a.rows, 1, 8500 + seed);
  const double share = uniform(0) < 0.6 ? std::pow(10.0, -12 * uniform(1)) : 0;
  Tall b(a.rows, 1);
  double largest = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) b(i, 0) += a(i, j) * x(j, 0) / 16;
    largest = std::max(largest, std::abs(b(i, 0)));
  }
  for (std::int64_t i = 0; i < a.rows; ++i) b(i, 0) += share * largest * noise(i, 0) / 16;
  if (largest == 0 || uniform(2) < 0.8) return b;
  const int power = static_cast<int>(2000 * uniform(3)) - 1040 - std::ilogb(largest);
  for (double& x : b.data) x = std::ldexp(x, power);  // x may leave the range, or have few digits
  return b;
}

TEST(LeastSquares, IsTrueOfStructures) {
  const std::uint64_t cases = test::campaign(20'000, 120, 36);
  std::uint64_t solved = 0;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const std::uint64_t kind = i % test::kTallKinds;
    SCOPED_TRACE("case " + std::to_string(i) + ", kind " + std::to_string(kind));
    const Tall a = test::tall_of_kind(kind, i);
    solved += expect_true(a, observations(a, i)).ok ? 1 : 0;
  }
  EXPECT_GT(solved, cases / 2);
}

Tall times_power(Tall a, int power) {
  for (double& x : a.data) x = std::ldexp(x, power);
  return a;
}

TEST(LeastSquares, AnXThatLeavesTheRangeIsNoSolution) {
  const Tall a = test::random_tall(20, 4, 26);
  const Tall b = test::random_tall(20, 1, 27);
  const LeastSquaresInfo over = expect_true(times_power(a, -600), times_power(b, 600));
  EXPECT_FALSE(over.ok);
  EXPECT_TRUE(std::isinf(over.error_bound));
  EXPECT_TRUE(std::isinf(over.residual_norm[0]));
  // Near 2^−1050 some 24 bits of x are left, near 2^−1070 four.
  const LeastSquaresInfo few = expect_true(times_power(a, 500), times_power(b, -550));
  EXPECT_TRUE(few.ok);
  EXPECT_GT(few.error_bound, 1e-9);
  EXPECT_FALSE(expect_true(times_power(a, 500), times_power(b, -570)).ok);
  // Columns of subnormal numbers, and one of these beside others.
  EXPECT_TRUE(expect_true(times_power(a, -1060), times_power(b, -1060)).ok);
  EXPECT_TRUE(expect_true(times_power(a, -1060), b).error_bound > 1);
  Tall mixed = a;
  for (std::int64_t i = 0; i < 20; ++i) {
    mixed(i, 1) = std::ldexp(a(i, 1), -1065);
    mixed(i, 2) = std::ldexp(a(i, 2), 600);
  }
  EXPECT_TRUE(expect_true(mixed, times_power(b, -300)).ok);
}

/// A bound is one beside the exact x, which may be much smaller than what is written.
TEST(LeastSquares, ABoundBesideAWrongXIsNone) {
  const Tall a = test::tall_of_kind(1, 217);
  EXPECT_TRUE(std::isinf(expect_true(a, observations(a, 217)).error_bound));
}

/// Columns in units that differ by any power of ten: what rounding leaves beside the larger one is
/// any number in the other's. b is the second column, so x is (0, 1).
TEST(LeastSquares, ABoundIsOneOfXAsItIsWrittenToo) {
  for (const int digits : {10, 20, 30, 40, 60, 100}) {
    SCOPED_TRACE(digits);
    const Tall noise = test::random_tall(50, 2, 28);
    Tall a = noise;
    Tall b(50, 1);
    for (std::int64_t i = 0; i < 50; ++i) {
      a(i, 0) *= std::pow(10.0, -digits);
      b(i, 0) = a(i, 1);
    }
    const LeastSquaresInfo info = expect_true(a, b);
    EXPECT_EQ(info.ok, digits <= 20) << "what cannot be known is not called known";
  }
}

TEST(LeastSquares, TakesMoreColumnsThanAKernelHolds) {
  const Tall noise = test::random_tall(560, 516, 24);
  const Tall a = test::make_matrix<double>(
      560, 516, [&](auto i, auto j) { return noise(i, j) * (i == j ? 30 : 1); });
  const Tall b = test::random_tall(560, 1, 25);
  Tall x(516, 1);
  const LeastSquaresInfo info =
      least_squares(a.view(), b.view(), x.view(), test::for_least_squares(plain()));
  EXPECT_TRUE(info.ok);
  EXPECT_EQ(info.rank, 516);
  std::vector<long double> rest(560);
  long double square = 0;
  for (std::int64_t i = 0; i < 560; ++i) {
    rest[static_cast<std::size_t>(i)] = b(i, 0);
    for (std::int64_t j = 0; j < 516; ++j)
      rest[static_cast<std::size_t>(i)] -= static_cast<long double>(a(i, j)) * x(j, 0);
    square += rest[static_cast<std::size_t>(i)] * rest[static_cast<std::size_t>(i)];
  }
  EXPECT_NEAR(info.residual_norm[0], static_cast<double>(std::sqrt(square)), 1e-10);
  for (std::int64_t j = 0; j < 516; ++j) {
    long double sum = 0;
    for (std::int64_t i = 0; i < 560; ++i) sum += rest[static_cast<std::size_t>(i)] * a(i, j);
    ASSERT_LE(std::abs(static_cast<double>(sum)), 1e-12) << j;
  }
}

/// ‖b − A·x‖ in long double.
long double residual_of(const Tall& a, const Tall& b, const double* x) {
  long double square = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    long double rest = b(i, 0);
    for (std::int64_t j = 0; j < a.cols; ++j) rest -= static_cast<long double>(a(i, j)) * x[j];
    square += rest * rest;
  }
  return std::sqrt(square);
}

/// By complete orthogonal factorization, with LAPACK's usual tolerance.
long double residual_of_lapack(Tall a, Tall b) {
  const Tall given = a;
  const Tall right = b;
  const auto rows = static_cast<lapack_int>(a.rows);
  const auto cols = static_cast<lapack_int>(a.cols);
  std::vector<lapack_int> pivots(static_cast<std::size_t>(cols));
  lapack_int rank = 0;
  EXPECT_EQ(LAPACKE_dgelsy(LAPACK_COL_MAJOR, rows, cols, 1, a.data.data(), rows, b.data.data(),
                           rows, pivots.data(), 0x1p-52, &rank),
            0);
  return residual_of(given, right, b.data.data());
}

/// More columns than a kernel holds, most of which depend on others to rounding: nothing is known
/// of the error of x, but it fits as well as LAPACK's.
TEST(LeastSquares, ManyColumnsThatDependToRoundingAreFittedAsWellAsByLapack) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  constexpr std::int64_t kRows = 540;
  constexpr std::int64_t kCols = 524;
  const Tall b = test::random_tall(kRows, 1, 77);
  const auto vandermonde = [](auto i, auto j) {
    return std::pow(static_cast<double>(i) / (kRows - 1), static_cast<double>(j));
  };
  const auto hilbert = [](auto i, auto j) { return 1 / static_cast<double>(i + j + 1); };
  const auto bells = [](auto i, auto j) {
    return std::exp(-4 *
                    std::pow(static_cast<double>(i) / kRows - static_cast<double>(j) / kCols, 2));
  };
  test::Thinned thinned(3);
  for (const Tall& a : {test::make_matrix<double>(kRows, kCols, vandermonde),
                        test::make_matrix<double>(kRows, kCols, hilbert),
                        test::make_matrix<double>(kRows, kCols, bells)}) {
    if (thinned.skips()) continue;
    SCOPED_TRACE(a(3, 5));
    Tall x(kCols, 1);
    const LeastSquaresInfo info =
        least_squares(a.view(), b.view(), x.view(), test::for_least_squares(plain()));
    EXPECT_FALSE(info.ok);
    EXPECT_FALSE(info.dependent_columns.empty());
    EXPECT_LT(info.rank, 200);
    for (const std::int64_t j : info.dependent_columns) EXPECT_EQ(x(j, 0), 0);
    const long double residual = residual_of(a, b, x.data.data());
    EXPECT_LE(residual, 1.01L * residual_of_lapack(a, b));
    EXPECT_NEAR(info.residual_norm[0], static_cast<double>(residual), 1e-6);
    const QrInfo of_qr = test::factored(a, plain()).info;
    EXPECT_EQ(info.rank, of_qr.rank) << "one notion of rank";
    EXPECT_EQ(info.dependent_columns, of_qr.dependent_columns);
  }
}

/// Exact dependences in many columns take nothing off the bound.
TEST(LeastSquares, ManyColumnsThatDependExactlyHaveABound) {
  const Tall left = test::make_matrix<double>(560, 20, [](auto i, auto j) {
    return static_cast<double>((7 * i * i + 13 * j * (i + 1)) % 11) - 5;
  });
  const Tall right = test::make_matrix<double>(20, 540, [](auto i, auto j) {
    return static_cast<double>((5 * i * j + j * j + 3 * i) % 7) - 3;
  });
  const Tall a = test::make_matrix<double>(560, 540, [&](auto i, auto j) {
    double sum = 0;
    for (std::int64_t k = 0; k < 20; ++k) sum += left(i, k) * right(k, j);
    return sum;
  });
  const Tall b = test::random_tall(560, 1, 78);
  Tall x(540, 1);
  const LeastSquaresInfo info =
      least_squares(a.view(), b.view(), x.view(), test::for_least_squares(plain()));
  EXPECT_LE(info.error_bound, 1e-12);
  EXPECT_LE(info.rank, 20);
  EXPECT_GE(std::ssize(info.dependent_columns), 520);
  const long double residual = residual_of(a, b, x.data.data());
  EXPECT_NEAR(info.residual_norm[0], static_cast<double>(residual), 1e-9);
  EXPECT_LE(residual, (1 + 1e-9L) * residual_of_lapack(a, b));
}

TEST(LeastSquares, IsRefinedWhereTheGramMatrixIsNotEnough) {
  int refined = 0;
  for (const double condition : {1e9, 1e11, 1e12, 1e13, 3e13, 1e14, 1e16}) {
    for (const double noise : {0.0, 1e-9, 1e-3}) {
      const Tall a = test::with_condition(400, 8, condition, 16);
      const Tall random = test::random_tall(400, 1, 18);
      Tall b(400, 1);
      for (std::int64_t i = 0; i < 400; ++i) {
        for (std::int64_t j = 0; j < 8; ++j) b(i, 0) += a(i, j) * static_cast<double>(j + 1);
        b(i, 0) += noise * random(i, 0);
      }
      const LeastSquaresInfo info = expect_true(a, b);
      EXPECT_EQ(info.rank, 8) << condition << ' ' << noise;
      if (condition <= 1e13 || noise == 0) {
        EXPECT_TRUE(info.ok) << condition << ' ' << noise << ' ' << info.error_bound;
      }
      refined += info.refinements;
      EXPECT_EQ(info.report.traffic, static_cast<const Traffic&>(info.report.planned_traffic));
    }
  }
  EXPECT_GE(refined, 2);
}

/// Between what a Gram matrix bears and what needs a shift lay conditions, 1e14 to 1e15, at which
/// R had too few digits to refine with.
TEST(LeastSquares, NoBandOfConditionsIsRefused) {
  for (const std::int64_t n : {2, 6, 12, 25}) {
    for (int step = 0; step <= 20; ++step) {
      const double condition = std::pow(10.0, 12 + step / 4.0);
      SCOPED_TRACE("n " + std::to_string(n) + ", condition " + std::to_string(condition));
      const Tall a = test::with_condition(60, n, condition, 16);
      const Tall b = test::random_tall(60, 1, 18 + static_cast<std::uint64_t>(step));
      const LeastSquaresInfo info = expect_true(a, b);
      EXPECT_TRUE(info.ok) << info.error_bound;
      EXPECT_EQ(info.rank, n);
    }
  }
}

TEST(LeastSquares, AConditionThatItCannotBearIsSaid) {
  // A residual in rows where A has nothing, which Aᵀ·r has to cancel.
  const Tall part = test::with_condition(450, 10, 1e17, 20);
  const Tall a = test::make_matrix<double>(
      900, 10, [&](auto i, auto j) { return i < 450 ? part(i, j) : (i == j + 450 ? 1e-30 : 0); });
  Tall b = test::random_tall(900, 1, 21);
  for (std::int64_t i = 0; i < 450; ++i) {
    b(i, 0) = 0;
    for (std::int64_t j = 0; j < 10; ++j) b(i, 0) += part(i, j);
  }
  Tall x(10, 1);
  const LeastSquaresInfo info = expect_true(a, b);
  EXPECT_FALSE(info.ok);
  EXPECT_GE(info.condition, 1e13);
  Tall bad = b;
  bad(7, 0) = kNan;
  const Error error = error_of([&] {
    (void)least_squares(a.view(), bad.view(), x.view(), test::for_least_squares(plain()));
  });
  EXPECT_EQ(error.kind(), ErrorKind::input);
  EXPECT_NE(std::string(error.what()).find("(7, 0) of b"), std::string::npos) << error.what();
}

Tall tall_of(std::int64_t rows, std::int64_t cols, const std::vector<double>& by_rows) {
  return test::make_matrix<double>(
      rows, cols, [&](auto i, auto j) { return by_rows[static_cast<std::size_t>(i * cols + j)]; });
}

/// b is orthogonal to the columns of A, exactly or but for digits that no sum of the data kept.
TEST(LeastSquares, AnXOfZerosIsTheSolutionOrNothingIsKnownOfIt) {
  const struct {
    Tall a, b;
  } lost[] = {
      {tall_of(2, 1, {1e16, 1}), tall_of(2, 1, {1e-16, -1})},
      {tall_of(3, 1, {1e20, 1, 1}), tall_of(3, 1, {1e-20, -.5, -.5})},
      {tall_of(3, 2, {1e16, 0, 1, 1, 1, -1}), tall_of(3, 1, {2e-16, -1, -1})},
      // What is left lies below all digits of two doubles, and is a multiple of 2^61 − 1.
      {tall_of(4, 1, {0x1p300, 0x1p300, 0x1p61, 1}), tall_of(4, 1, {1, -1, 1, -1})},
      {tall_of(3, 1, {0x1p500, 0x1p500, 0x1p-500}), tall_of(3, 1, {1, -1, 0x1p-560})},
  };
  for (const auto& [a, b] : lost) {
    SCOPED_TRACE(a(0, 0));
    const LeastSquaresInfo info = expect_true(a, b);
    EXPECT_FALSE(info.ok);
    EXPECT_EQ(info.rank, a.cols);
  }
  const struct {
    Tall a, b;
  } zeros[] = {
      {tall_of(2, 1, {1, 1}), tall_of(2, 1, {1, -1})},
      {tall_of(2, 1, {.1, .1}), tall_of(2, 1, {.3, -.3})},
      {tall_of(2, 1, {.1, .3}), tall_of(2, 1, {.3, -.1})},
      {tall_of(3, 2, {1, 1, 1, 2, 1, 3}), tall_of(3, 1, {.1, -.2, .1})},
      {tall_of(2, 1, {0x1p1000, 0x1p-1000}), tall_of(2, 1, {0x1p-1000, -0x1p1000})},
      {tall_of(2, 1, {1, 1}), tall_of(2, 1, {0x1p-1074, -0x1p-1074})},
      {tall_of(2, 1, {3, 1}), tall_of(2, 1, {0, 0})},
  };
  for (const auto& [a, b] : zeros) {
    SCOPED_TRACE(a(0, 0));
    Tall x(a.cols, 1);
    const LeastSquaresInfo info =
        least_squares(a.view(), b.view(), x.view(), test::for_least_squares(plain()));
    EXPECT_TRUE(info.ok) << info.error_bound;
    for (const double element : x.data) EXPECT_EQ(element, 0);
    (void)expect_true(a, b);
  }
  // One such right-hand side beside one that is solved; both are orthogonal to a dependent column.
  const Tall two = tall_of(2, 2, {1e-16, 1e16, -1, 1});
  Tall x(1, 2);
  EXPECT_FALSE(least_squares(tall_of(2, 1, {1e16, 1}).view(), two.view(), x.view()).ok);
  const Tall twice = tall_of(3, 2, {1, 1, 1, 1, 0, 0});
  Tall y(2, 1);
  const LeastSquaresInfo info =
      least_squares(twice.view(), tall_of(3, 1, {1, -1, 5}).view(), y.view());
  EXPECT_EQ(info.dependent_columns, (std::vector<std::int64_t>{1}));
  EXPECT_LE(info.error_bound, 1e-12);
  EXPECT_EQ(y.data, (std::vector<double>{0, 0}));
}

/// Integers times powers of two in rows and, the other way, in b, one of which is changed at times.
TEST(LeastSquares, ZerosOfStructuresAreTrue) {
  const std::uint64_t cases = test::campaign(20'000, 400, 37);
  int zeros = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    const auto uniform = [&](std::uint64_t which) { return random_uniform(9100 + which, seed); };
    const auto integer = [&](std::uint64_t which) { return std::floor(9 * uniform(which)) - 4; };
    const int range = static_cast<int>(400 * uniform(0) * uniform(0));
    // Rows p and q with b = (q, −p), in pairs; a second column of such in other rows.
    const std::int64_t n = 1 + static_cast<std::int64_t>(seed % 2);
    const std::int64_t m = 4 * n;
    Tall a(m, n);
    Tall b(m, 1);
    for (std::int64_t i = 0; i < m; i += 2) {
      const auto at = static_cast<std::uint64_t>(10 * i);
      const std::int64_t j = i / 4;
      const double p = integer(at + 1) + (i % 4 == 0 ? 9 : 0);
      const double q = integer(at + 2);
      for (const std::int64_t row : {i, i + 1}) {
        const int power =
            static_cast<int>(range * (uniform(at + 3 + static_cast<std::uint64_t>(row - i)) - 0.5));
        a(row, j) = std::ldexp(row == i ? p : q, power);
        b(row, 0) = std::ldexp(row == i ? q : -p, -power);
      }
    }
    if (uniform(5) < 0.5) b(0, 0) = std::nextafter(b(0, 0), 1);
    const LeastSquaresInfo info = expect_true(a, b);
    zeros += info.ok && info.qtb[0] == 0 ? 1 : 0;
  }
  EXPECT_GT(zeros, static_cast<int>(cases / 8));
}

}  // namespace
}  // namespace strata
