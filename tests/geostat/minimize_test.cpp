// The searches of a fit, on functions whose minimum is known.

#include "geostat/minimize.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/constants.hpp"

namespace strata {
namespace {

using Variables = std::vector<double>;

/// Counts calls, and sees that they stay in the box.
struct Counted {
  std::function<double(const Variables&)> f;
  Box box;
  int calls = 0;

  double operator()(const Variables& x) {
    ++calls;
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_GE(x[i], box.lower[i]);
      EXPECT_LE(x[i], box.upper[i]);
    }
    return f(x);
  }
};

TEST(MinimizeLine, FindsTheMinimumFromEitherSideAndAtBounds) {
  const auto quartic = [](double x) { return std::pow(x - 1, 2) + 0.3 * std::pow(x - 1, 4) + 5; };
  for (const double start : {-4.0, 0.99, 1.0, 1.5, 6.0}) {
    for (const double step : {0.01, 0.5, 3.0}) {
      Counted f{[&](const Variables& x) { return quartic(x[0]); }, {{-5}, {7}}};
      const Minimum got = minimize(std::ref(f), {start}, f.box, {step, 1e-7, 1e-14, 200});
      EXPECT_TRUE(got.converged);
      EXPECT_NEAR(got.x[0], 1, 1e-5) << start << ", " << step;
      EXPECT_LE(f.calls, 40) << start << ", " << step;
      EXPECT_EQ(got.value, quartic(got.x[0]));
    }
  }
  for (const auto& [box, at] : {std::pair{Box{{-5}, {0.5}}, 0.5}, {Box{{1.25}, {9}}, 1.25}}) {
    Counted f{[&](const Variables& x) { return quartic(x[0]); }, box};
    const double middle = 0.5 * (box.lower[0] + box.upper[0]);
    const Minimum got = minimize(std::ref(f), {middle}, box, {0.2, 1e-7, 1e-14, 200});
    EXPECT_TRUE(got.converged);
    EXPECT_NEAR(got.x[0], at, 1e-6);
  }
}

TEST(MinimizeLine, StopsAtTheLimitAndPassesOnWhatIsThrown) {
  int calls = 0;
  const auto f = [&](const Variables& x) { return ++calls, std::cosh(x[0] - 3); };
  const Minimum got = minimize(f, {-3}, {{-9}, {9}}, {0.1, 1e-9, 1e-15, 5});
  EXPECT_FALSE(got.converged);
  EXPECT_EQ(calls, 5);
  EXPECT_THROW((void)minimize([](const Variables&) -> double { throw std::runtime_error("no"); },
                              {0}, {{-1}, {1}}, {}),
               std::runtime_error);
}

TEST(MinimizeScaled, OfAQuadraticNeedsAtMostThreeEvaluationsForEachUnknown) {
  for (const std::size_t k : {1U, 2U, 3U}) {
    // The Hessian is what the start says, up to a factor of two and a twist.
    for (const double factor : {0.5, 1.0, 2.0}) {
      const Box box{Variables(k, -kInfinity), Variables(k, kInfinity)};
      Counted f{[&](const Variables& x) {
                  double sum = 7;
                  for (std::size_t i = 0; i < k; ++i) {
                    const double d = x[i] - 1.5 + static_cast<double>(i);
                    sum +=
                        0.5 * factor * d * d + (i > 0 ? 0.2 * d * (x[i - 1] - 2.5 + double(i)) : 0);
                  }
                  return sum;
                },
                box};
      Variables identity(k * k);
      for (std::size_t i = 0; i < k; ++i) identity[i + i * k] = 1;
      const Minimum got =
          minimize_scaled(std::ref(f), {Variables(k), identity, {}}, box, {1, 1e-7, 1e-8, 60});
      EXPECT_TRUE(got.converged);
      for (std::size_t i = 0; i < k; ++i)
        EXPECT_NEAR(got.x[i], 1.5 - static_cast<double>(i), 1e-3) << k << ", " << factor;
      // Some of them try the scale at the end.
      EXPECT_LE(f.calls, static_cast<int>(3 * (k + 1) * (k + 2) / 2 + k)) << k << ", " << factor;
    }
  }
}

// Curvature is what the start says across a valley and far less along it, as where a model does not
// fit its data: near the start the slope along it is too small to promise a gain. Either the
// minimum is found, or it is said that it was not; without a model the search goes on from there.
TEST(MinimizeScaled, DoesNotTakeALongFlatSlopeForAMinimum) {
  const Box box{{-kInfinity, -kInfinity}, {kInfinity, kInfinity}};
  for (const double turned : {0.0, 0.4, 0.785, 1.2, 2.5}) {
    for (const double away : {-80.0, 5.0, 30.0, 400.0}) {
      for (const double gain : {0.02, 1e-4}) {
        Counted f{[&](const Variables& x) {
                    const double along = std::cos(turned) * x[0] + std::sin(turned) * x[1] - away;
                    const double across = std::cos(turned) * x[1] - std::sin(turned) * x[0] - 0.3;
                    return 0.5 * (0.15 / std::fabs(away)) * along * along + 0.5 * across * across;
                  },
                  box};
        const Minimum got =
            minimize_scaled(std::ref(f), {{0, 0}, {1, 0, 0, 1}, {}}, box, {1, 1e-6, gain, 80});
        EXPECT_LE(f.calls, 30);
        // A rival that is better than the start, and not than a minimum within a few dozens of
        // deviations, does not end it.
        const int calls = f.calls;
        const double rival = std::fabs(away) > 40 ? kInfinity : 0.5 * f({0, 0});
        const Minimum beside = minimize_scaled(
            std::ref(f), {{0, 0}, {1, 0, 0, 1}, {}}, box,
            {.step = 1, .tolerance = 1e-6, .gain = gain, .evaluations_max = 80, .rival = rival});
        EXPECT_FALSE(beside.beaten) << turned << ' ' << away << ' ' << gain;
        f.calls = calls;
        if (got.converged) {
          EXPECT_LE(got.value, 3 * gain) << turned << ' ' << away << ' ' << gain;
          continue;
        }
        const Minimum rest = minimize_in_steps(std::ref(f), got.x, box, {1, 1},
                                               {1, std::min(std::sqrt(2 * gain), 0.03), 0, 200});
        EXPECT_TRUE(rest.converged);
        EXPECT_LE(rest.value, gain) << turned << ' ' << away << ' ' << gain;
        EXPECT_LE(f.calls, 80) << turned << ' ' << away << ' ' << gain;
      }
    }
  }
}

// Functions that are no parabolas promise a little more at each point; what is less than the gain
// that was asked for is not followed.
TEST(MinimizeScaled, EndsWhereWhatIsPromisedDoesNotCome) {
  const std::vector<std::function<double(double)>> valleys{
      [](double u) { return std::exp(u) - u; },
      [](double u) { return u > 0 ? 0.5 * u * u : 0.02 * u * u; },
      [](double u) { return std::pow(std::fabs(u), 1.5); },
      [](double u) { return std::pow(std::fabs(u), 3); },
      [](double u) { return 2 * std::sqrt(1 + u * u) + 0.3 * u; },
      [](double u) { return 0.5 * u * u + 0.1 * std::sin(3 * u); }};
  for (std::size_t v = 0; v < valleys.size(); ++v) {
    const auto& valley = valleys[v];
    for (double from = -2; from <= 2; from += 0.17) {
      for (const auto& [k, gain] : {std::pair{1U, 1e-4}, {2U, 1e-4}, {1U, 1e-8}, {2U, 1e-8}}) {
        SCOPED_TRACE(fmt::format("valley {} from {}, {} variables, {}", v, from, k, gain));
        const Box box{Variables(k, -kInfinity), Variables(k, kInfinity)};
        Counted f{[&](const Variables& x) {
                    double sum = 0;
                    for (const double u : x) sum += valley(u);
                    return sum;
                  },
                  box};
        Variables identity(k * k);
        for (std::size_t i = 0; i < k; ++i) identity[i + i * k] = 1;
        (void)minimize_scaled(std::ref(f), {Variables(k, from), identity, {}}, box,
                              {1, 1e-6, gain, 200});
        EXPECT_LE(f.calls, 50);
      }
    }
  }
}

TEST(MinimizeInSteps, GivesBackVariablesAndKeepsTheBox) {
  const Box box{{-1e-3, -5e6}, {1e-3, 2e6}};
  Counted f{[](const Variables& x) {
              const double a = 1e3 * x[0] - 0.25;
              const double b = 1e-6 * x[1] - 3;  // beyond the box
              return a * a + b * b + 0.5 * a * b;
            },
            box};
  const Minimum got = minimize_in_steps(std::ref(f), {0, 0}, box, {1e-4, 1e5}, {1, 1e-3, 0, 200});
  EXPECT_TRUE(got.converged);
  EXPECT_NEAR(got.x[0], 0.5e-3, 1e-6);  // at b = −1: 2·a + b/2 = 0
  EXPECT_NEAR(got.x[1], 2e6, 1);
  EXPECT_NEAR(got.value, 0.0625 + 1 - 0.125, 1e-5);
}

TEST(MinimizeScaled, OfAFunctionThatIsNoQuadratic) {
  // A curved valley, in a scale that is right at its minimum.
  const Box box{{-9, -9}, {9, 9}};
  Counted f{[](const Variables& x) {
              const double a = x[0] + 0.1 * x[1] * x[1];
              return std::cosh(2 * a) + 0.5 * x[1] * x[1];
            },
            box};
  const Minimum got =
      minimize_scaled(std::ref(f), {{1.2, 2}, {0.5, 0, 0, 1}, {}}, box, {1, 1e-7, 1e-9, 80});
  EXPECT_TRUE(got.converged);
  EXPECT_NEAR(got.x[0], 0, 1e-4);
  EXPECT_NEAR(got.x[1], 0, 1e-4);
  EXPECT_LE(f.calls, 40);
}

TEST(MinimizeScaled, KnownValuesAreNotAskedForAgain) {
  const Box box{{-9, -9}, {9, 9}};
  const auto value = [](const Variables& x) { return 0.5 * (x[0] * x[0] + x[1] * x[1]) + 3; };
  Counted f{value, box};
  ScaledStart start{{1, 1}, {1, 0, 0, 1}, {}};
  for (const Variables& x : std::vector<Variables>{{1, 1}, {1.5, 1}, {1, 0.5}, {0.2, 0.1}})
    start.known.emplace_back(x, value(x));
  const Minimum got = minimize_scaled(std::ref(f), start, box, {1, 1e-7, 1e-8, 60});
  EXPECT_TRUE(got.converged);
  EXPECT_NEAR(got.x[0], 0, 1e-3);
  const int calls = f.calls;
  f.calls = 0;
  start.known.clear();
  (void)minimize_scaled(std::ref(f), start, box, {1, 1e-7, 1e-8, 60});
  EXPECT_LT(calls, f.calls);
}

TEST(MinimizeScaled, FindsAMinimumAtABoundOrInACorner) {
  // A quadratic with a valley along x₀ = x₁, centred outside of the box; x₂ stays free.
  const auto value = [](const Variables& x) {
    const double a = x[0] - 3;
    const double b = x[1] - 2;
    return 0.5 * (a * a + b * b + x[2] * x[2]) - 0.8 * a * b + 0.1 * a * x[2];
  };
  const auto grid_minimum = [&](const Box& box) {  // the least on a grid of the box, by itself
    Variables best{0, 0, 0};
    for (int i = 0; i <= 100; ++i) {
      for (int j = 0; j <= 100; ++j) {
        const double x = box.lower[0] + (box.upper[0] - box.lower[0]) * i / 100;
        const double y = box.lower[1] + (box.upper[1] - box.lower[1]) * j / 100;
        const Variables here{x, y, -0.1 * (x - 3)};
        if (i + j == 0 || value(here) < value(best)) best = here;
      }
    }
    return best;
  };
  for (const Box& box : {Box{{-9, -9, -9}, {0.5, 9, 9}}, Box{{-9, -9, -9}, {0.5, -0.5, 9}},
                         Box{{-9, 2.5, -9}, {2, 9, 9}}, Box{{-9, -9, -9}, {9, 9, 9}}}) {
    Counted f{value, box};
    const Variables start{-1, std::clamp(1.0, box.lower[1], box.upper[1]), 0.3};
    const Minimum got = minimize_scaled(std::ref(f), {start, {1, 0.3, 0, 0, 1, 0, 0, 0, 1}, {}},
                                        box, {1, 1e-7, 1e-8, 60});
    EXPECT_TRUE(got.converged);
    const Variables expected = grid_minimum(box);
    EXPECT_LE(got.value, value(expected) + 1e-7);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got.x[i], expected[i], 0.19) << i;
    EXPECT_LE(f.calls, 40);
  }
}

/// Two valleys, as two modes have: at 0 with the value 0, and at (6, 6) with `higher`.
double valleys(const Variables& x, double higher) {
  const auto at = [&](double centre) {
    const double a = x[0] - centre;
    const double b = x[1] - centre;
    return 0.5 * (a * a + b * b + 0.3 * a * b) + 0.02 * a * a * a * a;
  };
  return std::min(at(0), higher + at(6));
}

TEST(MinimizeScaled, ARivalThatIsClearlyBetterEndsTheSearchAndNoOther) {
  const Box box{{-20, -20}, {20, 20}};
  for (const double higher : {-3.0, -0.01, 0.01, 0.5, 3.0}) {
    SCOPED_TRACE(higher);
    const auto searched = [&](double rival) {
      Counted f{[&](const Variables& x) { return valleys(x, higher); }, box};
      const ScaledStart start{{5.2, 6.9}, {1, 0, 0, 1}, {}};
      MinimizeOptions options{1, 1e-6, 1e-4, 100};
      options.rival = rival;
      const Minimum got = minimize_scaled(std::ref(f), start, box, options);
      EXPECT_FALSE(got.converged && got.beaten);
      return std::pair{got, f.calls};
    };
    const auto [alone, calls] = searched(INFINITY);
    ASSERT_TRUE(alone.converged);
    EXPECT_NEAR(alone.value, higher, 1e-3);
    const auto [beside, fewer] = searched(0);
    if (higher < 0) {
      EXPECT_TRUE(beside.converged) << "it comes below the rival";
      EXPECT_EQ(beside.value, alone.value);
    }
    if (higher >= 3) {
      EXPECT_TRUE(beside.beaten);
      EXPECT_LT(fewer, calls);
    }
  }
}

/// With a triangular factor the first variable's bound is one of u, and the others lie where they
/// do beside it: the search does not leave its valley for the bound.
TEST(MinimizeScaled, ABoundOfTheFirstVariableTakesNothingOffTheOthers) {
  const Box box{{0, -50}, {10, 50}};
  Counted f{[](const Variables& x) {
              return 0.5 * std::pow(x[0] + 1, 2) / 16 + 50 * std::pow(x[1] - x[0] - 3, 2);
            },
            box};
  // The covariance of x: 16 for both and their products, 0.01 more for the second.
  const ScaledStart start{{0.5, 3.4}, {4, 4, 0, 0.1}, {}};
  const Minimum got = minimize_scaled(std::ref(f), start, box, {1, 1e-6, 1e-4, 60});
  EXPECT_TRUE(got.converged);
  EXPECT_EQ(got.x[0], 0);
  EXPECT_NEAR(got.x[1], 3, 0.01);
  EXPECT_LE(f.calls, 12);
}

TEST(Minimize, OneVariableThatBeginsAtABoundConverges) {
  for (const double at : {0.0, 3.0}) {
    // Down towards the bound, and a minimum at a distance from it.
    for (const double centre : {at, 1.0}) {
      const Minimum minimum = minimize(
          [&](const std::vector<double>& x) { return 5 + (x[0] - centre) * (x[0] - centre); }, {at},
          {{0}, {3}}, {0.3, 1e-6, 1e-12, 60});
      EXPECT_TRUE(minimum.converged) << at << ' ' << centre;
      EXPECT_NEAR(minimum.x[0], centre, 1e-5);
      const Minimum slope =
          minimize([&](const std::vector<double>& x) { return std::fabs(x[0] - at) + 1; }, {at},
                   {{0}, {3}}, {0.3, 1e-6, 1e-12, 60});
      EXPECT_TRUE(slope.converged);
      EXPECT_EQ(slope.x[0], at);
    }
  }
}

}  // namespace
}  // namespace strata
