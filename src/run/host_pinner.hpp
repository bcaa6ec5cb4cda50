#pragma once
// HostPinner: pins host memory that exists, piece by piece, beside a run or before it.
//
// Contract: the memory and the devices outlive the pinner, which lets go of the memory in its
// destructor. Contents are not changed. Pieces count as pinned (DeviceSet::pinned) as soon as they
// are. What cannot be pinned stays as it is: blocks there travel through the rings.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/work_crew.hpp"
#include "run/device_set.hpp"

namespace strata {

/// Memory of the host.
struct HostRange {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

/// "auto", "ahead", "background" or "never". Throws Error{misuse} for anything else.
[[nodiscard]] HostPinning parse_host_pinning(const std::string& name);

class HostPinner {
 public:
  /// Pins [data, data + bytes): `ahead` before it returns, throwing Error{memory} if the system
  /// refuses; `background` in a thread; `never` not at all. `automatic` is `background`, but
  /// `ahead` where one piece is all: then the run could profit from nothing before all is done. On
  /// CPU devices it does nothing.
  HostPinner(DeviceSet& devices, std::byte* data, std::int64_t bytes, HostPinning pinning,
             std::int64_t piece_bytes = kPinningPieceBytes);
  /// The same for several ranges, one after the other, of which no two have a page in common.
  HostPinner(DeviceSet& devices, std::vector<HostRange> ranges, HostPinning pinning,
             std::int64_t piece_bytes = kPinningPieceBytes);
  HostPinner(const HostPinner&) = delete;
  HostPinner& operator=(const HostPinner&) = delete;
  ~HostPinner();

  /// What it took so far, and the bytes that are pinned.
  [[nodiscard]] double seconds() const noexcept { return seconds_; }
  [[nodiscard]] std::int64_t pinned_bytes() const noexcept { return pinned_bytes_; }
  /// Blocks until the background has done what it can.
  void wait();

 private:
  void pin_all(std::int64_t piece_bytes);
  void pin(const HostRange& range, std::int64_t piece_bytes);
  void touch(std::byte* data, std::int64_t bytes);

  DeviceSet& devices_;
  std::vector<HostRange> ranges_;
  WorkCrew crew_;
  std::vector<Buffer> pieces_;
  std::atomic<double> seconds_ = 0;
  std::atomic<std::int64_t> pinned_bytes_ = 0;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace strata
