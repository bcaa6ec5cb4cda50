#pragma once
// How much the data say of the covariance parameters, and what follows for the estimates.
//
// Contract: matrices are of order 4, in the order variance, range, smoothness, nugget, of the
// logarithms of the first three and of the nugget itself.

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "geostat/fit_space.hpp"
#include "strata/geostat.hpp"

namespace strata {

using Information = std::array<std::array<double, 4>, 4>;

/// The largest order at which the expected information is computed: matrices of that order in host
/// memory, four of them.
inline constexpr std::int64_t kInformationOrderMax = 3000;

/// Fisher's expected information of n observations, I_ij = ½·tr(Σ⁻¹·∂_iΣ·Σ⁻¹·∂_jΣ). The mean has
/// no part in it. Throws Error{numerical} if the covariance is not positive definite.
[[nodiscard]] Information expected_information(const Points& points,
                                               const MaternParameters& parameters,
                                               const Options& options, const char* where);

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

/// From the observed information: central differences of the objective at the values of a maximum,
/// in steps that are chosen by its measured noise, or by `noise` if that is more. `scale`: the
/// covariance that is expected of the coordinates of `variables`.
[[nodiscard]] StandardErrors observed_standard_errors(
    const std::function<ObjectiveValue(const FitSpace::Values&)>& objective, std::int64_t n,
    const FitSpace& space, const MaternParameters& parameters,
    const std::vector<std::size_t>& variables, const std::vector<double>& scale, double noise = 0);

}  // namespace strata
