#pragma once
// Measuring a machine, so that simulate() predicts it.
//
// Contract: only times are measured. What is calibrated changes a result no further than by the
// tile that is then predicted to be the fastest (CholeskyOptions::tile). Rates are kept in a small
// JSON file.

#include <cstdint>
#include <string>
#include <vector>

#include "strata/machine.hpp"
#include "strata/options.hpp"

namespace strata {

/// Measures the devices that `options` names on tiles of the given orders. GEMM runs on all compute
/// queues of all devices at once, for about `seconds` each, after six times as long to heat up, so
/// that power limits show; several orders are measured there and back, and the mean of two is
/// taken. The kernels of the first device are measured one at a time, and its links, to the second
/// device as well where they can copy directly. For devices that do not run host code it also
/// measures panels of LU, real and complex, and how fast the host fills their bounce buffers and
/// page-locks memory. The other devices are taken to have the same links, and kernels that are
/// slower by as much as their GEMMs. Throws Error{device, memory} and Error{cancelled}.
[[nodiscard]] Machine calibrate(const RunOptions& options, const std::vector<std::int64_t>& tiles,
                                Element precision = Element::fp64, double seconds = 0.5);

/// Measures what files in these directories can be written and read at, as factors in storage are:
/// `bytes`, in blocks of 64 MiB, which are gone afterwards. `how`, unless it is null, becomes how
/// that was done, as RunReport::storage has it. Throws Error{storage}. For Machine::storage;
/// host_bytes is 0.
[[nodiscard]] StorageModel calibrate_storage(const std::vector<std::string>& directories,
                                             std::string* how = nullptr,
                                             std::int64_t bytes = std::int64_t{2} << 30);

/// Throws Error{storage}.
void write_machine(const std::string& path, const Machine& machine);
/// Throws Error{input} if the file is missing or is not what `write_machine` wrote.
[[nodiscard]] Machine read_machine(const std::string& path);

}  // namespace strata
