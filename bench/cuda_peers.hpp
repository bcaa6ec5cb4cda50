#pragma once
// What libstrata_peers_cuda.so exports: the C interface between the benchmarks, cuSOLVER, MAGMA and
// cuDSS.
//
// Contract: matrices are column-major in memory of a GPU, doubles or (fp32) floats; a batch of
// `count` matrices of order n lies one after another, ld·n elements apart, and matrix b is filled
// by seed + b. Each call has finished when it returns 0; otherwise it returns −1 and writes one
// line to `message`. Handles and workspaces are kept from call to call. Not thread-safe.

#include <cstdint>

#include "bench/test_matrix.hpp"

namespace strata::bench {

/// Lower triangles as test_matrix.hpp has them, zeros above; rows from n on are left alone.
using BenchFill = int(void* a, std::int64_t n, std::int64_t ld, std::int64_t count, bool fp32,
                      TestMatrix matrix, char* message, std::int64_t message_bytes);

/// ‖A·v − L·(Lᵀ·v)‖∞ / (‖A‖∞·‖v‖∞) for one random v, A as it was filled;
/// evaluated as compensated_sum.hpp has it.
using BenchResidual = int(const void* l, std::int64_t n, std::int64_t ld, bool fp32,
                          TestMatrix matrix, double* residual, char* message,
                          std::int64_t message_bytes);

/// What a general matrix is stored in.
enum class LuElement : int { fp64, fp32, complex128, complex64 };

/// A general matrix of order n: elements uniform in [−1, 1), in both parts of complex numbers.
using LuFill = int(void* a, std::int64_t n, std::int64_t ld, LuElement element, std::uint64_t seed,
                   char* message, std::int64_t message_bytes);

/// ‖P·A·v − L·(U·v)‖∞ / (‖A‖∞·‖v‖∞) for one random real v, A as LuFill filled it; the pivots lie on
/// the GPU and are counted from `base`. Evaluated as compensated_sum.hpp has it.
using LuResidual = int(const void* factors, const std::int64_t* pivots, std::int64_t n,
                       std::int64_t ld, std::int64_t base, LuElement element, std::uint64_t seed,
                       double* residual, char* message, std::int64_t message_bytes);

/// One cusolverDnXgetrf in place: its seconds between two events, and its info. Pivots (n) lie on
/// the GPU.
using CusolverGetrf = int(void* a, std::int64_t* pivots, std::int64_t n, std::int64_t ld,
                          LuElement element, double* seconds, int* info, char* message,
                          std::int64_t message_bytes);

/// One cublasXgetrfBatched of `count` matrices in place, ld·n elements apart: its seconds between
/// two events, and the first info that is not zero. The pivots (n) of the last matrix, counted from
/// 1, are copied to the GPU's memory that is named.
using CublasGetrfBatched = int(void* a, std::int64_t* pivots, std::int64_t n, std::int64_t ld,
                               std::int64_t count, LuElement element, double* seconds, int* info,
                               char* message, std::int64_t message_bytes);

/// What the factor of cusolverDnIRSXgesv is in; its solutions are in fp64.
enum class IrsFactor : int { fp64, fp32, tf32, fp16 };
struct IrsSolution {
  double seconds;       ///< with copies of A and b to the GPU and of x from it
  double call_seconds;  ///< the solver alone
  int iterations;       ///< as it counts them; below 0 where it factored in fp64 in the end
};
/// One solution of A·x = b by cusolverDnIRSXgesv, refined by GMRES (with a factor in fp64 plainly)
/// until it is content; A (n × n, packed), b and x in host memory. Memory of the GPU is taken
/// before the time begins.
using CusolverIrs = int(const double* a, const double* b, double* x, std::int64_t n,
                        IrsFactor factor, int device, IrsSolution* solution, char* message,
                        std::int64_t message_bytes);

/// A Hermitian positive definite matrix of order n, complex: below the diagonal as LuFill has it,
/// on it 2·n + 2. Zeros above.
using HermitianFill = int(void* a, std::int64_t n, std::int64_t ld, LuElement element,
                          std::uint64_t seed, char* message, std::int64_t message_bytes);
/// ‖A·v − L·(Lᴴ·v)‖∞ / (‖A‖∞·‖v‖∞) for one random real v, A as HermitianFill filled it.
using HermitianResidual = int(const void* l, std::int64_t n, std::int64_t ld, LuElement element,
                              std::uint64_t seed, double* residual, char* message,
                              std::int64_t message_bytes);
/// One cusolverDnXpotrf in place: its seconds between two events, and its info.
using CusolverHermitianPotrf = int(void* a, std::int64_t n, std::int64_t ld, LuElement element,
                                   double* seconds, int* info, char* message,
                                   std::int64_t message_bytes);

/// Memory that is free on the GPU that was used last (at first: 0).
using BenchFreeBytes = int(std::int64_t* bytes, char* message, std::int64_t message_bytes);

/// One cusolverDnXpotrf in place: its seconds between two events, and its info.
using CusolverPotrf = int(void* a, std::int64_t n, std::int64_t ld, bool fp32, double* seconds,
                          int* info, char* message, std::int64_t message_bytes);

/// One cusolverDnDpotrfBatched or cusolverDnSpotrfBatched in place, likewise; `info` is the first
/// that is not zero. The array of pointers is made before the time begins.
using CusolverPotrfBatched = int(void* a, std::int64_t n, std::int64_t ld, std::int64_t count,
                                 bool fp32, double* seconds, int* info, char* message,
                                 std::int64_t message_bytes);

/// Loads MAGMA, unless that was done, and writes its version ("2.8.0").
using MagmaStart = int(char* version, std::int64_t version_bytes, char* message,
                       std::int64_t message_bytes);

/// One magma_dpotrf_native or magma_spotrf_native in place: its seconds by the clock of the host,
/// the GPU idle before and after, and its info.
using MagmaPotrf = int(void* a, std::int64_t n, std::int64_t ld, bool fp32, double* seconds,
                       int* info, char* message, std::int64_t message_bytes);

/// Products C ← C − A·Bᵀ with C of order 16384 and 8192 inner columns, or as much less as memory
/// demands, for about `seconds` on the GPU that was used last.
using DgemmRate = int(bool fp32, double seconds, double* flops_per_second, char* message,
                      std::int64_t message_bytes);

/// `count` products C ← C − A·Bᵀ of order n, `batch` to a call of cublasDgemmBatched, the calls on
/// `streams` streams in turn: their seconds by the clock of the host, the GPU that was used last
/// idle before and after. The arrays of pointers are made before the time begins.
using SmallProducts = int(std::int64_t n, std::int64_t batch, int streams, std::int64_t count,
                          double* seconds, char* message, std::int64_t message_bytes);

/// What is done with a tall matrix V, m × n, m below 2³¹ for the last two, which write to it.
enum class TallWork : int {
  read,         ///< every element once, those between m and ld too
  gram_gemm,    ///< VᵀV by cublasDgemm
  gram_syrk,    ///< VᵀV by cublasDsyrk
  cholesky_qr,  ///< V ← Q by cublasDgemm, cusolverDnDpotrf and cublasDtrsm
  householder,  ///< V ← Q by cusolverDnDgeqrf and cusolverDnDorgqr
};
/// Its seconds between two events; workspaces are made before.
using TallTime = int(double* v, std::int64_t m, std::int64_t n, std::int64_t ld, TallWork what,
                     double* seconds, char* message, std::int64_t message_bytes);

/// Symmetric, by its lower triangle compressed by rows, in host memory; copied.
struct CudssMatrix {
  std::int64_t n;
  const std::int64_t* start;   ///< n + 1
  const std::int32_t* column;  ///< start[n], as many as the values
  const double* value;
  std::int64_t nrhs;  ///< right-hand sides that there is room for
};

/// Loads cuDSS, unless that was done, and writes its version ("1.0.0"). Analyses have the threads
/// of the layer that $CUDSS_THREADING_LIB names; without it one.
using CudssStart = int(char* version, std::int64_t version_bytes, char* message,
                       std::int64_t message_bytes);
using CudssOpen = int(const CudssMatrix* matrix, int device, void** problem, char* message,
                      std::int64_t message_bytes);
/// Order and tree, both cuDSS's defaults. An earlier factor is gone.
using CudssAnalyze = int(void* problem, std::int64_t* factor_entries, char* message,
                         std::int64_t message_bytes);
/// Factors values in memory of the host or of the GPU, which are read where they are: a first
/// factorization behind an analysis, then refactorizations. `bad_row` is −1, or the row at which it
/// failed, in cuDSS's own order.
using CudssFactor = int(void* problem, const double* value, std::int64_t* bad_row, char* message,
                        std::int64_t message_bytes);
/// X = A⁻¹·B, both n × nrhs, both in memory of the host or both in that of the GPU.
using CudssSolve = int(void* problem, const double* b, std::int64_t nrhs, double* x, char* message,
                       std::int64_t message_bytes);
using CudssClose = int(void* problem, char* message, std::int64_t message_bytes);

}  // namespace strata::bench
