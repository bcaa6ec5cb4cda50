// What fits, and how what does not fit is refused.

#include "session/budget.hpp"

#include <gtest/gtest.h>

#include "strata/error.hpp"
#include "tests/session/toy_space.hpp"

namespace strata {
namespace {

using test::toy_machine;
using test::ToySpace;

std::string message_of(const std::function<void()>& refuse) {
  try {
    refuse();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    return error.where() + ": " + error.what();
  }
  return "";
}

void expect_pieces(const std::string& text, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) {
    EXPECT_NE(text.find(piece), std::string::npos) << piece << " in: " << text;
  }
}

TEST(Budget, TheLargestTileIsTheLastThatFits) {
  const Machine machine = toy_machine(1 << 20, 0);
  for (const std::int64_t n : {1, 2, 37, 90}) {
    const ToySpace space(n, machine);
    const ScheduleInTiles schedule = [&](std::int64_t t) { return space.schedule(t, 0); };
    for (const std::int64_t budget : {0, 500, 768, 2000, 10'000, 40'000, 90'000, 1 << 20}) {
      std::int64_t last = 0;
      for (std::int64_t tile = 1; tile <= n; ++tile) {
        if (smallest_budget_bytes(schedule(tile)) <= budget) last = tile;
      }
      EXPECT_EQ(largest_tile(n, budget, schedule), last) << n << ' ' << budget;
    }
  }
}

TEST(Budget, TheSmallestDeviceDecides) {
  Machine machine = Machine::emulated(3, 1000);
  machine.devices[1].memory_bytes = 900;
  EXPECT_EQ(smallest_memory(machine), 900);
  EXPECT_FALSE(is_cpu(machine));
  machine.devices[0].kind = DeviceKind::cpu;
  EXPECT_TRUE(is_cpu(machine));
  EXPECT_THROW(require_devices(Machine()), Error);
  EXPECT_NO_THROW(check_device_memory({900, 12, 3}, 100, 10, machine));
  expect_pieces(message_of([&] {
                  check_device_memory({901, 12, 4096}, 100, 10, machine);
                }),
                {"900 bytes", "order 100", "largest tile for it is 12", "tiles of 10", "4.00 KiB",
                 "901 bytes"});
  expect_pieces(message_of([&] {
                  check_device_memory({901, 0, 4096}, 100, 10, machine);
                }),
                {"no tile is small enough"});
}

TEST(Budget, HostMemoryIsThatOfTheOptionsOrOfTheMachineBesideItsCpus) {
  Machine machine = toy_machine(1 << 20, 0);
  machine.host_memory_bytes = 5'000'000;
  const auto planned = [&](std::int64_t host_bytes) {
    const ToySpace space(200, machine);
    PlannedRun run = make_planned_run(std::make_shared<const Schedule>(space.schedule(50, 0)),
                                      machine, {}, "opt");
    run.n = 200;
    run.tile = 50;
    run.host_bytes = host_bytes;
    return run;
  };
  const auto refused = [&](std::int64_t host_bytes, const RunOptions& options) {
    return message_of([&] { check_host_memory(planned(host_bytes), options, "toy"); });
  };
  RunOptions options;
  EXPECT_EQ(refused(5'000'000, options), "");
  expect_pieces(refused(5'000'001, options), {"toy", "tiles of 50", "order 200", "5000001 bytes"});
  machine.devices[0].kind = DeviceKind::cpu;  // its arena is host memory too
  const std::int64_t arena = planned(0).plan->layout().arena_bytes();
  EXPECT_GT(arena, 0);
  EXPECT_EQ(refused(5'000'000 - arena, options), "");
  EXPECT_NE(refused(5'000'001 - arena, options), "");
  options.host_memory_bytes = 6'000'000;
  EXPECT_EQ(refused(6'000'000, options), "");
  EXPECT_NE(refused(6'000'001, options), "");
}

}  // namespace
}  // namespace strata
