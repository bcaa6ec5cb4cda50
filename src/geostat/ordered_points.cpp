#include "geostat/ordered_points.hpp"

#include <algorithm>

#include "cholesky/mixed_forecast.hpp"
#include "cholesky/planning.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/point_order.hpp"
#include "geostat/point_sets.hpp"

namespace strata {
namespace {

PointOrder order_of(const Options& options) {
  return options.order.value_or(options.mixed.on() ? PointOrder::kd : PointOrder::none);
}

/// Which point comes k-th.
std::vector<std::int64_t> rows_in(PointOrder order, const Points& points, std::int64_t tile) {
  const std::int64_t n = points.size();
  const std::vector<double> coordinates = coordinate_matrix(points);  // x, y, z, then times
  const std::int64_t in_space = points.z.empty() ? 2 : 3;
  return order_points({coordinates.data(), n, in_space, std::max<std::int64_t>(n, 1)}, order, tile);
}

/// Copies rows, by `row_of` the row that each comes from.
template <class F>
void permute(double* column, std::int64_t n, F&& row_of) {
  const std::vector<double> from(column, column + n);
  for (std::int64_t i = 0; i < n; ++i) column[i] = from[static_cast<std::size_t>(row_of(i))];
}

}  // namespace

OrderedPoints::OrderedPoints(const Points& points, const Options& options,
                             const MaternParameters* parameters)
    : points_(points) {
  order_ = order_of(options);
  if (!options.order && options.mixed.on() && options.mixed.guard && parameters != nullptr)
    order_ = chosen(options, *parameters);
  if (order_ == PointOrder::none) return;
  rows_ = rows_in(order_, points, mixed_tile(points.size(), coordinate_count(points), options));
  points_ = rows_of(points, rows_);
}

/// kd, unless a coarse tile first is predicted to be faster. (With it what far tiles share is in
/// few columns, which makes the others small; for weak correlation these columns are all that it
/// adds.)
PointOrder OrderedPoints::chosen(const Options& options, const MaternParameters& parameters) {
  const std::int64_t n = points_.size();
  const std::int64_t tile = mixed_tile(n, coordinate_count(points_), options);
  const DeviceModel device = deciding_device(options);
  if (!worth_deciding(n, device.kind)) return PointOrder::kd;
  constexpr double kFastEnough = 0.2;  // then the other order has little to gain
  PointOrder best = PointOrder::kd;
  double seconds = 0;
  for (const PointOrder order : {PointOrder::kd, PointOrder::coarse}) {
    const std::vector<double> coordinates =
        coordinate_matrix(rows_of(points_, rows_in(order, points_, tile)));
    const MixedForecast found = forecast_order(view_of(coordinates, n), tile,
                                               covariance_of(parameters), options.mixed, device);
    const double needed = found.usable() ? found.seconds : found.fp64_seconds;
    if (order == PointOrder::kd && needed < kFastEnough * found.fp64_seconds) break;
    if (order != PointOrder::kd && !(needed < seconds)) continue;
    best = order;
    seconds = needed;
  }
  return best;
}

Options OrderedPoints::options_of(Options options) const {
  if (options.mixed.on()) options.order = order_;
  return options;
}

std::vector<double> OrderedPoints::ordered(std::span<const double> values) const {
  std::vector<double> out(values.begin(), values.end());
  if (!rows_.empty()) {
    permute(out.data(), std::ssize(values),
            [this](std::int64_t k) { return rows_[static_cast<std::size_t>(k)]; });
  }
  return out;
}

void OrderedPoints::restore(MatrixView<double> rows) const {
  if (rows_.empty()) return;
  std::vector<std::int64_t> place(rows_.size());
  for (std::size_t k = 0; k < rows_.size(); ++k)
    place[static_cast<std::size_t>(rows_[k])] = static_cast<std::int64_t>(k);
  for (std::int64_t j = 0; j < rows.cols; ++j) {
    permute(rows.column(j), rows.rows,
            [&](std::int64_t i) { return place[static_cast<std::size_t>(i)]; });
  }
}

}  // namespace strata
