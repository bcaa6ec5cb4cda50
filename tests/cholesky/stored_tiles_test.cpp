// Cholesky factors in storage: the bits of factors in memory whatever host and devices hold, the
// bytes of the plan, runs that end anywhere and go on, and a covariance that is factored again.

#include <gtest/gtest.h>

#include <complex>
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "cholesky/covariance_solver.hpp"
#include "cholesky/tile_factor.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/random_matrices.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/kill_in_the_middle.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/simulated_files.hpp"
#include "tests/support/storage_options.hpp"

namespace strata {
namespace {

using test::in_folders;
using test::Matrix;
using test::Scratch;
using test::Thinned;
using test::within_budget;
using TileBudget = test::StorageBudget;

CholeskyOptions tiles_within(const TileBudget& budget, std::int64_t n, std::int64_t tile,
                             std::int64_t bytes_of_element = 8) {
  return {.run = within_budget(budget, n * (n + tile) / 2 * bytes_of_element), .tile = tile};
}

template <class T>
CholeskyProblem tiles_of(std::int64_t n) {
  CholeskyProblem problem;
  problem.n = n;
  problem.precision = element_of<T>;
  return problem;
}

template <class T>
std::unique_ptr<TileFactor> factored_tiles(const Matrix<T>& a, const CholeskyOptions& options,
                                           std::uint64_t matrix = 0) {
  auto factor = std::make_unique<TileFactor>(tiles_of<T>(a.rows), options, StoredMatrix{matrix});
  (void)factor->factor_stored(source_of_view(a.data.data(), a.ld(), true));
  return factor;
}

template <class T>
void expect_same_tiles(TileFactor& a, TileFactor& b, const std::string& what) {
  ASSERT_EQ(a.info().ok, b.info().ok) << what;
  ASSERT_EQ(a.info().first_bad_pivot, b.info().first_bad_pivot) << what;
  if (!a.info().ok) return;
  ASSERT_EQ(a.info().log_determinant, b.info().log_determinant) << what;
  const std::int64_t n = a.problem().n;
  Matrix<T> one(n, n);
  Matrix<T> two(n, n);
  a.copy_lower(one.view());
  b.copy_lower(two.view());
  ASSERT_TRUE(one.data == two.data) << what;
}

const TileBudget kTileBudgets[] = {{"host:1", 0, 0},      {"host:1", 0.25, 0},
                                   {"host:2", 0.5, 0},    {"host:1", 0.3, 0.12},
                                   {"host:2", 0.6, 0.15}, {"host:1", 1.5, 0.15}};

template <class T>
void expect_tiles_of_memory(const Matrix<T>& a, std::int64_t tile, const TileBudget& budget,
                            int directories) {
  const std::int64_t n = a.rows;
  const std::string what = fmt::format("n {} tile {} {} host {} device {}", n, tile, budget.devices,
                                       budget.host, budget.device);
  const auto memory = factored_tiles<T>(a, tiles_within({"host:1"}, n, tile, sizeof(T)));
  for (const std::uint64_t matrix : {0U, 9U}) {
    const Scratch folder;
    const auto stored = factored_tiles<T>(
        a, in_folders(tiles_within(budget, n, tile, sizeof(T)), folder, directories), matrix);
    expect_same_tiles<T>(*memory, *stored, what);
    if (::testing::Test::HasFatalFailure()) return;
    if (!memory->info().ok) continue;  // which ended early
    const RunReport& report = stored->report();
    EXPECT_EQ(report.traffic, report.planned_traffic) << what;
    const std::int64_t triangle = n * (n + 1) / 2 * std::int64_t{sizeof(T)};
    EXPECT_GE(report.traffic.storage_read_bytes, triangle) << what;
    EXPECT_GE(report.traffic.storage_write_bytes, triangle) << what;
    Matrix<T> x = test::make_matrix<T>(n, 3, [](auto i, auto j) {
      return 2 * random_uniform(5, static_cast<std::uint64_t>(i * 7 + j)) - 1;
    });
    Matrix<T> y = x;
    (void)memory->sweep(Sweep::both, x.view());
    const RunReport solve = stored->sweep(Sweep::both, y.view());
    EXPECT_EQ(solve.traffic, solve.planned_traffic) << what;
    ASSERT_TRUE(x.data == y.data) << what;
  }
}

TEST(StoredTiles, HaveTheBitsOfAFactorInMemoryWhateverHostAndDevicesHold) {
  Thinned thinned(5);
  for (const std::int64_t n : {1, 9, 130, 161}) {
    const Matrix<double> a = test::random_spd_matrix<double>(n, static_cast<std::uint64_t>(n));
    for (const TileBudget& budget : kTileBudgets) {
      if (thinned.skips()) continue;
      TileBudget wide = budget;
      if (n < 60) wide.host = wide.device = 0;
      expect_tiles_of_memory<double>(a, 10, wide, static_cast<int>(1 + n % 3));
      if (HasFatalFailure()) return;
    }
  }
  expect_tiles_of_memory<float>(test::random_spd_matrix<float>(90, 2), 8, {"host:1", 0.3, 0}, 2);
}

TEST(StoredTiles, SayWhereAMatrixIsNotPositiveDefinite) {
  Matrix<double> a = test::random_spd_matrix<double>(100, 3);
  a(57, 57) = -1;
  for (const TileBudget& budget : {TileBudget{"host:1", 0.3, 0}, TileBudget{"host:1", 0.4, 0.15}}) {
    expect_tiles_of_memory<double>(a, 10, budget, 1);
    if (HasFatalFailure()) return;
  }
}

TEST(StoredTiles, AreReadLessTheMoreHostMemoryThereIs) {
  const std::int64_t n = 320;
  const std::int64_t tile = 10;
  const Matrix<double> a = test::random_spd_matrix<double>(n, 4);
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  const std::int64_t triangle = n * (n + tile) / 2 * 8;
  Thinned thinned(3);
  for (const double host : {0.06, 0.12, 0.3, 1.2}) {
    for (const double device : {0.0, 0.03}) {
      if (thinned.skips()) continue;
      const Scratch folder;
      const CholeskyOptions options =
          in_folders(tiles_within({"host:1", host, device}, n, tile), folder, 1);
      const auto stored = factored_tiles<double>(a, options, 3);
      const RunReport& report = stored->report();
      EXPECT_LE(report.host_bytes, options.run.host_memory_bytes) << host << ' ' << device;
      const std::int64_t read = report.traffic.storage_read_bytes;
      EXPECT_LE(report.traffic.storage_write_bytes, triangle + triangle / 4) << "each tile once";
      if (device == 0) {
        EXPECT_LT(read, before) << host;
        before = read;
      } else if (host > 0.2) {
        // Two levels: blocks are what host memory holds, not what the device does.
        EXPECT_LE(read, before * 3 / 2) << host << ' ' << report.policy;
      }
    }
  }
  if (!test::kSanitized) {
    EXPECT_LE(before, triangle) << "all of it is read once";
  }
}

TEST(StoredTiles, GoOnAfterAKillToTheSameBits) {
  // The thread sanitizer knows no process that forks beside threads; by the other few are killed,
  // and those early.
  if (test::kSanitized) GTEST_SKIP() << "forks beside threads";
  const std::int64_t n = 180;
  const Matrix<double> a = test::random_spd_matrix<double>(n, 2);
  const auto memory = factored_tiles<double>(a, tiles_within({"host:1"}, n, 12));
  int found = 0;
  const auto kills = static_cast<int>(test::campaign(200, 50, 4));
  for (int kill = 0; kill < kills; ++kill) {
    const Scratch folder;
    const TileBudget budget =
        kill % 2 == 0 ? TileBudget{"host:1", 0.3, 0} : TileBudget{"host:1", 0.5, 0.2};
    CholeskyOptions options = in_folders(tiles_within(budget, n, 12), folder, 1 + kill % 2, true);
    for (std::uint64_t attempt = 0; attempt < 2; ++attempt) {
      const auto roll = [&](std::uint64_t k) {
        return random_bits(static_cast<std::uint64_t>(kill), attempt + 2 * k);
      };
      test::KillAt at{static_cast<useconds_t>(roll(0) % 60000)};
      if (kill % 4 > 1) at = {0, folder.path("d0") + "/journal", 200 + roll(1) % 6000};
      test::kill_in_the_middle([&] { (void)factored_tiles<double>(a, options, 5); }, at);
    }
    if (StoredTiles::at(options.run.storage).problem.tile > 0)
      options.tile = 0;  // what is there decides
    const auto stored = factored_tiles<double>(a, options, 5);
    const std::int64_t done = stored->stored_tiles_done();
    found += done > 0 && done < 15 * 16 / 2 ? 1 : 0;
    expect_same_tiles<double>(*memory, *stored, fmt::format("kill {}", kill));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(found, 0) << "some were killed in the middle, and were gone on with";
}

TEST(StoredTiles, SurviveALossOfPowerAtEveryOperation) {
  const std::int64_t n = 46;
  const Matrix<double> a = test::random_spd_matrix<double>(n, 7);
  const auto memory = factored_tiles<double>(a, tiles_within({"host:1"}, n, 12));
  std::int64_t operations = 0;
  CholeskyOptions options = tiles_within({"host:1", 0.7, 0}, n, 12);
  options.run.storage.directories = {"a", "b"};
  options.run.storage.resume = true;
  {
    test::SimulatedFiles files(4096);
    options.run.storage.files = &files;
    (void)factored_tiles<double>(a, options, 5);
    operations = files.operations();
  }
  std::int64_t found = 0;
  for (std::int64_t at = 0; at < operations; ++at) {
    test::SimulatedFiles files(4096);
    options.run.storage.files = &files;
    files.lose_power_at(at);
    try {
      (void)factored_tiles<double>(a, options, 5);
    } catch (const Error& error) {
      ASSERT_TRUE(files.power_is_lost()) << error.what();
    }
    files.restart(static_cast<std::uint64_t>(at));
    const auto stored = factored_tiles<double>(a, options, 5);
    found += stored->stored_tiles_done();
    expect_same_tiles<double>(*memory, *stored, fmt::format("operation {}", at));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(found, 0) << "what was durable is not done again";
}

TEST(StoredTiles, OfAnotherMatrixAreRefused) {
  const Matrix<double> a = test::random_spd_matrix<double>(60, 2);
  const Scratch folder;
  const CholeskyOptions options = in_folders(tiles_within({"host:1"}, 60, 10), folder, 1, true);
  (void)factored_tiles<double>(a, options, 5);
  EXPECT_THROW((void)factored_tiles<double>(a, options, 6), Error);
  CholeskyOptions again = options;
  again.run.storage.resume = false;
  EXPECT_THROW((void)factored_tiles<double>(a, again, 5), Error);
  again = options;
  again.tile = 15;
  EXPECT_THROW((void)factored_tiles<double>(a, again, 5), Error) << "tiles of another order";
  again.tile = 0;
  EXPECT_NO_THROW((void)factored_tiles<double>(a, again, 5));
}

template <class T>
void expect_opened_later(std::int64_t n) {
  const Matrix<double> real = test::random_spd_matrix<double>(n, 8);
  const auto a = test::make_matrix<T>(n, n, [&](auto i, auto j) { return T(real.view()(i, j)); });
  const auto b = test::make_matrix<T>(
      n, 2, [](auto i, auto j) { return T(static_cast<double>(1 + i % 5 - j)); });
  Matrix<T> expected = b;
  CholeskyFactor memory = cholesky(a.view(), tiles_within({"host:1"}, n, 12));
  (void)memory.solve(expected.view());
  const Scratch folder;
  CholeskyOptions options =
      in_folders(tiles_within({"host:1", 0.8, 0}, n, 12, sizeof(T)), folder, 2);
  {
    const CholeskyFactor factor = cholesky(a.view(), options);
    EXPECT_TRUE(factor.info().ok);
    EXPECT_NE(factor.report().storage, "");
  }
  EXPECT_THROW((void)cholesky(a.view(), options), Error) << "it holds one already";
  options.tile = 0;
  CholeskyFactor one = open_cholesky(options.run);
  CholeskyFactor two = open_cholesky(options.run);
  EXPECT_EQ(one.n(), n);
  for (CholeskyFactor* factor : {&one, &two}) {
    EXPECT_EQ(factor->info().log_determinant, memory.info().log_determinant);
    Matrix<T> x = b;
    (void)factor->solve(x.view());
    EXPECT_TRUE(x.data == expected.data);
    Matrix<T> l(n, n);
    Matrix<T> m(n, n);
    factor->copy_lower(l.view());
    memory.copy_lower(m.view());
    EXPECT_TRUE(l.data == m.data);
  }
}

TEST(StoredTiles, AreOpenedLaterByAsManyAsLike) {
  expect_opened_later<double>(70);
  expect_opened_later<float>(50);
  expect_opened_later<std::complex<double>>(40);
  expect_opened_later<std::complex<float>>(40);
}

TEST(StoredTiles, ThatAreNotWholeAreNotOpened) {
  const Scratch folder;
  CholeskyOptions options = in_folders(tiles_within({"host:1"}, 60, 12), folder, 1);
  EXPECT_THROW((void)open_cholesky({}), Error);
  EXPECT_THROW((void)open_cholesky(options.run), Error) << "there is nothing";
  Matrix<double> a = test::random_spd_matrix<double>(60, 8);
  a(30, 30) = -1;
  EXPECT_FALSE(cholesky(std::as_const(a).view(), options).info().ok);
  try {
    // The run may have gone on a little behind the pivot.
    EXPECT_EQ(open_cholesky(options.run).info().first_bad_pivot, 30);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(" of 15 tiles"), std::string::npos) << error.what();
  }
  // Another matrix goes elsewhere.
  a(30, 30) = 60;
  options.run.storage.resume = true;
  EXPECT_THROW((void)cholesky(std::as_const(a).view(), options), Error);
}

// ---- covariances

struct StoredField {
  Matrix<double> points;
  CovarianceParameters parameters{1.7, 0.3, 1.5, 0.05, true};

  explicit StoredField(std::int64_t n) : points(test::uniform_matrix(n, 2, 2)) {}
  [[nodiscard]] MatrixView<const double> view() const {
    return {points.data.data(), points.rows, 2, points.rows};
  }
};

/// All that is done with the factor of a covariance, in one column of numbers.
std::vector<double> all_of(CovarianceSolver& solver, const StoredField& field) {
  const std::int64_t n = field.points.rows;
  std::vector<double> out{solver.report().flops};
  const auto add = [&](const Matrix<double>& m) {
    out.insert(out.end(), m.data.begin(), m.data.end());
  };
  Matrix<double> x = test::uniform_matrix(n, 2, 3);
  (void)solver.solve(x.view());
  add(x);
  (void)solver.multiply_lower(x.view());
  (void)solver.multiply_lower_transposed(x.view());
  add(x);
  (void)solver.multiply(std::as_const(x).view(), x.view());
  add(x);
  const Matrix<double> targets = test::uniform_matrix(23, 2, 4);
  Matrix<double> products(23, 2);
  std::vector<double> squares(23);
  (void)solver.whitened_sums({targets.data.data(), 23, 2, 23}, std::as_const(x).view(),
                             products.view(), squares);
  add(products);
  out.insert(out.end(), squares.begin(), squares.end());
  std::vector<double> diagonal(at(n));
  (void)solver.inverse_diagonal(diagonal);
  out.insert(out.end(), diagonal.begin(), diagonal.end());
  Matrix<double> lower(n, 17);
  solver.copy_lower(11, lower.view());
  add(lower);
  return out;
}

TEST(StoredTiles, OfCovariancesHaveTheBitsOfMemoryAgainAndAgain) {
  const StoredField field(150);
  Thinned thinned(4);
  for (const double accuracy : {0.0, 1e-5}) {
    CovarianceOptions in_memory{tiles_within({"host:1"}, 150, 16)};
    in_memory.mixed.accuracy = accuracy;
    CovarianceSolver memory(field.view(), in_memory);
    for (const TileBudget& budget : kTileBudgets) {
      if (thinned.skips()) continue;
      const std::string what =
          fmt::format("{} {} {} {}", accuracy, budget.devices, budget.host, budget.device);
      const Scratch folder;
      TileBudget wide = budget;
      wide.device *= 2;  // sums and other forms of tiles beside them
      CovarianceOptions options{in_folders(tiles_within(wide, 150, 16), folder, 2)};
      options.mixed.accuracy = accuracy;
      CovarianceSolver stored(field.view(), options);
      for (const double range : {0.3, 0.1, 0.2}) {
        CovarianceParameters parameters = field.parameters;
        parameters.range = range;
        const FactorInfo expected = memory.factor(parameters);
        const FactorInfo info = stored.factor(parameters);
        ASSERT_TRUE(info.ok && expected.ok) << what;
        ASSERT_EQ(info.log_determinant, expected.log_determinant) << what;
        EXPECT_EQ(stored.report().traffic, stored.report().planned_traffic) << what;
        ASSERT_TRUE(all_of(stored, field) == all_of(memory, field)) << what;
      }
      EXPECT_EQ(stored.report().storage.empty(), budget.host == 0)
          << what << ": only where host memory does not hold the factor";
      if (budget.host == 0) continue;
      // Tiles in several precisions stay where they are made until they have to leave.
      if (accuracy == 0) {
        EXPECT_GT(stored.report().traffic.storage_write_bytes, 0) << what;
      }
      // Files without names: nothing is left, whatever becomes of the process.
      for (int d = 0; d < 2; ++d)
        EXPECT_TRUE(std::filesystem::is_empty(folder.path("d" + std::to_string(d)))) << what;
    }
  }
}

}  // namespace
}  // namespace strata
