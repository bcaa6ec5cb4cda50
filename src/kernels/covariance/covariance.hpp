#pragma once
// covariance: a block of a Matérn covariance matrix from the coordinates of two point sets.
//
// Contract: operands C (rows × cols, written) of type T, P (rows × d) and Q (cols × d), the
// coordinates of the points of its rows and of its columns, one point a row, of type X.
// Values: CovarianceParameters, never absent. The coordinates are those in space, then the time if
// the separation has one: d >= 1 in space, two for Distance::great_circle, at least two for an
// anisotropy. C_ij = c(p_i, q_j), plus the nugget where row + i == col + j in the whole matrix if
// same_points. Arithmetic is double whatever T and X, on a GPU in part single where it says so
// (covariance_cuda). Distance 0 gives the variance, a covariance that underflows gives 0, a NaN
// coordinate gives NaN. Parameters must satisfy variance > 0, range > 0, 0 < smoothness <= 50,
// nugget >= 0, and what separation.hpp says. A unit of work is an element.
//
// The parametrization (range not scaled by the smoothness) is that of ExaGeoStat and of Matern() in
// the R package fields.

#include "kernels/backend/kernel_table.hpp"
#include "strata/separation.hpp"

namespace strata {

/// Matérn covariance c(h) = variance · 2^(1−ν)/Γ(ν) · (h/range)^ν · K_ν(h/range), plus the nugget
/// where the two points are the same observation (same element row and column). h, and what the
/// time does to it, are those of `separation`.
struct CovarianceParameters {
  double variance = 1;      ///< c(0) without the nugget, in squared units of the data
  double range = 1;         ///< in units of the coordinates
  double smoothness = 0.5;  ///< ν > 0
  double nugget = 0;        ///< in squared units of the data
  /// The two coordinate families are the same points, so that the nugget belongs on the diagonal.
  bool same_points = true;
  Separation separation{};
  bool operator==(const CovarianceParameters&) const = default;
};

/// The values of a run of covariance.
[[nodiscard]] inline const CovarianceParameters& parameters_of(const KernelParameters& parameters) {
  return *static_cast<const CovarianceParameters*>(parameters.values);
}

inline constexpr Operation covariance{.name = "covariance",
                                      .operands = 3,
                                      .access = {Access::write, Access::read, Access::read},
                                      .work =
                                          [](std::span<const BlockExtent> x, std::uint32_t) {
                                            return static_cast<double>(x[0].rows) *
                                                   static_cast<double>(x[0].cols);
                                          },
                                      .flops_per_work = 0,
                                      .nominal_cost = 50};

// T, the element of C, and X, that of the coordinates: double; float; float and double.

/// The formula as it is written, by Boost.Math in long double.
template <class T, class X = T>
void covariance_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);
/// For the CPU, see covariance_host.cpp.
template <class T, class X = T>
void covariance_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// For a GPU, see covariance_cuda.cu. Single precision from coordinates in double has a relative
/// error of at most 4·2^-24·(1 + distance/range) where the smoothness is 1/2, 3/2 or 5/2.
template <class T, class X = T>
void covariance_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
