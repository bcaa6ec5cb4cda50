#include "io/text.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "scratch.hpp"

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
               {"4.0D+00", 4},
               {"-2.5d-3", -0.0025},
               {"1D2", 100},
               {"1d-400", 0},
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

TEST(Text, RefusesOtherExponents) {
  for (const char* text : {"D", "1D", "1D+", "1d2d3", "1e2D3", "Dogs", "1D2.5", "0x1p3"})
    EXPECT_NE(parse_number(text).complaint, nullptr) << text;
  EXPECT_STREQ(parse_number("1D999").complaint, "is too large for a double");
}

// Against the calendar of the standard library, all days of eight centuries.
TEST(Text, ReadsDates) {
  using namespace std::chrono;
  for (sys_days day = sys_days(year{1600} / 1 / 1); day < sys_days(year{2400} / 1 / 1);
       day += days{1}) {
    const year_month_day date(day);
    const std::string text = fmt::format("{:04}-{:02}-{:02}", int(date.year()),
                                         unsigned(date.month()), unsigned(date.day()));
    ASSERT_EQ(parse_date(text), static_cast<double>(day.time_since_epoch().count())) << text;
  }
  const struct {
    const char* text;
    double seconds;  // since 1970-01-01
  } cases[] = {{" 1970-01-02 ", 86400},
               {"1970-01-01T00:00", 0},
               {"1970-01-01 06:30", 23400},
               {"1970-01-01T06:30:15Z", 23415},
               {"1970-01-01t06:30:15.25z", 23415.25},
               {"1970-01-01T06:30:00+02:00", 16200},
               {"1970-01-01T06:30-0130", 28800},
               {"1970-01-01T06:30+05", 5400},
               {"1970-01-01T24:00", 86400},
               {"1970-01-01T24:00:00", 86400},
               {"1970-12-31T24:00:00+01:00", 31532400},
               {"2016-12-31T23:59:60Z", 1483228800},
               {"2016-12-31T23:59:60.5Z", 1483228800.5},
               {"2017-01-01T00:59:60+01:00", 1483228800},
               {"2016-12-31T15:59:60-0800", 1483228800},
               {"1969-12-31T12:00", -43200}};
  for (const auto& c : cases) EXPECT_EQ(parse_date(c.text), c.seconds / 86400) << c.text;
  for (const char* text : {"",
                           "1970",
                           "1970-01",
                           "1970-13-01",
                           "1970-00-01",
                           "1970-02-29",
                           "1900-02-29",
                           "1970-01-32",
                           "1970-1-1",
                           "70-01-01",
                           "1970/01/01",
                           "01.01.1970",
                           "1970-01-01T",
                           "1970-01-01T6:30",
                           "1970-01-01T06",
                           "1970-01-01T25:00",
                           "1970-01-01T24:01",
                           "1970-01-01T24:00:01",
                           "1970-01-01T24:00:60",
                           "2016-12-31T23:58:60Z",
                           "2016-12-30T23:59:60Z",
                           "2016-12-31T23:59:60+01:00",
                           "1970-01-01T06:60",
                           "1970-01-01T06:30:61",
                           "1970-01-01T06:30:1",
                           "1970-01-01T06:30:15x",
                           "1970-01-01T06:30+",
                           "1970-01-01T06:30+2",
                           "1970-01-01x",
                           "1970-01-01T06:30:15.",
                           "-1970-01-01",
                           "1.5"})
    EXPECT_EQ(parse_date(text), std::nullopt) << text;
}

TEST(Text, KnowsWhatIsNoValue) {
  for (const char* text :
       {"", "  ", "\t", "NA", "na", "N/A", "#N/A", "NaN", "nan", "NULL", "null", ".", " NA "})
    EXPECT_TRUE(is_missing(text)) << text;
  for (const char* text : {"0", "-", "..", "inf", "nano", "N A", "none", "?", "NA NA"})
    EXPECT_FALSE(is_missing(text)) << text;
}

/// Every code point, by the definition of UTF-16: units of 16 bits.
TEST(Text, ReadsUtf16) {
  const auto units_of = [](std::uint32_t code) {
    std::vector<std::uint16_t> units;
    if (code < 0x10000) return std::vector<std::uint16_t>{static_cast<std::uint16_t>(code)};
    units.push_back(static_cast<std::uint16_t>(0xD800 + (code - 0x10000) / 1024));
    units.push_back(static_cast<std::uint16_t>(0xDC00 + (code - 0x10000) % 1024));
    return units;
  };
  const auto bytes_of = [](const std::vector<std::uint16_t>& units, bool little) {
    std::string bytes;
    for (const std::uint16_t unit : units) {
      const char low = static_cast<char>(unit & 0xFF);
      const char high = static_cast<char>(unit >> 8);
      bytes += little ? low : high;
      bytes += little ? high : low;
    }
    return bytes;
  };
  const std::u32string text = U"x;y \u00e9\u4e2d\U0001F600\U0010FFFF\uD7FF\uE000";
  const std::string expected = "x;y \u00e9\u4e2d\U0001F600\U0010FFFF\xED\x9F\xBF\xEE\x80\x80";
  for (const bool little : {true, false}) {
    for (const bool mark : {true, false}) {
      std::vector<std::uint16_t> units;
      if (mark) units.push_back(0xFEFF);
      for (const char32_t c : text)
        for (const std::uint16_t unit : units_of(c)) units.push_back(unit);
      EXPECT_EQ(utf8_of_utf16(bytes_of(units, little), "t.csv"), expected);
    }
    for (const std::vector<std::uint16_t>& broken : std::vector<std::vector<std::uint16_t>>{
             {0xFEFF, 'x', 0xD800}, {0xFEFF, 0xDC00}, {0xFEFF, 0xD800, 'x'}})
      test::expect_error(ErrorKind::input, {"t.csv", "UTF-16", "byte"},
                         [&] { (void)utf8_of_utf16(bytes_of(broken, little), "t.csv"); });
  }
  test::expect_error(ErrorKind::input, {"byte 4"},
                     [] { (void)utf8_of_utf16(std::string_view("\xFF\xFEx\0y", 5), "t.csv"); });
  for (const char* other : {"", "x", "x,y\n", "\xEF\xBB\xBFx,y\n", "%%MatrixMarket"})
    EXPECT_EQ(utf8_of_utf16(other, "t.csv"), std::nullopt);
}

}  // namespace
}  // namespace strata
