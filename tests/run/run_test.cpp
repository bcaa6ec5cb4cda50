// run() against the definition of correct, and what it does when something goes wrong.

#include "run/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "cholesky/tile_cholesky.hpp"
#include "kernels/dense/potrf.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"
#include "tests/run/small_tiles.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_store.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {
namespace {

DeviceSet named_devices(const std::string& text, std::int64_t budget = 1 << 20) {
  RunOptions options;
  options.devices = text;
  options.device_memory_bytes = budget;
  options.compute_queues = 3;
  return DeviceSet(options);
}

class Run : public ::testing::TestWithParam<std::string> {
 protected:
  const Backend& backend = backend_of(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Backends, Run, ::testing::ValuesIn(available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(Run, OfRandomSchedulesIsBitIdenticalToTheScheduleInOrder) {
  std::map<int, DeviceSet> device_sets;
  for (int devices = 1; devices <= 4; ++devices) {
    const std::string text = devices_text(GetParam(), devices);
    if (!text.empty()) device_sets.emplace(devices, named_devices(text));
  }
  const CovarianceParameters parameters{0.2, 0.7, 0.5, 0.1, true};
  IssueOptions run_options;
  run_options.values = {{strata::covariance.name, &parameters}};
  int overflowed = 0;
  std::int64_t peer_copies = 0;
  int uneven = 0;
  for (std::uint64_t seed = 0; seed < campaign(500, 500, 120); ++seed) {
    const Schedule schedule = random_schedule(seed);
    const auto devices = device_sets.find(schedule.devices);
    if (devices == device_sets.end()) continue;
    const auto expected = make_store(schedule.blocks);
    run_in_order(schedule, backend, *expected, run_options);

    Dice dice(seed + 77);
    const PlanOptions options = random_plan_options(dice);
    Machine machine = devices->second.machine();
    for (DeviceModel& device : machine.devices) {
      device.memory_bytes = smallest_budget_bytes(schedule) + dice.roll(16) * 512;
      device.compute_queues = static_cast<int>(1 + seed % 3);
    }
    machine.device_to_device = dice.roll(2) == 0 ? LinkRate{1e15, 0} : LinkRate{};
    const Plan plan(std::make_shared<const Schedule>(schedule), machine, options);
    const auto actual = make_store(schedule.blocks);
    const RunOutcome outcome = run(plan, devices->second, *actual, run_options);
    ASSERT_EQ(outcome.trace.traffic, plan.totals().traffic) << "seed " << seed;
    ASSERT_EQ(fold_traffic(outcome.trace.spans), plan.totals().traffic);
    ASSERT_EQ(outcome.trace.spans_added, plan.totals().steps);
    peer_copies += plan.totals().peer_copies;
    uneven += plan.layout().devices[0].arena_bytes != plan.layout().arena_bytes() ? 1 : 0;
    const Bytes want = contents_of(*expected);
    ASSERT_TRUE(contents_of(*actual) == want) << "seed " << seed;
    overflowed += all_finite(want) ? 0 : 1;
  }
  EXPECT_LE(overflowed, 5) << "a wrong operand would not show among infinities";
  EXPECT_TRUE(peer_copies > (kSanitized ? 60 : 300) || device_sets.size() < 4);
  EXPECT_TRUE(uneven > (kSanitized ? 20 : 100) || device_sets.size() < 4)
      << "each device has a budget of its own";
}

// ---- Cholesky problems, for what follows

constexpr std::int64_t kRunTiles = 5;

/// Tile Cholesky of a well-conditioned matrix, optionally with a bad pivot, on two devices (one if
/// there is only one GPU) with few slots.
struct Problem {
  Problem(const std::string& backend_name, std::int64_t bad_column = -1)
      : backend(backend_name),
        devices_count(devices_text(backend, 2).empty() ? 1 : 2),
        matrix(random_spd_matrix<double>(kTile * kRunTiles, 7)) {
    if (bad_column >= 0) matrix(bad_column, bad_column) = -1;
    CholeskyProblem problem;
    problem.n = kTile * kRunTiles;
    problem.tile = kTile;
    problem.devices = devices_count;
    schedule = std::make_shared<const Schedule>(tile_cholesky(problem, {}));
  }

  [[nodiscard]] std::unique_ptr<MemoryStore> store() const {
    const BlockTable& blocks = schedule->blocks;
    return std::make_unique<MemoryStore>(
        blocks, std::vector{std::make_shared<FamilyMemory>(
                                blocks, kMatrixFamily,
                                source_of_view(matrix.data.data(), matrix.ld(), true)),
                            std::make_shared<FamilyMemory>(blocks, kStatusFamily)});
  }
  [[nodiscard]] DeviceSet devices() const {
    // Six tiles, and a slot for a status.
    return named_devices(devices_text(backend, devices_count), 6 * kTile * kTile * 8 + 256);
  }
  [[nodiscard]] Plan plan(const DeviceSet& set) const {
    return {schedule, set.machine(), PlanOptions{}};
  }
  [[nodiscard]] Bytes expected() const {
    const auto s = store();
    run_in_order(*schedule, backend_of(backend), *s);
    return contents_of(*s);
  }

  std::string backend;
  int devices_count;
  Matrix<double> matrix;
  std::shared_ptr<const Schedule> schedule;
};

PivotStatus status_of(BlockStore& store, std::int64_t tile) {
  PivotStatus status;
  store.read({kStatusFamily, 0, tile}, reinterpret_cast<std::byte*>(&status));
  return status;
}

/// Ends a run at the first bad pivot.
IssueOptions watching(BlockStore& store) {
  IssueOptions options;
  options.watched = kStatusFamily;
  options.watch = [&store](BlockId id) { return status_of(store, id.col()).bad_column >= 0; };
  return options;
}

/// The devices still work: a fresh run gives the right bits.
void expect_usable(const Problem& problem, DeviceSet& devices, const Bytes& expected) {
  const auto store = problem.store();
  const Plan plan = problem.plan(devices);
  const RunOutcome outcome = run(plan, devices, *store, watching(*store));
  EXPECT_FALSE(outcome.ended_early);
  EXPECT_EQ(outcome.trace.traffic, plan.totals().traffic);
  EXPECT_TRUE(contents_of(*store) == expected) << "other bits";
}

TEST_P(Run, GivesTheSameAnswerAgainAndAgainOnTheSameDevices) {
  const Problem problem(GetParam());
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  for (int i = 0; i < 3; ++i) expect_usable(problem, devices, expected);
}

TEST_P(Run, OfNoTasksTouchesNothing) {
  DeviceSet devices = named_devices(devices_text(GetParam(), 1));
  const Plan plan(std::make_shared<const Schedule>(tile_cholesky({}, {})), devices.machine(), {});
  const auto store = make_store(plan.schedule().blocks);
  const RunOutcome outcome = run(plan, devices, *store);
  EXPECT_FALSE(outcome.ended_early);
  EXPECT_TRUE(outcome.trace.spans.empty());
}

/// The blocks of the matrix alone.
Bytes matrix_of(BlockStore& store) {
  Bytes all = contents_of(store);
  all.resize(static_cast<std::size_t>(store.blocks().count(kMatrixFamily)));
  return all;
}

TEST_P(Run, EveryDroppedTaskIsRefusedOrChangesTheAnswer) {
  const Problem problem(GetParam());
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  const auto in_order = problem.store();
  run_in_order(*problem.schedule, backend_of(problem.backend), *in_order);
  const Bytes factor = matrix_of(*in_order);
  const std::vector<FlatTask> tasks = tasks_of(*problem.schedule);
  ASSERT_EQ(tasks.size(), 35u);
  for (std::size_t drop = 0; drop < tasks.size(); ++drop) {
    std::vector<FlatTask> fewer = tasks;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(drop));
    const Plan plan(std::make_shared<const Schedule>(schedule_of(
                        problem.schedule->blocks, problem.devices_count, {3, 1}, {fewer})),
                    devices.machine(), {});
    const auto store = problem.store();
    const RunOutcome outcome = run(plan, devices, *store, watching(*store));
    EXPECT_TRUE(outcome.ended_early || matrix_of(*store) != factor) << "task " << drop;
  }
  expect_usable(problem, devices, expected);
}

// ---- a run that someone watches

TEST_P(Run, ABadPivotEndsTheRunEarlyAndIsNamed) {
  const Problem good(GetParam());
  const Bytes expected = good.expected();
  DeviceSet devices = good.devices();
  for (const std::int64_t column :
       {std::int64_t{0}, kTile - 1, 2 * kTile, 2 * kTile + 3, kTile * kRunTiles - 1}) {
    const Problem problem(GetParam(), column);
    const auto store = problem.store();
    const RunOutcome outcome = run(problem.plan(devices), devices, *store, watching(*store));
    ASSERT_TRUE(outcome.ended_early) << column;
    for (std::int64_t k = 0; k < column / kTile; ++k)
      EXPECT_EQ(status_of(*store, k).bad_column, -1);
    const PivotStatus bad = status_of(*store, column / kTile);
    EXPECT_EQ(bad.bad_column, static_cast<double>(column % kTile));
    EXPECT_LE(bad.bad_pivot, -1);
    EXPECT_TRUE(devices.residency().empty()) << "what is on the devices is of no use";
    expect_usable(good, devices, expected);
  }
}

TEST_P(Run, ABadPivotThatNobodyWatchesIsAValueLikeAnyOther) {
  const Problem problem(GetParam(), 2 * kTile + 3);
  DeviceSet devices = problem.devices();
  const auto store = problem.store();
  const Plan plan = problem.plan(devices);
  const RunOutcome outcome = run(plan, devices, *store);
  EXPECT_FALSE(outcome.ended_early);
  EXPECT_EQ(outcome.trace.traffic, plan.totals().traffic) << "to the end";
  EXPECT_EQ(status_of(*store, 2).bad_column, 3);
  EXPECT_EQ(status_of(*store, 1).bad_column, -1);
}

TEST_P(Run, ABadPivotInALongRunLeavesTheRestUndone) {
  // Far more than the windows in flight (three of about 512 steps), so the end must not be reached.
  constexpr std::int64_t kLong = 40;
  Matrix<double> matrix = random_spd_matrix<double>(2 * kLong, 7);
  matrix(4, 4) = -1;
  CholeskyProblem problem;
  problem.n = 2 * kLong;
  problem.tile = 2;
  DeviceSet devices = named_devices(devices_text(GetParam(), 1));
  const Plan plan(std::make_shared<const Schedule>(tile_cholesky(problem, {})), devices.machine(),
                  {});
  ASSERT_GT(plan.totals().steps, 10'000);
  const BlockTable& blocks = plan.schedule().blocks;
  MemoryStore store(
      blocks, {std::make_shared<FamilyMemory>(
                   blocks, kMatrixFamily, source_of_view(matrix.data.data(), matrix.ld(), true)),
               std::make_shared<FamilyMemory>(blocks, kStatusFamily)});
  const RunOutcome outcome = run(plan, devices, store, watching(store));
  EXPECT_TRUE(outcome.ended_early);
  EXPECT_EQ(status_of(store, 2).bad_column, 0);
  EXPECT_LT(outcome.trace.spans_added, 4'000);
}

TEST_P(Run, WhoWatchesIsToldOfEachBlockOnceItIsAtHome) {
  const Problem problem(GetParam());
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  const auto caller = std::this_thread::get_id();
  for (std::int64_t last = 0; last <= kRunTiles; ++last) {
    const auto store = problem.store();
    std::vector<std::int64_t> told;
    IssueOptions options = watching(*store);
    options.watch = [&](BlockId id) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(id.family(), kStatusFamily);
      std::vector<std::byte> bytes(sizeof(PivotStatus));
      store->read(id, bytes.data());
      EXPECT_TRUE(bytes == expected[static_cast<std::size_t>(store->blocks().index(id))]);
      told.push_back(id.col());
      return id.col() == last;
    };
    const RunOutcome outcome = run(problem.plan(devices), devices, *store, options);
    EXPECT_EQ(outcome.ended_early, last < kRunTiles);
    std::sort(told.begin(), told.end());
    EXPECT_EQ(std::unique(told.begin(), told.end()), told.end()) << "told twice";
    EXPECT_TRUE(std::binary_search(told.begin(), told.end(), std::min(last, kRunTiles - 1)));
    EXPECT_TRUE(last < kRunTiles || std::ssize(told) == kRunTiles);
  }
  expect_usable(problem, devices, expected);
}

TEST_P(Run, WhoWatchesMayThrow) {
  const Problem problem(GetParam());
  DeviceSet devices = problem.devices();
  const auto store = problem.store();
  IssueOptions options = watching(*store);
  options.watch = [](BlockId) -> bool { throw std::logic_error("mine"); };
  EXPECT_THROW((void)run(problem.plan(devices), devices, *store, options), std::logic_error);
  EXPECT_TRUE(devices.residency().empty());
  expect_usable(problem, devices, problem.expected());
}

TEST_P(Run, RefusesAnArenaThatTheDevicesDoNotHold) {
  const Problem problem(GetParam());
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  Machine larger = devices.machine();
  for (DeviceModel& device : larger.devices) device.memory_bytes = 1 << 20;
  const Plan plan(problem.schedule, larger, {});
  ASSERT_GT(plan.layout().arena_bytes(), devices.device(0).budget_bytes());
  const auto store = problem.store();
  const Bytes before = contents_of(*store);
  try {
    (void)run(plan, devices, *store);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
  }
  EXPECT_TRUE(contents_of(*store) == before);
  expect_usable(problem, devices, expected);
}

// ---- faults of the store (the queues of a GPU copy by themselves and never call it)

TEST(RunFaults, EveryReadAndWriteThatFailsIsThrownAndTheDevicesLiveOn) {
  const Problem problem("host");
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  const Plan plan = problem.plan(devices);
  enum class Kind { read, short_read, write };
  for (const Kind kind : {Kind::read, Kind::short_read, Kind::write}) {
    const std::int64_t count = kind == Kind::write ? plan.totals().stores : plan.totals().loads;
    for (std::int64_t k = 1; k <= count; ++k) {
      Faults faults;
      if (kind == Kind::read) faults.read_fails = {k};
      if (kind == Kind::short_read) faults.short_read = {k};
      if (kind == Kind::write) faults.write_fails = {k};
      FaultStore store(problem.store(), faults);
      const std::string what = kind == Kind::read    ? "injected: read "
                               : kind == Kind::write ? "injected: write "
                                                     : "injected: short read ";
      try {
        (void)run(plan, devices, store);
        ADD_FAILURE() << what << k << " went unnoticed";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::storage);
        EXPECT_EQ(std::string(error.what()).rfind(what + std::to_string(k) + " of ", 0), 0u)
            << error.what();
      }
      const std::int64_t reads = store.reads();
      const std::int64_t writes = store.writes();
      expect_usable(problem, devices, expected);
      EXPECT_EQ(store.reads(), reads) << "a queue still reads after the run has ended";
      EXPECT_EQ(store.writes(), writes) << "a queue still writes after the run has ended";
    }
  }
}

TEST(RunFaults, AReadOrWriteThatFailsBesideCopiesBetweenDevicesIsThrown) {
  const Problem problem("host");
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  Machine linked = devices.machine();
  linked.device_to_device = {1e15, 0};
  const Plan plan(problem.schedule, linked, {});
  ASSERT_GT(plan.totals().peer_copies, 5);
  for (const bool reading : {true, false}) {
    const std::int64_t count = reading ? plan.totals().loads : plan.totals().stores;
    for (std::int64_t k = 1; k <= count; ++k) {
      Faults faults;
      (reading ? faults.read_fails : faults.write_fails) = {k};
      FaultStore store(problem.store(), faults);
      EXPECT_THROW((void)run(plan, devices, store), Error) << k;
      expect_usable(problem, devices, expected);
    }
  }
  const auto store = problem.store();
  (void)run(plan, devices, *store);
  EXPECT_TRUE(contents_of(*store) == expected);
}

TEST(RunFaults, TwoFailuresAreOneError) {
  const Problem problem("host");
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  for (std::int64_t k = 1; k <= 6; ++k) {
    FaultStore store(problem.store(),
                     {.read_fails = {k, k + 1}, .write_fails = {k, k + 2}, .short_read = {k + 3}});
    EXPECT_THROW((void)run(problem.plan(devices), devices, store), Error);
    expect_usable(problem, devices, expected);
  }
}

TEST(RunFaults, WhatIsNoErrorOfOursPassesThrough) {
  const Problem problem("host");
  DeviceSet devices = problem.devices();
  const BlockTable& blocks = problem.schedule->blocks;
  MemoryStore store(blocks, {std::make_shared<FamilyMemory>(blocks, kMatrixFamily,
                                                            [](const BlockExtent& x, std::byte*) {
                                                              if (x.row == 2 * kTile)
                                                                throw std::domain_error("not ours");
                                                            }),
                             std::make_shared<FamilyMemory>(blocks, kStatusFamily)});
  EXPECT_THROW((void)run(problem.plan(devices), devices, store), std::domain_error);
  expect_usable(problem, devices, problem.expected());
}

TEST(RunFaults, ABitFlipWithoutAChecksumChangesTheAnswer) {
  const Problem problem("host");
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  FaultStore store(problem.store(), {.bit_flip = {4}});
  (void)run(problem.plan(devices), devices, store);
  EXPECT_FALSE(contents_of(store.inner()) == expected) << "why blocks on disk carry checksums";
}

TEST(RunFaults, AProgressCallbackThatSaysNoCancels) {
  const Problem problem("host");
  const Bytes expected = problem.expected();
  DeviceSet devices = problem.devices();
  const Plan plan = problem.plan(devices);
  // Slow enough that the callback is asked: its interval is 50 ms, and the loads of a queue add up.
  Faults faults;
  faults.seconds_slow = 0.3 / static_cast<double>(plan.totals().loads);
  FaultStore store(problem.store(), faults);
  IssueOptions options;
  options.what = "factor";
  int asked = 0;
  options.progress = [&](const Progress& progress) {
    ++asked;
    EXPECT_STREQ(progress.what, "factor");
    EXPECT_LE(progress.done, progress.total);
    EXPECT_EQ(progress.total, plan.totals().flops);
    return false;
  };
  try {
    (void)run(plan, devices, store, options);
    ADD_FAILURE() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  EXPECT_EQ(asked, 1);
  EXPECT_LT(store.reads(), plan.totals().loads);
  const std::int64_t calls = store.reads() + store.writes();
  expect_usable(problem, devices, expected);
  EXPECT_EQ(store.reads() + store.writes(), calls) << "a queue still runs after the run has ended";
}

TEST(RunFaults, AThrowingProgressCallbackEndsTheRun) {
  const Problem problem("host");
  DeviceSet devices = problem.devices();
  const Plan plan = problem.plan(devices);
  Faults faults;
  faults.seconds_slow = 0.3 / static_cast<double>(plan.totals().loads);
  FaultStore store(problem.store(), faults);
  IssueOptions options;
  options.progress = [](const Progress&) -> bool { throw std::logic_error("mine"); };
  EXPECT_THROW((void)run(plan, devices, store, options), std::logic_error);
  expect_usable(problem, devices, problem.expected());
}

}  // namespace
}  // namespace strata::test
