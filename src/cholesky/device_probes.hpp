#pragma once
// DeviceProbes: the vectors of Lanczos on the devices of a factor.
//
// Contract: beside a TileFactor that is there, which outlives this. The vectors stay on the devices
// from step to step where there is room, and are let go of with this. A step that fails takes along
// what was only on the devices, the factor as well as the vectors. Not thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cholesky/lanczos_step.hpp"
#include "cholesky/log_determinant.hpp"
#include "cholesky/tile_factor.hpp"

namespace strata {

class DeviceProbes final : public ProbeVectors {
 public:
  /// `points`: n × d, ld = n, alive as long as this, of the covariance Σ with these parameters.
  DeviceProbes(TileFactor& factor, const double* points, const CovarianceParameters& parameters,
               const ProbeOptions& options);
  ~DeviceProbes() override;
  DeviceProbes(const DeviceProbes&) = delete;
  DeviceProbes& operator=(const DeviceProbes&) = delete;

  [[nodiscard]] std::int64_t n() const override { return problem_.n; }
  [[nodiscard]] ProbeSums step(std::span<const double> norms) override;
  /// What the last step did.
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }

 private:
  using Memory = std::shared_ptr<FamilyMemory>;

  void add_vectors();
  [[nodiscard]] std::vector<Memory> families_of(const BlockTable& blocks,
                                                std::span<const double> norms);

  TileFactor& factor_;
  const double* points_;
  CovarianceParameters parameters_;
  ProbeOptions options_;
  LanczosProblem problem_;
  Memory work_;
  std::vector<Memory> basis_;
  RunReport report_;
};

}  // namespace strata
