// Parameters of time and anisotropy in a fit: estimates of simulated data against the truth, their
// information against dense matrices in long double, standard errors against second differences of
// the oracle's likelihood, bounds, the journal, and what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "geostat/fit_objective.hpp"
#include "geostat/fit_space.hpp"
#include "geostat/information.hpp"
#include "tests/geostat/dense_oracle.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

constexpr Distance kPlane = Distance::euclidean;
constexpr Distance kSphere = Distance::great_circle;
constexpr SeparationEstimates kTime{true, true, true, false, false};
constexpr SeparationEstimates kAnisotropy{false, false, false, true, true};

/// n points in the unit square, or of some degrees of the sphere, and 10 units of time.
Points points_of(std::size_t n, const Separation& separation, std::uint64_t seed) {
  Points points = random_points(n, seed);
  if (separation.time) {
    points.t = random_points(n, seed + 1).x;
    for (double& t : points.t) t *= 10;
  }
  if (separation.distance == kSphere) {
    for (double& x : points.x) x = 20 * x + 170;
    for (double& y : points.y) y = 20 * y + 30;
  }
  return points;
}

/// A field by the library, which its own tests compare with the oracle's.
std::vector<double> field_of(const Points& points, const MaternParameters& p, std::uint64_t seed) {
  SimulateOptions options{host_options()};
  options.seed = seed;
  return simulate(points, p, {}, options).values;
}

FitOptions host_fit(const Separation& separation, const SeparationEstimates& estimate) {
  FitOptions options{host_options()};
  options.mean = Mean::zero;
  options.separation = separation;
  options.estimate = estimate;
  return options;
}

/// Each parameter with its estimate and the standard error of that, those of positive parameters
/// of their logarithms.
struct Estimate {
  const char* name;
  double truth;
  double value;
  double error;
};

std::vector<Estimate> estimates_of(const MaternParameters& truth, const FitResult& result) {
  const MaternParameters& p = result.parameters;
  const StandardErrors& e = result.standard_errors;
  std::vector<Estimate> all;
  const auto add = [&](const char* name, double a, double b, double error) {
    if (!std::isnan(error)) all.push_back({name, std::log(a), std::log(b), error / b});
  };
  add("variance", truth.variance, p.variance, e.variance);
  add("range", truth.range, p.range, e.range);
  add("smoothness", truth.smoothness, p.smoothness, e.smoothness);
  add("nugget", truth.nugget, p.nugget, e.nugget);
  const Separation& s = p.separation;
  const Separation& t = truth.separation;
  if (s.time) {
    add("time scale", t.time->scale, s.time->scale, e.time_scale);
    add("time smoothness", t.time->smoothness, s.time->smoothness, e.time_smoothness);
    if (!std::isnan(e.interaction))
      all.push_back({"interaction", t.time->interaction, s.time->interaction, e.interaction});
  }
  add("anisotropy ratio", t.anisotropy_ratio, s.anisotropy_ratio, e.anisotropy_ratio);
  const double turn = s.anisotropy_angle - t.anisotropy_angle;
  if (!std::isnan(e.anisotropy_angle))
    all.push_back({"angle", 0, turn - 180 * std::round(turn / 180), e.anisotropy_angle});
  return all;
}

struct Recovery {
  const char* name;
  std::size_t n;
  MaternParameters truth;
  SeparationEstimates estimate;
  std::size_t informative;  ///< how many parameters have a standard error at least
};

/// Each estimate is within four of its standard errors, and all of them together: twice the
/// log-likelihood gained over the truth has the distribution χ² of as many degrees of freedom, at
/// most 8 here, and exceeds 32 with a probability below 10⁻⁴ (Wilks).
TEST(FitSeparation, EstimatesAreNearTheTruthOfSimulatedData) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const std::vector<Recovery> cases{
      {"not separable",
       450,
       {1.5, 0.2, 0.5, 0.1, {kPlane, 1, 0, TimeParameters{0.8, 0.5, 0.6}}},
       kTime,
       6},
      {"anisotropic, over half a turn",
       250,
       {1.5, 0.2, 0.5, 0.1, {kPlane, 0.4, 178, {}}},
       kAnisotropy,
       5},
      {"sphere",
       200,
       {1.5, 500, 0.5, 0.1, {kSphere, 1, 0, TimeParameters{0.5, 0.6, 0}}},
       {true, true, false, false, false},
       5},
      {"all of it",
       200,
       {1.5, 0.3, 0.5, 0.1, {kPlane, 0.3, 60, TimeParameters{0.8, 0.6, 0.5}}},
       {true, true, true, true, true},
       6}};
  std::uint64_t seed = 300;
  for (const Recovery& c : cases) {
    SCOPED_TRACE(c.name);
    seed += 10;
    if (test::kSanitized && c.n > 200) continue;
    const Points points = points_of(c.n, c.truth.separation, seed);
    const auto values = field_of(points, c.truth, seed + 5);
    FitOptions options = host_fit(c.truth.separation, c.estimate);
    // What is estimated is not looked at here.
    if (c.estimate.of_time()) options.separation.time = TimeParameters{};
    if (c.estimate.anisotropy_ratio) options.separation.anisotropy_ratio = 1;
    if (c.estimate.anisotropy_angle) options.separation.anisotropy_angle = 0;
    options.smoothness = 0.5;
    const FitResult result = fit(points, values, options);
    EXPECT_TRUE(result.converged);
    const double gained =
        result.likelihood.log_likelihood -
        log_likelihood(points, values, c.truth, Mean::zero, host_options()).log_likelihood;
    EXPECT_GE(gained, 0);
    EXPECT_LE(2 * gained, 32);
    const std::vector<Estimate> estimates = estimates_of(c.truth, result);
    EXPECT_GE(estimates.size(), c.informative);
    for (const Estimate& e : estimates) EXPECT_NEAR(e.value, e.truth, 4 * e.error) << e.name;
    const Separation& s = result.parameters.separation;
    EXPECT_GE(s.anisotropy_angle, 0);
    EXPECT_LT(s.anisotropy_angle, 180);
    for (const FitStep& step : result.path)
      EXPECT_EQ(step.separation.distance, c.truth.separation.distance);
  }
}

/// The dense matrix Σ⁻¹·∂Σ by parameter `which` of an Information, ∂ by central differences of the
/// oracle's covariance in long double.
Matrix weighted_difference(const Points& points, const MaternParameters& p, std::size_t which) {
  const std::size_t n = points.x.size();
  const DenseOracle oracle(points, std::vector<double>(n, 0.0), p, Mean::zero);
  const auto moved = [&](double step) {
    MaternParameters out = p;
    Separation& s = out.separation;
    double* const logarithms[] = {&out.variance, &out.range,          &out.smoothness,
                                  nullptr,       &s.time->scale,      &s.time->smoothness,
                                  nullptr,       &s.anisotropy_ratio, nullptr};
    if (logarithms[which] != nullptr) *logarithms[which] *= std::exp(step);
    if (which == 6) s.time->interaction += step;
    if (which == 8) s.anisotropy_angle += step * 180 / std::acos(-1.0);
    return out;
  };
  constexpr double h = 1e-4;
  const MaternParameters up = moved(h);
  const MaternParameters down = moved(-h);
  Matrix columns;
  for (std::size_t j = 0; j < n; ++j) {
    Vector column;
    for (std::size_t i = 0; i < n; ++i) {
      const Real slope = (oracle_covariance(up, points, i, points, j) -
                          oracle_covariance(down, points, i, points, j)) /
                         (2 * static_cast<Real>(h));
      column.push_back(which == 3 ? (i == j ? 1 : 0) : slope);
    }
    columns.push_back(oracle_solve(oracle.factor, column));
  }
  return columns;
}

TEST(FitSeparation, InformationIsHalfTheTraceOfTheDenseMatrices) {
  const Separation separation{kPlane, 0.4, 70, TimeParameters{0.7, 0.8, 0.5}};
  const MaternParameters p{1.7, 0.25, 0.8, 0.2, separation};
  constexpr std::size_t n = 29;
  const Points points = points_of(n, separation, 401);
  const std::vector<std::size_t> all{FitSpace::time_scale, FitSpace::time_smoothness,
                                     FitSpace::interaction, FitSpace::anisotropy_ratio,
                                     FitSpace::anisotropy_angle};
  const Information got = expected_information(points, p, host_options(), "test", all);
  std::vector<Matrix> weighted;
  for (std::size_t which = 0; which < kInformationOrder; ++which)
    weighted.push_back(weighted_difference(points, p, which));
  for (std::size_t a = 0; a < kInformationOrder; ++a) {
    for (std::size_t b = 0; b < kInformationOrder; ++b) {
      Real trace = 0;
      Real size = 0;
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          trace += weighted[a][j][i] * weighted[b][i][j];
          size += std::fabs(weighted[a][j][i] * weighted[b][i][j]);
        }
      }
      // Differences over ±1e-4 are off by about 1e-8.
      EXPECT_NEAR(got[a][b], static_cast<double>(trace / 2), 2e-7 * static_cast<double>(size))
          << a << ", " << b;
    }
  }
  // Those that are not asked for are not there.
  EXPECT_EQ(expected_information(points, p, host_options(), "test")[4][4], 0);
}

/// The square roots of the diagonal of the inverse of −∂²l by the logarithms of variance, range,
/// ratio and time scale and the interaction: differences of the oracle's likelihood.
std::vector<double> errors_of_differences(const Points& points, const std::vector<double>& values,
                                          const MaternParameters& best) {
  constexpr std::size_t k = 5;
  const auto at = [&](const std::vector<double>& by) {
    MaternParameters p = best;
    p.variance *= std::exp(by[0]);
    p.range *= std::exp(by[1]);
    p.separation.anisotropy_ratio *= std::exp(by[2]);
    p.separation.time->scale *= std::exp(by[3]);
    p.separation.time->interaction += by[4];
    return DenseOracle(points, values, p, Mean::zero).log_likelihood;
  };
  constexpr double h = 2e-3;
  Matrix information(k, Vector(k));
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const auto moved = [&](double s, double t) {
        std::vector<double> by(k);
        by[i] += s;
        by[j] += t;
        return at(by);
      };
      information[i][j] = information[j][i] =
          -(moved(h, h) - moved(h, -h) - moved(-h, h) + moved(-h, -h)) / (4 * Real{h} * h);
    }
  }
  const Matrix factor = oracle_cholesky(information);
  std::vector<double> errors;
  for (std::size_t i = 0; i < k; ++i) {
    Vector unit(k);
    unit[i] = 1;
    errors.push_back(static_cast<double>(std::sqrt(oracle_solve(factor, unit)[i])));
  }
  return errors;
}

TEST(FitSeparation, ObservedErrorsAreThoseOfTheOraclesLikelihood) {
  // Not at a maximum but for the variance: second differences do not care.
  MaternParameters p{1.5, 0.2, 0.5, 0, {kPlane, 0.4, 30, TimeParameters{0.8, 0.5, 0.5}}};
  const Points points = points_of(90, p.separation, 411);
  const auto values = field_of(points, p, 412);
  FitOptions options = host_fit(p.separation, {true, false, true, true, false});
  options.smoothness = 0.5;
  options.nugget = 0.0;
  const FitSpace space = make_fit_space(points, options);
  FitObjective objective(points, values, Mean::zero, space, host_options(), nullptr, 0);
  (void)objective(values_of(p));
  p.variance = std::exp(objective.log_variance());
  const auto scale = covariance_of_search(
      expected_information(points, p, host_options(), "test", space.free), space, p, space.free);
  ASSERT_TRUE(scale.has_value());
  const StandardErrors e = observed_standard_errors(
      [&](const FitSpace::Values& v) {
        const double value = objective(v);
        return ObjectiveValue{value, objective.log_variance()};
      },
      points.size(), space, p, space.free, *scale);
  EXPECT_TRUE(std::isnan(e.time_smoothness) && std::isnan(e.anisotropy_angle));
  const std::vector<double> expected = errors_of_differences(points, values, p);
  // Over other steps: their errors are of the third order of a standard error.
  EXPECT_NEAR(e.variance / p.variance / expected[0], 1, 0.02);
  EXPECT_NEAR(e.range / p.range / expected[1], 1, 0.02);
  EXPECT_NEAR(e.anisotropy_ratio / p.separation.anisotropy_ratio / expected[2], 1, 0.02);
  EXPECT_NEAR(e.time_scale / p.separation.time->scale / expected[3], 1, 0.02);
  EXPECT_NEAR(e.interaction / expected[4], 1, 0.02);
}

TEST(FitSeparation, ObservedErrorsOfAQuadraticInTheParameters) {
  // −log L is the quadratic of a matrix Q in the parameters themselves, whatever the coordinates of
  // the search are; so the inverse of Q is the covariance of the estimates.
  constexpr std::size_t k = 8;
  constexpr std::int64_t n = 1000;
  const MaternParameters p{2, 0.3, 0.8, 0.6, {kPlane, 0.5, 40, TimeParameters{3, 0.4, 0.5}}};
  const FitOptions options = host_fit(p.separation, {true, true, true, true, true});
  const FitSpace space = make_fit_space(points_of(50, p.separation, 471), options);
  ASSERT_EQ(space.free.size(), k);
  Matrix q(k, Vector(k));
  for (std::size_t i = 0; i < k; ++i) {
    q[i][i] = 500 + 100 * static_cast<Real>(i);
    for (std::size_t j = 0; j < i; ++j) q[i][j] = q[j][i] = 60 * random_normal(472, 8 * i + j);
  }
  const auto parameters_of = [](const FitSpace::Values& v) {
    return std::vector<double>{std::log(v[FitSpace::range]),
                               std::log(v[FitSpace::smoothness]),
                               std::log(v[FitSpace::ratio]),
                               std::log(v[FitSpace::time_scale]),
                               std::log(v[FitSpace::time_smoothness]),
                               v[FitSpace::interaction],
                               std::log(v[FitSpace::anisotropy_ratio]),
                               v[FitSpace::anisotropy_angle] * std::acos(-1.0) / 180};
  };
  const std::vector<double> centre = parameters_of(values_of(p));
  const auto objective = [&](const FitSpace::Values& v) {
    const std::vector<double> at = parameters_of(v);
    Real sum = 0;
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < k; ++j)
        sum += q[i][j] * (at[i] - centre[i]) * (at[j] - centre[j]) / 2;
    }
    return ObjectiveValue{static_cast<double>(sum), 0};
  };
  FitSpace inside = space;
  inside.ratio_offset = 0;
  std::vector<double> scale(k * k);
  for (std::size_t i = 0; i < k; ++i) scale[i + i * k] = 0.002;
  const StandardErrors e = observed_standard_errors(objective, n, inside, p, space.free, scale);
  const Matrix factor = oracle_cholesky(q);
  std::vector<double> variance;
  for (std::size_t i = 0; i < k; ++i) {
    Vector unit(k);
    unit[i] = 1;
    variance.push_back(static_cast<double>(oracle_solve(factor, unit)[i]));
  }
  const auto expect = [](double error, double relative_variance) {
    EXPECT_NEAR(error / std::sqrt(relative_variance), 1, 0.01);
  };
  expect(e.variance / 2, 2.0 / n);
  expect(e.range / 0.3, variance[0]);
  expect(e.smoothness / 0.8, variance[1]);
  expect(e.nugget / 0.6, 2.0 / n + variance[2]);
  expect(e.time_scale / 3, variance[3]);
  expect(e.time_smoothness / 0.4, variance[4]);
  expect(e.interaction, variance[5]);
  expect(e.anisotropy_ratio / 0.5, variance[6]);
  expect(e.anisotropy_angle * std::acos(-1.0) / 180, variance[7]);
}

TEST(FitSeparation, ObservedAndExpectedErrorsAgreeAsLongAsTheModelIsTrue) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const MaternParameters turned{1.5, 0.2, 0.5, 0.1, {kPlane, 0.4, 178, {}}};
  const MaternParameters timed{1.5, 500, 0.5, 0.1, {kSphere, 1, 0, TimeParameters{0.5, 0.6, 0}}};
  for (const MaternParameters& truth : {turned, timed}) {
    const bool time = truth.separation.time.has_value();
    const Points points = points_of(test::kSanitized ? 100 : 150, truth.separation, 461);
    const auto values = field_of(points, truth, 462);
    FitOptions options = host_fit(truth.separation, {time, false, false, !time, !time});
    options.smoothness = 0.5;
    options.standard_errors = StandardErrorMethod::expected;
    const StandardErrors a = fit(points, values, options).standard_errors;
    options.standard_errors = StandardErrorMethod::observed;
    const StandardErrors b = fit(points, values, options).standard_errors;
    // One is a mean over data sets, the other of this one: within a half at 150 points.
    EXPECT_NEAR(b.range / a.range, 1, 0.5);
    EXPECT_EQ(std::isnan(a.time_scale), !time);
    EXPECT_EQ(std::isnan(b.anisotropy_angle), time);
    if (time) {
      EXPECT_NEAR(b.time_scale / a.time_scale, 1, 0.5);
    } else {
      EXPECT_NEAR(b.anisotropy_ratio / a.anisotropy_ratio, 1, 0.5);
      EXPECT_NEAR(b.anisotropy_angle / a.anisotropy_angle, 1, 0.5);
    }
  }
}

TEST(FitSeparation, BoundsAndStartAreKeptAndWhatIsAtABoundHasNoError) {
  const MaternParameters truth{1.5, 0.2, 0.5, 0.1, {kPlane, 1, 0, TimeParameters{0.8, 0.7, 0.9}}};
  const Points points = points_of(120, truth.separation, 421);
  const auto values = field_of(points, truth, 422);
  FitOptions options = host_fit(truth.separation, {true, true, true, true, false});
  options.smoothness = 0.5;
  options.start = truth;
  options.start->separation.time = TimeParameters{0.01, 1, 0.05};
  options.start->separation.anisotropy_ratio = 0.92;
  options.time_range_bounds = Bounds{8, 12};  // the truth is 1.2
  options.time_smoothness_bounds = Bounds{0.6, 1};
  options.interaction_bounds = Bounds{0, 0.1};
  options.anisotropy_ratio_bounds = Bounds{0.9, 1};
  for (const auto method : {StandardErrorMethod::expected, StandardErrorMethod::observed}) {
    options.standard_errors = method;
    const FitResult result = fit(points, values, options);
    for (const FitStep& step : result.path) {
      const TimeParameters& time = *step.separation.time;
      const double range = std::pow(time.scale, -0.5 / time.smoothness);
      EXPECT_GE(range, 8 * (1 - 1e-12));
      EXPECT_LE(range, 12 * (1 + 1e-12));
      EXPECT_GE(time.smoothness, 0.6);
      EXPECT_LE(time.smoothness, 1);
      EXPECT_GE(time.interaction, 0);
      EXPECT_LE(time.interaction, 0.1);
      EXPECT_GE(step.separation.anisotropy_ratio, 0.9);
      EXPECT_LE(step.separation.anisotropy_ratio, 1);
    }
    const TimeParameters& first = *result.path.front().separation.time;
    EXPECT_NEAR(first.scale, 0.01, 1e-12);
    EXPECT_EQ(first.interaction, 0.05);
    EXPECT_NEAR(std::pow(result.parameters.separation.time->scale,
                         -0.5 / result.parameters.separation.time->smoothness),
                8, 1e-6);
    EXPECT_TRUE(std::isnan(result.standard_errors.time_scale)) << "it is at a bound";
    EXPECT_GT(result.standard_errors.variance, 0);
  }
}

TEST(FitSeparation, ASeparableModelHasItsInteractionAtZero) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const MaternParameters truth{1.5, 0.2, 0.5, 0.1, {kPlane, 1, 0, TimeParameters{0.8, 0.7, 0}}};
  const Points points = points_of(200, truth.separation, 433);
  const auto values = field_of(points, truth, 434);
  FitOptions options = host_fit(truth.separation, {false, false, true, false, false});
  options.smoothness = 0.5;
  const FitResult free = fit(points, values, options);
  options.estimate.interaction = false;
  const FitResult held = fit(points, values, options);
  EXPECT_TRUE(free.converged);
  EXPECT_GE(free.likelihood.log_likelihood, held.likelihood.log_likelihood - 1e-4);
  const double interaction = free.parameters.separation.time->interaction;
  EXPECT_GE(interaction, 0);
  EXPECT_EQ(std::isnan(free.standard_errors.interaction), interaction < 1e-3);
  EXPECT_EQ(held.parameters.separation.time->scale, 0.8);
}

TEST(FitSeparation, AnInterruptedFitEndsWithTheSameBits) {
  const MaternParameters truth{
      1.5, 0.25, 0.5, 0.1, {kPlane, 0.5, 50, TimeParameters{0.8, 0.7, 0.5}}};
  const Points points = points_of(test::kSanitized ? 40 : 130, truth.separation, 441);
  const auto values = field_of(points, truth, 442);
  test::Scratch scratch;
  FitOptions options = host_fit(truth.separation, {true, true, true, true, true});
  options.smoothness = 0.5;
  options.max_evaluations = test::kSanitized ? 20 : 40;
  const auto numbers = [](const FitResult& r) {
    std::vector<double> all{r.likelihood.log_likelihood, static_cast<double>(r.evaluations)};
    const auto add = [&all](const Separation& s) {
      for (const double v : {s.time->scale, s.time->smoothness, s.time->interaction,
                             s.anisotropy_ratio, s.anisotropy_angle})
        all.push_back(v);
    };
    add(r.parameters.separation);
    for (const FitStep& step : r.path) add(step.separation);
    return all;
  };
  const std::vector<double> expected = numbers(fit(points, values, options));
  options.journal = scratch.path("j.txt");
  int left = 0;
  options.run.progress = [&](const Progress&) { return --left > 0; };
  std::vector<double> got;
  int runs = 0;
  for (left = 60; got.empty(); left = 200 * runs) {
    ASSERT_LT(++runs, 50);
    const auto error = kind_of_error([&] { got = numbers(fit(points, values, options)); });
    ASSERT_TRUE(!error || *error == ErrorKind::cancelled);
  }
  EXPECT_GT(runs, 1);
  EXPECT_TRUE(test::same_bits(got, expected));

  // What is estimated is no part of the question: the same fit, all of it in the journal.
  options.run.progress = {};
  const Separation given = options.separation;
  options.separation = {kPlane, 0.9, -5, TimeParameters{3, 0.2, 0.1}};
  EXPECT_TRUE(test::same_bits(numbers(fit(points, values, options)), expected));
  options.separation = given;
  const auto refused = [&](const char* piece) {
    std::string message;
    EXPECT_EQ(kind_of_error([&] { (void)fit(points, values, options); }, &message),
              ErrorKind::input);
    EXPECT_NE(message.find(piece), std::string::npos) << message;
  };
  options.estimate.interaction = false;
  options.separation.time->interaction = 0;
  refused("it has 'estimated of it time-scale time-smoothness interaction anisotropy-ratio");
  options.estimate.interaction = true;
  options.time_range_bounds = Bounds{0.1, 10};
  refused("time range bounds automatic");
  std::string text = test::slurp(options.journal);
  text.replace(text.find("journal 5"), 9, "journal 1");
  (void)scratch.put("j.txt", text);
  refused("'strata fit journal 1', this one 'strata fit journal 5'");
}

TEST(FitSeparation, Refuses) {
  const Separation timed{kPlane, 1, 0, TimeParameters{}};
  const Points points = points_of(40, timed, 451);
  const auto values = field_of(points, {1, 0.2, 0.5, 0.1, timed}, 452);
  const auto refuse = [&](const Points& p, const FitOptions& options, ErrorKind kind,
                          const char* words) {
    std::string message;
    EXPECT_EQ(kind_of_error([&] { (void)fit(p, values, options); }, &message), kind) << words;
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  const auto misuse = [&](const Points& p, const FitOptions& options, const char* words) {
    refuse(p, options, ErrorKind::misuse, words);
  };
  Points timeless = points;
  timeless.t = {};
  misuse(timeless, host_fit({}, kTime), "have no times");
  misuse(points, host_fit({}, kTime), "no time parameters");
  const Points sphere = points_of(40, {kSphere, 1, 0, TimeParameters{}}, 451);
  misuse(sphere, host_fit({kSphere, 1, 0, TimeParameters{}}, kTime), "the interaction is to be");
  Points place = sphere;
  place.t = {};
  misuse(place, host_fit({kSphere, 1, 0, {}}, kAnisotropy), "the anisotropy is to be estimated");
  misuse(timeless, host_fit({}, {false, false, false, false, true}), "its ratio is held at 1");
  Points once = points;
  once.t.assign(40, 3.0);
  refuse(once, host_fit(timed, kTime), ErrorKind::numerical, "the same time");

  FitOptions options = host_fit(timed, kTime);
  options.start = MaternParameters{1, 0.2, 0.5, 0.1, {}};
  misuse(points, options, "the start has none");
  options.start->separation.time = TimeParameters{-1, 1, 0};
  misuse(points, options, "time scale is -1");
  options.start->separation.time = TimeParameters{1, 1, 0};
  options.time_range_bounds = Bounds{2, 1};
  misuse(points, options, "bounds of time range are 2 and 1");
  options.time_range_bounds.reset();
  options.time_smoothness_bounds = Bounds{0.5, 1.5};
  misuse(points, options, "upper bound of time smoothness is 1.5");
  options.time_smoothness_bounds.reset();
  options.interaction_bounds = Bounds{-0.5, 1};
  misuse(points, options, "bounds of interaction are -0.5 and 1");
  options.interaction_bounds = Bounds{0, 1};
  Points high = points;
  high.z = points.x;
  misuse(high, options, "upper bound of interaction is 1, but must be at most 0.666667");
  options = host_fit({}, kAnisotropy);
  options.anisotropy_ratio_bounds = Bounds{0.5, 2};
  misuse(timeless, options, "upper bound of anisotropy ratio is 2");
}

}  // namespace
}  // namespace strata
