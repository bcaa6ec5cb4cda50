#pragma once
// A sparse matrix cut into slabs of rows, each for one device.
//
// Contract: a slab is a contiguous range of whole chunks (kernels/krylov/panel.hpp) of the rows;
// slabs go to the devices in contiguous ranges. Columns of a slab are numbered anew: those below
// its number of rows are its own, the others elements of its halo, which is in the order of the
// matrix's columns. The order of the entries of a row stays that of the matrix. A link is what one
// slab needs of another.

#include <cstdint>
#include <vector>

#include "base/work_crew.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

struct RowSlab {
  int device = 0;
  std::int64_t first = 0;  ///< row of the matrix
  std::int64_t rows = 0;
  std::int64_t first_entry = 0;  ///< in the matrix's arrays
  std::int64_t entries = 0;
  std::int64_t halo = 0;    ///< elements
  std::int64_t chunks = 0;  ///< of rows
};

struct HaloLink {
  int from = 0;                     ///< slab that has the elements
  int to = 0;                       ///< slab that needs them
  std::int64_t offset = 0;          ///< of the first of them in the halo of `to`
  std::vector<std::int32_t> index;  ///< rows of `from`
};

struct RowSlabs {
  std::int64_t rows = 0;
  int chunk_log2 = 7;
  std::vector<RowSlab> slabs;
  std::vector<HaloLink> links;  ///< ordered by `to`, then by `from`
  /// The row starts of slab s, from 0, rows + 1 of them, begin at its first row + s.
  std::vector<std::int32_t> start;
  std::vector<std::int32_t> column;  ///< of each entry of the matrix, as its slab numbers them
};

/// `per_device` slabs for each of `devices` devices, fewer where there are not as many chunks.
/// Throws Error{misuse} where a slab has 2^31 entries or more.
[[nodiscard]] RowSlabs cut_into_slabs(const SparseMatrix& a, int devices, std::int64_t per_device,
                                      WorkCrew& crew);

}  // namespace strata
