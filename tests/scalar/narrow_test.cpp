// Arrays of narrow formats against the conversion of one element, and the error of the pair.

#include "scalar/narrow.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

/// Numbers of all magnitudes around those of the formats, and what is none.
template <class Real>
std::vector<Real> awkward(std::int64_t n, std::uint64_t seed) {
  constexpr Real kInf = std::numeric_limits<Real>::infinity();
  constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
  constexpr Real kTiny = std::numeric_limits<Real>::denorm_min();
  const std::vector<Real> special{0,     -Real{0}, kInf,  -kInf, kNan, -kNan,         kTiny,
                                  65504, -65520,   65519, 464,   -465, Real(0x1p-25), 448};
  std::vector<Real> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<std::uint64_t>(i);
    const int exponent = static_cast<int>(random_bits(seed + 1, k) % 60) - 35;
    const double any = std::ldexp(random_uniform(seed, k) - 0.5, exponent);
    x.push_back(k % 5 == 3 ? special[k / 5 % special.size()] : static_cast<Real>(any));
  }
  return x;
}

template <class Real>
bool same(Real a, Real b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class Narrow, class Real>
void expect_rounds_and_widens(std::int64_t n, double scale) {
  const std::vector<Real> from = awkward<Real>(n, 7);
  // One more at each end, which must not be touched.
  std::vector<Narrow> to(static_cast<std::size_t>(n) + 2, Narrow::from_bits(0x5a));
  const std::int64_t overflows = round_to(from.data(), scale, to.data() + 1, n);
  std::int64_t expected = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const double x = static_cast<double>(from[i]) * scale;
    ASSERT_EQ(to[i + 1].bits, Narrow(x).bits) << n << " " << from[i];
    expected += Narrow::overflows(x) ? 1 : 0;
  }
  EXPECT_EQ(overflows, expected);
  EXPECT_EQ(to.front().bits, 0x5a);
  EXPECT_EQ(to.back().bits, 0x5a);

  std::vector<Real> wide(static_cast<std::size_t>(n) + 2, Real{-1});
  widen(to.data() + 1, wide.data() + 1, n);
  for (std::size_t i = 0; i < from.size(); ++i)
    ASSERT_TRUE(same(wide[i + 1], static_cast<Real>(to[i + 1]))) << n << " " << i;
  EXPECT_EQ(wide.front(), -1);
  EXPECT_EQ(wide.back(), -1);
}

TEST(Narrow, RoundsAndWidensArraysAsSingleNumbers) {
  for (std::int64_t n = 0; n < 70; ++n) {
    for (const double scale : {1.0, 0x1p-9, 0x1p12}) {
      SCOPED_TRACE(::testing::Message() << "n " << n << " scale " << scale);
      expect_rounds_and_widens<Half, double>(n, scale);
      expect_rounds_and_widens<Half, float>(n, scale);
      expect_rounds_and_widens<Fp8, double>(n, scale);
      expect_rounds_and_widens<Fp8, float>(n, scale);
    }
  }
  expect_rounds_and_widens<Half, double>(200'003, 4);  // past what is counted in one go
  expect_rounds_and_widens<Fp8, float>(200'003, 4);
}

TEST(Narrow, ReachesWithScalesFarFromOne) {
  for (const double scale : {0x1p-126, 0x1p-60, 0x1p60, 0x1p126}) {
    const std::vector<double> from{1.5 / scale, -3e4 / scale, 0x1p-20 / scale, 1e9 / scale};
    std::vector<Half> to(from.size());
    EXPECT_EQ(round_to(from.data(), scale, to.data(), 4), 1);
    for (std::size_t i = 0; i < from.size(); ++i)
      EXPECT_EQ(to[i].bits, Half(from[i] * scale).bits) << scale;
    const std::vector<float> singles{1.5F / static_cast<float>(scale), 1e-45F, 3e38F, -1.0F};
    (void)round_to(singles.data(), scale, to.data(), 4);
    for (std::size_t i = 0; i < singles.size(); ++i)
      EXPECT_EQ(to[i].bits, Half(static_cast<double>(singles[i]) * scale).bits) << scale << i;
  }
}

TEST(Narrow, WidensEveryCode) {
  std::vector<Half> halves;
  for (int bits = 0; bits < 65536; ++bits)
    halves.push_back(Half::from_bits(static_cast<std::uint16_t>(bits)));
  std::vector<Fp8> eighths;
  for (int bits = 0; bits < 256; ++bits)
    eighths.push_back(Fp8::from_bits(static_cast<std::uint8_t>(bits)));
  std::vector<float> f(65536);
  std::vector<double> d(65536);
  widen(halves.data(), f.data(), 65536);
  widen(halves.data(), d.data(), 65536);
  for (std::size_t i = 0; i < 65536; ++i) {
    ASSERT_TRUE(same(f[i], static_cast<float>(halves[i]))) << i;
    ASSERT_TRUE(same(d[i], static_cast<double>(halves[i]))) << i;
  }
  widen(eighths.data(), f.data(), 256);
  widen(eighths.data(), d.data(), 256);
  for (std::size_t i = 0; i < 256; ++i) {
    ASSERT_TRUE(same(f[i], static_cast<float>(eighths[i]))) << i;
    ASSERT_TRUE(same(d[i], static_cast<double>(eighths[i]))) << i;
  }
}

TEST(Narrow, RefusesAScaleThatIsNoPowerOfTwoOrOutOfReach) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> x{1};
  std::vector<double> y(1);
  std::vector<Half> hi(1);
  std::vector<Half> lo(1);
  std::vector<Fp8> eight(1);
  for (const double scale : {0.0, -1.0, 3.0, 1 + 0x1p-52, 0x1p127, 0x1p-127, 5e-324, kInf, kNan}) {
    EXPECT_THROW(round_to(x.data(), scale, hi.data(), 1), Error) << scale;
    EXPECT_THROW(round_to(x.data(), scale, eight.data(), 1), Error) << scale;
    EXPECT_THROW(split(x.data(), scale, hi.data(), lo.data(), 1), Error) << scale;
    EXPECT_THROW(join(hi.data(), lo.data(), scale, y.data(), 1), Error) << scale;
  }
  try {
    round_to(x.data(), 3, hi.data(), 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::misuse);
    EXPECT_NE(std::string(error.what()).find("scale of 3 "), std::string::npos) << error.what();
  }
}

// ---- the pair

/// |x·s − (hi + lo)| in exact arithmetic: the last bits of all of them lie within 64.
long double pair_error(double scaled, Half hi, Half lo) {
  const long double rest = static_cast<long double>(scaled) - static_cast<double>(hi);
  return std::fabs(rest - static_cast<double>(lo));
}

template <class Real>
void expect_pairs(const std::vector<Real>& x, double scale) {
  const auto n = std::ssize(x);
  std::vector<Half> hi(x.size());
  std::vector<Half> lo(x.size());
  std::vector<Real> back(x.size());
  ASSERT_EQ(split(x.data(), scale, hi.data(), lo.data(), n), 0);
  join(hi.data(), lo.data(), scale, back.data(), n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scaled = static_cast<double>(x[i]) * scale;
    ASSERT_EQ(hi[i].bits, Half(scaled).bits) << scaled;
    ASSERT_EQ(lo[i].bits, Half(scaled - static_cast<double>(hi[i])).bits) << scaled;
    const double a = std::fabs(scaled);
    const long double bound = a >= 0.25 ? 0x1p-23L * a : 0x1p-25L;
    ASSERT_LE(pair_error(scaled, hi[i], lo[i]), bound) << std::hexfloat << scaled;
    const double sum = static_cast<double>(hi[i]) + static_cast<double>(lo[i]);
    ASSERT_EQ(back[i], static_cast<Real>(sum / scale)) << std::hexfloat << scaled;
  }
}

TEST(Pair, KeepsTwentyTwoBitsAboveAnEighth) {
  for (const int spread : {0, 10, 17, 40}) {
    for (const double scale : {1.0, 0x1p-20, 0x1p30}) {
      std::vector<double> x;
      std::vector<float> single;
      for (std::uint64_t i = 0; i < 20'000; ++i) {
        const auto down = static_cast<int>(random_bits(1, i) % static_cast<unsigned>(spread + 1));
        const double sign = random_bits(2, i) % 2 == 0 ? 1 : -1;
        x.push_back(sign * std::ldexp(1 + random_uniform(3, i), 14 - down) / scale);
        single.push_back(static_cast<float>(x.back()));
      }
      expect_pairs(x, scale);
      expect_pairs(single, scale);
    }
  }
}

TEST(Pair, IsWorstWhereItsContractSaysAndLosesBitsBelow) {
  // Largest error: the rest just past a tie of lo's, in the binade below 2^-11.
  double worst = 0;
  double below = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const double fraction = 1 + random_uniform(4, i) * 0x1p-9;
    for (const int exponent : {-2, -12}) {
      const double x = std::ldexp(fraction, exponent);
      Half hi;
      Half lo;
      (void)split(&x, 1, &hi, &lo, 1);
      const auto relative = static_cast<double>(pair_error(x, hi, lo)) / x;
      (exponent == -2 ? worst : below) = std::max(exponent == -2 ? worst : below, relative);
    }
  }
  EXPECT_GT(worst, 0.99 * 0x1p-23);
  EXPECT_LE(worst, 0x1p-23);
  EXPECT_GT(below, 0x1p-14);  // 2^-25 of 2^-12 is 2^-13
}

TEST(Pair, OfWhatIsNotFiniteIsHiAlone) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> x{70000, -kInf, std::nan(""), 65504, -0.0, 65519, 1e-300, 1};
  const auto n = std::ssize(x);
  std::vector<Half> hi(x.size());
  std::vector<Half> lo(x.size());
  std::vector<double> back(x.size());
  EXPECT_EQ(split(x.data(), 1, hi.data(), lo.data(), n), 2);
  join(hi.data(), lo.data(), 1, back.data(), n);
  EXPECT_EQ(back[0], kInf);
  EXPECT_EQ(back[1], -kInf);
  EXPECT_TRUE(std::isnan(back[2]));
  for (const std::size_t i : {0, 1, 2}) EXPECT_EQ(lo[i].bits, 0) << i;
  EXPECT_EQ(back[3], 65504);
  EXPECT_EQ(hi[4].bits, 0x8000);
  EXPECT_EQ(back[4], 0);
  EXPECT_EQ(back[5], 65519);
  EXPECT_EQ(back[6], 0);
  EXPECT_EQ(back[7], 1);
  EXPECT_EQ(split(x.data(), 1, hi.data(), lo.data(), 0), 0);
}

}  // namespace
}  // namespace strata
