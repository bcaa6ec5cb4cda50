#pragma once
// Tensor maps of matrices of doubles or floats: what the tensor memory accelerator (TMA) has to
// know to copy boxes of them to shared memory (cp.async.bulk.tensor).
//
// Contract: column-major, in device memory. Only for *_cuda.cu.

#include <cuda.h>

#include "strata/matrix_view.hpp"

namespace strata {

/// Describes one matrix and a size of boxes; a parameter of a kernel, __grid_constant__, not a copy
/// of it.
using TensorMap = CUtensorMap;

/// Boxes of box_rows × box_cols (at most 256 each; columns of a multiple of 16 bytes). The matrix
/// and its columns begin at multiples of 16 bytes; what is outside of it is copied as zeros. Throws
/// Error{device}.
[[nodiscard]] TensorMap make_tensor_map(MatrixView<const double> matrix, int box_rows,
                                        int box_cols);

/// Boxes of `groups` groups of kGroupRows rows by `cols` columns, in shared memory group by group
/// and in each column by column; element (r, c) of a box is at grouped_place(r, c, cols). Rows of
/// the matrix behind its last whole group are not copied. A multiple of eight columns; else as
/// above.
inline constexpr int kGroupRows = 16;
[[nodiscard]] TensorMap make_group_map(MatrixView<const double> matrix, int groups, int cols);
[[nodiscard]] TensorMap make_group_map(MatrixView<const float> matrix, int groups, int cols);

/// Pairs of rows change places with the column, so that threads that read a pair of neighbouring
/// columns each have no bank conflicts (the swizzle of 128 bytes); of floats fours of rows do,
/// which leaves conflicts of two threads (the swizzle of 64 bytes).
template <class T>
[[nodiscard]] constexpr int grouped_place(int row, int col, int cols) noexcept {
  constexpr int kTogether = 16 / static_cast<int>(sizeof(T));
  const int swizzle = sizeof(T) == 8 ? col & 7 : col >> 1 & 3;
  const int place = (row % kGroupRows / kTogether ^ swizzle) * kTogether + row % kTogether;
  return (row / kGroupRows * cols + col) * kGroupRows + place;
}

}  // namespace strata
