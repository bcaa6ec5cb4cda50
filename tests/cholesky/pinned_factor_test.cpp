// A factor whose devices copy from pinned memory only, as GPUs do: however its host memory is
// pinned, the same bits, and the caller's matrix as it was.

#include <gtest/gtest.h>

#include <cstdlib>

#include "cholesky/tile_factor.hpp"
#include "strata/error.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/pinned_backend.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t n = 203;

CholeskyOptions options_with(HostPinning pinning, std::int64_t tile) {
  CholeskyOptions options;
  options.run.host_pinning = pinning;
  options.run.device_memory_bytes = tile == n ? 4 * n * n * 8 : 9 * tile * tile * 8;
  options.tile = tile;
  options.run.compute_queues = 2;
  return options;
}

std::shared_ptr<DeviceSet> devices_of(const Backend& backend, int count,
                                      const CholeskyOptions& options) {
  std::vector<int> indices;
  for (int d = 0; d < count; ++d) indices.push_back(d);
  return std::make_shared<DeviceSet>(backend, indices, options.run, options.path);
}

struct Result {
  std::vector<double> factor;
  std::vector<double> solution;
  RunReport report;
};

/// Factors, solves in both directions, factors again.
Result solve_on(const Backend& backend, int devices, const CholeskyOptions& options) {
  const Matrix<double> a = random_spd_matrix<double>(n, 11);
  const std::vector<double> before = a.data;
  Matrix<double> x = make_matrix<double>(n, 3, [](auto i, auto j) { return i % 7 - j; });
  CholeskyProblem problem;
  problem.n = n;
  TileFactor factor(problem, options, devices_of(backend, devices, options));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(factor.factor_stored(source_of_view(a.data.data(), a.ld(), true)).ok);
  }
  const RunReport solve = factor.sweep(Sweep::forward, x.view());
  EXPECT_EQ(solve.traffic, static_cast<const Traffic&>(solve.planned_traffic));
  (void)factor.sweep(Sweep::backward, x.view());
  EXPECT_TRUE(same_bits(a.data, before)) << "the caller's matrix";
  Matrix<double> l(n, n);
  factor.copy_lower(l.view());
  return {l.data, x.data, factor.report()};
}

TEST(PinnedFactor, IsTheSameHoweverItsMemoryIsPinned) {
  const PinnedBackend backend;
  for (const std::int64_t tile : {std::int64_t{32}, n}) {
    for (int devices = 1; devices <= (tile == n ? 1 : 3); ++devices) {
      const CholeskyOptions plain = options_with(HostPinning::automatic, tile);
      const Result expected = solve_on(host_backend(), devices, plain);
      EXPECT_EQ(expected.report.pinned_bytes, 0) << "on CPU devices nothing is";
      for (const HostPinning how : {HostPinning::automatic, HostPinning::ahead,
                                    HostPinning::background, HostPinning::never}) {
        const Result result = solve_on(backend, devices, options_with(how, tile));
        EXPECT_TRUE(same_bits(result.factor, expected.factor));
        EXPECT_TRUE(same_bits(result.solution, expected.solution));
        EXPECT_EQ(result.report.traffic, expected.report.traffic);
        if (how == HostPinning::ahead || how == HostPinning::automatic) {
          // All but the statuses of the diagonal tiles, which come home by the ring.
          const std::int64_t statuses = 4 * 8 * ((n + tile - 1) / tile);
          EXPECT_EQ(result.report.pinned_bytes, result.report.host_bytes - statuses);
          EXPECT_GT(result.report.pinning_seconds, 0);
        }
        EXPECT_TRUE(how != HostPinning::never || result.report.pinned_bytes == 0);
      }
    }
  }
  EXPECT_EQ(backend.ledger().pinned_bytes, 0);
}

TEST(PinnedFactor, OfACovarianceIsTheSame) {
  const Matrix<double> points = make_matrix<double>(n, 2, [](auto i, auto j) {
    return random_uniform(9, static_cast<std::uint64_t>(2 * i + j));
  });
  CovarianceParameters parameters{1.3, 0.2, 0.5, 0.1, true};
  const auto factor_on = [&](const Backend& backend, HostPinning how) {
    const CholeskyOptions options = options_with(how, 32);
    CholeskyProblem problem;
    problem.n = n;
    problem.point_dimensions = 2;
    TileFactor factor(problem, options, devices_of(backend, 2, options));
    EXPECT_TRUE(factor.factor_covariance(points.data.data(), parameters).ok);
    // With the points themselves as targets and as R.
    Matrix<double> products(n, 2);
    std::vector<double> squares(static_cast<std::size_t>(n));
    parameters.same_points = false;
    const double* p = points.data.data();
    const RunReport report =
        factor.sum_whitened({p, p, p, &parameters, 20, products.view(), squares.data()}, {});
    parameters.same_points = true;
    EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
    Matrix<double> l(n, n);
    factor.copy_lower(l.view());
    l.data.insert(l.data.end(), products.data.begin(), products.data.end());
    l.data.insert(l.data.end(), squares.begin(), squares.end());
    return l.data;
  };
  const PinnedBackend backend;
  const std::vector<double> expected = factor_on(host_backend(), HostPinning::never);
  for (const HostPinning how : {HostPinning::never, HostPinning::background, HostPinning::ahead}) {
    EXPECT_TRUE(same_bits(factor_on(backend, how), expected));
  }
}

TEST(PinnedFactor, ARefusalToPinIsAnErrorOnlyAhead) {
  FaultBackend faults;
  {
    const PinnedBackend backend(faults);
    CholeskyProblem problem;
    problem.n = n;
    const auto make = [&](HostPinning how) {
      const CholeskyOptions options = options_with(how, 32);
      auto devices = devices_of(backend, 1, options);
      faults.set({.refused_pin = 1});
      const TileFactor factor(problem, options, std::move(devices));
    };
    EXPECT_THROW(make(HostPinning::ahead), Error);
    EXPECT_NO_THROW(make(HostPinning::automatic));
    EXPECT_NO_THROW(make(HostPinning::background));
    EXPECT_NO_THROW(make(HostPinning::never));
    faults.set({.refused_pin = 1});
    (void)solve_on(backend, 2, options_with(HostPinning::background, 32));
  }
  EXPECT_EQ(faults.buffers(), 0) << "released";
}

TEST(PinnedFactor, IsPredictedToTakeLongerTheLessIsPageLocked) {
  const PinnedBackend backend;
  Matrix<double> a = random_spd_matrix<double>(n, 11);
  const BlockSource source = source_of_view(a.data.data(), a.ld(), true);
  // As slow as the bounce buffers come: most of a run is staging.
  const auto predicted = [&](const Backend& on, HostPinning how, bool load) {
    CholeskyOptions options = options_with(how, 32);
    Machine rates = DeviceSet(backend, {0}, options.run).machine();
    rates.devices[0].staging = {1e6, 1e-4};
    options.run.rates = rates;
    CholeskyProblem problem;
    problem.n = n;
    TileFactor factor(problem, options, devices_of(on, 1, options));
    if (load) factor.load(source, 1);
    (void)(load ? factor.factor_loaded() : factor.factor_stored(source));
    EXPECT_TRUE(factor.info().ok);
    const RunReport solve = factor.sweep(Sweep::both, a.view());
    EXPECT_EQ(factor.report().traffic,
              static_cast<const Traffic&>(factor.report().planned_traffic));
    return std::pair(factor.report().predicted_seconds.value(), solve.predicted_seconds.value());
  };
  const auto [loaded, solved] = predicted(backend, HostPinning::ahead, true);
  const auto from_source = predicted(backend, HostPinning::ahead, false).first;
  const auto never = predicted(backend, HostPinning::never, false);
  // In megabytes that are staged: the matrix once, and at least twice.
  constexpr double kMatrix = n * n / 2.0 * 8 / 1e6;
  EXPECT_GT(from_source, loaded + kMatrix / 2);
  EXPECT_GT(never.first, from_source + kMatrix / 2);
  EXPECT_GT(never.second, solved + kMatrix / 2) << "a solve reads the factor";
  const auto host = predicted(host_backend(), HostPinning::never, false);
  EXPECT_EQ(host.first, predicted(host_backend(), HostPinning::ahead, true).first);
  EXPECT_LT(host.first, loaded) << "not even its statuses";
}

TEST(PinnedFactor, SimulationKnowsOfTheSourceAndOfPinning) {
  Machine machine = Machine::emulated(1, 4 << 20);
  const auto simulated = [&](HostPinning how, bool generated) {
    CholeskyOptions options;
    options.tile = 64;
    options.run.host_pinning = how;
    return simulate_cholesky(1000, machine, options, Element::fp64, generated)
        .predicted_seconds.value();
  };
  const double before = simulated(HostPinning::never, false);
  EXPECT_EQ(simulated(HostPinning::ahead, true), simulated(HostPinning::never, true));
  machine.devices[0].staging = {1e8, 1e-4};
  EXPECT_GT(simulated(HostPinning::ahead, false), before) << "the first loads";
  EXPECT_GT(simulated(HostPinning::never, false), simulated(HostPinning::ahead, false));
  EXPECT_LT(simulated(HostPinning::ahead, true), simulated(HostPinning::ahead, false))
      << "nothing but coordinates comes from a source";
}

/// Beside a tuning file for this GPU, which a run follows or does not, but always names.
TEST(PinnedFactor, ReportsNameTheTuningFileThatWasFollowed) {
  const Scratch scratch;
  const PinnedBackend backend;
  const std::string path = scratch.path("potrf.json");
  const char* before = std::getenv("STRATA_TUNING");
  const std::string old = before == nullptr ? "" : before;
  setenv("STRATA_TUNING", path.c_str(), 1);
  const auto sources = [&](const Backend& on, CholeskyPath way) {
    CholeskyOptions options =
        options_with(HostPinning::never, way == CholeskyPath::in_core ? n : 32);
    if (way == CholeskyPath::in_core) options.tile = 0;
    options.path = way;
    CholeskyProblem problem;
    problem.n = n;
    const Matrix<double> a = random_spd_matrix<double>(n, 11);
    Matrix<double> x(n, 1);
    TileFactor factor(problem, options, devices_of(on, 1, options));
    (void)factor.factor_stored(source_of_view(a.data.data(), a.ld(), true));
    EXPECT_EQ(factor.sweep(Sweep::forward, x.view()).tuning, factor.report().tuning);
    return factor.report().tuning;
  };
  EXPECT_EQ(sources(backend, CholeskyPath::automatic), "none");
  write_potrf_tuning(path, {backend.devices()[0].model, {{Element::fp64, 100, {}}}});
  const std::string identity = path + " " + tuning_checksum(slurp(path));
  EXPECT_EQ(sources(backend, CholeskyPath::automatic), identity);
  EXPECT_EQ(sources(backend, CholeskyPath::in_core), identity);
  EXPECT_EQ(sources(backend, CholeskyPath::planned), "ignored");
  EXPECT_EQ(sources(host_backend(), CholeskyPath::automatic), "none");
  EXPECT_EQ(simulate_cholesky(100, Machine::emulated(1, 1 << 20)).tuning, "none");
  old.empty() ? unsetenv("STRATA_TUNING") : setenv("STRATA_TUNING", old.c_str(), 1);
}

}  // namespace
}  // namespace strata::test
