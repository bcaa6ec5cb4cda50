#include "cholesky/mixed_factor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "cholesky/cholesky_candidates.hpp"
#include "cholesky/mixed_forecast.hpp"
#include "dense/dense_block.hpp"
#include "scalar/fp8.hpp"
#include "session/budget.hpp"

namespace strata {
namespace {

/// Points of a tile that the pilot takes: a quarter of them, within these bounds.
constexpr std::int64_t kPilotMin = 80;
constexpr std::int64_t kPilotMax = 256;
/// What rounding may cost more than planned, where tiles turn out larger than expected, before the
/// factorization is done again.
constexpr double kNormSlack = 2;
/// How many times (ε‖A‖_F)² over the smallest pivot a probe may find beside kProbeMost.
constexpr double kProbeSecond = 16;
constexpr double kAccuracyMax = 1e-3;
/// Factorizations that are done again, at most: where it was decided beforehand what is worth
/// trying, and where they are too short for that.
constexpr int kRetriesDecided = 1;
constexpr int kRetriesShort = 4;

std::int64_t pilot_points(std::int64_t tile) {
  return std::min(std::clamp(tile / 4, kPilotMin, kPilotMax), tile);
}

/// Kernels in few bits are short: on a GPU it takes more queues than in FP64 to keep it busy (an
/// H200 factored 102,400 weakly correlated points in 0.39 s with four, in 0.59 s with two).
CovarianceOptions with_queues(CovarianceOptions options) {
  constexpr int kQueues = 4;
  const std::vector<DeviceChoice> choices = choose_all_devices(options.run.devices);
  const bool gpus = std::all_of(choices.begin(), choices.end(), [&](const DeviceChoice& choice) {
    return backend_named(choice.backend, options.run.devices).kind() == DeviceKind::gpu;
  });
  if (options.run.compute_queues == 0 && gpus) options.run.compute_queues = kQueues;
  return options;
}

}  // namespace

MixedFactor::MixedFactor(MatrixView<const double> points, const CovarianceOptions& options,
                         std::shared_ptr<const Scout> scout)
    : points_(points),
      options_(with_queues(options)),
      scout_(std::move(scout)),
      devices_(std::make_shared<DeviceSet>(options_.run, options_.path)) {
  check_mixed_precision(options.mixed);
  problem_.n = points.rows;
  problem_.point_dimensions = points.cols;
  const Machine& machine = devices_->machine();
  problem_.devices = static_cast<int>(machine.devices.size());
  problem_.tile = options.tile > 0 ? options.tile : reproducible_tile(problem_, machine);
  problem_.formats.single = is_cpu(machine) ? Element::fp32 : Element::fp16x2;
}

const FactorInfo& MixedFactor::factor(const CovarianceParameters& parameters) {
  if (factor_) factor_->let_go();
  report_ = {};
  norm_ = 0;
  report_.accuracy_asked = options_.mixed.accuracy;
  MixedPrecision asked = options_.mixed;
  std::optional<TileNorms> scouted;
  const DeviceModel device = deciding_device(options_);
  decided_ = asked.guard && worth_deciding(problem_.n, device.kind);
  if (decided_) {
    if (!scout_ || !scout_->is_of(problem_.tile, parameters))
      scout_ = std::make_shared<const Scout>(fly_scout(points_, problem_.tile, parameters));
    const Scout& scout = *scout_;
    if (scout.factor.ok) {
      asked = decide(asked, *(scouted = scout.norms), device);
      report_.pilot_seconds = scout.seconds;
    }
    if (!asked.on()) {
      factor_in_fp64(parameters, report_.note);
      return factor_->info();
    }
  }
  Pilot pilot = fly_pilot(points_, problem_.tile, pilot_points(problem_.tile), parameters, options_,
                          devices_);
  report_.pilot_seconds += pilot.seconds;
  if (!pilot.factor.ok) {
    factor_in_fp64(parameters, "the covariance of a sample of the points is not positive definite");
    return factor_->info();
  }
  if (asked.guard) {
    const MixedPrecision borne = bearable(pilot.norms, asked, problem_.n);
    if (borne.accuracy < asked.accuracy) {
      report_.note = "the smallest pivot bears no coarser accuracy";
      asked = scouted && borne.on() ? decide(borne, *scouted, device) : borne;
    }
  }
  while (asked.on()) {
    factor_with(asked, pilot.norms, parameters);
    const Verdict verdict = judge(pilot.norms);
    if (!verdict.again) {
      if (passes_probe(asked, pilot.norms, parameters)) return factor_->info();
      if (!asked.guard && verdict.raised == 0) {
        report_.note = "a probe found more than the accuracy allows, and the guard is off";
        return factor_->info();
      }
    }
    report_.raised_tiles += verdict.raised;
    asked = next_try(asked, verdict, pilot.norms);
  }
  factor_in_fp64(parameters, report_.note);
  return factor_->info();
}

/// What is asked for, with an accuracy that the sums of the devices have; 0 where FP64 is predicted
/// to be as fast.
MixedPrecision MixedFactor::decide(MixedPrecision asked, const TileNorms& norms,
                                   const DeviceModel& device) {
  asked = bearable(norms, asked, problem_.n);
  if (asked.accuracy < options_.mixed.accuracy)
    report_.note = "the smallest pivot bears no coarser accuracy";
  if (!asked.on()) return asked;
  const MixedForecast best =
      best_forecast(norms, asked, problem_.n, problem_.formats.single, device);
  if (!best.usable()) {
    report_.note =
        best.passes ? fmt::format("lower precisions are predicted to take {:.2g} s, FP64 {:.2g} s",
                                  best.seconds, best.fp64_seconds)
                    : "sums in lower precisions are predicted not to be as accurate as was asked";
    asked.accuracy = 0;
  } else if (best.asked.accuracy < asked.accuracy) {
    report_.note = "sums in lower precisions are predicted not to be as accurate as a coarser one";
    asked = best.asked;
  } else if (options_.order == PointOrder::coarse) {
    report_.note = "a coarse tile of points comes first";
  }
  return asked;
}

/// After a factorization that is not what it should be; with an accuracy of 0 there is no other in
/// lower precisions. `norms` are those that were met.
MixedPrecision MixedFactor::next_try(MixedPrecision asked, const Verdict& verdict,
                                     const TileNorms& norms) {
  const bool raised = verdict.raised > 0 && factor_->info().ok;
  std::string why;
  if (raised) {
    why = "tiles kept being larger than expected";
  } else if (!verdict.again && !asked.keep_all && asked.rule == PrecisionRule::factor) {
    // No norm that was met says why: tiles that were left out were never formed.
    asked.keep_all = true;
    why = "tiles or products that were left out are not small";
  } else {
    // Which rounding is to blame is not known; all of it becomes smaller.
    asked.accuracy /= 16;
    why = verdict.again ? "a pivot failed, so the accuracy was made finer"
                        : "a probe found more than the accuracy allows, so it was made finer";
  }
  const int retries = ++report_.retries;
  bool again =
      asked.accuracy >= kAccuracyMin && retries < (decided_ ? kRetriesDecided + 1 : kRetriesShort);
  if (again && decided_) {
    // What was met says what the next one takes; a cause that is not known may come back.
    again = raised &&
            forecast(norms, asked, problem_.n, problem_.formats.single, deciding_device(options_))
                .worth_having;
  }
  if (!again) {
    asked.accuracy = 0;
    report_.note = "lower precisions failed: " + why;
  } else if (!raised) {
    report_.note = why;
  }
  return asked;
}

void MixedFactor::factor_with(const MixedPrecision& asked, const TileNorms& norms,
                              const CovarianceParameters& parameters) {
  auto map = std::make_shared<const PrecisionMap>(norms, asked);
  const TileFormats formats{map, problem_.formats.single};
  // What was planned for the same map is used again, with the memory of its tiles.
  const TileFormats& before = factor_ ? factor_->problem().formats : problem_.formats;
  if (!factor_ || before.map == nullptr || !before.map->same_as(*map)) {
    CholeskyProblem problem = problem_;
    problem.formats = formats;
    CovarianceOptions options = options_;
    // No page of its home is written then.
    if (factor_stays(problem, devices_->machine())) options.run.host_pinning = HostPinning::never;
    if (factor_) factor_->let_go();
    factor_.reset();
    factor_.emplace(problem, options, devices_);
  }
  (void)factor_->factor_covariance(points_.data, parameters);
  report_.accuracy = asked.accuracy;
  describe(factor_->problem().formats.map.get());
}

void MixedFactor::factor_in_fp64(const CovarianceParameters& parameters, const std::string& why) {
  norm_ = 0;
  report_.accuracy = 0;
  report_.probe = std::numeric_limits<double>::quiet_NaN();
  report_.note = why;
  if (!factor_ || factor_->problem().formats.map != nullptr) {
    CholeskyProblem problem = problem_;
    problem.formats = {};
    if (factor_) factor_->let_go();
    CovarianceOptions options = options_;
    options.tile = problem_.tile;
    factor_.reset();
    factor_.emplace(problem, options, devices_);
  }
  (void)factor_->factor_covariance(points_.data, parameters);
  describe(nullptr);
}

/// Compares the tiles with what was expected of them; `norms` become those that were met where
/// these are larger.
MixedFactor::Verdict MixedFactor::judge(TileNorms& norms) const {
  const PrecisionMap& map = *factor_->problem().formats.map;
  const std::vector<TileNorm> met = factor_->measured_norms();
  const double fp8_max = std::ldexp(Fp8::kMax, -map.fp8_exponent());
  const double fp16_max = std::ldexp(65504.0, -map.fp16_exponent());
  Verdict verdict{.again = !factor_->info().ok};
  for (std::int64_t j = 0; j < map.tiles(); ++j) {
    for (std::int64_t i = j + 1; i < map.tiles(); ++i) {
      const std::size_t at = norms.at(i, j);
      const double norm = std::sqrt(met[at].square);
      // After a pivot that is barely positive or an overflow nothing that follows means anything.
      if (!std::isfinite(norm)) {
        verdict.again = true;
        continue;
      }
      const double most = map.stored(i, j) == TilePrecision::fp8 ? fp8_max : fp16_max;
      const bool overflow = map.stored(i, j) != TilePrecision::fp64 && met[at].largest > most;
      if (overflow) {
        ++verdict.raised;
        verdict.again = true;
      }
      if (!factor_->info().ok) continue;
      norms.factor[at] = std::max(norms.factor[at], norm);
      norms.largest[at] = std::max(norms.largest[at], met[at].largest);
      // L_ij·L_jjᵀ is what the tiles before leave of A_ij: about as large as this, or twice.
      const double left = norm * norms.factor[norms.at(j, j)] / std::sqrt(problem_.tile);
      norms.matrix[at] = std::max(norms.matrix[at], left / 2);
    }
  }
  if (!factor_->info().ok) return verdict;
  // With the norms that were met, and a tolerance that is wider by the slack. A tile in few bits is
  // mostly larger because of the rounding of what was subtracted from it, which no finer format of
  // its own mends: so it counts whether all tiles together cost more than was asked for, and
  // otherwise what the probe finds.
  MixedPrecision wider = map.asked();
  wider.accuracy = std::min(kNormSlack * wider.accuracy, kAccuracyMax);
  const std::int64_t raised = PrecisionMap(norms, wider).finer_than(map);
  verdict.raised += raised;
  verdict.again = verdict.again || (raised > 0 && map.error_with(norms) > wider.accuracy);
  return verdict;
}

/// Whether L·Lᵀ is A to the accuracy, as far as a few random vectors tell: with signs x at random
/// and E = A − L·Lᵀ, ‖L⁻¹·A·x‖² − xᵀ·A·x = xᵀ·E·x + ‖L⁻¹·E·x‖², whose first term is tr E and
/// √2·‖E − diag E‖_F times about a standard normal variate (Hutchinson 1990). It costs what
/// generating the matrix does, and a sweep; the norms of tiles cannot tell it, since those that are
/// left out are never formed.
bool MixedFactor::passes_probe(const MixedPrecision& asked, const TileNorms& norms,
                               const CovarianceParameters& parameters) {
  constexpr std::int64_t kVectors = 4;
  constexpr std::uint64_t kSeed = 1990;
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t n = problem_.n;
  // Ones beside them: their product says ‖A‖∞, which refinements need.
  std::vector<double> signs(static_cast<std::size_t>(n * (kVectors + 1)), 1.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n * kVectors); ++i)
    signs[i] = (random_bits(kSeed, i) & 1) != 0 ? 1.0 : -1.0;
  std::vector<double> product(signs.size());
  const MatrixView<double> y{product.data(), n, kVectors + 1, std::max<std::int64_t>(n, 1)};
  (void)factor_->multiply_covariance(
      {points_.data, &parameters, {signs.data(), n, kVectors + 1, y.ld}, y});
  norm_ = norm_inf(n, y.column(kVectors));
  product.resize(static_cast<std::size_t>(n * kVectors));
  std::vector<double> whitened = product;
  (void)factor_->sweep(Sweep::forward, MatrixView<double>{whitened.data(), n, kVectors, y.ld});
  const double error = asked.accuracy * norms.frobenius;
  report_.probe = 0;
  for (std::int64_t c = 0; c < kVectors; ++c) {
    double difference = 0;
    for (auto i = static_cast<std::size_t>(c * n); i < static_cast<std::size_t>((c + 1) * n); ++i)
      difference += whitened[i] * whitened[i] - signs[i] * product[i];
    const double found = std::fabs(difference) / error;
    if (!(found <= report_.probe)) report_.probe = found;  // NaN, too
  }
  report_.probe_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report_.probe <= kProbeMost + kProbeSecond * error / norms.smallest_pivot;
}

void MixedFactor::describe(const PrecisionMap* map) {
  report_.rows = (problem_.n + problem_.tile - 1) / problem_.tile;
  report_.map.assign(static_cast<std::size_t>(report_.rows * (report_.rows + 1) / 2),
                     TilePrecision::fp64);
  if (map == nullptr) {
    const std::int64_t t = report_.rows;
    report_.tiles = {t * (t - 1) / 2};
    report_.products = {static_cast<double>(t * (t - 1) * (t - 2) / 6) +
                        0.5 * static_cast<double>(t * (t - 1) / 2)};
    return;
  }
  report_.tiles = map->tile_counts();
  report_.products = map->product_counts();
  std::size_t at = 0;
  for (std::int64_t j = 0; j < map->tiles(); ++j) {
    for (std::int64_t i = j; i < map->tiles(); ++i) report_.map[at++] = map->stored(i, j);
  }
}

}  // namespace strata
