#pragma once
// Complex general matrices, and what is true of solutions with them.
//
// Contract: nothing of the library's arithmetic. Errors are found from the real system
// [B −C; C B]·[u; v] of A = B + C·i, eliminated in 113 bits.

#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "tests/lu/general_matrices.hpp"
#include "tests/support/hermitian_oracle.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata::test {

using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;

/// i^k, exactly.
[[nodiscard]] inline Complex128 quarter_turn(std::int64_t k) {
  constexpr double kCosines[] = {1, 0, -1, 0};
  return {kCosines[k % 4], kCosines[(k + 3) % 4]};
}

[[nodiscard]] inline Complex128 complex_uniform(std::uint64_t seed, std::int64_t i,
                                                std::int64_t j) {
  return {signed_uniform(seed, i, j), signed_uniform(seed + 1000, i, j)};
}

template <class T = Complex128>
[[nodiscard]] Matrix<T> random_complex(std::int64_t rows, std::int64_t cols,
                                       std::uint64_t seed = 1) {
  return make_matrix<T>(rows, cols, [=](auto i, auto j) { return complex_uniform(seed, i, j); });
}

/// Rows and columns turned by quarters, which changes no magnitude and no sum of parts.
[[nodiscard]] inline Matrix<Complex128> turned(const Matrix<double>& a) {
  return make_matrix<Complex128>(
      a.rows, a.cols, [&](auto i, auto j) { return a(i, j) * quarter_turn(i * i + 3 * j + i); });
}

/// Rows and columns times numbers of magnitude 1, but for rounding.
[[nodiscard]] inline Matrix<Complex128> turned_freely(const Matrix<double>& a) {
  return make_matrix<Complex128>(a.rows, a.cols, [&](auto i, auto j) {
    return std::polar(1.0, static_cast<double>(i * i)) * a(i, j) *
           std::polar(1.0, static_cast<double>(5 * j));
  });
}

/// √n times a unitary matrix.
[[nodiscard]] inline Matrix<Complex128> fourier_matrix(std::int64_t n) {
  return make_matrix<Complex128>(n, n, [=](auto i, auto j) {
    const double turn = static_cast<double>(i * j % n) / static_cast<double>(n);
    return std::polar(1.0, -2 * std::acos(-1.0) * turn);
  });
}

struct ComplexKind {
  std::string name;
  std::function<Matrix<Complex128>(std::int64_t n)> make;
  bool grows = false;  ///< as GeneralKind
};
inline void PrintTo(const ComplexKind& kind, std::ostream* stream) { *stream << kind.name; }

/// The real kinds turned, and some that are complex by nature.
[[nodiscard]] inline std::vector<ComplexKind> complex_kinds() {
  std::vector<ComplexKind> kinds;
  for (const GeneralKind& kind : general_kinds())
    kinds.push_back({"turned_" + kind.name,
                     [make = kind.make](std::int64_t n) { return turned(make(n)); }, kind.grows});
  kinds.push_back({"random", [](std::int64_t n) { return random_complex(n, n); }});
  kinds.push_back({"fourier", fourier_matrix});
  kinds.push_back({"circulant", [](std::int64_t n) {
                     return make_matrix<Complex128>(n, n, [=](auto i, auto j) {
                       return complex_uniform(9, (i - j + n) % n, 0);
                     });
                   }});
  kinds.push_back({"companion", [](std::int64_t n) {
                     return make_matrix<Complex128>(n, n, [=](auto i, auto j) {
                       return i == 0 ? complex_uniform(11, 0, j) + (j == n - 1 ? 2.0 : 0.0)
                                     : Complex128(i == j + 1 ? 1 : 0);
                     });
                   }});
  return kinds;
}

struct ComplexErrors {
  double forward = 0;  ///< ‖x − A⁻¹·b‖∞ / ‖x‖∞
  double normwise = 0;
  double componentwise = 0;
};

/// Errors of column c.
template <class A, class B, class X>
[[nodiscard]] ComplexErrors complex_errors(const Matrix<A>& a, const Matrix<B>& b,
                                           const Matrix<X>& x, std::int64_t c = 0) {
  const std::int64_t n = a.rows;
  std::vector<double> parts(at(4 * n * n));
  std::vector<double> right(at(2 * n));
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      parts[at(i + 2 * n * j)] = parts[at(n + i + 2 * n * (n + j))] = a(i, j).real();
      parts[at(n + i + 2 * n * j)] = a(i, j).imag();
      parts[at(i + 2 * n * (n + j))] = -a(i, j).imag();
    }
    right[at(j)] = b(j, c).real();
    right[at(n + j)] = b(j, c).imag();
  }
  const std::vector<Wide> exact = wide_solution(parts, right);
  double off = 0;
  double most = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Wide re = exact[at(i)];
    const Wide im = exact[at(n + i)];
    most = std::max(most, std::abs(Complex128(x(i, c))));
    off = std::max(off, std::hypot(static_cast<double>(re - Wide(x(i, c).real())),
                                   static_cast<double>(im - Wide(x(i, c).imag()))));
  }
  const HermitianErrors backward = hermitian_errors(a, b, x, c);
  return {off == 0 ? 0 : off / most, backward.normwise, backward.componentwise};
}

}  // namespace strata::test
