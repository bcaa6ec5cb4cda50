#include "qr/residual_products.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qr/row_store.hpp"

namespace strata {
namespace {

constexpr std::int64_t kSpan = 64;
constexpr std::int64_t kPiece = 8 * kSpan;

using Sums = std::vector<DoubleDouble>;

/// Sums of spans, added in a binary tree: level l holds one of 2^l spans, or nothing.
class SpanTree {
 public:
  void add(Sums sums) {
    std::size_t level = 0;
    for (; level < levels_.size() && !levels_[level].empty(); ++level)
      sums = joined(std::move(levels_[level]), sums);
    if (level == levels_.size()) levels_.emplace_back();
    levels_[level] = std::move(sums);
    for (std::size_t l = 0; l < level; ++l) levels_[l].clear();
  }
  [[nodiscard]] Sums total(std::size_t count) const {
    Sums sums(count);
    for (const Sums& level : levels_) {
      if (!level.empty()) sums = joined(level, sums);
    }
    return sums;
  }

 private:
  static Sums joined(Sums a, const Sums& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] + b[i];
    return a;
  }
  std::vector<Sums> levels_;
};

/// The length of a vector from the sum of its squares, and from one of its small elements times a
/// power of two (Blue, "A portable Fortran program to find the Euclidean norm of a vector", 1978).
class SafeLength {
 public:
  void add(double x) {
    const double size = std::abs(x);
    if (size < 2 * kLeastLength) small_ += (size * kUp) * (size * kUp);
  }
  [[nodiscard]] double of(double square) const {
    const double length = std::sqrt(std::max(square, 0.0));
    return length < kLeastLength ? std::sqrt(small_) / kUp : length;
  }

 private:
  static constexpr double kUp = 0x1p600;
  double small_ = 0;
};

/// Whether x·power·y, of factors that are not 0, has digits below the least double.
bool loses(double x, double power, double y) {
  constexpr double kWhole = 0x1p-960;
  if (x == 0 || y == 0) return false;
  const double size = std::abs(x * power);
  return size < 0x1p-1022 || size * std::abs(y) < kWhole;
}

}  // namespace

ResidualProducts residual_products(const TallInput<double>& a, const TallInput<double>& b,
                                   std::int64_t k, const std::vector<double>& scale, double of_b,
                                   const std::vector<DoubleDouble>& x) {
  const std::int64_t m = a.rows();
  const std::int64_t n = a.cols();
  const TallColumns<double> columns{.from = a};
  std::vector<double> rows(static_cast<std::size_t>(kPiece * n));
  SpanTree tree;
  Sums rest(static_cast<std::size_t>(kSpan));
  SafeLength length;
  std::int64_t underflows = 0;
  for (std::int64_t first = 0; first < m; first += kPiece) {
    const std::int64_t count = std::min(kPiece, m - first);
    columns.read(first, count, 0, n, rows.data());
    for (std::int64_t span = 0; span < count; span += kSpan) {
      const std::int64_t height = std::min(kSpan, count - span);
      for (std::int64_t i = 0; i < height; ++i) {
        const double value = b(first + span + i, k);
        underflows += loses(value, of_b, 1) ? 1 : 0;
        rest[static_cast<std::size_t>(i)] = DoubleDouble(value * of_b);
      }
      for (std::int64_t j = 0; j < n; ++j) {
        const double* column = rows.data() + span + j * count;
        const double d = scale[static_cast<std::size_t>(j)];
        for (std::int64_t i = 0; i < height; ++i) {
          DoubleDouble& value = rest[static_cast<std::size_t>(i)];
          underflows += loses(column[i], d, x[static_cast<std::size_t>(j)].hi) ? 1 : 0;
          value =
              subtract_product(value, DoubleDouble(column[i] * d), x[static_cast<std::size_t>(j)]);
        }
      }
      Sums sums(static_cast<std::size_t>(n + 1));
      for (std::int64_t j = 0; j < n; ++j) {
        const double* column = rows.data() + span + j * count;
        const DoubleDouble minus(-scale[static_cast<std::size_t>(j)]);
        DoubleDouble& sum = sums[static_cast<std::size_t>(j)];
        for (std::int64_t i = 0; i < height; ++i)
          sum = subtract_product(sum, DoubleDouble(column[i] * minus.hi),
                                 rest[static_cast<std::size_t>(i)]);
      }
      for (std::int64_t i = 0; i < height; ++i) {
        const DoubleDouble& value = rest[static_cast<std::size_t>(i)];
        sums.back() = sums.back() + value * value;
        length.add(value.hi);
      }
      tree.add(std::move(sums));
    }
  }
  ResidualProducts result{tree.total(static_cast<std::size_t>(n + 1)), 0};
  result.length = length.of(result.products.back().hi);
  if (underflows > 0) {  // half a unit of the element, times x, and one for each part of a product
    double largest = 1;
    for (const DoubleDouble& value : x) largest = std::max(largest, std::abs(value.hi));
    result.length +=
        static_cast<double>(underflows) * (4 + largest) * std::numeric_limits<double>::denorm_min();
  }
  result.products.pop_back();
  return result;
}

}  // namespace strata
