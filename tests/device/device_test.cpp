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
