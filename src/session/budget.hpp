#pragma once
// Budgets: what a problem needs of the memory of devices and host, and the refusal of what cannot
// fit.
//
// Contract: all sizes are bytes. A refusal is Error{memory}, thrown before anything is allocated,
// and says what would fit.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "session/planned_run.hpp"
#include "strata/options.hpp"

namespace strata {

/// The smallest budget of the devices of a machine, in bytes; it has at least one.
[[nodiscard]] std::int64_t smallest_memory(const Machine& machine);

/// True for devices that are CPUs: their small tiles are efficient, and their queues are cores.
[[nodiscard]] bool is_cpu(const Machine& machine);

/// Throws Error{misuse} for a machine without devices.
void require_devices(const Machine& machine);

/// What a problem needs at least; all in bytes.
struct MemoryNeeds {
  std::int64_t device_bytes = 0;  ///< of each device, in tiles of the order that was asked about
  /// The largest tile that can be planned with a budget; n is the whole matrix. 0: none can.
  std::int64_t tile_max = 0;
  std::int64_t host_bytes = 0;  ///< of the host, where the problem rests
};

/// The schedule of a problem in tiles of an order; its need of device memory grows with the tile.
using ScheduleInTiles = std::function<Schedule(std::int64_t tile)>;

/// The largest tile, up to n >= 1, in which a schedule runs with `budget` bytes on each device; 0:
/// there is none.
[[nodiscard]] std::int64_t largest_tile(std::int64_t n, std::int64_t budget,
                                        const ScheduleInTiles& schedule);

/// Throws Error{memory} unless each device holds `needs.device_bytes`. The message says the
/// smallest budget for this tile, the largest tile for this budget, and what the host needs.
void check_device_memory(const MemoryNeeds& needs, std::int64_t n, std::int64_t tile,
                         const Machine& machine);

/// Host memory that a plan takes beside a factor in storage: what lies between storage and the
/// devices, and that of the devices which are CPUs.
[[nodiscard]] std::int64_t host_bytes_beside_storage(const Plan& plan);

/// Throws Error{memory} if `what` needs more bytes of host memory than there are, naming both.
/// `where` is the place that the error names, `otherwise` what would help, too.
void check_host_memory(std::int64_t needed, std::int64_t there, const std::string& what,
                       const char* where, std::string_view otherwise = {});
/// The same of a factorization: there is what the options allow, or what the machine has, beside
/// `arena_bytes`, the memory of all devices, if they are CPUs. `beside` is what else needs memory,
/// as the message has it.
void check_host_memory(const MemoryNeeds& needs, std::int64_t n, std::int64_t tile,
                       std::int64_t arena_bytes, const Machine& machine, const RunOptions& options,
                       const char* where, std::string_view beside = {},
                       std::string_view otherwise = {});
/// The same for one that is planned.
void check_host_memory(const PlannedRun& planned, const RunOptions& options, const char* where,
                       std::string_view beside = {}, std::string_view otherwise = {});

}  // namespace strata
