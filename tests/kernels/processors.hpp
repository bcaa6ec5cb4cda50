#pragma once
// Processors by what they can do.

#include "kernels/backend/blas_coretype.hpp"

namespace strata::testing {

inline constexpr ProcessorFeatures kSse{};
inline constexpr ProcessorFeatures kAvx2{.avx2 = true, .fma = true};
inline constexpr ProcessorFeatures kAvx512{.avx2 = true, .fma = true, .avx512 = true};

}  // namespace strata::testing
