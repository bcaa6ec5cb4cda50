#pragma once
// A view of a column-major matrix in memory that somebody else owns.
//
// Contract: element (i, j) is data[i + j * ld], 0 <= i < rows, 0 <= j < cols, ld >= max(1, rows).
// Extents are 64-bit. A view is trivially copyable and never owns; a row-major or upper matrix
// enters as a transposed view by its caller.

#include <cstdint>
#include <type_traits>

namespace strata {

template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 1;

  [[nodiscard]] T& operator()(std::int64_t i, std::int64_t j) const noexcept {
    return data[i + j * ld];
  }
  /// Without rows `data`, which may be null: such a matrix need not have an address.
  [[nodiscard]] T* column(std::int64_t j) const noexcept {
    return rows == 0 ? data : data + j * ld;
  }
  [[nodiscard]] MatrixView block(std::int64_t i, std::int64_t j, std::int64_t block_rows,
                                 std::int64_t block_cols) const noexcept {
    return {size() == 0 ? data : data + i + j * ld, block_rows, block_cols, ld};
  }
  [[nodiscard]] std::int64_t size() const noexcept { return rows * cols; }

  /// A view of mutable elements reads as a view of constant ones.
  operator MatrixView<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {data, rows, cols, ld};
  }
};

}  // namespace strata
