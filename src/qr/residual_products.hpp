#pragma once
// b − A·x and Aᵀ·(b − A·x) on the host in double-double, nothing of which is rounded to doubles.
//
// Contract: A, m × n, and b are only read, a few hundred rows at a time, in either order. Sums are
// over spans of 64 rows in a binary tree, so their error grows like the logarithm of m. Columns are
// multiplied by powers of two as they are read. The length has no square that underflows, and what
// products lose below the least double is added to it.

#include <vector>

#include "scalar/double_double.hpp"
#include "strata/qr.hpp"

namespace strata {

/// Relative rounding of a sum of products over all rows.
inline constexpr double kProductsUnit = 0x1p-97;
/// Squares of shorter lengths are no longer exact to that.
inline constexpr double kLeastLength = 0x1p-350;

struct ResidualProducts {
  std::vector<DoubleDouble> products;  ///< Aᵀ·(b − A·x), n
  double length = 0;                   ///< ‖b − A·x‖₂
};

/// scale: of the columns of A, n; of_b: of column k of b. x has n elements.
[[nodiscard]] ResidualProducts residual_products(const TallInput<double>& a,
                                                 const TallInput<double>& b, std::int64_t k,
                                                 const std::vector<double>& scale, double of_b,
                                                 const std::vector<DoubleDouble>& x);

}  // namespace strata
