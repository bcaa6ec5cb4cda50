// Method: several threads touch the memory, in huge pages where the system has them; then
// page-locking it is bookkeeping. Threads inherit the memory policy of the one that starts them.

#include "device/touched_memory_cuda.hpp"

#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <thread>

#include "base/work_crew.hpp"

namespace strata {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kMost = std::int64_t{512} << 20;
constexpr std::int64_t kTouchBytes = 2 * kHugePage;  // by one thread at a time
constexpr auto kAlignment = static_cast<std::align_val_t>(kHugePage);
constexpr int kThreads = 16;

void touch(std::byte* data, std::int64_t bytes) {
  const int threads =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kThreads);
  WorkCrew(threads - 1).share((bytes + kTouchBytes - 1) / kTouchBytes, [=](std::int64_t i) {
    const std::int64_t first = i * kTouchBytes;
    const std::int64_t count = std::min(kTouchBytes, bytes - first);
    // A system that does not know this leaves the pages to page-locking.
    (void)::madvise(data + first, static_cast<std::size_t>(count), MADV_POPULATE_WRITE);
  });
}

}  // namespace

Buffer allocate_touched(std::int64_t bytes) {
  if (bytes < kHugePage || bytes > kMost) return {};
  const std::int64_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const auto size = static_cast<std::size_t>(whole);
  auto* data = static_cast<std::byte*>(::operator new(size, kAlignment, std::nothrow));
  if (data == nullptr) return {};
  (void)::madvise(data, size, MADV_HUGEPAGE);  // it is an advice
  touch(data, whole);
  if (cudaHostRegister(data, size, cudaHostRegisterPortable | cudaHostRegisterMapped) !=
      cudaSuccess) {
    (void)cudaGetLastError();
    ::operator delete(data, kAlignment);
    return {};
  }
  return {data, bytes, [](std::byte* memory) {
            (void)cudaHostUnregister(memory);
            (void)cudaGetLastError();
            ::operator delete(memory, kAlignment);
          }};
}

}  // namespace strata
