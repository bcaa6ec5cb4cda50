// Runs on devices that copy from pinned memory only, as GPUs do: the ring, homes that are pinned in
// parts or while the run goes on, and what happens when something goes wrong on the way.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cholesky/tile_cholesky.hpp"
#include "run/run.hpp"
#include "tests/run/small_tiles.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/fault_store.hpp"
#include "tests/support/pinned_backend.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {
namespace {

using Clock = std::chrono::steady_clock;

DeviceSet first_devices(const Backend& backend, int count, std::int64_t budget = 1 << 20) {
  RunOptions options;
  options.device_memory_bytes = budget;
  options.compute_queues = 3;
  std::vector<int> indices;
  for (int d = 0; d < count; ++d) indices.push_back(d);
  return {backend, indices, options};
}

/// Memory of a store that is pinned in pieces that end anywhere.
class Pins {
 public:
  Pins(DeviceSet& devices, MemoryStore& store) : devices_(devices), store_(store) {}
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;
  ~Pins() {
    for (const Buffer& piece : pieces_) devices_.pinned().remove(piece.data());
  }

  /// Pins pieces of up to `most` bytes of every family, and leaves some out.
  void pin_some(std::uint64_t seed, std::int64_t most) {
    Dice dice(seed);
    const BlockTable& blocks = store_.blocks();
    for (int f = 0; f < blocks.families(); ++f) {
      std::byte* data = blocks.count(f) == 0 ? nullptr : store_.lend_for_writing({f, 0, 0});
      for (std::int64_t at = 0; at < blocks.total_bytes(f);) {
        const std::int64_t bytes = std::min(1 + dice.roll(most), blocks.total_bytes(f) - at);
        if (dice.roll(3) > 0) pin(data + at, bytes);
        at += bytes;
      }
    }
  }
  void pin(std::byte* data, std::int64_t bytes) {
    pieces_.push_back(devices_.device(0).pin_host(data, bytes));
    devices_.pinned().add(data, bytes);
  }

 private:
  DeviceSet& devices_;
  MemoryStore& store_;
  std::vector<Buffer> pieces_;
};

TEST(PinnedRun, OfRandomSchedulesIsBitIdenticalToTheScheduleInOrder) {
  const PinnedBackend backend;
  std::map<int, DeviceSet> device_sets;
  for (int devices = 1; devices <= 4; ++devices) {
    device_sets.emplace(devices, first_devices(backend, devices));
  }
  const CovarianceParameters parameters{0.2, 0.7, 0.5, 0.1, true};
  IssueOptions run_options;
  run_options.values = {{strata::covariance.name, &parameters}};
  std::int64_t stores = 0;
  for (std::uint64_t seed = 0; seed < campaign(500, 500, 120); ++seed) {
    const Schedule schedule = random_schedule(seed);
    DeviceSet& devices = device_sets.at(schedule.devices);
    const auto expected = make_store(schedule.blocks);
    run_in_order(schedule, host_backend(), *expected, run_options);

    Dice dice(seed + 77);
    const PlanOptions options = random_plan_options(dice);
    Machine machine = devices.machine();
    for (DeviceModel& device : machine.devices) {
      device.memory_bytes = smallest_budget_bytes(schedule) + dice.roll(16) * 512;
      device.compute_queues = static_cast<int>(1 + seed % 3);
    }
    machine.device_to_device = dice.roll(2) == 0 ? LinkRate{1e15, 0} : LinkRate{};
    const Plan plan(std::make_shared<const Schedule>(schedule), machine, options);
    devices.shape_rings({.slot_bytes = 64 + dice.roll(600),
                         .slots = static_cast<int>(1 + dice.roll(4)),
                         .threads = static_cast<int>(1 + dice.roll(3))});
    const auto actual = make_store(schedule.blocks);
    Pins pins(devices, *actual);
    std::jthread pinning;
    if (seed % 3 == 1) pins.pin_some(seed, 2000);
    if (seed % 3 == 2) pinning = std::jthread([&] { pins.pin_some(seed, 2000); });
    const RunOutcome outcome = run(plan, devices, *actual, run_options);
    if (pinning.joinable()) pinning.join();
    ASSERT_EQ(outcome.trace.traffic, plan.totals().traffic) << "seed " << seed;
    ASSERT_EQ(outcome.trace.spans_added, plan.totals().steps);
    ASSERT_TRUE(contents_of(*actual) == contents_of(*expected)) << "seed " << seed;
    stores += plan.totals().stores;
  }
  EXPECT_GT(stores, kSanitized ? 1000 : 5000);
}

/// Blocks in memory that is not lent, read and written in pairs of columns (the last may be alone).
/// A block counts as written when it is committed, all of it.
class PairStore final : public BlockStore {
 public:
  explicit PairStore(std::unique_ptr<MemoryStore> inner)
      : inner_(std::move(inner)), parts_(static_cast<std::size_t>(inner_->blocks().count()), 0) {}

  [[nodiscard]] const BlockTable& blocks() const override { return inner_->blocks(); }
  void read(BlockId id, std::byte* to) override { inner_->read(id, to); }
  void write(BlockId, const std::byte*) override { ADD_FAILURE() << "through the ring, please"; }
  [[nodiscard]] std::int64_t columns_min(BlockId id) const override {
    return std::min<std::int64_t>(blocks().extent(id).cols, 2);
  }
  void read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to) override {
    expect_pairs(id, first, count);
    inner_->read_columns(id, first, count, to);
  }
  void write_columns(BlockId id, std::int64_t first, std::int64_t count,
                     const std::byte* from) override {
    expect_pairs(id, first, count);
    inner_->write_columns(id, first, count, from);
    const std::lock_guard lock(mutex_);
    written(id) += count;
  }
  void commit(BlockId id) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(written(id) % blocks().extent(id).cols, 0) << "a part of " << blocks().name(id);
    commits_ += written(id) > 0 ? 1 : 0;
    written(id) = 0;
    inner_->commit(id);
  }

  [[nodiscard]] BlockStore& inner() { return *inner_; }
  /// Times that something was written and then committed.
  [[nodiscard]] std::int64_t commits() const { return commits_; }

 private:
  /// Columns since the last commit.
  std::int64_t& written(BlockId id) { return parts_[static_cast<std::size_t>(blocks().index(id))]; }
  void expect_pairs(BlockId id, std::int64_t first, std::int64_t count) const {
    const std::int64_t columns = blocks().extent(id).cols;
    const bool whole_pairs = first % 2 == 0 && (count % 2 == 0 || first + count == columns);
    EXPECT_TRUE(whole_pairs) << blocks().name(id) << ": " << count << " columns from " << first;
  }

  std::unique_ptr<MemoryStore> inner_;
  std::mutex mutex_;
  std::vector<std::int64_t> parts_;
  std::int64_t commits_ = 0;
};

TEST(PinnedRun, CutsBlocksOnlyWhereTheStoreDoes) {
  const PinnedBackend backend;
  std::map<int, DeviceSet> device_sets;
  for (int devices = 1; devices <= 4; ++devices)
    device_sets.emplace(devices, first_devices(backend, devices));
  const CovarianceParameters parameters{0.2, 0.7, 0.5, 0.1, true};
  IssueOptions run_options;
  run_options.values = {{strata::covariance.name, &parameters}};
  std::int64_t cut = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Schedule schedule = random_schedule(seed);
    DeviceSet& devices = device_sets.at(schedule.devices);
    const auto expected = make_store(schedule.blocks);
    run_in_order(schedule, host_backend(), *expected, run_options);
    Dice dice(seed + 5);
    // Too little for a pair now and then: the ring is made large enough for the store.
    devices.shape_rings({.slot_bytes = 1 + dice.roll(200), .slots = 2, .threads = 3});
    const Plan plan(std::make_shared<const Schedule>(schedule), devices.machine(), {});
    PairStore store(make_store(schedule.blocks));
    (void)run(plan, devices, store, run_options);
    ASSERT_TRUE(contents_of(store.inner()) == contents_of(*expected)) << "seed " << seed;
    EXPECT_LE(store.commits(), plan.totals().stores);
    for (const FlatStep& flat : flatten(plan)) {
      if (flat.step.kind != StepKind::load) continue;
      cut += flat.step.bytes > devices.ring(flat.step.device, 0).shape().slot_bytes ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 300) << "hardly any block took several slots";
}

// ---- a factorization

constexpr std::int64_t kPinnedOrder = 5 * kTile - 3;

class PinnedFactorization : public ::testing::Test {
 protected:
  explicit PinnedFactorization(int devices = 2)
      : count(devices), matrix(random_spd_matrix<double>(kPinnedOrder, 7)), before(matrix.data) {
    CholeskyProblem problem;
    problem.n = kPinnedOrder;
    problem.tile = kTile;
    problem.devices = count;
    schedule = std::make_shared<const Schedule>(tile_cholesky(problem, {}));
    const auto store = make_store();
    run_in_order(*schedule, host_backend(), *store);
    expected = contents_of(*store);
  }

  [[nodiscard]] BlockSource source() const {
    return source_of_view(matrix.data.data(), matrix.ld(), true);
  }
  [[nodiscard]] std::unique_ptr<MemoryStore> make_store(BlockSource from = nullptr) const {
    const BlockTable& blocks = schedule->blocks;
    return std::make_unique<MemoryStore>(
        blocks, std::vector{std::make_shared<FamilyMemory>(blocks, kMatrixFamily,
                                                           from ? std::move(from) : source()),
                            std::make_shared<FamilyMemory>(blocks, kStatusFamily)});
  }
  [[nodiscard]] DeviceSet make_set(const Backend& backend) const {
    DeviceSet devices =
        first_devices(backend, count, 6 * kTile * kTile * 8 + 256);  // tiles, a status
    devices.shape_rings({.slot_bytes = 3 * kTile * 8, .slots = 2, .threads = 2});
    return devices;
  }
  [[nodiscard]] Plan plan_on(const DeviceSet& devices) const {
    return {schedule, devices.machine(), {}};
  }
  void expect_usable(DeviceSet& devices) const {
    const auto store = make_store();
    const Plan plan = plan_on(devices);
    const RunOutcome outcome = run(plan, devices, *store);
    EXPECT_EQ(outcome.trace.traffic, plan.totals().traffic);
    EXPECT_TRUE(contents_of(*store) == expected) << "other bits";
    EXPECT_TRUE(same_bits(matrix.data, before)) << "the caller's matrix";
  }
  /// What counts as written is a block of the result, all of it: each is stored once.
  void expect_written_blocks_whole(BlockStore& store) const {
    const BlockTable& blocks = schedule->blocks;
    for (const int family : {kMatrixFamily, kStatusFamily}) {
      blocks.for_each(family, [&](BlockId id) {
        if (store.lend(id) == nullptr) return;
        std::vector<std::byte> bytes(static_cast<std::size_t>(blocks.bytes(id)));
        store.read(id, bytes.data());
        EXPECT_TRUE(bytes == expected[static_cast<std::size_t>(blocks.index(id))])
            << blocks.name(id);
      });
    }
  }
  /// Runs into an error of this kind, whose message begins so.
  void expect_failure(DeviceSet& devices, BlockStore& store, ErrorKind kind,
                      const std::string& what) const {
    try {
      (void)run(plan_on(devices), devices, store);
      ADD_FAILURE() << what << " went unnoticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      EXPECT_EQ(std::string(error.what()).rfind(what, 0), 0U) << error.what();
    }
    EXPECT_TRUE(same_bits(matrix.data, before)) << "the caller's matrix";
  }

  int count;
  Matrix<double> matrix;
  std::vector<double> before;
  Bytes expected;
  std::shared_ptr<const Schedule> schedule;
};

TEST_F(PinnedFactorization, ThroughTheRingAloneIsTheSameAndBounded) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  for (int i = 0; i < 3; ++i) expect_usable(devices);
  // Two slots in each direction on each device.
  EXPECT_LE(backend.ledger().most_allocated, count * 2 * 2 * 3 * kTile * 8);
}

TEST_F(PinnedFactorization, OfAStoreThatIsNoMemoryGoesThroughTheRing) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  FaultStore store(make_store());
  const Plan plan = plan_on(devices);
  (void)run(plan, devices, store);
  EXPECT_EQ(store.reads(), plan.totals().loads);
  EXPECT_EQ(store.writes(), plan.totals().stores);
  EXPECT_TRUE(contents_of(store.inner()) == expected);
}

TEST_F(PinnedFactorization, APinnedHomeIsCopiedStraight) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  const auto store = make_store();
  store->materialize(0, 1);
  Pins pins(devices, *store);
  for (const int family : {kMatrixFamily, kStatusFamily})
    pins.pin(store->lend_for_writing({family, 0, 0}), schedule->blocks.total_bytes(family));
  const Plan plan = plan_on(devices);
  backend.ledger().copies = 0;
  const std::int64_t allocated = backend.ledger().most_allocated;
  (void)run(plan, devices, *store);
  EXPECT_EQ(backend.ledger().copies, plan.totals().loads + plan.totals().stores) << "one each";
  EXPECT_EQ(backend.ledger().most_allocated, allocated) << "a slot of a ring was made";
  EXPECT_TRUE(contents_of(*store) == expected);
}

TEST_F(PinnedFactorization, WhoWatchesIsToldOfABlockOnceItIsAtHome) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  const std::int64_t tiles = schedule->blocks.block_rows(kMatrixFamily);
  const auto follow = [&](BlockStore& store, BlockStore& home, std::int64_t last) {
    std::int64_t told = 0;
    IssueOptions options;
    options.watched = kStatusFamily;
    options.watch = [&](BlockId id) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(schedule->blocks.bytes(id)));
      home.read(id, bytes.data());
      const auto index = static_cast<std::size_t>(schedule->blocks.index(id));
      EXPECT_TRUE(bytes == expected[index]) << schedule->blocks.name(id);
      ++told;
      return id.col() == last;
    };
    const RunOutcome outcome = run(plan_on(devices), devices, store, options);
    EXPECT_EQ(outcome.ended_early, last < tiles);
    EXPECT_TRUE(outcome.ended_early || told == tiles);
    expect_written_blocks_whole(home);
  };
  for (std::int64_t last = 0; last <= tiles; ++last) {
    for (const bool pin : {false, true}) {
      const auto store = make_store();
      Pins pins(devices, *store);
      if (pin) {
        pins.pin(store->lend_for_writing({kStatusFamily, 0, 0}),
                 schedule->blocks.total_bytes(kStatusFamily));
      }
      follow(*store, *store, last);
    }
    // What the copies have brought is in the ring for a while.
    FaultStore slow(make_store(), {.seconds_slow = 0.003});
    follow(slow, slow.inner(), last);
  }
  expect_usable(devices);
}

TEST_F(PinnedFactorization, TheBackendOfThisTestRefusesWhatIsNotPinned) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  const auto store = make_store();
  store->materialize(0, 1);
  // Said to be pinned, and not.
  devices.pinned().add(store->lend_for_writing({kMatrixFamily, 0, 0}),
                       schedule->blocks.total_bytes(0));
  expect_failure(devices, *store, ErrorKind::device, "copy of ");
}

TEST_F(PinnedFactorization, EveryReadAndWriteThatFailsIsThrownAndTheDevicesLiveOn) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  const Plan plan = plan_on(devices);
  for (const bool reading : {true, false}) {
    const std::int64_t calls = reading ? plan.totals().loads : plan.totals().stores;
    for (std::int64_t k = 1; k <= calls; ++k) {
      Faults faults;
      (reading ? faults.read_fails : faults.write_fails) = {k};
      FaultStore store(make_store(), faults);
      expect_failure(devices, store, ErrorKind::storage,
                     fmt::format("injected: {} {} of ", reading ? "read" : "write", k));
      const std::int64_t made = store.reads() + store.writes();
      expect_usable(devices);
      EXPECT_EQ(store.reads() + store.writes(), made) << "the store is still used";
    }
  }
}

TEST_F(PinnedFactorization, ASourceThatFailsEndsTheRunWithItsError) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  for (int row = 0; row < 5; ++row) {
    const auto store = make_store([&, row](const BlockExtent& x, std::byte* to) {
      if (x.row == row * kTile) fail(ErrorKind::input, "test", "no row {}", row);
      source()(x, to);
    });
    expect_failure(devices, *store, ErrorKind::input, fmt::format("no row {}", row));
    expect_usable(devices);
  }
}

TEST_F(PinnedFactorization, ADeviceThatDiesAnywhereEndsTheRunWithItsError) {
  FaultBackend faults;
  {
    const PinnedBackend backend(faults);
    DeviceSet devices = make_set(backend);
    expect_usable(devices);
    for (int d = 0; d < count; ++d) {
      for (const bool throws : {false, true}) {
        faults.heal();
        expect_usable(devices);
        const std::int64_t operations = faults.operations(static_cast<std::size_t>(d));
        ASSERT_GE(operations, 30);
        for (std::int64_t k = 1; k <= operations; k += 3) {
          faults.set({.dying_device = d, .dies_at = k, .throws = throws});
          const auto store = make_store();
          expect_failure(devices, *store, ErrorKind::device,
                         fmt::format("injected: host:{} died at operation {}", d, k));
          expect_written_blocks_whole(*store);
        }
      }
    }
    faults.heal();
    expect_usable(devices);
  }
  EXPECT_EQ(faults.buffers(), 0) << "released";
}

TEST_F(PinnedFactorization, ASlotThatIsRefusedIsSaid) {
  FaultBackend faults;
  {
    const PinnedBackend backend(faults);
    for (std::int64_t k = 1; k <= 4; ++k) {
      DeviceSet devices = make_set(backend);
      faults.set({.refused_host = k});
      const auto store = make_store();
      expect_failure(devices, *store, ErrorKind::memory,
                     fmt::format("injected: allocation {} refused", k));
      faults.heal();
      expect_usable(devices);
    }
  }
  EXPECT_EQ(faults.buffers(), 0) << "released";
}

TEST_F(PinnedFactorization, CancelledAmidSlowCopiesItEndsAtOnce) {
  const PinnedBackend backend;
  DeviceSet devices = make_set(backend);
  expect_usable(devices);
  backend.ledger().seconds_slow = 0.1;  // the whole run: many seconds
  for (const bool ring : {true, false}) {
    const auto store = make_store();
    Pins pins(devices, *store);
    if (!ring) {
      store->materialize(0, 1);
      pins.pin(store->lend_for_writing({kMatrixFamily, 0, 0}), schedule->blocks.total_bytes(0));
    }
    Clock::time_point asked;
    IssueOptions options;
    options.progress = [&](const Progress& progress) {
      asked = Clock::now();
      return progress.seconds < 0.4;
    };
    EXPECT_THROW((void)run(plan_on(devices), devices, *store, options), Error);
    EXPECT_LT(Clock::now() - asked, std::chrono::seconds(1));
    if (ring) expect_written_blocks_whole(*store);
  }
  backend.ledger().seconds_slow = 0;
  expect_usable(devices);
}

// What the clock of simulate() is made of: whoever fills a bounce buffer issues nothing meanwhile.
TEST_F(PinnedFactorization, WhileABounceBufferIsFilledNothingBehindItIsIssued) {
  count = 1;
  CholeskyProblem problem;
  problem.n = kPinnedOrder;
  problem.tile = kTile;
  schedule = std::make_shared<const Schedule>(tile_cholesky(problem, {}));
  const PinnedBackend backend;
  backend.ledger().seconds_slow = 2e-4;
  DeviceSet devices = make_set(backend);
  devices.shape_rings({.slot_bytes = 3 * kTile * 8, .slots = 2, .threads = 1});
  std::vector<std::int64_t> issued;  // copies before each call of the source
  const auto store = make_store([&](const BlockExtent& extent, std::byte* to) {
    issued.push_back(backend.ledger().copies);
    source()(extent, to);
  });
  PlanOptions options;
  options.homes.families = {{HostPinning::never, true}, {HostPinning::never}};
  const Plan plan(schedule, devices.machine(), options);
  (void)run(plan, devices, *store);
  EXPECT_TRUE(contents_of(*store) == expected);

  const Trace simulated = simulate(plan);
  const BlockTable& blocks = schedule->blocks;
  const std::vector<FlatStep> steps = flatten(plan);
  std::vector<std::int64_t> in_order;
  std::set<BlockId> stored;
  std::int64_t copies = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s].step;
    if (step.kind == StepKind::compute) continue;
    const BlockId id = steps[s].operands[0];
    const bool from_source = step.kind == StepKind::load && !stored.contains(id);
    if (step.kind == StepKind::store) stored.insert(id);
    const std::int64_t columns = 3 * kTile * 8 / blocks.column_bytes(id);
    const std::int64_t parts = (blocks.extent(id).cols + columns - 1) / columns;
    for (std::int64_t part = 0; part < parts; ++part, ++copies) {
      if (from_source) in_order.push_back(copies);
    }
    if (step.kind != StepKind::load) continue;
    for (std::size_t later = s + 1; later < steps.size(); ++later)
      ASSERT_GE(simulated.spans[later].begin, simulated.spans[s].begin) << "in simulate()";
  }
  EXPECT_EQ(issued, in_order) << "in run()";
  EXPECT_GT(issued.size(), 15 * 2u);
  EXPECT_GT(std::ssize(steps), 60);
}

TEST_F(PinnedFactorization, OfOneLargeTileTravelsInPiecesThatMakeTheWhole) {
  constexpr std::int64_t n = 500;  // columns that cut nothing evenly
  const Matrix<double> large = random_spd_matrix<double>(n, 3);
  CholeskyProblem problem;
  problem.n = n;
  problem.tile = n;
  const auto one = std::make_shared<const Schedule>(tile_cholesky(problem, {}));
  const auto store_of = [&] {
    const BlockTable& blocks = one->blocks;
    return std::make_unique<MemoryStore>(
        blocks,
        std::vector{std::make_shared<FamilyMemory>(
                        blocks, kMatrixFamily, source_of_view(large.data.data(), large.ld(), true)),
                    std::make_shared<FamilyMemory>(blocks, kStatusFamily)});
  };
  const auto in_order = store_of();
  run_in_order(*one, host_backend(), *in_order);
  const PinnedBackend backend;
  DeviceSet devices = first_devices(backend, 1, 4 << 20);
  for (const std::int64_t slot : {std::int64_t{1}, std::int64_t{700'001}, std::int64_t{8} << 20}) {
    devices.shape_rings({.slot_bytes = slot, .slots = 3, .threads = 4});
    for (const bool partly : {false, true}) {
      const auto store = store_of();
      Pins pins(devices, *store);
      if (partly) pins.pin_some(5, 300'000);
      (void)run(Plan(one, devices.machine(), {}), devices, *store);
      EXPECT_TRUE(contents_of(*store) == contents_of(*in_order)) << slot;
    }
  }
}

}  // namespace
}  // namespace strata::test
