#pragma once
// Numbers and names in text files.
//
// Contract: numbers are read and written independently of the locale and without loss: what
// append_number writes, parse_number reads back bit for bit. Text that goes into a message goes
// through shown(), so that messages stay one valid UTF-8 line.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

/// The text, at most about 40 bytes of it, with control characters and invalid UTF-8 as \xNN.
[[nodiscard]] std::string shown(std::string_view text);

/// A finite number, or what is wrong with it ("is not a number").
struct ParsedNumber {
  double value = 0;
  const char* complaint = nullptr;  ///< nullptr: nothing
};

/// Reads a decimal number that fills `text`, up to blanks around it; its exponent may have a D, as
/// Fortran writes it. What is too small for a double is read as zero.
[[nodiscard]] ParsedNumber parse_number(std::string_view text);

/// Days since 1970-01-01, 00:00 UTC, of a date of the proleptic Gregorian calendar that fills
/// `text`: YYYY-MM-DD, with T or a blank and hh:mm, hh:mm:ss or hh:mm:ss.s behind it, and Z,
/// ±hh:mm, ±hhmm or ±hh behind that. Without a zone it is UTC. 24:00 is the end of the day; second
/// 60, which counts as the next minute, is for leap seconds: 23:59:60 UTC at the end of a month.
/// Nothing if it is none. (ISO 8601.)
[[nodiscard]] std::optional<double> parse_date(std::string_view text);

/// Whether the text says that there is no value: nothing, NA, N/A, #N/A, NaN, null (in any case) or
/// a point.
[[nodiscard]] bool is_missing(std::string_view text);

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// UTF-8, without a byte order mark in front, of a text in UTF-16 of either byte order, which is
/// known by its mark, or by the zero beside its first character; nothing if it is no such text.
/// Throws Error{input} that names `name` for half a pair of surrogates.
[[nodiscard]] std::optional<std::string> utf8_of_utf16(std::string_view bytes,
                                                       const std::string& name);

/// Reads a decimal integer that fills `text`; nothing if it is none or needs more than 64 bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Appends the shortest decimal number that reads back as `value`, in its type.
void append_number(std::string& out, double value);
void append_number(std::string& out, float value);

/// Without blanks (space and tab) at both ends.
[[nodiscard]] std::string_view trim(std::string_view text);

/// Walks through the lines of a text; a line ends in LF, CRLF or with the text.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  /// False at the end of the text.
  [[nodiscard]] bool next(std::string_view& line);
  /// The number of the line that next() gave last, from 1.
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }
  /// Bytes that next() has not given yet.
  [[nodiscard]] std::int64_t bytes_left() const noexcept {
    return static_cast<std::int64_t>(rest_.size());
  }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

/// Takes the first blank-separated word off `line`; empty if there is none.
[[nodiscard]] std::string_view take_word(std::string_view& line);

}  // namespace strata
