#pragma once
// The layout of a plan's device memory, and what must be checked before planning.

#include "schedule/plan.hpp"

namespace strata {

/// Slots of each family for the smallest budget of the machine: first what one task needs at least;
/// the rest goes to the smaller families up to all of their blocks (at most an equal share), then
/// to the largest. Throws Error{memory}, naming the smallest budget that works.
[[nodiscard]] PlanLayout make_layout(const Schedule& schedule, const Machine& machine);

/// Throws Error{device} if the backend has no kernel for the task.
void check_kernel(const Schedule& schedule, const Machine& machine, const Task& task);

}  // namespace strata
