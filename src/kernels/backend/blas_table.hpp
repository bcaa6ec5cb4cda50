#pragma once
// The BLAS and LAPACK of the host: one table of functions, loaded at run time.
//
// Contract: the library is not linked. On first use it is loaded for us alone, once, in any thread.
// An OpenBLAS is loaded as a private copy (base/private_library.hpp), with one thread a call and
// with the best kernels for the processor (blas_coretype.hpp). So no setting of ours reaches the
// BLAS of the process we are a guest in, nor one of theirs ours. Any other library is used as the
// loader has it; where it has threads they are set to one if it came with us, and left alone if it
// was there before.
//
// Which file: $STRATA_BLAS, or what was found when this was built. A name without a slash is looked
// for by the dynamic loader; several files, as of a BLAS and a LAPACK, are joined by ':'. The
// user's own OPENBLAS_CORETYPE decides the kernels. Extents are of 32 bits.

#include <cblas.h>

#include <complex>
#include <cstddef>
#include <string>

#include "kernels/backend/blas_coretype.hpp"

namespace strata {

/// LAPACK's potrf as Fortran calls it; the last argument is the length of the first.
template <class T>
using FortranPotrf = void (*)(const char* uplo, const int* n, T* a, const int* lda, int* info,
                              std::size_t uplo_length);

/// LAPACK's LU with partial pivoting as Fortran calls it.
template <class T>
using FortranGetrf = void (*)(const int* m, const int* n, T* a, const int* lda, int* pivots,
                              int* info);

/// LAPACK's Householder QR, and its Q, as Fortran calls them; in doubles.
using FortranGeqrf = void (*)(const int* m, const int* n, double* a, const int* lda, double* tau,
                              double* work, const int* lwork, int* info);
using FortranOrgqr = void (*)(const int* m, const int* n, const int* k, double* a, const int* lda,
                              const double* tau, double* work, const int* lwork, int* info);

struct BlasTable {
  decltype(&cblas_dgemm) dgemm = nullptr;
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dsyrk) dsyrk = nullptr;
  decltype(&cblas_ssyrk) ssyrk = nullptr;
  decltype(&cblas_dsymm) dsymm = nullptr;
  decltype(&cblas_dtrmm) dtrmm = nullptr;
  decltype(&cblas_strmm) strmm = nullptr;
  decltype(&cblas_dtrsm) dtrsm = nullptr;
  decltype(&cblas_strsm) strsm = nullptr;
  decltype(&cblas_zgemm) zgemm = nullptr;
  decltype(&cblas_cgemm) cgemm = nullptr;
  decltype(&cblas_zherk) zherk = nullptr;
  decltype(&cblas_cherk) cherk = nullptr;
  decltype(&cblas_zhemm) zhemm = nullptr;
  decltype(&cblas_ztrmm) ztrmm = nullptr;
  decltype(&cblas_ctrmm) ctrmm = nullptr;
  decltype(&cblas_ztrsm) ztrsm = nullptr;
  decltype(&cblas_ctrsm) ctrsm = nullptr;
  FortranPotrf<double> dpotrf = nullptr;
  FortranPotrf<float> spotrf = nullptr;
  FortranPotrf<std::complex<double>> zpotrf = nullptr;
  FortranPotrf<std::complex<float>> cpotrf = nullptr;
  // Peers of benchmarks alone; null where the library lacks them.
  // For benchmarks alone: where there is none, there is no peer.
  FortranGetrf<double> dgetrf = nullptr;
  FortranGetrf<float> sgetrf = nullptr;
  FortranGetrf<std::complex<double>> zgetrf = nullptr;
  FortranGetrf<std::complex<float>> cgetrf = nullptr;
  FortranGeqrf dgeqrf = nullptr;
  FortranOrgqr dorgqr = nullptr;
};

/// What was loaded, for people.
struct BlasDescription {
  std::string file;           ///< with folder; several joined by ':'
  std::string version;        ///< of OpenBLAS: its configuration
  std::string kernels;        ///< of OpenBLAS: those in use
  std::string kernels_own;    ///< those it takes by itself
  std::string kernels_asked;  ///< value of OPENBLAS_CORETYPE that was asked for; empty if none
  bool asked_by_user = false;
  bool private_copy = false;
  std::string why_shared;  ///< an OpenBLAS of which no private copy could be made: the reason
  int threads = 0;         ///< a call; 0: not known
};

struct BlasLibrary {
  BlasTable functions;
  BlasDescription about;
  /// Changes the threads of a call; null unless the library is ours alone.
  void (*set_threads)(int) = nullptr;
};

struct BlasRequest {
  std::string files;  ///< empty: those that were found when this was built
  ProcessorFeatures processor = processor_features();
};

/// Loads one more instance, with one thread a call. It stays until the process ends. Throws
/// Error{device} that names the file if there is none, or a function that it lacks.
[[nodiscard]] BlasLibrary load_blas(const BlasRequest& request);

/// The instance of the host kernels. Throws as load_blas; then the next call tries again.
[[nodiscard]] const BlasLibrary& host_blas();

[[nodiscard]] inline const BlasTable& blas_table() { return host_blas().functions; }

}  // namespace strata
