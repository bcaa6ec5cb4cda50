// Householder QR of blocks: by hand, against LAPACK, and every backend with the bits of the
// reference.

#include "kernels/tall/householder.hpp"

#include <lapacke.h>

#include <cmath>

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/campaign.hpp"

namespace strata::testing {
namespace {

/// Runs an operation for several calls of operands of any two precisions.
struct HouseholderOperand {
  Element element = Element::fp64;
  Matrix<double> wide;
  Matrix<float> narrow;

  HouseholderOperand(Element e, const Matrix<double>& x) : element(e), wide(x) {
    if (e == Element::fp32)
      narrow = Matrix<float>(x.rows, x.cols, 3, [&](auto i, auto j) { return x(i, j); });
  }
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    return element == Element::fp32 ? static_cast<double>(narrow(i, j)) : wide(i, j);
  }
  [[nodiscard]] bool same(const HouseholderOperand& o) const {
    return element == Element::fp32 ? same_bits(narrow, o.narrow) : same_bits(wide, o.wide);
  }
};

void run_householder(const Backend& backend, const Operation& operation,
                     std::vector<HouseholderOperand>& operands, std::uint32_t variant = 0) {
  Elements elements;
  for (int i = 0; i < operation.operands; ++i)
    elements.push_back(operands[static_cast<std::size_t>(i)].element);
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  ASSERT_NE(kernel, nullptr) << operation.name;
  const auto device = backend.make_device(0, 256_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  const auto each = [&](auto&& f) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      HouseholderOperand& x = operands[i];
      x.element == Element::fp32 ? f(x.narrow, x.element, i) : f(x.wide, x.element, i);
    }
  };
  each([&](auto& matrix, Element element, std::size_t) {
    memory.push_back(device->allocate(std::max<std::int64_t>(matrix.bytes(), 1)));
    queue->copy(memory.back().data(), matrix.data.data(), matrix.bytes(),
                CopyDirection::host_to_device);
    views.push_back({memory.back().data(), matrix.rows, matrix.cols, matrix.ld, 0, 0, element});
  });
  try {
    kernel(*queue, {views, operation.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  each([&](auto& matrix, Element, std::size_t i) {
    queue->copy(matrix.data.data(), views[i].data, matrix.bytes(), CopyDirection::device_to_host);
  });
  queue->synchronize();
}

Matrix<double> tall(std::int64_t rows, std::int64_t cols) {
  return {rows, cols, 3, [](auto i, auto j) {
            return std::ldexp(uniform(5, i, j), static_cast<int>((i * 7 + j * 3) % 23) - 11);
          }};
}
/// A triangle as householder_r leaves it: zeros below.
Matrix<double> triangle_over_zeros(std::int64_t n, std::uint64_t seed) {
  return {n, n, 3, [&](auto i, auto j) { return i <= j ? uniform(seed, i, j) : 0.0; }};
}
Matrix<double> square(std::int64_t n, std::uint64_t seed) {
  return {n, n, 3, [&](auto i, auto j) { return uniform(seed, i, j); }};
}
Matrix<double> identity(std::int64_t n) {
  return {n, n, 3, [](auto i, auto j) { return i == j ? 1.0 : 0.0; }};
}
Matrix<double> unwritten(std::int64_t n) { return {n, n, 3}; }

/// On both sides of the numbers of columns where the kernels of a GPU change, with fewer rows than
/// columns, panels that are full and that are not, and trees of up to five levels.
constexpr Extents kHouseholderExtents[] = {
    {1, 1},    {1, 3},     {2, 5},     {5, 2},    {33, 4},    {513, 6},   {512, 6},   {1030, 7},
    {6, 8},    {256, 8},   {257, 9},   {9000, 9}, {300, 12},  {2000, 13}, {31, 16},   {129, 16},
    {15, 17},  {40, 17},   {127, 20},  {128, 20}, {257, 20},  {700, 20},  {3300, 20}, {6500, 20},
    {4100, 3}, {641, 21},  {20, 24},   {33, 24},  {9000, 24}, {24, 25},   {900, 25},  {31, 32},
    {257, 32}, {2100, 40}, {40, 41},   {700, 48}, {8000, 57}, {63, 64},   {900, 33},  {520, 64},
    {30, 65},  {600, 65},  {1100, 70}, {140, 140}};

class HouseholderBits : public ::testing::TestWithParam<const Backend*> {
 protected:
  void compare(const Operation& operation, const std::vector<HouseholderOperand>& operands) {
    std::vector<HouseholderOperand> expected = operands;
    std::vector<HouseholderOperand> got = operands;
    run_householder(reference_backend(), operation, expected);
    run_householder(*GetParam(), operation, got);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i].same(expected[i])) << operation.name << ": operand " << i;
  }
};
INSTANTIATE_TEST_SUITE_P(Compared, HouseholderBits, ::testing::ValuesIn(others()), backend_name);

TEST_P(HouseholderBits, AreThoseOfTheReference) {
  for (const Element element : {Element::fp64, Element::fp32}) {
    std::vector<HouseholderOperand> r;
    std::vector<HouseholderOperand> q;
    for (const Extents& x : kHouseholderExtents) {
      r.emplace_back(Element::fp64, unwritten(x.cols));
      r.emplace_back(element, tall(x.rows, x.cols));
      q.emplace_back(element, tall(x.rows, x.cols));
      q.emplace_back(Element::fp64, square(x.cols, 8));
    }
    // Zeros of either sign, whose signs are bits too.
    const Matrix<double> zeros(700, 20, 3, [](auto i, auto j) {
      return (i + j) % 3 == 0 ? uniform(6, i, j) : j % 2 == 0 ? -0.0 : 0.0;
    });
    r.emplace_back(Element::fp64, unwritten(20));
    r.emplace_back(element, zeros);
    q.emplace_back(element, zeros);
    q.emplace_back(Element::fp64, square(20, 8));
    compare(householder_r, r);
    compare(householder_q, q);
  }
}

TEST_P(HouseholderBits, OfStackedTrianglesAreThoseOfTheReference) {
  std::vector<HouseholderOperand> r;
  std::vector<HouseholderOperand> q;
  for (const std::int64_t n : {1, 2, 5, 8, 12, 16, 20, 20, 24, 25, 32, 33, 64, 70, 129}) {
    const auto add = [n](std::vector<HouseholderOperand>& to, int unwritten_blocks) {
      for (int i = 0; i < unwritten_blocks; ++i) to.emplace_back(Element::fp64, unwritten(n));
      to.emplace_back(Element::fp64, triangle_over_zeros(n, 3));
      to.emplace_back(Element::fp64, triangle_over_zeros(n, 4));
    };
    add(r, 1);
    add(q, 2);
    q.emplace_back(Element::fp64, square(n, 8));
  }
  compare(stacked_r, r);
  compare(stacked_q, q);
}

TEST_P(HouseholderBits, OfMoreCallsThanALaunchTakesAreThoseOfTheReference) {
  std::vector<HouseholderOperand> r;
  std::vector<HouseholderOperand> stacked;
  for (std::int64_t call = 0; call < 600; ++call) {
    r.emplace_back(Element::fp64, unwritten(3));
    r.emplace_back(Element::fp64,
                   Matrix<double>(call % 7 == 0 ? 700 : 40, 3, 0, [&](auto i, auto j) {
                     return uniform(20 + static_cast<std::uint64_t>(call), i, j);
                   }));
    for (int i = 0; i < 2; ++i) stacked.emplace_back(Element::fp64, unwritten(3));
    for (int i = 0; i < 2; ++i) stacked.emplace_back(Element::fp64, triangle_over_zeros(3, 3));
    stacked.emplace_back(Element::fp64, square(3, 20 + static_cast<std::uint64_t>(call)));
  }
  compare(householder_r, r);
  compare(stacked_q, stacked);
}

class Householder : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Every, Householder, ::testing::ValuesIn(all_of_them()), backend_name);

TEST_P(Householder, ByHand) {
  // (3 4)ᵀ: β = −5, the triangle is −5, and Q·1 = (−3/5 −4/5)ᵀ.
  const Matrix<double> x(2, 1, 0, [](auto i, auto) { return i == 0 ? 3.0 : 4.0; });
  std::vector<HouseholderOperand> r{{Element::fp64, unwritten(1)}, {Element::fp64, x}};
  run_householder(*GetParam(), householder_r, r);
  EXPECT_EQ(r[0].at(0, 0), -5);
  std::vector<HouseholderOperand> q{{Element::fp64, x}, {Element::fp64, identity(1)}};
  run_householder(*GetParam(), householder_q, q);
  EXPECT_DOUBLE_EQ(q[0].at(0, 0), -0.6);
  EXPECT_DOUBLE_EQ(q[0].at(1, 0), -0.8);
  // What is a triangle stays one, whatever its signs: nothing lies below.
  std::vector<HouseholderOperand> t{{Element::fp64, unwritten(4)},
                                    {Element::fp64, triangle_over_zeros(4, 3)}};
  run_householder(*GetParam(), householder_r, t);
  for (std::int64_t j = 0; j < 4; ++j) {
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(t[0].at(i, j), t[1].at(i, j));
  }
}

TEST_P(Householder, TrianglesAreThoseOfLapackButForTheirSigns) {
  for (const Extents& x : kHouseholderExtents) {
    if (x.rows < x.cols) continue;
    std::vector<HouseholderOperand> r{{Element::fp64, unwritten(x.cols)},
                                      {Element::fp64, tall(x.rows, x.cols)}};
    run_householder(*GetParam(), householder_r, r);
    Matrix<double> a = tall(x.rows, x.cols);
    std::vector<double> tau(static_cast<std::size_t>(x.cols));
    ASSERT_EQ(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, static_cast<int>(x.rows), static_cast<int>(x.cols),
                             a.data.data(), static_cast<int>(a.ld), tau.data()),
              0);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      double length = 0;
      for (std::int64_t i = 0; i <= j; ++i) length = std::hypot(length, a(i, j));
      for (std::int64_t i = 0; i < x.cols; ++i) {
        const double expected = i <= j ? std::abs(a(i, j)) : 0;
        EXPECT_NEAR(std::abs(r[0].at(i, j)), expected, 1e-12 * length) << x.rows << ' ' << x.cols;
      }
    }
  }
}

/// max |I − QᵀQ| and max_j ‖x_j − Q·r_j‖/‖x_j‖, in long double.
void expect_factorization(const Matrix<double>& x, const HouseholderOperand& q,
                          const HouseholderOperand& r) {
  const std::int64_t n = x.cols;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k <= j; ++k) {
      long double sum = j == k ? -1.0L : 0.0L;
      for (std::int64_t i = 0; i < x.rows; ++i)
        sum += static_cast<long double>(q.at(i, j)) * q.at(i, k);
      EXPECT_LE(std::abs(static_cast<double>(sum)), 2e-15);
    }
    long double left = 0;
    long double length = 0;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      long double rest = x(i, j);
      length += rest * rest;
      for (std::int64_t k = 0; k <= j; ++k)
        rest -= static_cast<long double>(q.at(i, k)) * r.at(k, j);
      left += rest * rest;
    }
    EXPECT_LE(static_cast<double>(std::sqrt(left / length)), 4e-15);
  }
}

TEST_P(Householder, QIsOrthonormalAndItsProductWithRIsX) {
  test::Thinned thinned(2);
  for (const Extents& e : kHouseholderExtents) {
    if (e.rows < e.cols || thinned.skips()) continue;
    const Matrix<double> x = tall(e.rows, e.cols);
    std::vector<HouseholderOperand> r{{Element::fp64, unwritten(e.cols)}, {Element::fp64, x}};
    run_householder(*GetParam(), householder_r, r);
    std::vector<HouseholderOperand> q{{Element::fp64, x}, {Element::fp64, identity(e.cols)}};
    run_householder(*GetParam(), householder_q, q);
    expect_factorization(x, q[0], r[0]);
  }
}

TEST_P(Householder, StackedTrianglesAreATallMatrix) {
  constexpr std::int64_t kOrder = 37;
  const Matrix<double> a = triangle_over_zeros(kOrder, 3);
  const Matrix<double> b = triangle_over_zeros(kOrder, 4);
  const auto of = [&](std::int64_t i, std::int64_t j) {
    return i < kOrder ? a(i, j) : b(i - kOrder, j);
  };
  std::vector<HouseholderOperand> r{
      {Element::fp64, unwritten(kOrder)}, {Element::fp64, a}, {Element::fp64, b}};
  run_householder(*GetParam(), stacked_r, r);
  std::vector<HouseholderOperand> q{{Element::fp64, unwritten(kOrder)},
                                    {Element::fp64, unwritten(kOrder)},
                                    {Element::fp64, a},
                                    {Element::fp64, b},
                                    {Element::fp64, identity(kOrder)}};
  run_householder(*GetParam(), stacked_q, q);
  const Matrix<double> both(2 * kOrder, kOrder, 0, [&](auto i, auto j) {
    return i < kOrder ? q[0].at(i, j) : q[1].at(i - kOrder, j);
  });
  expect_factorization({2 * kOrder, kOrder, 0, of}, {Element::fp64, both}, r[0]);
}

TEST_P(Householder, NothingOverflowsOrUnderflows) {
  for (const double size : {1e-320, 1e-300, 1e300, 1e307}) {
    for (const std::int64_t n : {4, 20, 40}) {
      const Matrix<double> x(
          300, n, 0, [&](auto i, auto j) { return (j == 1 ? size : 1) * uniform(9, i, j); });
      std::vector<HouseholderOperand> r{{Element::fp64, unwritten(n)}, {Element::fp64, x}};
      run_householder(*GetParam(), householder_r, r);
      std::vector<HouseholderOperand> q{{Element::fp64, x}, {Element::fp64, identity(n)}};
      run_householder(*GetParam(), householder_q, q);
      const double rounding = size < 1e-310 ? 1e-3 : 0;  // of 1e-320 itself
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t k = 0; k <= j; ++k) {
          long double sum = j == k ? -1.0L : 0.0L;
          for (std::int64_t i = 0; i < 300; ++i)
            sum += static_cast<long double>(q[0].at(i, j)) * q[0].at(i, k);
          EXPECT_LE(std::abs(static_cast<double>(sum)), 2e-15) << size;
        }
      }
      double length = 0;
      for (std::int64_t i = 0; i < 300; ++i) length = std::hypot(length, x(i, 1) / size);
      EXPECT_NEAR(std::hypot(r[0].at(0, 1) / size, r[0].at(1, 1) / size) / length, 1,
                  1e-14 + rounding);
    }
  }
}

TEST_P(Householder, ColumnsOfZerosAndWhatIsNotFinite) {
  std::vector<HouseholderOperand> r;
  for (const std::int64_t n : {5, 20, 40}) {
    Matrix<double> x(600, n, 0, [](auto i, auto j) { return j == 2 ? 0.0 : uniform(10, i, j); });
    r = {{Element::fp64, unwritten(n)}, {Element::fp64, x}};
    run_householder(*GetParam(), householder_r, r);
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(r[0].at(i, 2), 0);
    std::vector<HouseholderOperand> q{{Element::fp64, x}, {Element::fp64, identity(n)}};
    run_householder(*GetParam(), householder_q, q);
    expect_factorization(Matrix<double>(600, 2, 0, [&](auto i, auto j) { return x(i, j); }), q[0],
                         r[0]);
    for (const double bad : {std::nan(""), HUGE_VAL}) {
      x(577, 3) = bad;
      r[1].wide = x;
      run_householder(*GetParam(), householder_r, r);
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += r[0].at(i, 3);
      EXPECT_FALSE(std::isfinite(sum)) << bad;
      EXPECT_TRUE(std::isfinite(r[0].at(1, 1)));
    }
  }
  EXPECT_THROW(run_householder(*GetParam(), householder_r, r, 1), Error);
}

TEST(HouseholderPanel, FollowsFromTheColumnsAlone) {
  EXPECT_EQ(householder_panel_rows(1), 512);
  EXPECT_EQ(householder_panel_rows(6), 512);
  EXPECT_EQ(householder_panel_rows(12), 256);
  EXPECT_EQ(householder_panel_rows(20), 128);
  EXPECT_EQ(householder_panel_rows(24), 128);
  EXPECT_EQ(householder_panel_rows(25), 256);
  EXPECT_EQ(householder_panel_rows(64), 256);
  EXPECT_EQ(householder_panel_rows(512), 2048);
  EXPECT_EQ(householder_stack(20), 6);
}

}  // namespace
}  // namespace strata::testing
