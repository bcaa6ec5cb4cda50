#pragma once
// What the BLAS and LAPACK of the host do with a tall matrix. See cuda_peers.hpp for GPUs.

#include <cstdint>
#include <vector>

#include "bench/cuda_peers.hpp"

namespace strata::bench {

/// Seconds of `what` (not of `read`) with V, m × n, packed, which the last two write to, by all
/// cores; workspaces are made before. m·n below 2³¹. Throws Error{device} where the library lacks a
/// function and Error{numerical} where it calls the outcome bad.
[[nodiscard]] double host_tall_seconds(std::vector<double>& v, std::int64_t m, std::int64_t n,
                                       TallWork what);
/// VᵀV of floats by sgemm and by ssyrk.
[[nodiscard]] double host_tall_seconds(std::vector<float>& v, std::int64_t m, std::int64_t n,
                                       TallWork what);

}  // namespace strata::bench
