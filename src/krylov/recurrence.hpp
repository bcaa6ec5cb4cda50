#pragma once
// The polynomials in which the vectors of a block are computed.
//
// Contract: with w_0 the last vector of the basis, w_{i+1} = γ_i·(A·w_i − α_i·w_i − β_i·w_{i−1}),
// β_0 = 0; everything is real. Whatever the numbers, the space is the same; only how well its
// vectors can be told apart depends on them.

#include <complex>
#include <cstdint>
#include <vector>

#include "strata/krylov.hpp"

namespace strata {

struct RecurrenceStep {
  double alpha = 0;
  double beta = 0;
  double gamma = 1;
};
using Recurrence = std::vector<RecurrenceStep>;

/// s steps. `ritz`: eigenvalues of a projection of A, conjugates together; not used by the
/// monomial basis, which any other is without them. `norm`: of A, about; vectors are scaled by a
/// power of two where it is far from 1.
[[nodiscard]] Recurrence make_recurrence(KrylovBasis basis, std::int64_t s,
                                         const std::vector<std::complex<double>>& ritz,
                                         double norm);

/// The first `count` of the numbers in Leja's order: each is as far as can be, in the product of
/// the distances, from those before it. A number with a positive imaginary part is followed by its
/// conjugate; where that no longer fits its real part stands alone.
[[nodiscard]] std::vector<std::complex<double>> leja_ordered(
    std::vector<std::complex<double>> numbers, std::int64_t count);

}  // namespace strata
