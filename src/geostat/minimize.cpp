// Several variables: BOBYQA (M. J. D. Powell, "The BOBYQA algorithm for bound constrained
// optimization without derivatives", 2009) as in NLopt, the method of the field: it needs about
// twenty evaluations for each variable, and an evaluation here is a whole factorization. BOBYQA is
// not defined for one variable; there Subplex, which then is a one-dimensional Nelder-Mead search,
// takes its place.

#include "geostat/minimize.hpp"

#include <nlopt.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>

#include "base/check.hpp"

namespace strata {
namespace {

struct Call {
  const std::function<double(const std::vector<double>&)>* f = nullptr;
  nlopt_opt optimizer = nullptr;
  std::exception_ptr failure;
  Minimum best;  // the best point seen, whatever the optimizer returns
  bool any = false;
};

double evaluate(unsigned n, const double* x, double*, void* data) noexcept {
  Call& call = *static_cast<Call*>(data);
  if (call.failure) return 0;
  try {
    const std::vector<double> point(x, x + n);
    const double value = (*call.f)(point);
    if (!call.any || value < call.best.value) {
      call.best.x = point;
      call.best.value = value;
      call.any = true;
    }
    return value;
  } catch (...) {
    call.failure = std::current_exception();
    nlopt_force_stop(call.optimizer);
    return 0;
  }
}

}  // namespace

Minimum minimize(const std::function<double(const std::vector<double>&)>& f, std::vector<double> x,
                 const Box& box, const MinimizeOptions& options) {
  const auto n = static_cast<unsigned>(x.size());
  const std::unique_ptr<std::remove_pointer_t<nlopt_opt>, void (*)(nlopt_opt)> optimizer(
      nlopt_create(n > 1 ? NLOPT_LN_BOBYQA : NLOPT_LN_SBPLX, n), nlopt_destroy);
  if (optimizer == nullptr) throw std::bad_alloc();
  Call call;
  call.f = &f;
  call.optimizer = optimizer.get();
  std::vector<double> step(n);
  for (unsigned i = 0; i < n; ++i) {
    step[i] = std::min(options.step, 0.25 * (box.upper[i] - box.lower[i]));
  }
  nlopt_set_min_objective(call.optimizer, evaluate, &call);
  nlopt_set_lower_bounds(call.optimizer, box.lower.data());
  nlopt_set_upper_bounds(call.optimizer, box.upper.data());
  nlopt_set_initial_step(call.optimizer, step.data());
  nlopt_set_xtol_abs1(call.optimizer, options.tolerance);
  nlopt_set_ftol_rel(call.optimizer, options.gain);
  nlopt_set_maxeval(call.optimizer, options.evaluations_max);
  double value = 0;
  const nlopt_result result = nlopt_optimize(call.optimizer, x.data(), &value);
  if (call.failure) std::rethrow_exception(call.failure);
  // Roundoff stops a search that can gain nothing more: that is convergence.
  require(result > 0 || result == NLOPT_ROUNDOFF_LIMITED, ErrorKind::misuse, "fit",
          "the optimizer gave up: {}", nlopt_result_to_string(result));
  call.best.converged = result != NLOPT_MAXEVAL_REACHED;
  return call.best;
}

}  // namespace strata
