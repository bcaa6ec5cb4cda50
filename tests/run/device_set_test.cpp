// Which devices a text names, and what they are opened with.

#include "run/device_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/bytes.hpp"
#include "device/device_host.hpp"
#include "strata/detect.hpp"
#include "strata/error.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/pinned_backend.hpp"

namespace strata::test {
namespace {

TEST(ChooseDevices, ReadsHostTexts) {
  for (const auto& [text, count] : std::vector<std::pair<std::string, std::size_t>>{
           {"host", 1}, {"host:1", 1}, {"host:2", 2}, {"host:64", 64}, {"reference:3", 3}}) {
    const DeviceChoice choice = choose_devices(text);
    EXPECT_EQ(choice.backend, text.substr(0, text.find(':')));
    ASSERT_EQ(choice.indices.size(), count) << text;
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(choice.indices[i], static_cast<int>(i));
  }
}

TEST(ChooseDevices, RefusesOtherTextAndNamesIt) {
  for (const char* text :
       {"nonsense", "host:", "host:0", "host:65", "host:-1", "host:2,3", "host:2,", "host:two",
        "host:2x", "host: 2", "host:99999999999", "Host", "host;2", ":", ":2", "gpu:0", " host"}) {
    try {
      (void)choose_devices(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse) << text;
      EXPECT_NE(std::string(error.what()).find("'" + std::string(text) + "'"), std::string::npos)
          << error.what();
    }
  }
}

TEST(ChooseDevices, ReadsOrRefusesCudaTexts) {
  // Without a GPU there is no such device, whatever else the text says.
  const bool gpu = cuda_backend() != nullptr;
  for (const char* text : {"cuda:", "cuda:0,0", "cuda:-1", "cuda:0,", "cuda:x"}) {
    try {
      (void)choose_devices(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), gpu ? ErrorKind::misuse : ErrorKind::device) << text;
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
  if (gpu) {
    EXPECT_EQ(choose_devices("cuda:0").indices, std::vector<int>{0});
    EXPECT_EQ(choose_devices("cuda").indices, std::vector<int>{0});
    EXPECT_EQ(choose_devices("cuda:1,0").indices, (std::vector<int>{1, 0}));
    EXPECT_THROW((void)detect_machine("cuda:1000"), Error);
  } else {
    EXPECT_THROW((void)choose_devices("cuda:0"), Error);
  }
}

TEST(StartDevices, TakesWhatDetectionTakes) {
  EXPECT_NO_THROW(start_devices("host:3"));
  EXPECT_NO_THROW(start_devices());
  EXPECT_THROW(start_devices("host:x"), Error);
  EXPECT_THROW(start_devices("cuda:1000"), Error);
  if (cuda_backend() != nullptr) {
    EXPECT_NO_THROW(start_devices("cuda:0"));
    EXPECT_NO_THROW(start_devices("cuda:0")) << "and again";
  }
}

TEST(ChooseDevices, AutoIsEveryGpuElseTheHost) {
  const Backend* cuda = cuda_backend();
  for (const char* text : {"auto", ""}) {
    const DeviceChoice choice = choose_devices(text);
    EXPECT_EQ(choice.backend, cuda != nullptr ? "cuda" : "host");
    EXPECT_EQ(choice.indices.size(), cuda != nullptr ? cuda->devices().size() : 1);
  }
}

TEST(ChooseDevices, JoinsPartsOfSeveralBackends) {
  const auto read = [](const std::string& text) {
    std::vector<std::pair<std::string, std::vector<int>>> parts;
    for (const DeviceChoice& choice : choose_all_devices(text))
      parts.emplace_back(choice.backend, choice.indices);
    return parts;
  };
  using Parts = std::vector<std::pair<std::string, std::vector<int>>>;
  EXPECT_EQ(read("host:2"), (Parts{{"host", {0, 1}}}));
  EXPECT_EQ(read("host:2+reference:3"), (Parts{{"host", {0, 1}}, {"reference", {0, 1, 2}}}));
  EXPECT_EQ(read("reference+host"), (Parts{{"reference", {0}}, {"host", {0}}}));
  EXPECT_EQ(read("").size(), 1U) << "as auto";
  EXPECT_EQ(read("auto").size(), 1U);
  if (cuda_backend() != nullptr) {
    EXPECT_EQ(read("cuda:0+host:1"), (Parts{{"cuda", {0}}, {"host", {0}}}));
    EXPECT_EQ(read("host:2+cuda"), (Parts{{"host", {0, 1}}, {"cuda", {0}}}));
  }
}

TEST(ChooseDevices, RefusesJoinedTextsAndNamesThePartThatIsWrong) {
  const ErrorKind no_gpu = cuda_backend() != nullptr ? ErrorKind::misuse : ErrorKind::device;
  const std::vector<std::tuple<std::string, std::string, ErrorKind>> refused{
      {"host:2+host:1", "'host:2+host:1' names host twice", ErrorKind::misuse},
      {"host+reference+host", "'host+reference+host' names host twice", ErrorKind::misuse},
      {"host:1+nonsense", "'nonsense'", ErrorKind::misuse},
      {"host:0+reference", "'host:0'", ErrorKind::misuse},
      {"reference:65+host", "'reference:65'", ErrorKind::misuse},
      {"host:2 +reference", "'host:2 '", ErrorKind::misuse},
      {"+", "'+'", ErrorKind::misuse},
      {"host:1+", "'host:1+'", ErrorKind::misuse},
      {"+host:1", "'+host:1'", ErrorKind::misuse},
      {"host:1++reference:1", "'host:1++reference:1'", ErrorKind::misuse},
      {"cuda:0,0+host:1", "'cuda:0,0'", no_gpu},
      {"host:1+cuda:x", "'cuda:x'", no_gpu},
  };
  for (const auto& [text, piece, kind] : refused) {
    try {
      (void)choose_all_devices(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << text;
      EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
    }
  }
  if (cuda_backend() == nullptr) {
    EXPECT_THROW((void)choose_all_devices("cuda:0+host:1"), Error) << "there is no GPU";
    EXPECT_THROW((void)detect_machine("cuda:0+host:1"), Error);
  }
}

RunOptions device_options_of(const std::string& devices, std::int64_t budget) {
  RunOptions options;
  options.devices = devices;
  options.device_memory_bytes = budget;
  return options;
}

TEST(DeviceSet, OpensDevicesWithTheirBudgets) {
  DeviceSet set(device_options_of("host:3", 4_MiB));
  ASSERT_EQ(set.count(), 3);
  ASSERT_EQ(set.machine().devices.size(), 3u);
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(set.device(d).budget_bytes(), 4_MiB);
    EXPECT_EQ(set.device(d).description().name, "host:" + std::to_string(d));
    EXPECT_EQ(set.machine().devices[static_cast<std::size_t>(d)].name, "host:" + std::to_string(d));
    EXPECT_GE(set.machine().devices[static_cast<std::size_t>(d)].compute_queues, 1);
  }
}

TEST(DeviceSet, OpensDevicesOfSeveralBackends) {
  DeviceSet set(device_options_of("host:2+reference:1", 4_MiB));
  ASSERT_EQ(set.count(), 3);
  const std::vector<std::string> names{"host:0", "host:1", "reference:0"};
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(set.machine().devices[static_cast<std::size_t>(d)].name,
              names[static_cast<std::size_t>(d)]);
    EXPECT_EQ(set.device(d).budget_bytes(), 4_MiB);
  }
  EXPECT_EQ(&set.backend(0), &host_backend());
  EXPECT_EQ(&set.backend(1), &host_backend());
  EXPECT_EQ(&set.backend(2), &reference_backend());
  EXPECT_TRUE(set.all_on_host());
  EXPECT_FALSE(set.linked()) << "two backends of one kind have no copies between them";
  EXPECT_TRUE(DeviceSet(device_options_of("host:2", 4_MiB)).linked());
}

TEST(DeviceSet, TakesNoLinkBetweenBackendsOfOneKind) {
  Machine rates = Machine::emulated(1, 1);
  rates.devices[0].name = "host:0";
  rates.devices[0].kind = DeviceKind::cpu;
  rates.device_to_device = {123, 0.5};
  RunOptions options = device_options_of("host:1+reference:1", 1_MiB);
  options.rates = rates;
  EXPECT_EQ(DeviceSet(options).machine().device_to_device.bytes_per_second, 0);
}

TEST(DeviceSet, RefusesToBeEmpty) {
  EXPECT_THROW(DeviceSet(std::vector<DevicePlace>{}, RunOptions{}), Error);
  EXPECT_THROW(DeviceSet(host_backend(), {}, RunOptions{}), Error);
}

TEST(DeviceSet, GivesEachDeviceTheRingOfItsOwnAndKnowsWhoPins) {
  const PinnedBackend pinned;
  DeviceSet set({{&host_backend(), 0}, {&pinned, 0}, {&pinned, 1}}, device_options_of("", 1_MiB));
  EXPECT_FALSE(set.all_on_host());
  EXPECT_EQ(&set.pinning_device(), &set.device(1));
  EXPECT_NE(&set.ring(1, 100), &set.ring(2, 100));
  DeviceSet host({{&host_backend(), 0}}, device_options_of("", 1_MiB));
  EXPECT_TRUE(host.all_on_host());
  EXPECT_EQ(&host.pinning_device(), &host.device(0));
}

TEST(DeviceSet, SharesFreeMemoryWhereNoBudgetIsGiven) {
  const Machine machine = detect_machine("host:4");
  std::int64_t sum = 0;
  for (const DeviceModel& device : machine.devices) sum += device.memory_bytes;
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, machine.host_memory_bytes);
}

TEST(DeviceSet, RefusesABudgetPastWhatIsFree) {
  try {
    DeviceSet set(device_options_of("host", std::int64_t{1} << 60));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find(format_bytes(std::int64_t{1} << 60)),
              std::string::npos)
        << error.what();
  }
}

TEST(DeviceSet, RefusesOptionsThatMakeNoDevice) {
  RunOptions options = device_options_of("host", -1);
  EXPECT_THROW(DeviceSet set(options), Error);
  options = device_options_of("host", 1_MiB);
  options.compute_queues = -1;
  EXPECT_THROW(DeviceSet set(options), Error);
  options.compute_queues = 17;
  EXPECT_THROW(DeviceSet set(options), Error);
  options.compute_queues = 16;
  EXPECT_NO_THROW(DeviceSet set(options));
}

/// The layout of one device with these queues.
PlanLayout layout_of(const std::vector<QueueRole>& roles) {
  PlanLayout layout;
  for (const QueueRole role : roles) layout.queues.push_back({0, role, 0});
  layout.devices.resize(1);
  layout.devices[0].queue_count = static_cast<int>(roles.size());
  return layout;
}

TEST(DeviceSet, KeepsArenasAndQueuesFromRunToRun) {
  DeviceSet set(device_options_of("host:2", 1_MiB));
  std::byte* arena = set.arena(0, 600_KiB);
  EXPECT_EQ(set.arena(0, 100_KiB), arena);
  EXPECT_EQ(set.device(0).allocated_bytes(), 600_KiB);
  EXPECT_EQ(set.device(1).allocated_bytes(), 0);
  (void)set.arena(0, 900_KiB);  // the old and the new one together would not fit
  EXPECT_EQ(set.device(0).allocated_bytes(), 900_KiB);
  EXPECT_THROW((void)set.arena(0, 2_MiB), Error);
  EXPECT_NO_THROW((void)set.arena(0, 1_MiB));
  const std::vector<QueueRole> roles{QueueRole::copy_in, QueueRole::copy_out, QueueRole::compute,
                                     QueueRole::compute};
  const std::vector<Queue*> queues = set.queues(0, layout_of(roles));
  ASSERT_EQ(queues.size(), 4u);
  EXPECT_EQ(std::set<Queue*>(queues.begin(), queues.end()).size(), 4u);
  EXPECT_EQ(set.queues(0, layout_of(roles)), queues);
  EXPECT_EQ(set.queues(0, layout_of({QueueRole::copy_in, QueueRole::copy_out, QueueRole::compute})),
            std::vector(queues.begin(), queues.end() - 1));
  // The one of high priority is apart, wherever it stands.
  const std::vector<Queue*> urgent =
      set.queues(0, layout_of({QueueRole::copy_in, QueueRole::urgent, QueueRole::peer_in}));
  ASSERT_EQ(urgent.size(), 3u);
  EXPECT_EQ(urgent[0], queues[0]);
  EXPECT_EQ(std::count(queues.begin(), queues.end(), urgent[1]), 0);
  EXPECT_EQ(urgent[2], queues[1]);
  EXPECT_EQ(set.queues(0, layout_of({QueueRole::urgent}))[0], urgent[1]);
}

TEST(DeviceSet, TakesMeasuredRatesOfTheSameKindOnly) {
  Machine rates = Machine::emulated(1, 1);
  rates.devices[0].name = "cuda:0";
  rates.devices[0].host_to_device.bytes_per_second = 111;
  rates.devices.push_back(rates.devices[0]);
  rates.devices[1].name = "host:5";
  rates.devices[1].kind = DeviceKind::cpu;
  rates.devices[1].host_to_device.bytes_per_second = 222;
  rates.devices[1].kernels = {{"gemm", {Element::fp64, Element::fp64, Element::fp64}, 10, 2}};
  RunOptions options = device_options_of("host:2", 1_MiB);
  options.rates = rates;
  const DeviceSet set(options);
  for (const DeviceModel& device : set.machine().devices) {
    EXPECT_EQ(device.host_to_device.bytes_per_second, 222);
    EXPECT_EQ(device.kernels.size(), 1u);
    EXPECT_EQ(device.memory_bytes, 1_MiB) << "budgets are the caller's";
  }
}

TEST(DeviceSet, TakesTheRatesOfTheDeviceOfThatName) {
  Machine rates = Machine::emulated(2, 1);
  for (DeviceModel& device : rates.devices) device.kind = DeviceKind::cpu;
  rates.devices[0].name = "host:1";
  rates.devices[0].rate(Element::fp64) = 111;
  rates.devices[1].name = "host:0";
  rates.devices[1].rate(Element::fp64) = 222;
  RunOptions options = device_options_of("host:3", 1_MiB);
  options.rates = rates;
  const DeviceSet set(options);
  EXPECT_EQ(set.machine().devices[0].rate(Element::fp64), 222);
  EXPECT_EQ(set.machine().devices[1].rate(Element::fp64), 111);
  EXPECT_EQ(set.machine().devices[2].rate(Element::fp64), 111) << "the first of its kind";
}

TEST(DeviceSet, TakesAMeasuredLinkBetweenDevices) {
  RunOptions options = device_options_of("host:2", 1_MiB);
  EXPECT_EQ(DeviceSet(options).machine().device_to_device.bytes_per_second, 0)
      << "one memory, until it is measured";
  Machine rates = Machine::emulated(1, 1);
  rates.devices[0].name = "host:0";
  rates.device_to_device = {123, 0.5};
  options.rates = rates;
  const DeviceSet set(options);
  EXPECT_TRUE(set.linked());
  EXPECT_EQ(set.machine().device_to_device.bytes_per_second, 123);
  EXPECT_EQ(set.machine().device_to_device.latency_seconds, 0.5);
  rates.devices[0].name = "cuda:0";
  options.rates = rates;
  EXPECT_EQ(DeviceSet(options).machine().device_to_device.bytes_per_second, 0) << "another kind";
}

TEST(DeviceSet, SaysWhichKernelsThereAre) {
  const Machine machine = detect_machine("host", 1_MiB);
  ASSERT_TRUE(machine.devices[0].available.has_value());
  std::set<std::pair<std::string, std::vector<Element>>> names;
  for (const KernelName& name : *machine.devices[0].available)
    names.emplace(name.operation, name.elements);
  for (const Element element : {Element::fp64, Element::fp32}) {
    EXPECT_TRUE(names.contains({"gemm", {element, element, element}}));
    EXPECT_TRUE(names.contains({"syrk", {element, element}}));
    EXPECT_TRUE(names.contains({"trsm", {element, element}}));
    EXPECT_TRUE(names.contains({"potrf", {element, Element::fp64}}));
    EXPECT_TRUE(names.contains({"covariance", {element, element, element}}));
  }
  EXPECT_FALSE(names.contains({"gemm", {Element::fp16, Element::fp16, Element::fp16}}));
  EXPECT_FALSE(names.contains({"potrf", {Element::fp64}}));
}

}  // namespace
}  // namespace strata::test
