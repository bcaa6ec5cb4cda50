// libFuzzer target: any bytes as a .csv file give a table, each of whose columns gives as many
// numbers as there are rows, or Error{input}; NaN where it may hold no value, and there alone.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/csv.hpp"
#include "strata/error.hpp"

namespace {

void read_column(const strata::Table& table, const std::string& name, strata::ColumnRules rules) {
  try {
    const std::vector<double> values = table.column(name, rules);
    if (static_cast<std::int64_t>(values.size()) != table.rows()) std::abort();
    for (const double value : values) {
      if (!std::isfinite(value) && !(rules.missing && std::isnan(value))) std::abort();
    }
    if (rules.dates) (void)table.has_dates(name);
  } catch (const strata::Error& error) {
    if (error.kind() != strata::ErrorKind::input) std::abort();
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const strata::Table table = strata::parse_csv(
        strata::FileBytes(std::string(reinterpret_cast<const char*>(data), size), "fuzz"));
    const std::size_t columns = table.names().size();
    for (std::size_t k = 0; k < columns && k < 8; ++k) {
      read_column(table, table.names()[k], {});
      read_column(table, table.names()[k], {.missing = true, .dates = true});
    }
  } catch (const strata::Error& error) {
    if (error.kind() != strata::ErrorKind::input) std::abort();
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
