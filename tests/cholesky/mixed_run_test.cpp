// Mixed factorizations on devices: the bits of the schedule in order whatever the budget, the
// policy and the devices; where the factor lies, and what is left of it when a device dies.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cholesky/mixed_factor.hpp"
#include "kernels/dense/potrf.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/mixed_factors.hpp"
#include "tests/cholesky/policies.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/mixed_problem.hpp"
#include "tests/support/stores.hpp"

namespace strata::test {
namespace {

constexpr double kAllowed = 4 * kSmallAccuracy;  // as in mixed_cholesky_test.cpp
constexpr std::int64_t kMuch = std::int64_t{1} << 24;

CovarianceOptions options_on(int devices, std::int64_t memory_bytes) {
  CovarianceOptions options;
  options.run.devices = "host:" + std::to_string(devices);
  options.run.device_memory_bytes = memory_bytes;
  options.tile = kMixedTile;
  return options;
}

/// What is asked of a run: the tiles, their statuses and their norms.
Bytes results_of(MemoryStore& store) {
  Bytes all = contents_of(store);
  for (int f = 0; f < store.blocks().families(); ++f) {
    if (f == kMatrixFamily || f == kStatusFamily || f == mixed::kNorms) continue;
    store.blocks().for_each(
        f, [&](BlockId id) { all[static_cast<std::size_t>(store.blocks().index(id))].clear(); });
  }
  return all;
}

/// The two kinds of 24 bits: those of a CPU, and those of a GPU, here on the host.
class MixedRun : public ::testing::TestWithParam<Element> {};

INSTANTIATE_TEST_SUITE_P(Singles, MixedRun, ::testing::Values(Element::fp32, Element::fp16x2),
                         [](const auto& info) { return std::string(to_string(info.param)); });

/// By operation, in how many combinations of elements the tasks of a factorization come; each has a
/// kernel on the host.
std::map<std::string, int> kinds_of_tasks(const MixedCase& c) {
  std::map<std::string, int> kinds;
  std::set<std::pair<std::string, std::string>> kernels;
  const Schedule schedule = tile_cholesky(c.problem, {});
  for (std::int64_t s = 0; s < schedule.steps; ++s) {
    TaskList list;
    schedule.emit(s, list);
    for (const Task& task : std::as_const(list).tasks()) {
      const auto operands = std::as_const(list).operands(task);
      const Elements elements = elements_of(schedule.blocks, task, operands);
      EXPECT_NE(host_backend().kernels().find(task.operation->name, elements), nullptr)
          << task.operation->name << " in " << to_string(elements);
      if (kernels.emplace(task.operation->name, to_string(elements)).second)
        ++kinds[std::string(task.operation->name)];
    }
  }
  return kinds;
}

TEST_P(MixedRun, HasTilesSumsAndProductsOfEveryKind) {
  for (const bool scrambled : {false, true}) {
    const MixedCase c = scrambled ? scrambled_case(kMixedOrder, kMixedTile, GetParam())
                                  : MixedCase(kMixedOrder, kMixedTile, GetParam());
    for (const std::int64_t count : c.map().tile_counts()) EXPECT_GT(count, 0);
    for (const double count : c.map().product_counts()) EXPECT_GT(count, 0);
    std::map<std::string, int> kinds = kinds_of_tasks(c);
    EXPECT_EQ(kinds["covariance"], 2) << "sums in fp64 and in fp32";
    const bool inverses = GetParam() == Element::fp16x2;
    EXPECT_EQ(kinds["trsm"], inverses ? 1 : 2);
    EXPECT_EQ(kinds["multiply_inverse"], !inverses ? 0 : scrambled ? 2 : 1);
    EXPECT_EQ(kinds["invert_factor"], inverses ? 1 : 0);
    EXPECT_EQ(kinds["tile_norm"], 2);
    EXPECT_GE(kinds["gemm"], scrambled ? 10 : 6);
    EXPECT_GE(kinds["syrk"], scrambled ? 3 : 2);
    EXPECT_GE(kinds["convert"], scrambled ? 8 : 6);
  }
}

/// On 1, 2 and 3 devices, with little memory, some and much, under all policies.
void expect_bits_of_the_schedule_in_order(const MixedCase& reference, double accuracy) {
  const auto in_order = reference.make_store();
  run_in_order(tile_cholesky(reference.problem, {}), host_backend(), *in_order,
               reference.run_options());
  const Bytes expected = results_of(*in_order);
  EXPECT_LE(relative_residual(reference.a, reference.lower_in(*in_order)), accuracy);
  Thinned thinned(5);
  for (const int devices : {1, 2, 3}) {
    MixedCase c = reference;
    c.problem.devices = devices;
    const std::int64_t least = smallest_budget_bytes(tile_cholesky(c.problem, {}));
    for (const std::int64_t budget : {least, least + 7 * kMixedTile * kMixedTile * 8, kMuch}) {
      DeviceSet set(options_on(devices, budget).run);
      for (const Policy policy : kPolicies) {
        if (thinned.skips()) continue;
        SCOPED_TRACE(std::to_string(devices) + " devices of " + std::to_string(budget) +
                     " bytes, policy " + std::to_string(static_cast<int>(policy)));
        const PlannedRun planned = plan_cholesky(c.problem, set.machine(), policy);
        const auto store = c.make_store();
        set.set_residency({});
        const RunOutcome outcome = run(*planned.plan, set, *store, c.run_options());
        ASSERT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
        ASSERT_TRUE(results_of(*store) == expected);
      }
    }
  }
}

TEST_P(MixedRun, HasTheBitsOfTheScheduleInOrderWhateverTheBudgetPolicyAndDevices) {
  expect_bits_of_the_schedule_in_order(MixedCase(kMixedOrder, kMixedTile, GetParam()), kAllowed);
}

TEST_P(MixedRun, SoItHasWithAMapThatMixesAllKinds) {
  expect_bits_of_the_schedule_in_order(scrambled_case(kMixedOrder, kMixedTile, GetParam()), 0.2);
}

TEST_P(MixedRun, ATileFactorHasThemTooWhereverItsTilesStay) {
  const MixedCase c(kMixedOrder, kMixedTile, GetParam());
  const auto in_order = c.make_store();
  run_in_order(tile_cholesky(c.problem, {}), host_backend(), *in_order, c.run_options());
  const Matrix<double> expected = c.lower_in(*in_order);
  for (const int devices : {1, 2, 3}) {
    const std::int64_t least = smallest_budget_bytes(tile_cholesky(c.problem, {}));
    for (std::int64_t budget = least; budget < 400'000;
         budget += kSanitized ? budget : budget / 3) {
      TileFactor factor(c.problem, options_on(devices, budget));
      ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), c.parameters).ok);
      EXPECT_EQ(factor.report().traffic, factor.report().planned_traffic);
      ASSERT_TRUE(same_bits(lower_of(factor).data, expected.data)) << devices << " " << budget;
    }
  }
}

TEST_P(MixedRun, TilesThatFitStayUntilTheyAreAskedFor) {
  const MixedCase c(kMixedOrder, kMixedTile, GetParam());
  const auto devices = std::make_shared<DeviceSet>(options_on(1, kMuch).run);
  TileFactor factor(c.problem, options_on(1, kMuch), devices);
  ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), c.parameters).ok);
  const std::uint64_t identity = factor.problem().factor_identity;
  const BlockTable blocks = tile_cholesky(c.problem, {}).blocks;
  std::int64_t small = blocks.total_bytes(kStatusFamily);
  const auto counts = c.map().tile_counts();
  small +=
      (counts[0] + counts[1] + counts[2] + counts[3]) * static_cast<std::int64_t>(sizeof(TileNorm));
  EXPECT_EQ(factor.report().traffic.device_to_host_bytes, small) << "statuses and norms alone";
  EXPECT_EQ(factor.report().traffic.host_to_device_bytes, kMixedOrder * 2 * 8) << "coordinates";
  EXPECT_TRUE(devices->residency().only_here(identity));

  const Matrix<double> b = make_matrix<double>(kMixedOrder, 3, [](auto i, auto j) {
    return std::sin(1.0 + 3.0 * static_cast<double>(i) + 7.0 * static_cast<double>(j));
  });
  Matrix<double> first = b;
  for (int i = 0; i < 5; ++i) {
    Matrix<double> x = b;
    const RunReport report = factor.sweep(Sweep::both, x.view());
    EXPECT_EQ(report.traffic.total(), 2 * kMixedOrder * 3 * 8) << "right-hand sides alone, " << i;
    EXPECT_EQ(report.traffic, report.planned_traffic);
    if (i == 0) first = x;
    ASSERT_TRUE(same_bits(x.data, first.data)) << i;
  }
  EXPECT_TRUE(devices->residency().only_here(identity)) << "still";
  const Matrix<double> m = lower_of(factor);
  EXPECT_FALSE(devices->residency().only_here(identity)) << "at home, too";
  EXPECT_FALSE(devices->residency().empty());
  EXPECT_LE(relative_residual(c.a, m), kAllowed);
  Matrix<double> x = b;
  EXPECT_EQ(factor.sweep(Sweep::both, x.view()).traffic.total(), 2 * kMixedOrder * 3 * 8);
  EXPECT_TRUE(same_bits(x.data, first.data));
  EXPECT_TRUE(same_bits(lower_of(factor).data, m.data));
}

// Blocks of 5 or 10 columns are of sizes that no tile has: where the tiles fill the memory there is
// no slot for them beside what is only on the devices.
TEST_P(MixedRun, APlanWithoutRoomForTheTilesBringsThemHomeFirst) {
  const MixedCase c(kMixedOrder, kMixedTile, GetParam());
  const std::int64_t least = smallest_budget_bytes(tile_cholesky(c.problem, {}));
  const Matrix<double> b = make_matrix<double>(kMixedOrder, 40, [](auto i, auto j) {
    return std::cos(1.0 + 5.0 * static_cast<double>(i) + static_cast<double>(j));
  });
  std::map<std::int64_t, Matrix<double>> expected;
  int stayed = 0;
  int came = 0;
  for (const int count : {1, 2, 3}) {
    for (std::int64_t budget = least; budget < 200'000;
         budget += kSanitized ? budget : budget / 4) {
      // Copies are said to be slow, so that tiles stay where they are as long as they can.
      CovarianceOptions slow = options_on(count, budget);
      slow.run.rates = Machine::emulated(1, budget);
      slow.run.rates->devices[0].kind = DeviceKind::cpu;
      slow.run.rates->devices[0].host_to_device =
          slow.run.rates->devices[0].device_to_host = {1e4, 0};
      const auto devices = std::make_shared<DeviceSet>(slow.run);
      TileFactor factor(c.problem, slow, devices);
      const auto only_here = [&] {
        return devices->residency().only_here(factor.problem().factor_identity);
      };
      for (const std::int64_t columns : {5, 10, 40, 1}) {
        const bool again = columns != 1;
        ASSERT_TRUE(!again || factor.factor_covariance(c.points.data.data(), c.parameters).ok);
        const bool before = only_here();
        Matrix<double> x = make_matrix<double>(kMixedOrder, columns, b);
        const RunReport report = factor.sweep(Sweep::both, x.view());
        EXPECT_EQ(report.traffic, report.planned_traffic);
        const Matrix<double>& first = expected.try_emplace(columns, x).first->second;
        ASSERT_TRUE(same_bits(x.data, first.data)) << count << " " << budget << " " << columns;
        if (before) ++(only_here() ? stayed : came);
      }
    }
  }
  EXPECT_GT(stayed, kSanitized ? 3 : 10);
  EXPECT_GT(came, kSanitized ? 3 : 10);
}

TEST_P(MixedRun, RoomForTargetsIsNotMadeAtTheExpenseOfTheTiles) {
  const MixedCase c(kMixedOrder, kMixedTile, GetParam());
  TileFactor factor(c.problem, options_on(2, 8 * kMuch));
  ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), c.parameters).ok);
  const Matrix<double> b =
      make_matrix<double>(kMixedOrder, 2, [](auto i, auto j) { return i + j; });
  Matrix<double> before = b;
  (void)factor.sweep(Sweep::both, before.view());
  factor.reserve_for_targets(50'000, 3);
  Matrix<double> after = b;
  (void)factor.sweep(Sweep::both, after.view());
  EXPECT_TRUE(same_bits(after.data, before.data));
  EXPECT_LE(relative_residual(c.a, lower_of(factor)), kAllowed);
}

TEST_P(MixedRun, ASecondFactorizationIsLikeAFirstOne) {
  const MixedCase c(kMixedOrder, kMixedTile, GetParam());
  for (const std::int64_t budget : {std::int64_t{60'000}, kMuch}) {
    TileFactor factor(c.problem, options_on(2, budget));
    ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), c.parameters).ok);
    const Matrix<double> first = lower_of(factor);
    CovarianceParameters others = c.parameters;
    others.variance = 1.5;
    TileFactor fresh(c.problem, options_on(2, budget));
    ASSERT_TRUE(fresh.factor_covariance(c.points.data.data(), others).ok);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), others).ok);
      EXPECT_EQ(factor.report().traffic, factor.report().planned_traffic);
      if (i == 1) continue;  // twice without a use between
      ASSERT_TRUE(same_bits(lower_of(factor).data, lower_of(fresh).data)) << i;
    }
    ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), c.parameters).ok);
    ASSERT_TRUE(same_bits(lower_of(factor).data, first.data));
  }
}

TEST_P(MixedRun, NormsAreThoseOfTheTilesBeforeTheyWereRounded) {
  const MixedCase c(kMixedOrder, kMixedTile, GetParam());
  TileFactor factor(c.problem, options_on(2, kMuch));
  ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), c.parameters).ok);
  const TileNorms exact = exact_norms(c.a, c.l, kMixedTile);
  const std::vector<TileNorm> met = factor.measured_norms();
  ASSERT_EQ(met.size(), exact.factor.size());
  for (std::int64_t j = 0; j < c.map().tiles(); ++j) {
    for (std::int64_t i = j; i < c.map().tiles(); ++i) {
      const std::size_t at = exact.at(i, j);
      const bool told = i > j && c.map().stored(i, j) != TilePrecision::none;
      const double norm = std::sqrt(met[at].square);
      EXPECT_NEAR(norm, told ? exact.factor[at] : 0, 1e-5) << i << "," << j;
      EXPECT_NEAR(met[at].largest, told ? exact.largest[at] : 0, 1e-5) << i << "," << j;
    }
  }
  double smallest = 1e300;
  for (std::int64_t k = 0; k < kMixedOrder; ++k)
    smallest = std::min(smallest, c.l(k, k) * c.l(k, k));
  EXPECT_NEAR(factor.smallest_pivot(), smallest, 1e-4 * smallest);
  EXPECT_THROW((void)factor.block_norms(kMixedTile), Error) << "tiles are in few bits";
}

TEST(BlockNormsOfFactor, AreToldWhereItsTilesLie) {
  const MixedCase c(kMixedOrder, kMixedTile, Element::fp32);
  for (const bool kept : {false, true}) {
    for (const int devices : {1, 3}) {
      CholeskyProblem problem = c.problem;
      problem.formats = {};
      problem.formats.kept = kept;
      CovarianceOptions options = options_on(devices, kMuch);
      TileFactor factor(problem, options);
      ASSERT_TRUE(factor.factor_covariance(c.points.data.data(), c.parameters).ok);
      EXPECT_EQ(factor.report().traffic, factor.report().planned_traffic);
      // Statuses, and on several devices tiles that others need.
      if (kept && devices == 1) {
        EXPECT_LE(factor.report().traffic.device_to_host_bytes, kMixedOrder * 8);
      }
      for (const std::int64_t order : {kMixedTile, kMixedTile / 2, std::int64_t{1}}) {
        const std::vector<TileNorm> norms = factor.block_norms(order);
        const TileNorms exact = exact_norms(c.a, c.l, order);
        ASSERT_EQ(norms.size(), exact.factor.size());
        double least = 1e300;
        for (std::int64_t j = 0; j < exact.tiles; ++j) {
          for (std::int64_t i = j; i < exact.tiles; ++i) {
            const TileNorm& norm = norms[exact.at(i, j)];
            EXPECT_NEAR(std::sqrt(norm.square), exact.factor[exact.at(i, j)], 1e-12);
            EXPECT_NEAR(norm.largest, exact.largest[exact.at(i, j)], 1e-12);
            if (i == j) least = std::min(least, norm.least_pivot);
          }
        }
        EXPECT_NEAR(least, exact.smallest_pivot, 1e-12);
      }
      EXPECT_THROW((void)factor.block_norms(kMixedTile - 1), Error);
      // It is whole afterwards.
      const Matrix<double> l = lower_of(factor);
      for (std::size_t at = 0; at < l.data.size(); ++at)
        ASSERT_NEAR(l.data[at], c.l.data[at], 1e-12);
    }
  }
}

TEST(MixedRunOfFp64, HasTheBitsOfTheUniformFactor) {
  const Matrix<double> points = ordered_points(kMixedOrder, kMixedTile, 3);
  const CovarianceParameters parameters{1, 0.1, 0.5, 0, true};
  CholeskyProblem problem;
  problem.n = kMixedOrder;
  problem.point_dimensions = 2;
  for (const PrecisionRule rule : {PrecisionRule::factor, PrecisionRule::paper}) {
    for (const int devices : {1, 2}) {
      TileFactor uniform(problem, options_on(devices, kMuch));
      ASSERT_TRUE(uniform.factor_covariance(points.data.data(), parameters).ok);
      CovarianceOptions options = options_on(devices, kMuch);
      options.mixed.accuracy = 1e-6;
      options.mixed.rule = rule;
      options.mixed.allowed = {true, false, false, false};
      options.mixed.keep_all = true;
      MixedFactor mixed(points.view(), options);
      const FactorInfo& info = mixed.factor(parameters);
      EXPECT_EQ(info.log_determinant, uniform.info().log_determinant);
      EXPECT_EQ(mixed.report().accuracy, 1e-6);
      EXPECT_EQ(mixed.report().tiles[0], 55);
      ASSERT_NE(mixed.tiles().problem().formats.map, nullptr) << "by the road of mixed tiles";
      Matrix<double> x =
          make_matrix<double>(kMixedOrder, 2, [](auto i, auto j) { return i - 3 * j; });
      Matrix<double> y = x;
      (void)mixed.tiles().sweep(Sweep::both, x.view());
      (void)uniform.sweep(Sweep::both, y.view());
      EXPECT_TRUE(same_bits(x.data, y.data));
      EXPECT_TRUE(same_bits(lower_of(mixed.tiles()).data, lower_of(uniform).data));
    }
  }
}

// ---- devices that die

/// Every use of it is refused.
void expect_refused(TileFactor& factor) {
  const auto refused = [](const char* what, auto&& call) {
    try {
      call();
      ADD_FAILURE() << what << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse) << what << ": " << error.what();
    }
  };
  Matrix<double> x(kMixedOrder, 1);
  refused("sweep", [&] { (void)factor.sweep(Sweep::both, x.view()); });
  refused("copy_lower", [&] { (void)lower_of(factor); });
  refused("smallest_pivot", [&] { (void)factor.smallest_pivot(); });
  refused("multiply", [&] { (void)factor.multiply(x.data); });
}

/// The death itself, or that a block is not where the dead one was to bring it: whichever of the
/// devices says so first.
template <class F>
void expect_death(F&& call) {
  try {
    call();
    ADD_FAILURE() << "a death went unnoticed";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.find("died") != std::string::npos ||
                what.find("was never written") != std::string::npos)
        << what;
  }
}

class MixedFault : public ::testing::Test {
 protected:
  MixedFault() : c(kMixedOrder, kMixedTile, Element::fp32, 2) {
    RunOptions options;
    options.device_memory_bytes = kMuch;
    devices = std::make_shared<DeviceSet>(backend, std::vector{0, 1}, options);
    factor.emplace(c.problem, options_on(2, kMuch), devices);
    backend.heal();
    factor_again();
    operations_of_factor = backend.operations(1);
    expected = lower_of(*factor);
  }
  void factor_again() {
    backend.heal();
    ASSERT_TRUE(factor->factor_covariance(c.points.data.data(), c.parameters).ok);
  }
  void solve() {
    Matrix<double> x(kMixedOrder, 2);
    std::fill(x.data.begin(), x.data.end(), 1.0);
    (void)factor->sweep(Sweep::both, x.view());
  }

  FaultBackend backend;
  MixedCase c;
  std::shared_ptr<DeviceSet> devices;
  std::optional<TileFactor> factor;
  std::int64_t operations_of_factor = 0;
  Matrix<double> expected{0, 0};
};

TEST_F(MixedFault, ASolveThatDiesTakesTheTilesWithItThatWereOnlyThere) {
  factor_again();
  backend.set({});
  solve();
  const std::int64_t operations = backend.operations(1);
  ASSERT_GT(operations, 20);
  for (std::int64_t k = 1; k <= operations; k += 9) {
    factor_again();
    backend.set({.dying_device = 1, .dies_at = k});
    expect_death([&] { solve(); });
    expect_refused(*factor);
    backend.heal();
    expect_refused(*factor);
  }
  factor_again();
  solve();
  EXPECT_TRUE(same_bits(lower_of(*factor).data, expected.data)) << "as if nothing had been";
}

TEST_F(MixedFault, ASolveThatDiesLeavesTilesThatAreAtHome) {
  factor_again();
  (void)lower_of(*factor);
  backend.set({.dying_device = 1, .dies_at = 5});
  expect_death([&] { solve(); });
  backend.heal();
  solve();
  EXPECT_TRUE(same_bits(lower_of(*factor).data, expected.data));
}

TEST_F(MixedFault, AFetchThatDiesLosesThem) {
  for (const std::int64_t k : {1, 3, 12}) {
    factor_again();
    backend.set({.dying_device = 0, .dies_at = k});
    expect_death([&] { (void)lower_of(*factor); });
    backend.heal();
    expect_refused(*factor);
  }
  factor_again();
  EXPECT_TRUE(same_bits(lower_of(*factor).data, expected.data));
}

TEST_F(MixedFault, AFactorizationThatDiesLeavesNoFactor) {
  for (std::int64_t k = 1; k <= operations_of_factor; k += operations_of_factor / 7) {
    backend.set({.dying_device = 1, .dies_at = k});
    expect_death([&] { (void)factor->factor_covariance(c.points.data.data(), c.parameters); });
    backend.heal();
    expect_refused(*factor);
  }
  factor_again();
  EXPECT_TRUE(same_bits(lower_of(*factor).data, expected.data));
}

}  // namespace
}  // namespace strata::test
