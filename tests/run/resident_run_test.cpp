// Schedules on a device that holds all of their blocks: on any number of queues what they are in
// order, and a failure on any of the queues is told.

#include "run/resident_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "run/device_set.hpp"
#include "run/run.hpp"
#include "schedule/fixed_places.hpp"
#include "strata/error.hpp"
#include "tests/schedule/scramble.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {
namespace {

/// How many tasks there are; `written` gets the blocks that they write.
std::int64_t count_tasks(const Schedule& schedule, std::set<std::uint64_t>& written) {
  std::int64_t count = 0;
  for (std::int64_t step = 0; step < schedule.steps; ++step) {
    TaskList tasks;
    schedule.emit(step, tasks);
    count += std::ssize(tasks.tasks());
    for (const Task& task : std::as_const(tasks).tasks()) {
      const auto operands = std::as_const(tasks).operands(task);
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (task.access_of(i) != Access::read) written.insert(operands[i].id.bits);
    }
  }
  return count;
}

/// The blocks of a family that are in `written`.
Bytes blocks_of(MemoryStore& store, int family, const std::set<std::uint64_t>& written) {
  Bytes all = contents_of(store);
  Bytes some;
  store.blocks().for_each(family, [&](BlockId id) {
    if (written.count(id.bits) > 0)
      some.push_back(all[static_cast<std::size_t>(store.blocks().index(id))]);
  });
  return some;
}

ResidentRun::Homes homes_of(MemoryStore& store, DeviceSet& devices) {
  return {&store, [&devices](int device) -> PinnedRing& { return devices.ring(device, 0); }};
}

/// What stays on the devices, to its home: as many bytes as are planned.
void bring_home(ResidentRun& run, const BlockTable& blocks, MemoryStore& store,
                DeviceSet& devices) {
  for (const int family : {kMapped, kListed, kMade}) {
    if (!blocks.family(family).stays) continue;
    run.bring_home(family, homes_of(store, devices));
    EXPECT_EQ(run.traffic(), run.plan().totals().traffic);
    EXPECT_EQ(run.traffic().total(), run.traffic().device_to_host_bytes);
    EXPECT_EQ(run.plan().totals().tasks, 0);
  }
}

TEST(ResidentRun, IsTheScheduleInOrderOnAnyNumberOfQueues) {
  const ScrambleBackend host(host_backend());
  std::int64_t beside = 0;  // spans that begin before those of an earlier step end
  for (std::uint64_t seed = 0; seed < campaign(60, 60, 20); ++seed) {
    // Slots for many blocks, and some that hold but columns of one, or less.
    const RingShape ring{.slot_bytes = seed % 3 == 0 ? 64 : 4096, .slots = 2, .threads = 3};
    const auto schedule = resident_on(scramble_pair(seed, false).first, 1);
    const auto in_order = scrambled_store(schedule->blocks, seed);
    run_in_order(*schedule, host, *in_order);
    std::set<std::uint64_t> written;
    const std::int64_t tasks = count_tasks(*schedule, written);
    for (const int queues : {1, 2, 5}) {
      RunOptions options;
      options.device_memory_bytes = 4 << 20;
      DeviceSet devices({{&host, 0}}, options);
      devices.shape_rings(ring);
      const auto store = scrambled_store(schedule->blocks, seed);
      ResidentRun run(schedule, devices.machine(), host, 0, devices.device(0), queues);
      EXPECT_EQ(run.devices()->queues(), queues);
      Trace trace;
      const double seconds = run.run(homes_of(*store, devices), &trace);
      EXPECT_GE(seconds, 0);
      ASSERT_EQ(run.traffic(), run.plan().totals().traffic);
      bring_home(run, schedule->blocks, *store, devices);
      for (const int family : {kMapped, kListed, kMade}) {
        ASSERT_TRUE(blocks_of(*store, family, written) == blocks_of(*in_order, family, written))
            << "seed " << seed << ", " << queues << " queues, family " << family;
      }
      ASSERT_EQ(std::ssize(trace.spans), tasks);
      ASSERT_EQ(std::ssize(trace.queues), queues);
      ASSERT_EQ(std::ssize(trace.families), schedule->blocks.families());
      double before = 0;
      std::size_t used = 0;
      for (const Span& span : trace.spans) {
        ASSERT_LE(0, span.begin);
        ASSERT_LE(span.begin, span.end);
        ASSERT_LE(span.end, seconds);
        used = std::max<std::size_t>(used, span.queue);
        beside += span.begin < before ? 1 : 0;
        before = std::max(before, span.end);
      }
      if (queues == 1) {
        EXPECT_EQ(used, 0U);
      }
    }
  }
  EXPECT_GT(beside, kSanitized ? 30 : 100) << "queues that work at once";
}

std::int64_t shared_tasks(const Schedule& schedule) {
  std::int64_t count = 0;
  for (std::int64_t step = 0; step < schedule.steps; ++step) {
    TaskList tasks;
    schedule.emit(step, tasks);
    for (const Task& task : std::as_const(tasks).tasks()) count += task.sharers > 1 ? 1 : 0;
  }
  return count;
}

/// Blocks that tasks of several devices write and read are copied to whom they concern, and no
/// others; each goes home from where it was made last. So it is where devices share tasks.
TEST(ResidentRun, IsTheScheduleInOrderOnSeveralDevices) {
  const ScrambleBackend host(host_backend());
  std::int64_t copied = 0;
  std::int64_t shared = 0;
  for (std::uint64_t seed = 0; seed < campaign(120, 120, 12); ++seed) {
    const Schedule random = scramble_pair(seed, false).first;
    const auto in_order = scrambled_store(random.blocks, seed);
    run_in_order(random, host, *in_order);
    std::set<std::uint64_t> written;
    (void)count_tasks(random, written);
    for (const int count : {1, 2, 3, 5}) {
      const auto schedule = resident_on(random, count, seed % 2 != 0);
      shared += shared_tasks(*schedule);
      RunOptions options;
      options.device_memory_bytes = 4 << 20;
      DeviceSet devices(std::vector<DevicePlace>(static_cast<std::size_t>(count), {&host, 0}),
                        options);
      const std::vector<std::int64_t> bytes = fixed_places_bytes(*schedule);
      std::vector<ResidentRun::Place> places;
      for (int d = 0; d < count; ++d) places.push_back({0, &devices.device(d)});
      for (const int queues : {1, 3}) {
        const auto store = scrambled_store(schedule->blocks, seed);
        ResidentRun run(schedule, devices.machine(), host, places, queues);
        EXPECT_EQ(run.devices()->count(), count);
        for (int d = 0; d < count; ++d)
          EXPECT_EQ(devices.device(d).allocated_bytes(), bytes[static_cast<std::size_t>(d)]);
        if (seed % 3 == 0) run.preload(kListed, homes_of(*store, devices));
        EXPECT_GE(run.run(homes_of(*store, devices)), 0);
        ASSERT_EQ(run.traffic(), run.plan().totals().traffic);
        copied += run.traffic().device_to_device_bytes;
        if (count == 1) {
          EXPECT_EQ(run.traffic().device_to_device_bytes, 0);
        }
        bring_home(run, schedule->blocks, *store, devices);
        for (const int family : {kMapped, kListed, kMade}) {
          ASSERT_TRUE(blocks_of(*store, family, written) == blocks_of(*in_order, family, written))
              << "seed " << seed << ", " << count << " devices, " << queues << " queues";
        }
      }
    }
  }
  EXPECT_GT(copied, kSanitized ? 800 : 10000);
  EXPECT_GT(shared, kSanitized ? 16 : 200);
}

constexpr Operation kPasses{
    .name = "passes", .operands = 1, .access = {Access::write}, .work = scramble_work};
constexpr Operation kKeeps{
    .name = "keeps", .operands = 1, .access = {Access::read_write}, .work = scramble_work};
constexpr Operation kFails{
    .name = "fails", .operands = 1, .access = {Access::write}, .work = scramble_work};
constexpr Operation kNobodys{
    .name = "nobody's", .operands = 1, .access = {Access::write}, .work = scramble_work};

/// The host's devices, with an operation that fails in the queue, and none for the last one above.
class FailingBackend final : public Backend {
 public:
  FailingBackend() {
    for (const Operation* each : {&kPasses, &kKeeps})
      kernels_.set(
          *each, {Element::fp64},
          [](Queue& queue, const KernelCalls&, const KernelParameters&) { queue.submit([] {}); });
    kernels_.set(kFails, {Element::fp64},
                 [](Queue& queue, const KernelCalls&, const KernelParameters&) {
                   queue.submit([] { throw Error(ErrorKind::device, "test", "a kernel failed"); });
                 });
  }
  [[nodiscard]] std::string name() const override { return host_backend().name(); }
  [[nodiscard]] DeviceKind kind() const override { return host_backend().kind(); }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override {
    return host_backend().devices();
  }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    return host_backend().make_device(index, budget_bytes);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return kernels_; }
  [[nodiscard]] bool reaches(int index, const void* first, std::int64_t bytes) const override {
    return host_backend().reaches(index, first, bytes);
  }
  [[nodiscard]] bool linked(int from, int to) const override {
    return host_backend().linked(from, to);
  }
  [[nodiscard]] bool on_host() const override { return host_backend().on_host(); }

 private:
  KernelTable kernels_;
};

/// Eight tasks on columns of their own, of which some step is of this operation.
std::shared_ptr<const Schedule> eight_steps(const Operation& one, const std::int64_t& at) {
  auto schedule = std::make_shared<Schedule>();
  schedule->resident = true;
  BlockFamily family{.name = "x", .rows = 8, .cols = 8};
  family.tile_rows = 8;
  family.tile_cols = 1;
  family.origin = Origin::generated;
  (void)schedule->blocks.add(std::move(family));
  schedule->operands = {1};
  schedule->steps = 8;
  schedule->emit = [&one, &at](std::int64_t step, TaskList& tasks) {
    tasks.add(step == at ? one : kPasses, 0, {BlockId{0, 0, step}});
  };
  return schedule;
}

constexpr std::int64_t kNever = -1;

RunOptions few_bytes() {
  RunOptions options;
  options.device_memory_bytes = 1 << 20;
  return options;
}

TEST(ResidentRun, AFailureOnAnyQueueIsThrownOnce) {
  const FailingBackend backend;
  DeviceSet devices({{&backend, 0}}, few_bytes());
  Device& device = devices.device(0);
  MemoryStore store(eight_steps(kFails, kNever)->blocks, {nullptr});
  const ResidentRun::Homes homes = homes_of(store, devices);
  for (const std::int64_t failing : {0, 1, 4, 7}) {
    std::int64_t step = failing;
    ResidentRun run(eight_steps(kFails, step), devices.machine(), backend, 0, device, 3);
    EXPECT_THROW((void)run.run(homes), Error) << failing;
    EXPECT_THROW((void)run.run(homes), Error) << "and again";
    EXPECT_THROW(
        {
          ResidentRun without(eight_steps(kNobodys, step), devices.machine(), backend, 0, device,
                              3);
          (void)without.run(homes);
        },
        Error);
  }
  EXPECT_THROW(ResidentRun(eight_steps(kFails, kNever), devices.machine(), backend, 0, device, 0),
               Error);
}

/// Failures of a task that devices share, and of tasks on devices that are not there.
TEST(ResidentRun, AFailureOfAnySharerIsThrown) {
  const FailingBackend backend;
  DeviceSet devices(std::vector<DevicePlace>(3, {&backend, 0}), few_bytes());
  MemoryStore store(eight_steps(kFails, kNever)->blocks, {nullptr});
  std::vector<ResidentRun::Place> places;
  for (int d = 0; d < 3; ++d) places.push_back({0, &devices.device(d)});
  const std::int64_t third = 3;
  for (const int sharers : {2, 3, 4, 0}) {
    auto schedule = std::make_shared<Schedule>(*eight_steps(kFails, third));
    schedule->devices = 3;
    schedule->emit = [emit = schedule->emit, sharers](std::int64_t step, TaskList& tasks) {
      emit(step, tasks);
      tasks.tasks()[0].sharers = static_cast<std::uint16_t>(sharers);
    };
    if (sharers == 2 || sharers == 3) {
      ResidentRun run(schedule, devices.machine(), backend, places, 2);
      EXPECT_THROW((void)run.run(homes_of(store, devices)), Error);
      EXPECT_THROW((void)run.run(homes_of(store, devices)), Error) << "and again";
    } else {
      EXPECT_THROW((void)fixed_places_bytes(*schedule), Error);
    }
  }
}

/// Blocks of a family of which none, one, and many fit a slot, come home as they are; what a store
/// refuses is told.
TEST(ResidentRun, BringsBlocksHomeThroughTheRing) {
  const FailingBackend backend;
  for (const std::int64_t slot :
       {std::int64_t{1} << 10, std::int64_t{1} << 17, std::int64_t{1} << 22}) {
    auto schedule = std::make_shared<Schedule>();
    schedule->resident = true;
    BlockFamily family{.name = "x"};
    for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {300, 400}, {1, 1}, {9000, 1}, {70000, 3}, {0, 5}, {17, 2000}})
      family.listed.push_back({0, 0, rows, cols});
    for (std::int64_t k = 0; k < 3000; ++k) family.listed.push_back({0, 0, 1 + k % 90, 1});
    family.identity = 1;
    family.stays = true;
    schedule->steps = std::ssize(family.listed);
    (void)schedule->blocks.add(std::move(family));
    schedule->operands = {1};
    schedule->emit = [](std::int64_t step, TaskList& tasks) {
      tasks.add(kKeeps, 0, {BlockId(0, step, 0)});
    };
    RunOptions options;
    options.device_memory_bytes = 64 << 20;
    DeviceSet devices({{&backend, 0}}, options);
    devices.shape_rings({.slot_bytes = slot, .slots = 3, .threads = 3});
    ResidentRun run(schedule, devices.machine(), backend, 0, devices.device(0));
    const auto store = scrambled_store(schedule->blocks, 5);
    EXPECT_THROW(run.bring_home(0, homes_of(*store, devices)), Error) << "nothing was run";
    (void)run.run(homes_of(*store, devices));
    const auto memory = std::make_shared<FamilyMemory>(schedule->blocks, 0);
    MemoryStore home(schedule->blocks, {memory});
    run.bring_home(0, homes_of(home, devices));
    EXPECT_EQ(run.traffic().device_to_host_bytes, schedule->blocks.total_bytes(0));
    const Bytes found = contents_of(home);
    const Bytes expected = contents_of(*store);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k)
      EXPECT_TRUE(found[k] == expected[k]) << "block " << k << ", slots of " << slot;
    MemoryStore nowhere(schedule->blocks, {nullptr});
    EXPECT_THROW(run.bring_home(0, homes_of(nowhere, devices)), Error) << slot;
    (void)run.run(homes_of(*store, devices));
  }
}

}  // namespace
}  // namespace strata::test
