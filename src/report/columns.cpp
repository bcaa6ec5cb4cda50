// Quantization to 16 bits and base64 (RFC 4648, section 4). A colour has 8 bits and a screen a few
// thousand pixels, so 16 bits lose nothing that could be seen, at a third of the size of digits.

#include "report/columns.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "base/json.hpp"

namespace strata::page {
namespace {

constexpr double kLevels = 65534;
constexpr std::uint16_t kMissing = 65535;

void append(std::vector<std::uint8_t>& bytes, std::uint32_t word, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
}

}  // namespace

std::pair<double, double> finite_range(const std::vector<double>& values) {
  bool any = false;
  double lo = 0;
  double hi = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    lo = any ? std::min(lo, value) : value;
    hi = any ? std::max(hi, value) : value;
    any = true;
  }
  return {lo, hi};
}

Json quantized(const std::vector<double>& values) {
  const auto [lo, hi] = finite_range(values);
  // Halves, so that a range of nearly ±1e308 does not overflow.
  const double half = hi / 2 - lo / 2;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(2 * values.size());
  for (const double value : values) {
    std::uint16_t code = kMissing;
    if (std::isfinite(value)) {
      const double share = half > 0 ? (value / 2 - lo / 2) / half : 0;
      code = static_cast<std::uint16_t>(std::lround(std::clamp(share, 0.0, 1.0) * kLevels));
    }
    append(bytes, code, 2);
  }
  return {{"lo", lo}, {"hi", hi}, {"q", base64(bytes)}};
}

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? bytes[i + k] : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? alphabet[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

std::string base64(const std::vector<std::uint32_t>& words) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(4 * words.size());
  for (const std::uint32_t word : words) append(bytes, word, 4);
  return base64(bytes);
}

std::string base64(const std::vector<float>& words) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(4 * words.size());
  for (const float word : words) append(bytes, std::bit_cast<std::uint32_t>(word), 4);
  return base64(bytes);
}

}  // namespace strata::page
