#pragma once
// What is looked at in a matrix before each factorization of a pattern that is known.
//
// Contract: pure functions; a crew, where one is given, shares the work.

#include <cstdint>
#include <span>

#include "base/work_crew.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

/// The threads that are worth a look at one matrix, the calling one included.
[[nodiscard]] int checking_threads();

/// A hash of the shape and of where the entries stand, not of their values; never 0.
[[nodiscard]] std::uint64_t arrangement_of(const SparseMatrix& a, WorkCrew& crew);

/// The largest |value|, 0 of none; not finite if one is not.
[[nodiscard]] double largest_magnitude(std::span<const double> values);
[[nodiscard]] double largest_magnitude(std::span<const double> values, WorkCrew& crew);

}  // namespace strata
