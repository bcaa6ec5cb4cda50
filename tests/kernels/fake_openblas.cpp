// Stands for OpenBLAS on a processor that it does not know: takes "Prescott" unless it is asked for
// something else, and says so. It does not compute.
//
// STRATA_FAKE_KERNELS lists what it has, with a comma behind each; without, it has everything.
// Asked for anything else it keeps to its own choice, as the real one does.

#include <cstdlib>
#include <string>

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string kernels() {
  const std::string asked = environment("OPENBLAS_CORETYPE");
  const std::string present = environment("STRATA_FAKE_KERNELS");
  const bool known = present.empty() || present.find(asked + ",") != std::string::npos;
  return asked.empty() || !known ? "Prescott" : asked;
}

// As in OpenBLAS, read when the library is loaded and never again.
const std::string kKernels = kernels();
const std::string kConfig = "OpenBLAS 0.0.0 DYNAMIC_ARCH " + kKernels;

}  // namespace

extern "C" {

// Exported, so that a twin in the global scope could take its place.
int fake_threads = environment("OPENBLAS_NUM_THREADS").empty()
                       ? 8
                       : std::atoi(environment("OPENBLAS_NUM_THREADS").c_str());

int openblas_get_num_threads() { return fake_threads; }
void openblas_set_num_threads(int threads) { fake_threads = threads; }
const char* openblas_get_corename() { return kKernels.c_str(); }
const char* openblas_get_config() { return kConfig.c_str(); }

// Calls a function of another library.
long fake_number(const char* text) { return std::strtol(text, nullptr, 10); }

void cblas_dgemm() {}
void cblas_sgemm() {}
void cblas_dsyrk() {}
void cblas_ssyrk() {}
void cblas_dsymm() {}
void cblas_dtrmm() {}
void cblas_strmm() {}
void cblas_dtrsm() {}
void cblas_strsm() {}
void cblas_zgemm() {}
void cblas_cgemm() {}
void cblas_zherk() {}
void cblas_cherk() {}
void cblas_zhemm() {}
void cblas_ztrmm() {}
void cblas_ctrmm() {}
void cblas_ztrsm() {}
void cblas_ctrsm() {}
void dpotrf_() {}
void spotrf_() {}
void zpotrf_() {}
void cpotrf_() {}
}
