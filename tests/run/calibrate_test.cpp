// Measured rates: plausible, and the same after a file.

#include "strata/calibrate.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "run/calibrate_devices.hpp"
#include "schedule/task.hpp"
#include "strata/detect.hpp"
#include "strata/error.hpp"
#include "tests/io/scratch.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/clock_device.hpp"
#include "tests/support/pinned_backend.hpp"

namespace strata::test {
namespace {

class Calibrate : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, Calibrate, ::testing::ValuesIn(available_backends()),
                         [](const auto& info) { return info.param; });

RunOptions calibration_options_of(const std::string& devices, std::int64_t budget = 1 << 24) {
  RunOptions options;
  options.devices = devices;
  options.device_memory_bytes = budget;
  options.compute_queues = 2;
  return options;
}

bool positive(double value) { return std::isfinite(value) && value > 0; }

/// The same with rates that nothing can have. Devices come with nominal rates, which are positive
/// too: of these, what was not measured is not.
RunOptions without_rates(RunOptions options) {
  Machine rates = detect_machine(options.devices, options.device_memory_bytes);
  for (DeviceModel& device : rates.devices) {
    device.host_to_device = device.device_to_host = {-1, -1};
    device.rate(Element::fp64) = device.rate(Element::fp32) = -1;
    device.kernels = {{"gemm", std::vector(3, Element::fp64), -1, -1}};
  }
  options.rates = std::move(rates);
  return options;
}

TEST_P(Calibrate, MeasuresEveryKernelAndLink) {
  const RunOptions options = without_rates(calibration_options_of(GetParam()));
  const DeviceModel unmeasured = DeviceSet(options).machine().devices.at(0);
  EXPECT_EQ(unmeasured.host_to_device.bytes_per_second, -1) << "the rates were not taken";
  for (const Element precision : {Element::fp64, Element::fp32}) {
    const Machine machine = calibrate(options, {2, 17}, precision, 0.002);
    ASSERT_EQ(machine.devices.size(), 1u);
    EXPECT_EQ(machine.device_to_device.bytes_per_second, 0) << "nobody to copy from";
    const DeviceModel& device = machine.devices[0];
    EXPECT_EQ(device.memory_bytes, 1 << 24);
    EXPECT_TRUE(positive(device.rate(precision)));
    EXPECT_EQ(device.rate(precision == Element::fp64 ? Element::fp32 : Element::fp64), -1)
        << "nobody asked for the other precision";
    for (const LinkRate& link : {device.host_to_device, device.device_to_host}) {
      EXPECT_TRUE(positive(link.bytes_per_second));
      EXPECT_TRUE(positive(link.latency_seconds));
    }
    std::multiset<std::pair<std::string, std::vector<Element>>> measured;
    for (const KernelRate& kernel : device.kernels) {
      EXPECT_TRUE(positive(kernel.flops)) << kernel.operation;
      EXPECT_TRUE(positive(kernel.seconds)) << kernel.operation;
      measured.emplace(kernel.operation, kernel.elements);
    }
    const bool gpu = device.kind == DeviceKind::gpu;
    EXPECT_EQ(measured.size(), 2u * (gpu ? 9 : 5));
    const auto times = [&](const char* operation, std::vector<Element> elements) {
      return measured.count({operation, std::move(elements)});
    };
    EXPECT_EQ(times("potrf", {precision, Element::fp64}), 2u);
    EXPECT_EQ(times("trsm", {precision, precision}), 2u);
    EXPECT_EQ(times("syrk", {precision, precision}), 2u);
    EXPECT_EQ(times("gemm", {precision, precision, precision}), 2u);
    EXPECT_EQ(times("covariance", {precision, precision, precision}), 2u);
    EXPECT_EQ(times("getrf", {precision, Element::int64, Element::fp64}), gpu ? 2u : 0u);
    EXPECT_EQ(times("lu_update", {precision, precision, Element::int64}), gpu ? 2u : 0u);
  }
}

TEST_P(Calibrate, MeasuresAllDevices) {
  const std::string text = devices_text(GetParam(), 2);
  if (text.empty()) GTEST_SKIP() << "fewer than two GPUs";
  const Machine machine =
      calibrate(without_rates(calibration_options_of(text)), {8}, Element::fp64, 0.001);
  ASSERT_EQ(machine.devices.size(), 2u);
  EXPECT_EQ(machine.devices[0].kernels.size(), machine.devices[1].kernels.size());
  EXPECT_NE(machine.devices[0].name, machine.devices[1].name);
  for (const DeviceModel& device : machine.devices)
    EXPECT_TRUE(positive(device.rate(Element::fp64))) << device.name;
  EXPECT_TRUE(positive(machine.device_to_device.bytes_per_second));
  EXPECT_TRUE(positive(machine.device_to_device.latency_seconds));
}

TEST_P(Calibrate, WhatTheHostDoesIsMeasuredForDevicesThatDoNotRunHostCode) {
  RunOptions options = calibration_options_of(GetParam());
  const bool gpu = !DeviceSet(options).all_on_host();
  Machine machine = calibrate(options, {8}, Element::fp64, 0.001);
  EXPECT_EQ(positive(machine.devices[0].staging.bytes_per_second), gpu);
  EXPECT_EQ(positive(machine.pinning_bytes_per_second), gpu);
  if (gpu) return;
  EXPECT_EQ(machine.devices[0].staging.bytes_per_second, 0);
  EXPECT_EQ(machine.pinning_bytes_per_second, 0);
}

TEST(CalibratePinned, MeasuresPanelsOfLuWhereTwoHaveRoom) {
  const PinnedBackend backend;
  const RunOptions options = calibration_options_of("host", 2'600'000);
  DeviceSet devices(backend, {0}, options);
  // Two complex panels of 200 columns do not have twice as many rows there.
  const Machine machine = calibrate_devices(devices, options, {8, 16, 200}, Element::fp64, 0.001);
  std::vector<double> works;
  for (const KernelRate& rate : machine.devices[0].kernels) {
    const bool of_lu = rate.operation == "getrf" || rate.operation == "lu_update";
    if (!of_lu) continue;
    EXPECT_TRUE(positive(rate.seconds)) << rate.operation;
    EXPECT_TRUE(rate.share > 0 && rate.share <= 1) << rate.operation;
    works.push_back(rate.flops);
  }
  // getrf and lu_update, real and complex, which count four times, of panels of 256 and 512 rows.
  const auto work_of_getrf = [](double rows, double b) {
    return b * b * (rows - b / 3) - b * b / 2 - b / 6;
  };
  ASSERT_EQ(works.size(), 10u);
  EXPECT_NEAR(works[8], work_of_getrf(2'600'000 / 3 / 1600, 200), 1e-6);
  EXPECT_NEAR(works[0], work_of_getrf(256, 8), 1e-6);
  EXPECT_NEAR(works[2], 4 * works[0], 1e-6);
  EXPECT_NEAR(works[4], work_of_getrf(512, 16), 1e-6);
  EXPECT_NEAR(works[5], 16 * 16 * 15 + 2.0 * (512 - 16) * 16 * 16, 1e-6);
}

TEST(CalibratePinned, MeasuresTheBounceBuffersOfARealRing) {
  const PinnedBackend backend;
  for (const std::int64_t budget : {std::int64_t{256}, std::int64_t{1} << 24}) {
    RunOptions options = calibration_options_of("host", budget);
    const DeviceModel nominal = DeviceSet(backend, {0, 1}, options).machine().devices[0];
    EXPECT_TRUE(positive(nominal.staging.bytes_per_second)) << "before anything is measured";
    // A rate that nothing can have: what is not measured keeps it.
    Machine rates;
    rates.devices = {nominal};
    rates.devices[0].staging = {1, 1};
    rates.pinning_bytes_per_second = 1;
    options.rates = rates;
    DeviceSet devices(backend, {0, 1}, options);
    ASSERT_EQ(devices.machine().devices[1].staging.bytes_per_second, 1) << "not taken over";
    ASSERT_EQ(devices.machine().pinning_bytes_per_second, 1);
    const std::int64_t copies = backend.ledger().copies;
    const Machine machine = calibrate_devices(devices, options, {2}, Element::fp64, 0.001);
    EXPECT_GT(backend.ledger().copies, copies);
    for (const DeviceModel& device : machine.devices) {
      EXPECT_TRUE(positive(device.staging.bytes_per_second));
      EXPECT_TRUE(positive(device.staging.latency_seconds));
      EXPECT_NE(device.staging.bytes_per_second, 1);
      EXPECT_EQ(device.bounce_buffers, RingShape().slots);
      EXPECT_EQ(device.bounce_buffer_bytes, RingShape().slot_bytes);
    }
    EXPECT_TRUE(positive(machine.pinning_bytes_per_second));
    EXPECT_NE(machine.pinning_bytes_per_second, 1);
  }
  EXPECT_EQ(backend.ledger().pinned_bytes, 0) << "and lets go of it";
}

TEST(CalibratePinned, RatesWithoutTheHostsLeaveTheNominalOnes) {
  const PinnedBackend backend;
  RunOptions options = calibration_options_of("host");
  const Machine nominal = DeviceSet(backend, {0}, options).machine();
  Machine rates = nominal;
  rates.devices[0].staging = {};
  rates.pinning_bytes_per_second = 0;
  options.rates = rates;
  const Machine machine = DeviceSet(backend, {0}, options).machine();
  EXPECT_EQ(machine.devices[0].staging.bytes_per_second,
            nominal.devices[0].staging.bytes_per_second);
  EXPECT_EQ(machine.pinning_bytes_per_second, nominal.pinning_bytes_per_second);
  options.rates->devices[0].staging = {1e9, 0};
  EXPECT_EQ(DeviceSet(host_backend(), {0}, options).machine().devices[0].staging.bytes_per_second,
            0)
      << "what runs host code needs none";
}

template <class F>
void expect_error(ErrorKind kind, F call) {
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
  }
}

TEST(CalibrateErrors, AreSaid) {
  expect_error(ErrorKind::misuse, [] { (void)calibrate(calibration_options_of("host"), {}); });
  for (const std::int64_t tile : {1, 0, -8}) {
    expect_error(ErrorKind::misuse, [&] {
      (void)calibrate(calibration_options_of("host"), {8, tile});
    });
  }
  expect_error(ErrorKind::memory,
               [] { (void)calibrate(calibration_options_of("host", 1 << 16), {1024}); });
  expect_error(ErrorKind::misuse,
               [] { (void)calibrate(calibration_options_of("host"), {8}, Element::fp16, 0.001); });
  RunOptions cancelled = calibration_options_of("host");
  cancelled.progress = [](const Progress&) { return false; };
  expect_error(ErrorKind::cancelled, [&] { (void)calibrate(cancelled, {8}); });
}

TEST(CalibrateErrors, DevicesOfTwoKindsAreMeasuredOneKindAtATime) {
  try {
    (void)calibrate(calibration_options_of("host:1+reference:1"), {8}, Element::fp64, 0.001);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::misuse);
    EXPECT_NE(std::string(error.what()).find("host:0"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("reference:0"), std::string::npos) << error.what();
  }
}

TEST(CalibrateErrors, AVerySmallDeviceIsMeasuredToo) {
  // Less than the transfers that are timed elsewhere.
  EXPECT_NO_THROW((void)calibrate(calibration_options_of("host", 256), {2}, Element::fp64, 0.001));
}

// ---- devices whose clock is made up: what is measured is known

constexpr std::int64_t kClockTile = 4;
constexpr double kClockFlops = 2 * kClockTile * kClockTile * kClockTile;
/// GEMMs on a device that stays hot, in flop/s.
constexpr double kHotRate = kClockFlops / ClockBackend::kGemmSeconds;

Machine calibrated_clocks(const std::vector<double>& slowness, int queues = 2,
                          const std::vector<std::int64_t>& tiles = {kClockTile}, double drift = 0) {
  const ClockBackend backend(slowness, drift);
  RunOptions options = calibration_options_of("host");
  options.compute_queues = queues;
  std::vector<int> indices(slowness.size());
  std::iota(indices.begin(), indices.end(), 0);
  DeviceSet devices(backend, indices, options);
  return calibrate_devices(devices, options, tiles, Element::fp64, 0.5);
}

const KernelRate& rate_of(const DeviceModel& device, const std::string& operation) {
  return *std::find_if(device.kernels.begin(), device.kernels.end(),
                       [&](const KernelRate& k) { return k.operation == operation; });
}

TEST(CalibrateClocks, TheRateIsThatOfAHotDevice) {
  for (const int queues : {1, 2, 3}) {
    const DeviceModel device = calibrated_clocks({1}, queues).devices[0];
    EXPECT_NEAR(device.rate(Element::fp64), kHotRate, 0.01 * kHotRate);
    // One call at a time is as fast as a burst, and would be predicted to remain so.
    const KernelRate& gemm = rate_of(device, "gemm");
    EXPECT_NEAR(gemm.seconds, ClockBackend::kGemmSeconds, 0.01 * ClockBackend::kGemmSeconds);
    EXPECT_NEAR(gemm.share, 1, 1e-12);
    EXPECT_LE(gemm.share, 1);
  }
}

TEST(CalibrateClocks, SharesAreMeasuredOnAHotDevice) {
  const DeviceModel device = calibrated_clocks({1}).devices[0];
  const KernelRate& solve = rate_of(device, "trsm");
  EXPECT_NEAR(solve.seconds, ClockBackend::kSolveSeconds, 1e-9 * ClockBackend::kSolveSeconds);
  EXPECT_NEAR(solve.share, ClockBackend::kSolveShare, 0.04);
  EXPECT_EQ(rate_of(calibrated_clocks({1}, 1).devices[0], "trsm").share, 0) << "nothing beside it";
}

TEST(CalibrateClocks, AKernelThatAddsMoreToOthersThanItTakesAloneCostsThat) {
  const KernelRate update = rate_of(calibrated_clocks({1}).devices[0], "syrk");
  constexpr double kAdded = ClockBackend::kUpdateShare * ClockBackend::kUpdateSeconds;
  EXPECT_NEAR(update.seconds, kAdded, 0.05 * kAdded);
  EXPECT_NEAR(update.share, 1, 1e-12);
  const KernelRate alone = rate_of(calibrated_clocks({1}, 1).devices[0], "syrk");
  EXPECT_NEAR(alone.seconds, ClockBackend::kUpdateSeconds, 1e-9 * ClockBackend::kUpdateSeconds)
      << "nothing beside it";
}

// A product takes as long in each of the sizes here.
TEST(CalibrateClocks, NoSizeIsSlowerBecauseItComesLater) {
  const DeviceModel device = calibrated_clocks({1}, 2, {2, 4, 8}, 0.02).devices[0];
  std::vector<double> seconds;
  for (const KernelRate& kernel : device.kernels) {
    if (kernel.operation == "gemm") seconds.push_back(kernel.seconds);
  }
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_GT(seconds[0], 1.05 * ClockBackend::kGemmSeconds) << "the device got no slower";
  for (const double s : seconds) EXPECT_NEAR(s, seconds[0], 0.005 * seconds[0]);
}

TEST(CalibrateClocks, EachDeviceHasItsOwnRate) {
  const std::vector<double> slowness{1.5, 1, 4};
  const Machine machine = calibrated_clocks(slowness);
  ASSERT_EQ(machine.devices.size(), slowness.size());
  for (std::size_t d = 0; d < slowness.size(); ++d) {
    const DeviceModel& device = machine.devices[d];
    EXPECT_NEAR(device.rate(Element::fp64) * slowness[d], kHotRate, 0.01 * kHotRate) << d;
    for (const auto& [operation, seconds] : {std::pair{"gemm", ClockBackend::kGemmSeconds},
                                             std::pair{"trsm", ClockBackend::kSolveSeconds}}) {
      const KernelRate& kernel = rate_of(device, operation);
      EXPECT_NEAR(kernel.seconds, slowness[d] * seconds, 0.01 * slowness[d] * seconds) << d;
      EXPECT_EQ(kernel.share, rate_of(machine.devices[0], operation).share);
    }
  }
}

TEST(CalibrateClocks, ManyProductsArePredictedToTakeWhatTheyTakeHot) {
  constexpr int kProducts = 60;
  BlockTable blocks;
  blocks.add({.name = "A",
              .rows = kClockTile * kProducts,
              .cols = 3 * kClockTile,
              .tile_rows = kClockTile,
              .tile_cols = kClockTile});
  std::vector<FlatTask> tasks;
  for (int i = 0; i < kProducts; ++i) {
    tasks.push_back(
        flat_task(gemm, {{{0, i, 0}, Hint::last_write}, {{0, i, 1}}, {{0, i, 2}}}, i % 2));
  }
  const auto schedule =
      std::make_shared<const Schedule>(schedule_of(std::move(blocks), 2, {3}, {tasks}));
  for (const int queues : {1, 2, 3}) {
    const Trace trace = simulate(Plan(schedule, calibrated_clocks({1, 3}, queues), {}));
    const double slower = 3 * ClockBackend::kGemmSeconds * kProducts / 2;
    EXPECT_NEAR(trace.seconds, slower, 0.01 * slower) << queues;
  }
}

// ---- the file

class MachineFile : public ::testing::Test {
 protected:
  MachineFile()
      : path(std::filesystem::temp_directory_path() /
             ("strata_machine_test_" + std::to_string(::getpid()) + ".json")) {}
  ~MachineFile() override { std::filesystem::remove(path); }

  void write(const std::string& text) const { std::ofstream(path) << text; }
  [[nodiscard]] std::string read() const {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static Machine machine() {
    Machine machine = Machine::emulated(2, 1 << 30);
    machine.devices[0].kernels = {
        {"gemm", {Element::fp16, Element::bf16, Element::fp32}, 1.0 / 3, 1e-9, 0.7},
        {"potrf", {Element::fp32, Element::fp64}, 5e17, 0.1}};
    for (int e = 0; e < kElements; ++e)
      machine.devices[0].rate(static_cast<Element>(e)) = 1e12 / (e + 3);
    machine.devices[1].kind = DeviceKind::cpu;
    machine.devices[1].rate(Element::fp32) = 0;  // not measured
    machine.devices[1].compute_queues = 7;
    machine.devices[1].device_to_host = {12'345.678, 0};
    machine.devices[0].staging = {1e10 / 7, 1e-5};
    machine.devices[0].bounce_buffers = 5;
    machine.devices[0].bounce_buffer_bytes = (std::int64_t{1} << 40) + 1;
    machine.pinning_bytes_per_second = 1e10 / 3;
    return machine;
  }

  std::filesystem::path path;
};

void expect_equal(const LinkRate& a, const LinkRate& b) {
  EXPECT_EQ(a.bytes_per_second, b.bytes_per_second);
  EXPECT_EQ(a.latency_seconds, b.latency_seconds);
}

void expect_equal(const Machine& in, const Machine& out);

TEST_F(MachineFile, ComesBackBitForBit) {
  Machine out = machine();
  for (const LinkRate link : {LinkRate{}, LinkRate{1e11 / 3, 1e-6}}) {
    out.device_to_device = link;
    write_machine(path, out);
    expect_equal(read_machine(path), out);
  }
}

TEST_F(MachineFile, OfBeforeLinksWereMeasuredIsRead) {
  write_machine(path, machine());
  std::string text = read();
  const std::string link = "\"device_to_device\": null,";
  ASSERT_NE(text.find(link), std::string::npos) << text;
  write(text.erase(text.find(link), link.size()));
  expect_equal(read_machine(path), machine());
}

TEST_F(MachineFile, OfBeforeTheHostWasMeasuredIsRead) {
  Machine before = machine();
  before.devices[0].staging = {};
  before.devices[0].bounce_buffers = DeviceModel().bounce_buffers;
  before.devices[0].bounce_buffer_bytes = DeviceModel().bounce_buffer_bytes;
  before.pinning_bytes_per_second = 0;
  write_machine(path, before);
  const std::string text = read();
  const std::regex first("\"bounce_buffer[^,]*,");
  const std::regex last(",\\s*\"(staging|pinning_bytes_per_second)\": [^,\\n}]*");
  const std::string without = std::regex_replace(std::regex_replace(text, first, ""), last, "");
  for (const char* word : {"staging", "bounce", "pinning"}) {
    EXPECT_NE(text.find(word), std::string::npos);
    EXPECT_EQ(without.find(word), std::string::npos) << without;
  }
  write(without);
  expect_equal(read_machine(path), before);
}

void expect_equal(const Machine& in, const Machine& out) {
  EXPECT_EQ(in.pinning_bytes_per_second, out.pinning_bytes_per_second);
  EXPECT_EQ(in.host_memory_bytes, out.host_memory_bytes);
  expect_equal(in.device_to_device, out.device_to_device);
  ASSERT_EQ(in.devices.size(), out.devices.size());
  for (std::size_t d = 0; d < out.devices.size(); ++d) {
    const DeviceModel& a = in.devices[d];
    const DeviceModel& b = out.devices[d];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.memory_bytes, b.memory_bytes);
    EXPECT_EQ(a.compute_queues, b.compute_queues);
    expect_equal(a.host_to_device, b.host_to_device);
    expect_equal(a.device_to_host, b.device_to_host);
    expect_equal(a.staging, b.staging);
    EXPECT_EQ(a.bounce_buffers, b.bounce_buffers);
    EXPECT_EQ(a.bounce_buffer_bytes, b.bounce_buffer_bytes);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.flops_per_second, b.flops_per_second);
    ASSERT_EQ(a.kernels.size(), b.kernels.size());
    for (std::size_t k = 0; k < b.kernels.size(); ++k) {
      EXPECT_EQ(a.kernels[k].operation, b.kernels[k].operation);
      EXPECT_EQ(a.kernels[k].elements, b.kernels[k].elements);
      EXPECT_EQ(a.kernels[k].flops, b.kernels[k].flops);
      EXPECT_EQ(a.kernels[k].seconds, b.kernels[k].seconds);
      EXPECT_EQ(a.kernels[k].share, b.kernels[k].share);
    }
  }
}

void expect_input_error(const std::filesystem::path& path, const std::string& what) {
  try {
    (void)read_machine(path);
    ADD_FAILURE() << "read " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << what;
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

TEST_F(MachineFile, ThatIsMissingOrNoSuchFileIsAnInputError) {
  expect_input_error(path, "a missing file");
  expect_input_error(std::filesystem::temp_directory_path(), "a directory");
  for (const char* text :
       {"", "{}", "[]", "null", "7", "{\"format\":\"strata machine 2\"}",
        "{\"format\":\"strata machine 1\"}", "{\"format\":1}", "not json", "\xff\xfe"}) {
    write(text);
    expect_input_error(path, text);
  }
}

TEST_F(MachineFile, ThatIsCutShortAnywhereIsAnInputError) {
  write_machine(path, machine());
  const std::string whole = read();
  const std::size_t end = whole.rfind('}');
  for (std::size_t length = 0; length <= end; ++length) {
    write(whole.substr(0, length));
    expect_input_error(path, whole.substr(0, length));
  }
}

TEST_F(MachineFile, WithRatesThatAreNoRatesIsAnInputError) {
  write_machine(path, machine());
  const std::string whole = read();
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const char* value : {"0", "-1.0", "1e999", "null", "\"fast\""}) {
    write(replaced("\"bytes_per_second\": 50000000000.0",
                   "\"bytes_per_second\": " + std::string(value)));
    expect_input_error(path, value);
    write(replaced("\"seconds\": 1e-09", "\"seconds\": " + std::string(value)));
    expect_input_error(path, value);
  }
  for (const char* count : {"0", "-5", "null", "\"five\""}) {
    write(replaced("\"bounce_buffers\": 5", "\"bounce_buffers\": " + std::string(count)));
    expect_input_error(path, count);
  }
  write(replaced("\"pinning_bytes_per_second\": ", "\"pinning_bytes_per_second\": -"));
  expect_input_error(path, "page-locking backwards");
  write(replaced("\"latency_seconds\": 5e-06", "\"latency_seconds\": -1"));
  expect_input_error(path, "a negative latency");
  for (const char* name : {"\"fp17\"", "\"\"", "7", "null"}) {
    write(replaced("\"bf16\"", name));
    expect_input_error(path, std::string("an element called ") + name);
  }
  write(replaced("\"int64\":", "\"int65\":"));
  expect_input_error(path, "the rate of no element");
  for (const char* value : {"-1", "1e999", "null", "\"fast\""}) {
    write(replaced("\"fp64\": 333333333333.3333", "\"fp64\": " + std::string(value)));
    expect_input_error(path, value);
  }
  write(replaced("\"gemm\"", "7"));
  expect_input_error(path, "a number for a name");
}

TEST_F(MachineFile, WithMoreOrFewerOperandsThanThereCanBeIsAnInputError) {
  for (const std::size_t operands : {std::size_t{0}, std::size_t{9}, std::size_t{1000}}) {
    Machine wrong = machine();
    wrong.devices[0].kernels[0].elements.assign(operands, Element::fp64);
    write_machine(path, wrong);
    expect_input_error(path, std::to_string(operands) + " operands");
  }
  Machine most = machine();
  most.devices[0].kernels[0].elements.assign(8, Element::fp64);
  write_machine(path, most);
  expect_equal(read_machine(path), most);
}

TEST_F(MachineFile, ThatCannotBeWrittenIsAStorageError) {
  expect_error(ErrorKind::storage,
               [] { write_machine("/nonexistent/directory/machine.json", machine()); });
}

TEST(CalibrateStorage, MeasuresFilesThatAreGoneAndIsKeptWithTheRates) {
  const test::Scratch scratch;
  const std::vector<std::string> directories{scratch.path("a"), scratch.path("b")};
  std::string how;
  const StorageModel model = calibrate_storage(directories, &how, 3 << 20);
  for (const LinkRate& link : {model.read, model.write}) {
    EXPECT_GT(link.bytes_per_second, 0);
    EXPECT_GT(link.latency_seconds, 0);
  }
  EXPECT_NE(how.find(directories[1]), std::string::npos);
  for (const std::string& directory : directories)
    EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_THROW((void)calibrate_storage({scratch.path("none/a")}), Error);
  EXPECT_THROW((void)calibrate_storage({}), Error);

  Machine machine = Machine::emulated(1, 1 << 20);
  const std::string path = scratch.path("rates.json");
  write_machine(path, machine);
  EXPECT_FALSE(read_machine(path).storage);
  machine.storage = model;
  write_machine(path, machine);
  const Machine again = read_machine(path);
  ASSERT_TRUE(again.storage);
  EXPECT_EQ(again.storage->read.bytes_per_second, model.read.bytes_per_second);
  EXPECT_EQ(again.storage->write.latency_seconds, model.write.latency_seconds);

  // It takes the place of round figures, and host memory its share.
  RunOptions options;
  options.storage.directories = directories;
  options.host_memory_bytes = 1000;
  add_storage(machine, options);
  EXPECT_EQ(machine.storage->host_bytes, 1000);
  EXPECT_EQ(machine.storage->read.bytes_per_second, 4e9) << "two disks";
  options.rates = again;
  add_storage(machine, options);
  EXPECT_EQ(machine.storage->read.bytes_per_second, model.read.bytes_per_second);
  machine.devices[0].kind = DeviceKind::cpu;
  add_storage(machine, options);
  EXPECT_EQ(machine.storage->host_bytes, 0);
  EXPECT_EQ(machine.devices[0].memory_bytes, 1000) << "the host's is where it computes";
  options.device_memory_bytes = 300;
  add_storage(machine, options);
  EXPECT_EQ(machine.storage->host_bytes, 700);
  options.device_memory_bytes = 600;
  add_storage(machine, options);
  EXPECT_EQ(machine.storage->host_bytes, 0) << "less than the device has serves nothing";
}

}  // namespace
}  // namespace strata::test
