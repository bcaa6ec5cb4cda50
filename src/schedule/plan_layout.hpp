#pragma once
// The layout of a plan's device memory, and what must be checked before planning.

#include "schedule/plan.hpp"

namespace strata {

/// Slots and places begin at multiples of this, and are as long.
inline constexpr std::int64_t kSlotAlignment = 256;
[[nodiscard]] constexpr std::int64_t slot_room(std::int64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

/// What a layout depends on beside the schedule and the machine.
struct LayoutOptions {
  bool urgent_queue = false;
  std::int64_t first_step = 0;  ///< of the schedule, that is planned
};

/// Slots of each size class for the budget of each device: first what one task needs at least; the
/// rest goes to the smaller classes up to all of their blocks (at most an equal share), then to the
/// largest; or places by stays (own_places.hpp). Blocks that `start` has in the families of the
/// schedule keep their places, unless there would not be room for one task. Throws Error{memory},
/// naming the device and the smallest budget that works, and Error{misuse} for a residency that
/// does not fit the schedule.
[[nodiscard]] PlanLayout make_layout(const Schedule& schedule, const Machine& machine,
                                     const LayoutOptions& options, const Residency& start);

/// Whether a layout has kept all blocks of the residency that are nowhere else.
[[nodiscard]] bool loses_nothing(const Residency& start, const PlanLayout& layout);

/// How many blocks fit on a device at once: its slots of the class of a family.
[[nodiscard]] std::int64_t slots_of_family(const PlanLayout& layout, std::size_t device,
                                           int family);

}  // namespace strata
