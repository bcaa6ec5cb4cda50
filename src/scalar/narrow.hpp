#pragma once
// Arrays of narrow formats: rounding to them with a scale, widening from them, and the pair of
// halves.
//
// Contract: n elements, contiguous; `from` and `to` do not overlap; n = 0 is fine. `scale` is a
// power of two from 2^-126 to 2^126, else Error{misuse}; it multiplies before the one rounding, so
// that a value is code ÷ scale. (x·scale itself is exact, except where it leaves the range of the
// type of x, which is far outside that of the format.) Every element is what Half(x·scale) or
// Fp8(x·scale) gives, on every processor: there are copies of the loops for AVX2, chosen where the
// processor has it, that do the same.
//
// The pair: hi = Half(x·s), lo = Half(x·s − hi), in two planes; x = (hi + lo)/s up to an error of
//   |x·s − (hi + lo)| <= 2^-23·|x·s|  where |x·s| >= 1/4,
//                     <= 2^-25        below, because there lo is subnormal or 0 (underflows).
// So the relative error is at most 2^-22 where 1/8 <= |x·s| < 65,520, and grows as |x·s| falls
// below. With the largest |x·s| of a block in [2^14, 2^15) elements down to 2^-17 of it are as good
// as that, and the error of those below is at most 2^-39 of it. hi is infinite from |x·s| = 65,520
// on; where hi is not finite lo is 0, so the sum is hi.

#include <cstdint>

#include "scalar/fp8.hpp"
#include "scalar/half.hpp"

namespace strata {

void widen(const Half* from, float* to, std::int64_t n);
void widen(const Half* from, double* to, std::int64_t n);
void widen(const Fp8* from, float* to, std::int64_t n);
void widen(const Fp8* from, double* to, std::int64_t n);

/// to[i] = Half(from[i]·scale). Returns how many became infinite: `Half::overflows`.
std::int64_t round_to(const float* from, double scale, Half* to, std::int64_t n);
std::int64_t round_to(const double* from, double scale, Half* to, std::int64_t n);
/// to[i] = Fp8(from[i]·scale). Returns how many were saturated: `Fp8::overflows`.
std::int64_t round_to(const float* from, double scale, Fp8* to, std::int64_t n);
std::int64_t round_to(const double* from, double scale, Fp8* to, std::int64_t n);

/// hi and lo of each element; see above. Returns how many hi became infinite.
std::int64_t split(const float* from, double scale, Half* hi, Half* lo, std::int64_t n);
std::int64_t split(const double* from, double scale, Half* hi, Half* lo, std::int64_t n);
/// (hi + lo)/scale: exact in double as long as it is a normal number, and rounded once to float.
void join(const Half* hi, const Half* lo, double scale, float* to, std::int64_t n);
void join(const Half* hi, const Half* lo, double scale, double* to, std::int64_t n);

}  // namespace strata
