#pragma once
// Triangles of double-double on the host, four elements side by side.
//
// Contract: matrices are column-major. The bits are those of the formulas element by element, by
// the operations of double_double.hpp: lanes are elements of one column, and no sum goes across
// them. n is at most a few hundred.

#include <cstdint>
#include <vector>

#include "base/kept_memory.hpp"
#include "scalar/double_double.hpp"

namespace strata {

/// What is left of a symmetric matrix while it is factored: RᵀR = B, row by row of R.
class DdTrailing {
 public:
  /// B is n × n; its upper triangle is read.
  DdTrailing(const DoubleDouble* b, std::int64_t n, std::int64_t ld);

  [[nodiscard]] std::int64_t n() const noexcept { return n_; }
  [[nodiscard]] DoubleDouble operator()(std::int64_t i, std::int64_t j) const {
    const auto at = static_cast<std::size_t>(i + j * stride_);
    return {hi_[at], lo_[at]};
  }
  /// Row j of R behind its diagonal: r_jk = b_jk / root, k > j, into r (ld apart); then
  /// b_ik ← b_ik − r_ji·r_jk for j < i <= k (subtract_product). Rows up to j hold no meaning then.
  void eliminate(std::int64_t j, const DoubleDouble& root, DoubleDouble* r, std::int64_t ld);

 private:
  using Values = std::vector<double, KeptAllocator<double>>;
  std::int64_t n_;
  std::int64_t stride_;  ///< of columns: whole lanes
  Values hi_;
  Values lo_;
  Values row_;  ///< of R in hand: high parts, then low ones
};

/// P ← R·S, all upper triangular and packed, n × n; zeros below the diagonal of P. Elements are
/// Σ_k r_ik·s_kj, k ascending, from 0.
void dd_upper_product(DoubleDouble* p, const DoubleDouble* r, const DoubleDouble* s,
                      std::int64_t n);

}  // namespace strata
