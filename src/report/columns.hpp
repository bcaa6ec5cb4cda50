#pragma once
// Columns of numbers as short text: what the page's script decodes.
//
// Contract: a quantized column is {"lo", "hi", "q"}; q is the base64 of little-endian 16-bit codes,
// value = lo + (hi − lo)·code / 65534, and code 65535 means missing (NaN, ±infinity). The error is
// at most (hi − lo) / 131068. Raw columns are the base64 of little-endian 8- or 32-bit words.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace strata::page {

[[nodiscard]] Json quantized(const std::vector<double>& values);

[[nodiscard]] std::string base64(const std::vector<std::uint8_t>& bytes);
[[nodiscard]] std::string base64(const std::vector<std::uint32_t>& words);
[[nodiscard]] std::string base64(const std::vector<float>& words);

/// Smallest and largest finite value; {0, 0} if there is none.
[[nodiscard]] std::pair<double, double> finite_range(const std::vector<double>& values);

}  // namespace strata::page
