#pragma once
// What a factored panel does to other columns on the GPU: row exchanges, solves with its unit lower
// triangle, products.
//
// Contract: views begin at the row of the panel's diagonal. Only for *_cuda.cu.

#include "device/device_cuda.hpp"
#include "kernels/dense/lu_moves_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::lu_cuda {

/// Columns of a panel that one launch solves with.
inline constexpr std::int64_t kSolvedAtOnce = 256;

/// Begins to apply the columns of a panel `l` (rows from its diagonal on) from `first` on to x,
/// which has the rows of l. `moves`, if it is not null, has the exchanges of these columns, which
/// are done first. Then rows first … l.cols − 1 are solved by the unit lower triangle there.
template <class T>
void solve_by_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first,
                    const RowMoves* moves, MatrixView<T> x);
/// Goes on: the products of these columns with those rows are taken off the rows below. `halves`:
/// those of fp32 by fp16 parts (kProductsOfHalves).
template <class T>
void subtract_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first, MatrixView<T> x,
                    bool halves = false);
/// Both.
template <class T>
void apply_panel(CudaStream& stream, MatrixView<const T> l, std::int64_t first,
                 const RowMoves* moves, MatrixView<T> x, bool halves = false);

}  // namespace strata::lu_cuda
