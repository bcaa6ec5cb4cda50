// libFuzzer target: any bytes as a Matrix Market file give a matrix whose entries lie inside it, or
// Error{input}.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/mtx.hpp"
#include "strata/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using strata::ErrorKind;
  constexpr std::int64_t kDenseMax = 1000;
  try {
    strata::MatrixMarket a =
        strata::parse_mtx(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    for (std::size_t k = 0; k < a.row.size(); ++k) {
      const bool inside = a.row[k] >= 0 && a.row[k] < a.rows && a.col[k] >= 0 && a.col[k] < a.cols;
      const bool half = a.symmetric || a.hermitian;
      if (!inside || (half && a.row[k] < a.col[k])) std::abort();
    }
    if (a.imaginary.size() != (a.is_complex ? a.value.size() : 0)) std::abort();
    if (a.rows <= kDenseMax && a.cols <= kDenseMax) (void)a.to_dense_complex();
    if (a.rows <= kDenseMax && a.cols <= kDenseMax && !a.is_complex) (void)a.to_dense();
    if (a.rows != a.cols || a.skew_symmetric || (a.symmetric && a.is_complex)) return 0;
    a.take_triangle(size % 2 == 0 ? strata::Triangle::lower : strata::Triangle::upper, "fuzz");
    if (a.rows <= kDenseMax) (void)a.to_dense_complex();
  } catch (const strata::Error& error) {
    if (error.kind() != ErrorKind::input) std::abort();
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
