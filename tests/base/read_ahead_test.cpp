// ReadAhead: each part of the array is asked for once, before its rows are reached.

#include "base/read_ahead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace strata::test {
namespace {

/// What was asked for: ranges, as elements of an array of doubles that is nowhere.
struct Asked {
  static constexpr std::int64_t kBase = 4096;

  ReadAhead::Ask ask() {
    return [this](const std::byte* first, std::int64_t bytes) {
      const std::lock_guard lock(mutex);
      const std::int64_t at = (first - reinterpret_cast<const std::byte*>(kBase)) / 8;
      EXPECT_TRUE(ranges.emplace(at, bytes / 8).second) << "asked for twice";
    };
  }
  [[nodiscard]] bool has(std::int64_t element) const {
    auto next = ranges.upper_bound(element);
    if (next == ranges.begin()) return false;
    --next;
    return element < next->first + next->second;
  }
  std::mutex mutex;
  std::map<std::int64_t, std::int64_t> ranges;
};

TEST(ReadAhead, AsksOnceForWhatIsReachedAndWhatIsBehind) {
  constexpr std::int64_t kRows = 1'000'003, kCols = 37, kLd = 1'000'011;
  for (const bool shuffled : {false, true}) {
    Asked asked;
    ReadAhead ahead(reinterpret_cast<const void*>(Asked::kBase), kRows, kCols, kLd, 8, asked.ask());
    std::vector<std::int64_t> blocks;
    for (std::int64_t row = 0; row < kRows; row += 1024) blocks.push_back(row);
    if (shuffled) std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
    for (const std::int64_t row : blocks) {
      ahead.reach(row);
      for (const std::int64_t r : {row, std::min(row + 100'000, kRows - 1)})
        for (const std::int64_t j : {std::int64_t{0}, kCols - 1})
          ASSERT_TRUE(asked.has(r + j * kLd)) << "row " << r << ", column " << j;
    }
    std::int64_t all = 0;
    for (const auto& [first, count] : asked.ranges) {
      all += count;
      ASSERT_LE(first % kLd + count, kRows) << "beyond a column";
    }
    EXPECT_EQ(all, kRows * kCols);
  }
}

TEST(ReadAhead, SeveralThreadsAskOnce) {
  Asked asked;
  ReadAhead ahead(reinterpret_cast<const void*>(Asked::kBase), 1 << 20, 32, 1 << 20, 8,
                  asked.ask());
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (std::int64_t row = 0; row < 1 << 20; row += 4096) ahead.reach(row);
      });
  }
  std::int64_t all = 0;
  for (const auto& range : asked.ranges) all += range.second;
  EXPECT_EQ(all, std::int64_t{32} << 20);
}

TEST(ReadAhead, LeavesSmallArraysAlone) {
  Asked asked;
  ReadAhead ahead(reinterpret_cast<const void*>(Asked::kBase), 100'000, 20, 100'000, 8,
                  asked.ask());
  for (std::int64_t row = 0; row < 100'000; row += 1000) ahead.reach(row);
  EXPECT_TRUE(asked.ranges.empty());
  ReadAhead().reach(17);
}

TEST(ReadAhead, TheSystemTakesAnyRange) {
  std::vector<std::byte> bytes(100'000, std::byte{7});
  for (const std::int64_t first : {0, 1, 4095, 4097})
    for (const std::int64_t count : {0, 1, 4096, 50'000})
      ReadAhead::ask_system(bytes.data() + first, count);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{7}), 100'000);
}

}  // namespace
}  // namespace strata::test
