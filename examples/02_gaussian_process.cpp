// Fit a Gaussian process to a few hundred values by exact maximum likelihood, and predict between
// them.

#include <cmath>
#include <cstdio>
#include <strata/strata.hpp>

int main() {
  strata::Points points;
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) {  // a spiral of places, and a smooth field with a ripple
    const double t = 0.05 * i;
    points.x.push_back(0.05 * t * std::cos(t));
    points.y.push_back(0.05 * t * std::sin(t));
    values.push_back(std::sin(3 * points.x.back()) + std::cos(2 * points.y.back()) +
                     0.05 * std::sin(37.0 * i));
  }

  strata::FitOptions options;
  options.mean = strata::Mean::constant;
  options.smoothness = 1.5;
  const strata::FitResult fitted = strata::fit(points, values, options);
  std::printf("variance %.6g, range %.6g, nugget %.6g, log-likelihood %.8g\n",
              fitted.parameters.variance, fitted.parameters.range, fitted.parameters.nugget,
              fitted.likelihood.log_likelihood);

  const strata::Model model{fitted.parameters, options.mean, {}, points, values};
  const strata::Prediction at = strata::predict(model, {{0.1, 0.3}, {0.2, -0.1}});
  for (int i = 0; i < 2; ++i) std::printf("%.6f +- %.6f\n", at.mean[i], at.standard_error[i]);
  return 0;
}
