#include "geostat/point_sets.hpp"

#include <algorithm>
#include <numeric>

namespace strata {

Points rows_of(const Points& points, std::span<const std::int64_t> rows) {
  Points out = points;
  for (const auto coordinate : kCoordinates) {
    const std::vector<double>& from = points.*coordinate;
    if (from.empty()) continue;
    std::vector<double>& to = out.*coordinate;
    to.clear();
    for (const std::int64_t row : rows) to.push_back(from[static_cast<std::size_t>(row)]);
  }
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
  for (const auto coordinate : kCoordinates) {
    std::vector<double>& to = points.*coordinate;
    to.insert(to.end(), (more.*coordinate).begin(), (more.*coordinate).end());
  }
}

std::vector<std::int64_t> first_rows(const Points& points) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(points.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto compare = [&points](std::int64_t a, std::int64_t b) {
    for (const auto coordinate : kCoordinates) {
      const std::vector<double>& values = points.*coordinate;
      if (values.empty()) continue;
      const double p = values[static_cast<std::size_t>(a)];
      const double q = values[static_cast<std::size_t>(b)];
      if (p != q) return p < q ? -1 : 1;
    }
    return 0;
  };
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const int sign = compare(a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  std::vector<std::int64_t> first(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const bool same = k > 0 && compare(order[k - 1], order[k]) == 0;
    first[static_cast<std::size_t>(order[k])] =
        same ? first[static_cast<std::size_t>(order[k - 1])] : order[k];
  }
  return first;
}

}  // namespace strata
