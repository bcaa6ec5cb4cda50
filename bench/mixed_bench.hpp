#pragma once
// bench mixed: factorizations of covariance matrices in several precisions.
//
// Contract: n points, uniform in the unit square, exponential covariance of variance 1. A case is a
// range, a rule and an accuracy; each is factored `repeats` times by the same object, after once to
// warm up. Rates are n³/3 over the seconds of the factorization, which generates its covariance;
// what was really multiplied is told beside it. The seconds of the pilot are apart. Accuracy 0 is
// FP64, in the same tiles.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strata/geostat.hpp"
#include "strata/options.hpp"

namespace strata::bench {

struct MixedBench {
  std::vector<std::int64_t> sizes{102400};
  std::vector<double> ranges{0.02627, 0.078809, 0.210158};  ///< weak, medium, strong
  std::vector<MixedPrecision> cases;
  PointOrder order = PointOrder::kd;
  double smoothness = 0.5;
  int repeats = 5;
  /// Also the divergence of each mixed factor from FP64, by another factorization of the same
  /// points; up to 4096 exactly, beyond by random vectors.
  bool divergence = false;
  std::uint64_t seed = 1;
};

struct MixedRow {
  double range = 0;
  MixedPrecision asked;
  std::vector<double> all_seconds;
  double seconds = 0;  ///< the median
  double log_determinant = 0;
  bool ok = false;
  std::optional<PrecisionDivergence> divergence{};
  RunReport run;  ///< of the last factorization; with its trace in the last row
  /// Seconds in all queues of each operation in the last factorization.
  std::vector<std::pair<std::string, double>> seconds_by_operation;
};

struct MixedResult {
  std::vector<MixedRow> rows;
};

/// `told`, if there is one, is called with each row when it is done.
[[nodiscard]] MixedResult run_mixed_bench(const MixedBench& bench, const CholeskyOptions& options,
                                          const std::function<void(const MixedRow&)>& told = {});

}  // namespace strata::bench
