#pragma once
// NarrowFactor: L·U in fp32 of a system that is known in fp64, or in complex numbers of them.
//
// Contract: W is double or std::complex<double>, N the same of float. What is factored is
// D·A·C in N, D and C powers of two by which no element of a row or a column is much above 1: what
// falls below the range of N is far below all that counts of its row. A is narrowed while its
// panels are loaded, so that no copy of it in N exists beside the factor.

#include <complex>
#include <type_traits>
#include <vector>

#include "cholesky/dense_block.hpp"
#include "lu/lu_panels.hpp"
#include "lu/scaled_system.hpp"
#include "scalar/complex.hpp"
#include "strata/lu.hpp"

namespace strata {

template <class W>
class NarrowFactor {
 public:
  using N = std::conditional_t<is_complex_v<W>, std::complex<float>, float>;

  /// `system` outlives the factorization, which is done here.
  NarrowFactor(const ScaledSystem<W, W>& system, const Options& options);

  /// As of LuPanels, with the determinant of the system's A.
  [[nodiscard]] const LuInfo& info() const noexcept { return info_; }
  [[nodiscard]] const RunReport& report() const noexcept { return panels_.report(); }
  /// M⁻¹·B or M⁻ᴴ·B, M = D⁻¹·P⁻¹·L·U·C⁻¹; what it did is added to `report`.
  [[nodiscard]] DenseBlockOf<W> solve(MatrixView<const W> b, bool adjoint, RunReport& report);
  /// The same with all but the factors in fp64, on the host: the same M to rounding in fp64, where
  /// that in fp32 times the condition of M is much of the solution.
  [[nodiscard]] DenseBlockOf<W> solve_wide(MatrixView<const W> b, bool adjoint) const;

 private:
  [[nodiscard]] DenseBlockOf<W> scaled(MatrixView<const W> b, bool adjoint) const;

  std::vector<int> row_exponent_;
  std::vector<int> column_exponent_;
  LuPanels panels_;
  LuInfo info_;
};

}  // namespace strata
