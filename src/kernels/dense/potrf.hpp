#pragma once
// potrf: A ← L with L·Lᴴ = A, of real numbers L·Lᵀ, one diagonal block.
//
// Contract: operands A (n × n; only its lower triangle is read and written) and its status, a block
// of four fp64 numbers (PivotStatus), which is overwritten. bad_column is the first column whose
// pivot, after the columns before it are eliminated, is not positive and finite (a NaN and +∞ count
// as bad); bad_pivot is that pivot before its square root; log_determinant = Σ 2·log L_jj. After a
// failure the columns from bad_column on hold no meaning. A failure is a value: no kernel throws
// for it. Values: PotrfValues, or none. T is double or float, or std::complex of one of them; the
// imaginary part of the diagonal is then not read, and is zero afterwards. On a GPU complex numbers
// are those of hermitian_kernels_cuda.hpp.

#include <functional>

#include "kernels/backend/kernel_table.hpp"
#include "kernels/dense/potrf_options.hpp"

namespace strata {

/// What potrf tells about one diagonal block.
struct PivotStatus {
  /// First column (0-based, within the block) whose pivot is not positive; −1: none.
  double bad_column = -1;
  double bad_pivot = 0;        ///< the value of that pivot before its square root; NaN if it is NaN
  double log_determinant = 0;  ///< Σ 2·log L_jj over the block, valid if bad_column is −1
  /// To be added to it: of factor_branch, whose sum is a LogSum, the fraction; else 0.
  double log_fraction = 0;
};
inline constexpr std::int64_t kStatusRows = 4;
static_assert(sizeof(PivotStatus) == kStatusRows * sizeof(double));

/// What a status block holds; memory of the device.
[[nodiscard]] inline PivotStatus* status_of(const BlockView& block) noexcept {
  return static_cast<PivotStatus*>(block.data);
}

/// The values of a run of potrf: how a matrix of a precision and an order is to be blocked.
struct PotrfValues {
  std::function<PotrfOptions(Element precision, std::int64_t n)> blocking;
};

inline constexpr Operation potrf{.name = "potrf",
                                 .operands = 2,
                                 .access = {Access::read_write, Access::write},
                                 .work = [](std::span<const BlockExtent> x, std::uint32_t) {
                                   const auto n = static_cast<double>(x[0].cols);
                                   return n * n * n / 3 + n * n / 2 + n / 6;
                                 }};

/// Column by column, as written in a textbook (Golub, Van Loan, "Matrix Computations", §4.2).
template <class T>
void potrf_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// LAPACK, with the diagonal looked at afterwards.
template <class T>
void potrf_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// One launch, or panels of one launch each and cuBLAS between them: potrf_cuda.cu.
template <class T>
void potrf_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
