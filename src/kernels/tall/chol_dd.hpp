#pragma once
// chol_dd: A ← R with RᵀR = PᵀAP, a Cholesky factorization in double-double.
//
// Contract: operands A (n × n, dd, n <= 512; its upper triangle is read, R is written as a whole,
// zeros below the diagonal), P (n × 1, int32, written) and the status (4 × 1, fp64, CholDdStatus,
// written). Rows of R come one after the other:
// * kDiagonalPivoting: row and column k are exchanged with j, k the first of the columns from j on
//   whose diagonal is the largest of those that are not NaN, if there is one. Column i of R is
//   column P_i of A. Without it P is 0 … n − 1.
// * A pivot, what is left of a_jj, that is not positive and finite ends the factorization: the rows
//   that are done stay, the trailing block of R is the identity (Yamazaki, Tomov and Dongarra
//   2015).
// * r_jj = √pivot, r_jk = a_jk / r_jj, and for j < i <= k a_ik ← a_ik − r_ji·r_jk
//   (subtract_product), by the operations of double_double.hpp; so all backends give the same bits.

#include <string>

#include "kernels/backend/operand.hpp"
#include "scalar/double_double.hpp"

namespace strata {

inline constexpr std::int64_t kCholDdColumnsMax = 512;
inline constexpr std::uint32_t kDiagonalPivoting = 1;

struct CholDdStatus {
  double bad_column = -1;  ///< the first whose pivot is not positive and finite; −1: none
  double bad_pivot = 0;    ///< its leading part
  double least = 0;        ///< of the pivots that were taken, their leading parts; 0: none
  double largest = 0;
};

inline constexpr Operation chol_dd{.name = "chol_dd",
                                   .operands = 3,
                                   .access = {Access::read_write, Access::write, Access::write},
                                   .work =
                                       [](std::span<const BlockExtent> x, std::uint32_t) {
                                         const auto n = static_cast<double>(x[0].cols);
                                         return n * n * n / 3 + n * n / 2 + n / 6;
                                       },
                                   .nominal_cost = 25};
inline constexpr Elements kCholDdElements = {Element::dd, Element::int32, Element::fp64};

/// Whether the leading part of a pivot is positive and finite.
[[nodiscard]] constexpr bool is_pivot(double value) noexcept {
  return value > 0 && value <= 1.7976931348623157e308;
}
/// Whether `other`, of a later column, is the pivot to take in the place of `best`.
[[nodiscard]] constexpr bool is_better_pivot(const DoubleDouble& best, bool found,
                                             const DoubleDouble& other) noexcept {
  return other.hi == other.hi && (!found || best < other);
}
/// A status with one pivot more.
constexpr void add_pivot(CholDdStatus& status, double pivot, bool first) noexcept {
  status.least = first || pivot < status.least ? pivot : status.least;
  status.largest = first || pivot > status.largest ? pivot : status.largest;
}
/// Throws Error{device} for a variant or a block that is none of the contract's.
inline void check_chol_dd(const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(chol_dd, parameters.variant, kDiagonalPivoting);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    if (calls[c][0].cols <= kCholDdColumnsMax) continue;
    throw Error(ErrorKind::device, "chol_dd",
                std::to_string(calls[c][0].cols) + " columns are more than " +
                    std::to_string(kCholDdColumnsMax));
  }
}

/// In plain loops.
void chol_dd_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// For the CPU: four elements side by side (dd_triangles.hpp).
void chol_dd_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// For a GPU: one block of threads for each call.
void chol_dd_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
