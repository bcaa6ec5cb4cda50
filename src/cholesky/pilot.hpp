#pragma once
// The pilot: what a factorization of a few points of each tile says of the whole.
//
// Contract: norms are estimates. For a covariance that falls with distance those of L are bounds,
// nearly: with fewer points less of a far tile is explained by the tiles between (measured; see
// docs/numerics.md). They are compared with the true ones after the run.

#include <memory>

#include "cholesky/precision_map.hpp"
#include "kernels/covariance/covariance.hpp"
#include "run/device_set.hpp"
#include "strata/cholesky.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

struct Pilot {
  FactorInfo factor;  ///< of the covariance of the points that were taken
  TileNorms norms;    ///< of the whole
  double seconds = 0;
};

/// A pilot on the host, of so few points of each tile that it tells orders and accuracies apart
/// before anything is done on the devices; it fills in TileNorms::coherence, too.
struct Scout : Pilot {
  CovarianceParameters parameters{};  ///< of the covariance

  /// Whether it would say the same of the same points in such tiles.
  [[nodiscard]] bool is_of(std::int64_t tile, const CovarianceParameters& of) const {
    return norms.tile == tile && parameters == of;
  }
};
[[nodiscard]] Scout fly_scout(MatrixView<const double> points, std::int64_t tile,
                              const CovarianceParameters& parameters);

/// Takes `per_tile` points of each tile, evenly by their numbers, and factors their covariance in
/// FP64 on the devices. `points`: n × d, in tiles of `tile` rows.
[[nodiscard]] Pilot fly_pilot(MatrixView<const double> points, std::int64_t tile,
                              std::int64_t per_tile, const CovarianceParameters& parameters,
                              const CholeskyOptions& options, std::shared_ptr<DeviceSet> devices);

}  // namespace strata
