#include "schedule/own_places.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "schedule/lookahead.hpp"
#include "schedule/plan_layout.hpp"

namespace strata {
namespace {

std::int64_t room_for(const BlockTable& blocks, BlockId id) {
  return slot_room(std::max<std::int64_t>(blocks.bytes(id), 1));
}

/// What a task does to a block, all of its operands with that block together.
struct Use {
  BlockId id;
  std::int64_t block = 0;
  std::int64_t bytes = 0;      ///< of its place
  std::int64_t next = kNever;  ///< task of the same device
  bool written = false;
  bool loaded = false;  ///< if it is not there
};
struct TaskUses {
  int device = 0;
  std::vector<Use> uses;
};

std::vector<TaskUses> uses_of(const Schedule& schedule, std::int64_t from_step) {
  const BlockTable& blocks = schedule.blocks;
  std::vector<TaskUses> all;
  TaskList tasks;
  for (std::int64_t step = from_step; step < schedule.steps; ++step) {
    tasks.clear();
    schedule.emit(step, tasks);
    for (const Task& task : std::as_const(tasks).tasks()) {
      TaskUses& mine = all.emplace_back();
      mine.device = task.device;
      std::map<std::int64_t, std::size_t> known;
      const auto operands = std::as_const(tasks).operands(task);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::int64_t block = blocks.index(operands[i].id);
        const auto [use, fresh] = known.emplace(block, mine.uses.size());
        if (fresh) mine.uses.push_back({operands[i].id, block, room_for(blocks, operands[i].id)});
        if (writes(task.access_of(i))) mine.uses[use->second].written = true;
        if (reads(task.access_of(i))) mine.uses[use->second].loaded = true;
      }
    }
  }
  return all;
}

/// The memory of one device.
class Places {
 public:
  /// `ahead`: what is loaded does not lie on what the task before uses.
  Places(std::int64_t budget, bool ahead) : budget_(budget), ahead_(ahead) {}

  std::vector<SlotPlace> stays;

  void use(const TaskUses& task, std::int64_t position) {
    position_ = position;
    for (const Use& use : task.uses) {
      const auto found = resident_.find(use.block);
      if (found != resident_.end()) found->second.next = position;  // it is needed now
    }
    if (!place_missing(task)) {
      for (const Use& use : task.uses) resident_.erase(use.block);
      std::int64_t end = 0;
      for (const Use& use : task.uses) {
        settle(use, end);
        end += use.bytes;
      }
    }
    leaving_.clear();
    done_.clear();
    for (const Use& use : task.uses) {
      Resident& here = resident_.at(use.block);
      here.next = use.next;
      if (use.next != kNever) continue;
      done_.emplace_back(here.offset, here.bytes);
      if (use.written) leaving_.push_back(done_.back());
      resident_.erase(use.block);
    }
  }

  /// Another device has written the block.
  void forget(std::int64_t block) { resident_.erase(block); }

 private:
  struct Resident {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::int64_t next = kNever;
  };
  using Range = std::pair<std::int64_t, std::int64_t>;  // first byte, bytes

  bool place_missing(const TaskUses& task) {
    std::vector<const Use*> missing;
    for (const Use& use : task.uses)
      if (resident_.find(use.block) == resident_.end()) missing.push_back(&use);
    std::stable_sort(missing.begin(), missing.end(),
                     [](const Use* a, const Use* b) { return a->bytes > b->bytes; });
    for (const Use* use : missing) {
      const bool low = use->next != kNever;
      std::int64_t offset = find_gap(use->bytes, low, ahead_ && use->loaded ? done_ : leaving_);
      if (offset < 0) offset = find_gap(use->bytes, low, {});
      if (offset < 0) offset = find_victims(use->bytes);
      if (offset < 0) return false;
      settle(*use, offset);
    }
    return true;
  }

  void settle(const Use& use, std::int64_t offset) {
    for (auto r = resident_.begin(); r != resident_.end();) {
      const bool meets =
          r->second.offset < offset + use.bytes && offset < r->second.offset + r->second.bytes;
      r = meets ? resident_.erase(r) : std::next(r);
    }
    resident_[use.block] = {offset, use.bytes, position_};
    stays.push_back({offset, -1, use.block, use.bytes, position_});
  }

  [[nodiscard]] std::vector<Range> taken(const std::vector<Range>& others) const {
    std::vector<Range> ranges = others;
    for (const auto& [block, r] : resident_) ranges.emplace_back(r.offset, r.bytes);
    std::sort(ranges.begin(), ranges.end());
    return ranges;
  }

  /// The lowest place in a gap, or the highest, apart from `others`; −1: there is none.
  [[nodiscard]] std::int64_t find_gap(std::int64_t bytes, bool low,
                                      const std::vector<Range>& others) const {
    std::int64_t best = -1;
    std::int64_t free = 0;
    const auto look = [&](std::int64_t end) {
      if (end - free < bytes) return;
      if (low && best >= 0) return;
      best = low ? free : end - bytes;
    };
    for (const auto& [first, size] : taken(others)) {
      look(first);
      free = std::max(free, first + size);
    }
    look(budget_);
    return best;
  }

  /// A place on blocks that this task does not use; −1: there is none.
  [[nodiscard]] std::int64_t find_victims(std::int64_t bytes) const {
    std::vector<std::int64_t> candidates{0, budget_ - bytes};
    for (const auto& [block, r] : resident_) {
      candidates.push_back(r.offset + r.bytes);
      candidates.push_back(r.offset - bytes);
      candidates.push_back(r.offset);
    }
    std::sort(candidates.begin(), candidates.end());
    std::int64_t best = -1;
    std::int64_t best_bytes = std::numeric_limits<std::int64_t>::max();
    std::int64_t best_next = -1;
    for (const std::int64_t offset : candidates) {
      if (offset < 0 || offset + bytes > budget_) continue;
      std::int64_t moved = 0;
      std::int64_t next = kNever;
      for (const auto& [block, r] : resident_) {
        if (r.offset >= offset + bytes || offset >= r.offset + r.bytes) continue;
        moved += r.bytes;
        next = std::min(next, r.next);
      }
      if (next == position_) continue;  // of this task
      if (moved < best_bytes || (moved == best_bytes && next > best_next)) {
        best = offset;
        best_bytes = moved;
        best_next = next;
      }
    }
    return best;
  }

  std::int64_t budget_;
  bool ahead_;
  std::int64_t position_ = 0;
  std::map<std::int64_t, Resident> resident_;  // by block: those that are used again
  std::vector<Range> done_;                    // what the last task used and nobody uses again
  std::vector<Range> leaving_;                 // of that, what it wrote
};

/// The stays of each device. `ahead` as Places has it.
std::vector<std::vector<SlotPlace>> place_all(const std::vector<TaskUses>& tasks,
                                              const Machine& machine, int devices, bool ahead) {
  std::vector<Places> places;
  for (int d = 0; d < devices; ++d)
    places.emplace_back(
        machine.devices[static_cast<std::size_t>(d)].memory_bytes / kSlotAlignment * kSlotAlignment,
        ahead);
  for (std::int64_t t = 0; t < std::ssize(tasks); ++t) {
    const TaskUses& task = tasks[static_cast<std::size_t>(t)];
    for (int d = 0; d < devices; ++d) {
      for (const Use& use : task.uses)
        if (d != task.device && use.written) places[static_cast<std::size_t>(d)].forget(use.block);
    }
    places[static_cast<std::size_t>(task.device)].use(task, t);
  }
  std::vector<std::vector<SlotPlace>> all;
  for (Places& device : places) all.push_back(std::move(device.stays));
  return all;
}

std::int64_t bytes_of_stays(const std::vector<std::vector<SlotPlace>>& all) {
  std::int64_t bytes = 0;
  for (const std::vector<SlotPlace>& stays : all)
    for (const SlotPlace& stay : stays) bytes += stay.bytes;
  return bytes;
}

}  // namespace

std::vector<std::vector<SlotPlace>> find_own_places(const Schedule& schedule,
                                                    std::int64_t from_step,
                                                    const Machine& machine) {
  std::vector<TaskUses> tasks = uses_of(schedule, from_step);
  std::map<std::pair<int, std::int64_t>, std::int64_t> next;
  for (std::int64_t t = std::ssize(tasks); t-- > 0;) {
    TaskUses& task = tasks[static_cast<std::size_t>(t)];
    for (Use& use : task.uses) {
      const auto [at, fresh] = next.emplace(std::pair(task.device, use.block), t);
      if (!fresh) use.next = std::exchange(at->second, t);
    }
  }
  for (const TaskUses& task : tasks) {
    const DeviceModel& model = machine.devices[static_cast<std::size_t>(task.device)];
    std::int64_t bytes = 0;
    for (const Use& use : task.uses) bytes += use.bytes;
    require(bytes <= model.memory_bytes, ErrorKind::memory, "plan",
            "{}: a device memory of {} ({} bytes) is too small: the smallest that works with "
            "these blocks is {} bytes",
            model.name, format_bytes(model.memory_bytes), model.memory_bytes,
            smallest_own_places_bytes(schedule));
  }
  auto ahead = place_all(tasks, machine, schedule.devices, true);
  auto packed = place_all(tasks, machine, schedule.devices, false);
  return bytes_of_stays(ahead) <= bytes_of_stays(packed) ? ahead : packed;
}

std::int64_t smallest_own_places_bytes(const Schedule& schedule) {
  std::int64_t most = 0;
  for (const TaskUses& task : uses_of(schedule, 0)) {
    std::int64_t bytes = 0;
    for (const Use& use : task.uses) bytes += use.bytes;
    most = std::max(most, bytes);
  }
  return most;
}

Stays::Stays(std::vector<SlotPlace> stays) : stays_(std::move(stays)), before_(stays_.size()) {
  for (int s = 0; s < static_cast<int>(stays_.size()); ++s) of_block_[place(s).block].push_back(s);
}

int Stays::of(std::int64_t block, std::int64_t position) const {
  int stay = -1;
  for (const int s : of_block_.at(block))
    if (place(s).from <= position) stay = s;
  return stay;
}

std::vector<int> Stays::holders(int stay) const {
  std::vector<int> found;
  std::copy_if(held_.begin(), held_.end(), std::back_inserter(found),
               [&](int other) { return other != stay && overlap(stay, other); });
  return found;
}

void Stays::begin(int stay) {
  std::vector<int>& before = before_[static_cast<std::size_t>(stay)];
  std::vector<int> left;
  for (const int other : used_) {
    if (!overlap(stay, other)) {
      left.push_back(other);
      continue;
    }
    if (other != stay) before.push_back(other);
    // Who comes after this one waits for it, and so for the other, as far as this one reaches.
    const bool covered =
        place(stay).offset <= place(other).offset &&
        place(other).offset + place(other).bytes <= place(stay).offset + place(stay).bytes;
    if (!covered) left.push_back(other);
  }
  used_ = std::move(left);
  used_.push_back(stay);
  held_.push_back(stay);
}

void Stays::end(int stay) { held_.erase(std::find(held_.begin(), held_.end(), stay)); }

}  // namespace strata
