#include "schedule/own_places.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
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
  std::int64_t bytes = 0;  ///< of its place
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
      const auto operands = std::as_const(tasks).operands(task);
      mine.uses.reserve(operands.size());
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::int64_t block = blocks.index(operands[i].id);
        auto use = std::find_if(mine.uses.begin(), mine.uses.end(),
                                [=](const Use& other) { return other.block == block; });
        if (use == mine.uses.end())
          use = mine.uses.insert(use, {operands[i].id, block, room_for(blocks, operands[i].id)});
        use->written = use->written || writes(task.access_of(i));
        use->loaded = use->loaded || reads(task.access_of(i));
      }
    }
  }
  return all;
}

/// A block from one of its uses to a later one, without leaving in between.
struct Piece {
  std::int64_t block = 0;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> uses;   ///< tasks of this device, as it numbers them
  std::vector<std::int64_t> costs;  ///< of leaving behind each but the last: bytes that are moved
  bool loaded = false;              ///< it comes from elsewhere
  bool leaves = false;              ///< what was written goes home behind the last use
  std::int64_t offset = -1;

  [[nodiscard]] std::int64_t first() const { return uses.front(); }
  [[nodiscard]] std::int64_t last() const { return uses.back(); }
  /// Behind which use the pause is that holds all of [from, to]; −1: it is used then.
  [[nodiscard]] std::int64_t pause(std::int64_t from, std::int64_t to) const {
    const auto next = std::lower_bound(uses.begin(), uses.end(), from);
    if (next == uses.begin() || next == uses.end() || *next <= to) return -1;
    return next - uses.begin() - 1;
  }
  /// What comes behind use k becomes a piece of its own.
  [[nodiscard]] Piece cut(std::int64_t k) {
    Piece rest = *this;
    rest.uses.erase(rest.uses.begin(), rest.uses.begin() + k + 1);
    rest.costs.erase(rest.costs.begin(), rest.costs.begin() + k + 1);
    rest.loaded = leaves = true;
    uses.resize(static_cast<std::size_t>(k) + 1);
    costs.resize(static_cast<std::size_t>(k));
    return rest;
  }
};

template <class I>
constexpr std::size_t at(I i) {
  return static_cast<std::size_t>(i);
}

/// How many tasks lie between two pieces in one place: what goes home is there during the next
/// tasks, too, and what comes is during those before; others that follow each other may be in work
/// at once.
struct Distance {
  std::int64_t behind_leaving;
  std::int64_t behind;
  std::int64_t before_loaded;
};
constexpr std::array<Distance, 4> kDistances{{{3, 2, 2}, {2, 1, 1}, {1, 0, 1}, {0, 0, 0}}};

/// The memory of one device, by tasks.
class Places {
 public:
  Places(std::int64_t budget, std::size_t tasks) : budget_(budget), there_(tasks), begins_(tasks) {}

  /// Those whose places are found first have first choice.
  void place(std::vector<Piece> pieces) {
    std::reverse(pieces.begin(), pieces.end());
    while (!pieces.empty()) {
      Piece piece = std::move(pieces.back());
      pieces.pop_back();
      if (find_gap(piece) || find_victims(piece)) {
        add(std::move(piece));
      } else if (piece.uses.size() > 1) {
        const auto least = std::min_element(piece.costs.begin(), piece.costs.end());
        moved_ += *least;
        pieces.push_back(piece.cut(least - piece.costs.begin()));
        pieces.push_back(std::move(piece));
      } else {
        place_anew(std::move(piece));
      }
    }
  }

  /// By pieces that were cut for want of a place.
  [[nodiscard]] std::int64_t moved_bytes() const { return moved_; }
  [[nodiscard]] const std::vector<Piece>& pieces() const { return placed_; }
  /// How many pieces were looked at to find these places.
  [[nodiscard]] std::int64_t work() const { return work_; }

 private:
  void add(Piece piece) {
    begins_[at(piece.first())].push_back(placed_.size());
    for (std::int64_t t = piece.first(); t <= piece.last(); ++t)
      there_[at(t)].push_back(placed_.size());
    placed_.push_back(std::move(piece));
  }
  void remove(std::size_t number, std::int64_t from, std::int64_t to) {
    for (std::int64_t t = from; t <= to; ++t)
      there_[at(t)].erase(std::find(there_[at(t)].begin(), there_[at(t)].end(), number));
  }
  /// What comes behind use k of a piece, which has a place no longer.
  [[nodiscard]] Piece split(std::size_t number, std::int64_t k) {
    Piece& piece = placed_[number];
    moved_ += piece.costs[at(k)];
    remove(number, piece.uses[at(k)] + 1, piece.last());
    return piece.cut(k);
  }

  /// Calls visit(number) for the pieces that are there at a time in [from, to].
  template <class F>
  void for_each_at(std::int64_t from, std::int64_t to, F&& visit) {
    const std::int64_t end = std::min(to, std::ssize(there_) - 1);
    const std::int64_t begin = std::max<std::int64_t>(from, 0);
    const auto visit_all = [&](const std::vector<std::size_t>& numbers) {
      work_ += std::ssize(numbers);
      std::for_each(numbers.begin(), numbers.end(), visit);
    };
    visit_all(there_[at(begin)]);
    for (std::int64_t t = begin + 1; t <= end; ++t) visit_all(begins_[at(t)]);
  }

  /// The lowest place in a gap, at the largest distance at which there is one.
  bool find_gap(Piece& piece) {
    for (const Distance& distance : kDistances) {
      const auto end = [&](const Piece& p) {
        return p.last() + (p.leaves ? distance.behind_leaving : distance.behind);
      };
      const auto begin = [&](const Piece& p) {
        return p.first() - (p.loaded ? distance.before_loaded : 0);
      };
      taken_.clear();
      const std::int64_t most = distance.behind_leaving + distance.before_loaded;
      for_each_at(piece.first() - most, piece.last() + most, [&](std::size_t p) {
        const Piece& other = placed_[p];
        if (end(other) >= begin(piece) && end(piece) >= begin(other))
          taken_.emplace_back(other.offset, other.offset + other.bytes);
      });
      std::sort(taken_.begin(), taken_.end());
      std::int64_t free = 0;
      for (const auto& [first, behind] : taken_) {
        if (first - free >= piece.bytes) break;
        free = std::max(free, behind);
      }
      if (free + piece.bytes > budget_) continue;
      piece.offset = free;
      return true;
    }
    return false;
  }

  /// Another piece where a place is looked for.
  struct Other {
    std::size_t number;
    std::int64_t pause;  // in which it can leave; −1: it can't
  };
  /// What those cost that begin before a place, or end before it: by that place, ascending, sums.
  struct Sums {
    struct Sum {
      std::int64_t place;
      std::int64_t cost;
      std::int64_t bound;  // how many can't leave
    };
    std::vector<Sum> list;

    void add_up() {
      std::sort(list.begin(), list.end(),
                [](const Sum& x, const Sum& y) { return x.place < y.place; });
      for (std::size_t k = 1; k < list.size(); ++k) {
        list[k].cost += list[k - 1].cost;
        list[k].bound += list[k - 1].bound;
      }
    }
    /// Sum over the entries at places below `end`.
    [[nodiscard]] Sum below(std::int64_t end) const {
      const auto behind = std::lower_bound(
          list.begin(), list.end(), end, [](const Sum& x, std::int64_t y) { return x.place < y; });
      return behind == list.begin() ? Sum{} : behind[-1];
    }
  };

  /// Finds a place that overlaps stays not used meanwhile, which are evicted: where that moves
  /// fewest bytes, if it is fewer than evicting this piece in between.
  bool find_victims(Piece& piece) {
    std::vector<Other> others;
    std::vector<std::int64_t> candidates{0, budget_ - piece.bytes};
    Sums begun;
    Sums ended;
    for_each_at(piece.first(), piece.last(), [&](std::size_t p) {
      const Piece& other = placed_[p];
      const std::int64_t pause =
          other.pause(std::max(piece.first(), other.first()), std::min(piece.last(), other.last()));
      others.push_back({p, pause});
      const std::int64_t cost = pause < 0 ? 0 : other.costs[at(pause)];
      begun.list.push_back({other.offset, cost, pause < 0 ? 1 : 0});
      ended.list.push_back({other.offset + other.bytes, cost, pause < 0 ? 1 : 0});
      candidates.push_back(other.offset + other.bytes);
      candidates.push_back(other.offset - piece.bytes);
    });
    std::sort(candidates.begin(), candidates.end());
    begun.add_up();
    ended.add_up();
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t cost : piece.costs) least = std::min(least, cost);
    for (const std::int64_t offset : candidates) {
      if (offset < 0 || offset + piece.bytes > budget_) continue;
      // Who has begun before the end of this place, and not ended before it begins, is in it.
      const Sums::Sum in = begun.below(offset + piece.bytes);
      const Sums::Sum out = ended.below(offset + 1);
      const std::int64_t cost = in.cost - out.cost;
      if (in.bound > out.bound || cost >= least) continue;
      least = cost;
      piece.offset = offset;
    }
    if (piece.offset < 0) return false;
    for (const Other& other : others) {
      const Piece& p = placed_[other.number];
      if (p.offset < piece.offset + piece.bytes && piece.offset < p.offset + p.bytes)
        add(split(other.number, other.pause));
    }
    return true;
  }

  /// Places a piece whose only use is a task whose other operands leave no room for it. All
  /// operands get new places for this task alone, one behind the other, and all else is evicted.
  void place_anew(Piece piece) {
    const std::int64_t task = piece.first();
    std::vector<Piece> operands{std::move(piece)};
    const std::vector<std::size_t> others = there_[at(task)];
    for (const std::size_t p : others) {
      const std::int64_t pause = placed_[p].pause(task, task);
      if (pause >= 0) {
        add(split(p, pause));
        continue;
      }
      const auto& uses = placed_[p].uses;
      const std::int64_t k = std::lower_bound(uses.begin(), uses.end(), task) - uses.begin();
      if (k + 1 < std::ssize(uses)) add(split(p, k));
      if (k > 0) {
        operands.push_back(split(p, k - 1));
      } else {
        remove(p, task, task);
        std::erase(begins_[at(task)], p);
        operands.push_back(placed_[p]);
        placed_[p].uses.clear();  // it is no more
      }
    }
    std::int64_t end = 0;
    for (Piece& operand : operands) {
      operand.offset = end;
      end += operand.bytes;
      add(std::move(operand));
    }
  }

  std::int64_t budget_;
  std::vector<std::vector<std::size_t>> there_;   // by task: which pieces
  std::vector<std::vector<std::size_t>> begins_;  // likewise, which are there from it on
  std::vector<Piece> placed_;
  std::int64_t work_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;
  std::int64_t moved_ = 0;
};

/// The blocks that one device uses, and when.
class Memory {
 public:
  Memory(const std::vector<TaskUses>& tasks, int device, std::int64_t budget) : budget_(budget) {
    struct Held {
      std::size_t piece;
      bool is_new;  // home has another value
    };
    std::map<std::int64_t, Held> held;
    for (std::int64_t t = 0; t < std::ssize(tasks); ++t) {
      const TaskUses& task = tasks[at(t)];
      for (const Use& use : task.uses) {
        if (task.device != device) {
          if (use.written) held.erase(use.block);  // what is here is of no use any more
          continue;
        }
        const auto now = std::ssize(positions_);
        const auto [found, fresh] = held.emplace(use.block, Held{pieces_.size(), false});
        if (fresh) {
          pieces_.push_back({use.block, use.bytes, {now}, {}, use.loaded});
        } else {
          pieces_[found->second.piece].uses.push_back(now);
          pieces_[found->second.piece].costs.push_back(use.bytes * (found->second.is_new ? 2 : 1));
        }
        pieces_[found->second.piece].leaves = use.written;
        found->second.is_new = found->second.is_new || use.written;
      }
      if (task.device == device) positions_.push_back(t);
    }
    std::vector<std::int64_t> change(positions_.size() + 1, 0);
    for (const Piece& piece : pieces_) {
      change[at(piece.first())] += piece.bytes;
      change[at(piece.last() + 1)] -= piece.bytes;
    }
    std::int64_t sum = -budget_;
    for (std::size_t t = 0; t < positions_.size(); ++t) too_much_.push_back(sum += change[t]);
  }

  [[nodiscard]] std::vector<SlotPlace> stays() {
    send_away();
    // Which order is best is a matter of luck: so several are tried, as far as that is quick: the
    // work counts, which equal inputs have in common, and not the time.
    constexpr std::int64_t kPiecesTried = 1 << 16;
    constexpr std::int64_t kTriesMost = 80;
    constexpr std::int64_t kWorkMost = 20'000'000;  // a second at most
    std::int64_t work = 0;
    const std::int64_t tries =
        std::clamp<std::int64_t>(kPiecesTried / (std::ssize(pieces_) + 1), 1, kTriesMost);
    std::optional<Places> best;
    for (std::int64_t n = 0; n < tries && (!best || (best->moved_bytes() > 0 && work < kWorkMost));
         ++n) {
      Places places(budget_, positions_.size());
      places.place(in_order(n));
      work += places.work();
      if (!best || places.moved_bytes() < best->moved_bytes()) best = std::move(places);
    }
    std::vector<SlotPlace> stays;
    for (const Piece& piece : best->pieces())
      if (!piece.uses.empty())
        stays.push_back(
            {piece.offset, -1, piece.block, piece.bytes, positions_[at(piece.first())]});
    std::sort(stays.begin(), stays.end(), [](const SlotPlace& a, const SlotPlace& b) {
      return std::pair(a.from, a.offset) < std::pair(b.from, b.offset);
    });
    return stays;
  }

 private:
  /// Large ones first, and those that are there for long: bytes times a power of the tasks, which
  /// is another one in each try, as are the multiples of it.
  [[nodiscard]] std::vector<Piece> in_order(std::int64_t attempt) const {
    constexpr std::int64_t kPowers = 8;
    std::uint64_t random = static_cast<std::uint64_t>(attempt);
    std::vector<std::pair<double, std::size_t>> keys;
    for (const Piece& piece : pieces_) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const double some = static_cast<double>(random >> 32) / 4294967296.0;
      const double power = 0.1 * static_cast<double>((attempt + 4) % kPowers);
      const double change = 0.1 * static_cast<double>(attempt / kPowers) * some;
      const auto tasks = static_cast<double>(piece.last() - piece.first() + 1);
      keys.emplace_back(static_cast<double>(piece.bytes) * std::pow(tasks, power) * (1 + change),
                        keys.size());
    }
    std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<Piece> pieces;
    pieces.reserve(keys.size());
    for (const auto& [key, number] : keys) pieces.push_back(pieces_[number]);
    return pieces;
  }

  /// The time between two uses of a block.
  struct Pause {
    std::size_t piece;
    std::size_t behind;  // which use
    bool chosen = false;
  };
  /// Calls visit(what is too much) for the tasks of a pause.
  template <class F>
  void for_each_in(const Pause& pause, F&& visit) {
    const Piece& piece = pieces_[pause.piece];
    for (std::int64_t t = piece.uses[pause.behind] + 1; t < piece.uses[pause.behind + 1]; ++t)
      visit(too_much_[at(t)]);
  }

  /// Where blocks that are used, and those that wait, are more than the budget, some of these
  /// leave: those that help most for what they cost, but for such as others make needless.
  void send_away() {
    std::vector<Pause> pauses;
    std::vector<std::vector<std::size_t>> at_task(positions_.size());
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const Piece& piece = pieces_[p];
      for (std::size_t k = 0; k < piece.costs.size(); ++k) {
        for (std::int64_t t = piece.uses[k] + 1; t < piece.uses[k + 1]; ++t)
          at_task[at(t)].push_back(pauses.size());
        pauses.push_back({p, k});
      }
    }
    for (std::size_t t = 0; t < positions_.size(); ++t) {
      while (too_much_[t] > 0) {
        double best = 0;
        Pause* chosen = nullptr;
        for (const std::size_t n : at_task[t]) {
          if (pauses[n].chosen) continue;
          const Piece& piece = pieces_[pauses[n].piece];
          double helped = 0;
          for_each_in(pauses[n], [&](std::int64_t bytes) {
            helped += static_cast<double>(std::clamp<std::int64_t>(bytes, 0, piece.bytes));
          });
          helped /= static_cast<double>(piece.costs[pauses[n].behind]);
          if (helped <= best) continue;
          best = helped;
          chosen = &pauses[n];
        }
        // What this task uses is within the budget: something waits.
        chosen->chosen = true;
        for_each_in(*chosen, [&](std::int64_t& bytes) { bytes -= pieces_[chosen->piece].bytes; });
      }
    }
    std::vector<std::size_t> by_cost(pauses.size());
    std::iota(by_cost.begin(), by_cost.end(), std::size_t{0});
    std::stable_sort(by_cost.begin(), by_cost.end(), [&](std::size_t a, std::size_t b) {
      return pieces_[pauses[a].piece].costs[pauses[a].behind] >
             pieces_[pauses[b].piece].costs[pauses[b].behind];
    });
    for (const std::size_t n : by_cost) {
      if (!pauses[n].chosen) continue;
      const std::int64_t own = pieces_[pauses[n].piece].bytes;
      bool needless = true;
      for_each_in(pauses[n], [&](std::int64_t b) { needless = needless && b + own <= 0; });
      if (!needless) continue;
      pauses[n].chosen = false;
      for_each_in(pauses[n], [&](std::int64_t& bytes) { bytes += own; });
    }
    for (std::size_t n = pauses.size(); n-- > 0;) {  // of one block the last ones first
      if (!pauses[n].chosen) continue;
      Piece rest = pieces_[pauses[n].piece].cut(static_cast<std::int64_t>(pauses[n].behind));
      pieces_.push_back(std::move(rest));
    }
  }

  std::int64_t budget_;
  std::vector<std::int64_t> positions_;  // of this device's tasks among all
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> too_much_;  // by task; negative: there is room
};

}  // namespace

std::vector<std::vector<SlotPlace>> find_own_places(const Schedule& schedule,
                                                    std::int64_t from_step,
                                                    const Machine& machine) {
  const std::vector<TaskUses> tasks = uses_of(schedule, from_step);
  for (const TaskUses& task : tasks) {
    const DeviceModel& model = machine.devices[at(task.device)];
    std::int64_t bytes = 0;
    for (const Use& use : task.uses) bytes += use.bytes;
    require(bytes <= model.memory_bytes, ErrorKind::memory, "plan",
            "{}: a device memory of {} ({} bytes) is too small: the smallest that works with "
            "these blocks is {} bytes",
            model.name, format_bytes(model.memory_bytes), model.memory_bytes,
            smallest_own_places_bytes(schedule));
  }
  std::vector<std::vector<SlotPlace>> all;
  for (int d = 0; d < schedule.devices; ++d) {
    const std::int64_t budget = machine.devices[at(d)].memory_bytes;
    all.push_back(Memory(tasks, d, budget / kSlotAlignment * kSlotAlignment).stays());
  }
  return all;
}

std::int64_t smallest_own_places_bytes(const Schedule& schedule) {
  std::int64_t most = 0;
  std::vector<BlockId> ids;
  TaskList tasks;
  for (std::int64_t step = 0; step < schedule.steps; ++step) {
    tasks.clear();
    schedule.emit(step, tasks);
    for (const Task& task : std::as_const(tasks).tasks()) {
      ids.clear();
      std::int64_t bytes = 0;
      for (const TaskOperand& operand : std::as_const(tasks).operands(task)) {
        if (std::find(ids.begin(), ids.end(), operand.id) != ids.end()) continue;
        ids.push_back(operand.id);
        bytes += room_for(schedule.blocks, operand.id);
      }
      most = std::max(most, bytes);
    }
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
