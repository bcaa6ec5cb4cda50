// Reports of planned runs, and their sums.

#include "session/report.hpp"

#include <gtest/gtest.h>

#include "tests/session/toy_space.hpp"

namespace strata {
namespace {

using test::toy_machine;
using test::ToySpace;

PlannedRun planned_toy(const Machine& machine) {
  const ToySpace space(200, machine);
  PlannedRun planned = make_planned_run(
      std::make_shared<const Schedule>(space.schedule(50, test::kByRows)), machine, {}, "opt rows");
  planned.n = 200;
  planned.tile = 50;
  planned.seconds = 0.25;
  planned.floor_bytes = 77;
  planned.host_bytes = 99;
  return planned;
}

TEST(Report, SaysWhatWasPlannedAndWhatCameOfIt) {
  const Machine machine = toy_machine(1 << 20, 10, 3);
  const PlannedRun planned = planned_toy(machine);
  Trace trace = planned.simulated;
  trace.seconds = 12.5;
  const RunReport report = make_report(planned, trace);
  EXPECT_EQ(report.n, 200);
  EXPECT_EQ(report.tile, 50);
  EXPECT_EQ(report.path, "planned");
  EXPECT_EQ(report.policy, "opt rows");
  EXPECT_EQ(report.devices, std::vector<std::string>{"emulated:0"});
  EXPECT_EQ(report.compute_queues, 3);
  EXPECT_EQ(report.seconds, 12.5);
  EXPECT_EQ(report.plan_seconds, 0.25);
  EXPECT_EQ(report.predicted_seconds, simulate(*planned.plan).seconds);
  EXPECT_EQ(report.flops, 2.0 * 200 * 200 * test::kToyColumns);
  EXPECT_EQ(report.tasks, 16);
  EXPECT_LE(report.peak_device_bytes, 1 << 20);
  EXPECT_EQ(report.traffic, report.planned_traffic);
  EXPECT_EQ(report.traffic.host_to_device_bytes, 8 * 200 * (200 + 2 * test::kToyColumns));
  EXPECT_EQ(report.planned_traffic.floor_bytes, 77);
  EXPECT_EQ(report.host_bytes, 99);
  EXPECT_EQ(std::ssize(report.trace.spans), planned.plan->totals().steps);
}

TEST(Report, OfASimulationHasItsTraceAndNoSeconds) {
  const Machine machine = toy_machine(1 << 20, 10);
  PlannedRun planned = planned_toy(machine);
  planned.in_core = true;
  const double seconds = *planned.predicted_seconds;
  const RunReport report = make_simulated_report(std::move(planned));
  EXPECT_EQ(report.seconds, 0);
  EXPECT_EQ(report.predicted_seconds, seconds);
  EXPECT_EQ(report.trace.seconds, seconds);
  EXPECT_FALSE(report.trace.spans.empty());
  EXPECT_EQ(report.path, "in-core");
}

TEST(Report, APlannedRunCanLetGoOfItsSpansAndKeepsItsFigures) {
  const Machine machine = toy_machine(1 << 20, 10);
  PlannedRun planned = planned_toy(machine);
  planned.let_go_of_trace();
  EXPECT_TRUE(planned.simulated.spans.empty());
  EXPECT_EQ(planned.predicted_seconds, simulate(*planned.plan).seconds);
}

TEST(Report, ASumHasAPredictionIfAllItsPartsHave) {
  RunReport part;
  EXPECT_FALSE(part.predicted_seconds.has_value()) << "absent, not 0";
  part.seconds = 1;
  part.plan_seconds = 0.125;
  part.predicted_seconds = 2;
  part.flops = 10;
  part.tasks = 3;
  part.peak_device_bytes = 5;
  part.traffic.host_to_device_bytes = 7;
  part.planned_traffic.device_to_host_bytes = 8;
  part.planned_traffic.floor_bytes = 4;
  RunReport total = part;
  part.peak_device_bytes = 4;
  accumulate(total, part);
  EXPECT_EQ(total.seconds, 2);
  EXPECT_EQ(total.plan_seconds, 0.25);
  EXPECT_EQ(total.predicted_seconds, 4);
  EXPECT_EQ(total.flops, 20);
  EXPECT_EQ(total.tasks, 6);
  EXPECT_EQ(total.peak_device_bytes, 5);
  EXPECT_EQ(total.traffic.host_to_device_bytes, 14);
  EXPECT_EQ(total.planned_traffic.device_to_host_bytes, 16);
  EXPECT_EQ(total.planned_traffic.floor_bytes, 8);
  RunReport without = part;
  without.predicted_seconds.reset();
  RunReport one = part;
  accumulate(one, without);
  EXPECT_FALSE(one.predicted_seconds.has_value());
  accumulate(one, part);
  EXPECT_FALSE(one.predicted_seconds.has_value());
}

}  // namespace
}  // namespace strata
