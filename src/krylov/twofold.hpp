#pragma once
// Products with a sparse matrix as if they were computed in twice the precision, for residuals that
// are certified.
//
// Contract: A·x = hi + lo, each element from a compensated sum (Ogita, Rump, Oishi, "Accurate sum
// and dot product", 2005, Dot2): in error by 2^-53 of lo and about m·2^-106 of the sum of the
// magnitudes of its m terms. Products that underflow are as far off as that, and the rows that have
// some are told. Sums have the order of the entries, so equal inputs give equal bits, whichever
// rows are formed together.

#include <cstdint>
#include <span>
#include <vector>

#include "scalar/double_double.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

struct TwofoldVector {
  std::vector<double> hi, lo;
  /// By rows: 1 where a product of numbers that are not 0 has digits below the least double, or
  /// may.
  std::vector<unsigned char> underflows;
};

/// A·x; x has `cols` elements.
[[nodiscard]] TwofoldVector multiply_twofold(const SparseMatrix& a, std::span<const double> x);
/// Rows begin … end − 1 of it.
[[nodiscard]] TwofoldVector multiply_twofold(const SparseMatrix& a, std::span<const double> x,
                                             std::int64_t begin, std::int64_t end);

/// product − θ·x, each element rounded once but for 2^-106 of the product.
[[nodiscard]] std::vector<double> minus_multiple(const TwofoldVector& product, double theta,
                                                 std::span<const double> x);
/// b − (hi + lo), rounded once but for 2^-106 of hi.
[[nodiscard]] inline double subtracted_from(double b, double hi, double lo) noexcept {
  const DoubleDouble difference = two_sum(b, -hi);
  return difference.hi + (difference.lo - lo);
}

}  // namespace strata
