#pragma once
// Times from a Machine: how long a kernel or a transfer is expected to take.
//
// Contract: prediction only. The time of a kernel comes from the measured call of the same
// operation and elements whose size is nearest (rates are interpolated over the cube root of the
// work); without measurements it is work over the device's rate. Never negative, never zero flops
// per second.

#include <array>
#include <bit>
#include <vector>

#include "schedule/operation.hpp"
#include "strata/machine.hpp"

namespace strata {

/// The rate that all compute queues of a device reach together, in flop/s.
[[nodiscard]] double device_flops_per_second(const DeviceModel& device, Element element);

/// Seconds of one isolated call of `work` units of the operation's work.
[[nodiscard]] double kernel_seconds(const DeviceModel& device, const Operation& operation,
                                    const Elements& elements, double work);

/// The share of the device's rate that a kernel takes from those beside it: as measured on the call
/// whose size is nearest, else its own rate over the device's. In (0, 1].
[[nodiscard]] double kernel_share(const DeviceModel& device, const Operation& operation,
                                  const Elements& elements, double work);

/// What was measured of the device with the name of `device` ("cuda:1"), else of the first of its
/// kind; null if `rates` has none.
[[nodiscard]] const DeviceModel* measured_model(const Machine& rates, const DeviceModel& device);

/// Whether the device has a kernel for the operation on these elements.
[[nodiscard]] bool has_kernel(const DeviceModel& device, const Operation& operation,
                              const Elements& elements);

/// The elements of a rate as the planner names them.
[[nodiscard]] Elements elements_of(const std::vector<Element>& elements);

/// As above the other way, for what is public.
[[nodiscard]] std::vector<Element> list_of(const Elements& elements);

[[nodiscard]] inline double transfer_seconds(const LinkRate& link, std::int64_t bytes) {
  return link.latency_seconds + static_cast<double>(bytes) / link.bytes_per_second;
}

/// What copies between devices go by: where they have no link, they pass through the host.
[[nodiscard]] LinkRate peer_link(const Machine& machine);

/// kernel_seconds and kernel_share of a machine's devices, remembered: tasks are many, and alike.
class KernelClock {
 public:
  struct Cost {
    double seconds = 0;  ///< of an isolated call
    double share = 0;    ///< of the device's rate
  };

  /// `machine` outlives the clock.
  explicit KernelClock(const Machine& machine) : machine_(machine) {}

  /// Throws Error{device} if the device has no such kernel, naming operation and elements.
  /// `seconds`: as Task has it.
  [[nodiscard]] Cost cost(int device, const Operation& operation, const Elements& elements,
                          double work, double seconds) {
    if (seconds > 0) {
      if (device != known_.device || &operation != known_.operation || elements != known_.elements)
        require_kernel(device, operation, elements);
      return {seconds, share_of(device, elements, work, seconds)};
    }
    const std::uint64_t mixed =
        (std::bit_cast<std::uint64_t>(work) ^ elements.bits() ^
         reinterpret_cast<std::uintptr_t>(&operation) ^ static_cast<std::uint64_t>(device) << 48) *
        0x9e3779b97f4a7c15U;
    Answer& answer = answers_[mixed >> 56];
    if (answer.operation != &operation || answer.elements != elements.bits() ||
        answer.work != work || answer.device != device) {
      answer = {&operation, elements.bits(), work, device,
                look_up(device, operation, elements, work)};
    }
    return answer.cost;
  }

  /// What so much work takes at the device's rate.
  [[nodiscard]] double least_seconds(int device, const Elements& elements, double work) const;

 private:
  struct Answer {
    const Operation* operation = nullptr;
    std::uint64_t elements = 0;
    double work = 0;
    int device = -1;
    Cost cost;
  };
  /// A kernel that was found.
  struct Known {
    int device = -1;
    const Operation* operation = nullptr;
    Elements elements;
  };
  void require_kernel(int device, const Operation& operation, const Elements& elements);
  [[nodiscard]] double share_of(int device, const Elements& elements, double work,
                                double seconds) const;
  [[nodiscard]] Cost look_up(int device, const Operation& operation, const Elements& elements,
                             double work);

  const Machine& machine_;
  std::array<Answer, 256> answers_{};
  Known known_;
};

}  // namespace strata
