#pragma once
// Matrices whose element is known when the program runs, in memory that somebody else owns: what
// the public calls take where several elements will do.
//
// Contract: element (i, j) lies i·row_stride + j·col_stride elements behind `data`, 0 <= i < rows,
// 0 <= j < cols; strides may be negative. A MatrixView converts by itself. Arrays that lie by
// columns, the first one first (row_stride 1), are used where they are; others, as row-major ones,
// are copied by the call, and what it filled is copied back: so much more host memory is taken.
// What is filled has a place for each element. A ref is trivially copyable and never owns.

#include <cstdint>
#include <type_traits>

#include "strata/element.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// Void: `const void` of arrays that are read, `void` of arrays that are filled.
template <class Void>
struct StridedArray {
  Void* data = nullptr;
  Element element = Element::fp64;  ///< fp64, fp32, complex128 or complex64
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 1;  ///< in elements
  std::int64_t col_stride = 1;  ///< likewise

  StridedArray() = default;
  StridedArray(Void* first, Element of, std::int64_t m, std::int64_t n, std::int64_t between_rows,
               std::int64_t between_cols) noexcept
      : data(first),
        element(of),
        rows(m),
        cols(n),
        row_stride(between_rows),
        col_stride(between_cols) {}
  /// The columns of a matrix, `ld` elements apart.
  template <class T>
  requires std::is_convertible_v<T*, Void*> StridedArray(T* first, std::int64_t m, std::int64_t n,
                                                         std::int64_t ld)
  noexcept : StridedArray(first, element_of<std::remove_const_t<T>>, m, n, 1, ld) {}
  template <class T>
  requires std::is_convertible_v<T*, Void*> StridedArray(MatrixView<T> view)
  noexcept : StridedArray(view.data, view.rows, view.cols, view.ld) {}

  /// What is filled may be read.
  operator StridedArray<const void>() const noexcept requires(!std::is_const_v<Void>) {
    return {data, element, rows, cols, row_stride, col_stride};
  }
  /// The same memory with rows for columns.
  [[nodiscard]] StridedArray transposed() const noexcept {
    return {data, element, cols, rows, col_stride, row_stride};
  }
};

using ArrayRef = StridedArray<void>;
using ConstArrayRef = StridedArray<const void>;

}  // namespace strata
