#pragma once
// How the covariance of a Gaussian process is to be factored: what Cholesky takes, the precisions
// of its tiles, and the order of its points.
//
// Contract: pure data.

#include <cstdint>
#include <optional>

#include "strata/cholesky.hpp"
#include "strata/mixed_precision.hpp"

namespace strata {

/// In which order points stand in the covariance matrix. It changes no likelihood but the rounding;
/// points that are close should be close in the order where far tiles are to be small.
enum class PointOrder : std::uint8_t {
  none,     ///< as they are given
  hilbert,  ///< along a Hilbert curve
  kd,       ///< a tile is a box of points, by halving
  coarse,   ///< first a tile of points that are far from each other, then the others as by kd
};

/// How it is estimated what lower precisions leave unsaid of a log-determinant.
struct Probing {
  int probes = 32;  ///< random vectors, at least 2; 0: it is not
  std::uint64_t seed = 1;
};

/// How the covariance of a Gaussian process is factored.
struct CovarianceOptions : CholeskyOptions {
  MixedPrecision mixed{};  ///< tiles and products in fewer bits than FP64
  /// Order of the points, by their coordinates in space. Absent: as given; with `mixed` kd, or
  /// coarse where one covariance is evaluated and that is predicted to be faster.
  std::optional<PointOrder> order{};
  Probing probing{};  ///< of log-likelihoods, with `mixed`
};

}  // namespace strata
