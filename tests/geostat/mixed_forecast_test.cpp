// What is decided before a factorization in several precisions: against what was measured on an
// H200 (docs/benchmarks.md, 2026-11-22 and 2026-11-23), and on two cores.

#include "cholesky/mixed_forecast.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "cholesky/mixed_factor.hpp"
#include "cholesky/planning.hpp"
#include "geostat/order_choice.hpp"
#include "geostat/point_order.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/gaussian.hpp"

namespace strata::test {
namespace {

/// A GPU with round figures.
DeviceModel gpu() { return Machine::emulated(1, std::int64_t{80} << 30).devices.front(); }

/// Norms of 102,400 random points with an exponential covariance, in tiles of 2048.
TileNorms norms_of(PointOrder order, double range) {
  constexpr std::int64_t kPoints = 102400;
  constexpr std::int64_t kTile = 2048;
  const Matrix<double> points = make_matrix<double>(kPoints, 2, [](auto i, auto c) {
    return random_uniform(5, static_cast<std::uint64_t>(2 * i + c));
  });
  const std::vector<std::int64_t> rows = order_points(points.view(), order, kTile);
  const Matrix<double> sorted = make_matrix<double>(
      kPoints, 2, [&](auto i, auto c) { return points(rows[static_cast<std::size_t>(i)], c); });
  return fly_scout(sorted.view(), kTile, {1, range, 0.5, 0, true}).norms;
}

MixedForecast forecast_of(const TileNorms& norms, double accuracy) {
  MixedPrecision asked;
  asked.accuracy = accuracy;
  return forecast(norms, asked, 102400, Element::fp16x2, gpu());
}

TEST(MixedForecast, FindsWhichOrderPassesItsProbe) {
  const TileNorms kd = norms_of(PointOrder::kd, 0.210158);
  const TileNorms coarse = norms_of(PointOrder::coarse, 0.210158);
  // Measured: 4.5 times the accuracy at 1e-6 (n = 40,960), at 1e-8 from 128 to 498, where 24 pass.
  EXPECT_TRUE(forecast_of(kd, 1e-6).passes);
  EXPECT_NEAR(forecast_of(kd, 1e-6).probe, 4.5, 2.25);
  EXPECT_FALSE(forecast_of(kd, 1e-8).passes);
  EXPECT_GT(forecast_of(kd, 1e-8).probe, 64);
  EXPECT_LT(forecast_of(kd, 1e-8).probe, 1000);
  // With a coarse tile first 0.3, and 37 at 1e-7 (n = 40,960).
  EXPECT_TRUE(forecast_of(coarse, 1e-8).passes);
  EXPECT_FALSE(forecast_of(coarse, 1e-7).passes);
  // In a third of FP64's seconds at most: 275 TFLOP/s were measured beside 53.
  EXPECT_TRUE(forecast_of(coarse, 1e-8).usable());
  EXPECT_LT(3 * forecast_of(coarse, 1e-8).seconds, forecast_of(coarse, 1e-8).fp64_seconds);
  // In the order kd a finer accuracy would pass, and take longer.
  MixedPrecision asked;
  asked.accuracy = 1e-8;
  const MixedForecast finer = best_forecast(kd, asked, 102400, Element::fp16x2, gpu());
  EXPECT_LT(finer.asked.accuracy, 1e-8);
  EXPECT_GT(finer.seconds, forecast_of(coarse, 1e-8).seconds);
}

// Where everything has to be in FP64, or so much that nothing is gained.
TEST(MixedForecast, KnowsWhereNothingIsGained) {
  TileNorms norms = norms_of(PointOrder::kd, 0.210158);
  MixedPrecision asked;
  asked.accuracy = 1e-12;
  const MixedForecast found = forecast(norms, asked, 102400, Element::fp16x2, gpu());
  EXPECT_FALSE(found.worth_having);
  EXPECT_FALSE(found.usable());
  norms.smallest_pivot = 1e-12;
  asked.accuracy = 1e-5;
  EXPECT_LT(bearable(norms, asked, 102400).accuracy, 1e-12 + 1e-18);
}

/// Points in the unit square, so many that it is decided for a GPU which order they get.
Points many_points() {
  constexpr std::int64_t kMany = 54000;
  Points points;
  for (std::int64_t i = 0; i < kMany; ++i) {
    points.x.push_back(random_uniform(6, static_cast<std::uint64_t>(2 * i)));
    points.y.push_back(random_uniform(6, static_cast<std::uint64_t>(2 * i + 1)));
  }
  return points;
}

TEST(OrderChoice, DoesNotFollowFromWhenTheDeviceAnswers) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Points points = many_points();
  const CovarianceParameters parameters{1, 0.1, 0.5, 0, true};
  MixedPrecision asked;
  asked.accuracy = 1e-7;
  // The tile that is tried meanwhile, another one, and a device for which nothing is decided.
  const std::int64_t tile =
      mixed_tile(points.size(), 2, Machine::emulated(1, std::int64_t{80} << 30));
  DeviceModel cpu = gpu();
  cpu.kind = DeviceKind::cpu;
  for (const DecidingDevice& device :
       {DecidingDevice{gpu(), tile}, DecidingDevice{gpu(), tile / 2}, DecidingDevice{cpu, tile}}) {
    std::promise<DecidingDevice> known;
    known.set_value(device);
    const OrderChoice at_once = choose_order(points, parameters, asked, known.get_future());
    const OrderChoice late = choose_order(
        points, parameters, asked, std::async(std::launch::deferred, [&] { return device; }));
    std::promise<DecidingDevice> waited_for;
    std::jthread answers([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // for longer than it is patient
      waited_for.set_value(device);
    });
    const OrderChoice later = choose_order(points, parameters, asked, waited_for.get_future());
    for (const OrderChoice* other : {&late, &later}) {
      EXPECT_EQ(other->order, at_once.order);
      EXPECT_EQ(other->rows, at_once.rows);
      ASSERT_NE(other->scout, nullptr);
      EXPECT_EQ(other->scout->norms.factor, at_once.scout->norms.factor);
      EXPECT_TRUE(other->scout->is_of(device.tile, parameters));
    }
    EXPECT_EQ(std::ssize(at_once.rows), points.size());
  }
}

TEST(OrderChoice, OfFewPointsNeedsNoScoutAndNamesWhatIsMissing) {
  Points few = many_points();
  few.x.resize(1000);
  few.y.resize(1000);
  MixedPrecision asked;
  asked.accuracy = 1e-7;
  std::promise<DecidingDevice> known;
  known.set_value({gpu(), 256});
  const OrderChoice choice = choose_order(few, {1, 0.1, 0.5, 0, true}, asked, known.get_future());
  EXPECT_EQ(choice.order, PointOrder::kd);
  EXPECT_TRUE(choice.rows.empty());
  EXPECT_EQ(choice.scout, nullptr);
  std::promise<DecidingDevice> broken;
  broken.set_exception(
      std::make_exception_ptr(Error(ErrorKind::device, "devices", "there is no such device")));
  EXPECT_THROW((void)choose_order(few, {}, asked, broken.get_future()), Error);
}

TEST(MixedFactor, TakesAScoutThatWasFlownForItsCovariance) {
  constexpr std::int64_t kOrder = 4600;  // of which it is worth deciding
  constexpr std::int64_t kTile = 512;
  const Matrix<double> points = ordered_points(kOrder, kTile, 3);
  const CovarianceParameters parameters{1, 0.02, 0.5, 0.1, true};
  CovarianceOptions options;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = std::int64_t{512} << 20;
  options.tile = kTile;
  options.mixed.accuracy = 1e-5;
  Scout told = fly_scout(points.view(), kTile, parameters);
  told.seconds = 4321;
  const auto seconds_with = [&](const Scout& scout) {
    MixedFactor factor(points.view(), options, std::make_shared<const Scout>(scout));
    EXPECT_TRUE(factor.factor(parameters).ok);
    return factor.report().pilot_seconds;
  };
  EXPECT_GE(seconds_with(told), 4321);
  Scout of_another = told;
  of_another.parameters.range = 0.03;
  EXPECT_LT(seconds_with(of_another), 4321);
  of_another = told;
  of_another.norms.tile = 256;
  EXPECT_LT(seconds_with(of_another), 4321);
}

TEST(MixedForecast, DecidesNothingWhereFp64IsShort) {
  EXPECT_FALSE(worth_deciding(4000, DeviceKind::cpu));
  EXPECT_TRUE(worth_deciding(5000, DeviceKind::cpu));
  EXPECT_FALSE(worth_deciding(50000, DeviceKind::gpu));
  EXPECT_TRUE(worth_deciding(60000, DeviceKind::gpu));
}

// Smooth points whose smallest pivots bear no rounding to fewer bits: FP64 at once, with no try.
TEST(MixedForecast, GoesToFp64AtOnce) {
  constexpr std::int64_t kPoints = 4500;
  const Matrix<double> points = ordered_points(kPoints, 500, 7);
  CovarianceOptions options;
  options.run.devices = "host";
  options.tile = 500;
  options.mixed.accuracy = 1e-6;
  MixedFactor factor(points.view(), options);
  ASSERT_TRUE(factor.factor({1, 0.3, 1.5, 1e-9, true}).ok);
  EXPECT_EQ(factor.report().accuracy, 0);
  EXPECT_EQ(factor.report().retries, 0);
  EXPECT_EQ(factor.report().raised_tiles, 0);
  EXPECT_NE(factor.report().note, "");
}

}  // namespace
}  // namespace strata::test
