#pragma once
// What a factored panel does to other columns on the GPU: row exchanges, solves with its unit lower
// triangle, products.
//
// Contract: views begin at the row of the panel's diagonal. A panel is dealt with kPanelColumns
// columns at a time. RowMoves says where rows end up after the exchanges of so many columns. Only
// for *_cuda.cu.

#include <cstdint>

#include "device/device_cuda.hpp"
#include "kernels/dense/lu_panel_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::lu_cuda {

/// Row first + j becomes what row top[j] was, and row far[j] what row far_from[j] was, where
/// far[j] >= 0, by pivots first … first + count − 1.
struct RowMoves {
  int top[kPanelColumns];
  int far[kPanelColumns];
  int far_from[kPanelColumns];
};

/// Pivots as getrf has them, counted from the row of the panel's diagonal. Throws Error{device}.
void make_moves(const CudaStream& stream, const std::int64_t* pivots, std::int64_t first,
                std::int64_t count, RowMoves* moves);

enum class MoveDirection : std::uint8_t { forward, back };

/// Does the exchanges in all columns of x, or undoes them.
template <class T>
void move_rows(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
               std::int64_t count, MatrixView<T> x, MoveDirection direction);

/// Rows first … first + l.cols − 1 of x ← L⁻¹·these, after the exchanges of `moves`, unless it is
/// null. l is those rows of the panel, at most kPanelColumns square.
template <class T>
void move_and_solve(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
                    MatrixView<const T> l, MatrixView<T> x);

/// x ← L⁻¹·P·x for the columns of a panel `l` (rows from its diagonal on) from `first` on, moves[i]
/// those of columns first + i·kPanelColumns and following; x has the rows of l.
template <class T>
void apply_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first,
                 const RowMoves* moves, MatrixView<T> x);

}  // namespace strata::lu_cuda
