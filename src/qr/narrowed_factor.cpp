#include "qr/narrowed_factor.hpp"

#include <algorithm>
#include <limits>

namespace strata {
namespace {

using Wide = SquareMatrix<DoubleDouble>;

/// I − 2·v·vᵀ, v of length 1, zero above `first`.
struct Reflection {
  std::int64_t first = 0;
  std::vector<DoubleDouble> v;

  void apply(DoubleDouble* x) const {
    DoubleDouble sum;
    for (std::size_t i = 0; i < v.size(); ++i)
      sum = sum + v[i] * x[first + static_cast<std::int64_t>(i)];
    const DoubleDouble twice = scaled(sum, 2);
    for (std::size_t i = 0; i < v.size(); ++i) {
      DoubleDouble& value = x[first + static_cast<std::int64_t>(i)];
      value = subtract_product(value, twice, v[i]);
    }
  }
};

/// That which takes x to a multiple of the unit vector `first`.
Reflection reflection_of(const DoubleDouble* x, std::int64_t first, std::int64_t n) {
  Reflection h{first, std::vector<DoubleDouble>(x + first, x + n)};
  DoubleDouble square;
  for (const DoubleDouble& value : h.v) square = square + value * value;
  if (!(square.hi > 0)) {
    h.v.assign(1, DoubleDouble());
    return h;
  }
  const DoubleDouble length = square_root(square);
  h.v[0] = h.v[0].hi > 0 ? h.v[0] + length : h.v[0] - length;
  DoubleDouble own;
  for (const DoubleDouble& value : h.v) own = own + value * value;
  const DoubleDouble by = square_root(own);
  for (DoubleDouble& value : h.v) value = value / by;
  return h;
}

double length_of(const DoubleDouble* x, std::int64_t from, std::int64_t n) {
  double square = 0;
  for (std::int64_t i = from; i < n; ++i) square += x[i].hi * x[i].hi;
  return std::sqrt(square);
}

}  // namespace

NarrowedFactor narrowed_factor(const Wide& r, const std::vector<std::int64_t>& dropped) {
  const std::int64_t n = r.n;
  Wide rest(n);
  std::vector<double> power;  // columns have lengths near 1, so that no square over- or underflows
  for (std::int64_t j = 0; j < n; ++j) {
    double largest = 0;
    for (std::int64_t i = 0; i <= j; ++i) largest = std::max(largest, std::abs(r(i, j).hi));
    int exponent = 0;
    if (largest > 0) std::frexp(largest, &exponent);
    power.push_back(std::ldexp(1.0, std::clamp(exponent, -1000, 1000)));
    for (std::int64_t i = 0; i <= j; ++i) rest(i, j) = scaled(r(i, j), 1 / power.back());
  }
  NarrowedFactor result{Wide(n), Wide(n)};
  std::vector<Reflection> reflections;
  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < n; ++j) {
    DoubleDouble* column = rest.values.data() + j * n;
    for (const Reflection& h : reflections) h.apply(column);
    const std::int64_t at = std::ssize(kept);
    const double length = length_of(column, 0, n);
    if (std::binary_search(dropped.begin(), dropped.end(), j)) {
      if (length > 0) result.left = std::max(result.left, length_of(column, at, n) / length);
    } else {
      reflections.push_back(reflection_of(column, at, n));
      reflections.back().apply(column);
      kept.push_back(j);
    }
    const double back = power[static_cast<std::size_t>(j)];
    for (std::size_t i = 0; i < kept.size(); ++i) result.r(kept[i], j) = scaled(column[i], back);
  }
  for (std::size_t k = 0; k < kept.size(); ++k) {
    DoubleDouble* column = result.c.values.data() + kept[k] * n;
    column[k] = DoubleDouble(1.0);
    for (auto h = reflections.rbegin(); h != reflections.rend(); ++h) h->apply(column);
    if (!(result.r(kept[k], kept[k]).hi < 0)) continue;
    for (std::int64_t i = 0; i < n; ++i) column[i] = -column[i];
    for (std::int64_t j = kept[k]; j < n; ++j) result.r(kept[k], j) = -result.r(kept[k], j);
  }
  return result;
}

}  // namespace strata
