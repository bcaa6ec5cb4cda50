// Factors that several devices hold between them: subtrees that each factors alone, and what meets
// above them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "kernels/backend.hpp"
#include "kernels/front_program.hpp"
#include "sparse/front_factor.hpp"
#include "sparse/front_program.hpp"
#include "sparse/front_schedule.hpp"
#include "sparse/subtree_dealing.hpp"
#include "strata/error.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_columns.hpp"
#include "tests/sparse/front_matrices.hpp"

namespace strata {
namespace {

using test::at;

constexpr std::int64_t kWhole = std::int64_t{1} << 60;

std::vector<SparseMatrix> matrices() { return test::front_matrices(61); }

FrontSizes whole_tree() { return {.panel_order = 4096, .branch_entries = kWhole, .program = 1}; }
FrontSizes dealt_to(std::int64_t devices, std::int64_t range_bytes = kRangesThatStay) {
  FrontSizes sizes = whole_tree();
  sizes.range_bytes = range_bytes;
  sizes.devices = devices;
  sizes.free_handover = true;
  return sizes;
}
/// The same where devices make large fronts together.
FrontSizes shared_by(std::int64_t devices) {
  FrontSizes sizes = dealt_to(devices);
  sizes.shares = 1;
  return sizes;
}
std::int64_t shared_units(const FrontLayout& layout) {
  return std::count_if(layout.units.begin(), layout.units.end(),
                       [](const FrontUnit& unit) { return unit.sharers > 1; });
}

SparseCholeskyOptions options_on(const std::string& devices, std::int64_t bytes = 0) {
  SparseCholeskyOptions options;
  options.run.devices = devices;
  options.run.device_memory_bytes = bytes;
  return options;
}

/// Of each subtree that is dealt, all is one device's; what is above one that is in the top, too.
void check_dealing(const SparseAnalysis& a, const SubtreeDealing& dealing, int devices) {
  ASSERT_EQ(std::ssize(dealing.device), a.supernodes());
  ASSERT_EQ(std::ssize(dealing.top), a.supernodes());
  ASSERT_EQ(std::ssize(dealing.shared), a.supernodes());
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    ASSERT_GE(dealing.device[at(s)], 0);
    ASSERT_LT(dealing.device[at(s)], devices);
    if (dealing.shared[at(s)] != 0) {
      ASSERT_EQ(dealing.top[at(s)], 1);
      ASSERT_EQ(dealing.device[at(s)], 0);
      ASSERT_GT(a.width(s) + a.row_count(s), kSmallFront);
    }
    const std::int32_t p = a.parent[at(s)];
    if (p < 0) continue;
    if (dealing.top[at(p)] == 0) {
      ASSERT_EQ(dealing.top[at(s)], 0);
      ASSERT_EQ(dealing.device[at(s)], dealing.device[at(p)]);
    }
  }
}

TEST(SubtreeDealing, LeavesSubtreesWhole) {
  for (const SparseMatrix& a : matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    const double alone = deal_subtrees(analysis, 1).seconds;
    for (const int devices : {1, 2, 3, 4, 7}) {
      for (const DealingTimes& times : {DealingTimes(), kFreeHandover}) {
        const SubtreeDealing dealing = deal_subtrees(analysis, devices, times);
        check_dealing(analysis, dealing, devices);
        EXPECT_LE(dealing.seconds, alone * (1 + 1e-12));
        EXPECT_GE(dealing.seconds, alone / devices * (1 - 1e-12));
        const SubtreeDealing sharing = deal_subtrees(analysis, devices, times, true);
        check_dealing(analysis, sharing, devices);
        EXPECT_LE(sharing.seconds, dealing.seconds);
        EXPECT_GE(sharing.seconds, alone / devices * (1 - 1e-12));
        EXPECT_EQ(std::count(dealing.shared.begin(), dealing.shared.end(), 1), 0);
      }
    }
  }
  EXPECT_THROW((void)deal_subtrees(test::analysis_by_amd(matrices().front()), 0), Error);
}

/// What is small is not worth a handover; many trees that are alike are dealt evenly; two halves of
/// a grid below their separator, too.
TEST(SubtreeDealing, WeighsWhatItCosts) {
  const SparseAnalysis small = test::analysis_by_amd(test::with_values(test::grid(10, 10, 1), 1));
  for (const std::int32_t d : deal_subtrees(small, 4).device) EXPECT_EQ(d, 0);
  AnalysisOptions options;
  options.ordering = SparseOrdering::metis;
  const SparseAnalysis grid = analyze(test::with_values(test::grid(20, 20, 20), 1), options);
  const double alone = deal_subtrees(grid, 1, kFreeHandover).seconds;
  const SubtreeDealing two = deal_subtrees(grid, 2, kFreeHandover);
  EXPECT_LT(two.seconds, 0.75 * alone);
  std::set<std::int32_t> used(two.device.begin(), two.device.end());
  EXPECT_EQ(used.size(), 2U);
  EXPECT_LT(deal_subtrees(grid, 4, kFreeHandover).seconds, two.seconds);
  EXPECT_GT(deal_subtrees(grid, 2, {.handover = 1}).seconds, 0.99 * alone);
}

/// What is large enough is shared, so that the devices are at work all the time; what would wait
/// for tiles of others all the time is not.
TEST(SubtreeDealing, SharesWhatIsWorthIt) {
  AnalysisOptions options;
  options.ordering = SparseOrdering::metis;
  const SparseAnalysis grid = analyze(test::with_values(test::grid(20, 20, 20), 1), options);
  const double alone = deal_subtrees(grid, 1, kFreeHandover).seconds;
  for (const int devices : {2, 4}) {
    const SubtreeDealing sharing = deal_subtrees(grid, devices, kFreeHandover, true);
    EXPECT_LT(sharing.seconds, deal_subtrees(grid, devices, kFreeHandover).seconds);
    EXPECT_LT(sharing.seconds, 1.1 * alone / devices);
    EXPECT_EQ(sharing.shared.back(), 1);
    DealingTimes slow = kFreeHandover;
    slow.shared_column = 1;
    const SubtreeDealing apart = deal_subtrees(grid, devices, slow, true);
    EXPECT_EQ(std::count(apart.shared.begin(), apart.shared.end(), 1), 0);
    EXPECT_EQ(apart.seconds, deal_subtrees(grid, devices, kFreeHandover).seconds);
  }
}

/// Whatever devices share a factor, its bits, the solutions and the first failing pivot are those
/// of one that has it to itself; and values alone make another one.
TEST(DealtFactor, HasTheBitsOfOneDevice) {
  std::int64_t units = 0;
  std::int64_t copied = 0;
  std::int64_t shared = 0;
  for (const SparseMatrix& a : matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    FrontFactor whole(analysis, options_on("host:1"), whole_tree());
    whole.factor(a, 0.5);
    constexpr std::int64_t kColumns = 35;
    const std::int64_t ld = a.rows + 3;
    std::vector<double> b(at(ld * kColumns));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_uniform(3, i) - 0.5;
    for (const FrontSizes& sizes :
         {dealt_to(2), dealt_to(3), dealt_to(4), shared_by(2), shared_by(3), shared_by(4)}) {
      const std::int64_t devices = sizes.devices;
      FrontFactor dealt(analysis, options_on("host:" + std::to_string(devices)), sizes);
      SparseMatrix other = a;
      for (double& value : other.value) value *= 1.5;
      dealt.factor(other, 0);
      dealt.factor_values(a.value, 0.5);
      ASSERT_TRUE(dealt.info().ok && dealt.resident() && dealt.solves_there());
      units += std::ssize(dealt.layout().units);
      shared += shared_units(dealt.layout());
      copied += dealt.report().traffic.device_to_device_bytes;
      EXPECT_EQ(std::ssize(dealt.report().devices), devices);
      for (const bool forward : {true, false}) {
        for (const bool backward : {true, false}) {
          if (!forward && !backward) continue;
          for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{5}, kColumns}) {
            std::vector<double> x = b;
            std::vector<double> wanted = b;
            dealt.solve_there({x.data(), a.rows, columns, ld}, forward, backward);
            whole.solve_there({wanted.data(), a.rows, columns, ld}, forward, backward);
            ASSERT_EQ(x, wanted) << devices << " devices, " << columns << " columns";
          }
        }
      }
      dealt.bring_home();
      whole.bring_home();
      for (std::int32_t c = 0; c < a.rows; ++c)
        ASSERT_EQ(test::column_of<double>(dealt, c), test::column_of<double>(whole, c)) << c;
      EXPECT_EQ(dealt.info().log_determinant, whole.info().log_determinant);
    }
  }
  EXPECT_GT(units, 400);
  EXPECT_GT(shared, 50);
  EXPECT_GT(copied, 100000);
}

TEST(DealtFactor, OfFloatsIsSolvedAtHome) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  SparseCholeskyOptions options = options_on("host:1");
  options.precision = Element::fp32;
  FrontFactor whole(analysis, options, whole_tree());
  whole.factor(a, 0);
  whole.bring_home();
  options.run.devices = "host:3";
  for (const FrontSizes& sizes : {dealt_to(3), shared_by(3)}) {
    FrontFactor dealt(analysis, options, sizes);
    dealt.factor(a, 0);
    ASSERT_TRUE(dealt.resident());
    EXPECT_EQ(shared_units(dealt.layout()) > 0, sizes.shares == 1);
    EXPECT_FALSE(dealt.solves_there());
    EXPECT_THROW(dealt.factor_values(a.value, 0), Error);
    dealt.bring_home();
    for (std::int32_t c = 0; c < a.rows; ++c)
      ASSERT_EQ(test::column_of<float>(dealt, c), test::column_of<float>(whole, c)) << c;
  }
}

TEST(DealtFactor, NamesTheFirstBadPivot) {
  const SparseMatrix a = test::with_values(test::grid(9, 8, 7), 5);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  for (const std::int64_t row : {0, 1, 100, 222, 300, 503}) {
    const SparseMatrix bad = test::with_bad_row(a, row);
    const SparseCholesky expected(analysis, bad, options_on("host:1"));
    for (const FrontSizes& sizes : {dealt_to(2), dealt_to(4), shared_by(2), shared_by(4)}) {
      FrontFactor dealt(analysis, options_on("host:" + std::to_string(sizes.devices)), sizes);
      dealt.factor(bad, 0);
      EXPECT_FALSE(dealt.info().ok);
      EXPECT_EQ(dealt.info().first_bad_pivot, expected.info().first_bad_pivot);
      dealt.factor(a, 0);
      EXPECT_TRUE(dealt.info().ok);
    }
  }
}

/// The jobs that a device has of a front that several make.
std::vector<FrontJob> jobs_of(const FrontLayout& layout, const FrontUnit& unit, int rank) {
  const std::int32_t* structure =
      layout.structure.data() + layout.blocks.extent({fronts::kStructure, unit.structure, 0}).row;
  const BranchProgram program = program_of(layout, unit);
  EXPECT_GT(program.shares, 0);
  const std::int32_t* shares = structure + program.shares;
  EXPECT_EQ(shares[0], 0);
  EXPECT_EQ(shares[unit.sharers], program.job_count);
  std::vector<FrontJob> jobs(at(shares[rank + 1] - shares[rank]));
  std::memcpy(jobs.data(), structure + program.jobs + shares[rank] * kFrontJob,
              jobs.size() * sizeof(FrontJob));
  return jobs;
}

/// One thread block each, of all devices that share a front, gets to the end: devices take turns,
/// and whoever has to wait for a tile of another one does.
TEST(SharedFront, JobsOfEachDeviceMeet) {
  std::int64_t tiles_made = 0;
  for (const SparseMatrix& a : matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    for (const int devices : {2, 3, 5}) {
      const FrontLayout layout = lay_out_fronts(analysis, a, shared_by(devices));
      for (const FrontUnit& unit : layout.units) {
        if (unit.sharers == 1) {
          EXPECT_EQ(program_of(layout, unit).shares, 0);
          continue;
        }
        ASSERT_EQ(unit.first, unit.last);
        ASSERT_EQ(unit.sharers, devices);
        const FrontTiles tiles{static_cast<std::int32_t>(analysis.width(unit.first)),
                               static_cast<std::int32_t>(analysis.row_count(unit.first))};
        std::vector<std::vector<FrontJob>> jobs;
        for (int rank = 0; rank < devices; ++rank) jobs.push_back(jobs_of(layout, unit, rank));
        std::vector<std::size_t> next(at(devices), 0);
        std::vector<std::int32_t> done(at(tiles.count()), 0);  // of the panel's tiles of each row
        std::int64_t made = 0;
        for (bool any = true; any;) {
          any = false;
          for (int rank = 0; rank < devices; ++rank) {
            if (next[at(rank)] == jobs[at(rank)].size()) continue;
            const FrontJob job = jobs[at(rank)][next[at(rank)]];
            ASSERT_EQ(owner_of(job.j, devices), rank);
            ASSERT_TRUE(job.front == 0 && job.j >= 0 && job.i >= job.j && job.i < tiles.count());
            const std::int32_t left = std::min(job.j, tiles.across());
            const bool in_panel = job.j < tiles.across();
            if (done[at(job.i)] < left || done[at(job.j)] < left) continue;
            if (in_panel && job.i != job.j && done[at(job.j)] <= job.j) continue;
            if (in_panel) {
              ASSERT_EQ(done[at(job.i)], job.j);
              ++done[at(job.i)];
            }
            ++next[at(rank)];
            ++made;
            any = true;
          }
        }
        ASSERT_EQ(made, std::int64_t{tiles.count()} * (tiles.count() + 1) / 2);
        tiles_made += made;
      }
    }
  }
  EXPECT_GT(tiles_made, 500);
}

/// Where devices do not hold it, ranges of the postorder are dealt to them in the same way.
TEST(DealtFactor, InRangesHasTheBitsOfOneDevice) {
  std::int64_t both = 0;  // plans in which each device has work
  for (const SparseMatrix& a : matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    FrontFactor whole(analysis, options_on("reference"), whole_tree());
    whole.factor(a, 0.5);
    whole.bring_home();
    for (const std::int64_t bytes : {200'000, 5'000}) {
      for (const int devices : {2, 3}) {
        const FrontSizes sizes = dealt_to(devices, bytes);
        const SplitAnalysis split = split_supernodes(analysis, bytes, Element::fp64);
        const auto layout = std::make_shared<const FrontLayout>(
            lay_out_fronts(split.analysis, a, sizes, Element::fp64, split.parts));
        std::set<int> used;
        for (const FrontUnit& unit : layout->units) used.insert(unit.device);
        both += std::ssize(used) == devices ? 1 : 0;
        const std::int64_t least = smallest_budget_bytes(front_schedule(layout, devices));
        const std::int64_t budget = bytes > 5'000 ? least : 2 * least;
        FrontFactor dealt(analysis, options_on("reference:" + std::to_string(devices), budget),
                          sizes);
        dealt.factor(a, 0);
        dealt.factor(a, 0.5);
        ASSERT_TRUE(dealt.info().ok);
        ASSERT_FALSE(dealt.resident());
        EXPECT_EQ(dealt.report().traffic, static_cast<Traffic>(dealt.report().planned_traffic));
        EXPECT_LE(dealt.report().peak_device_bytes, budget);
        EXPECT_EQ(dealt.info().log_determinant, whole.info().log_determinant);
        for (std::int32_t c = 0; c < a.rows; ++c)
          ASSERT_EQ(test::column_of<double>(dealt, c), test::column_of<double>(whole, c)) << c;
      }
    }
  }
  EXPECT_GT(both, 20);
}

TEST(DealtFactor, OfOtherUnitsIsRefused) {
  const SparseMatrix a = test::with_values(test::grid(4, 4, 1), 8);
  EXPECT_THROW((void)lay_out_fronts(test::analysis_by_amd(a), a, {.program = 1, .devices = 2}),
               Error);
  EXPECT_THROW((void)lay_out_fronts(test::analysis_by_amd(a), a, dealt_to(0)), Error);
  FrontSizes planned = dealt_to(2, 200'000);
  planned.shares = 1;
  EXPECT_THROW((void)lay_out_fronts(test::analysis_by_amd(a), a, planned), Error);
}

/// Nothing at all, and one row, on several devices.
TEST(DealtFactor, OfNothingAndOne) {
  SparseMatrix nothing;
  nothing.start = {0};
  FrontFactor none(test::analysis_by_amd(nothing), options_on("host:2"), dealt_to(2));
  none.factor(nothing, 0);
  EXPECT_TRUE(none.info().ok);
  none.solve_there({nullptr, 0, 1, 1}, true, true);
  SparseMatrix one;
  one.rows = one.cols = 1;
  one.start = {0, 1};
  one.column = {0};
  one.value = {4};
  FrontFactor single(test::analysis_by_amd(one), options_on("host:2"), dealt_to(2));
  single.factor(one, 0);
  double x = 8;
  single.solve_there({&x, 1, 1, 1}, true, true);
  EXPECT_EQ(x, 2);
}

/// A factor that several devices made is saved and opened, and solves.
TEST(DealtFactor, IsOpenedFromItsBytes) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  for (const FrontSizes& sizes : {dealt_to(3), shared_by(3)}) {
    FrontFactor made(test::analysis_by_amd(a), options_on("host:3"), sizes);
    made.factor(a, 0);
    made.bring_home();
    FrontFactor opened(test::analysis_by_amd(a), options_on("host:1"), sizes);
    opened.reserve();
    ASSERT_EQ(opened.bytes().size(), made.bytes().size());
    std::copy(made.bytes().begin(), made.bytes().end(), opened.bytes().begin());
    opened.adopt(made.info(), 0);
    std::vector<double> x(at(a.rows), 1.0);
    std::vector<double> y = x;
    sweep_forward<double>(made, {x.data(), a.rows, 1, a.rows});
    sweep_forward<double>(opened, {y.data(), a.rows, 1, a.rows});
    EXPECT_EQ(x, y);
  }
}

/// Each of the devices that share fronts has all of those: where there is no room for that, they
/// share none, and where there is none for that either, nothing stays. Both kinds can be planned.
TEST(SharedFront, IsOnDevicesThatHaveRoom) {
  const SparseMatrix a = test::with_values(test::grid(17, 16, 15), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  const auto layout_in = [&](std::int64_t bytes, FrontSizes& sizes) {
    sizes = {.program = 1};
    sizes.free_handover = true;
    return resident_layout(analysis, a, sizes, false, Element::fp64, Machine::emulated(2, bytes),
                           true);
  };
  const auto bytes_of = [&](const std::shared_ptr<const FrontLayout>& layout) {
    const std::vector<std::int64_t> bytes = ResidentRun::bytes_of(front_schedule(layout, 2));
    return *std::max_element(bytes.begin(), bytes.end()) + ResidentSweeps::bytes_of(analysis);
  };
  FrontSizes sizes;
  const auto shared = layout_in(1 << 30, sizes);
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(sizes.shares, 1);
  EXPECT_GT(shared_units(*shared), 0);
  ASSERT_NE(layout_in(bytes_of(shared), sizes), nullptr);
  EXPECT_EQ(sizes.shares, 1);
  const auto apart = layout_in(bytes_of(shared) - 1, sizes);
  ASSERT_NE(apart, nullptr);
  EXPECT_EQ(sizes.shares, 0);
  EXPECT_EQ(shared_units(*apart), 0);
  EXPECT_EQ(layout_in(bytes_of(apart) - 1, sizes), nullptr);
  for (const auto& layout : {shared, apart}) {
    const PlannedRun planned = plan_fronts(analysis, layout, Machine::emulated(2, 1 << 30), {});
    EXPECT_GT(planned.predicted_seconds.value_or(0), 0);
  }
}

bool has_two_gpus() { return cuda_backend() != nullptr && cuda_backend()->devices().size() >= 2; }
bool is_serial() { return std::getenv("CUDA_LAUNCH_BLOCKING") != nullptr; }

/// Where there are several GPUs: the same bits as on one, in core, with fronts that they make
/// together, and in ranges; solutions, too.
TEST(DealtFactorOnGpus, HasTheBitsOfOneGpu) {
  if (!has_two_gpus() || is_serial()) GTEST_SKIP() << "fewer than two GPUs that work at once";
  AnalysisOptions options;
  options.ordering = SparseOrdering::metis;
  for (const SparseMatrix& a : {test::with_values(test::grid(30, 29, 28), 7),
                                test::with_values(test::grid(9, 9, 8, true, 3), 8)}) {
    const SparseAnalysis analysis = analyze(a, options);
    FrontFactor whole(analysis, options_on("cuda:0", std::int64_t{2} << 30), whole_tree());
    whole.factor(a, 0);
    whole.bring_home();
    constexpr std::int64_t kColumns = 19;
    std::vector<double> b(at(a.rows * kColumns));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_uniform(3, i) - 0.5;
    std::vector<double> wanted = b;
    whole.solve_there({wanted.data(), a.rows, kColumns, a.rows}, true, true);
    for (const FrontSizes& sizes :
         {dealt_to(2), shared_by(2), dealt_to(2, std::int64_t{2} << 20)}) {
      FrontFactor dealt(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), sizes);
      for (int run = 0; run < (sizes.shares != 0 ? 20 : 3); ++run) {
        dealt.factor(a, 0);
        ASSERT_TRUE(dealt.info().ok);
        ASSERT_EQ(dealt.resident(), sizes.range_bytes == kRangesThatStay);
        ASSERT_EQ(shared_units(dealt.layout()) > 1, sizes.shares == 1);
        EXPECT_EQ(dealt.info().log_determinant, whole.info().log_determinant);
        dealt.bring_home();
        for (std::int32_t c = 0; c < a.rows; ++c)
          ASSERT_EQ(test::column_of<double>(dealt, c), test::column_of<double>(whole, c)) << c;
        if (!dealt.resident()) continue;
        std::vector<double> x = b;
        dealt.solve_there({x.data(), a.rows, kColumns, a.rows}, true, true);
        ASSERT_EQ(x, wanted);
      }
    }
  }
}

TEST(DealtFactorOnGpus, OfFloatsHasTheBitsOfOneGpu) {
  if (!has_two_gpus() || is_serial()) GTEST_SKIP() << "fewer than two GPUs that work at once";
  const SparseMatrix a = test::with_values(test::grid(21, 20, 19), 7);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  SparseCholeskyOptions options = options_on("cuda:0", std::int64_t{2} << 30);
  options.precision = Element::fp32;
  FrontFactor whole(analysis, options, whole_tree());
  whole.factor(a, 0);
  whole.bring_home();
  options.run.devices = "cuda:0,1";
  FrontFactor shared(analysis, options, shared_by(2));
  shared.factor(a, 0);
  ASSERT_GT(shared_units(shared.layout()), 0);
  shared.bring_home();
  for (std::int32_t c = 0; c < a.rows; ++c)
    ASSERT_EQ(test::column_of<float>(shared, c), test::column_of<float>(whole, c)) << c;
  EXPECT_EQ(shared.info().log_determinant, whole.info().log_determinant);
}

/// The pivot that fails may be in a column of either GPU.
TEST(DealtFactorOnGpus, NamesTheFirstBadPivotOfAFrontThatTheyShare) {
  if (!has_two_gpus() || is_serial()) GTEST_SKIP() << "fewer than two GPUs that work at once";
  const SparseMatrix a = test::with_values(test::grid(21, 20, 19), 5);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  FrontFactor shared(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), shared_by(2));
  const auto columns = std::ssize(analysis.order);
  for (const std::int64_t before : {1, 2, 70, 130, 200, 333, 600}) {
    const SparseMatrix bad = test::with_bad_row(a, analysis.order[at(columns - before)]);
    const SparseCholesky expected(analysis, bad, options_on("reference"));
    shared.factor(bad, 0);
    EXPECT_FALSE(shared.info().ok);
    EXPECT_EQ(shared.info().first_bad_pivot, expected.info().first_bad_pivot);
    shared.factor(a, 0);
    EXPECT_TRUE(shared.info().ok);
  }
}

/// Kernels that run one after another do not meet: that is told, and nothing waits for ever.
TEST(DealtFactorOnGpus, WhatDoesNotMeetIsTold) {
  if (!has_two_gpus() || !is_serial())
    GTEST_SKIP() << "needs two GPUs and CUDA_LAUNCH_BLOCKING, and half a minute";
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 5);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  FrontFactor shared(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), shared_by(2));
  EXPECT_THROW(shared.factor(a, 0), Error);
  EXPECT_FALSE(shared.info().ok);
  FrontFactor dealt(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), dealt_to(2));
  dealt.factor(a, 0);
  EXPECT_TRUE(dealt.info().ok);
}

}  // namespace
}  // namespace strata
