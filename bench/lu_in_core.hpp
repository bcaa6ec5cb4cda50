#pragma once
// bench lu --in-core: getrf alone, on a matrix that lies in the memory of a GPU already, beside
// cuSOLVER's of the same memory; or getrf_batched of many matrices beside cuBLAS's.
//
// Contract: the matrix is filled before every run, which is not timed; ours and the peer's runs
// alternate, each timed between two events. Figures are medians over `repeats` runs after one to
// warm up, whose factors are compared with the matrix.

#include <string>
#include <vector>

#include "bench/lu_bench.hpp"

namespace strata::bench {

struct LuInCoreRow {
  std::int64_t n = 0;
  double flops = 0;
  double seconds = 0;
  std::vector<double> all_seconds;
  double residual = 0;  ///< ‖P·A·v − L·U·v‖∞ / (‖A‖∞·‖v‖∞), of the last matrix
  PeerResult peer;
};

struct LuInCoreResult {
  std::string device;
  std::string model;
  std::vector<LuInCoreRow> rows;
};

/// Throws Error{misuse} for a device that is no GPU, several devices and an unknown peer;
/// Error{memory} if the device does not hold a matrix.
[[nodiscard]] LuInCoreResult run_lu_in_core(const LuBench& bench, const RunOptions& options);

}  // namespace strata::bench
