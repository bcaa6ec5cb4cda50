// Factors that several devices hold between them: subtrees that each factors alone, and what meets
// above them.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/fronts/front_program.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "sparse/fronts/subtree_dealing.hpp"
#include "strata/error.hpp"
#include "tests/sparse/dealt_factors.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_columns.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/front_sizes.hpp"
#include "tests/sparse/options.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::dealt_matrices;
using test::dealt_to;
using test::options_on;
using test::shared_by;
using test::shared_units;
using test::whole_tree;

/// A dealt subtree is one device's, and all supernodes above one in the top are in the top.
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
  for (const SparseMatrix& a : dealt_matrices()) {
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
  EXPECT_THROW((void)deal_subtrees(test::analysis_by_amd(dealt_matrices().front()), 0), Error);
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
  for (const SparseMatrix& a : dealt_matrices()) {
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
      if (test::kSanitized && devices != (sizes.shares == 0 ? 2 : 3)) continue;
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
  EXPECT_GT(units, test::kSanitized ? 80 : 400);
  EXPECT_GT(shared, test::kSanitized ? 10 : 50);
  EXPECT_GT(copied, test::kSanitized ? 20000 : 100000);
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

/// Where devices do not hold it, ranges of the postorder are dealt to them in the same way.
TEST(DealtFactor, InRangesHasTheBitsOfOneDevice) {
  std::int64_t both = 0;  // plans in which each device has work
  for (const SparseMatrix& a : dealt_matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    FrontFactor whole(analysis, options_on("reference"), whole_tree());
    whole.factor(a, 0.5);
    whole.bring_home();
    for (const std::int64_t bytes : {200'000, 5'000}) {
      for (const int devices : {2, 3}) {
        if (test::kSanitized && devices != (bytes > 5'000 ? 2 : 3)) continue;
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
  EXPECT_GT(both, test::kSanitized ? 8 : 20);
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

}  // namespace
}  // namespace strata
