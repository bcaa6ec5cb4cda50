#pragma once
// Solves with a factor that stays on devices: as a resident schedule.
//
// Contract: units are branches with programs, each on one device with its part of L. Right-hand
// sides come as columns, go by rows in the order of elimination through all units forward, and back
// from the last to the first, and return as columns. The bits do not depend on how units are cut
// and dealt.
//
// Method: take_rows on the first device, a sweep_branch for each unit on its device, put_rows. The
// rows of right-hand sides that a unit solves are a block of their own, which goes from device to
// device where units above it, and put_rows, want it. Rows below fronts at a unit's top are
// temporary blocks for the units that take them (SweepRanges). Units of different matrices have
// nothing to do with each other: a task has a call for each.

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/task.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/fronts/sweep_schedule.hpp"

namespace strata {

/// Families of the schedule. Those that are loaded once come first: they lie at the same places in
/// all passes.
namespace resident_sweeps {
inline constexpr int kPanels = 0;     ///< as the factor has them
inline constexpr int kStructure = 1;  ///< likewise
inline constexpr int kOrder = 2;      ///< of elimination; behind it what leaves rows where they are
inline constexpr int kWork = 3;       ///< as the factor has it; temporary
inline constexpr int kX = 4;          ///< rows that units solve; temporary
inline constexpr int kRows = 5;       ///< from unit to unit, below fronts; temporary
inline constexpr int kColumns = 6;    ///< right-hand sides, then solutions
}  // namespace resident_sweeps

/// The units of a factor, for solves.
struct ResidentUnits {
  struct Unit {
    int device = 0;
    int queue = 0;                                    ///< of those of the device
    std::int64_t panel = 0, structure = 0, work = 0;  ///< blocks of the factor
    std::int64_t first = 0, columns = 0;              ///< of L
    std::vector<std::int64_t> given, taken;           ///< numbers of gifts
    std::vector<std::int32_t> ancestors;  ///< units whose columns are rows of this one's fronts
  };
  std::vector<Unit> units;
  std::vector<SweepRanges::Gift> gifts;
  BlockFamily panels, structure, work;  ///< of the factor
  std::int64_t n = 0;                   ///< of each matrix
  std::int64_t columns = 1;             ///< right-hand sides of a matrix at once
  int devices = 1;
  bool apart = false;   ///< each unit is a matrix of its own
  bool placed = false;  ///< L and work memory are on the devices; else L is loaded
};

/// Those of a layout of `analysis` that stays on so many devices, which have `queues` for tasks.
[[nodiscard]] ResidentUnits resident_units(const SparseAnalysis& analysis,
                                           const FrontLayout& layout, int devices, int queues,
                                           bool placed);

/// Some right-hand sides, on their way through L.
struct ResidentPass {
  std::vector<std::int32_t> units;  ///< all of a matrix, or one of each of some matrices
  std::int64_t width = 1;           ///< columns of X: 1 or ResidentUnits::columns
  std::int64_t columns = 1;         ///< of each matrix, at most as many
  bool forward = true;
  bool backward = true;
  bool placed = false;  ///< columns lie on the first device, where their caller has them
  auto operator<=>(const ResidentPass&) const = default;
};

[[nodiscard]] Schedule resident_sweep_schedule(std::shared_ptr<const ResidentUnits> units,
                                               const ResidentPass& pass);

/// Elements of X that all units of a pass have on each device; where block i begins among them.
[[nodiscard]] std::int64_t elements_of_x(const ResidentUnits& units, const ResidentPass& pass);
[[nodiscard]] std::int64_t place_in_x(const ResidentUnits& units, const ResidentPass& pass,
                                      std::int64_t block);

/// The pass that takes most memory, of matrices of which up to `together` are solved at once.
[[nodiscard]] ResidentPass largest_pass(const ResidentUnits& units, std::int64_t together = 1);
/// Bytes that solves take on each device, beside those of the factor where that is placed.
[[nodiscard]] std::vector<std::int64_t> resident_sweep_bytes(
    const std::shared_ptr<const ResidentUnits>& units, std::int64_t together = 1);

}  // namespace strata
