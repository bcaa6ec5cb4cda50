// fit reaches the best maximum that there is, on data whose likelihood has several or whose lengths
// differ by orders of magnitude: against a search that shares nothing with it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

struct SearchedData {
  std::string name;
  Points points;
  std::vector<double> values;
  double smoothness = 0.5;
  std::optional<double> nugget{};
};

/// Clusters of 20 m over 100 km: neighbours are a few metres apart, and so is the range.
SearchedData clusters() {
  SearchedData out{"clusters of 20 m over 100 km", {}, {}};
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t c = i % 6;
    out.points.x.push_back(4e5 + 1e5 * random_uniform(71, c) + 20 * random_uniform(72, i));
    out.points.y.push_back(5e6 + 1e5 * random_uniform(73, c) + 20 * random_uniform(74, i));
  }
  out.values = simulate_field(out.points, {4, 5, 0.5, 0.1}, 75);
  return out;
}

/// Samples of every metre in holes that are 100 m and more apart.
SearchedData drill_holes() {
  SearchedData out{"drill holes", {}, {}, 1.5};
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t hole = i / 12;
    out.points.x.push_back(500 * random_uniform(81, hole));
    out.points.y.push_back(500 * random_uniform(82, hole));
    out.points.z.push_back(static_cast<double>(i % 12));
  }
  out.values = simulate_field(out.points, {1, 2, 1.5, 0.02}, 83);
  return out;
}

/// One row whose coordinates are missing and were read as 0.
SearchedData stray_row() {
  SearchedData out{"a stray row at (0, 0)", random_points(50, 91), {}};
  for (std::size_t i = 0; i < 50; ++i) {
    out.points.x[i] = 452'000 + 500 * out.points.x[i];
    out.points.y[i] = 5'310'000 + 500 * out.points.y[i];
  }
  out.values = simulate_field(out.points, {1, 60, 0.5, 0.05}, 92);
  out.points.x[17] = out.points.y[17] = 0;
  return out;
}

/// A smooth function of the coordinates: noise there is none.
SearchedData function() {
  SearchedData out{"exp(x) y", random_points(30, 7), {}, 1.5};
  for (std::size_t i = 0; i < 30; ++i)
    out.values.push_back(std::exp(out.points.x[i]) * out.points.y[i]);
  return out;
}

SearchedData line() {
  SearchedData out{"a line", {}, {}, 0.5, 0.0};
  for (std::size_t i = 0; i < 40; ++i) {
    out.points.x.push_back(100 * random_uniform(61, i));
    out.points.y.push_back(3);
  }
  out.values = simulate_field(out.points, {2, 3, 0.5, 0}, 62);
  return out;
}

/// Noise, and a trend that a long range can follow.
SearchedData noisy() {
  SearchedData out{"noise", random_points(45, 51), {}};
  for (std::size_t i = 0; i < 45; ++i)
    out.values.push_back(0.8 * out.points.x[i] + random_normal(52, i));
  return out;
}

/// Every site twice, a ten-thousandth apart.
SearchedData pairs() {
  SearchedData out{"pairs", random_points(40, 41), {}, 1.5};
  for (std::size_t i = 0; i < 20; ++i) {
    out.points.x[i + 20] = out.points.x[i] + 1e-4 * random_normal(42, i);
    out.points.y[i + 20] = out.points.y[i] + 1e-4 * random_normal(43, i);
  }
  out.values = simulate_field(out.points, {1, 0.1, 1.5, 0.1}, 44);
  return out;
}

/// A weak smooth signal on a grid, all but lost in noise: a mode of nothing but a short range is
/// nearly as good as the one that sees it.
SearchedData lost_in_noise() {
  SearchedData out{"lost in noise", {}, {}, 1.5};
  for (std::size_t i = 0; i < 81; ++i) {
    out.points.x.push_back(static_cast<double>(i % 9) / 9);
    out.points.y.push_back(static_cast<double>(i / 9) / 9);
  }
  out.values = simulate_field(out.points, {1, 0.2, 1.5, 12}, 31);
  return out;
}

std::vector<SearchedData> sets() {
  return {clusters(), drill_holes(), stray_row(), function(),
          line(),     noisy(),       pairs(),     lost_in_noise()};
}

/// The profile likelihood of a constant mean, by long double and the closed forms of smoothness 1/2
/// and 3/2.
class Profile {
 public:
  explicit Profile(const SearchedData& data) : data_(data) {
    for (std::size_t i = 0; i < data.values.size(); ++i) {
      distances_.emplace_back();
      for (std::size_t j = 0; j <= i; ++j)
        distances_.back().push_back(oracle_distance({}, data.points, i, data.points, j));
    }
  }
  [[nodiscard]] Real operator()(Real range, Real ratio) const;

 private:
  const SearchedData& data_;
  Matrix distances_;  // lower triangle
};

Real Profile::operator()(Real range, Real ratio) const {
  const std::size_t n = data_.values.size();
  Matrix r = distances_;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const Real h = r[i][j] / range;
      r[i][j] = (data_.smoothness == 0.5 ? 1 : 1 + h) * std::exp(-h) + (i == j ? ratio : 0);
    }
  }
  const Matrix l = oracle_cholesky(std::move(r));
  // [1 | z] whitened, and what is left of z beside 1.
  Vector one(n, 1);
  Vector z(data_.values.begin(), data_.values.end());
  Real log_determinant = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(l[i][i] > 0)) return -INFINITY;
    for (std::size_t k = 0; k < i; ++k) {
      one[i] -= l[i][k] * one[k];
      z[i] -= l[i][k] * z[k];
    }
    one[i] /= l[i][i];
    z[i] /= l[i][i];
    log_determinant += 2 * std::log(l[i][i]);
  }
  const Real mean = oracle_dot(one, z) / oracle_dot(one, one);
  for (std::size_t i = 0; i < n; ++i) z[i] -= mean * one[i];
  const auto count = static_cast<Real>(n);
  const Real variance = oracle_dot(z, z) / count;
  return -(count * std::log(2 * std::acos(Real{-1}) * variance) + count + log_determinant) / 2;
}

/// The largest that a grid over twenty octaves and compass searches from its best points find.
Real best_of_many(const SearchedData& data, Real shortest, Real longest) {
  const Profile profile(data);
  struct Start {
    Real value, range, ratio;
  };
  std::vector<Start> starts;
  std::vector<Real> ratios{0, 1e-10L, 1e-7L, 1e-4L, 1e-2L, 0.2L, 3};
  if (data.nugget) ratios = {0};
  for (Real range = shortest; range <= longest; range *= 2.2L)
    for (const Real ratio : ratios) starts.push_back({profile(range, ratio), range, ratio});
  std::sort(starts.begin(), starts.end(),
            [](const Start& a, const Start& b) { return a.value > b.value; });
  starts.resize(std::min<std::size_t>(starts.size(), test::kSanitized ? 1 : 10));
  Real best = -INFINITY;
  for (Start s : starts) {
    for (Real step = 0.8L; step > 1e-3L;) {
      const Start before = s;
      for (const auto& [by_range, by_ratio] : {std::pair<Real, Real>{step, 0},
                                               {-step, 0},
                                               {0, step},
                                               {0, -step},
                                               {step, step},
                                               {-step, -step}}) {
        const Real range = std::clamp(before.range * std::exp(by_range), shortest, longest);
        const Real ratio = before.ratio * std::exp(2 * by_ratio);
        const Real value = profile(range, ratio);
        if (value > s.value) s = {value, range, ratio};
      }
      if (s.value <= before.value) step /= 2;
    }
    best = std::max(best, s.value);
  }
  return best;
}

/// Least and largest distance between two points that are not one.
std::pair<double, double> distances(const Points& points) {
  std::pair<double, double> out{INFINITY, 0};
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto h = static_cast<double>(oracle_distance({}, points, i, points, j));
      out = {std::min(out.first, h), std::max(out.second, h)};
    }
  }
  return out;
}

FitOptions options_for(const SearchedData& data) {
  FitOptions options{host_options()};
  options.smoothness = data.smoothness;
  options.nugget = data.nugget;
  options.standard_errors = StandardErrorMethod::none;
  return options;
}

/// What a fit says of its likelihood is so, to the rounding that it states.
void expect_told(const SearchedData& data, const FitResult& result) {
  const MaternParameters& p = result.parameters;
  const auto exact = static_cast<double>(Profile(data)(p.range, p.nugget / p.variance));
  const double stated = result.likelihood.rounding.log_likelihood();
  EXPECT_LE(std::abs(result.likelihood.log_likelihood - exact), stated);
  EXPECT_LE(stated, result.noise);
}

TEST(FitSearch, ReachesTheBestOfManyIndependentSearches) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  for (const SearchedData& data : sets()) {
    SCOPED_TRACE(data.name);
    const auto [least, most] = distances(data.points);
    const Real best = best_of_many(data, 0.05 * least, 10 * most);
    const FitResult result = fit(data.points, data.values, options_for(data));
    EXPECT_TRUE(result.converged);
    EXPECT_GE(result.likelihood.log_likelihood, static_cast<double>(best) - 1e-3);
    EXPECT_LE(result.parameters.range, 10 * most * 1.0001);
    expect_told(data, result);
    EXPECT_LT(result.noise, 0.1);
  }
}

TEST(FitSearch, AFreeNuggetIsAtLeastAsGoodAsNone) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  for (SearchedData data : {function(), line(), pairs()}) {
    SCOPED_TRACE(data.name);
    for (const bool smoothness : {false, true}) {
      if (test::kSanitized && smoothness && data.name == "pairs") continue;
      data.nugget = 0;
      FitOptions options = options_for(data);
      if (smoothness) options.smoothness.reset();
      const FitResult without = fit(data.points, data.values, options);
      options.nugget.reset();
      const FitResult free = fit(data.points, data.values, options);
      if (!smoothness) {  // at which the oracle is
        expect_told(data, without);
        expect_told(data, free);
      }
      // Neither is known better than rounding lets it be.
      const double known = 1e-3 + 2 * (without.noise + free.noise);
      if (!smoothness) {
        EXPECT_LT(known, 0.5);
      }
      EXPECT_GE(free.likelihood.log_likelihood, without.likelihood.log_likelihood - known)
          << (smoothness ? "smoothness estimated" : "smoothness held");
    }
  }
}

TEST(FitSearch, SaysWhatLiesOnABound) {
  const SearchedData data = noisy();
  FitOptions options = options_for(data);
  options.range_bounds = Bounds{0.05, 0.1};
  options.noise_ratio_bounds = Bounds{1e-3, 0.01};
  const FitResult result = fit(data.points, data.values, options);
  ASSERT_FALSE(result.at_bounds.empty());
  EXPECT_EQ(result.at_bounds.back().parameter, "noise ratio");
  EXPECT_TRUE(result.at_bounds.back().upper);
  EXPECT_EQ(result.at_bounds.back().bound, 0.01);
  EXPECT_FALSE(result.at_bounds.back().natural);
  // The end of the domain is a bound of another kind.
  const FitResult smooth = fit(function().points, function().values, options_for(function()));
  if (smooth.parameters.nugget == 0) {
    const auto found = std::find_if(smooth.at_bounds.begin(), smooth.at_bounds.end(),
                                    [](const FitBound& b) { return b.parameter == "noise ratio"; });
    ASSERT_NE(found, smooth.at_bounds.end());
    EXPECT_TRUE(found->natural);
  }
}

TEST(FitSearch, HoldsTheRange) {
  const SearchedData data = pairs();
  FitOptions options = options_for(data);
  options.range = 0.1;
  const FitResult result = fit(data.points, data.values, options);
  EXPECT_TRUE(result.converged);
  EXPECT_EQ(result.parameters.range, 0.1);
  for (const FitStep& step : result.path) EXPECT_EQ(step.range, 0.1);
  for (const Real factor : {0.97L, 1.03L}) {
    const Real ratio = factor * result.parameters.nugget / result.parameters.variance;
    EXPECT_LE(static_cast<double>(Profile(data)(0.1L, ratio)),
              result.likelihood.log_likelihood + 1e-6);
  }
  // Nothing is searched: the variance alone is estimated.
  options.nugget = 0.0;
  const FitResult all = fit(data.points, data.values, options);
  EXPECT_TRUE(all.converged);
  EXPECT_EQ(all.evaluations, 1);
  EXPECT_NEAR(all.likelihood.log_likelihood, static_cast<double>(Profile(data)(0.1L, 0)), 1e-5);
  // So it is with a smoothness that is estimated.
  options.smoothness.reset();
  options.nugget.reset();
  options.standard_errors = StandardErrorMethod::expected;
  const FitResult rest = fit(data.points, data.values, options);
  EXPECT_EQ(rest.parameters.range, 0.1);
  EXPECT_TRUE(std::isnan(rest.standard_errors.range));
}

TEST(FitSearch, TwinsNeedANuggetAsCoincidentPointsDo) {
  SearchedData data = noisy();
  data.smoothness = 1.5;
  data.points.x.push_back(data.points.x[8] + 1e-13);
  data.points.y.push_back(data.points.y[8]);
  data.values.push_back(data.values[8]);
  FitOptions options = options_for(data);
  options.nugget = 0.0;
  std::string message;
  EXPECT_EQ(kind_of_error([&] { (void)fit(data.points, data.values, options); }, &message),
            ErrorKind::numerical);
  EXPECT_NE(message.find("rows 8 and 45"), std::string::npos) << message;
  EXPECT_NE(message.find("nugget"), std::string::npos) << message;
  options.nugget.reset();
  const FitResult result = fit(data.points, data.values, options);
  EXPECT_GT(result.parameters.nugget, 0);
}

/// In whatever unit the values are: the variance is searched by its ratio to the nugget.
TEST(FitSearch, ANuggetThatIsHeldDoesNotBoundTheVariance) {
  SearchedData data;
  data.points = random_points(30, 5);
  data.values = simulate_field(data.points, {1, 0.5, 0.5, 0}, 6);
  const auto fitted = [&](double unit, double nugget) {
    FitOptions options = options_for(data);
    options.range = 0.5;
    options.smoothness = 0.5;
    options.nugget = nugget;
    std::vector<double> values = data.values;
    for (double& v : values) v *= unit;
    FitResult result = fit(data.points, values, options);
    EXPECT_TRUE(result.converged) << unit << ' ' << nugget;
    EXPECT_TRUE(result.at_bounds.empty()) << unit << ' ' << nugget;
    result.likelihood.log_likelihood += 30 * std::log(unit);
    result.parameters.variance /= unit * unit;
    return result;
  };
  for (const double share : {0.0, 0.01, 0.1}) {  // of the variance, about
    const FitResult plain = fitted(1, share);
    for (const double unit : {1e-6, 10.0, 1e5, 1e7, 1e13}) {
      // Nothing, or the same share.
      for (const double nugget : {share * unit * unit, 1e-12, 1e-6, 1.0}) {
        if (nugget != share * unit * unit && (share > 0 || nugget > 1e-10 * unit * unit)) continue;
        const FitResult found = fitted(unit, nugget);
        EXPECT_NEAR(found.likelihood.log_likelihood, plain.likelihood.log_likelihood, 1e-3)
            << unit << ' ' << nugget;
        EXPECT_NEAR(found.parameters.variance, plain.parameters.variance,
                    0.01 * plain.parameters.variance)
            << unit << ' ' << nugget;
      }
    }
  }
}

TEST(FitSearch, StandardErrorsAreSaidToBeNoneWhereThereIsNone) {
  const SearchedData data = noisy();
  FitOptions options = options_for(data);
  options.standard_errors = StandardErrorMethod::expected;
  options.max_evaluations = 2;
  const FitResult result = fit(data.points, data.values, options);
  EXPECT_FALSE(result.converged);
  EXPECT_EQ(result.standard_errors.method, StandardErrorMethod::none);
  EXPECT_FALSE(result.standard_errors.any());
}

TEST(FitSearch, CancellationCountsAllEvaluations) {
  const SearchedData data = noisy();
  FitOptions options = options_for(data);
  int calls = 0;
  options.run.progress = [&](const Progress&) { return ++calls < 30; };
  std::string message;
  EXPECT_EQ(kind_of_error([&] { (void)fit(data.points, data.values, options); }, &message),
            ErrorKind::cancelled);
  int made = 0;
  int sampled = 0;
  ASSERT_EQ(std::sscanf(message.c_str(), "cancelled after %d evaluations, %d of them to find",
                        &made, &sampled),
            2)
      << message;
  EXPECT_EQ(made, sampled);
  EXPECT_GT(made, 20) << "each was told of before, and few are of a place that is known";
  EXPECT_LE(made, 28);
}

}  // namespace
}  // namespace strata
