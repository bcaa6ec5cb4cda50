// A library with the functions of MAGMA that the benchmarks call, on host memory: so that loading
// and calling can be tested where MAGMA and GPUs are not.

#include <cmath>
#include <cstdint>

namespace {

int started = 0;
int device = -1;

template <class T>
int cholesky(int uplo, int n, T* a, int ldda, int* info) {
  *info = started > 0 && device == 3 && uplo == 122 ? 0 : -1;
  for (std::int64_t j = 0; j < n && *info == 0; ++j) {
    T* column = a + j * ldda;
    if (!(column[j] > 0)) *info = static_cast<int>(j + 1);
    column[j] = std::sqrt(column[j]);
    for (std::int64_t i = j + 1; i < n; ++i) column[i] /= column[j];
    for (std::int64_t k = j + 1; k < n; ++k) {
      for (std::int64_t i = k; i < n; ++i) a[i + k * ldda] -= column[i] * column[k];
    }
  }
  return *info;
}

}  // namespace

extern "C" {

int magma_init() {
  ++started;
  return 0;
}

void magma_version(int* major, int* minor, int* micro) {
  *major = 2;
  *minor = 80;
  *micro = 7;
}

void magma_setdevice(int index) { device = index; }

int magma_dpotrf_native(int uplo, int n, double* a, int ldda, int* info) {
  return cholesky(uplo, n, a, ldda, info);
}

int magma_spotrf_native(int uplo, int n, float* a, int ldda, int* info) {
  return cholesky(uplo, n, a, ldda, info);
}

}  // extern "C"
