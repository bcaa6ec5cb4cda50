#pragma once
// Which device factors which supernode, where several GPUs hold a factor between them.
//
// Contract: subtrees of the elimination tree, each factored by one device without communication,
// and above them the *top*, whose supernodes need what more than one of them gives. Follows from
// the tree and the times below alone; changes no bit.
//
// Method: as Geist and Ng, "Task scheduling for parallel sparse Cholesky factorization" (1989).
// From the roots down the most costly subtree is replaced by its children, until dealing them, the
// most costly first to the device that has least, would no longer end sooner. Here the end is that
// of the whole tree. A supernode of the top goes to the device that would be done with it first,
// when what the others give has travelled there. With `shares` those with most work go to all
// devices together (schedule/shared_call.hpp): how many of them is tried out.

#include <cstdint>
#include <vector>

#include "strata/sparse_cholesky.hpp"

namespace strata {

/// What a GPU takes, in seconds, as far as the dealing depends on it: on an H200, in a
/// factorization whose fronts are at work together; between two H100 (docs/benchmarks.md).
struct DealingTimes {
  double flop = 1 / 40e12;
  double element = 10e-12;        ///< of a front
  double supernode = 50e-9;       ///< beside these
  double column = 0.1e-6;         ///< of the top: its first and last tiles do not fill a GPU
  double byte = 1 / 350e9;        ///< from a device to another
  double handover = 300e-6;       ///< beside the bytes: the end of one launch, the begin of another
  double shared_column = 0.1e-6;  ///< of a front by several: tiles wait for those of others
};

inline constexpr DealingTimes kFreeHandover{
    .column = 0, .byte = 0, .handover = 0, .shared_column = 0};

struct SubtreeDealing {
  std::vector<std::int32_t> device;  ///< of each supernode
  std::vector<char> top;             ///< of each: 1 if it is not in a subtree that is dealt whole
  std::vector<char> shared;          ///< of each: 1 if it is of the top and all devices make it
  double seconds = 0;                ///< until all is done, by the times above
};

/// `devices` >= 1. All goes to the first one where that is as fast. Fronts that are not cut into
/// tiles (kernels/fronts/front_program.hpp) are never shared.
[[nodiscard]] SubtreeDealing deal_subtrees(const SparseAnalysis& analysis, int devices,
                                           const DealingTimes& times = {}, bool shares = false);

}  // namespace strata
