#pragma once
// Sums of products as if in twice the working precision, on the host and on a GPU.
//
// Method: Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005),
// algorithm 5.3 (Dot2): the rounding error of every product and every sum is found exactly and
// added up beside them. The backward error of a good factor is a few roundings; evaluated in plain
// double precision, the error of the evaluation, which grows with the order, hides it.

#include <cmath>

#if defined(__CUDACC__)
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif

namespace strata::bench {

struct CompensatedSum {
  double sum = 0;
  double rest = 0;

  STRATA_HOST_DEVICE void add(double value) {
    const double before = sum;
    sum = before + value;
    const double taken = sum - before;
    rest += (before - (sum - taken)) + (value - taken);
  }
  STRATA_HOST_DEVICE void add_product(double a, double b) {
#if defined(__CUDA_ARCH__)
    const double product = __dmul_rn(a, b);  // never joined with the addition that follows
#else
    const double product = a * b;
#endif
    rest += std::fma(a, b, -product);
    add(product);
  }
  STRATA_HOST_DEVICE void add_product(double a, const CompensatedSum& b) {
    add_product(a, b.sum);
    rest += a * b.rest;
  }
  STRATA_HOST_DEVICE void add(const CompensatedSum& other) {
    add(other.sum);
    rest += other.rest;
  }
  [[nodiscard]] STRATA_HOST_DEVICE double value() const { return sum + rest; }
};

}  // namespace strata::bench

#undef STRATA_HOST_DEVICE
