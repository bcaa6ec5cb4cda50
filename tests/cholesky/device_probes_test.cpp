// Lanczos on the devices of a factor: the sums of vectors in host memory, the bits of the tasks in
// order whatever the budget and the devices, numbers alone on the way home, and faults in between.

#include "cholesky/device_probes.hpp"

#include <gtest/gtest.h>

#include "kernels/covariance/covariance_times.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/mixed_factors.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/host_probes.hpp"
#include "tests/support/mixed_problem.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kEnough = std::int64_t{1} << 24;

/// A factor in several precisions, of a field with a nugget.
struct ProbedFactor {
  MixedCase c;
  TileFactor factor;

  explicit ProbedFactor(const CholeskyOptions& options, std::int64_t n = kMixedOrder,
                        std::int64_t tile = kMixedTile, Element single = Element::fp32)
      : ProbedFactor(options, std::make_shared<DeviceSet>(options.run, options.path), n, tile,
                     single) {}
  ProbedFactor(const CholeskyOptions& options, std::shared_ptr<DeviceSet> devices,
               std::int64_t n = kMixedOrder, std::int64_t tile = kMixedTile,
               Element single = Element::fp32)
      : c(n, tile, 0.05, {.accuracy = 1e-5}, single, devices->count(), 0.1),
        factor(c.problem, options, std::move(devices)) {
    EXPECT_TRUE(make().ok);
  }

  const FactorInfo& make() { return factor.factor_covariance(c.points.data.data(), c.parameters); }
  [[nodiscard]] DeviceProbes probes(const ProbeOptions& options) {
    return {factor, c.points.data.data(), c.parameters, options};
  }
  /// The same by operators on vectors of the host. `moved`: what they move.
  [[nodiscard]] WhitenedOperators operators(Traffic* moved = nullptr) {
    const auto note = [moved](const RunReport& report) {
      if (moved != nullptr) *moved += report.traffic;
    };
    const auto product = [this, note](MatrixView<const double> v, MatrixView<double> y) {
      note(factor.multiply_covariance({c.points.data.data(), &c.parameters, v, y}));
    };
    return {product, [this, note](MatrixView<double> b) { note(factor.sweep(Sweep::forward, b)); },
            [this, note](MatrixView<double> b) { note(factor.sweep(Sweep::backward, b)); }};
  }
};

CholeskyOptions probed_on(int devices, std::int64_t memory_bytes = kEnough,
                          const std::string& backend = "host") {
  CholeskyOptions options;
  options.run.devices = devices_text(backend, devices);
  options.run.device_memory_bytes = memory_bytes;
  return options;
}
/// Some steps, each divided by the norms of the one before.
std::vector<ProbeSums> steps_of(ProbeVectors& probes, int count) {
  std::vector<ProbeSums> all;
  std::vector<double> norms;
  for (int k = 0; k < count; ++k) {
    all.push_back(probes.step(norms));
    norms.clear();
    for (const double square : all.back().squares) norms.push_back(std::sqrt(square));
  }
  return all;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double error) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j], expected[j], error) << j;
}

void expect_same_bits(const std::vector<ProbeSums>& got, const std::vector<ProbeSums>& expected,
                      const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    EXPECT_TRUE(same_bits(got[k].shares, expected[k].shares)) << what << ", step " << k;
    EXPECT_TRUE(same_bits(got[k].squares, expected[k].squares)) << what << ", step " << k;
    EXPECT_TRUE(same_bits(got[k].above, expected[k].above)) << what << ", step " << k;
    EXPECT_TRUE(same_bits(got[k].below, expected[k].below)) << what << ", step " << k;
  }
}

/// Devices, and what they keep tiles of 24 bits in: fp16x2 is a GPU's, here on the host, too.
struct ProbedKind {
  std::string backend;
  Element single = Element::fp32;
};
std::vector<ProbedKind> probed_kinds() {
  std::vector<ProbedKind> kinds{{"host", Element::fp32}, {"host", Element::fp16x2}};
  if (cuda_backend() != nullptr) kinds.push_back({"cuda", Element::fp16x2});
  return kinds;
}

class DeviceProbesOn : public ::testing::TestWithParam<ProbedKind> {
 protected:
  [[nodiscard]] static ProbedFactor factor_on(int devices, std::int64_t memory_bytes = kEnough,
                                              std::int64_t n = kMixedOrder) {
    return ProbedFactor(probed_on(devices, memory_bytes, GetParam().backend), n, kMixedTile,
                        GetParam().single);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, DeviceProbesOn, ::testing::ValuesIn(probed_kinds()),
                         [](const auto& info) {
                           return info.param.backend + "_" +
                                  std::string(to_string(info.param.single));
                         });

TEST_P(DeviceProbesOn, HaveTheSumsOfVectorsInHostMemory) {
  Thinned thinned(3);
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{16}, std::int64_t{17}, kMixedOrder}) {
    for (const int probes : {2, 5, 36, 37, 75}) {
      if (thinned.skips()) continue;
      ProbedFactor p = factor_on(1, kEnough, n);
      const ProbeOptions options{.probes = probes, .seed = 11, .steps_max = 3};
      HostProbes host(n, p.operators(), options);
      DeviceProbes device = p.probes(options);
      const int steps = n == 1 ? 1 : 3;
      const std::vector<ProbeSums> expected = steps_of(host, steps);
      const std::vector<ProbeSums> got = steps_of(device, steps);
      // E is about 1e-5 and has errors of some roundings of G, which grow by 1/‖E‖ a step.
      double error = 1e-14;
      for (int k = 0; k < steps; ++k, error *= 50) {
        const auto at = static_cast<std::size_t>(k);
        expect_near(got[at].shares, expected[at].shares, error);
        for (std::size_t j = 0; j < expected[at].squares.size(); ++j)
          EXPECT_NEAR(std::sqrt(got[at].squares[j]), std::sqrt(expected[at].squares[j]), error);
      }
      // Pairs of neighbours, but for those of different blocks.
      const std::int64_t pairs = probes - (probes + 35) / 36;
      ASSERT_EQ(std::ssize(got[0].above), pairs);
      for (std::int64_t j = 0; j < pairs; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const auto in_host = static_cast<std::size_t>(j + j / 35);
        EXPECT_NEAR(got[0].above[at], expected[0].above[in_host], 1e-14);
        EXPECT_NEAR(got[0].below[at], expected[0].below[in_host], 1e-14);
      }
    }
  }
}

TEST(DeviceProbes, EstimateWhatVectorsInHostMemoryDo) {
  for (const Element single : {Element::fp32, Element::fp16x2}) {
    ProbedFactor p(probed_on(1), kMixedOrder, kMixedTile, single);
    DeviceProbes device = p.probes({});
    const LogDeterminantCorrection got = estimate_log_determinant(device);
    const LogDeterminantCorrection expected = estimate_log_determinant(kMixedOrder, p.operators());
    EXPECT_EQ(got.steps, expected.steps);
    EXPECT_TRUE(got.converged);
    EXPECT_NEAR(got.correction, expected.correction, 1e-12 * kMixedOrder);
    EXPECT_NEAR(got.standard_error, expected.standard_error, 1e-12 * kMixedOrder);
    EXPECT_NEAR(got.divergence, expected.divergence, 1e-6 * expected.divergence);
    double log_determinant = 0;
    for (std::int64_t i = 0; i < kMixedOrder; ++i) log_determinant += 2 * std::log(p.c.l(i, i));
    EXPECT_NEAR(p.factor.info().log_determinant + got.correction, log_determinant,
                got.statistical_bound_applied());
  }
}

TEST_P(DeviceProbesOn, MoveTheProbesOnceAndNumbersAfterwards) {
  constexpr int kProbes = 32;
  constexpr std::int64_t kBlock = kMixedOrder * kProbes * 8;
  constexpr std::int64_t kPoints = kMixedOrder * 2 * 8;
  ProbedFactor p = factor_on(1);
  {
    DeviceProbes device = p.probes({.probes = kProbes});
    std::vector<double> norms;
    for (std::int64_t k = 0; k < 4; ++k) {
      const ProbeSums sums = device.step(norms);
      norms.assign(kProbes, 1);
      const RunReport& report = device.report();
      EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic)) << k;
      EXPECT_EQ(report.traffic.device_to_host_bytes, LanczosSums{k}.count() * kProbes * 8) << k;
      if (k == 0) {
        EXPECT_LE(report.traffic.host_to_device_bytes, kBlock + 2 * kPoints);
        EXPECT_GE(report.traffic.host_to_device_bytes, kBlock);
      } else {
        EXPECT_EQ(report.traffic.host_to_device_bytes, kProbes * 8) << k;
      }
      EXPECT_LE(report.planned_traffic.floor_bytes, report.traffic.total()) << k;
    }
  }
  // Vectors of the host go there and back: the work of a step moves six blocks, and two more.
  Traffic moved;
  HostProbes host(kMixedOrder, p.operators(&moved), {.probes = kProbes});
  (void)host.step({});
  EXPECT_GE(moved.total(), 7 * kBlock);
}

TEST(DeviceProbes, LeaveTheDevicesToTheFactor) {
  ProbedFactor p(probed_on(1));
  Matrix<double> b = make_matrix<double>(kMixedOrder, 3, [](auto i, auto j) { return i - j; });
  const std::int64_t bytes = b.rows * b.cols * 8;
  {
    DeviceProbes device = p.probes({.probes = 4});
    (void)steps_of(device, 2);
  }
  const RunReport report = p.factor.sweep(Sweep::both, b.view());
  EXPECT_EQ(report.traffic.device_to_host_bytes, bytes) << "no vector came home";
  EXPECT_EQ(report.traffic.host_to_device_bytes, bytes) << "no tile had to come again";
}

TEST_P(DeviceProbesOn, HaveTheSameBitsWhateverTheBudgetAndTheDevices) {
  const ProbeOptions options{.probes = 40, .seed = 3, .steps_max = 4};
  ProbedFactor whole = factor_on(1);
  DeviceProbes alone = whole.probes(options);
  const std::vector<ProbeSums> expected = steps_of(alone, 4);
  Thinned thinned(4);
  for (const int devices : {1, 2, 3}) {
    if (devices_text(GetParam().backend, devices).empty()) continue;  // too few GPUs
    for (const std::int64_t memory : {kEnough, std::int64_t{300'000}, std::int64_t{150'000}}) {
      if (thinned.skips()) continue;
      ProbedFactor p = factor_on(devices, memory);
      DeviceProbes probes = p.probes(options);
      std::vector<ProbeSums> got;
      std::vector<double> norms;
      for (int k = 0; k < 4; ++k) {
        got.push_back(probes.step(norms));
        const RunReport& report = probes.report();
        EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
        norms.clear();
        for (const double square : got.back().squares) norms.push_back(std::sqrt(square));
      }
      expect_same_bits(got, expected,
                       std::to_string(devices) + " devices of " + std::to_string(memory));
    }
  }
}

TEST(DeviceProbes, GoOnBehindOtherRunsOfTheFactor) {
  const ProbeOptions options{.probes = 6, .steps_max = 3};
  ProbedFactor p(probed_on(1));
  std::vector<ProbeSums> expected;
  {
    DeviceProbes probes = p.probes(options);
    expected = steps_of(probes, 3);
  }
  DeviceProbes probes = p.probes(options);
  std::vector<ProbeSums> got;
  std::vector<double> norms;
  Matrix<double> b = make_matrix<double>(kMixedOrder, 2, [](auto i, auto j) { return i + j; });
  for (int k = 0; k < 3; ++k) {
    got.push_back(probes.step(norms));
    norms.clear();
    for (const double square : got.back().squares) norms.push_back(std::sqrt(square));
    (void)p.factor.sweep(Sweep::both, b.view());  // the vectors go home for it
  }
  expect_same_bits(got, expected, "with solves between");
}

TEST(DeviceProbes, ABasisThatIsWholeHasZerosNext) {
  ProbedFactor p(probed_on(1));
  DeviceProbes probes = p.probes({.probes = 3, .steps_max = 3});
  std::vector<double> norms;
  for (const double square : probes.step({}).squares) norms.push_back(std::sqrt(square));
  norms[1] = std::numeric_limits<double>::infinity();
  const ProbeSums sums = probes.step(norms);
  EXPECT_EQ(sums.shares[1], 0);
  EXPECT_EQ(sums.squares[1], 0);
  EXPECT_GT(sums.squares[0], 0);
  EXPECT_GT(sums.squares[2], 0);
}

TEST(DeviceProbes, RefuseWhatIsNoStep) {
  ProbedFactor p(probed_on(1));
  DeviceProbes probes = p.probes({.probes = 3});
  const std::vector<double> two(2, 1.0);
  const std::vector<double> three(3, 1.0);
  EXPECT_THROW((void)probes.step(three), Error) << "nothing is there that could be divided";
  (void)probes.step({});
  EXPECT_THROW((void)probes.step({}), Error);
  EXPECT_THROW((void)probes.step(two), Error);
  EXPECT_NO_THROW((void)probes.step(three));
  p.factor.let_go();
  EXPECT_THROW((void)probes.step(three), Error) << "there is no factor";
}

TEST(LanczosStep, HasNoBlocksThatTakeTheSlotsOfTiles) {
  // 36 columns in tiles of 16384 are an eighth larger than a tile of 2048 in fp8, those of 8192
  // than one of 1024 in fp16.
  const MixedCase c(kMixedOrder, kMixedTile, Element::fp16x2);
  for (const std::int64_t tile : {1024, 2048, 4096}) {
    for (const std::int64_t vectors : {2, 5, 32, 33, 35, 36, 64, 4096}) {
      LanczosProblem problem;
      problem.n = kMixedOrder / kMixedTile * tile + 1;  // as many tiles as the map has
      problem.tile = tile;
      problem.vectors = vectors;
      problem.formats = c.problem.formats;
      problem.work_identity = 1;
      problem = choose_lanczos_blocks(problem, 40, Machine::emulated(1, std::int64_t{80} << 30));
      EXPECT_EQ(problem.column_tile % kCovarianceRun, 0);
      const std::int64_t tall = problem.column_tile * problem.columns * 8;
      for (const std::int64_t bytes : {1, 2, 4, 8}) {
        const std::int64_t of_tile = tile * tile * bytes;
        EXPECT_FALSE(tall > of_tile && tall <= of_tile + of_tile / 8)
            << tile << ", " << vectors << " vectors, " << bytes << " bytes";
      }
      EXPECT_GE(problem.column_tile, 2048) << tile << ", " << vectors;
    }
  }
}

/// With products of many calls in a task, as on a GPU, and without: the same bits.
TEST(LanczosStep, HasTheSameBitsHoweverManyCallsATaskHas) {
  constexpr std::int64_t kOrder = 75;
  const Matrix<double> points = ordered_points(kOrder, 16, 4);
  const Matrix<double> l = dense_factor(exponential_covariance(points, 0.1, 0.1));
  const CovarianceParameters parameters{1, 0.1, 0.5, 0.1, true};
  for (const int devices : {1, 2}) {
    for (const std::size_t blocks_of_basis : {1, 3}) {
      std::vector<Bytes> results;
      for (const std::int64_t at_once : {0, 1, 3, 64}) {
        LanczosProblem problem;
        problem.n = kOrder;
        problem.tile = 16;
        problem.vectors = 7;
        problem.columns = 4;
        problem.column_tile = kCovarianceRun;
        problem.point_dimensions = 2;
        problem.devices = devices;
        problem.products_at_once = at_once;
        problem.work_identity = 1;
        for (std::size_t b = 0; b < blocks_of_basis; ++b) problem.basis.push_back(2 + b);
        const Schedule schedule = lanczos_step(problem);
        const BlockTable& blocks = schedule.blocks;
        std::vector<std::shared_ptr<FamilyMemory>> families;
        for (int f = 0; f < blocks.families(); ++f) {
          const bool of_points = f == lanczos::kRowPoints || f == lanczos::kColumnPoints;
          BlockSource source = [f](const BlockExtent& x, std::byte* to) {
            for (std::int64_t j = 0; j < x.cols; ++j) {
              for (std::int64_t i = 0; i < x.rows; ++i)
                reinterpret_cast<double*>(to)[i + j * x.rows] =
                    1 + random_uniform(static_cast<std::uint64_t>(f),
                                       static_cast<std::uint64_t>((x.row + i) * 64 + x.col + j));
            }
          };
          if (f == lanczos::kFactor) source = source_of_view(l.data.data(), l.ld(), true);
          if (of_points) source = source_of_view(points.data.data(), points.ld(), false);
          families.push_back(std::make_shared<FamilyMemory>(blocks, f, std::move(source)));
        }
        MemoryStore store(blocks, families);
        IssueOptions options;
        options.values = {{covariance_times.name, &parameters}};
        run_in_order(schedule, host_backend(), store, options);
        Bytes of_store = contents_of(store);
        Bytes result;
        for (const int f : {lanczos::kSums, lanczos::kWork})
          blocks.for_each(f, [&](BlockId id) {
            result.push_back(of_store[static_cast<std::size_t>(blocks.index(id))]);
          });
        results.push_back(std::move(result));
        EXPECT_TRUE(results.back() == results.front()) << at_once << " calls";
      }
    }
  }
}

TEST(DeviceProbes, ADeviceThatDiesAnywhereInAStepIsAnError) {
  FaultBackend backend;
  CholeskyOptions options = probed_on(2);
  options.run.device_memory_bytes = kEnough;
  const auto devices = std::make_shared<DeviceSet>(backend, std::vector<int>{0, 1}, options.run);
  ProbedFactor p(options, devices, 75);
  const std::vector<double> norms(3, 1.0);
  std::vector<double> expected;
  std::int64_t operations = 0;
  {
    DeviceProbes probes = p.probes({.probes = 3});
    (void)probes.step({});
    backend.heal();
    expected = probes.step(norms).shares;
    operations = backend.operations(1);
  }
  ASSERT_GT(operations, 20);
  for (std::int64_t k = 1; k <= operations; k += 13) {
    {
      DeviceProbes probes = p.probes({.probes = 3});
      (void)probes.step({});
      backend.set({.dying_device = 1, .dies_at = k});
      EXPECT_THROW((void)probes.step(norms), Error) << k;
      backend.heal();
      EXPECT_THROW((void)probes.step(norms), Error) << "the vectors and the factor are lost";
    }
    ASSERT_TRUE(p.make().ok);
    DeviceProbes probes = p.probes({.probes = 3});
    (void)probes.step({});
    EXPECT_TRUE(same_bits(probes.step(norms).shares, expected)) << k;
  }
}

}  // namespace
}  // namespace strata::test
