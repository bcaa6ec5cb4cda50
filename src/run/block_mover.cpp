#include "run/block_mover.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

/// The most that a slot of a ring has to hold at once.
std::int64_t largest_part(const BlockStore& store) {
  const BlockTable& blocks = store.blocks();
  std::int64_t bytes = 0;
  for (int f = 0; f < blocks.families(); ++f) {
    const std::int64_t columns =
        std::max<std::int64_t>(std::min(blocks.family(f).cols, blocks.family(f).tile_cols), 1);
    bytes = std::max(bytes, blocks.capacity_bytes(f) / (store.divisible() ? columns : 1));
  }
  return bytes;
}

}  // namespace

BlockMover::BlockMover(DeviceSet& devices, BlockStore& store, int device_count, Failed failed)
    : on_host_(devices.backend().on_host()),
      store_(store),
      pinned_(devices.pinned()),
      stored_(on_host_ ? 0 : static_cast<std::size_t>(store.blocks().count())),
      failed_(std::move(failed)) {
  const std::int64_t bytes = on_host_ ? 0 : largest_part(store);
  for (int d = 0; !on_host_ && d < device_count; ++d) rings_.push_back(&devices.ring(d, bytes));
}

template <class Direct, class Ringed>
void BlockMover::cut_by_pinning(BlockId id, const std::byte* home, Direct direct,
                                Ringed ringed) const {
  const std::int64_t columns = store_.blocks().extent(id).cols;
  const std::int64_t column = store_.blocks().column_bytes(id);
  if (column == 0) return;
  for (std::int64_t j = 0; j < columns;) {
    const std::int64_t left = columns - j;
    const PinnedRanges::Answer answer = home == nullptr
                                            ? PinnedRanges::Answer{false, left * column}
                                            : pinned_.at(home + j * column, left * column);
    const bool whole = answer.bytes >= column;
    // A column across the end of a range goes through the ring.
    const std::int64_t count = answer.pinned ? std::max<std::int64_t>(answer.bytes / column, 1)
                                             : (answer.bytes + column - 1) / column;
    if (answer.pinned && whole) {
      direct(j * column, count * column);
    } else {
      ringed(BlockColumns{id, j, count}, j * column);
    }
    j += count;
  }
}

void BlockMover::load(Queue& queue, int device, BlockId id, std::byte* to) {
  if (on_host_) {
    queue.submit([&store = store_, id, to] { store.read(id, to); });
    return;
  }
  await_home(id);
  const auto index = static_cast<std::size_t>(store_.blocks().index(id));
  const bool home = stored_[index].load(std::memory_order_acquire) || store_.written(id);
  std::byte* from = home ? store_.address(id) : nullptr;
  cut_by_pinning(
      id, from,
      [&](std::int64_t offset, std::int64_t bytes) {
        queue.copy(to + offset, from + offset, bytes, CopyDirection::host_to_device);
      },
      [&](const BlockColumns& columns, std::int64_t offset) {
        rings_[static_cast<std::size_t>(device)]->send(queue, to + offset, store_, columns);
      });
}

void BlockMover::store(Queue& queue, int device, BlockId id, const std::byte* from) {
  if (on_host_) {
    queue.submit([&store = store_, id, from] { store.write(id, from); });
    return;
  }
  await_home(id);
  stored_[static_cast<std::size_t>(store_.blocks().index(id))].store(true,
                                                                     std::memory_order_release);
  std::byte* to = store_.address(id);
  std::vector<std::pair<BlockColumns, std::int64_t>> ringed;
  cut_by_pinning(
      id, to,
      [&](std::int64_t offset, std::int64_t bytes) {
        queue.copy(to + offset, from + offset, bytes, CopyDirection::device_to_host);
      },
      [&](const BlockColumns& columns, std::int64_t offset) {
        ringed.emplace_back(columns, offset);
      });
  if (ringed.empty()) return;
  // Behind what is copied straight: when these are home, all is.
  expect_home(id, static_cast<int>(ringed.size()));
  for (const auto& [columns, offset] : ringed) {
    rings_[static_cast<std::size_t>(device)]->receive(
        queue, from + offset, store_, columns,
        [this, id](std::exception_ptr failure) { note_home(id, std::move(failure)); });
  }
}

void BlockMover::await_home(BlockId id) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return abandoned_ || is_home(id); });
}

void BlockMover::expect_home(BlockId id, int parts) {
  const std::lock_guard lock(mutex_);
  coming_home_[id].parts += parts;
}

void BlockMover::note_home(BlockId id, std::exception_ptr failure) {
  if (failure) {
    failed_(std::move(failure));
    return;  // those who wait are woken by the end of the run
  }
  {
    const std::lock_guard lock(mutex_);
    Coming& coming = coming_home_.at(id);
    if (--coming.parts == 0) {
      store_.mark_written(id);
      if (coming.copied) coming_home_.erase(id);
    }
  }
  arrived_.notify_all();
}

void BlockMover::stored(BlockId id) {
  if (on_host_) return;  // it wrote the store itself
  const std::lock_guard lock(mutex_);
  const auto found = coming_home_.find(id);
  if (found == coming_home_.end()) {
    store_.mark_written(id);
  } else if (found->second.parts > 0) {
    found->second.copied = true;
  } else {
    coming_home_.erase(found);
  }
}

bool BlockMover::is_home(BlockId id) const {
  const auto found = coming_home_.find(id);
  return found == coming_home_.end() || found->second.parts == 0;
}

void BlockMover::abandon() noexcept {
  for (PinnedRing* ring : rings_) ring->abandon();
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  arrived_.notify_all();
}

void BlockMover::finish() noexcept {
  for (PinnedRing* ring : rings_) ring->finish();
}

}  // namespace strata
