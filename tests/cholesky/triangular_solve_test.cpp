// Sweeps in both orders: row by row of tiles, and column by column in tasks of many products. Both
// are solves of the numbers that the tiles hold, to the same bits, in order and by every plan.

#include <gtest/gtest.h>

#include "cholesky/planning.hpp"
#include "run/run.hpp"
#include "session/session.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/mixed_factors.hpp"
#include "tests/cholesky/policies.hpp"
#include "tests/cholesky/sine_columns.hpp"
#include "tests/schedule/small_plans.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/mixed_problem.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kColumns = 5;
constexpr std::int64_t kProductsAtOnce[] = {1, 2, 3, 7, 64};
constexpr Sweep kSweeps[] = {Sweep::forward, Sweep::backward, Sweep::both};

/// A factor, of tiles in every precision or in FP64, and right-hand sides.
class SolveCase {
 public:
  SolveCase(Element single, bool mixed, int devices, std::int64_t columns, std::int64_t column_tile)
      : c_(kMixedOrder, kMixedTile, single, devices), b_(sine_columns(kMixedOrder, columns)) {
    if (!mixed) c_.problem.formats = {};
    factor_ = c_.make_store();
    run_in_order(tile_cholesky(c_.problem, {}), host_backend(), *factor_, c_.run_options());
    problem_.n = kMixedOrder;
    problem_.tile = kMixedTile;
    problem_.rhs = columns;
    problem_.rhs_tile = column_tile;
    problem_.formats = c_.problem.formats;
    problem_.devices = devices;
  }

  [[nodiscard]] SolveProblem problem(std::int64_t products_at_once) const {
    SolveProblem problem = problem_;
    problem.products_at_once = products_at_once;
    return problem;
  }
  [[nodiscard]] IssueOptions options() const {
    IssueOptions options;
    options.values = {{gemm.name, &c_.scales}};
    return options;
  }
  [[nodiscard]] MemoryStore make_store() {
    const BlockTable blocks = triangular_solve(problem_, Sweep::both).blocks;
    const auto tile = [this](const BlockExtent& x, std::byte* to) {
      factor_->read({kMatrixFamily, x.row / kMixedTile, x.col / kMixedTile}, to);
    };
    return {blocks,
            {std::make_shared<FamilyMemory>(blocks, kFactorFamily, tile),
             std::make_shared<FamilyMemory>(blocks, kSolutionFamily,
                                            source_of_view(b_.data.data(), b_.ld(), false))}};
  }
  [[nodiscard]] Matrix<double> solution_in(MemoryStore& store) const {
    Matrix<double> x(b_.rows, b_.cols);
    store.blocks().for_each(kSolutionFamily, [&](BlockId id) {
      const BlockExtent at = store.blocks().extent(id);
      std::vector<double> block(static_cast<std::size_t>(at.rows * at.cols));
      store.read(id, reinterpret_cast<std::byte*>(block.data()));
      for (std::int64_t j = 0; j < at.cols; ++j)
        std::copy_n(block.data() + j * at.rows, at.rows, &x(at.row, at.col + j));
    });
    return x;
  }
  [[nodiscard]] Matrix<double> in_order(const Backend& backend, Sweep sweep, std::int64_t at_once) {
    MemoryStore store = make_store();
    run_in_order(triangular_solve(problem(at_once), sweep), backend, store, options());
    return solution_in(store);
  }
  [[nodiscard]] const Matrix<double>& right_hand_sides() const { return b_; }
  [[nodiscard]] Matrix<double> lower() { return c_.lower_in(*factor_); }

 private:
  MixedCase c_;
  std::unique_ptr<MemoryStore> factor_;
  SolveProblem problem_;
  Matrix<double> b_;
};

/// ‖L·x − b‖ beside ‖|L|·|x| + |b|‖, by plain loops, the largest of a row.
double backward_error_of(const Matrix<double>& l, const Matrix<double>& x,
                         const Matrix<double>& b) {
  double worst = 0;
  for (std::int64_t j = 0; j < b.cols; ++j) {
    for (std::int64_t i = 0; i < b.rows; ++i) {
      long double residual = -static_cast<long double>(b(i, j));
      long double size = std::fabs(b(i, j));
      for (std::int64_t k = 0; k <= i; ++k) {
        const long double term = static_cast<long double>(l(i, k)) * x(k, j);
        residual += term;
        size += std::fabs(term);
      }
      worst = std::max(worst, static_cast<double>(std::fabs(residual) / size));
    }
  }
  return worst;
}

class SweepOrder : public ::testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  [[nodiscard]] static std::string backend() { return std::get<0>(GetParam()); }
  [[nodiscard]] static bool mixed() { return std::get<1>(GetParam()); }
  /// What a tile of FP32 is kept in.
  [[nodiscard]] static Element single() {
    return backend() == "cuda" ? Element::fp16x2 : Element::fp32;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, SweepOrder,
                         ::testing::Combine(::testing::ValuesIn(available_backends()),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "Mixed" : "Uniform");
                         });

TEST_P(SweepOrder, ChangesNoBitOfTheSolution) {
  Thinned thinned(3);
  for (const int devices : {1, 3}) {
    for (const auto& [columns, column_tile] : {std::pair{1, 1}, {5, 5}, {7, 3}, {33, 33}}) {
      if (thinned.skips()) continue;
      SolveCase c(single(), mixed(), devices, columns, column_tile);
      const Matrix<double> l = c.lower();
      for (const Sweep sweep : kSweeps) {
        const Matrix<double> rows = c.in_order(backend_of(backend()), sweep, 0);
        if (sweep == Sweep::forward) {
          EXPECT_LE(backward_error_of(l, rows, c.right_hand_sides()), 1e-14);
        }
        for (const std::int64_t at_once : kProductsAtOnce) {
          const Matrix<double> columns_first = c.in_order(backend_of(backend()), sweep, at_once);
          EXPECT_TRUE(same_bits(columns_first.data, rows.data))
              << devices << ' ' << columns << ' ' << at_once;
        }
      }
    }
  }
}

TEST_P(SweepOrder, EveryPlanHasThoseBitsAndMovesWhatItSays) {
  Thinned thinned(11);
  for (const int devices : {1, 2, 3}) {
    const std::string text = devices_text(backend(), devices);
    if (text.empty()) continue;
    SolveCase c(single(), mixed(), devices, kColumns, 3);
    for (const Sweep sweep : kSweeps) {
      const Matrix<double> expected = c.in_order(backend_of(backend()), sweep, 0);
      for (const std::int64_t at_once : {std::int64_t{3}, std::int64_t{64}}) {
        const SolveProblem problem = c.problem(at_once);
        const std::int64_t least = smallest_budget_bytes(triangular_solve(problem, sweep));
        for (const std::int64_t budget : {least, least + 5000, 3 * least}) {
          for (const Policy policy : kPolicies) {
            if (thinned.skips()) continue;
            RunOptions options;
            options.devices = text;
            options.device_memory_bytes = budget;
            options.compute_queues = 2;
            DeviceSet set(options);
            const PlannedRun planned =
                make_planned_run(std::make_shared<const Schedule>(triangular_solve(problem, sweep)),
                                 set.machine(), policy);
            MemoryStore store = c.make_store();
            const RunOutcome outcome = run(*planned.plan, set, store, c.options());
            EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
            EXPECT_TRUE(same_bits(c.solution_in(store).data, expected.data))
                << devices << ' ' << at_once << ' ' << budget << ' ' << planned.policy;
          }
        }
      }
    }
  }
}

std::int64_t tasks_of(const Schedule& schedule) {
  TaskList tasks;
  for (std::int64_t step = 0; step < schedule.steps; ++step) schedule.emit(step, tasks);
  return static_cast<std::int64_t>(tasks.tasks().size());
}

TEST(SweepOrder, ColumnByColumnHasFewTasks) {
  const SolveCase c(Element::fp16x2, true, 1, 2, 2);
  const std::int64_t rows = (kMixedOrder + kMixedTile - 1) / kMixedTile;
  const std::int64_t by_columns = tasks_of(triangular_solve(c.problem(64), Sweep::forward));
  EXPECT_LE(by_columns, rows * (2 + static_cast<int>(TilePrecision::none)));
  EXPECT_GT(tasks_of(triangular_solve(c.problem(0), Sweep::forward)), by_columns);
}

TEST(SweepOrder, WithoutRoomForTheProductsOfATaskRowsAreTheOrder) {
  SolveCase c(Element::fp32, true, 1, 2, 2);
  const Schedule rows = triangular_solve(c.problem(0), Sweep::both);
  const Schedule columns = triangular_solve(c.problem(64), Sweep::both);
  ASSERT_LT(smallest_budget_bytes(rows), smallest_budget_bytes(columns));
  const Matrix<double> expected = c.in_order(host_backend(), Sweep::both, 0);
  for (const bool roomy : {false, true}) {
    RunOptions options;
    options.devices = "host:1";
    options.device_memory_bytes = smallest_budget_bytes(roomy ? columns : rows);
    Session session(options);
    for (int again = 0; again < 2; ++again) {
      SessionRun sweep;
      sweep.schedule = std::make_shared<const Schedule>(columns);
      sweep.narrower = std::make_shared<const Schedule>(rows);
      MemoryStore store = c.make_store();
      const RunReport& report = session.run(sweep, store, c.options());
      EXPECT_EQ(report.tasks, tasks_of(roomy ? columns : rows));
      EXPECT_TRUE(same_bits(c.solution_in(store).data, expected.data));
    }
    EXPECT_EQ(session.plans_made(), 1);
    SessionRun alone;
    alone.schedule = std::make_shared<const Schedule>(columns);
    MemoryStore store = c.make_store();
    if (!roomy) {
      EXPECT_THROW((void)session.run(alone, store, c.options()), Error);
    }
  }
}

TEST(SweepOrder, ColumnsWhereGpusKeepTheFactorAndRightHandSidesAreFew) {
  const SolveCase c(Element::fp16x2, true, 2, 2, 2);
  SolveProblem problem = c.problem(0);
  const BlockTable blocks = triangular_solve(problem, Sweep::both).blocks;
  const std::int64_t factor = blocks.total_bytes(kFactorFamily);
  const Machine roomy = machine_of(2, factor, 2);
  EXPECT_GT(choose_products_at_once(problem, roomy), 1);
  EXPECT_EQ(choose_products_at_once(problem, machine_of(2, factor / 2, 2)), 0);
  Machine cpus = roomy;
  for (DeviceModel& device : cpus.devices) device.kind = DeviceKind::cpu;
  EXPECT_EQ(choose_products_at_once(problem, cpus), 0);
  problem.rhs = 65;
  EXPECT_EQ(choose_products_at_once(problem, machine_of(2, 10 * factor, 2)), 0);
}

}  // namespace
}  // namespace strata::test
