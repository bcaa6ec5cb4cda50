#pragma once
// Tables of text, for tests of CSV.

#include <string>
#include <vector>

#include "io/csv.hpp"
#include "strata/io.hpp"

namespace strata::test {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

inline Table parse(const std::string& text) { return parse_csv(FileBytes(text, "t.csv")); }

}  // namespace strata::test
