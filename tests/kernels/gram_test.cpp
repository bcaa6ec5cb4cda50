// gram and its relatives: sums worked out by hand, sums in many digits, and every backend with the
// bits of the reference, for all elements.

#include "kernels/tall/gram.hpp"

#include <cmath>
#include <limits>

#include "kernels/tall/gram_shape.hpp"
#include "strata/error.hpp"
#include "tests/kernels/block_harness.hpp"
#include "tests/support/campaign.hpp"

namespace strata::testing {
namespace {

constexpr Extents kGramExtents[] = {{1, 1},
                                    {3, 2},
                                    {4, 3},
                                    {127, 4},
                                    {128, 5},
                                    {129, 6},
                                    {255, 7},
                                    {256, 8},
                                    {700, 9},
                                    {130, 21},
                                    {300, 33},
                                    {64, 65},
                                    {1024, 3},
                                    {1025, 10},
                                    {2500, 20},
                                    {3072, 5},
                                    {7300, 2},
                                    {1700, 30},
                                    {1100, 40},
                                    {200, 64},
                                    {150, 101},
                                    {130, 129},
                                    // Columns that begin where pairs of rows can be copied at once.
                                    {145, 112},
                                    {161, 200}};

std::vector<Block> gram_operands(const Elements& e, const Extents& x) {
  return {Block(e[0], x.cols, x.cols), make(e[1], x.rows, x.cols, uneven),
          make(e[2], x.cols, 1, power)};
}
std::vector<Block> solve_gram_operands(const Elements& e, const Extents& x) {
  return {Block(e[0], x.cols, x.cols), make(e[1], x.rows, x.cols, uneven), triangle(e[2], x.cols),
          make(e[3], x.cols, 1, power)};
}
std::vector<Block> solve_operands(const Elements& e, const Extents& x) {
  return {make(e[0], x.rows, x.cols, uneven), triangle(e[1], x.cols), make(e[2], x.cols, 1, power)};
}
/// A triangle in which, by eights of columns in fp64 (eight_solve.hpp), every third has an inverse
/// that is too large, and every fifth an element of the diagonal that is too small.
Block steep_triangle(Element element, std::int64_t n) {
  return make(element, n, n, [](auto i, auto j) {
    const bool large = i / 8 % 3 == 1;
    const double scale = i / 8 % 5 == 2 && i % 8 == 3 ? 0x1p-310 : 1;
    if (i > j) return std::numeric_limits<double>::quiet_NaN();
    if (i == j) return scale * (1.5 + uniform(6, i, j));
    return large && i / 8 == j / 8 ? -20 * scale : scale * uniform(7, i, j) / 4;
  });
}
std::vector<Block> inner_operands(const Elements& e, const Extents& x) {
  const std::int64_t other = 1 + 5 * x.cols % 23;
  return {Block(e[0], x.cols, other), make(e[1], x.rows, x.cols, uneven),
          make(e[2], x.rows, other, [](auto i, auto j) { return uneven(i + 1, j + 40); })};
}
std::vector<Block> sum_operands(const Elements& e, const Extents& x) {
  return {Block(e[0], x.rows, x.cols), make(e[1], x.rows, x.cols, uneven),
          make(e[2], x.rows, x.cols, [](auto i, auto j) { return -uneven(i, j + 1); })};
}
std::vector<Block> max_operands(const Elements& e, const Extents& x) {
  return {Block(e[0], x.cols, 1), make(e[1], x.rows, x.cols, uneven)};
}

class Gram : public ::testing::TestWithParam<const Backend*> {
 protected:
  template <class Lists, class Make>
  void has_the_bits_of_the_reference(const Operation& operation, const Lists& lists, Make operands,
                                     std::uint32_t variant = 0) {
    for (const Elements& elements : lists) {
      std::vector<Block> together;
      for (const Extents& x : kGramExtents) {
        for (Block& block : operands(elements, x)) together.push_back(std::move(block));
      }
      std::vector<Block> expected = together;
      run(reference_backend(), operation, expected, variant);
      run(*GetParam(), operation, together, variant);
      for (std::size_t i = 0; i < together.size(); ++i)
        EXPECT_TRUE(test::same_bits(together[i].bytes, expected[i].bytes))
            << operation.name << " in " << to_string(elements) << ": operand " << i;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Compared, Gram, ::testing::ValuesIn(others()), backend_name);

TEST_P(Gram, HasTheBitsOfTheReference) {
  has_the_bits_of_the_reference(gram, kGramElements, gram_operands);
}
TEST_P(Gram, InEveryVariantHasTheBitsOfTheReference) {
  const Elements dd[] = {kGramElements[1]};
  for (const std::uint32_t variant : {kCray, kIeee, kDot2})
    has_the_bits_of_the_reference(gram, dd, gram_operands, variant);
}
/// Shapes are those of thread blocks of a GPU; CPUs have none.
TEST_P(Gram, InAnyShapeHasTheBitsOfTheReference) {
  const bool gpu = GetParam()->kind() == DeviceKind::gpu;
  for (const Extents& x : {Extents{1300, 1}, {300, 9}, {2500, 20}, {400, 33}, {200, 65}}) {
    std::vector<Block> expected = gram_operands(kGramElements[1], x);
    run(reference_backend(), gram, expected);
    for (int edge = 1; edge <= 5; ++edge) {
      for (const int units : {1, 2, 3, 5, 16, 17}) {
        std::vector<Block> blocks = gram_operands(kGramElements[1], x);
        const std::uint32_t variant = shaped_extraction({edge, units});
        if (!gpu || gram_shape::shape_of(x.cols, edge, units).edge == 0) {
          EXPECT_THROW(run(*GetParam(), gram, blocks, variant), Error);
          continue;
        }
        run(*GetParam(), gram, blocks, variant);
        EXPECT_TRUE(test::same_bits(blocks[0].bytes, expected[0].bytes))
            << x.cols << " columns, " << edge << ", " << units;
      }
    }
  }
}
TEST(GramShape, ThatIsChosenFitsAndCountsAsFastest) {
  for (std::int64_t n = 1; n <= 512; ++n) {
    const gram_shape::Choice chosen = gram_shape::choose(n);
    ASSERT_GT(chosen.edge, 0) << n;
    EXPECT_LE(chosen.stage.threads, gram_shape::kThreadsMax);
    for (int edge = 2; edge <= 4; ++edge)
      for (int units = 1; units <= 16; ++units)
        EXPECT_LE(chosen.cost, gram_shape::shape_of(n, edge, units).cost) << n;
  }
}
TEST_P(Gram, OfWhatIsSolvedHasTheBitsOfTheReference) {
  has_the_bits_of_the_reference(apply_gram, kSolveGramElements, solve_gram_operands);
  has_the_bits_of_the_reference(solve_right_gram, kSolveGramElements, solve_gram_operands);
}
TEST_P(Gram, SolveRightHasTheBitsOfTheReference) {
  has_the_bits_of_the_reference(solve_right, kSolveElements, solve_operands);
}
TEST_P(Gram, SolvesWithSteepTrianglesHaveTheBitsOfTheReference) {
  const Elements doubles[] = {kSolveElements[0]};
  ASSERT_EQ(to_string(doubles[0]), to_string(Elements(3, Element::fp64)));
  has_the_bits_of_the_reference(solve_right, doubles, [](const Elements& e, const Extents& x) {
    return std::vector<Block>{
        // So small that nothing overflows: NaN have no sign that a test could compare.
        make(e[0], x.rows, x.cols, [](auto i, auto j) { return std::ldexp(uneven(i, j), -400); }),
        steep_triangle(e[1], x.cols), make(e[2], x.cols, 1, power)};
  });
}
/// Sums of squares that neither overflow nor vanish, of as many columns as GPUs sum up with a
/// solve.
TEST_P(Gram, SumsOfWhatIsSolvedWithSteepTrianglesHaveTheBitsOfTheReference) {
  const Elements doubles[] = {kSolveGramElements[0]};
  ASSERT_EQ(to_string(doubles[0]), to_string(Elements(4, Element::fp64)));
  has_the_bits_of_the_reference(apply_gram, doubles, [](const Elements& e, const Extents& x) {
    const int exponent = x.cols <= 64 ? -100 : -400;
    return std::vector<Block>{
        Block(e[0], x.cols, x.cols),
        make(e[1], x.rows, x.cols,
             [=](auto i, auto j) { return std::ldexp(uneven(i, j), exponent); }),
        steep_triangle(e[2], x.cols), make(e[3], x.cols, 1, power)};
  });
}
TEST_P(Gram, SolvingTwiceHasTheBitsOfTheReference) {
  const auto other_power = [](std::int64_t j, std::int64_t) {
    return std::ldexp(1.0, static_cast<int>(j % 3) - 1);
  };
  for (const bool first : {false, true}) {
    for (const bool second : {false, true}) {
      has_the_bits_of_the_reference(
          solve_right_twice, kSolveTwiceElements, [&](const Elements& e, const Extents& x) {
            const int exponent = first || second ? -700 : 0;
            return std::vector<Block>{
                make(e[0], x.rows, x.cols,
                     [=](auto i, auto j) { return std::ldexp(uneven(i, j), exponent); }),
                first ? steep_triangle(e[1], x.cols) : triangle(e[1], x.cols),
                make(e[2], x.cols, 1, power),
                second ? steep_triangle(e[3], x.cols) : triangle(e[3], x.cols),
                make(e[4], x.cols, 1, other_power)};
          });
    }
  }
}
/// Dividends and divisors of all sizes and of awkward significands: quotients are rounded correctly
/// whether or not the backend divides.
TEST_P(Gram, QuotientsHaveTheBitsOfTheReference) {
  const double significands[] = {1, 1 + 0x1p-52, 2 - 0x1p-52, 1.5, 4.0 / 3, 5.0 / 3, 1.1};
  const auto divisor = [&](std::int64_t j) {
    const int exponents[] = {0, -1, 3, -398, 399, 400, -401, 820, -1022, 1020};
    return std::ldexp(significands[j % 7], exponents[j % 10]) * (j % 3 == 0 ? -1 : 1);
  };
  const auto dividend = [&](std::int64_t i, std::int64_t j) {
    const double significand = i % 5 == 0 ? significands[(i / 5) % 7] : 1 + uniform(8, i, j) / 2;
    if (i % 61 == 17) return i % 2 == 0 ? 0.0 : -0.0;
    const bool all_sizes = (i / 128) % 3 == 1;  // rows of ordinary numbers before and after
    return std::ldexp(significand, static_cast<int>(all_sizes ? i * 37 % 2090 - 1070 : i % 31));
  };
  // A column at a time: beside a quotient that overflows, others would be NaN, whose sign is open.
  for (const Elements& elements : kSolveElements) {
    if (elements[0] != Element::fp64) continue;
    for (std::int64_t j = 0; j < 70; ++j) {
      std::vector<Block> found{
          make(elements[0], 2600, 1, [&](auto i, auto) { return dividend(i, j); }),
          make(elements[1], 1, 1, [&](auto, auto) { return divisor(j); }),
          make(elements[2], 1, 1, [](auto, auto) { return 1.0; })};
      std::vector<Block> expected = found;
      run(reference_backend(), solve_right, expected);
      run(*GetParam(), solve_right, found);
      EXPECT_TRUE(test::same_bits(found[0].bytes, expected[0].bytes))
          << to_string(elements) << " by " << divisor(j);
    }
  }
}
TEST_P(Gram, InnerHasTheBitsOfTheReference) {
  has_the_bits_of_the_reference(inner, kInnerElements, inner_operands);
}
TEST_P(Gram, InnerInEveryVariantHasTheBitsOfTheReference) {
  std::vector<Elements> dd;
  for (const Elements& elements : kInnerElements)
    if (elements[0] == Element::dd) dd.push_back(elements);
  ASSERT_FALSE(dd.empty());
  for (const std::uint32_t variant : {kCray, kIeee, kDot2})
    has_the_bits_of_the_reference(inner, dd, inner_operands, variant);
}
/// A Gram matrix is the inner product of a block with itself, by each of the additions.
TEST_P(Gram, InnerOfABlockWithItselfIsItsGramMatrixInEveryVariant) {
  for (const std::uint32_t variant : {kExtraction, kCray, kIeee, kDot2}) {
    std::vector<Block> of_gram{Block(Element::dd, 9, 9), make(Element::fp64, 1700, 9, uneven),
                               make(Element::fp64, 9, 1, [](auto, auto) { return 1.0; })};
    std::vector<Block> of_inner{Block(Element::dd, 9, 9), of_gram[1], of_gram[1]};
    run(*GetParam(), gram, of_gram, variant);
    run(*GetParam(), inner, of_inner, variant);
    EXPECT_TRUE(test::same_bits(of_gram[0].bytes, of_inner[0].bytes)) << variant;
  }
}
TEST_P(Gram, SumsAndMaximaHaveTheBitsOfTheReference) {
  has_the_bits_of_the_reference(gram_sum, kGramSumElements, sum_operands);
  has_the_bits_of_the_reference(column_max, kColumnMaxElements, max_operands);
}

TEST_P(Gram, ColumnDotsAndUpdatesHaveTheBitsOfTheReference) {
  const auto dots = [](const Elements& e, const Extents& x) {
    return std::vector<Block>{Block(e[0], x.cols, 1), make(e[1], x.rows, x.cols, uneven)};
  };
  const auto update = [](const Elements& e, const Extents& x) {
    return std::vector<Block>{
        make(e[0], x.rows, x.cols, uneven),
        make(e[1], x.cols, 1, [](auto i, auto) { return 1.5 + uneven(i, 3); })};
  };
  const auto all = [&](const Extents& x, std::uint32_t variant) {
    const auto at = [&x](const auto& operands) {
      return [&x, &operands](const Elements& e, const Extents&) { return operands(e, x); };
    };
    if ((variant & kNormalize) == 0)
      has_the_bits_of_the_reference(column_dots, kColumnElements, at(dots), variant);
    has_the_bits_of_the_reference(column_update, kColumnElements, at(update), variant);
  };
  all({700, 9}, column_variant(5, 0, 5));
  all({129, 6}, column_variant(3, 2, 1));
  all({129, 6}, column_variant(0, 0, 0));
  all({255, 7}, column_variant(6, 6, 1) | kNormalize);
}

class GramAlone : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Every, GramAlone, ::testing::ValuesIn(all_of_them()), backend_name);

TEST_P(GramAlone, IsExactOnIntegersAndLeavesWhatIsBeyond) {
  for (const Elements& elements : kGramElements) {
    for (const Extents& x : kGramExtents) {
      const auto integer = [](auto i, auto j) {
        return static_cast<double>((i * 5 + j * 3) % 17 - 8);
      };
      std::vector<Block> blocks{Block(elements[0], x.cols, x.cols),
                                make(elements[1], x.rows, x.cols, integer),
                                make(elements[2], x.cols, 1, power)};
      const Block before = blocks[0];
      run(*GetParam(), gram, blocks);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        for (std::int64_t i = 0; i < x.cols; ++i) {
          double sum = 0;
          for (std::int64_t r = 0; r < x.rows; ++r) sum += integer(r, i) * integer(r, j);
          EXPECT_EQ(blocks[0].many(i, j), Many(sum * power(i, 0) * power(j, 0)));
        }
        const std::size_t size = static_cast<std::size_t>(bytes_of(elements[0]));
        for (std::int64_t i = x.cols; i < x.cols + 3; ++i) {
          const auto at = static_cast<std::size_t>(i + j * before.ld) * size;
          EXPECT_TRUE(std::equal(before.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                 before.bytes.begin() + static_cast<std::ptrdiff_t>(at + size),
                                 blocks[0].bytes.begin() + static_cast<std::ptrdiff_t>(at)));
        }
      }
    }
  }
}

/// The worst of |B_ij − exact| / (‖v_i‖·‖v_j‖).
double worst_error(const Backend& backend, const Elements& e, std::uint32_t variant,
                   std::int64_t rows) {
  constexpr std::int64_t kColumns = 6;
  const auto value = [](auto i, auto j) {  // cancelling, uneven, of one sign, steep, tiny
    if (j == 0) return i % 2 == 0 ? uniform(8, i / 2, 0) : -uniform(8, i / 2, 0) * (1 + 0x1p-40);
    if (j == 1) return uneven(i, j);
    if (j == 2) return 1 + uniform(9, i, 0);
    if (j == 3) return std::ldexp(uniform(10, i, 0), -static_cast<int>(i % 60));
    return std::ldexp(uniform(11, i, j), j == 4 ? -40 : 0);
  };
  std::vector<Block> blocks{Block(e[0], kColumns, kColumns), make(e[1], rows, kColumns, value),
                            make(e[2], kColumns, 1, [](auto, auto) { return 1.0; })};
  run(backend, gram, blocks, variant);
  std::vector<Many> exact;
  double worst = 0;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      Many sum = 0;
      for (std::int64_t r = 0; r < rows; ++r)
        sum += Many(blocks[1].hi(r, i)) * Many(blocks[1].hi(r, j));
      exact.push_back(sum);
    }
  }
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return exact[static_cast<std::size_t>(i * kColumns + j)];
  };
  for (std::int64_t i = 0; i < kColumns; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j)
      worst = std::max(worst, static_cast<double>(abs(blocks[0].many(i, j) - at(i, j)) /
                                                  sqrt(at(i, i) * at(j, j))));
  }
  return worst;
}

TEST_P(GramAlone, KeepsItsErrorBounds) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  constexpr std::int64_t kRows = 5000;
  for (const std::uint32_t variant : {kExtraction, kCray, kIeee, kDot2}) {
    const double error = worst_error(*GetParam(), kGramElements[1], variant, kRows);
    // With these columns, some of which spread over 60 octaves, 93 was seen, 53 with kDot2.
    const double units = variant == kExtraction ? 128 : variant == kDot2 ? 64 : 32;
    EXPECT_LE(error, units * 0x1p-106) << variant;
    EXPECT_GT(error, 0) << variant;
  }
  EXPECT_LE(worst_error(*GetParam(), kGramElements[0], 0, kRows), 60 * 0x1p-53);
  EXPECT_LE(worst_error(*GetParam(), kGramElements[2], 0, kRows), 60 * 0x1p-53);
  EXPECT_LE(worst_error(*GetParam(), kGramElements[3], 0, kRows), 60 * 0x1p-24);
}

TEST_P(GramAlone, SolvesAsInManyDigits) {
  for (const Elements& e : kSolveElements) {
    constexpr std::int64_t kRows = 133;
    constexpr std::int64_t kColumns = 9;
    std::vector<Block> blocks = solve_operands(e, {kRows, kColumns});
    const std::vector<Block> before = blocks;
    run(*GetParam(), solve_right, blocks);
    const double unit = e[0] == Element::fp32 ? 0x1p-24 : 0x1p-53;
    const bool rounded_last = e[0] != e[1];
    for (std::int64_t r = 0; r < kRows; ++r) {
      std::vector<Many> q;
      Many size = 0;
      for (std::int64_t j = 0; j < kColumns; ++j) {
        Many x = before[0].many(r, j) * before[2].many(j, 0);
        for (std::int64_t i = 0; i < j; ++i)
          x -= q[static_cast<std::size_t>(i)] * before[1].many(i, j);
        q.push_back(x / before[1].many(j, j));
        size = std::max<Many>(size, abs(q.back()));
        const Many error = abs(blocks[0].many(r, j) - q.back());
        // In more digits only the last rounding is seen.
        EXPECT_LE(error, rounded_last ? abs(q.back()) * unit * 1.001 : size * unit * 200);
      }
    }
  }
}

/// Row by row v − q·R is as small as rounding makes it in substitution (Higham, Accuracy and
/// Stability of Numerical Algorithms, 8.1), however large R⁻¹ is.
TEST_P(GramAlone, SolvesLeaveResidualsOfRounding) {
  const Elements e(3, Element::fp64);
  for (const std::int64_t cols : {5, 8, 17, 48, 129}) {
    for (const double off : {0.1, -0.9, 1.0, -3.0, -20.0}) {
      constexpr std::int64_t kRows = 20;
      const auto element = [&](auto i, auto j) {
        if (i > j) return std::numeric_limits<double>::quiet_NaN();
        const double scale = std::ldexp(1.0, static_cast<int>(-3 * (i % 40)));
        if (i == j) return scale * (1 + uniform(6, i, j) / 4);
        // Columns beyond the eight are small, so that quotients do not overflow.
        return scale * (i / 8 == j / 8 ? off * (1 + uniform(7, i, j) / 8) : uniform(7, i, j) / 64);
      };
      std::vector<Block> blocks{
          make(e[0], kRows, cols, [](auto i, auto j) { return uniform(5, i, j); }),
          make(e[1], cols, cols, element), make(e[2], cols, 1, power)};
      const std::vector<Block> before = blocks;
      run(*GetParam(), solve_right, blocks);
      double worst = 0;
      for (std::int64_t r = 0; r < kRows; r += test::kSanitized ? 7 : 1) {
        for (std::int64_t j = 0; j < cols; ++j) {
          const Many x = before[0].many(r, j) * before[2].many(j, 0);
          Many residual = x;
          Many size = abs(x);
          for (std::int64_t i = 0; i <= j; ++i) {
            const Many product = blocks[0].many(r, i) * before[1].many(i, j);
            residual -= product;
            size += abs(product);
          }
          worst = std::max(worst, static_cast<double>(abs(residual) / size));
        }
      }
      EXPECT_LE(worst, 8 * 0x1p-53) << cols << ' ' << off;
    }
  }
}

TEST_P(GramAlone, OfWhatIsSolvedIsThatOfWhatIsStored) {
  for (const Elements& e : kSolveGramElements) {
    const Extents x{333, 11};
    std::vector<Block> fused = solve_gram_operands(e, x);
    std::vector<Block> unstored = fused;
    run(*GetParam(), solve_right_gram, fused);
    run(*GetParam(), apply_gram, unstored);
    EXPECT_TRUE(test::same_bits(fused[0].bytes, unstored[0].bytes)) << to_string(e);
    EXPECT_TRUE(test::same_bits(unstored[1].bytes, solve_gram_operands(e, x)[1].bytes));
    std::vector<Block> apart = solve_operands({e[1], e[2], e[3]}, x);
    run(*GetParam(), solve_right, apart);
    EXPECT_TRUE(test::same_bits(apart[0].bytes, fused[1].bytes)) << to_string(e);
    std::vector<Block> sums{Block(e[0], 11, 11), fused[1],
                            make(Element::fp64, 11, 1, [](auto, auto) { return 1.0; })};
    run(*GetParam(), gram, sums);
    EXPECT_TRUE(test::same_bits(sums[0].bytes, fused[0].bytes)) << to_string(e);
  }
}

/// Rows enough that each thread block of a GPU goes from one unit to the next, of every number of
/// eights of columns that its kernel of both has.
TEST_P(GramAlone, OfWhatIsSolvedInManyUnitsIsThatOfWhatIsStored) {
  for (const std::int64_t cols : {5, 12, 20, 30, 37, 44, 52, 61}) {
    const std::int64_t rows = GetParam()->on_host() ? 2'500 : (cols <= 16 ? 700'000 : 300'000);
    const Elements e(4, Element::fp64);
    std::vector<Block> unstored = solve_gram_operands(e, {rows, cols});
    std::vector<Block> apart{unstored[1], unstored[2], unstored[3]};
    run(*GetParam(), apply_gram, unstored);
    run(*GetParam(), solve_right, apart);
    std::vector<Block> sums{Block(e[0], cols, cols), apart[0],
                            make(Element::fp64, cols, 1, [](auto, auto) { return 1.0; })};
    run(*GetParam(), gram, sums);
    EXPECT_TRUE(test::same_bits(sums[0].bytes, unstored[0].bytes)) << cols;
  }
}

TEST_P(GramAlone, SolvingTwiceIsTwoSolves) {
  for (const Extents& x : kGramExtents) {
    const Elements e(3, Element::fp64);
    std::vector<Block> apart = solve_operands(e, x);
    std::vector<Block> once = apart;
    const Block second = make(Element::fp64, x.cols, x.cols, [](auto i, auto j) {
      if (i > j) return std::numeric_limits<double>::quiet_NaN();
      return i == j ? 2 + uniform(8, i, j) : uniform(9, i, j) / 3;
    });
    const Block scales = make(Element::fp64, x.cols, 1, [](auto j, auto) { return j % 2 + 1.0; });
    once.insert(once.end(), {second, scales});
    run(*GetParam(), solve_right_twice, once);
    run(*GetParam(), solve_right, apart);
    std::vector<Block> again{apart[0], second, scales};
    run(*GetParam(), solve_right, again);
    EXPECT_TRUE(test::same_bits(once[0].bytes, again[0].bytes)) << x.rows << " x " << x.cols;
  }
}

TEST_P(GramAlone, AScaleOfZeroTakesAColumnAway) {
  const Elements e{Element::fp64, Element::dd, Element::fp64};
  std::vector<Block> blocks = solve_operands(e, {200, 3});
  blocks[1].as<DoubleDouble>()(0, 1) = DoubleDouble(0.0);
  blocks[2].as<double>()(1, 0) = 0;
  run(*GetParam(), solve_right, blocks);
  for (std::int64_t r = 0; r < 200; ++r) EXPECT_EQ(blocks[0].hi(r, 1), 0);
}

TEST_P(GramAlone, WhatIsNotFiniteStaysInItsColumns) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e200}) {
    std::vector<Block> blocks = gram_operands(kGramElements[1], {300, 4});
    blocks[1].as<double>()(270, 2) = bad;
    run(*GetParam(), gram, blocks);
    for (std::int64_t j = 0; j < 4; ++j) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const bool touched = bad == 1e200 ? i == 2 && j == 2 : i == 2 || j == 2;
        EXPECT_EQ(std::isfinite(blocks[0].hi(i, j)), !touched) << i << ' ' << j << ' ' << bad;
      }
    }
    std::vector<Block> maxima = max_operands(kColumnMaxElements[0], {300, 4});
    maxima[1].as<double>()(270, 2) = bad;
    run(*GetParam(), column_max, maxima);
    EXPECT_EQ(std::isnan(maxima[0].hi(2, 0)), std::isnan(bad));
    if (!std::isnan(bad)) {
      EXPECT_EQ(maxima[0].hi(2, 0), bad);
    }
    EXPECT_TRUE(std::isfinite(maxima[0].hi(1, 0)));
  }
}

TEST_P(GramAlone, ColumnStepsByHand) {
  std::vector<Block> dots{Block(Element::fp64, 3, 1), make(Element::fp64, 2, 3, [](auto i, auto j) {
                            return static_cast<double>(1 + i + 2 * j);
                          })};
  run(*GetParam(), column_dots, dots, column_variant(2, 1, 2));  // columns (1 2), (3 4), (5 6)
  EXPECT_EQ(dots[0].hi(0, 0), 0);
  EXPECT_EQ(dots[0].hi(1, 0), 39);
  EXPECT_EQ(dots[0].hi(2, 0), 61);
  std::vector<Block> update{
      dots[1], make(Element::fp64, 3, 1, [](auto i, auto) { return static_cast<double>(i) + 2; })};
  run(*GetParam(), column_update, update, column_variant(2, 0, 2));  // less 2·(1 2) and 3·(3 4)
  EXPECT_EQ(update[0].hi(0, 2), -6);
  EXPECT_EQ(update[0].hi(1, 2), -10);
  EXPECT_EQ(update[0].hi(0, 1), 3);
  run(*GetParam(), column_update, update, column_variant(2, 2, 1) | kNormalize);  // over √4
  EXPECT_EQ(update[0].hi(0, 2), -3);
  EXPECT_EQ(update[0].hi(1, 2), -5);
}

TEST_P(GramAlone, OtherVariantsAreRefused) {
  std::vector<Block> blocks = gram_operands(kGramElements[1], {3, 2});
  EXPECT_THROW(run(*GetParam(), gram, blocks, 5), Error);
  EXPECT_THROW(run(*GetParam(), gram, blocks, 8), Error);
}

TEST(GramBlock, FollowsFromTheColumnsAlone) {
  EXPECT_EQ(gram_block_rows(1), 1 << 18);
  EXPECT_EQ(gram_block_rows(20), 8192);
  EXPECT_EQ(gram_block_rows(256), 1024);
  EXPECT_EQ(gram_block_rows(512), kGramUnitRows);
  EXPECT_EQ(gram_block_rows(100000), kGramUnitRows);
  EXPECT_EQ(gram_block_rows(20, std::int64_t{1} << 23), 1 << 18);
}

}  // namespace
}  // namespace strata::testing
