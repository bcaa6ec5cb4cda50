#include "geostat/fit_samples.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.hpp"
#include "geostat/mean_basis.hpp"
#include "geostat/point_sets.hpp"
#include "geostat/regression.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

constexpr std::int64_t kSampleFactor = 4;
constexpr std::int64_t kSmallestMax = 400;  ///< the smallest sample is smaller

std::vector<std::int64_t> sample_rows(std::int64_t n, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  if (n <= count) return rows;
  std::nth_element(rows.begin(), rows.begin() + count, rows.end(),
                   [seed](std::int64_t a, std::int64_t b) {
                     const auto p = random_bits(seed, static_cast<std::uint64_t>(a));
                     const auto q = random_bits(seed, static_cast<std::uint64_t>(b));
                     return p != q ? p < q : a < b;
                   });
  rows.resize(static_cast<std::size_t>(count));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

Sample make_sample(const Points& points, std::span<const double> values, std::int64_t count,
                   std::uint64_t seed) {
  const auto rows = sample_rows(points.size(), count, seed);
  Sample out{rows_of(points, rows), {}};
  for (const std::int64_t row : rows) out.values.push_back(values[static_cast<std::size_t>(row)]);
  return out;
}

void drop_undetermined(Sample& sample, Mean mean, Distance distance) {
  auto given = std::exchange(sample.points.covariates, {});
  const std::int64_t n = sample.points.size();
  for (std::vector<double>& covariate : given) {
    sample.points.covariates.push_back(std::move(covariate));
    const MeanBasis basis(mean, sample.points, distance);
    std::vector<double> data(static_cast<std::size_t>(n * (basis.columns() + 1)));
    const MatrixView<double> w{data.data(), n, basis.columns() + 1, n};
    basis.fill(sample.points, w);
    try {
      if (n >= basis.columns() + 4) {
        (void)regress(w, "fit");
        continue;
      }
    } catch (const Error&) {  // dependent columns
    }
    sample.points.covariates.pop_back();
  }
}

std::vector<std::int64_t> sample_sizes(std::int64_t n) {
  if (n <= kSampleMin) return {n};
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = n; size >= kSmallestMax;) {
    size = size > kSampleMin ? std::max(size / kSampleFactor, kSampleMin) : size / kSampleFactor;
    sizes.push_back(size);
  }
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

}  // namespace strata
