// Factorizations through plans: budgets, devices, branches and the reference give the same bits,
// and what was planned is what happens.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "kernels/backend/backend.hpp"
#include "kernels/dense/potrf.hpp"
#include "run/run.hpp"
#include "schedule/plan.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_outcome.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::FactorOutcome;
using test::outcome_of;

struct RunSizes {
  std::int64_t tile, panel_order, branch_entries;
};

SparseCholeskyOptions run_options_of(const RunSizes& sizes, const std::string& devices,
                                     std::int64_t bytes = 0) {
  SparseCholeskyOptions options;
  options.run.devices = devices;
  options.run.device_memory_bytes = bytes;
  options.analysis.ordering = SparseOrdering::amd;
  options.tile = sizes.tile;
  options.panel_order = sizes.panel_order;
  options.branch_entries = sizes.branch_entries;
  return options;
}

/// The least budget, by asking for one byte.
std::int64_t least_budget(const SparseMatrix& a, const SparseCholeskyOptions& options) {
  SparseCholeskyOptions tiny = options;
  tiny.run.device_memory_bytes = 1;
  try {
    const SparseCholesky factor(a, tiny);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    const std::string text = error.what();
    return std::stoll(text.substr(text.find("needs ") + 6));
  }
  ADD_FAILURE() << "a budget of one byte sufficed";
  return 0;
}

const SparseMatrix& grid_matrix() {
  static const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 21);
  return a;
}

/// Small where a sanitizer multiplies what planning costs.
const SparseMatrix& planned_matrix() {
  static const SparseMatrix a = test::with_values(test::grid(9, 8, 8), 21);
  return test::kSanitized ? a : grid_matrix();
}

TEST(SparseFactorRuns, SameBitsForAllBudgetsAndDevices) {
  const SparseMatrix& a = planned_matrix();
  const RunSizes sizes{24, 48, 400};
  const SparseCholesky whole(a, run_options_of(sizes, "host"));
  ASSERT_TRUE(whole.info().ok);
  const FactorOutcome expected = outcome_of(whole);
  const std::int64_t factor_bytes = whole.analysis().counts.panel_bytes;
  const std::int64_t least = least_budget(a, run_options_of(sizes, "host"));
  EXPECT_LT(least, factor_bytes / 4);
  for (const std::int64_t percent : {100, 50, 25, 10, 0}) {
    for (const char* devices : {"host", "host:2", "host:3"}) {
      if (test::kSanitized && (percent % 50 != 0 || devices == std::string("host:2"))) continue;
      SCOPED_TRACE(std::to_string(percent) + " % on " + devices);
      const std::int64_t budget = std::max(factor_bytes * percent / 100, least);
      const SparseCholesky factor(a, run_options_of(sizes, devices, budget));
      EXPECT_EQ(outcome_of(factor), expected);
      const RunReport& report = factor.report();
      EXPECT_LE(report.peak_device_bytes, budget);
      EXPECT_EQ(static_cast<const Traffic&>(report.planned_traffic), report.traffic);
    }
  }
}

TEST(SparseFactorRuns, SameBitsForAllBranches) {
  const SparseMatrix& a = grid_matrix();
  const FactorOutcome expected = outcome_of(SparseCholesky(a, run_options_of({24, 48, 1}, "host")));
  for (const std::int64_t entries : {100, 1000, 10000, 1000000})
    EXPECT_EQ(outcome_of(SparseCholesky(a, run_options_of({24, 48, entries}, "host"))), expected)
        << entries;
}

TEST(SparseFactorRuns, EveryPolicyGivesTheSameBits) {
  const SparseMatrix& a = grid_matrix();
  SparseCholeskyOptions options = run_options_of({24, 48, 400}, "host", 1 << 21);
  const FactorOutcome expected = outcome_of(SparseCholesky(a, options));
  for (const Policy policy : {Policy::sync, Policy::async, Policy::v1, Policy::v2, Policy::v3}) {
    options.run.policy = policy;
    EXPECT_EQ(outcome_of(SparseCholesky(a, options)), expected) << static_cast<int>(policy);
  }
}

/// L as the reference kernels make it, task by task.
TEST(SparseFactorRuns, TheReferenceAgrees) {
  for (const test::Family& family : test::families()) {
    if (family.matrix.rows == 0) continue;
    SCOPED_TRACE(family.name);
    const SparseMatrix a = test::with_values(family.matrix, 2);
    AnalysisOptions analysis_options;
    analysis_options.ordering = SparseOrdering::natural;
    const SparseAnalysis analysis = analyze(a, analysis_options);
    auto layout = std::make_shared<const FrontLayout>(
        lay_out_fronts(analysis, a, {.tile = 3, .panel_order = 6, .branch_entries = 50}));
    const Schedule schedule = front_schedule(layout, 1);
    const auto factored = [&](const std::string& name) {
      const BlockTable& blocks = layout->blocks;
      const auto values = [&](const BlockExtent& x, std::byte* to) {
        for (std::int64_t k = 0; k < x.rows; ++k) {
          const EntryCode code = layout->entries[at(x.row + k)];
          reinterpret_cast<double*>(to)[k] = code < 0 ? 0 : a.value[at(code >> 1)];
        }
      };
      const auto numbers = [](const std::vector<std::int32_t>& list) {
        return [&list](const BlockExtent& x, std::byte* to) {
          std::copy_n(list.data() + x.row, x.rows, reinterpret_cast<std::int32_t*>(to));
        };
      };
      auto panels = std::make_shared<FamilyMemory>(blocks, fronts::kPanels);
      auto status = std::make_shared<FamilyMemory>(blocks, fronts::kStatus);
      const auto memory = [&](int f, BlockSource source = nullptr) {
        return std::make_shared<FamilyMemory>(blocks, f, std::move(source));
      };
      MemoryStore store(blocks, {panels, memory(fronts::kUpdates), memory(fronts::kValues, values),
                                 memory(fronts::kStructure, numbers(layout->structure)),
                                 memory(fronts::kPlaces, numbers(layout->places)), status,
                                 memory(fronts::kWork)});
      run_in_order(schedule, backend_named(name, name), store);
      std::vector<double> l;
      blocks.for_each(fronts::kPanels, [&](BlockId id) {
        const auto* data = reinterpret_cast<const double*>(panels->data() + blocks.byte_offset(id));
        l.insert(l.end(), data, data + blocks.bytes(id) / 8);
      });
      return l;
    };
    const std::vector<double> reference = factored("reference");
    const std::vector<double> host = factored("host");
    ASSERT_EQ(reference.size(), host.size());
    for (std::size_t i = 0; i < host.size(); ++i)
      ASSERT_NEAR(host[i], reference[i], 1e-13 * (1 + std::abs(reference[i]))) << i;
  }
}

TEST(SparseFactorRuns, RefactorsAsOften) {
  const SparseMatrix& a = grid_matrix();
  const SparseCholeskyOptions options = run_options_of({24, 48, 400}, "host:2", 1 << 21);
  SparseCholesky factor(a, options);
  const FactorOutcome first = outcome_of(factor);
  SparseMatrix b = test::with_values(a, 22);
  for (std::uint64_t k = 0; k < test::campaign(20, 20, 3); ++k) {
    ASSERT_TRUE(factor.refactor(b, 0.5).ok);
    if (k == 0) {
      SparseCholeskyOptions shifted = options;
      shifted.shift = 0.5;
      EXPECT_EQ(outcome_of(factor), outcome_of(SparseCholesky(b, shifted)));
    }
    ASSERT_TRUE(factor.refactor(a).ok);
    EXPECT_EQ(outcome_of(factor), first);
  }
}

/// What the process holds: in the heap, and by mapping.
std::int64_t bytes_held() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages;
  const struct mallinfo2 heap = ::mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd) + pages * 4096;
}

/// A thousand times: the same bits, and no more memory than after the first few, but for what the
/// BLAS keeps: a buffer of 128 MiB for each thread that is in it at once with others, taken when
/// that happens first. So whole buffers do not count, and of three spans one is without growth.
TEST(SparseFactorRuns, RefactorsAThousandTimes) {
  const SparseMatrix a = test::with_values(test::grid(20, 15, 1), 3);
  SparseCholesky factor(a, run_options_of({16, 24, 300}, "host"));
  const FactorOutcome first = outcome_of(factor);
  std::vector<std::int64_t> held;
  const std::uint64_t times = test::campaign(1000, 1000, 100);
  for (std::uint64_t k = 0; k <= times; ++k) {
    ASSERT_TRUE(factor.refactor(a).ok);
    if (k % 300 == 100) held.push_back(bytes_held());
  }
  EXPECT_EQ(outcome_of(factor), first);
  if (test::kSanitized) return;  // sanitizers hold memory of their own
  ASSERT_EQ(held.size(), 4U);
  constexpr std::int64_t kBlasBuffer = 1 << 27;
  const std::int64_t grown = held[3] - held[0];
  const std::int64_t buffers = (grown + kBlasBuffer / 2) / kBlasBuffer;
  EXPECT_LE(grown - buffers * kBlasBuffer, 1 << 20);
  EXPECT_LE(std::min({held[1] - held[0], held[2] - held[1], held[3] - held[2]}), 300 << 10);
}

/// Both triangles in the place of one: the same numbers, elsewhere.
TEST(SparseFactorRuns, RefactorsOtherTriangles) {
  const std::int64_t n = 30;
  const auto matrix = [&](test::Give give) {
    return test::with_values(test::random_pattern(n, 0.2, 3, give), 4);
  };
  SparseCholesky factor(matrix(test::Give::lower), run_options_of({3, 6, 50}, "host"));
  const FactorOutcome expected = outcome_of(factor);
  for (const test::Give give : {test::Give::both, test::Give::upper, test::Give::lower}) {
    ASSERT_TRUE(factor.refactor(matrix(give)).ok);
    EXPECT_EQ(outcome_of(factor), expected);
  }
}

/// Work of seconds, so that somebody asks in between.
TEST(SparseFactorRuns, CancelsAndGoesOn) {
  const SparseMatrix a = test::with_values(test::grid(20, 20, 20), 1);
  bool cancel = false;
  int asked = 0;
  SparseCholeskyOptions options = run_options_of({24, 48, 400}, "host");
  options.run.progress = [&](const Progress&) {
    ++asked;
    return !cancel;
  };
  SparseCholesky factor(a, options);
  const FactorOutcome expected = outcome_of(factor);
  ASSERT_GT(asked, 0);
  cancel = true;
  try {
    (void)factor.refactor(a);
    ADD_FAILURE() << "it was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  EXPECT_FALSE(factor.info().ok);
  std::vector<double> x(at(a.rows), 1.0);
  EXPECT_THROW(factor.solve({x.data(), a.rows, 1, a.rows}), Error);
  cancel = false;
  ASSERT_TRUE(factor.refactor(a).ok);
  EXPECT_EQ(outcome_of(factor), expected);
}

TEST(SparseFactorRuns, SaysWhatABudgetHasToBe) {
  const SparseMatrix& a = planned_matrix();
  const SparseCholeskyOptions options = run_options_of({24, 48, 400}, "host");
  const std::int64_t least = least_budget(a, options);
  SparseCholeskyOptions exact = options;
  exact.run.device_memory_bytes = least;
  EXPECT_TRUE(SparseCholesky(a, exact).info().ok);
  exact.run.device_memory_bytes = least - 1;
  EXPECT_THROW(SparseCholesky(a, exact), Error);
}

}  // namespace
}  // namespace strata
