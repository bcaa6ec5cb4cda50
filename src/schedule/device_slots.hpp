#pragma once
// DeviceSlots: which block is in which slot of one device, and which one leaves next.
//
// Contract: a slot that is *held* (an operand of the task being planned) is never chosen as a
// victim. Victims are taken in three classes: clean blocks first, then those that tasks asked to
// retain, then blocks whose value the device owns; where the longest idle leaves, that makes no
// difference. Within a class the eviction rule decides; ties go to the block that was used longest
// ago, so that its slot is soon free for a load that runs ahead.
//
// Method: a tournament tree over the slots of each size class, in which only those slots are played
// again that changed since a victim was last asked for: with few loads for each task, most changes
// are overtaken before anybody asks.

#include <cstdint>
#include <deque>
#include <vector>

#include "schedule/block_directory.hpp"
#include "schedule/lookahead.hpp"
#include "schedule/plan.hpp"

namespace strata {

struct Slot {
  BlockId id;
  std::int32_t block = -1;  ///< index of the block, −1: empty
  std::int32_t size_class = 0;
  std::int64_t next_use = kNever;
  std::int64_t last_use = -1;
  bool retained = false;
  bool held = false;
  bool changed = false;  ///< since a victim was last asked for
  Wait writer;           ///< the step that last wrote the slot
  double ready = 0;      ///< estimated time at which the value is there
  double idle = 0;       ///< estimated time at which its last use ends
};

class DeviceSlots {
 public:
  /// `directory` outlives the slots.
  DeviceSlots(const PlanLayout& layout, std::size_t device, const BlockDirectory& directory,
              std::int64_t blocks, Eviction eviction);

  /// The slot number of a block, or −1.
  [[nodiscard]] int find(std::int64_t block) const {
    return slot_of_[static_cast<std::size_t>(block)];
  }
  [[nodiscard]] Slot& slot(int number) { return slots_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const Slot& slot(int number) const {
    return slots_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] int count() const noexcept { return static_cast<int>(slots_.size()); }

  /// Takes a block out of the ranking while a task uses it, and puts it back with its new uses.
  void hold(int number) {
    slot(number).held = true;
    note_change(number);
  }
  void release(int number) {
    slot(number).held = false;
    note_change(number);
  }
  void set_retained(int number, bool retained) {
    slot(number).retained = retained;
    note_change(number);
  }
  /// The block's next use is known now; it may be held or not here at all.
  void set_next_use(std::int64_t block, std::int64_t position) {
    const int number = find(block);
    if (number < 0) return;
    slot(number).next_use = position;
    note_change(number);
  }

  /// The slot that has been empty longest, so that what used it is likely done; −1: none is.
  [[nodiscard]] int take_free(std::int32_t size_class);
  /// The slot whose block should leave: never a held one. −1 if all are held.
  [[nodiscard]] int victim(std::int32_t size_class);
  /// Removes a block; the slot then has no block (and is not in the free list).
  void evict(int number);
  /// Removes a block and gives its slot back.
  void drop(int number);
  /// Puts a block into a slot that has none; it is held.
  void place(int number, BlockId id, std::int64_t block);
  /// Puts a block into the free slot `number`, before anything else happens.
  void place_first(int number, BlockId id, std::int64_t block);

 private:
  /// The order in which blocks leave: the smallest first.
  struct Key {
    std::uint64_t order = ~std::uint64_t{0};
    std::uint64_t last_use = ~std::uint64_t{0};
  };
  struct SizeClass {
    std::deque<int> free;
    std::vector<int> slots;    // their numbers
    std::vector<int> changed;  // numbers of slots
    std::vector<int> winners;  // a complete binary tree of slot numbers, the leaves last
    std::size_t leaves = 1;
  };

  void note_change(int number) {
    Slot& s = slot(number);
    if (s.changed || s.size_class < 0) return;
    s.changed = true;
    classes_[static_cast<std::size_t>(s.size_class)].changed.push_back(number);
  }
  [[nodiscard]] Key key_of(const Slot& slot) const;
  [[nodiscard]] bool beats(int a, int b) const;
  void play(SizeClass& of, int number);

  const BlockDirectory& directory_;
  int device_;
  Eviction eviction_;
  std::vector<std::int32_t> slot_of_;  // by block
  std::vector<Slot> slots_;
  std::vector<std::size_t> leaf_of_;  // by slot: its place in the tree of its class
  std::vector<Key> keys_;             // by slot, as last played
  std::vector<SizeClass> classes_;
};

}  // namespace strata
