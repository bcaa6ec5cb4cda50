#pragma once
// AlignedBuffers: memory for whole pages of files, kept from one use to the next.
//
// Contract: several threads may take buffers at once. Those that are given back are taken again by
// whoever needs no more than they have; what a buffer holds is undefined.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace strata {

/// Direct reads and writes begin and end at multiples of it, in files and in memory.
inline constexpr std::int64_t kPageBytes = 4096;
[[nodiscard]] constexpr std::int64_t in_pages(std::int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::int64_t bytes)
      : data_(static_cast<std::byte*>(
            ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kPageBytes}))),
        bytes_(bytes) {}

  [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct Delete {
    void operator()(std::byte* p) const noexcept {
      ::operator delete (p, std::align_val_t{kPageBytes});
    }
  };
  std::unique_ptr<std::byte, Delete> data_;
  std::int64_t bytes_;
};

class AlignedBuffers {
 public:
  [[nodiscard]] AlignedBuffer take(std::int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(kept_.begin(), kept_.end(),
                                      [&](const AlignedBuffer& b) { return b.bytes() >= bytes; });
      if (found != kept_.end()) {
        AlignedBuffer buffer = std::move(*found);
        kept_.erase(found);
        return buffer;
      }
    }
    return AlignedBuffer(bytes);
  }
  void give_back(AlignedBuffer buffer) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(buffer));
    if (kept_.size() > kKept) kept_.erase(kept_.begin());
  }

 private:
  static constexpr std::size_t kKept = 16;
  std::mutex mutex_;
  std::vector<AlignedBuffer> kept_;
};

}  // namespace strata
