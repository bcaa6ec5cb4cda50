#pragma once
// MixedFactor: a covariance factored in several precisions, safely.
//
// Contract: runs a pilot factorization (pilot.hpp), makes a map of precisions from its norms,
// factors, and compares the norms that were met with those that were expected. Where larger tiles
// cost more than was asked for in all, or a probe of the factor finds that they do, it factors
// again with a finer map. With MixedPrecision::guard a factorization that takes long in FP64 is
// forecast first (mixed_forecast.hpp). What would take as long in lower precisions is done in FP64
// at once; one that fails is followed by one other in lower precisions at most, if that is still
// worth it. Tiles that were left out are never met, so random vectors tell whether the factor is as
// near as it should be; if it is not, with MixedPrecision::guard nothing is left out, then the
// accuracy is made finer, and without it the report says so. Ends in FP64 if nothing else does: the
// factor that it returns is positive definite and its tiles are within the accuracy that the report
// names, or FactorInfo says what is wrong with the covariance itself. Not thread-safe.

#include <memory>
#include <optional>
#include <string>

#include "cholesky/pilot.hpp"
#include "cholesky/tile_factor.hpp"
#include "strata/covariance_options.hpp"

namespace strata {

class MixedFactor {
 public:
  /// `points`: n × d, alive as long as this. `scout`: one of these points that was flown already;
  /// null: none. Throws as plan_path, and Error{misuse} for options that check_mixed_precision
  /// refuses.
  MixedFactor(MatrixView<const double> points, const CovarianceOptions& options,
              std::shared_ptr<const Scout> scout = nullptr);

  /// Factors the covariance of the points.
  const FactorInfo& factor(const CovarianceParameters& parameters);
  /// The factor of the last factorization; not to be called before the first one.
  [[nodiscard]] TileFactor& tiles() { return *factor_; }
  [[nodiscard]] const MixedReport& report() const noexcept { return report_; }
  /// ‖A‖∞ as the probe of the last factorization came by it, for an A without negative elements; 0
  /// if it ended in FP64.
  [[nodiscard]] double norm() const noexcept { return norm_; }

 private:
  /// What a factorization showed of its map.
  struct Verdict {
    bool again = false;
    std::int64_t raised = 0;
  };

  [[nodiscard]] MixedPrecision decide(MixedPrecision asked, const TileNorms& norms,
                                      const DeviceModel& device);
  [[nodiscard]] MixedPrecision next_try(MixedPrecision asked, const Verdict& verdict,
                                        const TileNorms& norms);
  void factor_with(const MixedPrecision& asked, const TileNorms& norms,
                   const CovarianceParameters& parameters);
  void factor_in_fp64(const CovarianceParameters& parameters, const std::string& why);
  [[nodiscard]] Verdict judge(TileNorms& norms) const;
  [[nodiscard]] bool passes_probe(const MixedPrecision& asked, const TileNorms& norms,
                                  const CovarianceParameters& parameters);
  void describe(const PrecisionMap* map);

  MatrixView<const double> points_;
  CovarianceOptions options_;
  std::shared_ptr<const Scout> scout_;  ///< the last
  std::shared_ptr<DeviceSet> devices_;
  CholeskyProblem problem_;
  std::optional<TileFactor> factor_;
  MixedReport report_;
  double norm_ = 0;
  bool decided_ = false;  ///< it was decided beforehand what is worth trying
};

}  // namespace strata
