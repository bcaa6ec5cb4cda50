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
// 3. So the outcome is that of the plan read from top to bottom; there, the computations are the
//    schedule's tasks in program order, every operand is its block at its latest version, and at
//    the end every block that was written rests at home at its latest version.

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "schedule/lookahead.hpp"
#include "schedule/plan.hpp"

namespace strata::test {

struct FlatStep {
  Step step;
  std::vector<Wait> waits;
};

inline std::vector<FlatStep> flatten(const Plan& plan) {
  std::vector<FlatStep> steps;
  PlanReader reader(plan);
  PlanWindow window;
  while (reader.next(window)) {
    for (const Step& step : window.steps) {
      const auto first = window.waits.begin() + step.wait_begin;
      steps.push_back({step, {first, first + step.wait_count}});
    }
  }
  return steps;
}

inline std::vector<Task> tasks_of(const Schedule& schedule) {
  std::vector<Task> tasks;
  for (std::int64_t s = 0; s < schedule.steps; ++s) schedule.emit(s, tasks);
  return tasks;
}

class PlanChecker {
 public:
  PlanChecker(const Schedule& schedule, const PlanLayout& layout, bool copies_in_stream = false)
      : schedule_(schedule),
        layout_(layout),
        copies_in_stream_(copies_in_stream),
        clock_of_queue_(at(layout.queues())) {
    for (Clock& clock : clock_of_queue_) clock.assign(at(layout.queues()), 0);
    history_.resize(at(layout.queues()));
  }

  std::string check(const std::vector<FlatStep>& steps) {
    const std::vector<Task> tasks = tasks_of(schedule_);
    std::size_t next_task = 0;
    for (const FlatStep& flat : steps) {
      const Step& step = flat.step;
      begin(flat);
      if (!error_.empty()) return error_;
      if (step.kind == StepKind::load) load(step);
      if (step.kind == StepKind::store) store(step);
      if (step.kind == StepKind::peer) copy_from_peer(step);
      if (step.kind == StepKind::compute) {
        if (next_task == tasks.size() || !same(tasks[next_task], step.task)) complain("not due");
        ++next_task;
        compute(step);
      }
      if (!error_.empty()) return error_;
    }
    if (next_task != tasks.size()) return "tasks are missing";
    for (const auto& [block, version] : latest_) {
      if (home_[block] != version) return schedule_.blocks.name(block) + " is not at home";
    }
    return "";
  }

  /// Whether the wait `w` of step `s` follows from everything else.
  static bool implied(const std::vector<FlatStep>& steps, std::size_t s, std::size_t w,
                      const Schedule& schedule, const PlanLayout& layout) {
    std::vector<FlatStep> without(steps.begin(),
                                  steps.begin() + static_cast<std::ptrdiff_t>(s) + 1);
    auto& waits = without.back().waits;
    const Wait dropped = waits[w];
    waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
    PlanChecker checker(schedule, layout);
    for (const FlatStep& flat : without) checker.begin(flat);
    return checker.now_[dropped.queue] >= dropped.sequence;
  }

 private:
  using Clock = std::vector<std::uint64_t>;
  using Place = std::tuple<int, int, std::uint64_t>;  // device, family, slot; −1, −1, block: home
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
  static bool same(const Task& a, const Task& b) {
    return a.operation == b.operation && a.access == b.access && a.final == b.final &&
           a.device == b.device && a.out == b.out && a.input_count == b.input_count &&
           a.inputs == b.inputs;
  }

  void complain(const std::string& what) {
    if (!error_.empty()) return;
    std::ostringstream out;
    out << "queue " << step_.queue << " #" << step_.sequence << " ("
        << schedule_.blocks.name(step_.task.out) << "): " << what;
    error_ = out.str();
  }

  void begin(const FlatStep& flat) {
    step_ = flat.step;
    const int device = step_.queue / layout_.queues_per_device();
    const int local = step_.queue % layout_.queues_per_device();
    const bool copies = step_.kind != StepKind::compute && !copies_in_stream_;
    const int last = PlanLayout::kFirstCompute + layout_.compute_queues - 1;
    const bool urgent = layout_.urgent && step_.kind == StepKind::compute && step_.task.urgent;
    const int expected = step_.kind == StepKind::peer ? layout_.queues_per_device() - 1
                         : urgent                     ? last + 1
                         : !copies ? std::clamp(local, PlanLayout::kFirstCompute, last)
                         : step_.kind == StepKind::load ? PlanLayout::kCopyIn
                                                        : PlanLayout::kCopyOut;
    if (device != step_.task.device || local != expected) complain("on a wrong queue");
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
  }

  Place slot(BlockId id, int operand) { return slot_on(step_.task.device, id, operand); }
  Place slot_on(int device, BlockId id, int operand) {
    const std::int32_t number = step_.slots[at(operand)];
    const SlotRange& range = layout_.slots[at(id.family())];
    if (number < 0 || number >= range.count || schedule_.blocks.bytes(id) > range.slot_bytes) {
      complain("no such slot");
    }
    return {device, id.family(), static_cast<std::uint64_t>(number)};
  }
  static Place home_of(BlockId id) { return {-1, -1, id.bits}; }

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

  void load(const Step& step) {
    const BlockId id = step.task.out;
    const Place place = slot(id, 0);
    reads(home_of(id));
    writes(place);
    const auto found = home_.find(id);
    const bool stored = schedule_.blocks.family(id.family()).origin == Origin::stored;
    contents_[place] = {id, found != home_.end() ? found->second : (stored ? 0 : -1)};
    if (contents_[place].version < 0) complain("loads what nobody wrote");
  }
  void store(const Step& step) {
    const BlockId id = step.task.out;
    const Place place = slot(id, 0);
    expect_latest(place, id);
    reads(place);
    writes(home_of(id));
    home_[id] = contents_[place].version;
  }
  /// A load whose source is a slot of another device, which has to hold the latest value; both
  /// slots are places like any other, so what writes the source afterwards has to come after the
  /// copy.
  void copy_from_peer(const Step& step) {
    const BlockId id = step.task.out;
    if (!layout_.peers || step.source >= layout_.devices || step.source == step.task.device) {
      complain("no such peer");
      return;
    }
    const Place from = slot_on(step.source, id, 1);
    const Place to = slot(id, 0);
    expect_latest(from, id);
    if (contents_[from].version < 0) complain("copies what nobody wrote");
    reads(from);
    writes(to);
    contents_[to] = contents_[from];
  }
  void compute(const Step& step) {
    const Task& task = step.task;
    const Place out = slot(task.out, 0);
    for (int i = 0; i < task.input_count; ++i) {
      const Place place = slot(task.inputs[at(i)], i + 1);
      expect_latest(place, task.inputs[at(i)]);
      if (latest(task.inputs[at(i)]) < 0) complain("reads what nobody wrote");
      if (place == out && task.inputs[at(i)] != task.out) complain("input and output share a slot");
      if (place != out) reads(place);
    }
    if (task.access == Access::read_write) expect_latest(out, task.out);
    writes(out);
    const int version = latest(task.out) + 1;
    contents_[out] = {task.out, version};
    latest_[task.out] = version;
  }

  const Schedule& schedule_;
  const PlanLayout& layout_;
  bool copies_in_stream_;
  Step step_;
  Clock now_;
  std::vector<Clock> clock_of_queue_;
  std::vector<std::vector<Clock>> history_;  // by queue: what is known once step #i is done
  std::map<Place, Uses> uses_;
  std::map<Place, Content> contents_;
  std::map<BlockId, int> home_;
  std::map<BlockId, int> latest_;
  std::string error_;
};

inline std::string check_plan(const Plan& plan) {
  const PlanLayout& layout = plan.layout();
  std::int64_t end = 0;
  for (const SlotRange& range : layout.slots) {
    if (range.offset < end || range.slot_bytes % 256 != 0) return "slots overlap";
    end = range.offset + range.count * range.slot_bytes;
  }
  if (end > layout.arena_bytes) return "slots past the arena";
  return PlanChecker(plan.schedule(), layout, plan.options().copies_in_stream).check(flatten(plan));
}

}  // namespace strata::test
