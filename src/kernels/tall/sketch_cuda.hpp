#pragma once
// The kernels of sketch.hpp on a GPU. Contract: as there. Included by .cu files only.

#include "kernels/tall/sketch.hpp"

namespace strata {

void sketch_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void continue_sketch_cuda(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);

}  // namespace strata
