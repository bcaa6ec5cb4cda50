#pragma once
// bench sparse --batch: factorizations of many matrices of one pattern, together and one by one.
//
// Contract: the matrices are D·A·D, another D each; in every repeat all are factored and solved
// with one right-hand side, by SparseCholeskyBatch and then by one SparseCholesky after another,
// which uses its memory again. Values and vectors are in host memory, and, where the factors stay
// on a GPU, in that of it, too. The analysis is not part of what is timed.

#include <cstdint>
#include <string>

#include "bench/sparse_bench.hpp"

namespace strata::bench {

/// Seconds for all matrices.
struct BatchTimes {
  SparseTiming factor, solve;              ///< from host memory
  SparseTiming factor_there, solve_there;  ///< from that of the GPU; else no runs
};

struct BatchRow {
  std::string name;
  std::int64_t n = 0;
  std::int64_t count = 0;
  double flops = 0;  ///< of one matrix, without stored zeros
  std::string path;  ///< of the batch, as reports have it
  BatchTimes together, one_by_one;
  double backward_error = 0;   ///< the largest, of the batch
  std::int64_t different = 0;  ///< matrices whose solutions have other bits one by one
};

/// `a` as analyze() takes it. Throws as SparseCholeskyBatch does, Error{input} for a matrix that is
/// not positive definite.
[[nodiscard]] BatchRow run_batch_bench(const std::string& name, const SparseMatrix& a,
                                       std::int64_t count, const SparseBench& bench);

}  // namespace strata::bench
