// Which kernels are asked for, by processors as they are sold and rented.

#include "kernels/backend/blas_coretype.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/processors.hpp"

namespace strata::testing {
namespace {

using Asked = std::vector<std::string>;

struct Case {
  const char* processor;
  ProcessorFeatures features;
  const char* taken;  ///< by the library itself
  Asked asked;
};

TEST(BlasCoretype, AsksForWiderKernelsOnly) {
  const std::vector<Case> cases{
      {"Emerald Rapids, model 207, 0.3.21", kAvx512, "Prescott", {"SKYLAKEX", "HASWELL"}},
      {"Granite Rapids, old library", kAvx512, "Prescott", {"SKYLAKEX", "HASWELL"}},
      {"Sapphire Rapids, 0.3.26", kAvx512, "SapphireRapids", {}},
      {"Sapphire Rapids, 0.3.21", kAvx512, "Cooperlake", {}},
      {"Cascade Lake", kAvx512, "SkylakeX", {}},
      {"Cascade Lake, virtual without AVX-512", kAvx2, "Haswell", {}},
      {"Skylake server, library without AVX-512", kAvx512, "Haswell", {"SKYLAKEX"}},
      {"Zen 5, old library", kAvx512, "Zen", {"SKYLAKEX"}},
      {"Zen 5, 0.3.21", kAvx512, "Cooperlake", {}},
      {"Zen 3", kAvx2, "Zen", {}},
      {"Zen 3, old library", kAvx2, "Barcelona", {"HASWELL"}},
      {"Alder Lake, old library", kAvx2, "Nehalem", {"HASWELL"}},
      {"AVX2 with kernels of AVX", kAvx2, "Sandybridge", {"HASWELL"}},
      {"AVX2 but no FMA", {.avx2 = true}, "Prescott", {}},
      {"Gracemont's little sister, no AVX", kSse, "Nehalem", {}},
      {"a processor of 2004", kSse, "Prescott", {}},
      {"AVX2 and a static build", kAvx2, "HASWELL", {}},
      {"kernels newer than this table", kAvx512, "DiamondRapids", {}},
      {"Arm", kSse, "neoversen1", {}},
      {"a library that does not say", kAvx512, "", {}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(coretypes_to_ask(c.features, c.taken), c.asked) << c.processor;
  }
}

TEST(BlasCoretype, KnowsWhetherItGotWhatItAskedFor) {
  EXPECT_TRUE(as_wide_as("SkylakeX", "SKYLAKEX"));
  EXPECT_TRUE(as_wide_as("Cooperlake", "SKYLAKEX"));
  EXPECT_TRUE(as_wide_as("Zen", "HASWELL"));
  EXPECT_FALSE(as_wide_as("Haswell", "SKYLAKEX"));
  EXPECT_FALSE(as_wide_as("Prescott", "HASWELL"));
}

}  // namespace
}  // namespace strata::testing
