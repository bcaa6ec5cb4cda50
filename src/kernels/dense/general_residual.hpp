#pragma once
// Products with a general square matrix in host memory, for checking an answer: as
// host_residual.hpp, without symmetry.
//
// Contract: A is n × n, fp64 or fp32, or complex numbers of one of them; everything is summed up in
// fp64 or wider. The same bits on any number of threads. Throws nothing but std::bad_alloc.

#include "scalar/complex.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// R ← R − op(A)·X, op(A) being A or, if `adjoint`, its (conjugate) transposed; X and R are n × m.
template <class T>
void general_residual(MatrixView<const T> a, bool adjoint, MatrixView<const WideOf<T>> x,
                      MatrixView<WideOf<T>> r);

/// R ← B − A·X, summed up in double-double and then rounded.
template <class T>
void general_residual_dd(MatrixView<const T> a, MatrixView<const WideOf<T>> b,
                         MatrixView<const WideOf<T>> x, MatrixView<WideOf<T>> r);

/// Y ← |A|·X for X >= 0.
template <class T>
void general_magnitudes(MatrixView<const T> a, MatrixView<const double> x, MatrixView<double> y);

}  // namespace strata
