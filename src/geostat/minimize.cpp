// Several variables: BOBYQA (M. J. D. Powell, "The BOBYQA algorithm for bound constrained
// optimization without derivatives", 2009) as in NLopt, the method of the field: an evaluation here
// is a whole factorization.
//
// One variable: downhill in growing steps until the minimum is bracketed or a bound is reached,
// then the minimum of the parabola through the three best points of the bracket, or where that does
// not shorten it enough the golden section of its longer part (Brent, "Algorithms for Minimization
// without Derivatives", 1973, chapter 5).

#include "geostat/minimize.hpp"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

struct Call {
  const ObjectiveFunction* f = nullptr;
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

/// The search in one variable.
class Line {
 public:
  Line(const ObjectiveFunction& f, const Box& box, const MinimizeOptions& options)
      : f_(f), lower_(box.lower[0]), upper_(box.upper[0]), options_(options) {}

  [[nodiscard]] Minimum from(double x, double step) {
    Point middle = at(x);
    const double forward = middle.x + step <= upper_ ? step : -step;
    Point left = middle;
    Point right = at(std::clamp(middle.x + forward, lower_, upper_));
    if (right.value > middle.value) {
      left = right;
      right = at(std::clamp(middle.x - forward, lower_, upper_));
    }
    // Downhill towards `right` as long as that is the best.
    while (right.value <= middle.value && right.x != middle.x && more()) {
      left = middle;
      middle = right;
      right = at(std::clamp(middle.x + 2.5 * (middle.x - left.x), lower_, upper_));
      if (right.x == middle.x) break;  // at a bound
    }
    shrink(left, middle, right);
    return {{best_.x}, best_.value, converged_};
  }

 private:
  struct Point {
    double x = 0;
    double value = 0;
  };

  [[nodiscard]] bool more() const { return evaluations_ < options_.evaluations_max; }
  Point at(double x) {
    if (evaluations_ > 0 && x == best_.x) return best_;
    if (!more()) return {x, std::numeric_limits<double>::infinity()};
    const Point point{x, f_({x})};
    if (evaluations_++ == 0 || point.value < best_.value) best_ = point;
    return point;
  }

  /// Narrows the bracket; at a bound `right` is the middle itself, and the way is only left.
  void shrink(Point left, Point middle, Point right) {
    // Widths of the bracket one and two steps ago: a parabola through a point that is far away and
    // stays there comes closer by little.
    double one_ago = std::numeric_limits<double>::infinity();
    double two_ago = one_ago;
    while (more()) {
      const double width = std::fabs(right.x - left.x);
      const bool slow = width > 0.5 * two_ago;
      two_ago = std::exchange(one_ago, width);
      const double a = left.x - middle.x;
      const double b = right.x - middle.x;
      const double fa = left.value - middle.value;
      const double fb = right.value - middle.value;
      double step = 0;
      double gain = std::numeric_limits<double>::infinity();
      const double determinant = a * b * (a - b);
      if (determinant != 0) {
        const double curvature = 2 * (b * fa - a * fb) / determinant;
        const double slope = (a * a * fb - b * b * fa) / determinant;
        if (curvature > 0) {
          step = -slope / curvature;
          gain = 0.5 * slope * slope / curvature;
        }
      }
      const double longer = std::fabs(a) > std::fabs(b) ? a : b;
      const bool inside = step != 0 && std::min(a, b) < step && step < std::max(a, b);
      if (std::fabs(longer) < options_.tolerance ||
          (inside && (std::fabs(step) < options_.tolerance ||
                      gain < options_.gain * std::fabs(middle.value)))) {
        converged_ = true;
        return;
      }
      if (!inside || slow) step = 0.381966 * longer;
      const Point next = at(middle.x + step);
      if (next.value < middle.value) {
        (step > 0) == (left.x < middle.x) ? left = middle : right = middle;
        middle = next;
      } else {
        (step > 0) == (left.x > middle.x) ? left = next : right = next;
      }
    }
  }

  const ObjectiveFunction& f_;
  double lower_;
  double upper_;
  const MinimizeOptions& options_;
  Point best_;
  int evaluations_ = 0;
  bool converged_ = false;
};

}  // namespace

Minimum minimize(const ObjectiveFunction& f, std::vector<double> x, const Box& box,
                 const MinimizeOptions& options) {
  std::vector<double> step(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    step[i] = std::min(options.step, 0.25 * (box.upper[i] - box.lower[i]));
  }
  if (x.size() == 1) return Line(f, box, options).from(x[0], step[0]);
  const auto n = static_cast<unsigned>(x.size());
  const std::unique_ptr<std::remove_pointer_t<nlopt_opt>, void (*)(nlopt_opt)> optimizer(
      nlopt_create(NLOPT_LN_BOBYQA, n), nlopt_destroy);
  if (optimizer == nullptr) throw std::bad_alloc();
  Call call;
  call.f = &f;
  call.optimizer = optimizer.get();
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

Minimum minimize_in_steps(const ObjectiveFunction& f, std::vector<double> x, Box box,
                          const std::vector<double>& steps, const MinimizeOptions& options) {
  const auto times_steps = [&](std::vector<double> y) {
    std::transform(y.begin(), y.end(), steps.begin(), y.begin(), std::multiplies<>());
    return y;
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] /= steps[i];
    box.lower[i] /= steps[i];
    box.upper[i] /= steps[i];
  }
  Minimum found =
      minimize([&](const std::vector<double>& y) { return f(times_steps(y)); }, x, box, options);
  found.x = times_steps(std::move(found.x));
  return found;
}

}  // namespace strata
