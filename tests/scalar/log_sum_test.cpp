// Sums of logarithms: the same whatever the order and the groups, and as exact as their terms.

#include "scalar/log_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace strata {
namespace {

TEST(LogSum, DependsOnNoOrderAndNoGroups) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-700, 700);
  for (const double scale : {1.0, 1e-3, 1e-12, 1e-300}) {
    std::vector<double> terms(3000);
    for (double& term : terms) term = 2 * exponent(random) * scale;
    LogSum all;
    long double exact = 0;
    for (const double term : terms) {
      all.add(term);
      exact += term;
    }
    EXPECT_NEAR(static_cast<double>(exact), all.value(),
                std::ldexp(3000, -53) + std::abs(static_cast<double>(exact)) * 1e-15);
    EXPECT_EQ(all.whole(), std::floor(all.whole()));
    EXPECT_GE(all.fraction(), 0);
    EXPECT_LT(all.fraction(), 1);
    for (int run = 0; run < 20; ++run) {
      std::shuffle(terms.begin(), terms.end(), random);
      LogSum sum;
      for (std::size_t k = 0; k < terms.size();) {
        LogSum group;
        const std::size_t end = std::min(terms.size(), k + 1 + random() % 700);
        for (; k < end; ++k) group.add(terms[k]);
        // As they travel in a status.
        sum.add(group.whole());
        sum.add(group.fraction());
      }
      ASSERT_EQ(sum.whole(), all.whole());
      ASSERT_EQ(sum.fraction(), all.fraction());
    }
  }
}

TEST(LogSum, OfFewTermsIsTheirs) {
  EXPECT_EQ(LogSum().value(), 0);
  for (const double term : {1.0, -1.0, 0.5, -0.75, 1490.25, -1490.25, 0.0, -0.0, 2147483647.0}) {
    LogSum sum;
    sum.add(term);
    EXPECT_EQ(sum.value(), term);
    LogSum none = sum;
    none.add(-term);
    EXPECT_EQ(none.value(), 0);
  }
}

}  // namespace
}  // namespace strata
