// The Matérn covariance on the CPU: lags (covariance_lag.hpp) column by column, then the
// correlation by closed form where the smoothness is 1/2, 3/2 or 5/2, otherwise by
// MaternInterpolant. One table serves all worker threads, and is kept from tile to tile while the
// smoothness stays the same: filling it in each thread took a seventh of a fit of 1,500 points. A
// diagonal tile is symmetric to the last bit, so its upper triangle is copied from the lower.

#include <cmath>
#include <memory>
#include <mutex>

#include "kernels/backend/operand.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/covariance/covariance_host.hpp"
#include "kernels/covariance/covariance_interpolant.hpp"
#include "kernels/covariance/covariance_lag.hpp"

namespace strata {
namespace host {
namespace {

/// `lag(i, j)` is that of row i from column j.
template <class T, class LagOf>
void fill(const BlockView& out, const CovarianceParameters& parameters,
          const MaternInterpolant& correlation, const LagOf& lag_of) {
  const bool diagonal = parameters.same_points && out.row == out.col && out.rows == out.cols;
  for (std::int64_t j = 0; j < out.cols; ++j) {
    T* column = static_cast<T*>(out.data) + j * out.ld;
    for (std::int64_t i = diagonal ? j : 0; i < out.rows; ++i) {
      const Lag lag = lag_of(i, j);
      double c = parameters.variance * correlation(lag.x) * lag.factor;
      if (parameters.same_points && out.row + i == out.col + j) c += parameters.nugget;
      column[i] = static_cast<T>(c);
      if (diagonal) static_cast<T*>(out.data)[j + i * out.ld] = column[i];
    }
  }
}

/// The table of a smoothness: that of the last call in the process if it is the same.
std::shared_ptr<const MaternInterpolant> interpolant_of(double smoothness) {
  static std::mutex guard;
  static std::shared_ptr<const MaternInterpolant> last;
  const std::lock_guard lock(guard);
  if (!last || last->smoothness() != smoothness)
    last = std::make_shared<const MaternInterpolant>(smoothness);
  return last;
}

template <class T, class X>
void compute(const BlockView& out, const BlockView& p, const BlockView& q,
             const CovarianceParameters& parameters) {
  // A thread asks for its table once for each smoothness.
  thread_local std::shared_ptr<const MaternInterpolant> correlation;
  if (!correlation || correlation->smoothness() != parameters.smoothness)
    correlation = interpolant_of(parameters.smoothness);
  const LagRule rule = lag_rule(parameters, p.cols);
  const X* a = static_cast<const X*>(p.data);
  const X* b = static_cast<const X*>(q.data);
  if (rule.plain()) {  // by far the most: its loop holds nothing else
    fill<T>(out, parameters, *correlation, [&](std::int64_t i, std::int64_t j) {
      return Lag{std::sqrt(square_distance(a + i, p.ld, b + j, q.ld, 0, p.cols)) / rule.range, 1};
    });
  } else {
    fill<T>(out, parameters, *correlation, [&](std::int64_t i, std::int64_t j) {
      return lag_between(rule, a + i, p.ld, b + j, q.ld);
    });
  }
}

}  // namespace

void fill_covariance(const BlockView& out, const BlockView& p, const BlockView& q,
                     const CovarianceParameters& parameters) {
  compute<double, double>(out, p, q, parameters);
}

}  // namespace host

template <class T, class X>
void covariance_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(covariance, parameters.variant, 0);
  submit_each(queue, calls, [&values = parameters_of(parameters)](const BlockView* x) {
    host::compute<T, X>(x[0], x[1], x[2], values);
  });
}

template void covariance_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_host<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_host<float, double>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
