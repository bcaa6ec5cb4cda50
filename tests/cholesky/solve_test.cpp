// The public calls against LAPACK and against exact answers.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <limits>

#include "strata/cholesky.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/epsilon.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::backward_error;
using test::kEpsilon;
using test::Matrix;

CholeskyOptions bounded(const std::string& devices, std::int64_t tile, std::int64_t tiles) {
  CholeskyOptions options;
  options.run.devices = devices;
  options.tile = tile;
  options.run.device_memory_bytes = tiles * (tile * tile * 8 + 256);
  options.run.compute_queues = 2;
  return options;
}

double lapack_log_determinant(Matrix<double> a) {
  const auto n = static_cast<lapack_int>(a.rows);
  EXPECT_EQ(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', n, a.data.data(), n), 0);
  double sum = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) sum += 2 * std::log(a(i, i));
  return sum;
}

struct NamedMatrix {
  const char* name;
  Matrix<double> (*make)(std::int64_t n);
};

class Solve : public ::testing::TestWithParam<std::tuple<NamedMatrix, std::int64_t, std::string>> {
};

TEST_P(Solve, IsBackwardStableAndItsLogDeterminantIsLapacks) {
  const auto& [problem, n, devices] = GetParam();
  const Matrix<double> a = problem.make(n);
  const Matrix<double> b = test::make_matrix<double>(
      n, 5, [](auto i, auto j) { return std::sin(static_cast<double>(1 + i * 3 + j * 7)); });
  Matrix<double> x(n, 5);
  const SolveResult result = solve(a.view(), b.view(), x.view(), bounded(devices, 16, 7));
  ASSERT_TRUE(result.certificate.factor.ok);
  const auto order = static_cast<double>(n);
  EXPECT_LE(backward_error(a, b, x), 10 * order * kEpsilon);
  EXPECT_LE(result.certificate.backward_error, 10 * order * kEpsilon);
  const double expected = lapack_log_determinant(a);
  const double actual = result.certificate.factor.log_determinant;
  // min(i, j) has determinant 1: its logarithm is exactly 0.
  if (expected == 0) {
    EXPECT_EQ(actual, 0);
  } else {
    EXPECT_LE(std::abs(actual - expected), 1e-12 * std::abs(expected));
  }
  EXPECT_EQ(result.factor.traffic, result.factor.planned_traffic);
  EXPECT_EQ(result.solve.traffic, result.solve.planned_traffic);
}

const NamedMatrix kProblems[] = {
    {"random", [](std::int64_t n) { return test::random_spd_matrix<double>(n, 42); }},
    {"hilbert", [](std::int64_t n) { return test::hilbert_matrix<double>(n); }},
    {"min", [](std::int64_t n) { return test::min_matrix<double>(n); }}};

INSTANTIATE_TEST_SUITE_P(Matrices, Solve,
                         ::testing::Combine(::testing::ValuesIn(kProblems),
                                            ::testing::Values(1, 2, 15, 16, 17, 200),
                                            ::testing::Values("host:1", "host:3", "auto")),
                         [](const auto& info) {
                           std::string devices = std::get<2>(info.param);
                           if (devices.find(':') != std::string::npos)
                             devices.erase(devices.find(':'), 1);
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::to_string(std::get<1>(info.param)) + "_" + devices;
                         });

TEST(Cholesky, FactorOfMinIsAllOnesAndReadsTheLowerTriangleOnly) {
  const std::int64_t n = 77;
  Matrix<double> a = test::min_matrix<double>(n);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < j; ++i) a(i, j) = nan;
  }
  const Matrix<double> before = a;
  const CholeskyFactor factor = cholesky(std::as_const(a).view(), bounded("host:2", 16, 5));
  ASSERT_TRUE(factor.info().ok);
  Matrix<double> l(n, n);
  factor.copy_lower(l.view());
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(l(i, j), i >= j ? 1.0 : 0.0);
      if (i >= j) {
        EXPECT_EQ(a(i, j), before(i, j));
      }
    }
  }
}

TEST(Cholesky, SinglePrecisionFactorsAndSolves) {
  const std::int64_t n = 100;
  const Matrix<float> a = test::random_spd_matrix<float>(n, 3);
  Matrix<float> b = test::make_matrix<float>(n, 3, [](auto i, auto j) { return double(i + j); });
  const Matrix<float> rhs = b;
  CholeskyFactor factor = cholesky(a.view(), bounded("auto", 16, 5));
  ASSERT_TRUE(factor.info().ok);
  (void)factor.solve(b.view());
  // Errors of n roundings of either sign add up as √n (Higham, Mary 2019).
  EXPECT_LE(backward_error(a, rhs, b), std::sqrt(n) * std::numeric_limits<float>::epsilon());
  Matrix<double> wrong(n, 1);
  EXPECT_THROW((void)factor.solve(wrong.view()), Error);
}

class BadPivot : public ::testing::TestWithParam<std::string> {};

TEST_P(BadPivot, IsNamedExactlyInEveryColumn) {
  const std::int64_t n = 53;
  for (std::int64_t k = 0; k < n; k += test::kSanitized ? 5 : 1) {
    Matrix<double> a = test::min_matrix<double>(n);
    a(k, k) -= 3;  // every pivot of min(i, j) is 1, so this one becomes −2
    const CholeskyFactor factor = cholesky(std::as_const(a).view(), bounded(GetParam(), 8, 6));
    EXPECT_FALSE(factor.info().ok);
    EXPECT_EQ(factor.info().first_bad_pivot, k);
    EXPECT_EQ(factor.info().bad_pivot, -2);
    EXPECT_TRUE(std::isnan(factor.info().log_determinant));
  }
}

TEST_P(BadPivot, ANanIsReportedAsOneAndNothingIsSolved) {
  const std::int64_t n = 53;
  Matrix<double> a = test::min_matrix<double>(n);
  a(40, 13) = std::numeric_limits<double>::quiet_NaN();
  CholeskyFactor factor = cholesky(std::as_const(a).view(), bounded(GetParam(), 8, 6));
  EXPECT_EQ(factor.info().first_bad_pivot, 40);
  EXPECT_TRUE(std::isnan(factor.info().bad_pivot));
  Matrix<double> b(n, 1);
  EXPECT_THROW((void)factor.solve(b.view()), Error);

  Matrix<double> x = test::make_matrix<double>(n, 1, [](auto, auto) { return 7.0; });
  const SolveResult result =
      solve(std::as_const(a).view(), std::as_const(b).view(), x.view(), bounded(GetParam(), 8, 6));
  EXPECT_FALSE(result.certificate.factor.ok);
  EXPECT_EQ(x(0, 0), 7.0);
}

INSTANTIATE_TEST_SUITE_P(Devices, BadPivot, ::testing::Values("host:1", "host:2", "auto"),
                         [](const auto& info) { return std::to_string(info.index); });

TEST(Cholesky, SolvesMoreRightHandSidesThanATileHasColumns) {
  const std::int64_t n = 90;
  const Matrix<double> a = test::random_spd_matrix<double>(n, 5);
  const Matrix<double> b = test::make_matrix<double>(
      n, 45, [](auto i, auto j) { return std::cos(static_cast<double>(i * j + i)); });
  Matrix<double> x(n, 45);
  const SolveResult result = solve(a.view(), b.view(), x.view(), bounded("host:2", 16, 3));
  EXPECT_LE(backward_error(a, b, x), 10 * n * kEpsilon);
  EXPECT_EQ(result.solve.traffic, result.solve.planned_traffic);
}

TEST(Cholesky, EveryRunSaysWhatWasPredicted) {
  const std::int64_t n = 200;
  const Matrix<double> a = test::random_spd_matrix<double>(n, 5);
  for (const std::int64_t tile : {0, 33, 200}) {
    CholeskyOptions options;
    options.run.devices = "host:2";
    options.run.device_memory_bytes = std::int64_t{1} << 24;
    options.tile = tile;
    CholeskyFactor factor = cholesky(a.view(), options);
    ASSERT_TRUE(factor.report().predicted_seconds.has_value()) << tile;
    EXPECT_GT(*factor.report().predicted_seconds, 0) << tile;
    Matrix<double> b(n, 3);
    b(7, 1) = 1;
    for (int again = 0; again < 3; ++again) {  // plans may be kept
      const RunReport lower = factor.solve_lower(b.view());
      ASSERT_TRUE(lower.predicted_seconds.has_value()) << tile;
      EXPECT_GT(*lower.predicted_seconds, 0) << tile;
      const RunReport both = factor.solve(b.view());
      ASSERT_TRUE(both.predicted_seconds.has_value()) << tile;
      EXPECT_GT(*both.predicted_seconds, 0) << tile;
      EXPECT_EQ(both.host_bytes, factor.report().host_bytes);
      EXPECT_EQ(both.n, n);
      EXPECT_EQ(both.tile, factor.report().tile);
    }
    Matrix<double> x(n, 3);
    const SolveResult result = solve(a.view(), b.view(), x.view(), options);
    EXPECT_TRUE(result.factor.predicted_seconds && result.solve.predicted_seconds);
  }
  Machine machine = Machine::emulated(1, std::int64_t{1} << 24);
  EXPECT_GT(simulate_cholesky(n, machine).predicted_seconds.value_or(0), 0);
}

TEST(Cholesky, MisuseIsNamed) {
  const Matrix<double> a = test::random_spd_matrix<double>(6, 1);
  const Matrix<double> b(5, 1);
  Matrix<double> x(6, 1);
  EXPECT_THROW((void)solve(a.view(), b.view(), x.view()), Error);
  EXPECT_THROW((void)cholesky(MatrixView<const double>{a.data.data(), 6, 5, 6}), Error);
  EXPECT_THROW((void)cholesky(MatrixView<const double>{a.data.data(), 6, 6, 5}), Error);
  EXPECT_THROW((void)cholesky(MatrixView<const double>{nullptr, 6, 6, 6}), Error);
  CholeskyOptions options;
  options.run.host_memory_bytes = 100;
  try {
    (void)cholesky(a.view(), options);
    FAIL() << "a factor of 288 bytes and a status of 32 were kept in 100";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("320 bytes"), std::string::npos) << error.what();
  }
}

TEST(Cholesky, ProgressCountsUpAndCanCancel) {
  const Matrix<double> a = test::random_spd_matrix<double>(test::kSanitized ? 300 : 700, 2);
  CholeskyOptions options = bounded("host:1", 16, 40);
  double last = 0;
  options.run.progress = [&](const Progress& p) {
    EXPECT_GE(p.done, last);
    EXPECT_LE(p.done, p.total * (1 + 1e-12));
    last = p.done;
    return true;
  };
  EXPECT_TRUE(cholesky(a.view(), options).info().ok);
  options.run.progress = [](const Progress&) { return false; };
  try {
    const std::int64_t n = test::kSanitized ? 700 : 1500;
    (void)cholesky(test::random_spd_matrix<double>(n, 2).view(), options);
    FAIL() << "was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
}

}  // namespace
}  // namespace strata
