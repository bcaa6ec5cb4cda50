// What qr() tells of its way: steps and the trace of all passes.

#include <gtest/gtest.h>

#include <limits>

#include "strata/qr.hpp"
#include "tests/qr/factored.hpp"
#include "tests/qr/tall_matrices.hpp"

namespace strata {
namespace {

TEST(Qr, TellsItsStepsAndTracesAllPasses) {
  const test::Tall v = test::with_condition(5001, 12, 1e17, 7);
  const QrInfo info = test::factored(v, test::plain()).info;
  EXPECT_EQ(fold_traffic(info.report.trace.spans), info.report.traffic);
  std::int64_t tasks = 0;
  for (const Span& span : info.report.trace.spans) tasks += span.kind == SpanKind::compute ? 1 : 0;
  EXPECT_EQ(tasks, info.report.tasks);
  ASSERT_EQ(info.steps.size(), 2U);
  EXPECT_EQ(info.steps[0].what, "shifted cholesky");
  EXPECT_TRUE(info.steps[0].wide_sum && info.steps[0].wide_solve);
  EXPECT_GT(info.steps[0].condition, 9e14);
  EXPECT_EQ(info.steps.back().what, "cholesky");
  // Beside what was measured, what rounding does to sums in doubles.
  EXPECT_NEAR(info.orthogonality - info.steps.back().orthogonality,
              (4 * std::sqrt(12.0) + 12) * 0x1p-53, 1e-20);
  for (std::size_t k = 1; k < info.steps.size(); ++k) {
    EXPECT_LT(info.steps[k].condition, info.steps[k - 1].condition);
    EXPECT_LT(info.steps[k].orthogonality, info.steps[k - 1].orthogonality);
  }
  const auto steps_of = [&](QrMethod method) {
    return test::factored(v, test::plain(method)).info.steps;
  };
  EXPECT_EQ(steps_of(QrMethod::cholqr2).size(), 2U);
  EXPECT_EQ(steps_of(QrMethod::cholqr)[0].condition, std::numeric_limits<double>::infinity());
  EXPECT_EQ(steps_of(QrMethod::multi_sketch)[0].what, "sketch");
  EXPECT_EQ(steps_of(QrMethod::svqr_wide)[0].what, "eigenvalues");
  ASSERT_EQ(steps_of(QrMethod::mgs).size(), 1U);
  EXPECT_EQ(steps_of(QrMethod::mgs)[0].what, "mgs");
  ASSERT_EQ(steps_of(QrMethod::tsqr).size(), 1U);
  EXPECT_LE(steps_of(QrMethod::tsqr)[0].orthogonality, 1e-14);
}

}  // namespace
}  // namespace strata
