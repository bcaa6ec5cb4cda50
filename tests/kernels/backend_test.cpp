// Backends: what they are called, which devices they make, and that no kernel is missing.

#include "kernels/backend/backend.hpp"
#include "kernels/tall/gram.hpp"
#include "kernels/tall/householder.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_back.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/mixed_products.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "kernels/dense/tile_norm.hpp"
#include "kernels/dense/trmm.hpp"
#include "kernels/krylov/panel.hpp"
#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

using KernelNames = std::set<std::pair<std::string_view, std::uint64_t>>;

KernelNames kernels_of(const Backend& backend) {
  KernelNames names;
  for (const KernelTable::Entry& entry : backend.kernels().entries())
    names.insert({entry.operation->name, entry.elements.bits()});
  return names;
}

TEST(Backend, HasTheKernelsOfTheReferenceAndNoOther) {
  for (const Backend* backend : all_of_them()) {
    auto expected = kernels_of(reference_backend());
    if (!backend->on_host()) {  // where a tile of 24 bits is in fp16x2
      for (const Elements& elements : kMixedGemmsOfHost)
        expected.erase({gemm.name, elements.bits()});
      expected.erase({syrk.name, kMixedSyrkOfHost.bits()});
    }
    EXPECT_EQ(kernels_of(*backend), expected) << backend->name();
  }
}

bool is_of_panels(std::string_view name) {
  return name == spmv.name || name.starts_with("halo_") || name.starts_with("panel_") ||
         name.starts_with("paired_");
}

TEST(Backend, HasEveryKernelInBothPrecisions) {
  const KernelTable& table = reference_backend().kernels();
  EXPECT_NE(table.find(gemm.name, Elements(3, Element::fp32)), nullptr);
  std::set<std::string_view> fp32;
  std::set<std::string_view> fp64;
  for (const KernelTable::Entry& entry : table.entries()) {
    bool single = false;
    // From one element to another; or of Krylov methods, which are in doubles alone.
    bool few_bits = entry.operation->name == convert.name || is_of_panels(entry.operation->name);
    Elements wider;
    for (int i = 0; i < entry.elements.size(); ++i) {
      few_bits =
          few_bits || (entry.elements[i] != Element::fp32 && entry.elements[i] != Element::fp64);
      single = single || entry.elements[i] == Element::fp32;
      wider.push_back(entry.elements[i] == Element::fp32 ? Element::fp64 : entry.elements[i]);
    }
    if (few_bits) continue;
    (single ? fp32 : fp64).insert(entry.operation->name);
    EXPECT_NE(table.find(entry.operation->name, wider), nullptr) << entry.operation->name;
  }
  // Triangles of Householder QR are in fp64 whatever they are of.
  EXPECT_EQ(fp64.erase(stacked_r.name) + fp64.erase(stacked_q.name), 2U);
  EXPECT_EQ(fp64.erase(solve_right_twice.name), 1U);  // a V of floats is solved for in other ways
  EXPECT_EQ(fp64.erase(covariance_times.name), 1U);   // for residuals
  EXPECT_EQ(fp64.erase(block_norms.name), 1U);        // of a pilot
  EXPECT_EQ(fp32, fp64);
}

TEST(Backend, HasWhatCholeskyOfComplexMatricesNeeds) {
  for (const Backend* backend : all_of_them()) {
    const KernelTable& table = backend->kernels();
    for (const Element element : {Element::complex128, Element::complex64}) {
      for (const Operation* operation : {&trsm, &trmm, &syrk, &gemm}) {
        EXPECT_NE(table.find(operation->name, Elements(operation->operands, element)), nullptr)
            << backend->name() << " " << operation->name;
      }
      EXPECT_NE(table.find(potrf.name, {element, Element::fp64}), nullptr) << backend->name();
      EXPECT_EQ(table.find(potrf.name, Elements(2, element)), nullptr) << backend->name();
    }
  }
}

TEST(Backend, HasNoKernelForOtherElementsOrNames) {
  for (const Backend* backend : all_of_them()) {
    const KernelTable& table = backend->kernels();
    EXPECT_EQ(table.find(gemm.name, Elements(3, Element::fp16)), nullptr);
    EXPECT_EQ(table.find(gemm.name, {Element::fp64, Element::fp64, Element::fp32}), nullptr);
    EXPECT_EQ(table.find(gemm.name, Elements(2, Element::fp64)), nullptr);
    EXPECT_EQ(table.find(potrf.name, Elements(2, Element::fp32)), nullptr);
    EXPECT_EQ(table.find("gem", Elements(3, Element::fp64)), nullptr);
  }
}

TEST(Backend, NoTwoEntriesOfATableAreTheSame) {
  for (const Backend* backend : all_of_them()) {
    std::map<KernelFunction, std::string_view> functions;  // one may serve several elements
    std::set<std::pair<std::string_view, std::uint64_t>> names;
    for (const KernelTable::Entry& entry : backend->kernels().entries()) {
      EXPECT_EQ(functions.emplace(entry.function, entry.operation->name).first->second,
                entry.operation->name)
          << backend->name() << " " << entry.operation->name;
      EXPECT_TRUE(names.insert({entry.operation->name, entry.elements.bits()}).second)
          << backend->name() << " " << entry.operation->name;
      EXPECT_EQ(entry.operation->operands, entry.elements.size()) << entry.operation->name;
    }
  }
}

TEST(Backend, ReachesItsOwnMemory) {
  for (const Backend* backend : all_of_them()) {
    const auto device = backend->make_device(0, 1_MiB);
    const Buffer memory = device->allocate(1000);
    EXPECT_TRUE(backend->reaches(0, memory.data(), 1000)) << backend->name();
    EXPECT_TRUE(backend->reaches(0, memory.data() + 500, 500)) << backend->name();
    EXPECT_FALSE(backend->reaches(0, nullptr, 8)) << backend->name();
    const std::vector<std::byte> on_the_heap(1000);
    EXPECT_EQ(backend->reaches(0, on_the_heap.data(), 1000), backend->kind() == DeviceKind::cpu)
        << backend->name();
  }
}

TEST(Backend, KnowsItsNameAndWhereItRuns) {
  EXPECT_EQ(host_backend().name(), "host");
  EXPECT_EQ(reference_backend().name(), "reference");
  EXPECT_EQ(host_backend().kind(), DeviceKind::cpu);
  EXPECT_EQ(reference_backend().kind(), DeviceKind::cpu);
  EXPECT_TRUE(host_backend().on_host());
  EXPECT_TRUE(reference_backend().on_host());
}

TEST(Backend, DescribesItsDevices) {
  for (const Backend* backend : all_of_them()) {
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
  for (const Backend* backend : all_of_them()) {
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
  for (const Backend* backend : all_of_them()) {
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
    EXPECT_EQ(cuda->kind(), DeviceKind::gpu);
    EXPECT_FALSE(cuda->on_host());
  } else {
    EXPECT_NE(why.find("libstrata_cuda.so"), std::string::npos) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace strata::testing
