// Hermitian matrices on a GPU: planned factors beside the host's, the same bits in any budget, and
// solves whose bounds hold.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/backend/backend.hpp"
#include "scalar/complex.hpp"
#include "strata/cholesky.hpp"
#include "tests/cholesky/hermitian_systems.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Matrix;

template <class T>
class HermitianOnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  }
};
using HermitianTypes = ::testing::Types<test::Complex128, test::Complex64>;
TYPED_TEST_SUITE(HermitianOnCuda, HermitianTypes);

CholeskyOptions on_gpu_or_host(const std::string& devices, std::int64_t tile) {
  CholeskyOptions options;
  options.run.devices = devices;
  options.tile = tile;
  return options;
}

TYPED_TEST(HermitianOnCuda, HasTheHostsFactorAndTheSameBitsInAnyBudget) {
  using T = TypeParam;
  constexpr double kUnit = std::numeric_limits<RealOf<T>>::epsilon();
  for (const std::int64_t n : {300, 1100}) {
    const std::int64_t tile = n < 1000 ? 64 : 300;
    const Matrix<T> a = test::random_hermitian<T>(n, 11);
    const auto factor_of = [&](const CholeskyOptions& options, RunReport* report = nullptr) {
      const CholeskyFactor factor = cholesky(a.view(), options);
      EXPECT_TRUE(factor.info().ok);
      if (report != nullptr) *report = factor.report();
      Matrix<T> l(n, n);
      factor.copy_lower(l.view());
      return l;
    };
    const Matrix<T> host = factor_of(on_gpu_or_host("host", tile));
    RunReport whole_report;
    const Matrix<T> whole = factor_of(on_gpu_or_host("cuda:0", tile), &whole_report);
    EXPECT_EQ(whole_report.devices, std::vector<std::string>{"cuda:0"});
    const double size = std::sqrt(1.5 * static_cast<double>(n));
    for (std::size_t i = 0; i < host.data.size(); ++i)
      ASSERT_LE(std::abs(host.data[i] - whole.data[i]), 8 * kUnit * size) << n << ", " << i;
    for (const std::int64_t tiles : {4, 6, 9}) {
      for (const Policy policy : {Policy::sync, Policy::v3, Policy::opt}) {
        CholeskyOptions options = on_gpu_or_host("cuda:0", tile);
        options.run.policy = policy;
        options.run.device_memory_bytes =
            tiles * (tile * tile * static_cast<std::int64_t>(sizeof(T)) + 512) + 65536;
        RunReport report;
        const Matrix<T> found = factor_of(options, &report);
        EXPECT_TRUE(test::same_bits(found.data, whole.data)) << n << ", " << tiles;
        EXPECT_EQ(report.traffic.total(), report.planned_traffic.total());
      }
    }
  }
}

TYPED_TEST(HermitianOnCuda, IsSolvedWithACertificateThatHolds) {
  using T = TypeParam;
  const std::int64_t n = 700;
  const Matrix<T> a = test::random_hermitian<T>(n, 13);
  const Matrix<T> b = test::complex_waves<T>(n, 3);
  const auto solution_of = [&](const std::string& devices, double& bound) {
    Matrix<T> x(n, 3);
    const SolveResult result = solve(a.view(), b.view(), x.view(), on_gpu_or_host(devices, 128));
    EXPECT_TRUE(result.certificate.factor.ok);
    bound = result.certificate.forward_error;
    return x;
  };
  double of_host = 0;
  double of_gpu = 0;
  const Matrix<T> x = solution_of("host", of_host);
  const Matrix<T> y = solution_of("cuda:0", of_gpu);
  double apart = 0;
  double size = 0;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    apart = std::max<double>(apart, std::abs(x.data[i] - y.data[i]));
    size = std::max<double>(size, std::abs(x.data[i]));
  }
  EXPECT_LE(apart, (of_host + of_gpu) * size * (1 + 1e-9));
  EXPECT_LT(of_gpu, 1e-3);
}

}  // namespace
}  // namespace strata
