// stream_copy() against memcpy, over sizes and alignments around its vectors and its threshold.

#include "base/stream_copy.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace strata {
namespace {

TEST(StreamCopy, CopiesEveryByteAndNoOther) {
  constexpr std::int64_t kMost = 3 * kStreamedLeast;
  constexpr std::int64_t kAround = 80;
  std::vector<std::byte> from(kMost + 2 * kAround);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::byte>(1 + i * 7 % 255);  // never 0
  for (const std::int64_t bytes :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{63}, kStreamedLeast - 1, kStreamedLeast,
        kStreamedLeast + 1, kStreamedLeast + 63, kStreamedLeast + 64, kStreamedLeast + 65,
        2 * kStreamedLeast + 17, kMost}) {
    for (const std::int64_t to_offset : {0, 1, 8, 15, 16, 17, 31, 63, 64}) {
      for (const std::int64_t from_offset : {0, 1, 13, 64}) {
        std::vector<std::byte> to(from.size(), std::byte{0});
        stream_copy(to.data() + to_offset, from.data() + from_offset, bytes);
        std::vector<std::byte> wanted(from.size(), std::byte{0});
        if (bytes > 0)
          std::memcpy(wanted.data() + to_offset, from.data() + from_offset,
                      static_cast<std::size_t>(bytes));
        ASSERT_EQ(to, wanted) << bytes << " bytes, " << to_offset << ", " << from_offset;
      }
    }
  }
}

}  // namespace
}  // namespace strata
