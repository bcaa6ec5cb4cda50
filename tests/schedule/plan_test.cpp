// Plans: as text, worked out by hand; proven by the checker; and optimal where that is known.

#include <gtest/gtest.h>

#include <bit>

#include "strata/error.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_plans.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

Plan budget_plan_of(const Schedule& schedule, std::int64_t budget, int compute_queues,
                    PlanOptions options = {}) {
  return {std::make_shared<const Schedule>(schedule),
          machine_of(schedule.devices, budget, compute_queues), options};
}

// ---- golden plans

// Six tiles, three slots (a slot is 256 bytes), one compute queue. By hand: A(1,1) takes the slot
// of A(0,0), which is not read again, after its last reader (c0 #3) and its store (out #1). The
// gemm needs A(2,0) and A(1,0), so A(2,1) can only take the slot of A(1,1), which has just gone
// home; it comes back for the trsm into the slot of A(1,0), which is done. Seven loads: one more
// than there are tiles. No load waits for anything but its slot.
TEST(GoldenPlan, ThreeTilesInThreeSlots) {
  EXPECT_EQ("\n" + text_of(budget_plan_of(cholesky_of(3, 1), 3 * 256, 1)), R"(
0:in #1 load A(0,0)@0
0:c0 #1 potrf A(0,0)@0 after 0:in #1
0:out #1 store A(0,0)@0 after 0:c0 #1, 0:in #1
0:in #2 load A(1,0)@1
0:c0 #2 trsm A(1,0)@1 A(0,0)@0 after 0:in #2
0:out #2 store A(1,0)@1 after 0:c0 #2, 0:in #2
0:in #3 load A(2,0)@2
0:c0 #3 trsm A(2,0)@2 A(0,0)@0 after 0:in #3
0:out #3 store A(2,0)@2 after 0:c0 #3, 0:in #3
0:in #4 load A(1,1)@0 after 0:c0 #3, 0:out #1
0:c0 #4 syrk A(1,1)@0 A(1,0)@1 after 0:in #4
0:c0 #5 potrf A(1,1)@0
0:out #4 store A(1,1)@0 after 0:c0 #5, 0:in #4
0:in #5 load A(2,1)@0 after 0:c0 #5, 0:out #4
0:c0 #6 gemm A(2,1)@0 A(2,0)@2 A(1,0)@1 after 0:in #5
0:in #6 load A(1,1)@1 after 0:c0 #6
0:c0 #7 trsm A(2,1)@0 A(1,1)@1 after 0:in #6
0:out #5 store A(2,1)@0 after 0:c0 #7, 0:in #5
0:in #7 load A(2,2)@1 after 0:c0 #7
0:c0 #8 syrk A(2,2)@1 A(2,0)@2 after 0:in #7
0:c0 #9 syrk A(2,2)@1 A(2,1)@0
0:c0 #10 potrf A(2,2)@1
0:out #6 store A(2,2)@1 after 0:c0 #10, 0:in #7
)");
}

// Rows 0 and 2 on device 0, row 1 on device 1. By hand: what crosses goes through the host, so the
// loads of A(0,0) on device 1 and of A(1,0) and A(1,1) on device 0 wait for the other's store.
// Device 1 has room for all it needs; on device 0, A(2,1) takes the slot of A(0,0), and A(1,1) and
// then A(2,2) that of A(1,0).
TEST(GoldenPlan, ThreeTilesOnTwoDevices) {
  EXPECT_EQ("\n" + text_of(budget_plan_of(dealt_in_turn(cholesky_of(3, 2)), 3 * 256, 1)), R"(
0:in #1 load A(0,0)@0
0:c0 #1 potrf A(0,0)@0 after 0:in #1
0:out #1 store A(0,0)@0 after 0:c0 #1, 0:in #1
1:in #1 load A(0,0)@0 after 0:out #1
1:in #2 load A(1,0)@1
1:c0 #1 trsm A(1,0)@1 A(0,0)@0 after 1:in #2
1:out #1 store A(1,0)@1 after 1:c0 #1, 1:in #2
0:in #2 load A(2,0)@1
0:c0 #2 trsm A(2,0)@1 A(0,0)@0 after 0:in #2
0:out #2 store A(2,0)@1 after 0:c0 #2, 0:in #2
1:in #3 load A(1,1)@2
1:c0 #2 syrk A(1,1)@2 A(1,0)@1 after 1:in #3
1:c0 #3 potrf A(1,1)@2
1:out #2 store A(1,1)@2 after 1:c0 #3, 1:in #3
0:in #3 load A(1,0)@2 after 1:out #1
0:in #4 load A(2,1)@0 after 0:c0 #2, 0:out #1
0:c0 #3 gemm A(2,1)@0 A(2,0)@1 A(1,0)@2 after 0:in #4
0:in #5 load A(1,1)@2 after 0:c0 #3, 1:out #2
0:c0 #4 trsm A(2,1)@0 A(1,1)@2 after 0:in #5
0:out #3 store A(2,1)@0 after 0:c0 #4, 0:in #4
0:in #6 load A(2,2)@2 after 0:c0 #4
0:c0 #5 syrk A(2,2)@2 A(2,0)@1 after 0:in #6
0:c0 #6 syrk A(2,2)@2 A(2,1)@0
0:c0 #7 potrf A(2,2)@2
0:out #4 store A(2,2)@2 after 0:c0 #7, 0:in #6
)");
}

// b, a and a again keep the queues busy until 1 and 2. What then reads a goes behind it, although
// the other queue wrote its output and could begin it as soon: that queue has c and d meanwhile.
TEST(ComputeQueues, ThatAreIdleAreLeftToTasksThatNeedNotWait) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 24, .cols = 4, .tile_rows = 4, .tile_cols = 4});
  const auto block = [](std::int64_t row) { return BlockId(0, row, 0); };
  const auto product = [&](std::int64_t to, std::int64_t from) {
    return flat_task(gemm, {block(to), block(from), block(5)}, 0, kTransposeB);
  };
  const std::int64_t a = 0;
  const std::int64_t b = 1;
  const std::int64_t c = 2;
  const std::int64_t d = 3;
  const std::int64_t x = 4;
  const Schedule schedule = schedule_of(
      std::move(blocks), 1, {3},
      {{product(b, x), product(a, x), product(a, x), product(b, a), product(c, x), product(d, x)}});
  Machine machine = machine_of(1, 1 << 20, 2);
  DeviceModel& device = machine.devices[0];
  device.host_to_device = device.device_to_host = {1e15, 0};
  device.kernels = {{"gemm", std::vector(3, Element::fp64), 2.0 * 4 * 4 * 4, 1.0, 0.5}};
  const Plan plan(std::make_shared<const Schedule>(schedule), machine, {});
  EXPECT_EQ(check_plan(plan), "");
  EXPECT_NEAR(simulate(plan).seconds, 3, 1e-6);
}

TEST(UrgentQueue, TakesTheDiagonalTilesAndNothingElse) {
  PlanOptions options;
  options.urgent_queue = true;
  const Plan plan = budget_plan_of(cholesky_of(7, 2), 40 * 256, 2, options);
  EXPECT_EQ(check_plan(plan), "");
  const PlanLayout& layout = plan.layout();
  for (const DeviceLayout& device : layout.devices)
    EXPECT_EQ(empty_trace(plan).queues[static_cast<std::size_t>(device.urgent)].name, "urgent");
  int urgent = 0;
  for (const FlatStep& flat : flatten(plan)) {
    if (flat.step.kind != StepKind::compute) continue;
    const BlockId out = flat.operands[0];
    const bool diagonal = out.row() == out.col();
    EXPECT_EQ(layout.queues[flat.step.queue].role == QueueRole::urgent, diagonal);
    urgent += diagonal ? 1 : 0;
  }
  EXPECT_EQ(urgent, 7 + 7 * 6 / 2);  // potrf and syrk
}

TEST(UrgentQueue, IsNotWhereOneQueueOrTheStreamsOfTasksDoItAll) {
  for (const bool one : {false, true}) {
    PlanOptions options;
    options.urgent_queue = true;
    (one ? options.one_queue : options.copies_in_stream) = true;
    const Plan plan = budget_plan_of(cholesky_of(5, 2), 40 * 256, 2, options);
    EXPECT_EQ(plan.layout().devices[0].urgent, -1);
    EXPECT_EQ(check_plan(plan), "");
  }
}

// Four queues full of products that each take the whole device, and a factorization beside them:
// as if alone in the queue of high priority, five times as long otherwise.
TEST(UrgentQueue, IsSimulatedAsIfItWereAlone) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 24, .cols = 24, .tile_rows = 4, .tile_cols = 4});
  std::vector<FlatTask> tasks;
  for (int round = 0; round < 20; ++round) {
    for (int q = 0; q < 4; ++q) {
      tasks.push_back(
          flat_task(gemm, {BlockId(0, q, 5), BlockId(0, 5, 0), BlockId(0, 5, 1)}, 0, kTransposeB));
    }
  }
  tasks.push_back(flat_task(potrf_alone, {BlockId(0, 4, 4)}));
  tasks.back().task.urgent = true;
  const Schedule schedule = schedule_of(std::move(blocks), 1, {3}, {tasks});
  const auto seconds_of_potrf = [&](bool urgent) {
    Machine machine = machine_of(1, 1 << 20, urgent ? 4 : 5);
    DeviceModel& device = machine.devices[0];
    device.host_to_device = device.device_to_host = {1e15, 0};
    device.kernels = {{"gemm", std::vector(3, Element::fp64), 2.0 * 4 * 4 * 4, 1.0, 1.0},
                      {"potrf", {Element::fp64}, 4.0 * 4 * 4 / 3, 1.0, 1.0}};
    PlanOptions options;
    options.urgent_queue = urgent;
    const Plan plan(std::make_shared<const Schedule>(schedule), machine, options);
    double seconds = 0;
    const Trace trace = simulate(plan);
    for (const Span& span : trace.spans) {
      if (span.kind == SpanKind::compute && trace.operations[span.operation] == "potrf")
        seconds = span.end - span.begin;
    }
    return seconds;
  };
  const double alone = seconds_of_potrf(true);
  EXPECT_GT(alone, 0);
  EXPECT_NEAR(seconds_of_potrf(false), 5 * alone, 1e-6 * alone);
}

TEST(DeviceOfRow, GivesEachDeviceItsShareOfTheWork) {
  for (const int devices : {1, 2, 3, 4, 7}) {
    EXPECT_EQ(device_of_row(0, devices), 0);
    for (const std::int64_t rows : {48, 80, 97}) {
      std::vector<std::int64_t> count(static_cast<std::size_t>(devices));
      std::vector<double> work(static_cast<std::size_t>(devices));
      for (std::int64_t row = 0; row < rows; ++row) {
        const int device = device_of_row(row, devices);
        ASSERT_GE(device, 0);
        ASSERT_LT(device, devices);
        ++count[static_cast<std::size_t>(device)];
        work[static_cast<std::size_t>(device)] += static_cast<double>(row * row);
      }
      const auto [fewest, most] = std::minmax_element(count.begin(), count.end());
      EXPECT_LE(*most - *fewest, 2);
      const auto [least, greatest] = std::minmax_element(work.begin(), work.end());
      // The last round may be half of one: two rows more for one device.
      EXPECT_LE(*greatest - *least, 2.0 * static_cast<double>(rows * rows));
      if (rows % (2 * devices) == 0) {
        EXPECT_LE(*greatest, 1.03 * *least) << devices << ", " << rows;
      }
    }
  }
}

// ---- the checker, and what it proves

TEST(PlanChecker, ProvesCholeskyPlans) {
  for (const int devices : {1, 2, 3, 4}) {
    for (const bool generated : {false, true}) {
      for (const std::int64_t tiles : {1, 2, 3, 5, 9}) {
        const Schedule schedule = cholesky_of(tiles, devices, generated);
        for (const int extra : {0, 1, 4, 50}) {
          for (const bool lru : {false, true}) {
            PlanOptions options;
            options.eviction = lru ? Eviction::least_recently_used : Eviction::furthest_next_use;
            options.retain = lru;
            const Plan plan =
                budget_plan_of(schedule, smallest_budget_bytes(schedule) + extra * 256, 2, options);
            ASSERT_EQ(check_plan(plan), "") << devices << ' ' << tiles << ' ' << extra;
          }
        }
      }
    }
  }
}

TEST(PlanChecker, ProvesPlansOfRandomSchedules) {
  for (std::uint64_t seed = 0; seed < test::campaign(1000, 1000, 150); ++seed) {
    const Schedule schedule = random_schedule(seed);
    Dice dice(seed + 1'000'000);
    const PlanOptions options = random_plan_options(dice);
    const std::int64_t budget = smallest_budget_bytes(schedule) + dice.roll(20) * 256;
    const Plan plan = budget_plan_of(schedule, budget, static_cast<int>(1 + dice.roll(3)), options);
    ASSERT_LE(plan.layout().arena_bytes(), budget);
    ASSERT_EQ(check_plan(plan), "") << "seed " << seed;
    const std::vector<FlatStep> steps = flatten(plan);
    Traffic traffic;
    for (const FlatStep& flat : steps) {
      const std::int64_t bytes = flat.step.bytes;
      if (flat.step.kind == StepKind::load) traffic.host_to_device_bytes += bytes;
      if (flat.step.kind == StepKind::store) traffic.device_to_host_bytes += bytes;
    }
    ASSERT_EQ(traffic, plan.totals().traffic);
    ASSERT_EQ(std::ssize(steps), plan.totals().steps);
    ASSERT_EQ(std::ssize(tasks_of(schedule)), plan.totals().tasks);
    ASSERT_EQ(text_of(plan), text_of(plan)) << "equal inputs must give equal plans";
  }
}

TEST(PlanChecker, NoticesEveryDroppedWaitThatIsNotImplied) {
  EXPECT_GT(expect_every_needed_wait_noticed(budget_plan_of(cholesky_of(3, 1), 3 * 256, 1)).needed,
            10);
  EXPECT_GT(expect_every_needed_wait_noticed(budget_plan_of(cholesky_of(4, 2), 4 * 256, 2)).needed,
            30);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Schedule schedule = random_schedule(seed);
    if (tasks_of(schedule).size() > 60) continue;
    (void)expect_every_needed_wait_noticed(
        budget_plan_of(schedule, smallest_budget_bytes(schedule) + 256, 2));
  }
}

TEST(PlanChecker, NoticesEveryDroppedStepAndEverySwappedSlot) {
  const Plan plan = budget_plan_of(cholesky_of(4, 2), 4 * 256, 2);
  const std::vector<FlatStep> steps = flatten(plan);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    std::vector<FlatStep> mutant = steps;
    mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(s));
    EXPECT_NE(PlanChecker(plan.schedule(), plan.layout()).check(mutant), "") << "step " << s;
    mutant = steps;
    mutant[s].slots[0] = (mutant[s].slots[0] + 1) % 4;
    EXPECT_NE(PlanChecker(plan.schedule(), plan.layout()).check(mutant), "") << "slot " << s;
  }
}

// ---- Belady

constexpr std::int64_t kMany = 6;  // blocks that are only read

/// Tasks that read blocks of "A" in the given sets; "C" always has its slot.
Schedule reader_of(const std::vector<std::vector<int>>& reads) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 6 * kMany, .cols = 6, .tile_rows = 6, .tile_cols = 6});
  blocks.add({.name = "C", .rows = 2, .cols = 2, .tile_rows = 2, .tile_cols = 2});
  std::vector<FlatTask> tasks;
  for (const std::vector<int>& read : reads) {
    std::vector<TaskOperand> operands{BlockId(1, 0, 0)};
    for (const int block : read) operands.emplace_back(BlockId(0, block, 0));
    tasks.push_back(flat_task(read.size() == 1 ? syrk : gemm, std::move(operands)));
  }
  return schedule_of(std::move(blocks), 1, {2, 1}, {tasks});
}

/// The fewest loads of any way to keep at most `slots` blocks: all ways at once, as sets of bits.
std::int64_t fewest_loads(const std::vector<std::vector<int>>& reads, int slots) {
  constexpr std::size_t kSets = 1 << kMany;
  constexpr std::int64_t kNone = 1 << 20;
  std::vector<std::int64_t> cost(kSets, kNone);
  cost[0] = 0;
  for (const std::vector<int>& read : reads) {
    unsigned need = 0;
    for (const int block : read) need |= 1U << block;
    std::vector<std::int64_t> next(kSets, kNone);
    for (unsigned had = 0; had < kSets; ++had) {
      const std::int64_t loads = cost[had] + std::popcount(need & ~had);
      for (unsigned keep = 0; keep < kSets; ++keep) {
        const bool possible =
            (keep & need) == need && (keep & ~(had | need)) == 0 && std::popcount(keep) <= slots;
        if (possible) next[keep] = std::min(next[keep], loads);
      }
    }
    cost = next;
  }
  return *std::min_element(cost.begin(), cost.end());
}

std::int64_t loads_of(const std::vector<std::vector<int>>& reads, int slots, Eviction eviction) {
  const Plan plan = budget_plan_of(reader_of(reads), slots * 512 + 256, 1, {.eviction = eviction});
  EXPECT_EQ(std::ssize(plan.layout().devices[0].slots), std::min<std::int64_t>(slots, kMany) + 1);
  return plan.totals().loads - 1;  // C
}

TEST(Eviction, FurthestNextUseLoadsAsLittleAsAnythingCan) {
  int better_than_lru = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Dice dice(seed);
    const int slots = static_cast<int>(2 + dice.roll(4));
    std::vector<std::vector<int>> reads(static_cast<std::size_t>(5 + dice.roll(20)));
    for (std::vector<int>& read : reads) {
      read.push_back(static_cast<int>(dice.roll(kMany)));
      if (dice.roll(3) == 0) read.push_back(static_cast<int>(dice.roll(kMany)));
    }
    const std::int64_t loads = loads_of(reads, slots, Eviction::furthest_next_use);
    EXPECT_EQ(loads, fewest_loads(reads, slots)) << "seed " << seed;
    if (loads < loads_of(reads, slots, Eviction::least_recently_used)) ++better_than_lru;
  }
  EXPECT_GT(better_than_lru, 30) << "the test distinguishes the two";
}

TEST(Eviction, LeastRecentlyUsedIsWhatItSays) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed + 500);
    const int slots = static_cast<int>(2 + dice.roll(4));
    std::vector<std::vector<int>> reads;
    std::vector<int> recent;  // the latest last
    std::int64_t expected = 0;
    for (std::int64_t i = 0; i < 30; ++i) {
      const int block = static_cast<int>(dice.roll(kMany));
      reads.push_back({block});
      const auto found = std::find(recent.begin(), recent.end(), block);
      expected += found == recent.end() ? 1 : 0;
      if (found != recent.end()) recent.erase(found);
      recent.push_back(block);
      if (std::ssize(recent) > slots) recent.erase(recent.begin());
    }
    EXPECT_EQ(loads_of(reads, slots, Eviction::least_recently_used), expected) << seed;
  }
}

/// `passes` times all blocks of "S" stream past `kept` blocks of "A", each of which every one
/// changes; the first pass is followed by one over `kept` of them, as by another slab.
Schedule stream_of(std::int64_t kept, std::int64_t streamed, int passes, bool few_slots) {
  BlockTable blocks;
  blocks.add({.name = "A", .rows = 6, .cols = 6 * kept, .tile_rows = 6, .tile_cols = 6});
  blocks.add({.name = "S", .rows = 6, .cols = 6 * streamed, .tile_rows = 6, .tile_cols = 6});
  std::vector<FlatTask> tasks;
  for (int pass = 0; pass < passes; ++pass)
    for (std::int64_t s = 0; s < streamed; ++s)
      for (std::int64_t a = 0; a < kept; ++a)
        tasks.push_back(flat_task(syrk, {BlockId(0, 0, a), BlockId(1, 0, s)}));
  Schedule schedule = schedule_of(std::move(blocks), 1, {1, 1}, {tasks});
  schedule.few_slots = few_slots;
  return schedule;
}

TEST(Eviction, BlocksThatStreamPastAreLoadedWhileOthersAreUsedWhereSlotsAreFew) {
  constexpr std::int64_t kKept = 4;
  constexpr std::int64_t kStreamed = 12;
  constexpr int kPasses = 3;
  for (const int extra : {2, 3, 5}) {
    Machine machine = machine_of(1, (kKept + extra) * 512, 1);
    DeviceModel& device = machine.devices[0];
    const double task = syrk.work(std::vector<BlockExtent>(2, {0, 0, 6, 6}), 0);
    device.rate(Element::fp64) = task;  // a task takes a second, a load the time of two
    device.host_to_device = {6 * 6 * 8 / 2.0, 0};
    device.device_to_host = {1e12, 0};
    const auto run = [&](bool few_slots) {
      const Plan plan = plan_of(stream_of(kKept, kStreamed, kPasses, few_slots), machine);
      EXPECT_EQ(check_plan(plan), "");
      return std::pair(simulate(plan).seconds, plan.totals().loads);
    };
    const auto [seconds, loads] = run(true);
    const auto [seconds_by_rule, loads_by_rule] = run(false);
    const double work = static_cast<double>(kKept * kStreamed * kPasses);
    // What is kept comes at first, as does the first that streams; then nothing waits.
    EXPECT_LE(seconds, work + 2.0 * (kKept + 1) + 1e-6) << extra;
    EXPECT_GT(seconds_by_rule, work + 2.0 * (kKept + 1) + 10) << extra;
    EXPECT_LE(loads, kKept + kStreamed * kPasses) << extra;
    EXPECT_GE(loads, loads_by_rule) << extra;
  }
}

// ---- what cannot be planned

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Plan, RefusesABudgetBelowTheSmallestAndNamesIt) {
  const Schedule schedule = cholesky_of(5, 2, true);
  EXPECT_EQ(smallest_budget_bytes(schedule), 5 * 256);
  expect_error(ErrorKind::memory, "smallest that works with these tiles is 1280 bytes",
               [&] { (void)budget_plan_of(schedule, 1279, 1); });
  EXPECT_EQ(budget_plan_of(schedule, 1280, 1).layout().arena_bytes(), 1280);
  Machine uneven = machine_of(2, 1 << 20, 1);
  uneven.devices[1].memory_bytes = 1279;
  expect_error(ErrorKind::memory, "1279",
               [&] { (void)Plan(std::make_shared<const Schedule>(schedule), uneven, {}); });
}

TEST(Plan, RefusesFewerDevicesThanTheScheduleHas) {
  expect_error(ErrorKind::misuse, "3", [] {
    (void)Plan(std::make_shared<const Schedule>(cholesky_of(5, 3)), machine_of(2, 1 << 20, 1), {});
  });
}

TEST(Plan, RefusesAKernelThatTheBackendLacks) {
  const auto schedule = std::make_shared<const Schedule>(cholesky_of(3, 1));
  Machine machine = machine_of(1, 1 << 20, 1);
  const std::vector<Element> fp64(3, Element::fp64);
  const std::vector<Element> fp32(3, Element::fp32);
  const auto& available = machine.devices[0].available;
  machine.devices[0].available = {{"potrf", {fp64[0]}},
                                  {"trsm", {fp64[0], fp64[0]}},
                                  {"syrk", {fp64[0], fp64[0]}},
                                  {"gemm", fp64}};
  EXPECT_NO_THROW((void)Plan(schedule, machine, {}));
  machine.devices[0].available->back().elements = fp32;
  ASSERT_EQ(available->size(), 4U);
  expect_error(ErrorKind::device, "emulated:0 has no kernel for gemm in fp64",
               [&] { (void)Plan(schedule, machine, {}); });
  EXPECT_NO_THROW((void)Plan(std::make_shared<const Schedule>(cholesky_of(2, 1)), machine, {}))
      << "two tiles need no gemm";
  // Also where tasks say how long they take.
  const Schedule whole = cholesky_of(3, 1);
  std::vector<FlatTask> tasks = tasks_of(whole);
  for (FlatTask& task : tasks) task.task.seconds = 1e-3;
  const auto timed =
      std::make_shared<const Schedule>(schedule_of(whole.blocks, 1, whole.operands, {tasks}));
  expect_error(ErrorKind::device, "emulated:0 has no kernel for gemm in fp64",
               [&] { (void)Plan(timed, machine, {}); });
}

TEST(Plan, RefusesToReadAGeneratedBlockBeforeItIsWritten) {
  const Schedule whole = cholesky_of(3, 2, true);
  const std::vector<FlatTask> tasks = tasks_of(whole);
  int covariances = 0;
  for (std::size_t drop = 0; drop < tasks.size(); ++drop) {
    if (tasks[drop].task.operation != &covariance) continue;
    ++covariances;
    std::vector<FlatTask> fewer = tasks;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(drop));
    const Schedule schedule = schedule_of(whole.blocks, 2, whole.operands, {fewer});
    expect_error(ErrorKind::misuse,
                 whole.blocks.name(tasks[drop].operands[0].id) + " is read before",
                 [&] { (void)budget_plan_of(schedule, 1 << 20, 1); });
  }
  EXPECT_EQ(covariances, 6);
}

TEST(Plan, RefusesATaskThatNeedsMoreBlocksThanItsScheduleSays) {
  Schedule schedule = cholesky_of(4, 1);
  schedule.operands = {2, 0};
  expect_error(ErrorKind::memory, "more blocks than there are slots",
               [&] { (void)budget_plan_of(schedule, 2 * 256, 1); });
}

TEST(Plan, OfNoTasksIsEmpty) {
  const Plan plan = budget_plan_of(cholesky_of(0, 1), 0, 1);
  EXPECT_EQ(plan.totals(), PlanTotals());
  EXPECT_EQ(text_of(plan), "");
  EXPECT_EQ(simulate(plan).seconds, 0);
}

}  // namespace
}  // namespace strata::test
