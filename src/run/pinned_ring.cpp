// PinnedRing: see pinned_ring.hpp.
//
// Method: the issuing thread fills a slot itself, together with a crew of threads, issues the copy
// and goes on to the next slot; so filling runs ahead of the copies. On the way back a thread of
// the ring waits for the events of the copies, in the order in which they were issued, and empties
// their slots with the same crew.

#include "run/pinned_ring.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "run/numa.hpp"

namespace strata {
namespace {

/// Below this, waking a thread takes longer than what it would do.
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;

/// Cuts columns into parts of at most `bytes` bytes, at least one column each.
std::vector<BlockColumns> cut(const BlockStore& store, const BlockColumns& columns,
                              std::int64_t bytes) {
  const std::int64_t column = std::max<std::int64_t>(store.blocks().column_bytes(columns.id), 1);
  const std::int64_t least = std::max<std::int64_t>(store.columns_min(columns.id), 1);
  const std::int64_t width = std::max(bytes / column / least * least, least);
  std::vector<BlockColumns> parts;
  for (std::int64_t j = 0; j < columns.count; j += width) {
    parts.push_back({columns.id, columns.first + j, std::min(width, columns.count - j)});
  }
  return parts;
}

}  // namespace

PinnedRing::PinnedRing(Device& device, const RingShape& shape)
    : device_(device), shape_(shape), crew_(std::max(shape.threads, 1) - 1) {
  large_.bytes = shape.slot_bytes;
  small_.bytes = kSmallSlotBytes;
  small_.at_once = 2 * std::max(shape.slots, 1);
}

PinnedRing::~PinnedRing() {
  finish();
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  if (home_thread_.joinable()) home_thread_.join();
}

PinnedRing::Slots& PinnedRing::slots_for(std::int64_t bytes) noexcept {
  return bytes <= small_.bytes && small_.bytes < large_.bytes ? small_ : large_;
}

std::unique_ptr<PinnedRing::Slot> PinnedRing::make_slot(Slots& slots) {
  if (slots.unused.empty()) {
    const NumaPreference here(NumaTopology::machine(), shape_.node);
    std::byte* memory =
        slots.memory.emplace_back(device_.allocate_host(slots.bytes * slots.at_once)).data();
    for (int i = slots.at_once; i-- > 0;) slots.unused.push_back(memory + i * slots.bytes);
  }
  auto slot = std::make_unique<Slot>(Slot{slots.unused.back(), slots, Event()});
  slots.unused.pop_back();
  return slot;
}

PinnedRing::Slot& PinnedRing::slot_to_fill(std::int64_t bytes) {
  Slots& slots = slots_for(bytes);
  std::deque<std::unique_ptr<Slot>>& in = slots.in;
  const bool all_made = std::ssize(in) >= shape_.slots;
  if (in.empty() || !(all_made || in.front()->copied.done())) {
    in.push_back(make_slot(slots));
  } else {
    in.push_back(std::move(in.front()));
    in.pop_front();
    in.back()->copied.wait();
  }
  return *in.back();
}

PinnedRing::Slot& PinnedRing::slot_to_receive(std::int64_t bytes) {
  Slots& slots = slots_for(bytes);
  std::unique_lock lock(mutex_);
  if (slots.idle.empty() && std::ssize(slots.out) < shape_.slots) {
    slots.out.push_back(make_slot(slots));
    return *slots.out.back();
  }
  changed_.wait(lock, [&slots] { return !slots.idle.empty(); });
  Slot& slot = *slots.idle.front();
  slots.idle.pop_front();
  return slot;
}

void PinnedRing::share(const BlockStore& store, const BlockColumns& columns,
                       const std::function<void(const BlockColumns&, std::int64_t)>& use) {
  const std::int64_t column = store.blocks().column_bytes(columns.id);
  const std::int64_t bytes = columns.count * column;
  const std::vector<BlockColumns> parts =
      cut(store, columns, std::max(bytes / (crew_.helpers() + 1) + 1, kPieceBytes));
  crew_.share(std::ssize(parts), [&](std::int64_t i) {
    const BlockColumns& part = parts[static_cast<std::size_t>(i)];
    use(part, (part.first - columns.first) * column);
  });
}

void PinnedRing::send(Queue& queue, std::byte* to, BlockStore& store, const BlockColumns& columns) {
  const std::int64_t column = store.blocks().column_bytes(columns.id);
  for (const BlockColumns& part : cut(store, columns, shape_.slot_bytes)) {
    if (abandoned()) return;
    Slot& slot = slot_to_fill(part.count * column);
    std::byte* memory = slot.data;
    share(store, part, [&](const BlockColumns& piece, std::int64_t offset) {
      store.read_columns(piece.id, piece.first, piece.count, memory + offset);
    });
    queue.copy(to + (part.first - columns.first) * column, memory, part.count * column,
               CopyDirection::host_to_device);
    slot.copied = queue.record();
  }
}

void PinnedRing::send(Queue& queue, std::byte* to, std::int64_t bytes, std::int64_t pieces,
                      const std::function<void(std::int64_t, std::byte*)>& fill) {
  require(bytes <= shape_.slot_bytes, ErrorKind::misuse, "run", "{} bytes in a slot of {}", bytes,
          shape_.slot_bytes);
  if (abandoned() || bytes == 0) return;
  Slot& slot = slot_to_fill(bytes);
  crew_.share(pieces, [&](std::int64_t i) { fill(i, slot.data); });
  queue.copy(to, slot.data, bytes, CopyDirection::host_to_device);
  slot.copied = queue.record();
}

void PinnedRing::send(Queue& queue, std::byte* to, std::span<const std::byte> data) {
  const std::int64_t all = std::ssize(data);
  for (std::int64_t first = 0; first < all; first += shape_.slot_bytes) {
    const std::int64_t bytes = std::min(shape_.slot_bytes, all - first);
    const std::int64_t piece = std::max(bytes / (crew_.helpers() + 1) + 1, kPieceBytes);
    send(queue, to + first, bytes, (bytes + piece - 1) / piece,
         [&](std::int64_t i, std::byte* slot) {
           const std::byte* from = data.data() + first + i * piece;
           std::copy_n(from, std::min(piece, bytes - i * piece), slot + i * piece);
         });
  }
}

void PinnedRing::receive(Queue& queue, const std::byte* from, BlockStore& store,
                         const BlockColumns& columns, Arrived arrived) {
  const std::int64_t column = store.blocks().column_bytes(columns.id);
  const auto delivery =
      std::make_shared<Delivery>(Delivery{.arrived = std::move(arrived), .failure = nullptr});
  const std::vector<BlockColumns> parts = cut(store, columns, shape_.slot_bytes);
  for (const BlockColumns& part : parts) {
    const auto take = [this, &store, part](const std::byte* memory) {
      share(store, part, [&](const BlockColumns& piece, std::int64_t offset) {
        store.write_columns(piece.id, piece.first, piece.count, memory + offset);
      });
    };
    put_parcel(queue, from + (part.first - columns.first) * column, part.count * column, take,
               delivery, &part == &parts.back());
  }
}

void PinnedRing::receive(Queue& queue, const std::byte* from, std::int64_t bytes,
                         std::int64_t pieces,
                         std::function<void(std::int64_t, const std::byte*)> take,
                         Arrived arrived) {
  require(bytes <= shape_.slot_bytes, ErrorKind::misuse, "run", "{} bytes in a slot of {}", bytes,
          shape_.slot_bytes);
  const auto delivery =
      std::make_shared<Delivery>(Delivery{.arrived = std::move(arrived), .failure = nullptr});
  const auto take_all = [this, pieces, take = std::move(take)](const std::byte* memory) {
    crew_.share(pieces, [&](std::int64_t i) { take(i, memory); });
  };
  put_parcel(queue, from, bytes, take_all, delivery, true);
}

void PinnedRing::receive(Queue& queue, const std::byte* from, std::span<std::byte> to) {
  const std::int64_t all = std::ssize(to);
  for (std::int64_t first = 0; first < all; first += shape_.slot_bytes) {
    const std::int64_t bytes = std::min(shape_.slot_bytes, all - first);
    const std::int64_t piece = std::max(bytes / (crew_.helpers() + 1) + 1, kPieceBytes);
    std::byte* here = to.data() + first;
    const auto take = [here, bytes, piece](std::int64_t i, const std::byte* slot) {
      std::copy_n(slot + i * piece, std::min(piece, bytes - i * piece), here + i * piece);
    };
    receive(queue, from + first, bytes, (bytes + piece - 1) / piece, take,
            [](const std::exception_ptr&) {});
  }
}

void PinnedRing::put_parcel(Queue& queue, const std::byte* from, std::int64_t bytes, Take take,
                            const std::shared_ptr<Delivery>& delivery, bool last) {
  if (!home_thread_.joinable()) home_thread_ = std::thread([this] { bring_home(); });
  Slot& slot = slot_to_receive(bytes);
  try {
    queue.copy(slot.data, from, bytes, CopyDirection::device_to_host);
    slot.copied = queue.record();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    slot.of.idle.push_back(&slot);
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    parcels_.push_back({&slot, queue, std::move(take), delivery, last});
    ++under_way_;
  }
  changed_.notify_all();
}

void PinnedRing::bring_home() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !parcels_.empty(); });
    if (parcels_.empty()) return;
    const Parcel parcel = std::move(parcels_.front());
    parcels_.pop_front();
    lock.unlock();
    deliver(parcel);
    lock.lock();
    parcel.slot->of.idle.push_back(parcel.slot);
    --under_way_;
    changed_.notify_all();
  }
}

void PinnedRing::deliver(const Parcel& parcel) {
  Delivery& delivery = *parcel.delivery;
  try {
    parcel.slot->copied.wait();
    parcel.slot->copied = Event();
    // Behind a failure of the queue there is anything in the slot.
    delivery.lost = delivery.lost || abandoned() || parcel.queue.failed();
    if (!delivery.lost && !delivery.failure) parcel.take(parcel.slot->data);
  } catch (...) {
    delivery.failure = std::current_exception();
  }
  if (!parcel.last) return;
  if (delivery.failure || !delivery.lost) delivery.arrived(delivery.failure);
}

void PinnedRing::finish() noexcept {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0; });
  }
  for (const Slots* slots : {&small_, &large_})
    for (const auto& slot : slots->in) slot->copied.wait();
  abandoned_.store(false, std::memory_order_release);
}

}  // namespace strata
