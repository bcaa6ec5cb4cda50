// Amalgamation (Duff, Reid 1983; Ashcraft, Grimes 1989): from the leaves up, each supernode takes
// in those of its children that cost the fewest zeros, as long as the bounds of AnalysisOptions
// hold. Both bounds are kept for every panel, against the entries and operations that its columns
// have in L, so they hold for every branch and for the whole. A child is taken in wherever it
// stands among its siblings: columns are numbered anew afterwards, which a postorder of the joined
// supernodes does without changing the factor.
//
// Row structure: row i of L lies in those supernodes through which one walks up the tree from the
// neighbours before i to i. Rows are walked in order, so each list ascends by itself.

#include "sparse/ordering/supernodes.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "kernels/fronts/front_program.hpp"

namespace strata {
namespace {

/// What a supernode has become by taking in children.
struct Joined {
  double width = 0;
  double entries = 0;  ///< that its columns have in L
  double flops = 0;
};

bool within_bounds(const Joined& parts, double rows, const AnalysisOptions& options) {
  // GPUs count places by 32 bits; a few zeros are not worth more of them.
  if (!places_fit(static_cast<std::int64_t>(parts.width), static_cast<std::int64_t>(rows)))
    return false;
  const double spare =
      static_cast<double>(options.relax_entries) +
      options.relax_rows * std::min(rows, static_cast<double>(AnalysisOptions::kRelaxRowsMax));
  return panel_entries(parts.width, rows) <= (1 + options.relax_bytes) * parts.entries + spare &&
         panel_flops(parts.width, rows) <= (1 + options.relax_flops) * parts.flops + spare * spare;
}

/// Bytes of one branch in a multifrontal factorization in the best order of its parts.
struct Stack {
  std::int64_t update = 0;  ///< that is left for the parent
  std::int64_t peak = 0;
};

std::int64_t square_bytes(std::int64_t rows) { return rows * rows * 8; }

/// Sorts children and returns the peak: those that need more than they leave come first.
std::int64_t stack_children(std::span<std::int32_t> children, const std::vector<Stack>& stack,
                            std::int64_t own_bytes) {
  std::stable_sort(children.begin(), children.end(), [&](std::int32_t a, std::int32_t b) {
    return stack[at(a)].peak - stack[at(a)].update > stack[at(b)].peak - stack[at(b)].update;
  });
  std::int64_t held = 0;
  std::int64_t peak = 0;
  for (const std::int32_t c : children) {
    peak = std::max(peak, held + stack[at(c)].peak);
    held += stack[at(c)].update;
  }
  return std::max(peak, held + own_bytes);
}

}  // namespace

SupernodeForest fundamental_supernodes(std::span<const std::int32_t> parent,
                                       std::span<const std::int32_t> counts) {
  const auto n = std::ssize(parent);
  std::vector<std::int32_t> children(parent.size());
  for (const std::int32_t p : parent)
    if (p >= 0) ++children[at(p)];
  SupernodeForest forest;
  std::vector<std::int32_t> owner(parent.size());
  for (std::int64_t j = 0; j < n; ++j) {
    const bool goes_on = j > 0 && parent[at(j - 1)] == j && children[at(j)] == 1 &&
                         counts[at(j - 1)] == counts[at(j)] + 1;
    if (!goes_on) {
      forest.first.push_back(static_cast<std::int32_t>(j));
      forest.width.push_back(0);
      forest.rows.push_back(0);
    }
    ++forest.width.back();
    forest.rows.back() = counts[at(j)] - 1;
    owner[at(j)] = forest.size() - 1;
  }
  forest.first.push_back(static_cast<std::int32_t>(n));
  for (std::int32_t s = 0; s < forest.size(); ++s) {
    const std::int32_t above = parent[at(forest.first[at(s) + 1] - 1)];
    forest.parent.push_back(above < 0 ? -1 : owner[at(above)]);
  }
  return forest;
}

std::vector<std::int32_t> amalgamate(const SupernodeForest& forest,
                                     const AnalysisOptions& options) {
  const std::int32_t count = forest.size();
  std::vector<std::int32_t> into(at(count));
  std::iota(into.begin(), into.end(), 0);
  std::vector<Joined> joined(at(count));
  Children children(forest.parent);
  for (std::int32_t p = 0; p < count; ++p) {
    const double rows = forest.rows[at(p)];
    Joined& parts = joined[at(p)];
    const double own = forest.width[at(p)];
    parts = {own, panel_entries(own, rows), panel_flops(own, rows)};
    // Zeros that a child would bring if it were the first to be taken in.
    const auto zeros = [&](std::int32_t c) {
      return joined[at(c)].width * (own + rows - forest.rows[at(c)]);
    };
    const std::span<std::int32_t> candidates = children.of(p);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](std::int32_t a, std::int32_t b) { return zeros(a) < zeros(b); });
    for (const std::int32_t c : candidates) {
      const Joined& child = joined[at(c)];
      const Joined both{parts.width + child.width, parts.entries + child.entries,
                        parts.flops + child.flops};
      if (!within_bounds(both, rows, options)) continue;
      parts = both;
      into[at(c)] = p;
    }
  }
  for (std::int32_t s = count - 1; s >= 0; --s) into[at(s)] = into[at(into[at(s)])];
  return into;
}

FinalForest final_forest(const SupernodeForest& forest, std::span<const std::int32_t> into) {
  const std::int32_t count = forest.size();
  std::vector<std::int32_t> group(at(count), -1);  // number of each supernode that remains
  std::vector<std::int32_t> last;                  // and which that is
  for (std::int32_t s = 0; s < count; ++s) {
    if (into[at(s)] != s) continue;
    group[at(s)] = static_cast<std::int32_t>(last.size());
    last.push_back(s);
  }
  std::vector<std::int32_t> width(last.size());
  std::vector<std::int32_t> parent(last.size(), -1);
  for (std::int32_t s = 0; s < count; ++s) width[at(group[at(into[at(s)])])] += forest.width[at(s)];
  for (std::size_t g = 0; g < last.size(); ++g) {
    const std::int32_t above = forest.parent[at(last[g])];
    if (above >= 0) parent[g] = group[at(into[at(above)])];
  }
  Children children(parent);
  FinalForest result;
  std::vector<Stack> stack(last.size());
  for (std::size_t g = 0; g < last.size(); ++g) {
    const std::int64_t w = width[g];
    const std::int64_t r = forest.rows[at(last[g])];
    stack[g].update = square_bytes(r);
    stack[g].peak = stack_children(children.of(static_cast<std::int64_t>(g)), stack,
                                   (w + r) * w * 8 + square_bytes(r));
    result.stack_bytes = std::max(result.stack_bytes, parent[g] < 0 ? stack[g].peak : 0);
  }
  const std::vector<std::int32_t> post = postorder(children);
  const std::vector<std::int32_t> number = places_of(post, std::ssize(post));
  SupernodeForest& f = result.forest;
  f.first.assign(1, 0);
  for (const std::int32_t g : post) {
    f.width.push_back(width[at(g)]);
    f.rows.push_back(forest.rows[at(last[at(g)])]);
    f.parent.push_back(parent[at(g)] < 0 ? -1 : number[at(parent[at(g)])]);
    f.first.push_back(f.first.back() + width[at(g)]);
  }
  std::vector<std::int32_t> next(f.first.begin(), f.first.end() - 1);
  result.old_column.resize(at(f.first.back()));
  for (std::int32_t s = 0; s < count; ++s) {  // parts come before what they went into
    std::int32_t& place = next[at(number[at(group[at(into[at(s)])])])];
    for (std::int32_t k = 0; k < forest.width[at(s)]; ++k)
      result.old_column[at(place++)] = forest.first[at(s)] + k;
  }
  return result;
}

namespace {

/// Values of rows, in the order in which they are asked for: the last that came first.
class RowLists {
 public:
  explicit RowLists(std::int64_t rows) : last_(at(rows), -1) {}
  void add(std::int64_t row, std::int32_t value) {
    const std::int32_t before = last_[at(row)];
    if (before >= 0 && value_[at(before)] == value) return;
    require(value_.size() < at(std::numeric_limits<std::int32_t>::max()), ErrorKind::misuse,
            "analyze", "a branch of the elimination tree has more entries than 32 bits count");
    last_[at(row)] = static_cast<std::int32_t>(value_.size());
    before_.push_back(before);
    value_.push_back(value);
  }
  template <class Visit>
  void visit(std::int64_t row, const Visit& visit) const {
    for (std::int32_t k = last_[at(row)]; k >= 0; k = before_[at(k)]) visit(value_[at(k)]);
  }

 private:
  std::vector<std::int32_t> last_;
  std::vector<std::int32_t> before_;
  std::vector<std::int32_t> value_;
};

class RowWalks {
 public:
  RowWalks(const SymmetricPattern& pattern, const SupernodeForest& forest,
           std::span<const std::int32_t> order)
      : pattern_(pattern),
        forest_(forest),
        order_(order),
        place_(places_of(order, pattern.size())),
        owner_(order.size()),
        seen_(forest.width.size(), -1),
        columns_(forest.width.size()) {
    result_.row_start.reserve(forest.width.size() + 1);
    for (std::int32_t s = 0; s < forest.size(); ++s) {
      for (std::int32_t k = forest.first[at(s)]; k < forest.first[at(s + 1)]; ++k)
        owner_[at(order[at(k)])] = s;
      result_.row_start.push_back(result_.row_start.back() + forest.rows[at(s)]);
    }
    result_.row.resize(at(result_.row_start.back()));
    next_.assign(result_.row_start.begin(), result_.row_start.end() - 1);
    for (std::int32_t s = forest.size(); s-- > 0;)
      columns_[at(s)] =
          forest.width[at(s)] + (forest.parent[at(s)] < 0 ? 0 : columns_[at(forest.parent[at(s)])]);
  }

  RowStructure find(WorkCrew& crew) {
    const std::vector<NodeBranch> branches = branches_for(forest_.parent, crew.helpers() + 1);
    crew.share(std::ssize(branches), [&](std::int64_t b) { walk_branch(branches[at(b)]); });
    // Rows that come out of a branch go on above it.
    RowLists entered(branches.empty() ? 0 : pattern_.size());
    std::vector<char> in_branch(at(forest_.size()), 0);
    for (const NodeBranch& branch : branches) {
      std::fill(in_branch.begin() + branch.first, in_branch.begin() + branch.last + 1, 1);
      for (std::int64_t k = result_.row_start[at(branch.last)]; k < next_[at(branch.last)]; ++k)
        entered.add(result_.row[at(k)], forest_.parent[at(branch.last)]);
    }
    for (std::int32_t own = 0; own < forest_.size(); ++own) {
      if (in_branch[at(own)] != 0) continue;
      for (std::int32_t i = forest_.first[at(own)]; i < forest_.first[at(own + 1)]; ++i) {
        seen_[at(own)] = i;
        for (const std::int32_t neighbor : pattern_.neighbors(order_[at(i)])) {
          const std::int32_t s = owner_[at(neighbor)];
          if (s < own && in_branch[at(s)] == 0) walk(s, i, own);
        }
        if (!branches.empty()) entered.visit(i, [&](std::int32_t s) { walk(s, i, own); });
      }
    }
    return std::move(result_);
  }

 private:
  /// Row i lies in s and what is above it, as far as it has not been seen and not beyond `last`.
  void walk(std::int32_t s, std::int32_t i, std::int32_t last) {
    for (; s <= last && seen_[at(s)] != i; s = forest_.parent[at(s)]) {
      seen_[at(s)] = i;
      result_.row[at(next_[at(s)]++)] = i;
    }
  }

  /// All rows of the supernodes of a branch: its own, then those above it.
  void walk_branch(const NodeBranch& branch) {
    const std::int64_t above = columns_[at(branch.last)] - forest_.width[at(branch.last)];
    RowLists later(above);  // by columns to the root, in which rows descend
    const auto number = [&](std::int32_t s, std::int32_t i) {
      return columns_[at(s)] - 1 - (i - forest_.first[at(s)]);
    };
    for (std::int32_t own = branch.first; own <= branch.last; ++own) {
      for (std::int32_t i = forest_.first[at(own)]; i < forest_.first[at(own + 1)]; ++i) {
        seen_[at(own)] = i;
        for (const std::int32_t neighbor : pattern_.neighbors(order_[at(i)])) {
          const std::int32_t s = owner_[at(neighbor)];
          if (s < own) walk(s, i, own);
          if (s > branch.last) later.add(number(s, place_[at(neighbor)]), own);
        }
      }
    }
    for (std::int32_t s = forest_.parent[at(branch.last)]; s >= 0; s = forest_.parent[at(s)])
      for (std::int32_t i = forest_.first[at(s)]; i < forest_.first[at(s + 1)]; ++i)
        later.visit(number(s, i), [&](std::int32_t t) { walk(t, i, branch.last); });
  }

  const SymmetricPattern& pattern_;
  const SupernodeForest& forest_;
  std::span<const std::int32_t> order_;
  std::vector<std::int32_t> place_;
  std::vector<std::int32_t> owner_;    // of each row of the matrix
  std::vector<std::int32_t> seen_;     // of each supernode the last row that came through
  std::vector<std::int64_t> columns_;  // from each supernode up to its root
  std::vector<std::int64_t> next_;
  RowStructure result_;
};

}  // namespace

RowStructure row_structure(const SymmetricPattern& pattern, const SupernodeForest& forest,
                           std::span<const std::int32_t> order, WorkCrew& crew) {
  return RowWalks(pattern, forest, order).find(crew);
}

}  // namespace strata
