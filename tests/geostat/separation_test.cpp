// Distances other than those of the plane, and time: likelihood, prediction and fit against the
// dense oracle, and what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

/// A model of 47 points whose coordinates are those that its separation takes.
Model model_of(const MaternParameters& parameters, bool with_z = false) {
  Model model;
  model.parameters = parameters;
  model.points = random_points(47, 31);
  const Points more = random_points(47, 32);
  if (with_z) model.points.z = more.x;
  if (parameters.separation.time) model.points.t = more.y;
  if (parameters.separation.distance == Distance::great_circle) {
    for (double& x : model.points.x) x = 60 * x + 150;  // over the date line
    for (double& y : model.points.y) y = 40 * y - 30;
  }
  model.values = simulate_field(model.points, parameters, 33);
  return model;
}

Points targets_of(const Model& model) {
  Points targets = model.points;
  for (auto* c : {&targets.x, &targets.y, &targets.z, &targets.t}) {
    for (std::size_t i = 0; i < c->size(); ++i) (*c)[i] += 0.03 * random_normal(34, i);
  }
  return targets;
}

struct Case {
  const char* name;
  MaternParameters parameters;
  bool with_z = false;
};

std::vector<Case> cases() {
  const Distance plane = Distance::euclidean;
  const Distance sphere = Distance::great_circle;
  return {{"z", {1.3, 0.3, 0.8, 0.1, {}}, true},
          {"anisotropy", {1.3, 0.3, 1.5, 0, {plane, 0.3, 40, {}}}},
          {"anisotropy, z", {1.3, 0.3, 0.5, 0, {plane, 0.5, -70, {}}}, true},
          {"separable", {1.3, 0.3, 0.5, 0, {plane, 1, 0, TimeParameters{5, 0.6, 0}}}},
          {"not separable", {1.3, 0.3, 1.1, 0.1, {plane, 1, 0, TimeParameters{5, 0.9, 1}}}},
          {"all", {1.3, 0.3, 0.5, 0.1, {plane, 0.5, 10, TimeParameters{5, 0.5, 0.66}}}, true},
          {"sphere", {1.3, 1500, 0.5, 0.1, {sphere, 1, 0, {}}}},
          {"sphere, time", {1.3, 1500, 0.35, 0, {sphere, 1, 0, TimeParameters{5, 0.5, 0}}}}};
}

TEST(Separation, LikelihoodAndPredictionAgreeWithTheDenseOracle) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Model model = model_of(c.parameters, c.with_z);
    for (const Mean mean : {Mean::zero, Mean::linear}) {
      model.mean = mean;
      const DenseOracle oracle(model.points, model.values, model.parameters, mean);
      const Likelihood got =
          log_likelihood(model.points, model.values, model.parameters, mean, host_options());
      ASSERT_TRUE(got.factor.ok);
      const auto expected = static_cast<double>(oracle.log_likelihood);
      EXPECT_NEAR(got.log_likelihood, expected, 1e-10 * std::fabs(expected));
      const Points targets = targets_of(model);
      const Prediction prediction = predict(model, targets, host_options());
      for (std::size_t t = 0; t < targets.x.size(); ++t) {
        const auto [value, variance] = oracle.predict(targets, t);
        EXPECT_NEAR(prediction.mean[t], static_cast<double>(value), 1e-10) << t;
        EXPECT_NEAR(prediction.process_standard_error[t], static_cast<double>(std::sqrt(variance)),
                    1e-9)
            << t;
      }
    }
  }
}

TEST(Separation, ALinearMeanOnTheSphereDoesNotJumpAtTheDateLine) {
  Model model = model_of({1.3, 1500, 0.5, 0.1, {Distance::great_circle, 1, 0, {}}});
  for (std::size_t i = 0; i < model.values.size(); ++i) model.values[i] += 0.1 * model.points.y[i];
  model.mean = Mean::linear;
  model.points.covariates.emplace_back();
  for (std::size_t i = 0; i < model.values.size(); ++i)
    model.points.covariates[0].push_back(random_normal(36, i));
  EXPECT_EQ(coefficient_count(Mean::linear, 1, Distance::great_circle), 5);
  const Points targets{{185, -175, -180, 180}, {5, 5, -20, -20}, {}, {}, {{1, 1, 2, 2}}};
  const Prediction prediction = predict(model, targets, host_options());
  for (const std::size_t t : {0U, 2U}) {
    EXPECT_NEAR(prediction.mean[t], prediction.mean[t + 1], 1e-11);
    EXPECT_NEAR(prediction.standard_error[t], prediction.standard_error[t + 1], 1e-11);
  }
  // The same sphere turned about its axis, with other longitudes at the date line.
  const auto at = [&](double turn) {
    Model turned = model;
    for (double& x : turned.points.x) {
      x += turn;
      if (x > 180) x -= 360;
    }
    return log_likelihood(turned.points, turned.values, turned.parameters, Mean::linear,
                          host_options());
  };
  const Likelihood here = at(0);
  ASSERT_EQ(here.mean_coefficients.size(), 5U);
  for (const double turn : {-20.0, 10.0, 77.0})
    EXPECT_NEAR(at(turn).log_likelihood, here.log_likelihood, 1e-9) << turn;
  // Coefficients for longitude and latitude are not taken for those of the sphere.
  model.mean_coefficients = {1, 2, 3, 4};
  EXPECT_EQ(kind_of_error([&] { (void)predict(model, targets, host_options()); }),
            ErrorKind::misuse);
}

TEST(Separation, CoincidentPointsDifferInNoCoordinate) {
  Points points{{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 4, 4}, {5, 6, 5, 6}};
  EXPECT_FALSE(find_coincident_points(points));
  points.t[3] = 5;
  EXPECT_EQ(find_coincident_points(points), (std::pair<std::int64_t, std::int64_t>{2, 3}));
  points.t = {};
  EXPECT_EQ(find_coincident_points(points), (std::pair<std::int64_t, std::int64_t>{0, 1}));
  // Longitudes are angles, and at a pole they are none.
  const Points sphere{{-180, 180, 0, 10, 77, 360}, {5, 5, 90, 90, -90, 0}};
  EXPECT_FALSE(find_coincident_points(sphere));
  EXPECT_EQ(find_coincident_points(sphere, Distance::great_circle),
            (std::pair<std::int64_t, std::int64_t>{0, 1}));
  EXPECT_EQ(find_coincident_points({{0, 10, 360}, {90, 90, 0}}, Distance::great_circle),
            (std::pair<std::int64_t, std::int64_t>{0, 1}));
  EXPECT_EQ(find_coincident_points({{0, 10, 360}, {0, 90, 0}}, Distance::great_circle),
            (std::pair<std::int64_t, std::int64_t>{0, 2}));
  EXPECT_EQ(find_coincident_points({{190, 10, -170}, {4, 90, 4}}, Distance::great_circle),
            (std::pair<std::int64_t, std::int64_t>{0, 2}));
}

/// The likelihood of a model and a fit that starts from its separation are both refused.
void expect_refused(const Model& model, ErrorKind kind, const char* words, bool fit_too = true) {
  std::string message;
  EXPECT_EQ(
      kind_of_error(
          [&] { (void)log_likelihood(model.points, model.values, model.parameters, Mean::zero); },
          &message),
      kind)
      << words;
  EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(kind_of_error([&] { (void)predict(model, model.points); }), kind) << words;
  if (!fit_too) return;
  FitOptions options;
  options.separation = model.parameters.separation;
  options.smoothness = model.parameters.smoothness;
  EXPECT_EQ(kind_of_error([&] { (void)fit(model.points, model.values, options); }), kind) << words;
}

MaternParameters with(double smoothness, const Separation& separation) {
  return {1, 1, smoothness, 0.1, separation};
}

TEST(Separation, ParametersOutsideTheirDomainAreRefused) {
  const Distance plane = Distance::euclidean;
  Model model = model_of({1, 1, 0.5, 0.1, {}});
  const auto refuse = [&](const Separation& separation, const char* words) {
    model.parameters = with(0.5, separation);
    model.points.t.assign(separation.time ? model.points.x.size() : 0, 1.0);
    expect_refused(model, ErrorKind::misuse, words);
  };
  refuse({plane, 0, 0, {}}, "anisotropy ratio is 0");
  refuse({plane, 1.5, 0, {}}, "anisotropy ratio is 1.5");
  refuse({plane, NAN, 0, {}}, "anisotropy ratio is nan");
  refuse({plane, 0.5, INFINITY, {}}, "anisotropy angle is inf");
  refuse({plane, 1, 0, TimeParameters{0, 1, 0}}, "time scale is 0");
  refuse({plane, 1, 0, TimeParameters{1, 0, 0}}, "time smoothness is 0");
  refuse({plane, 1, 0, TimeParameters{1, 1.5, 0}}, "time smoothness is 1.5");
  refuse({plane, 1, 0, TimeParameters{1, 1, -0.5}}, "interaction is -0.5");
  refuse({plane, 1, 0, TimeParameters{1, 1, 1.5}}, "interaction is 1.5");
  model.points.z.assign(model.points.x.size(), 1.0);
  refuse({plane, 1, 0, TimeParameters{1, 1, 0.7}}, "interaction is 0.7, but must be at most 2/3");
}

TEST(Separation, TheSphereIsRefusedWhatItCannotHave) {
  const Distance sphere = Distance::great_circle;
  const Separation alone{sphere, 1, 0, {}};
  Model model = model_of({1, 900, 0.5, 0.1, alone});
  model.parameters.smoothness = 0.51;
  expect_refused(model, ErrorKind::misuse, "not positive definite on the sphere");
  model.parameters = with(0.5, {sphere, 0.5, 0, {}});
  expect_refused(model, ErrorKind::misuse, "no major axis");
  model.points.t.assign(model.points.x.size(), 1.0);
  model.parameters = with(0.5, {sphere, 1, 0, TimeParameters{1, 1, 0.5}});
  expect_refused(model, ErrorKind::misuse, "interaction is 0.5, but must be 0");
  model.points.t = {};
  model.parameters = with(0.5, alone);
  model.points.z.assign(model.points.x.size(), 1.0);
  expect_refused(model, ErrorKind::misuse, "z coordinate");
  model.points.z = {};
  for (const double bad : {-180.5, 360.5}) {
    Model outside = model;
    outside.points.x[7] = bad;
    expect_refused(outside, ErrorKind::input, "x[7]");
  }
  for (const double bad : {-90.5, 91.0}) {
    Model outside = model;
    outside.points.y[9] = bad;
    expect_refused(outside, ErrorKind::input, "y[9]");
  }
}

TEST(Separation, CoordinatesThatDoNotFitAreRefused) {
  const Separation timed{Distance::euclidean, 1, 0, TimeParameters{}};
  Model model = model_of(with(0.5, timed));
  model.parameters.separation.time.reset();
  expect_refused(model, ErrorKind::misuse, "no time parameters");
  model.parameters.separation = timed;
  model.points.t.pop_back();
  expect_refused(model, ErrorKind::misuse, "46 t coordinates");
  model.points.t.push_back(NAN);
  expect_refused(model, ErrorKind::input, "t[46] is nan");
  model.points.t = {};
  expect_refused(model, ErrorKind::misuse, "no times");
  model = model_of(with(0.5, {}), true);
  Points targets = model.points;
  targets.z = {};
  EXPECT_EQ(kind_of_error([&] { (void)predict(model, targets); }), ErrorKind::misuse);
  targets.z = model.points.z;
  targets.t = model.points.z;
  EXPECT_EQ(kind_of_error([&] { (void)predict(model, targets); }), ErrorKind::misuse);
}

/// No step of 2 % in range or smoothness, inside the bounds, is better.
void expect_maximum(const Model& model, const FitResult& result, const FitOptions& options) {
  const auto at = [&](const MaternParameters& p) {
    return log_likelihood(model.points, model.values, p, Mean::zero, host_options()).log_likelihood;
  };
  const double best = result.likelihood.log_likelihood;
  EXPECT_NEAR(at(result.parameters), best, 1e-9 * std::fabs(best));
  for (const double factor : {0.98, 1.02}) {
    MaternParameters p = result.parameters;
    p.range =
        std::clamp(factor * p.range, options.range_bounds->lower, options.range_bounds->upper);
    EXPECT_LE(at(p), best + 1e-3) << "range " << p.range;
    p = result.parameters;
    p.smoothness = std::clamp(factor * p.smoothness, options.smoothness_bounds->lower,
                              options.smoothness_bounds->upper);
    EXPECT_LE(at(p), best + 1e-3) << "smoothness " << p.smoothness;
  }
}

TEST(Separation, FitHoldsItAndFindsTheRest) {
  bool odd = false;
  for (const Case& c : cases()) {
    odd = !odd;
    if (test::kSanitized && odd) continue;
    SCOPED_TRACE(c.name);
    const Model model = model_of(c.parameters, c.with_z);
    FitOptions options{host_options()};
    options.mean = Mean::zero;
    options.nugget = c.parameters.nugget;
    options.separation = c.parameters.separation;
    options.range_bounds = Bounds{0.05 * c.parameters.range, 20 * c.parameters.range};
    const bool sphere = options.separation.distance == Distance::great_circle;
    options.smoothness_bounds = Bounds{0.1, sphere ? 0.5 : 3};
    const FitResult result = fit(model.points, model.values, options);
    const Separation& s = result.parameters.separation;
    EXPECT_EQ(s.distance, c.parameters.separation.distance);
    EXPECT_EQ(s.anisotropy_ratio, c.parameters.separation.anisotropy_ratio);
    EXPECT_EQ(s.time.has_value(), c.parameters.separation.time.has_value());
    const double truth =
        log_likelihood(model.points, model.values, c.parameters, Mean::zero, host_options())
            .log_likelihood;
    EXPECT_GE(result.likelihood.log_likelihood, truth - 1e-6);
    expect_maximum(model, result, options);
  }
}

TEST(Separation, FitKeepsSmoothnessOnTheSphere) {
  // A field that is smoother than the sphere allows: the estimate lies at the bound, not above.
  Model smooth = model_of({1, 900, 0.5, 0, {Distance::great_circle, 1, 0, {}}});
  for (std::size_t i = 0; i < smooth.values.size(); ++i)
    smooth.values[i] = std::sin(0.02 * smooth.points.x[i]) * std::cos(0.03 * smooth.points.y[i]);
  FitOptions free{host_options()};
  free.mean = Mean::zero;
  free.nugget = 0;
  free.separation = smooth.parameters.separation;
  const double smoothness = fit(smooth.points, smooth.values, free).parameters.smoothness;
  EXPECT_LE(smoothness, 0.5);
  EXPECT_NEAR(smoothness, 0.5, 1e-9);

  const Model model = model_of({1, 900, 0.5, 0.1, {Distance::great_circle, 1, 0, {}}});
  FitOptions options;
  options.separation = model.parameters.separation;
  options.smoothness_bounds = Bounds{0.1, 0.6};
  std::string message;
  EXPECT_EQ(kind_of_error([&] { (void)fit(model.points, model.values, options); }, &message),
            ErrorKind::misuse);
  EXPECT_NE(message.find("upper bound of smoothness is 0.6"), std::string::npos) << message;
}

}  // namespace
}  // namespace strata
