#pragma once
// The BLAS and LAPACK of the host as a peer: another instance of the one that the host kernels
// use, with threads of its own.

#include "kernels/backend/blas_table.hpp"

namespace strata::bench {

[[nodiscard]] int all_cores();

/// Throws Error{device} as load_blas does.
[[nodiscard]] const BlasLibrary& peer_blas();

/// Threads of a call; 0: all cores. Throws Error{device} unless it is an OpenBLAS of our own.
void set_peer_threads(int threads);

}  // namespace strata::bench
