// Method. What is computed belongs to Σ + Δ and c + δ (likelihood_rounding.cpp says which errors
// these are). With the weights λ of universal kriging and x = Σ⁻¹(z − Xβ), to first order
//     mean:      −λᵀΔx + δᵀx,
//     variance:   λᵀΔλ − 2δᵀλ,
// for both are stationary in λ. Entries of Δ and δ are random, with standard deviation e, so that
// these have e·‖(1, λ)‖·‖x‖ and about e·‖(1, λ)‖². The second order has the means e²·tr Σ⁻¹·λᵀx
// and e²·tr Σ⁻¹·‖λ‖². Errors δ of the mean's columns X and of their row x at the target change a
// variance by 2·μᵀ(δx − δXᵀλ), μ the multipliers of unbiasedness. An observation that is predicted
// from all others is the same: its weights are 1 − λ = Q·e_i/Q_ii (cross_validation.cpp).

#include "geostat/prediction_rounding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/constants.hpp"
#include "geostat/likelihood_rounding.hpp"

namespace strata {

InverseProbes probe_inverse(CovarianceSolver& solver) {
  InverseProbes out{{solver.n(), kInverseProbes}, {solver.n(), kInverseProbes}};
  fill_with_signs(out.signs.view());
  out.solutions = out.signs;
  (void)solver.solve(out.solutions.view());
  return out;
}

double rounding_amplification(const InverseProbes& probes, const CovarianceParameters& parameters) {
  const InverseNorms inverse = inverse_norms(probes.signs.view(), probes.solutions.view());
  const double e = entry_rounding(probes.signs.rows(), parameters);
  const double near_singular = 2 * e * std::sqrt(inverse.frobenius * inverse.trace);
  if (!(near_singular < 1)) return std::numeric_limits<double>::infinity();
  return (1 + e * inverse.trace) / (1 - near_singular);
}

PointErrors rounding_at(const FactoredProblem& p, double length, double multipliers) {
  PointErrors out;
  out.mean = p.entry * length * (p.solution_length + p.largest_residual / p.diagonal);
  out.mean = kRoundingDeviations * p.amplification * out.mean +
             kRoundingDeviations * kUnitRoundoff * length * p.largest_value;
  // The entries of Δ above its diagonal are those below.
  out.variance =
      kRoundingDeviations * p.amplification * std::sqrt(2.0) * p.entry * length * length +
      kRoundingDeviations * 2 * p.column_rounding * multipliers * length;
  return out;
}

namespace {

/// The least that the square root of a variance may be, whose error is given, …
double least_root(double root, double error) {
  return std::sqrt(std::max(0.0, root * root - error));
}

/// … and how far it may be off.
double root_error(double root, double error) {
  return std::max(std::sqrt(root * root + error) - root, root - least_root(root, error));
}

constexpr std::array kErrors{
    &PredictionRounding::mean_error, &PredictionRounding::standard_error_error,
    &PredictionRounding::mean_error_share, &PredictionRounding::standard_error_error_share};

void raise(double& worst, double value) {
  // What is no number is not known.
  if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  if (!(worst >= value)) worst = value;
}

}  // namespace

void note_errors(PredictionRounding& worst, const PointErrors& errors, double standard_error,
                 double process_standard_error, bool judged) {
  // Whatever it is made of, it is rounded.
  const double of_process = root_error(process_standard_error, errors.variance) +
                            4 * kUnitRoundoff * process_standard_error;
  raise(worst.mean_error, errors.mean);
  raise(worst.standard_error_error, of_process);
  if (!judged) return;
  // A standard error that rounding makes says nothing: the least that it may be counts.
  raise(worst.mean_error_share, errors.mean / least_root(standard_error, errors.variance));
  raise(worst.standard_error_error_share,
        of_process / least_root(process_standard_error, errors.variance));
}

PredictionRounding worst_of(const PredictionRounding& a, const PredictionRounding& b) {
  PredictionRounding out = a;
  for (double PredictionRounding::*part : kErrors)
    if (!std::isnan(b.*part)) raise(out.*part, b.*part);
  return out;
}

std::vector<std::int64_t> worst_rows(std::span<const PredictionRounding> all) {
  constexpr std::ptrdiff_t kEach = 4;
  std::vector<std::int64_t> rows(all.size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto last = rows.begin() + std::min(kEach, std::ssize(rows));
  std::vector<std::int64_t> some;
  for (double PredictionRounding::*error : kErrors) {
    std::partial_sort(rows.begin(), last, rows.end(), [&](std::int64_t a, std::int64_t b) {
      const double p = all[static_cast<std::size_t>(a)].*error;
      const double q = all[static_cast<std::size_t>(b)].*error;
      return p != q ? p > q : a < b;
    });
    some.insert(some.end(), rows.begin(), last);
  }
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

std::vector<std::int64_t> telling_rows(std::span<const double> mean,
                                       std::span<const double> standard_error,
                                       std::span<const char> exact) {
  constexpr std::int64_t kBestKnown = 16;
  constexpr std::int64_t kOthers = 4;
  const std::int64_t m = std::ssize(mean);
  std::vector<std::int64_t> some;
  for (std::int64_t k = 0; k < std::min(kOthers, m); ++k)
    some.push_back((2 * k + 1) * m / (2 * std::min(kOthers, m)));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(m));
  std::iota(rows.begin(), rows.end(), 0);
  const auto add_least = [&](std::int64_t most, const auto& key) {
    const auto last = rows.begin() + std::min(most, std::ssize(rows));
    std::partial_sort(rows.begin(), last, rows.end(), [&](std::int64_t a, std::int64_t b) {
      const double p = key(static_cast<std::size_t>(a));
      const double q = key(static_cast<std::size_t>(b));
      return p != q ? p < q : a < b;
    });
    some.insert(some.end(), rows.begin(), last);
  };
  add_least(kOthers, [&](std::size_t i) { return -std::abs(mean[i]); });
  add_least(kOthers, [&](std::size_t i) { return -standard_error[i]; });
  add_least(kOthers, [&](std::size_t i) { return standard_error[i]; });
  std::erase_if(rows, [&](std::int64_t i) { return exact[static_cast<std::size_t>(i)] != 0; });
  add_least(kBestKnown, [&](std::size_t i) { return standard_error[i]; });
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

}  // namespace strata
