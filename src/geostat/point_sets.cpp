#include "geostat/point_sets.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/constants.hpp"

namespace strata {

Points rows_of(const Points& points, std::span<const std::int64_t> rows) {
  Points out;
  const auto take = [rows](const std::vector<double>& from, std::vector<double>& to) {
    if (from.empty()) return;
    for (const std::int64_t row : rows) to.push_back(from[static_cast<std::size_t>(row)]);
  };
  for (const auto coordinate : kCoordinates) take(points.*coordinate, out.*coordinate);
  for (const std::vector<double>& from : points.covariates)
    take(from, out.covariates.emplace_back());
  return out;
}

Points rows_of(const Points& points, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows_of(points, rows);
}

void append(Points& points, const Points& more) {
  if (points.size() == 0) {
    points = more;
    return;
  }
  const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto coordinate : kCoordinates) add(points.*coordinate, more.*coordinate);
  for (std::size_t k = 0; k < points.covariates.size(); ++k)
    add(points.covariates[k], more.covariates[k]);
}

std::array<double, 4> place_of(const Points& points, std::int64_t row, Distance distance) {
  const auto i = static_cast<std::size_t>(row);
  std::array<double, 4> place{};
  for (std::size_t k = 0; k < kCoordinates.size(); ++k) {
    const std::vector<double>& values = points.*kCoordinates[k];
    if (!values.empty()) place[k] = values[i];
  }
  if (distance == Distance::great_circle) {
    if (place[0] >= 180) place[0] -= 360;
    if (std::fabs(place[1]) == 90) place[0] = 0;
  }
  return place;
}

std::array<double, 4> place_in_space(const Points& points, std::int64_t row, Distance distance) {
  const std::array<double, 4> place = place_of(points, row, distance);
  if (distance != Distance::great_circle) return place;
  const double longitude = place[0] * kPi / 180;
  const double latitude = place[1] * kPi / 180;
  return {kEarthRadiusKm * std::cos(latitude) * std::cos(longitude),
          kEarthRadiusKm * std::cos(latitude) * std::sin(longitude),
          kEarthRadiusKm * std::sin(latitude), place[3]};
}

std::vector<std::int64_t> first_rows(const Points& points, Distance distance) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(points.size()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto p = place_of(points, a, distance);
    const auto q = place_of(points, b, distance);
    return p != q ? p < q : a < b;
  });
  std::vector<std::int64_t> first(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const bool same =
        k > 0 && place_of(points, order[k - 1], distance) == place_of(points, order[k], distance);
    first[static_cast<std::size_t>(order[k])] =
        same ? first[static_cast<std::size_t>(order[k - 1])] : order[k];
  }
  return first;
}

}  // namespace strata
