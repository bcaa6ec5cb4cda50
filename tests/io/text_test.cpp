#include "io/text.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace strata {
namespace {

TEST(Text, ReadsNumbers) {
  const struct {
    const char* text;
    double value;
  } cases[] = {{"0", 0},
               {"-0.0", -0.0},
               {"+3.5", 3.5},
               {"+.5", 0.5},
               {".13025210084033612", .13025210084033612},
               {"5.", 5},
               {"1e3", 1000},
               {"-2.5E-3", -0.0025},
               {"  7\t", 7},
               {"1.7976931348623157e308", std::numeric_limits<double>::max()},
               {"4.9406564584124654e-324", std::numeric_limits<double>::denorm_min()},
               {"1e-400", 0},
               {"-0.000000001e-400", -0.0},
               {"0e999999999999999999999", 0},
               {"1e-999999999999999999999", 0}};
  for (const auto& c : cases) {
    const ParsedNumber number = parse_number(c.text);
    EXPECT_EQ(number.complaint, nullptr) << c.text;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(number.value), std::bit_cast<std::uint64_t>(c.value))
        << c.text << " read as " << number.value;
  }
}

TEST(Text, RefusesWhatIsNoFiniteNumber) {
  const struct {
    const char* text;
    const char* complaint;
  } cases[] = {{"", "is not a number"},
               {"abc", "is not a number"},
               {"1.5x", "is not a number"},
               {"1 2", "is not a number"},
               {"1,5", "is not a number"},
               {"0x10", "is not a number"},
               {"--1", "is not a number"},
               {"+-1", "is not a number"},
               {"+", "is not a number"},
               {"+nan", "is not a number"},
               {"1.0D+00", "is not a number"},
               {"NA", "is not a number"},
               {"nan", "is not a finite number"},
               {"NaN", "is not a finite number"},
               {"-inf", "is not a finite number"},
               {"Infinity", "is not a finite number"},
               {"1e309", "is too large for a double"},
               {"-1e999999999999999999999", "is too large for a double"},
               {"0.0001e400", "is too large for a double"}};
  for (const auto& c : cases) EXPECT_STREQ(parse_number(c.text).complaint, c.complaint) << c.text;
}

TEST(Text, ReadsBackWhatItWrites) {
  for (std::uint64_t k = 0; k < 20'000; ++k) {
    const auto value = std::bit_cast<double>(random_bits(7, k));
    if (!std::isfinite(value)) continue;
    std::string text;
    append_number(text, value);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(parse_number(text).value), random_bits(7, k)) << text;
  }
}

TEST(Text, WritesNoMoreDigitsThanAFloatHas) {
  for (std::uint64_t k = 0; k < 20'000; ++k) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random_bits(8, k)));
    if (!std::isfinite(value)) continue;
    std::string text;
    append_number(text, value);
    EXPECT_EQ(static_cast<float>(parse_number(text).value), value) << text;
    // A sign, nine digits with a point, and an exponent of two; the shortest form at that.
    EXPECT_LE(text.size(), 15U) << text;
  }
  std::string text;
  append_number(text, 0.1F);
  EXPECT_EQ(text, "0.1");
}

TEST(Text, ReadsIntegers) {
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_integer("-3"), -3);
  for (const char* text : {"", "9223372036854775808", "1.0", " 1", "1e3", "0x1"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(Text, ShowsAnythingAsOneLineOfUtf8) {
  EXPECT_EQ(shown("höhe"), "höhe");
  EXPECT_EQ(shown("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(shown(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(shown("\xff\xc0\x80"), "\\xff\\xc0\\x80");  // never valid; overlong
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(shown("\xf0\x9f\x98\x80\xf4\x90\x80\x80"), "\xf0\x9f\x98\x80\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(shown("\xe2\x82"), "\\xe2\\x82");  // cut off
  EXPECT_EQ(shown(std::string(41, 'x')), std::string(40, 'x') + "...");
}

TEST(Text, WalksLinesAndWords) {
  Lines lines("a b\r\n\n  c\td ");
  std::string_view line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "a b");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(lines.number(), 3);
  EXPECT_EQ(take_word(line), "c");
  EXPECT_EQ(take_word(line), "d");
  EXPECT_EQ(take_word(line), "");
  EXPECT_FALSE(lines.next(line));
}

}  // namespace
}  // namespace strata
