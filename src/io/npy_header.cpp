// Method: the header of a .npy file is the text of a Python dictionary with the three keys descr,
// fortran_order and shape. It is read by a small parser for just that: strings, the two truth
// values and a tuple of integers. Source: NumPy Enhancement Proposal 1 and numpy.lib.format.

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "io/npy.hpp"
#include "io/text.hpp"

namespace strata {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

// Walks through the dictionary's text. Every take_… skips blanks first.
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  [[nodiscard]] bool take(char symbol) {
    skip_blanks();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char symbol) {
    if (!take(symbol)) fail_here(fmt::format("'{}' expected", symbol));
  }
  [[nodiscard]] std::string_view take_string() {
    const char quote = take('"') ? '"' : '\'';
    if (quote == '\'') expect(quote);
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail_here("an open quote");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  [[nodiscard]] bool take_truth() {
    for (const std::string_view word : {"True", "False"}) {
      skip_blanks();
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    fail_here("True or False expected");
  }
  // A tuple of extents: "(3, 4)", "(3,)" or "()". Python 2 wrote some integers with an L behind.
  [[nodiscard]] std::vector<std::int64_t> take_tuple() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      const std::optional<std::int64_t> extent = parse_integer(rest_.substr(0, end));
      if (!extent) fail_here("an extent between 0 and 2^63 - 1 expected");
      rest_.remove_prefix(end);
      if (rest_.starts_with('L')) rest_.remove_prefix(1);
      extents.push_back(*extent);
      if (take(',')) continue;
      expect(')');
      break;
    }
    return extents;
  }
  void expect_end() {
    skip_blanks();
    if (!rest_.empty()) fail_here("nothing more expected");
  }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  [[noreturn]] void fail_here(const std::string& complaint) const {
    fail(ErrorKind::input, "npy", "{}: bad .npy header: {} at '{}'", name_, complaint,
         shown(rest_));
  }

  std::string_view rest_;
  const std::string& name_;
};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

void set_element_type(NpyHeader& header, std::string_view descr, const std::string& name) {
  // The types that are read: a byte order, a kind and the bytes of an element.
  constexpr std::array<std::string_view, 13> kTypes = {"f4", "f8", "c8", "c16", "b1", "i1", "i2",
                                                       "i4", "i8", "u1", "u2",  "u4", "u8"};
  const char order = descr.empty() ? '?' : descr[0];
  const std::string_view type = descr.substr(std::min<std::size_t>(1, descr.size()));
  const bool known = std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
  const char kind = known ? type[0] : '?';
  const int size = type == "c16" ? 16 : known ? type[1] - '0' : 0;
  require(known && (order == '<' || order == '>' || order == '=' || (order == '|' && size == 1)),
          ErrorKind::input, "npy",
          "{}: elements of type '{}' are not supported; save them as float64, float32, complex128, "
          "complex64 or integers",
          name, shown(descr));
  header.kind = kind;
  header.element_bytes = size;
  header.precision = kind == 'c' ? (size == 8 ? Element::complex64 : Element::complex128)
                     : kind == 'f' && size == 4 ? Element::fp32
                                                : Element::fp64;
  header.big_endian = order == '>' || (order == '=' && std::endian::native == std::endian::big);
}

void set_shape(NpyHeader& header, const std::vector<std::int64_t>& shape, const std::string& name) {
  require(shape.size() == 1 || shape.size() == 2, ErrorKind::input, "npy",
          "{}: an array of {} dimensions; only 1 and 2 are supported", name, shape.size());
  header.dimensions = static_cast<int>(shape.size());
  header.rows = shape[0];
  header.cols = header.dimensions == 2 ? shape[1] : 1;
}

void parse_dictionary(NpyHeader& header, std::string_view text, const std::string& name) {
  HeaderText dictionary(text, name);
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  dictionary.expect('{');
  while (!dictionary.take('}')) {
    const std::string_view key = dictionary.take_string();
    dictionary.expect(':');
    if (key == "descr" && !has_descr) {
      // A structured type is a list; what is not a string fails as such.
      set_element_type(header, dictionary.take_string(), name);
      has_descr = true;
    } else if (key == "fortran_order" && !has_order) {
      header.fortran_order = dictionary.take_truth();
      has_order = true;
    } else if (key == "shape" && !has_shape) {
      set_shape(header, dictionary.take_tuple(), name);
      has_shape = true;
    } else {
      fail(ErrorKind::input, "npy", "{}: bad .npy header: unexpected key '{}'", name, shown(key));
    }
    if (dictionary.take(',')) continue;
    dictionary.expect('}');
    break;
  }
  dictionary.expect_end();
  require(has_descr && has_order && has_shape, ErrorKind::input, "npy",
          "{}: bad .npy header: descr, fortran_order or shape is missing", name);
}

}  // namespace

NpyHeader parse_npy_header(std::string_view bytes, const std::string& name) {
  require(bytes.starts_with(kMagic), ErrorKind::input, "npy", "{}: not a .npy file", name);
  require(bytes.size() >= 8, ErrorKind::input, "npy", "{}: the header is truncated", name);
  const int major = static_cast<unsigned char>(bytes[6]);
  const int minor = static_cast<unsigned char>(bytes[7]);
  require(major >= 1 && major <= 3 && minor == 0, ErrorKind::input, "npy",
          "{}: .npy format version {}.{} is not 1.0, 2.0 or 3.0", name, major, minor);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t text_begin = 8 + length_bytes;
  require(bytes.size() >= text_begin, ErrorKind::input, "npy", "{}: the header is truncated", name);
  const std::uint64_t text_bytes = little_endian(bytes.substr(8, length_bytes));
  require(bytes.size() - text_begin >= text_bytes, ErrorKind::input, "npy",
          "{}: the header is truncated", name);

  NpyHeader header;
  parse_dictionary(header, bytes.substr(text_begin, text_bytes), name);
  header.data_offset = static_cast<std::int64_t>(text_begin + text_bytes);
  const auto there = static_cast<std::int64_t>(bytes.size()) - header.data_offset;
  std::int64_t elements = 0;
  const bool fits = !__builtin_mul_overflow(header.rows, header.cols, &elements) &&
                    !__builtin_mul_overflow(elements, header.element_bytes, &header.data_bytes) &&
                    header.data_bytes == there;
  require(fits, ErrorKind::input, "npy",
          "{}: {} × {} elements of {} bytes announced, {} bytes found", name, header.rows,
          header.cols, header.element_bytes, there);
  return header;
}

}  // namespace strata
