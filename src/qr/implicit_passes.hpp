#pragma once
// The tasks of passes over a matrix that is only read, and that a product of triangles makes Q.
//
// Contract: emits tasks only. With the triangles R_0 … R_K−1 and scales d_0 … d_K−1 that
// problem.stages and problem.factor name (blocks of families rows::kFactor and rows::kScales), Q is
// V·diag(d_0)·R_0⁻¹·diag(d_1)·R_1⁻¹ …, rounded to the element of V behind each triangle: the bits
// that passes of RowPass::solve would have stored one after the other. Each block of rows of V is
// copied into a block where it becomes Q; V stays as it is, on a device too.
//
//   RowPass::apply_gram        B ← QᵀQ                    where there are stages
//   RowPass::apply             Y ← 0 − Q·C                 C in family rows::kCoefficients
//   RowPass::apply_transposed  B ← QᵀY
//   RowPass::form              Y ← Q
//   RowPass::form_gram         Y ← Q, B ← QᵀQ
//
// Y is m × problem.beside, cut into rows as V. B is summed in the order of SumTree.

#include "qr/row_passes.hpp"

namespace strata {

[[nodiscard]] inline bool is_implicit(const RowProblem& problem) noexcept {
  switch (problem.pass) {
    case RowPass::apply_gram: return !problem.stages.empty();
    case RowPass::apply:
    case RowPass::apply_transposed:
    case RowPass::form:
    case RowPass::form_gram: return true;
    default: return false;
  }
}

[[nodiscard]] Schedule implicit_pass(const RowProblem& problem);

}  // namespace strata
