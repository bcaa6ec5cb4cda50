// Double-double arithmetic against Boost's numbers of 1,000 bits, in which every double and every
// product of two is exact.

#include "scalar/double_double.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "scalar/lanes.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using Many = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<1000, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;

constexpr double kUnit = 0x1p-106;  // u²
constexpr std::uint64_t kCount = test::kSanitized ? 1000 : 6000;

Many many(double x) { return Many(x); }
Many many(const DoubleDouble& x) { return Many(x.hi) + Many(x.lo); }

/// A random number of either sign with an exponent within ±`spread`, its low part anything it may
/// be.
DoubleDouble random_number(std::uint64_t seed, std::uint64_t i, int spread) {
  const auto uniform = [&](std::uint64_t which) { return random_uniform(seed, 4 * i + which); };
  const double sign = uniform(0) < 0.5 ? -1 : 1;
  const int exponent = static_cast<int>((2 * uniform(1) - 1) * spread);
  const double hi = sign * std::ldexp(1 + uniform(2), exponent);
  return fast_two_sum(hi, (uniform(3) - 0.5) * std::ldexp(1.0, exponent - 52));
}

/// |got − exact| in units of u²·scale.
double error(const DoubleDouble& got, const Many& exact, const Many& scale) {
  return static_cast<double>(abs(many(got) - exact) / scale) / kUnit;
}

bool normalized(const DoubleDouble& x) { return x.hi + x.lo == x.hi; }

/// A second operand: of any size, or one that nearly cancels the first.
DoubleDouble partner(const DoubleDouble& a, std::uint64_t i) {
  if (i % 2 == 0) return random_number(2, i, 60);
  const double far = std::ldexp(1.0, -static_cast<int>(i / 2 % 110));
  return -(a + scaled(random_number(3, i, 0), far * std::abs(a.hi)));
}

TEST(DoubleDouble, SumsAndProductsOfDoublesAreExact) {
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double a = random_number(4, i, 300).hi;
    const double b = i % 3 == 0 ? -a * (1 + 0x1p-50) : random_number(5, i, 300).hi;
    EXPECT_EQ(many(two_sum(a, b)), many(a) + many(b));
    EXPECT_EQ(many(two_product(a, b)), many(a) * many(b));
    const double large = std::max(std::abs(a), std::abs(b));
    const double small = std::min(std::abs(a), std::abs(b));
    EXPECT_EQ(many(fast_two_sum(large, -small)), many(large) - many(small));
  }
}

TEST(DoubleDouble, OperationsKeepTheirErrorBounds) {
  double sum = 0;
  double cray = 0;
  double product = 0;
  double step = 0;
  double quotient = 0;
  double root = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const DoubleDouble a = random_number(1, i, 60);
    const DoubleDouble b = partner(a, i);
    const DoubleDouble c = random_number(6, i, 60);
    const Many exact = many(a) + many(b);
    if (exact != 0) sum = std::max(sum, error(a + b, exact, abs(exact)));
    cray = std::max(cray, error(add_cray(a, b), exact, abs(many(a)) + abs(many(b))));
    product = std::max(product, error(a * c, many(a) * many(c), abs(many(a) * many(c))));
    step = std::max(step, error(subtract_product(b, a, c), many(b) - many(a) * many(c),
                                abs(many(b)) + abs(many(a) * many(c))));
    quotient = std::max(quotient, error(a / c, many(a) / many(c), abs(many(a) / many(c))));
    const DoubleDouble positive = a.hi < 0 ? -a : a;
    const Many exact_root = sqrt(many(positive));
    root = std::max(root, error(square_root(positive), exact_root, exact_root));
    for (const DoubleDouble& x : {a + b, a * c, a / c, square_root(positive)})
      EXPECT_TRUE(normalized(x)) << i;
  }
  EXPECT_LE(sum, 3.0001);
  EXPECT_LE(cray, 2.0001);
  EXPECT_LE(product, 5.0001);
  EXPECT_LE(step, 8);
  EXPECT_LE(quotient, 15);
  EXPECT_LE(root, 4);
  // An arithmetic of doubles alone would be off by 2^53 of these units.
  EXPECT_GT(std::max({sum, product, quotient, root}), 0.01);
}

TEST(DoubleDouble, OfExactResultsIsExact) {
  const DoubleDouble third = DoubleDouble(1.0) / DoubleDouble(3.0);
  EXPECT_EQ(third.hi, 1.0 / 3.0);
  EXPECT_NE(third.lo, 0);
  EXPECT_LE(std::abs((third * DoubleDouble(3.0) - DoubleDouble(1.0)).hi), 0x1p-104);
  EXPECT_EQ(square_root(DoubleDouble(49.0)), DoubleDouble(7.0));
  EXPECT_EQ(square_root(DoubleDouble(0.0)), DoubleDouble(0.0));
  const DoubleDouble a{1.0, 0x1p-80};
  EXPECT_EQ(a - DoubleDouble(1.0), DoubleDouble(0x1p-80));
  EXPECT_TRUE(DoubleDouble(1.0) < a);
  EXPECT_FALSE(a < a);
  EXPECT_EQ(scaled(a, 0.25), (DoubleDouble{0.25, 0x1p-82}));
}

TEST(DoubleDouble, ANanAndAnInfinityAreNotLost) {
  const DoubleDouble one(1.0);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(std::isfinite((one + DoubleDouble(bad)).hi));
    EXPECT_FALSE(std::isfinite((one * DoubleDouble(bad)).hi));
    EXPECT_FALSE(std::isfinite(subtract_product(one, DoubleDouble(bad), one).hi));
    EXPECT_FALSE(std::isfinite((DoubleDouble(bad) / one).hi));
  }
}

TEST(Lanes, ComputeAsDoublesDo) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    std::array<DoubleDouble, kLanes> a;
    std::array<DoubleDouble, kLanes> b;
    std::array<double, 4 * kLanes> parts{};
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
      a[lane] = random_number(7, kLanes * i + lane, 40);
      b[lane] = partner(a[lane], kLanes * i + lane);
      parts[lane] = a[lane].hi;
      parts[kLanes + lane] = a[lane].lo;
      parts[2 * kLanes + lane] = b[lane].hi;
      parts[3 * kLanes + lane] = b[lane].lo;
    }
    const DoubleDoubleOf<Lanes> x{Lanes::load(parts.data()), Lanes::load(&parts[kLanes])};
    const DoubleDoubleOf<Lanes> y{Lanes::load(&parts[2 * kLanes]), Lanes::load(&parts[3 * kLanes])};
    const auto same = [&](const DoubleDoubleOf<Lanes>& got, auto expected) {
      std::array<double, 2 * kLanes> out{};
      got.hi.store(out.data());
      got.lo.store(&out[kLanes]);
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        EXPECT_EQ((DoubleDouble{out[lane], out[kLanes + lane]}), expected(a[lane], b[lane]));
    };
    same(x + y, [](const auto& p, const auto& q) { return p + q; });
    same(x * y, [](const auto& p, const auto& q) { return p * q; });
    same(x / y, [](const auto& p, const auto& q) { return p / q; });
    same(subtract_product(x, y, y),
         [](const auto& p, const auto& q) { return subtract_product(p, q, q); });
  }
}

}  // namespace
}  // namespace strata
