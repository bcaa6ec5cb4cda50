#pragma once
// bench qr: the kernels of tall and skinny QR in the memory of one device, beside one reading of
// the matrix and, on a GPU, beside cuBLAS and cuSOLVER.
//
// Contract: V is m × n, uniform in (−1, 1), in fp64. Each kernel is one call over all rows, timed
// between two events of a queue; figures are medians over `repeats` runs after one to warm up.
// `times_read` is over the time in which V is read once: on a GPU by a kernel that adds its
// elements up, measured in the same run; on a CPU by the largest element of each column.

#include <cstdint>
#include <string>
#include <vector>

#include "strata/options.hpp"

namespace strata::bench {

struct QrBench {
  std::int64_t m = 0;  ///< 0: 4,000,000 on a GPU, 100,000 on a CPU
  std::vector<std::int64_t> columns{10, 20, 30, 64, 128};
  int repeats = 5;
  bool peers = false;  ///< also the peers; needs the plugin and a GPU
  std::uint64_t seed = 1;
};

struct QrBenchRow {
  std::int64_t n = 0;
  std::string what;  ///< "gram", "gram dd", …; of the peers "cublas dgemm", …
  double seconds = 0;
  std::vector<double> all_seconds;
  double times_read = 0;
};

struct QrBenchResult {
  std::string device;
  std::string model;
  std::int64_t m = 0;
  std::vector<QrBenchRow> rows;  ///< by columns; the first of each is "read"
};

/// On the first device that the options name. Throws Error{memory} if V does not fit, and
/// Error{device} without a GPU where peers are asked for.
[[nodiscard]] QrBenchResult run_qr_bench(const QrBench& bench, const Options& options);

}  // namespace strata::bench
