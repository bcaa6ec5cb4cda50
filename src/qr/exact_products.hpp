#pragma once
// Whether a right-hand side is orthogonal to columns of A, exactly, as the numbers are stored.
//
// Method: a product of two doubles is an integer of 106 bits times a power of two. Products are
// added up in one integer that is wide enough for all of them, from 2⁻²¹⁴⁸ to 2²⁰⁴⁸ (Kulisch,
// Computer Arithmetic and Validity, 2013, ch. 8), so nothing is rounded, and nothing underflows.

#include <cstdint>
#include <vector>

#include "strata/qr.hpp"

namespace strata {

/// Column k of b beside the columns of A but those in `without`, which increase; all are finite. A
/// column is read to its end, the next one only if its product is 0.
[[nodiscard]] bool is_orthogonal(const TallInput<double>& a, const TallInput<double>& b,
                                 std::int64_t k, const std::vector<std::int64_t>& without);

}  // namespace strata
