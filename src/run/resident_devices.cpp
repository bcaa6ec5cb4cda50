#include "run/resident_devices.hpp"

#include <exception>
#include <utility>

#include "base/check.hpp"
#include "base/index.hpp"

namespace strata {
namespace {

/// Queues of each of several devices behind those for tasks: for urgent tasks, copies from other
/// devices, copies from and to the host.
constexpr int kMoreQueues = 4;

}  // namespace

ResidentDevices::ResidentDevices(const Backend& backend, std::span<const Place> devices, int queues)
    : backend_(backend),
      places_(devices.begin(), devices.end()),
      queues_each_(queues),
      stride_(queues + (devices.size() > 1 ? kMoreQueues : 0)) {
  require(queues >= 1, ErrorKind::misuse, "run", "{} queues", queues);
  for (const Place& place : places_) {
    for (int q = 0; q < stride_; ++q) {
      const bool high = q == queues || q == queues + 1;
      queues_.push_back(
          place.device->make_queue(high ? QueuePriority::high : QueuePriority::normal));
    }
  }
}

PlanOptions ResidentDevices::plan_options(const Schedule& schedule, int queues) {
  PlanOptions options;
  options.copies_in_stream = schedule.devices == 1 && queues == 1;
  options.urgent_queue = schedule.devices > 1;
  options.homes.families.assign(at(schedule.blocks.families()), {.pinning = HostPinning::never});
  return options;
}

Machine ResidentDevices::machine_of(Machine machine, int queues) {
  for (DeviceModel& device : machine.devices) device.compute_queues = queues;
  return machine;
}

std::vector<ProgramLane> ResidentDevices::lanes() const {
  std::vector<ProgramLane> lanes;
  for (std::size_t q = 0; q < queues_.size(); ++q)
    lanes.push_back({queues_[q].get(), static_cast<int>(q) / stride_});
  return lanes;
}

std::vector<int> ResidentDevices::lanes_of(const PlanLayout& layout) const {
  std::vector<int> lanes;
  for (const PlanQueue& queue : layout.queues) {
    int number = 0;
    if (queue.role == QueueRole::compute) {
      number = queue.number;
    } else if (count() > 1) {
      switch (queue.role) {
        case QueueRole::urgent: number = queues_each_; break;
        case QueueRole::peer_in: number = queues_each_ + 1; break;
        case QueueRole::copy_in: number = queues_each_ + 2; break;
        default: number = queues_each_ + 3;
      }
    }
    lanes.push_back(queue.device * stride_ + number);
  }
  return lanes;
}

void ResidentDevices::join() const {
  for (std::size_t q = 1; q < queues_.size(); ++q) queue().wait(queues_[q]->record());
}

void ResidentDevices::synchronize() const {
  std::exception_ptr failure;
  for (const std::unique_ptr<Queue>& each : queues_) {
    try {
      each->synchronize();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace strata
