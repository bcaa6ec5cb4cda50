#pragma once
// bench estimates: what lower precisions change in maximum likelihood estimates.
//
// Contract: at n points, uniform in the unit square, fields of variance 1 and given range and
// smoothness are simulated exactly in FP64; each is fitted in FP64 and with each accuracy, mean
// zero, variance, range and smoothness estimated, no nugget. A data set is a function of the seed,
// its number and the range. Source of the experiment: Ren, Ltaief, Abdulah, Keyes, "Accelerating
// mixed-precision out-of-core Cholesky factorization with static task scheduling", 2024.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "strata/geostat.hpp"
#include "strata/options.hpp"

namespace strata::bench {

struct EstimatesBench {
  std::int64_t n = 1600;
  int data_sets = 25;
  std::vector<double> ranges{0.02627, 0.078809, 0.210158};  ///< weak, medium, strong
  std::vector<MixedPrecision> cases;                        ///< beside FP64, which comes first
  PointOrder order = PointOrder::kd;
  double smoothness = 0.5;
  std::uint64_t seed = 1;
};

/// variance, range, smoothness.
inline constexpr int kEstimated = 3;
inline constexpr std::array<const char*, kEstimated> kEstimatedNames{"variance", "range",
                                                                     "smoothness"};

/// All data sets of one range, fitted with one accuracy.
struct EstimatesRow {
  std::array<double, kEstimated> truth{};
  MixedPrecision asked;
  std::vector<std::array<double, kEstimated>> estimates;  ///< by data set
  /// Lower quartile, median and upper quartile of each, by linear interpolation.
  std::array<std::array<double, 3>, kEstimated> quartiles{};
  /// For each estimate, the largest |estimate/FP64's − 1| over the data sets.
  std::array<double, kEstimated> largest_difference{};
  int not_converged = 0;
  int in_fp64 = 0;  ///< fits whose last factorization in several precisions ended in FP64
  double seconds = 0;
};

/// `told`, if there is one, is called with each row when it is done.
[[nodiscard]] std::vector<EstimatesRow> run_estimates_bench(
    const EstimatesBench& bench, const CholeskyOptions& options,
    const std::function<void(const EstimatesRow&)>& told = {});

}  // namespace strata::bench
