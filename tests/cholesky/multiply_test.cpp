// The product with a factor: against sums in long double, bit by bit against the schedule in order
// under every budget and policy, and as the inverse of the solve.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "cholesky/covariance_solver.hpp"
#include "cholesky/planning.hpp"
#include "run/run.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/policies.hpp"
#include "tests/cholesky/random_matrices.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/gaussian.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::kPolicies;
using test::Matrix;
using test::signed_uniform_matrix;

struct MultiplyCase {
  SolveProblem problem;
  Matrix<double> l;
  Matrix<double> x;

  MultiplyCase(std::int64_t n, std::int64_t tile, std::int64_t rhs, std::int64_t rhs_tile,
               int devices)
      : l(signed_uniform_matrix(n, n, 1)), x(signed_uniform_matrix(n, rhs, 2)) {
    problem.n = n;
    problem.tile = tile;
    problem.rhs = rhs;
    problem.rhs_tile = rhs_tile;
    problem.devices = devices;
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = triangular_solve(problem, Sweep::multiply).blocks;
    return std::make_unique<MemoryStore>(
        blocks, std::vector<std::shared_ptr<FamilyMemory>>{
                    std::make_shared<FamilyMemory>(blocks, kFactorFamily,
                                                   source_of_view(l.data.data(), l.ld(), true)),
                    std::make_shared<FamilyMemory>(blocks, kSolutionFamily,
                                                   source_of_view(x.data.data(), x.ld(), false))});
  }
};

std::vector<double> product_of(MemoryStore& store) {
  std::vector<double> all;
  store.blocks().for_each(kSolutionFamily, [&](BlockId id) {
    std::vector<double> block(static_cast<std::size_t>(store.blocks().bytes(id) / 8));
    store.read(id, reinterpret_cast<std::byte*>(block.data()));
    all.insert(all.end(), block.begin(), block.end());
  });
  return all;
}

TEST(Multiply, IsTheSumInLongDoubleWithTheSignOfGemm) {
  for (const std::int64_t n : {1, 15, 16, 17, 50}) {
    for (const Sweep sweep : {Sweep::multiply, Sweep::multiply_transposed}) {
      const MultiplyCase c(n, 16, 7, 3, 1);
      const auto store = c.make_store();
      const bool transposed = sweep == Sweep::multiply_transposed;
      run_in_order(triangular_solve(c.problem, sweep), host_backend(), *store, {});
      store->blocks().for_each(kSolutionFamily, [&](BlockId id) {
        const BlockExtent at = store->blocks().extent(id);
        const auto* block = reinterpret_cast<const double*>(store->lend(id));
        for (std::int64_t j = 0; j < at.cols; ++j) {
          for (std::int64_t i = 0; i < at.rows; ++i) {
            long double sum = 0;
            const std::int64_t row = at.row + i;
            for (std::int64_t k = transposed ? row : 0; k <= (transposed ? n - 1 : row); ++k) {
              const double l = transposed ? c.l(k, row) : c.l(row, k);
              sum -= static_cast<long double>(l) * c.x(k, at.col + j);
            }
            // n products below 1, each sum rounded.
            EXPECT_NEAR(block[i + j * at.rows], static_cast<double>(sum),
                        static_cast<double>(n * n) * std::numeric_limits<double>::epsilon());
          }
        }
      });
    }
  }
}

class MultiplyRun : public ::testing::TestWithParam<std::tuple<std::string, int, bool>> {};

void expect_bits_of_the_schedule_in_order(Sweep sweep, const std::string& backend, int devices,
                                          bool linked) {
  const std::string text = test::devices_text(backend, devices);
  if (text.empty()) GTEST_SKIP() << "too few GPUs";
  const MultiplyCase c(100, 16, 21, 8, devices);
  const Schedule schedule = triangular_solve(c.problem, sweep);
  const auto expected_store = c.make_store();
  run_in_order(schedule, test::backend_of(backend), *expected_store, {});
  const std::vector<double> expected = product_of(*expected_store);
  const std::int64_t least = smallest_budget_bytes(schedule);
  test::Thinned thinned(5);
  for (const std::int64_t budget : {least, least + 5000, 3 * least, 1_MiB}) {
    for (const Policy policy : kPolicies) {
      if (thinned.skips()) continue;
      RunOptions options;
      options.devices = text;
      options.device_memory_bytes = budget;
      options.compute_queues = 2;
      DeviceSet set(options);
      Machine machine = set.machine();
      machine.device_to_device = linked ? LinkRate{1e15, 0} : LinkRate{};
      const PlannedRun planned = make_planned_run(
          std::make_shared<const Schedule>(triangular_solve(c.problem, sweep)), machine, policy);
      const auto store = c.make_store();
      const RunOutcome outcome = run(*planned.plan, set, *store, {});
      EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
      EXPECT_TRUE(test::same_bits(product_of(*store), expected)) << budget << ' ' << planned.policy;
    }
  }
}

TEST_P(MultiplyRun, HasTheBitsOfTheScheduleInOrderForEveryBudgetAndPolicy) {
  const auto& [backend, devices, linked] = GetParam();
  expect_bits_of_the_schedule_in_order(Sweep::multiply, backend, devices, linked);
  expect_bits_of_the_schedule_in_order(Sweep::multiply_transposed, backend, devices, linked);
}

INSTANTIATE_TEST_SUITE_P(Backends, MultiplyRun,
                         ::testing::Combine(::testing::ValuesIn(test::available_backends()),
                                            ::testing::Values(1, 2, 3), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "_linked" : "");
                         });

TEST(MultiplyLower, IsUndoneByTheSolveAndGivesTheMatrixBack) {
  const std::int64_t n = 131;
  const Matrix<double> points = signed_uniform_matrix(n, 2, 5);
  for (const std::int64_t tile : {32, 131}) {
    CovarianceOptions options;
    options.run.devices = "host:2";
    options.tile = tile;
    CovarianceSolver solver(points.view(), options);
    ASSERT_TRUE(solver.factor({1.0, 0.3, 0.5, 0.1, true}).ok);
    const Matrix<double> z = signed_uniform_matrix(n, 9, 6);
    Matrix<double> y = z;
    const RunReport report = solver.multiply_lower(y.view());
    EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
    EXPECT_GT(report.flops, 0);
    Matrix<double> back = y;
    (void)solver.solve_lower(back.view());
    // Forward errors of both are n roundings, times the condition of L: below √(n·(1 + 0.1)/0.1).
    const double bound = 2 * static_cast<double>(n) * std::sqrt(static_cast<double>(n) * 11) *
                         std::numeric_limits<double>::epsilon();
    for (std::size_t i = 0; i < z.data.size(); ++i) EXPECT_NEAR(back.data[i], z.data[i], bound);
    // L·(L·e)ᵀ: the first column of L is that of the covariance over the root of its first value.
    Matrix<double> e(n, 1);
    e(0, 0) = 1;
    (void)solver.multiply_lower(e.view());
    for (std::int64_t i = 0; i < n; ++i) {
      const double h = std::hypot(points(i, 0) - points(0, 0), points(i, 1) - points(0, 1));
      EXPECT_NEAR(e(i, 0), (std::exp(-h / 0.3) + (i == 0 ? 0.1 : 0)) / std::sqrt(1.1), 1e-15) << i;
    }
  }
}

/// A factor of few digits, with tiles that are left out, is multiplied as the columns it gives.
TEST(MultiplyLower, OfAMixedFactorIsTheSumOverItsColumns) {
  const std::int64_t n = 700;
  const Matrix<double> points = test::ordered_points(n, 64, 5);
  CovarianceOptions options;
  options.run.devices = "host:2";
  options.tile = 64;
  options.mixed.accuracy = 1e-5;
  CovarianceSolver solver(points.view(), options);
  ASSERT_TRUE(solver.factor({1.0, 0.03, 0.5, 0, true}).ok);
  const auto& tiles = solver.report().mixed.value().tiles;
  EXPECT_GT(tiles[1] + tiles[2] + tiles[3], 0);
  EXPECT_GT(tiles[4], 0);
  Matrix<double> l(n, n);
  for (std::int64_t first = 0; first < n; first += 90)
    solver.copy_lower(first, l.view().block(0, first, n, std::min<std::int64_t>(90, n - first)));
  const Matrix<double> z = signed_uniform_matrix(n, 3, 6);
  Matrix<double> y = z;
  Matrix<double> of_transpose = z;
  (void)solver.multiply_lower(y.view());
  (void)solver.multiply_lower_transposed(of_transpose.view());
  for (std::int64_t j = 0; j < 3; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      long double sum = 0;
      long double transposed = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        sum += static_cast<long double>(l(i, k)) * z(k, j);
        transposed += static_cast<long double>(l(k, i)) * z(k, j);
      }
      // Rows of L have length 1, columns less than √n, elements of z at most 1.
      const double bound = std::sqrt(static_cast<double>(n)) * static_cast<double>(n) *
                           std::numeric_limits<double>::epsilon();
      ASSERT_NEAR(y(i, j), static_cast<double>(sum), bound) << i;
      ASSERT_NEAR(of_transpose(i, j), static_cast<double>(transposed), bound) << i;
    }
  }
  // The diagonal of its inverse, by solves with unit vectors.
  std::vector<double> diagonal(static_cast<std::size_t>(n));
  (void)solver.inverse_diagonal(diagonal);
  Matrix<double> inverse =
      test::make_matrix<double>(n, n, [](auto i, auto j) { return i == j ? 1.0 : 0.0; });
  (void)solver.solve(inverse.view());
  for (std::int64_t i = 0; i < n; ++i) {
    EXPECT_NEAR(diagonal[static_cast<std::size_t>(i)], inverse(i, i), 1e-9 * inverse(i, i)) << i;
  }
}

TEST(MultiplyLower, NeedsAFactorAndRowsThatFit) {
  const Matrix<double> points = signed_uniform_matrix(9, 2, 5);
  CovarianceOptions options;
  options.run.devices = "host:1";
  CovarianceSolver solver(points.view(), options);
  Matrix<double> b(9, 1);
  EXPECT_THROW((void)solver.multiply_lower(b.view()), Error);
  ASSERT_TRUE(solver.factor({1.0, 0.3, 0.5, 0.1, true}).ok);
  Matrix<double> wrong(8, 1);
  EXPECT_THROW((void)solver.multiply_lower(wrong.view()), Error);
}

}  // namespace
}  // namespace strata
