// Trees on the page: where nodes lie, what is left out, what is refused.

#include <gtest/gtest.h>

#include <limits>

#include "strata/error.hpp"
#include "strata/report.hpp"
#include "tests/report/page_checks.hpp"

namespace strata {
namespace {

using test::has;

std::size_t rectangles(const std::string& page) {
  std::size_t count = 0;
  for (std::size_t at = page.find("<rect x="); at != std::string::npos;
       at = page.find("<rect x=", at + 1))
    ++count;
  return count;
}

ReportData with(ReportTree tree) {
  ReportData data;
  data.tree = std::move(tree);
  return data;
}

TEST(ReportTree, NodesAreAsBroadAsTheirBranches) {
  // Two roots: 4 with the children 0 and 3, which has 1 and 2, and 5.
  const std::string page =
      render_report(with({"A <tree>", "flops", {4, 3, 3, 4, -1, -1}, {1, 2, 3, 0, 4, 10}, {}}));
  EXPECT_TRUE(has(page, "A &lt;tree&gt;"));
  EXPECT_TRUE(has(page, "6 nodes from the roots down"));
  EXPECT_EQ(rectangles(page), 6U);
  EXPECT_TRUE(has(page, "<rect x=\"0.00\" y=\"0\" width=\"500.00\"")) << "5, half of all";
  EXPECT_TRUE(has(page, "<rect x=\"500.00\" y=\"0\" width=\"500.00\"")) << "4";
  EXPECT_TRUE(has(page, "<rect x=\"500.00\" y=\"14\" width=\"250.00\"")) << "3";
  EXPECT_TRUE(has(page, "<rect x=\"500.00\" y=\"28\" width=\"150.00\"")) << "2";
  EXPECT_TRUE(has(page, "<rect x=\"650.00\" y=\"28\" width=\"100.00\"")) << "1";
  EXPECT_TRUE(has(page, "<rect x=\"750.00\" y=\"14\" width=\"50.00\"")) << "0";
  EXPECT_TRUE(has(page, "viewBox=\"0 0 1000 42\""));
}

TEST(ReportTree, WhatIsTooNarrowOrTooDeepIsCounted) {
  // A chain of 100 nodes, and 5,000 leaves below its root.
  ReportTree tree{"T", "flops", {}, {}, {}};
  for (std::int32_t v = 0; v < 5099; ++v) tree.parent.push_back(v < 5000 ? 5099 : v + 1);
  tree.parent.push_back(-1);
  tree.weight.assign(5100, 1);
  const std::string page = render_report(with(tree));
  EXPECT_EQ(rectangles(page), 40U);
  EXPECT_TRUE(has(page, "5,060 more are too narrow or too deep"));
}

TEST(ReportTree, WithoutNodesIsNotThere) {
  EXPECT_FALSE(has(render_report(with({})), "id=\"tree\""));
  EXPECT_FALSE(has(render_report({}), "id=\"tree\""));
  // Nodes without weight have no breadth.
  const std::string page = render_report(with({"T", "flops", {1, -1}, {0, 0}, {}}));
  EXPECT_TRUE(has(page, "2 more are too narrow"));
}

TEST(ReportTree, LabelsStayText) {
  const std::string page =
      render_report(with({"T", "</svg>", {-1}, {1}, {"<script>alert(1)</script>"}}));
  EXPECT_TRUE(has(page, "&lt;script&gt;alert(1)"));
  EXPECT_TRUE(has(page, "&lt;/svg&gt;"));
}

TEST(ReportTree, WhatIsNoTreeIsRefused) {
  for (const ReportTree& tree :
       {ReportTree{"T", "w", {0}, {1}, {}}, ReportTree{"T", "w", {1}, {1}, {}},
        ReportTree{"T", "w", {-1, 0}, {1, 1}, {}}, ReportTree{"T", "w", {-1, -2}, {1, 1}, {}},
        ReportTree{"T", "w", {-1}, {}, {}}, ReportTree{"T", "w", {-1}, {1}, {"a", "b"}},
        ReportTree{"T", "w", {-1}, {-1}, {}},
        ReportTree{"T", "w", {-1}, {std::numeric_limits<double>::infinity()}, {}}})
    EXPECT_THROW((void)render_report(with(tree)), Error);
}

}  // namespace
}  // namespace strata
