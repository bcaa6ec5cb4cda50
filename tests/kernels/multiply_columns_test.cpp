// gemm of a tile in few bits with few columns of doubles, which is what solves with mixed factors
// do. Sums are exact at ragged extents and in every layout. On a GPU, whose kernel for few columns
// this is for, the bits of a column and numbers that are not finite are tested too.

#include <array>
#include <cmath>
#include <limits>

#include "kernels/dense/formats_reference.hpp"
#include "kernels/dense/mixed_products.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/campaign.hpp"

namespace strata::testing {
namespace {

constexpr TileScales kColumnScales{.fp16 = 3, .fp8 = 2};
constexpr std::uint32_t kVariants[] = {0, kTransposeA, kTransposeB, kTransposeA | kTransposeB};

struct ColumnParameter {
  const Backend* backend = nullptr;
  Element element = Element::fp16;  ///< of A
};
void PrintTo(const ColumnParameter& parameter, std::ostream* stream) {
  *stream << parameter.backend->name() << " " << to_string(parameter.element);
}
std::vector<ColumnParameter> with_elements(const std::vector<const Backend*>& backends) {
  std::vector<ColumnParameter> all;
  for (const Backend* backend : backends) {
    for (const Element element : {Element::fp16x2, Element::fp16, Element::fp8})
      all.push_back({backend, element});
  }
  return all;
}
std::vector<const Backend*> gpus() {
  if (cuda_backend() == nullptr) return {};
  return {cuda_backend()};
}
std::string column_name(const ::testing::TestParamInfo<ColumnParameter>& info) {
  return info.param.backend->name() + "_" + std::string(to_string(info.param.element));
}

/// A tile in few bits: where it begins, and how far its columns are apart (fp16 alone may have more
/// between them than they are long), is the caller's. What is between them is NaN.
struct NarrowTile {
  BlockView view;
  std::vector<std::byte> bytes;
  std::int64_t skipped = 0;

  template <class F>
  NarrowTile(Element element, std::int64_t rows, std::int64_t cols, std::int64_t padding,
             std::int64_t offset, F&& value) {
    const std::int64_t ld = rows + (element == Element::fp16 ? padding : 0);
    skipped = offset * (element == Element::fp8 ? 1 : 2);
    bytes.assign(static_cast<std::size_t>(skipped + ld * cols * bytes_of(element)),
                 std::byte{0xff});
    view = {bytes.data() + skipped, rows, cols, ld, 0, 0, element};
    for (std::int64_t j = 0; j < cols; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) set_element(view, kColumnScales, i, j, value(i, j));
    }
  }
  NarrowTile(const NarrowTile&) = delete;
  NarrowTile& operator=(const NarrowTile&) = delete;
};

class ColumnRunner {
 public:
  explicit ColumnRunner(const ColumnParameter& parameter)
      : kernel_(parameter.backend->kernels().find(
            gemm.name, {Element::fp64, parameter.element, Element::fp64})),
        device_(parameter.backend->make_device(0, 64_MiB)),
        queue_(device_->make_queue(QueuePriority::normal)) {}

  /// c ← c − op(a)·op(b); a and b must not change.
  void run(Matrix<double>& c, const NarrowTile& a, const Matrix<double>& b, std::uint32_t variant) {
    ASSERT_NE(kernel_, nullptr);
    std::vector<Buffer> memory;
    const auto load = [&](const void* from, std::int64_t bytes) {
      memory.push_back(device_->allocate(std::max<std::int64_t>(bytes, 1)));
      queue_->copy(memory.back().data(), static_cast<const std::byte*>(from), bytes,
                   CopyDirection::host_to_device);
      return memory.back().data();
    };
    BlockView narrow = a.view;
    std::byte* const a_data = load(a.bytes.data(), std::ssize(a.bytes));
    narrow.data = a_data + a.skipped;
    std::byte* const b_data = load(b.data.data(), b.bytes());
    std::byte* const c_data = load(c.data.data(), c.bytes());
    const std::vector<BlockView> views{{c_data, c.rows, c.cols, c.ld, 0, 0, Element::fp64},
                                       narrow,
                                       {b_data, b.rows, b.cols, b.ld, 0, 0, Element::fp64}};
    kernel_(*queue_, {views, gemm.operands}, {.variant = variant, .values = &kColumnScales});
    std::vector<std::byte> a_after(a.bytes.size());
    Matrix<double> b_after = b;
    store(a_after.data(), a_data, std::ssize(a_after));
    store(b_after.data.data(), b_data, b.bytes());
    store(c.data.data(), c_data, c.bytes());
    queue_->synchronize();
    EXPECT_TRUE(a_after == a.bytes) << "A was written";
    EXPECT_TRUE(same_bits(b_after, b)) << "B was written";
  }

 private:
  void store(void* to, const std::byte* from, std::int64_t bytes) {
    queue_->copy(static_cast<std::byte*>(to), from, bytes, CopyDirection::device_to_host);
  }

  KernelFunction kernel_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
};

class MultiplyColumnsTest : public ::testing::TestWithParam<ColumnParameter> {};
INSTANTIATE_TEST_SUITE_P(Tested, MultiplyColumnsTest,
                         ::testing::ValuesIn(with_elements(all_of_them())), column_name);
class MultiplyColumnsOnGpuTest : public ::testing::TestWithParam<ColumnParameter> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MultiplyColumnsOnGpuTest);
INSTANTIATE_TEST_SUITE_P(Gpu, MultiplyColumnsOnGpuTest, ::testing::ValuesIn(with_elements(gpus())),
                         column_name);

bool a_transposed(std::uint32_t variant) { return (variant & kTransposeA) != 0; }
bool b_transposed(std::uint32_t variant) { return (variant & kTransposeB) != 0; }

/// A tile with op(A)(i, k) = f(i, k), m × k.
template <class F>
NarrowTile tile_of(Element element, std::uint32_t variant, std::int64_t m, std::int64_t inner,
                   std::int64_t padding, std::int64_t offset, F&& f) {
  const bool transposed = a_transposed(variant);
  return {element,
          transposed ? inner : m,
          transposed ? m : inner,
          padding,
          offset,
          [&](std::int64_t i, std::int64_t j) { return transposed ? f(j, i) : f(i, j); }};
}
template <class F>
Matrix<double> columns_with(std::uint32_t variant, std::int64_t inner, std::int64_t cols,
                            std::int64_t padding, F&& f) {
  const bool transposed = b_transposed(variant);
  return {transposed ? cols : inner, transposed ? inner : cols, padding,
          [&](std::int64_t i, std::int64_t j) { return transposed ? f(j, i) : f(i, j); }};
}

/// Their products, and those with 1 added, are exact in every element.
double row_part(std::int64_t i) { return static_cast<double>(1 + i % 3) * (i % 2 == 0 ? 1 : -1); }
double inner_part(std::int64_t k) {
  return std::ldexp(k % 5 < 2 ? -1.0 : 1.0, static_cast<int>(k % 3));
}
double single(std::int64_t i, std::int64_t k) { return (7 * i + k) % 11 == 0 ? 1 : 0; }

/// u_i·v_k, and ones strewn over it.
NarrowTile integer_tile(Element element, std::uint32_t variant, std::int64_t m, std::int64_t inner,
                        std::int64_t padding = 0, std::int64_t offset = 0) {
  return tile_of(element, variant, m, inner, padding, offset,
                 [](auto i, auto k) { return row_part(i) * inner_part(k) + single(i, k); });
}

/// Against sums that know how integer_tile is made, so that they are short.
void check_integers(ColumnRunner& runner, const NarrowTile& a, std::uint32_t variant,
                    std::int64_t cols, std::int64_t padding) {
  const std::int64_t m = a_transposed(variant) ? a.view.cols : a.view.rows;
  const std::int64_t inner = a_transposed(variant) ? a.view.rows : a.view.cols;
  const auto value = [](auto k, auto j) { return small_integer(1, k, j); };
  const auto b = columns_with(variant, inner, cols, padding, value);
  const auto of_c = [](auto i, auto j) { return small_integer(2, i, j); };
  Matrix<double> c(m, cols, padding, of_c);
  runner.run(c, a, b, variant);
  Matrix<double> expected(m, cols, padding, of_c);
  for (std::int64_t j = 0; j < cols; ++j) {
    double common = 0;
    double of_remainder[11] = {};
    for (std::int64_t k = 0; k < inner; ++k) {
      common += inner_part(k) * value(k, j);
      of_remainder[k % 11] += value(k, j);
    }
    for (std::int64_t i = 0; i < m; ++i)
      expected(i, j) -= row_part(i) * common + of_remainder[(11 - 7 * i % 11) % 11];
  }
  EXPECT_TRUE(same_values(c, expected)) << "variant " << variant << ": " << m << ", " << cols
                                        << ", " << inner << ", padding " << padding;
}

TEST_P(MultiplyColumnsTest, AddUpExactlyAtEveryExtent) {
  test::Thinned thinned(5);
  ColumnRunner runner(GetParam());
  const std::string& backend = GetParam().backend->name();
  const std::int64_t most = backend == "cuda"   ? 140'000'000
                            : backend == "host" ? 5'000'000
                                                : 200'000;
  for (const auto& [m, inner] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                 {1, 2047},
                                 {2, 9},
                                 {63, 31},
                                 {64, 32},
                                 {65, 33},
                                 {128, 1024},
                                 {200, 1032},
                                 {777, 64},
                                 {2047, 1},
                                 {2047, 2047}}) {
    if (m * inner > most) continue;  // slow
    for (const std::uint32_t variant : kVariants) {
      const NarrowTile a = integer_tile(GetParam().element, variant, m, inner);
      for (const std::int64_t cols : {1, 2, 7, 8, 9, 16, 17, 32, 33, 64, 65}) {
        if (thinned.skips()) continue;
        if (m * inner * cols <= most) check_integers(runner, a, variant, cols, cols % 3);
      }
    }
  }
}

TEST_P(MultiplyColumnsTest, AddUpExactlyInEveryLayout) {
  ColumnRunner runner(GetParam());
  for (const std::uint32_t variant : kVariants) {
    for (const std::int64_t padding : {0, 1, 3, 8}) {
      for (const std::int64_t offset : {0, 1, 4, 8}) {
        const NarrowTile a = integer_tile(GetParam().element, variant, 72, 88, padding, offset);
        for (const std::int64_t cols : {1, 12, 33})
          check_integers(runner, a, variant, cols, padding);
      }
    }
  }
}

TEST_P(MultiplyColumnsTest, NothingToMultiply) {
  ColumnRunner runner(GetParam());
  for (const std::uint32_t variant : kVariants) {
    for (const auto& [m, inner, cols] :
         {std::array<std::int64_t, 3>{5, 3, 0}, {0, 3, 2}, {5, 0, 2}}) {
      const NarrowTile a = integer_tile(GetParam().element, variant, m, inner);
      check_integers(runner, a, variant, cols, 1);
    }
  }
}

/// Columns first … first + cols of x, or of xᵀ.
Matrix<double> some_of(const Matrix<double>& x, bool transposed, std::int64_t first,
                       std::int64_t cols) {
  if (transposed) return {cols, x.cols, 1, [&](auto i, auto j) { return x(first + i, j); }};
  return {x.rows, cols, 1, [&](auto i, auto j) { return x(i, first + j); }};
}

TEST_P(MultiplyColumnsOnGpuTest, BitsOfAColumnAreItsOwn) {
  ColumnRunner runner(GetParam());
  for (const auto& [m, inner] :
       {std::pair<std::int64_t, std::int64_t>{65, 2047}, {777, 1111}, {128, 2048}}) {
    for (const std::uint32_t variant : kVariants) {
      const NarrowTile a = tile_of(GetParam().element, variant, m, inner, 0, 0,
                                   [](auto i, auto k) { return uniform(2, i, k); });
      const auto b =
          columns_with(variant, inner, 64, 0, [](auto k, auto j) { return uniform(3, k, j); });
      const Matrix<double> c(m, 64, 0, [](auto i, auto j) { return uniform(4, i, j); });
      auto all = c;
      runner.run(all, a, b, variant);
      auto again = c;
      runner.run(again, a, b, variant);
      EXPECT_TRUE(same_bits(again, all));
      for (const std::int64_t cols : {1, 2, 7, 8, 9, 17, 32, 33}) {
        for (const std::int64_t first : {0, 13, 31}) {
          auto some = some_of(c, false, first, cols);
          runner.run(some, a, some_of(b, b_transposed(variant), first, cols), variant);
          EXPECT_TRUE(same_bits(some, some_of(all, false, first, cols)))
              << "variant " << variant << ": " << m << ", " << inner << ", " << cols << " from "
              << first;
        }
      }
    }
  }
}

TEST_P(MultiplyColumnsOnGpuTest, BitsDoNotDependOnWhereATileLies) {
  ColumnRunner runner(GetParam());
  const std::int64_t m = 136;
  const std::int64_t inner = 1048;
  for (const std::uint32_t variant : kVariants) {
    const auto run = [&](std::int64_t padding, std::int64_t offset) {
      const NarrowTile a = tile_of(GetParam().element, variant, m, inner, padding, offset,
                                   [](auto i, auto k) { return uniform(2, i, k); });
      const auto b =
          columns_with(variant, inner, 9, padding, [](auto k, auto j) { return uniform(3, k, j); });
      Matrix<double> c(m, 9, 0, [](auto i, auto j) { return uniform(4, i, j); });
      runner.run(c, a, b, variant);
      return c;
    };
    const auto aligned = run(0, 0);
    EXPECT_TRUE(same_bits(run(0, 1), aligned)) << "variant " << variant;
    EXPECT_TRUE(same_bits(run(3, 0), aligned)) << "variant " << variant;
  }
}

TEST_P(MultiplyColumnsOnGpuTest, WhatIsNotFiniteReachesItsRowAndColumnAlone) {
  ColumnRunner runner(GetParam());
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::uint32_t variant : kVariants) {
    // Row 70 of op(A) has a NaN, column 3 of op(B) an infinity.
    const NarrowTile a = tile_of(GetParam().element, variant, 130, 75, 0, 0, [](auto i, auto k) {
      return i == 70 && k == 40 ? std::nan("") : 1.0;
    });
    const auto b = columns_with(variant, 75, 6, 0,
                                [&](auto k, auto j) { return k == 74 && j == 3 ? infinity : 1.0; });
    Matrix<double> c(130, 6, 0, [](auto, auto) { return 0.0; });
    runner.run(c, a, b, variant);
    for (std::int64_t j = 0; j < 6; ++j) {
      for (std::int64_t i = 0; i < 130; ++i) {
        if (i == 70) {
          EXPECT_TRUE(std::isnan(c(i, j))) << i << ", " << j;
        } else {
          EXPECT_EQ(c(i, j), j == 3 ? -infinity : -75.0) << i << ", " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::testing
