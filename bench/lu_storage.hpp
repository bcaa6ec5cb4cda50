#pragma once
// bench lu --storage: LU of a generated matrix in files, beside what the disks can do.
//
// Contract: elements are uniform in [−0.5, 0.5) by seed, made as they are asked for. The rates of
// the directories are measured in the same run, by a file of the same kind; `bound_seconds` is what
// the plan's bytes take at them, in each direction for itself. The files are gone afterwards. By
// stripes the same matrix comes by rows, and a solution is not refined.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/lu_bench.hpp"

namespace strata::bench {

struct LuStorageRow {
  std::int64_t n = 0;
  RunReport run;
  double total_seconds = 0;  ///< with the passes over A before, and the planning
  double read_rate = 0;      ///< bytes per second
  double write_rate = 0;
  double bound_seconds = 0;
  double solve_seconds = 0;     ///< of one right-hand side; by stripes of back substitution
  double largest_residual = 0;  ///< max |A·x − b|
  double hpl_residual = 0;
  double growth = 0;
  std::string how;
  std::string refusal;  ///< why stripes have no solution; empty: they have
};

/// In a new folder of each of RunOptions::storage.directories.
[[nodiscard]] std::vector<LuStorageRow> run_lu_storage(const LuBench& bench,
                                                       const LuOptions& options);

}  // namespace strata::bench
