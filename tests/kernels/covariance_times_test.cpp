// covariance_times: by hand, against sums in long double of formulas written anew, and bit by bit
// where its contract promises bits. Every backend that this machine has.

#include "kernels/covariance/covariance_times.hpp"

#include <array>
#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/gamma.hpp>

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

/// One call: rows row … of a matrix of points by columns col …; coordinates follow from the number
/// of the point, so that equal numbers are the same point.
struct Times {
  Matrix<double> y, p, q, v;
  CovarianceParameters parameters;
  std::int64_t row = 0;
  std::int64_t col = 0;
};

double coordinate(const Separation& separation, std::int64_t i, std::int64_t k) {
  const double u = uniform(30 + static_cast<std::uint64_t>(k), i, 0);
  if (separation.distance == Distance::great_circle && k < 2) return (k == 0 ? 180 : 90) * u;
  return u;
}

Times make_times(std::int64_t rows, std::int64_t cols, std::int64_t columns,
                 const CovarianceParameters& parameters, std::int64_t dimensions = 2,
                 std::int64_t row = 0, std::int64_t col = 5000) {
  const Separation& s = parameters.separation;
  return {{rows, columns, 3, [](auto i, auto j) { return 10 * uniform(1, i, j); }},
          {rows, dimensions, 2, [&](auto i, auto k) { return coordinate(s, row + i, k); }},
          {cols, dimensions, 1, [&](auto j, auto k) { return coordinate(s, col + j, k); }},
          {cols, columns, 4, [](auto i, auto j) { return uniform(2, i, j); }},
          parameters,
          row,
          col};
}

/// One task; Y of each call.
std::vector<Matrix<double>> results(const Backend& backend, const std::vector<Times>& calls,
                                    std::uint32_t variant = 0) {
  const KernelFunction kernel =
      backend.kernels().find(covariance_times.name, kCovarianceTimesElements);
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  const auto load = [&](const Matrix<double>& m, std::int64_t row) {
    memory.push_back(device->allocate(std::max<std::int64_t>(m.bytes(), 8)));
    queue->copy(memory.back().data(), m.data.data(), m.bytes(), CopyDirection::host_to_device);
    views.push_back(
        {.data = memory.back().data(), .rows = m.rows, .cols = m.cols, .ld = m.ld, .row = row});
  };
  for (const Times& x : calls) {
    load(x.y, x.row);
    load(x.p, x.row);
    load(x.q, x.col);
    load(x.v, x.col);
  }
  try {
    kernel(*queue, {views, covariance_times.operands},
           {.variant = variant, .values = &calls[0].parameters});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  std::vector<Matrix<double>> y;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    y.push_back(calls[i].y);
    queue->copy(y[i].data.data(), views[4 * i].data, y[i].bytes(), CopyDirection::device_to_host);
  }
  queue->synchronize();
  return y;
}
Matrix<double> result(const Backend& backend, const Times& x) { return results(backend, {x})[0]; }

using Real = long double;

/// Distance in space: of the sphere by the chord, of an ellipse by its quadratic form.
Real distance_of(const Separation& s, const std::vector<Real>& a, const std::vector<Real>& b,
                 std::size_t space) {
  const Real degree = std::acos(Real{-1}) / 180;
  if (s.distance == Distance::great_circle) {
    const auto on_sphere = [&](const std::vector<Real>& x) {
      const Real lambda = x[0] * degree, phi = x[1] * degree;
      return std::array{std::cos(phi) * std::cos(lambda), std::cos(phi) * std::sin(lambda),
                        std::sin(phi)};
    };
    const auto u = on_sphere(a), w = on_sphere(b);
    const Real chord = std::hypot(u[0] - w[0], u[1] - w[1], u[2] - w[2]);
    return 2 * static_cast<Real>(kEarthRadiusKm) * std::asin(chord / 2);
  }
  Real square = 0;
  for (std::size_t k = 0; k < space; ++k) square += (a[k] - b[k]) * (a[k] - b[k]);
  if (s.anisotropy_ratio != 1) {  // across the major axis it counts 1/ratio² times
    const Real angle = s.anisotropy_angle * degree;
    const Real across = std::cos(angle) * (a[1] - b[1]) - std::sin(angle) * (a[0] - b[0]);
    const Real ratio = s.anisotropy_ratio;
    square += across * across * (1 / (ratio * ratio) - 1);
  }
  return std::sqrt(square);
}

Real correlation_of(double smoothness, Real x) {
  if (x == 0) return 1;
  if (smoothness == 0.5) return std::exp(-x);
  if (smoothness == 1.5) return (1 + x) * std::exp(-x);
  if (smoothness == 2.5) return (1 + x + x * x / 3) * std::exp(-x);
  const Real nu = smoothness;
  return 2 * std::pow(x / 2, nu) * boost::math::cyl_bessel_k(nu, x) / boost::math::tgamma(nu);
}

/// Element (i, j) of C.
Real element_of_c(const Times& x, std::int64_t i, std::int64_t j) {
  const CovarianceParameters& c = x.parameters;
  std::vector<Real> a, b;
  for (std::int64_t k = 0; k < x.p.cols; ++k) {
    a.push_back(x.p(i, k));
    b.push_back(x.q(j, k));
  }
  Real w = 1, range = c.range;
  std::size_t space = a.size();
  if (const auto& time = c.separation.time) {
    --space;
    w += time->scale * std::pow(std::abs(a[space] - b[space]), 2 * Real{time->smoothness});
    range *= std::pow(w, Real{time->interaction} / 2);
  }
  Real value =
      c.variance / w * correlation_of(c.smoothness, distance_of(c.separation, a, b, space) / range);
  if (c.same_points && x.row + i == x.col + j) value += c.nugget;
  return value;
}

void expect_right(const Times& x, const Matrix<double>& y) {
  const auto runs = static_cast<double>((x.q.rows + kCovarianceRun - 1) / kCovarianceRun);
  const auto length = static_cast<double>(std::min(kCovarianceRun, x.q.rows));
  for (std::int64_t i = 0; i < y.rows; ++i) {
    std::vector<Real> sum(static_cast<std::size_t>(y.cols)), size(sum);
    for (std::int64_t j = 0; j < x.q.rows; ++j) {
      const Real c = element_of_c(x, i, j);
      for (std::int64_t k = 0; k < y.cols; ++k) {
        sum[static_cast<std::size_t>(k)] += c * x.v(j, k);
        size[static_cast<std::size_t>(k)] += std::abs(c * x.v(j, k));
      }
    }
    for (std::int64_t k = 0; k < y.cols; ++k) {
      const Real all = size[static_cast<std::size_t>(k)];
      // Elements are good to 2e-13 (covariance_kernel_test.cpp).
      const Real bound = (length + runs + 1) * 0x1p-53 * (all + std::abs(x.y(i, k))) + 2e-13 * all;
      ASSERT_LE(std::abs(x.y(i, k) - sum[static_cast<std::size_t>(k)] - y(i, k)), bound)
          << i << ' ' << k << " of " << y.rows << " by " << x.q.rows << " by " << y.cols
          << ", smoothness " << x.parameters.smoothness;
    }
    ASSERT_TRUE(std::isnan(y.data.back())) << "what lies below the rows was written";
  }
}

class CovarianceTimes : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Every, CovarianceTimes, ::testing::ValuesIn(all_of_them()), backend_name);

TEST_P(CovarianceTimes, ByHand) {
  // Points (0, 0), (3, 4), (6, 8): distances 5 and 10, range 5. The nugget where numbers are equal.
  Times x = make_times(2, 3, 1, {2, 5, 0.5, 0.25, true}, 2, 7, 6);
  x.p = {2, 2, 0, [](auto i, auto k) { return static_cast<double>((i + 1) * (k + 3)); }};
  x.q = {3, 2, 0, [](auto j, auto k) { return static_cast<double>(j * (k + 3)); }};
  x.v = {3, 1, 0, [](auto j, auto) { return static_cast<double>(j + 1); }};
  x.y = {2, 1, 0, [](auto, auto) { return 100; }};
  const double e = std::exp(-1.0), e2 = std::exp(-2.0);
  const Matrix<double> y = result(*GetParam(), x);
  EXPECT_NEAR(y(0, 0), 100 - (2 * e + 2 * 2.25 + 3 * 2 * e), 1e-13);
  EXPECT_NEAR(y(1, 0), 100 - (2 * e2 + 2 * 2 * e + 3 * 2.25), 1e-13);
  EXPECT_THROW((void)results(*GetParam(), {x}, 1), Error);
}

TEST_P(CovarianceTimes, IsRightInAnyShape) {
  for (const double smoothness : {0.5, 1.5, 2.5, 0.8, 20.0}) {
    const bool closed = smoothness < 3 && smoothness != 0.8;
    for (const auto& [rows, cols, columns] : {std::array<std::int64_t, 3>{1, 1, 1},
                                              {1, 2, 3},
                                              {2, 1, 40},
                                              {127, 33, 5},
                                              {3, 513, 33},
                                              {129, 127, 9},
                                              {513, 129, 3},
                                              {2, 1025, 40},
                                              {257, 64, 1}}) {
      if (!closed && rows * cols > 5000) continue;  // the oracle takes its time
      for (const std::int64_t dimensions : {1, 2, 3}) {
        if (dimensions != 2 && rows * cols > 5000) continue;
        const Times x =
            make_times(rows, cols, columns, {1.7, 0.3, smoothness, 0, false}, dimensions);
        expect_right(x, result(*GetParam(), x));
      }
    }
  }
}

TEST_P(CovarianceTimes, IsRightForEverySeparation) {
  const Separation sphere{Distance::great_circle, 1, 0, {}};
  const Separation turned{Distance::euclidean, 0.4, 35, {}};
  const Separation timed{Distance::euclidean, 1, 0, TimeParameters{2.5, 0.8, 0.9}};
  const Separation all{Distance::euclidean, 0.4, -100, TimeParameters{0.7, 0.3, 0.6}};
  for (const auto& [separation, dimensions, range] : {std::tuple{sphere, 2, 3000.0},
                                                      {turned, 2, 0.3},
                                                      {turned, 3, 0.3},
                                                      {timed, 3, 0.3},
                                                      {all, 4, 0.3}}) {
    for (const double smoothness : {0.5, 0.8}) {
      const Times x = make_times(67, 41, 3, {1.7, range, smoothness, 0.3, true, separation},
                                 dimensions, 30, 20);
      expect_right(x, result(*GetParam(), x));
    }
  }
}

TEST_P(CovarianceTimes, HasTheNuggetWhereNumbersAreEqual) {
  for (const auto& [row, col] :
       {std::array<std::int64_t, 2>{0, 0}, {130, 100}, {100, 130}, {600, 0}, {0, 599}, {700, 0}}) {
    const Times x = make_times(140, 530, 2, {1.7, 0.3, 1.5, 3, true}, 2, row, col);
    expect_right(x, result(*GetParam(), x));
  }
  Times apart = make_times(20, 20, 2, {1.7, 0.3, 1.5, 3, false}, 2, 0, 0);
  expect_right(apart, result(*GetParam(), apart));
}

TEST_P(CovarianceTimes, MultipliesTheElementsOfCovariance) {
  const KernelFunction kernel =
      GetParam()->kernels().find(covariance.name, Elements(3, Element::fp64));
  for (const double smoothness : {0.5, 1.5, 2.5, 0.8, 20.0}) {
    for (const std::int64_t dimensions : {1, 2, 3}) {
      Times x = make_times(139, 40, 40, {1.7, 0.3, smoothness, 0.3, true}, dimensions, 10, 20);
      x.y = {139, 40, 0, [](auto, auto) { return 0; }};
      x.v = {40, 40, 0, [](auto i, auto j) { return i == j ? 1 : 0; }};
      const Matrix<double> y = result(*GetParam(), x);
      const auto device = GetParam()->make_device(0, 1_MiB);
      const auto queue = device->make_queue(QueuePriority::normal);
      const Buffer c = device->allocate(y.bytes());
      const Buffer p = device->allocate(x.p.bytes());
      const Buffer q = device->allocate(x.q.bytes());
      queue->copy(p.data(), x.p.data.data(), x.p.bytes(), CopyDirection::host_to_device);
      queue->copy(q.data(), x.q.data.data(), x.q.bytes(), CopyDirection::host_to_device);
      const std::array views{BlockView{c.data(), 139, 40, 139, 10, 20},
                             BlockView{p.data(), 139, dimensions, x.p.ld, 10, 0},
                             BlockView{q.data(), 40, dimensions, x.q.ld, 20, 0}};
      kernel(*queue, {views, covariance.operands}, {.values = &x.parameters});
      Matrix<double> elements(139, 40);
      queue->copy(elements.data.data(), c.data(), y.bytes(), CopyDirection::device_to_host);
      queue->synchronize();
      for (double& element : elements.data) element = 0 - element;
      EXPECT_TRUE(same_bits(elements, y)) << smoothness << ' ' << dimensions;
    }
  }
}

/// Rows first … of operands, or columns first … of V and Y.
Matrix<double> part_of(const Matrix<double>& m, std::int64_t row, std::int64_t rows,
                       std::int64_t col, std::int64_t cols) {
  return {rows, cols, 1, [&](auto i, auto j) { return m(row + i, col + j); }};
}
Times part_of(const Times& x, std::int64_t row, std::int64_t rows, std::int64_t col,
              std::int64_t cols) {
  const std::int64_t d = x.p.cols;
  return {part_of(x.y, row, rows, col, cols),
          part_of(x.p, row, rows, 0, d),
          x.q,
          part_of(x.v, 0, x.v.rows, col, cols),
          x.parameters,
          x.row + row,
          x.col};
}

TEST_P(CovarianceTimes, HasTheSameBitsHoweverRowsAndColumnsAreCut) {
  for (const double smoothness : {0.5, 1.5, 0.8, 12.0}) {
    const bool slow = GetParam() == &reference_backend();
    const std::int64_t rows = slow ? 9 : 300, cols = slow ? 20 : 75;
    const Times x = make_times(rows, cols, 75, {1.7, 0.3, smoothness, 0.3, true}, 2, 10, 40);
    const Matrix<double> whole = result(*GetParam(), x);
    std::vector<Times> parts;
    std::vector<std::array<std::int64_t, 2>> from;
    for (const auto& [row, count] : {std::array<std::int64_t, 2>{0, 1}, {1, 6}, {7, rows - 7}}) {
      for (const auto& [col, width] :
           {std::array<std::int64_t, 2>{0, 1}, {1, 2}, {3, 7}, {10, 15}, {25, 17}, {42, 33}}) {
        parts.push_back(part_of(x, row, count, col, width));
        from.push_back({row, col});
      }
    }
    const auto y = results(*GetParam(), parts);  // in one task
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (std::int64_t k = 0; k < y[p].cols; ++k) {
        for (std::int64_t i = 0; i < y[p].rows; ++i)
          ASSERT_EQ(y[p](i, k), whole(from[p][0] + i, from[p][1] + k))
              << smoothness << ' ' << p << ' ' << i << ' ' << k;
      }
    }
  }
}

TEST_P(CovarianceTimes, HasTheSameBitsCutBetweenRuns) {
  const std::int64_t cols = 3 * kCovarianceRun + 1;
  const Times x = make_times(5, cols, 3, {1.7, 0.3, 1.5, 0.3, true}, 2, 510, 0);
  const Matrix<double> whole = result(*GetParam(), x);
  for (const auto& ends : {std::vector<std::int64_t>{512, 1024, 1536, cols}, {1024, cols}}) {
    Times part = x;
    std::int64_t first = 0;
    for (const std::int64_t end : ends) {
      part.q = part_of(x.q, first, end - first, 0, 2);
      part.v = part_of(x.v, first, end - first, 0, 3);
      part.col = first;
      part.y = result(*GetParam(), part);
      first = end;
    }
    EXPECT_TRUE(same_bits(part.y, whole));
  }
}

TEST_P(CovarianceTimes, NaNsGoWhereTheyBelongAndWhatIsFarAwayCountsNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double smoothness : {0.5, 1.5, 2.5, 0.8, 20.0}) {
    const Times x = make_times(9, 70, 3, {1.7, 0.3, smoothness, 0, false});
    const Matrix<double> before = result(*GetParam(), x);
    Times bad = x;
    bad.p(4, 1) = nan;
    Matrix<double> y = result(*GetParam(), bad);
    for (std::int64_t i = 0; i < 9; ++i) {
      for (std::int64_t k = 0; k < 3; ++k)
        EXPECT_TRUE(i == 4 ? std::isnan(y(i, k)) : y(i, k) == before(i, k)) << i;
    }
    bad = x;
    bad.q(69, 0) = nan;
    y = result(*GetParam(), bad);
    for (std::int64_t i = 0; i < 9; ++i) EXPECT_TRUE(std::isnan(y(i, 2)));
    bad = x;
    bad.v(5, 1) = nan;
    y = result(*GetParam(), bad);
    for (std::int64_t i = 0; i < 9; ++i) {
      EXPECT_TRUE(std::isnan(y(i, 1)));
      EXPECT_EQ(y(i, 0), before(i, 0));
      EXPECT_EQ(y(i, 2), before(i, 2));
    }
    Times far = x;
    for (std::int64_t j = 0; j < 70; ++j) far.q(j, 0) = 1e30;
    EXPECT_TRUE(same_bits(result(*GetParam(), far), far.y)) << "all elements are 0";
    far.v(7, 2) = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(std::isnan(result(*GetParam(), far)(0, 2))) << "0 times infinity";
  }
}

TEST_P(CovarianceTimes, OfNothingIsNothing) {
  for (const auto& [rows, cols, columns] :
       {std::array<std::int64_t, 3>{0, 5, 2}, {5, 0, 2}, {5, 5, 0}}) {
    const Times x = make_times(rows, cols, columns, {1.7, 0.3, 0.8, 0, false});
    EXPECT_TRUE(same_bits(result(*GetParam(), x), x.y));
  }
}

}  // namespace
}  // namespace strata::testing
