// Elimination of stripes by pairs: LAPACK's pivots and factors of the two blocks put together,
// where columns go at once; what is applied to other columns is what was done to these; adjoints;
// what statuses tell.

#include "kernels/dense/stripe_pair.hpp"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <vector>

#include "base/index.hpp"
#include "kernels/dense/lu_update.hpp"
#include "scalar/complex.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/nan.hpp"

namespace strata::testing {
namespace {

template <class T>
T random_number(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  if constexpr (is_complex_v<T>)
    return T(static_cast<RealOf<T>>(uniform(seed, i, j)),
             static_cast<RealOf<T>>(uniform(seed + 50, i, j)));
  else
    return static_cast<T>(uniform(seed, i, j));
}

/// A block with two rows of padding.
template <class T>
struct PairBlock {
  std::int64_t rows;
  std::int64_t cols;
  std::vector<T> data;

  template <class F>
  PairBlock(std::int64_t r, std::int64_t c, F value)
      : rows(r), cols(c), data(at((r + 2) * c), T(7)) {
    for (std::int64_t j = 0; j < c; ++j)
      for (std::int64_t i = 0; i < r; ++i) (*this)(i, j) = value(i, j);
  }
  T& operator()(std::int64_t i, std::int64_t j) { return data[at(i + j * (rows + 2))]; }
  const T& operator()(std::int64_t i, std::int64_t j) const { return data[at(i + j * (rows + 2))]; }
  [[nodiscard]] BlockView view() {
    return {data.data(), rows, cols, rows + 2, 0, 0, element_of<T>};
  }
};

/// What one elimination has and leaves.
template <class T>
struct Pair {
  PairBlock<T> d;
  PairBlock<T> x;
  PairBlock<T> w;
  std::vector<std::int64_t> pivots;
  PanelStatus of_u{};
  PanelStatus of_x{};

  template <class F, class G>
  Pair(std::int64_t b, std::int64_t r, std::int64_t width, F of_d, G of_x_block)
      : d(b, b, of_d),
        x(r, b, of_x_block),
        w(width, b, [](auto, auto) { return T(9); }),
        pivots(at(b), -7) {}
};

class PairKernels : public ::testing::TestWithParam<KernelParameter> {
 protected:
  void call(const Operation& operation, const Elements& elements,
            const std::vector<BlockView>& views, std::uint32_t variant = 0) {
    const auto device = GetParam().backend->make_device(0, 64_MiB);
    call_there(*GetParam().backend, *device, operation, elements, views, variant);
  }
  template <class T>
  void factor(Pair<T>& p) {
    call(stripe_pair_factor, kPairFactorElements<T>,
         {p.d.view(),
          {&p.of_u, 4, 1, 4},
          p.x.view(),
          p.w.view(),
          {p.pivots.data(), 1, p.d.cols, 1},
          {&p.of_x, 4, 1, 4}});
  }
  template <class T>
  void update(Pair<T>& p, PairBlock<T>& y, PairBlock<T>& z, bool adjoint) {
    call(stripe_pair_update, kPairUpdateElements<T>,
         {y.view(), z.view(), p.w.view(), p.x.view(), {p.pivots.data(), 1, p.d.cols, 1}},
         adjoint ? kAdjointFactor : 0);
  }
  template <class F>
  static void each(F&& body) {
    dispatch_blas(GetParam().precision, body);
  }
};

TEST_P(PairKernels, AreLapacksWhereAllColumnsGoAtOnce) {
  if (GetParam().precision != Element::fp64) return;
  for (const std::int64_t b : {1, 6, 33, 70}) {
    for (const std::int64_t r : {1, 5, 70}) {
      const auto of_d = [](auto i, auto j) { return uniform(1, i, j) + (i == j ? 2 : 0); };
      const auto of_x = [](auto i, auto j) { return 3 * uniform(2, i, j); };
      Pair<double> p(b, r, b, of_d, of_x);
      factor(p);
      std::vector<double> both(at((b + r) * b));
      for (std::int64_t j = 0; j < b; ++j) {
        for (std::int64_t i = 0; i <= j; ++i) both[at(i + j * (b + r))] = of_d(i, j);
        for (std::int64_t i = 0; i < r; ++i) both[at(b + i + j * (b + r))] = of_x(i, j);
      }
      std::vector<lapack_int> expected(at(b));
      const auto order = static_cast<lapack_int>(b);
      const auto rows = static_cast<lapack_int>(b + r);
      ASSERT_EQ(LAPACKE_dgetrf(LAPACK_COL_MAJOR, rows, order, both.data(), rows, expected.data()),
                0);
      for (std::int64_t j = 0; j < b; ++j) {
        ASSERT_EQ(p.pivots[at(j)] + 1, expected[at(j)]) << b << ' ' << r;
        for (std::int64_t i = 0; i < b; ++i) {
          const double found = both[at(i + j * (b + r))];
          const double wanted = i <= j ? found : of_d(i, j);  // below is left alone
          ASSERT_NEAR(p.d(i, j), wanted, i <= j ? 1e-12 * static_cast<double>(b) : 0);
          ASSERT_NEAR(p.w(i, j), i > j ? found : 0, 1e-12);
        }
        for (std::int64_t i = 0; i < r; ++i)
          ASSERT_NEAR(p.x(i, j), both[at(b + i + j * (b + r))], 1e-12 * static_cast<double>(b));
      }
    }
  }
}

/// What is done to the columns that were eliminated gives U and zeros.
TEST_P(PairKernels, DoToOtherColumnsWhatWasDoneToTheirs) {
  each([&]<class Type>(Type) {
    using T = typename Type::type;
    constexpr double kUlp = std::numeric_limits<RealOf<T>>::epsilon();
    for (const std::int64_t b : {1, 5, 19, 70}) {
      for (const std::int64_t r : {1, 4, 19, 90}) {
        for (const std::int64_t width : {1, 3, 8, 64}) {
          if (width > b) continue;
          const auto of_d = [](auto i, auto j) {
            return random_number<T>(1, i, j) + (i == j ? T(2) : T(0));
          };
          const auto of_x = [](auto i, auto j) { return T(3) * random_number<T>(2, i, j); };
          Pair<T> p(b, r, width, of_d, of_x);
          p.of_u.largest = 100;
          factor(p);
          EXPECT_GE(p.of_u.largest, 100) << "what was met before counts";
          double most = 0;
          for (std::int64_t j = 0; j < b; ++j) {
            const std::int64_t end = std::min(width, b - j / width * width) + r;
            ASSERT_TRUE(p.pivots[at(j)] == j % width || p.pivots[at(j)] >= end - r);
            ASSERT_LT(p.pivots[at(j)], end);
            for (std::int64_t i = 0; i < r; ++i) most = std::max(most, std::abs(p.x(i, j)) * 1.0);
          }
          EXPECT_LE(most, (is_complex_v<T> ? 1.4143 : 1.0));
          EXPECT_GE(p.of_x.largest, most * (1 - 1e-6));
          PairBlock<T> y(b, b, [&](auto i, auto j) { return i <= j ? of_d(i, j) : T(0); });
          PairBlock<T> z(r, b, of_x);
          PanelStatus status;
          status.largest = 3;
          call(stripe_pair_row, kPairRowElements<T>,
               {y.view(),
                z.view(),
                {&status, 4, 1, 4},
                p.w.view(),
                p.x.view(),
                {p.pivots.data(), 1, b, 1}});
          const double bound = 50 * kUlp * static_cast<double>(b) * (1 + status.largest);
          for (std::int64_t j = 0; j < b; ++j) {
            for (std::int64_t i = 0; i < b; ++i)
              ASSERT_LE(std::abs(y(i, j) - (i <= j ? p.d(i, j) : T(0))), bound) << width;
            for (std::int64_t i = 0; i < r; ++i) ASSERT_LE(std::abs(z(i, j)), bound) << width;
          }
          EXPECT_GE(status.largest, 3);
          EXPECT_EQ(status.not_finite, -1);
        }
      }
    }
  });
}

TEST_P(PairKernels, HaveAdjoints) {
  each([&]<class Type>(Type) {
    using T = typename Type::type;
    using W = WideOf<T>;
    constexpr double kUlp = std::numeric_limits<RealOf<T>>::epsilon();
    for (const std::int64_t b : {1, 9, 40}) {
      for (const std::int64_t r : {1, 17}) {
        for (const std::int64_t width : {4, 64}) {
          Pair<T> p(
              b, r, std::min(width, b), [](auto i, auto j) { return random_number<T>(1, i, j); },
              [](auto i, auto j) { return random_number<T>(2, i, j); });
          factor(p);
          const auto block = [](std::int64_t rows, std::uint64_t seed) {
            return PairBlock<T>(rows, 1,
                                [=](auto i, auto j) { return random_number<T>(seed, i, j); });
          };
          const PairBlock<T> vy = block(b, 3);
          const PairBlock<T> vz = block(r, 4);
          const PairBlock<T> uy = block(b, 5);
          const PairBlock<T> uz = block(r, 6);
          PairBlock<T> ty = vy;
          PairBlock<T> tz = vz;
          update(p, ty, tz, false);
          PairBlock<T> ay = uy;
          PairBlock<T> az = uz;
          update(p, ay, az, true);
          W left{};
          W right{};
          double sizes = 1;
          const auto add = [&](const PairBlock<T>& t, const PairBlock<T>& u, const PairBlock<T>& v,
                               const PairBlock<T>& a) {
            for (std::int64_t i = 0; i < t.rows; ++i) {
              left += conjugate<W>(static_cast<W>(u(i, 0))) * static_cast<W>(t(i, 0));
              right += conjugate<W>(static_cast<W>(a(i, 0))) * static_cast<W>(v(i, 0));
              sizes += std::abs(t(i, 0)) * 1.0 + std::abs(a(i, 0)) * 1.0;
            }
          };
          add(ty, uy, vy, ay);
          add(tz, uz, vz, az);
          EXPECT_LE(std::abs(left - right), 40 * kUlp * sizes * static_cast<double>(b)) << b;
        }
      }
    }
  });
}

TEST_P(PairKernels, FindPivotsBelowWhereThereAreNone) {
  each([&]<class Type>(Type) {
    using T = typename Type::type;
    const std::int64_t b = 10;
    Pair<T> p(
        b, b, 4, [](auto, auto) { return T(0); },
        [](auto i, auto j) { return i == (j + 3) % 10 ? T(2) : T(0); });
    factor(p);
    EXPECT_EQ(p.of_u.zero_pivot, -1);
    EXPECT_EQ(p.of_u.smallest_pivot, 2);
    EXPECT_EQ(p.of_x.largest, 0);
    for (std::int64_t j = 0; j < b; ++j)
      EXPECT_EQ(p.pivots[at(j)], std::min<std::int64_t>(4, b - j / 4 * 4) + (j + 3) % 10);
    Pair<T> none(
        b, b, 4, [](auto i, auto j) { return i == j && j != 7 ? T(1) : T(0); },
        [](auto, auto) { return T(0); });
    factor(none);
    EXPECT_EQ(none.of_u.zero_pivot, 7);
    EXPECT_EQ(none.of_u.not_finite, -1);
    Pair<T> bad(
        b, b, 4, [](auto i, auto j) { return i == j ? T(1) : T(0); },
        [](auto i, auto j) {
          return i == 2 && j == 5 ? T(static_cast<RealOf<T>>(test::kNan)) : T(0);
        });
    factor(bad);
    EXPECT_EQ(bad.of_x.not_finite, 5);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, PairKernels, ::testing::ValuesIn(backends_of_general_systems()),
                         name_of);

}  // namespace
}  // namespace strata::testing
