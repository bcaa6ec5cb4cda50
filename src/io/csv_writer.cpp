// Tables as files: names that need quotes have them, numbers have the digits that read back the
// same.

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "base/output_file.hpp"
#include "io/file.hpp"
#include "io/text.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

void append_name(std::string& out, std::string_view name) {
  const bool plain =
      name.find_first_of(",;\t#\"\r\n") == std::string_view::npos && trim(name) == name;
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
