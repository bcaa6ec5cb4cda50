// Method. What is computed belongs to Σ + Δ, Δ the rounding of the entries of Σ, of the products
// that the factorization (or a refined residual) subtracts from them, and of the solves with L.
// With x = Σ⁻¹r,
//     rᵀ(Σ + Δ)⁻¹r = rᵀΣ⁻¹r − xᵀΔx + xᵀΔΣ⁻¹Δx − …,
//     log|Σ + Δ| = log|Σ| + tr(Σ⁻¹Δ) − ½·tr(Σ⁻¹ΔΣ⁻¹Δ) + ….
// Rounding errors of entries are taken as random and independent, with standard deviation
// e·√ρ_ij, ρ the correlation: then xᵀΔx has e·√(Σ x_i²·ρ_ij·x_j²) and tr(Σ⁻¹Δ) about e·‖Σ⁻¹‖_F,
// and the second terms have the means e²·‖x‖²·tr Σ⁻¹ and ½·e²·(tr Σ⁻¹)². A sum over i, j would cost
// as much as generating Σ twice; some rows i drawn in proportion to x_i² tell it as well. An error
// of the parameters, such as the rounding of h/range, is one error in all entries, but changes the
// spectral density by a factor within 1 ± (2ν + d)·u, and so rᵀΣ⁻¹r and each eigenvalue (Stein,
// "Interpolation of Spatial Data", 1999, section 2.7). The series says nothing once
// ‖Σ^(−½)ΔΣ^(−½)‖₂, for such Δ at most 2e·√(‖Σ⁻¹‖₂·tr Σ⁻¹), comes near 1.

#include "geostat/likelihood_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/constants.hpp"
#include "base/random.hpp"
#include "base/work_crew.hpp"
#include "cholesky/covariance_entries.hpp"
#include "dense/dense_block.hpp"
#include "device/device_host.hpp"

namespace strata {
namespace {

/// Rows that tell a sum over all pairs.
constexpr std::int64_t kRows = 64;

double diagonal_of(const CovarianceParameters& parameters) {
  return parameters.variance + parameters.nugget;
}

/// Rows in proportion to their weights: at equal steps of the sum over them.
std::vector<std::int64_t> rows_by_weight(std::span<const double> weights, double sum) {
  std::vector<std::int64_t> rows;
  double passed = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    passed += weights[i];
    while (std::ssize(rows) < kRows &&
           passed > sum * (static_cast<double>(rows.size()) + 0.5) / static_cast<double>(kRows))
      rows.push_back(static_cast<std::int64_t>(i));
  }
  return rows;
}

/// Σ_ij w_i·ρ_ij·w_j, ρ the correlation without nugget, 1 on the diagonal.
double correlated_sum(const EvaluatedLikelihood& l, std::span<const double> weights) {
  constexpr std::int64_t kColumns = 1024;
  const auto n = std::ssize(weights);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(sum > 0) || !std::isfinite(sum)) return sum;
  const std::vector<std::int64_t> rows = rows_by_weight(weights, sum);
  const auto count = std::ssize(rows);
  if (count == 0) return sum * sum;  // the weights are too uneven to be added up
  std::vector<double> some;
  for (std::int64_t c = 0; c < l.points.cols; ++c)
    for (const std::int64_t row : rows) some.push_back(l.points(row, c));
  CovarianceParameters plain = l.parameters;
  plain.same_points = false;
  // A sum for each strip of columns, so that the whole is the same on any number of threads.
  std::vector<double> sums(static_cast<std::size_t>((n + kColumns - 1) / kColumns));
  const auto add_strip = [&](std::int64_t strip) {
    CovarianceEntries entries(plain);
    const std::int64_t first = strip * kColumns;
    const std::int64_t width = std::min(kColumns, n - first);
    DenseBlock c(count, width);
    entries.fill({some.data(), count, l.points.cols, count}, 0,
                 l.points.block(first, 0, width, l.points.cols), 0, c.view());
    double& strip_sum = sums[static_cast<std::size_t>(strip)];
    for (std::int64_t j = 0; j < width; ++j) {
      const double weight = weights[static_cast<std::size_t>(first + j)];
      for (std::int64_t i = 0; i < count; ++i) strip_sum += c.column(j)[i] * weight;
    }
  };
  WorkCrew crew(describe_host().compute_queues - 1);
  crew.share(std::ssize(sums), add_strip);
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  return sum * total / (static_cast<double>(count) * l.parameters.variance);
}

/// By how much rounding of one part in 2⁵³ of the parameters changes a spectral density.
double spectral_rounding(const EvaluatedLikelihood& l) {
  const double stretch = 1 / l.parameters.separation.anisotropy_ratio;
  return kUnitRoundoff * (2 * l.parameters.smoothness + static_cast<double>(l.points.cols) + 4) *
         stretch;
}

double root_of_squares(std::initializer_list<double> terms) {
  double sum = 0;
  for (const double term : terms) sum += term * term;
  return std::sqrt(sum);
}

}  // namespace

void fill_with_signs(MatrixView<double> v) {
  constexpr std::uint64_t kSeed = 1951;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    for (std::int64_t i = 0; i < v.rows; ++i) {
      const auto counter = static_cast<std::uint64_t>(j * v.rows + i);
      v(i, j) = (random_bits(kSeed, counter) >> 63) != 0 ? 1.0 : -1.0;
    }
  }
}

InverseNorms inverse_norms(MatrixView<const double> v, MatrixView<const double> solutions) {
  InverseNorms out;
  double square = 0;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    out.trace += dot(v.rows, v.column(j), solutions.column(j));
    square += dot(v.rows, solutions.column(j), solutions.column(j));
  }
  out.trace /= static_cast<double>(v.cols);
  out.frobenius = std::sqrt(square / static_cast<double>(v.cols));
  return out;
}

double entry_rounding(std::int64_t n, const CovarianceParameters& parameters) {
  const double additions = std::sqrt(1 + static_cast<double>(n) / 12);
  return kUnitRoundoff * additions * diagonal_of(parameters);
}

LikelihoodError likelihood_rounding(const EvaluatedLikelihood& l) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(l.solution.size());
  const double e = entry_rounding(std::ssize(l.solution), l.parameters);
  const double near_singular = 2 * e * std::sqrt(l.inverse.frobenius * l.inverse.trace);
  if (!(near_singular < 1)) return {infinity, infinity};
  const double q = l.quadratic_form;
  std::vector<double> squares(l.solution.size());
  std::transform(l.solution.begin(), l.solution.end(), squares.begin(),
                 [](double x) { return x * x; });
  // Rounding of a solve with L: the partial sums of row i are about as large as the values, or as
  // what whitened values of their mean square make of a unit diagonal.
  const double explained = diagonal_of(l.parameters) * q / n;
  double solves = 0;
  double data = 0;
  double along_mean = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    solves += squares[i] * (explained + l.data_square[i]);
    data += squares[i] * l.data_square[i];
    along_mean += l.solution[i];
  }
  const double length_square = std::accumulate(squares.begin(), squares.end(), 0.0);
  const double of_entries = e * std::sqrt(correlated_sum(l, squares));
  const double of_solves = 2 * e / diagonal_of(l.parameters) * std::sqrt(solves);
  const double of_data = 2 * kUnitRoundoff * std::sqrt(data);
  const double of_mean = 2 * kUnitRoundoff * l.mean_rounding * std::abs(along_mean);
  const double of_sums = q * (spectral_rounding(l) + kUnitRoundoff * std::sqrt(n));
  LikelihoodError out;
  out.quadratic_form =
      kRoundingDeviations * root_of_squares({of_entries, of_solves, of_data, of_mean, of_sums}) +
      e * e * length_square * l.inverse.trace;
  const double of_logs =
      kUnitRoundoff * (std::abs(l.log_determinant) + n) + spectral_rounding(l) * n;
  const double of_pivots = e * l.inverse.frobenius;
  out.log_determinant = kRoundingDeviations * root_of_squares({of_pivots, of_logs}) +
                        0.5 * (e * l.inverse.trace) * (e * l.inverse.trace);
  out.quadratic_form /= 1 - near_singular;
  out.log_determinant /= 1 - near_singular;
  return out;
}

}  // namespace strata
