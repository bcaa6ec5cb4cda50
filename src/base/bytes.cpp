#include "base/bytes.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace strata {
namespace {

struct Unit {
  std::string_view name;
  int shift;
};

constexpr std::array<Unit, 5> kUnits{
    {{"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};

}  // namespace

std::int64_t parse_bytes(std::string_view text, std::string_view option) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [rest, status] = std::from_chars(text.data(), end, value);
  while (rest != end && std::isspace(static_cast<unsigned char>(*rest)) != 0) ++rest;
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  int shift = -1;
  for (const Unit& unit : kUnits) {
    if (suffix == unit.name || suffix == unit.name.substr(0, 1)) shift = unit.shift;
  }
  if (suffix.empty()) shift = 0;
  const double bytes = shift < 0 ? -1 : std::ldexp(value, shift);
  require(status == std::errc{} && bytes >= 0 &&
              bytes < static_cast<double>(std::numeric_limits<std::int64_t>::max()),
          ErrorKind::misuse, "options", "{}: '{}' is not a size such as 512MiB or 16GiB", option,
          text);
  return static_cast<std::int64_t>(bytes);
}

std::string format_bytes(std::int64_t bytes) {
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && std::abs(bytes) >> kUnits[unit + 1].shift != 0) ++unit;
  if (unit == 0) return fmt::format("{} B", bytes);
  const double value = std::ldexp(static_cast<double>(bytes), -kUnits[unit].shift);
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;  // as it will be rounded
  return fmt::format("{:.{}f} {}", value, digits, kUnits[unit].name);
}

}  // namespace strata
