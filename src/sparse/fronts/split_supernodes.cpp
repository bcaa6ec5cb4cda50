// Chains of narrower supernodes in the place of wide ones.

#include <algorithm>

#include "kernels/fronts/front_program.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/ordering/pattern.hpp"
#include "sparse/ordering/supernodes.hpp"

namespace strata {
namespace {

/// How wide the parts of a supernode are.
std::int64_t part_width(const SparseAnalysis& a, std::int32_t s, std::int64_t panel_bytes,
                        Element element) {
  const std::int64_t w = a.width(s);
  const std::int64_t column = (w + a.row_count(s)) * bytes_of(element);
  if (w <= kFrontTile || w * column <= panel_bytes) return w;
  return std::max<std::int64_t>(panel_bytes / column / kFrontTile, 1) * kFrontTile;
}

}  // namespace

SplitAnalysis split_supernodes(const SparseAnalysis& a, std::int64_t panel_bytes, Element element) {
  SplitAnalysis all{a, {}};
  SparseAnalysis& split = all.analysis;
  split.first.assign(1, 0);
  split.parent.clear();
  split.row_start.assign(1, 0);
  split.row.clear();
  std::vector<std::int32_t> first_part;
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    first_part.push_back(split.supernodes());
    const std::int32_t end = a.first[at(s) + 1];
    const std::int64_t width = part_width(a, s, panel_bytes, element);
    const std::size_t first_of_chain = all.parts.size();
    for (std::int64_t column = a.first[at(s)]; column < end;) {
      auto next = static_cast<std::int32_t>(std::min<std::int64_t>(column + width, end));
      // A part of a front that is cut into tiles has to be one itself, or other kernels would
      // factor it, with other bits.
      if (end - next + a.row_count(s) <= kSmallFront) next = end;
      column = next;
      all.parts.push_back(-1);
      split.first.push_back(next);
      // The next part; of the last one, what was the parent: its first part, which is not known
      // yet.
      split.parent.push_back(next < end ? split.supernodes() + 1 : -1);
      for (std::int32_t row = next; row < end; ++row) split.row.push_back(row);
      const auto rows = a.rows(s);
      split.row.insert(split.row.end(), rows.begin(), rows.end());
      split.row_start.push_back(std::ssize(split.row));
    }
    all.parts[first_of_chain] = static_cast<std::int32_t>(all.parts.size() - first_of_chain) - 1;
  }
  first_part.push_back(split.supernodes());
  for (std::int32_t s = 0; s < a.supernodes(); ++s)
    if (a.parent[at(s)] >= 0)
      split.parent[at(first_part[at(s) + 1] - 1)] = first_part[at(a.parent[at(s)])];
  measure_supernodes(split);
  return all;
}

SparseAnalysis joined_supernodes(const SparseAnalysis& split, std::span<const std::int32_t> parts) {
  SparseAnalysis whole = split;
  whole.first.assign(1, 0);
  whole.parent.clear();
  whole.row_start.assign(1, 0);
  whole.row.clear();
  std::vector<std::int32_t> joined_of;  // by part
  for (std::int32_t s = 0; s < split.supernodes(); ++s) {
    const std::int32_t last = s + parts[at(s)];
    for (; s < last; ++s) joined_of.push_back(whole.supernodes());
    joined_of.push_back(whole.supernodes());
    whole.first.push_back(split.first[at(last + 1)]);
    whole.parent.push_back(split.parent[at(last)]);
    const auto rows = split.rows(last);
    whole.row.insert(whole.row.end(), rows.begin(), rows.end());
    whole.row_start.push_back(std::ssize(whole.row));
  }
  for (std::int32_t& parent : whole.parent)
    if (parent >= 0) parent = joined_of[at(parent)];
  measure_supernodes(whole);
  return whole;
}

}  // namespace strata
