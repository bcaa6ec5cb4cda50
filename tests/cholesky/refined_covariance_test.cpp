// A factor of one covariance refines and certifies another one near it, on devices: what
// CovarianceSolver, refine() and estimate_log_determinant() are together.

#include <gtest/gtest.h>

#include "cholesky/covariance_solver.hpp"
#include "cholesky/log_determinant.hpp"
#include "cholesky/refinement.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/host_probes.hpp"
#include "tests/support/perturbed_factor.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kRefinedOrder = 200;

class RefinedCovariance : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override {
    const auto& [backend, devices] = GetParam();
    options_.run.devices = devices_text(backend, devices);
    if (options_.run.devices.empty()) GTEST_SKIP() << "too few GPUs";
    options_.tile = 32;
    options_.run.device_memory_bytes = 1 << 20;
    exact_ = std::make_unique<CovarianceSolver>(points_.view(), options_);
    near_ = std::make_unique<CovarianceSolver>(points_.view(), options_);
    ASSERT_TRUE(exact_->factor({1.0, 0.1, 0.5, 0.01, true}).ok);
    ASSERT_TRUE(near_->factor({1.0, 0.1002, 0.5, 0.0101, true}).ok);
  }

  [[nodiscard]] BlockOperator product() {
    return [this](MatrixView<const double> v, MatrixView<double> y) {
      const RunReport report = exact_->multiply(v, y);
      EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
    };
  }

  CovarianceOptions options_;
  Matrix<double> points_ =
      make_matrix<double>(kRefinedOrder, 2, [](auto i, auto j) { return signed_uniform(3, i, j); });
  std::unique_ptr<CovarianceSolver> exact_;
  std::unique_ptr<CovarianceSolver> near_;
};

INSTANTIATE_TEST_SUITE_P(Backends, RefinedCovariance,
                         ::testing::Combine(::testing::ValuesIn(available_backends()),
                                            ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
                         });

TEST_P(RefinedCovariance, IsSolvedAsByItsOwnFactor) {
  const Matrix<double> b =
      make_matrix<double>(kRefinedOrder, 3, [](auto i, auto j) { return signed_uniform(4, i, j); });
  Matrix<double> expected = b;
  (void)exact_->solve(expected.view());
  RefinementOptions options;
  options.norm = nonnegative_norm(product(), kRefinedOrder);
  const BlockSolver near = [&](MatrixView<double> v) { (void)near_->solve(v); };
  for (const RefinementMethod method :
       {RefinementMethod::conjugate_gradients, RefinementMethod::gmres_right}) {
    options.method = method;
    Matrix<double> x(kRefinedOrder, 3);
    const Refinement out = refine(product(), near, b.view(), x.view(), options);
    EXPECT_TRUE(out.converged) << out.backward_error;
    EXPECT_LE(out.steps, 12);
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t i = 0; i < kRefinedOrder; ++i)
        EXPECT_NEAR(x(i, j), expected(i, j), 1e-10 * norm_inf(kRefinedOrder, &expected(0, j)));
    }
    const auto forms = quadratic_forms(b.view(), x.view(), out.residuals.view(), near,
                                       out.ritz_min > 0 ? out.ritz_min : 0.9, options.norm);
    for (std::int64_t j = 0; j < 3; ++j) {
      const double form = accurate_dot(kRefinedOrder, &b(0, j), &expected(0, j));
      EXPECT_NEAR(forms[static_cast<std::size_t>(j)].value, form, 1e-11 * form);
    }
  }
}

TEST_P(RefinedCovariance, HasTheLogDeterminantOfItsOwnFactor) {
  const WhitenedOperators operators{
      product(), [&](MatrixView<double> v) { (void)near_->solve_lower(v); },
      [&](MatrixView<double> v) { (void)near_->solve_lower_transposed(v); }};
  const double difference = exact_->factor({1.0, 0.1, 0.5, 0.01, true}).log_determinant -
                            near_->factor({1.0, 0.1002, 0.5, 0.0101, true}).log_determinant;
  const LogDeterminantCorrection out = estimate_log_determinant(kRefinedOrder, operators);
  EXPECT_TRUE(out.converged);
  EXPECT_NEAR(out.correction, difference, out.statistical_bound_applied());
  EXPECT_LE(out.statistical_bound_applied(), 0.2 * std::abs(difference));
  EXPECT_LE(std::abs(difference), out.statistical_bound_unapplied());
}

}  // namespace
}  // namespace strata::test
