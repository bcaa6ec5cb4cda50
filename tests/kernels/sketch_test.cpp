// sketch: its random numbers, what must hold of each kind whatever they are, and every backend with
// the bits of the reference.

#include "kernels/tall/sketch.hpp"

#include <cmath>

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

constexpr SketchKind kKinds[] = {SketchKind::gaussian, SketchKind::count, SketchKind::srht_fp64,
                                 SketchKind::srht_fp32, SketchKind::srht_fp16};

Matrix<double> unscaled(std::int64_t n) {
  return {n, 1, 0, [](auto, auto) { return 1.0; }};
}

/// S of several blocks, one task; `rows`: the number of the first row of each.
template <class T>
std::vector<Matrix<double>> sketched(const Backend& backend, std::uint32_t variant,
                                     std::vector<Matrix<T>> v, std::int64_t s_rows,
                                     const std::vector<std::int64_t>& rows,
                                     std::vector<Matrix<double>> d = {}) {
  const KernelFunction kernel =
      backend.kernels().find(sketch.name, {Element::fp64, element_of<T>, Element::fp64});
  const auto device = backend.make_device(0, 256_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  std::vector<Matrix<double>> s;
  const auto load = [&](auto& matrix, Element element, std::int64_t row) {
    memory.push_back(device->allocate(std::max<std::int64_t>(matrix.bytes(), 1)));
    queue->copy(memory.back().data(), matrix.data.data(), matrix.bytes(),
                CopyDirection::host_to_device);
    views.push_back({memory.back().data(), matrix.rows, matrix.cols, matrix.ld, row, 0, element});
  };
  for (std::size_t b = 0; b < v.size(); ++b) {
    if (d.size() == b) d.push_back(unscaled(v[b].cols));
    s.emplace_back(s_rows, v[b].cols, 3);
  }
  for (std::size_t b = 0; b < v.size(); ++b) {
    load(s[b], Element::fp64, 0);
    load(v[b], element_of<T>, rows[b]);
    load(d[b], Element::fp64, 0);
  }
  try {
    kernel(*queue, {views, sketch.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  for (std::size_t b = 0; b < v.size(); ++b)
    queue->copy(s[b].data.data(), views[3 * b].data, s[b].bytes(), CopyDirection::device_to_host);
  queue->synchronize();
  return s;
}

Matrix<double> uneven_matrix(std::int64_t rows, std::int64_t cols) {
  return {rows, cols, 3, [](auto i, auto j) {
            return std::ldexp(uniform(5, i, j), static_cast<int>((i * 7 + j * 3) % 23) - 11);
          }};
}

class SketchBits : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Compared, SketchBits, ::testing::ValuesIn(others()), backend_name);

template <class T>
void compare(const Backend& backend) {
  for (const SketchKind kind : kKinds) {
    std::vector<Matrix<T>> v;
    std::vector<Matrix<double>> d;
    for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {5, 2}, {127, 3}, {129, 4}, {1024, 5}, {9000, 20}, {40, 33}}) {
      const Matrix<double> wide = uneven_matrix(rows, cols);
      v.emplace_back(rows, cols, 3, [&](auto i, auto j) { return wide(i, j); });
      d.emplace_back(cols, 1, 0, [](auto i, auto) { return i == 1 ? 0 : std::ldexp(1.0, i % 5); });
    }
    // Tiles of count begin with every 32nd row.
    const std::vector<std::int64_t> rows =
        kind == SketchKind::count ? std::vector<std::int64_t>{0, 32, 8192, 64, 1024, 1LL << 33, 96}
                                  : std::vector<std::int64_t>{0, 7, 8192, 3, 1024, 1LL << 33, 100};
    const std::uint32_t variant = sketch_variant(kind, 12345);
    const auto expected = sketched(reference_backend(), variant, v, 41, rows, d);
    const auto got = sketched(backend, variant, v, 41, rows, d);
    for (std::size_t b = 0; b < v.size(); ++b)
      EXPECT_TRUE(same_bits(got[b], expected[b])) << static_cast<int>(kind) << " of " << b;
  }
}
TEST_P(SketchBits, AreThoseOfTheReference) {
  compare<double>(*GetParam());
  compare<float>(*GetParam());
}

class Sketch : public ::testing::TestWithParam<const Backend*> {
 protected:
  [[nodiscard]] static Matrix<double> of(SketchKind kind, const Matrix<double>& v,
                                         std::int64_t s_rows, std::int64_t first_row = 0,
                                         std::uint32_t seed = 9) {
    return sketched(*GetParam(), sketch_variant(kind, seed), std::vector<Matrix<double>>{v}, s_rows,
                    {first_row})[0];
  }
};
INSTANTIATE_TEST_SUITE_P(Every, Sketch, ::testing::ValuesIn(all_of_them()), backend_name);

TEST_P(Sketch, OfAGaussianIsTheSumOverRows) {
  const Matrix<double> v = uneven_matrix(300, 4);
  const Matrix<double> s = of(SketchKind::gaussian, v, 10, 70);
  const std::uint64_t seed =
      sketch_seed(sketch_variant(SketchKind::gaussian, 9), SketchStream::normal);
  for (std::int64_t k = 0; k < 4; ++k) {
    for (std::int64_t i = 0; i < 10; ++i) {
      long double sum = 0;
      long double size = 0;
      for (std::int64_t r = 0; r < 300; ++r) {
        const long double term = static_cast<long double>(sketch_normal(seed, 70 + r, i)) * v(r, k);
        sum += term;
        size += std::abs(term);
      }
      EXPECT_NEAR(s(i, k), static_cast<double>(sum), 1e-14 * static_cast<double>(size));
    }
  }
}

TEST_P(Sketch, OfTwoBlocksAddUpToThatOfBoth) {
  // Not of transforms, which are over a block.
  const Matrix<double> v(700, 5, 0, [](auto i, auto j) { return small_integer(3, i, j); });
  const Matrix<double> top(256, 5, 0, [&](auto i, auto j) { return v(i, j); });
  const Matrix<double> rest(444, 5, 0, [&](auto i, auto j) { return v(256 + i, j); });
  for (const SketchKind kind : {SketchKind::gaussian, SketchKind::count}) {
    const Matrix<double> all = of(kind, v, 40, 992);
    const Matrix<double> first = of(kind, top, 40, 992);
    const Matrix<double> second = of(kind, rest, 40, 1248);
    for (std::int64_t j = 0; j < 5; ++j) {
      for (std::int64_t i = 0; i < 40; ++i)
        EXPECT_NEAR(all(i, j), first(i, j) + second(i, j), 1e-10);
    }
  }
}

TEST_P(Sketch, CountPutsEachRowWithASignInOneBucket) {
  constexpr std::int64_t kBuckets = 70;
  const std::uint32_t variant = sketch_variant(SketchKind::count, 9);
  const Matrix<double> v = uneven_matrix(3000, 3);  // of one span
  const Matrix<double> s = of(SketchKind::count, v, kBuckets, 320);
  std::vector<double> expected(static_cast<std::size_t>(3 * kBuckets));
  std::vector<int> used(static_cast<std::size_t>(kBuckets));
  for (std::int64_t r = 0; r < v.rows; ++r) {
    const std::int64_t tile = (320 + r) / kSketchCountRows;
    const std::int64_t bucket =
        sketch_bucket(sketch_seed(variant, SketchStream::bucket), tile, kBuckets) + r % 32;
    ASSERT_TRUE(bucket >= 0 && bucket < kBuckets);
    ++used[static_cast<std::size_t>(bucket)];
    const std::uint32_t signs = sketch_signs(sketch_seed(variant, SketchStream::sign), tile);
    for (std::int64_t j = 0; j < 3; ++j)
      expected[static_cast<std::size_t>(bucket + j * kBuckets)] +=
          (signs >> r % 32 & 1U) != 0 ? -v(r, j) : v(r, j);
  }
  for (std::int64_t j = 0; j < 3; ++j) {
    for (std::int64_t i = 0; i < kBuckets; ++i)
      EXPECT_EQ(s(i, j), expected[static_cast<std::size_t>(i + j * kBuckets)]) << i;
  }
  EXPECT_EQ(std::count(used.begin(), used.end(), 0), 0);
}

TEST_P(Sketch, CountAddsSpansInATreeWhateverTheBlocks) {
  constexpr std::int64_t kBuckets = 33;
  const std::int64_t span = sketch_span(kBuckets);
  ASSERT_EQ(span, 2048);
  const Matrix<double> v = uneven_matrix(4 * span + span + 100, 2);
  const auto rows = [&](std::int64_t first, std::int64_t count) {
    return Matrix<double>(count, 2, 1, [&](auto i, auto j) { return v(first + i, j); });
  };
  const auto of_rows = [&](std::int64_t first, std::int64_t count) {
    return of(SketchKind::count, rows(first, count), kBuckets, first);
  };
  const auto sum = [&](const Matrix<double>& a, const Matrix<double>& b) {
    return Matrix<double>(kBuckets, 2, 3, [&](auto i, auto j) { return a(i, j) + b(i, j); });
  };
  const Matrix<double> whole = of_rows(0, v.rows);
  const Matrix<double> front =
      sum(sum(of_rows(0, span), of_rows(span, span)), of_rows(2 * span, 2 * span));
  const Matrix<double> back = sum(of_rows(4 * span, span), of_rows(5 * span, 100));
  EXPECT_TRUE(same_bits(whole, sum(front, back)));
}

TEST_P(Sketch, CountGoesOnWithinASpan) {
  const Matrix<double> v = uneven_matrix(2000, 5);
  const Matrix<double> expected = of(SketchKind::count, v, 64, 4096);
  const std::uint32_t variant = sketch_variant(SketchKind::count, 9);
  const auto device = GetParam()->make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  Matrix<double> s(64, 5, 3);
  const Matrix<double> d = unscaled(5);
  const Buffer there = device->allocate(v.bytes());
  const Buffer sums = device->allocate(s.bytes());
  const Buffer scales = device->allocate(d.bytes());
  queue->copy(there.data(), v.data.data(), v.bytes(), CopyDirection::host_to_device);
  queue->copy(sums.data(), s.data.data(), s.bytes(), CopyDirection::host_to_device);
  queue->copy(scales.data(), d.data.data(), d.bytes(), CopyDirection::host_to_device);
  const Elements elements{Element::fp64, Element::fp64, Element::fp64};
  for (std::int64_t first = 0; first < v.rows;) {
    const std::int64_t count = std::min<std::int64_t>(v.rows - first, first == 0 ? 32 : 672);
    const std::vector<BlockView> views{
        {sums.data(), s.rows, s.cols, s.ld, 0, 0, Element::fp64},
        {there.data() + first * 8, count, v.cols, v.ld, 4096 + first, 0, Element::fp64},
        {scales.data(), 5, 1, 5, 0, 0, Element::fp64}};
    const std::string_view name = first == 0 ? sketch.name : continue_sketch.name;
    GetParam()->kernels().find(name, elements)(*queue, {views, 3}, {.variant = variant});
    first += count;
  }
  queue->copy(s.data.data(), sums.data(), s.bytes(), CopyDirection::device_to_host);
  queue->synchronize();
  EXPECT_TRUE(same_bits(s, expected));
}

TEST_P(Sketch, CountRefusesWhatItCannotDo) {
  const Matrix<double> v = uneven_matrix(64, 2);
  EXPECT_THROW((void)of(SketchKind::count, v, 31), Error);  // fewer buckets than a tile has rows
  EXPECT_THROW((void)of(SketchKind::count, v, 32, 1000), Error);  // within a tile
}

TEST_P(Sketch, ATransformKeepsInnerProductsIfAllOfItsRowsAreTaken) {
  // A Walsh–Hadamard transform of H rows is √H times an orthogonal matrix.
  for (const std::int64_t rows : {1, 2, 3, 100, 128, 1000}) {
    const Matrix<double> v(rows, 3, 0, [](auto i, auto j) { return uniform(4, i, j); });
    const std::int64_t all = sketch_transform_rows(rows);
    for (const SketchKind kind :
         {SketchKind::srht_fp64, SketchKind::srht_fp32, SketchKind::srht_fp16}) {
      const Matrix<double> s = of(kind, v, all);
      const double unit = kind == SketchKind::srht_fp64   ? 0x1p-53
                          : kind == SketchKind::srht_fp32 ? 0x1p-24
                                                          : 0x1p-11;
      for (std::int64_t j = 0; j < 3; ++j) {
        for (std::int64_t k = 0; k < 3; ++k) {
          long double sum = 0;
          long double exact = 0;
          for (std::int64_t i = 0; i < all; ++i) sum += static_cast<long double>(s(i, j)) * s(i, k);
          for (std::int64_t r = 0; r < rows; ++r)
            exact += static_cast<long double>(v(r, j)) * v(r, k);
          EXPECT_NEAR(static_cast<double>(sum / all), static_cast<double>(exact),
                      8 * unit * static_cast<double>(rows))
              << rows;
        }
      }
    }
  }
}

/// Numbers that a float takes for the middle of two neighbours in half precision, which they are
/// not quite: of these the even one, whichever is nearer.
TEST_P(Sketch, NumbersInHalfPrecisionAreRoundedToFloatsFirst) {
  constexpr std::int64_t kCount = 100;
  const Matrix<double> v(1, kCount, 0, [](auto, auto j) {
    return 1 + static_cast<double>(2 * (j / 2) + 1) * 0x1p-11 + (j % 2 == 0 ? 0x1p-40 : -0x1p-40);
  });
  const Matrix<double> s = of(SketchKind::srht_fp16, v, 1);
  for (std::int64_t j = 0; j < kCount; ++j)
    EXPECT_EQ(std::abs(s(0, j)), 1 + static_cast<double>((j / 2 + 1) / 2 * 2) * 0x1p-10) << j;
}

/// What nearly cancels is a subnormal number in half precision, of fewer digits.
TEST_P(Sketch, TransformsInHalfPrecisionRoundWhatIsSubnormal) {
  constexpr std::int64_t kRows = 4096;  // results are divided by 2^6
  constexpr double kRest = (1 + 0x1p-10) * 0x1p-12;
  const std::uint64_t seed =
      sketch_seed(sketch_variant(SketchKind::srht_fp16, 9), SketchStream::sign);
  const Matrix<double> v(kRows, 1, 0, [&](auto i, auto) {
    return i > 2 ? 0.0 : sketch_sign(seed, i) * (i == 2 ? kRest : 1.0);
  });
  const Matrix<double> s = of(SketchKind::srht_fp16, v, kRows);
  std::int64_t small = 0;
  for (std::int64_t i = 0; i < kRows; ++i) {
    if (std::abs(s(i, 0)) > 1) continue;
    EXPECT_EQ(std::abs(s(i, 0)), 0x1p-12);
    ++small;
  }
  EXPECT_EQ(small, kRows / 2);
}

TEST_P(Sketch, TransformsBearAnyMagnitude) {
  for (const double size : {1e-300, 1e300}) {
    const Matrix<double> v(
        200, 2, 0, [&](auto i, auto j) { return uniform(4, i, j) * (j == 0 ? size : 1.0); });
    const Matrix<double> unit(200, 2, 0, [&](auto i, auto j) { return uniform(4, i, j); });
    for (const SketchKind kind : {SketchKind::srht_fp32, SketchKind::srht_fp16}) {
      const Matrix<double> s = of(kind, v, 16);
      const Matrix<double> expected = of(kind, unit, 16);
      for (std::int64_t i = 0; i < 16; ++i)
        EXPECT_NEAR(s(i, 0) / size, expected(i, 0), kind == SketchKind::srht_fp32 ? 1e-5 : 0.1);
    }
  }
}

TEST_P(Sketch, WhatIsNotFiniteComesThrough) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Matrix<double> v(300, 2, 0, [](auto i, auto j) { return uniform(4, i, j); });
    v(211, 1) = bad;
    for (const SketchKind kind : kKinds) {
      const Matrix<double> s = of(kind, v, 32);
      double sum = 0;
      for (std::int64_t i = 0; i < 32; ++i) sum += std::abs(s(i, 1));
      EXPECT_FALSE(std::isfinite(sum)) << static_cast<int>(kind);
      EXPECT_TRUE(std::isfinite(s(0, 0)));
    }
  }
  EXPECT_THROW(
      (void)sketched(*GetParam(), 7, std::vector<Matrix<double>>{uneven_matrix(4, 2)}, 4, {0}),
      Error);
}

TEST(SketchNumbers, AreNearlyNormal) {
  constexpr std::int64_t kCount = 400000;
  double moments[5] = {};
  double product = 0;
  for (std::int64_t r = 0; r < kCount; ++r) {
    const double x = sketch_normal(77, r, 0);
    double power = 1;
    for (double& moment : moments) {
      moment += power / kCount;
      power *= x;
    }
    product += x * sketch_normal(77, r, 1) / kCount;
  }
  EXPECT_NEAR(moments[1], 0, 0.008);
  EXPECT_NEAR(moments[2], 1, 0.012);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 2.9, 0.06);  // of twelve uniform numbers; of a normal one 3
  EXPECT_NEAR(product, 0, 0.008);
}

TEST(SketchNumbers, RowsMeetInABucketAsRarelyAsTheyShould) {
  // Rows 5 and 1000 have places 5 and 8 in tiles that begin with one of 225 buckets each, so they
  // meet with a probability of 222/225², not above 1/225.
  constexpr std::int64_t kBuckets = 256;
  constexpr int kSeeds = 200000;
  int meet = 0;
  int equal_signs = 0;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const auto bucket = [&](std::int64_t row) {
      return sketch_bucket(seed, row / kSketchCountRows, kBuckets) + row % kSketchCountRows;
    };
    meet += bucket(5) == bucket(1000) ? 1 : 0;
    equal_signs += (sketch_signs(seed, 0) >> 5 & 1U) == (sketch_signs(seed, 31) >> 8 & 1U) ? 1 : 0;
  }
  EXPECT_NEAR(meet, kSeeds * 222.0 / (225 * 225), 150);
  EXPECT_NEAR(equal_signs, kSeeds / 2, 1200);
}

TEST(SketchNumbers, ASampleHasNoRowTwiceBeforeAll) {
  for (const std::int64_t rows : {1, 2, 4, 64, 8192}) {
    std::vector<bool> seen(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = sketch_sample(5, 8192 * rows, i, rows);
      ASSERT_TRUE(row >= 0 && row < rows);
      EXPECT_FALSE(seen[static_cast<std::size_t>(row)]) << rows << ' ' << i;
      seen[static_cast<std::size_t>(row)] = true;
    }
    EXPECT_EQ(sketch_sample(5, 8192 * rows, rows, rows), sketch_sample(5, 8192 * rows, 0, rows));
  }
}

}  // namespace
}  // namespace strata::testing
