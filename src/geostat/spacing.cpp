// Nearest neighbours by a k-d tree (Bentley, "Multidimensional binary search trees used for
// associative searching", Comm. ACM 18, 1975): a median along the widest side, in place.
//
// Near coincidence: a Matérn covariance falls by about (h/range)^(2·min(ν, 1)) over a short
// distance h, and that is what a pivot keeps of the second of two points. Where it is no more than
// some roundings of 1, what the factor says of the pair is rounding. Nothing is known of the range
// beforehand; extent/n is the spacing of points in a row, and no data have a typical one below it.

#include "geostat/spacing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "geostat/point_sets.hpp"
#include "geostat/units.hpp"

namespace strata {
namespace {

using Coordinates = std::array<double, 4>;

double width(const std::vector<double>& coordinate) {
  if (coordinate.empty()) return 0;
  const auto [low, high] = std::minmax_element(coordinate.begin(), coordinate.end());
  return *high - *low;
}

double square_between(const Coordinates& a, const Coordinates& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

/// Where points are in a space of Euclidean distances, the last coordinate being `by_time` times
/// the time.
std::vector<Coordinates> coordinates_of(const Points& points, Distance distance, double by_time) {
  std::vector<Coordinates> out;
  for (std::int64_t i = 0; i < points.size(); ++i) {
    Coordinates place = place_in_space(points, i, distance);
    place[3] *= by_time;
    out.push_back(place);
  }
  return out;
}

struct Neighbour {
  std::size_t at = 0;
  double square = std::numeric_limits<double>::infinity();  ///< of the distance
};

class KdTree {
 public:
  explicit KdTree(const std::vector<Coordinates>& places)
      : places_(places), order_(places.size()), axis_(places.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    split(0, order_.size());
  }

  /// The nearest place other than `i`.
  [[nodiscard]] Neighbour nearest(std::size_t i) const {
    Neighbour best;
    look(i, 0, order_.size(), best);
    return best;
  }

 private:
  [[nodiscard]] std::size_t widest(std::size_t begin, std::size_t end) const {
    Coordinates low = places_[order_[begin]];
    Coordinates high = low;
    for (std::size_t k = begin; k < end; ++k) {
      for (std::size_t a = 0; a < low.size(); ++a) {
        low[a] = std::min(low[a], places_[order_[k]][a]);
        high[a] = std::max(high[a], places_[order_[k]][a]);
      }
    }
    std::size_t out = 0;
    for (std::size_t a = 1; a < low.size(); ++a)
      if (high[a] - low[a] > high[out] - low[out]) out = a;
    return out;
  }

  void split(std::size_t begin, std::size_t end) {
    if (end - begin < 2) return;
    const std::size_t middle = begin + (end - begin) / 2;
    const std::size_t axis = widest(begin, end);
    const auto at = [this](std::size_t k) {
      return order_.begin() + static_cast<std::ptrdiff_t>(k);
    };
    std::nth_element(at(begin), at(middle), at(end), [&](std::size_t p, std::size_t q) {
      return places_[p][axis] != places_[q][axis] ? places_[p][axis] < places_[q][axis] : p < q;
    });
    axis_[middle] = axis;
    split(begin, middle);
    split(middle + 1, end);
  }

  void look(std::size_t i, std::size_t begin, std::size_t end, Neighbour& best) const {
    if (begin >= end) return;
    const std::size_t middle = begin + (end - begin) / 2;
    const std::size_t here = order_[middle];
    if (here != i) {
      const double square = square_between(places_[i], places_[here]);
      if (square < best.square) best = {here, square};
    }
    const std::size_t axis = axis_[middle];
    const double beyond = places_[i][axis] - places_[here][axis];
    const bool left = beyond < 0;
    look(i, left ? begin : middle + 1, left ? middle : end, best);
    if (beyond * beyond <= best.square)
      look(i, left ? middle + 1 : begin, left ? end : middle, best);
  }

  const std::vector<Coordinates>& places_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> axis_;  ///< of the split at each position
};

std::vector<Neighbour> nearest_neighbours(const std::vector<Coordinates>& places) {
  const KdTree tree(places);
  std::vector<Neighbour> out;
  for (std::size_t i = 0; i < places.size(); ++i) out.push_back(tree.nearest(i));
  return out;
}

}  // namespace

double extent_of(const Points& points, Distance distance) {
  const std::vector<Coordinates> places = coordinates_of(points, distance, 0);
  std::vector<double> coordinate(places.size());
  double square = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    std::transform(places.begin(), places.end(), coordinate.begin(),
                   [k](const Coordinates& place) { return place[k]; });
    const double side = width(coordinate);
    square += side * side;
  }
  return std::sqrt(square);
}

double time_extent_of(const Points& points) { return width(points.t); }

double closeness_of(const Points& points, Distance distance, double smoothness) {
  constexpr double kRoundings = 100 * std::numeric_limits<double>::epsilon();
  return std::pow(kRoundings, 0.5 / std::min(smoothness, 1.0)) * extent_of(points, distance) /
         static_cast<double>(points.size());
}

Spacing spacing_of(const Points& points, Distance distance) {
  const double close = closeness_of(points, distance, 1);
  std::vector<Coordinates> places = coordinates_of(points, distance, 0);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<double> distances;
  while (true) {
    const std::vector<Neighbour> neighbours = nearest_neighbours(places);
    std::vector<Coordinates> apart;
    distances.clear();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double away = std::sqrt(neighbours[i].square);
      if (away <= close && neighbours[i].at < i) continue;
      apart.push_back(places[i]);
      distances.push_back(away);
    }
    if (apart.size() == places.size()) break;
    places = std::move(apart);
  }
  const auto middle = distances.begin() + std::ssize(distances) / 2;
  std::nth_element(distances.begin(), middle, distances.end());
  return {*std::min_element(distances.begin(), distances.end()), *middle};
}

std::optional<ClosePoints> find_nearly_coincident_points(const Points& given, Distance distance,
                                                         double smoothness) {
  if (const auto pair = find_coincident_points(given, distance))
    return ClosePoints{pair->first, pair->second, 0};
  const Units units(given, distance);
  const Points points = units.of(given);
  const double close = closeness_of(points, distance, smoothness);
  // All times are as far apart as all places.
  const double time_extent = time_extent_of(points);
  const double by_time = time_extent > 0 ? extent_of(points, distance) / time_extent : 0;
  const std::vector<Neighbour> neighbours =
      nearest_neighbours(coordinates_of(points, distance, by_time));
  std::size_t best = 0;
  for (std::size_t i = 0; i < neighbours.size(); ++i)
    if (neighbours[i].square < neighbours[best].square) best = i;
  const double away = std::sqrt(neighbours[best].square);
  if (!(away <= close)) return std::nullopt;
  const auto [low, high] = std::minmax(best, neighbours[best].at);
  return ClosePoints{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high),
                     units.length(away)};
}

}  // namespace strata
