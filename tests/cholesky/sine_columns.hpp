#pragma once
// Right-hand sides without a pattern that a factor knows.

#include <cmath>
#include <cstdint>

#include "tests/support/problems.hpp"

namespace strata::test {

inline Matrix<double> sine_columns(std::int64_t rows, std::int64_t columns) {
  return make_matrix<double>(rows, columns, [](auto i, auto j) {
    return std::sin(1.0 + 3.0 * static_cast<double>(i) + 7.0 * static_cast<double>(j));
  });
}

}  // namespace strata::test
