#include "session/budget.hpp"

#include <algorithm>
#include <string>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace strata {

std::int64_t smallest_memory(const Machine& machine) {
  std::int64_t bytes = machine.devices[0].memory_bytes;
  for (const DeviceModel& device : machine.devices) bytes = std::min(bytes, device.memory_bytes);
  return bytes;
}

bool is_cpu(const Machine& machine) { return machine.devices[0].kind == DeviceKind::cpu; }

void require_devices(const Machine& machine) {
  require(!machine.devices.empty(), ErrorKind::misuse, "plan",
          "a machine without devices cannot compute");
}

std::int64_t largest_tile(std::int64_t n, std::int64_t budget, const ScheduleInTiles& schedule) {
  const auto fits = [&](std::int64_t tile) {
    return smallest_budget_bytes(schedule(tile)) <= budget;
  };
  // One tile is a slot; two rows of tiles are three slots already, so between n/√3 and n tiles need
  // more than the whole. Below n the need grows with the tile.
  if (fits(n)) return n;
  std::int64_t largest = 0;
  std::int64_t too_large = n;
  while (too_large - largest > 1) {
    const std::int64_t middle = largest + (too_large - largest) / 2;
    (fits(middle) ? largest : too_large) = middle;
  }
  return largest;
}

void check_device_memory(const MemoryNeeds& needs, std::int64_t n, std::int64_t tile,
                         const Machine& machine) {
  const std::int64_t budget = smallest_memory(machine);
  if (needs.device_bytes <= budget) return;
  const std::string largest = needs.tile_max > 0
                                  ? fmt::format("the largest tile for it is {}", needs.tile_max)
                                  : std::string("no tile is small enough for it");
  fail(
      ErrorKind::memory, "plan",
      "a device memory of {} ({} bytes) is too small for order {}: {}; the smallest that works "
      "with tiles of {} is {} ({} of host memory are needed beside it): {} bytes{}",
      format_bytes(budget), budget, n, largest, tile, format_bytes(needs.device_bytes),
      format_bytes(needs.host_bytes), needs.device_bytes,
      machine.storage && is_cpu(machine)
          ? fmt::format("; beside storage CPUs compute in what host memory there is, divided by {}",
                        std::ssize(machine.devices))
          : "");
}

void check_host_memory(std::int64_t needed, std::int64_t there, const std::string& what,
                       const char* where, std::string_view otherwise) {
  require(needed <= there, ErrorKind::memory, where,
          "a host memory of {} ({} bytes) is too small for {}: the smallest that works is {}: {} "
          "bytes{}",
          format_bytes(std::max<std::int64_t>(there, 0)), there, what, format_bytes(needed), needed,
          otherwise);
}

void check_host_memory(const MemoryNeeds& needs, std::int64_t n, std::int64_t tile,
                       std::int64_t arena_bytes, const Machine& machine, const RunOptions& options,
                       const char* where, std::string_view beside, std::string_view otherwise) {
  const bool bounded = options.host_memory_bytes > 0;
  std::int64_t there = bounded ? options.host_memory_bytes : machine.host_memory_bytes;
  // What a CPU computes in is host memory too; a caller's bound is on the factor.
  if (!bounded && is_cpu(machine)) there -= arena_bytes;
  check_host_memory(needs.host_bytes, there,
                    fmt::format("the factor of order {} in tiles of {}{}", n, tile, beside), where,
                    otherwise);
}

std::int64_t host_bytes_beside_storage(const Plan& plan) {
  const PlanLayout& layout = plan.layout();
  std::int64_t bytes = 0;
  for (std::size_t d = 0; d < layout.devices.size(); ++d) {
    const bool host = static_cast<int>(d) == layout.host;
    if (host || plan.machine().devices[d].kind == DeviceKind::cpu)
      bytes += layout.devices[d].arena_bytes;
  }
  return bytes;
}

void check_host_memory(const PlannedRun& planned, const RunOptions& options, const char* where,
                       std::string_view beside, std::string_view otherwise) {
  const Plan& plan = *planned.plan;
  MemoryNeeds needs;
  needs.host_bytes = planned.host_bytes;
  std::int64_t arenas = 0;
  for (const DeviceLayout& device : plan.layout().devices) arenas += device.arena_bytes;
  check_host_memory(needs, planned.n, planned.tile, arenas, plan.machine(), options, where, beside,
                    otherwise);
}

}  // namespace strata
