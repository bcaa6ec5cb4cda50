#pragma once
// The blocks of one problem: pure geometry, owns no data.
//
// Contract: a problem has a few *families* of blocks (the tiles of a lower triangle, the row blocks
// of a right-hand side, the coordinates of the observations). A *regular* family cuts a rows × cols
// matrix into blocks of at most tile_rows × tile_cols elements; only the last block row and column
// may be smaller. A *listed* family is a list of blocks of any extents (sparse panels), numbered
// (i, 0). The blocks of a family have one element, or each its own (a map of precisions). A block
// is packed: column-major with ld equal to its own number of rows, so it moves as one contiguous
// run of bytes. Extents and byte counts are 64-bit; a regular family of one element takes O(1)
// memory whatever the number of its blocks.

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/element.hpp"

namespace strata {

/// Where the first value of a block comes from.
enum class Origin : std::uint8_t {
  stored,     ///< it rests in a BlockStore and is read from there
  generated,  ///< a task writes it where it is first needed: no transfer
  /// The same, and the value is not needed when the tasks are done: it is written back only if it
  /// is evicted before its last use.
  temporary,
};

enum class Shape : std::uint8_t { rectangle, lower };  ///< lower: only blocks with row >= col exist

/// Where a block lies in its family's matrix, in elements.
struct BlockExtent {
  std::int64_t row = 0;
  std::int64_t col = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool operator==(const BlockExtent&) const = default;
};

struct BlockFamily {
  std::string name;
  std::int64_t rows = 0;  ///< elements
  std::int64_t cols = 0;  ///< elements
  std::int64_t tile_rows = 1;
  std::int64_t tile_cols = 1;
  Shape shape = Shape::rectangle;
  Element element = Element::fp64;
  Origin origin = Origin::stored;
  /// What its blocks are called from plan to plan: blocks that one plan left on a device are found
  /// by the next in the family with the same identity. 0: they are not.
  std::uint64_t identity = 0;
  /// Blocks that a task has written stay on their devices as long as there is room, in the next
  /// plan too, and go home only if they have to leave. With an identity only.
  bool stays = false;
  /// Blocks lie where the caller says, in memory of the devices whose tasks use them and with a
  /// leading dimension of its own; only in resident schedules, and they stay. Without an identity
  /// stored ones are there when a run begins, each on one device.
  bool placed = false;
  /// Blocks rest in storage, where the machine has it, and come to the devices by way of host
  /// memory, which need not hold them all. Not together with `placed`.
  bool in_storage = false;
  /// The element of each block, in the order of BlockTable::index; empty: `element` for all.
  std::vector<Element> elements{};
  /// A listed family: the extent of each block. The rest of the geometry above is not read.
  std::vector<BlockExtent> listed{};
  /// Blocks of a listed family lie in slots that hold any of them: where few are at hand at a time,
  /// and slots for each size would take more.
  bool same_slots = false;
  bool operator==(const BlockFamily&) const = default;
};

/// Names one block: family, block row, block column. 8 bytes, totally ordered.
struct BlockId {
  std::uint64_t bits = ~std::uint64_t{0};

  BlockId() = default;
  constexpr BlockId(int family, std::int64_t row, std::int64_t col)
      : bits(static_cast<std::uint64_t>(family) << 56 | static_cast<std::uint64_t>(row) << 28 |
             static_cast<std::uint64_t>(col)) {}

  [[nodiscard]] constexpr int family() const noexcept { return static_cast<int>(bits >> 56); }
  [[nodiscard]] constexpr std::int64_t row() const noexcept {
    return static_cast<std::int64_t>(bits >> 28 & 0xfffffff);
  }
  [[nodiscard]] constexpr std::int64_t col() const noexcept {
    return static_cast<std::int64_t>(bits & 0xfffffff);
  }
  [[nodiscard]] constexpr bool valid() const noexcept { return bits != ~std::uint64_t{0}; }
  auto operator<=>(const BlockId&) const = default;
};

class BlockTable {
 public:
  /// Adds a family and returns its number. Throws Error{misuse} on a negative extent, a tile below
  /// 1, a `lower` family that is not square, a byte count past 2^62, 2^28 block rows or columns, a
  /// map of elements that has not one for each block, or a 256th family.
  int add(BlockFamily family);
  /// Names a family for later plans (BlockFamily::identity), and says whether its blocks stay.
  void keep(int f, std::uint64_t identity, bool stays);
  /// Says that the blocks of a family lie where the caller has them (BlockFamily::placed).
  void place(int f, std::uint64_t identity = 0);

  /// Says whether the blocks of a family rest in storage (BlockFamily::in_storage).
  void keep_in_storage(int f, bool in_storage = true);

  [[nodiscard]] int families() const noexcept { return static_cast<int>(entries_.size()); }
  [[nodiscard]] const BlockFamily& family(int f) const { return entry(f).family; }
  [[nodiscard]] std::int64_t block_rows(int f) const { return entry(f).block_rows; }
  [[nodiscard]] std::int64_t block_cols(int f) const { return entry(f).block_cols; }

  [[nodiscard]] BlockExtent extent(BlockId id) const {
    const BlockFamily& f = family(id.family());
    if (!f.listed.empty()) return f.listed[static_cast<std::size_t>(id.row())];
    const std::int64_t row = id.row() * f.tile_rows;
    const std::int64_t col = id.col() * f.tile_cols;
    return {row, col, std::min(f.tile_rows, f.rows - row), std::min(f.tile_cols, f.cols - col)};
  }
  [[nodiscard]] Element element(BlockId id) const {
    const BlockFamily& f = family(id.family());
    return f.elements.empty() ? f.element : f.elements[position(id)];
  }
  [[nodiscard]] std::int64_t bytes(BlockId id) const {
    const BlockExtent x = extent(id);
    return x.rows * x.cols * bytes_of(element(id));
  }
  /// Bytes of one column of a block.
  [[nodiscard]] std::int64_t column_bytes(BlockId id) const;
  [[nodiscard]] bool contains(BlockId id) const;

  /// Bytes of the largest block of a family (0 if it has none).
  [[nodiscard]] std::int64_t capacity_bytes(int f) const { return entry(f).capacity_bytes; }
  /// Bytes of all blocks of a family.
  [[nodiscard]] std::int64_t total_bytes(int f) const { return entry(f).total_bytes; }
  /// Number of blocks of a family, and of all families together.
  [[nodiscard]] std::int64_t count(int f) const { return entry(f).count; }
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }

  /// Position of a block in 0 … count() − 1: families in order, each column by column.
  [[nodiscard]] std::int64_t index(BlockId id) const {
    const Entry& e = entry(id.family());
    const std::int64_t col = id.col();
    if (e.family.shape == Shape::rectangle) return e.first_index + col * e.block_rows + id.row();
    return e.first_index + col * e.block_rows - col * (col - 1) / 2 + (id.row() - col);
  }
  /// Calls visit(BlockId) for the blocks of a family, in the order of their indices.
  template <class F>
  void for_each(int f, F&& visit) const {
    for (std::int64_t c = 0; c < block_cols(f); ++c) {
      for (std::int64_t r = family(f).shape == Shape::lower ? c : 0; r < block_rows(f); ++r)
        visit(BlockId(f, r, c));
    }
  }
  /// Byte offset of a block among the packed blocks of its family, in the order of `index`.
  [[nodiscard]] std::int64_t byte_offset(BlockId id) const;

  /// "A(3,1)": the family's name, block row and block column.
  [[nodiscard]] std::string name(BlockId id) const;

  /// Whether all families are the same.
  bool operator==(const BlockTable& other) const;

 private:
  struct Entry {
    BlockFamily family;
    std::int64_t block_rows = 0;
    std::int64_t block_cols = 0;
    std::int64_t count = 0;
    std::int64_t first_index = 0;
    std::int64_t capacity_bytes = 0;
    std::int64_t total_bytes = 0;
    std::vector<std::int64_t> offsets{};  // by block, where no formula gives them
  };
  [[nodiscard]] const Entry& entry(int f) const { return entries_[static_cast<std::size_t>(f)]; }
  [[nodiscard]] std::size_t position(BlockId id) const {
    return static_cast<std::size_t>(index(id) - entry(id.family()).first_index);
  }
  void list_offsets(Entry& e, int f);
  [[nodiscard]] std::int64_t elements_before(const Entry& e, std::int64_t row,
                                             std::int64_t col) const;

  std::vector<Entry> entries_;
  std::int64_t count_ = 0;
};

}  // namespace strata
