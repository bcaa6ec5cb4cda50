#pragma once
// What a plan says it adds up to, compared with its steps.

#include <gtest/gtest.h>

#include "schedule/shared_call.hpp"
#include "tests/schedule/flat_plan.hpp"

namespace strata::test {

/// Traffic, tasks and steps are those of the steps.
inline void expect_totals(const Plan& plan) {
  PlanTotals sums;
  for (const FlatStep& flat : flatten(plan)) {
    ++sums.steps;
    if (flat.step.kind == StepKind::load) sums.traffic.host_to_device_bytes += flat.step.bytes;
    if (flat.step.kind == StepKind::store) sums.traffic.device_to_host_bytes += flat.step.bytes;
    if (flat.step.kind == StepKind::peer) sums.traffic.device_to_device_bytes += flat.step.bytes;
    if (flat.step.kind == StepKind::read) sums.traffic.storage_read_bytes += flat.step.bytes;
    if (flat.step.kind == StepKind::write) sums.traffic.storage_write_bytes += flat.step.bytes;
    sums.reads += flat.step.kind == StepKind::read ? 1 : 0;
    sums.writes += flat.step.kind == StepKind::write ? 1 : 0;
    const SharedCall call = SharedCall::of(flat.step.variant);
    const bool counts = !flat.step.shared || (call.phase == SharePhase::work && call.rank == 0);
    if (flat.step.kind == StepKind::compute && counts) ++sums.tasks;
  }
  ASSERT_EQ(sums.traffic, plan.totals().traffic);
  ASSERT_EQ(sums.steps, plan.totals().steps);
  ASSERT_EQ(sums.reads, plan.totals().reads);
  ASSERT_EQ(sums.writes, plan.totals().writes);
  ASSERT_EQ(sums.tasks, plan.totals().tasks);
}

}  // namespace strata::test
