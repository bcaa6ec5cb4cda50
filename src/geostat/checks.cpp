// Checks of data and parameters. Coincident points make the covariance exactly singular, which a
// factorization in floating point may or may not notice, so they are looked for: sort by
// coordinates and compare neighbours, O(n log n).

#include "geostat/checks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"

namespace strata {
namespace {

void check_finite(std::span<const double> values, const char* what, const char* where) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(std::isfinite(values[i]), ErrorKind::input, where,
            "{}[{}] is {}, which is not a finite number (rows count from 0)", what, i, values[i]);
  }
}

void check_domain(bool inside, const char* name, double value, const char* domain,
                  const char* where) {
  require(inside && std::isfinite(value), ErrorKind::misuse, where, "{} is {}, but must be {}",
          name, value, domain);
}

}  // namespace

void check_points(const Points& points, const char* what, const char* where) {
  require(points.x.size() == points.y.size(), ErrorKind::misuse, where,
          "{}: {} x coordinates, but {} y coordinates", what, points.x.size(), points.y.size());
  require(!points.x.empty(), ErrorKind::misuse, where, "{}: 0 rows", what);
  check_finite(points.x, "x", where);
  check_finite(points.y, "y", where);
}

void check_values(const Points& points, std::span<const double> values, const char* where) {
  require(values.size() == points.x.size(), ErrorKind::misuse, where, "{} points, but {} values",
          points.x.size(), values.size());
  check_finite(values, "values", where);
}

void check_parameters(const MaternParameters& p, const char* where) {
  check_domain(p.variance > 0, "variance", p.variance, "positive and finite", where);
  check_domain(p.range > 0, "range", p.range, "positive and finite", where);
  check_domain(p.smoothness > 0 && p.smoothness <= 50, "smoothness", p.smoothness, "in (0, 50]",
               where);
  check_domain(p.nugget >= 0, "nugget", p.nugget, "at least 0 and finite", where);
}

std::optional<std::pair<std::int64_t, std::int64_t>> find_coincident_points(const Points& points) {
  std::vector<std::int64_t> rows(points.x.size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto at = [&points](std::int64_t row) {
    const auto i = static_cast<std::size_t>(row);
    return std::pair{points.x[i], points.y[i]};
  };
  std::sort(rows.begin(), rows.end(), [&at](std::int64_t a, std::int64_t b) {
    const auto p = at(a);
    const auto q = at(b);
    return p != q ? p < q : a < b;
  });
  std::optional<std::pair<std::int64_t, std::int64_t>> first;
  for (std::size_t k = 1; k < rows.size(); ++k) {
    const std::pair pair{rows[k - 1], rows[k]};  // equal points stand in row order
    if (at(pair.first) == at(pair.second) && (!first || pair < *first)) first = pair;
  }
  return first;
}

void check_distinct(const Points& points, const char* where) {
  const auto pair = find_coincident_points(points);
  if (!pair) return;
  const auto i = static_cast<std::size_t>(pair->first);
  fail(ErrorKind::numerical, where,
       "rows {} and {} (counting from 0) are the same point ({}, {}), which needs a nugget above 0",
       pair->first, pair->second, points.x[i], points.y[i]);
}

}  // namespace strata
