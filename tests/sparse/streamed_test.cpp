// Solves with a factor at home that streams through a device: against the host's, against those of
// a factor that stays, and what their plans move.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/backend/backend.hpp"
#include "schedule/plan_layout.hpp"
#include "session/policy.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_homes.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/front_sizes.hpp"
#include "tests/sparse/options.hpp"
#include "tests/sparse/sweeps.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::distance;
using test::in_ranges;
using test::kSweeps;
using test::options_on;
using test::right_hand_sides;
using test::Sweep;
using test::view_of;
using test::whole_tree;

/// The host's, with rows as solve_streamed() has them.
template <class T>
std::vector<double> by_the_host(const FrontFactor& factor, const std::vector<double>& b,
                                std::int64_t n, Sweep sweep) {
  const std::vector<std::int32_t>& order = factor.analysis().order;
  const std::int64_t columns = std::ssize(b) / n;
  std::vector<T> x(b.size());
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t k = 0; k < n; ++k)
      x[at(k + c * n)] = static_cast<T>(b[at((sweep.forward ? order[at(k)] : k) + c * n)]);
  if (sweep.forward) sweep_forward<T>(factor, {x.data(), n, columns, n});
  if (sweep.backward) sweep_backward<T>(factor, {x.data(), n, columns, n});
  std::vector<double> found(b.size());
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t k = 0; k < n; ++k)
      found[at((sweep.backward ? order[at(k)] : k) + c * n)] = x[at(k + c * n)];
  return found;
}

std::int64_t factor_bytes(const FrontFactor& factor) {
  return factor.layout().blocks.total_bytes(fronts::kPanels);
}

/// What a pass brings to the device at most, and, if all ranges come but once, at least.
std::int64_t bytes_of_ranges(const FrontFactor& factor) {
  std::int64_t bytes = 0;
  for (const auto& range : sweep_ranges(factor.analysis(), factor.layout()).ranges) {
    bytes += factor.layout().blocks.bytes({fronts::kPanels, range.panel, 0});
    bytes += factor.layout().blocks.bytes({fronts::kStructure, range.structure, 0});
  }
  return bytes;
}

/// Whether a budget suffices for kSweepColumns right-hand sides at once.
bool holds_many(const FrontFactor& factor, Sweep sweep, std::int64_t budget) {
  const auto ranges =
      std::make_shared<const SweepRanges>(sweep_ranges(factor.analysis(), factor.layout()));
  const SweepPass pass{{16}, 16, sweep.forward, sweep.backward};
  return smallest_budget_bytes(sweep_schedule(ranges, factor.layout(), pass, 1, budget)) <= budget;
}

void expect_as_planned(const FrontFactor& factor, std::int64_t budget) {
  const RunReport& report = factor.streamed_report();
  EXPECT_EQ(report.traffic, static_cast<Traffic>(report.planned_traffic));
  EXPECT_LE(report.peak_device_bytes, budget);
  EXPECT_GT(report.traffic.host_to_device_bytes, 0);
}

constexpr int kFewer = test::kSanitized ? 4 : 1;  // solves

/// The factor of a grid in all of its memory, in a half, a quarter and a tenth.
TEST(StreamedSolves, AreTheHostsInAnyBudget) {
  const SparseMatrix a = test::with_values(test::grid(10, 10, 110), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  const std::int64_t n = a.rows;
  FrontFactor whole(analysis, options_on("host:1"), whole_tree());
  whole.factor(a, 0.5);
  std::int64_t parts = 0;
  std::int64_t passes = 0;  // of solves that take more than one
  test::Thinned thinned(5);
  for (const double share : {1.0, 0.5, 0.25, 0.1}) {
    if (test::kSanitized && share != 1 && share != 0.1) continue;
    const auto budget = static_cast<std::int64_t>(share * static_cast<double>(factor_bytes(whole)));
    FrontFactor factor(analysis, options_on("host:1", budget), in_ranges(budget / 6));
    factor.factor(a, 0.5);
    ASSERT_TRUE(factor.info().ok && factor.layout().ranges && !factor.resident()) << share;
    for (const FrontUnit& unit : factor.layout().units) parts += unit.first_tile > 0 ? 1 : 0;
    const std::int64_t once = bytes_of_ranges(factor);
    const auto ranges =
        std::make_shared<const SweepRanges>(sweep_ranges(factor.analysis(), factor.layout()));
    for (const std::int64_t columns : {1, 3, 40}) {
      if (test::kSanitized && columns == 1) continue;
      const std::vector<double> b = right_hand_sides(n, columns);
      for (const Sweep sweep : kSweeps) {
        if (thinned.skips()) continue;
        std::vector<double> x = b;
        ASSERT_TRUE(factor.solve_streamed(view_of(x, n), sweep.forward, sweep.backward));
        EXPECT_LT(distance(x, by_the_host<double>(factor, b, n, sweep)), 1e-12) << share;
        expect_as_planned(factor, budget);
        // Each pass brings L once for each direction; what is on the device when the way back
        // begins does not come again.
        const std::int64_t moved = factor.streamed_report().traffic.host_to_device_bytes;
        const bool wide = columns == 1 || holds_many(factor, sweep, budget);
        const std::int64_t of_b = 8 * n * columns;
        const std::int64_t order = 4 * n;
        SweepPass all{{1}, columns, sweep.forward, sweep.backward};
        if (columns > 1) all.widths.assign(at((columns + 15) / 16), 16);
        const bool one_pass =
            wide && (columns <= 16 || comfortable_bytes(*ranges, all, Element::fp64) <= budget);
        passes += one_pass ? 0 : 1;
        if (sweep.forward && sweep.backward) {
          EXPECT_LE(moved - of_b, (one_pass ? 2 : 2 * columns) * (once + order));
          if (one_pass && share >= 0.5 && columns <= 16) {
            EXPECT_LT(moved - of_b, 2 * (once + order) - budget / 8);
          }
        } else {
          EXPECT_EQ((moved - of_b) % (once + order), 0);
          EXPECT_GT(moved, of_b);
          if (wide) {
            EXPECT_EQ(moved - of_b == once + order, one_pass) << share << ", " << columns;
          }
        }
        if (columns != 3) continue;
        std::vector<double> again = b;
        ASSERT_TRUE(factor.solve_streamed(view_of(again, n), sweep.forward, sweep.backward));
        EXPECT_EQ(again, x);
      }
    }
  }
  EXPECT_GT(parts, 20) << "columns of updates of fronts that were cut";
  EXPECT_GT(passes, test::kSanitized ? 0 : 3);
}

/// Ranges of whatever size, down to single supernodes and parts of them, in their smallest budget
/// and in others: the bits of a factor that stays.
TEST(StreamedSolves, HaveTheBitsOfAFactorThatStays) {
  std::int64_t same = 0;
  std::int64_t split_ones = 0;
  std::int64_t one_by_one = 0;
  std::int64_t streamed = 0;
  for (const SparseMatrix& a : test::front_matrices(500)) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    const std::int64_t n = a.rows;
    FrontFactor whole(analysis, options_on("reference"), whole_tree());
    whole.factor(a, 0.5);
    for (const std::int64_t bytes : {200'000, 2'000, 1}) {
      if (test::kSanitized && bytes != 2'000) continue;
      const SplitAnalysis split = split_supernodes(analysis, bytes, Element::fp64);
      const bool is_split = split.analysis.supernodes() != analysis.supernodes();
      const auto layout = std::make_shared<const FrontLayout>(
          lay_out_fronts(split.analysis, a, in_ranges(bytes), Element::fp64, split.parts));
      const std::int64_t least = smallest_budget_bytes(front_schedule(layout, 1));
      for (const std::int64_t budget : {least, bytes == 1 ? 3 * least : std::int64_t{1} << 28}) {
        FrontFactor factor(analysis, options_on("reference", budget), in_ranges(bytes));
        factor.factor(a, 0.5);
        ASSERT_EQ(factor.sizes().range_bytes, bytes);
        for (const std::int64_t columns : {1, 17}) {
          const std::vector<double> b = right_hand_sides(n, columns);
          for (const Sweep sweep : kSweeps) {
            std::vector<double> x = b;
            if (!factor.solve_streamed(view_of(x, n), sweep.forward, sweep.backward)) {
              EXPECT_EQ(x, b);
              continue;
            }
            ++streamed;
            expect_as_planned(factor, budget);
            std::vector<double> wanted = b;
            whole.solve_there(view_of(wanted, n), sweep.forward, sweep.backward);
            // A small budget takes right-hand sides one by one, whose sums are others.
            const bool many = columns == 1 || holds_many(factor, sweep, budget);
            if (!many) {
              EXPECT_LT(distance(x, wanted), 1e-12);
              ++one_by_one;
            } else {
              ASSERT_EQ(x, wanted) << bytes << " in " << budget;
              ++(is_split ? split_ones : same);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(same, 500 / kFewer);
  EXPECT_GT(split_ones, test::kSanitized ? 8 : 80);
  if (!test::kSanitized) {
    EXPECT_GT(one_by_one, 0);
  }
  EXPECT_GT(streamed, 700 / kFewer);
}

TEST(StreamedSolves, OfFloatsToo) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  for (const std::int64_t bytes : {200'000, 30'000}) {
    FrontSizes sizes = in_ranges(bytes);
    sizes.range_values = bytes == 30'000;
    FrontFactor factor(analysis, options_on("host:1", 1 << 21, Element::fp32), sizes);
    factor.factor(a, 0.5);
    ASSERT_TRUE(factor.layout().ranges);
    for (const std::int64_t columns : {1, 19}) {
      const std::vector<double> b = right_hand_sides(a.rows, columns);
      const std::vector<double> large = right_hand_sides(a.rows, columns, 0x1p200);
      for (const Sweep sweep : kSweeps) {
        std::vector<double> x = b;
        ASSERT_TRUE(factor.solve_streamed(view_of(x, a.rows), sweep.forward, sweep.backward));
        EXPECT_LT(distance(x, by_the_host<float>(factor, b, a.rows, sweep)), 1e-5);
        expect_as_planned(factor, 1 << 21);
        // Beyond the exponents of floats: each column goes with a power of two of its own.
        std::vector<double> y = large;
        ASSERT_TRUE(factor.solve_streamed(view_of(y, a.rows), sweep.forward, sweep.backward));
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 0x1p200 * x[i]);
      }
    }
  }
}

/// Ranges that were dealt to several devices come through the first one.
TEST(StreamedSolves, OfSeveralDevices) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  FrontSizes sizes = in_ranges(100'000);
  sizes.devices = 3;
  sizes.free_handover = true;
  FrontFactor factor(analysis, options_on("host:3", 1 << 21), sizes);
  factor.factor(a, 0);
  ASSERT_TRUE(factor.layout().ranges);
  const std::vector<double> b = right_hand_sides(a.rows, 5);
  std::vector<double> x = b;
  ASSERT_TRUE(factor.solve_streamed(view_of(x, a.rows), true, true));
  EXPECT_LT(distance(x, by_the_host<double>(factor, b, a.rows, kSweeps[0])), 1e-12);
  expect_as_planned(factor, 1 << 21);
  factor.factor(a, 0.5);  // with what the solve has left on the devices
  ASSERT_TRUE(factor.info().ok);
  x = b;
  ASSERT_TRUE(factor.solve_streamed(view_of(x, a.rows), true, true));
  EXPECT_LT(distance(x, by_the_host<double>(factor, b, a.rows, kSweeps[0])), 1e-12);
}

/// Another pattern, a factorization that fails, and one that was made elsewhere.
TEST(StreamedSolves, FollowTheFactor) {
  const SparseMatrix a = test::with_values(test::grid(9, 8, 7), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  FrontFactor factor(analysis, options_on("host:1", 1 << 20), in_ranges(50'000));
  std::vector<double> x(at(a.rows), 1.0);
  EXPECT_FALSE(factor.solve_streamed(view_of(x, a.rows), true, true)) << "nothing is factored";
  for (const double shift : {0.0, 2.0}) {
    factor.factor(a, shift);
    const std::vector<double> b = right_hand_sides(a.rows, 2);
    x = b;
    ASSERT_TRUE(factor.solve_streamed(view_of(x, a.rows), true, true));
    EXPECT_LT(distance(x, by_the_host<double>(factor, b, a.rows, kSweeps[0])), 1e-12);
  }
  FrontFactor opened(factor.analysis(), options_on("host:1"), factor.sizes());
  opened.reserve();
  std::copy(factor.bytes().begin(), factor.bytes().end(), opened.bytes().begin());
  opened.adopt(factor.info(), 0);
  EXPECT_FALSE(opened.solve_streamed(view_of(x, a.rows), true, true)) << "there is no GPU";
}

/// A device that does not hold a range beside a right-hand side leaves solves to the host.
TEST(StreamedSolves, ATooSmallDeviceDoesNothing) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  FrontFactor factor(test::analysis_by_amd(a), options_on("host:1", 1 << 22), in_ranges(200'000));
  factor.factor(a, 0);
  const FrontLayout& layout = factor.layout();
  const auto panels = std::make_shared<FamilyMemory>(layout.blocks, fronts::kPanels,
                                                     [&](const BlockExtent&, std::byte*) {});
  std::memcpy(panels->data(), factor.bytes().data(), factor.bytes().size());
  for (std::int64_t k = 0; k < layout.blocks.count(fronts::kPanels); ++k) panels->mark_written(k);
  const auto structure = listed_memory(layout.blocks, fronts::kStructure, layout.structure);
  const std::vector<double> b = right_hand_sides(a.rows, 40);
  const std::vector<double> wanted = by_the_host<double>(factor, b, a.rows, kSweeps[0]);
  WorkCrew crew(0);
  std::int64_t refused = 0;
  std::int64_t solved = 0;
  for (std::int64_t budget = 1 << 16; budget < 1 << 22;
       budget += budget / (test::kSanitized ? 2 : 8)) {
    Session session(options_on("host:1", budget).run);
    StreamedSweeps sweeps(factor.analysis(), layout, panels, structure, session, crew);
    std::vector<double> x = b;
    if (!sweeps.solve(view_of(x, a.rows), true, true)) {
      EXPECT_EQ(x, b);
      EXPECT_EQ(solved, 0) << "a larger budget does not suffice: " << budget;
      ++refused;
      continue;
    }
    ++solved;
    EXPECT_LT(distance(x, wanted), 1e-12);
    EXPECT_EQ(sweeps.report().traffic, static_cast<Traffic>(sweeps.report().planned_traffic));
    EXPECT_LE(sweeps.report().peak_device_bytes, budget);
  }
  EXPECT_GT(refused, test::kSanitized ? 1 : 5);
  EXPECT_GT(solved, test::kSanitized ? 3 : 10);
}

/// The host is faster only where L comes many times for few columns.
TEST(StreamedSolves, AreTheHostsWhereThatIsFaster) {
  EXPECT_TRUE(comes_sooner(1, 1, 55e9, 16));
  EXPECT_TRUE(comes_sooner(1, 1, 12e9, 64));
  EXPECT_TRUE(comes_sooner(6, 16, 55e9, 16));
  EXPECT_FALSE(comes_sooner(7, 16, 55e9, 16));
  EXPECT_FALSE(comes_sooner(7, 256, 55e9, 16));
  EXPECT_TRUE(comes_sooner(7, 257, 55e9, 16));
  EXPECT_FALSE(comes_sooner(40, 40, 55e9, 2));
  EXPECT_FALSE(comes_sooner(2, 1000, 4e9, 1000));
}

/// With room for it, the next range is on its way while one is swept, forward and backward: no load
/// of L waits for the sweep before.
TEST(StreamedSolves, RangesComeWhileOthersAreSwept) {
  const SparseMatrix a = test::with_values(test::grid(21, 20, 19), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  const std::int64_t bytes = 400'000;
  const SplitAnalysis split = split_supernodes(analysis, bytes, Element::fp64);
  const FrontLayout layout =
      lay_out_fronts(split.analysis, a, in_ranges(bytes), Element::fp64, split.parts);
  const auto ranges = std::make_shared<const SweepRanges>(sweep_ranges(split.analysis, layout));
  for (const Sweep sweep : kSweeps) {
    for (const std::int64_t more : {1, 3}) {
      const SweepPass pass{{16}, 16, sweep.forward, sweep.backward};
      const std::int64_t budget =
          comfortable_bytes(*ranges, pass, Element::fp64) + more * ranges->most_bytes;
      const auto schedule =
          std::make_shared<const Schedule>(sweep_schedule(ranges, layout, pass, 1, budget));
      const Plan plan(schedule, Machine::emulated(1, budget), options_of(Policy::opt));
      PlanReader reader(plan);
      PlanWindow window;
      std::int64_t loads = 0;
      std::int64_t waiting = 0;
      std::uint64_t sweeps = 0;
      while (reader.next(window)) {
        for (const Step& step : window.steps) {
          if (step.kind == StepKind::compute) ++sweeps;
          const int family = window.block_of(step).family();
          if (step.kind != StepKind::load ||
              (family != sweeps::kPanels && family != sweeps::kPanelsAgain))
            continue;
          ++loads;
          for (const Wait& wait : window.waits_of(step))
            waiting += sweeps > 0 && wait.sequence == sweeps ? 1 : 0;
        }
      }
      EXPECT_GT(loads, 20);
      EXPECT_LE(waiting, loads / 20) << sweep.forward << sweep.backward << more;
    }
  }
}

/// Where a GPU answers: the bits of a factor that stays, and a solution of the same system, in
/// doubles and floats.
TEST(StreamedSolvesOnAGpu, AreThoseOfAFactorThatStays) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  std::vector<SparseMatrix> list = test::front_matrices(600);
  list.push_back(test::with_values(test::grid(30, 29, 28), 77));
  std::int64_t same = 0;
  std::int64_t split_ones = 0;
  for (const SparseMatrix& a : list) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    const std::int64_t n = a.rows;
    FrontFactor whole(analysis, options_on("cuda:0", std::int64_t{2} << 30), whole_tree());
    whole.factor(a, 0);
    for (const std::int64_t bytes : {4'000'000, 200'000, 20'000}) {
      if (bytes < 200'000 && n > 5000) continue;
      const SplitAnalysis split = split_supernodes(analysis, bytes, Element::fp64);
      const bool is_split = split.analysis.supernodes() != analysis.supernodes();
      const std::int64_t budget = std::int64_t{64} << 20;
      FrontFactor factor(analysis, options_on("cuda:0", budget), in_ranges(bytes));
      factor.factor(a, 0);
      ASSERT_TRUE(factor.layout().ranges && !factor.resident());
      for (const std::int64_t columns : {1, 3, 16, 40}) {
        const std::vector<double> b = right_hand_sides(n, columns);
        for (const Sweep sweep : kSweeps) {
          std::vector<double> x = b;
          std::vector<double> wanted = b;
          ASSERT_TRUE(factor.solve_streamed(view_of(x, n), sweep.forward, sweep.backward));
          whole.solve_there(view_of(wanted, n), sweep.forward, sweep.backward);
          expect_as_planned(factor, budget);
          EXPECT_LT(distance(x, by_the_host<double>(factor, b, n, sweep)), 1e-11);
          ASSERT_EQ(x, wanted) << n << " rows, " << columns << " columns, " << bytes;
          ++(is_split ? split_ones : same);
        }
      }
    }
    FrontFactor floats(analysis, options_on("cuda:0", std::int64_t{64} << 20, Element::fp32),
                       in_ranges(200'000));
    floats.factor(a, 0);
    for (const std::int64_t columns : {1, 17}) {
      const std::vector<double> b = right_hand_sides(n, columns);
      std::vector<double> x = b;
      ASSERT_TRUE(floats.solve_streamed(view_of(x, n), true, true));
      EXPECT_LT(distance(x, by_the_host<float>(floats, b, n, kSweeps[0])), 1e-4);
    }
  }
  EXPECT_GT(same, 500 / kFewer);
  EXPECT_GT(split_ones, 50);
}

}  // namespace
}  // namespace strata
