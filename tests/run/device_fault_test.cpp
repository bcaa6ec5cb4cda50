// Devices that die in the middle of a run, and memory that is refused before it.

#include <gtest/gtest.h>

#include "cholesky/tile_cholesky.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/potrf.hpp"
#include "run/run.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "tests/run/small_tiles.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/fault_store.hpp"
#include "tests/support/pinned_backend.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kFaultOrder = 7 * kTile - 3;  // the first device has rows 0, 5 and 6
constexpr int kDevices = 3;

/// A factorization on three devices with few slots, with or without a link between them.
class DeviceFaultRun : public ::testing::TestWithParam<bool> {
 protected:
  DeviceFaultRun() : matrix(random_spd_matrix<double>(kFaultOrder, 7)), before(matrix.data) {
    CholeskyProblem problem;
    problem.n = kFaultOrder;
    problem.tile = kTile;
    problem.devices = kDevices;
    schedule = std::make_shared<const Schedule>(tile_cholesky(problem, {}));
    const auto store = make_store();
    run_in_order(*schedule, host_backend(), *store);
    expected = contents_of(*store);
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable& blocks = schedule->blocks;
    return std::make_unique<MemoryStore>(
        blocks, std::vector{std::make_shared<FamilyMemory>(
                                blocks, kMatrixFamily,
                                source_of_view(matrix.data.data(), matrix.ld(), true)),
                            std::make_shared<FamilyMemory>(blocks, kStatusFamily)});
  }
  [[nodiscard]] DeviceSet make_devices() const {
    RunOptions options;
    options.device_memory_bytes = 6 * kTile * kTile * 8 + 256;  // six tiles and a status
    options.compute_queues = 2;
    return {backend, {0, 1, 2}, options};
  }
  [[nodiscard]] Plan plan_on(const DeviceSet& devices) const {
    Machine machine = devices.machine();
    if (GetParam()) machine.device_to_device = {1e15, 0};
    return {schedule, machine, {}};
  }

  /// Runs into an error of this kind; the caller's matrix is what it was.
  void expect_failure(DeviceSet& devices, ErrorKind kind, const std::string& what) const {
    const auto store = make_store();
    try {
      (void)run(plan_on(devices), devices, *store);
      ADD_FAILURE() << what << " went unnoticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      EXPECT_EQ(std::string(error.what()), what);
    }
    EXPECT_TRUE(same_bits(matrix.data, before));
  }
  void expect_usable(DeviceSet& devices) {
    backend.heal();
    const auto store = make_store();
    const Plan plan = plan_on(devices);
    const RunOutcome outcome = run(plan, devices, *store);
    EXPECT_EQ(outcome.trace.traffic, plan.totals().traffic);
    EXPECT_TRUE(contents_of(*store) == expected);
  }

  Matrix<double> matrix;
  std::vector<double> before;
  Bytes expected;
  std::shared_ptr<const Schedule> schedule;
  FaultBackend backend;
};

INSTANTIATE_TEST_SUITE_P(Links, DeviceFaultRun, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "linked" : "apart"; });

TEST_P(DeviceFaultRun, ADeviceThatDiesAnywhereEndsTheRunWithItsError) {
  {
    DeviceSet devices = make_devices();
    expect_usable(devices);
    for (int d = 0; d < kDevices; ++d) {
      expect_usable(devices);
      const std::int64_t operations = backend.operations(static_cast<std::size_t>(d));
      ASSERT_GE(operations, 15);
      for (std::int64_t k = 1; k <= operations; k += test::kSanitized ? 3 : 1) {
        backend.set({.dying_device = d, .dies_at = k});
        expect_failure(devices, ErrorKind::device,
                       fmt::format("injected: host:{} died at operation {}", d, k));
        if (k % 5 == 0) expect_usable(devices);
      }
    }
    EXPECT_GT(backend.buffers(), 0);
  }
  EXPECT_EQ(backend.buffers(), 0) << "released";
}

TEST_P(DeviceFaultRun, ADeviceThatStaysDeadFailsEveryRun) {
  DeviceSet devices = make_devices();
  backend.set({.dying_device = 1, .dies_at = 4});
  for (int i = 0; i < 3; ++i)
    expect_failure(devices, ErrorKind::device, "injected: host:1 died at operation 4");
  expect_usable(devices);
}

TEST_P(DeviceFaultRun, MemoryThatIsRefusedIsSaidAndNothingIsKept) {
  {
    DeviceSet devices = make_devices();
    for (std::int64_t k = 1; k <= kDevices; ++k) {
      DeviceSet fresh = make_devices();
      backend.set({.refused_device = k});
      expect_failure(fresh, ErrorKind::memory, fmt::format("injected: allocation {} refused", k));
      expect_usable(fresh);
    }
    // Where queues run host code nothing is brought to pinned memory on the way.
    backend.set({.refused_host = 1, .refused_pin = 1});
    const auto store = make_store();
    (void)run(plan_on(devices), devices, *store);
    EXPECT_TRUE(contents_of(*store) == expected);
    expect_usable(devices);
  }
  EXPECT_EQ(backend.buffers(), 0);
}

TEST_P(DeviceFaultRun, EachDeviceHasAnIssuingThreadOfItsOwn) {
  // The diagonal tiles alone, one a device: no device waits for another.
  std::vector<FlatTask> tasks;
  for (int d = 0; d < kDevices; ++d) {
    tasks.push_back(flat_task(
        potrf,
        {{{kMatrixFamily, d, d}, Hint::last_write}, {{kStatusFamily, 0, d}, Hint::last_write}}, d));
  }
  const auto diagonal = std::make_shared<const Schedule>(
      schedule_of(schedule->blocks, kDevices, {3, 1}, {std::move(tasks)}));
  const auto in_order = make_store();
  run_in_order(*diagonal, host_backend(), *in_order);
  DeviceSet devices = make_devices();
  for (int i = 0; i < 20; ++i) {
    backend.set({.meet = kDevices});
    const auto store = make_store();
    (void)run(Plan(diagonal, devices.machine(), {}), devices, *store);
    ASSERT_FALSE(backend.missed()) << "a device waited for others that were not being issued";
    EXPECT_TRUE(contents_of(*store) == contents_of(*in_order));
    std::set<std::thread::id> all;
    for (std::size_t d = 0; d < kDevices; ++d) {
      EXPECT_EQ(backend.threads(d).size(), 1U) << "device " << d;
      all.insert(backend.threads(d).begin(), backend.threads(d).end());
    }
    EXPECT_EQ(all.size(), static_cast<std::size_t>(kDevices));
  }
}

TEST_P(DeviceFaultRun, LittleIsIssuedAheadOfSlowTasks) {
  // By its rates each task takes a second; the first one is held up by its load.
  DeviceSet devices = make_devices();
  Machine machine = devices.machine();
  for (DeviceModel& device : machine.devices) {
    device.kernels.clear();
    device.rate(Element::fp64) = 1e-3;
  }
  const Plan plan(schedule, machine, {});
  ASSERT_GT(plan.totals().tasks, 30);
  FaultStore store(make_store(), {.seconds_slow = 0.3});
  IssueOptions options;
  options.progress = [](const Progress&) { return false; };
  backend.heal();
  EXPECT_THROW((void)run(plan, devices, store, options), Error);
  for (std::size_t d = 0; d < kDevices; ++d) {
    EXPECT_LE(backend.operations(d), 12) << "a task, and the copies up to the next one";
  }
  expect_usable(devices);
}

TEST_P(DeviceFaultRun, AFailureOfOneIssuingThreadEndsTheOthers) {
  DeviceSet devices = make_devices();
  for (std::int64_t k = 1; k <= 13; k += 2) {
    for (int d = 0; d < kDevices; ++d) {
      backend.set({.dying_device = d, .dies_at = k, .throws = true});
      expect_failure(devices, ErrorKind::device,
                     fmt::format("injected: host:{} died at operation {}", d, k));
    }
  }
  expect_usable(devices);
}

/// A covariance is generated, so that what a device should have stored is nowhere if it did not.
class GeneratedFaultRun : public ::testing::Test {
 protected:
  GeneratedFaultRun() {
    for (std::int64_t i = 0; i < 2 * kFaultOrder; ++i)
      points.push_back(random_uniform(11, static_cast<std::uint64_t>(i)));
    run_options.values = {{covariance.name, &parameters}};
  }

  /// Runs on these devices into the death of each of them, at every fourth operation.
  void expect_deaths_to_be_told(const std::vector<DevicePlace>& places) {
    CholeskyProblem problem;
    problem.n = kFaultOrder;
    problem.tile = kTile;
    problem.devices = static_cast<int>(places.size());
    problem.point_dimensions = 2;
    const auto schedule = std::make_shared<const Schedule>(tile_cholesky(problem, {}));
    RunOptions options;
    options.device_memory_bytes = smallest_budget_bytes(*schedule) + 3 * kTile * kTile * 8;
    options.compute_queues = 2;
    DeviceSet devices(places, options);
    const Plan plan(schedule, devices.machine(), {});
    ASSERT_GT(plan.totals().stores, 0);
    const auto run_once = [&] {
      const BlockTable& blocks = schedule->blocks;
      MemoryStore store(
          blocks, {std::make_shared<FamilyMemory>(blocks, kMatrixFamily),
                   std::make_shared<FamilyMemory>(blocks, kStatusFamily),
                   std::make_shared<FamilyMemory>(
                       blocks, kPointsFamily, source_of_view(points.data(), kFaultOrder, false))});
      (void)run(plan, devices, store, run_options);
    };
    backend.heal();
    run_once();
    for (int d = 0; d < problem.devices; ++d) {
      backend.heal();
      run_once();
      const std::int64_t operations = backend.operations(static_cast<std::size_t>(d));
      ASSERT_GE(operations, 15);
      for (std::int64_t k = 1; k <= operations; k += 4) {
        backend.set({.dying_device = d, .dies_at = k});
        try {
          run_once();
          ADD_FAILURE() << "the death of device " << d << " at " << k << " went unnoticed";
        } catch (const Error& error) {
          EXPECT_EQ(std::string(error.what()),
                    fmt::format("injected: host:{} died at operation {}", d, k));
        }
      }
    }
  }

  std::vector<double> points;
  CovarianceParameters parameters{1, 0.3, 0.5, 0.1, true};
  IssueOptions run_options;
  FaultBackend backend;
};

TEST_F(GeneratedFaultRun, WhatADeadDeviceDidNotStoreIsNotTheFailureThatIsTold) {
  expect_deaths_to_be_told({{&backend, 0}, {&backend, 1}, {&backend, 2}});
}

TEST_F(GeneratedFaultRun, NorWhereDevicesOfAnotherBackendMissIt) {
  const PinnedBackend copying(backend);
  expect_deaths_to_be_told({{&backend, 0}, {&copying, 1}});
}

template <class F>
std::string error_of(ErrorKind kind, F call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(RefusedMemory, SaysWhatWasAskedAndWhatWasThere) {
#ifdef STRATA_SANITIZED
  GTEST_SKIP() << "a sanitizer ends the program where the system would refuse";
#endif
  constexpr std::int64_t kMuch = std::int64_t{1} << 60;
  const auto device = host_backend().make_device(0, 1 << 20);
  const std::string by_device =
      error_of(ErrorKind::memory, [&] { (void)device->allocate_host(kMuch); });
  EXPECT_NE(by_device.find("1048576 TiB"), std::string::npos) << by_device;
  EXPECT_NE(by_device.find("are free"), std::string::npos) << by_device;
  BlockTable blocks;
  blocks.add(
      {.name = "A", .rows = 1 << 29, .cols = 1 << 28, .tile_rows = 1 << 20, .tile_cols = 1 << 20});
  const std::string by_store =
      error_of(ErrorKind::memory, [&] { const FamilyMemory memory(blocks, 0); });
  EXPECT_NE(by_store.find("1048576 TiB"), std::string::npos) << by_store;
  EXPECT_NE(by_store.find("are free"), std::string::npos) << by_store;
}

}  // namespace
}  // namespace strata::test
