#pragma once
// Hermitian systems in closed form, and options that run them in small tiles.

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "strata/cholesky.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {

using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;

/// Hermitian, elements in a square around zero, diagonally dominant.
template <class T>
Matrix<T> random_hermitian(std::int64_t n, std::uint64_t seed) {
  return make_matrix<T>(n, n, [=](auto i, auto j) {
    const auto lo = static_cast<std::uint64_t>(std::min(i, j));
    const auto hi = static_cast<std::uint64_t>(std::max(i, j));
    const std::uint64_t k = 2 * (hi * (hi + 1) / 2 + lo);
    if (i == j) return Complex128(1.5 * static_cast<double>(n));
    const Complex128 z(2 * random_uniform(seed, k) - 1, 2 * random_uniform(seed, k + 1) - 1);
    return i > j ? z : std::conj(z);
  });
}

/// Hilbert's matrix between turns of its rows: condition about 1.3·10^(1.5·n), elements e^(i·t).
template <class T>
Matrix<T> turned_hilbert(std::int64_t n, double ridge = 0) {
  return make_matrix<T>(n, n, [=](auto i, auto j) {
    const double size = 1.0 / static_cast<double>(i + j + 1) + (i == j ? ridge : 0.0);
    const Complex128 z = std::polar(size, static_cast<double>(std::max(i, j) * std::max(i, j) -
                                                              std::min(i, j) * std::min(i, j)));
    return i == j ? Complex128(size) : i > j ? z : std::conj(z);
  });
}

template <class T>
Matrix<T> complex_waves(std::int64_t n, std::int64_t columns) {
  return make_matrix<T>(n, columns, [](auto i, auto j) {
    return std::polar(1.0 + 0.1 * static_cast<double>(j), static_cast<double>(1 + 3 * i + 7 * j));
  });
}

inline CholeskyOptions tiled_options(const std::string& devices, std::int64_t tile,
                                     std::int64_t tiles) {
  CholeskyOptions options;
  options.run.devices = devices;
  options.tile = tile;
  options.run.device_memory_bytes = tiles * (tile * tile * 16 + 256);
  options.run.compute_queues = 2;
  return options;
}

}  // namespace strata::test
