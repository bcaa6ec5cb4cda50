#pragma once
// Figures of bench sparse --figures: what Rennich, Stosic and Davis draw ("Accelerating sparse
// Cholesky factorization on GPUs", Parallel Computing 59, 2016; in 2014 at a workshop), from an
// analysis.
//
// Contract: counted, not timed; equal analyses give equal bins.

#include <cstdint>
#include <vector>

#include "strata/sparse_cholesky.hpp"

namespace strata::bench {

/// Figure 3: the inner dimension of BLAS calls, which is the width of the supernode whose columns
/// are multiplied. A dense factorization of its panel and the solve below it count by that width,
/// too.
struct WidthBin {
  std::int64_t width_max = 1;  ///< 1, 2, 4, …: widths above half of it, up to it
  std::int64_t supernodes = 0;
  /// Calls of a multifrontal factorization: potrf, and with rows below trsm and one syrk.
  std::int64_t multifrontal_calls = 0;
  /// Calls of a left-looking one, as CHOLMOD's: potrf and trsm, and for each supernode above that
  /// it updates syrk, and gemm if it has rows behind those columns.
  std::int64_t left_looking_calls = 0;
  double flops = 0;  ///< SparseAnalysis::flops of its supernodes
};
/// Up to the bin of the widest; none for a matrix of order 0.
[[nodiscard]] std::vector<WidthBin> width_histogram(const SparseAnalysis& analysis);

}  // namespace strata::bench
