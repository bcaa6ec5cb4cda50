// covariance_times as its contract reads: elements and the sum of a run in long double.

#include "kernels/backend/operand.hpp"
#include "kernels/covariance/covariance_reference.hpp"
#include "kernels/covariance/covariance_times.hpp"

namespace strata {
namespace reference {
namespace {

/// Columns first … end − 1 of C: one run.
void subtract_run(const BlockView* x, const CovarianceParameters& parameters, std::int64_t first,
                  std::int64_t end) {
  const auto y = matrix_of<double>(x[0]);
  const auto v = matrix_of<const double>(x[3]);
  std::vector<long double> c(static_cast<std::size_t>(end - first));
  for (std::int64_t i = 0; i < y.rows; ++i) {
    for (std::int64_t j = first; j < end; ++j) {
      long double& element = c[static_cast<std::size_t>(j - first)];
      element = covariance_element<double>(parameters, x[1], i, x[2], j);
      if (parameters.same_points && x[0].row + i == x[3].row + j) element += parameters.nugget;
    }
    for (std::int64_t k = 0; k < y.cols; ++k) {
      long double sum = 0;
      for (std::int64_t j = first; j < end; ++j)
        sum += c[static_cast<std::size_t>(j - first)] * v(j, k);
      y(i, k) = static_cast<double>(y(i, k) - sum);
    }
  }
}

}  // namespace
}  // namespace reference

void covariance_times_reference(Queue& queue, const KernelCalls& calls,
                                const KernelParameters& parameters) {
  require_variant(covariance_times, parameters.variant, 0);
  submit_each(queue, calls, [&values = parameters_of(parameters)](const BlockView* x) {
    for (std::int64_t first = 0; first < x[3].rows; first += kCovarianceRun)
      reference::subtract_run(x, values, first, std::min(first + kCovarianceRun, x[3].rows));
  });
}

}  // namespace strata
