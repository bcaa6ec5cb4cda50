// Factors in several precisions: against dense fp64 factors of LAPACK.

#include <gtest/gtest.h>

#include <cstdlib>

#include "cholesky/mixed_factor.hpp"
#include "tests/support/gaussian.hpp"

namespace strata {
namespace {

using test::Matrix;

TEST(MixedCholesky, Explore) {
  const char* sizes = std::getenv("MIXED_N");
  const std::int64_t n = sizes != nullptr ? std::atoll(sizes) : 1024;
  const std::int64_t tile = n / 16;
  for (const double range : {0.02627, 0.078809, 0.210158}) {
    const Matrix<double> points = test::ordered_points(n, tile, 5);
    const Matrix<double> l = test::dense_factor(test::exponential_covariance(points, range));
    for (const PrecisionRule rule : {PrecisionRule::paper, PrecisionRule::factor}) {
      for (const double accuracy : {1e-5, 1e-6, 1e-7, 1e-8}) {
        Options options;
        options.devices = std::getenv("MIXED_DEVICES") != nullptr ? std::getenv("MIXED_DEVICES") : "host";
        options.tile = tile;
        options.device_memory_bytes = std::int64_t{4} << 30;
        options.mixed.accuracy = accuracy;
        options.mixed.rule = rule;
        options.mixed.guard = false;
        MixedFactor factor(points.view(), options);
        const FactorInfo& info = factor.factor({1, range, 0.5, 0, true});
        if (!info.ok) { printf("NOT PD\n"); continue; }
        Matrix<double> m(n, n);
        factor.tiles().copy_lower(m.view());
        const auto e = test::factor_error(l, m);
        const MixedReport& r = factor.report();
        printf("%s %g eps %.0e tiles %ld/%ld/%ld/%ld/%ld products %.0f/%.0f/%.0f/%.0f/%.0f raised %ld "
               "retries %d acc %.1e pilot %.2fs run %.2fs KL %.1e dl %.1e /(.5 eps n) %.2g /(eps sum) %.2g\n",
               rule == PrecisionRule::paper ? "paper " : "factor", range, accuracy, r.tiles[0],
               r.tiles[1], r.tiles[2], r.tiles[3], r.tiles[4], r.products[0], r.products[1],
               r.products[2], r.products[3], r.products[4], r.raised_tiles, r.retries, r.accuracy,
               r.pilot_seconds, factor.tiles().report().seconds, e.kl, e.log_likelihood,
               e.log_likelihood / (0.5 * accuracy * static_cast<double>(n)),
               e.log_likelihood / (accuracy * e.inverse_pivots));
      }
    }
  }
}

TEST(MixedCholesky, ExploreX2) {
  const char* sizes = std::getenv("MIXED_N");
  const std::int64_t n = sizes != nullptr ? std::atoll(sizes) : 1024;
  const std::int64_t tile = n / 16;
  for (const double range : {0.02627, 0.078809, 0.210158}) {
    const Matrix<double> points = test::ordered_points(n, tile, 5);
    const Matrix<double> l = test::dense_factor(test::exponential_covariance(points, range));
    for (const PrecisionRule rule : {PrecisionRule::paper, PrecisionRule::factor}) {
      for (const double accuracy : {1e-5, 1e-8}) {
        Options options;
        options.devices = "host";
        options.tile = tile;
        options.device_memory_bytes = std::int64_t{4} << 30;
        options.mixed.accuracy = accuracy;
        options.mixed.rule = rule;
        auto devices = std::make_shared<DeviceSet>(options);
        CovarianceParameters parameters{1, range, 0.5, 0, true};
        const Pilot pilot = fly_pilot(points.view(), tile, tile, parameters, options, devices);
        CholeskyProblem problem;
        problem.n = n;
        problem.tile = tile;
        problem.point_dimensions = 2;
        problem.formats = {std::make_shared<const PrecisionMap>(pilot.norms, options.mixed), Element::fp16x2};
        TileFactor factor(problem, options, devices);
        const FactorInfo& info = factor.factor_covariance(points.data.data(), parameters);
        if (!info.ok) { printf("NOT PD\n"); continue; }
        Matrix<double> m(n, n);
        factor.copy_lower(m.view());
        const auto e = test::factor_error(l, m);
        printf("%s %g eps %.0e KL %.1e dl %.1e /(.5 eps n) %.2g /(eps sum) %.2g\n",
               rule == PrecisionRule::paper ? "paper " : "factor", range, accuracy, e.kl, e.log_likelihood,
               e.log_likelihood / (0.5 * accuracy * static_cast<double>(n)),
               e.log_likelihood / (accuracy * e.inverse_pivots));
      }
    }
  }
}

}  // namespace
}  // namespace strata
