// Trees that are factored level by level in batches: the factor is the one that units one by one
// make, whatever the batch and the streams.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "kernels/backend/backend.hpp"
#include "kernels/fronts/front_program.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "strata/error.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_columns.hpp"
#include "tests/sparse/front_matrices.hpp"

namespace strata {
namespace {

using test::analysis_by_amd;

std::vector<SparseMatrix> batch_matrices() {
  std::vector<SparseMatrix> list;
  for (const test::Family& family : test::families()) list.push_back(family.matrix);
  list.push_back(test::grid(11, 10, 9));
  list.push_back(test::grid(40, 41, 1));
  list.push_back(test::random_pattern(200, 0.05, 5, test::Give::upper));
  for (std::size_t k = 0; k < list.size(); ++k) list[k] = test::with_values(list[k], 31 + k);
  return list;
}

SparseCholeskyOptions batched(const std::string& devices, int batch, int streams) {
  SparseCholeskyOptions options;
  options.run.devices = devices;
  options.batches = LevelBatches{.batch = batch, .streams = streams};
  return options;
}

TEST(LevelBatches, HoldEachUnitOnceBehindItsChildren) {
  for (const SparseMatrix& a : batch_matrices()) {
    const SparseAnalysis analysis = analysis_by_amd(a);
    for (const std::int64_t batch : {1, 2, 16, 1000}) {
      const FrontLayout layout = lay_out_fronts(analysis, a, {.panel_order = 40, .batch = batch});
      ASSERT_EQ(std::ssize(layout.units), analysis.supernodes());
      std::vector<int> seen(layout.units.size(), 0);
      std::size_t number = 0;
      for (const std::vector<std::int32_t>& units : layout.batches) {
        ++number;
        ASSERT_GE(std::ssize(units), 1);
        ASSERT_LE(std::ssize(units), batch);
        for (const std::int32_t u : units) {
          const FrontUnit& unit = layout.units[at(u)];
          const std::int64_t s = unit.first;
          ASSERT_EQ(unit.first, unit.last);
          ASSERT_NE(unit.kind, UnitKind::branch);
          ASSERT_EQ(std::exchange(seen[at(u)], static_cast<int>(number)), 0);
          for (const std::int32_t c : unit.children) {
            ASSERT_GT(seen[at(c)], 0);
            ASSERT_LT(seen[at(c)], static_cast<int>(number));
          }
          const auto of = static_cast<std::int32_t>(s);
          if (units.size() > 1) {
            ASSERT_LE(analysis.width(of) + analysis.row_count(of), kSmallFront);
          }
        }
      }
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 0), 0);
    }
  }
}

TEST(LevelBatches, MakeTheFactorOfUnitsOneByOne) {
  for (const SparseMatrix& a : batch_matrices()) {
    const SparseAnalysis analysis = analysis_by_amd(a);
    SparseCholeskyOptions options;
    options.run.devices = "host:1";
    FrontFactor expected(analysis, options, {.panel_order = kPanelOrderMax, .branch_entries = 1});
    expected.factor(a, 0.5);
    for (const auto& [batch, streams] :
         std::vector<std::pair<int, int>>{{1, 1}, {16, 16}, {3, 2}, {1000, 5}}) {
      FrontFactor factor(analysis, batched("host:1", batch, streams));
      factor.factor(a, 0.5);
      factor.factor(a, 0.5);
      ASSERT_TRUE(factor.info().ok);
      ASSERT_TRUE(factor.resident());
      EXPECT_FALSE(factor.solves_there());
      EXPECT_EQ(factor.report().compute_queues, streams);
      factor.bring_home();
      for (std::int32_t c = 0; c < a.rows; ++c)
        ASSERT_EQ(test::column_of<double>(factor, c), test::column_of<double>(expected, c)) << c;
      EXPECT_NEAR(factor.info().log_determinant, expected.info().log_determinant,
                  1e-12 * (1 + std::abs(expected.info().log_determinant)));
      EXPECT_THROW(factor.factor_values(a.value, 0), Error) << "there are none as they were given";
    }
  }
}

/// So many of a matrix along the diagonal.
SparseMatrix copies_of(const SparseMatrix& a, std::int64_t count) {
  SparseMatrix all;
  all.rows = all.cols = count * a.rows;
  all.start = {0};
  for (std::int64_t k = 0; k < count; ++k) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      all.start.push_back(all.start.back() + a.start[at(i + 1)] - a.start[at(i)]);
    for (const std::int32_t c : a.column)
      all.column.push_back(c + static_cast<std::int32_t>(k * a.rows));
    all.value.insert(all.value.end(), a.value.begin(), a.value.end());
  }
  return all;
}

/// Fronts that are tiles give their updates tile by tile, also to small ones in batches.
TEST(LevelBatches, TakeWhatTilesGive) {
  std::int64_t from_tiles = 0;
  for (const std::int64_t order : {9, 14, 20}) {
    const SparseMatrix a =
        test::with_values(copies_of(test::random_pattern(60, 0.04, 3, test::Give::lower), 5), 9);
    const SparseAnalysis analysis = analysis_by_amd(a);
    SparseCholeskyOptions options;
    options.run.devices = "host:1";
    FrontSizes sizes{.tile = 4, .panel_order = order, .branch_entries = 1};
    FrontFactor expected(analysis, options, sizes);
    expected.factor(a, 0.5);
    sizes.batch = 7;
    FrontFactor factor(analysis, options, sizes);
    factor.factor(a, 0.5);
    factor.bring_home();
    std::vector<double> x(at(a.rows), 1.0);
    std::vector<double> y = x;
    sweep_forward<double>(factor, {x.data(), a.rows, 1, a.rows});
    sweep_forward<double>(expected, {y.data(), a.rows, 1, a.rows});
    ASSERT_EQ(x, y);
    for (const auto& units : factor.layout().batches)
      for (const std::int32_t u : units)
        for (const std::int32_t c : factor.layout().units[at(u)].children)
          from_tiles += units.size() > 1 && factor.layout().units[at(c)].kind == UnitKind::tiled;
  }
  EXPECT_GT(from_tiles, 0);
}

TEST(LevelBatches, SolveInvertAndTellWhatIsNotDefinite) {
  const SparseMatrix a = test::with_values(test::grid(9, 8, 7), 5);
  const SparseAnalysis analysis = analysis_by_amd(a);
  SparseCholeskyOptions plain;
  plain.run.devices = "host:1";
  const SparseCholesky expected(analysis, a, plain);
  SparseCholesky factor(analysis, a, batched("host:1", 8, 4));
  std::vector<double> x(at(a.rows), 1.0);
  std::vector<double> y = x;
  factor.solve({x.data(), a.rows, 1, a.rows});
  expected.solve({y.data(), a.rows, 1, a.rows});
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], 1e-12 * std::abs(y[i]) + 1e-13);
  const std::vector<double> variances = factor.inverse_diagonal();
  const std::vector<double> wanted = expected.inverse_diagonal();
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(variances[i], wanted[i], 1e-10 * wanted[i]);
  for (const std::int64_t row : {0, 100, 300}) {
    const SparseMatrix bad = test::with_bad_row(a, row);
    factor.refactor(bad);
    EXPECT_FALSE(factor.info().ok);
    EXPECT_EQ(factor.info().first_bad_pivot,
              SparseCholesky(analysis, bad, plain).info().first_bad_pivot);
  }
  EXPECT_TRUE(factor.refactor(a).ok);
}

/// Their panels lie in files as those of other units do.
TEST(LevelBatches, AreSavedAndOpened) {
  const std::string directory = ::testing::TempDir() + "/strata_level_batches_" +
                                std::to_string(static_cast<unsigned>(::getpid()));
  for (const SparseMatrix& a : batch_matrices()) {
    if (a.rows == 0) continue;
    const SparseCholesky factor(analysis_by_amd(a), a, batched("host:1", 8, 4));
    factor.save(directory);
    SparseCholeskyOptions options;
    options.run.devices = "host:1";
    SparseCholesky opened = SparseCholesky::open(directory, options);
    std::vector<double> x(at(a.rows), 1.0);
    std::vector<double> y = x;
    factor.solve({x.data(), a.rows, 1, a.rows});
    opened.solve({y.data(), a.rows, 1, a.rows});
    EXPECT_EQ(x, y);
    EXPECT_TRUE(opened.refactor(a, 1).ok);
  }
  std::filesystem::remove_all(directory);
}

TEST(LevelBatches, AreTracedWhereThatIsAskedFor) {
  const SparseMatrix a = test::with_values(test::grid(20, 20, 1), 5);
  SparseCholeskyOptions options = batched("host:1", 8, 4);
  const SparseCholesky untraced(a, options);
  EXPECT_TRUE(untraced.report().trace.spans.empty());
  options.batches->traced = true;
  const SparseCholesky factor(a, options);
  const Trace& trace = factor.report().trace;
  ASSERT_FALSE(trace.spans.empty());
  EXPECT_EQ(std::ssize(trace.queues), 4);
  std::uint32_t fronts = 0;
  for (const Span& span : trace.spans)
    if (trace.operations[span.operation] == "factor_front") fronts += span.calls;
  EXPECT_EQ(fronts, factor.analysis().supernodes() - 1);  // the root has nothing above it
}

TEST(LevelBatches, AreRefusedWhereTheyHaveNoPlace) {
  const SparseMatrix a = test::with_values(test::grid(20, 20, 20), 5);
  SparseCholeskyOptions options = batched("host:2", 16, 16);
  EXPECT_THROW(SparseCholesky(a, options), Error) << "two devices";
  options = batched("host:1", 16, 16);
  options.run.device_memory_bytes = 1 << 20;
  EXPECT_THROW(SparseCholesky(a, options), Error) << "a budget that does not hold all";
  for (const auto& [batch, streams] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 0}, {-1, 1}, {1, 65}})
    EXPECT_THROW(SparseCholesky(a, batched("host:1", batch, streams)), Error);
  options = batched("host:1", 16, 16);
  options.tile = 64;
  EXPECT_THROW(SparseCholesky(a, options), Error);
  EXPECT_THROW((void)simulate_sparse_cholesky(analysis_by_amd(a), a, Machine::emulated(1, 1 << 30),
                                              batched("host:1", 16, 16)),
               Error);
}

/// Where a GPU answers: what the host finds, and the same bits whatever is batched.
TEST(LevelBatchesOnAGpu, AgreeWithTheHost) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  std::vector<SparseMatrix> list = batch_matrices();
  list.push_back(test::with_values(test::grid(24, 23, 22), 77));
  for (const SparseMatrix& a : list) {
    if (a.rows == 0) continue;
    const SparseAnalysis analysis = analysis_by_amd(a);
    SparseCholeskyOptions options;
    options.run.devices = "host:1";
    FrontFactor expected(analysis, options, {.panel_order = kPanelOrderMax, .branch_entries = 1});
    expected.factor(a, 0.5);
    std::vector<std::vector<double>> first;
    for (const auto& [batch, streams] :
         std::vector<std::pair<int, int>>{{1, 1}, {16, 16}, {1000, 3}}) {
      options = batched("cuda:0", batch, streams);
      options.run.device_memory_bytes = std::int64_t{2} << 30;
      FrontFactor factor(analysis, options);
      factor.factor(a, 0.5);
      ASSERT_TRUE(factor.info().ok);
      EXPECT_NEAR(factor.info().log_determinant, expected.info().log_determinant,
                  1e-12 * (1 + std::abs(expected.info().log_determinant)));
      factor.bring_home();
      std::vector<std::vector<double>> columns;
      for (std::int32_t c = 0; c < a.rows; ++c) {
        columns.push_back(test::column_of<double>(factor, c));
        const std::vector<double> wanted = test::column_of<double>(expected, c);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          ASSERT_NEAR(columns.back()[i], wanted[i], 1e-11 * (1 + std::abs(wanted[i])));
      }
      if (first.empty()) first = columns;
      ASSERT_TRUE(columns == first) << "batches of " << batch << " on " << streams << " streams";
    }
  }
}

}  // namespace
}  // namespace strata
