// Orders of points against their definitions.

#include "geostat/point_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

constexpr PointOrder kOrders[] = {PointOrder::none, PointOrder::hilbert, PointOrder::kd,
                                  PointOrder::coarse};
using Rows = std::vector<std::int64_t>;

struct Cloud {
  std::string name;
  std::int64_t n = 0;
  std::int64_t d = 0;
  std::vector<double> values;  ///< column-major, n by d

  [[nodiscard]] MatrixView<const double> view() const {
    return {values.data(), n, d, std::max<std::int64_t>(n, 1)};
  }
  [[nodiscard]] double at(std::int64_t row, std::int64_t axis) const { return view()(row, axis); }
};

template <class Coordinate>
Cloud cloud_of(std::string name, std::int64_t n, std::int64_t d, Coordinate coordinate) {
  Cloud cloud{std::move(name), n, d, {}};
  for (std::int64_t a = 0; a < d; ++a) {
    for (std::int64_t i = 0; i < n; ++i) cloud.values.push_back(coordinate(i, a));
  }
  return cloud;
}

double uniform(std::int64_t i, std::int64_t a) {
  return random_uniform(static_cast<std::uint64_t>(a) + 1, static_cast<std::uint64_t>(i));
}

/// Clouds with whatever may go wrong: ties, duplicates, lines, one point, none.
std::vector<Cloud> clouds(std::int64_t n) {
  std::vector<Cloud> all;
  for (const std::int64_t d : {1, 2, 3}) {
    all.push_back(cloud_of("random", n, d, uniform));
    all.push_back(cloud_of("coincident", n, d, [](auto, auto) { return 3.5; }));
    all.push_back(cloud_of("each twice", n, d, [n](auto i, auto a) {
      return uniform(i % std::max<std::int64_t>(n / 2, 1), a);
    }));
    all.push_back(
        cloud_of("few values", n, d, [](auto i, auto a) { return std::floor(4 * uniform(i, a)); }));
    all.push_back(cloud_of("line", n, d, [](auto i, auto) { return -uniform(i, 0); }));
    all.push_back(cloud_of("last constant", n, d,
                           [d](auto i, auto a) { return a == d - 1 ? -7 : uniform(i, a); }));
    all.push_back(cloud_of("far and near", n, d, [](auto i, auto a) {
      return std::ldexp(uniform(i, a) - 0.5, static_cast<int>(i % 40));
    }));
    all.push_back(cloud_of("of all magnitudes", n, d, [](auto i, auto a) {
      return std::ldexp(uniform(i, a) - 0.5, static_cast<int>(i % 7) * 350 - 1075);
    }));
  }
  return all;
}

const std::vector<std::int64_t> kSizes{0, 1, 2, 3, 7, 8, 9, 64, 131, 300};

bool is_permutation(Rows rows, std::int64_t n) {
  std::sort(rows.begin(), rows.end());
  Rows expected(static_cast<std::size_t>(n));
  std::iota(expected.begin(), expected.end(), std::int64_t{0});
  return rows == expected;
}

TEST(PointOrder, IsAPermutationAlwaysTheSame) {
  for (const std::int64_t n : kSizes) {
    for (const Cloud& cloud : clouds(n)) {
      for (const std::int64_t tile : {1, 2, 7, 8, 1000}) {
        for (const PointOrder order : kOrders) {
          const Rows rows = order_points(cloud.view(), order, tile);
          ASSERT_TRUE(is_permutation(rows, n)) << cloud.name << " n " << n << " d " << cloud.d
                                               << " tile " << tile << " " << to_string(order);
          ASSERT_EQ(order_points(cloud.view(), order, tile), rows);
        }
      }
    }
  }
}

TEST(PointOrder, OfNoneAndOfEqualPointsIsTheirs) {
  for (const std::int64_t n : kSizes) {
    Rows given(static_cast<std::size_t>(n));
    std::iota(given.begin(), given.end(), std::int64_t{0});
    for (const Cloud& cloud : clouds(n)) {
      EXPECT_EQ(order_points(cloud.view(), PointOrder::none, 4), given);
      if (cloud.name != "coincident") continue;
      for (const PointOrder order : kOrders)
        EXPECT_EQ(order_points(cloud.view(), order, 4), given) << to_string(order);
    }
  }
}

TEST(PointOrder, TakesAViewWithALeadingDimension) {
  const Cloud cloud = cloud_of("random", 50, 2, uniform);
  std::vector<double> padded(2 * 60, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < 50; ++i) {
    padded[i] = cloud.values[i];
    padded[60 + i] = cloud.values[50 + i];
  }
  for (const PointOrder order : kOrders)
    EXPECT_EQ(order_points({padded.data(), 50, 2, 60}, order, 8),
              order_points(cloud.view(), order, 8));
}

// ---- kd

/// The definition, by sorting: what lies where in a box of several tiles.
void kd_by_sorting(const Cloud& cloud, Rows rows, std::int64_t tile, Rows& out) {
  const std::int64_t n = std::ssize(rows);
  if (n <= tile) {
    std::sort(rows.begin(), rows.end());
    out.insert(out.end(), rows.begin(), rows.end());
    return;
  }
  std::int64_t longest = 0;
  double length = -1;
  for (std::int64_t a = 0; a < cloud.d; ++a) {
    const auto [low, high] = std::minmax_element(
        rows.begin(), rows.end(),
        [&](std::int64_t i, std::int64_t j) { return cloud.at(i, a) < cloud.at(j, a); });
    const double here = cloud.at(*high, a) - cloud.at(*low, a);
    if (here > length) longest = a;
    length = std::max(here, length);
  }
  std::sort(rows.begin(), rows.end());
  std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t i, std::int64_t j) {
    return cloud.at(i, longest) < cloud.at(j, longest);
  });
  const std::int64_t cut = (n + tile - 1) / tile / 2 * tile;
  kd_by_sorting(cloud, {rows.begin(), rows.begin() + cut}, tile, out);
  kd_by_sorting(cloud, {rows.begin() + cut, rows.end()}, tile, out);
}

TEST(PointOrder, KdIsItsDefinition) {
  for (const std::int64_t n : kSizes) {
    for (const Cloud& cloud : clouds(n)) {
      for (const std::int64_t tile : {1, 3, 8, 64, 500}) {
        Rows all(static_cast<std::size_t>(n));
        std::iota(all.begin(), all.end(), std::int64_t{0});
        Rows expected;
        kd_by_sorting(cloud, all, tile, expected);
        ASSERT_EQ(order_points(cloud.view(), PointOrder::kd, tile), expected)
            << cloud.name << " n " << n << " d " << cloud.d << " tile " << tile;
      }
    }
  }
}

/// Whether some axis separates two tiles of an order; points on the cut may lie on either side.
bool apart(const Cloud& cloud, const Rows& a, const Rows& b) {
  for (std::int64_t axis = 0; axis < cloud.d; ++axis) {
    double a_low = std::numeric_limits<double>::infinity();
    double a_high = -a_low;
    double b_low = a_low;
    double b_high = a_high;
    for (const std::int64_t row : a) {
      a_low = std::min(a_low, cloud.at(row, axis));
      a_high = std::max(a_high, cloud.at(row, axis));
    }
    for (const std::int64_t row : b) {
      b_low = std::min(b_low, cloud.at(row, axis));
      b_high = std::max(b_high, cloud.at(row, axis));
    }
    if (a_high <= b_low || b_high <= a_low) return true;
  }
  return false;
}

TEST(PointOrder, TilesOfKdAreBoxesThatDoNotOverlap) {
  constexpr std::int64_t kTile = 13;
  for (const Cloud& cloud : clouds(300)) {
    const Rows rows = order_points(cloud.view(), PointOrder::kd, kTile);
    std::vector<Rows> tiles;
    for (std::int64_t first = 0; first < 300; first += kTile)
      tiles.emplace_back(rows.begin() + first,
                         rows.begin() + std::min<std::int64_t>(first + kTile, 300));
    ASSERT_EQ(tiles.size(), 24u);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j)
        ASSERT_TRUE(apart(cloud, tiles[i], tiles[j])) << cloud.name << " " << i << " " << j;
    }
  }
}

TEST(PointOrder, KdCutsTheLongerSide) {
  // In a strip eight times as long as wide, eight tiles are pieces one after another.
  for (const std::int64_t longer : {0, 1, 2}) {
    const Cloud cloud = cloud_of(
        "strip", 800, 3, [&](auto i, auto a) { return (a == longer ? 8 : 0.9) * uniform(i, a); });
    const Rows rows = order_points(cloud.view(), PointOrder::kd, 100);
    for (std::int64_t t = 1; t < 8; ++t) {
      const auto by_length = [&](std::int64_t i, std::int64_t j) {
        return cloud.at(i, longer) < cloud.at(j, longer);
      };
      const auto cut = rows.begin() + 100 * t;
      EXPECT_LE(cloud.at(*std::max_element(cut - 100, cut, by_length), longer),
                cloud.at(*std::min_element(cut, cut + 100, by_length), longer));
    }
  }
}

// ---- Hilbert

/// A full grid of 2^bits points along each axis, in a mixed-up sequence.
Cloud grid(int bits, std::int64_t d, double step) {
  const std::int64_t side = std::int64_t{1} << bits;
  std::int64_t n = 1;
  for (std::int64_t a = 0; a < d; ++a) n *= side;
  return cloud_of("grid", n, d, [=](std::int64_t i, std::int64_t a) {
    std::int64_t cell = i * 5 % n;  // 5 and a power of two have no divisor in common
    for (; a > 0; --a) cell /= side;
    return 10 + step * static_cast<double>(cell % side);
  });
}

TEST(PointOrder, HilbertGoesFromNeighbourToNeighbourAndFillsCellAfterCell) {
  for (const std::int64_t d : {1, 2, 3}) {
    for (const int bits : {1, 2, 3, 5}) {
      for (const double step : {1.0, 0.37}) {
        const Cloud cloud = grid(bits, d, step);
        const Rows rows = order_points(cloud.view(), PointOrder::hilbert, 1);
        ASSERT_TRUE(is_permutation(rows, cloud.n));
        const auto cell = [&](std::int64_t k, std::int64_t a) {
          return std::lround((cloud.at(rows[static_cast<std::size_t>(k)], a) - 10) / step);
        };
        for (std::int64_t k = 1; k < cloud.n; ++k) {
          std::int64_t moved = 0;
          for (std::int64_t a = 0; a < d; ++a) moved += std::labs(cell(k, a) - cell(k - 1, a));
          ASSERT_EQ(moved, 1) << "d " << d << " bits " << bits << " at " << k;
        }
        // The 2^(level·d) points of a coarser cell come one after another.
        for (int level = 1; level < bits; ++level) {
          for (std::int64_t k = 0; k < cloud.n; ++k) {
            const std::int64_t first = k >> (level * d) << (level * d);
            for (std::int64_t a = 0; a < d; ++a)
              ASSERT_EQ(cell(k, a) >> level, cell(first, a) >> level) << level << " at " << k;
          }
        }
      }
    }
  }
}

TEST(PointOrder, HilbertSeesPointsThatAreCloseInALargeDomain) {
  // Two points at the ends of the diagonal, and a grid of 2^16 steps a side in the corner of one.
  for (const std::int64_t d : {2, 3}) {
    const double step = d == 2 ? 0x1p-31 : 0x1p-21;
    Cloud cloud = grid(2, d, step);
    for (double& x : cloud.values) x -= 10;
    Cloud far = cloud_of("far", cloud.n + 1, d,
                         [&](auto i, auto a) { return i < cloud.n ? cloud.at(i, a) : 1.0; });
    const Rows rows = order_points(far.view(), PointOrder::hilbert, 1);
    EXPECT_EQ(rows.back(), cloud.n);
    for (std::size_t k = 1; k + 1 < rows.size(); ++k) {
      double moved = 0;
      for (std::int64_t a = 0; a < d; ++a)
        moved += std::fabs(far.at(rows[k], a) - far.at(rows[k - 1], a));
      ASSERT_EQ(moved, step) << d << " " << k;
    }
  }
}

TEST(PointOrder, HilbertDoesNotDependOnUnits) {
  const Cloud cloud = cloud_of("random", 300, 2, uniform);
  for (const double unit : {0x1p-300, 8.0, 0x1p1000}) {
    const Cloud other =
        cloud_of("scaled", 300, 2, [&](auto i, auto a) { return unit * cloud.at(i, a); });
    for (const PointOrder order : {PointOrder::hilbert, PointOrder::kd})
      EXPECT_EQ(order_points(other.view(), order, 16), order_points(cloud.view(), order, 16));
  }
}

// ---- max-min

double squared(const Cloud& cloud, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t a = 0; a < cloud.d; ++a) {
    const double difference = cloud.at(i, a) - cloud.at(j, a);
    sum += difference * difference;
  }
  return sum;
}

/// The definition: after the first, always the point whose nearest selected one is farthest.
Rows max_min_by_definition(const Cloud& cloud, std::int64_t first, std::int64_t count) {
  Rows rows;
  std::vector<bool> taken(static_cast<std::size_t>(cloud.n));
  for (std::int64_t next = first; std::ssize(rows) < count;) {
    rows.push_back(next);
    taken[static_cast<std::size_t>(next)] = true;
    double farthest = -1;
    for (std::int64_t i = 0; i < cloud.n; ++i) {
      if (taken[static_cast<std::size_t>(i)]) continue;
      double nearest = std::numeric_limits<double>::infinity();
      for (const std::int64_t j : rows) nearest = std::min(nearest, squared(cloud, i, j));
      if (nearest > farthest) {
        farthest = nearest;
        next = i;
      }
    }
  }
  return rows;
}

TEST(PointOrder, MaxMinIsItsDefinition) {
  for (const std::int64_t n : {1, 2, 3, 9, 64, 131, 300, 1500}) {
    if (test::kSanitized && n == 300) continue;
    for (const Cloud& cloud : clouds(n)) {
      const std::int64_t count = std::min<std::int64_t>(n, n > 1000 ? 60 : n);
      const Rows rows = max_min_points(cloud.view(), count);
      ASSERT_EQ(rows, max_min_by_definition(cloud, rows[0], count))
          << cloud.name << " n " << n << " d " << cloud.d;
    }
  }
}

TEST(PointOrder, MaxMinBeginsInTheMiddleAndItsDistancesFall) {
  const Cloud cloud = grid(4, 2, 1.0);  // from 10 to 25
  const Rows rows = max_min_points(cloud.view(), cloud.n);
  ASSERT_TRUE(is_permutation(rows, cloud.n));
  for (const std::int64_t a : {0, 1}) EXPECT_EQ(std::fabs(cloud.at(rows[0], a) - 17.5), 0.5);
  for (std::int64_t i = 0; i < rows[0]; ++i)
    EXPECT_GT(std::max(std::fabs(cloud.at(i, 0) - 17.5), std::fabs(cloud.at(i, 1) - 17.5)), 0.5);
  double before = std::numeric_limits<double>::infinity();
  for (std::size_t k = 1; k < rows.size(); ++k) {
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < k; ++j)
      nearest = std::min(nearest, squared(cloud, rows[k], rows[j]));
    ASSERT_LE(nearest, before);
    before = nearest;
  }
  EXPECT_TRUE(max_min_points(cloud.view(), 0).empty());
  EXPECT_EQ(std::ssize(max_min_points(cloud.view(), 100'000)), cloud.n);
}

TEST(PointOrder, CoarseIsATileOfMaxMinPointsAndKdOfTheOthers) {
  for (const std::int64_t n : {1, 7, 8, 9, 131, 300}) {
    for (const Cloud& cloud : clouds(n)) {
      for (const std::int64_t tile : {1, 8, 40}) {
        const std::int64_t first = std::min(tile, n);
        Rows expected = max_min_points(cloud.view(), first);
        Rows others;
        for (std::int64_t i = 0; i < n; ++i) {
          if (std::find(expected.begin(), expected.end(), i) == expected.end()) others.push_back(i);
        }
        kd_by_sorting(cloud, others, tile, expected);
        ASSERT_EQ(order_points(cloud.view(), PointOrder::coarse, tile), expected)
            << cloud.name << " n " << n << " d " << cloud.d << " tile " << tile;
      }
    }
  }
}

// ---- misuse

template <class F>
std::string refused(ErrorKind kind, F&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(PointOrder, RefusesWhatAreNoPoints) {
  Cloud cloud = cloud_of("random", 20, 2, uniform);
  for (const PointOrder order : kOrders) {
    for (const std::int64_t tile : {0, -3}) {
      refused(ErrorKind::misuse, [&] { (void)order_points(cloud.view(), order, tile); });
    }
    for (const std::int64_t d : {0, 4}) {
      const std::vector<double> values(20 * 4);
      refused(ErrorKind::misuse, [&] { (void)order_points({values.data(), 20, d, 20}, order, 4); });
    }
  }
  refused(ErrorKind::misuse, [&] { (void)max_min_points(cloud.view(), -1); });
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    cloud.values[33] = bad;
    for (const PointOrder order : kOrders) {
      const std::string message =
          refused(ErrorKind::input, [&] { (void)order_points(cloud.view(), order, 4); });
      EXPECT_NE(message.find("coordinate 1 of row 13"), std::string::npos) << message;
    }
  }
}

TEST(PointOrder, HasNames) {
  for (const PointOrder order : kOrders) EXPECT_EQ(parse_point_order(to_string(order)), order);
  const std::string message = refused(ErrorKind::misuse, [] { (void)parse_point_order("peano"); });
  EXPECT_NE(message.find("'peano'"), std::string::npos) << message;
}

}  // namespace
}  // namespace strata
