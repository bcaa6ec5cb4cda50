#pragma once
// X·R⁻¹ on a GPU, V read and written once; of more columns in fp64 see row_products_cuda.hpp.
// Contract: as gram.hpp; included by gram_cuda.cu only.

#include "kernels/tall/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// Whether R and a row of X·R⁻¹ for each thread fit into shared memory.
[[nodiscard]] bool solves_in_shared_memory(std::int64_t columns, Element r);

/// to ← x·R⁻¹; `to` may be where x is. R in the element of T or of twice its bits.
template <class S, class T>
void solve_shared(cudaStream_t stream, const Columns<T>& x, const S* r, std::int64_t r_ld, T* to,
                  std::int64_t to_ld);

}  // namespace strata::gram_gpu
