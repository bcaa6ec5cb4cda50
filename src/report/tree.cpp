// The section of a tree, drawn from the roots down.
//
// Method: a node is a rectangle below its parent, as broad as the share of its branch in the weight
// of all; what is left of the parent's breadth beside its children is its own weight. Nodes that
// are narrower than a pixel, and those that are deeper than the drawing, are left out; the text
// says how many. It needs no script.

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "report/page.hpp"
#include "report/text.hpp"

namespace strata::page {
namespace {

constexpr double kBreadth = 1000;
constexpr double kNarrowest = 0.5;
constexpr int kDepthMax = 40;
constexpr double kRow = 14;

struct NodeBox {
  double x = 0;
  double breadth = 0;
  double next = 0;  // where the next child begins
  int depth = -1;   // −1: not drawn
};

struct Drawing {
  std::string rectangles;
  int depth = 0;
  std::int64_t drawn = 0;
};

Drawing draw(const ReportTree& tree) {
  const std::size_t count = tree.parent.size();
  std::vector<double> branch = tree.weight;  // a node and all below
  double whole = 0;
  for (std::size_t v = 0; v < count; ++v) {
    if (tree.parent[v] < 0)
      whole += branch[v];
    else
      branch[static_cast<std::size_t>(tree.parent[v])] += branch[v];
  }
  const double scale = whole > 0 ? kBreadth / whole : 0;
  Drawing drawing;
  std::vector<NodeBox> box(count);
  double next_root = 0;
  for (std::size_t i = count; i-- > 0;) {  // parents before their children
    NodeBox* above = tree.parent[i] < 0 ? nullptr : &box[static_cast<std::size_t>(tree.parent[i])];
    if (above != nullptr && above->depth < 0) continue;
    double& next = above == nullptr ? next_root : above->next;
    NodeBox& own = box[i];
    own = {next, branch[i] * scale, next, above == nullptr ? 0 : above->depth + 1};
    next += own.breadth;
    if (own.breadth < kNarrowest || own.depth >= kDepthMax) {
      own.depth = -1;
      continue;
    }
    ++drawing.drawn;
    drawing.depth = std::max(drawing.depth, own.depth + 1);
    const std::string label = tree.label.empty() ? "" : escape(tree.label[i]) + ", ";
    drawing.rectangles += fmt::format(
        R"(<rect x="{:.2f}" y="{:.0f}" width="{:.2f}" height="{:.0f}"><title>{}{} {} of its own,
{} of all with what is below</title></rect>
)",
        own.x, own.depth * kRow, own.breadth, kRow - 1, label, number_text(tree.weight[i], 3),
        escape(tree.weight_label), percent_text(whole > 0 ? branch[i] / whole : 0));
  }
  return drawing;
}

}  // namespace

std::string tree_section(const ReportData& data) {
  if (!data.tree || data.tree->parent.empty()) return "";
  const ReportTree& tree = *data.tree;
  const Drawing drawing = draw(tree);
  const std::int64_t left = std::ssize(tree.parent) - drawing.drawn;
  const std::string rest =
      left > 0 ? fmt::format("; {} more are too narrow or too deep to be drawn", count_text(left))
               : "";
  return fmt::format(
      R"(<section id="tree"><h2>{}</h2>
<figure><figcaption class="muted">{} from the roots down, as broad as the share of each with what
is below in the {}{}</figcaption>
<div class="plot tree"><svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">
{}</svg></div></figure>
</section>
)",
      escape(tree.title), plural(drawing.drawn, "node"), escape(tree.weight_label), rest, kBreadth,
      std::max(1, drawing.depth) * kRow, escape(tree.title), drawing.rectangles);
}

}  // namespace strata::page
