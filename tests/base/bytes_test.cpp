// Byte counts: what is printed can be read, and nothing else can.

#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "strata/error.hpp"

namespace strata {
namespace {

using namespace literals;

TEST(ParseBytes, ReadsUnits) {
  const std::vector<std::pair<const char*, std::int64_t>> cases{
      {"0", 0},
      {"4096", 4096},
      {"4096B", 4096},
      {"1KiB", 1024},
      {"1 KiB", 1024},
      {"512MiB", 536'870'912},
      {"16 GiB", 17'179'869'184},
      {"1.5GiB", 1'610'612'736},
      {"2TiB", 2'199'023'255'552},
      {"7G", 7'516'192'768},
      {"0.5KiB", 512},
      {"1e3", 1000},
  };
  for (const auto& [text, bytes] : cases) EXPECT_EQ(parse_bytes(text, "--memory"), bytes) << text;
}

TEST(ParseBytes, RefusesOtherTextAndNamesOptionAndValue) {
  for (const char* text :
       {"",       " ",          "MiB",   "B",      "-1",    "-1GiB", "12 parsecs",
        "1MB",    "1mib",       "1MiBs", "1 M iB", "nan",   "inf",   "1e400",
        "9.3e18", "8388608TiB", "0x10",  "1,5GiB", " 1MiB", "1MiB ", "--"}) {
    try {
      (void)parse_bytes(text, "--device-memory");
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      const std::string message = error.what();
      EXPECT_NE(message.find("--device-memory"), std::string::npos) << message;
      EXPECT_NE(message.find("'" + std::string(text) + "'"), std::string::npos) << message;
    }
  }
}

TEST(FormatBytes, HasThreeSignificantDigits) {
  const std::vector<std::pair<std::int64_t, const char*>> cases{
      {0, "0 B"},
      {640, "640 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {1536, "1.50 KiB"},
      {10'230, "9.99 KiB"},
      {10'239, "10.0 KiB"},  // 9.999 rounds up
      {12_MiB, "12.0 MiB"},
      {102'399, "100 KiB"},  // 99.999 rounds up
      {100_GiB, "100 GiB"},
      {3'221'225'472, "3.00 GiB"},
      {5LL << 40, "5.00 TiB"},
      {2000LL << 40, "2000 TiB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(format_bytes(bytes), text) << bytes;
}

TEST(FormatBytes, IsReadBackWithinItsPrecision) {
  for (int shift = 0; shift < 50; ++shift) {
    for (const std::int64_t odd : {1, 3, 5, 7, 999, 1001}) {
      const std::int64_t bytes = odd << shift;
      const std::int64_t back = parse_bytes(format_bytes(bytes), "x");
      // Half a unit of the third digit: at most 0.5 % of the value.
      EXPECT_LE(std::abs(static_cast<double>(back - bytes)), 0.005 * static_cast<double>(bytes))
          << bytes;
      if (bytes < 1024) {
        EXPECT_EQ(back, bytes);
      }
    }
  }
}

TEST(Literals, AreBinary) {
  EXPECT_EQ(3_KiB, 3072);
  EXPECT_EQ(1_MiB, 1024 * 1024);
  EXPECT_EQ(64_GiB, 68'719'476'736);
}

}  // namespace
}  // namespace strata
