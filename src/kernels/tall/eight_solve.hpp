#pragma once
// Eight columns of X·R⁻¹ in fp64 without substitution: the inverse of their triangle, which is good
// enough where one correction makes what it gives as good as substitution.
//
// Method: R = D·U, D its diagonal. With T near the inverse of U, q = y·T leaves
// y − q·U = y·(I − T·U) and what is rounded. Rows of T by substitution make |I − T·U| a few units
// of |T|·|U| (Higham, Accuracy and Stability of Numerical Algorithms, 14.2), ρ units say, ρ its
// largest element; so does the correction of q, of which ρ units are left again. Where ρ is at most
// 2^20, (ρ·u)² is at most 2^-13·u, and what is left is the rounding of q and of the sums. Why U and
// not R: elements of R⁻¹ are
// as large as κ says, those of U⁻¹ hardly ever, so that what is zero stays zero where columns are
// nearly parallel, as it does in substitution (Läuchli's matrix). Where ρ is larger, T is not used.
// Contract: pure functions with the same bits on CPUs and GPUs.

#include "scalar/double_double.hpp"

namespace strata {

inline constexpr int kEightColumns = 8;

/// Whether quotients by a diagonal element are far from over- and underflow.
[[nodiscard]] constexpr bool divides_well(double r) {
  const double size = r < 0 ? -r : r;
  return size >= 0x1p-300 && size <= 0x1p300;
}

/// Row i of T, zeros before column i: u(k, j), k < j < kEightColumns, is U above its diagonal.
/// Returns whether it is good: ρ at most 2^20.
template <class Unit>
[[nodiscard]] constexpr bool invert_row(int i, Unit&& u, double (&t)[kEightColumns]) {
  constexpr double kGrowthMost = 0x1p20;
  const auto size = [](double x) { return x < 0 ? -x : x; };
  bool good = true;
  for (int j = 0; j < kEightColumns; ++j) {
    t[j] = j == i ? 1 : 0;
    if (j <= i) continue;
    double sum = 0;
    double growth = 0;
    for (int k = i; k < j; ++k) {
      sum = fused(t[k], u(k, j), sum);
      growth = fused(size(t[k]), size(u(k, j)), growth);
    }
    t[j] = -sum;
    good = good && rounded_sum(growth, size(t[j])) <= kGrowthMost;
  }
  return good;
}

}  // namespace strata
