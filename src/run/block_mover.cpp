#include "run/block_mover.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

/// The most that a slot of a ring has to hold at once.
std::int64_t largest_part(const BlockStore& store) {
  const BlockTable& blocks = store.blocks();
  std::int64_t bytes = 0;
  for (int f = 0; f < blocks.families(); ++f) {
    const BlockFamily& family = blocks.family(f);
    const auto note = [&](BlockId id) {
      const std::int64_t columns = std::max<std::int64_t>(store.columns_min(id), 1);
      bytes = std::max(bytes, columns * blocks.column_bytes(id));
    };
    // In a regular family of one element the first block is as large as any.
    if (family.listed.empty() && family.elements.empty()) {
      if (blocks.count(f) > 0) note({f, 0, 0});
    } else {
      blocks.for_each(f, note);
    }
  }
  return bytes;
}

}  // namespace

BlockMover::BlockMover(DeviceSet& devices, BlockStore& store, const PlanLayout& layout,
                       Failed failed, Failing failing)
    : store_(store),
      pinned_(devices.pinned()),
      stored_(static_cast<std::size_t>(store.blocks().count())),
      failed_(std::move(failed)),
      failing_(std::move(failing)) {
  const std::int64_t bytes = largest_part(store);
  for (int d = 0; d < static_cast<int>(layout.devices.size()); ++d) {
    const bool on_host = d == layout.host || devices.backend(d).on_host();
    rings_.push_back(on_host ? nullptr : &devices.ring(d, bytes));
  }
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

const std::byte* BlockMover::home_of(BlockId id) {
  const auto index = static_cast<std::size_t>(store_.blocks().index(id));
  // What a copy of this run has put there may not count as written yet.
  return stored_[index].load(std::memory_order_acquire) ? store_.lend_for_writing(id)
                                                        : store_.lend(id);
}

/// By the thread of a queue that runs host code.
void BlockMover::read_home(BlockId id, std::byte* to) {
  const auto index = static_cast<std::size_t>(store_.blocks().index(id));
  const std::byte* from = stored_[index].load(std::memory_order_acquire) ? home_of(id) : nullptr;
  if (from == nullptr) {
    try {
      return store_.read(id, to);
    } catch (const Error&) {
      if (!failing_()) throw;
      return;
    }
  }
  std::memcpy(to, from, static_cast<std::size_t>(store_.blocks().bytes(id)));
}

void BlockMover::expect(int device, BlockId id) {
  PinnedRing* ring = rings_[static_cast<std::size_t>(device)];
  if (ring != nullptr && store_.is_constant(id) && store_.lend(id) == nullptr)
    ring->expect(store_, {id, 0, store_.blocks().extent(id).cols});
}

void BlockMover::load(Queue& queue, int device, BlockId id, std::byte* to) {
  PinnedRing* ring = rings_[static_cast<std::size_t>(device)];
  await_home(id);
  if (ring == nullptr) {
    queue.submit([this, id, to] { read_home(id, to); });
    return;
  }
  const std::byte* from = home_of(id);
  cut_by_pinning(
      id, from,
      [&](std::int64_t offset, std::int64_t bytes) {
        queue.copy(to + offset, from + offset, bytes, CopyDirection::host_to_device);
      },
      [&](const BlockColumns& columns, std::int64_t offset) {
        ring->send(queue, to + offset, store_, columns);
      });
}

void BlockMover::store(Queue& queue, int device, BlockId id, const std::byte* from, bool last) {
  PinnedRing* ring = rings_[static_cast<std::size_t>(device)];
  await_home(id);
  if (ring == nullptr) {
    queue.submit([&store = store_, id, from, last] {
      last ? store.write_last(id, from) : store.write(id, from);
    });
    return;
  }
  std::byte* to = store_.lend_for_writing(id);
  const auto index = static_cast<std::size_t>(store_.blocks().index(id));
  if (to != nullptr) stored_[index].store(true, std::memory_order_release);
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
    ring->receive(queue, from + offset, store_, columns,
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
      store_.commit(id);
      if (coming.copied) coming_home_.erase(id);
    }
  }
  arrived_.notify_all();
}

void BlockMover::stored(int device, BlockId id) {
  if (rings_[static_cast<std::size_t>(device)] == nullptr) return;  // the queue wrote the store
  const std::lock_guard lock(mutex_);
  const auto found = coming_home_.find(id);
  if (found == coming_home_.end()) {
    store_.commit(id);
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
  for (PinnedRing* ring : rings_) {
    if (ring != nullptr) ring->abandon();
  }
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  arrived_.notify_all();
}

void BlockMover::finish() noexcept {
  for (PinnedRing* ring : rings_) {
    if (ring != nullptr) ring->finish();
  }
}

}  // namespace strata
