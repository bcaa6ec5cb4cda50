// Mixed factors where the pilot misjudges, where formats overflow and where pivots are nearly
// nothing: what comes back is within the accuracy that the report names, or FP64, or says what
// is wrong. Each is compared with the dense covariance.

#include <gtest/gtest.h>

#include <string>

#include "cholesky/mixed_factor.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/mixed_factors.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/mixed_problem.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kSafetyTile = 160;  // of which the pilot takes 80 points, rows 1, 3, 5 …
constexpr double kUnseen = 32;             // what random vectors may not notice

CovarianceOptions safety_options_of(double accuracy, PrecisionRule rule = PrecisionRule::factor) {
  CovarianceOptions options;
  options.run.devices = "host";
  options.run.device_memory_bytes = std::int64_t{1} << 28;
  options.tile = kSafetyTile;
  options.mixed.accuracy = accuracy;
  options.mixed.rule = rule;
  return options;
}

/// Tiles far from each other in odd rows; of the even rows, a share lies in one place together, so
/// that points of far tiles are neighbours, of which a pilot that takes odd rows knows nothing.
Matrix<double> interleaved(std::int64_t n, double share) {
  return make_matrix<double>(n, 2, [=](auto i, auto c) {
    const double u = random_uniform(21, static_cast<std::uint64_t>(2 * i + c));
    const bool stray = i % 2 == 0 && random_uniform(22, static_cast<std::uint64_t>(i)) < share;
    if (c == 1) return u;
    return u + (stray ? -100.0 : 20 * static_cast<double>(i / kSafetyTile));
  });
}

TEST(MixedSafety, WhatThePilotDidNotSeeIsRaisedAndCounted) {
  Thinned thinned(5);
  for (const double share : {1.0, 0.1, 0.01}) {
    const Matrix<double> points = interleaved(6 * kSafetyTile, share);
    const Matrix<double> a = exponential_covariance(points, 0.3);
    for (const PrecisionRule rule : {PrecisionRule::factor, PrecisionRule::paper}) {
      for (const double accuracy : {1e-3, 1e-5, 1e-7}) {
        if (thinned.skips()) continue;
        SCOPED_TRACE(testing::Message() << share << " " << accuracy);
        MixedFactor factor(points.view(), safety_options_of(accuracy, rule));
        ASSERT_TRUE(factor.factor({1, 0.3, 0.5, 0, true}).ok);
        const MixedReport& report = factor.report();
        ASSERT_GT(report.accuracy, 0);
        EXPECT_LE(relative_residual(a, lower_of(factor.tiles())), kUnseen * report.accuracy);
        EXPECT_EQ(report.retries > 0, report.raised_tiles > 0);
        if (accuracy < 1e-4 && rule == PrecisionRule::factor) {
          EXPECT_GT(report.raised_tiles, 0);
          EXPECT_EQ(report.tiles[4], 0);
          EXPECT_NE(report.note.find("left out"), std::string::npos) << report.note;
        }
      }
    }
  }
}

// Where nothing is left out each tile is met, and no vector is needed to see how large it is.
TEST(MixedSafety, ATileThatIsKeptIsRaisedByItsNorm) {
  const Matrix<double> points = interleaved(6 * kSafetyTile, 0.1);
  const Matrix<double> a = exponential_covariance(points, 0.3);
  for (const double accuracy : {1e-3, 1e-5, 1e-7}) {
    CovarianceOptions options = safety_options_of(accuracy);
    options.mixed.keep_all = true;
    options.mixed.guard = false;
    MixedFactor factor(points.view(), options);
    ASSERT_TRUE(factor.factor({1, 0.3, 0.5, 0, true}).ok);
    EXPECT_EQ(factor.report().accuracy, accuracy);
    EXPECT_GE(factor.report().retries, 1);
    EXPECT_GE(factor.report().raised_tiles, 15) << "all of them";
    EXPECT_LE(relative_residual(a, lower_of(factor.tiles())), kTotal * accuracy);
  }
}

// The pilot takes all points of tiles of 32, so what it expects is right. Far tiles, which are kept
// in few bits, are larger because of what was rounded before them, and another factorization would
// find them as large.
TEST(MixedSafety, WhatIsLargerByRoundingAloneIsNotFactoredAgain) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  constexpr std::int64_t kTile = 32;
  const Matrix<double> points = ordered_points(40 * kTile, kTile, 5);
  const Matrix<double> a = exponential_covariance(points, 0.05);
  const TileNorms exact = exact_norms(a, dense_factor(a), kTile);
  for (const double accuracy : {1e-5, 1e-6}) {
    CovarianceOptions options = safety_options_of(accuracy);
    options.tile = kTile;
    MixedFactor factor(points.view(), options);
    ASSERT_TRUE(factor.factor({1, 0.05, 0.5, 0, true}).ok);
    const std::vector<TileNorm> met = factor.tiles().measured_norms();
    int larger = 0;
    for (std::size_t at = 0; at < met.size(); ++at)
      larger += std::sqrt(met[at].square) > 2 * exact.factor[at] ? 1 : 0;
    EXPECT_GT(larger, 20) << accuracy;
    EXPECT_EQ(factor.report().retries, 0) << accuracy;
    EXPECT_EQ(factor.report().raised_tiles, 0) << accuracy;
    EXPECT_EQ(factor.report().accuracy, accuracy);
    EXPECT_LE(relative_residual(a, lower_of(factor.tiles())), kTotal * accuracy);
  }
}

// One tile dense far away, in the middle of the others, and after them.
TEST(MixedSafety, ADenseTileFarAwayChangesNothing) {
  for (const std::int64_t which : {2, 5}) {
    Matrix<double> points = ordered_points(6 * kSafetyTile, kSafetyTile, 4);
    for (std::int64_t i = which * kSafetyTile; i < (which + 1) * kSafetyTile; ++i) {
      for (const int c : {0, 1}) points(i, c) = 1000 + 0.05 * points(i, c);
    }
    const Matrix<double> a = exponential_covariance(points, 0.1);
    for (const PrecisionRule rule : {PrecisionRule::factor, PrecisionRule::paper}) {
      MixedFactor factor(points.view(), safety_options_of(1e-6, rule));
      ASSERT_TRUE(factor.factor({1, 0.1, 0.5, 0, true}).ok);
      EXPECT_EQ(factor.report().accuracy, 1e-6);
      EXPECT_LE(relative_residual(a, lower_of(factor.tiles())), kTotal * 1e-6);
    }
  }
}

TEST(MixedSafety, OverflowsOfFewBitsShowInTheNormsThatWereMet) {
  for (const Element single : {Element::fp32, Element::fp16x2}) {
    MixedCase c(200, 16, 0.05, {.accuracy = 1e-5}, single);
    TileNorms norms = exact_norms(c.a, c.l, 16);
    const std::size_t at = norms.at(1, 0);
    ASSERT_GT(norms.largest[at], 0.1);
    norms.factor[at] = 1e-5;  // in fp8, with a scale for what is 2^12 times smaller
    for (double& largest : norms.largest) largest = std::min(largest, 0x1p-12);
    CovarianceOptions options = safety_options_of(0);
    options.tile = 16;
    c.set_map(norms, {.accuracy = 1e-5}, single);
    ASSERT_EQ(c.map().stored(1, 0), TilePrecision::fp8);
    const double fp8_max = std::ldexp(448, -c.map().fp8_exponent());
    const double fp16_max = std::ldexp(65504, -c.map().fp16_exponent());
    ASSERT_LT(fp16_max, 0.01);
    TileFactor factor(c.problem, options);
    (void)factor.factor_covariance(c.points.data.data(), c.parameters);
    const TileNorm met = factor.measured_norms()[at];
    EXPECT_TRUE(met.largest > fp8_max || !std::isfinite(met.square)) << met.largest;
    bool fp16 = false;
    for (std::int64_t j = 0; j < norms.tiles; ++j) {
      for (std::int64_t i = j + 1; i < norms.tiles; ++i) {
        const TileNorm one = factor.measured_norms()[norms.at(i, j)];
        const bool few = c.map().stored(i, j) == TilePrecision::fp16;
        fp16 = fp16 || (few && (one.largest > fp16_max || !std::isfinite(one.square)));
      }
    }
    EXPECT_TRUE(fp16) << "or binary16 was never too small";
  }
}

/// The factor is as near as the report says, or in FP64.
void expect_right(MixedFactor& factor, const FactorInfo& info, const Matrix<double>& a) {
  ASSERT_TRUE(info.ok);
  const MixedReport& report = factor.report();
  const double residual = relative_residual(a, lower_of(factor.tiles()));
  EXPECT_LE(residual, report.accuracy > 0 ? kTotal * report.accuracy : 1e-14)
      << report.accuracy << " " << report.note;
  EXPECT_EQ(report.accuracy > 0, factor.tiles().problem().formats.map != nullptr);
  if (report.accuracy != report.accuracy_asked) {
    EXPECT_NE(report.note, "");
  }
}

TEST(MixedSafety, SmoothFieldsAreFactoredMoreFinelyOrInFp64) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Matrix<double> points = ordered_points(5 * kSafetyTile, kSafetyTile, 12);
  int finer = 0;
  int in_fp64 = 0;
  for (const double smoothness : {1.5, 2.5}) {
    for (const double range : {0.1, 0.4}) {
      const Matrix<double> a = matern_covariance(points, range, smoothness);
      for (const bool guard : {true, false}) {
        SCOPED_TRACE(testing::Message() << smoothness << " " << range << " " << guard);
        CovarianceOptions options = safety_options_of(1e-5);
        options.mixed.guard = guard;
        MixedFactor factor(points.view(), options);
        const FactorInfo& info = factor.factor({1, range, smoothness, 0, true});
        expect_right(factor, info, a);
        const MixedReport& report = factor.report();
        if (guard) {
          EXPECT_LT(report.accuracy, 1e-5) << "not so coarse a one";
        }
        if (!guard && report.accuracy < 1e-5) {
          EXPECT_GT(report.retries, 0);
        }
        finer += report.accuracy > 0 && report.accuracy < 1e-5 ? 1 : 0;
        in_fp64 += report.accuracy == 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(finer, 1);
  EXPECT_GT(in_fp64, 0);
}

/// What FP64 says in the same tiles.
FactorInfo info_in_fp64(const Matrix<double>& points, const CovarianceParameters& parameters) {
  CholeskyProblem problem;
  problem.n = points.rows;
  problem.point_dimensions = 2;
  TileFactor factor(problem, safety_options_of(0));
  return factor.factor_covariance(points.data.data(), parameters);
}

TEST(MixedSafety, CoincidentPointsAreNotPositiveDefiniteAsFp64Says) {
  const CovarianceParameters parameters{1, 0.1, 0.5, 0, true};
  int failed = 0;
  Thinned thinned(5);
  // Known to the pilot (odd rows), unknown to it, in one tile, and across tiles.
  for (const auto& [one, other] : {std::pair<std::int64_t, std::int64_t>{0, 1},
                                   {1, 3},
                                   {4, 6},
                                   {0, 2},
                                   {2, 2 * kSafetyTile + 4},
                                   {5, 4 * kSafetyTile + 7}}) {
    Matrix<double> points = ordered_points(5 * kSafetyTile, kSafetyTile, 13);
    for (const int c : {0, 1}) points(other, c) = points(one, c);
    const FactorInfo expected = info_in_fp64(points, parameters);
    for (const PrecisionRule rule : {PrecisionRule::factor, PrecisionRule::paper}) {
      for (const bool guard : {true, false}) {
        if (thinned.skips()) continue;
        CovarianceOptions options = safety_options_of(1e-6, rule);
        options.mixed.guard = guard;
        MixedFactor factor(points.view(), options);
        const FactorInfo& info = factor.factor(parameters);
        failed += info.ok ? 0 : 1;
        EXPECT_EQ(info.ok, expected.ok) << one << " and " << other;
        EXPECT_EQ(info.first_bad_pivot, expected.first_bad_pivot);
        EXPECT_EQ(info.bad_pivot, expected.bad_pivot);
        if (info.ok) {  // FP64 met a pivot that rounding made positive
          expect_right(factor, info, exponential_covariance(points, 0.1));
          continue;
        }
        EXPECT_EQ(factor.report().accuracy, 0) << factor.report().note;
        Matrix<double> x(points.rows, 1);
        EXPECT_THROW((void)factor.tiles().sweep(Sweep::both, x.view()), Error);
      }
    }
  }
  EXPECT_GE(failed, kSanitized ? 1 : 8);
}

TEST(MixedSafety, AFactorAfterAnotherIsAsIfItWereTheFirst) {
  const Matrix<double> points = ordered_points(5 * kSafetyTile, kSafetyTile, 14);
  MixedFactor again(points.view(), safety_options_of(1e-6));
  for (const auto& [range, smoothness] :
       {std::pair{0.1, 0.5}, {0.02, 0.5}, {0.1, 2.5}, {0.02, 0.5}, {0.02, 0.5}}) {
    const CovarianceParameters parameters{1, range, smoothness, 0, true};
    MixedFactor fresh(points.view(), safety_options_of(1e-6));
    const double determinant = fresh.factor(parameters).log_determinant;
    EXPECT_EQ(again.factor(parameters).log_determinant, determinant);
    EXPECT_EQ(again.report().accuracy, fresh.report().accuracy);
    EXPECT_EQ(again.report().map, fresh.report().map);
    EXPECT_TRUE(same_bits(lower_of(again.tiles()).data, lower_of(fresh.tiles()).data));
  }
}

}  // namespace
}  // namespace strata::test
