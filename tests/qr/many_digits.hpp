#pragma once
// How orthogonal columns are, in many digits.
//
// Contract: sums of products by MPFR, of 200 bits; only the elements of I − QᵀQ themselves are
// rounded to doubles, for their eigenvalues by LAPACK. Nothing of the library's arithmetic.

#include <lapacke.h>
#include <mpfr.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/problems.hpp"

namespace strata::test {

/// A number of 200 bits.
class ManyDigits {
 public:
  ManyDigits() { mpfr_init2(value_, 200); }
  ManyDigits(const ManyDigits&) = delete;
  ManyDigits& operator=(const ManyDigits&) = delete;
  ~ManyDigits() { mpfr_clear(value_); }
  [[nodiscard]] mpfr_ptr get() noexcept { return value_; }

 private:
  mpfr_t value_;
};

/// The 2-norm of I − QᵀQ, of the first `columns` columns; NaN where they are not finite.
template <class T>
double orthogonality_in_many_digits(const Matrix<T>& q, std::int64_t columns) {
  std::vector<double> e(static_cast<std::size_t>(columns * columns));
  ManyDigits sum;
  ManyDigits x;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      mpfr_set_si(sum.get(), i == j ? -1 : 0, MPFR_RNDN);
      for (std::int64_t r = 0; r < q.rows; ++r) {
        mpfr_set_d(x.get(), static_cast<double>(q(r, i)), MPFR_RNDN);
        mpfr_mul_d(x.get(), x.get(), static_cast<double>(q(r, j)), MPFR_RNDN);
        mpfr_add(sum.get(), sum.get(), x.get(), MPFR_RNDN);
      }
      const double value = mpfr_get_d(sum.get(), MPFR_RNDN);
      if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
      e[static_cast<std::size_t>(j + i * columns)] = value;
    }
  }
  std::vector<double> eigenvalues(static_cast<std::size_t>(columns));
  const int n = static_cast<int>(columns);
  if (LAPACKE_dsyev(LAPACK_COL_MAJOR, 'N', 'L', n, e.data(), n, eigenvalues.data()) != 0)
    return std::numeric_limits<double>::quiet_NaN();
  double norm = 0;
  for (const double value : eigenvalues) norm = std::max(norm, std::abs(value));
  return norm;
}

}  // namespace strata::test
