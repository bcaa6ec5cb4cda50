// Random numbers: known answers, and a value depends on nothing but its seed and index.

#include "base/random.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace strata {
namespace {

TEST(RandomBits, WithSeedZeroIsThePublishedSequenceOfSplitMix64) {
  // The first outputs of the generator's public reference, started from state 0.
  constexpr std::uint64_t kExpected[] = {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f,
                                         0xf88bb8a8724c81ec, 0x1b39896a51a8749b};
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(random_bits(0, i), kExpected[i]);
}

TEST(RandomBits, HasKnownAnswersForOtherSeeds) {
  // Worked out in arbitrary-precision integers, outside C++.
  EXPECT_EQ(random_bits(1, 0), 0xf4a90164c4749e1aU);
  EXPECT_EQ(random_bits(42, 7), 0x2c2f7db2e54bae6aU);
  EXPECT_EQ(random_bits(12345, std::uint64_t{1} << 40), 0xc330d644bd0210c3U);
  EXPECT_EQ(random_bits(~std::uint64_t{0}, ~std::uint64_t{0}), 0x316c0d67bde611a0U);
}

TEST(RandomUniform, HasKnownAnswersInTheHalfOpenInterval) {
  EXPECT_EQ(random_uniform(0, 0), 0.8833108082136426);
  EXPECT_EQ(random_uniform(42, 7), 0.17259965531893207);
  EXPECT_EQ(random_uniform(3, 1'000'000), 0.4319214824043889);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const double u = random_uniform(9, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
  }
}

TEST(RandomNormal, HasKnownAnswers) {
  EXPECT_NEAR(random_normal(0, 0), -1.8839083333524405, 1e-14);
  EXPECT_NEAR(random_normal(42, 7), -0.06197672690119923, 1e-15);
  EXPECT_NEAR(random_normal(3, 1'000'000), -0.3482733537417367, 1e-15);
}

TEST(RandomNormal, HasTheMomentsOfANormal) {
  constexpr int kCount = 100'000;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double z = random_normal(17, i);
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  // Five standard errors: 1/√n, √2/√n and √96/√n.
  EXPECT_NEAR(sum / kCount, 0, 5 * 0.00317);
  EXPECT_NEAR(squares / kCount, 1, 5 * 0.00448);
  EXPECT_NEAR(fourth / kCount, 3, 5 * 0.031);
}

TEST(Random, DoesNotDependOnTheOrderOfEvaluation) {
  constexpr std::uint64_t kCount = 257;
  std::vector<double> forward(kCount);
  std::vector<double> scattered(kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) forward[i] = random_normal(5, i);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::uint64_t at = (i * 100 + 31) % kCount;  // 257 is prime: each index once
    scattered[at] = random_normal(5, at);
  }
  EXPECT_EQ(forward, scattered);
}

TEST(Random, SeedsAreUnrelated) {
  int equal_bits = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    equal_bits += __builtin_popcountll(~(random_bits(1, i) ^ random_bits(2, i)));
  }
  EXPECT_NEAR(equal_bits, 32'000, 5 * 126.5);  // five standard deviations of 64,000 coin tosses
}

}  // namespace
}  // namespace strata
