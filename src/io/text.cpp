#include "io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

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
  if (status == std::errc::invalid_argument || rest != end) return {0, "is not a number"};
  if (status == std::errc::result_out_of_range) return out_of_range(text);
  if (std::isfinite(number.value)) return number;
  // A name of infinity or NaN has letters where a number that overflowed has digits.
  const bool has_digit = text.find_first_of("0123456789") != std::string_view::npos;
  return {0, has_digit ? "is too large for a double" : "is not a finite number"};
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
