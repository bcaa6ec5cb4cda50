#pragma once
// Other people's factorizations, run in the same process on the same matrix.

#include <memory>
#include <string>

#include "bench/cholesky_bench.hpp"

namespace strata::bench {

class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;
  /// "openblas dpotrf, 2 threads", and what its time covers.
  [[nodiscard]] virtual std::string name(Precision precision) const = 0;
  [[nodiscard]] virtual std::string what() const = 0;
  /// Fills the matrix (not timed) and factors it once; returns the seconds. Throws Error.
  [[nodiscard]] virtual double factor(std::int64_t n, Precision precision, std::uint64_t seed) = 0;
};

/// nullptr for "". Throws Error{misuse} for an unknown name and Error{device} if the peer is not
/// installed here.
[[nodiscard]] std::unique_ptr<Peer> make_peer(const std::string& name, int threads);

/// What libstrata_peers_cuda.so exports: factors the benchmark's matrix with cusolverDnXpotrf on
/// device 0, in place in device memory, `runs` times (each on a fresh copy), and writes the seconds
/// of each. Returns 0, or −1 with a message.
using CusolverPotrf = int (*)(std::int64_t n, bool fp32, std::uint64_t seed, int runs,
                              double* seconds, char* message, std::int64_t message_bytes);

}  // namespace strata::bench
