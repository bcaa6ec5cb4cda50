#include "schedule/device_slots.hpp"

#include <algorithm>

namespace strata {

DeviceSlots::DeviceSlots(const PlanLayout& layout, std::size_t device,
                         const BlockDirectory& directory, std::int64_t blocks, Eviction eviction)
    : directory_(directory),
      device_(static_cast<int>(device)),
      eviction_(eviction),
      slot_of_(static_cast<std::size_t>(blocks), -1),
      slots_(layout.devices[device].slots.size()),
      leaf_of_(slots_.size()),
      keys_(slots_.size()),
      classes_(layout.class_bytes.size()) {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].size_class = layout.devices[device].slots[s].size_class;
    if (slots_[s].size_class < 0) continue;  // its block has it to itself
    SizeClass& of = classes_[static_cast<std::size_t>(slots_[s].size_class)];
    leaf_of_[s] = of.slots.size();
    of.slots.push_back(static_cast<int>(s));
    of.free.push_back(static_cast<int>(s));
  }
  for (SizeClass& of : classes_) {
    while (of.leaves < of.slots.size()) of.leaves *= 2;
    of.winners.assign(2 * of.leaves, -1);
    for (std::size_t i = 0; i < of.slots.size(); ++i) of.winners[of.leaves + i] = of.slots[i];
    for (std::size_t node = of.leaves; node-- > 1;)
      of.winners[node] = of.winners[2 * node];  // all are empty, and equal
  }
}

DeviceSlots::Key DeviceSlots::key_of(const Slot& s) const {
  if (s.block < 0 || s.held) return {};
  const bool owned = eviction_ != Eviction::longest_idle && directory_.owns(device_, s.block);
  const std::uint64_t rank_class = owned ? 2 : s.retained ? 1 : 0;
  constexpr std::uint64_t kOrderMax = (std::uint64_t{1} << 61) - 1;
  const std::uint64_t order =
      eviction_ == Eviction::furthest_next_use
          ? kOrderMax - std::min(static_cast<std::uint64_t>(s.next_use), kOrderMax)
          : 0;
  return {rank_class << 62 | order, static_cast<std::uint64_t>(s.last_use + 1)};
}

bool DeviceSlots::beats(int a, int b) const {
  if (b < 0) return true;
  if (a < 0) return false;
  const Key& x = keys_[static_cast<std::size_t>(a)];
  const Key& y = keys_[static_cast<std::size_t>(b)];
  if (x.order != y.order) return x.order < y.order;
  if (x.last_use != y.last_use) return x.last_use < y.last_use;
  return a < b;
}

void DeviceSlots::play(SizeClass& of, int number) {
  keys_[static_cast<std::size_t>(number)] = key_of(slot(number));
  std::size_t node = of.leaves + leaf_of_[static_cast<std::size_t>(number)];
  while (node > 1) {
    node /= 2;
    const int left = of.winners[2 * node];
    const int right = of.winners[2 * node + 1];
    const int winner = beats(left, right) ? left : right;
    if (winner == of.winners[node] && winner != number) return;  // above all is as it was
    of.winners[node] = winner;
  }
}

int DeviceSlots::take_free(std::int32_t size_class) {
  std::deque<int>& free = classes_[static_cast<std::size_t>(size_class)].free;
  if (free.empty()) return -1;
  const int number = free.front();
  free.pop_front();
  return number;
}

int DeviceSlots::victim(std::int32_t size_class) {
  SizeClass& of = classes_[static_cast<std::size_t>(size_class)];
  for (const int number : of.changed) {
    slot(number).changed = false;
    play(of, number);
  }
  of.changed.clear();
  const int number = of.winners[1];
  if (number < 0 || slot(number).block < 0 || slot(number).held) return -1;
  return number;
}

void DeviceSlots::evict(int number) {
  Slot& s = slot(number);
  slot_of_[static_cast<std::size_t>(s.block)] = -1;
  s.block = -1;
  s.id = BlockId();
  s.next_use = kNever;
  s.retained = s.held = false;
  note_change(number);
}

void DeviceSlots::drop(int number) {
  evict(number);
  if (slot(number).size_class >= 0)
    classes_[static_cast<std::size_t>(slot(number).size_class)].free.push_back(number);
}

void DeviceSlots::place(int number, BlockId id, std::int64_t block) {
  Slot& s = slot(number);
  s.id = id;
  s.block = static_cast<std::int32_t>(block);
  slot_of_[static_cast<std::size_t>(block)] = number;
  hold(number);
}

void DeviceSlots::place_first(int number, BlockId id, std::int64_t block) {
  if (slot(number).size_class >= 0) {
    std::deque<int>& free = classes_[static_cast<std::size_t>(slot(number).size_class)].free;
    free.erase(std::find(free.begin(), free.end(), number));
  }
  place(number, id, block);
  release(number);
}

}  // namespace strata
