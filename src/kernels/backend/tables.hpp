#pragma once
// The kernel tables of the two backends that run on the host.
//
// Contract: each is filled in one place, table_reference.cpp and table_host.cpp, and never changes.
// (The CUDA table is inside its plugin: table_cuda.cu.)

#include "kernels/backend/kernel_table.hpp"

namespace strata {

[[nodiscard]] const KernelTable& reference_kernels();
[[nodiscard]] const KernelTable& host_kernels();

}  // namespace strata
