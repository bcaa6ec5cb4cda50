// Which device computes which row: everybody gets work by its rate.

#include "schedule/row_owners.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cholesky/tile_cholesky.hpp"
#include "schedule/task.hpp"

namespace strata::test {
namespace {

std::vector<double> work_of(const RowOwners& owners, std::int64_t rows, int devices) {
  std::vector<double> work(static_cast<std::size_t>(devices), 0.0);
  for (std::int64_t row = 0; row < rows; ++row)
    work[static_cast<std::size_t>(owners[row])] += static_cast<double>((row + 1) * (row + 1));
  return work;
}

TEST(RowOwners, OfDevicesThatAreAlikeAreSerpentine) {
  for (const std::vector<double>& rates :
       {std::vector<double>{}, std::vector<double>(3, 50e12), std::vector<double>{50, 50.05, 50},
        std::vector<double>{0, 0, 0}}) {
    const RowOwners owners(20, 3, rates);
    for (std::int64_t row = 0; row < 20; ++row) EXPECT_EQ(owners[row], device_of_row(row, 3));
  }
}

TEST(RowOwners, GetWorkInProportionToTheirRates) {
  for (const std::vector<double>& rates :
       {std::vector{53.6, 54.6, 55.2, 54.4}, std::vector{1.0, 2.0}, std::vector{3.0, 1.0, 1.0},
        std::vector{10.0, 9.0, 8.0, 7.0, 6.0}}) {
    constexpr std::int64_t kRows = 60;
    const auto devices = static_cast<int>(rates.size());
    const RowOwners owners(kRows, devices, rates);
    const std::vector<double> work = work_of(owners, kRows, devices);
    double total_work = 0;
    double total_rate = 0;
    for (std::size_t d = 0; d < rates.size(); ++d) {
      total_work += work[d];
      total_rate += rates[d];
    }
    for (std::size_t d = 0; d < rates.size(); ++d) {
      const double share = work[d] / total_work;
      EXPECT_NEAR(share, rates[d] / total_rate, 0.02 * rates[d] / total_rate) << d;
    }
  }
}

TEST(RowOwners, KnowTheLastRowOfEach) {
  for (const std::vector<double>& rates : {std::vector<double>{}, std::vector{1.0, 5.0, 2.0}}) {
    const RowOwners owners(17, 3, rates);
    for (std::int64_t row = 0; row < 17; ++row) {
      bool last = true;
      for (std::int64_t below = row + 1; below < 17; ++below)
        last = last && owners[below] != owners[row];
      EXPECT_EQ(owners.is_last_of_its_device(row), last) << row;
    }
  }
}

/// Each tile's tasks, in their order, whatever the order of tiles and whoever computes them.
std::vector<std::string> updates_by_tile(const CholeskyProblem& problem, Order order) {
  const Schedule schedule = tile_cholesky(problem, order);
  std::vector<std::string> all(static_cast<std::size_t>(schedule.blocks.count()));
  for (std::int64_t s = 0; s < schedule.steps; ++s) {
    TaskList tasks;
    schedule.emit(s, tasks);
    for (const Task& task : std::as_const(tasks).tasks()) {
      const auto operands = std::as_const(tasks).operands(task);
      std::string& text = all[static_cast<std::size_t>(schedule.blocks.index(operands[0].id))];
      text += task.operation->name;
      for (const TaskOperand& operand : operands) text += " " + schedule.blocks.name(operand.id);
      text += ";";
    }
  }
  return all;
}

/// No task reads a tile that is written later.
void expect_tiles_read_when_final(const CholeskyProblem& problem, Order order) {
  const Schedule schedule = tile_cholesky(problem, order);
  std::vector<bool> read(static_cast<std::size_t>(schedule.blocks.count()));
  for (std::int64_t s = 0; s < schedule.steps; ++s) {
    TaskList tasks;
    schedule.emit(s, tasks);
    for (const Task& task : std::as_const(tasks).tasks()) {
      const auto operands = std::as_const(tasks).operands(task);
      const auto index = [&](const TaskOperand& operand) {
        return static_cast<std::size_t>(schedule.blocks.index(operand.id));
      };
      ASSERT_FALSE(read[index(operands[0])]) << order.name() << ' ' << task.operation->name;
      for (std::size_t i = 1; i < operands.size(); ++i) read[index(operands[i])] = true;
    }
  }
}

TEST(Orders, GiveEveryTileTheSameUpdatesInTheSameSequence) {
  for (const std::int64_t tiles : {1, 2, 3, 5, 9, 24, 45}) {
    for (const int devices : {1, 2, 3, 4}) {
      for (const std::int64_t dimensions : {0, 2}) {
        CholeskyProblem problem;
        problem.n = 4 * tiles - 1;
        problem.tile = 4;
        problem.point_dimensions = dimensions;
        const std::vector<std::string> expected = updates_by_tile(problem, {});
        problem.devices = devices;
        problem.rates.assign(static_cast<std::size_t>(devices), 1.0);
        problem.rates[0] = 1.5;
        EXPECT_EQ(updates_by_tile(problem, {.balanced = true}), expected);
        EXPECT_EQ(updates_by_tile(problem, {.super_tile = 3}), expected);
        for (const Order order :
             {Order{.super_tile = 1, .outer = 2, .group = 1},
              Order{.super_tile = 2, .outer = 7, .group = 3},
              Order{.super_tile = 3, .outer = 50, .group = 100}, Order{.super_tile = 2}}) {
          EXPECT_EQ(updates_by_tile(problem, order), expected) << order.name();
          expect_tiles_read_when_final(problem, order);
        }
      }
    }
  }
}

TEST(Orders, LeaveOutTilesThatAreThereAlready) {
  CholeskyProblem problem;
  problem.n = 4 * 9 - 1;
  problem.tile = 4;
  const std::vector<std::string> all = updates_by_tile(problem, {});
  std::vector<bool> done(45);
  for (std::size_t i = 0; i < done.size(); ++i) done[i] = i % 3 == 0 || i < 9;
  problem.done = std::make_shared<const std::vector<bool>>(done);
  for (const Order order : {Order{}, Order{.balanced = true}, Order{.super_tile = 2},
                            Order{.super_tile = 2, .outer = 5, .group = 2}}) {
    const std::vector<std::string> left = updates_by_tile(problem, order);
    for (std::size_t i = 0; i < done.size(); ++i)
      EXPECT_EQ(left[i], done[i] ? "" : all[i]) << order.name() << ' ' << i;
  }
}

}  // namespace
}  // namespace strata::test
