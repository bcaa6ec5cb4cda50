#include "sparse/front_schedule.hpp"

#include <algorithm>
#include <utility>

#include "kernels/front.hpp"
#include "kernels/gemm.hpp"
#include "kernels/potrf.hpp"
#include "kernels/syrk.hpp"
#include "kernels/trsm.hpp"
#include "sparse/pattern.hpp"

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

class FrontTasks {
 public:
  FrontTasks(std::shared_ptr<const FrontLayout> layout, int devices)
      : layout_(std::move(layout)), devices_(devices) {
    // Subtrees stay together: units are dealt in postorder, each device as much work as another.
    double total = 0;
    for (const FrontUnit& unit : layout_->units) total += unit.cost;
    double before = 0;
    for (const FrontUnit& unit : layout_->units) {
      const double middle = before + unit.cost / 2;
      const auto device = static_cast<int>(middle / std::max(total, 1.0) * devices);
      device_of_.push_back(std::clamp(device, 0, devices - 1));
      before += unit.cost;
    }
  }

  void emit(std::int64_t u, TaskList& tasks) const {
    const FrontUnit& unit = layout_->units[at(u)];
    switch (unit.kind) {
      case UnitKind::branch: return factor_branch_unit(tasks, unit, device_of_[at(u)]);
      case UnitKind::panel: return factor_panel_unit(tasks, unit, device_of_[at(u)]);
      case UnitKind::tiled: return factor_tiles(tasks, unit);
    }
  }

 private:
  [[nodiscard]] static BlockId block(int family, std::int64_t number) {
    return {family, number, 0};
  }

  void factor_branch_unit(TaskList& tasks, const FrontUnit& unit, int device) const {
    const Hint update = unit.parent < 0 ? kGone : Hint::none;
    Task& task = tasks.add(factor_branch, device,
                           {{block(fronts::kPanels, unit.panel), kDone},
                            {block(fronts::kUpdates, unit.update), update},
                            {BlockId(fronts::kStatus, 0, unit.status), kDone},
                            block(fronts::kValues, unit.values),
                            block(fronts::kStructure, unit.structure),
                            {block(fronts::kWork, unit.work), kGone}});
    task.work = std::max(unit.flops, 1.0);
  }

  void factor_panel_unit(TaskList& tasks, const FrontUnit& unit, int device) const {
    const BlockId panel = block(fronts::kPanels, unit.panel);
    const BlockId status(fronts::kStatus, 0, unit.status);
    tasks.add(
        scatter_entries, device,
        {panel, block(fronts::kValues, unit.values), block(fronts::kStructure, unit.structure)});
    std::vector<Target> targets{target_of(panel, device)};
    const BlockId update = block(fronts::kUpdates, unit.update);
    if (unit.update >= 0) {
      tasks.add(clear_block, device, {update});
      targets.push_back(target_of(update, device));
    }
    add_children(tasks, unit, targets);
    if (unit.update < 0)
      tasks.add(potrf, device, {{panel, kDone}, {status, kDone}});
    else
      tasks.add(factor_front, device, {{panel, kDone}, update, {status, kDone}});
  }

  [[nodiscard]] int device_of_tile(std::int64_t i) const { return device_of_row(i, devices_); }

  void factor_tiles(TaskList& tasks, const FrontUnit& unit) const {
    const std::int64_t n = unit.tiles();
    const std::int64_t columns = unit.column_tiles;
    std::vector<Target> targets;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j; i < n; ++i) {
        const int device = device_of_tile(i);
        const BlockId id = unit.tile(i, j);
        targets.push_back(target_of(id, device));
        const std::int64_t values = j < columns ? unit.tile_values[at(id.row() - unit.panel)] : -1;
        if (values >= 0)
          tasks.add(scatter_entries, device,
                    {id, block(fronts::kValues, values), block(fronts::kStructure, values)});
        else
          tasks.add(clear_block, device, {id});
      }
    }
    add_children(tasks, unit, targets);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j; i < n; ++i) {
        const int device = device_of_tile(i);
        const BlockId x = unit.tile(i, j);
        for (std::int64_t k = 0; k < std::min(j, columns); ++k) {
          if (i == j)
            tasks.add(syrk, device, {x, unit.tile(i, k)});
          else
            tasks.add(gemm, device, {x, unit.tile(i, k), unit.tile(j, k)}, kTransposeB);
        }
        if (j >= columns) continue;
        if (i == j)
          tasks.add(potrf, device,
                    {{x, kDone}, {BlockId(fronts::kStatus, 0, unit.status + j), kDone}});
        else
          tasks.add(trsm, device, {{x, kDone}, unit.tile(j, j)}, kRightSide | kTransposeL);
      }
    }
  }

  [[nodiscard]] Target target_of(BlockId id, int device) const {
    const BlockExtent x = layout_->blocks.extent(id);
    return {id, x.row, x.col, x.rows, x.cols, device};
  }

  /// Targets are the blocks of a front, by columns.
  void add_children(TaskList& tasks, const FrontUnit& unit, std::span<const Target> targets) const {
    for (const std::int32_t c : unit.children) {
      const FrontUnit& child = layout_->units[at(c)];
      if (child.kind != UnitKind::tiled) {
        add_whole(tasks, child, targets);
        continue;
      }
      for (std::int64_t j = child.column_tiles; j < child.tiles(); ++j) {
        for (std::int64_t i = j; i < child.tiles(); ++i) add_tile(tasks, child, i, j, targets);
      }
    }
  }

  /// The places of a unit's updates: how many, their orders, and the places.
  [[nodiscard]] const std::int32_t* places_of(const FrontUnit& unit) const {
    return layout_->places.data() + layout_->blocks.extent(block(fronts::kPlaces, unit.places)).row;
  }

  void add_to(TaskList& tasks, const FrontUnit& child, BlockId update, std::uint32_t variant,
              std::span<const Target* const> hit) const {
    for (const Target* target : hit) {
      const Hint hint = target == hit.back() ? kGone : Hint::none;
      Task& task =
          tasks.add(add_update, target->device,
                    {target->id, {update, hint}, block(fronts::kPlaces, child.places)}, variant);
      const BlockExtent x = layout_->blocks.extent(update);
      task.work = static_cast<double>(x.rows * x.cols) / static_cast<double>(hit.size());
    }
  }

  /// Whether a list of places, ascending, has one in [from, from + extent).
  [[nodiscard]] static bool has_place(std::span<const std::int32_t> places, std::int64_t from,
                                      std::int64_t extent) {
    const auto first = std::lower_bound(places.begin(), places.end(), from);
    return first != places.end() && *first < from + extent;
  }

  void add_whole(TaskList& tasks, const FrontUnit& child, std::span<const Target> targets) const {
    const std::int32_t* orders = places_of(child) + 2;
    const std::int64_t count = orders[-2];
    std::vector<std::span<const std::int32_t>> updates;
    const std::int32_t* next = orders + count;
    for (std::int64_t k = 0; k < count; ++k) {
      updates.emplace_back(next, at(orders[k]));
      next += orders[k];
    }
    std::vector<const Target*> hit;
    for (const Target& t : targets) {
      const bool meets = std::any_of(updates.begin(), updates.end(), [&](const auto& places) {
        return has_place(places, t.row, t.rows) && has_place(places, t.col, t.cols);
      });
      if (meets) hit.push_back(&t);
    }
    add_to(tasks, child, block(fronts::kUpdates, child.update), 0, hit);
  }

  void add_tile(TaskList& tasks, const FrontUnit& child, std::int64_t i, std::int64_t j,
                std::span<const Target> targets) const {
    const std::int32_t* places = places_of(child) + 3;  // of the only update
    const std::int64_t first = child.cuts[at(child.column_tiles)];
    const auto part = [&](std::int64_t tile) {
      return std::span(places + (child.cuts[at(tile)] - first),
                       at(child.cuts[at(tile + 1)] - child.cuts[at(tile)]));
    };
    std::vector<const Target*> hit;
    for (const Target& t : targets) {
      if (has_place(part(i), t.row, t.rows) && has_place(part(j), t.col, t.cols)) hit.push_back(&t);
    }
    add_to(tasks, child, child.tile(i, j), kTileOfUpdate, hit);
  }

  std::shared_ptr<const FrontLayout> layout_;
  int devices_;
  std::vector<int> device_of_;  // by unit
};

}  // namespace

Schedule front_schedule(std::shared_ptr<const FrontLayout> layout, int devices) {
  Schedule schedule;
  schedule.blocks = layout->blocks;
  schedule.devices = devices;
  schedule.operands = {3, 2, 1, 1, 1, 1, 1};
  schedule.steps = std::ssize(layout->units);
  schedule.coarse_slots = true;
  auto tasks = std::make_shared<const FrontTasks>(std::move(layout), devices);
  schedule.emit = [tasks](std::int64_t step, TaskList& list) { tasks->emit(step, list); };
  return schedule;
}

}  // namespace strata
