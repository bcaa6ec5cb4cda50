// Sessions: runs one after another on the same devices, with plans that serve again, blocks that go
// home where they leave no place, and bytes that are those planned.

#include "session/session.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/dense/gemm.hpp"
#include "session/policy.hpp"
#include "store/memory_store.hpp"

namespace strata {
namespace {

constexpr std::int64_t kOrder = 24;
constexpr std::int64_t kBlockBytes = kOrder * kOrder * 8;
constexpr std::int64_t kSlotBytes = (kBlockBytes + 255) / 256 * 256;

/// V_i ← V_i − A_i·B for some blocks that stay on the devices. Small integers: every sum is exact.
struct Updates {
  explicit Updates(std::int64_t blocks) : count(blocks), identity(++last_identity) {
    for (const auto& [to, size] : {std::pair(&v, count), {&a, count}, {&b, std::int64_t{1}}})
      to->resize(static_cast<std::size_t>(size * kOrder * kOrder));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i * 7 % 11) - 5;
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 5 % 7) - 3;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * 3 % 5) - 2;
    home = std::make_shared<FamilyMemory>(schedule()->blocks, 0, source_of(v));
  }

  [[nodiscard]] std::shared_ptr<const Schedule> schedule(int devices = 1) const {
    Schedule made;
    const auto add = [&](const char* name, std::int64_t blocks, std::uint64_t id, bool stays) {
      made.blocks.add({.name = name,
                       .rows = blocks * kOrder,
                       .cols = kOrder,
                       .tile_rows = kOrder,
                       .tile_cols = kOrder,
                       .identity = id,
                       .stays = stays});
    };
    add("V", count, identity, true);
    add("A", count, 0, false);
    add("B", 1, 0, false);
    made.operands = {1, 1, 1};
    made.devices = devices;
    made.steps = count;
    made.emit = [devices](std::int64_t i, TaskList& tasks) {
      tasks.add(gemm, static_cast<int>(i % devices),
                {BlockId(0, i, 0), BlockId(1, i, 0), BlockId(2, 0, 0)});
    };
    return std::make_shared<const Schedule>(std::move(made));
  }
  /// With a source of A that may fail.
  [[nodiscard]] MemoryStore store(const BlockTable& blocks, BlockSource of_a = nullptr) const {
    return {blocks,
            {home, std::make_shared<FamilyMemory>(blocks, 1, of_a ? of_a : source_of(a)),
             std::make_shared<FamilyMemory>(blocks, 2, source_of(b))}};
  }
  void run_in(Session& session, int devices = 1, BlockSource of_a = nullptr) const {
    SessionRun wanted;
    wanted.schedule = schedule(devices);
    wanted.figures.n = kOrder;
    wanted.figures.floor_bytes = 1;
    MemoryStore blocks = store(wanted.schedule->blocks, std::move(of_a));
    const RunReport& report = session.run(wanted, blocks);
    EXPECT_EQ(report.traffic, static_cast<const Traffic&>(report.planned_traffic));
    EXPECT_EQ(report.tasks, count);
  }
  void set_home(Session& session) const {
    session.set_home([memory = home](const BlockTable& blocks) {
      return std::make_unique<MemoryStore>(
          blocks, std::vector<std::shared_ptr<FamilyMemory>>{memory, nullptr, nullptr});
    });
  }
  /// V after so many runs, by plain loops.
  [[nodiscard]] std::vector<double> expected(int runs) const {
    std::vector<double> result = v;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t first = k * kOrder * kOrder;
      for (std::int64_t j = 0; j < kOrder; ++j) {
        for (std::int64_t i = 0; i < kOrder; ++i) {
          double sum = 0;
          for (std::int64_t l = 0; l < kOrder; ++l)
            sum += a[static_cast<std::size_t>(first + i + l * kOrder)] *
                   b[static_cast<std::size_t>(l + j * kOrder)];
          result[static_cast<std::size_t>(first + i + j * kOrder)] -= runs * sum;
        }
      }
    }
    return result;
  }
  [[nodiscard]] std::vector<double> at_home() const {
    const auto* data = reinterpret_cast<const double*>(home->data());
    return {data, data + v.size()};
  }
  /// Packed blocks one behind the other.
  [[nodiscard]] static BlockSource source_of(const std::vector<double>& numbers) {
    return [&numbers](const BlockExtent& x, std::byte* to) {
      std::copy_n(numbers.data() + (x.row + x.col) * kOrder, x.rows * x.cols,
                  reinterpret_cast<double*>(to));
    };
  }

  static inline std::uint64_t last_identity = 0;
  std::int64_t count;
  std::uint64_t identity;
  std::vector<double> v, a, b;
  std::shared_ptr<FamilyMemory> home;
};

RunOptions on(const char* devices, std::int64_t slots) {
  RunOptions options;
  options.devices = devices;
  options.device_memory_bytes = slots * kSlotBytes;
  options.compute_queues = 2;
  return options;
}

TEST(Session, APlanServesAgainFromTheSameResidencyAndNotFromAnother) {
  const Updates updates(5);
  Session session(on("host:1", 64));
  updates.set_home(session);
  updates.run_in(session);  // from empty devices
  EXPECT_EQ(session.plans_made(), 1);
  updates.run_in(session);  // V is there, and newer than at home
  const std::int64_t made = session.plans_made();
  EXPECT_EQ(made, 2);
  for (int time = 0; time < 3; ++time) updates.run_in(session);
  EXPECT_EQ(session.plans_made(), made);
  EXPECT_TRUE(session.only_here());
  session.fetch();
  EXPECT_FALSE(session.only_here());
  EXPECT_EQ(updates.at_home(), updates.expected(5));
  const RunReport sum = session.take_report();
  EXPECT_EQ(sum.traffic, static_cast<const Traffic&>(sum.planned_traffic));
  // V once in, A and B five times; V once out.
  EXPECT_EQ(sum.traffic.host_to_device_bytes, (5 + 5 * (5 + 1)) * kBlockBytes);
  EXPECT_EQ(sum.traffic.device_to_host_bytes, 5 * kBlockBytes);
  EXPECT_EQ(sum.tasks, 25);
  EXPECT_EQ(sum.n, kOrder);
  EXPECT_EQ(sum.planned_traffic.floor_bytes, 5);
  EXPECT_EQ(fold_traffic(sum.trace.spans), sum.traffic);
  EXPECT_TRUE(session.take_report().devices.empty()) << "it was taken";
}

TEST(Session, OtherTasksOnTheSameBlocksHaveAPlanOfTheirOwn) {
  const Updates updates(4);
  Session session(on("host:2", 64));
  updates.set_home(session);
  for (int time = 0; time < 3; ++time) updates.run_in(session, 2);
  const std::int64_t made = session.plans_made();
  updates.run_in(session, 1);  // all on the first device, from the same residency
  EXPECT_GT(session.plans_made(), made);
  session.fetch();
  EXPECT_EQ(updates.at_home(), updates.expected(4));
}

TEST(Session, WhatLeavesNoPlaceGoesHomeFirstAndIsReported) {
  const Updates updates(6);
  const Updates others(6);
  Session session(on("host:1", 16));
  updates.set_home(session);
  updates.run_in(session);
  ASSERT_TRUE(session.only_here());
  others.run_in(session);  // knows nothing of the blocks of the first
  EXPECT_EQ(updates.at_home(), updates.expected(1));
  const RunReport& sum = session.report();
  EXPECT_EQ(sum.traffic, static_cast<const Traffic&>(sum.planned_traffic));
  EXPECT_EQ(sum.traffic.device_to_host_bytes, 6 * kBlockBytes);
  EXPECT_EQ(sum.tasks, 12);
  others.set_home(session);
  session.fetch();
  EXPECT_EQ(others.at_home(), others.expected(1));
}

TEST(Session, BitsAndPlannedBytesHoldAtAllHalfAndAQuarterOfTheMemory) {
  constexpr std::int64_t kBlocks = 20;
  for (const int devices : {1, 2}) {
    for (const std::int64_t share : {100, 50, 25}) {
      const Updates updates(kBlocks);
      const std::int64_t slots = (2 * kBlocks + devices) * share / 100 / devices;
      Session session(on(devices == 1 ? "host:1" : "host:2", slots));
      updates.set_home(session);
      const std::vector<Schedule> widest{*updates.schedule(devices)};
      session.reserve(widest);
      for (int time = 0; time < 4; ++time) updates.run_in(session, devices);
      session.fetch();
      EXPECT_EQ(updates.at_home(), updates.expected(4)) << share << ' ' << devices;
      const RunReport sum = session.take_report();
      EXPECT_EQ(sum.traffic, static_cast<const Traffic&>(sum.planned_traffic));
      EXPECT_LE(sum.peak_device_bytes, slots * kSlotBytes);
      EXPECT_EQ(sum.traffic.device_to_host_bytes == kBlocks * kBlockBytes, share == 100);
    }
  }
}

TEST(Session, ARunThatFailsTakesAlongWhatWasOnlyThere) {
  const Updates updates(3);
  Session session(on("host:1", 32));
  updates.set_home(session);
  updates.run_in(session);
  const auto fails = [](const BlockExtent&, std::byte*) {
    throw Error(ErrorKind::input, "test", "no A");
  };
  EXPECT_THROW(updates.run_in(session, 1, fails), Error);
  EXPECT_FALSE(session.only_here());
  EXPECT_TRUE(session.devices().residency().empty());
  session.fetch();  // there is nothing to bring
  EXPECT_EQ(session.take_report().tasks, 3) << "of the run that was completed";
}

TEST(Session, AnAdoptedPlanServesItsScheduleAndItsMachineAllOthers) {
  const Updates updates(3);
  Session session(on("host:1", 32));
  updates.set_home(session);
  Machine machine = session.machine();
  machine.devices[0].compute_queues = 1;
  PlannedRun planned = make_planned_run(updates.schedule(), machine, {}, "opt chosen");
  planned.n = 77;
  planned.seconds = 3;
  const auto chosen = planned.plan->shared_schedule();
  session.adopt(std::move(planned));
  session.reserve_beside_adopted(4 * kSlotBytes);
  EXPECT_GE(session.devices().residency().devices[0].arena_bytes, (7 + 4) * kSlotBytes);
  for (int time = 0; time < 2; ++time) {
    SessionRun wanted;
    wanted.schedule = chosen;
    MemoryStore store = updates.store(chosen->blocks);
    const RunReport& report = session.run(wanted, store);
    EXPECT_EQ(session.plans_made(), time) << "the second starts from what the first has left";
    EXPECT_EQ(report.policy, "opt chosen");
    EXPECT_EQ(report.n, 77);
    EXPECT_GE(report.plan_seconds, 3);
    EXPECT_EQ(report.compute_queues, 1);
  }
  updates.run_in(session);
  EXPECT_EQ(session.report().compute_queues, 1);
  session.fetch();
  EXPECT_EQ(updates.at_home(), updates.expected(3));
}

TEST(Session, EqualProgramsNumberFamiliesAlikeAndSharedDevicesNeverTwice) {
  const auto devices = std::make_shared<DeviceSet>(on("host:1", 8));
  const Session one(devices, on("host:1", 8));
  const Session other(devices, on("host:1", 8));
  const Session apart(on("host:1", 8));
  std::vector<std::uint64_t> numbers;
  for (const Session* session : {&one, &other, &one, &other})
    numbers.push_back(session->new_identity());
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(apart.new_identity(), 1U) << "whatever this process has done before";
}

}  // namespace
}  // namespace strata
