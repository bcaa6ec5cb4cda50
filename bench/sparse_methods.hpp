#pragma once
// Ways to factor one matrix, side by side in one process: on CPUs, level by level as Rennich,
// Stosic and Davis do it, one by one and in batches, and by the programs of branches. And how fast
// small fronts become by batches and streams alone.
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

/// Parts of a run's time in which what is at work is counted: a drawing shows no more.
inline constexpr std::int64_t kTraceParts = 200;

struct SparseMethod {
  std::string name;       ///< "CPU", "one by one", "batches", "programs"
  SparseTiming refactor;  ///< other values in host memory, with the checks of the pattern
  /// Median seconds of the device alone; 0 where the factor does not stay on it.
  double device_seconds = 0;
  double log_determinant = 0;
  Trace trace;                  ///< of another run, of those that go level by level; …
  std::int64_t tasks = 0;       ///< … how many it had, …
  std::vector<double> at_work;  ///< … and at work at once: see tasks_at_work()
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

/// Rate of fronts of order n whose first n / 2 columns are eliminated, or of products of order n.
struct SmallRate {
  std::int64_t order = 0;
  std::int64_t batch = 0;  ///< of a call
  int streams = 0;         ///< queues that calls take turns on
  double flops_per_second = 0;
};

/// What is measured: the median of some repeats of all choices.
struct SmallRuns {
  std::vector<std::int64_t> orders{8, 16, 32, 64};
  std::vector<std::int64_t> batches{1, 4, 16, 64, 256};
  std::vector<int> streams{1, 4, 16};
  int repeats = 3;
};

/// 4,096 fronts of each order in the memory of the first device, 256 of CPUs. Throws Error{memory}
/// if they are not there.
[[nodiscard]] std::vector<SmallRate> small_front_rates(const RunOptions& run,
                                                       const SmallRuns& runs);
/// 4,096 products by cuBLAS, on the GPU that the peers used last (at first: 0), where the first
/// device is a GPU and libstrata_peers_cuda.so is there; else none.
[[nodiscard]] std::vector<SmallRate> small_product_rates(const RunOptions& run,
                                                         const SmallRuns& runs);

}  // namespace strata::bench
