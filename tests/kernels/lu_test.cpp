// getrf, lu_update and lu_back: factors and solutions that are known exactly, LAPACK's pivots, and
// the outcomes that a status tells of.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <complex>
#include <limits>
#include <numeric>
#include <string>

#include "base/index.hpp"
#include "kernels/dense/copy_rows.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_back.hpp"
#include "kernels/dense/lu_update.hpp"
#include "scalar/complex.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/nan.hpp"

namespace strata::testing {
namespace {

int lapack_getrf(int m, int n, double* a, int* pivots) {
  return LAPACKE_dgetrf(LAPACK_COL_MAJOR, m, n, a, m, pivots);
}
int lapack_getrf(int m, int n, float* a, int* pivots) {
  return LAPACKE_sgetrf(LAPACK_COL_MAJOR, m, n, a, m, pivots);
}
int lapack_getrf(int m, int n, std::complex<double>* a, int* pivots) {
  return LAPACKE_zgetrf(LAPACK_COL_MAJOR, m, n, reinterpret_cast<lapack_complex_double*>(a), m,
                        pivots);
}
int lapack_getrf(int m, int n, std::complex<float>* a, int* pivots) {
  return LAPACKE_cgetrf(LAPACK_COL_MAJOR, m, n, reinterpret_cast<lapack_complex_float*>(a), m,
                        pivots);
}

using test::kNan;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// re, or re + i·im.
template <class T>
WideOf<T> number(double re, double im) {
  if constexpr (is_complex_v<T>)
    return {re, im};
  else
    return re;
}
/// An integer, or a Gaussian one.
template <class T>
WideOf<T> integer(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return number<T>(small_integer(seed, i, j), small_integer(seed + 100, i, j));
}
template <class T>
WideOf<T> random_number(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return number<T>(uniform(seed, i, j), uniform(seed + 100, i, j));
}

/// A block at column `col` of its matrix.
template <class T>
BlockView view_of(Matrix<T>& matrix, std::int64_t col = 0) {
  return {matrix.data.data(), matrix.rows, matrix.cols, matrix.ld, 0, col, element_of<T>};
}

template <class T>
struct FactoredPanel {
  Matrix<T> a;
  Matrix<std::int64_t> pivots;
  PanelStatus status;
};

class LuKernels : public ::testing::TestWithParam<KernelParameter> {
 protected:
  LuKernels() : device_(GetParam().backend->make_device(0, 256_MiB)) {}

  static constexpr std::uint32_t kUnknownVariant = 8;

  /// The operands are copied to the device, and back.
  void call(const Operation& operation, const Elements& elements,
            const std::vector<BlockView>& views, std::uint32_t variant = 0) {
    call_there(*GetParam().backend, *device_, operation, elements, views, variant);
  }
  /// Rows and columns of a panel that begins at column `col`.
  template <class T>
  FactoredPanel<T> factor(Matrix<T> a, std::int64_t col = 0) {
    FactoredPanel<T> panel{std::move(a), {}, {}};
    panel.pivots = Matrix<std::int64_t>(1, panel.a.cols, 0, [](auto, auto) { return -7; });
    call(getrf, kGetrfElements<T>,
         {view_of(panel.a, col), view_of(panel.pivots), {&panel.status, 4, 1, 4}});
    return panel;
  }
  template <class F>
  static void each(F&& body) {
    dispatch_blas(GetParam().precision, body);
  }

 private:
  std::unique_ptr<Device> device_;
};

/// Elements of L below its diagonal: quarters of at most a half, so that no two rows tie.
template <class T>
WideOf<T> exact_l(std::int64_t i, std::int64_t j) {
  const auto quarters = [&](std::uint64_t seed, std::int64_t most) {
    const auto bits =
        random_bits(seed, at(i * 1009 + j)) % static_cast<std::uint64_t>(2 * most + 1);
    return static_cast<double>(static_cast<std::int64_t>(bits) - most) / 4;
  };
  return is_complex_v<T> ? number<T>(quarters(3, 1), quarters(4, 1)) : number<T>(quarters(3, 2), 0);
}
/// Elements of U: a power of two times 1, −1, i or −i on the diagonal, small integers above it.
template <class T>
WideOf<T> exact_u(std::int64_t i, std::int64_t j) {
  if (i != j) return integer<T>(5, i, j);
  const double power = std::ldexp(i % 2 == 0 ? 1.0 : -1.0, static_cast<int>(i % 3));
  return is_complex_v<T> && i % 4 > 1 ? number<T>(0, power) : number<T>(power, 0);
}
/// What a variant of lu_update or lu_back has in the place of an element of the factor.
template <class W>
W in_variant(const W& value, std::uint32_t variant) {
  return variant == kAdjointFactor ? conjugate(value) : value;
}

/// A panel of known factors: rows of L·U from `col` on, exchanged; above them what U is there.
template <class T>
struct KnownPanel {
  Matrix<T> a;
  Matrix<T> factored;
  std::vector<std::int64_t> pivots;

  KnownPanel(std::int64_t n, std::int64_t col, std::int64_t b, std::int64_t padding = 0)
      : a(n, b, padding), factored(n, b, padding) {
    for (std::int64_t j = 0; j < b; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t r = i - col;  // row of L
        factored(i, j) = static_cast<T>(r <= j ? exact_u<T>(r, j) : exact_l<T>(r, j));
        if (r < 0) {
          a(i, j) = factored(i, j);
          continue;
        }
        WideOf<T> sum = r <= j ? exact_u<T>(r, j) : 0;
        for (std::int64_t k = 0; k < std::min(r, j + 1); ++k)
          sum += exact_l<T>(r, k) * exact_u<T>(k, j);
        a(i, j) = static_cast<T>(sum);
      }
    }
    // Exchanges of elimination are undone from the last to the first.
    for (std::int64_t j = 0; j < b; ++j)
      pivots.push_back(j + static_cast<std::int64_t>(random_bits(9, at(j)) % at(n - col - j)));
    for (std::int64_t j = b; j-- > 0;)
      for (std::int64_t k = 0; k < b; ++k) std::swap(a(col + j, k), a(col + pivots[at(j)], k));
  }
};

struct PanelShape {
  std::int64_t n, col, b;
};
constexpr PanelShape kShapes[] = {{1, 0, 1},      {2, 0, 1},     {2, 1, 1},     {3, 0, 3},
                                  {9, 0, 8},      {9, 0, 9},     {17, 5, 7},    {40, 0, 17},
                                  {64, 0, 64},    {70, 3, 65},   {130, 0, 130}, {200, 64, 130},
                                  {201, 130, 71}, {421, 40, 330}};

TEST_P(LuKernels, FindFactorsThatAreKnownExactly) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    for (const auto [n, col, b] : kShapes) {
      for (const std::int64_t padding : {0, 3}) {
        const KnownPanel<T> known(n, col, b, padding);
        const FactoredPanel<T> found = factor(known.a, col);
        EXPECT_TRUE(same_values(found.a, known.factored)) << n << ' ' << col << ' ' << b;
        EXPECT_EQ(found.pivots.data, known.pivots) << n << ' ' << col << ' ' << b;
        EXPECT_EQ(found.status.zero_pivot, -1);
        EXPECT_EQ(found.status.not_finite, -1);
        EXPECT_EQ(found.status.smallest_pivot, 1);
        double largest = 0;
        for (std::int64_t j = 0; j < b; ++j) {
          for (std::int64_t i = 0; i < n; ++i) {
            if (i >= col) largest = std::max(largest, pivot_size(known.a(i, j)));
            if (i <= col + j) largest = std::max(largest, pivot_size(known.factored(i, j)));
          }
        }
        EXPECT_EQ(found.status.largest, largest);
      }
    }
  });
}

// On a GPU: one block, clusters of several sizes, groups of a half and of a quarter of the columns,
// blocks that meet in global memory, and panels that are factored by halves.
TEST_P(LuKernels, FindFactorsOfTallAndOfWidePanels) {
  if (GetParam().backend->on_host()) GTEST_SKIP() << "hosts have one way for all shapes";
  constexpr PanelShape kLarge[] = {{600, 0, 257},    {1100, 3, 900},  {1500, 130, 300},
                                   {5000, 0, 100},   {9001, 1, 70},   {16385, 0, 40},
                                   {17000, 300, 67}, {33000, 0, 258}, {70001, 5, 40}};
  each([&](auto type) {
    using T = typename decltype(type)::type;
    for (const auto [n, col, b] : kLarge) {
      const KnownPanel<T> known(n, col, b, 1);
      const FactoredPanel<T> found = factor(known.a, col);
      EXPECT_TRUE(same_values(found.a, known.factored)) << n << ' ' << col << ' ' << b;
      EXPECT_EQ(found.pivots.data, known.pivots) << n << ' ' << col << ' ' << b;
      EXPECT_EQ(found.status.smallest_pivot, 1);
    }
  });
}

TEST_P(LuKernels, PivotAsLapackDoes) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {1, 2, 5, 16, 33, 100, 257}) {
      for (const std::int64_t b : {std::int64_t{1}, n / 2, n}) {
        if (b == 0) continue;
        const Matrix<T> a(n, b, 0, [](auto i, auto j) { return random_number<T>(21, i, j); });
        const FactoredPanel<T> found = factor(a);
        Matrix<T> expected = a;
        std::vector<int> pivots(at(b));
        ASSERT_EQ(lapack_getrf(static_cast<int>(n), static_cast<int>(b), expected.data.data(),
                               pivots.data()),
                  0);
        for (std::int64_t j = 0; j < b; ++j)
          ASSERT_EQ(found.pivots(0, j) + 1, pivots[at(j)]) << "column " << j << " of " << n;
        for (std::int64_t j = 0; j < b; ++j)
          for (std::int64_t i = 0; i < n; ++i)
            ASSERT_LE(std::abs(found.a(i, j) - expected(i, j)),
                      1e3 * std::numeric_limits<RealOf<T>>::epsilon() * static_cast<double>(n));
      }
    }
  });
}

TEST_P(LuKernels, TakeTheFirstOfElementsThatAreAlike) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    // −2 and 2 tie in the first column; in the second the rows are alike after elimination.
    const T rows[4][2] = {{1, 0}, {-2, 1}, {2, 5}, {1, 5.5}};
    const FactoredPanel<T> found =
        factor(Matrix<T>(4, 2, 0, [&](auto i, auto j) { return rows[i][j]; }));
    // Then rows are (−2 1), (−1/2 | 1/2), (−1 | 6), (−1/2 | 6).
    EXPECT_EQ(found.pivots.data, (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(found.a.data, (std::vector<T>{-2, -1, T(-0.5), T(-0.5), 1, 6, T(0.5) / T(6), 1}));
  });
}

TEST_P(LuKernels, CompareComplexNumbersByTheSumOfTheirParts) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (is_complex_v<T>) {
      // 3 + 3i has the largest sum of parts, 5 the largest magnitude.
      const T rows[4] = {T(5, 0), T(-3, 1), T(3, 3), T(-3, 3)};
      const FactoredPanel<T> found =
          factor(Matrix<T>(4, 1, 0, [&](auto i, auto) { return rows[i]; }));
      EXPECT_EQ(found.pivots(0, 0), 2);
      EXPECT_EQ(found.status.largest, 6);
      EXPECT_EQ(found.a(0, 0), rows[2]);
      // (−3 + i)/(3 + 3i) = (−1 + 2i)/3, (−3 + 3i)/(3 + 3i) = i.
      const RealOf<T> third = RealOf<T>{1} / 3;
      EXPECT_EQ(found.a(1, 0), T(-third, 2 * third));
      EXPECT_EQ(found.a(3, 0), T(0, 1));
      // Sums of parts that overflow are alike, and no infinity.
      const RealOf<T> most = std::numeric_limits<RealOf<T>>::max();
      const FactoredPanel<T> huge = factor(Matrix<T>(3, 1, 0, [&](auto i, auto) {
        return i == 0 ? T(1, 0) : i == 1 ? T(most, most) : T(most, -most);
      }));
      EXPECT_EQ(huge.pivots(0, 0), 1);
      EXPECT_EQ(huge.status.not_finite, -1);
      EXPECT_EQ(huge.status.largest, double{most});
      EXPECT_EQ(huge.a(2, 0), T(0, -1));
    }
  });
}

TEST_P(LuKernels, TellTheFirstPivotThatIsZeroAndGoOn) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    // Column 1 is column 0 times −1, or i; the pivot 4 makes all quotients exact.
    const Matrix<T> a(20, 12, 0, [](auto i, auto j) {
      if (j > 1) return integer<T>(31, i, j);
      const auto value = i == 7 ? WideOf<T>{4} : exact_l<T>(i, 0);
      return j == 1 ? value * number<T>(is_complex_v<T> ? 0 : -1, 1) : value;
    });
    const FactoredPanel<T> found = factor(a);
    EXPECT_EQ(found.status.zero_pivot, 1);
    EXPECT_EQ(found.status.smallest_pivot, 0);
    EXPECT_EQ(found.status.not_finite, -1);
    for (std::int64_t i = 2; i < 20; ++i) EXPECT_EQ(found.a(i, 1), T{0});
    const FactoredPanel<T> zeros = factor(Matrix<T>(9, 9, 0, [](auto, auto) { return 0; }));
    EXPECT_EQ(zeros.status.zero_pivot, 0);
    std::vector<std::int64_t> in_place(9);
    std::iota(in_place.begin(), in_place.end(), 0);
    EXPECT_EQ(zeros.pivots.data, in_place);
  });
}

TEST_P(LuKernels, DivideBySubnormalPivots) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    using R = RealOf<T>;
    const R tiny = std::numeric_limits<R>::denorm_min();
    const FactoredPanel<T> found =
        factor(Matrix<T>(3, 1, 0, [&](auto i, auto) { return T(static_cast<R>(i + 1) * tiny); }));
    EXPECT_EQ(found.pivots(0, 0), 2);
    EXPECT_EQ(found.a.data, (std::vector<T>{3 * tiny, R{2} / 3, R{1} / 3}));
    EXPECT_EQ(found.status.smallest_pivot, static_cast<double>(3 * tiny));
    if constexpr (is_complex_v<T>) {  // a pivot of 3i, imaginary alone
      const FactoredPanel<T> turned = factor(
          Matrix<T>(3, 1, 0, [&](auto i, auto) { return T(0, static_cast<R>(i + 1) * tiny); }));
      EXPECT_EQ(turned.a.data, (std::vector<T>{T(0, 3 * tiny), R{2} / 3, R{1} / 3}));
    }
  });
}

TEST_P(LuKernels, NoticeWhatIsNotFinite) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      for (const std::int64_t row : {0, 6, 19}) {
        for (const std::int64_t col : {0, 3, 11}) {
          for (const bool imaginary : {false, true}) {
            const FactoredPanel<T> found = factor(Matrix<T>(20, 12, 0, [&](auto i, auto j) {
              if (i != row || j != col) return random_number<T>(41, i, j);
              return imaginary && is_complex_v<T> ? number<T>(1, bad) : number<T>(bad, 1);
            }));
            EXPECT_EQ(found.status.not_finite, col) << bad << " at " << row << ", " << col;
            EXPECT_EQ(found.status.largest, kInfinity);
          }
        }
      }
    }
    // Elements that overflow on the way.
    const T most = std::numeric_limits<RealOf<T>>::max();
    const T rows[2][2] = {{1, most}, {-1, most}};
    const FactoredPanel<T> found =
        factor(Matrix<T>(2, 2, 0, [&](auto i, auto j) { return rows[i][j]; }));
    EXPECT_EQ(found.status.not_finite, 1);
    EXPECT_EQ(found.status.largest, kInfinity);
    // Above the diagonal block, in rows that earlier panels have made.
    const FactoredPanel<T> above =
        factor(Matrix<T>(5, 2, 0,
                         [&](auto i, auto j) {
                           return i == 1 && j == 1 ? number<T>(is_complex_v<T> ? 0 : kNan, kNan)
                                                   : random_number<T>(2, i, j);
                         }),
               3);
    EXPECT_EQ(above.status.not_finite, 1);
  });
}

/// Names of shapes and variants in messages.
std::string named(const PanelShape& shape, std::int64_t columns, std::uint32_t variant) {
  return std::to_string(shape.n) + ", " + std::to_string(shape.col) + ", " +
         std::to_string(shape.b) + ", " + std::to_string(columns) + " columns, variant " +
         std::to_string(variant);
}

TEST_P(LuKernels, UpdateColumnsToWhatIsKnownExactly) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    for (const PanelShape& shape : kShapes) {
      const auto [n, col, b] = shape;
      for (const std::int64_t columns : {1, 4, 67}) {
        KnownPanel<T> known(n, col, b, 2);
        const Matrix<T> panel = known.factored;
        Matrix<std::int64_t> pivots(1, b, 0, [&](auto, auto j) { return known.pivots[at(j)]; });
        const Matrix<T> y(n, columns, 1, [](auto i, auto j) { return integer<T>(51, i, j); });
        for (const std::uint32_t variant : {0U, kTransposedFactor, kAdjointFactor}) {
          // L·Y, its rows exchanged back; Lᵀ·(P·Y) or Lᴴ·(P·Y) for the transposed.
          Matrix<T> start = y;
          if (variant != 0)
            for (std::int64_t j = 0; j < b; ++j)
              for (std::int64_t c = 0; c < columns; ++c)
                std::swap(start(col + j, c), start(col + known.pivots[at(j)], c));
          Matrix<T> x = start;
          for (std::int64_t c = 0; c < columns; ++c) {
            for (std::int64_t i = col; i < n; ++i) {
              for (std::int64_t j = 0; j < std::min(b, i - col); ++j) {
                const auto l = static_cast<T>(in_variant(exact_l<T>(i - col, j), variant));
                if (variant == 0)
                  x(i, c) += l * start(col + j, c);
                else
                  x(col + j, c) += l * start(i, c);
              }
            }
            if (variant == 0)
              for (std::int64_t j = b; j-- > 0;)
                std::swap(x(col + j, c), x(col + known.pivots[at(j)], c));
          }
          call(lu_update, kLuUpdateElements<T>,
               {view_of(x), view_of(known.factored, col), view_of(pivots)}, variant);
          EXPECT_TRUE(same_values(x, y)) << named(shape, columns, variant);
          EXPECT_TRUE(same_bits(known.factored, panel)) << "the panel was written";
        }
      }
    }
  });
}

TEST_P(LuKernels, SolveBackToWhatIsKnownExactly) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    for (const PanelShape& shape : kShapes) {
      const auto [n, col, b] = shape;
      for (const std::int64_t columns : {1, 4, 67}) {
        KnownPanel<T> known(n, col, b, 2);
        const Matrix<T> y(n, columns, 1, [](auto i, auto j) { return integer<T>(61, i, j); });
        for (const std::uint32_t variant : {0U, kTransposedFactor, kAdjointFactor}) {
          Matrix<T> x = y;
          for (std::int64_t c = 0; c < columns; ++c) {
            for (std::int64_t j = 0; j < b; ++j) x(col + j, c) = 0;
            for (std::int64_t j = 0; j < b; ++j) {
              for (std::int64_t i = 0; i <= col + j; ++i) {
                const auto u = static_cast<T>(in_variant(exact_u<T>(i - col, j), variant));
                if (variant == 0)
                  x(i, c) += u * y(col + j, c);
                else
                  x(col + j, c) += u * y(i, c);
              }
            }
          }
          call(lu_back, Elements(2, element_of<T>), {view_of(x), view_of(known.factored, col)},
               variant);
          EXPECT_TRUE(same_values(x, y)) << named(shape, columns, variant);
        }
      }
    }
  });
}

/// Rows of L and of U that are copied into blocks of their own; updates and solves by these have
/// the bits of those by the panel.
TEST_P(LuKernels, SolveByTheRowsOfEachSweepAsByThePanel) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    for (const PanelShape& shape : kShapes) {
      const std::int64_t n = shape.n;
      const std::int64_t col = shape.col;
      const std::int64_t b = shape.b;
      if (b > 256) continue;  // cuBLAS chooses by where columns begin
      Matrix<T> panel(n, b, 2, [](auto i, auto j) { return random_number<T>(71, i, j); });
      for (std::int64_t j = 0; j < b; ++j) panel(col + j, j) += T{4};
      Matrix<std::int64_t> pivots(1, b, 0, [&](auto, auto j) { return n - col - 1 - j % 2; });
      for (std::int64_t j = 0; j < b; ++j)
        pivots.data[at(j)] = std::max(pivots.data[at(j)], j);  // of rows from this one on
      const Matrix<T> before = panel;
      Matrix<T> lower(n - col, b, 1, [](auto, auto) { return T{-7}; });
      Matrix<T> upper(col + b, b, 3, [](auto, auto) { return T{-7}; });
      BlockView of_lower = view_of(lower, col);
      of_lower.row = col;
      const BlockView of_upper = view_of(upper, col);
      for (const BlockView& rows : {of_lower, of_upper})
        call(copy_rows, Elements(2, element_of<T>), {view_of(panel, col), rows});
      EXPECT_TRUE(same_bits(panel, before)) << "the panel was written";
      for (std::int64_t j = 0; j < b; ++j) {
        for (std::int64_t i = 0; i < n - col; ++i) ASSERT_EQ(lower(i, j), before(col + i, j));
        for (std::int64_t i = 0; i < col + b; ++i) ASSERT_EQ(upper(i, j), before(i, j));
      }
      for (const std::int64_t columns : {1, 5, 67}) {
        const Matrix<T> y(n, columns, 1, [](auto i, auto j) { return random_number<T>(72, i, j); });
        for (const std::uint32_t variant : {0U, kTransposedFactor, kAdjointFactor}) {
          Matrix<T> by_panel = y;
          Matrix<T> by_block = y;
          call(lu_update, kLuUpdateElements<T>,
               {view_of(by_panel), view_of(panel, col), view_of(pivots)}, variant);
          call(lu_update, kLuUpdateElements<T>, {view_of(by_block), of_lower, view_of(pivots)},
               variant);
          EXPECT_TRUE(same_bits(by_block, by_panel)) << named(shape, columns, variant);
          call(lu_back, Elements(2, element_of<T>), {view_of(by_panel), view_of(panel, col)},
               variant);
          call(lu_back, Elements(2, element_of<T>), {view_of(by_block), of_upper}, variant);
          EXPECT_TRUE(same_bits(by_block, by_panel)) << named(shape, columns, variant);
          // Rows above the diagonal may be missing of X, too.
          Matrix<T> whole = y;
          Matrix<T> part(n - col, columns, 2, [&](auto i, auto j) { return y(col + i, j); });
          BlockView of_part = view_of(part);
          of_part.row = col;
          call(lu_update, kLuUpdateElements<T>,
               {view_of(whole), view_of(panel, col), view_of(pivots)}, variant);
          call(lu_update, kLuUpdateElements<T>, {of_part, of_lower, view_of(pivots)}, variant);
          for (std::int64_t j = 0; j < columns; ++j)
            for (std::int64_t i = 0; i < n - col; ++i)
              ASSERT_EQ(part(i, j), whole(col + i, j)) << named(shape, columns, variant);
          // The diagonal block of U alone, as stripes have it.
          Matrix<T> square(b, b, 1, [&](auto i, auto j) { return before(col + i, j); });
          BlockView of_square = view_of(square, col);
          of_square.row = col;
          Matrix<T> of_triangle(b, columns, 0, [&](auto i, auto j) { return y(col + i, j); });
          Matrix<T> same = of_triangle;
          BlockView at_top = view_of(of_triangle);
          at_top.row = col;
          call(lu_back, Elements(2, element_of<T>), {at_top, of_square}, variant);
          call(lu_back, Elements(2, element_of<T>), {view_of(same), view_of(square)}, variant);
          EXPECT_TRUE(same_bits(of_triangle, same)) << named(shape, columns, variant);
        }
      }
    }
  });
}

TEST_P(LuKernels, RefuseUnknownVariants) {
  each([&](auto type) {
    using T = typename decltype(type)::type;
    Matrix<T> a(2, 2, 0, [](auto i, auto j) { return i == j; });
    Matrix<std::int64_t> pivots(1, 2, 0, [](auto, auto j) { return j; });
    PanelStatus status;
    EXPECT_THROW(
        call(getrf, kGetrfElements<T>, {view_of(a), view_of(pivots), {&status, 4, 1, 4}}, 1),
        Error);
    EXPECT_THROW(call(lu_update, kLuUpdateElements<T>, {view_of(a), view_of(a), view_of(pivots)},
                      kUnknownVariant),
                 Error);
    EXPECT_THROW(
        call(lu_back, Elements(2, element_of<T>), {view_of(a), view_of(a)}, kUnknownVariant),
        Error);
    EXPECT_THROW(call(copy_rows, Elements(2, element_of<T>), {view_of(a), view_of(a)}, 1), Error);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, LuKernels, ::testing::ValuesIn(backends_of_general_systems()),
                         name_of);

TEST(LuWork, IsThatOfTheLoops) {
  for (const auto [n, col, b] : kShapes) {
    const BlockExtent panel{0, col, n, b};
    const BlockExtent right{0, 0, n, 7};
    double factor = 0, update = 0, back = 0;
    for (std::int64_t j = 0; j < b; ++j) {
      factor += static_cast<double>((n - col - j - 1) * (1 + 2 * (b - j - 1)));
      update += 7.0 * 2 * static_cast<double>(n - col - j - 1);
      back += 7.0 * (1 + 2 * static_cast<double>(col + j));
    }
    const std::vector<BlockExtent> of_getrf{panel};
    const std::vector<BlockExtent> of_solves{right, panel};
    EXPECT_NEAR(getrf.work(of_getrf, 0), factor, 1e-9 * (factor + 1));
    EXPECT_NEAR(lu_update.work(of_solves, 0), update, 1e-9 * (update + 1));
    EXPECT_NEAR(lu_back.work(of_solves, 0), back, 1e-9 * (back + 1));
    // Rows that a sweep does not read may be missing.
    const std::vector<BlockExtent> by_lower{right, {col, col, n - col, b}};
    const std::vector<BlockExtent> by_upper{right, {0, col, col + b, b}};
    EXPECT_EQ(lu_update.work(by_lower, 0), lu_update.work(of_solves, 0));
    EXPECT_EQ(lu_back.work(by_upper, 0), lu_back.work(of_solves, 0));
  }
}

}  // namespace
}  // namespace strata::testing
