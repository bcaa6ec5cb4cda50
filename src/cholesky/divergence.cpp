// The divergence by the difference of the factors.
//
// Method: KL = ½·(tr(M⁻¹·Σ) − n + log|M| − log|Σ|) (Kullback, Leibler, "On information and
// sufficiency", Ann. Math. Statist. 22, 1951; as the measure of a factor in mixed precision: Ren,
// Ltaief, Abdulah, Keyes 2024). With W = L̃⁻¹·L, lower triangular, tr(M⁻¹·Σ) = ‖W‖_F² and
// log|Σ| − log|M| = 2·Σ log w_ii, so
//     KL = ½·( Σ_{i>j} w_ij² + Σ_i (w_ii² − 1 − 2·log w_ii) ).
// W = I + E with E = L̃⁻¹·(L − L̃), computed as such, and with d = e_ii the term of the diagonal is
// d² + 2·(d − log(1 + d)) >= 0: nothing cancels that the subtraction L − L̃ has not cancelled
// exactly.

#include "cholesky/divergence.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "cholesky/log_determinant.hpp"

namespace strata {

Divergence kullback_leibler(std::int64_t n, const FactorColumns& exact,
                            const FactorColumns& approximate, const BlockSolver& solve_lower,
                            std::int64_t chunk) {
  require(chunk >= 1, ErrorKind::misuse, "divergence", "chunks of {} columns", chunk);
  Divergence out;
  for (std::int64_t first = 0; first < n; first += chunk) {
    const std::int64_t count = std::min(chunk, n - first);
    DenseBlock e(n, count);
    DenseBlock subtracted(n, count);
    exact(first, e.view());
    approximate(first, subtracted.view());
    for (std::int64_t j = 0; j < count; ++j) add_scaled(n, -1, subtracted.column(j), e.column(j));
    solve_lower(e.view());
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t i = first + j;
      const double* column = e.column(j);
      const double d = column[i];
      const double below = dot(n - i - 1, column + i + 1, column + i + 1);
      out.divergence += (below + d * d + 2 * excess_over_log(d)) / 2;
      out.log_determinant_difference += 2 * std::log1p(d);
    }
  }
  return out;
}

}  // namespace strata
