#pragma once
// calibrate() on devices that are open, such as those of a test, and what of it concerns the host.
//
// Contract: as strata/calibrate.hpp; of the options only the progress callback is used.

#include "run/device_set.hpp"

namespace strata {

[[nodiscard]] Machine calibrate_devices(DeviceSet& devices, const RunOptions& options,
                                        const std::vector<std::int64_t>& tiles, Element precision,
                                        double seconds);

/// How fast the host fills the bounce buffers of device 0 from pageable memory, as its ring does it
/// for a load, while nothing else goes on; the latency is that of a buffer. By the host's clock:
/// copies are issued into `queue`. The device does not run host code.
[[nodiscard]] LinkRate measure_staging(DeviceSet& devices, Queue& queue);

/// getrf of a tall panel of so many columns, and lu_update of another by it, alone on a queue of
/// device 0, whose rate for products is given. Empty where there are no such kernels, or no memory
/// for two panels.
[[nodiscard]] std::vector<KernelRate> measure_panels(DeviceSet& devices, Queue& queue,
                                                     Element element, std::int64_t columns,
                                                     double flops_per_second);

/// How fast untouched memory is page-locked, as HostPinner does it, in bytes a second; 0 if the
/// system refuses.
[[nodiscard]] double measure_pinning(DeviceSet& devices);

}  // namespace strata
