// The tasks of LU in storage: what they read and write of panels, and their order in slabs of two
// levels.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/index.hpp"
#include "kernels/dense/copy_rows.hpp"
#include "kernels/dense/getrf.hpp"
#include "lu/lu_panels.hpp"
#include "session/policy.hpp"
#include "tests/io/scratch.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/support/storage_options.hpp"

namespace strata {
namespace {

using test::Matrix;
using test::Scratch;

// ---- what is read

/// Bytes of L and of U of `panels` panels, from the first on, with the diagonal blocks in both.
std::int64_t lower_bytes(std::int64_t n, std::int64_t panel, std::int64_t panels) {
  std::int64_t bytes = 0;
  for (std::int64_t c = 0; c < std::min(panels * panel, n); c += panel)
    bytes += (n - c) * std::min(panel, n - c) * 8;
  return bytes;
}
std::int64_t upper_bytes(std::int64_t n, std::int64_t panel) {
  std::int64_t bytes = 0;
  for (std::int64_t c = 0; c < n; c += panel)
    bytes += std::min(c + panel, n) * std::min(panel, n - c) * 8;
  return bytes;
}

/// A slab reads A, and of the panels before it L alone; a sweep of a solve L or U.
TEST(StoredTasks, ReadOfAPanelWhatATaskNeeds) {
  for (const std::int64_t n : {64, 90, 200}) {
    const std::int64_t panel = 8;
    const std::int64_t panels = (n + panel - 1) / panel;
    for (const std::int64_t slab : {1, 2, 5}) {
      LuProblem problem;
      problem.n = n;
      problem.panel = panel;
      problem.slab = slab;
      problem.in_storage = true;
      Machine machine = Machine::emulated(1, (slab + 3) * n * panel * 8 + (1 << 16));
      machine.storage = {{1e9, 1e-4}, {1e9, 1e-4}, (slab + 4) * (n * panel * 8 + 4096) + (1 << 16)};
      const PlannedRun planned = plan_lu_as_it_is(problem, machine, Policy::opt, {}, {});
      ASSERT_EQ(test::check_plan(*planned.plan), "");
      std::int64_t stream = 0;
      for (std::int64_t first = 0; first < panels; first += slab)
        stream += lower_bytes(n, panel, first);
      const Traffic& traffic = planned.plan->totals().traffic;
      const std::int64_t beside = 16 * n * panels;  // pivots
      EXPECT_GE(traffic.storage_read_bytes, n * n * 8);
      EXPECT_LE(traffic.storage_read_bytes, n * n * 8 + stream + beside) << n << ' ' << slab;
      const std::int64_t written = lower_bytes(n, panel, panels) + upper_bytes(n, panel);
      EXPECT_GE(traffic.storage_write_bytes, written);
      EXPECT_LE(traffic.storage_write_bytes, written + beside) << "each block once";
    }
    const Scratch folder;
    const Matrix<double> a = test::random_general(n, 9);
    const test::StorageBudget budget{"host:1", 0.3, 0};
    LuProblem problem;
    problem.n = n;
    const RunOptions run = in_folders(within_budget(budget, n * n * 8), folder, 1);
    LuPanels stored(problem, {.run = run, .panel = panel}, 7);
    (void)stored.factor(source_of_view<double>(a.data.data(), a.ld(), false), 1);
    Matrix<double> x = test::make_matrix<double>(
        n, 1, [](auto i, auto j) { return test::signed_uniform(5, i, j); });
    const RunReport solve = stored.solve<double>(x.view(), 0);
    EXPECT_LE(solve.traffic.storage_read_bytes,
              lower_bytes(n, panel, panels) + upper_bytes(n, panel) + 16 * n)
        << n;
    EXPECT_GE(solve.traffic.storage_read_bytes, n * n * 8 / 4) << "it came from memory";
  }
}

// ---- the order of tasks of two levels

TEST(StoredTasks, SlabsOfTwoLevelsUpdateEachPanelInAscendingOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto roll = [&](std::uint64_t k, std::int64_t sides) {
      return static_cast<std::int64_t>(random_bits(seed, k) % static_cast<std::uint64_t>(sides));
    };
    LuProblem problem;
    problem.panel = 1;
    problem.n = 1 + roll(0, 24);
    problem.slab = roll(1, 12);
    problem.inner = roll(2, 6);
    problem.group = 1 + roll(3, 5);
    problem.done = roll(4, problem.n + 1);
    problem.devices = static_cast<int>(1 + roll(5, 3));
    std::vector<std::int64_t> applied(at(problem.n), 0);
    std::vector<bool> is_factored(at(problem.n), false);
    for (std::int64_t p = 0; p < problem.done; ++p) is_factored[at(p)] = true;
    problem.in_storage = roll(6, 2) == 0;
    std::vector<int> copied(at(problem.n), 0);
    for (const test::FlatTask& flat : test::tasks_of(lu_factorization(problem))) {
      const std::int64_t j = flat.operands[0].id.col();
      if (flat.task.operation == &copy_rows) {
        ASSERT_TRUE(problem.in_storage && is_factored[at(j)]) << seed;
        const bool lower = flat.operands[1].id == lower_block(kFactorFamily, j);
        ASSERT_EQ(flat.operands[1].id,
                  lower ? lower_block(kFactorFamily, j) : upper_block(kFactorFamily, j));
        ASSERT_EQ(copied[at(j)]++, lower ? 0 : 1) << seed;
        continue;
      }
      ASSERT_FALSE(is_factored[at(j)]) << "seed " << seed;
      if (flat.task.operation == &getrf) {
        ASSERT_EQ(applied[at(j)], j) << "seed " << seed << ": factored before its last update";
        is_factored[at(j)] = true;
        continue;
      }
      const BlockId by = flat.operands[1].id;
      const std::int64_t k = problem.in_storage ? by.row() / 2 : by.col();
      if (problem.in_storage) {
        ASSERT_EQ(by, lower_block(kFactorFamily, k));
        ASSERT_TRUE(k < problem.done || copied[at(k)] > 0) << seed;
      }
      ASSERT_EQ(applied[at(j)]++, k) << "seed " << seed;
      ASSERT_TRUE(is_factored[at(k)]) << "seed " << seed;
    }
    for (const bool done : is_factored) ASSERT_TRUE(done) << "seed " << seed;
  }
}

}  // namespace
}  // namespace strata
