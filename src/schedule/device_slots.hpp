#pragma once
// DeviceSlots: which block is in which slot of one device, and which one leaves next.
//
// Contract: a slot that is *held* (an operand of the task being planned) is never chosen as a
// victim. Victims are taken in three classes: clean blocks first, then the pinned diagonal block,
// then blocks whose value is only here. Within a class the eviction rule decides; ties go to the
// block that was used longest ago, so that its slot is soon free for a load that runs ahead.

#include <cstdint>
#include <deque>
#include <set>
#include <tuple>
#include <vector>

#include "schedule/lookahead.hpp"
#include "schedule/plan.hpp"

namespace strata {

struct Slot {
  BlockId id;
  std::int64_t block = -1;  ///< index of the block, −1: empty
  std::int64_t next_use = kNever;
  std::int64_t last_use = -1;
  bool dirty = false;  ///< the host has no copy of this value
  bool pinned = false;
  Wait writer;                         ///< the step that last wrote the slot
  std::vector<std::uint64_t> readers;  ///< since then, by queue of this device: sequence number
  std::vector<std::uint64_t> peers;    ///< and by device, of the queue that copies from here
  double ready = 0;                    ///< estimated time at which the value is there
  double idle = 0;                     ///< estimated time at which its last use ends
};

class DeviceSlots {
 public:
  DeviceSlots(const PlanLayout& layout, const BlockTable& blocks, Eviction eviction)
      : eviction_(eviction), slot_of_(static_cast<std::size_t>(blocks.count()), -1) {
    for (const SlotRange& range : layout.slots) {
      Family family;
      family.slots.resize(static_cast<std::size_t>(range.count));
      for (Slot& slot : family.slots) {
        slot.readers.resize(static_cast<std::size_t>(layout.queues_per_device()));
        slot.peers.resize(layout.peers ? static_cast<std::size_t>(layout.devices) : 0);
      }
      for (std::int64_t s = 0; s < range.count; ++s) family.free.push_back(static_cast<int>(s));
      families_.push_back(std::move(family));
    }
  }

  /// The slot number of a block, or −1.
  [[nodiscard]] int find(std::int64_t block) const {
    return slot_of_[static_cast<std::size_t>(block)];
  }
  [[nodiscard]] Slot& slot(int family, int number) {
    return families_[static_cast<std::size_t>(family)].slots[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::vector<Slot>& slots(int family) {
    return families_[static_cast<std::size_t>(family)].slots;
  }

  /// Takes a block out of the ranking while a task uses it, and puts it back with its new uses.
  void hold(int family, int number) { ranking(family).erase(rank(family, number)); }
  void release(int family, int number) { ranking(family).insert(rank(family, number)); }

  /// The block's next use is known now; it may be held or not here at all.
  void set_next_use(int family, std::int64_t block, std::int64_t position) {
    const int number = find(block);
    if (number < 0) return;
    const bool ranked = ranking(family).erase(rank(family, number)) != 0;
    slot(family, number).next_use = position;
    if (ranked) release(family, number);
  }

  void set_pinned(int family, int number, bool pinned) {
    const bool ranked = ranking(family).erase(rank(family, number)) != 0;
    slot(family, number).pinned = pinned;
    if (ranked) release(family, number);
  }

  /// The slot that has been empty longest, so that what used it is likely done; −1: none is.
  [[nodiscard]] int take_free(int family) {
    std::deque<int>& free = families_[static_cast<std::size_t>(family)].free;
    if (free.empty()) return -1;
    const int number = free.front();
    free.pop_front();
    return number;
  }
  /// The slot whose block should leave: never a held one. −1 if all are held.
  [[nodiscard]] int victim(int family) {
    return ranking(family).empty() ? -1 : std::get<3>(*ranking(family).begin());
  }
  /// Removes a block that is not held; the slot is then nobody's (and not in the free list).
  void evict(int family, int number) {
    hold(family, number);
    Slot& s = slot(family, number);
    slot_of_[static_cast<std::size_t>(s.block)] = -1;
    s.block = -1;
    s.id = BlockId();
    s.dirty = s.pinned = false;
  }
  /// Removes a block that is not held and gives its slot back.
  void drop(int family, int number) {
    evict(family, number);
    families_[static_cast<std::size_t>(family)].free.push_back(number);
  }
  /// Puts a block into a slot that is nobody's; it is held.
  void place(int family, int number, BlockId id, std::int64_t block) {
    Slot& s = slot(family, number);
    s.id = id;
    s.block = block;
    slot_of_[static_cast<std::size_t>(block)] = number;
  }

 private:
  using Rank = std::tuple<int, std::int64_t, std::int64_t, int>;
  struct Family {
    std::vector<Slot> slots;
    std::deque<int> free;
    std::set<Rank> ranking;
  };

  [[nodiscard]] std::set<Rank>& ranking(int family) {
    return families_[static_cast<std::size_t>(family)].ranking;
  }
  [[nodiscard]] Rank rank(int family, int number) {
    const Slot& s = slot(family, number);
    const int rank_class = s.dirty ? 2 : s.pinned ? 1 : 0;
    const std::int64_t order = eviction_ == Eviction::furthest_next_use ? -s.next_use : 0;
    return {rank_class, order, s.last_use, number};
  }

  Eviction eviction_;
  std::vector<int> slot_of_;  // by block
  std::vector<Family> families_;
};

}  // namespace strata
