#pragma once
// KeptAllocator: an allocator whose larger blocks are kept for the next that asks.
//
// Contract: blocks of 64 KiB to 8 MiB, in sizes of powers of two, are kept by the thread that gives
// them back, 64 MiB at most, until it ends. For containers of such sizes that come and go many
// times in a call: the system would take the memory back each time, and each page of it would cost
// a fault when it is touched again. What a block holds is undefined, as of any allocator.

#include <cstddef>
#include <memory>

namespace strata {

/// At least so many bytes, aligned to 64; null where blocks of this size are not kept.
[[nodiscard]] std::byte* take_kept(std::size_t bytes);
/// Gives back what take_kept() gave for the same size.
void give_kept(std::byte* memory, std::size_t bytes) noexcept;

template <class T>
struct KeptAllocator {
  using value_type = T;

  KeptAllocator() = default;
  template <class U>
  explicit(false) KeptAllocator(const KeptAllocator<U>& /*other*/) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) {
    std::byte* kept = take_kept(count * sizeof(T));
    return kept != nullptr ? reinterpret_cast<T*>(kept) : std::allocator<T>().allocate(count);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (is_kept(count * sizeof(T))) {
      give_kept(reinterpret_cast<std::byte*>(memory), count * sizeof(T));
    } else {
      std::allocator<T>().deallocate(memory, count);
    }
  }
  bool operator==(const KeptAllocator& /*other*/) const noexcept { return true; }

 private:
  [[nodiscard]] static bool is_kept(std::size_t bytes) noexcept;
};

inline constexpr std::size_t kKeptBytesMin = std::size_t{1} << 16;
inline constexpr std::size_t kKeptBytesMax = std::size_t{1} << 23;

template <class T>
bool KeptAllocator<T>::is_kept(std::size_t bytes) noexcept {
  return bytes >= kKeptBytesMin && bytes <= kKeptBytesMax;
}

}  // namespace strata
