#pragma once
// allocate_touched: page-locked host memory, soon.
//
// Contract: `bytes` bytes that all GPUs copy at full speed, as cudaHostAlloc gives them; a buffer
// of nothing where that is as well done by cudaHostAlloc (few bytes, or more than any bounce
// buffers), or if the system refuses. Pages come from where the calling thread's memory does.
//
// Why: cudaHostAlloc has its pages made by one thread, at 2 GB/s on the host of an H200.

#include <cstdint>

#include "device/device.hpp"

namespace strata {

[[nodiscard]] Buffer allocate_touched(std::int64_t bytes);

}  // namespace strata
