// LU in storage: the bits of a factor in memory whatever host and device hold, the bytes of the
// plan, runs that end anywhere and go on, and factors that are opened elsewhere.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>

#include <fmt/core.h>

#include "base/index.hpp"
#include "lu/lu_panels.hpp"
#include "strata/error.hpp"
#include "tests/io/scratch.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/kill_in_the_middle.hpp"
#include "tests/support/simulated_files.hpp"
#include "tests/support/storage_options.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::in_folders;
using test::Matrix;
using test::Scratch;
using Budget = test::StorageBudget;

template <class T>
LuOptions options_of(const Budget& budget, std::int64_t n, std::int64_t panel) {
  return {.run = test::within_budget(budget, n * n * std::int64_t{sizeof(T)}), .panel = panel};
}

template <class T>
LuProblem problem_of(std::int64_t n) {
  LuProblem problem;
  problem.n = n;
  problem.precision = element_of<T>;
  return problem;
}

template <class T>
LuPanels factored(const Matrix<T>& a, const LuOptions& options) {
  LuPanels panels(problem_of<T>(a.rows), options, 7);
  (void)panels.factor(source_of_view<T>(a.data.data(), a.ld(), false), 1);
  return panels;
}

template <class T>
void expect_same(LuPanels& a, LuPanels& b, const std::string& what) {
  ASSERT_EQ(a.info().ok, b.info().ok) << what;
  ASSERT_EQ(a.info().zero_pivot, b.info().zero_pivot) << what;
  ASSERT_EQ(a.info().growth, b.info().growth) << what;
  ASSERT_EQ(a.info().determinant.exponent, b.info().determinant.exponent) << what;
  ASSERT_EQ(a.info().determinant.mantissa, b.info().determinant.mantissa) << what;
  ASSERT_EQ(a.info().determinant.phase, b.info().determinant.phase) << what;
  ASSERT_TRUE(a.pivots() == b.pivots()) << what;
  const std::int64_t n = a.problem().n;
  Matrix<T> one = test::make_matrix<T>(n, n, [](auto, auto) { return T(0); });
  Matrix<T> two = one;
  a.copy_factors(one.view());
  b.copy_factors(two.view());
  ASSERT_TRUE(one.data == two.data) << what;
}

template <class T>
void expect_bits_of_memory(const Matrix<T>& a, std::int64_t panel, const Budget& budget,
                           int directories) {
  const std::int64_t n = a.rows;
  const std::string what = fmt::format("n {} panel {} {} host {} device {}", n, panel,
                                       budget.devices, budget.host, budget.device);
  LuPanels memory = factored<T>(a, options_of<T>({.devices = "host:1"}, n, panel));
  const Scratch folder;
  LuPanels stored =
      factored<T>(a, in_folders(options_of<T>(budget, n, panel), folder, directories));
  expect_same<T>(memory, stored, what);
  if (::testing::Test::HasFatalFailure()) return;
  const RunReport& report = stored.report();
  EXPECT_EQ(report.traffic, report.planned_traffic) << what;
  const std::int64_t bytes = n * n * std::int64_t{sizeof(T)};
  EXPECT_GE(report.traffic.storage_read_bytes, bytes) << what;
  EXPECT_GE(report.traffic.storage_write_bytes, bytes) << what;
  if (!memory.info().ok) return;
  for (const std::uint32_t variant : {0U, 1U}) {
    Matrix<T> x =
        test::make_matrix<T>(n, 3, [](auto i, auto j) { return T(test::signed_uniform(5, i, j)); });
    Matrix<T> y = x;
    (void)memory.solve<T>(x.view(), variant);
    const RunReport solve = stored.solve<T>(y.view(), variant);
    EXPECT_EQ(solve.traffic, solve.planned_traffic) << what;
    ASSERT_TRUE(x.data == y.data) << what;
  }
}

const Budget kBudgets[] = {{"host:1", 0, 0},         {"host:1", 0.2, 0},    {"host:2", 0.4, 0},
                           {"host:1", 0.2, 1 / 15.}, {"host:1", 0.35, 0.1}, {"host:2", 0.3, 0.1},
                           {"host:3", 1.5, 0.1},     {"host:1", 0.1, 0.2}};

TEST(StoredFactor, HasTheBitsOfAFactorInMemoryWhateverHostAndDevicesHold) {
  for (const std::int64_t n : {1, 7, 110, 151}) {
    const Matrix<double> a = test::random_general(n, static_cast<std::uint64_t>(n));
    for (const Budget& budget : kBudgets) {
      Budget wide = budget;
      if (n < 60) wide.host = wide.device = 0;
      expect_bits_of_memory<double>(a, n < 150 ? 2 : 3, wide, static_cast<int>(1 + n % 3));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(StoredFactor, IsRightOnHardMatrices) {
  for (const test::GeneralKind& kind : test::general_kinds()) {
    const Matrix<double> a = kind.make(48);
    for (const Budget& budget : {Budget{"host:1", 0.25, 0}, Budget{"host:2", 0.3, 0.15}}) {
      SCOPED_TRACE(kind.name);
      expect_bits_of_memory<double>(a, 2, budget, 2);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(StoredFactor, TakesComplexAndSingleNumbers) {
  const Matrix<double> re = test::random_general(90, 3);
  const Matrix<double> im = test::random_general(90, 4);
  const auto complex = test::make_matrix<Complex128>(
      90, 90, [&](auto i, auto j) { return Complex128(re.view()(i, j), im.view()(i, j)); });
  const auto single = test::make_matrix<float>(
      90, 90, [&](auto i, auto j) { return static_cast<float>(re.view()(i, j)); });
  for (const Budget& budget : {Budget{"host:1", 0.25, 0}, Budget{"host:1", 0.3, 0.15}}) {
    expect_bits_of_memory<Complex128>(complex, 2, budget, 2);
    expect_bits_of_memory<float>(single, 2, budget, 1);
  }
}

TEST(StoredFactor, ReadsLessTheMoreHostMemoryThereIs) {
  const std::int64_t n = 240;
  const Matrix<double> a = test::random_general(n, 9);
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const double host : {0.1, 0.2, 0.4, 1.2}) {
    for (const double device : {0.0, 0.12}) {
      const Scratch folder;
      LuPanels panels = factored<double>(
          a, in_folders(options_of<double>({"host:1", host + device, device}, n, 4), folder, 1));
      const Traffic& traffic = panels.report().traffic;
      const std::int64_t bytes = n * n * 8;
      // Every panel is written once, but for what is evicted before its last update.
      EXPECT_LE(traffic.storage_write_bytes, bytes + bytes / 5) << host << ' ' << device;
      if (device == 0.0) {
        EXPECT_LE(traffic.storage_read_bytes, before) << host;
        before = traffic.storage_read_bytes;
      } else {
        // Two levels: slabs are what host memory holds, not what the device does.
        EXPECT_LE(traffic.storage_read_bytes, before * 13 / 10) << host;
      }
    }
  }
  EXPECT_LE(before, n * n * 8 + 64 * n) << "all of it is read once";
}

TEST(StoredFactor, GoesOnAfterAKillToTheSameBits) {
  const std::int64_t n = 160;
  const Matrix<double> a = test::random_general(n, 2);
  LuPanels memory = factored<double>(a, options_of<double>({"host:1"}, n, 4));
  std::int64_t found = 0;
  std::int64_t found_whole = 0;
  const auto kills = static_cast<int>(test::campaign(200, 50, 12));
  for (int kill = 0; kill < kills; ++kill) {
    const Scratch folder;
    const Budget budget = kill % 2 == 0 ? Budget{"host:1", 0.2, 0} : Budget{"host:1", 0.25, 0.1};
    const LuOptions options =
        in_folders(options_of<double>(budget, n, 4), folder, 1 + kill % 2, true);
    for (std::uint64_t attempt = 0; attempt < 2; ++attempt) {
      const auto roll = [&](std::uint64_t k) {
        return random_bits(static_cast<std::uint64_t>(kill), attempt + 2 * k);
      };
      test::KillAt at{static_cast<useconds_t>(roll(0) % 60000)};
      if (kill % 4 > 1) at = {0, folder.path("d0") + "/journal", 200 + roll(1) % 6000};
      test::kill_in_the_middle([&] { (void)factored<double>(a, options); }, at);
    }
    LuPanels stored = factored<double>(a, options);
    found += stored.found() > 0 ? 1 : 0;
    found_whole += stored.found() == stored.count() ? 1 : 0;
    expect_same<double>(memory, stored, fmt::format("kill {}", kill));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(found, found_whole) << "some were killed in the middle, and were gone on with";
}

TEST(StoredFactor, GoesOnAfterBeingCancelledAndSaysWhatItFound) {
  const std::int64_t n = 96;
  const Matrix<double> a = test::random_general(n, 6);
  const Scratch folder;
  LuOptions options = in_folders(options_of<double>({"host:1", 0.2, 0}, n, 4), folder, 2, true);
  const LuPanels whole = factored<double>(a, options);
  EXPECT_EQ(whole.found(), 0);
  EXPECT_EQ(whole.count(), 24);
  EXPECT_THROW((void)factored<double>(a, options), Error)
      << "one process, and one object, at a time";
}

TEST(StoredFactor, SurvivesALossOfPowerAtEveryOperation) {
  const std::int64_t n = 40;
  const Matrix<double> a = test::random_general(n, 12);
  LuPanels memory = factored<double>(a, options_of<double>({"host:1"}, n, 8));
  for (const bool once : {true, false}) {
    std::int64_t operations = 0;
    LuOptions options = options_of<double>({"host:1", 0.6, 0}, n, 8);
    options.run.storage.directories = {"a", "b"};
    options.run.storage.resume = true;
    {
      test::SimulatedFiles files(4096);
      options.run.storage.files = &files;
      (void)factored<double>(a, options);
      operations = files.operations();
    }
    std::int64_t found = 0;
    for (std::int64_t at = 0; at < operations; at += once ? 1 : 3) {
      test::SimulatedFiles files(4096);
      options.run.storage.files = &files;
      for (std::int64_t loss = once ? 1 : 0; loss < 2; ++loss) {
        files.lose_power_at(loss == 1 ? at : files.operations() + at * 5 % operations);
        try {
          (void)factored<double>(a, options);
        } catch (const Error& error) {
          ASSERT_TRUE(files.power_is_lost()) << error.what();
        }
        files.restart(static_cast<std::uint64_t>(at * 2 + loss));
      }
      LuPanels stored = factored<double>(a, options);
      found += stored.found();
      expect_same<double>(memory, stored, fmt::format("operation {}", at));
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(found, 0) << "what was durable is not done again";
  }
}

/// What a failed read or a lost device leaves behind is not written as if it were computed.
TEST(StoredFactor, GoesOnAfterAnyFailureToTheSameBits) {
  const std::int64_t n = 64;
  const Matrix<double> a = test::random_general(n, 13);
  LuPanels memory = factored<double>(a, options_of<double>({"host:1"}, n, 8));
  for (const Budget& budget : {Budget{"host:1", 0.4, 0}, Budget{"host:2", 0.6, 0.3}}) {
    LuOptions options = options_of<double>(budget, n, 8);
    options.run.storage.directories = {"a", "b"};
    options.run.storage.resume = true;
    std::int64_t operations = 0;
    {
      test::SimulatedFiles files(4096);
      options.run.storage.files = &files;
      (void)factored<double>(a, options);
      operations = files.operations();
    }
    std::int64_t failures = 0;
    for (std::int64_t at = 0; at < operations; ++at) {
      test::SimulatedFiles files(4096);
      options.run.storage.files = &files;
      files.fail_at(at, "no such sector");
      try {
        (void)factored<double>(a, options);
      } catch (const Error& error) {
        ++failures;
        EXPECT_NE(std::string(error.what()).find("no such sector"), std::string::npos)
            << error.what();
      }
      files.fail_at(-1, "");
      LuPanels stored = factored<double>(a, options);
      expect_same<double>(memory, stored, fmt::format("operation {}", at));
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(failures, operations / 2);
  }
}

/// A file that is written to while it is read. The other matrix has the same sizes of elements, so
/// the same scales, and other bits everywhere.
TEST(StoredFactor, AMatrixThatChangesMeanwhileIsTold) {
  const std::int64_t n = 60;
  const Matrix<double> a = test::random_general(n, 3);
  const Matrix<double> other = test::make_matrix<double>(
      n, n, [&](auto i, auto j) { return (i + j) % 2 == 0 ? -a(i, j) : a(i, j); });
  for (const bool by_rows : {false, true}) {
    std::atomic<std::int64_t> fills = 0;
    std::int64_t changes_at = std::numeric_limits<std::int64_t>::max();
    MatrixSource<double> source;
    source.n = n;
    source.by_rows = by_rows;
    source.fill = [&](std::int64_t first, std::int64_t count, double* to) {
      const Matrix<double>& now = fills++ >= changes_at ? other : a;
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t i = 0; i < n; ++i)
          to[i + k * n] = by_rows ? now(first + k, i) : now(i, first + k);
    };
    const auto solution_of = [&](std::int64_t at) {
      changes_at = at;
      fills = 0;
      const Scratch folder;
      GeneralFactor factor =
          factor_general(source, Element::fp64,
                         in_folders(options_of<double>({"host:1", 0.4, 0}, n, 5), folder, 1));
      Matrix<double> x = test::make_matrix<double>(n, 1, [](auto i, auto) { return 1.0 + i % 3; });
      (void)factor.solve(std::as_const(x).view(), x.view());
      return x.data;
    };
    const std::vector<double> of_other = solution_of(0);
    const std::vector<double> of_a = solution_of(std::numeric_limits<std::int64_t>::max());
    const std::int64_t all = fills;
    int told = 0;
    for (std::int64_t at = 1; at < all; ++at) {
      try {
        EXPECT_TRUE(solution_of(at) == of_other) << at << " of " << all;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
        EXPECT_NE(std::string(error.what()).find("changed while"), std::string::npos)
            << error.what();
        ++told;
      }
    }
    EXPECT_GT(told, 5);
    EXPECT_TRUE(of_a != of_other);
  }
}

// ---- GeneralFactor

Matrix<double> right_sides(std::int64_t n) {
  return test::make_matrix<double>(n, 2,
                                   [](auto i, auto j) { return test::signed_uniform(8, i, j); });
}

TEST(StoredFactor, IsOpenedLaterAndElsewhere) {
  const std::int64_t n = 80;
  // Rows far apart: scales are kept with it.
  const Matrix<double> a = test::make_matrix<double>(n, n, [](auto i, auto j) {
    return std::ldexp(test::signed_uniform(4, i, j), static_cast<int>(i % 40) - 20);
  });
  const Matrix<double> b = right_sides(n);
  for (const Element precision : {Element::fp64, Element::fp32}) {
    Matrix<double> expected = b;
    LuOptions memory;
    memory.run.devices = "host:1";
    memory.panel = 8;
    (void)factor_general(a.view(), precision, memory).solve(b.view(), expected.view());
    const Scratch folder;
    const std::string directory = folder.path("f");
    LuOptions options = memory;
    options.run.host_memory_bytes = n * n * 4;
    options.run.storage.directories = {directory, folder.path("other")};
    {
      const GeneralFactor factor = factor_general(a.view(), precision, options);
      EXPECT_EQ(factor.stored().count, 10);
      EXPECT_EQ(factor.stored().found, 0);
      EXPECT_FALSE(factor.stored().how.empty());
      factor.save(directory);
    }
    ASSERT_TRUE(GeneralFactor::is_at(directory));
    Matrix<double> x = b;
    {
      GeneralFactor again = GeneralFactor::open(directory, memory.run);
      (void)again.solve(b.view(), x.view());
      EXPECT_TRUE(x.data == expected.data);
      const GeneralSolveResult certified = again.solve(a.view(), b.view(), x.view());
      EXPECT_LT(certified.certificate.forward_error, 1e-9);
    }
    // Moved, with the word of where the other directory is now.
    const std::string moved = folder.path("moved");
    std::filesystem::rename(directory, moved);
    x = b;
    (void)GeneralFactor::open(moved, memory.run).solve(b.view(), x.view());
    EXPECT_TRUE(x.data == expected.data);
    std::filesystem::rename(folder.path("other"), folder.path("elsewhere"));
    EXPECT_THROW((void)GeneralFactor::open(moved, memory.run), Error);
    LuOptions there = memory;
    there.run.storage.directories = {moved, folder.path("elsewhere")};
    x = b;
    (void)GeneralFactor::open(moved, there.run).solve(b.view(), x.view());
    EXPECT_TRUE(x.data == expected.data);
  }
}

/// Large enough for several threads to fill a panel.
TEST(StoredFactor, TakesWhatAFunctionMakesByColumnsOrRows) {
  for (const std::int64_t n : {60, 1100}) {
    const Matrix<double> a = test::random_general(n, 3);
    const Matrix<double> b = right_sides(n);
    LuOptions memory;
    memory.run.devices = "host:2";
    memory.panel = n / 20;
    Matrix<double> expected = b;
    (void)factor_general(a.view(), Element::fp64, memory).solve(b.view(), expected.view());
    for (const bool by_rows : {false, true}) {
      const MatrixSource<double> source{
          n, by_rows, [&](std::int64_t first, std::int64_t count, double* to) {
            for (std::int64_t c = 0; c < count; ++c)
              for (std::int64_t i = 0; i < n; ++i)
                *to++ = by_rows ? a.view()(first + c, i) : a.view()(i, first + c);
          }};
      for (const Element precision : {Element::fp64, Element::fp32}) {
        const Scratch folder;
        LuOptions options = memory;
        options.run.host_memory_bytes = n * n * 2;
        options.run.storage.directories = {folder.path("d")};
        GeneralFactor factor = factor_general(source, precision, options);
        Matrix<double> x = b;
        const GeneralSolveResult result = factor.solve(source, b.view(), x.view());
        EXPECT_LT(result.certificate.forward_error, 1e-6) << n << by_rows;
        for (std::size_t k = 0; k < x.data.size(); ++k)
          ASSERT_NEAR(x.data[k], expected.data[k], 1e-8) << n << by_rows;
        EXPECT_EQ(factor.by_rows(), by_rows);
        if (n == 60) {  // kept in memory, saved and opened, too
          factor_general(source, precision, memory).save(folder.path("m"));
          GeneralFactor again = GeneralFactor::open(folder.path("m"), memory.run);
          EXPECT_EQ(again.by_rows(), by_rows);
          (void)again.solve(source, b.view(), x.view());
          for (std::size_t k = 0; k < x.data.size(); ++k)
            ASSERT_NEAR(x.data[k], expected.data[k], 1e-8) << n << by_rows;
        }
        if (by_rows || precision != Element::fp64) continue;
        (void)factor.solve(b.view(), x.view());
        EXPECT_TRUE(x.data == expected.data) << "to the bit";
      }
    }
  }
}

TEST(StoredFactor, RefusesAnotherMatrixAndWhatIsNotWhole) {
  const std::int64_t n = 64;
  const Matrix<double> a = test::random_general(n, 1);
  Matrix<double> other = a;
  other.data[77] += 1e-12;
  const Scratch folder;
  const std::string directory = folder.path("f");
  LuOptions options;
  options.run.devices = "host:1";
  options.panel = 8;
  options.run.storage.directories = {directory};
  { factor_general(a.view(), Element::fp64, options).save(directory); }
  const auto refused = [&](const Matrix<double>& of, bool resume, ErrorKind kind) {
    LuOptions again = options;
    again.run.storage.resume = resume;
    try {
      (void)factor_general(of.view(), Element::fp64, again);
      ADD_FAILURE() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(directory), std::string::npos) << error.what();
    }
  };
  refused(other, true, ErrorKind::storage);
  refused(a, false, ErrorKind::storage);
  options.panel = 16;
  refused(a, true, ErrorKind::misuse);
  EXPECT_NO_THROW((void)GeneralFactor::open(directory, options.run)) << "the panel is the file's";
  options.panel = 8;
  {
    LuOptions again = options;
    again.run.storage.resume = true;
    EXPECT_EQ(factor_general(a.view(), Element::fp64, again).stored().found, 8) << "all is there";
  }
  // Behind the last record something was being written.
  const std::string journal = directory + "/journal";
  std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - 9);
  try {
    (void)GeneralFactor::open(directory, {});
    FAIL() << "not whole";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::storage);
    EXPECT_NE(std::string(error.what()).find(" of 8 panels"), std::string::npos) << error.what();
  }
  LuOptions again = options;
  again.run.storage.resume = true;
  // Those of the record before, which may be of several panels.
  EXPECT_LT(factor_general(a.view(), Element::fp64, again).stored().found, 8);
  EXPECT_NO_THROW((void)GeneralFactor::open(directory, {}));
  EXPECT_THROW((void)lu(a.view(), options), Error) << "which keeps its factor in memory";
}

// ---- plans

TEST(StoredFactor, ReadsTheNextPanelsWhileOthersAreWritten) {
  const std::int64_t n = 12'800;
  LuOptions options;
  options.panel = 128;
  const std::int64_t bytes = n * n * 8;
  Machine machine = Machine::emulated(1, 2 * bytes);
  for (const std::int64_t panels : {8, 20, 60}) {
    machine.storage = {{1e9, 1e-4}, {1.1e9, 1e-4}, panels * n * 128 * 8};
    const RunReport report = simulate_lu(n, machine, options);
    EXPECT_EQ(report.planned_traffic.storage_read_bytes, bytes) << "all of it once";
    EXPECT_NEAR(*report.predicted_seconds, static_cast<double>(bytes) / 1e9,
                0.15 * static_cast<double>(bytes) / 1e9)
        << panels << " panels in host memory: " << report.policy;
  }
}

}  // namespace
}  // namespace strata
