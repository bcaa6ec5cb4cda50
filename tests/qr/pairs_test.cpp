// Solves that are stored two at a time (KeepMatrix::pairs), as GPUs have them: every sum, and V at
// the end, have the bits of solves that are stored one by one.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "qr/in_place_passes.hpp"
#include "qr/pass_runner.hpp"
#include "run/device_site.hpp"
#include "tests/qr/tall_matrices.hpp"
#include "tests/support/device_memory.hpp"

namespace strata {
namespace {

using test::DeviceMemory;
using test::Tall;

enum class Solve : std::uint8_t { plain, wide, wide_sum, without_sum };

/// What a method asks of a runner, pass by pass.
struct Outcome {
  std::vector<SquareMatrix<double>> sums;
  std::vector<SquareMatrix<DoubleDouble>> wide_sums;
  std::vector<double> v;
  int passes = 0;
  std::vector<std::string> operations;
};

SquareMatrix<double> triangle(std::int64_t n, int number) {
  SquareMatrix<double> r(n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i <= j; ++i)
      r(i, j) = i == j ? 1.25 + 0.01 * static_cast<double>(j + number)
                       : 0.1 / static_cast<double>(1 + i + j + number);
  }
  return r;
}
SquareMatrix<DoubleDouble> widened_triangle(std::int64_t n, int number) {
  SquareMatrix<DoubleDouble> r(n);
  const SquareMatrix<double> from = triangle(n, number);
  for (std::size_t k = 0; k < r.values.size(); ++k) r.values[k] = DoubleDouble(from.values[k]);
  return r;
}

class QrPairs : public ::testing::TestWithParam<std::string> {
 protected:
  Outcome carried_out(const Tall& v, const std::vector<Solve>& solves, KeepMatrix keep) {
    DeviceMemory memory(GetParam());
    const MatrixView<double> there =
        memory.put(std::vector<double>(v.view().data, v.view().data + v.rows * v.cols), v.rows,
                   v.cols, v.rows);
    const PlacedMatrix matrix = placed(there, "qr");
    DeviceSite& site = choose_site(test::devices_text(GetParam(), 1), std::span(&matrix, 1), "qr");
    const std::lock_guard lock(site.mutex);
    QrOptions options;
    PassRunner<double> runner(
        std::make_unique<InPlacePasses<double>>(
            std::vector<PlacedRows<double>>{{.site = &site, .v = there}}, options),
        {}, keep);
    Outcome outcome;
    std::vector<double> d(static_cast<std::size_t>(v.cols));
    for (std::size_t k = 0; k < solves.size(); ++k) {
      for (std::size_t j = 0; j < d.size(); ++j) d[j] = (j + k) % 3 == 0 ? 2.0 : 0.5;
      const bool last = k + 1 == solves.size();
      const auto number = static_cast<int>(k);
      int meanwhile = 0;
      runner.during_next_pass([&] { ++meanwhile; });
      switch (solves[k]) {
        case Solve::plain:
          outcome.sums.push_back(runner.solve_gram<double>(triangle(v.cols, number), d, last));
          break;
        case Solve::wide:
          outcome.sums.push_back(
              runner.solve_gram<double>(widened_triangle(v.cols, number), d, last));
          break;
        case Solve::wide_sum:
          outcome.wide_sums.push_back(
              runner.solve_gram<DoubleDouble>(triangle(v.cols, number), d, last));
          break;
        case Solve::without_sum: runner.solve(triangle(v.cols, number), d, last); break;
      }
      EXPECT_EQ(meanwhile, 1);
    }
    outcome.v = memory.get(there);
    outcome.passes = runner.passes();
    outcome.operations = runner.take_report().trace.operations;
    return outcome;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, QrPairs, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(QrPairs, HaveTheBitsOfSolvesOneByOne) {
  const std::vector<std::vector<Solve>> methods{
      {Solve::plain},
      {Solve::without_sum},
      {Solve::plain, Solve::plain},
      {Solve::plain, Solve::without_sum},
      {Solve::plain, Solve::wide_sum},
      {Solve::plain, Solve::plain, Solve::plain},
      {Solve::plain, Solve::plain, Solve::plain, Solve::without_sum},
      {Solve::wide, Solve::plain, Solve::without_sum},
      {Solve::plain, Solve::wide, Solve::plain, Solve::plain},
      {Solve::plain, Solve::wide},
      {Solve::wide_sum, Solve::plain, Solve::wide_sum},
  };
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{20000, 10},
                                   {3001, 24},
                                   {129, 33},
                                   {70, 64},
                                   {5, 3}}) {
    const Tall v = test::random_tall(rows, cols, 7);
    for (const std::vector<Solve>& solves : methods) {
      const Outcome pairs = carried_out(v, solves, KeepMatrix::pairs);
      const Outcome one_by_one = carried_out(v, solves, KeepMatrix::no);
      EXPECT_TRUE(test::same_bits(pairs.v, one_by_one.v)) << rows << " x " << cols;
      ASSERT_EQ(pairs.sums.size(), one_by_one.sums.size());
      for (std::size_t k = 0; k < pairs.sums.size(); ++k)
        EXPECT_EQ(pairs.sums[k].values, one_by_one.sums[k].values) << k;
      for (std::size_t k = 0; k < pairs.wide_sums.size(); ++k)
        EXPECT_EQ(pairs.wide_sums[k].values, one_by_one.wide_sums[k].values) << k;
      // One of another element than V leaves the one before it to be stored by itself.
      const bool alone = solves.size() > 1 && solves[1] == Solve::wide;
      EXPECT_EQ(pairs.passes, one_by_one.passes + (alone ? 1 : 0));
    }
    const Outcome two = carried_out(v, {Solve::plain, Solve::without_sum}, KeepMatrix::pairs);
    const auto did = [&](const char* name) {
      return std::find(two.operations.begin(), two.operations.end(), name) != two.operations.end();
    };
    EXPECT_TRUE(did("apply_gram") && did("solve_right_twice"));
    EXPECT_FALSE(did("solve_right") || did("solve_right_gram"));
  }
}

}  // namespace
}  // namespace strata
