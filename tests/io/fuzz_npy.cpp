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
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    const strata::NpyFile file = strata::parse_npy(strata::FileBytes(bytes, "fuzz"));
    const strata::DenseMatrix<std::complex<double>> dense = file.to_dense_complex();
    const strata::NpyHeader header = strata::parse_npy_header(bytes, "fuzz");
    // Integers are widened, so the bytes of an element in the file are those that count.
    const auto elements = static_cast<std::int64_t>(dense.values.size());
    if (header.data_offset + elements * header.element_bytes != static_cast<std::int64_t>(size)) {
      std::abort();
    }
    file.require_finite();
  } catch (const strata::Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
