#pragma once
// The .npy format, apart from the file system.
//
// Contract: what a header says is compared with the number of bytes there are before anything is
// allocated or read. Throws Error{input} that names the file.

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file.hpp"
#include "strata/io.hpp"

namespace strata {

struct NpyHeader {
  Element precision = Element::fp64;  ///< of numbers with a point, and of integers once converted
  char kind = 'f';  ///< as numpy has it: f, c (complex), i (signed), u (unsigned), b (truth)
  std::int64_t element_bytes = 8;  ///< in the file, of complex numbers both parts
  bool big_endian = false;
  bool fortran_order = false;
  int dimensions = 1;
  std::int64_t rows = 0;
  std::int64_t cols = 1;
  std::int64_t data_offset = 0;  ///< bytes before the first element
  std::int64_t data_bytes = 0;   ///< of all elements; they end where the file ends
};

/// The header of an array that `bytes` holds completely.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view bytes, const std::string& name);

/// The array in `file`.
[[nodiscard]] NpyFile parse_npy(FileBytes file);

}  // namespace strata
