#pragma once
// Hints for blocks that are not needed at the end.
//
// Contract: changes no task, only hints.

#include "schedule/task.hpp"

namespace strata {

/// The same schedule, in which the last task that touches a temporary block says so
/// (Hint::last_use). Emits every step once, to see which is the last.
[[nodiscard]] Schedule with_last_uses(Schedule schedule);

}  // namespace strata
