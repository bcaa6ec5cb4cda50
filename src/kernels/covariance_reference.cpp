// The Matérn covariance exactly as the formula reads, in long double, with the Bessel and gamma
// functions of Boost.Math: slow, and independent of bessel_k.hpp, whose errors it is there to find.

#include <cmath>

#include "kernels/covariance.hpp"
#include "kernels/covariance_boost.hpp"
#include "kernels/operand.hpp"

namespace strata {
namespace {

template <class T, class X>
void compute(const BlockView& out, const BlockView& p, const BlockView& q,
             const CovarianceParameters& parameters) {
  for (std::int64_t j = 0; j < out.cols; ++j) {
    for (std::int64_t i = 0; i < out.rows; ++i) {
      long double square = 0;
      for (std::int64_t k = 0; k < p.cols; ++k) {
        const long double difference =
            static_cast<long double>(static_cast<const X*>(p.data)[i + k * p.ld]) -
            static_cast<const X*>(q.data)[j + k * q.ld];
        square += difference * difference;
      }
      long double c =
          parameters.variance *
          matern_correlation_boost(parameters.smoothness, std::sqrt(square) / parameters.range);
      if (parameters.same_points && out.row + i == out.col + j) c += parameters.nugget;
      static_cast<T*>(out.data)[i + j * out.ld] = static_cast<T>(c);
    }
  }
}

}  // namespace

template <class T, class X>
void covariance_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(covariance, parameters.variant, 0);
  submit_each(queue, calls, [&values = parameters_of(parameters)](const BlockView* x) {
    compute<T, X>(x[0], x[1], x[2], values);
  });
}

template void covariance_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_reference<float, double>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
