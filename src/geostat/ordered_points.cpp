#include "geostat/ordered_points.hpp"

#include <algorithm>
#include <future>

#include "cholesky/mixed_forecast.hpp"
#include "cholesky/planning.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/order_choice.hpp"
#include "geostat/point_sets.hpp"

namespace strata {
namespace {

PointOrder order_of(const CovarianceOptions& options) {
  return options.order.value_or(options.mixed.on() ? PointOrder::kd : PointOrder::none);
}

/// Copies rows, by `row_of` the row that each comes from.
template <class F>
void permute(double* column, std::int64_t n, F&& row_of) {
  const std::vector<double> from(column, column + n);
  for (std::int64_t i = 0; i < n; ++i) column[i] = from[static_cast<std::size_t>(row_of(i))];
}

}  // namespace

OrderedPoints::OrderedPoints(const Points& points, const CovarianceOptions& options,
                             const MaternParameters* parameters)
    : points_(points) {
  order_ = order_of(options);
  const auto tile = [&] { return mixed_tile(points.size(), coordinate_count(points), options); };
  if (!options.order && options.mixed.on() && options.mixed.guard && parameters != nullptr) {
    OrderChoice choice = choose_order(points, covariance_of(*parameters), options.mixed,
                                      std::async(std::launch::async, [&]() -> DecidingDevice {
                                        return {deciding_device(options), tile()};
                                      }));
    order_ = choice.order;
    rows_ = std::move(choice.rows);
    scout_ = std::move(choice.scout);
  }
  if (order_ == PointOrder::none) return;
  if (rows_.empty()) rows_ = rows_in(order_, points, tile());
  points_ = rows_of(points, rows_);
}

CovarianceOptions OrderedPoints::options_of(CovarianceOptions options) const {
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
