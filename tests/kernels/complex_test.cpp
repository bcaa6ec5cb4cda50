// The kernels of Hermitian Cholesky in complex numbers: exact on Gaussian integers, and near sums
// of the parts in long double.

#include <complex>
#include <string>
#include <vector>

#include "kernels/dense/trmm.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

/// A complex number of the oracle: parts by themselves, no complex arithmetic of a library.
struct Long {
  long double re = 0;
  long double im = 0;
};
template <class T>
Long long_of(const T& z) {
  return {real_part(z), imaginary_part(z)};
}
Long adjoint_of(const Long& z) { return {z.re, -z.im}; }
/// sum ← sum − a·b, with no less than |a|·|b| added to `size`.
void subtract(Long& sum, const Long& a, const Long& b, long double& size) {
  sum.re -= a.re * b.re - a.im * b.im;
  sum.im -= a.re * b.im + a.im * b.re;
  size += (std::abs(a.re) + std::abs(a.im)) * (std::abs(b.re) + std::abs(b.im));
}

std::vector<KernelParameter> complex_backends() {
  std::vector<KernelParameter> parameters;
  for (const Backend* backend : all_of_them())
    for (const Element element : {Element::complex128, Element::complex64})
      parameters.push_back({backend, element});
  return parameters;
}

class ComplexKernelTest : public ::testing::TestWithParam<KernelParameter> {
 protected:
  template <class F>
  static void each(F&& body) {
    Runner runner(*GetParam().backend);
    if (GetParam().precision == Element::complex128)
      body(runner, std::type_identity<std::complex<double>>{});
    else
      body(runner, std::type_identity<std::complex<float>>{});
  }
};
INSTANTIATE_TEST_SUITE_P(Every, ComplexKernelTest, ::testing::ValuesIn(complex_backends()),
                         name_of);

template <class T, class F>
Matrix<T> complex_matrix(std::int64_t rows, std::int64_t cols, std::int64_t padding,
                         std::uint64_t seed, F part) {
  return Matrix<T>(rows, cols, padding, [&](auto i, auto j) {
    return std::complex<double>(part(seed, i, j), part(seed + 100, i, j));
  });
}

/// Value and oracle differ by no more than rounding: 2·√2·(terms + 2) roundings of parts.
template <class T>
void expect_near(const T& value, const Long& expected, long double size, std::int64_t terms,
                 const std::string& what) {
  const long double bound = 2.9L * static_cast<long double>(terms + 2) *
                            std::numeric_limits<RealOf<T>>::epsilon() / 2 * size;
  ASSERT_LE(std::hypot(real_part(value) - expected.re, imaginary_part(value) - expected.im), bound)
      << what;
}

TEST_P(ComplexKernelTest, GemmTakesAdjoints) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::uint32_t variant : {0U, kTransposeA, kTransposeB, kTransposeA | kTransposeB}) {
      const bool ta = (variant & kTransposeA) != 0;
      const bool tb = (variant & kTransposeB) != 0;
      for (const std::int64_t n : kSizes) {
        for (const bool exact : {true, false}) {
          const std::int64_t m = n % 3 + n;
          const std::int64_t k = n > 3 ? n - 2 : n + 1;
          const auto part = exact ? small_integer : uniform;
          auto c = complex_matrix<T>(m, n, 2, 1, part);
          const auto a =
              ta ? complex_matrix<T>(k, m, 1, 2, part) : complex_matrix<T>(m, k, 1, 2, part);
          const auto b =
              tb ? complex_matrix<T>(n, k, 0, 3, part) : complex_matrix<T>(k, n, 0, 3, part);
          const auto before = c;
          runner.run(gemm, c, {a, b}, variant);
          for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i < m; ++i) {
              Long sum = long_of(before(i, j));
              long double size = std::hypot(sum.re, sum.im);
              for (std::int64_t p = 0; p < k; ++p) {
                const Long left = ta ? adjoint_of(long_of(a(p, i))) : long_of(a(i, p));
                const Long right = tb ? adjoint_of(long_of(b(j, p))) : long_of(b(p, j));
                subtract(sum, left, right, size);
              }
              if (exact) {
                ASSERT_EQ(c(i, j),
                          T(static_cast<RealOf<T>>(sum.re), static_cast<RealOf<T>>(sum.im)))
                    << variant << ": " << n << ", " << i << ", " << j;
              } else {
                expect_near(c(i, j), sum, size, k, "gemm " + std::to_string(n));
              }
            }
          }
          for (std::int64_t j = 0; j < n; ++j) EXPECT_TRUE(is_nan(c(m, j))) << "padding";
        }
      }
    }
  });
}

TEST_P(ComplexKernelTest, SyrkIsHermitianAndLeavesARealDiagonal) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t k : {std::int64_t{1}, n, std::int64_t{67}}) {
        const auto a = complex_matrix<T>(n, k, 1, 4, small_integer);
        auto c = lower_only(complex_matrix<T>(n, n, 2, 5, small_integer));
        const auto before = c;
        runner.run(syrk, c, {a});
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < j; ++i) ASSERT_TRUE(is_nan(c(i, j))) << n;
          for (std::int64_t i = j; i < n; ++i) {
            Long sum = long_of(before(i, j));
            if (i == j) sum.im = 0;  // whatever it was
            long double size = 0;
            for (std::int64_t p = 0; p < k; ++p)
              subtract(sum, long_of(a(i, p)), adjoint_of(long_of(a(j, p))), size);
            ASSERT_EQ(c(i, j), T(static_cast<RealOf<T>>(sum.re), static_cast<RealOf<T>>(sum.im)))
                << n << ", k = " << k << ": " << i << ", " << j;
          }
        }
      }
    }
  });
}

/// A factor of Gaussian integers with a diagonal of powers of two, with which substitution is
/// exact.
template <class T>
Matrix<T> exact_complex_factor(std::int64_t n) {
  return lower_only(Matrix<T>(n, n, 1, [](auto i, auto j) {
    if (i == j) return std::complex<double>(std::ldexp(1.0, static_cast<int>(j % 3)));
    if (i - j > 3) return std::complex<double>();
    return std::complex<double>(small_integer(6, i, j) / 4, small_integer(7, i, j) / 4);
  }));
}

TEST_P(ComplexKernelTest, TrsmUndoesTheProductWithTheAdjointToo) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::uint32_t variant : {0U, kTransposeL, kRightSide, kRightSide | kTransposeL}) {
      const bool transposed = (variant & kTransposeL) != 0;
      const bool right = (variant & kRightSide) != 0;
      for (const std::int64_t n : kSizes) {
        auto l = complex_matrix<T>(n, n, 1, 8, uniform);
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = j; i < n; ++i)
            l(i, j) =
                i == j ? T(2, static_cast<RealOf<T>>(0.5)) : l(i, j) / static_cast<RealOf<T>>(n);
        l = lower_only(std::move(l));
        const auto of_l = [&](std::int64_t i, std::int64_t j) {
          if (transposed ? i > j : i < j) return Long{};
          return transposed ? adjoint_of(long_of(l(j, i))) : long_of(l(i, j));
        };
        const std::int64_t m = right ? n / 2 + 1 : n;
        const std::int64_t cols = right ? n : n / 2 + 1;
        auto x = complex_matrix<T>(m, cols, 2, 9, uniform);
        const auto b = x;
        runner.run(trsm, x, {l}, variant);
        // b − op(L)·x is rounding: (n + 1)·u·|op(L)|·|x| (Higham, theorem 8.5).
        for (std::int64_t j = 0; j < cols; ++j) {
          for (std::int64_t i = 0; i < m; ++i) {
            Long rest = long_of(b(i, j));
            long double size = 0;
            for (std::int64_t k = 0; k < n; ++k) {
              if (right)
                subtract(rest, long_of(x(i, k)), of_l(k, j), size);
              else
                subtract(rest, of_l(i, k), long_of(x(k, j)), size);
            }
            expect_near(T{0}, rest, size, 2 * n,
                        "trsm " + std::to_string(variant) + " of " + std::to_string(n));
          }
        }
      }
    }
  });
}

TEST_P(ComplexKernelTest, TrmmTakesTheAdjoint) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::uint32_t variant : {0U, kTransposeL}) {
      const bool transposed = variant != 0;
      for (const std::int64_t n : kSizes) {
        const auto l = lower_only(complex_matrix<T>(n, n, 1, 10, small_integer));
        auto x = complex_matrix<T>(n, 5, 2, 11, small_integer);
        const auto before = x;
        runner.run(trmm, x, {l}, variant);
        for (std::int64_t j = 0; j < 5; ++j) {
          for (std::int64_t i = 0; i < n; ++i) {
            Long sum;
            long double size = 0;
            for (std::int64_t k = transposed ? i : 0; k <= (transposed ? n - 1 : i); ++k)
              subtract(sum, transposed ? adjoint_of(long_of(l(k, i))) : long_of(l(i, k)),
                       long_of(before(k, j)), size);
            ASSERT_EQ(x(i, j), T(static_cast<RealOf<T>>(sum.re), static_cast<RealOf<T>>(sum.im)))
                << variant << ": " << n << ", " << i << ", " << j;
          }
        }
      }
    }
  });
}

/// L·Lᴴ below the diagonal and on it, NaN above; exact for the factor of above.
template <class T>
Matrix<T> product_of(const Matrix<T>& l) {
  Matrix<T> a(l.rows, l.cols, 3);
  for (std::int64_t j = 0; j < l.cols; ++j) {
    for (std::int64_t i = j; i < l.rows; ++i) {
      Long sum;
      long double size = 0;
      for (std::int64_t k = 0; k <= j; ++k)
        subtract(sum, long_of(l(i, k)), adjoint_of(long_of(l(j, k))), size);
      a(i, j) = T(static_cast<RealOf<T>>(-sum.re), static_cast<RealOf<T>>(-sum.im));
    }
  }
  return a;
}

TEST_P(ComplexKernelTest, PotrfFindsAnExactFactorWhateverTheDiagonalsImaginaryParts) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      for (const bool imaginary : {false, true}) {
        const Matrix<T> l = exact_complex_factor<T>(n);
        Matrix<T> a = product_of(l);
        if (imaginary)
          for (std::int64_t j = 0; j < n; ++j) a(j, j) += T(0, 3);
        const PivotStatus status = runner.factor(a);
        EXPECT_EQ(status.bad_column, -1) << n;
        double log_determinant = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          log_determinant += 2 * static_cast<double>(j % 3) * std::log(2.0);
          for (std::int64_t i = 0; i < j; ++i) ASSERT_TRUE(is_nan(a(i, j))) << n;
          for (std::int64_t i = j; i < n; ++i)
            ASSERT_EQ(a(i, j), l(i, j)) << n << ": " << i << ", " << j;
          ASSERT_TRUE(is_nan(a(n, j))) << "padding";
        }
        EXPECT_NEAR(status.log_determinant, log_determinant, 1e-13 * log_determinant) << n;
      }
    }
  });
}

TEST_P(ComplexKernelTest, PotrfReproducesTheMatrix) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kSizes) {
      // exp(−|i − j|/10 + 0.3·(i − j)·√−1): Hermitian, positive definite.
      const auto before = lower_only(Matrix<T>(n, n, 0, [](auto i, auto j) {
        const auto d = static_cast<double>(i - j);
        return std::polar(std::exp(-0.1 * std::abs(d)), 0.3 * d) + (i == j ? 0.1 : 0.0);
      }));
      auto l = before;
      ASSERT_EQ(runner.factor(l).bad_column, -1);
      for (std::int64_t j = 0; j < n; ++j) {
        EXPECT_EQ(imaginary_part(l(j, j)), 0);
        for (std::int64_t i = j; i < n; ++i) {
          Long rest = long_of(before(i, j));
          long double size = 0;
          for (std::int64_t k = 0; k <= j; ++k)
            subtract(rest, long_of(l(i, k)), adjoint_of(long_of(l(j, k))), size);
          expect_near(T{0}, rest, size, 2 * n, "potrf of " + std::to_string(n));
        }
      }
    }
  });
}

TEST_P(ComplexKernelTest, PotrfNamesEveryBadColumnAndItsPivot) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    using R = RealOf<T>;
    for (const std::int64_t n : {1, 7, 130}) {
      for (std::int64_t bad = 0; bad<n; bad += n> 100 ? 13 : 1) {
        const Matrix<T> good = product_of(exact_complex_factor<T>(n));
        const R pivot = static_cast<R>(std::ldexp(1.0, static_cast<int>(2 * (bad % 3))));
        for (const R value : {R{0}, R{-2}, std::numeric_limits<R>::quiet_NaN(),
                              std::numeric_limits<R>::infinity()}) {
          Matrix<T> a = good;
          a(bad, bad) += value - pivot;
          const PivotStatus status = runner.factor(a);
          EXPECT_EQ(status.bad_column, static_cast<double>(bad)) << n << " " << value;
          if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(status.bad_pivot)) << n;
          } else {
            EXPECT_EQ(status.bad_pivot, static_cast<double>(value)) << n;
          }
        }
        if (bad == 0) continue;
        Matrix<T> a = good;  // a NaN beside the diagonal spoils the pivot of its row
        a(bad, bad - 1) = T(1, std::numeric_limits<R>::quiet_NaN());
        EXPECT_EQ(runner.factor(a).bad_column, static_cast<double>(bad)) << n;
      }
    }
  });
}

TEST_P(ComplexKernelTest, RefusesAVariantThatDoesNotExist) {
  each([](Runner& runner, auto type) {
    using T = typename decltype(type)::type;
    const auto one = complex_matrix<T>(2, 2, 0, 1, small_integer);
    auto c = one;
    EXPECT_THROW(runner.run(gemm, c, {one, one}, 4), Error);
    EXPECT_THROW(runner.run(syrk, c, {one}, 1), Error);
    EXPECT_THROW(runner.run(trsm, c, {one}, 4), Error);
    EXPECT_THROW(runner.run(trmm, c, {one}, 2), Error);
  });
}

}  // namespace
}  // namespace strata::testing
