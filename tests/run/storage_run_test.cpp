// Runs of three levels: blocks in a store come to the devices by way of a host memory that does not
// hold them all. They have the bits of the schedule in order and move the planned bytes on every
// link; a store that fails ends them.

#include <gtest/gtest.h>

#include <fmt/core.h>
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "run/run.hpp"
#include "strata/error.hpp"
#include "tests/run/scramble_devices.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/pinned_backend.hpp"

namespace strata::test {
namespace {

/// A schedule whose blocks that stay go home, and its machine.
struct Case {
  explicit Case(std::uint64_t seed) : pair(scramble_pair(seed)), dice(seed + 5'000) {
    machine = storage_machine(dice, pair);
    for (std::size_t d = 0; d < machine.devices.size(); ++d)
      machine.devices[d].kind = d % 3 == 1 ? DeviceKind::gpu : DeviceKind::cpu;
    for (int f = 0; f < pair.first.blocks.families(); ++f) pair.first.blocks.keep(f, 0, false);
    plan.emplace(std::make_shared<const Schedule>(pair.first), machine, random_plan_options(dice));
  }
  ScramblePair pair;
  Dice dice;
  Machine machine;
  std::optional<Plan> plan;
};

TEST(StorageRun, HasTheBitsOfTheScheduleInOrder) {
  const ScrambleBackend host(host_backend());
  const PinnedBackend pinned;
  const ScrambleBackend emulated(pinned);
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(1000, 300, 40); ++seed) {
    Case c(seed);
    if (c.pair.first.devices > 4) continue;
    DeviceSet devices = mixed_devices(host, emulated, c.pair.first.devices);
    const auto expected = scrambled_store(c.pair.first.blocks, seed);
    run_in_order(c.pair.first, host, *expected);
    const auto store = scrambled_store(c.pair.first.blocks, seed);
    const RunOutcome outcome = run(*c.plan, devices, *store);
    ASSERT_EQ(outcome.trace.traffic, c.plan->totals().traffic) << "seed " << seed;
    ASSERT_EQ(outcome.trace.spans_added, c.plan->totals().steps) << "seed " << seed;
    ASSERT_TRUE(results_of(*store) == results_of(*expected)) << "seed " << seed;
    reads += c.plan->totals().reads;
    writes += c.plan->totals().writes;
    // And again on what there is now, with the same queues and memory.
    run_in_order(c.pair.first, host, *expected);
    (void)run(*c.plan, devices, *store);
    ASSERT_TRUE(results_of(*store) == results_of(*expected)) << "seed " << seed << ", again";
  }
  EXPECT_GT(reads, test::kSanitized ? 100 : 1000);
  EXPECT_GT(writes, test::kSanitized ? 100 : 1000);
}

/// What is written while a run succeeds; at whatever time, one that fails may write no other bytes:
/// they stay in files, and a later run goes on from there.
using Written = std::map<std::int64_t, std::set<std::vector<std::byte>>>;

/// Fails at one of its reads or writes, and remembers what was written.
class FailingStore final : public BlockStore {
 public:
  FailingStore(BlockStore& inner, std::int64_t at) : inner_(inner), left_(at) {}
  [[nodiscard]] const BlockTable& blocks() const override { return inner_.blocks(); }
  void read(BlockId id, std::byte* to) override {
    count("read", id);
    inner_.read(id, to);
  }
  void write(BlockId id, const std::byte* from) override {
    count("written", id);
    {
      const std::lock_guard lock(mutex_);
      written_[blocks().index(id)].insert({from, from + blocks().bytes(id)});
    }
    inner_.write(id, from);
  }
  [[nodiscard]] std::int64_t calls() const { return calls_; }
  [[nodiscard]] const Written& written() const { return written_; }

 private:
  void count(const char* what, BlockId id) {
    ++calls_;
    if (--left_ == 0)
      throw Error(ErrorKind::storage, "store",
                  blocks().name(id) + " cannot be " + what + ": no such luck");
  }
  BlockStore& inner_;
  std::atomic<std::int64_t> left_;
  std::atomic<std::int64_t> calls_ = 0;
  std::mutex mutex_;
  Written written_;
};

/// Whether all that was written is also written where nothing fails.
bool is_sound(const Written& written, const Written& expected) {
  return std::all_of(written.begin(), written.end(), [&](const auto& of_block) {
    const auto found = expected.find(of_block.first);
    return found != expected.end() && std::includes(found->second.begin(), found->second.end(),
                                                    of_block.second.begin(), of_block.second.end());
  });
}

TEST(StorageRun, EndsWhereTheStoreFails) {
  const ScrambleBackend host(host_backend());
  const PinnedBackend pinned;
  const ScrambleBackend emulated(pinned);
  std::int64_t failures = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(100, 25, 6); ++seed) {
    Case c(seed);
    if (c.pair.first.devices > 4) continue;
    const auto values = scrambled_store(c.pair.first.blocks, seed);
    FailingStore counted(*values, 0);
    {
      DeviceSet devices = mixed_devices(host, emulated, c.pair.first.devices);
      (void)run(*c.plan, devices, counted);
    }
    const std::int64_t every = std::max<std::int64_t>(counted.calls() / 12, 1);
    for (std::int64_t at = 1; at <= counted.calls(); at += every) {
      const auto store = scrambled_store(c.pair.first.blocks, seed);
      FailingStore failing(*store, at);
      DeviceSet devices = mixed_devices(host, emulated, c.pair.first.devices);
      try {
        (void)run(*c.plan, devices, failing);
        ADD_FAILURE() << "seed " << seed << " call " << at << " went unnoticed";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::storage) << error.what();
        EXPECT_NE(std::string(error.what()).find("no such luck"), std::string::npos);
        ++failures;
      }
      EXPECT_TRUE(is_sound(failing.written(), counted.written()))
          << "seed " << seed << " at " << at;
    }
  }
  EXPECT_GT(failures, test::kSanitized ? 10 : 50);
}

TEST(StorageRun, WritesNothingThatALostDeviceHasNotComputed) {
  FaultBackend faults(4);
  const ScrambleBackend host(faults);
  const PinnedBackend pinned(faults);
  const ScrambleBackend emulated(pinned);
  std::int64_t deaths = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(100, 25, 6); ++seed) {
    Case c(seed);
    const int count = c.pair.first.devices;
    if (count > 4) continue;
    faults.heal();
    const auto values = scrambled_store(c.pair.first.blocks, seed);
    FailingStore expected(*values, 0);
    std::vector<std::int64_t> operations;
    {
      DeviceSet devices = mixed_devices(host, emulated, count);
      (void)run(*c.plan, devices, expected);
      for (std::size_t d = 0; d < at(count); ++d)
        operations.push_back(faults.operations(faults.made() - at(count) + d));
    }
    for (int d = 0; d < count; ++d) {
      const std::int64_t every = operations[at(d)] / 8 + 1;
      for (std::int64_t k = 1; k <= operations[at(d)]; k += every, ++deaths) {
        const auto store = scrambled_store(c.pair.first.blocks, seed);
        FailingStore written(*store, 0);
        DeviceSet devices = mixed_devices(host, emulated, count);
        faults.set({.dying_device = d, .dies_at = k});
        try {
          (void)run(*c.plan, devices, written);
          ADD_FAILURE() << "seed " << seed << ": a death went unnoticed";
        } catch (const Error& error) {
          EXPECT_EQ(std::string(error.what()),
                    fmt::format("injected: host:{} died at operation {}", d, k));
        }
        EXPECT_TRUE(is_sound(written.written(), expected.written()))
            << "seed " << seed << " device " << d << " at " << k;
      }
    }
  }
  EXPECT_GT(deaths, test::kSanitized ? 10 : 50);
}

}  // namespace
}  // namespace strata::test
