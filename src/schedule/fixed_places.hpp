#pragma once
// Places for good: where the blocks of a resident schedule lie (Schedule::resident).
//
// Contract: a device has a place for each block that one of its tasks uses; a block that none uses
// lies on the first. Blocks follow each other in the order of their indices, each at a multiple of
// 256 bytes. Blocks that lie with the caller (BlockFamily::placed) have places that take no bytes
// of the arena, all at offset 0.

#include <cstdint>
#include <vector>

#include "schedule/plan.hpp"
#include "schedule/task.hpp"

namespace strata {

/// Throws Error{misuse} for a task of several devices of which one is not there, or whose calls or
/// variant shared_call.hpp does not allow.
void require_sharers(const Schedule& schedule, const Task& task);

/// The memory that each device needs, at least 256 bytes.
[[nodiscard]] std::vector<std::int64_t> fixed_places_bytes(const Schedule& schedule);

/// The slots of each device with `place_of`, and its arena's bytes. Throws as require_sharers(),
/// and Error{misuse} if two devices use a block that the caller has.
[[nodiscard]] std::vector<DeviceLayout> find_fixed_places(const Schedule& schedule);

}  // namespace strata
