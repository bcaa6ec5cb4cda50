#pragma once
// A proof, step by step, that a plan computes what its schedule says, whatever the timing.
//
// Contract: shares nothing with the planner but the data types. `flatten` collects a plan;
// `check_plan` returns "" or the first violation in words. Method: vector clocks (Fidge, Mattern
// 1988). A step knows what its queue did before it and, for each wait, what the awaited step knew.
// 1. Waits are in range and point backwards in the plan.
// 2. Any two accesses to one slot of one device, or to the home of one block, of which one is a
//    write, are ordered by that knowledge (a copy between devices reads the one and writes the
//    other). It suffices to compare with the last write and the reads since: older ones are ordered
//    before those.
// 3. So the outcome is that of the plan read from top to bottom. There, the computations are the
//    schedule's tasks in program order, every operand is its block at its latest version, and at
//    the end every block that was written rests at home at its latest version.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule/lookahead.hpp"
#include "schedule/plan.hpp"
#include "schedule/shared_call.hpp"
#include "tests/schedule/flat_plan.hpp"

namespace strata::test {

/// Whether each slot is one block's own.
inline bool has_places(const Schedule& schedule) {
  return schedule.own_places || schedule.resident;
}

/// Whether a place is not in the arena.
inline bool lies_with_caller(const Schedule& schedule, const SlotPlace& slot) {
  if (!schedule.resident) return false;
  std::int64_t block = slot.block;
  int family = 0;
  while (block >= schedule.blocks.count(family)) block -= schedule.blocks.count(family++);
  return schedule.blocks.family(family).placed;
}

class PlanChecker {
 public:
  PlanChecker(const Schedule& schedule, const PlanLayout& layout, const PlanOptions& options = {})
      : schedule_(schedule),
        layout_(layout),
        options_(options),
        clock_of_queue_(layout.queues.size()) {
    for (Clock& clock : clock_of_queue_) clock.assign(layout.queues.size(), 0);
    history_.resize(layout.queues.size());
    begin_before_the_plan();
  }

  std::string check(const std::vector<FlatStep>& steps) {
    const std::vector<FlatTask> tasks = tasks_of(schedule_, options_.first_step);
    std::size_t next_task = 0;
    for (const FlatStep& flat : steps) {
      begin(flat);
      if (!error_.empty()) return error_;
      const bool between_slots = flat.step.operand_count > 1;
      if (flat.step.kind == StepKind::load) between_slots ? copy_in() : load();
      if (flat.step.kind == StepKind::store) between_slots ? copy_out() : store();
      if (flat.step.kind == StepKind::read) load();
      if (flat.step.kind == StepKind::write) store();
      if (flat.step.kind == StepKind::peer) copy_from_peer();
      if (flat.step.kind == StepKind::compute && flat.step.shared) {
        if (next_task == tasks.size()) return "a phase that is not due";
        if (share(tasks[next_task])) ++next_task;
      } else if (flat.step.kind == StepKind::compute) {
        if (next_task == tasks.size() || !same(tasks[next_task], flat)) complain("not due");
        if (error_.empty()) compute(tasks[next_task].task);
        if (error_.empty()) note_asked_home(tasks[next_task]);
        if (error_.empty()) forget_temporaries(tasks[next_task]);
        ++next_task;
      }
      if (!error_.empty()) return error_;
    }
    if (next_task != tasks.size()) return "tasks are missing";
    for (const auto& [block, version] : latest_) {
      const BlockFamily& family = schedule_.blocks.family(block.family());
      if (family.origin == Origin::temporary) continue;
      if (family.stays && lies_somewhere(block, version)) continue;
      if (home_of_block(block) != version) return schedule_.blocks.name(block) + " is not at home";
    }
    for (const auto& [block, version] : asked_home_)
      if (home_of_block(block) < version) return schedule_.blocks.name(block) + " was to go home";
    return "";
  }

  /// What is wrong with the residency that a plan says it leaves, after `check`: "" if nothing.
  std::string check_end(const Residency& end) {
    for (std::size_t d = 0; d < end.devices.size(); ++d) {
      for (const ResidentBlock& block : end.devices[d].blocks) {
        const BlockId id = id_of(block);
        const std::string name = schedule_.blocks.name(id);
        if (block.only_here != (home_of_block(id) != latest(id)))
          return name + (block.only_here ? " is said to be only there, and is at home"
                                         : " stays, but is not at home");
        if (block.only_here && !schedule_.blocks.family(id.family()).stays)
          return name + " was to go home";
        const auto found =
            std::find_if(contents_.begin(), contents_.end(), [&](const auto& place_and_content) {
              const auto& [place, content] = place_and_content;
              if (std::get<0>(place) != static_cast<int>(d)) return false;
              const SlotPlace& slot = layout_.devices[d].slots[std::get<1>(place)];
              return slot.offset == block.offset && content.block == id &&
                     content.version == latest(id);
            });
        if (found == contents_.end()) return name + " does not lie where it is said to";
      }
    }
    return "";
  }

  /// Whether the wait `w` of step `s` follows from everything else.
  static bool implied(const std::vector<FlatStep>& steps, std::size_t s, std::size_t w,
                      const Schedule& schedule, const PlanLayout& layout,
                      const PlanOptions& options = {}) {
    std::vector<FlatStep> without(steps.begin(),
                                  steps.begin() + static_cast<std::ptrdiff_t>(s) + 1);
    auto& waits = without.back().waits;
    const Wait dropped = waits[w];
    waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
    PlanChecker checker(schedule, layout, options);
    for (const FlatStep& flat : without) checker.begin(flat);
    return checker.now_[dropped.queue] >= dropped.sequence;
  }

 private:
  using Clock = std::vector<std::uint64_t>;
  using Place = std::tuple<int, std::uint64_t>;  // device, slot; −1, block: home
  struct Uses {
    Wait write;
    std::vector<Wait> reads;
  };
  struct Content {
    BlockId block;
    int version = -1;
  };

  template <class I>
  static std::size_t at(I i) {
    return static_cast<std::size_t>(i);
  }
  static bool same(const FlatTask& task, const FlatStep& flat) {
    const Step& step = flat.step;
    return task.task.operation == step.operation && task.task.variant == step.variant &&
           task.task.calls == step.calls && task.task.device == step.device &&
           std::equal(task.operands.begin(), task.operands.end(), flat.operands.begin(),
                      flat.operands.end(),
                      [](const TaskOperand& a, BlockId b) { return a.id == b; });
  }

  void complain(const std::string& what) {
    if (!error_.empty()) return;
    std::ostringstream out;
    out << "queue " << step_.queue << " #" << step_.sequence << " ("
        << schedule_.blocks.name(flat_.operands[0]) << "): " << what;
    error_ = out.str();
  }

  [[nodiscard]] BlockId id_of(const ResidentBlock& block) const {
    int family = 0;
    while (schedule_.blocks.family(family).identity != block.identity) ++family;
    return {family, block.row, block.col};
  }

  /// Whether a slot holds a block at a version.
  [[nodiscard]] bool lies_somewhere(BlockId id, std::int64_t version) const {
    return std::any_of(contents_.begin(), contents_.end(), [&](const auto& place_and_content) {
      return place_and_content.second.block == id && place_and_content.second.version == version;
    });
  }

  /// The steps before the first are done, and residents lie where the layout says; the homes of
  /// those that are only there hold nothing of use.
  void begin_before_the_plan() {
    for (std::int64_t s = 0; s < options_.first_step; ++s) {
      TaskList done;
      schedule_.emit(s, done);
      for (const Task& task : std::as_const(done).tasks()) {
        const auto operands = std::as_const(done).operands(task);
        for (std::size_t i = 0; i < operands.size(); ++i) {
          if (strata::writes(task.access_of(i)))
            latest_[operands[i].id] = home_[operands[i].id] = 1;
        }
      }
    }
    for (std::size_t d = 0; d < layout_.devices.size(); ++d) {
      for (std::size_t s = 0; s < layout_.devices[d].resident.size(); ++s) {
        const BlockId id = id_of(layout_.devices[d].resident[s]);
        latest_.try_emplace(id, 0);
        home_.try_emplace(id, 0);
        if (layout_.devices[d].resident[s].only_here) home_[id] = -1;
        const std::size_t slot =
            schedule_.resident ? at(layout_.devices[d].place_of[at(schedule_.blocks.index(id))])
                               : s;
        contents_[{static_cast<int>(d), slot}] = {id, latest(id)};
      }
    }
    for (int f = 0; f < schedule_.blocks.families(); ++f) {
      const BlockFamily& family = schedule_.blocks.family(f);
      if (family.placed && family.identity == 0 && family.origin == Origin::stored)
        schedule_.blocks.for_each(f, [&](BlockId id) { place_with_caller(id); });
    }
  }
  /// Its value is where its device has it, and at home there is none.
  void place_with_caller(BlockId id) {
    home_[id] = -1;
    for (std::size_t d = 0; d < layout_.devices.size(); ++d) {
      const std::int32_t slot = layout_.devices[d].place_of[at(schedule_.blocks.index(id))];
      if (slot >= 0) contents_[{static_cast<int>(d), at(slot)}] = {id, latest(id)};
    }
  }

  [[nodiscard]] bool expected_queue() const {
    const PlanQueue& queue = layout_.queues[step_.queue];
    const DeviceLayout& device = layout_.devices[step_.device];
    if (queue.device != step_.device) return false;
    const bool on_host = step_.device == layout_.host;
    const bool in_stream = options_.copies_in_stream && !on_host;
    if (on_host && step_.kind != StepKind::read && step_.kind != StepKind::write) return false;
    switch (step_.kind) {
      case StepKind::peer: return queue.role == QueueRole::peer_in;
      case StepKind::load:
      case StepKind::read:
        return queue.role == (in_stream ? QueueRole::compute : QueueRole::copy_in);
      case StepKind::store:
      case StepKind::write:
        return queue.role == (in_stream ? QueueRole::compute : QueueRole::copy_out);
      case StepKind::compute: break;
    }
    return queue.role == QueueRole::compute ||
           (device.urgent >= 0 && queue.role == QueueRole::urgent);
  }

  void begin(const FlatStep& flat) {
    flat_ = flat;
    step_ = flat.step;
    if (!expected_queue()) complain("on a wrong queue");
    Clock& mine = clock_of_queue_[step_.queue];
    if (step_.sequence != mine[step_.queue] + 1) complain("sequence has a gap");
    for (const Wait& wait : flat.waits) {
      if (wait.queue >= history_.size() || wait.sequence == 0 || wait.queue == step_.queue ||
          wait.sequence > history_[wait.queue].size()) {
        complain("a wait that does not point backwards");
        continue;
      }
      const Clock& other = history_[wait.queue][wait.sequence - 1];
      for (std::size_t q = 0; q < mine.size(); ++q) mine[q] = std::max(mine[q], other[q]);
    }
    now_ = mine;  // before the step itself
    mine[step_.queue] = step_.sequence;
    history_[step_.queue].push_back(mine);
  }

  void ordered_after(const Wait& earlier, const char* what) {
    if (earlier.sequence > now_[earlier.queue]) complain(std::string("races with ") + what);
  }
  void reads(const Place& place) {
    Uses& uses = uses_[place];
    ordered_after(uses.write, "the write of what it reads");
    uses.reads.push_back({step_.queue, step_.sequence});
  }
  void writes(const Place& place) {
    Uses& uses = uses_[place];
    ordered_after(uses.write, "the write of what it overwrites");
    for (const Wait& read : uses.reads) ordered_after(read, "a read of what it overwrites");
    uses = {{step_.queue, step_.sequence}, {}};
    overwrite_others(place);
  }
  /// Places of single blocks may overlap: what else lay there is gone, and its uses are over.
  void overwrite_others(const Place& place) {
    const auto [device, number] = place;
    if (device < 0 || !schedule_.own_places) return;
    const auto& slots = layout_.devices[at(device)].slots;
    const SlotPlace& mine = slots[number];
    for (auto& [other, uses] : uses_) {
      if (std::get<0>(other) != device || other == place) continue;
      const SlotPlace& theirs = slots[std::get<1>(other)];
      if (theirs.offset >= mine.offset + mine.bytes || mine.offset >= theirs.offset + theirs.bytes)
        continue;
      ordered_after(uses.write, "a write of what it overlaps");
      for (const Wait& read : uses.reads) ordered_after(read, "a read of what it overlaps");
      contents_[other] = {};
    }
  }

  /// The place of operand i on a device.
  Place slot(std::size_t i, int device) {
    const std::int32_t number = flat_.slots[i];
    const auto& slots = layout_.devices[at(device)].slots;
    if (number < 0 || number >= std::ssize(slots)) {
      complain("no such slot");
      return {device, 0};
    }
    const SlotPlace& here = slots[at(number)];
    if (has_places(schedule_) && here.block != schedule_.blocks.index(flat_.operands[i]))
      complain("in the place of another block");
    const std::int64_t capacity =
        has_places(schedule_) ? here.bytes : layout_.class_bytes[at(here.size_class)];
    if (schedule_.blocks.bytes(flat_.operands[i]) > capacity) complain("too large for its slot");
    return {device, at(number)};
  }
  static Place home_of(BlockId id) { return {-1, id.bits}; }

  void expect_latest(const Place& place, BlockId id) {
    const Content& content = contents_[place];
    if (content.block != id) complain("slot does not hold " + schedule_.blocks.name(id));
    if (content.version != latest(id)) complain("stale " + schedule_.blocks.name(id));
  }
  /// 0: as it was stored; −1: nowhere yet.
  int latest(BlockId id) {
    const auto found = latest_.find(id);
    if (found != latest_.end()) return found->second;
    return schedule_.blocks.family(id.family()).origin == Origin::stored ? 0 : -1;
  }
  int home_of_block(BlockId id) {
    const auto found = home_.find(id);
    if (found != home_.end()) return found->second;
    return schedule_.blocks.family(id.family()).origin == Origin::stored ? 0 : -1;
  }

  /// Whether the block rests where a step of this kind finds it, or puts it.
  void expect_home(BlockId id) {
    const bool storage = step_.kind == StepKind::read || step_.kind == StepKind::write;
    if (storage != schedule_.blocks.family(id.family()).in_storage)
      complain("that is not where it rests");
  }
  void load() {
    const BlockId id = flat_.operands[0];
    const Place place = slot(0, step_.device);
    expect_home(id);
    reads(home_of(id));
    writes(place);
    contents_[place] = {id, home_of_block(id)};
    if (contents_[place].version < 0) complain("loads what nobody wrote");
  }
  void store() {
    const BlockId id = flat_.operands[0];
    const Place place = slot(0, step_.device);
    expect_home(id);
    expect_latest(place, id);
    reads(place);
    writes(home_of(id));
    home_[id] = contents_[place].version;
  }
  /// From a slot of host memory, which has to hold the latest value, and into one.
  void copy_in() {
    if (at(step_.source) != at(layout_.host)) complain("not from host memory");
    if (!error_.empty()) return;
    const Place from = slot(1, step_.source);
    const Place to = slot(0, step_.device);
    expect_latest(from, flat_.operands[0]);
    if (contents_[from].version < 0) complain("loads what nobody wrote");
    reads(from);
    writes(to);
    contents_[to] = contents_[from];
  }
  void copy_out() {
    if (at(step_.source) != at(layout_.host)) complain("not into host memory");
    if (!error_.empty()) return;
    const Place from = slot(0, step_.device);
    const Place to = slot(1, step_.source);
    expect_latest(from, flat_.operands[0]);
    reads(from);
    writes(to);
    contents_[to] = contents_[from];
  }
  /// A load whose source is a slot of another device, which has to hold the latest value; both
  /// slots are places like any other, so what writes the source afterwards has to come after the
  /// copy.
  void copy_from_peer() {
    const BlockId id = flat_.operands[0];
    if (layout_.devices[step_.device].peer_in < 0 || at(step_.source) >= layout_.devices.size() ||
        step_.source == step_.device) {
      complain("no such peer");
      return;
    }
    const Place from = slot(1, step_.source);
    const Place to = slot(0, step_.device);
    expect_latest(from, id);
    if (contents_[from].version < 0) complain("copies what nobody wrote");
    reads(from);
    writes(to);
    contents_[to] = contents_[from];
  }

  /// Every operand is its block at its latest version in a slot of its own; a block that some
  /// operand writes is written once, whatever the others do.
  void compute(const Task& task) {
    const DeviceLayout& device = layout_.devices[step_.device];
    if (task.queue >= 0 &&
        step_.queue != device.first_compute + task.queue % device.compute_queues &&
        !options_.copies_in_stream && !(task.urgent && device.urgent >= 0))
      complain("on another queue than its task's");
    std::map<Place, BlockId> blocks;
    std::map<Place, bool> written;
    for (std::size_t i = 0; i < flat_.operands.size(); ++i) {
      const BlockId id = flat_.operands[i];
      const Place place = slot(i, step_.device);
      const Access access = task.access_of(i);
      for (const auto& [other, block] : blocks)
        if (block != id && overlap(place, other)) complain("operands overlap");
      const auto [known, fresh] = blocks.emplace(place, id);
      if (known->second != id) complain("operands share a slot");
      written[place] = written[place] || strata::writes(access);
      if (!strata::reads(access)) continue;
      expect_latest(place, id);
      if (latest(id) < 0) complain("reads what nobody wrote");
    }
    for (const auto& [place, id] : blocks) {
      if (!written[place]) {
        reads(place);
        continue;
      }
      writes(place);
      const int version = latest(id) + 1;
      contents_[place] = {id, version};
      latest_[id] = version;
    }
  }

  /// A phase of a task that devices share, one after the other in the order of the devices; whether
  /// it was the last. What a device writes to others is ordered by the phases alone.
  bool share(const FlatTask& flat_task) {
    const Task& task = flat_task.task;
    const auto count = static_cast<std::size_t>(task.sharers);
    const std::size_t rank = phases_.size() % count;
    const std::size_t phase = phases_.size() / count;
    const std::size_t own = flat_task.operands.size();
    const SharedCall call = SharedCall::of(step_.variant);
    if (count < 2 || step_.operation != task.operation || at(step_.device) != task.device + rank ||
        static_cast<std::size_t>(call.phase) != phase + 1 || at(call.rank) != rank ||
        at(call.sharers) != count || flat_.operands.size() < own)
      complain("not the phase that is due");
    if (!error_.empty()) return false;
    std::vector<std::size_t> written;
    for (std::size_t i = 0; i < own; ++i) {
      if (flat_.operands[i] != flat_task.operands[i].id) complain("not the task's operands");
      if (strata::writes(task.access_of(i))) written.push_back(i);
    }
    if (at(call.written) != written.size() ||
        flat_.operands.size() != own + (count - 1) * written.size())
      complain("not the operands of the others");
    for (std::size_t k = own; error_.empty() && k < flat_.operands.size(); ++k) {
      std::size_t other = (k - own) / written.size();
      if (other >= rank) ++other;
      const BlockId id = flat_.operands[k];
      if (id != flat_task.operands[written[(k - own) % written.size()]].id)
        complain("not what another device writes");
      (void)slot(k, static_cast<int>(task.device + other));
    }
    for (std::size_t other = 0; phase > 0 && other < count; ++other)
      ordered_after(phases_[(phase - 1) * count + other], "the phase before");
    for (std::size_t i = 0; error_.empty() && i < own; ++i) {
      const Place place = slot(i, step_.device);
      if (phase == 0 && strata::reads(task.access_of(i))) expect_latest(place, flat_.operands[i]);
      if (strata::writes(task.access_of(i)))
        writes(place);
      else
        reads(place);
    }
    phases_.push_back({step_.queue, step_.sequence});
    if (phases_.size() < 3 * count) return false;
    phases_.clear();
    for (const std::size_t i : written) {
      const BlockId id = flat_.operands[i];
      const bool again = std::any_of(written.begin(), written.end(), [&](std::size_t k) {
        return k < i && flat_.operands[k] == id;
      });
      if (!again) ++latest_.try_emplace(id, latest(id)).first->second;
      for (std::size_t d = task.device; d < task.device + count; ++d) {
        const std::int32_t number = layout_.devices[d].place_of[at(schedule_.blocks.index(id))];
        contents_[{static_cast<int>(d), at(number)}] = {id, latest(id)};
      }
    }
    forget_temporaries(flat_task);
    return true;
  }

  [[nodiscard]] bool overlap(const Place& a, const Place& b) const {
    if (!schedule_.own_places) return false;
    const SlotPlace& x = layout_.devices[at(std::get<0>(a))].slots[std::get<1>(a)];
    const SlotPlace& y = layout_.devices[at(std::get<0>(b))].slots[std::get<1>(b)];
    return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  }

  /// What a task says is its last use may not be used again.
  void forget_temporaries(const FlatTask& task) {
    for (const TaskOperand& operand : task.operands) {
      if (has(operand.hint, Hint::last_use)) latest_.erase(operand.id);
    }
  }
  /// What a task writes and says goes home is there in the end, at this version or a later one.
  void note_asked_home(const FlatTask& task) {
    for (std::size_t i = 0; i < task.operands.size(); ++i) {
      const TaskOperand& operand = task.operands[i];
      if (strata::writes(task.task.access_of(i)) && has(operand.hint, Hint::home) &&
          !has(operand.hint, Hint::last_use))
        asked_home_[operand.id] = latest(operand.id);
    }
  }

  const Schedule& schedule_;
  const PlanLayout& layout_;
  PlanOptions options_;
  FlatStep flat_;
  Step step_;
  Clock now_;
  std::vector<Clock> clock_of_queue_;
  std::vector<std::vector<Clock>> history_;  // by queue: what is known once step #i is done
  std::map<Place, Uses> uses_;
  std::map<Place, Content> contents_;
  std::map<BlockId, int> home_;
  std::map<BlockId, int> asked_home_;
  std::map<BlockId, int> latest_;
  std::vector<Wait> phases_;  // so far, of the task that is being shared
  std::string error_;
};

/// What was only on the devices before a plan has to be among the residents that its layout knows,
/// where it lies: "" or what is lost.
inline std::string check_start(const Residency& start, const PlanLayout& layout) {
  for (std::size_t d = 0; d < start.devices.size(); ++d) {
    for (const ResidentBlock& block : start.devices[d].blocks) {
      if (!block.only_here) continue;
      const auto& known = layout.devices[d].resident;
      if (std::find(known.begin(), known.end(), block) == known.end())
        return "block (" + std::to_string(block.row) + "," + std::to_string(block.col) +
               ") was only on device " + std::to_string(d) + " and is lost";
    }
  }
  return "";
}

inline std::string check_plan(const Plan& plan) {
  const std::string lost = check_start(plan.start(), plan.layout());
  if (!lost.empty()) return lost;
  const PlanLayout& layout = plan.layout();
  for (const DeviceLayout& device : layout.devices) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const SlotPlace& slot : device.slots) {
      if (slot.offset % 256 != 0) return "a slot is not aligned";
      if (plan.schedule().own_places) {
        if (slot.offset < 0 || slot.offset + slot.bytes > device.arena_bytes)
          return "a place past the arena";
        continue;
      }
      if (lies_with_caller(plan.schedule(), slot)) {
        if (slot.offset != 0) return "a place in the arena of what the caller has";
        continue;
      }
      ranges.emplace_back(
          slot.offset,
          slot.offset + (plan.schedule().resident
                             ? slot.bytes
                             : layout.class_bytes[static_cast<std::size_t>(slot.size_class)]));
    }
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
      if (ranges[i].second > ranges[i + 1].first) return "slots overlap";
    }
    if (!ranges.empty() && ranges.back().second > device.arena_bytes) return "slots past the arena";
  }
  PlanChecker checker(plan.schedule(), layout, plan.options());
  const std::string wrong = checker.check(flatten(plan));
  return wrong.empty() ? checker.check_end(plan.end()) : wrong;
}

/// Drops each wait of a plan in turn and expects the checker to notice exactly those that the other
/// waits do not imply. Returns how many it dropped and how many of them were needed.
struct DroppedWaits {
  std::int64_t dropped = 0;
  std::int64_t needed = 0;
};

inline DroppedWaits expect_every_needed_wait_noticed(const Plan& plan) {
  const std::vector<FlatStep> steps = flatten(plan);
  DroppedWaits count;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (std::size_t w = 0; w < steps[s].waits.size(); ++w) {
      std::vector<FlatStep> mutant = steps;
      mutant[s].waits.erase(mutant[s].waits.begin() + static_cast<std::ptrdiff_t>(w));
      const std::string found = PlanChecker(plan.schedule(), plan.layout()).check(mutant);
      const bool implied = PlanChecker::implied(steps, s, w, plan.schedule(), plan.layout());
      EXPECT_EQ(found.empty(), implied) << "step " << s << " wait " << w << ' ' << found;
      ++count.dropped;
      count.needed += implied ? 0 : 1;
    }
  }
  return count;
}

}  // namespace strata::test
