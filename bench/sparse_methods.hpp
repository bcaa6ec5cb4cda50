#pragma once
// Ways to factor one matrix, side by side in one process: on CPUs, level by level as Rennich,
// Stosic and Davis do it, one by one and in batches, and by the programs of branches; and how fast
// fronts that are small become by batches and streams alone.
//
// Contract: all factor the same values by the same analysis. What a device has no memory for is
// left out. Operations are those of L with the zeros that supernodes store.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/timed_runs.hpp"
#include "strata/sparse_factor.hpp"
#include "strata/trace.hpp"

namespace strata::bench {

struct SparseMethod {
  std::string name;       ///< "CPU", "one by one", "batches", "programs"
  SparseTiming refactor;  ///< other values in host memory, with the checks of the pattern
  /// Of the device alone, the median; 0 where the factor does not stay on it.
  double device_seconds = 0;
  double log_determinant = 0;
  Trace trace;  ///< of another run, of those that go level by level
};

/// With the first device of `options.run` and the CPUs of the host. `repeats` refactorizations
/// each. Throws as SparseCholesky does, but for Error{memory}, and Error{input} for a matrix that
/// is not positive definite.
[[nodiscard]] std::vector<SparseMethod> compare_methods(const SparseMatrix& lower,
                                                        const SparseAnalysis& analysis,
                                                        const SparseCholeskyOptions& options,
                                                        const LevelBatches& levels, int repeats);

/// How many tasks of a trace are at work, on average in each of `parts` equal parts of its time.
[[nodiscard]] std::vector<double> tasks_at_work(const Trace& trace, std::int64_t parts);

/// Of fronts of order n whose first n / 2 columns are eliminated.
struct SmallFrontRate {
  std::int64_t order = 0;
  std::int64_t batch = 0;  ///< fronts of a call
  int streams = 0;         ///< queues that calls take turns on
  double flops_per_second = 0;
};

/// 4,096 fronts of each order in the memory of the first device, 256 of CPUs: the median of
/// `repeats`. Throws Error{memory} if they are not there.
[[nodiscard]] std::vector<SmallFrontRate> small_front_rates(
    const Options& run, const std::vector<std::int64_t>& orders,
    const std::vector<std::int64_t>& batches, const std::vector<int>& streams, int repeats);

}  // namespace strata::bench
