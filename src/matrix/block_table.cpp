#include "matrix/block_table.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr int kFamiliesMax = 255;  // the family is one byte of a BlockId, and all ones is no block

std::int64_t blocks_of(std::int64_t extent, std::int64_t tile) {
  return extent / tile + (extent % tile != 0 ? 1 : 0);
}

}  // namespace

int BlockTable::add(BlockFamily family) {
  if (!family.listed.empty()) {
    family.rows = std::ssize(family.listed);
    family.cols = 1;
    family.tile_rows = family.tile_cols = 1;
    family.shape = Shape::rectangle;
  }
  require(family.rows >= 0 && family.cols >= 0, ErrorKind::misuse, "matrix",
          "{}: a matrix cannot be {} by {}", family.name, family.rows, family.cols);
  require(family.tile_rows >= 1 && family.tile_cols >= 1, ErrorKind::misuse, "matrix",
          "{}: a tile cannot be {} by {}", family.name, family.tile_rows, family.tile_cols);
  require(family.shape != Shape::lower ||
              (family.rows == family.cols && family.tile_rows == family.tile_cols),
          ErrorKind::misuse, "matrix", "{}: a triangle must be square, not {} by {}", family.name,
          family.rows, family.cols);
  require(!family.stays || family.identity != 0, ErrorKind::misuse, "matrix",
          "{}: blocks that stay on the devices need an identity", family.name);
  require(families() < kFamiliesMax, ErrorKind::misuse, "matrix", "{}: more than {} families",
          family.name, kFamiliesMax);
  Entry e;
  e.block_rows = blocks_of(family.rows, family.tile_rows);
  e.block_cols = blocks_of(family.cols, family.tile_cols);
  const double bytes = static_cast<double>(family.rows) * static_cast<double>(family.cols) *
                       static_cast<double>(bytes_of(family.element));
  require(bytes < 0x1p62 && std::max(e.block_rows, e.block_cols) < (1 << 28), ErrorKind::misuse,
          "matrix", "{}: {} by {} elements are past what this library can address", family.name,
          family.rows, family.cols);
  e.count = family.shape == Shape::lower ? e.block_rows * (e.block_rows + 1) / 2
                                         : e.block_rows * e.block_cols;
  e.first_index = count_;
  require(family.elements.empty() || std::ssize(family.elements) == e.count, ErrorKind::misuse,
          "matrix", "{}: {} elements for {} blocks", family.name, family.elements.size(), e.count);
  e.family = std::move(family);
  entries_.push_back(std::move(e));
  Entry& added = entries_.back();
  const BlockFamily& f = added.family;
  if (f.listed.empty() && f.elements.empty()) {
    const std::int64_t size = bytes_of(f.element);
    added.capacity_bytes = std::min(f.rows, f.tile_rows) * std::min(f.cols, f.tile_cols) * size;
    added.total_bytes = added.count == 0 ? 0 : elements_before(added, 0, added.block_cols) * size;
  } else {
    try {
      list_offsets(added, families() - 1);
    } catch (...) {
      entries_.pop_back();
      throw;
    }
  }
  count_ += added.count;
  return families() - 1;
}

/// Offsets block by block: their sizes follow no formula.
void BlockTable::list_offsets(Entry& e, int f) {
  e.offsets.reserve(static_cast<std::size_t>(e.count));
  double total = 0;
  for_each(f, [&](BlockId id) {
    const BlockExtent x = extent(id);
    require(x.rows >= 0 && x.cols >= 0, ErrorKind::misuse, "matrix", "{} cannot be {} by {}",
            name(id), x.rows, x.cols);
    total += static_cast<double>(x.rows) * static_cast<double>(x.cols) *
             static_cast<double>(bytes_of(element(id)));
    require(total < 0x1p62, ErrorKind::misuse, "matrix",
            "{}: its blocks are past what this library can address", e.family.name);
    e.offsets.push_back(e.total_bytes);
    e.total_bytes += bytes(id);
    e.capacity_bytes = std::max(e.capacity_bytes, bytes(id));
  });
}

void BlockTable::keep(int f, std::uint64_t identity, bool stays) {
  require(identity != 0 || !stays, ErrorKind::misuse, "matrix",
          "{}: blocks that stay on the devices need an identity", family(f).name);
  Entry& kept = entries_[static_cast<std::size_t>(f)];
  kept.family.identity = identity;
  kept.family.stays = stays;
}

void BlockTable::keep_in_storage(int f, bool in_storage) {
  entries_[static_cast<std::size_t>(f)].family.in_storage = in_storage;
}

void BlockTable::place(int f, std::uint64_t identity) {
  BlockFamily& family = entries_[static_cast<std::size_t>(f)].family;
  family.placed = family.stays = true;
  family.identity = identity;
}

bool BlockTable::operator==(const BlockTable& other) const {
  return std::equal(entries_.begin(), entries_.end(), other.entries_.begin(), other.entries_.end(),
                    [](const Entry& a, const Entry& b) { return a.family == b.family; });
}

std::int64_t BlockTable::column_bytes(BlockId id) const {
  return extent(id).rows * bytes_of(element(id));
}

bool BlockTable::contains(BlockId id) const {
  if (!id.valid() || id.family() >= families()) return false;
  const Entry& e = entry(id.family());
  if (id.row() >= e.block_rows || id.col() >= e.block_cols) return false;
  return e.family.shape == Shape::rectangle || id.row() >= id.col();
}

/// Elements of the packed blocks that come before block (row, col), column by column.
std::int64_t BlockTable::elements_before(const Entry& e, std::int64_t row, std::int64_t col) const {
  const BlockFamily& f = e.family;
  const std::int64_t cols_before = std::min(col * f.tile_cols, f.cols);
  const std::int64_t width = std::min(f.tile_cols, f.cols - cols_before);
  if (f.shape == Shape::rectangle) return cols_before * f.rows + row * f.tile_rows * width;
  // Whole block columns c < col hold (rows − c·tile)·width_c elements; only the last one may be
  // narrower.
  const std::int64_t full = std::min(col, f.cols / f.tile_cols);
  std::int64_t elements =
      full * f.rows * f.tile_cols - full * (full - 1) / 2 * f.tile_cols * f.tile_cols;
  if (full < col) elements += (f.rows - full * f.tile_rows) * (cols_before - full * f.tile_cols);
  return elements + (row > col ? (row - col) * f.tile_rows * width : 0);
}

std::int64_t BlockTable::byte_offset(BlockId id) const {
  const Entry& e = entry(id.family());
  if (!e.offsets.empty()) return e.offsets[position(id)];
  return elements_before(e, id.row(), id.col()) * bytes_of(e.family.element);
}

std::string BlockTable::name(BlockId id) const {
  return fmt::format("{}({},{})", family(id.family()).name, id.row(), id.col());
}

}  // namespace strata
