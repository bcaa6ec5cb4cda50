// Method.
//
// Hilbert: coordinates become integers on a grid over a cube around the points, 2^31 along each of
// one or two axes and 2^21 of three, and points are sorted by the place of their cell on the curve.
// That place is found as in J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707,
// 2004: from the coarsest bit down, the reflections and exchanges of axes that the curve has made
// in the cells around are undone on all finer bits, after which the bits of the axes, read across,
// are a reflected Gray code of the place.
//
// kd: a box with several tiles is cut across the longer side of the bounding box of its points, so
// that whole tiles lie on both sides, half of them (rounded down) on the lower. This is a
// selection, O(n) for each of the log2(n/tile) levels. Points with an equal coordinate are told
// apart by their rows, so the sets are determined, and within a tile the rows increase.
//
// Max-min: farthest point insertion (T. F. Gonzalez, "Clustering to minimize the maximum
// intercluster distance", 1985; as an order of points for Gaussian processes J. Guinness,
// "Permutation and grouping methods for sharpening Gaussian process approximations", Technometrics
// 60, 2018). Every point keeps its squared distance to the nearest point selected. The points lie
// in small boxes, found as by kd, and each box knows its largest such distance: a new point that is
// as far from a box, or farther, changes nothing in it. Differences, squares and sums are monotone
// in floating point too, so the bound is safe and the result is that of the O(n·m) definition to
// the last tie. The distances shrink as points are selected, so that soon a new one meets few
// boxes: O(n log m) updates about, for points that fill their domain, beside m passes over the
// n/128 boxes.

#include "geostat/point_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr int kAxes = 3;
constexpr std::int64_t kBucket = 128;  // points of a box of max_min_points

/// A point with its row; coordinates that it has not are 0.
struct Place {
  std::array<double, kAxes> at{};
  std::int64_t row = 0;
};
using Places = std::span<Place>;

struct BoundingBox {
  std::array<double, kAxes> low{};
  std::array<double, kAxes> high{};
};

BoundingBox box_of(std::span<const Place> places) {
  BoundingBox box{places[0].at, places[0].at};
  for (const Place& place : places) {
    for (std::size_t a = 0; a < kAxes; ++a) {
      box.low[a] = std::min(box.low[a], place.at[a]);
      box.high[a] = std::max(box.high[a], place.at[a]);
    }
  }
  return box;
}

std::vector<Place> places_of(MatrixView<const double> points) {
  require(points.cols >= 1 && points.cols <= kAxes, ErrorKind::misuse, "point order",
          "points of {} coordinates, not 1 to 3", points.cols);
  std::vector<Place> places(static_cast<std::size_t>(points.rows));
  for (std::int64_t i = 0; i < points.rows; ++i) {
    Place& place = places[static_cast<std::size_t>(i)];
    place.row = i;
    for (std::int64_t a = 0; a < points.cols; ++a) {
      const double x = points(i, a);
      require(std::isfinite(x), ErrorKind::input, "point order", "coordinate {} of row {} is {}", a,
              i, x);
      place.at[static_cast<std::size_t>(a)] = x;
    }
  }
  return places;
}

std::vector<std::int64_t> rows_of_places(std::span<const Place> places) {
  std::vector<std::int64_t> rows;
  rows.reserve(places.size());
  for (const Place& place : places) rows.push_back(place.row);
  return rows;
}

// ---- kd

struct Below {
  std::size_t axis;
  bool operator()(const Place& a, const Place& b) const {
    return a.at[axis] < b.at[axis] || (a.at[axis] == b.at[axis] && a.row < b.row);
  }
};

void order_by_kd(Places places, std::int64_t tile) {
  const std::int64_t n = std::ssize(places);
  if (n <= tile) {
    std::sort(places.begin(), places.end(),
              [](const Place& a, const Place& b) { return a.row < b.row; });
    return;
  }
  const BoundingBox box = box_of(places);
  std::size_t longest = 0;
  for (std::size_t a = 1; a < kAxes; ++a) {
    if (box.high[a] - box.low[a] > box.high[longest] - box.low[longest]) longest = a;
  }
  const std::int64_t tiles = n / tile + (n % tile != 0 ? 1 : 0);
  const auto lower = static_cast<std::size_t>(tiles / 2 * tile);
  std::nth_element(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(lower),
                   places.end(), Below{longest});
  order_by_kd(places.first(lower), tile);
  order_by_kd(places.subspan(lower), tile);
}

// ---- Hilbert

using Cell = std::array<std::uint32_t, kAxes>;

/// The place of a cell on the curve through a cube of 2^bits cells along each of its first `axes`
/// axes.
std::uint64_t hilbert_key(Cell cell, int axes, int bits) {
  const auto d = static_cast<std::size_t>(axes);
  for (int level = bits - 1; level > 0; --level) {
    const std::uint32_t finer = (std::uint32_t{1} << level) - 1;
    for (std::size_t a = 0; a < d; ++a) {
      if ((cell[a] >> level & 1U) != 0) {
        cell[0] ^= finer;  // the curve ran the other way here
      } else {
        const std::uint32_t exchange = (cell[0] ^ cell[a]) & finer;
        cell[0] ^= exchange;
        cell[a] ^= exchange;
      }
    }
  }
  // The Gray code is undone, each bit with all before it.
  std::uint64_t key = 0;
  std::uint32_t last = 0;
  for (int level = bits - 1; level >= 0; --level) {
    for (std::size_t a = 0; a < d; ++a) {
      last ^= cell[a] >> level & 1U;
      key = key << 1 | last;
    }
  }
  return key;
}

std::vector<std::int64_t> order_by_hilbert(std::span<const Place> places, int axes) {
  struct Keyed {
    std::uint64_t key;
    std::int64_t row;
  };
  if (places.empty()) return {};
  const int bits = axes == 3 ? 21 : 31;
  const BoundingBox box = box_of(places);
  double side = 0;  // of half the size, so that it cannot overflow
  for (std::size_t a = 0; a < kAxes; ++a) side = std::max(side, box.high[a] / 2 - box.low[a] / 2);
  const double cells = std::ldexp(1.0, bits);
  std::vector<Keyed> keyed;
  keyed.reserve(places.size());
  for (const Place& place : places) {
    Cell cell{};
    for (std::size_t a = 0; a < kAxes && side > 0; ++a) {
      const double share = (place.at[a] / 2 - box.low[a] / 2) / side;
      cell[a] = static_cast<std::uint32_t>(std::min(share * cells, cells - 1));
    }
    keyed.push_back({hilbert_key(cell, axes, bits), place.row});
  }
  std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    return a.key < b.key || (a.key == b.key && a.row < b.row);
  });
  std::vector<std::int64_t> rows;
  rows.reserve(keyed.size());
  for (const Keyed& k : keyed) rows.push_back(k.row);
  return rows;
}

// ---- max-min

double squared_distance(const std::array<double, kAxes>& a, const std::array<double, kAxes>& b) {
  double sum = 0;
  for (std::size_t axis = 0; axis < kAxes; ++axis) sum += (a[axis] - b[axis]) * (a[axis] - b[axis]);
  return sum;
}

/// From a point to the nearest of a box; not more than to any point in it, rounding included.
double squared_distance(const std::array<double, kAxes>& a, const BoundingBox& box) {
  std::array<double, kAxes> nearest{};
  for (std::size_t axis = 0; axis < kAxes; ++axis)
    nearest[axis] = std::clamp(a[axis], box.low[axis], box.high[axis]);
  return squared_distance(a, nearest);
}

class MaxMin {
 public:
  explicit MaxMin(std::vector<Place> places) : places_(std::move(places)) {
    order_by_kd(places_, kBucket);
    distances_.assign(places_.size(), std::numeric_limits<double>::infinity());
    for (std::size_t first = 0; first < places_.size(); first += kBucket) {
      const std::size_t count = std::min(places_.size() - first, std::size_t{kBucket});
      buckets_.push_back({.box = box_of(std::span(places_).subspan(first, count)),
                          .first = first,
                          .count = count,
                          .farthest = first});  // of equals the lowest row
    }
  }

  std::vector<std::int64_t> select(std::int64_t count) {
    std::vector<std::int64_t> rows;
    if (count == 0) return rows;
    std::size_t next = middle();
    for (;;) {
      rows.push_back(places_[next].row);
      if (std::ssize(rows) == count) return rows;
      insert(next);
      next = farthest();
    }
  }

 private:
  struct Bucket {
    BoundingBox box;
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t farthest = 0;  ///< its point with the largest distance
    double distance = std::numeric_limits<double>::infinity();  ///< of that
  };

  [[nodiscard]] bool better(double distance, std::size_t i, double than, std::size_t j) const {
    return distance > than || (distance == than && places_[i].row < places_[j].row);
  }

  [[nodiscard]] std::size_t middle() const {
    const BoundingBox box = box_of(places_);
    std::array<double, kAxes> centre{};
    for (std::size_t a = 0; a < kAxes; ++a) centre[a] = box.low[a] / 2 + box.high[a] / 2;
    std::size_t best = 0;
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (better(-squared_distance(places_[i].at, centre), i,
                 -squared_distance(places_[best].at, centre), best))
        best = i;
    }
    return best;
  }

  void insert(std::size_t selected) {
    const std::array<double, kAxes> at = places_[selected].at;
    distances_[selected] = -1;  // below that of all others
    for (Bucket& bucket : buckets_) {
      const bool own = selected - bucket.first < bucket.count;
      if (!own && squared_distance(at, bucket.box) >= bucket.distance) continue;
      for (std::size_t i = bucket.first; i < bucket.first + bucket.count; ++i)
        distances_[i] = std::min(distances_[i], squared_distance(places_[i].at, at));
      std::size_t best = bucket.first;
      for (std::size_t i = bucket.first + 1; i < bucket.first + bucket.count; ++i) {
        if (better(distances_[i], i, distances_[best], best)) best = i;
      }
      bucket.farthest = best;
      bucket.distance = distances_[best];
    }
  }

  [[nodiscard]] std::size_t farthest() const {
    std::size_t best = 0;
    for (std::size_t b = 1; b < buckets_.size(); ++b) {
      if (better(buckets_[b].distance, buckets_[b].farthest, buckets_[best].distance,
                 buckets_[best].farthest))
        best = b;
    }
    return buckets_[best].farthest;
  }

  std::vector<Place> places_;
  std::vector<double> distances_;  ///< squared, to the nearest selected; −1: selected itself
  std::vector<Bucket> buckets_;
};

std::vector<std::int64_t> order_by_coarse(std::vector<Place> places, std::int64_t tile) {
  const std::int64_t count = std::min(tile, std::ssize(places));
  std::vector<std::int64_t> rows = MaxMin(places).select(count);
  std::vector<bool> taken(places.size());
  for (const std::int64_t row : rows) taken[static_cast<std::size_t>(row)] = true;
  std::erase_if(places, [&](const Place& p) { return taken[static_cast<std::size_t>(p.row)]; });
  order_by_kd(places, tile);
  for (const Place& place : places) rows.push_back(place.row);
  return rows;
}

constexpr std::array kOrders{PointOrder::none, PointOrder::hilbert, PointOrder::kd,
                             PointOrder::coarse};

}  // namespace

const char* to_string(PointOrder order) noexcept {
  switch (order) {
    case PointOrder::none: return "none";
    case PointOrder::hilbert: return "hilbert";
    case PointOrder::kd: return "kd";
    case PointOrder::coarse: return "coarse";
  }
  return "?";
}

PointOrder parse_point_order(const std::string& name) {
  for (const PointOrder order : kOrders) {
    if (name == to_string(order)) return order;
  }
  fail(ErrorKind::misuse, "point order", "'{}' is no order; there are none, hilbert, kd, coarse",
       name);
}

std::vector<std::int64_t> order_points(MatrixView<const double> points, PointOrder order,
                                       std::int64_t tile) {
  require(tile >= 1, ErrorKind::misuse, "point order", "a tile of {} points", tile);
  std::vector<Place> places = places_of(points);
  switch (order) {
    case PointOrder::none: break;
    case PointOrder::hilbert: return order_by_hilbert(places, static_cast<int>(points.cols));
    case PointOrder::kd: order_by_kd(places, tile); break;
    case PointOrder::coarse: return order_by_coarse(std::move(places), tile);
  }
  return rows_of_places(places);
}

std::vector<std::int64_t> max_min_points(MatrixView<const double> points, std::int64_t count) {
  require(count >= 0, ErrorKind::misuse, "point order", "{} points of the max-min order", count);
  std::vector<Place> places = places_of(points);
  return MaxMin(std::move(places)).select(std::min(count, points.rows));
}

}  // namespace strata
