#pragma once
// Matrices of random numbers for operations with a factor.

#include <cstdint>

#include "base/random.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {

/// A matrix of random numbers from 0 to 1.
inline Matrix<double> uniform_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return make_matrix<double>(rows, cols, [&](auto i, auto j) {
    return random_uniform(seed, static_cast<std::uint64_t>(i * 64 + j));
  });
}
/// A matrix of random numbers from −1 to 1.
inline Matrix<double> signed_uniform_matrix(std::int64_t rows, std::int64_t cols,
                                            std::uint64_t seed) {
  return make_matrix<double>(rows, cols, [&](auto i, auto j) {
    return 2 * random_uniform(seed, static_cast<std::uint64_t>(i * 64 + j)) - 1;
  });
}

}  // namespace strata::test
