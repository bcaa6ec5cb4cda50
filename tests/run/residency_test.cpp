// What a run leaves on the devices, and runs that start from it.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cholesky/tile_cholesky.hpp"
#include "kernels/dense/potrf.hpp"
#include "run/run.hpp"
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

constexpr std::int64_t kResidencyTiles = 4;
constexpr std::int64_t kTileBytes = kTile * kTile * 8;
/// Tiles of the lower triangle.
constexpr std::int64_t kBlocks = kResidencyTiles * (kResidencyTiles + 1) / 2;

/// A factor and products with its tiles. Families: those of the factor, and X, in the same table,
/// so that both schedules have one store.
class FactorAndProducts : public ::testing::TestWithParam<std::string> {
 protected:
  FactorAndProducts()
      : count(devices_text(GetParam(), 2).empty() ? 1 : 2),
        matrix(random_spd_matrix<double>(kTile * kResidencyTiles, 7)) {
    CholeskyProblem problem;
    problem.n = kTile * kResidencyTiles;
    problem.tile = kTile;
    problem.devices = count;
    problem.factor_identity = identity;
    Schedule schedule = tile_cholesky(problem, {});
    schedule.blocks.add({.name = "X",
                         .rows = kTile * kResidencyTiles,
                         .cols = kTile,
                         .tile_rows = kTile,
                         .tile_cols = kTile});
    schedule.operands.push_back(0);
    factor = std::make_shared<const Schedule>(schedule);
    products = std::make_shared<const Schedule>(products_of(schedule.blocks));
    const auto store = make_store();
    run_in_order(*factor, backend_of(GetParam()), *store);
    factored = contents_of(*store);
    run_in_order(*products, backend_of(GetParam()), *store);
    multiplied = contents_of(*store);
  }

  /// X_r ← X_r + L_rc·X_c for the tiles of L below the diagonal, each on the device of its row.
  [[nodiscard]] Schedule products_of(const BlockTable& blocks) const {
    std::vector<FlatTask> tasks;
    for (std::int64_t r = 1; r < kResidencyTiles; ++r) {
      for (std::int64_t c = 0; c < r; ++c) {
        tasks.push_back(flat_task(gemm, {{{2, r, 0}}, {{kMatrixFamily, r, c}}, {{2, c, 0}}},
                                  device_of_row(r, count)));
      }
    }
    return schedule_of(blocks, count, {1, 0, 2}, {tasks});
  }
  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable& blocks = factor->blocks;
    const auto ones = [](const BlockExtent& x, std::byte* to) {
      std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 1.0 + static_cast<double>(x.row));
    };
    return std::make_unique<MemoryStore>(
        blocks, std::vector{std::make_shared<FamilyMemory>(
                                blocks, kMatrixFamily,
                                source_of_view(matrix.data.data(), matrix.ld(), true)),
                            std::make_shared<FamilyMemory>(blocks, kStatusFamily),
                            std::make_shared<FamilyMemory>(blocks, 2, ones)});
  }
  /// By default for all blocks of either schedule.
  [[nodiscard]] DeviceSet make_devices(std::int64_t budget = (kBlocks + 5) * kTileBytes +
                                                             kResidencyTiles * 256) const {
    RunOptions options;
    options.devices = devices_text(GetParam(), count);
    options.device_memory_bytes = budget;
    options.compute_queues = 2;
    return DeviceSet(options);
  }
  [[nodiscard]] Plan plan_of(const std::shared_ptr<const Schedule>& schedule,
                             const DeviceSet& devices) const {
    return {schedule, devices.machine(), {}, devices.residency()};
  }
  /// Leaves the factor of a store that has not been written yet on the devices.
  void run_factor(DeviceSet& devices, BlockStore& store) const {
    devices.forget(identity);  // its blocks at home are others now
    const Plan plan = plan_of(factor, devices);
    (void)run(plan, devices, store);
    ASSERT_TRUE(contents_of(store) == factored);
    ASSERT_EQ(blocks_on(devices.residency()), blocks_on(plan.end()));
    ASSERT_FALSE(devices.residency().empty());
  }
  static std::vector<std::vector<ResidentBlock>> blocks_on(const Residency& residency) {
    std::vector<std::vector<ResidentBlock>> blocks;
    for (const Residency::Node& node : residency.devices) blocks.push_back(node.blocks);
    return blocks;
  }
  /// The run is refused, and nothing has happened.
  void expect_refused(const Plan& plan, DeviceSet& devices) const {
    FaultStore store(make_store());
    const Residency before = devices.residency();
    try {
      (void)run(plan, devices, store);
      ADD_FAILURE() << "it ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_NE(std::string(error.what()).find("not, or no longer, on the devices"),
                std::string::npos)
          << error.what();
    }
    EXPECT_EQ(store.reads() + store.writes(), 0);
    EXPECT_EQ(devices.residency(), before);
  }

  const std::uint64_t identity = 1;
  int count;
  Matrix<double> matrix;
  std::shared_ptr<const Schedule> factor;
  std::shared_ptr<const Schedule> products;
  Bytes factored;
  Bytes multiplied;
};

INSTANTIATE_TEST_SUITE_P(Backends, FactorAndProducts, ::testing::ValuesIn(available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(FactorAndProducts, ASecondRunLoadsNothingThatTheFirstOneLeft) {
  DeviceSet devices = make_devices();
  FaultStore store(make_store());
  run_factor(devices, store);
  const Residency left = devices.residency();
  // All that a device has loaded or written of the factor is still there.
  std::set<std::pair<std::size_t, std::int64_t>> there;
  for (std::size_t d = 0; d < left.devices.size(); ++d) {
    for (const ResidentBlock& block : left.devices[d].blocks) {
      EXPECT_EQ(block.identity, identity);
      there.emplace(d, factor->blocks.index({kMatrixFamily, block.row, block.col}));
    }
  }
  const std::int64_t reads = store.reads();
  const Plan plan = plan_of(products, devices);
  EXPECT_EQ(check_plan(plan), "");
  const Plan fresh(products, devices.machine(), {});
  std::int64_t missing = 0;  // loads of a run from nothing that this one does not need
  for (const FlatStep& flat : flatten(fresh)) {
    if (flat.step.kind != StepKind::load) continue;
    const BlockId id = flat.operands[0];
    missing += there.contains({flat.step.device, factor->blocks.index(id)}) ? 1 : 0;
  }
  EXPECT_EQ(missing, kResidencyTiles * (kResidencyTiles - 1) / 2) << "every tile of the products";
  for (const FlatStep& flat : flatten(plan)) {
    if (flat.step.kind != StepKind::load) continue;
    EXPECT_EQ(flat.operands[0].family(), 2) << factor->blocks.name(flat.operands[0]);
  }
  EXPECT_EQ(plan.totals().loads, fresh.totals().loads - missing);
  const RunOutcome outcome = run(plan, devices, store);
  EXPECT_EQ(outcome.trace.traffic, plan.totals().traffic);
  EXPECT_EQ(store.reads() - reads, plan.totals().loads);
  EXPECT_TRUE(contents_of(store) == multiplied);
}

TEST_P(FactorAndProducts, FromWhatLittleIsLeftTheResultIsTheSame) {
  for (std::int64_t tiles = 3; tiles <= kBlocks + 4; ++tiles) {
    DeviceSet devices = make_devices(tiles * kTileBytes + 2 * 256);
    const auto store = make_store();
    run_factor(devices, *store);
    const Plan plan = plan_of(products, devices);
    EXPECT_EQ(check_plan(plan), "") << tiles;
    EXPECT_LE(plan.totals().loads, Plan(products, devices.machine(), {}).totals().loads);
    (void)run(plan, devices, *store);
    EXPECT_TRUE(contents_of(*store) == multiplied) << tiles;
  }
}

TEST_P(FactorAndProducts, APlanFromWhatIsNotOnTheDevicesIsRefused) {
  DeviceSet devices = make_devices();
  const auto store = make_store();
  run_factor(devices, *store);
  const Residency left = devices.residency();
  const Plan plan = plan_of(products, devices);

  DeviceSet others = make_devices();
  expect_refused(plan, others);  // never ran

  devices.forget(identity);
  expect_refused(plan, devices);
  devices.set_residency(left);

  Residency less = left;
  less.devices[0].blocks.pop_back();
  devices.set_residency(less);
  expect_refused(plan, devices);
  Residency moved = left;
  std::swap(moved.devices[0].blocks[0].offset, moved.devices[0].blocks[1].offset);
  devices.set_residency(moved);
  expect_refused(plan, devices);
  devices.set_residency(left);

  const auto another = make_store();
  (void)run(plan, devices, *another);  // it leaves X there beside, or less of the factor
  EXPECT_EQ(blocks_on(devices.residency()), blocks_on(plan.end()));
  devices.set_residency({});
  expect_refused(plan, devices);
  // A plan from nothing runs whatever is there.
  devices.set_residency(left);
  const auto fresh = make_store();
  (void)run(Plan(factor, devices.machine(), {}), devices, *fresh);
  EXPECT_TRUE(contents_of(*fresh) == factored);
}

TEST_P(FactorAndProducts, AnArenaThatGrowsForgetsWhatItHeld) {
  DeviceSet devices = make_devices();
  const auto store = make_store();
  run_factor(devices, *store);
  const Plan plan = plan_of(products, devices);
  const std::int64_t budget = devices.device(0).budget_bytes();
  ASSERT_LT(devices.residency().devices[0].arena_bytes, budget);
  (void)devices.arena(0, budget);
  EXPECT_TRUE(devices.residency().devices[0].blocks.empty());
  EXPECT_EQ(devices.residency().devices[0].arena_bytes, budget);
  EXPECT_TRUE(count == 1 || !devices.residency().devices[1].blocks.empty()) << "the other's";
  expect_refused(plan, devices);
  (void)run(plan_of(products, devices), devices, *store);
  EXPECT_TRUE(contents_of(*store) == multiplied);
}

TEST_P(FactorAndProducts, NothingIsLeftByARunThatEndedEarlyOrFailed) {
  DeviceSet devices = make_devices();
  const auto good = make_store();
  run_factor(devices, *good);
  {
    IssueOptions options;
    options.watched = kStatusFamily;
    options.watch = [](BlockId id) { return id.col() == 1; };
    const auto store = make_store();
    devices.forget(identity);
    EXPECT_TRUE(run(plan_of(factor, devices), devices, *store, options).ended_early);
    EXPECT_TRUE(devices.residency().empty()) << "ended early";
    run_factor(devices, *make_store());
  }
  {
    FaultStore store(make_store(), {.write_fails = {2}});
    EXPECT_THROW((void)run(Plan(factor, devices.machine(), {}), devices, store), Error);
    EXPECT_TRUE(devices.residency().empty()) << "failed";
    run_factor(devices, *make_store());
  }
  {
    // A run that starts from what is there, and fails, has lost it too.
    run_factor(devices, *make_store());
    const Plan plan = plan_of(products, devices);
    FaultStore store(make_store(), {.read_fails = {1}});
    EXPECT_THROW((void)run(plan, devices, store), Error);
    EXPECT_TRUE(devices.residency().empty()) << "failed";
    expect_refused(plan, devices);
  }
  const auto store = make_store();
  run_factor(devices, *store);
  (void)run(plan_of(products, devices), devices, *store);
  EXPECT_TRUE(contents_of(*store) == multiplied);
}

TEST_P(FactorAndProducts, ACancelledRunLeavesNothing) {
  DeviceSet devices = make_devices();
  const auto good = make_store();
  run_factor(devices, *good);
  const Plan plan(factor, devices.machine(), {});
  FaultStore store(make_store(), {.seconds_slow = 0.3 / static_cast<double>(kBlocks)});
  IssueOptions options;
  options.progress = [](const Progress&) { return false; };
  EXPECT_THROW((void)run(plan, devices, store, options), Error);
  EXPECT_TRUE(devices.residency().empty());
  run_factor(devices, *make_store());
}

// ---- any schedules, one after the other

/// The same blocks, with an identity for each family that no other has.
BlockTable named(const BlockTable& blocks) {
  static std::uint64_t last = 0;
  BlockTable table;
  for (int f = 0; f < blocks.families(); ++f) {
    BlockFamily family = blocks.family(f);
    family.identity = ++last;
    table.add(family);
  }
  return table;
}

TEST(RunResidency, ChainsOfRandomSchedulesAreBitIdenticalToTheSchedulesInOrder) {
  std::map<int, DeviceSet> device_sets;
  for (int devices = 1; devices <= 4; ++devices) {
    RunOptions options;
    options.devices = devices_text("host", devices);
    options.device_memory_bytes = 1 << 20;
    options.compute_queues = 3;
    device_sets.emplace(devices, DeviceSet(options));
  }
  const CovarianceParameters parameters{0.2, 0.7, 0.5, 0.1, true};
  IssueOptions run_options;
  run_options.values = {{covariance.name, &parameters}};
  int continued = 0;
  std::int64_t saved = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(150, 150, 40); ++seed) {
    Schedule first = random_schedule(seed);
    first.blocks = named(first.blocks);
    DeviceSet& devices = device_sets.at(first.devices);
    const auto expected = make_store(first.blocks);
    const auto actual = make_store(first.blocks);
    Dice dice(seed + 4711);
    for (int link = 0; link < 4; ++link) {
      Schedule schedule = first;
      if (link > 0) {
        const std::int64_t rows = first.blocks.block_rows(kStoredTiles);
        schedule = schedule_of(first.blocks, first.devices, first.operands,
                               {RandomTasks(dice, rows, first.devices).make(1 + dice.roll(60))});
      }
      run_in_order(schedule, host_backend(), *expected, run_options);
      Machine machine = devices.machine();
      for (DeviceModel& device : machine.devices)
        device.memory_bytes = smallest_budget_bytes(schedule) + dice.roll(24) * 512;
      machine.device_to_device = dice.roll(2) == 0 ? LinkRate{1e15, 0} : LinkRate{};
      const PlanOptions options = random_plan_options(dice);
      const auto shared = std::make_shared<const Schedule>(std::move(schedule));
      const Plan plan(shared, machine, options, devices.residency());
      ASSERT_EQ(check_plan(plan), "") << "seed " << seed << " link " << link;
      for (const DeviceLayout& device : plan.layout().devices)
        continued += device.resident.empty() ? 0 : 1;
      saved += Plan(shared, machine, options).totals().loads - plan.totals().loads;
      const RunOutcome outcome = run(plan, devices, *actual, run_options);
      ASSERT_EQ(outcome.trace.traffic, plan.totals().traffic);
      ASSERT_TRUE(contents_of(*actual) == contents_of(*expected))
          << "seed " << seed << " link " << link;
    }
  }
  EXPECT_GT(continued, test::kSanitized ? 80 : 300) << "hardly any plan began with something";
  EXPECT_GT(saved, test::kSanitized ? 80 : 300);
}

}  // namespace
}  // namespace strata::test
