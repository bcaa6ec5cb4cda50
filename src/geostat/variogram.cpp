// Method: points are put in the order of a Hilbert curve, and blocks of them compared, those that
// are farther apart than the cutoff by their bounding boxes left out. Distances, squares and roots
// of differences of a point and a block are formed in loops that compilers vectorize, and then
// added to their classes. Each block has sums of its own, which are added in the order of blocks:
// so bits do not depend on threads. On the sphere distances are those along the chord of unit
// vectors, made angles; beyond 90 degrees, where a chord says little, by great_circle_distance().

#include "strata/variogram.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "base/work_crew.hpp"
#include "device/device_host.hpp"
#include "geostat/checks.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/mean_basis.hpp"
#include "geostat/point_order.hpp"
#include "geostat/point_sets.hpp"
#include "geostat/regression.hpp"
#include "geostat/spacing.hpp"
#include "geostat/units.hpp"
#include "kernels/covariance/bessel_k.hpp"
#include "kernels/covariance/covariance_lag.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "variogram";
constexpr std::int64_t kBlock = 256;  ///< points
constexpr std::int64_t kClassesMax = 100'000;
constexpr double kDegree = kPi / 180;
/// What is on a border but for rounding of coordinates, relatively, is on it.
constexpr double kOnBorder = 1e-9;
constexpr double kRounding = 0x1p-49;  ///< of products of a few coordinates, relatively

void check_options(const Points& points, const VariogramOptions& o) {
  const auto is_length = [](double x) { return std::isfinite(x) && x >= 0; };
  require(is_length(o.cutoff) && is_length(o.width) && is_length(o.time_width), ErrorKind::misuse,
          kWhere, "a cutoff of {}, classes of {} and {} in time: lengths are finite, 0 or more",
          o.cutoff, o.width, o.time_width);
  require(o.lags >= 1, ErrorKind::misuse, kWhere, "lags is {}, but must be at least 1", o.lags);
  require(o.time_lags >= 0 && o.time_lags <= kClassesMax, ErrorKind::misuse, kWhere,
          "time_lags is {}, but must be at least 0 and at most {}", o.time_lags, kClassesMax);
  require(o.tolerance > 0 && o.tolerance <= 90, ErrorKind::misuse, kWhere,
          "a tolerance of {} degrees: above 0, up to 90", o.tolerance);
  for (const double direction : o.directions)
    require(std::isfinite(direction), ErrorKind::misuse, kWhere, "a direction of {} degrees",
            direction);
  require(o.directions.empty() || o.distance == Distance::euclidean, ErrorKind::misuse, kWhere,
          "directions are those of a plane: there are none with great-circle distance");
  require(points.t.empty() || o.time_width > 0, ErrorKind::misuse, kWhere,
          "the points have times: how wide are classes of lags in time?");
  require(!points.t.empty() || (o.time_width == 0 && o.time_lags == 0), ErrorKind::misuse, kWhere,
          "classes of lags in time, for points without times");
}

/// Values less their mean by ordinary least squares, times 2^−exponent; or values themselves where
/// the mean is one number, which differences do not know.
struct Residuals {
  std::vector<double> values;
  int exponent = 0;
  std::vector<double> coefficients;  ///< in units of the data
  double mean_square = 0;            ///< of values less their mean, in these units
};

Residuals residuals_of(const Points& points, std::span<const double> values, Mean mean,
                       Distance distance) {
  constexpr int kFar = 200;
  Residuals out;
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  if (std::abs(exponent) > kFar) out.exponent = exponent;
  std::vector<double> z(values.begin(), values.end());
  for (double& value : z) value = std::scalbn(value, -out.exponent);
  const double shift = mean == Mean::zero ? 0 : sample_mean(z);
  const MeanBasis basis(mean, points, distance);
  const std::int64_t n = points.size();
  const std::int64_t p = basis.columns();
  std::vector<double> data(at(n * (p + 1)));
  const MatrixView<double> w{data.data(), n, p + 1, n};
  basis.fill(points, w);
  for (std::int64_t i = 0; i < n; ++i) w.column(p)[i] = z[at(i)] - shift;
  if (p > 0) {
    Regression regression = regress(w, kWhere);
    regression.coefficients[0] += shift;
    out.coefficients = basis.in_original_units(regression.coefficients);
  } else if (mean == Mean::sample) {
    out.coefficients = {shift};
  }
  for (double& c : out.coefficients) c = std::scalbn(c, out.exponent);
  out.values.assign(w.column(p), w.column(p) + n);
  const double root = root_mean_square(out.values);
  out.mean_square = root * root;
  if (p <= 1) out.values = std::move(z);
  return out;
}

/// Coordinates in which distances are Euclidean, column by column: those that are given, in units
/// in which squares stay in range, or on the sphere those of vectors whose length is its radius.
struct Places {
  std::int64_t n = 0;
  std::int64_t dimensions = 2;
  std::vector<double> coordinates;
  std::vector<double> longitude, latitude;  ///< on the sphere
  std::vector<double> time;

  [[nodiscard]] const double* column(std::int64_t k) const { return coordinates.data() + k * n; }
  [[nodiscard]] bool on_sphere() const { return !longitude.empty(); }
  /// From a distance between such coordinates.
  [[nodiscard]] double distance(double chord, std::int64_t i, std::int64_t j) const {
    if (!on_sphere()) return chord;
    constexpr double kQuarter = 1.4 * kEarthRadiusKm;  // a chord of some 90 degrees
    if (chord < kQuarter) return 2 * kEarthRadiusKm * std::asin(chord / (2 * kEarthRadiusKm));
    return great_circle_distance(longitude[at(i)], latitude[at(i)], longitude[at(j)],
                                 latitude[at(j)]);
  }
};

Places places_of(const Points& points, Distance distance) {
  Places out;
  out.n = points.size();
  out.time = points.t;
  const bool on_sphere = distance == Distance::great_circle;
  out.dimensions = on_sphere || !points.z.empty() ? 3 : 2;
  out.coordinates.resize(at(out.dimensions * out.n));
  for (std::int64_t i = 0; i < out.n; ++i) {
    const std::array<double, 4> place = place_in_space(points, i, distance);
    for (std::int64_t k = 0; k < out.dimensions; ++k)
      out.coordinates[at(i + k * out.n)] = place[at(k)];
  }
  if (on_sphere) {
    out.longitude = points.x;
    out.latitude = points.y;
  }
  return out;
}

/// The same in another order.
Places ordered(const Places& places, std::span<const std::int64_t> order) {
  Places out = places;
  const auto permute = [&](std::span<const double> from, std::span<double> to) {
    for (std::size_t i = 0; i < order.size() && !from.empty(); ++i) to[i] = from[at(order[i])];
  };
  for (std::int64_t k = 0; k < places.dimensions; ++k)
    permute({places.column(k), at(places.n)}, {out.coordinates.data() + k * out.n, at(out.n)});
  permute(places.longitude, out.longitude);
  permute(places.latitude, out.latitude);
  permute(places.time, out.time);
  return out;
}

/// Which class a pair is in, as numbers: a class of lags has number 0 for pairs at one place.
struct Classes {
  double cutoff = 0;
  double width = 0;
  std::int64_t lags = 0;
  std::int64_t times = 1;
  double time_width = 0;
  std::vector<std::array<double, 2>> directions;  ///< unit vectors
  double least_cosine = 0;                        ///< squared

  [[nodiscard]] std::int64_t count() const {
    return std::max<std::int64_t>(std::ssize(directions), 1) * times * (lags + 1);
  }
  /// Ascending intervals (k − 1)·step < x <= k·step; 0 is alone.
  [[nodiscard]] static std::int64_t interval(double x, double step) {
    if (!(x > 0)) return 0;
    constexpr double kMany = 1e15;  // beyond any class
    return static_cast<std::int64_t>(std::clamp(std::ceil(x / step * (1 - kOnBorder)), 1.0, kMany));
  }
};

/// For points whose bounding box has this diagonal.
Classes classes_of(const Places& places, double extent, const VariogramOptions& o) {
  Classes c;
  constexpr double kShare = 3;
  c.cutoff = o.cutoff > 0 ? o.cutoff : extent / kShare;
  if (places.on_sphere()) c.cutoff = std::min(c.cutoff, kEarthRadiusKm * 180 * kDegree);
  c.width = o.width > 0 ? o.width : c.cutoff / static_cast<double>(o.lags);
  constexpr double kMost = 1e6;
  const double lags = c.width > 0 ? std::ceil(c.cutoff / c.width * (1 - 1e-12)) : 1;
  require(lags <= kMost, ErrorKind::misuse, kWhere, "classes of {} up to {} are {}: {} at most",
          c.width, c.cutoff, lags, kClassesMax);
  c.lags = std::max<std::int64_t>(static_cast<std::int64_t>(lags), 1);
  if (!(c.width > 0)) c.width = 1;  // all points are at one place
  if (!places.time.empty()) {
    c.times = 1 + o.time_lags;
    c.time_width = o.time_width;
  }
  for (const double degrees : o.directions)
    c.directions.push_back({std::cos(degrees * kDegree), std::sin(degrees * kDegree)});
  const double cosine = std::cos(std::min(o.tolerance * (1 + kOnBorder), 90.0) * kDegree);
  c.least_cosine = o.tolerance < 90 ? cosine * cosine * (1 - kRounding) : 0;
  require(c.count() <= kClassesMax, ErrorKind::misuse, kWhere, "{} classes: {} at most", c.count(),
          kClassesMax);
  return c;
}

struct Sums {
  std::int64_t pairs = 0;
  long double distance = 0, time = 0, square = 0, root = 0;

  void add(const Sums& other) {
    pairs += other.pairs;
    distance += other.distance;
    time += other.time;
    square += other.square;
    root += other.root;
  }
};

/// Point i beside points first … end − 1 of the same places: distances between coordinates, squares
/// of differences of residuals, and their roots.
struct Differences {
  std::array<double, kBlock> chord, square, root;

  void set(const Places& places, const double* r, std::int64_t i, std::int64_t first,
           std::int64_t end) {
    const auto count = end - first;
    const double* x = places.column(0);
    const double* y = places.column(1);
    const double xi = x[i];
    const double yi = y[i];
    const double ri = r[i];
    for (std::int64_t k = 0; k < count; ++k) {
      const double dx = x[first + k] - xi;
      const double dy = y[first + k] - yi;
      chord[at(k)] = dx * dx + dy * dy;
    }
    if (places.dimensions > 2) {
      const double* z = places.column(2);
      const double zi = z[i];
      for (std::int64_t k = 0; k < count; ++k) {
        const double dz = z[first + k] - zi;
        chord[at(k)] += dz * dz;
      }
    }
    for (std::int64_t k = 0; k < count; ++k) {
      const double difference = std::abs(r[first + k] - ri);
      chord[at(k)] = std::sqrt(chord[at(k)]);
      square[at(k)] = difference * difference;
      root[at(k)] = std::sqrt(difference);
    }
  }
};

/// Calls visit(i, j, distance, lag in time, square, root) for the pairs i < j of two blocks, the
/// first of which may be the second, that are no farther apart than the classes reach.
template <class Visit>
void for_pairs(const Places& places, const double* residuals, const Classes& classes,
               std::array<std::int64_t, 2> block, const Visit& visit) {
  Differences differences;
  const std::int64_t first = block[1] * kBlock;
  const std::int64_t end = std::min(places.n, first + kBlock);
  // A chord is no longer than its arc.
  const double farthest = classes.cutoff * (1 + kOnBorder);
  for (std::int64_t i = block[0] * kBlock; i < std::min(places.n, (block[0] + 1) * kBlock); ++i) {
    const std::int64_t from = block[0] == block[1] ? i + 1 : first;
    if (from >= end) continue;
    differences.set(places, residuals, i, from, end);
    for (std::int64_t j = from; j < end; ++j) {
      const std::size_t k = at(j - from);
      if (differences.chord[k] > farthest) continue;
      const double distance = places.distance(differences.chord[k], i, j);
      if (distance > farthest) continue;
      double lag = 0;
      if (!places.time.empty()) {
        lag = std::abs(places.time[at(j)] - places.time[at(i)]);
        if (Classes::interval(lag, classes.time_width) >= classes.times) continue;
      }
      visit(i, j, distance, lag, differences.square[k], differences.root[k]);
    }
  }
}

/// Boxes around the blocks.
class Boxes {
 public:
  explicit Boxes(const Places& places)
      : dimensions_(places.dimensions),
        low_(at(dimensions_ * count(places))),
        high_(at(dimensions_ * count(places))) {
    for (std::int64_t b = 0; b < count(places); ++b) {
      for (std::int64_t k = 0; k < dimensions_; ++k) {
        const double* begin = places.column(k) + b * kBlock;
        const double* end = places.column(k) + std::min(places.n, (b + 1) * kBlock);
        low_[at(b * dimensions_ + k)] = *std::min_element(begin, end);
        high_[at(b * dimensions_ + k)] = *std::max_element(begin, end);
      }
    }
  }
  [[nodiscard]] static std::int64_t count(const Places& places) {
    return (places.n + kBlock - 1) / kBlock;
  }
  /// No points of these two blocks are nearer to each other.
  [[nodiscard]] double distance(std::int64_t a, std::int64_t b) const {
    double square = 0;
    for (std::int64_t k = 0; k < dimensions_; ++k) {
      const std::size_t p = at(a * dimensions_ + k);
      const std::size_t q = at(b * dimensions_ + k);
      const double gap = std::max({low_[p] - high_[q], low_[q] - high_[p], 0.0});
      square += gap * gap;
    }
    return std::sqrt(square);
  }

 private:
  std::int64_t dimensions_;
  std::vector<double> low_, high_;
};

/// The classes of a pair among all directions.
template <class Each>
void for_directions(const Classes& classes, double dx, double dy, const Each& each) {
  if (classes.directions.empty()) return each(0);
  const double square = dx * dx + dy * dy;
  for (std::int64_t d = 0; d < std::ssize(classes.directions); ++d) {
    const auto& [x, y] = classes.directions[at(d)];
    const double along = dx * x + dy * y;
    // Pairs one above the other, or at one place, have no direction, and are in all.
    if (along * along >= classes.least_cosine * square) each(d);
  }
}

/// What the blocks from block `a` on add to each class.
std::vector<Sums> sums_of_row(const Places& places, const double* residuals, const Classes& classes,
                              const Boxes& boxes, std::int64_t a) {
  struct Partial {
    std::int64_t pairs = 0;
    double distance = 0, time = 0, square = 0, root = 0;
  };
  std::vector<Sums> sums(at(classes.count()));
  std::vector<Partial> partial(sums.size());
  for (std::int64_t b = a; b < Boxes::count(places); ++b) {
    if (boxes.distance(a, b) > classes.cutoff * (1 + 2 * kOnBorder)) continue;
    std::ranges::fill(partial, Partial());
    for_pairs(places, residuals, classes, {a, b},
              [&](std::int64_t i, std::int64_t j, double distance, double lag, double square,
                  double root) {
                const std::int64_t time =
                    places.time.empty() ? 0 : Classes::interval(lag, classes.time_width);
                const std::int64_t number =
                    time * (classes.lags + 1) +
                    std::min(Classes::interval(distance, classes.width), classes.lags);
                const auto add = [&](std::int64_t direction) {
                  Partial& to =
                      partial[at(direction * classes.times * (classes.lags + 1) + number)];
                  ++to.pairs;
                  to.distance += distance;
                  to.time += lag;
                  to.square += square;
                  to.root += root;
                };
                const double* x = places.column(0);
                const double* y = places.column(1);
                for_directions(classes, x[j] - x[i], y[j] - y[i], add);
              });
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const Partial& p = partial[k];
      if (p.pairs > 0) sums[k].add({p.pairs, p.distance, p.time, p.square, p.root});
    }
  }
  return sums;
}

/// The sums of all pairs; threads share rows of blocks, some at a time, which are added in order.
std::vector<Sums> sums_of(const Places& places, const double* residuals, const Classes& classes,
                          const ProgressCallback& progress) {
  const Boxes boxes(places);
  const std::int64_t blocks = Boxes::count(places);
  std::vector<Sums> sums(at(classes.count()));
  WorkCrew crew(describe_host().compute_queues - 1);
  const std::int64_t together = 4 * (crew.helpers() + 1);
  const auto start = std::chrono::steady_clock::now();
  const double all = 0.5 * static_cast<double>(blocks) * static_cast<double>(blocks + 1);
  for (std::int64_t first = 0; first < blocks; first += together) {
    const std::int64_t count = std::min(together, blocks - first);
    std::vector<std::vector<Sums>> rows(at(count));
    crew.share(count, [&](std::int64_t k) {
      rows[at(k)] = sums_of_row(places, residuals, classes, boxes, first + k);
    });
    for (const std::vector<Sums>& row : rows)
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k].add(row[k]);
    const auto left = static_cast<double>(blocks - first - count);
    require(
        !progress || progress({all - 0.5 * left * (left + 1), all, seconds_since(start), kWhere}),
        ErrorKind::cancelled, kWhere, "cancelled");
  }
  return sums;
}

/// Checked data as pairs of them are formed.
struct Prepared {
  Residuals residuals;
  int length = 0;  ///< lengths are in units of 2^length
  Places places;
  Classes classes;

  [[nodiscard]] double in_given_length(double x) const { return std::scalbn(x, length); }
  /// From half of a mean square of residuals, or what is like one. `differ`: it is that of
  /// residuals that are not equal, so if it is next to nothing squares have been lost.
  [[nodiscard]] double semivariance(long double half_square, bool differ) const {
    constexpr long double kLost = 0x1p-1015L;  // a square is off by 2^-1075 at most
    const double out = std::scalbn(static_cast<double>(half_square), 2 * residuals.exponent);
    require(std::isfinite(out) && (!differ || (half_square > kLost && std::isnormal(out))),
            ErrorKind::numerical, kWhere,
            "a semivariance is out of the range of doubles: give the values in another unit");
    return out;
  }
};

Prepared prepared(const Points& points, std::span<const double> values,
                  const VariogramOptions& given) {
  check_points(points, "points", kWhere);
  check_values(points, values, kWhere);
  check_mean(given.mean, points, kWhere);
  if (given.distance == Distance::great_circle) {
    Separation sphere;
    sphere.distance = Distance::great_circle;
    if (!points.t.empty()) sphere.time = TimeParameters();
    check_separation(sphere, points, kWhere);
  }
  check_options(points, given);
  Prepared out;
  out.residuals = residuals_of(points, values, given.mean, given.distance);
  const Units units(points, given.distance);
  out.length = std::ilogb(units.length(1.0));
  const Points in_range = units.of(points);
  out.places = places_of(in_range, given.distance);
  VariogramOptions in_units = given;
  for (double* length : {&in_units.cutoff, &in_units.width}) {
    const double asked = *length;
    *length = std::scalbn(asked, -out.length);
    require(asked == 0 || std::isnormal(*length), ErrorKind::misuse, kWhere,
            "a length of {} is too far from the extent of the points", asked);
  }
  out.classes = classes_of(out.places, extent_of(in_range, given.distance), in_units);
  return out;
}

}  // namespace

Variogram variogram(const Points& points, std::span<const double> values,
                    const VariogramOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Prepared data = prepared(points, values, options);
  const Classes& classes = data.classes;
  const std::int64_t n = points.size();
  const std::vector<std::int64_t> order = order_points(
      {data.places.coordinates.data(), n, data.places.dimensions, n}, PointOrder::hilbert, kBlock);
  const Places places = ordered(data.places, order);
  std::vector<double> residuals;
  for (const std::int64_t row : order) residuals.push_back(data.residuals.values[at(row)]);
  const std::vector<Sums> sums = sums_of(places, residuals.data(), classes, options.progress);
  Variogram out;
  out.cutoff = data.in_given_length(classes.cutoff);
  out.width = data.in_given_length(classes.width);
  out.mean_coefficients = data.residuals.coefficients;
  out.mean_square = data.semivariance(data.residuals.mean_square, false);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const Sums& s = sums[k];
    if (s.pairs == 0) continue;
    const auto number = static_cast<std::int64_t>(k);
    const std::int64_t lag = number % (classes.lags + 1);
    const std::int64_t time = number / (classes.lags + 1) % classes.times;
    const std::int64_t direction = number / (classes.lags + 1) / classes.times;
    const auto count = static_cast<long double>(s.pairs);
    VariogramClass one;
    if (!options.directions.empty()) one.direction = options.directions[at(direction)];
    one.from = static_cast<double>(std::max<std::int64_t>(lag - 1, 0)) * out.width;
    one.to = std::min(static_cast<double>(lag) * out.width, out.cutoff);
    one.time_from = static_cast<double>(std::max<std::int64_t>(time - 1, 0)) * options.time_width;
    one.time_to = static_cast<double>(time) * options.time_width;
    one.pairs = s.pairs;
    one.distance = data.in_given_length(static_cast<double>(s.distance / count));
    one.time = static_cast<double>(s.time / count);
    const long double root = s.root / count;
    one.semivariance = data.semivariance(s.square / (2 * count), root > 0);
    one.robust =
        data.semivariance(root * root * root * root / (2 * (0.457L + 0.494L / count)), root > 0);
    out.classes.push_back(one);
  }
  out.seconds = seconds_since(start);
  return out;
}

std::vector<VariogramPair> variogram_cloud(const Points& points, std::span<const double> values,
                                           const VariogramOptions& options) {
  require(options.directions.empty(), ErrorKind::misuse, kWhere, "a cloud has no directions");
  const Prepared data = prepared(points, values, options);
  const std::int64_t blocks = Boxes::count(data.places);
  std::vector<VariogramPair> pairs;
  for (std::int64_t a = 0; a < blocks; ++a) {
    for (std::int64_t b = a; b < blocks; ++b) {
      for_pairs(data.places, data.residuals.values.data(), data.classes, {a, b},
                [&](std::int64_t i, std::int64_t j, double distance, double lag, double square,
                    double root) {
                  pairs.push_back({i, j, data.in_given_length(distance), lag,
                                   data.semivariance(square / 2, root > 0)});
                });
      require(std::ssize(pairs) <= kCloudMax, ErrorKind::misuse, kWhere,
              "a cloud of more than {} pairs: a smaller cutoff has fewer", kCloudMax);
    }
  }
  std::ranges::sort(pairs, {}, [](const VariogramPair& p) { return std::pair(p.first, p.second); });
  return pairs;
}

double semivariance(const MaternParameters& p, double distance, double time, double direction) {
  check_parameters(p, kWhere);
  require(distance >= 0 && time >= 0, ErrorKind::misuse, kWhere,
          "a distance of {} and a lag in time of {}", distance, time);
  require(time == 0 || p.separation.time, ErrorKind::misuse, kWhere,
          "a lag in time, of a model without times");
  if (distance == 0 && time == 0) return 0;
  // The covariance of two points so far apart; on the sphere that of the same distance in the
  // plane.
  CovarianceParameters parameters = covariance_of(p);
  parameters.separation.distance = Distance::euclidean;
  const LagRule rule = lag_rule(parameters, p.separation.time ? 3 : 2);
  const double angle =
      (std::isfinite(direction) ? direction : p.separation.anisotropy_angle) * kDegree;
  const std::array<double, 3> here{};
  const std::array<double, 3> there{distance * std::cos(angle), distance * std::sin(angle), time};
  const Lag lag = lag_between(rule, here.data(), 1, there.data(), 1);
  const double correlation = lag.factor * matern_correlation(bessel_order(p.smoothness), lag.x);
  return p.nugget + p.variance * (1 - correlation);
}

}  // namespace strata
