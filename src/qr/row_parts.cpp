// Blocks of V in parts, and the tree of their sums.
//
// Method: the sum of R rows is that of the first 2^k, the largest power of two below R, and that of
// the others, down to blocks. Names of sums are used again by the device that has done with them,
// which costs no waiting.

#include "qr/row_parts.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.hpp"

namespace strata {
namespace {

std::int64_t floor_power(std::int64_t x) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(x)));
}
/// The largest power of two that divides x > 0.
std::int64_t alignment_of(std::int64_t x) { return x & -x; }

}  // namespace

std::vector<RowBlock> blocks_of_parts(const std::vector<std::int64_t>& part_rows,
                                      std::int64_t height_max, bool equal) {
  const std::int64_t m = std::accumulate(part_rows.begin(), part_rows.end(), std::int64_t{0});
  std::vector<RowBlock> blocks;
  std::int64_t row = 0;
  std::int64_t end = 0;
  for (std::size_t p = 0; p < part_rows.size(); ++p) {
    for (end += part_rows[p]; row < end; row += blocks.back().rows) {
      const std::int64_t aligned =
          equal || row == 0 ? height_max : std::min(height_max, alignment_of(row));
      const bool rest = end == m && m - row <= aligned;
      const std::int64_t rows = rest ? m - row : std::min(aligned, floor_power(end - row));
      require(!equal || rest || rows == height_max, ErrorKind::misuse, "qr",
              "a part of V ends at row {}, which is no multiple of {}", end, height_max);
      blocks.push_back({row, rows, static_cast<int>(p)});
    }
  }
  return blocks;
}

std::int64_t common_height(const std::vector<std::int64_t>& part_rows, std::int64_t most) {
  std::int64_t height = most;
  std::int64_t end = 0;
  for (std::size_t p = 0; p + 1 < part_rows.size(); ++p) {
    end += part_rows[p];
    const bool rest = std::all_of(part_rows.begin() + static_cast<std::ptrdiff_t>(p) + 1,
                                  part_rows.end(), [](std::int64_t rows) { return rows == 0; });
    if (end > 0 && !rest) height = std::min(height, alignment_of(end));
  }
  return height;
}

PartTree::PartTree(std::vector<RowBlock> blocks, int queues)
    : blocks_(std::move(blocks)),
      queues_(queues),
      names_(blocks_.size(), -1),
      joins_(blocks_.size()) {
  int parts = 0;
  for (const RowBlock& block : blocks_) {
    nodes_.push_back({.part = block.part});
    parts = std::max(parts, block.part + 1);
  }
  idle_.resize(static_cast<std::size_t>(parts));
  const auto blocks_count = static_cast<int>(blocks_.size());
  if (blocks_count == 0) return;
  (void)build(0, blocks_.size());
  std::vector<int> of_part(blocks_.size());
  std::vector<int> counts(static_cast<std::size_t>(parts));
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    of_part[b] = counts[static_cast<std::size_t>(blocks_[b].part)]++;
    devices_.push_back(blocks_[b].part * queues_ + of_part[b] % queues_);
  }
  order_.resize(blocks_.size());
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
    return of_part[static_cast<std::size_t>(a)] < of_part[static_cast<std::size_t>(b)];
  });
  if (blocks_count == 1) return;
  for (const std::int64_t b : order_) {
    Node& leaf = nodes_[static_cast<std::size_t>(b)];
    leaf.name = names_[static_cast<std::size_t>(b)] = take_name(leaf.part);
    leaf.ready = true;
    for (int above = leaf.parent; above >= 0;) {
      const Node& sum = nodes_[static_cast<std::size_t>(above)];
      const auto is_ready = [&](int i) { return nodes_[static_cast<std::size_t>(i)].ready; };
      if (sum.spans || !is_ready(sum.left) || !is_ready(sum.right)) break;
      const int next = sum.parent;
      join(above, joins_[static_cast<std::size_t>(b)]);
      above = next;
    }
  }
  // Nodes are behind those that they join.
  for (int i = blocks_count; i < static_cast<int>(nodes_.size()); ++i) {
    if (!nodes_[static_cast<std::size_t>(i)].ready) join(i, late_);
  }
}

/// The node of blocks first … end − 1.
int PartTree::build(std::size_t first, std::size_t end) {
  if (end - first == 1) return static_cast<int>(first);
  const std::int64_t row = blocks_[first].row;
  const std::int64_t rows = blocks_[end - 1].row + blocks_[end - 1].rows - row;
  const std::int64_t middle = row + floor_power(rows - 1);
  const auto at = std::lower_bound(
      blocks_.begin() + static_cast<std::ptrdiff_t>(first),
      blocks_.begin() + static_cast<std::ptrdiff_t>(end), middle,
      [](const RowBlock& block, std::int64_t of_row) { return block.row < of_row; });
  const auto cut = static_cast<std::size_t>(at - blocks_.begin());
  require(cut > first && cut < end && at->row == middle, ErrorKind::misuse, "qr",
          "blocks of V do not meet at row {}", middle);
  const int left = build(first, cut);
  const int right = build(cut, end);
  const Node& l = nodes_[static_cast<std::size_t>(left)];
  const Node& r = nodes_[static_cast<std::size_t>(right)];
  const int number = static_cast<int>(nodes_.size());
  const Node sum{.left = left,
                 .right = right,
                 .part = r.part,
                 .spans = l.spans || r.spans || l.part != r.part};
  nodes_.push_back(sum);
  nodes_[static_cast<std::size_t>(left)].parent = number;
  nodes_[static_cast<std::size_t>(right)].parent = number;
  return number;
}

int PartTree::take_name(int part) {
  std::vector<int>& idle = idle_[static_cast<std::size_t>(part)];
  if (idle.empty()) return count_++;
  const int name = idle.back();
  idle.pop_back();
  return name;
}

void PartTree::join(int node, std::vector<Join>& into) {
  Node& sum = nodes_[static_cast<std::size_t>(node)];
  const Node& left = nodes_[static_cast<std::size_t>(sum.left)];
  const Node& right = nodes_[static_cast<std::size_t>(sum.right)];
  sum.name = sum.parent < 0 ? -1 : take_name(sum.part);
  sum.ready = true;
  into.push_back({sum.name, left.name, right.name, sum.part * queues_, is_late(node)});
  for (const Node* done : {&left, &right}) {
    if (done->part == sum.part && !sum.spans)
      idle_[static_cast<std::size_t>(sum.part)].push_back(done->name);
  }
}

}  // namespace strata
