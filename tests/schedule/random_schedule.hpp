#pragma once
// Random schedules of real kernels, for properties that must hold of any schedule.
//
// Contract: a pure function of the seed. Families: "A" stored tiles, of which block row 0 is never
// written (well-conditioned triangles for trsm); "G" generated tiles; "P" stored points; "X" narrow
// stored tiles. Devices, order, re-reads and rewrites are random; `final` is set on half of the
// last writes. Values stay near 1, so that a wrong operand changes bits.

#include <array>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "schedule/plan.hpp"
#include "schedule/task.hpp"

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
  constexpr std::array kKeep{Keep::all, Keep::all, Keep::accumulator, Keep::nothing};
  PlanOptions options;
  options.eviction =
      dice.roll(2) == 0 ? Eviction::least_recently_used : Eviction::furthest_next_use;
  options.pin_diagonal = dice.roll(2) == 0;
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

class RandomTasks {
 public:
  RandomTasks(Dice& dice, std::int64_t rows, int devices)
      : dice_(dice), rows_(rows), devices_(devices) {}

  std::vector<Task> make(std::int64_t count) {
    while (std::ssize(tasks_) < count) add_one();
    set_final();
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
    Task& task = add(Operation::covariance, id, {p, q}, 2);
    task.access = Access::write;
  }

  void add_one() {
    const std::int64_t kind = dice_.roll(16);
    if (kind < 6) {
      const BlockId c = tile_out();
      const BlockId a = other_than(c);
      add(Operation::gemm, c, {a, dice_.roll(5) == 0 ? a : other_than(c)}, 2);
    } else if (kind < 9) {
      const BlockId c = tile_out();
      add(Operation::syrk, c, {other_than(c), BlockId()}, 1);
    } else if (kind < 11) {
      add(Operation::trsm, tile_out(), {BlockId(kStoredTiles, 0, dice_.roll(2)), BlockId()}, 1);
    } else if (kind < 14) {
      const std::int64_t x = dice_.roll(rows_);
      const std::int64_t y = (x + 1 + dice_.roll(rows_ - 1)) % rows_;
      const BlockId a = tile();
      add(Operation::gemm_left, {kNarrow, x, 0}, {a, BlockId(kNarrow, y, 0)}, 2);
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

  Task& add(Operation operation, BlockId out, std::array<BlockId, 2> inputs, int count) {
    Task& task = tasks_.emplace_back();
    task.operation = operation;
    task.out = out;
    task.inputs = inputs;
    task.input_count = static_cast<std::uint8_t>(count);
    // Mostly bursts on one device, as algorithms do, and now and then another one.
    if (dice_.roll(3) == 0) device_ = static_cast<std::uint16_t>(dice_.roll(devices_));
    task.device = device_;
    task.urgent = dice_.roll(4) == 0;
    return task;
  }

  void set_final() {
    std::set<BlockId> seen;
    for (auto task = tasks_.rbegin(); task != tasks_.rend(); ++task) {
      if (seen.insert(task->out).second) task->final = dice_.roll(2) == 0;
    }
  }

  Dice& dice_;
  std::int64_t rows_;
  int devices_;
  std::uint16_t device_ = 0;
  std::set<BlockId> written_;
  std::vector<Task> tasks_;
};

inline Schedule schedule_of(BlockTable blocks, int devices, std::vector<int> operands,
                            std::vector<std::vector<Task>> steps) {
  Schedule schedule;
  schedule.blocks = std::move(blocks);
  schedule.devices = devices;
  schedule.operands = std::move(operands);
  schedule.steps = std::ssize(steps);
  schedule.emit = [steps = std::move(steps)](std::int64_t s, std::vector<Task>& tasks) {
    const std::vector<Task>& step = steps[static_cast<std::size_t>(s)];
    tasks.insert(tasks.end(), step.begin(), step.end());
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
  const std::vector<Task> tasks = RandomTasks(dice, rows, devices).make(1 + dice.roll(120));
  std::vector<std::vector<Task>> steps(1);
  for (const Task& task : tasks) {
    while (dice.roll(4) == 0) steps.emplace_back();  // steps may be empty
    steps.back().push_back(task);
  }
  return schedule_of(std::move(blocks), devices, {3, 3, 2, 2}, std::move(steps));
}

}  // namespace strata::test
