// What is predicted of a factorization that stays on its devices: what the run says too, and that
// of a run whose constants are there.

#include <gtest/gtest.h>

#include "sparse/fronts/front_factor.hpp"
#include "strata/detect.hpp"
#include "tests/sparse/dealt_factors.hpp"
#include "tests/sparse/options.hpp"
#include "tests/sparse/patterns.hpp"

namespace strata {
namespace {

using test::dealt_to;
using test::options_on;
using test::shared_by;
using test::whole_tree;

TEST(SparsePrediction, OfARunIsThatOfItsPlan) {
  for (const SparseMatrix& a : test::dealt_matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    for (const FrontSizes& sizes : {whole_tree(), dealt_to(2), shared_by(3)}) {
      const int devices = static_cast<int>(std::max<std::int64_t>(sizes.devices, 1));
      const std::string names = "host:" + std::to_string(devices);
      const SparseCholeskyOptions options = options_on(names);
      FrontFactor factor(analysis, options, sizes);
      factor.factor(a, 0.5);
      ASSERT_TRUE(factor.resident());
      ASSERT_TRUE(factor.report().predicted_seconds.has_value());
      const double predicted = *factor.report().predicted_seconds;
      const PlannedRun planned =
          plan_resident(factor.analysis(), std::make_shared<const FrontLayout>(factor.layout()),
                        detect_machine(names, 0), options);
      EXPECT_GT(predicted, 0);
      EXPECT_EQ(predicted, *planned.predicted_seconds);
      factor.factor_values(a.value, 0.25);
      EXPECT_EQ(predicted, *factor.report().predicted_seconds);
    }
  }
}

/// Bounce buffers that are filled more slowly than the link copies bound the load of the values;
/// the structure, which the first run loads too, was loaded before.
TEST(SparsePrediction, CountsStagedValuesAndNoStructure) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  const SparseCholeskyOptions options = options_on("host:1");
  FrontFactor factor(analysis, options, whole_tree());
  factor.factor(a, 0);
  const auto layout = std::make_shared<const FrontLayout>(factor.layout());
  const auto plan_at = [&](double staging) {
    Machine machine = Machine::emulated(1, std::int64_t{1} << 30);
    machine.devices.front().staging = {staging, 1e-6};
    return plan_resident(factor.analysis(), layout, machine, options);
  };
  const double values = static_cast<double>(layout->blocks.total_bytes(fronts::kValues));
  const double structure = static_cast<double>(layout->blocks.total_bytes(fronts::kStructure));
  ASSERT_GT(structure, values / 4);
  constexpr double kFast = 1e12;
  constexpr double kSlow = 1e6;
  const PlannedRun fast = plan_at(kFast);
  const PlannedRun slow = plan_at(kSlow);
  EXPECT_NEAR(*slow.predicted_seconds - *fast.predicted_seconds, values / kSlow,
              0.02 * values / kSlow);
  EXPECT_NEAR(slow.simulated.seconds - *slow.predicted_seconds, structure / kSlow,
              0.02 * structure / kSlow);
}

}  // namespace
}  // namespace strata
