// The in-core path: which road a problem takes, that it solves, and that it never falls back.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cholesky/covariance_solver.hpp"
#include "cholesky/planning.hpp"
#include "kernels/dense/potrf.hpp"
#include "strata/error.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Matrix;

CholeskyOptions on(const std::string& devices, CholeskyPath path) {
  CholeskyOptions options;
  options.run.devices = devices;
  options.path = path;
  options.run.device_memory_bytes = std::int64_t{1} << 24;
  return options;
}

Machine machine_of(const std::string& name, std::int64_t memory_bytes, int count = 1) {
  Machine machine = Machine::emulated(count, memory_bytes);
  for (int d = 0; d < count; ++d) {
    DeviceModel& device = machine.devices[static_cast<std::size_t>(d)];
    device.name = name + ":" + std::to_string(d);
    device.kind = name == "host" ? DeviceKind::cpu : DeviceKind::gpu;
  }
  machine.host_memory_bytes = std::numeric_limits<std::int64_t>::max();
  return machine;
}

std::string path_of(std::int64_t n, const Machine& machine, const CholeskyOptions& options = {},
                    bool generated = false) {
  CholeskyProblem problem;
  problem.n = n;
  problem.point_dimensions = generated ? 2 : 0;
  const PlannedRun planned = plan_path(problem, machine, options);
  EXPECT_EQ(planned.in_core, problem.tile == n);
  return planned.in_core ? "in-core" : "planned";
}

TEST(InCore, IsTakenByASingleGpuThatHoldsTheMatrix) {
  constexpr std::int64_t kMuch = std::int64_t{100} << 30;
  EXPECT_EQ(path_of(4096, machine_of("cuda", kMuch)), "in-core");
  EXPECT_EQ(path_of(kInCoreOrderMax, machine_of("cuda", kMuch)), "in-core");
  EXPECT_EQ(path_of(kInCoreOrderMax + 1, machine_of("cuda", kMuch)), "planned");
  EXPECT_EQ(path_of(4096, machine_of("cuda", kMuch, 2)), "planned");
  EXPECT_EQ(path_of(4096, machine_of("host", kMuch)), "planned");
  EXPECT_EQ(path_of(4096, machine_of("cuda", 4096 * 4096 * 8)), "planned") << "no room to solve";
  EXPECT_EQ(path_of(4096, machine_of("cuda", kMuch), {}, true), "planned") << "generated";
  CholeskyOptions options;
  options.tile = 512;
  EXPECT_EQ(path_of(4096, machine_of("cuda", kMuch), options), "planned") << "a tile was asked for";
  options = {};
  options.path = CholeskyPath::planned;
  EXPECT_EQ(path_of(4096, machine_of("cuda", kMuch), options), "planned");
  options.path = CholeskyPath::in_core;
  EXPECT_EQ(path_of(20000, machine_of("cuda", kMuch, 2), options), "in-core");
  EXPECT_EQ(path_of(300, machine_of("host", kMuch), options), "in-core");
}

TEST(InCore, NeverFallsBack) {
  CholeskyOptions options;
  options.path = CholeskyPath::in_core;
  try {
    (void)path_of(1000, machine_of("cuda", 8'000'255), options);
    FAIL() << "planned a matrix of 8,000,000 bytes and its status in 8,000,255";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("8000000 bytes"), std::string::npos) << error.what();
  }
  EXPECT_EQ(path_of(1000, machine_of("cuda", 8'000'256), options), "in-core");
  // A slot is a multiple of 256 bytes: 190² · 8 = 288,800 and 256 are not enough.
  EXPECT_THROW((void)path_of(190, machine_of("cuda", 289'279), options), Error);
  EXPECT_EQ(path_of(190, machine_of("cuda", 289'280), options), "in-core");
  options.tile = 64;
  EXPECT_THROW((void)path_of(1000, machine_of("cuda", 9'000'000), options), Error);
  options = {};
  options.blocking.recnb = 3;
  EXPECT_THROW((void)path_of(10, machine_of("host", 8'000'000), options), Error);
}

class InCoreRun : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, InCoreRun, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(InCoreRun, IsWithinRoundingOfThePlannedOne) {
  for (const std::int64_t n : {0, 1, 65, 300}) {
    const Matrix<double> a = test::random_spd_matrix<double>(n, 3);
    const CholeskyFactor core = cholesky(a.view(), on(GetParam(), CholeskyPath::in_core));
    CholeskyOptions tiles = on(GetParam(), CholeskyPath::planned);
    tiles.tile = 64;
    const CholeskyFactor planned = cholesky(a.view(), tiles);
    EXPECT_EQ(core.report().path, "in-core");
    EXPECT_EQ(planned.report().path, "planned");
    EXPECT_EQ(core.report().tile, std::max<std::int64_t>(n, 1));
    EXPECT_EQ(core.report().tasks, n > 0 ? 1 : 0);
    EXPECT_EQ(core.report().traffic, core.report().planned_traffic);
    const std::int64_t status = n > 0 ? static_cast<std::int64_t>(sizeof(PivotStatus)) : 0;
    EXPECT_EQ(core.report().traffic.total(), 2 * n * n * 8 + status);
    ASSERT_TRUE(core.report().predicted_seconds && planned.report().predicted_seconds);
    EXPECT_EQ(*core.report().predicted_seconds > 0, n > 0);
    Matrix<double> x(n, n), y(n, n);
    core.copy_lower(x.view());
    planned.copy_lower(y.view());
    // An element of row i is at most √a_ii; it is a sum of n terms, rounded in another order.
    const double share = 8 * std::sqrt(n) * std::numeric_limits<double>::epsilon();
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(x(i, j), y(i, j), share * std::sqrt(a(i, i))) << i << "," << j;
    }
    const double expected = planned.info().log_determinant;
    EXPECT_NEAR(core.info().log_determinant, expected, 1e-13 * std::abs(expected));
  }
}

TEST_P(InCoreRun, SolvesWithAnyNumberOfRightHandSides) {
  const std::int64_t n = 200;
  const Matrix<double> a = test::random_spd_matrix<double>(n, 4);
  // Room for the factor and all columns, for a few of them, for one.
  for (const std::int64_t columns : {600, 7, 1}) {
    CholeskyOptions options = on(GetParam(), CholeskyPath::in_core);
    options.run.device_memory_bytes = (n + columns) * n * 8 + 1024;
    for (const std::int64_t rhs : {0, 1, 5, 250}) {
      const Matrix<double> b = test::make_matrix<double>(
          n, rhs, [](auto i, auto j) { return std::sin(static_cast<double>(1 + i * 3 + j * 7)); });
      Matrix<double> x(n, rhs);
      const SolveResult result = solve(a.view(), b.view(), x.view(), options);
      EXPECT_TRUE(result.certificate.factor.ok);
      EXPECT_LE(result.certificate.backward_error, 1e-15) << columns << " " << rhs;
      EXPECT_EQ(result.solve.traffic, result.solve.planned_traffic);
      EXPECT_EQ(result.solve.path, "in-core");
      // A step of refinement is taken above 4 ε; the certificate's own residual is rounded, too.
      EXPECT_LE(test::backward_error(a, b, x), 8 * std::numeric_limits<double>::epsilon())
          << columns << " " << rhs;
    }
  }
}

TEST_P(InCoreRun, NamesTheSamePivot) {
  const std::int64_t n = 150;
  for (const std::int64_t bad : {0, 63, 64, 149}) {
    Matrix<double> a = test::min_matrix<double>(n);
    a(bad, bad) -= 3;
    for (const CholeskyPath path : {CholeskyPath::in_core, CholeskyPath::planned}) {
      const CholeskyFactor factor = cholesky(std::as_const(a).view(), on(GetParam(), path));
      EXPECT_FALSE(factor.info().ok);
      EXPECT_EQ(factor.info().first_bad_pivot, bad);
      EXPECT_EQ(factor.info().bad_pivot, -2);
    }
  }
}

TEST_P(InCoreRun, SinglePrecision) {
  const std::int64_t n = 130;
  const Matrix<float> a = test::random_spd_matrix<float>(n, 5);
  Matrix<float> x = test::make_matrix<float>(n, 2, [](auto i, auto j) { return double(i - j); });
  const Matrix<float> b = x;
  CholeskyFactor factor = cholesky(a.view(), on(GetParam(), CholeskyPath::in_core));
  (void)factor.solve(x.view());
  // Errors of n roundings of either sign add up as √n (Higham, Mary 2019).
  EXPECT_LE(test::backward_error(a, b, x), std::sqrt(n) * std::numeric_limits<float>::epsilon());
}

TEST_P(InCoreRun, AGeneratedMatrixWhereItIsAskedFor) {
  const std::int64_t n = 120;
  const Matrix<double> points = test::make_matrix<double>(n, 2, [](auto i, auto j) {
    return random_uniform(11, static_cast<std::uint64_t>(2 * i + j));
  });
  const CovarianceParameters parameters{2.0, 0.3, 0.5, 0.1, true};
  double log_determinants[2] = {};
  // With the identity as R, the products are the whitened covariances themselves.
  const Matrix<double> identity =
      test::make_matrix<double>(n, n, [](auto i, auto j) { return i == j ? 1.0 : 0.0; });
  Matrix<double> whitened[2] = {Matrix<double>(3, n), Matrix<double>(3, n)};
  std::vector<double> squares[2] = {std::vector<double>(3), std::vector<double>(3)};
  const Matrix<double> targets =
      test::make_matrix<double>(3, 2, [](auto i, auto j) { return 0.2 * double(i + j); });
  for (const int planned : {0, 1}) {
    CovarianceOptions options{
        on(GetParam(), planned != 0 ? CholeskyPath::planned : CholeskyPath::in_core)};
    if (planned != 0) options.tile = 32;
    CovarianceSolver solver(points.view(), options);
    const FactorInfo& info = solver.factor(parameters);
    ASSERT_TRUE(info.ok);
    EXPECT_EQ(solver.report().path, planned != 0 ? "planned" : "in-core");
    log_determinants[planned] = info.log_determinant;
    (void)solver.whitened_sums(targets.view(), identity.view(), whitened[planned].view(),
                               squares[planned]);
  }
  EXPECT_NEAR(log_determinants[0], log_determinants[1], 1e-13 * std::abs(log_determinants[1]));
  // √n roundings of a solve with L, whose condition is the root of A's: of 120·2/0.1 at most.
  double largest = 0;
  for (const double value : whitened[1].data) largest = std::max(largest, std::abs(value));
  for (std::size_t k = 0; k < whitened[0].data.size(); ++k)
    EXPECT_NEAR(whitened[0].data[k], whitened[1].data[k], 1e-13 * largest);
  for (const int planned : {0, 1}) {
    for (std::int64_t t = 0; t < 3; ++t) {
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += whitened[planned](t, i) * whitened[planned](t, i);
      EXPECT_NEAR(squares[planned][static_cast<std::size_t>(t)], sum, 1e-14 * sum);
    }
  }
}

}  // namespace
}  // namespace strata
