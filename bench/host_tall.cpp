#include "bench/host_tall.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "bench/peer_blas.hpp"
#include "bench/timed_runs.hpp"

namespace strata::bench {
namespace {

template <class F>
double seconds_of(F&& work) {
  const auto begin = Clock::now();
  work();
  return seconds_since(begin);
}

void gram_gemm(const double* v, int m, int n, double* b) {
  peer_blas().functions.dgemm(CblasColMajor, CblasTrans, CblasNoTrans, n, n, m, 1, v, m, v, m, 0, b,
                              n);
}
void gram_gemm(const float* v, int m, int n, float* b) {
  peer_blas().functions.sgemm(CblasColMajor, CblasTrans, CblasNoTrans, n, n, m, 1, v, m, v, m, 0, b,
                              n);
}
void gram_syrk(const double* v, int m, int n, double* b) {
  peer_blas().functions.dsyrk(CblasColMajor, CblasUpper, CblasTrans, n, m, 1, v, m, 0, b, n);
}
void gram_syrk(const float* v, int m, int n, float* b) {
  peer_blas().functions.ssyrk(CblasColMajor, CblasUpper, CblasTrans, n, m, 1, v, m, 0, b, n);
}

double cholesky_qr(double* v, int m, int n, std::vector<double>& b) {
  int info = 0;
  const double seconds = seconds_of([&] {
    gram_gemm(v, m, n, b.data());
    peer_blas().functions.dpotrf("U", &n, b.data(), &n, &info, 1);
    if (info == 0)
      peer_blas().functions.dtrsm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit,
                                  m, n, 1, b.data(), n, v, m);
  });
  require(info == 0, ErrorKind::numerical, "bench", "dpotrf failed with info {}", info);
  return seconds;
}

double householder(double* v, int m, int n) {
  const BlasTable& blas = peer_blas().functions;
  require(blas.dgeqrf != nullptr && blas.dorgqr != nullptr, ErrorKind::device, "bench",
          "{} lacks dgeqrf or dorgqr", peer_blas().about.file);
  std::vector<double> tau(static_cast<std::size_t>(n));
  double sizes[2] = {};
  const int ask = -1;
  int info = 0;
  blas.dgeqrf(&m, &n, v, &m, tau.data(), &sizes[0], &ask, &info);
  blas.dorgqr(&m, &n, &n, v, &m, tau.data(), &sizes[1], &ask, &info);
  const int size = static_cast<int>(std::max(sizes[0], sizes[1]));
  std::vector<double> work(static_cast<std::size_t>(size));
  const double seconds = seconds_of([&] {
    blas.dgeqrf(&m, &n, v, &m, tau.data(), work.data(), &size, &info);
    if (info == 0) blas.dorgqr(&m, &n, &n, v, &m, tau.data(), work.data(), &size, &info);
  });
  require(info == 0, ErrorKind::numerical, "bench", "geqrf or orgqr failed with info {}", info);
  return seconds;
}

template <class T>
double tall_seconds(std::vector<T>& v, std::int64_t rows, std::int64_t cols, TallWork what) {
  require(rows * cols <= std::numeric_limits<int>::max() && std::ssize(v) == rows * cols,
          ErrorKind::misuse, "bench", "{} by {} is too large for a BLAS of 32 bits", rows, cols);
  const int m = static_cast<int>(rows);
  const int n = static_cast<int>(cols);
  set_peer_threads(0);
  std::vector<T> b(static_cast<std::size_t>(cols * cols));
  if (what == TallWork::gram_gemm) return seconds_of([&] { gram_gemm(v.data(), m, n, b.data()); });
  if (what == TallWork::gram_syrk) return seconds_of([&] { gram_syrk(v.data(), m, n, b.data()); });
  if constexpr (std::is_same_v<T, double>) {
    if (what == TallWork::cholesky_qr) return cholesky_qr(v.data(), m, n, b);
    if (what == TallWork::householder) return householder(v.data(), m, n);
  }
  fail(ErrorKind::misuse, "bench", "the BLAS of the host does no such thing with these elements");
}

}  // namespace

double host_tall_seconds(std::vector<double>& v, std::int64_t m, std::int64_t n, TallWork what) {
  return tall_seconds(v, m, n, what);
}
double host_tall_seconds(std::vector<float>& v, std::int64_t m, std::int64_t n, TallWork what) {
  return tall_seconds(v, m, n, what);
}

}  // namespace strata::bench
