#pragma once
// MaternTable: the Matérn correlation of one smoothness as piecewise polynomials, for a GPU; host
// and device code.
//
// Contract: for smoothness up to kMaternTableSmoothnessMost and kMaternTableLeast <= x <
// kMaternTableMost the relative error is below 1e-13 (measured in the tests); the value depends on
// ν and x alone. Outside, matern_correlation serves.
//
// Method: that of MaternInterpolant (covariance_interpolant.hpp), with the values at the Chebyshev
// points from bessel_k.hpp. On each of eight equal pieces of a binary octave exp(x)·correlation(x)
// is the polynomial of degree 10 through them. Its Chebyshev coefficients come first, by the
// discrete cosine transform, and only then powers of t in [−1, 1]: the errors of the values then
// make up a polynomial no larger than themselves, which divided differences in double would not
// give. A value costs 11 multiplications and additions and an exponential, a tenth of the series
// and of the continued fraction.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/covariance/bessel_k.hpp"

namespace strata {

inline constexpr int kMaternTableCount = 11;  ///< coefficients of a piece
inline constexpr double kMaternTableSmoothnessMost = 10;
inline constexpr double kMaternTableLeast = 0x1p-12;
inline constexpr double kMaternTableMost = 512;
inline constexpr int kMaternTablePieces = 21 * 8;  ///< octaves times pieces of one

/// Piece 0 begins at 2^-12: its number is what is left of the bits of x without the last 49.
inline constexpr int kMaternTableShift = 49;
inline constexpr std::int64_t kMaternTableFirst = std::int64_t{1023 - 12} << 3;

/// Where x lies: its piece, and t in [−1, 1) there. kMaternTableLeast <= x < kMaternTableMost.
struct MaternTablePlace {
  int piece = 0;
  double t = 0;
};
[[nodiscard]] STRATA_HOST_DEVICE inline MaternTablePlace matern_table_place(double x) {
  std::int64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  const int piece = static_cast<int>((bits >> kMaternTableShift) - kMaternTableFirst);
  // The last 49 bits of x, as the leading ones of a number y in [1, 2).
  constexpr std::int64_t mantissa = (std::int64_t{1} << 52) - 1;
  const std::int64_t y_bits = (bits << 3 & mantissa) | std::int64_t{1023} << 52;
  double y = 0;
  std::memcpy(&y, &y_bits, sizeof y);
  return {piece, 2 * y - 3};
}

/// exp(x)·correlation(x) at Chebyshev point `k` of a piece, t = cos(π·(k + ½)/11).
[[nodiscard]] STRATA_HOST_DEVICE inline double matern_table_value(const BesselOrder& order,
                                                                  int piece, int k) {
  constexpr double pi = 3.14159265358979323846;
  const double octave = std::ldexp(kMaternTableLeast, piece / 8);
  const double t = std::cos((k + 0.5) * pi / kMaternTableCount);
  const double x = octave * (1 + (piece % 8 + 0.5 + 0.5 * t) / 8);
  const double value = order.correlation_scale * scaled_power_bessel_k(order, x);
  return x <= 2 ? value * std::exp(x) : value;
}

/// Chebyshev coefficient k of the polynomial through 11 `values`.
[[nodiscard]] STRATA_HOST_DEVICE inline double matern_table_chebyshev(const double* values, int k) {
  constexpr double pi = 3.14159265358979323846;
  double sum = 0;
  for (int j = 0; j < kMaternTableCount; ++j) {
    // cos has period 2π: k·(2j + 1) modulo 44 keeps the argument small.
    sum += values[j] *
           std::cos(k * (2 * j + 1) % (4 * kMaternTableCount) * pi / (2 * kMaternTableCount));
  }
  return sum * (k == 0 ? 1.0 : 2.0) / kMaternTableCount;
}

/// Coefficient of t^m of Σ c_k·T_k(t), by T_{k+1} = 2t·T_k − T_{k−1}.
[[nodiscard]] STRATA_HOST_DEVICE inline double matern_table_power(const double* c, int m) {
  double before[kMaternTableCount] = {1};      // T_0
  double current[kMaternTableCount] = {0, 1};  // T_1
  double sum = c[0] * before[m] + c[1] * current[m];
  for (int k = 2; k < kMaternTableCount; ++k) {
    for (int i = kMaternTableCount - 1; i >= 0; --i) {
      // before[i] is not needed below once T_k's coefficient i is there.
      before[i] = 2 * (i > 0 ? current[i - 1] : 0) - before[i];
    }
    for (int i = 0; i < kMaternTableCount; ++i) {
      const double next = before[i];
      before[i] = current[i];
      current[i] = next;
    }
    sum += c[k] * current[m];
  }
  return sum;
}

/// The correlation from the coefficients of all pieces.
[[nodiscard]] STRATA_HOST_DEVICE inline double matern_table_correlation(const double* table,
                                                                        double x) {
  const MaternTablePlace place = matern_table_place(x);
  const double* c = table + place.piece * kMaternTableCount;
  double value = c[kMaternTableCount - 1];
  for (int k = kMaternTableCount - 2; k >= 0; --k) value = value * place.t + c[k];
  return value * std::exp(-x);
}

}  // namespace strata
