#pragma once
// Products with a whole symmetric matrix in host memory, for checking an answer.
//
// Contract: A may be fp64 or fp32, or Hermitian in complex numbers of one of them; everything is
// summed up in fp64 or wider. In fp32 a product of two elements is then exact, so that a residual
// far below the rounding of its terms has digits. The imaginary part of a complex diagonal
// counts as zero. Throws nothing but std::bad_alloc.

#include <complex>
#include <span>

#include "scalar/complex.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// R ← R − A·X, A n × n symmetric by its lower triangle, X and R n × m. With an A in fp32 X should
/// hold numbers of fp32, too, so that products are exact. The same bits on any number of threads.
template <class A>
void symmetric_residual(MatrixView<const A> a, MatrixView<const WideOf<A>> x,
                        MatrixView<WideOf<A>> r);

/// R ← B − A·X, summed up in double-double and then rounded. The same bits on any number of
/// threads.
template <class A>
void symmetric_residual_dd(MatrixView<const A> a, MatrixView<const WideOf<A>> b,
                           MatrixView<const WideOf<A>> x, MatrixView<WideOf<A>> r);

/// R ← R − E·X, E what elements of A above the diagonal differ by from (conjugates of) those below
/// it, that is A less the symmetric matrix of its lower triangle.
template <class A>
void subtract_asymmetry(MatrixView<const A> a, MatrixView<const WideOf<A>> x,
                        MatrixView<WideOf<A>> r);

/// ‖D·E·D‖ for that E and D = diag(scale): the larger of its norms by rows and by columns.
template <class A>
[[nodiscard]] double scaled_asymmetry(MatrixView<const A> a, std::span<const double> scale);

/// Y ← |A|·X, A n × n symmetric by its lower triangle, X >= 0 and Y n × m: with a column of ones
/// the row sums of |A|, whose largest is ‖A‖∞. The same bits on any number of threads.
template <class A>
void symmetric_magnitudes(MatrixView<const A> a, MatrixView<const double> x, MatrixView<double> y);

/// max |r_ij| / t_ij for R = B − A·X and T = |A|·|X| + |B|: the least relative change of every
/// element of A and B that makes X exact. 0/0 counts as 0; a NaN makes it NaN.
/// Source: Oettli, Prager, "Compatibility of approximate solution of linear equations with given
/// error bounds for coefficients and right-hand sides", Numer. Math. 6 (1964), 405-409.
[[nodiscard]] double componentwise_backward_error(MatrixView<const double> r,
                                                  MatrixView<const double> terms);
[[nodiscard]] double componentwise_backward_error(MatrixView<const std::complex<double>> r,
                                                  MatrixView<const double> terms);

/// max over columns of ‖r‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞) for R = B − A·X: the least relative change of A
/// and b, in the norm, that makes x exact. 0/0 counts as 0; a NaN in R, X, B or the norm of A makes
/// it NaN.
/// Source: Rigal, Gaches, "On the compatibility of a given solution with the data of a linear
/// system", J. ACM 14 (1967), 543-548.
[[nodiscard]] double backward_error(double norm_a, MatrixView<const double> b,
                                    MatrixView<const double> x, MatrixView<const double> r);
[[nodiscard]] double backward_error(double norm_a, MatrixView<const std::complex<double>> b,
                                    MatrixView<const std::complex<double>> x,
                                    MatrixView<const std::complex<double>> r);

}  // namespace strata
