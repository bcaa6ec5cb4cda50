// Half and Fp8 against their definitions, all codes, and against a search for the nearest
// neighbour.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/random.hpp"
#include "scalar/fp8.hpp"
#include "scalar/half.hpp"

namespace strata {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// A format as its standard defines it, in exact arithmetic of long double.
struct HalfDefinition {
  using Type = Half;
  using Bits = std::uint16_t;
  static constexpr int kCodes = 0x7c00;  ///< 0 … kCodes − 1 are the numbers that are not negative
  static constexpr int kSign = 0x8000;
  static constexpr int kPastTheEnd = 0x7c00;  ///< what rounds past the largest becomes: infinity
  static long double value(int code) {
    const int exponent = code / 1024;
    const int fraction = code % 1024;
    return exponent == 0 ? std::ldexp(static_cast<long double>(fraction), -24)
                         : std::ldexp(1024 + static_cast<long double>(fraction), exponent - 25);
  }
};
struct Fp8Definition {
  using Type = Fp8;
  using Bits = std::uint8_t;
  static constexpr int kCodes = 0x7f;
  static constexpr int kSign = 0x80;
  static constexpr int kPastTheEnd = 0x7e;  ///< 448
  static long double value(int code) {
    const int exponent = code / 8;
    const int fraction = code % 8;
    return exponent == 0 ? std::ldexp(static_cast<long double>(fraction), -9)
                         : std::ldexp(8 + static_cast<long double>(fraction), exponent - 10);
  }
};

/// The code that is nearest to |x|, of two that are as near the even one, by bisection among all:
/// x lies below the middle of two neighbours a and b if 2x < a + b, and both sides are exact. The
/// number after the last is that which the format would have there.
template <class Definition>
int nearest(double x) {
  const long double a = std::fabs(static_cast<long double>(x));
  int low = 0;
  int high = Definition::kCodes;
  if (a >= Definition::value(high)) return Definition::kPastTheEnd;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (Definition::value(middle) <= a ? low : high) = middle;
  }
  const long double middle = Definition::value(low) + Definition::value(high);
  const bool up = 2 * a > middle || (2 * a == middle && low % 2 == 1);
  const int code = up ? high : low;
  return code == Definition::kCodes ? Definition::kPastTheEnd : code;
}

template <class Definition>
int expected_bits(double x) {
  return nearest<Definition>(x) + (std::signbit(x) ? Definition::kSign : 0);
}

template <class Definition>
void expect_rounding(double x) {
  using Type = typename Definition::Type;
  for (const double y : {x, -x}) {
    ASSERT_EQ(Type(y).bits, expected_bits<Definition>(y)) << std::hexfloat << y;
    const auto single = static_cast<float>(y);
    ASSERT_EQ(Type(single).bits, expected_bits<Definition>(single)) << std::hexfloat << single;
  }
}

template <class Definition>
class NarrowFormat : public ::testing::Test {};
using Definitions = ::testing::Types<HalfDefinition, Fp8Definition>;
TYPED_TEST_SUITE(NarrowFormat, Definitions);

TYPED_TEST(NarrowFormat, IsPlainStorage) {
  using Type = typename TypeParam::Type;
  EXPECT_EQ(sizeof(Type), sizeof(typename TypeParam::Bits));
  EXPECT_TRUE(std::is_trivially_copyable_v<Type>);
  EXPECT_EQ(Type{}.bits, 0);
}

TYPED_TEST(NarrowFormat, HasTheValueOfEachCodeAndComesBackFromIt) {
  using Type = typename TypeParam::Type;
  long double before = -1;
  for (int code = 0; code < TypeParam::kCodes; ++code) {
    const long double value = TypeParam::value(code);
    ASSERT_GT(value, before);
    before = value;
    for (const int sign : {0, TypeParam::kSign}) {
      const int bits = code + sign;
      const auto number = Type::from_bits(static_cast<typename TypeParam::Bits>(bits));
      const auto d = static_cast<double>(number);
      const auto f = static_cast<float>(number);
      ASSERT_EQ(static_cast<long double>(d), sign == 0 ? value : -value) << bits;
      ASSERT_EQ(static_cast<long double>(f), sign == 0 ? value : -value) << bits;
      ASSERT_EQ(std::signbit(d), sign != 0) << bits;
      ASSERT_EQ(std::signbit(f), sign != 0) << bits;
      ASSERT_EQ(Type(d).bits, bits);
      ASSERT_EQ(Type(f).bits, bits);
    }
  }
  EXPECT_EQ(before, static_cast<long double>(Type::kMax));
  EXPECT_EQ(TypeParam::value(1), static_cast<long double>(Type::kSmallest));
  EXPECT_EQ(Type(Type::kMin).bits, 1 << Type::kFraction);
}

TYPED_TEST(NarrowFormat, KeepsANanAndItsSign) {
  using Type = typename TypeParam::Type;
  int nans = 0;
  for (int bits = 0; bits < 2 * TypeParam::kSign; ++bits) {
    const auto number = Type::from_bits(static_cast<typename TypeParam::Bits>(bits));
    const auto d = static_cast<double>(number);
    const auto f = static_cast<float>(number);
    ASSERT_EQ(std::isnan(d), std::isnan(f)) << bits;
    if (!std::isnan(d)) continue;
    ++nans;
    ASSERT_EQ(std::signbit(d), bits >= TypeParam::kSign) << bits;
    for (const Type again : {Type(d), Type(f)}) {
      ASSERT_TRUE(std::isnan(static_cast<double>(again))) << bits;
      ASSERT_EQ(again.bits >= TypeParam::kSign, bits >= TypeParam::kSign) << bits;
    }
  }
  EXPECT_EQ(nans, sizeof(Type) == 2 ? 2 * 1023 : 2);
  // With a payload in the low bits only, which rounding must not take for an infinity.
  const double low = std::bit_cast<double>(0x7ff0000000000001ULL);
  EXPECT_TRUE(std::isnan(static_cast<double>(Type(low))));
  EXPECT_TRUE(std::isnan(static_cast<double>(Type(std::bit_cast<float>(0xff800001U)))));
}

TYPED_TEST(NarrowFormat, RoundsTiesToEvenAndTheirNeighboursToTheNearest) {
  for (int code = 0; code < TypeParam::kCodes; ++code) {
    const auto value = static_cast<double>(TypeParam::value(code));
    const auto tie = static_cast<double>((TypeParam::value(code) + TypeParam::value(code + 1)) / 2);
    for (const double x : {value, tie}) {
      expect_rounding<TypeParam>(x);
      expect_rounding<TypeParam>(std::nextafter(x, 0.0));
      expect_rounding<TypeParam>(std::nextafter(x, kInf));
      const auto single = static_cast<float>(x);
      expect_rounding<TypeParam>(std::nextafter(single, 0.0F));
      expect_rounding<TypeParam>(std::nextafter(single, std::numeric_limits<float>::infinity()));
    }
    ASSERT_EQ(typename TypeParam::Type(tie).bits % 2, 0) << tie;
  }
}

TYPED_TEST(NarrowFormat, RoundsRandomNumbersOfEveryMagnitude) {
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const double fraction = 1 + random_uniform(1, 3 * i);
    const int near = static_cast<int>(random_bits(2, 3 * i) % 50) - 30;
    const int far = static_cast<int>(random_bits(3, 3 * i) % 2100) - 1075;
    expect_rounding<TypeParam>(std::ldexp(fraction, near));
    expect_rounding<TypeParam>(std::ldexp(fraction, far));
    const double any = std::bit_cast<double>(random_bits(4, i));
    if (!std::isnan(any)) expect_rounding<TypeParam>(any);
    const float single = std::bit_cast<float>(static_cast<std::uint32_t>(random_bits(5, i)));
    if (!std::isnan(single)) expect_rounding<TypeParam>(static_cast<double>(single));
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(NarrowFormat, SaysWhatItCannotHold) {
  using Type = typename TypeParam::Type;
  const auto past = static_cast<double>(TypeParam::value(TypeParam::kCodes));
  const double tie = (Type::kMax + past) / 2;
  const bool even_is_past = TypeParam::kCodes % 2 == 0;
  for (const double sign : {1.0, -1.0}) {
    EXPECT_FALSE(Type::overflows(sign * Type::kMax));
    EXPECT_FALSE(Type::overflows(sign * std::nextafter(tie, 0.0)));
    EXPECT_EQ(Type::overflows(sign * tie), even_is_past);
    EXPECT_TRUE(Type::overflows(sign * std::nextafter(tie, kInf)));
    EXPECT_FALSE(
        Type::overflows(static_cast<float>(sign) * std::nextafter(static_cast<float>(tie), 0.0F)));
    EXPECT_EQ(Type::overflows(static_cast<float>(sign * tie)), even_is_past);
    EXPECT_TRUE(
        Type::overflows(static_cast<float>(sign) * std::nextafter(static_cast<float>(tie), 1e9F)));
    EXPECT_TRUE(Type::overflows(sign * 1e300));
    EXPECT_TRUE(Type::overflows(sign * kInf));
    EXPECT_FALSE(Type::overflows(sign * std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(Type::overflows(0 * sign));
  }
}

TEST(Half, TakesWhatIsTooLargeForInfinity) {
  EXPECT_EQ(Half(kInf).bits, 0x7c00);
  EXPECT_EQ(Half(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(Half(65520.0).bits, 0x7c00);
  EXPECT_EQ(Half(std::nextafter(65520.0, 0.0)).bits, 0x7bff);
  EXPECT_EQ(static_cast<double>(Half::from_bits(0x7c00)), kInf);
  EXPECT_EQ(static_cast<float>(Half::from_bits(0xfc00)), -std::numeric_limits<float>::infinity());
}

TEST(Half, RoundsADoubleOnce) {
  // By way of float this is a tie, which would go down to 1.
  EXPECT_EQ(static_cast<double>(Half(1 + 0x1p-11 + 0x1p-40)), 1 + 0x1p-10);
  EXPECT_EQ(static_cast<double>(Half(1 + 3 * 0x1p-11 - 0x1p-40)), 1 + 0x1p-10);
}

TEST(Fp8, SaturatesAtItsLargestNumber) {
  for (const double x : {448.0, 464.0, 465.0, 480.0, 512.0, 1e300, kInf}) {
    EXPECT_EQ(static_cast<double>(Fp8(x)), 448) << x;
    EXPECT_EQ(static_cast<double>(Fp8(-x)), -448) << x;
    EXPECT_EQ(static_cast<float>(Fp8(static_cast<float>(x))), 448) << x;
  }
  EXPECT_EQ(Fp8(std::numeric_limits<double>::quiet_NaN()).bits & 0x7f, 0x7f);
}

TEST(Half, AndFp8AreConstantExpressions) {
  static_assert(Half(1.0 / 3).bits == 0x3555);
  static_assert(static_cast<double>(Half::from_bits(1)) == 0x1p-24);
  static_assert(Fp8(-0.1F).bits == 0x9d);
  static_assert(static_cast<float>(Fp8::from_bits(0x7e)) == 448);
  EXPECT_EQ(static_cast<float>(Fp8(-0.1F)), -0.1015625F);
}

}  // namespace
}  // namespace strata
