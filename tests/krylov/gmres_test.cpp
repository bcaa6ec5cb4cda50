// gmres: solutions, the restart counts of the reference, the same bits wherever it runs, and what
// becomes of input that is bad.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "krylov/gmres_blocks.hpp"
#include "strata/error.hpp"
#include "strata/krylov.hpp"
#include "strata/qr.hpp"
#include "tests/krylov/gmres_harness.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::complaint;
using test::residual_of;
using test::solved;
using test::Solved;
using test::with;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Gmres, SolvesByEveryMethodInEveryBasis) {
  const SparseMatrix a = test::grid(9, 7, 5, 0.3);
  const std::vector<double> b = test::row_sums(a);
  struct Case {
    std::int64_t s;
    QrMethod method;
  };
  const Case cases[] = {
      {1, QrMethod::automatic}, {1, QrMethod::mgs},         {1, QrMethod::cgs},
      {1, QrMethod::cgs2},      {4, QrMethod::automatic},   {4, QrMethod::cholqr},
      {5, QrMethod::cholqr2},   {5, QrMethod::cholqr_wide}, {6, QrMethod::cholqr_wide2},
      {4, QrMethod::mgs},       {4, QrMethod::cgs},         {20, QrMethod::automatic},
      {4, QrMethod::svqr},      {6, QrMethod::svqr_wide},   {8, QrMethod::cgs2}};
  for (const KrylovBasis basis :
       {KrylovBasis::monomial, KrylovBasis::newton, KrylovBasis::chebyshev}) {
    for (const Case& one : cases) {
      GmresOptions options = with(one.s, 20, one.method, basis);
      options.tolerance = 1e-9;
      const Solved result = solved(a, b, options);
      const std::string what = std::string(to_string(one.method)) +
                               ", s = " + std::to_string(one.s) + ", " +
                               std::string(to_string(basis));
      EXPECT_TRUE(result.info.ok) << what << ": " << result.info.why;
      const double residual = residual_of(a, b, result.x);
      EXPECT_LE(residual, 1e-9) << what;
      EXPECT_NEAR(result.info.relative_residual, residual, 1e-3 * residual + 1e-15) << what;
      for (const double x : result.x) ASSERT_NEAR(x, 1, 1e-7) << what;
    }
  }
}

TEST(Gmres, SolvesByEveryBlockOrthogonalization) {
  const SparseMatrix a = test::grid(9, 7, 5, 0.3);
  const std::vector<double> b = test::row_sums(a);
  struct Case {
    BlockOrthogonalization block;
    QrMethod method;
    std::int64_t panel;
    std::int64_t of_block, of_panel;  // sums
  };
  for (const Case& one : {Case{BlockOrthogonalization::classical, QrMethod::cholqr, 0, 2, 0},
                          Case{BlockOrthogonalization::classical, QrMethod::cholqr2, 0, 4, 0},
                          Case{BlockOrthogonalization::pythagorean, QrMethod::cholqr, 0, 1, 0},
                          Case{BlockOrthogonalization::pythagorean, QrMethod::cholqr2, 0, 2, 0},
                          Case{BlockOrthogonalization::pythagorean, QrMethod::cholqr_wide, 0, 1, 0},
                          Case{BlockOrthogonalization::classical, QrMethod::svqr, 0, 2, 0},
                          Case{BlockOrthogonalization::pythagorean, QrMethod::svqr_wide, 0, 1, 0},
                          Case{BlockOrthogonalization::two_stage, QrMethod::svqr, 0, 1, 1},
                          Case{BlockOrthogonalization::pythagorean, QrMethod::automatic, 0, 0, 0},
                          Case{BlockOrthogonalization::two_stage, QrMethod::cholqr, 0, 1, 1},
                          Case{BlockOrthogonalization::two_stage, QrMethod::cholqr_wide, 8, 1, 1},
                          Case{BlockOrthogonalization::two_stage, QrMethod::automatic, 10, 0, 0}}) {
    GmresOptions options = with(4, 20, one.method, KrylovBasis::newton);
    options.tolerance = 1e-9;
    options.block_orthogonalization = one.block;
    options.panel = one.panel;
    const Solved result = solved(a, b, options);
    const std::string what =
        std::string(to_string(one.block)) + ", " + std::string(to_string(one.method));
    EXPECT_TRUE(result.info.ok) << what << ": " << result.info.why;
    EXPECT_LE(residual_of(a, b, result.x), 1e-9) << what;
    ASSERT_GE(result.info.decisions.size(), 6U) << what;
    std::int64_t column = 0;
    for (const KrylovDecision& d : result.info.decisions) {
      if (one.of_block == 0) continue;
      column = d.column % 20;
      const std::int64_t panel = one.panel > 0 ? one.panel : 20;
      const bool last = (column + d.s) % panel == 0 || column + d.s == 20;
      EXPECT_EQ(d.reductions, one.of_block + (last ? one.of_panel : 0)) << what << ", " << column;
    }
  }
}

TEST(Gmres, TakesAnInitialGuess) {
  const SparseMatrix a = test::laplacian(6);
  const std::vector<double> b = test::row_sums(a);
  std::vector<double> x(b.size(), 1.0);
  const GmresInfo info = gmres(a, b, x, with(1, 20, QrMethod::automatic));
  EXPECT_TRUE(info.ok);
  EXPECT_EQ(info.restarts, 0);
  EXPECT_EQ(x, std::vector<double>(b.size(), 1.0));
}

// ---- the same bits

void expect_same(const Solved& a, const Solved& b, const std::string& what) {
  EXPECT_EQ(a.x, b.x) << what;
  ASSERT_EQ(a.info.history.size(), b.info.history.size()) << what;
  for (std::size_t i = 0; i < a.info.history.size(); ++i) {
    EXPECT_EQ(a.info.history[i].relative_residual, b.info.history[i].relative_residual) << what;
    EXPECT_EQ(a.info.history[i].estimated_residual, b.info.history[i].estimated_residual) << what;
    EXPECT_EQ(a.info.history[i].vectors, b.info.history[i].vectors) << what;
  }
  ASSERT_EQ(a.info.decisions.size(), b.info.decisions.size()) << what;
  for (std::size_t i = 0; i < a.info.decisions.size(); ++i) {
    EXPECT_EQ(a.info.decisions[i].s, b.info.decisions[i].s) << what;
    EXPECT_EQ(a.info.decisions[i].condition, b.info.decisions[i].condition) << what;
    EXPECT_EQ(a.info.decisions[i].what, b.info.decisions[i].what) << what;
  }
}

class GmresRuns : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, GmresRuns, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(GmresRuns, MoveWhatIsPlannedAtAllHalfAndAQuarterOfTheirMemory) {
  const SparseMatrix a = test::grid(13, 11, 17, 0.2);
  const std::vector<double> b = test::row_sums(a);
  for (const Element precision : {Element::fp64, Element::fp32}) {
    GmresOptions options = with(6, 20, QrMethod::automatic, KrylovBasis::newton);
    options.precision = precision;
    options.run.devices = test::devices_text(GetParam(), 1);
    const Solved expected = solved(a, b, options);
    ASSERT_GE(expected.info.restarts, 2);
    const std::int64_t all = expected.info.report.peak_device_bytes;
    std::int64_t moved = expected.info.report.traffic.total() - 1;
    for (const std::int64_t share : {100, 50, 25}) {
      options.run.device_memory_bytes = all * share / 100;
      const Solved result = solved(a, b, options);
      const RunReport& report = result.info.report;
      expect_same(result, expected, std::to_string(share) + " %");
      EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic)) << share;
      EXPECT_LE(report.peak_device_bytes, all * share / 100) << share;
      EXPECT_GT(report.traffic.total(), moved) << share;
      moved = report.traffic.total();
    }
  }
}

TEST_P(GmresRuns, HaveTheSameBitsOnAnyDevicesInAnyBudgetAndPolicy) {
  // 2431 rows: twenty chunks, the last one short; far neighbours, so that it is reordered.
  SparseMatrix a = test::grid(13, 11, 17, 0.2);
  const std::vector<double> b = test::row_sums(a);
  const auto classical = BlockOrthogonalization::classical;
  const Element fp64 = Element::fp64;
  for (const auto& [s, method, basis, block, precision] :
       {std::tuple(1, QrMethod::mgs, KrylovBasis::monomial, classical, fp64),
        std::tuple(10, QrMethod::automatic, KrylovBasis::monomial, classical, fp64),
        std::tuple(6, QrMethod::automatic, KrylovBasis::newton, classical, fp64),
        std::tuple(6, QrMethod::automatic, KrylovBasis::newton, classical, Element::fp32),
        std::tuple(5, QrMethod::cholqr2, KrylovBasis::monomial, classical, Element::fp32),
        std::tuple(5, QrMethod::cholqr_wide2, KrylovBasis::chebyshev, classical, fp64),
        std::tuple(5, QrMethod::cholqr_wide, KrylovBasis::chebyshev,
                   BlockOrthogonalization::pythagorean, fp64),
        std::tuple(8, QrMethod::svqr_wide, KrylovBasis::monomial, classical, fp64),
        std::tuple(6, QrMethod::automatic, KrylovBasis::newton, BlockOrthogonalization::two_stage,
                   fp64)}) {
    GmresOptions options = with(s, 20, method, basis);
    options.precision = precision;
    if (precision == Element::fp32) options.tolerance = 1e-10;
    options.block_orthogonalization = block;
    const Solved expected = solved(a, b, options);
    ASSERT_TRUE(expected.info.ok);
    ASSERT_GE(expected.info.restarts, 2);
    for (const int devices : {1, 2, 3, 4}) {
      options.run.devices = test::devices_text(GetParam(), devices);
      if (options.run.devices.empty()) continue;
      for (const std::int64_t budget : {std::int64_t{64} << 20, std::int64_t{400'000}}) {
        if (budget < 1 << 20 && s == 1) continue;  // thousands of tasks
        if (test::kSanitized && devices != (budget < 1 << 20 ? 2 : 3)) continue;
        options.run.device_memory_bytes = budget;
        const Solved result = solved(a, b, options);
        expect_same(
            result, expected,
            options.run.devices + ", " + std::to_string(budget) + ", s = " + std::to_string(s));
        EXPECT_EQ(result.info.report.traffic,
                  static_cast<const Traffic&>(result.info.report.planned_traffic));
        EXPECT_LE(result.info.report.peak_device_bytes, budget);
      }
    }
    options.run.devices = test::devices_text(GetParam(), 1);
    options.run.device_memory_bytes = 64 << 20;
    for (const Policy policy : {Policy::sync, Policy::v2}) {
      if (test::kSanitized && (policy == Policy::sync) != (s == 6)) continue;
      options.run.policy = policy;
      expect_same(solved(a, b, options), expected, "another policy");
    }
  }
}

TEST(Gmres, TheTraceHasEveryScriptAndThePartsOfTheTimeAddUp) {
  const SparseMatrix a = test::grid(9, 7, 11, 0.2);
  const std::vector<double> b = test::row_sums(a);
  for (const int devices : {1, 3}) {
    GmresOptions options = with(5, 20, QrMethod::cholqr2);
    options.run.devices = "host:" + std::to_string(devices);
    const GmresInfo info = solved(a, b, options).info;
    ASSERT_GE(info.restarts, 2);
    const Trace& trace = info.report.trace;
    EXPECT_EQ(fold_traffic(trace.spans), info.report.traffic);
    EXPECT_EQ(trace.traffic, info.report.traffic);
    std::int64_t tasks = 0;
    std::int64_t products = 0;
    double end = 0;
    for (const Span& span : trace.spans) {
      end = std::max(end, span.end);
      if (span.kind != SpanKind::compute) continue;
      ++tasks;
      products += trace.operations[span.operation] == "spmv" ? 1 : 0;
    }
    EXPECT_EQ(tasks, info.report.tasks);
    // One a vector, and one for each residual, of which the first is before all cycles.
    EXPECT_EQ(products, devices * (info.iterations + info.restarts + 1));
    EXPECT_LE(end, trace.seconds * (1 + 1e-12));
    const KrylovSeconds& t = info.seconds;
    for (const double part : {t.products, t.projections, t.gram, t.solves, t.host})
      EXPECT_GT(part, 0);
    EXPECT_NEAR(t.products + t.projections + t.gram + t.solves + t.rest, info.report.seconds,
                1e-9 * info.report.seconds);
    EXPECT_NEAR(trace.seconds, info.report.seconds, 1e-9 * info.report.seconds);
  }
}

TEST(Gmres, BlocksAreSeenProjectedAndNotYetOrthonormal) {
  const SparseMatrix a = test::grid(8, 7, 6, 0.2);
  const std::vector<double> b = test::row_sums(a);
  GmresOptions options = with(5, 20, QrMethod::cholqr_wide, KrylovBasis::newton);
  options.tolerance = 1e-9;
  std::int64_t seen = 0;
  std::vector<double> first(b.size());
  const auto look = [&](std::int64_t restart, std::int64_t column, MatrixView<const double> w) {
    ++seen;
    EXPECT_GE(restart, 1);  // the first cycle goes vector by vector
    EXPECT_EQ(w.rows, a.rows);
    EXPECT_LE(column + w.cols, 20);
    std::vector<double> v(static_cast<std::size_t>(w.size()));
    for (std::int64_t j = 0; j < w.cols; ++j)
      std::copy_n(w.column(j), w.rows, v.data() + j * w.rows);
    std::vector<double> r(static_cast<std::size_t>(w.cols * w.cols));
    const QrInfo info = qr(MatrixView<double>{v.data(), w.rows, w.cols, w.rows},
                           MatrixView<double>{r.data(), w.cols, w.cols, w.cols});
    EXPECT_EQ(info.rank, w.cols);
    EXPECT_GT(info.condition, 1.5);  // not orthonormal
    // Projected: the first block of a cycle is orthogonal to the vector before it, which is ‖r‖⁻¹·r
    // and not shown; of later ones it is enough that none is in the span of the first's.
    if (column == 0) {
      std::copy_n(w.column(0), w.rows, first.data());
    } else {
      double product = 0;
      double length = 0;
      double other = 0;
      for (std::size_t i = 0; i < first.size(); ++i) {
        const double x = w(static_cast<std::int64_t>(i), 0);
        product += first[i] * x;
        length += x * x;
        other += first[i] * first[i];
      }
      EXPECT_LE(std::abs(product), 1e-12 * std::sqrt(length * other));
    }
  };
  std::vector<double> x(b.size());
  const GmresInfo watched = gmres_observed(a, b, x, options, look);
  const Solved plain = solved(a, b, options);
  EXPECT_EQ(x, plain.x);  // looking changes nothing
  EXPECT_EQ(seen, std::ssize(watched.decisions));
  EXPECT_GE(seen, 2);
  options.orthogonalization = QrMethod::cholqr2;
  EXPECT_THROW((void)gmres_observed(a, b, x, options, look), Error);
}

TEST(Gmres, TheBasisStaysOnTheDevices) {
  const SparseMatrix a = test::laplacian(12);
  const std::vector<double> b = test::row_sums(a);
  GmresOptions options = with(5, 20, QrMethod::automatic);
  const Solved result = solved(a, b, options);
  ASSERT_GE(result.info.restarts, 2);
  // x, b and the matrix come once, what is small comes and goes, and of V nothing: its first values
  // are made on the devices.
  const std::int64_t once = a.rows * 2 * 8 + a.entries() * 12 + a.rows * 4;
  EXPECT_GE(result.info.report.traffic.host_to_device_bytes, once);
  EXPECT_LE(result.info.report.traffic.host_to_device_bytes, once * 3 / 2);
  EXPECT_LE(result.info.report.traffic.device_to_host_bytes, once / 2);
}

// ---- scaling and order

TEST(Gmres, KeepsTheToleranceOfWhatWasGivenUnderAnyScaling) {
  SparseMatrix a = test::grid(8, 6, 7, 0.1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(i * 5 % 21) - 10);
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k)
      a.value[static_cast<std::size_t>(k)] *= scale;
  }
  const std::vector<double> b = test::row_sums(a);
  GmresOptions options = with(5, 40, QrMethod::automatic, KrylovBasis::newton);
  options.balance = true;
  Solved result = solved(a, b, options);
  EXPECT_TRUE(result.info.ok) << result.info.why;
  EXPECT_LE(residual_of(a, b, result.x), 1e-6);
  const std::int64_t balanced = result.info.iterations;
  options.preconditioner.kind = Preconditioner::jacobi;
  result = solved(a, b, options);
  EXPECT_TRUE(result.info.ok) << result.info.why;
  EXPECT_LE(residual_of(a, b, result.x), 1e-6);
  options.balance = false;
  options.preconditioner.kind = Preconditioner::none;
  result = solved(a, b, options);
  EXPECT_TRUE(!result.info.ok || result.info.iterations > balanced) << "balancing did not matter";
}

// ---- what cannot be solved

TEST(Gmres, TellsOfASingularMatrixWithTheTrueResidual) {
  std::vector<double> d(300, 2.0);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = 1 + static_cast<double>(i % 17);
  d[7] = 0;
  const SparseMatrix a = test::diagonal(d);
  const std::vector<double> b(300, 1.0);
  const auto classical = BlockOrthogonalization::classical;
  for (const auto& [s, block] : {std::pair(1, classical), std::pair(5, classical),
                                 std::pair(5, BlockOrthogonalization::pythagorean),
                                 std::pair(5, BlockOrthogonalization::two_stage)}) {
    GmresOptions options = with(s, 30, QrMethod::automatic);
    options.block_orthogonalization = block;
    const Solved result = solved(a, b, options);
    EXPECT_FALSE(result.info.ok);
    EXPECT_TRUE(result.info.breakdown || result.info.stagnated);
    EXPECT_FALSE(result.info.why.empty());
    EXPECT_NEAR(result.info.relative_residual, residual_of(a, b, result.x), 1e-9);
    EXPECT_NEAR(result.info.relative_residual, std::sqrt(1.0 / 300), 1e-6);
  }
}

TEST(Gmres, EndsWhereTheSpaceEnds) {
  const SparseMatrix a = test::diagonal(std::vector<double>(200, 4.0));
  const std::vector<double> b(200, 1.0);
  const auto classical = BlockOrthogonalization::classical;
  for (const auto& [s, block] : {std::pair(1, classical), std::pair(8, classical),
                                 std::pair(8, BlockOrthogonalization::pythagorean),
                                 std::pair(8, BlockOrthogonalization::two_stage)}) {
    GmresOptions options = with(s, 20, QrMethod::automatic);
    options.block_orthogonalization = block;
    const Solved result = solved(a, b, options);
    EXPECT_TRUE(result.info.ok) << result.info.why;
    EXPECT_EQ(result.info.restarts, 1);
    for (const double x : result.x) EXPECT_NEAR(x, 0.25, 1e-14);
  }
}

TEST(Gmres, ANullRightHandSideHasTheNullSolution) {
  const SparseMatrix a = test::laplacian(3);
  std::vector<double> x(27, 3.0);
  const GmresInfo info = gmres(a, std::vector<double>(27), x, with(1, 20, QrMethod::automatic));
  EXPECT_TRUE(info.ok);
  EXPECT_EQ(x, std::vector<double>(27));
}

TEST(Gmres, TooFewCyclesAreTold) {
  const SparseMatrix a = test::laplacian(12);
  GmresOptions options = with(1, 3, QrMethod::automatic);
  options.restarts_max = 2;
  const Solved result = solved(a, test::row_sums(a), options);
  EXPECT_FALSE(result.info.ok);
  EXPECT_EQ(result.info.restarts, 2);
  EXPECT_NEAR(result.info.relative_residual, residual_of(a, test::row_sums(a), result.x), 1e-9);
}

/// 3·fl(1/3) is 1 in doubles, and 2⁻⁵⁴ off in truth: no cycle can do anything about it.
TEST(Gmres, AToleranceBelowRoundingIsToldFromTooFewCycles) {
  const SparseMatrix a = test::diagonal({3.0});
  GmresOptions options = with(1, 30, QrMethod::automatic);
  options.tolerance = 1e-20;
  const Solved got = solved(a, {1.0}, options);
  EXPECT_FALSE(got.info.ok);
  EXPECT_LT(got.info.restarts, options.restarts_max);
  EXPECT_GT(got.info.relative_residual, 1e-17);
  EXPECT_LT(got.info.relative_residual, 1e-15);
  EXPECT_NE(got.info.why.find("where rounding keeps it"), std::string::npos) << got.info.why;
  EXPECT_EQ(got.info.why.find("1 cycles"), std::string::npos) << got.info.why;
}

TEST(Gmres, AMatrixSmallerThanARestartIsSolved) {
  const SparseMatrix a = test::grid(2, 2, 1);
  for (const std::int64_t s : {1, 30}) {
    const Solved result = solved(a, test::row_sums(a), with(s, 60, QrMethod::automatic));
    EXPECT_TRUE(result.info.ok) << result.info.why;
  }
}

// ---- bad input

TEST(Gmres, BadInputIsNamed) {
  SparseMatrix a = test::laplacian(4);
  std::vector<double> b(64, 1.0);
  const auto message = [&](ErrorKind kind, const GmresOptions& options) {
    return complaint(kind, [&] { (void)solved(a, b, options); });
  };
  EXPECT_NE(message(ErrorKind::misuse, with(31, 30, QrMethod::automatic)).find("s = 31"),
            std::string::npos);
  (void)message(ErrorKind::misuse, with(1, 0, QrMethod::automatic));
  (void)message(ErrorKind::misuse, with(1, 501, QrMethod::automatic));
  const auto in_blocks = [&](std::int64_t s, BlockOrthogonalization block, QrMethod method,
                             std::int64_t panel = 0) {
    GmresOptions options = with(s, 30, method);
    options.block_orthogonalization = block;
    options.panel = panel;
    return message(ErrorKind::misuse, options);
  };
  EXPECT_NE(in_blocks(1, BlockOrthogonalization::pythagorean, QrMethod::cgs2).find("s = 1"),
            std::string::npos);
  EXPECT_NE(in_blocks(5, BlockOrthogonalization::pythagorean, QrMethod::mgs).find("mgs"),
            std::string::npos);
  EXPECT_NE(in_blocks(5, BlockOrthogonalization::two_stage, QrMethod::cholqr2).find("cholqr2"),
            std::string::npos);
  (void)in_blocks(5, BlockOrthogonalization::pythagorean, QrMethod::cholqr, 10);
  (void)in_blocks(5, BlockOrthogonalization::two_stage, QrMethod::cholqr, 4);
  (void)in_blocks(5, BlockOrthogonalization::two_stage, QrMethod::cholqr, 31);
  EXPECT_EQ(parse_block_orthogonalization("two-stage"), BlockOrthogonalization::two_stage);
  EXPECT_THROW((void)parse_block_orthogonalization("three-stage"), Error);
  GmresOptions half = with(5, 30, QrMethod::automatic);
  half.precision = Element::fp16;
  EXPECT_NE(message(ErrorKind::misuse, half).find("fp16"), std::string::npos);
  GmresOptions none = with(1, 30, QrMethod::automatic);
  none.tolerance = kNan;
  (void)message(ErrorKind::misuse, none);
  b[17] = kNan;
  EXPECT_NE(message(ErrorKind::input, with(1, 30, QrMethod::automatic)).find("element 17 of b"),
            std::string::npos);
  b[17] = 1;
  a.value[static_cast<std::size_t>(a.start[5])] = INFINITY;
  EXPECT_NE(message(ErrorKind::input, with(1, 30, QrMethod::automatic)).find("entry (5, "),
            std::string::npos);
  a = test::laplacian(4);
  b.pop_back();
  (void)message(ErrorKind::misuse, with(1, 30, QrMethod::automatic));
  b.push_back(1);
  std::swap(a.column[0], a.column[1]);
  (void)message(ErrorKind::misuse, with(1, 30, QrMethod::automatic));
  for (const std::int64_t beyond : {std::int64_t{-1}, std::int64_t{1} << 40}) {
    a = test::laplacian(4);
    a.start[5] = beyond;
    EXPECT_NE(message(ErrorKind::misuse, with(1, 30, QrMethod::automatic)).find("row 4"),
              std::string::npos);
  }
  a = test::diagonal(std::vector<double>(64, 0.0));
  GmresOptions jacobi = with(1, 30, QrMethod::automatic);
  jacobi.preconditioner.kind = Preconditioner::jacobi;
  EXPECT_NE(message(ErrorKind::input, jacobi).find("(0, 0)"), std::string::npos);
}

TEST(Gmres, ABudgetThatIsTooSmallIsRefused) {
  const SparseMatrix a = test::laplacian(8);
  GmresOptions options = with(5, 30, QrMethod::automatic);
  options.run.device_memory_bytes = 50'000;
  const std::string message =
      complaint(ErrorKind::memory, [&] { (void)solved(a, test::row_sums(a), options); });
  EXPECT_NE(message.find("needs"), std::string::npos) << message;
}

TEST(Gmres, IsCancelled) {
  const SparseMatrix a = test::laplacian(8);
  GmresOptions options = with(5, 30, QrMethod::automatic);
  int calls = 0;
  options.run.progress = [&](const Progress&) { return ++calls < 3; };
  (void)complaint(ErrorKind::cancelled, [&] { (void)solved(a, test::row_sums(a), options); });
}

}  // namespace
}  // namespace strata
