// TSQR: its trees, the same bits in any groups, on any devices and in any budget, and orthogonality
// to rounding on every matrix of the literature.

#include "qr/tsqr_passes.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <set>

#include "qr/row_store.hpp"
#include "run/run.hpp"
#include "strata/error.hpp"
#include "strata/qr.hpp"
#include "tests/qr/factored.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::factored;
using test::Tall;

TEST(TriangleTree, JoinsEveryBlockOnceInTheOrderOfRows) {
  for (const TreeShape shape : {TreeShape::binary, TreeShape::flat}) {
    for (const std::int64_t blocks : {1, 2, 3, 4, 7, 8, 13, 64}) {
      const TriangleTree tree(blocks, shape);
      ASSERT_EQ(tree.count(), 2 * blocks - 1);
      std::vector<std::pair<std::int64_t, std::int64_t>> range;  // of the blocks under a node
      std::vector<int> level;
      for (std::int64_t b = 0; b < blocks; ++b) {
        range.emplace_back(b, b + 1);
        level.push_back(0);
      }
      for (const TriangleTree::Node& node : tree.nodes()) {
        const auto left = static_cast<std::size_t>(node.left);
        const auto right = static_cast<std::size_t>(node.right);
        ASSERT_LT(std::max(left, right), range.size());
        EXPECT_EQ(range[left].second, range[right].first);
        EXPECT_EQ(range[right].second, node.block + 1) << "a node is known with its last block";
        EXPECT_EQ(node.level, std::max(level[left], level[right]) + 1);
        if (shape == TreeShape::flat) {
          EXPECT_EQ(node.right, node.block);
        }
        range.emplace_back(range[left].first, range[right].second);
        level.push_back(node.level);
      }
      EXPECT_EQ(range.back(), std::make_pair(std::int64_t{0}, blocks));
      const int height = shape == TreeShape::flat
                             ? static_cast<int>(blocks) - 1
                             : static_cast<int>(std::bit_width(static_cast<unsigned>(blocks - 1)));
      EXPECT_EQ(level.back(), height) << blocks;
    }
  }
}

/// Both passes as the schedules define them, on the reference backend.
struct InOrder {
  Tall q;
  std::vector<double> nodes;
};
InOrder in_order(const Tall& v, TreeShape shape, std::int64_t group, int devices) {
  InOrder result{v, {}};
  const std::int64_t n = v.cols;
  RowProblem problem{.pass = RowPass::triangles, .m = v.rows, .n = n, .devices = devices};
  problem.shape = shape;
  problem.group = group;
  const auto run = [&](std::shared_ptr<FamilyMemory> factor) {
    const Schedule schedule = row_pass(problem);
    std::vector<std::shared_ptr<FamilyMemory>> families{nullptr, nullptr, std::move(factor)};
    for (const int f : {rows::kParts, rows::kSum})
      families.push_back(std::make_shared<FamilyMemory>(schedule.blocks, f));
    families.push_back(nullptr);
    const auto sums = families[rows::kSum];
    RowStore<double> store(
        schedule.blocks,
        {.from = {std::as_const(result.q).view()}, .beside = {}, .to = result.q.view()},
        std::move(families));
    // No task touches more blocks than it says.
    for (std::int64_t step = 0; step < schedule.steps; ++step) {
      TaskList tasks;
      schedule.emit(step, tasks);
      for (const Task& task : std::as_const(tasks).tasks()) {
        std::map<int, std::set<BlockId>> touched;
        for (const TaskOperand& x : std::as_const(tasks).operands(task))
          touched[x.id.family()].insert(x.id);
        for (const auto& [family, ids] : touched)
          EXPECT_LE(std::ssize(ids), schedule.operands[static_cast<std::size_t>(family)]);
      }
    }
    run_in_order(schedule, host_backend(), store);
    return sums;
  };
  const auto sums = run(nullptr);
  const auto count = static_cast<std::size_t>(triangles_of(v.rows, n) * n * n);
  const auto* values = reinterpret_cast<const double*>(sums->data());
  result.nodes.assign(values, values + count);
  std::vector<double> factor = result.nodes;
  for (std::int64_t k = 0; k < n * n; ++k) factor.push_back(k % (n + 1) == 0 ? 1 : 0);
  problem.pass = RowPass::orthogonal;
  const Schedule down = row_pass(problem);
  (void)run(std::make_shared<FamilyMemory>(
      down.blocks, rows::kFactor, [&](const BlockExtent& x, std::byte* to) {
        std::memcpy(to, factor.data() + x.col * n, static_cast<std::size_t>(n * n) * 8);
      }));
  return result;
}

TEST(TsqrPasses, GroupsAndDevicesChangeNoBit) {
  const Tall v = test::with_condition(25001, 40, 1e6, 5);  // seven blocks
  for (const TreeShape shape : {TreeShape::binary, TreeShape::flat}) {
    const InOrder expected = in_order(v, shape, 1, 1);
    EXPECT_LE(test::orthogonality_of(expected.q, 40), 2e-15);
    for (const std::int64_t group : {2, 3, 4, 7, 32}) {
      if (test::kSanitized && group != 3 && group != 32) continue;
      for (const int devices : {1, 3}) {
        if (test::kSanitized && (group == 3) != (devices == 3)) continue;
        const InOrder got = in_order(v, shape, group, devices);
        EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << group << " on " << devices;
        EXPECT_TRUE(test::same_bits(got.nodes, expected.nodes)) << group << " on " << devices;
      }
    }
  }
}

class TsqrRuns : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, TsqrRuns, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(TsqrRuns, HaveTheSameBitsOnAnyDevicesInAnyBudgetAndPolicy) {
  const Tall v = test::with_condition(25001, 40, 1e12, 5);
  for (const QrMethod method : {QrMethod::tsqr, QrMethod::tsqr_flat}) {
    QrOptions options = test::plain(method);
    const auto expected = factored(v, options);
    ASSERT_TRUE(expected.info.ok);
    EXPECT_EQ(expected.info.passes, 3);  // the last measures
    for (const int devices : {1, 2, 4}) {
      const std::string text = test::devices_text(GetParam(), devices);
      if (text.empty()) continue;
      for (const std::int64_t budget : {3 << 20, 5 << 20, 64 << 20}) {
        for (const Policy policy : {Policy::sync, Policy::v1, Policy::opt}) {
          if (policy != Policy::opt && (devices == 2 || budget == 5 << 20)) continue;
          if (test::kSanitized && (budget != 3 << 20 || devices == 2)) continue;
          if (test::kSanitized && policy != (devices == 1 ? Policy::opt : Policy::sync)) continue;
          options.run.devices = text;
          options.run.device_memory_bytes = budget;
          options.run.policy = policy;
          const auto got = factored(v, options);
          EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << text << ' ' << budget;
          EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << text << ' ' << budget;
          EXPECT_EQ(got.info.report.traffic,
                    static_cast<const Traffic&>(got.info.report.planned_traffic));
        }
      }
    }
  }
}

TEST(Tsqr, ReadsVTwiceAndWritesItOnceWithoutMeasuring) {
  const Tall v = test::with_condition(25001, 40, 1e3, 5);
  QrOptions options = test::plain(QrMethod::tsqr);
  options.verify = false;
  options.run.device_memory_bytes = 3 << 20;
  options.run.policy = Policy::sync;
  const auto got = factored(v, options);
  const std::int64_t bytes = v.view().size() * 8;
  const std::int64_t nodes = triangles_of(v.rows, v.cols) * 40 * 40 * 8;
  EXPECT_EQ(got.info.passes, 2);
  EXPECT_GE(got.info.report.traffic.host_to_device_bytes, 2 * bytes);
  EXPECT_LE(got.info.report.traffic.host_to_device_bytes, 2 * bytes + 5 * nodes);
  EXPECT_LE(got.info.report.traffic.device_to_host_bytes, bytes + 4 * nodes);
  EXPECT_FALSE(got.info.measured);
  EXPECT_TRUE(got.info.ok);
  EXPECT_GE(got.info.orthogonality, test::orthogonality_of(got.q, 40));
}

TEST(Tsqr, IsOrthonormalForAnyShape) {
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                                               {3, 3},
                                                                               {300000, 1},
                                                                               {8193, 20},
                                                                               {8200, 20},
                                                                               {140, 129},
                                                                               {1100, 260},
                                                                               {4100, 300}}) {
    if (test::kSanitized && n == 300) continue;
    for (const QrMethod method : {QrMethod::tsqr, QrMethod::tsqr_flat}) {
      const Tall v = test::random_tall(m, n, 7);
      const auto got = factored(v, test::plain(method));
      EXPECT_TRUE(got.info.ok) << m << ' ' << n;
      EXPECT_LE(test::orthogonality_of(got.q, n), 2e-15 + 1e-17 * static_cast<double>(n)) << n;
      EXPECT_LE(test::residual_of(v, got.q, got.r), 2e-15 + 1e-16 * static_cast<double>(n)) << n;
      for (std::int64_t j = 0; j < n; ++j) EXPECT_GE(got.r(j, j), 0);
    }
  }
}

TEST(Tsqr, OfFloatsIsOrthonormalToTheirRounding) {
  const Tall wide = test::with_condition(9000, 20, 1e9, 8);
  const auto v = test::make_matrix<float>(9000, 20, [&](auto i, auto j) { return wide(i, j); });
  const auto got = factored(v, test::plain(QrMethod::tsqr));
  EXPECT_TRUE(got.info.ok);
  EXPECT_LE(test::orthogonality_of(got.q, 20), 1e-6);
  EXPECT_LE(test::residual_of(v, got.q, got.r), 1e-6);
}

TEST(Tsqr, NeedsNoScalesAndDropsNothing) {
  Tall v = test::random_tall(9000, 6, 12);
  for (std::int64_t i = 0; i < v.rows; ++i) {
    v(i, 1) *= 1e200;
    v(i, 2) *= 1e-200;
    v(i, 3) = 0;
    v(i, 5) = v(i, 0);
  }
  const auto got = factored(v, test::plain(QrMethod::tsqr));
  EXPECT_TRUE(got.info.ok);
  EXPECT_FALSE(got.info.rescaled);
  EXPECT_LE(test::orthogonality_of(got.q, 6), 2e-15);
  EXPECT_LE(test::residual_of(v, got.q, got.r), 3e-15);
  EXPECT_TRUE(got.info.dependent_columns.empty());
  EXPECT_GE(got.info.condition, 1e14) << "rounding is all that the last column has of its own";
}

/// A column of zeros is no direction of V; Q has one for it all the same, and R a row.
TEST(Tsqr, AColumnOfZerosLeavesNoConditionAndARankAsOfOtherMethods) {
  for (const QrMethod method : {QrMethod::tsqr, QrMethod::tsqr_flat}) {
    for (const std::int64_t zeros : {0, 1, 2, 7}) {
      SCOPED_TRACE(std::string(to_string(method)) + ' ' + std::to_string(zeros));
      Tall v = test::random_tall(9000, 7, 12);
      for (std::int64_t i = 0; i < v.rows; ++i) {
        v(i, 5) *= 1e-300;  // which is not zero
        for (std::int64_t j = 0; j < zeros; ++j) v(i, (3 + j) % 7) = 0;
      }
      const auto got = factored(v, test::plain(method));
      EXPECT_TRUE(got.info.ok);
      EXPECT_EQ(got.info.rank, factored(v, test::plain(QrMethod::cholqr2)).info.rank);
      EXPECT_EQ(got.info.numerical_rank, got.info.rank);
      EXPECT_TRUE(got.info.dependent_columns.empty());
      EXPECT_EQ(std::isinf(got.info.condition), zeros > 0) << got.info.condition;
      EXPECT_LE(test::residual_of(v, got.q, got.r), 3e-15);
      EXPECT_LE(test::orthogonality_of(got.q, 7), 2e-15);
      const auto narrow = test::make_matrix<float>(
          v.rows, 7, [&](auto i, auto j) { return j == 5 && v(i, j) != 0 ? 1e-30 : v(i, j); });
      EXPECT_EQ(factored(narrow, test::plain(method)).info.rank, 7 - zeros);
    }
  }
}

TEST(Tsqr, NamesWhatIsNotFiniteAndLeavesV) {
  Tall v = test::random_tall(9000, 5, 13);
  v(8500, 3) = std::nan("");
  const Tall before = v;
  Tall r(5, 5);
  try {
    (void)qr(v.view(), r.view(), test::plain(QrMethod::tsqr));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("(8500, 3)"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(test::same_bits(v.data, before.data));
}

}  // namespace
}  // namespace strata
