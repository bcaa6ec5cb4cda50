#pragma once
// Random schedules of operations that no algorithm has, for properties that must hold of any.
//
// Contract: a pure function of the seed. Operations `scramble…` have one to four operands, several
// of them written, and elements of any sort; their kernels mix the bytes of everything they read
// into everything they write, so that one wrong or stale operand changes the result for certain.
// Tasks have one or several calls. Families: "A" stored tiles, each of its own element; "L" a list
// of stored blocks of any extents; "G" generated tiles; "T" temporary blocks of any extents, which
// die with their last use. Devices, order, re-reads, rewrites and hints are random, and so is which
// of the families with an identity stay on the devices (BlockFamily::stays).

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernels/backend/backend.hpp"
#include "kernels/backend/operand.hpp"
#include "schedule/shared_call.hpp"
#include "tests/schedule/random_schedule.hpp"

namespace strata::test {

inline double scramble_work(std::span<const BlockExtent> extents, std::uint32_t) {
  double work = 0;
  for (const BlockExtent& x : extents) work += static_cast<double>(x.rows * x.cols);
  return work;
}

inline constexpr Operation scramble_w{
    .name = "scramble_w", .operands = 1, .access = {Access::write}, .work = scramble_work};
inline constexpr Operation scramble_u{
    .name = "scramble_u", .operands = 1, .access = {Access::read_write}, .work = scramble_work};
inline constexpr Operation scramble_wr{.name = "scramble_wr",
                                       .operands = 2,
                                       .access = {Access::write, Access::read},
                                       .work = scramble_work};
inline constexpr Operation scramble_urr{.name = "scramble_urr",
                                        .operands = 3,
                                        .access = {Access::read_write, Access::read, Access::read},
                                        .work = scramble_work};
inline constexpr Operation scramble_ruw{.name = "scramble_ruw",
                                        .operands = 3,
                                        .access = {Access::read, Access::read_write, Access::write},
                                        .work = scramble_work};
inline constexpr Operation scramble_uuw{
    .name = "scramble_uuw",
    .operands = 3,
    .access = {Access::read_write, Access::read_write, Access::write},
    .work = scramble_work};

inline constexpr std::array kScrambles{&scramble_w,   &scramble_u,   &scramble_wr,
                                       &scramble_urr, &scramble_ruw, &scramble_uuw};
inline constexpr std::array kScrambled{Element::fp64, Element::fp32, Element::fp8,   Element::int64,
                                       Element::dd,   Element::none, Element::fp16x2};

/// One call: what it writes follows from every byte that it reads, the variant and the extents.
inline void scramble(const Operation& operation, const BlockView* views, std::uint32_t variant) {
  const auto bytes_of_view = [](const BlockView& v) {
    return v.rows * v.cols * bytes_of(v.element);
  };
  std::uint64_t hash = variant + 1;
  const auto mix = [&](std::uint64_t value) { hash = random_bits(hash, value); };
  for (int i = 0; i < operation.operands; ++i) {
    mix(static_cast<std::uint64_t>(views[i].rows * 4096 + views[i].cols));
    if (!reads(operation.access[static_cast<std::size_t>(i)])) continue;
    const auto* data = static_cast<const unsigned char*>(views[i].data);
    for (std::int64_t b = 0; b < bytes_of_view(views[i]); ++b) mix(data[b]);
  }
  for (int i = 0; i < operation.operands; ++i) {
    if (!writes(operation.access[static_cast<std::size_t>(i)])) continue;
    auto* data = static_cast<unsigned char*>(views[i].data);
    const auto count = static_cast<std::uint64_t>(bytes_of_view(views[i]));
    for (std::uint64_t b = 0; b < count; ++b)
      data[b] = static_cast<unsigned char>(random_bits(hash + static_cast<std::uint64_t>(i), b));
  }
}

/// A call that devices share: the last of them makes it, for all.
inline void scramble_shared(const Operation& operation, const BlockView* views, int operands,
                            const SharedCall& call) {
  if (call.phase != SharePhase::work || call.rank + 1 != call.sharers) return;
  scramble(operation, views, 0);
  int written = 0;
  for (int i = 0; i < operation.operands; ++i) {
    if (!writes(operation.access[static_cast<std::size_t>(i)])) continue;
    const std::int64_t bytes = views[i].rows * views[i].cols * bytes_of(views[i].element);
    for (int other = 0; other + 1 < call.sharers; ++other)
      std::copy_n(static_cast<const std::byte*>(views[i].data), bytes,
                  static_cast<std::byte*>(views[call.first_of(other, operands) + written].data));
    ++written;
  }
}

template <std::size_t kWhich>
void scramble_kernel(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  submit_each(queue, calls,
              [variant = parameters.variant, operands = calls.operands](const BlockView* views) {
                const SharedCall call = SharedCall::of(variant);
                if (call.sharers > 1)
                  scramble_shared(*kScrambles[kWhich], views, operands, call);
                else
                  scramble(*kScrambles[kWhich], views, variant);
              });
}

/// The devices of another backend, whose queues run host code, with the kernels of `scramble…`.
class ScrambleBackend final : public Backend {
 public:
  explicit ScrambleBackend(const Backend& inner) : inner_(inner) {
    add_all(std::make_index_sequence<kScrambles.size()>());
  }
  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] DeviceKind kind() const override { return inner_.kind(); }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override { return inner_.devices(); }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    return inner_.make_device(index, budget_bytes);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return kernels_; }
  [[nodiscard]] bool reaches(int index, const void* first, std::int64_t bytes) const override {
    return inner_.reaches(index, first, bytes);
  }
  [[nodiscard]] bool linked(int from, int to) const override { return inner_.linked(from, to); }
  [[nodiscard]] bool on_host() const override { return inner_.on_host(); }

 private:
  template <std::size_t... kWhich>
  void add_all(std::index_sequence<kWhich...>) {
    (add(*kScrambles[kWhich], scramble_kernel<kWhich>, {}), ...);
  }
  /// For every combination of elements.
  void add(const Operation& operation, KernelFunction kernel, const Elements& chosen) {
    if (chosen.size() == operation.operands) {
      kernels_.set(operation, chosen, kernel);
      return;
    }
    for (const Element element : kScrambled) {
      Elements longer = chosen;
      longer.push_back(element);
      add(operation, kernel, longer);
    }
  }

  const Backend& inner_;
  KernelTable kernels_;
};

inline constexpr int kMapped = 0;
inline constexpr int kListed = 1;
inline constexpr int kMade = 2;
inline constexpr int kTemporary = 3;

class ScrambleTasks {
 public:
  ScrambleTasks(Dice& dice, const BlockTable& blocks, int devices, bool temporaries)
      : dice_(dice), blocks_(blocks), devices_(devices) {
    for (int f = 0; f < blocks.families(); ++f) {
      if (f == kTemporary && !temporaries) continue;
      blocks.for_each(f, [&](BlockId id) {
        all_.push_back(id);
        if (blocks.family(f).origin == Origin::stored) written_.insert(id);
      });
    }
  }

  std::vector<FlatTask> make(std::int64_t count) {
    tasks_.clear();
    for (std::int64_t tries = 0; std::ssize(tasks_) < count && tries < 20 * count; ++tries)
      add_one();
    set_hints();
    // Temporaries are gone, for whoever goes on from here.
    std::erase_if(written_, [](BlockId id) { return id.family() == kTemporary; });
    return tasks_;
  }

 private:
  void add_one() {
    const Operation& operation =
        *kScrambles[static_cast<std::size_t>(dice_.roll(std::ssize(kScrambles)))];
    std::vector<TaskOperand> operands;
    std::set<BlockId> used;
    std::set<BlockId> changed;
    const std::int64_t calls = dice_.roll(3) == 0 ? 1 + dice_.roll(6) : 1;
    for (std::int64_t call = 0; call < calls; ++call) {
      if (!add_call(operation, operands, used, changed)) break;
    }
    if (operands.empty()) return;
    for (const BlockId id : changed) written_.insert(id);
    if (dice_.roll(3) == 0) device_ = static_cast<int>(dice_.roll(devices_));
    tasks_.push_back(flat_task(operation, std::move(operands), device_,
                               static_cast<std::uint32_t>(dice_.roll(4))));
    tasks_.back().task.urgent = dice_.roll(4) == 0;
  }

  /// Blocks for one more call, of the same elements as the first; false if none were found.
  bool add_call(const Operation& operation, std::vector<TaskOperand>& operands,
                std::set<BlockId>& used, std::set<BlockId>& changed) {
    std::vector<BlockId> chosen;
    for (int i = 0; i < operation.operands; ++i) {
      const Access access = operation.access[static_cast<std::size_t>(i)];
      const auto suits = [&](BlockId id) {
        if (reads(access) && !written_.contains(id)) return false;
        const bool here = std::find(chosen.begin(), chosen.end(), id) != chosen.end();
        if (writes(access) ? used.contains(id) || here : changed.contains(id)) return false;
        for (int j = 0; j < std::ssize(chosen); ++j) {
          if (chosen[static_cast<std::size_t>(j)] == id &&
              writes(operation.access[static_cast<std::size_t>(j)]))
            return false;
        }
        const auto place = static_cast<std::size_t>(i);
        return operands.empty() || blocks_.element(operands[place].id) == blocks_.element(id);
      };
      const BlockId id = find(suits);
      if (!id.valid()) return false;
      chosen.push_back(id);
    }
    for (int i = 0; i < operation.operands; ++i) {
      const BlockId id = chosen[static_cast<std::size_t>(i)];
      operands.emplace_back(id);
      used.insert(id);
      if (writes(operation.access[static_cast<std::size_t>(i)])) changed.insert(id);
    }
    return true;
  }

  template <class F>
  BlockId find(const F& suits) {
    for (int tries = 0; tries < 30; ++tries) {
      const BlockId id = all_[static_cast<std::size_t>(dice_.roll(std::ssize(all_)))];
      if (suits(id)) return id;
    }
    return {};
  }

  void set_hints() {
    std::set<BlockId> touched;
    std::set<BlockId> rewritten;
    for (auto flat = tasks_.rbegin(); flat != tasks_.rend(); ++flat) {
      for (std::size_t i = 0; i < flat->operands.size(); ++i) {
        TaskOperand& operand = flat->operands[i];
        const bool temporary = operand.id.family() == kTemporary;
        const bool last = touched.insert(operand.id).second;
        if (temporary && last) operand.hint = Hint::last_use;
        if (writes(flat->task.access_of(i)) && rewritten.insert(operand.id).second && !temporary &&
            dice_.roll(2) == 0)
          operand.hint = operand.hint | Hint::last_write;
        if (dice_.roll(8) == 0)
          operand.hint = operand.hint | (dice_.roll(2) == 0 ? Hint::retain : Hint::release);
      }
    }
  }

  Dice& dice_;
  const BlockTable& blocks_;
  int devices_;
  int device_ = 0;
  std::vector<BlockId> all_;
  std::set<BlockId> written_;
  std::vector<FlatTask> tasks_;
};

inline BlockTable scramble_blocks(Dice& dice) {
  const auto element = [&] {
    return kScrambled[static_cast<std::size_t>(dice.roll(std::ssize(kScrambled)))];
  };
  const auto listed = [&](std::int64_t count) {
    std::vector<BlockExtent> extents;
    for (std::int64_t i = 0; i < count; ++i)
      extents.push_back({i, 0, 1 + dice.roll(14), 1 + dice.roll(9)});
    return extents;
  };
  const auto elements = [&](std::int64_t count) {
    std::vector<Element> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(element());
    return all;
  };
  const std::int64_t tile = 3 + dice.roll(9);
  const std::int64_t rows = 2 + dice.roll(5);
  BlockTable blocks;
  blocks.add({.name = "A",
              .rows = rows * tile - dice.roll(3),
              .cols = 2 * tile,
              .tile_rows = tile,
              .tile_cols = tile,
              .identity = 101,
              .stays = dice.roll(2) == 0,
              .elements = elements(2 * rows)});
  const std::int64_t count = 3 + dice.roll(8);
  blocks.add({.name = "L",
              .identity = 102,
              .stays = dice.roll(3) == 0,
              .elements = elements(count),
              .listed = listed(count)});
  blocks.add({.name = "G",
              .rows = rows * tile,
              .cols = tile,
              .tile_rows = tile,
              .tile_cols = tile,
              .element = element(),
              .origin = Origin::generated,
              .identity = 103,
              .stays = dice.roll(2) == 0});
  const std::int64_t temporaries = 2 + dice.roll(4);
  blocks.add({.name = "T",
              .origin = Origin::temporary,
              .elements = elements(temporaries),
              .listed = listed(temporaries)});
  return blocks;
}

inline std::vector<int> most_operands(const BlockTable& blocks,
                                      const std::vector<FlatTask>& tasks) {
  std::vector<int> most(static_cast<std::size_t>(blocks.families()), 0);
  for (const FlatTask& flat : tasks) {
    std::vector<std::set<BlockId>> ids(most.size());
    for (const TaskOperand& operand : flat.operands)
      ids[static_cast<std::size_t>(operand.id.family())].insert(operand.id);
    for (std::size_t f = 0; f < most.size(); ++f)
      most[f] = std::max(most[f], static_cast<int>(ids[f].size()));
  }
  return most;
}

inline std::vector<std::vector<FlatTask>> in_steps(Dice& dice, const std::vector<FlatTask>& tasks) {
  std::vector<std::vector<FlatTask>> steps(1);
  for (const FlatTask& task : tasks) {
    while (dice.roll(4) == 0) steps.emplace_back();  // steps may be empty
    steps.back().push_back(task);
  }
  return steps;
}

/// Two schedules over the same blocks, the second of which goes on where the first ends; and one
/// without tasks and without blocks that stay, which brings home what is only on devices.
struct ScramblePair {
  Schedule first;
  Schedule second;
  Schedule fetch;
};

/// Whether a block of any family is only on the devices.
inline bool only_here(const Residency& residency) {
  return residency.only_here(101) || residency.only_here(102) || residency.only_here(103);
}

/// On 1 to 4 devices; every twentieth seed on up to 80.
inline ScramblePair scramble_pair(std::uint64_t seed, bool temporaries = true) {
  Dice dice(seed);
  const int devices = static_cast<int>(seed % 20 == 7 ? 5 + dice.roll(76) : 1 + dice.roll(4));
  BlockTable blocks = scramble_blocks(dice);
  ScrambleTasks tasks(dice, blocks, devices, temporaries);
  const std::vector<FlatTask> one = tasks.make(1 + dice.roll(80));
  const std::vector<FlatTask> two = tasks.make(1 + dice.roll(40));
  // What the first has written is at home for the second.
  BlockTable later;
  BlockTable home;
  for (int f = 0; f < blocks.families(); ++f) {
    BlockFamily family = blocks.family(f);
    if (family.origin == Origin::generated) family.origin = Origin::stored;
    later.add(family);
    family.stays = false;
    home.add(std::move(family));
  }
  const std::vector<int> most_one = most_operands(blocks, one);
  const std::vector<int> most_two = most_operands(blocks, two);
  auto steps_one = in_steps(dice, one);
  auto steps_two = in_steps(dice, two);
  return {schedule_of(std::move(blocks), devices, most_one, std::move(steps_one)),
          schedule_of(std::move(later), devices, most_two, std::move(steps_two)),
          schedule_of(std::move(home), devices, std::vector<int>(most_two.size()), {})};
}

/// The same tasks on so many devices that hold all blocks, some of them urgent; where they `share`,
/// some of several.
inline std::shared_ptr<const Schedule> resident_on(const Schedule& schedule, int count,
                                                   bool share = false) {
  auto same = std::make_shared<Schedule>(schedule);
  same->devices = count;
  same->resident = true;
  same->emit = [emit = schedule.emit, count, share](std::int64_t step, TaskList& tasks) {
    emit(step, tasks);
    for (Task& task : tasks.tasks()) {
      task.device = static_cast<std::uint16_t>(task.device % count);
      task.urgent = (step + task.first) % 3 == 0;
      if (!share || count == 1 || task.calls > 1 || task.variant != 0 || task.first % 2 != 0)
        continue;
      const auto sharers = static_cast<int>(2 + (step + task.first) % (count - 1));
      task.sharers = static_cast<std::uint16_t>(sharers);
      task.device = static_cast<std::uint16_t>(task.device % (count - sharers + 1));
    }
  };
  return same;
}

/// A resident schedule with families that lie with the caller: tiles or panels, which are there
/// from the beginning and on one device, and what is generated; with tasks that name their queue,
/// and some values that go home though their family stays.
inline std::shared_ptr<const Schedule> placed_on(const Schedule& schedule, std::uint64_t seed) {
  auto same = std::make_shared<Schedule>(schedule);
  const auto there = static_cast<int>(seed % 2);
  same->blocks.place(there);
  if (seed % 3 == 0) same->blocks.place(2, 907);
  const auto device = static_cast<std::uint16_t>(seed / 2 % static_cast<unsigned>(same->devices));
  same->emit = [emit = schedule.emit, there, device](std::int64_t step, TaskList& tasks) {
    emit(step, tasks);
    for (Task& task : tasks.tasks()) {
      const std::span<TaskOperand> operands = tasks.operands(task);
      const bool touches = std::any_of(operands.begin(), operands.end(), [&](const TaskOperand& o) {
        return o.id.family() == there;
      });
      if (touches) task.device = device;
      if (touches) task.sharers = 1;
      if (task.sharers == 1) task.queue = static_cast<std::int16_t>((step + task.first) % 5 - 1);
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (task.sharers == 1 && (step + task.first + i) % 4 == 0)
          operands[i].hint = operands[i].hint | Hint::home;
    }
  };
  return same;
}

/// Budgets of their own for each device, each with room for one task and some more.
inline Machine scramble_machine(Dice& dice, const Schedule& schedule) {
  Machine machine = Machine::emulated(schedule.devices, 0);
  for (DeviceModel& device : machine.devices) {
    device.memory_bytes = smallest_budget_bytes(schedule) + dice.roll(24) * 384;
    device.compute_queues = static_cast<int>(1 + dice.roll(3));
    device.kind = dice.roll(4) == 0 ? DeviceKind::cpu : DeviceKind::gpu;
  }
  if (dice.roll(2) == 0) machine.device_to_device = {1e15, 0};
  return machine;
}

/// The same, with families of both schedules in storage; every fourth machine has no host memory
/// between that and the devices.
inline Machine storage_machine(Dice& dice, ScramblePair& pair) {
  for (int f = 0; f < pair.first.blocks.families(); ++f) {
    const bool in_storage = dice.roll(3) > 0;
    for (Schedule* schedule : {&pair.first, &pair.second, &pair.fetch})
      schedule->blocks.keep_in_storage(f, in_storage);
  }
  Machine machine = scramble_machine(dice, pair.first);
  std::int64_t least = 0;
  for (DeviceModel& device : machine.devices)
    device.memory_bytes = std::max(device.memory_bytes, smallest_budget_bytes(pair.second));
  for (const Schedule* schedule : {&pair.first, &pair.second})
    least = std::max(least, smallest_host_bytes(*schedule, machine.devices[0].memory_bytes));
  machine.storage = {{1e9, 0}, {2e9, 0}, dice.roll(4) == 0 ? 0 : least + dice.roll(12) * 512};
  return machine;
}

}  // namespace strata::test
