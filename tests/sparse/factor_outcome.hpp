#pragma once
// A solution and the determinant of a factor, which all of L has a part in.

#include <vector>

#include "strata/sparse_factor.hpp"
#include "tests/sparse/patterns.hpp"

namespace strata::test {

struct FactorOutcome {
  std::vector<double> x;
  double log_determinant = 0;
  bool operator==(const FactorOutcome&) const = default;
};

inline FactorOutcome outcome_of(const SparseCholesky& factor) {
  FactorOutcome outcome{std::vector<double>(at(factor.n()), 1.0), factor.info().log_determinant};
  factor.solve({outcome.x.data(), factor.n(), 1, factor.n()});
  return outcome;
}

}  // namespace strata::test
