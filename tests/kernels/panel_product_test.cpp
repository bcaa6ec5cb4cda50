// panel_product, scaled_copy and take_diagonal of every backend: exact integers by hand, real
// numbers against long double, the digits of long sums, and numbers at both ends of the range.

#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "kernels/dense/panel_product.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/scaled_copy.hpp"
#include "kernels/dense/take_diagonal.hpp"
#include "scalar/complex.hpp"
#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

/// One call on one device; operands come back, and the read ones must not have changed.
class ProductRunner {
 public:
  explicit ProductRunner(const Backend& backend)
      : backend_(backend),
        device_(backend.make_device(0, 64_MiB)),
        queue_(device_->make_queue(QueuePriority::normal)) {}

  template <class Y, class A, class X>
  void run(const Operation& operation, Matrix<Y>& y, Matrix<A> a, Matrix<X> x, std::int64_t row,
           std::int64_t col, std::uint32_t variant = 0) {
    std::vector<BlockView> views{load(y), load(a), load(x)};
    call(operation, {element_of<Y>, element_of<A>, element_of<X>}, views, 1, row, col, variant);
    take(y, a, x, views, 1);
  }
  /// The same of an operation that writes a number behind Y, which is handed back.
  template <class Y, class A, class X>
  double run_with_number(const Operation& operation, Matrix<Y>& y, Matrix<A> a, Matrix<X> x,
                         std::int64_t row, std::int64_t col) {
    Matrix<double> number(1, 1, 0, [](auto, auto) { return 1e300; });
    std::vector<BlockView> views{load(y), load(number), load(a), load(x)};
    call(operation, {element_of<Y>, Element::fp64, element_of<A>, element_of<X>}, views, 2, row,
         col, 0);
    store(number, views[1]);
    take(y, a, x, views, 2);
    return number(0, 0);
  }

 private:
  void call(const Operation& operation, const Elements& elements, std::vector<BlockView>& views,
            std::size_t a, std::int64_t row, std::int64_t col, std::uint32_t variant) {
    const KernelFunction kernel = backend_.kernels().find(operation.name, elements);
    ASSERT_NE(kernel, nullptr);
    views[a].row = row;
    views[a].col = col;
    try {
      kernel(*queue_, {views, operation.operands}, {.variant = variant});
    } catch (...) {
      queue_->synchronize();
      throw;
    }
  }
  template <class Y, class A, class X>
  void take(Matrix<Y>& y, Matrix<A>& a, Matrix<X>& x, const std::vector<BlockView>& views,
            std::size_t of_a) {
    const Matrix<A> a_before = a;
    const Matrix<X> x_before = x;
    store(y, views[0]);
    store(a, views[of_a]);
    store(x, views[of_a + 1]);
    queue_->synchronize();
    memory_.clear();
    EXPECT_TRUE(same_bits(a, a_before));
    EXPECT_TRUE(same_bits(x, x_before));
  }
  template <class T>
  BlockView load(Matrix<T>& matrix) {
    memory_.push_back(device_->allocate(std::max<std::int64_t>(matrix.bytes(), 1)));
    queue_->copy(memory_.back().data(), matrix.data.data(), matrix.bytes(),
                 CopyDirection::host_to_device);
    return {memory_.back().data(), matrix.rows, matrix.cols, matrix.ld, 0, 0, element_of<T>};
  }
  template <class T>
  void store(Matrix<T>& matrix, const BlockView& view) {
    queue_->copy(matrix.data.data(), view.data, matrix.bytes(), CopyDirection::device_to_host);
  }
  const Backend& backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  std::vector<Buffer> memory_;
};

template <class T>
T number_of(double re, double im) {
  if constexpr (is_complex_v<T>)
    return {static_cast<RealOf<T>>(re), static_cast<RealOf<T>>(im)};
  else
    return static_cast<T>(re);
}
template <class T>
Matrix<T> numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed, bool integers) {
  return {rows, cols, 2, [&](auto i, auto j) {
            return integers ? number_of<T>(small_integer(seed, i, j), small_integer(seed + 9, i, j))
                            : number_of<T>(uniform(seed, i, j), uniform(seed + 9, i, j));
          }};
}

std::vector<KernelParameter> all_elements() {
  std::vector<KernelParameter> parameters = every_backend();
  for (const Backend* backend : all_of_them())
    for (const Element element : {Element::complex128, Element::complex64})
      parameters.push_back({backend, element});
  return parameters;
}

/// The order of the matrix, first column and width of its panel, columns of X: on both sides of
/// the edges of what threads and groups take.
struct Shape {
  std::int64_t n, first, width, columns;
};
std::vector<Shape> shapes() {
  return {{1, 0, 1, 1},      {5, 2, 3, 2},      {63, 0, 63, 1},   {64, 60, 4, 3},
          {65, 33, 32, 4},   {130, 1, 5, 5},    {257, 256, 1, 7}, {300, 100, 150, 16},
          {301, 37, 64, 17}, {513, 500, 13, 33}};
}

class PanelProduct : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, PanelProduct, ::testing::ValuesIn(all_elements()), name_of);

TEST_P(PanelProduct, IsExactOnIntegersAndLeavesWhatIsBeside) {
  ProductRunner runner(*GetParam().backend);
  dispatch_blas(GetParam().precision, [&](auto type) {
    using T = typename decltype(type)::type;
    using W = WideOf<T>;
    for (const auto& [n, first, width, columns] : shapes()) {
      SCOPED_TRACE(::testing::Message() << n << " " << first << " " << width << " " << columns);
      const Matrix<T> a = numbers<T>(n, width, 1, true);
      const Matrix<W> x = numbers<W>(n, columns, 2, true);
      const Matrix<W> begin = numbers<W>(n, columns, 3, true);
      Matrix<W> plain = begin;
      Matrix<W> adjoint = begin;
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t j = 0; j < width; ++j) {
          for (std::int64_t i = 0; i < n; ++i) {
            const auto element = static_cast<W>(a(i, j));
            plain(i, c) -= element * x(first + j, c);
            adjoint(first + j, c) -= conjugate<W>(element) * x(i, c);
          }
        }
      }
      Matrix<W> got = begin;
      runner.run(panel_product, got, a, x, 0, first);
      EXPECT_TRUE(same_values(got, plain));
      got = begin;
      runner.run(panel_product, got, a, x, 0, first, kAdjointPanel);
      EXPECT_TRUE(same_values(got, adjoint));
    }
  });
}

TEST_P(PanelProduct, AddsMagnitudes) {
  ProductRunner runner(*GetParam().backend);
  dispatch_blas(GetParam().precision, [&](auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [n, first, width, columns] : shapes()) {
      SCOPED_TRACE(::testing::Message() << n << " " << first << " " << width << " " << columns);
      const Matrix<T> a = numbers<T>(n, width, 4, false);
      const Matrix<double> x(n, columns, 1, [](auto i, auto j) { return 1 + uniform(5, i, j); });
      Matrix<double> got(n, columns, 1, [](auto i, auto) { return static_cast<double>(i % 5); });
      const Matrix<double> begin = got;
      runner.run(panel_product, got, a, x, 0, first, kMagnitudesOfPanel);
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t i = 0; i < n; ++i) {
          long double sum = begin(i, c);
          for (std::int64_t j = 0; j < width; ++j)
            sum += std::hypot(static_cast<long double>(real_part(a(i, j))),
                              static_cast<long double>(imaginary_part(a(i, j)))) *
                   static_cast<long double>(x(first + j, c));
          ASSERT_NEAR(got(i, c), static_cast<double>(sum),
                      static_cast<double>(width + 3) * 0x1p-52 * static_cast<double>(sum));
        }
      }
    }
  });
}

/// x is large, and a second panel takes away what the first one gave: what is left is what fp64
/// would have lost.
TEST_P(PanelProduct, OfLongSumsKeepsTwiceTheDigits) {
  ProductRunner runner(*GetParam().backend);
  dispatch_blas(GetParam().precision, [&](auto type) {
    using T = typename decltype(type)::type;
    using W = WideOf<T>;
    for (const auto& [n, first, width, columns] : shapes()) {
      SCOPED_TRACE(::testing::Message() << n << " " << first << " " << width << " " << columns);
      const Matrix<T> a = numbers<T>(n, width, 6, false);
      const Matrix<W> x = numbers<W>(n, columns, 7, false);
      Matrix<W> negative = x;
      for (W& v : negative.data) v = -v;
      const Matrix<W> small = numbers<W>(n, columns, 8, false);
      const std::int64_t high = columns;
      Matrix<W> sums(n, 2 * columns, 3,
                     [&](auto i, auto j) { return j < high ? small(i, j) * 0x1p-50 : W{0}; });
      runner.run(panel_product, sums, a, x, 0, first, kLongProduct);
      // In fp64 high parts alone are near the product.
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t i = 0; i < n; ++i) {
          W product{};
          for (std::int64_t j = 0; j < width; ++j)
            product -= static_cast<W>(a(i, j)) * x(first + j, c);
          ASSERT_LE(std::abs(sums(i, c) - product), 1e-13 * static_cast<double>(width + 1));
          ASSERT_LE(largest_part(sums(i, columns + c)), 0x1p-52 * (1 + largest_part(sums(i, c))));
        }
      }
      runner.run(panel_product, sums, a, negative, 0, first, kLongProduct);
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t i = 0; i < n; ++i)
          ASSERT_LE(std::abs(sums(i, c) + sums(i, columns + c) - small(i, c) * 0x1p-50),
                    static_cast<double>(width + 2) * 0x1p-100);
    }
  });
}

TEST_P(PanelProduct, HasNoOtherVariants) {
  ProductRunner runner(*GetParam().backend);
  dispatch_blas(GetParam().precision, [&](auto type) {
    using T = typename decltype(type)::type;
    using W = WideOf<T>;
    Matrix<W> y = numbers<W>(3, 1, 1, true);
    EXPECT_THROW(
        runner.run(panel_product, y, numbers<T>(3, 1, 1, true), numbers<W>(3, 1, 1, true), 0, 0, 8),
        Error);
  });
}

class ScaledCopy : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Every, ScaledCopy, ::testing::ValuesIn(all_of_them()), backend_name);

/// Exponents from far below the range to far above it, subnormal results among them.
TEST_P(ScaledCopy, HasTheBitsOfScalbn) {
  ProductRunner runner(*GetParam());
  for_scaled_copies([&]<class N, class A>() {
    for (const auto& [n, first, width, columns] : shapes()) {
      (void)columns;
      SCOPED_TRACE(::testing::Message() << to_string(element_of<N>) << " of "
                                        << to_string(element_of<A>) << " " << n << " " << first);
      Matrix<A> a = numbers<A>(n, width, 11, false);
      a(n - 1, 0) = A{0};
      if (n % 2 == 1) a(0, width - 1) = std::numeric_limits<RealOf<A>>::infinity();
      if (n % 4 == 1) a(n / 2, 0) = nan_of<A>();
      const std::int64_t of_row = first;
      const Matrix<std::int64_t> exponents(n + of_row, 2, 0, [](auto i, auto j) {
        const std::int64_t far = (i * 37 + j * 11) % 1201 - 600;
        return i % 3 == 0 ? 2 * far : i % 3 == 1 ? far / 9 : far;
      });
      Matrix<N> got(n, width, 1);
      const double largest = runner.run_with_number(scaled_copy, got, a, exponents, of_row, first);
      EXPECT_EQ(largest,
                largest_to_factor<N>(MatrixView<const N>{got.data.data(), n, width, got.ld}, 0));
      for (std::int64_t j = 0; j < width; ++j) {
        for (std::int64_t i = 0; i < n; ++i) {
          const auto e = static_cast<int>(exponents(of_row + i, 0) + exponents(first + j, 1));
          const N expected = number_of<N>(
              static_cast<RealOf<N>>(std::scalbn(static_cast<double>(real_part(a(i, j))), e)),
              static_cast<RealOf<N>>(std::scalbn(static_cast<double>(imaginary_part(a(i, j))), e)));
          ASSERT_TRUE(got(i, j) == expected || (is_nan(got(i, j)) && is_nan(expected)))
              << i << " " << j << " 2^" << e << ": " << got(i, j) << " and " << expected;
        }
      }
    }
  });
}

class TakeDiagonal : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, TakeDiagonal, ::testing::ValuesIn(all_elements()), name_of);

TEST_P(TakeDiagonal, IsThatOfThePanel) {
  const Backend& backend = *GetParam().backend;
  dispatch_blas(GetParam().precision, [&](auto type) {
    using T = typename decltype(type)::type;
    const KernelFunction kernel =
        backend.kernels().find(take_diagonal.name, Elements(2, element_of<T>));
    ASSERT_NE(kernel, nullptr);
    const auto device = backend.make_device(0, 64_MiB);
    const auto queue = device->make_queue(QueuePriority::normal);
    for (const auto& [n, first, width, columns] : shapes()) {
      (void)columns;
      const Matrix<T> a = numbers<T>(n, width, 5, false);
      Matrix<T> d(1, width, 2);
      const Matrix<T> before = d;
      const Buffer of_a = device->allocate(a.bytes());
      const Buffer of_d = device->allocate(d.bytes());
      queue->copy(of_a.data(), a.data.data(), a.bytes(), CopyDirection::host_to_device);
      queue->copy(of_d.data(), d.data.data(), d.bytes(), CopyDirection::host_to_device);
      const std::vector<BlockView> views{{of_d.data(), 1, width, d.ld},
                                         {of_a.data(), n, width, a.ld, 0, first}};
      kernel(*queue, {views, take_diagonal.operands}, {});
      queue->copy(d.data.data(), of_d.data(), d.bytes(), CopyDirection::device_to_host);
      queue->synchronize();
      Matrix<T> expected = before;
      for (std::int64_t j = 0; j < width; ++j) expected(0, j) = a(first + j, j);
      EXPECT_TRUE(same_bits(d, expected)) << n << ' ' << first << ' ' << width;
    }
  });
}

TEST(PowerOfTwo, OfFloatsIsThatOfScalbnEverywhere) {
  for (const float x : {1.0F, -1.5F, 0x1.fffffep127F, 0x1p-149F, 0x1.8p-126F, 0x1.000002p-3F})
    for (int e = -400; e <= 400; ++e) ASSERT_EQ(times_power(x, e), std::scalbn(x, e)) << x << e;
}

TEST(PowerOfTwo, IsThatOfScalbnEverywhere) {
  for (const double x : {1.0, -1.5, 0x1.fffffffffffffp1023, 0x1p-1074, 0x1.8p-1022, 0.0, -0.0,
                         std::numeric_limits<double>::infinity(), 0x1.0000000000001p-3}) {
    for (std::int64_t e = -5000; e <= 5000; ++e) {
      const double got = scaled_by_power(x, e);
      const double expected = std::scalbn(x, static_cast<int>(e));
      ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected))
          << x << " 2^" << e;
    }
  }
}

}  // namespace
}  // namespace strata::testing
