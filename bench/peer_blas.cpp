#include "bench/peer_blas.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/check.hpp"

namespace strata::bench {

int all_cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

const BlasLibrary& peer_blas() {
  static const BlasLibrary library = [] {
    const char* files = std::getenv("STRATA_BLAS");
    return load_blas({.files = files == nullptr ? "" : files});
  }();
  return library;
}

void set_peer_threads(int threads) {
  const BlasLibrary& blas = peer_blas();
  require(!blas.about.kernels.empty() && blas.set_threads != nullptr, ErrorKind::device, "bench",
          "{} is no OpenBLAS of our own", blas.about.file);
  blas.set_threads(threads > 0 ? threads : all_cores());
}

}  // namespace strata::bench
