#pragma once
// eigs() of a matrix of small order: all its eigenpairs, as of a dense matrix on the host.

#include <functional>

#include "base/work_crew.hpp"
#include "krylov/eigen_certificate.hpp"
#include "krylov/small_eigen.hpp"
#include "strata/krylov.hpp"

namespace strata {

/// The wanted k eigenpairs of the matrix from the end inwards, the first columns of `vectors`; of
/// several ways to them the one that leaves fewer of the values unresolved. Empty if QL does not
/// converge. Throws Error{cancelled}.
[[nodiscard]] SymmetricEigen dense_eigen(const CertifiedMatrix& of, const EigsOptions& options,
                                         WorkCrew& crew);

}  // namespace strata
