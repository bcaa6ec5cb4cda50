#pragma once
// What the tests of plans share: small factorizations, machines for them, and plans as text.

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cholesky/tile_cholesky.hpp"
#include "schedule/plan.hpp"

namespace strata::test {

inline Machine machine_of(int devices, std::int64_t budget, int compute_queues,
                          LinkRate link = {}) {
  Machine machine = Machine::emulated(devices, budget);
  for (DeviceModel& device : machine.devices) device.compute_queues = compute_queues;
  machine.device_to_device = link;
  return machine;
}

/// In tiles of 2 × 2 doubles, each a slot of 256 bytes.
inline Schedule cholesky_of(std::int64_t tiles, int devices, bool generated = false) {
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
                                                                     std::vector<Task>& tasks) {
    const std::size_t first = tasks.size();
    emit(step, tasks);
    for (std::size_t t = first; t < tasks.size(); ++t) {
      tasks[t].device = static_cast<std::uint16_t>(tasks[t].out.row() % devices);
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
