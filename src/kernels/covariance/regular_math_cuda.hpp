#pragma once
// Square root and exponential without branches, for arguments that need none. Included by .cu files
// only.
//
// What the library's functions do for the ends of the range is a branch each, and the compiler
// moves no instruction across a branch: the elements of a loop then follow one another, each
// waiting for its own chain of dependent operations. Without branches several go at once.

#include "device/device_cuda.hpp"

namespace strata::regular {

/// √s for 2^-960 <= s <= 2^960, to the last bit but for rounding: the reciprocal root of the GPU,
/// one step of third order, and the correction of the remainder.
__device__ inline double square_root(double s) {
  double y = 0;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(s));
  const double error = fma(-s, y * y, 1.0);
  y = fma(fma(error, 0.375, 0.5), y * error, y);
  const double h = s * y;
  return fma(fma(-h, h, s), 0.5 * y, h);
}

/// exp(−x) for 0 <= x <= 700, within 0.8 units in the last place: 2^n·e^r, |r| <= ln(2)/2, e^r = 1
/// + r + r²·q(r) with q of degree 9 through Chebyshev's points (e^r to 2^-55.7).
__device__ inline double exp_of_minus(double x) {
  constexpr double kShift = 0x1.8p52;  // rounds to an integer, which then lies in the low word
  const double shifted = fma(-x, 0x1.71547652b82fep+0, kShift);
  const double n = shifted - kShift;
  double r = fma(-n, 0x1.62e42fee00000p-1, -x);  // exact
  r = fma(-n, 0x1.a39ef35793c76p-33, r);
  double p = fma(0x1.af38d53857513p-26, r, 0x1.2891a8c1d838dp-22);
  p = fma(p, r, 0x1.71de0d9c145d0p-19);
  p = fma(p, r, 0x1.a019b8ef67c6cp-16);
  p = fma(p, r, 0x1.a01a01a7c8d47p-13);
  p = fma(p, r, 0x1.6c16c17893833p-10);
  p = fma(p, r, 0x1.11111111109adp-7);
  p = fma(p, r, 0x1.5555555553d4fp-5);
  p = fma(p, r, 0x1.5555555555556p-3);
  p = fma(p, r, 0x1.0000000000001p-1);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  // Times 2^n: p is in (0.7, 1.42), and n at least −1010.
  return __hiloint2double(__double2hiint(p) + (__double2loint(shifted) << 20), __double2loint(p));
}

}  // namespace strata::regular
