// Text for people. Minus is U+2212 and thousands are grouped by commas, as in the rest of the page.

#include "report/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace strata::page {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kMinus = "\xE2\x88\x92";

/// Bytes of the well-formed UTF-8 sequence that begins at `text[0]`; 0 if there is none (Unicode
/// 15, table 3-7: the second byte's range depends on the first).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto tail = [&](std::size_t i) { return byte(i) >= 0x80U && byte(i) <= 0xBFU; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return tail(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    const unsigned low = first == 0xE0U ? 0xA0U : 0x80U;
    const unsigned high = first == 0xEDU ? 0x9FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    const unsigned low = first == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = first == 0xF4U ? 0x8FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

/// Puts digit groups and the minus sign into plain digits such as "-12345.67".
std::string grouped(std::string_view plain) {
  const bool negative = !plain.empty() && plain.front() == '-';
  if (negative) plain.remove_prefix(1);
  const std::size_t whole = std::min(plain.find('.'), plain.size());
  std::string text;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) text += ',';
    text += plain[i];
  }
  const bool zero = plain.find_first_not_of("0.") == std::string_view::npos;
  return negative && !zero ? std::string(kMinus) + text : text;
}

std::string superscript(int exponent) {
  constexpr std::array<std::string_view, 10> digits{"⁰", "¹", "²", "³", "⁴",
                                                    "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(exponent))) {
    text += digits[static_cast<std::size_t>(digit - '0')];
  }
  return text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text.front();
    const bool control = static_cast<unsigned char>(c) < 0x20U && c != '\n' && c != '\t';
    if (length == 0 || control || c == '\x7f') {
      out += kReplacement;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string count_text(std::int64_t value) { return grouped(std::to_string(value)); }

std::string number_text(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  if (value == 0) return "0";
  // Rounding may carry into the next decade (9.9996 → 10.00), so ask the formatter for it.
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const std::size_t mark = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(mark + 1));
  if (exponent < -4 || exponent > 8) {
    return grouped(scientific.substr(0, mark)) + "×10" + superscript(exponent);
  }
  return fixed_text(value, std::max(0, digits - 1 - exponent));
}

std::string fixed_text(double value, int decimals) {
  if (!std::isfinite(value)) return "–";
  return grouped(fmt::format("{:.{}f}", value, decimals));
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "–";
  if (seconds <= 0) return "0 s";
  if (seconds < 1e-3) return number_text(seconds * 1e6, 3) + " µs";
  if (seconds < 1) return number_text(seconds * 1e3, 3) + " ms";
  if (seconds < 120) return number_text(seconds, 3) + " s";
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e15)));
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", count_text(whole / 3600), whole % 3600 / 60);
}

std::string rate_text(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};
  if (!std::isfinite(value)) return "–";
  std::size_t prefix = 0;
  while (prefix + 1 < prefixes.size() && std::abs(value) >= 999.5) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{} {}{}", number_text(value, 3), prefixes[prefix], unit);
}

std::string percent_text(double share) {
  if (!std::isfinite(share)) return "–";
  if (share > 0 && share < 0.0005) return "under 0.1 %";
  const double percent = 100 * share;
  const bool round = percent == std::floor(percent) || percent >= 99.95;
  return fixed_text(percent, round ? 0 : 1) + " %";
}

std::string with_unit(const std::string& value, std::string_view unit) {
  return unit.empty() ? value : value + " " + escape(unit);
}

std::string plural(std::int64_t value, std::string_view noun) {
  return fmt::format("{} {}{}", count_text(value), noun, value == 1 ? "" : "s");
}

}  // namespace strata::page
