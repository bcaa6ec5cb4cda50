// The conformance suite for every device that this machine has.

#include <algorithm>

#include "device/device_host.hpp"
#include "kernels/backend/backend.hpp"
#include "tests/device/conformance.hpp"

namespace strata::testing {
namespace {

std::vector<DeviceMaker> available() {
  std::vector<DeviceMaker> makers{{"host", make_host_device, 2}};
  if (const Backend* cuda = cuda_backend(); cuda != nullptr) {
    makers.push_back(
        {"cuda",
         [cuda](int index, std::int64_t budget) { return cuda->make_device(index, budget); },
         std::min(2, static_cast<int>(cuda->devices().size()))});
  }
  return makers;
}

INSTANTIATE_TEST_SUITE_P(Available, DeviceConformance, ::testing::ValuesIn(available()),
                         [](const auto& info) { return info.param.name; });

TEST(HostDevice, IsCalledByItsIndex) {
  const auto device = make_host_device(3, 4_KiB);
  EXPECT_EQ(device->description().name, "host:3");
  EXPECT_EQ(device->budget_bytes(), 4_KiB);
}

/// What a failed or abandoned queue left undone is read by nobody, at whatever time it went wrong
/// and along however many queues; where one failed, all say so.
TEST(HostDevice, WorkBehindAQueueThatSkipsIsSkippedAlongAnyChain) {
  const auto device = make_host_device(0, 1 << 20);
  for (const bool fails : {true, false}) {
    for (const bool late : {true, false}) {
      std::vector<std::unique_ptr<Queue>> queues;
      for (int q = 0; q < 4; ++q) queues.push_back(device->make_queue(QueuePriority::normal));
      std::promise<void> gate;
      int ran = 0;
      queues[0]->submit([opened = gate.get_future().share()] { opened.wait(); });
      if (fails) queues[0]->submit([] { throw Error(ErrorKind::storage, "test", "no sector"); });
      queues[0]->submit([&] { ++ran; });
      if (!fails) queues[0]->abandon();
      if (!late) gate.set_value();
      Event event = queues[0]->record();
      if (!late) event.wait();
      for (std::size_t q = 1; q < queues.size(); ++q) {
        queues[q]->wait(event);
        queues[q]->submit([&] { ++ran; });
        event = queues[q]->record();
      }
      if (late) gate.set_value();
      event.wait();
      EXPECT_EQ(ran, 0) << fails << late;
      for (const auto& queue : queues) {
        std::string why;
        try {
          queue->synchronize();
        } catch (const Error& error) {
          why = error.what();
        }
        EXPECT_EQ(why, fails ? "no sector" : "") << late;
      }
      queues[1]->wait(queues[0]->record());
      queues[1]->submit([&] { ++ran; });
      queues[1]->synchronize();
      EXPECT_EQ(ran, 1) << "usable again";
    }
  }
}

TEST(HostDevice, RefusesANegativeBudget) { EXPECT_THROW((void)make_host_device(0, -1), Error); }

TEST(HostDevice, DescribesTheMachine) {
  const DeviceDescription host = describe_host();
  EXPECT_EQ(host.name, "host:0");
  EXPECT_FALSE(host.model.empty());
  EXPECT_GT(host.memory_bytes, 0);
  EXPECT_GE(host.compute_queues, 1);
}

}  // namespace
}  // namespace strata::testing
