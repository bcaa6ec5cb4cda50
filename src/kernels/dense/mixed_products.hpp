#pragma once
// gemm and syrk with operands of few bits.
//
// Contract: C, in fp64 or fp32, and operands in fp32, fp16x2, fp16 and fp8. What an operand holds
// is multiplied as it is. Only the product of two second planes of fp16x2 may be left out in gemm,
// since it is below the rounding of the planes; in syrk, where its sign is always the same, it is
// kept. The products are added up in fp32, in any order, over the inner extent of one call, and the
// sum is subtracted from C, where C is fp64 with one rounding of its own. If A or B is in fp64, so
// is the arithmetic; on a GPU the bits of a column of C then depend on A and that column alone,
// among at most kMostColumnsOfProducts (multiply_columns_cuda.hpp). Values: TileScales. The variant
// as in gemm.

#include <array>

#include "kernels/dense/gemm.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/tile_scales.hpp"

namespace strata {

/// The elements of C, A and B for which all backends have gemm, beside those of one element.
inline constexpr std::array kMixedGemms{
    Elements{Element::fp32, Element::fp16x2, Element::fp16x2},
    Elements{Element::fp32, Element::fp16x2, Element::fp16},
    Elements{Element::fp32, Element::fp16, Element::fp16x2},
    Elements{Element::fp32, Element::fp16, Element::fp16},
    Elements{Element::fp32, Element::fp8, Element::fp8},
    Elements{Element::fp64, Element::fp16x2, Element::fp16x2},
    Elements{Element::fp64, Element::fp16x2, Element::fp16},
    Elements{Element::fp64, Element::fp16, Element::fp16x2},
    Elements{Element::fp64, Element::fp16, Element::fp16},
    Elements{Element::fp64, Element::fp8, Element::fp8},
    // for solves with such tiles
    Elements{Element::fp64, Element::fp16x2, Element::fp64},
    Elements{Element::fp64, Element::fp16, Element::fp64},
    Elements{Element::fp64, Element::fp8, Element::fp64},
};
/// The same, for backends on the host, where a tile of 24 bits is in fp32.
inline constexpr std::array kMixedGemmsOfHost{
    Elements{Element::fp32, Element::fp32, Element::fp16},
    Elements{Element::fp32, Element::fp16, Element::fp32},
    Elements{Element::fp64, Element::fp32, Element::fp32},
    Elements{Element::fp64, Element::fp32, Element::fp16},
    Elements{Element::fp64, Element::fp16, Element::fp32},
    Elements{Element::fp64, Element::fp32, Element::fp64},
};
/// The elements of C and A for which all backends have syrk; those on the host have it with A in
/// fp32, too.
inline constexpr std::array kMixedSyrks{
    Elements{Element::fp64, Element::fp16x2},
    Elements{Element::fp64, Element::fp16},
    Elements{Element::fp64, Element::fp8},
};
inline constexpr Elements kMixedSyrkOfHost{Element::fp64, Element::fp32};

/// By long sums in fp64, rounded to C's element at the end.
void gemm_mixed_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);
void syrk_mixed_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);
/// By BLAS in fp32, see mixed_products_host.cpp.
void gemm_mixed_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void syrk_mixed_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// By tensor cores, see mixed_products_cuda.cu.
void gemm_mixed_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void syrk_mixed_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
