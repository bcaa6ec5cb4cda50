#pragma once
// bench lu: our LU with partial pivoting beside LAPACK's, in one process.
//
// Contract: both factor the same matrix, uniform in [−1, 1) (in both parts of complex numbers), by
// seed. Ours starts from panels in host memory and ends with the factors there, of a second matrix
// or where A was; getrf works in place, in host memory. Runs alternate, so that a machine whose
// speed drifts serves both alike.
// Figures are medians over `repeats` runs after one to warm up (none where repeats is 1).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/cholesky_bench.hpp"
#include "strata/lu.hpp"
#include "strata/stripe_lu.hpp"

namespace strata::bench {

struct LuBench {
  std::vector<std::int64_t> sizes;
  Element precision = Element::fp64;
  int repeats = 3;
  std::uint64_t seed = 1;
  std::string peer;                        ///< "" or "openblas"; in core and mixed "cusolver"
  int peer_threads = 0;                    ///< 0: all cores
  bool overwrites = false;                 ///< in host memory: A is where the factors are kept
  bool halves = false;                     ///< in core, in fp32: LuOptions::halves
  bool mixed = false;                      ///< certified solutions, by factors in fp64 and fp32
  bool in_core = false;                    ///< the matrix lies on the device: lu_in_core.hpp
  std::int64_t batch = 0;                  ///< in core: matrices at a time; 0: one by getrf
  std::optional<StripeOptions> stripes{};  ///< in storage: by stripes, not by panels
};

struct LuBenchRow {
  std::int64_t n = 0;
  RunReport run;  ///< of the median run
  std::vector<double> seconds;
  /// From the call of lu() to its return, in the median run: with planning, and the copy of A into
  /// panels.
  double call_seconds = 0;
  double growth = 0;
  /// HPL's, of a solve with the last factor and no refinement; wanted below 16.
  double hpl_residual = 0;
  PeerResult peer;  ///< `residual`: HPL's, too
};

/// A certified solution of one right-hand side: solve_general() or solve_general_mixed(). A
/// peer gives no bounds.
struct LuSolutionRow {
  std::int64_t n = 0;
  std::string solver = "strata";  ///< or "cusolver"
  std::string factor_precision;
  std::vector<double> seconds;  ///< of whole calls; of a peer with its copies of A
  double median_seconds = 0;
  double factor_seconds = 0;  ///< of the median call; of a peer without its copies
  double solve_seconds = 0;   ///< of all of its solves with the factor
  double backward_error = 0;
  double forward_error = 0;
  double hpl_residual = 0;  ///< evaluated by the benchmark, of all solvers alike
  int steps = 0;
  int gmres_iterations = 0;
  std::string fallback;
};
/// For each order one row by factors in fp64 and one by factors in fp32, whose calls alternate;
/// then those of the peer by factors in fp64, fp32, tf32 and fp16.
[[nodiscard]] std::vector<LuSolutionRow> run_lu_solutions(const LuBench& bench,
                                                          const LuOptions& options);

/// Throws Error{misuse} for an unknown peer, Error{device} if the peer is not installed.
[[nodiscard]] std::vector<LuBenchRow> run_lu_bench(const LuBench& bench, const LuOptions& options);

}  // namespace strata::bench
