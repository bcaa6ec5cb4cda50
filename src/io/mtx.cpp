// Method: one pass over the lines, one entry a line, numbers through from_chars. Everything that
// the header promises (extents, entries, triangle) is checked against what comes. Source of the
// format: Boisvert, Pozo, Remington, NISTIR 5935, 1996. What programs write beside it and has one
// possible meaning is accepted. That is a banner with a single percent sign or behind a byte order
// mark, comments behind blanks and behind entries, exponents with a D, a real hermitian matrix, and
// pairs of a symmetric matrix in either triangle, each once.

#include "io/mtx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <new>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "io/file.hpp"
#include "io/memory.hpp"
#include "io/text.hpp"
#include "matrix/array_columns.hpp"
#include "scalar/complex.hpp"

namespace strata {
namespace {

enum class MtxField { real, complex, integer, pattern };

class MtxParser {
 public:
  MtxParser(std::string_view text, const std::string& name)
      : lines_(text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0)),
        name_(name) {}

  MatrixMarket parse() {
    parse_banner();
    parse_sizes();
    reserve();
    std::string_view line;
    while (next_line(line)) {
      if (matrix_.entries() == announced_) {
        fail_line("more than the {} entries announced", announced_);
      }
      parse_entry(line);
    }
    require(matrix_.entries() == announced_, ErrorKind::input, "mtx",
            "{}: {} entries announced, {} found", name_, announced_, matrix_.entries());
    if (any_lower_ && any_upper_) check_pairs();
    return std::move(matrix_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_line(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::input, "mtx", "{}: line {}: {}", name_, lines_.number(),
         fmt::format(format, std::forward<Args>(args)...));
  }

  // The next line that is neither blank nor a comment.
  bool next_line(std::string_view& line) {
    while (lines_.next(line)) {
      const std::string_view text = trim(line);
      if (!text.empty() && text[0] != '%') return true;
    }
    return false;
  }

  static std::string lower_word(std::string_view& line) {
    std::string word(take_word(line));
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return word;
  }

  void parse_banner() {
    std::string_view line;
    const bool any = lines_.next(line);
    const std::string banner = any ? lower_word(line) : std::string();
    require(banner == "%%matrixmarket" || banner == "%matrixmarket", ErrorKind::input, "mtx",
            "{}: not a Matrix Market file: its first line must begin with %%MatrixMarket", name_);
    const std::string object = lower_word(line);
    const std::string format = lower_word(line);
    const std::string field = lower_word(line);
    const std::string symmetry = lower_word(line);
    if (object != "matrix") fail_line("'{}' is not supported, only matrix", shown(object));
    matrix_.is_array = format == "array";
    if (!matrix_.is_array && format != "coordinate") {
      fail_line("'{}' is neither coordinate nor array", shown(format));
    }
    field_ = field == "pattern"   ? MtxField::pattern
             : field == "integer" ? MtxField::integer
             : field == "complex" ? MtxField::complex
                                  : MtxField::real;
    if (field_ == MtxField::real && field != "real" && field != "double") {
      fail_line("'{}' is not real, complex, integer or pattern", shown(field));
    }
    if (field_ == MtxField::pattern && matrix_.is_array) fail_line("an array cannot be a pattern");
    matrix_.is_complex = field_ == MtxField::complex;
    matrix_.hermitian = symmetry == "hermitian" && matrix_.is_complex;
    matrix_.symmetric = symmetry == "symmetric" || (symmetry == "hermitian" && !matrix_.is_complex);
    matrix_.skew_symmetric = symmetry == "skew-symmetric";
    if (!matrix_.symmetric && !matrix_.hermitian && !matrix_.skew_symmetric &&
        symmetry != "general") {
      fail_line("'{}' is not general, symmetric, hermitian or skew-symmetric", shown(symmetry));
    }
  }

  std::int64_t take_size(std::string_view& line, const char* what) {
    const std::string_view word = take_word(line);
    const std::optional<std::int64_t> size = parse_integer(word);
    if (!size || *size < 0) {
      fail_line("'{}' is not a number of {} between 0 and 2^63 - 1", shown(word), what);
    }
    return *size;
  }

  void expect_end(std::string_view line) {
    const std::string_view text = trim(line);
    if (!text.empty() && text[0] != '%') fail_line("unexpected text '{}'", shown(text));
  }

  void parse_sizes() {
    std::string_view line;
    require(next_line(line), ErrorKind::input, "mtx", "{}: the line of sizes is missing", name_);
    matrix_.rows = take_size(line, "rows");
    matrix_.cols = take_size(line, "columns");
    half_ = matrix_.symmetric || matrix_.hermitian || matrix_.skew_symmetric;
    if (half_ && matrix_.rows != matrix_.cols) {
      fail_line("a symmetric matrix cannot be {} × {}", matrix_.rows, matrix_.cols);
    }
    announced_ = matrix_.is_array ? array_entries() : take_size(line, "entries");
    expect_end(line);
  }

  // The elements of an array that are stored: all, or those of the (strictly) lower triangle. No
  // file has 2^62 of them, so larger extents are refused before n + 1 can overflow.
  std::int64_t array_entries() {
    const std::int64_t n = matrix_.rows;
    const bool huge = n > std::numeric_limits<std::int64_t>::max() / 2;
    const std::int64_t second =
        !half_ || huge ? matrix_.cols : n + (matrix_.skew_symmetric ? -1 : 1);
    std::int64_t entries = 0;
    if (huge || __builtin_mul_overflow(n, second, &entries)) {
      fail_line("{} × {} elements are more than any file holds", n, matrix_.cols);
    }
    return half_ ? entries / 2 : entries;
  }

  void reserve() {
    // The shortest entry is "1 1" or "1", and all but the last end in a line feed.
    const std::int64_t bytes_least = (matrix_.is_array              ? 2
                                      : field_ == MtxField::pattern ? 4
                                                                    : 6) +
                                     (matrix_.is_complex ? 2 : 0);
    if (announced_ > (lines_.bytes_left() + 1) / bytes_least) {
      fail_line("{} entries announced, but only {} bytes follow", announced_, lines_.bytes_left());
    }
    const auto entries = static_cast<std::size_t>(announced_);
    matrix_.value.reserve(entries);
    if (matrix_.is_complex) matrix_.imaginary.reserve(entries);
    if (matrix_.is_array) return;
    matrix_.row.reserve(entries);
    matrix_.col.reserve(entries);
  }

  std::int64_t take_index(std::string_view& line, const char* what, std::int64_t extent) {
    const std::string_view word = take_word(line);
    const std::optional<std::int64_t> index = parse_integer(word);
    if (!index) fail_line("'{}' is not a {} number", shown(word), what);
    if (*index < 1 || *index > extent) fail_line("{} {} is outside 1 ... {}", what, *index, extent);
    return *index - 1;
  }

  double take_value(std::string_view& line, const char* what) {
    const std::string_view word = take_word(line);
    if (word.empty()) fail_line("the {} is missing", what);
    const ParsedNumber number = parse_number(word);
    if (number.complaint != nullptr) fail_line("'{}' {}", shown(word), number.complaint);
    if (field_ == MtxField::integer) check_integer(word, number.value);
    return number.value;
  }

  // Where the entry of a hermitian array that comes next stands: column by column, from the
  // diagonal on.
  std::pair<std::int64_t, std::int64_t> next_of_hermitian_array() {
    const std::pair place(array_row_, array_col_);
    if (++array_row_ == matrix_.rows) array_row_ = ++array_col_;
    return place;
  }

  void parse_entry(std::string_view line) {
    std::int64_t i = 0;
    std::int64_t j = 0;
    if (!matrix_.is_array) {
      i = take_index(line, "row", matrix_.rows);
      j = take_index(line, "column", matrix_.cols);
    } else if (matrix_.hermitian) {
      std::tie(i, j) = next_of_hermitian_array();
    }
    std::complex<double> value = 1;
    if (field_ != MtxField::pattern) value = take_value(line, "value");
    if (matrix_.is_complex) value.imag(take_value(line, "imaginary part"));
    expect_end(line);
    if (matrix_.hermitian && i == j && value.imag() != 0)
      fail_line(
          "the diagonal of a hermitian matrix is real, and entry ({}, {}) has an imaginary part {}",
          i + 1, j + 1, value.imag());
    if (half_ && !matrix_.is_array) value = to_lower(i, j, value);
    matrix_.value.push_back(value.real());
    if (matrix_.is_complex) matrix_.imaginary.push_back(value.imag());
    if (matrix_.is_array) return;
    matrix_.row.push_back(i);
    matrix_.col.push_back(j);
  }

  void check_integer(std::string_view word, double value) {
    if (value != std::floor(value)) fail_line("'{}' is not an integer", shown(word));
    if (std::abs(value) < 0x1p53) return;
    const std::optional<std::int64_t> exact = parse_integer(word);
    if (!exact || value >= 0x1p63 || static_cast<std::int64_t>(value) != *exact)
      fail_line("'{}' is an integer that a double cannot hold", shown(word));
  }

  // Moves an entry of a symmetric matrix into the lower triangle and returns its value there.
  std::complex<double> to_lower(std::int64_t& i, std::int64_t& j, std::complex<double> value) {
    if (i == j && matrix_.skew_symmetric) {
      fail_line("a skew-symmetric matrix has no diagonal entry ({}, {})", i + 1, j + 1);
    }
    (i < j ? any_upper_ : any_lower_) |= i != j;
    from_upper_.push_back(i < j);
    if (i >= j) return value;
    std::swap(i, j);
    return matrix_.skew_symmetric ? -value : matrix_.hermitian ? std::conj(value) : value;
  }

  // A pair of which both elements are in the file may be meant twice or once: refused.
  void check_pairs() {
    std::vector<std::size_t> order(matrix_.value.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto place = [this](std::size_t k) { return std::pair(matrix_.row[k], matrix_.col[k]); };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (place(order[k - 1]) != place(order[k]) ||
          from_upper_[order[k - 1]] == from_upper_[order[k]])
        continue;
      const auto [i, j] = place(order[k]);
      fail(ErrorKind::input, "mtx",
           "{}: a symmetric file holds each pair once: it has both ({}, {}) and ({}, {}), counted "
           "from 1",
           name_, i + 1, j + 1, j + 1, i + 1);
    }
  }

  Lines lines_;
  const std::string& name_;
  MatrixMarket matrix_;
  MtxField field_ = MtxField::real;
  bool half_ = false;           // one triangle is stored
  std::int64_t array_row_ = 0;  // of the next entry of a hermitian array
  std::int64_t array_col_ = 0;
  bool any_lower_ = false;
  bool any_upper_ = false;
  std::vector<bool> from_upper_;  // of the entries of a half: moved into the lower triangle
  std::int64_t announced_ = 0;
};

}  // namespace

MatrixMarket parse_mtx(std::string_view text, const std::string& name) try {
  return MtxParser(text, name).parse();
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "mtx", "{}: its entries do not fit in memory", name);
}

MatrixMarket read_mtx(const std::string& path) {
  const FileBytes file = FileBytes::as_text(FileBytes::read(path));
  return parse_mtx(file.bytes(), path);
}

namespace {

/// The entries of `m`, of which value_of(k) is the k-th, as a dense matrix.
template <class T, class ValueOf>
DenseMatrix<T> dense_of(const MatrixMarket& m, const ValueOf& value_of) try {
  DenseMatrix<T> dense;
  dense.rows = m.rows;
  dense.cols = m.cols;
  dense.values.resize(static_cast<std::size_t>(
      checked_elements(m.rows, m.cols, sizeof(T), "mtx", "Matrix Market")));
  const MatrixView<T> a = dense.view();
  const bool half = m.symmetric || m.skew_symmetric || m.hermitian;
  const auto add = [&](std::int64_t i, std::int64_t j, const T& v) {
    a(i, j) += v;
    if (half && i != j) a(j, i) += m.skew_symmetric ? -v : m.hermitian ? conjugate(v) : v;
  };
  if (!m.is_array) {
    for (std::size_t k = 0; k < m.value.size(); ++k) add(m.row[k], m.col[k], value_of(k));
    return dense;
  }
  std::size_t k = 0;
  for (std::int64_t j = 0; j < m.cols && k < m.value.size(); ++j) {
    const std::int64_t first = !half ? 0 : m.skew_symmetric ? j + 1 : j;
    for (std::int64_t i = first; i < m.rows; ++i) add(i, j, value_of(k++));
  }
  return dense;
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "mtx", "no memory for a dense {} × {} matrix", m.rows, m.cols);
}

void require_real(const MatrixMarket& m) {
  require(!m.is_complex, ErrorKind::input, "mtx",
          "a {} × {} matrix of complex numbers, and real ones are needed here", m.rows, m.cols);
}

}  // namespace

DenseMatrix<double> MatrixMarket::to_dense() const {
  require_real(*this);
  return dense_of<double>(*this, [&](std::size_t k) { return value[k]; });
}

DenseMatrix<std::complex<double>> MatrixMarket::to_dense_complex() const {
  return dense_of<std::complex<double>>(*this, [&](std::size_t k) {
    return std::complex<double>(value[k], is_complex ? imaginary[k] : 0);
  });
}

SparseMatrix MatrixMarket::to_sparse() const try {
  require_real(*this);
  std::vector<std::int64_t> i;
  std::vector<std::int64_t> j;
  std::vector<double> v;
  const bool half = symmetric || skew_symmetric;
  const auto expected = static_cast<std::size_t>(entries() * (half ? 2 : 1));
  i.reserve(expected);
  j.reserve(expected);
  v.reserve(expected);
  const auto add = [&](std::int64_t at_row, std::int64_t at_col, double x) {
    i.push_back(at_row);
    j.push_back(at_col);
    v.push_back(x);
    if (!half || at_row == at_col) return;
    i.push_back(at_col);
    j.push_back(at_row);
    v.push_back(skew_symmetric ? -x : x);
  };
  std::size_t k = 0;
  for (; !is_array && k < value.size(); ++k) add(row[k], col[k], value[k]);
  for (std::int64_t c = 0; is_array && c < cols && k < value.size(); ++c) {
    const std::int64_t first = symmetric ? c : skew_symmetric ? c + 1 : 0;
    for (std::int64_t r = first; r < rows; ++r, ++k) {
      if (value[k] != 0) add(r, c, value[k]);
    }
  }
  return sparse_from_entries(rows, cols, i, j, v);
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "mtx", "no memory for a sparse {} × {} matrix of {} entries", rows, cols,
       entries());
}

void MatrixMarket::take_triangle(Triangle triangle, const std::string& name) {
  require(rows == cols && !skew_symmetric, ErrorKind::misuse, "mtx",
          "{}: a {}{} by {} matrix has no triangle that stands for a symmetric one", name,
          skew_symmetric ? "skew-symmetric " : "", rows, cols);
  if (symmetric && is_complex)  // of which a triangle does not say that its mirror is conjugate
    fail(ErrorKind::numerical, "mtx",
         "{}: its file says complex symmetric: no triangle of it stands for a Hermitian matrix",
         name);
  if (symmetric || hermitian) return;
  const bool lower = triangle == Triangle::lower;
  bool taken = false;  // something beside the diagonal
  bool left = false;
  std::size_t kept = 0;
  const auto keep = [&](std::int64_t i, std::int64_t j, std::size_t k) {
    const bool wanted = lower ? i >= j : i <= j;
    if (i != j && (value[k] != 0 || (is_complex && imaginary[k] != 0)))
      (wanted ? taken : left) = true;
    if (!wanted) return;
    if (!is_array) {
      row[kept] = std::max(i, j);
      col[kept] = std::min(i, j);
    }
    if (is_complex) imaginary[kept] = lower ? imaginary[k] : -imaginary[k];
    value[kept++] = value[k];
  };
  if (is_array && !lower) {  // the columns of the lower triangle are the rows of the upper one
    for (std::vector<double>* part : {&value, &imaginary})
      for (std::int64_t i = 0; i < rows && !part->empty(); ++i)
        for (std::int64_t j = 0; j < i; ++j)
          std::swap((*part)[static_cast<std::size_t>(i + j * rows)],
                    (*part)[static_cast<std::size_t>(j + i * rows)]);
  }
  for (std::size_t k = 0; k < value.size(); ++k) {
    const auto at = static_cast<std::int64_t>(k);
    const std::int64_t i = is_array ? at % rows : row[k];
    const std::int64_t j = is_array ? at / rows : col[k];
    is_array && !lower ? keep(j, i, k) : keep(i, j, k);
  }
  require(taken || !left, ErrorKind::input, "mtx",
          "{}: there is nothing {} the diagonal, and something in the other triangle", name,
          lower ? "below" : "above");
  value.resize(kept);
  if (is_complex) imaginary.resize(kept);
  row.resize(is_array ? 0 : kept);
  col.resize(is_array ? 0 : kept);
  (is_complex ? hermitian : symmetric) = true;
}

namespace {

template <class T>
void write_array(const std::string& path, MatrixView<const T> matrix) {
  OutputFile file = open_output(path);
  file.write(fmt::format("%%MatrixMarket matrix array {} general\n{} {}\n",
                         is_complex_v<T> ? "complex" : "real", matrix.rows, matrix.cols));
  std::string line;
  for (std::int64_t j = 0; j < matrix.cols && matrix.rows > 0; ++j) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      line.clear();
      append_number(line, real_part(matrix(i, j)));
      if constexpr (is_complex_v<T>) {
        line += ' ';
        append_number(line, imaginary_part(matrix(i, j)));
      }
      line += '\n';
      file.write(line);
    }
  }
  file.commit();
}

}  // namespace

void write_mtx(const std::string& path, ConstArrayRef matrix) {
  with_columns(matrix, "mtx", [&](auto columns) { write_array(path, columns); });
}

void write_mtx(const std::string& path, std::span<const double> vector) {
  const auto n = static_cast<std::int64_t>(vector.size());
  write_mtx(path, MatrixView<const double>{vector.data(), n, 1, n > 0 ? n : 1});
}

void write_symmetric_mtx(const std::string& path, std::int64_t n, std::int64_t entries,
                         const std::function<void(const PutEntry&)>& fill) {
  OutputFile file = open_output(path);
  file.write(
      fmt::format("%%MatrixMarket matrix coordinate real symmetric\n{} {} {}\n", n, n, entries));
  std::string line;
  std::int64_t written = 0;
  fill([&](std::int64_t i, std::int64_t j, double value) {
    line.clear();
    fmt::format_to(std::back_inserter(line), "{} {} ", std::max(i, j) + 1, std::min(i, j) + 1);
    append_number(line, value);
    line += '\n';
    file.write(line);
    ++written;
  });
  require(written == entries, ErrorKind::misuse, "mtx", "{}: {} entries where {} were announced",
          path, written, entries);
  file.commit();
}

void write_symmetric_mtx(const std::string& path, const SparseMatrix& matrix) {
  require(matrix.rows == matrix.cols, ErrorKind::misuse, "mtx",
          "{}: a {} by {} matrix is not symmetric", path, matrix.rows, matrix.cols);
  const auto for_lower = [&](const auto& visit) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      for (auto k = static_cast<std::size_t>(matrix.start[row]);
           k < static_cast<std::size_t>(matrix.start[row + 1]) && matrix.column[k] <= i; ++k)
        visit(i, matrix.column[k], matrix.value[k]);
    }
  };
  std::int64_t entries = 0;
  for_lower([&](std::int64_t, std::int32_t, double) { ++entries; });
  write_symmetric_mtx(path, matrix.rows, entries, for_lower);
}

}  // namespace strata
