#include "matrix/array_columns.hpp"

#include "base/check.hpp"

namespace strata {

void check_array(ConstArrayRef a, const char* where) {
  require(is_native(a.element) || is_complex(a.element), ErrorKind::misuse, where,
          "an array of {} is none of fp64, fp32, complex128 or complex64", to_string(a.element));
  require(a.rows >= 0 && a.cols >= 0, ErrorKind::misuse, where, "an array of {} by {}", a.rows,
          a.cols);
  require(a.data != nullptr || a.rows == 0 || a.cols == 0, ErrorKind::misuse, where,
          "an array of {} by {} has no data", a.rows, a.cols);
}

}  // namespace strata
