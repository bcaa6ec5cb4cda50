// Steps of Krylov methods: worked out by hand on small integers, each backend with the bits of the
// reference, and any cut into whole chunks with the bits of the whole.

#include "kernels/krylov/panel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/backend/backend.hpp"
#include "kernels/tall/gram.hpp"
#include "scalar/double_double.hpp"
#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/nan.hpp"

namespace strata::testing {
namespace {

using test::kNan;

/// An operand of any element, packed; `row` is its place, which halo_put reads.
struct PanelOperand {
  Element element = Element::fp64;
  std::int64_t rows = 0, cols = 0, row = 0;
  std::vector<std::byte> bytes;

  template <class T>
  [[nodiscard]] static PanelOperand of(std::int64_t rows, std::vector<T> values,
                                       std::int64_t row = 0) {
    PanelOperand x;
    x.element = element_of<T>;
    x.rows = rows;
    x.cols = rows == 0 ? 0 : std::ssize(values) / rows;
    x.row = row;
    x.bytes.resize(values.size() * sizeof(T));
    std::memcpy(x.bytes.data(), values.data(), x.bytes.size());
    return x;
  }
  template <class T>
  [[nodiscard]] std::vector<T> as() const {
    EXPECT_EQ(element_of<T>, element);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

void run_panel(const Backend& backend, const Operation& operation,
               std::vector<PanelOperand>& operands, std::uint32_t variant) {
  Elements elements;
  for (const PanelOperand& x : operands) elements.push_back(x.element);
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  ASSERT_NE(kernel, nullptr) << operation.name;
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  for (PanelOperand& x : operands) {
    memory.push_back(device->allocate(std::max<std::int64_t>(std::ssize(x.bytes), 1)));
    queue->copy(memory.back().data(), x.bytes.data(), std::ssize(x.bytes),
                CopyDirection::host_to_device);
    views.push_back({.data = memory.back().data(),
                     .rows = x.rows,
                     .cols = x.cols,
                     .ld = std::max<std::int64_t>(x.rows, 1),
                     .row = x.row,
                     .element = x.element});
  }
  try {
    kernel(*queue, {views, operation.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  for (std::size_t i = 0; i < operands.size(); ++i)
    queue->copy(operands[i].bytes.data(), views[i].data, std::ssize(operands[i].bytes),
                CopyDirection::device_to_host);
  queue->synchronize();
}

std::vector<double> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::ldexp(random_uniform(seed, static_cast<std::uint64_t>(i)) - 0.5,
                                static_cast<int>((i * 7) % 19) - 9));
  return values;
}

/// A matrix of `rows` rows with up to nine entries each, `halo` columns behind its own.
std::vector<PanelOperand> product_operands(std::int64_t rows, std::int64_t cols,
                                           std::int64_t halo) {
  std::vector<std::int32_t> start{0};
  std::vector<std::int32_t> column;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t e = 0; e < (i * 5) % 10; ++e)
      column.push_back(static_cast<std::int32_t>((i * 31 + e * 17) % (rows + halo)));
    start.push_back(static_cast<std::int32_t>(column.size()));
  }
  const auto entries = static_cast<std::int64_t>(std::max<std::size_t>(column.size(), 1));
  column.resize(static_cast<std::size_t>(entries));
  return {PanelOperand::of(rows, numbers(rows * cols, 1)),
          PanelOperand::of(rows + 1, start),
          PanelOperand::of(entries, column),
          PanelOperand::of(entries, numbers(entries, 2)),
          PanelOperand::of(std::max<std::int64_t>(halo, 1),
                           numbers(std::max<std::int64_t>(halo, 1), 3)),
          PanelOperand::of(3, numbers(3 * cols, 4))};
}

/// The same numbers in fp32, rounded.
PanelOperand narrowed(const PanelOperand& x) {
  const std::vector<double> wide = x.as<double>();
  return PanelOperand::of(x.rows, std::vector<float>(wide.begin(), wide.end()), x.row);
}

class Panel : public ::testing::TestWithParam<const Backend*> {
 protected:
  void same(const Operation& operation, std::vector<PanelOperand> operands, std::uint32_t variant) {
    std::vector<PanelOperand> expected = operands;
    run_panel(reference_backend(), operation, expected, variant);
    run_panel(*GetParam(), operation, operands, variant);
    for (std::size_t i = 0; i < operands.size(); ++i)
      EXPECT_TRUE(test::same_bits(operands[i].bytes, expected[i].bytes))
          << operation.name << ", operand " << i << ", " << operands[0].rows << " rows";
  }
};
std::vector<const Backend*> compared() {
  std::vector<const Backend*> all{&host_backend()};
  if (const Backend* cuda = cuda_backend(); cuda != nullptr) all.push_back(cuda);
  return all;
}
std::vector<const Backend*> every() {
  std::vector<const Backend*> all = compared();
  all.push_back(&reference_backend());
  return all;
}
std::string name_of_backend(const ::testing::TestParamInfo<const Backend*>& info) {
  return info.param->name();
}
INSTANTIATE_TEST_SUITE_P(Compared, Panel, ::testing::ValuesIn(compared()), name_of_backend);

constexpr std::int64_t kRows[] = {1, 3, 4, 127, 128, 129, 256, 511, 700};

TEST_P(Panel, ProductsHaveTheBitsOfTheReference) {
  for (const std::int64_t rows : kRows) {
    for (const std::int64_t halo : {0, 1, 60}) {
      same(spmv, product_operands(rows, 5, halo),
           panel_variant({.first = 3, .second = 1, .third = 2}));
      same(spmv, product_operands(rows, 5, halo),
           panel_variant({.first = 0, .second = 4, .third = 4}));
      same(spmv, product_operands(rows, 5, halo),
           panel_variant({.first = 1, .second = 2, .third = 0}) | kSpmvOfLast);
    }
  }
}

TEST_P(Panel, SumsHaveTheBitsOfTheReference) {
  for (const std::int64_t rows : kRows) {
    const std::int64_t chunks = (rows + 127) / 128;
    for (const std::int64_t p : {1, 4, 7}) {
      for (const std::int64_t q : {1, 3}) {
        const PanelOperand v = PanelOperand::of(rows, numbers(rows * 12, 5));
        const std::uint32_t variant = panel_variant({.first = 2, .second = 9, .third = 7});
        const auto parts = static_cast<std::size_t>(p * q * chunks);
        same(panel_inner, {PanelOperand::of(p, std::vector<double>(parts, kNan)), v}, variant);
        same(panel_inner, {PanelOperand::of(p, std::vector<DoubleDouble>(parts)), v}, variant);
        for (const Operation* sum : {&panel_start, &panel_add}) {
          const PanelOperand b = PanelOperand::of(p, numbers(p * q * chunks, 6));
          same(*sum, {PanelOperand::of(p, numbers(p * q, 7)), b}, 0);
          std::vector<DoubleDouble> wide(static_cast<std::size_t>(p * q));
          std::vector<DoubleDouble> wide_parts;
          for (const double x : numbers(p * q * chunks, 8))
            wide_parts.push_back(two_sum(x, x * 0x1p-60));
          for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = two_sum(1.0 / 3, 0x1p-57);
          same(*sum, {PanelOperand::of(p, wide), PanelOperand::of(p, wide_parts)}, 0);
        }
      }
    }
  }
}

/// Chunks of several units, whose sums are a tree.
TEST_P(Panel, SumsOfLongChunksHaveTheBitsOfTheReference) {
  struct Case {
    std::int64_t rows, log2, first, p, second, q;
  };
  for (const Case& c :
       {Case{1023, 10, 0, 3, 3, 2}, Case{1025, 10, 0, 3, 0, 3}, Case{2049, 11, 1, 60, 61, 30},
        Case{5000, 11, 2, 33, 35, 9}, Case{9001, 12, 4, 17, 4, 17}, Case{6144, 12, 0, 65, 65, 1},
        Case{140'001, 16, 0, 1, 1, 2}, Case{70'000, 17, 1, 2, 1, 2}}) {
    const std::int64_t chunks = (c.rows >> c.log2) + ((c.rows & ((1 << c.log2) - 1)) != 0 ? 1 : 0);
    const PanelOperand v = PanelOperand::of(c.rows, numbers(c.rows * (c.second + c.q + 1), 5));
    const std::uint32_t variant =
        panel_variant({.first = c.first, .second = c.second, .third = c.log2});
    const auto parts = static_cast<std::size_t>(c.p * c.q * chunks);
    same(panel_inner, {PanelOperand::of(c.p, std::vector<double>(parts, kNan)), v}, variant);
    if (c.p * c.q > 400) continue;
    same(panel_inner, {PanelOperand::of(c.p, std::vector<DoubleDouble>(parts)), v}, variant);
  }
}

TEST_P(Panel, UpdatesAndSolvesHaveTheBitsOfTheReference) {
  for (const std::int64_t rows : kRows) {
    const PanelOperand v = PanelOperand::of(rows, numbers(rows * 90, 9));
    for (const std::int64_t p : {1, 5, 65}) {
      for (const std::int64_t q : {1, 8, 11}) {
        const PanelOperand s = PanelOperand::of(p, numbers(p * q, 10));
        same(panel_update, {v, s}, panel_variant({.first = 2, .second = 70}));
        if (q > 1) same(panel_update, {v, s}, panel_variant({.second = 70, .third = 1}));
      }
    }
    const PanelOperand square = PanelOperand::of(1, std::vector<double>{7.3});
    same(panel_update, {v, square}, panel_variant({.second = 5}) | kPanelNormalize);
    std::vector<double> r(36, kNan);
    for (std::size_t j = 0; j < 6; ++j)
      for (std::size_t i = 0; i <= j; ++i) r[i + 6 * j] = i == j ? 1.5 : 0.3 / (1.0 + i + j);
    std::vector<DoubleDouble> wide;
    for (const double x : r) wide.push_back(two_sum(x, x * 0x1p-58));
    const PanelOperand d = PanelOperand::of(6, std::vector<double>{1, 2, 0.5, 4, 0, 1});
    same(panel_solve, {v, PanelOperand::of(6, r), d}, 3);
    same(panel_solve, {v, PanelOperand::of(6, wide), d}, 3);
  }
}

TEST_P(Panel, RotationsHaveTheBitsOfTheReference) {
  for (const std::int64_t rows : kRows) {
    const PanelOperand v = PanelOperand::of(rows, numbers(rows * 70, 15));
    for (const std::int64_t p : {1, 6, 67}) {
      for (const std::int64_t q : {1, 5, 67}) {
        if (q <= p) same(panel_rotate, {v, PanelOperand::of(p, numbers(p * q, 16))}, 0);
      }
    }
  }
  // So many columns that a GPU holds four, two and one times sixteen rows of them.
  const PanelOperand wide = PanelOperand::of(131, numbers(131 * 640, 15));
  for (const std::int64_t p : {201, 296, 297, 600, 601})
    for (const std::int64_t q : {3, 150})
      same(panel_rotate, {wide, PanelOperand::of(p, numbers(p * q, 16))}, 0);
}

TEST_P(Panel, CopiesHaveTheBitsOfTheReference) {
  const PanelOperand v = PanelOperand::of(300, numbers(900, 11));
  same(halo_pack,
       {PanelOperand::of(4, std::vector<double>(4)), v,
        PanelOperand::of(4, std::vector<std::int32_t>{299, 0, 7, 7})},
       2);
  for (const Operation* put : {&halo_start, &halo_put})
    same(*put, {PanelOperand::of(20, numbers(20, 12)), PanelOperand::of(5, numbers(5, 13), 9)}, 0);
  same(panel_take, {PanelOperand::of(300, std::vector<double>(300)), v}, 1);
  same(panel_put, {v, PanelOperand::of(300, numbers(300, 17))}, 2);
}

TEST_P(Panel, InSinglePrecisionToo) {
  for (const std::int64_t rows : kRows) {
    const std::int64_t chunks = (rows + 127) / 128;
    for (const std::int64_t halo : {0, 60}) {
      std::vector<PanelOperand> x = product_operands(rows, 5, halo);
      for (const std::size_t i : {0, 3, 4}) x[i] = narrowed(x[i]);
      same(spmv, x, panel_variant({.first = 3, .second = 1, .third = 2}));
      same(spmv, x, panel_variant({.first = 1, .second = 2, .third = 0}) | kSpmvOfLast);
    }
    const PanelOperand v = narrowed(PanelOperand::of(rows, numbers(rows * 110, 9)));
    for (const std::int64_t p : {1, 7, 65}) {
      for (const std::int64_t q : {1, 3, 17, 33}) {
        const PanelOperand s = PanelOperand::of(p, numbers(p * q, 10));
        same(panel_update, {v, s}, panel_variant({.first = 2, .second = 70}));
        if (q > 1) same(panel_update, {v, s}, panel_variant({.second = 70, .third = 1}));
        same(panel_correct, {PanelOperand::of(rows, numbers(rows * 40, 18)), v, s},
             panel_variant({.first = 2, .second = 3}));
        if (p * q > 250) continue;
        const std::uint32_t variant = panel_variant({.first = 2, .second = 70, .third = 7});
        const auto parts = static_cast<std::size_t>(p * q * chunks);
        same(panel_inner, {PanelOperand::of(p, std::vector<double>(parts, kNan)), v}, variant);
        same(panel_inner, {PanelOperand::of(p, std::vector<float>(parts)), v}, variant);
        for (const Operation* sum : {&panel_start, &panel_add})
          same(*sum,
               {narrowed(PanelOperand::of(p, numbers(p * q, 7))),
                narrowed(PanelOperand::of(p, numbers(p * q * chunks, 6)))},
               0);
      }
    }
    for (const double square : {7.3, 0.0, -1.0, kNan}) {
      const PanelOperand s = PanelOperand::of(1, std::vector<double>{square});
      same(panel_update, {v, s}, panel_variant({.second = 5}) | kPanelNormalize);
      same(panel_narrow, {v, PanelOperand::of(rows, numbers(rows * 3, 19)), s},
           panel_variant({.first = 2, .second = 4}));
    }
    std::vector<double> r(36, kNan);
    for (std::size_t j = 0; j < 6; ++j)
      for (std::size_t i = 0; i <= j; ++i) r[i + 6 * j] = i == j ? 1.5 : 0.3 / (1.0 + i + j);
    same(panel_solve,
         {v, PanelOperand::of(6, r), PanelOperand::of(6, std::vector<double>{1, 2, 0.5, 4, 0, 1})},
         3);
  }
  const PanelOperand v = narrowed(PanelOperand::of(300, numbers(900, 11)));
  same(halo_pack,
       {PanelOperand::of(4, std::vector<float>(4)), v,
        PanelOperand::of(4, std::vector<std::int32_t>{299, 0, 7, 7})},
       2);
  for (const Operation* put : {&halo_start, &halo_put})
    same(*put,
         {narrowed(PanelOperand::of(20, numbers(20, 12))),
          narrowed(PanelOperand::of(5, numbers(5, 13), 9))},
         0);
  same(panel_take, {PanelOperand::of(300, std::vector<float>(300)), v}, 1);
  same(panel_put, {v, narrowed(PanelOperand::of(300, numbers(300, 17)))}, 2);
}

// ---- by hand, on every backend

class PanelAlone : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Every, PanelAlone, ::testing::ValuesIn(every()), name_of_backend);

TEST_P(PanelAlone, AProductByHand) {
  // Rows (own 0, own 1 | halo 0): [2 0 3], [], [1 1 1 1 1 by repeated columns].
  std::vector<PanelOperand> x{
      PanelOperand::of(3, std::vector<double>{5, 7, 11, 0, 0, 0, 1, 10, 100}),
      PanelOperand::of(4, std::vector<std::int32_t>{0, 2, 2, 7}),
      PanelOperand::of(7, std::vector<std::int32_t>{0, 3, 0, 1, 2, 3, 0}),
      PanelOperand::of(7, std::vector<double>{2, 3, 1, 1, 1, 1, 1}),
      PanelOperand::of(1, std::vector<double>{13}),
      PanelOperand::of(3, std::vector<double>{9, 9, 9, 2, 0.5, -4, 9, 9, 9})};
  run_panel(*GetParam(), spmv, x, panel_variant({.first = 0, .second = 1, .third = 2}));
  // −4·(A·v_0 − 2·v_0 − v_2/2), A·v_0 = (49, 0, 41).
  const std::vector<double> expected{
      5, 7, 11, -4 * (49 - 10 - 0.5), -4 * (0 - 14 - 5.0), -4 * (41 - 22 - 50.0), 1, 10, 100};
  EXPECT_EQ(x[0].as<double>(), expected);
  // A times the last column (1, 10, 100), what is subtracted stays: A·v_2 = (41, 0, 125).
  run_panel(*GetParam(), spmv, x,
            panel_variant({.first = 0, .second = 1, .third = 2}) | kSpmvOfLast);
  const std::vector<double> of_last{
      5, 7, 11, -4 * (41 - 10 - 0.5), -4 * (0 - 14 - 5.0), -4 * (125 - 22 - 50.0), 1, 10, 100};
  EXPECT_EQ(x[0].as<double>(), of_last);
}

/// What sums in fp32 would lose: 2^24 + 1 − 2^24, 1 − 2^-40.
TEST_P(PanelAlone, SinglePrecisionIsRoundedOnce) {
  const float large = 0x1p24F;
  std::vector<PanelOperand> x{PanelOperand::of(3, std::vector<float>{large, 1, large, 0, 0, 0}),
                              PanelOperand::of(4, std::vector<std::int32_t>{0, 3, 3, 4}),
                              PanelOperand::of(4, std::vector<std::int32_t>{0, 1, 2, 3}),
                              PanelOperand::of(4, std::vector<float>{1, 1, -1, 3}),
                              PanelOperand::of(1, std::vector<float>{0.5F}),
                              PanelOperand::of(3, std::vector<double>{0, 0, 0, 0, 0, 2})};
  run_panel(*GetParam(), spmv, x, panel_variant({.first = 0, .second = 1}));
  EXPECT_EQ(x[0].as<float>(), (std::vector<float>{large, 1, large, 2, 0, 3}));
  std::vector<PanelOperand> update{PanelOperand::of(1, std::vector<float>{large, 1, large, 1}),
                                   PanelOperand::of(3, std::vector<double>{1, -1, -1})};
  run_panel(*GetParam(), panel_update, update, panel_variant({.first = 0, .second = 3}));
  EXPECT_EQ(update[0].as<float>().back(), 2);  // 1 − 2^24 + 1 + 2^24
  std::vector<PanelOperand> correct{PanelOperand::of(1, std::vector<double>{5, 1}),
                                    PanelOperand::of(1, std::vector<float>{7, 0x1p-20F}),
                                    PanelOperand::of(1, std::vector<double>{0x1p-20})};
  run_panel(*GetParam(), panel_correct, correct, panel_variant({.first = 1, .second = 1}));
  EXPECT_EQ(correct[0].as<double>(), (std::vector<double>{5, 1 - 0x1p-40}));
  std::vector<PanelOperand> narrow{PanelOperand::of(2, std::vector<float>{9, 9, 9, 9}),
                                   PanelOperand::of(2, std::vector<double>{3, 2 + 0x1p-30}),
                                   PanelOperand::of(1, std::vector<double>{4})};
  run_panel(*GetParam(), panel_narrow, narrow, panel_variant({.first = 0, .second = 1}));
  EXPECT_EQ(narrow[0].as<float>(), (std::vector<float>{9, 9, 1.5F, 1}));
}

TEST_P(PanelAlone, WithoutBetaTheVectorBeforeIsNotRead) {
  std::vector<PanelOperand> x = product_operands(40, 4, 3);
  auto v = x[0].as<double>();
  for (std::size_t i = 120; i < 160; ++i) v[i] = kNan;
  x[0] = PanelOperand::of(40, v);
  x[5] = PanelOperand::of(3, std::vector<double>{0, 0, 0, 0.5, 0, 2, 0, 0, 0, 0, 0, 0});
  run_panel(*GetParam(), spmv, x, panel_variant({.first = 0, .second = 1, .third = 3}));
  const auto result = x[0].as<double>();
  for (std::size_t i = 40; i < 80; ++i) EXPECT_TRUE(std::isfinite(result[i])) << i;
}

TEST_P(PanelAlone, ACutIntoWholeChunksHasTheBitsOfTheWhole) {
  constexpr std::int64_t kAll = 700;
  const std::vector<double> all = numbers(kAll * 6, 14);
  const std::uint32_t variant = panel_variant({.first = 0, .second = 4, .third = 7});
  const auto rows_of = [&](std::int64_t first, std::int64_t rows) {
    std::vector<double> part;
    for (std::int64_t j = 0; j < 6; ++j)
      part.insert(part.end(), all.begin() + j * kAll + first,
                  all.begin() + j * kAll + first + rows);
    return PanelOperand::of(rows, part);
  };
  const auto sum_of = [&](const std::vector<std::int64_t>& cuts) {
    std::vector<DoubleDouble> s(8);
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      const std::int64_t rows = cuts[c + 1] - cuts[c];
      const auto chunks = static_cast<std::size_t>((rows + 127) / 128);
      std::vector<PanelOperand> inner{PanelOperand::of(4, std::vector<DoubleDouble>(8 * chunks)),
                                      rows_of(cuts[c], rows)};
      run_panel(*GetParam(), panel_inner, inner, variant);
      std::vector<PanelOperand> add{PanelOperand::of(4, s), inner[0]};
      run_panel(*GetParam(), c == 0 ? panel_start : panel_add, add, 0);
      s = add[0].as<DoubleDouble>();
    }
    return s;
  };
  const auto whole = sum_of({0, kAll});
  EXPECT_EQ(whole, sum_of({0, 128, 512, kAll}));
  EXPECT_EQ(whole, sum_of({0, 640, kAll}));
  // And it is the sum: beside a plain one.
  for (std::size_t j = 0; j < 2; ++j) {
    for (std::size_t i = 0; i < 4; ++i) {
      long double sum = 0;
      for (std::size_t r = 0; r < kAll; ++r)
        sum += static_cast<long double>(all[i * kAll + r]) * all[(4 + j) * kAll + r];
      EXPECT_NEAR(whole[i + 4 * j].hi, static_cast<double>(sum), 1e-12);
    }
  }
}

TEST_P(PanelAlone, UpdatesByHand) {
  std::vector<PanelOperand> x{PanelOperand::of(2, std::vector<double>{1, 2, 3, 4, 50, 60, 70, 80}),
                              PanelOperand::of(2, std::vector<double>{99, 99, 2, 3, 5, 7})};
  run_panel(*GetParam(), panel_update, x, panel_variant({.first = 0, .second = 2, .third = 1}));
  EXPECT_EQ(x[0].as<double>(),
            (std::vector<double>{1, 2, 3, 4, 50 - 11, 60 - 16, 70 - 26, 80 - 38}));
  std::vector<PanelOperand> y{PanelOperand::of(2, std::vector<double>{3, 4, 6, 8}),
                              PanelOperand::of(1, std::vector<double>{4})};
  run_panel(*GetParam(), panel_update, y, panel_variant({.second = 1}) | kPanelNormalize);
  EXPECT_EQ(y[0].as<double>(), (std::vector<double>{3, 4, 3, 4}));
  y[1] = PanelOperand::of(1, std::vector<double>{0});
  run_panel(*GetParam(), panel_update, y, panel_variant({.second = 1}) | kPanelNormalize);
  EXPECT_EQ(y[0].as<double>(), (std::vector<double>{3, 4, 3, 4}));
}

TEST_P(PanelAlone, RotationsAndCopiesByHand) {
  // Columns (1, 2), (3, 4), (5, 6) become 2·a − c and b; the third stays.
  std::vector<PanelOperand> x{PanelOperand::of(2, std::vector<double>{1, 2, 3, 4, 5, 6}),
                              PanelOperand::of(3, std::vector<double>{2, 0, -1, 0, 1, 0})};
  run_panel(*GetParam(), panel_rotate, x, 0);
  EXPECT_EQ(x[0].as<double>(), (std::vector<double>{-3, -2, 3, 4, 5, 6}));
  std::vector<PanelOperand> put{x[0], PanelOperand::of(2, std::vector<double>{8, 9})};
  run_panel(*GetParam(), panel_put, put, 1);
  EXPECT_EQ(put[0].as<double>(), (std::vector<double>{-3, -2, 8, 9, 5, 6}));
  std::vector<PanelOperand> take{PanelOperand::of(2, std::vector<double>{0, 0}), put[0]};
  run_panel(*GetParam(), panel_take, take, 2);
  EXPECT_EQ(take[0].as<double>(), (std::vector<double>{5, 6}));
  std::vector<PanelOperand> halo{PanelOperand::of(4, std::vector<double>{1, 1, 1, 1}),
                                 PanelOperand::of(2, std::vector<double>{7, 8}, 1)};
  run_panel(*GetParam(), halo_put, halo, 0);
  EXPECT_EQ(halo[0].as<double>(), (std::vector<double>{1, 7, 8, 1}));
  std::vector<PanelOperand> pack{PanelOperand::of(3, std::vector<double>(3)), put[0],
                                 PanelOperand::of(3, std::vector<std::int32_t>{1, 1, 0})};
  run_panel(*GetParam(), halo_pack, pack, 1);
  EXPECT_EQ(pack[0].as<double>(), (std::vector<double>{9, 9, 8}));
}

TEST_P(PanelAlone, OtherVariantsAreRefused) {
  std::vector<PanelOperand> x = product_operands(4, 2, 0);
  EXPECT_THROW(run_panel(*GetParam(), spmv, x, 1U << 31), Error);
  std::vector<PanelOperand> y{PanelOperand::of(2, std::vector<double>{3, 4}),
                              PanelOperand::of(1, std::vector<double>{4})};
  EXPECT_THROW(run_panel(*GetParam(), panel_update, y, 1U << 31), Error);
}

TEST(PanelChunk, FollowsFromTheRowsAlone) {
  EXPECT_EQ(panel_chunk_log2(1), 7);
  EXPECT_EQ(panel_chunk_log2(64 * 128), 7);
  EXPECT_EQ(panel_chunk_log2(64 * 128 + 1), 8);
  EXPECT_EQ(panel_chunk_log2(1585478), 15);
}

}  // namespace
}  // namespace strata::testing
