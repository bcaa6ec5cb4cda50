// The tree by path compression (Liu 1986): row k is a descendant of nothing yet, so the roots above
// its earlier neighbours become its children; ancestors that were walked through are shortened to
// k.
//
// Column counts: row i of L has an entry in column j if j lies on the way from a leaf of the *row
// subtree* of i up to i; leaves are those neighbours j < i that are no ancestors of an earlier one.
// Instead of walking, each column counts the leaves that begin in it, less the places where two
// such ways meet (the least common ancestor of a leaf and the one before it), and less what its
// children pass up beyond their top; sums up the tree then give the entries of columns. In
// postorder the least common ancestor is the top of the set of columns that holds the earlier leaf.

#include "sparse/elimination_tree.hpp"

#include "base/check.hpp"

namespace strata {

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
                                           std::span<const std::int32_t> place) {
  const std::int32_t n = pattern.size();
  std::vector<std::int32_t> parent(at(n), -1);
  std::vector<std::int32_t> ancestor(at(n), -1);
  for (std::int32_t k = 0; k < n; ++k) {
    for (const std::int32_t row : pattern.neighbors(order[at(k)])) {
      std::int32_t j = place[at(row)];
      while (j >= 0 && j < k) {
        const std::int32_t next = ancestor[at(j)];
        ancestor[at(j)] = k;
        if (next < 0) parent[at(j)] = k;
        j = next;
      }
    }
  }
  return parent;
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

OrderedTree ordered_tree(const SymmetricPattern& pattern, std::span<const std::int32_t> order) {
  OrderedTree tree;
  tree.place = places_of(order, pattern.size());
  const std::vector<std::int32_t> parent = elimination_tree(pattern, order, tree.place);
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

namespace {

/// Sets of columns, each with its top: a column is joined to its parent when the walk leaves it.
class Tops {
 public:
  explicit Tops(std::int32_t n) : up_(at(n)) {
    for (std::int32_t j = 0; j < n; ++j) up_[at(j)] = j;
  }
  void join(std::int32_t column, std::int32_t parent) { up_[at(column)] = parent; }
  [[nodiscard]] std::int32_t top(std::int32_t column) {
    std::int32_t top = column;
    while (up_[at(top)] != top) top = up_[at(top)];
    while (column != top) {
      const std::int32_t next = up_[at(column)];
      up_[at(column)] = top;
      column = next;
    }
    return top;
  }

 private:
  std::vector<std::int32_t> up_;
};

}  // namespace

std::vector<std::int32_t> column_counts(const SymmetricPattern& pattern, const OrderedTree& tree) {
  const std::int32_t n = pattern.size();
  std::vector<std::int32_t> first(at(n));  // the first column of the branch of each
  for (std::int32_t j = 0; j < n; ++j) first[at(j)] = j;
  std::vector<std::int32_t> weight(at(n));
  for (std::int32_t j = 0; j < n; ++j) {
    weight[at(j)] += first[at(j)] == j ? 1 : 0;  // the row subtree of a leaf is the leaf itself
    const std::int32_t p = tree.parent[at(j)];
    if (p < 0) continue;
    first[at(p)] = std::min(first[at(p)], first[at(j)]);
    --weight[at(p)];  // the row subtree of j ends at j
  }
  std::vector<std::int32_t> leaf(at(n), -1);        // the last one of the row subtree of each row
  std::vector<std::int32_t> last_first(at(n), -1);  // the largest `first` of its leaves
  Tops tops(n);
  for (std::int32_t j = 0; j < n; ++j) {
    for (const std::int32_t row : pattern.neighbors(tree.order[at(j)])) {
      const std::int32_t i = tree.place[at(row)];
      if (i <= j || first[at(j)] <= last_first[at(i)]) continue;
      ++weight[at(j)];
      if (leaf[at(i)] >= 0) --weight[at(tops.top(leaf[at(i)]))];
      leaf[at(i)] = j;
      last_first[at(i)] = first[at(j)];
    }
    if (tree.parent[at(j)] >= 0) tops.join(j, tree.parent[at(j)]);
  }
  for (std::int32_t j = 0; j < n; ++j)
    if (tree.parent[at(j)] >= 0) weight[at(tree.parent[at(j)])] += weight[at(j)];
  return weight;
}

double flops_of(std::span<const std::int32_t> counts) {
  double sum = 0;
  for (const std::int32_t c : counts) sum += static_cast<double>(c) * static_cast<double>(c);
  return sum;
}

}  // namespace strata
