#include "io/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::size_t kShownBytes = 40;

bool is_between(unsigned char byte, int low, int high) { return byte >= low && byte <= high; }

// Length of the well-formed UTF-8 sequence at the front of `text`, 0 if there is none. The ranges
// are those of the Unicode standard, table 3-7: no overlong form, no surrogate, nothing past
// U+10FFFF.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = is_between(lead, 0xC2, 0xDF)   ? 2
                             : is_between(lead, 0xE0, 0xEF) ? 3
                             : is_between(lead, 0xF0, 0xF4) ? 4
                                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  const int low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const int high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (!is_between(byte(1), low, high)) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!is_between(byte(i), 0x80, 0xBF)) return 0;
  }
  return length;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number that from_chars refused for its size: too small is zero, too large is a complaint. It is
// too small if its first significant digit stands behind the point once the exponent is applied.
ParsedNumber out_of_range(std::string_view text) {
  const std::size_t mark = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, mark);
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return {0, nullptr};
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  double magnitude = static_cast<double>(point) - static_cast<double>(first);
  if (mark != std::string_view::npos) {
    std::string_view digits = text.substr(mark + 1);
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    double exponent = 0;
    for (const char c : digits) exponent = 10 * exponent + (c - '0');
    magnitude += negative ? -exponent : exponent;
  }
  if (magnitude < 0) return {text.starts_with('-') ? -0.0 : 0.0, nullptr};
  return {0, "is too large for a double"};
}

template <class T>
void append_shortest(std::string& out, T value) {
  std::array<char, 32> digits{};
  const auto [end, status] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty() && out.size() < kShownBytes) {
    const std::size_t length = utf8_length(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    if (length == 0 || lead < 0x20 || lead == 0x7F) {
      out += fmt::format("\\x{:02x}", lead);
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  if (!text.empty()) out += "...";
  return out;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

ParsedNumber parse_number(std::string_view text) {
  text = trim(text);
  // from_chars takes no plus sign, which people and programs do write.
  if (text.size() > 1 && text[0] == '+' && (is_digit(text[1]) || text[1] == '.')) {
    text.remove_prefix(1);
  }
  ParsedNumber number;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, number.value);
  if (status != std::errc::invalid_argument && rest != end && (*rest == 'D' || *rest == 'd')) {
    std::string with_e(text);
    with_e[static_cast<std::size_t>(rest - text.data())] = 'e';
    return parse_number(with_e);
  }
  if (status == std::errc::invalid_argument || rest != end) return {0, "is not a number"};
  if (status == std::errc::result_out_of_range) return out_of_range(text);
  if (std::isfinite(number.value)) return number;
  // A name of infinity or NaN has letters where a number that overflowed has digits.
  const bool has_digit = text.find_first_of("0123456789") != std::string_view::npos;
  return {0, has_digit ? "is too large for a double" : "is not a finite number"};
}

namespace {

// Takes digits, as many as asked for, off the front; −1: there are not as many.
int take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return -1;
  int value = 0;
  for (const char c : text.substr(0, count)) {
    if (!is_digit(c)) return -1;
    value = 10 * value + (c - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take_symbol(std::string_view& text, char symbol) {
  if (!text.starts_with(symbol)) return false;
  text.remove_prefix(1);
  return true;
}

// Days since 1970-01-01; nothing for a day that is not in the calendar. (Hinnant,
// "chrono-compatible low-level date algorithms".)
std::optional<std::int64_t> take_day(std::string_view& text) {
  const int year = take_digits(text, 4);
  const bool first = take_symbol(text, '-');
  const int month = take_digits(text, 2);
  const bool second = take_symbol(text, '-');
  const int day = take_digits(text, 2);
  if (year < 0 || !first || month < 1 || month > 12 || !second || day < 1) return std::nullopt;
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  constexpr std::array<int, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (day > kDays[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0))
    return std::nullopt;
  const std::int64_t y = year - (month <= 2 ? 1 : 0);  // years begin in March
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t of_era = y - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

// Seconds since midnight behind T or a blank: 24:00 is the end of the day, and second 60 may be a
// leap second.
std::optional<double> take_clock(std::string_view& text) {
  const int hour = take_digits(text, 2);
  const bool first = take_symbol(text, ':');
  const int minute = take_digits(text, 2);
  if (hour < 0 || hour > 24 || !first || minute < 0 || minute > 59) return std::nullopt;
  double second = 0;
  if (take_symbol(text, ':')) {
    std::size_t length = std::min(text.find_first_not_of("0123456789."), text.size());
    const bool shaped = length == 2 || (length > 3 && text[2] == '.');
    const ParsedNumber number = parse_number(text.substr(0, length));
    if (!shaped || number.complaint != nullptr || number.value >= 61) return std::nullopt;
    second = number.value;
    text.remove_prefix(length);
  }
  if (hour == 24 && (minute > 0 || second > 0)) return std::nullopt;
  return hour * 3600.0 + minute * 60.0 + second;
}

// Whether second 60, which is counted as the next minute, can be a leap second: those are inserted
// behind 23:59:59 UTC at the end of a month (ITU-R TF.460). `seconds` since midnight, UTC, of
// `day`.
bool is_leap_second(std::int64_t day, double seconds) {
  const double days = std::floor(seconds / 86400);
  const std::chrono::sys_days next{std::chrono::days{day + static_cast<std::int64_t>(days)}};
  return seconds - 86400 * days < 1 &&
         std::chrono::year_month_day{next}.day() == std::chrono::day{1};
}

// Seconds by which the clock of a zone is ahead of UTC.
std::optional<double> take_zone(std::string_view& text) {
  if (text.empty() || take_symbol(text, 'Z') || take_symbol(text, 'z')) return 0.0;
  const bool west = text.starts_with('-');
  if (!take_symbol(text, '-') && !take_symbol(text, '+')) return std::nullopt;
  const int hour = take_digits(text, 2);
  const bool colon = take_symbol(text, ':');
  const int minute = text.empty() && !colon ? 0 : take_digits(text, 2);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59) return std::nullopt;
  return (west ? -60.0 : 60.0) * (60 * hour + minute);
}

}  // namespace

std::optional<double> parse_date(std::string_view text) {
  text = trim(text);
  const std::optional<std::int64_t> day = take_day(text);
  if (!day) return std::nullopt;
  if (text.empty()) return static_cast<double>(*day);
  if (!take_symbol(text, 'T') && !take_symbol(text, 't') && !take_symbol(text, ' '))
    return std::nullopt;
  // hh:mm:60
  const bool sixty = text.size() >= 8 && text.substr(5).starts_with(":60");
  const std::optional<double> clock = take_clock(text);
  if (!clock) return std::nullopt;
  const std::optional<double> zone = take_zone(text);
  if (!zone || !text.empty()) return std::nullopt;
  if (sixty && !is_leap_second(*day, *clock - *zone)) return std::nullopt;
  return static_cast<double>(*day) + (*clock - *zone) / 86400;
}

bool is_missing(std::string_view text) {
  text = trim(text);
  constexpr std::size_t kLongest = 4;
  if (text.empty() || text == ".") return true;
  if (text.size() > kLongest) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower == "na" || lower == "n/a" || lower == "#n/a" || lower == "nan" || lower == "null";
}

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

}  // namespace

std::optional<std::string> utf8_of_utf16(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 2) return std::nullopt;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const bool little_mark = byte(0) == 0xFF && byte(1) == 0xFE;
  const bool big_mark = byte(0) == 0xFE && byte(1) == 0xFF;
  const bool little = little_mark || (byte(0) != 0 && byte(1) == 0);
  if (!little && !big_mark && !(byte(0) == 0 && byte(1) != 0)) return std::nullopt;
  const auto unit = [&](std::size_t i) {
    return std::uint32_t{little ? byte(i) : byte(i + 1)} |
           std::uint32_t{little ? byte(i + 1) : byte(i)} << 8;
  };
  const auto broken = [&](std::size_t at) {
    fail(ErrorKind::input, "text", "{}: is UTF-16, and broken at byte {}", name, at);
  };
  std::string out;
  out.reserve(bytes.size() / 2);
  if (bytes.size() % 2 != 0) broken(bytes.size() - 1);
  for (std::size_t i = little_mark || big_mark ? 2 : 0; i < bytes.size(); i += 2) {
    std::uint32_t code = unit(i);
    if (code >= 0xD800 && code < 0xE000) {
      const std::uint32_t low = i + 2 < bytes.size() ? unit(i + 2) : 0;
      if (code >= 0xDC00 || low < 0xDC00 || low >= 0xE000) broken(i);
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      i += 2;
    }
    append_utf8(out, code);
  }
  return out;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc{} || rest != end) return std::nullopt;
  return value;
}

void append_number(std::string& out, double value) { append_shortest(out, value); }
void append_number(std::string& out, float value) { append_shortest(out, value); }

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

}  // namespace strata
