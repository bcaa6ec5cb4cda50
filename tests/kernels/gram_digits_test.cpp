// Sums of products by digits (kDigitSums): every backend with the bits of the reference, sums that
// have to be exact, errors against many digits, and what is not finite.

#include <cmath>
#include <limits>

#include "kernels/tall/gram.hpp"
#include "strata/error.hpp"
#include "tests/kernels/block_harness.hpp"
#include "tests/support/campaign.hpp"

namespace strata::testing {
namespace {

/// Columns that are hard in some way, each eighth of a kind.
double hard(std::int64_t i, std::int64_t j) {
  const double x = uniform(21, i, j);
  switch (j % 8) {
    case 0: return x;                                                // alike
    case 1: return std::ldexp(x, static_cast<int>(i / 37 % 90));     // larger and larger
    case 2: return std::ldexp(x, -static_cast<int>(i % 70));         // spread
    case 3: return i % 3 == 0 ? x : 0;                               // mostly zeros
    case 4: return std::ldexp(x, -1000 - static_cast<int>(i % 60));  // down to subnormal numbers
    case 5: return std::ldexp(x, 480);
    case 6: return i % 2 == 0 ? 1 : -(1 + 0x1p-52);          // cancelling
    default: return i % 100 == 99 ? x : std::ldexp(x, -50);  // few large ones
  }
}

/// Around pieces, units, groups of eight columns, and panels.
constexpr Extents kDigitExtents[] = {{1, 1},     {31, 7},    {32, 8},    {33, 9},    {1023, 17},
                                     {1024, 25}, {1025, 33}, {1500, 41}, {3000, 20}, {300, 49},
                                     {300, 57},  {260, 64},  {130, 65},  {97, 73},   {65, 88},
                                     {64, 97},   {40, 129},  {100, 161}};

std::vector<Block> operands(const Elements& e, const Extents& x) {
  return {Block(e[0], x.cols, x.cols), make(e[1], x.rows, x.cols, hard),
          make(e[2], x.cols, 1, power)};
}
const Elements kWide = kGramElements[1];

class DigitSumsCompared : public ::testing::TestWithParam<const Backend*> {
 protected:
  template <class Make>
  static void have_the_bits_of_the_reference(const Operation& operation, Make make_operands) {
    test::Thinned thinned(2);
    for (const Extents& x : kDigitExtents) {
      if (thinned.skips()) continue;
      std::vector<Block> blocks = make_operands(x);
      std::vector<Block> expected = blocks;
      run(reference_backend(), operation, expected, kDigitSums);
      run(*GetParam(), operation, blocks, kDigitSums);
      for (std::size_t k = 0; k < blocks.size(); ++k)
        EXPECT_TRUE(test::same_bits(blocks[k].bytes, expected[k].bytes))
            << operation.name << " of " << x.rows << " by " << x.cols << ", operand " << k;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Compared, DigitSumsCompared, ::testing::ValuesIn(others()), backend_name);

TEST_P(DigitSumsCompared, OfV) {
  ASSERT_EQ(kWide[0], Element::dd);
  have_the_bits_of_the_reference(gram, [](const Extents& x) { return operands(kWide, x); });
}
TEST_P(DigitSumsCompared, OfColumnsThatAreNotAligned) {
  have_the_bits_of_the_reference(gram, [](const Extents& x) {
    std::vector<Block> blocks = operands(kWide, x);
    Block odd(Element::fp64, x.rows + 4 + x.rows % 2, x.cols);  // with the padding an odd number
    for (std::int64_t j = 0; j < x.cols; ++j)
      for (std::int64_t i = 0; i < x.rows; ++i) odd.as<double>()(i, j) = hard(i, j);
    odd.rows = x.rows;
    EXPECT_EQ(odd.ld % 2, 1);
    blocks[1] = odd;
    return blocks;
  });
}
TEST_P(DigitSumsCompared, OfWhatIsSolved) {
  for (const Element factor : {Element::fp64, Element::dd}) {
    const auto of = [factor](const Extents& x) {
      return std::vector<Block>{Block(Element::dd, x.cols, x.cols),
                                make(Element::fp64, x.rows, x.cols, uneven),
                                triangle(factor, x.cols), make(Element::fp64, x.cols, 1, power)};
    };
    const bool wide = factor == Element::dd;  // with a sanitizer each operation has one of the two
    if (!test::kSanitized || !wide) have_the_bits_of_the_reference(apply_gram, of);
    if (!test::kSanitized || wide) have_the_bits_of_the_reference(solve_right_gram, of);
  }
}

class DigitSums : public ::testing::TestWithParam<const Backend*> {
 protected:
  /// B, of columns that are a function of row and column.
  template <class F>
  static Block sums(const Extents& x, F value) {
    std::vector<Block> blocks{Block(kWide[0], x.cols, x.cols),
                              make(kWide[1], x.rows, x.cols, value),
                              make(kWide[2], x.cols, 1, [](auto, auto) { return 1.0; })};
    run(*GetParam(), gram, blocks, kDigitSums);
    return blocks[0];
  }
  template <class F>
  static Many exact(std::int64_t rows, std::int64_t i, std::int64_t j, F value) {
    Many sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) sum += Many(value(r, i)) * Many(value(r, j));
    return sum;
  }
};
INSTANTIATE_TEST_SUITE_P(Every, DigitSums, ::testing::ValuesIn(all_of_them()), backend_name);

/// Sums of products of 26 bits are less than 2^62: nothing is rounded, whatever the order.
TEST_P(DigitSums, AreExactOnIntegers) {
  const auto integer = [](auto i, auto j) { return std::rint(uniform(22, i, j) * 0x1p26); };
  for (const Extents& x : {Extents{2100, 9}, Extents{300, 25}, Extents{97, 73}}) {
    const Block b = sums(x, integer);
    for (std::int64_t j = 0; j < x.cols; ++j)
      for (std::int64_t i = 0; i < x.cols; ++i)
        ASSERT_EQ(b.many(i, j), exact(x.rows, i, j, integer)) << i << ", " << j;
  }
}

/// The sum over one piece is rounded once, to the digits of a double-double, wherever no digits of
/// a product are left out, as for numbers from 1 to 2, which have seven digits.
TEST_P(DigitSums, OfNumbersThatAreAlikeAreRoundedOnce) {
  const auto alike = [](auto i, auto j) { return 1 + (1 + uniform(23, i, j)) / 2; };
  const Extents x{1000, 9};
  const Block b = sums(x, alike);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    for (std::int64_t i = 0; i < x.cols; ++i) {
      const Many want = exact(x.rows, i, j, alike);
      EXPECT_LE(abs(b.many(i, j) - want), want * Many(0x1p-105)) << i << ", " << j;
    }
  }
}

TEST_P(DigitSums, KeepTheirErrorBound) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const auto value = [](auto i, auto j) { return j == 4 ? hard(i, 0) : hard(i, j); };
  double worst = 0;
  for (const Extents& x : {Extents{1000, 8}, Extents{5000, 8}}) {
    const Block b = sums(x, value);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.cols; ++i) {
        const Many error = abs(b.many(i, j) - exact(x.rows, i, j, value));
        const Many size = sqrt(exact(x.rows, i, i, value) * exact(x.rows, j, j, value));
        worst = std::max(worst, static_cast<double>(error / size));
      }
    }
  }
  EXPECT_LE(worst, 64 * 0x1p-106);
  EXPECT_GT(worst, 0);
}

TEST_P(DigitSums, OfWhatIsNotFiniteAreNotNumbers) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    for (const std::int64_t row : {0, 40, 1300}) {
      const Extents x{1500, 21};
      const auto value = [&](auto i, auto j) { return i == row && j == 13 ? bad : uneven(i, j); };
      const Block b = sums(x, value);
      const Block good = sums(x, uneven);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        for (std::int64_t i = 0; i < x.cols; ++i) {
          if (i == 13 || j == 13) {
            EXPECT_TRUE(std::isnan(b.hi(i, j))) << i << ", " << j;
          } else {
            EXPECT_EQ(b.many(i, j), good.many(i, j)) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(DigitSumsOfOthers, AreRefused) {
  std::vector<Block> blocks = operands(kWide, {40, 3});
  EXPECT_THROW(run(reference_backend(), gram, blocks, kDigitSums + 1), Error);
  for (const Backend* backend : all_of_them()) {
    std::vector<Block> solved{Block(Element::dd, 3, 3), make(Element::fp64, 40, 3, uneven),
                              triangle(Element::fp64, 3), make(Element::fp64, 3, 1, power)};
    EXPECT_THROW(run(*backend, apply_gram, solved, kDot2), Error);
    EXPECT_THROW(run(*backend, solve_right_gram, solved, kDigitSums + 1), Error);
  }
}

}  // namespace
}  // namespace strata::testing
