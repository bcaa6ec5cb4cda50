// covariance_product: against sums in long double, bit by bit against the schedule in order under
// every budget, policy and number of devices, and what it moves.

#include "cholesky/covariance_product.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "cholesky/covariance_solver.hpp"
#include "cholesky/tile_cholesky.hpp"
#include "kernels/covariance/covariance_times.hpp"
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
using test::signed_uniform_matrix;

/// Row i of (the covariance with range 0.3 and smoothness 1/2) · v, and of its absolute values.
std::pair<long double, long double> exact(const Matrix<double>& points, double variance,
                                          double nugget, std::int64_t i, const double* v) {
  long double sum = 0, size = 0;
  for (std::int64_t k = 0; k < points.rows; ++k) {
    const long double dx = static_cast<long double>(points(i, 0)) - points(k, 0);
    const long double dy = static_cast<long double>(points(i, 1)) - points(k, 1);
    long double c = variance * std::exp(-std::sqrt(dx * dx + dy * dy) / 0.3L);
    if (i == k) c += nugget;
    sum += c * v[k];
    size += std::abs(c * v[k]);
  }
  return {sum, size};
}

struct CovarianceProductCase {
  ProductProblem problem;
  Matrix<double> points;
  Matrix<double> v;
  CovarianceParameters parameters{2.0, 0.3, 0.5, 0.0, false};

  CovarianceProductCase(std::int64_t n, std::int64_t tile, std::int64_t column_tile,
                        std::int64_t columns, int devices)
      : points(signed_uniform_matrix(n, 2, 2)), v(signed_uniform_matrix(n, columns, 3)) {
    problem.n = n;
    problem.tile = problem.factor_tile = tile;
    problem.columns = columns;
    problem.point_dimensions = 2;
    problem.devices = devices;
    problem.column_tile = column_tile;
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = covariance_product(problem).blocks;
    const auto of = [&](int family, const Matrix<double>& m) {
      return std::make_shared<FamilyMemory>(blocks, family,
                                            source_of_view(m.data.data(), m.ld(), false));
    };
    const auto zeros = [](const BlockExtent& x, std::byte* to) {
      std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 0.0);
    };
    return std::make_unique<MemoryStore>(
        blocks, std::vector<std::shared_ptr<FamilyMemory>>{
                    nullptr, of(product::kRowPoints, points), of(product::kColumnPoints, points),
                    of(product::kRight, v),
                    std::make_shared<FamilyMemory>(blocks, product::kProduct, zeros)});
  }

  [[nodiscard]] IssueOptions run_options() const {
    IssueOptions options;
    options.values = {{covariance_times.name, &parameters}};
    return options;
  }
};

/// −C·V out of a store.
Matrix<double> product_of(MemoryStore& store, const CovarianceProductCase& c) {
  Matrix<double> y(c.problem.n, c.problem.columns);
  store.blocks().for_each(product::kProduct, [&](BlockId id) {
    const BlockExtent x = store.blocks().extent(id);
    std::vector<double> block(static_cast<std::size_t>(x.rows * x.cols));
    store.read(id, reinterpret_cast<std::byte*>(block.data()));
    for (std::int64_t j = 0; j < x.cols; ++j)
      std::copy_n(block.data() + j * x.rows, x.rows, &y(x.row, x.col + j));
  });
  return y;
}

TEST(CovarianceProduct, IsThatOfTheWholeMatrixInLongDouble) {
  for (const std::int64_t n : {1, 15, 16, 17, 75, 513, 1100}) {
    for (const std::int64_t columns : {1, 3}) {
      for (const std::int64_t column_tile : {512, 1024}) {
        const CovarianceProductCase c(n, n > 100 ? 100 : 16, column_tile, columns, 1);
        const auto store = c.make_store();
        run_in_order(covariance_product(c.problem), host_backend(), *store, c.run_options());
        const Matrix<double> y = product_of(*store, c);
        for (std::int64_t j = 0; j < columns; ++j) {
          for (std::int64_t i = 0; i < n; ++i) {
            const auto [sum, size] = exact(c.points, 2.0, 0.0, i, &c.v(0, j));
            EXPECT_LE(std::abs(sum + y(i, j)), static_cast<long double>(n + 8) * 0x1p-53L * size)
                << n << ' ' << i << ' ' << j;
          }
        }
      }
    }
  }
}

TEST(CovarianceProduct, HasTheSameBitsInAnyTiles) {
  for (const std::string& backend : test::available_backends()) {
    std::vector<double> expected;
    for (const auto& [tile, column_tile] :
         {std::pair{1600, 2048}, {1600, 512}, {129, 512}, {200, 1024}, {31, 1536}}) {
      const CovarianceProductCase c(1600, tile, column_tile, 2, 1);
      const auto store = c.make_store();
      run_in_order(covariance_product(c.problem), test::backend_of(backend), *store,
                   c.run_options());
      const Matrix<double> y = product_of(*store, c);
      if (expected.empty()) expected = y.data;
      EXPECT_TRUE(test::same_bits(y.data, expected))
          << backend << ' ' << tile << ' ' << column_tile;
    }
  }
}

class CovarianceProductRun : public ::testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(CovarianceProductRun, HasTheBitsOfOneDeviceInOrderForEveryBudgetAndPolicy) {
  const auto& [backend, devices, linked] = GetParam();
  const std::string text = test::devices_text(backend, devices);
  if (text.empty()) GTEST_SKIP() << "too few GPUs";
  const CovarianceProductCase one(600, 64, 16384, 3, 1);
  const auto expected_store = one.make_store();
  run_in_order(covariance_product(one.problem), test::backend_of(backend), *expected_store,
               one.run_options());
  const Matrix<double> expected = product_of(*expected_store, one);
  test::Thinned thinned(11);
  for (const auto& [tile, column_tile] : {std::pair{100, 512}, {77, 1024}, {600, 512}}) {
    const CovarianceProductCase c(600, tile, column_tile, 3, devices);
    const std::int64_t least = smallest_budget_bytes(covariance_product(c.problem));
    for (const std::int64_t budget : {least, least + 2500, 3 * least, 1_MiB}) {
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
            std::make_shared<const Schedule>(covariance_product(c.problem)), machine, policy);
        const auto store = c.make_store();
        const RunOutcome outcome = run(*planned.plan, set, *store, c.run_options());
        EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
        EXPECT_TRUE(test::same_bits(product_of(*store, c).data, expected.data))
            << tile << ' ' << column_tile << ' ' << budget << ' ' << planned.policy;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, CovarianceProductRun,
                         ::testing::Combine(::testing::ValuesIn(test::available_backends()),
                                            ::testing::Values(1, 2, 3), ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "_linked" : "");
                         });

TEST(CovarianceProduct, MovesNoTileOfTheMatrix) {
  const CovarianceProductCase c(1300, 200, 512, 3, 1);
  for (const Policy policy : {Policy::v1, Policy::v2, Policy::v3, Policy::opt}) {
    const PlannedRun planned =
        make_planned_run(std::make_shared<const Schedule>(covariance_product(c.problem)),
                         Machine::emulated(1, 1_MiB), policy);
    EXPECT_EQ(planned.plan->totals().traffic.device_to_host_bytes, 1300 * 3 * 8) << planned.policy;
    EXPECT_EQ(planned.plan->totals().tasks, 7 * 3);
    if (policy == Policy::v1) continue;  // where inputs leave, they come again
    // Points come twice, in tiles of rows and of columns.
    EXPECT_EQ(planned.plan->totals().traffic.total(),
              floor_of(c.problem, planned.plan->schedule().blocks) + 1300 * 2 * 8)
        << planned.policy;
  }
}

TEST(CovarianceProduct, TilesOfColumnsAreWholeRuns) {
  CovarianceProductCase c(1300, 200, 512, 3, 1);
  c.problem.column_tile = 500;
  EXPECT_THROW((void)covariance_product(c.problem), Error);
  c.problem.column_tile = 0;
  EXPECT_THROW((void)covariance_product(c.problem), Error);
}

TEST(CovarianceProduct, TakesTilesThatFitWhereTheFactorizationDoes) {
  for (const std::int64_t tile : {32, 100, 512}) {
    CholeskyProblem factor;
    factor.n = 9 * tile - 1;
    factor.tile = tile;
    factor.point_dimensions = 2;
    ProductProblem problem = CovarianceProductCase(1, tile, 512, 33, 1).problem;
    problem.n = factor.n;
    const std::int64_t budget = smallest_budget_bytes(tile_cholesky(factor, {}));
    const ProductProblem in = choose_product_tiles(problem, Machine::emulated(1, budget));
    EXPECT_EQ(in.tile, tile);
    EXPECT_LE(smallest_budget_bytes(covariance_product(in)), budget);
    const std::int64_t little = budget * 2 / 3;
    const ProductProblem low = choose_product_tiles(problem, Machine::emulated(1, little));
    EXPECT_LE(smallest_budget_bytes(covariance_product(low)), little);
    EXPECT_EQ(low.column_tile % kCovarianceRun, 0);
    EXPECT_GE(low.columns, 1);
  }
  const auto tiles_in = [](std::int64_t n, std::int64_t factor_tile, std::int64_t budget) {
    ProductProblem problem = CovarianceProductCase(1, factor_tile, 512, 33, 1).problem;
    problem.n = n;
    const ProductProblem in = choose_product_tiles(problem, Machine::emulated(1, budget));
    return std::array{in.tile, in.column_tile, in.columns};
  };
  using Tiles = std::array<std::int64_t, 3>;
  EXPECT_EQ(tiles_in(5000, 5000, 16_GiB), (Tiles{625, 16384, 33})) << "in core";
  EXPECT_EQ(tiles_in(1000000, 8192, 16_GiB), (Tiles{4096, 16384, 33}));
  EXPECT_EQ(tiles_in(1000000, 2048, 4_MiB), (Tiles{2048, 8192, 33}));
  EXPECT_EQ(tiles_in(1000000, 2048, 100000), (Tiles{256, 512, 9}));
  EXPECT_EQ(tiles_in(1000000, 2048, 100), (Tiles{1, 512, 1})) << "the plan is refused";
}

class SolverProduct : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, SolverProduct, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(SolverProduct, HoldsTheNuggetAndFindsTheCoordinatesOfTheFactorization) {
  const std::int64_t n = 75;
  const Matrix<double> points = signed_uniform_matrix(n, 2, 5);
  CovarianceOptions options;
  options.run.devices = test::devices_text(GetParam(), 1);
  options.run.device_memory_bytes = 1_MiB;
  options.tile = 16;
  CovarianceSolver solver(points.view(), options);
  ASSERT_TRUE(solver.factor({1.5, 0.3, 0.5, 0.25, true}).ok);
  const Matrix<double> v = signed_uniform_matrix(n, 40, 6);
  Matrix<double> y(n, 40);
  Matrix<double> x = v;
  (void)solver.solve(x.view());
  for (int i = 0; i < 3; ++i) {
    const RunReport report = solver.multiply(v.view(), y.view());
    EXPECT_EQ(report.traffic.host_to_device_bytes, 2 * n * 40 * 8 + n * 2 * 8)
        << "V, what Y begins with, and points of columns";
    EXPECT_EQ(report.traffic.device_to_host_bytes, n * 40 * 8);
    EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
    Matrix<double> again = v;
    const RunReport solve = solver.solve(again.view());
    EXPECT_EQ(solve.traffic.total(), 2 * n * 40 * 8) << "the factor is still there";
    EXPECT_TRUE(test::same_bits(again.data, x.data));
  }
  for (std::int64_t j = 0; j < 40; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto [sum, size] = exact(points, 1.5, 0.25, i, &v(0, j));
      EXPECT_LE(std::abs(sum - y(i, j)), static_cast<long double>(n + 8) * 0x1p-53L * size);
    }
  }
  Matrix<double> in_place = v;
  (void)solver.multiply(in_place.view(), in_place.view());
  EXPECT_TRUE(test::same_bits(in_place.data, y.data));
  Matrix<double> lower = v;
  (void)solver.solve_lower(lower.view());
  (void)solver.solve_lower_transposed(lower.view());
  EXPECT_TRUE(test::same_bits(lower.data, x.data));
}

TEST_P(SolverProduct, HasTheSameBitsOnAnyDevicesAndBudget) {
  const std::int64_t n = 131;
  const Matrix<double> points = signed_uniform_matrix(n, 2, 7);
  const Matrix<double> v = signed_uniform_matrix(n, 5, 8);
  std::vector<double> expected;
  for (const int devices : {1, 2, 3}) {
    const std::string text = test::devices_text(GetParam(), devices);
    if (text.empty()) continue;
    for (const std::int64_t memory : {std::int64_t{10000}, std::int64_t{40000}, 1_MiB}) {
      for (const int queues : {1, 3}) {
        CovarianceOptions options;
        options.run.devices = text;
        options.run.device_memory_bytes = memory;
        options.run.compute_queues = queues;
        options.tile = 16;
        CovarianceSolver solver(points.view(), options);
        ASSERT_TRUE(solver.factor({1.0, 0.3, 1.5, 0.1, true}).ok);
        Matrix<double> y(n, 5);
        const RunReport report = solver.multiply(v.view(), y.view());
        EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
        if (expected.empty()) expected = y.data;
        EXPECT_TRUE(test::same_bits(y.data, expected)) << devices << ' ' << memory << ' ' << queues;
      }
    }
  }
}

TEST(SolverProductMisuse, IsNamed) {
  const Matrix<double> points = signed_uniform_matrix(9, 2, 5);
  CovarianceOptions options;
  options.run.devices = "host:1";
  CovarianceSolver solver(points.view(), options);
  Matrix<double> v(9, 2), narrow(9, 1), low(8, 2);
  EXPECT_THROW((void)solver.multiply(v.view(), v.view()), Error) << "no parameters yet";
  ASSERT_TRUE(solver.factor({1.0, 0.3, 0.5, 0.1, true}).ok);
  EXPECT_THROW((void)solver.multiply(v.view(), narrow.view()), Error);
  EXPECT_THROW((void)solver.multiply(low.view(), low.view()), Error);
  Matrix<double> none(9, 0);
  EXPECT_EQ(solver.multiply(none.view(), none.view()).tasks, 0);
}

TEST(SolverProductMisuse, AMatrixThatIsNotPositiveDefiniteHasAProductAllTheSame) {
  Matrix<double> points = signed_uniform_matrix(20, 2, 5);
  for (std::int64_t d = 0; d < 2; ++d) points(7, d) = points(3, d);  // twice the same, no nugget
  CovarianceOptions options;
  options.run.devices = "host:1";
  options.tile = 8;
  CovarianceSolver solver(points.view(), options);
  const FactorInfo& info = solver.factor({1.0, 0.3, 0.5, 0.0, true});
  Matrix<double> y(20, 1);
  const Matrix<double> v = signed_uniform_matrix(20, 1, 6);
  if (!info.ok) {
    EXPECT_THROW((void)solver.solve(y.view()), Error);
  }
  (void)solver.multiply(v.view(), y.view());
  for (std::int64_t i = 0; i < 20; ++i) {
    const auto [sum, size] = exact(points, 1.0, 0.0, i, &v(0, 0));
    EXPECT_LE(std::abs(sum - y(i, 0)), 30 * 0x1p-53L * size);
  }
}

}  // namespace
}  // namespace strata
