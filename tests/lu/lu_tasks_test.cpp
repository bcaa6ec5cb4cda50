// The tasks of LU and their plans: in program order they are elimination with partial pivoting as
// LAPACK does it; every plan is proven, and gives the same bits and the traffic that it promised.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <map>

#include "base/index.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_back.hpp"
#include "kernels/dense/lu_update.hpp"
#include "lu/planning.hpp"
#include "run/run.hpp"
#include "session/policy.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "strata/lu.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Matrix;

constexpr Policy kAllPolicies[] = {Policy::sync, Policy::async, Policy::v1,
                                   Policy::v2,   Policy::v3,    Policy::opt};

Matrix<double> random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return test::make_matrix<double>(rows, cols, [=](auto i, auto j) {
    return 2 * random_uniform(seed, static_cast<std::uint64_t>(i + 100'003 * j)) - 1;
  });
}

/// A factorization in host memory.
struct LuCase {
  Matrix<double> a;
  LuProblem problem;

  LuCase(std::int64_t n, std::int64_t panel, std::int64_t slab, int devices)
      : a(random_matrix(n, n, 5)) {
    problem.n = n;
    problem.panel = panel;
    problem.slab = slab;
    problem.devices = devices;
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = lu_factorization(problem).blocks;
    return std::make_unique<MemoryStore>(
        blocks, std::vector{std::make_shared<FamilyMemory>(
                                blocks, kPanelFamily, source_of_view(a.data.data(), a.ld(), false)),
                            std::make_shared<FamilyMemory>(blocks, kPivotsFamily),
                            std::make_shared<FamilyMemory>(blocks, kPanelStatusFamily)});
  }
};

/// Every byte of all families.
std::vector<std::byte> bytes_of_store(MemoryStore& store) {
  std::vector<std::byte> all;
  for (int f = 0; f < store.blocks().families(); ++f) {
    store.blocks().for_each(f, [&](BlockId id) {
      const BlockExtent x = store.blocks().extent(id);
      const std::byte* data = store.lend(id);
      const Element element = store.blocks().family(f).element;
      all.insert(all.end(), data, data + x.rows * x.cols * bytes_of(element));
    });
  }
  return all;
}

std::vector<std::byte> oracle(const LuCase& c, const Backend& backend = host_backend()) {
  const auto store = c.make_store();
  run_in_order(lu_factorization(c.problem), backend, *store);
  return bytes_of_store(*store);
}

// ---- the order of tasks

TEST(LuTasks, UpdateEachPanelByAllBeforeItInAscendingOrder) {
  for (const std::int64_t panels : {0, 1, 2, 3, 7}) {
    for (const std::int64_t slab : {0, 1, 2, 3, 7, 9}) {
      for (const int devices : {1, 2, 3}) {
        LuProblem problem;
        problem.n = 4 * panels;
        problem.panel = 4;
        problem.slab = slab;
        problem.devices = devices;
        std::map<std::int64_t, std::int64_t> next;  // panel that is to come upon a panel
        for (const test::FlatTask& task : test::tasks_of(lu_factorization(problem))) {
          const std::int64_t j = task.operands[0].id.col();
          EXPECT_EQ(task.task.device, j % devices);
          if (task.task.operation == &lu_update) {
            EXPECT_EQ(task.operands[1].id.col(), next[j]++);
            EXPECT_EQ(task.operands[2].id, BlockId(kPivotsFamily, 0, task.operands[1].id.col()));
          } else {
            ASSERT_EQ(task.task.operation, &getrf);
            EXPECT_EQ(next[j], j) << "factored too soon";
            next[j] = 1000;  // never written again
          }
        }
        EXPECT_EQ(std::ssize(next), panels);
      }
    }
  }
}

TEST(LuTasks, LookAhead) {
  LuProblem problem;
  problem.n = 9;
  problem.panel = 3;
  std::string order;
  for (const test::FlatTask& task : test::tasks_of(lu_factorization(problem))) {
    order += task.task.operation == &getrf ? "f" : "u";
    for (std::size_t i = 0; i < (task.task.operation == &getrf ? 1U : 2U); ++i)
      order += std::to_string(task.operands[i].id.col());
    EXPECT_EQ(task.task.urgent, task.task.operation == &getrf);
    order += ' ';
  }
  EXPECT_EQ(order, "f0 u10 f1 u20 u21 f2 ");
}

// ---- what they compute

/// LAPACK's P·A = L·U: `a` in place, its pivots from 0.
std::vector<std::int64_t> lapack_factor(Matrix<double>& a) {
  const auto n = static_cast<lapack_int>(a.rows);
  std::vector<lapack_int> pivots(at(a.rows));
  EXPECT_GE(LAPACKE_dgetrf(LAPACK_COL_MAJOR, n, n, a.data.data(), n, pivots.data()), 0);
  std::vector<std::int64_t> from_zero;
  for (const lapack_int p : pivots) from_zero.push_back(p - 1);
  return from_zero;
}

class LuTasksOn : public ::testing::TestWithParam<const Backend*> {};

TEST_P(LuTasksOn, EliminateAsLapackDoes) {
  for (const std::int64_t n : {1, 2, 7, 31, 32, 33, 100}) {
    for (const std::int64_t panel : {1, 5, 16, 100}) {
      const LuCase c(n, panel, 2, 1);
      const auto store = c.make_store();
      run_in_order(lu_factorization(c.problem), *GetParam(), *store);
      Matrix<double> expected = c.a;
      const std::vector<std::int64_t> pivots = lapack_factor(expected);
      const BlockTable& blocks = store->blocks();
      std::vector<std::int64_t> found;
      for (std::int64_t p = 0; p < blocks.block_cols(kPanelFamily); ++p) {
        const BlockExtent x = blocks.extent({kPivotsFamily, 0, p});
        const auto* mine =
            reinterpret_cast<const std::int64_t*>(store->lend({kPivotsFamily, 0, p}));
        for (std::int64_t j = 0; j < x.cols; ++j) found.push_back(mine[j] + x.col);
      }
      ASSERT_EQ(found, pivots) << n << ' ' << panel;
      for (std::int64_t p = 0; p < blocks.block_cols(kPanelFamily); ++p) {
        const BlockExtent x = blocks.extent({kPanelFamily, 0, p});
        const auto* mine = reinterpret_cast<const double*>(store->lend({kPanelFamily, 0, p}));
        Matrix<double> own =
            test::make_matrix<double>(n, x.cols, [&](auto i, auto j) { return mine[i + j * n]; });
        // Exchanges of later panels, which LAPACK applies to L and we do not.
        for (std::int64_t j = x.col + x.cols; j < n; ++j)
          for (std::int64_t k = 0; k < x.cols; ++k) std::swap(own(j, k), own(pivots[at(j)], k));
        for (std::int64_t k = 0; k < x.cols; ++k)
          for (std::int64_t i = 0; i < n; ++i)
            ASSERT_NEAR(own(i, k), expected(i, x.col + k), 1e-12 * static_cast<double>(n));
      }
    }
  }
}

TEST_P(LuTasksOn, SolveBothWays) {
  for (const std::int64_t n : {1, 2, 33, 64}) {
    for (const bool transposed : {false, true}) {
      for (const std::int64_t group : {0, 1, 2}) {
        const LuCase c(n, 9, 0, 1);
        const auto factor = c.make_store();
        run_in_order(lu_factorization(c.problem), *GetParam(), *factor);
        const Matrix<double> x = random_matrix(n, 5, 77);
        Matrix<double> b(n, 5);
        for (std::int64_t k = 0; k < 5; ++k)
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j)
              b(i, k) += (transposed ? c.a(j, i) : c.a(i, j)) * x(j, k);
        LuSolveProblem problem;
        problem.n = n;
        problem.panel = 9;
        problem.rhs = 5;
        problem.rhs_tile = 2;
        problem.group = group;
        problem.variant = transposed ? kTransposedFactor : 0;
        const Schedule schedule = lu_solve(problem);
        const auto from_factor = [&](int family) {
          return std::make_shared<FamilyMemory>(schedule.blocks, family,
                                                [&, family](const BlockExtent& e, std::byte* to) {
                                                  factor->read({family, 0, e.col / 9}, to);
                                                });
        };
        MemoryStore store(schedule.blocks, {from_factor(kPanelFamily), from_factor(kPivotsFamily),
                                            std::make_shared<FamilyMemory>(
                                                schedule.blocks, kRightSideFamily,
                                                source_of_view(b.data.data(), b.ld(), false))});
        run_in_order(schedule, *GetParam(), store);
        for (std::int64_t j = 0; j < 5; ++j) {
          const auto* column =
              reinterpret_cast<const double*>(store.lend({kRightSideFamily, 0, j / 2})) + j % 2 * n;
          for (std::int64_t i = 0; i < n; ++i)
            ASSERT_NEAR(column[i], x(i, j), 1e-10) << n << (transposed ? " transposed" : "");
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LuTasksOn,
                         ::testing::Values(&host_backend(), &reference_backend()),
                         [](const auto& info) { return info.param->name(); });

// ---- plans

TEST(LuPlans, AreProvenForEveryBudget) {
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t panels : {1, 2, 3, 5, 9}) {
      for (const std::int64_t slab : {0, 1, 2, 4}) {
        const LuCase c(4 * panels, 4, slab, devices);
        const auto schedule = std::make_shared<const Schedule>(lu_factorization(c.problem));
        const std::int64_t slot = 4 * panels * 4 * 8;
        for (const std::int64_t extra : {0, 1, 3, 20}) {
          for (const Policy policy : {Policy::v3, Policy::opt}) {
            Machine machine =
                Machine::emulated(devices, smallest_budget_bytes(*schedule) + extra * (slot + 512));
            const Plan plan(schedule, machine, options_of(policy));
            ASSERT_EQ(test::check_plan(plan), "") << devices << ' ' << panels << ' ' << slab;
          }
        }
      }
    }
  }
}

/// Each has some hundred bytes for each pair of panels.
TEST(LuPlans, OfTooManyPanelsAreRefusedAtOnce) {
  try {
    (void)simulate_lu(100'000, Machine::emulated(1, std::int64_t{16} << 20));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("panels of 25 columns take 38.1 MiB"),
              std::string::npos)
        << error.what();
  }
}

TEST(LuPlans, OfSolvesAreProven) {
  for (const int devices : {1, 2}) {
    for (const bool transposed : {false, true}) {
      for (const std::int64_t group : {0, 1}) {
        LuSolveProblem problem;
        problem.n = 20;
        problem.panel = 4;
        problem.rhs = 7;
        problem.rhs_tile = 2;
        problem.group = group;
        problem.variant = transposed ? kTransposedFactor : 0;
        problem.devices = devices;
        const auto schedule = std::make_shared<const Schedule>(lu_solve(problem));
        for (const std::int64_t extra : {0, 2000, 100'000}) {
          const Machine machine =
              Machine::emulated(devices, smallest_budget_bytes(*schedule) + extra);
          ASSERT_EQ(test::check_plan(Plan(schedule, machine, options_of(Policy::opt))), "");
        }
      }
    }
  }
}

TEST(LuPlans, WithoutAWaitAreNoticed) {
  for (const int devices : {1, 2}) {
    const LuCase c(12, 3, 2, devices);
    const auto schedule = std::make_shared<const Schedule>(lu_factorization(c.problem));
    const Plan plan(schedule, Machine::emulated(devices, smallest_budget_bytes(*schedule) + 512),
                    options_of(Policy::opt));
    EXPECT_GT(test::expect_every_needed_wait_noticed(plan).needed, 15);
  }
}

// ---- runs

class PlannedLu : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(PlannedLu, HasTheBitsOfTheTasksInOrderAndThePlannedTraffic) {
  const auto [n, devices] = GetParam();
  constexpr std::int64_t kPanel = 16;
  const std::vector<std::byte> expected = oracle(LuCase(n, kPanel, 0, 1));
  for (const std::int64_t slab : {0, 1, 3}) {
    const LuCase c(n, kPanel, slab, devices);
    ASSERT_EQ(oracle(c), expected);
    const std::int64_t smallest = smallest_budget_bytes(lu_factorization(c.problem));
    const std::int64_t slot = n * kPanel * 8 + 512;
    for (const std::int64_t extra : {0, 1, 2, 40}) {
      for (const Policy policy : kAllPolicies) {
        RunOptions options;
        options.devices = "host:" + std::to_string(devices);
        options.device_memory_bytes = smallest + extra * slot;
        options.compute_queues = 2;
        DeviceSet set(options);
        const auto store = c.make_store();
        const PlannedRun planned = plan_lu_as_it_is(c.problem, set.machine(), policy);
        ASSERT_LE(planned.plan->layout().arena_bytes(), options.device_memory_bytes);
        const RunOutcome outcome = run(*planned.plan, set, *store);
        EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
        EXPECT_EQ(fold_traffic(outcome.trace.spans), planned.plan->totals().traffic);
        ASSERT_EQ(bytes_of_store(*store), expected)
            << n << ' ' << slab << ' ' << extra << ' ' << to_string(policy);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PlannedLu,
                         ::testing::Combine(::testing::Values(0, 1, 15, 16, 17, 3 * 16 + 7,
                                                              8 * 16 + 1),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return "n" + std::to_string(std::get<0>(info.param)) + "_devices" +
                                  std::to_string(std::get<1>(info.param));
                         });

// ---- what is chosen

TEST(LuPlanning, TakesSlabsWhereNotAllFits) {
  LuProblem problem;
  problem.n = 4096;
  const std::int64_t matrix = problem.n * problem.n * 8;
  const PlannedRun whole = plan_lu(problem, Machine::emulated(1, 2 * matrix), {});
  // Where all fits, in the order that is predicted to be fastest: right-looking waits for the
  // loads.
  problem.slab = 0;
  const PlannedRun at_once =
      plan_lu_as_it_is(problem, Machine::emulated(1, 2 * matrix), Policy::opt);
  EXPECT_TRUE(whole.policy.starts_with("opt slab(")) << whole.policy;
  EXPECT_LT(*whole.predicted_seconds, *at_once.predicted_seconds);
  // In once, out once, with pivots and statuses.
  EXPECT_EQ(whole.plan->totals().traffic.host_to_device_bytes, matrix);
  EXPECT_LT(whole.plan->totals().traffic.device_to_host_bytes, matrix + matrix / 100);
  EXPECT_EQ(whole.floor_bytes, 2 * matrix);
  const PlannedRun fifth = plan_lu(problem, Machine::emulated(1, matrix / 5), {});
  EXPECT_TRUE(fifth.policy.starts_with("opt slab(")) << fifth.policy;
  const std::int64_t moved = fifth.plan->totals().traffic.total();
  EXPECT_GT(moved, fifth.floor_bytes);
  EXPECT_LT(moved, 3 * fifth.floor_bytes);
  // Right-looking in the same panels moves more.
  problem.slab = 0;
  problem.panel = fifth.tile;
  const PlannedRun right = plan_lu_as_it_is(problem, Machine::emulated(1, matrix / 5), Policy::opt);
  EXPECT_GT(right.plan->totals().traffic.total(), moved);
}

TEST(LuPlanning, OfCpusBeginsWithFewWidePanels) {
  for (const auto& [n, panel] : {std::pair{2048, 64}, std::pair{4096, 128}, std::pair{1024, 32}}) {
    const std::int64_t matrix = std::int64_t{n} * n * 8;
    Machine machine = Machine::emulated(1, matrix / 5);
    machine.devices[0].kind = DeviceKind::cpu;
    EXPECT_EQ(rule_panel(n, machine, Element::fp64), panel) << n;
    LuProblem problem;
    problem.n = n;
    problem.panel = panel;
    const LuCandidates candidates(problem, machine, Policy::opt);
    EXPECT_FALSE(candidates.allows(64));
    EXPECT_EQ(candidates.allows(128), n >= 2048);  // two fit
    // Complex numbers are twice as wide, and so is the same share of their matrix.
    machine.devices[0].memory_bytes *= 2;
    EXPECT_EQ(rule_panel(n, machine, Element::complex128), panel) << n;
  }
}

TEST(LuPlanning, FloorIsOfReadsAndWrites) {
  LuProblem problem;
  problem.n = 1000;
  const std::int64_t square = 8'000'000;
  EXPECT_EQ(lu_floor_bytes(problem, square), 2 * square);
  // 2·10⁹/(3·√125,000) = 1,885,618 words, more than 10⁶.
  EXPECT_NEAR(static_cast<double>(lu_floor_bytes(problem, square / 8)), 8 * (1e6 + 1'885'618), 8);
  problem.precision = Element::fp32;
  EXPECT_EQ(lu_floor_bytes(problem, square / 2), square);
}

TEST(LuPlanning, RefusesWhatCannotFitWithWhatWould) {
  LuProblem problem;
  problem.n = 1000;
  try {
    (void)plan_lu(problem, Machine::emulated(1, 1000), {});
    FAIL() << "planned in too little memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("too small for order 1000"), std::string::npos)
        << error.what();
  }
  LuOptions options;
  options.panel = 100;
  LuProblem wide = problem;
  wide.panel = 100;
  const std::int64_t smallest = smallest_budget_bytes(lu_factorization(wide));
  (void)plan_lu(problem, Machine::emulated(1, smallest), options);
  try {
    (void)plan_lu(problem, Machine::emulated(1, smallest - 1), options);
    FAIL() << "planned in too little memory";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(smallest)), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace strata
