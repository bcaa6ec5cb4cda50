#pragma once
// The tasks of one step of Lanczos with E = L̃⁻¹·Σ·L̃⁻ᵀ − I for many vectors at once, on the
// devices: each column of a block has a basis of its own (log_determinant.hpp).
//
// Contract: emits tasks only. Step k divides what the step before left by its norms, which is the
// newest block V_k of the bases; V_0 is stored. It makes Y ← E·V_k, subtracts from it what V_k, …,
// V_0 have of it, twice, and adds up the squares of what is left. V_0, …, V_k and Y stay on the
// devices from step to step; sums go home (LanczosSums), and nothing else. Row m of the blocks
// belongs to the device of row m of L (RowOwners). Σ is generated in FP64 where it is used, as in
// covariance_product.hpp. Sums over rows are of parts whose bounds are the tiles', so results
// depend on tiles and not on the number of devices.

#include <vector>

#include "cholesky/tile_formats.hpp"
#include "schedule/task.hpp"
#include "strata/options.hpp"

namespace strata {

struct LanczosProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;         ///< of L, and rows of a block of vectors
  std::int64_t vectors = 0;      ///< bases
  std::int64_t columns = 36;     ///< of a block of vectors
  std::int64_t column_tile = 1;  ///< columns of Σ in a task: a multiple of kCovarianceRun
  std::int64_t point_dimensions = 1;
  Element precision = Element::fp64;  ///< as in SolveProblem
  TileFormats formats{};
  int devices = 1;
  std::vector<double> rates{};  ///< as in CholeskyProblem
  /// Products, or calls of any other operation, in a task, as in SolveProblem.
  std::int64_t products_at_once = 0;
  /// What the families that stay are called from plan to plan.
  std::uint64_t factor_identity = 0;
  std::uint64_t points_identity = 0;
  std::uint64_t column_points_identity = 0;
  std::uint64_t work_identity = 0;
  std::vector<std::uint64_t> basis{};  ///< V_0 … V_k
};

/// The families of the schedule, all but L in fp64.
namespace lanczos {
inline constexpr int kFactor = 0;
inline constexpr int kRowPoints = 1;     ///< n × d, in tiles of rows, …
inline constexpr int kColumnPoints = 2;  ///< … and of columns of Σ
inline constexpr int kWork = 3;          ///< Y
inline constexpr int kWhitened = 4;      ///< L̃⁻ᵀ·V_k; temporary
inline constexpr int kRight = 5;         ///< the same in tiles of columns of Σ; temporary
inline constexpr int kParts = 6;         ///< of sums, for each tile of rows; temporary
inline constexpr int kSums = 7;          ///< a row for each, in the order of LanczosSums
inline constexpr int kNorms = 8;         ///< by which what is left is divided, 1 × vectors
inline constexpr int kBasis = 9;         ///< V_0, and behind it the others
}  // namespace lanczos

/// The numbers of the sums of step k, each a row of lanczos::kSums.
struct LanczosSums {
  std::int64_t step = 0;

  /// In step 0 alone: each vector's neighbour, the next or the last, times its Y.
  [[nodiscard]] std::int64_t neighbours() const noexcept { return step == 0 ? 2 : 0; }
  /// V_bᵀ·Y by columns, in the first pass (0) or the second.
  [[nodiscard]] std::int64_t share(int pass, std::int64_t b) const noexcept {
    return neighbours() + pass * (step + 1) + (step - b);
  }
  [[nodiscard]] std::int64_t square() const noexcept { return share(1, 0) + 1; }
  [[nodiscard]] std::int64_t count() const noexcept { return square() + 1; }
};

/// Throws Error{misuse} where `column_tile` is not a multiple of kCovarianceRun.
[[nodiscard]] Schedule lanczos_step(const LanczosProblem& problem);

/// `problem` with the blocks it should have for as many as `steps_max` steps: as wide as the
/// kernels take them at once, narrower where the smallest budget does not hold what a task needs.
[[nodiscard]] LanczosProblem choose_lanczos_blocks(LanczosProblem problem, int steps_max,
                                                   const Machine& machine);

}  // namespace strata
