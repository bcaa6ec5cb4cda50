#include "run/program.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/index.hpp"
#include "schedule/plan_layout.hpp"
#include "schedule/shared_call.hpp"

namespace strata {

class Program::Compiler {
 public:
  Compiler(Program& out, const Plan& plan, const KernelTable& kernels,
           std::span<std::byte* const> arenas, std::span<const int> lanes,
           const CallersPlaces& callers)
      : out_(out),
        blocks_(plan.schedule().blocks),
        layout_(plan.layout()),
        kernels_(kernels),
        arenas_(arenas),
        lanes_(lanes),
        callers_(callers),
        entry_of_(layout_.queues.size()) {
    PlanReader reader(plan);
    PlanWindow window;
    while (reader.next(window))
      for (const Step& step : window.steps) add(window, step);
  }

 private:
  [[nodiscard]] const SlotPlace& place(std::size_t device, std::int32_t slot) const {
    return layout_.devices[device].slots[at(slot)];
  }
  [[nodiscard]] BlockView view(BlockId id, std::size_t device, std::int32_t slot) const {
    const BlockExtent x = blocks_.extent(id);
    CallersPlace at{arenas_[device] + place(device, slot).offset,
                    std::max<std::int64_t>(x.rows, 1)};
    if (blocks_.family(id.family()).placed) at = callers_(id, device);
    return {at.data, x.rows, x.cols, at.ld, x.row, x.col, blocks_.element(id)};
  }
  [[nodiscard]] PlacedBlock block(const PlanWindow& window, const Step& step) const {
    const BlockId id = window.block_of(step);
    return {id, static_cast<std::byte*>(view(id, step.device, *window.slots_of(step)).data)};
  }

  void add(const PlanWindow& window, const Step& step) {
    const std::size_t first_wait = out_.waits_.size();
    for (const Wait& wait : window.waits_of(step)) wait_for(lanes_[step.queue], wait);
    if (out_.waits_.size() == first_wait && joins(window, step)) {
      Entry& last = out_.entries_.back();
      out_.blocks_.push_back(block(window, step));
      ++last.blocks;
      last.bytes += step.bytes;
    } else {
      Entry& entry = out_.entries_.emplace_back();
      entry.kind = step.kind;
      entry.device = step.device;
      entry.lane = lanes_[step.queue];
      entry.first = window.block_of(step);
      entry.bytes = step.bytes;
      entry.first_wait = first_wait;
      entry.waits = out_.waits_.size() - first_wait;
      step.kind == StepKind::compute ? add_calls(entry, window, step)
                                     : add_copy(entry, window, step);
    }
    entry_of_[step.queue].push_back(out_.entries_.size() - 1);
    last_slot_ = *window.slots_of(step);
    last_queue_ = step.queue;
  }

  /// Whether a copy between the host and a device goes with the one before it, whose place its own
  /// follows.
  [[nodiscard]] bool joins(const PlanWindow& window, const Step& step) const {
    if (step.kind != StepKind::load && step.kind != StepKind::store) return false;
    if (out_.entries_.empty()) return false;
    const Entry& last = out_.entries_.back();
    if (last.kind != step.kind || last_queue_ != step.queue || last.awaited ||
        last.first.family() != window.block_of(step).family() ||
        blocks_.family(last.first.family()).placed)
      return false;
    const SlotPlace& before = place(step.device, last_slot_);
    return before.offset + slot_room(before.bytes) ==
           place(step.device, *window.slots_of(step)).offset;
  }

  void wait_for(int lane, const Wait& wait) {
    const std::size_t other = entry_of_[wait.queue][wait.sequence - 1];
    if (out_.entries_[other].lane == lane) return;
    out_.entries_[other].awaited = true;
    out_.waits_.push_back(other);
  }

  void add_copy(Entry& entry, const PlanWindow& window, const Step& step) {
    const std::int32_t* slots = window.slots_of(step);
    const BlockId id = window.block_of(step);
    if (step.kind == StepKind::peer) {
      entry.first_view = out_.views_.size();
      entry.views = 2;
      add_view(id, step.device, slots[0]);
      add_view(id, step.source, slots[1]);
      return;
    }
    entry.first_block = out_.blocks_.size();
    entry.blocks = 1;
    out_.blocks_.push_back(block(window, step));
  }

  void add_view(BlockId id, std::size_t device, std::int32_t slot) {
    if (blocks_.family(id.family()).placed)
      out_.callers_views_.push_back({out_.views_.size(), id, device});
    out_.views_.push_back(view(id, device, slot));
  }

  void add_calls(Entry& entry, const PlanWindow& window, const Step& step) {
    const std::span<const BlockId> operands = window.operands_of(step);
    const std::int32_t* slots = window.slots_of(step);
    // Operands behind its own lie on the other devices that share the task.
    const SharedCall shared = SharedCall::of(step.variant);
    const auto count = static_cast<int>(operands.size());
    const bool is_shared = step.shared;
    const int own = is_shared ? shared.own(count) : count;
    Elements elements;
    for (int i = 0; i < step.operation->operands; ++i)
      elements.push_back(blocks_.element(operands[at(i)]));
    entry.operation = step.operation;
    entry.kernel = kernels_.find(step.operation->name, elements);
    require(entry.kernel != nullptr, ErrorKind::device, "run",
            "the backend has no kernel for {} in {}", step.operation->name, to_string(elements));
    entry.variant = step.variant;
    entry.work = step.work;
    entry.first_view = out_.views_.size();
    entry.views = operands.size();
    entry.operands = operands_of_call(*step.operation, step.calls, operands.size());
    for (int i = 0; i < count; ++i) {
      std::size_t device = step.device;
      if (i >= own) {
        const int other = (i - own) / shared.written;  // among the others
        device = at(step.device - shared.rank + other + (other >= shared.rank ? 1 : 0));
      }
      add_view(operands[at(i)], device, slots[i]);
    }
    out_.has_shared_ = out_.has_shared_ || is_shared;
  }

  Program& out_;
  const BlockTable& blocks_;
  const PlanLayout& layout_;
  const KernelTable& kernels_;
  std::span<std::byte* const> arenas_;
  std::span<const int> lanes_;
  const CallersPlaces& callers_;
  std::vector<std::vector<std::size_t>> entry_of_;  // by queue: of each of its steps
  std::int32_t last_slot_ = -1;
  int last_queue_ = -1;
};

Program::Program(const Plan& plan, const KernelTable& kernels, std::span<std::byte* const> arenas,
                 std::span<const int> lanes, const CallersPlaces& callers) {
  require(plan.schedule().resident, ErrorKind::misuse, "run",
          "a program of a schedule whose blocks have no places for good");
  Compiler(*this, plan, kernels, arenas, lanes, callers);
}

void Program::place_again(const CallersPlaces& callers) {
  for (const CallersView& one : callers_views_) {
    const CallersPlace place = callers(one.id, one.device);
    views_[one.number].data = place.data;
    views_[one.number].ld = place.ld;
  }
}

}  // namespace strata
