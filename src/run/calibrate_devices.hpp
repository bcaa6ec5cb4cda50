#pragma once
// calibrate() on devices that are open, such as those of a test.
//
// Contract: as strata/calibrate.hpp; of the options only the progress callback is used.

#include "run/device_set.hpp"

namespace strata {

[[nodiscard]] Machine calibrate_devices(DeviceSet& devices, const Options& options,
                                        const std::vector<std::int64_t>& tiles, Precision precision,
                                        double seconds);

}  // namespace strata
