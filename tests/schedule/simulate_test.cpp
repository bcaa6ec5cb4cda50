// simulate() and the kernel times behind it, against arithmetic done by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/dense/potrf.hpp"
#include "schedule/machine_model.hpp"
#include "schedule/plan.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/trace_times.hpp"

namespace strata::test {
namespace {

// Tiles of 4 × 4 doubles: 128 bytes, and a gemm of 128 flops.
constexpr double kTileBytes = 128;
constexpr double kGemmFlops = 128;

/// A tile takes one second each way; a lone gemm `gemm_seconds`; all together `rate` flop/s.
Machine timed_machine_of(int compute_queues, double gemm_seconds, double rate, double latency = 0) {
  Machine machine = Machine::emulated(1, 1 << 20);
  DeviceModel& device = machine.devices[0];
  device.compute_queues = compute_queues;
  device.host_to_device = device.device_to_host = {kTileBytes, latency};
  device.rate(Element::fp64) = rate;
  device.kernels = {{"gemm", std::vector(3, Element::fp64), kGemmFlops, gemm_seconds}};
  return machine;
}

/// `count` products of three tiles of their own: C_i ← C_i − A_i·B_iᵀ, final.
Schedule products(std::int64_t count) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 4 * count, .cols = 12, .tile_rows = 4, .tile_cols = 4});
  std::vector<FlatTask> tasks;
  for (std::int64_t i = 0; i < count; ++i) {
    tasks.push_back(
        flat_task(gemm, {{BlockId(0, i, 0), Hint::last_write}, BlockId(0, i, 1), BlockId(0, i, 2)},
                  0, kTransposeB));
  }
  return schedule_of(std::move(blocks), 1, {3}, {tasks});
}

Trace simulate_on(const Schedule& schedule, const Machine& machine) {
  return simulate(Plan(std::make_shared<const Schedule>(schedule), machine, {}));
}

TEST(Simulate, OneProductIsThreeLoadsAKernelAndAStore) {
  const Trace trace = simulate_on(products(1), timed_machine_of(1, 4, kGemmFlops / 4));
  expect_times(trace, SpanKind::load, {{0, 1}, {1, 2}, {2, 3}});
  expect_times(trace, SpanKind::compute, {{3, 7}});
  expect_times(trace, SpanKind::store, {{7, 8}});
  EXPECT_NEAR(trace.seconds, 8, 1e-9);
  EXPECT_EQ(trace.flops, kGemmFlops);
}

TEST(Simulate, EveryTransferPaysTheLatency) {
  const Trace trace = simulate_on(products(1), timed_machine_of(1, 4, kGemmFlops / 4, 0.25));
  EXPECT_NEAR(trace.seconds, 3 * 1.25 + 4 + 1.25, 1e-9);
}

TEST(Simulate, TransfersRunBesideTheComputation) {
  // Loads 0–6, kernels 3–7 and 7–11, stores 7–8 and 11–12; one after the other would be 16.
  const Trace trace = simulate_on(products(2), timed_machine_of(1, 4, kGemmFlops / 4));
  expect_times(trace, SpanKind::compute, {{3, 7}, {7, 11}});
  expect_times(trace, SpanKind::store, {{7, 8}, {11, 12}});
  EXPECT_NEAR(trace.seconds, 12, 1e-9);
}

TEST(Simulate, KernelsThatFillTheDeviceShareIt) {
  // Each would fill the device. The first is alone for 3 s and has 1 s left when the second comes;
  // at half speed it ends at 8, when the second has done 1 of its 4 s.
  const Trace trace = simulate_on(products(2), timed_machine_of(2, 4, kGemmFlops / 4));
  expect_times(trace, SpanKind::compute, {{3, 8}, {6, 11}});
  EXPECT_NEAR(trace.seconds, 12, 1e-9);
}

TEST(Simulate, KernelsBoundByLatencyDoNotSlowEachOther) {
  // Each uses a quarter of the device's rate.
  const Trace trace = simulate_on(products(2), timed_machine_of(2, 4, kGemmFlops));
  expect_times(trace, SpanKind::compute, {{3, 7}, {6, 10}});
  EXPECT_NEAR(trace.seconds, 11, 1e-9);
}

TEST(Simulate, SharesThatAddUpToMoreThanOneSlowAllAlike) {
  // Each uses three quarters: together 1.5, so both run at 2/3 speed. The first has 1 s left at 6,
  // ends at 7.5; by then the second has done 1 of 4 s and is alone.
  const Trace trace = simulate_on(products(2), timed_machine_of(2, 4, kGemmFlops / 3));
  expect_times(trace, SpanKind::compute, {{3, 7.5}, {6, 10.5}});
}

/// What a task says of its time goes before rates; its share is what its work takes of the
/// device's.
TEST(Simulate, ATaskMaySayItsSeconds) {
  Machine machine = timed_machine_of(2, 4, kGemmFlops / 4);
  Schedule schedule = products(2);
  const auto emit = schedule.emit;
  schedule.emit = [emit](std::int64_t step, TaskList& tasks) {
    emit(step, tasks);
    for (Task& task : tasks.tasks()) task.seconds = 16;  // a quarter of the device
  };
  expect_times(simulate_on(schedule, machine), SpanKind::compute, {{3, 19}, {6, 22}});
}

/// And of what it takes from those beside it: of three quarters each, both run at 2/3 speed from 6
/// on, where the first has 13 s left; the second is alone with its last 3.
TEST(Simulate, ATaskMaySayWhatItTakesFromOthers) {
  Schedule schedule = products(2);
  const auto emit = schedule.emit;
  schedule.emit = [emit](std::int64_t step, TaskList& tasks) {
    emit(step, tasks);
    for (Task& task : tasks.tasks()) {
      task.seconds = 16;
      task.share = 0.75;
    }
  };
  expect_times(simulate_on(schedule, timed_machine_of(2, 4, kGemmFlops / 4)), SpanKind::compute,
               {{3, 25.5}, {6, 28.5}});
}

/// On a device on which its work takes longer, it does; by the rate of what it writes.
TEST(Simulate, ATaskTakesNoLessThanItsWork) {
  Machine machine = timed_machine_of(2, 1, kGemmFlops / 64);
  Schedule schedule = products(1);
  const auto emit = schedule.emit;
  schedule.emit = [emit](std::int64_t step, TaskList& tasks) {
    emit(step, tasks);
    for (Task& task : tasks.tasks()) task.seconds = 16;
  };
  expect_times(simulate_on(schedule, machine), SpanKind::compute, {{3, 67}});
  machine.devices[0].rate(Element::fp64) = kGemmFlops / 8;
  expect_times(simulate_on(schedule, machine), SpanKind::compute, {{3, 19}});
}

TEST(Simulate, WithoutMeasurementsTheQueuesDivideTheRate) {
  Machine machine = timed_machine_of(2, 1, kGemmFlops);
  machine.devices[0].kernels.clear();
  const Trace trace = simulate_on(products(1), machine);
  expect_times(trace, SpanKind::compute, {{3, 5}});  // half the rate: 2 s
}

TEST(Simulate, NeverStartsAStepBeforeItsWaitsAreDone) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Schedule schedule = random_schedule(seed);
    Machine machine =
        Machine::emulated(schedule.devices, smallest_budget_bytes(schedule) + 3 * 256);
    const Plan plan(std::make_shared<const Schedule>(schedule), machine, {});
    const Trace trace = simulate(plan);
    const std::vector<FlatStep> steps = flatten(plan);
    ASSERT_EQ(trace.spans.size(), steps.size());
    std::vector<std::vector<double>> ends(static_cast<std::size_t>(plan.layout().queues.size()));
    double last = 0;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const Span& span = trace.spans[s];
      const Step& step = steps[s].step;
      ASSERT_EQ(span.queue, step.queue);
      const BlockId block = steps[s].operands[0];
      ASSERT_EQ(trace.families[span.family], schedule.blocks.family(block.family()).name);
      ASSERT_EQ(span.row, block.row());
      ASSERT_EQ(span.col, block.col());
      auto& own = ends[step.queue];
      ASSERT_LE(own.empty() ? 0 : own.back(), span.begin);
      for (const Wait& wait : steps[s].waits) {
        ASSERT_LE(ends[wait.queue][wait.sequence - 1], span.begin);
      }
      ASSERT_LE(span.begin, span.end);
      own.push_back(span.end);
      last = std::max(last, span.end);
    }
    EXPECT_EQ(trace.seconds, last);
    EXPECT_EQ(trace.traffic, plan.totals().traffic);
    EXPECT_NEAR(trace.flops, plan.totals().flops, 1e-9 * trace.flops);
  }
}

// ---- kernel_seconds

TEST(KernelSeconds, InterpolatesRatesOverTheCubeRootOfTheFlops) {
  DeviceModel device;
  device.compute_queues = 2;
  device.rate(Element::fp64) = 100;
  device.rate(Element::fp32) = 400;
  const auto all = [](std::size_t count, Element element) { return std::vector(count, element); };
  device.kernels = {{"gemm", all(3, Element::fp64), 27e3, 27e3 / 300},  // order 30: rate 300
                    {"gemm", all(3, Element::fp64), 1e3, 1e3 / 100},    // order 10: rate 100
                    {"syrk", all(2, Element::fp64), 8e3, 1},
                    {"gemm", all(3, Element::fp32), 8e3, 2}};
  const auto seconds = [&](const Operation& operation, double work, Element e = Element::fp64) {
    return kernel_seconds(device, operation, Elements(operation.operands, e), work);
  };
  EXPECT_DOUBLE_EQ(seconds(gemm, 1e3), 10);
  EXPECT_DOUBLE_EQ(seconds(gemm, 27e3), 90);
  EXPECT_DOUBLE_EQ(seconds(gemm, 8e3), 8e3 / 200);  // order 20: half way
  EXPECT_DOUBLE_EQ(seconds(gemm, 64e3), 64e3 / 300);
  EXPECT_DOUBLE_EQ(seconds(gemm, 125), 10 * 0.5);  // half the order: half the time
  EXPECT_DOUBLE_EQ(seconds(gemm, 1e-9), 10 * 0.1);
  EXPECT_DOUBLE_EQ(seconds(syrk, 8e3), 1);
  EXPECT_DOUBLE_EQ(seconds(gemm, 8e3, Element::fp32), 2);
  EXPECT_DOUBLE_EQ(seconds(potrf, 1e3), 1e3 / 50);  // not measured: a queue's share
  EXPECT_DOUBLE_EQ(seconds(syrk, 1e3, Element::fp32), 1e3 / 200);
  EXPECT_DOUBLE_EQ(seconds(covariance, 10), 50 * 10.0 / 50);
  // Double-doubles without a rate of their own: 20 operations on doubles.
  EXPECT_DOUBLE_EQ(seconds(syrk, 1e3, Element::dd), 1e3 / (5.0 / 2));
}

TEST(KernelSeconds, IsFiniteWhateverTheModel) {
  DeviceModel nothing;
  for (const double flops : {0.0, 1.0, 1e30}) {
    EXPECT_TRUE(std::isfinite(kernel_seconds(nothing, gemm, Elements(3, Element::fp64), flops)));
  }
  nothing.kernels = {{"gemm", std::vector(3, Element::fp64), 1e3, 0}};  // a rate that is none
  EXPECT_DOUBLE_EQ(kernel_seconds(nothing, gemm, Elements(3, Element::fp64), 10), 20);
  EXPECT_EQ(transfer_seconds({50, 0.5}, 100), 2.5);
}

// ---- flops

TEST(WorkOf, IsTheTextbookCount) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 7, .cols = 5, .tile_rows = 4, .tile_cols = 3});
  const auto work = [&](const Operation& operation, std::vector<TaskOperand> operands,
                        std::uint32_t variant = 0) {
    const FlatTask flat = flat_task(operation, std::move(operands), 0, variant);
    return work_of(blocks, flat.task, flat.operands);
  };
  const BlockId b43(0, 0, 0);  // 4 × 3
  const BlockId b42(0, 0, 1);  // 4 × 2
  const BlockId b33(0, 1, 0);  // 3 × 3
  EXPECT_DOUBLE_EQ(work(potrf, {b33, b33}), 9 + 4.5 + 0.5);
  EXPECT_DOUBLE_EQ(work(trsm, {b43, b33}, kRightSide | kTransposeL), 4 * 9);
  EXPECT_DOUBLE_EQ(work(syrk, {b33, b42}), 3 * 4 * 2);
  EXPECT_DOUBLE_EQ(work(gemm, {b43, b42, b33}, kTransposeB), 2 * 4 * 3 * 2);
  EXPECT_DOUBLE_EQ(work(gemm, {b42, b43, b33}), 2 * 4 * 2 * 3);
  EXPECT_DOUBLE_EQ(work(gemm, {b33, b42, b43}, kTransposeA), 2 * 3 * 3 * 4);
  EXPECT_DOUBLE_EQ(work(trsm, {b42, b43}), 4 * 2 * 3);
  EXPECT_DOUBLE_EQ(work(covariance, {b42, b33, b33}), 8);
  EXPECT_DOUBLE_EQ(work(syrk, {b33, b42, b33, b43}), 3 * 4 * 2 + 3 * 4 * 3) << "two calls";
}

}  // namespace
}  // namespace strata::test
