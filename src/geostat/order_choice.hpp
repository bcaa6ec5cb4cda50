#pragma once
// The order of points in which lower precisions are predicted to be faster.
//
// Contract: the choice follows from points, parameters, accuracy and the device's kind and rates.
// It does not follow from when the device answers, though what is done meanwhile does: GPUs take
// some tenths of a second to start, and the first order is tried for one of them until then.

#include <future>
#include <memory>
#include <vector>

#include "cholesky/pilot.hpp"
#include "strata/geostat.hpp"
#include "strata/machine.hpp"

namespace strata {

/// By what it is decided.
struct DecidingDevice {
  DeviceModel model{};
  std::int64_t tile = 1;  ///< of a mixed factor there
};

struct OrderChoice {
  PointOrder order = PointOrder::kd;
  /// Which point comes k-th; empty: it is not known yet, nothing had to be decided.
  std::vector<std::int64_t> rows{};
  std::shared_ptr<const Scout> scout{};  ///< of the points in this order, where they have rows
};

/// Which point comes k-th, by x, y and z, never by time.
[[nodiscard]] std::vector<std::int64_t> rows_in(PointOrder order, const Points& points,
                                                std::int64_t tile);

/// kd, unless a coarse tile first is predicted to be faster. (With it what far tiles share is in
/// few columns, which makes the others small; for weak correlation these columns are all that it
/// adds.) Throws what the future does.
[[nodiscard]] OrderChoice choose_order(const Points& points, const CovarianceParameters& parameters,
                                       const MixedPrecision& asked,
                                       std::future<DecidingDevice> device);

}  // namespace strata
