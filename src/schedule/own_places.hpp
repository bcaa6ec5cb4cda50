#pragma once
// Where blocks of very different sizes lie in the memory of a device. There are no slots: each
// *stay* of a block, its lifetime on the device, has a place of just its size.
//
// Contract: a stay begins with a task that uses the block and ends with one; stays that overlap in
// time never overlap in memory. Pure data, from schedule and budget alone; equal inputs give equal
// places.
//
// Method: all uses are known, so that places are found for the whole run at once. Where the
// operands of a task and the blocks kept for later tasks exceed the budget, some of the latter are
// evicted in between: those that free most memory for the bytes that they move. Then the large
// stays and the long ones get the lowest places that are free all the time, as far in time from
// others in these places as can be. So a block that is written back is there for some tasks longer,
// one that is loaded comes before its first task, and tasks that follow each other may be in work
// at once. Where no place is free, others are evicted for it, or it is evicted itself, whichever
// moves fewer bytes; at worst the operands of a task are placed for it alone. In which order stays
// are taken makes much of a difference, so several orders are tried, and the places count that move
// fewest bytes.

#include <map>
#include <utility>
#include <vector>

#include "schedule/plan.hpp"

namespace strata {

/// The stays of each device, in the order in which they begin. `from_step` is the first step of the
/// schedule that is planned. Throws Error{memory}, with the smallest budget that would do.
[[nodiscard]] std::vector<std::vector<SlotPlace>> find_own_places(const Schedule& schedule,
                                                                  std::int64_t from_step,
                                                                  const Machine& machine);

/// The bytes of the operands of the largest task.
[[nodiscard]] std::int64_t smallest_own_places_bytes(const Schedule& schedule);

/// The stays of one device while a plan is made: which hold their blocks, and which others used
/// the same memory before.
class Stays {
 public:
  explicit Stays(std::vector<SlotPlace> stays);

  /// The stay of a block at a task.
  [[nodiscard]] int of(std::int64_t block, std::int64_t position) const;
  /// The stays that hold their block and overlap `stay` in memory.
  [[nodiscard]] std::vector<int> holders(int stay) const;
  /// Begins a stay; no stay that overlaps it may hold its block.
  void begin(int stay);
  void end(int stay);
  /// The stays that used memory of `stay` before it, and whose last uses no step has waited for
  /// since.
  [[nodiscard]] const std::vector<int>& before(int stay) const {
    return before_[static_cast<std::size_t>(stay)];
  }
  /// The same, for a caller that waits for them; they are removed.
  [[nodiscard]] std::vector<int> take_before(int stay) {
    return std::exchange(before_[static_cast<std::size_t>(stay)], {});
  }

 private:
  [[nodiscard]] const SlotPlace& place(int stay) const {
    return stays_[static_cast<std::size_t>(stay)];
  }
  [[nodiscard]] bool overlap(int a, int b) const {
    return place(a).offset < place(b).offset + place(b).bytes &&
           place(b).offset < place(a).offset + place(a).bytes;
  }

  std::vector<SlotPlace> stays_;
  std::map<std::int64_t, std::vector<int>> of_block_;  // in the order in which they begin
  std::vector<int> held_;                              // those that hold their block
  std::vector<int> used_;  // some of whose memory no later stay has taken over
  std::vector<std::vector<int>> before_;
};

}  // namespace strata
