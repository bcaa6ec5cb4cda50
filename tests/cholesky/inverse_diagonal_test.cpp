// inverse_diagonal: against the inverse in long double, bit by bit against the schedule in order
// under every budget and policy, and what it moves.

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
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::kPolicies;
using test::Matrix;
using test::uniform_matrix;

struct InverseDiagonalCase {
  InverseProblem problem;
  Matrix<double> l;

  InverseDiagonalCase(std::int64_t n, std::int64_t tile, std::int64_t first, std::int64_t columns,
                      std::int64_t column_tile, int devices)
      : l(uniform_matrix(n, n, 1)) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) l(i, j) = i == j ? 4 + l(i, j) : i > j ? l(i, j) / 8 : 0;
    }
    problem.n = n;
    problem.tile = tile;
    problem.first = first;
    problem.columns = columns;
    problem.column_tile = column_tile;
    problem.devices = devices;
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = inverse_diagonal(problem).blocks;
    const BlockSource zeros = [](const BlockExtent& x, std::byte* to) {
      std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 0.0);
    };
    return std::make_unique<MemoryStore>(
        blocks, std::vector<std::shared_ptr<FamilyMemory>>{
                    std::make_shared<FamilyMemory>(blocks, inverse::kFactor,
                                                   source_of_view(l.data.data(), l.ld(), true)),
                    std::make_shared<FamilyMemory>(blocks, inverse::kColumns),
                    std::make_shared<FamilyMemory>(blocks, inverse::kSquares, zeros)});
  }
};

std::vector<double> squares_of(MemoryStore& store) {
  std::vector<double> all;
  store.blocks().for_each(inverse::kSquares, [&](BlockId id) {
    std::vector<double> block(static_cast<std::size_t>(store.blocks().bytes(id) / 8));
    store.read(id, reinterpret_cast<std::byte*>(block.data()));
    all.insert(all.end(), block.begin(), block.end());
  });
  return all;
}

/// The squared length of column j of L⁻¹.
double square_of_column(const Matrix<double>& l, std::int64_t j) {
  std::vector<long double> x(static_cast<std::size_t>(l.rows), 0.0L);
  long double square = 0;
  for (std::int64_t i = j; i < l.rows; ++i) {
    long double value = i == j ? 1 : 0;
    for (std::int64_t k = j; k < i; ++k)
      value -= static_cast<long double>(l(i, k)) * x[static_cast<std::size_t>(k)];
    x[static_cast<std::size_t>(i)] = value / static_cast<long double>(l(i, i));
    square += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)];
  }
  return static_cast<double>(square);
}

TEST(InverseDiagonal, IsThatOfSubstitutionInLongDouble) {
  for (const std::int64_t n : {1, 15, 16, 17, 50}) {
    for (const std::int64_t width : {1, 5, 7, 16}) {  // blocks that lie across the edge of a tile
      for (const std::int64_t first : {std::int64_t{0}, n / 2 / width * width}) {
        const InverseDiagonalCase c(n, 16, first, n - first, width, 1);
        const auto store = c.make_store();
        run_in_order(inverse_diagonal(c.problem), host_backend(), *store, {});
        const std::vector<double> squares = squares_of(*store);
        ASSERT_EQ(std::ssize(squares), n - first);
        for (std::int64_t j = first; j < n; ++j) {
          EXPECT_NEAR(squares[static_cast<std::size_t>(j - first)], square_of_column(c.l, j),
                      1e-15 * static_cast<double>(n))
              << n << ", " << width << ": " << j;
        }
      }
    }
  }
}

class InverseDiagonalRun : public ::testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(InverseDiagonalRun, HasTheBitsOfTheScheduleInOrderForEveryBudgetAndPolicy) {
  const auto& [backend, devices, linked] = GetParam();
  const std::string text = test::devices_text(backend, devices);
  if (text.empty()) GTEST_SKIP() << "too few GPUs";
  test::Thinned thinned(5);
  for (const std::int64_t first : {0, 24}) {
    const InverseDiagonalCase c(100, 16, first, 41, 8, devices);
    const Schedule schedule = inverse_diagonal(c.problem);
    const auto expected_store = c.make_store();
    run_in_order(schedule, test::backend_of(backend), *expected_store, {});
    const std::vector<double> expected = squares_of(*expected_store);
    const std::int64_t least = smallest_budget_bytes(schedule);
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
            std::make_shared<const Schedule>(inverse_diagonal(c.problem)), machine, policy);
        const auto store = c.make_store();
        const RunOutcome outcome = run(*planned.plan, set, *store, {});
        EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
        EXPECT_TRUE(test::same_bits(squares_of(*store), expected))
            << budget << ' ' << planned.policy;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, InverseDiagonalRun,
                         ::testing::Combine(::testing::ValuesIn(test::available_backends()),
                                            ::testing::Values(1, 2, 3), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "_linked" : "");
                         });

TEST(InverseDiagonal, KeepsWOnADeviceWithRoomForItAndTheSumsAloneGoHome) {
  const InverseDiagonalCase c(100, 16, 0, 100, 8, 1);
  for (const Policy policy : {Policy::v2, Policy::v3, Policy::opt}) {
    const PlannedRun planned =
        make_planned_run(std::make_shared<const Schedule>(inverse_diagonal(c.problem)),
                         Machine::emulated(1, 1_MiB), policy);
    EXPECT_EQ(planned.plan->totals().traffic.device_to_host_bytes, 100 * 8) << planned.policy;
    EXPECT_EQ(planned.plan->totals().traffic.total(),
              floor_of(c.problem, planned.plan->schedule().blocks))
        << planned.policy;
  }
}

TEST(InverseDiagonal, OfACovarianceIsThatOfItsSolves) {
  const std::int64_t n = 131;
  const Matrix<double> points = uniform_matrix(n, 2, 5);
  std::vector<double> expected;
  for (const std::int64_t tile : {32, 33, 131}) {
    for (const std::int64_t tiles : {4, 1000}) {
      CovarianceOptions options;
      options.run.devices = tile == 131 ? "host:1" : "host:2";
      options.tile = tile;
      if (tile < 131) options.run.device_memory_bytes = tiles * (tile * tile * 8 + 256);
      CovarianceSolver solver(points.view(), options);
      ASSERT_TRUE(solver.factor({1.0, 0.3, 0.5, 0.1, true}).ok);
      std::vector<double> diagonal(static_cast<std::size_t>(n));
      const RunReport report = solver.inverse_diagonal(diagonal);
      EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
      Matrix<double> identity(n, n);
      for (std::int64_t i = 0; i < n; ++i) identity(i, i) = 1;
      (void)solver.solve(identity.view());
      for (std::int64_t i = 0; i < n; ++i) {
        // n roundings, times the condition: below n·(1 + 0.1)/0.1.
        EXPECT_NEAR(diagonal[static_cast<std::size_t>(i)], identity(i, i),
                    131 * 131 * 11 * std::numeric_limits<double>::epsilon() * identity(i, i))
            << i;
      }
    }
  }
}

TEST(InverseDiagonal, NeedsAFactorAndAPlaceForEveryValue) {
  const Matrix<double> points = uniform_matrix(9, 2, 5);
  CovarianceOptions options;
  options.run.devices = "host:1";
  CovarianceSolver solver(points.view(), options);
  std::vector<double> diagonal(9);
  EXPECT_THROW((void)solver.inverse_diagonal(diagonal), Error);
  ASSERT_TRUE(solver.factor({1.0, 0.3, 0.5, 0.1, true}).ok);
  diagonal.pop_back();
  EXPECT_THROW((void)solver.inverse_diagonal(diagonal), Error);
}

}  // namespace
}  // namespace strata
