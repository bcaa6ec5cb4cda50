#include "sparse/fronts/resident_sweep_schedule.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "schedule/fixed_places.hpp"
#include "sparse/fronts/front_program.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

namespace families = resident_sweeps;

/// The units whose columns are rows of its fronts.
std::vector<std::int32_t> ancestors_of(const SparseAnalysis& analysis, const FrontLayout& layout,
                                       const FrontUnit& unit) {
  std::vector<std::int32_t> ancestors;
  for (std::int32_t s = unit.first; s <= unit.last; ++s) {
    if (analysis.parent[at(s)] <= unit.last) continue;  // in this unit, or it has none
    for (std::int32_t p = analysis.parent[at(s)]; p >= 0; p = analysis.parent[at(p)])
      ancestors.push_back(layout.unit_of[at(p)]);
  }
  std::sort(ancestors.begin(), ancestors.end());
  ancestors.erase(std::unique(ancestors.begin(), ancestors.end()), ancestors.end());
  return ancestors;
}

class ResidentSweepTasks {
 public:
  ResidentSweepTasks(std::shared_ptr<const ResidentUnits> units, ResidentPass pass)
      : units_(std::move(units)), pass_(std::move(pass)) {
    phases_[0] = &ResidentSweepTasks::take;
    if (pass_.forward) phases_[at(count_++)] = &ResidentSweepTasks::go_forward;
    if (pass_.backward) phases_[at(count_++)] = &ResidentSweepTasks::go_backward;
    phases_[at(count_++)] = &ResidentSweepTasks::put;
  }

  [[nodiscard]] std::int64_t steps() const { return count_; }
  void emit(std::int64_t step, TaskList& tasks) const { (this->*phases_[at(step)])(tasks); }

 private:
  using Phase = void (ResidentSweepTasks::*)(TaskList&) const;

  [[nodiscard]] std::int64_t blocks() const { return std::ssize(pass_.units); }
  [[nodiscard]] const ResidentUnits::Unit& unit(std::int64_t i) const {
    return units_->units[at(pass_.units[at(i)])];
  }
  [[nodiscard]] BlockId columns_of(std::int64_t i) const {
    return {families::kColumns, units_->apart ? i : 0, 0};
  }
  /// Where the rows of a unit lie in columns that are in the order of A, or in that of elimination.
  [[nodiscard]] BlockId order(std::int64_t i, bool of_a) const {
    const bool one = units_->apart || blocks() == 1;
    return {families::kOrder, one ? (of_a ? 0 : 1) : i + (of_a ? 0 : blocks()), 0};
  }

  void take(TaskList& tasks) const {
    std::vector<TaskOperand> operands;
    for (std::int64_t i = 0; i < blocks(); ++i)
      for (const BlockId id : {BlockId(families::kX, i, 0), columns_of(i), order(i, pass_.forward)})
        operands.emplace_back(id);
    tasks.add_calls(take_rows, 0, operands).queue = 0;
  }

  /// Columns that several units fill are an operand of several tasks, for calls of one may run at
  /// once.
  void put(TaskList& tasks) const {
    for (std::int64_t i = 0; i < blocks(); ++i) {
      const bool last = units_->apart || i + 1 == blocks();
      const TaskOperand columns{columns_of(i), last ? Hint::last_write : Hint::none};
      const BlockId x{families::kX, i, 0};
      if (units_->apart && i > 0)
        tasks.add_call({columns, x, order(i, pass_.backward)});
      else
        tasks.add(put_rows, 0, {columns, x, order(i, pass_.backward)}).queue = 0;
    }
  }

  /// Its tasks' operands, or those of a call more.
  void sweep(std::int64_t i, std::uint32_t variant, TaskList& tasks) const {
    const ResidentUnits::Unit& of = unit(i);
    const std::initializer_list<TaskOperand> operands = {
        BlockId(families::kX, i, 0), BlockId(families::kPanels, of.panel, 0),
        BlockId(families::kStructure, of.structure, 0), BlockId(families::kWork, of.work, 0)};
    if (units_->apart && !tasks.tasks().empty()) return tasks.add_call(operands);
    tasks.add(sweep_branch, of.device, operands, variant).queue =
        static_cast<std::int16_t>(of.queue);
  }

  void go_forward(TaskList& tasks) const {
    for (std::int64_t i = 0; i < blocks(); ++i) {
      const ResidentUnits::Unit& of = unit(i);
      const auto given = static_cast<std::uint32_t>(of.given.size());
      sweep(i, kSweepForward + given * kSweepGiven, tasks);
      if (of.given.empty() && of.taken.empty()) continue;
      std::vector<TaskOperand> written;
      std::vector<TaskOperand> read;
      for (const std::int64_t gift : of.given)
        written.emplace_back(BlockId(families::kRows, gift, 0));
      for (const std::int64_t gift : of.taken)
        read.emplace_back(BlockId(families::kRows, gift, 0), Hint::last_use);
      tasks.add_more(written, read);
    }
  }

  void go_backward(TaskList& tasks) const {
    for (std::int64_t i = blocks(); i-- > 0;) {
      sweep(units_->apart ? blocks() - 1 - i : i, kSweepBackward, tasks);
      std::vector<TaskOperand> read;
      for (const std::int32_t above : unit(i).ancestors)
        read.emplace_back(BlockId(families::kX, above, 0));
      if (!read.empty()) tasks.add_more({}, read);
    }
  }

  std::shared_ptr<const ResidentUnits> units_;
  ResidentPass pass_;
  std::array<Phase, 4> phases_{};
  std::int64_t count_ = 1;
};

}  // namespace

ResidentUnits resident_units(const SparseAnalysis& analysis, const FrontLayout& layout, int devices,
                             int queues, bool placed) {
  ResidentUnits out;
  const SweepRanges ranges = sweep_ranges(analysis, layout);
  out.n = ranges.n;
  out.gifts = ranges.gifts;
  out.panels = layout.blocks.family(fronts::kPanels);
  out.structure = layout.blocks.family(fronts::kStructure);
  out.work = layout.blocks.family(fronts::kWork);
  out.columns = kSweepColumns;
  out.placed = placed;
  out.devices = devices;
  std::vector<int> of_device(at(devices), 0);  // units so far
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    const FrontUnit& from = layout.units[u];
    ResidentUnits::Unit& unit = out.units.emplace_back();
    unit.device = from.device;
    unit.queue = of_device[at(from.device)]++ % queues;
    unit.panel = from.panel;
    unit.structure = from.structure;
    unit.work = from.work;
    unit.first = analysis.first[at(from.first)];
    unit.columns = analysis.first[at(from.last + 1)] - unit.first;
    unit.given = ranges.ranges[u].given;
    unit.taken = ranges.ranges[u].taken;
    unit.ancestors = ancestors_of(analysis, layout, from);
    out.columns = std::min(out.columns, sweep_columns(program_of(layout, from)));
  }
  return out;
}

std::int64_t place_in_x(const ResidentUnits& units, const ResidentPass& pass, std::int64_t block) {
  const std::int64_t first =
      units.apart ? block * units.n : units.units[at(pass.units[at(block)])].first;
  return first * pass.width;
}

std::int64_t elements_of_x(const ResidentUnits& units, const ResidentPass& pass) {
  return units.n * pass.width * (units.apart ? std::ssize(pass.units) : 1);
}

ResidentPass largest_pass(const ResidentUnits& units, std::int64_t together) {
  ResidentPass pass;
  pass.units.resize(at(units.apart ? together : std::ssize(units.units)));
  std::iota(pass.units.begin(), pass.units.end(), 0);
  pass.width = pass.columns = units.columns;
  return pass;
}

std::vector<std::int64_t> resident_sweep_bytes(const std::shared_ptr<const ResidentUnits>& units,
                                               std::int64_t together) {
  if (units->n == 0) return std::vector<std::int64_t>(at(units->devices), 0);
  const ResidentPass pass = largest_pass(*units, together);
  std::vector<std::int64_t> bytes = fixed_places_bytes(resident_sweep_schedule(units, pass));
  for (std::int64_t& each : bytes)
    each += elements_of_x(*units, pass) * std::int64_t{sizeof(double)};
  return bytes;
}

Schedule resident_sweep_schedule(std::shared_ptr<const ResidentUnits> units,
                                 const ResidentPass& pass) {
  constexpr std::uint64_t kPanelsIdentity = 1;
  constexpr std::uint64_t kStructureIdentity = 2;
  constexpr std::uint64_t kOrderIdentity = 3;
  const std::int64_t blocks = std::ssize(pass.units);
  const std::int64_t n = units->n;
  Schedule schedule;
  const auto add = [&](BlockFamily family, Origin origin, std::uint64_t identity = 0) {
    family.origin = origin;
    family.identity = identity;
    family.stays = false;
    return schedule.blocks.add(std::move(family));
  };
  const auto listed = [](const char* name, Element element, std::vector<BlockExtent> extents) {
    BlockFamily family{.name = name, .element = element};
    family.listed = std::move(extents);
    return family;
  };
  const auto unit = [&](std::int64_t i) -> const ResidentUnits::Unit& {
    return units->units[at(pass.units[at(i)])];
  };
  add(units->panels, Origin::stored, units->placed ? 0 : kPanelsIdentity);
  add(units->structure, Origin::stored, units->placed ? 0 : kStructureIdentity);
  std::vector<BlockExtent> order;
  if (units->apart || blocks == 1) {
    order = {{0, 0, n, 1}, {n, 0, 0, 1}};
  } else {
    for (const std::int64_t first : {std::int64_t{0}, n})
      for (std::int64_t i = 0; i < blocks; ++i)
        order.push_back({first + unit(i).first, 0, unit(i).columns, 1});
  }
  add(listed("order", Element::int32, std::move(order)), Origin::stored, kOrderIdentity);
  add(units->work, Origin::temporary);
  std::vector<BlockExtent> x;
  for (std::int64_t i = 0; i < blocks; ++i)
    x.push_back({0, units->apart ? 0 : unit(i).first, pass.width, unit(i).columns});
  add(listed("X", Element::fp64, std::move(x)), Origin::temporary);
  std::vector<BlockExtent> rows;
  for (std::size_t g = 0; g < units->gifts.size() && pass.forward; ++g)
    rows.push_back({units->gifts[g].from, units->gifts[g].to, pass.width, units->gifts[g].rows});
  add(listed("rows", Element::fp64, std::move(rows)), Origin::temporary);
  std::vector<BlockExtent> columns;
  for (std::int64_t i = 0; i < (units->apart ? blocks : 1); ++i)
    columns.push_back({0, i * pass.columns, n, pass.columns});
  add(listed("B", Element::fp64, std::move(columns)), Origin::stored);
  if (units->placed)
    for (const int family : {families::kPanels, families::kStructure, families::kWork})
      schedule.blocks.place(family);
  schedule.blocks.place(families::kX);
  if (pass.placed) schedule.blocks.place(families::kColumns);
  schedule.devices = units->devices;
  schedule.operands.assign(at(schedule.blocks.families()), 1);
  schedule.resident = true;
  auto tasks = std::make_shared<const ResidentSweepTasks>(std::move(units), pass);
  schedule.steps = tasks->steps();
  schedule.emit = [tasks](std::int64_t step, TaskList& list) { tasks->emit(step, list); };
  return schedule;
}

}  // namespace strata
