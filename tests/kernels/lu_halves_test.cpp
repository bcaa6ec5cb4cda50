// lu_update of fp32 with products of fp16 parts, which a GPU makes on tensor cores, beside sums in
// fp64; hosts take fp32 for it, and hold the same bounds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/index.hpp"
#include "kernels/dense/lu_update.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

constexpr std::int64_t kPanelOfHalves = 600;  // more than one slice

class LuHalves : public ::testing::TestWithParam<const Backend*> {
 protected:
  LuHalves() : device_(GetParam()->make_device(0, 512_MiB)) {}

  /// On a GPU more than one part of either operand.
  static std::int64_t rows() { return GetParam()->on_host() ? 1800 : 5000; }
  static std::int64_t columns() { return GetParam()->on_host() ? 1100 : 6221; }

  /// X, after lu_update by a panel that has the identity above, so that products are all there is.
  [[nodiscard]] Matrix<float> updated(const Matrix<float>& x) const {
    std::vector<std::int64_t> pivots(at(kPanelOfHalves));
    std::iota(pivots.begin(), pivots.end(), std::int64_t{0});
    const auto queue = device_->make_queue(QueuePriority::normal);
    std::vector<Buffer> memory;
    const auto there = [&](const void* data, std::int64_t bytes) {
      memory.push_back(device_->allocate(bytes));
      queue->copy(memory.back().data(), data, bytes, CopyDirection::host_to_device);
      return memory.back().data();
    };
    const std::vector<BlockView> views{
        {there(x.data.data(), x.bytes()), x.rows, x.cols, x.ld, 0, 0, Element::fp32},
        {there(l_.data.data(), l_.bytes()), l_.rows, l_.cols, l_.ld, 0, 0, Element::fp32},
        {there(pivots.data(), std::ssize(pivots) * 8), 1, kPanelOfHalves, 1, 0, 0, Element::int64}};
    GetParam()->kernels().find(lu_update.name, kLuUpdateElements<float>)(
        *queue, {views, lu_update.operands}, {.variant = kProductsOfHalves});
    Matrix<float> result = x;
    queue->copy(result.data.data(), memory[0].data(), x.bytes(), CopyDirection::device_to_host);
    queue->synchronize();
    return result;
  }
  /// What products leave of element (i, j), and the sum of all magnitudes in it.
  [[nodiscard]] std::pair<double, double> exact(const Matrix<float>& x, std::int64_t i,
                                                std::int64_t j) const {
    double sum = x(i, j);
    double sizes = std::abs(sum);
    for (std::int64_t k = 0; k < kPanelOfHalves && i >= kPanelOfHalves; ++k) {
      const double product = static_cast<double>(l_(i, k)) * x(k, j);
      sum -= product;
      sizes += std::abs(product);
    }
    return {sum, sizes};
  }

 private:
  std::unique_ptr<Device> device_;
  Matrix<float> l_{rows(), kPanelOfHalves, 0, [](auto i, auto j) {
                     return static_cast<float>(i < kPanelOfHalves ? static_cast<double>(i == j)
                                                                  : uniform(3, i, j));
                   }};
};

TEST_P(LuHalves, AreNearlyAsExactAsFp32) {
  for (const double size : {1.0, 3e-30, 2e30, 0.0}) {
    // Rows of U fall by the power of two in every fortieth.
    const Matrix<float> x(rows(), columns(), 0, [&](auto i, auto j) {
      const double value = size * uniform(5, i, j);
      return static_cast<float>(i < kPanelOfHalves ? std::ldexp(value, -static_cast<int>(i / 40))
                                                   : value);
    });
    const Matrix<float> found = updated(x);
    double largest = 0;
    std::string where;
    for (std::int64_t i = 0; i < x.rows; i += i < kPanelOfHalves ? 97 : 61) {
      for (std::int64_t j = 0; j < x.cols; j += 53) {
        const auto [sum, sizes] = exact(x, i, j);
        const double apart = std::abs(found(i, j) - sum);
        const double share = sizes > 0 ? apart / sizes : apart;
        if (std::isnan(largest) || share <= largest) continue;
        largest = share;
        where = fmt::format("({}, {}) is {} and not {}", i, j, found(i, j), sum);
      }
    }
    // Tensor cores cut sums off: three of 512 columns at a time, of which each adds 2⁻²⁴.
    RecordProperty(fmt::format("of {}", size), fmt::format("{:.3g}", largest));
    EXPECT_LE(largest, 0x1p-18) << size << ": " << where;
  }
}

TEST_P(LuHalves, LeaveNothingFiniteThatIsNot) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Matrix<float> x(rows(), columns(), 0,
                    [](auto i, auto j) { return static_cast<float>(uniform(7, i, j)); });
    x(11, columns() - 100) = bad;
    const Matrix<float> found = updated(x);
    EXPECT_FALSE(std::isfinite(found(rows() - 1, columns() - 100)));
    EXPECT_FALSE(std::isfinite(found(700, columns() - 100)));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LuHalves, ::testing::ValuesIn(others()),
                         [](const auto& info) { return info.param->name(); });

}  // namespace
}  // namespace strata::testing
