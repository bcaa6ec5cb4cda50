#include "store/memory_store.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <new>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/host_memory.hpp"
#include "base/work_crew.hpp"

namespace strata {
namespace {

/// What one thread fills at a time: long enough that taking it costs nothing.
constexpr std::int64_t kPieceBytes = std::int64_t{16} << 20;

std::shared_ptr<std::byte> allocate_pageable(std::int64_t bytes) {
  try {
    // Whole pages: they may be pinned, and so may a neighbour's.
    constexpr std::align_val_t kAlignment{4096};
    constexpr auto kPage = static_cast<std::size_t>(kAlignment);
    const std::size_t pages =
        std::max((static_cast<std::size_t>(bytes) + kPage - 1) / kPage, std::size_t{1});
    auto* data = static_cast<std::byte*>(::operator new(pages* kPage, kAlignment));
    return {data, [](std::byte* p) { ::operator delete(p, kAlignment); }};
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "store", "the system refused {} of host memory; {} are free",
         format_bytes(bytes), format_bytes(available_host_memory()));
  }
}

std::shared_ptr<std::byte> allocate_unreserved(std::int64_t bytes) {
  const std::size_t size = std::max<std::size_t>(static_cast<std::size_t>(bytes), 1);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(data != MAP_FAILED, ErrorKind::memory, "store", "the system refused {} of address space",
          format_bytes(bytes));
  return {static_cast<std::byte*>(data), [size](std::byte* p) { (void)::munmap(p, size); }};
}

}  // namespace

FamilyMemory::FamilyMemory(const BlockTable& blocks, int family, BlockSource source)
    : data_(blocks.family(family).origin == Origin::temporary || blocks.family(family).stays
                ? allocate_unreserved(blocks.total_bytes(family))
                : allocate_pageable(blocks.total_bytes(family))),
      source_(std::move(source)),
      written_(static_cast<std::size_t>(blocks.count(family))) {}

FamilyMemory::FamilyMemory(const BlockTable& blocks, int family, std::byte* data)
    : data_(data, [](std::byte*) {}), written_(static_cast<std::size_t>(blocks.count(family))) {
  for (std::int64_t block = 0; block < blocks.count(family); ++block) mark_written(block);
}

std::shared_ptr<FamilyMemory> FamilyMemory::without_memory(const BlockTable& blocks, int family,
                                                           BlockSource source) {
  return std::make_shared<FamilyMemory>(blocks.count(family), std::move(source));
}

void FamilyMemory::reset(BlockSource source) {
  source_ = std::move(source);
  for (std::atomic<bool>& flag : written_) flag.store(false, std::memory_order_release);
}

MemoryStore::MemoryStore(BlockTable blocks, std::vector<std::shared_ptr<FamilyMemory>> families)
    : blocks_(std::move(blocks)), families_(std::move(families)) {
  std::int64_t first = 0;
  for (int f = 0; f < blocks_.families(); ++f) {
    first_index_.push_back(first);
    first += blocks_.count(f);
  }
}

FamilyMemory& MemoryStore::memory(BlockId id) const {
  require(blocks_.contains(id) && families_[static_cast<std::size_t>(id.family())] != nullptr,
          ErrorKind::storage, "store", "there is no place for block {}",
          blocks_.contains(id) ? blocks_.name(id) : "?");
  return *families_[static_cast<std::size_t>(id.family())];
}

std::int64_t MemoryStore::index_in_family(BlockId id) const {
  return blocks_.index(id) - first_index_[static_cast<std::size_t>(id.family())];
}

void MemoryStore::read(BlockId id, std::byte* to) {
  (void)memory(id);  // there is a place for it
  read_columns(id, 0, blocks_.extent(id).cols, to);
}

void MemoryStore::read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to) {
  FamilyMemory& family = memory(id);
  const std::int64_t column = blocks_.column_bytes(id);
  if (column == 0) return;  // it has no bytes, and a source knows nothing of that
  if (family.written(index_in_family(id))) {
    std::memcpy(to, family.data() + blocks_.byte_offset(id) + first * column,
                static_cast<std::size_t>(count * column));
    return;
  }
  require(family.source() != nullptr, ErrorKind::storage, "store", "block {} was never written",
          blocks_.name(id));
  const BlockExtent x = blocks_.extent(id);
  family.source()({x.row, x.col + first, x.rows, count}, to);
}

void MemoryStore::write(BlockId id, const std::byte* from) {
  FamilyMemory& family = memory(id);
  if (blocks_.bytes(id) > 0)  // memory of no bytes has no address to copy from
    std::memcpy(lend_for_writing(id), from, static_cast<std::size_t>(blocks_.bytes(id)));
  family.mark_written(index_in_family(id));
}

void MemoryStore::write_columns(BlockId id, std::int64_t first, std::int64_t count,
                                const std::byte* from) {
  const std::int64_t column = blocks_.column_bytes(id);
  if (column == 0) return;
  std::memcpy(lend_for_writing(id) + first * column, from,
              static_cast<std::size_t>(count * column));
}

const std::byte* MemoryStore::lend(BlockId id) {
  return memory(id).written(index_in_family(id)) ? lend_for_writing(id) : nullptr;
}

std::byte* MemoryStore::lend_for_writing(BlockId id) {
  FamilyMemory& family = memory(id);
  require(family.data() != nullptr, ErrorKind::storage, "store", "block {} is never written",
          blocks_.name(id));
  return family.data() + blocks_.byte_offset(id);
}

void MemoryStore::commit(BlockId id) { memory(id).mark_written(index_in_family(id)); }

void MemoryStore::materialize(int family, int threads) {
  // Columns of a block are a packed block themselves: a large one is shared by the threads.
  struct Piece {
    BlockExtent extent;
    std::byte* to;
  };
  std::vector<BlockId> ids;
  std::vector<Piece> pieces;
  blocks_.for_each(family, [&](BlockId id) {
    const std::int64_t column = blocks_.column_bytes(id);
    if (memory(id).written(index_in_family(id)) || column == 0) return;
    require(memory(id).source() != nullptr, ErrorKind::storage, "store",
            "block {} was never written", blocks_.name(id));
    ids.push_back(id);
    const BlockExtent x = blocks_.extent(id);
    const std::int64_t columns = std::max<std::int64_t>(kPieceBytes / column, 1);
    for (std::int64_t j = 0; j < x.cols; j += columns) {
      pieces.push_back({{x.row, x.col + j, x.rows, std::min(columns, x.cols - j)},
                        lend_for_writing(id) + j * column});
    }
  });
  WorkCrew(threads - 1).share(std::ssize(pieces), [&](std::int64_t i) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    families_[static_cast<std::size_t>(family)]->source()(piece.extent, piece.to);
  });
  for (const BlockId id : ids) commit(id);
}

template <class T>
BlockSource source_of_view(const T* data, std::int64_t ld, bool lower) {
  return [=](const BlockExtent& extent, std::byte* to) {
    auto* out = reinterpret_cast<T*>(to);
    for (std::int64_t j = 0; j < extent.cols; ++j) {
      const T* column = data + extent.row + (extent.col + j) * ld;
      T* packed = out + j * extent.rows;
      const std::int64_t above =
          lower ? std::clamp<std::int64_t>(extent.col + j - extent.row, 0, extent.rows) : 0;
      std::fill(packed, packed + above, T(0));
      std::copy(column + above, column + extent.rows, packed + above);
    }
  };
}

template BlockSource source_of_view(const double*, std::int64_t, bool);
template BlockSource source_of_view(const float*, std::int64_t, bool);
template BlockSource source_of_view(const std::int64_t*, std::int64_t, bool);
template BlockSource source_of_view(const std::complex<double>*, std::int64_t, bool);
template BlockSource source_of_view(const std::complex<float>*, std::int64_t, bool);

}  // namespace strata
