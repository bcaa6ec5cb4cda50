#pragma once
// getrf: one column panel of P·A = L·U, by Gaussian elimination with partial pivoting.
//
// Contract: operands A (n × b), its pivots (b integers) and its status, a block of four fp64
// numbers (PanelStatus); the latter two are overwritten. The panel holds columns c … c + b − 1 of a
// square matrix of order n, c the column of its view, and all of their rows. Rows from c on are
// factored, which all earlier panels have updated; rows above hold U already. Afterwards rows
// c … c + b − 1 hold U on and above their diagonal, and L is below it, without its unit diagonal.
// Pivot j says that rows c + j and c + pivot j were exchanged, in this order of j: as LAPACK has
// it, but counted from 0.
// The pivot is the first of the largest elements of its column (LAPACK's i?amax), of complex
// numbers by |re| + |im|. A pivot of zero is noted, its column of L is zero, and elimination goes
// on. Elements of L are quotients, not products with a reciprocal, so that none exceeds 1 (of
// complex numbers √2) also where the pivot is subnormal. T is double or float, or std::complex of
// one of them.

#include <cmath>

#include "kernels/backend/kernel_table.hpp"
#include "scalar/complex.hpp"

namespace strata {

/// What getrf tells about a panel; columns are counted within it, −1 is none.
struct PanelStatus {
  double zero_pivot = -1;  ///< first column whose pivot is exactly zero
  double not_finite = -1;  ///< first column that holds a NaN or an infinity afterwards
  /// Elements that came in, and those of U: the most |re| + |im|, at most the largest number of T;
  /// infinity where a part is not finite.
  double largest = 0;
  double smallest_pivot = 0;  ///< least |re| + |im| on the diagonal of U
};
inline constexpr std::int64_t kPanelStatusRows = 4;
static_assert(sizeof(PanelStatus) == kPanelStatusRows * sizeof(double));

/// By which elements are compared: |x|, of complex numbers |re| + |im|, added up in their own
/// precision as LAPACK does it.
template <class T>
[[nodiscard]] double pivot_size(const T& x) noexcept {
  if constexpr (is_complex_v<T>)
    return std::abs(x.real()) + std::abs(x.imag());
  else
    return std::abs(static_cast<double>(x));
}

inline constexpr Operation getrf{.name = "getrf",
                                 .operands = 3,
                                 .access = {Access::read_write, Access::write, Access::write},
                                 .work = [](std::span<const BlockExtent> x, std::uint32_t) {
                                   // Σ_j (r − j − 1)·(1 + 2·(b − j − 1)), r the rows from the
                                   // diagonal on
                                   const auto r = static_cast<double>(x[0].rows - x[0].col);
                                   const auto b = static_cast<double>(x[0].cols);
                                   return b * b * (r - b / 3) - b * b / 2 - b / 6;
                                 }};

template <class T>
inline constexpr Elements kGetrfElements{element_of<T>, Element::int64, Element::fp64};

/// Column by column, as written in a textbook (Golub, Van Loan, "Matrix Computations", §3.4).
template <class T>
void getrf_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// By halves of the columns, with BLAS.
template <class T>
void getrf_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// By steps of columns, with look-ahead: see getrf_cuda.cu.
template <class T>
void getrf_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
