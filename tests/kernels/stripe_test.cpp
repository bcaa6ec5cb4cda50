// stripe_factor, stripe_row and stripe_column: factors that are known exactly, LAPACK's pivots
// where a substripe is all of a block, pivots that stay within their substripe, and what statuses
// tell.

#include "kernels/dense/stripe.hpp"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <vector>

#include "base/index.hpp"
#include "scalar/complex.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/nan.hpp"

namespace strata::testing {
namespace {

template <class T>
T number(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  if constexpr (is_complex_v<T>)
    return T(static_cast<RealOf<T>>(uniform(seed, i, j)),
             static_cast<RealOf<T>>(uniform(seed + 50, i, j)));
  else
    return static_cast<T>(uniform(seed, i, j));
}
template <class T>
T integer(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  if constexpr (is_complex_v<T>)
    return T(static_cast<RealOf<T>>(small_integer(seed, i, j)),
             static_cast<RealOf<T>>(small_integer(seed + 50, i, j)));
  else
    return static_cast<T>(small_integer(seed, i, j));
}

/// A packed block with three rows of padding.
template <class T>
struct Packed {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<T> data;

  template <class F>
  Packed(std::int64_t r, std::int64_t c, F value)
      : rows(r), cols(c), data(at((r + 3) * std::max<std::int64_t>(c, 1)), T(7)) {
    for (std::int64_t j = 0; j < c; ++j)
      for (std::int64_t i = 0; i < r; ++i) (*this)(i, j) = value(i, j);
  }
  T& operator()(std::int64_t i, std::int64_t j) { return data[at(i + j * (rows + 3))]; }
  const T& operator()(std::int64_t i, std::int64_t j) const { return data[at(i + j * (rows + 3))]; }
  [[nodiscard]] BlockView view() {
    return {data.data(), rows, cols, rows + 3, 0, 0, element_of<T>};
  }
};

class StripeKernels : public ::testing::TestWithParam<KernelParameter> {
 protected:
  void call(const Operation& operation, const Elements& elements,
            const std::vector<BlockView>& views, std::uint32_t variant = 0) {
    const auto device = GetParam().backend->make_device(0, 64_MiB);
    call_there(*GetParam().backend, *device, operation, elements, views, variant);
  }
  template <class T>
  PanelStatus factor(Packed<T>& d, std::vector<std::int64_t>& pivots, std::uint32_t substripe) {
    PanelStatus status;
    pivots.assign(at(d.cols), -7);
    call(stripe_factor, kGetrfElements<T>,
         {d.view(), {pivots.data(), 1, d.cols, 1}, {&status, 4, 1, 4}}, substripe);
    return status;
  }
  template <class F>
  static void each(F&& body) {
    dispatch_blas(GetParam().precision, body);
  }
};

/// L·U, L and U in one block, without their exchanges.
template <class T>
WideOf<T> product_at(const Packed<T>& lu, std::int64_t i, std::int64_t j) {
  using W = WideOf<T>;
  W sum{0};
  for (std::int64_t k = 0; k <= std::min(i, j); ++k)
    sum += (k == i ? W{1} : static_cast<W>(lu(i, k))) * static_cast<W>(lu(k, j));
  return sum;
}

/// U with powers of two on its diagonal, small integers above it.
template <class T>
T triangle_at(std::int64_t i, std::int64_t j) {
  if (i > j) return T(0);
  return i == j ? T(static_cast<RealOf<T>>(i % 3 == 0   ? 2
                                           : i % 3 == 1 ? -1
                                                        : 1))
                : integer<T>(3, i, j);
}

TEST_P(StripeKernels, EliminateExactlyWithoutExchanges) {
  each([&]<class Type>(Type) {
    using T = typename Type::type;
    for (const std::int64_t b : {1, 2, 7, 9, 20}) {
      // L has few and small elements, so that every sum is exact in fp32, too.
      const auto l = [&](std::int64_t i, std::int64_t j) {
        return i == j ? T(1) : i > j && (i + 2 * j) % 5 == 0 ? T(j % 2 == 0 ? 1 : -1) : T(0);
      };
      Packed<T> d(b, b, [&](auto i, auto j) {
        T sum{0};
        for (std::int64_t k = 0; k < b; ++k) sum += l(i, k) * triangle_at<T>(k, j);
        return sum;
      });
      std::vector<std::int64_t> pivots;
      const PanelStatus status = factor(d, pivots, 0);
      for (std::int64_t j = 0; j < b; ++j) {
        EXPECT_EQ(pivots[at(j)], j);
        for (std::int64_t i = 0; i < b; ++i)
          ASSERT_EQ(d(i, j), i > j ? l(i, j) : triangle_at<T>(i, j)) << b << ": " << i << "," << j;
      }
      EXPECT_EQ(status.zero_pivot, -1);
      EXPECT_EQ(status.not_finite, -1);
      EXPECT_EQ(status.smallest_pivot, b > 1 ? 1 : 2);
    }
  });
}

TEST_P(StripeKernels, SearchPivotsInTheirSubstripeAlone) {
  each([&]<class Type>(Type) {
    using T = typename Type::type;
    for (const std::int64_t b : {1, 5, 19, 70, 131}) {
      for (const std::uint32_t s : {0U, 1U, 3U, 8U, 16U, 64U, 200U}) {
        const auto element = [&](std::int64_t i, std::int64_t j) {
          return number<T>(11, i, j) + (i == j ? T(4) : T(0));
        };
        Packed<T> d(b, b, element);
        std::vector<std::int64_t> pivots;
        const PanelStatus status = factor(d, pivots, s);
        std::vector<std::int64_t> row(at(b));
        for (std::int64_t i = 0; i < b; ++i) row[at(i)] = i;
        for (std::int64_t j = 0; j < b; ++j) {
          const std::int64_t end = s == 0 ? j + 1 : std::min<std::int64_t>((j / s + 1) * s, b);
          ASSERT_GE(pivots[at(j)], j);
          ASSERT_LT(pivots[at(j)], end) << "rows of another substripe";
          std::swap(row[at(j)], row[at(pivots[at(j)])]);
          // Where rows were to be had, the largest was taken.
          for (std::int64_t i = j + 1; i < end; ++i)
            ASSERT_LE(std::abs(d(i, j)), (is_complex_v<T> ? 1.4143 : 1.0)) << i;
        }
        double most = 0;
        double met = 0;
        for (std::int64_t j = 0; j < b; ++j) {
          for (std::int64_t i = 0; i < b; ++i) {
            const auto was = static_cast<WideOf<T>>(element(row[at(i)], j));
            most = std::max(most, std::abs(product_at(d, i, j) - was));
            met = std::max(met, pivot_size(element(i, j)));
            if (i <= j) met = std::max(met, pivot_size(d(i, j)));
          }
        }
        constexpr double kUlp = std::numeric_limits<RealOf<T>>::epsilon();
        EXPECT_LE(most, 200 * kUlp * status.largest) << b << " by " << s;
        EXPECT_EQ(status.largest, met);
      }
    }
  });
}

TEST_P(StripeKernels, ExchangeAsLapackWhereASubstripeIsAll) {
  for (const std::int64_t b : {6, 33, 90}) {
    const auto element = [](std::int64_t i, std::int64_t j) { return uniform(21, i, j); };
    std::vector<double> a(at(b * b));
    for (std::int64_t j = 0; j < b; ++j)
      for (std::int64_t i = 0; i < b; ++i) a[at(i + j * b)] = element(i, j);
    std::vector<lapack_int> expected(at(b));
    const auto order = static_cast<lapack_int>(b);
    ASSERT_EQ(LAPACKE_dgetrf(LAPACK_COL_MAJOR, order, order, a.data(), order, expected.data()), 0);
    if (GetParam().precision != Element::fp64) continue;
    Packed<double> d(b, b, element);
    std::vector<std::int64_t> pivots;
    (void)factor(d, pivots, static_cast<std::uint32_t>(b));
    for (std::int64_t j = 0; j < b; ++j) EXPECT_EQ(pivots[at(j)] + 1, expected[at(j)]);
  }
}

TEST_P(StripeKernels, RowsAndColumnsAreExact) {
  each([&]<class Type>(Type) {
    using T = typename Type::type;
    for (const std::int64_t b : {1, 4, 21}) {
      for (const std::int64_t c : {1, 3, 30}) {
        const auto l = [&](std::int64_t i, std::int64_t j) {
          return i == j ? T(1) : i > j && (i + 2 * j) % 5 == 0 ? T(1) : T(0);
        };
        Packed<T> d(b, b, [&](auto i, auto j) { return i > j ? l(i, j) : triangle_at<T>(i, j); });
        std::vector<std::int64_t> pivots;
        for (std::int64_t j = 0; j < b; ++j) pivots.push_back(std::min(b - 1, j + j % 2));
        // X = Pᵀ·L·Y.
        Packed<T> x(b, c, [&](auto i, auto j) {
          T sum{0};
          for (std::int64_t k = 0; k < b; ++k) sum += l(i, k) * integer<T>(8, k, j);
          return sum;
        });
        double met = 0;
        for (std::int64_t j = 0; j < c; ++j) {
          for (std::int64_t k = b; k-- > 0;) std::swap(x(k, j), x(pivots[at(k)], j));
          for (std::int64_t i = 0; i < b; ++i)
            met = std::max({met, pivot_size(x(i, j)), pivot_size(integer<T>(8, i, j))});
        }
        PanelStatus status;
        call(stripe_row, kStripeRowElements<T>,
             {x.view(), {&status, 4, 1, 4}, d.view(), {pivots.data(), 1, b, 1}});
        EXPECT_EQ(status.largest, met);
        EXPECT_EQ(status.not_finite, -1);
        for (std::int64_t j = 0; j < c; ++j)
          for (std::int64_t i = 0; i < b; ++i) ASSERT_EQ(x(i, j), integer<T>(8, i, j));

        Packed<T> y(c, b, [&](auto i, auto j) {
          T sum{0};
          for (std::int64_t k = 0; k <= j; ++k) sum += integer<T>(9, i, k) * triangle_at<T>(k, j);
          return sum;
        });
        call(stripe_column, kStripeColumnElements<T>, {y.view(), {&status, 4, 1, 4}, d.view()});
        double largest = 0;
        for (std::int64_t j = 0; j < b; ++j) {
          for (std::int64_t i = 0; i < c; ++i) {
            ASSERT_EQ(y(i, j), integer<T>(9, i, j)) << i << "," << j;
            largest = std::max(largest, pivot_size(y(i, j)));
          }
        }
        EXPECT_EQ(status.largest, largest);
      }
    }
  });
}

TEST_P(StripeKernels, TellOfZerosAndOfWhatIsNotFinite) {
  each([&]<class Type>(Type) {
    using T = typename Type::type;
    // The second column has nothing in the rows of its substripe.
    Packed<T> d(4, 4,
                [](auto i, auto j) { return j == 1 ? T(i >= 2 ? 5 : 0) : T(i == j ? 3 : 0); });
    std::vector<std::int64_t> pivots;
    EXPECT_EQ(factor(d, pivots, 2).zero_pivot, 1);
    Packed<T> whole(4, 4,
                    [](auto i, auto j) { return j == 1 ? T(i >= 2 ? 5 : 0) : T(i == j ? 3 : 0); });
    EXPECT_EQ(factor(whole, pivots, 4).zero_pivot, 3) << "row 1, which went to the end";
    Packed<T> bad(5, 5, [](auto i, auto j) { return T(i == j ? 1 : 0); });
    bad(1, 3) = T(static_cast<RealOf<T>>(test::kNan));
    EXPECT_EQ(factor(bad, pivots, 2).not_finite, 3);
    Packed<T> triangle(2, 2, [](auto i, auto j) { return T(i == j ? 1 : 0); });
    PanelStatus status;
    Packed<T> x(2, 3, [](auto, auto j) {
      return j == 2 ? T(std::numeric_limits<RealOf<T>>::infinity()) : T(1);
    });
    std::vector<std::int64_t> none{0, 1};
    call(stripe_row, kStripeRowElements<T>,
         {x.view(), {&status, 4, 1, 4}, triangle.view(), {none.data(), 1, 2, 1}});
    EXPECT_EQ(status.not_finite, 2);
    triangle(1, 1) = T(0);
    Packed<T> y(3, 2, [](auto, auto) { return T(1); });
    call(stripe_column, kStripeColumnElements<T>, {y.view(), {&status, 4, 1, 4}, triangle.view()});
    EXPECT_EQ(status.not_finite, 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, StripeKernels,
                         ::testing::ValuesIn(backends_of_general_systems()), name_of);

}  // namespace
}  // namespace strata::testing
