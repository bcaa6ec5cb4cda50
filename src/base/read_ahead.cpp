#include "base/read_ahead.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/host_memory.hpp"

namespace strata {
namespace {

constexpr std::int64_t kWindowBytes = std::int64_t{32} << 20;
constexpr std::int64_t kWindowsLeast = 4;  // of what is worth the calls
constexpr std::int64_t kWindowsAhead = 4;

}  // namespace

ReadAhead::ReadAhead(const void* data, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                     std::int64_t element_bytes, Ask ask)
    : data_(static_cast<const std::byte*>(data)),
      rows_(rows),
      cols_(cols),
      ld_bytes_(ld * element_bytes),
      row_bytes_(element_bytes),
      ask_(std::move(ask)) {
  if (rows * cols * element_bytes < kWindowsLeast * kWindowBytes) return;
  window_ = std::max<std::int64_t>(kWindowBytes / (cols * element_bytes), 1);
  windows_ = (rows + window_ - 1) / window_;
  asked_ = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(windows_));
}

void ReadAhead::reach(std::int64_t row) {
  if (windows_ == 0) return;
  const std::int64_t last = std::min(row / window_ + kWindowsAhead, windows_ - 1);
  for (std::int64_t w = row / window_; w <= last; ++w) {
    std::atomic<bool>& asked = asked_[static_cast<std::size_t>(w)];
    if (asked.load(std::memory_order_relaxed) || asked.exchange(true)) continue;
    const std::int64_t first = w * window_;
    const std::int64_t count = std::min(window_, rows_ - first);
    for (std::int64_t j = 0; j < cols_; ++j)
      ask_(data_ + j * ld_bytes_ + first * row_bytes_, count * row_bytes_);
  }
}

void ReadAhead::ask_system(const std::byte* first, std::int64_t bytes) {
  const WholePages pages(const_cast<std::byte*>(first), bytes);
  if (pages.size == 0) return;
  unsigned char there = 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (::mincore(pages.first + pages.size - page, page, &there) == 0 && (there & 1U) != 0) return;
  (void)::madvise(pages.first, pages.size, MADV_WILLNEED);  // it is an advice
}

}  // namespace strata
