#pragma once
// Quotients on a GPU, rounded correctly without a division where that is possible: with y the
// rounded reciprocal of b and q within an ulp of a/b, q + y·(a − b·q) is (Markstein, "Computation
// of elementary functions on the IBM RISC System/6000 processor", 1990), if nothing underflows;
// where something could, they are divided. Contract: included by gram*_cuda.cu and the like only.

#include "kernels/tall/gram_common_cuda.hpp"

namespace strata::gram_gpu {

/// Below 2^-823 or from 2^824 on, or not a number: what is computed from it may under- or overflow.
__device__ inline bool near_the_ends(double x) {
  return (static_cast<unsigned>(__double2hiint(x)) << 1) - (200U << 21) >= 1647U << 21;
}

/// NaN for a b whose quotients are left to division.
__device__ inline double reciprocal(double b) {
  return near_the_ends(b) ? __longlong_as_double(0x7ff8000000000000LL) : __drcp_rn(b);
}
/// a / b without a division, y being the reciprocal of b; or `failed` is set.
__device__ inline double quotient_unless(double a, double b, double y, bool& failed) {
  double q = rounded_product(a, y);
  failed = failed || near_the_ends(a) || near_the_ends(q);
  q = fused(fused(-b, q, a), y, q);
  return fused(fused(-b, q, a), y, q);
}
/// a / b; y is the reciprocal of b.
__device__ inline double quotient(double a, double b, double y) {
  bool failed = false;
  const double q = quotient_unless(a, b, y, failed);
  return failed ? rounded_quotient(a, b) : q;
}
__device__ inline float quotient(float a, float b, double) { return rounded_quotient(a, b); }
__device__ inline DoubleDouble quotient(const DoubleDouble& a, const DoubleDouble& b, double y) {
  const double first = quotient(a.hi, b.hi, y);
  const DoubleDouble rest = subtract_product(a, DoubleDouble(first), b);
  return fast_two_sum(first, quotient(rest.hi, b.hi, y));
}

}  // namespace strata::gram_gpu
