// Reference of householder.hpp: sums lane by lane.

#include "kernels/tall/householder_tree.hpp"

namespace strata {
namespace {

struct PlainLoops {
  static double dot(const double* x, const double* y, std::int64_t rows) {
    double lanes[kHouseholderLanes] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
      double& lane = lanes[r % kHouseholderLanes];
      lane = fused(x[r], y[r], lane);
    }
    for (int half = kHouseholderLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  }
  static void subtract(double t, const double* v, double* x, std::int64_t rows) {
    for (std::int64_t r = 0; r < rows; ++r) x[r] = fused(-t, v[r], x[r]);
  }
  static void combine(const double* v, std::int64_t ld, std::int64_t p, const double* w,
                      std::int64_t stride, double* y, std::int64_t rows) {
    for (std::int64_t r = 0; r < rows; ++r) {
      y[r] = 0;
      for (std::int64_t k = 0; k < p; ++k) y[r] = fused(-w[k * stride], v[r + k * ld], y[r]);
    }
  }
};

}  // namespace

HouseholderKernels householder_reference() {
  return HouseholderOnCpu<PanelSteps<PlainLoops>>::kernels();
}

}  // namespace strata
