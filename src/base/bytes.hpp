#pragma once
// Byte counts as people write and read them.
//
// Contract: binary units only (KiB = 1024). `parse_bytes` accepts what `format_bytes` prints.

#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

/// Bytes of "512MiB", "16 GiB", "1.5GiB" or "4096"; throws Error{misuse} that names `option`
/// otherwise.
[[nodiscard]] std::int64_t parse_bytes(std::string_view text, std::string_view option);

/// "1.50 GiB", "12.0 MiB", "640 B": three significant digits.
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

inline namespace literals {
constexpr std::int64_t operator""_KiB(unsigned long long value) {
  return static_cast<std::int64_t>(value) << 10;
}
constexpr std::int64_t operator""_MiB(unsigned long long value) {
  return static_cast<std::int64_t>(value) << 20;
}
constexpr std::int64_t operator""_GiB(unsigned long long value) {
  return static_cast<std::int64_t>(value) << 30;
}
}  // namespace literals

}  // namespace strata
