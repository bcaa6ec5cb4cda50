// gemm, syrk, convert and tile_norm of every backend on tiles of few bits: against the numbers that
// the tiles hold, in long double.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/formats_reference.hpp"
#include "kernels/dense/mixed_products.hpp"
#include "kernels/dense/tile_norm.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

constexpr TileScales kMixedScales{.fp16 = 9, .fp8 = 5};

/// A tile in any element, in memory of its own.
struct Tile {
  BlockView view;
  std::vector<std::byte> bytes;

  Tile(Element element, std::int64_t rows, std::int64_t cols)
      : bytes(
            static_cast<std::size_t>(std::max<std::int64_t>(rows * cols, 1) * bytes_of(element))) {
    view = {bytes.data(), rows, cols, std::max<std::int64_t>(rows, 1), 0, 0, element};
  }
  Tile(const Tile& other) : view(other.view), bytes(other.bytes) { view.data = bytes.data(); }
  Tile& operator=(const Tile&) = delete;

  template <class F>
  Tile& fill(F&& value) {
    for (std::int64_t j = 0; j < view.cols; ++j) {
      for (std::int64_t i = 0; i < view.rows; ++i)
        set_element(view, kMixedScales, i, j, value(i, j));
    }
    return *this;
  }
  [[nodiscard]] double operator()(std::int64_t i, std::int64_t j) const {
    return element_at(view, kMixedScales, i, j);
  }
};

/// Between −1 and 1, or 0 and 1.
auto random_elements(std::uint64_t seed, bool positive = false) {
  return [=](std::int64_t i, std::int64_t j) {
    const double u = random_uniform(seed, static_cast<std::uint64_t>(4096 * j + i));
    return positive ? u : 2 * u - 1;
  };
}

/// One call; the first tile comes back, and the others must not change.
void run_on_tiles(const Backend& backend, const Operation& operation, std::vector<Tile*> tiles,
                  std::uint32_t variant = 0) {
  Elements elements;
  for (const Tile* tile : tiles) elements.push_back(tile->view.element);
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  ASSERT_NE(kernel, nullptr) << operation.name << " in " << to_string(elements);
  const auto device = backend.make_device(0, 256_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  for (const Tile* tile : tiles) {
    memory.push_back(device->allocate(std::ssize(tile->bytes)));
    queue->copy(memory.back().data(), tile->bytes.data(), std::ssize(tile->bytes),
                CopyDirection::host_to_device);
    views.push_back(tile->view);
    views.back().data = memory.back().data();
  }
  try {
    kernel(*queue, {views, operation.operands}, {.variant = variant, .values = &kMixedScales});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  std::vector<std::byte> back;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    back.resize(tiles[t]->bytes.size());
    queue->copy(back.data(), memory[t].data(), std::ssize(back), CopyDirection::device_to_host);
    queue->synchronize();
    if (t > 0) {
      EXPECT_EQ(std::memcmp(back.data(), tiles[t]->bytes.data(), back.size()), 0)
          << "operand " << t << " was written";
    }
    std::memcpy(tiles[t]->bytes.data(), back.data(), back.size());
  }
}

struct ProductShape {
  std::int64_t m, n, k;
};
/// On both sides of what tensor cores, alignments and blocks of threads take.
constexpr ProductShape kProductShapes[] = {{1, 1, 1},     {5, 3, 2},      {16, 16, 16},
                                           {17, 16, 32},  {31, 33, 65},   {64, 48, 128},
                                           {130, 96, 64}, {256, 128, 256}};

/// What rounding may add to Σ |a_ik·b_jk|. Sums are in fp32 in any order. Tensor cores add groups
/// of 16 products and cut the sum off. In fp8 they cut each group of 32 products off at 13 bits,
/// which on numbers of one sign adds up (an H200 loses 1.05e-3 of the sum of 128 positive products:
/// four groups). And lo·lo is lost, with what float cannot hold of hi + lo.
double rounding_of_products(const Backend& backend, const Elements& elements, std::int64_t k,
                            bool square) {
  if (elements.size() > 2 && elements[2] == Element::fp64) return 1e-15 * static_cast<double>(k);
  if (backend.name() == "reference") return 1e-15 * static_cast<double>(k);
  double bound = 0x1p-24 * static_cast<double>(k + 2);
  if (elements[1] == Element::fp16x2 && !square) bound += 0x1p-21;
  if (elements[1] == Element::fp16x2 && square) bound += 0x1p-22;
  if (backend.name() != "cuda") return bound;
  return elements[1] == Element::fp8 ? bound + 0x1p-9
                                     : bound + 0x1p-23 * (static_cast<double>(k) / 8 + 4);
}

/// The rows of op(X), one after the other: k numbers for each of `rows`.
std::vector<double> rows_of(const Tile& x, bool transposed, std::int64_t rows, std::int64_t k) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t l = 0; l < k; ++l) values.push_back(transposed ? x(l, i) : x(i, l));
  }
  return values;
}

void check_product(const Backend& backend, const Elements& elements, ProductShape shape,
                   std::uint32_t variant, bool positive) {
  const bool square = elements.size() == 2;
  const bool ta = (variant & kTransposeA) != 0;
  const bool tb = square || (variant & kTransposeB) != 0;
  const auto [m, n, k] = square ? ProductShape{shape.m, shape.m, shape.k} : shape;
  Tile c(elements[0], m, n);
  c.fill(random_elements(1));
  Tile a(elements[1], ta ? k : m, ta ? m : k);
  a.fill(random_elements(2, positive));
  Tile b(elements[square ? 1 : 2], tb ? n : k, tb ? k : n);
  b.fill(random_elements(square ? 2 : 3, positive));
  const Tile before = c;
  square ? run_on_tiles(backend, syrk, {&c, &a})
         : run_on_tiles(backend, gemm, {&c, &a, &b}, variant);
  const double unit = elements[0] == Element::fp64 ? 0x1p-52 : 0x1p-23;
  const double products = rounding_of_products(backend, elements, k, square);
  const std::vector<double> left = rows_of(a, ta, m, k);
  const std::vector<double> right = rows_of(b, !tb, n, k);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      if (square && i < j) {
        ASSERT_EQ(c(i, j), before(i, j)) << "above the diagonal";
        continue;
      }
      const double* x = left.data() + i * k;
      const double* y = right.data() + j * k;
      long double sum = 0;
      double size = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += static_cast<long double>(x[l]) * y[l];
        size += std::fabs(x[l] * y[l]);
      }
      const auto expected = static_cast<double>(before(i, j) - sum);
      const double allowed = products * size + unit * (std::fabs(before(i, j)) + size);
      ASSERT_NEAR(c(i, j), expected, allowed)
          << backend.name() << " " << to_string(elements) << " " << m << "," << n << "," << k
          << " at " << i << "," << j;
    }
  }
}

TEST(MixedProducts, OfFewBitsAreThoseOfTheNumbersThatAreHeld) {
  test::Thinned thinned(5);
  for (const Backend* backend : testing::all_of_them()) {
    std::vector<Elements> all(kMixedGemms.begin(), kMixedGemms.end());
    if (backend->on_host())
      all.insert(all.end(), kMixedGemmsOfHost.begin(), kMixedGemmsOfHost.end());
    for (const Elements& elements : all) {
      for (const ProductShape& shape : kProductShapes) {
        if (backend->name() == "reference" && shape.m > 64) continue;  // slow, and the same
        if (thinned.skips()) continue;
        for (const bool positive : {false, true})
          check_product(*backend, elements, shape, kTransposeB, positive);
        if (elements[2] != Element::fp64) continue;
        for (const std::uint32_t variant : {0U, kTransposeA, kTransposeA | kTransposeB})
          check_product(*backend, elements, shape, variant, false);
      }
    }
  }
}

TEST(MixedProducts, OfATileWithItselfLeaveWhatIsAboveTheDiagonal) {
  for (const Backend* backend : testing::all_of_them()) {
    std::vector<Elements> all(kMixedSyrks.begin(), kMixedSyrks.end());
    if (backend->on_host()) all.push_back(kMixedSyrkOfHost);
    for (const Elements& elements : all) {
      for (const ProductShape& shape : kProductShapes) {
        if (backend->name() == "reference" && shape.m > 64) continue;  // slow, and the same
        for (const bool positive : {false, true})
          check_product(*backend, elements, shape, 0, positive);
      }
    }
  }
}

TEST(MixedProducts, AnEmptySumChangesNothing) {
  for (const Backend* backend : testing::all_of_them()) {
    Tile c(Element::fp32, 4, 3);
    c.fill(random_elements(1));
    Tile a(Element::fp16, 4, 0);
    Tile b(Element::fp16, 3, 0);
    const Tile before = c;
    run_on_tiles(*backend, gemm, {&c, &a, &b}, kTransposeB);
    EXPECT_EQ(c.bytes, before.bytes);
  }
}

/// Numbers on which roundings differ: ties, subnormals, the largest, zeros of both signs, and some
/// between.
double awkward(std::int64_t i, std::int64_t j) {
  const auto k = static_cast<std::uint64_t>(37 * j + i);
  switch (k % 9) {
    case 0: return 0.0;
    case 1: return -0.0;
    case 2: return 1 + 0x1p-11 * static_cast<double>(k % 7);       // ties of fp16
    case 3: return (1 + 0.0625 * static_cast<double>(k % 5)) / 4;  // ties of fp8
    case 4: return std::ldexp(random_uniform(9, k), -20);
    case 5: return std::ldexp(1 + 0x1p-30, -14);
    case 6: return -std::ldexp(random_uniform(9, k), -33);
    case 7: return 13.99 * (2 * random_uniform(9, k) - 1);
    default: return 2 * random_uniform(9, k) - 1;
  }
}

TEST(Convert, RoundsOnceToNearestAndWidensExactly) {
  for (const Backend* backend : testing::all_of_them()) {
    for (const Elements& elements : kConversions) {
      for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                 {7, 5},
                                 {32, 32},
                                 {33, 31},
                                 {100, 70},
                                 {65, 200}}) {
        Tile from(elements[1], m, n);
        from.fill(awkward);
        Tile to(elements[0], m, n);
        Tile expected(elements[0], m, n);
        expected.fill([&](auto i, auto j) { return from(i, j); });
        run_on_tiles(*backend, convert, {&to, &from});
        ASSERT_EQ(to.bytes, expected.bytes)
            << backend->name() << " " << to_string(elements) << " " << m << " by " << n;
      }
    }
  }
}

TEST(Convert, SaysWhatIsTooLarge) {
  for (const Backend* backend : testing::all_of_them()) {
    Tile from(Element::fp32, 2, 2);
    from.fill([](auto i, auto j) { return i == 0 ? (j == 0 ? 1e6 : -1e6) : j == 0 ? NAN : 1.0; });
    Tile half(Element::fp16, 2, 2);
    run_on_tiles(*backend, convert, {&half, &from});
    EXPECT_EQ(half(0, 0), INFINITY);
    EXPECT_EQ(half(0, 1), -INFINITY);
    EXPECT_TRUE(std::isnan(half(1, 0)));
    Tile fp8(Element::fp8, 2, 2);
    run_on_tiles(*backend, convert, {&fp8, &from});
    EXPECT_EQ(fp8(0, 0), 448.0 / 32);
    EXPECT_EQ(fp8(0, 1), -448.0 / 32);
    EXPECT_TRUE(std::isnan(fp8(1, 0)));
    EXPECT_EQ(fp8(1, 1), 1);
  }
}

TEST(TileNorm, IsThatOfTheTile) {
  for (const Backend* backend : testing::all_of_them()) {
    for (const Element element : {Element::fp64, Element::fp32}) {
      for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                 {15, 3},
                                 {16, 1},
                                 {257, 300},
                                 {1000, 7},
                                 {40, 513}}) {
        Tile x(element, m, n);
        x.fill(random_elements(4));
        Tile norm(Element::fp64, 2, 2);
        run_on_tiles(*backend, tile_norm, {&norm, &x});
        long double square = 0;
        double largest = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < m; ++i) {
            square += static_cast<long double>(x(i, j)) * x(i, j);
            largest = std::max(largest, std::fabs(x(i, j)));
          }
        }
        const auto expected = static_cast<double>(square);
        EXPECT_NEAR(norm(0, 0), expected, 1e-13 * expected) << backend->name() << " " << m;
        EXPECT_EQ(norm(1, 0), largest);
      }
    }
  }
}

TEST(BlockNorms, AreThoseOfTheBlocksOfATile) {
  for (const Backend* backend : testing::all_of_them()) {
    for (const auto& [m, n] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {15, 3}, {64, 64}, {257, 300}, {300, 257}}) {
      for (const std::int64_t order : {1, 7, 64, 1000}) {
        for (const bool lower : {false, true}) {
          if (order == 1 && m * n > 64 * 64) continue;
          Tile x(Element::fp64, m, n);
          x.fill([&](auto i, auto j) {
            return lower && i < j ? NAN : std::ldexp(random_elements(4)(i, j), int(i % 9) - 4);
          });
          const std::int64_t rows = (m + order - 1) / order;
          const std::int64_t cols = (n + order - 1) / order;
          Tile norms(Element::fp64, 2, 2 * rows * cols);
          run_on_tiles(*backend, block_norms, {&norms, &x},
                       static_cast<std::uint32_t>(order) | (lower ? kBlockNormsLower : 0));
          for (std::int64_t c = 0; c < cols; ++c) {
            for (std::int64_t r = 0; r < rows; ++r) {
              long double square = 0;
              double largest = 0;
              double least = lower && r == c ? INFINITY : 0;
              for (std::int64_t j = c * order; j < std::min(n, (c + 1) * order); ++j) {
                for (std::int64_t i = r * order; i < std::min(m, (r + 1) * order); ++i) {
                  if (lower && i < j) continue;
                  square += static_cast<long double>(x(i, j)) * x(i, j);
                  largest = std::max(largest, std::fabs(x(i, j)));
                  if (i == j && r == c) least = std::min(least, lower ? x(i, i) * x(i, i) : 0);
                }
              }
              const auto expected = static_cast<double>(square);
              const std::int64_t at = 2 * (r + c * rows);
              EXPECT_NEAR(norms(0, at), expected, 1e-13 * expected)
                  << backend->name() << ": " << m << " by " << n << " in " << order << ": " << r
                  << ", " << c;
              EXPECT_EQ(norms(1, at), largest);
              EXPECT_EQ(norms(0, at + 1), least);
            }
          }
        }
      }
    }
    Tile x(Element::fp64, 3, 3);
    Tile norms(Element::fp64, 2, 2);
    EXPECT_THROW(run_on_tiles(*backend, block_norms, {&norms, &x}, 0), Error);
    EXPECT_THROW(run_on_tiles(*backend, block_norms, {&norms, &x}, kBlockNormsLower), Error);
  }
}

TEST(TileNorm, OfATileThatIsNotFiniteIsNotFinite) {
  for (const Backend* backend : testing::all_of_them()) {
    for (const double bad : {double{INFINITY}, double{NAN}}) {
      Tile x(Element::fp32, 40, 30);
      x.fill([&](auto i, auto j) { return i == 39 && j == 29 ? bad : 1.0; });
      Tile norm(Element::fp64, 2, 2);
      run_on_tiles(*backend, tile_norm, {&norm, &x});
      EXPECT_FALSE(std::isfinite(norm(0, 0))) << backend->name();
    }
  }
}

}  // namespace
}  // namespace strata
