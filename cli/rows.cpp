// Numbers of rows, as options and files have them.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

constexpr std::string_view kSeparators = ", \t\r\n";
constexpr std::int64_t kRowsMax = std::int64_t{1} << 31;  // numbers of rows have 32 bits

/// A word as a message can show it: files that are no text hold anything, zeros too.
std::string shown(std::string_view word) {
  std::string text(word.substr(0, 40));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return text;
}

}  // namespace

std::vector<std::int64_t> parse_rows(std::string_view text, const std::string& source,
                                     ErrorKind kind) {
  std::vector<std::int64_t> rows;
  for (std::size_t from = text.find_first_not_of(kSeparators); from != std::string_view::npos;) {
    const std::size_t to = std::min(text.find_first_of(kSeparators, from), text.size());
    const std::string_view word = text.substr(from, to - from);
    std::int64_t row = -1;
    const auto [rest, status] = std::from_chars(word.data(), word.data() + word.size(), row);
    require(
        status == std::errc{} && rest == word.data() + word.size() && row >= 0 && row < kRowsMax,
        kind, "rows", "{}: '{}' is no number of a row", source, shown(word));
    rows.push_back(row);
    from = text.find_first_not_of(kSeparators, to);
  }
  return rows;
}

std::vector<std::int64_t> read_rows(const std::string& path) {
  if (!is_called(path, ".npy") && !is_called(path, ".mtx"))
    return parse_rows(InputFile(path, "rows").read_all(), path, ErrorKind::input);
  const DenseMatrix<double> dense = read_dense(path);
  std::vector<std::int64_t> rows;
  rows.reserve(dense.values.size());
  for (const double value : dense.values) {
    require(value >= 0 && value < static_cast<double>(kRowsMax) && value == std::floor(value),
            ErrorKind::input, "rows", "{}: element {} is {}, which is no number of a row", path,
            rows.size(), value);
    rows.push_back(static_cast<std::int64_t>(value));
  }
  return rows;
}

}  // namespace strata::cli
