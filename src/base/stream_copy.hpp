#pragma once
// stream_copy: a copy that leaves nothing of what it wrote in the caches.
//
// For memory that a GPU reads next. Lines that are dirty in the caches of other cores slow its copy
// down: on the host of an H200 one of 1 MiB made 20 GB/s behind memcpy by twelve threads and 38
// behind this, one of 24 MiB 42 and 53 (bench/results/2026-11-30-h200-predictions.md).
//
// Contract: as memcpy; of no more than kStreamedLeast bytes it is that. What was written is visible
// to other threads and devices as what memcpy writes.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace strata {

inline constexpr std::int64_t kStreamedLeast = 4096;

inline void stream_copy(std::byte* to, const std::byte* from, std::int64_t bytes) noexcept {
  if (bytes <= 0) return;
#if defined(__SSE2__)
  if (bytes > kStreamedLeast) {
    constexpr std::int64_t kVector = 16;
    constexpr std::int64_t kLine = 4 * kVector;
    const auto before = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) % kLine);
    std::memcpy(to, from, static_cast<std::size_t>(before));
    std::int64_t i = before;
    for (; i + kLine <= bytes; i += kLine) {
      const auto* source = reinterpret_cast<const __m128i*>(from + i);
      auto* target = reinterpret_cast<__m128i*>(to + i);
      const __m128i first = _mm_loadu_si128(source);
      const __m128i second = _mm_loadu_si128(source + 1);
      const __m128i third = _mm_loadu_si128(source + 2);
      const __m128i fourth = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, first);
      _mm_stream_si128(target + 1, second);
      _mm_stream_si128(target + 2, third);
      _mm_stream_si128(target + 3, fourth);
    }
    _mm_sfence();
    to += i;
    from += i;
    bytes -= i;
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace strata
