// Blocks that are kept for the next that asks, by the thread that gave them back.

#include "base/kept_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

namespace strata {
namespace {

using Values = std::vector<double, KeptAllocator<double>>;

std::size_t doubles_of(std::size_t bytes) { return bytes / sizeof(double); }

TEST(KeptMemory, IsGivenToTheNextThatAsksForItsSize) {
  const double* first = nullptr;
  {
    const Values values(doubles_of(100'000), 7.0);
    first = values.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
  }
  const Values again(doubles_of(120'000));  // within the same power of two
  EXPECT_EQ(again.data(), first);
  for (const double x : again) ASSERT_EQ(x, 0.0);  // values, not what was there
  const Values other(doubles_of(120'000));
  EXPECT_NE(other.data(), first);
  const Values larger(doubles_of(200'000));
  EXPECT_NE(larger.data(), first);
}

TEST(KeptMemory, OnlyOfSomeSizes) {
  EXPECT_EQ(take_kept(kKeptBytesMin - 1), nullptr);
  EXPECT_EQ(take_kept(kKeptBytesMax + 1), nullptr);
  for (const std::size_t bytes : {std::size_t{8}, kKeptBytesMin - 8, kKeptBytesMin,
                                  kKeptBytesMin + 8, kKeptBytesMax, kKeptBytesMax + 8}) {
    Values values(doubles_of(bytes));
    std::iota(values.begin(), values.end(), 0.0);
    EXPECT_EQ(values.back(), static_cast<double>(doubles_of(bytes) - 1)) << bytes;
  }
}

/// A thread keeps eight of the largest, and hands out what it was given back last.
TEST(KeptMemory, IsBounded) {
  std::jthread([] {
    constexpr std::size_t kKept = 8;
    std::vector<std::byte*> given;
    for (std::size_t i = 0; i < 2 * kKept; ++i) given.push_back(take_kept(kKeptBytesMax));
    for (std::byte* memory : given) give_kept(memory, kKeptBytesMax);
    // The system may hand out again what is not kept, but not before what is kept.
    std::vector<std::byte*> again;
    for (std::size_t i = 0; i < kKept; ++i) again.push_back(take_kept(kKeptBytesMax));
    std::reverse(again.begin(), again.end());
    given.resize(kKept);
    EXPECT_EQ(again, given);
    for (std::byte* memory : again) give_kept(memory, kKeptBytesMax);
  }).join();
}

TEST(KeptMemory, MovesBetweenThreads) {
  std::vector<Values> many;
  for (int i = 0; i < 20; ++i) many.emplace_back(doubles_of(kKeptBytesMax), 1.0);
  std::jthread([&many] { many.clear(); }).join();  // which keeps some, and ends
  std::vector<Values> made;
  std::jthread([&made] { made.emplace_back(doubles_of(kKeptBytesMin), 3.0); }).join();
  EXPECT_EQ(made[0].front(), 3.0);
  EXPECT_EQ(made[0].back(), 3.0);
}

}  // namespace
}  // namespace strata
