#pragma once
// eigs() of a matrix of small order: all its eigenpairs, as of a dense matrix on the host.

#include <cstdint>
#include <functional>

#include "base/work_crew.hpp"
#include "dense/small_eigen.hpp"
#include "krylov/eigen_certificate.hpp"
#include "strata/krylov.hpp"

namespace strata {

/// The wanted k eigenpairs of the matrix from the end inwards, the first columns of `vectors`; of
/// several ways to them the one that leaves fewer of the values unresolved. Empty if QL does not
/// converge. Throws Error{cancelled}.
[[nodiscard]] SymmetricEigen dense_eigen(const CertifiedMatrix& of, const EigsOptions& options,
                                         WorkCrew& crew);

/// What it holds in host memory at most, beside the matrix and the vectors it was given.
[[nodiscard]] std::int64_t dense_eigen_bytes(std::int64_t n);

}  // namespace strata
