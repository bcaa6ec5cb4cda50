#pragma once
// An element of a Matérn covariance as covariance_reference.cpp computes it.

#include "kernels/covariance/covariance.hpp"

namespace strata::reference {

/// c(p_i, q_j) from coordinates in X (double or float), without the nugget.
template <class X>
[[nodiscard]] long double covariance_element(const CovarianceParameters& parameters,
                                             const BlockView& p, std::int64_t i, const BlockView& q,
                                             std::int64_t j);

}  // namespace strata::reference
