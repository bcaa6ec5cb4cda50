#pragma once
// Products with a whole symmetric matrix in host memory, for checking an answer.

#include "strata/matrix_view.hpp"

namespace strata {

/// R ← R − A·X, A n × n symmetric by its lower triangle, X and R n × m. Throws nothing.
void symmetric_residual(MatrixView<const double> a, MatrixView<const double> x,
                        MatrixView<double> r);

/// ‖A‖∞ of a symmetric matrix by its lower triangle; NaN if it holds a NaN.
[[nodiscard]] double symmetric_norm_inf(MatrixView<const double> a);

}  // namespace strata
