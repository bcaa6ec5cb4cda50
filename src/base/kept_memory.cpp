#include "base/kept_memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace strata {
namespace {

constexpr std::size_t kThreadBytesMax = std::size_t{1} << 26;

struct alignas(64) Line {
  std::array<std::byte, 64> bytes;
};

constexpr std::size_t size_of(std::size_t bytes) { return std::bit_ceil(bytes); }

std::byte* allocate(std::size_t bytes) {
  return std::allocator<Line>().allocate(size_of(bytes) / sizeof(Line))->bytes.data();
}
void release(std::byte* memory, std::size_t bytes) noexcept {
  std::allocator<Line>().deallocate(reinterpret_cast<Line*>(memory), size_of(bytes) / sizeof(Line));
}

/// Whether the thread's pool is gone: containers may outlive it.
thread_local bool pool_is_gone = false;

struct Pool {
  static constexpr int kFirst = std::bit_width(kKeptBytesMin) - 1;
  std::array<std::vector<std::byte*>, std::bit_width(kKeptBytesMax) - kFirst> idle;
  std::size_t bytes = 0;

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    pool_is_gone = true;
    for (std::size_t c = 0; c < idle.size(); ++c) {
      for (std::byte* memory : idle[c]) release(memory, std::size_t{1} << (c + kFirst));
    }
  }
  std::vector<std::byte*>& of(std::size_t size) {
    return idle[static_cast<std::size_t>(std::bit_width(size) - 1 - kFirst)];
  }
};

Pool& pool() {
  thread_local Pool instance;
  return instance;
}

}  // namespace

std::byte* take_kept(std::size_t bytes) {
  if (bytes < kKeptBytesMin || bytes > kKeptBytesMax) return nullptr;
  if (pool_is_gone) return allocate(bytes);
  Pool& mine = pool();
  std::vector<std::byte*>& idle = mine.of(size_of(bytes));
  if (idle.empty()) return allocate(bytes);
  std::byte* memory = idle.back();
  idle.pop_back();
  mine.bytes -= size_of(bytes);
  return memory;
}

void give_kept(std::byte* memory, std::size_t bytes) noexcept {
  if (pool_is_gone) return release(memory, bytes);
  try {
    Pool& mine = pool();
    if (mine.bytes + size_of(bytes) > kThreadBytesMax) return release(memory, bytes);
    mine.of(size_of(bytes)).push_back(memory);
    mine.bytes += size_of(bytes);
  } catch (...) {  // no memory to remember it
    release(memory, bytes);
  }
}

}  // namespace strata
