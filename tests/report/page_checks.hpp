#pragma once
// What tests of the page share.

#include <limits>
#include <string>

#include "tests/support/nan.hpp"

namespace strata::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline bool has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

}  // namespace strata::test
