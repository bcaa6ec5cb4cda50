#include "geostat/order_choice.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cholesky/mixed_forecast.hpp"
#include "cholesky/planning.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/point_order.hpp"
#include "geostat/point_sets.hpp"

namespace strata {
namespace {

/// A device that takes longer to answer is a GPU that starts.
constexpr std::chrono::milliseconds kPatience{20};

OrderChoice tried(PointOrder order, const Points& points, std::int64_t tile,
                  const CovarianceParameters& parameters) {
  OrderChoice choice{order, rows_in(order, points, tile)};
  const std::vector<double> coordinates = coordinate_matrix(rows_of(points, choice.rows));
  choice.scout = std::make_shared<const Scout>(
      fly_scout(view_of(coordinates, points.size()), tile, parameters));
  return choice;
}

std::int64_t tile_of_gpus(const Points& points) {
  constexpr std::int64_t kMemory = std::int64_t{64} << 30;
  return mixed_tile(points.size(), coordinate_count(points), Machine::emulated(1, kMemory));
}

}  // namespace

std::vector<std::int64_t> rows_in(PointOrder order, const Points& points, std::int64_t tile) {
  const std::int64_t n = points.size();
  const std::vector<double> coordinates = coordinate_matrix(points);  // x, y, z, then times
  const std::int64_t in_space = points.z.empty() ? 2 : 3;
  return order_points({coordinates.data(), n, in_space, std::max<std::int64_t>(n, 1)}, order, tile);
}

OrderChoice choose_order(const Points& points, const CovarianceParameters& parameters,
                         const MixedPrecision& asked, std::future<DecidingDevice> device) {
  constexpr double kFastEnough = 0.2;  // then the other order has little to gain
  const std::int64_t n = points.size();
  OrderChoice best;
  if (worth_deciding(n, DeviceKind::gpu) &&
      device.wait_for(kPatience) == std::future_status::timeout)
    best = tried(PointOrder::kd, points, tile_of_gpus(points), parameters);
  const DecidingDevice decides = device.get();
  const auto& [model, tile] = decides;
  if (!worth_deciding(n, model.kind)) return {};
  if (!best.scout || !best.scout->is_of(tile, parameters))
    best = tried(PointOrder::kd, points, tile, parameters);
  const auto needed = [&](const OrderChoice& choice, double& fp64) {
    const MixedForecast found = forecast_order(*choice.scout, n, asked, decides.model);
    fp64 = found.fp64_seconds;
    return found.usable() ? found.seconds : found.fp64_seconds;
  };
  double fp64 = 0;
  const double by_boxes = needed(best, fp64);
  if (by_boxes < kFastEnough * fp64) return best;
  OrderChoice coarse = tried(PointOrder::coarse, points, tile, parameters);
  return needed(coarse, fp64) < by_boxes ? std::move(coarse) : std::move(best);
}

}  // namespace strata
