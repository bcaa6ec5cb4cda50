// A plugin with the functions of the CUDA backend, whose backend a test gives it: so that public
// calls, which take devices by name, run on devices of that test.

namespace strata {
class Backend;
}

extern "C" {

const strata::Backend* strata_given_backend = nullptr;

const char* strata_cuda_backend_version() { return GIVEN_VERSION; }

const strata::Backend& strata_cuda_backend() { return *strata_given_backend; }

}  // extern "C"
