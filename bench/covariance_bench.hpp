#pragma once
// bench covariance: how fast a block of a Matérn covariance matrix is generated, beside how fast
// the device can write.
//
// Contract: an n × n block of the covariances of two sets of points, drawn at random in the unit
// square, with a range of 0.1 and coordinates in double; it is written to the memory of one device
// and stays there. Timed between two events of a queue; figures are medians over `repeats` runs
// after one to warm up. The device's bandwidth is that of a copy inside its memory, in the same
// bytes and the same run: bytes read and bytes written count, so that a kernel that only writes can
// come near it. The leading elements are compared with the reference's.

#include <cstdint>
#include <string>
#include <vector>

#include "strata/element.hpp"
#include "strata/options.hpp"

namespace strata::bench {

struct CovarianceBench {
  std::int64_t n = 0;  ///< 0: 16,384 on a GPU, 1,024 on a CPU
  std::vector<double> smoothness{0.5, 1.5, 2.5, 1.0, 0.7};
  std::vector<Element> precisions{Element::fp64, Element::fp32};  ///< of the elements
  int repeats = 5;
  std::uint64_t seed = 1;
};

struct CovarianceRow {
  Element precision = Element::fp64;
  double smoothness = 0.5;
  double seconds = 0;  ///< the median
  std::vector<double> all_seconds;
  double elements_per_second = 0;
  double bytes_per_second = 0;  ///< written
  double share_of_copy = 0;     ///< bytes_per_second over the result's copy_bytes_per_second
  double relative_error = 0;    ///< the largest, of at most 48 × 48 elements
};

struct CovarianceResult {
  std::string device;
  std::string model;
  std::int64_t n = 0;
  double copy_bytes_per_second = 0;  ///< read and written, the sum
  std::vector<CovarianceRow> rows;   ///< by precision, then by smoothness
};

/// On the first device that the options name. Throws Error{memory} if the block does not fit, and
/// Error{misuse} for a smoothness outside (0, 50].
[[nodiscard]] CovarianceResult run_covariance_bench(const CovarianceBench& bench,
                                                    const RunOptions& options);

}  // namespace strata::bench
