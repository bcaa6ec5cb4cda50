// The search, on a toy algorithm: against trying everything, and against a search one by one.

#include "session/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "base/random.hpp"
#include "session/budget.hpp"
#include "strata/error.hpp"
#include "tests/session/toy_space.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::toy_machine;
using test::ToySpace;

constexpr double kForever = std::numeric_limits<double>::infinity();

std::int64_t roll(std::uint64_t seed, std::uint64_t i, std::int64_t sides) {
  return static_cast<std::int64_t>(random_bits(seed, i) % static_cast<std::uint64_t>(sides));
}

SearchOptions options_for(std::int64_t n, std::int64_t tile, bool tile_is_free,
                          bool queues_are_free = false, int threads = 1) {
  SearchOptions options;
  options.n = n;
  options.tile = tile;
  options.tile_is_free = tile_is_free;
  options.queues_are_free = queues_are_free;
  options.threads = threads;
  return options;
}

/// The plan of a tile, one order after the other.
struct Tried {
  double seconds = 0;
  std::int64_t bytes = 0;
  std::int64_t order = 0;
};
Tried try_tile(const ToySpace& space, const Machine& machine, std::int64_t tile) {
  std::optional<Tried> best;
  for (const std::int64_t order : space.orders(tile)) {
    const Plan plan(std::make_shared<const Schedule>(space.schedule(tile, order)), machine,
                    space.options());
    const std::int64_t bytes = plan.totals().traffic.total();
    if (!best || bytes < best->bytes) best = Tried{simulate(plan).seconds, bytes, order};
  }
  return *best;
}

std::string text_of(const PlannedRun& planned) {
  std::ostringstream out;
  planned.plan->write_text(out);
  out << planned.tile << ' ' << planned.policy << ' ' << planned.considered << ' '
      << planned.simulated.spans.size() << ' ' << planned.floor_bytes << ' '
      << planned.plan->layout().device(0).compute_queues << ' ' << *planned.predicted_seconds;
  return out.str();
}

TEST(Search, OfAToyFindsWhatTryingEverythingFinds) {
  std::set<std::int64_t> tiles;
  std::set<std::string> policies;
  int fewer = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::int64_t n = 100 + roll(seed, 0, 400);
    const Machine machine = toy_machine(60'000 + roll(seed, 1, 300'000),
                                        2 * std::pow(4.0, static_cast<double>(roll(seed, 2, 5))));
    ToySpace space(n, machine);
    if (roll(seed, 3, 2) == 0) std::reverse(space.all_orders.begin(), space.all_orders.end());
    std::vector<std::int64_t> all = candidate_tiles(space, 64);
    double best = kForever;
    for (const std::int64_t tile : all) {
      const Tried tried = try_tile(space, machine, tile);
      EXPECT_LE(space.seconds_min(tile, 2), tried.seconds * (1 + 1e-9)) << seed << ' ' << tile;
      best = std::min(best, tried.seconds);
    }
    const PlannedRun found = search(space, machine, options_for(n, 64, true));
    EXPECT_EQ(found.predicted_seconds, best) << seed << ", tile " << found.tile;
    EXPECT_EQ(found.simulated.seconds, best);
    EXPECT_EQ(found.n, n);
    const Tried tried = try_tile(space, machine, found.tile);
    EXPECT_EQ(found.plan->totals().traffic.total(), tried.bytes);
    EXPECT_EQ(found.policy, "opt " + space.order_name(tried.order));
    EXPECT_EQ(found.plan->schedule().blocks.family(0).tile_rows, found.tile);
    EXPECT_LE(found.considered, 2 * std::ssize(all));
    fewer += found.considered < 2 * std::ssize(all) ? 1 : 0;
    tiles.insert(found.tile);
    policies.insert(found.policy);
  }
  EXPECT_GE(tiles.size(), 3u) << "the machines differ too little";
  EXPECT_EQ(policies.size(), 2u);
  EXPECT_GE(fewer, 10) << "bounds that spare nothing";
}

/// A search one by one, as the method says it, for a space with any bounds.
struct OneByOne {
  std::int64_t tile = 0;
  double seconds = kForever;
  std::int64_t considered = 0;
  bool threw = false;
};
OneByOne one_by_one(const ToySpace& space, const Machine& machine, std::int64_t first) {
  const int queues = machine.devices[0].compute_queues;
  const std::int64_t orders = std::ssize(space.all_orders);
  std::vector<std::pair<double, std::int64_t>> bounds;  // and −tile
  double least = space.seconds_min(first, queues);
  for (const std::int64_t tile : candidate_tiles(space, first)) {
    if (tile != first) bounds.emplace_back(space.seconds_min(tile, queues), -tile);
    least = std::min(least, space.seconds_min(tile, queues));
  }
  std::sort(bounds.begin(), bounds.end());
  double left = std::min(kPlanningSecondsMax, kPlanningShareMax * least);
  OneByOne best;
  const auto consider = [&](std::int64_t tile) {
    if (planning_seconds(space, tile, orders) > left) return false;
    left -= planning_seconds(space, tile, orders);
    best.considered += orders;
    best.threw = best.threw || tile == space.throws_at;
    if (best.threw) return true;
    const double seconds = try_tile(space, machine, tile).seconds;
    if (seconds < best.seconds) best = {tile, seconds, best.considered, false};
    return true;
  };
  if (!consider(first)) best.seconds = space.seconds_min(first, queues);
  for (const auto& [bound, tile] : bounds) {
    if (best.threw || bound >= best.seconds) break;
    (void)consider(-tile);
  }
  if (best.tile == 0 && !best.threw) {
    best.considered += orders;
    best.tile = first;
    best.threw = first == space.throws_at;
  }
  return best;
}

TEST(Search, ChoosesAsASearchOneByOneOnAnyNumberOfThreads) {
  int threw = 0;
  int first_stays = 0;
  int others = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(80, 80, 20); ++seed) {
    const std::int64_t n = 60 + roll(seed, 0, 200);
    // From a rate at which nothing can be simulated in time to one at which everything can.
    const double rate = std::pow(10.0, 3 + 0.25 * static_cast<double>(seed % 17));
    const Machine machine =
        toy_machine(60'000 + roll(seed, 1, 400'000), 10.0, static_cast<int>(1 + seed % 3), rate);
    ToySpace space(n, machine);
    if (seed % 2 == 0) {  // bounds that need not hold
      const double scale = space.seconds_min(32, 2);
      space.bound = [seed, scale](std::int64_t tile) {
        return scale * (0.5 + random_uniform(seed + 1, static_cast<std::uint64_t>(tile)));
      };
    }
    if (seed % 4 == 1) space.throws_at = candidate_tiles(space, 32)[roll(seed, 2, 2) == 0 ? 0 : 3];
    const OneByOne expected = one_by_one(space, machine, 32);
    threw += expected.threw ? 1 : 0;
    first_stays += expected.tile == 32 ? 1 : 0;
    others += expected.tile != 32 ? 1 : 0;
    std::string same;
    for (const int threads : {1, 2, 3, 8, 8}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", threads " << threads);
      if (expected.threw) {
        EXPECT_THROW((void)search(space, machine, options_for(n, 32, true, true, threads)), Error);
        continue;
      }
      const PlannedRun found = search(space, machine, options_for(n, 32, true, false, threads));
      EXPECT_EQ(found.tile, expected.tile);
      EXPECT_EQ(found.considered, expected.considered);
      EXPECT_EQ(*found.predicted_seconds, simulate(*found.plan).seconds);
      EXPECT_EQ(found.predicted_seconds, found.simulated.seconds);
      const std::string text =
          text_of(search(space, machine, options_for(n, 32, true, true, threads)));
      if (same.empty()) same = text;
      EXPECT_EQ(text, same);
    }
  }
  EXPECT_GE(threw, test::kSanitized ? 1 : 5);
  EXPECT_GE(first_stays, test::kSanitized ? 3 : 15);
  EXPECT_GE(others, test::kSanitized ? 3 : 15);
}

TEST(Search, LeavesTheTileThatIsAskedFor) {
  const Machine machine = toy_machine(100'000, 50);
  const ToySpace space(300, machine);
  for (const std::int64_t tile : {3, 7, 30, 64, 90}) {
    const PlannedRun found = search(space, machine, options_for(300, tile, false));
    EXPECT_EQ(found.tile, tile);
    EXPECT_EQ(found.considered, 2);
    EXPECT_EQ(*found.predicted_seconds, try_tile(space, machine, tile).seconds);
    EXPECT_EQ(found.plan->layout().device(0).compute_queues, 2);
  }
}

TEST(Search, TakesTheFirstOfOrdersThatMoveAsMuch) {
  const Machine machine = toy_machine(1 << 24, 50);  // everything fits
  ToySpace space(300, machine);
  EXPECT_EQ(search(space, machine, options_for(300, 64, false)).policy, "opt rows");
  space.all_orders = {test::kByColumns, test::kByRows};
  EXPECT_EQ(search(space, machine, options_for(300, 64, false)).policy, "opt columns");
  SearchOptions v3 = options_for(300, 64, false);
  v3.policy = Policy::v3;
  EXPECT_EQ(search(space, machine, v3).policy, "v3");
}

TEST(Search, PlansTheFirstTileEvenIfThereIsNoTimeForIt) {
  const Machine machine = toy_machine(1 << 20, 50, 2, 1e12);
  const ToySpace space(300, machine);
  const PlannedRun found = search(space, machine, options_for(300, 64, true, true));
  EXPECT_EQ(found.tile, 64);
  EXPECT_EQ(found.considered, 2);
  EXPECT_EQ(found.predicted_seconds, try_tile(space, machine, 64).seconds);
}

TEST(Search, AFirstTileThatIsNotSimulatedGivesWayToOneThatBeatsItsBoundOnly) {
  const Machine machine = toy_machine(1 << 22, 10);
  ToySpace space(256, machine);
  constexpr double kBound = 0.01;
  space.bound = [](std::int64_t tile) { return tile == 32 ? kBound : 0.99 * kBound; };
  // There is time for tiles that are larger, which are slower than the bound.
  EXPECT_GT(planning_seconds(space, 32, 2), kPlanningShareMax * kBound);
  EXPECT_LT(planning_seconds(space, 64, 2), 0.99 * kPlanningShareMax * kBound);
  EXPECT_GT(try_tile(space, machine, 64).seconds, kBound);
  const PlannedRun found = search(space, machine, options_for(256, 32, true));
  EXPECT_EQ(found.tile, 32);
  EXPECT_GT(found.considered, 2);
}

int queues_found(double share, int queues, DeviceKind kind = DeviceKind::gpu) {
  Machine machine = toy_machine(1 << 20, 0, queues);
  DeviceModel& device = machine.devices[0];
  device.kind = kind;
  device.rate(Element::fp64) = 1e5 / share;
  device.host_to_device = device.device_to_host = {1e9, 0};
  ToySpace space(512, machine);
  return search(space, machine, options_for(512, 16, false, true))
      .plan->layout()
      .device(0)
      .compute_queues;
}

TEST(Search, TakesMoreQueuesWhereTheyAreFaster) {
  EXPECT_EQ(queues_found(0.5, 1), 2);
  EXPECT_EQ(queues_found(1.0, 1), 1);
  EXPECT_EQ(queues_found(1.0, 2), 2) << "nothing is gained by fewer";
  EXPECT_EQ(queues_found(0.25, 2), 4);
  EXPECT_EQ(queues_found(0.25, 2, DeviceKind::cpu), 2) << "they are cores";
  EXPECT_EQ(queues_found(0.04, 16), 16) << "the most there are";
  EXPECT_EQ(queues_found(0.09, 9), 16);
}

TEST(Search, OfAMachineWithoutDevicesIsMisuse) {
  const Machine none;
  const ToySpace space(100, none);
  EXPECT_THROW((void)search(space, none, options_for(100, 10, false)), Error);
}

TEST(Search, TilesAreThoseAroundTheFirst) {
  const Machine machine = toy_machine(1 << 24, 0);
  ToySpace space(1000, machine);
  EXPECT_EQ(candidate_tiles(space, 64),
            (std::vector<std::int64_t>{8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512}));
  space.tile_min = 200;
  EXPECT_EQ(candidate_tiles(space, 64), (std::vector<std::int64_t>{64, 256, 384, 512}));
  space.tile_min = 1;
  EXPECT_EQ(candidate_tiles(space, 1), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8}));
}

TEST(Search, CountsTheSizesThatWereMeasured) {
  const Machine machine = toy_machine(1 << 20, 0);
  EXPECT_EQ(sizes_measured(machine.devices[0], test::toy_product, Element::fp64), 6);
  EXPECT_EQ(sizes_measured(machine.devices[0], test::toy_product, Element::fp32), 0);
  EXPECT_EQ(sizes_measured(Machine::emulated(1, 1).devices[0], test::toy_product, Element::fp64),
            0);
}

}  // namespace
}  // namespace strata
