#pragma once
// Text for people: escaped, with digit groups, a real minus sign, and units.

#include <cstdint>
#include <string>
#include <string_view>

namespace strata::page {

/// Text that is safe as HTML content and inside a quoted attribute. Bytes that are not UTF-8, and
/// control characters, become U+FFFD.
[[nodiscard]] std::string escape(std::string_view text);

/// "1,720".
[[nodiscard]] std::string count_text(std::int64_t value);
/// `digits` significant digits: "−7,891", "0.1834", "3.2×10⁻⁷"; "–" if not finite.
[[nodiscard]] std::string number_text(double value, int digits = 4);
/// A fixed number of decimals with digit groups: "−7,891.25".
[[nodiscard]] std::string fixed_text(double value, int decimals);
/// "12.3 s", "4.56 ms", "3 min 20 s", "2 h 05 min".
[[nodiscard]] std::string seconds_text(double seconds);
/// "41.2 Tflop", "3.00 Gflop/s": decimal prefixes in front of `unit`.
[[nodiscard]] std::string rate_text(double value, std::string_view unit);
/// "97 %", "2.4 %".
[[nodiscard]] std::string percent_text(double share);
/// value + " " + escaped unit, without the space if there is no unit.
[[nodiscard]] std::string with_unit(const std::string& value, std::string_view unit);
/// "1 point", "2 points".
[[nodiscard]] std::string plural(std::int64_t value, std::string_view noun);

}  // namespace strata::page
