#pragma once
// Kernel `covariance`: a block of a Matérn covariance matrix from the coordinates of two point
// sets.
//
// Contract: out is a rows × cols block, inputs[0] the coordinates P (rows × d) of its rows and
// inputs[1] the coordinates Q (cols × d) of its columns, one point a row, d >= 1, all of type T.
// The distance is Euclidean, in the unit of the coordinates. C_ij = c(|p_i − q_j|) as
// CovarianceParameters defines it, plus the nugget where out.row + i == out.col + j if same_points.
// Arithmetic is double whatever T. Distance 0 gives the variance, a covariance that underflows
// gives 0, a NaN coordinate gives NaN. Parameters must satisfy variance > 0, range > 0, 0 <
// smoothness <= 50, nugget >= 0.
//
// The parametrization (range not scaled by the smoothness) is that of ExaGeoStat and of Matern() in
// the R package fields.

#include "kernels/kernel_table.hpp"

namespace strata {

/// The formula as it is written, by Boost.Math in long double. T: double, float.
template <class T>
void covariance_reference(Queue& queue, const KernelArguments& arguments);

/// For the CPU, see covariance_host.cpp. T: double, float.
template <class T>
void covariance_host(Queue& queue, const KernelArguments& arguments);

void covariance_cuda_fp64(Queue& queue, const KernelArguments& arguments);
void covariance_cuda_fp32(Queue& queue, const KernelArguments& arguments);

}  // namespace strata
