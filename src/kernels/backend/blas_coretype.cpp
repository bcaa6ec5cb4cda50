#include "kernels/backend/blas_coretype.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace strata {
namespace {

enum class Width { unknown, sse, avx, avx2, avx512 };

struct Kernels {
  std::string_view name;
  Width width;
};

/// The kernel sets of OpenBLAS for x86 (driver/others/dynamic.c), in small letters. A name
/// that is not here is newer, or of another architecture, and is left alone.
constexpr std::array<Kernels, 28> kKernels{
    {{"unknown", Width::sse},       {"generic", Width::sse},
     {"katmai", Width::sse},        {"coppermine", Width::sse},
     {"northwood", Width::sse},     {"prescott", Width::sse},
     {"banias", Width::sse},        {"atom", Width::sse},
     {"core2", Width::sse},         {"penryn", Width::sse},
     {"dunnington", Width::sse},    {"nehalem", Width::sse},
     {"athlon", Width::sse},        {"opteron", Width::sse},
     {"opteron_sse3", Width::sse},  {"barcelona", Width::sse},
     {"nano", Width::sse},          {"bobcat", Width::sse},
     {"sandybridge", Width::avx},   {"bulldozer", Width::avx},
     {"piledriver", Width::avx},    {"steamroller", Width::avx},
     {"excavator", Width::avx2},    {"haswell", Width::avx2},
     {"zen", Width::avx2},          {"skylakex", Width::avx512},
     {"cooperlake", Width::avx512}, {"sapphirerapids", Width::avx512}}};

Width width_of(std::string_view name) {
  std::string small(name);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* found = std::find_if(kKernels.begin(), kKernels.end(),
                                   [&](const Kernels& kernels) { return kernels.name == small; });
  return found == kKernels.end() ? Width::unknown : found->width;
}

}  // namespace

ProcessorFeatures processor_features() {
#if defined(__x86_64__) || defined(__i386__)
  return {
      .avx2 = __builtin_cpu_supports("avx2") != 0,
      .fma = __builtin_cpu_supports("fma") != 0,
      .avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
                __builtin_cpu_supports("avx512dq") != 0 &&
                __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0};
#else
  return {};
#endif
}

std::vector<std::string> coretypes_to_ask(const ProcessorFeatures& processor,
                                          std::string_view taken) {
  const Width width = width_of(taken);
  std::vector<std::string> asked;
  if (width == Width::unknown) return asked;
  // Cooperlake and SapphireRapids are these with products of bfloat16, which we have no use for,
  // and 0.3.21 does not know the name of the one when it is asked for it.
  if (processor.avx512 && width < Width::avx512) asked.emplace_back("SKYLAKEX");
  // Zen's products are these, too. A library built without AVX-512 still has them.
  if (processor.avx2 && processor.fma && width < Width::avx2) asked.emplace_back("HASWELL");
  return asked;
}

bool as_wide_as(std::string_view taken, std::string_view asked) {
  return width_of(taken) >= width_of(asked);
}

}  // namespace strata
