// Recurrences by columns: worked out by hand, dot products against many digits, each backend with
// the bits of the reference where nothing is added up, and columns that know nothing of each other.

#include "kernels/krylov/paired.hpp"

#include <gtest/gtest.h>

#include "strata/error.hpp"
#include "tests/kernels/block_harness.hpp"
#include "tests/support/nan.hpp"

namespace strata::testing {
namespace {

using test::kNan;

class Paired : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Backends, Paired, ::testing::ValuesIn(all_of_them()), backend_name);

Block numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return make(Element::fp64, rows, cols, [seed](auto i, auto j) {
    return std::ldexp(random_uniform(seed, static_cast<std::uint64_t>(i + 4099 * j)) - 0.5,
                      static_cast<int>((i * 7 + j) % 19) - 9);
  });
}

/// The elements, without the padding.
std::vector<double> values_of(const Block& block) {
  std::vector<double> values;
  for (std::int64_t j = 0; j < block.cols; ++j) {
    for (std::int64_t i = 0; i < block.rows; ++i) values.push_back(block.hi(i, j));
  }
  return values;
}

/// On both sides of what warps, threads and vectors take at a time.
const std::vector<std::int64_t> kHeights{1, 3, 7, 8, 9, 31, 33, 255, 256, 257, 700, 2048};

TEST(PairedByHand, OnSmallIntegers) {
  for (const Backend* backend : all_of_them()) {
    const auto matrix = [](std::vector<double> values) {
      return make(Element::fp64, 2, std::ssize(values) / 2,
                  [values](auto i, auto j) { return values[static_cast<std::size_t>(i + 2 * j)]; });
    };
    const auto row = [](std::vector<double> values) {
      return make(Element::fp64, 1, std::ssize(values),
                  [values](auto, auto j) { return values[static_cast<std::size_t>(j)]; });
    };
    std::vector<Block> blocks{matrix({9, 9, 9, 9}), matrix({2, 4, 6, 9}), row({2, -3})};
    run(*backend, paired_quotient, blocks);
    EXPECT_EQ(values_of(blocks[0]), (std::vector<double>{1, 2, -2, -3}));

    blocks = {matrix({9, 9, 9, 9}), matrix({7, 7, 7, 7}), matrix({1, 2, 3, 4})};
    run(*backend, paired_start, blocks);
    EXPECT_EQ(values_of(blocks[0]), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(values_of(blocks[1]), (std::vector<double>{0, 0, 0, 0}));

    blocks = {matrix({-5, 2, 3, 4}), matrix({1, 2, 3, 4})};
    run(*backend, paired_excess, blocks);
    EXPECT_EQ(values_of(blocks[0]), (std::vector<double>{4, -4, -6, -8}));

    blocks = {matrix({1, 2, 3, 4}), matrix({1, 1, 2, 3}), row({2, -1})};
    run(*backend, paired_subtract, blocks);
    EXPECT_EQ(values_of(blocks[0]), (std::vector<double>{-1, 0, 5, 7}));

    blocks = {matrix({9, 9, 9, 9}), matrix({1, 2, 3, 4}), matrix({5, 6, 7, 8})};
    run(*backend, paired_dots, blocks);
    EXPECT_EQ(values_of(blocks[0]), (std::vector<double>{17, 0, 53, 0}));
    run(*backend, paired_dots, blocks, kPairedWithNext);
    EXPECT_EQ(values_of(blocks[0]), (std::vector<double>{39, 0, 0, 0}));
    run(*backend, paired_dots, blocks, kPairedWithLast);
    EXPECT_EQ(values_of(blocks[0]), (std::vector<double>{0, 0, 23, 0}));

    EXPECT_THROW(run(*backend, paired_dots, blocks, 4), Error);
    EXPECT_THROW(run(*backend, paired_subtract, blocks, 1), Error);
  }
}

TEST_P(Paired, WhatIsNoSumHasTheBitsOfTheReferenceInManyCalls) {
  for (const Operation* operation :
       {&paired_quotient, &paired_start, &paired_excess, &paired_subtract}) {
    std::vector<Block> blocks;
    for (const std::int64_t rows : kHeights) {
      for (const std::int64_t cols : {1, 5, 36}) {
        const bool of_row = operation == &paired_quotient || operation == &paired_subtract;
        for (int k = 0; k < operation->operands; ++k)
          blocks.push_back(numbers(of_row && k == 2 ? 1 : rows, cols, std::uint64_t(k) + 3));
      }
    }
    std::vector<Block> expected = blocks;
    run(reference_backend(), *operation, expected);
    run(*GetParam(), *operation, blocks);
    for (std::size_t b = 0; b < blocks.size(); ++b)
      EXPECT_EQ(blocks[b].bytes, expected[b].bytes) << operation->name << ", operand " << b;
  }
}

TEST_P(Paired, DotProductsHaveTwiceTheDigits) {
  for (const std::int64_t rows : kHeights) {
    // A sum that cancels to about u of its parts.
    Block x = numbers(rows, 3, 5);
    Block y = numbers(rows, 3, 6);
    std::vector<Block> blocks{make(Element::fp64, 2, 3, [](auto, auto) { return kNan; }), x, y};
    for (std::int64_t j = 0; rows > 1 && j < 3; ++j) {
      Many sum = 0;
      for (std::int64_t i = 0; i + 1 < rows; ++i) sum += x.many(i, j) * y.many(i, j);
      blocks[1].as<double>()(rows - 1, j) = 1;
      blocks[2].as<double>()(rows - 1, j) = -static_cast<double>(sum);
    }
    run(*GetParam(), paired_dots, blocks);
    for (std::int64_t j = 0; j < 3; ++j) {
      Many exact = 0;
      Many size = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        const Many product = blocks[1].many(i, j) * blocks[2].many(i, j);
        exact += product;
        size += abs(product);
      }
      const double u = std::ldexp(1.0, -53);
      const double gamma = static_cast<double>(rows + 8) * u;
      const double bound = static_cast<double>(u * abs(exact) + 2 * gamma * gamma * size);
      const double got = blocks[0].hi(0, j) + blocks[0].hi(1, j);
      EXPECT_LE(std::abs(static_cast<double>(Many(got) - exact)), bound)
          << rows << ", column " << j;
    }
  }
}

TEST_P(Paired, DotProductsOfAColumnAreTheSameBitsInEveryBlockAndTask) {
  std::vector<Block> together;
  for (const std::int64_t rows : kHeights) {
    for (int k = 0; k < 3; ++k)
      together.push_back(numbers(k == 0 ? 2 : rows, 5, std::uint64_t(k) + 20));
  }
  const std::vector<Block> before = together;
  run(*GetParam(), paired_dots, together);
  for (std::size_t call = 0; call < kHeights.size(); ++call) {
    const std::int64_t rows = kHeights[call];
    for (const std::int64_t j : {0, 2, 4}) {
      std::vector<Block> alone;
      for (std::size_t k = 0; k < 3; ++k) {
        const Block& of = before[3 * call + k];
        alone.push_back(
            make(Element::fp64, k == 0 ? 2 : rows, 1, [&](auto i, auto) { return of.hi(i, j); }));
      }
      run(*GetParam(), paired_dots, alone);
      for (const int part : {0, 1})
        EXPECT_EQ(alone[0].hi(part, 0), together[3 * call].hi(part, j)) << rows << ", " << j;
    }
  }
}

TEST_P(Paired, ANanStaysInItsColumn) {
  std::vector<Block> blocks{make(Element::fp64, 2, 3, [](auto, auto) { return 0; }),
                            numbers(300, 3, 4), numbers(300, 3, 5)};
  blocks[1].as<double>()(299, 1) = kNan;
  run(*GetParam(), paired_dots, blocks);
  EXPECT_FALSE(std::isnan(blocks[0].hi(0, 0)));
  EXPECT_TRUE(std::isnan(blocks[0].hi(0, 1)));
  EXPECT_FALSE(std::isnan(blocks[0].hi(0, 2)));
}

/// One call of as many operands as there are blocks, the first of which is written; blocks lie one
/// below the other from `row` of the first on.
void run_gathering(const Backend& backend, const Operation& operation, std::vector<Block>& blocks,
                   std::int64_t row, std::int64_t first_of_w) {
  const KernelFunction kernel = backend.kernels().find(operation.name, Elements(2, Element::fp64));
  ASSERT_NE(kernel, nullptr);
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  std::int64_t next = first_of_w;
  for (Block& block : blocks) {
    memory.push_back(device->allocate(std::max<std::int64_t>(std::ssize(block.bytes), 1)));
    queue->copy(memory.back().data(), block.bytes.data(), std::ssize(block.bytes),
                CopyDirection::host_to_device);
    const bool first = views.empty();
    views.push_back({memory.back().data(), block.rows, block.cols, block.ld, first ? row : next});
    if (!first) next += block.rows;
  }
  kernel(*queue, {views, static_cast<int>(views.size())}, {});
  queue->copy(blocks[0].bytes.data(), views[0].data, std::ssize(blocks[0].bytes),
              CopyDirection::device_to_host);
  queue->synchronize();
}

TEST_P(Paired, SumsOfManyPartsAreRoundedOnce) {
  for (const std::int64_t parts : {1, 2, 127, 128, 129, 300}) {
    std::vector<Block> blocks{make(Element::fp64, 1, 3, [](auto, auto) { return kNan; })};
    for (std::int64_t p = 0; p < parts; ++p) {
      blocks.push_back(make(Element::fp64, 2, 3, [&](auto i, auto j) {
        const double value = std::ldexp(uniform(8, p, j), static_cast<int>((p * 11) % 40) - 20);
        return i == 0 ? value : std::ldexp(uniform(9, p, j) * value, -53);
      }));
    }
    for (std::int64_t j = 0; j < 3; ++j) {  // the high parts cancel but for their rounding
      Many sum = 0;
      for (std::int64_t p = 1; p < parts; ++p)
        sum += blocks[static_cast<std::size_t>(p)].many(0, j);
      if (parts > 1) blocks.back().as<double>()(0, j) = -static_cast<double>(sum);
    }
    run_gathering(*GetParam(), paired_sum, blocks, 0, 0);
    for (std::int64_t j = 0; j < 3; ++j) {
      Many exact = 0;
      Many size = 0;
      for (std::size_t p = 1; p < blocks.size(); ++p) {
        exact += blocks[p].many(0, j) + blocks[p].many(1, j);
        size += abs(blocks[p].many(0, j));
      }
      const double u = std::ldexp(1.0, -53);
      const double gamma = static_cast<double>(parts + 2) * u;
      const double bound = static_cast<double>(u * abs(exact) + 2 * gamma * gamma * size);
      EXPECT_LE(std::abs(static_cast<double>(Many(blocks[0].hi(0, j)) - exact)), bound)
          << parts << " parts, column " << j;
    }
  }
}

TEST_P(Paired, GatheredRowsAreThoseOfTheirPlaces) {
  for (const std::int64_t tile : {5, 16, 300}) {
    for (const std::int64_t height : {16, 700}) {
      for (const std::int64_t row : {0, 32, 97}) {
        const std::int64_t first = row / tile * tile;
        std::vector<Block> blocks{make(Element::fp64, height, 3, [](auto, auto) { return kNan; })};
        for (std::int64_t at = first; at < row + height; at += tile)
          blocks.push_back(make(Element::fp64, tile, 3, [&](auto i, auto j) {
            return static_cast<double>(1000 * (at + i) + j);
          }));
        const std::vector<std::byte> padding = blocks[0].bytes;
        run_gathering(*GetParam(), paired_gather, blocks, row, first);
        for (std::int64_t j = 0; j < 3; ++j) {
          for (std::int64_t i = 0; i < height; ++i)
            ASSERT_EQ(blocks[0].hi(i, j), static_cast<double>(1000 * (row + i) + j));
          for (std::int64_t i = height; i < blocks[0].ld; ++i) {
            const auto at = static_cast<std::size_t>((i + j * blocks[0].ld) * 8);
            EXPECT_EQ(blocks[0].bytes[at], padding[at]) << "behind the rows";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::testing
