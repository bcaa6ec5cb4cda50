#include "run/device_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "device/device_host.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "run/numa.hpp"
#include "schedule/machine_model.hpp"
#include "strata/detect.hpp"

namespace strata {
namespace {

constexpr int kDevicesMax = 64;

std::vector<int> parse_numbers(const std::string& list, const std::string& text) {
  std::vector<int> numbers;
  const char* at = list.data();
  const char* end = at + list.size();
  while (at < end) {
    int value = -1;
    const auto [rest, status] = std::from_chars(at, end, value);
    const bool more = rest != end && *rest == ',' && rest + 1 != end;
    require(status == std::errc{} && value >= 0 && (rest == end || more), ErrorKind::misuse,
            "devices", "'{}' names no devices: use auto, host:N or cuda:I,J", text);
    numbers.push_back(value);
    at = rest == end ? end : rest + 1;
  }
  return numbers;
}

std::int64_t default_budget(DeviceKind kind, std::int64_t free_bytes, std::int64_t devices) {
  using namespace literals;
  // A CPU device shares its memory with the factor that it computes; a GPU keeps some for library
  // workspaces.
  if (kind == DeviceKind::cpu) return free_bytes / (2 * devices);
  return std::max<std::int64_t>(free_bytes - 1_GiB, free_bytes / 2);
}

/// What a kernel on a tile reaches of a device's GEMM on large tiles.
struct NominalShape {
  std::int64_t tile;
  double gemm, syrk, trsm, potrf;
};

/// An H200 (bench/results/2026-11-21-h200-rates.json, potrf from the in-core table of
/// docs/benchmarks.md; 256 and 4096 of trsm and syrk by the trend) and a core of a server CPU with
/// AVX-512 (OpenBLAS, `info --calibrate --tiles 64,128,256,512,1024`), all rounded.
constexpr std::array<NominalShape, 5> kNominalGpu{{{256, 0.08, 0.04, 0.01, 0.002},
                                                   {512, 0.27, 0.15, 0.02, 0.01},
                                                   {1024, 0.75, 0.35, 0.06, 0.04},
                                                   {2048, 0.98, 0.88, 0.18, 0.15},
                                                   {4096, 1.0, 0.9, 0.4, 0.5}}};
constexpr std::array<NominalShape, 5> kNominalCpu{{{64, 0.5, 0.3, 0.25, 0.1},
                                                   {128, 0.85, 0.6, 0.5, 0.3},
                                                   {256, 0.95, 0.75, 0.65, 0.5},
                                                   {512, 0.97, 0.85, 0.8, 0.6},
                                                   {1024, 1.0, 0.95, 0.9, 0.7}}};

/// Kernels alone on their device: `rate` is that of GEMM on large tiles, in flop/s.
void add_nominal_kernels(DeviceModel& device, Element element, double rate) {
  const bool gpu = device.kind == DeviceKind::gpu;
  for (const NominalShape& shape : gpu ? kNominalGpu : kNominalCpu) {
    const auto t = static_cast<double>(shape.tile);
    const auto add = [&](const Operation& operation, std::vector<Element> elements, double flops,
                         double share) {
      device.kernels.push_back(
          {std::string(operation.name), std::move(elements), flops, flops / (rate * share)});
    };
    add(gemm, {element, element, element}, 2 * t * t * t, shape.gemm);
    add(syrk, {element, element}, t * (t + 1) * t, shape.syrk);
    add(trsm, {element, element}, t * t * t, shape.trsm);
    add(potrf, {element, Element::fp64}, t * t * t / 3, shape.potrf);
  }
}

/// Round figures of current hardware, for predictions before anything has been measured. `cores`:
/// those of a CPU device.
void set_nominal_rates(DeviceModel& device, int cores) {
  const bool gpu = device.kind == DeviceKind::gpu;
  device.host_to_device = gpu ? LinkRate{50e9, 10e-6} : LinkRate{8e9, 2e-6};
  device.device_to_host = device.host_to_device;
  device.rate(Element::fp64) = gpu ? 50e12 : 30e9 * cores;
  device.rate(Element::fp32) = gpu ? 50e12 : 60e9 * cores;
  device.rate(Element::fp16x2) = gpu ? 180e12 : 50e9 * cores;
  device.rate(Element::fp16) = gpu ? 500e12 : 50e9 * cores;
  device.rate(Element::fp8) = gpu ? 800e12 : 50e9 * cores;
  add_nominal_kernels(device, Element::fp64, gpu ? 50e12 : 30e9);
  add_nominal_kernels(device, Element::fp32, gpu ? 50e12 : 60e9);
}

/// A thread fills bounce buffers at 4 to 6 GB/s. Eight of them keep up with 48 GB/s of a link of
/// 54, twelve with 51, and more are no faster (the host of an H200, 2026-11-25).
constexpr double kThreadCopyRate = 5e9;
/// The threads that fill and empty the bounce buffers of one of so many devices.
int ring_threads(std::int64_t devices) {
  return std::clamp(describe_host().compute_queues / static_cast<int>(devices), 1, 12);
}

/// What predictions of blocks that are not page-locked need; as before, round figures. (The host of
/// an H200 page-locked 5 to 25 GB/s.)
void set_nominal_staging(Machine& machine, const std::vector<DevicePlace>& places) {
  for (std::size_t d = 0; d < places.size(); ++d) {
    if (places[d].backend->on_host()) continue;
    machine.devices[d].staging = {kThreadCopyRate * ring_threads(std::ssize(places)), 10e-6};
    machine.pinning_bytes_per_second = 8e9;
  }
}

/// Whether devices of the same kind can all copy from each other: those of two backends cannot.
bool all_linked(const std::vector<DevicePlace>& places) {
  return std::all_of(places.begin(), places.end(), [&](const DevicePlace& from) {
    return std::all_of(places.begin(), places.end(), [&](const DevicePlace& to) {
      if (from.backend != to.backend) return from.backend->kind() != to.backend->kind();
      return from.index == to.index || from.backend->linked(from.index, to.index);
    });
  });
}

std::vector<KernelName> kernels_of(const Backend& backend) {
  std::vector<KernelName> names;
  for (const KernelTable::Entry& entry : backend.kernels().entries())
    names.push_back({std::string(entry.operation->name), list_of(entry.elements)});
  return names;
}

DeviceModel make_model(const DevicePlace& place, std::int64_t memory_bytes, int compute_queues,
                       int of_this_backend) {
  const Backend& backend = *place.backend;
  const std::vector<DeviceDescription> present = backend.devices();
  const bool gpu = backend.kind() == DeviceKind::gpu;
  require(!gpu || place.index < static_cast<int>(present.size()), ErrorKind::device, "devices",
          "there is no device {}:{}: this machine has {}", backend.name(), place.index,
          present.size());
  const DeviceDescription& description = present[gpu ? static_cast<std::size_t>(place.index) : 0];
  DeviceModel device;
  device.name = fmt::format("{}:{}", backend.name(), place.index);
  device.kind = backend.kind();
  device.memory_bytes =
      memory_bytes > 0 ? memory_bytes
                       : default_budget(device.kind, description.memory_bytes, of_this_backend);
  device.compute_queues = gpu ? 2 : std::max(1, description.compute_queues / of_this_backend);
  set_nominal_rates(device, device.compute_queues);
  if (compute_queues > 0) device.compute_queues = compute_queues;
  device.available = kernels_of(backend);
  return device;
}

Machine make_machine(const std::vector<DevicePlace>& places, std::int64_t memory_bytes,
                     int compute_queues) {
  Machine machine;
  machine.host_memory_bytes = describe_host().memory_bytes;
  std::int64_t gpus = 0;
  for (const DevicePlace& place : places) {
    const auto alike = std::count_if(places.begin(), places.end(), [&](const DevicePlace& other) {
      return other.backend == place.backend;
    });
    machine.devices.push_back(
        make_model(place, memory_bytes, compute_queues, static_cast<int>(alike)));
    gpus += place.backend->kind() == DeviceKind::gpu ? 1 : 0;
  }
  set_nominal_staging(machine, places);
  // Devices that are CPUs share one memory: copies between them save nothing, until measured.
  if (gpus > 1 && all_linked(places)) machine.device_to_device = {100e9, 10e-6};
  return machine;
}

/// Takes over measured rates; a link between devices, if there is one to take.
void apply_rates(Machine& machine, const Machine& rates, bool linked) {
  for (DeviceModel& device : machine.devices) {
    const DeviceModel* measured = measured_model(rates, device);
    if (measured == nullptr) continue;
    device.host_to_device = measured->host_to_device;
    device.device_to_host = measured->device_to_host;
    device.flops_per_second = measured->flops_per_second;
    device.kernels = measured->kernels;
    // Files of before it was measured have none.
    if (device.staging.bytes_per_second > 0 && measured->staging.bytes_per_second > 0)
      device.staging = measured->staging;
    if (linked && rates.device_to_device.bytes_per_second > 0)
      machine.device_to_device = rates.device_to_device;
    if (machine.pinning_bytes_per_second > 0 && rates.pinning_bytes_per_second > 0)
      machine.pinning_bytes_per_second = rates.pinning_bytes_per_second;
  }
}

std::vector<DevicePlace> places_of(const std::string& text) {
  std::vector<DevicePlace> places;
  for (const DeviceChoice& choice : choose_all_devices(text)) {
    for (const int index : choice.indices)
      places.push_back({&backend_named(choice.backend, text), index});
  }
  return places;
}

std::vector<DevicePlace> places_of(const Backend& backend, const std::vector<int>& indices) {
  std::vector<DevicePlace> places;
  for (const int index : indices) places.push_back({&backend, index});
  return places;
}

}  // namespace

const Backend& backend_named(const std::string& name, const std::string& text) {
  if (name == "host") return host_backend();
  if (name == "reference") return reference_backend();
  require(name == "cuda", ErrorKind::misuse, "devices",
          "'{}' names no devices: use auto, host:N or cuda:I,J", text);
  std::string why;
  const Backend* cuda = cuda_backend(&why);
  require(cuda != nullptr, ErrorKind::device, "devices", "'{}': no CUDA device: {}", text, why);
  return *cuda;
}

DeviceChoice choose_devices(const std::string& text) {
  if (text == "auto" || text.empty()) {
    const Backend* cuda = cuda_backend();
    DeviceChoice choice{cuda != nullptr ? "cuda" : "host", {0}};
    for (int d = 1; cuda != nullptr && d < static_cast<int>(cuda->devices().size()); ++d)
      choice.indices.push_back(d);
    return choice;
  }
  const std::size_t colon = text.find(':');
  DeviceChoice choice{text.substr(0, colon), {0}};
  (void)backend_named(choice.backend, text);
  if (colon == std::string::npos) return choice;
  const std::vector<int> numbers = parse_numbers(text.substr(colon + 1), text);
  require(!numbers.empty(), ErrorKind::misuse, "devices",
          "'{}' names no devices: use auto, host:N or cuda:I,J", text);
  if (choice.backend == "cuda") {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      require(std::count(numbers.begin(), numbers.end(), numbers[i]) == 1, ErrorKind::misuse,
              "devices", "'{}' names device {} twice", text, numbers[i]);
    }
    choice.indices = numbers;
    return choice;
  }
  require(numbers.size() == 1 && numbers[0] >= 1 && numbers[0] <= kDevicesMax, ErrorKind::misuse,
          "devices", "'{}': {}:N takes one number of devices from 1 to {}", text, choice.backend,
          kDevicesMax);
  choice.indices.clear();
  for (int d = 0; d < numbers[0]; ++d) choice.indices.push_back(d);
  return choice;
}

std::string to_text(const DeviceChoice& choice) {
  if (choice.backend != "cuda") return fmt::format("{}:{}", choice.backend, choice.indices.size());
  return fmt::format("cuda:{}", fmt::join(choice.indices, ","));
}

std::vector<DeviceChoice> choose_all_devices(const std::string& text) {
  std::vector<DeviceChoice> choices;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    require(end > begin || text.empty(), ErrorKind::misuse, "devices",
            "'{}' names no devices: use auto, host:N or cuda:I,J, joined by +", text);
    DeviceChoice choice = choose_devices(text.substr(begin, end - begin));
    for (const DeviceChoice& other : choices) {
      require(other.backend != choice.backend, ErrorKind::misuse, "devices", "'{}' names {} twice",
              text, choice.backend);
    }
    choices.push_back(std::move(choice));
    begin = end + 1;
  }
  return choices;
}

Machine detect_machine(const std::string& devices, std::int64_t memory_bytes) {
  return make_machine(places_of(devices), memory_bytes, 0);
}

void add_storage(Machine& machine, const RunOptions& options) {
  const auto disks = std::max(static_cast<double>(options.storage.directories.size()), 1.0);
  StorageModel storage{{disks * 2e9, 1e-4}, {disks * 1.5e9, 1e-4}, 0};
  if (options.rates && options.rates->storage) {
    storage.read = options.rates->storage->read;
    storage.write = options.rates->storage->write;
  }
  const auto cpus = std::count_if(machine.devices.begin(), machine.devices.end(),
                                  [](const DeviceModel& d) { return d.kind == DeviceKind::cpu; });
  const std::int64_t bound = options.host_memory_bytes;
  if (cpus < std::ssize(machine.devices) || options.device_memory_bytes > 0) {
    const std::int64_t there = bound > 0 ? bound : machine.host_memory_bytes / 2;
    const std::int64_t left = there - cpus * options.device_memory_bytes;
    // Less than a CPU computes in would be of no use to it.
    const bool all = cpus == std::ssize(machine.devices);
    storage.host_bytes = left < (all ? options.device_memory_bytes : 0) ? 0 : left;
  }
  // What host memory may hold is what CPUs compute in.
  if (storage.host_bytes == 0 && bound > 0) {
    for (DeviceModel& device : machine.devices)
      device.memory_bytes = std::min(device.memory_bytes, bound / std::ssize(machine.devices));
  }
  machine.storage = storage;
}

void start_devices(const std::string& devices) {
  constexpr std::int64_t kOrder = 16;
  constexpr std::int64_t kBlockBytes = kOrder * kOrder * std::int64_t{sizeof(double)};
  for (const DevicePlace& place : places_of(devices)) {
    if (place.backend->on_host()) continue;
    const KernelFunction kernel =
        place.backend->kernels().find(gemm.name, Elements(3, Element::fp64));
    if (kernel == nullptr) continue;
    const auto device = place.backend->make_device(place.index, 8 * kBlockBytes);
    const Buffer memory = device->allocate(3 * kBlockBytes);
    const auto queue = device->make_queue(QueuePriority::normal);
    std::array<BlockView, 3> views;
    for (std::size_t k = 0; k < views.size(); ++k)
      views[k] = {.data = memory.data() + static_cast<std::int64_t>(k) * kBlockBytes,
                  .rows = kOrder,
                  .cols = kOrder,
                  .ld = kOrder};
    // What the numbers are does not matter: the library makes its handle, and loads its code.
    kernel(*queue, {views, gemm.operands}, {.variant = kTransposeB});
    queue->synchronize();
  }
}

DeviceSet::DeviceSet(const RunOptions& options, CholeskyPath path)
    : DeviceSet(places_of(options.devices), options, path) {}

DeviceSet::DeviceSet(const Backend& backend, const std::vector<int>& indices,
                     const RunOptions& options, CholeskyPath path)
    : DeviceSet(places_of(backend, indices), options, path) {}

DeviceSet::DeviceSet(const std::vector<DevicePlace>& places, const RunOptions& options,
                     CholeskyPath path)
    : pinned_(std::make_unique<PinnedRanges>()) {
  require(options.device_memory_bytes >= 0 && options.compute_queues >= 0 &&
              options.compute_queues <= 16,
          ErrorKind::misuse, "options",
          "{} bytes of device memory and {} compute queues make no device",
          options.device_memory_bytes, options.compute_queues);
  require(!places.empty(), ErrorKind::misuse, "options", "a run needs a device");
  machine_ = make_machine(places, options.device_memory_bytes, options.compute_queues);
  if (options.storage.used()) add_storage(machine_, options);
  linked_ = all_linked(places);
  if (options.rates) apply_rates(machine_, *options.rates, linked_);
  tuning_ = potrf_tuning_for(path, *places[0].backend, places[0].index);
  for (std::size_t d = 0; d < places.size(); ++d) {
    Entry entry;
    entry.backend = places[d].backend;
    entry.device =
        places[d].backend->make_device(places[d].index, machine_.devices[d].memory_bytes);
    devices_.push_back(std::move(entry));
  }
  linked_ = all_linked(places);  // as it has turned out, now that they are in use
  residency_.devices.resize(places.size());
  ring_shape_.threads = ring_threads(std::ssize(places));
  shape_rings(ring_shape_);
}

bool DeviceSet::all_on_host() const noexcept {
  return std::all_of(devices_.begin(), devices_.end(),
                     [](const Entry& entry) { return entry.backend->on_host(); });
}

Device& DeviceSet::pinning_device() {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [](const Entry& entry) { return !entry.backend->on_host(); });
  return found == devices_.end() ? *devices_[0].device : *found->device;
}

std::vector<Queue*> DeviceSet::queues(int d, const PlanLayout& layout) {
  Entry& entry = devices_[static_cast<std::size_t>(d)];
  const DeviceLayout& device = layout.devices[static_cast<std::size_t>(d)];
  std::vector<Queue*> queues;
  std::size_t next = 0;  // of those of normal priority
  for (int q = device.first_queue; q < device.first_queue + device.queue_count; ++q) {
    if (layout.queues[static_cast<std::size_t>(q)].role == QueueRole::urgent) {
      if (!entry.urgent) entry.urgent = entry.device->make_queue(QueuePriority::high);
      queues.push_back(entry.urgent.get());
      continue;
    }
    if (next == entry.queues.size()) {
      entry.queues.push_back(entry.device->make_queue(QueuePriority::normal));
    }
    queues.push_back(entry.queues[next++].get());
  }
  return queues;
}

std::vector<Queue*> DeviceSet::host_queues(const PlanLayout& layout) {
  if (!host_) host_ = make_host_device(0, 0);
  const auto count = static_cast<std::size_t>(layout.device(layout.host).queue_count);
  std::vector<Queue*> queues;
  for (std::size_t q = 0; q < count; ++q) {
    if (q == host_queues_.size()) host_queues_.push_back(host_->make_queue(QueuePriority::normal));
    queues.push_back(host_queues_[q].get());
  }
  return queues;
}

std::byte* DeviceSet::host_arena(std::int64_t bytes) {
  if (host_arena_.bytes() < bytes) {
    host_arena_ = Buffer();
    host_arena_ = pinning_device().allocate_host(bytes);
  }
  return host_arena_.data();
}

void DeviceSet::set_residency(Residency residency) {
  residency.devices.resize(devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d)
    residency.devices[d].arena_bytes = devices_[d].arena.bytes();
  residency_ = std::move(residency);
}

int DeviceSet::node(int d) const {
  const NumaTopology& numa = NumaTopology::machine();
  const Device& device = *devices_[static_cast<std::size_t>(d)].device;
  return numa.nodes() < 2 ? NumaTopology::kUnknown
                          : numa.node_of_pci(device.description().pci_bus_id);
}

PinnedRing& DeviceSet::ring(int d, std::int64_t bytes) {
  Entry& entry = devices_[static_cast<std::size_t>(d)];
  RingShape shape = ring_shape_;
  shape.slot_bytes = std::max(shape.slot_bytes, bytes);
  shape.node = node(d);
  if (entry.ring == nullptr || entry.ring->shape().slot_bytes < shape.slot_bytes) {
    entry.ring.reset();
    entry.ring = std::make_unique<PinnedRing>(*entry.device, shape);
  }
  return *entry.ring;
}

void DeviceSet::shape_rings(const RingShape& shape) {
  ring_shape_ = shape;
  for (Entry& entry : devices_) entry.ring.reset();
  for (DeviceModel& device : machine_.devices) {
    device.bounce_buffer_bytes = shape.slot_bytes;
    device.bounce_buffers = shape.slots;
  }
}

std::byte* DeviceSet::arena(int d, std::int64_t bytes) {
  Entry& entry = devices_[static_cast<std::size_t>(d)];
  if (entry.arena.bytes() < bytes) {
    entry.arena = Buffer();  // the budget may not hold the old and the new one together
    residency_.devices[static_cast<std::size_t>(d)] = {};
    entry.arena = entry.device->allocate(bytes);
    residency_.devices[static_cast<std::size_t>(d)].arena_bytes = bytes;
  }
  return entry.arena.data();
}

}  // namespace strata
