// Method: products are counted by the elements they are done in and divided by the device's rates,
// solves by those of their sums. The error E = A − L·Lᵀ has two parts. What the map allows, by
// rounding and leaving out, is about ε‖A‖_F, since that is what it was made for. The other does not
// depend on ε: tensor cores cut off what they add, so that a sum of products comes out too small by
// a share of it that grows with its length (kernels/dense/tile_scales.hpp). On the diagonal, where
// sums are of squares, tr E is that share of Σ‖L_ik‖² over the tiles that are multiplied there;
// below it ‖E_ij‖ is at most the share times Σ_k ‖L_ik·L_jkᵀ‖. A probe finds |tr E| and √2·‖E‖_F
// times a standard normal variate, the largest of four of which is about 1.

#include "cholesky/mixed_forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cholesky/tile_formats.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/tile_scales.hpp"
#include "schedule/machine_model.hpp"
#include "strata/detect.hpp"

namespace strata {
namespace {

/// By which share of itself a sum of one sign of so many products comes out too small, for each of
/// them (H200: 3e-6 for 2048).
constexpr double kCutOff = 3e-6 / 2048;
/// What a probe finds of an error within the tolerance: as a rule less (docs/benchmarks.md).
constexpr double kProbeOfMap = 2;
/// What a forecast of the probe may be short of.
constexpr double kForecastSlack = 1.5;
/// The share of FP64's seconds that lower precisions may take: the pilot, the probe, refined solves
/// and probes of the log-determinant take the rest.
constexpr double kWorthHaving = 0.75;

/// Device-seconds of `flops` of products of whole tiles.
double product_seconds(const DeviceModel& device, Element sum, Element operand, std::int64_t tile,
                       double flops) {
  const auto t = static_cast<double>(tile);
  const double call = 2 * t * t * t;
  const Elements elements{sum, operand, operand};
  return flops / call * kernel_seconds(device, gemm, elements, call) *
         kernel_share(device, gemm, elements, call);
}

/// Walks over the products of a map.
class Forecaster {
 public:
  Forecaster(const PrecisionMap& map, Element single, const DeviceModel& device)
      : map_(map), norms_(map.norms()), formats_{nullptr, single}, device_(device) {}

  void add_tile(std::int64_t i, std::int64_t j) {
    if (i != j && map_.stored(i, j) == TilePrecision::none) return;
    const Element sum = map_.wide(i, j) ? Element::fp64 : Element::fp32;
    double cut_off = 0;
    for (std::int64_t k = 0; k < j; ++k) {
      const auto operands = map_.product(i, j, k);
      const TilePrecision finest = std::min(operands[0], operands[1]);
      if (finest == TilePrecision::none) continue;
      flops_[sum == Element::fp64 ? 0 : 1][static_cast<std::size_t>(finest)] += i == j ? 1 : 2;
      if (finest != TilePrecision::fp64)
        cut_off += size_of(i, k) * size_of(j, k) * (i == j ? 1 : likeness(i, j, k));
    }
    if (i != j) solves_[sum == Element::fp64 ? 0 : 1] += 1;
    if (formats_.single != Element::fp16x2) return;
    if (i == j) {
      trace_ += kCutOff * static_cast<double>(kLongestDiagonalSum) * cut_off;
    } else {
      const auto longest = std::min(longest_sum(map_.asked().accuracy), norms_.tile);
      const double error = kCutOff * static_cast<double>(longest) * cut_off;
      square_ += 2 * error * error;
    }
  }

  [[nodiscard]] double size_of(std::int64_t i, std::int64_t k) const {
    return norms_.factor[norms_.at(i, k)];
  }
  /// ‖L_ik·L_jkᵀ‖ over ‖L_ik‖·‖L_jk‖, about.
  [[nodiscard]] double likeness(std::int64_t i, std::int64_t j, std::int64_t k) const {
    if (norms_.coherence.empty()) return 1;
    return std::sqrt(norms_.coherence[norms_.at(i, k)] * norms_.coherence[norms_.at(j, k)]);
  }

  [[nodiscard]] double probe() const {
    const double allowed = map_.asked().accuracy * norms_.frobenius;
    return kProbeOfMap + (trace_ + std::sqrt(2 * square_)) / allowed;
  }

  [[nodiscard]] double seconds() const {
    const auto t = static_cast<double>(norms_.tile);
    const double cube = t * t * t;
    double sum = 0;
    for (const int width : {0, 1}) {
      const Element into = width == 0 ? Element::fp64 : Element::fp32;
      for (const TilePrecision p :
           {TilePrecision::fp64, TilePrecision::fp32, TilePrecision::fp16, TilePrecision::fp8}) {
        const double flops = flops_[width][static_cast<std::size_t>(p)] * cube;
        if (flops > 0)
          sum += product_seconds(device_, into, formats_.element(p), norms_.tile, flops);
      }
      const Element solver = width == 0 ? Element::fp64 : formats_.single;
      sum += product_seconds(device_, into, solver, norms_.tile, solves_[width] * cube);
    }
    // Diagonal tiles.
    sum += product_seconds(device_, Element::fp64, Element::fp64, norms_.tile,
                           static_cast<double>(norms_.tiles) * cube / 3);
    return sum;
  }

 private:
  const PrecisionMap& map_;
  const TileNorms& norms_;
  TileFormats formats_;
  const DeviceModel& device_;
  std::array<std::array<double, kTilePrecisions>, 2> flops_{};  // in tile³, by sum and operand
  std::array<double, 2> solves_{};
  double trace_ = 0;
  double square_ = 0;
};

}  // namespace

bool worth_deciding(std::int64_t n, DeviceKind kind) {
  constexpr double kFlopsOfCore = 3e10;
  constexpr double kFlopsOfGpu = 5e13;
  const auto order = static_cast<double>(n);
  return order * order * order / 3 >= (kind == DeviceKind::gpu ? kFlopsOfGpu : kFlopsOfCore);
}

DeviceModel deciding_device(const CholeskyOptions& options) {
  DeviceModel device =
      detect_machine(options.run.devices, options.run.device_memory_bytes).devices.front();
  if (options.path == CholeskyPath::planned || !options.run.rates) return device;
  if (const DeviceModel* measured = measured_model(*options.run.rates, device)) {
    device.flops_per_second = measured->flops_per_second;
    device.kernels = measured->kernels;
  }
  return device;
}

double fp64_seconds(std::int64_t n, std::int64_t tile, const DeviceModel& device) {
  const auto order = static_cast<double>(n);
  return product_seconds(device, Element::fp64, Element::fp64, tile, order * order * order / 3);
}

MixedForecast forecast(const TileNorms& norms, const MixedPrecision& asked, std::int64_t n,
                       Element single, const DeviceModel& device) {
  const PrecisionMap map(norms, asked);
  Forecaster all(map, single, device);
  for (std::int64_t j = 0; j < map.tiles(); ++j) {
    for (std::int64_t i = j; i < map.tiles(); ++i) all.add_tile(i, j);
  }
  MixedForecast out;
  out.asked = asked;
  out.seconds = all.seconds();
  out.fp64_seconds = fp64_seconds(n, norms.tile, device);
  out.probe = all.probe();
  out.passes = kForecastSlack * out.probe <= kProbeMost;
  out.worth_having = out.seconds <= kWorthHaving * out.fp64_seconds;
  return out;
}

MixedForecast best_forecast(const TileNorms& norms, const MixedPrecision& asked, std::int64_t n,
                            Element single, const DeviceModel& device) {
  MixedPrecision finer = asked;
  MixedForecast found = forecast(norms, finer, n, single, device);
  while (!found.passes && finer.accuracy / 16 >= kAccuracyMin) {
    finer.accuracy /= 16;
    found = forecast(norms, finer, n, single, device);
  }
  return found;
}

MixedPrecision bearable(const TileNorms& norms, const MixedPrecision& asked, std::int64_t n) {
  MixedPrecision out = asked;
  const double rms = norms.frobenius / std::sqrt(static_cast<double>(n));
  const double most = 0.05 * norms.smallest_pivot / rms;
  if (out.accuracy > most) out.accuracy = most >= kAccuracyMin ? most : 0;
  return out;
}

MixedForecast forecast_order(const Scout& scout, std::int64_t n, const MixedPrecision& asked,
                             const DeviceModel& device) {
  MixedForecast none;
  none.fp64_seconds = none.seconds = fp64_seconds(n, scout.norms.tile, device);
  if (!scout.factor.ok) return none;
  const MixedPrecision borne = bearable(scout.norms, asked, n);
  if (!borne.on()) return none;
  const Element single = device.kind == DeviceKind::cpu ? Element::fp32 : Element::fp16x2;
  return best_forecast(scout.norms, borne, n, single, device);
}

}  // namespace strata
