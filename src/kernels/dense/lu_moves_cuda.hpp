#pragma once
// Row exchanges of LU on the GPU.
//
// Contract: rows are counted from the first row of the matrix that is factored. Only for *_cuda.cu.

#include <cstdint>

#include "device/device_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::lu_cuda {

/// Most columns of a panel whose exchanges are done at once.
inline constexpr std::int64_t kMovesMost = 1024;

/// Where rows end up by the exchanges of `count` columns from `first` on: row first + j becomes
/// what row top[j] was, and row far[j] what row first + j was, where far[j] >= 0.
struct RowMoves {
  int top[kMovesMost];
  int far[kMovesMost];
};

/// By pivots[first … first + count − 1], count at most kMovesMost. Throws Error{device}.
void make_moves(const CudaStream& stream, const std::int64_t* pivots, std::int64_t first,
                std::int64_t count, RowMoves* moves);

enum class MoveDirection : std::uint8_t { forward, back };

/// Does the exchanges in all columns of x, or undoes them.
template <class T>
void move_rows(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
               std::int64_t count, MatrixView<T> x, MoveDirection direction);

/// The exchanges of many panels as one order of rows: row i becomes what row from[i] was;
/// at[from[i]] = i. In device memory, `rows` each.
struct RowOrder {
  int* from;
  int* at;
  std::int64_t rows;
};

/// No exchanges.
void start_order(const CudaStream& stream, const RowOrder& order);
/// Puts those of `moves` before the ones that `order` has.
void put_before(const CudaStream& stream, const RowMoves* moves, std::int64_t first,
                std::int64_t count, const RowOrder& order);
/// x, rows from `first` on, in that order, which leaves the rows above `first` where they are.
/// `scratch`: device memory for `scratch_bytes`, at least a column of x.
template <class T>
void reorder_rows(const CudaStream& stream, const RowOrder& order, std::int64_t first,
                  MatrixView<T> x, void* scratch, std::int64_t scratch_bytes);

}  // namespace strata::lu_cuda
