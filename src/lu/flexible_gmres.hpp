#pragma once
// Flexible GMRES, real or complex, for several right-hand sides that share the operators.
//
// Contract: S is known by its product with a block, the preconditioner by what it makes of a block;
// it may be any map, also one that rounds in fp32. Host code in the calling thread; equal inputs
// and operators give equal results. A number that is not finite ends a column: no exception.

#include <functional>
#include <vector>

#include "dense/dense_block.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

template <class W>
struct GmresOperators {
  std::function<DenseBlockOf<W>(MatrixView<const W>)> apply;         ///< S·V
  std::function<DenseBlockOf<W>(MatrixView<const W>)> precondition;  ///< near S⁻¹·V
};

template <class W>
struct GmresSolution {
  DenseBlockOf<W> y;
  /// By column ‖v − S·y‖₂/‖v‖₂, as the recurrence has it; 0 for v = 0, NaN where an operator gave
  /// what is not finite at once, and y is 0.
  std::vector<double> reduction;
  int iterations = 0;  ///< of all columns together
};

/// y near S⁻¹·v with a residual that is `wanted` times that of y = 0 or, after `iterations_max`
/// iterations, the least that they found.
template <class W>
[[nodiscard]] GmresSolution<W> flexible_gmres(const GmresOperators<W>& operators,
                                              MatrixView<const W> v, double wanted,
                                              int iterations_max);

}  // namespace strata
