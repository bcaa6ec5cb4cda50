#pragma once
// The tasks of LU by stripes of rows, as Carcenac published it, and of solves with the factors.
//
// Contract: emits tasks only; names no backend. A is cut into stripes of `stripe` rows, and stripes
// into segments of as many columns, which are the blocks: of stripe J only those move that lie
// right of what has been eliminated. P·A = L·U, where rows are exchanged within a substripe alone,
// and what is left of a stripe's diagonal block keeps the row order of its own time, as panels do
// (lu_tasks.hpp). Every block is updated by the stripes above it in ascending order, so no order of
// stripes, and no number of devices, changes a bit of the factors (with pivots by pairs, no number
// of devices). Stripes belong to devices in
// turn, J mod D. Blocks are written again and again: a store has to overwrite them.
//
// Method (Carcenac, "From tile algorithm to stripe algorithm", 2013), right-looking:
//   <II>  stripe I: its diagonal block, by substripes (kernels/dense/stripe.hpp)
//   <IK>  the rest of stripe I, segment by segment
//   <JI>  stripe J below I: its multipliers
//   <JK>  the rest of stripe J, segment by segment.
// With pivots by pairs rows of both I and J are pivots where J is eliminated
// (kernels/dense/stripe_pair.hpp), and stripe I changes with each J. Where stripes are as small as
// tiles, this is the tile LU of Buttari, Langou, Kurzak and Dongarra (2009). The factors are then
// those of one order of stripes, and solves repeat it.
// Right-hand sides are carried along as columns of A. The order of the stripes J decides what is
// still in a cache of stripes when it is wanted. Basic is ascending for each I. Zigzag goes forth
// and back in turn, so that the stripes that were used last come first, I + 1 among them.
// Meta-zigzag does so with several I at once, a meta-stripe, past which each J goes once. The next
// I is factored once J = I + 1 is done.

#include <cstdint>

#include "schedule/task.hpp"

namespace strata {

struct StripeProblem {
  std::int64_t n = 0;
  std::int64_t stripe = 1;     ///< rows
  std::int64_t substripe = 0;  ///< rows among which pivots are searched; 0: they are not
  /// Not 0: pivots by pairs, so many columns at a time; `substripe` is then a stripe.
  std::int64_t pair_columns = 0;
  std::int64_t meta = 1;  ///< stripes of a meta-stripe
  bool zigzag = true;
  /// Multipliers are dropped when they have been used: of B that was carried along X can be found,
  /// and of nothing else.
  bool discards = false;
  std::int64_t rhs = 0;       ///< columns of B that are carried along
  std::int64_t rhs_tile = 1;  ///< of them, of a block
  bool in_storage = false;    ///< A rests in storage
  Element precision = Element::fp64;
  int devices = 1;
};

/// Families of both schedules.
inline constexpr int kStripeFamily = 0;  ///< A, then L and U: segment K of stripe I is (I, K)
inline constexpr int kStripePivotsFamily =
    1;  ///< of stripe I block (0, I), as stripe_factor has them
inline constexpr int kStripeRightFamily = 2;  ///< B, then Y or X: block (I, c)
/// Where pivots are searched by pairs, else empty: W and the pivots of pair (J, I) are block (J, I)
/// (kernels/dense/stripe_pair.hpp).
inline constexpr int kStripePairFamily = 3;
inline constexpr int kStripePairPivotsFamily = 4;
/// A PanelStatus of each block of A that the kernel which wrote it last has left; in
/// factorizations.
inline constexpr int kStripeStatusFamily = 5;

[[nodiscard]] Schedule stripe_factorization(const StripeProblem& problem);

/// What is done to X, in stripes as the factors are.
enum class StripeSweeps : std::uint8_t {
  both,      ///< X ← A⁻¹·X
  backward,  ///< X ← U⁻¹·X, of what was carried along
  adjoint,   ///< X ← A⁻ᴴ·X
};
/// For columns of X by themselves, each block of them on one device, c mod D. `problem.rhs` is that
/// of X; its orders are not read.
[[nodiscard]] Schedule stripe_solve(const StripeProblem& problem, StripeSweeps sweeps);

/// Columns of a block of X, whatever the number of devices.
[[nodiscard]] std::int64_t stripe_rhs_tile(std::int64_t rhs, std::int64_t stripe);

}  // namespace strata
