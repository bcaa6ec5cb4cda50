// column_squares of every backend: exact integers, real numbers against sums in long double, and
// bits that do not depend on the columns beside a column.

#include <cmath>
#include <limits>

#include "kernels/dense/column_squares.hpp"
#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

/// S and W of one call.
template <class T>
struct Call {
  Matrix<double> s;
  Matrix<T> w;
};

/// One task; S comes back, with what lies behind it, and W must not change.
template <class T>
void run_all(const Backend& backend, std::vector<Call<T>>& calls, std::uint32_t variant = 0) {
  const KernelFunction kernel =
      backend.kernels().find(column_squares.name, {Element::fp64, element_of<T>});
  ASSERT_NE(kernel, nullptr);
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  const auto load = [&](auto& matrix) {
    memory.push_back(device->allocate(matrix.bytes()));
    queue->copy(memory.back().data(), matrix.data.data(), matrix.bytes(),
                CopyDirection::host_to_device);
    views.push_back({memory.back().data(), matrix.rows, matrix.cols, matrix.ld});
  };
  for (Call<T>& call : calls) {
    load(call.s);
    load(call.w);
  }
  const std::vector<Call<T>> before = calls;
  try {
    kernel(*queue, {views, column_squares.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  for (std::size_t c = 0; c < calls.size(); ++c) {
    queue->copy(calls[c].s.data.data(), views[2 * c].data, calls[c].s.bytes(),
                CopyDirection::device_to_host);
    queue->copy(calls[c].w.data.data(), views[2 * c + 1].data, calls[c].w.bytes(),
                CopyDirection::device_to_host);
  }
  queue->synchronize();
  for (std::size_t c = 0; c < calls.size(); ++c)
    EXPECT_TRUE(same_bits(calls[c].w, before[c].w)) << "W of call " << c << " was written";
}

template <class T>
Matrix<double> squares_added(const Backend& backend, Matrix<double> s, Matrix<T> w) {
  std::vector<Call<T>> calls{{std::move(s), std::move(w)}};
  run_all(backend, calls);
  return calls[0].s;
}

Matrix<double> starts(std::int64_t cols) {
  return {cols, 1, 3, [](auto j, auto) { return static_cast<double>(j % 7) - 3; }};
}

/// On both sides of the edges of what threads, warps and unrolled loops take.
std::vector<Extents> column_extents() {
  std::vector<Extents> all;
  for (const std::int64_t rows :
       {1, 2, 15, 16, 17, 31, 33, 255, 256, 257, 769, 1023, 1024, 1025, 2048, 2300})
    all.push_back({rows, 5});
  for (const std::int64_t cols : {1, 2, 33, 300}) all.push_back({70, cols});
  return all;
}

class ColumnSquares : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, ColumnSquares, ::testing::ValuesIn(every_backend()), name_of);

TEST_P(ColumnSquares, AreExactOnIntegersAndLeaveWhatIsBehindThem) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [rows, cols] : column_extents()) {
      const Matrix<T> w(rows, cols, 1, [](auto i, auto j) { return small_integer(1, i, j); });
      Matrix<double> expected = starts(cols);
      for (std::int64_t j = 0; j < cols; ++j) {
        for (std::int64_t i = 0; i < rows; ++i)
          expected(j, 0) += static_cast<double>(w(i, j)) * static_cast<double>(w(i, j));
      }
      const Matrix<double> got = squares_added(*GetParam().backend, starts(cols), w);
      EXPECT_TRUE(same_values(got, expected)) << rows << " by " << cols;
    }
  });
}

TEST_P(ColumnSquares, OfRealNumbersAreRoundedAsTheSumOfAllSquaresMayBe) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    for (const auto& [rows, cols] : column_extents()) {
      const Matrix<T> w(rows, cols, 0, [](auto i, auto j) { return uniform(2, i, j); });
      const Matrix<double> zero(cols, 1, 0, [](auto, auto) { return 0; });
      const Matrix<double> got = squares_added(*GetParam().backend, zero, w);
      for (std::int64_t j = 0; j < cols; ++j) {
        long double sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto value = static_cast<long double>(w(i, j));
          sum += value * value;
        }
        // The squares of floats are exact in double; the sum is rounded there too.
        const double bound = static_cast<double>(rows + 1) *
                             std::numeric_limits<double>::epsilon() * static_cast<double>(sum);
        EXPECT_NEAR(got(j, 0), static_cast<double>(sum), bound) << rows << " by " << cols;
      }
    }
  });
}

TEST_P(ColumnSquares, OfAColumnAreTheSameBitsInEveryBlockAndTask) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    std::vector<Call<T>> calls;
    for (const auto& [rows, cols] : column_extents())
      calls.push_back({starts(cols),
                       Matrix<T>(rows, cols, 0, [](auto i, auto j) { return uniform(3, i, j); })});
    std::vector<Call<T>> together = calls;
    run_all(*GetParam().backend, together);
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const Matrix<T>& w = calls[c].w;
      for (const std::int64_t j : {std::int64_t{0}, w.cols / 2, w.cols - 1}) {
        const Matrix<T> column(w.rows, 1, 2, [&](auto i, auto) { return w(i, j); });
        const Matrix<double> start(1, 1, 0, [&](auto, auto) { return calls[c].s(j, 0); });
        const Matrix<double> alone = squares_added(*GetParam().backend, start, column);
        EXPECT_EQ(alone(0, 0), together[c].s(j, 0)) << w.rows << " by " << w.cols << ": " << j;
      }
    }
  });
}

TEST_P(ColumnSquares, ANanStaysInItsColumn) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    Matrix<T> w(300, 3, 0, [](auto i, auto j) { return uniform(4, i, j); });
    w(299, 1) = std::numeric_limits<T>::quiet_NaN();
    const Matrix<double> got = squares_added(*GetParam().backend, starts(3), w);
    EXPECT_FALSE(std::isnan(got(0, 0)));
    EXPECT_TRUE(std::isnan(got(1, 0)));
    EXPECT_FALSE(std::isnan(got(2, 0)));
  });
}

TEST_P(ColumnSquares, HaveNoVariants) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    std::vector<Call<T>> calls{{starts(2), Matrix<T>(3, 2, 0, [](auto, auto) { return 1; })}};
    EXPECT_THROW(run_all(*GetParam().backend, calls, 1), Error);
  });
}

TEST(ColumnSquaresReference, ByHand) {
  const Matrix<double> w(2, 3, 0, [](auto i, auto j) { return i == 0 ? 3.0 : 4.0 * double(j); });
  const Matrix<double> got = squares_added(reference_backend(), starts(3), w);  // −3, −2, −1 before
  EXPECT_EQ(got(0, 0), 6);
  EXPECT_EQ(got(1, 0), 23);
  EXPECT_EQ(got(2, 0), 72);
}

}  // namespace
}  // namespace strata::testing
