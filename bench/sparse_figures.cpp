#include "bench/sparse_figures.hpp"

#include <algorithm>
#include <bit>
#include <span>

namespace strata::bench {
namespace {

/// Calls of syrk and gemm by which the columns of s update those of supernodes above.
std::int64_t update_calls(const SparseAnalysis& a, std::int32_t s) {
  const std::span<const std::int32_t> rows = a.rows(s);
  std::int64_t calls = 0;
  std::size_t k = 0;
  while (k < rows.size()) {
    const auto above = std::upper_bound(a.first.begin(), a.first.end(), rows[k]);
    while (k < rows.size() && rows[k] < *above) ++k;
    calls += k < rows.size() ? 2 : 1;
  }
  return calls;
}

}  // namespace

std::vector<WidthBin> width_histogram(const SparseAnalysis& analysis) {
  std::vector<WidthBin> bins;
  for (std::int32_t s = 0; s < analysis.supernodes(); ++s) {
    const auto bin =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(analysis.width(s)) - 1));
    while (bins.size() <= bin) bins.push_back({.width_max = std::int64_t{1} << bins.size()});
    const bool below = analysis.row_count(s) > 0;
    bins[bin].supernodes += 1;
    bins[bin].multifrontal_calls += below ? 3 : 1;
    bins[bin].left_looking_calls += (below ? 2 : 1) + update_calls(analysis, s);
    bins[bin].flops += analysis.flops(s);
  }
  return bins;
}

}  // namespace strata::bench
