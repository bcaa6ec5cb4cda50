// What is read off the forest of supernodes of an analysis: its levels, branches that fit a budget,
// and places of rows in other panels.

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "sparse/ordering/error_places.hpp"
#include "sparse/ordering/pattern.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {
namespace {

void require_supernode(const SparseAnalysis& a, std::int32_t s) {
  require(s >= 0 && s < a.supernodes(), ErrorKind::misuse, kAnalysisWhere,
          "there is no supernode {} among {}", s, a.supernodes());
}

void require_panels(const SparseAnalysis& a) {
  const auto n = std::ssize(a.order);
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const auto rows = a.rows(s);
    const std::int32_t end = a.first[at(s) + 1];
    bool fine = a.width(s) > 0;
    for (std::size_t k = 0; k < rows.size() && fine; ++k)
      fine = rows[k] >= (k == 0 ? end : rows[k - 1] + 1) && rows[k] < n;
    const std::int32_t p = a.parent[at(s)];
    if (rows.empty()) {
      fine = fine && p == -1;
    } else {
      // Where the parent is the first part of a supernode that was split, it may be one of its
      // rows.
      fine = fine && p > s && p < a.supernodes() && rows[0] >= a.first[at(p)] &&
             (rows[0] < a.first[at(p) + 1] ||
              std::binary_search(a.rows(p).begin(), a.rows(p).end(), rows[0]));
    }
    require(fine, ErrorKind::misuse, kAnalysisWhere,
            "supernode {}, columns {} to {}, parent {}: its columns, rows and parent do not fit "
            "together",
            s, a.first[at(s)], end - 1, p);
  }
}

void require_tree(const SparseAnalysis& a) {
  std::vector<std::int32_t> branch(a.branch.size());
  std::iota(branch.begin(), branch.end(), 0);
  std::vector<std::int32_t> level(a.level.size());
  std::int64_t height = 0;
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const std::int32_t p = a.parent[at(s)];
    height = std::max<std::int64_t>(height, level[at(s)] + 1);
    require(branch[at(s)] == a.branch[at(s)] && level[at(s)] == a.level[at(s)], ErrorKind::misuse,
            kAnalysisWhere, "the branch or the level of supernode {} is not its own", s);
    if (p < 0) continue;
    branch[at(p)] = std::min(branch[at(p)], branch[at(s)]);
    level[at(p)] = std::max(level[at(p)], level[at(s)] + 1);
  }
  require(height == a.counts.height, ErrorKind::misuse, kAnalysisWhere,
          "a tree of height {} has {} levels", a.counts.height, height);
}

}  // namespace

void require_well_formed(const SparseAnalysis& a) {
  const auto n = std::ssize(a.order);
  const auto count = std::ssize(a.parent);
  require(a.fingerprint.order == n && std::ssize(a.first) == count + 1 &&
              std::ssize(a.row_start) == count + 1 && std::ssize(a.branch) == count &&
              std::ssize(a.level) == count && a.first.front() == 0 && a.first.back() == n &&
              a.row_start.front() == 0 && a.row_start.back() == std::ssize(a.row),
          ErrorKind::misuse, kAnalysisWhere,
          "{} columns, {} supernodes and {} rows do not fit the other arrays of an analysis", n,
          count, a.row.size());
  std::vector<char> seen(a.order.size());
  for (const std::int32_t row : a.order) {
    require(row >= 0 && row < n && seen[at(row)]++ == 0, ErrorKind::misuse, kAnalysisWhere,
            "row {} is in the order twice, or is none", row);
  }
  require(std::is_sorted(a.first.begin(), a.first.end()) &&
              std::is_sorted(a.row_start.begin(), a.row_start.end()),
          ErrorKind::misuse, kAnalysisWhere,
          "supernodes are not in the order of their columns or rows");
  require_panels(a);
  require_tree(a);
}

std::vector<TreeLevel> tree_levels(const SparseAnalysis& a) {
  std::vector<TreeLevel> levels(at(a.counts.height));
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    TreeLevel& level = levels.at(at(a.level[at(s)]));
    ++level.supernodes;
    level.columns += a.width(s);
    level.widest = std::max(level.widest, a.width(s));
    level.panel_bytes += a.panel_bytes(s);
    level.flops += a.flops(s);
  }
  return levels;
}

std::vector<std::int32_t> branches_within(const SparseAnalysis& a, std::int64_t bytes_max) {
  // What a branch needs: its panels, its updates while it is factored, and those of children so
  // far.
  struct Need {
    std::int64_t panels = 0;
    std::int64_t updates = 0;
    std::int64_t held = 0;
  };
  std::vector<Need> need(at(a.supernodes()));
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const std::int64_t update = a.row_count(s) * a.row_count(s) * 8;
    Need& own = need[at(s)];
    own.panels += a.panel_bytes(s);
    own.updates = std::max(own.updates, own.held + update);
    if (a.parent[at(s)] < 0) continue;
    Need& above = need[at(a.parent[at(s)])];
    above.panels += own.panels;
    above.updates = std::max(above.updates, above.held + own.updates);
    above.held += update;
  }
  const auto fits = [&](std::int32_t s) {
    return need[at(s)].panels + need[at(s)].updates <= bytes_max;
  };
  std::vector<std::int32_t> tops;
  for (std::int32_t s = 0; s < a.supernodes(); ++s)
    if (fits(s) && (a.parent[at(s)] < 0 || !fits(a.parent[at(s)]))) tops.push_back(s);
  return tops;
}

std::vector<std::int32_t> relative_indices(const SparseAnalysis& a, std::int32_t s,
                                           std::int32_t ancestor) {
  require_supernode(a, s);
  require_supernode(a, ancestor);
  require(a.branch[at(ancestor)] <= s && s < ancestor, ErrorKind::misuse, kAnalysisWhere,
          "supernode {} is not above supernode {}", ancestor, s);
  const std::int32_t begin = a.first[at(ancestor)];
  const std::int32_t end = a.first[at(ancestor) + 1];
  const auto rows = a.rows(s);
  const auto above = a.rows(ancestor);
  auto row = std::lower_bound(rows.begin(), rows.end(), begin);
  std::vector<std::int32_t> places;
  places.reserve(at(rows.end() - row));
  for (; row != rows.end() && *row < end; ++row) places.push_back(*row - begin);
  for (std::size_t k = 0; row != rows.end(); ++row) {
    while (k < above.size() && above[k] < *row) ++k;
    require(k < above.size() && above[k] == *row, ErrorKind::misuse, kAnalysisWhere,
            "row {} of supernode {} is no row of supernode {}", *row, s, ancestor);
    places.push_back(end - begin + static_cast<std::int32_t>(k));
  }
  return places;
}

}  // namespace strata
