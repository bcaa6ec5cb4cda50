// PinnedRing: see pinned_ring.hpp.
//
// Method: slots are cut into pieces, and a crew of threads fills piece after piece, of a few slots
// at a time. The issuing thread issues the copy of the oldest when that is full, and fills pieces
// of it that no thread has begun; so no thread waits for the end of a slot but this one, and
// filling runs ahead of the copies. The last slots of a block are filled beside the first of the
// next, if that is expected: else the crew would have nothing to do while the issuing thread is
// elsewhere, a tenth of the time where a block is read and used once. On the way back a thread of
// the ring waits for the events of the copies, in the order in which they were issued, and empties
// their slots with the same crew.
//
// Filling goes through the caches: the copy to the device then reads a slot from there, and the
// host's memory is read once and not written. On the host of an H200 that alone fills a link of 54
// GB/s, and stores that go past the caches end at 46 (2026-11-25). But a slot that is copied as
// soon as it is full is still dirty in the caches of other cores, and then 24 MiB went at 22 GB/s
// (2026-11-30): so the first slots of other bytes, behind which nothing waits yet, go past the
// caches.

#include "run/pinned_ring.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/stream_copy.hpp"
#include "run/numa.hpp"

namespace strata {
namespace {

/// Some 50 µs of a thread: what is less takes less than waking one.
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;
/// Slots that are being filled at a time.
constexpr std::int64_t kFilledAtOnce = 3;
constexpr std::int64_t kExpectedMost = 2;
/// Page-locked at once, where slots are smaller: it takes a millisecond or two.
constexpr std::int64_t kLockedAtOnce = std::int64_t{32} << 20;

std::int64_t pieces_of(std::int64_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

/// Part i of 0 … count − 1 in `parts` parts: where it begins. That of part `parts` is count.
std::int64_t begin_of(std::int64_t i, std::int64_t parts, std::int64_t count) {
  return count / parts * i + std::min(i, count % parts);
}

/// As many columns of a block as fit into `bytes` bytes and can be moved by themselves.
std::int64_t columns_within(const BlockStore& store, BlockId id, std::int64_t bytes) {
  const std::int64_t column = std::max<std::int64_t>(store.blocks().column_bytes(id), 1);
  const std::int64_t least = std::max<std::int64_t>(store.columns_min(id), 1);
  return std::max(bytes / column / least * least, least);
}

}  // namespace

/// Columns that travel in one slot, cut into pieces: into rows of a column where columns are long
/// and the store has them by rows, else into columns.
class RingPieces {
 public:
  RingPieces(BlockStore& store, const BlockColumns& columns)
      : store_(&store),
        columns_(columns),
        rows_(store.blocks().extent(columns.id).rows),
        column_bytes_(store.blocks().column_bytes(columns.id)) {
    if (column_bytes_ > kPieceBytes && store.divides_columns(columns.id)) {
      of_column_ = std::min(pieces_of(column_bytes_), rows_);
    } else {
      width_ = columns_within(store, columns.id, kPieceBytes);
    }
  }

  [[nodiscard]] std::int64_t count() const {
    return (columns_.count + width_ - 1) / width_ * of_column_;
  }
  void read(std::int64_t i, std::byte* slot) const {
    const Piece piece = at(i);
    if (of_column_ > 1)
      return store_->read_rows(columns_.id, piece.column, piece.row, piece.count,
                               slot + piece.offset);
    store_->read_columns(columns_.id, piece.column, piece.count, slot + piece.offset);
  }
  void write(std::int64_t i, const std::byte* slot) const {
    const Piece piece = at(i);
    if (of_column_ > 1)
      return store_->write_rows(columns_.id, piece.column, piece.row, piece.count,
                                slot + piece.offset);
    store_->write_columns(columns_.id, piece.column, piece.count, slot + piece.offset);
  }

 private:
  struct Piece {
    std::int64_t column, row, count;  // of rows, or else of columns
    std::int64_t offset;              // in the slot
  };
  [[nodiscard]] Piece at(std::int64_t i) const {
    const std::int64_t j = i / of_column_ * width_;
    if (of_column_ == 1)
      return {columns_.first + j, 0, std::min(width_, columns_.count - j), j * column_bytes_};
    const std::int64_t row = begin_of(i % of_column_, of_column_, rows_);
    return {columns_.first + j, row, begin_of(i % of_column_ + 1, of_column_, rows_) - row,
            j * column_bytes_ + row * (column_bytes_ / rows_)};
  }

  BlockStore* store_;
  BlockColumns columns_;
  std::int64_t rows_;
  std::int64_t column_bytes_;
  std::int64_t width_ = 1;      // columns of a piece
  std::int64_t of_column_ = 1;  // pieces
};

PinnedRing::PinnedRing(Device& device, const RingShape& shape)
    : device_(device), shape_(shape), crew_(std::max(shape.threads, 1) - 1) {
  large_.bytes = shape.slot_bytes;
  large_.at_once = static_cast<int>(std::clamp<std::int64_t>(
      kLockedAtOnce / std::max<std::int64_t>(shape.slot_bytes, 1), 1, std::max(shape.slots, 1)));
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
    // Each begins where elements of any kind may.
    constexpr std::int64_t kAlignment = 64;
    const std::int64_t stride = (slots.bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::byte* memory =
        slots.memory.emplace_back(device_.allocate_host(stride * slots.at_once)).data();
    for (int i = slots.at_once; i-- > 0;) slots.unused.push_back(memory + i * stride);
  }
  auto slot = std::make_unique<Slot>(Slot{slots.unused.back(), slots, Event()});
  slots.unused.pop_back();
  return slot;
}

bool PinnedRing::has_slot_to_fill(Slots& slots) {
  while (!slots.copying.empty() && slots.copying.front()->copied.done()) {
    slots.empty.push_back(slots.copying.front());
    slots.copying.pop_front();
  }
  return !slots.empty.empty() || std::ssize(slots.in) < std::max(shape_.slots, 1);
}

PinnedRing::Slot& PinnedRing::slot_to_fill(Slots& slots) {
  if (!has_slot_to_fill(slots)) {
    slots.copying.front()->copied.wait();
    slots.empty.push_back(slots.copying.front());
    slots.copying.pop_front();
  }
  if (slots.empty.empty()) {
    slots.in.push_back(make_slot(slots));
    return *slots.in.back();
  }
  Slot& slot = *slots.empty.back();
  slots.empty.pop_back();
  return slot;
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

/// Slots that are being filled, in the order of their copies to one place.
class PinnedRing::Fillings {
 public:
  explicit Fillings(PinnedRing& ring) : ring_(ring) {}
  Fillings(const Fillings&) = delete;
  Fillings& operator=(const Fillings&) = delete;
  /// What was not issued is not copied.
  ~Fillings() {
    for (Filling& each : fillings_) each.work.reset();
    for (const Filling& each : fillings_) each.slot->of.empty.push_back(each.slot);
  }

  [[nodiscard]] std::int64_t count() const { return std::ssize(fillings_); }
  /// Whether so many bytes can be begun without waiting.
  [[nodiscard]] bool has_room(std::int64_t bytes) const {
    return count() < kFilledAtOnce && ring_.has_slot_to_fill(ring_.slots_for(bytes));
  }
  /// Begins to fill a slot by fill(0, slot) … fill(pieces − 1, slot).
  void begin(std::int64_t offset, std::int64_t bytes, std::int64_t pieces,
             std::function<void(std::int64_t, std::byte*)> fill) {
    Slot& slot = ring_.slot_to_fill(ring_.slots_for(bytes));
    fillings_.push_back({.slot = &slot, .offset = offset, .bytes = bytes});
    fillings_.back().work = std::make_unique<WorkCrew::Job>(
        ring_.crew_, pieces,
        [fill = std::move(fill), data = slot.data](std::int64_t i) { fill(i, data); });
  }
  void issue_oldest(Queue& queue, std::byte* to) {
    const Filling& oldest = fillings_.front();
    oldest.work->finish();
    queue.copy(to + oldest.offset, oldest.slot->data, oldest.bytes, CopyDirection::host_to_device);
    oldest.slot->copied = queue.record();
    oldest.slot->of.copying.push_back(oldest.slot);
    fillings_.pop_front();
  }

 private:
  struct Filling {
    Slot* slot;
    std::int64_t offset;
    std::int64_t bytes;
    std::unique_ptr<WorkCrew::Job> work{};
  };

  PinnedRing& ring_;
  std::deque<Filling> fillings_;
};

/// Columns of a block on their way to the device.
class PinnedRing::Shipment {
 public:
  Shipment(PinnedRing& ring, BlockStore& store, const BlockColumns& columns)
      : store_(store),
        columns_(columns),
        width_(columns_within(store, columns.id, ring.shape_.slot_bytes)),
        column_bytes_(store.blocks().column_bytes(columns.id)),
        fillings_(ring) {}

  [[nodiscard]] bool is_of(const BlockStore& store, const BlockColumns& columns) const {
    return &store_ == &store && columns_ == columns;
  }
  /// Slots that are being filled.
  [[nodiscard]] std::int64_t begun() const { return fillings_.count(); }
  [[nodiscard]] bool is_over() const { return next_ >= columns_.count && begun() == 0; }
  [[nodiscard]] bool can_begin() const {
    return next_ < columns_.count && fillings_.has_room(next_count() * column_bytes_);
  }
  void begin_next() {
    const std::int64_t count = next_count();
    const RingPieces pieces(store_, {columns_.id, columns_.first + next_, count});
    fillings_.begin(next_ * column_bytes_, count * column_bytes_, pieces.count(),
                    [pieces](std::int64_t i, std::byte* slot) { pieces.read(i, slot); });
    next_ += count;
  }
  void issue_oldest(Queue& queue, std::byte* to) { fillings_.issue_oldest(queue, to); }

 private:
  [[nodiscard]] std::int64_t next_count() const { return std::min(width_, columns_.count - next_); }

  BlockStore& store_;
  BlockColumns columns_;
  std::int64_t width_;  // of a slot
  std::int64_t column_bytes_;
  std::int64_t next_ = 0;  // the first column that is not begun
  Fillings fillings_;
};

void PinnedRing::expect(BlockStore& store, const BlockColumns& columns) {
  if (std::ssize(expected_) == kExpectedMost) expected_.pop_front();  // it did not come
  expected_.push_back(std::make_unique<Shipment>(*this, store, columns));
}

std::unique_ptr<PinnedRing::Shipment> PinnedRing::shipment_of(BlockStore& store,
                                                              const BlockColumns& columns) {
  const auto found = std::ranges::find_if(
      expected_, [&](const auto& shipment) { return shipment->is_of(store, columns); });
  if (found == expected_.end()) return std::make_unique<Shipment>(*this, store, columns);
  std::unique_ptr<Shipment> shipment = std::move(*found);
  expected_.erase(found);
  return shipment;
}

void PinnedRing::fill_ahead(std::int64_t others) {
  std::int64_t ahead = 0;
  for (const auto& shipment : expected_) ahead += shipment->begun();
  for (const auto& shipment : expected_) {
    // A slot at least is left to what comes before.
    while (ahead + others < kFilledAtOnce && ahead + 1 < shape_.slots && shipment->can_begin()) {
      shipment->begin_next();
      ++ahead;
    }
  }
}

void PinnedRing::send(Queue& queue, std::byte* to, BlockStore& store, const BlockColumns& columns) {
  const std::unique_ptr<Shipment> shipment = shipment_of(store, columns);
  while (!shipment->is_over() && !abandoned()) {
    // What is full is copied before this thread waits for a copy, and a slot that is being filled
    // is none to wait for.
    while (shipment->can_begin()) shipment->begin_next();
    if (shipment->begun() == 0) shipment->begin_next();
    fill_ahead(shipment->begun());
    shipment->issue_oldest(queue, to);
  }
}

void PinnedRing::send(Queue& queue, std::byte* to, std::int64_t bytes, std::int64_t pieces,
                      const std::function<void(std::int64_t, std::byte*)>& fill) {
  require(bytes <= shape_.slot_bytes, ErrorKind::misuse, "run", "{} bytes in a slot of {}", bytes,
          shape_.slot_bytes);
  if (abandoned() || bytes == 0) return;
  Fillings fillings(*this);
  fillings.begin(0, bytes, pieces, std::cref(fill));
  fillings.issue_oldest(queue, to);
}

void PinnedRing::send(Queue& queue, std::byte* to, std::span<const std::byte> data) {
  const std::int64_t all = std::ssize(data);
  const std::int64_t at_once = kFilledAtOnce * shape_.slot_bytes;
  Fillings fillings(*this);
  for (std::int64_t first = 0; first < all; first += shape_.slot_bytes) {
    if (abandoned()) return;
    const std::byte* from = data.data() + first;
    const std::int64_t bytes = std::min(shape_.slot_bytes, all - first);
    const std::int64_t pieces = pieces_of(bytes);
    while (fillings.count() > 0 && !fillings.has_room(bytes)) fillings.issue_oldest(queue, to);
    fillings.begin(first, bytes, pieces, [=](std::int64_t i, std::byte* slot) {
      const std::int64_t begin = begin_of(i, pieces, bytes);
      const std::int64_t count = begin_of(i + 1, pieces, bytes) - begin;
      if (first < at_once)
        stream_copy(slot + begin, from + begin, count);
      else
        std::copy_n(from + begin, count, slot + begin);
    });
  }
  while (fillings.count() > 0) fillings.issue_oldest(queue, to);
}

void PinnedRing::receive(Queue& queue, const std::byte* from, BlockStore& store,
                         const BlockColumns& columns, Arrived arrived) {
  const std::int64_t column = store.blocks().column_bytes(columns.id);
  const auto delivery =
      std::make_shared<Delivery>(Delivery{.arrived = std::move(arrived), .failure = nullptr});
  const std::int64_t width = columns_within(store, columns.id, shape_.slot_bytes);
  for (std::int64_t j = 0; j < columns.count; j += width) {
    const std::int64_t count = std::min(width, columns.count - j);
    const RingPieces pieces(store, {columns.id, columns.first + j, count});
    const auto take = [this, pieces](const std::byte* slot) {
      crew_.share(pieces.count(), [&](std::int64_t i) { pieces.write(i, slot); });
    };
    put_parcel(queue, from + j * column, count * column, take, delivery,
               j + width >= columns.count);
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
    const std::int64_t pieces = pieces_of(bytes);
    std::byte* here = to.data() + first;
    const auto take = [here, bytes, pieces](std::int64_t i, const std::byte* slot) {
      const std::int64_t begin = begin_of(i, pieces, bytes);
      std::copy_n(slot + begin, begin_of(i + 1, pieces, bytes) - begin, here + begin);
    };
    receive(queue, from + first, bytes, pieces, take, [](const std::exception_ptr&) {});
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
  expected_.clear();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0; });
  }
  for (const Slots* slots : {&small_, &large_})
    for (const Slot* slot : slots->copying) slot->copied.wait();
  abandoned_.store(false, std::memory_order_release);
}

}  // namespace strata
