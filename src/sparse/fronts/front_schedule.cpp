#include "sparse/fronts/front_schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/dense/gemm.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "kernels/fronts/front.hpp"
#include "schedule/row_owners.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

constexpr Hint kDone = Hint::last_write;
constexpr Hint kGone = Hint::last_use;

/// A part of a front, as a block.
struct Target {
  BlockId id;
  std::int64_t row, col, rows, cols;  ///< in the front
  int device;
};

/// What a part of a front gets of a child's update.
struct Gift {
  BlockId update;
  Hint hint;
  BlockId places;
  std::uint32_t variant;
  double work;
};

class FrontTasks {
 public:
  FrontTasks(std::shared_ptr<const FrontLayout> layout, int devices, std::vector<double> rates)
      : layout_(std::move(layout)), devices_(devices), rates_(std::move(rates)) {
    if (layout_->ranges) {
      for (const FrontUnit& unit : layout_->units)
        device_of_.push_back(std::min(unit.device, devices_ - 1));
      return;
    }
    // Subtrees stay together: units are dealt in postorder, work in proportion to rates.
    std::vector<double> end(at(devices), 1.0);  // of each device's share
    if (!rates_.empty()) end = rates_;
    std::partial_sum(end.begin(), end.end(), end.begin());
    double total = 0;
    for (const FrontUnit& unit : layout_->units) total += unit.cost;
    double before = 0;
    for (const FrontUnit& unit : layout_->units) {
      const double middle = (before + unit.cost / 2) / std::max(total, 1.0) * end.back();
      const auto device = std::upper_bound(end.begin(), end.end(), middle) - end.begin();
      device_of_.push_back(std::min(static_cast<int>(device), devices - 1));
      before += unit.cost;
    }
  }

  void emit(std::int64_t step, TaskList& tasks) const {
    if (!layout_->turns.empty()) return emit_unit(layout_->turns[at(step)], tasks);
    if (layout_->batches.empty()) return emit_unit(step, tasks);
    const std::vector<std::int32_t>& batch = layout_->batches[at(step)];
    batch.size() == 1 ? emit_unit(batch.front(), tasks) : factor_panel_batch(tasks, batch);
  }

 private:
  void emit_unit(std::int64_t u, TaskList& tasks) const {
    const FrontUnit& unit = layout_->units[at(u)];
    switch (unit.kind) {
      case UnitKind::branch: return factor_branch_unit(tasks, unit, device_of_[at(u)]);
      case UnitKind::panel: return factor_panel_unit(tasks, unit, device_of_[at(u)]);
      case UnitKind::tiled: return factor_tiles(tasks, unit);
    }
  }

  [[nodiscard]] static BlockId block(int family, std::int64_t number) {
    return {family, number, 0};
  }

  void factor_branch_unit(TaskList& tasks, const FrontUnit& unit, int device) const {
    const Hint update = unit.parent < 0 ? kGone : Hint::none;
    const bool in_update = unit.first_tile > 0;  // of a front that is cut, columns of its update
    const TaskOperand target = in_update ? TaskOperand(block(fronts::kUpdates, unit.given.front()))
                                         : TaskOperand(block(fronts::kPanels, unit.panel), kDone);
    Task& task = tasks.add(unit.sharers > 1 ? factor_shared : factor_branch, device,
                           {target,
                            {block(fronts::kUpdates, unit.update), update},
                            {BlockId(fronts::kStatus, 0, unit.status), kDone},
                            block(fronts::kValues, unit.values),
                            block(fronts::kStructure, unit.structure),
                            {block(fronts::kWork, unit.work), kGone}},
                           unit.workers);
    task.work = std::max(unit.flops, 1.0);
    task.seconds = unit.seconds;
    task.share = unit.share;
    task.urgent = unit.top && !layout_->turns.empty();
    task.sharers = static_cast<std::uint16_t>(unit.sharers);
    if (unit.given.empty() && unit.taken.empty()) return;
    std::vector<TaskOperand> written;
    std::vector<TaskOperand> read;
    for (const std::int64_t k : unit.given)
      if (!in_update) written.emplace_back(block(fronts::kUpdates, k));
    for (const FrontUnit::Taken& one : unit.taken)
      read.emplace_back(block(fronts::kUpdates, one.block), one.last ? kGone : Hint::none);
    if (unit.source >= 0) read.emplace_back(block(fronts::kPanels, unit.source));
    tasks.add_more(written, read);
  }

  void factor_panel_unit(TaskList& tasks, const FrontUnit& unit, int device) const {
    const BlockId panel = block(fronts::kPanels, unit.panel);
    const BlockId status(fronts::kStatus, 0, unit.status);
    const BlockId update = block(fronts::kUpdates, unit.update);
    std::vector<Target> targets{target_of(panel, device)};
    if (unit.update >= 0) targets.push_back(target_of(update, device));
    const std::vector<std::vector<Gift>> gifts = gifts_of(unit, targets);
    tasks.add(
        scatter_entries, device,
        {panel, block(fronts::kValues, unit.values), block(fronts::kStructure, unit.structure)});
    add_gifts(tasks, targets[0], gifts[0]);
    if (unit.update >= 0) {
      tasks.add(clear_block, device, {update});
      add_gifts(tasks, targets[1], gifts[1]);
    }
    if (unit.update < 0)
      tasks.add(potrf, device, {{panel, kDone}, {status, kDone}});
    else
      tasks.add(factor_front, device, {{panel, kDone}, update, {status, kDone}});
  }

  /// Panels of one level, by the same calls: each gets what its children give in their order.
  void factor_panel_batch(TaskList& tasks, std::span<const std::int32_t> batch) const {
    const int device = device_of_[at(batch.front())];
    std::vector<TaskOperand> scattered;
    std::vector<TaskOperand> cleared;
    std::vector<TaskOperand> factored;
    std::vector<BlockId> roots;
    std::vector<Target> targets;
    std::vector<std::vector<Gift>> gifts;
    for (const std::int32_t u : batch) {
      const FrontUnit& unit = layout_->units[at(u)];
      const BlockId panel = block(fronts::kPanels, unit.panel);
      const BlockId status(fronts::kStatus, 0, unit.status);
      std::vector<Target> mine{target_of(panel, device)};
      for (const BlockId id :
           {panel, block(fronts::kValues, unit.values), block(fronts::kStructure, unit.structure)})
        scattered.emplace_back(id);
      if (unit.update < 0) {
        roots.insert(roots.end(), {panel, status});
      } else {
        const BlockId update = block(fronts::kUpdates, unit.update);
        cleared.emplace_back(update);
        mine.push_back(target_of(update, device));
        factored.insert(factored.end(), {{panel, kDone}, update, {status, kDone}});
      }
      for (std::vector<Gift>& given : gifts_of(unit, mine)) gifts.push_back(std::move(given));
      targets.insert(targets.end(), mine.begin(), mine.end());
    }
    (void)tasks.add_calls(scatter_entries, device, scattered);
    if (!cleared.empty()) (void)tasks.add_calls(clear_block, device, cleared);
    add_gifts_in_turn(tasks, targets, gifts);
    if (!factored.empty()) (void)tasks.add_calls(factor_front, device, factored);
    for (std::size_t k = 0; k < roots.size(); k += 2)
      tasks.add(potrf, device, {{roots[k], kDone}, {roots[k + 1], kDone}});
  }

  /// The first gift of each target by the same calls, then the second ones, and so on.
  static void add_gifts_in_turn(TaskList& tasks, std::span<const Target> targets,
                                std::span<const std::vector<Gift>> gifts) {
    for (std::size_t turn = 0;; ++turn) {
      bool any = false;
      for (const std::uint32_t variant : {0U, kTileOfUpdate}) {
        std::vector<TaskOperand> operands;
        double work = 0;
        for (std::size_t t = 0; t < targets.size(); ++t) {
          if (turn >= gifts[t].size() || gifts[t][turn].variant != variant) continue;
          const Gift& gift = gifts[t][turn];
          // No hint: in turns another target may come later than the last one.
          operands.insert(operands.end(), {targets[t].id, gift.update, gift.places});
          work += gift.work;
        }
        if (operands.empty()) continue;
        any = true;
        tasks.add_calls(add_update, targets.front().device, operands, variant).work = work;
      }
      if (!any) return;
    }
  }

  /// Tile by tile: what a tile gets, its products and its solve follow each other, so that a device
  /// that does not hold the front need not hold the tile twice.
  void factor_tiles(TaskList& tasks, const FrontUnit& unit) const {
    const std::int64_t n = unit.tiles();
    const RowOwners owners(n, devices_, rates_);
    std::vector<Target> targets;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = j; i < n; ++i) targets.push_back(target_of(unit.tile(i, j), owners[i]));
    const std::vector<std::vector<Gift>> gifts = gifts_of(unit, targets);
    std::size_t t = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j; i < n; ++i, ++t) {
        start_tile(tasks, unit, targets[t], j);
        add_gifts(tasks, targets[t], gifts[t]);
        finish_tile(tasks, unit, i, j, owners[i]);
      }
    }
  }

  void start_tile(TaskList& tasks, const FrontUnit& unit, const Target& target,
                  std::int64_t j) const {
    const std::int64_t values =
        j < unit.column_tiles ? unit.tile_values[at(target.id.row() - unit.panel)] : -1;
    if (values >= 0)
      tasks.add(scatter_entries, target.device,
                {target.id, block(fronts::kValues, values), block(fronts::kStructure, values)});
    else
      tasks.add(clear_block, target.device, {target.id});
  }

  void finish_tile(TaskList& tasks, const FrontUnit& unit, std::int64_t i, std::int64_t j,
                   int device) const {
    const BlockId x = unit.tile(i, j);
    for (std::int64_t k = 0; k < std::min(j, unit.column_tiles); ++k) {
      if (i == j)
        tasks.add(syrk, device, {x, unit.tile(i, k)});
      else
        tasks.add(gemm, device, {x, unit.tile(i, k), unit.tile(j, k)}, kTransposeB);
    }
    if (j >= unit.column_tiles) return;
    if (i == j)
      tasks.add(potrf, device, {{x, kDone}, {BlockId(fronts::kStatus, 0, unit.status + j), kDone}});
    else
      tasks.add(trsm, device, {{x, kDone}, unit.tile(j, j)}, kRightSide | kTransposeL);
  }

  [[nodiscard]] Target target_of(BlockId id, int device) const {
    const BlockExtent x = layout_->blocks.extent(id);
    return {id, x.row, x.col, x.rows, x.cols, device};
  }

  /// What targets, the blocks of a front by columns, get of the children: of each, in the
  /// children's order.
  [[nodiscard]] std::vector<std::vector<Gift>> gifts_of(const FrontUnit& unit,
                                                        std::span<const Target> targets) const {
    std::vector<std::vector<Gift>> gifts(targets.size());
    for (const std::int32_t c : unit.children) {
      const FrontUnit& child = layout_->units[at(c)];
      if (child.kind != UnitKind::tiled) {
        give_whole(child, targets, gifts);
        continue;
      }
      for (std::int64_t j = child.column_tiles; j < child.tiles(); ++j) {
        for (std::int64_t i = j; i < child.tiles(); ++i) give_tile(child, i, j, targets, gifts);
      }
    }
    return gifts;
  }

  static void add_gifts(TaskList& tasks, const Target& target, std::span<const Gift> gifts) {
    for (const Gift& gift : gifts) {
      Task& task = tasks.add(add_update, target.device,
                             {target.id, {gift.update, gift.hint}, gift.places}, gift.variant);
      task.work = gift.work;
    }
  }

  /// The places of a unit's updates: how many, their orders, and the places.
  [[nodiscard]] const std::int32_t* places_of(const FrontUnit& unit) const {
    return layout_->places.data() + layout_->blocks.extent(block(fronts::kPlaces, unit.places)).row;
  }

  void give(const FrontUnit& child, BlockId update, std::uint32_t variant,
            std::span<const std::size_t> hit, std::vector<std::vector<Gift>>& gifts) const {
    const BlockExtent x = layout_->blocks.extent(update);
    const double work = static_cast<double>(x.rows * x.cols) / static_cast<double>(hit.size());
    for (const std::size_t t : hit)
      gifts[t].push_back({update, t == hit.back() ? kGone : Hint::none,
                          block(fronts::kPlaces, child.places), variant, work});
  }

  /// Whether a list of places, ascending, has one in [from, from + extent).
  [[nodiscard]] static bool has_place(std::span<const std::int32_t> places, std::int64_t from,
                                      std::int64_t extent) {
    const auto first = std::lower_bound(places.begin(), places.end(), from);
    return first != places.end() && *first < from + extent;
  }

  void give_whole(const FrontUnit& child, std::span<const Target> targets,
                  std::vector<std::vector<Gift>>& gifts) const {
    const std::int32_t* orders = places_of(child) + 2;
    const std::int64_t count = orders[-2];
    std::vector<std::span<const std::int32_t>> updates;
    const std::int32_t* next = orders + count;
    for (std::int64_t k = 0; k < count; ++k) {
      updates.emplace_back(next, at(orders[k]));
      next += orders[k];
    }
    std::vector<std::size_t> hit;
    for (std::size_t n = 0; n < targets.size(); ++n) {
      const Target& t = targets[n];
      const bool meets = std::any_of(updates.begin(), updates.end(), [&](const auto& places) {
        return has_place(places, t.row, t.rows) && has_place(places, t.col, t.cols);
      });
      if (meets) hit.push_back(n);
    }
    give(child, block(fronts::kUpdates, child.update), 0, hit, gifts);
  }

  void give_tile(const FrontUnit& child, std::int64_t i, std::int64_t j,
                 std::span<const Target> targets, std::vector<std::vector<Gift>>& gifts) const {
    const std::int32_t* places = places_of(child) + 3;  // of the only update
    const std::int64_t first = child.cuts[at(child.column_tiles)];
    const auto part = [&](std::int64_t tile) {
      return std::span(places + (child.cuts[at(tile)] - first),
                       at(child.cuts[at(tile + 1)] - child.cuts[at(tile)]));
    };
    std::vector<std::size_t> hit;
    for (std::size_t n = 0; n < targets.size(); ++n) {
      const Target& t = targets[n];
      if (has_place(part(i), t.row, t.rows) && has_place(part(j), t.col, t.cols)) hit.push_back(n);
    }
    give(child, child.tile(i, j), kTileOfUpdate, hit, gifts);
  }

  std::shared_ptr<const FrontLayout> layout_;
  int devices_;
  std::vector<double> rates_;   // by device; none: they are alike
  std::vector<int> device_of_;  // by unit
};

}  // namespace

Schedule front_schedule(std::shared_ptr<const FrontLayout> layout, int devices,
                        std::vector<double> rates) {
  Schedule schedule;
  schedule.blocks = layout->blocks;
  schedule.devices = devices;
  schedule.operands = {3, 2, 1, 1, 1, 1, 1};
  schedule.steps = std::ssize(layout->units);
  if (!layout->batches.empty()) {
    schedule.steps = std::ssize(layout->batches);
    std::size_t together = 1;
    for (const auto& batch : layout->batches) together = std::max(together, batch.size());
    for (int& count : schedule.operands) count *= static_cast<int>(together);
  }
  schedule.coarse_slots = true;
  schedule.own_places = layout->own_places;
  auto tasks = std::make_shared<const FrontTasks>(std::move(layout), devices, std::move(rates));
  schedule.emit = [tasks](std::int64_t step, TaskList& list) { tasks->emit(step, list); };
  return schedule;
}

Schedule resident_schedule(std::shared_ptr<const FrontLayout> layout, int devices) {
  Schedule schedule = front_schedule(std::move(layout), devices);
  schedule.resident = true;
  schedule.own_places = false;
  keep_for_solves(schedule.blocks);
  return schedule;
}

void keep_for_solves(BlockTable& blocks) {
  // One schedule names its families for itself alone.
  const auto identity_of = [](int family) { return static_cast<std::uint64_t>(family) + 1; };
  blocks.keep(fronts::kPanels, identity_of(fronts::kPanels), true);
  blocks.keep(fronts::kStructure, identity_of(fronts::kStructure), false);
  blocks.keep(fronts::kPlaces, identity_of(fronts::kPlaces), false);
}

}  // namespace strata
