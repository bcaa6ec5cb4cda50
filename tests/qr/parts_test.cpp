// V in parts, in the memory of several devices: the bits of V in one piece, wherever it is cut.

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>

#include "qr/row_parts.hpp"
#include "qr/row_passes.hpp"
#include "strata/error.hpp"
#include "tests/qr/factored.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/device_memory.hpp"

namespace strata {
namespace {

using test::DeviceMemory;
using test::factored;
using test::Tall;

// ---- blocks and the tree of their sums

/// The sum of units first … first + count − 1 in the order of kernels/tall/gram.hpp, written out.
std::string written_sum(std::int64_t first, std::int64_t count) {
  if (count == 1) return std::to_string(first);
  std::int64_t half = 1;
  while (2 * half < count) half *= 2;
  return "(" + written_sum(first, half) + "+" + written_sum(first + half, count - half) + ")";
}

constexpr std::int64_t kUnit = kGramUnitRows;
std::int64_t units_of(std::int64_t rows) { return (rows + kUnit - 1) / kUnit; }

/// What the tasks of a tree add up, written out; they are followed as they are put into queues.
std::string written_by(const PartTree& tree, int queues) {
  std::map<int, std::string> of_name;
  std::map<int, int> device_of;
  std::string whole;
  const auto add = [&](const PartTree::Join& join) {
    EXPECT_LT(join.to, tree.count());
    const std::string joined = "(" + of_name.at(join.left) + "+" + of_name.at(join.right) + ")";
    EXPECT_EQ(join.device, device_of.at(join.right));
    // Consumed once, so that a name may be used again.
    of_name.erase(join.left);
    of_name.erase(join.right);
    (join.to < 0 ? whole : of_name[join.to]) = joined;
    device_of[join.to] = join.device;
  };
  for (const std::int64_t b : tree.order()) {
    const RowBlock& block = tree.blocks()[static_cast<std::size_t>(b)];
    const std::string sum = written_sum(block.row / kUnit, units_of(block.rows));
    if (tree.name(b) < 0) whole = sum;
    of_name[tree.name(b)] = sum;
    device_of[tree.name(b)] = block.part * queues;
    EXPECT_EQ(tree.device_of(b) / queues, block.part);
    for (const PartTree::Join& join : tree.joins(b)) {
      EXPECT_EQ(device_of.at(join.left), join.device);  // of one device
      add(join);
    }
  }
  for (const PartTree::Join& join : tree.late_joins()) add(join);
  if (!tree.late_joins().empty()) {
    EXPECT_EQ(device_of.at(-1), tree.device_of_sum());
  }
  return whole;
}

TEST(RowParts, AreSummedInTheOrderOfTheWholeWhereverVIsCut) {
  struct Case {
    std::vector<std::int64_t> units;
    std::int64_t rows_more;  ///< of the last part
  };
  const Case cases[] = {{{1}, 0},           {{1, 0}, 0},     {{1, 1}, 0},
                        {{5, 3}, 17},       {{61, 64}, 1},   {{61, 64}, 0},
                        {{7, 0, 13}, 1023}, {{0, 9}, 5},     {{128, 128}, 0},
                        {{1, 127}, 0},      {{127, 1}, 0},   {{33, 31, 40, 3}, 100},
                        {{0, 0, 5, 0}, 0},  {{100, 7, 0}, 0}};
  for (const Case& c : cases) {
    std::vector<std::int64_t> rows;
    for (const std::int64_t units : c.units) rows.push_back(units * kUnit);
    rows.back() += c.rows_more;
    const std::int64_t m = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    for (const std::int64_t most : {kUnit, 4 * kUnit, 64 * kUnit, 1024 * kUnit}) {
      for (const bool equal : {false, true}) {
        const std::int64_t height = equal ? common_height(rows, most) : most;
        const std::vector<RowBlock> blocks = blocks_of_parts(rows, height, equal);
        std::int64_t row = 0;
        std::vector<std::int64_t> of_part(rows.size());
        for (const RowBlock& block : blocks) {
          EXPECT_EQ(block.row, row);
          EXPECT_GT(block.rows, 0);
          EXPECT_LE(block.rows, most);
          row += block.rows;
          of_part[static_cast<std::size_t>(block.part)] += block.rows;
        }
        EXPECT_EQ(row, m);
        EXPECT_EQ(of_part, rows);
        for (const int queues : {1, 2}) {
          const PartTree tree(blocks, queues);
          EXPECT_EQ(written_by(tree, queues), written_sum(0, units_of(m))) << m << ' ' << most;
          EXPECT_LE(tree.count(), 2 * std::ssize(blocks));
        }
      }
    }
  }
}

TEST(RowParts, OfAMillionUnitsAreFewBlocksAndNames) {
  const std::vector<std::int64_t> rows{7813 * kUnit, 7812 * kUnit - 3};
  const PartTree tree(blocks_of_parts(rows, std::int64_t{1} << 22, false));
  EXPECT_LE(tree.blocks().size(), 24U);
  const PartTree fine(blocks_of_parts(rows, kUnit, false));
  EXPECT_EQ(fine.blocks().size(), 15625U);
  EXPECT_LE(fine.count(), 60);  // those of a level at a time, on two devices
  EXPECT_EQ(fine.order()[0], 0);
  EXPECT_EQ(fine.order()[1], 7813);  // of the other device
}

TEST(RowParts, ACutInsideABlockIsRefused) {
  EXPECT_THROW((void)blocks_of_parts({kUnit, kUnit}, 2 * kUnit, true), Error);
  EXPECT_EQ(common_height({8 * kUnit, 12 * kUnit, 5}, 1024 * kUnit), 4 * kUnit);
  EXPECT_EQ(common_height({8 * kUnit, 0, 0}, 1024 * kUnit), 1024 * kUnit);
}

// ---- whole calls

class QrInParts : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::int64_t kPadding = 3;

  [[nodiscard]] bool has(std::size_t parts) const {
    return !test::devices_text(GetParam(), static_cast<int>(parts)).empty();
  }
  [[nodiscard]] QrOptions options(std::size_t parts, QrMethod method = QrMethod::automatic) const {
    QrOptions options;
    options.method = method;
    options.run.devices = test::devices_text(GetParam(), static_cast<int>(parts));
    options.wide_sums = WideSums::extraction;  // whose bits CPUs and GPUs share
    return options;
  }
  template <class T>
  struct Placed {
    std::vector<std::unique_ptr<DeviceMemory>> memories;
    std::vector<MatrixView<T>> parts;
  };
  /// Rows of V on a device each.
  template <class T>
  [[nodiscard]] Placed<T> placed(const test::Matrix<T>& v,
                                 const std::vector<std::int64_t>& rows) const {
    Placed<T> result;
    std::int64_t first = 0;
    for (std::size_t p = 0; p < rows.size(); ++p) {
      const std::int64_t ld = rows[p] + kPadding;
      std::vector<T> values(static_cast<std::size_t>(ld * v.cols), T{-7});
      for (std::int64_t j = 0; j < v.cols; ++j)
        std::copy_n(v.view().column(j) + first, rows[p], values.data() + j * ld);
      result.memories.push_back(
          std::make_unique<DeviceMemory>(GetParam(), std::int64_t{64} << 20, static_cast<int>(p)));
      result.parts.push_back(result.memories.back()->put(values, rows[p], v.cols, ld));
      first += rows[p];
    }
    return result;
  }
  template <class T>
  [[nodiscard]] test::Factored<T> in_parts(const test::Matrix<T>& v,
                                           const std::vector<std::int64_t>& rows,
                                           const QrOptions& options) const {
    const Placed<T> there = placed(v, rows);
    test::Factored<T> result{v, test::Matrix<T>(v.cols, v.cols), {}};
    result.info =
        qr_in_place(std::span<const MatrixView<T>>(there.parts), result.r.view(), options);
    std::int64_t first = 0;
    for (std::size_t p = 0; p < rows.size(); ++p) {
      const MatrixView<T> part = there.parts[p];
      const std::vector<T> values = there.memories[p]->get(part);
      for (std::int64_t j = 0; j < v.cols; ++j) {
        const T* column = values.data() + j * part.ld;
        std::copy_n(column, part.rows, result.q.view().column(j) + first);
        EXPECT_EQ(std::count(column + part.rows, column + part.ld, T{-7}), kPadding);
      }
      first += part.rows;
    }
    return result;
  }
  template <class T>
  void expect_bits_of_qr(const test::Matrix<T>& v, const std::vector<std::int64_t>& rows,
                         const QrOptions& options) const {
    if (!has(rows.size())) return;
    QrOptions planned = test::plain(options.method);
    planned.dependent = options.dependent;
    planned.wide_sums = options.wide_sums;
    const test::Factored<T> expected = factored(v, planned);
    const test::Factored<T> got = in_parts(v, rows, options);
    const std::string what = std::string(to_string(options.method)) + ' ' + std::to_string(v.rows) +
                             " by " + std::to_string(v.cols) + " in " + std::to_string(rows.size());
    EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << what;
    EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << what;
    EXPECT_EQ(got.info.ok, expected.info.ok) << what;
    EXPECT_EQ(got.info.rank, expected.info.rank) << what;
    EXPECT_EQ(got.info.dependent_columns, expected.info.dependent_columns) << what;
    EXPECT_EQ(got.info.orthogonality, expected.info.orthogonality) << what;
    EXPECT_EQ(got.info.passes, expected.info.passes) << what;
    EXPECT_EQ(got.info.report.devices.size(), rows.size()) << what;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, QrInParts, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(QrInParts, EveryMethodHasTheBitsOfTheWhole) {
  // Enough columns for a sketch of auto.
  const std::int64_t multiple = qr_part_multiple(24);
  const Tall v = test::with_condition(3 * multiple + 777, 24, 1e5, 6);
  test::Thinned thinned(2);  // in place on one device all of them
  for (const QrMethod method : qr_methods()) {
    if (thinned.skips() && method != QrMethod::automatic) continue;
    expect_bits_of_qr(v, {multiple, 2 * multiple + 777}, options(2, method));
    if (test::kSanitized && method != QrMethod::automatic) continue;
    expect_bits_of_qr(v, {2 * multiple, multiple, 777}, options(3, method));
    expect_bits_of_qr(v, {v.rows}, options(1, method));
  }
}

TEST_P(QrInParts, AnyColumnsConditionAndCutHaveTheBitsOfTheWhole) {
  for (const std::int64_t n : {1, 5, 20}) {
    if (test::kSanitized && n == 5) continue;
    const std::int64_t multiple = qr_part_multiple(n);
    const std::int64_t rest = n == 1 ? 100 : multiple - 1;
    const Tall v = n == 1 ? test::random_tall(2 * multiple + rest, n, 7)
                          : test::with_condition(2 * multiple + rest, n, 1e17, 7);
    expect_bits_of_qr(v, {multiple, multiple + rest}, options(2));
    expect_bits_of_qr(v, {2 * multiple, rest}, options(2));
    expect_bits_of_qr(v, {multiple, multiple, rest, 0}, options(4));
    expect_bits_of_qr(v, {v.rows, 0}, options(2));
  }
  expect_bits_of_qr(test::random_tall(2 * qr_part_multiple(64) + 50, 64, 8),
                    {qr_part_multiple(64), qr_part_multiple(64) + 50}, options(2));
}

TEST_P(QrInParts, OfFloats) {
  const std::int64_t multiple = qr_part_multiple(20);
  const Tall wide = test::with_condition(2 * multiple + 99, 20, 1e5, 8);
  const auto v =
      test::make_matrix<float>(wide.rows, 20, [&](auto i, auto j) { return wide(i, j); });
  for (const QrMethod method :
       {QrMethod::automatic, QrMethod::cholqr, QrMethod::cholqr_wide, QrMethod::mgs}) {
    if (test::kSanitized && method != QrMethod::automatic && method != QrMethod::mgs) continue;
    expect_bits_of_qr(v, {multiple, multiple + 99}, options(2, method));
  }
}

TEST_P(QrInParts, DependentColumnsAreDroppedOrFilled) {
  const std::int64_t multiple = qr_part_multiple(8);
  Tall v = test::random_tall(multiple + 700, 8, 10);
  for (double& x : v.data) x = std::round(std::ldexp(x, 20));
  for (std::int64_t i = 0; i < v.rows; ++i) {
    v(i, 2) = 0;
    v(i, 4) = v(i, 1);
    v(i, 7) = 2 * v(i, 0) - 0.5 * v(i, 3);
  }
  QrOptions of_this = options(2);
  expect_bits_of_qr(v, {multiple, 700}, of_this);
  of_this.dependent = DependentColumns::fill;
  expect_bits_of_qr(v, {multiple, 700}, of_this);
}

TEST_P(QrInParts, MoreColumnsThanOnePassHolds) {
  const std::int64_t n = 530;
  const std::int64_t multiple = qr_part_multiple(n);
  EXPECT_EQ(multiple, std::int64_t{1} << 17);
  if (!has(2)) GTEST_SKIP() << "one device";
  // Too tall for a test; the first part has no rows, and columns are still taken in blocks.
  Tall v = test::random_tall(700, n, 71);
  expect_bits_of_qr(v, {0, 700}, options(2));
}

TEST_P(QrInParts, OnlySumsCrossTheLinks) {
  if (!has(2)) GTEST_SKIP() << "one device";
  const std::int64_t multiple = qr_part_multiple(10);
  const Tall v = test::with_condition(4 * multiple, 10, 1e12, 5);
  const QrInfo info = in_parts(v, {2 * multiple, 2 * multiple}, options(2)).info;
  ASSERT_EQ(info.passes, 3);
  // Scales thrice and R twice, to each; of each pass a sum of each device to the host.
  EXPECT_EQ(info.report.traffic.host_to_device_bytes, 2 * (3 * 80 + 2 * 800));
  EXPECT_EQ(info.report.traffic.device_to_device_bytes, 0);
  EXPECT_EQ(info.report.traffic.device_to_host_bytes, 2 * (1600 + 2 * 800));
  EXPECT_EQ(info.report.traffic, static_cast<const Traffic&>(info.report.planned_traffic));
  EXPECT_EQ(info.report.path, "in place");
}

TEST_P(QrInParts, NamesTheFirstElementThatIsNotFinite) {
  if (!has(2)) GTEST_SKIP() << "one device";
  const std::int64_t multiple = qr_part_multiple(5);
  Tall v = test::random_tall(multiple + 4000, 5, 13);
  v(multiple + 123, 3) = std::numeric_limits<double>::quiet_NaN();
  v(multiple + 124, 0) = std::numeric_limits<double>::infinity();
  const Placed<double> there = placed(v, {multiple, 4000});
  Tall r(5, 5);
  try {
    (void)qr_in_place(std::span<const MatrixView<double>>(there.parts), r.view(), options(2));
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    const std::string place = "(" + std::to_string(multiple + 123) + ", 3)";
    EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
  }
}

TEST_P(QrInParts, MisuseIsRefused) {
  if (!has(2)) GTEST_SKIP() << "one device";
  const std::int64_t multiple = qr_part_multiple(4);
  const Tall v = test::random_tall(multiple + 50, 4, 15);
  const Placed<double> there = placed(v, {multiple, 50});
  Tall r(4, 4);
  const auto refuse = [&](std::vector<MatrixView<double>> parts, const std::string& devices,
                          const std::string& piece) {
    QrOptions of_this;
    of_this.run.devices = devices;
    try {
      (void)qr_in_place(std::span<const MatrixView<double>>(parts), r.view(), of_this);
      ADD_FAILURE() << "was accepted: " << piece;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse) << error.what();
      EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
    }
  };
  const std::string two = test::devices_text(GetParam(), 2);
  const MatrixView<double> first = there.parts[0];
  const MatrixView<double> second = there.parts[1];
  refuse({}, two, "no parts");
  refuse({first.block(0, 0, multiple - 1, 4), second}, two, "no multiple of");
  refuse({first, second.block(0, 0, 50, 3)}, two, "part 1 of V is 50 by 3");
  refuse({first, {nullptr, 50, 4, 50}}, two, "no data");
  refuse({first, {second.data, 50, 4, 49}}, two, "leading dimension of 49");
  refuse({first, second, {second.data, 0, 4, 1}}, two, "2 devices for 3 parts");
  if (GetParam() == "cuda") {
    refuse({first, first}, "auto", "two parts");
    refuse({second, first}, two, "no multiple of");
    refuse({first.block(0, 0, multiple, 4), first.block(0, 0, 50, 4)}, two, "another device's");
  }
}

TEST(QrPartRows, AreEvenAndCutWhereSumsAllow) {
  for (const std::int64_t n : {1, 4, 20, 30, 64, 128, 512}) {
    const std::int64_t multiple = qr_part_multiple(n);
    EXPECT_EQ(multiple & (multiple - 1), 0);
    for (const std::int64_t m : {std::int64_t{16'000'000}, std::int64_t{100'000'001}}) {
      for (const int parts : {1, 2, 3, 4, 8}) {
        const std::int64_t rows = qr_part_rows(m, n, parts);
        EXPECT_EQ(rows % multiple, 0);
        EXPECT_GE(rows * parts, m);
        // Not longer than it has to be by more than a 32nd, nor by more than a small block.
        EXPECT_LE(rows, m / parts + std::max(multiple, m / parts / 32) + 1);
        EXPECT_LE((rows - m / parts) * n,
                  std::max(multiple * n, m / parts / 300 * n) + (1 << 23) + n);
      }
    }
    EXPECT_EQ(qr_part_rows(5, n, 4), multiple);
  }
  EXPECT_THROW((void)qr_part_rows(-1, 4, 2), Error);
  EXPECT_THROW((void)qr_part_rows(10, 4, 0), Error);
}

}  // namespace
}  // namespace strata
