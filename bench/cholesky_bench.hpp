#pragma once
// bench cholesky: our planned factorization beside a peer's, in one process.
//
// Contract: both factor the same matrix (`random` of test_matrix.hpp, by seed). Ours starts from
// tiles in host memory and ends with the factor there; what a peer's time covers is said by
// `PeerResult::what`. Ours and the peer's runs alternate, so that a machine whose speed drifts
// serves both alike. Figures are medians over `repeats` runs after one to warm up (none at the
// largest sizes, where repeats is 1).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/cholesky.hpp"

namespace strata::bench {

struct CholeskyBench {
  std::vector<std::int64_t> sizes;
  std::vector<Policy> policies;  ///< one row each, planned; empty: as the options say
  Element precision = Element::fp64;
  int repeats = 3;
  std::uint64_t seed = 1;
  std::string peer;        ///< "", "openblas", "cusolver" or "magma"
  int peer_threads = 0;    ///< openblas; 0: all cores
  bool calibrate = false;  ///< measure rates for the tile before predicting
};

struct PeerResult {
  std::string name;    ///< "openblas dpotrf, 2 threads"
  std::string what;    ///< "in place, host memory"
  double seconds = 0;  ///< the median
  std::vector<double> all_seconds;
  std::optional<double> residual;  ///< in core: as ours, of the factor of the warm-up
};

struct CholeskyBenchRow {
  std::int64_t n = 0;
  RunReport run;  ///< of the median run
  std::vector<double> seconds;
  double source_seconds = 0;  ///< filling host memory, not in `seconds`
  /// max |L·(Lᵀ·v) − A·v| / (‖A‖·‖v‖) for one random v, over a sample of rows.
  double residual = 0;
  PeerResult peer;
};

/// Throws Error{misuse} for an unknown peer, Error{device} if the peer is not installed.
[[nodiscard]] std::vector<CholeskyBenchRow> run_cholesky_bench(const CholeskyBench& bench,
                                                               const CholeskyOptions& options);

}  // namespace strata::bench
