#pragma once
// What the tests of plans share: small factorizations, machines for them, and plans as text.

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cholesky/tile_cholesky.hpp"
#include "kernels/dense/potrf.hpp"
#include "schedule/plan.hpp"

namespace strata::test {

inline Machine machine_of(int devices, std::int64_t budget, int compute_queues,
                          LinkRate link = {}) {
  Machine machine = Machine::emulated(devices, budget);
  for (DeviceModel& device : machine.devices) device.compute_queues = compute_queues;
  machine.device_to_device = link;
  return machine;
}

inline Plan plan_of(const Schedule& schedule, const Machine& machine,
                    const PlanOptions& options = {}, const Residency& start = {}) {
  return {std::make_shared<const Schedule>(schedule), machine, options, start};
}

/// potrf that reports nothing: plans are easier to follow by hand without the blocks of statuses.
inline constexpr Operation potrf_alone{
    .name = "potrf", .operands = 1, .access = {Access::read_write}, .work = potrf.work};

/// In tiles of 2 × 2 doubles, each a slot of 256 bytes; with potrf_alone.
inline Schedule cholesky_of(std::int64_t tiles, int devices, bool generated = false) {
  CholeskyProblem problem;
  problem.n = 2 * tiles;
  problem.tile = 2;
  problem.devices = devices;
  problem.point_dimensions = generated ? 2 : 0;
  Schedule schedule = tile_cholesky(problem, {});
  schedule.operands[kStatusFamily] = 0;
  schedule.emit = [emit = schedule.emit](std::int64_t step, TaskList& tasks) {
    TaskList whole;
    emit(step, whole);
    for (const Task& task : std::as_const(whole).tasks()) {
      const bool alone = task.operation == &potrf;
      const auto operands =
          std::as_const(whole).operands(task).first(alone ? 1 : task.operand_count());
      tasks.add_calls(alone ? potrf_alone : *task.operation, task.device, operands, task.variant)
          .urgent = task.urgent;
    }
  };
  return schedule;
}

/// The same with its statuses, as it is run.
inline Schedule cholesky_with_statuses(std::int64_t tiles, int devices, bool generated = false) {
  CholeskyProblem problem;
  problem.n = 2 * tiles;
  problem.tile = 2;
  problem.devices = devices;
  problem.point_dimensions = generated ? 2 : 0;
  return tile_cholesky(problem, {});
}

/// Rows dealt in turn, 0, 1, 0: more crosses than with device_of_row().
inline Schedule dealt_in_turn(Schedule schedule) {
  schedule.emit = [emit = schedule.emit, devices = schedule.devices](std::int64_t step,
                                                                     TaskList& tasks) {
    const std::size_t first = tasks.tasks().size();
    emit(step, tasks);
    for (Task& task : tasks.tasks().subspan(first)) {
      const BlockId out = tasks.operands(task)[0].id;
      task.device = static_cast<std::uint16_t>(out.row() % devices);
    }
  };
  return schedule;
}

inline std::string text_of(const Plan& plan) {
  std::ostringstream out;
  plan.write_text(out);
  return out.str();
}

}  // namespace strata::test
