#pragma once
// Matrices with fronts of all kinds, and their analysis, for tests of factorizations by programs.

#include <cstdint>
#include <vector>

#include "strata/sparse_cholesky.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {

inline SparseAnalysis analysis_by_amd(const SparseMatrix& a) {
  AnalysisOptions options;
  options.ordering = SparseOrdering::amd;
  return analyze(a, options);
}

/// Small fronts, and such of tiles, with odd and even widths; values by `seed`.
inline std::vector<SparseMatrix> front_matrices(std::uint64_t seed) {
  std::vector<SparseMatrix> list;
  for (const Family& family : families())
    if (family.matrix.rows > 0) list.push_back(family.matrix);
  // Matrices of the same kinds, smaller where a sanitizer slows the tests' own loops most.
  list.push_back(kSanitized ? grid(9, 8, 8) : grid(13, 12, 11));
  list.push_back(kSanitized ? grid(20, 21, 1) : grid(40, 41, 1));
  list.push_back(kSanitized ? grid(6, 5, 5, true, 3) : grid(9, 9, 8, true, 3));
  list.push_back(random_pattern(kSanitized ? 200 : 300, 0.05, 5, Give::upper));
  for (std::size_t k = 0; k < list.size(); ++k) list[k] = with_values(list[k], seed + k);
  return list;
}

}  // namespace strata::test
