#include "cholesky/cholesky_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "schedule/complex_work.hpp"
#include "schedule/machine_model.hpp"

namespace strata {
namespace {

std::int64_t rows_of_tiles(const CholeskyProblem& problem) {
  return (problem.n + problem.tile - 1) / problem.tile;
}

/// So many calls of one operation, all alike.
struct Calls {
  const Operation* operation;
  double count;
  double work;  ///< of one
};

double potrf_work(double n) { return n * n * n / 3 + n * n / 2 + n / 6; }

/// The tasks of a factorization: `full` rows of whole tiles, and perhaps a last row of fewer rows.
std::vector<Calls> calls_of(const CholeskyProblem& problem) {
  const auto full = static_cast<double>(problem.n / problem.tile);
  const auto t = static_cast<double>(problem.tile);
  const auto r = static_cast<double>(problem.n % problem.tile);
  const double pairs = full * (full - 1) / 2;
  std::vector<Calls> calls{{&potrf, full, potrf_work(t)},
                           {&trsm, pairs, t * t * t},
                           {&syrk, pairs, t * (t + 1) * t},
                           {&gemm, pairs * (full - 2) / 3, 2 * t * t * t}};
  if (problem.point_dimensions > 0) calls.push_back({&covariance, full * (full + 1) / 2, t * t});
  if (r > 0) {
    calls.insert(calls.end(), {{&potrf, 1, potrf_work(r)},
                               {&trsm, full, r * t * t},
                               {&syrk, full, r * (r + 1) * t},
                               {&gemm, pairs, 2 * r * t * t}});
  }
  return calls;
}

/// Elements of a factorization task: a status is in fp64, all else in the matrix's element.
Elements elements_of_task(const Operation& operation, Element element) {
  if (&operation == &potrf) return {element, Element::fp64};
  return {operation.operands, element};
}

/// The least on one device of `problem.devices`.
double device_seconds_min(const CholeskyProblem& problem, const DeviceModel& device,
                          int all_queues) {
  const double factor = work_factor(problem.precision);
  const auto seconds = [&](const Operation& operation, double work) {
    return kernel_seconds(device, operation, elements_of_task(operation, problem.precision),
                          factor * work);
  };
  double work = 0;
  double on_queues = 0;
  for (const Calls& calls : calls_of(problem)) {
    const double all = calls.count * seconds(*calls.operation, calls.work);
    const Elements elements = elements_of_task(*calls.operation, problem.precision);
    on_queues += all;
    work += all * kernel_share(device, *calls.operation, elements, factor * calls.work);
  }
  const auto devices = static_cast<double>(problem.devices);
  const auto full = static_cast<double>(problem.n / problem.tile);
  const auto t = static_cast<double>(problem.tile);
  const double chain =
      full * seconds(potrf, potrf_work(t)) +
      std::max(full - 1, 0.0) * (seconds(trsm, t * t * t) + seconds(syrk, t * (t + 1) * t));
  const auto n = static_cast<double>(problem.n);
  const auto size = static_cast<double>(bytes_of(problem.precision));
  const double triangle = n * (n + 1) / 2 * size / devices;
  const double in =
      problem.point_dimensions > 0 ? 0 : triangle / device.host_to_device.bytes_per_second;
  const double out = triangle / device.device_to_host.bytes_per_second;
  return std::max({work / devices, on_queues / devices / all_queues, chain, in, out});
}

}  // namespace

std::int64_t cholesky_host_bytes(const CholeskyProblem& problem) {
  const BlockTable blocks = tile_cholesky(problem, {}).blocks;
  std::int64_t bytes = 0;
  for (int f = 0; f < blocks.families(); ++f) {
    // What is temporary comes home only if it has to leave a device.
    const BlockFamily& family = blocks.family(f);
    if (family.origin != Origin::temporary && !family.in_storage) bytes += blocks.total_bytes(f);
  }
  return bytes;
}

MemoryNeeds cholesky_needs(const CholeskyProblem& problem, std::int64_t budget) {
  const auto schedule = [&](std::int64_t tile) {
    CholeskyProblem other = problem;
    other.tile = tile;
    return tile_cholesky(other, {});
  };
  MemoryNeeds needs;
  needs.device_bytes = smallest_budget_bytes(schedule(problem.tile));
  needs.tile_max = problem.formats.map != nullptr  // which is for one tile
                       ? problem.tile
                       : largest_tile(std::max<std::int64_t>(problem.n, 1), budget, schedule);
  needs.host_bytes = cholesky_host_bytes(problem);
  return needs;
}

std::int64_t cholesky_floor_bytes(const CholeskyProblem& problem, std::int64_t memory_bytes) {
  if (problem.formats.map != nullptr) {
    const BlockTable blocks = tile_cholesky(problem, {}).blocks;
    const bool stays = blocks.family(kMatrixFamily).stays;
    return blocks.total_bytes(kPointsFamily) + (stays ? 0 : blocks.total_bytes(kMatrixFamily));
  }
  const auto size = static_cast<double>(bytes_of(problem.precision));
  const auto n = static_cast<double>(problem.n);
  const double triangle = n * (n + 1) / 2 * size;
  const double compulsory = problem.point_dimensions > 0 ? triangle : 2 * triangle;
  const auto memory = static_cast<double>(memory_bytes);
  if (triangle <= memory * problem.devices || memory_bytes <= 0)
    return static_cast<std::int64_t>(compulsory);
  const double reloads = n * n * n / (3 * std::sqrt(2.0) * std::sqrt(memory / size)) * size;
  return static_cast<std::int64_t>(compulsory + reloads);
}

bool has_urgent_queue(const CholeskyProblem& problem, const Machine& machine) {
  return problem.devices > 1 && !is_cpu(machine);
}

double simulated_seconds_min(const CholeskyProblem& problem, const Machine& machine, int queues) {
  if (problem.formats.map != nullptr) return 0;  // products in few bits are faster than any here
  const int all_queues = queues + (has_urgent_queue(problem, machine) ? 1 : 0);
  double least = 0;
  for (int d = 0; d < problem.devices; ++d) {
    DeviceModel device = machine.devices[static_cast<std::size_t>(d)];
    device.compute_queues = queues;
    const double here = device_seconds_min(problem, device, all_queues);
    least = d == 0 ? here : std::min(least, here);
  }
  return least;
}

std::int64_t planning_steps(const CholeskyProblem& problem) {
  const std::int64_t rows = rows_of_tiles(problem);
  const std::int64_t pairs = rows * (rows - 1) / 2;
  const std::int64_t tiles = pairs + rows;
  const bool generated = problem.point_dimensions > 0;
  const std::int64_t tasks = tiles + pairs + pairs * (rows - 2) / 3 + (generated ? tiles : 0);
  const std::int64_t loads = generated ? rows : tiles;
  return tasks + loads + tiles + rows;
}

}  // namespace strata
