#pragma once
// Which kernels of OpenBLAS a processor deserves.
//
// OpenBLAS chooses its kernels by the model number of the processor. A model that is newer than the
// library may be none that it knows, and is then served with those of a processor of 2004: 0.3.21
// takes "Prescott" for model 207 of Intel (Emerald Rapids) and reaches a quarter of its speed.
//
// Contract: pure functions, but for processor_features(). The choice is by the instructions that
// processor and operating system support, never by model; only kernels that are wider than the ones
// taken are asked for, so what the library knows better stays.

#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// The vector instructions that kernels are written in, as the operating system allows them.
struct ProcessorFeatures {
  bool avx2 = false;
  bool fma = false;
  bool avx512 = false;  ///< all of F, CD, DQ, BW and VL, as servers have them since Skylake

  bool operator==(const ProcessorFeatures&) const = default;
};

[[nodiscard]] ProcessorFeatures processor_features();

/// The values of OPENBLAS_CORETYPE to try, best first, for a library that took the kernels `taken`
/// (openblas_get_corename()) by itself; none if these will do or are of no x86 processor.
[[nodiscard]] std::vector<std::string> coretypes_to_ask(const ProcessorFeatures& processor,
                                                        std::string_view taken);

/// True if the kernels `taken` are as wide as those that were asked for.
[[nodiscard]] bool as_wide_as(std::string_view taken, std::string_view asked);

}  // namespace strata
