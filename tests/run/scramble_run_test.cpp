// Runs of random schedules with several outputs, batches, mixed elements and sizes and temporary
// blocks, on devices of two kinds of queues side by side, one run going on from what another left.
// They are bit-identical to the schedules in order, and move the planned bytes on every link.

#include <gtest/gtest.h>

#include <map>

#include "run/run.hpp"
#include "strata/error.hpp"
#include "tests/run/scramble_devices.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/pinned_backend.hpp"

namespace strata::test {
namespace {

/// The same memory under another table of the same geometry.
std::unique_ptr<MemoryStore> continued_store(const BlockTable& blocks, const MemoryStore& before,
                                             BlockStore& values) {
  std::vector<std::shared_ptr<FamilyMemory>> families;
  for (int f = 0; f < blocks.families(); ++f)
    families.push_back(std::make_shared<FamilyMemory>(blocks, f));
  auto store = std::make_unique<MemoryStore>(blocks, families);
  const Bytes contents = contents_of(values);
  for (int f = 0; f < blocks.families(); ++f) {
    blocks.for_each(f, [&](BlockId id) {
      const auto& bytes = contents[static_cast<std::size_t>(before.blocks().index(id))];
      if (!bytes.empty()) store->write(id, bytes.data());
    });
  }
  return store;
}

struct Totals {
  std::int64_t peers = 0;
  std::int64_t saved = 0;
  std::int64_t many_devices = 0;
  std::int64_t stayed = 0;
  std::int64_t fetched = 0;
};

/// The blocks of `all` whose homes hold what the tasks left: not those that are only on devices.
Bytes at_home(Bytes all, const BlockTable& blocks, const Residency& residency) {
  for (const Residency::Node& node : residency.devices) {
    for (const ResidentBlock& block : node.blocks) {
      int f = 0;
      while (blocks.family(f).identity != block.identity) ++f;
      if (block.only_here)
        all[static_cast<std::size_t>(blocks.index({f, block.row, block.col}))].clear();
    }
  }
  return all;
}

void expect_run(const Plan& plan, DeviceSet& devices, MemoryStore& store, const Bytes& expected,
                std::uint64_t seed) {
  const RunOutcome outcome = run(plan, devices, store);
  ASSERT_EQ(outcome.trace.traffic, plan.totals().traffic) << "seed " << seed;
  ASSERT_EQ(outcome.trace.spans_added, plan.totals().steps);
  const auto there = [&](const Bytes& all) {
    return at_home(all, store.blocks(), devices.residency());
  };
  ASSERT_TRUE(there(results_of(store)) == there(expected)) << "seed " << seed;
}

/// Brings home what is only on the devices.
void expect_fetch(const ScramblePair& pair, const Machine& machine, DeviceSet& devices,
                  MemoryStore& store, const Bytes& expected, std::uint64_t seed) {
  const Plan fetch(std::make_shared<const Schedule>(pair.fetch), machine, {}, devices.residency());
  expect_run(fetch, devices, store, expected, seed);
  ASSERT_FALSE(only_here(devices.residency()));
  ASSERT_TRUE(results_of(store) == expected) << "seed " << seed;
}

void expect_pair(const ScrambleBackend& host, std::uint64_t seed, DeviceSet& devices,
                 Totals& totals) {
  const ScramblePair pair = scramble_pair(seed);
  Dice dice(seed + 77);
  Machine machine = scramble_machine(dice, pair.first);
  // Devices copy from each other only within one kind; the machine's kinds are those of the set.
  for (std::size_t d = 0; d < machine.devices.size(); ++d)
    machine.devices[d].kind = d % 3 == 1 ? DeviceKind::gpu : DeviceKind::cpu;
  const auto in_order = scrambled_store(pair.first.blocks, seed);
  run_in_order(pair.first, host, *in_order);
  const auto store = scrambled_store(pair.first.blocks, seed);
  const Plan first(std::make_shared<const Schedule>(pair.first), machine,
                   random_plan_options(dice));
  expect_run(first, devices, *store, results_of(*in_order), seed);

  const auto in_order_on = continued_store(pair.second.blocks, *in_order, *in_order);
  const auto store_on = continued_store(pair.second.blocks, *store, *store);
  const auto in_order_before = continued_store(pair.second.blocks, *in_order, *in_order);
  run_in_order(pair.second, host, *in_order_on);
  const PlanOptions options = random_plan_options(dice);
  for (DeviceModel& device : machine.devices) {
    device.memory_bytes =
        std::max(device.memory_bytes, smallest_budget_bytes(pair.second)) + dice.roll(3) * 4096;
  }
  const auto plan_second = [&] {
    return Plan(std::make_shared<const Schedule>(pair.second), machine, options,
                devices.residency());
  };
  try {
    (void)plan_second();
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::memory) << error.what();
    ASSERT_TRUE(only_here(devices.residency()));
    expect_fetch(pair, machine, devices, *store_on, results_of(*in_order_before), seed);
    ++totals.fetched;
  }
  totals.stayed += only_here(devices.residency()) ? 1 : 0;
  const Plan second = plan_second();
  expect_run(second, devices, *store_on, results_of(*in_order_on), seed);
  if (only_here(devices.residency()))
    expect_fetch(pair, machine, devices, *store_on, results_of(*in_order_on), seed);
  totals.peers += first.totals().peer_copies + second.totals().peer_copies;
  totals.saved += second.start().empty() ? 0 : 1;
  totals.many_devices += pair.first.devices > 64 ? 1 : 0;
}

TEST(ScrambleRun, IsBitIdenticalToTheScheduleInOrderAndGoesOnFromWhatIsThere) {
  const ScrambleBackend host(host_backend());
  const PinnedBackend pinned;
  const ScrambleBackend emulated(pinned);
  std::map<int, DeviceSet> sets;
  Totals totals;
  const std::uint64_t cases = test::campaign(1000, 1000, 80);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const int count = scramble_pair(seed).first.devices;
    if (count > 4) {
      if (seed % 100 != 7) continue;  // threads by the hundred: a few are enough
      DeviceSet many = mixed_devices(host, emulated, count);
      expect_pair(host, seed, many, totals);
    } else if (seed % 4 == 3) {  // arenas that are no larger than the first run needs
      DeviceSet fresh = mixed_devices(host, emulated, count);
      expect_pair(host, seed, fresh, totals);
    } else {
      const auto known = sets.find(count);
      DeviceSet& devices =
          known != sets.end()
              ? known->second
              : sets.emplace(count, mixed_devices(host, emulated, count)).first->second;
      expect_pair(host, seed, devices, totals);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  const auto count = static_cast<std::int64_t>(cases);
  EXPECT_GT(totals.peers, 3 * count / 10);
  EXPECT_GT(totals.saved, count / 2);
  EXPECT_GT(totals.stayed, count / 5);
  EXPECT_GT(totals.fetched, count / 100);
}

TEST(ScrambleRun, BeginsAtAnyStep) {
  const ScrambleBackend host(host_backend());
  const PinnedBackend pinned;
  const ScrambleBackend emulated(pinned);
  DeviceSet devices = mixed_devices(host, emulated, 4);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Schedule schedule = scramble_pair(seed, false).first;
    if (schedule.devices > 4) continue;
    Dice dice(seed + 5);
    PlanOptions options = random_plan_options(dice);
    options.first_step = dice.roll(schedule.steps + 1);
    Machine machine = scramble_machine(dice, schedule);
    for (std::size_t d = 0; d < machine.devices.size(); ++d)
      machine.devices[d].kind = d % 3 == 1 ? DeviceKind::gpu : DeviceKind::cpu;
    const auto expected = scrambled_store(schedule.blocks, seed);
    run_in_order(schedule, host, *expected);
    const auto store = scrambled_store(schedule.blocks, seed);
    Schedule before = schedule;
    before.steps = options.first_step;
    run_in_order(before, host, *store);
    const Plan plan(std::make_shared<const Schedule>(schedule), machine, options);
    expect_run(plan, devices, *store, results_of(*expected), seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace strata::test
