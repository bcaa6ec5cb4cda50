#pragma once
// Products with a whole symmetric matrix in host memory, for checking an answer.
//
// Contract: matrices may be fp64 or fp32; everything is summed up in fp64. In fp32 a product of two
// elements is then exact, so that a residual far below the rounding of its terms has digits.
// Throws nothing but std::bad_alloc.

#include "strata/matrix_view.hpp"

namespace strata {

/// R ← R − A·X, A n × n symmetric by its lower triangle, X and R n × m.
void symmetric_residual(MatrixView<const double> a, MatrixView<const double> x,
                        MatrixView<double> r);
void symmetric_residual(MatrixView<const float> a, MatrixView<const float> x, MatrixView<double> r);

/// ‖A‖∞ of a symmetric matrix by its lower triangle; NaN if it holds a NaN.
[[nodiscard]] double symmetric_norm_inf(MatrixView<const double> a);
[[nodiscard]] double symmetric_norm_inf(MatrixView<const float> a);

/// max over columns of ‖r‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞) for R = B − A·X: the least relative change of A
/// and b, in the norm, that makes x exact. 0/0 counts as 0; a NaN in R, X, B or the norm of A makes
/// it NaN.
/// Source: Rigal, Gaches, "On the compatibility of a given solution with the data of a linear
/// system", J. ACM 14 (1967), 543-548.
[[nodiscard]] double backward_error(double norm_a, MatrixView<const double> b,
                                    MatrixView<const double> x, MatrixView<const double> r);
[[nodiscard]] double backward_error(double norm_a, MatrixView<const float> b,
                                    MatrixView<const float> x, MatrixView<const double> r);

}  // namespace strata
