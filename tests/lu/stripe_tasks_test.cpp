// LU by stripes: the tasks are elimination with pivots within substripes as a textbook writes it,
// row by row; orders, policies, devices and storage change no bit; every plan is proven.

#include <gtest/gtest.h>

#include <complex>
#include <map>
#include <set>
#include <string>

#include <fmt/core.h>

#include "base/index.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/stripe.hpp"
#include "lu/stripe_factor.hpp"
#include "session/policy.hpp"
#include "store/memory_store.hpp"
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
using test::stripes_of;
using test::with_run;

StripeProblem problem_of(std::int64_t stripes, std::int64_t meta, bool zigzag, int devices) {
  StripeProblem problem;
  problem.n = 4 * stripes;
  problem.stripe = 4;
  problem.substripe = 2;
  problem.meta = meta;
  problem.zigzag = zigzag;
  problem.rhs = 3;
  problem.rhs_tile = 2;
  problem.devices = devices;
  return problem;
}

struct Order {
  std::int64_t meta = 1;
  bool zigzag = true;

  [[nodiscard]] std::string name() const {
    if (!zigzag) return "basic";
    return meta == 1 ? "zigzag" : fmt::format("meta-zigzag:{}", meta);
  }
};
constexpr Order kOrders[] = {{1, false}, {1, true}, {2, true}, {3, true}, {5, true}};

// ---- the order of tasks

TEST(StripeTasks, UpdateEachBlockByAllStripesAboveInAscendingOrder) {
  for (const std::int64_t stripes : {0, 1, 2, 3, 5, 8}) {
    for (const Order& order : kOrders) {
      for (const int devices : {1, 2, 3}) {
        const StripeProblem problem = problem_of(stripes, order.meta, order.zigzag, devices);
        std::map<std::uint64_t, std::int64_t> next;  // stripe that is to come upon a block
        std::set<std::uint64_t> done;
        for (const test::FlatTask& task : test::tasks_of(stripe_factorization(problem))) {
          const BlockId out = task.operands[0].id;
          const std::int64_t j = out.row();
          ASSERT_EQ(task.task.device, j % devices);
          ASSERT_EQ(done.count(out.bits), 0U) << "written after its last value";
          if (task.task.operation == &gemm) {
            const std::int64_t i = next[out.bits]++;
            const BlockId left(kStripeFamily, j, i);
            const BlockId upper(out.family(), i, out.col());
            EXPECT_EQ(task.operands[1].id, left);
            EXPECT_EQ(task.operands[2].id, upper);
            EXPECT_TRUE(done.count(left.bits) == 1 && done.count(upper.bits) == 1) << "too soon";
            continue;
          }
          const bool right = out.family() == kStripeRightFamily;
          EXPECT_EQ(next[out.bits], right ? j : std::min(j, out.col())) << "too soon";
          EXPECT_EQ(task.task.operation, right            ? &lu_update
                                         : j == out.col() ? &stripe_factor
                                         : j < out.col()  ? &stripe_row
                                                          : &stripe_column);
          const std::int64_t diagonal = std::min(j, right ? j : out.col());
          if (task.task.operation != &stripe_factor) {
            EXPECT_EQ(done.count(BlockId(kStripeFamily, diagonal, diagonal).bits), 1U);
          } else {
            EXPECT_EQ(task.task.variant, 2U);
          }
          done.insert(out.bits);
        }
        EXPECT_EQ(std::ssize(done), stripes * stripes + 2 * stripes);
      }
    }
  }
}

/// Stripes in the order in which they are taken: "1" is factored, "3<0,1" takes stripes 0 and 1.
std::string order_of(const StripeProblem& problem) {
  const Schedule schedule = stripe_factorization(problem);
  std::string order;
  for (std::int64_t s = 0; s < schedule.steps; ++s) {
    TaskList tasks;
    schedule.emit(s, tasks);
    std::set<std::int64_t> above;
    std::int64_t stripe = -1;
    bool factors = false;
    for (const Task& task : std::as_const(tasks).tasks()) {
      const auto operands = std::as_const(tasks).operands(task);
      stripe = operands[0].id.row();
      if (task.operation == &gemm) above.insert(operands[2].id.row());
      factors = factors || task.operation == &stripe_factor;
    }
    order += fmt::format("{}{}", factors ? "f" : "", stripe);
    for (const std::int64_t i : above) order += fmt::format("<{}", i);
    order += ' ';
  }
  return order;
}

TEST(StripeTasks, GoForthAndBack) {
  EXPECT_EQ(order_of(problem_of(4, 1, false, 1)), "f0 f1<0 2<0 3<0 f2<1 3<1 f3<2 ");
  EXPECT_EQ(order_of(problem_of(4, 1, true, 1)), "f0 f1<0 2<0 3<0 3<1 f2<1 f3<2 ");
  EXPECT_EQ(order_of(problem_of(6, 2, true, 1)),
            "f0 f1<0 f2<0<1 3<0<1 4<0<1 5<0<1 f3<2 5<2<3 f4<2<3 f5<4 ");
}

TEST(StripeTasks, StripesAboveStayUntilAllBelowHaveTakenThem) {
  for (const int devices : {1, 2}) {
    for (const Order& order : kOrders) {
      const StripeProblem problem = problem_of(7, order.meta, order.zigzag, devices);
      std::map<std::pair<std::uint64_t, int>, Hint> last;
      for (const test::FlatTask& task : test::tasks_of(stripe_factorization(problem)))
        for (const TaskOperand& operand : task.operands)
          if (operand.id.family() == kStripeFamily)
            last[{operand.id.bits, task.task.device}] = operand.hint;
      for (const auto& [use, hint] : last) {
        BlockId id;
        id.bits = use.first;
        // The last meta-stripe has none below.
        const std::int64_t stripe = std::min(id.row(), id.col());
        if (stripe / order.meta * order.meta + order.meta + devices > 7) continue;
        EXPECT_TRUE(has(hint, Hint::release)) << id.row() << ',' << id.col();
      }
    }
  }
}

// ---- what they compute

/// Elimination row by row, as a textbook has it: A and B in place. Rows are exchanged within a
/// substripe, from the stripe's diagonal block on.
template <class T>
std::vector<std::int64_t> eliminate(Matrix<T>& a, Matrix<T>& b, std::int64_t stripe,
                                    std::int64_t substripe) {
  std::vector<std::int64_t> pivots;
  for (std::int64_t j = 0; j < a.rows; ++j) {
    const std::int64_t begin = j / stripe * stripe;
    std::int64_t end = j + 1;
    if (substripe > 0)
      end = std::min({begin + ((j - begin) / substripe + 1) * substripe, begin + stripe, a.rows});
    std::int64_t p = j;
    for (std::int64_t i = j + 1; i < end; ++i)
      if (pivot_size(a(i, j)) > pivot_size(a(p, j))) p = i;
    pivots.push_back(p - begin);
    for (std::int64_t k = begin; k < a.cols; ++k) std::swap(a(j, k), a(p, k));
    for (std::int64_t k = 0; k < b.cols; ++k) std::swap(b(j, k), b(p, k));
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      a(i, j) = a(i, j) / a(j, j);
      for (std::int64_t k = j + 1; k < a.cols; ++k) a(i, k) -= a(i, j) * a(j, k);
      for (std::int64_t k = 0; k < b.cols; ++k) b(i, k) -= a(i, j) * b(j, k);
    }
  }
  return pivots;
}

/// Every block of a factor as a whole.
template <class T>
Matrix<T> factors_of(StripeFactor<T>& factor) {
  const std::int64_t n = factor.problem().n;
  const std::int64_t stripe = factor.problem().stripe;
  Matrix<T> all(n, n);
  for (std::int64_t k = 0; k * stripe < n; ++k) {
    for (std::int64_t i = 0; i * stripe < n; ++i) {
      const std::int64_t rows = std::min(stripe, n - i * stripe);
      const std::int64_t cols = std::min(stripe, n - k * stripe);
      std::vector<T> block(at(rows * cols));
      factor.read(i, k, block.data());
      for (std::int64_t c = 0; c < cols; ++c)
        for (std::int64_t r = 0; r < rows; ++r)
          all(i * stripe + r, k * stripe + c) = block[at(r + c * rows)];
    }
  }
  return all;
}

/// Random, with a diagonal that keeps growth small whatever the pivots.
template <class T>
Matrix<T> steady_matrix(std::int64_t n) {
  return test::make_matrix<T>(n, n, [n](auto i, auto j) {
    T value{};
    if constexpr (std::is_same_v<T, double>)
      value = test::signed_uniform(3, i, j);
    else
      value = test::complex_uniform(3, i, j);
    return value + (i == j ? T(std::sqrt(static_cast<double>(n))) : T(0));
  });
}

template <class T>
void expect_textbook(std::int64_t n, std::int64_t stripe, std::int64_t substripe) {
  SCOPED_TRACE(fmt::format("{} by {} by {}", n, stripe, substripe));
  Matrix<T> a = steady_matrix<T>(n);
  const Matrix<T> b =
      test::make_matrix<T>(n, 3, [](auto i, auto j) { return T(test::signed_uniform(5, i, j)); });
  Matrix<T> y = b;
  StripeFactor<T> factor(n, 3, with_run(stripes_of(stripe, substripe), on_one_cpu()));
  const LuInfo info = factor.factor(source_of_view<T>(a.data.data(), a.ld(), false), 1, y.view());
  ASSERT_TRUE(info.ok);
  Matrix<T> exact_y = b;
  const std::vector<std::int64_t> pivots = eliminate(a, exact_y, stripe, substripe);
  const Matrix<T> found = factors_of(factor);
  double met = 0;
  double multiplier = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    ASSERT_EQ(factor.pivots()[j], pivots[at(j)]) << j;
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(std::abs(found(i, j) - a(i, j)), 0, 1e-11) << i << ',' << j;
      if (i <= j) met = std::max(met, pivot_size(a(i, j)));
      if (i / stripe > j / stripe) multiplier = std::max(multiplier, pivot_size(a(i, j)));
    }
  }
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(std::abs(y(i, c) - exact_y(i, c)), 0, 1e-11);
  EXPECT_GE(info.growth, met * (1 - 1e-12)) << "elements of U count";
  EXPECT_NEAR(factor.largest_multiplier(), multiplier, 1e-12 * multiplier);
}

TEST(StripeFactors, AreThoseOfATextbook) {
  test::Thinned thinned(4);
  for (const std::int64_t n : {1, 2, 7, 31, 64, 110, 151}) {
    for (const std::int64_t stripe : {1, 5, 16, 40, 200}) {
      if (stripe == 1 && n > 31) continue;
      for (const std::int64_t substripe : {0, 1, 3, 8, 200}) {
        if (thinned.skips()) continue;
        expect_textbook<double>(n, std::min(stripe, n), substripe);
        if (n < 70) expect_textbook<Complex128>(n, std::min(stripe, n), substripe);
        if (HasFatalFailure()) return;
      }
    }
  }
}

template <class T>
void expect_solved(std::int64_t n, std::int64_t stripe, std::int64_t rhs) {
  const Matrix<T> a = steady_matrix<T>(n);
  const Matrix<T> x = test::make_matrix<T>(
      n, rhs, [](auto i, auto j) { return T(test::signed_uniform(7, i, j)) + T((i + j) % 3); });
  const auto conjugated = [](T value) {
    if constexpr (std::is_same_v<T, double>)
      return value;
    else
      return std::conj(value);
  };
  StripeFactor<T> factor(n, 0, with_run(stripes_of(stripe, 4), on_one_cpu()));
  Matrix<T> none(n, 0);
  ASSERT_TRUE(factor.factor(source_of_view<T>(a.data.data(), a.ld(), false), 1, none.view()).ok);
  for (const StripeSweeps sweeps : {StripeSweeps::both, StripeSweeps::adjoint}) {
    Matrix<T> b(n, rhs);
    for (std::int64_t c = 0; c < rhs; ++c)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          b(i, c) += (sweeps == StripeSweeps::both ? a(i, j) : conjugated(a(j, i))) * x(j, c);
    const RunReport report = factor.solve(b.view(), sweeps);
    EXPECT_EQ(report.traffic, report.planned_traffic);
    for (std::int64_t c = 0; c < rhs; ++c)
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(std::abs(b(i, c) - x(i, c)), 0, 1e-10) << n << " by " << stripe;
  }
}

TEST(StripeFactors, SolveWithTheMatrixAndItsAdjoint) {
  for (const std::int64_t n : {1, 9, 63, 100}) {
    for (const std::int64_t stripe : {4, 17, 100}) {
      expect_solved<double>(n, std::min(stripe, n), 1 + n % 4);
      expect_solved<Complex128>(n, std::min(stripe, n), 1 + n % 4);
      if (HasFatalFailure()) return;
    }
  }
}

// ---- plans and runs

TEST(StripePlans, AreProvenForEveryBudget) {
  test::Thinned thinned(5);
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t stripes : {1, 2, 3, 6}) {
      for (const Order& order : kOrders) {
        StripeProblem problem = problem_of(stripes, order.meta, order.zigzag, devices);
        for (const bool in_storage : {false, true}) {
          problem.in_storage = in_storage;
          problem.discards = stripes % 2 == 0;
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
              const Plan plan(schedule, machine, options_of(policy));
              ASSERT_EQ(test::check_plan(plan), "")
                  << devices << ' ' << stripes << ' ' << order.meta << ' ' << to_string(policy);
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

TEST(StripePlans, WithoutAWaitAreNoticed) {
  StripeProblem problem = problem_of(4, 2, true, 2);
  problem.in_storage = true;
  const auto schedule = std::make_shared<const Schedule>(stripe_factorization(problem));
  const std::int64_t smallest = smallest_budget_bytes(*schedule);
  Machine machine = Machine::emulated(2, smallest + 512);
  machine.storage = {{1e9, 0}, {1e9, 0}, smallest_host_bytes(*schedule, smallest) + 1024};
  const Plan plan(schedule, machine, options_of(Policy::idle));
  EXPECT_GT(test::expect_every_needed_wait_noticed(plan).needed, 15);
}

struct StripeCase {
  test::StorageBudget budget;
  int directories = 0;  ///< 0: in host memory
  Policy policy = Policy::idle;
};

TEST(StripeFactors, HaveTheSameBitsWhateverOrderBudgetPolicyAndStorage) {
  constexpr std::int64_t kOrder = 110;
  constexpr std::int64_t kStripe = 12;
  const Matrix<double> a = steady_matrix<double>(kOrder);
  const Matrix<double> b = test::random_general(kOrder, 8);
  Matrix<double> expected(0, 0);
  Matrix<double> carried(0, 0);
  const StripeCase cases[] = {{{"host:1", 0, 0}},
                              {{"host:3", 0, 0.2}},
                              {{"host:1", 0.2, 0}, 1},
                              {{"host:1", 0.2, 1 / 15.}, 2},
                              {{"host:2", 0.4, 0.1}, 3},
                              {{"host:2", 0.4, 0.1}, 1, Policy::opt},
                              {{"host:2", 0.4, 0.1}, 1, Policy::v3},
                              {{"host:1", 0.3, 0.1}, 1, Policy::sync}};
  for (const StripeCase& c : cases) {
    for (const Order& order : kOrders) {
      const Scratch folder;
      StripeOptions stripes = stripes_of(kStripe, 5, order.name());
      stripes.policy = c.policy;
      RunOptions options = test::within_budget(c.budget, kOrder * kOrder * 8);
      if (c.directories > 0) options = test::in_folders(options, folder, c.directories);
      StripeFactor<double> factor(kOrder, 2, with_run(stripes, options));
      Matrix<double> y(kOrder, 2);
      std::copy_n(b.data.begin(), y.data.size(), y.data.begin());
      ASSERT_TRUE(
          factor.factor(source_of_view<double>(a.data.data(), a.ld(), false), 1, y.view()).ok);
      const std::string what = fmt::format("{} meta {} in {} directories, {}", c.budget.devices,
                                           order.meta, c.directories, to_string(c.policy));
      const RunReport& report = factor.report();
      EXPECT_EQ(report.traffic, report.planned_traffic) << what;
      EXPECT_EQ(report.traffic.storage_read_bytes > 0, c.directories > 0) << what;
      const Matrix<double> found = factors_of(factor);
      if (expected.rows == 0) {
        expected = found;
        carried = y;
      }
      ASSERT_TRUE(test::same_bits(found.data, expected.data)) << what;
      ASSERT_TRUE(test::same_bits(y.data, carried.data)) << what;
      Matrix<double> x = y;
      const RunReport solve = factor.solve(x.view(), StripeSweeps::backward);
      EXPECT_EQ(solve.traffic, solve.planned_traffic) << what;
    }
  }
}

}  // namespace
}  // namespace strata
