#pragma once
// Blocks of a Matérn covariance in the memory of the host, for kernels that use them at once.

#include "kernels/covariance/covariance.hpp"

namespace strata::host {

/// What covariance_host<double> does to its operands, in the calling thread.
void fill_covariance(const BlockView& out, const BlockView& p, const BlockView& q,
                     const CovarianceParameters& parameters);

}  // namespace strata::host
