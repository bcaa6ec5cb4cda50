#pragma once
// What libstrata_peer_cholmod.so exports: the C interface between the benchmarks and CHOLMOD.
//
// Contract: matrices are symmetric, given by their lower triangles compressed by rows, columns
// ascending, the diagonal last in its row; what they point to stays as it is as long as the problem
// lives. A factor is supernodal, L·Lᵀ, with CHOLMOD's own amalgamation. Each call returns 0 when it
// is done; otherwise −1, with one line in `message`. Not thread-safe.

#include <cstdint>

namespace strata::bench {

/// What runs, for people.
struct CholmodAbout {
  char version[32];       ///< "3.0.14"
  char blas[256];         ///< the file whose dgemm it calls
  char blas_kernels[64];  ///< of OpenBLAS; empty: not known
  int blas_threads;       ///< of a call; 0: not known
  int openmp_threads;     ///< its own, at most; 0: no OpenMP
};

struct CholmodMatrix {
  std::int64_t n;
  const std::int64_t* start;   ///< n + 1
  const std::int64_t* column;  ///< start[n], as many as the values
  const double* value;
};

/// Numbers of an analysis, counted as AnalysisCounts are.
struct CholmodCounts {
  double flops;
  double factor_entries;
  std::int64_t supernodes;
  std::int64_t panel_bytes;
};

/// `threads` of its BLAS from now on, if that is an OpenBLAS.
using CholmodStart = int(int threads, CholmodAbout* about, char* message,
                         std::int64_t message_bytes);

using CholmodOpen = int(const CholmodMatrix* matrix, void** problem, char* message,
                        std::int64_t message_bytes);
/// Order, tree, supernodes. order[k] is the row that is eliminated as the k-th, before CHOLMOD's
/// postordering; null: by METIS, as CHOLMOD calls it. An earlier factor is gone.
using CholmodAnalyze = int(void* problem, const std::int64_t* order, CholmodCounts* counts,
                           char* message, std::int64_t message_bytes);
/// Factors the values (start[n]), in the pattern of the problem. `bad_row` is −1, or the row of A
/// at which it failed.
using CholmodFactor = int(void* problem, const double* value, std::int64_t* bad_row, char* message,
                          std::int64_t message_bytes);
/// log|A|.
using CholmodLogDeterminant = int(void* problem, double* log_determinant, char* message,
                                  std::int64_t message_bytes);
/// X = A⁻¹·B, both n × nrhs, dense; X is CHOLMOD's, until the next solve.
using CholmodSolve = int(void* problem, const double* b, std::int64_t nrhs, const double** x,
                         char* message, std::int64_t message_bytes);
using CholmodClose = int(void* problem, char* message, std::int64_t message_bytes);

}  // namespace strata::bench
