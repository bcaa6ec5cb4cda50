// The log-determinant of a dense matrix, and what rounding does to it: log_determinant() of
// strata/cholesky.hpp.
//
// Method: the factor is that of A + E, L·Lᴴ = A + E, with |e_ij| at most γ·√(a_ii·a_jj) for
// γ = (min(i, j) + 4)·u/(1 − …), rows counted from 0 (Higham, "Accuracy and Stability of Numerical
// Algorithms", 2002, theorem 10.3, with a rounding for reciprocals; of complex numbers three times
// that). With D = diag(A)^(−1/2), S = D·A·D and F = D·E·D, log|A + E| − log|A| is the sum of the
// logarithms of the eigenvalues of I + S^(−1/2)·F·S^(−1/2), so at most
//   √n·ρ/(1 − ρ),  ρ = ‖S⁻¹‖₂·‖F‖_F,
// ‖S⁻¹‖₂ <= ‖S⁻¹‖∞. What elements that mirror each other differ by is of E, too: the bound is one
// of the sum of the logarithms of magnitudes, whatever E is. Then n logarithms are added up in
// fp64, of pivots between a_jj/‖S⁻¹‖₂ and a_jj.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>

#include "base/elapsed_time.hpp"
#include "cholesky/dense_determinant.hpp"
#include "cholesky/dense_factor.hpp"
#include "dense/certified_solution.hpp"
#include "matrix/array_columns.hpp"

namespace strata {
namespace {

/// ‖F‖_F at most, where a number rounds by u.
double scaled_factor_error(std::int64_t n, double u) {
  const auto order = static_cast<double>(n);
  double squares = 0;
  for (std::int64_t m = 0; m < n; ++m) {
    const double gamma = static_cast<double>(m + 4) * u;
    squares += (2 * (order - static_cast<double>(m)) - 1) * gamma * gamma;
  }
  const double all = (order + 4) * u;
  return all < 1 ? std::sqrt(squares) / (1 - all) : std::numeric_limits<double>::infinity();
}

}  // namespace

template <class A>
double determinant_error(Element precision, MatrixView<const A> near, double inverse_norm,
                         double lost, double log_determinant, int exponent) {
  if (near.rows == 0) return 0;
  const auto n = static_cast<double>(near.rows);
  const double u = kRoundings<A> * epsilon_of(precision) / 2;
  const double rho = inverse_norm * (scaled_factor_error(near.rows, u) + std::sqrt(n) * lost);
  if (!(rho < 1)) return std::numeric_limits<double>::infinity();
  double logarithms = n * std::log(std::max(inverse_norm, 1.0));
  for (std::int64_t i = 0; i < near.rows; ++i)
    logarithms += std::abs(std::log(static_cast<double>(real_part(near(i, i)))));
  const double powers = static_cast<double>(exponent) * n * std::log(2.0);
  return std::sqrt(n) * rho / (1 - rho) + (n + 8) * 0x1p-53 * logarithms +
         2 * 0x1p-53 * (std::abs(powers) + std::abs(log_determinant));
}

namespace {

template <class T>
LogDeterminant determinant_of(MatrixView<const T> a, const CholeskyOptions& options,
                              GivenTriangles given) {
  const auto start = std::chrono::steady_clock::now();
  CholeskyFactor factor = factor_lower<T>(a, options, StoredUntil::released);
  const SolveResult known = certify_factor(factor, a, given);
  LogDeterminant result;
  result.factor = factor.info();
  result.error = known.log_determinant_error;
  result.scaled_condition = known.certificate.scaled_condition;
  result.precision = element_of<T>;
  result.run = factor.report();
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace

template double determinant_error(Element, MatrixView<const double>, double, double, double, int);
template double determinant_error(Element, MatrixView<const float>, double, double, double, int);
template double determinant_error(Element, MatrixView<const std::complex<double>>, double, double,
                                  double, int);
template double determinant_error(Element, MatrixView<const std::complex<float>>, double, double,
                                  double, int);

LogDeterminant log_determinant(ConstArrayRef a, const CholeskyOptions& options,
                               GivenTriangles given) {
  return with_columns(a, "logdet",
                      [&](auto columns) { return determinant_of(columns, options, given); });
}

}  // namespace strata
