#pragma once
// Products with a general square matrix in host memory, for checking an answer: as
// host_residual.hpp, without symmetry.
//
// Contract: A is n × n, fp64 or fp32; everything is summed up in fp64 or wider. The same bits on
// any number of threads. Throws nothing but std::bad_alloc.

#include "strata/matrix_view.hpp"

namespace strata {

/// R ← R − op(A)·X, op(A) being A or Aᵀ; X and R are n × m.
template <class T>
void general_residual(MatrixView<const T> a, bool transposed, MatrixView<const double> x,
                      MatrixView<double> r);

/// R ← B − A·X, summed up in double-double and then rounded.
template <class T>
void general_residual_dd(MatrixView<const T> a, MatrixView<const double> b,
                         MatrixView<const double> x, MatrixView<double> r);

/// Y ← |A|·X for X >= 0.
template <class T>
void general_magnitudes(MatrixView<const T> a, MatrixView<const double> x, MatrixView<double> y);

}  // namespace strata
