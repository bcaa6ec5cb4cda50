#pragma once
// bench qr: the kernels of tall and skinny QR in the memory of one device, and whole calls of
// qr_in_place() on one or several, beside one reading of the matrix and beside cuBLAS and cuSOLVER
// or the BLAS and LAPACK of the host.
//
// Contract: V is m × n, in fp64 or fp32, uniform in (−1, 1) and so well-conditioned; or of another
// condition by columns that are nearly the first one. Each kernel is one call over all rows, timed
// between two events of a queue; figures are medians over `repeats` runs after one to warm up.
// `times_read` is over the time in which V is read once: on a GPU by a kernel that adds its
// elements up, measured in the same run; on a CPU by the largest element of each column. A whole
// call is qr_in_place(), with V in the memory of the device; its seconds are those from the call to
// the return. Peers work in place too, on all cores of a CPU. On several GPUs V is dealt to them
// in parts, and there are whole calls alone: `times_read` is then over the reading of the first
// part by its device.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/options.hpp"
#include "strata/qr.hpp"

namespace strata::bench {

struct QrBench {
  std::int64_t m = 0;  ///< 0: 4,000,000 on a GPU, 100,000 on a CPU
  std::vector<std::int64_t> columns{10, 20, 30, 64, 128};
  int repeats = 5;
  bool peers = false;              ///< also the peers; on a GPU the plugin is needed
  bool peers_if_possible = false;  ///< the same, but for floats and several devices
  std::vector<QrMethod> methods;   ///< whole calls
  bool verify = true;              ///< whole calls measure the orthogonality themselves
  double condition = 1;            ///< of V, to a small factor
  bool floats = false;             ///< V is in fp32; no peers
  bool deal_on_cpus = false;       ///< V in parts on CPUs too, whose memory is one: for tests
  std::uint64_t seed = 1;
};

struct QrBenchRow {
  std::int64_t n = 0;
  std::string what;  ///< "gram", "gram dd", …; of the peers "cublas dgemm", …
  double seconds = 0;
  std::vector<double> all_seconds;
  double times_read = 0;
  bool whole = false;  ///< a whole call, by us or by the peer
  /// Seconds of the peer's Householder QR over those of a whole call of qr(); 0: not measured.
  double ratio_to_peer = 0;
  /// The last whole call, without its trace; where calls do not verify, of one more that does.
  std::optional<QrInfo> info{};
  /// Medians over whole calls: the seconds in which no device computed, and those in which devices
  /// did nothing but add up sums of others.
  double waiting = 0;
  double reduction = 0;
};

struct QrBenchResult {
  std::string device;  ///< the first
  int devices = 1;     ///< to which V was dealt
  std::string model;
  std::int64_t m = 0;
  std::vector<QrBenchRow> rows;  ///< by columns; the first of each is "read"
};

/// On the devices that the options name, or the first of several CPUs. Throws Error{memory} if V
/// does not fit, Error{device} where peers are asked for that are not installed, and Error{misuse}
/// for peers of floats or on several devices.
[[nodiscard]] QrBenchResult run_qr_bench(const QrBench& bench, const RunOptions& options);

}  // namespace strata::bench
