// The tree by path compression (Liu 1986): row k is a descendant of nothing yet, so the roots above
// its earlier neighbours become its children; ancestors that were walked through are shortened to
// k. What the tree is follows from which columns are connected without later ones, for each column
// they may be without (Liu 1990). So the columns of a range may be connected by the tree of their
// own entries instead of these, and an entry to an earlier range by one to the root there. Threads
// find the trees of ranges, and one then joins them, with about one entry a column.
//
// Column counts: row i of L has an entry in column j if j lies on the way from a leaf of the *row
// subtree* of i up to i; leaves are those neighbours j < i that are no ancestors of an earlier one.
// Instead of walking, each column counts the leaves that begin in it, less the places where two
// such ways meet (the least common ancestor of a leaf and the one before it), and less what its
// children pass up beyond their top. Sums up the tree then give the entries of columns. In
// postorder the least common ancestor is the top of the set of columns that holds the earlier leaf.

#include "sparse/ordering/elimination_tree.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

/// A tree that grows row by row.
struct GrowingTree {
  std::vector<std::int32_t> parent;
  std::vector<std::int32_t> ancestor;  // some, the last one that was walked to

  explicit GrowingTree(std::int32_t n) : parent(at(n), -1), ancestor(at(n), -1) {}

  /// Entry (k, j) of row k, j < k.
  void add(std::int32_t k, std::int32_t j) {
    while (j >= 0 && j < k) {
      const std::int32_t next = ancestor[at(j)];
      ancestor[at(j)] = k;
      if (next < 0) parent[at(j)] = k;
      j = next;
    }
  }
};

/// Entries of the rows begin … end − 1: those of row begin + k are column[start[k]] … .
struct RangeEntries {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> column;
};

/// Grows the tree of the columns of the range by themselves and keeps entries in earlier columns.
void grow_range(const SymmetricPattern& pattern, std::span<const std::int32_t> order,
                std::span<const std::int32_t> place, RangeEntries& range, GrowingTree& tree) {
  for (std::int32_t k = range.begin; k < range.end; ++k) {
    for (const std::int32_t row : pattern.neighbors(order[at(k)])) {
      const std::int32_t j = place[at(row)];
      if (j >= range.begin) {
        tree.add(k, j);
      } else {
        range.column.push_back(j);
      }
    }
    range.start.push_back(std::ssize(range.column));
  }
}

/// Leaves of entries in earlier columns those to different roots, and adds those of the tree.
void reduce(RangeEntries& range, std::span<const std::int32_t> parent,
            std::span<const std::int32_t> root) {
  RangeEntries reduced{range.begin, range.end, std::vector<std::int64_t>(range.start.size()), {}};
  const auto row_of = [&](std::int64_t j) { return at(parent[at(j)] - range.begin); };
  for (std::int32_t j = range.begin; j < range.end; ++j)
    if (parent[at(j)] >= 0) ++reduced.start[row_of(j) + 1];
  for (std::size_t k = 0; k + 1 < range.start.size(); ++k) {
    const auto first = range.column.begin() + range.start[k];
    const auto last = range.column.begin() + range.start[k + 1];
    std::transform(first, last, first, [&](std::int32_t j) { return root[at(j)]; });
    std::sort(first, last);
    const auto end = std::unique(first, last);
    std::fill(end, last, -1);
    reduced.start[k + 1] += reduced.start[k] + (end - first);
  }
  reduced.column.resize(at(reduced.start.back()));
  std::vector<std::int64_t> next(reduced.start.begin(), reduced.start.end() - 1);
  for (std::size_t k = 0; k + 1 < range.start.size(); ++k)
    for (std::int64_t e = range.start[k]; e < range.start[k + 1]; ++e)
      if (range.column[at(e)] >= 0) reduced.column[at(next[k]++)] = range.column[at(e)];
  for (std::int32_t j = range.begin; j < range.end; ++j)
    if (parent[at(j)] >= 0) reduced.column[at(next[row_of(j)]++)] = j;
  range = std::move(reduced);
}

/// The root of each column in the tree of its range.
void find_roots(const RangeEntries& range, std::span<const std::int32_t> parent,
                std::span<std::int32_t> root) {
  for (std::int32_t j = range.end; j-- > range.begin;)
    root[at(j)] = parent[at(j)] < 0 ? j : root[at(parent[at(j)])];
}

}  // namespace

std::vector<std::int32_t> places_of(std::span<const std::int32_t> order, std::int64_t n) {
  require(std::ssize(order) == n, ErrorKind::misuse, "analyze",
          "an order of {} rows does not fit a matrix of {}", order.size(), n);
  std::vector<std::int32_t> place(order.size(), -1);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int32_t row = order[k];
    require(row >= 0 && row < n, ErrorKind::misuse, "analyze",
            "element {} of the order is {}, which is no row of a matrix of {}", k, row, n);
    require(place[at(row)] < 0, ErrorKind::misuse, "analyze",
            "elements {} and {} of the order are both row {}", place[at(row)], k, row);
    place[at(row)] = static_cast<std::int32_t>(k);
  }
  return place;
}

std::vector<std::int32_t> elimination_tree(const SymmetricPattern& pattern,
                                           std::span<const std::int32_t> order,
                                           std::span<const std::int32_t> place, WorkCrew& crew) {
  const std::int32_t n = pattern.size();
  GrowingTree tree(n);
  std::vector<RangeEntries> ranges(
      at(std::min<std::int64_t>(crew.helpers() + 1, pattern.start.back() / kEntriesPerThread + 1)));
  const std::int64_t count = std::ssize(ranges);
  const auto cut = [&](std::int64_t r) { return static_cast<std::int32_t>(n * r / count); };
  crew.share(count, [&](std::int64_t r) {
    ranges[at(r)].begin = cut(r);
    ranges[at(r)].end = cut(r + 1);
    grow_range(pattern, order, place, ranges[at(r)], tree);
  });
  if (count == 1) return std::move(tree.parent);
  std::vector<std::int32_t> root(at(n));
  crew.share(count, [&](std::int64_t r) { find_roots(ranges[at(r)], tree.parent, root); });
  crew.share(count, [&](std::int64_t r) { reduce(ranges[at(r)], tree.parent, root); });
  const std::int32_t joined = ranges.front().end;  // the first range is what it will be
  std::fill(tree.parent.begin() + joined, tree.parent.end(), -1);
  std::fill(tree.ancestor.begin() + joined, tree.ancestor.end(), -1);
  for (std::int64_t r = 1; r < count; ++r) {
    const RangeEntries& range = ranges[at(r)];
    for (std::int32_t k = range.begin; k < range.end; ++k)
      for (std::int64_t e = range.start[at(k - range.begin)];
           e < range.start[at(k - range.begin) + 1]; ++e)
        tree.add(k, range.column[at(e)]);
  }
  return std::move(tree.parent);
}

Children::Children(std::span<const std::int32_t> parent)
    : start(parent.size() + 1), child(parent.size()) {
  for (const std::int32_t p : parent)
    if (p >= 0) ++start[at(p) + 1];
  for (std::size_t p = 1; p < start.size(); ++p) start[p] += start[p - 1];
  child.resize(at(start.back()));
  std::vector<std::int32_t> next(start.begin(), start.end() - 1);
  for (std::size_t v = 0; v < parent.size(); ++v) {
    if (parent[v] < 0)
      root.push_back(static_cast<std::int32_t>(v));
    else
      child[at(next[at(parent[v])]++)] = static_cast<std::int32_t>(v);
  }
}

std::vector<std::int32_t> postorder(Children& children) {
  std::vector<std::int32_t> order;
  order.reserve(children.start.size() - 1);
  std::vector<std::int32_t> next(children.start.begin(), children.start.end() - 1);
  std::vector<std::int32_t> way;  // from a root down to the node at hand
  for (const std::int32_t root : children.root) {
    way.push_back(root);
    while (!way.empty()) {
      const std::int32_t node = way.back();
      if (next[at(node)] < children.start[at(node) + 1]) {
        way.push_back(children.child[at(next[at(node)]++)]);
      } else {
        order.push_back(node);
        way.pop_back();
      }
    }
  }
  return order;
}

OrderedTree ordered_tree(const SymmetricPattern& pattern, std::span<const std::int32_t> order,
                         WorkCrew& crew) {
  OrderedTree tree;
  tree.place = places_of(order, pattern.size());
  const std::vector<std::int32_t> parent = elimination_tree(pattern, order, tree.place, crew);
  Children children(parent);
  const std::vector<std::int32_t> post = postorder(children);
  const std::vector<std::int32_t> number = places_of(post, pattern.size());
  tree.order.resize(post.size());
  tree.parent.resize(post.size());
  for (std::size_t k = 0; k < post.size(); ++k) {
    const std::int32_t old = post[k];
    tree.order[k] = order[at(old)];
    tree.parent[k] = parent[at(old)] < 0 ? -1 : number[at(parent[at(old)])];
    tree.place[at(tree.order[k])] = static_cast<std::int32_t>(k);
  }
  return tree;
}

std::vector<NodeBranch> branches_for(std::span<const std::int32_t> parent, int threads) {
  constexpr std::int64_t kPerThread = 2;
  constexpr std::int64_t kLeast = 64;  // nodes that are worth a thread
  constexpr std::int64_t kUneven = 8;  // much smaller ones are left to the top
  const std::int64_t limit = std::ssize(parent) / (kPerThread * threads);
  std::vector<NodeBranch> branches;
  if (threads == 1 || limit < kLeast) return branches;
  std::vector<std::int32_t> first(parent.size());
  std::iota(first.begin(), first.end(), 0);
  for (std::size_t v = 0; v < parent.size(); ++v)
    if (parent[v] >= 0) first[at(parent[v])] = std::min(first[at(parent[v])], first[v]);
  const auto size = [&](std::int64_t v) { return v - first[at(v)] + 1; };
  for (std::int32_t v = 0; v < std::ssize(parent); ++v) {
    const bool largest = parent[at(v)] < 0 || size(parent[at(v)]) > limit;
    if (largest && size(v) <= limit && size(v) * kUneven >= limit)
      branches.push_back({first[at(v)], v});
  }
  return branches;
}

namespace {

/// Counts in the columns of branches, each by itself, and then in the top.
class ColumnCounts {
 public:
  ColumnCounts(const SymmetricPattern& pattern, const OrderedTree& tree)
      : pattern_(pattern),
        tree_(tree),
        first_(tree.parent.size()),
        weight_(tree.parent.size()),
        leaf_(tree.parent.size()),
        up_(tree.parent.size()) {
    std::iota(first_.begin(), first_.end(), 0);
    std::iota(up_.begin(), up_.end(), 0);
    for (std::int32_t j = 0; j < std::ssize(weight_); ++j) {
      weight_[at(j)] += first_[at(j)] == j ? 1 : 0;  // the row subtree of a leaf is the leaf itself
      const std::int32_t p = tree.parent[at(j)];
      if (p < 0) continue;
      first_[at(p)] = std::min(first_[at(p)], first_[at(j)]);
      --weight_[at(p)];  // the row subtree of j ends at j
    }
  }

  std::vector<std::int32_t> find(WorkCrew& crew) {
    const auto n = static_cast<std::int32_t>(weight_.size());
    const std::vector<NodeBranch> branches = branches_for(tree_.parent, crew.helpers() + 1);
    std::vector<std::int32_t> depth(branches.empty() ? 0 : weight_.size());
    for (std::int64_t j = std::ssize(depth); j-- > 0;)
      depth[at(j)] = tree_.parent[at(j)] < 0 ? 0 : depth[at(tree_.parent[at(j)])] + 1;
    std::vector<std::vector<RowLeaf>> above(branches.size());
    crew.share(std::ssize(branches),
               [&](std::int64_t b) { above[at(b)] = count(branches[at(b)], depth); });
    std::int32_t j = 0;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      count_top(j, branches[b].first);
      for (const RowLeaf& r : above[b]) {
        pass_on(leaf_[at(r.row)].column);
        leaf_[at(r.row)] = r.last;
      }
      leave(branches[b].last);
      j = branches[b].last + 1;
    }
    count_top(j, n);
    for (std::int32_t k = 0; k < n; ++k)
      if (tree_.parent[at(k)] >= 0) weight_[at(tree_.parent[at(k)])] += weight_[at(k)];
    return std::move(weight_);
  }

 private:
  /// The last leaf of a row subtree, and the first column of its branch; −1: none yet.
  struct Leaf {
    std::int32_t column = -1;
    std::int32_t first = -1;
  };
  struct RowLeaf {
    std::int32_t row = 0;
    Leaf last;
  };

  /// A column is joined to its parent when the walk leaves it; columns that are joined have a top,
  /// the least common ancestor of each of them and the column at hand.
  void leave(std::int32_t j) {
    if (tree_.parent[at(j)] >= 0) up_[at(j)] = tree_.parent[at(j)];
  }
  std::int32_t top(std::int32_t j) {
    std::int32_t top = j;
    while (up_[at(top)] != top) top = up_[at(top)];
    while (j != top) j = std::exchange(up_[at(j)], top);
    return top;
  }
  /// The way from an earlier leaf meets that from the leaf at hand.
  void pass_on(std::int32_t earlier) {
    if (earlier >= 0) --weight_[at(top(earlier))];
  }

  /// An entry of column j in the row of which `last` is known: a leaf, unless j is an ancestor of
  /// that one.
  void count_entry(std::int32_t j, Leaf& last) {
    if (first_[at(j)] <= last.first) return;
    ++weight_[at(j)];
    pass_on(last.column);
    last = {j, first_[at(j)]};
  }

  /// Returns the rows above the branch that have leaves in it, with the last one.
  std::vector<RowLeaf> count(const NodeBranch& branch, std::span<const std::int32_t> depth) {
    std::vector<Leaf> above(at(depth[at(branch.last)]));  // last leaves by depth
    std::vector<RowLeaf> rows;
    for (std::int32_t j = branch.first; j <= branch.last; ++j) {
      for (const std::int32_t row : pattern_.neighbors(tree_.order[at(j)])) {
        const std::int32_t i = tree_.place[at(row)];
        if (i <= j) continue;
        if (i <= branch.last) {
          count_entry(j, leaf_[at(i)]);
          continue;
        }
        Leaf& last = above[at(depth[at(i)])];
        if (last.column < 0) rows.push_back({i, {}});
        count_entry(j, last);
      }
      if (j != branch.last) leave(j);
    }
    for (RowLeaf& r : rows) r.last = above[at(depth[at(r.row)])];
    return rows;
  }

  void count_top(std::int32_t begin, std::int32_t end) {
    for (std::int32_t j = begin; j < end; ++j) {
      for (const std::int32_t row : pattern_.neighbors(tree_.order[at(j)])) {
        const std::int32_t i = tree_.place[at(row)];
        if (i > j) count_entry(j, leaf_[at(i)]);
      }
      leave(j);
    }
  }

  const SymmetricPattern& pattern_;
  const OrderedTree& tree_;
  std::vector<std::int32_t> first_;  // the first column of the branch of each
  std::vector<std::int32_t> weight_;
  std::vector<Leaf> leaf_;  // the last one of the row subtree of each row
  std::vector<std::int32_t> up_;
};

}  // namespace

std::vector<std::int32_t> column_counts(const SymmetricPattern& pattern, const OrderedTree& tree,
                                        WorkCrew& crew) {
  return ColumnCounts(pattern, tree).find(crew);
}

double flops_of(std::span<const std::int32_t> counts) {
  double sum = 0;
  for (const std::int32_t c : counts) sum += static_cast<double>(c) * static_cast<double>(c);
  return sum;
}

}  // namespace strata
