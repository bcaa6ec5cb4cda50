// A plugin with the functions of the CUDA backend and nothing behind them: so that what is asked of
// one before it is used can be tested where no GPU is.

#include <stdexcept>

namespace strata {
class Backend;
}

extern "C" {

#ifdef FAKE_VERSION
const char* strata_cuda_backend_version() { return FAKE_VERSION; }
#endif

// Says that it was called, which is what only a plugin of the right version may be.
const strata::Backend& strata_cuda_backend() {
  throw std::runtime_error("the fake has no devices");
}

}  // extern "C"
