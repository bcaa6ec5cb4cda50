// solve_by_stripes: solutions as LAPACK has them, or a refusal, never a wrong number; what local
// pivots cost in accuracy; which order of stripes moves how many bytes of storage.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <string>

#include <fmt/core.h>

#include "base/index.hpp"
#include "lu/stripe_factor.hpp"
#include "strata/error.hpp"
#include "strata/stripe_lu.hpp"
#include "tests/io/scratch.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/lu/stripe_cases.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/nan.hpp"
#include "tests/support/simulated_files.hpp"
#include "tests/support/storage_options.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Matrix;
using test::on_one_cpu;
using test::Scratch;
using test::stripes_of;
using test::with_run;

template <class F>
void expect_refusal(ErrorKind kind, const std::string& piece, const F& call) {
  try {
    call();
    ADD_FAILURE() << "no error with " << piece;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
  }
}

template <class T>
T element(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  if constexpr (std::is_same_v<T, double>)
    return test::signed_uniform(seed, i, j);
  else
    return test::complex_uniform(seed, i, j);
}
template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed,
                        double diagonal = 0) {
  return test::make_matrix<T>(rows, cols, [=](auto i, auto j) {
    return element<T>(seed, i, j) + (i == j ? T(diagonal) : T(0));
  });
}

int lapack_solve(Matrix<double> a, Matrix<double>& x) {
  const auto n = static_cast<lapack_int>(a.rows);
  std::vector<lapack_int> pivots(at(a.rows));
  return LAPACKE_dgesv(LAPACK_COL_MAJOR, n, static_cast<lapack_int>(x.cols), a.data.data(), n,
                       pivots.data(), x.data.data(), n);
}
int lapack_solve(Matrix<Complex128> a, Matrix<Complex128>& x) {
  const auto n = static_cast<lapack_int>(a.rows);
  std::vector<lapack_int> pivots(at(a.rows));
  return LAPACKE_zgesv(LAPACK_COL_MAJOR, n, static_cast<lapack_int>(x.cols),
                       reinterpret_cast<lapack_complex_double*>(a.data.data()), n, pivots.data(),
                       reinterpret_cast<lapack_complex_double*>(x.data.data()), n);
}

/// A matrix that comes by rows, of which no more than a stripe is asked for at a time.
template <class T>
MatrixSource<T> by_rows(const Matrix<T>& a, std::int64_t most) {
  return {a.rows, true, [&a, most](std::int64_t first, std::int64_t count, T* to) {
            EXPECT_LE(count, most);
            for (std::int64_t r = 0; r < count; ++r)
              for (std::int64_t j = 0; j < a.rows; ++j) to[r * a.rows + j] = a(first + r, j);
          }};
}

template <class T>
void expect_as_lapack(std::int64_t n, std::int64_t stripe, std::int64_t substripe,
                      double diagonal) {
  SCOPED_TRACE(fmt::format("{} by {} by {}", n, stripe, substripe));
  const Matrix<T> a = random_matrix<T>(n, n, static_cast<std::uint64_t>(n), diagonal);
  const Matrix<T> b = random_matrix<T>(n, 2, 77);
  Matrix<T> expected = b;
  ASSERT_EQ(lapack_solve(a, expected), 0);
  Matrix<T> x(n, 2);
  const StripeSolveResult result = solve_by_stripes(
      a.view(), b.view(), x.view(), with_run(stripes_of(stripe, substripe), on_one_cpu()));
  ASSERT_EQ(result.refusal, "");
  EXPECT_TRUE(result.info.ok);
  EXPECT_EQ(result.stripe, stripe);
  const Certificate& c = result.certificate;
  EXPECT_LE(c.backward_error,
            4 * 0x1p-52 * std::sqrt(static_cast<double>(std::max<std::int64_t>(n, 16))));
  double largest = 0;
  for (std::int64_t j = 0; j < 2; ++j)
    for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(expected(i, j)));
  for (std::int64_t j = 0; j < 2; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(std::abs(x(i, j) - expected(i, j)), 0, largest * (c.forward_error + 1e-9)) << i;
    }
  }
  // From a source, to the bit.
  Matrix<T> same(n, 2);
  (void)solve_by_stripes(by_rows(a, std::max<std::int64_t>(n, 1)), b.view(), same.view(),
                         with_run(stripes_of(stripe, substripe), on_one_cpu()));
  EXPECT_EQ(result.refusal, "");
  for (std::int64_t j = 0; j < 2; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_NEAR(std::abs(x(i, j) - same(i, j)), 0, largest * 2 * c.forward_error) << i;
}

TEST(StripeLu, SolvesAsLapackDoes) {
  test::Thinned thinned(7);
  for (const std::int64_t n : {1, 7, 64, 110, 151}) {
    for (const std::int64_t stripe : {5, 16, 40, 151}) {
      for (const std::int64_t substripe : {3, 8, 200}) {
        if (thinned.skips()) continue;
        expect_as_lapack<double>(n, std::min(stripe, n), substripe, 0);
        if (n < 120) expect_as_lapack<Complex128>(n, std::min(stripe, n), substripe, 0);
        if (HasFatalFailure()) return;
      }
      if (thinned.skips()) continue;
      expect_as_lapack<double>(n, std::min(stripe, n), 0, 2 * static_cast<double>(n));
      expect_as_lapack<Complex128>(n, std::min(stripe, n), 0, 2 * static_cast<double>(n));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(StripeLu, TakesNothing) {
  const Scratch folder;
  for (const std::int64_t n : {0, 20}) {
    for (const bool in_storage : {false, true}) {
      RunOptions options = on_one_cpu();
      if (in_storage) options = test::in_folders(options, folder, 1);
      const Matrix<double> a = random_matrix<double>(n, n, 4);
      const Matrix<double> b = random_matrix<double>(n, n == 0 ? 2 : 0, 5);
      Matrix<double> x = b;
      const StripeSolveResult result =
          solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes_of(8, 4), options));
      EXPECT_EQ(result.refusal, "") << n;
      EXPECT_EQ(result.certificate.backward_error, 0) << n;
    }
  }
}

TEST(StripeLu, WithoutRefinementIsMeasuredAllTheSame) {
  const Matrix<Complex128> a = random_matrix<Complex128>(90, 90, 4);
  const Matrix<Complex128> b = random_matrix<Complex128>(90, 2, 5);
  Matrix<Complex128> x(90, 2);
  StripeOptions stripes = stripes_of(20, 0);
  stripes.refines = false;
  const StripeSolveResult result =
      solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes, on_one_cpu()));
  EXPECT_EQ(result.refusal, "");
  EXPECT_EQ(result.certificate.refinement_steps, 0);
  double most = 0;
  for (std::int64_t c = 0; c < 2; ++c)
    most = std::max(most, test::hermitian_errors(a, b, x, c).normwise);
  EXPECT_GT(most, 1e-16);
  EXPECT_NEAR(result.certificate.backward_error, most, 1e-3 * most + 1e-15);
  EXPECT_TRUE(std::isnan(result.certificate.forward_error)) << "not asked for";
  EXPECT_GT(result.largest_multiplier, 1);
}

TEST(StripeLu, RefusesWhatLocalPivotsCannotDo) {
  const Matrix<double> a = test::swapped_halves(48);
  const Matrix<double> b = random_matrix<double>(48, 1, 3);
  for (const std::int64_t substripe : {0, 4, 24}) {
    Matrix<double> x = b;
    for (double& value : x.data) value = -7;
    const StripeSolveResult result = solve_by_stripes(
        a.view(), b.view(), x.view(), with_run(stripes_of(24, substripe), on_one_cpu()));
    EXPECT_FALSE(result.info.ok);
    EXPECT_EQ(result.info.zero_pivot, 0);
    EXPECT_NE(result.refusal.find("pivot of column 0"), std::string::npos) << result.refusal;
    for (const double value : x.data) ASSERT_EQ(value, -7) << "X is left as it was";
  }
  // In substripes that hold both halves it is well done.
  Matrix<double> x(48, 1);
  const StripeSolveResult whole =
      solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes_of(48, 48), on_one_cpu()));
  EXPECT_EQ(whole.refusal, "");
  for (std::int64_t i = 0; i < 48; ++i) EXPECT_EQ(x(i, 0), b((i + 24) % 48, 0));
}

TEST(StripeLu, TellsOfNumbersThatAreNotFinite) {
  Matrix<double> a = random_matrix<double>(40, 40, 2);
  a(31, 17) = test::kNan;
  const Matrix<double> b = random_matrix<double>(40, 1, 3);
  Matrix<double> x(40, 1);
  const StripeSolveResult result =
      solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes_of(10, 4), on_one_cpu()));
  EXPECT_FALSE(result.info.ok);
  EXPECT_GE(result.info.not_finite, 0);
  EXPECT_NE(result.refusal, "");
}

/// Growth without bound: tiny numbers where pivots are searched.
Matrix<double> tiny_blocks(std::int64_t n, double size) {
  return test::make_matrix<double>(n, n, [=](auto i, auto j) {
    return test::signed_uniform(13, i, j) * (i / 8 == j / 8 ? size : 1);
  });
}

TEST(StripeLu, IsNeverWrongSilently) {
  int refused = 0;
  int refined = 0;
  std::vector<test::GeneralKind> kinds = test::general_kinds();
  for (const double size : {1e-3, 1e-6, 1e-9, 1e-12, 1e-15})
    kinds.push_back(
        {fmt::format("tiny {}", size), [size](std::int64_t n) { return tiny_blocks(n, size); }});
  for (const test::GeneralKind& kind : kinds) {
    const Matrix<double> a = kind.make(64);
    const Matrix<double> b = random_matrix<double>(a.rows, 1, 41);
    for (const std::int64_t substripe : {0, 4, 8, 16}) {
      Matrix<double> x(a.rows, 1);
      for (double& value : x.data) value = -7;
      const StripeSolveResult result = solve_by_stripes(
          a.view(), b.view(), x.view(), with_run(stripes_of(16, substripe), on_one_cpu()));
      const std::string what = fmt::format("{}, {}: {}", kind.name, substripe, result.refusal);
      if (!result.refusal.empty()) {
        ++refused;
        for (const double value : x.data) ASSERT_EQ(value, -7) << what;
        continue;
      }
      refined += result.gmres_iterations > 0 ? 1 : 0;
      EXPECT_LE(test::backward_error(a, b, x), 9e-15) << what;
      EXPECT_NEAR(test::backward_error(a, b, x), result.certificate.backward_error, 1e-14) << what;
      const test::WideErrors exact = test::wide_errors(a.data, b.data, x.data);
      EXPECT_LE(exact.forward, result.certificate.forward_error) << what;
    }
  }
  EXPECT_GE(refused, 8);
  EXPECT_GT(refined, 3) << "GMRES is tried before a refusal";
}

// ---- accuracy

/// max |A·x − b| of a plain solve, with nothing refined.
double residual_of(const Matrix<double>& a, const Matrix<double>& b, const Matrix<double>& x) {
  double most = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    long double sum = b(i, 0);
    for (std::int64_t j = 0; j < a.rows; ++j)
      sum -= static_cast<long double>(a(i, j)) * static_cast<long double>(x(j, 0));
    most = std::max(most, std::abs(static_cast<double>(sum)));
  }
  return most;
}

/// The median over matrices: single ones differ by ten times.
double median_ratio(std::int64_t n, std::int64_t stripes, std::int64_t substripe) {
  std::vector<double> ratios;
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    const Matrix<double> a = test::make_matrix<double>(
        n, n, [=](auto i, auto j) { return test::signed_uniform(seed, i, j) / 2; });
    const Matrix<double> b = random_matrix<double>(n, 1, 900 + seed);
    Matrix<double> partial = b;
    EXPECT_EQ(lapack_solve(a, partial), 0);
    Matrix<double> x = b;
    StripeFactor<double> factor(
        n, 1, with_run(stripes_of((n + stripes - 1) / stripes, substripe), on_one_cpu()));
    EXPECT_TRUE(
        factor.factor(source_of_view<double>(a.data.data(), a.ld(), false), 1, x.view()).ok);
    (void)factor.solve(x.view(), StripeSweeps::backward);
    ratios.push_back(residual_of(a, b, x) / residual_of(a, b, partial));
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[7];
}

TEST(StripeLu, LosesAFewDigitsByLocalPivots) {
  const double local = median_ratio(520, 13, 40);
  EXPECT_GT(local, 1);
  EXPECT_LE(local, 25);
  EXPECT_GT(median_ratio(520, 13, 0), local) << "no pivoting is worse";
}

// ---- bytes

struct Moved {
  std::int64_t read = 0;
  std::int64_t written = 0;
  [[nodiscard]] std::int64_t all() const { return read + written; }
};
Moved moved(const Traffic& traffic) {
  return {traffic.storage_read_bytes, traffic.storage_write_bytes};
}

/// CPUs and host memory for these shares of a matrix in storage.
Machine machine_for(std::int64_t n, double host, double device, int devices = 1) {
  const auto bytes = [&](double share) {
    return static_cast<std::int64_t>(share * static_cast<double>(n * n * 8));
  };
  Machine machine = Machine::emulated(devices, bytes(device));
  for (DeviceModel& model : machine.devices) model.kind = DeviceKind::cpu;
  machine.storage = {{2e9, 0}, {2e9, 0}, bytes(host)};
  return machine;
}

TEST(StripePlans, MoveFewerBytesTheMoreTheirOrderReuses) {
  struct Case {
    std::int64_t n, stripes, meta;
    bool gauss = false;
  };
  // A fifth of the matrix holds a meta-stripe and two stripes.
  for (const Case& c : {Case{2000, 20, 2}, Case{2000, 40, 2}, Case{2000, 40, 5}, Case{1999, 37, 3},
                        Case{2000, 20, 2, true}, Case{2000, 40, 5, true}}) {
    const std::int64_t stripe = (c.n + c.stripes - 1) / c.stripes;
    ASSERT_LE((c.meta + 2) * stripe, c.n / 5);
    const Machine machine = machine_for(c.n, 0.2, 1 / 15.);
    const auto stripes = [&](const std::string& order) {
      StripeOptions options = stripes_of(stripe, 8, order);
      options.gauss = c.gauss;
      return moved(simulate_stripes(c.n, machine, options).planned_traffic);
    };
    const Moved basic = stripes("basic");
    const Moved zigzag = stripes("zigzag");
    const Moved meta = stripes(fmt::format("meta-zigzag:{}", c.meta));
    const Moved ours = moved(simulate_lu(c.n, machine).planned_traffic);
    const std::string what = fmt::format(
        "{} in {}: read {:.3f} {:.3f} {:.3f} {:.3f}, written {:.3f} {:.3f} {:.3f} {:.3f}", c.n,
        c.stripes, 1e-9 * static_cast<double>(ours.read), 1e-9 * static_cast<double>(meta.read),
        1e-9 * static_cast<double>(zigzag.read), 1e-9 * static_cast<double>(basic.read),
        1e-9 * static_cast<double>(ours.written), 1e-9 * static_cast<double>(meta.written),
        1e-9 * static_cast<double>(zigzag.written), 1e-9 * static_cast<double>(basic.written));
    EXPECT_LE(zigzag.read, basic.read) << what;
    EXPECT_LE(zigzag.written, basic.written) << what;
    EXPECT_LE(meta.read, zigzag.read) << what;
    EXPECT_LE(meta.written, zigzag.written) << what;
    EXPECT_LE(ours.written, meta.written) << what;
    EXPECT_LE(ours.all(), meta.all()) << what;
    EXPECT_GE(ours.written, c.n * c.n * 8) << what;
  }
}

TEST(StripeLu, MovesInStorageWhatWasPlanned) {
  constexpr std::int64_t kOrder = 200;
  const Matrix<double> a = random_matrix<double>(kOrder, kOrder, 4);
  const Matrix<double> b = random_matrix<double>(kOrder, 1, 5);
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  Matrix<double> first(0, 0);
  for (const char* order : {"basic", "zigzag", "meta-zigzag:2"}) {
    const Scratch folder;
    const RunOptions options = test::in_folders(
        test::within_budget({"host:1", 0.3, 1 / 15.}, kOrder * kOrder * 8), folder, 2);
    Matrix<double> x(kOrder, 1);
    const StripeSolveResult result = solve_by_stripes(by_rows(a, kOrder), b.view(), x.view(),
                                                      with_run(stripes_of(10, 5, order), options));
    ASSERT_EQ(result.refusal, "");
    EXPECT_EQ(result.factor.traffic, result.factor.planned_traffic);
    EXPECT_EQ(result.solve.traffic, result.solve.planned_traffic);
    const std::int64_t all = moved(result.factor.traffic).all();
    EXPECT_LT(all, before) << order;
    before = all;
    EXPECT_NE(result.how, "");
    EXPECT_NE(result.factor.policy.find(order), std::string::npos) << result.factor.policy;
    if (first.rows == 0) first = x;
    EXPECT_TRUE(test::same_bits(x.data, first.data)) << order;
  }
}

TEST(StripeLu, WritesLessWithoutMultipliersAndHasTheSameBits) {
  constexpr std::int64_t kOrder = 200;
  const Matrix<double> a = random_matrix<double>(kOrder, kOrder, 4);
  const Matrix<double> b = random_matrix<double>(kOrder, 3, 5);
  for (const char* order : {"basic", "zigzag", "meta-zigzag:2"}) {
    std::vector<Moved> all;
    std::vector<Matrix<double>> found;
    for (const bool gauss : {false, true}) {
      const Scratch folder;
      const RunOptions options = test::in_folders(
          test::within_budget({"host:2", 0.35, 1 / 15.}, kOrder * kOrder * 8), folder, 2);
      StripeOptions stripes = stripes_of(10, 5, order);
      stripes.refines = false;
      stripes.gauss = gauss;
      Matrix<double> x(kOrder, 3);
      const StripeSolveResult result =
          solve_by_stripes(by_rows(a, kOrder), b.view(), x.view(), with_run(stripes, options));
      ASSERT_EQ(result.refusal, "");
      EXPECT_EQ(result.factor.traffic, result.factor.planned_traffic);
      EXPECT_LT(result.certificate.backward_error, 1e-11);
      all.push_back(moved(result.factor.traffic));
      found.push_back(x);
    }
    EXPECT_TRUE(test::same_bits(found[0].data, found[1].data)) << order;
    EXPECT_LT(all[1].written, all[0].written) << order;
    // U is written all the same.
    EXPECT_GE(all[1].written, kOrder * kOrder * 8 / 2);
  }
  StripeOptions gauss = stripes_of(10, 5);
  gauss.gauss = true;
  StripeFactor<double> factor(kOrder, 3, with_run(gauss, on_one_cpu()));
  Matrix<double> y = b;
  ASSERT_TRUE(factor.factor(source_of_view<double>(a.data.data(), a.ld(), false), 1, y.view()).ok);
  expect_refusal(ErrorKind::misuse, "dropped",
                 [&] { (void)factor.solve(y.view(), StripeSweeps::both); });
}

// ---- faults

/// Whatever operation of the files fails, that is told, or X is what it is without a fault.
TEST(StripeLu, FaultsOfFilesAreToldAndNeverNumbers) {
  constexpr std::int64_t kOrder = 40;
  const Matrix<double> a = random_matrix<double>(kOrder, kOrder, 4);
  const Matrix<double> b = random_matrix<double>(kOrder, 1, 5);
  const auto solve = [&](test::SimulatedFiles& files, Matrix<double>& x) {
    RunOptions options = test::within_budget({"host:1", 0.5, 0.2}, kOrder * kOrder * 8);
    options.storage.directories = {"one", "two"};
    options.storage.files = &files;
    StripeOptions stripes = stripes_of(8, 4, "meta-zigzag:2");
    stripes.gauss = true;
    return solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes, options));
  };
  test::SimulatedFiles sound(4096);
  Matrix<double> expected(kOrder, 1);
  ASSERT_EQ(solve(sound, expected).refusal, "");
  const std::int64_t operations = sound.operations();
  ASSERT_GT(operations, 50);
  std::int64_t told = 0;
  for (std::int64_t at = 0; at < operations; ++at) {
    test::SimulatedFiles files(4096);
    files.fail_at(at, "no such sector");
    Matrix<double> x(kOrder, 1);
    try {
      ASSERT_EQ(solve(files, x).refusal, "") << at;
      EXPECT_TRUE(test::same_bits(x.data, expected.data)) << at;
    } catch (const Error& error) {
      ++told;
      EXPECT_NE(std::string(error.what()).find("no such sector"), std::string::npos)
          << error.what();
      for (const double value : x.data) ASSERT_EQ(value, 0) << at;
    }
  }
  EXPECT_GT(told, operations / 2);
  // Writes that are lost are seen when they are read.
  std::int64_t lost = 0;
  for (std::int64_t at = 0; at < 40; ++at) {
    test::SimulatedFiles files(4096);
    files.drop_writes(at, 1);
    Matrix<double> x(kOrder, 1);
    try {
      (void)solve(files, x);
      EXPECT_TRUE(test::same_bits(x.data, expected.data)) << at;
    } catch (const Error& error) {
      ++lost;
      EXPECT_NE(std::string(error.what()).find("is not what was written"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_GT(lost, 20);
}

TEST(StripeLu, ChoosesStripesThatFit) {
  for (const std::int64_t n : {100, 700}) {
    const Matrix<double> a = random_matrix<double>(n, n, 4);
    const Matrix<double> b = random_matrix<double>(n, 1, 5);
    const Scratch folder;
    const RunOptions options =
        test::in_folders(test::within_budget({"host:2", 0.5, 0.1}, n * n * 8), folder, 1);
    Matrix<double> x(n, 1);
    const StripeSolveResult result = solve_by_stripes(
        by_rows(a, n), b.view(), x.view(), with_run(stripes_of(0, 200, "meta-zigzag:2"), options));
    EXPECT_EQ(result.refusal, "");
    EXPECT_LE(4 * result.stripe * n * 8, n * n * 8 / 2) << "a meta-stripe and two more fit";
    EXPECT_GE(result.stripe, 8);
  }
}

// ---- misuse

TEST(StripeLu, SaysWhatDoesNotFit) {
  StripeOptions stripes;
  for (const char* name : {"", "Basic", "meta-zigzag", "meta-zigzag:", "meta-zigzag:0",
                           "meta-zigzag:x", "meta-zigzag:2x", "zigzag "})
    expect_refusal(ErrorKind::misuse, "no order of stripes", [&] { set_order(name, stripes); });
  set_order("meta-zigzag:5", stripes);
  EXPECT_EQ(order_name(stripes), "meta-zigzag:5");
  for (const char* name : {"", "local", "local:", "local:0", "local:-1", "partial", "none "})
    expect_refusal(ErrorKind::misuse, "local:ROWS", [&] { set_pivoting(name, stripes); });
  set_pivoting("local:50", stripes);
  EXPECT_EQ(stripes.substripe, 50);
  set_pivoting("none", stripes);
  EXPECT_EQ(stripes.substripe, 0);
  const Matrix<double> a = random_matrix<double>(20, 20, 4);
  const Matrix<double> b = random_matrix<double>(20, 1, 4);
  Matrix<double> x(20, 1);
  MatrixSource<double> source = by_rows(a, 20);
  source.by_rows = false;
  expect_refusal(ErrorKind::misuse, "by columns", [&] {
    (void)solve_by_stripes(source, b.view(), x.view(), with_run(stripes_of(4, 2), on_one_cpu()));
  });
  expect_refusal(ErrorKind::misuse, "these are no stripes", [&] {
    (void)solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes_of(-4, 2), on_one_cpu()));
  });
  const Matrix<double> wide = random_matrix<double>(20, 21, 4);
  expect_refusal(ErrorKind::misuse, "not square", [&] {
    (void)solve_by_stripes(wide.view(), b.view(), x.view(),
                           with_run(stripes_of(4, 2), on_one_cpu()));
  });
  RunOptions small = on_one_cpu();
  small.device_memory_bytes = 1000;
  expect_refusal(ErrorKind::memory, "", [&] {
    (void)solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes_of(20, 2), small));
  });
}

}  // namespace
}  // namespace strata
