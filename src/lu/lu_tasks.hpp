#pragma once
// The tasks of P·A = L·U by column panels, with true partial pivoting, and of solves with the
// factors.
//
// Contract: emits tasks only; names no backend. A is cut into panels of `panel` columns and all
// rows. A panel is written for the last time when it is factored, in the order that rows have then;
// exchanges of later panels are not applied to it. So L is that of LAPACK's getf2 before later
// exchanges, and solves apply exchanges and panels in turn. Every panel is updated by those before
// it in ascending order, whatever the slab, so no order changes a bit of the factors. Panels belong
// to devices in turn, j mod D. In storage a factored panel is two blocks, with its rows of L and
// with those of U: of the factor those are read that a task needs.

#include <string>

#include "schedule/task.hpp"

namespace strata {

/// What is to be factored, and in which order.
struct LuProblem {
  std::int64_t n = 0;
  std::int64_t panel = 1;  ///< columns
  /// Panels that are finished together, while those before them stream past; 0: all, which is
  /// right-looking elimination.
  std::int64_t slab = 0;
  /// Where a slab is what host memory holds, and more than devices do: panels of it that are
  /// finished together on the devices; 0: all.
  std::int64_t inner = 0;
  /// Panels before a slab that are applied to each of its panels in turn; with `inner`.
  std::int64_t group = 1;
  /// Panels that are factored already, from the first on.
  std::int64_t done = 0;
  bool in_storage = false;  ///< the factor rests in storage
  bool halves = false;      ///< kProductsOfHalves (kernels/dense/lu_update.hpp)
  /// What the matrix comes to the devices in, as the caller has it, beside the factor: there it is
  /// scaled and rounded to `precision`, and residuals are made with it; the factor stays beside it
  /// and goes home if it is asked for. none: what is loaded is scaled already, becomes the factor
  /// and goes home. Not in storage.
  Element given = Element::none;
  Element precision = Element::fp64;
  int devices = 1;
  /// What the factor and its pivots are called from plan to plan (BlockFamily::identity).
  std::uint64_t factor_identity = 0;
  std::uint64_t pivots_identity = 0;
  std::uint64_t given_identity = 0;
};

/// Families of both schedules. A, then L and U: panel p is block (0, p). In solves with a factor in
/// storage its blocks as in kFactorFamily.
inline constexpr int kPanelFamily = 0;
inline constexpr int kPivotsFamily = 1;  ///< of panel p block (0, p), integers as getrf has them
/// A PanelStatus of panel p, block (0, p); in factorizations.
inline constexpr int kPanelStatusFamily = 2;
/// X, blocks of columns (0, j); in solves.
inline constexpr int kRightSideFamily = 2;
/// L and U in storage; in factorizations. The diagonal block of a panel is in both of its blocks.
inline constexpr int kFactorFamily = 3;
/// The matrix as it was given, panel p block (0, p), where LuProblem::given says so. A plan forgets
/// blocks of which its schedule has no family: solves have this one, and products that of the
/// factor.
inline constexpr int kGivenFamily = 3;
/// With it in factorizations, one block: the exponents by which its rows and its columns are scaled
/// (scaled_copy.hpp).
inline constexpr int kExponentsFamily = 4;
/// And of panel p block (0, p): the diagonal of U, and the largest element before elimination.
inline constexpr int kDiagonalFamily = 5;
inline constexpr int kLargestFamily = 6;
/// The rows of panel p from its diagonal on, and those up to its diagonal block.
[[nodiscard]] constexpr BlockId lower_block(int family, std::int64_t p) {
  return {family, 2 * p, 0};
}
[[nodiscard]] constexpr BlockId upper_block(int family, std::int64_t p) {
  return {family, 2 * p + 1, 0};
}

/// Slab after slab. In each, the panels before it update all of its panels, one after another; then
/// its own panels are factored right-looking. A slab with `inner` is taken in two levels: groups of
/// panels before it update its panels, forth and back, so that those which the devices had last
/// come first; then its own panels are slabs of `inner` panels themselves. With look-ahead: panel k
/// + 1 is updated first and factored, in an urgent task, before panel k updates the others.
[[nodiscard]] Schedule lu_factorization(const LuProblem& problem);

struct LuSolveProblem {
  std::int64_t n = 0;
  std::int64_t panel = 1;
  std::int64_t rhs = 0;  ///< columns of X
  std::int64_t rhs_tile = 1;
  /// Blocks of X that are solved together, for which the factor streams past twice; 0: all.
  std::int64_t group = 0;
  /// 0; kTransposedFactor for X ← A⁻ᵀ·X, kAdjointFactor for X ← A⁻ᴴ·X
  /// (kernels/dense/lu_update.hpp).
  std::uint32_t variant = 0;
  Element precision = Element::fp64;
  int devices = 1;
  std::uint64_t factor_identity = 0;
  std::uint64_t pivots_identity = 0;
  Element given = Element::none;
  std::uint64_t given_identity = 0;
  bool in_storage = false;  ///< the factor rests in storage

  bool operator==(const LuSolveProblem&) const = default;
};

/// Products of the matrix with columns (panel_product.hpp).
struct MatrixProductProblem {
  std::int64_t n = 0;
  std::int64_t panel = 1;
  std::int64_t columns = 0;  ///< of X
  std::uint32_t variant = 0;
  Element given = Element::fp64;
  int devices = 1;
  std::uint64_t given_identity = 0;
  /// The factor that stays beside it; an identity of 0: there is none.
  Element precision = Element::fp64;
  std::uint64_t factor_identity = 0;
  std::uint64_t pivots_identity = 0;
};

/// Families of products: the matrix, kGivenFamily; X, one block of kRightSideFamily; and the sums
/// Y, of which each device has its own, block (0, d), that have to be added.
inline constexpr int kSumsFamily = 4;

[[nodiscard]] Schedule panel_products(const MatrixProductProblem& problem);

/// X ← A⁻¹·X: L forward, panel by panel with its exchanges, then U backward; or Uᵀ forward, then
/// Lᵀ backward with the exchanges in reverse.
[[nodiscard]] Schedule lu_solve(const LuSolveProblem& problem);

}  // namespace strata
