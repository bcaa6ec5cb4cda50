#include "schedule/machine_model.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

bool is_of(const KernelRate& rate, const Operation& operation, const Elements& elements) {
  return rate.operation == operation.name && elements_of(rate.elements) == elements;
}

}  // namespace

Elements elements_of(const std::vector<Element>& elements) {
  Elements out;
  for (const Element element : elements) out.push_back(element);
  return out;
}

std::vector<Element> list_of(const Elements& elements) {
  std::vector<Element> out;
  for (int i = 0; i < elements.size(); ++i) out.push_back(elements[i]);
  return out;
}

bool has_kernel(const DeviceModel& device, const Operation& operation, const Elements& elements) {
  return !device.available ||
         std::any_of(device.available->begin(), device.available->end(), [&](const KernelName& k) {
           return k.operation == operation.name && elements_of(k.elements) == elements;
         });
}

namespace {

/// An addition of double-doubles is 20 operations on doubles. Those on complex numbers are counted
/// in operations on their parts.
double known_rate(const DeviceModel& device, Element element) {
  const double rate = device.rate(element);
  if (rate > 0) return rate;
  return element == Element::dd ? device.rate(Element::fp64) / 20
                                : device.rate(element_of_parts(element));
}

}  // namespace

double device_flops_per_second(const DeviceModel& device, Element element) {
  return std::max(known_rate(device, element), 1.0);
}

namespace {

/// Flops per second of a kernel with these elements, where its own rate is not known: that of its
/// slowest input.
double nominal_flops_per_second(const DeviceModel& device, const Elements& elements) {
  double slowest = 0;
  for (int i = elements.size() > 1 ? 1 : 0; i < elements.size(); ++i) {
    const double rate = known_rate(device, elements[i]);
    if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
  }
  return slowest > 0 ? slowest : device_flops_per_second(device, elements[0]);
}

/// How many calls then share the device: as many as it has queues. But products of tiles of 2048 on
/// tensor cores nearly fill it one by one (H200, four queues: in a factorization by the rule
/// `paper` 1.1 to 1.5 products were under way on the average).
double nominal_calls(const DeviceModel& device, const Elements& elements) {
  constexpr double kCallsOnTensorCores = 1.5;
  const double queues = device.compute_queues;
  for (int i = 0; i < elements.size(); ++i) {
    if (elements[i] == Element::fp16x2 || elements[i] == Element::fp16 ||
        elements[i] == Element::fp8)
      return std::min(queues, kCallsOnTensorCores);
  }
  return queues;
}

}  // namespace

double kernel_seconds(const DeviceModel& device, const Operation& operation,
                      const Elements& elements, double work) {
  const KernelRate* below = nullptr;
  const KernelRate* above = nullptr;
  for (const KernelRate& k : device.kernels) {
    if (k.seconds <= 0 || !is_of(k, operation, elements)) continue;
    if (k.flops <= work && (below == nullptr || k.flops > below->flops)) below = &k;
    if (k.flops >= work && (above == nullptr || k.flops < above->flops)) above = &k;
  }
  if (below == nullptr && above == nullptr) {
    return operation.nominal_cost * work /
           (nominal_flops_per_second(device, elements) / nominal_calls(device, elements));
  }
  const auto rate = [](const KernelRate& k) { return k.flops / k.seconds; };
  if (above == nullptr) return work / rate(*below);
  // A smaller call than any measured one is bound by latency, not by its work.
  if (below == nullptr) return above->seconds * std::max(0.1, std::cbrt(work / above->flops));
  if (below == above || below->flops == above->flops) return work / rate(*below);
  const double t = (std::cbrt(work) - std::cbrt(below->flops)) /
                   (std::cbrt(above->flops) - std::cbrt(below->flops));
  return work / (rate(*below) + t * (rate(*above) - rate(*below)));
}

namespace {

/// The rate of one call, over what the device can do in these elements.
double share_by_rate(const DeviceModel& device, const Elements& elements, double work,
                     double seconds) {
  return std::clamp(work / seconds / nominal_flops_per_second(device, elements), 1e-6, 1.0);
}

}  // namespace

double kernel_share(const DeviceModel& device, const Operation& operation, const Elements& elements,
                    double work) {
  double share = 0;
  double nearest = 0;
  for (const KernelRate& k : device.kernels) {
    if (k.share <= 0 || k.flops <= 0 || work <= 0 || !is_of(k, operation, elements)) continue;
    const double likeness = std::min(k.flops / work, work / k.flops);
    if (likeness <= nearest) continue;
    nearest = likeness;
    share = k.share;
  }
  if (share > 0) return std::min(share, 1.0);
  const double seconds = kernel_seconds(device, operation, elements, work);
  return share_by_rate(device, elements, work, seconds);
}

double KernelClock::share_of(int device, const Elements& elements, double work,
                             double seconds) const {
  return share_by_rate(machine_.devices[static_cast<std::size_t>(device)], elements, work, seconds);
}

double KernelClock::least_seconds(int device, const Elements& elements, double work) const {
  // What is written says in which numbers it works; a status beside it is in doubles.
  return work /
         device_flops_per_second(machine_.devices[static_cast<std::size_t>(device)], elements[0]);
}

void KernelClock::require_kernel(int device, const Operation& operation, const Elements& elements) {
  const DeviceModel& model = machine_.devices[static_cast<std::size_t>(device)];
  require(has_kernel(model, operation, elements), ErrorKind::device, "plan",
          "the backend of {} has no kernel for {} in {}", model.name, operation.name,
          to_string(elements));
  known_ = {device, &operation, elements};
}

KernelClock::Cost KernelClock::look_up(int device, const Operation& operation,
                                       const Elements& elements, double work) {
  require_kernel(device, operation, elements);
  const DeviceModel& model = machine_.devices[static_cast<std::size_t>(device)];
  return {kernel_seconds(model, operation, elements, work),
          kernel_share(model, operation, elements, work)};
}

LinkRate peer_link(const Machine& machine) {
  if (machine.device_to_device.bytes_per_second > 0) return machine.device_to_device;
  const LinkRate& in = machine.devices.front().host_to_device;
  const LinkRate& out = machine.devices.front().device_to_host;
  return {1 / (1 / in.bytes_per_second + 1 / out.bytes_per_second),
          in.latency_seconds + out.latency_seconds};
}

const DeviceModel* measured_model(const Machine& rates, const DeviceModel& device) {
  const DeviceModel* found = nullptr;
  for (const DeviceModel& measured : rates.devices) {
    if (measured.name == device.name) return &measured;
    if (found == nullptr && measured.kind == device.kind) found = &measured;
  }
  return found;
}

Machine Machine::emulated(int count, std::int64_t memory_bytes) {
  Machine machine;
  machine.host_memory_bytes = std::int64_t{1} << 40;
  for (int d = 0; d < count; ++d) {
    DeviceModel device;
    device.name = "emulated:" + std::to_string(d);
    device.memory_bytes = memory_bytes;
    device.host_to_device = {50e9, 5e-6};
    device.device_to_host = {50e9, 5e-6};
    device.rate(Element::fp64) = 50e12;
    device.rate(Element::fp32) = 50e12;
    device.rate(Element::fp16x2) = 180e12;
    device.rate(Element::fp16) = 500e12;
    device.rate(Element::fp8) = 800e12;
    machine.devices.push_back(device);
  }
  return machine;
}

}  // namespace strata
