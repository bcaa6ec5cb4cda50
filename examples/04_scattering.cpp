// Sound around a hard object, by boundary elements: a complex system that is not symmetric, solved
// for many excitations with one LU factorization, in a fifth of the memory of its matrix.
//
// The field of a source inside the object, seen from outside, is known: so every excitation has an
// exact answer to compare with. The pressure on the boundary is ∫ (i/4)·H₀(k·|x − y|)·σ(y) ds =
// p(x); the logarithm in the kernel is integrated exactly (Martensen, Kussmaul; see Colton, Kress,
// "Inverse Acoustic and Electromagnetic Scattering Theory", section 3.6).
//
// Prints what was solved, how far the densities may be off, and how far the fields outside are.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <numbers>
#include <strata/strata.hpp>
#include <vector>

namespace {

using Complex = std::complex<double>;
using std::numbers::pi;

constexpr double kWaves = 6;  // the wave number

struct Point {
  double x = 0, y = 0;
};
double distance(Point p, Point q) { return std::hypot(p.x - q.x, p.y - q.y); }

/// The boundary, a kite, at t in [0, 2π), and how fast it goes by.
Point boundary(double t) {
  return {std::cos(t) + 0.65 * std::cos(2 * t) - 0.65, 1.5 * std::sin(t)};
}
double speed(double t) {
  return std::hypot(-std::sin(t) - 1.3 * std::sin(2 * t), 1.5 * std::cos(t));
}

/// The field of a source: (i/4)·H₀(k·r).
Complex source(double r) {
  const double z = kWaves * r;
  return Complex(0, 0.25) * Complex(std::cyl_bessel_j(0, z), std::cyl_neumann(0, z));
}

/// Element (i, j) for n = 2m nodes: what density at node j makes at node i.
Complex element(std::int64_t i, std::int64_t j, std::int64_t n,
                const std::vector<double>& weights) {
  const double step = 2 * pi / static_cast<double>(n);
  const double t = step * static_cast<double>(i);
  const double u = step * static_cast<double>(j);
  const double weight = weights[static_cast<std::size_t>(std::abs(i - j))];
  if (i == j) {
    const Complex smooth(-(std::log(kWaves * speed(t) / 2) + std::numbers::egamma) / (2 * pi),
                         0.25);
    return speed(t) * (-weight / (4 * pi) + step * smooth);
  }
  const double r = distance(boundary(t), boundary(u));
  const double singular = -std::cyl_bessel_j(0, kWaves * r) / (4 * pi);
  const double sine = std::sin((t - u) / 2);
  const Complex smooth = source(r) - singular * std::log(4 * sine * sine);
  return speed(u) * (weight * singular + step * smooth);
}

/// Weights of ∫ ln(4·sin²((t_i − u)/2))·f(u) du, by |i − j|.
std::vector<double> log_weights(std::int64_t n) {
  const std::int64_t m = n / 2;
  std::vector<double> weights;
  for (std::int64_t d = 0; d < n; ++d) {
    double sum = 0;
    for (std::int64_t l = 1; l < m; ++l)
      sum += std::cos(pi * static_cast<double>(l * d % n) / static_cast<double>(m)) /
             static_cast<double>(l);
    const auto half = static_cast<double>(m);
    weights.push_back(-2 * pi / half * sum - (d % 2 == 0 ? pi : -pi) / (half * half));
  }
  return weights;
}

}  // namespace

int main() {
  const std::int64_t n = 400;
  const std::int64_t excitations = 24;
  const std::vector<double> weights = log_weights(n);
  std::vector<Complex> a(n * n), b(n * excitations), density(n * excitations);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) a[i + j * n] = element(i, j, n, weights);
  const double step = 2 * pi / n;
  const auto inside = [](std::int64_t e) {  // sources on a small circle in the kite
    const double turn = 2 * pi * static_cast<double>(e) / excitations;
    return Point{-0.3 + 0.2 * std::cos(turn), 0.2 * std::sin(turn)};
  };
  for (std::int64_t e = 0; e < excitations; ++e)
    for (std::int64_t i = 0; i < n; ++i)
      b[i + e * n] = source(distance(boundary(step * static_cast<double>(i)), inside(e)));

  strata::LuOptions options;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = n * n * 16 / 5;
  const strata::GeneralSolveResult result =
      strata::solve_general({a.data(), n, n, n}, {b.data(), n, excitations, n},
                            {density.data(), n, excitations, n}, options);
  if (!result.info.ok) return 1;

  double worst = 0;
  for (std::int64_t e = 0; e < excitations; ++e) {
    const Point there{3.0, 1.0 + 0.1 * static_cast<double>(e)};
    Complex field = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double u = step * static_cast<double>(j);
      field += step * speed(u) * source(distance(there, boundary(u))) * density[j + e * n];
    }
    worst = std::max(worst, std::abs(field - source(distance(there, inside(e)))));
  }
  std::printf("%lld unknowns, %lld excitations, in %s; %.0f %% of the matrix on the device\n",
              static_cast<long long>(n), static_cast<long long>(excitations),
              strata::to_string(result.certificate.precision).data(),
              100.0 * static_cast<double>(result.factor.peak_device_bytes) / (16.0 * n * n));
  std::printf("densities off by at most %.0e of the largest, condition about %.0e\n",
              result.certificate.forward_error, result.certificate.scaled_condition);
  std::printf("fields outside are off by at most %.1e\n", worst);
  return worst < 1e-9 ? 0 : 1;
}
