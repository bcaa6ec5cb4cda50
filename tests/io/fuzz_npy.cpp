// libFuzzer target: any bytes as a .npy file give an array or Error{input}, and an array that is
// read has as many elements as its bytes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/npy.hpp"
#include "strata/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using strata::ErrorKind;
  try {
    const strata::NpyFile file = strata::parse_npy(
        strata::FileBytes(std::string(reinterpret_cast<const char*>(data), size), "fuzz"));
    const strata::DenseMatrix<std::complex<double>> dense = file.to_dense_complex();
    if (dense.values.size() * static_cast<std::size_t>(strata::bytes_of(file.precision())) > size) {
      std::abort();
    }
    file.require_finite();
  } catch (const strata::Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
