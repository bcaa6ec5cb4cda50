// Our Bessel function and Matérn correlation against Boost.Math in long double, on the CPU. The
// same header runs on the GPU.

#include <gtest/gtest.h>

#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "kernels/covariance/bessel_k.hpp"
#include "kernels/covariance/covariance_interpolant.hpp"

namespace strata {
namespace {

constexpr double kTolerance = 1e-13;

long double matern_of(long double nu, long double x, long double k) {
  return std::exp2(1 - nu) / boost::math::tgamma(nu) * std::pow(x, nu) * k;
}

double relative(double value, long double reference) {
  return static_cast<double>(std::fabs((value - reference) / reference));
}

/// Fails with ν and x unless K_ν, the correlation and its interpolant have `kTolerance`.
void expect_accurate(double nu, double x) {
  const long double k = boost::math::cyl_bessel_k(static_cast<long double>(nu),  //
                                                  static_cast<long double>(x));
  const long double correlation = matern_of(nu, x, k);
  const BesselOrder order = bessel_order(nu);
  // Written so that a NaN fails.
  EXPECT_TRUE(relative(bessel_k(order, x), k) <= kTolerance) << "nu " << nu << " x " << x;
  EXPECT_TRUE(relative(matern_correlation(order, x), correlation) <= kTolerance)
      << "nu " << nu << " x " << x;
  EXPECT_TRUE(relative(MaternInterpolant(nu)(x), correlation) <= kTolerance)
      << "nu " << nu << " x " << x;
}

double log_uniform(double low, double high, std::uint64_t seed, std::uint64_t index) {
  return low * std::exp(random_uniform(seed, index) * std::log(high / low));
}

TEST(BesselK, RandomOrdersAndArguments) {
  for (std::uint64_t i = 0; i < 6000; ++i) {
    expect_accurate(10 - 10 * random_uniform(1, i), log_uniform(1e-10, 700, 2, i));
  }
}

TEST(BesselK, TinyOrders) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    expect_accurate(log_uniform(1e-8, 0.5, 3, i), log_uniform(1e-10, 700, 4, i));
  }
}

TEST(BesselK, NearIntegersAndHalfIntegers) {
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const double near = 0.5 * (1 + std::floor(19 * random_uniform(5, i)));
    const double off = log_uniform(1e-16, 1e-2, 6, i) * (i % 2 == 0 ? 1 : -1);
    expect_accurate(i % 5 == 0 ? near : near + off, log_uniform(1e-3, 100, 7, i));
  }
}

TEST(BesselK, AroundTheSwitchOfMethod) {
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const double off = log_uniform(1e-16, 0.3, 8, i) * (i % 2 == 0 ? 1 : -1);
    expect_accurate(10 - 10 * random_uniform(9, i), i % 7 == 0 ? 2.0 : 2 * (1 + off));
  }
}

TEST(BesselK, BoundariesOfTheInterpolant) {
  for (const double nu : {0.3, 1.0, 2.7, 9.99, 10.0}) {
    for (const double x : {0x1p-33, 0x1p-32, 0.125, 0.140625, 1.875, 2.0, 2.25, 511.99, 512.0}) {
      expect_accurate(nu, x);
      expect_accurate(nu, std::nextafter(x, 0));
      expect_accurate(nu, std::nextafter(x, 1000));
    }
  }
}

TEST(BesselK, KnownValues) {
  // Abramowitz and Stegun, tables 9.8 and 9.9: e^x·K_0, e^x·K_1 at 1; K_0(0.1).
  EXPECT_NEAR(std::exp(1.0) * bessel_k(bessel_order(1), 1), 1.63615348626326, 1e-13);
  EXPECT_NEAR(bessel_k(bessel_order(0.5), 3), std::sqrt(std::acos(-1) / 6) * std::exp(-3.0), 1e-16);
}

TEST(MaternCorrelation, EndsOfTheScale) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double nu : {0.01, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 10.0, 50.0}) {
    const BesselOrder order = bessel_order(nu);
    MaternInterpolant fast(nu);
    EXPECT_EQ(matern_correlation(order, 0), 1) << nu;
    EXPECT_EQ(fast(0), 1) << nu;
    EXPECT_EQ(matern_correlation(order, 1490), 0) << nu;
    EXPECT_EQ(fast(1490), 0) << nu;
    EXPECT_EQ(matern_correlation(order, 1e300), 0) << nu;
    EXPECT_EQ(matern_correlation(order, infinity), 0) << nu;
    EXPECT_EQ(fast(infinity), 0) << nu;
    EXPECT_TRUE(std::isnan(matern_correlation(order, NAN))) << nu;
    EXPECT_TRUE(std::isnan(fast(NAN))) << nu;
    if (nu >= 0.3) {
      EXPECT_NEAR(matern_correlation(order, 1e-60), 1, 1e-14) << nu;
    }
  }
}

TEST(MaternCorrelation, ExponentialThatUnderflowsBeforeTheProduct) {
  // exp(−720) is no normal number, x^(ν−1/2)·exp(−720) is one.
  const double nu = 10;
  const long double x = 720;
  const long double expected = matern_of(nu, x, boost::math::cyl_bessel_k(10.0L, x));
  EXPECT_LE(relative(matern_correlation(bessel_order(nu), 720), expected), kTolerance);
  EXPECT_LE(relative(MaternInterpolant(nu)(720), expected), kTolerance);
}

TEST(MaternCorrelation, ClosedFormsMeetTheGeneralForm) {
  for (const double nu : {0.5, 1.5, 2.5}) {
    for (std::uint64_t i = 0; i < 500; ++i) {
      const double x = log_uniform(1e-10, 700, 10, i);
      BesselOrder general = bessel_order(nu);
      general.form = BesselOrder::Form::general;
      EXPECT_LE(relative(matern_correlation(bessel_order(nu), x), matern_correlation(general, x)),
                kTolerance)
          << nu << " " << x;
    }
  }
}

TEST(MaternInterpolant, ValueDoesNotDependOnWhatWasAskedBefore) {
  MaternInterpolant forward(0.8);
  MaternInterpolant backward(0.8);
  std::vector<double> values;
  for (int i = 1; i <= 1000; ++i) values.push_back(forward(0.01 * i));
  for (int i = 1000; i >= 1; --i) {
    EXPECT_EQ(backward(0.01 * i), values[static_cast<std::size_t>(i - 1)]) << i;
  }
}

TEST(MaternInterpolant, ValueDoesNotDependOnWhichThreadAsksFirst) {
  constexpr int kValues = 2000;
  const auto x = [](int i) { return std::exp2(-20 + 0.014 * i); };
  const MaternInterpolant alone(1.3);
  const MaternInterpolant shared(1.3);
  std::vector<std::vector<double>> got(4, std::vector<double>(kValues));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < kValues; ++k) {
        const int i = t % 2 == 0 ? k : kValues - 1 - k;
        got[t][static_cast<std::size_t>(i)] = shared(x(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kValues; ++i) {
    for (const std::vector<double>& values : got)
      ASSERT_EQ(values[static_cast<std::size_t>(i)], alone(x(i))) << i;
  }
}

}  // namespace
}  // namespace strata
