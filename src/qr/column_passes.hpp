#pragma once
// The tasks of a pass over two blocks of columns, one of which is orthonormal.
//
// Contract: emits tasks only. The families are those of row_passes.hpp; V has the blocks (b, 0) of
// the left columns, problem.left of them, and (b, 1) of the right ones, at most as many.
// RowPass::inner_columns: B ← LᵀX, left × right in fp64, summed in the order of SumTree.
// RowPass::subtract_columns: X ← X − L·R, R in family rows::kFactor.

#include "qr/row_passes.hpp"

namespace strata {

[[nodiscard]] constexpr bool is_of_columns(RowPass pass) noexcept {
  return pass == RowPass::inner_columns || pass == RowPass::subtract_columns;
}

[[nodiscard]] Schedule column_pass(const RowProblem& problem);

}  // namespace strata
