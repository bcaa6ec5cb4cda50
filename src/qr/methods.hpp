#pragma once
// The methods of orthogonalization.
//
// Contract: each takes a problem that no pass has touched, orthonormalizes V and sets what info()
// says of ok, orthogonality and measured. T is double or float.

#include "qr/tall_problem.hpp"

namespace strata {

/// QrMethod::automatic.
template <class T>
void run_automatic(TallProblem<T>& problem);
/// Passes of a list: CholQR and SVQR, once and again.
template <class T>
void run_passes(TallProblem<T>& problem);
template <class T>
void run_gram_schmidt(TallProblem<T>& problem);
template <class T>
void run_tsqr(TallProblem<T>& problem);

}  // namespace strata
