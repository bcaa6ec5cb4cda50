// Method: one pass checks the shape and notes where each row begins; a column is read by walking
// its rows again, so that text in other columns costs nothing and the table stays as small as its
// file. Source of the format: RFC 4180; what spreadsheets and other programs make of it beside is
// recognized from the header (separator) and field by field (decimal commas).

#include "io/csv.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "io/text.hpp"

namespace strata {
namespace {

struct CsvField {
  std::string_view text;  // without the outer quotes
  bool quoted = false;
  bool last = false;                // of its row
  const char* complaint = nullptr;  // what is wrong with its quotes
};

// Walks through the fields of one row; past its last field it stands at the next row.
class FieldWalker {
 public:
  FieldWalker(std::string_view text, char separator, std::size_t position)
      : text_(text), separator_(separator), position_(position) {}

  [[nodiscard]] CsvField next() {
    CsvField field;
    const std::size_t begin = position_ < text_.size() ? quote_behind_blanks() : position_;
    if (begin < text_.size() && text_[begin] == '"') {
      position_ = begin;
      take_quoted(field);
    } else {
      std::size_t end = position_;
      while (end < text_.size() && text_[end] != separator_ && text_[end] != '\n') ++end;
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
  [[nodiscard]] bool is_blank(std::size_t at) const {
    return at < text_.size() && (text_[at] == ' ' || text_[at] == '\t') && text_[at] != separator_;
  }
  // Where the field's quote stands, or where the field begins.
  [[nodiscard]] std::size_t quote_behind_blanks() const {
    std::size_t at = position_;
    while (is_blank(at)) ++at;
    return at < text_.size() && text_[at] == '"' ? at : position_;
  }

  void take_quoted(CsvField& field) {
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
    while (is_blank(position_)) ++position_;
    if (text_.substr(position_) == "\r" || text_.substr(position_).starts_with("\r\n")) ++position_;
    if (position_ < text_.size() && text_[position_] != separator_ && text_[position_] != '\n') {
      field.complaint = "text follows a closing quote";
    }
  }

  std::string_view text_;
  char separator_;
  std::size_t position_;
};

// The text of a field: blanks around an unquoted one do not count, "" is a quote inside quotes.
std::string content(const CsvField& field) {
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

// Which field a message is about; `row` counts from 1.
struct FieldPlace {
  std::size_t row = 0;
  std::size_t begin = 0;  // of the row
  std::size_t column = 0;
};

// A field that says something of others.
struct FieldNote {
  FieldPlace at;
  std::string text;
};

struct Table::State {
  explicit State(FileBytes bytes) : file(std::move(bytes)) {}

  [[nodiscard]] std::string_view text() const noexcept { return file.bytes(); }
  // Only for messages: counts from the beginning.
  [[nodiscard]] std::int64_t line_of(std::size_t position) const {
    return 1 +
           std::count(text().begin(), text().begin() + static_cast<std::ptrdiff_t>(position), '\n');
  }
  [[nodiscard]] CsvField field(std::size_t row, std::size_t column) const {
    FieldWalker walker(text(), separator, row_begin[row]);
    for (std::size_t k = 0; k < column; ++k) static_cast<void>(walker.next());
    return walker.next();
  }

  FileBytes file;
  char separator = ',';
  std::vector<std::string> names;
  std::vector<std::size_t> row_begin;  // of the data rows
  std::optional<FieldNote> comma;      // the first decimal comma that was seen, in any column
};

namespace {

// Where the line ends that `position` is on: at its line feed, or at the end of the text.
std::size_t line_end(std::string_view text, std::size_t position) {
  return std::min(text.find('\n', position), text.size());
}

// Skips lines that are empty or blank, and comments: lines whose first character is #, of which the
// last one that was skipped begins at `comment`. False at the end of the text.
bool find_row(std::string_view text, char separator, std::size_t& position,
              std::size_t* comment = nullptr) {
  while (position < text.size()) {
    std::size_t at = position;
    while (at < text.size() &&
           (text[at] == ' ' || text[at] == '\r' || (text[at] == '\t' && separator != '\t')))
      ++at;
    if (at < text.size() && text[at] != '\n' && text[at] != '#') return true;
    if (at < text.size() && text[at] == '#' && comment != nullptr) *comment = at;
    position = std::min(line_end(text, at) + 1, text.size());
  }
  return false;
}

// Walks through one row, checks its quotes and hands each field to `visit`; returns how many.
template <class Visit>
std::size_t walk_row(const Table::State& state, std::size_t& position, Visit&& visit) {
  FieldWalker walker(state.text(), state.separator, position);
  std::size_t count = 0;
  for (bool last = false; !last; ++count) {
    const CsvField field = walker.next();
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

}  // namespace

// Numbers that may be dates without dashes, 20200131 for 2020-01-31: only if all are.
struct DatesAsNumbers {
  std::optional<FieldNote> first;
  std::int64_t month = 0;  // and year, of the first
  bool months_differ = false;
  bool other = false;  // a number that is no such date

  void add(double value, const FieldPlace& at) {
    constexpr double kFirst = 18000101;
    constexpr double kLast = 21991231;
    if (other) return;
    other = !(value >= kFirst && value <= kLast && value == std::floor(value));
    if (other) return;
    const auto day = static_cast<std::int64_t>(value);
    std::string dashed = fmt::format("{:04}-{:02}-{:02}", day / 10000, day / 100 % 100, day % 100);
    other = !parse_date(dashed);
    if (!first) {
      month = day / 100;
      first = FieldNote{at, std::move(dashed)};
    }
    months_differ = months_differ || month != day / 100;
  }
};

// What the fields of a column were so far: what is mixed has more than one possible meaning.
struct ColumnNotes {
  bool number = false;
  bool date = false;
  std::optional<FieldNote> point;  // the first number with one, where commas may be decimal ones
  DatesAsNumbers dates;
};

namespace {

template <class... Args>
[[noreturn]] void fail_field(const Table::State& state, const FieldPlace& at, const char* where,
                             fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::input, where, "{}: data row {} (line {}), column '{}': {}", state.file.name(),
       at.row, state.line_of(at.begin), shown(state.names[at.column]),
       fmt::format(format, std::forward<Args>(args)...));
}

/// "1,234" is a thousand to some and 1.234 to others; no thousand begins with a zero.
bool may_be_thousands(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t comma = text.find(',');
  return text.size() == comma + 4 && comma >= 1 && comma <= 3 && text[0] != '0' &&
         text.find_first_not_of("0123456789,") == std::string_view::npos;
}

/// The number that a text with one decimal comma is.
ParsedNumber parse_decimal_comma(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.find('.') != std::string_view::npos)
    return {0, "is not a number"};
  std::string with_point(text);
  with_point[comma] = '.';
  return parse_number(with_point);
}

/// Notes the first decimal comma of a file; between tabs one that cannot be one of thousands.
void note_comma(Table::State& state, const CsvField& field, const FieldPlace& at) {
  if (state.separator == ',' || state.comma || field.text.find(',') == std::string_view::npos)
    return;
  const std::string text(trim(content(field)));
  if (parse_decimal_comma(text).complaint != nullptr) return;
  if (state.separator == '\t' && may_be_thousands(text)) return;
  state.comma = FieldNote{at, text};
}

/// A point in a file with decimal commas has two possible meanings.
void check_point(const Table::State& state, const std::optional<FieldNote>& point) {
  if (!point || !state.comma) return;
  const FieldPlace& at = state.comma->at;
  fail_field(state, point->at, "csv",
             "'{}' has a point, which may be one of thousands, for the file has decimal commas, as "
             "'{}' in column '{}' (line {}): write a decimal comma, or no point",
             shown(point->text), shown(state.comma->text), shown(state.names[at.column]),
             state.line_of(at.begin));
}

/// Behind the last row: what is told of a column as a whole.
void check_column(const Table::State& state, const ColumnNotes& notes) {
  const DatesAsNumbers& dates = notes.dates;
  if (dates.other || !dates.months_differ) return;
  fail_field(state, dates.first->at, "csv",
             "all values are dates without dashes, which as numbers are not days apart: write {}",
             dates.first->text);
}

/// What is no number as it stands: a decimal comma, a date, nothing.
double other_number_in(const Table::State& state, const CsvField& field, const FieldPlace& at,
                       ColumnRules rules, ColumnNotes& notes, const char* complaint) {
  const std::string text(trim(content(field)));
  if (is_missing(text)) {
    if (rules.missing) return std::numeric_limits<double>::quiet_NaN();
    if (text.empty()) fail_field(state, at, kMissingField, "the field is empty");
    fail_field(state, at, kMissingField, "'{}' {}", shown(text), complaint);
  }
  if (rules.dates) {
    if (const std::optional<double> date = parse_date(text)) {
      notes.date = true;
      if (notes.number) fail_field(state, at, "csv", "'{}' is a date below numbers", shown(text));
      return *date;
    }
  }
  if (state.separator == ',' || std::count(text.begin(), text.end(), ',') != 1)
    fail_field(state, at, "csv", "'{}' {}", shown(text), complaint);
  if (text.find('.') != std::string::npos)
    fail_field(state, at, "csv", "'{}' {}: write it without separators of thousands", shown(text),
               complaint);
  const ParsedNumber number = parse_decimal_comma(text);
  if (number.complaint != nullptr)
    fail_field(state, at, "csv", "'{}' {}", shown(text), number.complaint);
  if (state.separator == '\t' && may_be_thousands(text))
    fail_field(state, at, "csv",
               "the comma of '{}' may be a decimal one or one of thousands: write a point",
               shown(text));
  return number.value;
}

double number_in(const Table::State& state, const CsvField& field, const FieldPlace& at,
                 ColumnRules rules, ColumnNotes& notes) {
  const ParsedNumber number = parse_number(field.text);
  double value = number.value;
  if (number.complaint != nullptr) {
    value = other_number_in(state, field, at, rules, notes, number.complaint);
    if (notes.date || std::isnan(value)) return value;
  } else if (state.separator != ',' && !notes.point &&
             field.text.find('.') != std::string_view::npos) {
    notes.point = FieldNote{at, std::string(trim(field.text))};
    check_point(state, notes.point);
  }
  notes.number = true;
  if (rules.dates) notes.dates.add(value, at);
  if (notes.date) fail_field(state, at, "csv", "'{}' is a number below dates", shown(field.text));
  return value;
}

/// Fields of the row at `begin`, were they separated like this; quotes that are wrong end it.
std::vector<CsvField> fields_of(std::string_view text, char separator, std::size_t begin) {
  FieldWalker walker(text, separator, begin);
  std::vector<CsvField> fields;
  do {
    fields.push_back(walker.next());
  } while (!fields.back().last && fields.back().complaint == nullptr);
  return fields;
}

/// The one of comma, semicolon and tab that the header has; of several the first that makes as many
/// fields of the row below it.
char separator_of(std::string_view text, std::size_t header) {
  std::size_t below = line_end(text, header);
  const bool any = find_row(text, ',', below);
  std::optional<char> first;
  for (const char separator : {',', ';', '\t'}) {
    const std::size_t fields = fields_of(text, separator, header).size();
    if (fields < 2) continue;
    if (!any || fields_of(text, separator, below).size() == fields) return separator;
    if (!first) first = separator;
  }
  return first.value_or(',');
}

/// Some programs write the header as a comment. The last comment above the first row, at `first`,
/// is one if it has as many names as that row has fields, some of them numbers.
bool is_header(std::string_view text, char separator, std::size_t names, std::size_t first) {
  const std::size_t count = fields_of(text, separator, names).size();
  const std::vector<CsvField> fields = fields_of(text, separator, first);
  return count >= 2 && fields.size() == count &&
         std::any_of(fields.begin(), fields.end(), [](const CsvField& field) {
           return parse_number(field.text).complaint == nullptr;
         });
}

/// Finds the separator and reads the names of the columns; returns where the rows begin.
std::size_t read_header(Table::State& state) {
  constexpr std::size_t kNone = std::string_view::npos;
  const std::string_view text = state.text();
  std::size_t position = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  std::size_t comment = kNone;
  require(find_row(text, ',', position, &comment), ErrorKind::input, "csv",
          "{}: the file is empty; its first row must hold the names of the columns",
          state.file.name());
  const auto add_name = [&](const CsvField& field) { state.names.push_back(content(field)); };
  if (comment != kNone) {
    state.separator = separator_of(text, comment + 1);
    if (is_header(text, state.separator, comment + 1, position)) {
      ++comment;
      walk_row(state, comment, add_name);
      return position;
    }
  }
  state.separator = separator_of(text, position);
  walk_row(state, position, add_name);
  return position;
}

/// Data row `row` (from 1), which begins at `begin`, has as many fields as the header.
void check_fields(const Table::State& state, std::size_t row, std::size_t begin,
                  std::size_t fields) {
  if (fields == state.names.size()) return;  // not require(): counting lines is for messages only
  fail(ErrorKind::input, "csv", "{}: data row {} (line {}) has {} fields, the header has {}",
       state.file.name(), row, state.line_of(begin), fields, state.names.size());
}

/// Whether the first field of a column that has a value is a date; rows begin at `position`.
bool holds_dates(const Table::State& state, std::size_t position, std::string_view name) {
  const std::size_t column = column_of(state, name);
  while (find_row(state.text(), state.separator, position)) {
    std::string text;
    std::size_t k = 0;
    walk_row(state, position, [&](const CsvField& field) {
      if (k++ == column) text = content(field);
    });
    if (!is_missing(text)) return parse_date(text).has_value();
  }
  return false;
}

}  // namespace

Table parse_csv(FileBytes file) try {
  auto state = std::make_shared<Table::State>(FileBytes::as_text(std::move(file)));
  const std::string_view text = state->text();
  std::size_t position = read_header(*state);
  while (find_row(text, state->separator, position)) {
    FieldPlace at{state->row_begin.size() + 1, position, 0};
    const std::size_t begin = position;
    const std::size_t fields = walk_row(*state, position, [&](const CsvField& field) {
      note_comma(*state, field, at);
      ++at.column;
    });
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

std::vector<double> Table::column(std::string_view name, ColumnRules rules) const {
  const std::size_t column = column_of(*state_, name);
  std::vector<double> values;
  values.reserve(state_->row_begin.size());
  ColumnNotes notes;
  for (std::size_t row = 0; row < state_->row_begin.size(); ++row)
    values.push_back(number_in(*state_, state_->field(row, column),
                               {row + 1, state_->row_begin[row], column}, rules, notes));
  check_column(*state_, notes);
  return values;
}

std::vector<std::int64_t> Table::lines() const {
  std::vector<std::int64_t> lines;
  lines.reserve(state_->row_begin.size());
  const std::string_view text = state_->text();
  std::int64_t line = 1;
  std::size_t counted = 0;
  for (const std::size_t begin : state_->row_begin) {
    const auto at = [&](std::size_t k) { return text.begin() + static_cast<std::ptrdiff_t>(k); };
    line += std::count(at(counted), at(begin), '\n');
    counted = begin;
    lines.push_back(line);
  }
  return lines;
}

bool Table::has_dates(std::string_view name) const {
  if (state_->row_begin.empty()) return false;
  return holds_dates(*state_, state_->row_begin.front(), name);
}

// ---- piece by piece

struct TableReader::State {
  explicit State(const std::string& path) : table(FileBytes::as_text(FileBytes::map(path))) {}

  Table::State table;
  std::size_t begin = 0;     // of the data rows
  std::size_t position = 0;  // of the next row
  std::size_t rows = 0;      // that were read
  std::vector<ColumnNotes> notes;
};

TableReader::TableReader(const std::string& path) : state_(std::make_unique<State>(path)) {
  state_->begin = state_->position = read_header(state_->table);
  state_->notes.resize(state_->table.names.size());
}
TableReader::TableReader(TableReader&&) noexcept = default;
TableReader& TableReader::operator=(TableReader&&) noexcept = default;
TableReader::~TableReader() = default;

const std::vector<std::string>& TableReader::names() const noexcept { return state_->table.names; }

bool TableReader::has(std::string_view name) const noexcept {
  return std::find(names().begin(), names().end(), name) != names().end();
}

bool TableReader::has_dates(std::string_view name) const {
  return holds_dates(state_->table, state_->begin, name);
}

void TableReader::rewind() noexcept {
  state_->position = state_->begin;
  state_->rows = 0;
}

std::vector<std::vector<double>> TableReader::next(const std::vector<std::string>& columns,
                                                   std::int64_t rows,
                                                   const std::vector<ColumnRules>& rules) {
  Table::State& table = state_->table;
  require(rules.empty() || rules.size() == columns.size(), ErrorKind::misuse, "csv",
          "{} rules for {} columns", rules.size(), columns.size());
  std::vector<std::size_t> index;
  for (const std::string& name : columns) index.push_back(column_of(table, name));
  std::vector<std::vector<double>> values(columns.size());
  std::vector<CsvField> fields;
  std::int64_t r = 0;
  for (; r < rows && find_row(table.text(), table.separator, state_->position); ++r) {
    const std::size_t begin = state_->position;
    fields.clear();
    ++state_->rows;
    walk_row(table, state_->position, [&](const CsvField& field) {
      note_comma(table, field, {state_->rows, begin, fields.size()});
      fields.push_back(field);
    });
    check_fields(table, state_->rows, begin, fields.size());
    for (const std::size_t k : index) check_point(table, state_->notes[k].point);
    for (std::size_t k = 0; k < index.size(); ++k)
      values[k].push_back(number_in(table, fields[index[k]], {state_->rows, begin, index[k]},
                                    rules.empty() ? ColumnRules{} : rules[k],
                                    state_->notes[index[k]]));
  }
  if (r < rows)
    for (const std::size_t k : index) check_column(table, state_->notes[k]);
  return values;
}

}  // namespace strata
