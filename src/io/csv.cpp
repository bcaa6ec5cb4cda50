// Method: one pass checks the shape and notes where each row begins; a column is read by walking
// its rows again, so that text in other columns costs nothing and the table stays as small as its
// file. Source of the format: RFC 4180.

#include "io/csv.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "io/text.hpp"

namespace strata {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Field {
  std::string_view text;  // without the outer quotes
  bool quoted = false;
  bool last = false;                // of its row
  const char* complaint = nullptr;  // what is wrong with its quotes
};

// Walks through the fields of one row; past its last field it stands at the next row.
class FieldWalker {
 public:
  FieldWalker(std::string_view text, std::size_t position) : text_(text), position_(position) {}

  [[nodiscard]] Field next() {
    Field field;
    if (position_ < text_.size() && text_[position_] == '"') {
      take_quoted(field);
    } else {
      std::size_t end = position_;
      while (end < text_.size() && text_[end] != ',' && text_[end] != '\n') ++end;
      field.text = text_.substr(position_, end - position_);
      if (field.text.ends_with('\r') && (end == text_.size() || text_[end] == '\n')) {
        field.text.remove_suffix(1);
      }
      position_ = end;
    }
    field.last = position_ >= text_.size() || text_[position_] == '\n';
    if (position_ < text_.size()) ++position_;
    return field;
  }

  [[nodiscard]] std::size_t position() const noexcept { return position_; }

 private:
  void take_quoted(Field& field) {
    field.quoted = true;
    const std::size_t begin = position_ + 1;
    std::size_t end = text_.find('"', begin);
    while (end != std::string_view::npos && text_.substr(end + 1).starts_with('"')) {
      end = text_.find('"', end + 2);
    }
    if (end == std::string_view::npos) {
      field.complaint = "a quote is never closed";
      position_ = text_.size();
      return;
    }
    field.text = text_.substr(begin, end - begin);
    position_ = end + 1;
    if (text_.substr(position_) == "\r" || text_.substr(position_).starts_with("\r\n")) ++position_;
    if (position_ < text_.size() && text_[position_] != ',' && text_[position_] != '\n') {
      field.complaint = "text follows a closing quote";
    }
  }

  std::string_view text_;
  std::size_t position_;
};

// The text of a field: blanks around an unquoted one do not count, "" is a quote inside quotes.
std::string content(const Field& field) {
  if (!field.quoted) return std::string(trim(field.text));
  std::string out;
  for (std::size_t i = 0; i < field.text.size(); ++i) {
    out += field.text[i];
    if (field.text[i] == '"') ++i;
  }
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ", ";
    out += shown(name);
  }
  return out;
}

}  // namespace

struct Table::State {
  explicit State(FileBytes bytes) : file(std::move(bytes)) {}

  [[nodiscard]] std::string_view text() const noexcept { return file.bytes(); }
  // Only for messages: counts from the beginning.
  [[nodiscard]] std::int64_t line_of(std::size_t position) const {
    return 1 +
           std::count(text().begin(), text().begin() + static_cast<std::ptrdiff_t>(position), '\n');
  }
  [[nodiscard]] Field field(std::size_t row, std::size_t column) const {
    FieldWalker walker(text(), row_begin[row]);
    for (std::size_t k = 0; k < column; ++k) static_cast<void>(walker.next());
    return walker.next();
  }

  FileBytes file;
  std::vector<std::string> names;
  std::vector<std::size_t> row_begin;  // of the data rows
};

namespace {

// Skips empty lines; false at the end of the text.
bool find_row(std::string_view text, std::size_t& position) {
  while (position < text.size()) {
    if (text[position] == '\n') {
      ++position;
    } else if (text.substr(position, 2) == "\r\n") {
      position += 2;
    } else {
      return true;
    }
  }
  return false;
}

// Walks through one row, checks its quotes and hands each field to `visit`; returns how many.
template <class Visit>
std::size_t walk_row(const Table::State& state, std::size_t& position, Visit&& visit) {
  FieldWalker walker(state.text(), position);
  std::size_t count = 0;
  for (bool last = false; !last; ++count) {
    const Field field = walker.next();
    if (field.complaint != nullptr) {  // not require(): counting lines is for messages only
      fail(ErrorKind::input, "csv", "{}: line {}: {}", state.file.name(), state.line_of(position),
           field.complaint);
    }
    visit(field);
    last = field.last;
  }
  position = walker.position();
  return count;
}

}  // namespace

namespace {

/// Which column has the name.
std::size_t column_of(const Table::State& state, std::string_view name) {
  const std::string& file = state.file.name();
  const auto begin = state.names.begin();
  const auto end = state.names.end();
  const auto found = std::find(begin, end, name);
  require(found != end, ErrorKind::misuse, "csv", "{} has no column '{}'; its columns are {}", file,
          shown(name), joined(state.names));
  require(std::count(begin, end, name) == 1, ErrorKind::input, "csv",
          "{} has more than one column '{}'", file, shown(name));
  return static_cast<std::size_t>(found - begin);
}

/// The number in a field of data row `row` (from 1), which begins at `begin`.
double number_in(const Table::State& state, const Field& field, std::size_t row, std::size_t begin,
                 std::size_t column) {
  const ParsedNumber number = parse_number(field.text);
  if (number.complaint != nullptr) {
    const std::string text = content(field);
    fail(ErrorKind::input, "csv", "{}: data row {} (line {}), column '{}': {}", state.file.name(),
         row, state.line_of(begin), shown(state.names[column]),
         trim(text).empty() ? "the field is empty"
                            : fmt::format("'{}' {}", shown(text), number.complaint));
  }
  return number.value;
}

/// Reads the names of the columns; returns where the rows begin.
std::size_t read_header(Table::State& state) {
  const std::string_view text = state.text();
  std::size_t position = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  require(find_row(text, position), ErrorKind::input, "csv",
          "{}: the file is empty; its first row must hold the names of the columns",
          state.file.name());
  walk_row(state, position, [&](const Field& field) { state.names.push_back(content(field)); });
  return position;
}

/// Data row `row` (from 1), which begins at `begin`, has as many fields as the header.
void check_fields(const Table::State& state, std::size_t row, std::size_t begin,
                  std::size_t fields) {
  if (fields == state.names.size()) return;  // not require(): counting lines is for messages only
  fail(ErrorKind::input, "csv", "{}: data row {} (line {}) has {} fields, the header has {}",
       state.file.name(), row, state.line_of(begin), fields, state.names.size());
}

}  // namespace

Table parse_csv(FileBytes file) try {
  auto state = std::make_shared<Table::State>(std::move(file));
  const std::string_view text = state->text();
  std::size_t position = read_header(*state);
  while (find_row(text, position)) {
    const std::size_t begin = position;
    const std::size_t fields = walk_row(*state, position, [](const Field&) {});
    state->row_begin.push_back(begin);
    check_fields(*state, state->row_begin.size(), begin, fields);
  }
  return Table(std::move(state));
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "csv", "the table does not fit in memory");
}

Table read_csv(const std::string& path) { return parse_csv(FileBytes::read(path)); }

Table::Table(std::shared_ptr<const State> state) : state_(std::move(state)) {}

const std::vector<std::string>& Table::names() const noexcept { return state_->names; }

std::int64_t Table::rows() const noexcept {
  return static_cast<std::int64_t>(state_->row_begin.size());
}

bool Table::has(std::string_view name) const noexcept {
  return std::find(names().begin(), names().end(), name) != names().end();
}

std::vector<double> Table::column(std::string_view name) const {
  const std::size_t column = column_of(*state_, name);
  std::vector<double> values;
  values.reserve(state_->row_begin.size());
  for (std::size_t row = 0; row < state_->row_begin.size(); ++row)
    values.push_back(
        number_in(*state_, state_->field(row, column), row + 1, state_->row_begin[row], column));
  return values;
}

// ---- piece by piece

struct TableReader::State {
  explicit State(const std::string& path) : table(FileBytes::map(path)) {}

  Table::State table;
  std::size_t begin = 0;     // of the data rows
  std::size_t position = 0;  // of the next row
  std::size_t rows = 0;      // that were read
};

TableReader::TableReader(const std::string& path) : state_(std::make_unique<State>(path)) {
  state_->begin = state_->position = read_header(state_->table);
}
TableReader::TableReader(TableReader&&) noexcept = default;
TableReader& TableReader::operator=(TableReader&&) noexcept = default;
TableReader::~TableReader() = default;

const std::vector<std::string>& TableReader::names() const noexcept { return state_->table.names; }

bool TableReader::has(std::string_view name) const noexcept {
  return std::find(names().begin(), names().end(), name) != names().end();
}

void TableReader::rewind() noexcept {
  state_->position = state_->begin;
  state_->rows = 0;
}

std::vector<std::vector<double>> TableReader::next(const std::vector<std::string>& columns,
                                                   std::int64_t rows) {
  const Table::State& table = state_->table;
  std::vector<std::size_t> index;
  for (const std::string& name : columns) index.push_back(column_of(table, name));
  std::vector<std::vector<double>> values(columns.size());
  std::vector<Field> fields;
  for (std::int64_t r = 0; r < rows && find_row(table.text(), state_->position); ++r) {
    const std::size_t begin = state_->position;
    fields.clear();
    walk_row(table, state_->position, [&](const Field& field) { fields.push_back(field); });
    check_fields(table, ++state_->rows, begin, fields.size());
    for (std::size_t k = 0; k < index.size(); ++k)
      values[k].push_back(number_in(table, fields[index[k]], state_->rows, begin, index[k]));
  }
  return values;
}

namespace {

void append_name(std::string& out, std::string_view name) {
  const bool plain = name.find_first_of(",\"\r\n") == std::string_view::npos && trim(name) == name;
  if (plain && !name.empty()) {
    out += name;
    return;
  }
  out += '"';
  for (const char c : name) {
    if (c == '"') out += c;
    out += c;
  }
  out += '"';
}

}  // namespace

struct TableWriter::State {
  State(const std::string& p, const std::vector<std::string>& n)
      : path(p), names(n), file(open_output(p)) {}

  std::string path;
  std::vector<std::string> names;
  OutputFile file;
};

TableWriter::TableWriter(const std::string& path, const std::vector<std::string>& names) {
  require(!names.empty(), ErrorKind::misuse, "csv", "{}: there are no columns", path);
  state_ = std::make_unique<State>(path, names);
  std::string line;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (k > 0) line += ',';
    append_name(line, names[k]);
  }
  line += '\n';
  state_->file.write(line);
}
TableWriter::TableWriter(TableWriter&&) noexcept = default;
TableWriter& TableWriter::operator=(TableWriter&&) noexcept = default;
TableWriter::~TableWriter() = default;

void TableWriter::write(const std::vector<std::vector<double>>& columns) {
  const std::vector<std::string>& names = state_->names;
  require(names.size() == columns.size(), ErrorKind::misuse, "csv", "{}: {} names for {} columns",
          state_->path, names.size(), columns.size());
  const std::size_t rows = columns[0].size();
  for (std::size_t k = 0; k < columns.size(); ++k) {
    require(columns[k].size() == rows, ErrorKind::misuse, "csv",
            "{}: column '{}' has {} rows, column '{}' has {}", state_->path, shown(names[k]),
            columns[k].size(), shown(names[0]), rows);
  }
  std::string line;
  for (std::size_t row = 0; row < rows; ++row) {
    line.clear();
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (k > 0) line += ',';
      append_number(line, columns[k][row]);
    }
    line += '\n';
    state_->file.write(line);
  }
}

void TableWriter::close() { state_->file.commit(); }

void write_csv(const std::string& path, const std::vector<std::string>& names,
               const std::vector<std::vector<double>>& columns) {
  require(!names.empty() && names.size() == columns.size(), ErrorKind::misuse, "csv",
          "{}: {} names for {} columns", path, names.size(), columns.size());
  for (std::size_t k = 0; k < columns.size(); ++k) {
    require(columns[k].size() == columns[0].size(), ErrorKind::misuse, "csv",
            "{}: column '{}' has {} rows, column '{}' has {}", path, shown(names[k]),
            columns[k].size(), shown(names[0]), columns[0].size());
  }
  TableWriter writer(path, names);
  writer.write(columns);
  writer.close();
}

}  // namespace strata
