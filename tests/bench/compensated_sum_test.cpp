// Sums whose exact value is known, on which plain double arithmetic fails.

#include "bench/compensated_sum.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/random.hpp"

namespace strata::bench {
namespace {

/// Every product is formed again with the other sign, in another order: what is left is what was
/// added once, far below the rounding of the partial sums.
TEST(CompensatedSum, KeepsWhatCancellationLeaves) {
  const std::uint64_t count = 5000;
  CompensatedSum sum;
  double plain = 0;
  const auto add = [&](double a, double b) {
    sum.add_product(a, b);
    plain += a * b;
  };
  const auto a = [](std::uint64_t i) { return 1e8 * (random_uniform(1, i) - 0.5); };
  const auto b = [](std::uint64_t i) { return 1e8 * (random_uniform(2, i) - 0.5); };
  for (std::uint64_t i = 0; i < count; ++i) add(a(i), b(i));
  add(1e-9, 3);
  for (std::uint64_t i = 0; i < count; ++i) add(-a((7 * i) % count), b((7 * i) % count));
  EXPECT_NEAR(sum.value(), 3e-9, 1e-11);
  EXPECT_GT(std::abs(plain - 3e-9), 1e-3);  // or the case would be too easy
}

TEST(CompensatedSum, TakesTheRestsOfOtherSums) {
  CompensatedSum small;
  small.add(1);
  small.add(0x1p-80);  // in `rest` alone
  CompensatedSum total;
  total.add(small);
  total.add_product(-1, 1);
  EXPECT_EQ(total.value(), 0x1p-80);
  CompensatedSum product;
  product.add_product(3, small);
  product.add(-3);
  EXPECT_EQ(product.value(), 3 * 0x1p-80);
}

}  // namespace
}  // namespace strata::bench
