#pragma once
// V in parts, ranges of its rows that lie in the memory of several devices: its blocks, and the
// tree in which they are summed.
//
// Contract: pure data. A part begins at a multiple of qr_part_multiple() rows, a power of two. So a
// sum over a block that begins at a multiple of its own height, a power of two, is a node of the
// tree of the whole (kernels/tall/gram.hpp), whatever parts there are. Blocks are as large as that
// allows, and of one part; the last block of V alone may be of any height.

#include <cstdint>
#include <vector>

namespace strata {

struct RowBlock {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  int part = 0;
};

/// Rows of parts, one a device, into blocks of at most height_max rows, a power of two; where
/// `equal`, all but the last are that high. Parts without rows have no blocks.
[[nodiscard]] std::vector<RowBlock> blocks_of_parts(const std::vector<std::int64_t>& part_rows,
                                                    std::int64_t height_max, bool equal);
/// The largest power of two that divides where parts begin, at most `most`.
[[nodiscard]] std::int64_t common_height(const std::vector<std::int64_t>& part_rows,
                                         std::int64_t most);

class PartTree {
 public:
  struct Join {
    int to = -1;  ///< a name; −1: the whole sum
    int left = 0;
    int right = 0;
    int device = 0;
    bool late = false;  ///< its sum is added up behind all blocks
  };

  /// Devices of tasks are queues, so many of each part's device: its blocks take turns, so that one
  /// begins where the one before leaves room; sums are in the first.
  explicit PartTree(std::vector<RowBlock> blocks, int queues = 1);

  [[nodiscard]] const std::vector<RowBlock>& blocks() const noexcept { return blocks_; }
  /// In the order of tasks: the k-th block of each device, so that no device waits for the tasks of
  /// another to be put into its queue.
  [[nodiscard]] const std::vector<std::int64_t>& order() const noexcept { return order_; }
  [[nodiscard]] int device_of(std::int64_t b) const {
    return devices_[static_cast<std::size_t>(b)];
  }
  /// Where the sum of a block goes; −1: it is the whole.
  [[nodiscard]] int name(std::int64_t b) const { return names_[static_cast<std::size_t>(b)]; }
  /// Whether the sum of a block is added up behind all blocks.
  [[nodiscard]] bool is_late(std::int64_t b) const {
    const int parent = nodes_[static_cast<std::size_t>(b)].parent;
    return parent >= 0 && nodes_[static_cast<std::size_t>(parent)].spans;
  }
  /// Sums of blocks of one device that the task of block b, which is in the order above, completes.
  [[nodiscard]] const std::vector<Join>& joins(std::int64_t b) const {
    return joins_[static_cast<std::size_t>(b)];
  }
  /// Those of several devices, to be added up behind all blocks, in this order.
  [[nodiscard]] const std::vector<Join>& late_joins() const noexcept { return late_; }
  [[nodiscard]] int device_of_sum() const noexcept { return nodes_.back().part * queues_; }
  /// How many names there are.
  [[nodiscard]] int count() const noexcept { return count_; }

 private:
  struct Node {
    int left = -1;
    int right = -1;
    int parent = -1;
    int part = 0;        ///< on whose device its sum is
    bool spans = false;  ///< several parts
    bool ready = false;
    int name = -1;
  };
  int build(std::size_t first, std::size_t end);
  int take_name(int part);
  void join(int node, std::vector<Join>& into);

  std::vector<RowBlock> blocks_;
  int queues_;
  std::vector<int> devices_;  ///< of the tasks of blocks
  std::vector<std::int64_t> order_;
  std::vector<int> names_;
  std::vector<std::vector<Join>> joins_;
  std::vector<Join> late_;
  std::vector<Node> nodes_;             ///< blocks first, then sums, each behind its two
  std::vector<std::vector<int>> idle_;  ///< names that the device of a part has done with
  int count_ = 0;
};

}  // namespace strata
