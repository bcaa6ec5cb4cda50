#include "geostat/ordered_points.hpp"

#include <algorithm>

#include "cholesky/planning.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/point_order.hpp"
#include "geostat/point_sets.hpp"

namespace strata {
namespace {

PointOrder order_of(const Options& options) {
  return options.order.value_or(options.mixed.on() ? PointOrder::kd : PointOrder::none);
}

/// Copies rows, by `row_of` the row that each comes from.
template <class F>
void permute(double* column, std::int64_t n, F&& row_of) {
  const std::vector<double> from(column, column + n);
  for (std::int64_t i = 0; i < n; ++i) column[i] = from[static_cast<std::size_t>(row_of(i))];
}

}  // namespace

OrderedPoints::OrderedPoints(const Points& points, const Options& options) : points_(points) {
  const PointOrder order = order_of(options);
  if (order == PointOrder::none) return;
  const std::int64_t n = points.size();
  const std::vector<double> coordinates = coordinate_matrix(points);  // x, y, z, then times
  const std::int64_t in_space = points.z.empty() ? 2 : 3;
  rows_ = order_points({coordinates.data(), n, in_space, std::max<std::int64_t>(n, 1)}, order,
                       mixed_tile(n, coordinate_count(points), options));
  points_ = rows_of(points, rows_);
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
