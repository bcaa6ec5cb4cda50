#pragma once
// BlockDirectory: where the latest value of each block lies while a plan is made.
//
// Contract: a block has a backing copy, in host memory or in storage, and copies in slots of
// places: devices, and host memory where it has slots. A copy in a slot is always the latest value:
// when one place writes the block the others drop theirs. The backing copy may be older, or have no
// value yet. Then one place is the owner of the value and has to write it back before its slot is
// given up, unless nobody needs the value any more. Pure data.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/plan.hpp"

namespace strata {

/// A set of places for every block: a bit each.
class PlaceSets {
 public:
  PlaceSets(std::int64_t blocks, std::size_t places)
      : words_((places + 63) / 64), bits_(static_cast<std::size_t>(blocks) * words_, 0) {}

  void add(std::int64_t block, int place) { bits_[word(block, place)] |= bit(place); }
  void remove(std::int64_t block, int place) { bits_[word(block, place)] &= ~bit(place); }
  [[nodiscard]] bool has(std::int64_t block, int place) const {
    return (bits_[word(block, place)] & bit(place)) != 0;
  }
  /// Calls visit(place) for each place of the set, in increasing order; `visit` may change the set.
  template <class F>
  void for_each(std::int64_t block, F&& visit) const {
    for (std::size_t w = 0; w < words_; ++w) {
      std::uint64_t rest = bits_[static_cast<std::size_t>(block) * words_ + w];
      for (; rest != 0; rest &= rest - 1) visit(static_cast<int>(64 * w) + std::countr_zero(rest));
    }
  }

 private:
  static std::uint64_t bit(int place) { return std::uint64_t{1} << (place % 64); }
  [[nodiscard]] std::size_t word(std::int64_t block, int place) const {
    return static_cast<std::size_t>(block) * words_ + static_cast<std::size_t>(place) / 64;
  }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

class BlockDirectory {
 public:
  static constexpr int kNoPlace = -1;

  BlockDirectory(std::int64_t blocks, std::size_t places)
      : entries_(static_cast<std::size_t>(blocks)), copies_(blocks, places) {}

  // ---- the backing copy

  /// Whether it is the latest value.
  [[nodiscard]] bool is_backed(std::int64_t block) const { return entry(block).backed; }
  /// The step of this plan that wrote it; sequence 0: none did.
  [[nodiscard]] Wait written_back_by(std::int64_t block) const { return entry(block).write_back; }
  void set_backed(std::int64_t block, bool backed) { entry(block).backed = backed; }
  /// The owner's value was written back by a step.
  void write_back(std::int64_t block, Wait step) {
    entry(block) = {.backed = true, .owner = kNoPlace, .write_back = step};
  }

  // ---- copies in slots

  void add(std::int64_t block, int place) { copies_.add(block, place); }
  /// A copy is dropped. Where it was the owner's, the value is gone.
  void remove(std::int64_t block, int place) {
    copies_.remove(block, place);
    if (entry(block).owner == place) entry(block).owner = kNoPlace;
  }
  [[nodiscard]] bool has(std::int64_t block, int place) const { return copies_.has(block, place); }
  /// Calls visit(place) for each place that has a copy, in increasing order.
  template <class F>
  void for_each(std::int64_t block, F&& visit) const {
    copies_.for_each(block, visit);
  }

  // ---- values that are not backed

  /// kNoPlace: the backing copy is the latest value, or there is none.
  [[nodiscard]] int owner(std::int64_t block) const { return entry(block).owner; }
  [[nodiscard]] bool owns(int place, std::int64_t block) const { return owner(block) == place; }
  /// A place has, or is about to write, a value that is not backed. The copies of others are its
  /// caller's to drop.
  void set_owner(std::int64_t block, int place) {
    entry(block).backed = false;
    entry(block).owner = place;
  }

 private:
  struct Entry {
    bool backed = false;
    std::int32_t owner = kNoPlace;
    Wait write_back;
  };

  Entry& entry(std::int64_t block) { return entries_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] const Entry& entry(std::int64_t block) const {
    return entries_[static_cast<std::size_t>(block)];
  }

  std::vector<Entry> entries_;
  PlaceSets copies_;
};

}  // namespace strata
