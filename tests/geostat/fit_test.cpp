// fit: properties that a maximum must have, on simulated and real data.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

double at(const Points& points, const std::vector<double>& values, const MaternParameters& p,
          Mean mean) {
  return log_likelihood(points, values, p, mean, host_options()).log_likelihood;
}

/// No neighbour of the estimate, one parameter moved by 2 %, is better by more than `tolerance`.
void expect_local_maximum(const Points& points, const std::vector<double>& values,
                          const FitResult& result, const FitOptions& options, double tolerance) {
  const MaternParameters& best = result.parameters;
  const auto expect_no_better = [&](const MaternParameters& p, const char* what) {
    EXPECT_LE(at(points, values, p, options.mean), result.likelihood.log_likelihood + tolerance)
        << what;
  };
  for (const double factor : {0.98, 1.02}) {
    expect_no_better({factor * best.variance, best.range, best.smoothness, best.nugget},
                     "variance");
    expect_no_better({best.variance, factor * best.range, best.smoothness, best.nugget}, "range");
    if (!options.smoothness) {
      expect_no_better({best.variance, best.range, factor * best.smoothness, best.nugget},
                       "smoothness");
    }
    if (!options.nugget) {
      expect_no_better({best.variance, best.range, best.smoothness, factor * best.nugget},
                       "nugget");
    }
  }
}

FitOptions host_fit(Mean mean) {
  FitOptions options{host_options()};
  options.mean = mean;
  return options;
}

class SimulatedField : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    points = random_points(kPoints, 21);
    values = simulate_field(points, truth, 22);
    for (double& z : values) z += 10;
  }
  /// A fit with a constant mean, by default options.
  static const FitResult& plain_fit() {
    static const FitResult result = fit(points, values, host_fit(Mean::constant));
    return result;
  }

  static constexpr std::size_t kPoints = test::kSanitized ? 200 : 400;

  static inline const MaternParameters truth{2, 0.08, 0.9, 0.05};
  static inline Points points;
  static inline std::vector<double> values;
};

TEST_F(SimulatedField, EstimatesAllParameters) {
  const FitOptions options = host_fit(Mean::constant);
  const FitResult& result = plain_fit();
  EXPECT_TRUE(result.converged);
  EXPECT_GE(result.likelihood.log_likelihood, at(points, values, truth, options.mean));
  expect_local_maximum(points, values, result, options, 1e-3);
  // Half to double: a few standard errors of each estimate at this n.
  EXPECT_GT(result.parameters.variance, 1);
  EXPECT_LT(result.parameters.variance, 4);
  EXPECT_GT(result.parameters.smoothness, 0.45);
  EXPECT_LT(result.parameters.smoothness, 1.8);
  EXPECT_GT(result.parameters.range, 0.04);
  EXPECT_LT(result.parameters.range, 0.16);
  EXPECT_NEAR(result.likelihood.mean_coefficients.at(0), 10, 1.5);
  EXPECT_EQ(result.evaluations, static_cast<int>(result.path.size()));
  EXPECT_LE(result.evaluations, 200) << "50, and 50 for each of three parameters";
  EXPECT_EQ(result.likelihood.run.n, std::ssize(values));
}

TEST_F(SimulatedField, ProfiledLikelihoodIsTheLikelihoodAtTheProfiledVariance) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const FitOptions options = host_fit(Mean::linear);
  const FitResult result = fit(points, values, options);
  ASSERT_GE(result.path.size(), 10u);
  double best = -INFINITY;
  for (std::size_t i = 0; i < result.path.size(); ++i) {
    const FitStep& step = result.path[i];
    best = std::max(best, step.log_likelihood);
    if (i % 5 != 0 || !std::isfinite(step.log_likelihood)) continue;
    const MaternParameters p{step.variance, step.range, step.smoothness, step.nugget};
    const double again = at(points, values, p, options.mean);
    EXPECT_NEAR(step.log_likelihood, again, 1e-8 * std::fabs(again));
    // σ̂² is a maximum in the variance at a fixed ratio of nugget to variance.
    for (const double factor : {0.99, 1.01}) {
      EXPECT_LT(at(points, values, {factor * p.variance, p.range, p.smoothness, factor * p.nugget},
                   options.mean),
                again);
    }
  }
  EXPECT_NEAR(result.likelihood.log_likelihood, best, 1e-8 * std::fabs(best));
  // rᵀΣ⁻¹r = n at the profiled variance.
  EXPECT_NEAR(result.likelihood.quadratic_form, kPoints, 1e-9 * kPoints);
}

TEST_F(SimulatedField, HeldParametersStay) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  FitOptions options = host_fit(Mean::constant);
  options.smoothness = 0.5;
  options.nugget = 0.0;
  FitResult result = fit(points, values, options);  // one variable
  EXPECT_TRUE(result.converged);
  EXPECT_EQ(result.parameters.smoothness, 0.5);
  EXPECT_EQ(result.parameters.nugget, 0);
  expect_local_maximum(points, values, result, options, 1e-3);

  options.nugget = 0.05;
  result = fit(points, values, options);
  EXPECT_TRUE(result.converged);
  EXPECT_EQ(result.parameters.nugget, 0.05);
  expect_local_maximum(points, values, result, options, 1e-3);

  options.smoothness.reset();
  result = fit(points, values, options);
  EXPECT_EQ(result.parameters.nugget, 0.05);
  expect_local_maximum(points, values, result, options, 1e-3);
}

TEST_F(SimulatedField, GivenStartAndBoundsAreKept) {
  FitOptions options = host_fit(Mean::zero);
  options.start = MaternParameters{1, 0.11, 0.6, 0.01};
  options.range_bounds = Bounds{0.1, 0.2};
  options.smoothness_bounds = Bounds{0.55, 0.65};
  const FitResult result = fit(points, values, options);
  for (const FitStep& step : result.path) {
    EXPECT_GE(step.range, 0.1 * (1 - 1e-12));
    EXPECT_LE(step.range, 0.2 * (1 + 1e-12));
    EXPECT_GE(step.smoothness, 0.55 * (1 - 1e-12));
    EXPECT_LE(step.smoothness, 0.65 * (1 + 1e-12));
  }
}

TEST_F(SimulatedField, StopsAtTheLimit) {
  FitOptions options = host_fit(Mean::constant);
  options.max_evaluations = 8;
  const FitResult result = fit(points, values, options);
  EXPECT_FALSE(result.converged);
  EXPECT_EQ(result.path.size(), 8u);
  EXPECT_TRUE(std::isfinite(result.likelihood.log_likelihood));
}

TEST_F(SimulatedField, Cancels) {
  FitOptions options = host_fit(Mean::constant);
  options.smoothness = 0.5;
  double last = 0;
  bool only_fit = true;
  options.run.progress = [&](const Progress& p) {
    only_fit = only_fit && std::string(p.what) == "fit" && p.total == 150;
    last = p.done;
    return p.done < 5;
  };
  EXPECT_EQ(kind_of_error([&] { static_cast<void>(fit(points, values, options)); }),
            ErrorKind::cancelled);
  EXPECT_TRUE(only_fit);
  EXPECT_GE(last, 5);
  EXPECT_LT(last, 6);
}

TEST_F(SimulatedField, BeginsOnASampleAndReachesWhatASearchFromElsewhereReaches) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  FitOptions options = host_fit(Mean::constant);
  const FitResult& staged = plain_fit();
  ASSERT_EQ(staged.stages.size(), 1U);
  EXPECT_EQ(staged.stages[0].points, std::ssize(values))
      << "few enough to look for several maxima on all of them";
  EXPECT_GT(staged.stages[0].evaluations, 12);
  options.start = MaternParameters{1, 0.3, 0.5, 0.3};
  options.relative_tolerance = 1e-8;
  const FitResult direct = fit(points, values, options);
  EXPECT_TRUE(direct.stages.empty());
  EXPECT_LT(staged.evaluations, direct.evaluations);
  // Counted on these 400 points; those of sanitized tests are another set.
  if (!test::kSanitized) {
    EXPECT_LT(staged.evaluations, 80) << "what it took without samples";
  }
  // A thousandth of the tolerance for each observation.
  EXPECT_NEAR(staged.likelihood.log_likelihood, direct.likelihood.log_likelihood, 1e-4);
  EXPECT_NEAR(staged.parameters.range / direct.parameters.range, 1, 0.01);
  // Another seed, another way, the same end.
  options = host_fit(Mean::constant);
  options.seed = 5;
  EXPECT_NEAR(fit(points, values, options).likelihood.log_likelihood,
              direct.likelihood.log_likelihood, 1e-4);
}

TEST(Fit, FindsThatThereIsNoNugget) {
  const Points points = random_points(150, 31);
  const auto values = simulate_field(points, {1, 0.1, 0.5, 0}, 32);
  FitOptions options = host_fit(Mean::zero);
  options.smoothness = 0.5;
  const FitResult result = fit(points, values, options);
  FitOptions without = options;
  without.nugget = 0.0;
  EXPECT_GE(result.likelihood.log_likelihood,
            fit(points, values, without).likelihood.log_likelihood - 1e-3);
}

TEST(Fit, CoincidentPointsGetANugget) {
  Points points = random_points(100, 41);
  points.x[60] = points.x[20];
  points.y[60] = points.y[20];
  const auto values = simulate_field(points, {1, 0.1, 0.8, 0.2}, 42);
  FitOptions options = host_fit(Mean::constant);
  EXPECT_GT(fit(points, values, options).parameters.nugget, 0);
  options.nugget = 0.0;
  std::string message;
  EXPECT_EQ(kind_of_error([&] { static_cast<void>(fit(points, values, options)); }, &message),
            ErrorKind::numerical);
  EXPECT_NE(message.find("rows 20 and 60"), std::string::npos) << message;
}

TEST(Fit, SurvivesCovariancesThatAreNotPositiveDefinite) {
  // A very smooth field on close points without nugget: most of the search space fails.
  Points points;
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) {
    for (int j = 0; j < 12; ++j) {
      points.x.push_back(i);
      points.y.push_back(j);
      values.push_back(std::sin(0.3 * i) + std::cos(0.2 * j));
    }
  }
  FitOptions options = host_fit(Mean::zero);
  options.nugget = 0.0;
  options.start = MaternParameters{1, 30, 2.4, 0};
  const FitResult result = fit(points, values, options);
  const auto failed = std::count_if(result.path.begin(), result.path.end(),
                                    [](const FitStep& s) { return s.log_likelihood == -INFINITY; });
  EXPECT_GT(failed, 0) << "the test no longer reaches a failing factorization";
  EXPECT_TRUE(result.likelihood.factor.ok);
  EXPECT_TRUE(std::isfinite(result.likelihood.log_likelihood));
}

TEST(Fit, Refuses) {
  const Points points = random_points(30, 51);
  const auto values = simulate_field(points, {1, 0.1, 0.8, 0.2}, 52);
  const auto kind = [](const Points& p, const std::vector<double>& z, const FitOptions& options) {
    return kind_of_error([&] { static_cast<void>(fit(p, z, options)); });
  };
  const auto with = [](auto&& change) {
    FitOptions options = host_fit(Mean::constant);
    change(options);
    return options;
  };
  const FitOptions plain = host_fit(Mean::constant);
  EXPECT_EQ(kind(points, values, plain), std::nullopt);
  EXPECT_EQ(kind({}, {}, plain), ErrorKind::misuse);
  EXPECT_EQ(kind(random_points(4, 1), {1, 2, 3, 4}, plain), ErrorKind::misuse);
  auto bad = values;
  bad[7] = NAN;
  EXPECT_EQ(kind(points, bad, plain), ErrorKind::input);
  EXPECT_EQ(kind(points, std::vector<double>(30, 4.2), plain), ErrorKind::numerical);
  EXPECT_EQ(kind({std::vector<double>(30, 1.0), std::vector<double>(30, 1.0)}, values, plain),
            ErrorKind::numerical);
  for (const double value : {-1.0, 51.0, double(NAN)}) {
    EXPECT_EQ(kind(points, values, with([&](FitOptions& o) { o.smoothness = value; })),
              ErrorKind::misuse);
  }
  EXPECT_EQ(kind(points, values, with([](FitOptions& o) { o.nugget = -0.1; })), ErrorKind::misuse);
  EXPECT_EQ(kind(points, values, with([](FitOptions& o) { o.start = MaternParameters{-1}; })),
            ErrorKind::misuse);
  EXPECT_EQ(kind(points, values, with([](FitOptions& o) {
                   o.range_bounds = Bounds{2, 1};
                 })),
            ErrorKind::misuse);
  EXPECT_EQ(kind(points, values, with([](FitOptions& o) {
                   o.smoothness_bounds = Bounds{1, 60};
                 })),
            ErrorKind::misuse);
  EXPECT_EQ(kind(points, values, with([](FitOptions& o) { o.max_evaluations = 0; })),
            ErrorKind::misuse);
  EXPECT_EQ(kind(points, values, with([](FitOptions& o) { o.relative_tolerance = 0; })),
            ErrorKind::misuse);
}

/// x, y and precipitation of the rainfall file; empty if it is absent.
std::pair<Points, std::vector<double>> rainfall() {
  std::ifstream file(STRATA_SOURCE_DIR "/data/north_american_rainfall.csv");
  std::pair<Points, std::vector<double>> out;
  std::string line;
  std::getline(file, line);  // x,y,longitude_deg,latitude_deg,elevation_m,precipitation_tenth_mm
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<double> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(std::stod(field));
    out.first.x.push_back(row.at(0));
    out.first.y.push_back(row.at(1));
    out.second.push_back(row.at(5));
  }
  return out;
}

TEST(Fit, NorthAmericanRainfall) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const auto [points, values] = rainfall();
  if (values.empty()) GTEST_SKIP() << "data/north_american_rainfall.csv is absent";
  ASSERT_EQ(values.size(), 1720u);
  // Every third station: the whole set takes a minute.
  const std::size_t every = test::kSanitized ? 6 : 3;
  Points some;
  std::vector<double> some_values;
  for (std::size_t i = 0; i < values.size(); i += every) {
    some.x.push_back(points.x[i]);
    some.y.push_back(points.y[i]);
    some_values.push_back(values[i]);
  }
  const FitOptions options = host_fit(Mean::linear);
  const FitResult result = fit(some, some_values, options);
  EXPECT_TRUE(result.converged);
  expect_local_maximum(some, some_values, result, options, 1e-2);
}

}  // namespace
}  // namespace strata
