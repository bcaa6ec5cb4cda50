#pragma once
// DeviceSet: the devices of a run, with their queues and arenas, kept from run to run.
//
// Contract: opened once from a caller's options; the devices may be of several backends. Queues,
// arenas, rings and their handles are made on first use and reused, and what a run left in the
// arenas is known (Residency), so that the next one may begin with it. Not thread-safe: one run at
// a time.

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend/backend.hpp"
#include "run/pinned_ranges.hpp"
#include "run/pinned_ring.hpp"
#include "run/potrf_tuning.hpp"
#include "schedule/plan.hpp"
#include "strata/cholesky_options.hpp"
#include "strata/options.hpp"

namespace strata {

/// What "host:2" or "cuda:0,1" names.
struct DeviceChoice {
  std::string backend;       ///< "host", "cuda" or "reference"
  std::vector<int> indices;  ///< one for each device
};

/// Parses one part of a `--devices` text. "auto" is every GPU if there is one, else the host.
/// "host:N" is N devices, "cuda:I,J" those indices. Throws Error{misuse} on other text and
/// Error{device} if there is no such device.
[[nodiscard]] DeviceChoice choose_devices(const std::string& text);

/// The parts of a `--devices` text, which "+" joins: "cuda:0+host:1". Throws as choose_devices(),
/// and Error{misuse} if a backend is named twice.
[[nodiscard]] std::vector<DeviceChoice> choose_all_devices(const std::string& text);

/// As `--devices` takes it.
[[nodiscard]] std::string to_text(const DeviceChoice& choice);

/// The backend called `name`; `text` is what the caller wrote, for the message. Throws as
/// choose_devices().
[[nodiscard]] const Backend& backend_named(const std::string& name, const std::string& text);

/// A device of a backend.
struct DevicePlace {
  const Backend* backend = nullptr;
  int index = 0;
};

class DeviceSet {
 public:
  explicit DeviceSet(const RunOptions& options, CholeskyPath path = CholeskyPath::automatic);
  /// The devices `indices` of a backend; options.devices is not read.
  DeviceSet(const Backend& backend, const std::vector<int>& indices, const RunOptions& options,
            CholeskyPath path = CholeskyPath::automatic);
  /// Any devices; options.devices is not read.
  DeviceSet(const std::vector<DevicePlace>& places, const RunOptions& options,
            CholeskyPath path = CholeskyPath::automatic);

  /// The backend of device d. Two devices have the same backend if and only if their queues may
  /// wait for each other's events.
  [[nodiscard]] const Backend& backend(int d = 0) const noexcept {
    return *devices_[static_cast<std::size_t>(d)].backend;
  }
  /// Whether the queues of all devices run host code.
  [[nodiscard]] bool all_on_host() const noexcept;
  [[nodiscard]] const Machine& machine() const noexcept { return machine_; }
  /// Whether every device can copy from every other of its kind without a detour.
  [[nodiscard]] bool linked() const noexcept { return linked_; }
  [[nodiscard]] int count() const noexcept { return static_cast<int>(devices_.size()); }
  /// Tuning of potrf on the first device; the others are taken to be like it. It follows the
  /// path: the planned one reads no file.
  [[nodiscard]] const PotrfTuning& tuning() const noexcept { return tuning_; }
  [[nodiscard]] Device& device(int d) { return *devices_[static_cast<std::size_t>(d)].device; }
  /// A device that can page-lock host memory: the first that does not run host code.
  [[nodiscard]] Device& pinning_device();

  /// The queues of a plan's layout for one device, in the order of their numbers.
  [[nodiscard]] std::vector<Queue*> queues(int d, const PlanLayout& layout);
  /// At least `bytes` bytes on one device. What was there is lost, and no longer resident, if it
  /// has to grow.
  [[nodiscard]] std::byte* arena(int d, std::int64_t bytes);

  /// The same of host memory between storage and the devices, which all of them copy at full speed.
  [[nodiscard]] std::vector<Queue*> host_queues(const PlanLayout& layout);
  [[nodiscard]] std::byte* host_arena(std::int64_t bytes);

  /// An identity that no family on these devices has had yet. Equal programs number alike.
  [[nodiscard]] std::uint64_t new_identity() noexcept { return ++last_identity_; }
  /// What the arenas hold, as the last run left it; `arena_bytes` are those that exist.
  [[nodiscard]] const Residency& residency() const noexcept { return residency_; }
  void set_residency(Residency residency);
  /// Forgets the blocks of a family whose home has changed.
  void forget(std::uint64_t identity) { residency_.forget(identity); }

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
    const Backend* backend = nullptr;
    std::unique_ptr<Device> device;
    Buffer arena;
    std::vector<std::unique_ptr<Queue>> queues;  // released before the arena and the device
    std::unique_ptr<Queue> urgent;
    std::unique_ptr<PinnedRing> ring;  // released before the queues
  };
  Machine machine_;
  Residency residency_;
  std::uint64_t last_identity_ = 0;
  PotrfTuning tuning_;
  bool linked_ = false;
  std::unique_ptr<PinnedRanges> pinned_;
  RingShape ring_shape_;
  std::vector<Entry> devices_;
  std::unique_ptr<Device> host_;  // released after its queues
  std::vector<std::unique_ptr<Queue>> host_queues_;
  Buffer host_arena_;  // of a device: released before it
};

}  // namespace strata
