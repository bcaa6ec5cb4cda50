#pragma once
// Passes over a sparse matrix that threads share.
//
// Contract: results, and what is thrown, are the same on any number of threads, and those of the
// functions without a crew.

#include <utility>

#include "base/work_crew.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

void require_well_formed(const SparseMatrix& a, WorkCrew& crew);

[[nodiscard]] Balance balance(SparseMatrix& a, WorkCrew& crew);

/// combine(… combine(first, piece(begin, end)) …) of blocks of 0 … count − 1, in their order. T is
/// not bool.
template <class T, class Piece, class Combine>
[[nodiscard]] T reduce_blocks(WorkCrew& crew, std::int64_t count, T first, const Piece& piece,
                              const Combine& combine) {
  std::vector<T> of_block(static_cast<std::size_t>(blocks_of(count)));
  for_blocks(crew, count, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    of_block[static_cast<std::size_t>(block)] = piece(begin, end);
  });
  for (T& one : of_block) first = combine(std::move(first), one);
  return first;
}

}  // namespace strata
