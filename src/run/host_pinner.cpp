// HostPinner: see host_pinner.hpp.
//
// Method: pinning a page that was never touched makes the kernel provide it, one page after the
// other in the thread that pins. So each piece is first touched by several threads, in huge pages
// where the system has them; then pinning it is bookkeeping.

#include "run/host_pinner.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.hpp"
#include "base/host_memory.hpp"
#include "device/device_host.hpp"

namespace strata {
namespace {

constexpr std::int64_t kTouchBytes = std::int64_t{8} << 20;  // by one thread at a time

}  // namespace

HostPinning parse_host_pinning(const std::string& name) {
  if (name == "auto") return HostPinning::automatic;
  if (name == "ahead") return HostPinning::ahead;
  if (name == "background") return HostPinning::background;
  require(name == "never", ErrorKind::misuse, "options",
          "'{}' is no way to pin host memory: use auto, ahead, background or never", name);
  return HostPinning::never;
}

HostPinner::HostPinner(DeviceSet& devices, std::byte* data, std::int64_t bytes, HostPinning pinning,
                       std::int64_t piece_bytes)
    : HostPinner(devices, std::vector<HostRange>{{data, bytes}}, pinning, piece_bytes) {}

HostPinner::HostPinner(DeviceSet& devices, std::vector<HostRange> ranges, HostPinning pinning,
                       std::int64_t piece_bytes)
    : devices_(devices),
      ranges_(std::move(ranges)),
      crew_(std::clamp(describe_host().compute_queues, 1, 16) - 1) {
  std::int64_t bytes = 0;
  for (const HostRange& range : ranges_) bytes += range.bytes;
  if (devices.all_on_host() || bytes <= 0 || pinning == HostPinning::never) return;
  const bool must = pinning == HostPinning::ahead;
  if (pinning == HostPinning::automatic) {
    pinning = bytes <= piece_bytes ? HostPinning::ahead : HostPinning::background;
  }
  for (const HostRange& range : ranges_) {
    const WholePages pages(range.data, range.bytes);
    if (pages.size > 0) (void)::madvise(pages.first, pages.size, MADV_HUGEPAGE);  // it is an advice
  }
  if (pinning == HostPinning::ahead) {
    try {
      pin_all(piece_bytes);
    } catch (...) {
      if (must) {
        for (const Buffer& piece : pieces_) devices_.pinned().remove(piece.data());
        throw;
      }  // else the rest stays pageable
    }
    return;
  }
  thread_ = std::thread([this, piece_bytes] {
    try {
      pin_all(piece_bytes);
    } catch (...) {  // the rest stays pageable, as the contract says
    }
  });
}

HostPinner::~HostPinner() {
  stopped_ = true;
  wait();
  for (const Buffer& piece : pieces_) devices_.pinned().remove(piece.data());
}

void HostPinner::wait() {
  if (thread_.joinable()) thread_.join();
}

void HostPinner::pin_all(std::int64_t piece_bytes) {
  for (const HostRange& range : ranges_) pin(range, piece_bytes);
}

void HostPinner::pin(const HostRange& range, std::int64_t piece_bytes) {
  const auto start = std::chrono::steady_clock::now();
  const double before = seconds_;
  for (std::int64_t offset = 0; offset < range.bytes && !stopped_;) {
    // Pieces end at multiples of their size, so none ends within a huge page.
    std::byte* data = range.data + offset;
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto beyond =
        static_cast<std::int64_t>(address % static_cast<std::uintptr_t>(piece_bytes));
    const std::int64_t bytes = std::min(piece_bytes - beyond, range.bytes - offset);
    touch(data, bytes);
    pieces_.push_back(devices_.pinning_device().pin_host(data, bytes));
    devices_.pinned().add(data, bytes);
    offset += bytes;
    pinned_bytes_ = pinned_bytes_ + bytes;
    seconds_ =
        before + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

void HostPinner::touch(std::byte* data, std::int64_t bytes) {
  crew_.share((bytes + kTouchBytes - 1) / kTouchBytes, [&](std::int64_t i) {
    const WholePages pages(data + i * kTouchBytes, std::min(kTouchBytes, bytes - i * kTouchBytes));
    // It changes nothing and may run beside writers. A system that does not know it leaves the
    // pages to whoever touches them first.
    if (pages.size > 0 && !stopped_) (void)::madvise(pages.first, pages.size, MADV_POPULATE_WRITE);
  });
}

}  // namespace strata
