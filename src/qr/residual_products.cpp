#include "qr/residual_products.hpp"

#include <algorithm>
#include <cmath>

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
  for (std::int64_t first = 0; first < m; first += kPiece) {
    const std::int64_t count = std::min(kPiece, m - first);
    columns.read(first, count, 0, n, rows.data());
    for (std::int64_t span = 0; span < count; span += kSpan) {
      const std::int64_t height = std::min(kSpan, count - span);
      for (std::int64_t i = 0; i < height; ++i)
        rest[static_cast<std::size_t>(i)] = DoubleDouble(b(first + span + i, k) * of_b);
      for (std::int64_t j = 0; j < n; ++j) {
        const double* column = rows.data() + span + j * count;
        const double d = scale[static_cast<std::size_t>(j)];
        for (std::int64_t i = 0; i < height; ++i) {
          DoubleDouble& value = rest[static_cast<std::size_t>(i)];
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
      }
      tree.add(std::move(sums));
    }
  }
  ResidualProducts result{tree.total(static_cast<std::size_t>(n + 1)), 0};
  result.length = std::sqrt(std::max(result.products.back().hi, 0.0));
  result.products.pop_back();
  return result;
}

}  // namespace strata
