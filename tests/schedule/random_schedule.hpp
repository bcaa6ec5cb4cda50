#pragma once
// Random schedules of real kernels, for properties that must hold of any schedule.
//
// Contract: a pure function of the seed. Families: "A" stored tiles, of which block row 0 is never
// written (well-conditioned triangles for trsm); "G" generated tiles; "P" stored points; "X" narrow
// stored tiles. Devices, order, re-reads and rewrites are random; `last_write` is said of half of
// the last writes. Values stay near 1, so that a wrong operand changes bits.

#include <array>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "schedule/plan.hpp"
#include "tests/schedule/plan_checker.hpp"

namespace strata::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  /// Uniform in 0 … sides − 1.
  std::int64_t roll(std::int64_t sides) {
    return static_cast<std::int64_t>(random_bits(seed_, next_++) %
                                     static_cast<std::uint64_t>(sides));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

/// Any combination, half of them with all blocks kept.
inline PlanOptions random_plan_options(Dice& dice) {
  constexpr std::array kEvictions{Eviction::least_recently_used, Eviction::furthest_next_use,
                                  Eviction::longest_idle};
  constexpr std::array kKeep{Keep::all, Keep::all, Keep::accumulator, Keep::nothing};
  PlanOptions options;
  options.eviction = kEvictions[static_cast<std::size_t>(dice.roll(std::ssize(kEvictions)))];
  options.retain = dice.roll(2) == 0;
  options.lookahead = std::int64_t{1} << dice.roll(19);
  options.keep = kKeep[static_cast<std::size_t>(dice.roll(std::ssize(kKeep)))];
  options.copies_in_stream = dice.roll(4) == 0;
  options.one_queue = dice.roll(8) == 0;
  options.urgent_queue = dice.roll(2) == 0;
  return options;
}

inline constexpr int kStoredTiles = 0;
inline constexpr int kGeneratedTiles = 1;
inline constexpr int kPoints = 2;
inline constexpr int kNarrow = 3;

inline FlatTask flat_task(const Operation& operation, std::vector<TaskOperand> operands,
                          int device = 0, std::uint32_t variant = 0) {
  FlatTask flat;
  flat.task.operation = &operation;
  flat.task.calls =
      static_cast<std::uint32_t>(operands.size()) / static_cast<std::uint32_t>(operation.operands);
  flat.task.variant = variant;
  flat.task.device = static_cast<std::uint16_t>(device);
  flat.operands = std::move(operands);
  return flat;
}

class RandomTasks {
 public:
  RandomTasks(Dice& dice, std::int64_t rows, int devices)
      : dice_(dice), rows_(rows), devices_(devices) {}

  std::vector<FlatTask> make(std::int64_t count) {
    while (std::ssize(tasks_) < count) add_one();
    set_last_writes();
    return tasks_;
  }

 private:
  BlockId stored(std::int64_t first) {
    return {kStoredTiles, first + dice_.roll(rows_ - first), dice_.roll(2)};
  }
  BlockId generated() {
    const BlockId id(kGeneratedTiles, dice_.roll(rows_), 0);
    if (written_.insert(id).second) generate(id);
    return id;
  }
  BlockId tile() { return dice_.roll(3) == 0 ? generated() : stored(0); }
  BlockId tile_out() { return dice_.roll(3) == 0 ? generated() : stored(1); }

  void generate(BlockId id) {
    const BlockId p(kPoints, dice_.roll(rows_), 0);
    const BlockId q(kPoints, dice_.roll(rows_), 0);
    add(covariance, {id, p, q});
  }

  void add_one() {
    const std::int64_t kind = dice_.roll(16);
    if (kind < 6) {
      const BlockId c = tile_out();
      const BlockId a = other_than(c);
      add(gemm, {c, a, dice_.roll(5) == 0 ? a : other_than(c)}, kTransposeB);
    } else if (kind < 9) {
      const BlockId c = tile_out();
      add(syrk, {c, other_than(c)});
    } else if (kind < 11) {
      add(trsm, {tile_out(), BlockId(kStoredTiles, 0, dice_.roll(2))}, kRightSide | kTransposeL);
    } else if (kind < 14) {
      const std::int64_t x = dice_.roll(rows_);
      const std::int64_t y = (x + 1 + dice_.roll(rows_ - 1)) % rows_;
      const BlockId a = tile();
      add(gemm, {BlockId(kNarrow, x, 0), a, BlockId(kNarrow, y, 0)});
    } else {
      const BlockId c = tile_out();
      generate(c);
    }
  }

  BlockId other_than(BlockId id) {
    for (;;) {
      if (const BlockId other = tile(); other != id) return other;
    }
  }

  void add(const Operation& operation, std::vector<TaskOperand> operands,
           std::uint32_t variant = 0) {
    // Mostly bursts on one device, as algorithms do, and now and then another one.
    if (dice_.roll(3) == 0) device_ = static_cast<std::uint16_t>(dice_.roll(devices_));
    tasks_.push_back(flat_task(operation, std::move(operands), device_, variant));
    tasks_.back().task.urgent = dice_.roll(4) == 0;
  }

  void set_last_writes() {
    std::set<BlockId> seen;
    for (auto flat = tasks_.rbegin(); flat != tasks_.rend(); ++flat) {
      if (seen.insert(flat->operands[0].id).second && dice_.roll(2) == 0)
        flat->operands[0].hint = Hint::last_write;
    }
  }

  Dice& dice_;
  std::int64_t rows_;
  int devices_;
  std::uint16_t device_ = 0;
  std::set<BlockId> written_;
  std::vector<FlatTask> tasks_;
};

inline Schedule schedule_of(BlockTable blocks, int devices, std::vector<int> operands,
                            std::vector<std::vector<FlatTask>> steps) {
  Schedule schedule;
  schedule.blocks = std::move(blocks);
  schedule.devices = devices;
  schedule.operands = std::move(operands);
  schedule.steps = std::ssize(steps);
  schedule.emit = [steps = std::move(steps)](std::int64_t s, TaskList& tasks) {
    for (const FlatTask& flat : steps[static_cast<std::size_t>(s)]) {
      const std::span<const TaskOperand> all = flat.operands;
      const std::size_t written = flat.task.more_written;
      const std::size_t own = all.size() - written - flat.task.more_read;
      Task& task = tasks.add_calls(*flat.task.operation, flat.task.device, all.first(own),
                                   flat.task.variant);
      task.urgent = flat.task.urgent;
      if (own < all.size()) tasks.add_more(all.subspan(own, written), all.subspan(own + written));
    }
  };
  return schedule;
}

inline Schedule random_schedule(std::uint64_t seed) {
  Dice dice(seed);
  const int devices = static_cast<int>(1 + dice.roll(4));
  const std::int64_t tile = 3 + dice.roll(6);
  const std::int64_t rows = 2 + dice.roll(6);
  const std::int64_t n = rows * tile;
  BlockTable blocks;
  blocks.add({.name = "A", .rows = n, .cols = 2 * tile, .tile_rows = tile, .tile_cols = tile});
  blocks.add({.name = "G",
              .rows = n,
              .cols = tile,
              .tile_rows = tile,
              .tile_cols = tile,
              .origin = Origin::generated});
  blocks.add({.name = "P", .rows = n, .cols = 2, .tile_rows = tile, .tile_cols = 2});
  blocks.add({.name = "X", .rows = n, .cols = 3, .tile_rows = tile, .tile_cols = 3});
  const std::vector<FlatTask> tasks = RandomTasks(dice, rows, devices).make(1 + dice.roll(120));
  std::vector<std::vector<FlatTask>> steps(1);
  for (const FlatTask& task : tasks) {
    while (dice.roll(4) == 0) steps.emplace_back();  // steps may be empty
    steps.back().push_back(task);
  }
  Schedule schedule = schedule_of(std::move(blocks), devices, {3, 3, 2, 2}, std::move(steps));
  schedule.few_slots = seed % 3 == 1;
  return schedule;
}

}  // namespace strata::test
