#pragma once
// bench cholesky --in-core: our in-core factorization alone, on matrices that lie in the memory of
// the device already, beside the peer's of the same memory.
//
// Contract: the matrix (test_matrix.hpp) is filled before every run, which is not timed;
// ours and the peer's runs alternate. Ours is timed between two events of its queue, the peer's
// likewise (magma: by the clock of the host). Figures are medians over `repeats` runs after one to
// warm up, whose factors, ours and the peer's, are compared with the matrix. One device only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/cholesky_bench.hpp"
#include "bench/in_place.hpp"
#include "kernels/dense/potrf.hpp"
#include "run/device_set.hpp"

namespace strata::bench {

/// Matrices in memory of the first device that the options name, and our factorization of them.
class InCoreSite {
 public:
  /// Throws Error{memory} if the device's budget does not hold them.
  InCoreSite(const CholeskyOptions& options, std::int64_t n, std::int64_t count, Element precision);
  InCoreSite(const InCoreSite&) = delete;  // `matrices` points into it
  InCoreSite& operator=(const InCoreSite&) = delete;

  [[nodiscard]] const Matrices& matrices() const noexcept { return matrices_; }
  [[nodiscard]] DeviceSet& devices() noexcept { return devices_; }
  /// Factors them once, one call of potrf or of potrf_batched where there are several; returns the
  /// seconds. Throws Error{misuse} if the backend has no such blocking, Error{numerical} for a bad
  /// pivot.
  double factor(const PotrfOptions& options);

 private:
  DeviceSet devices_;
  Matrices matrices_;
  Buffer memory_;
  Buffer statuses_;
  Buffer entries_;
  std::unique_ptr<Queue> queue_;
};

struct InCoreBench {
  std::vector<std::int64_t> sizes;
  Element precision = Element::fp64;
  int repeats = 5;
  TestMatrix matrix;
  std::string peer;  ///< "", or one of the device: "openblas"; "cusolver", "magma"
  int peer_threads = 0;
  std::vector<PotrfVariant> variants;  ///< empty: the one of the options
  int ib = 0;                          ///< 0: the backend's choice; 4 or 8
  std::int64_t batch = 0;              ///< matrices at a time by potrf_batched; 0: one by potrf
  double gemm_seconds = 0;             ///< of measuring GEMM beside it; 0: not measured
};

struct InCoreRow {
  Matrices matrices;
  PotrfOptions options;  ///< what was asked for, with the tuning table; zeros: the backend's choice
  double seconds = 0;    ///< the median
  std::vector<double> all_seconds{};
  double residual = 0;                   ///< of the last matrix
  std::int64_t extra_device_bytes = -1;  ///< memory that ours took beside them; −1: not known
  PeerResult peer{};                     ///< the same for all variants of an order
};

struct InCoreResult {
  std::string device;  ///< "cuda:0"
  std::string model;
  std::vector<InCoreRow> rows;
  double gemm_flops_per_second = 0;  ///< sustained for gemm_seconds, after the rows
};

/// The helper for the device that `options` name; `peer`: "" for the device's own. Throws
/// Error{misuse} for several devices and for a peer that does not work in the device's memory.
[[nodiscard]] std::unique_ptr<InPlace> make_in_place(const RunOptions& options,
                                                     const std::string& peer, int peer_threads);

/// "exclusive", and what to_string(CholeskyVariant) and parse_variant() have.
[[nodiscard]] const char* to_string(PotrfVariant variant) noexcept;
[[nodiscard]] PotrfVariant parse_potrf_variant(const std::string& name);

/// Throws what make_in_place throws, and Error{misuse} for a batch beside magma and for an ib that
/// does not exist.
[[nodiscard]] InCoreResult run_in_core_bench(const InCoreBench& bench,
                                             const CholeskyOptions& options);

[[nodiscard]] double median(std::vector<double> values);

}  // namespace strata::bench
