#pragma once
// The tasks of X ← L⁻¹·X, X ← L⁻ᵀ·X and X ← L⁻ᵀ·L⁻¹·X for many right-hand sides, L a tile Cholesky
// factor.
//
// Contract: emits tasks only. Row m of X belongs to device_of_row(m), as the tiles of L.

#include "schedule/task.hpp"

namespace strata {

struct SolveProblem {
  std::int64_t n = 0;
  std::int64_t tile = 1;  ///< of L
  std::int64_t rhs = 0;   ///< columns of X
  std::int64_t rhs_tile = 1;
  Precision precision = Precision::fp64;
  int devices = 1;
  /// What L is called from plan to plan (BlockFamily::identity).
  std::uint64_t factor_identity = 0;

  bool operator==(const SolveProblem&) const = default;
};

inline constexpr int kFactorFamily = 0;    ///< L
inline constexpr int kSolutionFamily = 1;  ///< X

/// `both`: one after the other, X ← A⁻¹·X.
enum class Sweep : std::uint8_t { forward, backward, both };

[[nodiscard]] Schedule triangular_solve(const SolveProblem& problem, Sweep sweep);

}  // namespace strata
