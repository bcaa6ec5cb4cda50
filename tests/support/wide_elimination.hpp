#pragma once
// An oracle for general systems: Gaussian elimination with partial pivoting in 113 bits.
//
// Contract: matrices are dense and column-major. Knows nothing of the code under test.

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "base/random.hpp"

namespace strata::test {

/// 113 bits.
__extension__ using Wide = __float128;

/// x of A·x = b, A n × n.
[[nodiscard]] inline std::vector<Wide> wide_solution(const std::vector<double>& a,
                                                     const std::vector<double>& b) {
  const auto n = std::ssize(b);
  std::vector<Wide> u(a.begin(), a.end());
  std::vector<Wide> x(b.begin(), b.end());
  const auto size = [](Wide v) { return v < 0 ? -v : v; };
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (size(u[at(i + k * n)]) > size(u[at(pivot + k * n)])) pivot = i;
    for (std::int64_t j = 0; j < n; ++j) std::swap(u[at(k + j * n)], u[at(pivot + j * n)]);
    std::swap(x[at(k)], x[at(pivot)]);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const Wide factor = u[at(i + k * n)] / u[at(k + k * n)];
      for (std::int64_t j = k; j < n; ++j) u[at(i + j * n)] -= factor * u[at(k + j * n)];
      x[at(i)] -= factor * x[at(k)];
    }
  }
  for (std::int64_t k = n; k-- > 0;) {
    x[at(k)] /= u[at(k + k * n)];
    for (std::int64_t i = 0; i < k; ++i) x[at(i)] -= u[at(i + k * n)] * x[at(k)];
  }
  return x;
}

/// log |det A| and the sign of det A; A is not singular.
struct WideDeterminant {
  double log = 0;
  int sign = 1;
};
[[nodiscard]] inline WideDeterminant wide_determinant(const std::vector<double>& a,
                                                      std::int64_t n) {
  std::vector<Wide> u(a.begin(), a.end());
  const auto size = [](Wide v) { return v < 0 ? -v : v; };
  WideDeterminant det;
  long double log = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (size(u[at(i + k * n)]) > size(u[at(pivot + k * n)])) pivot = i;
    if (pivot != k) det.sign = -det.sign;
    for (std::int64_t j = 0; j < n; ++j) std::swap(u[at(k + j * n)], u[at(pivot + j * n)]);
    if (u[at(k + k * n)] < 0) det.sign = -det.sign;
    log += std::log(static_cast<long double>(size(u[at(k + k * n)])));
    for (std::int64_t i = k + 1; i < n; ++i) {
      const Wide factor = u[at(i + k * n)] / u[at(k + k * n)];
      for (std::int64_t j = k; j < n; ++j) u[at(i + j * n)] -= factor * u[at(k + j * n)];
    }
  }
  det.log = static_cast<double>(log);
  return det;
}

/// ‖x − A⁻¹·b‖∞ / ‖A⁻¹·b‖∞, and max |b − A·x| / (|A|·|x| + |b|).
struct WideErrors {
  double forward = 0;
  double componentwise = 0;
};
template <class T>
[[nodiscard]] WideErrors wide_errors(const std::vector<double>& a, const std::vector<double>& b,
                                     const std::vector<T>& x) {
  const auto n = std::ssize(b);
  const auto size = [](Wide v) { return v < 0 ? -v : v; };
  const std::vector<Wide> exact = wide_solution(a, b);
  Wide off = 0, most = 0, worst = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Wide error = size(exact[at(i)] - static_cast<Wide>(x[at(i)]));
    off = error > off ? error : off;
    most = size(exact[at(i)]) > most ? size(exact[at(i)]) : most;
    Wide left = b[at(i)];
    Wide terms = size(left);
    for (std::int64_t j = 0; j < n; ++j) {
      const Wide product = static_cast<Wide>(a[at(i + j * n)]) * static_cast<Wide>(x[at(j)]);
      left -= product;
      terms += size(product);
    }
    if (terms > 0 && size(left) / terms > worst) worst = size(left) / terms;
  }
  return {static_cast<double>(off / most), static_cast<double>(worst)};
}

/// The elements of a symmetric matrix, those above the diagonal times 1 ± `share` at random: what
/// is left where two triangles are assembled apart.
[[nodiscard]] inline std::vector<double> nearly_symmetric(std::vector<double> full, std::int64_t n,
                                                          double share, std::uint64_t seed) {
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < j; ++i)
      full[at(i + j * n)] *= 1 + share * (2 * random_uniform(seed, at(i + j * n)) - 1);
  return full;
}

}  // namespace strata::test
