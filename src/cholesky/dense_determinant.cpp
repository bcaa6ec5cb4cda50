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
#include <limits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "cholesky/dense_system.hpp"
#include "kernels/dense/host_residual.hpp"
#include "scalar/safe_range.hpp"

namespace strata {
namespace {

/// ‖F‖_F at most, for rounding in T.
template <class T>
double scaled_factor_error(std::int64_t n) {
  const double u = kRoundings<T> * double{std::numeric_limits<RealOf<T>>::epsilon()} / 2;
  const auto order = static_cast<double>(n);
  double squares = 0;
  for (std::int64_t m = 0; m < n; ++m) {
    const double gamma = static_cast<double>(m + 4) * u;
    squares += (2 * (order - static_cast<double>(m)) - 1) * gamma * gamma;
  }
  const double all = (order + 4) * u;
  return all < 1 ? std::sqrt(squares) / (1 - all) : std::numeric_limits<double>::infinity();
}

/// A bound of the error of log|A| in the range where A was factored.
template <class T>
double determinant_error(MatrixView<const T> a, double inverse_norm, double lost) {
  const auto n = static_cast<double>(a.rows);
  const double rho = inverse_norm * (scaled_factor_error<T>(a.rows) + std::sqrt(n) * lost);
  if (!(rho < 1)) return std::numeric_limits<double>::infinity();
  double logarithms = n * std::log(std::max(inverse_norm, 1.0));
  for (std::int64_t i = 0; i < a.rows; ++i)
    logarithms += std::abs(std::log(static_cast<double>(real_part(a(i, i)))));
  return std::sqrt(n) * rho / (1 - rho) + (n + 8) * 0x1p-53 * logarithms;
}

template <class T>
LogDeterminant determinant_of(MatrixView<const T> a, const Options& options, GivenTriangles given) {
  const auto start = std::chrono::steady_clock::now();
  const int exponent = exponent_out_of_range(largest_diagonal(a), element_of<T>);
  OwnedColumns<T> copy;
  MatrixView<const T> near = a;
  Loss loss;
  if (exponent != 0 && a.rows == a.cols) {
    copy = divided(a, exponent, given);
    near = std::as_const(copy).view();
    loss = loss_of(a, near, exponent);
  }
  CholeskyFactor factor = cholesky(near, options);
  LogDeterminant result;
  result.precision = element_of<T>;
  result.run = factor.report();
  result.factor = factor.info();
  if (!result.factor.ok) {
    result.factor.bad_pivot = std::scalbn(result.factor.bad_pivot, exponent);
    return result;
  }
  const double powers = static_cast<double>(exponent) * static_cast<double>(a.rows) * std::log(2.0);
  result.factor.log_determinant += powers;
  result.scaled_condition = 1;
  result.error = 0;
  if (a.rows > 0) {
    const std::vector<double> scale = unit_scale(near);
    RunReport solves;
    const double inverse_norm = scaled_inverse_norm<T>(factor, scale, solves);
    // ‖S⁻¹‖∞·‖S‖∞, as Certificate has it.
    DenseBlock columns(a.rows, 1);
    std::copy(scale.begin(), scale.end(), columns.column(0));
    DenseBlock sums(a.rows, 1);
    symmetric_magnitudes(near, std::as_const(columns).view(), sums.view());
    double norm = 0;
    for (std::int64_t i = 0; i < a.rows; ++i)
      norm = std::max(norm, scale[at(i)] * sums.column(0)[i]);
    result.scaled_condition = norm * inverse_norm;
    const double differs = given == GivenTriangles::both ? scaled_asymmetry(near, scale) : 0;
    result.error = determinant_error(near, inverse_norm, loss.scaled_norm + differs) +
                   2 * 0x1p-53 * (std::abs(powers) + std::abs(result.factor.log_determinant));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

LogDeterminant log_determinant(MatrixView<const double> a, const Options& options,
                               GivenTriangles given) {
  return determinant_of(a, options, given);
}
LogDeterminant log_determinant(MatrixView<const float> a, const Options& options,
                               GivenTriangles given) {
  return determinant_of(a, options, given);
}
LogDeterminant log_determinant(MatrixView<const std::complex<double>> a, const Options& options,
                               GivenTriangles given) {
  return determinant_of(a, options, given);
}
LogDeterminant log_determinant(MatrixView<const std::complex<float>> a, const Options& options,
                               GivenTriangles given) {
  return determinant_of(a, options, given);
}

}  // namespace strata
