// Backends: what they are called, which devices they make, and that no kernel is missing.

#include "kernels/backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "strata/error.hpp"

namespace strata::testing {
namespace {

std::vector<const Backend*> every_backend() {
  std::vector<const Backend*> backends{&reference_backend(), &host_backend()};
  if (const Backend* cuda = cuda_backend(); cuda != nullptr) backends.push_back(cuda);
  return backends;
}

TEST(Backend, HasEveryKernelInBothPrecisions) {
  for (const Backend* backend : every_backend()) {
    for (int operation = 0; operation < kOperations; ++operation) {
      for (const Precision precision : {Precision::fp64, Precision::fp32}) {
        const auto name = static_cast<Operation>(operation);
        EXPECT_NE(backend->kernels().find(name, precision), nullptr)
            << backend->name() << " " << to_string(name) << " " << to_string(precision);
      }
      EXPECT_EQ(backend->kernels().find(static_cast<Operation>(operation), Precision::fp16),
                nullptr);
    }
  }
}

TEST(Backend, NoTwoEntriesOfATableAreTheSame) {
  for (const Backend* backend : every_backend()) {
    std::vector<KernelFunction> seen;
    for (int operation = 0; operation < kOperations; ++operation) {
      for (const Precision precision : {Precision::fp64, Precision::fp32}) {
        const auto function = backend->kernels().find(static_cast<Operation>(operation), precision);
        EXPECT_EQ(std::count(seen.begin(), seen.end(), function), 0) << backend->name();
        seen.push_back(function);
      }
    }
  }
}

TEST(Backend, HasABatchedPotrfInBothPrecisions) {
  for (const Backend* backend : every_backend()) {
    const BatchFunction fp64 = backend->kernels().find_batched(Precision::fp64);
    const BatchFunction fp32 = backend->kernels().find_batched(Precision::fp32);
    EXPECT_NE(fp64, nullptr) << backend->name();
    EXPECT_NE(fp32, nullptr) << backend->name();
    EXPECT_NE(fp64, fp32) << backend->name();
    EXPECT_EQ(backend->kernels().find_batched(Precision::fp16), nullptr) << backend->name();
  }
}

TEST(Backend, ReachesItsOwnMemory) {
  for (const Backend* backend : every_backend()) {
    const auto device = backend->make_device(0, 1_MiB);
    const Buffer memory = device->allocate(1000);
    EXPECT_TRUE(backend->reaches(0, memory.data(), 1000)) << backend->name();
    EXPECT_TRUE(backend->reaches(0, memory.data() + 500, 500)) << backend->name();
    EXPECT_FALSE(backend->reaches(0, nullptr, 8)) << backend->name();
    const std::vector<std::byte> on_the_heap(1000);
    EXPECT_EQ(backend->reaches(0, on_the_heap.data(), 1000), backend->on_host()) << backend->name();
  }
}

TEST(Backend, KnowsItsNameAndWhereItRuns) {
  EXPECT_EQ(host_backend().name(), "host");
  EXPECT_EQ(reference_backend().name(), "reference");
  EXPECT_TRUE(host_backend().on_host());
  EXPECT_TRUE(reference_backend().on_host());
}

TEST(Backend, DescribesItsDevices) {
  for (const Backend* backend : every_backend()) {
    ASSERT_FALSE(backend->devices().empty());
    EXPECT_FALSE(backend->devices()[0].model.empty());
    EXPECT_GT(backend->devices()[0].memory_bytes, 0);
    EXPECT_EQ(backend->make_device(0, 1_MiB)->description().name, backend->devices()[0].name);
  }
}

TEST(Backend, MakesSeveralHostDevices) {
  const auto first = host_backend().make_device(0, 1_MiB);
  const auto second = host_backend().make_device(5, 2_MiB);
  EXPECT_EQ(second->description().name, "host:5");
  EXPECT_EQ(second->budget_bytes(), 2_MiB);
}

TEST(Backend, RefusesADeviceThatIsNotThere) {
  for (const Backend* backend : every_backend()) {
    try {
      (void)backend->make_device(-1, 1_MiB);
      FAIL() << backend->name();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_NE(std::string(error.what()).find(":-1"), std::string::npos) << error.what();
    }
  }
}

TEST(Backend, RefusesABudgetThatIsNotThere) {
  for (const Backend* backend : every_backend()) {
    try {
      (void)backend->make_device(0, std::int64_t{1} << 60);
      FAIL() << backend->name();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory);
      EXPECT_NE(std::string(error.what()).find(format_bytes(std::int64_t{1} << 60)),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(Backend, SaysWhyThereIsNoCuda) {
  std::string why = "not touched";
  const Backend* cuda = cuda_backend(&why);
  EXPECT_EQ(cuda_backend(), cuda) << "asked twice, another answer";
  if (cuda != nullptr) {
    EXPECT_EQ(why, "");
    EXPECT_EQ(cuda->name(), "cuda");
    EXPECT_FALSE(cuda->on_host());
  } else {
    EXPECT_NE(why.find("libstrata_cuda.so"), std::string::npos) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace strata::testing
