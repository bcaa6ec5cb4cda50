// householder.hpp on the CPU.
//
// Method: a panel lies in the second-level cache; the 32 lanes of a sum are eight vectors, which do
// not wait for each other.

#include "kernels/backend/run_fused.hpp"
#include "kernels/tall/householder_tree.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace {

constexpr int kHouseholderVectors = kHouseholderLanes / kLanes;

/// Columns are zero from their rows on to a whole number of kHouseholderLanes.
struct VectorLoops {
  [[gnu::always_inline]] static double dot(const double* x, const double* y, std::int64_t rows) {
    Lanes sums[kHouseholderVectors];
    for (std::int64_t r = 0; r < rows; r += kHouseholderLanes) {
#pragma GCC unroll 8
      for (int k = 0; k < kHouseholderVectors; ++k)
        sums[k] = fused(Lanes::load(x + r + k * kLanes), Lanes::load(y + r + k * kLanes), sums[k]);
    }
#pragma GCC unroll 8
    for (int half = kHouseholderVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (int k = 0; k < half; ++k) sums[k] = rounded_sum(sums[k], sums[k + half]);
    }
    const Lanes::Vector& s = sums[0].values;
    return (s[0] + s[2]) + (s[1] + s[3]);
  }
  [[gnu::always_inline]] static void subtract(double t, const double* v, double* x,
                                              std::int64_t rows) {
    const Lanes minus(-t);
    for (std::int64_t r = 0; r < rows; r += kLanes)
      fused(minus, Lanes::load(v + r), Lanes::load(x + r)).store(x + r);
  }
  /// As many rows at a time as registers hold.
  [[gnu::always_inline]] static void combine(const double* v, std::int64_t ld, std::int64_t p,
                                             const double* w, std::int64_t stride, double* y,
                                             std::int64_t rows) {
    for (std::int64_t r = 0; r < rows; r += kHouseholderLanes) {
      Lanes sums[kHouseholderVectors];
      for (std::int64_t k = 0; k < p; ++k) {
        const Lanes minus(-w[k * stride]);
#pragma GCC unroll 8
        for (int i = 0; i < kHouseholderVectors; ++i)
          sums[i] = fused(minus, Lanes::load(v + r + k * ld + i * kLanes), sums[i]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kHouseholderVectors; ++i) sums[i].store(y + r + i * kLanes);
    }
  }
};

struct FactorPanel {
  [[gnu::always_inline]] static void run(double* a, double* v, std::int64_t ld, std::int64_t rows,
                                         std::int64_t n, double* tau) {
    PanelSteps<VectorLoops>::factor(a, v, ld, rows, n, tau);
  }
};
struct MultiplyPanel {
  [[gnu::always_inline]] static void run(double* a, std::int64_t ld, std::int64_t rows,
                                         std::int64_t n, const double* tau, double* work,
                                         const double* c, std::int64_t c_ld, double* y) {
    PanelSteps<VectorLoops>::multiply(a, ld, rows, n, tau, work, c, c_ld, y);
  }
};

struct VectorPanels {
  static void factor(double* a, double* v, std::int64_t ld, std::int64_t rows, std::int64_t n,
                     double* tau) {
    run_fused<FactorPanel>(a, v, ld, rows, n, tau);
  }
  static void multiply(double* a, std::int64_t ld, std::int64_t rows, std::int64_t n,
                       const double* tau, double* work, const double* c, std::int64_t c_ld,
                       double* y) {
    run_fused<MultiplyPanel>(a, ld, rows, n, tau, work, c, c_ld, y);
  }
};

}  // namespace

HouseholderKernels householder_host() { return HouseholderOnCpu<VectorPanels>::kernels(); }

}  // namespace strata
