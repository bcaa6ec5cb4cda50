// What solves move: as their plans say before anything is factored, and no more than they have to.

#include <gtest/gtest.h>

#include "kernels/backend/backend.hpp"
#include "sparse/fronts/front_batch.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "strata/detect.hpp"
#include "tests/sparse/dealt_factors.hpp"
#include "tests/sparse/options.hpp"
#include "tests/sparse/patterns.hpp"
#include "tests/sparse/sweeps.hpp"

namespace strata {
namespace {

using test::dealt_to;
using test::options_on;
using test::right_hand_sides;
using test::shared_by;
using test::view_of;
using test::whole_tree;

Traffic planned_of(const RunReport& report) { return report.planned_traffic; }

/// Right-hand sides in and solutions out, the order of elimination once, and L when it is wanted.
TEST(SolveTraffic, OfAFactorThatStays) {
  for (const SparseMatrix& a : test::dealt_matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    for (const FrontSizes& sizes : {whole_tree(), dealt_to(2), shared_by(3)}) {
      const int devices = static_cast<int>(std::max<std::int64_t>(sizes.devices, 1));
      const Machine machine = Machine::emulated(devices, std::int64_t{1} << 30);
      const SparseCholeskyOptions options = options_on("host:" + std::to_string(devices));
      for (const std::int64_t columns : {1, 5, 16, 35}) {
        FrontFactor factor(analysis, options, sizes);
        factor.factor(a, 0.5);
        ASSERT_TRUE(factor.solves_there());
        EXPECT_TRUE(factor.solves().path.empty());
        std::vector<double> x = right_hand_sides(a.rows, columns);
        factor.solve_there(view_of(x, a.rows), true, true);
        const std::int64_t bytes = a.rows * columns * 8;
        const Traffic moved = factor.solves().traffic;
        EXPECT_EQ(moved, planned_of(factor.solves()));
        EXPECT_EQ(moved.host_to_device_bytes, bytes + 4 * a.rows) << a.rows << ", " << columns;
        EXPECT_EQ(moved.device_to_host_bytes, bytes);
        if (devices == 1) {
          EXPECT_EQ(moved.device_to_device_bytes, 0);
        }
        const MachineLayout there{factor.analysis(), factor.sizes(),
                                  std::make_shared<const FrontLayout>(factor.layout()), true};
        EXPECT_EQ(planned_of(plan_of_solve(there, machine, columns, options)), moved);
        factor.solve_there(view_of(x, a.rows), true, true);
        EXPECT_EQ(factor.solves().traffic.host_to_device_bytes, 2 * bytes + 4 * a.rows);
        EXPECT_EQ(factor.solves().traffic, planned_of(factor.solves()));
        factor.bring_home();
        factor.bring_home();
        EXPECT_EQ(factor.solves().traffic.device_to_host_bytes,
                  2 * bytes + factor.layout().blocks.total_bytes(fronts::kPanels));
        EXPECT_EQ(factor.solves().traffic, planned_of(factor.solves()));
        factor.factor_values(a.value, 0.25);
        EXPECT_TRUE(factor.solves().path.empty());
      }
    }
  }
}

/// L comes through the device, in as few passes as the budget allows.
TEST(SolveTraffic, OfAFactorThatIsAtHome) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  std::int64_t passes = 0;
  for (const std::int64_t budget : {600'000, 1'500'000, 5'000'000}) {
    for (const std::int64_t columns : {1, 7, 40}) {
      const SparseCholeskyOptions options = options_on("host:1", budget);
      FrontFactor factor(analysis, options, test::in_ranges(60'000));
      factor.factor(a, 0);
      ASSERT_FALSE(factor.resident());
      std::vector<double> x = right_hand_sides(a.rows, columns);
      const bool solved = factor.solve_streamed(view_of(x, a.rows), true, true);
      const MachineLayout there{factor.analysis(), factor.sizes(),
                                std::make_shared<const FrontLayout>(factor.layout()), false};
      Machine machine = Machine::emulated(1, budget);
      machine.devices.front().host_to_device.bytes_per_second = 1e15;  // so that it comes sooner
      const RunReport plan = plan_of_solve(there, machine, columns, options);
      ASSERT_EQ(plan.path.empty(), !solved);
      if (!solved) continue;
      EXPECT_EQ(planned_of(plan), factor.solves().traffic);
      EXPECT_EQ(planned_of(factor.solves()), factor.solves().traffic);
      passes += factor.solves().traffic.host_to_device_bytes /
                factor.layout().blocks.total_bytes(fronts::kPanels);
    }
  }
  EXPECT_GT(passes, 8);
}

/// Right-hand sides of matrices that were not factored stay where they are.
TEST(SolveTraffic, OfABatch) {
  const SparseMatrix a = test::with_values(test::grid(9, 8, 1), 4);
  constexpr std::int64_t kCount = 13;
  std::vector<double> values;
  for (std::int64_t k = 0; k < kCount; ++k)
    values.insert(values.end(), a.value.begin(), a.value.end());
  FrontBatch batch(test::analysis_by_amd(a), a, kCount, options_on("host:1", 64 << 20), true);
  ASSERT_TRUE(batch.resident());
  const MatrixView<const double> view{values.data(), a.entries(), kCount, a.entries()};
  for (const std::int64_t nrhs : {1, 3, 20}) {
    batch.factor(view, 0);
    EXPECT_TRUE(batch.solves().path.empty());
    std::vector<double> x = right_hand_sides(a.rows, nrhs * kCount);
    batch.solve(view_of(x, a.rows));
    const std::int64_t bytes = a.rows * nrhs * kCount * 8;
    const std::int64_t order = nrhs == 1 ? 4 * a.rows : 0;  // it is there from the first on
    EXPECT_EQ(batch.solves().traffic.host_to_device_bytes, bytes + order);
    EXPECT_EQ(batch.solves().traffic.device_to_host_bytes, bytes);
    EXPECT_EQ(batch.solves().traffic, planned_of(batch.solves()));
  }
  std::vector<double> spoiled = values;
  for (const std::int64_t k : {0, 7}) spoiled[static_cast<std::size_t>(k * a.entries())] = -1;
  batch.factor({spoiled.data(), a.entries(), kCount, a.entries()}, 0);
  std::vector<double> x = right_hand_sides(a.rows, kCount);
  batch.solve(view_of(x, a.rows));
  EXPECT_EQ(batch.solves().traffic.device_to_host_bytes, a.rows * (kCount - 2) * 8);
  EXPECT_EQ(batch.solves().traffic, planned_of(batch.solves()));
}

/// What `strata plan sparse` says of a solve is what it moves; of right-hand sides that lie on the
/// GPU, nothing.
TEST(SolveTrafficOnAGpu, IsThatOfThePlan) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  const SparseMatrix a = test::with_values(test::grid(30, 29, 28), 7);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  for (const std::int64_t budget : {std::int64_t{4} << 30, std::int64_t{96} << 20}) {
    for (const std::int64_t columns : {1, 5, 40}) {
      const SparseCholeskyOptions options = options_on("cuda:0", budget);
      const SparseCholesky factor(analysis, a, options);
      std::vector<double> x = right_hand_sides(a.rows, columns);
      factor.solve(view_of(x, a.rows));
      const RunReport plan =
          simulate_sparse_solve(analysis, a, detect_machine("cuda:0", budget), columns, options);
      EXPECT_EQ(planned_of(plan), factor.solves().traffic) << budget << ", " << columns;
      EXPECT_EQ(planned_of(factor.solves()), factor.solves().traffic);
    }
  }
}

}  // namespace
}  // namespace strata
