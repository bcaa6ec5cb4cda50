// Ranges of the postorder at their limits: orders, numbers of updates, empty matrices, floats, bad
// pivots, factors that are opened, bytes that are saved.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/fronts/front_program.hpp"
#include "schedule/fixed_places.hpp"
#include "schedule/plan_layout.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "sparse/ordering/supernodes.hpp"
#include "strata/error.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_columns.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/front_sizes.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::analysis_by_amd;
using test::in_ranges;
using test::kWhole;

/// One dense supernode of all columns, by a matrix of its diagonal and its last two elements.
struct Dense {
  SparseMatrix a;
  SparseAnalysis analysis;
  explicit Dense(std::int32_t n) {
    a.rows = a.cols = n;
    a.start = {0};
    for (std::int32_t i = 0; i < n; ++i) {
      if (i == n - 1) {
        a.column.push_back(n - 2);
        a.value.push_back(0.5);
      }
      a.column.push_back(i);
      a.value.push_back(2);
      a.start.push_back(std::ssize(a.column));
      analysis.order.push_back(i);
    }
    analysis.fingerprint.order = n;
    analysis.first = {0, n};
    analysis.parent = {-1};
    analysis.row_start = {0, 0};
    analysis.branch = {0};
    analysis.level = {0};
    analysis.counts.height = 1;
    analysis.counts.panel_bytes = std::int64_t{8} * n * n;
  }
  /// The same below `w` columns that are a supernode of their own, which has all of the others.
  Dense(std::int32_t w, std::int32_t n) : Dense(n) {
    analysis.counts.panel_bytes = std::int64_t{8} * w * n + std::int64_t{8} * (n - w) * (n - w);
    analysis.first = {0, w, n};
    analysis.parent = {1, -1};
    analysis.row_start = {0, n - w, n - w};
    for (std::int32_t i = w; i < n; ++i) analysis.row.push_back(i);
    analysis.branch = {0, 0};
    analysis.level = {0, 1};
    analysis.counts.height = 2;
  }
};

/// Places of entries are of 32 bits.
TEST(FrontRanges, AFrontBeyond32BitsIsRefused) {
  const Dense dense(50000);
  EXPECT_THROW((void)lay_out_fronts(dense.analysis, dense.a, in_ranges(std::int64_t{1} << 30)),
               Error);
}

/// The same where no sizes were asked for, on a GPU that has room for such a front.
TEST(FrontRanges, AFrontBeyond32BitsIsNotInARange) {
  Dense dense(50000);
  FrontSizes sizes = front_sizes(dense.analysis, {}, true);
  const auto layout = fitting_layout(dense.analysis, dense.a, sizes, false, Element::fp64,
                                     Machine::emulated(1, std::int64_t{100} << 30));
  EXPECT_FALSE(layout->ranges);
}

/// What a program adds up modulo 2³² on the way to the place of a column is right where it ends.
TEST(FrontRanges, PlacesOfUpdatesAreRightUpTo32Bits) {
  for (const std::int64_t rows : {1, 64, 1000, 46340, 46342, 60001, 65503, 65504}) {
    const std::int64_t ld = rows + rows % 2;
    ASSERT_LT(packed_elements(rows), std::int64_t{1} << 31) << rows;
    std::int64_t tile = 0;  // the first element of a column of tiles
    for (std::int64_t j = 0; j * kFrontTile < rows; ++j) {
      const std::int64_t shorter = ld - j * kFrontTile;
      for (std::int64_t b = j * kFrontTile; b < std::min(rows, (j + 1) * kFrontTile); b += 21) {
        const std::int64_t column = tile + (b - j * kFrontTile) * shorter - j * kFrontTile;
        ASSERT_EQ(
            update_column(static_cast<std::int32_t>(ld), kFrontTile, static_cast<std::int32_t>(b)),
            column)
            << rows << ' ' << b;
      }
      tile += kFrontTile * shorter;
    }
  }
  EXPECT_TRUE(places_fit(1, 65503));
  EXPECT_FALSE(places_fit(1, 65504));
  EXPECT_FALSE(places_fit(46341, 0));
  EXPECT_TRUE(places_fit(20000, 40000));
}

/// A front of an order whose square 32 bits do not count, as grids of 200³ have them, is in a range
/// if they count its panel and its update, on devices that hold all and on such that do not.
TEST(FrontRanges, AFrontOfLargeOrderIsInARange) {
  const Dense front(10000, 50000);
  FrontSizes sizes = front_sizes(front.analysis, {}, true);
  const auto resident = [&](int devices, std::int64_t gigabytes) {
    FrontSizes staying = sizes;
    auto layout = resident_layout(front.analysis, front.a, staying, false, Element::fp64,
                                  Machine::emulated(devices, gigabytes << 30));
    EXPECT_EQ(staying.range_bytes, layout == nullptr ? sizes.range_bytes : kRangesThatStay);
    return layout;
  };
  for (const int devices : {1, 2}) {
    const auto layout = resident(devices, 100);
    ASSERT_NE(layout, nullptr) << devices;
    EXPECT_TRUE(layout->ranges);
  }
  EXPECT_EQ(resident(1, 16), nullptr);
  SparseAnalysis split = front.analysis;
  const auto layout = fitting_layout(split, front.a, sizes, false, Element::fp64,
                                     Machine::emulated(1, std::int64_t{12} << 30));
  EXPECT_TRUE(layout->ranges);
  EXPECT_GT(split.supernodes(), 2);
}

/// Supernodes are not joined to one whose panel, or update if it is split, 32 bits do not count:
/// what a grid of 200³ would become.
TEST(FrontRanges, AmalgamationMakesNoFrontBeyond32Bits) {
  // A child of w columns, and all rows of its parent, which has `rows` below its own.
  const auto joined = [](std::int32_t w, std::int32_t of_parent, std::int32_t rows) {
    const SupernodeForest forest{
        {w, of_parent}, {of_parent + rows, rows}, {1, -1}, {0, w, w + of_parent}};
    return amalgamate(forest, {}).front() == 1;
  };
  EXPECT_TRUE(joined(6300, 40000, 0));
  EXPECT_FALSE(joined(6400, 40000, 0));
  EXPECT_TRUE(joined(640, 4000, 0));
  EXPECT_TRUE(joined(600, 21632, 43264));
  EXPECT_FALSE(joined(700, 21632, 43264));
}

/// A plan does not promise more than the 32 TFLOP/s that products reach, whether the GPU holds the
/// factor or ranges of it are at work beside each other.
TEST(FrontRanges, ALargeFrontIsPredictedAtTheRateOfItsProducts) {
  const Dense dense(20000);
  const double flops = std::pow(20000.0, 3) / 3;
  for (const std::int64_t gigabytes : {1, 2, 4}) {
    if (test::kSanitized && gigabytes != 4) continue;
    const PlannedRun planned =
        plan_factorization(dense.analysis, dense.a, Machine::emulated(1, gigabytes << 30), {});
    EXPECT_GE(planned.simulated.seconds, flops / 33e12) << gigabytes;
    EXPECT_LE(planned.simulated.seconds, flops / 12e12) << gigabytes;
  }
}

/// A GPU and a CPU that are as fast as each other share the tiles of one large front.
TEST(FrontRanges, ALargeFrontIsMadeByGpuAndCpuTogether) {
  const Dense dense(16000);
  Machine machine = Machine::emulated(2, std::int64_t{8} << 30);
  machine.devices[1].kind = DeviceKind::cpu;
  for (DeviceModel& device : machine.devices) device.rate(Element::fp64) = 1e12;
  const auto seconds = [&](const Machine& some) {
    return plan_factorization(dense.analysis, dense.a, some, {}).simulated.seconds;
  };
  EXPECT_EQ(sooner_alone(dense.analysis, dense.a, machine, {}), std::nullopt);
  EXPECT_LT(seconds(machine), 0.7 * seconds(only(machine, DeviceKind::gpu)));
  EXPECT_LT(seconds(machine), 0.7 * seconds(only(machine, DeviceKind::cpu)));
  machine.devices[1].rate(Element::fp64) = 20e9;
  EXPECT_EQ(sooner_alone(dense.analysis, dense.a, machine, {}), DeviceKind::gpu);
}

/// Branches, panels and rows of tiles are dealt in proportion to rates.
TEST(FrontRanges, UnlikeDevicesGetWorkInProportion) {
  const SparseMatrix a = test::with_values(test::grid(30, 30, 30), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  const FrontSizes sizes{.tile = 64, .panel_order = 128, .branch_entries = 20'000};
  const auto layout = std::make_shared<const FrontLayout>(lay_out_fronts(analysis, a, sizes));
  const auto share_of_second = [&](std::vector<double> rates) {
    const Schedule schedule = front_schedule(layout, 2, std::move(rates));
    std::array<double, 2> work{};
    for (std::int64_t step = 0; step < schedule.steps; ++step) {
      TaskList tasks;
      schedule.emit(step, tasks);
      for (const Task& task : std::as_const(tasks).tasks())
        work[task.device] += work_of(schedule.blocks, task, std::as_const(tasks).operands(task));
    }
    return work[1] / (work[0] + work[1]);
  };
  EXPECT_NEAR(share_of_second({}), 0.5, 0.1);
  EXPECT_NEAR(share_of_second({1, 1}), share_of_second({}), 1e-12);
  EXPECT_NEAR(share_of_second({1, 3}), 0.75, 0.1);
  EXPECT_NEAR(share_of_second({9, 1}), 0.1, 0.08);
}

/// Leaves of one column, or of two, around a root that all of them reach.
SparseMatrix star(std::int64_t leaves) {
  SparseMatrix a;
  a.rows = a.cols = leaves + 1;
  a.start = {0};
  for (std::int64_t i = 0; i <= leaves; ++i) {
    for (std::int64_t j = 0; j < (i == leaves ? leaves : 0); ++j) {
      a.column.push_back(static_cast<std::int32_t>(j));
      a.value.push_back(1);
    }
    a.column.push_back(static_cast<std::int32_t>(i));
    a.value.push_back(static_cast<double>(leaves) * 2);
    a.start.push_back(std::ssize(a.column));
  }
  return a;
}

TEST(FrontRanges, MoreThan224UpdatesFallBack) {
  const SparseMatrix a = star(2000);
  AnalysisOptions options;
  options.ordering = SparseOrdering::natural;
  for (const std::int64_t bytes : {100000, 100, 1}) {
    SparseAnalysis analysis = analyze(a, options);
    FrontSizes sizes = in_ranges(bytes);
    const auto layout = fitting_layout(analysis, a, sizes, false, Element::fp64,
                                       Machine::emulated(1, std::int64_t{1} << 20));
    EXPECT_EQ(layout->ranges, bytes == 100000) << bytes;
    EXPECT_EQ(sizes.range_bytes, layout->ranges ? bytes : 0);
  }
}

/// Grids side by side that meet in one row, on a GPU with little memory: a layout, whatever the
/// budget, as long as one without ranges exists.
TEST(FrontRanges, AWideTreeInASmallBudget) {
  const std::int64_t arms = 240;
  const SparseMatrix grid = test::with_values(test::grid(9, 9, 9), 8);
  SparseMatrix a;
  a.rows = a.cols = arms * grid.rows + 1;
  a.start = {0};
  for (std::int64_t arm = 0; arm < arms; ++arm) {
    for (std::int64_t i = 0; i < grid.rows; ++i) {
      for (std::int64_t k = grid.start[at(i)]; k < grid.start[at(i + 1)]; ++k) {
        if (grid.column[at(k)] > i) continue;
        a.column.push_back(static_cast<std::int32_t>(arm * grid.rows + grid.column[at(k)]));
        a.value.push_back(grid.value[at(k)]);
      }
      a.start.push_back(std::ssize(a.column));
    }
  }
  for (std::int64_t arm = 0; arm <= arms; ++arm) {
    a.column.push_back(static_cast<std::int32_t>(arm * grid.rows));
    a.value.push_back(arm < arms ? 0.01 : 1000);
  }
  a.start.push_back(std::ssize(a.column));
  const SparseAnalysis analysis = analysis_by_amd(a);
  const std::int64_t values = 8 * std::ssize(a.value);
  std::int64_t cut = 0;
  for (const double part : {1.3, 1.2, 1.15}) {
    if (test::kSanitized && part == 1.2) continue;
    const auto budget = static_cast<std::int64_t>(part * static_cast<double>(values));
    FrontSizes sizes = front_sizes(analysis, {}, true);
    SparseAnalysis mine = analysis;
    const auto layout =
        fitting_layout(mine, a, sizes, false, Element::fp64, Machine::emulated(1, budget));
    EXPECT_LE(smallest_budget_bytes(front_schedule(layout, 1)), budget) << part;
    cut += layout->ranges ? 0 : 1;
  }
  EXPECT_GT(cut, 0) << "budgets for which there are no ranges";
}

TEST(FrontRanges, NothingAndOne) {
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  SparseMatrix nothing;
  nothing.start = {0};
  for (const Element element : {Element::fp64, Element::fp32}) {
    options.precision = element;
    FrontFactor empty(analysis_by_amd(nothing), options, in_ranges(1));
    empty.factor(nothing, 0);
    EXPECT_TRUE(empty.info().ok);
    const SparseMatrix one = test::with_values(test::grid(1, 1, 1), 3);
    FrontFactor factor(analysis_by_amd(one), options, in_ranges(1));
    factor.factor(one, 0);
    EXPECT_TRUE(factor.info().ok);
  }
}

TEST(FrontRanges, FloatsToo) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  SparseCholeskyOptions options;
  options.run.devices = "reference";
  options.precision = Element::fp32;
  FrontFactor whole(analysis_by_amd(a), options,
                    {.panel_order = 4096, .branch_entries = kWhole, .program = 1});
  whole.factor(a, 0.5);
  whole.bring_home();
  for (const std::int64_t bytes : {100000, 10000, 1000}) {
    FrontFactor factor(analysis_by_amd(a), options, in_ranges(bytes));
    factor.factor(a, 0.5);
    ASSERT_TRUE(factor.info().ok);
    for (std::int32_t c = 0; c < a.rows; ++c)
      ASSERT_EQ(test::column_of<float>(factor, c), test::column_of<float>(whole, c));
  }
}

TEST(FrontRanges, TheFirstBadPivotIsNamed) {
  const SparseMatrix a = test::with_values(test::grid(9, 8, 7), 5);
  const SparseAnalysis analysis = analysis_by_amd(a);
  for (const std::int64_t bytes : {20000, 2000, 1}) {
    for (const std::int64_t row : {0, 100, 300, 503}) {
      const SparseMatrix bad = test::with_bad_row(a, row);
      SparseCholeskyOptions options;
      options.run.devices = "host:1";
      FrontFactor factor(analysis, options, in_ranges(bytes));
      factor.factor(bad, 0);
      EXPECT_FALSE(factor.info().ok);
      const SparseCholesky expected(analysis, bad, options);
      EXPECT_EQ(factor.info().first_bad_pivot, expected.info().first_bad_pivot);
      factor.factor(a, 0);
      EXPECT_TRUE(factor.info().ok);
    }
  }
}

/// Opened elsewhere, it solves as it did, and is made again as it suits.
TEST(FrontRanges, AFactorInRangesIsOpened) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  FrontFactor made(analysis_by_amd(a), options, in_ranges(20000));
  made.factor(a, 0);
  FrontFactor opened(made.analysis(), options, made.sizes());
  opened.reserve();
  ASSERT_EQ(made.bytes().size(), opened.bytes().size());
  std::copy(made.bytes().begin(), made.bytes().end(), opened.bytes().begin());
  opened.adopt(made.info(), 0);
  std::vector<double> x(at(a.rows), 1.0);
  std::vector<double> y = x;
  sweep_forward<double>(made, {x.data(), a.rows, 1, a.rows});
  sweep_forward<double>(opened, {y.data(), a.rows, 1, a.rows});
  EXPECT_EQ(x, y);
  opened.factor(a, 0);
  EXPECT_EQ(opened.sizes().program, 0);
  EXPECT_NEAR(opened.info().log_determinant, made.info().log_determinant, 1e-10);
}

/// A factor has one set of bytes, whatever memory there was: what is saved is reproducible.
TEST(FrontRanges, BytesAreThoseOfAnyBudget) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const SparseAnalysis analysis = analysis_by_amd(a);
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  const SplitAnalysis split = split_supernodes(analysis, 200000, Element::fp64);
  const std::int64_t least = smallest_budget_bytes(
      front_schedule(std::make_shared<const FrontLayout>(lay_out_fronts(
                         split.analysis, a, in_ranges(200000), Element::fp64, split.parts)),
                     1));
  std::vector<std::byte> first;
  for (const std::int64_t budget : {least, 2 * least, std::int64_t{1} << 26}) {
    options.run.device_memory_bytes = budget;
    FrontFactor factor(analysis, options, in_ranges(200000));
    factor.factor(a, 0.5);
    ASSERT_EQ(factor.sizes().range_bytes, 200000);
    std::vector<std::byte> bytes(factor.bytes().begin(), factor.bytes().end());
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << budget;
  }
}

/// Whole subtrees wait for no range: a range that takes updates has what is above such subtrees,
/// along one path.
TEST(FrontRanges, WholeSubtreesWaitForNobody) {
  const SparseMatrix a = test::with_values(test::grid(14, 14, 14), 8);
  const SparseAnalysis analysis = analysis_by_amd(a);
  const FrontLayout layout = lay_out_fronts(analysis, a, in_ranges(300000));
  std::int64_t whole = 0;
  for (const FrontUnit& unit : layout.units) {
    if (unit.first_tile > 0) continue;
    EXPECT_GT(unit.seconds, 0);
    EXPECT_GE(unit.workers, 1U);
    whole += unit.taken.empty() ? 1 : 0;
    for (std::int32_t s = unit.first; s < unit.last && !unit.taken.empty(); ++s)
      EXPECT_EQ(analysis.parent[at(s)], s + 1);
  }
  EXPECT_GT(whole, 4);
}

/// As long as four columns of tiles of the largest front fit. Nearly dense ones among them: with
/// the values of the whole matrix beside each range there would be none in a quarter.
TEST(FrontRanges, AreThereInAHalfAndAQuarterOfTheMemory) {
  const auto band = [](std::int64_t n, std::int64_t width, std::int64_t block) {
    test::Edges edges(n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = std::max<std::int64_t>(i - width, i / block * block); j < i; ++j)
        edges.add(i, j);
    return test::with_values(edges.matrix(), 5);
  };
  const std::vector<SparseMatrix> list{
      band(300, 300, 300),   band(700, 700, 700),    band(800, 800, 200),
      band(2000, 150, 2000), test::grid(5, 5, 5),    test::grid(7, 7, 7),
      test::grid(9, 9, 9),   test::grid(12, 12, 12), test::grid(16, 16, 16)};
  int own_values = 0;
  for (const SparseMatrix& a : list) {
    const SparseAnalysis analysis = analysis_by_amd(a);
    const FrontSizes sizes = front_sizes(analysis, {}, true);
    FrontSizes staying = sizes;
    const auto resident = resident_layout(analysis, a, staying, false, Element::fp64,
                                          Machine::emulated(1, std::int64_t{1} << 32));
    const std::int64_t bytes = fixed_places_bytes(front_schedule(resident, 1)).front();
    std::int64_t order = 0;
    for (std::int32_t s = 0; s < analysis.supernodes(); ++s)
      order = std::max<std::int64_t>(order, analysis.width(s) + analysis.row_count(s));
    for (const int part : {1, 2, 4}) {
      FrontSizes mine = sizes;
      SparseAnalysis split = analysis;
      const auto layout =
          fitting_layout(split, a, mine, false, Element::fp64, Machine::emulated(1, bytes / part));
      const bool fit = bytes / part >= 4 * kFrontTile * order * 8;
      EXPECT_EQ(layout->ranges, part < 4 || fit) << a.rows << " in " << bytes / part;
      own_values += mine.range_values && layout->ranges ? 1 : 0;
    }
  }
  EXPECT_GE(own_values, 2);
}

TEST(FrontRanges, PartsAreJoinedAgain) {
  std::int64_t split_ones = 0;
  for (const SparseMatrix& a : test::front_matrices(300)) {
    const SparseAnalysis analysis = analysis_by_amd(a);
    for (const std::int64_t bytes : {1 << 30, 100000, 20000, 5000, 1}) {
      const SplitAnalysis split = split_supernodes(analysis, bytes, Element::fp64);
      split_ones += split.analysis.supernodes() > analysis.supernodes() ? 1 : 0;
      const SparseAnalysis joined = joined_supernodes(split.analysis, split.parts);
      EXPECT_EQ(joined.first, analysis.first);
      EXPECT_EQ(joined.parent, analysis.parent);
      EXPECT_EQ(joined.row_start, analysis.row_start);
      EXPECT_EQ(joined.row, analysis.row);
      EXPECT_EQ(joined.branch, analysis.branch);
      EXPECT_EQ(joined.level, analysis.level);
      EXPECT_EQ(joined.counts.panel_bytes, analysis.counts.panel_bytes);
      EXPECT_EQ(joined.counts.flops, analysis.counts.flops);
    }
  }
  EXPECT_GT(split_ones, test::kSanitized ? 1 : 8);
}

/// A factor that was opened, and is factored again, has the bits of one that was never saved.
TEST(FrontRanges, AnOpenedFactorIsMadeAgainFromTheWholeAnalysis) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  FrontFactor made(analysis_by_amd(a), options, in_ranges(20000));
  made.factor(a, 0);
  ASSERT_GT(made.analysis().supernodes(), analysis_by_amd(a).supernodes());
  FrontFactor opened(made.analysis(), options, made.sizes(), made.layout().parts);
  FrontFactor fresh(analysis_by_amd(a), options);
  opened.reserve();
  opened.adopt(made.info(), 0);
  opened.factor(a, 0);
  fresh.factor(a, 0);
  EXPECT_EQ(opened.analysis().first, fresh.analysis().first);
  EXPECT_EQ(opened.info().log_determinant, fresh.info().log_determinant);
  EXPECT_TRUE(std::ranges::equal(opened.bytes(), fresh.bytes()));
}

/// Parts that are no chains, as a damaged file may have them.
TEST(FrontRanges, PartsThatAreNoChainsAreRefused) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const SplitAnalysis split = split_supernodes(analysis_by_amd(a), 20000, Element::fp64);
  const auto lay_out = [&](std::span<const std::int32_t> parts) {
    return lay_out_fronts(split.analysis, a, in_ranges(20000), Element::fp64, parts);
  };
  EXPECT_NO_THROW((void)lay_out(split.parts));
  for (const FrontSizes& others : {FrontSizes(), test::whole_tree(), FrontSizes{.batch = 8}})
    EXPECT_THROW((void)lay_out_fronts(split.analysis, a, others, Element::fp64, split.parts),
                 Error);
  EXPECT_NO_THROW((void)lay_out({}));
  EXPECT_THROW((void)lay_out(std::span(split.parts).first(3)), Error);
  std::int64_t changed = 0;
  for (std::size_t s = 0; s < split.parts.size(); ++s) {
    for (const std::int32_t other : {-2, -1, 0, 1, 1 << 30}) {
      std::vector<std::int32_t> parts = split.parts;
      if (std::exchange(parts[s], other) == other) continue;
      EXPECT_THROW((void)lay_out(parts), Error) << s << ' ' << other;
      ++changed;
    }
  }
  EXPECT_GT(changed, 100);
}

/// Sizes that make no sense are refused, whoever wrote them.
TEST(FrontRanges, RangesWithoutAProgramAreRefused) {
  const SparseMatrix a = test::with_values(test::grid(5, 4, 3), 8);
  EXPECT_THROW((void)lay_out_fronts(analysis_by_amd(a), a, {.range_bytes = 1}), Error);
}

}  // namespace
}  // namespace strata
