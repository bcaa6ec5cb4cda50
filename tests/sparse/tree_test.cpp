// What is read off the forest of supernodes, and what is said of its time.

#include <gtest/gtest.h>

#include <set>

#include "strata/error.hpp"
#include "tests/sparse/patterns.hpp"

namespace strata {
namespace {

SparseAnalysis analyzed(const SparseMatrix& a) {
  AnalysisOptions options;
  options.ordering = SparseOrdering::amd;
  options.threads = 1;
  return analyze(a, options);
}

TEST(Tree, LevelsHoldEverySupernodeOnce) {
  for (const test::Family& family : test::families()) {
    const SparseAnalysis a = analyzed(family.matrix);
    const std::vector<TreeLevel> levels = tree_levels(a);
    ASSERT_EQ(std::ssize(levels), a.counts.height) << family.name;
    TreeLevel all;
    for (std::size_t k = 0; k < levels.size(); ++k) {
      std::int64_t count = 0;
      for (const std::int32_t level : a.level) count += level == static_cast<int>(k) ? 1 : 0;
      EXPECT_EQ(levels[k].supernodes, count);
      all.columns += levels[k].columns;
      all.panel_bytes += levels[k].panel_bytes;
      all.flops += levels[k].flops;
      all.widest = std::max(all.widest, levels[k].widest);
    }
    EXPECT_EQ(all.columns, family.matrix.rows);
    EXPECT_EQ(all.panel_bytes, a.counts.panel_bytes);
    EXPECT_EQ(all.widest, a.counts.widest);
    EXPECT_NEAR(all.flops, a.counts.stored_flops, 1e-9 * all.flops);
  }
}

/// Panels of a branch, and the most that its updates take together, by walking through it.
std::int64_t bytes_of_branch(const SparseAnalysis& a, std::int32_t top) {
  std::int64_t panels = 0;
  std::int64_t held = 0;
  std::int64_t peak = 0;
  std::vector<std::int64_t> from_children(at(a.supernodes()));
  for (std::int32_t s = a.branch[at(top)]; s <= top; ++s) {
    const std::int64_t update = 8 * a.row_count(s) * a.row_count(s);
    panels += a.panel_bytes(s);
    peak = std::max(peak, held + update);
    held += update - from_children[at(s)];
    if (a.parent[at(s)] >= 0) from_children[at(a.parent[at(s)])] += update;
  }
  return panels + peak;
}

TEST(Tree, BranchesWithinABudgetAreTheLargestThatFit) {
  const SparseAnalysis a = analyzed(test::grid(9, 8, 7));
  ASSERT_GT(a.supernodes(), 20);
  const std::int64_t whole = bytes_of_branch(a, a.supernodes() - 1);
  for (const std::int64_t budget :
       {std::int64_t{0}, whole / 100, whole / 10, whole / 2, whole - 1, whole}) {
    const std::vector<std::int32_t> tops = branches_within(a, budget);
    std::set<std::int32_t> expected;
    for (std::int32_t s = 0; s < a.supernodes(); ++s) {
      const std::int32_t p = a.parent[at(s)];
      if (bytes_of_branch(a, s) <= budget && (p < 0 || bytes_of_branch(a, p) > budget))
        expected.insert(s);
    }
    EXPECT_EQ(std::set<std::int32_t>(tops.begin(), tops.end()), expected) << budget;
    EXPECT_TRUE(std::is_sorted(tops.begin(), tops.end()));
  }
  EXPECT_EQ(branches_within(a, whole), std::vector<std::int32_t>{a.supernodes() - 1});
}

TEST(Tree, RelativeIndicesFindTheirRows) {
  for (const test::Family& family : test::families()) {
    const SparseAnalysis a = analyzed(family.matrix);
    for (std::int32_t s = 0; s < a.supernodes(); ++s) {
      for (std::int32_t t = a.parent[at(s)]; t >= 0; t = a.parent[at(t)]) {
        std::vector<std::int32_t> panel(at(a.width(t)));  // rows of the panel of t
        std::iota(panel.begin(), panel.end(), a.first[at(t)]);
        panel.insert(panel.end(), a.rows(t).begin(), a.rows(t).end());
        std::vector<std::int32_t> expected;
        for (const std::int32_t row : a.rows(s))
          if (row >= a.first[at(t)]) expected.push_back(row);
        std::vector<std::int32_t> found;
        for (const std::int32_t place : relative_indices(a, s, t))
          found.push_back(panel.at(at(place)));
        EXPECT_EQ(found, expected) << family.name << ' ' << s << ' ' << t;
      }
    }
  }
  const SparseAnalysis a = analyzed(test::grid(5, 5, 1));
  EXPECT_THROW((void)relative_indices(a, 0, 0), Error);
  EXPECT_THROW((void)relative_indices(a, -1, 0), Error);
  EXPECT_THROW((void)relative_indices(a, 0, a.supernodes()), Error);
}

TEST(Tree, WhatDoesNotFitTogetherIsRefused) {
  const SparseAnalysis right = analyzed(test::grid(6, 6, 2));
  require_well_formed(right);
  ASSERT_GT(right.supernodes(), 3);
  const std::vector<std::function<void(SparseAnalysis&)>> faults{
      [](SparseAnalysis& a) { a.order[0] = a.order[1]; },
      [](SparseAnalysis& a) { a.order[0] = -1; },
      [](SparseAnalysis& a) { a.order.pop_back(); },
      [](SparseAnalysis& a) { a.fingerprint.order += 1; },
      [](SparseAnalysis& a) { a.first[1] = 0; },
      [](SparseAnalysis& a) { a.first.back() += 1; },
      [](SparseAnalysis& a) { a.parent[0] = 0; },
      [](SparseAnalysis& a) { a.parent[0] = a.supernodes(); },
      [](SparseAnalysis& a) { a.parent.back() = 0; },
      [](SparseAnalysis& a) { a.row_start[1] = 1 << 20; },
      [](SparseAnalysis& a) { a.row[0] = 0; },
      [](SparseAnalysis& a) { a.row.back() = static_cast<std::int32_t>(a.order.size()); },
      [](SparseAnalysis& a) { a.row.pop_back(); },
      [](SparseAnalysis& a) { a.branch.back() += 1; },
      [](SparseAnalysis& a) { a.level[0] += 1; },
      [](SparseAnalysis& a) { a.level.pop_back(); },
      [](SparseAnalysis& a) { a.counts.height += 1; },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    SparseAnalysis wrong = right;
    faults[i](wrong);
    EXPECT_THROW(require_well_formed(wrong), Error) << i;
  }
}

}  // namespace
}  // namespace strata
