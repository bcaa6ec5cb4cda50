// What waits for what where several devices carry out a task together, followed entry by entry.

#include "run/resident_tasks.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kernels/column_squares.hpp"
#include "kernels/shared_call.hpp"

namespace strata {
namespace {

TEST(SharedCall, IsWhatItsVariantSays) {
  for (const SharePhase phase : {SharePhase::prepare, SharePhase::work, SharePhase::conclude}) {
    for (int sharers = 2; sharers <= kSharersMax; ++sharers) {
      for (int rank = 0; rank < sharers; ++rank) {
        const SharedCall call{phase, rank, sharers, 5};
        EXPECT_NE(call.variant(), 0U);
        const SharedCall same = SharedCall::of(call.variant());
        EXPECT_EQ(same.phase, phase);
        EXPECT_EQ(same.rank, rank);
        EXPECT_EQ(same.sharers, sharers);
        EXPECT_EQ(same.written, 5);
        const int operands = 9 + 5 * (sharers - 1);
        EXPECT_EQ(call.own(operands), 9);
        EXPECT_EQ(call.first_of(sharers - 2, operands) + 5, operands);
      }
    }
  }
}

/// Of each entry those that have ended when it begins, if the devices do what they are told: those
/// before it on its queue, and behind the events that it waits for.
std::vector<std::set<std::size_t>> before_each(const ResidentTasks& tasks, int queues) {
  std::vector<std::set<std::size_t>> before;
  std::vector<std::set<std::size_t>> done(static_cast<std::size_t>(queues));  // by queue
  std::vector<std::set<std::size_t>> at_event(tasks.events());
  for (std::size_t k = 0; k < tasks.entries().size(); ++k) {
    const ResidentTasks::Entry& entry = tasks.entries()[k];
    std::set<std::size_t>& mine = done[static_cast<std::size_t>(entry.queue)];
    for (const ResidentTasks::Wait& wait : tasks.waits(entry)) {
      if (wait.records) at_event[wait.event] = done[static_cast<std::size_t>(wait.queue)];
      mine.insert(at_event[wait.event].begin(), at_event[wait.event].end());
    }
    before.push_back(mine);
    mine.insert(k);
  }
  return before;
}

class SharedTasks : public ::testing::Test {
 protected:
  static constexpr int kQueues = 2;
  static constexpr int kDevices = 3;

  SharedTasks() {
    BlockFamily family{.name = "x", .rows = 1, .cols = 8};
    family.tile_rows = family.tile_cols = 1;
    blocks_.add(std::move(family));
  }
  [[nodiscard]] static BlockId block(int number) { return {0, 0, number}; }
  [[nodiscard]] static BlockView view(int number, int device) {
    return {reinterpret_cast<void*>(static_cast<std::uintptr_t>(1 + number + 100 * device)), 1, 1};
  }
  /// Block `to` ← a function of block `from`; on a queue of a device.
  void add(ResidentTasks& tasks, int device, int queue, int to, int from) const {
    TaskList list;
    const Task task = list.add(column_squares, device, {block(to), block(from)});
    tasks.add(device * kQueues + queue, task, std::as_const(list).operands(task), nullptr,
              std::vector{view(to, device), view(from, device)});
  }
  void add_shared(ResidentTasks& tasks, int to, int from) const {
    TaskList list;
    Task task = list.add(column_squares, 0, {block(to), block(from)});
    task.sharers = kDevices;
    std::vector<ResidentTasks::Sharer> sharers;
    for (int d = 0; d < kDevices; ++d)
      sharers.push_back({d, d * kQueues + 1, {view(to, d), view(from, d)}});
    tasks.add_shared(sharers, task, std::as_const(list).operands(task), nullptr);
  }
  BlockTable blocks_;
};

TEST_F(SharedTasks, MeetBetweenPhases) {
  ResidentTasks tasks(blocks_, kQueues, kDevices);
  add(tasks, 0, 0, 1, 0);
  add(tasks, 2, 0, 3, 2);  // of no concern
  const std::size_t reader = tasks.entries().size();
  add(tasks, 1, 0, 4, 5);  // reads, on device 1, what the shared task writes there
  for (int d = 1; d < kDevices; ++d) {
    ASSERT_EQ(tasks.source_of(block(1), d), 0);
    tasks.add_copy(d * kQueues, block(1), 0, view(1, 0), d, view(1, d));
  }
  const std::size_t first = tasks.entries().size();
  add_shared(tasks, 5, 1);
  const std::size_t end = tasks.entries().size();
  EXPECT_EQ(tasks.writer_of(block(5)), 0);
  for (int d = 0; d < kDevices; ++d) EXPECT_EQ(tasks.source_of(block(5), d), -1);
  std::vector<std::size_t> users;
  for (int d = 0; d < kDevices; ++d) {
    users.push_back(tasks.entries().size());
    add(tasks, d, 0, 6, 5);
  }
  add_shared(tasks, 7, 5);
  const auto before = before_each(tasks, kQueues * kDevices);
  std::vector<std::vector<std::size_t>> phases(4);  // entries of each
  for (std::size_t k = first; k < end; ++k) {
    const ResidentTasks::Entry& entry = tasks.entries()[k];
    if (entry.operation == nullptr) {
      EXPECT_EQ(entry.views, 0U);  // nothing is copied
      continue;
    }
    const SharedCall call = SharedCall::of(entry.variant);
    EXPECT_EQ(call.sharers, kDevices);
    EXPECT_EQ(call.written, 1);
    EXPECT_EQ(entry.queue, call.rank * kQueues + 1);
    phases[static_cast<std::size_t>(call.phase)].push_back(k);
    const BlockView* x = tasks.calls(entry)[0];
    ASSERT_EQ(entry.operands, 2 + kDevices - 1);
    EXPECT_EQ(x[0].data, view(5, call.rank).data);
    EXPECT_EQ(x[1].data, view(1, call.rank).data);
    for (int other = 0, place = 2; other < kDevices; ++other)
      if (other != call.rank) {
        EXPECT_EQ(x[place++].data, view(5, other).data);
      }
  }
  for (std::size_t phase = 1; phase <= 3; ++phase) {
    ASSERT_EQ(phases[phase].size(), std::size_t{kDevices});
    for (const std::size_t k : phases[phase]) {
      for (std::size_t earlier = 1; earlier < phase; ++earlier)
        for (const std::size_t e : phases[earlier]) EXPECT_EQ(before[k].count(e), 1U) << k << e;
      // Within a phase nobody waits for another: those who wait for each other do so themselves.
      for (const std::size_t e : phases[phase]) EXPECT_EQ(before[k].count(e), 0U) << k << e;
    }
  }
  // From the second phase on others write: nobody may be reading there.
  for (const std::size_t k : phases[2]) {
    EXPECT_EQ(before[k].count(0), 1U);
    EXPECT_EQ(before[k].count(reader), 1U);
  }
  for (const std::size_t user : users)
    for (const std::size_t e : phases[2]) EXPECT_EQ(before[user].count(e), 1U);
  for (int d = 0; d < kDevices; ++d)
    EXPECT_EQ(
        before[users[static_cast<std::size_t>(d)]].count(phases[3][static_cast<std::size_t>(d)]),
        1U);
}

}  // namespace
}  // namespace strata
