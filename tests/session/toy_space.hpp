#pragma once
// A toy algorithm for the search: Y ← Y + A·X, tile by tile, row by row or column by column.
//
// Contract: nothing in it is of any solver. Row by row the blocks of X come again and again, column
// by column those of Y, which go home too.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "schedule/machine_model.hpp"
#include "session/candidates.hpp"

namespace strata::test {

/// Y(i) ← Y(i) + A(i,j)·X(j).
inline constexpr Operation toy_product{
    .name = "toy_product",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::read},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      return 2.0 * static_cast<double>(x[1].rows * x[1].cols * x[2].cols);
    }};

inline constexpr std::int64_t kToyColumns = 16;  // of X and Y

inline constexpr std::int64_t kByRows = 0;
inline constexpr std::int64_t kByColumns = 1;

class ToySpace : public CandidateSpace {
 public:
  ToySpace(std::int64_t n, const Machine& machine) : n_(n), machine_(machine) {}

  std::int64_t tile_min = 8;
  std::int64_t throws_at = 0;  // a tile
  std::vector<std::int64_t> all_orders{kByRows, kByColumns};
  std::function<double(std::int64_t tile)> bound;  // instead of the one that holds

  [[nodiscard]] bool allows(std::int64_t tile) const override {
    return tile >= tile_min && tile <= n_ &&
           smallest_budget_bytes(make(tile, kByRows)) <= machine_.devices[0].memory_bytes;
  }
  [[nodiscard]] std::vector<std::int64_t> orders(std::int64_t /*tile*/) const override {
    return all_orders;
  }
  [[nodiscard]] std::string order_name(std::int64_t order) const override {
    return order == kByRows ? "rows" : "columns";
  }
  [[nodiscard]] Schedule schedule(std::int64_t tile, std::int64_t order) const override {
    require(tile != throws_at, ErrorKind::input, "toy", "no tile of {}", tile);
    return make(tile, order);
  }
  [[nodiscard]] PlanOptions options() const override { return {}; }

  [[nodiscard]] double seconds_min(std::int64_t tile, int queues) const override {
    if (bound) return bound(tile);
    DeviceModel device = machine_.devices[0];
    device.compute_queues = queues;
    const auto full = static_cast<double>(n_ / tile);
    const auto t = static_cast<double>(tile);
    const double work = 2 * t * t * kToyColumns;
    const Elements elements(3, Element::fp64);
    const double seconds = full * full * kernel_seconds(device, toy_product, elements, work);
    const double share = kernel_share(device, toy_product, elements, work);
    const double bytes = 8 * static_cast<double>(n_) * static_cast<double>(n_ + 2 * kToyColumns);
    return std::max(
        {seconds / queues, seconds * share, bytes / device.host_to_device.bytes_per_second});
  }
  [[nodiscard]] std::int64_t steps(std::int64_t tile) const override {
    const std::int64_t rows = (n_ + tile - 1) / tile;
    return 2 * rows * rows + 3 * rows;
  }
  [[nodiscard]] std::int64_t floor_bytes(std::int64_t memory_bytes) const override {
    return 8 * n_ * (n_ + 3 * kToyColumns) + (memory_bytes == 0 ? 1 : 0);
  }

 private:
  [[nodiscard]] Schedule make(std::int64_t tile, std::int64_t order) const {
    Schedule schedule;
    schedule.blocks.add(
        {.name = "A", .rows = n_, .cols = n_, .tile_rows = tile, .tile_cols = tile});
    for (const char* name : {"X", "Y"})
      schedule.blocks.add({.name = name,
                           .rows = n_,
                           .cols = kToyColumns,
                           .tile_rows = tile,
                           .tile_cols = kToyColumns});
    schedule.operands = {1, 1, 1};
    const std::int64_t rows = schedule.blocks.block_rows(0);
    schedule.steps = rows;
    schedule.emit = [rows, order](std::int64_t step, TaskList& tasks) {
      for (std::int64_t other = 0; other < rows; ++other) {
        const std::int64_t i = order == kByRows ? step : other;
        const std::int64_t j = order == kByRows ? other : step;
        const bool last = j == rows - 1;
        tasks.add(toy_product, 0,
                  {{{2, i, 0}, last ? Hint::last_write : Hint::none},
                   BlockId{0, i, j},
                   BlockId{1, j, 0}});
      }
    };
    return schedule;
  }

  std::int64_t n_;
  const Machine& machine_;
};

/// One device whose kernel reaches half of `rate` flop/s at tiles of order `half`.
inline Machine toy_machine(std::int64_t memory, double half, int queues = 2, double rate = 1e5) {
  Machine machine = Machine::emulated(1, memory);
  DeviceModel& device = machine.devices[0];
  device.compute_queues = queues;
  device.rate(Element::fp64) = 2 * rate;
  device.host_to_device = device.device_to_host = {1e6 * rate / 1e5, 1e-4};
  for (const double t : {8.0, 32.0, 64.0, 128.0, 256.0, 512.0}) {
    device.kernels.push_back({"toy_product", std::vector<Element>(3, Element::fp64),
                              2 * t * t * kToyColumns,
                              2 * t * t * kToyColumns / (rate * t / (t + half))});
  }
  return machine;
}

}  // namespace strata::test
