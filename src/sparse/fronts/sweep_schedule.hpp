#pragma once
// Solves with a factor in ranges of the postorder that is at home: as a schedule.
//
// Contract: right-hand sides come column by column, and go back as solutions; on the device they
// lie in blocks X of 1 or kSweepColumns columns, by rows, in the order of elimination. Ranges are
// swept in their order forward, from the last to the first backward, each by sweep_range for each
// block of X, so that a range of L comes to the device once for all of them. The bits do not depend
// on the budget, nor on how many blocks there are.
//
// Method: rows of right-hand sides below the fronts at a range's top are temporary blocks, one for
// each range that takes some. If there is a way back, the last ranges stay on the device, as many
// as leave room for three others: one that is swept, the next one on its way, and what does not fit
// between. The panels of the others are another family on the way back, at the same home: so a plan
// knows that they are not used again, and where to let the next ones in.

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/task.hpp"
#include "sparse/fronts/front_layout.hpp"

namespace strata {

/// Families of the schedule, in this order.
namespace sweeps {
inline constexpr int kX = 0;               ///< temporary
inline constexpr int kPanels = 1;          ///< as the layout has them
inline constexpr int kPanelsAgain = 2;     ///< the same, on the way back
inline constexpr int kStructure = 3;       ///< as the layout has it
inline constexpr int kStructureAgain = 4;  ///< the same, on the way back
inline constexpr int kRows = 5;            ///< of right-hand sides, between ranges; temporary
inline constexpr int kWork = 6;            ///< temporary
inline constexpr int kOrder = 7;           ///< of elimination; and a list that is empty
inline constexpr int kGiven = 8;           ///< right-hand sides as they are given, packed columns
inline constexpr int kFound = 9;           ///< solutions, likewise
}  // namespace sweeps

/// What solves need to know of the ranges of a layout.
struct SweepRanges {
  /// Rows of right-hand sides that one range gives to another: where they begin among the rows of
  /// updates of the one and of the other.
  struct Gift {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t rows = 0;
  };
  struct Range {
    std::int64_t panel = 0;           ///< block of the layout's L
    std::int64_t structure = 0;       ///< block of the layout's structures
    std::int64_t bytes = 0;           ///< of both
    double elements = 0;              ///< of L
    std::vector<std::int64_t> given;  ///< numbers of gifts
    std::vector<std::int64_t> taken;
  };
  std::vector<Range> ranges;  ///< in postorder
  std::vector<Gift> gifts;
  std::int64_t n = 0;
  std::int64_t most_rows = 0;   ///< of gifts that wait at once
  std::int64_t most_bytes = 0;  ///< of a range
  std::int64_t work_one = 0;    ///< elements of work memory with one right-hand side
  std::int64_t work_many = 0;   ///< with kSweepColumns of them
};

/// The ranges of a layout of `analysis` (FrontLayout::ranges), or of one branch that is the tree.
[[nodiscard]] SweepRanges sweep_ranges(const SparseAnalysis& analysis, const FrontLayout& layout);

/// What is to be solved for.
struct SweepPass {
  std::vector<std::int64_t> widths;  ///< of the blocks of X: 1 or kSweepColumns
  std::int64_t columns = 0;          ///< of right-hand sides; the last block may have room for more
  bool forward = true;
  bool backward = true;
  auto operator<=>(const SweepPass&) const = default;
  /// The columns that block k has.
  [[nodiscard]] std::int64_t columns_of(std::int64_t k) const;
};

/// Bytes of device memory with which one range is loaded while another one is swept.
[[nodiscard]] std::int64_t comfortable_bytes(const SweepRanges& ranges, const SweepPass& pass,
                                             Element element);

/// Tasks are the first device's; `budget` is its memory. The extent of a block of right-hand sides
/// has the number of its first column as its row.
[[nodiscard]] Schedule sweep_schedule(std::shared_ptr<const SweepRanges> ranges,
                                      const FrontLayout& layout, const SweepPass& pass, int devices,
                                      std::int64_t budget);

/// A pass for some columns, or the first of them: the widest blocks of X, as many as the budget
/// holds; none if it holds not one.
[[nodiscard]] SweepPass sweep_pass(const std::shared_ptr<const SweepRanges>& ranges,
                                   const FrontLayout& layout, std::int64_t columns, bool forward,
                                   bool backward, int devices, std::int64_t budget);

}  // namespace strata
