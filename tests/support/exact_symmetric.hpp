#pragma once
// What is true of a small symmetric matrix: solutions, variances, log-determinants, counts of
// eigenvalues, in 320 bits.
//
// Contract: nothing of the library's arithmetic; Cholesky's method and elimination by hand.

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/symmetric_kinds.hpp"

namespace strata::test {

using Real = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<320, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;

/// The Cholesky factor of a symmetric matrix, if there is one.
class ExactCholesky {
 public:
  explicit ExactCholesky(const Symmetric& a) : n_(a.n), l_(a.full.begin(), a.full.end()) {
    const Real none("1e-70");  // beside its diagonal element: rounding of zero
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t k = 0; k < j; ++k) {
        if (l(j, k) == 0) continue;
        for (std::int64_t i = j; i < n_; ++i) l(i, j) -= l(i, k) * l(j, k);
      }
      if (!(l(j, j) > none * abs(Real(a(j, j))))) return;
      logarithm_ += log2_of(l(j, j));
      const Real root = sqrt(l(j, j));
      for (std::int64_t i = j; i < n_; ++i) l(i, j) /= root;
    }
    definite_ = true;
  }
  [[nodiscard]] bool definite() const { return definite_; }
  [[nodiscard]] long double log_determinant() const {
    return logarithm_ * 0.693147180559945309417232121458176568L;
  }
  [[nodiscard]] std::vector<Real> solve(std::vector<Real> x) const {
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    for (std::int64_t j = 0; j < n_; ++j) {
      x[at(j)] /= l(j, j);
      for (std::int64_t i = j + 1; i < n_; ++i) x[at(i)] -= l(i, j) * x[at(j)];
    }
    for (std::int64_t j = n_; j-- > 0;) {
      for (std::int64_t i = j + 1; i < n_; ++i) x[at(j)] -= l(i, j) * x[at(i)];
      x[at(j)] /= l(j, j);
    }
    return x;
  }
  /// The diagonal of the inverse: squared lengths of the columns of L⁻¹.
  [[nodiscard]] std::vector<Real> variances() const {
    std::vector<Real> all;
    std::vector<Real> x(static_cast<std::size_t>(n_));
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    for (std::int64_t j = 0; j < n_; ++j) {
      Real square = 0;
      for (std::int64_t i = j; i < n_; ++i) {
        Real rest = i == j ? 1 : 0;
        for (std::int64_t k = j; k < i; ++k) rest -= l(i, k) * x[at(k)];
        x[at(i)] = rest / l(i, i);
        square += x[at(i)] * x[at(i)];
      }
      all.push_back(square);
    }
    return all;
  }

 private:
  Real& l(std::int64_t i, std::int64_t j) { return l_[static_cast<std::size_t>(i + j * n_)]; }
  [[nodiscard]] const Real& l(std::int64_t i, std::int64_t j) const {
    return l_[static_cast<std::size_t>(i + j * n_)];
  }
  static long double log2_of(const Real& x) {
    int exponent = 0;
    const Real mantissa = frexp(x, &exponent);
    return exponent + std::log2(static_cast<long double>(mantissa));
  }

  std::int64_t n_;
  std::vector<Real> l_;
  bool definite_ = false;
  long double logarithm_ = 0;
};

/// Errors of x as a solution of A·x = b: ‖b − A·x‖∞ relative to ‖A‖∞·‖x‖∞ + ‖b‖∞, row by row
/// relative to |A|·|x| + |b|, and the error of x relative to its largest element.
struct SolutionErrors {
  double normwise = 0;
  double componentwise = 0;
  double forward = 0;
};
inline SolutionErrors solution_errors(const Symmetric& a, const ExactCholesky& exact,
                                      const double* b, const double* x) {
  SolutionErrors errors;
  std::vector<Real> r;
  Real of_a = 0, of_x = 0, of_b = 0, of_r = 0;
  for (std::int64_t i = 0; i < a.n; ++i) {
    Real left = b[i];
    Real terms = abs(Real(b[i]));
    Real row = 0;
    for (std::int64_t j = 0; j < a.n; ++j) {
      if (a(i, j) == 0) continue;
      const Real term = Real(a(i, j)) * Real(x[j]);
      left -= term;
      terms += abs(term);
      row += abs(Real(a(i, j)));
    }
    of_a = std::max(of_a, row);
    of_x = std::max(of_x, Real(abs(Real(x[i]))));
    of_b = std::max(of_b, Real(abs(Real(b[i]))));
    of_r = std::max(of_r, Real(abs(left)));
    if (left != 0)
      errors.componentwise = std::max(errors.componentwise, static_cast<double>(abs(left) / terms));
    r.push_back(left);
  }
  if (of_r == 0) return errors;
  errors.normwise = static_cast<double>(Real(of_r / (of_a * of_x + of_b)));
  Real off = 0;
  for (const Real& d : exact.solve(r)) off = std::max(off, Real(abs(d)));
  errors.forward = static_cast<double>(Real(off / of_x));
  return errors;
}

/// Eigenvalues of A below x: the negative pivots of A − x·I (Sylvester's law of inertia).
inline std::int64_t eigenvalues_below(const Symmetric& a, const Real& x) {
  std::vector<Real> s(a.full.begin(), a.full.end());
  const auto at = [&](std::int64_t i, std::int64_t j) -> Real& {
    return s[static_cast<std::size_t>(i + j * a.n)];
  };
  Real largest = abs(x);
  for (std::int64_t i = 0; i < a.n; ++i) at(i, i) -= x;
  for (const Real& element : s) largest = std::max(largest, Real(abs(element)));
  const Real least = largest * Real("1e-45");  // an error of x; of sums it makes another 1e-51
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < a.n; ++j) {
    if (at(j, j) == 0) at(j, j) = least;
    count += at(j, j) < 0 ? 1 : 0;
    for (std::int64_t k = j + 1; k < a.n; ++k) {
      if (at(k, j) == 0) continue;
      const Real factor = at(k, j) / at(j, j);
      for (std::int64_t i = k; i < a.n; ++i) at(i, k) -= factor * at(i, j);
    }
  }
  return count;
}

}  // namespace strata::test
