// LU by stripes with pivots by pairs: matrices whose good pivots lie in other stripes are solved,
// solves repeat what the factorization did, plans are proven, and budgets, devices and directories
// change no bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <string>

#include <fmt/core.h>

#include "base/index.hpp"
#include "lu/stripe_factor.hpp"
#include "session/policy.hpp"
#include "strata/error.hpp"
#include "strata/stripe_lu.hpp"
#include "tests/io/scratch.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/lu/stripe_cases.hpp"
#include "tests/schedule/plan_checker.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/storage_options.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Matrix;
using test::on_one_cpu;
using test::Scratch;
using test::with_run;

StripeOptions pairs_of(std::int64_t stripe, std::int64_t columns,
                       const std::string& order = "zigzag") {
  StripeOptions options = test::stripes_of(stripe, 0, order);
  options.pair_columns = columns;
  return options;
}

template <class T>
Matrix<T> random_pairs_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return test::make_matrix<T>(rows, cols, [=](auto i, auto j) -> T {
    if constexpr (std::is_same_v<T, double>)
      return test::signed_uniform(seed, i, j);
    else
      return test::complex_uniform(seed, i, j);
  });
}

constexpr const char* kPairOrders[] = {"basic", "zigzag", "meta-zigzag:2", "meta-zigzag:3"};

template <class T>
void expect_solved_by_pairs(std::int64_t n, std::int64_t stripe, std::int64_t columns,
                            const std::string& order) {
  SCOPED_TRACE(fmt::format("{} by {} by {}, {}", n, stripe, columns, order));
  const Matrix<T> a = random_pairs_matrix<T>(n, n, 3);
  const Matrix<T> x = random_pairs_matrix<T>(n, 3, 7);
  const auto product = [&](bool adjoint) {
    Matrix<T> b(n, 3);
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          b(i, c) += (adjoint ? conjugate<T>(a(j, i)) : a(i, j)) * x(j, c);
    return b;
  };
  StripeFactor<T> factor(n, 3, with_run(pairs_of(stripe, columns, order), on_one_cpu()));
  Matrix<T> carried = product(false);
  ASSERT_TRUE(factor.factor(source_of_view<T>(a.data.data(), a.ld(), false), 1, carried.view()).ok);
  EXPECT_LE(factor.largest_multiplier(), is_complex_v<T> ? 2.0 : 1.0) << "|re| + |im|";
  const auto expect_x = [&](const Matrix<T>& y, const char* what) {
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(std::abs(y(i, c) - x(i, c)), 0, 1e-8) << what << ' ' << i;
  };
  (void)factor.solve(carried.view(), StripeSweeps::backward);
  expect_x(carried, "carried along");
  for (const StripeSweeps sweeps : {StripeSweeps::both, StripeSweeps::adjoint}) {
    Matrix<T> y = product(sweeps == StripeSweeps::adjoint);
    const RunReport report = factor.solve(y.view(), sweeps);
    EXPECT_EQ(report.traffic, report.planned_traffic);
    expect_x(y, sweeps == StripeSweeps::adjoint ? "adjoint" : "both");
  }
}

TEST(StripePairs, SolveWithTheMatrixAndItsAdjoint) {
  test::Thinned thinned(3);
  for (const std::int64_t n : {1, 9, 64, 101}) {
    for (const std::int64_t stripe : {4, 17, 101}) {
      for (const std::int64_t columns : {1, 3, 64}) {
        for (const char* order : kPairOrders) {
          if (thinned.skips()) continue;
          expect_solved_by_pairs<double>(n, std::min(stripe, n), columns, order);
          expect_solved_by_pairs<Complex128>(n, std::min(stripe, n), columns, order);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Where local pivots are zero.
TEST(StripePairs, SolveSwappedHalves) {
  const Matrix<double> a = test::swapped_halves(48);
  const Matrix<double> b = random_pairs_matrix<double>(48, 1, 3);
  for (const char* order : kPairOrders) {
    for (const std::int64_t stripe : {5, 8, 24}) {
      Matrix<double> x(48, 1);
      const StripeSolveResult result = solve_by_stripes(
          a.view(), b.view(), x.view(), with_run(pairs_of(stripe, 4, order), on_one_cpu()));
      EXPECT_EQ(result.refusal, "") << order << ' ' << stripe;
      for (std::int64_t i = 0; i < 48; ++i) EXPECT_EQ(x(i, 0), b((i + 24) % 48, 0));
    }
  }
}

TEST(StripePairs, AreNeverWrongSilently) {
  int refused = 0;
  for (const test::GeneralKind& kind : test::general_kinds()) {
    const Matrix<double> a = kind.make(64);
    const Matrix<double> b = random_pairs_matrix<double>(a.rows, 1, 41);
    for (const char* order : kPairOrders) {
      Matrix<double> x(a.rows, 1);
      for (double& value : x.data) value = -7;
      const StripeSolveResult result = solve_by_stripes(
          a.view(), b.view(), x.view(), with_run(pairs_of(16, 8, order), on_one_cpu()));
      const std::string what = fmt::format("{}, {}: {}", kind.name, order, result.refusal);
      if (!result.refusal.empty()) {
        ++refused;
        for (const double value : x.data) ASSERT_EQ(value, -7) << what;
        continue;
      }
      EXPECT_LE(test::backward_error(a, b, x), 9e-15) << what;
      const test::WideErrors exact = test::wide_errors(a.data, b.data, x.data);
      EXPECT_LE(exact.forward, result.certificate.forward_error) << what;
    }
  }
  EXPECT_LE(refused, 4) << "what partial pivoting can do, pairs mostly can";
}

TEST(StripePairs, TellOfSingularMatrices) {
  Matrix<double> a = random_pairs_matrix<double>(40, 40, 2);
  for (std::int64_t i = 0; i < 40; ++i) a(i, 17) = 0;
  const Matrix<double> b = random_pairs_matrix<double>(40, 1, 3);
  Matrix<double> x(40, 1);
  const StripeSolveResult result =
      solve_by_stripes(a.view(), b.view(), x.view(), with_run(pairs_of(10, 4), on_one_cpu()));
  EXPECT_EQ(result.info.zero_pivot, 17);
  EXPECT_NE(result.refusal.find("column 17"), std::string::npos) << result.refusal;
}

TEST(StripePairs, PlansAreProvenForEveryBudget) {
  test::Thinned thinned(3);
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t stripes : {1, 2, 3, 6}) {
      for (const std::int64_t meta : {1, 2, 3}) {
        StripeProblem problem;
        problem.n = 4 * stripes;
        problem.stripe = 4;
        problem.substripe = 4;
        problem.pair_columns = 2;
        problem.meta = meta;
        problem.rhs = 3;
        problem.rhs_tile = 2;
        problem.devices = devices;
        problem.discards = stripes % 2 == 0;
        for (const bool in_storage : {false, true}) {
          problem.in_storage = in_storage;
          const auto schedule = std::make_shared<const Schedule>(stripe_factorization(problem));
          const std::int64_t smallest = smallest_budget_bytes(*schedule);
          for (const std::int64_t slots : {0, 3, 30}) {
            for (const Policy policy : {Policy::sync, Policy::v3, Policy::opt, Policy::idle}) {
              if (thinned.skips()) continue;
              Machine machine = Machine::emulated(devices, smallest + slots * 256);
              if (in_storage)
                machine.storage = {
                    {1e9, 0},
                    {1e9, 0},
                    slots == 3 ? 0 : smallest_host_bytes(*schedule, smallest) + slots * 256};
              ASSERT_EQ(test::check_plan(Plan(schedule, machine, options_of(policy))), "")
                  << devices << ' ' << stripes << ' ' << meta << ' ' << to_string(policy);
            }
          }
          for (const StripeSweeps sweeps :
               {StripeSweeps::both, StripeSweeps::backward, StripeSweeps::adjoint}) {
            const auto solve = std::make_shared<const Schedule>(stripe_solve(problem, sweeps));
            Machine machine = Machine::emulated(devices, smallest_budget_bytes(*solve));
            if (in_storage)
              machine.storage = {{1e9, 0}, {1e9, 0}, smallest_host_bytes(*solve, 1 << 20)};
            ASSERT_EQ(test::check_plan(Plan(solve, machine, options_of(Policy::opt))), "");
          }
        }
      }
    }
  }
}

TEST(StripePairs, HaveTheSameBitsWhateverBudgetDevicesAndStorage) {
  constexpr std::int64_t kOrder = 110;
  const Matrix<double> a = random_pairs_matrix<double>(kOrder, kOrder, 3);
  const Matrix<double> b = random_pairs_matrix<double>(kOrder, 2, 8);
  struct Case {
    test::StorageBudget budget;
    int directories = 0;
    Policy policy = Policy::idle;
  };
  const Case cases[] = {{{"host:1", 0, 0}},
                        {{"host:3", 0, 0.2}},
                        {{"host:1", 0.4, 0}, 1},
                        {{"host:1", 0.4, 1 / 10.}, 2},
                        {{"host:2", 0.6, 0.1}, 3},
                        {{"host:2", 0.6, 0.1}, 1, Policy::opt},
                        {{"host:2", 0.6, 0.1}, 1, Policy::v3}};
  for (const char* order : kPairOrders) {
    Matrix<double> expected(0, 0);
    for (const Case& c : cases) {
      const Scratch folder;
      StripeOptions stripes = pairs_of(12, 5, order);
      stripes.policy = c.policy;
      RunOptions options = test::within_budget(c.budget, kOrder * kOrder * 8);
      if (c.directories > 0) options = test::in_folders(options, folder, c.directories);
      Matrix<double> x(kOrder, 2);
      const StripeSolveResult result =
          solve_by_stripes(a.view(), b.view(), x.view(), with_run(stripes, options));
      ASSERT_EQ(result.refusal, "");
      EXPECT_EQ(result.factor.traffic, result.factor.planned_traffic);
      EXPECT_EQ(result.solve.traffic, result.solve.planned_traffic);
      EXPECT_EQ(result.factor.traffic.storage_read_bytes > 0, c.directories > 0);
      if (expected.rows == 0) expected = x;
      ASSERT_TRUE(test::same_bits(x.data, expected.data))
          << order << ' ' << c.budget.devices << ' ' << c.directories;
    }
  }
}

TEST(StripePairs, AreNamed) {
  StripeOptions stripes;
  set_pivoting("pairwise", stripes);
  EXPECT_EQ(stripes.pair_columns, 64);
  set_pivoting("pairwise:8", stripes);
  EXPECT_EQ(stripes.pair_columns, 8);
  set_pivoting("local:50", stripes);
  EXPECT_EQ(stripes.pair_columns, 0);
  for (const char* name : {"pairwise:", "pairwise:0", "pairs"})
    EXPECT_THROW(set_pivoting(name, stripes), Error) << name;
}

}  // namespace
}  // namespace strata
