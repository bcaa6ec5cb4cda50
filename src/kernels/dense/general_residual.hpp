#pragma once
// Products with a general matrix in host memory, for checking an answer: as
// host_residual.hpp, without symmetry.
//
// Contract: A is n × m, fp64 or fp32, or complex numbers of one of them; everything is summed up in
// fp64 or wider. The same bits on any number of threads. Throws nothing but std::bad_alloc.

#include <span>

#include "kernels/dense/long_sums.hpp"
#include "scalar/complex.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// R ← R − op(A)·X, op(A) being A or, if `adjoint`, its (conjugate) transposed.
template <class T>
void general_residual(MatrixView<const T> a, bool adjoint, MatrixView<const WideOf<T>> x,
                      MatrixView<WideOf<T>> r);

/// SUMS ← SUMS − A·X in double-double, sums of each column of X, by one reading of A, which may
/// have fewer columns than rows.
template <class T>
void subtract_dd(MatrixView<const T> a, MatrixView<const WideOf<T>> x,
                 std::span<LongSums<WideOf<T>>> sums);
/// The same with Aᵀ (without conjugates), of sums first … first + m − 1.
template <class T>
void subtract_transposed_dd(MatrixView<const T> a, MatrixView<const WideOf<T>> x,
                            std::int64_t first, std::span<LongSums<WideOf<T>>> sums);

/// Y ← Y + |A|·X for X >= 0.
template <class T>
void add_magnitudes(MatrixView<const T> a, MatrixView<const double> x, MatrixView<double> y);
/// Y ← Y + |A|ᵀ·X.
template <class T>
void add_magnitudes_transposed(MatrixView<const T> a, MatrixView<const double> x,
                               MatrixView<double> y);

}  // namespace strata
