#pragma once
// MixedForecast: what a factorization in several precisions will take, and how near its factor will
// be, before there is one.
//
// Contract: arithmetic alone, from a map of precisions and the rates of one device: how many
// devices there are, and how much memory, has no say in what is decided by it, nor so in the bits
// of a factor. Transfers and what is O(n²) are left out.

#include "cholesky/pilot.hpp"
#include "strata/cholesky.hpp"
#include "strata/machine.hpp"

namespace strata {

struct MixedForecast {
  MixedPrecision asked{};    ///< with the accuracy that the factor is to be made with
  double seconds = 0;        ///< on one device
  double fp64_seconds = 0;   ///< of the same matrix in FP64, there
  double probe = 0;          ///< MixedReport::probe, about
  bool passes = false;       ///< the probe will find no more than the accuracy allows
  bool worth_having = true;  ///< faster than FP64 by more than checking it takes

  [[nodiscard]] bool usable() const noexcept { return passes && worth_having; }
};

/// Whether it is decided beforehand what is worth trying: where FP64 takes about a second or more
/// of a core or a GPU. A shorter factorization is over before one could.
[[nodiscard]] bool worth_deciding(std::int64_t n, DeviceKind kind);

/// The device by whose rates it is decided: the first of the options', with their rates unless the
/// run is to be reproducible.
[[nodiscard]] DeviceModel deciding_device(const CholeskyOptions& options);

/// What a map made of these norms takes on `device`, and what its probe will find: `single` as in
/// TileFormats.
[[nodiscard]] MixedForecast forecast(const TileNorms& norms, const MixedPrecision& asked,
                                     std::int64_t n, Element single, const DeviceModel& device);

/// The coarsest accuracy, from that of `asked` in steps of 16, whose factor will pass its probe; if
/// none does, the last one that was looked at.
[[nodiscard]] MixedForecast best_forecast(const TileNorms& norms, const MixedPrecision& asked,
                                          std::int64_t n, Element single,
                                          const DeviceModel& device);

/// `asked` with an accuracy that the smallest pivot bears; 0 where none does.
[[nodiscard]] MixedPrecision bearable(const TileNorms& norms, const MixedPrecision& asked,
                                      std::int64_t n);

/// The same for n points in an order that is being thought of, by a scout of it.
[[nodiscard]] MixedForecast forecast_order(const Scout& scout, std::int64_t n,
                                           const MixedPrecision& asked, const DeviceModel& device);

/// Seconds of n³/3 operations in FP64.
[[nodiscard]] double fp64_seconds(std::int64_t n, std::int64_t tile, const DeviceModel& device);

/// An accuracy below which nothing is gained on FP64.
inline constexpr double kAccuracyMin = 1e-12;
/// How many times ε‖A‖_F a probe may find, where up to 7 was measured.
inline constexpr double kProbeMost = 24;

}  // namespace strata
