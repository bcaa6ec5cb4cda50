#pragma once
// HomeModel: what simulate() is told of the host memory in which the blocks of a plan rest.
//
// Contract: pure data, for prediction only; no plan and no result depends on it. A device that
// copies only from page-locked memory, as GPUs do, copies a block whose home is page-locked
// straight, at its link's rate. Any other block, and one that comes from its source, is staged
// through the bounce buffers of the device (DeviceModel::staging). Devices without a staging rate
// know no difference.

#include <cstdint>
#include <vector>

#include "strata/options.hpp"

namespace strata {

/// Homes are page-locked in pieces of so many bytes: a whole number of huge pages. While the driver
/// registers a piece, which takes tens of milliseconds at this size, calls of other threads may
/// have to wait for it.
inline constexpr std::int64_t kPinningPieceBytes = std::int64_t{256} << 20;

/// The home of one family, packed as BlockTable::byte_offset says.
struct FamilyHome {
  /// When it is page-locked. `automatic`: ahead if one piece is all, else in the background.
  HostPinning pinning = HostPinning::ahead;
  /// Blocks that the plan has not stored yet come from a source: an array, a file, a formula.
  bool from_source = false;
  /// What is page-locked when the run begins, from the start of the home.
  std::int64_t pinned_bytes = 0;

  bool operator==(const FamilyHome&) const = default;
};

struct HomeModel {
  /// By number; the homes of families after the last are page-locked ahead and have no source.
  std::vector<FamilyHome> families;

  bool operator==(const HomeModel&) const = default;
};

}  // namespace strata
