#pragma once
// covariance_times: Y ← Y − C·V, C a block of a Matérn covariance matrix that is never stored.
//
// Contract: operands Y (rows × c), P (rows × d) and Q (cols × d), the points of the rows and of the
// columns of C, and V (cols × c), all fp64. Values: CovarianceParameters, never absent. The
// elements of C are those that `covariance` of the same backend makes of P and Q in fp64, with the
// nugget where row + i of Y == row + j of V in the whole matrix if same_points.
//
// The order of the sum decides its bits, so it is part of the contract. The columns of C go in runs
// of kCovarianceRun, counted from the first; the last run may be shorter. For each run s_i = Σ_j
// c_ij·v_j is a chain of fused multiply-adds that begins with 0, j ascending (the reference adds in
// long double), and y_i ← y_i − s_i, run after run. So C may be cut between rows anywhere, between
// columns at multiples of kCovarianceRun, and between columns of V anywhere, and every bit stays.
//
// Error: |ŷ − y| <= (kCovarianceRun + cols / kCovarianceRun + 1)·2^-53·(|y_i| + Σ_j |c_ij·v_j|) to
// first order, beside the errors of the elements. A NaN coordinate of P makes its row of Y NaN, one
// of Q all of Y. A NaN of V makes its column NaN, and so does an infinite v_j where c_ij underflows
// to 0; sums that overflow are infinite, or NaN where infinities meet. Products that underflow lose
// at most 2^-1075 each.
//
// A unit of work is an operation: two for each element and column of V, and as many for an element
// as `covariance` takes it to cost.

#include "kernels/backend/kernel_table.hpp"
#include "kernels/covariance/covariance.hpp"

namespace strata {

/// Columns of C whose products are added before Y changes.
inline constexpr std::int64_t kCovarianceRun = 512;

inline constexpr Operation covariance_times{
    .name = "covariance_times",
    .operands = 4,
    .access = {Access::read_write, Access::read, Access::read, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      return static_cast<double>(x[0].rows) * static_cast<double>(x[3].rows) *
             (2 * static_cast<double>(x[0].cols) + covariance.nominal_cost);
    }};

inline constexpr Elements kCovarianceTimesElements(4, Element::fp64);

/// The formula of covariance_reference and sums as they are written, in long double.
void covariance_times_reference(Queue& queue, const KernelCalls& calls,
                                const KernelParameters& parameters);
/// For the CPU, see covariance_times_host.cpp.
void covariance_times_host(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);
/// For a GPU, see covariance_times_cuda.cu.
void covariance_times_cuda(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters);

}  // namespace strata
