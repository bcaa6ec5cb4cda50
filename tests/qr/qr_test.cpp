// qr: the same bits wherever it runs, traffic as planned, and what becomes of input that is bad.

#include "strata/qr.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <limits>
#include <map>

#include "kernels/tall/gram.hpp"
#include "qr/row_passes.hpp"
#include "qr/row_store.hpp"
#include "run/run.hpp"
#include "scalar/double_double.hpp"
#include "session/planned_run.hpp"
#include "session/policy.hpp"
#include "strata/error.hpp"
#include "tests/qr/factored.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/nan.hpp"

namespace strata {
namespace {

using test::error_of;
using test::Factored;
using test::factored;
using test::kNan;
using test::on;
using test::Tall;
using test::with_dependent_columns;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

QrOptions on_one_host() { return on("host:1", 64 << 20); }

// ---- the tree of sums

/// The sum of blocks first … first + count − 1, as the contract has it.
DoubleDouble tree(const std::vector<DoubleDouble>& blocks, std::size_t first, std::size_t count) {
  if (count == 1) return blocks[first];
  std::size_t half = 1;
  while (2 * half < count) half *= 2;
  return tree(blocks, first, half) + tree(blocks, first + half, count - half);
}

TEST(RowPass, AddsTheBlocksInABinaryTree) {
  constexpr std::int64_t kColumns = 2048;  // more than there are kernels for: only tasks count here
  ASSERT_EQ(gram_block_rows(kColumns), 1024);
  for (const std::int64_t blocks : {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 21, 61, 123, 128}) {
    for (const int devices : {1, 2, 3, 5}) {
      RowProblem problem;
      problem.m = 1024 * blocks - 5;
      problem.n = 1;
      problem.devices = devices;
      Schedule schedule = row_pass({.m = problem.m, .n = kColumns, .devices = devices});
      // The tasks alone, followed with one number for each block.
      std::map<BlockId, DoubleDouble> values;
      std::vector<DoubleDouble> of_block;
      DoubleDouble result;
      for (std::int64_t step = 0; step < schedule.steps; ++step) {
        TaskList tasks;
        schedule.emit(step, tasks);
        for (const Task& task : std::as_const(tasks).tasks()) {
          const auto x = std::as_const(tasks).operands(task);
          DoubleDouble value;
          if (task.operation->name == gram.name) {
            const auto b = static_cast<std::uint64_t>(x[1].id.row());
            value = two_sum(test::normal(1, b), 0x1p-60 * test::normal(2, b));
            of_block.push_back(value);
          } else {
            ASSERT_EQ(task.operation->name, gram_sum.name);
            ASSERT_TRUE(values.contains(x[1].id) && values.contains(x[2].id));
            value = values.at(x[1].id) + values.at(x[2].id);
            values.erase(x[1].id);
            values.erase(x[2].id);
          }
          ASSERT_FALSE(values.contains(x[0].id)) << "a sum that is needed is written over";
          values[x[0].id] = value;
          if (x[0].id.family() == rows::kSum) result = value;
        }
      }
      ASSERT_EQ(std::ssize(of_block), blocks);
      EXPECT_EQ(result, tree(of_block, 0, of_block.size())) << blocks << " on " << devices;
      EXPECT_EQ(values.size(), 1U) << "a sum is left over";
    }
  }
}

/// A device that waited for another's block would stand idle until that one is done with all.
TEST(RowPass, NoDeviceWaitsForAnotherBeforeTheLastBlock) {
  for (const std::int64_t blocks : {16, 61, 123, 128}) {
    for (const int devices : {2, 3, 4}) {
      const Schedule schedule = row_pass({.m = 8192 * blocks, .n = 20, .devices = devices});
      ASSERT_EQ(schedule.steps, blocks);
      std::map<BlockId, int> device_of;
      for (std::int64_t step = 0; step + 1 < schedule.steps; ++step) {
        TaskList tasks;
        schedule.emit(step, tasks);
        for (const Task& task : std::as_const(tasks).tasks()) {
          const auto x = std::as_const(tasks).operands(task);
          for (std::size_t i = 1; i < x.size(); ++i) {
            if (x[i].id.family() != rows::kParts) continue;
            EXPECT_EQ(device_of.at(x[i].id), task.device) << blocks << " on " << devices;
          }
          device_of[x[0].id] = task.device;
        }
      }
    }
  }
}

// ---- the same bits

class QrRuns : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, QrRuns, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(QrRuns, HaveTheSameBitsOnAnyDevicesInAnyBudgetAndPolicy) {
  // Blocks of 4096 rows: seven of them, the last one short.
  const Tall v = test::with_condition(25001, 40, 4e11, 5);
  const Factored<double> expected = factored(v, on_one_host());
  ASSERT_TRUE(expected.info.ok);
  ASSERT_EQ(expected.info.passes, 3);
  for (const int devices : {1, 2, 3, 4}) {
    const std::string text = test::devices_text(GetParam(), devices);
    if (text.empty()) continue;
    for (const std::int64_t budget : {3 << 20, 5 << 20, 64 << 20}) {
      for (const Policy policy : {Policy::sync, Policy::v1, Policy::opt}) {
        if (policy != Policy::opt && (devices == 2 || budget == 5 << 20)) continue;
        if (test::kSanitized && (devices == 2 || (devices > 1 && budget > 3 << 20))) continue;
        const Factored<double> got = factored(v, on(text, budget, policy));
        EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << text << ' ' << budget;
        EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << text << ' ' << budget;
        EXPECT_EQ(got.info.orthogonality, expected.info.orthogonality);
        EXPECT_EQ(got.info.report.traffic,
                  static_cast<const Traffic&>(got.info.report.planned_traffic));
      }
    }
  }
}

/// Two blocks; CPUs are slow at it.
TEST_P(QrRuns, SumsByDigitsHaveTheSameBitsOnAnyDevicesInAnyBudget) {
  const Tall v = test::with_condition(8500, 20, 1e9, 5);
  const auto by_digits = [](QrOptions options) {
    options.wide_sums = WideSums::digits;
    return options;
  };
  const Factored<double> expected = factored(v, by_digits(on_one_host()));
  ASSERT_TRUE(expected.info.ok);
  for (const int devices : {1, 2, 4}) {
    const std::string text = test::devices_text(GetParam(), devices);
    const std::int64_t budget = devices == 2 ? 64 << 20 : 3 << 20;
    if (text.empty()) continue;
    const Factored<double> got = factored(v, by_digits(on(text, budget)));
    EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << text << ' ' << budget;
    EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << text << ' ' << budget;
  }
}

TEST_P(QrRuns, EveryMethodHasItsBitsOnSeveralDevices) {
  const Tall v = test::with_condition(9000, 33, 1e5, 6);
  const std::string two = test::devices_text(GetParam(), 2);
  for (const QrMethod method : qr_methods()) {
    QrOptions options = on_one_host();
    options.method = method;
    const Factored<double> expected = factored(v, options);
    const std::string one = test::devices_text(GetParam(), 1);
    for (const std::string& text : {one, two}) {
      if (text.empty() || (test::kSanitized && text == one)) continue;
      const Factored<double> got = factored(v, on(text, 4 << 20, Policy::opt, method));
      EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << to_string(method);
      EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << to_string(method);
    }
    EXPECT_LE(test::residual_of(v, expected.q, expected.r), 1e-13) << to_string(method);
  }
}

TEST(Qr, ReadsVOnceAndWritesQOnceWhereItStaysOnTheDevice) {
  const Tall v = test::with_condition(50001, 20, 1e12, 5);
  const QrInfo info = factored(v, on_one_host()).info;
  const std::int64_t bytes = v.view().size() * 8;
  const std::int64_t small = 20 * 20 * 16;
  EXPECT_GE(info.report.traffic.host_to_device_bytes, bytes);
  EXPECT_LE(info.report.traffic.host_to_device_bytes, bytes + 3 * small);
  EXPECT_GE(info.report.traffic.device_to_host_bytes, bytes);
  EXPECT_LE(info.report.traffic.device_to_host_bytes, bytes + 3 * small);
  // Streamed, V passes once a pass.
  const QrInfo streamed = factored(v, on("host:1", 3 << 20, Policy::sync)).info;
  EXPECT_GE(streamed.report.traffic.host_to_device_bytes, 3 * bytes);
  EXPECT_LE(streamed.report.traffic.host_to_device_bytes, 4 * bytes);
  EXPECT_LE(streamed.report.traffic.device_to_host_bytes, 3 * bytes);
}

TEST(Qr, BlocksOfVMayBeOfTheSizeOfThoseBesideIt) {
  // Slots of V and of n × n sums share a size class or not, pass by pass.
  for (std::int64_t m = 20; m <= 60; ++m) {
    const Tall v = test::with_condition(m, 20, 1e17, 100 + static_cast<std::uint64_t>(m));
    const Factored<double> got = factored(v, on_one_host());
    EXPECT_TRUE(got.info.ok) << m;
    EXPECT_LE(test::orthogonality_of(got.q, 20), 4e-14) << m;
    EXPECT_LE(test::residual_of(v, got.q, got.r), 4e-14) << m;
    EXPECT_EQ(got.info.report.traffic,
              static_cast<const Traffic&>(got.info.report.planned_traffic));
    for (const QrMethod method : {QrMethod::cholqr2, QrMethod::cholqr_wide2})
      EXPECT_LE(factored(v, on("host:1", 64 << 20, Policy::opt, method)).info.rank, 20) << m;
  }
}

TEST(RowPass, HasTheBitsOfTheScheduleInOrder) {
  const Tall v = test::random_tall(20000, 50, 9);
  const RowProblem problem{.m = 20000, .n = 50};
  const Schedule schedule = row_pass(problem);
  const std::vector<double> ones(50, 1.0);
  const auto store_of = [&](const BlockTable& blocks) {
    std::vector<std::shared_ptr<FamilyMemory>> families{nullptr};
    families.push_back(std::make_shared<FamilyMemory>(blocks, rows::kScales,
                                                      source_of_view(ones.data(), 50, false)));
    for (const int f : {rows::kFactor, rows::kParts, rows::kSum, rows::kMaxima})
      families.push_back(std::make_shared<FamilyMemory>(blocks, f));
    return std::make_unique<RowStore<double>>(blocks, TallColumns<double>{.from = v.view()},
                                              std::move(families));
  };
  const auto read = [&](BlockStore& store) {
    std::vector<DoubleDouble> b(2500);
    store.read(BlockId(rows::kSum, 0, 0), reinterpret_cast<std::byte*>(b.data()));
    return b;
  };
  const auto in_order = store_of(schedule.blocks);
  run_in_order(schedule, reference_backend(), *in_order);
  RunOptions options;
  options.devices = "host:1";
  options.device_memory_bytes = 8 << 20;
  DeviceSet devices(options);
  const PlannedRun planned = make_planned_run(std::make_shared<const Schedule>(schedule),
                                              devices.machine(), options_of(Policy::opt), "opt");
  const auto planned_store = store_of(schedule.blocks);
  (void)run(*planned.plan, devices, *planned_store);
  EXPECT_EQ(read(*in_order), read(*planned_store));
}

TEST(Qr, MovesWhatIsPlannedAtAllHalfAndAQuarterOfItsMemory) {
  const Tall v = test::with_condition(30001, 24, 1e9, 12);
  test::Thinned thinned(5);
  for (const QrMethod method : {QrMethod::automatic, QrMethod::cholqr2, QrMethod::tsqr}) {
    const Factored<double> expected = factored(v, on("host:1", 64 << 20, Policy::opt, method));
    const std::int64_t all = expected.info.report.peak_device_bytes;
    for (const char* devices : {"host:1", "host:2"}) {
      for (const std::int64_t share : {100, 50, 25}) {
        if (thinned.skips()) continue;
        const Factored<double> got =
            factored(v, on(devices, all * share / 100, Policy::opt, method));
        EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << devices << ' ' << share;
        EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << devices << ' ' << share;
        EXPECT_TRUE(test::executed_as_planned(got.info.report)) << devices << ' ' << share;
        EXPECT_LE(got.info.report.peak_device_bytes, all * share / 100);
      }
    }
  }
}

// ---- against many digits

TEST(Qr, RIsTheCholeskyFactorInManyDigits) {
  using Many = boost::multiprecision::number<
      boost::multiprecision::cpp_bin_float<600, boost::multiprecision::digit_base_2>,
      boost::multiprecision::et_off>;
  const Tall v = test::krylov(12);
  const Factored<double> got = factored(v, on_one_host());
  std::vector<Many> b(144);
  const auto at = [](std::vector<Many>& a, std::int64_t i, std::int64_t j) -> Many& {
    return a[static_cast<std::size_t>(i + 12 * j)];
  };
  for (std::int64_t j = 0; j < 12; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      for (std::int64_t k = 0; k < v.rows; ++k) at(b, i, j) += Many(v(k, i)) * Many(v(k, j));
    }
  }
  for (std::int64_t j = 0; j < 12; ++j) {
    const Many root = sqrt(at(b, j, j));
    for (std::int64_t k = j; k < 12; ++k) at(b, j, k) /= root;
    for (std::int64_t k = j + 1; k < 12; ++k) {
      for (std::int64_t i = j + 1; i <= k; ++i) at(b, i, k) -= at(b, j, i) * at(b, j, k);
    }
    for (std::int64_t k = j; k < 12; ++k) {
      const auto exact = static_cast<double>(at(b, j, k));
      EXPECT_NEAR(got.r(j, k), exact, 1e-13 * std::abs(exact)) << j << ' ' << k;
    }
  }
}

// ---- single precision

TEST(Qr, OfFloatsIsOrthonormalToTheirRounding) {
  for (const double condition : {1e1, 1e3, 1e5, 1e7, 1e9}) {
    const Tall wide = test::with_condition(3000, 20, condition, 8);
    const auto v = test::make_matrix<float>(3000, 20, [&](auto i, auto j) { return wide(i, j); });
    const Factored<float> got = factored(v, on_one_host());
    EXPECT_TRUE(got.info.ok) << condition;
    EXPECT_EQ(got.info.rank, 20) << condition;
    EXPECT_LE(test::orthogonality_of(got.q, 20), 2e-6) << condition;
    EXPECT_LE(test::residual_of(v, got.q, got.r), 2e-6) << condition;
    if (condition > 1e7) continue;
    QrOptions options = on_one_host();
    options.method = QrMethod::cholqr_wide;
    const Factored<float> once = factored(v, options);
    EXPECT_LE(test::orthogonality_of(once.q, 20), 10 * 0x1p-23 * condition) << condition;
  }
}

// ---- dependent columns and bad input

TEST(Qr, DropsDependentColumnsAndNamesThem) {
  const Tall v = with_dependent_columns();
  const Factored<double> got = factored(v, on_one_host());
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, 5);
  EXPECT_EQ(got.info.dependent_columns, (std::vector<std::int64_t>{2, 4, 6}));
  EXPECT_LE(test::orthogonality_of(got.q, 5), 2e-14);
  EXPECT_LE(test::residual_of(v, got.q, got.r), 2e-14);
  for (std::int64_t k = 0; k < 8; ++k) {
    for (std::int64_t i = 0; i < 700; ++i) {
      if (k >= 5) {
        EXPECT_EQ(got.q(i, k), 0);
      }
    }
    for (std::int64_t i = 5; i < 8; ++i) EXPECT_EQ(got.r(i, k), 0);
  }
}

TEST(Qr, ColumnsComputedFromOthersAreDependentWhereAToleranceSaysSo) {
  // Twelve columns, and eight that are sums of them, rounded to fp64.
  Tall v = test::random_tall(900, 20, 30);
  for (std::int64_t j = 12; j < 20; ++j) {
    for (std::int64_t i = 0; i < 900; ++i) {
      v(i, j) = 0;
      for (std::int64_t k = 0; k < 12; ++k)
        v(i, j) += test::normal(31, static_cast<std::uint64_t>(20 * k + j)) * v(i, k);
    }
  }
  for (std::int64_t i = 0; i < 900; ++i) v(i, 3) *= 1e120;  // grading does not matter
  const Factored<double> exact = factored(v, on_one_host());
  EXPECT_TRUE(exact.info.ok);
  EXPECT_EQ(exact.info.rank, 20);
  EXPECT_EQ(exact.info.numerical_rank, 12);
  QrOptions options = on_one_host();
  options.rank_tolerance = 20 * 0x1p-52;
  const Factored<double> got = factored(v, options);
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, 12);
  EXPECT_EQ(got.info.numerical_rank, 12);
  EXPECT_EQ(got.info.dependent_columns,
            (std::vector<std::int64_t>{12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_LE(got.info.condition, 1e3);
  EXPECT_LE(test::orthogonality_of(got.q, 12), 2e-14);
  EXPECT_LE(test::residual_of(v, got.q, got.r), 1e-14);
  options.dependent = DependentColumns::fill;
  const Factored<double> filled = factored(v, options);
  EXPECT_EQ(filled.info.rank, 12);
  EXPECT_LE(test::orthogonality_of(filled.q, 20), 4e-14);
  EXPECT_LE(test::residual_of(v, filled.q, filled.r), 1e-14);
  options.rank_tolerance = 1;
  Tall r(20, 20);
  EXPECT_THROW((void)qr(v.view(), r.view(), options), Error);
}

TEST(Qr, FillsDependentColumnsWithOrthonormalOnes) {
  const Tall v = with_dependent_columns();
  QrOptions options = on_one_host();
  options.dependent = DependentColumns::fill;
  const Factored<double> got = factored(v, options);
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, 5);
  EXPECT_LE(test::orthogonality_of(got.q, 8), 3e-14);
  EXPECT_LE(test::residual_of(v, got.q, got.r), 3e-14);
  for (const std::int64_t j : {2, 4, 6}) EXPECT_EQ(got.r(j, j), 0);
  for (const std::int64_t j : {0, 1, 3, 5, 7}) EXPECT_GT(got.r(j, j), 0);
  // A square matrix leaves one direction for its last column.
  Tall square = test::random_tall(20, 20, 11);
  for (std::int64_t i = 0; i < 20; ++i) square(i, 19) = square(i, 3);
  const Factored<double> last = factored(square, options);
  EXPECT_TRUE(last.info.ok);
  EXPECT_LE(test::orthogonality_of(last.q, 20), 5e-14);
}

TEST(Qr, AMatrixOfZerosHasRankZero) {
  const Factored<double> got = factored(Tall(50, 3), on_one_host());
  EXPECT_TRUE(got.info.ok);
  EXPECT_EQ(got.info.rank, 0);
  EXPECT_EQ(got.info.dependent_columns.size(), 3U);
}

TEST(Qr, NamesTheFirstElementThatIsNotFiniteAndLeavesV) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    Tall v = test::random_tall(3000, 5, 13);
    v(1234, 3) = bad;
    v(2000, 0) = bad;
    const Tall before = v;
    Tall r(5, 5);
    const Error error = error_of([&] { (void)qr(v.view(), r.view(), on_one_host()); });
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("(1234, 3)"), std::string::npos) << error.what();
    EXPECT_TRUE(test::same_bits(v.data, before.data));
  }
}

TEST(Qr, RefusesWhatDoesNotFit) {
  Tall wide(3, 4);
  Tall r(4, 4);
  EXPECT_EQ(error_of([&] { (void)qr(wide.view(), r.view(), on_one_host()); }).kind(),
            ErrorKind::misuse);
  Tall v(10, 3);
  EXPECT_EQ(error_of([&] { (void)qr(v.view(), r.view(), on_one_host()); }).kind(),
            ErrorKind::misuse);
  Tall many(600, 513);
  Tall large(513, 513);
  EXPECT_EQ(error_of([&] {
              (void)qr(many.view(), large.view(),
                       on("host:1", 64 << 20, Policy::opt, QrMethod::cholqr2));
            }).kind(),
            ErrorKind::misuse);
  Tall tall = test::random_tall(5000, 30, 14);
  Tall small(30, 30);
  EXPECT_EQ(error_of([&] { (void)qr(tall.view(), small.view(), on("host:1", 100000)); }).kind(),
            ErrorKind::memory);
  EXPECT_EQ(error_of([] { (void)parse_qr_method("householder"); }).kind(), ErrorKind::misuse);
  for (const QrMethod method : qr_methods())
    EXPECT_EQ(parse_qr_method(std::string(to_string(method))), method);
}

TEST(Qr, CanBeCancelled) {
  Tall v = test::random_tall(60000, 20, 15);
  Tall r(20, 20);
  QrOptions options = on_one_host();
  options.run.progress = [](const Progress&) { return false; };
  EXPECT_EQ(error_of([&] { (void)qr(v.view(), r.view(), options); }).kind(), ErrorKind::cancelled);
}

// ---- least squares

}  // namespace
}  // namespace strata
