#pragma once
// How much the data say of the covariance parameters, and what follows for the estimates.
//
// Contract: matrices are of order 9: the logarithms of variance, range and smoothness, the nugget,
// the logarithms of scale and smoothness in time, the interaction, the logarithm of the anisotropy
// ratio and the angle in radians.

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "geostat/fit_space.hpp"
#include "strata/geostat.hpp"

namespace strata {

inline constexpr std::size_t kInformationOrder = 9;  ///< of the matrix of parameters
using Information = std::array<std::array<double, kInformationOrder>, kInformationOrder>;

/// The largest number of points for which the expected information is computed: matrices of that
/// order in host memory, four of them and one for each parameter of time and anisotropy.
inline constexpr std::int64_t kInformationOrderMax = 3000;

/// Fisher's expected information of n observations, I_ij = ½·tr(Σ⁻¹·∂_iΣ·Σ⁻¹·∂_jΣ). The mean has
/// no part in it. Entries of parameters of time and anisotropy are 0 unless they are `variables`
/// (FitSpace::Variable). Throws Error{numerical} if the covariance is not positive definite.
[[nodiscard]] Information expected_information(const Points& points,
                                               const MaternParameters& parameters,
                                               const CovarianceOptions& options, const char* where,
                                               const std::vector<std::size_t>& variables = {});

/// The covariance of the search coordinates of those `variables` that are searched, the variance of
/// the process being estimated too unless the nugget is held; nothing if it does not exist.
[[nodiscard]] std::optional<std::vector<double>> covariance_of_search(
    const Information& information, const FitSpace& space, const MaternParameters& parameters,
    const std::vector<std::size_t>& variables);

/// From the expected information; a variable that is held or at a bound is taken as known.
[[nodiscard]] StandardErrors expected_standard_errors(const Information& information,
                                                      const FitSpace& space,
                                                      const MaternParameters& parameters);

/// −log-likelihood and the log of the best variance.
struct ObjectiveValue {
  double value = 0;
  double log_variance = 0;
};

/// How far from its bounds a coordinate has to be for second differences of an objective with this
/// noise, in standard deviations.
[[nodiscard]] double room_of_differences(double noise);

/// From the observed information: central differences of the objective at the values of a maximum,
/// in steps that are chosen by its measured noise, or by `noise` if that is more, and that stay
/// inside the bounds. `scale`: the covariance that is expected of the coordinates of `variables`,
/// each of which has room_of_differences() for its steps.
[[nodiscard]] StandardErrors observed_standard_errors(
    const std::function<ObjectiveValue(const FitSpace::Values&)>& objective, std::int64_t n,
    const FitSpace& space, const MaternParameters& parameters,
    const std::vector<std::size_t>& variables, const std::vector<double>& scale, double noise = 0);

}  // namespace strata
