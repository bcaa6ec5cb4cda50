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
  const RunReport report = make_report(*planned.plan, planned, trace);
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
  part.path = "planned";
  part.seconds = 1;
  part.plan_seconds = 0.125;
  part.predicted_seconds = 2;
  part.flops = 10;
  part.tasks = 3;
  part.peak_device_bytes = 5;
  part.traffic.host_to_device_bytes = 7;
  part.planned_traffic.device_to_host_bytes = 8;
  part.planned_traffic.floor_bytes = 4;
  RunReport total;
  accumulate(total, part);  // the first is taken as it is
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

/// A trace of queues, operations and families with these names, a span on each queue.
Trace trace_of(const std::vector<std::string>& queues, const std::vector<std::string>& operations,
               const std::vector<std::string>& families) {
  Trace trace;
  for (std::size_t q = 0; q < queues.size(); ++q) trace.queues.push_back({"host:0", queues[q], 0});
  trace.operations = operations;
  trace.families = families;
  for (std::size_t q = 0; q < queues.size(); ++q) {
    Span span;
    span.kind = queues[q] == "copy in" ? SpanKind::load : SpanKind::compute;
    span.queue = static_cast<std::uint16_t>(q);
    span.operation = static_cast<std::uint16_t>(q % operations.size());
    span.family = static_cast<std::uint8_t>(q % families.size());
    span.bytes = queues[q] == "copy in" ? 100 : 0;
    span.flops = 7;
    span.begin = 0.25 * static_cast<double>(q);
    span.end = span.begin + 0.25;
    trace.add(span);
  }
  trace.seconds = 2;
  return trace;
}

TEST(Report, TracesOfRunsFollowOneAnotherByTheNames) {
  RunReport total;
  total.trace.notes.push_back({0, "before any run"});
  RunReport first;
  first.path = "planned";
  first.trace = trace_of({"copy in", "compute 0"}, {"gram", "solve"}, {"V", "B"});
  first.seconds = 2;
  accumulate_with_trace(total, first);
  RunReport part;
  part.path = "planned";
  part.trace = trace_of({"compute 0", "compute 1", "copy in"}, {"solve", "sum"}, {"R", "V"});
  part.seconds = 2;
  accumulate_with_trace(total, part);
  const Trace& all = total.trace;
  ASSERT_EQ(all.notes.size(), 1U);
  EXPECT_EQ(all.notes[0].text, "before any run");
  EXPECT_EQ(total.seconds, 4);
  EXPECT_EQ(all.seconds, 4);
  EXPECT_EQ(all.operations, (std::vector<std::string>{"gram", "solve", "sum"}));
  EXPECT_EQ(all.families, (std::vector<std::string>{"V", "B", "R"}));
  ASSERT_EQ(all.queues.size(), 3U);
  EXPECT_EQ(all.queues[2].name, "compute 1");
  ASSERT_EQ(all.spans.size(), 5U);
  const auto names = [&](std::size_t k) {
    const Span& span = all.spans[k];
    return all.queues[span.queue].name + ", " + all.operations[span.operation] + ", " +
           all.families[span.family];
  };
  EXPECT_EQ(names(1), "compute 0, solve, B");
  EXPECT_EQ(names(2), "compute 0, solve, R");
  EXPECT_EQ(names(3), "compute 1, sum, V");
  EXPECT_EQ(all.queues[all.spans[4].queue].name, "copy in");
  EXPECT_EQ(all.spans[2].begin, 2);
  EXPECT_EQ(all.spans[3].end, 2.5);
  EXPECT_EQ(all.traffic.host_to_device_bytes, 200);
  EXPECT_EQ(fold_traffic(all.spans), all.traffic);
  EXPECT_EQ(all.flops, 3 * 7);
  // What was too long to keep its spans leaves none, and all of its totals.
  const RunReport whole = part;
  part.trace.spans.clear();
  accumulate_with_trace(total, part);
  accumulate_with_trace(total, whole);
  EXPECT_TRUE(all.spans.empty());
  EXPECT_GT(all.spans_added, Trace::kSpansMax);
  EXPECT_EQ(all.traffic.host_to_device_bytes, 400);
  EXPECT_EQ(all.seconds, 8);
}

}  // namespace
}  // namespace strata
