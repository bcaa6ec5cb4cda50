#pragma once
// convert: Y ← X in another element, or a copy of it.
//
// Contract: operands Y (m × n, written) and X (m × n). Values: TileScales. Rounds once, to nearest,
// ties to even; what is too large for fp8 becomes ±448, for fp16 infinite; NaN stays NaN. To a
// finer element it is exact. A unit of work is an element.

#include <array>

#include "kernels/dense/tile_scales.hpp"

namespace strata {

inline constexpr Operation convert{.name = "convert",
                                   .operands = 2,
                                   .access = {Access::write, Access::read},
                                   .work =
                                       [](std::span<const BlockExtent> x, std::uint32_t) {
                                         return static_cast<double>(x[0].rows) *
                                                static_cast<double>(x[0].cols);
                                       },
                                   .flops_per_work = 0,
                                   .nominal_cost = 100};

/// The elements of Y and X for which all backends have it.
inline constexpr std::array kConversions{
    Elements{Element::fp64, Element::fp64},   Elements{Element::fp32, Element::fp32},
    Elements{Element::fp64, Element::fp32},   Elements{Element::fp64, Element::fp16x2},
    Elements{Element::fp64, Element::fp16},   Elements{Element::fp64, Element::fp8},
    Elements{Element::fp32, Element::fp64},   Elements{Element::fp32, Element::fp16x2},
    Elements{Element::fp32, Element::fp16},   Elements{Element::fp32, Element::fp8},
    Elements{Element::fp16x2, Element::fp64}, Elements{Element::fp16x2, Element::fp32},
    Elements{Element::fp16x2, Element::fp16}, Elements{Element::fp16x2, Element::fp8},
    Elements{Element::fp16, Element::fp64},   Elements{Element::fp16, Element::fp32},
    Elements{Element::fp16, Element::fp16x2}, Elements{Element::fp16, Element::fp8},
    Elements{Element::fp8, Element::fp64},    Elements{Element::fp8, Element::fp32},
    Elements{Element::fp8, Element::fp16x2},  Elements{Element::fp8, Element::fp16},
};

/// Element by element.
void convert_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// For the CPU, see formats_host.hpp.
void convert_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// For a GPU, see convert_cuda.cu.
void convert_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
