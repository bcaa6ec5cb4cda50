// Solves by devices with a factor that was made elsewhere and lies in host memory: against those of
// the factor that stays where it was made, in budgets that hold all of it, some, and too little.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "kernels/backend/backend.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/front_sizes.hpp"
#include "tests/sparse/options.hpp"
#include "tests/sparse/sweeps.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::distance;
using test::kSweeps;
using test::kWhole;
using test::options_on;
using test::right_hand_sides;
using test::Sweep;
using test::view_of;

FrontSizes sizes_of(std::int64_t range_bytes, std::int64_t devices = 1) {
  return {.panel_order = 4096,
          .branch_entries = kWhole,
          .program = 1,
          .range_bytes = range_bytes,
          .devices = devices,
          .free_handover = devices > 1};
}

/// L of a factor, as a file brings it.
std::shared_ptr<FamilyMemory> panels_of(const FrontFactor& factor) {
  factor.bring_home();
  const BlockTable& blocks = factor.layout().blocks;
  auto panels = std::make_shared<FamilyMemory>(blocks, fronts::kPanels);
  std::memcpy(panels->data(), factor.bytes().data(), factor.bytes().size());
  for (std::int64_t k = 0; k < blocks.count(fronts::kPanels); ++k) panels->mark_written(k);
  return panels;
}

/// One that knows only what a file has: no entries of A.
std::shared_ptr<const FrontLayout> layout_of(const FrontFactor& factor) {
  SparseMatrix nothing;
  nothing.rows = nothing.cols = std::ssize(factor.analysis().order);
  nothing.start.assign(at(nothing.rows) + 1, 0);
  return std::make_shared<const FrontLayout>(lay_out_fronts(
      factor.analysis(), nothing, factor.sizes(), factor.element(), factor.layout().parts));
}

/// Whether L stays, streams, or is left to the host depends on the budget, and the bits of what
/// stays on nothing.
TEST(OpenedSweeps, SolveAsWhereTheFactorWasMade) {
  WorkCrew crew(0);
  int stayed = 0;
  int streamed = 0;
  int refused = 0;
  for (const SparseMatrix& a : {test::with_values(test::grid(13, 12, 11), 8),
                                test::with_values(test::grid(40, 30, 1), 3)}) {
    const std::int64_t n = a.rows;
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    for (const FrontSizes& sizes : {sizes_of(0), sizes_of(200'000), sizes_of(kRangesThatStay, 3)}) {
      const std::string devices = sizes.devices > 1 ? "host:3" : "host:1";
      FrontFactor whole(analysis, options_on(devices, std::int64_t{1} << 28), sizes);
      whole.factor(a, 0.25);
      ASSERT_TRUE(whole.info().ok);
      const auto layout = layout_of(whole);
      const auto panels = panels_of(whole);
      for (std::int64_t budget = std::int64_t{1} << 14; budget <= std::int64_t{1} << 28;
           budget *= test::kSanitized ? 16 : 4) {
        OpenedSweeps opened(whole.analysis(), layout, panels, sizes,
                            options_on(devices, budget).run, crew);
        for (const std::int64_t columns : {1, 18}) {
          const std::vector<double> b = right_hand_sides(n, columns);
          for (const Sweep sweep : kSweeps) {
            std::vector<double> x = b;
            if (!opened.solve(view_of(x, n), sweep.forward, sweep.backward)) {
              ASSERT_FALSE(opened.resident());
              ASSERT_EQ(x, b);
              ++refused;
              continue;
            }
            std::vector<double> wanted = b;
            if (whole.solves_there())
              whole.solve_there(view_of(wanted, n), sweep.forward, sweep.backward);
            else
              ASSERT_TRUE(whole.solve_streamed(view_of(wanted, n), sweep.forward, sweep.backward));
            ASSERT_LT(distance(x, wanted), 1e-12);
            // Sixteen right-hand sides at once have other sums than one.
            if (columns == 1 || (opened.resident() && whole.solves_there())) {
              ASSERT_EQ(x, wanted) << n << ", " << columns << ", " << budget;
            }
            ++(opened.resident() ? stayed : streamed);
            EXPECT_EQ(opened.report().traffic,
                      static_cast<Traffic>(opened.report().planned_traffic));
            EXPECT_GT(opened.report().traffic.total(), 0);
          }
        }
      }
    }
  }
  EXPECT_GT(stayed, test::kSanitized ? 20 : 50);
  EXPECT_GT(streamed, test::kSanitized ? 8 : 20);
  EXPECT_GT(refused, test::kSanitized ? 8 : 20);
}

/// Floats stream, where they stayed too, since sweeps of what stays are in doubles.
TEST(OpenedSweeps, OfFloatsStream) {
  WorkCrew crew(0);
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const std::int64_t n = a.rows;
  const std::int64_t budget = std::int64_t{1} << 28;
  const auto made = [&](Element element) {
    auto factor = std::make_unique<FrontFactor>(test::analysis_by_amd(a),
                                                options_on("host:1", budget, element), sizes_of(0));
    factor->factor(a, 0);
    EXPECT_TRUE(factor->resident());
    return factor;
  };
  const auto floats = made(Element::fp32);
  OpenedSweeps opened(floats->analysis(), layout_of(*floats), panels_of(*floats), floats->sizes(),
                      options_on("host:1", budget).run, crew);
  EXPECT_FALSE(opened.resident());
  const std::vector<double> b = right_hand_sides(n, 3);
  std::vector<double> x = b;
  std::vector<double> wanted = b;
  ASSERT_TRUE(opened.solve(view_of(x, n), true, true));
  made(Element::fp64)->solve_there(view_of(wanted, n), true, true);
  EXPECT_LT(distance(x, wanted), 1e-4);
  EXPECT_GT(distance(x, wanted), 1e-12);
}

/// CPUs solve with the factor as it lies there.
TEST(OpenedSweeps, AreForGpus) {
  EXPECT_EQ(gpus_worth_it(options_on("host:1", 0).run, kWhole), "");
  EXPECT_EQ(gpus_worth_it(options_on("host:2+reference:1", 0).run, kWhole), "");
  EXPECT_EQ(gpus_worth_it(options_on("auto", 0).run, 1), "");
}

TEST(OpenedSweepsOnAGpu, OfAFileAreThoseOfTheFactorThatWasSaved) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  EXPECT_EQ(gpus_worth_it(options_on("cuda:0", 0).run, 1), "cuda:0");
  EXPECT_EQ(gpus_worth_it(options_on("host:1+cuda:0", 0).run, 1), "cuda:0");
  const std::string directory =
      (std::filesystem::temp_directory_path() / "strata_opened_sweeps").string();
  const SparseMatrix a = test::with_values(test::grid(30, 29, 28), 77);
  const std::int64_t n = a.rows;
  for (const std::int64_t budget : {std::int64_t{0}, std::int64_t{40} << 20}) {
    const SparseCholesky made(a, options_on("cuda:0", budget));
    made.save(directory);
    for (const std::int64_t there : {std::int64_t{0}, std::int64_t{48} << 20}) {
      const SparseCholesky opened = SparseCholesky::open(directory, options_on("cuda:0", there));
      for (const std::int64_t columns : {1, 16, 19}) {
        std::vector<double> x = right_hand_sides(n, columns);
        std::vector<double> y = x;
        made.solve(view_of(x, n));
        opened.solve(view_of(y, n));
        EXPECT_LT(distance(x, y), 1e-12);
        if (there == 0 && budget == 0) {
          EXPECT_EQ(x, y);
        }
      }
    }
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace strata
