#pragma once
// ResidentDevices: the devices of resident schedules, of one backend, with the queues in which
// their programs are issued.
//
// Contract: a single device has queues for tasks alone, and its copies go through the first;
// several have also one for urgent tasks and some for copies. The devices outlive it.

#include <memory>
#include <span>
#include <vector>

#include "kernels/backend/backend.hpp"
#include "run/issued_program.hpp"
#include "schedule/plan.hpp"

namespace strata {

class ResidentDevices {
 public:
  /// A device, and its number among those of the backend.
  struct Place {
    int index;
    Device* device;
  };

  /// `queues` for tasks on each device. Throws Error{misuse} for none.
  ResidentDevices(const Backend& backend, std::span<const Place> devices, int queues);

  [[nodiscard]] int count() const noexcept { return static_cast<int>(places_.size()); }
  /// How many queues each device has for tasks.
  [[nodiscard]] int queues() const noexcept { return queues_each_; }
  [[nodiscard]] const Backend& backend() const noexcept { return backend_; }
  [[nodiscard]] Device& device(int d) const noexcept {
    return *places_[static_cast<std::size_t>(d)].device;
  }
  /// Number `q` of a device's, of those for tasks.
  [[nodiscard]] Queue& queue(int device = 0, int q = 0) const noexcept {
    return *queues_[static_cast<std::size_t>(device * stride_ + q)];
  }
  /// Whether the first device's kernels reach host or device memory of the caller as it is.
  [[nodiscard]] bool reaches(const void* first, std::int64_t bytes) const {
    return backend_.reaches(places_.front().index, first, bytes);
  }

  /// What plans of a schedule for such devices go by: the copies of a single queue go through it,
  /// and where the host's memory is not page-locked they are staged.
  [[nodiscard]] static PlanOptions plan_options(const Schedule& schedule, int queues);
  [[nodiscard]] static Machine machine_of(Machine machine, int queues);

  /// All queues, device by device, and of each queue of a plan which of them it is.
  [[nodiscard]] std::vector<ProgramLane> lanes() const;
  [[nodiscard]] std::vector<int> lanes_of(const PlanLayout& layout) const;
  /// The first queue waits for what is in all others.
  void join() const;
  /// Waits for all queues; throws the first failure.
  void synchronize() const;

 private:
  const Backend& backend_;
  std::vector<Place> places_;
  int queues_each_;
  int stride_;                                  // queues of each device: those for tasks come first
  std::vector<std::unique_ptr<Queue>> queues_;  // device by device
};

}  // namespace strata
