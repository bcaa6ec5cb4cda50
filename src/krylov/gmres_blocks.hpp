#pragma once
// gmres() with a look at its blocks.
//
// Contract: as gmres(). The observer is called with each block of s vectors once it was projected
// against the vectors before it and before it is made orthonormal: that is what a method for tall
// and skinny matrices is given. Its rows stand in the order of the reordered system. Only with the
// methods of one pass (cholqr, cholqr_wide) and BlockOrthogonalization::classical, whose solve
// waits for the next script: others have Error{misuse}. Looking at a block changes no bit of the
// result.

#include <functional>
#include <span>

#include "strata/krylov.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// With the cycle, from 0, and the column of the basis before the block.
using BlockObserver =
    std::function<void(std::int64_t restart, std::int64_t column, MatrixView<const double> block)>;

GmresInfo gmres_observed(const SparseMatrix& a, std::span<const double> b, std::span<double> x,
                         const GmresOptions& options, const BlockObserver& observer);

}  // namespace strata
