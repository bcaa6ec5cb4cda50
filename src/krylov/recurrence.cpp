// Recurrences.
//
// Method: the Newton basis takes Ritz values in Leja's order, a pair of conjugates by the real
// quadratic (A − a)² + b² in two steps (Bai, Hu, Reichel, "A Newton basis GMRES implementation",
// 1994). The Chebyshev basis takes the ellipse with the axes of the Ritz values' bounding box, with
// centre c, half axes a and b, δ² = a² − b². Its polynomials divided by their growth are P_{i+1} =
// (z − c)/ρ·P_i − δ²/(4ρ²)·P_{i−1}, P_1 = (z − c)/(2ρ), ρ = (a + b)/2, where δ² may be negative
// (Joubert, Carey, "Parallelizable restarted iterative methods", 1992).

#include "krylov/recurrence.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

struct BasisName {
  KrylovBasis basis;
  std::string_view name;
};
constexpr std::array kBasisNames{
    BasisName{KrylovBasis::monomial, "monomial"}, BasisName{KrylovBasis::newton, "newton"},
    BasisName{KrylovBasis::chebyshev, "chebyshev"}, BasisName{KrylovBasis::lanczos, "lanczos"}};

/// 1 where a norm is near 1, else the power of two next to its inverse.
double scale_for(double norm) {
  constexpr double kNear = 16;
  if (!(norm > 0) || !std::isfinite(norm) || (norm < kNear && norm > 1 / kNear)) return 1;
  return std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(norm))));
}

Recurrence newton(std::int64_t s, const std::vector<std::complex<double>>& ritz, double scale) {
  Recurrence steps;
  for (const std::complex<double>& z : leja_ordered(ritz, s)) {
    // The square of the imaginary part belongs to the first of a pair, which is one step back.
    const double beta = z.imag() < 0 ? -z.imag() * z.imag() * scale : 0.0;
    steps.push_back({z.real(), beta, scale});
  }
  for (std::size_t i = 0; !steps.empty() && std::ssize(steps) < s; ++i)
    steps.push_back({steps[i].alpha, 0, scale});  // fewer Ritz values than steps
  return steps;
}

Recurrence chebyshev(std::int64_t s, const std::vector<std::complex<double>>& ritz) {
  double low = ritz[0].real();
  double high = low;
  double b = 0;
  for (const std::complex<double>& z : ritz) {
    low = std::min(low, z.real());
    high = std::max(high, z.real());
    b = std::max(b, std::abs(z.imag()));
  }
  const double center = (low + high) / 2;
  const double a = (high - low) / 2;
  double rho = (a + b) / 2;
  if (!(rho > 0)) rho = center != 0 ? std::abs(center) / 2 : 1;  // a single point
  Recurrence steps;
  for (std::int64_t i = 0; i < s; ++i)
    steps.push_back(
        {center, i > 0 ? (a * a - b * b) / (4 * rho) : 0.0, 1 / (i > 0 ? rho : 2 * rho)});
  return steps;
}

}  // namespace

std::string_view to_string(KrylovBasis basis) noexcept {
  for (const BasisName& named : kBasisNames) {
    if (named.basis == basis) return named.name;
  }
  return "?";
}

KrylovBasis parse_krylov_basis(const std::string& name) {
  std::string names;
  for (const BasisName& named : kBasisNames) {
    if (named.name == name) return named.basis;
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  fail(ErrorKind::misuse, "krylov", "there is no basis '{}': {}", name, names);
}

std::vector<std::complex<double>> leja_ordered(std::vector<std::complex<double>> numbers,
                                               std::int64_t count) {
  std::erase_if(numbers, [](const std::complex<double>& z) { return z.imag() < 0; });
  std::vector<std::complex<double>> ordered;
  while (!numbers.empty() && std::ssize(ordered) < count) {
    std::size_t best = 0;
    double farthest = -INFINITY;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      double logarithm = ordered.empty() ? std::log(std::abs(numbers[i]) + 1e-300) : 0.0;
      for (const std::complex<double>& before : ordered)
        logarithm += std::log(std::abs(numbers[i] - before) + 1e-300);
      if (logarithm > farthest) {
        farthest = logarithm;
        best = i;
      }
    }
    const std::complex<double> z = numbers[best];
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(best));
    if (z.imag() > 0 && std::ssize(ordered) + 1 == count) {
      ordered.emplace_back(z.real(), 0.0);
      break;
    }
    ordered.push_back(z);
    if (z.imag() > 0) ordered.push_back(std::conj(z));
  }
  return ordered;
}

Recurrence make_recurrence(KrylovBasis basis, std::int64_t s,
                           const std::vector<std::complex<double>>& ritz, double norm) {
  const double scale = scale_for(norm);
  if (basis == KrylovBasis::newton && !ritz.empty()) return newton(s, ritz, scale);
  if (basis == KrylovBasis::chebyshev && !ritz.empty()) return chebyshev(s, ritz);
  return Recurrence(static_cast<std::size_t>(s), RecurrenceStep{0, 0, scale});
}

}  // namespace strata
