// qr_in_place: the bits of qr() for what lies in the memory of a device, with any leading
// dimension; and the blocks of passes, of which no bit depends.

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <thread>

#include "qr/pass_executor.hpp"
#include "strata/error.hpp"
#include "tests/qr/factored.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/device_memory.hpp"

namespace strata {
namespace {

using test::DeviceMemory;
using test::factored;
using test::Tall;

constexpr int kPadding = 3;  // rows below V that are not its own, all −7

template <class T>
std::vector<T> padded(const test::Matrix<T>& v) {
  const std::int64_t ld = v.rows + kPadding;
  std::vector<T> values(static_cast<std::size_t>(ld * v.cols), T{-7});
  for (std::int64_t j = 0; j < v.cols; ++j)
    std::copy_n(v.view().column(j), v.rows, values.data() + j * ld);
  return values;
}

class QrInPlace : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] QrOptions options(QrMethod method = QrMethod::automatic) const {
    QrOptions options;
    options.method = method;
    options.run.devices = test::devices_text(GetParam(), 1);
    options.wide_sums = WideSums::extraction;  // whose bits CPUs and GPUs share
    return options;
  }
  template <class T>
  [[nodiscard]] test::Factored<T> in_place(const test::Matrix<T>& v, const QrOptions& options) {
    DeviceMemory memory(GetParam());
    const MatrixView<T> on_device = memory.put(padded(v), v.rows, v.cols, v.rows + kPadding);
    test::Factored<T> result{v, test::Matrix<T>(v.cols, v.cols), {}};
    result.info = qr_in_place(on_device, result.r.view(), options);
    const std::vector<T> values = memory.get(on_device);
    for (std::int64_t j = 0; j < v.cols; ++j) {
      const T* column = values.data() + j * on_device.ld;
      std::copy_n(column, v.rows, result.q.view().column(j));
      EXPECT_EQ(std::count(column + v.rows, column + on_device.ld, T{-7}), kPadding);
    }
    return result;
  }
  template <class T>
  void expect_bits_of_qr(const test::Matrix<T>& v, const QrOptions& options) {
    QrOptions planned = test::plain(options.method);
    planned.dependent = options.dependent;
    planned.wide_sums = options.wide_sums;
    const test::Factored<T> expected = factored(v, planned);
    const test::Factored<T> got = in_place(v, options);
    const std::string what = fmt(v, options);
    EXPECT_TRUE(test::same_bits(got.q.data, expected.q.data)) << what;
    EXPECT_TRUE(test::same_bits(got.r.data, expected.r.data)) << what;
    EXPECT_EQ(got.info.ok, expected.info.ok) << what;
    EXPECT_EQ(got.info.rank, expected.info.rank) << what;
    EXPECT_EQ(got.info.dependent_columns, expected.info.dependent_columns) << what;
    EXPECT_EQ(got.info.orthogonality, expected.info.orthogonality) << what;
    EXPECT_EQ(got.info.passes, expected.info.passes) << what;
  }

 private:
  template <class T>
  static std::string fmt(const test::Matrix<T>& v, const QrOptions& options) {
    return std::string(to_string(options.method)) + ' ' + std::to_string(v.rows) + " by " +
           std::to_string(v.cols);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, QrInPlace, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(QrInPlace, EveryMethodHasTheBitsOfQr) {
  const Tall v = test::with_condition(9000, 33, 1e5, 6);
  for (const QrMethod method : qr_methods()) expect_bits_of_qr(v, options(method));
}

TEST_P(QrInPlace, AnySizeHasTheBitsOfQr) {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                             {2, 1},
                             {7, 7},
                             {129, 5},
                             {1023, 20},
                             {1025, 20},
                             {20481, 20},
                             {3000, 64},
                             {1100, 130}}) {
    expect_bits_of_qr(test::random_tall(m, n, 90 + static_cast<std::uint64_t>(m)), options());
  }
  expect_bits_of_qr(test::with_condition(4000, 24, 1e17, 91), options());
}

/// The same values at the same place, other values there, and the first ones at another place: a
/// program that was compiled for another matrix has its addresses.
TEST_P(QrInPlace, PassesLikeOnesBeforeAreNotPlannedAgain) {
  const Tall first = test::with_condition(5003, 17, 1e5, 7);
  const Tall second = test::with_condition(5003, 17, 1e5, 8);
  for (const QrMethod method : {QrMethod::automatic, QrMethod::tsqr, QrMethod::mgs}) {
    SCOPED_TRACE(to_string(method));
    DeviceMemory memory(GetParam());
    const auto place = [&] {
      return memory.put(padded(first), first.rows, first.cols, first.rows + kPadding);
    };
    // A program that is kept is of no use where the memory of small blocks has grown since.
    Tall r_of_wider(19, 19);
    const Tall wider = test::with_condition(6001, 19, 1e5, 9);
    const auto grown = memory.put(padded(wider), wider.rows, wider.cols, wider.rows + kPadding);
    (void)qr_in_place(grown, r_of_wider.view(), options(method));
    const MatrixView<double> here = place();
    const MatrixView<double> there = place();
    const auto expect_bits = [&](const Tall& v, MatrixView<double> of, bool planned) {
      memory.set(of, padded(v));
      Tall r(v.cols, v.cols);
      const QrInfo info = qr_in_place(of, r.view(), options(method));
      const test::Factored<double> expected = factored(v, test::plain(method));
      const std::vector<double> values = memory.get(of);
      for (std::int64_t j = 0; j < v.cols; ++j) {
        const double* column = values.data() + j * of.ld;
        EXPECT_TRUE(std::equal(column, column + v.rows, expected.q.view().column(j)));
      }
      EXPECT_TRUE(test::same_bits(r.data, expected.r.data));
      EXPECT_EQ(info.report.plan_seconds > 0, planned);
      EXPECT_EQ(info.report.traffic, static_cast<const Traffic&>(info.report.planned_traffic));
    };
    expect_bits(first, here, true);
    expect_bits(first, here, false);
    expect_bits(second, here, false);
    expect_bits(second, there, true);
    expect_bits(first, here, false);
  }
}

/// Those that GPUs take by themselves; of few rows, since CPUs are slow at them.
TEST_P(QrInPlace, SumsByDigitsHaveTheBitsOfQr) {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                             {700, 20},
                             {1025, 21},
                             {2100, 33},
                             {300, 65}}) {
    const Tall v = test::with_condition(m, n, 1e9, 90 + static_cast<std::uint64_t>(m));
    for (const QrMethod method : {QrMethod::automatic, QrMethod::cholqr_wide2}) {
      if (test::kSanitized && (method == QrMethod::automatic) != (n % 5 == 0)) continue;
      QrOptions by_digits = options(method);
      by_digits.wide_sums = WideSums::digits;
      expect_bits_of_qr(v, by_digits);
      QrOptions by_itself = options(method);
      by_itself.wide_sums = WideSums::automatic;
      const bool digits = GetParam() == "cuda" && n >= 20;
      EXPECT_TRUE(test::same_bits(in_place(v, by_itself).r.data,
                                  in_place(v, digits ? by_digits : options(method)).r.data))
          << n;
      EXPECT_TRUE(in_place(v, by_digits).info.ok || method != QrMethod::automatic);
    }
  }
}

TEST_P(QrInPlace, OfFloats) {
  const Tall wide = test::with_condition(3000, 20, 1e5, 8);
  const auto v = test::make_matrix<float>(3000, 20, [&](auto i, auto j) { return wide(i, j); });
  for (const QrMethod method :
       {QrMethod::automatic, QrMethod::cholqr2, QrMethod::tsqr, QrMethod::mgs})
    expect_bits_of_qr(v, options(method));
}

TEST_P(QrInPlace, DependentColumnsAreDroppedOrFilled) {
  Tall v = test::random_tall(700, 8, 10);
  for (double& x : v.data) x = std::round(std::ldexp(x, 20));
  for (std::int64_t i = 0; i < v.rows; ++i) {
    v(i, 2) = 0;
    v(i, 4) = v(i, 1);
    v(i, 7) = 2 * v(i, 0) - 0.5 * v(i, 3);
  }
  QrOptions of_this = options();
  expect_bits_of_qr(v, of_this);
  of_this.dependent = DependentColumns::fill;
  expect_bits_of_qr(v, of_this);
  EXPECT_LE(test::orthogonality_of(in_place(v, of_this).q, 8), 3e-14);
}

TEST_P(QrInPlace, MoreColumnsThanOnePassHolds) {
  Tall v = test::random_tall(700, 530, 71);
  for (double& x : v.data) x = std::round(std::ldexp(x, 20));
  for (std::int64_t i = 0; i < v.rows; ++i) v(i, 400) = v(i, 100);
  expect_bits_of_qr(v, options());
}

TEST_P(QrInPlace, NothingOfTheSizeOfVCrossesTheLink) {
  const Tall v = test::with_condition(20000, 10, 1e12, 5);
  const QrInfo info = in_place(v, options()).info;
  ASSERT_EQ(info.passes, 3);
  // Scales thrice, R twice; a Gram matrix in double-double, and two in doubles.
  EXPECT_EQ(info.report.traffic.host_to_device_bytes, 3 * 80 + 2 * 800);
  EXPECT_EQ(info.report.traffic.device_to_host_bytes, 1600 + 2 * 800);
  EXPECT_EQ(info.report.traffic, static_cast<const Traffic&>(info.report.planned_traffic));
  EXPECT_EQ(info.report.path, "in place");
  // On a GPU one block, so a kernel a pass; on a CPU two, and their sum.
  EXPECT_EQ(info.report.tasks, GetParam() == "cuda" ? 3 : 9);
}

TEST_P(QrInPlace, NamesTheFirstElementThatIsNotFiniteAndLeavesV) {
  Tall v = test::random_tall(9000, 5, 13);
  v(8234, 3) = std::numeric_limits<double>::quiet_NaN();
  v(8500, 0) = std::numeric_limits<double>::infinity();
  DeviceMemory memory(GetParam());
  const std::vector<double> before = padded(v);
  const MatrixView<double> on_device = memory.put(before, 9000, 5, 9000 + kPadding);
  Tall r(5, 5);
  for (const QrMethod method : {QrMethod::automatic, QrMethod::tsqr, QrMethod::rand_cholqr}) {
    try {
      (void)qr_in_place(on_device, r.view(), options(method));
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(std::string(error.what()).find("(8234, 3)"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(test::same_bits(memory.get(on_device), before)) << to_string(method);
  }
}

TEST_P(QrInPlace, ThreadsMayCallAtOnce) {
  const Tall v = test::random_tall(3000, 12, 14);
  const test::Factored<double> expected = factored(v, test::plain());
  std::vector<Tall> got(3, v);
  {
    std::vector<std::jthread> threads;
    for (Tall& q : got) threads.emplace_back([&] { q = in_place(v, options()).q; });
  }
  for (const Tall& q : got) EXPECT_TRUE(test::same_bits(q.data, expected.q.data));
}

TEST_P(QrInPlace, MisuseIsRefusedBeforeAnythingIsWritten) {
  DeviceMemory memory(GetParam());
  const Tall v = test::random_tall(50, 4, 15);
  const MatrixView<double> there = memory.put(padded(v), 50, 4, 50 + kPadding);
  Tall r(4, 4);
  const auto refuse = [&](MatrixView<double> bad, const std::string& devices,
                          const std::string& piece, ErrorKind kind = ErrorKind::misuse) {
    QrOptions of_this = options();
    if (!devices.empty()) of_this.run.devices = devices;
    try {
      (void)qr_in_place(bad, r.view(), of_this);
      ADD_FAILURE() << "was accepted: " << piece;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
    }
  };
  refuse({there.data, 3, 4, 53}, "", "more columns than rows");
  refuse({there.data, 50, 3, 53}, "", "4 by 4 does not fit 3 columns");
  refuse({there.data, 50, 4, 49}, "", "leading dimension of 49");
  refuse({nullptr, 50, 4, 53}, "", "no data");
  auto* skewed = reinterpret_cast<double*>(reinterpret_cast<std::byte*>(there.data) + 4);
  refuse({skewed, 50, 4, 53}, "", "not aligned");
  refuse(there, "host:2", "names 2 devices");
  refuse(there, "cuda:99", "cuda:99", ErrorKind::device);
  EXPECT_TRUE(test::same_bits(memory.get(there), padded(v)));
}

TEST(QrOnACpu, WorksOnVWhereItLiesUnlessABudgetIsGiven) {
  // Five blocks, the last one short.
  const Tall v = test::with_condition(33001, 30, 1e12, 16);
  const test::Factored<double> planned = factored(v, test::plain());
  std::map<QrMethod, Tall> others;
  for (const QrMethod method : {QrMethod::cgs2, QrMethod::tsqr, QrMethod::multi_sketch})
    others.emplace(method, factored(v, test::plain(method)).q);
  EXPECT_EQ(planned.info.report.path, "planned");
  EXPECT_GE(planned.info.report.traffic.host_to_device_bytes, v.view().size() * 8);
  for (const int queues : {0, 1, 2, 3, 5}) {
    if (test::kSanitized && queues != 0 && queues != 3) continue;
    QrOptions options = test::plain();
    options.run.device_memory_bytes = 0;
    options.run.compute_queues = queues;
    const test::Factored<double> got = factored(v, options);
    EXPECT_EQ(got.info.report.path, "in place");
    EXPECT_GE(got.info.report.compute_queues, 1);
    EXPECT_TRUE(queues == 0 || got.info.report.compute_queues == queues);
    EXPECT_LT(got.info.report.traffic.total(), v.view().size());
    EXPECT_TRUE(test::same_bits(got.q.data, planned.q.data)) << queues;
    EXPECT_TRUE(test::same_bits(got.r.data, planned.r.data)) << queues;
    for (const auto& [method, q] : others) {
      options.method = method;
      EXPECT_TRUE(test::same_bits(factored(v, options).q.data, q.data))
          << to_string(method) << ' ' << queues;
    }
  }
}

TEST(QrOnACpu, IsCancelledBetweenPasses) {
  Tall v = test::random_tall(3000, 10, 17);
  Tall r(10, 10);
  QrOptions options;
  options.run.devices = "host:1";
  int asked = 0;
  options.run.progress = [&](const Progress&) { return ++asked < 2; };
  try {
    (void)qr(v.view(), r.view(), options);
    ADD_FAILURE() << "was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  options.run.progress = {};
  EXPECT_TRUE(qr(v.view(), r.view(), options).ok);  // nothing is left in the queues
}

TEST(QrInPlaceOnAGpu, RefusesAHostPointer) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  Tall v = test::random_tall(50, 4, 15);
  Tall r(4, 4);
  EXPECT_THROW((void)qr_in_place(v.view(), r.view()), Error);
}

// ---- blocks of passes

TEST(PassBlocks, AreLargeOnGpusAsFarAsDevicesMemoryAndBouncingAllow) {
  const auto elements = [](std::int64_t m, std::int64_t n, int devices, std::int64_t memory) {
    return pass_block_elements(m, n, Element::fp64, Machine::emulated(devices, memory));
  };
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  EXPECT_EQ(elements(4'000'000, 20, 1, 80 * kGib), 1 << 23);
  EXPECT_EQ(elements(4'000'000, 20, 4, 80 * kGib), 1 << 21);  // 38 blocks
  EXPECT_EQ(elements(16'000'000, 30, 4, 80 * kGib), 1 << 23);
  EXPECT_EQ(elements(100'000'000, 20, 1, 2 * kGib), 1 << 23);
  EXPECT_EQ(elements(100'000'000, 20, 1, kGib / 2), 1 << 22);
  EXPECT_EQ(elements(100'000'000, 20, 1, 1 << 20), kPassBlockElements);
  EXPECT_EQ(elements(1000, 20, 1, 80 * kGib), kPassBlockElements);
  EXPECT_EQ(elements(1'000'000'000, 1, 1, 80 * kGib), 1 << 19);  // 4 MiB a column
  Machine cpu = Machine::emulated(1, 80 * kGib);
  cpu.devices[0].kind = DeviceKind::cpu;
  EXPECT_EQ(pass_block_elements(4'000'000, 20, Element::fp64, cpu), kPassBlockElements);
}

}  // namespace
}  // namespace strata
