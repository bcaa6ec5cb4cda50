#pragma once
// DeviceSet: the devices of a run, with their queues and arenas, kept from run to run.
//
// Contract: opened once from a caller's options; queues, arenas, rings and their handles are made
// on first use and reused. Not thread-safe: one run at a time.

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "run/pinned_ranges.hpp"
#include "run/pinned_ring.hpp"
#include "run/potrf_tuning.hpp"
#include "schedule/plan.hpp"
#include "strata/options.hpp"

namespace strata {

/// What "host:2" or "cuda:0,1" names.
struct DeviceChoice {
  std::string backend;       ///< "host", "cuda" or "reference"
  std::vector<int> indices;  ///< one for each device
};

/// Parses a `--devices` text. "auto" is every GPU if there is one, else the host. "host:N" is N
/// devices, "cuda:I,J" those indices. Throws Error{misuse} on other text and Error{device} if there
/// is no such device.
[[nodiscard]] DeviceChoice choose_devices(const std::string& text);

/// The backend called `name`; `text` is what the caller wrote, for the message. Throws as
/// choose_devices().
[[nodiscard]] const Backend& backend_named(const std::string& name, const std::string& text);

class DeviceSet {
 public:
  explicit DeviceSet(const Options& options);
  /// The devices `indices` of a backend; options.devices is not read.
  DeviceSet(const Backend& backend, const std::vector<int>& indices, const Options& options);

  [[nodiscard]] const Backend& backend() const noexcept { return *backend_; }
  [[nodiscard]] const Machine& machine() const noexcept { return machine_; }
  /// Whether every device can copy from every other without a detour.
  [[nodiscard]] bool linked() const noexcept { return linked_; }
  [[nodiscard]] int count() const noexcept { return static_cast<int>(devices_.size()); }
  /// Of potrf, on the first device; the others are taken to be like it. As the options' path has
  /// it: the planned one reads no file.
  [[nodiscard]] const PotrfTuning& tuning() const noexcept { return tuning_; }
  [[nodiscard]] Device& device(int d) { return *devices_[static_cast<std::size_t>(d)].device; }

  /// The queues of a plan's layout for one device, in the order of their local numbers.
  [[nodiscard]] std::vector<Queue*> queues(int d, const PlanLayout& layout);
  /// At least `bytes` bytes on one device.
  [[nodiscard]] std::byte* arena(int d, std::int64_t bytes);

  /// The NUMA node beside one device; NumaTopology::kUnknown also if the machine has but one.
  [[nodiscard]] int node(int d) const;
  /// The host memory that these devices reach at full speed.
  [[nodiscard]] PinnedRanges& pinned() noexcept { return *pinned_; }
  /// The ring of one device, with slots of at least `bytes` bytes. An earlier one, which is idle,
  /// may be gone.
  [[nodiscard]] PinnedRing& ring(int d, std::int64_t bytes);
  /// For the rings that are made from now on, and those that exist are gone.
  void shape_rings(const RingShape& shape);

 private:
  struct Entry {
    std::unique_ptr<Device> device;
    Buffer arena;
    std::vector<std::unique_ptr<Queue>> queues;  // released before the arena and the device
    std::unique_ptr<Queue> urgent;
    std::unique_ptr<PinnedRing> ring;  // released before the queues
  };
  const Backend* backend_ = nullptr;
  Machine machine_;
  PotrfTuning tuning_;
  bool linked_ = false;
  std::unique_ptr<PinnedRanges> pinned_;
  RingShape ring_shape_;
  std::vector<Entry> devices_;
};

}  // namespace strata
